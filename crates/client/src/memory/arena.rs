//! Bodies of chunks and buffers of columns, cut from blocks.
//!
//! ```text
//!   a table
//!     block │ body of chunk 1 │ body of chunk 2 │ … │ free │
//!       many bodies per block; it lives as long as any array points into it
//!     block │ columns of chunk 1 │ columns of chunk 2 │ … │
//!       of encoded chunks: their bodies lie elsewhere, and go once the columns are decoded
//!
//!   a stream
//!     block │ body of chunk 7 │ free │
//!     block │ columns of chunk 7 │ free │
//!       one chunk per block; it is free again when its arrays are dropped
//! ```

#![allow(unsafe_code, reason = "blocks are written through raw pointers")]

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use dray_format::{BufferSlice, BufferSource, Header};
use dray_page::{PAGE_BYTES, PagePool};

use super::pool::{Block, HUGE_PAGE_BYTES, NoMemory, take};

/// The size of the blocks that the chunks of a table share.
pub(crate) const TABLE_BLOCK_BYTES: usize = 64 << 20;
/// Smaller bodies come from the heap: clearing a huge page takes longer than a small result.
const SMALL_BODY_BYTES: usize = 64 << 10;
/// The columns of a table come from the heap until they add up to this.
const SMALL_TABLE_BYTES: u64 = HUGE_PAGE_BYTES as u64;
/// The columns of a stream's chunk come from the heap below this size: each chunk would have a huge
/// page to itself.
const SMALL_CHUNK_BYTES: u64 = SMALL_TABLE_BYTES / 2;
/// Added to the decoded size of a chunk for the gaps between its columns' buffers.
const GAPS_BYTES: usize = 64 << 10;
/// Bodies start at multiples of this: the chunk's own alignment.
const ALIGNMENT: usize = 64;
/// The memory that is taken at a time for pages.
const PAGE_SLAB_BYTES: usize = 4 << 20;

/// Whether there is a processor for the thread that touches the next block.
static TOUCHES_AHEAD: LazyLock<bool> =
    LazyLock::new(|| std::thread::available_parallelism().is_ok_and(|threads| threads.get() > 1));

/// Whether the body is smaller than three quarters of the decoded bytes.
fn is_encoded(header: &Header) -> bool {
    u64::from(header.body_bytes) < header.decoded_bytes / 4 * 3
}

/// Memory for pages that come from the network.
pub(crate) fn page_pool() -> Arc<PagePool> {
    PagePool::new(PAGE_BYTES, PAGE_SLAB_BYTES)
}

/// Memory for one body after the other.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    /// The size of the blocks that bodies share; with 0 each body has its own.
    block_bytes: usize,
    current: Option<BlockCursor>,
    /// The decoded bytes of all chunks so far.
    decoded_bytes: u64,
    /// The block after the current one. A thread touches its pages meanwhile.
    next: Option<Arc<Block>>,
    /// Of pages, once one has come.
    pages: Option<Arc<PagePool>>,
}

impl Arena {
    /// Sets the size of the blocks that bodies share. A table, whose bodies live together, shares
    /// large ones; a stream, whose bodies are dropped one by one, shares none (0).
    pub(crate) fn set_block_bytes(&mut self, block_bytes: usize) {
        self.block_bytes = block_bytes;
    }

    /// The size of the blocks that bodies share; 0 if each body has its own.
    pub(crate) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Memory for pages.
    pub(crate) fn pages(&mut self) -> &Arc<PagePool> {
        self.pages.get_or_insert_with(page_pool)
    }

