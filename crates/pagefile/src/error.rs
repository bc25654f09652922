//! Why a file is refused, or can't be read or written.

use std::fmt;
use std::io;

/// Why a file was refused, or could not be read or written. [`Error::name`] gives the name that
/// `spec/page-file.md` section 9 lists.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    what: String,
    cause: Option<io::Error>,
}

/// The refusals of `spec/page-file.md` section 9, and the errors of a program that reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// It is no page file.
    Magic,
    /// A layout version that this reader does not know.
    Version,
    /// A flag that is not defined.
    Flags,
    /// A size of pages or of the schema that no file has.
    Size,
    /// A reserved byte of the header that is not zero.
    Reserved,
    /// The file has no end: it was cut off.
    Cut,
    /// A digest does not match.
    Digest,
    /// The footer contradicts itself.
    Footer,
    /// A schema that breaks a rule.
    Schema,
    /// A byte of padding that is not zero.
    Padding,
    /// The page index contradicts the file.
    Index,
    /// The key index is damaged, or names no field.
    Keys,
    /// A page is not the one that the index describes.
    Page,
    /// A page, or a batch for a page, was refused by `spec/page.md`.
    Inside(dray_page::ErrorKind),
    /// The file can't be read or written.
    Io,
    /// An object, a key or a batch that the file does not have or take: an error of the caller.
    Usage,
}

impl ErrorKind {
    /// The name in the specification.
    pub fn name(self) -> &'static str {
        match self {
            Self::Magic => "magic",
            Self::Version => "version",
            Self::Flags => "flags",
            Self::Size => "size",
            Self::Reserved => "reserved",
            Self::Cut => "cut",
            Self::Digest => "digest",
            Self::Footer => "footer",
            Self::Schema => "schema",
            Self::Padding => "padding",
            Self::Index => "index",
            Self::Keys => "keys",
            Self::Page => "page",
            Self::Inside(kind) => kind.name(),
            Self::Io => "io",
            Self::Usage => "usage",
        }
    }
}

impl Error {
    #[cold]
    pub(crate) fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), cause: None }
    }

    /// The error of a caller's own.
    pub fn usage(cause: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Usage, cause.to_string())
    }

    #[cold]
    pub(crate) fn io(what: impl Into<String>, cause: io::Error) -> Self {
        Self { kind: ErrorKind::Io, what: what.into(), cause: Some(cause) }
    }

    /// The error with what it is about in front.
    #[cold]
    pub(crate) fn about(mut self, what: impl fmt::Display) -> Self {
        self.what = format!("{what}: {}", self.what);
        self
    }

    /// The error with more to say.
    #[cold]
    pub(crate) fn and(mut self, more: impl fmt::Display) -> Self {
        self.what = format!("{}; {more}", self.what);
        self
    }

    /// What was violated.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The name of the violation in the specification.
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }
}

impl From<dray_page::Error> for Error {
    fn from(error: dray_page::Error) -> Self {
        Self::new(ErrorKind::Inside(error.kind()), error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.cause {
            Some(cause) => write!(f, ": {cause}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! refuse {
    ($kind:ident, $($arg:tt)*) => {
        return Err($crate::error::Error::new($crate::error::ErrorKind::$kind, format!($($arg)*)))
    };
}
pub(crate) use refuse;
