//! From columns to a chunk's bytes: `spec/chunk.md` sections 3 to 5.
//!
//! A chunk is made of slices of one or more batches. Where nothing is encoded, the body is a list
//! of references to the batches' own buffers, which the socket gathers: no value is copied here.

mod gather;

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};

use self::gather::{
    BitWriter, concat_bits, fixed_bytes, gather_fixed, gather_lists, gather_strings, masked_child,
    name, narrow_width, same_entries, struct_child,
};
pub(crate) use self::gather::{Strings, joined};
use crate::column::{Batch, Column, Values};
use crate::compress::{Compressor, Packer};
use crate::encode::kept::{Kept, NewTables, TableRoom};
use crate::encode::relative::Bases;
use crate::encode::{self, Tried};
use crate::error::{Error, Result, refuse};
use crate::expand::ones;
use crate::header::{HEADER_BYTES, Header, StateHeader, crc32c};
use crate::layout::{
    LARGE_ALIGNMENT, LARGE_BUFFER_BYTES, WEIGHTLESS_MAX, alignment, check_count, fixed_list_total,
};
use crate::types::{Field, Schema, Storage, Type};

static ZEROS: [u8; LARGE_ALIGNMENT] = [0; LARGE_ALIGNMENT];
/// Smaller buffers are not compressed: zstd takes some microseconds for each.
const COMPRESSED_BYTES_MIN: usize = 512;

/// How hard a writer tries to make a chunk small (encodings.md section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// Every buffer plain, as batches have it.
    #[default]
    None,
    /// What costs next to nothing and makes readers copy: where most values are missing these are
    /// left out, and [`Values::Narrow`] stays narrow.
    Compact,
    /// Light encodings alone: quick, and all that numbers mostly gain by.
    Light,
    /// Light encodings, and strings coded with a table of symbols that was trained on them.
    Symbols,
    /// Light encodings, then LZ4 on every buffer where that saves a tenth.
    Lz4,
    /// Light encodings, then zstd at this level on every buffer where that saves a tenth.
    Zstd(i32),
}

impl Compression {
    pub(crate) fn encodes(self) -> bool {
        !matches!(self, Self::None | Self::Compact)
    }

    /// Whether a compressor comes after the encodings.
    pub(crate) fn compresses(self) -> bool {
        self.compressor().0 != Compressor::None
    }

    fn compressor(self) -> (Compressor, i32) {
        match self {
            Self::None | Self::Compact | Self::Light | Self::Symbols => (Compressor::None, 0),
            Self::Lz4 => (Compressor::Lz4, 0),
            Self::Zstd(level) => (Compressor::Zstd, level),
        }
    }
}

/// A chunk ready to be sent: its header, and the parts that follow it.
#[derive(Debug, Clone)]
pub struct Chunk {
    header: Header,
    /// The checksum of `parts`, to be finished over the header.
    parts_checksum: Option<u32>,
    parts: Vec<Bytes>,
    columns: Vec<Written>,
    state: Option<StateFrame>,
}

/// The tables that a chunk needs and those before it did not have: ready to be sent, ahead of the
/// chunk.
#[derive(Debug, Clone)]
pub struct StateFrame {
    header: StateHeader,
    parts_checksum: Option<u32>,
    parts: Vec<Bytes>,
}

impl StateFrame {
    /// The size of the whole frame in bytes.
    pub fn frame_bytes(&self) -> u64 {
        self.header.frame_bytes()
    }

    /// Gives the frame its number: its header's bytes, and the parts that follow them.
    pub fn numbered(mut self, sequence: u64) -> ([u8; HEADER_BYTES], Vec<Bytes>) {
        self.header.0.sequence = sequence;
        (self.header.finished(self.parts_checksum), self.parts)
    }
}

/// What one column of a chunk took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// What it decodes to, in bytes.
    pub decoded_bytes: u64,
    /// What it takes in the chunk and in the state frame ahead of it, descriptors and padding
    /// included.
    pub bytes: u64,
    /// What of these is in the state frame.
    pub state_bytes: u64,
    /// How long it took to write, but for what is learned once and kept for the chunks after: the
    /// symbols of strings.
    pub encode_ns: u64,
}

impl Chunk {
    /// The rows of the chunk.
    pub fn rows(&self) -> u32 {
        self.header.rows
    }

