//! Random values are the same in both protocols. `DRAY_SEED` runs one seed again, `DRAY_ROUNDS`
//! sets the number of rounds.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests")]

mod common;

use common::Protocol::{Binary, Text};
use common::{binary_row, built, columns, definition, lenenc, options, shown, text_row, value};
use dray_mysqltypes::{ColumnDefinition, ZeroDates};

const ROUNDS: u64 = 2_000;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Any bits, but small numbers as often as large ones.
    fn word(&mut self) -> u64 {
        let bits = self.below(64);
        self.next() >> bits
    }
}

/// A column, and how to draw a value of it as text and in the binary protocol.
type Draw = Box<dyn Fn(&mut Random) -> (Vec<u8>, Vec<u8>)>;

fn draw_column(random: &mut Random) -> (ColumnDefinition, Draw) {
    let kind = random.below(8);
    let decimals = random.below(7) as u8;
    match kind {
        0 => {
            let (code, bytes) = [(1, 1), (2, 2), (9, 4), (3, 4), (8, 8)][random.below(5) as usize];
            let is_unsigned = random.below(2) == 1;
            let flags = if is_unsigned { 32 } else { 0 };
            let draw = move |random: &mut Random| {
                let raw = random.word().to_le_bytes();
                let shift = 64 - 8 * bytes as u32;
                let word = u64::from_le_bytes(raw) << shift;
                let text = match is_unsigned {
                    true => (word >> shift).to_string(),
                    false => (word.cast_signed() >> shift).to_string(),
                };
                (text.into_bytes(), raw[..bytes].to_vec())
            };
            (ColumnDefinition { flags, ..definition(code) }, Box::new(draw))
        }
        1 => {
            let draw = |random: &mut Random| {
                let float = Some(f64::from_bits(random.next())).filter(|float| float.is_finite());
                let float = float.unwrap_or_default();
                (format!("{float:e}").into_bytes(), float.to_le_bytes().to_vec())
            };
            (definition(5), Box::new(draw))
        }
        2 => {
            let (definition, whole, scale) = draw_decimal(random);
            let draw = move |random: &mut Random| {
                let text = decimal(random, whole, scale).into_bytes();
                (text.clone(), lenenc(&text))
            };
            (definition, Box::new(draw))
        }
        3 => {
            let draw = |random: &mut Random| {
                let (text, parts, _) = date(random);
                (text.into_bytes(), lenenc(&parts))
            };
            (definition(10), Box::new(draw))
        }
        4 => {
            let code = if random.below(2) == 1 { 7 } else { 12 };
            let draw = move |random: &mut Random| {
                let (date, mut parts, is_zero) = date(random);
                // A date of zeros is at midnight.
                let (time, rest) = clock(random, if is_zero { 0 } else { 24 }, decimals);
                parts.extend_from_slice(&rest);
                if is_zero && rest.is_empty() {
                    parts.clear();
                }
                (format!("{date} {time}").into_bytes(), lenenc(&parts))
            };
            (ColumnDefinition { decimals, ..definition(code) }, Box::new(draw))
        }
        5 => {
            let draw = move |random: &mut Random| {
                let (days, is_negative) = (random.below(34) as u32, random.below(2) == 1);
                let (time, rest) = clock(random, 24, decimals);
                let (hour, after) = time.split_at(2);
                let hours = days * 24 + hour.parse::<u32>().unwrap();
                let sign = if is_negative { "-" } else { "" };
                let rest = if rest.is_empty() { vec![0; 3] } else { rest };
                let parts = [&[u8::from(is_negative)], &days.to_le_bytes()[..], &rest].concat();
                (format!("{sign}{hours:02}{after}").into_bytes(), lenenc(&parts))
            };
            (ColumnDefinition { decimals, ..definition(11) }, Box::new(draw))
        }
        6 => {
            let draw = |random: &mut Random| {
                let word = random.word().to_be_bytes();
                (word.to_vec(), lenenc(&word))
            };
            (ColumnDefinition { length: 64, ..definition(16) }, Box::new(draw))
        }
        _ => {
            let flags = [0, 256, 2048][random.below(3) as usize];
            let draw = |random: &mut Random| {
                let text = format!("{:x}", random.word() % 1000).repeat(random.below(100) as usize);
                (text.clone().into_bytes(), lenenc(text.as_bytes()))
            };
            (ColumnDefinition { flags, character_set: 255, ..definition(254) }, Box::new(draw))
        }
    }
}

/// A column of decimals, and its digits before and after the point.
fn draw_decimal(random: &mut Random) -> (ColumnDefinition, u64, u64) {
    let precision = 1 + random.below(65);
    let scale = random.below(31.min(precision + 1));
    let length = precision as u32 + 1 + u32::from(scale > 0);
    let definition = ColumnDefinition { length, decimals: scale as u8, ..definition(246) };
    (definition, precision - scale, scale)
}

