//! Timestamps that Parquet files have as INT96: a day, and the nanoseconds of that day.
//!
//! The library reads them in one unit, modulo 2^64 and without finer digits. In nanoseconds, the
//! year 9999 of Spark, Hive and Impala becomes another date; in microseconds, digits of nanoseconds
//! are lost. So all values are looked at once, before the file is served, to learn which units hold
//! them. Statistics of such columns are unordered by the specification, and the library uses none.

use std::sync::Arc;

use bytes::buf::Reader;
use bytes::{Buf, Bytes};
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef, TimeUnit};
use datafusion::error::{DataFusionError, Result};
use datafusion::object_store::path::Path;
use datafusion::object_store::{ObjectStore, ObjectStoreExt};
use datafusion::parquet::basic::Type as Stored;
use datafusion::parquet::column::reader::{ColumnReader, get_column_reader};
use datafusion::parquet::data_type::Int96;
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use datafusion::parquet::file::reader::{ChunkReader, Length};
use datafusion::parquet::file::serialized_reader::SerializedPageReader;

use super::parquet_types::leaves;

/// The Julian day of 1970-01-01.
const EPOCH_DAY: i64 = 2_440_588;
const DAY_NANOSECONDS: i128 = 86_400_000_000_000;
/// Values that are read at a time.
const BATCH_VALUES: usize = 8192;
/// Units, and the nanoseconds that each has.
const UNITS: [(TimeUnit, i64); 4] = [
    (TimeUnit::Second, 1_000_000_000),
    (TimeUnit::Millisecond, 1_000_000),
    (TimeUnit::Microsecond, 1_000),
    (TimeUnit::Nanosecond, 1),
];

/// What reading a file's timestamps would change.
#[derive(Debug)]
pub(super) struct Int96Columns {
    /// The file's columns, with such timestamps in microseconds.
    pub(super) in_micros: SchemaRef,
    /// A column with values that are not exact in nanoseconds.
    pub(super) lost_in_nanos: Option<String>,
    /// A column with values that are not exact in microseconds.
    pub(super) lost_in_micros: Option<String>,
}

/// Whether a file has such columns.
pub(super) fn has_any(metadata: &ParquetMetaData) -> bool {
    let columns = metadata.file_metadata().schema_descr().columns();
    columns.iter().any(|column| column.physical_type() == Stored::INT96)
}

/// Reads the columns of a file as a whole. Its other columns have the same types in both schemas.
pub(super) async fn look_at(
    store: &dyn ObjectStore,
    location: &Path,
    metadata: &ParquetMetaData,
    in_nanos: &Schema,
    in_micros: SchemaRef,
) -> Result<Int96Columns> {
    let columns = metadata.file_metadata().schema_descr().columns();
    let (nanos_types, micros_types) = (leaves(in_nanos), leaves(&in_micros));
    let (mut lost_in_nanos, mut lost_in_micros) = (None, None);
    for (leaf, column) in columns.iter().enumerate() {
        if column.physical_type() != Stored::INT96 {
            continue;
        }
        let exact = exact_units(store, location, metadata, leaf).await?;
        for (types, lost) in
            [(&nanos_types, &mut lost_in_nanos), (&micros_types, &mut lost_in_micros)]
        {
            let is_exact = match types.get(leaf) {
                Some(DataType::Timestamp(unit, _)) => exact.has(*unit),
                _ => false,
            };
            if !is_exact {
                lost.get_or_insert_with(|| column.path().string());
            }
        }
    }
    Ok(Int96Columns { in_micros, lost_in_nanos, lost_in_micros })
}

async fn exact_units(
    store: &dyn ObjectStore,
    location: &Path,
    metadata: &ParquetMetaData,
    leaf: usize,
) -> Result<ExactUnits> {
    let mut exact = ExactUnits::default();
    for group in metadata.row_groups() {
        let Some(column) = group.columns().get(leaf).filter(|_| group.num_rows() > 0) else {
            continue;
        };
        let (start, bytes) = column.byte_range();
        let bytes = store.get_range(location, start..start.saturating_add(bytes)).await?;
        let (chunk, column) = (Chunk { start, bytes }, column.clone());
        let rows = usize::try_from(group.num_rows()).unwrap_or(usize::MAX);
        let added = tokio::task::spawn_blocking(move || exact.with(chunk, &column, rows));
        let added = added.await.map_err(|cause| DataFusionError::ExecutionJoin(Box::new(cause)))?;
        exact = added.map_err(|cause| DataFusionError::ParquetError(Box::new(cause)))?;
    }
    Ok(exact)
}

