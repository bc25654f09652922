//! Whether objects are still the versions that they were: a request for each, or one for a thousand
//! where there are many.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{GetOptions, ObjectStore};

use crate::{Object, StoreError, StoreErrorKind, runtime};

/// Objects up to this number are asked for one by one.
const SINGLE_MAX: usize = 8;
/// Requests at a time.
const AT_A_TIME: usize = 16;

/// An object's place among those that are checked, and what is wrong with it.
type Failed = (usize, StoreError);

pub(crate) async fn all(objects: Vec<Object>) -> Result<(), Failed> {
    let checking = async move { Ok(check(objects).await) };
    runtime::run(checking).await.map_err(|error| (0, error))?
}

async fn check(objects: Vec<Object>) -> Result<(), Failed> {
    let lists = objects.first().is_some_and(|first| first.store.has_folders());
    if objects.len() > SINGLE_MAX && lists {
        return listed(&objects).await;
    }
    let checks = objects.into_iter().enumerate().map(|(i, object)| single(i, object));
    futures::stream::iter(checks).buffer_unordered(AT_A_TIME).try_collect().await
}

async fn single(i: usize, object: Object) -> Result<(), Failed> {
    let options = GetOptions { head: true, ..object.options() };
    let found = object.store.client().get_opts(&object.meta.location, options).await;
    let now = found.map_err(|cause| (i, object.store.error(&cause)))?.meta;
    object.compare(&now).map_err(|error| (i, error))
}

/// Compares the objects to a listing of the folder that all are in.
async fn listed(objects: &[Object]) -> Result<(), Failed> {
    let Some(first) = objects.first() else { return Ok(()) };
    let mut missing: BTreeMap<&Path, usize> =
        objects.iter().enumerate().map(|(i, object)| (&object.meta.location, i)).collect();
    let mut now = first.store.client().list(Some(&folder_of_all(objects)));
    while let Some(meta) = now.next().await {
        let meta = meta.map_err(|cause| (0, first.store.error(&cause)))?;
        if let Some(i) = missing.remove(&meta.location)
            && let Some(object) = objects.get(i)
        {
            object.compare(&meta).map_err(|error| (i, error))?;
        }
    }
    match missing.into_values().min() {
        None => Ok(()),
        Some(i) => Err((i, StoreError::new(StoreErrorKind::NotFound, "there is no such object"))),
    }
}

/// The longest folder that all objects are in.
fn folder_of_all(objects: &[Object]) -> Path {
    let mut shared: Option<Vec<&str>> = None;
    for object in objects {
        let mut parts = object.meta.location.as_ref().split('/').collect::<Vec<_>>();
        parts.pop();
        let known = shared.get_or_insert_with(|| parts.clone());
        let same = known.iter().zip(&parts).take_while(|(a, b)| a == b).count();
        known.truncate(same);
    }
    // Each part is one of a path already.
    Path::parse(shared.unwrap_or_default().join("/")).unwrap_or_default()
}
