//! Records of the input, and columns that objects are collected in.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use dray_format::{Batch, Column, Field, Schema, Type, Values};

use crate::Failure;

/// Reads fields from the bytes of a record.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], Failure> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or("a record is cut off")?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Failure> {
        Ok(*self.take(N)?.first_chunk().ok_or("a record is cut off")?)
    }

    pub fn i32(&mut self) -> Result<i32, Failure> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    pub fn f64(&mut self) -> Result<f64, Failure> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    pub fn str(&mut self) -> Result<String, Failure> {
        let n = self.count()?;
        Ok(std::str::from_utf8(self.take(n)?)?.to_owned())
    }

    pub fn count(&mut self) -> Result<usize, Failure> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }
}

/// The records of an input file.
pub struct Input {
    file: BufReader<File>,
    pub count: u64,
}

impl Input {
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let mut file = BufReader::with_capacity(1 << 20, File::open(path)?);
        let mut count = [0; 8];
        file.read_exact(&mut count)?;
        Ok(Self { file, count: u64::from_le_bytes(count) })
    }

    /// Reads the next record into a buffer.
    pub fn next(&mut self, record: &mut Vec<u8>) -> Result<(), Failure> {
        let mut length = [0; 4];
        self.file.read_exact(&mut length)?;
        record.resize(u32::from_le_bytes(length) as usize, 0);
        Ok(self.file.read_exact(record)?)
    }
}

/// The values of one field, or of the fields of a record.
pub enum Builder {
    Int32(Vec<u8>),
    Float64(Vec<u8>),
    Utf8 { offsets: Vec<u8>, data: Vec<u8> },
    Struct(Vec<Builder>),
    List { offsets: Vec<u8>, items: u32, child: Box<Builder> },
}

impl Builder {
    /// A builder of values of a type.
    pub fn new(data_type: &Type) -> Result<Self, Failure> {
        let zero = || 0_u32.to_le_bytes().to_vec();
        Ok(match data_type {
            Type::Int32 => Self::Int32(Vec::new()),
            Type::Float64 => Self::Float64(Vec::new()),
            Type::Utf8 => Self::Utf8 { offsets: zero(), data: Vec::new() },
            Type::Struct(fields) => Self::of_fields(fields)?,
            Type::List(item) => Self::List {
                offsets: zero(),
                items: 0,
                child: Box::new(Self::new(&item.data_type)?),
            },
            other => return Err(format!("no object has fields of type {other:?}").into()),
        })
    }

    /// A builder of records.
    pub fn of_fields(fields: &[Field]) -> Result<Self, Failure> {
        let children = fields.iter().map(|field| Self::new(&field.data_type));
        Ok(Self::Struct(children.collect::<Result<_, _>>()?))
    }

    pub fn field(&mut self, i: usize) -> &mut Self {
        match self {
            Self::Struct(fields) => &mut fields[i],
            other => other,
        }
    }

    pub fn i32(&mut self, value: &i32) {
        if let Self::Int32(bytes) = self {
            bytes.extend(value.to_le_bytes());
        }
    }

    pub fn f64(&mut self, value: &f64) {
        if let Self::Float64(bytes) = self {
            bytes.extend(value.to_le_bytes());
        }
    }

    pub fn str(&mut self, value: &str) {
        if let Self::Utf8 { offsets, data } = self {
            data.extend(value.as_bytes());
            offsets.extend((data.len() as u32).to_le_bytes());
        }
    }

    /// Appends a list of so many items, which the caller appends to what is returned.
    pub fn list(&mut self, count: usize) -> &mut Self {
        match self {
            Self::List { offsets, items, child } => {
                *items += count as u32;
                offsets.extend(items.to_le_bytes());
                child
            }
            other => other,
        }
    }

    /// The bytes of all values so far.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Int32(bytes) | Self::Float64(bytes) => bytes.len(),
            Self::Utf8 { offsets, data } => offsets.len() + data.len(),
            Self::Struct(fields) => fields.iter().map(Self::bytes).sum(),
            Self::List { offsets, child, .. } => offsets.len() + child.bytes(),
        }
    }

    fn column(self, rows: usize) -> Column {
        let values = match self {
            Self::Int32(bytes) => Values::Fixed { width: 4, bytes: bytes.into() },
            Self::Float64(bytes) => Values::Fixed { width: 8, bytes: bytes.into() },
            Self::Utf8 { offsets, data } => {
                Values::Bytes { offsets: offsets.into(), data: data.into() }
            }
            Self::Struct(fields) => {
                Values::Struct(fields.into_iter().map(|field| field.column(rows)).collect())
            }
            Self::List { offsets, items, child } => Values::List {
                offsets: offsets.into(),
                child: Box::new(child.column(items as usize)),
            },
        };
        Column { rows, validity: None, values }
    }

    /// The records as a batch.
    pub fn batch(self, rows: usize) -> Batch {
        match self.column(rows).values {
            Values::Struct(columns) => Batch { rows, columns },
            _ => Batch { rows, columns: Vec::new() },
        }
    }
}

/// A field that is never missing.
pub fn field(name: &str, data_type: Type) -> Field {
    Field { name: name.to_owned(), data_type, nullable: false, metadata: Vec::new() }
}

/// The schema of records.
pub fn schema(fields: Vec<Field>) -> Schema {
    Schema { fields }
}
