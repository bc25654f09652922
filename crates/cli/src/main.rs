//! The `dray` program: it serves files, sorts them, and fetches results from servers.
//!
//! ```text
//!   serve, sort ──▶ dray-server   query, export, explain, tables ──▶ statement ──▶ dray-client
//!                                           │ batches                   │ interrupt: Ctrl-C
//!                                           ▼                           │ progress
//!                                         format: table, CSV, JSON, Arrow, Parquet, pages
//!   load, copy ──▶ destination: a table of a database      pages ──▶ dray-pagefile
//!   accessors ──▶ dray-accessors
//!   adbc ──▶ manifests of the ADBC driver      completions, manual ──▶ what packages install
//! ```

#![deny(unsafe_code)]

mod accessors;
mod adbc;
mod completions;
mod copy;
mod destination;
mod explain;
mod export;
mod failure;
mod format;
mod interrupt;
mod load;
mod manual;
mod nest;
mod number;
mod output;
mod pages;
mod parameters;
mod progress;
mod query;
mod serve;
mod sort;
mod statement;
mod tables;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::failure::{EXIT_CODES, Failure};

/// Planning a statement makes thousands of small allocations, which are cheaper with this allocator
/// than with the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EXAMPLES: &str = "\
Examples:
  dray serve sales.parquet logs=/data/logs            on dray://127.0.0.1:7117
  dray query dray://localhost 'SELECT * FROM sales'
  dray export dray://localhost 'SELECT * FROM logs' -o logs.parquet
  dray export postgresql://me@db/shop 'SELECT * FROM orders' -o orders.csv
  dray explain dray://localhost 'SELECT * FROM sales'
  dray sort logs/ --by time,host:desc -o sorted.parquet
  dray load orders.parquet postgresql://me@db/shop --table orders
  dray adbc install                                   for Python, R, Go and DuckDB

`dray COMMAND --help` describes each command.";

/// Move query results: serve files as SQL tables, fetch from such servers and databases, sort files
#[derive(Debug, Parser)]
#[command(
    name = "dray",
    version,
    max_term_width = 100,
    after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}")
)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(Box<serve::Arguments>),
    Query(query::Arguments),
    Export(export::Arguments),
    Explain(explain::Arguments),
    Sort(sort::Arguments),
    Load(load::Arguments),
    Copy(copy::Arguments),
    Tables(tables::Arguments),
    Nest(nest::Arguments),
    Pages(pages::Arguments),
    Accessors(accessors::Arguments),
    Adbc(adbc::Arguments),
    Completions(completions::Arguments),
    Manual(manual::Arguments),
}

fn main() -> ExitCode {
    let ended = match Program::parse().command {
        Command::Serve(arguments) => serve::run(*arguments),
        Command::Query(arguments) => query::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Sort(arguments) => sort::run(&arguments),
        Command::Load(arguments) => load::run(&arguments),
        Command::Copy(arguments) => copy::run(&arguments),
        Command::Tables(arguments) => tables::run(&arguments),
        Command::Nest(arguments) => nest::run(&arguments),
        Command::Pages(arguments) => pages::run(&arguments),
        Command::Accessors(arguments) => accessors::run(&arguments),
        Command::Adbc(arguments) => adbc::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments, Program::command()),
        Command::Manual(arguments) => manual::run(&arguments, Program::command()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, Failure::ReaderGone) {
                // Standard error may be closed too.
                let _ = std::io::Write::write_fmt(
                    &mut std::io::stderr(),
                    format_args!("dray: {failure}\n"),
                );
            }
            failure.exit_code()
        }
    }
}
