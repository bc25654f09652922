//! The state frame ahead of a chunk, and the budget of its stream for tables: `spec/state.md`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::Sink;
use crate::header::Limits;
use crate::layout::TABLE_NUMBERS;

/// An upper bound on a table's descriptors and padding, with those of the frame and its header.
const OVERHEAD_BYTES: usize = 256;

/// The memory that the tables of a stream (dictionaries and symbols) may still take at its reader.
/// All encoders of the stream share it.
#[derive(Debug)]
pub struct DictionaryBudget {
    next_number: AtomicU32,
    decoded_bytes: AtomicU64,
    frame_bytes_max: u64,
}

impl DictionaryBudget {
    /// The budget of a stream whose reader has these limits.
    pub fn new(limits: &Limits) -> Self {
        Self {
            next_number: AtomicU32::new(0),
            decoded_bytes: AtomicU64::new(limits.decoded_bytes_max),
            frame_bytes_max: limits.chunk_bytes_max,
        }
    }
}

/// A table's number, and what it has taken of the budget. Nothing is given back when the table
/// shrinks: another encoder's table could arrive before the smaller one.
#[derive(Debug, Default)]
pub(crate) struct TableClaim {
    number: Option<u32>,
    bytes: u64,
}

/// The tables that a chunk adds, on their way into its state frame.
pub(crate) struct StateSink {
    budget: Arc<DictionaryBudget>,
    pub(crate) sink: Sink,
    /// The number of tables.
    pub(crate) count: u32,
}

impl StateSink {
    pub(crate) fn new(budget: Arc<DictionaryBudget>) -> Self {
        Self { budget, sink: Sink::new(), count: 0 }
    }

    /// Claims budget for a table: `new_bytes` of it are sent now, and it then decodes to
    /// `decoded_bytes`. Returns its number; none if that is over the budget or too large for one
    /// frame.
    pub(crate) fn claim(
        &self,
        claim: &mut TableClaim,
        new_bytes: usize,
        decoded_bytes: usize,
    ) -> Option<u32> {
        if self.sink.bytes() + (new_bytes + OVERHEAD_BYTES) as u64 > self.budget.frame_bytes_max {
            return None;
        }
        let more = (decoded_bytes as u64).saturating_sub(claim.bytes);
        let left = |left: u64| left.checked_sub(more);
        let budget = &self.budget;
        budget.decoded_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).ok()?;
        claim.bytes += more;
        if claim.number.is_none() {
            let next = |number: u32| (number < TABLE_NUMBERS).then_some(number + 1);
            claim.number =
                budget.next_number.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok();
        }
        claim.number
    }

    /// Begins a table. The caller writes its code and contents to the sink.
    pub(crate) fn begin(&mut self, number: u32) -> &mut Sink {
        self.count += 1;
        self.sink.descriptors.extend_from_slice(&number.to_le_bytes());
        &mut self.sink
    }
}
