//! Loads tables into memory, in large batches with buffers of exact size.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::datasource::{MemTable, TableProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder};
use datafusion::physical_plan::ExecutionPlanProperties;
use datafusion::prelude::SessionContext;
use futures::StreamExt;

use super::{MEMORY_BATCH_ROWS, tables};

/// Reads `table` into `partitions` parts, in batches of [`MEMORY_BATCH_ROWS`] rows, with plain
/// strings instead of views. Each part is a contiguous range of the rows in their order.
pub(super) async fn load(
    ctx: &SessionContext,
    table: Arc<dyn TableProvider>,
    partitions: usize,
) -> Result<MemTable> {
    // Building a state would register a new default catalog in the list that all sessions share.
    let mut config = ctx.copied_config().with_create_default_catalog_and_schema(false);
    // Without work stealing each partition reads its own range of the files, which keeps the order.
    config.options_mut().execution.enable_file_stream_work_stealing = false;
    // Keep the rules of all statements: one of them checks row counts.
    let state = SessionStateBuilder::new_from_existing(ctx.state()).with_config(config).build();
    let loading = SessionContext::new_with_state(state);
    let plan = loading.read_table(table)?.create_physical_plan().await?;
    let schema = plain_schema(&plan.schema());

    let mut tasks = Vec::new();
    for part in 0..plan.output_partitioning().partition_count() {
        let stream = plan.execute(part, loading.task_ctx())?;
        tasks.push(tokio::spawn(read_part(stream, Arc::clone(&schema))));
    }
    let mut batches = Vec::new();
    for task in tasks {
        batches
            .extend(task.await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))??);
    }
    MemTable::try_new(schema, split(batches, partitions))
}

/// Distributes batches evenly over parts, each a contiguous range.
fn split(mut batches: Vec<RecordBatch>, partitions: usize) -> Vec<Vec<RecordBatch>> {
    let mut parts = Vec::with_capacity(partitions);
    for left in (1..=partitions).rev() {
        let rest = batches.split_off(batches.len().div_ceil(left));
        parts.push(std::mem::replace(&mut batches, rest));
    }
    debug_assert!(batches.is_empty());
    parts
}

async fn read_part(
    mut stream: SendableRecordBatchStream,
    schema: SchemaRef,
) -> Result<Vec<RecordBatch>> {
    let mut full = Vec::new();
    let mut pending = Vec::new();
    let mut pending_rows = 0;
    while let Some(batch) = stream.next().await.transpose()? {
        let mut batch = batch;
        while pending_rows + batch.num_rows() >= MEMORY_BATCH_ROWS {
            let missing = MEMORY_BATCH_ROWS - pending_rows;
            pending.push(batch.slice(0, missing));
            batch = batch.slice(missing, batch.num_rows() - missing);
            full.push(pack(&schema, &pending)?);
            debug_assert_eq!(full.last().map(RecordBatch::num_rows), Some(MEMORY_BATCH_ROWS));
            pending.clear();
            pending_rows = 0;
        }
        if batch.num_rows() > 0 {
            pending_rows += batch.num_rows();
            pending.push(batch);
        }
    }
    if !pending.is_empty() {
        full.push(pack(&schema, &pending)?);
    }
    Ok(full)
}

/// Concatenates batches, with one allocation of exact size for each buffer.
fn pack(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<RecordBatch> {
    // A single batch would not be copied, and may be a slice of larger buffers. Two halves are
    // copied.
    let halves;
    let batches = match batches {
        [batch] => {
            let middle = batch.num_rows() / 2;
            halves = [batch.slice(0, middle), batch.slice(middle, batch.num_rows() - middle)];
            &halves[..]
        }
        batches => batches,
    };
    let Some(first) = batches.first() else {
        return Ok(RecordBatch::new_empty(Arc::clone(schema)));
    };
    plain_batch(schema, concat_batches(&first.schema(), batches)?)
}

/// Casts columns to the types of `schema`, and shrinks their buffers.
pub(crate) fn plain_batch(schema: &SchemaRef, batch: RecordBatch) -> Result<RecordBatch> {
    let (_, columns, _) = batch.into_parts();
    let columns = columns.into_iter().zip(schema.fields()).map(|(column, field)| {
        let mut column = if column.data_type() == field.data_type() {
            column
        } else {
            cast(&column, field.data_type())?
        };
        // This fails for shared columns, but these are not shared.
        if let Some(column) = Arc::get_mut(&mut column) {
            column.shrink_to_fit();
        }
        Ok(column)
    });
    Ok(RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<_>>()?)?)
}

/// The schema with plain strings instead of views.
pub(crate) fn plain_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let data_type = tables::plain(field.data_type());
        field.as_ref().clone().with_data_type(data_type)
    });
    Arc::new(Schema::new(fields.collect::<Vec<Field>>()))
}
