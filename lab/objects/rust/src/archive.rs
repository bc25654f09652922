//! rkyv: archived objects that are read where they lie, checked by bytecheck or trusted. Objects
//! are byte strings in the page that README.md describes.
#![allow(unsafe_code, reason = "rkyv's access without validation is what is measured")]

use bytes::Bytes;
use rkyv::api::high::{HighSerializer, HighValidator};
use rkyv::bytecheck::CheckBytes;
use rkyv::munge::munge;
use rkyv::rancor::Error;
use rkyv::seal::Seal;
use rkyv::ser::allocator::ArenaHandle;
use rkyv::util::AlignedVec;
use rkyv::{Archive, Portable, Serialize};

use crate::Failure;
use crate::aggregate::Vectors;
use crate::checksum::Checksum;
use crate::implementation::{Implementation, PAGE_BYTES, Writer, Written, page_buffer, u32_at};
use crate::model::{
    self as own, ArchivedCustomer, ArchivedEntry, ArchivedLineItem, ArchivedPart,
    ArchivedSparseVector, Customer, Entry, Key, LineItem, Part, SparseVector, Study,
};

macro_rules! sum {
    (str, $h:ident, $v:expr) => {
        $h.str($v.as_bytes())
    };
    ($number:ident, $h:ident, $v:expr) => {
        $h.$number($v.to_native())
    };
}
macro_rules! views {
    ($own:ident { $($name:ident: $kind:ident),* }
     structs { $($child:ident: $of:ident),* } lists { $($list:ident: $item:ident),* }) => {
        impl Sum for rkyv::Archived<own::$own> {
            #[inline]
            fn sum(&self, h: &mut Checksum) {
                $(sum!($kind, h, self.$name);)*
                $(self.$child.sum(h);)*
                $(h.word(self.$list.len() as u64);
                  self.$list.iter().for_each(|item| item.sum(h));)*
            }
        }
    };
}
own::objects!(views);

/// What is summed up.
pub trait Sum {
    fn sum(&self, h: &mut Checksum);
}

