//! What builders accept and refuse.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

use std::sync::Arc;

use bytes::Bytes;
use dray_format::{Batch, Bitmap, Checksum, Column, Field, Schema, Type, Values};
use dray_page::{ColumnsBuilder, ErrorKind, Layout, PageBuilder, VerifiedPage};

fn field(data_type: Type, nullable: bool) -> Field {
    Field { name: "f".into(), data_type, nullable, metadata: vec![] }
}

fn layout(data_type: Type, nullable: bool) -> Arc<Layout> {
    Layout::new(Schema { fields: vec![field(data_type, nullable)] }).unwrap()
}

fn u32s(values: &[u32]) -> Bytes {
    values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>().into()
}

fn column(rows: usize, values: Values) -> Column {
    Column { rows, validity: None, values }
}

fn numbers(values: &[u32]) -> Column {
    column(values.len(), Values::Fixed { width: 4, bytes: u32s(values) })
}

fn strings(values: &[&[u8]]) -> Column {
    let mut ends = vec![0];
    ends.extend(values.iter().scan(0, |end, value| {
        *end += value.len() as u32;
        Some(*end)
    }));
    column(values.len(), Values::Bytes { offsets: u32s(&ends), data: values.concat().into() })
}

fn missing(column: Column, bits: u8) -> Column {
    let validity = Some(Bitmap { bytes: vec![bits].into(), offset: 0, len: column.rows });
    Column { validity, ..column }
}

fn batch(column: Column) -> Batch {
    Batch { rows: column.rows, columns: vec![column] }
}

fn refusal(data_type: Type, nullable: bool, column: Column) -> Option<ErrorKind> {
    let mut builder =
        PageBuilder::new(layout(data_type, nullable), 4 << 10, Checksum::None).unwrap();
    let refused = builder.append(&batch(column)).err().map(|error| error.kind());
    assert!(refused.is_none() || builder.finish().is_empty(), "something was appended");
    refused
}

/// A slice of a large column shares its items: the check must not take longer for those of others.
#[test]
fn only_items_of_the_rows_are_checked() {
    // One is "a", and the offsets of the others fall.
    let values = Values::Bytes { offsets: u32s(&[9, 0, 1, 0]), data: b"a"[..].into() };
    let texts = Box::new(column(3, values));
    let refused = |rows: usize, offsets: &[u32], bits: Option<u8>| {
        let values = Values::List { offsets: u32s(offsets), child: texts.clone() };
        let lists = column(rows, values);
        let lists = bits.map_or(lists.clone(), |bits| missing(lists, bits));
        let item = Box::new(field(Type::Utf8, false));
        refusal(Type::List(item), true, lists)
    };
    assert_eq!(refused(1, &[1, 2], None), None);
    assert_eq!(refused(3, &[0, 1, 2, 3], Some(0b010)), None);
    for (rows, offsets, bits) in
        [(1, &[0, 1][..], None), (1, &[1, 3], None), (3, &[0, 1, 2, 3], Some(0b011))]
    {
        assert_eq!(refused(rows, offsets, bits), Some(ErrorKind::Unsupported));
    }
}

