//! Strings and bytes, and strings that are parsed.

use std::ops::Range;

use arrow::array::{Array, FixedSizeBinaryArray, GenericByteArray, GenericByteViewArray};
use arrow::datatypes::{ByteArrayType, ByteViewType};

use crate::error::Reason;
use crate::values::{
    LENGTH_BYTES, RowError, Scratch, TOO_LONG, VALUE_BYTES_MAX, Values, put, put_null,
};

/// An array of strings or bytes, in any of Arrow's layouts.
pub(crate) trait ByteArray: Send {
    fn is_null(&self, row: usize) -> bool;
    fn bytes(&self, row: usize) -> &[u8];
}

impl<T: ByteArrayType> ByteArray for GenericByteArray<T> {
    fn is_null(&self, row: usize) -> bool {
        Array::is_null(self, row)
    }

    #[inline]
    fn bytes(&self, row: usize) -> &[u8] {
        self.value(row).as_ref()
    }
}

impl<T: ByteViewType + ?Sized> ByteArray for GenericByteViewArray<T> {
    fn is_null(&self, row: usize) -> bool {
        Array::is_null(self, row)
    }

    #[inline]
    fn bytes(&self, row: usize) -> &[u8] {
        self.value(row).as_ref()
    }
}

impl ByteArray for FixedSizeBinaryArray {
    fn is_null(&self, row: usize) -> bool {
        Array::is_null(self, row)
    }

    #[inline]
    fn bytes(&self, row: usize) -> &[u8] {
        self.value(row)
    }
}

/// Values whose binary form is their own bytes.
pub(crate) struct Bytes<A> {
    pub(crate) array: A,
    pub(crate) oid: u32,
    /// The characters that the column declares, of `varchar(n)` and `char(n)`.
    pub(crate) characters_max: Option<usize>,
}

const TOO_MANY_CHARACTERS: Reason = "it has too many characters";

impl<A: ByteArray> Bytes<A> {
    #[inline]
    fn check(&self, value: &[u8]) -> Result<(), Reason> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(TOO_LONG);
        }
        match self.characters_max {
            Some(max) if value.len() > max => {
                let characters = value.iter().filter(|byte| **byte & 0xC0 != 0x80).count();
                if characters > max { Err(TOO_MANY_CHARACTERS) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }
}

impl<A: ByteArray> Values for Bytes<A> {
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn oid(&self) -> u32 {
        self.oid
    }

    fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        let value = self.array.bytes(row);
        self.check(value)?;
        out.extend_from_slice(value);
        Ok(())
    }

    fn measure(
        &self,
        rows: Range<usize>,
        sizes: &mut [usize],
        _: &mut Scratch,
    ) -> Result<(), RowError> {
        for (row, size) in rows.zip(sizes) {
            *size += LENGTH_BYTES;
            if !self.array.is_null(row) {
                let value = self.array.bytes(row);
                self.check(value).map_err(|reason| (row, reason))?;
                *size += value.len();
            }
        }
        Ok(())
    }

    fn fill(&self, rows: Range<usize>, cursors: &mut [usize], out: &mut [u8], _: &Scratch) {
        for (row, cursor) in rows.zip(cursors) {
            match self.array.is_null(row) {
                true => put_null(out, cursor),
                false => put(out, cursor, self.array.bytes(row)),
            }
        }
    }
}

/// Text that is sent as it is, for a type whose binary form is not known here.
pub(crate) struct TextOnly<A>(pub(crate) A);

impl<A: ByteArray> Values for TextOnly<A> {
    fn is_null(&self, row: usize) -> bool {
        self.0.is_null(row)
    }

    fn oid(&self) -> u32 {
        0
    }

    fn is_text_only(&self) -> bool {
        true
    }

    fn append(&self, _: usize, _: &mut Vec<u8>) -> Result<(), Reason> {
        Err("its type has no binary form here")
    }

    fn append_text(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        out.extend_from_slice(self.0.bytes(row));
        Ok(())
    }
}

/// Values whose binary form is made from their bytes.
pub(crate) struct Parsed<A, F> {
    pub(crate) array: A,
    pub(crate) oid: u32,
    pub(crate) parse: F,
}

impl<A, F> Values for Parsed<A, F>
where
    A: ByteArray,
    F: Fn(&[u8], &mut Vec<u8>) -> Result<(), Reason> + Send,
{
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn oid(&self) -> u32 {
        self.oid
    }

    fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        (self.parse)(self.array.bytes(row), out)
    }
}

/// `jsonb` and `jsonpath`: their text after the version of the format.
pub(crate) fn versioned(text: &[u8], out: &mut Vec<u8>) -> Result<(), Reason> {
    out.push(1);
    out.extend_from_slice(text);
    Ok(())
}

/// The type `name`. In text the server would cut longer ones.
pub(crate) fn name(text: &[u8], out: &mut Vec<u8>) -> Result<(), Reason> {
    const BYTES_MAX: usize = 63;
    if text.len() > BYTES_MAX {
        return Err("names have at most 63 bytes");
    }
    out.extend_from_slice(text);
    Ok(())
}

/// The type `"char"`: one byte, as `charout` writes it.
pub(crate) fn one_byte(text: &[u8], out: &mut Vec<u8>) -> Result<(), Reason> {
    let octal = |digit: u8| (b'0'..=b'7').contains(&digit).then(|| u32::from(digit - b'0'));
    let byte = match text {
        [] => Some(0),
        [byte @ 0..=0x7F] => Some(*byte),
        [b'\\', high, middle, low] => octal(*high)
            .zip(octal(*middle))
            .zip(octal(*low))
            .and_then(|((high, middle), low)| u8::try_from(high * 64 + middle * 8 + low).ok()),
        _ => None,
    };
    out.push(byte.ok_or("it is more than one byte")?);
    Ok(())
}

/// A string of the digits 0 and 1.
pub(crate) fn bits(text: &[u8], out: &mut Vec<u8>) -> Result<(), Reason> {
    let count = i32::try_from(text.len()).map_err(|_| TOO_LONG)?;
    out.extend_from_slice(&count.to_be_bytes());
    for digits in text.chunks(8) {
        let mut byte = 0;
        for (i, digit) in digits.iter().enumerate() {
            match digit {
                b'0' => {}
                b'1' => byte |= 0x80 >> i,
                _ => return Err("it has other digits than 0 and 1"),
            }
        }
        out.push(byte);
    }
    Ok(())
}

/// A UUID in its usual form, or without its hyphens.
pub(crate) fn uuid(text: &[u8], out: &mut Vec<u8>) -> Result<(), Reason> {
    const WRONG: Reason = "it is no UUID";
    let mut digits = [0u8; 32];
    let mut count = 0;
    for (i, byte) in text.iter().enumerate() {
        let digit = match byte {
            b'-' if text.len() == 36 && matches!(i, 8 | 13 | 18 | 23) => continue,
            byte => (*byte as char).to_digit(16).ok_or(WRONG)?,
        };
        *digits.get_mut(count).ok_or(WRONG)? = digit as u8;
        count += 1;
    }
    if count != digits.len() {
        return Err(WRONG);
    }
    out.extend(digits.as_chunks::<2>().0.iter().map(|[high, low]| high << 4 | low));
    Ok(())
}
