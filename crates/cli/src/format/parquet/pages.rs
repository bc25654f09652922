//! The pages of a column chunk, and what its metadata says about them.

use std::collections::BTreeMap;
use std::io::{Chain, Cursor, Read};

use arrow::datatypes::ToByteSlice;
use bytes::Bytes;
use parquet::basic::{BoundaryOrder, Compression, Encoding, EncodingMask, PageType};
use parquet::column::page::{CompressedPage, Page, PageWriteSpec, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ColumnIndexBuilder, LevelHistogram, OffsetIndexBuilder, PageEncodingStats,
};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::super::WriteError;
use super::compressor::Compressor;
use super::number::Number;

/// A complete column chunk.
pub(super) struct EncodedChunk {
    /// The dictionary's page, and the others.
    pages: [Bytes; 2],
    pub(super) close: ColumnCloseResult,
}

/// What the writer of the file copies from.
impl ChunkReader for EncodedChunk {
    type T = Chain<Cursor<Bytes>, Cursor<Bytes>>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        if start != 0 {
            return Err(ParquetError::General(format!("a column chunk is read from {start} on")));
        }
        let [dictionary, data] = self.pages.clone().map(Cursor::new);
        Ok(dictionary.chain(data))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let mut bytes = vec![0; length];
        self.get_read(start)?.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

impl Length for EncodedChunk {
    fn len(&self) -> u64 {
        self.pages.iter().map(|pages| pages.len() as u64).sum()
    }
}

/// A data page before its compression: definition levels, if the column may have NULLs, and values.
pub(super) struct DataPage<'a, T> {
    pub(super) bytes: &'a [u8],
    pub(super) encoding: Encoding,
    pub(super) rows: usize,
    pub(super) nulls: usize,
    /// The least and the greatest value, if there is any.
    pub(super) least_and_greatest: Option<(T, T)>,
}

pub(super) struct Pages<T> {
    column: ColumnDescPtr,
    codec: Compression,
    data: TrackedWrite<Vec<u8>>,
    /// The dictionary's page. It precedes the others in the file.
    dictionary: Vec<u8>,
    uncompressed_bytes: usize,
    /// The number of data pages of each encoding.
    encodings: BTreeMap<Encoding, i32>,
    rows: usize,
    nulls: usize,
    least_and_greatest: Option<(T, T)>,
    column_index: ColumnIndexBuilder,
    offset_index: OffsetIndexBuilder,
    /// The least and the greatest value of the last page with values, and whether both rise and
    /// fall from page to page.
    last: Option<(T, T)>,
    is_ascending: bool,
    is_descending: bool,
}

impl<T: Number> Pages<T> {
    /// No pages, with room for `bytes` of them.
    pub(super) fn new(column: ColumnDescPtr, codec: Compression, bytes: usize) -> Self {
        Self {
            column,
            codec,
            data: TrackedWrite::new(Vec::with_capacity(bytes)),
            dictionary: Vec::new(),
            uncompressed_bytes: 0,
            encodings: BTreeMap::new(),
            rows: 0,
            nulls: 0,
            least_and_greatest: None,
            column_index: ColumnIndexBuilder::new(T::TYPE),
            offset_index: OffsetIndexBuilder::new(),
            last: None,
            is_ascending: true,
            is_descending: true,
        }
    }

    /// The size of the pages so far.
    pub(super) fn bytes(&self) -> usize {
        self.data.bytes_written() + self.dictionary.len()
    }

    /// The number of values that are not NULL.
    pub(super) fn values(&self) -> usize {
        self.rows - self.nulls
    }

    /// Whether a data page has this encoding.
    pub(super) fn have(&self, encoding: Encoding) -> bool {
        self.encodings.contains_key(&encoding)
    }

    /// No pages of the next chunk of the same column.
    pub(super) fn next(&self) -> Self {
        Self::new(self.column.clone(), self.codec, self.data.bytes_written())
    }

