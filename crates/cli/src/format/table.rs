//! Tables for reading, fitted to the width of the terminal.

use std::fmt::Write;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, Schema};
use arrow::error::ArrowError;
use console::{Alignment, measure_text_width, pad_str, truncate_str};

use super::text;
use crate::number;

/// Maximum width of a result's column, unless it is the only one.
const COLUMN_WIDTH_MAX: usize = 48;
/// Maximum characters of a value.
const VALUE_CHARS_MAX: usize = 1024;
/// Columns are not shrunk below this width.
const SHRUNK_WIDTH_MIN: usize = 8;
const GAP: &str = " │ ";

/// A table of text with aligned columns.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: usize,
    /// Maximum width of a column.
    column_width_max: usize,
    /// Whether left-aligned columns shrink before columns are left out.
    shrinks: bool,
}

#[derive(Debug)]
struct Column {
    name: String,
    alignment: Alignment,
    cells: Vec<String>,
}

impl Table {
    /// An empty table with these columns.
    pub(crate) fn new(columns: &[(&str, Alignment)]) -> Self {
        let column = |&(name, alignment): &(&str, Alignment)| Column {
            name: one_line(name),
            alignment,
            cells: Vec::new(),
        };
        Self {
            columns: columns.iter().map(column).collect(),
            rows: 0,
            column_width_max: usize::MAX,
            shrinks: false,
        }
    }

    /// An empty table for batches of a schema, with numbers aligned to the right.
    pub(crate) fn of(schema: &Schema) -> Self {
        let alignment = |data_type: &DataType| match data_type.is_numeric() {
            true => Alignment::Right,
            false => Alignment::Left,
        };
        let columns = schema
            .fields()
            .iter()
            .map(|field| (field.name().as_str(), alignment(field.data_type())));
        let column_width_max =
            if schema.fields().len() == 1 { usize::MAX } else { COLUMN_WIDTH_MAX };
        Self { column_width_max, ..Self::new(&columns.collect::<Vec<_>>()) }
    }

    /// The table, with left-aligned columns that shrink if it is too wide.
    pub(crate) fn shrinking(self) -> Self {
        Self { shrinks: true, ..self }
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Appends a row.
    pub(crate) fn push_row(&mut self, cells: Vec<String>) {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.cells.push(one_line(&cell));
        }
        debug_assert!(self.columns.iter().all(|column| column.cells.len() == self.rows + 1));
        self.rows += 1;
    }

    /// Appends the first rows of a batch.
    pub(crate) fn push_batch(
        &mut self,
        batch: &RecordBatch,
        rows_max: usize,
    ) -> Result<(), ArrowError> {
        let rows = batch.num_rows().min(rows_max);
        for (column, array) in self.columns.iter_mut().zip(batch.columns()) {
            let array = array.slice(0, rows);
            let nulls = array.logical_nulls();
            let formatter = text::formatter(array.as_ref(), "NULL")?;
            for row in 0..rows {
                column.cells.push(match &nulls {
                    Some(nulls) if nulls.is_null(row) => "NULL".to_owned(),
                    _ => one_line(&formatter.value(row).try_to_string()?),
                });
            }
        }
        self.rows += rows;
        Ok(())
    }