/// An object that rkyv archives.
pub trait Archived:
    Study
    + Archive<Archived: Sum + PartialEq + Portable + for<'a> CheckBytes<HighValidator<'a, Error>>>
    + for<'a> Serialize<HighSerializer<AlignedVec, ArenaHandle<'a>, Error>>
{
    fn key_view(view: &Self::Archived) -> Key;
    fn copy_view(view: &Self::Archived) -> Result<Self, Failure>;
    /// Adds 1 to the field that the phase `mutate` changes.
    fn change_view(view: Seal<'_, Self::Archived>);
}

macro_rules! archived {
    ($own:ident $view:ident, $changed:ident, |$v:ident| $key:expr) => {
        impl Archived for $own {
            fn key_view($v: &$view) -> Key {
                $key
            }
            fn copy_view(view: &$view) -> Result<Self, Failure> {
                Ok(rkyv::deserialize::<Self, Error>(view)?)
            }
            fn change_view(view: Seal<'_, $view>) {
                munge!(let $view { mut $changed, .. } = view);
                *$changed = (($changed).to_native() + 1.0).into();
            }
        }
    };
}
archived!(Part ArchivedPart, retail_price, |v| (v.part_key.to_native(), 0));
archived!(LineItem ArchivedLineItem, extended_price, |v| {
    (v.order_key.to_native(), v.line_number.to_native())
});
archived!(Customer ArchivedCustomer, acctbal, |v| (v.cust_key.to_native(), 0));

pub struct Rkyv;

/// Objects of a page that are valid.
pub struct Opened {
    page: Bytes,
    positions: Vec<u32>,
}

fn bytes_at(page: &[u8], position: u32) -> Result<&[u8], Failure> {
    let at = position as usize;
    let length = u32_at(page, at)? as usize;
    Ok(page.get(at + 8..at + 8 + length).ok_or("an object is cut off")?)
}

impl Opened {
    #[inline]
    fn view<T: Archived>(&self, i: usize) -> &T::Archived {
        let at = self.positions[i] as usize;
        let length = u32::from_le_bytes([
            self.page[at],
            self.page[at + 1],
            self.page[at + 2],
            self.page[at + 3],
        ]) as usize;
        // SAFETY: `open` has checked the bytes, or its caller trusts them: they were written by
        // this program for this type. They lie at a multiple of 8.
        unsafe { rkyv::access_unchecked::<T::Archived>(&self.page[at + 8..at + 8 + length]) }
    }
}

/// Pages of byte strings.
pub struct BlobWriter {
    page: AlignedVec<64>,
    used: usize,
    positions: Vec<u32>,
    object_bytes: u64,
    full: Vec<Written>,
}

impl Default for BlobWriter {
    fn default() -> Self {
        Self {
            page: page_buffer(PAGE_BYTES),
            used: 8,
            positions: Vec::new(),
            object_bytes: 0,
            full: Vec::new(),
        }
    }
}

impl BlobWriter {
    fn add_bytes(&mut self, bytes: &[u8]) {
        let needs = 8 + bytes.len().next_multiple_of(8);
        if self.used + needs > self.page.len() {
            self.close((8 + needs).next_multiple_of(PAGE_BYTES));
        }
        let at = self.used;
        self.page[at..at + 4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.page[at + 8..at + 8 + bytes.len()].copy_from_slice(bytes);
        self.positions.push(at as u32);
        self.object_bytes += bytes.len() as u64;
        self.used += needs;
    }

    /// Closes the page, and begins one of a size.
    fn close(&mut self, next_bytes: usize) {
        let mut page = std::mem::replace(&mut self.page, page_buffer(next_bytes));
        let positions = std::mem::take(&mut self.positions);
        self.used = 8;
        if positions.is_empty() {
            return;
        }
        let page_bytes = page.len() as u32;
        page[..4].copy_from_slice(&page_bytes.to_le_bytes());
        page[4..8].copy_from_slice(&(positions.len() as u32).to_le_bytes());
        let object_bytes = std::mem::take(&mut self.object_bytes);
        self.full.push(Written { bytes: Bytes::from_owner(page), positions, object_bytes });
    }
}

impl<T: Archived> Writer<T> for BlobWriter {
    type Opened = Opened;

    fn add(&mut self, value: &T) -> Result<(), Failure> {
        self.add_bytes(&rkyv::to_bytes::<Error>(value)?);
        Ok(())
    }

    fn add_object(&mut self, page: &Opened, i: usize) -> Result<(), Failure> {
        self.add_bytes(bytes_at(&page.page, page.positions[i])?);
        Ok(())
    }

    /// A list can't grow in place: the object is copied out and archived again.
    fn add_grown(&mut self, page: &Opened, i: usize) -> Result<(), Failure> {
        let mut own = T::copy_view(page.view::<T>(i))?;
        own.grow()?;
        self.add(&own)
    }

    fn take(&mut self, is_end: bool) -> Result<Vec<Written>, Failure> {
        if is_end {
            self.close(PAGE_BYTES);
        }
        Ok(std::mem::take(&mut self.full))
    }
}

impl<T: Archived> Implementation<T> for Rkyv {
    type Opened = Opened;
    type Writer<'a> = BlobWriter;

    fn writer(&self) -> Result<BlobWriter, Failure> {
        Ok(BlobWriter::default())
    }

    fn page_bytes(page: &[u8]) -> Result<usize, Failure> {
        Ok(u32_at(page, 0)? as usize)
    }

    fn positions(&self, page: &[u8]) -> Result<Vec<u32>, Failure> {
        let mut at = 8;
        (0..u32_at(page, 4)?)
            .map(|_| {
                let position = at;
                at += 8 + (u32_at(page, at as usize)?).next_multiple_of(8);
                Ok(position)
            })
            .collect()
    }

    fn open(&self, page: Bytes, positions: &[u32], validate: bool) -> Result<Opened, Failure> {
        if validate {
            for position in positions {
                rkyv::access::<T::Archived, Error>(bytes_at(&page, *position)?)?;
            }
        }
        Ok(Opened { page, positions: positions.to_vec() })
    }

    #[inline]
    fn sum(&self, page: &Opened, i: usize) -> u64 {
        let mut h = Checksum::default();
        page.view::<T>(i).sum(&mut h);
        h.0
    }

    #[inline]
    fn key(&self, page: &Opened, i: usize) -> Key {
        T::key_view(page.view::<T>(i))
    }

    fn equal(&self, a: (&Opened, usize), b: (&Opened, usize)) -> bool {
        a.0.view::<T>(a.1) == b.0.view::<T>(b.1)
    }

    fn copy(&self, page: &Opened, i: usize) -> Result<T, Failure> {
        T::copy_view(page.view::<T>(i))
    }
    fn change(&self, page: Opened) -> Result<Bytes, Failure> {
        let mut bytes = page.page.try_into_mut().map_err(|_| "the memory of a page is shared")?;
        for position in page.positions {
            let length = bytes_at(&bytes, position)?.len();
            let at = position as usize + 8;
            // SAFETY: as in `view`: `open` has checked these bytes, or its caller trusts them. No
            // other reference to them is alive.
            let view =
                unsafe { rkyv::access_unchecked_mut::<T::Archived>(&mut bytes[at..at + length]) };
            T::change_view(view);
        }
        Ok(bytes.freeze())
    }
}

impl Vectors for Rkyv {
    type Opened = Bytes;

    fn encode(&self, vector: &SparseVector) -> Result<Bytes, Failure> {
        Ok(Bytes::from_owner(rkyv::to_bytes::<Error>(vector)?))
    }

    fn open(&self, bytes: Bytes) -> Result<Bytes, Failure> {
        rkyv::access::<ArchivedSparseVector, Error>(&bytes)?;
        Ok(bytes)
    }

    fn entries<'a>(&'a self, bytes: &'a Bytes) -> impl ExactSizeIterator<Item = Entry> + 'a {
        // SAFETY: `open` has checked the bytes.
        let vector = unsafe { rkyv::access_unchecked::<ArchivedSparseVector>(bytes) };
        let entry = |entry: &ArchivedEntry| Entry {
            position: entry.position.to_native(),
            value: entry.value.to_native(),
        };
        vector.entries.iter().map(entry)
    }
}
