//! Values as a PostgreSQL server stores and sends them, and the expected contents of their columns.

use dray_format::{Column, Values};

use super::entries::Options;

/// Microseconds and days from 1970 to 2000.
const EPOCH: i64 = 10_957;
const DAY: i64 = 86_400_000_000;

/// xorshift64*
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() >> 32) as usize % end
    }

    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    pub(crate) fn bytes(&mut self, least: usize, most: usize) -> Vec<u8> {
        (0..least + self.below(most - least + 1)).map(|_| self.next() as u8).collect()
    }

    /// A length: mostly short, sometimes near a limit of a varlena header, sometimes long.
    fn length(&mut self) -> usize {
        match self.below(20) {
            0 => 120 + self.below(12),
            1 => self.below(6000),
            _ => self.below(20),
        }
    }

    /// Text whose characters have 1 to 3 bytes each.
    fn text(&mut self) -> Vec<u8> {
        let mut text: Vec<char> = Vec::new();
        for _ in 0..self.length() {
            text.push(self.one_of(&['a', 'b', 'z', ' ', '0', 'é', '€', '"', '\\']));
        }
        text.into_iter().collect::<String>().into_bytes()
    }
}

/// A type, and a function that makes random values of it.
pub(crate) struct Shape {
    pub(crate) oid: u32,
    pub(crate) typmod: i32,
    /// One of the kinds of `dray.h`.
    pub(crate) kind: u8,
    pub(crate) typlen: i16,
    pub(crate) name: &'static str,
    pub(crate) extension: &'static str,
    pub(crate) members: &'static [(&'static str, &'static Shape)],
    pub(crate) value: fn(&mut Random, &Options) -> Value,
}

/// A value within a tuple.
enum Stored {
    /// Aligned to its own length.
    ByValue(Vec<u8>),
    /// Not aligned.
    Reference(Vec<u8>),
    /// Not aligned if its header is a single byte, otherwise aligned to 4 bytes.
    Varlena(Vec<u8>),
    /// Neither this value nor those after it may be read in place, so the tuple ends before it.
    Unread,
}

/// A row in the form that it has on a table's page.
pub(crate) struct Tuple {
    pub(crate) data: Box<[u8]>,
    /// One bit for each column, set for values that are not NULL. `None` if no value is NULL.
    pub(crate) present: Option<Box<[u8]>>,
}

impl Tuple {
    /// The data ends with the last byte that may be read.
    pub(crate) fn new(values: &[Option<Value>]) -> Self {
        let mut data = Vec::new();
        for value in values.iter().flatten() {
            let (bytes, alignment) = match &value.stored {
                Stored::ByValue(bytes) => (bytes, bytes.len()),
                Stored::Reference(bytes) => (bytes, 1),
                Stored::Varlena(bytes) => (bytes, if bytes[0] & 1 == 1 { 1 } else { 4 }),
                Stored::Unread => break,
            };
            data.resize(data.len().next_multiple_of(alignment), 0);
            data.extend(bytes);
        }
        let mut present = vec![0; values.len().div_ceil(8)];
        for (i, _) in values.iter().enumerate().filter(|(_, value)| value.is_some()) {
            present[i / 8] |= 1 << (i % 8);
        }
        let has_nulls = values.iter().any(Option::is_none);
        Self { data: data.into(), present: has_nulls.then(|| present.into()) }
    }
}

/// A value that is not NULL.
pub(crate) struct Value {
    /// The value itself, or the address of `_block`.
    datum: usize,
    /// Exactly the bytes that the datum points to, kept as long as the row.
    _block: Option<Box<[u8]>>,
    /// The value as it is on a table's page.
    stored: Stored,
    /// The bytes of a varlena without its header.
    varlena: Vec<u8>,
    plain: Option<Box<[u8]>>,
    /// The result of the type's send or output function.
    pub(crate) sent: Vec<u8>,
    /// The expected value of the column, as [`canonical`] writes it.
    pub(crate) expected: Vec<u8>,
}

impl Value {
    /// An address that must not be read.
    pub(crate) const POISON: usize = 0xDEAD_0000_0001;

