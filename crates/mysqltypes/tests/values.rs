//! Values of each type in both protocols, and bytes that are none.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::Protocol::{Binary, Text};
use common::{binary_row, built, columns, definition, lenenc, parts, same, text_row, value};
use dray_format::Type;
use dray_mysqltypes::ZeroDates::Error;
use dray_mysqltypes::{Column, ColumnDefinition, ErrorKind, Options};

const UNSIGNED: u16 = 32;
const ENUM: u16 = 256;
const SET: u16 = 2048;

/// Checks that both protocols give this text, from a string.
fn string(definition: &ColumnDefinition, text: &[u8], expected: &str) {
    same(definition, text, &lenenc(text), expected);
}

#[test]
fn integers() {
    let unsigned = |code| ColumnDefinition { flags: UNSIGNED, ..definition(code) };
    for (code, bytes) in [(1, 1), (2, 2), (9, 4), (3, 4), (8, 8)] {
        let bits = 8 * bytes as u32;
        let most = (1u128 << (bits - 1)) as i128 - 1;
        for number in [0, 1, -1, 42, most, -most - 1] {
            let raw = number.to_le_bytes();
            same(
                &definition(code),
                number.to_string().as_bytes(),
                &raw[..bytes],
                &number.to_string(),
            );
        }
        for number in [0, 1, most + 1, 2 * most + 1] {
            let raw = number.to_le_bytes();
            same(
                &unsigned(code),
                number.to_string().as_bytes(),
                &raw[..bytes],
                &number.to_string(),
            );
        }
        for number in [most + 1, -most - 2, i128::MAX, i128::MIN] {
            value(&definition(code), Error, Text, number.to_string().as_bytes()).unwrap_err();
        }
        for number in [-1, 2 * most + 2, i128::MAX] {
            value(&unsigned(code), Error, Text, number.to_string().as_bytes()).unwrap_err();
        }
    }
    // int(255) zerofill
    let zeros = format!("{:0255}", u64::MAX);
    let found = value(&unsigned(8), Error, Text, zeros.as_bytes());
    assert_eq!(found.unwrap(), u64::MAX.to_string());
    for text in ["", "-", "+1", " 1", "1 ", "1.0", "0x1", "--1", "1-", "\u{661}"] {
        value(&definition(8), Error, Text, text.as_bytes()).unwrap_err();
        value(&unsigned(8), Error, Text, text.as_bytes()).unwrap_err();
    }
}

#[test]
fn years_and_bits() {
    same(&definition(13), b"0000", &[0, 0], "0");
    same(&definition(13), b"2155", &2155u16.to_le_bytes(), "2155");
    value(&definition(13), Error, Text, b"-1").unwrap_err();
    value(&definition(13), Error, Binary, &[0, 0x80]).unwrap_err();
    let bits = |length| ColumnDefinition { length, ..definition(16) };
    string(&bits(1), &[1], "1");
    string(&bits(9), &[1, 0xFF], "511");
    string(&bits(64), &[0xFF; 8], &u64::MAX.to_string());
    value(&bits(64), Error, Text, &[]).unwrap_err();
    value(&bits(64), Error, Text, &[0; 9]).unwrap_err();
    let column = Column::new(&bits(9), &Options::default()).unwrap();
    assert_eq!(column.field().metadata[0].1, "bit(9)");
}

#[test]
fn floats() {
    for float in [0.0, -0.0, 0.1, -1.5e-300, f64::MAX, f64::MIN_POSITIVE, 5e-324] {
        same(
            &definition(5),
            format!("{float:e}").as_bytes(),
            &float.to_le_bytes(),
            &format!("{float:?}"),
        );
    }
    same(
        &definition(5),
        b"1.7976931348623157e+308",
        &f64::MAX.to_le_bytes(),
        &format!("{:?}", f64::MAX),
    );
    same(&definition(4), b"0.1", &0.1f32.to_le_bytes(), "0.1");
    for text in ["", "-", "nan", "inf", "infinity", "1e", "0x1", " 1", "1 ", "1.0.0"] {
        value(&definition(5), Error, Text, text.as_bytes()).unwrap_err();
        value(&definition(4), Error, Text, text.as_bytes()).unwrap_err();
    }
    for (code, decimals, needs_binary) in
        [(4, 31, true), (4, 2, true), (5, 31, false), (5, 2, true), (246, 2, false)]
    {
        let definition = ColumnDefinition { decimals, ..definition(code) };
        let column = Column::new(&definition, &Options::default()).unwrap();
        assert_eq!(column.needs_binary(), needs_binary);
    }
}

/// A decimal, and its length as the server computes it.
fn decimal(precision: u32, decimals: u8, flags: u16) -> ColumnDefinition {
    let length = precision + u32::from(decimals > 0) + u32::from(flags & UNSIGNED == 0);
    ColumnDefinition { length, decimals, flags, ..definition(246) }
}

