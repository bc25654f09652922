//! Arrow: the objects of a page are one batch of columns, of lists of structs, in Arrow's format
//! for streams. Reading checks the batch in full and copies nothing; a row is an object.
//!
//! A page: u32 page_bytes, u32 objects, u32 bytes of the stream; the stream from byte 64 on.

mod columns;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StructArray};
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::StreamWriter;
use bytes::Bytes;

use crate::Failure;
use crate::aggregate::Vectors;
use crate::checksum::Checksum;
use crate::implementation::{Implementation, PAGE_BYTES, Writer, Written, page_buffer, u32_at};
use crate::model::{Customer, Entry, Key, LineItem, Part, SparseVector, Study};
use columns::{Build, Read, Reading, Writing};

const HEADER_BYTES: usize = 64;

/// An object that columns have.
pub trait Columnar: Study {
    type Read: Read<Own = Self>;
    type Build: Build<Own = Self, Read = Self::Read>;

    /// The column that the phase `mutate` changes.
    const CHANGED: &'static str;

    fn key_of(columns: &Self::Read, row: usize) -> Key;
}

macro_rules! columnar {
    ($own:ident, $changed:ident, $($key:ident),*) => {
        impl Columnar for $own {
            type Read = columns::$own<Reading>;
            type Build = columns::$own<Writing>;

            const CHANGED: &'static str = stringify!($changed);

            #[inline]
            fn key_of(columns: &Self::Read, row: usize) -> Key {
                let mut keys = [$(columns.$key.value(row)),*].into_iter();
                let mut next = || keys.next().unwrap_or_default();
                (next(), next())
            }
        }
    };
}
columnar!(Part, retail_price, part_key);
columnar!(LineItem, extended_price, order_key, line_number);
columnar!(Customer, acctbal, cust_key);

fn encode(batch: &RecordBatch) -> Result<Vec<u8>, Failure> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(batch)?;
    Ok(writer.into_inner()?)
}

fn decode(stream: Bytes) -> Result<RecordBatch, Failure> {
    let batch = StreamDecoder::new().decode(&mut Buffer::from(stream))?;
    Ok(batch.ok_or("a stream has no batch")?)
}

/// A page with the rows of a batch.
fn page_of(batch: &RecordBatch) -> Result<Written, Failure> {
    let stream = encode(batch)?;
    let page_bytes = (HEADER_BYTES + stream.len()).next_multiple_of(PAGE_BYTES);
    let mut page = page_buffer(page_bytes);
    let header = [page_bytes, batch.num_rows(), stream.len()];
    for (word, to) in header.iter().zip(page.chunks_exact_mut(4)) {
        to.copy_from_slice(&u32::try_from(*word)?.to_le_bytes());
    }
    page[HEADER_BYTES..HEADER_BYTES + stream.len()].copy_from_slice(&stream);
    Ok(Written {
        bytes: Bytes::from_owner(page),
        positions: (0..batch.num_rows() as u32).collect(),
        object_bytes: stream.len() as u64,
    })
}

pub struct Arrow;

/// A batch that was checked.
pub struct Opened<T: Columnar> {
    batch: RecordBatch,
    columns: T::Read,
    rows: Vec<u32>,
}

impl<T: Columnar> Opened<T> {
    #[inline]
    fn row(&self, i: usize) -> usize {
        self.rows[i] as usize
    }
}

/// Collects rows until they fill a page.
pub struct PageWriter<T: Columnar> {
    columns: T::Build,
    rows: usize,
    /// What a stream takes beside its values.
    overhead: usize,
    full: Vec<Written>,
}

impl<T: Columnar> PageWriter<T> {
    fn new() -> Result<Self, Failure> {
        let empty = encode(&T::Build::default().finish()?.into())?;
        // As much again for the padding of columns.
        let overhead = HEADER_BYTES + 2 * empty.len();
        Ok(Self { columns: T::Build::default(), rows: 0, overhead, full: Vec::new() })
    }

    /// Counts a row that was appended. If it does not fit, the next page begins with it.
    fn count(&mut self) -> Result<(), Failure> {
        self.rows += 1;
        if self.columns.bytes() + self.overhead > PAGE_BYTES && self.rows > 1 {
            let columns = std::mem::take(&mut self.columns).finish()?;
            let last = self.rows - 1;
            self.full.push(page_of(&RecordBatch::from(&columns).slice(0, last))?);
            self.columns.push_row(&T::Read::of(&columns)?, last, None);
            self.rows = 1;
        }
        Ok(())
    }
}

