//! The builder of one column, from a field of many objects.

use std::collections::HashMap;

use dray_format::{COUNT_MAX, Column, Type, Values, copy_short};

use super::bits::Bits;
use super::budget::Budget;
use super::key::put_key;
use super::lists::Lists;
use crate::error::{Error, ErrorKind, Result, refuse};
use crate::layout::{INLINE_BYTES_MAX, Kind, Place, Record};
use crate::object::RecordRef;

/// Builds one column.
#[derive(Debug)]
pub(super) struct ColumnBuilder {
    pub(super) rows: usize,
    /// None while no value is missing.
    validity: Option<Bits>,
    slots: Slots,
}

#[derive(Debug)]
enum Slots {
    Null,
    Boolean(Bits),
    Fixed {
        width: usize,
        bytes: Vec<u8>,
    },
    Bytes {
        offsets: Vec<[u8; 4]>,
        data: Vec<u8>,
    },
    List {
        offsets: Vec<[u8; 4]>,
        child: Box<ColumnBuilder>,
    },
    FixedList {
        size: usize,
        child: Box<ColumnBuilder>,
    },
    Struct(Vec<ColumnBuilder>),
    Dictionary {
        width: usize,
        count_max: u64,
        indexes: Vec<u8>,
        known: HashMap<Vec<u8>, u64>,
        entries: Box<ColumnBuilder>,
    },
}

/// Which values are present.
#[derive(Clone, Copy)]
pub(super) enum Present<'a> {
    All,
    /// By their validity bits.
    ByBit,
    Listed(&'a [bool]),
}

impl ColumnBuilder {
    pub(super) fn new(data_type: &Type) -> Self {
        let boxed = |data_type: &Type| Box::new(Self::new(data_type));
        let slots = match data_type {
            Type::Null => Slots::Null,
            Type::Boolean => Slots::Boolean(Bits::default()),
            Type::Utf8 | Type::Binary => Slots::Bytes { offsets: vec![[0; 4]], data: Vec::new() },
            Type::List(item) => {
                Slots::List { offsets: vec![[0; 4]], child: boxed(&item.data_type) }
            }
            Type::FixedList { size, item } => {
                Slots::FixedList { size: *size as usize, child: boxed(&item.data_type) }
            }
            Type::Map { key, value, .. } => {
                let pair = vec![Self::new(&key.data_type), Self::new(&value.data_type)];
                let pair = Self { rows: 0, validity: None, slots: Slots::Struct(pair) };
                Slots::List { offsets: vec![[0; 4]], child: Box::new(pair) }
            }
            Type::Struct(fields) => {
                Slots::Struct(fields.iter().map(|field| Self::new(&field.data_type)).collect())
            }
            Type::Dictionary { index, value, .. } => {
                let width = index.width().unwrap_or(8);
                let signed =
                    matches!(**index, Type::Int8 | Type::Int16 | Type::Int32 | Type::Int64);
                let bits = width * 8 - usize::from(signed);
                let count_max = if bits < 31 { 1 << bits } else { COUNT_MAX as u64 };
                let (indexes, known) = Default::default();
                Slots::Dictionary { width, count_max, indexes, known, entries: boxed(value) }
            }
            fixed => Slots::Fixed { width: fixed.width().unwrap_or(0), bytes: Vec::new() },
        };
        Self { rows: 0, validity: None, slots }
    }

