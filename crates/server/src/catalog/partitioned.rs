//! The table of files in `key=value` folders. Filters on the keys alone decide what is read.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, DFSchema, ScalarValue, Statistics};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::listing::helpers::expr_applicable_for_cols;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::table_schema::TableSchemaBuilder;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::object_store::ObjectStore;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use futures::{StreamExt, TryStreamExt};
use tokio::sync::OnceCell;

use super::partitions::Partitions;
use super::served::ServedFile;
use super::store::{self, ServedFiles};

/// Footers that are read at the same time.
const FOOTERS_AT_A_TIME: usize = 16;

/// A table of files below folders that are named `key=value`.
#[derive(Debug)]
pub(super) struct PartitionedTable {
    format: Arc<dyn FileFormat>,
    store: Arc<ServedFiles>,
    /// The columns in the files.
    file_schema: SchemaRef,
    /// The columns of the folders, which are the last ones of the table.
    keys: Vec<FieldRef>,
    /// All columns.
    schema: SchemaRef,
    files: Vec<Part>,
}

/// A file, with the values of its folders.
#[derive(Debug)]
struct Part {
    file: Arc<ServedFile>,
    values: Vec<ScalarValue>,
    /// Read when a statement first needs the file. A file that changes is an error.
    statistics: OnceCell<Arc<Statistics>>,
}

impl PartitionedTable {
    pub(super) fn new(
        format: Arc<dyn FileFormat>,
        store: Arc<ServedFiles>,
        file_schema: SchemaRef,
        files: &[Arc<ServedFile>],
        partitions: &Partitions,
    ) -> Self {
        let keys = partitions.columns.iter().enumerate().map(|(i, (key, data_type))| {
            let has_null =
                partitions.values.iter().any(|values| values.get(i).is_some_and(|v| v.is_null()));
            Arc::new(Field::new(key, data_type.clone(), has_null))
        });
        let keys = keys.collect::<Vec<_>>();
        let fields = file_schema.fields().iter().chain(&keys).cloned().collect::<Vec<_>>();
        let schema = Schema::new_with_metadata(fields, file_schema.metadata().clone());
        assert_eq!(files.len(), partitions.values.len(), "each file has the values of its folders");
        let files = files.iter().zip(&partitions.values).map(|(file, values)| Part {
            file: Arc::clone(file),
            values: values.clone(),
            statistics: OnceCell::new(),
        });
        let files = files.collect();
        Self { format, store, file_schema, keys, schema: Arc::new(schema), files }
    }

    fn is_of_keys(&self, filter: &Expr) -> bool {
        let names = self.keys.iter().map(|key| key.name().as_str()).collect::<Vec<_>>();
        expr_applicable_for_cols(&names, filter)
    }

    /// The files whose folders fit all filters.
    fn fitting(&self, state: &dyn Session, filters: &[Expr]) -> Result<Vec<&Part>> {
        let fields = self.keys.iter().map(|key| key.as_ref().clone().with_nullable(true));
        let schema = DFSchema::from_unqualified_fields(fields.collect(), Default::default())?;
        let filters = filters
            .iter()
            .map(|filter| state.create_physical_expr(filter.clone(), &schema))
            .collect::<Result<Vec<_>>>()?;
        let mut fitting = Vec::new();
        for part in &self.files {
            let values =
                part.values.iter().map(ScalarValue::to_array).collect::<Result<Vec<_>>>()?;
            let row = RecordBatch::try_new(Arc::clone(schema.inner()), values)?;
            let mut fits = true;
            for filter in &filters {
                let truth = filter.evaluate(&row)?.into_array(1)?;
                let truth = truth.as_boolean();
                // What is neither true nor false is no reason to read a file.
                fits &= truth.is_valid(0) && truth.value(0);
            }
            if fits {
                fitting.push(part);
            }
        }
        Ok(fitting)
    }

    /// A file as the engine reads it, with what is known of its rows.
    async fn scanned(
        &self,
        state: &dyn Session,
        part: &Part,
    ) -> Result<(PartitionedFile, Arc<Statistics>)> {
        let meta = store::meta_of(&part.file)?;
        let statistics = part.statistics.get_or_try_init(|| async {
            let store = Arc::clone(&self.store) as Arc<dyn ObjectStore>;
            let schema = Arc::clone(&self.file_schema);
            let mut known = self.format.infer_stats(state, &store, schema, &meta).await?;
            let of_keys = part.values.iter().map(|value| of_value(value, known.num_rows));
            known.column_statistics.extend(of_keys.collect::<Vec<_>>());
            Ok::<_, datafusion::error::DataFusionError>(Arc::new(known))
        });
        let statistics = Arc::clone(statistics.await?);
        let mut file = PartitionedFile::from(meta);
        file.partition_values = part.values.clone();
        file.statistics = Some(Arc::clone(&statistics));
        Ok((file, statistics))
    }
}

/// The statistics of a column that has one value in all rows of a file.
fn of_value(value: &ScalarValue, rows: Precision<usize>) -> ColumnStatistics {
    let known = match value.is_null() {
        true => ColumnStatistics { null_count: rows, ..ColumnStatistics::new_unknown() },
        false => ColumnStatistics {
            null_count: Precision::Exact(0),
            min_value: Precision::Exact(value.clone()),
            max_value: Precision::Exact(value.clone()),
            ..ColumnStatistics::new_unknown()
        },
    };
    ColumnStatistics { distinct_count: Precision::Inexact(1), ..known }
}

#[async_trait]
impl TableProvider for PartitionedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (of_keys, of_rows): (Vec<_>, Vec<_>) =
            filters.iter().cloned().partition(|filter| self.is_of_keys(filter));
        let fitting = self.fitting(state, &of_keys)?;
        store::check(fitting.iter().map(|part| Arc::clone(&part.file)).collect()).await?;
        let mut scanned = Vec::with_capacity(fitting.len());
        for part in fitting {
            scanned.push(self.scanned(state, part));
        }
        let mut scanned: Vec<_> =
            futures::stream::iter(scanned).buffered(FOOTERS_AT_A_TIME).try_collect().await?;
        // The values of its folders are in no row of an empty file.
        scanned.retain(|(_, known)| known.num_rows != Precision::Exact(0));
        if scanned.is_empty() {
            let schema = match projection {
                Some(projection) => Arc::new(self.schema.project(projection)?),
                None => Arc::clone(&self.schema),
            };
            return Ok(Arc::new(EmptyExec::new(schema)));
        }
        let (files, known): (Vec<_>, Vec<_>) = scanned.into_iter().unzip();
        let known = Statistics::try_merge_iter(known.iter().map(AsRef::as_ref), &self.schema)?;
        let groups = FileGroup::new(files).split_files(state.config().target_partitions().max(1));
        let table = TableSchemaBuilder::from(&self.file_schema)
            .with_table_partition_cols(self.keys.clone())
            .build();
        let source = self.format.file_source(table);
        let scan = FileScanConfigBuilder::new(store::table_url("")?.object_store(), source)
            .with_file_groups(groups)
            .with_statistics(known)
            .with_projection_indices(projection.cloned())?
            // Filters are applied behind the scan.
            .with_limit(limit.filter(|_| of_rows.is_empty()))
            .build();
        self.format.create_physical_plan(state, scan).await
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let pushed = filters.iter().map(|filter| match self.is_of_keys(filter) {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Inexact,
        });
        Ok(pushed.collect())
    }
}
