//! Which versions of the extension this client understands: those with the same first two numbers.

/// The beginning of the answer of `pg_catalog.dray_load()` if the library's version is understood;
/// the rest is the version's third number.
pub(crate) const OWN_LIBRARY: &str =
    concat!("dray ", env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"), ".");

/// Why a library that gave this answer can't be used, and what to do about it; None if it can.
pub fn other_library(answer: &str) -> Option<String> {
    if answer.starts_with(OWN_LIBRARY) {
        return None;
    }
    let first_two = |version: &str| -> Option<(u64, u64)> {
        let mut numbers = version.split('.').map(|number| number.parse().ok());
        Some((numbers.next()??, numbers.next()??))
    };
    let own = env!("CARGO_PKG_VERSION");
    let is_newer = answer.strip_prefix("dray ").and_then(first_two) > first_two(own);
    let advice = match is_newer {
        true => format!("upgrade the client to {answer}"),
        false => format!("install dray {own} at the server, then ALTER EXTENSION dray UPDATE"),
    };
    Some(format!("the server's library is {answer}, this client dray {own}: {advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_two_numbers_decide() {
        let own = env!("CARGO_PKG_VERSION");
        for same in
            [format!("dray {own}"), format!("{OWN_LIBRARY}99"), format!("{OWN_LIBRARY}0-beta1")]
        {
            assert_eq!(other_library(&same), None);
        }
        for (other, advice) in [
            ("dray 0.0.9", "ALTER EXTENSION dray UPDATE"),
            ("dray 99.0.1", "upgrade the client to dray 99.0.1"),
            ("dray 0.10.0", "upgrade the client to dray 0.10.0"),
            ("something else", "ALTER EXTENSION dray UPDATE"),
        ] {
            let refusal = other_library(other).unwrap();
            assert!(
                refusal.contains(&format!("is {other}, this client dray {own}: "))
                    && refusal.contains(advice),
                "{refusal}"
            );
        }
    }
}
