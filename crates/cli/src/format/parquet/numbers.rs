//! A column chunk of numbers, encoded page by page.
//!
//! The library's writer takes most of its time for such columns: it lists the indexes of all values,
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
    /// None if values are plain from here on.
    dictionary: Option<Dictionary<T>>,
    /// The indexes of a page, whose memory the next one uses again.
    indexes: Vec<u32>,
    pages: Pages<T>,
}

impl<T: Number> NumberChunk<T> {
    /// None if the library has to write chunks with this codec.
    pub(super) fn new(column: ColumnDescPtr, codec: Compression, rows_max: usize) -> Option<Self> {
        Some(Self {
            may_have_nulls: column.max_def_level() > 0,
            rows_max,
            values: Vec::new(),
            validity: BooleanBufferBuilder::new(0),
            dictionary: Some(Dictionary::new()),
            indexes: Vec::new(),
            pages: Pages::new(column, codec, Compressor::new(codec)?),
        })
    }

    /// The estimated size of the chunk so far.
    pub(super) fn bytes(&self) -> usize {
        let dictionary = self.dictionary.as_ref().map_or(0, |dictionary| dictionary.values().len());
        self.pages.bytes() + (self.values.len() + dictionary) * size_of::<T>()
    }

    pub(super) fn write(&mut self, array: &ArrayRef) -> Result<(), WriteError> {
        let mut from = 0;
        while from < array.len() {
            let rows = (PAGE_ROWS - self.validity.len()).min(array.len() - from);
            self.append(&array.slice(from, rows));
            from += rows;
            if self.validity.len() == PAGE_ROWS {
                self.end_page()?;
            }
        }
        Ok(())
    }

    fn append(&mut self, array: &ArrayRef) {
        T::extend(&mut self.values, array);
        match array.nulls() {
            Some(nulls) => self.validity.append_buffer(nulls.inner()),
            None => self.validity.append_n(array.len(), true),
        }
    }

    fn end_page(&mut self) -> Result<(), WriteError> {
        let rows = self.validity.len();
        let mut bytes = Vec::with_capacity(size_of_val(self.values.as_slice()) + rows / 8 + 16);
        if self.may_have_nulls {
            self.encode_levels(&mut bytes)?;
        }
        let encoding = if self.index_values()? {
            let width = self.dictionary.as_ref().map_or(0, Dictionary::index_bits);
            bytes.push(u8::try_from(width)?);
            encode_indexes(&self.indexes, width, &mut bytes);
            Encoding::RLE_DICTIONARY
        } else {
            bytes.extend_from_slice(self.values.to_byte_slice());
            Encoding::PLAIN
        };
        let least = self.values.iter().copied().min();
        self.pages.add(DataPage {
            bytes,
            encoding,
            rows,
            nulls: rows - self.values.len(),
            least_and_greatest: least.zip(self.values.iter().copied().max()),
        })?;
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
    fn index_values(&mut self) -> Result<bool, WriteError> {
        let Some(dictionary) = self.dictionary.as_mut().filter(|_| !self.values.is_empty()) else {
            return Ok(false);
        };
        if dictionary.values().is_empty() {
            let sample = &self.values[..self.values.len().min(SAMPLE)];
            if !dictionary.pays(sample, self.rows_max) {
                self.dictionary = None;
                return Ok(false);
            }
        }
        self.indexes.clear();
        for value in &self.values {
            match dictionary.index(*value) {
                Some(index) => self.indexes.push(index),
                None => return self.end_dictionary().map(|()| false),
            }
        }
        Ok(true)
    }

    /// Ends the dictionary, after which pages are plain. Pages before may have used it.
    fn end_dictionary(&mut self) -> Result<(), WriteError> {
        match self.dictionary.take() {
            Some(dictionary) if self.pages.have(Encoding::RLE_DICTIONARY) => {
                self.pages.add_dictionary(dictionary.values())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn finish(mut self) -> Result<EncodedChunk, WriteError> {
        if !self.validity.is_empty() {
            self.end_page()?;
        }
        self.end_dictionary()?;
        self.pages.finish()
    }
}
