//! Dates and times in both protocols, and what is none.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::Protocol::{Binary, Text};
use common::{definition, lenenc, options, parts, same, value};
use dray_format::{Type, Unit};
use dray_mysqltypes::{Column, ColumnDefinition, Options, ZeroDates};

const ZERO_DATES: [ZeroDates; 3] = [ZeroDates::Error, ZeroDates::Null, ZeroDates::Text];

#[test]
fn dates() {
    same(&definition(10), b"2024-02-29", &parts(2024, &[2, 29]), "2024-02-29");
    same(&definition(10), b"0000-01-01", &parts(0, &[1, 1]), "0000-01-01");
    same(&definition(14), b"9999-12-31", &parts(9999, &[12, 31]), "9999-12-31");
    let datetime = ColumnDefinition { decimals: 6, ..definition(12) };
    let binary = parts(2000, &[2, 29, 23, 59, 58, 1, 0, 0, 0]);
    same(&datetime, b"2000-02-29 23:59:58.000001", &binary, "2000-02-29 23:59:58.000001");
    let binary = parts(1900, &[2, 28, 1, 2, 3]);
    same(&datetime, b"1900-02-28 01:02:03", &binary, "1900-02-28 01:02:03.000000");
    same(
        &datetime,
        b"1969-12-31 00:00:00.5",
        &parts(1969, &[12, 31, 0, 0, 0, 0x20, 0xA1, 7, 0]),
        "1969-12-31 00:00:00.500000",
    );
    same(&datetime, b"0001-01-01 00:00:00", &parts(1, &[1, 1]), "0001-01-01 00:00:00.000000");
    let timestamp = ColumnDefinition { type_code: 7, ..datetime };
    let column = Column::new(&timestamp, &Options::default()).unwrap();
    let zone = Some("UTC".to_owned());
    assert_eq!(column.field().data_type, Type::Timestamp { unit: Unit::Microsecond, zone });
    same(
        &timestamp,
        b"2038-01-19 03:14:07",
        &parts(2038, &[1, 19, 3, 14, 7]),
        "2038-01-19 03:14:07.000000UTC",
    );
}

#[test]
fn dates_that_the_calendar_does_not_have() {
    let datetime = ColumnDefinition { decimals: 3, ..definition(12) };
    for (text, binary) in [
        ("0000-00-00", vec![0]),
        ("2024-00-00", parts(2024, &[0, 0])),
        ("2024-06-00", parts(2024, &[6, 0])),
        ("2024-02-31", parts(2024, &[2, 31])),
        ("1900-02-29", parts(1900, &[2, 29])),
    ] {
        let with_time = format!("{text} 00:00:00.000");
        for (definition, text, error_text) in
            [(definition(10), text, text), (datetime.clone(), &*with_time, &with_time[..19])]
        {
            for (protocol, bytes) in [(Text, text.as_bytes()), (Binary, &binary)] {
                let value = |zero_dates| value(&definition, zero_dates, protocol, bytes);
                assert_eq!(
                    value(ZeroDates::Error).unwrap_err(),
                    format!(
                        "column \"c\", row 1: the calendar has no {error_text}; \
                         choose nonfinite=null or nonfinite=text"
                    )
                );
                assert_eq!(value(ZeroDates::Null).unwrap(), "NULL");
                assert_eq!(value(ZeroDates::Text).unwrap(), text);
            }
        }
    }
    // Other dates are text then as well.
    let binary = parts(2024, &[2, 29, 1, 2, 3, 0x20, 0xA1, 7, 0]);
    let found = value(&datetime, ZeroDates::Text, Binary, &binary);
    assert_eq!(found.unwrap(), "2024-02-29 01:02:03.500");
    let whole = ColumnDefinition { decimals: 0, ..datetime.clone() };
    for (binary, text) in [
        (&binary, "2024-02-29 01:02:03.5"),
        (&parts(2024, &[2, 29, 1, 2, 0]), "2024-02-29 01:02:00"),
    ] {
        assert_eq!(value(&whole, ZeroDates::Text, Binary, binary).unwrap(), text);
    }
    let column = Column::new(&datetime, &options(ZeroDates::Text)).unwrap();
    assert_eq!(column.field().metadata[0].1, "datetime(3)");
}

