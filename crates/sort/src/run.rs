//! Sorted runs: rows in memory that are sorted, and runs on disk.

mod compression;
mod cutoff;
mod entry_sort;
mod in_memory;
mod on_disk;
mod spill_file;

pub(crate) use self::cutoff::{Cutoff, cut};
pub(crate) use self::in_memory::{OpenPiece, Piece, ROW_BITS};
pub(crate) use self::on_disk::{End, RowObject, Run, RunBlock, RunWriter, read_page};
pub(crate) use self::spill_file::Spill;
