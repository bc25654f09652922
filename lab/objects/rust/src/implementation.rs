//! What an implementation offers.

use bytes::Bytes;
use rkyv::util::AlignedVec;

use crate::Failure;
use crate::model::{Key, Study};

/// The size of a page, and what larger ones are a multiple of.
pub const PAGE_BYTES: usize = 256 << 10;

/// A page that is written.
pub struct Written {
    pub bytes: Bytes,
    pub positions: Vec<u32>,
    pub object_bytes: u64,
}

/// Writes objects into pages.
pub trait Writer<T> {
    /// The page of `add_object`.
    type Opened;

    fn add(&mut self, value: &T) -> Result<(), Failure>;
    /// Appends an object of a page.
    fn add_object(&mut self, page: &Self::Opened, i: usize) -> Result<(), Failure>;
    /// Appends an object of a page with one more item, as the phase `grow` does.
    fn add_grown(&mut self, page: &Self::Opened, i: usize) -> Result<(), Failure>;
    /// The pages that are full; all of them at the end.
    fn take(&mut self, is_end: bool) -> Result<Vec<Written>, Failure>;
}

/// How objects are stored and read.
pub trait Implementation<T: Study>: Sync {
    /// Whether opening always validates.
    const ALWAYS_VALIDATES: bool = false;
    /// Some objects of a page that can be read.
    type Opened;
    type Writer<'a>: Writer<T, Opened = Self::Opened>
    where
        Self: 'a;

    fn writer(&self) -> Result<Self::Writer<'_>, Failure>;
    /// The size of a page, of which there are at least the first 64 bytes.
    fn page_bytes(page: &[u8]) -> Result<usize, Failure>;
    /// The positions of all objects of a page.
    fn positions(&self, page: &[u8]) -> Result<Vec<u32>, Failure>;
    fn open(&self, page: Bytes, positions: &[u32], validate: bool)
    -> Result<Self::Opened, Failure>;
    fn sum(&self, page: &Self::Opened, i: usize) -> u64;
    fn key(&self, page: &Self::Opened, i: usize) -> Key;
    fn equal(&self, a: (&Self::Opened, usize), b: (&Self::Opened, usize)) -> bool;
    fn copy(&self, page: &Self::Opened, i: usize) -> Result<T, Failure>;
    /// The page with objects that are changed as the phase `mutate` does. Nobody else has its
    /// memory.
    fn change(&self, page: Self::Opened) -> Result<Bytes, Failure>;
}

/// Zeros for a page, at a multiple of 64.
pub fn page_buffer(bytes: usize) -> AlignedVec<64> {
    let mut buffer = AlignedVec::with_capacity(bytes);
    buffer.resize(bytes, 0);
    buffer
}

/// The u32 at an offset.
pub fn u32_at(bytes: &[u8], at: usize) -> Result<u32, Failure> {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk()).ok_or("a page is cut off")?;
    Ok(u32::from_le_bytes(*word))
}
