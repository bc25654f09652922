//! Changes of one object, or of an item of one of its lists.

use std::ops::Range;

use super::PageEditor;
use super::rewrite::{self, NewValue};
use crate::accessor::{Access, Accessor, Item};
use crate::error::{Result, refuse};
use crate::layout::{EXTENT_BYTES_END, INLINE_BYTES_MAX, LIST_BYTES, STRING_BYTES};
use crate::mutator::{Bit, Change, ListMutator, Mutator, Nullable, Position, Target};
use crate::word::{load, string_place, u32_at};

/// An object of a [`PageEditor`], or an item of one of its lists, to be changed.
///
/// It remains the same object or item whatever is changed in it: only what follows it in its object
/// can move.
#[derive(Debug)]
pub struct ItemMut<'e> {
    editor: &'e mut PageEditor,
    slot: usize,
    record_id: u32,
    /// Where the record is in the object.
    at: usize,
    /// Its bit in the bitmap of its list, if it may be missing.
    in_bitmap: Option<Bit>,
    /// Whether it has fixed-size lists that get items when it becomes present.
    sized: bool,
}

impl<'e> ItemMut<'e> {
    #[inline(always)]
    pub(super) fn of_object(editor: &'e mut PageEditor, slot: usize) -> Self {
        let record_id = editor.layout.id;
        Self { editor, slot, record_id, at: 0, in_bitmap: None, sized: false }
    }

    /// Changes a field. It becomes present, with the structs around it and the item that it is in.
    ///
    /// # Errors
    /// When the field is not in this object or item, and when the object does not fit its page any
    /// more. Nothing is changed then.
    #[inline]
    pub fn set<T: Change + ?Sized>(&mut self, field: &Mutator<T>, value: T::New<'_>) -> Result<()> {
        T::write(self, &field.position, value)
    }

    /// Makes a field missing, with all that is within it.
    ///
    /// # Errors
    /// When the field is not in this object or item, or not nullable.
    pub fn clear<T: Change + ?Sized>(&mut self, field: &Mutator<T>) -> Result<()> {
        self.clear_field(&field.position)
    }

    /// Makes a list missing.
    ///
    /// # Errors
    /// As [`clear`](Self::clear).
    pub fn clear_list(&mut self, list: &ListMutator) -> Result<()> {
        self.clear_field(&list.position)
    }

