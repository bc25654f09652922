//! What it costs to send rows as pages, measured on the pages that were built.

/// Checking a page at the reader, in nanoseconds per byte.
const CHECK_NS: f64 = 0.2;
/// The costs that are expected before pages were built: nested objects of a few kilobytes.
const GUESS: PageCosts = PageCosts { build_ns: 0.8, share: 1.4 };
/// The weight of the newest pages in the mean.
const NEWEST_WEIGHT: f64 = 0.3;
/// Pages follow chunks, and chunks pages, if they cost less than this share of what the others do:
/// measurements are noisy.
const CHANGE_BELOW: f64 = 0.9;
/// Measurements on fewer bytes are ignored.
const MEASURED_BYTES_MIN: u64 = 64 << 10;

/// The costs of a byte of plain columns whose rows become pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageCosts {
    /// Building pages, in nanoseconds. The reader takes as long for rows that come as a chunk.
    build_ns: f64,
    /// Bytes of pages.
    share: f64,
}

impl Default for PageCosts {
    fn default() -> Self {
        GUESS
    }
}

impl PageCosts {
    /// Whether pages cost less than columns, of which a byte costs `columns_ns` without the pages
    /// that the reader builds of them. The reader's time counts `reader_share` times.
    pub(crate) fn pay(
        self,
        columns_ns: f64,
        price_ns: f64,
        reader_share: f64,
        in_pages: bool,
    ) -> bool {
        let columns_ns = columns_ns + reader_share * self.build_ns;
        let pages_ns = self.build_ns + self.share * (price_ns + reader_share * CHECK_NS);
        match in_pages {
            true => pages_ns * CHANGE_BELOW < columns_ns,
            false => pages_ns < columns_ns * CHANGE_BELOW,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a byte of columns costs: encoding, λ, and decoding at the reader.
    fn columns_ns(price_ns: f64, reader_share: f64) -> f64 {
        let (encode_ns, share, decode_ns) =
            if price_ns > 2.0 { (2.0, 0.2, 1.0) } else { (0.1, 0.9, 0.1) };
        encode_ns + price_ns * share + reader_share * decode_ns
    }

    fn pay(price_ns: f64, reader_share: f64) -> bool {
        PageCosts::default().pay(columns_ns(price_ns, reader_share), price_ns, reader_share, false)
    }

    #[test]
    fn pages_pay_where_bytes_are_cheap_and_the_reader_is_behind() {
        assert!(pay(0.5, 2.0) && pay(0.8, 8.0));
        assert!(!pay(0.5, 0.0), "the reader has time to build them");
        for price_ns in [8.0, 80.0, 800.0] {
            assert!(!pay(price_ns, 0.0) && !pay(price_ns, 2.0));
        }
    }

    #[test]
    fn measurements_replace_the_guess() {
        let mut costs = PageCosts::default();
        (0..20).for_each(|_| costs.record(1 << 20, 3 << 20, 8e6));
        assert!((costs.build_ns - 8e6 / f64::from(1 << 20)).abs() < 0.1);
        assert!((costs.share - 3.0).abs() < 0.1);
        costs.record(100, 256 << 10, 1e6);
        assert!((costs.share - 3.0).abs() < 0.1, "few bytes say nothing");
    }

    #[test]
    fn what_was_chosen_stays_until_the_other_is_clearly_cheaper() {
        let costs = PageCosts::default();
        let even = costs.build_ns + costs.share;
        assert!(costs.pay(even, 1.0, 0.0, true) && !costs.pay(even, 1.0, 0.0, false));
    }
}