    /// Renders the table. Columns that don't fit in `width` are left out and listed below.
    pub(crate) fn render(&self, width: Option<usize>) -> String {
        let widths = self.widths(width);
        let shown = match width {
            Some(width) => fitting(&widths, width),
            None => widths.len(),
        };
        let mut text = String::new();
        let mut put = |cells: &mut dyn Iterator<Item = String>| {
            let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join(GAP).trim_end());
        };
        let columns = || self.columns.iter().zip(&widths).take(shown);
        put(&mut columns().map(|(column, width)| column.cell(&column.name, *width)));
        let lines = columns().map(|(_, width)| "─".repeat(*width)).collect::<Vec<_>>();
        put(&mut std::iter::once(lines.join("─┼─")));
        for row in 0..self.rows {
            put(&mut columns().map(|(column, width)| column.cell(&column.cells[row], *width)));
        }
        let hidden: Vec<_> =
            self.columns.iter().skip(shown).map(|column| column.name.as_str()).collect();
        if !hidden.is_empty() {
            let names = hidden.join(", ");
            let line = format!("… {} more columns: {names}", number::count(hidden.len() as u64));
            let _ = writeln!(text, "{}", truncate_str(&line, width.unwrap_or(usize::MAX), "…"));
        }
        text
    }

    fn widths(&self, width: Option<usize>) -> Vec<usize> {
        let most = self.column_width_max.min(width.unwrap_or(usize::MAX));
        let widest = |column: &Column| {
            let cells = column.cells.iter().map(|cell| measure_text_width(cell)).max().unwrap_or(0);
            cells.max(measure_text_width(&column.name)).min(most)
        };
        let mut widths: Vec<usize> = self.columns.iter().map(widest).collect();
        let gaps = GAP.chars().count() * widths.len().saturating_sub(1);
        let mut over = match width {
            Some(width) if self.shrinks => {
                (widths.iter().sum::<usize>() + gaps).saturating_sub(width)
            }
            _ => 0,
        };
        while over > 0 {
            let texts = widths
                .iter_mut()
                .zip(&self.columns)
                .filter(|(_, column)| column.alignment == Alignment::Left);
            let Some((widest, _)) = texts.max_by_key(|(width, _)| **width) else { break };
            if *widest <= SHRUNK_WIDTH_MIN {
                break;
            }
            (*widest, over) = (*widest - 1, over - 1);
        }
        widths
    }
}

impl Column {
    fn cell(&self, text: &str, width: usize) -> String {
        pad_str(&truncate_str(text, width, "…"), width, self.alignment, None).into_owned()
    }
}

/// The number of leading columns that fit, at least one.
fn fitting(widths: &[usize], width: usize) -> usize {
    let ends = widths.iter().scan(0, |end, width| {
        *end += width + GAP.chars().count();
        Some(*end)
    });
    ends.take_while(|end| end - GAP.chars().count() <= width).count().max(1)
}

/// Escapes control characters, which would break the table or control the terminal.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(VALUE_CHARS_MAX));
    for (i, c) in text.chars().enumerate() {
        match c {
            _ if i == VALUE_CHARS_MAX => {
                line.push('…');
                break;
            }
            _ if c.is_control() => line.extend(c.escape_default()),
            _ => line.push(c),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&[
            ("n", Alignment::Right),
            ("text", Alignment::Left),
            ("more", Alignment::Left),
        ]);
        table.push_row(vec!["1".into(), "a\nb\u{1b}[31m".into(), "x".into()]);
        table.push_row(vec!["20".into(), "日本".into(), "y".into()]);
        table
    }

    #[test]
    fn columns_are_aligned() {
        let expected = [
            " n │ text           │ more",
            "───┼────────────────┼─────",
            " 1 │ a\\nb\\u{1b}[31m │ x",
            "20 │ 日本           │ y",
            "",
        ];
        assert_eq!(table().render(None), expected.join("\n"));
    }

    #[test]
    fn text_gives_way_to_numbers() {
        let mut table =
            Table::new(&[("text", Alignment::Left), ("n", Alignment::Right)]).shrinking();
        table.push_row(vec!["a long text of a column".into(), "123456".into()]);
        let text = table.render(Some(20));
        assert_eq!(text.lines().last(), Some("a long tex… │ 123456"));
        assert!(text.lines().all(|line| measure_text_width(line) <= 20), "{text}");
        // At the minimum width, columns are left out.
        assert_eq!(table.render(Some(10)).lines().last(), Some("… 1 more …"));
    }

    #[test]
    fn hidden_columns_are_listed() {
        let text = table().render(Some(10));
        assert_eq!(text.lines().next(), Some(" n"));
        assert_eq!(text.lines().last(), Some("… 2 more …"));
    }
}
