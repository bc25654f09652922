//! Dray's pages: objects that are built, read and changed where they lie. A page is verified as a
//! whole. The position of an object is its slot.

pub mod fields;

use std::sync::Arc;

use bytes::Bytes;
use dray_format::{Checksum, Schema};
use dray_page::{Header, Item, Layout, Object, PageBuilder, PageEditor, VerifiedPage};

use crate::Failure;
use crate::aggregate::Vectors;
use crate::implementation::{Implementation, PAGE_BYTES, Writer, Written, u32_at};
use crate::model::{Customer, Entry, Key, LineItem, Part, SparseVector, Study};
use fields::{Fields, Place};

/// Pages of messages are small, so that a message has little free space.
const MESSAGE_PAGE_BYTES: usize = 4096;

/// An object that pages have.
pub trait Paged: Study {
    type Fields: Fields<Own = Self>;

    fn key_of(fields: &Self::Fields, item: Item<'_>) -> Key;
    /// The field that the phase `mutate` changes.
    fn changed(fields: &Self::Fields) -> &Place<f64, f64>;
}

macro_rules! paged {
    ($own:ident, $changed:ident, $($key:ident),*) => {
        impl Paged for $own {
            type Fields = fields::$own;

            #[inline]
            fn key_of(fields: &fields::$own, item: Item<'_>) -> Key {
                let mut keys = [$(&fields.$key),*].into_iter();
                let mut next = || keys.next().and_then(|key| key.get(item)).unwrap_or_default();
                (next(), next())
            }
            fn changed(fields: &fields::$own) -> &Place<f64, f64> {
                &fields.$changed
            }
        }
    };
}
paged!(Part, retail_price, part_key);
paged!(LineItem, extended_price, order_key, line_number);
paged!(Customer, acctbal, cust_key);

pub struct Dray<F> {
    layout: Arc<Layout>,
    fields: F,
}

impl<F: Fields> Dray<F> {
    pub fn new() -> Result<Self, Failure> {
        let layout = Layout::new(Schema { fields: F::schema() })?;
        let fields = F::of(&layout, &[])?;
        Ok(Self { layout, fields })
    }

    fn pages(&self, page_bytes: usize) -> Result<PageBuilder, Failure> {
        Ok(PageBuilder::new(self.layout.clone(), page_bytes, Checksum::Crc32c)?)
    }
}

/// Objects of a page that was verified.
pub struct Opened {
    page: VerifiedPage,
    slots: Vec<u32>,
}

impl Opened {
    #[inline]
    fn object(&self, i: usize) -> Option<Object<'_>> {
        self.page.object(*self.slots.get(i)? as usize)
    }

    fn existing(&self, i: usize) -> Result<Object<'_>, Failure> {
        Ok(self.object(i).ok_or("there is no such object")?)
    }
}

pub struct PageWriter<'a, F> {
    builder: PageBuilder,
    fields: &'a F,
}

impl<T: Paged> Writer<T> for PageWriter<'_, T::Fields> {
    type Opened = Opened;

    fn add(&mut self, value: &T) -> Result<(), Failure> {
        Ok(self.builder.build(|to| self.fields.build(value, to))?)
    }

    fn add_object(&mut self, page: &Opened, i: usize) -> Result<(), Failure> {
        Ok(self.builder.copy(page.existing(i)?)?)
    }

    /// The object is written anew from what it was.
    fn add_grown(&mut self, page: &Opened, i: usize) -> Result<(), Failure> {
        let item = Item::from(page.existing(i)?);
        let more = T::grown(T::key_of(self.fields, item).0)?;
        Ok(self.builder.build(|to| self.fields.build_item(item, Some(&more), to))?)
    }

    fn take(&mut self, is_end: bool) -> Result<Vec<Written>, Failure> {
        let pages = match is_end {
            true => self.builder.finish(),
            false => std::iter::from_fn(|| self.builder.pop()).collect(),
        };
        Ok(pages.iter().map(written).collect())
    }
}

