//! What some rows become: a chunk, or pages (`spec/protocol.md` section 13).

use std::sync::Arc;
use std::time::Instant;

use dray_chooser::Chooser;
use dray_format::{Checksum, Chunk, Error, Limits};
use dray_page::{Layout, PAGE_BYTES, PackedPage, PageBuilder, PagePool};

use crate::chunk_encoder::ChunkEncoder;
use crate::chunker::{Settings, UnencodedChunk};

/// The memory that is taken at a time for pages.
const SLAB_BYTES: usize = 4 << 20;
/// The rows of a chunk become pages of at most this multiple of the largest chunk.
pub const PAGES_TIMES_CHUNK: u64 = 2;

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
    /// They must be pages, which would take more bytes than allowed.
    TooLarge {
        /// What they would take.
        bytes: u64,
        /// What is allowed.
        bytes_max: u64,
    },
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
    /// Unless the pages are too large.
    Preferred(Arc<Layout>),
    /// Where the chooser expects that they cost less than a chunk.
    Cheaper(Arc<Layout>, Arc<Chooser>),
}

/// Encodes the rows that a chunker has cut.
#[derive(Debug)]
pub(crate) struct Encoder {
    chunks: ChunkEncoder,
    pages: Option<Pages>,
    /// Pages that were sent leave their memory to the next ones.
    pool: Arc<PagePool>,
    settings: Settings,
}

impl Encoder {
    pub(crate) fn new(chunks: ChunkEncoder, pages: Option<Pages>, settings: Settings) -> Self {
        Self { chunks, pages, pool: PagePool::new(PAGE_BYTES, SLAB_BYTES), settings }
    }

    /// Whether encoding these rows keeps a thread busy for a while.
    pub(crate) fn takes_long(&self, rows: &UnencodedChunk) -> bool {
        self.pages.is_some() && rows.is_long() || self.chunks.takes_long(rows)
    }

    /// Encodes rows.
    ///
    /// # Errors
    /// A row is larger than the client accepts (kind limit), the batches don't match the schema,
    /// the pages of rows that must be pages are too large, or there is no memory.
    pub(crate) fn encode(&mut self, rows: &UnencodedChunk) -> Result<Payload, EncodeError> {
        let pages = match &self.pages {
            Some(Pages::Always(layout)) => match self.pages(layout, rows)? {
                Built::Pages(pages) => Some(pages),
                Built::TooLarge { bytes, bytes_max } => {
                    return Err(EncodeError::TooLarge { bytes, bytes_max });
                }
            },
            Some(Pages::Preferred(layout)) => self.pages(layout, rows)?.pages(),
            Some(Pages::Cheaper(layout, chooser)) if chooser.begin_pages() => {
                let (started, clock) = (Instant::now(), self.settings.clock);
                let before = clock.map(|clock| clock());
                let pages = self.pages(layout, rows)?.pages();
                let cpu_time =
                    clock.zip(before).map(|(clock, before)| clock().saturating_sub(before));
                if let Some(pages) = &pages {
                    let bytes = pages.iter().map(PackedPage::packed_bytes).sum();
                    chooser.built(rows.rows, bytes, started.elapsed(), cpu_time);
                }
                pages
            }
            Some(Pages::Cheaper(..)) | None => None,
        };
        match pages {
            Some(pages) => Ok(Payload::Pages(pages)),
            None => Ok(Payload::Chunk(self.chunks.encode(rows)?)),
        }
    }

    fn pages(&self, layout: &Arc<Layout>, rows: &UnencodedChunk) -> Result<Built, EncodeError> {
        let Limits { chunk_bytes_max, row_bytes_max, .. } = self.settings.limits;
        let mut builder = PageBuilder::with_pool(layout.clone(), &self.pool, Checksum::None)?;
        let batches = rows.batches.iter();
        let measured =
            batches.map(|batch| builder.measure(batch)).collect::<Result<Vec<_>, _>>()?;
        // Objects can be much larger than their columns, above all those with dictionaries.
        let bytes = measured.iter().map(|it| builder.page_bytes_of(it, 0..it.sizes().len()) as u64);
        let (bytes, bytes_max) = (bytes.sum(), PAGES_TIMES_CHUNK * chunk_bytes_max);
        if rows.rows > 1 && bytes > bytes_max {
            return Ok(Built::TooLarge { bytes, bytes_max });
        }
        for batch in &measured {
            builder.append_rows(batch, 0..batch.sizes().len())?;
        }
        let checksum = Checksum::from(self.settings.checksum);
        let pages = builder.finish();
        let pages = pages.iter().map(|page| PackedPage::new(page, checksum)).collect::<Vec<_>>();
        let largest = pages.iter().map(PackedPage::packed_bytes).max().unwrap_or(0);
        // A page of the standard size is always accepted.
        if largest > row_bytes_max.max(PAGE_BYTES as u64) {
            return Ok(Built::TooLarge { bytes: largest, bytes_max: row_bytes_max });
        }
        Ok(Built::Pages(pages))
    }
}

enum Built {
    Pages(Vec<PackedPage>),
    /// They would take more memory, or one of them more of the network, than is allowed.
    TooLarge {
        bytes: u64,
        bytes_max: u64,
    },
}

impl Built {
    fn pages(self) -> Option<Vec<PackedPage>> {
        match self {
            Self::Pages(pages) => Some(pages),
            Self::TooLarge { .. } => None,
        }
    }
}
