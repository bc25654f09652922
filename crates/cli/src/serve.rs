//! `dray serve`: serves files as SQL tables, and databases as sources.

mod sources;

use std::error::Error;
use std::io::{IsTerminal, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use dray_client::Secret;
use dray_server::catalog::{CatalogOptions, PartitionTypes, TableSpec};
use dray_server::{ServeOptions, Server};
use dray_sort::ByteSize;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};
use tracing_subscriber::EnvFilter;

use crate::failure::Failure;

/// The default address.
const LISTEN_DEFAULT: &str = "tcp://127.0.0.1:7117";
/// The least characters of a secret that servers share.
const PLAN_SECRET_MIN: usize = 32;
/// File descriptors reserved for files, listeners and metrics.
const DESCRIPTORS_RESERVED: u64 = 64;
/// File descriptors that a connection may use: a socket, its duplicate, and pipes.
const DESCRIPTORS_PER_CONNECTION: u64 = 4;

/// Serve Parquet, CSV, JSON and Arrow files as SQL tables, and databases by name
#[derive(Debug, Args)]
#[command(after_help = "\
PATH is a file, a folder or the URL of one in an object store: s3://, gs://, az://, abfss://, http:// \
or https://. Credentials come from the environment, as for the stores' own tools. Folders that are \
named KEY=VALUE are columns.

A file is a table named after it. A folder serves each of its files as a table; NAME=FOLDER is one \
table of all of them. A table consists of the files that exist at the start: if one of them is \
removed, replaced or written to, statements that read it fail. Restart to serve new files. `dray \
tables URI` lists the tables.

With --source, statements for dray://HOST/NAME are passed on to that database as they are. They run \
in transactions that are read-only and must begin with SELECT or another word that reads. That is \
a help against mistakes: give the source a user that has no other rights. Each client has a \
connection to the database of its own, from its first statement until it leaves.

Once the tables are loaded, each address is printed on standard output as `listening on URI`. The \
log goes to standard error. Clients on this host that run as this user and connect by TCP without \
TLS move to a Unix socket by themselves, unless --behind-proxy is given. SIGINT or SIGTERM lets \
running transfers finish; a second signal ends them. Sizes: 65536, 512MiB, 1.5GB.

Examples:
  dray serve data/                         every file in the folder, on dray://127.0.0.1:7117
  dray serve orders=2024/ --in-memory      one table of a folder's files, from memory
  dray serve orders=s3://bucket/orders/    one table of a folder in an object store
  dray serve --tpch 1 --unix /tmp/d.sock   generated tables, on a Unix socket only
  dray serve data/ --listen tcp://0.0.0.0:7117 --token-file token \\
      --tls-cert cert.pem --tls-key key.pem
  dray serve --source shop=postgresql://reader@localhost/shop    dray://127.0.0.1:7117/shop
  dray serve data/ --source-file shop=shop.uri --source-file erp=erp.uri \\
      --grant alice.token=shop,files --grant bob.token=erp

