//! Work of one call that several threads share.

use std::thread::{Builder, scope};

use crate::error::{Error, Result};

/// Applies `work` to each item, in threads of their own called `name`; a single item needs none.
/// Results keep the order of the items. `purpose` says in an error what the threads are for.
pub(crate) fn in_threads<T: Send, R: Send>(
    name: &str,
    purpose: &str,
    items: Vec<T>,
    work: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    if items.len() < 2 {
        return items.into_iter().map(work).collect();
    }
    let work = &work;
    scope(|scope| {
        let begin = |item| {
            let started = Builder::new().name(name.into()).spawn_scoped(scope, move || work(item));
            started
                .map_err(|error| Error::Thread(format!("can't start a thread {purpose}: {error}")))
        };
        let threads = items.into_iter().map(begin).collect::<Result<Vec<_>>>()?;
        let lost = |_| Err(Error::Thread(format!("a thread {purpose} has ended too early")));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(lost)).collect()
    })
}