    /// The builder of the same column for the next batch, with the capacity of this one: buffers
    /// that grow are copied, and end with unused capacity.
    pub(super) fn next(&self) -> Self {
        // A last batch is shorter, and says nothing about the next ones.
        fn count<T>(before: &Vec<T>, more: usize) -> usize {
            if before.len() < before.capacity() / 2 {
                before.capacity()
            } else {
                before.len() + more
            }
        }
        let capacity = |bytes: &Vec<u8>| Vec::with_capacity(count(bytes, 0));
        let new_offsets = |offsets: &Vec<[u8; 4]>| {
            let mut next = Vec::with_capacity(count(offsets, 0));
            next.push([0; 4]);
            next
        };
        let boxed = |child: &Self| Box::new(child.next());
        let slots = match &self.slots {
            Slots::Null => Slots::Null,
            Slots::Boolean(bits) => Slots::Boolean(Bits { bytes: capacity(&bits.bytes), len: 0 }),
            Slots::Fixed { width, bytes } => Slots::Fixed { width: *width, bytes: capacity(bytes) },
            Slots::Bytes { offsets, data } => {
                // Strings are not as long in every batch.
                let data = Vec::with_capacity(count(data, data.len() / 16 + INLINE_BYTES_MAX));
                Slots::Bytes { offsets: new_offsets(offsets), data }
            }
            Slots::List { offsets, child } => {
                Slots::List { offsets: new_offsets(offsets), child: boxed(child) }
            }
            Slots::FixedList { size, child } => {
                Slots::FixedList { size: *size, child: boxed(child) }
            }
            Slots::Struct(children) => Slots::Struct(children.iter().map(Self::next).collect()),
            Slots::Dictionary { width, count_max, indexes, entries, .. } => {
                let (width, count_max, indexes) = (*width, *count_max, capacity(indexes));
                Slots::Dictionary {
                    width,
                    count_max,
                    indexes,
                    known: HashMap::new(),
                    entries: boxed(entries),
                }
            }
        };
        Self { rows: 0, validity: None, slots }
    }

    /// Reserves memory for more rows, unless they would be over the limit.
    pub(super) fn reserve(&mut self, rows: usize, bytes_max: u64) {
        let allowed = |width: usize| (rows as u64).saturating_mul(width as u64) <= bytes_max;
        match &mut self.slots {
            Slots::Fixed { width, bytes } if allowed(*width) => bytes.reserve(rows * *width),
            Slots::Bytes { offsets, .. } | Slots::List { offsets, .. }
                if allowed(size_of::<u32>()) =>
            {
                offsets.reserve(rows);
            }
            Slots::Struct(children) => {
                children.iter_mut().for_each(|child| child.reserve(rows, bytes_max))
            }
            _ => {}
        }
    }

