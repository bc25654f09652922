//! Arrow's own comparison of rows: the oracle for sorted rows and keys.

use std::cmp::Ordering;

use arrow_array::RecordBatch;
use arrow_ord::ord::make_comparator;
use arrow_schema::SortOptions;
use dray_sort::SortColumn;

/// Compares two rows of a batch, given by their numbers.
pub fn comparator(rows: &RecordBatch, by: &[SortColumn]) -> impl Fn(usize, usize) -> Ordering {
    let of_column = |by: &SortColumn| {
        let column = rows.column(by.column);
        let options = SortOptions { descending: by.descending, nulls_first: by.nulls_first };
        make_comparator(column, column, options).unwrap()
    };
    let comparators: Vec<_> = by.iter().map(of_column).collect();
    move |a, b| {
        comparators
            .iter()
            .map(|compare| compare(a, b))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }
}
