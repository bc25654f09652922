//! Adapters for text before it is parsed: the lines of a range of a file, JSON arrays as lines, and
//! a limit on the text of one batch.

use std::io::{BufRead, Error, ErrorKind, Read, Result, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reads the lines whose first byte is within a range.
pub(super) struct LineRange<R> {
    inner: R,
    /// The position of `inner`.
    at: u64,
    end: u64,
    is_done: bool,
}

impl<R: BufRead + Seek> LineRange<R> {
    pub(super) fn new(mut inner: R, range: Range<u64>) -> Result<Self> {
        let mut at = 0;
        if let Some(before) = range.start.checked_sub(1) {
            inner.seek(SeekFrom::Start(before))?;
            at = before + skip_line(&mut inner)?;
        }
        Ok(Self { inner, at, end: range.end, is_done: at >= range.end })
    }
}

/// Skips to after the next line end. Returns the number of bytes skipped.
fn skip_line(reader: &mut impl BufRead) -> Result<u64> {
    let mut skipped = 0;
    loop {
        let bytes = reader.fill_buf()?;
        let (count, found) = match bytes.iter().position(|byte| *byte == b'\n') {
            Some(index) => (index + 1, true),
            None => (bytes.len(), false),
        };
        reader.consume(count);
        skipped += count as u64;
        if found || count == 0 {
            return Ok(skipped);
        }
    }
}

impl<R: BufRead> Read for LineRange<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.is_done {
            return Ok(0);
        }
        let available = self.inner.fill_buf()?;
        let mut count = available.len().min(buffer.len());
        let (Some(taken), Some(into)) = (available.get(..count), buffer.get_mut(..count)) else {
            return Ok(0);
        };
        into.copy_from_slice(taken);
        // The last line is the one that contains the last byte of the range.
        let last = usize::try_from((self.end - 1).saturating_sub(self.at)).unwrap_or(usize::MAX);
        let line_end =
            taken.get(last..).and_then(|rest| rest.iter().position(|byte| *byte == b'\n'));
        if let Some(index) = line_end {
            count = last + index + 1;
            self.is_done = true;
        }
        self.inner.consume(count);
        self.at += count as u64;
        Ok(count)
    }
}

/// Converts a JSON array of rows to one row per line.
pub(super) struct ArrayRows<R> {
    inner: R,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    /// In the array, at this depth of nested objects and arrays.
    Within(u64),
    String(u64),
    /// After a backslash in a string.
    Escaped(u64),
    After,
}

impl<R> ArrayRows<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, state: State::Before }
    }
}

impl<R: Read> Read for ArrayRows<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let count = self.inner.read(buffer)?;
        if count == 0 && !buffer.is_empty() && self.state != State::After {
            return Err(Error::new(ErrorKind::UnexpectedEof, "the JSON array has no end"));
        }
        for byte in buffer.iter_mut().take(count) {
            self.state = self.state.step(byte)?;
        }
        Ok(count)
    }
}

impl State {
    fn step(self, byte: &mut u8) -> Result<Self> {
        let invalid = |what| Err(Error::new(ErrorKind::InvalidData, what));
        Ok(match (self, *byte) {
            (Self::String(depth), b'"') => Self::Within(depth),
            (Self::String(depth), b'\\') => Self::Escaped(depth),
            (Self::String(depth) | Self::Escaped(depth), _) => Self::String(depth),
            (state, b' ' | b'\n' | b'\r' | b'\t') => {
                *byte = b' ';
                state
            }
            (Self::Before, b'[') => {
                *byte = b' ';
                Self::Within(0)
            }
            (Self::Before, _) => return invalid("expected a JSON array"),
            (Self::After, _) => return invalid("expected nothing after the JSON array"),
            (Self::Within(depth), b'"') => Self::String(depth),
            (Self::Within(depth), b'{' | b'[') => Self::Within(depth + 1),
            (Self::Within(0), b',') => {
                *byte = b'\n';
                self
            }
            (Self::Within(0), b']') => {
                *byte = b' ';
                Self::After
            }
            (Self::Within(depth), b'}' | b']') => match depth.checked_sub(1) {
                Some(depth) => Self::Within(depth),
                None => {
                    return invalid(
                        "expected a row or the end of the JSON array, found a closing brace",
                    );
                }
            },
            (Self::Within(_), _) => self,
        })
    }
}

