//! Calls the crate's C functions as the extension's C code does. `../check-boundary` runs this test
//! with AddressSanitizer.
//!
//! Random rows go in as the server holds them. Each value is in a block of exactly its size, which
//! is freed as soon as its row has been read. The resulting frames are read as a client reads them,
//! and their values are compared with the expected ones, which the tests derive on their own from
//! PostgreSQL's formats. The declarations repeat `../../src/dray.h` instead of the crate's own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

// Linked for its C functions only.
use dray_pg_extension as _;

mod boundary {
    pub(crate) mod entries;
    pub(crate) mod values;
}

use std::ffi::CString;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use boundary::entries::{CANCEL, Opened, Options, Step};
use boundary::values::{Random, SHAPES, Shape, Tuple, Value, WORDS, canonical};
use bytes::Bytes;
use dray_format::{HEADER_BYTES, Limits, Schema, decode};
use dray_wire::{ClientSession, FRAME_HEADER_BYTES, Frame, Kind, ServerEvent};

/// Runs one test at a time, since a backend has one stream at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    boundary::entries::init();
    guard
}

/// Reads frames as the client does.
struct Reader {
    session: ClientSession,
    schema: Arc<Schema>,
    columns: Vec<Vec<Vec<u8>>>,
    chunk_rows: u64,
    /// The number of state frames so far.
    states: usize,
    /// Whether all strings are UTF-8, as a real server ensures.
    is_utf8: bool,
    /// Set by a stream dictionary with a string that is not UTF-8. Further frames are ignored.
    is_void: bool,
    finished: bool,
}

impl Reader {
    fn new(limits: Limits, chunk_rows: u64, is_utf8: bool) -> Self {
        let session = ClientSession::of_copy(limits);
        let (schema, columns) = (Arc::default(), Vec::new());
        Self {
            session,
            schema,
            columns,
            chunk_rows,
            states: 0,
            is_utf8,
            is_void: false,
            finished: false,
        }
    }

    /// Reads the output of one call: a frame, or a state frame and the chunk that needs it.
    fn take(&mut self, frames: &[u8]) {
        if self.is_void {
            return;
        }
        let (raw, rest) = frames.split_first_chunk::<FRAME_HEADER_BYTES>().unwrap();
        let frame = self.session.frame(raw).unwrap();
        let (payload, rest) = rest.split_at(frame.payload_bytes as usize);
        assert_eq!(frame.kind == Kind::State, !rest.is_empty());
        self.take_frame(frame, payload);
        if frame.kind == Kind::State {
            self.states += 1;
            assert_eq!(rest[4], Kind::Chunk as u8);
            self.take(rest);
        }
    }

    fn take_frame(&mut self, frame: Frame, payload: &[u8]) {
        if frame.kind != Kind::Chunk {
            let message = match self.session.message(frame, payload) {
                Err(error) if !self.is_utf8 && error.to_string().contains("not UTF-8") => {
                    self.is_void = true;
                    return;
                }
                message => message.unwrap(),
            };
            match message {
                ServerEvent::Started(started) => {
                    self.columns = vec![Vec::new(); started.schema.fields.len()];
                    self.schema = started.schema;
                }
                ServerEvent::State(_) => {}
                ServerEvent::Finished(_) => self.finished = true,
                other => panic!("{other:?}"),
            }
            return;
        }
        let (raw, rest) = payload.split_first_chunk::<HEADER_BYTES>().unwrap();
        let header = self.session.chunk(frame, raw).unwrap();
        assert!(u64::from(header.rows) <= self.chunk_rows);
        let (descriptors, body) = rest.split_at(header.descriptor_bytes_padded() as usize);
        header.verify(&[descriptors, body]).unwrap();
        let batch = match decode(
            &header,
            &self.schema,
            descriptors,
            &Bytes::copy_from_slice(body),
            &self.session.tables(),
            None,
            None,
        ) {
            Err(error) if !self.is_utf8 && error.to_string().contains("not UTF-8") => return,
            decoded => decoded.unwrap(),
        };
        for (to, column) in self.columns.iter_mut().zip(&batch.columns) {
            to.extend((0..column.rows).map(|row| canonical(column, row)));
        }
    }
}

