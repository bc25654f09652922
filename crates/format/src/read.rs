//! From a chunk's bytes to columns: `spec/chunk.md` sections 3 to 5 and `spec/encodings.md`.
//!
//! Plain buffers are shared with the chunk; everything else is decoded into memory of its own or of
//! the caller's, each allocation taken out of the size that the chunk declared. All that is read
//! here is hostile until checked.

mod checks;
mod decimals;
mod fixed;
mod huffman;
mod relative;
mod strings;
mod symbols;
mod tables;

use std::time::Instant;

use bytes::Bytes;

use self::checks::{check_indexes, check_offsets};
use self::fixed::Codes;
use self::strings::{Entries, even_offsets};
pub use self::tables::Tables;
use crate::column::{Batch, Bitmap, Column, Values, u32s};
use crate::compress::{Compressor, Unpacker};
use crate::cursor::Cursor;
use crate::error::{Error, ErrorKind, Result, refuse};
use crate::expand::{expand_bits, expand_fixed, expand_offsets};
use crate::header::{HEADER_BYTES, Header, Limits};
use crate::layout::{
    COUNT_MAX, WEIGHTLESS_MAX, alignment, check_count, check_padding, fixed_list_total,
};
use crate::room::{Memory, Piece, Room};
use crate::text::check_utf8;
use crate::types::{Field, Schema, Storage, Type};

/// How the columns of a stream were coded: what `explain` shows.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// One a field of the schema.
    pub columns: Vec<ColumnProfile>,
}

/// How one column was coded, over all chunks seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnProfile {
    /// Bytes in the bodies.
    pub body_bytes: u64,
    /// Bytes decoded.
    pub decoded_bytes: u64,
    /// How long decoding took, in nanoseconds.
    pub decode_ns: u64,
    /// The names of the encodings and compressors used, in order of first use.
    pub encodings: Vec<&'static str>,
}

/// Reads a whole chunk that lies in one buffer and stands for itself, checksum included.
///
/// # Errors
/// When the chunk breaks a rule of the specification or is over a limit.
pub fn read(chunk: &Bytes, schema: &Schema, limits: &Limits) -> Result<(Header, Batch)> {
    read_with(chunk, schema, limits, &Tables::default())
}

/// As [`read`], where these tables stand.
///
/// # Errors
/// As there.
pub fn read_with(
    chunk: &Bytes,
    schema: &Schema,
    limits: &Limits,
    tables: &Tables,
) -> Result<(Header, Batch)> {
    let Some((raw, rest)) = chunk.split_first_chunk::<HEADER_BYTES>() else {
        refuse!(Size, "a chunk of {} bytes is shorter than its header", chunk.len())
    };
    let header = Header::decode(raw, limits)?;
    if header.chunk_bytes() != chunk.len() as u64 {
        refuse!(
            Size,
            "the chunk has {} bytes, its header says {}",
            chunk.len(),
            header.chunk_bytes()
        );
    }
    // Both parts lie within the chunk, as its size has just shown.
    let (descriptors, _) = rest.split_at(rest.len() - header.body_bytes as usize);
    let body = chunk.slice(chunk.len() - header.body_bytes as usize..);
    header.verify(&[descriptors, &body])?;
    let batch = decode(&header, schema, descriptors, &body, tables, None, None)?;
    Ok((header, batch))
}

