//! Between [`Column`]s and Arrow arrays. Both have the same layout, so both directions share the
//! buffers.

#![allow(
    unsafe_code,
    reason = "arrays are built from columns that were checked when they were read"
)]

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, make_array, new_null_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::{ArrayData, ArrayDataBuilder};
use arrow_schema::{DataType, Fields, IntervalUnit, SchemaRef, TimeUnit};
use bytes::Bytes;

use crate::build::Built;
use crate::column::{Batch, Bitmap, Column, Values};
use crate::error::{Error, ErrorKind, Result, refuse};
use crate::header::{Header, Limits};
pub use crate::held::Held;
use crate::read::{Profile, Tables, decode, read_with};
use crate::room::Memory;
use crate::types::{Field, Schema, Type, Unit};

/// How a reader wants to hold strings and binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StringLayout {
    /// `Utf8` and `Binary`: 32-bit offsets, as the chunk has them.
    #[default]
    Offsets,
    /// `LargeUtf8` and `LargeBinary`: 64-bit offsets.
    LargeOffsets,
    /// `Utf8View` and `BinaryView`.
    Views,
}

/// The Arrow schema of a stream.
pub fn schema_to_arrow(schema: &Schema, strings: StringLayout) -> arrow_schema::Schema {
    arrow_schema::Schema::new(
        schema.fields.iter().map(|field| field_to_arrow(field, strings)).collect::<Fields>(),
    )
}

fn field_to_arrow(field: &Field, strings: StringLayout) -> arrow_schema::Field {
    let ordered = matches!(field.data_type, Type::Dictionary { ordered: true, .. });
    arrow_schema::Field::new(&field.name, type_to_arrow(&field.data_type, strings), field.nullable)
        .with_dict_is_ordered(ordered)
        .with_metadata(field.metadata.iter().cloned().collect())
}

fn type_to_arrow(data_type: &Type, strings: StringLayout) -> DataType {
    let item = |field: &Field| Arc::new(field_to_arrow(field, strings));
    match data_type {
        Type::Null => DataType::Null,
        Type::Boolean => DataType::Boolean,
        Type::Int8 => DataType::Int8,
        Type::Int16 => DataType::Int16,
        Type::Int32 => DataType::Int32,
        Type::Int64 => DataType::Int64,
        Type::UInt8 => DataType::UInt8,
        Type::UInt16 => DataType::UInt16,
        Type::UInt32 => DataType::UInt32,
        Type::UInt64 => DataType::UInt64,
        Type::Float16 => DataType::Float16,
        Type::Float32 => DataType::Float32,
        Type::Float64 => DataType::Float64,
        Type::Decimal32 { precision, scale } => DataType::Decimal32(*precision, *scale),
        Type::Decimal64 { precision, scale } => DataType::Decimal64(*precision, *scale),
        Type::Decimal128 { precision, scale } => DataType::Decimal128(*precision, *scale),
        Type::Decimal256 { precision, scale } => DataType::Decimal256(*precision, *scale),
        Type::Date32 => DataType::Date32,
        Type::Date64 => DataType::Date64,
        Type::Time32(unit) => DataType::Time32(unit_to_arrow(*unit)),
        Type::Time64(unit) => DataType::Time64(unit_to_arrow(*unit)),
        Type::Timestamp { unit, zone } => {
            DataType::Timestamp(unit_to_arrow(*unit), zone.as_deref().map(Arc::from))
        }
        Type::Duration(unit) => DataType::Duration(unit_to_arrow(*unit)),
        Type::IntervalMonths => DataType::Interval(IntervalUnit::YearMonth),
        Type::IntervalDayTime => DataType::Interval(IntervalUnit::DayTime),
        Type::IntervalMonthDayNano => DataType::Interval(IntervalUnit::MonthDayNano),
        Type::Utf8 => match strings {
            StringLayout::Offsets => DataType::Utf8,
            StringLayout::LargeOffsets => DataType::LargeUtf8,
            StringLayout::Views => DataType::Utf8View,
        },
        Type::Binary => match strings {
            StringLayout::Offsets => DataType::Binary,
            StringLayout::LargeOffsets => DataType::LargeBinary,
            StringLayout::Views => DataType::BinaryView,
        },
        // Widths and sizes are below 2^31: types.md section 2.
        Type::FixedBinary(width) => DataType::FixedSizeBinary(*width as i32),
        Type::List(field) => DataType::List(item(field)),
        Type::FixedList { size, item: field } => DataType::FixedSizeList(item(field), *size as i32),
        Type::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| field_to_arrow(field, strings)).collect())
        }
        Type::Map { sorted, key, value } => {
            let entries = DataType::Struct(Fields::from(vec![item(key), item(value)]));
            DataType::Map(Arc::new(arrow_schema::Field::new("entries", entries, false)), *sorted)
        }
        Type::Dictionary { index, value, .. } => DataType::Dictionary(
            Box::new(type_to_arrow(index, strings)),
            Box::new(type_to_arrow(value, strings)),
        ),
    }
}

