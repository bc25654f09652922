//! Sorted runs: rows in memory that are sorted, and runs on disk.

mod builder;
mod compression;
mod cutoff;
mod entry_sort;
mod in_memory;
mod on_disk;
mod spill_file;
mod writer;

pub(crate) use self::builder::{OpenPiece, ROW_BITS};
pub(crate) use self::cutoff::Cutoff;
pub(crate) use self::in_memory::Piece;
pub(crate) use self::on_disk::{End, RowObject, Run, RunBlock, read_page};
pub(crate) use self::spill_file::Spill;
pub(crate) use self::writer::RunWriter;
