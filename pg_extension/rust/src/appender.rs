//! A column to which datums are appended: the path of all ordinary values.
//!
//! [`dray_format::ColumnBuilder`] checks the type and the space of each value. A column here reads
//! one kind of datum only, and space is reserved for many rows and all columns at once, so
//! appending is a store. Other values are serialized and go through dray-pgtypes.

use bytes::Bytes;
use dray_format::{Bitmap, COUNT_MAX, Column, Values};
use dray_pgtypes::numeric::Numeric;

use crate::datum::{DatumKind, Row};
use crate::failure::Failure;

/// From 1970-01-01, Arrow's epoch, to 2000-01-01, PostgreSQL's.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH_MICROSECONDS: i64 = EPOCH_DAYS as i64 * DAY_MICROSECONDS;
const DAY_MICROSECONDS: i64 = 86_400_000_000;

/// The result of appending a datum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Appended {
    /// The value was appended. `variable_bytes` are those outside the column's fixed part.
    Value { variable_bytes: usize },
    /// Nothing was appended: the value is compressed or stored elsewhere, and must be detoasted.
    NeedsDetoasting,
    /// Nothing was appended: the type's send or output function must serialize the value.
    NeedsSerialized,
}

/// A column under construction.
///
/// While no value is NULL, `values` is written beyond its length, and its length is set when the
/// vector grows or is finished. The first NULL fills the vector up to its reserved rows.
#[derive(Debug)]
pub(crate) struct Appender {
    kind: DatumKind,
    /// The bytes of a value in `values`: a number, or the offset of a string in `data`.
    width: usize,
    values: Vec<u8>,
    /// The contents of strings.
    data: Vec<u8>,
    /// A bit per reserved row, 0 for NULL; empty while there is no NULL.
    validity: Vec<u8>,
    /// The rows that `values` has space for.
    capacity: usize,
    /// The most bytes of one row, and of all rows before the last one.
    row_bytes_max: usize,
    waiting_bytes_max: usize,
}

/// The most bytes that are reserved for the strings of the next chunk.
const NEXT_DATA_BYTES_MAX: usize = 16 << 20;
/// Above this size, strings grow by a quarter instead of doubling.
const LARGE_BYTES: usize = 4 << 20;

impl Appender {
    pub(crate) fn new(kind: DatumKind, row_bytes_max: usize, waiting_bytes_max: usize) -> Self {
        Self {
            kind,
            width: kind.width(),
            values: Vec::new(),
            data: Vec::new(),
            validity: Vec::new(),
            capacity: 0,
            row_bytes_max,
            waiting_bytes_max,
        }
    }

    /// Makes space for `rows` rows in all.
    ///
    /// # Safety
    /// `filled` rows have been appended since the last call of [`Self::finish`], if any.
    pub(crate) unsafe fn reserve(&mut self, filled: usize, rows: usize) -> Result<(), Failure> {
        debug_assert!(filled <= rows && filled <= self.capacity);
        // SAFETY: the caller's promise.
        unsafe { self.set_filled(filled) };
        // One value more, for the end of the last string.
        let bytes = (rows + 1).checked_mul(self.width).ok_or(Failure::Memory)?;
        self.values
            .try_reserve_exact(bytes - self.values.len().min(bytes))
            .map_err(|_| Failure::Memory)?;
        self.capacity = rows;
        if self.validity.is_empty() { Ok(()) } else { self.fill() }
    }

    /// Sets the length of `values`, beyond which [`Self::put`] writes.
    ///
    /// # Safety
    /// `filled` rows have been appended since the last call of [`Self::finish`], if any.
    unsafe fn set_filled(&mut self, filled: usize) {
        if self.validity.is_empty() {
            debug_assert!(filled * self.width <= self.values.capacity());
            // SAFETY: without NULLs, appending a row has written its value, within the capacity.
            unsafe { self.values.set_len(filled * self.width) }
        }
    }

    /// Fills all reserved rows: not NULL, and zero.
    fn fill(&mut self) -> Result<(), Failure> {
        let bytes = self.capacity.div_ceil(8);
        self.validity
            .try_reserve_exact(bytes - self.validity.len().min(bytes))
            .map_err(|_| Failure::Memory)?;
        self.validity.resize(bytes, u8::MAX);
        // This stays within the capacity that is already allocated.
        self.values.resize(self.capacity * self.width, 0);
        Ok(())
    }