/// What goes wrong on purpose.
#[derive(Clone, Copy, PartialEq)]
enum Mischief {
    None,
    /// Send functions return bytes that no real one returns.
    Garbage,
    /// The server cancels the statement.
    Cancel,
    /// The backend exits at a random row.
    Exit,
    /// Some allocations fail.
    #[cfg(feature = "test-allocator")]
    Memory,
}

/// Transfers a result of random columns and rows, and returns whether it was completed.
fn transfer(seed: u64, mischief: Mischief) -> bool {
    let mut random = Random::new(seed);
    let options = Options {
        chunk_bytes_max: random.one_of(&[4096, 20_000, 1 << 20]),
        decoded_bytes_max: random.one_of(&[4096, 50_000, 64 << 20]),
        row_bytes_max: 64 << 20,
        chunk_rows: random.one_of(&[1, 7, 1000, 65_536]),
        compression: random.one_of(&["none", "light", "lz4", "zstd", "zstd:9", "auto"]),
        numeric: random.one_of(&["text", "float64", "decimal(40,9)"]),
        nonfinite: "null",
        checksums: random.below(2) == 0,
        is_utf8: random.below(4) > 0,
        client_is_local: random.below(2) == 0,
        threads: random.one_of(&[0, 1, 3]),
    };
    let mut shapes: Vec<&Shape> =
        (0..random.below(12)).map(|_| &SHAPES[random.below(SHAPES.len())]).collect();
    shapes.extend(vec![&WORDS; random.below(3)]);
    let rows = random.one_of(&[0, 1, 100, 1000]);
    transfer_of(random, seed, &options, &shapes, rows, mischief)
}

/// Like [`transfer`], with several chunks that are worth another thread.
fn long_transfer(seed: u64, mischief: Mischief) -> bool {
    let mut random = Random::new(seed);
    let options = Options {
        chunk_bytes_max: random.one_of(&[500_000, 1 << 20]),
        compression: random.one_of(&["light", "lz4", "zstd", "zstd:9", "auto"]),
        checksums: random.below(2) == 0,
        nonfinite: "null",
        client_is_local: false,
        threads: random.one_of(&[1, 3]),
        ..Options::default()
    };
    let text = SHAPES.iter().find(|shape| shape.name == "text").unwrap();
    let mut shapes = vec![text; 8];
    shapes.extend([&WORDS; 3]);
    shapes.extend((0..random.below(4)).map(|_| &SHAPES[random.below(SHAPES.len())]));
    transfer_of(random, seed, &options, &shapes, 3000, mischief)
}

