//! A statement over one connection: chunks of the extension, or rows.

use std::time::Instant;

use dray_format::arrow::Decoder;
use dray_format::{BuiltBatch, Limits};
use dray_pgtypes::{Options as TypeOptions, not_utf8};
use dray_postgres::{CancelCheck as SocketCheck, CopyBytes, CopyStart, Options as RowOptions};
use dray_wire::{Checksums, ClientSession, Estimate, Known, ServerEvent};

use super::super::frames::{DecoderCache, Frame, FrameEvents, read_frame};
use super::super::rows::{Cost, received, start_of};
use super::super::{Event, ReceiveContext, Start};
use super::connection::{Connection, Extension};
use super::parameters::parameters;
use super::reason::{Decision, Format, Reason};
use crate::error::{Error, Result};
use crate::options::{ExtensionChoice, QueryOptions};

/// A statement that runs over one connection.
#[derive(Debug)]
pub(super) struct SerialScan {
    state: State,
    /// Rows of the complete result; None before its end, and for a statement that was only planned.
    rows: Option<u64>,
}

#[derive(Debug)]
enum State {
    Rows {
        /// Taken when the result starts.
        start: Option<Box<Start>>,
        decoder: Decoder,
        /// What was read when the statement started.
        first: Option<Box<BuiltBatch>>,
        rows: u64,
    },
    Chunks {
        frames: Box<ClientSession>,
        events: FrameEvents,
    },
    /// A statement that is only planned.
    Planned(Option<Box<Start>>),
    Ended,
}

impl SerialScan {
    /// Starts a statement through the extension if `extension` says so and the server agrees, else
    /// as rows.
    ///
    /// # Errors
    /// When the statement fails, and Usage if the options demand an extension that can't be used.
    pub(super) fn start(
        connection: &mut Connection,
        extension: Decision<()>,
        sql: &str,
        options: &QueryOptions,
        decoders: &mut DecoderCache,
        check: SocketCheck<'_>,
    ) -> Result<(Self, Format)> {
        let chunks = match extension {
            Decision::Run(()) => Self::start_chunks(connection, sql, options, check)?,
            Decision::Refused(reason) => Decision::Refused(reason),
        };
        let reason = match chunks {
            Decision::Run(scan) => return Ok((scan, chunks_of(&connection.extension))),
            Decision::Refused(reason) => reason,
        };
        if options.postgres.extension == ExtensionChoice::Always {
            return Err(Error::usage(format!("the extension can't be used: {reason}")));
        }
        let parameters = parameters(options.parameters.as_ref(), options.parameter_typing)?;
        let session = &mut connection.session;
        let schema = session.start(sql, &parameters, &row_options(options), check)?;
        // A change has run when it has started. Whoever does not read the result, which has no
        // columns, would otherwise cancel it.
        let first = match schema.fields.is_empty() {
            true => session.next_batch(None, check)?.map(Box::new),
            false => None,
        };
        let decoder = decoders.decoder(schema, options.strings);
        let start = Some(start_of(&decoder, Estimate::default()));
        Ok((Self::new(State::Rows { start, decoder, first, rows: 0 }), Format::Rows(reason)))
    }

    /// Starts a statement as a COPY of the extension.
    fn start_chunks(
        connection: &mut Connection,
        sql: &str,
        options: &QueryOptions,
        check: SocketCheck<'_>,
    ) -> Result<Decision<Self>> {
        let parameters = parameters(options.parameters.as_ref(), options.parameter_typing)?;
        let session = &mut connection.session;
        Ok(match session.start_copy(sql, &parameters, &copy_options(options), check)? {
            CopyStart::Started => {
                let frames = Box::new(ClientSession::of_copy(options.limits));
                let events = FrameEvents::new(options.strings);
                Decision::Run(Self::new(State::Chunks { frames, events }))
            }
            CopyStart::NotEnclosable => Decision::Refused(Reason::NotEnclosable),
            CopyStart::Refused(error) => {
                Decision::Refused(Reason::ExtensionRefused(error.to_string()))
            }
            CopyStart::NotLoadable(error) => {
                let error = error.to_string();
                connection.extension = Extension::NotLoadable(error.clone());
                Decision::Refused(Reason::ExtensionNotLoadable(error))
            }
        })
    }

    /// Finds out the columns and the planner's estimate, and runs nothing.
    ///
    /// # Errors
    /// When the statement does not plan, or the connection breaks.
    pub(super) fn plan(
        connection: &mut Connection,
        sql: &str,
        options: &QueryOptions,
        decoders: &mut DecoderCache,
        check: SocketCheck<'_>,
    ) -> Result<Self> {
        let parameters = parameters(options.parameters.as_ref(), options.parameter_typing)?;
        let session = &mut connection.session;
        let schema = session.describe(sql, &parameters, &row_options(options), check)?;
        let estimate = match parameters.is_empty() && dray_postgres::is_query(sql) {
            true => session.estimate(sql, check)?,
            false => None,
        };
        let estimate = estimate.map_or_else(Estimate::default, |(rows, row_bytes)| Estimate {
            rows: Known::Estimate(rows),
            bytes: Known::Estimate(rows.saturating_mul(row_bytes)),
        });
        let decoder = decoders.decoder(schema, options.strings);
        Ok(Self::new(State::Planned(Some(start_of(&decoder, estimate)))))
    }

    fn new(state: State) -> Self {
        Self { state, rows: None }
    }

    /// Rows of the complete result; None before its end, and for a statement that was only planned.
    pub(super) fn rows(&self) -> Option<u64> {
        self.rows
    }

