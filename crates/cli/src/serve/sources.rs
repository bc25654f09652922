//! The options of `dray serve` for sources and for who may use them.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use dray_client::Secret;
use dray_relay::JdbcOptions;
use dray_server::{Grant, SourceOptions};
use dray_sort::ByteSize;

use super::read_token;

/// How many connections may read a table, if the user says so.
const PARTITIONS: RangeInclusive<u8> = 2..=64;

/// What a source may be.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Pass statements for dray://HOST/NAME on to this database: postgresql://…, mysql://…,
    /// mariadb://…, mongodb://…, hive://…, sqlite:PATH, odbc:…, jdbc:… or adbc:DRIVER?uri=…
    #[arg(long, value_name = "NAME=URI")]
    source: Vec<Secret>,
    /// The same with the uri in a file, so that a password in it is not among the processes
    #[arg(long, value_name = "NAME=FILE")]
    source_file: Vec<Named<PathBuf>>,
    /// Maximum open connections to a source; further clients wait [default: 16]
    #[arg(long, value_name = "NAME=N")]
    source_connections: Vec<Named<u16>>,
    /// Maximum connections that read a large table of a source, 2 to 64; of MySQL, too, where they
    /// begin under FLUSH TABLES WITH READ LOCK [default: one for MySQL, as many as this machine has
    /// processors for PostgreSQL and MariaDB]
    #[arg(long, value_name = "NAME=N")]
    source_partitions: Vec<Named<u8>>,
    /// Take all statements for this source, not only those that read
    #[arg(long, value_name = "NAME")]
    source_writable: Vec<String>,
    /// The jars of JDBC drivers, and folders of jars, with a colon between them
    #[arg(long, value_name = "PATHS", env = "DRAY_JDBC_CLASSPATH", default_value = "")]
    jdbc_classpath: OsString,
    /// The heap of the Java process that each session of a JDBC source has
    #[arg(long, value_name = "SIZE", default_value = "512MiB")]
    jdbc_memory: ByteSize,
    /// File with a token that opens these sources and no others; files stands for the server's
    /// own tables
    #[arg(long, value_name = "TOKENFILE=NAME,NAME")]
    grant: Vec<GrantArgument>,
}

/// Something for a source.
#[derive(Debug, Clone)]
struct Named<T> {
    name: String,
    value: T,
}

impl<T: FromStr<Err: std::fmt::Display>> FromStr for Named<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) =
            text.split_once('=').ok_or("expected a source's name, = and a value")?;
        let value = value.parse().map_err(|cause| format!("{cause}"))?;
        Ok(Self { name: name.to_owned(), value })
    }
}

#[derive(Debug, Clone)]
struct GrantArgument {
    token_file: PathBuf,
    sources: Vec<String>,
}

impl FromStr for GrantArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (file, names) = text.rsplit_once('=').ok_or("expected a file, = and names")?;
        let sources = names.split(',').map(str::to_owned).collect();
        Ok(Self { token_file: file.into(), sources })
    }
}

impl Arguments {
    /// The sources and the grants.
    ///
    /// # Errors
    /// A sentence without any uri, which may have a password.
    pub(super) fn read(&self) -> Result<(Vec<SourceOptions>, Vec<Grant>), String> {
        let mut sources = Vec::new();
        for argument in &self.source {
            let (name, uri) = argument
                .reveal()
                .split_once('=')
                .ok_or("--source: expected a source's name, = and the uri of a database")?;
            sources.push(self.source(name, uri)?);
        }
        for Named { name, value: path } in &self.source_file {
            let uri = read_uri(path)?;
            sources.push(self.source(name, uri.reveal())?);
        }
        let known = |name: &String| sources.iter().any(|source| source.name == *name);
        let limited = self.source_connections.iter().map(|limit| &limit.name);
        let divided = self.source_partitions.iter().map(|limit| &limit.name);
        let mut named = limited.chain(divided).chain(&self.source_writable);
        if let Some(name) = named.find(|name| !known(name)) {
            return Err(format!("there is no source {name}: name it with --source"));
        }
        let grants = self.grant.iter().map(|grant| {
            let token = read_token(&grant.token_file)?;
            Ok(Grant { token, sources: grant.sources.clone() })
        });
        Ok((sources, grants.collect::<Result<_, String>>()?))
    }

    fn source(&self, name: &str, uri: &str) -> Result<SourceOptions, String> {
        let writable = self.source_writable.iter().any(|writable| writable == name);
        let jdbc = JdbcOptions {
            class_path: self.jdbc_classpath.clone(),
            memory_bytes: self.jdbc_memory.0,
        };
        let partitions = self.source_partitions.iter().rfind(|limit| limit.name == name);
        let partitions = partitions.map(|limit| limit.value);
        if let Some(count) = partitions.filter(|count| !PARTITIONS.contains(count)) {
            return Err(format!("--source-partitions {name}={count}: expected 2 to 64"));
        }
        let driver = dray_relay::source(name, uri, writable, partitions, &jdbc)?;
        let mut options = SourceOptions::new(name.to_owned(), driver);
        for limit in self.source_connections.iter().filter(|limit| limit.name == name) {
            if limit.value == 0 {
                return Err(format!("--source-connections {name}=0: expected 1 or more"));
            }
            options.connections_max = usize::from(limit.value);
        }
        Ok(options)
    }
}

/// The uri in a file, without surrounding whitespace.
fn read_uri(path: &Path) -> Result<Secret, String> {
    let text =
        std::fs::read_to_string(path).map_err(|cause| format!("{}: {cause}", path.display()))?;
    match text.trim() {
        "" => Err(format!("{}: no uri in this file", path.display())),
        uri => Ok(uri.into()),
    }
}