    /// Appends a field of the records at `records`.
    pub(super) fn fields(
        &mut self,
        record: &Record,
        place: &Place,
        records: &[RecordRef<'_>],
        budget: &mut Budget,
    ) -> Result<()> {
        let present = if place.nullable { Present::ByBit } else { Present::All };
        self.values(record, place, records, present, budget)
    }

    /// Appends the values at `records`; `present` tells which ones are present.
    pub(super) fn values(
        &mut self,
        record: &Record,
        place: &Place,
        records: &[RecordRef<'_>],
        present: Present<'_>,
        budget: &mut Budget,
    ) -> Result<()> {
        let is_present = |i: usize| match present {
            Present::All => true,
            Present::ByBit => {
                records.get(i).is_some_and(|record_ref| record_ref.has(record, place))
            }
            Present::Listed(listed) => listed.get(i).is_some_and(|present| *present),
        };
        self.count(records.len())?;
        self.mark(records.len(), is_present, budget)?;
        let at = place.at;
        match (&mut self.slots, &place.kind) {
            (Slots::Boolean(bits), _) => {
                budget.take(records.len(), 1)?;
                records.iter().for_each(|record_ref| bits.push(record_ref.load::<1>(at) == [1]));
            }
            (Slots::Fixed { width, bytes }, _) => {
                budget.take(records.len(), *width)?;
                match *width {
                    1 => fixed::<1>(bytes, at, records),
                    2 => fixed::<2>(bytes, at, records),
                    4 => fixed::<4>(bytes, at, records),
                    8 => fixed::<8>(bytes, at, records),
                    16 => fixed::<16>(bytes, at, records),
                    32 => fixed::<32>(bytes, at, records),
                    width => records.iter().for_each(|record_ref| {
                        let from = record_ref.at + at;
                        bytes.extend_from_slice(
                            record_ref.extent.get(from..from + width).unwrap_or_default(),
                        );
                    }),
                }
            }
            (Slots::Bytes { offsets, data }, _) => strings(offsets, data, at, records, budget)?,
            (Slots::List { offsets, child }, Kind::List(items)) => {
                budget.take(records.len(), size_of::<u32>())?;
                let mut lists = Lists::new(items, child);
                for record_ref in records {
                    let (from, count) = record_ref.list(at);
                    lists.append(*record_ref, from, count, budget)?;
                    offsets.push(offset(lists.child_rows())?);
                }
                lists.flush(budget)?;
            }
            (Slots::FixedList { size, child }, Kind::FixedList { items, .. }) => {
                let mut zeros = Vec::new();
                if records.iter().any(|record_ref| record_ref.list(at).1 != *size) {
                    budget.take(1, items.record.stride)?;
                    zeros.resize(items.record.stride, 0);
                }
                let missing = RecordRef { extent: &zeros, at: 0 };
                let mut lists = Lists::new(items, child);
                for record_ref in records {
                    match record_ref.list(at) {
                        (from, count) if count == *size => {
                            lists.append(*record_ref, from, count, budget)?
                        }
                        _ => lists.append_missing(missing, *size, budget)?,
                    }
                }
                lists.flush(budget)?;
            }
            (Slots::Struct(children), Kind::Struct(places)) => {
                for (child, place) in children.iter_mut().zip(places) {
                    child.fields(record, place, records, budget)?;
                }
            }
            (Slots::Dictionary { width, count_max, indexes, known, entries }, kind) => {
                budget.take(records.len(), *width)?;
                let mut key = Vec::new();
                for (i, record_ref) in records.iter().enumerate() {
                    let mut index = 0;
                    if matches!(kind, Kind::Null) {
                        entries.rows = 1;
                    } else if is_present(i) {
                        key.clear();
                        put_key(record, place, *record_ref, &mut key);
                        index = match known.get(&key) {
                            Some(index) => *index,
                            None => {
                                let index = known.len() as u64;
                                if index >= *count_max {
                                    refuse!(
                                        Limit,
                                        "a dictionary of more than {count_max} values, \
                                     which its indexes can't say"
                                    );
                                }
                                // Besides the entry, its key takes memory.
                                budget.take(1, key.len() + size_of::<(Vec<u8>, u64)>())?;
                                entries.values(
                                    record,
                                    place,
                                    &[*record_ref],
                                    Present::All,
                                    budget,
                                )?;
                                known.insert(key.clone(), index);
                                index
                            }
                        };
                    }
                    indexes.extend_from_slice(&index.to_le_bytes()[..*width]);
                }
            }
            (Slots::Null, _) => {}
            _ => refuse!(Internal, "a column of another type than its objects' field"),
        }
        Ok(())
    }

    /// Appends items that take no bytes in an object: nulls, or structs of nulls.
    pub(super) fn weightless(&mut self, count: usize, budget: &mut Budget) -> Result<()> {
        self.count(count)?;
        match &mut self.slots {
            Slots::Struct(children) => {
                children.iter_mut().try_for_each(|child| child.weightless(count, budget))
            }
            Slots::Dictionary { width, indexes, entries, .. } => {
                budget.take(count, *width)?;
                indexes.resize(indexes.len() + count * *width, 0);
                entries.rows = 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn count(&mut self, more: usize) -> Result<()> {
        self.rows = self.rows.saturating_add(more);
        if self.rows > COUNT_MAX {
            refuse!(Limit, "a column of more than {COUNT_MAX} values");
        }
        Ok(())
    }

    /// Appends the validity of the last `count` values.
    fn mark(
        &mut self,
        count: usize,
        present: impl Fn(usize) -> bool,
        budget: &mut Budget,
    ) -> Result<()> {
        budget.take(count.div_ceil(8), 1)?;
        if matches!(self.slots, Slots::Null) || self.validity.is_none() && (0..count).all(&present)
        {
            return Ok(());
        }
        let before = self.rows - count;
        let bits = self.validity.get_or_insert_with(|| {
            let mut bytes = vec![0xFF; before / 8];
            if !before.is_multiple_of(8) {
                bytes.push((1 << (before % 8)) - 1);
            }
            Bits { bytes, len: before }
        });
        let (mut i, whole) = (0, bits.len.is_multiple_of(8));
        while whole && i + 8 <= count {
            bits.bytes.push((0..8).fold(0, |byte, bit| byte | u8::from(present(i + bit)) << bit));
            bits.len += 8;
            i += 8;
        }
        (i..count).for_each(|i| bits.push(present(i)));
        Ok(())
    }

    pub(super) fn finish(self) -> Column {
        let boxed = |child: Box<Self>| Box::new(child.finish());
        let values = match self.slots {
            Slots::Null => Values::Null,
            Slots::Boolean(bits) => Values::Boolean(bits.finish()),
            Slots::Fixed { width, bytes } => Values::Fixed { width, bytes: bytes.into() },
            Slots::Bytes { offsets, data } => {
                Values::Bytes { offsets: offsets.into_flattened().into(), data: data.into() }
            }
            Slots::List { offsets, child } => {
                Values::List { offsets: offsets.into_flattened().into(), child: boxed(child) }
            }
            Slots::FixedList { size, child } => Values::FixedList { size, child: boxed(child) },
            Slots::Struct(children) => {
                Values::Struct(children.into_iter().map(Self::finish).collect())
            }
            Slots::Dictionary { width, indexes, entries, .. } => {
                Values::Dictionary { width, indexes: indexes.into(), entries: boxed(entries) }
            }
        };
        Column { rows: self.rows, validity: self.validity.map(Bits::finish), values }
    }
}

#[inline]
fn fixed<const N: usize>(bytes: &mut Vec<u8>, at: usize, records: &[RecordRef<'_>]) {
    let before = bytes.len();
    bytes.resize(before + N * records.len(), 0);
    let slots = bytes.get_mut(before..).unwrap_or_default().as_chunks_mut::<N>().0;
    slots.iter_mut().zip(records).for_each(|(slot, record_ref)| *slot = record_ref.load(at));
}

fn strings(
    offsets: &mut Vec<[u8; 4]>,
    data: &mut Vec<u8>,
    at: usize,
    records: &[RecordRef<'_>],
    budget: &mut Budget,
) -> Result<()> {
    let length_of = |record_ref: &RecordRef<'_>| u32::from_le_bytes(record_ref.load(at)) as usize;
    let total: usize = records.iter().map(length_of).sum();
    budget.take(records.len(), size_of::<u32>())?;
    budget.take(1, total)?;
    let mut end = data.len();
    offset(end + total)?;
    // A short string is copied with all twelve bytes of its place; the next one overwrites the
    // excess.
    data.resize(end + total + INLINE_BYTES_MAX, 0);
    for record_ref in records {
        let length = length_of(record_ref);
        if length <= INLINE_BYTES_MAX {
            data[end..end + INLINE_BYTES_MAX]
                .copy_from_slice(&record_ref.load::<INLINE_BYTES_MAX>(at + size_of::<u32>()));
        } else {
            let bytes = record_ref.bytes(at);
            if bytes.len() != length {
                refuse!(Internal, "a string of {length} bytes is not in its object");
            }
            copy_short(&mut data[end..end + length], bytes);
        }
        end += length;
        offsets.push(offset(end)?);
    }
    data.truncate(end);
    Ok(())
}

fn offset(end: usize) -> Result<[u8; 4]> {
    match u32::try_from(end) {
        Ok(offset) if end <= COUNT_MAX => Ok(offset.to_le_bytes()),
        _ => Err(Error::new(
            ErrorKind::Limit,
            format!("a column of more than {COUNT_MAX} items or bytes"),
        )),
    }
}