    /// Memory for the columns of a chunk. A table copies the plain columns of an encoded chunk, so
    /// that they don't keep its body alive.
    pub(crate) fn columns(&mut self, header: &Header) -> Columns<'_> {
        let is_table = self.block_bytes > 0;
        let decoded_bytes = header.decoded_bytes;
        self.decoded_bytes = self.decoded_bytes.saturating_add(decoded_bytes);
        let is_small = match is_table {
            true => self.decoded_bytes < SMALL_TABLE_BYTES,
            false => decoded_bytes < SMALL_CHUNK_BYTES,
        };
        Columns {
            arena: self,
            decoded_bytes,
            is_small,
            takes_plain: is_table && is_encoded(header),
            own: None,
        }
    }

    /// A body with these bytes.
    ///
    /// # Errors
    /// When the system has no memory.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> Result<Bytes, NoMemory> {
        self.receive(bytes.len(), |to| {
            to.copy_from_slice(bytes);
            Ok(())
        })
    }

    /// A body of `bytes` bytes, which `fill` fills. Before that they are zeros or old data.
    ///
    /// # Errors
    /// Those of `fill`, or when the system has no memory.
    pub(crate) fn receive<E: From<NoMemory>>(
        &mut self,
        bytes: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Bytes, E> {
        if bytes < SMALL_BODY_BYTES {
            let mut body = vec![0; bytes];
            fill(&mut body)?;
            return Ok(Bytes::from(body));
        }
        let mut body = match self.block_bytes {
            0 => BlockCursor::new(Arc::new(take(bytes)?)).first(bytes)?,
            _ => self.shared(bytes)?,
        };
        fill(body.bytes_mut())?;
        Ok(Bytes::from_owner(body))
    }

    /// [`Self::receive`] for the body of a chunk. The body of an encoded chunk lies outside the
    /// shared blocks, since nothing refers to it once it is decoded.
    ///
    /// # Errors
    /// Those of [`Self::receive`].
    pub(crate) fn receive_chunk<E: From<NoMemory>>(
        &mut self,
        header: &Header,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Bytes, E> {
        let bytes = header.body_bytes as usize;
        match is_encoded(header) {
            true => Self::default().receive(bytes, fill),
            false => self.receive(bytes, fill),
        }
    }

    /// A part of the current block, or of the next.
    fn shared(&mut self, bytes: usize) -> Result<Body, NoMemory> {
        let part = self.current.as_mut().and_then(|current| current.part(bytes));
        let body = match part {
            Some(part) => part,
            None => {
                let mut next = BlockCursor::new(self.next_block(bytes)?);
                let part = next.first(bytes)?;
                self.current = Some(next);
                part
            }
        };
        let is_due =
            self.current.as_ref().is_some_and(|current| current.used > current.block.bytes() / 4);
        if is_due && self.next.is_none() && *TOUCHES_AHEAD {
            self.prepare_next();
        }
        Ok(body)
    }

    fn next_block(&mut self, bytes: usize) -> Result<Arc<Block>, NoMemory> {
        match self.next.take().filter(|next| bytes <= next.bytes()) {
            Some(next) => Ok(next),
            None => Ok(Arc::new(take(bytes.max(self.block_bytes))?)),
        }
    }

    /// Takes the next block and starts a thread that touches its pages. If that fails, the reader
    /// touches them itself.
    fn prepare_next(&mut self) {
        if let Ok(block) = take(self.block_bytes) {
            let block = Arc::new(block);
            let touched = block.clone();
            let thread = std::thread::Builder::new()
                .name("dray-touch".to_owned())
                .spawn(move || touched.touch());
            self.next = thread.is_ok().then_some(block);
        }
    }
}

/// Memory for the columns of one chunk: the blocks of a table, or one block for the chunk.
pub(crate) struct Columns<'a> {
    arena: &'a mut Arena,
    decoded_bytes: u64,
    is_small: bool,
    takes_plain: bool,
    own: Option<BlockCursor>,
}

impl BufferSource for Columns<'_> {
    fn buffer(&mut self, bytes: usize) -> Option<Box<dyn BufferSlice>> {
        if self.is_small || bytes == 0 {
            return None;
        }
        // The heap has what the system refuses and what does not fit into the chunk's block.
        let body = match self.arena.block_bytes {
            0 => {
                if self.own.is_none() {
                    let block =
                        take(usize::try_from(self.decoded_bytes).ok()?.checked_add(GAPS_BYTES)?)
                            .ok()?;
                    self.own = Some(BlockCursor::new(Arc::new(block)));
                }
                self.own.as_mut()?.part(bytes)?
            }
            _ => self.arena.shared(bytes).ok()?,
        };
        Some(Box::new(body))
    }

    fn copies_plain(&self) -> bool {
        self.takes_plain
    }
}

/// A block that is handed out front to back.
#[derive(Debug)]
struct BlockCursor {
    block: Arc<Block>,
    /// Bytes handed out; at most the block's.
    used: usize,
}

impl BlockCursor {
    fn new(block: Arc<Block>) -> Self {
        Self { block, used: 0 }
    }

    /// The first part of a block that was taken for it.
    ///
    /// # Errors
    /// When the block is too small.
    fn first(&mut self, bytes: usize) -> Result<Body, NoMemory> {
        self.part(bytes).ok_or(NoMemory { bytes })
    }

    /// The next part of the block; None if it does not fit.
    fn part(&mut self, bytes: usize) -> Option<Body> {
        let start = self.used;
        let end = start.checked_add(bytes).filter(|end| *end <= self.block.bytes())?;
        self.used = end.next_multiple_of(ALIGNMENT).min(self.block.bytes());
        debug_assert!(start.is_multiple_of(ALIGNMENT) && end <= self.used);
        Some(Body { block: self.block.clone(), start, bytes })
    }
}

/// A part of a block that nothing else refers to: a chunk's body, or a buffer of a column.
///
/// `start + bytes` is within the block. [`BlockCursor::part`], which makes bodies, hands out each
/// range once, and a block returns to the pool only when no body refers to it.
struct Body {
    block: Arc<Block>,
    start: usize,
    bytes: usize,
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the range is within the block, which lives as long as `self` and whose bytes are
        // all initialized (`Block::pointer`). No other body has the range, and while `self` is
        // borrowed `bytes_mut` can't write to it.
        unsafe { std::slice::from_raw_parts(self.block.pointer().add(self.start), self.bytes) }
    }
}

