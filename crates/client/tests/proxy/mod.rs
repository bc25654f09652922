//! A proxy between a client and a server that makes one seeded fault.
//!
//! ```text
//!   client ──▶ listener ──▶ up:   Mangler ──▶ server
//!     ▲                                          │
//!     └──────── down: Mangler ◀──────────────────┘
//! ```
//!
//! A fault changes a run of bytes or of whole frames in one direction of one connection. The proxy
//! records the bytes that came and that left, so that a test can tell whether the fault was visible
//! at all.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test file uses its part, and fails by a panic"
)]

mod run;

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub use run::Run;

/// Random numbers by xorshift64*, the same for the same seed.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Similar seeds give different numbers.
    pub fn new(seed: u64) -> Self {
        let mut mixed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Self((mixed ^ (mixed >> 31)) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    Up,
    Down,
}

/// How frames are delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// A length of four bytes, and four more, before the payload (spec/protocol.md).
    Dray,
    /// A tag, and a length that counts itself; the client's first message has no tag.
    Postgres,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Inverts a bit of the first byte.
    Flip(u8),
    /// Closes the connection before the run.
    Cut,
    /// Closes the connection in the middle of the run.
    CutWithin,
    Drop,
    Double,
    /// Swaps the run with the one of the same length that follows.
    Swap,
    /// Replaces the run by random bytes.
    Replace(u64),
    Delay(Duration),
    /// Sends each byte in its own write.
    Trickle,
    /// Lets nothing through from here on, and closes nothing.
    Stall,
}

/// What goes wrong with a run of bytes or frames.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    pub direction: Direction,
    /// Whether the run is counted in frames instead of bytes.
    pub frames: bool,
    /// The units before the run.
    pub at: u64,
    /// The length of the run.
    pub count: u64,
    pub how: How,
}

/// The bytes of one direction that came and that left.
#[derive(Debug, Default, Clone)]
pub struct Flow {
    pub came: Vec<u8>,
    pub left: Vec<u8>,
}

/// A connection.
#[derive(Debug, Default, Clone)]
pub struct Record {
    pub up: Flow,
    pub down: Flow,
}

/// A listener for one client at a time.
pub struct Proxy {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

struct Shared {
    upstream: SocketAddr,
    framing: Framing,
    /// The fault for a connection, after this many others.
    fault: Mutex<Option<(usize, Fault)>>,
    /// The connections since [`Proxy::set`].
    records: Mutex<Vec<Arc<Mutex<Record>>>>,
    pumps: Mutex<Vec<thread::JoinHandle<()>>>,
    stopped: AtomicBool,
}

impl Proxy {
    pub fn start(upstream: SocketAddr, framing: Framing) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            upstream,
            framing,
            fault: Mutex::default(),
            records: Mutex::default(),
            pumps: Mutex::default(),
            stopped: AtomicBool::new(false),
        });
        let accepting = shared.clone();
        let thread = thread::spawn(move || {
            for client in listener.incoming() {
                if accepting.stopped.load(Ordering::SeqCst) {
                    return;
                }
                accepting.serve(client.unwrap());
            }
        });
        Self { address, shared, thread: Some(thread) }
    }

    /// The next connection has this fault, and those after it none.
    pub fn set(&self, fault: Option<Fault>) {
        self.set_after(0, fault);
    }

    /// After this many connections without a fault, one has this.
    pub fn set_after(&self, connections: usize, fault: Option<Fault>) {
        *self.shared.fault.lock().unwrap() = fault.map(|fault| (connections, fault));
        self.shared.records.lock().unwrap().clear();
    }

    /// The records since [`Self::set`], once all connections have ended. The clients must have
    /// left.
    pub fn records(&self) -> Vec<Record> {
        for pump in std::mem::take(&mut *self.shared.pumps.lock().unwrap()) {
            pump.join().unwrap();
        }
        let records = self.shared.records.lock().unwrap();
        records.iter().map(|record| record.lock().unwrap().clone()).collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn serve(&self, client: TcpStream) {
        // The server may be full or gone. The client then sees a closed connection.
        let Ok(server) = TcpStream::connect(self.upstream) else { return };
        let record = Arc::new(Mutex::new(Record::default()));
        let made = {
            let mut records = self.records.lock().unwrap();
            records.push(record.clone());
            records.len() - 1
        };
        let fault =
            self.fault.lock().unwrap().take_if(|(after, _)| *after == made).map(|(_, fault)| fault);
        for stream in [&client, &server] {
            stream.set_nodelay(true).unwrap();
        }
        let ends = [(&client, &server, Direction::Up), (&server, &client, Direction::Down)];
        let mut pumps = self.pumps.lock().unwrap();
        for (from, to, direction) in ends {
            let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            let fault = fault.filter(|fault| fault.direction == direction);
            let mangler = Mangler::new(self.framing, direction, fault);
            let record = record.clone();
            pumps.push(thread::spawn(move || {
                let ended = pump(&from, &to, mangler, &mut |came, left| {
                    let mut record = record.lock().unwrap();
                    let flow =
                        if direction == Direction::Up { &mut record.up } else { &mut record.down };
                    flow.came.extend_from_slice(came);
                    flow.left.extend_from_slice(left);
                });
                match ended {
                    // The other direction may still have bytes.
                    Ok(End::Closed) => {
                        let _ = to.shutdown(Shutdown::Write);
                    }
                    Ok(End::Cut) | Err(_) => {
                        let _ = from.shutdown(Shutdown::Both);
                        let _ = to.shutdown(Shutdown::Both);
                    }
                }
            }));
        }
    }
}

