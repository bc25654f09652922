//! The object store through which the engine reads: it is read only, and has exactly the files of
//! tables, each under its table's name, wherever they are.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use bytes::Bytes;
use chrono::DateTime;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::Result as EngineResult;
use datafusion::object_store::path::Path;
use datafusion::object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use dray_store::Object;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};

use super::served::{FileError, ServedFile};

/// The store's URL.
pub(super) const URL: &str = "table://files/";

/// The files of all tables.
#[derive(Debug, Default)]
pub(super) struct ServedFiles(RwLock<BTreeMap<Path, Arc<ServedFile>>>);

impl ServedFiles {
    /// Adds a file. Returns false if another file has the same name.
    pub(super) fn add(&self, file: &Arc<ServedFile>) -> Result<bool> {
        let mut files = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Ok(files.insert(Path::parse(&file.name)?, Arc::clone(file)).is_none())
    }

    /// The file at a location.
    pub(super) fn file(&self, location: &Path) -> Result<Arc<ServedFile>> {
        let files = self.0.read().unwrap_or_else(PoisonError::into_inner);
        files.get(location).cloned().ok_or_else(|| Error::NotFound {
            path: location.to_string(),
            source: "no table has this file".into(),
        })
    }

    /// The files at and below a location.
    fn below(&self, prefix: Option<&Path>) -> Vec<(Path, Arc<ServedFile>)> {
        let files = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let start = prefix.cloned().unwrap_or_default();
        let from = files
            .range(start.clone()..)
            .take_while(|(path, _)| path.as_ref().starts_with(start.as_ref()));
        from.filter(|(path, _)| path.prefix_matches(&start))
            .map(|(path, file)| (path.clone(), Arc::clone(file)))
            .collect()
    }
}

/// The URL of a table's folder; with an empty name, that of the store.
pub(super) fn table_url(name: &str) -> EngineResult<ListingTableUrl> {
    let slash = if name.is_empty() { "" } else { "/" };
    ListingTableUrl::parse(encoded_url(name) + slash)
}

/// The URL of a table's file.
pub(super) fn file_url(name: &str) -> EngineResult<ListingTableUrl> {
    ListingTableUrl::parse(encoded_url(name))
}

fn encoded_url(name: &str) -> String {
    let mut url = String::from(URL);
    // Encode the characters of glob patterns.
    for &byte in name.as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'=' => url.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => url.push(char::from(byte)),
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url
}

impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        Self::Generic { store: "table", source: Box::new(error) }
    }
}

fn meta(location: Path, file: &ServedFile) -> ObjectMeta {
    let (seconds, nanoseconds) = file.modified();
    let modified = DateTime::from_timestamp(seconds, nanoseconds);
    ObjectMeta {
        location,
        last_modified: modified.unwrap_or_default(),
        size: file.bytes(),
        e_tag: file.object().map(Object::version),
        version: None,
    }
}

/// A file as the engine knows it.
pub(super) fn meta_of(file: &ServedFile) -> EngineResult<ObjectMeta> {
    let location = Path::parse(&file.name).map_err(Error::from)?;
    Ok(meta(location, file))
}

/// Fails if one of the files has changed or is gone.
pub(super) async fn check(files: Vec<Arc<ServedFile>>) -> Result<()> {
    let (stored, local): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| file.object().is_some());
    if !local.is_empty() {
        blocking(move || Ok(local.iter().try_for_each(|file| file.check())?)).await?;
    }
    let objects = stored.iter().filter_map(|file| file.object().cloned()).collect();
    Object::check_all(objects).await.map_err(|(i, cause)| match stored.get(i) {
        Some(file) => file.store_error(&cause).into(),
        None => Error::Generic { store: "table", source: Box::new(cause) },
    })
}

/// Runs blocking I/O.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|source| Error::JoinError { source })?
}

async fn read(file: Arc<ServedFile>, ranges: Vec<Range<u64>>) -> Result<Vec<Bytes>> {
    let Some(object) = file.object() else {
        return blocking(move || read_local(&file, &ranges)).await;
    };
    ranges.iter().try_for_each(|range| file.check_range(range))?;
    Ok(object.ranges(&ranges).await.map_err(|cause| file.store_error(&cause))?)
}

fn read_local(file: &Arc<ServedFile>, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
    let open = file.open()?;
    let read = |range: &Range<u64>| {
        let bytes = range.end.checked_sub(range.start).filter(|_| range.end <= open.bytes());
        let bytes =
            bytes.and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(|| Error::Generic {
                store: "table",
                source: format!("'{}' points to bytes {range:?} of {}", file.name, open.bytes())
                    .into(),
            })?;
        file.check_range(range)?;
        let mut buffer = vec![0; bytes];
        open.read_at(&mut buffer, range.start)?;
        Ok(Bytes::from(buffer))
    };
    ranges.iter().map(read).collect()
}

fn read_only<T>(operation: &str) -> Result<T> {
    Err(Error::NotImplemented { operation: operation.to_owned(), implementer: "table".to_owned() })
}

impl fmt::Display for ServedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the files of tables")
    }
}

#[async_trait]
impl ObjectStore for ServedFiles {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let file = self.file(location)?;
        let meta = meta(location.clone(), &file);
        options.check_preconditions(&meta)?;
        let generic = |source: Box<dyn std::error::Error + Send + Sync>| Error::Generic {
            store: "table",
            source,
        };
        let range = match options.range {
            None => 0..meta.size,
            Some(range) => {
                range.as_range(meta.size).map_err(|cause| generic(cause.to_string().into()))?
            }
        };
        let bytes = if options.head {
            check(vec![file]).await?;
            Bytes::new()
        } else {
            let read = read(file, vec![range.clone()]).await?;
            read.into_iter().next().unwrap_or_default()
        };
        let payload = GetResultPayload::Stream(stream::iter([Ok(bytes)]).boxed());
        Ok(GetResult { payload, meta, range, attributes: Default::default() })
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let file = self.file(location)?;
        read(file, ranges.to_vec()).await
    }

    /// Planning lists each table's files, so that this check finds changed files even if a query is
    /// answered from statistics alone.
    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let files = self.below(prefix);
        let checked = async move {
            check(files.iter().map(|(_, file)| Arc::clone(file)).collect()).await?;
            let metas = files.into_iter().map(|(location, file)| meta(location, &file));
            Ok::<_, Error>(stream::iter(metas.map(Ok).collect::<Vec<_>>()))
        };
        stream::once(checked).try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        read_only("list_with_delimiter")
    }

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        read_only("put")
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        read_only("put")
    }

    fn delete_stream(
        &self,
        _: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        stream::iter([read_only("delete")]).boxed()
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        read_only("copy")
    }
}