// SAFETY: `bytes_mut` and `into_bytes` both give the range of this body, which no other body has,
// so its bytes stay as `bytes_mut` left them.
unsafe impl BufferSlice for Body {
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the range is within the block, which lives as long as `self` and whose bytes are
        // all initialized (`Block::pointer`). No other body has the range, and `self` is borrowed
        // exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.block.pointer().add(self.start), self.bytes) }
    }

    fn into_bytes(self: Box<Self>) -> Bytes {
        Bytes::from_owner(*self)
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    fn receive(arena: &mut Arena, bytes: usize, value: u8) -> Bytes {
        arena
            .receive(bytes, |to| {
                to.fill(value);
                Ok::<_, NoMemory>(())
            })
            .unwrap()
    }

    #[test]
    fn a_stream_uses_its_blocks_again() {
        let mut arena = Arena::default();
        let first = receive(&mut arena, 100_000, 1);
        let address = first.as_ptr();
        let second = receive(&mut arena, 100_000, 2);
        assert_ne!(address, second.as_ptr());
        drop(first);
        assert_eq!(receive(&mut arena, 120_000, 3).as_ptr(), address);
        assert!(second.iter().all(|byte| *byte == 2));
    }

    #[test]
    fn a_table_packs_bodies_into_blocks() {
        let mut arena = Arena::default();
        arena.set_block_bytes(4 << 20);
        let bodies: Vec<Bytes> = (0..100).map(|i| receive(&mut arena, 100_001, i)).collect();
        for (i, body) in bodies.iter().enumerate() {
            assert_eq!(body.as_ptr() as usize % ALIGNMENT, 0);
            assert!(body.iter().all(|byte| usize::from(*byte) == i));
        }
    }

    fn header(body_bytes: u32, decoded_bytes: u64) -> Header {
        Header {
            sequence: 0,
            rows: 1,
            descriptor_bytes: 0,
            body_bytes,
            checksum: None,
            jumbo: false,
            decoded_bytes,
            states: 0,
        }
    }

    /// Two buffers of a chunk's columns, full of a value.
    fn decode(arena: &mut Arena, header: &Header, value: u8) -> Option<[Bytes; 2]> {
        let mut columns = arena.columns(header);
        let mut buffer = || {
            let mut piece = columns.buffer(600_001)?;
            piece.bytes_mut().fill(value);
            Some(piece.into_bytes())
        };
        Some([buffer()?, buffer()?])
    }

    #[test]
    fn the_columns_of_a_chunk_share_a_block() {
        let chunk = header(500_000, 1_200_002);
        let mut arena = Arena::default();
        let first = decode(&mut arena, &chunk, 1).unwrap();
        let second = decode(&mut arena, &chunk, 2).unwrap();
        assert!(
            first.iter().flatten().all(|byte| *byte == 1)
                && second.iter().flatten().all(|byte| *byte == 2)
        );
        let [address, after] = first.each_ref().map(|buffer| buffer.as_ptr() as usize);
        assert_eq!(
            (address % ALIGNMENT, after),
            (0, address + 600_001usize.next_multiple_of(ALIGNMENT))
        );
        // One buffer keeps the block alive.
        let [remaining, dropped] = first;
        drop(dropped);
        assert_ne!(decode(&mut arena, &chunk, 3).unwrap()[0].as_ptr() as usize, address);
        assert!(remaining.iter().all(|byte| *byte == 1));
        // What does not fit into the block (at most four times the requested size) and what is
        // small lies on the heap.
        let mut columns = arena.columns(&chunk);
        assert!(columns.buffer(1_000_000).is_some() && columns.buffer(6_000_000).is_none());
        assert!(arena.columns(&header(10_000, 100_000)).buffer(50_000).is_none());
    }

    #[test]
    fn a_table_keeps_the_columns_of_encoded_chunks_but_not_their_bodies() {
        let mut arena = Arena::default();
        arena.set_block_bytes(4 << 20);
        let (encoded, plain) = (header(500_000, 1_200_002), header(1_200_002, 1_200_002));
        // The first chunk lies on the heap, since the whole table may be that small.
        assert!(arena.columns(&encoded).buffer(600_001).is_none());
        assert!(arena.columns(&encoded).copies_plain() && !arena.columns(&plain).copies_plain());
        let columns: Vec<[Bytes; 2]> =
            (0..3).map(|i| decode(&mut arena, &encoded, i).unwrap()).collect();
        let start = columns[0][0].as_ptr() as usize;
        for (i, buffer) in columns.iter().flatten().enumerate() {
            assert_eq!(
                buffer.as_ptr() as usize,
                start + i * 600_001usize.next_multiple_of(ALIGNMENT)
            );
            assert!(buffer.iter().all(|byte| usize::from(*byte) == i / 2));
        }
        let receive = |arena: &mut Arena, header| {
            arena.receive_chunk(header, |_| Ok::<_, NoMemory>(())).unwrap()
        };
        let block = start..start + (4 << 20);
        assert!(!block.contains(&(receive(&mut arena, &encoded).as_ptr() as usize)));
        arena.set_block_bytes(0);
        assert!(!arena.columns(&encoded).copies_plain());
    }

    #[test]
    fn a_body_outlives_its_arena() {
        let mut arena = Arena::default();
        let body = receive(&mut arena, 100_000, 9);
        drop(arena);
        assert!(body.len() == 100_000 && body.iter().all(|byte| *byte == 9));
    }
}
