//! The rows of the data on their way into a table, in a transaction that is open.
//!
//! ```text
//!   batches ──▶ Encoder ─┬─ lines ──▶ LOAD DATA LOCAL INFILE
//!                        └─ values ─▶ INSERT … VALUES (?, …), …    if the server takes no files
//! ```
//!
//! LOAD DATA changes a value that does not fit, with a warning, and leaves out a row whose key is
//! there already. So a warning is an error here, and so is another number of rows than were sent.

use std::time::Instant;

use arrow::array::RecordBatch;
use dray_mysql::{Bound, CancelCheck as SocketCheck, Connection as Socket, Session, Taken};

use super::super::super::write::{self, Arrival, Batches, Look, Sent};
use super::encoder::{Encoder, Rows};
use super::row_numbers::RowNumbers;
use super::settings::Settings;
use super::table::Table;
use crate::error::{Error, ErrorKind, Result};
use crate::write::WriteStats;

/// A block of lines is sent once it has this many bytes.
const BLOCK_BYTES: usize = 64 << 10;
/// The values of an INSERT have about this many bytes at the most.
const INSERT_BYTES: usize = 1 << 20;
/// The parameters of an INSERT. More would be no faster, and its text too long to stay prepared.
const PARAMETERS_MAX: usize = 8 << 10;

/// What is written, and where.
pub(super) struct Writing<'a> {
    pub(super) table: &'a Table,
    pub(super) batches: &'a Batches,
    pub(super) settings: &'a Settings,
    pub(super) sent: &'a Sent,
    /// Says whether to go on.
    pub(super) look: Look<'a>,
}

impl Writing<'_> {
    /// Sends batches until there are no more, and returns what this connection has sent.
    ///
    /// # Errors
    /// When a value does not fit, the source or the server fails, or a look cancels. Rows may be
    /// in the table then.
    pub(super) fn run(
        &self,
        session: &mut Session<Socket>,
        check: SocketCheck<'_>,
    ) -> Result<WriteStats> {
        let encoder = self.table.encoder()?;
        let stats = match session.start_load(&self.table.load_statement(), check)? {
            true => self.load(session, &encoder, check)?,
            false => Insert::new(self).run(session, &encoder, check)?,
        };
        // A type that changed between the look at it and the first row would change the meaning of
        // text.
        self.table.check_unchanged(session, check)?;
        Ok(stats)
    }

    fn load(
        &self,
        session: &mut Session<Socket>,
        encoder: &Encoder<'_>,
        check: SocketCheck<'_>,
    ) -> Result<WriteStats> {
        let mut stats = WriteStats { as_text: true, ..WriteStats::default() };
        let mut numbers = RowNumbers::default();
        let sent = self.each_batch(&mut stats, |batch, before, stats| {
            numbers.note(stats.rows, before);
            let (mut block, mut rows_in_block) = (Vec::new(), 0);
            let arrays = encoder.decode(batch)?;
            let rows = encoder.rows(&arrays, before)?;
            for row in 0..batch.num_rows() {
                rows.append_line(row, &mut block)?;
                rows_in_block += 1;
                if block.len() >= BLOCK_BYTES || row + 1 == batch.num_rows() {
                    self.send(session, &block, stats, check)
                        .map_err(|error| numbers.name(error, 0))?;
                    self.sent.add_rows(rows_in_block);
                    (rows_in_block, block) = (0, Vec::with_capacity(block.len()));
                    write::check(self.look)?;
                }
            }
            Ok(())
        });
        if let Err(error) = sent {
            // What the server has got is taken back with the transaction.
            if session.is_loading() {
                session.end_load(check).map_err(|error| numbers.name(error.into(), 0))?;
            }
            return Err(error);
        }
        let ending = Instant::now();
        let ended = session.end_load(check).map_err(Error::from);
        stats.send += ending.elapsed();
        ended
            .and_then(|taken| check_taken(session, taken, stats.rows, check))
            .map_err(|error| numbers.name(error, 0))?;
        Ok(stats)
    }

    fn send(
        &self,
        session: &mut Session<Socket>,
        block: &[u8],
        stats: &mut WriteStats,
        check: SocketCheck<'_>,
    ) -> Result<()> {
        let began = Instant::now();
        for part in block.chunks(self.settings.packet_bytes_max.clamp(1, 8 << 20)) {
            session.send_load(part, check)?;
        }
        stats.send += began.elapsed();
        self.note_bytes(block.len(), stats);
        Ok(())
    }

    fn note_bytes(&self, bytes: usize, stats: &mut WriteStats) {
        stats.bytes += bytes as u64;
        self.sent.add_bytes(bytes);
    }

    /// Calls `take` with each batch and the rows before it, until there are no more.
    fn each_batch(
        &self,
        stats: &mut WriteStats,
        mut take: impl FnMut(&RecordBatch, u64, &mut WriteStats) -> Result<()>,
    ) -> Result<()> {
        loop {
            let waiting = Instant::now();
            let arrival = self.batches.next();
            stats.read += waiting.elapsed();
            write::check(self.look)?;
            match arrival? {
                Arrival::Batch(batch, before) => {
                    let (began, sending) = (Instant::now(), stats.send);
                    take(&batch, before, stats)?;
                    stats.rows += batch.num_rows() as u64;
                    let sending = stats.send - sending;
                    stats.encode += began.elapsed().saturating_sub(sending);
                }
                Arrival::NotYet => {}
                Arrival::End => return Ok(()),
            }
        }
    }
}