fn unit_to_arrow(unit: Unit) -> TimeUnit {
    match unit {
        Unit::Second => TimeUnit::Second,
        Unit::Millisecond => TimeUnit::Millisecond,
        Unit::Microsecond => TimeUnit::Microsecond,
        Unit::Nanosecond => TimeUnit::Nanosecond,
    }
}

/// The schema of a stream whose batches have this Arrow schema.
///
/// # Errors
/// When a column has a type that types.md does not carry; the error names the column.
pub fn schema_from_arrow(schema: &arrow_schema::Schema) -> Result<Schema> {
    Ok(Schema {
        fields: schema
            .fields()
            .iter()
            .map(|field| field_from_arrow(field))
            .collect::<Result<_>>()?,
    })
}

fn field_from_arrow(field: &arrow_schema::Field) -> Result<Field> {
    let mut data_type = type_from_arrow(field.data_type())
        .map_err(|error| Error::new(error.kind(), format!("column {:?}: {error}", field.name())))?;
    // Arrow has this at the field.
    if let Type::Dictionary { ordered, .. } = &mut data_type {
        *ordered = field.dict_is_ordered() == Some(true);
    }
    let mut metadata: Vec<_> =
        field.metadata().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    metadata.sort();
    Ok(Field { name: field.name().clone(), data_type, nullable: field.is_nullable(), metadata })
}

