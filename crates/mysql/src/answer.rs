//! Answers other than rows: OK, the end of rows, errors.

use mysql_common::constants::StatusFlags;

use crate::error::{Error, ErrorKind, Result};
use crate::fields::{Fields, malformed};

/// The first byte of OK.
pub(crate) const OK: u8 = 0x00;
/// The first byte of the end of rows, and of a request for another authentication.
pub(crate) const END: u8 = 0xfe;
/// The payload of the end of rows is shorter than this. A longer one is a row whose first value
/// has 16 MiB or more.
const END_BYTES_MAX: usize = 0xff_ffff;

/// Errors after which a server closes the connection: ER_SERVER_SHUTDOWN, ER_NORMAL_SHUTDOWN,
/// ER_NET_PACKET_TOO_LARGE, MariaDB's ER_CONNECTION_KILLED, MySQL's ER_CLIENT_INTERACTION_TIMEOUT.
const CLOSING: [u16; 5] = [1053, 1077, 1153, 1927, 4031];

/// The types of session changes that matter: a system variable, the default database.
const SYSTEM_VARIABLE: u8 = 0;
const SCHEMA: u8 = 1;
/// The variables by which statements are sent and results are read.
pub(crate) const SETTINGS: [&str; 3] =
    ["time_zone", "character_set_client", "character_set_results"];

/// What the server says at the end of a result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) rows_changed: u64,
    pub(crate) status: u16,
    pub(crate) warnings: u16,
    pub(crate) changes: Changes,
}

/// What has changed in the session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// The last values of [`SETTINGS`] that have changed. Others are not kept: a server may send
    /// millions.
    pub(crate) values: [Option<String>; 3],
    /// Whether the default database or any variable has changed.
    pub(crate) has_any: bool,
}

impl Done {
    /// Reads OK, or the end of rows in OK's form. `tracks` says whether it has changes of the
    /// session.
    pub(crate) fn parse(payload: &[u8], tracks: bool) -> Result<Self> {
        let mut fields = Fields::new(payload);
        fields.u8("header")?;
        let rows_changed = fields.integer("number of changed rows")?;
        fields.integer("last insert id")?;
        let status = fields.u16("status")?;
        let warnings = fields.u16("number of warnings")?;
        let mut changes = Changes::default();
        if tracks && !fields.is_empty() {
            fields.string("info")?;
            let changed = StatusFlags::SERVER_SESSION_STATE_CHANGED.bits();
            if status & changed != 0 {
                changes = parse_changes(fields.string("session changes")?)?;
            }
        }
        Ok(Self { rows_changed, status, warnings, changes })
    }

    /// Reads the end of rows as servers before CLIENT_DEPRECATE_EOF send it.
    pub(crate) fn parse_old_end(payload: &[u8]) -> Result<Self> {
        let mut fields = Fields::new(payload);
        fields.u8("header")?;
        fields.u16("number of warnings")?;
        Ok(Self { status: fields.u16("status")?, ..Self::default() })
    }

    pub(crate) fn has(&self, flag: StatusFlags) -> bool {
        self.status & flag.bits() != 0
    }
}

/// Whether a payload is the end of rows.
#[inline]
pub(crate) fn is_end(payload: &[u8], deprecates_eof: bool) -> bool {
    payload.first() == Some(&END) && payload.len() < if deprecates_eof { END_BYTES_MAX } else { 9 }
}

fn parse_changes(info: &[u8]) -> Result<Changes> {
    let mut changes = Changes::default();
    let mut entries = Fields::new(info);
    while !entries.is_empty() {
        let kind = entries.u8("type of a session change")?;
        let mut fields = Fields::new(entries.string("session change")?);
        changes.has_any |= matches!(kind, SYSTEM_VARIABLE | SCHEMA);
        while kind == SYSTEM_VARIABLE && !fields.is_empty() {
            let name = fields.string("variable's name")?;
            let value = fields.string("variable's value")?;
            if let Some(at) = SETTINGS.iter().position(|known| known.as_bytes() == name) {
                changes.values[at] = Some(String::from_utf8_lossy(value).into_owned());
            }
        }
    }
    Ok(changes)
}

