//! What an encoder has learned about a column from the chunks before.

use std::time::Duration;

use super::backoff::Backoff;
use super::stream_dictionary::StreamDictionary;
use super::symbols::SymbolHistory;

/// The history of a column, and of the columns within it.
#[derive(Debug, Default)]
pub(crate) struct ColumnHistory {
    pub(super) trials: Trials,
    pub(super) symbols: SymbolHistory,
    pub(super) dictionary: StreamDictionary,
    children: Vec<ColumnHistory>,
}

/// When to try each encoding again that costs a pass over the values before its size is known.
#[derive(Debug, Default)]
pub(super) struct Trials {
    pub(super) runs: Backoff,
    pub(super) delta: Backoff,
    pub(super) dictionary: Backoff,
    pub(super) decimals: Backoff,
    pub(super) relative: Backoff,
}

impl ColumnHistory {
    /// The time that went into training symbols for this column since the last call.
    pub(crate) fn take_training_time(&mut self) -> Duration {
        let within = self.children.iter_mut().map(Self::take_training_time).sum::<Duration>();
        self.symbols.take_training_time() + within
    }

    /// The history of child `i`.
    pub(crate) fn child(&mut self, i: usize) -> &mut Self {
        if self.children.len() <= i {
            self.children.resize_with(i + 1, Self::default);
        }
        &mut self.children[i]
    }
}
