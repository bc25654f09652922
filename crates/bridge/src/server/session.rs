//! A session: one bridge, which runs one statement after the other.

use std::io;
use std::process::ChildStdin;
use std::time::{Duration, Instant};

use dray_driver::{
    BATCH_BYTES_MAX, BATCH_ROWS_MAX, ErrorKind, ServerError, Sink, Statement, cannot_connect,
    check_reads, error, lost_connection,
};

use super::Bridge;
use super::process::{Process, without};
use super::result::{Incoming, unexpected};
use crate::frame::{BYTES_FRAME_MAX, JSON_FRAME_MAX, Kind, read_frame, write_frame, write_object};
use crate::message::{Failure, FailureKind, Open, Query, Ready, VERSION};
use crate::secrets::Secrets;
use crate::stream::encode_one;

/// The time to open a database, of which loading a driver can take some.
const OPEN_MAX: Duration = Duration::from_secs(60);
/// The time to answer a cancel.
const CANCEL_MAX: Duration = Duration::from_secs(5);
/// `program_limit_exceeded`.
const TOO_LONG: &str = "54000";
/// `query_canceled`.
const CANCELLED: &str = "57014";

/// A session of a database that a bridge reaches.
pub(super) struct Session {
    name: String,
    secrets: Secrets,
    writable: bool,
    server: String,
    process: Process,
    is_usable: bool,
}

