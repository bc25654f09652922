//! A bridge to a database of numbers: `SELECT 5` gives the numbers below 5. With an argument it
//! breaks the rules of `spec/bridge.md`, in the way that the argument names. Tests start it so.

#![allow(clippy::unwrap_used, reason = "it is a program for tests")]

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow_array::{Int32Array, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema};
use dray_bridge::program::{Database, Opener, Output, Statement, serve};
use dray_bridge::{Failure, FailureKind, Kind, Open, read_frame, write_frame};

fn main() -> io::Result<()> {
    match std::env::args().nth(1).as_deref() {
        None => serve(&Numbers),
        Some(how) => misbehave(how),
    }
}

struct Numbers;

impl Opener for Numbers {
    fn open(&self, open: &Open) -> Result<Box<dyn Database>, Failure> {
        eprintln!("opening {}", open.uri);
        println!("a driver's own words");
        match open.uri.as_str() {
            "refuse secret" => {
                let what = format!("can't log in with {}", open.uri);
                Err(Failure::new(FailureKind::Connection, "28000", what))
            }
            _ => Ok(Box::new(Below { cancels: Arc::default() })),
        }
    }
}

struct Below {
    cancels: Arc<AtomicBool>,
}

impl Database for Below {
    fn server(&self) -> String {
        "numbers 1.0".to_owned()
    }

    fn dialect(&self) -> &str {
        "sql"
    }

    fn canceller(&self) -> Arc<dyn Fn() + Send + Sync> {
        let cancels = self.cancels.clone();
        Arc::new(move || cancels.store(true, Ordering::Relaxed))
    }

    fn run(&mut self, statement: &Statement, output: &mut Output<'_>) -> Result<(), Failure> {
        self.cancels.store(false, Ordering::Relaxed);
        let number = statement.query.sql.trim_start_matches("SELECT ");
        let rows = match (&statement.parameters, number) {
            (Some(parameters), "?") => parameters.column(0).to_data().buffers()[0].typed_data()[0],
            (_, "forever") => i32::MAX,
            (_, "sleep") => return self.sleep(),
            (_, "much said") => {
                let said = "é".repeat(1 << 20);
                return Err(Failure::new(FailureKind::Execution, "HY000", said));
            }
            (_, "gone") => {
                let gone = Failure::new(FailureKind::Connection, "08S01", "the server has gone");
                return Err(Failure { usable: false, ..gone });
            }
            _ => number.parse().map_err(|_| {
                Failure::new(FailureKind::Query, "42601", format!("{number} is not a number"))
            })?,
        };
        output.begin(&schema(), Some(u64::try_from(rows).unwrap()))?;
        let mut from = 0;
        while from < rows && !statement.query.plan_only {
            let to = rows.min(from.saturating_add(1000));
            output.batch(&batch(from, to))?;
            from = to;
        }
        Ok(())
    }
}

impl Below {
    /// Until it is cancelled, as by a driver that waits for its server.
    fn sleep(&self) -> Result<(), Failure> {
        while !self.cancels.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(Failure::new(FailureKind::Execution, "HY008", "the driver says it was cancelled"))
    }
}

fn batch(from: i32, to: i32) -> RecordBatch {
    let numbers = Int32Array::from_iter_values(from..to);
    let texts = StringArray::from_iter_values((from..to).map(|n| format!("row {n}")));
    RecordBatch::try_new(Arc::new(schema()), vec![Arc::new(numbers), Arc::new(texts)]).unwrap()
}

fn schema() -> Schema {
    let text = Field::new("text", DataType::Utf8, true);
    Schema::new(vec![Field::new("n", DataType::Int32, false), text])
}

/// The bytes of a result of three rows.
fn stream() -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &schema()).unwrap();
    writer.write(&batch(0, 3)).unwrap();
    writer.into_inner().unwrap()
}

fn misbehave(how: &str) -> io::Result<()> {
    let mut input = io::stdin();
    let mut output = io::stdout();
    let mut send = |kind, payload: &[u8]| write_frame(&mut output, kind, payload);
    read_frame(&mut input)?;
    match how {
        "exit at once" => std::process::exit(3),
        "silent" => forever(),
        "other version" => {
            return send(Kind::Ready, br#"{"version": 2, "server": "", "dialect": "sql"}"#);
        }
        "garbage at once" => return io::stdout().write_all(b"Connecting to the database ...\n"),
        _ => send(Kind::Ready, br#"{"version": 1, "server": "?", "dialect": "sql"}"#)?,
    }
    read_frame(&mut input)?;
    if how == "ignores cancels" {
        forever();
    }
    if how == "endless stderr" {
        std::thread::spawn(|| while io::stderr().write_all(&[b'x'; 100_000]).is_ok() {});
    }
    if how != "no columns" {
        send(Kind::Begun, br#"{"estimated_rows": null}"#)?;
    }
    let mut bytes = stream();
    let at = |what: &[u8], bytes: &[u8]| {
        bytes.windows(what.len()).position(|window| window == what).unwrap()
    };
    let mut rows = 3;
    match how {
        "short" => bytes.truncate(bytes.len() - 8),
        "truncated" => bytes.truncate(bytes.len() - 50),
        "more after the end" => bytes.extend_from_slice(b"\xFF\xFF\xFF\xFF\0\0\0\0"),
        "fewer rows" => rows = 4,
        "more rows" => rows = 2,
        "long header" => bytes[4..8].copy_from_slice(&i32::MAX.to_le_bytes()),
        "bytes" => bytes.fill(b'?'),
        "not utf8" => {
            let at = at(b"row 1", &bytes);
            bytes[at] = 0xFF;
        }
        "wrong offset" => {
            // The offsets of the texts.
            let at = at(&[0, 0, 0, 0, 5, 0, 0, 0, 10, 0, 0, 0], &bytes);
            bytes[at + 4..at + 8].copy_from_slice(&2_000_000_000_i32.to_le_bytes());
        }
        "wrong kind" => return io::stdout().write_all(b"Z\0\0\0\0"),
        "long frame" => return io::stdout().write_all(b"D\xFF\xFF\xFF\x7F"),
        "half a frame" => return io::stdout().write_all(b"D\xFF\0\0\0abc"),
        "not json" => return send(Kind::Failure, b"{"),
        "two beginnings" => send(Kind::Begun, b"{}")?,
        "dies" => {
            send(Kind::Data, &bytes[..bytes.len() / 2])?;
            std::process::abort();
        }
        "endless" => {
            bytes.truncate(bytes.len() - 8);
            let schema_bytes = 8 + at(b"\xFF\xFF\xFF\xFF", &bytes[8..]);
            loop {
                send(Kind::Data, &bytes)?;
                bytes.drain(..bytes.len().saturating_sub(stream().len() - 8 - schema_bytes));
            }
        }
        _ => {}
    }
    // Pieces of any size are allowed.
    for piece in bytes.chunks(7) {
        send(Kind::Data, piece)?;
    }
    send(Kind::Finished, format!("{{\"rows\": {rows}, \"new\": 1}}").as_bytes())?;
    // The end of the input.
    let _ = io::copy(&mut input, &mut io::sink());
    Ok(())
}

fn forever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}