/// Decodes a chunk whose header has been checked against the limits, with the tables that stand
/// there. `descriptors` includes their padding. Buffers are decoded into `memory`, without one to
/// the heap; `profile` gathers how the columns were coded.
///
/// # Errors
/// When the chunk breaks a rule of the specification.
pub fn decode(
    header: &Header,
    schema: &Schema,
    descriptors: &[u8],
    body: &Bytes,
    tables: &Tables,
    memory: Option<&mut dyn Memory>,
    mut profile: Option<&mut Profile>,
) -> Result<Batch> {
    let mut reader = Reader::new(header, descriptors, body, tables)?;
    tables.check(header)?;
    reader.memory = memory;
    reader.encodings = profile.as_ref().map(|_| Vec::new());
    let rows = header.rows as usize;
    if schema.fields.is_empty() {
        reader.weightless(rows)?;
    }
    let mut columns = Vec::with_capacity(schema.fields.len());
    for (i, field) in schema.fields.iter().enumerate() {
        let before = (reader.at, reader.budget);
        let started = profile.as_ref().map(|_| Instant::now());
        columns.push(reader.field(field, rows, &columns).map_err(|error| {
            Error::new(
                error.kind(),
                format!("chunk {}, column {:?}: {error}", header.sequence, field.name),
            )
        })?);
        if let Some(profile) = &mut profile {
            profile.columns.resize_with(schema.fields.len(), ColumnProfile::default);
            let column = &mut profile.columns[i];
            column.body_bytes += (reader.at - before.0) as u64;
            column.decoded_bytes += before.1 - reader.budget;
            let elapsed = started.map_or(0, |started| started.elapsed().as_nanos());
            column.decode_ns += u64::try_from(elapsed).unwrap_or(u64::MAX);
            for name in reader.encodings.iter_mut().flat_map(|names| names.drain(..)) {
                if !column.encodings.contains(&name) {
                    column.encodings.push(name);
                }
            }
        }
    }
    reader.check_used_up(header.sequence)?;
    Ok(Batch { rows, columns })
}

/// A buffer in the body, not yet unpacked.
struct Placed {
    compressor: Compressor,
    packed: Bytes,
    raw_bytes: usize,
}

/// What becomes of a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It is one of the column's own.
    Kept,
    /// The column's own are made of it.
    Part,
}

struct Reader<'a, 'm> {
    descriptors: Cursor<'a>,
    body: &'a Bytes,
    memory: Option<&'m mut dyn Memory>,
    /// Where the last buffer ended.
    at: usize,
    /// What is left of the declared decoded size.
    budget: u64,
    /// How many more values there may be that take no bytes.
    weightless_left: usize,
    tables: &'a Tables,
    unpacker: Unpacker,
    encodings: Option<Vec<&'static str>>,
}

impl<'a> Reader<'a, '_> {
    /// A reader of a chunk, or of a state frame.
    fn new(
        header: &Header,
        descriptors: &'a [u8],
        body: &'a Bytes,
        tables: &'a Tables,
    ) -> Result<Self> {
        let Some((descriptors, padding)) =
            descriptors.split_at_checked(header.descriptor_bytes as usize)
        else {
            refuse!(
                Size,
                "{} bytes of descriptors, the header says {}",
                descriptors.len(),
                header.descriptor_bytes
            )
        };
        check_padding(padding)?;
        if body.len() != header.body_bytes as usize {
            refuse!(Size, "a body of {} bytes, the header says {}", body.len(), header.body_bytes);
        }
        Ok(Self {
            descriptors: Cursor::new(descriptors, ErrorKind::Truncated),
            body,
            memory: None,
            at: 0,
            budget: header.decoded_bytes,
            weightless_left: WEIGHTLESS_MAX,
            tables,
            unpacker: Unpacker::default(),
            encodings: None,
        })
    }

    /// Checks that nothing is left over at the end.
    fn check_used_up(&self, sequence: u64) -> Result<()> {
        if !self.descriptors.is_empty() || self.at != self.body.len() {
            refuse!(
                Trailing,
                "chunk {sequence}: {} bytes of descriptors and {} of the body are left over",
                self.descriptors.remaining(),
                self.body.len() - self.at
            );
        }
        if self.budget != 0 {
            refuse!(Decoded, "chunk {sequence}: {} bytes fewer than it declares", self.budget);
        }
        Ok(())
    }
}

impl Reader<'_, '_> {
    fn charge(&mut self, count: usize, bytes: usize) -> Result<usize> {
        let total = count.checked_mul(bytes).filter(|total| *total as u64 <= self.budget);
        let Some(total) = total else {
            refuse!(Decoded, "{count} times {bytes} bytes are more than it declares")
        };
        self.budget -= total as u64;
        Ok(total)
    }

    /// Counts values that take no bytes.
    fn weightless(&mut self, count: usize) -> Result<()> {
        let Some(left) = self.weightless_left.checked_sub(count) else {
            refuse!(Limit, "more than {WEIGHTLESS_MAX} values that take no bytes")
        };
        self.weightless_left = left;
        Ok(())
    }

