//! Pages under construction: from columns, or from objects of other pages.
//!
//! A batch goes in three steps: it is held against the schema, so that nothing can go wrong later;
//! the sizes of its objects are taken; and then a few hundred rows at a time, which stay in the
//! cache, are written column by column into their places.

mod check;
mod measure;
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

/// So many rows are written column by column before the next ones.
const BLOCK_ROWS: usize = 128;

/// Which rows of a column belong to which objects.
#[derive(Debug, Clone, Copy)]
enum Rows<'a> {
    /// Row `from + i` to object i.
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

    /// Those whose row passes; `others` are called with the rest.
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

/// A batch that fits the schema of a builder, and the sizes of its objects.
#[derive(Debug)]
pub struct Measured<'a> {
    layout: Arc<Layout>,
    batch: &'a Batch,
    sizes: Vec<u32>,
}

impl Measured<'_> {
    /// The bytes of the object of each row.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }
}

/// What a page takes at least that has an object of these bytes.
fn page_bytes_for(object_bytes: u32) -> usize {
    HEADER_BYTES + object_bytes as usize + SLOT_BYTES
}

/// Pages under construction.
///
/// What is full waits until it is taken by [`pop`](Self::pop); [`finish`](Self::finish) closes the
/// last page.
#[derive(Debug)]
pub struct PageBuilder {
    layout: Arc<Layout>,
    page_bytes: usize,
    checksum: Checksum,
    /// Where the memory of pages that are not large comes from.
    pool: Option<Arc<PagePool>>,
    sequence: u64,
    open: Option<OpenPage>,
    full: VecDeque<VerifiedPage>,
}

impl PageBuilder {
    /// A builder of pages of `page_bytes`, a power of two from 4 KiB to 1 GiB, with or without
    /// checksums.
    ///
    /// # Errors
    /// When `page_bytes` is something else.
    pub fn new(layout: Arc<Layout>, page_bytes: usize, checksum: Checksum) -> Result<Self> {
        if !page_bytes.is_power_of_two() || !(PAGE_BYTES_MIN..=PAGE_BYTES_MAX).contains(&page_bytes)
        {
            refuse!(
                Size,
                "pages of {page_bytes} bytes, expected a power of two from {PAGE_BYTES_MIN} to {PAGE_BYTES_MAX}"
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

    /// A builder of pages whose memory comes from a pool and goes back there. Large pages have memory
    /// of their own.
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
    /// When the batch does not fit the schema, a string is not UTF-8, a value is missing where none
    /// may be, or an object does not fit any page: then nothing was appended. And when there is no
    /// memory for a page.
    pub fn append(&mut self, batch: &Batch) -> Result<()> {
        let measured = self.measure(batch)?;
        self.append_rows(&measured, 0..batch.rows)
    }

    /// Holds a batch against the schema and takes the sizes of its objects, so that it can be
    /// appended in parts whose memory is known before.
    ///
    /// # Errors
    /// As [`append`](Self::append) has them, but for the memory.
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
    /// When it was measured for another layout or does not have these rows, or there is no memory
    /// for a page.
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
            let (count, open) = self.room_for(at_most)?;
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

    /// The bytes of the pages that appending these rows would open.
    pub fn page_bytes_of(&self, measured: &Measured<'_>, rows: Range<usize>) -> usize {
        let (mut room, mut opened) = (self.open.as_ref().map_or(0, OpenPage::room), 0);
        for bytes in measured.sizes.get(rows).unwrap_or_default() {
            let taken = *bytes as usize + SLOT_BYTES;
            if taken > room {
                let page_bytes = page_bytes_for(*bytes).next_multiple_of(self.page_bytes);
                opened += page_bytes;
                // Nothing comes behind the object of a large page.
                room = if page_bytes > self.page_bytes { taken } else { page_bytes - HEADER_BYTES };
            }
            room -= taken;
        }
        opened
    }

    /// Appends a copy of an object from any page.
    ///
    /// # Errors
    /// When it is of another schema, or there is no memory for a page.
    #[inline]
    pub fn copy(&mut self, object: Object<'_>) -> Result<()> {
        if !std::ptr::eq(object.layout(), &*self.layout)
            && object.layout().schema() != self.layout.schema()
        {
            refuse!(Unsupported, "an object of another schema");
        }
        // An extent says its own size in 32 bits.
        let bytes = object.bytes().len();
        let (_, open) = self.room_for(&[bytes as u32])?;
        let start = open.take_one(bytes);
        open.page()[start..start + bytes].copy_from_slice(object.bytes());
        Ok(())
    }

    /// The oldest page that is full and was not taken yet.
    pub fn pop(&mut self) -> Option<VerifiedPage> {
        self.full.pop_front()
    }

    /// Closes the page that is not full, and returns all that were not taken yet. The next objects
    /// begin a new page.
    pub fn finish(&mut self) -> Vec<VerifiedPage> {
        self.close();
        self.full.drain(..).collect()
    }

    /// A page with room for at least the first of objects of these sizes, and for how many of them.
    #[inline]
    fn room_for(&mut self, sizes: &[u32]) -> Result<(usize, &mut OpenPage)> {
        let count = match self.open.as_ref().map_or(0, |open| open.fitting(sizes)) {
            0 => self.next_page(sizes)?,
            count => count,
        };
        match &mut self.open {
            Some(open) if count > 0 => Ok((count, open)),
            _ => refuse!(Internal, "a new page has no room for its first object"),
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

    /// Closes the page that is open, if there is one.
    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let page = open.close(self.layout.clone(), self.sequence, self.checksum);
        self.sequence += 1;
        self.full.push_back(page);
    }
}

/// Memory for a page that comes from the allocator.
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
    fn room(&self) -> usize {
        if self.large && self.objects > 0 {
            return 0;
        }
        self.page.len() - self.objects_end - SLOT_BYTES * self.objects
    }

    /// How many objects of these sizes, the first ones, there is room for.
    #[inline]
    fn fitting(&self, sizes: &[u32]) -> usize {
        let mut room = self.room();
        let fits = |bytes: &&u32| {
            let taken = **bytes as usize + SLOT_BYTES;
            let fits = taken <= room;
            room = room.saturating_sub(taken);
            fits
        };
        match self.large {
            true => usize::from(self.objects == 0).min(sizes.len()),
            false => sizes.iter().take_while(fits).count(),
        }
    }

    /// Gives objects of these sizes, for which there is room, their places and slots.
    fn take(&mut self, sizes: &[u32]) -> Vec<usize> {
        sizes.iter().map(|bytes| self.take_one(*bytes as usize)).collect()
    }

    #[inline]
    fn take_one(&mut self, bytes: usize) -> usize {
        let start = self.objects_end;
        self.objects += 1;
        self.objects_end += bytes;
        let slot = self.page.len() - SLOT_BYTES * self.objects;
        // A page is below 2^31.
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
        };
        if checksum == Checksum::Crc32c {
            // The flag is part of what the checksum is taken over.
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
