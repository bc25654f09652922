//! `dray load`: writes the rows of files into a table of PostgreSQL, MySQL or MariaDB.

use std::path::PathBuf;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatchReader;
use clap::Args;
use dray_client::Estimate;
use dray_server::files::{FileRows, ReadError};
use tokio::runtime::{Builder, Runtime};

use crate::destination::{self, Destination};
use crate::failure::{EXIT_CODES, Failure};
use crate::interrupt::Interrupt;
use crate::progress::{Meter, Visibility};
use crate::statement::Login;

const EXAMPLES: &str = "\
Examples:
  dray load orders.parquet postgresql://me@localhost/shop --table orders
  dray load logs/ postgresql://me@localhost/shop --table logs --mode append --schema raw
  dray load a.csv b.csv postgresql://me@localhost/shop -t prices --type 'price=numeric(10,2)'
  dray load orders.parquet mysql://me@localhost/shop --table orders";

/// Write the rows of files into a table of PostgreSQL, MySQL or MariaDB
#[derive(Debug, Args)]
#[command(after_help = format!("{}\n\n{EXAMPLES}\n\n{EXIT_CODES}", destination::HELP))]
pub(crate) struct Arguments {
    /// Parquet, Arrow, CSV and NDJSON files, or folders of files of one kind, with the same columns
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    inputs: Vec<PathBuf>,
    /// The database: postgresql://USER@HOST/DATABASE or mysql://USER@HOST/DATABASE
    #[arg(required = true)]
    uri: String,
    #[command(flatten)]
    destination: Destination,
    /// CSV files have no header line; their columns are column_1, column_2, …
    #[arg(long)]
    no_header: bool,
    #[command(flatten)]
    login: Login,
    /// No progress and no summary
    #[arg(short, long)]
    quiet: bool,
}

/// Reads the files and writes the table.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let interrupt = Interrupt::listen()?;
    let meter = Meter::new(Visibility::unless(arguments.quiet));
    let rows = Rows::open(&arguments.inputs, arguments.no_header)?;
    let mut connection = Destination::connect(&arguments.uri, &arguments.login.options()?)?;
    let destination = &arguments.destination;
    let written = destination.write(&mut connection, rows, Estimate::default(), &interrupt, &meter);
    meter.clear();
    let stats = written?;
    if !arguments.quiet {
        eprintln!("{}", destination.summary(&stats));
    }
    Ok(())
}

/// The rows of files, for a thread that may wait.
struct Rows {
    runtime: Runtime,
    rows: FileRows,
}

impl Rows {
    fn open(inputs: &[PathBuf], no_header: bool) -> Result<Self, Failure> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime =
            runtime.map_err(|cause| Failure::Start(format!("can't start threads: {cause}")))?;
        let rows = runtime.block_on(FileRows::open(inputs, no_header));
        let rows = rows.map_err(|error| match error {
            ReadError::Usage(what) => Failure::Usage(what),
            ReadError::Failed(what) => Failure::Start(what),
        })?;
        Ok(Self { runtime, rows })
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.runtime.block_on(self.rows.next()).transpose()?;
        Some(next.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for Rows {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}
