//! Arrays, composites, ranges, multiranges and hstore.

use std::collections::HashSet;
use std::ops::Range as Rows;

use arrow::array::{Array, BooleanArray};
use arrow::buffer::NullBuffer;

use crate::error::Reason;
use crate::json::REPEATED_KEY;
use crate::values::{Values, append_field};

/// Bits of a range's first byte (`rangetypes.h`).
const EMPTY: u8 = 0x01;
const LOWER_INCLUSIVE: u8 = 0x02;
const UPPER_INCLUSIVE: u8 = 0x04;
const LOWER_INFINITE: u8 = 0x08;
const UPPER_INFINITE: u8 = 0x10;

/// Which items each list has.
pub(crate) struct Lists {
    pub(crate) nulls: Option<NullBuffer>,
    pub(crate) spans: Box<dyn Fn(usize) -> Rows<usize> + Send>,
}

impl Lists {
    fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }
}

fn count(items: &Rows<usize>) -> Result<[u8; 4], Reason> {
    i32::try_from(items.len()).map(i32::to_be_bytes).map_err(|_| "it has too many items")
}

/// Appends text between quotes, with backslashes before quotes and backslashes.
fn quote(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

fn quoted(values: &dyn Values, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
    let mut text = Vec::new();
    values.append_text(row, &mut text)?;
    quote(&text, out);
    Ok(())
}

/// Lists as arrays of one dimension.
pub(crate) struct Arrays {
    pub(crate) lists: Lists,
    pub(crate) items: Box<dyn Values>,
    pub(crate) item_oid: u32,
    /// A space for `int2vector` and `oidvector`, which have no braces.
    pub(crate) delimiter: u8,
}

impl Values for Arrays {
    fn is_null(&self, row: usize) -> bool {
        self.lists.is_null(row)
    }

    fn oid(&self) -> u32 {
        0
    }

    /// The receive functions of vectors don't take empty ones.
    fn is_text_only(&self) -> bool {
        self.delimiter == b' ' || self.items.is_text_only()
    }

    fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        let items = (self.lists.spans)(row);
        let dimensions = u32::from(!items.is_empty());
        let has_nulls = u32::from(items.clone().any(|item| self.items.is_null(item)));
        for field in [dimensions, has_nulls, self.item_oid] {
            out.extend_from_slice(&field.to_be_bytes());
        }
        if dimensions == 0 {
            return Ok(());
        }
        out.extend_from_slice(&count(&items)?);
        // The lower bound.
        out.extend_from_slice(&1u32.to_be_bytes());
        for item in items {
            append_field(&*self.items, item, out)?;
        }
        Ok(())
    }

    fn append_text(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        let is_vector = self.delimiter == b' ';
        let start = out.len();
        for item in (self.lists.spans)(row) {
            if out.len() > start {
                out.push(self.delimiter);
            } else if !is_vector {
                out.push(b'{');
            }
            match (self.items.is_null(item), is_vector) {
                (true, _) => out.extend_from_slice(b"NULL"),
                (false, true) => self.items.append_text(item, out)?,
                (false, false) => quoted(&*self.items, item, out)?,
            }
        }
        if !is_vector {
            out.extend_from_slice(if out.len() > start { b"}" } else { b"{}" });
        }
        Ok(())
    }
}

/// Structs as composites.
pub(crate) struct Composites {
    pub(crate) nulls: Option<NullBuffer>,
    /// The oid of each attribute, and its values.
    pub(crate) attributes: Vec<(u32, Box<dyn Values>)>,
}

impl Values for Composites {
    fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    fn oid(&self) -> u32 {
        0
    }

    fn is_text_only(&self) -> bool {
        self.attributes.iter().any(|(_, values)| values.is_text_only())
    }

    fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        out.extend_from_slice(&(self.attributes.len() as u32).to_be_bytes());
        for (oid, values) in &self.attributes {
            out.extend_from_slice(&oid.to_be_bytes());
            append_field(&**values, row, out)?;
        }
        Ok(())
    }

    fn append_text(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        out.push(b'(');
        for (i, (_, values)) in self.attributes.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            if !values.is_null(row) {
                quoted(&**values, row, out)?;
            }
        }
        out.push(b')');
        Ok(())
    }
}

/// Structs of bounds as ranges.
pub(crate) struct Ranges {
    pub(crate) nulls: Option<NullBuffer>,
    pub(crate) lower: Box<dyn Values>,
    pub(crate) upper: Box<dyn Values>,
    pub(crate) lower_inclusive: BooleanArray,
    pub(crate) upper_inclusive: BooleanArray,
    pub(crate) empty: BooleanArray,
}

