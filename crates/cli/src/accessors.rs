//! `dray accessors`: code that reads the objects of a page file.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use dray_accessors::{Language, Model};
use dray_pagefile::PageFile;

use crate::failure::{EXIT_CODES, Failure};
use crate::pages::failure;

const EXAMPLES: &str = "\
The code is for all files with the same schema, and refuses others. It needs the runtime of its
language: the crates dray-page and dray-pagefile, java/page, or the Python package.

Examples:
  dray accessors customers.pages --language rust -o src
  dray accessors customers.pages --language java --namespace shop.data -o src/main/java
  dray accessors customers.pages --language python --name Customer";

/// Generate code that reads the objects of a page file: classes with named, typed fields
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct Arguments {
    /// A page file with the schema
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// The language of the code
    #[arg(long, short, value_parser = languages())]
    language: Language,
    /// The class of the objects [default: from the file's name]
    #[arg(long, value_parser = identifier)]
    name: Option<String>,
    /// Java's package, or the module [default: from the file's name; for Java none]
    #[arg(long, value_parser = namespace)]
    namespace: Option<String>,
    /// The folder to write to; files that are there are replaced
    #[arg(long, short, value_name = "FOLDER", default_value = ".")]
    output: PathBuf,
}

fn languages() -> impl TypedValueParser<Value = Language> {
    PossibleValuesParser::new(Language::ALL.map(Language::name)).try_map(|name| {
        let named = Language::ALL.into_iter().find(|language| language.name() == name);
        named.ok_or("no such language")
    })
}

/// A name that every language takes.
fn identifier(text: &str) -> Result<String, String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match text.chars().next() {
        Some(first) if is_word(first) && !first.is_ascii_digit() && text.chars().all(is_word) => {
            Ok(text.to_owned())
        }
        _ => Err("use letters, digits and underscores, and no digit first".to_owned()),
    }
}

/// Identifiers with points between them.
fn namespace(text: &str) -> Result<String, String> {
    text.split('.').map(identifier).collect::<Result<Vec<_>, _>>().map(|parts| parts.join("."))
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let file = PageFile::open(&arguments.path).map_err(failure)?;
    let stem = arguments.path.file_stem().unwrap_or_default().to_string_lossy();
    let model = Model::of_file(&file, arguments.name.as_deref().unwrap_or(&stem));
    let namespace = match (&arguments.namespace, arguments.language) {
        (Some(namespace), _) => namespace,
        (None, Language::Java) => "",
        (None, _) => &*stem,
    };
    for source in arguments.language.sources(&model, namespace) {
        let path = arguments.output.join(&source.path);
        write(&path, &source.text)
            .map_err(|cause| Failure::output(&path.display().to_string(), &cause))?;
        println!("{}", path.display());
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}
