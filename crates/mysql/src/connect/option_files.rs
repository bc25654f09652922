//! Option files: `/etc/my.cnf`, `/etc/mysql/my.cnf`, `~/.my.cnf`, or those that the uri names.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The files of the system, in the order in which they are read.
const SYSTEM_FILES: [&str; 2] = ["/etc/my.cnf", "/etc/mysql/my.cnf"];
/// The groups that clients read.
const GROUPS: [&str; 3] = ["client", "client-server", "client-mariadb"];
/// Options that need no value.
const FLAGS: [&str; 5] = [
    "ssl",
    "ssl-verify-server-cert",
    "compress",
    "enable-cleartext-plugin",
    "get-server-public-key",
];
/// Options that say which servers to trust. They are not supported, and must not be passed over.
const REFUSED: [&str; 4] = ["ssl-capath", "ssl-crlpath", "ssl-fp", "ssl-fplist"];
/// Files that include each other end here.
const DEPTH_MAX: usize = 10;
/// Others write to their files may: more than this is no option file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Which files and groups to read.
#[derive(Debug, Default)]
pub(super) struct OptionFiles {
    /// Instead of all others.
    pub(super) file: Option<PathBuf>,
    /// After those of the system.
    pub(super) extra_file: Option<PathBuf>,
    /// Beside those that all clients read.
    pub(super) group: Option<String>,
    pub(super) group_suffix: Option<String>,
    pub(super) home: Option<PathBuf>,
}

impl OptionFiles {
    /// The options of all files: those read last count.
    ///
    /// # Errors
    /// When a file that the uri names can't be read, or a line of a file makes no sense.
    pub(super) fn read(&self) -> Result<Vec<(String, String)>> {
        let mut reader = Reader { groups: self.groups(), options: Vec::new() };
        match &self.file {
            Some(file) => reader.file(file, true, 0)?,
            None => {
                for file in SYSTEM_FILES {
                    reader.file(Path::new(file), false, 0)?;
                }
                if let Some(file) = &self.extra_file {
                    reader.file(file, true, 0)?;
                }
                if let Some(home) = &self.home {
                    reader.file(&home.join(".my.cnf"), false, 0)?;
                }
            }
        }
        Ok(reader.options)
    }

    fn groups(&self) -> Vec<String> {
        let plain = GROUPS.iter().map(|group| (*group).to_owned()).chain(self.group.clone());
        let suffix = self.group_suffix.iter();
        let suffixed = suffix.flat_map(|suffix| GROUPS.iter().map(move |g| format!("{g}{suffix}")));
        plain.chain(suffixed).collect()
    }
}

struct Reader {
    groups: Vec<String>,
    options: Vec<(String, String)>,
}

impl Reader {
    fn file(&mut self, path: &Path, is_required: bool, depth: usize) -> Result<()> {
        let failed = |what: &str| Error::usage(format!("option file {} {what}", path.display()));
        if depth > DEPTH_MAX {
            return Err(failed("is included by too many others"));
        }
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(cause) if !is_required && is_absent(&cause) => return Ok(()),
            Err(cause) => return Err(failed("can't be read").with_cause(cause)),
        };
        // As the servers' own clients do: anybody could have written it.
        if metadata.is_file() && metadata.mode() & 0o002 != 0 {
            return match is_required {
                true => Err(failed("can be written by anybody").with_hint("chmod o-w")),
                false => Ok(()),
            };
        }
        if metadata.len() > FILE_BYTES_MAX {
            return Err(failed("is too large"));
        }
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(cause) if !is_required && is_absent(&cause) => return Ok(()),
            Err(cause) => return Err(failed("can't be read").with_cause(cause)),
        };
        self.lines(&String::from_utf8_lossy(&bytes), path, depth)
    }

    fn lines(&mut self, text: &str, path: &Path, depth: usize) -> Result<()> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        let mut is_ours = false;
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            let wrong = |what: &str| {
                let place = format!("line {} of option file {}", number + 1, path.display());
                Err(Error::usage(format!("{place} {what}")))
            };
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(include) = line.strip_prefix('!') {
                match include.split_once(char::is_whitespace) {
                    Some(("include", file)) => {
                        self.file(&folder.join(file.trim()), true, depth + 1)?;
                    }
                    Some(("includedir", inner)) => {
                        self.folder(&folder.join(inner.trim()), depth + 1)?;
                    }
                    _ => return wrong("is neither !include nor !includedir"),
                }
            } else if let Some(group) = line.strip_prefix('[') {
                let Some((group, _)) = group.split_once(']') else {
                    return wrong("is a group without its closing bracket");
                };
                is_ours = self.groups.iter().any(|ours| ours == group);
            } else if is_ours {
                let (key, value) = split_option(line);
                if REFUSED.contains(&key.as_str()) && !value.is_empty() {
                    return wrong(&format!("has {key}, which is not supported"));
                }
                self.options.push((key, value));
            }
        }
        Ok(())
    }

    /// The files `*.cnf` of a folder.
    fn folder(&mut self, path: &Path, depth: usize) -> Result<()> {
        let failed = |cause: io::Error| {
            Error::usage(format!("folder {} of option files can't be read", path.display()))
                .with_cause(cause)
        };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let file = entry.map_err(failed)?.path();
            if file.extension().is_some_and(|extension| extension == "cnf") {
                files.push(file);
            }
        }
        files.sort();
        files.iter().try_for_each(|file| self.file(file, false, depth))
    }
}

/// Whether there is no file, or only one of another user, such as root.
fn is_absent(cause: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    matches!(cause.kind(), NotFound | NotADirectory | PermissionDenied)
}

