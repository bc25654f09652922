//! Columns in memory: the currency between a source, the chunk's writer and reader, and Arrow.
//!
//! A column is a tree of shared byte buffers in Arrow's layout, without Arrow: the PostgreSQL
//! backend fills one from datums, the `arrow` module borrows one from an array. Slicing shares the
//! buffers and copies nothing.

use bytes::Bytes;

/// What [`Values::Narrow`] decodes to, a value.
pub(crate) const DECIMAL_BYTES: usize = 16;

/// Bits `offset .. offset + len` of some bytes, least significant first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bitmap {
    /// The bytes that hold the bits.
    pub bytes: Bytes,
    /// Where the first bit is.
    pub offset: usize,
    /// How many bits there are.
    pub len: usize,
}

impl Bitmap {
    /// Bit `i`, counted from the bitmap's own start.
    pub fn bit(&self, i: usize) -> bool {
        let at = self.offset + i;
        self.bytes[at / 8] >> (at % 8) & 1 == 1
    }

    /// The bits from `from` on, `len` of them.
    pub fn slice(&self, from: usize, len: usize) -> Self {
        Self { bytes: self.bytes.clone(), offset: self.offset + from, len }
    }

    /// How many bits are 1.
    pub fn ones(&self) -> usize {
        self.words().map(|(word, _)| word.count_ones() as usize).sum()
    }

    /// The bits in words of 64, the first in the least significant place; the last word is filled
    /// up with zeros. With each comes its number of bits.
    pub(crate) fn words(&self) -> impl Iterator<Item = (u64, usize)> + '_ {
        let shift = self.offset % 8;
        let start = self.offset / 8;
        (0..self.len.div_ceil(64)).map(move |i| {
            let bits = (self.len - i * 64).min(64);
            let at = start + i * 8;
            let mut low = [0; 8];
            let available = &self.bytes[at..self.bytes.len().min(at + 8)];
            low[..available.len()].copy_from_slice(available);
            let mut word = u64::from_le_bytes(low) >> shift;
            if shift > 0
                && let Some(high) = self.bytes.get(at + 8)
            {
                word |= u64::from(*high) << (64 - shift);
            }
            (if bits < 64 { word & ((1 << bits) - 1) } else { word }, bits)
        })
    }
}

/// The values of a column. Buffers may hold more than the column's rows at their end, but not at
/// their start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values {
    /// Nothing: every value is missing.
    Null,
    /// One bit a value.
    Boolean(Bitmap),
    /// `width` bytes a value.
    Fixed {
        /// Bytes of a value.
        width: usize,
        /// The values.
        bytes: Bytes,
    },
    /// Decimals of 128 bits that fit fewer: two's complement, as they are. A source that knows so
    /// need not widen them, for they are sent like this.
    Narrow {
        /// Bytes of a value: 4 or 8.
        width: usize,
        /// The values.
        bytes: Bytes,
    },
    /// Strings or binary.
    Bytes {
        /// n + 1 offsets into the data, u32; the first need not be 0.
        offsets: Bytes,
        /// The bytes of all values.
        data: Bytes,
    },
    /// Lists and maps; a map's child is a struct of keys and values.
    List {
        /// n + 1 offsets into the child, u32; the first need not be 0.
        offsets: Bytes,
        /// The items.
        child: Box<Column>,
    },
    /// Lists of one size.
    FixedList {
        /// Items of a list.
        size: usize,
        /// The items.
        child: Box<Column>,
    },
    /// A column a field.
    Struct(Vec<Column>),
    /// Indexes into entries, where the type itself is a dictionary.
    Dictionary {
        /// Bytes of an index.
        width: usize,
        /// The indexes.
        indexes: Bytes,
        /// The entries.
        entries: Box<Column>,
    },
}

/// A column, or a slice of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// How many values there are, missing ones counted.
    pub rows: usize,
    /// Which values are there; none if all are.
    pub validity: Option<Bitmap>,
    /// The values.
    pub values: Values,
}

impl Column {
    /// How many values are missing.
    pub fn missing(&self) -> usize {
        match (&self.values, &self.validity) {
            (Values::Null, _) => self.rows,
            (_, Some(validity)) => validity.len - validity.ones(),
            (_, None) => 0,
        }
    }

    /// Whether value `i` is there.
    pub fn is_valid(&self, i: usize) -> bool {
        !matches!(self.values, Values::Null)
            && self.validity.as_ref().is_none_or(|validity| validity.bit(i))
    }

