//! Merges of sorted runs: into longer runs on disk, and into the batches of the result.

mod cursor;
mod loser_tree;
mod merge_path;
mod merger;
mod output;
mod payload;
mod sources;
mod spill;

pub(crate) use self::merge_path::partitions;
pub(crate) use self::output::PartitionOutput;
pub(crate) use self::sources::Sources;
pub(crate) use self::spill::DiskRuns;