fn transfer_of(
    mut random: Random,
    seed: u64,
    options: &Options,
    shapes: &[&Shape],
    rows: usize,
    mischief: Mischief,
) -> bool {
    let nulls: Vec<usize> = shapes.iter().map(|_| random.one_of(&[0, 0, 10, 90])).collect();
    let names: Vec<CString> =
        (0..shapes.len()).map(|i| CString::new(format!("c{i}")).unwrap()).collect();

    let limits = Limits {
        chunk_bytes_max: options.chunk_bytes_max,
        decoded_bytes_max: options.decoded_bytes_max,
        row_bytes_max: options.row_bytes_max,
    };
    let mut reader = Reader::new(limits, options.chunk_rows, mischief != Mischief::Garbage);
    let mut expected = vec![Vec::new(); shapes.len()];
    let fail_after = |random: &mut Random| match mischief {
        #[cfg(feature = "test-allocator")]
        Mischief::Memory if random.below(rows / 20 + 10) == 0 => 1 + random.below(30),
        _ => random.below(1),
    };
    let Ok(mut stream) = Opened::open(options, &names, shapes, fail_after(&mut random)) else {
        assert!(mischief != Mischief::None);
        return false;
    };
    let Ok(frame) = stream.start(fail_after(&mut random)) else {
        assert!(mischief != Mischief::None);
        return false;
    };
    reader.take(&frame);
    let mut helped = false;
    for row in 0..rows {
        if row % 256 == 255 {
            helped |= workers() > 0;
        }
        if mischief == Mischief::Cancel && random.below(rows) == 0 {
            CANCEL.store(1, Relaxed);
        }
        if mischief == Mischief::Exit && random.below(rows) == 0 {
            stream.stop();
            return false;
        }
        let mut values: Vec<Option<Value>> = Vec::new();
        for (shape, nulls) in shapes.iter().zip(&nulls) {
            let null = random.below(100) < *nulls;
            values.push((!null).then(|| (shape.value)(&mut random, options)));
        }
        for (to, value) in expected.iter_mut().zip(&values) {
            to.push(value.as_ref().map_or(vec![0], |value| value.expected.clone()));
        }
        // The datum of a NULL must not be followed.
        let mut datums: Box<[usize]> =
            values.iter().map(|value| value.as_ref().map_or(Value::POISON, Value::datum)).collect();
        let is_null: Box<[u8]> = values.iter().map(|value| u8::from(value.is_none())).collect();
        // Half of the rows are tuples on a page.
        let tuple = (random.below(2) == 0).then(|| Tuple::new(&values));
        let mut tuple = tuple.as_ref();
        loop {
            let step = match tuple.take() {
                Some(tuple) => stream.push_tuple(tuple, fail_after(&mut random)),
                None => stream.push_row(&datums, &is_null, fail_after(&mut random)),
            };
            match step {
                Ok(Step::Datums) => {}
                Ok(Step::Done) => break,
                Ok(Step::Full) => {
                    // The receiver, too, has freed the row by then.
                    values.clear();
                    if !take_chunks(&mut stream, &mut reader, false, || fail_after(&mut random)) {
                        assert!(mischief != Mischief::None);
                        return false;
                    }
                    break;
                }
                Ok(Step::Plain(at)) => {
                    let value = values[at].as_mut().expect("only a value can be made plain");
                    datums[at] = value.make_plain();
                }
                Ok(Step::Sent(at)) => {
                    let value = values[at].as_ref().expect("only a value can be sent");
                    let garbage = mischief == Mischief::Garbage && random.below(20) == 0;
                    let sent: Box<[u8]> = match garbage {
                        true => random.bytes(0, 60).into(),
                        false => value.sent.as_slice().into(),
                    };
                    if stream.push_sent(&sent, fail_after(&mut random)).is_err() {
                        assert!(mischief != Mischief::None, "seed {seed}");
                        return false;
                    }
                }
                Err((code, message)) => {
                    assert!(mischief != Mischief::None, "seed {seed}: {code} {message}");
                    return false;
                }
            }
        }
    }
    if !take_chunks(&mut stream, &mut reader, true, || fail_after(&mut random)) {
        assert!(mischief != Mischief::None);
        return false;
    }
    let Ok(frame) = stream.finish(fail_after(&mut random)) else {
        assert!(mischief != Mischief::None);
        return false;
    };
    reader.take(&frame);
    assert!(reader.finished || reader.is_void);
    if mischief != Mischief::Garbage {
        for (i, shape) in shapes.iter().enumerate() {
            for (row, (found, expected)) in reader.columns[i].iter().zip(&expected[i]).enumerate() {
                assert_eq!(found, expected, "seed {seed}: {}, row {row}, {options:?}", shape.name);
            }
            assert_eq!(reader.columns[i].len(), rows);
        }
    }
    HELPED.fetch_add(usize::from(helped), Relaxed);
    // Without encoding there are no stream dictionaries.
    let encodes = options.compression != "none"
        && !(options.compression == "auto" && options.client_is_local);
    assert!(encodes || reader.states == 0);
    STATES.fetch_add(reader.states, Relaxed);
    true
}

