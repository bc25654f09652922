//! Why a chunk or a schema is refused.

use std::fmt;

/// Why a chunk or a schema was refused. [`Error::name`] gives the name that `spec/chunk.md` section
/// 9 lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    what: String,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// The refusals of `spec/chunk.md` section 9, and those of a writer.
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
    /// The chunk does not begin with `DRYC`.
    Magic = "magic",
    /// A layout version that this reader does not know.
    Version = "version",
    /// A flag that is not defined.
    Flags = "flags",
    /// A reserved byte that is not zero.
    Reserved = "reserved",
    /// No rows, or several rows in a jumbo chunk.
    Rows = "rows",
    /// More or fewer bytes than the header says.
    Size = "size",
    /// Over a limit of the reader.
    Limit = "limit",
    /// The checksum does not match.
    Checksum = "checksum",
    /// The descriptors end within a column.
    Truncated = "truncated",
    /// A code that is unknown, or not allowed in its place.
    Code = "code",
    /// Missing values in a column that is not nullable, or a count that differs from the bitmap.
    Missing = "missing",
    /// Bits set past the end of a bitmap.
    Bitmap = "bitmap",
    /// A constant that is not a value of its type, or a constant for no values.
    Constant = "constant",
    /// A number of bits that the type does not have.
    Bits = "bits",
    /// A power of ten that is too large.
    Exponent = "exponent",
    /// A column relative to another that can't be its base.
    Base = "base",
    /// Offsets or lengths that do not fit their data.
    Offsets = "offsets",
    /// Runs whose lengths do not add up to the number of values.
    Runs = "runs",
    /// Exceptions whose positions do not rise or are out of range.
    Positions = "positions",
    /// Too many symbols, or a symbol that is empty or too long.
    Symbols = "symbols",
    /// A dictionary index out of range, or an empty dictionary.
    Index = "index",
    /// A string that is not UTF-8.
    Utf8 = "utf8",
    /// A buffer longer or shorter than its contents.
    Length = "length",
    /// An LZ4 block or zstd frame that does not unpack.
    Compressed = "compressed",
    /// More or fewer bytes decoded than declared.
    Decoded = "decoded",
    /// Bytes left over after the last column.
    Trailing = "trailing",
    /// An invalid table of a state frame, or a chunk that was made with other tables.
    State = "state",
    /// A schema that breaks a rule.
    Schema = "schema",
    /// Data that the layout can't carry: an error of the writer.
    Unsupported = "unsupported",
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into() }
    }

    /// The error for a row of `needed` bytes that is larger than the reader accepts.
    pub fn row_too_large(needed: u64, row_bytes_max: u64) -> Self {
        let what = format!(
            "a row needs {needed} bytes, over the limit of {row_bytes_max}; \
             raise row_bytes_max to that"
        );
        Self::new(ErrorKind::Limit, what)
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
