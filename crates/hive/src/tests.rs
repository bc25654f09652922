//! Answers of Spark 4.3 as they were recorded (`tests/recorded/`), and what may become of them on
//! the way.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::io::{self, Read, Write};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float32Type, Float64Type, Int32Type};
use arrow_schema::{DataType, Schema, SchemaRef};

use crate::calls::{Client, Fetched, Handle, Info, Operation, State};
use crate::column::Column;
use crate::error::{Error, Result};
use crate::rows::Types;
use crate::transport::Transport;

const OPEN_SESSION: &[u8] = include_bytes!("../tests/recorded/open_session.bin");
const INFO: &[u8] = include_bytes!("../tests/recorded/info.bin");
const EXECUTE: &[u8] = include_bytes!("../tests/recorded/execute.bin");
const FINISHED: &[u8] = include_bytes!("../tests/recorded/finished.bin");
const FAILED: &[u8] = include_bytes!("../tests/recorded/failed.bin");
const COLUMNS: &[u8] = include_bytes!("../tests/recorded/columns.bin");
const ROWS: &[u8] = include_bytes!("../tests/recorded/rows.bin");
const NO_ROWS: &[u8] = include_bytes!("../tests/recorded/no_rows.bin");
const FAILED_ROWS: &[u8] = include_bytes!("../tests/recorded/failed_rows.bin");
const CLOSE: &[u8] = include_bytes!("../tests/recorded/close.bin");

/// A server that sends these bytes, a few at a time, whatever it is asked.
#[derive(Debug)]
struct Script {
    bytes: Vec<u8>,
    sent: usize,
    step: usize,
}

impl Read for Script {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = &self.bytes[self.sent..];
        let count = rest.len().min(buffer.len()).min(self.step);
        buffer[..count].copy_from_slice(&rest[..count]);
        self.sent += count;
        Ok(count)
    }
}

impl Write for Script {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A client whose next answer is this one, in frames of `frame` bytes, or bare for 0.
fn client(answer: &[u8], frame: usize, step: usize) -> Client<Script> {
    client_of(framed(answer, frame), frame, step, answer)
}

/// A client that gets these bytes as an answer in the place of `recorded`.
fn client_of(bytes: Vec<u8>, frame: usize, step: usize, recorded: &[u8]) -> Client<Script> {
    let transport = Transport::new(Script { bytes, sent: 0, step }, frame > 0);
    let mut client = Client::new(transport);
    client.sequence = sequence(recorded).wrapping_sub(1);
    client
}

fn framed(answer: &[u8], frame: usize) -> Vec<u8> {
    if frame == 0 {
        return answer.to_vec();
    }
    let with_length = |part: &[u8]| [&(part.len() as u32).to_be_bytes(), part].concat();
    answer.chunks(frame).flat_map(with_length).collect()
}

/// The number of the call that an answer belongs to: behind the version and the name.
fn sequence(answer: &[u8]) -> i32 {
    let name = answer.get(4..8).map_or(0, |n| u32::from_be_bytes(n.try_into().unwrap()) as usize);
    let at = 8usize.saturating_add(name);
    let found = answer.get(at..at.saturating_add(4));
    found.map_or(0, |number| i32::from_be_bytes(number.try_into().unwrap()))
}

fn check() -> Result<()> {
    Ok(())
}

fn operation() -> Operation {
    let handle = Handle { public: vec![1; 16], secret: vec![2; 16] };
    Operation { handle, kind: 0, has_rows: true }
}

fn schema(columns: &[Column]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(|column| column.field.clone()).collect::<Vec<_>>()))
}

fn columns() -> Vec<Column> {
    client(COLUMNS, 0, 1000).columns(&operation(), &mut check).unwrap()
}

fn fetch(client: &mut Client<Script>, columns: &[Column]) -> Result<Option<RecordBatch>> {
    let types = Types { schema: &schema(columns), columns, rows_before: 0 };
    let Fetched { rows, .. } = client.fetch(&operation(), 10, &types, &mut check)?;
    Ok(rows)
}