#[test]
fn times() {
    let time =
        |sign, days: u32, rest: &[u8]| lenenc(&[&[sign], &days.to_le_bytes()[..], rest].concat());
    let definition = ColumnDefinition { decimals: 6, ..definition(11) };
    for (text, binary, expected) in [
        ("00:00:00", vec![0], "00:00:00.000000"),
        ("12:34:56.000000", time(0, 0, &[12, 34, 56]), "12:34:56.000000"),
        ("838:59:59", time(0, 34, &[22, 59, 59]), "838:59:59.000000"),
        ("-838:59:59.000000", time(1, 34, &[22, 59, 59]), "-838:59:59.000000"),
        ("-00:00:00.000001", time(1, 0, &[0, 0, 0, 1, 0, 0, 0]), "-00:00:00.000001"),
        ("-00:00:00", time(1, 0, &[0, 0, 0]), "00:00:00.000000"),
    ] {
        same(&definition, text.as_bytes(), &binary, expected);
    }
}

#[test]
fn dates_and_times_that_are_malformed() {
    for zero_dates in ZERO_DATES {
        let refused = |code, protocol, bytes: &[u8]| {
            let error = value(&definition(code), zero_dates, protocol, bytes).unwrap_err();
            assert!(error.starts_with("column \"c\", row 1: the server sent "), "{error}");
        };
        for text in [
            "",
            "2024-1-01",
            "2024-13-01",
            "2024-01-32",
            "2024/01/01",
            "2024-01-01 ",
            "02024-01-01",
            "2024-01-0x",
            "-024-01-01",
            "2024-01-01 00:00:00",
        ] {
            refused(10, Text, text.as_bytes());
        }
        for text in [
            "",
            "2024-01-01",
            "2024-01-01T00:00:00",
            "2024-01-01 24:00:00",
            "2024-01-01 00:60:00",
            "2024-01-01 00:00:60",
            "2024-01-01 00:00:00.",
            "2024-01-01 00:00:00.0000000",
            "2024-01-01 00:00:00.x",
            "2024-01-01 00:00:00Z",
            "2024-13-01 00:00:00",
        ] {
            refused(12, Text, text.as_bytes());
            refused(7, Text, text.as_bytes());
        }
        for text in [
            "",
            "-",
            "1:00:00",
            "839:00:00",
            "1000:00:00",
            "00:60:00",
            "00:00:60",
            "--01:00:00",
            "00:00",
        ] {
            refused(11, Text, text.as_bytes());
        }
        for binary in [
            parts(10_000, &[1, 1]),
            parts(1, &[13, 1]),
            parts(1, &[1, 32]),
            parts(1, &[1]),
            parts(1, &[1, 1, 24, 0, 0]),
            parts(1, &[1, 1, 0, 60, 0]),
            parts(1, &[1, 1, 0, 0, 60]),
            parts(1, &[1, 1, 0, 0, 0, 0x40, 0x42, 0x0F, 0]),
            parts(1, &[1, 1, 0]),
        ] {
            refused(12, Binary, &binary);
        }
        refused(10, Binary, &parts(1, &[1, 1, 0, 0, 1]));
        for binary in [
            &[1, 0][..],
            &[5, 0, 0, 0, 0, 0],
            &[8, 2, 0, 0, 0, 0, 0, 0, 0],
            &[8, 0, 0, 0, 0, 0, 24, 0, 0],
            &[8, 0, 35, 0, 0, 0, 0, 0, 0],
            &[8, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0],
            &[12, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x42, 0x0F, 0],
        ] {
            refused(11, Binary, binary);
        }
    }
}
