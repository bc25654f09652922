//! The types of a CSV file's columns, inferred from all of its rows.
//!
//! A column has the narrowest type that represents each of its values exactly. A number with
//! leading zeros, as in postal codes, or a plus sign, as in phone numbers, an integer beyond 64
//! bits, more digits than a float keeps, or nanoseconds beside a date that they do not hold make
//! the column text.

use std::io::{BufReader, Read};
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, StringArray};
use datafusion::arrow::csv::ReaderBuilder;
use datafusion::arrow::csv::reader::Format;
use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::error::{DataFusionError, Result};

use super::dates::{TimestampForm, date, timestamp};
use super::empty_lines::EmptyLines;
use super::float_digits::keeps_digits;

/// Bytes of a file that are read at a time.
const BUFFER_BYTES: usize = 256 << 10;
/// A float represents every integer up to this one.
pub(super) const EXACT_FLOAT_MAX: u64 = 1 << 53;
const NANOSECONDS_OF_DAY: i64 = 86_400_000_000_000;

/// The columns of a file, and the kinds of their values.
#[derive(Debug, Clone)]
pub(super) struct CsvColumns {
    pub(super) names: Vec<String>,
    kinds: Vec<ValueKinds>,
    pub(super) rows: u64,
}

/// Reads the whole file, and calls `after_batch` after each batch. Columns without a name are named
/// by their position.
pub(super) fn infer<R: Read>(
    open: &dyn Fn() -> Result<R>,
    delimiter: u8,
    has_header: bool,
    after_batch: &dyn Fn(),
) -> Result<CsvColumns> {
    let format = Format::default().with_header(has_header).with_delimiter(delimiter);
    // Without a header, the first row determines the number of columns.
    let (header, _) = format.infer_schema(open()?, Some(usize::from(!has_header)))?;
    let names =
        header.fields().iter().enumerate().map(|(index, field)| match field.name().as_str() {
            name if has_header && !name.is_empty() => name.to_owned(),
            _ => format!("column_{}", index + 1),
        });
    let names: Vec<String> = names.collect();
    let text: Vec<Field> =
        names.iter().map(|name| Field::new(name, DataType::Utf8, true)).collect();
    let reader = ReaderBuilder::new(Arc::new(Schema::new(text)))
        .with_header(has_header)
        .with_delimiter(delimiter);
    let mut kinds = vec![ValueKinds::default(); names.len()];
    let mut rows = 0;
    let lines = BufReader::with_capacity(BUFFER_BYTES, open()?);
    let lines = EmptyLines::new(lines, names.len(), delimiter, has_header);
    for batch in reader.build_buffered(lines)? {
        let batch = batch?;
        after_batch();
        rows += batch.num_rows() as u64;
        for ((kinds, column), name) in kinds.iter_mut().zip(batch.columns()).zip(&names) {
            let values = column.as_string::<i32>();
            check_utf8(values, name)?;
            values.iter().flatten().for_each(|value| kinds.add(value));
        }
    }
    Ok(CsvColumns { names, kinds, rows })
}

impl CsvColumns {
    /// Adds the values of another file with the same columns.
    pub(super) fn merge(&mut self, other: &Self) {
        debug_assert_eq!(self.kinds.len(), other.kinds.len());
        for (kinds, other) in self.kinds.iter_mut().zip(&other.kinds) {
            kinds.merge(*other);
        }
    }

    /// The columns with the narrowest types for all values. Columns without values are text.
    pub(super) fn schema(&self) -> Schema {
        let fields =
            self.names.iter().zip(&self.kinds).map(|(name, kinds)| match kinds.data_type() {
                DataType::Null => Field::new(name, DataType::Utf8, true),
                data_type => Field::new(name, data_type, true),
            });
        Schema::new(fields.collect::<Vec<_>>())
    }
}

/// Checks that no value begins within a character. The reader has only checked that all values
/// together are UTF-8.
fn check_utf8(values: &StringArray, column: &str) -> Result<()> {
    let data = values.value_data();
    let is_within =
        |offset: &i32| data.get(*offset as usize).is_some_and(|byte| byte & 0xC0 == 0x80);
    match values.value_offsets().iter().any(is_within) {
        true => {
            Err(DataFusionError::Execution(format!("a value of column '{column}' is not UTF-8")))
        }
        false => Ok(()),
    }
}

