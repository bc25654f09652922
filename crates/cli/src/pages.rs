//! `dray pages`: looks into a page file, and takes objects out of it.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema as ArrowSchema, SchemaRef};
use clap::Args;
use dray_format::Type;
use dray_format::arrow::{StringLayout, batch_to_arrow, schema_to_arrow, with_new_dictionaries};
use dray_page::{ColumnsBuilder, ErrorKind as PageErrorKind, Layout, Object};
use dray_pagefile::{ErrorKind, KeyPath, KeyValue, PageFile, Salvage};

use crate::failure::{EXIT_CODES, Failure};
use crate::format::{FileOptions, Format, WriteError};
use crate::interrupt::Interrupt;
use crate::number;
use crate::output::{Output, UnfinishedFile};

/// The rows, and the bytes, of the batches that objects are written in.
const BATCH_ROWS: usize = 8192;
const BATCH_BYTES_MAX: u64 = 1 << 30;
/// A batch is written once its objects have this part of its bytes: columns may take more.
const OBJECTS_PART: u64 = 16;

const EXAMPLES: &str = "\
Without an option it prints what the file holds. Objects are printed as JSON, one in a line.

Examples:
  dray export dray://localhost 'SELECT * FROM orders' -o orders.pages --key id
  dray pages orders.pages
  dray pages orders.pages --get 17 --get 18
  dray pages orders.pages --find 4711
  dray pages people.pages --find Miller --find 1970
  dray pages orders.pages --check
  dray pages orders.pages --convert orders.parquet
  dray pages broken.pages --salvage --convert rescued.pages";

/// Look into a page file, and take objects out of it
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct Arguments {
    /// The page file
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Print the object with this number, from 0
    #[arg(long, value_name = "N", conflicts_with_all = ["find", "check", "convert"])]
    get: Vec<u64>,
    /// Print the objects whose key has this value; once for each field of the key
    #[arg(long, value_name = "VALUE", conflicts_with_all = ["check", "convert"],
          allow_hyphen_values = true)]
    find: Vec<String>,
    /// Check every byte of the file
    #[arg(long, conflicts_with = "convert")]
    check: bool,
    /// Write all objects to a file of the format that its ending selects, as `dray export` does
    #[arg(long, value_name = "FILE")]
    convert: Option<PathBuf>,
    /// Read a file that was cut off, as far as its pages are whole
    #[arg(long, requires = "convert")]
    salvage: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(url) = arguments.path.to_str().filter(|text| dray_store::is_url(text)) {
        let url = dray_store::shown(url);
        let what = format!("{url}: a page file is read in place, in memory; copy it to this host");
        return Err(Failure::Usage(what));
    }
    if arguments.salvage {
        let salvage = Salvage::open(&arguments.path).map_err(failure)?;
        let (pages, objects) = (salvage.pages().len(), salvage.objects());
        let all = salvage.pages().iter().flat_map(|page| page.objects()).map(Ok);
        convert(arguments, salvage.layout(), all)?;
        let count = number::count(objects);
        eprintln!("{pages} whole pages with {count} objects; then: {}", salvage.reason());
        return Ok(());
    }
    let file = PageFile::open(&arguments.path).map_err(failure)?;
    if !arguments.get.is_empty() {
        let objects = arguments.get.iter().map(|ordinal| file.object(*ordinal));
        return print(&file, objects);
    }
    if !arguments.find.is_empty() {
        let found = file.find(&key(&file, &arguments.find)?).map_err(failure)?;
        return print(&file, found.into_iter().map(|ordinal| file.object(ordinal)));
    }
    if arguments.check {
        file.check().map_err(failure)?;
    }
    match arguments.convert {
        Some(_) => convert(arguments, file.layout(), objects(&file)),
        None => std::io::stdout()
            .write_all(described(arguments, &file).as_bytes())
            .map_err(|cause| Failure::output("standard output", &cause)),
    }
}

/// All objects; where a page is damaged, its error in place of its objects.
fn objects(file: &PageFile) -> impl Iterator<Item = dray_pagefile::Result<Object<'_>>> {
    file.pages().flat_map(|page| {
        let (page, error) = match page {
            Ok(page) => (Some(page), None),
            Err(error) => (None, Some(Err(error))),
        };
        page.into_iter().flat_map(|page| page.objects()).map(Ok).chain(error)
    })
}

