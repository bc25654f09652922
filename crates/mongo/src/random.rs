//! Random documents for tests.

#![allow(clippy::unwrap_used, reason = "tests")]

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Binary, Bson, DateTime, Document, Timestamp, cstr};

/// A generator of pseudo-random numbers: xorshift.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % below
    }

    fn bits(&mut self) -> u64 {
        (self.next(1 << 31) as u64) << 33 | (self.next(1 << 31) as u64) << 2
    }

    /// A document of some of five names, most with values of one type each.
    pub(crate) fn document(&mut self, depth: usize) -> Document {
        let mut document = Document::new();
        for i in 0..5 {
            if self.next(8) > 0 {
                let kind = if self.next(30) == 0 { self.next(KINDS) } else { i * 3 + depth };
                document.insert(format!("f{i}"), self.value(kind % KINDS, depth));
            }
        }
        document
    }

    pub(crate) fn value(&mut self, kind: usize, depth: usize) -> Bson {
        let small = i64::try_from(self.next(2000)).unwrap() - 1000;
        match kind {
            0 => Bson::Int32(small.try_into().unwrap()),
            1 => Bson::Int64(self.bits().cast_signed()),
            2 => Bson::Double(f64::from_bits(self.bits())),
            3 => Bson::Double(small as f64),
            4 => Bson::String("é\"\n\0x".chars().cycle().take(self.next(9)).collect()),
            5 => Bson::Boolean(small > 0),
            6 => Bson::Null,
            7 => Bson::ObjectId(ObjectId::from_bytes([small as u8; 12])),
            8 => Bson::DateTime(DateTime::from_millis(small * 1_000_000_000_000)),
            9 => Bson::Decimal128(format!("{small}E-{}", self.next(5)).parse().unwrap()),
            10 => Bson::Decimal128(
                "NaN 1E+99 -0".split(' ').nth(self.next(3)).unwrap().parse().unwrap(),
            ),
            11 => self.binary(4, 16),
            12 => {
                let subtype = [0, 0, 0, 5, 128][self.next(5)];
                self.binary(subtype, self.0 as usize % 4)
            }
            13 => Bson::Timestamp(Timestamp { time: 1, increment: self.next(9) as u32 }),
            14 => Bson::MinKey,
            15 => Bson::RegularExpression(mongodb::bson::Regex {
                pattern: cstr!("^a").into(),
                options: cstr!("i").into(),
            }),
            16 | 17 if depth < 3 => {
                let kind = self.next(3);
                Bson::Array((0..self.next(4)).map(|_| self.value(kind, depth + 1)).collect())
            }
            18 | 19 if depth < 3 => Bson::Document(self.document(depth + 1)),
            _ => Bson::Int32(1),
        }
    }

    fn binary(&mut self, subtype: u8, bytes: usize) -> Bson {
        let bytes = (0..bytes).map(|_| self.next(256) as u8).collect();
        Bson::Binary(Binary { subtype: subtype.into(), bytes })
    }
}

/// How many kinds of values there are.
const KINDS: usize = 20;
