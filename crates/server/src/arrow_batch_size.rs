//! The memory that reading Arrow files takes: that of the largest record batch, since a batch is
//! read as a whole. It is measured when tables are opened, so that statements need no file for it.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::datasource::physical_plan::FileGroup;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;

use crate::catalog::RowSource;

/// The bytes of the largest record batch of the Arrow files that a plan reads, and the path or URL
/// of its file. None if the plan reads no Arrow files.
pub(crate) fn batch_bytes_max(plan: &Arc<dyn ExecutionPlan>) -> Option<(u64, PathBuf)> {
    let mut most: Option<(u64, PathBuf)> = None;
    let mut plans = vec![plan];
    while let Some(plan) = plans.pop() {
        plans.extend(plan.children());
        let rows = plan
            .downcast_ref::<DataSourceExec>()
            .and_then(DataSourceExec::downcast_to_file_source::<RowSource>);
        let Some((scan, source)) = rows else { continue };
        for file in scan.file_groups.iter().flat_map(FileGroup::files) {
            let Some(of_file) = source.batch_bytes(&file.object_meta.location) else { break };
            if most.as_ref().is_none_or(|(most, _)| *most < of_file.0) {
                most = Some(of_file);
            }
        }
    }
    most
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use std::fs;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use arrow::ipc::CompressionType;
    use arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};

    use super::*;
    use crate::catalog::{self, CatalogOptions};

    fn batch(rows: i64) -> RecordBatch {
        let numbers = Arc::new(Int64Array::from_iter_values(0..rows)) as ArrayRef;
        RecordBatch::try_from_iter([("n", numbers)]).unwrap()
    }

    /// A disk that hangs must not hold up a statement before it reads.
    #[tokio::test]
    async fn the_largest_batch_is_known_without_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut tables = Vec::new();
        for (name, compression) in [("plain", None), ("lz4", Some(CompressionType::LZ4_FRAME))] {
            let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
            let schema = batch(0).schema();
            let mut file =
                FileWriter::try_new_with_options(Vec::new(), &schema, options.clone()).unwrap();
            let mut stream =
                StreamWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
            for rows in [10, 100_000, 1000] {
                file.write(&batch(rows)).unwrap();
                stream.write(&batch(rows)).unwrap();
            }
            for (kind, bytes) in
                [("file", file.into_inner().unwrap()), ("stream", stream.into_inner().unwrap())]
            {
                let path = folder.path().join(format!("{name}_{kind}.arrow"));
                fs::write(&path, bytes).unwrap();
                tables.push(path.to_str().unwrap().parse().unwrap());
            }
        }
        let options = CatalogOptions { tables, threads: 2, ..CatalogOptions::default() };
        let context = catalog::open(&options).await.unwrap();
        for (table, expected) in [
            ("plain_file", 800_000..801_000),
            ("plain_stream", 800_000..801_000),
            ("lz4_file", 1_000_000..1_300_000),
            ("lz4_stream", 1_000_000..1_300_000),
        ] {
            let table_scan = context.table(table).await.unwrap();
            let plan = table_scan.create_physical_plan().await.unwrap();
            let path = folder.path().join(format!("{table}.arrow"));
            fs::remove_file(&path).unwrap();
            let (bytes, of) = batch_bytes_max(&plan).unwrap();
            assert!(expected.contains(&bytes) && of == path, "{table}: {bytes}");
        }
    }
}
