//! Why a connection must end: the rule that the peer violated.

use std::fmt;

use dray_format::ErrorKind as FormatErrorKind;
use dray_page::ErrorKind as PageErrorKind;

use crate::frame::Kind;

/// The peer violated the protocol, and the connection must end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtocolError {
    refusal: Refusal,
    what: String,
}

/// Which rule was violated: the refusals of `spec/protocol.md` section 8 and
/// `spec/partitions.md` section 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A payload above the limit, or a reserved byte that is not 0.
    Frame,
    /// A kind of message that is undefined, or that only the other side may send.
    Kind,
    /// A message that is not allowed in the current state.
    Order,
    /// A payload that is too short, too long, or has an undefined value.
    Payload,
    /// A hello without Dray's magic.
    Magic,
    /// No version in common, or a descriptor of an unknown one.
    Version,
    /// A descriptor or receipt with more or fewer bytes than it has to have.
    Size,
    /// A chunk, page or state frame out of sequence.
    Sequence,
    /// A result that does not belong to the query that was sent.
    Query,
    /// A result that does not match its trailer.
    Finished,
    /// A connection that ended too early.
    Cut,
    /// A schema or a chunk violated its own format.
    Format(FormatErrorKind),
    /// A page violated its own format.
    Page(PageErrorKind),
}

impl Refusal {
    /// The refusal's name in the specification.
    pub fn name(self) -> &'static str {
        match self {
            Self::Frame => "frame",
            Self::Kind => "kind",
            Self::Order => "order",
            Self::Payload => "payload",
            Self::Magic => "magic",
            Self::Version => "version",
            Self::Size => "size",
            Self::Sequence => "sequence",
            Self::Query => "query",
            Self::Finished => "finished",
            Self::Cut => "cut",
            Self::Format(kind) => kind.name(),
            Self::Page(kind) => kind.name(),
        }
    }
}

impl ProtocolError {
    pub(crate) fn new(refusal: Refusal, what: impl Into<String>) -> Self {
        Self { refusal, what: what.into() }
    }

    /// Adds the kind of message to an error from reading its fields. The cursor reports a truncated
    /// payload as a format error; this changes it to a payload error.
    pub(crate) fn in_message(self, kind: Kind) -> Self {
        let refusal = match self.refusal {
            Refusal::Format(FormatErrorKind::Truncated) => Refusal::Payload,
            other => other,
        };
        Self { refusal, what: format!("a {kind:?} message: {}", self.what) }
    }

    /// The rule that was violated.
    pub fn refusal(&self) -> Refusal {
        self.refusal
    }

    /// The rule's name in the specification.
    pub fn name(&self) -> &'static str {
        self.refusal.name()
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for ProtocolError {}

impl From<dray_format::Error> for ProtocolError {
    fn from(error: dray_format::Error) -> Self {
        Self { refusal: Refusal::Format(error.kind()), what: error.to_string() }
    }
}

impl From<dray_page::Error> for ProtocolError {
    fn from(error: dray_page::Error) -> Self {
        Self { refusal: Refusal::Page(error.kind()), what: error.to_string() }
    }
}

/// A result of this crate.
pub type Result<T, E = ProtocolError> = std::result::Result<T, E>;
