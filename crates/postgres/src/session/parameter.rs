//! Values of a statement's parameters, and the messages that carry them.

use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;

use super::invalid;
use crate::error::{Error, ErrorKind, Result};

/// `cstring`: tells the extension to infer the type (spec/protocol.md section 10).
const CSTRING_OID: u32 = 2275;

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The type's oid; 0 lets the server infer it.
    pub oid: u32,
    /// The value as the type's input function reads it; None is NULL.
    pub text: Option<String>,
}

impl Parameter {
    /// The oid that a COPY of the extension is prepared with.
    pub(crate) fn oid_for_copy(&self) -> u32 {
        if self.oid == 0 { CSTRING_OID } else { self.oid }
    }
}

/// Writes the messages that run a statement without describing its columns.
pub(super) fn run(
    statement: &str,
    oids: impl IntoIterator<Item = u32>,
    parameters: &[Parameter],
    out: &mut bytes::BytesMut,
) -> Result<()> {
    frontend::parse("", statement, oids, out).map_err(invalid)?;
    bind("", parameters, &[], out)?;
    frontend::execute("", 0, out).map_err(invalid)
}

/// Writes the Bind message of a prepared statement; `formats` are those of its columns.
pub(super) fn bind<'a>(
    statement: &str,
    parameters: impl IntoIterator<Item = &'a Parameter>,
    formats: &[i16],
    out: &mut bytes::BytesMut,
) -> Result<()> {
    let write = |parameter: &Parameter, out: &mut bytes::BytesMut| {
        Ok(match &parameter.text {
            Some(text) => {
                out.extend_from_slice(text.as_bytes());
                IsNull::No
            }
            None => IsNull::Yes,
        })
    };
    frontend::bind("", statement, [0], parameters, write, formats.iter().copied(), out).map_err(
        |cause| match cause {
            frontend::BindError::Conversion(cause) => {
                Error::new(ErrorKind::Usage, "a parameter can't be sent").with_cause(cause)
            }
            frontend::BindError::Serialization(cause) => invalid(cause),
        },
    )
}
