//! Hive, Spark's Thrift server and Impala as sources of a Dray server, by the protocol that they
//! have in common: HiveServer2's calls of Thrift, whose rows come in columns.
//!
//! ```text
//!   uri ─▶ connect: TCP, TLS, SASL ─▶ Transport: frames ─▶ thrift: values ─▶ calls ─▶ Session
//!                                                                   rows: columns of Arrow ─┘
//! ```
//!
//! Nothing of a message is trusted: what it announces must fit what may still come of it, and
//! memory grows with what has come.

#![forbid(unsafe_code)]

mod answers;
mod calls;
mod column;
mod connect;
mod error;
mod rows;
mod session;
#[cfg(test)]
mod tests;
mod text;
mod thrift;
mod transport;
mod uri;

use dray_driver::{Driver, ServerError, cannot_connect};

use self::session::Session;
use self::uri::Params;

/// A server of Hive, Spark or Impala that a Dray server passes statements on to.
#[derive(Debug)]
pub struct Hive {
    name: String,
    params: Params,
    writable: bool,
}

impl Hive {
    /// The source `name` at a uri: `hive://user:password@host:port/database?auth=plain`, `spark://…`
    /// or `impala://…`. Unless it is `writable`, it takes only statements that read.
    ///
    /// # Errors
    /// A sentence without the uri, which may have a password, if it can't be read.
    pub fn new(name: &str, uri: &str, writable: bool) -> Result<Self, String> {
        let params = Params::parse(uri).map_err(|why| format!("the source {name}: {why}"))?;
        Ok(Self { name: name.to_owned(), params, writable })
    }
}

impl Driver for Hive {
    fn dialect(&self) -> &'static str {
        "hive"
    }

    fn open(
        &self,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Box<dyn dray_driver::Session>, ServerError> {
        match Session::open(&self.name, &self.params, self.writable, keep_waiting) {
            Ok(session) => Ok(Box::new(session)),
            Err(cause) => Err(cannot_connect(&self.name, &cause)),
        }
    }
}
