//! Changes objects of a page in place (`spec/page.md` section 11).

mod item;
mod rewrite;

use std::fmt;
use std::sync::Arc;

use bytes::BytesMut;
use dray_format::Checksum;

use crate::build::{ObjectBuilder, PageBuilder};
use crate::error::{Result, refuse};
use crate::layout::{ALIGNMENT, DEAD, Layout};
use crate::object::Object;
use crate::page::{
    HEADER_BYTES, Header, LARGE_BYTES_END, PAGE_BYTES, PAGE_BYTES_MAX, PAGE_BYTES_MIN, SLOT_BYTES,
    VerifiedPage,
};
use crate::pool::zeros;
use crate::word::u32_at;

pub use item::ItemMut;

/// Changes the objects of a page, and keeps the page verified.
///
/// Numbers, booleans and strings whose tail keeps its size are overwritten where they lie. Any
/// other change writes the object anew on the same page and repoints its slot. Dead extents are
/// removed when they are a quarter of all, or when room is needed. An object that is alone gets a
/// large page if it needs one.
///
/// ```
/// # use dray_format::{Checksum, Field, Schema, Type};
/// # use dray_page::{Layout, PAGE_BYTES, PageBuilder, PageEditor};
/// # let field = |name: &str, data_type| {
/// #     Field { name: name.into(), data_type, nullable: false, metadata: vec![] }
/// # };
/// # let prices = Type::List(Box::new(field("item", Type::Int64)));
/// # let fields = vec![field("name", Type::Utf8), field("prices", prices)];
/// # let layout = Layout::new(Schema { fields })?;
/// let name = layout.mutator::<str>(&["name"])?;
/// let prices = layout.list_mutator(&["prices"])?;
/// let price = layout.mutator::<i64>(&["prices", "[]"])?;
/// # let mut pages = PageBuilder::new(layout.clone(), PAGE_BYTES, Checksum::Crc32c)?;
/// # pages.build(|object| object.list(&prices, 3, |_, _| Ok(())))?;
/// # let page = pages.finish().remove(0);
///
/// let mut editor = PageEditor::new(page)?;
/// let mut object = editor.object_mut(0).unwrap();
/// object.set(&name, "a name of more than 12 bytes")?;
/// object.item(&prices, 1).unwrap().set(&price, 7)?;
/// object.splice(&prices, 0..1, 0)?;
/// let page = editor.finish(Checksum::Crc32c);
///
/// let prices = page.object(0).unwrap().field(1).unwrap().list().unwrap();
/// assert_eq!(prices.iter().map(|price| price.i64()).collect::<Vec<_>>(), [Some(7), Some(0)]);
/// assert_eq!(page.header().edition, 1);
/// # Ok::<(), dray_page::Error>(())
/// ```
///
/// Who reads an object borrows the editor, so that it can't be changed meanwhile:
///
/// ```compile_fail,E0502
/// # use dray_page::{Mutator, PageEditor};
/// # fn change(mut editor: PageEditor, key: &Mutator<i64>) -> dray_page::Result<()> {
/// let object = editor.object(0).unwrap();
/// editor.object_mut(0).unwrap().set(key, 5)?;
/// println!("{:?}", object.bytes());
/// # Ok(())
/// # }
/// ```
pub struct PageEditor {
    layout: Arc<Layout>,
    header: Header,
    page: BytesMut,
    /// The standard size of pages.
    page_bytes: usize,
    /// The bytes of dead extents.
    dead_bytes: usize,
    changed: bool,
    /// An object as it was, with bits and numbers already changed, and as it becomes.
    old: Vec<u8>,
    new: Vec<u8>,
}

impl PageEditor {
    /// An editor of a page. It takes the page's memory if nobody else has it, and else a copy.
    ///
    /// # Errors
    /// When there is no memory for a copy.
    pub fn new(page: VerifiedPage) -> Result<Self> {
        let (layout, header, bytes) = page.into_parts();
        let page = match bytes.try_into_mut() {
            Ok(page) => page,
            Err(shared) => copied(&shared)?,
        };
        let page_bytes = if header.large { PAGE_BYTES } else { page.len() };
        let (old, new) = (Vec::new(), Vec::new());
        let mut editor =
            Self { layout, header, page, page_bytes, dead_bytes: 0, changed: false, old, new };
        editor.dead_bytes = editor.each_dead(|_| ());
        Ok(editor)
    }