fn type_from_arrow(data_type: &DataType) -> Result<Type> {
    let item = |field: &arrow_schema::Field| field_from_arrow(field).map(Box::new);
    Ok(match data_type {
        DataType::Null => Type::Null,
        DataType::Boolean => Type::Boolean,
        DataType::Int8 => Type::Int8,
        DataType::Int16 => Type::Int16,
        DataType::Int32 => Type::Int32,
        DataType::Int64 => Type::Int64,
        DataType::UInt8 => Type::UInt8,
        DataType::UInt16 => Type::UInt16,
        DataType::UInt32 => Type::UInt32,
        DataType::UInt64 => Type::UInt64,
        DataType::Float16 => Type::Float16,
        DataType::Float32 => Type::Float32,
        DataType::Float64 => Type::Float64,
        DataType::Decimal32(precision, scale) => {
            Type::Decimal32 { precision: *precision, scale: *scale }
        }
        DataType::Decimal64(precision, scale) => {
            Type::Decimal64 { precision: *precision, scale: *scale }
        }
        DataType::Decimal128(precision, scale) => {
            Type::Decimal128 { precision: *precision, scale: *scale }
        }
        DataType::Decimal256(precision, scale) => {
            Type::Decimal256 { precision: *precision, scale: *scale }
        }
        DataType::Date32 => Type::Date32,
        DataType::Date64 => Type::Date64,
        DataType::Time32(unit) => Type::Time32(unit_from_arrow(unit)),
        DataType::Time64(unit) => Type::Time64(unit_from_arrow(unit)),
        DataType::Timestamp(unit, zone) => Type::Timestamp {
            unit: unit_from_arrow(unit),
            zone: zone.as_deref().filter(|zone| !zone.is_empty()).map(str::to_owned),
        },
        DataType::Duration(unit) => Type::Duration(unit_from_arrow(unit)),
        DataType::Interval(IntervalUnit::YearMonth) => Type::IntervalMonths,
        DataType::Interval(IntervalUnit::DayTime) => Type::IntervalDayTime,
        DataType::Interval(IntervalUnit::MonthDayNano) => Type::IntervalMonthDayNano,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Type::Utf8,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Type::Binary,
        DataType::FixedSizeBinary(width) => match u32::try_from(*width) {
            Ok(width @ 1..=crate::types::FIXED_BINARY_MAX) => Type::FixedBinary(width),
            _ => refuse!(Unsupported, "a fixed-size binary of width {width}"),
        },
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field) => Type::List(item(field)?),
        DataType::FixedSizeList(field, size) => match u32::try_from(*size) {
            Ok(size) => Type::FixedList { size, item: item(field)? },
            Err(_) => refuse!(Unsupported, "a fixed-size list of {size} items"),
        },
        DataType::Struct(fields) => {
            Type::Struct(fields.iter().map(|field| field_from_arrow(field)).collect::<Result<_>>()?)
        }
        DataType::Map(entries, sorted) => {
            let DataType::Struct(fields) = entries.data_type() else {
                refuse!(Unsupported, "a map without entries")
            };
            let [key, value] = &fields[..] else {
                refuse!(Unsupported, "a map of {} fields", fields.len())
            };
            let key = Field { nullable: false, ..field_from_arrow(key)? };
            Type::Map { sorted: *sorted, key: Box::new(key), value: item(value)? }
        }
        DataType::Dictionary(index, value) => match type_from_arrow(value)? {
            Type::Dictionary { .. } => refuse!(Unsupported, "a dictionary of a dictionary"),
            value => Type::Dictionary {
                index: Box::new(type_from_arrow(index)?),
                ordered: false,
                value: Box::new(value),
            },
        },
        DataType::RunEndEncoded(_, values) => type_from_arrow(values.data_type())?,
        DataType::Union(..) => {
            refuse!(Unsupported, "a union can't be sent; select its fields one by one")
        }
    })
}

fn unit_from_arrow(unit: &TimeUnit) -> Unit {
    match unit {
        TimeUnit::Second => Unit::Second,
        TimeUnit::Millisecond => Unit::Millisecond,
        TimeUnit::Microsecond => Unit::Microsecond,
        TimeUnit::Nanosecond => Unit::Nanosecond,
    }
}

/// A batch that shares the buffers of a record batch. Views and 64-bit offsets are rewritten.
///
/// # Errors
/// When a column's strings have more than 2³¹ bytes (kind limit: try fewer rows), or its type is
/// not carried.
pub fn batch_from_arrow(batch: &RecordBatch) -> Result<Batch> {
    let columns = batch.columns().iter().map(column_from_arrow).collect::<Result<_>>()?;
    Ok(Batch { rows: batch.num_rows(), columns })
}

/// A column that shares the buffers of an array, as in [`batch_from_arrow`].
///
/// # Errors
/// As there.
pub fn column_from_arrow(array: &ArrayRef) -> Result<Column> {
    let Some(plain) = plain_type(array.data_type()) else {
        return column_from_data(&array.to_data());
    };
    match arrow_cast::cast(array, &plain) {
        Ok(array) => column_from_arrow(&array),
        Err(error) => {
            refuse!(Limit, "{} rows of {} are too large: {error}", array.len(), array.data_type())
        }
    }
}

