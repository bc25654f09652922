//! Table 3: chunk sizes.

use arrow_schema::SchemaRef;

use crate::Result;
use crate::codec::{AnyCodec, Compressed};
use crate::compressors::Compressor;
use crate::dray::{self, Dray};
use crate::row_major::ColumnMajor;

/// Bytes of a chunk's rows before encoding: the paper's six sizes, and four between them.
pub const SIZES: [usize; 10] = [
    2 << 10,
    10 << 10,
    32 << 10,
    100 << 10,
    320 << 10,
    1 << 20,
    3 << 20,
    10 << 20,
    32 << 20,
    100 << 20,
];

/// Dray's chunks raw and with light encodings, and the paper's columns under Snappy.
///
/// # Errors
/// If Dray does not support the schema.
pub fn cases(schema: &SchemaRef) -> Result<Vec<(String, AnyCodec)>> {
    let columns = Box::new(ColumnMajor::new(schema));
    let snappy = Compressed { inner: columns, compressor: Compressor::Snappy };
    Ok(vec![
        ("Dray none".to_owned(), Box::new(Dray::new(schema, dray::COMPRESSIONS[0].1)?)),
        ("Dray light".to_owned(), Box::new(Dray::new(schema, dray::COMPRESSIONS[1].1)?)),
        ("Columns+Snappy".to_owned(), Box::new(snappy)),
    ])
}