    fn note(&mut self, encoding: &'static str) {
        if let Some(encodings) = &mut self.encodings {
            encodings.push(encoding);
        }
    }

    /// Finds the place of the next buffer in the body.
    fn place(&mut self) -> Result<Placed> {
        let compressor = Compressor::from_code(self.descriptors.u8("compressor")?)?;
        let bytes = self.descriptors.u32("bytes")? as usize;
        let raw_bytes = match compressor {
            Compressor::None => bytes,
            _ => self.descriptors.u32("raw")? as usize,
        };
        if bytes > 0 {
            let start = self.at.next_multiple_of(alignment(bytes));
            let end = start.checked_add(bytes).filter(|end| *end <= self.body.len());
            let Some(end) = end else {
                refuse!(Length, "a buffer of {bytes} bytes leaves the body")
            };
            check_padding(&self.body[self.at..start])?;
            self.at = end;
        }
        Ok(Placed { compressor, packed: self.body.slice(self.at - bytes..self.at), raw_bytes })
    }

    /// Room for a buffer whose size the caller has held against what was declared.
    fn room(&mut self, bytes: usize, to: Use) -> Result<Room> {
        Room::new(self.piece(bytes, to), bytes)
    }

    fn zeros(&mut self, bytes: usize, to: Use) -> Room {
        Room::zeros(self.piece(bytes, to), bytes)
    }

    fn piece(&mut self, bytes: usize, to: Use) -> Option<Box<dyn Piece>> {
        self.memory.as_mut().filter(|_| to == Use::Kept)?.piece(bytes)
    }

    /// The contents of a buffer. The caller has held their size against what was declared.
    fn unpack(&mut self, placed: Placed, to: Use) -> Result<Bytes> {
        match placed.compressor {
            Compressor::None
                if to == Use::Part
                    || !self.memory.as_ref().is_some_and(|memory| memory.takes_plain()) =>
            {
                return Ok(placed.packed);
            }
            Compressor::None => {}
            Compressor::Lz4 => self.note("lz4"),
            Compressor::Zstd => self.note("zstd"),
        }
        let room = self.room(placed.raw_bytes, to)?;
        self.unpacker.unpack(placed.compressor, &placed.packed, placed.raw_bytes, room)
    }

    /// The contents of the next buffer, which must have `expected` bytes.
    fn buffer(&mut self, expected: usize, to: Use) -> Result<Bytes> {
        let placed = self.place()?;
        if placed.raw_bytes != expected {
            refuse!(Length, "a buffer of {} bytes, {expected} expected", placed.raw_bytes);
        }
        self.unpack(placed, to)
    }

    /// Checks that strings of `bytes` bytes in all can be held, before they are unpacked.
    fn check_string_bytes(&self, bytes: usize) -> Result<()> {
        check_count(bytes)?;
        if bytes as u64 > self.budget {
            refuse!(
                Decoded,
                "{bytes} bytes of strings, {} of those declared are left",
                self.budget
            );
        }
        Ok(())
    }

    /// The column of a field of the schema, after those that stand before it.
    fn field(&mut self, field: &Field, n: usize, earlier: &[Column]) -> Result<Column> {
        if let Storage::Fixed(width) = field.data_type.storage()
            && let Ok([0, relative::CODE]) = self.descriptors.clone().take(2, "nulls and encoding")
        {
            return self.relative(n, width, earlier);
        }
        self.column(field, n)
    }

