//! The files that a path or a URL leads to, in folders of this host and of object stores alike.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use dray_store::{Found, Location, Object, Store, StoreErrorKind, is_url, shown};
use tracing::warn;

use super::CatalogError;
use super::naming::{file_name, split_ending};
use super::partitions::key_value;

/// What a path leads to.
pub(super) enum Tree {
    File(Entry),
    Folder(Folder),
}

/// A folder with all files below it. Names beginning with `.` or `_` are left out.
pub(super) struct Folder {
    /// What the user named.
    pub(super) path: PathBuf,
    pub(super) name: String,
    /// Sorted by path.
    pub(super) files: Vec<Entry>,
}

/// A file.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) path: PathBuf,
    /// The folders between the named folder and the file, and the file's name.
    pub(super) folders: Vec<String>,
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) place: Place,
}

/// Where a file is.
#[derive(Debug, Clone)]
pub(super) enum Place {
    Local,
    Store(Object),
}

/// Looks at a path.
pub(super) async fn look(path: &Path) -> Result<Tree, CatalogError> {
    match path.to_str().filter(|text| is_url(text)) {
        Some(url) => look_in_store(path, url).await,
        None => look_here(path),
    }
}

async fn look_in_store(path: &Path, url: &str) -> Result<Tree, CatalogError> {
    let failed = |cause: dray_store::StoreError| match cause.kind() {
        StoreErrorKind::NotFound => CatalogError::NotFound { path: path.to_owned() },
        _ => CatalogError::unreadable(Path::new(&shown(url)), cause),
    };
    let location = Location::parse(url).map_err(failed)?;
    let store = Store::open(&location).map_err(failed)?;
    let name = location.name();
    Ok(match store.find(&location).await.map_err(failed)? {
        Found::File(object) => Tree::File(Entry {
            path: path.to_owned(),
            folders: Vec::new(),
            name,
            bytes: object.bytes(),
            place: Place::Store(object),
        }),
        Found::Folder(objects) => {
            let entry = |(key, object): (String, Object)| {
                let mut folders: Vec<String> = key.split('/').map(str::to_owned).collect();
                let name = folders.pop()?;
                let has_hidden = folders.iter().chain([&name]).any(|part| is_hidden(part));
                (!has_hidden).then(|| Entry {
                    path: format!("{}/{key}", url.trim_end_matches('/')).into(),
                    folders,
                    name,
                    bytes: object.bytes(),
                    place: Place::Store(object),
                })
            };
            let files = objects.into_iter().filter_map(entry).collect();
            Tree::Folder(Folder { path: path.to_owned(), name, files })
        }
    })
}

fn look_here(path: &Path) -> Result<Tree, CatalogError> {
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => CatalogError::NotFound { path: path.to_owned() },
        _ => CatalogError::unreadable(path, error),
    })?;
    let name = file_name(path);
    if !metadata.is_dir() {
        let path = path.to_owned();
        let (bytes, place) = (metadata.len(), Place::Local);
        return Ok(Tree::File(Entry { path, folders: Vec::new(), name, bytes, place }));
    }
    let mut files = Vec::new();
    walk(path, &mut Vec::new(), &mut vec![real(path)?], &mut files)?;
    Ok(Tree::Folder(Folder { path: path.to_owned(), name, files }))
}

/// Adds the files below a folder, sorted by path. Links to folders are followed, unless they lead
/// to a folder above. `above` are the real paths of the first folder, and of those with the links
/// that were followed up to here.
fn walk(
    folder: &Path,
    folders: &mut Vec<String>,
    above: &mut Vec<PathBuf>,
    files: &mut Vec<Entry>,
) -> Result<(), CatalogError> {
    for path in entries(folder)? {
        let name = file_name(&path);
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            // A link that leads nowhere, of no kind that is served.
            Err(error) if split_ending(&name).is_none() && key_value(&name).is_none() => {
                warn!("'{}' is left out: {error}", path.display());
                continue;
            }
            Err(error) => return Err(CatalogError::unreadable(&path, error)),
        };
        if !metadata.is_dir() {
            let (folders, bytes, place) = (folders.clone(), metadata.len(), Place::Local);
            files.push(Entry { path, folders, name, bytes, place });
            continue;
        }
        let depth = above.len();
        if path.is_symlink() {
            let target = real(&path)?;
            above.push(real(folder)?);
            if above.iter().any(|folder| folder.starts_with(&target)) {
                warn!("the link '{}' leads to a folder above it, and is left out", path.display());
                above.truncate(depth);
                continue;
            }
            if above.first().is_some_and(|first| target.starts_with(first)) {
                warn!("the files behind the link '{}' are served twice", path.display());
            }
        }
        folders.push(name);
        walk(&path, folders, above, files)?;
        folders.pop();
        above.truncate(depth);
    }
    Ok(())
}

/// The path without links.
fn real(path: &Path) -> Result<PathBuf, CatalogError> {
    fs::canonicalize(path).map_err(|error| CatalogError::unreadable(path, error))
}

/// The entries of a folder that aren't hidden, sorted.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, CatalogError> {
    let unreadable = |error| CatalogError::unreadable(folder, error);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if !is_hidden(&file_name(&path)) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn is_hidden(name: &str) -> bool {
    name.starts_with(['.', '_'])
}
