//! Checks that strings are UTF-8: a chunk has no others, and arrays rely on it.

use crate::column::{Batch, Column, Values, span, u32s};
use crate::error::{Error, Result, refuse};
use crate::types::{Field, Schema, Type};
use crate::vector::widest;

/// Bytes that are checked for ASCII at a time.
const ASCII_STEP: usize = 4096;

impl Batch {
    /// Checks that all strings of these columns are UTF-8, those of nested columns too. The batch
    /// must fit the schema, like one from a [`BatchBuilder`](crate::BatchBuilder).
    ///
    /// # Errors
    /// Of kind [`Utf8`](crate::ErrorKind::Utf8) when a string is not UTF-8; the error names its
    /// column. Also when a column does not have its type.
    pub fn check_strings(&self, schema: &Schema) -> Result<()> {
        if schema.fields.len() != self.columns.len() {
            refuse!(
                Unsupported,
                "{} columns for a schema of {}",
                self.columns.len(),
                schema.fields.len()
            );
        }
        schema.fields.iter().zip(&self.columns).try_for_each(|(field, column)| {
            check(&field.data_type, column, 0, self.rows).map_err(|error| {
                Error::new(error.kind(), format!("column {:?}: {error}", field.name))
            })
        })
    }
}

/// Checks the strings of the `rows` values from `from` on. A nested column whose values are not of
/// its type is refused, because its strings could not be checked.
fn check(data_type: &Type, column: &Column, from: usize, rows: usize) -> Result<()> {
    match (data_type, &column.values) {
        (Type::Utf8, Values::Bytes { offsets, data }) => {
            let (first, bytes) = span(offsets, from, rows);
            let Some(text) = data.get(first..first + bytes) else {
                refuse!(
                    Offsets,
                    "strings of {bytes} bytes from {first} on in data of {}",
                    data.len()
                );
            };
            // `first` came from a u32.
            check_utf8(
                text,
                u32s(&offsets[from * 4..(from + rows + 1) * 4]).map(|offset| offset - first as u32),
            )
        }
        (Type::Binary, Values::Bytes { .. }) => Ok(()),
        (Type::List(item), Values::List { offsets, child }) => {
            let (first, items) = span(offsets, from, rows);
            check(&item.data_type, child, first, items)
        }
        (Type::FixedList { item, .. }, Values::FixedList { size, child }) => {
            check(&item.data_type, child, from * size, rows * size)
        }
        (Type::Map { key, value, .. }, Values::List { offsets, child }) => match &child.values {
            Values::Struct(pair) => {
                let (first, items) = span(offsets, from, rows);
                check_fields([key.as_ref(), value.as_ref()].into_iter(), pair, first, items)
            }
            _ => refuse!(Unsupported, "a map that is not a list of pairs"),
        },
        (Type::Struct(fields), Values::Struct(children)) => {
            check_fields(fields.iter(), children, from, rows)
        }
        (Type::Dictionary { value, .. }, Values::Dictionary { entries, .. }) => {
            check(value, entries, 0, entries.rows)
        }
        (
            Type::Utf8
            | Type::Binary
            | Type::List(_)
            | Type::FixedList { .. }
            | Type::Map { .. }
            | Type::Struct(_)
            | Type::Dictionary { .. },
            _,
        ) => {
            refuse!(Unsupported, "values that are not of type {data_type:?}")
        }
        _ => Ok(()),
    }
}

fn check_fields<'a>(
    fields: impl ExactSizeIterator<Item = &'a Field>,
    children: &[Column],
    from: usize,
    rows: usize,
) -> Result<()> {
    if fields.len() != children.len() {
        refuse!(Unsupported, "a struct of {} fields, expected {}", children.len(), fields.len());
    }
    fields.zip(children).try_for_each(|(field, child)| check(&field.data_type, child, from, rows))
}

widest! {
    fn is_ascii[][](data: &[u8]) -> bool {
        data.chunks(ASCII_STEP).all(|step| step.iter().fold(0, |all, byte| all | byte) < 0x80)
    }
}

