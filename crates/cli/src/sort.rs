//! `dray sort`: sorts files into one, within a memory limit, with spilling to disk.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use dray_server::sort::{Distinct, FileSort, OrderBy, SortError, SortedFiles};
use dray_sort::{ByteSize, memory_bytes_default};
use tokio::time::{MissedTickBehavior, interval};

use crate::failure::{EXIT_CODES, Failure};
use crate::format::{FileOptions, Format, WriteError};
use crate::interrupt::Interrupt;
use crate::number;
use crate::output::{self, Output, UnfinishedFile};
use crate::progress::{Meter, Visibility};

/// The output's part of the memory, 1/8 but at least 1 MiB.
const SINK_DIVISOR: usize = 8;
const SINK_BYTES_MIN: usize = 1 << 20;
/// How often to check for an interrupt and to show the progress.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

const EXAMPLES: &str = "\
Rows that are equal in the columns to sort by keep their order. Sizes: 65536, 512MiB, 1.5GB.

Examples:
  dray sort orders.parquet --by customer,day:desc -o sorted.parquet
  dray sort logs/ --by time --memory 1GiB --spill /mnt/fast -o logs.parquet
  dray sort a.csv b.csv --by id --distinct=keys -o newest.csv
  dray sort names.ndjson --by name:desc:nulls-last --limit 100 -o top.arrow";

/// Sort Parquet, Arrow, CSV and NDJSON files that may be larger than memory
#[derive(Debug, Args)]
#[command(after_help = format!("{}\n\n{EXAMPLES}\n\n{EXIT_CODES}", output::HELP))]
pub(crate) struct Arguments {
    /// Files, or folders of files of one kind, with the same columns
    #[arg(value_name = "PATH", required = true)]
    inputs: Vec<PathBuf>,
    /// Columns to sort by: NAME, optionally followed by :desc, :nulls-first or :nulls-last. NULLs
    /// come last, or first with :desc, as in SQL. A text that is a column's whole name means that
    /// column [default with --distinct: all columns]
    #[arg(
        long,
        value_name = "COLUMN,…",
        value_delimiter = ',',
        required_unless_present = "distinct"
    )]
    by: Vec<OrderBy>,
    /// Drop all but the first of rows that are equal in all columns, or, with `keys`, in the
    /// columns to sort by
    #[arg(
        long,
        value_enum,
        value_name = "rows|keys",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "rows"
    )]
    distinct: Option<DistinctBy>,
    /// CSV files have no header line; their columns are column_1, column_2, …
    #[arg(long)]
    no_header: bool,
    /// Maximum rows of the result [default: unlimited]
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Memory for reading, sorting and writing before the sort spills to disk [default: half of the
    /// available memory]
    #[arg(long, value_name = "SIZE")]
    memory: Option<ByteSize>,
    /// Folder to spill to [default: the system's folder for temporary files]
    #[arg(long, value_name = "DIR")]
    spill: Option<PathBuf>,
    /// Threads that read, sort and encode Parquet [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    #[command(flatten)]
    output: Output,
    /// No progress and no summary
    #[arg(short, long)]
    quiet: bool,
}

/// What makes rows duplicates.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum DistinctBy {
    Rows,
    Keys,
}

/// Settings with which the allocator returns freed memory at once, in blocks of any size. Without
/// them a program with several threads holds several times the memory in use: a sort of 6 million
/// rows in 128 MiB had 405 MiB resident, and 224 with them.
const RETURN_MEMORY: [(&str, &str); 2] =
    [("MIMALLOC_PURGE_DELAY", "0"), ("MIMALLOC_ALLOW_THP", "0")];
/// Settings with which it keeps freed memory, which need not be cleared to be used again. They are
/// for files that are small beside the memory, whatever their rows take.
const KEEP_MEMORY: [(&str, &str); 2] =
    [("MIMALLOC_PURGE_DELAY", "-1"), ("MIMALLOC_ALLOW_THP", "0")];
/// Files are small up to this part of the memory.
const SMALL_DIVISOR: u64 = 16;

/// Executes this program again with settings of the allocator in its environment, unless they are
/// set. The allocator reads them before `main`.
fn restart_with_allocator_settings(sort: &FileSort) {
    if RETURN_MEMORY.iter().any(|(name, _)| std::env::var_os(name).is_some()) {
        return;
    }
    let small = sort.memory_bytes as u64 / SMALL_DIVISOR;
    let settings = match total_bytes(&sort.inputs) {
        Ok(bytes) if bytes <= small => KEEP_MEMORY,
        _ => RETURN_MEMORY,
    };
    let mut arguments = std::env::args_os();
    if let (Some(name), Ok(program)) = (arguments.next(), std::env::current_exe()) {
        // If it fails, go on without the settings.
        let _ = Command::new(program).arg0(name).args(arguments).envs(settings).exec();
    }
}