fn written(page: &VerifiedPage) -> Written {
    let header = page.header();
    Written {
        bytes: page.bytes().clone(),
        positions: (0..header.objects).collect(),
        object_bytes: u64::from(header.objects_end) - dray_page::HEADER_BYTES as u64,
    }
}

impl<T: Paged> Implementation<T> for Dray<T::Fields> {
    type Opened = Opened;
    type Writer<'a> = PageWriter<'a, T::Fields>;

    fn writer(&self) -> Result<PageWriter<'_, T::Fields>, Failure> {
        Ok(PageWriter { builder: self.pages(PAGE_BYTES)?, fields: &self.fields })
    }

    fn page_bytes(page: &[u8]) -> Result<usize, Failure> {
        Ok(u32_at(page, 20)? as usize)
    }

    fn positions(&self, page: &[u8]) -> Result<Vec<u32>, Failure> {
        let header = page.first_chunk().ok_or("a page is cut off")?;
        Ok((0..Header::decode(header)?.objects).collect())
    }

    /// A page is always verified: there is no other way from bytes to objects.
    fn open(&self, page: Bytes, positions: &[u32], _validate: bool) -> Result<Opened, Failure> {
        let page = VerifiedPage::verify(&self.layout, page)?;
        Ok(Opened { page, slots: positions.to_vec() })
    }

    #[inline]
    fn sum(&self, page: &Opened, i: usize) -> u64 {
        let mut h = crate::checksum::Checksum::default();
        if let Some(object) = page.object(i) {
            self.fields.sum(Item::from(object), &mut h);
        }
        h.0
    }

    #[inline]
    fn key(&self, page: &Opened, i: usize) -> Key {
        page.object(i).map_or((0, 0), |object| T::key_of(&self.fields, Item::from(object)))
    }

    /// Equal objects of one schema have equal bytes.
    fn equal(&self, a: (&Opened, usize), b: (&Opened, usize)) -> bool {
        a.0.object(a.1).map(|object| object.bytes()) == b.0.object(b.1).map(|object| object.bytes())
    }

    fn copy(&self, page: &Opened, i: usize) -> Result<T, Failure> {
        Ok(self.fields.copy(Item::from(page.existing(i)?)))
    }

    /// Numbers are overwritten where they lie, and the page gets a new checksum.
    fn change(&self, page: Opened) -> Result<Bytes, Failure> {
        let field = T::changed(&self.fields);
        let mut editor = PageEditor::new(page.page)?;
        for slot in page.slots {
            let mut object = editor.object_mut(slot as usize).ok_or("there is no such object")?;
            let value = object.get(&field.accessor).unwrap_or_default();
            object.set(&field.mutator, value + 1.0)?;
        }
        Ok(editor.finish(Checksum::Crc32c).bytes().clone())
    }
}

impl Vectors for Dray<fields::SparseVector> {
    type Opened = VerifiedPage;

    fn encode(&self, vector: &SparseVector) -> Result<Bytes, Failure> {
        let mut pages = self.pages(MESSAGE_PAGE_BYTES)?;
        pages.build(|to| self.fields.build(vector, to))?;
        Ok(pages.finish().first().ok_or("a vector has no page")?.bytes().clone())
    }

    fn open(&self, bytes: Bytes) -> Result<VerifiedPage, Failure> {
        Ok(VerifiedPage::verify(&self.layout, bytes)?)
    }

    fn entries<'a>(&'a self, page: &'a VerifiedPage) -> impl ExactSizeIterator<Item = Entry> + 'a {
        let list = &self.fields.entries;
        let items = page.object(0).and_then(|object| list.accessor.get(object));
        let count = items.as_ref().map_or(0, ExactSizeIterator::len);
        let mut items = items.into_iter().flatten();
        (0..count).map(move |_| {
            let item = items.next();
            let position = item.and_then(|item| list.item.position.get(item)).unwrap_or_default();
            let value = item.and_then(|item| list.item.value.get(item)).unwrap_or_default();
            Entry { position, value }
        })
    }
}
