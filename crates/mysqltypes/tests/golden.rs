//! Packets of real servers. Each file in `golden/` says which server and which SQL made them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::Protocol::{Binary, Text};
use common::{built, columns, options, shown};
use dray_mysqltypes::{ColumnDefinition, ZeroDates};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.chars().map(|digit| digit.to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Checks the cases of a file, and returns how many values they have.
fn check(file: &str) -> usize {
    let lines = file.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let (mut column, mut zero_dates) = (vec![], options(Default::default()));
    let (mut sql_type, mut literal) = ("", "");
    let (mut texts, mut binaries) = (vec![], vec![]);
    let mut values = 0;
    for line in lines {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let case = || format!("{sql_type} {literal}");
        let row = |protocol| {
            let built = built(&column, protocol, &[bytes(rest)]);
            shown(&built.unwrap_or_else(|error| panic!("{}: {error}", case()))).remove(0)
        };
        match word {
            "type" => (sql_type, literal, zero_dates) = (rest, "", options(Default::default())),
            "zero_dates" => {
                zero_dates = options(match rest {
                    "null" => ZeroDates::Null,
                    "text" => ZeroDates::Text,
                    other => panic!("{other}"),
                });
            }
            "definition" => {
                let definition = ColumnDefinition::parse(&bytes(rest), true).unwrap();
                column = columns(&[definition], &zero_dates);
            }
            "field" => {
                let field = column[0].field();
                let name = field.metadata.first().map_or("", |(_, name)| name);
                assert_eq!(format!("{:?} {name}", field.data_type).trim(), rest, "{}", case());
            }
            "value" => literal = rest,
            "text" => texts = row(Text),
            "binary" => binaries = row(Binary),
            "shown" => {
                assert_eq!((&*texts[0], &*binaries[0]), (rest, rest), "{}", case());
                values += 1;
            }
            other => panic!("{other}"),
        }
    }
    values
}

#[test]
fn mariadb_10_11() {
    assert_eq!(check(include_str!("golden/mariadb-10.11.txt")), 145);
}
