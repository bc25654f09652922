//! Merges of sorted runs: into longer runs on disk, and into the batches of the result.

mod cursor;
mod gather;
mod loser_tree;
mod merge_path;
mod merger;
mod output;
mod parallel;
mod payload;
mod sources;
mod spill;

pub(crate) use self::gather::{can_gather, slice};
pub(crate) use self::output::{OutputBatchMax, PartitionOutput};
pub(crate) use self::parallel::{PARTITION_BATCHES, ParallelMerge, THREAD_BATCHES};
pub(crate) use self::payload::OutputSize;
pub(crate) use self::sources::Sources;
pub(crate) use self::spill::DiskRuns;
