//! The builder of pages, from columns or from objects of other pages.
//!
//! A batch takes three steps. It is checked against the schema, so that nothing can fail later. The
//! sizes of its objects are measured. Then its rows are written column by column, in blocks of rows
//! that stay in the cache.

mod check;
mod measure;
mod object;
mod scatter;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::BytesMut;
use dray_format::{Batch, COUNT_MAX, Checksum};

use crate::error::{Result, refuse};
use crate::layout::Layout;
use crate::object::Object;
use crate::page::{
    HEADER_BYTES, Header, LARGE_BYTES_END, PAGE_BYTES_MAX, PAGE_BYTES_MIN, SLOT_BYTES, VerifiedPage,
};
use crate::pool::{PagePool, PooledPage, zeros};

pub use object::ObjectBuilder;

/// The rows of a block.
const BLOCK_ROWS: usize = 128;

/// The rows of a column, and the object of each.
#[derive(Debug, Clone, Copy)]
enum Rows<'a> {
    /// Row `from + i` belongs to object i.
    All { from: usize, count: usize },
    /// Pairs of object and row.
    Picked(&'a [(u32, u32)]),
}

impl Rows<'_> {
    /// Calls `each` with every object and its row.
    #[inline(always)]
    fn each(self, mut each: impl FnMut(usize, usize)) {
        match self {
            Self::All { from, count } => (0..count).for_each(|i| each(i, from + i)),
            Self::Picked(pairs) => {
                pairs.iter().for_each(|(object, row)| each(*object as usize, *row as usize))
            }
        }
    }

    /// The pairs whose row passes. `others` is called with the rest.
    fn filter(
        self,
        mut passes: impl FnMut(usize) -> bool,
        mut others: impl FnMut(usize, usize),
    ) -> Vec<(u32, u32)> {
        let mut picked = Vec::new();
        self.each(|object, row| match passes(row) {
            // Rows and objects are below COUNT_MAX.
            true => picked.push((object as u32, row as u32)),
            false => others(object, row),
        });
        picked
    }
}

/// A batch that was checked against the schema of a builder, with the sizes of its objects.
#[derive(Debug)]
pub struct Measured<'a> {
    layout: Arc<Layout>,
    batch: &'a Batch,
    sizes: Vec<u32>,
}

impl Measured<'_> {
    /// The size of each row's object in bytes.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }
}

/// The least size of a page with an object of this size.
fn page_bytes_for(object_bytes: u32) -> usize {
    HEADER_BYTES + object_bytes as usize + SLOT_BYTES
}

/// Builds pages.
///
/// Full pages wait for [`pop`](Self::pop); [`finish`](Self::finish) closes the last page.
#[derive(Debug)]
pub struct PageBuilder {
    layout: Arc<Layout>,
    page_bytes: usize,
    checksum: Checksum,
    /// The memory of pages that are not large.
    pool: Option<Arc<PagePool>>,
    sequence: u64,
    open: Option<OpenPage>,
    full: VecDeque<VerifiedPage>,
}

impl PageBuilder {
    /// A builder of pages of `page_bytes`, a power of two from 4 KiB to 1 GiB.
    ///
    /// # Errors
    /// When `page_bytes` is another size.
    pub fn new(layout: Arc<Layout>, page_bytes: usize, checksum: Checksum) -> Result<Self> {
        if !page_bytes.is_power_of_two() || !(PAGE_BYTES_MIN..=PAGE_BYTES_MAX).contains(&page_bytes)
        {
            refuse!(
                Size,
                "pages of {page_bytes} bytes, \
                 expected a power of two from {PAGE_BYTES_MIN} to {PAGE_BYTES_MAX}"
            );
        }
        Ok(Self {
            layout,
            page_bytes,
            checksum,
            pool: None,
            sequence: 0,
            open: None,
            full: VecDeque::new(),
        })
    }

