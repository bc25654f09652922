//! The memory that reading files takes.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::datasource::physical_plan::ParquetSource;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::parquet::file::metadata::RowGroupMetaData;
use datafusion::physical_plan::ExecutionPlan;

use crate::arrow_batch_size::batch_bytes_max;
use crate::catalog::ParquetFiles;

/// What reading a small file takes, or one that is not Parquet.
const READ_BYTES_MIN: u64 = 4 << 20;
/// A decompressed page and a dictionary for each column of a Parquet file. Writers limit both to
/// about a megabyte.
const COLUMN_BYTES_MAX: u64 = 2 << 20;
/// Rows of a batch, and the number of batches: one is being read, one is being sorted.
const BATCH_ROWS: u64 = 8192;
const BATCHES: u64 = 2;

/// The bytes that reading one partition of a plan takes at most, estimated from file metadata.
pub(super) async fn partition_bytes(
    plan: &Arc<dyn ExecutionPlan>,
    runtime: &RuntimeEnv,
) -> Result<u64> {
    let arrow = batch_bytes_max(plan).map_or(0, |(bytes, _)| bytes);
    let mut most = READ_BYTES_MIN.max(arrow);
    let mut plans = vec![plan];
    while let Some(plan) = plans.pop() {
        plans.extend(plan.children());
        let Some(source) = plan.downcast_ref::<DataSourceExec>() else { continue };
        let Some((scan, _)) = source.downcast_to_file_source::<ParquetSource>() else { continue };
        let footers = ParquetFiles::new(runtime.object_store(&scan.object_store_url)?, runtime);
        let mut files: Vec<_> = scan.file_groups.iter().flat_map(|group| group.files()).collect();
        files.sort_unstable_by_key(|file| std::cmp::Reverse(file.object_meta.size));
        files.dedup_by_key(|file| &file.object_meta.location);
        for file in files {
            // The remaining files are smaller than the largest row group so far.
            if file.object_meta.size <= most {
                break;
            }
            let metadata = footers.footer(&file.object_meta).await?;
            most = metadata.row_groups().iter().map(row_group_bytes).fold(most, u64::max);
        }
    }
    Ok(most)
}

/// The bytes that reading a row group takes. It is read as a whole and decoded page by page.
fn row_group_bytes(group: &RowGroupMetaData) -> u64 {
    let count = |value: i64| u64::try_from(value).unwrap_or(0);
    let (compressed, plain) = (count(group.compressed_size()), count(group.total_byte_size()));
    let pages = plain.min(COLUMN_BYTES_MAX.saturating_mul(group.num_columns() as u64));
    let row_bytes = plain / count(group.num_rows()).max(1);
    compressed.saturating_add(pages).saturating_add(row_bytes.saturating_mul(BATCHES * BATCH_ROWS))
}