/// For each of [`UNITS`], whether it holds all values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ExactUnits([bool; UNITS.len()]);

impl Default for ExactUnits {
    fn default() -> Self {
        Self([true; UNITS.len()])
    }
}

impl ExactUnits {
    fn has(self, unit: TimeUnit) -> bool {
        UNITS.iter().zip(self.0).any(|((known, _), exact)| *known == unit && exact)
    }

    fn add(&mut self, value: &Int96) {
        let &[low, high, day] = value.data() else {
            self.0 = [false; UNITS.len()];
            return;
        };
        let nanoseconds = (u64::from(high) << 32 | u64::from(low)).cast_signed();
        let day = i128::from(i64::from(day.cast_signed()) - EPOCH_DAY);
        let total = day * DAY_NANOSECONDS + i128::from(nanoseconds);
        for (exact, (_, unit)) in self.0.iter_mut().zip(UNITS) {
            // The library divides the nanoseconds of the day alone, which comes to the same if
            // nothing is left.
            *exact &= nanoseconds % unit == 0 && i64::try_from(total / i128::from(unit)).is_ok();
        }
    }

    /// Adds the values of a column's part in a row group.
    fn with(
        mut self,
        chunk: Chunk,
        column: &ColumnChunkMetaData,
        rows: usize,
    ) -> ParquetResult<Self> {
        let pages = SerializedPageReader::new(Arc::new(chunk), column, rows, None)?;
        let ColumnReader::Int96ColumnReader(mut reader) =
            get_column_reader(column.column_descr_ptr(), Box::new(pages))
        else {
            return Err(ParquetError::General("a column has two types".to_owned()));
        };
        let (mut values, mut levels, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            values.clear();
            levels.clear();
            repetitions.clear();
            let (records, ..) = reader.read_records(
                BATCH_VALUES,
                Some(&mut levels),
                Some(&mut repetitions),
                &mut values,
            )?;
            values.iter().for_each(|value| self.add(value));
            if records == 0 {
                return Ok(self);
            }
        }
    }
}

/// A part of a file.
struct Chunk {
    start: u64,
    bytes: Bytes,
}

impl Chunk {
    fn bytes_from(&self, at: u64) -> ParquetResult<Bytes> {
        let from = at.checked_sub(self.start).and_then(|from| usize::try_from(from).ok());
        let rest = from.and_then(|from| self.bytes.get(from..));
        let outside = || ParquetError::EOF("a page lies outside of its column".to_owned());
        rest.map(|rest| self.bytes.slice_ref(rest)).ok_or_else(outside)
    }
}

impl Length for Chunk {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Chunk {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(self.bytes_from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let mut rest = self.bytes_from(start)?;
        if rest.len() < length {
            return Err(ParquetError::EOF("a page is longer than its column".to_owned()));
        }
        rest.truncate(length);
        Ok(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_hold_values_exactly() {
        // Days since 1970-01-01, and nanoseconds; the units from seconds to nanoseconds.
        for (day, nanoseconds, units) in [
            (0, 0_i64, [true; 4]),
            (1, 1, [false, false, false, true]),
            (0, 1_000, [false, false, true, true]),
            (0, 86_399_999_000_000, [false, true, true, true]),
            (2_932_896, 0, [true, true, true, false]),
            (-719_162, 999_999_999_000, [false, false, true, false]),
            (2_932_896, 1, [false; 4]),
            // The last and the first nanosecond of 64 bits, and those beside them.
            (106_751, 85_636_854_775_807, [false, false, false, true]),
            (106_751, 85_636_854_775_808, [false; 4]),
            (-106_752, 763_145_224_192, [false, false, false, true]),
            (-106_752, 763_145_224_191, [false; 4]),
            // Beyond the microseconds of 64 bits.
            (i64::from(i32::MAX) - EPOCH_DAY, 0, [true, true, false, false]),
            (i64::from(i32::MIN) - EPOCH_DAY, 0, [true, true, false, false]),
        ] {
            let mut value = Int96::new();
            let [low, high] = [nanoseconds as u64 as u32, (nanoseconds as u64 >> 32) as u32];
            value.set_data(low, high, (day + EPOCH_DAY) as u32);
            let mut exact = ExactUnits::default();
            exact.add(&value);
            assert_eq!(exact.0, units, "{day} {nanoseconds}");
        }
    }
}