#[test]
fn answers() {
    for (frame, step) in [(0, 1), (0, 9999), (9999, 9999), (1, 1), (7, 3), (64, 9999)] {
        let client = |answer| client(answer, frame, step);
        client(OPEN_SESSION).open_session("u", "p", None, &mut check).unwrap();
        let handle = operation().handle;
        let name = client(INFO).info(&handle, Info::DbmsName, &mut check).unwrap();
        assert_eq!(name, "Spark SQL");
        assert!(client(EXECUTE).execute(&handle, "SELECT", &mut check).unwrap().has_rows);
        let state = client(FINISHED).state(&operation(), &mut check).unwrap();
        assert_eq!(state, State::Finished);
        let state = client(FAILED).state(&operation(), &mut check).unwrap();
        let State::Failed(Error::Server { sqlstate, message }) = state else { panic!() };
        assert_eq!(sqlstate, "22012");
        assert!(message.starts_with("[DIVIDE_BY_ZERO] Division by zero."), "{message}");
        client(CLOSE).close(&operation(), &mut check).unwrap();
    }
}

#[test]
fn rows_of_all_types() {
    let columns = columns();
    let names: Vec<_> = columns.iter().map(|column| column.field.name().as_str()).collect();
    assert_eq!(
        names,
        [
            "b", "i8", "i16", "i32", "i64", "f", "d", "s", "bin", "dec", "dt", "ts", "ym", "n",
            "a", "m", "st",
        ]
    );
    for (frame, step) in [(0, 1), (9999, 9999), (1, 1), (7, 3)] {
        let rows = fetch(&mut client(ROWS, frame, step), &columns).unwrap().unwrap();
        assert_eq!(rows.num_rows(), 3);
        let column = |name: &str| rows.column_by_name(name).unwrap();
        let booleans: Vec<_> = column("b").as_boolean().iter().collect();
        assert_eq!(booleans, [Some(true), Some(false), None]);
        let integers: Vec<_> = column("i32").as_primitive::<Int32Type>().iter().collect();
        assert_eq!(integers, [Some(3), None, Some(-3)]);
        assert_eq!(column("f").as_primitive::<Float32Type>().value(0).to_bits(), 1.1f32.to_bits());
        assert!(column("f").as_primitive::<Float32Type>().value(2).is_nan());
        assert!(column("d").as_primitive::<Float64Type>().value(2).is_sign_negative());
        assert_eq!(column("dec").as_primitive::<Decimal128Type>().value(0), -150);
        assert_eq!(column("s").as_string::<i32>().value(2), "ü");
        assert_eq!(column("bin").as_binary::<i32>().value(0), b"\0\xff");
        assert_eq!(column("a").as_string::<i32>().value(0), "[1,null]");
        assert_eq!(column("n").data_type(), &DataType::Null);
        for column in rows.columns() {
            column.to_data().validate_full().unwrap();
        }
        let none = fetch(&mut client(NO_ROWS, frame, step), &columns).unwrap().unwrap();
        assert_eq!(none.num_rows(), 0);
        let failed = fetch(&mut client(FAILED_ROWS, frame, step), &columns).unwrap_err();
        assert!(matches!(failed, Error::Server { sqlstate, .. } if sqlstate == "P0001"));
    }
}

/// The decimal is in no wider a type than it was announced with, and other values still are read.
#[test]
fn a_value_that_does_not_fit_costs_no_connection() {
    let at = ROWS.windows(5).position(|text| text == b"-1.50").unwrap();
    let mut answer = ROWS.to_vec();
    answer[at..at + 5].copy_from_slice(b"-1e50");
    let mut client = client(&answer, 0, 9999);
    let error = fetch(&mut client, &columns()).unwrap_err();
    let Error::Value { message, .. } = error else { panic!("{error:?}") };
    assert!(message.starts_with("column \"dec\", row 1: -1e50 is no decimal("), "{message}");
    assert!(client.is_usable());
}

