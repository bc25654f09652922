//! Divides the entries of all rows into buckets.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::radix;
use super::splitters::Splitters;
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::key::{KeyDifferences, KeyPacker, Packed, mask};
use crate::memory::{BlockKeys, RowLocation};
use crate::threads::in_threads;

/// The rows of a bucket, about. Its entries and their copy fit a processor's own cache.
const BUCKET_ROWS: usize = 32 << 10;
/// The entries that are sampled for each bucket.
const BUCKET_SAMPLES: usize = 32;
/// The keys that are packed at a time.
const PACKED_ROWS: usize = 512;
/// A thread allocates this many entries of a bucket at a time.
const CHUNK_ENTRIES: usize = 512;

/// What of a row is in its entry: the packed key, the number of its block, and its row there.
#[derive(Debug)]
pub(super) struct EntryLayout {
    packer: KeyPacker,
    /// The bits of a row in its block.
    row_bits: u32,
    /// The bits of block and row; 0 if entries have no location.
    location_bits: u32,
}

impl EntryLayout {
    /// A layout for `blocks` blocks of up to `block_rows` rows. If `needs_locations` is false,
    /// entries have locations only where there is room for them.
    ///
    /// `None` if an entry does not fit an integer.
    pub fn new(
        differences: &KeyDifferences,
        blocks: usize,
        block_rows: usize,
        needs_locations: bool,
    ) -> Option<Self> {
        let bits = |end: usize| usize::BITS - end.saturating_sub(1).leading_zeros();
        let row_bits = bits(block_rows);
        let location_bits = bits(blocks) + row_bits;
        let packer = KeyPacker::new(differences)?;
        let fits = |location_bits: u32, bits: u32| packer.bits() + location_bits <= bits;
        let location_bits = match needs_locations {
            false if fits(0, u64::BITS) && !fits(location_bits, u64::BITS) => 0,
            false if !fits(location_bits, u128::BITS) => 0,
            _ => location_bits,
        };
        fits(location_bits, u128::BITS).then_some(Self { packer, row_bits, location_bits })
    }

    fn bits(&self) -> u32 {
        self.packer.bits() + self.location_bits
    }

    /// The bytes of an entry.
    pub fn entry_bytes(&self) -> usize {
        if self.bits() <= u64::BITS { size_of::<u64>() } else { size_of::<u128>() }
    }

    /// Replaces `entries` by those of rows of a block, from row `row` on, with these keys.
    fn pack<P: Packed>(&self, keys: &[u8], block: usize, row: usize, entries: &mut [P]) {
        self.packer.pack(keys, entries);
        if self.location_bits > 0 {
            let first = (block as u64) << self.row_bits | row as u64;
            for (location, entry) in (first..).zip(entries) {
                *entry = entry.append(self.location_bits, location);
            }
        }
    }

    #[inline(always)]
    fn location<P: Packed>(&self, entry: P) -> RowLocation {
        let location = entry.low() & mask(self.location_bits);
        RowLocation {
            block: (location >> self.row_bits) as u32,
            row: (location & mask(self.row_bits)) as u32,
        }
    }
}

/// Entries in buckets, each of which is sorted when it is taken.
pub(super) trait Buckets: fmt::Debug + Send + Sync {
    /// The number of buckets.
    fn len(&self) -> usize;

    /// The number of entries of a bucket.
    fn rows(&self, bucket: usize) -> usize;

    /// Takes the entries of buckets that follow each other, and sorts them.
    fn take_sorted(&self, buckets: Range<usize>, cancel: &Cancel)
    -> Result<Box<dyn SortedEntries>>;
}

/// Sorted entries.
pub(super) trait SortedEntries: fmt::Debug + Send {
    fn len(&self) -> usize;

    /// Replaces `keys` by the keys of entries, one after the other.
    fn keys(&self, entries: Range<usize>, keys: &mut Vec<u8>);

