//! The queue between producers and a writer that stalls or leaves.
//!
//! The runtime has one thread, and a task runs until it waits. After some turns, everything that
//! can happen has happened.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::sync::Arc;

use bytes::Bytes;
use dray_format::{
    Batch, Chunk, Column, Compression, DictionaryBudget, Error, ErrorKind, Field, Limits, Schema,
    Tables, Type, Values,
};
use dray_transfer::{
    Chunker, EncodeError, Failure, Payload, Queued, Receiver, Sender, Settings, Times, produce,
    queue,
};
use futures_util::{FutureExt, Stream, stream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, yield_now};

type Ended = Result<(), Failure<&'static str>>;

fn runtime() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

async fn turns() {
    for _ in 0..1000 {
        yield_now().await;
    }
}

fn batch(rows: usize) -> Batch {
    let bytes = Bytes::from(vec![7; rows * 8]);
    Batch {
        rows,
        columns: vec![Column { rows, validity: None, values: Values::Fixed { width: 8, bytes } }],
    }
}

fn chunker(limits: Limits) -> Chunker {
    let field =
        Field { name: "c".into(), data_type: Type::Int64, nullable: false, metadata: vec![] };
    let settings = Settings {
        limits,
        chunk_rows: 1000,
        compression: Compression::None,
        checksum: false,
        clock: None,
    };
    Chunker::new(Arc::new(Schema { fields: vec![field] }), settings)
}

fn produce_from(
    batches: impl Stream<Item = Result<Batch, &'static str>> + Send + 'static,
    sender: Sender,
) -> JoinHandle<Ended> {
    tokio::spawn(async move {
        produce(batches, chunker(Limits::default()), 1, sender, &Times::default()).await
    })
}

/// Receives all chunks that are in the queue.
fn take_all(receiver: &mut Receiver) -> Vec<Queued> {
    std::iter::from_fn(|| receiver.receive().now_or_never().flatten()).collect()
}

fn chunk(queued: &Queued) -> Chunk {
    match &queued.payload {
        Payload::Chunk(chunk) => chunk.clone(),
        Payload::Pages(_) => panic!("pages, and nobody asked for them"),
    }
}

fn bytes(queued: &[Queued]) -> u64 {
    queued.iter().map(|queued| queued.payload.memory_bytes()).sum()
}

#[test]
fn a_stalled_writer_holds_the_producers_back() {
    runtime().block_on(async {
        let (sender, mut receiver) = queue(100_000, 1, 4);
        let endless = || stream::repeat_with(|| Ok(batch(1000)));
        let producers: Vec<_> = (0..3).map(|_| produce_from(endless(), sender.clone())).collect();
        let mut received = Vec::new();
        // Chunks that were received and not dropped count, too.
        for _ in 0..3 {
            turns().await;
            received.extend(take_all(&mut receiver));
            assert!((80_000..=100_000).contains(&bytes(&received)), "{}", bytes(&received));
        }
        received.drain(..5);
        turns().await;
        assert_eq!(take_all(&mut receiver).len(), 5);
        assert!(producers.iter().all(|producer| !producer.is_finished()));
    });
}

#[test]
fn a_chunk_larger_than_the_queue_has_it_to_itself() {
    runtime().block_on(async {
        for bytes_max in [0, 1, 5000] {
            let (sender, mut receiver) = queue(bytes_max, 1, 4);
            let producer = produce_from(stream::iter((0..3).map(|_| Ok(batch(1000)))), sender);
            for _ in 0..3 {
                turns().await;
                assert_eq!(take_all(&mut receiver).len(), 1, "a queue of {bytes_max}");
            }
            assert!(receiver.receive().await.is_none());
            assert!(producer.await.unwrap().is_ok());
        }
    });
}

#[test]
fn two_chunks_of_any_size_may_have_space() {
    runtime().block_on(async {
        let (sender, mut receiver) = queue(5000, 2, 4);
        let producer = produce_from(stream::iter((0..3).map(|_| Ok(batch(1000)))), sender);
        turns().await;
        let received = take_all(&mut receiver);
        assert_eq!(received.len(), 2);
        drop(received);
        turns().await;
        assert_eq!(take_all(&mut receiver).len(), 1);
        producer.await.unwrap().unwrap();
    });
}

#[test]
fn producers_end_when_the_writer_leaves() {
    runtime().block_on(async {
        let (sender, mut receiver) = queue(100_000, 1, 4);
        let producers: Vec<_> = (0..3)
            .map(|_| produce_from(stream::repeat_with(|| Ok(batch(1000))), sender.clone()))
            .collect();
        turns().await;
        // The writer still has the last chunks.
        let received = take_all(&mut receiver);
        drop(receiver);
        turns().await;
        assert!(producers.iter().all(JoinHandle::is_finished));
        for producer in producers {
            assert!(matches!(producer.await.unwrap(), Err(Failure::Abandoned)));
        }
        drop(received);
    });
}