    /// The size of the whole chunk in bytes.
    pub fn chunk_bytes(&self) -> u64 {
        self.header.chunk_bytes()
    }

    /// The size of the state frame that must be sent ahead of the chunk; 0 where there is none.
    pub fn state_bytes(&self) -> u64 {
        self.state.as_ref().map_or(0, StateFrame::frame_bytes)
    }

    /// What the chunk decodes to, in bytes.
    pub fn decoded_bytes(&self) -> u64 {
        self.header.decoded_bytes
    }

    /// What each column took.
    pub fn columns(&self) -> &[Written] {
        &self.columns
    }

    /// The state frame that must be sent ahead of the chunk, if there is one and it has not been
    /// taken yet.
    pub fn take_state(&mut self) -> Option<StateFrame> {
        self.state.take()
    }

    /// Gives the chunk its number, and says how many state frames are before it: its header's
    /// bytes, and the parts that follow them.
    pub fn numbered(mut self, sequence: u64, states: u32) -> ([u8; HEADER_BYTES], Vec<Bytes>) {
        (self.header.sequence, self.header.states) = (sequence, states);
        if let Some(parts) = self.parts_checksum {
            self.header.checksum = Some(self.header.finish_checksum(parts));
        }
        (self.header.encode(), self.parts)
    }

    /// The whole chunk in one buffer, if it stands for itself.
    pub fn to_bytes(&self, sequence: u64) -> Bytes {
        let (header, parts) = self.clone().numbered(sequence, 0);
        let mut out = BytesMut::from(&header[..]);
        parts.iter().for_each(|part| out.extend_from_slice(part));
        out.freeze()
    }
}

/// An upper bound of the size of a chunk of these columns with `plain_bytes`
/// ([`Batch::plain_bytes`]) in them.
///
/// A column adds at most 54 bytes of descriptors and padding of small buffers; a large buffer's
/// padding is less than a 64th of it.
pub fn chunk_bytes_bound(nodes: usize, plain_bytes: u64) -> u64 {
    2 * HEADER_BYTES as u64 + 64 * nodes as u64 + plain_bytes + plain_bytes / 64
}

/// Writes the rows of `batches` as one chunk that stands for itself. It is no larger than
/// [`chunk_bytes_bound`], whatever the compression.
///
/// # Errors
/// As [`Encoder::write`].
pub fn write(
    schema: &Schema,
    batches: &[Batch],
    compression: Compression,
    checksum: bool,
    jumbo: bool,
) -> Result<Chunk> {
    Encoder::new(Arc::new(schema.clone()), checksum).write(batches, |_| compression, jumbo)
}

/// What no reader would accept is not sent (chunk.md section 5).
fn check_weightless(batches: &[Batch]) -> Result<()> {
    let of = |batch: &Batch| match batch.columns.len() {
        0 => batch.rows,
        _ => batch
            .columns
            .iter()
            .map(|column| column.weightless(0, column.rows))
            .fold(0, usize::saturating_add),
    };
    let count = batches.iter().map(of).fold(0, usize::saturating_add);
    if count > WEIGHTLESS_MAX {
        refuse!(
            Limit,
            "{count} values of type null or of structs without fields in one chunk, at most {WEIGHTLESS_MAX} can be sent; \
             leave out what has no values"
        );
    }
    Ok(())
}

/// Makes the chunks of one stream, and keeps from one to the next what it has learned about each
/// column.
#[derive(Debug)]
pub struct Encoder {
    schema: Arc<Schema>,
    memories: Vec<Memory>,
    checksum: bool,
    clock: Clock,
    room: Option<Arc<TableRoom>>,
}

/// The time since some moment.
pub type Clock = fn() -> Duration;

/// The time on the wall since the first call.
fn wall_time() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

/// What is known about a column, and about the columns within it, from the chunks before.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    symbols: encode::symbols::Memory,
    kept: Kept,
    children: Vec<Memory>,
    tried: Tried,
}

impl Memory {
    /// How long it took since this was last asked to learn what is kept.
    fn take_learning(&mut self) -> Duration {
        let within = self.children.iter_mut().map(Self::take_learning).sum::<Duration>();
        self.symbols.take_learning() + within
    }

