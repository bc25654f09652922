//! Finds the files of each table: walks folders, recognises kinds by endings, and parses
//! `key=value` folder names.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;

use super::CatalogError;
use super::arrow::IpcFormat;
use super::naming::{TableSpec, file_name, table_name};
use super::served::ServedFile;

/// The files of one table, all of one kind.
#[derive(Debug)]
pub(super) struct Source {
    /// The table's name.
    pub name: String,
    /// What the user named, or the folder or file found in it.
    pub path: PathBuf,
    /// The kind of the files.
    pub kind: Kind,
    /// At least one file, sorted by path.
    pub files: Vec<Arc<ServedFile>>,
    /// The keys of `key=value` folders, outermost first.
    pub partition_columns: Vec<(String, DataType)>,
}

/// The kind of a file, by its ending; for Arrow also by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Parquet,
    Csv { delimiter: u8, compression: FileCompressionType },
    Json { compression: FileCompressionType },
    Arrow(IpcFormat),
}

/// A file of a known kind.
#[derive(Debug)]
struct DataFile {
    path: PathBuf,
    stem: String,
    ending: String,
    kind: Kind,
}

/// The tables that `spec` names.
pub(super) fn find(spec: &TableSpec) -> Result<Vec<Source>, CatalogError> {
    let metadata = fs::metadata(&spec.path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => CatalogError::NotFound { path: spec.path.clone() },
        _ => CatalogError::unreadable(&spec.path, error),
    })?;
    let name = spec.name.as_deref();
    if !metadata.is_dir() {
        let file = data_file(&spec.path)?
            .ok_or_else(|| CatalogError::UnknownEnding { path: spec.path.clone() })?;
        return Ok(vec![one_file(name, file)?]);
    }
    let sources = if name.is_some() || is_one_table(&spec.path)? {
        Vec::from_iter(one_folder(name, &spec.path)?)
    } else {
        each_entry(&spec.path)?
    };
    if sources.is_empty() {
        return Err(CatalogError::EmptyFolder { path: spec.path.clone() });
    }
    Ok(sources)
}

/// Whether a folder is one table: it has `key=value` folders, or is named like a data file, as some
/// engines write their results.
fn is_one_table(folder: &Path) -> Result<bool, CatalogError> {
    if split_ending(&file_name(folder)).is_some() {
        return Ok(true);
    }
    Ok(entries(folder)?.iter().any(|path| key_value(&file_name(path)).is_some() && path.is_dir()))
}

/// One table for each data file and each subfolder with data files.
fn each_entry(folder: &Path) -> Result<Vec<Source>, CatalogError> {
    let mut sources = Vec::new();
    for path in entries(folder)? {
        if path.is_dir() {
            sources.extend(one_folder(None, &path)?);
        } else if let Some(file) = data_file(&path)? {
            sources.push(one_file(None, file)?);
        }
    }
    Ok(sources)
}

fn one_file(name: Option<&str>, file: DataFile) -> Result<Source, CatalogError> {
    let name = name_or(name, &file.stem, &file.path)?;
    Ok(Source {
        path: file.path.clone(),
        kind: file.kind,
        files: vec![served(&name, Path::new(&file_name(&file.path)), file.path)?],
        partition_columns: Vec::new(),
        name,
    })
}

/// The file at `path`. Clients see its path within the table.
fn served(table: &str, place: &Path, path: PathBuf) -> Result<Arc<ServedFile>, CatalogError> {
    let name = format!("{table}/{}", place.display());
    ServedFile::new(path.clone(), name)
        .map(Arc::new)
        .map_err(|error| CatalogError::unreadable(&path, error))
}

/// All data files below a folder as one table; None without data files.
fn one_folder(name: Option<&str>, folder: &Path) -> Result<Option<Source>, CatalogError> {
    let mut files = Vec::new();
    walk(folder, &mut files)?;
    let Some(first) = files.first() else { return Ok(None) };
    if let Some(other) =
        files.iter().find(|file| file.kind != first.kind || file.ending != first.ending)
    {
        return Err(CatalogError::MixedKinds {
            first: first.path.clone(),
            second: other.path.clone(),
        });
    }
    let folder_name = file_name(folder);
    let stem = split_ending(&folder_name).map_or(folder_name.as_str(), |(stem, _)| stem);
    let name = name_or(name, stem, folder)?;
    let place = |file: &DataFile| file.path.strip_prefix(folder).unwrap_or(&file.path).to_owned();
    Ok(Some(Source {
        path: folder.to_owned(),
        kind: first.kind,
        partition_columns: partition_columns(folder, &files)?,
        files: files
            .into_iter()
            .map(|file| served(&name, &place(&file), file.path))
            .collect::<Result<_, _>>()?,
        name,
    }))
}

fn name_or(name: Option<&str>, stem: &str, path: &Path) -> Result<String, CatalogError> {
    match name {
        Some(name) => Ok(name.to_owned()),
        None => table_name(stem)
            .ok_or_else(|| CatalogError::BadName { found: path.display().to_string() }),
    }
}

