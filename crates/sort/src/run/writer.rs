//! A run on disk that is being written.

use std::sync::Arc;

use dray_format::{Batch, crc32c};
use dray_page::{Object, PageBuilder, VerifiedPage};

use super::on_disk::{BlockMeta, Run};
use super::spill_file::{Disk, SpillFile, Stored};
use crate::context::Plan;
use crate::error::{Error, Result};
use crate::key::cut;
use crate::memory::BlockKeys;

/// A run under construction.
pub(crate) struct RunWriter {
    disk: Arc<Disk>,
    file: Arc<SpillFile>,
    page_bytes: usize,
    builder: PageBuilder,
    run: Run,
    keys: BlockKeys,
    tags: Vec<u8>,
    /// Memory to pack in.
    packed: Vec<u8>,
}

impl RunWriter {
    /// Begins a run, or a part of one: several may be written to a file side by side.
    pub fn new(disk: Arc<Disk>, file: Arc<SpillFile>, plan: &Plan) -> Result<Self> {
        let key_width = plan.encoder.width();
        Ok(Self {
            disk,
            file,
            page_bytes: plan.page_bytes,
            builder: PageBuilder::within(plan.layout.clone(), plan.stock.rooms(), true)?,
            run: Run::new(key_width),
            keys: BlockKeys::new(key_width),
            tags: Vec::new(),
            packed: Vec::new(),
        })
    }

    /// Appends a row that is not less than the one before.
    pub fn push(&mut self, object: Object<'_>, key: &[u8], tag: u64) -> Result<()> {
        // Keys may be larger than their rows, of which a missing list of a fixed size takes
        // nothing; a block is not to be larger for that.
        if self.keys.bytes() + self.tags.len() + key.len() > self.page_bytes {
            self.close_page()?;
        }
        self.builder.copy(object)?;
        while let Some(page) = self.builder.pop() {
            self.write(&page)?;
        }
        self.put_key(key, tag)
    }

    /// Appends a row whose page is on disk, and stays there.
    pub fn push_late(&mut self, page: &Stored, key: &[u8], tag: u64) -> Result<()> {
        self.close_page()?;
        self.put_key(key, tag)?;
        self.end_block(page.clone(), 1, true)
    }

    /// Appends the rows of a batch, none of which is less than the one before, with the key and the
    /// tag of each.
    pub fn append<'k>(
        &mut self,
        batch: &Batch,
        key: impl Fn(usize) -> Result<(&'k [u8], u64)>,
    ) -> Result<()> {
        let measured = self.builder.measure(batch)?;
        let mut from = 0;
        while from < batch.rows {
            let mut bytes = self.keys.bytes() + self.tags.len();
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
                    let (key, tag) = key(row)?;
                    self.put_key(key, tag)?;
                }
                self.write(&page)?;
            }
            for row in rows {
                let (key, tag) = key(row)?;
                self.put_key(key, tag)?;
            }
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
        let is_late = page.header().large;
        let file = if is_late { self.disk.large()? } else { self.file.clone() };
        let stored = self.disk.write(&file, &self.disk.pages, page.bytes(), &mut self.packed)?;
        self.end_block(stored, page.len(), is_late)
    }

    fn end_block(&mut self, page: Stored, rows: usize, is_late: bool) -> Result<()> {
        let tags = self.tags.as_chunks().0;
        let found = (self.keys.get(0), self.keys.get(rows.wrapping_sub(1)), tags);
        let (Some(first), Some(last), [first_tag, ..]) = found else {
            return Err(Error::missing("the first or the last key of a page"));
        };
        if self.keys.len() != rows || tags.len() != rows {
            let (keys, tags) = (self.keys.len(), tags.len());
            return Err(Error::Internal(format!(
                "a page of {rows} rows has {keys} keys and {tags} tags"
            )));
        }
        let [first_tag, last_tag] =
            [first_tag, &tags[rows - 1]].map(|tag| u64::from_le_bytes(*tag));
        let (keys, ends) = self.keys.parts();
        let beside = [keys, &self.tags, &ends].concat();
        let block = BlockMeta {
            bound: cut(first).into(),
            page,
            is_late,
            rows,
            key_bytes: keys.len(),
            beside: self.disk.write(&self.file, &self.disk.keys, &beside, &mut self.packed)?,
            checksum: crc32c(0, &beside),
        };
        self.run.push(block, cut(last).into(), [first_tag, last_tag]);
        self.keys = BlockKeys::new(self.run.key_width());
        self.tags.clear();
        Ok(())
    }
}
