//! The login: what both sides can do, and who the user is.
//!
//! ```text
//!   server   greeting                    ask another way, or for more          OK, error
//!   client             TLS?   response ▲                             answer ▲
//! ```

use std::collections::HashMap;
use std::io::{Read, Write};
use std::time::Duration;

use dray_chooser::Line;
use mysql_common::constants::{CapabilityFlags, MariadbCapabilities};
use mysql_common::packets::{AuthPlugin, HandshakeResponse, SslRequest};
use mysql_common::proto::MySerialize;

use super::auth::{Authentication, Secrets};
use super::greeting::{Greeting, LOGIN_BYTES_MAX, refused};
use super::params::{Compress, ConnectParams};
use crate::answer::{END, OK, server_error};
use crate::connection::{Compressor, Connection};
use crate::error::{CancelCheck, Error, Result};
use crate::fields::{Fields, malformed};
use crate::packets::{ERROR, PacketStream};
use crate::server::Server;
use crate::session::Session;

/// Marks what an authentication method sends, where it could be taken for something else.
const MORE: u8 = 0x01;
/// A login has a few packets. A server that sends more plays for time.
const PACKETS_MAX: usize = 16;
/// What this client says about the largest packet it takes: the most that a server sends.
const PACKET_BYTES_MAX: u32 = 1 << 30;
/// The collation utf8mb4_general_ci, which all servers have.
const UTF8MB4_GENERAL_CI: u8 = 45;

/// What this client can do. With `CLIENT_LOCAL_FILES` a server may ask for a file:
/// `session/load.rs` says what it gets.
const WANTED: CapabilityFlags = CapabilityFlags::CLIENT_LONG_PASSWORD
    .union(CapabilityFlags::CLIENT_LONG_FLAG)
    .union(CapabilityFlags::CLIENT_LOCAL_FILES)
    .union(CapabilityFlags::CLIENT_PROTOCOL_41)
    .union(CapabilityFlags::CLIENT_TRANSACTIONS)
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PS_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA)
    .union(CapabilityFlags::CLIENT_CONNECT_ATTRS)
    .union(CapabilityFlags::CLIENT_SESSION_TRACK)
    .union(CapabilityFlags::CLIENT_DEPRECATE_EOF);

/// What a byte must cost on the line, in nanoseconds, for a server's zstd to pay. Its zlib takes
/// several times as long, about what a line of 100 Mbit/s does.
const COMPRESSED_PRICE_NS: f64 = 30.0;

/// How to compress the packets, by the user's choice or by the line. Nobody can change it later.
///
/// A login can't measure the rate of a line, but its round trip: beyond a building, the price of a
/// byte is taken for that of 100 Mbit/s, as it is by a server of Dray's.
pub(super) fn compressor(
    greeting: &Greeting,
    choice: Compress,
    round_trip: Duration,
) -> Result<Option<Compressor>> {
    let has = |flag| greeting.capabilities.contains(flag);
    let zlib = has(CapabilityFlags::CLIENT_COMPRESS).then_some(Compressor::Zlib);
    let zstd = has(CapabilityFlags::CLIENT_ZSTD_COMPRESSION_ALGORITHM).then_some(Compressor::Zstd);
    match choice {
        Compress::Never => Ok(None),
        Compress::By(Compressor::Zlib) => Ok(zlib),
        Compress::By(Compressor::Zstd) if zstd.is_none() => {
            let what = format!("compress is zstd, which {} does not have", greeting.version);
            Err(Error::usage(what).with_hint("MySQL has it since 8.0.18; other servers have zlib"))
        }
        Compress::By(Compressor::Zstd) => Ok(zstd),
        Compress::Auto => {
            let is_slow = Line::guessed(round_trip).price_ns >= COMPRESSED_PRICE_NS;
            Ok(zstd.or(zlib).filter(|_| is_slow))
        }
    }
}

/// What both sides can do.
fn agreed(
    greeting: &Greeting,
    params: &ConnectParams,
    compressor: Option<Compressor>,
    is_tls: bool,
) -> (CapabilityFlags, MariadbCapabilities) {
    let extended = greeting.extended & MariadbCapabilities::MARIADB_CLIENT_EXTENDED_METADATA;
    let mut wanted = WANTED;
    // With this flag the extended ones do not count.
    wanted.set(CapabilityFlags::CLIENT_LONG_PASSWORD, extended.is_empty());
    wanted.set(CapabilityFlags::CLIENT_COMPRESS, compressor == Some(Compressor::Zlib));
    let is_zstd = compressor == Some(Compressor::Zstd);
    wanted.set(CapabilityFlags::CLIENT_ZSTD_COMPRESSION_ALGORITHM, is_zstd);
    wanted.set(CapabilityFlags::CLIENT_CONNECT_WITH_DB, params.database.is_some());
    wanted.set(CapabilityFlags::CLIENT_SSL, is_tls);
    (greeting.capabilities & wanted, extended)
}

