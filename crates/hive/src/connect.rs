//! From a uri to a connection whose user is logged in.
//!
//! ```text
//!   TCP ─▶ TLS, if asked for ─▶ SASL PLAIN: status, length, bytes ─▶ frames
//!                            └▶ nothing (auth=nosasl) ─────────────▶ bare messages
//! ```

use std::io;
use std::time::{Duration, Instant};

use dray_net::{
    Address, Roots, Socket, TcpParams, Tls, TlsError, TlsParams, Verification, Wait, resolve,
};

use crate::calls::Client;
use crate::transport::Transport;
use crate::uri::{Authorities, Params};

/// Stands for an unlimited wait. A clock can still add it.
pub(crate) const TIMEOUT_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// The longest answer of a login.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// The statuses of a login (`TSaslTransport` of Thrift).
const START: u8 = 1;
const OK: u8 = 2;
const BAD: u8 = 3;
const ERROR: u8 = 4;
const COMPLETE: u8 = 5;

/// Connects to the first address of the host that lets the user in, while `keep_waiting` returns
/// true.
///
/// # Errors
/// A clause without a password.
pub(crate) fn connect(
    params: &Params,
    keep_waiting: &mut dyn FnMut() -> bool,
) -> Result<Client<Socket>, String> {
    let deadline = Instant::now() + params.connect_timeout.min(TIMEOUT_MAX);
    let mut wait = Wait::new(deadline, keep_waiting);
    let place = format!("{}:{}", params.host, params.port);
    let failed = |cause: &io::Error| format!("{place}: {cause}");
    let addresses =
        resolve(&params.host, params.port, &mut wait).map_err(|cause| failed(&cause))?;
    let count = addresses.len();
    let mut failures = Vec::new();
    for (i, address) in addresses.into_iter().enumerate() {
        let mut share = wait.share(count - i);
        let socket = Socket::open(&Address::Tcp(address), &TcpParams::default(), None, &mut share);
        match socket {
            // Who has answered will not do better at another address.
            Ok(socket) => return log_in(params, socket, address.ip(), &mut share),
            Err(cause) => failures.push(failed(&cause)),
        }
    }
    Err(failures.join("; "))
}

fn log_in(
    params: &Params,
    mut socket: Socket,
    address: std::net::IpAddr,
    wait: &mut Wait<'_>,
) -> Result<Client<Socket>, String> {
    if let Some(authorities) = &params.tls {
        let roots = match authorities {
            Authorities::System => Roots::System,
            Authorities::File(path) => Roots::File(path.clone()),
        };
        let tls = TlsParams {
            verification: Verification::AuthorityAndName(roots),
            crl: None,
            certificate: None,
            sni: true,
            allow_1_2: true,
            allow_1_3: true,
            alpn: None,
        };
        let prepared = Tls::prepare(&tls, &params.host, address).map_err(tls_failed)?;
        socket = socket.encrypt(&prepared, wait).map_err(tls_failed)?;
    }
    if params.has_sasl {
        authenticate(params, &mut socket, wait)?;
    }
    Ok(Client::new(Transport::new(socket, params.has_sasl)))
}

fn tls_failed(error: TlsError) -> String {
    match error.cause {
        Some(cause) => format!("{}: {cause}", error.message),
        None => error.message,
    }
}

/// Logs in by SASL PLAIN (RFC 4616).
fn authenticate(params: &Params, socket: &mut Socket, wait: &mut Wait<'_>) -> Result<(), String> {
    let mut out = Vec::new();
    put(&mut out, START, b"PLAIN");
    // Neither contains a byte 0.
    put(&mut out, OK, format!("\0{}\0{}", params.user, params.password).as_bytes());
    let broke = |cause: io::Error| {
        format!("it does not log in by SASL, or not without TLS: {cause} (auth=, ssl=)")
    };
    socket.send(&out, wait).map_err(broke)?;
    loop {
        let mut header = [0; 5];
        socket.receive(&mut header, wait).map_err(broke)?;
        let [status, length @ ..] = header;
        let length = u32::from_be_bytes(length) as usize;
        if !(OK..=COMPLETE).contains(&status) || length > ANSWER_BYTES_MAX {
            return Err("it does not log in by SASL (auth=nosasl logs in without)".to_owned());
        }
        let mut payload = vec![0; length];
        socket.receive(&mut payload, wait).map_err(broke)?;
        match status {
            COMPLETE => return Ok(()),
            BAD | ERROR => {
                let why = String::from_utf8_lossy(&payload).into_owned();
                return Err(format!("it does not let the user {:?} in: {why}", params.user));
            }
            // Another round, in which PLAIN has nothing to say.
            _ if payload.is_empty() => {}
            _ => return Err("it asks for more than a name and a password".to_owned()),
        }
    }
}

fn put(out: &mut Vec<u8>, status: u8, payload: &[u8]) {
    out.push(status);
    out.extend((payload.len() as u32).to_be_bytes());
    out.extend(payload);
}
