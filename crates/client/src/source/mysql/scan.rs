//! A statement over one connection, as events.

use std::time::Instant;

use arrow::datatypes::SchemaRef;
use dray_format::Limits;
use dray_format::arrow::Decoder;
use dray_mysql::{CancelCheck as SocketCheck, CopyBytes, Options as RowOptions};
use dray_mysqltypes::{Options as TypeOptions, ZeroDates, not_utf8};
use dray_pgtypes::NonFinite;
use dray_wire::Estimate;

use super::super::frames::DecoderCache;
use super::super::rows::{Cost, received, start_of};
use super::super::{Event, ReceiveContext, Start};
use super::connection::Connection;
use super::parameters::parameters;
use crate::error::Result;
use crate::options::QueryOptions;

/// A running statement.
#[derive(Debug)]
pub(super) struct Scan {
    /// Taken when the result starts.
    start: Option<Box<Start>>,
    decoder: Decoder,
    /// The statement is only planned.
    planned: bool,
}

impl Scan {
    /// Starts a statement, or only plans it if the options say so. `estimate` is what is known of
    /// its result.
    ///
    /// # Errors
    /// When the statement fails or the connection breaks.
    pub(super) fn start(
        connection: &mut Connection,
        sql: &str,
        options: &QueryOptions,
        estimate: Estimate,
        decoders: &mut DecoderCache,
        check: SocketCheck<'_>,
    ) -> Result<Self> {
        let (session, row_options) = (&mut connection.session, row_options(options));
        let parameters = parameters(options.parameters.as_ref())?;
        let schema = match options.plan_only {
            true => session.describe(sql, &row_options, check)?,
            false => session.start(sql, &parameters, &row_options, check)?,
        };
        let decoder = decoders.decoder(schema, options.strings);
        let start = Some(start_of(&decoder, estimate));
        Ok(Self { start, decoder, planned: options.plan_only })
    }

    /// The columns, before the first event.
    pub(super) fn schema(&self) -> Option<SchemaRef> {
        self.start.as_ref().map(|start| start.schema.clone())
    }

    /// The next event.
    ///
    /// # Errors
    /// When the statement fails, the connection breaks, or what arrived is damaged.
    pub(super) fn next(
        &mut self,
        connection: &mut Connection,
        context: &mut ReceiveContext<'_>,
        check: SocketCheck<'_>,
    ) -> Result<Event> {
        if let Some(start) = self.start.take() {
            return Ok(Event::Started(*start));
        }
        if self.planned {
            return Ok(Event::Finished { server: None });
        }
        let session = &mut connection.session;
        let (bytes, waited, began) = (session.bytes(), session.waited(), Instant::now());
        let is_table = context.memory.block_bytes() > 0;
        let mut copy = |bytes: &[u8]| context.memory.copy(bytes).ok();
        let copy: Option<CopyBytes<'_>> = if is_table { Some(&mut copy) } else { None };
        let Some(built) = session.next_batch(copy, check)? else {
            *context.profile = session.take_profile();
            return Ok(Event::Finished { server: None });
        };
        let wire_bytes = session.bytes() - bytes;
        let cost = Cost { began, wire_bytes, receive: session.waited() - waited };
        Ok(Event::Batch(received(built, cost, &self.decoder, not_utf8)?))
    }
}

/// How rows are read.
fn row_options(options: &QueryOptions) -> RowOptions {
    let Limits { decoded_bytes_max, row_bytes_max, .. } = options.limits;
    let bytes = |limit| usize::try_from(limit).unwrap_or(usize::MAX);
    let zero_dates = match options.postgres.nonfinite {
        NonFinite::Error => ZeroDates::Error,
        NonFinite::Null => ZeroDates::Null,
        NonFinite::Text => ZeroDates::Text,
    };
    RowOptions {
        types: TypeOptions { zero_dates },
        batch_rows: options.batch_rows.max(1),
        batch_bytes: bytes(options.batch_bytes.min(decoded_bytes_max)),
        row_bytes_max: bytes(row_bytes_max),
    }
}
