//! The server's first packet.

use std::io::{Read, Write};

use mysql_common::constants::{CapabilityFlags, MariadbCapabilities};

use crate::answer::server_error;
use crate::error::{CancelCheck, Error, ErrorKind, Result};
use crate::fields::{Fields, malformed};
use crate::packets::{ERROR, PacketStream};

/// The largest packet of a login.
pub(super) const LOGIN_BYTES_MAX: usize = 64 << 10;
const PROTOCOL_VERSION: u8 = 10;
/// The bytes of the nonce of passwords, in two parts.
pub(super) const NONCE_BYTES: usize = 20;
const NONCE_PART_BYTES: usize = 8;
/// Flags that every server since MySQL 5.5 and MariaDB 5.5 has.
const REQUIRED: CapabilityFlags = CapabilityFlags::CLIENT_PROTOCOL_41
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH);

/// What the server says first.
#[derive(Debug)]
pub(super) struct Greeting {
    pub(super) version: String,
    pub(super) connection_id: u32,
    pub(super) nonce: Vec<u8>,
    pub(super) plugin: Vec<u8>,
    pub(super) capabilities: CapabilityFlags,
    /// What only MariaDB has.
    pub(super) extended: MariadbCapabilities,
}

impl Greeting {
    /// Reads it. `is_trusted` is false if the server has yet to show who it is. Its errors lack
    /// their messages then.
    pub(super) fn read<S: Read + Write>(
        packets: &mut PacketStream<S>,
        is_trusted: bool,
        check: CancelCheck<'_>,
    ) -> Result<Self> {
        let greeting = match packets.next(LOGIN_BYTES_MAX, check) {
            // Too many connections, or this host may not connect.
            Ok(payload @ [ERROR, ..]) => Err(refused(server_error(payload)?)),
            Ok(payload) => Self::parse(payload),
            Err(error) => Err(error),
        };
        greeting.map_err(|error| match error.code() {
            Some(code) if !is_trusted => {
                let what = format!("the server refused the connection with error {code}");
                Error::new(error.kind(), what)
                    .with_hint("its message came before TLS, and may be somebody else's")
            }
            _ => error,
        })
    }

    fn parse(payload: &[u8]) -> Result<Self> {
        let mut fields = Fields::new(payload);
        let protocol = fields.u8("protocol's version")?;
        if protocol != PROTOCOL_VERSION {
            return Err(malformed(format!("protocol {protocol}, expected {PROTOCOL_VERSION}"))
                .with_hint("is it a MySQL or MariaDB server?"));
        }
        let version = String::from_utf8_lossy(fields.zero_ended("version")?).into_owned();
        let connection_id = fields.u32("connection's number")?;
        let mut nonce = fields.bytes(NONCE_PART_BYTES, "nonce")?.to_vec();
        fields.u8("filler")?;
        let low = fields.u16("capabilities")?;
        fields.u8("collation")?;
        fields.u16("status")?;
        let high = fields.u16("capabilities")?;
        let nonce_bytes = usize::from(fields.u8("nonce's length")?);
        fields.bytes(6, "reserved bytes")?;
        let extended = fields.u32("MariaDB's capabilities")?;
        let capabilities = u32::from(low) | u32::from(high) << 16;
        let capabilities = CapabilityFlags::from_bits_truncate(capabilities);
        if !capabilities.contains(REQUIRED) {
            return Err(Error::new(
                ErrorKind::Connection,
                format!(
                    "the server's version is {version}, expected MySQL or MariaDB 5.5 or later"
                ),
            ));
        }
        // A zero byte ends it. A server may say 0 for the length that all of them have.
        let rest = nonce_bytes.max(NONCE_BYTES + 1) - NONCE_PART_BYTES;
        let second = fields.bytes(rest, "nonce")?;
        nonce.extend(second.strip_suffix(&[0]).unwrap_or(second));
        let plugin = fields.rest();
        // MariaDB does not set the flag that its clients had before there was MySQL 4.1.
        let is_mariadb = !capabilities.contains(CapabilityFlags::CLIENT_LONG_PASSWORD);
        Ok(Self {
            version,
            connection_id,
            nonce,
            plugin: plugin.strip_suffix(&[0]).unwrap_or(plugin).to_vec(),
            capabilities,
            extended: MariadbCapabilities::from_bits_truncate(if is_mariadb {
                extended
            } else {
                0
            }),
        })
    }

    pub(super) fn has_tls(&self) -> bool {
        self.capabilities.contains(CapabilityFlags::CLIENT_SSL)
    }
}

/// The error of a server that does not let the user in.
pub(super) fn refused(error: Error) -> Error {
    /// Errors of a server that has no room or stops: ER_CON_COUNT_ERROR, ER_SERVER_SHUTDOWN,
    /// ER_TOO_MANY_USER_CONNECTIONS, ER_USER_LIMIT_REACHED.
    const FULL: [u16; 4] = [1040, 1053, 1203, 1226];
    let is_full = error.code().is_some_and(|code| FULL.contains(&code));
    error.with_kind(if is_full { ErrorKind::Connection } else { ErrorKind::Authentication })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The greeting of MariaDB 10.11, with a nonce that can be read.
    const GREETING: &[u8] = b"\x0a5.5.5-10.11.6-MariaDB\0\x07\0\0\0abcdefgh\0\xfe\xf7\x2d\x02\0\
        \xff\x81\x15\0\0\0\0\0\0\x1d\0\0\0ijklmnopqrst\0mysql_native_password\0";

    #[test]
    fn greeting() {
        let greeting = Greeting::parse(GREETING).unwrap();
        assert_eq!(greeting.version, "5.5.5-10.11.6-MariaDB");
        assert_eq!((greeting.connection_id, &*greeting.nonce), (7, &b"abcdefghijklmnopqrst"[..]));
        assert_eq!(greeting.plugin, b"mysql_native_password");
        assert_eq!(greeting.extended.bits(), 0x1d);
        assert!(!greeting.has_tls());
    }

    #[test]
    fn cut_off() {
        let nonce_end = GREETING.len() - b"mysql_native_password\0".len();
        for end in 0..nonce_end {
            assert!(Greeting::parse(&GREETING[..end]).is_err(), "{end}");
        }
        // The plugin's name has no length.
        Greeting::parse(&GREETING[..nonce_end]).unwrap();
        for length in [0, 8, 127, 128, 255] {
            let mut greeting = GREETING.to_vec();
            let at = greeting.iter().position(|byte| *byte == 0x15).unwrap();
            greeting[at] = length;
            // However long it says it is: no more is read than there is.
            let _ = Greeting::parse(&greeting);
        }
        let error = Greeting::parse(b"HTTP/1.1 400 Bad Request\r\n").unwrap_err();
        assert!(error.hint().unwrap().contains("MySQL"), "{error}");
    }
}
