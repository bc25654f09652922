//! The data of a COPY, taken apart.

use dray_pgtypes::{Kind, PgType};

const HEADER_BYTES: usize = 19;

/// A cursor over what the encoder has written.
struct Sent<'a>(&'a [u8]);

impl<'a> Sent<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    fn number(&mut self) -> i32 {
        i32::from_be_bytes(self.take(4).try_into().unwrap())
    }

    fn short(&mut self) -> u16 {
        u16::from_be_bytes(self.take(2).try_into().unwrap())
    }

    /// A value with its length; None for NULL.
    fn field(&mut self) -> Option<&'a [u8]> {
        match self.number() {
            -1 => None,
            bytes => Some(self.take(usize::try_from(bytes).unwrap())),
        }
    }

    fn fields(&mut self, of: &PgType) {
        if let Some(value) = self.field() {
            check_value(of, value);
        }
    }
}

/// Checks the structure of a value.
fn check_value(of: &PgType, value: &[u8]) {
    let mut sent = Sent(value);
    match &of.kind {
        Kind::Domain(base) => return check_value(base, value),
        Kind::Array { item, .. } => {
            let (dimensions, has_nulls) = (sent.number(), sent.number());
            assert_eq!(sent.number() as u32, item.oid);
            assert!((0..=1).contains(&has_nulls));
            if dimensions > 0 {
                assert_eq!(dimensions, 1);
                let count = sent.number();
                assert!(count > 0 && sent.number() == 1);
                (0..count).for_each(|_| sent.fields(item));
            }
        }
        Kind::Composite(attributes) => {
            assert_eq!(sent.number() as usize, attributes.len());
            for (_, attribute) in attributes {
                assert_eq!(sent.number() as u32, attribute.oid);
                sent.fields(attribute);
            }
        }
        Kind::Range(bound) => {
            let flags = sent.take(1)[0];
            for missing in [0x08, 0x10] {
                if flags & (0x01 | missing) == 0 {
                    check_value(bound, sent.field().unwrap());
                }
            }
        }
        Kind::Multirange(inner) => {
            // Built-in ones name the type of their bounds.
            let range = match inner.kind {
                Kind::Range(_) => (**inner).clone(),
                _ => PgType { kind: Kind::Range(inner.clone()), ..(**inner).clone() },
            };
            (0..sent.number()).for_each(|_| check_value(&range, sent.field().unwrap()));
        }
        Kind::Enum => return,
        _ if of.extension == "hstore" => {
            for _ in 0..sent.number() {
                assert!(sent.field().is_some());
                sent.field();
            }
        }
        _ => {
            let bytes = match of.oid {
                16 | 18 => 1,
                21 => 2,
                23 | 26 | 28 | 29 | 700 | 1082 => 4,
                20 | 701 | 790 | 1083 | 1114 | 1184 | 5069 => 8,
                1266 => 12,
                1186 | 2950 => 16,
                1560 | 1562 => 4 + (sent.number() as usize).div_ceil(8),
                1700 => {
                    let (digits, _weight, sign, _scale) =
                        (sent.short(), sent.short(), sent.short(), sent.short());
                    assert!([0, 0x4000, 0xC000, 0xD000, 0xF000].contains(&sign), "{sign:x}");
                    (0..digits).for_each(|_| assert!(sent.short() < 10_000));
                    8 + 2 * usize::from(digits)
                }
                3802 | 4072 => {
                    assert_eq!(sent.take(1), [1]);
                    value.len()
                }
                _ => value.len(),
            };
            assert_eq!(value.len(), bytes, "{}", of.name);
            return;
        }
    }
    assert!(sent.0.is_empty(), "{}: {} bytes more", of.name, sent.0.len());
}

/// Checks the data of a COPY in binary.
pub fn check_binary(sent: &[u8], types: &[PgType], nulls: &[Vec<bool>]) {
    let mut sent = Sent(&sent[HEADER_BYTES..]);
    for nulls in nulls {
        assert_eq!(usize::from(sent.short()), types.len());
        for (of, is_null) in types.iter().zip(nulls) {
            let value = sent.field();
            assert_eq!(value.is_none(), *is_null, "{}", of.name);
            if let Some(value) = value {
                check_value(of, value);
            }
        }
    }
    assert_eq!(sent.0, (-1i16).to_be_bytes());
}

/// Checks the data of a COPY in text.
pub fn check_text(sent: &[u8], nulls: &[Vec<bool>]) {
    let lines: Vec<&[u8]> = sent.split_inclusive(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len(), nulls.len());
    for (line, nulls) in lines.iter().zip(nulls) {
        let fields: Vec<&[u8]> = line[..line.len() - 1].split(|byte| *byte == b'\t').collect();
        let found: Vec<bool> = fields.iter().map(|field| *field == b"\\N").collect();
        assert_eq!(found, *nulls);
    }
}