/// What arrays of a type are rewritten to whose buffers can't be shared.
pub(crate) fn plain_type(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::LargeUtf8 | DataType::Utf8View => Some(DataType::Utf8),
        DataType::LargeBinary | DataType::BinaryView => Some(DataType::Binary),
        DataType::LargeList(field) | DataType::ListView(field) | DataType::LargeListView(field) => {
            Some(DataType::List(field.clone()))
        }
        DataType::RunEndEncoded(_, values) => Some(values.data_type().clone()),
        _ => None,
    }
}

/// An Arrow buffer as the owner of bytes.
struct Owner(Buffer);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

fn shared(buffer: &Buffer) -> Bytes {
    Bytes::from_owner(Owner(buffer.clone()))
}

fn column_from_data(data: &ArrayData) -> Result<Column> {
    let (rows, from) = (data.len(), data.offset());
    let bytes = |i: usize| shared(&data.buffers()[i]);
    let child =
        |i: usize| column_from_arrow(&make_array(data.child_data()[i].clone())).map(Box::new);
    let offsets = || match data.buffers()[0].is_empty() {
        // Arrow allows an array of no values to have no offsets.
        true => Bytes::from_static(&[0; 4]),
        false => bytes(0).slice(from * 4..(from + rows + 1) * 4),
    };
    let values = match data.data_type() {
        DataType::Null => Values::Null,
        DataType::Boolean => Values::Boolean(Bitmap { bytes: bytes(0), offset: from, len: rows }),
        DataType::Utf8 | DataType::Binary => Values::Bytes { offsets: offsets(), data: bytes(1) },
        DataType::List(_) | DataType::Map(..) => {
            Values::List { offsets: offsets(), child: child(0)? }
        }
        DataType::FixedSizeList(_, size) => {
            let size = usize::try_from(*size).unwrap_or(0);
            Values::FixedList { size, child: Box::new(child(0)?.slice(from * size, rows * size)) }
        }
        DataType::Struct(_) => {
            let children = (0..data.child_data().len()).map(|i| Ok(child(i)?.slice(from, rows)));
            Values::Struct(children.collect::<Result<_>>()?)
        }
        DataType::Dictionary(index, _) => {
            let width = index.primitive_width().unwrap_or(0);
            Values::Dictionary {
                width,
                indexes: bytes(0).slice(from * width..(from + rows) * width),
                entries: child(0)?,
            }
        }
        fixed => {
            let width = match fixed {
                DataType::FixedSizeBinary(width) => usize::try_from(*width).ok(),
                _ => fixed.primitive_width(),
            };
            let Some(width) = width else { refuse!(Unsupported, "arrays of type {fixed}") };
            Values::Fixed { width, bytes: bytes(0).slice(from * width..(from + rows) * width) }
        }
    };
    let validity = data.nulls().filter(|nulls| nulls.null_count() > 0).map(|nulls| Bitmap {
        bytes: shared(nulls.buffer()),
        offset: nulls.offset(),
        len: rows,
    });
    Ok(Column { rows, validity, values })
}

/// Reads the chunks of one stream into record batches that share the chunks' buffers.
///
/// It is the only way from chunks to Arrow: arrays are built unchecked from columns that [`decode`]
/// has just checked against the stream's schema, or that a [`crate::BatchBuilder`] made to fit it,
/// and the Arrow schema is made from that same schema.
#[derive(Debug, Clone)]
pub struct Decoder {
    schema: Arc<Schema>,
    arrow_schema: SchemaRef,
}

impl Decoder {
    /// A decoder for a stream of this schema, with strings held as asked.
    pub fn new(schema: impl Into<Arc<Schema>>, strings: StringLayout) -> Self {
        let schema = schema.into();
        let arrow_schema = Arc::new(schema_to_arrow(&schema, strings));
        Self { schema, arrow_schema }
    }

    /// Whether it is for streams of this schema.
    pub fn is_for(&self, schema: &Arc<Schema>) -> bool {
        Arc::ptr_eq(&self.schema, schema) || self.schema == *schema
    }

