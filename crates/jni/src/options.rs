//! What Java can set: pairs of names and values.

use std::time::Duration;

use dray_client::{ConnectOptions, QueryOptions, StringLayout, timeout_from_seconds};

use crate::errors::Failure;

/// How to connect and how to read.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) connect: ConnectOptions,
    pub(crate) query: QueryOptions,
}

impl Options {
    /// Options of names and values in turn.
    ///
    /// # Errors
    /// When a name is unknown or a value is not one of its option.
    pub(crate) fn parse(pairs: &[String]) -> Result<Self, Failure> {
        let client = concat!("dray-spark ", env!("CARGO_PKG_VERSION")).to_owned();
        let mut options = Self {
            connect: ConnectOptions { client, ..ConnectOptions::default() },
            query: QueryOptions { strings: StringLayout::Offsets, ..QueryOptions::default() },
        };
        for pair in pairs.chunks(2) {
            let [name, value] = pair else {
                return Err(Failure::usage(format!("option {pair:?} has no value")));
            };
            options.set(name, value)?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let wrong = |what: String| Failure::usage(format!("option {name}: {what}"));
        let Self { connect, query } = self;
        match name {
            "numeric" => query.postgres.numeric = value.parse().map_err(wrong)?,
            "nonfinite" => query.postgres.nonfinite = value.parse().map_err(wrong)?,
            "extension" => query.postgres.extension = value.parse().map_err(wrong)?,
            "partitions" => query.postgres.partitions = value.parse().map_err(wrong)?,
            "connectTimeout" => connect.timeout = seconds(name, value)?,
            "readTimeout" => connect.read_timeout = Some(seconds(name, value)?),
            "batchRows" => query.batch_rows = number(name, value)?,
            "batchBytes" => query.batch_bytes = number(name, value)?,
            _ => return Err(Failure::usage(format!("no option {name:?}"))),
        }
        Ok(())
    }
}

fn seconds(name: &str, value: &str) -> Result<Duration, Failure> {
    let seconds = value.parse::<f64>().map_err(|_| {
        Failure::usage(format!("option {name}: {value:?}, expected a number of seconds"))
    })?;
    Ok(timeout_from_seconds(seconds)?)
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, Failure> {
    value
        .parse()
        .map_err(|_| Failure::usage(format!("option {name}: {value:?}, expected a number")))
}
