//! Batches in sizes that the server takes.

use arrow_array::{Array, RecordBatch};

use crate::message::{Failure, FailureKind, Query};

/// `program_limit_exceeded`.
const TOO_LONG: &str = "54000";

/// Passes on a batch in parts as large as the server takes.
///
/// # Errors
/// If a row is too large, or `pass` fails.
pub fn cut(
    batch: &RecordBatch,
    query: &Query,
    pass: &mut dyn FnMut(&RecordBatch) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let rows = batch.num_rows();
    let bytes = bytes(batch)?;
    if rows > 1 && (rows > query.batch_rows || bytes > query.batch_bytes) {
        let half = rows / 2;
        cut(&batch.slice(0, half), query, pass)?;
        return cut(&batch.slice(half, rows - half), query, pass);
    }
    if rows == 1 && bytes > query.row_bytes {
        let what = format!(
            "a row needs {bytes} bytes, over the limit of {}; raise row_bytes_max to that",
            query.row_bytes
        );
        return Err(Failure::new(FailureKind::Limit, TOO_LONG, what));
    }
    if rows == 0 { Ok(()) } else { pass(batch) }
}

/// What the rows of a batch take, without what is shared with other rows.
fn bytes(batch: &RecordBatch) -> Result<u64, Failure> {
    let sizes = batch.columns().iter().map(|column| column.to_data().get_slice_memory_size());
    let bytes = sizes.sum::<Result<usize, _>>().map_err(|cause| internal(&cause.to_string()))?;
    Ok(bytes as u64)
}

fn internal(what: &str) -> Failure {
    Failure { usable: false, ..Failure::new(FailureKind::Internal, "", what) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, StringArray};

    use super::*;

    fn query(batch_rows: usize, batch_bytes: u64, row_bytes: u64) -> Query {
        Query {
            sql: String::new(),
            parameters: false,
            plan_only: false,
            batch_rows,
            batch_bytes,
            row_bytes,
        }
    }

    #[test]
    fn parts() {
        let texts = StringArray::from_iter_values((0..100).map(|i| "x".repeat(i)));
        let batch = RecordBatch::try_from_iter([("t", Arc::new(texts) as ArrayRef)]).unwrap();
        for (limits, least) in [
            (query(1000, 1 << 20, 1 << 20), 1),
            (query(7, 1 << 20, 1 << 20), 15),
            (query(1000, 500, 500), 11),
        ] {
            let mut parts = Vec::new();
            cut(&batch, &limits, &mut |part| {
                assert!(part.num_rows() <= limits.batch_rows);
                parts.push(part.clone());
                Ok(())
            })
            .unwrap();
            assert!(parts.len() >= least, "{}", parts.len());
            let mut from = 0;
            for part in parts {
                assert_eq!(part, batch.slice(from, part.num_rows()));
                from += part.num_rows();
            }
            assert_eq!(from, batch.num_rows());
        }
        let error = cut(&batch, &query(1000, 50, 50), &mut |_| Ok(())).unwrap_err();
        assert_eq!((error.kind, error.sqlstate.as_str()), (FailureKind::Limit, "54000"));
    }
}
