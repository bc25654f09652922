//! A child process whose output is read, and whose input is written, while somebody waits for it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, Signal, kill_process_group};
use tracing::debug;

use super::Command;

/// How often a wait looks whether to go on.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// The time to leave after the end of the input.
const LEAVE_MAX: Duration = Duration::from_secs(5);
/// What a pipe holds, so that a bridge fetches while the server decodes.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 1 << 20;
/// The longest text of an error.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// The longest line of the log.
const LINE_BYTES_MAX: u64 = 4096;

/// A child process. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// None after its end was told to leave.
    input: Option<ChildStdin>,
    output: ChildStdout,
}

impl Process {
    /// Starts a bridge, and passes its standard error on to the log of the source `name`, without
    /// `secret`.
    pub(super) fn start(name: &str, command: &Command, secret: &str) -> io::Result<Self> {
        let mut child = std::process::Command::new(&command.program)
            .args(&command.arguments)
            // Signals of a terminal are for the server, which ends its sessions itself.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err(io::Error::other("it has no pipes"));
        };
        // From here on, dropping ends the child.
        let process = Self { child, input: Some(input), output };
        if let Some(input) = &process.input {
            ioctl_fionbio(input, true)?;
        }
        // A smaller pipe works too.
        #[cfg(target_os = "linux")]
        let _ = rustix::pipe::fcntl_setpipe_size(&process.output, PIPE_BYTES);
        let (name, secret) = (name.to_owned(), secret.to_owned());
        std::thread::Builder::new()
            .name("bridge log".to_owned())
            .spawn(move || log(&name, &secret, errors))?;
        Ok(process)
    }

    /// Reads from its standard output. `tick` runs before each wait, and ends it by an error.
    pub(super) fn reader<'a, T: FnMut(&mut ChildStdin) -> io::Result<()>>(
        &'a mut self,
        tick: T,
    ) -> Reader<'a, T> {
        Reader { process: self, tick }
    }

    /// Writes to its standard input. `tick` runs before each wait, and ends it by an error.
    pub(super) fn writer<T: FnMut() -> io::Result<()>>(&mut self, tick: T) -> Writer<'_, T> {
        Writer { process: self, tick }
    }

    /// What went wrong, in the words of an error of its pipes, or of its end.
    pub(super) fn cause(&mut self, error: &io::Error) -> String {
        match error.kind() {
            io::ErrorKind::InvalidData => format!("its bridge sent {error}"),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => match self.status() {
                Some(status) => format!("its bridge ended ({status})"),
                None => "its bridge ended its output".to_owned(),
            },
            _ => error.to_string(),
        }
    }

    /// How it ended, if it does so about now.
    fn status(&mut self) -> Option<ExitStatus> {
        (0..50).find_map(|_| match self.child.try_wait() {
            Ok(None) => {
                std::thread::sleep(Duration::from_millis(10));
                None
            }
            status => status.ok().flatten(),
        })
    }

    /// Kills it and what it has started.
    pub(super) fn kill(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
            // It may end at this moment.
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The end of its input tells it to close the database.
        self.input = None;
        let end = Instant::now() + LEAVE_MAX;
        let mut pause = Duration::from_millis(1);
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
        self.kill();
    }
}

/// Its standard output.
pub(super) struct Reader<'a, T> {
    process: &'a mut Process,
    tick: T,
}

impl<T: FnMut(&mut ChildStdin) -> io::Result<()>> Read for Reader<'_, T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(input) = &mut self.process.input {
                (self.tick)(input)?;
            }
            if is_ready(&self.process.output, PollFlags::IN)? {
                return self.process.output.read(buffer);
            }
        }
    }
}

/// Its standard input.
pub(super) struct Writer<'a, T> {
    process: &'a mut Process,
    tick: T,
}

impl<T: FnMut() -> io::Result<()>> Write for Writer<'_, T> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        loop {
            (self.tick)()?;
            let Some(input) = &mut self.process.input else {
                return Err(io::ErrorKind::BrokenPipe.into());
            };
            match input.write(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    is_ready(input, PollFlags::OUT)?;
                }
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn is_ready(pipe: &impl AsFd, flags: PollFlags) -> io::Result<bool> {
    match poll(&mut [PollFd::new(pipe, flags)], Some(&TICK)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Passes lines on to the log. A line that is too long comes in parts.
fn log(source: &str, secret: &str, errors: ChildStderr) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    loop {
        line.clear();
        match errors.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(1..) => {
                let text = String::from_utf8_lossy(&line);
                debug!(source, "bridge: {}", without(secret, text.trim_end()));
            }
            _ => return,
        }
    }
}

/// A text without a secret, and cut if it is long.
pub(super) fn without(secret: &str, text: &str) -> String {
    let mut text = match secret {
        "" => text.to_owned(),
        secret => text.replace(secret, "…"),
    };
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push('…');
    }
    text
}
