//! A slow, lossy line between two network namespaces, for kernels without netem.
//!
//! It reads real IP packets from a TUN device in one namespace and writes them to one in the other,
//! after the time that the line takes, or never. `../line.py` makes the namespaces, starts this
//! program and speaks to it. It prints `ready`, takes commands on standard input, and ends with it,
//! with a last line of counters.
//!
//! | file | |
//! |---|---|
//! | `schedule.rs` | rates, stalls and cuts over time |
//! | `shaper.rs` | the fate of each packet, without I/O or a clock |
//! | `flight.rs` | packets under way |
//! | `chance.rs` | seeded chance |
//! | `settings.rs` | the words of the command line |
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
