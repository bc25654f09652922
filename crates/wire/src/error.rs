use std::fmt;

use dray_format::ErrorKind as FormatErrorKind;

use crate::frame::Kind;

/// The peer broke a rule of the protocol, and the connection can't go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtocolError {
    refusal: Refusal,
    what: String,
}

/// Which rule was broken: the refusals of `spec/protocol.md` section 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A payload larger than is accepted, or a reserved byte that is not 0.
    Frame,
    /// A kind of message that is not defined, or that only the other side may send.
    Kind,
    /// A message where it may not come.
    Order,
    /// Fields that end too soon, go on too long or have a value that is not defined.
    Payload,
    /// A hello that is not Dray's.
    Magic,
    /// No version in common.
    Version,
    /// A chunk that is not the next one.
    Sequence,
    /// A result of another query than the one that was sent.
    Query,
    /// A result that is not what its end says.
    Finished,
    /// The bytes ended too soon.
    Cut,
    /// A schema or a chunk broke a rule of its own.
    Format(FormatErrorKind),
}

impl Refusal {
    /// The name in the specification.
    pub fn name(self) -> &'static str {
        match self {
            Self::Frame => "frame",
            Self::Kind => "kind",
            Self::Order => "order",
            Self::Payload => "payload",
            Self::Magic => "magic",
            Self::Version => "version",
            Self::Sequence => "sequence",
            Self::Query => "query",
            Self::Finished => "finished",
            Self::Cut => "cut",
            Self::Format(kind) => kind.name(),
        }
    }
}

impl ProtocolError {
    pub(crate) fn new(refusal: Refusal, what: impl Into<String>) -> Self {
        Self { refusal, what: what.into() }
    }

    /// The error of a message whose fields were read: the cursor is the format's, but its bytes are
    /// a payload.
    pub(crate) fn in_message(self, kind: Kind) -> Self {
        let refusal = match self.refusal {
            Refusal::Format(FormatErrorKind::Truncated) => Refusal::Payload,
            other => other,
        };
        Self { refusal, what: format!("a {kind:?} message: {}", self.what) }
    }

    /// Which rule was broken.
    pub fn refusal(&self) -> Refusal {
        self.refusal
    }

    /// The name of the rule in the specification.
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

/// A result of this crate.
pub type Result<T, E = ProtocolError> = std::result::Result<T, E>;