/// Rows that wait for an INSERT.
struct Insert<'a> {
    writing: &'a Writing<'a>,
    types: Vec<dray_mysql::BoundType>,
    /// The most rows of a statement, a power of two.
    rows_max: usize,
    nulls: Vec<bool>,
    values: Vec<u8>,
    /// Where the values of each row end.
    ends: Vec<usize>,
    numbers: RowNumbers,
}

impl<'a> Insert<'a> {
    fn new(writing: &'a Writing<'a>) -> Self {
        let types = writing.table.bound_types();
        let rows_max = (PARAMETERS_MAX / types.len().max(1)).max(1);
        let rows_max = 1 << rows_max.ilog2();
        Self {
            writing,
            types,
            rows_max,
            nulls: Vec::new(),
            values: Vec::new(),
            ends: Vec::new(),
            numbers: RowNumbers::default(),
        }
    }

    fn run(
        mut self,
        session: &mut Session<Socket>,
        encoder: &Encoder<'_>,
        check: SocketCheck<'_>,
    ) -> Result<WriteStats> {
        let mut stats = WriteStats::default();
        let writing = self.writing;
        writing.each_batch(&mut stats, |batch, before, stats| {
            let arrays = encoder.decode(batch)?;
            let rows = encoder.rows(&arrays, before)?;
            for row in 0..batch.num_rows() {
                self.append(session, &rows, (row, before), stats, check)?;
            }
            Ok(())
        })?;
        self.flush(session, &mut stats, check)?;
        Ok(stats)
    }

    fn append(
        &mut self,
        session: &mut Session<Socket>,
        rows: &Rows<'_>,
        (row, before): (usize, u64),
        stats: &mut WriteStats,
        check: SocketCheck<'_>,
    ) -> Result<()> {
        let start = self.values.len();
        rows.append_values(row, &mut self.nulls, &mut self.values)?;
        let bytes = self.values.len() - start;
        let columns = self.types.len();
        let limit = self.writing.settings.packet_bytes_max;
        let alone = Bound::packet_bytes(columns, bytes);
        if alone > limit {
            let what = format!(
                "row {}: it takes {alone} bytes, over the server's max_allowed_packet of {limit}",
                before + row as u64 + 1
            );
            return Err(Error::new(ErrorKind::Limit, what)
                .with_hint("raise max_allowed_packet at the server, or set local_infile there")
                .with_sqlstate("54000"));
        }
        let parameters = (self.ends.len() + 1) * columns;
        let together = Bound::packet_bytes(parameters, self.values.len());
        if !self.ends.is_empty() && together > limit.min(INSERT_BYTES) {
            // This row waits for the next statement.
            let nulls = self.nulls.split_off(self.nulls.len() - columns);
            let values = self.values.split_off(start);
            self.flush(session, stats, check)?;
            (self.nulls, self.values) = (nulls, values);
        }
        self.numbers.note(self.ends.len() as u64, before + row as u64);
        self.ends.push(self.values.len());
        match self.ends.len() >= self.rows_max {
            true => self.flush(session, stats, check),
            false => Ok(()),
        }
    }

    /// Inserts the rows that wait, by statements of powers of two: few are ever prepared.
    fn flush(
        &mut self,
        session: &mut Session<Socket>,
        stats: &mut WriteStats,
        check: SocketCheck<'_>,
    ) -> Result<()> {
        let (columns, mut row) = (self.types.len(), 0);
        while row < self.ends.len() {
            let count = 1 << (self.ends.len() - row).ilog2();
            let start = if row == 0 { 0 } else { self.ends[row - 1] };
            let next = row + count;
            let bound = Bound {
                types: &self.types,
                nulls: &self.nulls[row * columns..next * columns],
                values: &self.values[start..self.ends[next - 1]],
            };
            let began = Instant::now();
            let statement = self.writing.table.insert_statement(count);
            session
                .insert(&statement, bound, check)
                .map_err(Error::from)
                .and_then(|taken| check_taken(session, taken, count as u64, check))
                .map_err(|error| self.numbers.name(error, row as u64))?;
            stats.send += began.elapsed();
            self.writing.note_bytes(bound.values.len(), stats);
            self.writing.sent.add_rows(count as u64);
            write::check(self.writing.look)?;
            row = next;
        }
        self.numbers.clear();
        self.nulls.clear();
        self.values.clear();
        self.ends.clear();
        Ok(())
    }
}

/// Checks that the server has taken every row as it was sent.
fn check_taken(
    session: &mut Session<Socket>,
    taken: Taken,
    sent: u64,
    check: SocketCheck<'_>,
) -> Result<()> {
    if taken.warnings == 0 && taken.rows == sent {
        return Ok(());
    }
    let counts = format!("the server has inserted {} of {sent} rows", taken.rows);
    Err(match session.first_warning(check)? {
        Some(warning) => {
            let first = Error::from(warning);
            let hint = match taken.rows == sent {
                true => {
                    "a warning of the server's is an error here: nothing was written".to_owned()
                }
                false => format!("{counts}: none stays"),
            };
            first.with_hint(hint)
        }
        None if taken.rows == sent => {
            let what = format!("the server keeps none of its warnings ({})", taken.warnings);
            Error::new(ErrorKind::Execution, what)
                .with_hint("SET max_error_count = 64 to know them; nothing was written")
        }
        None => Error::new(ErrorKind::Execution, counts),
    })
}
