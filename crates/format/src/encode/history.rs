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

/// The encodings that cost a pass over the values before they are known to be worth it, and how
/// soon to try each again.
#[derive(Debug, Default)]
pub(super) struct Trials {
    pub(super) runs: Backoff,
    pub(super) delta: Backoff,
    pub(super) dictionary: Backoff,
    pub(super) decimals: Backoff,
    pub(super) relative: Backoff,
}

impl ColumnHistory {
    /// How long symbols have been trained for this column since this was last asked.
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
