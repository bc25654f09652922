//! `dray export`: a result in a file, which appears when it is complete.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use dray_client::{Connection, Results, Stats};
use tempfile::NamedTempFile;

use crate::failure::{EXIT_CODES, Failure};
use crate::format::{FileCompression, FileOptions, Format, Problem, ROW_GROUP_ROWS};
use crate::interrupt::Interrupt;
use crate::number;
use crate::parameters;
use crate::progress::Meter;
use crate::statement::{Statement, failed};

const EXAMPLES: &str = "\
FILE's ending names the format: .parquet, .arrow or .feather (Arrow IPC file), .arrows (Arrow IPC stream), .csv, .json or
.ndjson (one object a line). It is written aside, in the same folder, and takes FILE's place when it is complete and on
disk; if anything goes wrong, FILE is as it was.

Examples:
  dray export dray://localhost 'SELECT * FROM orders' -o orders.parquet
  dray export dray://localhost 'SELECT * FROM orders' -o orders.arrow --file-compression lz4
  dray export postgresql://me@localhost/shop 'SELECT * FROM orders' -o orders.parquet
  dray export drays://db.example.com --file report.sql --token-file token -o report.csv";

/// Run a query and write its result to a file
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}\n\n{EXIT_CODES}", parameters::HELP))]
pub(crate) struct Arguments {
    #[command(flatten)]
    statement: Statement,
    /// The file to write: .parquet, .arrow, .feather, .arrows, .csv, .json or .ndjson
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Compression within the file: none, lz4, snappy (Parquet), gzip (Parquet), zstd or zstd:LEVEL [default: zstd for
    /// Parquet, none for the others]
    #[arg(long, value_name = "CHOICE")]
    file_compression: Option<FileCompression>,
    /// The most rows in a Parquet row group; one is held in memory while it is written
    #[arg(long, value_name = "N", default_value_t = ROW_GROUP_ROWS)]
    row_group_rows: usize,
}

/// Runs the query and writes the file.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (format, options) = arguments.format()?;
    let interrupt = Interrupt::listen()?;
    let meter = Meter::new(!arguments.statement.quiet);
    // Before the query, since this is where most goes wrong.
    let file = UnfinishedFile::create(&arguments.output, &interrupt)?;
    let started = arguments.statement.start(false, &interrupt, &meter);
    let written = started.and_then(|mut results| write(&mut results, file, format, options, &interrupt));
    meter.clear();
    let (stats, file_bytes) = written?;
    if !arguments.statement.quiet {
        eprintln!("{}", summary(&arguments.output, &stats, file_bytes));
    }
    Ok(())
}

impl Arguments {
    fn format(&self) -> Result<(Format, FileOptions), Failure> {
        let ending =
            self.output.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
        let format = match ending.as_str() {
            "parquet" => Format::Parquet,
            "arrow" | "feather" => Format::ArrowFile,
            "arrows" => Format::ArrowStream,
            "csv" => Format::Csv,
            "json" | "ndjson" | "jsonl" => Format::Json,
            _ => {
                let path = self.output.display();
                let endings = ".parquet, .arrow, .feather, .arrows, .csv, .json or .ndjson";
                return Err(Failure::Usage(format!("can't tell the format of {path} by its ending; use {endings}")));
            }
        };
        if let Some(compression) = self.file_compression.filter(|compression| !format.allows(*compression)) {
            return Err(Failure::Usage(
                format!("a .{ending} file can't be compressed with {compression:?}").to_lowercase(),
            ));
        }
        if self.row_group_rows == 0 {
            return Err(Failure::Usage("--row-group-rows 0: expected 1 or more".to_owned()));
        }
        Ok((format, FileOptions { compression: self.file_compression, row_group_rows: self.row_group_rows }))
    }
}

fn write(
    results: &mut Results<Connection>,
    file: UnfinishedFile,
    format: Format,
    options: FileOptions,
    interrupt: &Interrupt,
) -> Result<(Stats, u64), Failure> {
    let unwritten = |cause: Problem| file.failure(cause.as_ref());
    let out = file.open().map_err(|cause| file.failure(&cause))?;
    let mut sink = format.sink(out, &results.schema(), options).map_err(unwritten)?;
    while let Some(batch) = results.next_batch().map_err(|error| failed(error, interrupt))? {
        sink.write(&batch).map_err(unwritten)?;
    }
    sink.finish().map_err(unwritten)?;
    Ok((results.stats().clone(), file.finish()?))
}

fn summary(path: &Path, stats: &Stats, file_bytes: u64) -> String {
    let rate = |amount| number::rate(amount, stats.total);
    format!(
        "{}: {}, {} ({} received) in {}, {} rows/s, {}/s",
        path.display(),
        number::rows(stats.rows),
        number::bytes(file_bytes),
        number::bytes(stats.wire_bytes),
        number::duration(stats.total),
        number::short(rate(stats.rows)),
        number::bytes(rate(stats.decoded_bytes)),
    )
}

/// A file under another name, until it is complete. Dropped before, it is removed.
struct UnfinishedFile<'a> {
    aside: NamedTempFile,
    target: PathBuf,
    interrupt: &'a Interrupt,
}

impl<'a> UnfinishedFile<'a> {
    fn create(path: &Path, interrupt: &'a Interrupt) -> Result<Self, Failure> {
        let failed = |cause: io::Error| Failure::Output(format!("can't write {}: {cause}", path.display()));
        // A link stays one: what it points to is replaced.
        let target = match path.canonicalize() {
            Ok(target) if !target.is_file() => {
                return Err(Failure::Output(format!("can't write {}: it is not a regular file", path.display())));
            }
            Ok(target) => target,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => path.to_owned(),
            Err(cause) => return Err(failed(cause)),
        };
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let aside = tempfile::Builder::new()
            .prefix(&format!(".{name}."))
            .suffix(".unfinished")
            // As for any new file; the user's mask takes away from it.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder(&target))
            .map_err(failed)?;
        interrupt.set_unfinished(Some(aside.path().to_owned()));
        Ok(Self { aside, target, interrupt })
    }

    fn open(&self) -> io::Result<File> {
        self.aside.as_file().try_clone()
    }

    fn failure(&self, cause: &(dyn std::error::Error + 'static)) -> Failure {
        Failure::output(&self.target.display().to_string(), cause)
    }

    /// Puts the file in its place, safe from a loss of power. Its size.
    fn finish(self) -> Result<u64, Failure> {
        let failed = |cause: io::Error| Failure::Output(format!("can't write {}: {cause}", self.target.display()));
        self.aside.as_file().sync_all().map_err(failed)?;
        let file = self.aside.persist(&self.target).map_err(|cause| failed(cause.error))?;
        self.interrupt.set_unfinished(None);
        File::open(folder(&self.target)).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(file.metadata().map_err(failed)?.len())
    }
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}