    /// A builder of pages whose memory comes from a pool and goes back there. Large pages have
    /// memory of their own.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn with_pool(
        layout: Arc<Layout>,
        pool: &Arc<PagePool>,
        checksum: Checksum,
    ) -> Result<Self> {
        let builder = Self::new(layout, pool.page_bytes(), checksum)?;
        Ok(Self { pool: Some(pool.clone()), ..builder })
    }

    /// The layout of the objects.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Appends the rows of a batch as objects.
    ///
    /// # Errors
    /// When the batch does not fit the schema, a string is not UTF-8, a value is missing in a field
    /// that is not nullable, or an object does not fit any page: nothing is appended then. Also
    /// when there is no memory for a page.
    pub fn append(&mut self, batch: &Batch) -> Result<()> {
        let measured = self.measure(batch)?;
        self.append_rows(&measured, 0..batch.rows)
    }

    /// Checks a batch against the schema and measures its objects. It can then be appended in parts
    /// whose memory is known in advance.
    ///
    /// # Errors
    /// Those of [`append`](Self::append), except for the lack of memory.
    pub fn measure<'a>(&self, batch: &'a Batch) -> Result<Measured<'a>> {
        if batch.rows > COUNT_MAX {
            refuse!(Limit, "a batch of {} rows, the most are {COUNT_MAX}", batch.rows);
        }
        check::batch(self.layout.schema(), batch)?;
        let sizes = measure::sizes(&self.layout.record, batch);
        let page_bytes = |bytes: u32| page_bytes_for(bytes).next_multiple_of(self.page_bytes);
        if let Some(row) = sizes.iter().position(|bytes| page_bytes(*bytes) >= LARGE_BYTES_END) {
            refuse!(Limit, "row {row} is larger than a page can be");
        }
        Ok(Measured { layout: self.layout.clone(), batch, sizes })
    }

    /// Appends some rows of a batch that was measured by a builder of the same layout.
    ///
    /// # Errors
    /// When the batch was measured for another layout or does not have these rows, or there is no
    /// memory for a page.
    pub fn append_rows(&mut self, measured: &Measured<'_>, rows: Range<usize>) -> Result<()> {
        if !Arc::ptr_eq(&measured.layout, &self.layout) {
            refuse!(Unsupported, "a batch that was measured for another layout");
        }
        let Range { start: mut from, end } = rows;
        if end > measured.sizes.len() {
            refuse!(Unsupported, "rows up to {end} of a batch of {}", measured.sizes.len());
        }
        let layout = self.layout.clone();
        while from < end {
            let at_most = &measured.sizes[from..end.min(from + BLOCK_ROWS)];
            let (count, open) = self.page_for(at_most)?;
            let starts = open.take(&at_most[..count]);
            scatter::objects(
                &layout.record,
                measured.batch,
                from..from + count,
                open.page(),
                &starts,
            );
            from += count;
        }
        Ok(())
    }

    /// The bytes of the pages that appending these rows would begin.
    pub fn page_bytes_of(&self, measured: &Measured<'_>, rows: Range<usize>) -> usize {
        let (mut free, mut opened) = (self.open.as_ref().map_or(0, OpenPage::free_bytes), 0);
        for bytes in measured.sizes.get(rows).unwrap_or_default() {
            let taken = *bytes as usize + SLOT_BYTES;
            if taken > free {
                let page_bytes = page_bytes_for(*bytes).next_multiple_of(self.page_bytes);
                opened += page_bytes;
                // A large page has no other object.
                free = if page_bytes > self.page_bytes { taken } else { page_bytes - HEADER_BYTES };
            }
            free -= taken;
        }
        opened
    }

    /// Appends a copy of an object from any page.
    ///
    /// # Errors
    /// When it is of another schema, or there is no memory for a page.
    #[inline]
    pub fn copy(&mut self, object: Object<'_>) -> Result<()> {
        self.layout.check_object(object)?;
        // The size of an extent is a u32.
        let bytes = object.bytes().len();
        let (_, open) = self.page_for(&[bytes as u32])?;
        let start = open.take_one(bytes);
        open.page()[start..start + bytes].copy_from_slice(object.bytes());
        Ok(())
    }

    /// Takes the oldest full page.
    pub fn pop(&mut self) -> Option<VerifiedPage> {
        self.full.pop_front()
    }

    /// Closes the last page, and takes all pages that were not taken yet. The next object begins a
    /// new page.
    pub fn finish(&mut self) -> Vec<VerifiedPage> {
        self.close();
        self.full.drain(..).collect()
    }

    /// The number of objects of these sizes, at least one, that fit into the open page; and that
    /// page.
    #[inline]
    fn page_for(&mut self, sizes: &[u32]) -> Result<(usize, &mut OpenPage)> {
        let count = match self.open.as_ref().map_or(0, |open| open.fitting(sizes)) {
            0 => self.next_page(sizes)?,
            count => count,
        };
        match &mut self.open {
            Some(open) if count > 0 => Ok((count, open)),
            _ => refuse!(Internal, "a new page is too small for its first object"),
        }
    }

    fn next_page(&mut self, sizes: &[u32]) -> Result<usize> {
        self.close();
        let first = sizes.first().map_or(0, |bytes| page_bytes_for(*bytes));
        let large = first > self.page_bytes;
        let open = match self.pool.as_ref().filter(|_| !large) {
            Some(pool) => OpenPage::new(pool.take()?, Some(pool.clone()), large),
            None => OpenPage::new(new_page(first.next_multiple_of(self.page_bytes))?, None, large),
        };
        Ok(self.open.insert(open).fitting(sizes))
    }

    /// Closes the open page, if there is one.
    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let page = open.close(self.layout.clone(), self.sequence, self.checksum);
        self.sequence += 1;
        self.full.push_back(page);
    }
}