#[test]
fn other_columns_than_announced() {
    let all = columns();
    let cases = [&all[1..], &all[..16], &all[..0]];
    for fewer in cases {
        let error = fetch(&mut client(ROWS, 0, 9999), fewer).unwrap_err();
        assert!(matches!(error, Error::Lost(_)), "{error:?}");
    }
    let mut swapped = all.clone();
    swapped.swap(3, 4);
    let error = fetch(&mut client(ROWS, 0, 9999), &swapped).unwrap_err();
    assert!(matches!(error, Error::Lost(_)), "{error:?}");
}

#[test]
fn an_answer_that_is_cut_off_is_an_error() {
    let columns = columns();
    for length in 0..ROWS.len() {
        for frame in [0, 9999] {
            let mut client = client_of(framed(ROWS, frame)[..length].to_vec(), frame, 9999, ROWS);
            let cut = fetch(&mut client, &columns);
            assert!(matches!(cut, Err(Error::Lost(_) | Error::Limit(_))), "{length}: {cut:?}");
            assert!(!client.is_usable());
        }
    }
}

#[test]
fn announced_lengths_take_no_memory() {
    let columns = columns();
    // Each length in turn becomes one that no message has, or one that it might.
    for at in 0..ROWS.len() - 4 {
        for length in [u32::MAX, 0x7fff_ffff, 0x0fff_ffff] {
            let mut answer = ROWS.to_vec();
            answer[at..at + 4].copy_from_slice(&length.to_be_bytes());
            let _ = fetch(&mut client_of(answer, 0, 9999, ROWS), &columns);
        }
    }
}

#[test]
fn nested_values_are_passed_over_only_so_deep() {
    let mut answer = CLOSE.to_vec();
    // The last two bytes end the response and the result: a field with structs within structs.
    answer.truncate(answer.len() - 2);
    for _ in 0..100_000 {
        answer.extend([12, 0, 9]);
    }
    let error = client(&answer, 0, 9999).close(&operation(), &mut check).unwrap_err();
    assert!(matches!(error, Error::Limit(_)), "{error:?}");
}

/// Flips, cuts and repeats parts of all answers; whatever is read is whole and valid.
#[test]
fn answers_that_were_changed() {
    let columns = columns();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    let all = [OPEN_SESSION, INFO, EXECUTE, FINISHED, FAILED, COLUMNS, ROWS, NO_ROWS, FAILED_ROWS];
    for turn in 0..60_000 {
        let recorded = if turn % 2 == 0 { ROWS } else { all[random(all.len())] };
        let mut answer = recorded.to_vec();
        for _ in 0..1 + random(4) {
            let at = random(answer.len());
            match random(4) {
                0 => answer[at] ^= 1 << random(8),
                1 => answer[at] = random(256) as u8,
                2 => {
                    let end = (at + random(40)).min(answer.len());
                    let part = answer[at..end].to_vec();
                    let to = random(answer.len());
                    answer.splice(to..to, part);
                }
                _ => {
                    let end = (at + random(8)).min(answer.len());
                    answer.drain(at..end);
                }
            }
            if answer.is_empty() {
                break;
            }
        }
        let frame = [0, 9999, 50][random(3)];
        let mut client = client_of(framed(&answer, frame), frame, 1 + random(4000), recorded);
        let (handle, operation) = (operation().handle, operation());
        match recorded.get(8) {
            Some(b'O') => drop(client.open_session("u", "p", None, &mut check)),
            Some(b'E') => drop(client.execute(&handle, "x", &mut check)),
            Some(b'F') => {
                if let Ok(Some(rows)) = fetch(&mut client, &columns) {
                    assert_eq!(rows.num_columns(), columns.len());
                    for column in rows.columns() {
                        column.to_data().validate_full().unwrap();
                    }
                }
            }
            _ if recorded == COLUMNS => drop(client.columns(&operation, &mut check)),
            _ if recorded == INFO => drop(client.info(&handle, Info::DbmsName, &mut check)),
            _ => drop(client.state(&operation, &mut check)),
        }
    }
}
