//! Watching a running statement, and cancelling it.

use crate::stats::Progress;

/// What a watch decides about a running statement. A statement never goes back to a lesser verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The statement goes on.
    #[default]
    Continue,
    /// The statement is cancelled. Once the server confirms, the connection can be used again;
    /// after two seconds without a confirmation it is given up.
    Cancel,
    /// The statement is cancelled, and nobody waits for the server: the connection is given up. A
    /// write that has created a table still takes up to two seconds to drop it.
    Abandon,
}

/// Called with a statement's progress at least every 50 ms or so, until the statement ends.
pub type Watch = Box<dyn FnMut(&Progress) -> Verdict + Send>;

/// What a source asks while it waits for its server.
pub(crate) type CancelCheck<'a> = &'a mut dyn FnMut() -> Verdict;
