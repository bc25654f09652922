//! The empty lines of CSV files with one column: each is a row whose value is NULL. PostgreSQL's
//! COPY writes NULL so, and `dray export`. The CSV reader skips empty lines.

use std::io::{BufRead, Read, Result};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// An empty value, which the CSV reader does not skip.
const NULL: &[u8] = b"\"\"";

/// Hands out the text of a CSV file, with `""` in each empty line if the file has one column. Only
/// the CSV reader itself skips those before the header.
pub(super) struct EmptyLines<R> {
    inner: R,
    delimiter: u8,
    /// None if the file has several columns.
    state: Option<State>,
    /// Whether the header has not ended.
    in_header: bool,
    is_begun: bool,
    /// Bytes of `inner` that were looked at and not handed out.
    ready: usize,
    /// What comes before them.
    inserted: &'static [u8],
}

/// Where the next byte is. A quote counts only at the start of a value, as for the CSV reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    LineStart,
    /// After a carriage return, which ends a line, together with a line feed if one follows.
    Return,
    /// At the start of a value behind a delimiter.
    ValueStart,
    Unquoted,
    Quoted,
    /// After a quote in a quoted value: its end, or the first half of a quote.
    Quote,
}

impl<R: BufRead> EmptyLines<R> {
    pub(super) fn new(inner: R, columns: usize, delimiter: u8, has_header: bool) -> Self {
        Self {
            inner,
            delimiter,
            state: (columns == 1).then_some(State::LineStart),
            in_header: has_header,
            is_begun: false,
            ready: 0,
            inserted: b"",
        }
    }
}

impl State {
    fn is_at_start(self) -> bool {
        matches!(self, Self::LineStart | Self::Return)
    }

    /// Whether a line that ends with this byte is empty.
    fn is_empty_line(self, byte: u8) -> bool {
        match self {
            Self::LineStart => matches!(byte, b'\n' | b'\r'),
            Self::Return => byte == b'\r',
            _ => false,
        }
    }

    fn after(self, byte: u8, delimiter: u8) -> Self {
        match (self, byte) {
            (Self::Quoted, b'"') => Self::Quote,
            (Self::Quoted, _) => Self::Quoted,
            (Self::LineStart | Self::Return | Self::ValueStart | Self::Quote, b'"') => Self::Quoted,
            (_, b'\n') => Self::LineStart,
            (_, b'\r') => Self::Return,
            (_, byte) if byte == delimiter => Self::ValueStart,
            _ => Self::Unquoted,
        }
    }
}

impl<R: BufRead> BufRead for EmptyLines<R> {
    fn fill_buf(&mut self) -> Result<&[u8]> {
        let Some(state) = &mut self.state else { return self.inner.fill_buf() };
        if !self.inserted.is_empty() {
            return Ok(self.inserted);
        }
        // Not left to the CSV reader, which takes a buffer without more for the whole file.
        if !self.is_begun && self.inner.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
            self.inner.consume(BYTE_ORDER_MARK.len());
        }
        self.is_begun = true;
        let bytes = self.inner.fill_buf()?;
        if self.ready == 0 {
            let empty_line = bytes.iter().position(|byte| {
                if state.is_empty_line(*byte) && !self.in_header {
                    return true;
                }
                let was_at_start = state.is_at_start();
                *state = state.after(*byte, self.delimiter);
                self.in_header &= was_at_start || !state.is_at_start();
                false
            });
            if empty_line == Some(0) {
                self.inserted = NULL;
                *state = State::Quote;
                return Ok(self.inserted);
            }
            self.ready = empty_line.unwrap_or(bytes.len());
        }
        Ok(bytes.get(..self.ready).unwrap_or_default())
    }

    fn consume(&mut self, count: usize) {
        if !self.inserted.is_empty() {
            self.inserted = self.inserted.get(count..).unwrap_or_default();
            return;
        }
        self.inner.consume(count);
        self.ready = self.ready.saturating_sub(count);
    }
}