    /// Of the column number i within this one.
    fn child(&mut self, i: usize) -> &mut Self {
        if self.children.len() <= i {
            self.children.resize_with(i + 1, Self::default);
        }
        &mut self.children[i]
    }
}

impl Encoder {
    /// An encoder of a stream of chunks, with checksums or without.
    pub fn new(schema: Arc<Schema>, checksum: bool) -> Self {
        let memories = schema.fields.iter().map(|_| Memory::default()).collect();
        Self { schema, memories, checksum, clock: wall_time, room: None }
    }

    /// Lets chunks of several rows have tables that outlive them ([`Chunk::take_state`]). All
    /// encoders of a stream share the room for these; all that one of them makes must be sent, in
    /// order.
    #[must_use]
    pub fn keeping_tables(self, room: Arc<TableRoom>) -> Self {
        Self { room: Some(room), ..self }
    }

    /// Has what columns take ([`Written::encode_ns`]) measured by another clock than that on the
    /// wall.
    #[must_use]
    pub fn timed_by(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Writes the rows of `batches` as one chunk, field i of the schema under `compression(i)`. The
    /// chunk is no larger than [`chunk_bytes_bound`].
    ///
    /// # Errors
    /// When the batches do not fit the schema, or are too large for one chunk.
    pub fn write(
        &mut self,
        batches: &[Batch],
        compression: impl Fn(usize) -> Compression,
        jumbo: bool,
    ) -> Result<Chunk> {
        let rows: usize = batches.iter().map(|batch| batch.rows).sum();
        let Ok(header_rows @ 1..) = u32::try_from(rows) else {
            refuse!(Unsupported, "a chunk can't have {rows} rows")
        };
        check_count(rows)?;
        check_weightless(batches)?;
        let mut writer = Writer::new(self.clock);
        if let Some(room) = self.room.as_ref().filter(|_| rows > 1) {
            writer.tables = Some(NewTables::new(room.clone(), Writer::new(self.clock)));
        }
        let mut columns = Vec::with_capacity(self.schema.fields.len());
        let mut bases = Bases::default();
        let mut now = (self.clock)();
        for (i, (field, memory)) in self.schema.fields.iter().zip(&mut self.memories).enumerate() {
            let mut pieces = Vec::with_capacity(batches.len());
            for batch in batches {
                let Some(column) = batch.columns.get(i).filter(|column| column.rows == batch.rows)
                else {
                    refuse!(Unsupported, "a batch has no column {i} of {} rows", batch.rows)
                };
                pieces.push(column.clone());
            }
            let before = (writer.decoded, writer.written_bytes(), writer.state_bytes());
            writer.compress_by(compression(i));
            writer.field((i, field), pieces, rows, memory, &mut bases)?;
            let then = std::mem::replace(&mut now, (self.clock)());
            let state_bytes = writer.state_bytes() - before.2;
            columns.push(Written {
                decoded_bytes: writer.decoded - before.0,
                bytes: writer.written_bytes() - before.1 + state_bytes,
                state_bytes,
                encode_ns: u64::try_from(
                    now.saturating_sub(then).saturating_sub(memory.take_learning()).as_nanos(),
                )
                .unwrap_or(u64::MAX),
            });
        }
        let state = match writer.tables.take() {
            Some(NewTables { writer, count: count @ 1.., .. }) => {
                let (header, parts_checksum, parts) = writer.finish(count, self.checksum)?;
                Some(StateFrame { header: StateHeader(header), parts_checksum, parts })
            }
            _ => None,
        };
        let (header, parts_checksum, parts) = writer.finish(header_rows, self.checksum)?;
        Ok(Chunk { header: Header { jumbo, ..header }, parts_checksum, parts, columns, state })
    }
}

/// The body under construction: shared buffers, and between them what was copied or made here.
#[derive(Default)]
struct Body {
    parts: Vec<Bytes>,
    tail: BytesMut,
    bytes: usize,
}

impl Body {
    fn align(&mut self, buffer_bytes: usize) {
        let padding = self.bytes.next_multiple_of(alignment(buffer_bytes)) - self.bytes;
        self.tail.extend_from_slice(&ZEROS[..padding]);
        self.bytes += padding;
    }

    fn push(&mut self, part: Bytes) {
        self.bytes += part.len();
        if part.len() < LARGE_BUFFER_BYTES {
            self.tail.extend_from_slice(&part);
        } else {
            self.flush();
            self.parts.push(part);
        }
    }