    /// A field's value ([`Accessor::get`]).
    #[inline]
    pub fn get<T: Access + ?Sized>(&self, field: &Accessor<T>) -> Option<T::Value<'_>> {
        field.get(Item::from(self))
    }

    /// The same object or item, for a while.
    #[inline]
    pub fn reborrow(&mut self) -> ItemMut<'_> {
        let Self { slot, record_id, at, in_bitmap, sized, .. } = *self;
        ItemMut { editor: self.editor, slot, record_id, at, in_bitmap, sized }
    }

    /// Changes item `i` of a list of values.
    ///
    /// # Errors
    /// Those of [`set`](Self::set), and when there is no such item.
    pub fn set_item<T: Change + ?Sized>(
        &mut self,
        list: &ListMutator,
        i: usize,
        field: &Mutator<T>,
        value: T::New<'_>,
    ) -> Result<()> {
        self.existing_item(list, i)?.set(field, value)
    }

    /// Makes item `i` of a list of values missing.
    ///
    /// # Errors
    /// Those of [`clear`](Self::clear), and when there is no such item.
    pub fn clear_item<T: Change + ?Sized>(
        &mut self,
        list: &ListMutator,
        i: usize,
        field: &Mutator<T>,
    ) -> Result<()> {
        self.existing_item(list, i)?.clear(field)
    }

    fn existing_item(&mut self, list: &ListMutator, i: usize) -> Result<ItemMut<'_>> {
        self.check(&list.position)?;
        let count = self.count(list);
        match self.item(list, i) {
            Some(item) => Ok(item),
            None => {
                let path = &list.position.more.path;
                refuse!(Items, "there is no item {i} of list {path:?}, it has {count}")
            }
        }
    }

    /// The number of a list's items; 0 if it is missing, or not in this object or item.
    #[inline]
    pub fn count(&self, list: &ListMutator) -> usize {
        if list.position.record_id != self.record_id {
            return 0;
        }
        self.word(list.position.at as usize + 4)
    }

    /// Item `i` of a list, to be changed; none if there is none, or the list is not in this object
    /// or item. An item that is missing becomes present when one of its fields is set.
    #[inline]
    pub fn item(&mut self, list: &ListMutator, i: usize) -> Option<ItemMut<'_>> {
        let place = self.at + list.position.at as usize;
        let place: [u8; LIST_BYTES] = load(self.editor.extent(self.slot), place);
        let (bitmap_at, count) = (u32_at(&place, 0) as usize, u32_at(&place, 4) as usize);
        if list.position.record_id != self.record_id || i >= count {
            return None;
        }
        let items = &list.items;
        let bit = Bit { at: (bitmap_at + i / 8) as u32, mask: 1 << (i % 8) };
        Some(ItemMut {
            editor: self.editor,
            slot: self.slot,
            record_id: list.items_id,
            at: bitmap_at + items.bitmap_bytes(count) + i * items.record.stride,
            in_bitmap: items.nullable.then_some(bit),
            sized: items.nullable && items.record.checks.sized,
        })
    }

    /// Replaces the items `range` of a list by `count` new ones, which are missing if they may be,
    /// and otherwise 0 or empty. The list becomes present.
    ///
    /// # Errors
    /// When the list is not in this object or item, does not have these items, or is a fixed-size
    /// list, and when the object does not fit its page any more. Nothing is changed then.
    pub fn splice(&mut self, list: &ListMutator, range: Range<usize>, count: usize) -> Result<()> {
        let field = &list.position;
        self.check(field)?;
        let old = self.count(list);
        if list.size.is_some() || range.start > range.end || range.end > old {
            refuse!(
                Items,
                "items {range:?} of list {:?}, which has {old}, or always as many",
                field.more.path
            );
        }
        if count >= EXTENT_BYTES_END - old {
            refuse!(Limit, "{count} more items are more than an object can have");
        }
        let place_at = self.at + field.at as usize;
        if range.is_empty() && count == 0 {
            return self.present(field);
        }
        self.rewrite(field, NewValue::Items { place_at, range, count }, |_| ())
    }

    /// The object, and the bytes from the start of the record on.
    #[inline]
    pub(crate) fn extent_and_record(&self) -> (&[u8], &[u8]) {
        let extent = self.editor.extent(self.slot);
        (extent, extent.get(self.at..).unwrap_or_default())
    }

    /// A word of its record.
    #[inline(always)]
    fn word(&self, at: usize) -> usize {
        u32_at(self.editor.extent(self.slot), self.at + at) as usize
    }

    #[inline(always)]
    fn check(&self, field: &Position) -> Result<()> {
        if field.record_id != self.record_id {
            return Err(field.elsewhere());
        }
        Ok(())
    }

    /// Whether fixed-size lists get items when this field becomes present.
    #[inline(always)]
    fn takes_items(&self, field: &Position) -> bool {
        (!field.required.is_empty() || self.sized) && self.become_required(field)
    }

    #[cold]
    fn become_required(&self, field: &Position) -> bool {
        let extent = self.editor.extent(self.slot);
        let is_missing = |at: usize, mask| extent.get(at).is_some_and(|byte| byte & mask == 0);
        let required = &field.required;
        required.iter().any(|(_, bit)| is_missing(self.at + bit.at as usize, bit.mask))
            || self.sized && self.in_bitmap.is_some_and(|bit| is_missing(bit.at as usize, bit.mask))
    }

    /// Rewrites the object with a field that is present, with a new value, and with what `patch`
    /// does to the record.
    #[cold]
    fn rewrite(
        &mut self,
        field: &Position,
        value: NewValue<'_>,
        patch: impl FnOnce(&mut [u8]),
    ) -> Result<()> {
        let Self { at, in_bitmap, .. } = *self;
        self.rewrite_object(value, |old| {
            mark(old, at, in_bitmap, field);
            patch(&mut old[at..]);
        })
    }

    fn rewrite_object(&mut self, value: NewValue<'_>, patch: impl FnOnce(&mut [u8])) -> Result<()> {
        let (mut old, mut new) =
            (std::mem::take(&mut self.editor.old), std::mem::take(&mut self.editor.new));
        old.clear();
        old.extend_from_slice(self.editor.extent(self.slot));
        patch(&mut old);
        let most = self.editor.object_bytes_max();
        let record = &self.editor.layout.record;
        let rewritten = rewrite::object(record, &old, self.at, value, most, &mut new);
        (self.editor.old, self.editor.new) = (old, new);
        rewritten?;
        self.editor.store(self.slot)
    }

    fn clear_field(&mut self, field: &Position) -> Result<()> {
        self.check(field)?;
        let clear = &field.more.clear;
        let (at, in_bitmap) = (self.at, self.in_bitmap);
        if clear.how == Nullable::Never {
            refuse!(Missing, "field {:?} is not nullable", field.more.path);
        }
        let own_bit = |extent: &mut [u8]| match (clear.how, in_bitmap, clear.bits.first()) {
            (Nullable::Bitmap, Some(bit), _) => extent[bit.at as usize] &= !bit.mask,
            (_, _, Some(bit)) => extent[at + bit.at as usize] &= !bit.mask,
            _ => {}
        };
        let long = |place: &usize| self.word(*place) > INLINE_BYTES_MAX;
        let filled = |place: &usize| self.word(place + 4) > 0;
        if clear.strings.iter().any(long) || clear.lists.iter().any(filled) {
            return self.rewrite_object(NewValue::None, own_bit);
        }
        let extent = self.editor.extent_mut(self.slot);
        own_bit(extent);
        clear.bits.iter().for_each(|bit| extent[at + bit.at as usize] &= !bit.mask);
        clear.places.iter().for_each(|(place, width)| extent[at + place..][..*width].fill(0));
        Ok(())
    }
}

