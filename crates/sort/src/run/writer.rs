//! A run on disk that is being written.

use std::sync::Arc;

use dray_format::{Batch, crc32c};
use dray_page::{Object, PageBuilder, VerifiedPage};

use super::on_disk::{BlockMeta, DiskRun};
use super::spill_file::{Extent, SpillFile, SpillStore};
use crate::context::SortContext;
use crate::error::{Error, Result};
use crate::key::key_prefix;
use crate::memory::BlockKeys;

/// A run under construction.
pub(crate) struct DiskRunWriter {
    disk: Arc<SpillStore>,
    file: Arc<SpillFile>,
    page_bytes: usize,
    builder: PageBuilder,
    run: DiskRun,
    keys: BlockKeys,
    ordinals: Vec<u8>,
    /// Memory to pack in.
    packed: Vec<u8>,
}

impl DiskRunWriter {
    /// Begins a run, or a part of one: several may be written to a file side by side.
    pub fn new(disk: Arc<SpillStore>, file: Arc<SpillFile>, context: &SortContext) -> Result<Self> {
        let key_width = context.encoder.width();
        Ok(Self {
            disk,
            file,
            page_bytes: context.page_bytes,
            builder: PageBuilder::within(context.layout.clone(), context.page_cache.rooms(), true)?,
            run: DiskRun::new(key_width),
            keys: BlockKeys::new(key_width),
            ordinals: Vec::new(),
            packed: Vec::new(),
        })
    }

    /// Appends a row that is not less than the one before.
    pub fn push(&mut self, object: Object<'_>, key: &[u8], ordinal: u64) -> Result<()> {
        // Keys may be larger than their rows, of which a missing list of a fixed size takes
        // nothing; a block is not to be larger for that.
        if self.keys.bytes() + self.ordinals.len() + key.len() > self.page_bytes {
            self.close_page()?;
        }
        self.builder.copy(object)?;
        while let Some(page) = self.builder.pop() {
            self.write(&page)?;
        }
        self.put_key(key, ordinal)
    }

    /// Appends a row whose page is on disk, and stays there.
    pub fn push_on_disk(&mut self, page: &Extent, key: &[u8], ordinal: u64) -> Result<()> {
        self.close_page()?;
        self.put_key(key, ordinal)?;
        self.end_block(page.clone(), 1, true)
    }

    /// Appends the rows of a batch, none of which is less than the one before, with the key and the
    /// ordinal of each.
    pub fn append<'k>(
        &mut self,
        batch: &Batch,
        key: impl Fn(usize) -> Result<(&'k [u8], u64)>,
    ) -> Result<()> {
        let measured = self.builder.measure(batch)?;
        let mut from = 0;
        while from < batch.rows {
            let mut bytes = self.keys.bytes() + self.ordinals.len();
            let mut count = 0;
            for row in from..batch.rows {
                bytes += key(row)?.0.len() + size_of::<u64>();
                if bytes > self.page_bytes {
                    break;
                }
                count += 1;
            }
            if count == 0 {
                self.close_page()?;
                count = 1;
            }
            self.builder.append_rows(&measured, from..from + count)?;
            let mut rows = from..from + count;
            while let Some(page) = self.builder.pop() {
                // Those that it has and that have no keys yet.
                for row in rows.by_ref().take(page.len().saturating_sub(self.keys.len())) {
                    let (key, ordinal) = key(row)?;
                    self.put_key(key, ordinal)?;
                }
                self.write(&page)?;
            }
            for row in rows {
                let (key, ordinal) = key(row)?;
                self.put_key(key, ordinal)?;
            }
            from += count;
        }
        Ok(())
    }

    fn put_key(&mut self, key: &[u8], ordinal: u64) -> Result<()> {
        self.ordinals.extend_from_slice(&ordinal.to_le_bytes());
        self.keys.push(key)
    }

    pub fn finish(mut self) -> Result<DiskRun> {
        self.close_page()?;
        if self.keys.len() > 0 {
            return Err(Error::Internal(format!(
                "{} keys belong to no page of a run",
                self.keys.len()
            )));
        }
        Ok(self.run)
    }

    fn close_page(&mut self) -> Result<()> {
        self.builder.finish().iter().try_for_each(|page| self.write(page))
    }

    fn write(&mut self, page: &VerifiedPage) -> Result<()> {
        let is_large = page.header().large;
        let file = if is_large { self.disk.large()? } else { self.file.clone() };
        let stored = self.disk.write(&file, &self.disk.pages, page.bytes(), &mut self.packed)?;
        self.end_block(stored, page.len(), is_large)
    }

    fn end_block(&mut self, page: Extent, rows: usize, is_large: bool) -> Result<()> {
        let ordinals = self.ordinals.as_chunks().0;
        let found = (self.keys.get(0), self.keys.get(rows.wrapping_sub(1)), ordinals);
        let (Some(first), Some(last), [first_ordinal, ..]) = found else {
            return Err(Error::missing("the first or the last key of a page"));
        };
        if self.keys.len() != rows || ordinals.len() != rows {
            let (keys, ordinals) = (self.keys.len(), ordinals.len());
            return Err(Error::Internal(format!(
                "a page of {rows} rows has {keys} keys and {ordinals} ordinals"
            )));
        }
        let [first_ordinal, last_ordinal] =
            [first_ordinal, &ordinals[rows - 1]].map(|ordinal| u64::from_le_bytes(*ordinal));
        let (keys, ends) = self.keys.parts();
        let beside = [keys, &self.ordinals, &ends].concat();
        let block = BlockMeta {
            bound: key_prefix(first).into(),
            page,
            is_large,
            rows,
            key_bytes: keys.len(),
            beside: self.disk.write(&self.file, &self.disk.keys, &beside, &mut self.packed)?,
            checksum: crc32c(0, &beside),
        };
        self.run.push(block, key_prefix(last).into(), [first_ordinal, last_ordinal]);
        self.keys = BlockKeys::new(self.run.key_width());
        self.ordinals.clear();
        Ok(())
    }
}