/// The bytes of files, and of those in folders.
fn total_bytes(paths: &[PathBuf]) -> io::Result<u64> {
    let mut bytes = 0;
    let mut rest = paths.to_vec();
    while let Some(path) = rest.pop() {
        let metadata = path.metadata()?;
        if metadata.is_dir() {
            for entry in path.read_dir()? {
                rest.push(entry?.path());
            }
        } else {
            bytes += metadata.len();
        }
    }
    Ok(bytes)
}

/// Sorts the files and writes the result.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (format, mut options) = arguments.output.format()?;
    // Parquet stores decimals in few bytes.
    let sort = FileSort { narrow_decimals: format == Format::Parquet, ..arguments.sort()? };
    restart_with_allocator_settings(&sort);
    options.row_group_bytes = options.row_group_bytes.min(sort.sink_bytes);
    options.threads = Some(sort.threads);
    let interrupt = Interrupt::listen()?;
    let meter = Meter::new(Visibility::unless(arguments.quiet));
    let file = UnfinishedFile::create(&arguments.output.path, &interrupt)?;
    let started = Instant::now();
    let failed = |cause: io::Error| Failure::Start(format!("can't start threads: {cause}"));
    // One more than the sorting threads, for the one that writes.
    let threads = sort.threads + 1;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let runtime = runtime.map_err(failed)?;
    interrupt.set_polled();
    let written = runtime.block_on(async {
        let mut sorted = tokio::select! {
            sorted = sort.start() => sorted.map_err(sort_failure)?,
            () = interrupted(&interrupt) => return Err(Failure::Interrupted),
        };
        write(&mut sorted, &file, format, options, &interrupt, &meter)
            .await
            .map(|rows| (rows, sorted.spilled_bytes()))
    });
    meter.clear();
    // Don't wait for threads that still run.
    runtime.shutdown_background();
    let (rows, spilled_bytes) = written?;
    let file_bytes = file.finish()?;
    if !arguments.quiet {
        let took = started.elapsed();
        let spilled = match spilled_bytes {
            0 => String::new(),
            bytes => format!(", {} spilled to disk", number::bytes(bytes)),
        };
        eprintln!(
            "{}: {}, {} in {}, {} rows/s{spilled}",
            arguments.output.path.display(),
            number::rows(rows),
            number::bytes(file_bytes),
            number::duration(took),
            number::short(number::rate(rows, took)),
        );
    }
    Ok(())
}

impl Arguments {
    fn sort(&self) -> Result<FileSort, Failure> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let memory = self.memory.map(|size| usize::try_from(size.0)).transpose();
        let memory = memory.map_err(|_| {
            Failure::Usage(
                "--memory is too large for this \
                 machine"
                    .to_owned(),
            )
        })?;
        let memory_bytes = memory.unwrap_or_else(memory_bytes_default);
        Ok(FileSort {
            inputs: self.inputs.clone(),
            by: self.by.clone(),
            distinct: match self.distinct {
                None => Distinct::No,
                Some(DistinctBy::Rows) => Distinct::Rows,
                Some(DistinctBy::Keys) => Distinct::Keys,
            },
            limit: self.limit,
            memory_bytes,
            sink_bytes: (memory_bytes / SINK_DIVISOR).max(SINK_BYTES_MIN),
            spill_dir: self.spill.clone(),
            csv_no_header: self.no_header,
            narrow_decimals: false,
            threads: self.threads.map_or(cores, usize::from),
        })
    }
}

fn sort_failure(error: SortError) -> Failure {
    match error {
        SortError::Usage(what) => Failure::Usage(what),
        SortError::Failed(what) => Failure::Start(what),
    }
}

/// Waits for an interrupt.
async fn interrupted(interrupt: &Interrupt) {
    while !interrupt.is_raised() {
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

/// Writes all rows. Returns their number.
async fn write(
    sorted: &mut SortedFiles,
    file: &UnfinishedFile<'_>,
    format: Format,
    options: FileOptions,
    interrupt: &Interrupt,
    meter: &Meter,
) -> Result<u64, Failure> {
    let unwritten = |cause: WriteError| file.failure(cause.as_ref());
    let out = file.open().map_err(|cause| file.failure(&cause))?;
    let mut sink = format.sink(out, &sorted.schema(), options).map_err(unwritten)?;
    let mut checks = interval(CHECK_INTERVAL);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut rows = 0;
    loop {
        let batch = tokio::select! {
            biased;
            _ = checks.tick() => {
                if interrupt.is_raised() {
                    return Err(Failure::Interrupted);
                }
                meter.show(|| match rows {
                    0 => format!("{} read", number::rows(sorted.rows_read())),
                    rows => {
                        let total = number::rows(sorted.rows_read());
                        format!("{} of {total} written", number::count(rows))
                    }
                });
                continue;
            }
            batch = sorted.next() => batch.map_err(sort_failure)?,
        };
        let Some(batch) = batch else { break };
        rows += batch.num_rows() as u64;
        sink.write(&batch).map_err(unwritten)?;
    }
    sink.finish().map_err(unwritten)?;
    Ok(rows)
}
