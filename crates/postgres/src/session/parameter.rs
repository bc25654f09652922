//! Values for the parameters of a statement, and the messages that carry them.

use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;

use super::invalid;
use crate::error::{Error, ErrorKind, Result};

/// `cstring`: to the extension, a value whose type it infers (spec/protocol.md section 10).
const CSTRING_OID: u32 = 2275;

/// The value of `$1`, `$2` …: a type, or 0 to let the server infer it, and the value's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The type's number in `pg_type`.
    pub oid: u32,
    /// What the type's input function reads; none for NULL.
    pub text: Option<String>,
}

impl Parameter {
    /// The type that a COPY of the extension is prepared with.
    pub(crate) fn oid_for_copy(&self) -> u32 {
        if self.oid == 0 { CSTRING_OID } else { self.oid }
    }
}

/// Writes what runs a statement whose columns nobody asks for.
pub(crate) fn run(
    statement: &str,
    oids: impl IntoIterator<Item = u32>,
    parameters: &[Parameter],
    out: &mut bytes::BytesMut,
) -> Result<()> {
    frontend::parse("", statement, oids, out).map_err(invalid)?;
    bind("", parameters, &[], out)?;
    frontend::execute("", 0, out).map_err(invalid)
}

pub(crate) fn bind<'a>(
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
