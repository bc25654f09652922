//! The harness of Rust: Dray's pages and rkyv. ../README.md has the
//! options.

mod archive;
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
mod sort;

use std::process::ExitCode;

use crate::implementation::Implementation;
use crate::model::{Customer, LineItem, Part, Study};
use crate::options::{Json, Options};

/// Any failure; the harness prints it and ends.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

// As in the program: pages come from an allocator that keeps large blocks.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The implementations: name, version, when they validate, where they can trust, note.
const IMPLEMENTATIONS: [(&str, &str, &str, &str, &str); 2] = [
    (
        "dray-pages",
        "0",
        "apart",
        r#"["phases"]"#,
        "pages verified as a whole, then read in place; a reader can't skip it",
    ),
    ("rkyv", "0.8", "apart", r#"["phases", "reads"]"#, "archived objects read in place"),
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
    for (name, version, validates, trusts, note) in IMPLEMENTATIONS {
        let validate = if validates == "apart" { "\"validate\", " } else { "" };
        println!(
            concat!(
                r#"{{"implementation": "{}", "language": "Rust", "version": "{}", "#,
                r#""validates": "{}", "trusts": {}, "#,
                r#""objects": ["part", "lineitem", "customer"], "#,
                r#""experiments": ["store", "read", "phases", "sort", "received"], "#,
                r#""phases": [{}"open", "touch-one", "touch-all", "materialise", "mutate", "#,
                r#""grow", "encode"], "note": "{}"}}"#
            ),
            name, version, validates, trusts, validate, note
        );
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let mut json = Json::of(options);
    match options.text("object")? {
        "part" => with_object::<Part>(options, &mut json)?,
        "lineitem" => with_object::<LineItem>(options, &mut json)?,
        "customer" => with_object::<Customer>(options, &mut json)?,
        other => return Err(format!("there is no object {other}").into()),
    }
    json.number("peak_bytes", options::peak_bytes());
    println!("{}", json.line());
    Ok(())
}

fn with_object<T: archive::Archived>(options: &Options, json: &mut Json) -> Result<(), Failure> {
    match options.text("implementation")? {
        "dray-pages" => experiment(&dray::Dray::<T>::new()?, options, json),
        "rkyv" => experiment::<T, _>(&archive::Rkyv, options, json),
        other => Err(format!("there is no implementation {other}: see --list").into()),
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
        other => Err(format!("there is no experiment {other}").into()),
    }
}