#[test]
fn batches_that_do_not_fit_are_refused() {
    use ErrorKind::*;
    let two = || numbers(&[1, 2]);
    let list = |offsets: &[u32]| {
        column(1, Values::List { offsets: u32s(offsets), child: Box::new(two()) })
    };
    let list_type = || Type::List(Box::new(field(Type::Int32, false)));
    let dictionary = |index: u8, entries: Column| {
        column(
            1,
            Values::Dictionary {
                width: 1,
                indexes: vec![index].into(),
                entries: Box::new(entries),
            },
        )
    };
    let dictionary_type = || Type::Dictionary {
        index: Box::new(Type::UInt8),
        ordered: false,
        value: Box::new(Type::Int32),
    };
    let fixed = |size: u32| Type::FixedList { size, item: Box::new(field(Type::Int32, false)) };
    let fixed_of = |size| column(1, Values::FixedList { size, child: Box::new(two()) });
    let pair = || Type::Struct(vec![field(Type::Int32, false), field(Type::Int32, true)]);
    for (expected, data_type, nullable, column) in [
        (None, Type::Int32, false, two()),
        (Some(Unsupported), Type::Int64, false, two()),
        (Some(Unsupported), Type::Utf8, false, two()),
        (Some(Unsupported), Type::Null, true, two()),
        (Some(Unsupported), Type::Int32, false, Column { rows: 3, ..two() }),
        (None, Type::Int32, true, missing(two(), 0b01)),
        (Some(Missing), Type::Int32, false, missing(two(), 0b01)),
        (None, Type::Int32, false, missing(two(), 0b11)),
        (None, Type::Utf8, false, strings(&["Größe".as_bytes()])),
        (Some(Utf8), Type::Utf8, false, strings(&[b"a", b"\xff"])),
        (
            Some(Utf8),
            Type::Utf8,
            false,
            strings(&["ö".as_bytes()[..1].as_ref(), "ö".as_bytes()[1..].as_ref()]),
        ),
        (None, Type::Utf8, true, missing(strings(&[b"a", b"\xff"]), 0b01)),
        (None, Type::Binary, false, strings(&[b"a", b"\xff"])),
        (None, list_type(), false, list(&[0, 2])),
        (Some(Unsupported), list_type(), false, list(&[0, 3])),
        (Some(Unsupported), list_type(), false, list(&[2, 1])),
        (Some(Unsupported), list_type(), false, list(&[0])),
        (None, fixed(2), false, fixed_of(2)),
        (Some(Unsupported), fixed(2), false, fixed_of(1)),
        (Some(Unsupported), fixed(3), false, fixed_of(3)),
        (None, dictionary_type(), false, dictionary(1, two())),
        (Some(Unsupported), dictionary_type(), false, dictionary(2, two())),
        (None, dictionary_type(), true, missing(dictionary(2, two()), 0)),
        (Some(Missing), dictionary_type(), false, dictionary(1, missing(two(), 0b01))),
        (None, dictionary_type(), false, dictionary(0, missing(two(), 0b01))),
        (None, dictionary_type(), true, dictionary(1, missing(two(), 0b01))),
        (None, pair(), false, column(2, Values::Struct(vec![two(), two()]))),
        (Some(Unsupported), pair(), false, column(2, Values::Struct(vec![two()]))),
        (Some(Unsupported), pair(), false, column(2, Values::Struct(vec![two(), numbers(&[1])]))),
        (
            Some(Missing),
            pair(),
            false,
            column(2, Values::Struct(vec![missing(two(), 0b10), two()])),
        ),
        (
            None,
            pair(),
            true,
            missing(column(2, Values::Struct(vec![missing(two(), 0b10), two()])), 0b10),
        ),
    ] {
        let found = refusal(data_type.clone(), nullable, column.clone());
        assert_eq!(found, expected, "{data_type:?}, nullable {nullable}: {column:?}");
    }
}

#[test]
fn pages_have_their_sizes() {
    for page_bytes in [0, 1, 2048, 4095, 12 << 10, 2 << 30] {
        let refused =
            PageBuilder::new(layout(Type::Int32, false), page_bytes, Checksum::None).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Size);
    }
    // A string whose object fills a page exactly; and one byte more, which adds 8 to the extent.
    let fits = (4 << 10) - 64 - 4 - 4 - 8 - 16;
    for (length, page_bytes, large) in
        [(fits, 4 << 10, false), (fits + 1, 8 << 10, true), (20_000, 20 << 10, true)]
    {
        let layout = layout(Type::Utf8, false);
        let mut builder = PageBuilder::new(layout.clone(), 4 << 10, Checksum::Crc32c).unwrap();
        let text = vec![b'x'; length];
        builder.append(&batch(strings(&[b"before", &text, b"behind"]))).unwrap();
        let pages = builder.finish();
        let sizes: Vec<_> = pages
            .iter()
            .map(|page| (page.len(), page.bytes().len(), page.header().large))
            .collect();
        assert_eq!(sizes, [(1, 4 << 10, false), (1, page_bytes, large), (1, 4 << 10, false)]);
        for page in &pages {
            VerifiedPage::verify(&layout, page.bytes().clone()).unwrap();
        }
        assert_eq!(pages[1].object(0).unwrap().field(0).unwrap().bytes().unwrap(), text);
        assert!(pages[1].object(1).is_none());
    }
}

#[test]
fn full_pages_can_be_taken_before_the_last() {
    let layout = layout(Type::Int32, false);
    let mut builder = PageBuilder::new(layout, 4 << 10, Checksum::None).unwrap();
    let rows: Vec<u32> = (0..1000).collect();
    builder.append(&batch(numbers(&rows))).unwrap();
    let mut found = Vec::new();
    let mut read = |page: VerifiedPage| {
        found.extend(page.objects().map(|object| object.field(0).unwrap().u32().unwrap()))
    };
    std::iter::from_fn(|| builder.pop()).for_each(&mut read);
    builder.finish().into_iter().for_each(&mut read);
    assert!(builder.pop().is_none() && builder.finish().is_empty());
    assert_eq!(found, rows);
}

