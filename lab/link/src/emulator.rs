//! The loop between the two devices. Its one thread sleeps until a packet arrives at a device, a
//! packet is due, or a command is given.
//!
//! ```text
//!             ┌──────────────────────────────────────────────┐
//!  near TUN ──► shaper ──► flight ───────────────────────────► far TUN
//!           ◄─────────────────────────── flight ◄── shaper ◄──
//!             └──────────────────────────────────────────────┘
//! ```

use std::io::{self, Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::Error;
use crate::flight::Flight;
use crate::schedule::Nanoseconds;
use crate::shaper::{Counters, Settings, Shaper};
use crate::tun::Tun;

/// The largest IP packet.
const PACKET_BYTES_MAX: usize = 65_535;
/// Packets read from one device before the other is polled.
const READ_BURST: usize = 64;
/// Pause between two polls, so that a fast line handles packets in batches. At 200 Mbit/s this
/// halves the CPU time.
const PAUSE: Duration = Duration::from_micros(100);
/// How early a packet may be delivered: the average delay that the pause causes.
const EARLY: Nanoseconds = 50_000;

/// One direction of the link.
struct Direction {
    shaper: Shaper,
    flight: Flight,
    /// Packets that the receiving namespace did not accept.
    refused: u64,
}

impl Direction {
    fn new(settings: Settings) -> Self {
        Self { shaper: Shaper::new(settings), flight: Flight::default(), refused: 0 }
    }

    fn take_in(
        &mut self,
        now: Nanoseconds,
        source: &mut Tun,
        buffer: &mut [u8],
    ) -> Result<(), Error> {
        for _ in 0..READ_BURST {
            let read = source
                .receive(buffer)
                .map_err(|error| Error::io("read from a TUN device", error))?;
            let Some(packet) = read.and_then(|bytes| buffer.get(..bytes)) else { break };
            if let Some(arrives) = self.shaper.offer(now, packet.len()) {
                self.flight.push(arrives, packet.to_vec());
            }
        }
        Ok(())
    }

    fn deliver(&mut self, now: Nanoseconds, target: &mut Tun) {
        while let Some(packet) = self.flight.pop(now.saturating_add(EARLY)) {
            // If the namespace's device is down, packets are lost, as on a real line.
            self.refused += u64::from(target.send(&packet).is_err());
        }
    }
}

/// The link between two TUN devices.
pub struct Emulator {
    near: Tun,
    far: Tun,
    to_far: Direction,
    to_near: Direction,
    origin: Instant,
}

impl Emulator {
    /// A link whose schedule has not started.
    pub fn new(near: Tun, far: Tun, to_far: Settings, to_near: Settings) -> Self {
        let (to_far, to_near) = (Direction::new(to_far), Direction::new(to_near));
        Self { near, far, to_far, to_near, origin: Instant::now() }
    }

    /// Moves packets until standard input ends. Its lines are commands: `start` starts the
    /// schedules, and `counters` prints the counters.
    ///
    /// # Errors
    /// If polling, reading or printing fails.
    pub fn run(&mut self) -> Result<(), Error> {
        let mut buffer = vec![0; PACKET_BYTES_MAX];
        let stdin = io::stdin();
        loop {
            let timeout = self.timeout();
            let mut ready = [
                PollFd::new(&self.near, PollFlags::IN),
                PollFd::new(&self.far, PollFlags::IN),
                PollFd::new(&stdin, PollFlags::IN),
            ];
            match poll(&mut ready, timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Error::io("wait for packets", error)),
            }
            let [near_is_ready, far_is_ready, stdin_is_ready] =
                ready.map(|end| !end.revents().is_empty());

            let now = self.now();
            if near_is_ready {
                self.to_far.take_in(now, &mut self.near, &mut buffer)?;
            }
            if far_is_ready {
                self.to_near.take_in(now, &mut self.far, &mut buffer)?;
            }
            if stdin_is_ready && !self.obey(&mut buffer)? {
                return self.print_counters();
            }
            thread::sleep(PAUSE);
            let now = self.now();
            self.to_far.deliver(now, &mut self.far);
            self.to_near.deliver(now, &mut self.near);
        }
    }

    fn now(&self) -> Nanoseconds {
        Nanoseconds::try_from(self.origin.elapsed().as_nanos()).unwrap_or(Nanoseconds::MAX)
    }

    /// The time until the next packet is due; `None` if no packet is in flight.
    fn timeout(&self) -> Option<Timespec> {
        let arrivals = [self.to_far.flight.next_arrival(), self.to_near.flight.next_arrival()];
        let next = arrivals.into_iter().flatten().min()?;
        Timespec::try_from(Duration::from_nanos(next.saturating_sub(self.now()))).ok()
    }

    /// Executes commands from standard input; false at its end. The parent waits for each answer,
    /// so a read returns whole lines.
    fn obey(&mut self, buffer: &mut [u8]) -> Result<bool, Error> {
        let bytes =
            io::stdin().lock().read(buffer).map_err(|error| Error::io("read a command", error))?;
        for command in buffer.get(..bytes).unwrap_or_default().split(|byte| *byte == b'\n') {
            match command {
                b"" => {}
                b"start" => {
                    let now = self.now();
                    self.to_far.shaper.start(now);
                    self.to_near.shaper.start(now);
                    print_line("started")?;
                }
                b"counters" => self.print_counters()?,
                _ => print_line("unknown command")?,
            }
        }
        Ok(bytes > 0)
    }

    fn print_counters(&self) -> Result<(), Error> {
        print_line(&format!(
            "{{\"to_far\": {}, \"to_near\": {}}}",
            json(&self.to_far),
            json(&self.to_near)
        ))
    }
}

/// Prints a line and flushes it, because the parent process waits for it.
///
/// # Errors
/// If standard output is closed.
pub fn print_line(line: &str) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")
        .and_then(|()| stdout.flush())
        .map_err(|error| Error::io("print a line", error))
}

fn json(direction: &Direction) -> String {
    let Counters { offered, offered_bytes, passed, passed_bytes, .. } = direction.shaper.counters();
    let Counters { overflowed, lost, cut, reordered, .. } = direction.shaper.counters();
    let refused = direction.refused;
    format!(
        "{{\"offered\": {offered}, \"offered_bytes\": {offered_bytes}, \"passed\": {passed}, \
         \"passed_bytes\": {passed_bytes}, \"overflowed\": {overflowed}, \"lost\": {lost}, \
         \"cut\": {cut}, \"reordered\": {reordered}, \"refused\": {refused}}}"
    )
}