    pub(crate) fn datum(&self) -> usize {
        self.datum
    }

    /// A value within the datum, whose other bytes are random.
    fn by_value(random: &mut Random, low: &[u8], expected: Vec<u8>) -> Self {
        let mut raw = random.next().to_le_bytes();
        raw[..low.len()].copy_from_slice(low);
        let sent = low.iter().rev().copied().collect();
        let (datum, stored) = (u64::from_le_bytes(raw) as usize, Stored::ByValue(low.to_vec()));
        Self { datum, _block: None, stored, varlena: Vec::new(), plain: None, sent, expected }
    }

    fn at(block: Box<[u8]>, sent: Vec<u8>, expected: Vec<u8>) -> Self {
        let datum = block.as_ptr() as usize;
        Self {
            datum,
            _block: Some(block),
            stored: Stored::Unread,
            varlena: Vec::new(),
            plain: None,
            sent,
            expected,
        }
    }

    /// A value that only its send function reads.
    fn sent(sent: Vec<u8>, expected: Vec<u8>) -> Self {
        let stored = Stored::Unread;
        Self {
            datum: Self::POISON,
            _block: None,
            stored,
            varlena: Vec::new(),
            plain: None,
            sent,
            expected,
        }
    }

    /// A varlena in a random one of the forms of `varatt.h`.
    fn stored(random: &mut Random, bytes: &[u8], sent: Vec<u8>, expected: Vec<u8>) -> Self {
        let block = match random.below(10) {
            // Stored out of line: a tag, and a pointer of 16 bytes.
            0 => [&[1, 18][..], &random.bytes(16, 16)].concat(),
            // Compressed, which the two lowest bits tell.
            1 => {
                let compressed = random.bytes(4, 40);
                [&((4 + compressed.len() as u32) << 2 | 2).to_le_bytes()[..], &compressed].concat()
            }
            2 => long(bytes),
            _ if bytes.len() < 127 => [&[((bytes.len() + 1) << 1 | 1) as u8], bytes].concat(),
            _ => long(bytes),
        };
        let stored = Stored::Varlena(block.clone());
        Self { varlena: bytes.to_vec(), stored, ..Self::at(block.into(), sent, expected) }
    }

    pub(crate) fn of_text(text: &[u8]) -> Self {
        let stored = Stored::Varlena(long(text));
        Self {
            varlena: text.to_vec(),
            stored,
            ..Self::at(long(text).into(), text.to_vec(), string(text))
        }
    }

    /// Makes the value plain as `detoast_attr` does, and returns its address.
    pub(crate) fn make_plain(&mut self) -> usize {
        assert!(self.plain.is_none(), "asked for twice");
        self.plain.insert(long(&self.varlena).into()).as_ptr() as usize
    }
}

fn long(bytes: &[u8]) -> Vec<u8> {
    [&((bytes.len() as u32 + 4) << 2).to_le_bytes()[..], bytes].concat()
}

/// A column's value as bytes that a test can compare: 0 for NULL, otherwise 1 and the value.
pub(crate) fn canonical(column: &Column, row: usize) -> Vec<u8> {
    if !column.is_valid(row) {
        return vec![0];
    }
    let offset = |offsets: &[u8], i: usize| {
        u32::from_le_bytes(offsets[i * 4..][..4].try_into().unwrap()) as usize
    };
    match &column.values {
        Values::Boolean(bits) => vec![1, u8::from(bits.bit(row))],
        Values::Fixed { width, bytes } => [&[1], &bytes[row * width..][..*width]].concat(),
        Values::Bytes { offsets, data } => {
            string(&data[offset(offsets, row)..offset(offsets, row + 1)])
        }
        Values::List { offsets, child } => {
            let items = offset(offsets, row)..offset(offsets, row + 1);
            list(&items.map(|item| canonical(child, item)).collect::<Vec<_>>())
        }
        Values::Struct(children) => {
            let parts = children.iter().flat_map(|child| canonical(child, row));
            std::iter::once(1).chain(parts).collect()
        }
        other => panic!("no column here is made of {other:?}"),
    }
}

fn string(text: &[u8]) -> Vec<u8> {
    [&[1], &(text.len() as u32).to_le_bytes()[..], text].concat()
}

