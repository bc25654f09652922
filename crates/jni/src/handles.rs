//! Numbers that stand for what Java works with.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use arrow::datatypes::SchemaRef;
use dray_client::{Connection, Estimate, Plan, SourceKind, Verdict, Watch};

use crate::errors::Failure;
use crate::reading::Reading;
use crate::writing::Writing;

/// What a handle stands for.
#[derive(Debug, Default)]
pub(crate) enum State {
    /// Nothing yet.
    #[default]
    New,
    Description(Description),
    Plan(Planned),
    Reading(Box<Reading>),
    /// For statements of the connector's own.
    Session(Box<Connection>),
    Writing(Box<Writing>),
}

/// What a statement's result will be.
#[derive(Debug)]
pub(crate) struct Description {
    pub(crate) schema: SchemaRef,
    pub(crate) estimate: Estimate,
    pub(crate) dialect: SourceKind,
}

/// A statement as parts.
#[derive(Debug)]
pub(crate) struct Planned {
    /// The columns as Spark holds them.
    pub(crate) schema: SchemaRef,
    pub(crate) plan: Plan,
}

/// One piece of work: planning, reading or writing.
#[derive(Debug, Default)]
pub(crate) struct Handle {
    /// Shared with watches, which the state has: they must not keep the handle.
    cancelled: Arc<AtomicBool>,
    state: Mutex<State>,
}

impl Handle {
    /// Makes what runs under the handle end with an error. It needs no lock, so it can be called
    /// from any thread.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn verdict(&self) -> Verdict {
        verdict(&self.cancelled)
    }

    /// A watch that cancels a statement if the handle is cancelled.
    pub(crate) fn watch(&self) -> Watch {
        let cancelled = self.cancelled.clone();
        Box::new(move |_| verdict(&cancelled))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn verdict(cancelled: &AtomicBool) -> Verdict {
    match cancelled.load(Ordering::Relaxed) {
        true => Verdict::Abandon,
        false => Verdict::Continue,
    }
}

#[derive(Debug, Default)]
struct Table {
    last: i64,
    handles: HashMap<i64, Arc<Handle>>,
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

/// Held for moments only.
fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A new handle. Numbers are never given out twice.
pub(crate) fn create() -> i64 {
    let mut table = table();
    table.last += 1;
    let number = table.last;
    table.handles.insert(number, Arc::default());
    number
}

/// # Errors
/// When the handle was closed, or never given out.
pub(crate) fn find(number: i64) -> Result<Arc<Handle>, Failure> {
    let found = table().handles.get(&number).cloned();
    found.ok_or_else(|| Failure::usage(format!("handle {number} is closed")))
}

/// Ends a handle. What it stands for is dropped here, unless a thread works with it, which drops it
/// then.
pub(crate) fn close(number: i64) {
    let Some(handle) = table().handles.remove(&number) else { return };
    handle.cancel();
    // Somebody who just cancels it, too, must not be the one who drops it later: Java then takes
    // back memory that it has lent to a writer.
    let state = handle.state.try_lock().map(|mut state| std::mem::take(&mut *state));
    drop(state);
}