Exit codes: 0 stopped by a signal, 1 the server failed, 2 wrong usage (an option, or a file or \
address in it), 130 stopped by a second signal.")]
pub(crate) struct Arguments {
    /// Tables: a file, a folder or a URL, or NAME=PATH
    #[arg(value_name = "PATH | NAME=PATH")]
    tables: Vec<TableSpec>,
    /// Address to listen on, tcp://HOST:PORT; port 0 selects a free port [default:
    /// tcp://127.0.0.1:7117, unless --unix is given]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    listen: Vec<SocketAddr>,
    /// Unix socket to listen on; only this user can connect to it
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// Certificate chain (PEM); enables TLS on the TCP addresses
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// File with the token that all clients must send, on Unix sockets, too; required on every
    /// address but loopback
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// File with a secret of 32 characters or more that servers have in common: each reads the
    /// parts of the others' plans, if it serves the same versions of the same files
    #[arg(long, value_name = "FILE")]
    plan_secret: Option<PathBuf>,
    #[command(flatten)]
    sources: sources::Arguments,
    /// Memory for sorts, joins and aggregates before they spill, in addition to tables in memory
    /// [default: half of the available memory]
    #[arg(long, value_name = "SIZE")]
    memory: Option<ByteSize>,
    /// Folder to spill to [default: the system's folder for temporary files]
    #[arg(long, value_name = "DIR")]
    spill: Option<PathBuf>,
    /// Maximum disk space for all sorts together, and as much for all other operators together
    #[arg(long, value_name = "SIZE", default_value = "100GB")]
    spill_max: ByteSize,
    /// Generate the TPC-H tables in memory, at this scale factor
    #[arg(long, value_name = "SF")]
    tpch: Option<f64>,
    /// Load all tables into memory
    #[arg(long)]
    in_memory: bool,
    /// CSV files have no header line; their columns are column_1, column_2, …
    #[arg(long)]
    no_header: bool,
    /// The files of one table may have different columns, matched by name; a column is NULL in
    /// files that lack it
    #[arg(long)]
    union_by_name: bool,
    /// Types of the columns of key=value folders: int, date or text [default: inferred from all
    /// values]
    #[arg(long, value_name = "KEY=TYPE,…")]
    partition_types: Vec<PartitionTypes>,
    /// Address of the metrics endpoint for Prometheus, HOST:PORT; it serves GET /metrics
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    metrics: Option<SocketAddr>,
    /// Allow a --metrics address that other hosts can reach; the endpoint requires no token
    #[arg(long, requires = "metrics")]
    metrics_public: bool,
    /// Threads for each query [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Maximum open connections
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    connections: u32,
    /// Maximum open connections from one host [default: three quarters of --connections]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    connections_per_host: Option<u32>,
    /// Maximum running statements; others wait
    #[arg(
        long,
        value_name = "N",
        default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    statements: u32,
    /// Maximum running statements from one host [default: three quarters of --statements]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    statements_per_host: Option<u32>,
    /// How long a statement waits for a slot, and then for memory
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = parse_seconds)]
    wait_timeout: Duration,
    /// How long planning a statement may take
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = parse_seconds)]
    plan_timeout: Duration,
    /// How long a client may read nothing of a result
    #[arg(long, value_name = "SECONDS", default_value = "900", value_parser = parse_seconds)]
    stall_timeout: Duration,
    /// The same while other statements wait for a slot or for memory, or the server stops
    #[arg(
        long = "stall-timeout-contended",
        value_name = "SECONDS",
        default_value = "30",
        value_parser = parse_seconds
    )]
    stall_timeout_contended: Duration,
    /// Treat clients over loopback as remote, because a tunnel or a proxy connects for them: adapt
    /// to their network, and send checksums
    #[arg(long)]
    behind_proxy: bool,
    /// What to log: error, warn, info, debug, trace, or a filter by module
    #[arg(long, value_name = "FILTER", env = "RUST_LOG", default_value = "info")]
    log: String,
    /// The log format
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
            "--connections: there are descriptors for {possible} only; raise the limit of open \
             files (ulimit -n)"
        );
        options.connections_max = possible;
    }
    // This runtime does I/O only; statements run on threads of their own.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.max(2))
        .enable_all()
        .build()?;
    let served = runtime.block_on(serve(options));
    // Don't wait for threads that still run.
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
        server = Server::open(options) => {
            server.map_err(|cause| Failure::Usage(cause.to_string()))?
        }
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

/// The number of connections that the limit of open files allows, after raising the soft limit to
/// the hard limit.
fn connections_possible() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // If this fails, the limit stays.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let Some(descriptors) = getrlimit(Resource::Nofile).current else { return usize::MAX };
    let connections =
        (descriptors.saturating_sub(DESCRIPTORS_RESERVED) / DESCRIPTORS_PER_CONNECTION).max(1);
    usize::try_from(connections).unwrap_or(usize::MAX)
}

/// Prints where to connect. Flushes, since scripts may wait for it.
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
        let (sources, grants) = self.sources.read()?;
        if self.tables.is_empty() && self.tpch.is_none() && sources.is_empty() {
            warn!("no tables: name files or folders, or pass --tpch or --source");
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
            partition_types: PartitionTypes::merge(self.partition_types),
        };
        Ok(ServeOptions {
            listen,
            unix: self.unix,
            tls: self.tls_cert.zip(self.tls_key),
            token: self.token_file.as_deref().map(read_token).transpose()?,
            grants,
            plan_secret: self.plan_secret.as_deref().map(read_plan_secret).transpose()?,
            sources,
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
            stall_timeout_contended: self.stall_timeout_contended,
            ..ServeOptions::new(catalog)
        })
    }
}

/// The token in a file, without surrounding whitespace.
pub(crate) fn read_token(path: &Path) -> Result<Secret, String> {
    let text =
        std::fs::read_to_string(path).map_err(|cause| format!("{}: {cause}", path.display()))?;
    match text.trim() {
        "" => Err(format!("{}: no token in this file", path.display())),
        token => Ok(token.into()),
    }
}

/// The secret in a file, which must be hard to guess.
fn read_plan_secret(path: &Path) -> Result<Secret, String> {
    let secret = read_token(path)?;
    let found = secret.reveal().chars().count();
    match found >= PLAN_SECRET_MIN {
        true => Ok(secret),
        false => Err(format!(
            "{}: a secret of {found} characters, expected {PLAN_SECRET_MIN} or more; make one \
             with `openssl rand -hex 32`",
            path.display()
        )),
    }
}

/// Parses `tcp://HOST:PORT` or `HOST:PORT`. If a name has several addresses, returns the first.
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