/// Checks that `data` is UTF-8 and that no offset points into the middle of a character.
pub(crate) fn check_utf8(data: &[u8], mut offsets: impl Iterator<Item = u32>) -> Result<()> {
    if is_ascii(data) {
        return Ok(());
    }
    let splits = |offset: u32| data.get(offset as usize).is_some_and(|byte| byte & 0xC0 == 0x80);
    if simdutf8::basic::from_utf8(data).is_err() || offsets.any(splits) {
        refuse!(Utf8, "a string is not UTF-8");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::BatchBuilder;
    use crate::error::ErrorKind;
    use crate::vector::tests::at_each_level;

    #[test]
    fn one_wrong_byte_is_found_at_every_level() {
        for n in [1, 2, 15, 64, 1000, 5000] {
            for wrong in [0, n / 2, n - 1] {
                let mut text = vec![b'a'; n];
                let valid = || at_each_level(|| check_utf8(&text, [].into_iter()).is_ok());
                assert!(valid().into_iter().all(|valid| valid), "{n}");
                text[wrong] = 0xFF;
                let valid = || at_each_level(|| check_utf8(&text, [].into_iter()).is_ok());
                assert!(valid().into_iter().all(|valid| !valid), "{wrong} of {n}");
            }
        }
    }

    fn field(data_type: Type) -> Field {
        Field { name: "f".into(), data_type, nullable: true, metadata: Vec::new() }
    }

    /// Rows of a string, a list of it, and a map to it.
    fn built(strings: &[&[u8]]) -> (Schema, Batch) {
        let text = || Box::new(field(Type::Utf8));
        let map = Type::Map { sorted: false, key: text(), value: text() };
        let schema =
            Schema { fields: vec![field(Type::Utf8), field(Type::List(text())), field(map)] };
        let mut builder = BatchBuilder::new(schema.clone()).unwrap();
        for string in strings {
            let [plain, list, map] = builder.columns() else { panic!("three columns") };
            plain.push_bytes(string).unwrap();
            list.item().unwrap().push_bytes(string).unwrap();
            list.close_list().unwrap();
            let pair = map.item().unwrap();
            pair.fields().unwrap()[0].push_bytes(b"k").unwrap();
            pair.fields().unwrap()[1].push_bytes(string).unwrap();
            pair.close_struct().unwrap();
            map.close_list().unwrap();
            builder.close_row().unwrap();
        }
        (schema, builder.finish().unwrap().into_batch())
    }

    #[test]
    fn nested_strings_are_checked_within_the_rows() {
        // The second character of two bytes is cut where the fourth row begins.
        let (schema, batch) = built(&[b"a", b"\xc3\xa9", b"b\xc3", b"\xa9", b"c", b"\xff", b"d"]);
        let alone = |at: usize| {
            (Schema { fields: vec![schema.fields[at].clone()] }, batch.columns[at].clone())
        };
        for (schema, column) in (0..3).map(alone) {
            for from in 0..batch.rows {
                for rows in 0..=batch.rows - from {
                    let checked = Batch { rows, columns: vec![column.slice(from, rows)] }
                        .check_strings(&schema);
                    let expected = (from..from + rows).all(|row| !matches!(row, 2 | 3 | 5));
                    assert_eq!(checked.is_ok(), expected, "{from} {rows}");
                    assert!(checked.err().is_none_or(|error| error.kind() == ErrorKind::Utf8));
                }
            }
        }
    }

    #[test]
    fn strings_under_another_type_are_refused() {
        let (_, batch) = built(&[b"v"]);
        let list = Type::List(Box::new(field(Type::Utf8)));
        for other in [Type::Utf8, Type::Struct(Vec::new()), list] {
            assert_eq!(
                check(&other, &batch.columns[2], 0, 1).unwrap_err().kind(),
                ErrorKind::Unsupported
            );
        }
    }
}