fn list(items: &[Vec<u8>]) -> Vec<u8> {
    [&[1], &(items.len() as u32).to_le_bytes()[..], &items.concat()].concat()
}

fn there(bytes: &[u8]) -> Vec<u8> {
    [&[1], bytes].concat()
}

const NULL: &[u8] = &[0];
const BASE: u8 = 0;
const ENUM: u8 = 1;
const DOMAIN: u8 = 2;
const ARRAY: u8 = 3;
const COMPOSITE: u8 = 4;
const RANGE: u8 = 5;

const fn base(
    oid: u32,
    typmod: i32,
    name: &'static str,
    value: fn(&mut Random, &Options) -> Value,
) -> Shape {
    Shape { oid, typmod, kind: BASE, typlen: -1, name, extension: "", members: &[], value }
}

/// `numeric_typmod` of numeric.c.
const fn typmod(precision: i32, scale: i32) -> i32 {
    (precision << 16 | scale) + 4
}

static INT4: Shape = base(23, -1, "integer", |random, _| fixed::<4>(random));
static TEXT: Shape = base(25, -1, "text", text);
/// Repeated strings of at least 13 bytes, which are worth a dictionary.
pub(crate) static WORDS: Shape = base(25, -1, "text", |random, _| {
    let [first, second] = [0, 1].map(|_| {
        random.one_of(&["carefully", "furiously", "déposits", "ironic", "accounts", "quickly"])
    });
    Value::of_text(format!("{first} {second}").as_bytes())
});
static INET: Shape = base(869, -1, "inet", inet);
static MONEY_AMOUNT: Shape =
    base(1700, typmod(10, 2), "numeric", |random, options| numeric(random, options, 10, 2));

