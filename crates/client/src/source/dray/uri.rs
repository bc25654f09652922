//! Where a server is: `dray://[TOKEN@]HOST[:PORT][/SOURCE]`, `drays://…` for TLS,
//! `dray+unix:///PATH[?source=SOURCE]`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use dray_net::{parse_seconds, percent_decode};
use dray_wire::{Secret, is_source_name};

use crate::error::{Error, Result};

/// A server's address, and the token that a uri may carry.
#[derive(Clone, PartialEq, Eq)]
pub struct Uri {
    pub(crate) place: Place,
    pub(crate) token: Option<Secret>,
    /// The source that gets the statements; None for the server's own tables.
    pub(crate) source: Option<String>,
    /// The options after `?`.
    pub(crate) options: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Tcp { host: String, port: u16, tls: bool },
    Unix(PathBuf),
}

/// The options that a uri may have after its `?`.
const OPTIONS: [&str; 6] = ["token", "ca", "plain_token", "read_timeout", "local_socket", SOURCE];
const SOURCE: &str = "source";

/// Errors quote nothing of the uri but its scheme: a wrong part may be a token in its place.
impl FromStr for Uri {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (text, options) = match text.split_once('?') {
            Some((text, options)) => (text, parse_options(options)?),
            None => (text, Vec::new()),
        };
        let (named, options): (Vec<_>, Vec<_>) =
            options.into_iter().partition(|(key, _)| key == SOURCE);
        let named = named.into_iter().next_back().map(|(_, name)| name);
        if let Some(path) = text.strip_prefix("dray+unix://") {
            if !path.starts_with('/') {
                return Err(Error::usage("the uri of a Unix socket has no path")
                    .with_hint("dray+unix:///PATH"));
            }
            return Ok(Self {
                place: Place::Unix(PathBuf::from(decode(path, "path")?)),
                token: None,
                source: named.map(source_name).transpose()?,
                options,
            });
        }
        let (rest, tls) = match (text.strip_prefix("dray://"), text.strip_prefix("drays://")) {
            (Some(rest), _) => (rest, false),
            (_, Some(rest)) => (rest, true),
            _ => {
                let what = match text.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) {
                    Some((scheme, _)) => format!("{scheme}:// is not a server's uri"),
                    None => "this is not a server's uri".to_owned(),
                };
                return Err(Error::usage(what).with_hint(
                    "dray://host:port, drays://host:port, dray+unix:///path or \
                     postgresql://user@host/database",
                ));
            }
        };
        let (token, address) = match rest.rsplit_once('@') {
            Some((token, address)) => {
                (Some(decode(token.trim_start_matches(':'), "token")?.into()), address)
            }
            None => (None, rest),
        };
        let (address, path) = address.split_once('/').unwrap_or((address, ""));
        let source = match (path, named) {
            ("", named) => named,
            (path, None) => Some(decode(path, "source")?),
            (_, Some(_)) => {
                return Err(
                    Error::usage("the uri names a source twice").with_hint("dray://host:port/NAME")
                );
            }
        };
        let (host, port) = match address.rsplit_once(':') {
            // A colon within brackets belongs to an IPv6 address.
            Some((host, port)) if !port.ends_with(']') => {
                let wrong = |_| {
                    Error::usage("the port in the uri is not a number from 0 to 65535")
                        .with_hint("dray://host:port")
                };
                (host, port.parse().map_err(wrong)?)
            }
            _ => (address, dray_wire::DEFAULT_PORT),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(Error::usage("the uri names no host").with_hint("dray://host:port"));
        }
        if !host.chars().all(|c| c.is_alphanumeric() || "-._:%".contains(c)) {
            let hint = "dray://TOKEN@host:port, and / ? @ % within a token as %2F %3F %40 %25";
            return Err(
                Error::usage("the uri's host has a character that no host has").with_hint(hint)
            );
        }
        let place = Place::Tcp { host: host.to_owned(), port, tls };
        Ok(Self { place, token, source: source.map(source_name).transpose()?, options })
    }
}

impl Uri {
    /// The source that gets the statements; None for the server's own tables.
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// The file with the certificates that the server's is checked against.
    pub fn ca(&self) -> Option<&str> {
        self.option("ca")
    }

    /// How long the server may be silent.
    ///
    /// # Errors
    /// Usage, if the option is not a time.
    pub fn read_timeout(&self) -> Result<Option<Duration>> {
        let parse = |text| {
            parse_seconds(text).ok_or_else(|| {
                Error::usage("the uri's option read_timeout is not a time")
                    .with_hint("expected seconds above 0")
            })
        };
        self.option("read_timeout").map(parse).transpose()
    }

