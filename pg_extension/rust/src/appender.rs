//! A column that datums are appended to: the path that every ordinary value takes.
//!
//! [`dray_format::Builder`] checks each value against its column's type and for room. Here a column
//! reads one kind of datum for its whole life, and room for a row is made once, for all columns;
//! appending is then a store. Anything out of the ordinary is left to the builder of dray-pgtypes'
//! values.

use bytes::Bytes;
use dray_format::{Bitmap, COUNT_MAX, Column, Values};
use dray_pgtypes::numeric::Numeric;

use crate::datum::{self, Read, Row};
use crate::stream::Failure;

/// PostgreSQL counts from 2000-01-01, Arrow from 1970-01-01.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH_MICROSECONDS: i64 = EPOCH_DAYS as i64 * DAY_MICROSECONDS;
const DAY_MICROSECONDS: i64 = 86_400_000_000;

/// What became of a datum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was appended; so many bytes are beyond the column's fixed part.
    Pushed(usize),
    /// It is compressed or stored elsewhere: PostgreSQL must make it plain first.
    Plain,
    /// It must come through the type's send or output function.
    Sent,
}

/// A column under construction, of values that [`Read`] can read.
#[derive(Debug)]
pub(crate) struct Appender {
    read: Read,
    /// Bytes of a value in `values`: a number, or where a string begins.
    width: usize,
    values: Vec<u8>,
    /// The strings.
    data: Vec<u8>,
    /// Which values are there; empty as long as all are. The bits of rows to come are 1.
    validity: Vec<u8>,
    rows_room: usize,
    row_bytes_max: usize,
    /// The most that the rows before the last one have.
    waiting_bytes_max: usize,
}

/// The next chunk's strings get no more room than this before they come.
const KEPT_BYTES_MAX: usize = 16 << 20;
/// From this size on strings grow by a quarter, not to twice their size.
const LARGE_BYTES: usize = 4 << 20;

impl Appender {
    pub(crate) fn new(read: Read, row_bytes_max: usize, waiting_bytes_max: usize) -> Self {
        Self {
            read,
            width: read.width(),
            values: Vec::new(),
            data: Vec::new(),
            validity: Vec::new(),
            rows_room: 0,
            row_bytes_max,
            waiting_bytes_max,
        }
    }

    /// Makes room for `rows` rows in all.
    ///
    /// # Safety
    /// `filled` rows have been appended.
    pub(crate) unsafe fn reserve(&mut self, filled: usize, rows: usize) -> Result<(), Failure> {
        // SAFETY: the caller's promise.
        unsafe { self.count(filled) };
        // And for where the last string ends.
        let bytes = (rows + 1).checked_mul(self.width).ok_or(Failure::Memory)?;
        self.values
            .try_reserve_exact(bytes - self.values.len().min(bytes))
            .map_err(|_| Failure::Memory)?;
        self.rows_room = rows;
        if self.validity.is_empty() { Ok(()) } else { self.fill() }
    }

    /// Makes the rows' values part of the vector: `put` writes behind its end.
    ///
    /// # Safety
    /// As [`Self::reserve`].
    unsafe fn count(&mut self, filled: usize) {
        if self.validity.is_empty() {
            // SAFETY: the caller's promise: none was missing, so each was put there.
            unsafe { self.values.set_len(filled * self.width) }
        }
    }

    /// Makes all rows to come present and zero.
    fn fill(&mut self) -> Result<(), Failure> {
        let bytes = self.rows_room.div_ceil(8);
        self.validity
            .try_reserve_exact(bytes - self.validity.len().min(bytes))
            .map_err(|_| Failure::Memory)?;
        self.validity.resize(bytes, u8::MAX);
        // There is room.
        self.values.resize(self.rows_room * self.width, 0);
        Ok(())
    }

    /// Prepares for the first missing value, that of row `row`.
    ///
    /// # Safety
    /// So many rows have been appended.
    #[cold]
    unsafe fn begin_validity(&mut self, row: usize) -> Result<(), Failure> {
        // SAFETY: the caller's promise.
        unsafe { self.count(row) };
        self.fill()
    }

    /// Appends a missing value as row `at`.
    ///
    /// # Safety
    /// There is room for the row, and all before it have been appended.
    #[inline(always)]
    pub(crate) unsafe fn push_null(&mut self, at: usize) -> Result<(), Failure> {
        if self.validity.is_empty() {
            // SAFETY: the caller's promise.
            unsafe { self.begin_validity(at)? };
        }
        if let Some(byte) = self.validity.get_mut(at / 8) {
            *byte &= !(1 << (at % 8));
        }
        if self.read.is_string() {
            // SAFETY: the caller's promise. A string without bytes lies there; else zero does.
            unsafe { self.begin_string(at) };
        }
        Ok(())
    }

