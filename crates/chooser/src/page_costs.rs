//! What it costs to send rows as pages, measured on the pages that were built.

/// Checking a page at the reader, in nanoseconds per byte (lab/reports/2026-11-pages.md).
const CHECK_NS: f64 = 0.2;
/// Guesses, until pages of the stream were built: building them, in nanoseconds per plain byte, and
/// their bytes per plain byte.
const GUESSED_BUILD_NS: f64 = 0.8;
const GUESSED_SHARE: f64 = 1.4;
/// The weight of the newest pages in the mean.
const NEWEST_WEIGHT: f64 = 0.3;
/// Pages follow chunks, and chunks pages, if they cost less than this share of what the others do:
/// measurements are noisy.
const CHANGE_BELOW: f64 = 0.9;

/// The costs of a row that becomes an object.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PageCosts(Option<Measured>);

#[derive(Debug, Clone, Copy)]
struct Measured {
    /// Building pages, in nanoseconds. The reader takes as long for rows that come as a chunk.
    build_ns: f64,
    /// Bytes of pages.
    bytes: f64,
}

/// The costs of a row as columns.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ColumnsCost {
    /// Encoding, sending and decoding.
    pub(crate) ns: f64,
    pub(crate) plain_bytes: f64,
}

impl PageCosts {
    /// Whether pages cost less than columns and the pages that the reader builds of them. The
    /// reader's time counts `reader_share` times.
    pub(crate) fn pay(
        self,
        columns: ColumnsCost,
        price_ns: f64,
        reader_share: f64,
        in_pages: bool,
    ) -> bool {
        let Measured { build_ns, bytes } = self.0.unwrap_or(Measured {
            build_ns: GUESSED_BUILD_NS * columns.plain_bytes,
            bytes: GUESSED_SHARE * columns.plain_bytes,
        });
        let columns_ns = columns.ns + reader_share * build_ns;
        let pages_ns = build_ns + bytes * (price_ns + reader_share * CHECK_NS);
        match in_pages {
            true => pages_ns * CHANGE_BELOW < columns_ns,
            false => pages_ns < columns_ns * CHANGE_BELOW,
        }
    }

    /// Records pages of this many rows that took `build_ns` nanoseconds to build.
    pub(crate) fn record(&mut self, rows: usize, page_bytes: u64, build_ns: f64) {
        let rows = rows.max(1) as f64;
        let (build_ns, bytes) = (build_ns / rows, page_bytes as f64 / rows);
        let measured = self.0.get_or_insert(Measured { build_ns, bytes });
        measured.build_ns += (build_ns - measured.build_ns) * NEWEST_WEIGHT;
        measured.bytes += (bytes - measured.bytes) * NEWEST_WEIGHT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN_BYTES: f64 = 10_000.0;

    /// What a row of columns costs: encoding, λ, and decoding at the reader.
    fn columns(price_ns: f64, reader_share: f64) -> ColumnsCost {
        let (encode_ns, share, decode_ns) = match price_ns > 2.0 {
            true => (2.0, 0.2, 1.0),
            false => (0.1, 0.9, 0.1),
        };
        let ns = PLAIN_BYTES * (encode_ns + price_ns * share + reader_share * decode_ns);
        ColumnsCost { ns, plain_bytes: PLAIN_BYTES }
    }

    fn pay(price_ns: f64, reader_share: f64) -> bool {
        PageCosts::default().pay(columns(price_ns, reader_share), price_ns, reader_share, false)
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
        costs.record(100, 100 * 40_000, 100.0 * 8_000.0);
        assert!(!costs.pay(columns(0.5, 2.0), 0.5, 2.0, false), "these pages are large");
        (0..20).for_each(|_| costs.record(100, 100 * 11_000, 100.0 * 5_000.0));
        assert!(costs.pay(columns(0.5, 2.0), 0.5, 2.0, false), "these are not");
    }

    #[test]
    fn what_was_chosen_stays_until_the_other_is_clearly_cheaper() {
        let costs = PageCosts::default();
        let ns = PLAIN_BYTES * (GUESSED_BUILD_NS + GUESSED_SHARE);
        let even = ColumnsCost { ns, plain_bytes: PLAIN_BYTES };
        assert!(costs.pay(even, 1.0, 0.0, true) && !costs.pay(even, 1.0, 0.0, false));
    }
}