/// Why a statement has no result.
pub(super) enum End {
    /// The bridge said so.
    Failed(Failure),
    /// Nobody waits for it, and the bridge has ended it.
    Stopped,
    /// The bridge can't be used any longer.
    Lost(io::Error),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

impl Session {
    /// Opens the database.
    pub(super) fn open(
        bridge: &Bridge,
        process: Process,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Self, ServerError> {
        let mut session = Self {
            name: bridge.name.clone(),
            secrets: bridge.secrets.clone(),
            writable: bridge.writable,
            server: String::new(),
            process,
            is_usable: true,
        };
        match session.shake_hands(&bridge.uri, keep_waiting) {
            Ok(server) => {
                session.server = server;
                Ok(session)
            }
            Err(end) => {
                let opened = match end {
                    End::Failed(failure) => Err(session.connect_error(&failure)),
                    End::Stopped => Err(error(ErrorKind::Cancelled, CANCELLED, "cancelled", "")),
                    End::Lost(cause) => {
                        Err(cannot_connect(&session.name, &session.process.cause(&cause)))
                    }
                };
                session.process.kill();
                opened
            }
        }
    }

    /// Sends the uri, and returns the database's name.
    fn shake_hands(
        &mut self,
        uri: &str,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<String, End> {
        let until = Instant::now() + OPEN_MAX;
        let mut is_given_up = false;
        let mut tick = || {
            is_given_up |= !keep_waiting();
            match is_given_up {
                true => Err(io::Error::other("given up")),
                false if Instant::now() > until => {
                    Err(io::Error::other(format!("no answer from its bridge in {OPEN_MAX:?}")))
                }
                false => Ok(()),
            }
        };
        let open = Open {
            version: VERSION,
            name: self.name.clone(),
            uri: uri.to_owned(),
            writable: self.writable,
        };
        let written = write_object(&mut self.process.writer(&mut tick), Kind::Open, &open);
        let read = written.and_then(|()| read_frame(&mut self.process.reader(|_| tick())));
        if is_given_up {
            return Err(End::Stopped);
        }
        let frame = read?.ok_or(io::ErrorKind::UnexpectedEof).map_err(io::Error::from)?;
        let Ready { version, server, .. } = match frame.kind {
            Kind::Ready => frame.object()?,
            Kind::Failure => return Err(End::Failed(frame.object()?)),
            _ => return Err(unexpected(&frame)),
        };
        match version {
            VERSION => Ok(server),
            _ => {
                let what = format!("its bridge has version {version}, and the server {VERSION}");
                Err(io::Error::other(what).into())
            }
        }
    }

    fn connect_error(&self, failure: &Failure) -> ServerError {
        let general = cannot_connect(&self.name, &without(&self.secrets, &failure.message));
        match failure.sqlstate.as_str() {
            "" => general,
            sqlstate => error(general.kind, sqlstate, general.message, general.hint),
        }
    }

    /// Passes a statement on, and its result back.
    fn pass_on(&mut self, statement: &Statement, sink: &mut dyn Sink) -> Result<(), End> {
        let limits = &statement.limits;
        let query = Query {
            sql: statement.sql.clone(),
            parameters: statement.parameters.is_some(),
            plan_only: statement.plan_only,
            batch_rows: BATCH_ROWS_MAX,
            batch_bytes: limits.decoded_bytes_max.min(BATCH_BYTES_MAX),
            row_bytes: limits.row_bytes_max,
        };
        let payload = serde_json::to_vec(&query).map_err(io::Error::from)?;
        if payload.len() > JSON_FRAME_MAX {
            let what = format!("a statement of {} bytes is too long", query.sql.len());
            return Err(End::Failed(Failure::new(FailureKind::Limit, TOO_LONG, what)));
        }
        let is_stopped = sink.watch();
        let mut patience = Patience::default();
        let mut output = self.process.writer(|| patience.check(is_stopped()));
        if let Some(parameters) = &statement.parameters {
            for bytes in encode_one(parameters)?.chunks(BYTES_FRAME_MAX) {
                write_frame(&mut output, Kind::Data, bytes)?;
            }
        }
        write_frame(&mut output, Kind::Query, &payload)?;
        self.result(&query, sink)
    }

    /// Passes a result on. Once nobody waits for it, cancels the statement, and reads on until the
    /// bridge has ended it.
    fn result(&mut self, query: &Query, sink: &mut dyn Sink) -> Result<(), End> {
        let watch = sink.watch();
        let mut incoming = Incoming::new(query);
        let mut patience = Patience::default();
        let mut is_cancelled = false;
        loop {
            let is_stopped = incoming.is_stopped;
            let tick = |input: &mut ChildStdin| {
                let is_stopped = is_stopped || watch();
                is_cancelled = is_cancelled || (is_stopped && cancel(input)?);
                patience.check(is_stopped)
            };
            let frame = read_frame(&mut self.process.reader(tick))?;
            let frame = frame.ok_or(io::ErrorKind::UnexpectedEof).map_err(io::Error::from)?;
            if frame.kind == Kind::Failure {
                let failure: Failure = frame.object()?;
                self.is_usable = failure.usable;
                return Err(if is_cancelled { End::Stopped } else { End::Failed(failure) });
            }
            if incoming.take(&frame, sink)? {
                return Ok(());
            }
        }
    }
}

/// How long a bridge may go on when nobody waits any longer.
#[derive(Default)]
struct Patience {
    until: Option<Instant>,
}

impl Patience {
    fn check(&mut self, is_stopped: bool) -> io::Result<()> {
        if is_stopped && Instant::now() > *self.until.get_or_insert(Instant::now() + CANCEL_MAX) {
            let what = format!("its bridge did not answer a cancel in {CANCEL_MAX:?}");
            return Err(io::Error::other(what));
        }
        Ok(())
    }
}

/// Whether the bridge was told to cancel. A pipe takes so few bytes at once, or none.
fn cancel(input: &mut ChildStdin) -> io::Result<bool> {
    match write_frame(input, Kind::Cancel, b"{}") {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(true),
        written => written.map(|()| true),
    }
}

impl dray_driver::Session for Session {
    fn server(&self) -> &str {
        &self.server
    }

    fn is_usable(&self) -> bool {
        self.is_usable
    }

    fn run(&mut self, statement: &Statement, sink: &mut dyn Sink) -> Result<(), ServerError> {
        if !self.writable {
            check_reads(&self.name, &statement.sql)?;
        }
        match self.pass_on(statement, sink) {
            Ok(()) | Err(End::Stopped) => Ok(()),
            Err(End::Failed(Failure { kind, sqlstate, message, hint, .. })) => {
                let [message, hint] = [message, hint].map(|text| without(&self.secrets, &text));
                match kind {
                    FailureKind::Connection => {
                        let lost = lost_connection(&self.name, &message);
                        let sqlstate = if sqlstate.is_empty() { &lost.sqlstate } else { &sqlstate };
                        Err(error(lost.kind, sqlstate, lost.message, lost.hint))
                    }
                    kind => Err(error(kind.into(), &sqlstate, message, hint)),
                }
            }
            Err(End::Lost(cause)) => {
                self.is_usable = false;
                let lost = lost_connection(&self.name, &self.process.cause(&cause));
                self.process.kill();
                if sink.is_stopped() { Ok(()) } else { Err(lost) }
            }
        }
    }
}
