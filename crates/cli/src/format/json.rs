//! NDJSON: one object per line, with explicit NULLs, and decimals as numbers with all digits.
//!
//! Values that JSON can't represent are strings, as in PostgreSQL: NaN and the infinities are
//! `"NaN"`, `"Infinity"` and `"-Infinity"`, and the keys of maps are strings whatever their type.
//! Duplicate names are an error, since readers would drop values.

use std::collections::HashSet;
use std::io::{BufWriter, Write};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::cast::AsArray;
use arrow::array::{Array, Float64Array, MapArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Fields, Schema};
use arrow::error::ArrowError;
use arrow::json::LineDelimitedWriter;
use arrow::json::writer::{
    Encoder, EncoderFactory, EncoderOptions, NullableEncoder, WriterBuilder, make_encoder,
};
use arrow::util::display::ArrayFormatter;

use super::{Sink, WriteError, text};

pub(super) struct JsonSink<W: Write> {
    writer: LineDelimitedWriter<BufWriter<W>>,
    problem: FirstProblem,
}

/// The first problem with a value. Arrow's encoders can't return errors.
type FirstProblem = Arc<Mutex<Option<String>>>;

impl<W: Write> JsonSink<W> {
    pub(super) fn start(out: BufWriter<W>, schema: &Schema) -> Result<Self, WriteError> {
        if let Some(name) = repeated(schema.fields()) {
            return Err(format!("two columns are called {name:?} (name one with AS)").into());
        }
        schema.fields().iter().try_for_each(|field| check(field.name(), field.data_type()))?;
        let problem = FirstProblem::default();
        let builder = WriterBuilder::new().with_explicit_nulls(true);
        let writer = builder.with_encoder_factory(Arc::new(Exact(problem.clone()))).build(out);
        Ok(Self { writer, problem })
    }
}

impl<W: Write> Sink for JsonSink<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), WriteError> {
        self.writer.write(batch)?;
        match self.problem.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(problem) => Err(problem.into()),
            None => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>) -> Result<(), WriteError> {
        self.writer.finish()?;
        Ok(self.writer.into_inner().flush()?)
    }
}

/// Fails if JSON can't represent a type, or a type within it.
fn check(column: &str, data_type: &DataType) -> Result<(), WriteError> {
    use DataType::*;
    match data_type {
        Struct(fields) => {
            if let Some(name) = repeated(fields) {
                return Err(format!(
                    "column {column:?} has two fields called {name:?} (select its parts)"
                )
                .into());
            }
            fields.iter().try_for_each(|field| check(column, field.data_type()))
        }
        Map(entries, _) => match entries.data_type() {
            Struct(fields) => match fields.first() {
                Some(key) if key.data_type().is_nested() => {
                    let what =
                        format!("column {column:?} is a map whose keys are {}", key.data_type());
                    Err(format!("{what}, which JSON has no way to write (use arrow or parquet)")
                        .into())
                }
                _ => fields.iter().try_for_each(|field| check(column, field.data_type())),
            },
            _ => Ok(()),
        },
        Union(..) => {
            let what = format!("column {column:?} is a union, which JSON has no way to write");
            Err(format!("{what} (use arrow, or select its parts)").into())
        }
        List(item)
        | LargeList(item)
        | ListView(item)
        | LargeListView(item)
        | FixedSizeList(item, _) => check(column, item.data_type()),
        RunEndEncoded(_, values) => check(column, values.data_type()),
        Dictionary(_, values) => check(column, values),
        _ => Ok(()),
    }
}

fn repeated(fields: &Fields) -> Option<&str> {
    let mut names = HashSet::new();
    fields.iter().find(|field| !names.insert(field.name())).map(|field| field.name().as_str())
}

/// Encoders for types that Arrow's encoders write wrong.
#[derive(Debug)]
struct Exact(FirstProblem);

impl EncoderFactory for Exact {
    fn make_default_encoder<'a>(
        &self,
        field: &'a FieldRef,
        array: &'a dyn Array,
        options: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let encoder: Box<dyn Encoder + 'a> = match array.data_type() {
            data_type if text::is_printed_here(data_type) => Box::new(Printed {
                formatter: text::formatter(array, "")?,
                quoted: !data_type.is_decimal(),
            }),
            DataType::Float16 | DataType::Float32 | DataType::Float64 => Box::new(Floats {
                values: as_float64(array)?,
                finite: make_encoder(field, array, &PLAIN)?,
            }),
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let values = dictionary.values();
                // `normalized_keys` fails on an empty dictionary.
                let keys =
                    if values.is_empty() { Vec::new() } else { dictionary.normalized_keys() };
                Box::new(DictionaryValues {
                    keys,
                    values: make_encoder(field, values.as_ref(), options)?,
                })
            }
            DataType::Map(..) => {
                Box::new(Maps::new(field, array.as_map(), options, self.0.clone())?)
            }
            _ => return Ok(None),
        };
        // Logical nulls include those of a dictionary's values.
        Ok(Some(NullableEncoder::new(encoder, array.logical_nulls())))
    }
}

