//! Finds the files of each table: which files of a folder are a table, and of which kind.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use tracing::warn;

use super::arrow::IpcFormat;
use super::naming::{TableSpec, split_ending, table_name};
use super::partitions::{Partitions, key_value};
use super::served::ServedFile;
use super::tree::{Entry, Folder, Place, Tree, look};
use super::{CatalogError, PartitionTypes};

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
    /// The columns of `key=value` folders.
    pub partitions: Partitions,
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
    entry: Entry,
    ending: String,
    kind: Kind,
}

/// The tables that `spec` names.
pub(super) async fn find(
    spec: &TableSpec,
    types: &PartitionTypes,
) -> Result<Vec<Source>, CatalogError> {
    let name = spec.name.as_deref();
    let folder = match look(&spec.path).await? {
        Tree::File(entry) => {
            let Some((stem, _)) = split_ending(&entry.name) else {
                return Err(CatalogError::UnknownEnding { path: spec.path.clone() });
            };
            let name = name_or(name, stem, &entry)?;
            return Ok(vec![one_file(name, entry).await?]);
        }
        Tree::Folder(folder) => folder,
    };
    let sources = if name.is_some() || is_one_table(&folder) {
        let stem = split_ending(&folder.name).map_or(folder.name.as_str(), |(stem, _)| stem);
        Vec::from_iter(one_folder(name, stem, &folder.path, 0, folder.files, types).await?)
    } else {
        each_entry(folder, types).await?
    };
    if sources.is_empty() {
        return Err(CatalogError::EmptyFolder { path: spec.path.clone() });
    }
    Ok(sources)
}

/// Whether a folder is one table: it has `key=value` folders, or is named like a data file, as some
/// engines write their results.
fn is_one_table(folder: &Folder) -> bool {
    let has_key = |file: &Entry| file.folders.first().is_some_and(|name| key_value(name).is_some());
    split_ending(&folder.name).is_some() || folder.files.iter().any(has_key)
}

/// One table for each data file and each subfolder with data files.
async fn each_entry(folder: Folder, types: &PartitionTypes) -> Result<Vec<Source>, CatalogError> {
    let mut sources = Vec::new();
    let mut others = LeftOut::default();
    let mut files = folder.files.into_iter().filter(|file| file.bytes > 0).peekable();
    while let Some(file) = files.next() {
        let Some(subfolder) = file.folders.first().cloned() else {
            others.add(&file);
            if let Some((stem, _)) = split_ending(&file.name) {
                let name = name_or(None, stem, &file)?;
                sources.push(one_file(name, file).await?);
            }
            continue;
        };
        let mut all = vec![file];
        let is_in = |file: &Entry| file.folders.first() == Some(&subfolder);
        while let Some(next) = files.next_if(is_in) {
            all.push(next);
        }
        let path = folder.path.join(&subfolder);
        let stem = split_ending(&subfolder).map_or(subfolder.as_str(), |(stem, _)| stem);
        sources.extend(one_folder(None, stem, &path, 1, all, types).await?);
    }
    if !sources.is_empty() {
        others.warn(&folder.path);
    }
    Ok(sources)
}

/// Files of a folder that no table has, since their ending is unknown.
#[derive(Debug, Default)]
struct LeftOut {
    files: u64,
    first: Option<PathBuf>,
}

impl LeftOut {
    fn add(&mut self, entry: &Entry) {
        if split_ending(&entry.name).is_none() {
            self.files += 1;
            self.first.get_or_insert_with(|| entry.path.clone());
        }
    }

    fn warn(&self, folder: &Path) {
        if let Some(first) = &self.first {
            warn!(
                files = self.files,
                "files of unknown kinds are left out of '{}', such as '{}'",
                folder.display(),
                first.display()
            );
        }
    }
}

