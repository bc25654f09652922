//! A slow, lossy line between two network namespaces, for kernels without netem.
//!
//! It reads IP packets from a TUN device in one namespace and writes them to a TUN device in the
//! other, after the delay of the line, or drops them. `../line.py` starts this program. It prints
//! `ready`, reads commands from standard input, and prints its counters and ends at end of file.
//!
//! | file | |
//! |---|---|
//! | `schedule.rs` | rates, stalls and cuts over time |
//! | `shaper.rs` | when each packet arrives, if it does, without I/O or a clock |
//! | `flight.rs` | packets in flight |
//! | `chance.rs` | seeded random numbers |
//! | `settings.rs` | settings of the command line |
//! | `tun.rs` | devices and namespaces |
//! | `emulator.rs` | the loop |

mod chance;
mod emulator;
mod error;
mod flight;
mod schedule;
mod settings;
mod shaper;
mod tun;

use std::process::ExitCode;

use emulator::{Emulator, print_line};
use error::Error;
use tun::Tun;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dray-link: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [near, far, device, to_far, to_near] = words.as_slice() else { return Err(Error::Usage) };
    let (to_far, to_near) = (to_far.parse()?, to_near.parse()?);
    let (near, far) = (Tun::open(near, device)?, Tun::open(far, device)?);
    print_line("ready")?;
    Emulator::new(near, far, to_far, to_near).run()
}
