//! `dray query`: prints a result on standard output.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;

use clap::{Args, ValueEnum};
use console::Term;
use dray_client::{Connection, Known, Results};

use crate::failure::{EXIT_CODES, Failure};
use crate::format::table::Table;
use crate::format::{FileOptions, Format};
use crate::interrupt::Interrupt;
use crate::number;
use crate::parameters;
use crate::progress::{Meter, Visibility};
use crate::statement::{Mode, Statement, failed};

/// The name of the output in errors.
const TARGET: &str = "standard output";

const EXAMPLES: &str = "\
Examples:
  dray query dray://localhost 'SELECT * FROM orders'
  dray query postgresql://me@localhost/shop 'SELECT * FROM orders'
  dray query dray://localhost 'SELECT * FROM orders WHERE day >= $1' -p date:2024-01-31 > o.csv
  dray query drays://db.example.com --file report.sql --token-file token --format json
  echo 'SELECT 1' | dray query dray://localhost -";

/// Run a query and print its result
#[derive(Debug, Args)]
#[command(after_help = format!("{}\n\n{EXIT_CODES}\n\n{EXAMPLES}", parameters::HELP))]
pub(crate) struct Arguments {
    #[command(flatten)]
    statement: Statement,
    /// The output format [default: table on a terminal, csv elsewhere]
    #[arg(long, value_enum)]
    format: Option<OutputFormat>,
    /// Maximum rows that a table shows
    #[arg(long, value_name = "N", default_value_t = 40)]
    rows: u16,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OutputFormat {
    /// The first rows, for reading
    Table,
    /// NULL is an empty field, an empty string is ""; decimals are exact, times ISO 8601, bytes
    /// hexadecimal
    Csv,
    /// One object per line
    Json,
    /// An Arrow IPC stream
    Arrow,
    /// Parquet, compressed with zstd
    Parquet,
}

/// Runs the query and prints its result.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let on_terminal = std::io::stdout().is_terminal();
    let format = match arguments.format {
        Some(OutputFormat::Table) => None,
        None if on_terminal => None,
        None | Some(OutputFormat::Csv) => Some(Format::Csv),
        Some(OutputFormat::Json) => Some(Format::Json),
        Some(OutputFormat::Arrow) => Some(Format::ArrowStream),
        Some(OutputFormat::Parquet) => Some(Format::Parquet),
    };
    if on_terminal && format.is_some_and(|format| !format.is_text()) {
        let what = "a terminal can't show this format; redirect the output to a file, or use `dray \
             export`";
        return Err(Failure::Usage(what.to_owned()));
    }
    let interrupt = Interrupt::listen()?;
    // Rows that scroll by show the progress.
    let scrolls = on_terminal && format.is_some();
    let meter = Meter::new(Visibility::unless(arguments.statement.quiet || scrolls));
    let results = arguments.statement.start(Mode::Run, &interrupt, &meter);
    let printed = results.and_then(|mut results| match format {
        None => show(&mut results, usize::from(arguments.rows), &interrupt),
        Some(format) => print(&mut results, format, &interrupt).map(|()| String::new()),
    });
    meter.clear();
    let table = printed?;
    let mut out = std::io::stdout().lock();
    out.write_all(table.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|cause| Failure::output(TARGET, &cause))
}

/// Streams the result in a file format.
fn print(
    results: &mut Results<Connection>,
    format: Format,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    // `Stdout` would search all output for line ends.
    let out = std::io::stdout()
        .as_fd()
        .try_clone_to_owned()
        .map_err(|cause| Failure::output(TARGET, &cause))?;
    let unwritten = |cause: crate::format::WriteError| Failure::output(TARGET, cause.as_ref());
    let mut sink = format
        .sink(File::from(out), &results.schema(), FileOptions::default())
        .map_err(unwritten)?;
    while let Some(batch) = results.next_batch().map_err(|error| failed(error, interrupt))? {
        sink.write(&batch).map_err(unwritten)?;
    }
    sink.finish().map_err(unwritten)
}

/// The first rows as a table, and the total number of rows.
fn show(
    results: &mut Results<Connection>,
    rows_max: usize,
    interrupt: &Interrupt,
) -> Result<String, Failure> {
    let mut table = Table::of(&results.schema());
    // Read to the end to count the rows, unless the server knows the number.
    let mut counted = 0;
    let total = loop {
        match results.progress().estimate.rows {
            Known::Exact(total) if table.rows() == rows_max && total >= counted => break total,
            _ => {}
        }
        let Some(batch) = results.next_batch().map_err(|error| failed(error, interrupt))? else {
            break counted;
        };
        counted += batch.num_rows() as u64;
        let left = rows_max - table.rows();
        table.push_batch(&batch, left).map_err(|cause| Failure::output(TARGET, &cause))?;
    };
    let width = std::io::stdout().is_terminal().then(|| usize::from(Term::stdout().size().1));
    let mut text = table.render(width);
    match total - table.rows() as u64 {
        0 => text += &format!("{}\n", number::rows(total)),
        more => {
            text +=
                &format!("… {} more rows ({} in all)\n", number::count(more), number::count(total))
        }
    }
    Ok(text)
}
