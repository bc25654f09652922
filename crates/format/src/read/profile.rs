//! What decoding learns about the columns of a stream.

/// How the columns of a stream were coded. `dray explain` shows it.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// One per field of the schema.
    pub columns: Vec<ColumnProfile>,
}

/// How one column was coded, over all chunks seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnProfile {
    /// Bytes in the bodies.
    pub body_bytes: u64,
    /// Bytes decoded.
    pub decoded_bytes: u64,
    /// How long decoding took, in nanoseconds.
    pub decode_ns: u64,
    /// The names of the encodings and compressors used, in order of first use.
    pub encodings: Vec<&'static str>,
}