    /// Sets the standard size of the pages that a large page is from. A large page does not say it;
    /// otherwise it is taken to be [`PAGE_BYTES`].
    ///
    /// # Errors
    /// When pages can't have this size, or this page is not large and has another.
    pub fn with_page_bytes(self, page_bytes: usize) -> Result<Self> {
        if !page_bytes.is_power_of_two()
            || !(PAGE_BYTES_MIN..=PAGE_BYTES_MAX).contains(&page_bytes)
            || !self.header.large && page_bytes != self.page.len()
        {
            refuse!(Size, "{page_bytes} is not the standard size of this page's file or stream");
        }
        Ok(Self { page_bytes, ..self })
    }

    /// The layout of the objects.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// The number of objects.
    #[allow(clippy::len_without_is_empty, reason = "no page is empty")]
    pub fn len(&self) -> usize {
        self.header.objects as usize
    }

    /// The object of slot `i`, if there is one.
    #[inline]
    pub fn object(&self, i: usize) -> Option<Object<'_>> {
        if i >= self.len() {
            return None;
        }
        Some(Object::new(&self.layout, self.extent(i)))
    }

    /// The object of slot `i`, to be changed.
    #[inline]
    pub fn object_mut(&mut self, i: usize) -> Option<ItemMut<'_>> {
        if i >= self.len() {
            return None;
        }
        Some(ItemMut::of_object(self, i))
    }

    /// Replaces the object of slot `i` by a copy of another one.
    ///
    /// # Errors
    /// When there is no such slot, the object is of another schema, or it does not fit. The page is
    /// unchanged then.
    pub fn replace(&mut self, i: usize, object: Object<'_>) -> Result<()> {
        self.check_slot(i)?;
        self.layout.check_object(object)?;
        self.new.clear();
        self.new.extend_from_slice(object.bytes());
        self.store(i)
    }

    /// Replaces the object of slot `i` by one that `build` writes; it may read the old one.
    ///
    /// # Errors
    /// Those of `build`, and of [`replace`](Self::replace).
    pub fn rebuild(
        &mut self,
        i: usize,
        build: impl FnOnce(Object<'_>, &mut ObjectBuilder<'_>) -> Result<()>,
    ) -> Result<()> {
        self.check_slot(i)?;
        let old = Object::new(&self.layout, self.extent(i));
        let mut pages = PageBuilder::new(self.layout.clone(), PAGE_BYTES_MIN, Checksum::None)?;
        pages.build(|object| build(old, object))?;
        match pages.finish().first().and_then(|page| page.object(0)) {
            Some(object) => self.replace(i, object),
            None => refuse!(Internal, "a builder made no object"),
        }
    }

    fn check_slot(&self, i: usize) -> Result<()> {
        if i >= self.len() {
            refuse!(Unsupported, "there is no object {i}, the page has {}", self.len());
        }
        Ok(())
    }

    /// Removes dead extents, and puts the objects in the order of their slots: the page is the one
    /// that a [`PageBuilder`] makes, but for its edition.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn compact(&mut self) -> Result<()> {
        if self.header.moved {
            self.page = self.compacted(None)?;
            self.changed = true;
        }
        Ok(())
    }

    /// Ends the changes. What is dead is overwritten with zeros.
    pub fn finish(mut self, checksum: Checksum) -> VerifiedPage {
        if self.dead_bytes > 0 {
            self.each_dead(|extent| extent.fill(0));
        }
        if self.changed {
            self.header.edition = self.header.edition.wrapping_add(1);
        }
        self.header.checksum = None;
        if checksum == Checksum::Crc32c {
            let sum = self.header.checksum_with(&self.page[HEADER_BYTES..]);
            self.header.checksum = Some(sum);
        }
        self.page[..HEADER_BYTES].copy_from_slice(&self.header.encode());
        VerifiedPage::made(self.layout, self.header, self.page.freeze())
    }

    /// Where the object of a slot begins. The slot exists.
    #[inline(always)]
    fn start(&self, slot: usize) -> usize {
        u32_at(&self.page, self.page.len() - SLOT_BYTES * (slot + 1)) as usize
    }

    /// The object of a slot.
    #[inline(always)]
    fn extent(&self, slot: usize) -> &[u8] {
        let start = self.start(slot);
        self.page.get(start..start + u32_at(&self.page, start) as usize).unwrap_or_default()
    }

    /// The object of a slot, which is about to be changed in place.
    #[inline(always)]
    fn extent_mut(&mut self, slot: usize) -> &mut [u8] {
        self.changed = true;
        let start = self.start(slot);
        let bytes = u32_at(&self.page, start) as usize;
        self.page.get_mut(start..start + bytes).unwrap_or_default()
    }

    /// Calls `each` with the bytes of each dead extent behind its size, and returns the bytes of
    /// all dead extents.
    fn each_dead(&mut self, mut each: impl FnMut(&mut [u8])) -> usize {
        let (mut at, mut dead_bytes) = (HEADER_BYTES, 0);
        while self.header.moved && at < self.header.objects_end as usize {
            let marked = u32_at(&self.page, at);
            let bytes = (marked & !DEAD) as usize;
            if marked & DEAD != 0 {
                dead_bytes += bytes;
                each(&mut self.page[at + 4..at + bytes]);
            }
            at += bytes.max(ALIGNMENT);
        }
        dead_bytes
    }

    /// The largest object that the page could have.
    fn object_bytes_max(&self) -> usize {
        match self.len() {
            1 => LARGE_BYTES_END - self.page_bytes - HEADER_BYTES - SLOT_BYTES,
            objects => self.page.len() - HEADER_BYTES - SLOT_BYTES * objects,
        }
    }

    /// Makes `self.new` the object of a slot, or leaves the page as it is.
    fn store(&mut self, slot: usize) -> Result<()> {
        let bytes = self.new.len();
        if bytes > self.object_bytes_max() {
            refuse!(
                Limit,
                "the new object of {bytes} bytes does not fit its page; make its page anew"
            );
        }
        let is_alone = self.len() == 1;
        if self.header.large || is_alone && HEADER_BYTES + bytes + SLOT_BYTES > self.page.len() {
            return self.replace_page();
        }
        let old_start = self.start(slot);
        let new_start = self.header.objects_end as usize;
        if bytes > self.page.len() - SLOT_BYTES * self.len() - new_start {
            self.page = self.compacted(Some(slot))?;
            self.changed = true;
            return Ok(());
        }
        self.changed = true;
        self.header.moved = true;
        self.page[new_start..new_start + bytes].copy_from_slice(&self.new);
        let slot_at = self.page.len() - SLOT_BYTES * (slot + 1);
        // A page has fewer than 2^31 bytes.
        self.put(slot_at, new_start as u32);
        self.header.objects_end = (new_start + bytes) as u32;
        let old_bytes = u32_at(&self.page, old_start);
        self.put(old_start, old_bytes | DEAD);
        self.dead_bytes += old_bytes as usize;
        if self.dead_bytes * 4 >= new_start + bytes - HEADER_BYTES
            && let Ok(page) = self.compacted(None)
        {
            self.page = page;
        }
        Ok(())
    }

    fn put(&mut self, at: usize, word: u32) {
        self.page[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }

    /// Makes a page for `self.new`, which is alone.
    fn replace_page(&mut self) -> Result<()> {
        let bytes = self.new.len();
        let page_bytes = (HEADER_BYTES + bytes + SLOT_BYTES).next_multiple_of(self.page_bytes);
        let mut page = zeros(page_bytes)?;
        page[HEADER_BYTES..HEADER_BYTES + bytes].copy_from_slice(&self.new);
        page[page_bytes - SLOT_BYTES..].copy_from_slice(&(HEADER_BYTES as u32).to_le_bytes());
        self.page = page;
        self.changed = true;
        self.dead_bytes = 0;
        self.header.moved = false;
        self.header.large = page_bytes > self.page_bytes;
        // Below 2^31.
        self.header.page_bytes = page_bytes as u32;
        self.header.objects_end = (HEADER_BYTES + bytes) as u32;
        Ok(())
    }

    /// The page with its objects in the order of their slots, `self.new` as the object of
    /// `replaced`. Updates the header.
    fn compacted(&mut self, replaced: Option<usize>) -> Result<BytesMut> {
        let object = |slot| {
            if replaced == Some(slot) { self.new.as_slice() } else { self.extent(slot) }
        };
        let objects_bytes = (0..self.len()).map(|slot| object(slot).len()).sum::<usize>();
        let room = self.page.len() - HEADER_BYTES - SLOT_BYTES * self.len();
        if objects_bytes > room {
            refuse!(
                Limit,
                "with the new object, the page's objects have {objects_bytes} bytes, and it has \
                 room for {room}; make its page anew"
            );
        }
        let mut page = zeros(self.page.len())?;
        let mut at = HEADER_BYTES;
        for slot in 0..self.len() {
            let bytes = object(slot);
            page[at..at + bytes.len()].copy_from_slice(bytes);
            let slot_at = page.len() - SLOT_BYTES * (slot + 1);
            // A page has fewer than 2^31 bytes.
            page[slot_at..slot_at + SLOT_BYTES].copy_from_slice(&(at as u32).to_le_bytes());
            at += bytes.len();
        }
        self.header.objects_end = at as u32;
        self.header.moved = false;
        self.dead_bytes = 0;
        Ok(page)
    }
}

impl fmt::Debug for PageEditor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageEditor").field("header", &self.header).finish_non_exhaustive()
    }
}

fn copied(bytes: &[u8]) -> Result<BytesMut> {
    let mut page = zeros(bytes.len())?;
    page.copy_from_slice(bytes);
    Ok(page)
}
