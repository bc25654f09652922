//! What writing has in common, whatever the database: the data's source, what was sent, and what
//! the watch has decided.

mod batches;
pub(super) mod several;

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow::datatypes::Schema;

pub(crate) use self::batches::{Arrival, Batches, Source};
use super::cancelled;
use crate::error::{Error, ErrorKind, Result};
use crate::stats::Progress;
use crate::watch::{Verdict, Watch};
use crate::write::{WriteMode, WriteOptions};

/// How the name of a staging table begins.
const STAGING: &str = "dray_unfinished_";
/// How long a server has to undo what a broken connection, or a cancelled write, has done.
pub(super) const UNDO_TIMEOUT: Duration = Duration::from_secs(60);
/// The bytes of a name that every database takes.
const NAME_BYTES: usize = 63;

/// Checks that a table's columns are still those of the beginning.
///
/// # Errors
/// When they are not.
pub(super) fn check_unchanged<C: PartialEq>(before: &[C], now: &[C]) -> Result<()> {
    match before == now {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::Execution,
            "another session has changed the table's columns meanwhile",
        )
        .with_hint("try again")),
    }
}

/// What was sent, by all connections.
#[derive(Debug, Default)]
pub(super) struct Sent {
    rows: AtomicU64,
    bytes: AtomicU64,
}

impl Sent {
    pub(super) fn add_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    pub(super) fn add_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn progress(&self) -> Progress {
        Progress {
            rows: self.rows.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            ..Progress::default()
        }
    }
}

/// Says whether a writer is to go on.
pub(super) type Look<'a> = &'a dyn Fn() -> Verdict;

/// Looks whether to go on.
///
/// # Errors
/// Cancelled, if not.
pub(super) fn check(look: Look<'_>) -> Result<()> {
    match look() {
        Verdict::Continue => Ok(()),
        _ => Err(cancelled()),
    }
}

/// The look of a statement that undoes what was written, which a cancel must not stop. From then on
/// the server has [`UNDO_TIMEOUT`]. If the watch abandons it, nobody waits.
pub(super) fn undoing(look: Look<'_>) -> impl FnMut() -> Verdict {
    let mut until = None;
    move || match look() {
        Verdict::Continue => Verdict::Continue,
        Verdict::Cancel
            if *until.get_or_insert_with(|| Instant::now() + UNDO_TIMEOUT) > Instant::now() =>
        {
            Verdict::Continue
        }
        _ => Verdict::Abandon,
    }
}

/// What the watch knows and has decided.
pub(super) struct Watched<'a> {
    watch: RefCell<&'a mut Watch>,
    sent: &'a Sent,
    verdict: Cell<Verdict>,
}

impl<'a> Watched<'a> {
    pub(super) fn new(watch: &'a mut Watch, sent: &'a Sent) -> Self {
        Self { watch: watch.into(), sent, verdict: Cell::default() }
    }

    pub(super) fn sent(&self) -> &'a Sent {
        self.sent
    }

    pub(super) fn look(&self) -> Verdict {
        let progress = self.sent.progress();
        let verdict = (self.watch.borrow_mut())(&progress).max(self.verdict.get());
        self.verdict.set(verdict);
        verdict
    }

    /// Why writing ends: the watch's decision, if it has cancelled.
    pub(super) fn why(&self, error: Error) -> Error {
        match self.verdict.get() {
            Verdict::Continue => error,
            _ => cancelled(),
        }
    }
}

/// Checks the columns of the data, and the options that name some.
///
/// # Errors
/// Usage.
pub(super) fn check_columns(schema: &Schema, options: &WriteOptions) -> Result<()> {
    if schema.fields().is_empty() {
        return Err(Error::usage("the data has no columns"));
    }
    let mut names = HashSet::new();
    for field in schema.fields() {
        if !names.insert(field.name()) {
            return Err(Error::usage(format!("the data has two columns named {:?}", field.name()))
                .with_hint("rename one"));
        }
    }
    if let Some((name, _)) = options.types.iter().find(|(name, _)| !names.contains(name)) {
        return Err(Error::usage(format!("types names {name:?}, which is no column of the data")));
    }
    if !options.types.is_empty() && options.mode == WriteMode::Append {
        return Err(Error::usage("mode append creates no table, so types has no meaning"));
    }
    Ok(())
}

/// The table's column of a name, or why there is none.
///
/// # Errors
/// Query, with the names of the columns that there are.
pub(super) fn position(names: &[&str], name: &str) -> Result<usize> {
    names.iter().position(|column| *column == name).ok_or_else(|| {
        const SHOWN_MAX: usize = 20;
        let more = if names.len() > SHOWN_MAX { ", …" } else { "" };
        let shown = names[..names.len().min(SHOWN_MAX)].join(", ");
        Error::new(crate::error::ErrorKind::Query, format!("the table has no column {name:?}"))
            .with_hint(format!("its columns are {shown}{more}"))
            .with_sqlstate("42703")
    })
}

/// A name that no other table has.
pub(super) fn staging_name(table: &str) -> String {
    let random = format!("_{:016x}", RandomState::new().build_hasher().finish());
    let room = NAME_BYTES - STAGING.len() - random.len();
    let fits = |(start, c): &(usize, char)| start + c.len_utf8() <= room;
    let shown: String = table.char_indices().take_while(fits).map(|(_, c)| c).collect();
    format!("{STAGING}{shown}{random}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn staging_names_are_names() {
        for (table, shown) in [("orders", "orders"), ("", ""), (&*"ä".repeat(40), &"ä".repeat(15))]
        {
            let (one, other) = (staging_name(table), staging_name(table));
            assert!(one.len() <= NAME_BYTES && one != other, "{one}");
            assert!(one.starts_with(&format!("{STAGING}{shown}_")), "{one}");
        }
    }
}
