//! A server on its own thread, for tests.

#![allow(dead_code, reason = "each test uses a part")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::DataType;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
use datafusion::prelude::{SessionConfig, SessionContext};
use dray_client::{ConnectOptions, Connection};
use dray_server::catalog::CatalogOptions;
use dray_server::{Metrics, ServeOptions, Server};
use tokio::sync::oneshot;

/// A running server. Dropping it stops the server.
pub struct Running {
    /// A uri whose clients stay on TCP.
    pub tcp: String,
    /// Host and port of the TCP address.
    pub address: String,
    pub unix: String,
    pub metrics: Arc<Metrics>,
    pub metrics_address: Option<std::net::SocketAddr>,
    pub folder: tempfile::TempDir,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Running {
    /// A server with the tables `numbers` (1,000,000 rows of n and a text) and `one`, and the
    /// functions `fail_at(n, m)`, which fails if n = m, `panic_at(n, m)`, which panics instead, and
    /// `slow(n)`, which takes a millisecond for each batch.
    pub fn start() -> Self {
        Self::start_with(|_| {})
    }

    pub fn start_with(change: impl FnOnce(&mut ServeOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = ServeOptions::new(CatalogOptions {
            tables: Vec::new(),
            tpch_scale: None,
            in_memory: false,
            memory_bytes: None,
            spill_dir: None,
            threads: 2,
            ..CatalogOptions::default()
        });
        options.listen = vec!["127.0.0.1:0".parse().unwrap()];
        options.unix = Some(folder.path().join("dray.sock"));
        change(&mut options);
        let memory = options.catalog.memory_bytes;
        let (stop, stopped) = oneshot::channel();
        let (opened, opening) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(3)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let server = Server::with_context(context(memory), options).await.unwrap();
                opened.send((server.uris(), server.metrics(), server.metrics_address())).unwrap();
                server.run(async move { stopped.await.unwrap_or(()) }).await;
            });
        });
        let (uris, metrics, metrics_address) = opening.recv().unwrap();
        let uri = |scheme: &str| {
            uris.iter().find(|uri| uri.starts_with(scheme)).cloned().unwrap_or_default()
        };
        let (tcp, unix) = (uri("dray"), uri("dray+unix"));
        Self {
            address: tcp.split('/').next_back().unwrap().to_owned(),
            tcp: format!("{tcp}?local_socket=false"),
            unix,
            metrics,
            metrics_address,
            folder,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub fn connect(&self) -> Connection {
        Connection::connect(&self.unix, &ConnectOptions::default()).unwrap()
    }

    pub fn socket_path(&self) -> PathBuf {
        self.unix.strip_prefix("dray+unix://").unwrap().into()
    }

    /// Asserts that the server still answers.
    pub fn assert_serves(&self) {
        let mut connection = self.connect();
        let batches =
            connection.query("SELECT 1 AS x", &Default::default()).unwrap().read_all().unwrap();
        assert_eq!(batches[0].num_rows(), 1);
    }

    /// A counter of the metrics page.
    pub fn count(&self, name: &str) -> f64 {
        let page = self.metrics.render();
        let line = page.lines().find(|line| line.starts_with(&format!("dray_{name} ")));
        line.unwrap_or_else(|| panic!("no {name} in {page}"))
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap()
    }

    /// Waits until a counter has a value.
    pub fn wait_for(&self, name: &str, value: f64) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.count(name) != value {
            assert!(Instant::now() < deadline, "{name} is {}, expected {value}", self.count(name));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Asks the server to stop, without waiting.
    pub fn ask_to_stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    /// Waits until the server has stopped.
    pub fn wait_for_end(&mut self) {
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ask_to_stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn context(memory_bytes: Option<usize>) -> SessionContext {
    let mut runtime = RuntimeEnvBuilder::new();
    if let Some(bytes) = memory_bytes {
        runtime = runtime.with_memory_pool(Arc::new(FairSpillPool::new(bytes)));
    }
    let config = SessionConfig::new().with_target_partitions(2);
    let context = SessionContext::new_with_config_rt(config, runtime.build_arc().unwrap());
    let batches = (0..16).map(|part| {
        let n = Int64Array::from_iter_values((0..62_500).map(|i| part * 62_500 + i));
        let text = StringArray::from_iter_values(n.values().iter().map(|n| format!("row {n}")));
        RecordBatch::try_from_iter([
            ("n", Arc::new(n) as ArrayRef),
            ("text", Arc::new(text) as ArrayRef),
        ])
        .unwrap()
    });
    let batches: Vec<RecordBatch> = batches.collect();
    let table =
        datafusion::datasource::MemTable::try_new(batches[0].schema(), vec![batches]).unwrap();
    context.register_table("numbers", Arc::new(table)).unwrap();
    for (name, panics) in [("fail_at", false), ("panic_at", true)] {
        let function = move |args: &[ColumnarValue]| {
            let arrays = ColumnarValue::values_to_arrays(args)?;
            let column = |i: usize| arrays[i].as_any().downcast_ref::<Int64Array>().unwrap();
            if column(0).iter().zip(column(1)).any(|(n, m)| n == m) {
                assert!(!panics, "the function met its row");
                return Err(datafusion::common::DataFusionError::Execution(
                    "the function met its row".into(),
                ));
            }
            Ok(ColumnarValue::Array(arrays[0].clone()))
        };
        let types = vec![DataType::Int64, DataType::Int64];
        context.register_udf(create_udf(
            name,
            types,
            DataType::Int64,
            Volatility::Volatile,
            Arc::new(function),
        ));
    }
    let slow = |args: &[ColumnarValue]| {
        std::thread::sleep(Duration::from_millis(1));
        Ok(args[0].clone())
    };
    let types = vec![DataType::Int64];
    context.register_udf(create_udf(
        "slow",
        types,
        DataType::Int64,
        Volatility::Volatile,
        Arc::new(slow),
    ));
    // Without `context.sql`, which would compile the engine's planner once more for each program.
    let one: ArrayRef = Arc::new(Int64Array::from_iter_values([1]));
    context.register_batch("one", RecordBatch::try_from_iter([("x", one)]).unwrap()).unwrap();
    context
}