    fn column(&mut self, field: &Field, n: usize) -> Result<Column> {
        let nulls = self.descriptors.u8("nulls")?;
        let storage = field.data_type.storage();
        if storage == Storage::Null {
            if nulls != 3 {
                refuse!(Code, "nulls code {nulls} for the type null, expected 3");
            }
            self.weightless(n)?;
            return Ok(Column { rows: n, validity: None, values: Values::Null });
        }
        let packable =
            matches!(storage, Storage::Boolean | Storage::Fixed(_) | Storage::Bytes { .. });
        if nulls > 3 || nulls != 0 && n == 0 || nulls == 2 && !packable {
            refuse!(Code, "nulls code {nulls} for {n} values of type {:?}", field.data_type);
        }
        if nulls == 0 {
            let values = self.values(&field.data_type, n, n)?;
            let column = Column { rows: n, validity: None, values };
            check_dictionary(&field.data_type, &column)?;
            return Ok(column);
        }
        if !field.nullable {
            refuse!(Missing, "values of {:?}, which is not nullable, are missing", field.name);
        }
        let bitmap_bytes = self.charge(n.div_ceil(8), 1)?;
        if nulls == 3 {
            self.note("missing");
            let bytes = self.zeros(bitmap_bytes, Use::Kept).finish()?;
            let validity = Some(Bitmap { bytes, offset: 0, len: n });
            return Ok(Column {
                rows: n,
                validity,
                values: self.zero_values(&field.data_type, n)?,
            });
        }
        let missing = self.descriptors.u32("missing")? as usize;
        if missing == 0 || missing > n {
            refuse!(Missing, "{missing} of {n} values announced as missing");
        }
        let validity = Bitmap { bytes: self.bits(n, Use::Kept)?, offset: 0, len: n };
        if missing != n - validity.ones() {
            refuse!(
                Missing,
                "{missing} missing values announced, the bitmap has {}",
                n - validity.ones()
            );
        }
        let values = if nulls == 1 {
            self.values(&field.data_type, n, n)?
        } else {
            self.packed_values(&field.data_type, &validity, n - missing)?
        };
        let column = Column { rows: n, validity: Some(validity), values };
        check_dictionary(&field.data_type, &column)?;
        Ok(column)
    }

    /// A buffer of n bits, of which none is set past the end.
    fn bits(&mut self, n: usize, to: Use) -> Result<Bytes> {
        let bits = self.buffer(n.div_ceil(8), to)?;
        if !n.is_multiple_of(8) && bits[n / 8] >> (n % 8) != 0 {
            refuse!(Bitmap, "bits are set past the {n} of a bitmap");
        }
        Ok(bits)
    }

    /// The values of a column from which the missing ones were left out, put back in their places.
    fn packed_values(
        &mut self,
        data_type: &Type,
        validity: &Bitmap,
        present: usize,
    ) -> Result<Values> {
        let n = validity.len;
        self.note("packed nulls");
        Ok(match self.values(data_type, present, n)? {
            Values::Boolean(bits) => Values::Boolean(expand_bits(&bits, validity)),
            Values::Fixed { width, bytes } => {
                let mut room = self.zeros(n * width, Use::Kept);
                expand_fixed(&bytes, width, validity, room.written());
                Values::Fixed { width, bytes: room.finish()? }
            }
            Values::Bytes { offsets, data } => {
                let mut room = self.room((n + 1) * 4, Use::Kept)?;
                room.write(|out| expand_offsets(&offsets, validity, out));
                Values::Bytes { offsets: room.finish()?, data }
            }
            other => other,
        })
    }

    /// `n` values, of a column that will have `rows` of them once the missing ones are back in
    /// their places.
    fn values(&mut self, data_type: &Type, n: usize, rows: usize) -> Result<Values> {
        let to = if n == rows { Use::Kept } else { Use::Part };
        match data_type.storage() {
            Storage::Null => Ok(Values::Null),
            Storage::Boolean => {
                self.charge(rows.div_ceil(8), 1)?;
                self.booleans(n, to)
            }
            Storage::Fixed(width) => {
                self.charge(rows, width)?;
                Ok(Values::Fixed { width, bytes: self.fixed(n, width, Codes::VALUES, to)? })
            }
            Storage::Bytes { utf8 } => {
                self.charge(rows + 1, 4)?;
                self.strings(n, utf8, to)
            }
            Storage::List | Storage::Map => {
                self.charge(rows + 1, 4)?;
                let (offsets, total) = match self.descriptors.u8("list encoding")? {
                    0 => {
                        let offsets = self.buffer((n + 1) * 4, Use::Kept)?;
                        let total = check_offsets(&offsets)?;
                        (offsets, total)
                    }
                    2 => self.offsets_of_lengths(n, Use::Kept)?,
                    code => refuse!(Code, "unknown list encoding {code}"),
                };
                let child = match data_type {
                    Type::Map { key, value, .. } => {
                        let children = vec![self.column(key, total)?, self.column(value, total)?];
                        Column { rows: total, validity: None, values: Values::Struct(children) }
                    }
                    Type::List(item) => self.column(item, total)?,
                    other => refuse!(Schema, "{other:?} is not a list"),
                };
                Ok(Values::List { offsets, child: Box::new(child) })
            }
            Storage::FixedList(size) => {
                let Type::FixedList { item, .. } = data_type else {
                    refuse!(Schema, "not a fixed-size list")
                };
                let total = fixed_list_total(n, size)?;
                if size == 0 {
                    self.weightless(n)?;
                }
                Ok(Values::FixedList { size, child: Box::new(self.column(item, total)?) })
            }
            Storage::Struct => {
                let Type::Struct(fields) = data_type else { refuse!(Schema, "not a struct") };
                if fields.is_empty() {
                    self.weightless(n)?;
                }
                Ok(Values::Struct(
                    fields.iter().map(|field| self.column(field, n)).collect::<Result<_>>()?,
                ))
            }
            Storage::Dictionary => self.dictionary_type(data_type, n, rows),
        }
    }

