//! rkyv: archived objects that are read where they lie, checked by bytecheck or trusted. Objects
//! are byte strings in the page that README.md describes.
#![allow(unsafe_code, reason = "rkyv's access without validation is what is measured")]

use bytes::Bytes;
use rkyv::api::high::{HighSerializer, HighValidator};
use rkyv::bytecheck::CheckBytes;
use rkyv::rancor::Error;
use rkyv::ser::allocator::ArenaHandle;
use rkyv::util::AlignedVec;
use rkyv::{Archive, Portable, Serialize};

use crate::Failure;
use crate::checksum::Checksum;
use crate::implementation::{Implementation, PAGE_BYTES, Writer, Written, page_buffer, u32_at};
use crate::model::{
    ArchivedCustomer, ArchivedLineItem, ArchivedPart, Customer, Key, LineItem, Part, Study,
};

/// An object that rkyv archives.
pub trait Archived: Study {
    type View: Portable + for<'a> CheckBytes<HighValidator<'a, Error>>;

    fn archive(&self) -> Result<AlignedVec, Failure>;
    fn sum_view(view: &Self::View) -> u64;
    fn key_view(view: &Self::View) -> Key;
    fn equal_views(a: &Self::View, b: &Self::View) -> bool;
    fn copy_view(view: &Self::View) -> Result<Self, Failure>;
}

fn archive<T>(value: &T) -> Result<AlignedVec, Failure>
where
    T: Archive + for<'a> Serialize<HighSerializer<AlignedVec, ArenaHandle<'a>, Error>>,
{
    Ok(rkyv::to_bytes::<Error>(value)?)
}

macro_rules! archived {
    ($own:ident $view:ident, |$v:ident| $key:expr) => {
        impl Archived for $own {
            type View = $view;

            fn archive(&self) -> Result<AlignedVec, Failure> {
                archive(self)
            }
            fn sum_view(view: &$view) -> u64 {
                let mut h = Checksum::default();
                view.sum(&mut h);
                h.0
            }
            fn key_view($v: &$view) -> Key {
                $key
            }
            fn equal_views(a: &$view, b: &$view) -> bool {
                a == b
            }
            fn copy_view(view: &$view) -> Result<Self, Failure> {
                Ok(rkyv::deserialize::<Self, Error>(view)?)
            }
        }
    };
}
archived!(Part ArchivedPart, |v| (v.part_key.to_native(), 0));
archived!(LineItem ArchivedLineItem, |v| (v.order_key.to_native(), v.line_number.to_native()));
archived!(Customer ArchivedCustomer, |v| (v.cust_key.to_native(), 0));

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
    fn view<T: Archived>(&self, i: usize) -> &T::View {
        let at = self.positions[i] as usize;
        let length = u32::from_le_bytes([
            self.page[at],
            self.page[at + 1],
            self.page[at + 2],
            self.page[at + 3],
        ]) as usize;
        // SAFETY: `open` has checked the bytes, or its caller trusts them: they were written by
        // this program for this type. They lie at a multiple of 8.
        unsafe { rkyv::access_unchecked::<T::View>(&self.page[at + 8..at + 8 + length]) }
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
        self.add_bytes(&value.archive()?);
        Ok(())
    }

    fn add_object(&mut self, page: &Opened, i: usize) -> Result<(), Failure> {
        self.add_bytes(bytes_at(&page.page, page.positions[i])?);
        Ok(())
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
                rkyv::access::<T::View, Error>(bytes_at(&page, *position)?)?;
            }
        }
        Ok(Opened { page, positions: positions.to_vec() })
    }

    #[inline]
    fn sum(&self, page: &Opened, i: usize) -> u64 {
        T::sum_view(page.view::<T>(i))
    }

    #[inline]
    fn key(&self, page: &Opened, i: usize) -> Key {
        T::key_view(page.view::<T>(i))
    }

    fn equal(&self, a: (&Opened, usize), b: (&Opened, usize)) -> bool {
        T::equal_views(a.0.view::<T>(a.1), b.0.view::<T>(b.1))
    }

    fn copy(&self, page: &Opened, i: usize) -> Result<T, Failure> {
        T::copy_view(page.view::<T>(i))
    }
}
