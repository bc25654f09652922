//! SQLite files as sources of a Dray server. SQLite itself reads them, compiled into this crate.
//!
//! ```text
//!   statement ─▶ SQLite, guarded ─▶ rows ─▶ Columns: builders by declared type ─▶ batches of Arrow
//! ```

#![forbid(unsafe_code)]

mod bind;
mod columns;
mod declared;
mod error;
mod guard;
mod names;
mod session;
mod stack;

use std::path::PathBuf;

use dray_driver::{Driver, ServerError, cannot_connect};

use self::session::Session;

/// A SQLite file that a Dray server passes statements on to.
#[derive(Debug)]
pub struct Sqlite {
    name: String,
    path: PathBuf,
    writable: bool,
}

impl Sqlite {
    /// The source `name` with a file: `sqlite:relative.db` or `sqlite:///absolute/path.db`. Unless
    /// it is `writable`, the file is opened to read.
    ///
    /// # Errors
    /// A sentence if the uri has no path.
    pub fn new(name: &str, uri: &str, writable: bool) -> Result<Self, String> {
        let path = path(uri).map_err(|why| format!("the source {name}: {why}"))?;
        Ok(Self { name: name.to_owned(), path, writable })
    }
}

impl Driver for Sqlite {
    fn dialect(&self) -> &'static str {
        "sqlite"
    }

    fn open(
        &self,
        _keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Box<dyn dray_driver::Session>, ServerError> {
        match Session::open(&self.name, &self.path, self.writable) {
            Ok(session) => Ok(Box::new(session)),
            Err(cause) => Err(cannot_connect(&self.name, &cause)),
        }
    }
}

/// The path of a uri. Bytes other than those of text can't be written.
fn path(uri: &str) -> Result<PathBuf, &'static str> {
    let rest = uri.strip_prefix("sqlite:").ok_or("its uri does not begin with sqlite:")?;
    let path = match rest.strip_prefix("//") {
        Some(path) if path.starts_with('/') => path,
        Some(_) => return Err("its uri names a host: write sqlite:///absolute/path.db"),
        None => rest,
    };
    if path.contains(['?', '#', '\0']) {
        return Err("its uri has options, of which there are none: write ? as %3F, # as %23");
    }
    let path = percent_decode(path).ok_or("its uri is badly encoded: write % itself as %25")?;
    match path.as_str() {
        "" => Err("its uri has no path: write sqlite:relative.db or sqlite:///absolute/path.db"),
        // A path that begins with `file:` or `:` is another thing to SQLite.
        path => Ok(PathBuf::from(".").join(path)),
    }
}

/// Undoes percent-encoding (RFC 3986 section 2.1).
fn percent_decode(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|byte| is_hex && *byte > 0)?);
        bytes.extend(rest.bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for (uri, expected) in [
            ("sqlite:notes.db", Ok("./notes.db")),
            ("sqlite:///var/notes.db", Ok("/var/notes.db")),
            ("sqlite:/var/notes.db", Ok("/var/notes.db")),
            ("sqlite:a%3Fb%20c", Ok("./a?b c")),
            ("sqlite::memory:", Ok("./:memory:")),
            ("sqlite:file:x", Ok("./file:x")),
            ("sqlite://notes.db", Err("names a host")),
            ("sqlite:", Err("no path")),
            ("sqlite:x?mode=rwc", Err("options")),
            ("sqlite:x%zz", Err("badly encoded")),
            ("sqlite:x%00", Err("badly encoded")),
            ("sqlite:x%+1", Err("badly encoded")),
        ] {
            match (path(uri), expected) {
                (Ok(path), Ok(expected)) => assert_eq!(path, PathBuf::from(expected), "{uri}"),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{uri}: {why}"),
                (found, _) => assert!(found.is_err(), "{uri}: {found:?}"),
            }
        }
    }
}