#[test]
fn decimals() {
    for (precision, scale) in
        [(1, 0), (5, 2), (5, 5), (18, 9), (19, 0), (20, 10), (38, 0), (38, 38), (39, 0), (65, 30)]
    {
        for flags in [0, UNSIGNED] {
            let definition = decimal(precision, scale, flags);
            let column = Column::new(&definition, &Options::default()).unwrap();
            let (precision, signed) = (precision as u8, scale as i8);
            assert_eq!(
                column.field().data_type,
                match precision {
                    ..=38 => Type::Decimal128 { precision, scale: signed },
                    _ => Type::Decimal256 { precision, scale: signed },
                }
            );
            let nines = |count| "9".repeat(count);
            let whole = match nines(usize::from(precision - scale)) {
                none if none.is_empty() => "0".to_owned(),
                some => some,
            };
            let point = if scale > 0 { "." } else { "" };
            let most = format!("{whole}{point}{}", nines(scale.into()));
            let zero = format!("0{point}{}", "0".repeat(scale.into()));
            for text in [most.clone(), format!("-{most}"), zero.clone()] {
                string(&definition, text.as_bytes(), &text);
            }
            // Fewer digits, more zeros, and zero with a sign.
            string(&definition, b"0", &zero);
            string(&definition, format!("000{most}").as_bytes(), &most);
            let more = if scale > 0 { "000" } else { ".000" };
            string(&definition, format!("{most}{more}").as_bytes(), &most);
            string(&definition, format!("-{zero}").as_bytes(), &zero);
            let more = if scale > 0 { "1" } else { ".1" };
            for text in [format!("1{most}"), format!("{most}{more}")] {
                // A decimal without whole digits has a zero there.
                let text = if text.starts_with("10.") { text.replace("10.", "1.") } else { text };
                let error = value(&definition, Error, Text, text.as_bytes()).unwrap_err();
                let expected = format!(
                    "column \"c\", row 1: {text} is no decimal({precision},{scale}), as which the \
                     server described the column; cast it to another"
                );
                assert_eq!(error, expected);
            }
        }
    }
    for text in ["", "-", ".", "1.", ".5", "+1", "1e2", "--1", "1.2.3", " 1", "NULL"] {
        value(&decimal(10, 2, 0), Error, Text, text.as_bytes()).unwrap_err();
    }
    let too_many = ColumnDefinition { decimals: 39, ..definition(246) };
    Column::new(&too_many, &Options::default()).unwrap_err();
}

fn text_column(type_code: u8, flags: u16, extended: Option<&str>) -> ColumnDefinition {
    let extended_type = extended.map(str::to_owned);
    ColumnDefinition { flags, character_set: 45, extended_type, ..definition(type_code) }
}

#[test]
fn strings() {
    let labels = Type::Dictionary {
        index: Box::new(Type::Int32),
        ordered: false,
        value: Box::new(Type::Utf8),
    };
    let uuid = b"123e4567-E89B-12d3-a456-426655440000";
    for (definition, data_type, name, bytes, expected) in [
        (text_column(253, 0, None), Type::Utf8, "", "gr\u{fc}n".as_bytes(), "gr\u{fc}n"),
        (text_column(252, 0, None), Type::Utf8, "", b"", ""),
        (definition(254), Type::Binary, "", b"\0\xFF", "00ff"),
        (text_column(254, ENUM, None), labels.clone(), "enum", b"a", "a"),
        (text_column(254, SET, None), labels, "set", b"a,b", "a,b"),
        (ColumnDefinition { flags: ENUM, ..definition(254) }, Type::Binary, "", b"a", "61"),
        (definition(245), Type::Utf8, "arrow.json", b"[1]", "[1]"),
        (text_column(252, 0, Some("json")), Type::Utf8, "arrow.json", b"{}", "{}"),
        (definition(255), Type::Binary, "geometry", b"\x01", "01"),
        (text_column(254, 0, Some("inet6")), Type::Utf8, "inet6", b"::1", "::1"),
        (
            text_column(254, 0, Some("uuid")),
            Type::FixedBinary(16),
            "arrow.uuid",
            uuid,
            "123e4567e89b12d3a456426655440000",
        ),
    ] {
        let column = Column::new(&definition, &Options::default()).unwrap();
        let metadata = &column.field().metadata;
        assert_eq!(column.field().data_type, data_type);
        assert_eq!(metadata.first().map_or("", |(_, name)| name), name, "{definition:?}");
        string(&definition, bytes, expected);
    }
    for text in [
        &uuid[1..],
        b"123e4567-e89b-12d3-a456-42665544000g",
        b"123e4567e-89b-12d3-a456-426655440000",
    ] {
        value(&text_column(254, 0, Some("uuid")), Error, Text, text).unwrap_err();
    }
    let long = "x".repeat(70_000);
    string(&text_column(252, 0, None), long.as_bytes(), &long);
    // Strings are checked as PostgreSQL's are, when the batch is complete.
    value(&text_column(253, 0, None), Error, Text, b"\xFF").unwrap_err();
    value(&text_column(254, ENUM, None), Error, Text, b"\xFF").unwrap_err();
}

#[test]
fn vectors() {
    let floats = [1.5f32, -0.25, f32::MAX].map(f32::to_le_bytes).concat();
    string(&definition(242), &floats, &format!("[1.5 -0.25 {:?}]", f32::MAX));
    string(&definition(242), b"", "[]");
    value(&definition(242), Error, Text, &floats[1..]).unwrap_err();
}

