//! Records of the input.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

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
