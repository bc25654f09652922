//! Cutting the rows that the assembler hands over into the rows of single chunks.

use dray_format::Batch;

use crate::encode_policy::EncodePolicy;

/// Rows on their way from the assembler to an encoder.
#[derive(Default)]
pub(crate) struct Cutter {
    /// Rows that are in no chunk yet.
    uncut: Option<Batch>,
    /// The sums of all rows that were cut.
    rows: u64,
    plain_bytes: u64,
}

/// The rows of the next chunk.
pub(crate) struct Cut {
    pub(crate) batch: Batch,
    pub(crate) plain_bytes: u64,
    /// No rows are left after these.
    pub(crate) is_last: bool,
}

impl Cutter {
    /// Whether all rows have been cut.
    pub(crate) fn is_empty(&self) -> bool {
        self.uncut.is_none()
    }

    /// Whether no chunk has been cut so far.
    pub(crate) fn is_first_chunk(&self) -> bool {
        self.rows == 0
    }

    /// The plain bytes of all rows that were cut.
    pub(crate) fn plain_bytes(&self) -> u64 {
        self.plain_bytes
    }

    /// Adds rows. All rows before them must have been cut.
    pub(crate) fn refill(&mut self, batch: Batch) {
        debug_assert!(self.is_empty());
        self.uncut = Some(batch);
    }

    /// The rows of the next chunk, at most `rows_max`, without cutting them off.
    pub(crate) fn peek(&self, policy: &EncodePolicy, rows_max: usize) -> Option<Cut> {
        let uncut = self.uncut.as_ref()?;
        let rows = policy.rows_that_fit(uncut, rows_max);
        debug_assert!((1..=uncut.rows).contains(&rows), "{rows} of {} rows", uncut.rows);
        let batch = uncut.slice(0, rows);
        let plain_bytes = batch.plain_bytes(0, rows);
        Some(Cut { batch, plain_bytes, is_last: rows == uncut.rows })
    }

    /// Cuts off the rows that [`Self::peek`] returned.
    pub(crate) fn advance(&mut self, cut: &Cut) {
        let Some(uncut) = self.uncut.take() else { return };
        let rows = cut.batch.rows;
        self.uncut = (rows < uncut.rows).then(|| uncut.slice(rows, uncut.rows - rows));
        self.rows += rows as u64;
        self.plain_bytes = self.plain_bytes.saturating_add(cut.plain_bytes);
    }
}
