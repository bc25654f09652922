//! `dray copy`: writes a result of one database into a table of another.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatchReader;
use clap::Args;
use dray_client::{Connection, Results};

use crate::destination::{self, Destination};
use crate::failure::{EXIT_CODES, Failure};
use crate::interrupt::Interrupt;
use crate::parameters;
use crate::progress::{Meter, Visibility};
use crate::statement::{Mode, Statement};

const EXAMPLES: &str = "\
Rows are read and written batch by batch, in bounded memory. The options of the connection hold \
for both databases.

Examples:
  dray copy postgresql://me@old/shop 'SELECT * FROM orders' postgresql://me@new/shop -t orders
  dray copy dray://localhost 'SELECT * FROM logs' postgresql://me@db/shop -t logs --mode append
  dray copy postgresql://me@a/x - postgresql://me@b/y -t report < report.sql";

/// Write a query's result into a table of another database
#[derive(Debug, Args)]
#[command(
    after_help = format!(
        "{}\n\n{}\n\n{EXAMPLES}\n\n{EXIT_CODES}",
        destination::HELP,
        parameters::HELP
    )
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    statement: Statement,
    /// The database to write into: postgresql://USER@HOST/DATABASE or mysql://USER@HOST/DATABASE
    #[arg(value_name = "TO")]
    to: Option<String>,
    #[command(flatten)]
    destination: Destination,
}

/// Runs the query and writes the table.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Some(to) = &arguments.to else {
        let what = "name the database to write into, after the statement (- reads the statement \
                    from standard input)";
        return Err(Failure::Usage(what.to_owned()));
    };
    let interrupt = Interrupt::listen()?;
    let meter = Meter::new(Visibility::unless(arguments.statement.quiet));
    let mut connection = Destination::connect(to, &arguments.statement.connect_options()?)?;
    // The meter shows what is written, so the reading end has one that shows nothing.
    let hidden = Meter::new(Visibility::Hidden);
    let results = arguments.statement.start(Mode::Run, &interrupt, &hidden)?;
    let (estimate, rows) = (results.progress().estimate, Rows(results));
    let destination = &arguments.destination;
    let written = destination.write(&mut connection, rows, estimate, &interrupt, &meter);
    meter.clear();
    let stats = written?;
    if !arguments.statement.quiet {
        eprintln!("{}", destination.summary(&stats));
    }
    Ok(())
}

/// A result, for another thread.
struct Rows(Results<Connection>);

impl Iterator for Rows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.0.next_batch().transpose()?;
        Some(next.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for Rows {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
}
