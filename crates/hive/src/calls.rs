//! The calls of TCLIService, HiveServer2's service: what they send, and what is taken of their
//! answers. The numbers are those of `service-rpc/if/TCLIService.thrift` in Hive.

use std::io::{Read, Write};

use arrow_array::RecordBatch;
use dray_net::CancelCheck;

use crate::answers::{columns, end_struct, handle, nested, operation, read_status, server_error};
use crate::column::Column;
use crate::error::{Error, Result};
use crate::rows::{Types, read_row_set};
use crate::thrift::{Kind, Reader, Writer};
use crate::transport::Transport;

/// The version of the protocol that is asked for: V8, as counted from 0. The server chooses it or
/// one below. From V9 on, a server may send rows in a form of Hive's own.
const PROTOCOL: i32 = 7;
/// The first version whose rows come in columns: V6.
const PROTOCOL_MIN: i32 = 5;

/// What a server is asked about itself.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Info {
    DbmsName = 17,
    DbmsVersion = 18,
}

/// The server's name of a session or an operation: a part that all may know, and a secret one.
#[derive(Clone)]
pub(crate) struct Handle {
    pub(crate) public: Vec<u8>,
    pub(crate) secret: Vec<u8>,
}

/// Without the secret.
impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("public", &self.public).finish_non_exhaustive()
    }
}

/// A statement that the server runs.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) handle: Handle,
    pub(crate) kind: i32,
    pub(crate) has_rows: bool,
}

/// How far an operation is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    Finished,
    Failed(Error),
}

/// Some rows of a result.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) rows: Option<RecordBatch>,
    /// What the server says; many say false although more rows come.
    pub(crate) has_more: bool,
}

/// The client's end of a connection.
#[derive(Debug)]
pub(crate) struct Client<S> {
    transport: Transport<S>,
    /// The number of the last call.
    pub(crate) sequence: i32,
}

impl<S: Read + Write> Client<S> {
    pub(crate) fn new(transport: Transport<S>) -> Self {
        Self { transport, sequence: 0 }
    }

    /// Whether calls can be made.
    pub(crate) fn is_usable(&self) -> bool {
        !self.transport.is_broken()
    }

    /// Opens a session in a database, or the default one.
    pub(crate) fn open_session(
        &mut self,
        user: &str,
        password: &str,
        database: Option<&str>,
        check: CancelCheck<'_, Error>,
    ) -> Result<Handle> {
        let write = |out: &mut Writer| {
            out.i32(1, PROTOCOL);
            out.binary(2, user.as_bytes());
            out.binary(3, password.as_bytes());
            let database = database.map(|database| ("use:database", database));
            out.map(4, database.as_slice());
        };
        let mut protocol = None;
        let handle = self.call("OpenSession", write, check, |reader, kind, field| {
            match (kind, field) {
                (Kind::I32, 2) => protocol = Some(reader.i32()?),
                (Kind::Struct, 3) => return nested(reader, handle).map(Some),
                _ => reader.skip(kind)?,
            }
            Ok(None)
        })?;
        match protocol {
            Some(PROTOCOL_MIN..=PROTOCOL) => {
                handle.ok_or_else(|| Error::protocol("a session has no name"))
            }
            _ => Err(Error::Lost(
                "the server's version of the protocol is below 6: its rows do not come in columns"
                    .to_owned(),
            )),
        }
    }

    /// What the server says of itself.
    pub(crate) fn info(
        &mut self,
        session: &Handle,
        info: Info,
        check: CancelCheck<'_, Error>,
    ) -> Result<String> {
        let write = |out: &mut Writer| {
            session.write(out, 1);
            out.i32(2, info as i32);
        };
        let text = self.call("GetInfo", write, check, |reader, kind, field| {
            match (kind, field) {
                (Kind::Struct, 2) => {
                    while let Some((kind, field)) = reader.field()? {
                        match (kind, field) {
                            (Kind::Binary, 1) => {
                                return reader.text().and_then(|text| {
                                    end_struct(reader)?;
                                    Ok(Some(text))
                                });
                            }
                            _ => reader.skip(kind)?,
                        }
                    }
                }
                _ => reader.skip(kind)?,
            }
            Ok(None)
        })?;
        Ok(text.unwrap_or_default())
    }

    /// Lets the server run a statement, and does not wait for it.
    pub(crate) fn execute(
        &mut self,
        session: &Handle,
        sql: &str,
        check: CancelCheck<'_, Error>,
    ) -> Result<Operation> {
        let write = |out: &mut Writer| {
            session.write(out, 1);
            out.binary(2, sql.as_bytes());
            out.bool(4, true);
        };
        let found = self.call("ExecuteStatement", write, check, |reader, kind, field| {
            match (kind, field) {
                (Kind::Struct, 2) => operation(reader).map(Some),
                _ => reader.skip(kind).map(|()| None),
            }
        })?;
        found.ok_or_else(|| Error::protocol("a statement has no name"))
    }

