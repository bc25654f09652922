//! `dray export`: writes a result to a file or an object, which appears once it is complete.

use std::path::Path;

use clap::Args;
use dray_client::{Connection, Objects, Results, RowLayout, Stats};

use crate::failure::{EXIT_CODES, Failure};
use crate::format::{FileOptions, Format, PagesSink, WriteError};
use crate::interrupt::Interrupt;
use crate::number;
use crate::output::{self, Output, UnfinishedFile};
use crate::parameters;
use crate::progress::{Meter, Visibility};
use crate::statement::{Mode, Statement, failed};

const EXAMPLES: &str = "\
Examples:
  dray export dray://localhost 'SELECT * FROM orders' -o orders.parquet
  dray export dray://localhost 'SELECT * FROM orders' -o s3://bucket/orders.parquet
  dray export dray://localhost 'SELECT * FROM t' -o t.arrow --file-compression lz4
  dray export dray://localhost 'SELECT * FROM people' -o people.pages --key id
  dray export postgresql://me@localhost/shop 'SELECT * FROM orders' -o orders.parquet
  dray export drays://db.example.com --file report.sql --token-file token -o report.csv";

/// Run a query and write its result to a file
#[derive(Debug, Args)]
#[command(
    after_help = format!(
        "{}\n\n{EXAMPLES}\n\n{}\n\n{EXIT_CODES}",
        output::HELP,
        parameters::HELP
    )
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    statement: Statement,
    #[command(flatten)]
    output: Output,
    /// How rows travel for a page file: pages, columns, or auto, which is what costs less on this
    /// network [default: auto]
    #[arg(long, value_name = "CHOICE", help_heading = "Transfer")]
    layout: Option<RowLayout>,
}

/// Runs the query and writes the file.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (format, options) = arguments.output.format()?;
    if arguments.layout.is_some() && format != Format::Pages {
        return Err(Failure::Usage("--layout is for page files: -o NAME.pages".to_owned()));
    }
    let interrupt = Interrupt::listen()?;
    let meter = Meter::new(Visibility::unless(arguments.statement.quiet));
    // Before the query, since most failures are here.
    let file = UnfinishedFile::create(&arguments.output.path, &interrupt)?;
    let layout = arguments.layout.unwrap_or(RowLayout::Either);
    let written = match format {
        Format::Pages => {
            let started = arguments.statement.start_objects(layout, &interrupt, &meter);
            started.and_then(|mut objects| write_objects(&mut objects, file, options, &interrupt))
        }
        _ => {
            let started = arguments.statement.start(Mode::Run, &interrupt, &meter);
            started.and_then(|mut results| write(&mut results, file, format, options, &interrupt))
        }
    };
    meter.clear();
    let (stats, file_bytes) = written?;
    if !arguments.statement.quiet {
        eprintln!("{}", summary(&arguments.output.path, &stats, file_bytes));
    }
    Ok(())
}

fn write(
    results: &mut Results<Connection>,
    file: UnfinishedFile,
    format: Format,
    options: FileOptions,
    interrupt: &Interrupt,
) -> Result<(Stats, u64), Failure> {
    let unwritten = |cause: WriteError| file.failure(cause.as_ref());
    let out = file.open().map_err(|cause| file.failure(&cause))?;
    let mut sink = format.sink(out, &results.schema(), options).map_err(unwritten)?;
    while let Some(batch) = results.next_batch().map_err(|error| failed(error, interrupt))? {
        sink.write(&batch).map_err(unwritten)?;
    }
    sink.finish().map_err(unwritten)?;
    Ok((results.stats().clone(), file.finish()?))
}

/// Writes objects as they come. Making columns of them first would be work for nothing.
fn write_objects(
    objects: &mut Objects<Connection>,
    file: UnfinishedFile,
    options: FileOptions,
    interrupt: &Interrupt,
) -> Result<(Stats, u64), Failure> {
    let unwritten = |cause: WriteError| file.failure(cause.as_ref());
    let out = file.open().map_err(|cause| file.failure(&cause))?;
    let mut pages = PagesSink::new(out, objects.layout(), options.key).map_err(unwritten)?;
    while let Some(page) = objects.next_page().map_err(|error| failed(error, interrupt))? {
        pages.copy(&page).map_err(unwritten)?;
    }
    pages.end().map_err(unwritten)?;
    Ok((objects.stats().clone(), file.finish()?))
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