pub(crate) static SHAPES: &[Shape] = &[
    base(16, -1, "boolean", |random, _| {
        let value = random.below(2) as u8;
        Value::by_value(random, &[value], vec![1, value])
    }),
    base(21, -1, "smallint", |random, _| fixed::<2>(random)),
    base(23, -1, "integer", |random, _| fixed::<4>(random)),
    base(20, -1, "bigint", |random, _| fixed::<8>(random)),
    base(26, -1, "oid", |random, _| fixed::<4>(random)),
    base(700, -1, "real", |random, _| fixed::<4>(random)),
    base(701, -1, "double precision", |random, _| fixed::<8>(random)),
    base(17, -1, "bytea", |random, _| {
        let most = random.length();
        let bytes = random.bytes(0, most);
        Value::stored(random, &bytes, bytes.clone(), string(&bytes))
    }),
    base(25, -1, "text", text),
    base(1043, 24, "character varying", text),
    base(114, -1, "json", text),
    Shape { extension: "citext", ..base(50_001, -1, "public.citext", text) },
    base(19, -1, "name", |random, _| {
        let bytes: Vec<u8> =
            (0..random.one_of(&[0, 1, 8, 63, 64])).map(|_| random.one_of(b"abcdefg_")).collect();
        // From an index, the bytes end with the terminating zero.
        let zero = if bytes.len() < 64 { &[0][..] } else { &[] };
        let mut page = bytes.clone();
        page.resize(64, 0);
        let value = Value::at([&bytes, zero].concat().into(), bytes.clone(), string(&bytes));
        Value { stored: Stored::Reference(page), ..value }
    }),
    base(790, -1, "money", |random, _| {
        let value = random.next().cast_signed();
        Value::by_value(random, &value.to_le_bytes(), there(&i128::from(value).to_le_bytes()))
    }),
    base(1082, -1, "date", |random, _| {
        let days = match random.below(40) {
            0 => i32::MAX,
            1 => i32::MIN,
            _ => random.below(2_147_000_000) as i32 - 2_451_545,
        };
        let column = days.checked_add(EPOCH as i32).filter(|_| days != i32::MIN);
        Value::by_value(
            random,
            &days.to_le_bytes(),
            column.map_or(NULL.to_vec(), |days| there(&days.to_le_bytes())),
        )
    }),
    base(1083, -1, "time", |random, _| {
        let time =
            if random.below(40) == 0 { DAY } else { (random.next() % DAY as u64).cast_signed() };
        Value::by_value(
            random,
            &time.to_le_bytes(),
            if time < DAY { there(&time.to_le_bytes()) } else { NULL.to_vec() },
        )
    }),
    base(1114, -1, "timestamp", timestamp),
    base(1184, -1, "timestamp with time zone", timestamp),
    base(1186, -1, "interval", |random, _| {
        let (micros, days, months) =
            (random.below(1 << 30) as i64 - (1 << 29), random.below(100) as i32, -7i32);
        let sent = [&micros.to_be_bytes()[..], &days.to_be_bytes(), &months.to_be_bytes()].concat();
        let column =
            [&months.to_le_bytes()[..], &days.to_le_bytes(), &(micros * 1000).to_le_bytes()]
                .concat();
        Value::sent(sent, there(&column))
    }),
    Shape {
        typlen: 16,
        ..base(2950, -1, "uuid", |random, _| {
            let bytes = random.bytes(16, 16);
            let value = Value::at(bytes.clone().into(), bytes.clone(), there(&bytes));
            Value { stored: Stored::Reference(bytes), ..value }
        })
    },
    base(1700, typmod(15, 2), "numeric", |random, options| numeric(random, options, 15, 2)),
    base(1700, typmod(18, 5), "numeric", |random, options| numeric(random, options, 18, 5)),
    base(1700, typmod(30, 7), "numeric", |random, options| numeric(random, options, 30, 7)),
    base(1700, typmod(38, 38), "numeric", |random, options| numeric(random, options, 38, 38)),
    base(1700, typmod(70, 12), "numeric", |random, options| numeric(random, options, 70, 12)),
    base(1700, -1, "numeric", |random, options| {
        // A scale that also fits decimal(40,9).
        let scale = random.below(10);
        numeric_of(random, options, 30, scale, None)
    }),
    INET_COLUMN,
    Shape {
        kind: ENUM,
        typlen: 4,
        ..base(50_002, -1, "public.mood", |random, _| {
            let label = random.one_of(&[&b"sad"[..], b"happy"]);
            Value::sent(label.to_vec(), string(label))
        })
    },
    Shape { kind: DOMAIN, members: &[("", &TEXT)], ..base(50_003, -1, "public.words", text) },
    Shape {
        kind: DOMAIN,
        members: &[("", &MONEY_AMOUNT)],
        ..base(50_004, -1, "public.amount", |random, options| numeric(random, options, 10, 2))
    },
    Shape { kind: ARRAY, members: &[("", &INT4)], ..base(1007, -1, "integer[]", array) },
    Shape {
        kind: ARRAY,
        members: &[("", &INET)],
        ..base(1041, -1, "inet[]", |random, _| {
            let items = random.below(5);
            let one = |i: usize| ["10.0.0.1", "NULL"][i % 2];
            let text = format!("{{{}}}", (0..items).map(one).collect::<Vec<_>>().join(","));
            let column = (0..items).map(|i| [string(b"10.0.0.1"), NULL.to_vec()][i % 2].clone());
            Value::sent(text.into_bytes(), list(&column.collect::<Vec<_>>()))
        })
    },
    Shape {
        kind: COMPOSITE,
        members: &[("n", &INT4), ("t", &TEXT)],
        ..base(50_005, -1, "public.pair", |random, options| {
            let (n, t) = (fixed::<4>(random), text(random, options));
            let head = [&2u32.to_be_bytes()[..], &23u32.to_be_bytes()].concat();
            let sent = [&head, &sized(&n.sent)[..], &25u32.to_be_bytes(), &sized(&t.sent)].concat();
            Value::sent(sent, [&[1], &n.expected[..], &t.expected].concat())
        })
    },
    Shape {
        kind: RANGE,
        members: &[("", &INT4)],
        ..base(3904, -1, "int4range", |random, _| match random.below(5) {
            // `rangetypes.h`: empty; no upper bound; both, and the lower one included.
            0 => Value::sent(vec![1], vec![1, 0, 0, 1, 0, 1, 0, 1, 1]),
            1 => {
                let lower = fixed::<4>(random);
                let sent = [&[2 | 16], &sized(&lower.sent)[..]].concat();
                Value::sent(sent, [&[1], &lower.expected[..], NULL, &[1, 1, 1, 0, 1, 0]].concat())
            }
            _ => {
                let (lower, upper) = (fixed::<4>(random), fixed::<4>(random));
                let sent = [&[2], &sized(&lower.sent)[..], &sized(&upper.sent)].concat();
                Value::sent(
                    sent,
                    [&[1], &lower.expected[..], &upper.expected, &[1, 1, 1, 0, 1, 0]].concat(),
                )
            }
        })
    },
];