    /// The values from `from` on, `rows` of them; shares the buffers.
    pub fn slice(&self, from: usize, rows: usize) -> Self {
        if from == 0 && rows == self.rows {
            return self.clone();
        }
        let values = match &self.values {
            Values::Null => Values::Null,
            Values::Boolean(bits) => Values::Boolean(bits.slice(from, rows)),
            Values::Fixed { width, bytes } => Values::Fixed {
                width: *width,
                bytes: bytes.slice(from * width..(from + rows) * width),
            },
            Values::Narrow { width, bytes } => Values::Narrow {
                width: *width,
                bytes: bytes.slice(from * width..(from + rows) * width),
            },
            Values::Bytes { offsets, data } => Values::Bytes {
                offsets: offsets.slice(from * 4..(from + rows + 1) * 4),
                data: data.clone(),
            },
            Values::List { offsets, child } => Values::List {
                offsets: offsets.slice(from * 4..(from + rows + 1) * 4),
                child: child.clone(),
            },
            Values::FixedList { size, child } => Values::FixedList {
                size: *size,
                child: Box::new(child.slice(from * size, rows * size)),
            },
            Values::Struct(children) => {
                Values::Struct(children.iter().map(|child| child.slice(from, rows)).collect())
            }
            Values::Dictionary { width, indexes, entries } => Values::Dictionary {
                width: *width,
                indexes: indexes.slice(from * width..(from + rows) * width),
                entries: entries.clone(),
            },
        };
        Self {
            rows,
            validity: self.validity.as_ref().map(|validity| validity.slice(from, rows)),
            values,
        }
    }

    /// How many of the column's values from `from` on, `rows` of them, take no bytes (chunk.md
    /// section 5); at least those that a reader counts.
    pub(crate) fn weightless(&self, from: usize, rows: usize) -> usize {
        match &self.values {
            Values::Null => rows,
            Values::List { offsets, child } => {
                let (first, items) = span(offsets, from, rows);
                child.weightless(first, items)
            }
            Values::FixedList { size, child } => {
                let lists = if *size == 0 { rows } else { 0 };
                lists.saturating_add(child.weightless(from * size, rows * size))
            }
            Values::Struct(children) if children.is_empty() => rows,
            Values::Struct(children) => children
                .iter()
                .map(|child| child.weightless(from, rows))
                .fold(0, usize::saturating_add),
            Values::Dictionary { entries, .. } => entries.weightless(0, entries.rows),
            _ => 0,
        }
    }

    /// The bytes of the column's values from `from` on, `rows` of them, as a chunk holds them
    /// unencoded: an upper bound, without descriptors and padding, and one of what they count in
    /// `decoded_bytes`.
    pub fn plain_bytes(&self, from: usize, rows: usize) -> u64 {
        // A mask is counted even where there is none: the column may get one from a struct above
        // it, or from other pieces of the same chunk.
        let mask = rows.div_ceil(8);
        let values = match &self.values {
            // They take none, but may not be too many in a chunk either.
            Values::Null => rows as u64,
            Values::Boolean(_) => rows.div_ceil(8) as u64,
            Values::Fixed { width, .. } => (rows * width) as u64,
            // What they decode to.
            Values::Narrow { .. } => (rows * DECIMAL_BYTES) as u64,
            Values::Bytes { offsets, .. } => ((rows + 1) * 4 + span(offsets, from, rows).1) as u64,
            Values::List { offsets, child } => {
                let (first, items) = span(offsets, from, rows);
                ((rows + 1) * 4) as u64 + child.plain_bytes(first, items)
            }
            Values::FixedList { size, child } => {
                let lists = if *size == 0 { rows as u64 } else { 0 };
                lists + child.plain_bytes(from * size, rows * size)
            }
            Values::Struct(children) if children.is_empty() => rows as u64,
            Values::Struct(children) => {
                children.iter().map(|child| child.plain_bytes(from, rows)).sum()
            }
            Values::Dictionary { width, entries, .. } => {
                (rows * width) as u64 + entries.plain_bytes(0, entries.rows)
            }
        };
        mask as u64 + values
    }
}

/// Where the items of `rows` values from `from` on begin, and how many there are.
pub(crate) fn span(offsets: &Bytes, from: usize, rows: usize) -> (usize, usize) {
    let (first, last) = (u32_at(offsets, from), u32_at(offsets, from + rows));
    (first as usize, last.saturating_sub(first) as usize)
}

/// Offset `i` of a buffer of offsets.
pub(crate) fn u32_at(offsets: &[u8], i: usize) -> u32 {
    let at = i * 4;
    u32::from_le_bytes([offsets[at], offsets[at + 1], offsets[at + 2], offsets[at + 3]])
}

/// A buffer of u32, one by one.
pub(crate) fn u32s(bytes: &[u8]) -> impl ExactSizeIterator<Item = u32> + Clone + '_ {
    bytes.as_chunks::<4>().0.iter().map(|raw| u32::from_le_bytes(*raw))
}

/// Rows of a result, as columns of the same length.
#[derive(Debug, Clone)]
pub struct Batch {
    /// How many rows there are.
    pub rows: usize,
    /// A column a field of the schema.
    pub columns: Vec<Column>,
}

impl Batch {
    /// The rows from `from` on; shares the buffers.
    pub fn slice(&self, from: usize, rows: usize) -> Self {
        Self { rows, columns: self.columns.iter().map(|column| column.slice(from, rows)).collect() }
    }

    /// The bytes of the rows from `from` on, as in [`Column::plain_bytes`].
    pub fn plain_bytes(&self, from: usize, rows: usize) -> u64 {
        if self.columns.is_empty() {
            return rows as u64;
        }
        self.columns.iter().map(|column| column.plain_bytes(from, rows)).sum()
    }
}
