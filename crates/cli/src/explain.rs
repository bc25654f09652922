//! `dray explain`: what a result will be, and where its seconds and bytes went.

mod advice;
mod report;

use std::io::{IsTerminal, Write};

use clap::{Args, ValueEnum};
use console::Term;
use dray_client::{Connection, Results};

use self::report::Report;
use crate::failure::{EXIT_CODES, Failure};
use crate::interrupt::Interrupt;
use crate::parameters;
use crate::progress::Meter;
use crate::statement::{Statement, failed};

/// How wide text is where there is no terminal.
const TEXT_WIDTH: usize = 100;
/// What errors call the output.
const TARGET: &str = "standard output";

const EXAMPLES: &str = "\
Times at the server are summed over its threads: `execute` runs the plan, `encode` builds chunks, `queue` waits for room \
in the queue before the socket, `socket` writes to it. At the client, `receive` waits for the server and reads from the \
socket, `decode` builds Arrow arrays.

Examples:
  dray explain dray://localhost 'SELECT * FROM orders'
  dray explain postgresql://me@localhost/shop 'SELECT * FROM orders'
  dray explain dray://localhost 'SELECT * FROM orders' --plan
  dray explain drays://db.example.com 'SELECT 1' --compression zstd --format json";

/// Show what the planner expects of a query, then run it and show where the time and the bytes went
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}\n\n{EXIT_CODES}", parameters::HELP))]
pub(crate) struct Arguments {
    #[command(flatten)]
    statement: Statement,
    /// Only plan: show what is expected, and the columns
    #[arg(long)]
    plan: bool,
    /// How to print it
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    format: OutputFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    Text,
    Json,
}

/// Runs the query, drops its rows, and prints the report.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let interrupt = Interrupt::listen()?;
    let meter = Meter::new(!arguments.statement.quiet);
    let explained = explain(arguments, &interrupt, &meter);
    meter.clear();
    let report = explained?;
    match arguments.format {
        OutputFormat::Text if arguments.plan => print(&report.columns()),
        OutputFormat::Text => print(&report.text()),
        OutputFormat::Json => print(&format!("{:#}\n", report.json())),
    }
}

fn explain(arguments: &Arguments, interrupt: &Interrupt, meter: &Meter) -> Result<Report, Failure> {
    let statement = &arguments.statement;
    let mut results: Results<Connection> = statement.start(arguments.plan, interrupt, meter)?;
    let estimate = results.progress().estimate;
    if arguments.format == OutputFormat::Text {
        meter.suspend(|| print(&report::estimate(estimate)))?;
    }
    while results.next_batch().map_err(|error| failed(error, interrupt))?.is_some() {}
    Ok(Report {
        schema: results.schema(),
        estimate,
        stats: results.stats().clone(),
        asked: statement.compression(),
        planned_only: arguments.plan,
        width: width(),
    })
}

/// That of the terminal, or of a page.
fn width() -> usize {
    match std::io::stdout().is_terminal() {
        true => usize::from(Term::stdout().size().1),
        false => TEXT_WIDTH,
    }
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|cause| Failure::output(TARGET, &cause))
}
