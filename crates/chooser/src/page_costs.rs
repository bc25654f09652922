//! What it costs to send rows as pages, measured on the pages that were built.

/// Checking a page at the reader, in nanoseconds per byte.
const CHECK_NS: f64 = 0.2;
/// The costs that are expected before pages were built: nested objects of a few kilobytes.
const GUESS: PageCosts = PageCosts { build_ns: 0.8, share: 1.4 };
/// The weight of the newest pages in the mean.
const NEWEST_WEIGHT: f64 = 0.3;
/// Measurements on fewer bytes are ignored.
const MEASURED_BYTES_MIN: u64 = 64 << 10;

/// The costs of a byte of plain columns whose rows become pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageCosts {
    /// Building pages, in nanoseconds. The reader takes as long for rows that come as a chunk.
    pub(crate) build_ns: f64,
    /// Bytes of pages.
    share: f64,
}

impl Default for PageCosts {
    fn default() -> Self {
        GUESS
    }
}

impl PageCosts {
    /// The nanoseconds that a plain byte costs in all under λ. The reader's time counts
    /// `reader_share` times.
    pub(crate) fn total_ns(self, price_ns: f64, reader_share: f64) -> f64 {
        self.build_ns + self.share * (price_ns + reader_share * CHECK_NS)
    }

    /// Records pages that took `build_ns` nanoseconds to build.
    pub(crate) fn record(&mut self, plain_bytes: u64, page_bytes: u64, build_ns: f64) {
        if plain_bytes < MEASURED_BYTES_MIN {
            return;
        }
        let bytes = plain_bytes as f64;
        self.build_ns += (build_ns / bytes - self.build_ns) * NEWEST_WEIGHT;
        self.share += (page_bytes as f64 / bytes - self.share) * NEWEST_WEIGHT;
    }
}
