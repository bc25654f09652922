//! Where a server is: `dray://[TOKEN@]HOST[:PORT]`, `drays://…` for TLS, `dray+unix:///PATH`.

use std::path::PathBuf;
use std::str::FromStr;

use crate::error::{Error, Result};

/// A server's address, and the token that a uri may carry.
#[derive(Clone, PartialEq, Eq)]
pub struct Uri {
    pub(crate) place: Place,
    pub(crate) token: Option<String>,
    /// The options after `?`.
    pub(crate) options: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Tcp { host: String, port: u16, tls: bool },
    Unix(PathBuf),
}

impl FromStr for Uri {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (text, options) = match text.split_once('?') {
            Some((text, options)) => (text, parse_options(options)?),
            None => (text, Vec::new()),
        };
        if let Some(path) = text.strip_prefix("dray+unix://") {
            if !path.starts_with('/') {
                return Err(Error::usage(format!("a Unix socket's uri is dray+unix:///PATH, not {text}")));
            }
            return Ok(Self { place: Place::Unix(PathBuf::from(decode(path)?)), token: None, options });
        }
        let (rest, tls) = match (text.strip_prefix("dray://"), text.strip_prefix("drays://")) {
            (Some(rest), _) => (rest, false),
            (_, Some(rest)) => (rest, true),
            _ => {
                let what = format!("{text:?} is not a server's uri");
                return Err(Error::usage(what).hint(
                    "dray://host:port, drays://host:port, dray+unix:///path or postgresql://user@host/database",
                ));
            }
        };
        let (token, address) = match rest.rsplit_once('@') {
            Some((token, address)) => (Some(decode(token.trim_start_matches(':'))?), address),
            None => (None, rest),
        };
        let address = address.strip_suffix('/').unwrap_or(address);
        let (host, port) = match address.rsplit_once(':') {
            // A colon within brackets belongs to an IPv6 address.
            Some((host, port)) if !port.ends_with(']') => {
                let port = port.parse().map_err(|_| Error::usage(format!("{port:?} is not a port")))?;
                (host, port)
            }
            _ => (address, dray_wire::DEFAULT_PORT),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || host.contains('/') {
            return Err(Error::usage(format!("no host in {text:?}")).hint("dray://host:port"));
        }
        Ok(Self { place: Place::Tcp { host: host.to_owned(), port, tls }, token, options })
    }
}

/// The uri without its token, which is nobody's business.
impl std::fmt::Display for Uri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            Place::Unix(path) => write!(f, "dray+unix://{}", path.display()),
            Place::Tcp { host, port, tls } => {
                let scheme = if *tls { "drays" } else { "dray" };
                match host.contains(':') {
                    true => write!(f, "{scheme}://[{host}]:{port}"),
                    false => write!(f, "{scheme}://{host}:{port}"),
                }
            }
        }
    }
}

impl std::fmt::Debug for Uri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

fn parse_options(text: &str) -> Result<Vec<(String, String)>> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| match pair.split_once('=') {
        Some((key, value)) => Ok((decode(key)?, decode(value)?)),
        None => {
            Err(Error::usage(format!("option {pair:?} of the uri has no value")).hint("?option=value&option=value"))
        }
    });
    pairs.collect()
}

/// Undoes percent-encoding.
fn decode(text: &str) -> Result<String> {
    let invalid = || Error::usage(format!("bad percent-encoding in {text:?}"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, tail) = rest.split_at_checked(2).ok_or_else(invalid)?;
        let digits = std::str::from_utf8(digits).map_err(|_| invalid())?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| invalid())?);
        rest = tail;
    }
    String::from_utf8(bytes).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16, tls: bool) -> Place {
        Place::Tcp { host: host.into(), port, tls }
    }

    #[test]
    fn addresses() {
        let parse = |text: &str| text.parse::<Uri>().unwrap();
        assert_eq!(parse("dray://db").place, tcp("db", 7117, false));
        assert_eq!(parse("drays://db:9/").place, tcp("db", 9, true));
        assert_eq!(parse("dray://[::1]").place, tcp("::1", 7117, false));
        assert_eq!(parse("dray://[::1]:80").place, tcp("::1", 80, false));
        assert_eq!(parse("dray://s%40cret@db:1").token.as_deref(), Some("s@cret"));
        assert_eq!(parse("dray+unix:///tmp/a%20b").place, Place::Unix("/tmp/a b".into()));
        assert_eq!(parse("dray://db?ca=x.pem").options, [("ca".to_owned(), "x.pem".to_owned())]);
        assert_eq!(parse("dray://secret@db:1").to_string(), "dray://db:1");
    }

    #[test]
    fn what_is_not_one() {
        for text in
            ["", "db", "http://db", "dray://", "dray://:1", "dray://db:x", "dray+unix://p", "dray://db?x", "dray://%@h"]
        {
            assert!(text.parse::<Uri>().is_err(), "{text:?}");
        }
    }
}
