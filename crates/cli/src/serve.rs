//! `dray serve`: files as SQL tables for every client that connects.

use std::error::Error;
use std::io::{IsTerminal, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use dray_client::Secret;
use dray_server::catalog::{CatalogOptions, TableSpec};
use dray_server::{ServeOptions, Server};
use dray_sort::ByteSize;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};
use tracing_subscriber::EnvFilter;

use crate::failure::Failure;

/// Where to listen when nothing is said.
const LISTEN_DEFAULT: &str = "tcp://127.0.0.1:7117";
/// Descriptors that are kept for files, listeners and metrics, and those that a connection may
/// take: a socket, a look at it, and pipes.
const DESCRIPTORS_KEPT: u64 = 64;
const DESCRIPTORS_A_CONNECTION: u64 = 4;

/// Serve Parquet, CSV, JSON and Arrow files as SQL tables
#[derive(Debug, Args)]
#[command(after_help = "\
A file is a table named after it; a folder serves each of its files, NAME=FOLDER is one table of all of them. \
A table is the files that were there at the start: statements fail once one is removed, replaced or written to, \
and start again to serve new ones. `dray tables URI` lists the tables.

Tables are loaded first. Then each address is printed on standard output as `listening on URI`; the log goes to \
standard error. SIGINT or SIGTERM lets running transfers finish; a second one does not. Sizes: 65536, 512MiB, 1.5GB.

Examples:
  dray serve data/                         every file in the folder, on dray://127.0.0.1:7117
  dray serve orders=2024/ --in-memory      one table of a folder's files, from memory
  dray serve --tpch 1 --unix /tmp/d.sock   generated tables, on a Unix socket only
  dray serve data/ --listen tcp://0.0.0.0:7117 --token-file token \\
      --tls-cert cert.pem --tls-key key.pem

Exit codes: 0 stopped by a signal, 1 the server failed, 2 wrong usage (an option, or a file or address that it names), \
130 stopped by a second signal.")]
pub(crate) struct Arguments {
    /// Tables: a file, a folder, or NAME=PATH
    #[arg(value_name = "PATH | NAME=PATH")]
    tables: Vec<TableSpec>,
    /// Listen here, tcp://HOST:PORT; port 0 takes a free one [default: tcp://127.0.0.1:7117, unless
    /// --unix is given]
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
    /// Memory for sorts, joins and aggregates before they spill; tables held in memory are extra
    /// [default: half of what is available]
    #[arg(long, value_name = "SIZE")]
    memory: Option<ByteSize>,
    /// Folder for what queries spill [default: the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    spill: Option<PathBuf>,
    /// How much of that disk all queries' sorts may take at a time, and as much their other
    /// operators
    #[arg(long, value_name = "SIZE", default_value = "100GB")]
    spill_max: ByteSize,
    /// Generate the TPC-H tables at this scale factor, in memory
    #[arg(long, value_name = "SF")]
    tpch: Option<f64>,
    /// Load all tables into memory first
    #[arg(long)]
    in_memory: bool,
    /// CSV files have no line of names at their beginning: their columns are column_1, column_2, …
    #[arg(long)]
    no_header: bool,
    /// The files of one table may have different columns: they are matched by name, and NULL in
    /// files that lack them
    #[arg(long)]
    union_by_name: bool,
    /// Answer GET /metrics here, HOST:PORT, for Prometheus
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    metrics: Option<SocketAddr>,
    /// The address of --metrics may be one that other hosts can reach; nobody is asked for a token
    /// there
    #[arg(long, requires = "metrics")]
    metrics_public: bool,
    /// Threads that a query may use [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Connections at a time
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// Connections at a time from one host [default: three quarters]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    connections_per_host: Option<u32>,
    /// Statements that run at a time; others wait
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    statements: u32,
    /// Statements at a time from one host [default: three quarters]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    statements_per_host: Option<u32>,
    /// How long a statement waits for its turn
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = parse_seconds)]
    wait_timeout: Duration,
    /// How long planning a statement may take
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = parse_seconds)]
    plan_timeout: Duration,
    /// How long a client may read nothing of a result
    #[arg(long, value_name = "SECONDS", default_value = "900", value_parser = parse_seconds)]
    stall_timeout: Duration,
    /// The same while other statements wait for a turn or for memory, or the server stops
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = parse_seconds)]
    stall_timeout_wanted: Duration,
    /// Clients that connect over loopback come through a tunnel or a proxy: adapt to their network,
    /// and send checksums
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
    let mut options =
        arguments.into_options(threads).map_err(|cause| Failure::Usage(cause.to_string()))?;
    let possible = connections_possible();
    if options.connections_max > possible {
        warn!(
            "--connections: there are descriptors for {possible} only; raise the limit of open files (ulimit -n)"
        );
        options.connections_max = possible;
    }
    // Sockets and signals only: what computes has threads of its own.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.max(2))
        .enable_all()
        .build()?;
    let served = runtime.block_on(serve(options));
    // Threads that still compute end with the process.
    runtime.shutdown_background();
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
        server = Server::open(options) => server.map_err(|cause| Failure::Usage(cause.to_string()))?,
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

/// How many connections there are descriptors for, once the process may have as many as the system
/// lets it.
fn connections_possible() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // If it can't be raised it stays.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let Some(descriptors) = getrlimit(Resource::Nofile).current else { return usize::MAX };
    let connections =
        (descriptors.saturating_sub(DESCRIPTORS_KEPT) / DESCRIPTORS_A_CONNECTION).max(1);
    usize::try_from(connections).unwrap_or(usize::MAX)
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
            spill_bytes_max: Some(self.spill_max.0),
            threads,
            csv_no_header: self.no_header,
            union_by_name: self.union_by_name,
        };
        Ok(ServeOptions {
            listen,
            unix: self.unix,
            tls: self.tls_cert.zip(self.tls_key),
            token: self.token_file.as_deref().map(read_token).transpose()?,
            metrics: self.metrics,
            metrics_public: self.metrics_public,
            behind_proxy: self.behind_proxy,
            connections_max: usize::try_from(self.connections)?,
            connections_per_host: self.connections_per_host.map(usize::try_from).transpose()?,
            statements_max: usize::try_from(self.statements)?,
            statements_per_host: self.statements_per_host.map(usize::try_from).transpose()?,
            wait_timeout: self.wait_timeout,
            plan_timeout: self.plan_timeout,
            stall_timeout: self.stall_timeout,
            stall_timeout_wanted: self.stall_timeout_wanted,
            ..ServeOptions::new(catalog)
        })
    }
}

/// The token in a file, without the line's end.
pub(crate) fn read_token(path: &Path) -> Result<Secret, String> {
    let text =
        std::fs::read_to_string(path).map_err(|cause| format!("{}: {cause}", path.display()))?;
    match text.trim() {
        "" => Err(format!("{}: no token in this file", path.display())),
        token => Ok(token.into()),
    }
}

/// `tcp://HOST:PORT` or `HOST:PORT`; of a name's addresses the first.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let address =
        text.strip_prefix("tcp://").or_else(|| text.strip_prefix("http://")).unwrap_or(text);
    let mut found =
        address.to_socket_addrs().map_err(|cause| format!("expected tcp://HOST:PORT: {cause}"))?;
    found.next().ok_or_else(|| format!("no address for {address}"))
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds
        .filter(|seconds| !seconds.is_zero())
        .ok_or_else(|| "expected a number of seconds above 0".to_owned())
}

fn start_log(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let filter = EnvFilter::try_new(&arguments.log)
        .map_err(|cause| Failure::Usage(format!("--log {:?}: {cause}", arguments.log)))?;
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