    /// Prepares for the first NULL, in row `row`.
    ///
    /// # Safety
    /// `row` rows have been appended since the last call of [`Self::finish`], if any.
    #[cold]
    unsafe fn begin_validity(&mut self, row: usize) -> Result<(), Failure> {
        // SAFETY: the caller's promise.
        unsafe { self.set_filled(row) };
        self.fill()
    }

    /// Appends NULL as row `at`.
    ///
    /// # Safety
    /// Space for row `at` has been reserved, and `at` rows have been appended since the last call
    /// of [`Self::finish`], if any.
    #[inline(always)]
    pub(crate) unsafe fn push_null(&mut self, at: usize) -> Result<(), Failure> {
        debug_assert!(at < self.capacity);
        if self.validity.is_empty() {
            // SAFETY: the caller promises that `at` rows have been appended.
            unsafe { self.begin_validity(at)? };
        }
        if let Some(byte) = self.validity.get_mut(at / 8) {
            *byte &= !(1 << (at % 8));
        }
        if self.kind.is_string() {
            // NULL is an empty string. In other columns it is the zero that `fill` has written.
            // SAFETY: the caller promises space for the row, and this column has strings.
            unsafe { self.begin_string(at) };
        }
        Ok(())
    }

    /// Appends the value of the column at which `row` is as row `at`, if it is ordinary.
    ///
    /// # Safety
    /// - Space for row `at` has been reserved, and `at` rows have been appended since the last call
    ///   of [`Self::finish`], if any.
    /// - The value is not NULL, and has the PostgreSQL type that this column's kind was made for.
    /// - The memory that it points to is valid, and does not change, until this returns.
    #[inline(always)]
    pub(crate) unsafe fn push(
        &mut self,
        at: usize,
        row: &mut impl Row,
    ) -> Result<Appended, Failure> {
        debug_assert!(at < self.capacity);
        // SAFETY: the caller promises space for the row, which `put` needs with this column's
        // width. It also promises a value of the kind's type, which the methods of `row` need; each
        // arm calls one of them, once.
        unsafe {
            match self.kind {
                DatumKind::Fixed4 => self.put(at, row.value::<4>()),
                DatumKind::Fixed8 => self.put(at, row.value::<8>()),
                DatumKind::Decimal32(decimal) => {
                    let Some(stored) = row.varlena() else { return Ok(Appended::NeedsDetoasting) };
                    match decimal.read(stored) {
                        // Its magnitude is below 10^9.
                        Some(scaled) => self.put(at, (scaled as i32).to_le_bytes()),
                        None => return Ok(Appended::NeedsSerialized),
                    }
                }
                DatumKind::Decimal64(decimal) => {
                    let Some(stored) = row.varlena() else { return Ok(Appended::NeedsDetoasting) };
                    match decimal.read(stored) {
                        Some(scaled) => self.put(at, scaled.to_le_bytes()),
                        None => return Ok(Appended::NeedsSerialized),
                    }
                }
                DatumKind::Varlena => {
                    let Some(bytes) = row.varlena() else { return Ok(Appended::NeedsDetoasting) };
                    return self.put_string(at, bytes);
                }
                DatumKind::Date => match i32::from_le_bytes(row.value()).checked_add(EPOCH_DAYS) {
                    Some(days) if days != i32::MIN + EPOCH_DAYS => self.put(at, days.to_le_bytes()),
                    _ => return Ok(Appended::NeedsSerialized),
                },
                DatumKind::Timestamp => {
                    match i64::from_le_bytes(row.value()).checked_add(EPOCH_MICROSECONDS) {
                        Some(time) if time != i64::MIN + EPOCH_MICROSECONDS => {
                            self.put(at, time.to_le_bytes())
                        }
                        _ => return Ok(Appended::NeedsSerialized),
                    }
                }
                DatumKind::Fixed2 => self.put(at, row.value::<2>()),
                DatumKind::Boolean => self.put(at, [u8::from(row.value() != [0])]),
                DatumKind::Time => match i64::from_le_bytes(row.value()) {
                    time @ 0..DAY_MICROSECONDS => self.put(at, time.to_le_bytes()),
                    _ => return Ok(Appended::NeedsSerialized),
                },
                DatumKind::Money => {
                    self.put(at, i128::from(i64::from_le_bytes(row.value())).to_le_bytes())
                }
                DatumKind::Uuid => self.put(at, *row.reference::<16>()),
                DatumKind::Name => return self.put_string(at, row.name()),
                DatumKind::Decimal128 { .. }
                | DatumKind::Decimal256 { .. }
                | DatumKind::NumericText
                | DatumKind::NumericFloat => {
                    let Some(stored) = row.varlena() else { return Ok(Appended::NeedsDetoasting) };
                    return self.push_numeric(at, stored);
                }
                DatumKind::Serialized => return Ok(Appended::NeedsSerialized),
            }
        }
        Ok(Appended::Value { variable_bytes: 0 })
    }

