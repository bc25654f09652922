//! The digest of rows: `spec/partitions.md` section 5.
//!
//! Columns are walked one after the other, while each row has its chain. So the loop over a column
//! knows its type, and rows don't wait for each other's multiplications.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::datatypes::DataType;
use dray_format::Chain;

use crate::error::{Error, ErrorKind, Result};

/// Rows whose chains stay in the processor's cache while their columns are walked.
const BLOCK_ROWS: usize = 2048;

/// The digest of the rows so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowDigest {
    pub(crate) rows: u64,
    pub(crate) digest: u64,
    chains: Vec<Chain>,
}

impl RowDigest {
    /// Adds the rows of a batch.
    ///
    /// # Errors
    /// Internal, for a type that results don't have.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut from = 0;
        while from < batch.num_rows() {
            let rows = BLOCK_ROWS.min(batch.num_rows() - from);
            self.chains.clear();
            self.chains.resize(rows, Chain::default());
            for column in batch.columns() {
                walk(column.slice(from, rows).as_ref(), &mut self.chains)?;
            }
            for chain in &self.chains {
                self.digest = self.digest.wrapping_add(chain.row());
            }
            from += rows;
        }
        self.rows += batch.num_rows() as u64;
        Ok(())
    }
}

/// Lets the chain of each row take the row's value: `value` makes the new chain of row i.
#[inline]
fn each(
    chains: &mut [Chain],
    nulls: Option<&NullBuffer>,
    mut value: impl FnMut(Chain, usize) -> Chain,
) {
    match nulls.filter(|nulls| nulls.null_count() > 0) {
        None => {
            for (i, chain) in chains.iter_mut().enumerate() {
                *chain = value(*chain, i);
            }
        }
        Some(nulls) => {
            for (i, chain) in chains.iter_mut().enumerate() {
                *chain = match nulls.is_valid(i) {
                    true => value(*chain, i),
                    false => chain.missing(),
                };
            }
        }
    }
}

/// Lets each chain take the value of its row.
fn walk(array: &dyn Array, chains: &mut [Chain]) -> Result<()> {
    debug_assert_eq!(array.len(), chains.len());
    let nulls = array.nulls();
    match array.data_type() {
        DataType::Null => chains.iter_mut().for_each(|chain| *chain = chain.missing()),
        DataType::Boolean => {
            let values = array.as_boolean().values();
            each(chains, nulls, |chain, i| chain.word(values.value(i).into()));
        }
        DataType::Utf8 => {
            let array = array.as_string::<i32>();
            each(chains, nulls, |chain, i| chain.text(array.value(i).as_bytes()));
        }
        DataType::LargeUtf8 => {
            let array = array.as_string::<i64>();
            each(chains, nulls, |chain, i| chain.text(array.value(i).as_bytes()));
        }
        DataType::Utf8View => {
            let array = array.as_string_view();
            each(chains, nulls, |chain, i| chain.text(array.value(i).as_bytes()));
        }
        DataType::Binary => {
            let array = array.as_binary::<i32>();
            each(chains, nulls, |chain, i| chain.text(array.value(i)));
        }
        DataType::LargeBinary => {
            let array = array.as_binary::<i64>();
            each(chains, nulls, |chain, i| chain.text(array.value(i)));
        }
        DataType::BinaryView => {
            let array = array.as_binary_view();
            each(chains, nulls, |chain, i| chain.text(array.value(i)));
        }
        DataType::FixedSizeBinary(_) => {
            let array = array.as_fixed_size_binary();
            each(chains, nulls, |chain, i| chain.padded(array.value(i)));
        }
        DataType::Dictionary(..) => {
            let array = array.as_any_dictionary();
            let values = take(array.values().as_ref(), array.keys(), None).map_err(no_digest)?;
            walk(values.as_ref(), chains)?;
        }
        DataType::Struct(_) => {
            let mut inner = vec![Chain::default(); array.len()];
            for field in array.as_struct().columns() {
                walk(field.as_ref(), &mut inner)?;
            }
            each(chains, nulls, |chain, i| chain.nested(inner[i]));
        }
        DataType::List(_) => {
            let array = array.as_list::<i32>();
            let bounds = array.value_offsets().iter().map(|at| i64::from(*at)).collect::<Vec<_>>();
            lists(array.values(), &bounds, nulls, chains)?;
        }
        DataType::LargeList(_) => {
            let array = array.as_list::<i64>();
            lists(array.values(), array.value_offsets(), nulls, chains)?;
        }
        DataType::Map(..) => {
            let array = array.as_map();
            let bounds = array.value_offsets().iter().map(|at| i64::from(*at)).collect::<Vec<_>>();
            let entries: ArrayRef = std::sync::Arc::new(array.entries().clone());
            lists(&entries, &bounds, nulls, chains)?;
        }
        DataType::FixedSizeList(_, size) => {
            let (size, array) = (usize::try_from(*size).unwrap_or(0), array.as_fixed_size_list());
            let inner = chains_of(array.values().as_ref())?;
            let items = |i: usize| inner[i * size..(i + 1) * size].iter();
            each(chains, nulls, |chain, i| items(i).fold(chain, |chain, item| chain.nested(*item)));
        }
        other => match other.primitive_width() {
            Some(width) => fixed(array, width, nulls, chains),
            None => return Err(no_digest(format!("the type {other}"))),
        },
    }
    Ok(())
}

/// Values of a fixed width.
fn fixed(array: &dyn Array, width: usize, nulls: Option<&NullBuffer>, chains: &mut [Chain]) {
    let data = array.to_data();
    let values = &data.buffers()[0].as_slice()[data.offset() * width..];
    macro_rules! words {
        ($width:literal) => {{
            let (values, _) = values.as_chunks::<$width>();
            each(chains, nulls, |chain, i| {
                let mut bytes = [0; 8];
                bytes[..$width].copy_from_slice(&values[i]);
                chain.word(u64::from_le_bytes(bytes))
            });
        }};
    }
    match width {
        1 => words!(1),
        2 => words!(2),
        4 => words!(4),
        8 => words!(8),
        _ => each(chains, nulls, |chain, i| chain.padded(&values[i * width..(i + 1) * width])),
    }
}

/// Lists whose items lie between `bounds`.
fn lists(
    items: &ArrayRef,
    bounds: &[i64],
    nulls: Option<&NullBuffer>,
    chains: &mut [Chain],
) -> Result<()> {
    let at = |i: usize| usize::try_from(bounds[i]).unwrap_or(0);
    let (first, end) = (at(0), at(chains.len()));
    let inner = chains_of(items.slice(first, end - first).as_ref())?;
    each(chains, nulls, |chain, i| {
        let items = &inner[at(i) - first..at(i + 1) - first];
        let chain = chain.word(items.len() as u64);
        items.iter().fold(chain, |chain, item| chain.nested(*item))
    });
    Ok(())
}

/// A chain for each value.
fn chains_of(array: &dyn Array) -> Result<Vec<Chain>> {
    let mut chains = vec![Chain::default(); array.len()];
    walk(array, &mut chains)?;
    Ok(chains)
}

fn no_digest(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorKind::Internal, "the rows of a part have no digest").with_cause(cause)
}

#[cfg(test)]
mod tests;
