//! A column chunk of numbers, encoded page by page.
//!
//! The library's writer takes its time for such columns: it lists the positions of all values,
//! copies each, and hashes each into a dictionary, whether that makes the file smaller or not.

use arrow::array::{Array, ArrayRef, BooleanBufferBuilder};
use arrow::datatypes::ToByteSlice;
use parquet::basic::{Compression, Encoding};
use parquet::schema::types::ColumnDescPtr;

use super::super::WriteError;
use super::compressor::Compressor;
use super::dictionary::Dictionary;
use super::hybrid::{encode_indexes, encode_levels, encode_validity};
use super::number::Number;
use super::pages::{DataPage, EncodedChunk, Pages};

/// The rows of a page, as many as the library writes.
const PAGE_ROWS: usize = 20_000;
/// The values that decide whether a chunk gets a dictionary.
const SAMPLE: usize = 4096;

pub(super) struct NumberChunk<T> {
    may_have_nulls: bool,
    /// The most rows of the chunk.
    rows_max: usize,
    /// The values of the current page, without NULLs.
    values: Vec<T>,
    /// Which of its rows are not NULL.
    validity: BooleanBufferBuilder,
    dictionary: Dictionary<T>,
    /// Whether values get indexes into the dictionary from here on.
    is_indexed: bool,
    pages: Pages<T>,
}

/// What a thread needs for a page, whatever its column.
pub(super) struct Scratch {
    compressor: Compressor,
    page: Vec<u8>,
    indexes: Vec<u32>,
}

impl Scratch {
    pub(super) fn new(compressor: Compressor) -> Self {
        Self { compressor, page: Vec::new(), indexes: Vec::new() }
    }
}

impl<T: Number> NumberChunk<T> {
    pub(super) fn new(
        column: ColumnDescPtr,
        codec: Compression,
        rows_max: usize,
        slot_bytes_max: usize,
    ) -> Self {
        Self {
            may_have_nulls: column.max_def_level() > 0,
            rows_max,
            values: Vec::new(),
            validity: BooleanBufferBuilder::new(0),
            dictionary: Dictionary::new(slot_bytes_max),
            is_indexed: true,
            pages: Pages::new(column, codec, 0),
        }
    }

    /// The estimated size of the chunk so far.
    pub(super) fn bytes(&self) -> usize {
        self.pages.bytes() + self.values.len() * size_of::<T>() + self.dictionary.bytes()
    }

    pub(super) fn write(
        &mut self,
        array: &ArrayRef,
        scratch: &mut Scratch,
    ) -> Result<(), WriteError> {
        let mut from = 0;
        while from < array.len() {
            let rows = (PAGE_ROWS - self.validity.len()).min(array.len() - from);
            self.append(&array.slice(from, rows))?;
            from += rows;
            if self.validity.len() == PAGE_ROWS {
                self.end_page(scratch)?;
            }
        }
        Ok(())
    }

    fn append(&mut self, array: &ArrayRef) -> Result<(), WriteError> {
        T::extend(&mut self.values, array)?;
        match array.nulls() {
            Some(nulls) => self.validity.append_buffer(nulls.inner()),
            None => self.validity.append_n(array.len(), true),
        }
        Ok(())
    }

    fn end_page(&mut self, scratch: &mut Scratch) -> Result<(), WriteError> {
        let rows = self.validity.len();
        scratch.page.clear();
        if self.may_have_nulls {
            self.encode_levels(&mut scratch.page)?;
        }
        let encoding = if self.index_values(scratch)? {
            let width = self.dictionary.index_bits();
            scratch.page.push(u8::try_from(width)?);
            encode_indexes(&scratch.indexes, width, &mut scratch.page);
            Encoding::RLE_DICTIONARY
        } else {
            scratch.page.extend_from_slice(self.values.to_byte_slice());
            Encoding::PLAIN
        };
        let least = self.values.iter().copied().min();
        let page = DataPage {
            bytes: &scratch.page,
            encoding,
            rows,
            nulls: rows - self.values.len(),
            least_and_greatest: least.zip(self.values.iter().copied().max()),
        };
        self.pages.add(page, &mut scratch.compressor)?;
        self.values.clear();
        self.validity.truncate(0);
        Ok(())
    }

    /// Appends the definition levels, after their length.
    fn encode_levels(&self, bytes: &mut Vec<u8>) -> Result<(), WriteError> {
        let rows = self.validity.len();
        let start = bytes.len();
        bytes.extend_from_slice(&[0; 4]);
        match self.values.len() {
            0 => encode_levels(0, rows, bytes),
            valid if valid == rows => encode_levels(1, rows, bytes),
            _ => encode_validity(self.validity.as_slice(), rows, bytes),
        }
        let length = u32::try_from(bytes.len() - start - 4)?;
        bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
        Ok(())
    }

    /// Finds the indexes of the page's values. False if the page is plain.
    fn index_values(&mut self, scratch: &mut Scratch) -> Result<bool, WriteError> {
        if !self.is_indexed || self.values.is_empty() {
            return Ok(false);
        }
        if self.dictionary.values().is_empty() {
            let sample = &self.values[..self.values.len().min(SAMPLE)];
            self.is_indexed = self.dictionary.pays(sample, self.rows_max, &mut scratch.indexes);
        }
        let is_first = self.pages.values() == 0;
        self.is_indexed = self.is_indexed
            && (is_first || self.dictionary.still_pays(self.pages.values(), self.rows_max))
            && self.dictionary.indexes(&self.values, &mut scratch.indexes);
        if !self.is_indexed {
            self.end_dictionary(&mut scratch.compressor)?;
        }
        Ok(self.is_indexed)
    }

    /// Ends the dictionary, which the pages so far may have used.
    fn end_dictionary(&mut self, compressor: &mut Compressor) -> Result<(), WriteError> {
        if self.pages.have(Encoding::RLE_DICTIONARY) {
            self.pages.add_dictionary(self.dictionary.values(), compressor)?;
        }
        self.dictionary.clear();
        Ok(())
    }

    /// Ends the chunk, and begins the next one of the column.
    pub(super) fn finish(&mut self, scratch: &mut Scratch) -> Result<EncodedChunk, WriteError> {
        if !self.validity.is_empty() {
            self.end_page(scratch)?;
        }
        if self.is_indexed {
            self.end_dictionary(&mut scratch.compressor)?;
        }
        self.is_indexed = true;
        let next = self.pages.next();
        std::mem::replace(&mut self.pages, next).finish()
    }
}
