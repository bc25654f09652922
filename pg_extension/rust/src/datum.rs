//! Values as PostgreSQL holds them in memory: datums, and what they point to.
//!
//! A datum is 64 bits: a value passed by value, or a pointer to one passed by reference. A varlena
//! is a value of variable length, with a header of one or four bytes.

use std::ptr::slice_from_raw_parts;

use dray_format::Type;
use dray_pgtypes::numeric::Numeric;
use dray_pgtypes::{Kind, PgType};

/// `NAMEDATALEN`, as `dray.h` asserts. It includes the terminating zero.
const NAME_BYTES_MAX: usize = 64;
/// `ALIGNOF_INT`, the `typalign` of all varlenas that are read here.
const VARLENA_ALIGNMENT: usize = 4;
/// The most digits of a decimal that 32 and 64 bits hold.
const DECIMAL32_PRECISION_MAX: u8 = 9;
const DECIMAL64_PRECISION_MAX: u8 = 18;
/// Base-10,000 digits that surely fit in 64 bits.
const DECIMAL64_DIGITS_MAX: i32 = 4;

/// 10,000 to the power of the index: the factor of that many trailing zero digits. With the last
/// index there are no other digits.
static ZEROS: [u64; 5] = [1, 10_000, 100_000_000, 1_000_000_000_000, 0];

/// How the datums of a column are read.
///
/// Only ordinary values of common types are read here. All others are serialized by the server and
/// read by dray-pgtypes, as values of servers without the extension are, so that both paths give
/// the same results.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DatumKind {
    Boolean,
    Fixed2,
    Fixed4,
    Fixed8,
    Date,
    Timestamp,
    Time,
    Money,
    Uuid,
    Varlena,
    Name,
    Decimal32(SmallDecimal),
    Decimal64(SmallDecimal),
    Decimal128 {
        precision: u8,
        scale: i8,
    },
    Decimal256 {
        precision: u8,
        scale: i8,
    },
    NumericText,
    NumericFloat,
    /// Not read here: the type's send or output function serializes the value.
    Serialized,
}

impl DatumKind {
    /// The kind for a PostgreSQL type that becomes a column of `data_type`. `is_utf8` says that the
    /// encoding of the database is UTF-8.
    pub(crate) fn of(pg_type: &PgType, data_type: &Type, is_utf8: bool) -> Self {
        match (&pg_type.kind, pg_type.extension.as_str()) {
            (Kind::Domain(base), _) => return Self::of(base, data_type, is_utf8),
            (Kind::Base, "citext") if is_utf8 => return Self::Varlena,
            (Kind::Base, "") => {}
            _ => return Self::Serialized,
        }
        match (pg_type.oid, data_type) {
            (16, Type::Boolean) => Self::Boolean,
            (21, Type::Int16) => Self::Fixed2,
            (23, Type::Int32) | (26 | 28 | 29, Type::UInt32) | (700, Type::Float32) => Self::Fixed4,
            (20, Type::Int64) | (701, Type::Float64) => Self::Fixed8,
            (17, Type::Binary) => Self::Varlena,
            (25 | 114 | 1042 | 1043, Type::Utf8) if is_utf8 => Self::Varlena,
            (19, Type::Utf8) if is_utf8 => Self::Name,
            (790, Type::Decimal128 { .. }) => Self::Money,
            (1082, Type::Date32) => Self::Date,
            (1083, Type::Time64(_)) => Self::Time,
            (1114 | 1184, Type::Timestamp { .. }) => Self::Timestamp,
            (
                1700,
                Type::Decimal128 {
                    precision: precision @ ..=DECIMAL32_PRECISION_MAX,
                    scale: scale @ 0..,
                },
            ) => Self::Decimal32(SmallDecimal::new(*precision, *scale)),
            (
                1700,
                Type::Decimal128 {
                    precision: precision @ ..=DECIMAL64_PRECISION_MAX,
                    scale: scale @ 0..,
                },
            ) => Self::Decimal64(SmallDecimal::new(*precision, *scale)),
            (1700, Type::Decimal128 { precision, scale }) => {
                Self::Decimal128 { precision: *precision, scale: *scale }
            }
            (1700, Type::Decimal256 { precision, scale }) => {
                Self::Decimal256 { precision: *precision, scale: *scale }
            }
            (1700, Type::Float64) => Self::NumericFloat,
            (1700, Type::Utf8) if pg_type.typmod < 0 => Self::NumericText,
            (2950, Type::FixedBinary(16)) => Self::Uuid,
            _ => Self::Serialized,
        }
    }