    fn flush(&mut self) {
        if !self.tail.is_empty() {
            self.parts.push(self.tail.split().freeze());
        }
    }

    fn finish(mut self) -> Vec<Bytes> {
        self.flush();
        self.parts
    }
}

pub(crate) struct Writer {
    pub(crate) compression: Compression,
    pub(crate) clock: Clock,
    pub(crate) descriptors: Vec<u8>,
    body: Body,
    decoded: u64,
    packer: Packer,
    /// Where tables go that outlive the chunk, if any may.
    pub(crate) tables: Option<NewTables>,
}

impl Writer {
    fn new(clock: Clock) -> Self {
        Self {
            compression: Compression::None,
            clock,
            descriptors: Vec::new(),
            body: Body::default(),
            decoded: 0,
            packer: Packer::default(),
            tables: None,
        }
    }

    /// The header of what was written, of so many rows or tables, the checksum of its parts, and
    /// these.
    fn finish(mut self, rows: u32, checksum: bool) -> Result<(Header, Option<u32>, Vec<Bytes>)> {
        let (Ok(descriptor_bytes), Ok(body_bytes)) =
            (u32::try_from(self.descriptors.len()), u32::try_from(self.body.bytes))
        else {
            refuse!(Limit, "a chunk of {} bytes is too large", self.body.bytes)
        };
        let padded = self.descriptors.len().next_multiple_of(LARGE_ALIGNMENT);
        self.descriptors.resize(padded, 0);
        let mut parts = vec![Bytes::from(self.descriptors)];
        parts.append(&mut self.body.finish());
        let header = Header {
            sequence: 0,
            rows,
            descriptor_bytes,
            body_bytes,
            checksum: None,
            jumbo: false,
            decoded_bytes: self.decoded,
            states: 0,
        };
        Ok((header, checksum.then(|| parts.iter().fold(0, |crc, part| crc32c(crc, part))), parts))
    }

    fn compress_by(&mut self, compression: Compression) {
        self.compression = compression;
        if let Some(tables) = &mut self.tables {
            tables.writer.compression = compression;
        }
    }

    pub(crate) fn written_bytes(&self) -> u64 {
        (self.descriptors.len() + self.body.bytes) as u64
    }

    /// The same of the state frame.
    fn state_bytes(&self) -> u64 {
        self.tables.as_ref().map_or(0, |tables| tables.writer.written_bytes())
    }

    /// Writes one buffer made of parts, compressed if that saves a tenth.
    pub(crate) fn buffer(&mut self, parts: Vec<Bytes>) -> Result<()> {
        let raw_bytes: usize = parts.iter().map(Bytes::len).sum();
        if !self.compression.compresses() || raw_bytes < COMPRESSED_BYTES_MIN {
            self.buffer_head(Compressor::None, raw_bytes, raw_bytes)?;
            parts.into_iter().for_each(|part| self.body.push(part));
            return Ok(());
        }
        let raw = joined(parts);
        match self.compressed(&raw, raw_bytes) {
            Some(packed) => self.compressed_buffer(packed, raw_bytes),
            None => self.plain_buffer(raw),
        }
    }

    /// Writes one buffer as it is.
    pub(crate) fn plain_buffer(&mut self, raw: Bytes) -> Result<()> {
        let raw_bytes = raw.len();
        self.stored_buffer(Compressor::None, raw, raw_bytes)
    }

    /// A buffer compressed, if that takes a tenth less than `bytes`.
    pub(crate) fn compressed(&mut self, raw: &[u8], bytes: usize) -> Option<Bytes> {
        let (compressor, level) = self.compression.compressor();
        if raw.len() < COMPRESSED_BYTES_MIN {
            return None;
        }
        self.packer
            .pack(compressor, level, raw)
            .filter(|packed| packed.len() < bytes / 10 * 9)
            .map(Bytes::from)
    }

    /// Writes what [`Self::compressed`] has made of `raw_bytes` bytes.
    pub(crate) fn compressed_buffer(&mut self, packed: Bytes, raw_bytes: usize) -> Result<()> {
        self.stored_buffer(self.compression.compressor().0, packed, raw_bytes)
    }