    /// # Safety
    /// Space for row `at` has been reserved, and this column's kind is one of `numeric`'s that is
    /// read through [`Numeric`].
    unsafe fn push_numeric(&mut self, at: usize, stored: &[u8]) -> Result<Appended, Failure> {
        let Some(numeric) = Numeric::from_stored(stored) else {
            return Ok(Appended::NeedsSerialized);
        };
        // SAFETY: the caller promises space for the row. The width of each value is that of its
        // kind, and the remaining kind, text, has strings.
        unsafe {
            match self.kind {
                DatumKind::Decimal128 { precision, scale } => {
                    match numeric.to_i128(precision, scale) {
                        Some(scaled) => self.put(at, scaled.to_le_bytes()),
                        None => return Ok(Appended::NeedsSerialized),
                    }
                }
                DatumKind::Decimal256 { precision, scale } => {
                    match numeric.to_i256(precision, scale) {
                        Some(scaled) => self.put(at, scaled),
                        None => return Ok(Appended::NeedsSerialized),
                    }
                }
                DatumKind::NumericFloat => {
                    let float = numeric.to_f64();
                    if float.is_infinite() && numeric.is_finite() {
                        // dray-pgtypes refuses what is beyond float64.
                        return Ok(Appended::NeedsSerialized);
                    }
                    self.put(at, float.to_le_bytes());
                }
                _ => {
                    self.reserve_data(numeric.text_bytes_max())?;
                    self.begin_string(at);
                    let start = self.data.len();
                    numeric.write_text(&mut self.data);
                    return Ok(Appended::Value { variable_bytes: self.data.len() - start });
                }
            }
        }
        Ok(Appended::Value { variable_bytes: 0 })
    }

    /// Writes the value of row `at`, which may be beyond the length of `values`.
    ///
    /// # Safety
    /// Space for row `at` has been reserved, or `at` is the number of reserved rows. N is the
    /// column's width.
    #[inline(always)]
    unsafe fn put<const N: usize>(&mut self, at: usize, value: [u8; N]) {
        debug_assert!(N == self.width && self.values.capacity() >= (at + 1) * N);
        // SAFETY: the caller promises that the value lies within the capacity, which has a value
        // more than reserved rows.
        unsafe { self.values.as_mut_ptr().add(at * N).cast::<[u8; N]>().write_unaligned(value) }
    }

    /// Writes the offset of row `at`'s string, which begins at the end of `data`.
    ///
    /// # Safety
    /// Space for row `at` has been reserved, or `at` is the number of reserved rows. The column has
    /// strings.
    #[inline(always)]
    unsafe fn begin_string(&mut self, at: usize) {
        // `grow_data` keeps this below 2^31.
        let start = self.data.len() as u32;
        // SAFETY: the caller's promise. Offsets have four bytes, and so do values of such columns.
        unsafe { self.put(at, start.to_le_bytes()) }
    }

    /// Writes the string of row `at`.
    ///
    /// # Safety
    /// Space for row `at` has been reserved, and the column has strings.
    #[inline(always)]
    unsafe fn put_string(&mut self, at: usize, bytes: &[u8]) -> Result<Appended, Failure> {
        self.reserve_data(bytes.len())?;
        // SAFETY: the caller's promise. `data` now has space for the bytes, and does not contain
        // them.
        unsafe {
            self.begin_string(at);
            let len = self.data.len();
            copy_string(bytes, self.data.as_mut_ptr().add(len));
            self.data.set_len(len + bytes.len());
        }
        Ok(Appended::Value { variable_bytes: bytes.len() })
    }

    #[inline(always)]
    fn reserve_data(&mut self, bytes: usize) -> Result<(), Failure> {
        if self.data.capacity() - self.data.len() >= bytes { Ok(()) } else { self.grow_data(bytes) }
    }

    #[cold]
    fn grow_data(&mut self, bytes: usize) -> Result<(), Failure> {
        let needed = self.data.len().saturating_add(bytes);
        if needed > COUNT_MAX {
            return Err(Failure::Limit(format!(
                "the strings of one column of a chunk have over {COUNT_MAX} bytes"
            )));
        }
        if needed > self.row_bytes_max.saturating_add(self.waiting_bytes_max) {
            return Err(Failure::row_too_large(self.row_bytes_max as u64));
        }
        match needed > LARGE_BYTES {
            false => self.data.try_reserve(bytes),
            true => self.data.try_reserve_exact(bytes.max(self.data.len() / 4)),
        }
        .map_err(|_| Failure::Memory)
    }

