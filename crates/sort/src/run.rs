//! Runs on disk: sorted rows as pages, each followed by the keys and tags of its rows.
//!
//! ```text
//! ┌──────────┬──────┬──────┬──────┬──────────┬──────┬─ ─
//! │ page     │ tags │ ends │ keys │ page     │ tags │         one behind the other in a file without a name
//! └──────────┴──────┴──────┴──────┴──────────┴──────┴─ ─
//! ```
//!
//! A page is written as it is, with its checksum. Where blocks lie, how many bytes they have and the checksum of what follows the page is kept in memory. Keys are
//! written because making them again would need the columns that the rows have no more.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dray_format::{Batch, crc32c};
use dray_page::{Layout, Object, PageBuilder, Rooms, VerifiedPage};

use crate::block::BlockKeys;
use crate::cursor::End;
use crate::cutoff::{BOUND_BYTES, cut};
use crate::error::{Error, Result};
use crate::sorter::Plan;

/// So many runs share a file, since a process may not have many open.
const RUNS_A_FILE: usize = 8;

/// Where runs are written.
#[derive(Debug)]
pub(crate) struct Spill {
    folder: PathBuf,
    bytes_max: u64,
    /// Bytes that are on disk now, and all that were ever written.
    bytes: Arc<AtomicU64>,
    written: Arc<AtomicU64>,
    file: Option<Arc<SpillFile>>,
    runs_in_file: usize,
}

/// A file without a name, which is gone when the last of its runs is.
#[derive(Debug)]
pub(crate) struct SpillFile {
    file: File,
    len: AtomicU64,
    spilled: Arc<AtomicU64>,
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        self.spilled.fetch_sub(*self.len.get_mut(), Ordering::Relaxed);
    }
}

impl Spill {
    pub fn new(folder: PathBuf, bytes_max: u64, written: Arc<AtomicU64>) -> Self {
        Self { folder, bytes_max, bytes: Arc::default(), written, file: None, runs_in_file: 0 }
    }

    /// The file for the next run.
    pub fn begin(&mut self) -> Result<Arc<SpillFile>> {
        let file = match self.file.take().filter(|_| self.runs_in_file < RUNS_A_FILE) {
            Some(file) => file,
            None => {
                self.runs_in_file = 0;
                let file = tempfile::tempfile_in(&self.folder).map_err(Error::spill("create"))?;
                Arc::new(SpillFile { file, len: AtomicU64::new(0), spilled: self.bytes.clone() })
            }
        };
        self.runs_in_file += 1;
        self.file = Some(file.clone());
        Ok(file)
    }

    /// Begins a run, or a part of one: several may be written to a file side by side.
    pub fn writer(&self, file: &Arc<SpillFile>, plan: &Plan) -> Result<RunWriter> {
        let key_width = plan.encoder.width();
        Ok(RunWriter {
            page_bytes: plan.page_bytes,
            builder: PageBuilder::within(plan.layout.clone(), plan.stock.rooms(), true)?,
            run: Run {
                file: file.clone(),
                key_width,
                blocks: Vec::new(),
                last: Box::default(),
                tags: [0; 2],
                rows: 0,
                block_bytes_max: 0,
            },
            keys: BlockKeys::new(key_width),
            tags: Vec::new(),
            bytes_max: self.bytes_max,
            written: self.written.clone(),
        })
    }

    /// Forgets the file that the next run would have gone to, so that it goes when its runs do.
    pub fn close_file(&mut self) {
        self.file = None;
    }
}

/// A run under construction.
pub(crate) struct RunWriter {
    page_bytes: usize,
    builder: PageBuilder,
    run: Run,
    keys: BlockKeys,
    tags: Vec<u8>,
    bytes_max: u64,
    written: Arc<AtomicU64>,
}

impl RunWriter {
    /// Appends a row that is not less than the one before.
    pub fn push(&mut self, object: Object<'_>, key: &[u8], tag: u64) -> Result<()> {
        // Keys may be larger than their rows, of which a missing list of a fixed size takes nothing; a block is not to be larger for that.
        if self.keys.bytes() + self.tags.len() + key.len() > self.page_bytes {
            self.close_page()?;
        }
        self.builder.copy(object)?;
        while let Some(page) = self.builder.pop() {
            self.write(&page)?;
        }
        self.put_key(key, tag)
    }

