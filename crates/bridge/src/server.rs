//! The server's end: a child process for each session.

mod process;
mod result;
mod session;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use dray_driver::{Driver, ErrorKind, ServerError, cannot_connect, error};

use self::process::Process;
use self::session::Session;
use crate::secrets::Secrets;

/// The program of a bridge.
#[derive(Debug, Clone)]
pub struct Command {
    /// Its path, or its name on PATH.
    pub program: PathBuf,
    /// Its arguments. What a session needs is not among them: it comes in frames.
    pub arguments: Vec<OsString>,
    /// What to do if the program is missing.
    pub install: String,
}

/// A database that a bridge reaches.
pub struct Bridge {
    name: String,
    command: Command,
    uri: String,
    secrets: Secrets,
    writable: bool,
}

impl Bridge {
    /// The database at `uri`, as the source `name`. Unless it is `writable`, the bridge takes only
    /// statements that read.
    pub fn new(name: &str, command: Command, uri: &str, writable: bool) -> Self {
        let secrets = Secrets::of_uri(uri);
        Self { name: name.to_owned(), command, uri: uri.to_owned(), secrets, writable }
    }
}

/// Without the uri, which may have a password.
impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, command, writable, .. } = self;
        f.debug_struct("Bridge")
            .field("name", name)
            .field("command", command)
            .field("writable", writable)
            .finish_non_exhaustive()
    }
}

impl Driver for Bridge {
    fn dialect(&self) -> &'static str {
        "sql"
    }

    fn open(
        &self,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Box<dyn dray_driver::Session>, ServerError> {
        let started = Process::start(&self.name, &self.command, &self.secrets);
        let process = started.map_err(|cause| match cause.kind() {
            std::io::ErrorKind::NotFound => {
                let program = self.command.program.display();
                let what = format!("there is no program {program} on the server");
                let missing = cannot_connect(&self.name, &what);
                ServerError { hint: self.command.install.clone(), ..missing }
            }
            _ => {
                let what = format!("the server can't start the source's bridge: {cause}");
                error(ErrorKind::Resources, "53000", what, "try again later")
            }
        })?;
        Ok(Box::new(Session::open(self, process, keep_waiting)?))
    }
}
