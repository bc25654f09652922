//! Memory: spilling, tables in memory, TPC-H.

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, collect, collect_partitioned};
use dray_server::catalog::MEMORY_BATCH_ROWS;

use super::*;

/// The bytes that the plan has spilled.
fn spilled_bytes(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.spilled_bytes()).unwrap_or(0);
    own + plan.children().into_iter().map(spilled_bytes).sum::<usize>()
}

#[tokio::test]
async fn queries_spill_within_the_memory_they_are_given() {
    let folder = Folder::new();
    let options = CatalogOptions {
        tpch_scale: Some(0.05),
        memory_bytes: Some(24 << 20),
        spill_dir: Some(folder.0.path().to_owned()),
        ..options::<&str>([])
    };
    let ctx = catalog::open(&options).await.unwrap();
    let sql = "SELECT * FROM lineitem ORDER BY l_comment, l_orderkey, l_linenumber";
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    let batches = collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 299_814);
    let comments = batches.iter().flat_map(|batch| batch["l_comment"].as_string::<i32>().iter());
    assert!(comments.is_sorted());
    assert!(spilled_bytes(&plan) > 24 << 20);
    assert_eq!(ctx.runtime_env().memory_pool.reserved(), 0);
}

#[tokio::test]
async fn tables_in_memory_keep_order_and_hold_large_tight_batches() {
    let folder = Folder::new();
    let rows = 200_000;
    let path = folder.write("t.parquet", parquet(&sample(rows, true), Compression::SNAPPY));
    folder.write("two/a.parquet", parquet(&sample(70_000, true), Compression::SNAPPY));
    folder.write("two/b.parquet", parquet(&sample(130_000, true), Compression::SNAPPY));
    let two = format!("two={}", folder.path("two"));
    let options =
        CatalogOptions { in_memory: true, tpch_scale: Some(0.05), ..options([path, two]) };
    let ctx = catalog::open(&options).await.unwrap();

    for (table, key, rows) in
        [("t", "id", rows), ("two", "id", rows), ("lineitem", "l_orderkey", 299_814)]
    {
        let frame = ctx.table(table).await.unwrap();
        let plan = frame.create_physical_plan().await.unwrap();
        let whole = ctx.copied_config().with_batch_size(MEMORY_BATCH_ROWS);
        let task = Arc::new(TaskContext::from(&ctx.state()).with_session_config(whole));
        let parts = collect_partitioned(plan, task).await.unwrap();
        assert_eq!(parts.len(), 2, "{table}");
        // Each of the two threads that read or generated the table ends with one short batch.
        let sizes: Vec<usize> = parts.iter().flatten().map(RecordBatch::num_rows).collect();
        assert!(sizes.iter().all(|rows| *rows <= MEMORY_BATCH_ROWS), "{table}: {sizes:?}");
        assert!(
            sizes.iter().filter(|rows| **rows < MEMORY_BATCH_ROWS).count() <= 2,
            "{table}: {sizes:?}"
        );
        let mut keys: Vec<i64> = Vec::new();
        for part in &parts {
            assert!(!part.is_empty(), "{table}");
            for batch in part {
                keys.extend(
                    batch.column_by_name(key).unwrap().as_primitive::<Int64Type>().values(),
                );
                for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
                    assert_ne!(column.data_type(), &DataType::Utf8View);
                    let data = column.to_data();
                    let bytes: usize = data.buffers().iter().map(|buffer| buffer.len()).sum();
                    let allocated: usize =
                        data.buffers().iter().map(|buffer| buffer.capacity()).sum();
                    assert!(
                        allocated <= bytes + 256,
                        "{table}.{}: {allocated} for {bytes}",
                        field.name()
                    );
                }
            }
        }
        assert_eq!(keys.len(), rows as usize, "{table}");
        match table {
            "two" => assert!(keys == Vec::from_iter((0..70_000).chain(0..130_000))),
            _ => assert!(keys.is_sorted(), "{table}"),
        }
    }
}

/// The answers are those of the official TPC-H tools at this scale factor.
#[tokio::test]
async fn tpch_gives_the_known_answers() {
    let folder = Folder::new();
    let mut csv = format!("{}\n", tpchgen::csv::LineItemCsv::header());
    for row in tpchgen::generators::LineItemGenerator::new(0.01, 1, 1).iter() {
        csv.push_str(&format!("{}\n", tpchgen::csv::LineItemCsv::new(row)));
    }
    let spec = format!("lines={}", folder.write("lines.csv", csv));
    for threads in [1, 3] {
        let options = CatalogOptions { tpch_scale: Some(0.01), threads, ..options([&spec]) };
        let ctx = catalog::open(&options).await.unwrap();
        for (table, rows) in [
            ("lineitem", 60_175),
            ("orders", 15_000),
            ("partsupp", 8_000),
            ("part", 2_000),
            ("customer", 1_500),
            ("supplier", 100),
            ("nation", 25),
            ("region", 5),
        ] {
            assert_eq!(
                query(&ctx, &format!("SELECT count(*) FROM {table}")).await.unwrap(),
                format!("{rows}\n")
            );
        }
        let q1 = "SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), \
                  sum(l_extendedprice * (1 - l_discount)), count(*) FROM lineitem \
                  WHERE l_shipdate <= date '1998-09-02' GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 1";
        assert_eq!(
            query(&ctx, q1).await.unwrap(),
            "A,F,380456.00,532348211.65,505822441.4861,14876\n"
        );
        let q6 = "SELECT sum(l_extendedprice * l_discount) FROM lineitem \
                  WHERE l_shipdate >= date '1994-01-01' AND l_shipdate < date '1995-01-01' \
                  AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24";
        assert_eq!(query(&ctx, q6).await.unwrap(), "1193053.2253\n");

        let columns = "l_orderkey, l_partkey, l_suppkey, CAST(l_linenumber AS bigint), \
                       CAST(l_quantity AS double), CAST(l_extendedprice AS double), \
                       CAST(l_discount AS double), CAST(l_tax AS double), l_returnflag, \
                       l_linestatus, l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, \
                       l_shipmode, l_comment";
        for (a, b) in [("lineitem", "lines"), ("lines", "lineitem")] {
            let sql = format!(
                "SELECT count(*) FROM (SELECT {columns} FROM {a} EXCEPT ALL SELECT {columns} FROM \
                 {b})"
            );
            assert_eq!(query(&ctx, &sql).await.unwrap(), "0\n");
        }
    }
}