    pub(super) fn add(
        &mut self,
        page: DataPage<'_, T>,
        compressor: &mut Compressor,
    ) -> Result<(), WriteError> {
        let DataPage { bytes, encoding, rows, nulls, least_and_greatest } = page;
        self.index(rows, nulls, least_and_greatest);
        let uncompressed_bytes = bytes.len();
        let page = Page::DataPage {
            buf: Bytes::copy_from_slice(compressor.compress(bytes)?),
            num_values: u32::try_from(rows)?,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let written = write(&mut self.data, page, uncompressed_bytes)?;
        self.uncompressed_bytes += written.uncompressed_size;
        self.offset_index.append_row_count(i64::try_from(rows)?);
        self.offset_index.append_offset_and_size(
            i64::try_from(written.offset)?,
            i32::try_from(written.compressed_size)?,
        );
        *self.encodings.entry(encoding).or_default() += 1;
        Ok(())
    }

    /// Adds the dictionary of the pages with indexes.
    pub(super) fn add_dictionary(
        &mut self,
        values: &[T],
        compressor: &mut Compressor,
    ) -> Result<(), WriteError> {
        let bytes = values.to_byte_slice();
        let page = Page::DictionaryPage {
            buf: Bytes::copy_from_slice(compressor.compress(bytes)?),
            num_values: u32::try_from(values.len())?,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let mut out = TrackedWrite::new(Vec::new());
        self.uncompressed_bytes += write(&mut out, page, bytes.len())?.uncompressed_size;
        self.dictionary = out.into_inner()?;
        Ok(())
    }

    /// Adds a page to the column index.
    fn index(&mut self, rows: usize, nulls: usize, least_and_greatest: Option<(T, T)>) {
        self.rows += rows;
        self.nulls += nulls;
        let bytes = |value: T| [value].to_byte_slice().to_vec();
        let (least, greatest) = match least_and_greatest {
            Some((least, greatest)) => {
                if let Some((last_least, last_greatest)) = self.last {
                    self.is_ascending &= last_least <= least && last_greatest <= greatest;
                    self.is_descending &= last_least >= least && last_greatest >= greatest;
                }
                self.last = least_and_greatest;
                let all = self.least_and_greatest.get_or_insert((least, greatest));
                *all = (all.0.min(least), all.1.max(greatest));
                (bytes(least), bytes(greatest))
            }
            None => (Vec::new(), Vec::new()),
        };
        self.column_index.append(least_and_greatest.is_none(), least, greatest, nulls as i64);
        self.column_index.append_histograms(&None, &self.levels(rows, nulls));
    }

    /// How many values have each definition level; None if there is only one.
    fn levels(&self, rows: usize, nulls: usize) -> Option<LevelHistogram> {
        (self.column.max_def_level() > 0).then(|| vec![nulls as i64, (rows - nulls) as i64].into())
    }

    pub(super) fn finish(mut self) -> Result<EncodedChunk, WriteError> {
        self.column_index.set_boundary_order(match (self.is_ascending, self.is_descending) {
            (true, _) => BoundaryOrder::ASCENDING,
            (false, true) => BoundaryOrder::DESCENDING,
            (false, false) => BoundaryOrder::UNORDERED,
        });
        let dictionary_bytes = self.dictionary.len();
        let bytes = self.bytes();
        let metadata = ColumnChunkMetaData::builder(self.column.clone())
            .set_compression(self.codec)
            .set_encodings_mask(self.encodings_mask())
            .set_page_encoding_stats(self.page_counts())
            .set_total_compressed_size(i64::try_from(bytes)?)
            .set_total_uncompressed_size(i64::try_from(self.uncompressed_bytes)?)
            .set_num_values(i64::try_from(self.rows)?)
            .set_data_page_offset(0)
            .set_statistics(T::statistics(self.least_and_greatest, self.nulls as u64))
            .set_definition_level_histogram(self.levels(self.rows, self.nulls))
            .build()?;
        let close = ColumnCloseResult {
            bytes_written: bytes as u64,
            rows_written: self.rows as u64,
            metadata,
            bloom_filter: None,
            column_index: Some(self.column_index.build()?),
            offset_index: Some(self.offset_index.build()),
        };
        Ok(EncodedChunk {
            pages: [self.dictionary.into(), self.data.into_inner()?.into()],
            close: close.update_dictionary_location(dictionary_bytes)?,
        })
    }

    fn encodings_mask(&self) -> EncodingMask {
        let dictionary = (!self.dictionary.is_empty()).then_some(&Encoding::PLAIN);
        let levels = [&Encoding::RLE];
        EncodingMask::new_from_encodings(self.encodings.keys().chain(dictionary).chain(levels))
    }

    /// The numbers of pages, in the order of the file: pages with indexes are before others.
    fn page_counts(&self) -> Vec<PageEncodingStats> {
        let dictionary = (!self.dictionary.is_empty()).then_some(PageEncodingStats {
            page_type: PageType::DICTIONARY_PAGE,
            encoding: Encoding::PLAIN,
            count: 1,
        });
        let data = [Encoding::RLE_DICTIONARY, Encoding::PLAIN].into_iter().filter_map(|encoding| {
            let count = *self.encodings.get(&encoding)?;
            Some(PageEncodingStats { page_type: PageType::DATA_PAGE, encoding, count })
        });
        dictionary.into_iter().chain(data).collect()
    }
}

fn write(
    out: &mut TrackedWrite<Vec<u8>>,
    page: Page,
    uncompressed_bytes: usize,
) -> Result<PageWriteSpec, WriteError> {
    let page = CompressedPage::new(page, uncompressed_bytes);
    Ok(SerializedPageWriter::new(out).write_page(page)?)
}
