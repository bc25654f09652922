//! The writer.

use std::io::{self, Write};

use dray_format::{Batch, Checksum, Schema, crc32c};
use dray_page::{Layout, Object, ObjectBuilder, PAGE_BYTES, PageBuilder, VerifiedPage};

use crate::error::{Error, ErrorKind, Result, refuse};
use crate::footer::Footer;
use crate::header::{Header, sha256};
use crate::index::{PAGE_ENTRY_BYTES, encode_entry};
use crate::key::{KEY_ENTRY_BYTES, Key, KeyPath};

/// How a file is written.
#[derive(Debug, Clone)]
pub struct PageFileOptions {
    /// The size of pages, a power of two from 4 KiB to 1 GiB.
    pub page_bytes: usize,
    /// The fields of the key that the file has an index of; none if empty. The index takes 16
    /// bytes of memory for each object while the file is written.
    pub key: Vec<KeyPath>,
}

impl Default for PageFileOptions {
    fn default() -> Self {
        Self { page_bytes: PAGE_BYTES, key: Vec::new() }
    }
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The number of objects.
    pub objects: u64,
    /// The number of pages.
    pub pages: u64,
    /// The size of the file.
    pub bytes: u64,
}

/// Writes a page file from front to back. Without [`finish`](Self::finish) the file is not whole.
#[derive(Debug)]
pub struct PageFileWriter<W: Write> {
    out: W,
    builder: PageBuilder,
    /// The bytes before the pages.
    header: Vec<u8>,
    pages_bytes: usize,
    objects: u64,
    /// The page index so far.
    index: Vec<[u8; PAGE_ENTRY_BYTES]>,
    key: Option<(Key, Vec<(u64, u64)>)>,
}

impl<W: Write> PageFileWriter<W> {
    /// Begins a file. Buffering `out` gains nothing: pages are written whole.
    ///
    /// # Errors
    /// When the schema breaks a rule of types.md or has no pages, the key is none of its fields, or
    /// `out` fails.
    pub fn new(mut out: W, schema: Schema, options: &PageFileOptions) -> Result<Self> {
        let header = Header::encode(&schema, options.page_bytes)?;
        let key = match options.key.as_slice() {
            [] => None,
            paths => Some((Key::new(&schema, paths)?, Vec::new())),
        };
        let builder = PageBuilder::new(Layout::new(schema)?, options.page_bytes, Checksum::Crc32c)?;
        out.write_all(&header).map_err(failed)?;
        Ok(Self { out, builder, header, pages_bytes: 0, objects: 0, index: Vec::new(), key })
    }

    /// Writes the rows of a batch as objects.
    ///
    /// # Errors
    /// Those of [`PageBuilder::append`], and when `out` fails. The file can't be finished after an
    /// error of `out`.
    pub fn write(&mut self, batch: &Batch) -> Result<()> {
        self.builder.append(batch)?;
        self.write_full_pages()
    }

    /// Writes a copy of an object from any page of the same schema.
    ///
    /// # Errors
    /// Those of [`write`](Self::write).
    pub fn copy(&mut self, object: Object<'_>) -> Result<()> {
        self.builder.copy(object)?;
        self.write_full_pages()
    }

    /// Writes an object that `build` writes field by field.
    ///
    /// # Errors
    /// Those of [`PageBuilder::build`], and when `out` fails. Nothing is written if `build` fails.
    pub fn build(
        &mut self,
        build: impl FnOnce(&mut ObjectBuilder<'_>) -> dray_page::Result<()>,
    ) -> Result<()> {
        self.builder.build(build)?;
        self.write_full_pages()
    }

    fn write_full_pages(&mut self) -> Result<()> {
        while let Some(page) = self.builder.pop() {
            self.write_page(&page)?;
        }
        Ok(())
    }

    fn write_page(&mut self, page: &VerifiedPage) -> Result<()> {
        let header = page.header();
        debug_assert_eq!(header.sequence, self.index.len() as u64);
        let Some(checksum) = header.checksum else {
            return Err(Error::new(ErrorKind::Page, "a page was made without its checksum"));
        };
        if let Some((key, entries)) = &mut self.key {
            let hashes = page.objects().map(|object| key.hash(object));
            let ordinals = self.objects..;
            entries.extend(hashes.zip(ordinals).filter_map(|(hash, n)| hash.map(|hash| (hash, n))));
        }
        self.out.write_all(page.bytes()).map_err(failed)?;
        self.pages_bytes += page.bytes().len();
        let Some(entry) = encode_entry(self.objects, self.pages_bytes, checksum) else {
            refuse!(Usage, "a page file has at most 16 TiB; write several");
        };
        self.index.push(entry);
        self.objects += u64::from(header.objects);
        Ok(())
    }

    /// Writes the last page, the indexes and the footer. The caller syncs the file.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn finish(mut self) -> Result<Written> {
        for page in self.builder.finish() {
            self.write_page(&page)?;
        }
        let (paths, entries) = match self.key.take() {
            None => (Vec::new(), Vec::new()),
            Some((key, entries)) => (key.encode()?, in_order(entries)),
        };
        let mut footer = Footer {
            index_at: self.header.len() + self.pages_bytes,
            pages: self.index.len(),
            objects: self.objects,
            key_paths_bytes: paths.len(),
            keys: entries.len(),
            ..Footer::default()
        };
        if footer.has_keys() {
            footer.keys_checksum = crc32c(0, entries.as_flattened());
        }
        let index = self.index.as_flattened();
        let footer = footer.encode(|start| sha256([&self.header, index, &paths, start]));
        for part in [index, &paths, entries.as_flattened(), &footer] {
            self.out.write_all(part).map_err(failed)?;
        }
        self.out.flush().map_err(failed)?;
        let tail = index.len() + paths.len() + entries.as_flattened().len() + footer.len();
        Ok(Written {
            objects: self.objects,
            pages: self.index.len() as u64,
            bytes: (self.header.len() + self.pages_bytes + tail) as u64,
        })
    }
}

/// The key index's bytes.
fn in_order(mut entries: Vec<(u64, u64)>) -> Vec<[u8; KEY_ENTRY_BYTES]> {
    entries.sort_unstable();
    let encoded = entries.into_iter().map(|(hash, ordinal)| {
        let mut bytes = [0; KEY_ENTRY_BYTES];
        bytes[..8].copy_from_slice(&hash.to_le_bytes());
        bytes[8..].copy_from_slice(&ordinal.to_le_bytes());
        bytes
    });
    encoded.collect()
}

fn failed(cause: io::Error) -> Error {
    Error::io("the page file can't be written", cause)
}