impl<R: BufRead> Read for EmptyLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use std::io::BufReader;
    use std::sync::Arc;

    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::csv::ReaderBuilder;
    use datafusion::arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    /// Draws numbers (splitmix64).
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut bits = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            (bits ^ bits >> 31) % end
        }

        fn text(&mut self, of: &[&str], length_max: u64) -> String {
            let length = self.below(length_max + 1);
            (0..length).map(|_| of[self.below(of.len() as u64) as usize]).collect()
        }
    }

    /// The values that the CSV reader finds.
    fn values(text: impl BufRead, has_header: bool) -> Vec<Option<String>> {
        let schema = Schema::new(vec![Field::new("a", DataType::Utf8, true)]);
        let reader =
            ReaderBuilder::new(Arc::new(schema)).with_header(has_header).with_batch_size(3);
        let batches = reader.build_buffered(text).unwrap();
        let columns = batches.map(|batch| batch.unwrap().column(0).as_string::<i32>().clone());
        let values = |column: datafusion::arrow::array::StringArray| {
            column.iter().map(|value| value.map(str::to_owned)).collect::<Vec<_>>()
        };
        columns.flat_map(values).collect()
    }

    /// Reads through buffers of so many bytes.
    fn of_one_column(text: &str, has_header: bool, capacity: usize) -> Vec<Option<String>> {
        let buffered = BufReader::with_capacity(capacity, text.as_bytes());
        values(EmptyLines::new(buffered, 1, b',', has_header), has_header)
    }

    #[test]
    fn every_value_comes_back() {
        let pieces = ["a", "b", "\"", "\n", "\r", "\r\n", ",", " ", "é"];
        for seed in 0..20_000 {
            let mut random = Random(seed);
            let end = ["\n", "\r\n", "\r"][random.below(3) as usize];
            let has_header = random.below(2) == 0;
            let rows = (0..random.below(9)).map(|_| match random.below(3) {
                0 => None,
                _ => Some(random.text(&pieces, 4)).filter(|text| !text.is_empty()),
            });
            let rows: Vec<Option<String>> = rows.collect();
            let mut text = if random.below(4) == 0 { "\u{feff}".to_owned() } else { String::new() };
            if has_header {
                text += &end.repeat(random.below(3) as usize);
                text += ["name", "\"na\n\nme\""][random.below(2) as usize];
                text += end;
            }
            for value in &rows {
                let value = value.clone().unwrap_or_default();
                match value.contains(['"', '\n', '\r', ',']) || random.below(4) == 0 {
                    true => text += &format!("\"{}\"", value.replace('"', "\"\"")),
                    false => text += &value,
                }
                text += end;
            }
            // The last line needs no end, unless it is empty.
            let is_empty = |text: &str| text.is_empty() || text.ends_with(['\n', '\r', '\u{feff}']);
            let without_end = text.strip_suffix(end).filter(|text| !is_empty(text));
            if let Some(shorter) = without_end.filter(|_| random.below(2) == 0) {
                text.truncate(shorter.len());
            }
            // A mark in the first buffer is seen as a whole.
            let capacity = 3 + random.below(9) as usize;
            let found = of_one_column(&text, has_header, capacity);
            assert_eq!(found, rows, "seed {seed}, buffers of {capacity}: {text:?}");
        }
    }

    /// Whatever the text is, the values that the CSV reader finds by itself are all there.
    #[test]
    fn only_nulls_are_added() {
        for seed in 0..20_000 {
            let mut random = Random(seed);
            let text = random.text(&["a", "\"", "\n", "\r", "\"\"", " "], 20);
            let has_header = random.below(2) == 0;
            let capacity = 3 + random.below(9) as usize;
            let found = of_one_column(&text, has_header, capacity);
            let found: Vec<_> = found.into_iter().flatten().collect();
            let by_itself = values(text.as_bytes(), has_header).into_iter().flatten();
            assert_eq!(found, by_itself.collect::<Vec<_>>(), "seed {seed}: {text:?}");
        }
    }

    #[test]
    fn files_of_several_columns_stay_as_they_are() {
        let text = "\u{feff}a,b\n\n1,\n\r\n,2\n\n";
        let mut read = String::new();
        let buffered = BufReader::with_capacity(3, text.as_bytes());
        EmptyLines::new(buffered, 2, b',', true).read_to_string(&mut read).unwrap();
        assert_eq!(read, text);
    }
}