#[test]
fn types_and_character_sets_that_are_not_known() {
    for code in [17, 18, 19, 20, 100, 241, 243, 244] {
        let error = Column::new(&definition(code), &Options::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
    for (collation, is_known) in [
        (8, false),
        (28, false),
        (33, true),
        (45, true),
        (46, true),
        (63, true),
        (83, true),
        (224, true),
        (248, false),
        (255, true),
        (309, true),
        (1070, true),
        (1032, false),
        (2304, true),
        (2560, false),
        (11, true),
        (0, false),
    ] {
        let definition = ColumnDefinition { character_set: collation, ..definition(253) };
        let column = Column::new(&definition, &Options::default());
        assert_eq!(column.is_ok(), is_known, "{collation}");
    }
}

/// A column of each way to read a value, with a value in both protocols.
fn all() -> (Vec<ColumnDefinition>, Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let rows = [
        (definition(1), &b"-1"[..], vec![0xFF]),
        (definition(2), b"1", vec![1, 0]),
        (definition(3), b"1", vec![1, 0, 0, 0]),
        (definition(8), b"1", vec![1, 0, 0, 0, 0, 0, 0, 0]),
        (definition(13), b"1", vec![1, 0]),
        (definition(4), b"0", vec![0; 4]),
        (definition(5), b"0", vec![0; 8]),
        (decimal(10, 2, 0), b"1.23", lenenc(b"1.23")),
        (decimal(40, 2, 0), b"1.23", lenenc(b"1.23")),
        (definition(16), b"\x01", lenenc(b"\x01")),
        (definition(10), b"2024-01-02", parts(2024, &[1, 2])),
        (definition(12), b"2024-01-02 03:04:05", parts(2024, &[1, 2, 3, 4, 5])),
        (definition(11), b"00:00:01", vec![8, 0, 0, 0, 0, 0, 0, 0, 1]),
        (definition(252), b"bytes", lenenc(b"bytes")),
        (text_column(254, ENUM, None), b"label", lenenc(b"label")),
        (definition(242), b"1234", lenenc(b"1234")),
    ];
    let text = rows.iter().map(|row| row.1.to_vec()).collect();
    let binary = rows.iter().map(|row| row.2.clone()).collect();
    (rows.map(|row| row.0).to_vec(), text, binary)
}

#[test]
fn each_cut_of_a_row_and_each_byte_after_it_is_refused() {
    let (definitions, text, binary) = all();
    let columns = columns(&definitions, &Options::default());
    let some = |values: &[Vec<u8>]| -> Vec<Vec<u8>> { values.to_vec() };
    for nulls in [0, 3, 7] {
        let present = |values: &[Vec<u8>]| {
            let value = |(i, value): (usize, &Vec<u8>)| {
                (nulls == 0 || i % nulls > 0).then(|| value.clone())
            };
            some(values).iter().enumerate().map(value).collect::<Vec<_>>()
        };
        let row = |values: &[Option<Vec<u8>>], make: fn(&[Option<&[u8]>]) -> Vec<u8>| {
            make(&values.iter().map(Option::as_deref).collect::<Vec<_>>())
        };
        for (protocol, row) in
            [(Text, row(&present(&text), text_row)), (Binary, row(&present(&binary), binary_row))]
        {
            built(&columns, protocol, &[row.clone(), row.clone()]).unwrap();
            for bytes in 0..row.len() {
                let error =
                    built(&columns, protocol, &[row.clone(), row[..bytes].to_vec()]).unwrap_err();
                assert!(error.to_string().contains("row 2: the server sent "), "{error}");
                assert_eq!(error.kind(), ErrorKind::Malformed);
            }
            let error = built(&columns, protocol, &[[&row[..], b"x"].concat()]).unwrap_err();
            assert_eq!(error.to_string(), "row 1: the server sent 1 bytes after the end of a row");
            assert_eq!(
                error.after_rows(1000).to_string(),
                "row 1001: the server sent 1 bytes after the end of a row"
            );
        }
    }
    // A length that no packet has, and one that is no length.
    let bytes = common::columns(&[definition(252)], &Options::default());
    for row in [&b"\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFFx"[..], b"\xFF", b"\xFD\0\0"] {
        built(&bytes, Text, &[row.to_vec()]).unwrap_err();
    }
    built(&bytes, Binary, &[b"\0\0\xFB".to_vec()]).unwrap_err();
    built(&bytes, Binary, &[b"\x01\0\0".to_vec()]).unwrap_err();
}

#[test]
fn a_column_of_nulls() {
    let columns = columns(&[definition(6)], &Options::default());
    assert_eq!(columns[0].field().data_type, Type::Null);
    built(&columns, Text, &[text_row(&[None])]).unwrap();
    built(&columns, Binary, &[binary_row(&[None])]).unwrap();
    built(&columns, Text, &[text_row(&[Some(b"")])]).unwrap_err();
    built(&columns, Binary, &[binary_row(&[Some(b"")])]).unwrap_err();
}