    /// Appends the rows of a batch, none of which is less than the one before, with the key and the tag of each.
    pub fn append<'k>(&mut self, batch: &Batch, key: impl Fn(usize) -> Option<(&'k [u8], u64)>) -> Result<()> {
        let measured = self.builder.measure(batch)?;
        let mut from = 0;
        while from < batch.rows {
            let mut bytes = self.keys.bytes() + self.tags.len();
            let fits = |row: &usize| {
                bytes += key(*row).map_or(0, |(key, _)| key.len() + size_of::<u64>());
                bytes <= self.page_bytes
            };
            let mut count = (from..batch.rows).take_while(fits).count();
            if count == 0 {
                self.close_page()?;
                count = 1;
            }
            self.builder.append_rows(&measured, from..from + count)?;
            let mut keys = (from..from + count).filter_map(&key);
            while let Some(page) = self.builder.pop() {
                for (key, tag) in keys.by_ref().take(page.len() - self.keys.len()) {
                    self.put_key(key, tag)?;
                }
                self.write(&page)?;
            }
            keys.try_for_each(|(key, tag)| self.put_key(key, tag))?;
            from += count;
        }
        Ok(())
    }

    fn put_key(&mut self, key: &[u8], tag: u64) -> Result<()> {
        self.tags.extend_from_slice(&tag.to_le_bytes());
        self.keys.push(key)
    }

    pub fn finish(mut self) -> Result<Run> {
        self.close_page()?;
        Ok(self.run)
    }

    fn close_page(&mut self) -> Result<()> {
        self.builder.finish().iter().try_for_each(|page| self.write(page))
    }

    fn write(&mut self, page: &VerifiedPage) -> Result<()> {
        let (ends, keys) = self.keys.parts();
        let parts = [&self.tags[..], &ends, keys];
        let first = self.keys.get(0);
        let mut meta = BlockMeta {
            bound: cut(first).into(),
            at: 0,
            page_bytes: page.bytes().len(),
            rows: page.len(),
            key_bytes: keys.len(),
            checksum: parts.iter().fold(0, |checksum, part| crc32c(checksum, part)),
        };
        let bytes = meta.bytes(self.run.key_width);
        let spilled = self.run.file.spilled.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        // Counted at once, so that the file gives back what was counted.
        meta.at = self.run.file.len.fetch_add(bytes as u64, Ordering::Relaxed);
        if spilled > self.bytes_max {
            return Err(Error::SpillLimit { spill_bytes_max: self.bytes_max });
        }
        let mut at = meta.at;
        for part in [&page.bytes()[..], &parts.concat()] {
            self.run.file.file.write_all_at(part, at).map_err(Error::spill("write"))?;
            at += part.len() as u64;
        }
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
        let tags = self.tags.as_chunks().0;
        let [first, last] = [tags.first(), tags.last()].map(|tag| tag.map_or(0, |tag| u64::from_le_bytes(*tag)));
        self.run.tags = [if self.run.rows > 0 { self.run.tags[0] } else { first }, last];
        self.run.rows += meta.rows as u64;
        self.run.last = cut(self.keys.get(meta.rows.saturating_sub(1))).into();
        self.run.block_bytes_max = self.run.block_bytes_max.max(bytes + ends.len());
        self.run.blocks.push(meta);
        self.keys = BlockKeys::new(self.run.key_width);
        self.tags.clear();
        Ok(())
    }
}

/// Sorted rows on disk.
#[derive(Debug)]
pub(crate) struct Run {
    file: Arc<SpillFile>,
    key_width: Option<usize>,
    blocks: Vec<BlockMeta>,
    /// The beginning of the last row's key, and the tags of the first and the last one.
    last: Box<[u8]>,
    tags: [u64; 2],
    rows: u64,
    block_bytes_max: usize,
}

#[derive(Debug)]
struct BlockMeta {
    /// The beginning of its first key: it tells blocks apart well enough to divide a merge.
    bound: Box<[u8]>,
    at: u64,
    page_bytes: usize,
    rows: usize,
    key_bytes: usize,
    checksum: u32,
}

impl BlockMeta {
    fn tags_bytes(&self) -> usize {
        self.rows * size_of::<u64>()
    }

    fn ends_bytes(&self, key_width: Option<usize>) -> usize {
        if key_width.is_some() { 0 } else { self.rows * size_of::<u32>() }
    }

    fn bytes(&self, key_width: Option<usize>) -> usize {
        self.page_bytes + self.tags_bytes() + self.ends_bytes(key_width) + self.key_bytes
    }
}