/// A decimal of at most so many digits, as the server writes it.
fn decimal(random: &mut Random, whole: u64, scale: u64) -> String {
    let count = random.below(whole + 1);
    let mut digits = |count: u64| -> String {
        (0..count).map(|_| char::from(b'0' + random.below(10) as u8)).collect()
    };
    let (whole, fraction) = (digits(count), digits(scale));
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        some => some,
    };
    let text = if scale > 0 { format!("{whole}.{fraction}") } else { whole.to_owned() };
    let is_negative = random.below(2) == 1 && text.contains(|digit| matches!(digit, '1'..='9'));
    if is_negative { format!("-{text}") } else { text }
}

/// A date, also such as the calendar does not have: its text, its parts, and whether it is
/// 0000-00-00.
fn date(random: &mut Random) -> (String, Vec<u8>, bool) {
    if random.below(8) == 0 {
        return ("0000-00-00".to_owned(), vec![], true);
    }
    let (year, month) = (random.below(10_000) as u16, random.below(13) as u8);
    let day = random.below(32) as u8;
    let [low, high] = year.to_le_bytes();
    (format!("{year:04}-{month:02}-{day:02}"), vec![low, high, month, day], false)
}

/// A time before `hours`: its text, and its parts without zeros at the end.
fn clock(random: &mut Random, hours: u64, decimals: u8) -> (String, Vec<u8>) {
    let some = hours > 0 && random.below(4) > 0;
    let mut below = |end: u64| if some { random.below(end) } else { 0 };
    let (hour, minute, second) = (below(hours.max(1)), below(60), below(60));
    let unit = 10u64.pow(6 - u32::from(decimals));
    let microsecond = below(1_000_000 / unit) * unit;
    let mut text = format!("{hour:02}:{minute:02}:{second:02}.{microsecond:06}");
    text.truncate(if decimals == 0 { 8 } else { 9 + usize::from(decimals) });
    let mut parts = vec![hour as u8, minute as u8, second as u8];
    match microsecond {
        0 if parts == [0, 0, 0] => parts.clear(),
        0 => {}
        some => parts.extend_from_slice(&(some as u32).to_le_bytes()),
    }
    (text, parts)
}

/// Whether the rows were accepted.
fn check(seed: u64) -> bool {
    let mut random = Random(seed);
    let (definitions, draws): (Vec<_>, Vec<_>) =
        (0..1 + random.below(12)).map(|_| draw_column(&mut random)).unzip();
    let zero_dates = [ZeroDates::Error, ZeroDates::Null, ZeroDates::Text][random.below(3) as usize];
    let columns = columns(&definitions, &options(zero_dates));
    let (mut text, mut binary) = (Vec::new(), Vec::new());
    for _ in 0..random.below(20) {
        let mut value = |draw: &Draw| (random.below(6) > 0).then(|| draw(&mut random));
        let values: Vec<_> = draws.iter().map(&mut value).collect();
        let texts: Vec<_> = values.iter().map(|value| Some(&*value.as_ref()?.0)).collect();
        let binaries: Vec<_> = values.iter().map(|value| Some(&*value.as_ref()?.1)).collect();
        text.push(text_row(&texts));
        binary.push(binary_row(&binaries));
    }
    match (built(&columns, Text, &text), built(&columns, Binary, &binary)) {
        (Ok(text), Ok(binary)) => {
            assert_eq!(shown(&text), shown(&binary));
            assert_eq!(text.batch().columns, binary.batch().columns);
            true
        }
        (Err(text), Err(binary)) => {
            assert!(text.to_string().contains("the calendar has no"), "{text}");
            assert_eq!(text.to_string(), binary.to_string());
            assert_eq!(zero_dates, ZeroDates::Error);
            false
        }
        (text, binary) => panic!("{text:?} {binary:?}"),
    }
}

/// Both protocols send decimals as text: the column is compared with that.
fn check_decimal(seed: u64) {
    let mut random = Random(seed);
    let (definition, whole, scale) = draw_decimal(&mut random);
    let text = decimal(&mut random, whole, scale);
    assert_eq!(value(&definition, ZeroDates::Error, Text, text.as_bytes()), Ok(text));
}

#[test]
fn random_rows() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seeds = match number("DRAY_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("DRAY_ROUNDS").unwrap_or(ROUNDS),
    };
    let mut accepted = 0;
    for seed in seeds.clone() {
        let check = || {
            check_decimal(seed);
            check(seed)
        };
        match std::panic::catch_unwind(check) {
            Ok(is_accepted) => accepted += u64::from(is_accepted),
            Err(panic) => {
                eprintln!("failed with DRAY_SEED={seed}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    let count = seeds.end - seeds.start;
    assert!(count < ROUNDS || accepted > count / 2, "{accepted} of {count}");
}
