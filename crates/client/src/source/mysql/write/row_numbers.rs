//! Which rows of the data the rows of a statement are.

use crate::error::Error;

/// Parts of the data, one after another in a statement: the rows before a part in the statement,
/// and in the data.
#[derive(Debug, Default)]
pub(super) struct RowNumbers(Vec<(u64, u64)>);

impl RowNumbers {
    /// Notes a row that comes next, or the first one of several: with the rows before it in the
    /// statement, and in the data.
    pub(super) fn note(&mut self, in_statement: u64, in_data: u64) {
        let follows = self.0.last().is_some_and(|(statement, data)| {
            in_statement.checked_sub(*statement) == in_data.checked_sub(*data)
        });
        if !follows {
            self.0.push((in_statement, in_data));
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// An error of the server's about a row of the statement, which has `skipped` rows fewer than
    /// were noted before: it names the row of the data.
    pub(super) fn name(&self, error: Error, skipped: u64) -> Error {
        const AT_ROW: &str = " at row ";
        let message = error.message();
        let named = message.rsplit_once(AT_ROW).and_then(|(what, row)| {
            let row = row.parse::<u64>().ok()?.checked_add(skipped)?;
            let (statement, data) = self.0.iter().rfind(|(statement, _)| *statement < row)?;
            Some(format!("{what}{AT_ROW}{}", row - statement + data))
        });
        match named {
            Some(named) => error.with_message(named),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_data() {
        let mut numbers = RowNumbers::default();
        for (in_statement, in_data) in [(0, 100), (10, 110), (20, 300), (21, 7)] {
            numbers.note(in_statement, in_data);
        }
        assert_eq!(numbers.0, [(0, 100), (20, 300), (21, 7)]);
        let named =
            |text: &str, skipped| numbers.name(Error::usage(text), skipped).message().to_owned();
        for (row, in_data) in [(1, 101), (20, 120), (21, 301), (22, 8), (30, 16)] {
            let text = format!("Data too long for column 'a at row b' at row {row}");
            let want = format!("Data too long for column 'a at row b' at row {in_data}");
            assert_eq!(named(&text, 0), want);
        }
        assert_eq!(named("x at row 2", 20), "x at row 8");
        for text in ["x at row 0", "x at row 18446744073709551616", "x at row y", "at row 1", ""] {
            assert_eq!(named(text, 0), text);
        }
    }
}
