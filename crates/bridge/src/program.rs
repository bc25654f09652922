//! The bridge's end, for bridges that are written in Rust.
//!
//! ```text
//!   stdin ─▶ a thread: frames ─▶ statements ─▶ the main thread: Database::run ─▶ Output ─▶ stdout
//!                        └── a cancel: Database::canceller, until the statement has ended
//! ```

mod cut;
mod output;
mod running;

use std::io::{self, BufReader};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use arrow_array::RecordBatch;
use dray_driver::{ServerError, check_reads};

pub use self::cut::cut;
pub use self::output::Output;
use self::running::Running;
use crate::frame::{Kind, malformed, read_frame, write_object};
use crate::message::{Failure, FailureKind, Open, Query, Ready, VERSION};
use crate::stream::{StreamLimits, decode_one};

/// The most bytes of a statement's parameters.
const PARAMETERS_BYTES_MAX: usize = 256 << 20;
/// The time that a database may take to close once the input has ended.
const CLOSE_MAX: Duration = Duration::from_secs(4);

/// Opens databases by some driver.
pub trait Opener {
    /// Opens a database. Unless it is writable, as read-only as the driver can.
    ///
    /// # Errors
    /// If it can't be reached, or refuses. The message must not show a password.
    fn open(&self, open: &Open) -> Result<Box<dyn Database>, Failure>;
}

/// A database that is open. Dropping it closes it.
pub trait Database {
    /// Its name and version.
    fn server(&self) -> String;

    /// Whose SQL it takes (protocol.md section 14), `sql` if that is not known.
    fn dialect(&self) -> &str;

    /// What cancels the statement that runs. It is called by another thread, again and again until
    /// the statement has ended, and never after that.
    fn canceller(&self) -> Arc<dyn Fn() + Send + Sync>;

    /// Runs a statement, and begins `output` before it puts batches into it.
    ///
    /// # Errors
    /// If the statement fails, or is cancelled.
    fn run(&mut self, statement: &Statement, output: &mut Output) -> Result<(), Failure>;
}

/// A statement, with what limits its result.
#[derive(Debug)]
pub struct Statement {
    /// Its text and the limits.
    pub query: Query,
    /// The values of its parameters, a batch of one row.
    pub parameters: Option<RecordBatch>,
}

/// Serves one session: opens the database that the server names, and runs its statements until it
/// ends the input. What drivers print goes to standard error.
///
/// # Errors
/// If the server breaks off, or sends what it must not.
pub fn serve(opener: &dyn Opener) -> io::Result<()> {
    let mut output = io::stdout().as_fd().try_clone_to_owned().map(std::fs::File::from)?;
    redirect_stdout()?;
    let mut input = BufReader::new(io::stdin());
    let Some(frame) = read_frame(&mut input)?.filter(|frame| frame.kind == Kind::Open) else {
        return Err(malformed("the server did not begin with a frame O"));
    };
    let open: Open = frame.object()?;
    let running = Arc::new(Running::default());
    let (sender, statements) = channel();
    let of_input = running.clone();
    std::thread::Builder::new().name("input".to_owned()).spawn(move || {
        if let Err(error) = read_statements(&mut input, &sender, &of_input) {
            eprintln!("{error}");
        }
        drop(sender);
        of_input.cancel();
        std::thread::sleep(CLOSE_MAX);
        std::process::exit(1);
    })?;
    let opened = match open.version {
        VERSION => opener.open(&open),
        version => {
            let what = format!("the server has version {version}, and its bridge {VERSION}");
            Err(Failure::new(FailureKind::Internal, "", what))
        }
    };
    let database = match opened {
        Ok(database) => database,
        Err(failure) => {
            return write_object(&mut output, Kind::Failure, &Failure { usable: false, ..failure });
        }
    };
    running.set_canceller(database.canceller());
    let (server, dialect) = (database.server(), database.dialect().to_owned());
    write_object(&mut output, Kind::Ready, &Ready { version: VERSION, server, dialect })?;
    run_statements(&open, database, &statements, &running, &mut output)
}

fn run_statements(
    open: &Open,
    mut database: Box<dyn Database>,
    statements: &Receiver<Statement>,
    running: &Arc<Running>,
    output: &mut std::fs::File,
) -> io::Result<()> {
    for statement in statements {
        let mut result = Output::new(output, running.clone());
        let allowed = match open.writable {
            true => Ok(()),
            false => check_reads(&open.name, &statement.query.sql).map_err(refusal),
        };
        let ran = allowed
            .and_then(|()| database.run(&statement, &mut result))
            .and_then(|()| result.end());
        let is_cancelled = running.end();
        let Err(mut failure) = ran else {
            result.finish()?;
            continue;
        };
        result.check()?;
        if is_cancelled && failure.kind != FailureKind::Connection {
            failure.kind = FailureKind::Cancelled;
        }
        write_object(output, Kind::Failure, &failure)?;
        if !failure.usable {
            break;
        }
    }
    Ok(())
}

/// The refusal of what may write.
fn refusal(error: ServerError) -> Failure {
    let ServerError { sqlstate, message, hint, .. } = error;
    Failure { hint, ..Failure::new(FailureKind::Query, &sqlstate, message) }
}

/// Reads frames until the input ends.
fn read_statements(
    input: &mut impl io::Read,
    statements: &Sender<Statement>,
    running: &Arc<Running>,
) -> io::Result<()> {
    let mut parameters = Vec::new();
    while let Some(frame) = read_frame(input)? {
        match frame.kind {
            Kind::Data if parameters.len() + frame.payload.len() <= PARAMETERS_BYTES_MAX => {
                parameters.extend_from_slice(&frame.payload);
            }
            Kind::Data => return Err(malformed("the server sent too large parameters")),
            Kind::Query => {
                let query: Query = frame.object()?;
                let bytes = std::mem::take(&mut parameters);
                let limits = StreamLimits { batch_rows: 1, body_bytes: PARAMETERS_BYTES_MAX };
                let parameters = match query.parameters {
                    true => Some(decode_one(&bytes, limits).map_err(io::Error::other)?),
                    false => None,
                };
                running.begin();
                if statements.send(Statement { query, parameters }).is_err() {
                    return Ok(());
                }
            }
            Kind::Cancel => running.cancel(),
            kind => {
                let letter = char::from(kind.letter());
                return Err(malformed(format!("the server sent a frame {letter} out of turn")));
            }
        }
    }
    Ok(())
}

/// What drivers print must not get between the frames.
#[allow(unsafe_code, reason = "the standard library can't replace a standard stream")]
fn redirect_stdout() -> io::Result<()> {
    // SAFETY: dup2 has no conditions on its arguments. Nothing owns the descriptor 1.
    match unsafe { libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
