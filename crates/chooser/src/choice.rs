//! How each column is compressed: the way with the least `encode_ns + λ · bytes`, from what was
//! measured on what was sent.

use dray_format::{Compression, Type, Written};

/// How many ways there are.
pub(crate) const WAYS_COUNT: usize = 8;
/// The ways that are weighed, from the quickest to the smallest. Those behind light work on what
/// light makes.
const WAYS: [Way; WAYS_COUNT] = [
    Way::new(Compression::None, 0.0, [0.0, 0.0], [1.0, 1.0], 0.0),
    Way::new(Compression::Light, 2e3, [0.0, 0.0], [1.0, 1.0], 0.1),
    Way::new(Compression::Symbols, 90e3, [0.0, 1.5], [1.0, 0.6], 0.3),
    Way::new(Compression::Lz4, 4e3, [2.0, 2.0], [0.97, 0.55], 0.4),
    Way::new(Compression::Zstd(1), 15e3, [4.0, 3.5], [0.85, 0.33], 1.0),
    Way::new(Compression::Zstd(3), 15e3, [6.0, 6.0], [0.83, 0.31], 1.0),
    Way::new(Compression::Zstd(9), 30e3, [40.0, 30.0], [0.8, 0.29], 1.0),
    Way::new(Compression::Zstd(19), 100e3, [400.0, 450.0], [0.77, 0.27], 1.2),
];
/// Where plain, light and symbols stand among them.
const NONE: usize = 0;
const LIGHT: usize = 1;
const SYMBOLS: usize = 2;
/// The place of a [`Way`]'s guesses for strings.
const STRINGS: usize = 1;
/// What plain columns take, and what light is thought to take before it has been tried: numbers,
/// and strings.
const PLAIN: Measured = Measured { encode_ns: 0.02, share: 1.0 };
const LIGHT_GUESS: [Measured; 2] =
    [Measured { encode_ns: 0.15, share: 0.3 }, Measured { encode_ns: 0.2, share: 0.85 }];

/// How much the newest chunk counts in what is known of a column.
const NEWEST: f64 = 0.3;
/// A chunk in so many tries the neighbour of a column's way.
const TRY_EVERY: u64 = 32;
/// A way of which nothing is known is probed where it would pay if it sent so much of the least
/// that others have sent: guesses are of usual columns.
const HOPED_SHARE: f64 = 0.2;
/// The same of a level of zstd, where another level is known.
const HOPED_SHARE_OF_LEVEL: f64 = 0.75;
/// No neighbour is tried that should cost so many times what the column does.
const TRY_COST_MAX: f64 = 2.0;
/// What is measured on fewer bytes says little of others.
const MEASURED_BYTES_MIN: u64 = 4096;
/// A guess counts as if it had been measured on so many bytes. The first chunk has few rows, and
/// finds caches and memory cold: what it takes must not rule out for the rest of the stream what it
/// was made by.
const GUESS_BYTES: f64 = 256e3;
/// Another way is taken when it should cost less than this share of the present one: measurements
/// are noisy.
const CHANGE_BELOW: f64 = 0.97;

/// A way to compress, and what is thought of it before it has been tried: for numbers, and for
/// strings.
struct Way {
    compression: Compression,
    /// What it takes to encode a column of next to no rows, in nanoseconds.
    chunk_ns: f64,
    /// What it takes longer than light, in nanoseconds a byte that light would send.
    more_ns: [f64; 2],
    /// What it sends of what light would.
    share: [f64; 2],
    /// Decoding, in nanoseconds a decoded byte.
    decode_ns: f64,
}

impl Way {
    const fn new(
        compression: Compression,
        chunk_ns: f64,
        more_ns: [f64; 2],
        share: [f64; 2],
        decode_ns: f64,
    ) -> Self {
        Self { compression, chunk_ns, more_ns, share, decode_ns }
    }
}

/// The compression that stands at `way`.
pub(crate) fn compression(way: usize) -> Compression {
    WAYS[way].compression
}

/// How many of the ways need no higher level of zstd.
pub(crate) fn ways_up_to(level_max: i32) -> usize {
    WAYS.iter()
        .filter(|way| !matches!(way.compression, Compression::Zstd(level) if level > level_max))
        .count()
}

/// What one way takes a column.
#[derive(Debug, Clone, Copy)]
struct Measured {
    /// Encoding, in nanoseconds a decoded byte.
    encode_ns: f64,
    /// Bytes sent a decoded byte.
    share: f64,
}

