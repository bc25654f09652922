//! Merge Path: divides a merge of many sources into parts that can be merged side by side.
//!
//! Beginnings of keys divide the rows: those that are less than the first one are part 0, and so
//! on. Each source finds its rows of a part by binary search. Rows with equal keys are in one part,
//! so that duplicates meet. (The path of Green, Odeh and Birk goes through two sources row by row;
//! of many sources, samples say well enough where its parts end.)

use std::sync::Arc;

use super::sources::Sources;
use crate::error::{Error, Result};
use crate::key::{KeyRange, key_prefix};

/// So many samples of pieces are taken for each part.
const SAMPLES_A_PART: usize = 64;

/// Divides all rows into parts of about so many; larger where many keys are equal.
pub(crate) fn parts(sources: &Sources, part_rows: usize) -> Result<Vec<KeyRange>> {
    let step = (part_rows / SAMPLES_A_PART).max(1);
    let mut samples: Vec<(&[u8], usize)> = Vec::new();
    for piece in sources.pieces() {
        for some in piece.entries().chunks(step) {
            let key = piece.key(some[0]).ok_or_else(|| Error::missing("the key of a sample"))?;
            samples.push((key_prefix(key), some.len()));
        }
    }
    samples.extend(sources.runs().iter().flat_map(|run| run.bounds()));
    samples.sort_unstable();
    let (mut parts, mut rows, mut from) = (Vec::new(), 0, None::<Arc<[u8]>>);
    for (key, weight) in samples {
        if rows >= part_rows && from.as_deref() != Some(key) {
            let until: Arc<[u8]> = key.into();
            parts.push(KeyRange { from, until: Some(until.clone()) });
            (from, rows) = (Some(until), 0);
        }
        rows += weight;
    }
    parts.push(KeyRange { from, until: None });
    Ok(parts)
}
