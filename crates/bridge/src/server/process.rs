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
use crate::secrets::Secrets;

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
const LINE_BYTES_MAX: usize = 4096;

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
    /// `secrets`.
    pub(super) fn start(name: &str, command: &Command, secrets: &Secrets) -> io::Result<Self> {
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
        let (name, secrets) = (name.to_owned(), secrets.clone());
        std::thread::Builder::new()
            .name("bridge log".to_owned())
            .spawn(move || log(&name, &secrets, errors))?;
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

/// Passes lines on to the log.
fn log(source: &str, secrets: &Secrets, errors: ChildStderr) {
    let mut errors = BufReader::new(errors);
    while let Some(line) = next_line(&mut errors, secrets) {
        debug!(source, "bridge: {}", line.trim_end());
    }
}

/// The next line without secrets, and nothing but its start if it is too long; None at the end.
fn next_line(errors: &mut impl BufRead, secrets: &Secrets) -> Option<String> {
    let mut line = Vec::new();
    read_some(errors, &mut line)?;
    let text = String::from_utf8_lossy(&line);
    if line.ends_with(b"\n") {
        return Some(secrets.hide(&text));
    }
    let start = secrets.hide_in_start(&text);
    while !line.ends_with(b"\n") {
        line.clear();
        if read_some(errors, &mut line).is_none() {
            break;
        }
    }
    Some(start)
}

/// Reads up to the end of a line, or so much of it as is taken at once; None at the end.
fn read_some(errors: &mut impl BufRead, line: &mut Vec<u8>) -> Option<()> {
    let read = errors.by_ref().take(LINE_BYTES_MAX as u64).read_until(b'\n', line);
    matches!(read, Ok(1..)).then_some(())
}

/// A text without secrets, and cut if it is long.
pub(super) fn without(secrets: &Secrets, text: &str) -> String {
    let mut text = secrets.hide(text);
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of the log, of what a bridge says.
    fn lines(said: &str) -> Vec<String> {
        let secrets = Secrets::of_uri("odbc:Driver=x;UID=me;PWD={s3cret;word}");
        let mut errors = said.as_bytes();
        std::iter::from_fn(|| next_line(&mut errors, &secrets)).collect()
    }

    #[test]
    fn the_log_has_no_secrets() {
        let said = "me with s3cret;word\nand {s3cret;word}\r\nDriver=x;UID=me;PWD={s3cret;word}";
        assert_eq!(lines(said), ["me with …\n", "and …\r\n", "……"]);
        // The end of a bridge, and of a line's start, may cut a secret.
        assert_eq!(lines("a\nme with s3c"), ["a\n", "me with …"]);
        for at in LINE_BYTES_MAX - 20..LINE_BYTES_MAX + 20 {
            let start = "-".repeat(at);
            let found = lines(&format!("{start}s3cret;word {}\nnext\n", "+".repeat(20_000)));
            let [first, next] = &found[..] else { panic!("{at}: {} lines", found.len()) };
            assert!(first.len() <= LINE_BYTES_MAX + 6 && first.ends_with('…'), "{at}: {first}");
            let shown = first.trim_start_matches('-');
            assert!(!shown.contains(['s', '3', ';', 'w']), "{at}: {shown}");
            assert_eq!(next, "next\n");
        }
    }
}