/// The packet after which both sides begin TLS. It agrees with the response: MariaDB reads the
/// flags here only, MySQL there only.
pub(super) fn encrypt_request(
    greeting: &Greeting,
    params: &ConnectParams,
    compressor: Option<Compressor>,
) -> Vec<u8> {
    let (capabilities, extended) = agreed(greeting, params, compressor, true);
    let request = SslRequest::new(capabilities, PACKET_BYTES_MAX, UTF8MB4_GENERAL_CI);
    let mut out = Vec::new();
    request.with_mariadb_capabilities(extended).serialize(&mut out);
    out
}

/// Who may read along.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub(super) is_tls: bool,
    pub(super) is_unix: bool,
}

/// Logs in over a connection that is encrypted already, if it is to be.
pub(super) fn log_in<S: Read + Write>(
    mut packets: PacketStream<Connection<S>>,
    params: &ConnectParams,
    greeting: &Greeting,
    compressor: Option<Compressor>,
    link: Link,
    check: CancelCheck<'_>,
) -> Result<Session<Connection<S>>> {
    let Link { is_tls, is_unix } = link;
    let (capabilities, extended) = agreed(greeting, params, compressor, is_tls);
    let secrets = Secrets {
        password: params.password.as_deref().unwrap_or_default().as_bytes(),
        is_tls,
        is_unix,
        cleartext: params.cleartext,
        server_key: params.server_key.as_deref(),
        asks_for_key: params.asks_for_key,
    };
    let (mut authentication, plugin, first) = begin(greeting, &secrets);
    let attributes: Option<HashMap<String, String>> =
        capabilities.contains(CapabilityFlags::CLIENT_CONNECT_ATTRS).then(|| {
            let attributes = [
                ("_client_name", "dray"),
                ("_client_version", env!("CARGO_PKG_VERSION")),
                ("program_name", "dray"),
            ];
            attributes.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
        });
    let response = HandshakeResponse::new(
        Some(first),
        // From this version on it takes utf8mb4.
        (5, 5, 3),
        Some(params.user.as_bytes()),
        params.database.as_deref().map(str::as_bytes),
        Some(AuthPlugin::from_bytes(plugin)),
        capabilities,
        attributes,
        PACKET_BYTES_MAX,
    );
    let mut out = Vec::new();
    response.with_mariadb_ext_capabilities(extended).serialize(&mut out);
    if compressor == Some(Compressor::Zstd) {
        out.push(Compressor::ZSTD_LEVEL);
    }
    packets.send(&out, check)?;
    authenticate(&mut packets, &mut authentication, &greeting.nonce, &secrets, check)?;
    if let Some(compressor) = compressor {
        packets = packets.replace(|connection| Ok(connection.compressed(compressor)))?.unnumbered();
    }
    let server = Server {
        version: greeting.version.clone(),
        connection_id: greeting.connection_id,
        capabilities,
        extended,
    };
    Ok(Session::over(packets, server))
}

/// The first answer, its method, and the method's name. One that is not known here, or can't begin,
/// may not be the user's: then it is the one that most accounts have. The server asks for another.
fn begin<'a>(greeting: &'a Greeting, secrets: &Secrets<'_>) -> (Authentication, &'a [u8], Vec<u8>) {
    let begun = Authentication::named(&greeting.plugin)
        .filter(|authentication| authentication.is_allowed(secrets))
        .and_then(|mut authentication| {
            let first = authentication.begin(&greeting.nonce, secrets).ok()?;
            Some((authentication, greeting.plugin.as_slice(), first))
        });
    begun.unwrap_or_else(|| {
        let mut native = Authentication::Native;
        // Without an answer if the nonce is not one of this method.
        let first = native.begin(&greeting.nonce, secrets).unwrap_or_default();
        (native, b"mysql_native_password", first)
    })
}