const INET_COLUMN: Shape = base(869, -1, "inet", inet);

fn sized(sent: &[u8]) -> Vec<u8> {
    [&(sent.len() as u32).to_be_bytes()[..], sent].concat()
}

fn fixed<const N: usize>(random: &mut Random) -> Value {
    let bytes = random.bytes(N, N);
    Value::by_value(random, &bytes, there(&bytes))
}

fn text(random: &mut Random, _: &Options) -> Value {
    let text = random.text();
    Value::stored(random, &text, text.clone(), string(&text))
}

fn inet(_: &mut Random, _: &Options) -> Value {
    Value::sent(b"10.0.0.1/8".to_vec(), string(b"10.0.0.1/8"))
}

fn timestamp(random: &mut Random, _: &Options) -> Value {
    let time = match random.below(40) {
        0 => i64::MAX,
        1 => i64::MIN,
        // The last timestamp of PostgreSQL, which is beyond the range of an Arrow timestamp.
        2 => 9_223_371_331_199_999_999,
        _ => (random.next() % 8_000_000_000_000_000_000).cast_signed() - 211_813_488_000_000_000,
    };
    let column = time.checked_add(EPOCH * DAY).filter(|_| time != i64::MIN);
    Value::by_value(
        random,
        &time.to_le_bytes(),
        column.map_or(NULL.to_vec(), |time| there(&time.to_le_bytes())),
    )
}

fn array(random: &mut Random, _: &Options) -> Value {
    let items: Vec<Option<Value>> =
        (0..random.below(8)).map(|_| (random.below(4) > 0).then(|| fixed::<4>(random))).collect();
    let column =
        items.iter().map(|item| item.as_ref().map_or(NULL.to_vec(), |item| item.expected.clone()));
    let column: Vec<_> = column.collect();
    let head = |dimensions: u32| {
        [dimensions, 1, 23].iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<_>>()
    };
    if items.is_empty() {
        return Value::sent(head(0), list(&[]));
    }
    let mut sent =
        [&head(1)[..], &(items.len() as u32).to_be_bytes(), &1u32.to_be_bytes()].concat();
    for item in &items {
        match item {
            Some(item) => sent.extend(sized(&item.sent)),
            None => sent.extend(u32::MAX.to_be_bytes()),
        }
    }
    Value::sent(sent, list(&column))
}

fn numeric(random: &mut Random, options: &Options, precision: usize, scale: usize) -> Value {
    numeric_of(random, options, precision, scale, Some((precision, scale)))
}

