//! What reading files takes besides sorting their rows.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::datasource::physical_plan::ParquetSource;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::parquet::file::metadata::RowGroupMetaData;
use datafusion::physical_plan::ExecutionPlan;

use crate::arrow_batch_size::batch_bytes_max;

/// A file of rows or of columns that are not compressed is read in pieces.
const PIECES_BYTES: u64 = 4 << 20;
/// Of each column of a Parquet file there is a page and a dictionary, decompressed; writers end
/// them at about a megabyte.
const COLUMN_BYTES_MAX: u64 = 2 << 20;
/// Rows of a batch, and how many batches there are: the one that is made, and the one that is
/// sorted.
const BATCH_ROWS: u64 = 8192;
const BATCHES: u64 = 2;

/// The bytes that reading one partition of a plan takes at most, as far as the files tell.
pub(super) async fn of_partition(
    plan: &Arc<dyn ExecutionPlan>,
    runtime: &RuntimeEnv,
) -> Result<u64> {
    let arrow = batch_bytes_max(plan).ok().flatten().map_or(0, |(bytes, _)| bytes);
    let mut most = PIECES_BYTES.max(arrow);
    let mut plans = vec![plan];
    while let Some(plan) = plans.pop() {
        plans.extend(plan.children());
        let Some(source) = plan.downcast_ref::<DataSourceExec>() else { continue };
        let Some((scan, _)) = source.downcast_to_file_source::<ParquetSource>() else { continue };
        let store = runtime.object_store(&scan.object_store_url)?;
        let mut files: Vec<_> = scan.file_groups.iter().flat_map(|group| group.files()).collect();
        files.sort_unstable_by_key(|file| std::cmp::Reverse(file.object_meta.size));
        files.dedup_by_key(|file| &file.object_meta.location);
        for file in files {
            // The others are smaller than a row group of those before.
            if file.object_meta.size <= most {
                break;
            }
            let metadata = DFParquetMetadata::new(store.as_ref(), &file.object_meta)
                .with_file_metadata_cache(Some(runtime.cache_manager.get_file_metadata_cache()))
                .fetch_metadata()
                .await?;
            most = metadata.row_groups().iter().map(of_row_group).fold(most, u64::max);
        }
    }
    Ok(most)
}

/// A row group is read as a whole and decoded page by page.
fn of_row_group(group: &RowGroupMetaData) -> u64 {
    let count = |value: i64| u64::try_from(value).unwrap_or(0);
    let (compressed, plain) = (count(group.compressed_size()), count(group.total_byte_size()));
    let pages = plain.min(COLUMN_BYTES_MAX.saturating_mul(group.num_columns() as u64));
    let row_bytes = plain / count(group.num_rows()).max(1);
    compressed.saturating_add(pages).saturating_add(row_bytes.saturating_mul(BATCHES * BATCH_ROWS))
}
