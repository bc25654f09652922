//! Finds numbers of JSON files that would lose digits. The engine reads fractions and integers
//! beyond 64 bits as floats.

use std::io::{Error, ErrorKind, Read, Result};

use super::float_digits::keeps_digits;

/// Bytes of a number that are looked at. The digits of every float fit.
const NUMBER_BYTES_MAX: usize = 1100;
/// Digits of a number that an error shows.
const SHOWN_DIGITS_MAX: usize = 40;

/// Passes text on, and fails at an integer beyond 64 bits, and at a fraction with more digits than
/// a float keeps.
pub(super) struct NumberChecker<R> {
    inner: R,
    line: u64,
    column: u64,
    state: State,
}

enum State {
    Between,
    String,
    /// After a backslash in a string.
    Escaped,
    Number(Number),
}

struct Number {
    line: u64,
    column: u64,
    /// Its first bytes.
    text: String,
    is_integer: bool,
    is_cut: bool,
}

impl<R> NumberChecker<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, line: 1, column: 0, state: State::Between }
    }

    fn step(&mut self, byte: u8) -> Result<()> {
        match byte {
            b'\n' => (self.line, self.column) = (self.line + 1, 0),
            // Only the first byte of a character counts.
            0x80..0xC0 => {}
            _ => self.column += 1,
        }
        match (&mut self.state, byte) {
            (State::String, b'"') => self.state = State::Between,
            (State::String, b'\\') => self.state = State::Escaped,
            (State::String, _) => {}
            (State::Escaped, _) => self.state = State::String,
            (State::Number(number), b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E') => {
                number.is_integer &= byte.is_ascii_digit();
                match number.text.len() < NUMBER_BYTES_MAX {
                    true => number.text.push(char::from(byte)),
                    false => number.is_cut = true,
                }
            }
            (State::Between, b'-' | b'0'..=b'9') => {
                let text = char::from(byte).to_string();
                self.state = State::Number(Number {
                    line: self.line,
                    column: self.column,
                    text,
                    is_integer: true,
                    is_cut: false,
                });
            }
            (state, _) => {
                if let State::Number(number) = state {
                    number.check()?;
                }
                self.state = if byte == b'"' { State::String } else { State::Between };
            }
        }
        Ok(())
    }
}

impl Number {
    fn check(&self) -> Result<()> {
        let Self { line, column, text, is_integer, is_cut } = self;
        // The JSON reader reports what is not a number.
        let is_kept = match is_integer {
            true => text == "-" || text.parse::<i64>().is_ok(),
            false => !is_cut && (keeps_digits(text) || text.parse::<f64>().is_err()),
        };
        if is_kept {
            return Ok(());
        }
        let shown = text.get(..SHOWN_DIGITS_MAX).unwrap_or(text);
        let what = match is_integer {
            true => format!("the integer {shown} is beyond 64 bits"),
            false => format!("the number {shown} would lose digits as a 64-bit float"),
        };
        let what = format!(
            "line {line}, column {column}: {what}; write it as a string, in quotes, and cast it in \
             queries"
        );
        Err(Error::new(ErrorKind::InvalidData, what))
    }
}

impl<R: Read> Read for NumberChecker<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let count = self.inner.read(buffer)?;
        if count == 0
            && !buffer.is_empty()
            && let State::Number(number) = &self.state
        {
            number.check()?;
        }
        buffer.iter().take(count).try_for_each(|byte| self.step(*byte))?;
        Ok(count)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_lose_digits_are_found() {
        for (text, found) in [
            ("{\"a\":9223372036854775807,\"b\":-9223372036854775808}", None),
            (
                "{\"a\":9223372036854775808}",
                Some("line 1, column 6: the integer 9223372036854775808 "),
            ),
            (
                "{}\n {\"ä\":\n-9223372036854775809 }",
                Some("line 3, column 1: the integer -9223372036854775809 "),
            ),
            ("{\"ä\": [1, 99999999999999999999]", Some("line 1, column 11: ")),
            ("18446744073709551615", Some("line 1, column 1: ")),
            ("{\"a\":1e30,\"b\":0.12345678901234568,\"c\":2.50,\"d\":-0}", None),
            (
                "{\"b\":0.5,\"a\":12345678901234567.89}",
                Some("line 1, column 14: the number 12345678901234567.89 would lose digits "),
            ),
            ("{\"a\":99999999999999999999.0}", Some("line 1, column 6: the number ")),
            ("{\"a\":[1e-400]}", Some("line 1, column 7: the number 1e-400 ")),
            (
                "-0.1234567890123456789",
                Some("line 1, column 1: the number -0.1234567890123456789 "),
            ),
            ("{\"a\":\"99999999999999999999\",\"\\\"99999999999999999999\":1}", None),
        ] {
            let mut read = String::new();
            let ended = NumberChecker::new(text.as_bytes()).read_to_string(&mut read);
            match found {
                None => assert_eq!(read, text),
                Some(found) => assert!(ended.unwrap_err().to_string().starts_with(found), "{text}"),
            }
        }
    }
}
