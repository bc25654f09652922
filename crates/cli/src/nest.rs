//! `dray nest`: whole objects from the rows of several statements.

use std::path::PathBuf;
use std::time::Instant;

use arrow::record_batch::RecordBatchReader;
use clap::Args;
use dray_client::Connection;
use dray_nest::{Error, NestOptions, Nested, Spec, nest_from};
use dray_sort::ByteSize;

use crate::failure::{EXIT_CODES, Failure};
use crate::format::{FileOptions, Format, WriteError};
use crate::interrupt::Interrupt;
use crate::number;
use crate::output::{self, Output, UnfinishedFile};
use crate::progress::{Meter, Visibility};
use crate::statement::Login;

const EXAMPLES: &str = "\
SPEC is a TOML file. Each level has a statement of its own, which reads flat rows; Dray sorts and \
merges them. `many.NAME` becomes a list, `one.NAME` an object or nothing. `on` says which column \
of a child equals which of its parent. In a database all statements see one snapshot; one behind a \
Dray server can't give it, so several levels need a direct connection.

  sql = \"SELECT c_custkey, c_name FROM customer\"
  order = [\"c_custkey\"]

  [many.orders]
  sql = \"SELECT o_orderkey, o_custkey, o_orderdate FROM orders\"
  on = { o_custkey = \"c_custkey\" }
  order = [\"o_orderdate:desc\"]        # within each list
  orphans = \"drop\"                    # rows without a parent; the default is \"error\"

  [many.orders.many.items]
  sql = \"SELECT l_orderkey, l_partkey, l_quantity FROM lineitem\"
  on = { l_orderkey = \"o_orderkey\" }

  [many.orders.many.items.one.part]
  sql = \"SELECT p_partkey, p_name FROM part\"
  on = { p_partkey = \"l_partkey\" }

Examples:
  dray nest dray://localhost customers.toml -o customers.parquet
  dray nest postgresql://me@db/shop customers.toml -o customers.pages --key c_custkey
  dray nest dray://localhost customers.toml -o customers.jsonl --memory 1GiB";

/// Make whole objects of the rows of several statements
#[derive(Debug, Args)]
#[command(after_help = format!("{}\n\n{EXAMPLES}\n\n{EXIT_CODES}", output::HELP))]
pub(crate) struct Arguments {
    /// The server: dray://HOST[:PORT], drays://HOST[:PORT] (TLS), dray+unix:///PATH,
    /// postgresql://USER@HOST/DATABASE, mysql://… or mariadb://USER@HOST/DATABASE
    uri: String,
    /// The file that says what is nested in what
    #[arg(value_name = "SPEC")]
    spec: PathBuf,
    /// Memory for sorting before it spills to disk [default: half of the available memory]
    #[arg(long, value_name = "SIZE")]
    memory: Option<ByteSize>,
    /// Folder to spill to [default: the system's folder for temporary files]
    #[arg(long, value_name = "DIR")]
    spill: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    login: Login,
    /// No progress and no summary
    #[arg(short, long)]
    quiet: bool,
}

/// Runs the statements and writes the file.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let shown = arguments.spec.display();
    let text = std::fs::read_to_string(&arguments.spec)
        .map_err(|cause| Failure::Usage(format!("can't read {shown}: {cause}")))?;
    let spec: Spec =
        text.parse().map_err(|error: Error| Failure::Usage(format!("{shown}: {error}")))?;
    let (format, options) = arguments.output.format()?;
    let interrupt = Interrupt::listen()?;
    let meter = Meter::new(Visibility::unless(arguments.quiet));
    let file = UnfinishedFile::create(&arguments.output.path, &interrupt)?;
    let began = Instant::now();
    let mut connection = Connection::connect(&arguments.uri, &arguments.login.options()?)
        .map_err(Failure::Client)?;
    let mut nesting =
        NestOptions { spill_folder: arguments.spill.clone(), ..NestOptions::default() };
    if let Some(memory) = arguments.memory {
        nesting.memory_bytes = usize::try_from(memory.0).unwrap_or(usize::MAX);
    }
    let watch = &mut |name: &str| Some(meter.watch_named(name, interrupt.clone()));
    let nested = nest_from(&mut connection, &spec, &nesting, watch);
    let written = nested
        .map_err(Failure::Nest)
        .and_then(|nested| write(nested, &file, format, options, &interrupt, &meter));
    meter.clear();
    let rows = match written {
        Err(_) if interrupt.is_raised() => return Err(Failure::Interrupted),
        written => written?,
    };
    let bytes = file.finish()?;
    if !arguments.quiet {
        eprintln!(
            "{}: {} objects, {} in {}",
            arguments.output.path.display(),
            number::count(rows),
            number::bytes(bytes),
            number::duration(began.elapsed())
        );
    }
    Ok(())
}

/// Merges the objects into the file. Returns their number.
fn write(
    nested: Nested,
    file: &UnfinishedFile<'_>,
    format: Format,
    options: FileOptions,
    interrupt: &Interrupt,
    meter: &Meter,
) -> Result<u64, Failure> {
    let unwritten = |cause: WriteError| file.failure(cause.as_ref());
    let out = file.open().map_err(|cause| file.failure(&cause))?;
    let mut sink = format.sink(out, &nested.schema(), options).map_err(unwritten)?;
    let mut objects = 0;
    for batch in nested {
        let batch = batch.map_err(|error| Failure::Nest(error.into()))?;
        objects += batch.num_rows() as u64;
        sink.write(&batch).map_err(unwritten)?;
        meter.show(|| format!("{} objects written", number::count(objects)));
        if interrupt.is_raised() {
            return Err(Failure::Interrupted);
        }
    }
    sink.finish().map_err(unwritten)?;
    Ok(objects)
}