    pub(crate) fn is_string(self) -> bool {
        matches!(self, Self::Varlena | Self::Name | Self::NumericText)
    }

    /// The bytes that a value has in its column's vector: for strings, those of an offset.
    pub(crate) fn width(self) -> usize {
        match self {
            Self::Boolean => 1,
            Self::Fixed2 => 2,
            Self::Fixed4
            | Self::Date
            | Self::Decimal32(_)
            | Self::Varlena
            | Self::Name
            | Self::NumericText => 4,
            Self::Fixed8
            | Self::Timestamp
            | Self::Time
            | Self::Decimal64(_)
            | Self::NumericFloat => 8,
            Self::Money | Self::Uuid | Self::Decimal128 { .. } => 16,
            Self::Decimal256 { .. } => 32,
            Self::Serialized => 0,
        }
    }
}

/// The type of a decimal of at most 18 digits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SmallDecimal {
    precision: u8,
    scale: i8,
    /// Scaled values are below this.
    limit: u64,
    /// Base-10,000 digits after the point.
    fraction: i32,
    /// Decimal digits of the last base-10,000 digit that are beyond the scale: 0 to 3.
    beyond: u8,
}

impl SmallDecimal {
    fn new(precision: u8, scale: i8) -> Self {
        debug_assert!(precision <= DECIMAL64_PRECISION_MAX && scale >= 0);
        let fraction = (i32::from(scale) + 3) / 4;
        let beyond = (fraction * 4 - i32::from(scale)) as u8;
        Self { precision, scale, limit: 10u64.pow(precision.into()), fraction, beyond }
    }

    /// The value times `10^scale`. `None` if the column's type does not have it.
    #[inline(always)]
    pub(crate) fn read(self, stored: &[u8]) -> Option<i64> {
        self.read_short(stored).or_else(|| self.read_long(stored))
    }

    /// Reads a value of up to four base-10,000 digits with a short header (`NumericShort` in
    /// numeric.c). Nearly all values are such.
    #[inline(always)]
    fn read_short(self, stored: &[u8]) -> Option<i64> {
        let (header, digits) = stored.split_first_chunk::<2>()?;
        let header = u16::from_le_bytes(*header);
        if header & 0xC000 != 0x8000 {
            return None;
        }
        let low = i32::from(header & 0x3F);
        let weight = if header & 0x40 != 0 { low - 0x40 } else { low };
        let digits = digits.as_chunks::<2>().0;
        // Zero digits at the end are not stored.
        let zeros = weight + 1 + self.fraction - digits.len() as i32;
        if zeros < 0 || zeros + digits.len() as i32 > DECIMAL64_DIGITS_MAX {
            return if digits.is_empty() { Some(0) } else { None };
        }
        let sum = digits
            .iter()
            .fold(0, |sum, digit| sum * 10_000 + u64::from(u16::from_le_bytes(*digit)));
        let sum = sum * ZEROS[zeros as usize];
        // Dividing by a constant is faster.
        let (scaled, rest) = match self.beyond {
            0 => (sum, 0),
            1 => (sum / 10, sum % 10),
            2 => (sum / 100, sum % 100),
            _ => (sum / 1000, sum % 1000),
        };
        if rest != 0 || scaled >= self.limit {
            return None;
        }
        // Below 10^16.
        let scaled = scaled as i64;
        Some(if header & 0x2000 != 0 { -scaled } else { scaled })
    }

    #[cold]
    fn read_long(self, stored: &[u8]) -> Option<i64> {
        let scaled = Numeric::from_stored(stored)?.to_i128(self.precision, self.scale)?;
        i64::try_from(scaled).ok()
    }
}

/// A row, whose values are read from the first column to the last.
///
/// # Safety
/// The caller of an unsafe method promises that
/// - the column last given to [`Self::is_null`] is not NULL,
/// - its type has values of the form that the method reads,
/// - the method is called once for the column, and
/// - the memory of the row is valid, and does not change, while the result is used.
pub(crate) trait Row {
    /// Moves to the next column, `column`. Returns whether its value is NULL.
    fn is_null(&mut self, column: usize) -> bool;

