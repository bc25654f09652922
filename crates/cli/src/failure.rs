//! Failures of commands, and their exit codes.

use std::error::Error;
use std::fmt;
use std::io;
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
        let mut next = Some(cause);
        while let Some(error) = next {
            if let Some(io) = error.downcast_ref::<io::Error>() {
                return match io.kind() {
                    io::ErrorKind::BrokenPipe => Self::ReaderGone,
                    _ => Self::Output(format!("can't write {target}: {io}")),
                };
            }
            next = error.source();
        }
        Self::Output(format!("can't write {target}: {cause}"))
    }

    /// The program's exit code.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Client(error) => match error.kind() {
                ErrorKind::Connection | ErrorKind::Authentication | ErrorKind::Protocol => 3,
                ErrorKind::Usage => 2,
                _ => 1,
            },
            Self::Usage(_) => 2,
            Self::Output(_) => 4,
            Self::Start(_) => 1,
            Self::Interrupted => 130,
            Self::ReaderGone => 0,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(error) => error.fmt(f),
            Self::Usage(what) | Self::Output(what) | Self::Start(what) => f.write_str(what),
            Self::Interrupted => f.write_str("interrupted"),
            Self::ReaderGone => f.write_str("the output was closed"),
        }
    }
}

impl Error for Failure {}
