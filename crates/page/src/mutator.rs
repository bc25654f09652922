//! Mutators look a field up once, and then write it in any number of objects: in those that a
//! [`PageEditor`](crate::PageEditor) changes ([`ItemMut`](crate::ItemMut)), and in those that a
//! [`PageBuilder`](crate::PageBuilder) builds in place ([`ObjectBuilder`](crate::ObjectBuilder)).

use std::any::type_name;
use std::marker::PhantomData;
use std::sync::Arc;

use dray_format::Type;

use crate::accessor::Access;
use crate::error::{Error, ErrorKind, Result, refuse};
use crate::layout::{Items, Kind, LIST_BYTES, Layout, Place, STRING_BYTES, Tail, TailKind};
use crate::path::Found;

impl Layout {
    /// A mutator of the field with this path, as for [`accessor`](Self::accessor).
    ///
    /// # Errors
    /// When there is no such field or more than one, or when its type is not written as a `T`.
    pub fn mutator<T: Change + ?Sized>(&self, path: &[&str]) -> Result<Mutator<T>> {
        let found = self.find(path)?;
        if !T::takes(found.data_type) {
            refuse!(
                Unsupported,
                "{}, which is not written as {}",
                found.described(path),
                type_name::<T>()
            );
        }
        Ok(Mutator { position: Position::of(&found, path), of: PhantomData })
    }

    /// A mutator of the list, fixed-size list or map with this path.
    ///
    /// # Errors
    /// When there is no such field or more than one, or when it has no items.
    pub fn list_mutator(&self, path: &[&str]) -> Result<ListMutator> {
        let found = self.find(path)?;
        let (items, size) = match &found.place.kind {
            Kind::List(items) => (items.clone(), None),
            Kind::FixedList { size, items } => (items.clone(), Some(*size)),
            _ => refuse!(Unsupported, "{}, which has no items", found.described(path)),
        };
        let (position, items_id) = (Position::of(&found, path), found.items_id());
        Ok(ListMutator { position, items, items_id, size })
    }
}

/// Writes one field as a `T` (see [`Change`]).
#[derive(Debug)]
pub struct Mutator<T: ?Sized> {
    pub(crate) position: Position,
    of: PhantomData<T>,
}

impl<T: ?Sized> Clone for Mutator<T> {
    fn clone(&self) -> Self {
        Self { position: self.position.clone(), of: PhantomData }
    }
}

/// Writes the items of one list.
#[derive(Debug, Clone)]
pub struct ListMutator {
    pub(crate) position: Position,
    pub(crate) items: Arc<Items>,
    pub(crate) items_id: u32,
    /// The number of items, if the type has one.
    pub(crate) size: Option<usize>,
}

/// The position of a field in a record, and what its value takes there.
#[derive(Debug, Clone)]
pub struct Position {
    pub(crate) record_id: u32,
    pub(crate) at: u32,
    /// Its validity bit, if it has one, and those of the structs around it.
    pub(crate) bits: Box<[Bit]>,
    /// The number of its tail, or of the first one within it, among the record's tails.
    pub(crate) tail: usize,
    /// The tails of fixed-size lists that get items when one of `bits` is set, and that bit.
    pub(crate) required: Box<[(usize, Bit)]>,
    pub(crate) more: Arc<More>,
}

/// A bit of a byte of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bit {
    pub at: u32,
    pub mask: u8,
}

/// What is seldom needed of a position.
#[derive(Debug)]
pub(crate) struct More {
    pub path: String,
    /// Whether bytes must be UTF-8.
    pub utf8: bool,
    /// The width of its values, if it is fixed.
    pub width: Option<usize>,
    pub clear: Clear,
}

/// What becomes zero when the field becomes missing.
#[derive(Debug)]
pub(crate) struct Clear {
    pub how: Nullable,
    /// Its own validity bit and those within it.
    pub bits: Vec<Bit>,
    /// Offset and width of its places.
    pub places: Vec<(usize, usize)>,
    /// Where its strings are, and its lists.
    pub strings: Vec<usize>,
    pub lists: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nullable {
    Never,
    /// By its validity bit.
    Bit,
    /// By the bitmap of the list whose item it is.
    Bitmap,
}

impl Position {
    fn of(found: &Found<'_>, path: &[&str]) -> Self {
        let Found { record, place, .. } = found;
        // Records have fewer than 2^31 bytes.
        let bit = |bit: &usize| Bit { at: (record.bits_at + bit / 8) as u32, mask: 1 << (bit % 8) };
        let how = match found.in_bitmap {
            Some(true) => Nullable::Bitmap,
            _ if place.nullable => Nullable::Bit,
            _ => Nullable::Never,
        };
        let mut clear = Clear {
            how,
            bits: Vec::new(),
            places: Vec::new(),
            strings: Vec::new(),
            lists: Vec::new(),
        };
        clear.bits = place.bits.clone().map(|i| bit(&i)).collect();
        clear.take(place);
        let is_own = |at: usize| clear.strings.contains(&at) || clear.lists.contains(&at);
        let numbered = record.checks.tails.iter().enumerate();
        let tail = numbered.clone().find(|(_, tail)| is_own(tail.at)).map_or(0, |(i, _)| i);
        let required = |(i, tail): (usize, &Tail)| match &tail.kind {
            TailKind::FixedList { size: 1.., bit: Some(own), .. } if found.bits.contains(own) => {
                Some((i, bit(own)))
            }
            _ => None,
        };
        let required = numbered.filter_map(required).collect();
        let utf8 = matches!(place.kind, Kind::Bytes { utf8: true });
        let width = match place.kind {
            Kind::Fixed(width) => Some(width),
            _ => None,
        };
        let more = More { path: path.join("."), utf8, width, clear };
        Self {
            record_id: found.record_id,
            at: place.at as u32,
            bits: found.bits.iter().map(bit).collect(),
            tail,
            required,
            more: Arc::new(more),
        }
    }

