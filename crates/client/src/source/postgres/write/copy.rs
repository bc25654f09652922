//! One COPY: a connection's share of the rows, or all of them.

use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use dray_pgcopy::{Encoder, Format};
use dray_postgres::{CancelCheck as SocketCheck, Session, Socket};

use super::super::super::write::{self, Arrival, Batches, Look, Sent};
use super::table::Table;
use crate::error::{Error, ErrorKind, Result};
use crate::write::WriteStats;

/// A COPY into a table, in a transaction that is open.
pub(super) struct Copy<'a> {
    pub(super) table: &'a Table,
    pub(super) schema: &'a Schema,
    pub(super) batches: &'a Batches,
    pub(super) sent: &'a Sent,
    /// Says whether to go on.
    pub(super) look: Look<'a>,
}

impl Copy<'_> {
    /// Sends batches until there are no more, and returns what this connection has sent.
    ///
    /// # Errors
    /// When a value does not fit, the source or the server fails, or a look cancels.
    pub(super) fn run(
        &self,
        session: &mut Session<Socket>,
        mut encoder: Encoder,
        check: SocketCheck<'_>,
    ) -> Result<WriteStats> {
        session.start_copy_in(&self.table.copy_statement(self.schema, encoder.format()), check)?;
        let mut stats =
            WriteStats { as_text: encoder.format() == Format::Text, ..WriteStats::default() };
        if let Err(error) = self.send_all(session, &mut encoder, &mut stats, check) {
            // An error of the server's has ended the COPY already.
            if session.is_running() {
                session.fail_copy_in("the data's end was not reached", check)?;
            }
            return Err(error);
        }
        let ending = Instant::now();
        stats.rows = session.end_copy_in(check)?;
        stats.send += ending.elapsed();
        if stats.rows > encoder.rows() {
            session.break_off();
            let (rows, sent) = (stats.rows, encoder.rows());
            return Err(Error::new(
                ErrorKind::Protocol,
                format!("the server has counted {rows} rows, and {sent} were sent"),
            ));
        }
        // A type that changed between the look at it and the COPY would change the meaning of
        // bytes.
        self.table.check_unchanged(session, check)?;
        Ok(stats)
    }

    fn send_all(
        &self,
        session: &mut Session<Socket>,
        encoder: &mut Encoder,
        stats: &mut WriteStats,
        check: SocketCheck<'_>,
    ) -> Result<()> {
        self.send(session, encoder.header(), stats, check)?;
        loop {
            let waiting = Instant::now();
            let arrival = self.batches.next();
            stats.read += waiting.elapsed();
            // Before anything is sent: the COPY can be given up without a request to cancel it.
            write::check(self.look)?;
            match arrival? {
                Arrival::Batch(batch, rows_before) => {
                    session.note_copy_rows(encoder.rows(), rows_before);
                    let (began, sending) = (Instant::now(), stats.send);
                    self.send_batch(session, encoder, (&batch, rows_before), stats, check)?;
                    let sending = stats.send - sending;
                    stats.encode += began.elapsed().saturating_sub(sending);
                }
                Arrival::NotYet => {}
                Arrival::End => break,
            }
        }
        self.send(session, encoder.trailer(), stats, check)
    }

    fn send_batch(
        &self,
        session: &mut Session<Socket>,
        encoder: &mut Encoder,
        (batch, rows_before): (&RecordBatch, u64),
        stats: &mut WriteStats,
        check: SocketCheck<'_>,
    ) -> Result<()> {
        let mut block = Vec::new();
        let mut rows = encoder.rows();
        let mut blocks = encoder.batch(batch, rows_before)?;
        while blocks.next_block(&mut block)? {
            self.send(session, &block, stats, check)?;
            self.sent.add_rows(blocks.rows() - rows);
            rows = blocks.rows();
            write::check(self.look)?;
        }
        Ok(())
    }

    fn send(
        &self,
        session: &mut Session<Socket>,
        bytes: &[u8],
        stats: &mut WriteStats,
        check: SocketCheck<'_>,
    ) -> Result<()> {
        let began = Instant::now();
        session.send_copy(bytes, check)?;
        stats.send += began.elapsed();
        stats.bytes += bytes.len() as u64;
        self.sent.add_bytes(bytes.len());
        Ok(())
    }
}
