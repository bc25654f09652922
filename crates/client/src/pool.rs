//! Memory that chunks are received and decoded into.
//!
//! Touching fresh memory costs more than filling it: a page fault and 4 KiB of zeros for every 4
//! KiB. So the memory is in large blocks backed by huge pages, a block whose arrays are all gone is
//! used again, and while a table fills one block, a thread touches the next.
//!
//! ```text
//!   block │ body of chunk 1 │ body of chunk 2 │ … │ free │     a table: many bodies a block, kept as long as any array
//!   block │ body of chunk 7 │ free │                          a stream: one body a block, free again when dropped
//!
//!   block │ columns of chunk 1 │ columns of chunk 2 │ … │     a table of encoded chunks: their bodies are elsewhere, and are
//!                                                             dropped when their columns are decoded
//!   block │ columns of chunk 7 │ free │                       a stream
//! ```
//!
//! Free blocks are the process's. They stay for a second, and the system may take their pages
//! sooner if it needs them.

#![allow(
    unsafe_code,
    reason = "blocks are mapped from the system and written through raw pointers"
)]

use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use dray_format::{BufferSlice, BufferSource, Header};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Blocks are whole huge pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Smaller bodies come from the heap: clearing a huge page takes longer than a small result.
const SMALL_BODY_BYTES: usize = 64 << 10;
/// So do the columns of a table's first chunks, until they decode to so many bytes.
const SMALL_TABLE_BYTES: u64 = HUGE_PAGE_BYTES as u64;
/// And those of a stream's chunk that decodes to fewer: it would have a huge page to itself.
const SMALL_CHUNK_BYTES: u64 = SMALL_TABLE_BYTES / 2;
/// So much more than what a chunk decodes to has room for the gaps between its columns' buffers.
const GAPS_BYTES: usize = 64 << 10;
/// Bodies start at multiples of this: the chunk's own alignment.
const ALIGNMENT: usize = 64;
/// How long a free block waits to be used again.
const LINGER: Duration = Duration::from_secs(1);

/// Free blocks beyond so many bytes are offered to the system meanwhile.
const HELD_BYTES: usize = 32 << 20;

/// Whether there is a processor for the thread that touches the next block.
static TOUCHES_AHEAD: LazyLock<bool> =
    LazyLock::new(|| std::thread::available_parallelism().is_ok_and(|threads| threads.get() > 1));

/// The free blocks of the process.
static FREE: Mutex<Free> = Mutex::new(Free { blocks: Vec::new(), has_sweeper: false });

struct Free {
    /// Each with the moment it became free, the latest last.
    blocks: Vec<(Instant, Mapping)>,
    /// A thread waits to give back those that were not wanted.
    has_sweeper: bool,
}

fn free() -> MutexGuard<'static, Free> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A block of at least so many bytes: the one that was freed last, if one fits.
fn take(bytes: usize) -> io::Result<Block> {
    // A block much larger than what it holds would be wasted on it.
    let fits = |mapping: &Mapping| {
        mapping.bytes >= bytes && mapping.bytes <= (4 * bytes).max(HUGE_PAGE_BYTES)
    };
    let mut free = free();
    let mapping = match free.blocks.iter().rposition(|(_, mapping)| fits(mapping)) {
        Some(at) => free.blocks.remove(at).1,
        None => Mapping::new(bytes)?,
    };
    Ok(Block(Some(mapping)))
}

fn give_back(mapping: Mapping) {
    let mut free = free();
    if free.blocks.iter().map(|(_, mapping)| mapping.bytes).sum::<usize>() >= HELD_BYTES {
        mapping.offer_to_system();
    }
    free.blocks.push((Instant::now(), mapping));
    if !free.has_sweeper {
        // Without a thread to give them back, free blocks go at once.
        match std::thread::Builder::new().name("dray-sweep".to_owned()).spawn(sweep) {
            Ok(_) => free.has_sweeper = true,
            Err(_) => free.blocks.clear(),
        }
    }
}

fn sweep() {
    loop {
        std::thread::sleep(LINGER);
        let mut free = free();
        let unwanted = free.blocks.partition_point(|(since, _)| since.elapsed() >= LINGER);
        let unwanted: Vec<_> = free.blocks.drain(..unwanted).collect();
        free.has_sweeper = !free.blocks.is_empty();
        let done = !free.has_sweeper;
        drop(free);
        // Unmapping takes its time, in which others may want a block.
        drop(unwanted);
        if done {
            return;
        }
    }
}

