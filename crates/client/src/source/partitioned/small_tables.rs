//! What one connection is enough for, or all that can be had, for a while.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long a table counts as small, and connections as not to be had.
const LASTS: Duration = Duration::from_secs(60);
/// The most statements that are remembered.
const STATEMENTS_MAX: usize = 64;

/// Statements whose tables were too small for several connections, and when that was found.
/// Inspecting a table takes longer than a small statement that runs over and over.
#[derive(Debug, Default)]
pub(in super::super) struct SmallTables(HashMap<String, Instant>);

impl SmallTables {
    /// Whether a statement's table was small when it was last inspected.
    pub(in super::super) fn has(&self, sql: &str) -> bool {
        self.0.get(sql).is_some_and(|since| since.elapsed() < LASTS)
    }

    /// Remembers that a statement's table was not worth more connections.
    pub(in super::super) fn note(&mut self, sql: &str) {
        if self.0.len() >= STATEMENTS_MAX {
            self.0.clear();
        }
        self.0.insert(sql.to_owned(), Instant::now());
    }
}

/// Why several connections could not be had, and when that was found. Trying again takes time, but
/// what failed may be over, such as a backup.
#[derive(Debug, Default)]
pub(in super::super) struct FailedConnections(Option<(Instant, String)>);

impl FailedConnections {
    /// Why they could not be had a short time ago.
    pub(in super::super) fn recent(&self) -> Option<&str> {
        let recent = self.0.as_ref().filter(|(since, _)| since.elapsed() < LASTS);
        recent.map(|(_, why)| why.as_str())
    }

    pub(in super::super) fn note(&mut self, why: String) {
        self.0 = Some((Instant::now(), why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_forgotten() {
        let mut failed = FailedConnections::default();
        assert_eq!(failed.recent(), None);
        failed.note("a backup".to_owned());
        assert_eq!(failed.recent(), Some("a backup"));
        let before = Instant::now().checked_sub(LASTS);
        let failed = FailedConnections(before.map(|before| (before, String::new())));
        assert_eq!(failed.recent(), None);
    }
}
