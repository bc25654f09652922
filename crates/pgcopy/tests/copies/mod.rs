//! Batches for a COPY into PostgreSQL, chosen by bytes: the columns' Arrow types, their values, and
//! the types of the table's columns, which need not match.
//!
//! What comes out must be a COPY's data: a field for each column, NULL where the array has NULL,
//! and values of the length and structure that their types have.

#![allow(clippy::unwrap_used, reason = "tests")]

mod draw;
mod sent;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Fields, Schema};
use dray_pgcopy::{Encoder, Error, Format, Target};
use dray_pgtypes::PgType;

use self::draw::Draw;
use self::sent::{check_binary, check_text};

const DEPTH_MAX: usize = 3;

/// Encodes the batches that an input chooses, and checks what comes out. Returns the format, if
/// types and values fit.
pub fn check(input: &[u8]) -> Option<Format> {
    let mut draw = Draw(input);
    let (rows, columns) = (draw.below(9), 1 + draw.below(3));
    let columns: Vec<ArrayRef> = (0..columns).map(|_| draw.array(rows, DEPTH_MAX)).collect();
    let fields = columns.iter().map(|of| Field::new("c", of.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Fields>()));
    let types: Vec<PgType> = columns.iter().map(|of| draw.pg_type(of.data_type())).collect();
    let targets = types.iter().map(|of| Target { pg_type: of.clone(), declared: of.name.clone() });
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(schema.clone(), columns, &options).unwrap();
    let mut encoder = Encoder::new(schema, targets.collect(), Some(2)).ok()?;
    let mut all = encoder.header().to_vec();
    let mut nulls = Vec::new();
    let cut = draw.below(rows + 1);
    for (start, count) in [(0, cut), (cut, rows - cut)] {
        let part = batch.slice(start, count);
        let logical: Vec<_> = part.columns().iter().map(|column| column.logical_nulls()).collect();
        let is_null = |row: usize| {
            logical.iter().map(|nulls| nulls.as_ref().is_some_and(|it| it.is_null(row))).collect()
        };
        nulls.extend((0..count).map(is_null));
        // Arrow can't decode every encoded array, such as empty runs of runs.
        let mut blocks = encoder.batch(&part, start as u64).ok()?;
        let mut block = Vec::new();
        loop {
            match blocks.next_block(&mut block) {
                Ok(true) => all.extend_from_slice(&block),
                Ok(false) => break,
                Err(Error::Value { row, .. }) => {
                    let part = start as u64 + 1..=(start + count) as u64;
                    assert!(part.contains(&row));
                    return None;
                }
                Err(_) => return None,
            }
        }
    }
    assert_eq!(encoder.rows(), rows as u64);
    all.extend_from_slice(encoder.trailer());
    match encoder.format() {
        Format::Binary => check_binary(&all, &types, &nulls),
        Format::Text => check_text(&all, &nulls),
    }
    (rows > 0).then(|| encoder.format())
}