/// Adds the data files below a folder that aren't empty, sorted by path. Links to folders are not
/// followed, because they could form a cycle.
fn walk(folder: &Path, files: &mut Vec<DataFile>) -> Result<(), CatalogError> {
    for path in entries(folder)? {
        let metadata =
            fs::metadata(&path).map_err(|error| CatalogError::unreadable(&path, error))?;
        if metadata.is_dir() {
            if !path.is_symlink() {
                walk(&path, files)?;
            }
        } else if metadata.len() > 0 {
            files.extend(data_file(&path)?);
        }
    }
    Ok(())
}

/// The entries of a folder that aren't hidden, sorted.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, CatalogError> {
    let unreadable = |error| CatalogError::unreadable(folder, error);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if !file_name(&path).starts_with(['.', '_']) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// The kind of a file; None if the ending is unknown.
fn data_file(path: &Path) -> Result<Option<DataFile>, CatalogError> {
    let name = file_name(path);
    let Some((stem, ending)) = split_ending(&name) else { return Ok(None) };
    let lower = ending.to_ascii_lowercase();
    let (format, compression) = match lower.split_once('.') {
        Some((format, "gz")) => (format, FileCompressionType::GZIP),
        Some((format, _)) => (format, FileCompressionType::ZSTD),
        None => (lower.as_str(), FileCompressionType::UNCOMPRESSED),
    };
    let kind = match format {
        "parquet" => Kind::Parquet,
        "csv" => Kind::Csv { delimiter: b',', compression },
        "tsv" => Kind::Csv { delimiter: b'\t', compression },
        "json" | "ndjson" | "jsonl" => Kind::Json { compression },
        _ => Kind::Arrow(ipc_format(path).map_err(|error| CatalogError::unreadable(path, error))?),
    };
    Ok(Some(DataFile {
        path: path.to_owned(),
        stem: stem.to_owned(),
        ending: ending.to_owned(),
        kind,
    }))
}

/// Splits `orders.CSV.gz` into `orders` and `CSV.gz`; None if the ending is unknown.
fn split_ending(name: &str) -> Option<(&str, &str)> {
    const TEXT: [&str; 5] = ["csv", "tsv", "json", "ndjson", "jsonl"];
    const BINARY: [&str; 5] = ["parquet", "arrow", "arrows", "feather", "ipc"];
    let is_one_of =
        |endings: &[&str], ending: &str| endings.iter().any(|e| e.eq_ignore_ascii_case(ending));

    let (stem, last) = name.rsplit_once('.')?;
    if is_one_of(&TEXT, last) || is_one_of(&BINARY, last) {
        return Some((stem, last));
    }
    let (stem, format) = stem.rsplit_once('.')?;
    (is_one_of(&["gz", "zst"], last) && is_one_of(&TEXT, format))
        .then(|| (stem, &name[stem.len() + 1..]))
}

fn ipc_format(path: &Path) -> io::Result<IpcFormat> {
    const FILE_MAGIC: [u8; 6] = *b"ARROW1";
    let mut start = Vec::new();
    File::open(path)?.take(FILE_MAGIC.len() as u64).read_to_end(&mut start)?;
    Ok(if start == FILE_MAGIC { IpcFormat::File } else { IpcFormat::Stream })
}

/// The keys of the `key=value` folders between `folder` and its files, which all files must share.
fn partition_columns(
    folder: &Path,
    files: &[DataFile],
) -> Result<Vec<(String, DataType)>, CatalogError> {
    let Some(first) = files.first() else { return Ok(Vec::new()) };
    let keys: Vec<String> =
        partition_values(folder, &first.path).into_iter().map(|(key, _)| key).collect();
    let mut all_integers = vec![true; keys.len()];
    for file in files {
        let values = partition_values(folder, &file.path);
        // DataFusion lists these folders itself, and ignores files in other folders between them.
        let is_in_other_folder =
            !keys.is_empty() && folders_below(folder, &file.path).count() != keys.len();
        if is_in_other_folder || !values.iter().map(|(key, _)| key).eq(&keys) {
            return Err(CatalogError::MixedPartitions {
                first: first.path.clone(),
                second: file.path.clone(),
            });
        }
        for (is_integer, (_, value)) in all_integers.iter_mut().zip(values) {
            // `07` is text: as a number it would become `7`.
            *is_integer &= value.parse::<i64>().is_ok_and(|number| number.to_string() == value);
        }
    }
    let types =
        all_integers.into_iter().map(|is| if is { DataType::Int64 } else { DataType::Utf8 });
    Ok(keys.into_iter().zip(types).collect())
}

fn partition_values(folder: &Path, file: &Path) -> Vec<(String, String)> {
    let names = folders_below(folder, file).filter_map(|part| part.as_os_str().to_str());
    names.filter_map(key_value).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn folders_below<'a>(folder: &Path, file: &'a Path) -> impl Iterator<Item = Component<'a>> {
    file.strip_prefix(folder).ok().and_then(Path::parent).unwrap_or(Path::new("")).components()
}

fn key_value(folder: &str) -> Option<(&str, &str)> {
    folder.split_once('=').filter(|(key, _)| !key.is_empty())
}