    /// The error of a mutator that was used for another record than it was made for.
    #[cold]
    pub(crate) fn elsewhere(&self) -> Error {
        let what = format!(
            "field {:?} is not in this object or item, or is one of another schema",
            self.more.path
        );
        Error::new(ErrorKind::Unsupported, what)
    }
}

impl Clear {
    /// Lists the places of a field and of those within it.
    fn take(&mut self, place: &Place) {
        let width = match &place.kind {
            Kind::Null => return,
            Kind::Struct(fields) => return fields.iter().for_each(|field| self.take(field)),
            Kind::Boolean => 1,
            Kind::Fixed(width) => *width,
            Kind::Bytes { .. } => {
                self.strings.push(place.at);
                STRING_BYTES
            }
            Kind::List(_) | Kind::FixedList { .. } => {
                self.lists.push(place.at);
                LIST_BYTES
            }
        };
        self.places.push((place.at, width));
    }
}

/// A Rust type that fields are written as: those of [`Access`]. `[u8]` is checked to be UTF-8 where
/// the field is a string; it is also written to any type of a fixed width, if it has that many
/// bytes. `()` makes a value present, with all that is within it missing, 0 or empty.
pub trait Change: Access {
    /// The value that is written.
    type New<'a>;

    /// Whether values of this type are written as `Self`.
    fn takes(data_type: &Type) -> bool {
        Self::fits(data_type)
    }

    /// Writes it.
    ///
    /// # Errors
    /// Those of the target.
    fn write<R: Target>(target: &mut R, at: &Position, value: Self::New<'_>) -> Result<()>;
}

/// A record that is written, in an editor or a builder.
pub trait Target {
    /// Writes the bytes of a fixed width, which the field has.
    ///
    /// # Errors
    /// When the field is none of this record.
    fn fixed(&mut self, field: &Position, value: &[u8]) -> Result<()>;

    /// Writes a string or a binary value.
    ///
    /// # Errors
    /// When the field is none of this record, or the value does not fit.
    fn bytes(&mut self, field: &Position, value: &[u8]) -> Result<()>;

    /// Makes a value present.
    ///
    /// # Errors
    /// When the field is none of this record, or its items do not fit.
    fn present(&mut self, field: &Position) -> Result<()>;
}

macro_rules! numbers {
    ($($number:ident)*) => {$(
        impl Change for $number {
            type New<'a> = Self;

            #[inline(always)]
            fn write<R: Target>(target: &mut R, at: &Position, value: Self) -> Result<()> {
                target.fixed(at, &value.to_le_bytes())
            }
        }
    )*};
}

numbers! { i8 i16 i32 i64 i128 u8 u16 u32 u64 f32 f64 }

impl<const N: usize> Change for [u8; N] {
    type New<'a> = Self;

    #[inline(always)]
    fn write<R: Target>(target: &mut R, at: &Position, value: Self) -> Result<()> {
        target.fixed(at, &value)
    }
}

impl Change for bool {
    type New<'a> = Self;

    #[inline(always)]
    fn write<R: Target>(target: &mut R, at: &Position, value: Self) -> Result<()> {
        target.fixed(at, &[u8::from(value)])
    }
}

impl Change for str {
    type New<'a> = &'a str;

    #[inline(always)]
    fn write<R: Target>(target: &mut R, at: &Position, value: &str) -> Result<()> {
        target.bytes(at, value.as_bytes())
    }
}

impl Change for [u8] {
    type New<'a> = &'a [u8];

    fn takes(data_type: &Type) -> bool {
        Self::fits(data_type) || data_type.width().is_some()
    }

    #[inline]
    fn write<R: Target>(target: &mut R, at: &Position, value: &[u8]) -> Result<()> {
        if let Some(width) = at.more.width {
            if value.len() != width {
                refuse!(
                    Size,
                    "{} bytes for field {:?}, expected {width}",
                    value.len(),
                    at.more.path
                );
            }
            return target.fixed(at, value);
        }
        if at.more.utf8 && str::from_utf8(value).is_err() {
            refuse!(Utf8, "the new value of field {:?} is not UTF-8", at.more.path);
        }
        target.bytes(at, value)
    }
}

impl Change for () {
    type New<'a> = ();

    #[inline]
    fn write<R: Target>(target: &mut R, at: &Position, (): ()) -> Result<()> {
        target.present(at)
    }
}