impl<T: Columnar> Writer<T> for PageWriter<T> {
    type Opened = Opened<T>;

    fn add(&mut self, value: &T) -> Result<(), Failure> {
        self.columns.push(value);
        self.count()
    }

    fn add_object(&mut self, page: &Opened<T>, i: usize) -> Result<(), Failure> {
        self.columns.push_row(&page.columns, page.row(i), None);
        self.count()
    }

    fn add_grown(&mut self, page: &Opened<T>, i: usize) -> Result<(), Failure> {
        let more = T::grown(T::key_of(&page.columns, page.row(i)).0)?;
        self.columns.push_row(&page.columns, page.row(i), Some(&more));
        self.count()
    }

    fn take(&mut self, is_end: bool) -> Result<Vec<Written>, Failure> {
        if is_end && self.rows > 0 {
            let columns = std::mem::take(&mut self.columns).finish()?;
            self.full.push(page_of(&columns.into())?);
            self.rows = 0;
        }
        Ok(std::mem::take(&mut self.full))
    }
}

impl<T: Columnar> Implementation<T> for Arrow {
    type Opened = Opened<T>;
    type Writer<'a> = PageWriter<T>;

    const ALWAYS_VALIDATES: bool = true;

    fn writer(&self) -> Result<PageWriter<T>, Failure> {
        PageWriter::new()
    }

    fn page_bytes(page: &[u8]) -> Result<usize, Failure> {
        Ok(u32_at(page, 0)? as usize)
    }

    fn positions(&self, page: &[u8]) -> Result<Vec<u32>, Failure> {
        Ok((0..u32_at(page, 4)?).collect())
    }

    fn open(&self, page: Bytes, rows: &[u32], _validate: bool) -> Result<Opened<T>, Failure> {
        let end = HEADER_BYTES + u32_at(&page, 8)? as usize;
        if end > page.len() {
            return Err("a page is cut off".into());
        }
        let batch = decode(page.slice(HEADER_BYTES..end))?;
        let columns = T::Read::of(&StructArray::from(batch.clone()))?;
        if rows.iter().any(|row| *row as usize >= batch.num_rows()) {
            return Err("there is no such object".into());
        }
        Ok(Opened { batch, columns, rows: rows.to_vec() })
    }

    #[inline]
    fn sum(&self, page: &Opened<T>, i: usize) -> u64 {
        let mut h = Checksum::default();
        page.columns.sum(page.row(i), &mut h);
        h.0
    }

    #[inline]
    fn key(&self, page: &Opened<T>, i: usize) -> Key {
        T::key_of(&page.columns, page.row(i))
    }

    fn equal(&self, a: (&Opened<T>, usize), b: (&Opened<T>, usize)) -> bool {
        a.0.columns.equal(a.0.row(a.1), (&b.0.columns, b.0.row(b.1)))
    }

    fn copy(&self, page: &Opened<T>, i: usize) -> Result<T, Failure> {
        Ok(page.columns.copy(page.row(i)))
    }

    /// A column is replaced; the other ones are written as they are.
    fn change(&self, page: Opened<T>) -> Result<Bytes, Failure> {
        let (schema, mut columns, _) = page.batch.into_parts();
        let place = &mut columns[schema.index_of(T::CHANGED)?];
        let old: &Float64Array = place.as_primitive_opt().ok_or("a column has another type")?;
        let new: ArrayRef = Arc::new(old.unary::<_, Float64Type>(|value| value + 1.0));
        *place = new;
        Ok(page_of(&RecordBatch::try_new(schema, columns)?)?.bytes)
    }
}

impl Vectors for Arrow {
    type Opened = columns::SparseVector<Reading>;

    fn encode(&self, vector: &SparseVector) -> Result<Bytes, Failure> {
        let mut columns = columns::SparseVector::<Writing>::default();
        columns.push(vector);
        Ok(encode(&columns.finish()?.into())?.into())
    }

    fn open(&self, bytes: Bytes) -> Result<Self::Opened, Failure> {
        Read::of(&StructArray::from(decode(bytes)?))
    }

    fn entries<'a>(
        &'a self,
        opened: &'a Self::Opened,
    ) -> impl ExactSizeIterator<Item = Entry> + 'a {
        let entries = &opened.entries;
        entries.range(0).map(|i| Entry {
            position: entries.items.position.value(i),
            value: entries.items.value.value(i),
        })
    }
}