impl Ranges {
    fn flag(flags: &BooleanArray, row: usize) -> Result<bool, Reason> {
        match flags.is_valid(row) {
            true => Ok(flags.value(row)),
            false => Err("whether its bounds belong to it, or whether it is empty, is NULL"),
        }
    }

    fn flags(&self, row: usize) -> Result<u8, Reason> {
        if Self::flag(&self.empty, row)? {
            return Ok(EMPTY);
        }
        let lower = match (self.lower.is_null(row), Self::flag(&self.lower_inclusive, row)?) {
            (true, _) => LOWER_INFINITE,
            (false, inclusive) => LOWER_INCLUSIVE * u8::from(inclusive),
        };
        let upper = match (self.upper.is_null(row), Self::flag(&self.upper_inclusive, row)?) {
            (true, _) => UPPER_INFINITE,
            (false, inclusive) => UPPER_INCLUSIVE * u8::from(inclusive),
        };
        Ok(lower | upper)
    }
}

impl Values for Ranges {
    fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    fn oid(&self) -> u32 {
        0
    }

    fn is_text_only(&self) -> bool {
        self.lower.is_text_only()
    }

    fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        let flags = self.flags(row)?;
        out.push(flags);
        for (bound, missing) in [(&self.lower, LOWER_INFINITE), (&self.upper, UPPER_INFINITE)] {
            if flags & (EMPTY | missing) == 0 {
                append_field(&**bound, row, out)?;
            }
        }
        Ok(())
    }

    fn append_text(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        let flags = self.flags(row)?;
        if flags & EMPTY != 0 {
            out.extend_from_slice(b"empty");
            return Ok(());
        }
        out.push(if flags & LOWER_INCLUSIVE != 0 { b'[' } else { b'(' });
        if flags & LOWER_INFINITE == 0 {
            quoted(&*self.lower, row, out)?;
        }
        out.push(b',');
        if flags & UPPER_INFINITE == 0 {
            quoted(&*self.upper, row, out)?;
        }
        out.push(if flags & UPPER_INCLUSIVE != 0 { b']' } else { b')' });
        Ok(())
    }
}

/// Lists of ranges as multiranges.
pub(crate) struct Multiranges {
    pub(crate) lists: Lists,
    pub(crate) ranges: Ranges,
}

impl Values for Multiranges {
    fn is_null(&self, row: usize) -> bool {
        self.lists.is_null(row)
    }

    fn oid(&self) -> u32 {
        0
    }

    fn is_text_only(&self) -> bool {
        self.ranges.is_text_only()
    }

    fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        let ranges = (self.lists.spans)(row);
        out.extend_from_slice(&count(&ranges)?);
        for range in ranges {
            if self.ranges.is_null(range) {
                return Err("a range of it is NULL");
            }
            append_field(&self.ranges, range, out)?;
        }
        Ok(())
    }

    fn append_text(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        out.push(b'{');
        for (i, range) in (self.lists.spans)(row).enumerate() {
            if self.ranges.is_null(range) {
                return Err("a range of it is NULL");
            }
            if i > 0 {
                out.push(b',');
            }
            self.ranges.append_text(range, out)?;
        }
        out.push(b'}');
        Ok(())
    }
}

/// Maps of strings as hstore.
pub(crate) struct Hstores {
    pub(crate) lists: Lists,
    pub(crate) keys: Box<dyn Values>,
    pub(crate) values: Box<dyn Values>,
}

impl Values for Hstores {
    fn is_null(&self, row: usize) -> bool {
        self.lists.is_null(row)
    }

    fn oid(&self) -> u32 {
        0
    }

    fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        let pairs = (self.lists.spans)(row);
        out.extend_from_slice(&count(&pairs)?);
        // The server would keep one of two equal keys.
        let mut keys = HashSet::new();
        for pair in pairs {
            let mut key = Vec::new();
            self.keys.append(pair, &mut key)?;
            if !keys.insert(key) {
                return Err(REPEATED_KEY);
            }
            append_field(&*self.keys, pair, out)?;
            append_field(&*self.values, pair, out)?;
        }
        Ok(())
    }

    fn append_text(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        let mut keys = HashSet::new();
        for (i, pair) in (self.lists.spans)(row).enumerate() {
            if i > 0 {
                out.push(b',');
            }
            let mut key = Vec::new();
            self.keys.append(pair, &mut key)?;
            quote(&key, out);
            if !keys.insert(key) {
                return Err(REPEATED_KEY);
            }
            out.extend_from_slice(b"=>");
            match self.values.is_null(pair) {
                true => out.extend_from_slice(b"NULL"),
                false => quoted(&*self.values, pair, out)?,
            }
        }
        Ok(())
    }
}
