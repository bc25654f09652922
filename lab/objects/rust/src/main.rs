//! The harness of Rust: Dray's pages, rkyv and Arrow. ../README.md has the options.

mod aggregate;
mod archive;
mod arrow;
mod checksum;
mod dray;
mod files;
#[cfg(test)]
mod generated;
mod implementation;
mod model;
mod options;
mod phases;
mod read;
mod record;
mod serve;
mod sort;

use std::process::ExitCode;

use crate::aggregate::Vectors;
use crate::archive::Archived;
use crate::arrow::Columnar;
use crate::dray::{Dray, Paged};
use crate::implementation::Implementation;
use crate::model::{Customer, LineItem, Part, Study};
use crate::options::{Json, Options};

/// Any failure; the harness prints it and ends.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

// As in the program: pages come from an allocator that keeps large blocks.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Listed {
    name: &'static str,
    version: &'static str,
    validates: &'static str,
    /// Where `--validate no` is possible.
    trusts: &'static str,
    note: &'static str,
}

const IMPLEMENTATIONS: [Listed; 3] = [
    Listed {
        name: "arrow",
        version: "59",
        validates: "always",
        trusts: "[]",
        note: "lists of structs; a page is a batch in the format for streams, which is checked in \
               full and not copied",
    },
    Listed {
        name: "dray-pages",
        version: "0.1.0",
        validates: "apart",
        trusts: r#"["phases"]"#,
        note: "pages are built, read and changed in place; they are verified as a whole, and a \
               reader can't skip it; a list that grows writes its object anew",
    },
    Listed {
        name: "rkyv",
        version: "0.8",
        validates: "apart",
        trusts: r#"["phases", "reads"]"#,
        note: "archived objects read and changed in place; to grow, they are copied out",
    },
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = if words == ["--list"] {
        list();
        Ok(())
    } else {
        Options::parse(&words).and_then(|options| run(&options))
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("objects: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn list() {
    for Listed { name, version, validates, trusts, note } in IMPLEMENTATIONS {
        let validate = if validates == "apart" { "\"validate\", " } else { "" };
        println!(
            concat!(
                r#"{{"implementation": "{}", "language": "Rust", "version": "{}", "#,
                r#""validates": "{}", "trusts": {}, "#,
                r#""objects": ["part", "lineitem", "customer", "vector"], "#,
                r#""phases": [{}"open", "touch-one", "touch-all", "materialise", "mutate", "#,
                r#""grow", "encode"], "note": "{}"}}"#
            ),
            name, version, validates, trusts, validate, note
        );
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let mut json = Json::of(options);
    match options.text_or("object", "vector") {
        "part" => with_object::<Part>(options, &mut json)?,
        "lineitem" => with_object::<LineItem>(options, &mut json)?,
        "customer" => with_object::<Customer>(options, &mut json)?,
        "vector" => match options.text("implementation")? {
            "dray-pages" => {
                vectors(&Dray::<dray::fields::SparseVector>::new()?, options, &mut json)
            }
            "arrow" => vectors(&arrow::Arrow, options, &mut json),
            "rkyv" => vectors(&archive::Rkyv, options, &mut json),
            other => Err(unknown(other)),
        }?,
        other => return Err(format!("there is no object {other}").into()),
    }
    json.number("peak_bytes", options::peak_bytes());
    println!("{}", json.line());
    Ok(())
}

fn unknown(implementation: &str) -> Failure {
    format!("there is no implementation {implementation}: see --list").into()
}

fn with_object<T: Archived + Columnar + Paged>(
    options: &Options,
    json: &mut Json,
) -> Result<(), Failure> {
    match options.text("implementation")? {
        "dray-pages" => experiment::<T, _>(&Dray::<T::Fields>::new()?, options, json),
        "arrow" => experiment::<T, _>(&arrow::Arrow, options, json),
        "rkyv" => experiment::<T, _>(&archive::Rkyv, options, json),
        other => Err(unknown(other)),
    }
}

fn experiment<T: Study, I: Implementation<T>>(
    implementation: &I,
    options: &Options,
    json: &mut Json,
) -> Result<(), Failure> {
    match options.text("experiment")? {
        "store" => read::store(implementation, options, json),
        "received" => read::received(implementation, options, json),
        "read" => read::read(implementation, options, json),
        "phases" => phases::phases(implementation, options, json),
        "sort" => sort::sort(implementation, options, json),
        "serve" => serve::serve(implementation, options, json),
        other => Err(format!("there is no experiment {other}").into()),
    }
}

fn vectors<V: Vectors>(vectors: &V, options: &Options, json: &mut Json) -> Result<(), Failure> {
    match options.text("experiment")? {
        "store" => aggregate::store(vectors, options, json),
        "aggregate" => aggregate::aggregate(vectors, options, json),
        other => Err(format!("vectors have no experiment {other}").into()),
    }
}