    /// The Arrow schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.arrow_schema
    }

    /// As [`crate::decode`], into Arrow.
    ///
    /// # Errors
    /// As there, and when strings are too long for the layout that was asked for.
    pub fn decode(
        &self,
        header: &Header,
        descriptors: &[u8],
        body: &Bytes,
        tables: &Tables,
        memory: Option<&mut dyn Memory>,
        profile: Option<&mut Profile>,
    ) -> Result<RecordBatch> {
        self.batch(decode(header, &self.schema, descriptors, body, tables, memory, profile)?)
    }

    /// As [`crate::read`], into Arrow.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn read(&self, chunk: &Bytes, limits: &Limits) -> Result<(Header, RecordBatch)> {
        self.read_with(chunk, limits, &Tables::default())
    }

    /// As [`crate::read_with`], into Arrow.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn read_with(
        &self,
        chunk: &Bytes,
        limits: &Limits,
        tables: &Tables,
    ) -> Result<(Header, RecordBatch)> {
        let (header, batch) = read_with(chunk, &self.schema, limits, tables)?;
        Ok((header, self.batch(batch)?))
    }

    /// Rows that were built, into Arrow.
    ///
    /// # Errors
    /// When they are of another schema, a string is not UTF-8, or strings are too long for the
    /// layout that was asked for.
    pub fn built(&self, built: Built) -> Result<RecordBatch> {
        if !self.is_for(built.schema()) {
            refuse!(Unsupported, "the batch was built with another schema");
        }
        built.batch().check_strings(&self.schema)?;
        self.batch(built.into_batch())
    }

    fn batch(&self, batch: Batch) -> Result<RecordBatch> {
        let columns = batch.columns.into_iter().zip(self.arrow_schema.fields());
        let array = |(column, field): (Column, &arrow_schema::FieldRef)| {
            array(column, field.data_type(), Checks::Done)
        };
        record_batch(&self.arrow_schema, batch.rows, columns.map(array).collect::<Result<_>>()?)
    }
}

/// A record batch of this Arrow schema from columns that anybody may have made: whatever Arrow
/// relies on is checked first.
///
/// # Errors
/// When the columns do not fit the schema, or strings are too long for its types.
pub fn batch_to_arrow(batch: Batch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.columns.len() != schema.fields().len() {
        refuse!(
            Unsupported,
            "{} columns for a schema of {}",
            batch.columns.len(),
            schema.fields().len()
        );
    }
    let columns = batch.columns.into_iter().zip(schema.fields());
    let array = |(column, field): (Column, &arrow_schema::FieldRef)| {
        cast(array(column, &plain(field.data_type()), Checks::Needed)?, field.data_type())
    };
    record_batch(schema, batch.rows, columns.map(array).collect::<Result<_>>()?)
}

fn record_batch(schema: &SchemaRef, rows: usize, arrays: Vec<ArrayRef>) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), arrays, &options).map_err(|error| {
        Error::new(ErrorKind::Unsupported, format!("the batch does not fit its schema: {error}"))
    })
}

/// Whether somebody has checked what arrays rely on.
#[derive(Debug, Clone, Copy)]
enum Checks {
    Done,
    Needed,
}

fn array(column: Column, data_type: &DataType, checks: Checks) -> Result<ArrayRef> {
    let plain = match data_type {
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        _ => return Ok(make_array(data(column, data_type, checks)?)),
    };
    cast(make_array(data(column, &plain, checks)?), data_type)
}

/// The type of the same values without wide offsets, views and runs of lists; those of strings
/// stay.
fn plain(data_type: &DataType) -> DataType {
    let item = |field: &arrow_schema::FieldRef| {
        Arc::new(field.as_ref().clone().with_data_type(plain(field.data_type())))
    };
    match data_type {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field) => DataType::List(item(field)),
        DataType::FixedSizeList(field, size) => DataType::FixedSizeList(item(field), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(item).collect()),
        DataType::Map(entries, sorted) => DataType::Map(item(entries), *sorted),
        DataType::Dictionary(index, value) => {
            DataType::Dictionary(index.clone(), Box::new(plain(value)))
        }
        DataType::RunEndEncoded(_, values) => plain(values.data_type()),
        other => other.clone(),
    }
}

