//! Sorted runs, in memory and on disk.

mod builder;
mod compression;
mod cutoff;
mod entry_sort;
mod in_memory;
mod on_disk;
mod spill_file;
mod writer;

pub(crate) use self::builder::{BATCH_ROWS_BITS, InputBatch, RunBuilder};
pub(crate) use self::cutoff::CutoffKey;
pub(crate) use self::in_memory::MemoryRun;
pub(crate) use self::on_disk::{DiskBlock, DiskRun, EndRow, RowObject, read_page};
pub(crate) use self::spill_file::SpillFiles;
pub(crate) use self::writer::DiskRunWriter;