#[test]
fn chunks_encoded_in_parallel_leave_in_order() {
    let runtime = Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let (sender, mut receiver) = queue(1 << 20, 1, 4);
        let field = |name: &str| Field {
            name: name.into(),
            data_type: Type::Int64,
            nullable: false,
            metadata: vec![],
        };
        let schema = Arc::new(Schema { fields: vec![field("squares"), field("few")] });
        let few = |row: u64| (row * row % 300).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let compression = Compression::Zstd(1);
        let settings = Settings {
            limits: Limits::default(),
            chunk_rows: 40_000,
            compression,
            checksum: true,
            clock: None,
        };
        // Each encoder has tables of its own, which arrive before the chunks that use them.
        let dictionary_budget = Arc::new(DictionaryBudget::new(&settings.limits));
        let chunker = Chunker::new(schema.clone(), settings).with_dictionaries(dictionary_budget);
        // The chunk of the last, small batch is encoded first, and must wait for its turn.
        let sizes = [50_000u64; 30].into_iter().chain([7]);
        let batches = sizes.clone().scan(0, |start, rows| {
            let range = *start..*start + rows;
            *start += rows;
            let rows = rows as usize;
            let column = |value: &dyn Fn(u64) -> u64| {
                let bytes: Vec<u8> =
                    range.clone().flat_map(|row| value(row).to_le_bytes()).collect();
                Column {
                    rows,
                    validity: None,
                    values: Values::Fixed { width: 8, bytes: bytes.into() },
                }
            };
            Some(Ok::<_, &str>(Batch {
                rows,
                columns: vec![column(&|row| row * row), column(&few)],
            }))
        });
        let batches = stream::iter(batches.collect::<Vec<_>>());
        let producer =
            tokio::spawn(
                async move { produce(batches, chunker, 3, sender, &Times::default()).await },
            );
        let mut row = 0u64;
        let mut tables = Tables::default();
        while let Some(queued) = receiver.receive().await {
            let mut chunk = chunk(&queued);
            if let Some(state) = chunk.take_state() {
                let (header, parts) = state.numbered(tables.frames().into());
                tables
                    .take(&mut [&header[..], &parts.concat()].concat().into(), &settings.limits)
                    .unwrap();
            }
            let (header, parts) = chunk.numbered(0, tables.frames());
            let bytes = [&header[..], &parts.concat()].concat().into();
            let (_, batch) =
                dray_format::read_with(&bytes, &schema, &settings.limits, &tables).unwrap();
            let numbers = |column: usize| match &batch.columns[column].values {
                Values::Fixed { bytes, .. } => {
                    bytes.as_chunks().0.iter().map(|raw| u64::from_le_bytes(*raw))
                }
                _ => panic!("not numbers"),
            };
            for (square, other) in numbers(0).zip(numbers(1)) {
                assert_eq!((square, other), (row * row, few(row)));
                row += 1;
            }
        }
        assert!((2..=3).contains(&tables.frames()), "{} encoders keep tables", tables.frames());
        assert_eq!(row, sizes.sum::<u64>());
        producer.await.unwrap().unwrap();
    });
}

#[test]
fn rows_before_the_end_are_sent_and_failures_are_reported() {
    runtime().block_on(async {
        let (sender, mut receiver) = queue(1 << 20, 1, 4);
        let producer =
            produce_from(stream::iter([Ok(batch(10)), Ok(batch(0)), Ok(batch(5))]), sender);
        let queued = receiver.receive().await.unwrap();
        assert_eq!(chunk(&queued).rows(), 15);
        assert!(receiver.receive().await.is_none());
        assert!(producer.await.unwrap().is_ok());

        let (sender, mut receiver) = queue(1 << 20, 1, 4);
        let producer =
            produce_from(stream::iter([Ok(batch(2500)), Err("the disk is gone")]), sender);
        assert!(matches!(producer.await.unwrap(), Err(Failure::Source("the disk is gone"))));
        assert_eq!(
            take_all(&mut receiver).iter().map(|queued| chunk(queued).rows()).sum::<u32>(),
            2000
        );

        let (sender, _receiver) = queue(1 << 20, 1, 4);
        let limits = Limits { chunk_bytes_max: 64, decoded_bytes_max: 4, row_bytes_max: 64 };
        let batches = stream::iter([Ok::<_, &str>(batch(1))]);
        let ended = produce(batches, chunker(limits), 1, sender, &Times::default()).await;
        let is_limit = |error: &Error| error.kind() == ErrorKind::Limit;
        assert!(
            matches!(ended, Err(Failure::Encode(EncodeError::Chunk(error))) if is_limit(&error))
        );
    });
}