    fn booleans(&mut self, n: usize, to: Use) -> Result<Values> {
        let bytes = match self.descriptors.u8("boolean encoding")? {
            0 => self.bits(n, to)?,
            1 => {
                self.note("constant");
                let value = self.descriptors.u8("boolean constant")?;
                if value > 1 || n == 0 {
                    refuse!(Constant, "boolean constant {value} for {n} values");
                }
                let mut room = self.zeros(n.div_ceil(8), to);
                if value == 1 {
                    let bits = room.written();
                    bits.fill(0xFF);
                    if !n.is_multiple_of(8) {
                        bits[n / 8] = (1 << (n % 8)) - 1;
                    }
                }
                room.finish()?
            }
            code => refuse!(Code, "unknown boolean encoding {code}"),
        };
        Ok(Values::Boolean(Bitmap { bytes, offset: 0, len: n }))
    }

    fn dictionary_count(&mut self, n: usize) -> Result<usize> {
        let count = self.descriptors.u32("count")? as usize;
        if count == 0 || count > n {
            refuse!(Index, "a dictionary of {count} entries for {n} values");
        }
        Ok(count)
    }

    /// n strings. The caller has charged their offsets, of which `to` speaks: their data is always
    /// kept.
    fn strings(&mut self, n: usize, utf8: bool, to: Use) -> Result<Values> {
        match self.descriptors.clone().u8("encoding")? {
            0 | 2 | 4 => {
                let (offsets, data) = self.flat_strings(n, utf8, to, Use::Kept)?;
                self.charge(data.len(), 1)?;
                Ok(Values::Bytes { offsets, data })
            }
            1 => {
                self.note("constant");
                self.descriptors.u8("encoding")?;
                let placed = self.place()?;
                if n == 0 {
                    refuse!(Constant, "a constant for no values");
                }
                // Both are below 2^32.
                let total = n * placed.raw_bytes;
                self.check_string_bytes(total)?;
                let value = self.unpack(placed, Use::Part)?;
                if utf8 {
                    check_utf8(&value, [].into_iter())?;
                }
                self.charge(total, 1)?;
                let mut data = self.room(total, Use::Kept)?;
                repeat(&value, n, &mut data);
                let mut offsets = self.room((n + 1) * 4, to)?;
                even_offsets(n, value.len(), &mut offsets);
                Ok(Values::Bytes { offsets: offsets.finish()?, data: data.finish()? })
            }
            3 => {
                self.note("dictionary");
                self.descriptors.u8("encoding")?;
                let count = self.dictionary_count(n)?;
                let (entry_offsets, entries) =
                    self.flat_strings(count, utf8, Use::Part, Use::Part)?;
                self.dictionary_strings(n, &entry_offsets, &entries, to)
            }
            5 => {
                self.note("kept dictionary");
                self.descriptors.u8("encoding")?;
                let tables = self.tables;
                let (offsets, data) = tables.strings(self.descriptors.u32("table")?, utf8)?;
                self.dictionary_strings(n, offsets, data, to)
            }
            code => refuse!(Code, "unknown string encoding {code}"),
        }
    }

