//! What a server is and what was agreed with it.

use mysql_common::constants::{CapabilityFlags, MariadbCapabilities};

/// What a server said at login, and what was agreed.
#[derive(Debug, Clone)]
pub struct Server {
    /// Its version, as it says it: `8.0.36`, `10.11.6-MariaDB-1`.
    pub version: String,
    /// The number of the connection, for `KILL`.
    pub connection_id: u32,
    pub(crate) capabilities: CapabilityFlags,
    pub(crate) extended: MariadbCapabilities,
}

impl Server {
    /// A server by its version and the capability flags that were agreed: those of MySQL, and those
    /// that only MariaDB has.
    pub fn new(version: &str, connection_id: u32, capabilities: u32, extended: u32) -> Self {
        Self {
            version: version.to_owned(),
            connection_id,
            capabilities: CapabilityFlags::from_bits_truncate(capabilities),
            extended: MariadbCapabilities::from_bits_truncate(extended),
        }
    }

    /// Whether it is a MariaDB server.
    pub fn is_mariadb(&self) -> bool {
        self.version.contains("MariaDB")
    }

    /// The first three numbers of its version; 0 for one that is missing.
    pub fn number(&self) -> (u32, u32, u32) {
        // The first number is for clients that expect MySQL's.
        let version = self.version.strip_prefix("5.5.5-").unwrap_or(&self.version);
        let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().ok());
        let mut next = || numbers.next().flatten().unwrap_or_default();
        (next(), next(), next())
    }

    /// Its name and version, for messages.
    pub fn name(&self) -> String {
        match self.is_mariadb() {
            true => format!("MariaDB {}", self.version.trim_start_matches("5.5.5-")),
            false => format!("MySQL {}", self.version),
        }
    }

    /// Whether rows end with OK, and definitions with nothing.
    #[inline]
    pub(crate) fn deprecates_eof(&self) -> bool {
        self.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF)
    }

    /// Whether OK says which settings have changed.
    pub(crate) fn tracks(&self) -> bool {
        self.capabilities.contains(CapabilityFlags::CLIENT_SESSION_TRACK)
    }

    /// Whether definitions name types that MySQL lacks.
    pub(crate) fn extends_metadata(&self) -> bool {
        self.extended.contains(MariadbCapabilities::MARIADB_CLIENT_EXTENDED_METADATA)
    }
}