    /// Reads a value of N bytes that is passed by value. Its `typalign` is N.
    unsafe fn value<const N: usize>(&mut self) -> [u8; N];

    /// A pointer to a value of N bytes that is passed by reference, with `typalign` 1. It may be
    /// shorter in memory: see [`Self::name`].
    unsafe fn reference<const N: usize>(&mut self) -> *const [u8; N];

    /// The contents of a varlena with `typalign` 4, or none if it is compressed or stored
    /// elsewhere. No further column can be read then.
    unsafe fn varlena(&mut self) -> Option<&[u8]>;

    /// The bytes of a `name` before its terminating zero.
    #[inline(always)]
    unsafe fn name(&mut self) -> &[u8] {
        // SAFETY: the caller promises that a name is there, valid while the result is used. The
        // result borrows the row.
        unsafe { &*name_bytes(self.reference()) }
    }
}

/// A row as the server's functions pass it: an array of datums.
pub(crate) struct Datums<'a> {
    datums: &'a [usize],
    nulls: &'a [u8],
    datum: usize,
}

impl<'a> Datums<'a> {
    /// `datums` and `nulls` have an element for each column. The datum of a NULL is not used.
    pub(crate) fn new(datums: &'a [usize], nulls: &'a [u8]) -> Self {
        debug_assert_eq!(datums.len(), nulls.len());
        Self { datums, nulls, datum: 0 }
    }
}

impl Row for Datums<'_> {
    #[inline(always)]
    fn is_null(&mut self, column: usize) -> bool {
        self.datum = self.datums[column];
        self.nulls[column] != 0
    }

    #[inline(always)]
    unsafe fn value<const N: usize>(&mut self) -> [u8; N] {
        // A value shorter than a datum is in its low bytes.
        let bytes = self.datum.to_le_bytes();
        *bytes.first_chunk().unwrap_or(&[0; N])
    }

    #[inline(always)]
    unsafe fn reference<const N: usize>(&mut self) -> *const [u8; N] {
        self.datum as *const [u8; N]
    }

    #[inline(always)]
    unsafe fn varlena(&mut self) -> Option<&[u8]> {
        // SAFETY: the caller promises that the datum points to a varlena, valid while the result is
        // used. The result borrows the row.
        unsafe { varlena_bytes(self.datum as *const u8).map(|bytes| &*bytes) }
    }
}

/// A row as it lies on its table's page (`htup_details.h`), one value after another. Reading it in
/// place spares an array of datums.
pub(crate) struct TupleInPlace {
    /// The data of the tuple, and how far it has been read. The server aligns it to 8 bytes
    /// (`MAXALIGN`), so that offsets are aligned as addresses are.
    data: *const u8,
    offset: usize,
    /// The null bitmap: a bit per column, 1 for values that are present. Null if all are.
    present: *const u8,
}

impl TupleInPlace {
    /// # Safety
    /// Until the row is dropped:
    /// - `data` points to the data of a tuple, which has a value for each column that is read and
    ///   not NULL. Values are aligned as from `data`.
    /// - `present` is null, or points to a bitmap with a bit for each column that is asked for.
    /// - Both are valid and do not change: the tuple's page stays pinned.
    pub(crate) unsafe fn new(data: *const u8, present: *const u8) -> Self {
        Self { data, offset: 0, present }
    }
}

impl Row for TupleInPlace {
    #[inline(always)]
    fn is_null(&mut self, column: usize) -> bool {
        // SAFETY: the promise of `new`: a bitmap that is there has a bit for this column.
        !self.present.is_null() && unsafe { *self.present.add(column / 8) } & 1 << (column % 8) == 0
    }

    #[inline(always)]
    unsafe fn value<const N: usize>(&mut self) -> [u8; N] {
        let start = self.offset.next_multiple_of(N);
        self.offset = start + N;
        // SAFETY: the caller promises a value of N bytes, which lies at the next multiple of N.
        unsafe { *self.data.add(start).cast() }
    }

