//! Merge Path: divides a merge of many runs into partitions that are merged in parallel.
//!
//! Key prefixes divide the rows: partition 0 has the keys that are less than the first prefix, and
//! so on. Each run finds its rows of a partition by binary search. Rows with equal keys are in one
//! partition, so that duplicates meet. Green, Odeh and Birk ("Merge Path", 2012) divide two sources
//! exactly; for many runs, samples of their keys divide them evenly enough.

use std::sync::Arc;

use super::sources::Sources;
use crate::error::{Error, Result};
use crate::key::{KeyRange, key_prefix};

/// The samples that are taken of runs in memory for each partition.
const PARTITION_SAMPLES: usize = 64;

/// Divides all rows into partitions of about `partition_rows` rows. Partitions with many equal keys
/// are larger.
pub(crate) fn partitions(sources: &Sources, partition_rows: usize) -> Result<Vec<KeyRange>> {
    let step = (partition_rows / PARTITION_SAMPLES).max(1);
    let mut samples: Vec<(&[u8], usize)> = Vec::new();
    for run in sources.memory_runs() {
        for entries in run.entries().chunks(step) {
            let key = run.key(entries[0]).ok_or_else(|| Error::missing("the key of a sample"))?;
            samples.push((key_prefix(key), entries.len()));
        }
    }
    samples.extend(sources.disk_runs().iter().flat_map(|run| run.partition_samples()));
    debug_assert_eq!(
        samples.iter().map(|(_, rows)| *rows as u64).sum::<u64>(),
        sources.rows(),
        "samples stand for all rows"
    );
    samples.sort_unstable();
    let (mut partitions, mut rows, mut from) = (Vec::new(), 0, None::<Arc<[u8]>>);
    for (key, weight) in samples {
        if rows >= partition_rows && from.as_deref() != Some(key) {
            let until: Arc<[u8]> = key.into();
            partitions.push(KeyRange { from, until: Some(until.clone()) });
            (from, rows) = (Some(until), 0);
        }
        rows += weight;
    }
    partitions.push(KeyRange { from, until: None });
    debug_assert!(
        partitions.iter().all(|range| range.until.is_none() || range.from < range.until),
        "partitions are in the order of their keys"
    );
    Ok(partitions)
}