impl Run {
    /// One run of two in the same file, of which the second one's rows are not less than the first one's.
    pub fn followed_by(mut self, next: Self) -> Self {
        if next.rows > 0 {
            let first = if self.rows > 0 { self.tags } else { next.tags };
            (self.last, self.tags) = (next.last, [first[0], next.tags[1]]);
        }
        self.blocks.extend(next.blocks);
        self.rows += next.rows;
        self.block_bytes_max = self.block_bytes_max.max(next.block_bytes_max);
        self
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// How many blocks begin with a key that is less than `bound`, which is cut as the bounds of blocks are.
    pub fn blocks_before(&self, bound: &[u8]) -> usize {
        self.blocks.partition_point(|block| *block.bound < *bound)
    }

    /// The bounds of the blocks, and how many rows each has.
    pub fn bounds(&self) -> impl Iterator<Item = (&[u8], usize)> {
        self.blocks.iter().map(|block| (&*block.bound, block.rows))
    }

    /// The first and the last row, if there are any.
    pub fn ends(&self) -> Option<[End<'_>; 2]> {
        let first = &*self.blocks.first()?.bound;
        let ends = [(first, self.tags[0]), (&*self.last, self.tags[1])];
        Some(ends.map(|(key, tag)| End { key, tag, is_whole: key.len() < BOUND_BYTES }))
    }

    /// Beginnings of keys, and how many rows more than those before are not greater.
    pub fn samples(&self) -> impl Iterator<Item = (&[u8], usize)> {
        let ends = self.blocks.iter().skip(1).map(|block| &*block.bound).chain([&*self.last]);
        ends.zip(&self.blocks).map(|(end, block)| (end, block.rows))
    }

    /// The memory that its largest block takes while it is read.
    pub fn block_bytes_max(&self) -> usize {
        self.block_bytes_max
    }

    /// Has the system begin to read a block that is wanted next: runs share files, so it can't tell by itself.
    pub fn expect(&self, number: usize) {
        #[cfg(target_os = "linux")]
        if let Some(meta) = self.blocks.get(number) {
            let bytes = std::num::NonZeroU64::new(meta.bytes(self.key_width) as u64);
            // It is read in any case.
            let _ = rustix::fs::fadvise(&self.file.file, meta.at, bytes, rustix::fs::Advice::WillNeed);
        }
    }

    /// Reads a block.
    pub fn read(&self, layout: &Arc<Layout>, rooms: &Arc<Rooms>, number: usize) -> Result<Option<RunBlock>> {
        let Some(meta) = self.blocks.get(number) else { return Ok(None) };
        let mut at = meta.at;
        let mut read = |part: &mut [u8]| -> Result<()> {
            self.file.file.read_exact_at(part, at).map_err(Error::spill("read"))?;
            at += part.len() as u64;
            Ok(())
        };
        let page = if meta.page_bytes == rooms.page_bytes() { Some(rooms.fill(&mut read)?) } else { None };
        let mut part = |bytes: usize| -> Result<Vec<u8>> {
            let mut part = vec![0; bytes];
            read(&mut part)?;
            Ok(part)
        };
        let page = match page {
            Some(page) => page,
            None => part(meta.page_bytes)?.into(),
        };
        let tags = part(meta.tags_bytes())?;
        let ends = part(meta.ends_bytes(self.key_width))?;
        let keys = part(meta.key_bytes)?;
        let found = [&tags, &ends, &keys].iter().fold(0, |checksum, part| crc32c(checksum, part));
        if found != meta.checksum {
            return Err(Error::Damaged { expected: meta.checksum, found });
        }
        let keys = BlockKeys::from_parts(self.key_width, meta.rows, &ends, keys);
        let page = VerifiedPage::verify(layout, page)?;
        Ok(Some(RunBlock { page, keys, tags }))
    }
}

/// A block of a run, and its rows' tags.
#[derive(Debug)]
pub(crate) struct RunBlock {
    pub page: VerifiedPage,
    pub keys: BlockKeys,
    tags: Vec<u8>,
}

impl RunBlock {
    /// How many rows have keys less than this; none if there is no bound.
    pub fn rows_before(&self, bound: &Option<Arc<[u8]>>) -> usize {
        bound.as_deref().map_or(0, |bound| self.keys.rows_before(bound))
    }

    /// How many rows have keys less than this; all if there is no bound.
    pub fn rows_until(&self, bound: &Option<Arc<[u8]>>) -> usize {
        bound.as_deref().map_or(self.page.len(), |bound| self.keys.rows_before(bound))
    }

    pub fn tag(&self, row: usize) -> u64 {
        self.tags.as_chunks().0.get(row).map_or(0, |tag| u64::from_le_bytes(*tag))
    }
}