    #[inline(always)]
    unsafe fn reference<const N: usize>(&mut self) -> *const [u8; N] {
        let start = self.offset;
        self.offset = start + N;
        // SAFETY: the caller promises a value of N bytes, which begins right here.
        unsafe { self.data.add(start).cast() }
    }

    #[inline(always)]
    unsafe fn varlena(&mut self) -> Option<&[u8]> {
        // SAFETY: the caller promises a varlena, valid while the result is used. The result borrows
        // the row. A header of four bytes is aligned to four, and the padding before it is zero; a
        // header of one byte is not zero, and not aligned (`att_align_pointer`).
        unsafe {
            if *self.data.add(self.offset) == 0 {
                self.offset = self.offset.next_multiple_of(VARLENA_ALIGNMENT);
            }
            let bytes = &*varlena_bytes(self.data.add(self.offset))?;
            self.offset = bytes.as_ptr_range().end as usize - self.data as usize;
            Some(bytes)
        }
    }
}

/// The contents of a varlena (`varatt.h`), or none if it is compressed or stored elsewhere.
///
/// # Safety
/// `pointer` points to a whole varlena: its header, and as many bytes as the header says. The
/// result may be used as long as these are valid and do not change.
#[inline(always)]
unsafe fn varlena_bytes(pointer: *const u8) -> Option<*const [u8]> {
    // SAFETY: the caller promises a varlena. Its first byte tells the size of the header.
    unsafe {
        let first = *pointer;
        if first & 1 == 1 {
            // One byte of header. A length of 0 marks a value stored elsewhere.
            let bytes = usize::from(first >> 1);
            return (bytes > 0).then(|| slice_from_raw_parts(pointer.add(1), bytes - 1));
        }
        if first & 2 != 0 {
            return None;
        }
        let bytes = u32::from_ne_bytes(*(pointer as *const [u8; 4])) >> 2;
        Some(slice_from_raw_parts(pointer.add(4), (bytes as usize).saturating_sub(4)))
    }
}

/// The bytes of a name before its terminating zero.
///
/// # Safety
/// `name` points to bytes up to a zero, or to `NAMEDATALEN` of them. The result may be used as long
/// as these are valid and do not change.
#[inline(always)]
unsafe fn name_bytes(name: *const [u8; NAME_BYTES_MAX]) -> *const [u8] {
    let pointer = name.cast::<u8>();
    // SAFETY: the caller's promise. Nothing after the zero is read: an index holds names without
    // the padding, and an index-only scan may return them so.
    let len = unsafe {
        (0..NAME_BYTES_MAX).position(|at| *pointer.add(at) == 0).unwrap_or(NAME_BYTES_MAX)
    };
    slice_from_raw_parts(pointer, len)
}

#[cfg(not(all(target_endian = "little", target_pointer_width = "64")))]
compile_error!("datums are read as little-endian machines of 64 bits hold them");

#[cfg(test)]
mod tests {
    use super::*;

    /// A value as numeric.c stores it, in the short form.
    fn short(negative: bool, weight: i32, digits: &[u16]) -> Vec<u8> {
        let header = 0x8000 | if negative { 0x2000 } else { 0 } | 2 << 7 | (weight & 0x7F) as u16;
        std::iter::once(header).chain(digits.iter().copied()).flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn short_decimals() {
        let decimal = SmallDecimal::new(15, 2);
        assert_eq!(decimal.read(&short(false, 0, &[17])), Some(1700));
        assert_eq!(decimal.read(&short(true, 1, &[2, 4710, 3500])), Some(-2_471_035));
        assert_eq!(decimal.read(&short(false, -1, &[400])), Some(4));
        assert_eq!(decimal.read(&short(false, 0, &[])), Some(0));
        assert_eq!(
            decimal.read(&short(false, 3, &[9, 9999, 9999, 9999, 9900])),
            Some(999_999_999_999_999)
        );
        // More digits than the column has: after the point, and before it.
        assert_eq!(decimal.read(&short(false, -1, &[401])), None);
        assert_eq!(decimal.read(&short(false, 3, &[10])), None);
        assert_eq!(
            SmallDecimal::new(18, 0).read(&short(false, 4, &[99])),
            Some(990_000_000_000_000_000)
        );
    }
}
