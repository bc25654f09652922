//! Finding objects, and reading one version of them.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, OBJECT_STORE_COALESCE_DEFAULT, ObjectMeta, ObjectStore, coalesce_ranges,
};

use crate::reader::ObjectReader;
use crate::{Location, StoreError, StoreErrorKind, check, open, runtime};

/// The most objects below a folder: their names are held in memory.
const OBJECTS_MAX: usize = 1_000_000;

/// A bucket, a container or an HTTP server.
#[derive(Debug, Clone)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Arc<dyn ObjectStore>,
    /// What to set if credentials are missing.
    variables: &'static str,
    has_folders: bool,
}

/// What is at a location.
#[derive(Debug)]
pub enum Found {
    /// An object of this key.
    File(Object),
    /// The objects below, each with its key relative to the folder, in the order that files
    /// have in a local folder.
    Folder(Vec<(String, Object)>),
}

impl Store {
    /// Opens the store of a location. Credentials come from the environment.
    ///
    /// # Errors
    /// If the environment has a setting that can't be used. Whether the store can be reached turns
    /// out with the first request.
    pub fn open(location: &Location) -> Result<Self, StoreError> {
        let opened = open::open(location)?;
        let (store, variables, has_folders) = (opened.store, opened.variables, opened.has_folders);
        Ok(Self(Arc::new(Inner { store, variables, has_folders })))
    }

    pub(crate) fn has_folders(&self) -> bool {
        self.0.has_folders
    }

    pub(crate) fn client(&self) -> &Arc<dyn ObjectStore> {
        &self.0.store
    }

    pub(crate) fn error(&self, cause: &object_store::Error) -> StoreError {
        StoreError::of(cause, self.0.variables)
    }

    /// Looks at a location: an object, or else the folder of this name.
    ///
    /// # Errors
    /// If there is neither, or the store can't be read.
    pub async fn find(&self, location: &Location) -> Result<Found, StoreError> {
        let path = location.path.clone();
        if !location.is_folder() {
            match self.head(&path).await {
                Ok(object) => return Ok(Found::File(object)),
                Err(error) if error.kind() != StoreErrorKind::NotFound => return Err(error),
                Err(missing) if !self.0.has_folders => return Err(missing),
                Err(_) => {}
            }
        }
        let found = self.list(&path).await.map_err(|error| match self.0.has_folders {
            true => error,
            false => StoreError::new(
                StoreErrorKind::Usage,
                "HTTP servers tell the files of a folder by WebDAV only, and this one does not; \
                 name a file",
            ),
        })?;
        match found.is_empty() {
            true => Err(StoreError::new(StoreErrorKind::NotFound, "there is no such object")),
            false => Ok(Found::Folder(found)),
        }
    }

    async fn head(&self, path: &Path) -> Result<Object, StoreError> {
        let (store, path) = (self.clone(), path.clone());
        runtime::run(async move {
            let options = GetOptions { head: true, ..GetOptions::default() };
            let found = store.0.store.get_opts(&path, options).await;
            let meta = found.map_err(|cause| store.error(&cause))?.meta;
            Object::new(store, meta)
        })
        .await
    }

    /// The objects below a folder.
    async fn list(&self, folder: &Path) -> Result<Vec<(String, Object)>, StoreError> {
        let (store, folder) = (self.clone(), folder.clone());
        let listing = async move {
            let mut found = Vec::new();
            let mut listed = store.0.store.list(Some(&folder));
            while let Some(meta) = listed.next().await {
                let meta = meta.map_err(|cause| store.error(&cause))?;
                let Some(parts) = meta.location.prefix_match(&folder) else {
                    let what = format!("the store listed '{}' below '{folder}'", meta.location);
                    return Err(StoreError::new(StoreErrorKind::Other, what));
                };
                let key = parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/");
                // Some tools make an empty object for the folder itself.
                if key.is_empty() {
                    continue;
                }
                if found.len() == OBJECTS_MAX {
                    let what = format!("there are more than {OBJECTS_MAX} objects; name a folder");
                    return Err(StoreError::new(StoreErrorKind::Usage, what));
                }
                found.push((key, Object::new(store.clone(), meta)?));
            }
            found.sort_by(|(a, _), (b, _)| a.split('/').cmp(b.split('/')));
            Ok(found)
        };
        runtime::run(listing).await
    }
}

/// One version of an object.
#[derive(Debug, Clone)]
pub struct Object {
    pub(crate) store: Store,
    pub(crate) meta: Arc<ObjectMeta>,
}