/// The same values as another type that Dray doesn't tell from theirs.
fn cast(array: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if array.data_type() == data_type {
        return Ok(array);
    }
    arrow_cast::cast(&array, data_type).map_err(|error| {
        Error::new(ErrorKind::Unsupported, format!("{} as {data_type}: {error}", array.data_type()))
    })
}

fn bits_to_arrow(bits: Bitmap) -> Result<BooleanBuffer> {
    let Bitmap { bytes, offset, len } = bits;
    if offset.checked_add(len).is_none_or(|end| end.div_ceil(8) > bytes.len()) {
        refuse!(Length, "{} bytes of a bitmap for {len} values from {offset} on", bytes.len());
    }
    Ok(BooleanBuffer::new(Buffer::from(bytes), offset, len))
}

fn data(column: Column, data_type: &DataType, checks: Checks) -> Result<ArrayData> {
    let Column { rows, validity, values } = column;
    let validity = validity.filter(|_| *data_type != DataType::Null);
    let nulls = validity.map(|bits| bits_to_arrow(bits).map(NullBuffer::new)).transpose()?;
    let builder = ArrayDataBuilder::new(data_type.clone()).len(rows).nulls(nulls);
    let builder = match (values, data_type) {
        (Values::Null, DataType::Null) => builder,
        (Values::Boolean(bits), DataType::Boolean) => {
            let bits = bits_to_arrow(bits)?;
            builder.add_buffer(if bits.offset() == 0 { bits.into_inner() } else { bits.sliced() })
        }
        (Values::Bytes { offsets, data }, DataType::Utf8 | DataType::Binary) => {
            builder.add_buffer(Buffer::from(offsets)).add_buffer(Buffer::from(data))
        }
        (Values::List { offsets, child }, DataType::List(item)) => builder
            .add_buffer(Buffer::from(offsets))
            .add_child_data(array(*child, item.data_type(), checks)?.to_data()),
        (Values::List { offsets, child }, DataType::Map(entries, _)) => builder
            .add_buffer(Buffer::from(offsets))
            .add_child_data(array(*child, entries.data_type(), checks)?.to_data()),
        (Values::FixedList { child, .. }, DataType::FixedSizeList(item, _)) => {
            builder.add_child_data(array(*child, item.data_type(), checks)?.to_data())
        }
        (Values::Struct(children), DataType::Struct(fields)) => {
            let children = children.into_iter().zip(fields);
            let children = children
                .map(|(child, field)| Ok(array(child, field.data_type(), checks)?.to_data()));
            builder.child_data(children.collect::<Result<_>>()?)
        }
        (Values::Dictionary { indexes, entries, .. }, DataType::Dictionary(_, value)) => {
            // Where all values are missing there are no entries, yet Arrow wants even a hidden
            // index to be one of them.
            let entries = if entries.rows == 0 {
                missing_entry(value)?
            } else {
                array(*entries, value, checks)?
            };
            builder.add_buffer(Buffer::from(indexes)).add_child_data(entries.to_data())
        }
        (Values::Fixed { bytes, .. }, _) => builder.add_buffer(Buffer::from(bytes)),
        (_, data_type) => refuse!(Unsupported, "a column does not have its type {data_type}"),
    };
    // Small buffers are aligned to 8 bytes in a chunk, some types want 16: these few bytes are
    // copied.
    let builder = builder.align_buffers(true);
    if let Checks::Needed = checks {
        let refused = |error| {
            Error::new(ErrorKind::Unsupported, format!("not a column of {data_type}: {error}"))
        };
        return builder.build().map_err(refused);
    }
    // SAFETY: the column comes from `Decoder`. Either its `decode` has checked every length,
    // offset, index, bitmap and string against the same schema that `data_type` was made from; or a
    // `BatchBuilder` of that schema, which takes only what fits, has made the column, and `built`
    // has checked its strings. Arrow's layout of each type is the chunk's.
    Ok(unsafe { builder.build_unchecked() })
}