    /// Appends the value of the column at which `row` is as row `at`, if it is an ordinary one.
    ///
    /// # Safety
    /// There is room for the row, and all before it have been appended. The value is of the type
    /// that `read` is for, and not NULL.
    #[inline(always)]
    pub(crate) unsafe fn push(
        &mut self,
        at: usize,
        row: &mut impl Row,
    ) -> Result<Outcome, Failure> {
        // SAFETY: the caller's promise, for all of these.
        unsafe {
            match self.read {
                Read::Fixed4 => self.put(at, row.value::<4>()),
                Read::Fixed8 => self.put(at, row.value::<8>()),
                Read::Decimal32(decimal) => {
                    let Some(stored) = row.varlena() else { return Ok(Outcome::Plain) };
                    match decimal.read(stored) {
                        // Below 10^9.
                        Some(scaled) => self.put(at, (scaled as i32).to_le_bytes()),
                        None => return Ok(Outcome::Sent),
                    }
                }
                Read::Decimal64(decimal) => {
                    let Some(stored) = row.varlena() else { return Ok(Outcome::Plain) };
                    match decimal.read(stored) {
                        Some(scaled) => self.put(at, scaled.to_le_bytes()),
                        None => return Ok(Outcome::Sent),
                    }
                }
                Read::Varlena => {
                    let Some(bytes) = row.varlena() else { return Ok(Outcome::Plain) };
                    return self.put_string(at, bytes);
                }
                Read::Date => match i32::from_le_bytes(row.value()).checked_add(EPOCH_DAYS) {
                    Some(days) if days != i32::MIN + EPOCH_DAYS => self.put(at, days.to_le_bytes()),
                    _ => return Ok(Outcome::Sent),
                },
                Read::Timestamp => {
                    match i64::from_le_bytes(row.value()).checked_add(EPOCH_MICROSECONDS) {
                        Some(time) if time != i64::MIN + EPOCH_MICROSECONDS => {
                            self.put(at, time.to_le_bytes())
                        }
                        _ => return Ok(Outcome::Sent),
                    }
                }
                Read::Fixed2 => self.put(at, row.value::<2>()),
                Read::Boolean => self.put(at, [u8::from(row.value() != [0])]),
                Read::Time => match i64::from_le_bytes(row.value()) {
                    time @ 0..DAY_MICROSECONDS => self.put(at, time.to_le_bytes()),
                    _ => return Ok(Outcome::Sent),
                },
                Read::Money => {
                    self.put(at, i128::from(i64::from_le_bytes(row.value())).to_le_bytes())
                }
                Read::Uuid => self.put(at, *row.reference::<16>()),
                Read::Name => return self.put_string(at, datum::name(row.reference())),
                Read::Decimal128 { .. }
                | Read::Decimal256 { .. }
                | Read::NumericText
                | Read::NumericFloat => {
                    let Some(stored) = row.varlena() else { return Ok(Outcome::Plain) };
                    return self.push_numeric(at, stored);
                }
                Read::Sent => return Ok(Outcome::Sent),
            }
        }
        Ok(Outcome::Pushed(0))
    }

    /// # Safety
    /// There is room for the row, and the column is one of a numeric's.
    unsafe fn push_numeric(&mut self, at: usize, stored: &[u8]) -> Result<Outcome, Failure> {
        let Some(numeric) = Numeric::from_stored(stored) else { return Ok(Outcome::Sent) };
        // SAFETY: the caller's promise.
        unsafe {
            match self.read {
                Read::Decimal128 { precision, scale } => match numeric.to_i128(precision, scale) {
                    Some(scaled) => self.put(at, scaled.to_le_bytes()),
                    None => return Ok(Outcome::Sent),
                },
                Read::Decimal256 { precision, scale } => match numeric.to_i256(precision, scale) {
                    Some(scaled) => self.put(at, scaled),
                    None => return Ok(Outcome::Sent),
                },
                Read::NumericFloat => {
                    let float = numeric.to_f64();
                    if float.is_infinite() && numeric.is_finite() {
                        // Beyond float64, which is refused in words there.
                        return Ok(Outcome::Sent);
                    }
                    self.put(at, float.to_le_bytes());
                }
                _ => {
                    self.reserve_data(numeric.text_bytes_max())?;
                    self.begin_string(at);
                    let start = self.data.len();
                    numeric.write_text(&mut self.data);
                    return Ok(Outcome::Pushed(self.data.len() - start));
                }
            }
        }
        Ok(Outcome::Pushed(0))
    }