/// A limit on the text of one batch.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    max: u64,
    used: Arc<AtomicU64>,
}

impl Budget {
    pub(super) fn new(max: u64) -> Self {
        Self { max, used: Arc::default() }
    }

    /// Starts the next batch.
    pub(super) fn renew(&self) {
        self.used.store(0, Ordering::Relaxed);
    }
}

/// A reader that fails once a batch exceeds its budget.
pub(super) struct BudgetReader<R> {
    inner: R,
    budget: Budget,
}

impl<R> BudgetReader<R> {
    pub(super) fn new(inner: R, budget: Budget) -> Self {
        Self { inner, budget }
    }
}

impl<R: Read> Read for BudgetReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let count = self.inner.read(buffer)?;
        let Budget { max, used } = &self.budget;
        if used.fetch_add(count as u64, Ordering::Relaxed).saturating_add(count as u64) > *max {
            let what = format!(
                "its rows are so long that a batch exceeds the {max} bytes that memory allows"
            );
            return Err(Error::new(ErrorKind::OutOfMemory, what));
        }
        Ok(count)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use super::*;
    use std::io::{BufReader, Cursor};

    /// Returns one byte more with each read, so that reads end at every position.
    struct ShortReads<R>(R, usize);

    impl<R: Read> Read for ShortReads<R> {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
            self.1 = self.1 % 7 + 1;
            let count = self.1.min(buffer.len());
            self.0.read(&mut buffer[..count])
        }
    }

    impl<R: Seek> Seek for ShortReads<R> {
        fn seek(&mut self, to: SeekFrom) -> Result<u64> {
            self.0.seek(to)
        }
    }

    #[test]
    fn ranges_have_each_line_once() {
        for text in ["a\nbb\n\nccc\ndddd", "\n\n\n", "x", "long line without an end", "a\n"] {
            let bytes = text.len() as u64;
            for first in 0..=bytes {
                for second in first..=bytes {
                    let mut all = String::new();
                    for range in [0..first, first..second, second..bytes] {
                        if !range.is_empty() {
                            let reader =
                                BufReader::with_capacity(3, ShortReads(Cursor::new(text), 0));
                            LineRange::new(reader, range)
                                .unwrap()
                                .read_to_string(&mut all)
                                .unwrap();
                        }
                    }
                    assert_eq!(all, text, "{first} {second}");
                }
            }
        }
    }

    #[test]
    fn arrays_become_lines() {
        let array = " [\n{\"a\": \"]},[\\\"\\\\\",\r\n \"b\":[1,{}]} , {\"a\":null}\t]\n";
        let mut lines = String::new();
        ArrayRows::new(ShortReads(array.as_bytes(), 0)).read_to_string(&mut lines).unwrap();
        let rows: Vec<_> =
            lines.split('\n').map(|row| row.split_whitespace().collect::<String>()).collect();
        assert_eq!(rows, ["{\"a\":\"]},[\\\"\\\\\",\"b\":[1,{}]}", "{\"a\":null}"]);
        for cut in 1..array.trim_end().len() {
            let read = ArrayRows::new(&array.as_bytes()[..cut]).read_to_string(&mut String::new());
            assert_eq!(read.unwrap_err().kind(), ErrorKind::UnexpectedEof, "{cut}");
        }
        for bad in ["{}", "[}]", "[1]]", "[] x", ""] {
            assert!(
                ArrayRows::new(bad.as_bytes()).read_to_string(&mut String::new()).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_batch_has_a_budget() {
        let budget = Budget::new(10);
        let mut bounded = BudgetReader::new(Cursor::new([0; 30]), budget.clone());
        bounded.read_exact(&mut [0; 10]).unwrap();
        budget.renew();
        bounded.read_exact(&mut [0; 10]).unwrap();
        assert_eq!(bounded.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::OutOfMemory);
    }
}
