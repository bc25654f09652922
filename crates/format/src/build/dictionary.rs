//! The builder of a dictionary's strings.

use std::sync::Arc;

use super::buffer::{Budget, Buffer, Take};
use crate::column::{Column, Values, u32_at};
use crate::error::Result;
use crate::numbers::{Numbers, hash_bytes};

/// Strings that occur often: each is kept once, in the order of first appearance.
#[derive(Debug)]
pub(super) struct Dictionary {
    /// The number of each value's entry, in four bytes.
    indexes: Buffer,
    /// Where each entry begins in the data.
    offsets: Buffer,
    data: Buffer,
    /// Finds an entry's number.
    numbers: Numbers,
    budget: Arc<Budget>,
}

impl Dictionary {
    pub(super) fn new(budget: &Arc<Budget>) -> Self {
        let buffer = || Buffer::new(budget);
        let (numbers, budget) = (Numbers::default(), budget.clone());
        Self { indexes: buffer(), offsets: buffer(), data: buffer(), numbers, budget }
    }

    pub(super) fn push(&mut self, value: &[u8]) -> Result<()> {
        let count = self.count();
        if !self.numbers.has_room(count + 1) {
            self.grow(count)?;
        }
        // Nothing fails after an entry has its number.
        self.offsets.reserve(4)?;
        self.data.reserve(value.len())?;
        self.indexes.reserve(4)?;
        let (offsets, data) = (&self.offsets.bytes, &self.data.bytes);
        let equals = |number| entry(offsets, data, number) == value;
        // A string whose hash collides too often becomes an entry each time.
        let number = self.numbers.number(hash_bytes(value), count, equals).unwrap_or(count);
        if number == count {
            put_u32(&mut self.offsets, self.data.len());
            self.data.bytes.extend_from_slice(value);
        }
        put_u32(&mut self.indexes, number);
        Ok(())
    }

    pub(super) fn push_zero(&mut self) -> Result<()> {
        self.indexes.reserve(4)?;
        put_u32(&mut self.indexes, 0);
        Ok(())
    }

    pub(super) fn bytes(&self) -> usize {
        self.indexes.len() + self.offsets.len() + self.data.len() + self.numbers.bytes()
    }

    pub(super) fn finish(&mut self, take: Take<'_>) -> Result<Values> {
        let rows = self.count();
        self.budget.give_back(std::mem::take(&mut self.numbers).bytes());
        self.offsets.reserve(4)?;
        put_u32(&mut self.offsets, self.data.len());
        let values =
            Values::Bytes { offsets: self.offsets.taken(take)?, data: self.data.taken(take)? };
        let entries = Box::new(Column { rows, validity: None, values });
        Ok(Values::Dictionary { width: 4, indexes: self.indexes.taken(take)?, entries })
    }

    fn count(&self) -> usize {
        self.offsets.len() / 4
    }

    #[cold]
    fn grow(&mut self, count: usize) -> Result<()> {
        let mut numbers = Numbers::new(2 * count);
        self.budget.take(numbers.bytes() - self.numbers.bytes())?;
        for number in 0..count {
            let entry = entry(&self.offsets.bytes, &self.data.bytes, number);
            numbers.number(hash_bytes(entry), number, |_| false);
        }
        self.numbers = numbers;
        Ok(())
    }
}

/// An entry; the last one ends with the data.
fn entry<'a>(offsets: &[u8], data: &'a [u8], number: usize) -> &'a [u8] {
    let end = match (number + 1) * 4 < offsets.len() {
        true => u32_at(offsets, number + 1) as usize,
        false => data.len(),
    };
    &data[u32_at(offsets, number) as usize..end]
}

/// Appends a number that is less than 2³¹, as the lengths of buffers are.
fn put_u32(buffer: &mut Buffer, number: usize) {
    buffer.bytes.extend_from_slice(&(number as u32).to_le_bytes());
}