/// What the file holds, for reading.
fn described(arguments: &Arguments, file: &PageFile) -> String {
    let key = file.key().iter().map(|(path, _)| path.join(".")).collect::<Vec<_>>();
    let checked = if arguments.check { ", all of it checked" } else { "" };
    let mut text = format!(
        "{}: {} objects in {} pages, {}{checked}\n",
        arguments.path.display(),
        number::count(file.len()),
        number::count(file.page_count() as u64),
        number::bytes(file.file_bytes() as u64),
    );
    text += &match key.is_empty() {
        true => "key: none\n".to_owned(),
        false => format!("key: {}\n", key.join(", ")),
    };
    let digest = file.schema_digest().iter().map(|byte| format!("{byte:02x}"));
    text += &format!("schema: {}\n", digest.collect::<String>());
    for field in arrow_schema(file.layout()).fields() {
        let missing = if field.is_nullable() { ", may be missing" } else { "" };
        text += &format!("  {}: {}{missing}\n", field.name(), field.data_type());
    }
    text
}

fn arrow_schema(layout: &Layout) -> ArrowSchema {
    with_new_dictionaries(&schema_to_arrow(layout.schema(), StringLayout::default()))
}

/// The values of a key, as the types of its fields want them.
fn key(file: &PageFile, texts: &[String]) -> Result<Vec<KeyValue>, Failure> {
    let fields = file.key();
    if fields.len() != texts.len() {
        let names = fields.iter().map(|(path, _)| path.join(".")).collect::<Vec<_>>().join(", ");
        return Err(Failure::Usage(match fields.len() {
            0 => "the file has no key: write it with --key, or print objects with --get".to_owned(),
            count => format!("the key has {count} fields, {names}: give --find for each of them"),
        }));
    }
    fields
        .iter()
        .zip(texts)
        .map(|((path, data_type), text)| key_value(path, data_type, text))
        .collect()
}

fn key_value(path: &KeyPath, data_type: &Type, text: &str) -> Result<KeyValue, Failure> {
    match data_type {
        Type::Utf8 | Type::Binary => Ok(KeyValue::from(text)),
        Type::Boolean => match text {
            "true" => Ok(KeyValue::Bool(true)),
            "false" => Ok(KeyValue::Bool(false)),
            _ => Err(Failure::Usage(format!("--find {text}: {} is true or false", path.join(".")))),
        },
        _ => match text.parse() {
            Ok(number) => Ok(KeyValue::Integer(number)),
            Err(_) => Err(Failure::Usage(format!(
                "--find {text}: {} takes a whole number",
                path.join(".")
            ))),
        },
    }
}

/// Prints objects as lines of JSON.
fn print<'a>(
    file: &PageFile,
    objects: impl Iterator<Item = dray_pagefile::Result<Object<'a>>>,
) -> Result<(), Failure> {
    let schema: SchemaRef = arrow_schema(file.layout()).into();
    let unwritten = |cause: WriteError| Failure::output("standard output", cause.as_ref());
    let mut sink =
        Format::Json.sink(std::io::stdout(), &schema, FileOptions::default()).map_err(unwritten)?;
    let written = |batch: &RecordBatch| sink.write(batch).map_err(unwritten);
    write(file.layout(), &schema, objects, BATCH_BYTES_MAX, written)?;
    sink.finish().map_err(unwritten)
}

/// Writes objects to the file of `--convert`.
fn convert<'a>(
    arguments: &Arguments,
    layout: &Arc<Layout>,
    objects: impl Iterator<Item = dray_pagefile::Result<Object<'a>>>,
) -> Result<(), Failure> {
    let Some(path) = &arguments.convert else { return Ok(()) };
    let (format, options) = Output::new(path.clone()).format()?;
    let interrupt = Interrupt::listen()?;
    let schema: SchemaRef = arrow_schema(layout).into();
    let file = UnfinishedFile::create(path, &interrupt)?;
    let unwritten = |cause: WriteError| file.failure(cause.as_ref());
    let out = file.open().map_err(|cause| file.failure(&cause))?;
    let mut sink = format.sink(out, &schema, options).map_err(unwritten)?;
    let written = |batch: &RecordBatch| sink.write(batch).map_err(unwritten);
    write(layout, &schema, objects, BATCH_BYTES_MAX, written)?;
    sink.finish().map_err(unwritten)?;
    file.finish().map(drop)
}

