//! Columns in memory: what sources produce, chunks are made of, and Arrow arrays are made from.
//!
//! A column is a tree of shared byte buffers in Arrow's layout, without a dependency on Arrow: the
//! PostgreSQL extension fills one from datums, the module `arrow` shares one with an array. Slicing
//! shares the buffers and copies nothing.

use bytes::Bytes;

/// Bytes of a value that [`Values::Narrow`] decodes to.
pub(crate) const DECIMAL_BYTES: usize = 16;

/// Bits `offset .. offset + len` of some bytes, least significant first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bitmap {
    /// The bytes that hold the bits.
    pub bytes: Bytes,
    /// The position of the first bit.
    pub offset: usize,
    /// The number of bits.
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

    /// The number of bits that are 1.
    pub fn ones(&self) -> usize {
        self.words().map(|(word, _)| word.count_ones() as usize).sum()
    }

    /// The bits in words of 64, each with its number of bits. The first bit is the least
    /// significant one; the last word is filled up with zeros.
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

/// The values of a column. Buffers begin with the column's first row, and may go on after its last
/// one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values {
    /// No values: all are missing.
    Null,
    /// One bit per value.
    Boolean(Bitmap),
    /// `width` bytes a value.
    Fixed {
        /// Bytes of a value.
        width: usize,
        /// The values.
        bytes: Bytes,
    },
    /// Decimals of 128 bits as unscaled integers of 32 or 64 bits, in two's complement. A source
    /// need not widen them: a chunk carries them at this width.
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
    /// Lists and maps. A map's child is a struct of keys and values.
    List {
        /// n + 1 offsets into the child, u32; the first need not be 0.
        offsets: Bytes,
        /// The items.
        child: Box<Column>,
    },
    /// Lists of one size.
    FixedList {
        /// Items per list.
        size: usize,
        /// The items.
        child: Box<Column>,
    },
    /// A column per field.
    Struct(Vec<Column>),
    /// Indexes into entries, for dictionary types.
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
    /// The number of values, missing ones included.
    pub rows: usize,
    /// A bit per value, 1 where it is present; none if all are.
    pub validity: Option<Bitmap>,
    /// The values.
    pub values: Values,
}

impl Column {
    /// The number of missing values.
    pub fn missing(&self) -> usize {
        match (&self.values, &self.validity) {
            (Values::Null, _) => self.rows,
            (_, Some(validity)) => validity.len - validity.ones(),
            (_, None) => 0,
        }
    }

    /// Whether value `i` is present.
    pub fn is_valid(&self, i: usize) -> bool {
        !matches!(self.values, Values::Null)
            && self.validity.as_ref().is_none_or(|validity| validity.bit(i))
    }

    /// The `rows` values from `from` on; shares the buffers.
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

    /// An upper bound on the values that take no bytes (chunk.md section 5), among the `rows`
    /// values from `from` on.
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

    /// An upper bound on the bytes that the `rows` values from `from` on take in a chunk unencoded,
    /// without descriptors and padding. It bounds their share of `decoded_bytes` too.
    pub fn plain_bytes(&self, from: usize, rows: usize) -> u64 {
        // A bitmap is always counted: the column may get one from a struct above it, or from other
        // slices in the same chunk.
        let mask = rows.div_ceil(8);
        let values = match &self.values {
            // They take no bytes, but a chunk has a limit for them.
            Values::Null => rows as u64,
            Values::Boolean(_) => rows.div_ceil(8) as u64,
            Values::Fixed { width, .. } => (rows * width) as u64,
            // The size that they decode to.
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

/// The first item of the `rows` values from `from` on, and the number of their items.
pub(crate) fn span(offsets: &Bytes, from: usize, rows: usize) -> (usize, usize) {
    let (first, last) = (u32_at(offsets, from), u32_at(offsets, from + rows));
    (first as usize, last.saturating_sub(first) as usize)
}

/// Offset `i` of a buffer of offsets.
pub(crate) fn u32_at(offsets: &[u8], i: usize) -> u32 {
    let at = i * 4;
    u32::from_le_bytes([offsets[at], offsets[at + 1], offsets[at + 2], offsets[at + 3]])
}

/// The numbers of a buffer of u32.
pub(crate) fn u32s(bytes: &[u8]) -> impl ExactSizeIterator<Item = u32> + Clone + '_ {
    bytes.as_chunks::<4>().0.iter().map(|raw| u32::from_le_bytes(*raw))
}

/// Rows as columns of the same length.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The number of rows.
    pub rows: usize,
    /// A column per field of the schema.
    pub columns: Vec<Column>,
}

impl Batch {
    /// The `rows` rows from `from` on; shares the buffers.
    pub fn slice(&self, from: usize, rows: usize) -> Self {
        Self { rows, columns: self.columns.iter().map(|column| column.slice(from, rows)).collect() }
    }

    /// The sum of [`Column::plain_bytes`] over the columns.
    pub fn plain_bytes(&self, from: usize, rows: usize) -> u64 {
        if self.columns.is_empty() {
            return rows as u64;
        }
        self.columns.iter().map(|column| column.plain_bytes(from, rows)).sum()
    }
}
