//! The files that a path or a URL leads to, in folders of this host and of object stores alike.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use dray_store::{Found, Location, Object, Store, StoreErrorKind, is_url, shown};

use super::CatalogError;
use super::naming::{file_name, split_ending};

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
    /// Whether its first folder is a link. Only tables of their own follow such.
    pub(super) is_behind_link: bool,
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
            is_behind_link: false,
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
                    is_behind_link: false,
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
        let folders = Vec::new();
        return Ok(Tree::File(Entry { path, folders, name, bytes, place, is_behind_link: false }));
    }
    let mut files = Vec::new();
    walk(path, &mut Vec::new(), false, &mut files)?;
    Ok(Tree::Folder(Folder { path: path.to_owned(), name, files }))
}

/// Adds the files below a folder, sorted by path. Links to folders are followed in the first folder
/// alone, because they could form a cycle.
fn walk(
    folder: &Path,
    folders: &mut Vec<String>,
    is_behind_link: bool,
    files: &mut Vec<Entry>,
) -> Result<(), CatalogError> {
    for path in entries(folder)? {
        let name = file_name(&path);
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            // A link that leads nowhere, of no kind that is served.
            Err(_) if split_ending(&name).is_none() => continue,
            Err(error) => return Err(CatalogError::unreadable(&path, error)),
        };
        if metadata.is_dir() {
            let is_link = path.is_symlink();
            if !is_link || folders.is_empty() {
                folders.push(name);
                walk(&path, folders, is_behind_link || is_link, files)?;
                folders.pop();
            }
        } else {
            files.push(Entry {
                path,
                folders: folders.clone(),
                name,
                bytes: metadata.len(),
                place: Place::Local,
                is_behind_link,
            });
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
