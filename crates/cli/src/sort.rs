//! `dray sort`: files, sorted into one, in as much memory as they may take and on disk beyond that.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use dray_server::sort::{Distinct, FileSort, OrderBy, SortError, SortedFiles};
use dray_sort::{ByteSize, memory_bytes_default};
use tokio::time::{MissedTickBehavior, interval};

use crate::failure::{EXIT_CODES, Failure};
use crate::format::{FileOptions, Format, Problem};
use crate::interrupt::Interrupt;
use crate::number;
use crate::output::{self, Output, UnfinishedFile};
use crate::progress::Meter;

/// Of the memory, what is written takes such a part until it is in the file, and no less than this.
const SINK_SHARE: usize = 8;
const SINK_BYTES_MIN: usize = 1 << 20;
/// How often the user's wishes and the progress are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

const EXAMPLES: &str = "\
Rows that are equal in the columns to sort by stay in the order in which they are read. Sizes: 65536, 512MiB, 1.5GB.

Examples:
  dray sort orders.parquet --by customer,day:desc -o sorted.parquet
  dray sort logs/ --by time --memory 1GiB --spill /mnt/fast -o logs.parquet
  dray sort a.csv b.csv --by id --distinct=keys -o newest.csv
  dray sort names.ndjson --by name:desc:nulls-last --limit 100 -o top.arrow";

/// Sort Parquet, Arrow, CSV and NDJSON files that may be larger than memory
#[derive(Debug, Args)]
#[command(after_help = format!("{}\n\n{EXAMPLES}\n\n{EXIT_CODES}", output::HELP))]
pub(crate) struct Arguments {
    /// Files, and folders of files of one kind, with the same columns
    #[arg(value_name = "PATH", required = true)]
    inputs: Vec<PathBuf>,
    /// The columns to sort by: NAME, and behind it :desc, :nulls-first or :nulls-last. Missing
    /// values come last, or first with :desc, as in SQL. What is a column's whole name is that
    /// column [default with --distinct: all columns]
    #[arg(
        long,
        value_name = "COLUMN,…",
        value_delimiter = ',',
        required_unless_present = "distinct"
    )]
    by: Vec<OrderBy>,
    /// Drop rows that are equal in all columns, or, with `keys`, in those to sort by; the first one
    /// read stays
    #[arg(long, value_enum, value_name = "rows|keys", num_args = 0..=1, require_equals = true, default_missing_value = "rows")]
    distinct: Option<Equal>,
    /// CSV files have no line of names at their beginning: their columns are column_1, column_2, …
    #[arg(long)]
    no_header: bool,
    /// Keep only so many rows of the result
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Memory for reading, sorting and writing before it goes on on disk [default: half of what is
    /// available]
    #[arg(long, value_name = "SIZE")]
    memory: Option<ByteSize>,
    /// Folder for what does not fit into memory [default: the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    spill: Option<PathBuf>,
    /// Threads that read, sort and encode Parquet [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    #[command(flatten)]
    output: Output,
    /// No progress, no summary
    #[arg(short, long)]
    quiet: bool,
}

/// Which rows are dropped.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Equal {
    Rows,
    Keys,
}

/// What tells the allocator to give back at once what is freed, in pieces of any size: else a
/// program of several threads keeps a multiple of what was asked for. Sorting 6 million rows in 128
/// MiB, 405 MiB were resident, and 224 with these.
const FRUGAL: [(&str, &str); 2] = [("MIMALLOC_PURGE_DELAY", "0"), ("MIMALLOC_ALLOW_THP", "0")];

/// Starts this program anew with a frugal allocator, which reads its settings before anything else
/// can; unless somebody has set them.
fn be_frugal() {
    if FRUGAL.iter().any(|(name, _)| std::env::var_os(name).is_some()) {
        return;
    }
    let mut arguments = std::env::args_os();
    if let (Some(name), Ok(program)) = (arguments.next(), std::env::current_exe()) {
        // If it fails, this one goes on.
        let _ = Command::new(program).arg0(name).args(arguments).envs(FRUGAL).exec();
    }
}

