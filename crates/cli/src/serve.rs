//! `dray serve`: files as SQL tables for every client that connects.

use std::error::Error;
use std::io::{IsTerminal, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use dray_server::catalog::{CatalogOptions, TableSpec};
use dray_server::{ServeOptions, Server};
use dray_sort::Size;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};
use tracing_subscriber::EnvFilter;

use crate::failure::Failure;

/// Where to listen when nothing is said.
const LISTEN_DEFAULT: &str = "tcp://127.0.0.1:7117";
/// How long tasks may take to let go once the server has ended.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Serve Parquet, CSV, JSON and Arrow files as SQL tables
#[derive(Debug, Args)]
#[command(after_help = "\
A file is a table named after it; a folder serves each of its files, NAME=FOLDER is one table of all of them.
Tables are loaded first. Then each address is printed on standard output as `listening on URI`; the log goes to
standard error. SIGINT or SIGTERM lets running transfers finish; a second one does not. Sizes: 65536, 512MiB, 1.5GB.

Examples:
  dray serve data/                                      every file in the folder, on dray://127.0.0.1:7117
  dray serve orders=2024/*.parquet --in-memory          from memory
  dray serve --tpch 1 --unix /run/user/1000/dray.sock   generated tables, on a Unix socket only
  dray serve data/ --listen tcp://0.0.0.0:7117 --token-file token --tls-cert cert.pem --tls-key key.pem")]
pub(crate) struct Arguments {
    /// Tables: a file, a folder, or NAME=PATH
    #[arg(value_name = "PATH | NAME=PATH")]
    tables: Vec<TableSpec>,
    /// Listen here, tcp://HOST:PORT; port 0 takes a free one [default: tcp://127.0.0.1:7117, unless --unix is given]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    listen: Vec<SocketAddr>,
    /// Listen on a Unix socket, which only this user can open
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// Certificate chain (PEM): the TCP addresses speak TLS
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// File with the token that clients must give; needed on any address but loopback
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Memory for sorts, joins and aggregates before they spill; tables held in memory are extra [default: half of what is
    /// available]
    #[arg(long, value_name = "SIZE")]
    memory: Option<Size>,
    /// Folder for what queries spill [default: the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    spill: Option<PathBuf>,
    /// Generate the TPC-H tables at this scale factor, in memory
    #[arg(long, value_name = "SF")]
    tpch: Option<f64>,
    /// Load all tables into memory first
    #[arg(long)]
    in_memory: bool,
    /// Answer GET /metrics here, HOST:PORT, for Prometheus
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    metrics: Option<SocketAddr>,
    /// Threads that a query may use [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Connections at a time
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// Statements that run at a time; others wait
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    statements: u32,
    /// Clients that connect over loopback come through a tunnel or a proxy: adapt to their network, and send checksums
    #[arg(long)]
    behind_proxy: bool,
    /// What to log: error, warn, info, debug, trace, or a filter by module
    #[arg(long, value_name = "FILTER", env = "RUST_LOG", default_value = "info")]
    log: String,
    /// How to log
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

/// Serves until a signal stops it.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    run_to_end(arguments).map_err(|cause| match cause.downcast::<Failure>() {
        Ok(failure) => *failure,
        Err(cause) => Failure::Start(cause.to_string()),
    })
}

fn run_to_end(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    start_log(&arguments)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = arguments.threads.map_or(cores, usize::from);
    let options = arguments.into_options(threads)?;
    // One worker more than a query can keep busy, so that it can't starve the sockets.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads + 1).enable_all().build()?;
    let served = runtime.block_on(serve(options));
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    served
}

async fn serve(options: ServeOptions) -> Result<(), Box<dyn Error>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut signalled = async || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    let server = tokio::select! {
        server = Server::open(options) => server?,
        () = signalled() => return Ok(()),
    };
    announce(&server)?;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = server.run(async {
        let _ = stopped.await;
    });
    tokio::pin!(running);
    tokio::select! {
        () = &mut running => return Ok(()),
        () = signalled() => info!("stopping; signal again to end running statements"),
    }
    drop(stop);
    tokio::select! {
        () = &mut running => {
            info!("stopped");
            Ok(())
        }
        () = signalled() => Err(Failure::Interrupted.into()),
    }
}

/// Tells scripts where to connect. They may be waiting, so it goes out at once.
fn announce(server: &Server) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for uri in server.uris() {
        writeln!(out, "listening on {uri}")?;
    }
    if let Some(address) = server.metrics_address() {
        writeln!(out, "metrics on http://{address}/metrics")?;
    }
    out.flush()
}

impl Arguments {
    fn into_options(self, threads: usize) -> Result<ServeOptions, Box<dyn Error>> {
        if self.tables.is_empty() && self.tpch.is_none() {
            warn!("no tables: name files or folders, or give --tpch");
        }
        let mut listen = self.listen;
        if listen.is_empty() && self.unix.is_none() {
            listen.push(parse_address(LISTEN_DEFAULT)?);
        }
        let catalog = CatalogOptions {
            tables: self.tables,
            tpch_scale: self.tpch,
            in_memory: self.in_memory,
            memory_bytes: self.memory.map(|size| usize::try_from(size.0)).transpose()?,
            spill_dir: self.spill,
            threads,
        };
        Ok(ServeOptions {
            listen,
            unix: self.unix,
            tls: self.tls_cert.zip(self.tls_key),
            token: self.token_file.as_deref().map(read_token).transpose()?,
            metrics: self.metrics,
            behind_proxy: self.behind_proxy,
            connections_max: usize::try_from(self.connections)?,
            statements_max: usize::try_from(self.statements)?,
            ..ServeOptions::new(catalog)
        })
    }
}

/// The token in a file, without the line's end.
pub(crate) fn read_token(path: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(path).map_err(|cause| format!("{}: {cause}", path.display()))?;
    match text.trim() {
        "" => Err(format!("{}: no token in this file", path.display())),
        token => Ok(token.to_owned()),
    }
}

/// `tcp://HOST:PORT` or `HOST:PORT`; of a name's addresses the first.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let address = text.strip_prefix("tcp://").or_else(|| text.strip_prefix("http://")).unwrap_or(text);
    let mut found = address.to_socket_addrs().map_err(|cause| format!("expected tcp://HOST:PORT: {cause}"))?;
    found.next().ok_or_else(|| format!("no address for {address}"))
}

fn start_log(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let filter = EnvFilter::try_new(&arguments.log).map_err(|cause| format!("--log {:?}: {cause}", arguments.log))?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match arguments.log_format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
    Ok(())
}