    /// n strings, by their indexes among entries.
    fn dictionary_strings(
        &mut self,
        n: usize,
        entry_offsets: &[u8],
        entries: &[u8],
        to: Use,
    ) -> Result<Values> {
        let indexes = self.fixed(n, 4, Codes::PARTS, Use::Part)?;
        check_indexes(&indexes, entry_offsets.len() / 4 - 1)?;
        let entries = Entries::new(entry_offsets, entries)?;
        let total = entries.total(&indexes);
        self.check_string_bytes(total)?;
        self.charge(total, 1)?;
        check_count(total)?;
        let (mut offsets, mut data) = (self.room((n + 1) * 4, to)?, self.room(total, Use::Kept)?);
        entries.gather(&indexes, &mut offsets, &mut data)?;
        Ok(Values::Bytes { offsets: offsets.finish()?, data: data.finish()? })
    }

    /// n strings as offsets, lengths or symbols: `(offsets, data)`, checked.
    fn flat_strings(
        &mut self,
        n: usize,
        utf8: bool,
        offsets_to: Use,
        data_to: Use,
    ) -> Result<(Bytes, Bytes)> {
        let code = self.descriptors.u8("encoding")?;
        let (offsets, total) = match code {
            0 => {
                let offsets = self.buffer((n + 1) * 4, offsets_to)?;
                let total = check_offsets(&offsets)?;
                (offsets, total)
            }
            2 | 4 => {
                self.note("lengths");
                self.offsets_of_lengths(n, offsets_to)?
            }
            code => refuse!(Code, "encoding {code} for the entries of a dictionary"),
        };
        self.check_string_bytes(total)?;
        let data = if code == 4 {
            self.symbols(total, data_to)?
        } else {
            let placed = self.place()?;
            if placed.raw_bytes != total {
                refuse!(Offsets, "the strings end at {total}, their data at {}", placed.raw_bytes);
            }
            self.unpack(placed, data_to)?
        };
        if utf8 {
            check_utf8(&data, u32s(&offsets))?;
        }
        Ok((offsets, data))
    }

    fn dictionary_type(&mut self, data_type: &Type, n: usize, rows: usize) -> Result<Values> {
        let Type::Dictionary { index, value, .. } = data_type else {
            refuse!(Schema, "not a dictionary")
        };
        let Some(width) = index.width() else {
            refuse!(Schema, "a dictionary's index has no width")
        };
        let count = self.descriptors.u32("count")? as usize;
        check_count(count)?;
        let entries = self.column(&value.entries_field(), count)?;
        self.charge(rows, width)?;
        let indexes = self.fixed(n, width, Codes::PARTS, Use::Kept)?;
        Ok(Values::Dictionary { width, indexes, entries: Box::new(entries) })
    }

    /// n lengths as the offsets that they make, and the last of these.
    fn offsets_of_lengths(&mut self, n: usize, to: Use) -> Result<(Bytes, usize)> {
        let lengths = self.fixed(n, 4, Codes::PARTS, Use::Part)?;
        let mut offsets = self.room((n + 1) * 4, to)?;
        let mut total = 0;
        offsets.write(|out| {
            out.push([0; 4]);
            let mut end = 0u64;
            out.extend(u32s(&lengths).map(|length| {
                end += u64::from(length);
                // Truncated only when the total is refused below.
                (end as u32).to_le_bytes()
            }));
            total = end;
        });
        match usize::try_from(total) {
            Ok(total) if total <= COUNT_MAX => Ok((offsets.finish()?, total)),
            _ => refuse!(Limit, "lengths add up to {total}, over the limit of {COUNT_MAX}"),
        }
    }