/// One missing value. It takes the memory of its type, however little was sent.
fn missing_entry(data_type: &DataType) -> Result<ArrayRef> {
    const BYTES_MAX: usize = 1 << 20;
    match value_bytes(data_type) {
        0..=BYTES_MAX => Ok(new_null_array(data_type, 1)),
        bytes => {
            refuse!(
                Limit,
                "a dictionary without entries, of which each would have {bytes} bytes, over {BYTES_MAX}"
            )
        }
    }
}

/// What a value takes whatever it is.
fn value_bytes(data_type: &DataType) -> usize {
    match data_type {
        DataType::FixedSizeBinary(width) => usize::try_from(*width).unwrap_or(0),
        DataType::FixedSizeList(item, size) => {
            // A mask takes an eighth of a byte, and values of type null nothing.
            value_bytes(item.data_type()).max(1).saturating_mul(usize::try_from(*size).unwrap_or(0))
        }
        DataType::Struct(fields) => {
            fields.iter().map(|field| value_bytes(field.data_type())).fold(0, usize::saturating_add)
        }
        DataType::Dictionary(_, value) => value_bytes(value),
        other => other.primitive_width().unwrap_or(8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::BatchBuilder;

    fn field(data_type: Type) -> Field {
        Field { name: "f".into(), data_type, nullable: true, metadata: Vec::new() }
    }

    /// A map of one pair.
    fn built(key: &[u8], value: &[u8]) -> (Schema, Built) {
        let text = || Box::new(field(Type::Utf8));
        let schema =
            Schema { fields: vec![field(Type::Map { sorted: false, key: text(), value: text() })] };
        let mut builder = BatchBuilder::new(schema.clone()).unwrap();
        let map = &mut builder.columns()[0];
        let pair = map.item().unwrap();
        pair.fields().unwrap()[0].push_bytes(key).unwrap();
        pair.fields().unwrap()[1].push_bytes(value).unwrap();
        pair.close_struct().unwrap();
        map.close_list().unwrap();
        builder.close_row().unwrap();
        (schema, builder.finish().unwrap())
    }

    #[test]
    fn strings_of_maps_are_checked() {
        let read = |(schema, built)| Decoder::new(schema, StringLayout::Offsets).built(built);
        assert_eq!(read(built(b"k", b"v")).unwrap().num_rows(), 1);
        assert_eq!(read(built(b"\xff", b"v")).unwrap_err().kind(), ErrorKind::Utf8);
        assert_eq!(read(built(b"k", b"\xff")).unwrap_err().kind(), ErrorKind::Utf8);
    }

    /// Some bytes of a chunk are no gigabytes of an entry that is not there.
    #[test]
    fn a_dictionary_without_entries_has_a_small_one() {
        for (size, fits) in [(1 << 17, true), (1 << 30, false)] {
            let list = Type::FixedList { size, item: Box::new(field(Type::Int64)) };
            let index = Box::new(Type::Int8);
            let dictionary =
                field(Type::Dictionary { index, ordered: false, value: Box::new(list) });
            let child = Box::new(Column {
                rows: 0,
                validity: None,
                values: Values::Fixed { width: 8, bytes: Bytes::new() },
            });
            let entries = Column {
                rows: 0,
                validity: None,
                values: Values::FixedList { size: size as usize, child },
            };
            let indexes = Bytes::from_static(&[0]);
            let values = Values::Dictionary { width: 1, indexes, entries: Box::new(entries) };
            let missing = Bitmap { bytes: Bytes::from_static(&[0]), offset: 0, len: 1 };
            let batch = Batch {
                rows: 1,
                columns: vec![Column { rows: 1, validity: Some(missing), values }],
            };
            let decoder = Decoder::new(Schema { fields: vec![dictionary] }, StringLayout::Offsets);
            assert_eq!(decoder.batch(batch).is_ok(), fits);
        }
    }
}
