//! From objects back to columns.
//!
//! Objects come in any order, as a sort leaves them. Some at a time are read column by column, so
//! that each of them is fetched into the cache once.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use dray_format::{Batch, Bitmap, COUNT_MAX, Column, Type, Values, copy_few};

use crate::error::{Error, ErrorKind, Result, refuse};
use crate::layout::{INLINE_BYTES_MAX, Items, Kind, Layout, Place, Record};
use crate::object::{Object, Spot};

/// So many objects, or items of lists, are read column by column before the next ones.
const BLOCK: usize = 128;
/// A line of the cache, and so many of an object are fetched ahead.
const LINE_BYTES: usize = 64;
const LINES_MAX: usize = 64;

/// Columns under construction, from objects.
#[derive(Debug)]
pub struct ColumnsBuilder {
    layout: Arc<Layout>,
    rows: usize,
    columns: Vec<Gather>,
    budget: Budget,
}

impl ColumnsBuilder {
    /// A builder of batches of at most `bytes_max`: little that a hostile page says can take much
    /// memory, but a missing fixed-size list takes as much as one that is there.
    pub fn new(layout: Arc<Layout>, bytes_max: u64) -> Self {
        let mut builder = Self {
            layout,
            rows: 0,
            columns: Vec::new(),
            budget: Budget { bytes_max, left: bytes_max },
        };
        builder.begin();
        builder
    }

    /// Appends a row for each object, in this order.
    ///
    /// # Errors
    /// When the batch grows over `bytes_max`, a column over 2³¹ values or bytes, or a dictionary
    /// over what its indexes can say; or when an object is of another schema. What was appended is
    /// then gone.
    pub fn append<'a>(&mut self, objects: impl IntoIterator<Item = Object<'a>>) -> Result<()> {
        let appended = self.append_all(objects.into_iter());
        if appended.is_err() {
            self.begin();
        }
        appended
    }

    fn append_all<'a>(&mut self, mut objects: impl Iterator<Item = Object<'a>>) -> Result<()> {
        let layout = self.layout.clone();
        let record = &layout.record;
        let mut spots = Vec::with_capacity(BLOCK);
        let coming = objects.size_hint().0;
        self.columns.iter_mut().for_each(|column| column.reserve(coming, self.budget.left));
        loop {
            spots.clear();
            for object in objects.by_ref().take(BLOCK) {
                if !std::ptr::eq(object.layout(), &*layout)
                    && object.layout().schema() != layout.schema()
                {
                    refuse!(Unsupported, "an object of another schema");
                }
                if object.bytes().len() < record.end {
                    refuse!(
                        Internal,
                        "an object of {} bytes, expected {} or more",
                        object.bytes().len(),
                        record.end
                    );
                }
                spots.push(Spot { extent: object.bytes(), at: 0 });
            }
            if spots.is_empty() {
                return Ok(());
            }
            fetch(&spots);
            self.rows += spots.len();
            for (i, (column, place)) in self.columns.iter_mut().zip(&record.fields).enumerate() {
                let name = || layout.schema().fields.get(i).map_or("", |field| &field.name);
                let appended = column.fields(record, place, &spots, &mut self.budget);
                appended.map_err(|error| error.in_column(name()))?;
            }
        }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many bytes they take of those allowed.
    pub fn bytes(&self) -> u64 {
        self.budget.bytes_max - self.budget.left
    }

    /// Takes the rows out; the next ones begin a new batch, with room for as many.
    pub fn finish(&mut self) -> Batch {
        if self.rows == 0 {
            return self.empty();
        }
        let next = self.columns.iter().map(Gather::next).collect();
        let (rows, columns) = (self.rows, std::mem::replace(&mut self.columns, next));
        self.rows = 0;
        self.budget.left = self.budget.bytes_max;
        Batch { rows, columns: columns.into_iter().map(Gather::finish).collect() }
    }

    fn begin(&mut self) {
        self.rows = 0;
        self.budget.left = self.budget.bytes_max;
        self.columns = self.new_columns();
    }

    fn empty(&self) -> Batch {
        Batch { rows: 0, columns: self.new_columns().into_iter().map(Gather::finish).collect() }
    }

    fn new_columns(&self) -> Vec<Gather> {
        self.layout.schema().fields.iter().map(|field| Gather::new(&field.data_type)).collect()
    }
}

#[derive(Debug)]
struct Budget {
    bytes_max: u64,
    left: u64,
}

