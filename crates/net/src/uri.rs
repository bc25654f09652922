//! What all connection strings share.

use std::time::Duration;

/// Undoes percent-encoding (RFC 3986 section 2.1). None if a `%` has no two hexadecimal digits, or
/// if the result is not UTF-8.
pub fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let ([high, low], tail) = rest.split_first_chunk()?;
        let digit = |digit: u8| char::from(digit).to_digit(16);
        bytes.push((digit(*high)? * 16 + digit(*low)?) as u8);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}

/// Parses seconds above 0.
pub fn parse_seconds(text: &str) -> Option<Duration> {
    let seconds =
        text.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.filter(|seconds| !seconds.is_zero())
}