    /// The next event.
    ///
    /// # Errors
    /// When the statement fails, the connection breaks, or what arrived is damaged. The connection
    /// is given up if the server can't be trusted any longer.
    pub(super) fn next(
        &mut self,
        connection: &mut Connection,
        decoders: &mut DecoderCache,
        context: &mut ReceiveContext<'_>,
        check: SocketCheck<'_>,
    ) -> Result<Event> {
        match &mut self.state {
            State::Rows { start, .. } | State::Planned(start) if start.is_some() => Ok(start
                .take()
                .map_or(Event::Finished { server: None }, |start| Event::Started(*start))),
            State::Rows { .. } => self.next_rows(connection, context, check),
            State::Chunks { .. } => self.next_chunk(connection, decoders, context, check),
            State::Planned(_) | State::Ended => Ok(Event::Finished { server: None }),
        }
    }

    fn next_rows(
        &mut self,
        connection: &mut Connection,
        context: &mut ReceiveContext<'_>,
        check: SocketCheck<'_>,
    ) -> Result<Event> {
        let State::Rows { decoder, first, rows, .. } = &mut self.state else {
            return Ok(Event::Finished { server: None });
        };
        let session = &mut connection.session;
        let (bytes, waited, began) = (session.bytes(), session.waited(), Instant::now());
        let is_table = context.memory.block_bytes() > 0;
        let mut copy = |bytes: &[u8]| context.memory.copy(bytes).ok();
        let copy: Option<CopyBytes<'_>> = if is_table { Some(&mut copy) } else { None };
        let built = match first.take() {
            Some(built) => Some(*built),
            None => session.next_batch(copy, check)?,
        };
        let Some(built) = built else {
            self.rows = Some(*rows);
            *context.profile = session.take_profile();
            self.state = State::Ended;
            return Ok(Event::Finished { server: None });
        };
        *rows += built.batch().rows as u64;
        let wire_bytes = session.bytes() - bytes;
        let cost = Cost { began, wire_bytes, receive: session.waited() - waited };
        Ok(Event::Batch(received(built, cost, decoder, not_utf8)?))
    }

    fn next_chunk(
        &mut self,
        connection: &mut Connection,
        decoders: &mut DecoderCache,
        context: &mut ReceiveContext<'_>,
        check: SocketCheck<'_>,
    ) -> Result<Event> {
        let State::Chunks { frames, events } = &mut self.state else {
            return Ok(Event::Finished { server: None });
        };
        let began = Instant::now();
        let session = &mut connection.session;
        let event = loop {
            let mut read = |to: &mut [u8]| Ok(session.read_copy(to, check)?);
            let frame = read_frame(frames, context.memory, &mut read)?;
            // The statement has failed, the connection has not.
            if let Frame::Message(ServerEvent::Error(error)) = frame {
                return Err(error.into());
            }
            let event = events.event(frame, began.elapsed(), decoders, context);
            if let Some(event) = event.inspect_err(|_| session.break_off())? {
                break event;
            }
        };
        if let Event::Finished { server: Some(finished) } = &event {
            session.finish_copy(finished.rows, check)?;
            self.rows = Some(finished.rows);
            self.state = State::Ended;
        }
        Ok(event)
    }
}

/// The format of a result that comes through this extension.
pub(super) fn chunks_of(extension: &Extension) -> Format {
    let version = match extension {
        Extension::Installed(version) => version.clone(),
        Extension::Missing | Extension::NotLoadable(_) => String::new(),
    };
    Format::Chunks { version: Some(version) }
}

fn row_options(options: &QueryOptions) -> RowOptions {
    let Limits { decoded_bytes_max, row_bytes_max, .. } = options.limits;
    let bytes = |limit| usize::try_from(limit).unwrap_or(usize::MAX);
    let postgres = &options.postgres;
    RowOptions {
        types: TypeOptions {
            numeric: postgres.numeric,
            nonfinite: postgres.nonfinite,
            money_scale: None,
        },
        batch_rows: options.batch_rows.max(1),
        batch_bytes: bytes(options.batch_bytes.min(decoded_bytes_max)),
        row_bytes_max: bytes(row_bytes_max),
    }
}

/// The options of the extension's COPY. Defaults (spec/protocol.md section 10) are left out: for a
/// tiny statement the server has little more to do than to parse them.
fn copy_options(options: &QueryOptions) -> String {
    let Limits { chunk_bytes_max, decoded_bytes_max, row_bytes_max } = options.limits;
    let checksums = match options.checksums {
        Checksums::Auto => "auto",
        Checksums::On => "on",
        Checksums::Off => "off",
    };
    let all = [
        ("chunk_bytes_max", chunk_bytes_max.to_string(), "1048576"),
        ("decoded_bytes_max", decoded_bytes_max.to_string(), "67108864"),
        ("row_bytes_max", row_bytes_max.to_string(), "268435456"),
        ("chunk_rows", options.batch_rows.to_string(), "65536"),
        ("compression", format!("'{}'", options.compression), "'auto'"),
        ("checksums", format!("'{checksums}'"), "'auto'"),
        ("numeric", format!("'{}'", options.postgres.numeric), "'text'"),
        ("nonfinite", format!("'{}'", options.postgres.nonfinite), "'error'"),
    ];
    let given = all.iter().filter(|(_, value, default)| value != default);
    given.fold("FORMAT dray".to_owned(), |text, (name, value, _)| {
        text + &format!(", {name} {value}")
    })
}
