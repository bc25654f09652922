//! Dray's pages: objects that are read where they lie, after the page has been verified as a whole.

use std::sync::Arc;

use bytes::Bytes;
use dray_format::Checksum;
use dray_page::{Header, Item, Layout, Object, PageBuilder, VerifiedPage};

use crate::Failure;
use crate::implementation::{Implementation, PAGE_BYTES, Writer, Written, u32_at};
use crate::model::{Key, Study};
use crate::record::{Builder, schema};

/// Objects that are appended to pages at once.
const ROWS: usize = 256;

pub struct Dray<T: Study> {
    layout: Arc<Layout>,
    fields: T::Fields,
}

impl<T: Study> Dray<T> {
    pub fn new() -> Result<Self, Failure> {
        let layout = Layout::new(schema(T::fields()))?;
        let fields = T::fields_of(&layout)?;
        Ok(Self { layout, fields })
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
}

pub struct PageWriter<T> {
    builder: PageBuilder,
    columns: Builder,
    rows: usize,
    of: std::marker::PhantomData<T>,
}

impl<T: Study> PageWriter<T> {
    fn append(&mut self) -> Result<(), Failure> {
        if self.rows > 0 {
            let columns = std::mem::replace(&mut self.columns, Builder::of_fields(&T::fields())?);
            self.builder.append(&columns.batch(self.rows))?;
            self.rows = 0;
        }
        Ok(())
    }
}

impl<T: Study> Writer<T> for PageWriter<T> {
    type Opened = Opened;

    fn add(&mut self, value: &T) -> Result<(), Failure> {
        value.push(&mut self.columns);
        self.rows += 1;
        if self.rows == ROWS { self.append() } else { Ok(()) }
    }

    fn add_object(&mut self, page: &Opened, i: usize) -> Result<(), Failure> {
        self.append()?;
        Ok(self.builder.copy(page.object(i).ok_or("there is no such object")?)?)
    }

    fn take(&mut self, is_end: bool) -> Result<Vec<Written>, Failure> {
        let pages = if is_end {
            self.append()?;
            self.builder.finish()
        } else {
            std::iter::from_fn(|| self.builder.pop()).collect()
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

impl<T: Study> Implementation<T> for Dray<T> {
    type Opened = Opened;
    type Writer<'a> = PageWriter<T>;

    fn writer(&self) -> Result<PageWriter<T>, Failure> {
        Ok(PageWriter {
            builder: PageBuilder::new(self.layout.clone(), PAGE_BYTES, Checksum::Crc32c)?,
            columns: Builder::of_fields(&T::fields())?,
            rows: 0,
            of: std::marker::PhantomData,
        })
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
        page.object(i).map_or(0, |object| T::sum_of(&self.fields, Item::from(object)))
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
        let object = page.object(i).ok_or("there is no such object")?;
        Ok(T::copy_of(&self.fields, Item::from(object)))
    }
}