/// Writes objects in batches of at most `bytes_max`.
fn write<'a>(
    layout: &Arc<Layout>,
    schema: &SchemaRef,
    objects: impl Iterator<Item = dray_pagefile::Result<Object<'a>>>,
    bytes_max: u64,
    mut sink: impl FnMut(&RecordBatch) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut columns = ColumnsBuilder::new(layout.clone(), bytes_max);
    let mut flush = |columns: &mut ColumnsBuilder| {
        let batch = batch_to_arrow(columns.finish(), schema)
            .map_err(|error| Failure::Start(error.to_string()))?;
        sink(&batch)
    };
    let (mut block, mut bytes) = (Vec::new(), 0);
    for object in objects {
        let object = object.map_err(failure)?;
        block.push(object);
        bytes += object.bytes().len() as u64;
        if block.len() == BATCH_ROWS || bytes >= bytes_max / OBJECTS_PART {
            append(&mut columns, &block, &mut flush)?;
            block.clear();
            bytes = 0;
        }
    }
    append(&mut columns, &block, &mut flush)
}

/// Makes a batch of objects, or several if one would be too large.
fn append(
    columns: &mut ColumnsBuilder,
    objects: &[Object<'_>],
    flush: &mut dyn FnMut(&mut ColumnsBuilder) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if objects.is_empty() {
        return Ok(());
    }
    match columns.append(objects.iter().copied()) {
        Ok(()) => flush(columns),
        Err(error) if error.kind() == PageErrorKind::Limit && objects.len() > 1 => {
            let (first, second) = objects.split_at(objects.len() / 2);
            append(columns, first, flush)?;
            append(columns, second, flush)
        }
        Err(error) => Err(Failure::Start(error.to_string())),
    }
}

pub(crate) fn failure(error: dray_pagefile::Error) -> Failure {
    match error.kind() {
        ErrorKind::Usage | ErrorKind::Io | ErrorKind::Magic => Failure::Usage(error.to_string()),
        _ => Failure::Start(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use std::fs::File;

    use arrow::array::{ArrayRef, FixedSizeListArray, Int64Array, StringArray};
    use arrow::compute::concat_batches;
    use arrow::datatypes::Int64Type;
    use dray_format::arrow::{batch_from_arrow, schema_from_arrow};
    use dray_pagefile::{PageFileOptions, PageFileWriter};

    use super::*;

    const BATCH_BYTES: u64 = 20_000;

    /// The batches of a page file with these rows.
    fn batches(rows: &RecordBatch) -> Vec<RecordBatch> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.pages");
        let schema = schema_from_arrow(&rows.schema()).unwrap();
        let out = File::create(&path).unwrap();
        let mut writer = PageFileWriter::new(out, schema, &PageFileOptions::default()).unwrap();
        writer.write(&batch_from_arrow(rows).unwrap()).unwrap();
        writer.finish().unwrap();
        let file = PageFile::open(&path).unwrap();
        let mut batches = Vec::new();
        let sink = |batch: &RecordBatch| {
            batches.push(batch.clone());
            Ok(())
        };
        let schema = arrow_schema(file.layout()).into();
        let written = write(file.layout(), &schema, objects(&file), BATCH_BYTES, sink);
        assert!(written.is_ok());
        batches
    }

    #[test]
    fn large_objects_are_written_in_several_batches() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
        let texts = StringArray::from_iter_values((0..100).map(|i| format!("{i:0>1500}")));
        // A missing list has no bytes in a page, and as many as one that is there in a column.
        let lists = (0..100).map(|i| (i == 99).then(|| vec![Some(i); 1000]));
        let lists = FixedSizeListArray::from_iter_primitive::<Int64Type, _, _>(lists, 1000);
        for large in [Arc::new(texts) as ArrayRef, Arc::new(lists)] {
            let rows = [("n", numbers.clone(), true), ("large", large, true)];
            let rows = RecordBatch::try_from_iter_with_nullable(rows).unwrap();
            let batches = batches(&rows);
            assert!(batches.len() > 10, "{}", batches.len());
            let joined = concat_batches(&batches[0].schema(), &batches).unwrap();
            assert_eq!(joined.columns(), rows.columns());
        }
    }
}
