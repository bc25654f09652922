//! Compares `ORDER BY` in the server with the engine's own sort.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::SessionContext;
use dray_server::catalog::{self, CatalogOptions};
use futures::StreamExt;

const TABLES: [&str; 3] = ["lineitem", "orders", "nation"];

/// A session with the TPC-H tables; lineitem has 60,175 rows.
async fn session(memory_bytes: Option<usize>, spill: &Path) -> SessionContext {
    let options = CatalogOptions {
        tables: Vec::new(),
        tpch_scale: Some(0.01),
        in_memory: true,
        memory_bytes,
        spill_dir: Some(spill.to_owned()),
        threads: 3,
        ..CatalogOptions::default()
    };
    catalog::open(&options).await.unwrap()
}

/// The engine without Dray's sort, with the same tables.
async fn oracle(session: &SessionContext) -> SessionContext {
    let oracle = SessionContext::new();
    for table in TABLES {
        oracle.register_table(table, session.table_provider(table).await.unwrap()).unwrap();
    }
    oracle
}

async fn plan(session: &SessionContext, sql: &str) -> Arc<dyn ExecutionPlan> {
    session.sql(sql).await.unwrap().create_physical_plan().await.unwrap()
}

/// The rows, and the number of bytes spilled.
async fn run(session: &SessionContext, sql: &str) -> (RecordBatch, usize) {
    let plan = plan(session, sql).await;
    let collected = collect(plan.clone(), session.task_ctx()).await;
    let batches = collected
        .unwrap_or_else(|error| panic!("{error}: {}", displayable(plan.as_ref()).indent(false)));
    (concat_batches(&plan.schema(), &batches).unwrap(), spilled(plan.as_ref()))
}

fn spilled(plan: &dyn ExecutionPlan) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.spilled_bytes()).unwrap_or(0);
    own + plan.children().into_iter().map(|child| spilled(child.as_ref())).sum::<usize>()
}

/// Columns in which no two rows are equal.
const ALL: &str = "l_orderkey, l_linenumber";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_come_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let statements = [
        format!("SELECT * FROM lineitem ORDER BY l_shipdate, {ALL}"),
        format!("SELECT * FROM lineitem ORDER BY l_comment DESC, {ALL}"),
        format!(
            "SELECT * FROM lineitem ORDER BY l_extendedprice * l_discount DESC, \
             upper(l_shipmode), {ALL} DESC"
        ),
        format!("SELECT l_comment FROM lineitem ORDER BY l_returnflag, l_tax DESC, {ALL}"),
        format!(
            "SELECT l_partkey + 1 AS p, l_orderkey, l_linenumber FROM lineitem ORDER BY p, \
             {ALL}"
        ),
        format!(
            "SELECT * FROM (SELECT *, nullif(l_linenumber, 3) AS n FROM lineitem) ORDER BY n \
             NULLS FIRST, {ALL}"
        ),
        format!(
            "SELECT * FROM (SELECT *, nullif(l_linenumber, 3) AS n FROM lineitem) ORDER BY n \
             DESC NULLS LAST, {ALL}"
        ),
        format!("SELECT cast(l_tax AS double) * -1 AS t, {ALL} FROM lineitem ORDER BY t, {ALL}"),
        format!("SELECT [l_shipmode, l_comment] AS a, {ALL} FROM lineitem ORDER BY a, {ALL}"),
        format!(
            "SELECT arrow_cast(l_shipmode, 'Dictionary(Int32, Utf8)') AS d, {ALL} FROM \
             lineitem ORDER BY d, {ALL}"
        ),
        format!(
            "SELECT arrow_cast(l_comment, 'Utf8View') AS v, {ALL} FROM lineitem ORDER BY v, \
             {ALL}"
        ),
        "SELECT * FROM lineitem WHERE l_orderkey < 0 ORDER BY l_comment".to_owned(),
        "SELECT * FROM nation ORDER BY n_name".to_owned(),
        "SELECT o_orderdate, count(*) FROM orders JOIN lineitem ON o_orderkey = l_orderkey GROUP \
         BY o_orderdate ORDER BY 1"
            .to_owned(),
        format!(
            "SELECT row_number() OVER (ORDER BY l_comment, {ALL}) AS n, {ALL} FROM lineitem \
             ORDER BY n DESC"
        ),
    ];
    for (memory_bytes, spills) in [(None, false), (Some(4 << 20), true)] {
        let session = session(memory_bytes, folder.path()).await;
        let oracle = oracle(&session).await;
        let mut spilled_bytes = 0;
        for sql in &statements {
            let (found, spilled) = run(&session, sql).await;
            let (expected, _) = run(&oracle, sql).await;
            assert_eq!(found, expected, "{sql}");
            spilled_bytes += spilled;
        }
        assert_eq!(spilled_bytes > 1 << 20, spills, "{spilled_bytes} bytes");
        assert_eq!(session.task_ctx().memory_pool().reserved(), 0);
    }
}