/// Memory for a page from the allocator.
fn new_page(page_bytes: usize) -> Result<BytesMut> {
    if page_bytes >= LARGE_BYTES_END {
        refuse!(Limit, "a page of {page_bytes} bytes, the most are {}", LARGE_BYTES_END - 1);
    }
    zeros(page_bytes)
}

/// A page that is being filled.
#[derive(Debug)]
struct OpenPage {
    page: BytesMut,
    /// The pool that its memory goes back to.
    pool: Option<Arc<PagePool>>,
    objects: usize,
    objects_end: usize,
    large: bool,
}

impl OpenPage {
    fn new(page: BytesMut, pool: Option<Arc<PagePool>>, large: bool) -> Self {
        Self { page, pool, objects: 0, objects_end: HEADER_BYTES, large }
    }

    fn page(&mut self) -> &mut [u8] {
        &mut self.page
    }

    /// The bytes that are left for objects and their slots.
    #[inline]
    fn free_bytes(&self) -> usize {
        if self.large && self.objects > 0 {
            return 0;
        }
        self.page.len() - self.objects_end - SLOT_BYTES * self.objects
    }

    /// How many of the first objects of these sizes fit.
    #[inline]
    fn fitting(&self, sizes: &[u32]) -> usize {
        let mut free = self.free_bytes();
        let fits = |bytes: &&u32| {
            let taken = **bytes as usize + SLOT_BYTES;
            let fits = taken <= free;
            free = free.saturating_sub(taken);
            fits
        };
        match self.large {
            true => usize::from(self.objects == 0).min(sizes.len()),
            false => sizes.iter().take_while(fits).count(),
        }
    }

    /// Allots objects of these sizes, which fit, and writes their slots. Returns where they begin.
    fn take(&mut self, sizes: &[u32]) -> Vec<usize> {
        sizes.iter().map(|bytes| self.take_one(*bytes as usize)).collect()
    }

    #[inline]
    fn take_one(&mut self, bytes: usize) -> usize {
        let start = self.objects_end;
        debug_assert!(bytes + SLOT_BYTES <= self.free_bytes());
        self.objects += 1;
        self.objects_end += bytes;
        let slot = self.page.len() - SLOT_BYTES * self.objects;
        // A page has fewer than 2^31 bytes.
        self.page[slot..slot + SLOT_BYTES].copy_from_slice(&(start as u32).to_le_bytes());
        start
    }

    fn close(mut self, layout: Arc<Layout>, sequence: u64, checksum: Checksum) -> VerifiedPage {
        let mut header = Header {
            sequence,
            // All below 2^31.
            objects: self.objects as u32,
            page_bytes: self.page.len() as u32,
            objects_end: self.objects_end as u32,
            checksum: None,
            large: self.large,
            moved: false,
            edition: 0,
        };
        if checksum == Checksum::Crc32c {
            // The checksum covers its flag.
            header.checksum = Some(0);
            header.checksum = Some(header.checksum_with(&self.page()[HEADER_BYTES..]));
        }
        self.page()[..HEADER_BYTES].copy_from_slice(&header.encode());
        let bytes = match self.pool {
            Some(pool) => PooledPage::into_bytes(self.page, pool),
            None => self.page.freeze(),
        };
        VerifiedPage::made(layout, header, bytes)
    }
}
