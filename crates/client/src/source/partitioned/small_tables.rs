//! Statements whose tables were too small for several connections.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long a table counts as small, and the most statements for which that is remembered.
const SMALL_LASTS: Duration = Duration::from_secs(60);
const STATEMENTS_MAX: usize = 64;

/// Statements whose tables were too small for several connections, and when that was found.
/// Inspecting a table takes longer than a small statement that runs over and over.
#[derive(Debug, Default)]
pub(in super::super) struct SmallTables(HashMap<String, Instant>);

impl SmallTables {
    /// Whether a statement's table was small when it was last inspected.
    pub(in super::super) fn has(&self, sql: &str) -> bool {
        self.0.get(sql).is_some_and(|since| since.elapsed() < SMALL_LASTS)
    }

    /// Remembers that a statement's table was not worth more connections.
    pub(in super::super) fn note(&mut self, sql: &str) {
        if self.0.len() >= STATEMENTS_MAX {
            self.0.clear();
        }
        self.0.insert(sql.to_owned(), Instant::now());
    }
}