    /// Writes one buffer that is already compressed, or is not to be.
    pub(crate) fn stored_buffer(
        &mut self,
        compressor: Compressor,
        stored: Bytes,
        raw_bytes: usize,
    ) -> Result<()> {
        self.buffer_head(compressor, stored.len(), raw_bytes)?;
        self.body.push(stored);
        Ok(())
    }

    fn buffer_head(
        &mut self,
        compressor: Compressor,
        bytes: usize,
        raw_bytes: usize,
    ) -> Result<()> {
        self.descriptors.push(compressor as u8);
        self.put_u32(bytes)?;
        if compressor != Compressor::None {
            self.put_u32(raw_bytes)?;
        }
        if bytes > 0 {
            self.body.align(bytes);
        }
        Ok(())
    }

    pub(crate) fn put_u32(&mut self, value: usize) -> Result<()> {
        let Ok(value) = u32::try_from(value) else {
            refuse!(Limit, "{value} bytes or values are too many for a chunk")
        };
        self.descriptors.extend_from_slice(&value.to_le_bytes());
        Ok(())
    }

    pub(crate) fn count(&mut self, count: usize, bytes: usize) {
        self.decoded += (count * bytes) as u64;
    }

    /// Writes the column of a field of the schema, after those before it.
    fn field(
        &mut self,
        (number, field): (usize, &Field),
        pieces: Vec<Column>,
        n: usize,
        memory: &mut Memory,
        bases: &mut Bases,
    ) -> Result<()> {
        let data_type = &field.data_type;
        if let Some(width) =
            data_type.width().filter(|_| self.compression.encodes() && Bases::take(data_type))
            && narrow_width(&pieces).is_none()
            && pieces.iter().all(|piece| piece.missing() == 0)
        {
            self.descriptors.push(0);
            self.count(n, width);
            let values = gather_fixed(&pieces, width, false)?;
            encode::fixed(
                self,
                data_type,
                values.clone(),
                width,
                &mut memory.tried,
                &mut memory.kept,
                bases,
            )?;
            bases.push(number, width, values);
            return Ok(());
        }
        self.column(field, pieces, n, memory)
    }

    fn column(
        &mut self,
        field: &Field,
        pieces: Vec<Column>,
        n: usize,
        memory: &mut Memory,
    ) -> Result<()> {
        pieces.iter().try_for_each(|piece| check_not_null(field, piece, 0))?;
        self.masked_column(field, pieces, n, memory)
    }

    /// Writes a column in which what lies under the missing values of a struct or fixed-size list
    /// above is missing too, even if the field is not nullable: there it is zero.
    fn masked_column(
        &mut self,
        field: &Field,
        pieces: Vec<Column>,
        n: usize,
        memory: &mut Memory,
    ) -> Result<()> {
        let storage = field.data_type.storage();
        if storage == Storage::Null {
            self.descriptors.push(3);
            return Ok(());
        }
        let missing: usize = pieces.iter().map(Column::missing).sum();
        if missing == 0 || !field.nullable {
            self.descriptors.push(0);
            return self.values(&field.data_type, pieces, n, false, memory);
        }
        self.count(n.div_ceil(8), 1);
        if missing == n {
            self.descriptors.push(3);
            self.decoded += zero_bytes(&field.data_type, n)?;
            return Ok(());
        }
        let flat = matches!(storage, Storage::Boolean | Storage::Fixed(_) | Storage::Bytes { .. });
        let packed = match self.compression {
            Compression::None => false,
            Compression::Compact => flat && missing > n / 2,
            _ => flat,
        };
        self.descriptors.push(if packed { 2 } else { 1 });
        self.put_u32(missing)?;
        self.buffer(vec![Bytes::from(concat_bits(&pieces, |piece| piece.validity.clone()))])?;
        self.values(&field.data_type, pieces, n, packed, memory)
    }

