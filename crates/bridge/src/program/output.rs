//! Where a statement's result goes.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Schema};

use super::running::Running;
use crate::frame::{BYTES_FRAME_MAX, Kind, write_frame, write_object};
use crate::message::{Begun, Failure, FailureKind, Finished};

/// A statement's result on its way to the server.
pub struct Output<'a> {
    state: State<'a>,
    running: Arc<Running>,
    rows: u64,
    /// Why the server can't be reached any longer.
    broken: Option<io::Error>,
}

enum State<'a> {
    New(Frames<'a>),
    Begun(Box<StreamWriter<Frames<'a>>>),
    /// Between two states, and after a failure.
    Failed,
}

impl std::fmt::Debug for Output<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<'a> Output<'a> {
    pub(super) fn new(file: &'a mut File, running: Arc<Running>) -> Self {
        let frames = Frames { file, bytes: Vec::new() };
        Self { state: State::New(frames), running, rows: 0, broken: None }
    }

    /// Announces the columns, once.
    ///
    /// # Errors
    /// If they can't be sent.
    pub fn begin(&mut self, schema: &Schema, estimated_rows: Option<u64>) -> Result<(), Failure> {
        let State::New(frames) = std::mem::replace(&mut self.state, State::Failed) else {
            return Err(internal("the bridge announced columns twice"));
        };
        let begun = write_object(frames.file, Kind::Begun, &Begun { estimated_rows });
        let writer = begun.map_err(ArrowError::from).and_then(|()| {
            let mut writer = StreamWriter::try_new(frames, schema)?;
            writer.get_mut().send()?;
            Ok(writer)
        });
        self.state = State::Begun(Box::new(writer.map_err(|cause| self.failure(cause))?));
        Ok(())
    }

    /// Sends rows. Blocks while the server is slower than the database.
    ///
    /// # Errors
    /// If the statement is cancelled, or they can't be sent.
    pub fn batch(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        if self.is_cancelled() {
            return Err(Failure::new(
                FailureKind::Cancelled,
                "57014",
                "the statement was cancelled",
            ));
        }
        let State::Begun(writer) = &mut self.state else {
            return Err(internal("the bridge sent rows before their columns"));
        };
        let written = writer.write(batch).and_then(|()| Ok(writer.get_mut().send()?));
        written.map_err(|cause| self.failure(cause))?;
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    /// Whether nobody waits for the result any longer.
    pub fn is_cancelled(&self) -> bool {
        self.running.is_cancelled()
    }

    /// Sends the end's mark.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        let State::Begun(writer) = &mut self.state else {
            return Err(internal("the bridge did not announce columns"));
        };
        let written = writer.finish().and_then(|()| Ok(writer.get_mut().send()?));
        written.map_err(|cause| self.failure(cause))
    }

    /// Sends that the result is whole.
    pub(super) fn finish(self) -> io::Result<()> {
        match self.state {
            State::Begun(mut writer) => {
                let finished = Finished { rows: self.rows };
                write_object(writer.get_mut().file, Kind::Finished, &finished)
            }
            _ => Err(io::Error::other("the result has not ended")),
        }
    }

    /// # Errors
    /// If the server can't be reached any longer.
    pub(super) fn check(self) -> io::Result<()> {
        self.broken.map_or(Ok(()), Err)
    }

    fn failure(&mut self, cause: ArrowError) -> Failure {
        match cause {
            ArrowError::IoError(what, cause) => {
                self.broken = Some(cause);
                Failure::new(FailureKind::Connection, "", what)
            }
            cause => internal(&format!("the bridge can't send rows: {cause}")),
        }
    }
}

fn internal(what: &str) -> Failure {
    Failure::new(FailureKind::Internal, "", what)
}

/// Cuts the bytes of a stream into frames.
#[derive(Debug)]
struct Frames<'a> {
    file: &'a mut File,
    bytes: Vec<u8>,
}

impl Frames<'_> {
    /// Sends what has not been sent.
    fn send(&mut self) -> io::Result<()> {
        for bytes in self.bytes.chunks(BYTES_FRAME_MAX) {
            write_frame(self.file, Kind::Data, bytes)?;
        }
        self.bytes.clear();
        Ok(())
    }
}

impl Write for Frames<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() >= BYTES_FRAME_MAX {
            self.send()?;
            let (bytes, _) = bytes.split_at(BYTES_FRAME_MAX);
            write_frame(self.file, Kind::Data, bytes)?;
            return Ok(bytes.len());
        }
        if self.bytes.len() + bytes.len() > BYTES_FRAME_MAX {
            self.send()?;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    /// Whole messages are sent by [`Frames::send`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