fn take_chunks(
    stream: &mut Opened,
    reader: &mut Reader,
    is_last: bool,
    mut fail_after: impl FnMut() -> usize,
) -> bool {
    loop {
        match stream.next_chunk(is_last, fail_after()) {
            Ok(Some(frame)) => reader.take(&frame),
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

#[test]
fn random_rows_come_out_as_they_went_in() {
    let _alone = alone();
    STATES.store(0, Relaxed);
    for seed in 1..=150 {
        assert!(transfer(seed, Mischief::None));
    }
    assert!(STATES.load(Relaxed) > 0);
}

#[test]
fn what_no_send_function_makes_is_an_error_or_a_value() {
    let _alone = alone();
    for seed in 1..=80 {
        transfer(seed, Mischief::Garbage);
    }
}

#[test]
fn a_statement_that_is_cancelled_ends() {
    let _alone = alone();
    for seed in 1..=40 {
        transfer(seed, Mischief::Cancel);
        CANCEL.store(0, Relaxed);
    }
}

#[test]
fn workers_make_the_chunks_of_long_results() {
    let _alone = alone();
    HELPED.store(0, Relaxed);
    STATES.store(0, Relaxed);
    for seed in 1..=20 {
        assert!(long_transfer(seed, Mischief::None));
    }
    // Adaptive streams may have none, because their choice depends on measured times.
    assert!(STATES.load(Relaxed) >= 10);
    // The other results have too few values for a second chunk.
    assert!((10..=20).contains(&HELPED.load(Relaxed)));
}

#[test]
fn workers_end_with_the_stream() {
    let _alone = alone();
    for seed in 1..=20 {
        long_transfer(seed, Mischief::Cancel);
        CANCEL.store(0, Relaxed);
        long_transfer(seed, Mischief::Exit);
        assert_eq!(workers(), 0);
    }
}

/// The number of complete results that workers helped to encode, and of all state frames.
static HELPED: AtomicUsize = AtomicUsize::new(0);
static STATES: AtomicUsize = AtomicUsize::new(0);

/// The number of threads that have a worker's name.
fn workers() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |task: &std::fs::DirEntry| {
        std::fs::read_to_string(task.path().join("comm")).unwrap_or_default()
    };
    tasks.filter_map(Result::ok).filter(|task| name(task) == "dray encode\n").count()
}

#[test]
#[cfg(feature = "test-allocator")]
fn memory_that_is_short_in_a_worker_is_an_error() {
    let _alone = alone();
    let whole = (1..=40).filter(|seed| long_transfer(*seed, Mischief::Memory)).count();
    assert!((1..40).contains(&whole), "{whole} came to their end");
}

#[test]
#[cfg(feature = "test-allocator")]
fn short_memory_is_an_error() {
    let _alone = alone();
    let whole = (1..=150).filter(|seed| transfer(*seed, Mischief::Memory)).count();
    assert!((10..140).contains(&whole), "{whole} came to their end");
}

#[test]
fn a_row_over_the_limit_is_refused() {
    let _alone = alone();
    let text = SHAPES.iter().find(|shape| shape.name == "text").unwrap();
    let names = [CString::new("a").unwrap(), CString::new("b").unwrap()];
    let options = Options { row_bytes_max: 4096, chunk_bytes_max: 4096, ..Options::default() };
    let mut stream = Opened::open(&options, &names, &[text, text], 0).unwrap();
    stream.start(0).unwrap();
    let values = [Value::of_text(&[b'x'; 3000]), Value::of_text(&[b'y'; 3000])];
    let datums = [values[0].datum(), values[1].datum()];
    let (code, message) = stream.push_row(&datums, &[0, 0], 0).unwrap_err();
    assert_eq!((code, message.contains("raise row_bytes_max")), (-2, true), "{message}");
}