    /// Replaces `locations` by the locations of entries.
    fn locations(&self, entries: Range<usize>, locations: &mut Vec<RowLocation>);
}

/// The memory that entries of `rows` rows take beyond their own bytes while `threads` threads sort
/// them.
pub(super) fn overhead_bytes(rows: usize, threads: usize, entry_bytes: usize) -> usize {
    // Chunks that are not full, and a bucket with its copy.
    let chunks = bucket_count(rows) * CHUNK_ENTRIES;
    threads * (chunks + 2 * BUCKET_ROWS) * entry_bytes
}

fn bucket_count(rows: usize) -> usize {
    rows.div_ceil(BUCKET_ROWS).max(1)
}

/// Divides rows into buckets, with up to `threads` threads. `keys` has the keys of each block, in
/// the order in which rows with equal keys come.
pub(super) fn divide(
    keys: &[BlockKeys],
    key_bytes: usize,
    layout: EntryLayout,
    threads: usize,
    cancel: &Cancel,
) -> Result<Box<dyn Buckets>> {
    let divide = Divide { blocks: keys, key_bytes, threads, cancel };
    if layout.bits() <= u64::BITS { divide.run::<u64>(layout) } else { divide.run::<u128>(layout) }
}

/// The entries of a bucket, in chunks. Those with equal keys are in the order of the input.
type Bucket<P> = Vec<Vec<P>>;

struct Divide<'a> {
    blocks: &'a [BlockKeys],
    key_bytes: usize,
    threads: usize,
    cancel: &'a Cancel,
}

impl Divide<'_> {
    fn run<P: Packed>(&self, layout: EntryLayout) -> Result<Box<dyn Buckets>> {
        let samples = self.samples(&layout);
        let splitters: Splitters<P> =
            Splitters::new(samples, bucket_count(self.rows()), layout.bits());
        let count = splitters.buckets();
        let parts = self.parts();
        let scatter = |part| self.scatter(part, &layout, &splitters);
        let scattered = in_threads("dray-scatter", "to sort", parts, scatter)?;
        let mut buckets: Vec<Bucket<P>> = vec![Vec::new(); count];
        for of_thread in scattered {
            debug_assert_eq!(of_thread.len(), count, "each thread has a part of each bucket");
            buckets.iter_mut().zip(of_thread).for_each(|(bucket, chunks)| bucket.extend(chunks));
        }
        let rows = |bucket: &Bucket<P>| bucket.iter().map(Vec::len).sum();
        Ok(Box::new(EntryBuckets {
            rows: buckets.iter().map(rows).collect(),
            layout: Arc::new(layout),
            buckets: buckets.into_iter().map(Mutex::new).collect(),
        }))
    }

    fn rows(&self) -> usize {
        self.blocks.iter().map(BlockKeys::len).sum()
    }

    /// Entries at even distances.
    fn samples<P: Packed>(&self, layout: &EntryLayout) -> Vec<P> {
        let step = (self.rows() / (bucket_count(self.rows()) * BUCKET_SAMPLES)).max(1);
        let mut samples = Vec::with_capacity(self.rows() / step + self.blocks.len());
        let mut skipped = 0;
        for (number, block) in self.blocks.iter().enumerate() {
            let keys = block.parts().0.chunks_exact(self.key_bytes).enumerate();
            samples.extend(keys.skip(skipped).step_by(step).map(|(row, key)| {
                let mut entry = [P::default()];
                layout.pack(key, number, row, &mut entry);
                entry[0]
            }));
            // The next sample is `step` rows after the last one, in whichever block.
            skipped = match block.len().checked_sub(skipped) {
                Some(rest) => (step - rest % step) % step,
                None => skipped - block.len(),
            };
        }
        samples
    }

    /// Blocks for each thread, with about as many rows. Few rows are not worth a thread.
    fn parts(&self) -> Vec<Range<usize>> {
        let threads = self.threads.clamp(1, bucket_count(self.rows()));
        let rows_each = self.rows().div_ceil(threads).max(1);
        let (mut parts, mut from, mut rows) = (Vec::new(), 0, 0);
        for (number, block) in self.blocks.iter().enumerate() {
            rows += block.len();
            if rows >= rows_each || number + 1 == self.blocks.len() {
                parts.push(from..number + 1);
                (from, rows) = (number + 1, 0);
            }
        }
        parts
    }

    /// Puts the entries of some blocks into buckets.
    fn scatter<P: Packed>(
        &self,
        blocks: Range<usize>,
        layout: &EntryLayout,
        splitters: &Splitters<P>,
    ) -> Result<Vec<Bucket<P>>> {
        let mut full: Vec<Bucket<P>> = vec![Vec::new(); splitters.buckets()];
        let mut chunks: Vec<Vec<P>> = vec![Vec::new(); splitters.buckets()];
        let mut entries = [P::default(); PACKED_ROWS];
        for number in blocks {
            self.cancel.check()?;
            let keys = self.blocks[number].parts().0.chunks(PACKED_ROWS * self.key_bytes);
            for (keys, row) in keys.zip((0..).step_by(PACKED_ROWS)) {
                let entries = &mut entries[..keys.len() / self.key_bytes];
                layout.pack(keys, number, row, entries);
                for entry in entries {
                    let bucket = splitters.bucket(*entry);
                    let chunk = &mut chunks[bucket];
                    if chunk.len() == chunk.capacity() {
                        next_chunk(chunk, &mut full[bucket]);
                    }
                    chunk.push(*entry);
                }
            }
        }
        for (full, last) in full.iter_mut().zip(chunks) {
            full.push(last);
        }
        Ok(full)
    }
}

