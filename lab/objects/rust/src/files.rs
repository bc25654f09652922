//! Files of pages and their index.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use bytes::Bytes;

use crate::Failure;
use crate::implementation::{Implementation, PAGE_BYTES, Writer, Written, page_buffer};
use crate::model::Study;

/// Where an object is.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub offset: u64,
    pub page_bytes: u32,
    pub position: u32,
}

pub fn read_index(path: &Path) -> Result<Vec<Entry>, Failure> {
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let entry = |entry: &[u8; 16]| Entry {
        offset: u64::from(word(&entry[..4])) | u64::from(word(&entry[4..8])) << 32,
        page_bytes: word(&entry[8..12]),
        position: word(&entry[12..]),
    };
    Ok(bytes.as_chunks::<16>().0.iter().map(entry).collect())
}

/// Writes pages to a file.
pub struct PageFile {
    file: File,
    index: Vec<u8>,
    pub bytes: u64,
    pub object_bytes: u64,
    pub io_s: f64,
}

impl PageFile {
    pub fn create(path: &Path) -> Result<Self, Failure> {
        let file = File::create(path)?;
        Ok(Self { file, index: Vec::new(), bytes: 0, object_bytes: 0, io_s: 0.0 })
    }

    pub fn add(&mut self, page: &Written) -> Result<(), Failure> {
        let start = Instant::now();
        self.file.write_all(&page.bytes)?;
        self.io_s += start.elapsed().as_secs_f64();
        for position in &page.positions {
            self.index.extend(self.bytes.to_le_bytes());
            self.index.extend((page.bytes.len() as u32).to_le_bytes());
            self.index.extend(position.to_le_bytes());
        }
        self.bytes += page.bytes.len() as u64;
        self.object_bytes += page.object_bytes;
        Ok(())
    }

    /// Writes what a writer has finished.
    pub fn drain<T>(&mut self, writer: &mut impl Writer<T>, is_end: bool) -> Result<(), Failure> {
        writer.take(is_end)?.iter().try_for_each(|page| self.add(page))
    }

    pub fn write_index(&self, path: &Path) -> Result<(), Failure> {
        Ok(std::fs::write(path, &self.index)?)
    }
}

/// Reads a file of pages from the start.
pub struct PageReader {
    file: File,
    at: u64,
    end: u64,
    pub io_s: f64,
}

impl PageReader {
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let file = File::open(path)?;
        let end = file.metadata()?.len();
        Ok(Self { file, at: 0, end, io_s: 0.0 })
    }

    pub fn next<T: Study, I: Implementation<T>>(&mut self) -> Result<Option<Bytes>, Failure> {
        if self.at == self.end {
            return Ok(None);
        }
        let start = Instant::now();
        let mut page = page_buffer(PAGE_BYTES);
        self.file.read_exact_at(&mut page, self.at)?;
        let size = I::page_bytes(&page)?;
        if size < PAGE_BYTES || size as u64 > self.end - self.at {
            return Err("a page has no size".into());
        }
        if size > PAGE_BYTES {
            page.resize(size, 0);
            self.file.read_exact_at(&mut page[PAGE_BYTES..], self.at + PAGE_BYTES as u64)?;
        }
        self.at += size as u64;
        self.io_s += start.elapsed().as_secs_f64();
        Ok(Some(Bytes::from_owner(page)))
    }

    pub fn bytes(&self) -> u64 {
        self.at
    }
}

/// Reads the page of an object.
pub fn read_page(file: &File, entry: &Entry) -> Result<Bytes, Failure> {
    let mut page = page_buffer(entry.page_bytes as usize);
    file.read_exact_at(&mut page, entry.offset)?;
    Ok(Bytes::from_owner(page))
}