    /// # Safety
    /// There is room for the row, and N is the column's width.
    #[inline(always)]
    unsafe fn put<const N: usize>(&mut self, at: usize, value: [u8; N]) {
        debug_assert!(N == self.width && self.values.capacity() >= (at + 1) * N);
        // SAFETY: the caller's promise.
        unsafe { self.values.as_mut_ptr().add(at * N).cast::<[u8; N]>().write_unaligned(value) }
    }

    /// # Safety
    /// There is room for the row, and the column is one of strings.
    #[inline(always)]
    unsafe fn begin_string(&mut self, at: usize) {
        // `grow_data` keeps this below 2^31.
        let start = self.data.len() as u32;
        // SAFETY: the caller's promise.
        unsafe { self.put(at, start.to_le_bytes()) }
    }

    /// # Safety
    /// As [`Self::begin_string`].
    #[inline(always)]
    unsafe fn put_string(&mut self, at: usize, bytes: &[u8]) -> Result<Outcome, Failure> {
        self.reserve_data(bytes.len())?;
        // SAFETY: the caller's promise; there is room for the bytes.
        unsafe {
            self.begin_string(at);
            let len = self.data.len();
            copy_string(bytes, self.data.as_mut_ptr().add(len));
            self.data.set_len(len + bytes.len());
        }
        Ok(Outcome::Pushed(bytes.len()))
    }

    #[inline(always)]
    fn reserve_data(&mut self, bytes: usize) -> Result<(), Failure> {
        if self.data.capacity() - self.data.len() >= bytes { Ok(()) } else { self.grow_data(bytes) }
    }

    #[cold]
    fn grow_data(&mut self, bytes: usize) -> Result<(), Failure> {
        let wanted = self.data.len().saturating_add(bytes);
        if wanted > COUNT_MAX {
            return Err(Failure::Limit(format!(
                "the strings of one column of a chunk have over {COUNT_MAX} bytes"
            )));
        }
        if wanted > self.row_bytes_max.saturating_add(self.waiting_bytes_max) {
            return Err(Failure::row_too_large(self.row_bytes_max as u64));
        }
        match wanted > LARGE_BYTES {
            false => self.data.try_reserve(bytes),
            true => self.data.try_reserve_exact(bytes.max(self.data.len() / 4)),
        }
        .map_err(|_| Failure::Memory)
    }

    /// Takes the rows out. Room must be made again before the next one.
    ///
    /// # Safety
    /// So many rows have been appended.
    pub(crate) unsafe fn finish(&mut self, rows: usize) -> Result<Column, Failure> {
        // SAFETY: the caller's promise.
        unsafe { self.count(rows) };
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
        self.rows_room = 0;
        if self.read.is_string() {
            // SAFETY: `reserve` makes room for one value more than there are rows, which is then
            // part of the vector.
            unsafe {
                self.begin_string(rows);
                self.values.set_len((rows + 1) * self.width);
            }
        }
        let bytes = std::mem::take(&mut self.values);
        let values = match self.read {
            Read::Boolean => Values::Boolean(Bitmap { bytes: bits(&bytes)?, offset: 0, len: rows }),
            Read::Decimal32(_) | Read::Decimal64(_) => {
                Values::Narrow { width: self.width, bytes: Bytes::from(bytes) }
            }
            _ if self.read.is_string() => {
                let mut next = Vec::new();
                // The next chunk's strings will be about as long.
                let kept = (self.data.len() + self.data.len() / 8).min(KEPT_BYTES_MAX);
                next.try_reserve_exact(kept).map_err(|_| Failure::Memory)?;
                let data = std::mem::replace(&mut self.data, next);
                Values::Bytes { offsets: Bytes::from(bytes), data: Bytes::from(data) }
            }
            _ => Values::Fixed { width: self.width, bytes: Bytes::from(bytes) },
        };
        Ok(Column { rows, validity, values })
    }
}

