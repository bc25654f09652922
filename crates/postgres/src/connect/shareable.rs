//! Connection strings for other processes: the server that was reached, without secrets.

use std::fmt::Write as _;

use super::conninfo;
use super::keywords::Keywords;
use super::params::ConnectParams;
use crate::error::Result;

/// Keywords that other processes don't get: secrets, files of this host, and those that choose
/// among servers.
const LEFT_OUT: [&str; 16] = [
    "dbname",
    "host",
    "hostaddr",
    "load_balance_hosts",
    "passfile",
    "password",
    "port",
    "scram_client_key",
    "scram_server_key",
    "service",
    "servicefile",
    "sslkey",
    "sslkeylogfile",
    "sslpassword",
    "target_session_attrs",
    "user",
];

/// A connection string for another process.
#[derive(Clone)]
pub struct Shareable {
    /// The uri.
    pub uri: String,
    /// Whether it has a password.
    pub has_password: bool,
}

/// The uri of the server at `place`, where `user` is logged in with the connection string
/// `conninfo`. It has the password that was used only if `include_password` says so.
///
/// # Errors
/// Usage, if the connection string is malformed.
pub fn shareable(
    conninfo: &str,
    place: &str,
    user: &str,
    include_password: bool,
) -> Result<Shareable> {
    let variable = |name: &str| match name {
        "HOME" => std::env::home_dir().map(|home| home.to_string_lossy().into_owned()),
        _ => std::env::var(name).ok(),
    };
    let keywords = Keywords::read(conninfo, &variable)?;
    let mut pairs = conninfo::split(place)?;
    let dbname = pairs.iter().find(|(key, _)| key == "dbname").map(|(_, value)| value.clone());
    let address = keywords.list("hostaddr");
    if let [address] = &address[..] {
        pairs.push(("hostaddr".to_owned(), address.clone()));
    }
    pairs.push(("user".to_owned(), user.to_owned()));
    for (key, value) in keywords.given() {
        if !LEFT_OUT.contains(&key) && pairs.iter().all(|(known, _)| known != key) {
            pairs.push((key.to_owned(), value.to_owned()));
        }
    }
    let password = match include_password {
        true => {
            let hosts = ConnectParams::parse(conninfo)?.hosts.into_iter();
            let mut of_place = hosts
                .filter(|host| host.uri(dbname.as_deref().unwrap_or_default()) == place)
                .filter_map(|host| host.password);
            of_place.next()
        }
        false => None,
    };
    let has_password = password.is_some();
    pairs.extend(password.map(|password| ("password".to_owned(), password)));
    let mut uri = "postgresql://".to_owned();
    for (i, (key, value)) in pairs.iter().enumerate() {
        uri.push(if i == 0 { '?' } else { '&' });
        uri.push_str(key);
        uri.push('=');
        encode(value, &mut uri);
    }
    Ok(Shareable { uri, has_password })
}

/// Appends a value in percent-encoding.
fn encode(value: &str, out: &mut String) {
    for byte in value.bytes() {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' => {
                out.push(byte.into());
            }
            // Writing to a string does not fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_stay_here() {
        let conninfo = "postgresql://me:s%40crt@one,two:5433/shop?sslmode=prefer&options=-c%20a%3Db\
                        &passfile=/x&target_session_attrs=any";
        let shared = shareable(conninfo, "postgresql://two:5433/shop", "me", false).unwrap();
        assert_eq!(
            shared.uri,
            "postgresql://?host=two&port=5433&dbname=shop&user=me&options=-c%20a%3Db&sslmode=prefer"
        );
        assert!(!shared.has_password);
        let shared = shareable(conninfo, "postgresql://two:5433/shop", "me", true).unwrap();
        assert!(shared.has_password && shared.uri.ends_with("&password=s%40crt"), "{}", shared.uri);
        assert!(ConnectParams::parse(&shared.uri).is_ok());
    }

    #[test]
    fn sockets_have_folders() {
        let place = "postgresql:///a b?host=/tmp/x&port=5999";
        let shared = shareable("host=/tmp/x port=5999 dbname='a b'", place, "me", false).unwrap();
        assert_eq!(shared.uri, "postgresql://?dbname=a%20b&host=%2Ftmp%2Fx&port=5999&user=me");
    }
}