impl Object {
    fn new(store: Store, mut meta: ObjectMeta) -> Result<Self, StoreError> {
        // Listings have none, and an old version that is still there would hide a change.
        meta.version = None;
        if meta.e_tag.is_none() && meta.last_modified.timestamp() == 0 {
            return Err(StoreError::new(
                StoreErrorKind::Usage,
                "its server sends neither ETag nor Last-Modified, so a change could not be seen",
            ));
        }
        Ok(Self { store, meta: Arc::new(meta) })
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.meta.size
    }

    /// When it was written: seconds since 1970-01-01 UTC, and nanoseconds.
    pub fn modified(&self) -> (i64, u32) {
        (self.meta.last_modified.timestamp(), self.meta.last_modified.timestamp_subsec_nanos())
    }

    /// What tells this version from others of the same key: the store's ETag, or else when it was
    /// written.
    pub fn version(&self) -> String {
        match &self.meta.e_tag {
            Some(tag) => format!("etag {}", opaque(tag)),
            None => format!("modified {}", self.meta.last_modified.to_rfc3339()),
        }
    }

    /// Fails if an object of the same key and another version has taken its place.
    pub(crate) fn compare(&self, now: &ObjectMeta) -> Result<(), StoreError> {
        if self.meta.size != now.size {
            let (before, now) = (self.meta.size, now.size);
            return Err(StoreError::changed(format!("it had {before} bytes, and now has {now}")));
        }
        let is_same = match (&self.meta.e_tag, &now.e_tag) {
            (Some(before), Some(now)) => opaque(before) == opaque(now),
            _ => self.meta.last_modified == now.last_modified,
        };
        match is_same {
            true => Ok(()),
            false => Err(StoreError::changed("it was replaced by an object of the same size")),
        }
    }

    /// Asks for this version. A weak ETag never matches, so answers are only compared to it.
    pub(crate) fn options(&self) -> GetOptions {
        let tag = self.meta.e_tag.clone().filter(|tag| !tag.starts_with("W/"));
        GetOptions { if_match: tag, ..GetOptions::default() }
    }

    async fn get(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
        let options =
            GetOptions { range: Some(GetRange::Bounded(range.clone())), ..self.options() };
        let error = |cause| self.store.error(&cause);
        let answer =
            self.store.0.store.get_opts(&self.meta.location, options).await.map_err(error)?;
        self.compare(&answer.meta)?;
        let bytes = answer.bytes().await.map_err(error)?;
        match bytes.len() as u64 == range.end - range.start {
            true => Ok(bytes),
            false => {
                let (found, asked) = (bytes.len(), range.end - range.start);
                let what = format!("the store sent {found} bytes of {asked}");
                Err(StoreError::new(StoreErrorKind::Unreachable, what))
            }
        }
    }

    /// Fails if a range is not within the object.
    fn check_range(&self, range: &Range<u64>) -> Result<(), StoreError> {
        match range.start <= range.end && range.end <= self.meta.size {
            true => Ok(()),
            false => {
                let what = format!("bytes {range:?} of {} were asked for", self.meta.size);
                Err(StoreError::new(StoreErrorKind::Other, what))
            }
        }
    }

    /// Reads ranges. Those that are near each other are one request.
    ///
    /// # Errors
    /// If the object was replaced or removed, or the store can't be read.
    pub async fn ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, StoreError> {
        ranges.iter().try_for_each(|range| self.check_range(range))?;
        let (object, ranges) = (self.clone(), ranges.to_vec());
        runtime::run(async move {
            let filled = ranges.iter().filter(|range| !range.is_empty()).cloned();
            let filled = filled.collect::<Vec<_>>();
            let get = |range| object.get(range);
            let mut read =
                coalesce_ranges(&filled, get, OBJECT_STORE_COALESCE_DEFAULT).await?.into_iter();
            let missing = || StoreError::new(StoreErrorKind::Other, "a range was not read");
            let bytes = ranges.iter().map(|range| match range.is_empty() {
                true => Ok(Bytes::new()),
                false => read.next().ok_or_else(missing),
            });
            bytes.collect()
        })
        .await
    }

    /// Reads a range, and blocks this thread meanwhile.
    pub(crate) fn wait_for(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
        self.check_range(&range)?;
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let object = self.clone();
        runtime::wait(async move { object.get(range).await })
    }

    /// A blocking reader from the start.
    pub fn reader(&self) -> ObjectReader {
        ObjectReader::new(self.clone())
    }

    /// Fails if one of the objects was replaced or removed; tells which.
    ///
    /// # Errors
    /// The index of an object, and why it can't be read any more.
    pub async fn check_all(objects: Vec<Self>) -> Result<(), (usize, StoreError)> {
        check::all(objects).await
    }
}

/// An ETag without its quotes, which some stores leave out in listings.
fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag).trim_matches('"')
}
