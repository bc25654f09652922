//! Values as PostgreSQL holds them in memory: datums, and what they point to.

use dray_format::Type;
use dray_pgtypes::numeric::Numeric;
use dray_pgtypes::{Kind, PgType};

/// `NAMEDATALEN`, which `dray.h` asserts; the string ends before.
const NAME_BYTES_MAX: usize = 64;
/// `ALIGNOF_INT`: the `typalign` of all varlenas that are read here.
const VARLENA_ALIGNMENT: usize = 4;
/// The most digits of a decimal that 32 and 64 bits hold.
const DECIMAL32_PRECISION_MAX: u8 = 9;
const DECIMAL64_PRECISION_MAX: u8 = 18;
/// Digits to the base of 10,000 that 64 bits hold with room to spare.
const DECIMAL64_DIGITS_MAX: i32 = 4;

/// What so many digits of zero multiply by. More come only after no other digit.
static ZEROS: [u64; 5] = [1, 10_000, 100_000_000, 1_000_000_000_000, 0];

/// How the datums of a column are read. What is read here is the ordinary value of a common type;
/// for everything else the server is asked ([`Read::Sent`]), and dray-pgtypes decides: that keeps
/// this path and that of stock servers the same.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Read {
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
    /// Not here: as the type's send or output function makes them.
    Sent,
}

impl Read {
    /// How to read values of a type whose column has become one of `data_type`, where the
    /// database's strings are UTF-8 or not.
    pub(crate) fn of(pg_type: &PgType, data_type: &Type, is_utf8: bool) -> Self {
        match (&pg_type.kind, pg_type.extension.as_str()) {
            (Kind::Domain(base), _) => return Self::of(base, data_type, is_utf8),
            (Kind::Base, "citext") if is_utf8 => return Self::Varlena,
            (Kind::Base, "") => {}
            _ => return Self::Sent,
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
            _ => Self::Sent,
        }
    }

    pub(crate) fn is_string(self) -> bool {
        matches!(self, Self::Varlena | Self::Name | Self::NumericText)
    }

    /// Bytes of a value while its column is built; of strings, where they begin.
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
            Self::Sent => 0,
        }
    }
}

/// A decimal of at most 18 digits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SmallDecimal {
    precision: u8,
    scale: i8,
    /// The largest value, and one.
    limit: u64,
    /// Digits to the base of 10,000 behind the point.
    fraction: i32,
    /// Decimal digits of the last of them that are beyond the scale.
    beyond: u8,
}

impl SmallDecimal {
    fn new(precision: u8, scale: i8) -> Self {
        let fraction = (i32::from(scale) + 3) / 4;
        // 0 to 3
        let beyond = (fraction * 4 - i32::from(scale)) as u8;
        Self { precision, scale, limit: 10u64.pow(precision.into()), fraction, beyond }
    }

    /// The value times `10^scale`; none if it is not one of the column's type.
    #[inline(always)]
    pub(crate) fn read(self, stored: &[u8]) -> Option<i64> {
        self.read_short(stored).or_else(|| self.read_long(stored))
    }

    /// Values of up to four digits with a short header (`NumericShort` in numeric.c): nearly all.
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
        // Digits that are left out at the end are zero.
        let zeros = weight + 1 + self.fraction - digits.len() as i32;
        if zeros < 0 || zeros + digits.len() as i32 > DECIMAL64_DIGITS_MAX {
            return if digits.is_empty() { Some(0) } else { None };
        }
        let sum = digits
            .iter()
            .fold(0, |sum, digit| sum * 10_000 + u64::from(u16::from_le_bytes(*digit)));
        let sum = sum * ZEROS[zeros as usize];
        // Constants divide faster.
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
/// Whoever calls the unsafe methods promises that the column last asked for is not NULL and has
/// values of the type that the method is for, and reads each value once.
pub(crate) trait Row {
    /// Goes to a column, the next one: whether its value is NULL.
    fn is_null(&mut self, column: usize) -> bool;
    /// A value of so many bytes that is passed by value, and so begins at a multiple of them.
    unsafe fn value<const N: usize>(&mut self) -> [u8; N];
    /// A value of so many bytes that is passed by reference, and begins anywhere.
    unsafe fn reference<const N: usize>(&mut self) -> *const [u8; N];
    /// The bytes of a varlena, or none if it is compressed or stored elsewhere: the row can't be
    /// read on then.
    unsafe fn varlena<'a>(&mut self) -> Option<&'a [u8]>;
}

/// A row as the server's functions pass it, each value by itself.
pub(crate) struct Datums<'a> {
    datums: &'a [usize],
    nulls: &'a [u8],
    datum: usize,
}

