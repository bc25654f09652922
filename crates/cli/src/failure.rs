//! Failures of commands, and their exit codes.

use std::error::Error;
use std::fmt;
use std::io;
use std::iter::successors;
use std::process::ExitCode;

use dray_client::ErrorKind;

/// The description of exit codes in `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes: 0 success, 1 the query, the sort or the server failed, 2 wrong usage (an option, or a \
file, column or address in it), 3 no connection or access denied, 4 the output can't be written, \
130 interrupted.";

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server, or the connection to it.
    Client(dray_client::Error),
    /// The rows of several statements can't be nested.
    Nest(dray_nest::Error),
    /// The command line, or a file in it.
    Usage(String),
    /// The output can't be written.
    Output(String),
    /// Another local failure: no thread, no signal handler, no server.
    Start(String),
    /// The user interrupted the command.
    Interrupted,
    /// The reader of the output closed it: `dray query … | head`.
    ReaderGone,
}

impl Failure {
    /// The failure to write `target`.
    pub(crate) fn output(target: &str, cause: &(dyn Error + 'static)) -> Self {
        match cause_of::<io::Error>(cause) {
            Some(io) if io.kind() == io::ErrorKind::BrokenPipe => Self::ReaderGone,
            Some(io) => Self::Output(format!("can't write {target}: {io}")),
            None => Self::Output(format!("can't write {target}: {cause}")),
        }
    }

    /// The program's exit code.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Client(error) => client_code(error),
            Self::Nest(dray_nest::Error::Spec(_) | dray_nest::Error::Source(_)) => 2,
            Self::Nest(error) => cause_of(error).map_or(1, client_code),
            Self::Usage(_) => 2,
            Self::Output(_) => 4,
            Self::Start(_) => 1,
            Self::Interrupted => 130,
            Self::ReaderGone => 0,
        })
    }
}

fn client_code(error: &dray_client::Error) -> u8 {
    match error.kind() {
        ErrorKind::Connection | ErrorKind::Authentication | ErrorKind::Protocol => 3,
        ErrorKind::Usage => 2,
        _ => 1,
    }
}

/// The first error of a type among an error and its causes.
fn cause_of<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    successors(Some(error), |&error| error.source()).find_map(|error| error.downcast_ref())
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(error) => error.fmt(f),
            Self::Nest(error) => error.fmt(f),
            Self::Usage(what) | Self::Output(what) | Self::Start(what) => f.write_str(what),
            Self::Interrupted => f.write_str("interrupted"),
            Self::ReaderGone => f.write_str("the output was closed"),
        }
    }
}

impl Error for Failure {}
