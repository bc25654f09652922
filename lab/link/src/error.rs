//! The errors of the emulator.

use std::fmt;
use std::io;

/// Why the emulator could not start or had to stop.
#[derive(Debug)]
pub enum Error {
    /// The command line has the wrong number of arguments.
    Usage,
    /// A setting with an invalid value.
    Setting {
        /// The name of the setting.
        name: String,
        /// The value that was given.
        value: String,
        /// A description of valid values.
        expected: &'static str,
    },
    /// The settings of a direction lack a rate or a queue.
    Missing {
        /// The settings that were given.
        words: String,
    },
    /// A name that is too short or too long for a device.
    DeviceName(String),
    /// A system call failed.
    Io {
        /// What was attempted.
        action: String,
        /// The error of the kernel.
        error: io::Error,
    },
}

impl Error {
    /// An error of a system call for an action, such as "open /dev/net/tun".
    pub fn io(action: impl Into<String>, error: impl Into<io::Error>) -> Self {
        Self::Io { action: action.into(), error: error.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage => write!(
                formatter,
                "usage: dray-link NEAR_NAMESPACE FAR_NAMESPACE DEVICE SETTINGS_TO_FAR \
                 SETTINGS_TO_NEAR"
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