#[cold]
fn next_chunk<P>(chunk: &mut Vec<P>, full: &mut Bucket<P>) {
    full.push(std::mem::replace(chunk, Vec::with_capacity(CHUNK_ENTRIES)));
}

#[derive(Debug)]
struct EntryBuckets<P> {
    layout: Arc<EntryLayout>,
    /// The number of entries of each bucket.
    rows: Vec<usize>,
    /// The buckets, until they are taken.
    buckets: Vec<Mutex<Bucket<P>>>,
}

impl<P: Packed> Buckets for EntryBuckets<P> {
    fn len(&self) -> usize {
        self.buckets.len()
    }

    fn rows(&self, bucket: usize) -> usize {
        self.rows[bucket]
    }

    fn take_sorted(
        &self,
        buckets: Range<usize>,
        cancel: &Cancel,
    ) -> Result<Box<dyn SortedEntries>> {
        let rows = self.rows[buckets.clone()].iter().sum();
        let mut all = Vec::with_capacity(rows);
        let (mut entries, mut scratch) = (Vec::new(), Vec::new());
        for bucket in &self.buckets[buckets] {
            cancel.check()?;
            let parts = std::mem::take(&mut *bucket.lock().unwrap_or_else(PoisonError::into_inner));
            entries.clear();
            parts.into_iter().for_each(|part| entries.extend_from_slice(&part));
            radix::sort(&mut entries, &mut scratch, self.layout.location_bits);
            all.extend_from_slice(&entries);
        }
        if all.len() != rows {
            return Err(Error::missing("an entry of a bucket"));
        }
        debug_assert!(all.is_sorted());
        Ok(Box::new(Entries { layout: self.layout.clone(), entries: all }))
    }
}

#[derive(Debug)]
struct Entries<P> {
    layout: Arc<EntryLayout>,
    entries: Vec<P>,
}

impl<P: Packed> SortedEntries for Entries<P> {
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn keys(&self, entries: Range<usize>, keys: &mut Vec<u8>) {
        self.layout.packer.unpack(&self.entries[entries], self.layout.location_bits, keys);
    }

    fn locations(&self, entries: Range<usize>, locations: &mut Vec<RowLocation>) {
        locations.clear();
        locations.extend(self.entries[entries].iter().map(|entry| self.layout.location(*entry)));
    }
}