#[test]
fn narrow_decimals_are_widened() {
    let values = [-5i32, 7];
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>().into();
    let layout = layout(Type::Decimal128 { precision: 9, scale: 2 }, true);
    let mut builder = PageBuilder::new(layout.clone(), 4 << 10, Checksum::None).unwrap();
    builder.append(&batch(column(2, Values::Narrow { width: 4, bytes }))).unwrap();
    let bytes =
        values.iter().flat_map(|value| i64::from(*value).to_le_bytes()).collect::<Vec<u8>>().into();
    builder.append(&batch(missing(column(2, Values::Narrow { width: 8, bytes }), 0b10))).unwrap();
    let pages = builder.finish();
    let page = VerifiedPage::verify(&layout, pages[0].bytes().clone()).unwrap();
    let found: Vec<_> = page.objects().map(|object| object.field(0).unwrap().i128()).collect();
    assert_eq!(found, [Some(-5), Some(7), None, Some(7)]);
}

#[test]
fn objects_of_another_schema_are_refused() {
    let build = |data_type| {
        let mut builder =
            PageBuilder::new(layout(data_type, false), 4 << 10, Checksum::None).unwrap();
        builder.append(&batch(numbers(&[1, 2]))).unwrap();
        builder
    };
    let (mut signed, mut unsigned) = (build(Type::Int32), build(Type::UInt32));
    let pages = unsigned.finish();
    let object = pages[0].object(0).unwrap();
    assert_eq!(signed.copy(object).unwrap_err().kind(), ErrorKind::Unsupported);
    let mut columns = ColumnsBuilder::new(signed.layout().clone(), 1 << 20);
    assert_eq!(columns.append([object]).unwrap_err().kind(), ErrorKind::Unsupported);
    // Equal schemas are the same.
    let mut again = PageBuilder::new(layout(Type::UInt32, false), 4 << 10, Checksum::None).unwrap();
    again.copy(object).unwrap();
    assert_eq!(again.finish()[0].object(0).unwrap().bytes(), object.bytes());
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn batches_are_bounded() {
    let wide = Type::FixedList { size: 1 << 30, item: Box::new(field(Type::Int64, false)) };
    let layout = layout(wide, true);
    let mut builder = PageBuilder::new(layout.clone(), 4 << 10, Checksum::None).unwrap();
    // A missing list takes no bytes in a page, and a gigabyte in a column.
    let nothing =
        Column { rows: 0, validity: None, values: Values::Fixed { width: 8, bytes: Bytes::new() } };
    let lists = Values::FixedList { size: 1 << 30, child: Box::new(nothing) };
    let refused = builder.append(&batch(missing(column(1, lists), 0))).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");

    let small = Layout::new(Schema { fields: vec![field(Type::Utf8, false)] }).unwrap();
    let mut builder = PageBuilder::new(small.clone(), 4 << 10, Checksum::None).unwrap();
    let two = batch(strings(&[&[b'x'; 500], b"y"]));
    let measured = builder.measure(&two).unwrap();
    assert_eq!(builder.append_rows(&measured, 1..3).unwrap_err().kind(), ErrorKind::Unsupported);
    builder.append(&two).unwrap();
    let pages = builder.finish();
    let mut columns = ColumnsBuilder::new(small, 300);
    assert_eq!(columns.append(pages[0].objects()).unwrap_err().kind(), ErrorKind::Limit);
    assert_eq!(columns.rows(), 0);
    columns.append(pages[0].objects().skip(1)).unwrap();
    assert_eq!(columns.finish().rows, 1);
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn a_hostile_schema_can_not_make_a_small_page_a_large_batch() {
    let wide = Type::FixedList { size: 1 << 30, item: Box::new(field(Type::Int64, false)) };
    let layout = layout(wide, true);
    let mut page = vec![0; 4 << 10];
    page[..4].copy_from_slice(b"DRYP");
    page[16] = 1;
    page[20..24].copy_from_slice(&4096u32.to_le_bytes());
    page[24] = 80;
    page[64] = 16;
    page[4092] = 64;
    let page = VerifiedPage::verify(&layout, page.into()).unwrap();
    let mut columns = ColumnsBuilder::new(layout, 64 << 20);
    assert_eq!(columns.append(page.objects()).unwrap_err().kind(), ErrorKind::Limit);
}
