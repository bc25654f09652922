//! Writes a run to disk.

use std::sync::Arc;

use dray_format::{Batch, Checksum, crc32c};
use dray_page::{Object, PageBuilder, VerifiedPage};

use super::on_disk::{BlockMeta, DiskRun, PageKind};
use super::spill_file::{Extent, SpillFile, SpillStore};
use crate::context::SortContext;
use crate::error::{Error, Result};
use crate::key::key_prefix;
use crate::memory::BlockKeys;

/// A run on disk that is being written.
pub(crate) struct DiskRunWriter {
    store: Arc<SpillStore>,
    file: Arc<SpillFile>,
    page_bytes: usize,
    pages: PageBuilder,
    run: DiskRun,
    /// The keys and ordinals of rows whose page is not written yet.
    keys: BlockKeys,
    ordinals: Vec<u8>,
    /// A buffer for compressed bytes.
    compressed: Vec<u8>,
}

impl DiskRunWriter {
    /// Begins a run, or a partition of one. Several may be written to a file at the same time.
    pub fn new(
        store: Arc<SpillStore>,
        file: Arc<SpillFile>,
        context: &SortContext,
    ) -> Result<Self> {
        let key_width = context.encoder.width();
        Ok(Self {
            store,
            file,
            page_bytes: context.page_bytes,
            pages: PageBuilder::with_pool(
                context.layout.clone(),
                context.page_cache.pool(),
                Checksum::Crc32c,
            )?,
            run: DiskRun::new(key_width),
            keys: BlockKeys::new(key_width),
            ordinals: Vec::new(),
            compressed: Vec::new(),
        })
    }

    /// Appends a row that is not less than the one before.
    pub fn push(&mut self, object: Object<'_>, key: &[u8], ordinal: u64) -> Result<()> {
        // Keys may be larger than their rows: a null list of fixed size takes no bytes of an
        // object. They must not make a block larger than a page.
        if self.keys.bytes() + self.ordinals.len() + key.len() > self.page_bytes {
            self.close_page()?;
        }
        self.pages.copy(object)?;
        while let Some(page) = self.pages.pop() {
            self.write(&page)?;
        }
        self.push_key(key, ordinal)
    }

    /// Appends a row that is not less than the one before, and whose large page stays where it is.
    pub fn push_on_disk(&mut self, page: &Extent, key: &[u8], ordinal: u64) -> Result<()> {
        self.close_page()?;
        self.push_key(key, ordinal)?;
        self.end_block(page.clone(), 1, PageKind::Large)
    }

    /// Appends the rows of a batch, none of which is less than the one before. `key` returns the
    /// key and the ordinal of each row.
    pub fn append<'k>(
        &mut self,
        batch: &Batch,
        key: impl Fn(usize) -> Result<(&'k [u8], u64)>,
    ) -> Result<()> {
        let measured = self.pages.measure(batch)?;
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
            self.pages.append_rows(&measured, from..from + count)?;
            let mut rows = from..from + count;
            while let Some(page) = self.pages.pop() {
                // The rows of the page that have no keys yet.
                for row in rows.by_ref().take(page.len().saturating_sub(self.keys.len())) {
                    let (key, ordinal) = key(row)?;
                    self.push_key(key, ordinal)?;
                }
                self.write(&page)?;
            }
            for row in rows {
                let (key, ordinal) = key(row)?;
                self.push_key(key, ordinal)?;
            }
            from += count;
        }
        Ok(())
    }

    fn push_key(&mut self, key: &[u8], ordinal: u64) -> Result<()> {
        debug_assert!(
            self.keys.len().checked_sub(1).and_then(|last| self.keys.get(last)) <= Some(key),
            "rows are appended in the order of their keys"
        );
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
        self.pages.finish().iter().try_for_each(|page| self.write(page))
    }

    fn write(&mut self, page: &VerifiedPage) -> Result<()> {
        let (kind, file) = if page.header().large {
            (PageKind::Large, self.store.large_pages()?)
        } else {
            (PageKind::Regular, self.file.clone())
        };
        let policy = &self.store.page_compression;
        let extent = self.store.write(&file, policy, page.bytes(), &mut self.compressed)?;
        self.end_block(extent, page.len(), kind)
    }

    /// Writes the keys of a page of `rows` rows, and adds the block to the run.
    fn end_block(&mut self, page: Extent, rows: usize, kind: PageKind) -> Result<()> {
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
        let bytes = [keys, &self.ordinals, &ends].concat();
        let policy = &self.store.key_compression;
        let block = BlockMeta {
            first_key: key_prefix(first).into(),
            page,
            kind,
            rows,
            keys: self.store.write(&self.file, policy, &bytes, &mut self.compressed)?,
            key_bytes: keys.len(),
            checksum: crc32c(0, &bytes),
        };
        self.run.push(block, key_prefix(last).into(), [first_ordinal, last_ordinal]);
        self.keys = BlockKeys::new(self.run.key_width());
        self.ordinals.clear();
        Ok(())
    }
}
