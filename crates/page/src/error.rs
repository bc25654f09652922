//! Why a page, a schema or a batch is refused.

use std::fmt;

/// Why a page, a schema or a batch was refused. [`Error::name`] gives the name that `spec/page.md`
/// section 9 lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    what: String,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// The refusals of `spec/page.md` section 9, and those of a writer.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ErrorKind { $($(#[$doc])* $kind,)* }

        impl ErrorKind {
            /// The name in the specification.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    /// The page does not begin with `DRYP`.
    Magic = "magic",
    /// A layout version that this reader does not know.
    Version = "version",
    /// A flag that is not defined.
    Flags = "flags",
    /// A reserved byte of the header that is not zero.
    Reserved = "reserved",
    /// No objects, several in a large page, or other objects than the header says.
    Objects = "objects",
    /// A size that no page has, or another size than the header says.
    Size = "size",
    /// The checksum does not match.
    Checksum = "checksum",
    /// A slot that does not say where its object begins.
    Slot = "slot",
    /// An extent of another size than its object needs.
    Extent = "extent",
    /// Bits set past the last value.
    Bitmap = "bitmap",
    /// A missing value that is not zero; for a writer, a missing value of a field that is not
    /// nullable.
    Missing = "missing",
    /// A boolean that is neither 0 nor 1.
    Boolean = "boolean",
    /// A string whose place does not describe it.
    String = "string",
    /// An impossible number of items.
    Items = "items",
    /// A tail that is not in its position, or leaves its object.
    Tail = "tail",
    /// A string that is not UTF-8.
    Utf8 = "utf8",
    /// A byte of padding that is not zero.
    Padding = "padding",
    /// A schema that breaks a rule.
    Schema = "schema",
    /// More than a page, an object or a column can hold, or than the caller allows.
    Limit = "limit",
    /// Data or an accessor that does not fit the schema: an error of the calling program.
    Unsupported = "unsupported",
    /// A violated invariant: a defect of this crate.
    Internal = "internal",
}

impl Error {
    #[cold]
    pub(crate) fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into() }
    }

    /// The error with the number of the object that it is about.
    #[cold]
    pub(crate) fn in_object(self, object: usize) -> Self {
        Self { kind: self.kind, what: format!("object {object}: {}", self.what) }
    }

    /// The error with the position of the extent that it is about.
    #[cold]
    pub(crate) fn in_extent(self, at: usize) -> Self {
        Self { kind: self.kind, what: format!("the extent at {at}: {}", self.what) }
    }

    /// The error with the name of the column that it is about.
    #[cold]
    pub(crate) fn in_column(self, name: &str) -> Self {
        Self { kind: self.kind, what: format!("column {name:?}: {}", self.what) }
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Error {}

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! refuse {
    ($kind:ident, $($arg:tt)*) => {
        return Err($crate::error::Error::new($crate::error::ErrorKind::$kind, format!($($arg)*)))
    };
}
pub(crate) use refuse;