    /// What stands for n missing values.
    fn zero_values(&mut self, data_type: &Type, n: usize) -> Result<Values> {
        Ok(match data_type {
            Type::Null => {
                self.weightless(n)?;
                Values::Null
            }
            Type::Boolean => Values::Boolean(Bitmap {
                bytes: self.charged_zeros(n.div_ceil(8), 1)?,
                offset: 0,
                len: n,
            }),
            Type::Utf8 | Type::Binary => {
                Values::Bytes { offsets: self.charged_zeros(n + 1, 4)?, data: Bytes::new() }
            }
            Type::List(item) => Values::List {
                offsets: self.charged_zeros(n + 1, 4)?,
                child: Box::new(self.zeros_of(&item.data_type, 0)?),
            },
            Type::Map { key, value, .. } => {
                let offsets = self.charged_zeros(n + 1, 4)?;
                let children =
                    vec![self.zeros_of(&key.data_type, 0)?, self.zeros_of(&value.data_type, 0)?];
                let child =
                    Box::new(Column { rows: 0, validity: None, values: Values::Struct(children) });
                Values::List { offsets, child }
            }
            Type::FixedList { size, item } => {
                let total = fixed_list_total(n, *size as usize)?;
                if *size == 0 {
                    self.weightless(n)?;
                }
                Values::FixedList {
                    size: *size as usize,
                    child: Box::new(self.zeros_of(&item.data_type, total)?),
                }
            }
            Type::Struct(fields) => {
                if fields.is_empty() {
                    self.weightless(n)?;
                }
                Values::Struct(
                    fields
                        .iter()
                        .map(|field| self.zeros_of(&field.data_type, n))
                        .collect::<Result<_>>()?,
                )
            }
            Type::Dictionary { index, value, .. } => {
                let Some(width) = index.width() else {
                    refuse!(Schema, "a dictionary's index has no width")
                };
                let indexes = self.charged_zeros(n, width)?;
                Values::Dictionary { width, indexes, entries: Box::new(self.zeros_of(value, 0)?) }
            }
            fixed => {
                let Some(width) = fixed.width() else { refuse!(Schema, "{fixed:?} has no width") };
                Values::Fixed { width, bytes: self.charged_zeros(n, width)? }
            }
        })
    }

    fn charged_zeros(&mut self, count: usize, bytes: usize) -> Result<Bytes> {
        let bytes = self.charge(count, bytes)?;
        self.zeros(bytes, Use::Kept).finish()
    }

    fn zeros_of(&mut self, data_type: &Type, n: usize) -> Result<Column> {
        Ok(Column { rows: n, validity: None, values: self.zero_values(data_type, n)? })
    }
}

fn reserved<T>(count: usize) -> Result<Vec<T>> {
    let mut out = Vec::new();
    match out.try_reserve_exact(count) {
        Ok(()) => Ok(out),
        Err(_) => refuse!(Limit, "no memory for {count} times {} bytes", size_of::<T>()),
    }
}

/// Checks the indexes of a column whose type is a dictionary; those under missing values may be
/// anything.
fn check_dictionary(data_type: &Type, column: &Column) -> Result<()> {
    let (Type::Dictionary { index, .. }, Values::Dictionary { width, indexes, entries }) =
        (data_type, &column.values)
    else {
        return Ok(());
    };
    // A negative index has the sign's bit set, and is so out of range as well.
    let signed = matches!(**index, Type::Int8 | Type::Int16 | Type::Int32 | Type::Int64);
    let end = (entries.rows as u64).min(if signed { 1 << (width * 8 - 1) } else { u64::MAX });
    for (i, raw) in indexes.chunks_exact(*width).take(column.rows).enumerate() {
        let mut wide = [0; 8];
        wide[..*width].copy_from_slice(raw);
        let index = u64::from_le_bytes(wide);
        if index >= end && column.is_valid(i) {
            refuse!(Index, "index {index} into a dictionary of {} entries", entries.rows);
        }
    }
    Ok(())
}

/// Fills `out` with `value`, n times.
fn repeat(value: &[u8], n: usize, out: &mut Room) {
    /// Short values are copied so many at a time.
    const STEP_BYTES: usize = 4096;
    if let [byte] = value {
        return out.write(|out| out.repeat(*byte, n));
    }
    let at_a_time = (STEP_BYTES / value.len().max(1)).clamp(1, n.max(1));
    let some = value.repeat(at_a_time);
    out.write(|out| {
        (0..n / at_a_time).for_each(|_| out.extend_from_slice(&some));
        out.extend_from_slice(&some[..n % at_a_time * value.len()]);
    });
}