/// A number of at most `precision` digits. `declared` has the declared precision and scale.
fn numeric_of(
    random: &mut Random,
    options: &Options,
    precision: usize,
    scale: usize,
    declared: Option<(usize, usize)>,
) -> Value {
    if random.below(40) == 0 {
        let (header, name) =
            random.one_of(&[(0xC000u16, "NaN"), (0xD000, "Infinity"), (0xF000, "-Infinity")]);
        let sent = [0, 0, header, 0].iter().flat_map(|n| n.to_be_bytes()).collect();
        let expected = match (declared, options.numeric) {
            (None, "text") => string(name.as_bytes()),
            (None, "float64") => there(&name.parse::<f64>().unwrap().to_le_bytes()),
            _ => NULL.to_vec(),
        };
        return Value::stored(random, &header.to_le_bytes(), sent, expected);
    }
    let count = random.below(precision + 1);
    let mut digits: Vec<u8> = (0..count).map(|_| random.below(10) as u8).collect();
    if random.below(3) == 0 {
        // A round number, whose trailing zeros PostgreSQL does not store.
        let kept = random.below(count + 1);
        digits[kept..].fill(0);
    }
    let digits: Vec<u8> = digits.into_iter().skip_while(|digit| *digit == 0).collect();
    let negative = !digits.is_empty() && random.below(2) == 0;
    let (weight, groups) = groups(&digits, scale);

    let mut sent = Vec::new();
    let sign = if negative { 0x4000u16 } else { 0 };
    for field in [groups.len() as u16, weight as u16, sign, scale as u16] {
        sent.extend(field.to_be_bytes());
    }
    sent.extend(groups.iter().flat_map(|group| group.to_be_bytes()));

    // `NumericShort` and `NumericLong` of numeric.c.
    let mut stored = Vec::new();
    if scale < 64 && (-64..64).contains(&weight) && random.below(10) > 0 {
        let header = 0x8000 | sign >> 1 | (scale as u16) << 7 | (weight as u16 & 0x7F);
        stored.extend(header.to_le_bytes());
    } else {
        stored.extend((sign | scale as u16).to_le_bytes());
        stored.extend((weight as i16).to_le_bytes());
    }
    stored.extend(groups.iter().flat_map(|group| group.to_le_bytes()));

    let decimal = |scale_of_column: usize, width: usize| {
        let mut digits = digits.clone();
        digits.resize(digits.len() + scale_of_column - scale, 0);
        there(&little_endian(&digits, negative, width))
    };
    let expected = match (declared, options.numeric) {
        (Some((precision, scale)), _) => decimal(scale, if precision <= 38 { 16 } else { 32 }),
        (None, "text") => string(written(&digits, scale, negative).as_bytes()),
        (None, "float64") => {
            there(&written(&digits, scale, negative).parse::<f64>().unwrap().to_le_bytes())
        }
        (None, _) => decimal(9, 32),
    };
    Value::stored(random, &stored, sent, expected)
}

/// Converts decimal digits to those of base 10,000 that a server stores, with the weight of the
/// first one.
fn groups(digits: &[u8], scale: usize) -> (i32, Vec<u16>) {
    let mut padded = vec![0; scale.saturating_sub(digits.len())];
    padded.extend(digits);
    let whole = padded.len() - scale;
    padded.splice(0..0, vec![0; whole.wrapping_neg() % 4]);
    let whole = padded.len() - scale;
    padded.resize(padded.len().next_multiple_of(4), 0);
    let mut groups: Vec<u16> = padded
        .chunks(4)
        .map(|four| four.iter().fold(0, |sum, digit| sum * 10 + u16::from(*digit)))
        .collect();
    let zeros = groups.iter().take_while(|group| **group == 0).count();
    if zeros == groups.len() {
        return (0, Vec::new());
    }
    groups.drain(..zeros);
    while groups.last() == Some(&0) {
        groups.pop();
    }
    ((whole / 4) as i32 - 1 - zeros as i32, groups)
}

/// The number as `numeric_out` writes it.
fn written(digits: &[u8], scale: usize, negative: bool) -> String {
    let mut text: Vec<u8> = vec![b'0'; (scale + 1).saturating_sub(digits.len())];
    text.extend(digits.iter().map(|digit| b'0' + digit));
    if scale > 0 {
        text.insert(text.len() - scale, b'.');
    }
    if negative {
        text.insert(0, b'-');
    }
    String::from_utf8(text).unwrap()
}

/// Writes a decimal number as a two's complement integer of `width` bytes.
fn little_endian(digits: &[u8], negative: bool, width: usize) -> Vec<u8> {
    let mut bytes = vec![0u8; width];
    let mut add = |factor: u16, mut carry: u16, invert: bool| {
        for byte in &mut bytes {
            let value = if invert { u16::from(!*byte) } else { u16::from(*byte) * factor };
            carry += value;
            *byte = carry as u8;
            carry >>= 8;
        }
    };
    for digit in digits {
        add(10, u16::from(*digit), false);
    }
    if negative {
        add(1, 1, true);
    }
    bytes
}
