//! Objects that are written field by field, straight into a page (`spec/page.md` section 11).

use std::sync::Arc;

use dray_format::copy_short;

use super::{OpenPage, PageBuilder, new_page, page_bytes_for};
use crate::error::{Result, refuse};
use crate::layout::{
    ALIGNMENT, EXTENT_BYTES_END, INLINE_BYTES_MAX, Items, LIST_BYTES, Record, STRING_BYTES,
    TailKind,
};
use crate::mutator::{Bit, Change, ListMutator, Mutator, Position, Target};
use crate::page::{HEADER_BYTES, LARGE_BYTES_END, SLOT_BYTES};
use crate::pool::PagePool;
use crate::word::{bit_at, list_place, string_place, u32_at};

impl PageBuilder {
    /// Builds an object in place: `build` writes its fields one by one. What it does not write is
    /// missing if it may be, and otherwise 0 or empty.
    ///
    /// Numbers and booleans come in any order. Strings and lists come in the schema's order, each
    /// at most once.
    ///
    /// # Errors
    /// Those of `build`, and when the object does not fit any page or there is no memory for one.
    /// Nothing is appended then.
    ///
    /// # Examples
    /// ```
    /// # use dray_format::{Checksum, Field, Schema, Type};
    /// # use dray_page::{Layout, PAGE_BYTES, PageBuilder};
    /// # let field = |name: &str, data_type| {
    /// #     Field { name: name.into(), data_type, nullable: false, metadata: vec![] }
    /// # };
    /// # let prices = Type::List(Box::new(field("item", Type::Int64)));
    /// # let fields = vec![field("name", Type::Utf8), field("prices", prices)];
    /// # let layout = Layout::new(Schema { fields })?;
    /// let name = layout.mutator::<str>(&["name"])?;
    /// let prices = layout.list_mutator(&["prices"])?;
    /// let price = layout.mutator::<i64>(&["prices", "[]"])?;
    ///
    /// let mut pages = PageBuilder::new(layout, PAGE_BYTES, Checksum::Crc32c)?;
    /// pages.build(|object| {
    ///     object.set(&name, "apples")?;
    ///     object.list(&prices, 3, |item, i| item.set(&price, 10 * i as i64))
    /// })?;
    /// let page = &pages.finish()[0];
    /// let prices = page.object(0).unwrap().field(1).unwrap().list().unwrap();
    /// assert_eq!(prices.item(2).unwrap().i64(), Some(20));
    /// # Ok::<(), dray_page::Error>(())
    /// ```
    pub fn build(
        &mut self,
        build: impl FnOnce(&mut ObjectBuilder<'_>) -> Result<()>,
    ) -> Result<()> {
        let layout = self.layout.clone();
        let record = &layout.record;
        let mut lent = Lent { room: Room::new(self.open.take(), self), builder: self };
        let room = &mut lent.room;
        room.reserve(record.end)?;
        room.end = record.end;
        let mut object =
            ObjectBuilder { room, record, id: layout.id, at: 0, next_tail: 0, in_bitmap: None };
        build(&mut object)?;
        object.pass_tails(usize::MAX)?;
        room.close()
    }
}

/// Gives the open page back to its builder, whether an object was appended or not.
struct Lent<'b> {
    builder: &'b mut PageBuilder,
    room: Room,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let Self { builder, room } = self;
        if !room.closed {
            room.clear();
            // A page that was begun for this object is of no use.
            let kept = room.full.take().or(room.open.take());
            builder.open = kept.filter(|open| open.objects > 0);
            return;
        }
        if let Some(full) = room.full.take() {
            builder.open = Some(full);
            builder.close();
        }
        builder.open = room.open.take();
    }
}

/// The memory of an object that is being built, at the end of the last page.
struct Room {
    open: Option<OpenPage>,
    /// The page that the object has outgrown.
    full: Option<OpenPage>,
    page_bytes: usize,
    pool: Option<Arc<PagePool>>,
    /// Where the object begins in the page.
    start: usize,
    /// Where its next tail begins, from `start` on. All bytes behind it are 0.
    end: usize,
    /// How long it can become.
    limit: usize,
    /// Lists that were begun and not ended.
    open_lists: usize,
    closed: bool,
}