impl<'a> Datums<'a> {
    /// Both have a value for each column.
    pub(crate) fn new(datums: &'a [usize], nulls: &'a [u8]) -> Self {
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
        // Values shorter than a datum are in its low bytes.
        let bytes = self.datum.to_le_bytes();
        *bytes.first_chunk().unwrap_or(&[0; N])
    }

    #[inline(always)]
    unsafe fn reference<const N: usize>(&mut self) -> *const [u8; N] {
        self.datum as *const [u8; N]
    }

    #[inline(always)]
    unsafe fn varlena<'a>(&mut self) -> Option<&'a [u8]> {
        // SAFETY: the caller's promise.
        unsafe { varlena(self.datum as *const u8) }
    }
}

/// A row as a table's page has it (`htup_details.h`), one value after the other. Reading it where
/// it lies spares its way through an array of datums.
pub(crate) struct Stored {
    /// The tuple's data, which begins at a multiple of 8 (`MAXALIGN`), and how far it has been
    /// read.
    data: *const u8,
    offset: usize,
    /// A bit a column, 1 for values that are there; null when all are.
    present: *const u8,
}

impl Stored {
    /// # Safety
    /// `data` is that of a tuple that outlives this; `present` is its bitmap of as many bits as
    /// columns will be asked for, or null.
    pub(crate) unsafe fn new(data: *const u8, present: *const u8) -> Self {
        Self { data, offset: 0, present }
    }
}

impl Row for Stored {
    #[inline(always)]
    fn is_null(&mut self, column: usize) -> bool {
        // SAFETY: the promise of `new`.
        !self.present.is_null() && unsafe { *self.present.add(column / 8) } & 1 << (column % 8) == 0
    }

    #[inline(always)]
    unsafe fn value<const N: usize>(&mut self) -> [u8; N] {
        let start = self.offset.next_multiple_of(N);
        self.offset = start + N;
        // SAFETY: the caller's promise.
        unsafe { *self.data.add(start).cast() }
    }

    #[inline(always)]
    unsafe fn reference<const N: usize>(&mut self) -> *const [u8; N] {
        let start = self.offset;
        self.offset = start + N;
        // SAFETY: the caller's promise.
        unsafe { self.data.add(start).cast() }
    }

    #[inline(always)]
    unsafe fn varlena<'a>(&mut self) -> Option<&'a [u8]> {
        // SAFETY: the caller's promise. A header of four bytes begins at a multiple of them, and
        // what is skipped before it is zero; a header of one byte is not zero, and begins anywhere
        // (`att_align_pointer`).
        let bytes = unsafe {
            if *self.data.add(self.offset) == 0 {
                self.offset = self.offset.next_multiple_of(VARLENA_ALIGNMENT);
            }
            varlena(self.data.add(self.offset))?
        };
        self.offset = bytes.as_ptr_range().end as usize - self.data as usize;
        Some(bytes)
    }
}

/// The bytes of a varlena (`varatt.h`), or none if it is compressed or stored elsewhere.
///
/// # Safety
/// There is a varlena, which outlives the bytes.
#[inline(always)]
unsafe fn varlena<'a>(pointer: *const u8) -> Option<&'a [u8]> {
    // SAFETY: the caller's promise: a varlena has a first byte, which tells how many more there
    // are.
    unsafe {
        let first = *pointer;
        if first & 1 == 1 {
            // One byte of header; a length of 0 marks what is stored elsewhere.
            let bytes = usize::from(first >> 1);
            return (bytes > 0).then(|| std::slice::from_raw_parts(pointer.add(1), bytes - 1));
        }
        if first & 2 != 0 {
            return None;
        }
        let bytes = u32::from_ne_bytes(*(pointer as *const [u8; 4])) >> 2;
        Some(std::slice::from_raw_parts(pointer.add(4), (bytes as usize).saturating_sub(4)))
    }
}

/// The bytes of a name before the zeros.
///
/// # Safety
/// There are bytes up to a zero, or `NAMEDATALEN` of them, that outlive what is returned.
pub(crate) unsafe fn name<'a>(name: *const [u8; NAME_BYTES_MAX]) -> &'a [u8] {
    let pointer = name.cast::<u8>();
    // SAFETY: the caller's promise. Nothing is read behind the zero: an index holds names without
    // the rest, and an index-only scan may hand them out so.
    unsafe {
        let bytes =
            (0..NAME_BYTES_MAX).position(|at| *pointer.add(at) == 0).unwrap_or(NAME_BYTES_MAX);
        std::slice::from_raw_parts(pointer, bytes)
    }
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
        // More digits than the column has: behind the point, before it.
        assert_eq!(decimal.read(&short(false, -1, &[401])), None);
        assert_eq!(decimal.read(&short(false, 3, &[10])), None);
        assert_eq!(
            SmallDecimal::new(18, 0).read(&short(false, 4, &[99])),
            Some(990_000_000_000_000_000)
        );
    }
}
