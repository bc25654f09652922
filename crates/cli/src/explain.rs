//! `dray explain`: the expected size of a result, and where its time and bytes went.

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
use crate::progress::{Meter, Visibility};
use crate::statement::{Mode, Statement, failed};

/// The width of text without a terminal.
const TEXT_WIDTH: usize = 100;
/// The name of the output in errors.
const TARGET: &str = "standard output";

const EXAMPLES: &str = "\
Times at the server are summed over its threads: `execute` runs the plan, `encode` builds chunks, \
`queue` waits for space in the queue before the socket, `socket` writes to it. At the client, \
`receive` waits for the server and reads from the socket, `decode` builds Arrow arrays.

Examples:
  dray explain dray://localhost 'SELECT * FROM orders'
  dray explain postgresql://me@localhost/shop 'SELECT * FROM orders'
  dray explain dray://localhost 'SELECT * FROM orders' --plan
  dray explain drays://db.example.com 'SELECT 1' --compression zstd --format json";

/// Show the planner's estimate of a query, then run it and show where the time and the bytes went
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}\n\n{EXIT_CODES}", parameters::HELP))]
pub(crate) struct Arguments {
    #[command(flatten)]
    statement: Statement,
    /// Only plan: show the estimate and the columns
    #[arg(long)]
    plan: bool,
    /// The output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    format: OutputFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    Text,
    Json,
}

/// Runs the query, discards its rows, and prints the report.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let interrupt = Interrupt::listen()?;
    let meter = Meter::new(Visibility::unless(arguments.statement.quiet));
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
    let mode = if arguments.plan { Mode::PlanOnly } else { Mode::Run };
    let mut results: Results<Connection> = statement.start(mode, interrupt, meter)?;
    let estimate = results.progress().estimate;
    if arguments.format == OutputFormat::Text {
        meter.suspend(|| print(&report::estimate(estimate)))?;
    }
    while results.next_batch().map_err(|error| failed(error, interrupt))?.is_some() {}
    Ok(Report {
        schema: results.schema(),
        estimate,
        stats: results.stats().clone(),
        kind: results.kind(),
        asked: statement.compression(),
        planned_only: arguments.plan,
        width: width(),
    })
}

/// The width of the terminal, or [`TEXT_WIDTH`].
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