/// The kinds of values that a column has.
#[derive(Debug, Clone, Copy, Default)]
struct ValueKinds {
    boolean: bool,
    integer: bool,
    /// An integer that a float would round.
    large_integer: bool,
    float: bool,
    date: bool,
    /// A date that nanoseconds do not hold.
    far_date: bool,
    timestamp: Option<TimeUnit>,
    /// Timestamps with a zone, and without.
    zoned: bool,
    zoneless: bool,
    text: bool,
}

impl ValueKinds {
    fn add(&mut self, value: &str) {
        if self.text || value.is_empty() {
            return;
        }
        let is_boolean = value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false");
        let is_no_finite_float = matches!(value, "NaN" | "nan" | "inf" | "-inf");
        self.boolean |= is_boolean;
        self.float |= is_no_finite_float;
        self.text =
            !(is_boolean || is_no_finite_float || self.add_number(value) || self.add_time(value));
    }

    fn merge(&mut self, other: Self) {
        let Self { boolean, integer, large_integer, float, date, timestamp, .. } = other;
        let Self { far_date, zoned, zoneless, text, .. } = other;
        self.boolean |= boolean;
        self.integer |= integer;
        self.large_integer |= large_integer;
        self.float |= float;
        self.date |= date;
        self.far_date |= far_date;
        self.timestamp = self.timestamp.max(timestamp);
        self.zoned |= zoned;
        self.zoneless |= zoneless;
        self.text |= text;
    }

    /// Whether the value is a number in the usual notation.
    fn add_number(&mut self, value: &str) -> bool {
        let digits = value.strip_prefix('-').unwrap_or(value);
        let (whole, rest) = digits.split_at(digits.bytes().take_while(u8::is_ascii_digit).count());
        // Neither `007` nor `+49` is text that a number would be printed as.
        if whole.len() > 1 && whole.starts_with('0') || value.starts_with('+') {
            return false;
        }
        if rest.is_empty() && value != "-0" {
            let Ok(integer) = value.parse::<i64>() else { return false };
            self.integer = true;
            self.large_integer |= integer.unsigned_abs() > EXACT_FLOAT_MAX;
            return true;
        }
        let is_plain =
            rest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
        let is_float =
            is_plain && value.parse::<f64>().is_ok_and(f64::is_finite) && keeps_digits(value);
        self.float |= is_float;
        is_float
    }

    /// Whether the value is a date, or a timestamp in the range of nanoseconds.
    fn add_time(&mut self, value: &str) -> bool {
        if let Some(days) = date(value) {
            self.date = true;
            self.far_date |= i64::from(days).checked_mul(NANOSECONDS_OF_DAY).is_none();
            return true;
        }
        let Some(TimestampForm { digits, is_zoned }) = timestamp(value) else { return false };
        let unit = match digits {
            0 => TimeUnit::Second,
            1..=3 => TimeUnit::Millisecond,
            4..=6 => TimeUnit::Microsecond,
            _ => TimeUnit::Nanosecond,
        };
        self.timestamp = self.timestamp.max(Some(unit));
        self.zoned |= is_zoned;
        self.zoneless |= !is_zoned;
        true
    }

    fn data_type(self) -> DataType {
        let Self { boolean, integer, large_integer, float, date, timestamp, .. } = self;
        let Self { far_date, zoned, zoneless, text, .. } = self;
        match (boolean, integer || float, date || timestamp.is_some()) {
            _ if text => DataType::Utf8,
            (false, false, false) => DataType::Null,
            (true, false, false) => DataType::Boolean,
            (false, true, false) if !float => DataType::Int64,
            (false, true, false) if !large_integer => DataType::Float64,
            (false, false, true) => match timestamp {
                None => DataType::Date32,
                Some(TimeUnit::Nanosecond) if far_date => DataType::Utf8,
                Some(unit) if !zoned => DataType::Timestamp(unit, None),
                // The instants are kept, the zones are not.
                Some(unit) if !zoneless && !date => DataType::Timestamp(unit, Some("UTC".into())),
                Some(_) => DataType::Utf8,
            },
            _ => DataType::Utf8,
        }
    }
}