/// Answers the server until it lets the user in.
fn authenticate<S: Read + Write>(
    packets: &mut PacketStream<S>,
    authentication: &mut Authentication,
    nonce: &[u8],
    secrets: &Secrets<'_>,
    check: CancelCheck<'_>,
) -> Result<()> {
    let mut nonce = nonce.to_vec();
    for _ in 0..PACKETS_MAX {
        let payload = packets.next(LOGIN_BYTES_MAX, check)?;
        let answer = match payload {
            [OK, ..] => return Ok(()),
            [ERROR, ..] => return Err(refused(server_error(payload)?)),
            [END, rest @ ..] => {
                let mut fields = Fields::new(rest);
                // A server from before MySQL 4.1 names no method.
                let name = if rest.is_empty() {
                    &b"mysql_old_password"[..]
                } else {
                    fields.zero_ended("authentication's name")?
                };
                nonce = match fields.rest() {
                    // A zero byte ends it. It may also be the last of the nonce itself.
                    [data @ .., 0] if matches!(data.len(), 20 | 32) => data.to_vec(),
                    data => data.to_vec(),
                };
                *authentication = Authentication::required(name, secrets)?;
                Some(authentication.begin(&nonce, secrets)?)
            }
            [MORE, data @ ..] | data => authentication.go_on(data, &nonce, secrets)?,
        };
        if let Some(answer) = answer {
            packets.send(&answer, check)?;
        }
    }
    Err(malformed("a login without end"))
}

#[cfg(test)]
mod tests {
    use mysql_common::constants::MariadbCapabilities;

    use super::*;

    fn greeting(plugin: &[u8], nonce: &[u8], capabilities: CapabilityFlags) -> Greeting {
        Greeting {
            version: "8.0.15".to_owned(),
            connection_id: 1,
            nonce: nonce.to_vec(),
            plugin: plugin.to_vec(),
            capabilities,
            extended: MariadbCapabilities::empty(),
        }
    }

    #[test]
    fn compressors() {
        use Compressor::{Zlib, Zstd};
        let (zlib, zstd) =
            (CapabilityFlags::CLIENT_COMPRESS, CapabilityFlags::CLIENT_ZSTD_COMPRESSION_ALGORITHM);
        let chosen = |capabilities, choice, round_trip_ms| {
            let greeting = greeting(b"", b"", capabilities);
            compressor(&greeting, choice, Duration::from_millis(round_trip_ms))
        };
        for (capabilities, choice, round_trip_ms, expected) in [
            (zlib | zstd, Compress::Auto, 0, None),
            (zlib | zstd, Compress::Auto, 2, None),
            (zlib | zstd, Compress::Auto, 25, Some(Zstd)),
            (zlib, Compress::Auto, 25, Some(Zlib)),
            (CapabilityFlags::empty(), Compress::Auto, 25, None),
            (zlib | zstd, Compress::Never, 25, None),
            (zlib | zstd, Compress::By(Zlib), 0, Some(Zlib)),
            (zlib | zstd, Compress::By(Zstd), 0, Some(Zstd)),
            (CapabilityFlags::empty(), Compress::By(Zlib), 25, None),
        ] {
            let found = chosen(capabilities, choice, round_trip_ms).unwrap();
            assert_eq!(found, expected, "{capabilities:?} {choice:?} {round_trip_ms}");
        }
        let error = chosen(zlib, Compress::By(Zstd), 25).unwrap_err();
        assert!(error.to_string().contains("zstd, which 8.0.15"), "{error}");
    }

    /// The server's method may be one that can't begin here.
    #[test]
    fn first_answers() {
        let begun = |plugin: &[u8], nonce: &[u8]| {
            let greeting = greeting(plugin, nonce, CapabilityFlags::empty());
            let secrets = Secrets {
                password: b"secret",
                is_tls: false,
                is_unix: false,
                cleartext: false,
                server_key: None,
                asks_for_key: false,
            };
            let (_, name, first) = begin(&greeting, &secrets);
            (String::from_utf8_lossy(name).into_owned(), first)
        };
        let native = begun(b"mysql_native_password", &[7; 20]);
        assert_eq!(native.1.len(), 20);
        for plugin in ["dialog", "sha256_password", "mysql_clear_password", "client_ed25519"] {
            assert_eq!(begun(plugin.as_bytes(), &[7; 20]), native, "{plugin}");
        }
        assert_eq!(begun(b"caching_sha2_password", &[7; 20]).1.len(), 32);
        assert_eq!(begun(b"dialog", &[7; 32]), (native.0, Vec::new()));
    }
}