impl Room {
    fn new(open: Option<OpenPage>, builder: &PageBuilder) -> Self {
        let free = open.as_ref().map_or(0, OpenPage::free_bytes);
        Self {
            start: open.as_ref().map_or(0, |open| open.objects_end),
            end: 0,
            limit: free.saturating_sub(SLOT_BYTES) / ALIGNMENT * ALIGNMENT,
            open,
            full: None,
            page_bytes: builder.page_bytes,
            pool: builder.pool.clone(),
            open_lists: 0,
            closed: false,
        }
    }

    /// The page from the start of the object on.
    #[inline(always)]
    fn extent(&mut self) -> &mut [u8] {
        match &mut self.open {
            Some(open) => open.page.get_mut(self.start..).unwrap_or_default(),
            None => &mut [],
        }
    }

    /// Makes room for an object up to `end`.
    #[inline(always)]
    fn reserve(&mut self, end: usize) -> Result<()> {
        if end > self.limit { self.grow(end) } else { Ok(()) }
    }

    /// Continues the object in a new page.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, end: usize) -> Result<()> {
        let most = LARGE_BYTES_END - self.page_bytes;
        if end > EXTENT_BYTES_END - 2 * ALIGNMENT {
            refuse!(Limit, "an object of {end} bytes is larger than a page can be");
        }
        // Below 2^31.
        let least = page_bytes_for(end.next_multiple_of(ALIGNMENT) as u32);
        if least > most {
            refuse!(Limit, "an object of {end} bytes is larger than a page can be");
        }
        let large = least > self.page_bytes;
        let pool = self.pool.clone().filter(|_| !large);
        let mut page = match &pool {
            Some(pool) => pool.take()?,
            // A large page has room to grow. It is shortened when the object is whole.
            None if large => {
                new_page(least.max(2 * self.end).min(most).next_multiple_of(self.page_bytes))?
            }
            None => new_page(self.page_bytes)?,
        };
        let written = self.end;
        page[HEADER_BYTES..HEADER_BYTES + written].copy_from_slice(&self.extent()[..written]);
        self.clear();
        self.limit = (page.len() - HEADER_BYTES - SLOT_BYTES) / ALIGNMENT * ALIGNMENT;
        self.start = HEADER_BYTES;
        self.end = written;
        let outgrown = self.open.replace(OpenPage::new(page, pool, large));
        self.full = self.full.take().or(outgrown.filter(|page| page.objects > 0));
        Ok(())
    }

    /// Overwrites the object with zeros.
    fn clear(&mut self) {
        let end = std::mem::take(&mut self.end);
        self.extent()[..end].fill(0);
    }

    /// Writes the size of the object, and its slot.
    fn close(&mut self) -> Result<()> {
        if self.open_lists > 0 {
            refuse!(Unsupported, "an object of which a list was left because of an error");
        }
        let bytes = self.end.next_multiple_of(ALIGNMENT);
        self.reserve(bytes)?;
        // Below 2^31.
        self.extent()[..4].copy_from_slice(&(bytes as u32).to_le_bytes());
        let page_bytes = page_bytes_for(bytes as u32).next_multiple_of(self.page_bytes);
        let Some(open) = &mut self.open else { refuse!(Internal, "an object without a page") };
        if open.large {
            open.page.truncate(page_bytes);
        }
        open.take_one(bytes);
        self.closed = true;
        Ok(())
    }

    /// Begins `count` items, whose place is at `at`. Returns where the bitmap and the records are.
    fn items(&mut self, items: &Items, at: usize, count: usize) -> Result<(usize, usize)> {
        let start = self.end.next_multiple_of(ALIGNMENT);
        let records_at = start + items.bitmap_bytes(count);
        let Some(end) = count
            .checked_mul(items.record.stride)
            .map(|bytes| records_at + bytes)
            .filter(|end| count < EXTENT_BYTES_END && *end < EXTENT_BYTES_END)
        else {
            refuse!(Limit, "{count} items are more than an object can have");
        };
        self.reserve(end)?;
        self.extent()[at..at + LIST_BYTES].copy_from_slice(&list_place(start, count));
        self.end = end;
        Ok((start, records_at))
    }
}