enum End {
    Closed,
    Cut,
}

/// What to do next with one direction.
#[derive(Debug, PartialEq, Eq)]
enum Act {
    Send(Vec<u8>),
    Pause(Duration),
    Cut,
    Stall,
}

fn pump(
    mut from: &TcpStream,
    mut to: &TcpStream,
    mut mangler: Mangler,
    keep: &mut dyn FnMut(&[u8], &[u8]),
) -> io::Result<End> {
    let mut buffer = vec![0; 64 << 10];
    let mut stalled = false;
    loop {
        let read = from.read(&mut buffer)?;
        let mut acts = Vec::new();
        if read == 0 {
            mangler.finish(&mut acts);
        } else {
            mangler.feed(&buffer[..read], &mut acts);
        }
        keep(&buffer[..read], &[]);
        for act in acts {
            match act {
                _ if stalled => {}
                Act::Send(bytes) => {
                    keep(&[], &bytes);
                    to.write_all(&bytes)?;
                }
                Act::Pause(time) => thread::sleep(time),
                Act::Cut => return Ok(End::Cut),
                Act::Stall => stalled = true,
            }
        }
        if read == 0 {
            return Ok(if stalled { End::Cut } else { End::Closed });
        }
    }
}

/// Finds the run of a fault in a stream, and changes it.
struct Mangler {
    framing: Framing,
    fault: Option<Fault>,
    /// The units that have ended.
    units: u64,
    /// The current frame: its head, and the number of its bytes still to come.
    head: Vec<u8>,
    frame_left: Option<usize>,
    untagged: bool,
    run: Vec<u8>,
    following: Vec<u8>,
}

impl Mangler {
    fn new(framing: Framing, direction: Direction, fault: Option<Fault>) -> Self {
        let untagged = framing == Framing::Postgres && direction == Direction::Up;
        Self {
            framing,
            fault,
            units: 0,
            head: Vec::new(),
            frame_left: None,
            untagged,
            run: Vec::new(),
            following: Vec::new(),
        }
    }

    fn feed(&mut self, mut bytes: &[u8], acts: &mut Vec<Act>) {
        let mut out = Vec::new();
        while let (Some(fault), false) = (self.fault, bytes.is_empty()) {
            let unit = self.units;
            let (count, ended) = self.advance(bytes, fault.frames);
            let (part, rest) = bytes.split_at(count);
            bytes = rest;
            let swaps = fault.how == How::Swap;
            match unit {
                unit if unit < fault.at => out.extend_from_slice(part),
                unit if unit < fault.at + fault.count => self.run.extend_from_slice(part),
                _ => self.following.extend_from_slice(part),
            }
            self.units += u64::from(ended);
            if self.units == fault.at + if swaps { 2 * fault.count } else { fault.count } {
                acts.push(Act::Send(std::mem::take(&mut out)));
                self.finish(acts);
            }
        }
        out.extend_from_slice(bytes);
        acts.push(Act::Send(out));
        acts.retain(|act| !matches!(act, Act::Send(bytes) if bytes.is_empty()));
    }