/// Copies a string. Most are short, and the call of a function that is good for all lengths takes
/// longer than they do.
///
/// # Safety
/// There is room for the bytes at `to`, which is not part of them.
#[inline(always)]
unsafe fn copy_string(bytes: &[u8], to: *mut u8) {
    /// Two words, which may overlap.
    ///
    /// # Safety
    /// As `copy_string`.
    #[inline(always)]
    unsafe fn words<const N: usize>(bytes: &[u8], to: *mut u8) {
        if let (Some(first), Some(last)) = (bytes.first_chunk::<N>(), bytes.last_chunk::<N>()) {
            // SAFETY: the caller's promise; there are at least N bytes.
            unsafe {
                to.cast::<[u8; N]>().write_unaligned(*first);
                to.add(bytes.len() - N).cast::<[u8; N]>().write_unaligned(*last);
            }
        }
    }
    // SAFETY: the caller's promise.
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

/// A bit a byte that is 0 or 1.
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

    unsafe fn push(appender: &mut Appender, row: usize, datum: usize) -> Outcome {
        let (datums, nulls) = ([datum], [0]);
        let mut values = Datums::new(&datums, &nulls);
        assert!(!values.is_null(0));
        // SAFETY: the caller's promise, which is that of the appender.
        unsafe { appender.push(row, &mut values).unwrap() }
    }

    /// Appends rows as a stream does: room first, then values and NULLs.
    fn column(read: Read, datums: &[Option<usize>]) -> Column {
        let mut appender = Appender::new(read, usize::MAX, usize::MAX);
        for (row, datum) in datums.iter().enumerate() {
            // Room for one row more each time: every way that room is made.
            // SAFETY: so many rows have been appended.
            unsafe { appender.reserve(row, row + 1).unwrap() };
            match datum {
                Some(datum) => {
                    // SAFETY: there is room, and the tests' datums are of the types that they say.
                    let outcome = unsafe { push(&mut appender, row, *datum) };
                    assert!(matches!(outcome, Outcome::Pushed(_)));
                }
                // SAFETY: there is room.
                None => unsafe { appender.push_null(row).unwrap() },
            }
        }
        // SAFETY: so many rows have been appended.
        unsafe { appender.finish(datums.len()).unwrap() }
    }

    #[test]
    fn nulls_have_their_place() {
        let datums: Vec<_> = (0..21).map(|i| (i % 3 != 2).then_some(i)).collect();
        let found = column(Read::Fixed2, &datums);
        assert_eq!((found.rows, found.missing()), (21, 7));
        assert_eq!(
            (0..21).filter(|i| !found.is_valid(*i)).collect::<Vec<_>>(),
            [2, 5, 8, 11, 14, 17, 20]
        );
        let Values::Fixed { width: 2, bytes } = &found.values else { panic!("{found:?}") };
        let expected: Vec<u8> =
            datums.iter().flat_map(|datum| (datum.unwrap_or(0) as u16).to_le_bytes()).collect();
        assert_eq!(bytes, &expected);
        // No bit is left over behind the last row.
        assert_eq!(found.validity.unwrap().bytes.last(), Some(&0b0000_1101));
    }

    #[test]
    fn booleans_become_bits() {
        let found = column(
            Read::Boolean,
            &[Some(1), Some(0), None, Some(1), Some(1), Some(0), Some(0), Some(0), Some(1)],
        );
        let Values::Boolean(bits) = &found.values else { panic!("{found:?}") };
        assert_eq!(&bits.bytes[..], [0b0001_1001, 1]);
    }

    #[test]
    fn strings_with_headers_of_both_kinds() {
        // `varatt.h`: a length of one byte with the lowest bit set, or of four, moved by two.
        let short = [4 << 1 | 1, b'a', b'b', b'c'];
        let mut long = ((4 + 200u32) << 2).to_le_bytes().to_vec();
        long.extend([b'x'; 200]);
        let address = |bytes: &[u8]| Some(bytes.as_ptr() as usize);
        let found = column(Read::Varlena, &[address(&short), None, address(&long), address(&[3])]);
        let Values::Bytes { offsets, data } = &found.values else { panic!("{found:?}") };
        let offsets: Vec<u32> =
            offsets.as_chunks::<4>().0.iter().map(|raw| u32::from_le_bytes(*raw)).collect();
        assert_eq!(offsets, [0, 3, 3, 203, 203]);
        assert_eq!((data.len(), &data[..3]), (203, &b"abc"[..]));
    }

    #[test]
    fn what_is_not_ordinary_is_left_to_others() {
        let mut appender = Appender::new(Read::Date, usize::MAX, usize::MAX);
        // SAFETY: none have been appended.
        unsafe { appender.reserve(0, 1).unwrap() };
        for days in [i32::MIN, i32::MAX, i32::MAX - 1] {
            // SAFETY: there is room, and a date is in its datum.
            assert_eq!(unsafe { push(&mut appender, 0, days as u32 as usize) }, Outcome::Sent);
        }
        let mut appender = Appender::new(Read::Varlena, usize::MAX, usize::MAX);
        // SAFETY: none have been appended.
        unsafe { appender.reserve(0, 1).unwrap() };
        // Stored elsewhere, and compressed.
        for header in [[1u8, 18, 0, 0], [0b10, 1, 0, 0]] {
            // SAFETY: there is room, and nothing behind the header is read.
            assert_eq!(unsafe { push(&mut appender, 0, header.as_ptr() as usize) }, Outcome::Plain);
        }
    }
}