/// Reads an error of the server's. One that comes before the login has no SQLSTATE.
pub(crate) fn server_error(payload: &[u8]) -> Result<Error> {
    let mut fields = Fields::new(payload);
    fields.u8("header")?;
    let code = fields.u16("error's number")?;
    let rest = fields.rest();
    let (sqlstate, message) = match rest.split_first() {
        Some((b'#', rest)) => {
            let (sqlstate, message) =
                rest.split_at_checked(5).ok_or_else(|| malformed("an error without SQLSTATE"))?;
            (String::from_utf8_lossy(sqlstate).into_owned(), message)
        }
        _ => (String::new(), rest),
    };
    let kind = match CLOSING.contains(&code) {
        true => ErrorKind::Connection,
        false => ErrorKind::Server,
    };
    let message = String::from_utf8_lossy(message).into_owned();
    Ok(Error::new(kind, message).with_sqlstate(sqlstate).with_code(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OK of `SET time_zone='+02:00'`: the info is empty, one variable has changed.
    const SET: &[u8] = b"\0\0\0\x02\x40\0\0\0\x13\0\x11\x09time_zone\x06+02:00";

    #[test]
    fn done() {
        let done = Done::parse(SET, true).unwrap();
        let values = [Some("+02:00".to_owned()), None, None];
        assert_eq!(done.changes, Changes { values, has_any: true });
        assert!(done.has(StatusFlags::SERVER_STATUS_AUTOCOMMIT));
        assert!(!done.has(StatusFlags::SERVER_STATUS_IN_TRANS));
        // A server that does not track changes may send its text without a length.
        let done = Done::parse(b"\0\x05\0\x02\0\0\0(Rows", false).unwrap();
        assert_eq!((done.rows_changed, done.changes), (5, Changes::default()));
        let done = Done::parse_old_end(&[END, 0, 0, 0x0a, 0]).unwrap();
        assert!(done.has(StatusFlags::SERVER_MORE_RESULTS_EXISTS));
    }

    #[test]
    fn other_changes() {
        // USE: the schema. Then an OK that reports the state of a transaction.
        for (changes, has_any) in [(&b"\x01\x03\x02db"[..], true), (b"\x05\x02\x01T", false)] {
            let length = [changes.len() as u8];
            let ok = [b"\0\0\0\x02\x40\0\0\0", &length[..], changes].concat();
            let changes = Done::parse(&ok, true).unwrap().changes;
            assert_eq!(changes, Changes { has_any, ..Changes::default() });
        }
        // Variables that nobody asked for, millions of them, and one value after another.
        let entry = |variables: &[u8]| {
            let length = (variables.len() as u64).to_le_bytes();
            [&[SYSTEM_VARIABLE, 0xfe], &length[..], variables].concat()
        };
        let names = [vec![0; 4 << 20], b"\x09time_zone\x01a\x09time_zone\x01b".to_vec()].concat();
        let changes = parse_changes(&entry(&names)).unwrap();
        assert_eq!(changes.values, [Some("b".to_owned()), None, None]);
    }

    #[test]
    fn cut_off() {
        for end in 0..SET.len() {
            // Where the info may be missing, the packet is whole.
            assert_eq!(Done::parse(&SET[..end], true).is_ok(), end == 7, "{end}");
        }
        for end in 0..5 {
            assert!(Done::parse_old_end(&[END, 0, 0, 2, 0][..end]).is_err(), "{end}");
        }
        for end in 0..9 {
            let error = server_error(&b"\xff\x7a\x04#42S02no such table"[..end]);
            assert_eq!(error.is_ok(), end == 3, "{end}");
        }
    }

    #[test]
    fn errors() {
        let error = server_error(b"\xff\x7a\x04#42S02no such table").unwrap();
        assert_eq!((error.code(), error.sqlstate()), (Some(1146), Some("42S02")));
        assert_eq!(error.message(), "no such table");
        let error = server_error(b"\xff\x10\x04Too many connections").unwrap();
        assert_eq!((error.code(), error.sqlstate()), (Some(1040), None));
    }

    #[test]
    fn ends() {
        assert!(is_end(&[END, 0, 0, 2, 0], false) && is_end(&[END, 0, 0, 2, 0], true));
        assert!(!is_end(&[END; 9], false) && is_end(&[END; 9], true));
        assert!(!is_end(&vec![END; END_BYTES_MAX], true) && !is_end(&[], true));
    }
}