static PLAIN: std::sync::LazyLock<EncoderOptions> =
    std::sync::LazyLock::new(EncoderOptions::default);

/// Formatted values, which never need escapes.
struct Printed<'a> {
    formatter: ArrayFormatter<'a>,
    quoted: bool,
}

impl Encoder for Printed<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let quote: &[u8] = if self.quoted { b"\"" } else { b"" };
        out.extend_from_slice(quote);
        // Writing to memory can't fail, and neither can these formatters.
        let _ = write!(out, "{}", self.formatter.value(row));
        out.extend_from_slice(quote);
    }
}

struct Floats<'a> {
    values: Float64Array,
    finite: NullableEncoder<'a>,
}

impl Encoder for Floats<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        match self.values.value(row) {
            value if value.is_finite() => self.finite.encode(row, out),
            value if value.is_nan() => out.extend_from_slice(b"\"NaN\""),
            value if value > 0.0 => out.extend_from_slice(b"\"Infinity\""),
            _ => out.extend_from_slice(b"\"-Infinity\""),
        }
    }
}

fn as_float64(array: &dyn Array) -> Result<Float64Array, ArrowError> {
    Ok(cast(array, &DataType::Float64)?.as_primitive().clone())
}

struct DictionaryValues<'a> {
    keys: Vec<usize>,
    values: NullableEncoder<'a>,
}

impl Encoder for DictionaryValues<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        if let Some(key) = self.keys.get(row) {
            self.values.encode(*key, out);
        }
    }
}

struct Maps<'a> {
    map: &'a MapArray,
    keys: ArrayFormatter<'a>,
    values: NullableEncoder<'a>,
    problem: FirstProblem,
}

impl<'a> Maps<'a> {
    fn new(
        field: &'a FieldRef,
        map: &'a MapArray,
        options: &'a EncoderOptions,
        problem: FirstProblem,
    ) -> Result<Self, ArrowError> {
        if map.keys().logical_null_count() > 0 || map.entries().logical_null_count() > 0 {
            return Err(ArrowError::JsonError(format!(
                "column {:?} has a map with a missing key",
                field.name()
            )));
        }
        let keys = text::formatter(map.keys().as_ref(), "")?;
        Ok(Self {
            map,
            keys,
            values: make_encoder(field, map.values().as_ref(), options)?,
            problem,
        })
    }
}

