//! Rows that become pages, and rows whose pages would be too large.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::sync::Arc;

use bytes::Bytes;
use dray_format::{Batch, Column, Compression, Field, Limits, Schema, Type, Values};
use dray_page::{Layout, PackedPage};
use dray_transfer::{
    Chunker, EncodeError, Failure, PAGES_TIMES_CHUNK, Pages, Payload, Settings, Times, produce,
    queue,
};
use futures_util::stream;
use tokio::runtime::Builder;

const LIMITS: Limits =
    Limits { chunk_bytes_max: 1 << 20, decoded_bytes_max: 64 << 20, row_bytes_max: 8 << 20 };

fn schema() -> Schema {
    let value = Box::new(Type::Utf8);
    let data_type = Type::Dictionary { index: Box::new(Type::UInt32), value, ordered: false };
    Schema {
        fields: vec![Field { name: "text".into(), data_type, nullable: false, metadata: vec![] }],
    }
}

/// Rows that all have the same text.
fn batch(rows: usize, text_bytes: usize) -> Batch {
    let offsets = [0, text_bytes as u32].into_iter().flat_map(u32::to_le_bytes).collect();
    let data = Bytes::from(vec![b'x'; text_bytes]);
    let entries = Column { rows: 1, validity: None, values: Values::Bytes { offsets, data } };
    let indexes = Bytes::from(vec![0; 4 * rows]);
    let values = Values::Dictionary { width: 4, indexes, entries: Box::new(entries) };
    Batch { rows, columns: vec![Column { rows, validity: None, values }] }
}

fn sent(batch: Batch, pages: impl Fn(Arc<Layout>) -> Pages) -> Result<Vec<Payload>, EncodeError> {
    let settings = Settings {
        limits: LIMITS,
        chunk_rows: 65_536,
        compression: Compression::None,
        checksum: false,
        clock: None,
    };
    let layout = Layout::new(schema()).unwrap();
    let chunker = Chunker::new(Arc::new(schema()), settings).with_pages(pages(layout));
    Builder::new_current_thread().build().unwrap().block_on(async {
        let (sender, mut receiver) = queue(1 << 30, 1, 4);
        let batches = stream::iter([Ok::<_, &str>(batch)]);
        match produce(batches, chunker, 1, sender, &Times::default()).await {
            Ok(()) => {}
            Err(Failure::Encode(error)) => return Err(error),
            Err(other) => panic!("{other:?}"),
        }
        let mut payloads = Vec::new();
        while let Some(queued) = receiver.receive().await {
            payloads.push(queued.payload.clone());
        }
        Ok(payloads)
    })
}

fn objects(payload: &Payload) -> u32 {
    match payload {
        Payload::Pages(pages) => pages.iter().map(PackedPage::objects).sum(),
        Payload::Chunk(chunk) => panic!("a chunk of {} rows", chunk.rows()),
    }
}

#[test]
fn rows_become_pages_that_count_with_their_memory() {
    for pages in [Pages::Always, Pages::Preferred] {
        let payloads = sent(batch(1000, 100), pages).unwrap();
        let [payload] = &payloads[..] else { panic!("{} payloads", payloads.len()) };
        assert_eq!((objects(payload), payload.memory_bytes()), (1000, 256 << 10));
    }
}

#[test]
fn rows_whose_pages_are_too_large_travel_as_columns_or_not_at_all() {
    let payloads = sent(batch(1000, 100_000), Pages::Preferred).unwrap();
    assert!(matches!(&payloads[..], [Payload::Chunk(chunk)] if chunk.rows() == 1000));
    match sent(batch(1000, 100_000), Pages::Always) {
        Err(EncodeError::TooLarge { bytes, bytes_max }) => {
            assert!(bytes > 100_000_000 && bytes_max == PAGES_TIMES_CHUNK * LIMITS.chunk_bytes_max);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_single_row_may_be_as_large_as_the_client_accepts() {
    let payloads = sent(batch(1, 7 << 20), Pages::Always).unwrap();
    assert_eq!(payloads.iter().map(objects).sum::<u32>(), 1);
    match sent(batch(1, 9 << 20), Pages::Always) {
        Err(EncodeError::TooLarge { bytes_max, .. }) => assert_eq!(bytes_max, LIMITS.row_bytes_max),
        other => panic!("{other:?}"),
    }
}