impl Budget {
    #[inline]
    fn take(&mut self, count: usize, bytes: usize) -> Result<()> {
        let taken =
            (count as u64).checked_mul(bytes as u64).and_then(|taken| self.left.checked_sub(taken));
        let Some(left) = taken else {
            refuse!(
                Limit,
                "the batch grows over {} bytes; fewer objects make a smaller one",
                self.bytes_max
            );
        };
        self.left = left;
        Ok(())
    }
}

/// A column under construction.
#[derive(Debug)]
struct Gather {
    rows: usize,
    /// None as long as no value is missing.
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
        child: Box<Gather>,
    },
    FixedList {
        size: usize,
        child: Box<Gather>,
    },
    Struct(Vec<Gather>),
    Dictionary {
        width: usize,
        count_max: u64,
        indexes: Vec<u8>,
        known: HashMap<Vec<u8>, u64>,
        entries: Box<Gather>,
    },
}

/// Reads a byte of every cache line that objects begin with. These loads don't wait for each other,
/// where those of a column, one an object, meet the misses of one line after the other: of lineitem
/// in a random order 163 to 220 ns a row became 151 to 200 (four pairs of runs on a busy machine),
/// of customers with their lineitems 10 % less.
fn fetch(objects: &[Spot<'_>]) {
    let lines = |object: &Spot<'_>| {
        object.extent.iter().step_by(LINE_BYTES).take(LINES_MAX).fold(0, |any, byte| any | byte)
    };
    std::hint::black_box(objects.iter().fold(0, |any, object| any | lines(object)));
}

/// Which of some values are there.
#[derive(Clone, Copy)]
enum Present<'a> {
    All,
    /// Their validity bits tell.
    ByBit,
    Listed(&'a [bool]),
}

#[derive(Debug, Default)]
struct Bits {
    bytes: Vec<u8>,
    len: usize,
}

impl Bits {
    #[inline]
    fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit) << (self.len % 8);
        }
        self.len += 1;
    }

    fn finish(self) -> Bitmap {
        Bitmap { bytes: Bytes::from(self.bytes), offset: 0, len: self.len }
    }
}