/// The key, with dashes, and the value of an option. Flags are on without a value; `skip-x` turns
/// them off.
fn split_option(line: &str) -> (String, String) {
    let line = without_comment(line);
    let (key, value) = match line.split_once('=') {
        Some((key, value)) => (key.trim(), Some(unquote(value.trim()))),
        None => (line.trim(), None),
    };
    let key = key.to_ascii_lowercase().replace('_', "-");
    let key = key.strip_prefix("loose-").unwrap_or(&key);
    if let Some(flag) = key.strip_prefix("skip-") {
        return (flag.to_owned(), "0".to_owned());
    }
    let bare = if FLAGS.contains(&key) { "1" } else { "" };
    (key.to_owned(), value.unwrap_or_else(|| bare.to_owned()))
}

/// A line up to the first `#` outside quotes.
fn without_comment(line: &str) -> &str {
    let (mut quote, mut is_escaped) = (None, false);
    for (at, c) in line.char_indices() {
        match quote {
            None if c == '#' => return &line[..at],
            None => quote = Some(c).filter(|c| matches!(c, '\'' | '"')),
            Some(open) if c == open && !is_escaped => quote = None,
            Some(_) => is_escaped = c == '\\' && !is_escaped,
        }
    }
    line
}

/// A value without the quotes around it, and with its escapes undone.
fn unquote(value: &str) -> String {
    let inner = ['\'', '"']
        .iter()
        .find_map(|quote| value.strip_prefix(*quote).and_then(|value| value.strip_suffix(*quote)));
    let mut text = String::new();
    let mut rest = inner.unwrap_or(value).chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match rest.next() {
            Some('b') => text.push('\u{8}'),
            Some('t') => text.push('\t'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('s') => text.push(' '),
            Some(c @ ('\\' | '\'' | '"')) => text.push(c),
            other => {
                text.push('\\');
                text.extend(other);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, create_dir, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn read(files: &OptionFiles) -> Vec<(String, String)> {
        files.read().unwrap()
    }

    #[test]
    fn lines() {
        for (line, key, value) in [
            ("user=me", "user", "me"),
            ("Default_Character_Set = latin1 # comment", "default-character-set", "latin1"),
            ("password = 'a # b'", "password", "a # b"),
            ("password=\"it's\" # c", "password", "it's"),
            ("password=a#b", "password", "a"),
            ("password='a#b'#c", "password", "a#b"),
            (r##"password="a\"b" # c"##, "password", "a\"b"),
            (r##"password="a\"#b""##, "password", "a\"#b"),
            (r##"password="a\\" # "c""##, "password", "a\\"),
            ("password='", "password", "'"),
            ("password", "password", ""),
            ("compress", "compress", "1"),
            ("password=a\\sb\\\\c\\d", "password", "a b\\c\\d"),
            ("skip-ssl", "ssl", "0"),
            ("ssl # c", "ssl", "1"),
            ("loose-x=", "x", ""),
        ] {
            assert_eq!(split_option(line), (key.to_owned(), value.to_owned()), "{line}");
        }
    }

    #[test]
    fn groups_and_includes() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        create_dir(path("conf.d")).unwrap();
        let main = "# c\n[mysqld]\nuser=server\n[client]\nuser = me\nport=1\n!includedir conf.d\n\
                    [client_b]\nport=2\n[client-mariadb]\nssl\n!include more.ini\n";
        write(path("main.cnf"), main).unwrap();
        write(path("conf.d/b.cnf"), "[client]\nport=5").unwrap();
        write(path("conf.d/a.cnf"), "[client]\nport=4\nhost=a").unwrap();
        write(path("conf.d/c.txt"), "[client]\nport=6").unwrap();
        write(path("more.ini"), "[client]\nhost=b").unwrap();
        let files = OptionFiles { file: Some(path("main.cnf")), ..OptionFiles::default() };
        let pairs = |found: Vec<(String, String)>| {
            found.iter().map(|(a, b)| format!("{a}={b}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(pairs(read(&files)), "user=me port=1 port=4 host=a port=5 ssl=1 host=b");
        let files = OptionFiles { group_suffix: Some("_b".into()), ..files };
        assert!(pairs(read(&files)).contains("port=2"));

        let files = OptionFiles { group: Some("mysqld".into()), ..files };
        assert!(pairs(read(&files)).contains("user=server"));

        let missing = OptionFiles { file: Some(path("none")), ..OptionFiles::default() };
        assert!(missing.read().unwrap_err().to_string().contains("can't be read"));
        set_permissions(path("more.ini"), Permissions::from_mode(0o666)).unwrap();
        assert!(files.read().unwrap_err().to_string().contains("by anybody"));
        write(path("main.cnf"), b"# \xe4\n[client]\nuser=me\n").unwrap();
        assert_eq!(pairs(read(&files)), "user=me");
        let home = OptionFiles { home: Some(path("main.cnf")), ..OptionFiles::default() };
        read(&home);

        for key in REFUSED {
            write(path("main.cnf"), format!("[client]\n{key}=/x\n")).unwrap();
            let error = files.read().unwrap_err().to_string();
            assert!(error.contains(key) && error.contains("main.cnf"), "{error}");
            write(path("main.cnf"), format!("[mysql]\n{key}=/x\n")).unwrap();
            files.read().unwrap();
        }
        write(path("main.cnf"), "[client\n").unwrap();
        assert!(files.read().unwrap_err().to_string().contains("line 1"));
        write(path("main.cnf"), "!include main.cnf\n").unwrap();
        assert!(files.read().unwrap_err().to_string().contains("too many"));
    }
}