/// Writes an object, or an item of one of its lists, in place ([`PageBuilder::build`]).
pub struct ObjectBuilder<'r> {
    room: &'r mut Room,
    record: &'r Record,
    id: u32,
    /// Where the record begins in the object.
    at: usize,
    /// The first of the record's tails that can still be written.
    next_tail: usize,
    /// The bit of an item that may be missing. It is set when something of the item is.
    in_bitmap: Option<Bit>,
}

impl ObjectBuilder<'_> {
    /// Writes a field. The structs around it become present, and so does the item that it is in.
    ///
    /// # Errors
    /// When the field is not in this object or item; when a string comes after what follows it in
    /// the schema, or again; and when the object does not fit any page, or there is no memory.
    #[inline]
    pub fn set<T: Change + ?Sized>(&mut self, field: &Mutator<T>, value: T::New<'_>) -> Result<()> {
        T::write(self, &field.position, value)
    }

    /// Writes a list of `count` items. `each` writes an item, given its number. An item of which
    /// nothing is written is missing if it may be, and otherwise 0 or empty.
    ///
    /// # Errors
    /// As [`set`](Self::set), when a fixed-size list has another size, and those of `each`. The
    /// object can't be appended then.
    #[inline]
    pub fn list(
        &mut self,
        list: &ListMutator,
        count: usize,
        mut each: impl FnMut(&mut ObjectBuilder<'_>, usize) -> Result<()>,
    ) -> Result<()> {
        let Some((bitmap_at, records_at)) = self.begin_items(list, count)? else { return Ok(()) };
        let ListMutator { items, items_id, .. } = list;
        let record = &items.record;
        // Until the end an error, or a panic that the program catches, leaves the list open.
        self.room.open_lists += 1;
        for i in 0..count {
            let bit = Bit { at: (bitmap_at + i / 8) as u32, mask: 1 << (i % 8) };
            let mut item = ObjectBuilder {
                room: self.room,
                record,
                id: *items_id,
                at: records_at + i * record.stride,
                next_tail: 0,
                in_bitmap: items.nullable.then_some(bit),
            };
            each(&mut item, i)?;
            item.pass_tails(usize::MAX)?;
        }
        self.room.open_lists -= 1;
        Ok(())
    }

    /// Writes a list of values.
    ///
    /// # Errors
    /// Those of [`list`](Self::list).
    pub fn values<'v, T: Change + ?Sized>(
        &mut self,
        list: &ListMutator,
        item: &Mutator<T>,
        values: impl IntoIterator<Item = T::New<'v>, IntoIter: ExactSizeIterator>,
    ) -> Result<()> {
        let mut values = values.into_iter();
        self.list(list, values.len(), |record, _| match values.next() {
            Some(value) => record.set(item, value),
            None => refuse!(Unsupported, "there are fewer values than their iterator said"),
        })
    }

    /// Writes a list of values that may be missing.
    ///
    /// # Errors
    /// Those of [`list`](Self::list).
    pub fn optional_values<'v, T: Change + ?Sized>(
        &mut self,
        list: &ListMutator,
        item: &Mutator<T>,
        values: impl IntoIterator<Item = Option<T::New<'v>>, IntoIter: ExactSizeIterator>,
    ) -> Result<()> {
        let mut values = values.into_iter();
        self.list(list, values.len(), |record, _| match values.next() {
            Some(Some(value)) => record.set(item, value),
            Some(None) => Ok(()),
            None => refuse!(Unsupported, "there are fewer values than their iterator said"),
        })
    }

    /// Writes the place of a list, and returns where its bitmap and its records are.
    fn begin_items(&mut self, list: &ListMutator, count: usize) -> Result<Option<(usize, usize)>> {
        let field = &list.position;
        if let Some(size) = list.size.filter(|size| *size != count) {
            refuse!(Items, "{count} items for {:?}, expected {size}", field.more.path);
        }
        self.begin_tail(field)?;
        match count {
            0 => Ok(None),
            _ => self.room.items(&list.items, self.at + field.at as usize, count).map(Some),
        }
    }

    /// Marks a field, the structs around it and the item that it is in as present.
    #[inline(always)]
    fn mark(&mut self, field: &Position) -> Result<()> {
        if field.record_id != self.id {
            return Err(field.elsewhere());
        }
        let at = self.at;
        if !field.required.is_empty() {
            self.check_required(field)?;
        }
        let extent = self.room.extent();
        if let Some(bit) = self.in_bitmap {
            extent[bit.at as usize] |= bit.mask;
        }
        for bit in &field.bits {
            extent[at + bit.at as usize] |= bit.mask;
        }
        Ok(())
    }

    /// A struct can't become present any more if it has a fixed-size list whose turn was earlier.
    #[cold]
    fn check_required(&mut self, field: &Position) -> Result<()> {
        let (at, next_tail) = (self.at, self.next_tail);
        let extent = self.room.extent();
        let is_late = |(tail, bit): &(usize, Bit)| {
            *tail < next_tail && extent[at + bit.at as usize] & bit.mask == 0
        };
        if field.required.iter().any(is_late) {
            refuse!(
                Unsupported,
                "field {:?} comes too late: write the first field of a struct that has fixed-size \
                 lists before the strings and lists that follow these",
                field.more.path
            );
        }
        Ok(())
    }

    /// Passes the tails before a string or list, whose turn it is.
    #[inline(always)]
    fn begin_tail(&mut self, field: &Position) -> Result<()> {
        if field.record_id == self.id && field.tail < self.next_tail {
            refuse!(
                Unsupported,
                "field {:?} comes too late: strings and lists are written once, in the order of \
                 the schema",
                field.more.path
            );
        }
        self.mark(field)?;
        self.pass_tails(field.tail)?;
        self.next_tail = field.tail + 1;
        Ok(())
    }

    /// Passes the tails before this one. Of those that were not written, fixed-size lists get
    /// their items.
    #[inline(always)]
    fn pass_tails(&mut self, end: usize) -> Result<()> {
        if self.record.checks.sized { self.pass_sized(end) } else { Ok(()) }
    }

    #[cold]
    fn pass_sized(&mut self, end: usize) -> Result<()> {
        let tails = &self.record.checks.tails;
        for (number, tail) in tails.iter().enumerate().take(end).skip(self.next_tail) {
            self.next_tail = number + 1;
            let TailKind::FixedList { size: size @ 1.., items, bit } = &tail.kind else {
                continue;
            };
            let (at, bits_at) = (self.at, self.at + self.record.bits_at);
            let place_at = at + tail.at;
            let extent = self.room.extent();
            let in_item = |bit: Bit| extent[bit.at as usize] & bit.mask != 0;
            let present = match bit {
                Some(bit) => bit_at(extent, bits_at, *bit),
                None => self.in_bitmap.is_none_or(in_item),
            };
            if present && u32_at(extent, place_at + 4) == 0 {
                self.room.open_lists += 1;
                self.fill(items, place_at, *size)?;
                self.room.open_lists -= 1;
            }
        }
        Ok(())
    }

    /// Writes items that are missing, 0 or empty.
    fn fill(&mut self, items: &Items, place_at: usize, count: usize) -> Result<()> {
        let (_, records_at) = self.room.items(items, place_at, count)?;
        let record = &items.record;
        if items.nullable || !record.checks.sized {
            return Ok(());
        }
        for i in 0..count {
            let at = records_at + i * record.stride;
            let mut item = ObjectBuilder {
                room: self.room,
                record,
                id: self.id,
                at,
                next_tail: 0,
                in_bitmap: None,
            };
            item.pass_tails(usize::MAX)?;
        }
        Ok(())
    }
}

impl Target for ObjectBuilder<'_> {
    #[inline(always)]
    fn fixed(&mut self, field: &Position, value: &[u8]) -> Result<()> {
        self.mark(field)?;
        let at = self.at + field.at as usize;
        self.room.extent()[at..at + value.len()].copy_from_slice(value);
        Ok(())
    }

    #[inline]
    fn bytes(&mut self, field: &Position, value: &[u8]) -> Result<()> {
        self.begin_tail(field)?;
        let at = self.at + field.at as usize;
        let from = self.room.end;
        if value.len() > INLINE_BYTES_MAX {
            let end = from + value.len();
            self.room.reserve(end)?;
            copy_short(&mut self.room.extent()[from..end], value);
            self.room.end = end;
        }
        self.room.extent()[at..at + STRING_BYTES].copy_from_slice(&string_place(value, from));
        Ok(())
    }

    fn present(&mut self, field: &Position) -> Result<()> {
        self.mark(field)
    }
}