    /// Takes all rows out. Space must be reserved again before the next one.
    ///
    /// # Safety
    /// Since the last call of this, if any, [`Self::reserve`] has been called, and `rows` rows have
    /// been appended.
    pub(crate) unsafe fn finish(&mut self, rows: usize) -> Result<Column, Failure> {
        debug_assert!(rows <= self.capacity);
        // SAFETY: the caller's promise.
        unsafe { self.set_filled(rows) };
        self.values.truncate(rows * self.width);
        let validity = match self.validity.is_empty() {
            true => None,
            false => {
                let mut bytes = std::mem::take(&mut self.validity);
                bytes.truncate(rows.div_ceil(8));
                if let (Some(last), 1..) = (bytes.last_mut(), rows % 8) {
                    *last &= (1 << (rows % 8)) - 1;
                }
                Some(Bitmap { bytes: Bytes::from(bytes), offset: 0, len: rows })
            }
        };
        self.capacity = 0;
        if self.kind.is_string() {
            // SAFETY: `reserve` has made space for one value more than reserved rows. All values
            // before it have been written.
            unsafe {
                self.begin_string(rows);
                self.values.set_len((rows + 1) * self.width);
            }
        }
        let bytes = std::mem::take(&mut self.values);
        let values = match self.kind {
            DatumKind::Boolean => {
                Values::Boolean(Bitmap { bytes: bits(&bytes)?, offset: 0, len: rows })
            }
            DatumKind::Decimal32(_) | DatumKind::Decimal64(_) => {
                Values::Narrow { width: self.width, bytes: Bytes::from(bytes) }
            }
            _ if self.kind.is_string() => {
                let mut next = Vec::new();
                // The strings of the next chunk will be about as long.
                let expected = self.data.len() + self.data.len() / 8;
                next.try_reserve_exact(expected.min(NEXT_DATA_BYTES_MAX))
                    .map_err(|_| Failure::Memory)?;
                let data = std::mem::replace(&mut self.data, next);
                Values::Bytes { offsets: Bytes::from(bytes), data: Bytes::from(data) }
            }
            _ => Values::Fixed { width: self.width, bytes: Bytes::from(bytes) },
        };
        Ok(Column { rows, validity, values })
    }
}

/// Copies a string. Most are short, and take less time than a call of memcpy.
///
/// # Safety
/// `to` is valid for writes of `bytes.len()` bytes, which do not overlap `bytes`.
#[inline(always)]
unsafe fn copy_string(bytes: &[u8], to: *mut u8) {
    /// Copies the first and the last N bytes, which may overlap.
    ///
    /// # Safety
    /// `to` is valid for writes of `bytes.len()` bytes, which do not overlap `bytes`.
    #[inline(always)]
    unsafe fn words<const N: usize>(bytes: &[u8], to: *mut u8) {
        if let (Some(first), Some(last)) = (bytes.first_chunk::<N>(), bytes.last_chunk::<N>()) {
            // SAFETY: the caller promises `bytes.len()` bytes at `to`, and these are at least N.
            unsafe {
                to.cast::<[u8; N]>().write_unaligned(*first);
                to.add(bytes.len() - N).cast::<[u8; N]>().write_unaligned(*last);
            }
        }
    }
    // SAFETY: the caller's promise is the same. `to` has a byte if there is one.
    unsafe {
        match bytes.len() {
            0 => {}
            1 => *to = bytes[0],
            2..4 => words::<2>(bytes, to),
            4..8 => words::<4>(bytes, to),
            8..=16 => words::<8>(bytes, to),
            17..=32 => words::<16>(bytes, to),
            len => std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, len),
        }
    }
}