impl Measured {
    /// What a decoded byte costs by this way, in nanoseconds.
    fn cost(self, way: usize, price_ns: f64, reader_share: f64) -> f64 {
        self.encode_ns + price_ns * self.share + reader_share * WAYS[way].decode_ns
    }
}

/// The same, and on how many decoded bytes it was measured.
#[derive(Debug, Clone, Copy)]
struct Known {
    mean: Measured,
    bytes: f64,
}

/// What is known of one column.
#[derive(Debug)]
pub(crate) struct Column {
    /// 1 where there are strings in it, 0 elsewhere: the place in a [`Way`]'s guesses.
    guess: usize,
    measured: [Option<Known>; WAYS_COUNT],
    way: usize,
    /// Only so many ways are weighed.
    ways: usize,
    chunks: u64,
}

impl Column {
    /// Nothing is known but the type. `place` spreads the columns' trials over the chunks.
    pub(crate) fn new(data_type: &Type, place: usize, ways: usize) -> Self {
        let guess = usize::from(has_strings(data_type));
        Self { guess, measured: [None; WAYS_COUNT], way: 0, ways, chunks: place as u64 }
    }

    /// The way for the next chunk, in which the column takes about `plain_bytes` plain.
    pub(crate) fn choose(&mut self, price_ns: f64, reader_share: f64, plain_bytes: f64) -> usize {
        let costs: [f64; WAYS_COUNT] = std::array::from_fn(|way| {
            // What was measured has it in it.
            let chunk_ns = if self.measured[way].is_none() { WAYS[way].chunk_ns } else { 0.0 };
            self.expected(way).cost(way, price_ns, reader_share) + chunk_ns / plain_bytes
        });
        let best = (0..self.ways).min_by(|a, b| costs[*a].total_cmp(&costs[*b])).unwrap_or(0);
        // What light makes of a column can't be guessed, costs next to nothing and is known after
        // one chunk.
        let best = if best == NONE && self.measured[LIGHT].is_none() { LIGHT } else { best };
        if self.measured[self.way].is_none() || costs[best] < costs[self.way] * CHANGE_BELOW {
            self.way = best;
        }
        self.chunks += 1;
        if self.chunks.is_multiple_of(TRY_EVERY) {
            // The neighbours in turns, so that what has become better is noticed.
            let upwards = (self.chunks / TRY_EVERY).is_multiple_of(2);
            let neighbour = if upwards { self.way + 1 } else { self.way.wrapping_sub(1) };
            if costs[..self.ways]
                .get(neighbour)
                .is_some_and(|cost| *cost < costs[self.way] * TRY_COST_MAX)
            {
                return neighbour;
            }
        }
        self.way
    }

    /// The way of which nothing is known that should be probed on one part in `part` of a chunk:
    /// the one that might cost the least, if it would pay within that chunk. Light comes first,
    /// since the others are thought of by it.
    pub(crate) fn unknown(&self, price_ns: f64, reader_share: f64, part: usize) -> Option<usize> {
        let cost = |way: usize, measured: Measured| measured.cost(way, price_ns, reader_share);
        let known = |way: usize| Some(cost(way, self.measured[way]?.mean));
        let least = (LIGHT..self.ways).filter_map(known).min_by(f64::total_cmp);
        let least =
            least.unwrap_or_else(|| cost(LIGHT, self.expected(LIGHT))).min(cost(NONE, PLAIN));
        let is_unknown = |way: &usize| match *way {
            // Of numbers symbols make nothing.
            SYMBOLS if self.guess != STRINGS => false,
            way => self.measured[way].is_none(),
        };
        let hoped = |way: usize| {
            let guessed = self.guessed(way);
            let hoped = cost(way, Measured { share: self.hoped_share(way), ..guessed });
            (way, hoped, hoped + guessed.encode_ns / part as f64)
        };
        let ways = (LIGHT + 1..self.ways)
            .filter(is_unknown)
            .map(hoped)
            .filter(|(_, _, with_probe)| *with_probe < least);
        let (way, ..) = ways.min_by(|(_, a, _), (_, b, _)| a.total_cmp(b))?;
        Some(if self.measured[LIGHT].is_none() { LIGHT } else { way })
    }