async fn one_file(name: String, entry: Entry) -> Result<Source, CatalogError> {
    let path = entry.path.clone();
    let Some(file) = data_file(entry).await? else {
        return Err(CatalogError::UnknownEnding { path });
    };
    Ok(Source {
        path,
        kind: file.kind,
        files: vec![served(&name, 0, file.entry)?],
        partitions: Partitions::default(),
        name,
    })
}

/// The file as it is served. Clients see its path within the table.
fn served(table: &str, above: usize, entry: Entry) -> Result<Arc<ServedFile>, CatalogError> {
    let below = entry.folders.get(above..).unwrap_or_default();
    let mut name = table.to_owned();
    for part in below.iter().chain([&entry.name]) {
        name.push('/');
        name.push_str(part);
    }
    let path = entry.path.clone();
    let file = match entry.place {
        Place::Store(object) => Ok(ServedFile::in_store(entry.path, name, object)),
        Place::Local => ServedFile::new(entry.path, name),
    };
    file.map(Arc::new).map_err(|error| CatalogError::unreadable(&path, error))
}

/// The data files of a folder that aren't empty, as one table; None without data files. `above`
/// folders of their paths are not below the table's folder.
async fn one_folder(
    name: Option<&str>,
    stem: &str,
    path: &Path,
    above: usize,
    entries: Vec<Entry>,
    types: &PartitionTypes,
) -> Result<Option<Source>, CatalogError> {
    let mut files = Vec::new();
    let mut others = LeftOut::default();
    for entry in entries.into_iter().filter(|entry| entry.bytes > 0) {
        others.add(&entry);
        files.extend(data_file(entry).await?);
    }
    let Some(first) = files.first() else { return Ok(None) };
    others.warn(path);
    if let Some(other) =
        files.iter().find(|file| file.kind != first.kind || file.ending != first.ending)
    {
        return Err(CatalogError::MixedKinds {
            first: first.entry.path.clone(),
            second: other.entry.path.clone(),
        });
    }
    let name = match name {
        Some(name) => name.to_owned(),
        None => table_name(stem)
            .ok_or_else(|| CatalogError::BadName { found: path.display().to_string() })?,
    };
    let kind = first.kind;
    let places = files.iter().map(|file| {
        (file.entry.path.as_path(), file.entry.folders.get(above..).unwrap_or_default())
    });
    let partitions = Partitions::of(&places.collect::<Vec<_>>(), types)?;
    let files = files.into_iter().map(|file| served(&name, above, file.entry));
    let files = files.collect::<Result<_, _>>()?;
    Ok(Some(Source { path: path.to_owned(), kind, partitions, files, name }))
}

fn name_or(name: Option<&str>, stem: &str, entry: &Entry) -> Result<String, CatalogError> {
    match name {
        Some(name) => Ok(name.to_owned()),
        None => table_name(stem)
            .ok_or_else(|| CatalogError::BadName { found: entry.path.display().to_string() }),
    }
}

/// The kind of a file; None if the ending is unknown.
async fn data_file(entry: Entry) -> Result<Option<DataFile>, CatalogError> {
    let Some((_, ending)) = split_ending(&entry.name) else { return Ok(None) };
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
        _ => {
            let format = ipc_format(&entry).await;
            Kind::Arrow(format.map_err(|error| CatalogError::unreadable(&entry.path, error))?)
        }
    };
    Ok(Some(DataFile { ending: ending.to_owned(), entry, kind }))
}

async fn ipc_format(entry: &Entry) -> io::Result<IpcFormat> {
    const FILE_MAGIC: [u8; 6] = *b"ARROW1";
    let mut start = Vec::new();
    match &entry.place {
        Place::Local => {
            File::open(&entry.path)?.take(FILE_MAGIC.len() as u64).read_to_end(&mut start)?;
        }
        Place::Store(object) => {
            let range = 0..object.bytes().min(FILE_MAGIC.len() as u64);
            for bytes in object.ranges(&[range]).await? {
                start.extend_from_slice(&bytes);
            }
        }
    }
    Ok(if start == FILE_MAGIC { IpcFormat::File } else { IpcFormat::Stream })
}
