//! Verifies a schema and a page, in the container of `spec/vectors/README.md`: u32 schema_bytes,
//! the schema, the page.
//!
//! Accepted pages must be readable without a panic, and the writer must reproduce them from their
//! values.

#![no_main]

use bytes::Bytes;
use dray_format::{Checksum, Schema};
use dray_fuzz::LimitedAllocator;
use dray_page::{
    ColumnsBuilder, ErrorKind, Fields, HEADER_BYTES, Layout, PAGE_BYTES_MIN, PageBuilder, Value,
    VerifiedPage,
};
use libfuzzer_sys::fuzz_target;

/// Room for the page, its values as columns, and the pages written from them.
#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator::new(64 << 20);

const BATCH_BYTES_MAX: u64 = 1 << 20;
/// Limits the items of a list that are read, since a list may declare billions of empty items.
const ITEMS_MAX: usize = 1 << 10;

/// Clears the checksum and its flag, and extends the input to the declared size, so that the fuzzer
/// reaches the code behind these checks.
fn repaired(page: &[u8]) -> Vec<u8> {
    let mut page = page.to_vec();
    if let Some(header) = page.first_chunk_mut::<HEADER_BYTES>() {
        header[6] &= !1;
        header[28..32].fill(0);
        // The fuzzer explores short inputs faster, so fill them up.
        let declared =
            u32::from_le_bytes([header[20], header[21], header[22], header[23]]) as usize;
        if declared <= 4 * PAGE_BYTES_MIN && page.len() < declared {
            page.resize(declared, 0);
        }
    }
    page
}

fuzz_target!(|input: &[u8]| {
    let Some((schema_bytes, rest)) = input.split_first_chunk::<4>() else { return };
    let Some((schema, page)) = rest.split_at_checked(u32::from_le_bytes(*schema_bytes) as usize)
    else {
        return;
    };
    let Ok(schema) = Schema::decode(schema) else { return };
    let Ok(layout) = Layout::new(schema) else { return };
    let bytes = Bytes::from(repaired(page));
    let Ok(page) = VerifiedPage::verify(&layout, bytes.clone()) else { return };
    page.objects().for_each(|object| read(object.fields()));

    let mut columns = ColumnsBuilder::new(layout.clone(), BATCH_BYTES_MAX);
    match columns.append(page.objects()) {
        Ok(()) => {}
        Err(error) => return assert_eq!(error.kind(), ErrorKind::Limit, "{error}"),
    }
    let page_bytes = if page.header().large { PAGE_BYTES_MIN } else { bytes.len() };
    let mut builder = PageBuilder::new(layout, page_bytes, Checksum::None).unwrap();
    builder.append(&columns.finish()).unwrap();
    let again = builder.finish();
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].len(), page.len());
    assert!(again[0].objects().zip(page.objects()).all(|(a, b)| a.bytes() == b.bytes()));
    if !page.header().moved {
        let end = page.header().objects_end as usize;
        assert_eq!(again[0].bytes()[HEADER_BYTES..end], bytes[HEADER_BYTES..end]);
    }
});

fn read(fields: Fields<'_>) {
    fields.iter().for_each(read_value);
}

fn read_value(value: Value<'_>) {
    assert_eq!(
        value.str().is_some(),
        value.str().is_some_and(|text| value.bytes() == Some(text.as_bytes()))
    );
    let _ = (
        value.bool(),
        value.i8(),
        value.u16(),
        value.f32(),
        value.i64(),
        value.u128(),
        value.fixed(),
    );
    if let Some(list) = value.list() {
        list.iter().take(ITEMS_MAX).for_each(read_value);
    }
    value.fields().into_iter().for_each(read);
}