    /// What a way of which nothing is known may send: little of what others do, but no less than
    /// slower ones.
    fn hoped_share(&self, way: usize) -> f64 {
        let is_zstd = |way: usize| matches!(WAYS[way].compression, Compression::Zstd(_));
        let least = |of: &dyn Fn(usize) -> bool| {
            let known = self.measured.iter().enumerate().filter(|(way, _)| of(*way));
            known.filter_map(|(_, known)| Some((*known)?.mean.share)).min_by(f64::total_cmp)
        };
        let of_level = if is_zstd(way) { least(&is_zstd) } else { None };
        let hoped = match of_level {
            Some(share) => HOPED_SHARE_OF_LEVEL * share,
            None => HOPED_SHARE * least(&|_| true).unwrap_or(self.expected(LIGHT).share),
        };
        hoped.max(least(&|other| other > way).unwrap_or(0.0))
    }

    /// A part of a chunk was written to learn what a way makes of it. Tables that outlive chunks
    /// don't count: they would be sent once.
    pub(crate) fn probed(&mut self, way: usize, written: &Written) {
        let bytes = written.decoded_bytes.max(1) as f64;
        let share = (written.bytes - written.state_bytes) as f64 / bytes;
        self.measured[way] = Some(Known {
            mean: Measured { encode_ns: written.encode_ns as f64 / bytes, share },
            bytes,
        });
    }

    /// A chunk was written.
    pub(crate) fn record(&mut self, way: usize, written: &Written) {
        if written.decoded_bytes < MEASURED_BYTES_MIN {
            return;
        }
        let bytes = written.decoded_bytes as f64;
        let seen = Measured {
            encode_ns: written.encode_ns as f64 / bytes,
            share: written.bytes as f64 / bytes,
        };
        let slot = &mut self.measured[way];
        *slot = Some(match *slot {
            None => Known { mean: seen, bytes },
            Some(Known { mean, bytes: before }) => {
                // A thread that lost its processor for a while took no longer to encode.
                let encode_ns = seen.encode_ns.min(4.0 * mean.encode_ns);
                let newest = NEWEST.max(bytes / (before + bytes));
                let mean = Measured {
                    encode_ns: mean.encode_ns + (encode_ns - mean.encode_ns) * newest,
                    share: mean.share + (seen.share - mean.share) * newest,
                };
                Known { mean, bytes: before + bytes }
            }
        });
    }

    /// What a way should take: as measured, and, while that was on few bytes, as guessed.
    fn expected(&self, way: usize) -> Measured {
        let guess = self.guessed(way);
        let Some(Known { mean, bytes }) = self.measured[way] else { return guess };
        let encode_ns =
            (mean.encode_ns * bytes + guess.encode_ns * GUESS_BYTES) / (bytes + GUESS_BYTES);
        Measured { encode_ns, share: mean.share }
    }

    /// What a way is thought to take by those that were tried: as light, and so much more as is
    /// usual.
    fn guessed(&self, way: usize) -> Measured {
        match way {
            NONE => return PLAIN,
            LIGHT if self.measured[LIGHT].is_some() => return LIGHT_GUESS[self.guess],
            _ => {}
        }
        let light = self.light();
        let Way { more_ns, share, .. } = &WAYS[way];
        Measured {
            encode_ns: light.encode_ns + light.share * more_ns[self.guess],
            share: light.share * share[self.guess],
        }
    }

    /// What light takes: as measured, or as the nearest way that has been would have it.
    fn light(&self) -> Measured {
        let nearest = self
            .measured
            .iter()
            .enumerate()
            .skip(LIGHT)
            .find_map(|(way, known)| Some((way, (*known)?.mean)));
        let Some((way, measured)) = nearest else { return LIGHT_GUESS[self.guess] };
        let share = (measured.share / WAYS[way].share[self.guess]).min(1.0);
        let encode_ns = measured.encode_ns - share * WAYS[way].more_ns[self.guess];
        Measured { encode_ns: encode_ns.max(PLAIN.encode_ns), share }
    }
}

fn has_strings(data_type: &Type) -> bool {
    match data_type {
        Type::Utf8 | Type::Binary => true,
        Type::List(item) | Type::FixedList { item, .. } => has_strings(&item.data_type),
        Type::Map { key, value, .. } => {
            has_strings(&key.data_type) || has_strings(&value.data_type)
        }
        Type::Struct(fields) => fields.iter().any(|field| has_strings(&field.data_type)),
        Type::Dictionary { value, .. } => has_strings(value),
        _ => false,
    }
}