    /// How far an operation is. Some servers answer only when that has changed.
    pub(crate) fn state(
        &mut self,
        operation: &Operation,
        check: CancelCheck<'_, Error>,
    ) -> Result<State> {
        let (mut sqlstate, mut message) = (String::new(), String::new());
        let write = |out: &mut Writer| operation.write(out, 1);
        let state = self.call("GetOperationStatus", write, check, |reader, kind, field| {
            match (kind, field) {
                (Kind::I32, 2) => return reader.i32().map(Some),
                (Kind::Binary, 3) => sqlstate = reader.text()?,
                (Kind::Binary, 5) => message = reader.text()?,
                _ => reader.skip(kind)?,
            }
            Ok(None)
        })?;
        let failed = |sqlstate, message| Ok(State::Failed(server_error(sqlstate, message)));
        match state {
            Some(0 | 1 | 7) => Ok(State::Running),
            Some(2) => Ok(State::Finished),
            Some(3) => failed("57014".to_owned(), "the statement was cancelled".to_owned()),
            Some(4) => failed("57014".to_owned(), "the statement was closed".to_owned()),
            Some(5) => failed(sqlstate, message),
            Some(8) => failed("57014".to_owned(), "the statement has run too long".to_owned()),
            other => Err(Error::protocol(format!("a statement in the state {other:?}"))),
        }
    }

    /// The columns of a result.
    pub(crate) fn columns(
        &mut self,
        operation: &Operation,
        check: CancelCheck<'_, Error>,
    ) -> Result<Vec<Column>> {
        let write = |out: &mut Writer| operation.write(out, 1);
        let found =
            self.call("GetResultSetMetadata", write, check, |reader, kind, field| {
                match (kind, field) {
                    (Kind::Struct, 2) => columns(reader).map(Some),
                    _ => reader.skip(kind).map(|()| None),
                }
            })?;
        let found = found.ok_or_else(|| Error::protocol("a result has no columns"))?;
        found.into_iter().map(|(name, declared)| Column::new(name, declared)).collect()
    }

    /// The next rows of a result, about `rows_max`.
    pub(crate) fn fetch(
        &mut self,
        operation: &Operation,
        rows_max: i64,
        types: &Types<'_>,
        check: CancelCheck<'_, Error>,
    ) -> Result<Fetched> {
        let write = |out: &mut Writer| {
            operation.write(out, 1);
            // FETCH_NEXT.
            out.i32(2, 0);
            out.i64(3, rows_max);
            out.i16(4, 0);
        };
        let mut has_more = false;
        let rows = self.call("FetchResults", write, check, |reader, kind, field| {
            match (kind, field) {
                (Kind::Bool, 2) => has_more = reader.bool()?,
                (Kind::Struct, 3) => return read_row_set(reader, types).map(Some),
                _ => reader.skip(kind)?,
            }
            Ok(None)
        })?;
        // An answer is read to its end, so that a value which does not fit costs no connection.
        let rows = rows.transpose()?.flatten();
        Ok(Fetched { rows, has_more })
    }

    /// Stops an operation, of whichever session.
    pub(crate) fn cancel(
        &mut self,
        operation: &Operation,
        check: CancelCheck<'_, Error>,
    ) -> Result<()> {
        self.order("CancelOperation", |out| operation.write(out, 1), check)
    }

    /// Lets the server forget an operation.
    pub(crate) fn close(
        &mut self,
        operation: &Operation,
        check: CancelCheck<'_, Error>,
    ) -> Result<()> {
        self.order("CloseOperation", |out| operation.write(out, 1), check)
    }

    /// Ends a session.
    pub(crate) fn close_session(
        &mut self,
        session: &Handle,
        check: CancelCheck<'_, Error>,
    ) -> Result<()> {
        self.order("CloseSession", |out| session.write(out, 1), check)
    }

    /// A call whose answer is a status alone.
    fn order(
        &mut self,
        method: &str,
        write: impl FnOnce(&mut Writer),
        check: CancelCheck<'_, Error>,
    ) -> Result<()> {
        self.call(method, write, check, |reader, kind, _| reader.skip(kind).map(|()| None::<()>))?;
        Ok(())
    }

    /// Calls a method. The status is read here, other fields by `read`; the last value that it
    /// returns is the call's.
    fn call<T>(
        &mut self,
        method: &str,
        write: impl FnOnce(&mut Writer),
        check: CancelCheck<'_, Error>,
        mut read: impl FnMut(&mut Reader<'_, S>, Kind, i16) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut out = Writer::call(method, self.sequence);
        write(&mut out);
        self.transport.send(&out.finish(), check)?;
        let reader = Reader::new(&mut self.transport, check);
        // A failure that the server tells leaves the connection as it was.
        let (status, value) = reader.answer(method, self.sequence, |reader| {
            let (mut status, mut value) = (None, None);
            while let Some((kind, field)) = reader.field()? {
                match (kind, field) {
                    (Kind::Struct, 1) => status = Some(read_status(reader)?),
                    _ => value = read(reader, kind, field)?.or(value),
                }
            }
            Ok((status, value))
        })?;
        match status {
            Some(Ok(())) => Ok(value),
            Some(Err(error)) => Err(error),
            None => Err(Error::protocol(format!("{method} has no status"))),
        }
    }
}

impl Handle {
    /// The field of a session.
    fn write(&self, out: &mut Writer, field: i16) {
        out.open(field);
        self.write_parts(out);
        out.close();
    }

    fn write_parts(&self, out: &mut Writer) {
        out.open(1);
        out.binary(1, &self.public);
        out.binary(2, &self.secret);
        out.close();
    }
}

impl Operation {
    fn write(&self, out: &mut Writer, field: i16) {
        out.open(field);
        self.handle.write_parts(out);
        out.i32(2, self.kind);
        out.bool(3, self.has_rows);
        out.close();
    }
}