/// Sets the validity bits of a field in the record at `at`, and the bit of the item.
#[inline(always)]
fn mark(extent: &mut [u8], at: usize, in_bitmap: Option<Bit>, field: &Position) {
    if let Some(bit) = in_bitmap {
        extent[bit.at as usize] |= bit.mask;
    }
    for bit in &field.bits {
        extent[at + bit.at as usize] |= bit.mask;
    }
}

impl Target for ItemMut<'_> {
    #[inline(always)]
    fn fixed(&mut self, field: &Position, value: &[u8]) -> Result<()> {
        self.check(field)?;
        let width = value.len();
        if self.takes_items(field) {
            let put =
                |record: &mut [u8]| record[field.at as usize..][..width].copy_from_slice(value);
            return self.rewrite(field, NewValue::None, put);
        }
        let Self { at, in_bitmap, .. } = *self;
        let extent = self.editor.extent_mut(self.slot);
        mark(extent, at, in_bitmap, field);
        let at = at + field.at as usize;
        extent[at..at + width].copy_from_slice(value);
        Ok(())
    }

    fn bytes(&mut self, field: &Position, value: &[u8]) -> Result<()> {
        self.check(field)?;
        let Self { at, in_bitmap, .. } = *self;
        let place_at = at + field.at as usize;
        let old_bytes = self.word(field.at as usize);
        let tails = [old_bytes, value.len()].map(|bytes| bytes > INLINE_BYTES_MAX);
        let stays = tails == [false, false] || old_bytes == value.len();
        if !stays || self.takes_items(field) {
            return self.rewrite(field, NewValue::Bytes { place_at, value }, |_| ());
        }
        let extent = self.editor.extent_mut(self.slot);
        mark(extent, at, in_bitmap, field);
        let tail_at = u32_at(extent, place_at + 12) as usize;
        extent[place_at..place_at + STRING_BYTES].copy_from_slice(&string_place(value, tail_at));
        if tails[1] {
            extent[tail_at..tail_at + value.len()].copy_from_slice(value);
        }
        Ok(())
    }

    fn present(&mut self, field: &Position) -> Result<()> {
        self.check(field)?;
        if self.takes_items(field) {
            return self.rewrite(field, NewValue::None, |_| ());
        }
        let Self { at, in_bitmap, .. } = *self;
        mark(self.editor.extent_mut(self.slot), at, in_bitmap, field);
        Ok(())
    }
}

impl<'a> From<&'a ItemMut<'_>> for Item<'a> {
    #[inline]
    fn from(item: &'a ItemMut<'_>) -> Self {
        let extent = item.editor.extent(item.slot);
        let is_there =
            |bit: Bit| extent.get(bit.at as usize).is_some_and(|byte| byte & bit.mask != 0);
        match item.in_bitmap.is_none_or(is_there) {
            true => Item::new(extent, item.at, item.record_id),
            false => Item::new(&[], 0, item.record_id),
        }
    }
}