/// Whether most of what this chunk decodes to is not in its body as it is.
pub(crate) fn is_encoded(header: &Header) -> bool {
    u64::from(header.body_bytes) < header.decoded_bytes / 4 * 3
}

/// Receives bodies one after the other.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    /// Bodies share blocks of this size; with 0 each has its own.
    block_bytes: usize,
    current: Option<Filling>,
    /// What was decoded so far, in bytes.
    decoded_bytes: u64,
    /// The block after the current one, whose pages a thread touches meanwhile.
    next: Option<Arc<Block>>,
}

impl Arena {
    /// Whether the bodies will be kept together (a table) or dropped one by one (a stream).
    pub(crate) fn set_block_bytes(&mut self, block_bytes: usize) {
        self.block_bytes = block_bytes;
    }

    /// The size of the blocks that bodies share; 0 if each has its own.
    pub(crate) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Memory for the columns of a chunk. In a table plain columns of an encoded chunk are copied,
    /// so that they don't keep its body.
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

    /// Some bytes, as a body.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> io::Result<Bytes> {
        self.receive(bytes.len(), |room| {
            room.copy_from_slice(bytes);
            Ok(())
        })
    }

    /// Room for a body of `bytes` bytes, filled by `fill`.
    pub(crate) fn receive<E: From<io::Error>>(
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
            0 => Filling::new(Arc::new(take(bytes)?)).first(bytes)?,
            _ => self.shared(bytes)?,
        };
        fill(body.bytes_mut())?;
        Ok(Bytes::from_owner(body))
    }

    /// As [`Self::receive`], for the body of a chunk: if this is encoded, its body is in no block
    /// that a table keeps.
    pub(crate) fn receive_chunk<E: From<io::Error>>(
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

    /// A part of the block that is being filled, or of the next.
    fn shared(&mut self, bytes: usize) -> io::Result<Body> {
        let part = self.current.as_mut().and_then(|current| current.part(bytes));
        let body = match part {
            Some(part) => part,
            None => {
                let mut next = Filling::new(self.next_block(bytes)?);
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

    fn next_block(&mut self, bytes: usize) -> io::Result<Arc<Block>> {
        match self.next.take().filter(|next| bytes <= next.bytes()) {
            Some(next) => Ok(next),
            None => Ok(Arc::new(take(bytes.max(self.block_bytes))?)),
        }
    }

    /// Takes the block that will be next, and has its pages touched. Where that can't be done, the
    /// reader touches them.
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

/// Where the buffers of a chunk's columns go: into the block that a table fills, or one for the
/// chunk.
pub(crate) struct Columns<'a> {
    arena: &'a mut Arena,
    decoded_bytes: u64,
    is_small: bool,
    takes_plain: bool,
    own: Option<Filling>,
}

impl BufferSource for Columns<'_> {
    fn buffer(&mut self, bytes: usize) -> Option<Box<dyn BufferSlice>> {
        if self.is_small || bytes == 0 {
            return None;
        }
        // What can't be had from the system, or finds no room in the chunk's block, is on the heap.
        let body = match self.arena.block_bytes {
            0 => {
                if self.own.is_none() {
                    let block =
                        take(usize::try_from(self.decoded_bytes).ok()?.checked_add(GAPS_BYTES)?)
                            .ok()?;
                    self.own = Some(Filling::new(Arc::new(block)));
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

/// A block, and how much of it is handed out.
#[derive(Debug)]
struct Filling {
    block: Arc<Block>,
    used: usize,
}

impl Filling {
    fn new(block: Arc<Block>) -> Self {
        Self { block, used: 0 }
    }

    /// The first part of a block that was taken for it.
    fn first(&mut self, bytes: usize) -> io::Result<Body> {
        self.part(bytes).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// The next part of the block, if it is as large.
    fn part(&mut self, bytes: usize) -> Option<Body> {
        let start = self.used;
        let end = start.checked_add(bytes).filter(|end| *end <= self.block.bytes())?;
        self.used = end.next_multiple_of(ALIGNMENT).min(self.block.bytes());
        Some(Body { block: self.block.clone(), start, bytes })
    }
}

/// A part of a block, which nobody else has: a chunk's body, or a buffer of a column.
struct Body {
    block: Arc<Block>,
    start: usize,
    bytes: usize,
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the range is within the block: `Filling::part` has checked it. It hands out each
        // range once, a block becomes free only when no body refers to it any more, and it stays
        // mapped as long. The mapping is zeroed or holds old bytes: initialised either way.
        unsafe { std::slice::from_raw_parts(self.block.pointer().add(self.start), self.bytes) }
    }
}

// SAFETY: both functions speak of the range that the body has to itself.
unsafe impl BufferSlice for Body {
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_ref`, and nobody else has this body.
        unsafe { std::slice::from_raw_parts_mut(self.block.pointer().add(self.start), self.bytes) }
    }

    fn into_bytes(self: Box<Self>) -> Bytes {
        Bytes::from_owner(*self)
    }
}

/// A mapping that goes back to the free ones. It is always there until then.
#[derive(Debug)]
struct Block(Option<Mapping>);

impl Block {
    fn pointer(&self) -> *mut u8 {
        self.0.as_ref().map_or(NonNull::dangling().as_ptr(), |mapping| mapping.start.as_ptr())
    }

    fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |mapping| mapping.bytes)
    }

    fn touch(&self) {
        #[cfg(target_os = "linux")]
        if let Some(mapping) = &self.0 {
            // SAFETY: the mapping lives as long as `self`. Its pages are made present, and keep
            // what is in them.
            let _ = unsafe {
                madvise(mapping.start.as_ptr().cast(), mapping.bytes, Advice::LinuxPopulateWrite)
            };
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(mapping) = self.0.take() {
            give_back(mapping);
        }
    }
}

/// Anonymous memory from the system, on huge pages where it gives them.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping is plain memory, owned by this value alone.
unsafe impl Send for Mapping {}
// SAFETY: nothing is written through a shared mapping but by a `Body`, to the range that nobody
// else has.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(bytes: usize) -> io::Result<Self> {
        let bytes =
            bytes.checked_next_multiple_of(HUGE_PAGE_BYTES).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new anonymous mapping touches no existing memory.
        let start = unsafe {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            mmap_anonymous(std::ptr::null_mut(), bytes, access, MapFlags::PRIVATE)?
        };
        #[cfg(target_os = "linux")]
        // SAFETY: advice about the mapping that was just made. Best effort.
        let _ = unsafe { madvise(start, bytes, Advice::LinuxHugepage) };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    /// Lets the system take the pages when it needs some; they then read as zeros. A page that is
    /// written first stays.
    fn offer_to_system(&self) {
        #[cfg(target_os = "linux")]
        // SAFETY: nobody refers to what is in the mapping any more, and both old bytes and zeros
        // are initialised.
        let _ = unsafe { madvise(self.start.as_ptr().cast(), self.bytes, Advice::LinuxFree) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this size, and no body refers to it: each
        // holds its block. It can't fail: these are the bounds of a mapping.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(arena: &mut Arena, bytes: usize, value: u8) -> Bytes {
        arena
            .receive(bytes, |room| {
                room.fill(value);
                io::Result::Ok(())
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
        // One of them keeps the block.
        let [kept, dropped] = first;
        drop(dropped);
        assert_ne!(decode(&mut arena, &chunk, 3).unwrap()[0].as_ptr() as usize, address);
        assert!(kept.iter().all(|byte| *byte == 1));
        // What does not fit into the block (it has at most four times the size), and what is small,
        // is on the heap.
        let mut columns = arena.columns(&chunk);
        assert!(columns.buffer(1_000_000).is_some() && columns.buffer(6_000_000).is_none());
        assert!(arena.columns(&header(10_000, 100_000)).buffer(50_000).is_none());
    }

    #[test]
    fn a_table_keeps_the_columns_of_encoded_chunks_but_not_their_bodies() {
        let mut arena = Arena::default();
        arena.set_block_bytes(4 << 20);
        let (encoded, plain) = (header(500_000, 1_200_002), header(1_200_002, 1_200_002));
        // The first chunk is on the heap: the whole table might be as small.
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
            arena.receive_chunk(header, |_| io::Result::Ok(())).unwrap()
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