/// Packs bytes, each 0 or 1, into bits.
fn bits(bytes: &[u8]) -> Result<Bytes, Failure> {
    let mut out = Vec::new();
    out.try_reserve_exact(bytes.len().div_ceil(8)).map_err(|_| Failure::Memory)?;
    out.extend(
        bytes.chunks(8).map(|eight| eight.iter().rev().fold(0, |bits, byte| bits << 1 | byte)),
    );
    Ok(Bytes::from(out))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests {
    use super::*;
    use crate::datum::Datums;

    /// # Safety
    /// As for [`Appender::push`], with a datum of the appender's kind.
    unsafe fn push(appender: &mut Appender, row: usize, datum: usize) -> Appended {
        let (datums, nulls) = ([datum], [0]);
        let mut values = Datums::new(&datums, &nulls);
        assert!(!values.is_null(0));
        // SAFETY: the caller promises what the appender needs.
        unsafe { appender.push(row, &mut values).unwrap() }
    }

    /// Appends rows as a stream does: it reserves space, then appends values and NULLs.
    fn column(read: DatumKind, datums: &[Option<usize>]) -> Column {
        let mut appender = Appender::new(read, usize::MAX, usize::MAX);
        for (row, datum) in datums.iter().enumerate() {
            // One row more each time, so that each path of growing is taken.
            // SAFETY: `row` rows have been appended.
            unsafe { appender.reserve(row, row + 1).unwrap() };
            match datum {
                Some(datum) => {
                    // SAFETY: there is space, and the datum is of the test's kind.
                    let appended = unsafe { push(&mut appender, row, *datum) };
                    assert!(matches!(appended, Appended::Value { .. }));
                }
                // SAFETY: there is space.
                None => unsafe { appender.push_null(row).unwrap() },
            }
        }
        // SAFETY: as many rows have been appended.
        unsafe { appender.finish(datums.len()).unwrap() }
    }

    #[test]
    fn nulls_are_at_their_positions() {
        let datums: Vec<_> = (0..21).map(|i| (i % 3 != 2).then_some(i)).collect();
        let found = column(DatumKind::Fixed2, &datums);
        assert_eq!((found.rows, found.missing()), (21, 7));
        assert_eq!(
            (0..21).filter(|i| !found.is_valid(*i)).collect::<Vec<_>>(),
            [2, 5, 8, 11, 14, 17, 20]
        );
        let Values::Fixed { width: 2, bytes } = &found.values else { panic!("{found:?}") };
        let expected: Vec<u8> =
            datums.iter().flat_map(|datum| (datum.unwrap_or(0) as u16).to_le_bytes()).collect();
        assert_eq!(bytes, &expected);
        // The bits after the last row are 0.
        assert_eq!(found.validity.unwrap().bytes.last(), Some(&0b0000_1101));
    }

    #[test]
    fn booleans_become_bits() {
        let found = column(
            DatumKind::Boolean,
            &[Some(1), Some(0), None, Some(1), Some(1), Some(0), Some(0), Some(0), Some(1)],
        );
        let Values::Boolean(bits) = &found.values else { panic!("{found:?}") };
        assert_eq!(&bits.bytes[..], [0b0001_1001, 1]);
    }

    #[test]
    fn strings_with_headers_of_both_kinds() {
        // `varatt.h`: a length of one byte with the lowest bit set, or of four, shifted by two.
        let short = [4 << 1 | 1, b'a', b'b', b'c'];
        let mut long = ((4 + 200u32) << 2).to_le_bytes().to_vec();
        long.extend([b'x'; 200]);
        let address = |bytes: &[u8]| Some(bytes.as_ptr() as usize);
        let found =
            column(DatumKind::Varlena, &[address(&short), None, address(&long), address(&[3])]);
        let Values::Bytes { offsets, data } = &found.values else { panic!("{found:?}") };
        let offsets: Vec<u32> =
            offsets.as_chunks::<4>().0.iter().map(|raw| u32::from_le_bytes(*raw)).collect();
        assert_eq!(offsets, [0, 3, 3, 203, 203]);
        assert_eq!((data.len(), &data[..3]), (203, &b"abc"[..]));
    }

    #[test]
    fn extraordinary_values_are_not_appended() {
        let mut appender = Appender::new(DatumKind::Date, usize::MAX, usize::MAX);
        // SAFETY: none have been appended.
        unsafe { appender.reserve(0, 1).unwrap() };
        for days in [i32::MIN, i32::MAX, i32::MAX - 1] {
            // SAFETY: there is space, and the datum is a date.
            let appended = unsafe { push(&mut appender, 0, days as u32 as usize) };
            assert_eq!(appended, Appended::NeedsSerialized);
        }
        let mut appender = Appender::new(DatumKind::Varlena, usize::MAX, usize::MAX);
        // SAFETY: none have been appended.
        unsafe { appender.reserve(0, 1).unwrap() };
        // Stored elsewhere, and compressed.
        for header in [[1u8, 18, 0, 0], [0b10, 1, 0, 0]] {
            // SAFETY: there is space, and nothing after the header is read.
            let appended = unsafe { push(&mut appender, 0, header.as_ptr() as usize) };
            assert_eq!(appended, Appended::NeedsDetoasting);
        }
    }
}
