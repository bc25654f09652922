//! libpq's files: the service file (`pg_service.conf`) and the password file (`.pgpass`).

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};

/// The keywords of a service, from the first file that defines it.
pub(crate) fn read_service(files: &[PathBuf], service: &str) -> Result<Vec<(String, String)>> {
    for file in files {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                let what = format!("can't read service file {}", file.display());
                return Err(Error::new(ErrorKind::Usage, what).with_cause(error));
            }
        };
        if let Some(pairs) = find_service(&text, service, file)? {
            return Ok(pairs);
        }
    }
    let looked: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    let what = format!("no service {service:?} is defined in {}", looked.join(" or "));
    Err(Error::new(ErrorKind::Usage, what).with_hint("PGSERVICEFILE names another file"))
}

fn find_service(text: &str, service: &str, file: &Path) -> Result<Option<Vec<(String, String)>>> {
    let mut found: Option<Vec<(String, String)>> = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            if found.is_some() {
                break;
            }
            if name.split(']').next() == Some(service) {
                found = Some(Vec::new());
            }
            continue;
        }
        let Some(pairs) = &mut found else { continue };
        let wrong = |what: &str| {
            let what = format!("line {} of service file {} {what}", number + 1, file.display());
            Err(Error::new(ErrorKind::Usage, what))
        };
        match line.split_once('=') {
            _ if line.starts_with("ldap") => return wrong("asks for LDAP, which is not supported"),
            None => return wrong("is not key=value"),
            Some(("service" | "servicefile", _)) => {
                return wrong("names another service, which is not supported");
            }
            // As in libpq, the first value of a keyword counts here.
            Some((key, value)) => {
                if !pairs.iter().any(|(known, _)| known == key) {
                    pairs.push((key.to_owned(), value.to_owned()));
                }
            }
        }
    }
    Ok(found)
}

/// A password file.
#[derive(Default)]
pub(crate) struct PasswordFile {
    text: String,
    /// Why the file was ignored.
    pub(crate) warning: Option<String>,
}

impl PasswordFile {
    /// Reads a file. A missing one has no passwords; one that others may read is ignored.
    pub(crate) fn read(path: &Path) -> Self {
        let ignored = |why: String| Self { text: String::new(), warning: Some(why) };
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(_) => return Self::default(),
        };
        if !metadata.is_file() {
            return ignored(format!("password file {} is not a plain file", path.display()));
        }
        if metadata.mode() & 0o077 != 0 {
            let what = "was ignored, as its group or the world has access to it; chmod 0600 helps";
            return ignored(format!("password file {} {what}", path.display()));
        }
        match std::fs::read_to_string(path) {
            Ok(text) => Self { text, warning: None },
            Err(error) => {
                ignored(format!("password file {} can't be read: {error}", path.display()))
            }
        }
    }

    /// The password of the first line that matches.
    pub(crate) fn find(&self, host: &str, port: u16, dbname: &str, user: &str) -> Option<String> {
        let port = port.to_string();
        self.text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
            let mut rest = line;
            for expected in [host, &port, dbname, user] {
                let (field, tail) = split_field(rest)?;
                if field != "*" && unescape(field) != expected {
                    return None;
                }
                rest = tail;
            }
            let password = split_field(rest).map_or(rest, |(password, _)| password);
            Some(unescape(password)).filter(|password| !password.is_empty())
        })
    }
}

/// The field before the next unescaped colon, and the text after the colon.
fn split_field(text: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    let end = text.bytes().position(|byte| {
        let ends = byte == b':' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })?;
    Some((&text[..end], &text[end + 1..]))
}

fn unescape(text: &str) -> String {
    let mut characters = text.chars();
    let mut plain = String::with_capacity(text.len());
    while let Some(c) = characters.next() {
        match c {
            '\\' => plain.extend(characters.next()),
            c => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const PASSWORDS: &str = "\
# db:5432:d:u:comment
short:5432
db:5432:d:u:first
db:*:d:u:any port
*:5432:*:a\\:b:c\\:d\\\\
::1:5432:d:u:not reached by a plain IPv6 address
\\:\\:1:5432:d:u:six
*:*:*:*:rest
";

    #[test]
    fn passwords() {
        let file = PasswordFile { text: PASSWORDS.into(), warning: None };
        for (host, port, dbname, user, expected) in [
            ("db", 5432, "d", "u", "first"),
            ("db", 5433, "d", "u", "any port"),
            ("x", 5432, "y", "a:b", "c:d\\"),
            ("::1", 5432, "d", "u", "six"),
            ("x", 1, "y", "z", "rest"),
        ] {
            assert_eq!(
                file.find(host, port, dbname, user).as_deref(),
                Some(expected),
                "{host} {port}"
            );
        }
        let file = PasswordFile { text: "a:1:b:c:\n".into(), warning: None };
        assert_eq!(file.find("a", 1, "b", "c"), None);
    }

    #[test]
    fn password_file_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pgpass");
        assert!(PasswordFile::read(&path).warning.is_none());
        assert!(PasswordFile::read(folder.path()).warning.unwrap().contains("not a plain file"));
        write(&path, "*:*:*:*:p").unwrap();
        set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let file = PasswordFile::read(&path);
        assert!(file.warning.as_ref().unwrap().contains("0600"));
        assert_eq!(file.find("h", 1, "d", "u"), None);
        set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(PasswordFile::read(&path).find("h", 1, "d", "u").as_deref(), Some("p"));
    }

    #[test]
    fn services() {
        let folder = tempfile::tempdir().unwrap();
        let (mine, all) = (folder.path().join("mine"), folder.path().join("all"));
        let files = [mine.clone(), all.clone()];
        write(&all, "[b]\nhost=all\nhost=later\n").unwrap();
        let text = "# x\nnonsense\n[a]\n  host=h \n#c\n\noptions=-c x=1\n[c]\nwrong\n[d]\n\
                    service=a\n[e]\nldap://x\n";
        write(&mine, text).unwrap();
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(
            read_service(&files, "a").unwrap(),
            [pair("host", "h"), pair("options", "-c x=1")]
        );
        assert_eq!(read_service(&files, "b").unwrap(), [pair("host", "all")]);
        for (service, expected) in
            [("c", "line 9"), ("d", "another"), ("e", "LDAP"), ("none", "no service \"none\"")]
        {
            let error = read_service(&files, service).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
