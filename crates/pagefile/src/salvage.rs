//! What is left of a file that was cut off: `spec/page-file.md` section 7.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use dray_page::{HEADER_BYTES, Header as PageHeader, Layout, VerifiedPage};

use crate::error::{Error, ErrorKind, Result};
use crate::header::Header;
use crate::reader::map;

/// The whole pages at the beginning of a file, up to the first that is damaged or cut off. They may
/// be all, or fewer than the file once had: nothing in a file without its end tells.
#[derive(Debug)]
pub struct Salvage {
    layout: Arc<Layout>,
    pages: Vec<VerifiedPage>,
    reason: Error,
}

impl Salvage {
    /// Maps a file, and checks its pages one after the other.
    ///
    /// # Errors
    /// When the file can't be read, or its header or schema is damaged: then nothing can be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::from_bytes(map(path)?)
            .map_err(|error| error.about(format_args!("can't read {}", path.display())))
    }

    /// Reads a file from memory, as [`open`](Self::open).
    ///
    /// # Errors
    /// When its header or schema is damaged.
    pub fn from_bytes(file: Bytes) -> Result<Self> {
        let Header { page_bytes, schema, pages_at, .. } = Header::decode(&file)?;
        let layout = Layout::new(schema)?;
        let (mut rest, mut pages) = (file.slice(pages_at..), Vec::new());
        let reason = loop {
            match next(&layout, &mut rest, pages.len() as u64, page_bytes) {
                Ok(page) => pages.push(page),
                Err(reason) => break reason,
            }
        };
        Ok(Self { layout, pages, reason })
    }

    /// The layout of the objects.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// The whole pages.
    pub fn pages(&self) -> &[VerifiedPage] {
        &self.pages
    }

    /// The objects of the whole pages.
    pub fn objects(&self) -> u64 {
        self.pages.iter().map(|page| page.len() as u64).sum()
    }

    /// Why nothing after them was read.
    pub fn reason(&self) -> &Error {
        &self.reason
    }
}

/// Takes the page that `rest` begins with.
fn next(
    layout: &Arc<Layout>,
    rest: &mut Bytes,
    sequence: u64,
    page_bytes: usize,
) -> Result<VerifiedPage> {
    let about = |error: Error| error.about(format_args!("page {sequence}"));
    let refused = |kind, what| Err(about(Error::new(kind, what)));
    let Some(header) = rest.first_chunk::<HEADER_BYTES>() else {
        return refused(ErrorKind::Cut, "the file ends before it");
    };
    let header = PageHeader::decode(header).map_err(|error| about(error.into()))?;
    let size = header.page_bytes as usize;
    if header.sequence != sequence
        || header.checksum.is_none()
        || !size.is_multiple_of(page_bytes)
        || !header.large && size != page_bytes
    {
        return refused(ErrorKind::Page, "it is no page of this file");
    }
    if rest.len() < size {
        return refused(ErrorKind::Cut, "the file ends within it");
    }
    let bytes = rest.split_to(size);
    VerifiedPage::verify(layout, bytes).map_err(|error| about(error.into()))
}
