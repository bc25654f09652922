//! Rows in the order of some columns, sorted on disk if they must be.

use std::path::PathBuf;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatchReader;
use dray_format::arrow::{batch_from_arrow, batch_to_arrow, schema_from_arrow};
use dray_sort::{Cancel, FixedBudget, Options, OrderBy, Sorter};

use crate::error::{Error, Result};

/// Larger batches are split: a run of a sort holds whole batches.
const BATCH_ROWS: usize = 16 << 10;

/// Batches of rows.
pub(crate) type Rows<'a> = Box<dyn RecordBatchReader + Send + 'a>;

/// How rows are sorted.
#[derive(Debug, Clone)]
pub(crate) struct Sorting {
    /// The memory of each sort.
    pub(crate) memory_bytes: usize,
    pub(crate) spill_folder: PathBuf,
    pub(crate) cancel: Cancel,
}

impl Sorting {
    /// The rows in the order of these columns. All of them are read before this returns. `level`
    /// names them in errors.
    pub(crate) fn sorted(
        &self,
        rows: Rows<'_>,
        by: &[OrderBy],
        level: &str,
    ) -> Result<Rows<'static>> {
        let arrow_schema = rows.schema();
        let schema = schema_from_arrow(&arrow_schema)?;
        let names = || arrow_schema.fields().iter().map(|field| field.name().as_str());
        let by = by.iter().map(|by| by.resolve(names()));
        let by = by.collect::<Result<Vec<_>, String>>();
        let by = by.map_err(|what| Error::Spec(format!("{level}: {what}")))?;
        let options = Options {
            spill_folder: Some(self.spill_folder.clone()),
            cancel: self.cancel.clone(),
            ..Options::new(by, FixedBudget::new(self.memory_bytes))
        };
        let sorter = Sorter::new(schema, options)?;
        let mut writer = sorter.writer();
        let mut sequence = 0;
        for batch in rows {
            let batch = batch.map_err(|cause| Error::statement(level, cause))?;
            for from in (0..batch.num_rows()).step_by(BATCH_ROWS) {
                let slice = batch.slice(from, BATCH_ROWS.min(batch.num_rows() - from));
                writer.append(sequence, &batch_from_arrow(&slice)?)?;
                sequence += 1;
            }
        }
        writer.finish()?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Box::new(Sorted { rows: sorter.finish(threads)?, schema: arrow_schema }))
    }
}

struct Sorted {
    rows: dray_sort::Sorted,
    schema: SchemaRef,
}

impl Iterator for Sorted {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.rows.next()?.map_err(Error::from);
        Some(batch.and_then(|batch| Ok(batch_to_arrow(batch, &self.schema)?)).map_err(Into::into))
    }
}

impl RecordBatchReader for Sorted {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