impl Gather {
    fn new(data_type: &Type) -> Self {
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

    /// The same column without values, with room for as many: buffers that grow are copied, and
    /// have room that nobody uses.
    fn next(&self) -> Self {
        // Of a last batch, which has fewer rows, what is next knows nothing.
        fn count<T>(before: &Vec<T>, more: usize) -> usize {
            if before.len() < before.capacity() / 2 {
                before.capacity()
            } else {
                before.len() + more
            }
        }
        let room = |bytes: &Vec<u8>| Vec::with_capacity(count(bytes, 0));
        let offsets_room = |offsets: &Vec<[u8; 4]>| {
            let mut next = Vec::with_capacity(count(offsets, 0));
            next.push([0; 4]);
            next
        };
        let boxed = |child: &Self| Box::new(child.next());
        let slots = match &self.slots {
            Slots::Null => Slots::Null,
            Slots::Boolean(bits) => Slots::Boolean(Bits { bytes: room(&bits.bytes), len: 0 }),
            Slots::Fixed { width, bytes } => Slots::Fixed { width: *width, bytes: room(bytes) },
            Slots::Bytes { offsets, data } => {
                // Strings are not as long in every batch.
                let data = Vec::with_capacity(count(data, data.len() / 16 + INLINE_BYTES_MAX));
                Slots::Bytes { offsets: offsets_room(offsets), data }
            }
            Slots::List { offsets, child } => {
                Slots::List { offsets: offsets_room(offsets), child: boxed(child) }
            }
            Slots::FixedList { size, child } => {
                Slots::FixedList { size: *size, child: boxed(child) }
            }
            Slots::Struct(children) => Slots::Struct(children.iter().map(Self::next).collect()),
            Slots::Dictionary { width, count_max, indexes, entries, .. } => {
                let (width, count_max, indexes) = (*width, *count_max, room(indexes));
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

    /// Makes room for so many values, if they may be as many.
    fn reserve(&mut self, rows: usize, bytes_max: u64) {
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

    /// Appends a field of the records at `spots`.
    fn fields(
        &mut self,
        record: &Record,
        place: &Place,
        spots: &[Spot<'_>],
        budget: &mut Budget,
    ) -> Result<()> {
        let present = if place.nullable { Present::ByBit } else { Present::All };
        self.values(record, place, spots, present, budget)
    }

    /// Appends the values at `spots`, of which those are there that `present` says.
    fn values(
        &mut self,
        record: &Record,
        place: &Place,
        spots: &[Spot<'_>],
        present: Present<'_>,
        budget: &mut Budget,
    ) -> Result<()> {
        let is_present = |i: usize| match present {
            Present::All => true,
            Present::ByBit => spots.get(i).is_some_and(|spot| spot.has(record, place)),
            Present::Listed(listed) => listed.get(i).is_some_and(|present| *present),
        };
        self.count(spots.len())?;
        self.mark(spots.len(), is_present, budget)?;
        let at = place.at;
        match (&mut self.slots, &place.kind) {
            (Slots::Boolean(bits), _) => {
                budget.take(spots.len(), 1)?;
                spots.iter().for_each(|spot| bits.push(spot.load::<1>(at) == [1]));
            }
            (Slots::Fixed { width, bytes }, _) => {
                budget.take(spots.len(), *width)?;
                match *width {
                    1 => fixed::<1>(bytes, at, spots),
                    2 => fixed::<2>(bytes, at, spots),
                    4 => fixed::<4>(bytes, at, spots),
                    8 => fixed::<8>(bytes, at, spots),
                    16 => fixed::<16>(bytes, at, spots),
                    32 => fixed::<32>(bytes, at, spots),
                    width => spots.iter().for_each(|spot| {
                        let from = spot.at + at;
                        bytes.extend_from_slice(
                            spot.extent.get(from..from + width).unwrap_or_default(),
                        );
                    }),
                }
            }
            (Slots::Bytes { offsets, data }, _) => strings(offsets, data, at, spots, budget)?,
            (Slots::List { offsets, child }, Kind::List(items)) => {
                budget.take(spots.len(), size_of::<u32>())?;
                let mut lists = Lists::new(items, child);
                for spot in spots {
                    let (from, count) = spot.list(at);
                    lists.append(*spot, from, count, budget)?;
                    offsets.push(offset(lists.child_rows())?);
                }
                lists.flush(budget)?;
            }
            (Slots::FixedList { size, child }, Kind::FixedList { items, .. }) => {
                let mut zeros = Vec::new();
                if spots.iter().any(|spot| spot.list(at).1 != *size) {
                    budget.take(1, items.record.stride)?;
                    zeros.resize(items.record.stride, 0);
                }
                let missing = Spot { extent: &zeros, at: 0 };
                let mut lists = Lists::new(items, child);
                for spot in spots {
                    match spot.list(at) {
                        (from, count) if count == *size => {
                            lists.append(*spot, from, count, budget)?
                        }
                        _ => lists.append_missing(missing, *size, budget)?,
                    }
                }
                lists.flush(budget)?;
            }
            (Slots::Struct(children), Kind::Struct(places)) => {
                for (child, place) in children.iter_mut().zip(places) {
                    child.fields(record, place, spots, budget)?;
                }
            }
            (Slots::Dictionary { width, count_max, indexes, known, entries }, kind) => {
                budget.take(spots.len(), *width)?;
                let mut key = Vec::new();
                for (i, spot) in spots.iter().enumerate() {
                    let mut index = 0;
                    if matches!(kind, Kind::Null) {
                        entries.rows = 1;
                    } else if is_present(i) {
                        key.clear();
                        put_key(record, place, *spot, &mut key);
                        index = match known.get(&key) {
                            Some(index) => *index,
                            None => {
                                let index = known.len() as u64;
                                if index >= *count_max {
                                    refuse!(
                                        Limit,
                                        "a dictionary of more than {count_max} values, which its indexes can't say"
                                    );
                                }
                                // Besides the entry, what is kept to find it again.
                                budget.take(1, key.len() + size_of::<(Vec<u8>, u64)>())?;
                                entries.values(record, place, &[*spot], Present::All, budget)?;
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

    /// Appends items that take no bytes in an object: of type null, or structs of such.
    fn weightless(&mut self, count: usize, budget: &mut Budget) -> Result<()> {
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

    /// Notes which of the last `count` values are there.
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

    fn finish(self) -> Column {
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
fn fixed<const N: usize>(bytes: &mut Vec<u8>, at: usize, spots: &[Spot<'_>]) {
    let before = bytes.len();
    bytes.resize(before + N * spots.len(), 0);
    let slots = bytes.get_mut(before..).unwrap_or_default().as_chunks_mut::<N>().0;
    slots.iter_mut().zip(spots).for_each(|(slot, spot)| *slot = spot.load(at));
}

fn strings(
    offsets: &mut Vec<[u8; 4]>,
    data: &mut Vec<u8>,
    at: usize,
    spots: &[Spot<'_>],
    budget: &mut Budget,
) -> Result<()> {
    let length_of = |spot: &Spot<'_>| u32::from_le_bytes(spot.load(at)) as usize;
    let total: usize = spots.iter().map(length_of).sum();
    budget.take(spots.len(), size_of::<u32>())?;
    budget.take(1, total)?;
    let mut end = data.len();
    offset(end + total)?;
    // Short strings are copied with all twelve bytes of their place, which a later one overwrites.
    data.resize(end + total + INLINE_BYTES_MAX, 0);
    for spot in spots {
        let length = length_of(spot);
        if length <= INLINE_BYTES_MAX {
            data[end..end + INLINE_BYTES_MAX]
                .copy_from_slice(&spot.load::<INLINE_BYTES_MAX>(at + size_of::<u32>()));
        } else {
            let bytes = spot.bytes(at);
            if bytes.len() != length {
                refuse!(Internal, "a string of {length} bytes is not in its object");
            }
            copy_few(&mut data[end..end + length], bytes);
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

/// The items of lists, on their way to the child column.
struct Lists<'l, 'a> {
    items: &'l Items,
    child: &'l mut Gather,
    spots: Vec<Spot<'a>>,
    present: Vec<bool>,
}

impl<'l, 'a> Lists<'l, 'a> {
    fn new(items: &'l Items, child: &'l mut Gather) -> Self {
        Self { items, child, spots: Vec::new(), present: Vec::new() }
    }

    /// How many rows the child has, those counted that are on their way.
    fn child_rows(&self) -> usize {
        self.child.rows + self.spots.len()
    }

    fn append(
        &mut self,
        list: Spot<'a>,
        from: usize,
        count: usize,
        budget: &mut Budget,
    ) -> Result<()> {
        if self.items.record.is_weightless() && !self.items.nullable {
            return self.child.weightless(count, budget);
        }
        for i in 0..count {
            let (spot, present) = list.item(self.items, from, count, i);
            self.push(spot, present, budget)?;
        }
        Ok(())
    }

    /// What lies under a missing fixed-size list: missing items, or where none may be missing
    /// zeros.
    fn append_missing(&mut self, zeros: Spot<'a>, count: usize, budget: &mut Budget) -> Result<()> {
        if self.items.record.is_weightless() && !self.items.nullable {
            return self.child.weightless(count, budget);
        }
        (0..count).try_for_each(|_| self.push(zeros, !self.items.nullable, budget))
    }

    #[inline]
    fn push(&mut self, spot: Spot<'a>, present: bool, budget: &mut Budget) -> Result<()> {
        self.spots.push(spot);
        self.present.push(present);
        if self.spots.len() < BLOCK { Ok(()) } else { self.flush(budget) }
    }

    fn flush(&mut self, budget: &mut Budget) -> Result<()> {
        if let Some(place) = self.items.record.fields.first() {
            let present =
                if self.items.nullable { Present::Listed(&self.present) } else { Present::All };
            self.child.values(&self.items.record, place, &self.spots, present, budget)?;
        }
        self.spots.clear();
        self.present.clear();
        Ok(())
    }
}

/// Appends bytes that are the same for equal values, wherever these lie.
fn put_key(record: &Record, place: &Place, spot: Spot<'_>, key: &mut Vec<u8>) {
    match &place.kind {
        Kind::Null => {}
        Kind::Boolean => key.extend(spot.load::<1>(place.at)),
        Kind::Fixed(width) => {
            let from = spot.at + place.at;
            key.extend_from_slice(spot.extent.get(from..from + width).unwrap_or_default());
        }
        Kind::Bytes { .. } => {
            let bytes = spot.bytes(place.at);
            key.extend_from_slice(&bytes.len().to_le_bytes());
            key.extend_from_slice(bytes);
        }
        Kind::List(items) | Kind::FixedList { items, .. } => {
            let (from, count) = spot.list(place.at);
            key.extend_from_slice(&count.to_le_bytes());
            let Some(place) = items.record.fields.first() else { return };
            if items.record.is_weightless() && !items.nullable {
                return;
            }
            for i in 0..count {
                let (spot, present) = spot.item(items, from, count, i);
                key.push(u8::from(present));
                if present {
                    put_key(&items.record, place, spot, key);
                }
            }
        }
        Kind::Struct(places) => {
            for place in places {
                let present = spot.has(record, place);
                key.push(u8::from(present));
                if present {
                    put_key(record, place, spot, key);
                }
            }
        }
    }
}
