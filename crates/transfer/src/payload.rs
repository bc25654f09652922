//! What some rows become: a chunk, or pages (`spec/protocol.md` section 13).

use std::sync::Arc;
use std::time::Instant;

use dray_chooser::Chooser;
use dray_format::{Checksum, Chunk, Error};
use dray_page::{Layout, PAGE_BYTES, PackedPage, PageBuilder};

use crate::chunk_encoder::ChunkEncoder;
use crate::chunker::{Settings, UnencodedChunk};

/// Rows as they are sent.
#[derive(Debug, Clone)]
pub enum Payload {
    /// Their columns.
    Chunk(Chunk),
    /// Their objects.
    Pages(Vec<PackedPage>),
}

impl Payload {
    /// The memory that it takes.
    pub fn memory_bytes(&self) -> u64 {
        match self {
            Self::Chunk(chunk) => chunk.chunk_bytes() + chunk.state_bytes(),
            Self::Pages(pages) => pages.iter().map(PackedPage::memory_bytes).sum(),
        }
    }
}

/// Why rows can't be sent.
#[derive(Debug)]
pub enum EncodeError {
    /// They make no chunk that the client accepts.
    Chunk(Error),
    /// They make no page.
    Page(dray_page::Error),
}

impl From<Error> for EncodeError {
    fn from(error: Error) -> Self {
        Self::Chunk(error)
    }
}

impl From<dray_page::Error> for EncodeError {
    fn from(error: dray_page::Error) -> Self {
        Self::Page(error)
    }
}

/// When rows become pages.
#[derive(Debug, Clone)]
pub enum Pages {
    /// Always.
    Always(Arc<Layout>),
    /// Where the chooser expects that they cost less than a chunk.
    Cheaper(Arc<Layout>, Arc<Chooser>),
}

/// Encodes the rows that a chunker has cut.
#[derive(Debug)]
pub(crate) struct Encoder {
    chunks: ChunkEncoder,
    pages: Option<Pages>,
    settings: Settings,
}

impl Encoder {
    pub(crate) fn new(chunks: ChunkEncoder, pages: Option<Pages>, settings: Settings) -> Self {
        Self { chunks, pages, settings }
    }

    /// Whether encoding these rows keeps a thread busy for a while.
    pub(crate) fn takes_long(&self, rows: &UnencodedChunk) -> bool {
        self.pages.is_some() && rows.is_long() || self.chunks.takes_long(rows)
    }

    /// Encodes rows.
    ///
    /// # Errors
    /// A row is larger than the client accepts (kind limit), the batches don't match the schema, or
    /// there is no memory.
    pub(crate) fn encode(&mut self, rows: &UnencodedChunk) -> Result<Payload, EncodeError> {
        match &self.pages {
            Some(Pages::Always(layout)) => self.pages(layout, rows).map(Payload::Pages),
            Some(Pages::Cheaper(layout, chooser)) if chooser.begin_pages() => {
                let (started, clock) = (Instant::now(), self.settings.clock);
                let before = clock.map(|clock| clock());
                let pages = self.pages(layout, rows)?;
                let cpu_time =
                    clock.zip(before).map(|(clock, before)| clock().saturating_sub(before));
                let page_bytes = pages.iter().map(PackedPage::packed_bytes).sum();
                chooser.built(rows.plain_bytes, page_bytes, started.elapsed(), cpu_time);
                Ok(Payload::Pages(pages))
            }
            _ => Ok(Payload::Chunk(self.chunks.encode(rows)?)),
        }
    }

    fn pages(
        &self,
        layout: &Arc<Layout>,
        rows: &UnencodedChunk,
    ) -> Result<Vec<PackedPage>, EncodeError> {
        let mut builder = PageBuilder::new(layout.clone(), PAGE_BYTES, Checksum::None)?;
        rows.batches.iter().try_for_each(|batch| builder.append(batch))?;
        let checksum = Checksum::from(self.settings.checksum);
        let pages = builder.finish();
        let pages = pages.iter().map(|page| PackedPage::new(page, checksum)).collect::<Vec<_>>();
        let row_bytes_max = self.settings.limits.row_bytes_max;
        match pages.iter().map(PackedPage::packed_bytes).max() {
            Some(bytes) if bytes > row_bytes_max => {
                Err(Error::row_too_large(bytes, row_bytes_max).into())
            }
            _ => Ok(pages),
        }
    }
}
