//! What can go wrong.

use std::fmt;
use std::io;

/// Why the emulator cannot begin, or cannot go on.
#[derive(Debug)]
pub enum Error {
    /// The command line has another number of words than it should.
    Usage,
    /// A setting that cannot be.
    Setting {
        /// Its name.
        name: String,
        /// What was given.
        value: String,
        /// What could have been given.
        expected: &'static str,
    },
    /// A direction without a rate or a queue.
    Missing {
        /// What was given.
        words: String,
    },
    /// The name of a device that the kernel would not take.
    DeviceName(String),
    /// Something that the kernel refused.
    Io {
        /// What was tried.
        action: String,
        /// What the kernel said.
        error: io::Error,
    },
}

impl Error {
    /// The error of an action, such as "open /dev/net/tun".
    pub fn io(action: impl Into<String>, error: impl Into<io::Error>) -> Self {
        Self::Io { action: action.into(), error: error.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage => write!(
                formatter,
                "usage: dray-link NEAR_NAMESPACE FAR_NAMESPACE DEVICE SETTINGS_TO_FAR SETTINGS_TO_NEAR"
            ),
            Self::Setting { name, value, expected } => {
                write!(formatter, "expected {expected} for {name}, found {value:?}")
            }
            Self::Missing { words } => {
                write!(
                    formatter,
                    "expected at least rate= and queue= for a direction, found {words:?}"
                )
            }
            Self::DeviceName(name) => {
                write!(formatter, "expected a device name of 1 to 15 bytes, found {name:?}")
            }
            Self::Io { action, error } => write!(formatter, "cannot {action}: {error}"),
        }
    }
}

impl std::error::Error for Error {}