/// Sorts the files and writes the result.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    be_frugal();
    let (format, mut options) = arguments.output.format()?;
    let sort = arguments.sort()?;
    options.row_group_bytes = options.row_group_bytes.min(sort.sink_bytes);
    options.threads = Some(sort.threads);
    let interrupt = Interrupt::listen()?;
    let meter = Meter::new(!arguments.quiet);
    let file = UnfinishedFile::create(&arguments.output.path, &interrupt)?;
    let started = Instant::now();
    let failed = |cause: std::io::Error| Failure::Start(format!("can't start threads: {cause}"));
    // One more than sort, for the thread that writes waits for them.
    let threads = sort.threads + 1;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let runtime = runtime.map_err(failed)?;
    interrupt.will_be_watched();
    let written = runtime.block_on(async {
        let mut sorted = tokio::select! {
            sorted = sort.start() => sorted.map_err(refused)?,
            () = raised(&interrupt) => return Err(Failure::Interrupted),
        };
        write(&mut sorted, &file, format, options, &interrupt, &meter)
            .await
            .map(|rows| (rows, sorted.spilled_bytes()))
    });
    meter.clear();
    // What is still running is of no use to anybody.
    runtime.shutdown_background();
    let (rows, spilled_bytes) = written?;
    let file_bytes = file.finish()?;
    if !arguments.quiet {
        let took = started.elapsed();
        let spilled = match spilled_bytes {
            0 => String::new(),
            bytes => format!(", {} on disk meanwhile", number::bytes(bytes)),
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
        let memory =
            memory.map_err(|_| Failure::Usage("--memory is more than there can be".to_owned()))?;
        let memory_bytes = memory.unwrap_or_else(memory_bytes_default);
        Ok(FileSort {
            inputs: self.inputs.clone(),
            by: self.by.clone(),
            distinct: match self.distinct {
                None => Distinct::No,
                Some(Equal::Rows) => Distinct::Rows,
                Some(Equal::Keys) => Distinct::Keys,
            },
            limit: self.limit,
            memory_bytes,
            sink_bytes: (memory_bytes / SINK_SHARE).max(SINK_BYTES_MIN),
            spill_dir: self.spill.clone(),
            csv_no_header: self.no_header,
            threads: self.threads.map_or(cores, usize::from),
        })
    }
}

fn refused(error: SortError) -> Failure {
    match error {
        SortError::Usage(what) => Failure::Usage(what),
        SortError::Failed(what) => Failure::Start(what),
    }
}

/// Ends when the user wants to stop.
async fn raised(interrupt: &Interrupt) {
    while !interrupt.is_raised() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Writes all rows, and says how many there were.
async fn write(
    sorted: &mut SortedFiles,
    file: &UnfinishedFile<'_>,
    format: Format,
    options: FileOptions,
    interrupt: &Interrupt,
    meter: &Meter,
) -> Result<u64, Failure> {
    let unwritten = |cause: Problem| file.failure(cause.as_ref());
    let out = file.open().map_err(|cause| file.failure(&cause))?;
    let mut sink = format.sink(out, &sorted.schema(), options).map_err(unwritten)?;
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut rows = 0;
    loop {
        let batch = tokio::select! {
            biased;
            _ = looks.tick() => {
                if interrupt.is_raised() {
                    return Err(Failure::Interrupted);
                }
                meter.show(|| match rows {
                    0 => format!("{} read", number::rows(sorted.rows_read())),
                    rows => format!("{} of {} written", number::count(rows), number::rows(sorted.rows_read())),
                });
                continue;
            }
            batch = sorted.next() => batch.map_err(refused)?,
        };
        let Some(batch) = batch else { break };
        rows += batch.num_rows() as u64;
        sink.write(&batch).map_err(unwritten)?;
    }
    sink.finish().map_err(unwritten)?;
    Ok(rows)
}