    /// The value of an option, the last one of its name.
    fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The address for other processes, without token and options that only this one has.
    pub(crate) fn shared(&self, local_socket: bool) -> String {
        let address = match &self.place {
            Place::Unix(path) => {
                let path = path.display().to_string().replace('%', "%25").replace('?', "%3F");
                match &self.source {
                    None => format!("dray+unix://{path}"),
                    Some(source) => format!("dray+unix://{path}?{SOURCE}={source}"),
                }
            }
            Place::Tcp { .. } => self.to_string(),
        };
        let before = if address.contains('?') { '&' } else { '?' };
        if local_socket { address } else { format!("{address}{before}local_socket=false") }
    }

    /// Whether it has a token.
    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some() || self.options.iter().any(|(key, _)| key == "token")
    }
}

/// # Errors
/// If no source can have this name. It is not quoted, as nothing of a uri is.
fn source_name(text: String) -> Result<String> {
    match is_source_name(&text) {
        true => Ok(text),
        false => Err(Error::usage("the uri's path is not the name of a source").with_hint(
            "dray://host:port/NAME, of letters, digits, _ and -; / ? @ % within a token as %2F \
             %3F %40 %25",
        )),
    }
}

fn is_scheme(text: &str) -> bool {
    text.len() <= 16 && text.chars().all(|c| c.is_ascii_lowercase() || c == '+')
}

/// The uri without its token.
impl std::fmt::Display for Uri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            Place::Unix(path) => write!(f, "dray+unix://{}", path.display())?,
            Place::Tcp { host, port, tls } => {
                let scheme = if *tls { "drays" } else { "dray" };
                match host.contains(':') {
                    true => write!(f, "{scheme}://[{host}]:{port}")?,
                    false => write!(f, "{scheme}://{host}:{port}")?,
                }
            }
        }
        match (&self.place, &self.source) {
            (_, None) => Ok(()),
            (Place::Unix(_), Some(source)) => write!(f, "?{SOURCE}={source}"),
            (Place::Tcp { .. }, Some(source)) => write!(f, "/{source}"),
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
        Some((key, value)) if OPTIONS.contains(&key) => Ok((key.to_owned(), decode(value, key)?)),
        Some(_) => {
            let what = "the uri has an unknown option";
            Err(Error::usage(what).with_hint(format!(
                "known are {}; write ? within a token as %3F",
                OPTIONS.join(", ")
            )))
        }
        None => Err(Error::usage("an option of the uri has no value")
            .with_hint("?option=value&option=value")),
    });
    pairs.collect()
}

/// Undoes percent-encoding; `part` names the part in an error.
fn decode(text: &str, part: &str) -> Result<String> {
    percent_decode(text).ok_or_else(|| {
        Error::usage(format!("bad percent-encoding in the uri's {part}"))
            .with_hint("write % itself as %25")
    })
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
        assert_eq!(parse("dray://s%40cret@db:1").token, Some("s@cret".into()));
        assert_eq!(parse("dray+unix:///tmp/a%20b").place, Place::Unix("/tmp/a b".into()));
        assert_eq!(parse("dray://db?ca=x.pem").options, [("ca".to_owned(), "x.pem".to_owned())]);
        assert_eq!(parse("dray://secret@db:1").to_string(), "dray://db:1");
        assert_eq!(parse("dray://secret@db:1?ca=x").shared(true), "dray://db:1");
        let odd = parse("dray+unix:///tmp/a%3Fb%25c?token=t");
        assert_eq!(odd.shared(false), "dray+unix:///tmp/a%3Fb%25c?local_socket=false");
        assert_eq!(parse(&odd.shared(false)).place, odd.place);
        for named in ["dray://db:7117/shop", "dray+unix:///tmp/a?source=shop"] {
            let uri = parse(named);
            assert_eq!((uri.source.as_deref(), uri.to_string().as_str()), (Some("shop"), named));
        }
        assert_eq!(parse("dray://s@[::1]/shop?ca=x").to_string(), "dray://[::1]:7117/shop");
        assert_eq!(parse("dray://db?source=shop").source.as_deref(), Some("shop"));
        assert!(odd.has_token() && !parse(&odd.shared(true)).has_token());
    }

    #[test]
    fn what_is_not_one() {
        for text in [
            "",
            "db",
            "http://db",
            "dray://",
            "dray://:1",
            "dray://db:x",
            "dray://d b",
            "dray+unix://p",
            "dray://db?x",
            "dray://db?x=1",
            "dray://%@h",
            "dray://db/a/b",
            "dray://db/a.b",
            "dray://db/a?source=b",
            "dray+unix:///p?source=",
            "dray://%+1@h",
        ] {
            assert!(text.parse::<Uri>().is_err(), "{text:?}");
        }
    }
}