#[tokio::test]
async fn which_sorts_are_drays() {
    let folder = tempfile::tempdir().unwrap();
    let session = session(None, folder.path()).await;
    let shown =
        async |sql: &str| displayable(plan(&session, sql).await.as_ref()).indent(false).to_string();
    let full = shown("SELECT * FROM lineitem ORDER BY l_comment").await;
    assert!(full.starts_with("ExternalSortExec: expr=[l_comment@15 ASC NULLS LAST]"), "{full}");
    assert!(!full.contains("SortPreservingMergeExec"), "{full}");
    let top = shown("SELECT * FROM lineitem ORDER BY l_comment LIMIT 10").await;
    assert!(top.contains("TopK(fetch=10)") && !top.contains("ExternalSortExec"), "{top}");
}

/// The content of a spill folder, without the engine's own empty folders.
fn files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sort_that_nobody_waits_for_ends() {
    let folder = tempfile::tempdir().unwrap();
    let session = session(Some(4 << 20), folder.path()).await;
    let sql = "SELECT a.* FROM lineitem a, nation ORDER BY a.l_comment, n_name";
    for batches in [0, 1, 3] {
        let plan = plan(&session, sql).await;
        let mut stream = plan.execute(0, session.task_ctx()).unwrap();
        if batches == 0 {
            // By now the sort reads rows.
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        for _ in 0..batches {
            assert!(stream.next().await.unwrap().unwrap().num_rows() > 0);
        }
        // The plan buffers the smaller side of the join.
        drop((stream, plan));
        let started = Instant::now();
        while session.task_ctx().memory_pool().reserved() > 0 {
            assert!(
                started.elapsed() < Duration::from_secs(20),
                "after {batches} batches {} bytes are still reserved",
                session.task_ctx().memory_pool().reserved()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(files(folder.path()), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_little_is_said_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let spill = folder.path().join("spill");
    std::fs::create_dir(&spill).unwrap();
    let failure = async |session: &SessionContext| {
        let plan = plan(session, "SELECT * FROM lineitem ORDER BY l_comment").await;
        collect(plan, session.task_ctx()).await.unwrap_err().strip_backtrace()
    };
    let little = session(Some(10_000), &spill).await;
    let sentence = failure(&little).await;
    assert!(
        sentence.contains("sorting needs 65536 bytes of memory, and may take 10000"),
        "{sentence}"
    );
    let short = session(Some(1 << 20), &spill).await;
    std::fs::remove_dir_all(&spill).unwrap();
    let sentence = failure(&short).await;
    assert!(
        sentence.contains("can't create a spill file: No such file or directory"),
        "{sentence}"
    );
    let (rows, _) = run(&short, "SELECT * FROM nation ORDER BY n_comment").await;
    assert_eq!(rows.num_rows(), 25);
}
