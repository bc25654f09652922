//! Merges of sorted runs: into longer runs on disk, and into the batches of the result.

mod cursor;
mod gather;
mod loser_tree;
mod merge_path;
mod merger;
mod output;
mod parallel;
mod sources;
mod spill;

pub(crate) use self::gather::{is_table, slice};
pub(crate) use self::output::{BatchSize, PartitionOutput};
pub(crate) use self::parallel::{BATCHES_A_PART, BATCHES_A_THREAD, ParallelMerge};
pub(crate) use self::sources::Sources;
pub(crate) use self::spill::DiskRuns;
