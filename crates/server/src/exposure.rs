//! Checks before listening who can reach the server, and whether that is safe.

use tracing::warn;

use crate::options::{ServeError, ServeOptions};

/// A hello has at most 64 KiB (protocol.md section 2), and also carries the client's name.
const TOKEN_BYTES_MAX: usize = 32 << 10;

/// Fails on options that would admit everybody or nobody, and warns about risky ones.
pub(crate) fn check(options: &ServeOptions) -> Result<(), ServeError> {
    if options.listen.is_empty() && options.unix.is_none() {
        return Err(ServeError::new("nowhere to listen: pass an address or a Unix socket"));
    }
    let open = options.listen.iter().find(|address| !address.ip().is_loopback());
    let tokens = || options.token.iter().chain(options.grants.iter().map(|grant| &grant.token));
    let longest = tokens().map(|token| token.reveal().len()).max();
    match (longest, open) {
        (Some(bytes), _) if bytes > TOKEN_BYTES_MAX => {
            return Err(ServeError::new(format!(
                "the token has {bytes} bytes, more than the {TOKEN_BYTES_MAX} that a client can \
                 send; is it the right file?"
            )));
        }
        (None, Some(address)) => {
            return Err(ServeError::new(format!(
                "tcp://{address} can be reached from other hosts: pass --token-file or --grant, or \
                 listen on 127.0.0.1"
            )));
        }
        (None, None) if options.behind_proxy && !options.listen.is_empty() => {
            warn!(
                "every client that the proxy admits can read all tables; pass --token-file, or \
                 have the proxy authenticate clients"
            );
        }
        _ => {}
    }
    if let (Some(address), None) = (open, &options.tls) {
        warn!(
            "tcp://{address} is not encrypted, and neither are the tokens sent to it; pass \
             --tls-cert and --tls-key"
        );
    }
    match options.metrics {
        Some(address) if !address.ip().is_loopback() && !options.metrics_public => {
            Err(ServeError::new(format!(
                "http://{address} would show the metrics to other hosts without authentication: \
                 pass --metrics-public if they may see them, or an address on 127.0.0.1"
            )))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::CatalogOptions;

    fn checked(change: impl FnOnce(&mut ServeOptions)) -> Result<(), String> {
        let mut options = ServeOptions::new(CatalogOptions::default());
        options.listen = vec!["127.0.0.1:0".parse().unwrap()];
        change(&mut options);
        check(&options).map_err(|error| error.to_string())
    }

    #[test]
    fn a_server_is_open_only_as_its_options_allow() {
        assert_eq!(checked(|_| {}), Ok(()));
        assert_eq!(
            checked(|options| options.metrics = Some("[::1]:9117".parse().unwrap())),
            Ok(())
        );
        assert_eq!(
            checked(|options| options.token = Some("x".repeat(TOKEN_BYTES_MAX).into())),
            Ok(())
        );
        let public: fn(&mut ServeOptions) =
            |options| options.metrics = Some("0.0.0.0:9117".parse().unwrap());
        assert_eq!(
            checked(|options| {
                public(options);
                options.metrics_public = true;
            }),
            Ok(())
        );
        for (change, expected) in [
            (public, "--metrics-public"),
            (
                |options| options.listen = vec!["192.0.2.1:7117".parse().unwrap()],
                "pass --token-file",
            ),
            (
                |options| options.token = Some("x".repeat(TOKEN_BYTES_MAX + 1).into()),
                "the token has 32769 bytes",
            ),
            (|options| options.listen.clear(), "nowhere to listen"),
        ] {
            let error = checked(change).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