    /// The number of these bytes that belong to the current unit, and whether they end it.
    fn advance(&mut self, bytes: &[u8], frames: bool) -> (usize, bool) {
        if !frames {
            return (1, true);
        }
        let head_bytes = match self.framing {
            Framing::Dray => 8,
            Framing::Postgres if self.untagged => 4,
            Framing::Postgres => 5,
        };
        let mut count = 0;
        if self.frame_left.is_none() {
            count = bytes.len().min(head_bytes - self.head.len());
            self.head.extend_from_slice(&bytes[..count]);
            if self.head.len() < head_bytes {
                return (count, false);
            }
            let length = |at: usize| self.head[at..at + 4].try_into().unwrap();
            self.frame_left = Some(match self.framing {
                Framing::Dray => u32::from_le_bytes(length(0)) as usize,
                Framing::Postgres => {
                    (u32::from_be_bytes(length(head_bytes - 4)) as usize).saturating_sub(4)
                }
            });
        }
        let left = self.frame_left.unwrap();
        let more = left.min(bytes.len() - count);
        self.frame_left = Some(left - more);
        if left == more {
            self.head.clear();
            self.frame_left = None;
            self.untagged = false;
        }
        (count + more, left == more)
    }

    /// Acts on the run, or on as much of it as has come.
    fn finish(&mut self, acts: &mut Vec<Act>) {
        let Some(fault) = self.fault.take() else { return };
        let (mut run, following) =
            (std::mem::take(&mut self.run), std::mem::take(&mut self.following));
        match fault.how {
            How::Flip(bit) => {
                if let Some(first) = run.first_mut() {
                    *first ^= 1 << bit;
                }
                acts.push(Act::Send(run));
            }
            How::Cut => acts.push(Act::Cut),
            How::CutWithin => {
                run.truncate(run.len() / 2);
                acts.extend([Act::Send(run), Act::Cut]);
            }
            How::Drop => {}
            How::Double => acts.push(Act::Send(run.repeat(2))),
            How::Swap => acts.push(Act::Send([following, run].concat())),
            How::Replace(seed) => {
                let mut random = Random::new(seed);
                run.iter_mut().for_each(|byte| *byte = random.next() as u8);
                acts.push(Act::Send(run));
            }
            How::Delay(time) => acts.extend([Act::Pause(time), Act::Send(run)]),
            How::Trickle => acts.extend(run.iter().map(|byte| Act::Send(vec![*byte]))),
            How::Stall => acts.push(Act::Stall),
        }
    }
}

/// The frames of a direction.
pub fn frames(bytes: &[u8], framing: Framing, direction: Direction) -> Vec<Vec<u8>> {
    let mut mangler = Mangler::new(framing, direction, None);
    let (mut frames, mut rest) = (vec![Vec::new()], bytes);
    while !rest.is_empty() {
        let (count, ended) = mangler.advance(rest, true);
        frames.last_mut().unwrap().extend_from_slice(&rest[..count]);
        rest = &rest[count..];
        if ended && !rest.is_empty() {
            frames.push(Vec::new());
        }
    }
    frames.retain(|frame| !frame.is_empty());
    frames
}

/// A random fault for a connection that has this record without one.
pub fn fault(random: &mut Random, clean: &Record, framing: Framing) -> Fault {
    let direction = random.of(&[Direction::Up, Direction::Down, Direction::Down]);
    let flow = if direction == Direction::Up { &clean.up } else { &clean.down };
    let frames = random.below(3) == 0;
    let length =
        if frames { self::frames(&flow.came, framing, direction).len() } else { flow.came.len() }
            as u64;
    let at = random.below(length.max(1));
    let longest = if frames { 2 } else { random.of(&[1, 4, 16, 200]) };
    let how = match random.below(100) {
        0..40 if !frames => How::Flip(random.below(8) as u8),
        0..50 => random.of(&[How::Drop, How::Double, How::Swap]),
        50..58 => How::Cut,
        58..64 => How::CutWithin,
        64..74 => How::Replace(random.next()),
        74..84 => random.of(&[How::Drop, How::Double, How::Swap]),
        84..90 => How::Delay(Duration::from_millis(random.below(10))),
        90..98 => How::Trickle,
        _ => How::Stall,
    };
    Fault { direction, frames, at, count: 1 + random.below(longest), how }
}