    /// The values of a column of n rows. With `packed` the missing ones are left out, else they
    /// become zero.
    fn values(
        &mut self,
        data_type: &Type,
        pieces: Vec<Column>,
        n: usize,
        packed: bool,
        memory: &mut Memory,
    ) -> Result<()> {
        match data_type.storage() {
            Storage::Null => Ok(()),
            Storage::Boolean => {
                self.count(n.div_ceil(8), 1);
                self.booleans(&pieces, packed)
            }
            Storage::Fixed(width) => {
                self.count(n, width);
                if let Some(narrow) = narrow_width(&pieces) {
                    return encode::narrow(
                        self,
                        data_type,
                        gather_fixed(&pieces, narrow, packed)?,
                        narrow,
                        &mut memory.tried,
                        &mut memory.kept,
                    );
                }
                if self.compression.encodes() {
                    let values = gather_fixed(&pieces, width, packed)?;
                    let Memory { tried, kept, .. } = memory;
                    return encode::fixed(
                        self,
                        data_type,
                        values,
                        width,
                        tried,
                        kept,
                        &Bases::default(),
                    );
                }
                self.descriptors.push(0);
                let missing =
                    pieces.iter().any(|piece| piece.validity.is_some() && piece.missing() > 0);
                let parts = match missing {
                    true => vec![gather_fixed(&pieces, width, packed)?],
                    false => pieces
                        .iter()
                        .map(|piece| fixed_bytes(piece, width))
                        .collect::<Result<_>>()?,
                };
                self.buffer(parts)
            }
            Storage::Bytes { utf8 } => {
                self.count(n + 1, 4);
                let strings = gather_strings(&pieces, packed)?;
                self.decoded += strings.data_bytes() as u64;
                if self.compression.encodes() {
                    let Memory { symbols, kept, tried, .. } = memory;
                    return encode::strings(self, strings, utf8, tried, symbols, kept);
                }
                self.descriptors.push(0);
                self.buffer(vec![strings.offsets])?;
                self.buffer(strings.data)
            }
            Storage::List | Storage::Map => {
                self.count(n + 1, 4);
                let (offsets, children, total) = gather_lists(&pieces)?;
                if self.compression.encodes() {
                    encode::list_lengths(self, &offsets)?;
                } else {
                    self.descriptors.push(0);
                    self.buffer(vec![Bytes::from(offsets)])?;
                }
                match data_type {
                    Type::List(item) => self.column(item, children, total, memory.child(0)),
                    Type::Map { key, value, .. } => {
                        self.column(key, struct_child(&children, 0)?, total, memory.child(0))?;
                        self.column(value, struct_child(&children, 1)?, total, memory.child(1))
                    }
                    other => refuse!(Unsupported, "{other:?} is not a list"),
                }
            }
            Storage::FixedList(size) => {
                let Type::FixedList { item, .. } = data_type else {
                    refuse!(Unsupported, "not a fixed-size list")
                };
                let total = fixed_list_total(n, size)?;
                let children = pieces.iter().map(|piece| match &piece.values {
                    Values::FixedList { child, .. } => masked_child(item, child, piece, size),
                    other => refuse!(Unsupported, "{} instead of a fixed-size list", name(other)),
                });
                let children = children.collect::<Result<_>>()?;
                self.masked_column(item, children, total, memory.child(0))
            }
            Storage::Struct => {
                let Type::Struct(fields) = data_type else { refuse!(Unsupported, "not a struct") };
                for (i, field) in fields.iter().enumerate() {
                    let children = struct_child(&pieces, i)?;
                    let masked = children
                        .iter()
                        .zip(&pieces)
                        .map(|(child, parent)| masked_child(field, child, parent, 1));
                    let masked = masked.collect::<Result<_>>()?;
                    self.masked_column(field, masked, n, memory.child(i))?;
                }
                Ok(())
            }
            Storage::Dictionary => self.dictionary(data_type, &pieces, n, memory),
        }
    }

    fn booleans(&mut self, pieces: &[Column], packed: bool) -> Result<()> {
        let mut out = BitWriter::default();
        for piece in pieces {
            let Values::Boolean(bits) = &piece.values else {
                refuse!(Unsupported, "{} instead of booleans", name(&piece.values))
            };
            match &piece.validity {
                Some(validity) if packed => {
                    ones(validity).for_each(|i| out.push(u64::from(bits.bit(i)), 1))
                }
                Some(validity) => bits
                    .words()
                    .zip(validity.words())
                    .for_each(|((a, n), (b, _))| out.push(a & b, n)),
                None => bits.words().for_each(|(word, n)| out.push(word, n)),
            }
        }
        let (bytes, n) = out.finish();
        if self.compression.encodes() && n > 0 {
            let set: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
            if set == 0 || set as usize == n {
                self.descriptors.extend_from_slice(&[1, u8::from(set > 0)]);
                return Ok(());
            }
        }
        self.descriptors.push(0);
        self.buffer(vec![Bytes::from(bytes)])
    }