impl Encoder for Maps<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let offsets = self.map.value_offsets();
        // Offsets are not negative.
        let at = |row: usize| usize::try_from(offsets[row]).unwrap_or_default();
        let mut names = HashSet::new();
        out.push(b'{');
        for entry in at(row)..at(row + 1) {
            if !names.is_empty() {
                out.push(b',');
            }
            let name = self.keys.value(entry).to_string();
            // Writing to memory can't fail.
            let _ = serde_json::to_writer(&mut *out, &name);
            out.push(b':');
            match self.values.is_null(entry) {
                true => out.extend_from_slice(b"null"),
                false => self.values.encode(entry, out),
            }
            if let Some(name) = names.replace(name) {
                let mut problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
                problem.get_or_insert_with(|| {
                    format!("a map has two values for {name:?} (use arrow or parquet)")
                });
            }
        }
        out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        ArrayRef, DictionaryArray, Float16Array, Float32Array, Int8Array, StringArray,
    };
    use arrow::array::{Date32Array, Decimal128Array, Int32Array, MapBuilder, StringBuilder};
    use arrow::array::{Int32Builder, TimestampSecondArray};

    use super::super::tests::encode;
    use super::super::{Format, WriteError};
    use super::*;

    fn json(columns: Vec<(&str, ArrayRef)>) -> Result<String, WriteError> {
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(n, a)| (n, a, true)),
        )?;
        Ok(String::from_utf8(encode(Format::Json, &[batch])?)?)
    }

    #[test]
    fn values_without_json_numbers() {
        let halves = [Some(1.5), Some(f32::NAN), None].map(|value| value.map(cast_half));
        let floats: Vec<(&str, ArrayRef)> = vec![
            ("f", Arc::new(Float64Array::from(vec![Some(f64::INFINITY), Some(1e300), None]))),
            (
                "g",
                Arc::new(Float32Array::from(vec![
                    Some(f32::NEG_INFINITY),
                    Some(0.1),
                    Some(f32::NAN),
                ])),
            ),
            ("h", Arc::new(Float16Array::from(halves.to_vec()))),
        ];
        let expected = "{\"f\":\"Infinity\",\"g\":\"-Infinity\",\"h\":1.5}
{\"f\":1.0e300,\"g\":0.1,\"h\":\"NaN\"}
{\"f\":null,\"g\":\"NaN\",\"h\":null}
";
        assert_eq!(json(floats).unwrap(), expected);
    }

    fn cast_half(
        value: f32,
    ) -> <arrow::datatypes::Float16Type as arrow::array::ArrowPrimitiveType>::Native {
        let one: ArrayRef = Arc::new(Float32Array::from(vec![value]));
        cast(&one, &DataType::Float16)
            .unwrap()
            .as_primitive::<arrow::datatypes::Float16Type>()
            .value(0)
    }

    #[test]
    fn far_dates_and_decimals_of_negative_scale() {
        let decimals = Decimal128Array::from(vec![0, -7]).with_precision_and_scale(5, -3).unwrap();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("d", Arc::new(Date32Array::from(vec![i32::MAX, 0]))),
            ("t", Arc::new(TimestampSecondArray::from(vec![i64::MAX, 0]).with_timezone("+01:00"))),
            ("n", Arc::new(decimals)),
        ];
        let expected = "{\"d\":\"+5881580-07-11\",\"t\":\"+292277026596-12-04T15:30:07Z\",\"n\":0}
{\"d\":\"1970-01-01\",\"t\":\"1970-01-01T01:00:00+01:00\",\"n\":-7000}
";
        assert_eq!(json(columns).unwrap(), expected);
    }

    #[test]
    fn a_null_in_a_dictionary_is_null() {
        let words: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
        let keys = Int8Array::from(vec![Some(0), Some(1), None]);
        let words: ArrayRef = Arc::new(DictionaryArray::new(keys, words));
        assert_eq!(
            json(vec![("w", words)]).unwrap(),
            "{\"w\":\"a\"}\n{\"w\":null}\n{\"w\":null}\n"
        );
        let none: ArrayRef = Arc::new(StringArray::from(Vec::<&str>::new()));
        let none: ArrayRef = Arc::new(DictionaryArray::new(Int8Array::from(vec![None]), none));
        assert_eq!(json(vec![("w", none)]).unwrap(), "{\"w\":null}\n");
    }

    #[test]
    fn keys_of_maps_are_text_and_differ() {
        let mut maps = MapBuilder::new(None, Int32Builder::new(), StringBuilder::new());
        maps.keys().append_slice(&[1, 2]);
        maps.values().append_value("a\"b");
        maps.values().append_null();
        maps.append(true).unwrap();
        maps.append(false).unwrap();
        let good = maps.finish();
        assert_eq!(
            json(vec![("m", Arc::new(good))]).unwrap(),
            "{\"m\":{\"1\":\"a\\\"b\",\"2\":null}}\n{\"m\":null}\n"
        );
        maps.keys().append_slice(&[1, 1]);
        maps.values().append_value("a");
        maps.values().append_value("b");
        maps.append(true).unwrap();
        let error = json(vec![("m", Arc::new(maps.finish()))]).unwrap_err().to_string();
        assert_eq!(error, "a map has two values for \"1\" (use arrow or parquet)");
    }

    #[test]
    fn duplicate_names_are_refused() {
        let number: ArrayRef = Arc::new(Int32Array::from(vec![1]));
        let field =
            |name: &str| Arc::new(arrow::datatypes::Field::new(name, DataType::Int32, true));
        let twice = arrow::array::StructArray::from(vec![
            (field("a"), number.clone()),
            (field("a"), number.clone()),
        ]);
        let error = json(vec![("s", Arc::new(twice))]).unwrap_err().to_string();
        assert_eq!(error, "column \"s\" has two fields called \"a\" (select its parts)");
        assert!(json(vec![("n", number.clone()), ("n", number)]).is_err());
    }
}
