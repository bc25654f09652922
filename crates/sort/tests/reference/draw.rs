//! Random choices and values of a case. Choices come from a fuzzer's bytes as long as these last;
//! all else comes from a seed.

/// A stream of choices and of random numbers.
pub struct Draw<'a> {
    choices: &'a [u8],
    state: u64,
}

impl<'a> Draw<'a> {
    pub fn new(choices: &'a [u8], seed: u64) -> Self {
        Self { choices, state: seed }
    }

    /// A random number (splitmix64).
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A random number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// A random number from 0 to 1.
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A choice below `end`, which is at most 256: the next byte of the fuzzer, or random.
    pub fn choose(&mut self, end: usize) -> usize {
        match self.choices.split_first() {
            Some((byte, rest)) => {
                self.choices = rest;
                usize::from(*byte) % end
            }
            None => self.below(end),
        }
    }

    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.choose(choices.len())].clone()
    }
}

/// The distribution of the values of a column.
#[derive(Debug, Clone)]
pub enum Shape {
    Uniform,
    /// Around 0, with this standard deviation.
    Normal(f64),
    /// Ranks below this, the least being the most frequent; scattered over all numbers or not.
    Zipf(f64, bool),
    Few(Vec<[u8; WIDE]>),
    Rising(i128),
    Falling(i128),
    Sawtooth(i128),
    /// All bytes are those of `base`, except `len` from `start` on, which have `values` values.
    Window {
        base: [u8; WIDE],
        start: usize,
        len: usize,
        values: usize,
    },
}

/// The bytes of the widest number.
pub const WIDE: usize = 48;

impl Shape {
    /// A distribution of numbers of `width` bytes.
    pub fn draw(draw: &mut Draw<'_>, width: usize) -> Self {
        let few =
            |draw: &mut Draw<'_>, count: usize| Self::Few((0..count).map(|_| wide(draw)).collect());
        match draw.choose(16) {
            0 => Self::Uniform,
            1..=3 => Self::Normal(10f64.powi(draw.choose(14) as i32)),
            4 => Self::Zipf(10f64.powi(1 + draw.choose(6) as i32), false),
            5 => Self::Zipf(10f64.powi(1 + draw.choose(4) as i32), true),
            6 => few(draw, 1),
            7..=9 => {
                let count = 2 + draw.choose(4);
                few(draw, count)
            }
            10 => Self::Rising(1 + draw.choose(200) as i128),
            11 => Self::Falling(1 + draw.choose(3) as i128),
            12 => Self::Sawtooth(1 + draw.choose(256) as i128),
            _ => {
                let start = draw.choose(width.max(1));
                let len = 1 + draw.choose(width.saturating_sub(start).max(1));
                Self::Window { base: wide(draw), start, len, values: draw.pick(&[2, 3, 10, 256]) }
            }
        }
    }

    /// A number of `width` bytes, the most significant first.
    pub fn bytes(&self, draw: &mut Draw<'_>, width: usize, (row, rows): (usize, usize)) -> Vec<u8> {
        let number = |number: i128| {
            let mut bytes = [if number < 0 { 0xFF } else { 0 }; WIDE];
            bytes[WIDE - 16..].copy_from_slice(&number.to_be_bytes());
            bytes[WIDE - width..].to_vec()
        };
        match self {
            Self::Uniform => wide(draw)[..width].to_vec(),
            Self::Normal(deviation) => {
                let sum: f64 = (0..12).map(|_| draw.fraction()).sum();
                number(((sum - 6.0) * deviation) as i128)
            }
            Self::Zipf(count, scattered) => {
                let rank = count.powf(draw.fraction()) as u64;
                number(if *scattered {
                    i128::from(rank.wrapping_mul(0x9E37_79B9_7F4A_7C15) as i64)
                } else {
                    rank.into()
                })
            }
            Self::Few(few) => few[draw.below(few.len())][..width].to_vec(),
            Self::Rising(step) => number(row as i128 * step),
            Self::Falling(step) => number((rows - row) as i128 * step),
            Self::Sawtooth(period) => number(row as i128 % period),
            Self::Window { base, start, len, values } => {
                let mut bytes = base[..width].to_vec();
                bytes
                    .iter_mut()
                    .skip(*start)
                    .take(*len)
                    .for_each(|byte| *byte = draw.below(*values) as u8);
                bytes
            }
        }
    }
}

fn wide(draw: &mut Draw<'_>) -> [u8; WIDE] {
    let mut bytes = [0; WIDE];
    bytes.chunks_mut(8).for_each(|word| word.copy_from_slice(&draw.next().to_be_bytes()));
    bytes
}

/// The distribution of strings: a shared prefix, and a tail.
#[derive(Debug, Clone)]
pub struct Texts {
    prefixes: Vec<String>,
    /// The letters of the tail.
    alphabet: &'static [char],
    tail_max: usize,
    /// Whether the tail always has `tail_max` letters, or at most.
    is_fixed: bool,
    /// Whether the tail is the number of the row.
    numbered: bool,
    /// Earlier strings, some of which are repeated.
    known: Vec<String>,
    repeats: f64,
}

impl Texts {
    pub fn draw(draw: &mut Draw<'_>) -> Self {
        let alphabet: &[char] = draw.pick(&[
            &['a', 'b'][..],
            &['\0', '\u{1}', '\u{2}'],
            &['a', '\0', 'z', 'é', '語', '🐎'],
            &['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'],
        ]);
        let shared = draw.choose(41);
        let first: String = (0..shared).map(|_| alphabet[draw.below(alphabet.len())]).collect();
        let mut prefixes = vec![first.clone()];
        for _ in 0..draw.choose(3) {
            // It begins as the first one does.
            let same = draw.choose(shared + 1);
            let other = first
                .chars()
                .take(same)
                .chain((same..shared).map(|_| alphabet[draw.below(alphabet.len())]));
            prefixes.push(other.collect());
        }
        Self {
            prefixes,
            alphabet,
            tail_max: draw.pick(&[0, 1, 2, 3, 5, 9, 20, 60]),
            is_fixed: draw.choose(3) == 0,
            numbered: draw.choose(6) == 0,
            known: Vec::new(),
            repeats: draw.pick(&[0.0, 0.5, 0.9]),
        }
    }

    pub fn text(&mut self, draw: &mut Draw<'_>, row: usize) -> String {
        if !self.known.is_empty() && draw.fraction() < self.repeats {
            return self.known[draw.below(self.known.len())].clone();
        }
        let mut text = self.prefixes[draw.below(self.prefixes.len())].clone();
        if self.numbered {
            text.push_str(&format!("{row:07}"));
        } else {
            let count = if self.is_fixed { self.tail_max } else { draw.below(self.tail_max + 1) };
            text.extend((0..count).map(|_| self.alphabet[draw.below(self.alphabet.len())]));
        }
        if self.known.len() < 20 {
            self.known.push(text.clone());
        }
        text
    }
}