    /// Values of a dictionary type. Pieces with other entries are appended to the first one's.
    fn dictionary(
        &mut self,
        data_type: &Type,
        pieces: &[Column],
        n: usize,
        memory: &mut Memory,
    ) -> Result<()> {
        let Type::Dictionary { index, value, .. } = data_type else {
            refuse!(Unsupported, "not a dictionary")
        };
        let mut dictionaries: Vec<&Column> = Vec::new();
        let mut starts = Vec::new();
        let mut count = 0usize;
        for piece in pieces {
            let Values::Dictionary { entries, .. } = &piece.values else {
                refuse!(Unsupported, "{} instead of a dictionary", name(&piece.values))
            };
            if dictionaries.last().is_none_or(|last| !same_entries(last, entries)) {
                starts.push(count);
                count += entries.rows;
                dictionaries.push(entries);
            } else if let Some(start) = starts.last().copied() {
                starts.push(start);
            }
        }
        self.put_u32(count)?;
        self.column(
            &value.entries_field(),
            dictionaries.into_iter().cloned().collect(),
            count,
            memory.child(0),
        )?;
        let width = index.width().unwrap_or(0);
        self.count(n, width);
        let mut indexes = Vec::with_capacity(n * width);
        for (piece, start) in pieces.iter().zip(starts) {
            let gathered = gather_fixed(std::slice::from_ref(piece), width, false)?;
            if start == 0 {
                indexes.extend_from_slice(&gathered);
                continue;
            }
            for (i, raw) in gathered.chunks_exact(width).enumerate() {
                let mut wide = [0; 8];
                wide[..width].copy_from_slice(raw);
                let moved =
                    if piece.is_valid(i) { u64::from_le_bytes(wide) + start as u64 } else { 0 };
                let signed =
                    !matches!(**index, Type::UInt8 | Type::UInt16 | Type::UInt32 | Type::UInt64);
                if moved >> (8 * width - usize::from(signed)).min(63) != 0 {
                    refuse!(
                        Unsupported,
                        "the dictionaries of one column have {count} entries, more than its index can count"
                    );
                }
                indexes.extend_from_slice(&moved.to_le_bytes()[..width]);
            }
        }
        if self.compression.encodes() {
            return encode::integers(self, Bytes::from(indexes), width);
        }
        self.descriptors.push(0);
        self.buffer(vec![Bytes::from(indexes)])
    }
}

/// Checks that a column that must not have missing values has none, beyond those that a parent
/// hides.
fn check_not_null(field: &Field, column: &Column, hidden: usize) -> Result<()> {
    if !field.nullable && field.data_type != Type::Null && column.missing() > hidden {
        let missing = column.missing() - hidden;
        refuse!(
            Missing,
            "column {:?} is declared NOT NULL, and {missing} of its values are NULL",
            field.name
        );
    }
    Ok(())
}

/// What n missing values of a type decode to, without their own bitmap (chunk.md section 5).
fn zero_bytes(data_type: &Type, n: usize) -> Result<u64> {
    let n64 = n as u64;
    Ok(match data_type {
        Type::Null => 0,
        Type::Boolean => n64.div_ceil(8),
        Type::Utf8 | Type::Binary => (n64 + 1) * 4,
        Type::List(item) => (n64 + 1) * 4 + zero_bytes(&item.data_type, 0)?,
        Type::Map { key, value, .. } => {
            (n64 + 1) * 4 + zero_bytes(&key.data_type, 0)? + zero_bytes(&value.data_type, 0)?
        }
        Type::FixedList { size, item } => {
            zero_bytes(&item.data_type, fixed_list_total(n, *size as usize)?)?
        }
        Type::Struct(fields) => fields
            .iter()
            .try_fold(0, |sum, field| Ok::<_, Error>(sum + zero_bytes(&field.data_type, n)?))?,
        Type::Dictionary { index, value, .. } => {
            n64 * index.width().unwrap_or(0) as u64 + zero_bytes(value, 0)?
        }
        fixed => n64 * fixed.width().unwrap_or(0) as u64,
    })
}
