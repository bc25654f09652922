//! One result: rows in, frames out.
//!
//! ```text
//!   RowAssembler ──▶ Cutter ──▶ Scheduler: ChunkEncoder, here or in Workers ──▶ frames
//!    rows, as columns  chunks                │ times, bytes
//!                                            ▼
//!                                        Accounting
//! ```

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dray_format::Schema;
use dray_pgtypes::Format;
use dray_wire::{CompressionChoice, Estimate, Known, ServerSession, Started};

use crate::accounting::{Accounting, SocketMeter};
use crate::datum::Row;
use crate::encode_policy::EncodePolicy;
use crate::failure::Failure;
use crate::row_assembler::{ColumnDescription, ResultColumns, RowAssembler, Step};
use crate::scheduler::Scheduler;
use crate::settings::Settings;

/// The number of the statement in frames. A COPY has only one.
const STATEMENT: u32 = 1;

/// The first bytes of a frame, and the parts that follow them. A chunk that needs a state frame
/// comes after it, in the same `Frame`.
pub(crate) type Frame<'a> = (&'a [u8], &'a [Bytes]);

/// A result under way.
pub(crate) struct Stream {
    settings: Settings,
    schema: Arc<Schema>,
    policy: Arc<EncodePolicy>,
    rows: RowAssembler,
    scheduler: Scheduler,
    accounting: Accounting,
    session: ServerSession,
    /// The frame that was returned last.
    head: Vec<u8>,
    parts: Vec<Bytes>,
}

impl Stream {
    /// A stream of these columns. `reserve_bytes` have been put aside for it.
    pub(crate) fn open(
        settings: Settings,
        described: &[ColumnDescription],
        reserve_bytes: usize,
    ) -> Result<Self, Failure> {
        let columns = ResultColumns::new(described, &settings);
        let schema = columns.schema.clone();
        // Without workers, the only measure of the network is how long this thread waits for it.
        let adapts = settings.compression == CompressionChoice::Auto && settings.threads > 0;
        let socket = settings.socket.filter(|_| adapts).and_then(SocketMeter::new);
        let round_trip = socket.as_ref().and_then(SocketMeter::round_trip);
        let round_trip = round_trip.unwrap_or(Duration::ZERO);
        let policy = Arc::new(EncodePolicy::new(&settings, &schema, round_trip));
        Ok(Self {
            rows: RowAssembler::new(columns, &settings, &policy)?,
            scheduler: Scheduler::new(policy.clone(), &schema, &settings, reserve_bytes),
            accounting: Accounting::new(policy.clone(), socket),
            settings,
            schema,
            policy,
            session: ServerSession::running(STATEMENT),
            head: Vec::new(),
            parts: Vec::new(),
        })
    }

    /// Which function makes the values of a column that must be serialized.
    pub(crate) fn format(&self, column: usize) -> Format {
        self.rows.format(column)
    }

    /// The frame that opens the stream.
    pub(crate) fn start(&mut self) -> Result<Frame<'_>, Failure> {
        let started = Started {
            statement: STATEMENT,
            // The query came through PostgreSQL's own protocol.
            query: 0,
            schema: self.schema.clone(),
            estimate: Estimate {
                rows: Known::Estimate(self.settings.rows_estimate),
                bytes: Known::default(),
            },
            compression: self.settings.compression,
            checksums: self.settings.checksums,
            plan_ns: self.settings.plan_ns,
        };
        self.head.clear();
        self.parts.clear();
        self.session.started(&started, &mut self.head)?;
        Ok((&self.head, &self.parts))
    }

    /// Appends a row, or goes on with the row under construction after the value that it needed.
    /// [`Step::Full`] also says that a worker has encoded a chunk.
    ///
    /// # Safety
    /// As for [`RowAssembler::push_row`]:
    /// - `row` has a value or NULL for each column of the result, in order. A value has the type
    ///   that was described for its column.
    /// - The memory that the values point to is valid, and does not change, until this returns.
    /// - After [`Step::NeedsDetoasting`], `row` is the same row with that value detoasted. After
    ///   [`Step::NeedsSerialized`], it is the same row, and [`Self::push_serialized`] has appended
    ///   that value.
    #[inline]
    pub(crate) unsafe fn push_row(&mut self, row: impl Row) -> Result<Step, Failure> {
        // SAFETY: the caller promises the same.
        let step = unsafe { self.rows.push_row(row) }?;
        Ok(if step == Step::Done && self.scheduler.is_ready() { Step::Full } else { step })
    }

    /// Appends the value of the column at which the row has stopped, as its type's function made
    /// it.
    pub(crate) fn push_serialized(&mut self, value: &[u8]) -> Result<(), Failure> {
        self.rows.push_serialized(value)
    }

    /// The frame of the next chunk to send, after its state frame; `None` if more rows must come
    /// first. After the last row, chunks need not be full.
    pub(crate) fn next_chunk(&mut self, is_last: bool) -> Result<Option<Frame<'_>>, Failure> {
        self.accounting.sent(self.scheduler.encoded_by());
        self.head.clear();
        self.parts.clear();
        let chunk = self.scheduler.next_chunk(&mut self.rows, &mut self.accounting, is_last)?;
        let Some(chunk) = chunk else { return Ok(None) };
        if let Some(chooser) = &self.policy.chooser {
            self.rows.set_chunk_rows(self.settings.chunk_rows.min(chooser.chunk_rows()));
        }
        let bytes = chunk.state_bytes() + chunk.chunk_bytes();
        self.parts = self.session.chunk(chunk, &mut self.head)?;
        self.accounting.sending(bytes);
        Ok(Some((&self.head, &self.parts)))
    }

    /// Ends the workers. Nothing but dropping may follow.
    pub(crate) fn stop(&mut self) {
        self.scheduler.stop();
    }

    /// The frame that ends the stream, after the last chunk.
    pub(crate) fn finish(&mut self, socket_ns: u64, total_ns: u64) -> Result<Frame<'_>, Failure> {
        let times = self.accounting.finished(self.settings.plan_ns, socket_ns, total_ns);
        self.head.clear();
        self.parts.clear();
        self.session.finished(times, &mut self.head)?;
        Ok((&self.head, &self.parts))
    }
}
