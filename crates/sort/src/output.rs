//! The result of a sort: partitions, which become batches, on demand or ahead of the reader.

mod parallel;
mod partitions;

pub(crate) use self::parallel::{ParallelOutput, THREAD_BATCHES};
pub(crate) use self::partitions::{OnDemandOutput, Partitions};
