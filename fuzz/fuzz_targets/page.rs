//! Verifies a schema and a page, in the container of `spec/vectors/README.md`: u32 schema_bytes,
//! the schema, the page.
//!
//! Accepted pages must be readable without a panic, and the writer must reproduce them from their
//! values. So must it after changes in place, which the page's own bytes determine.

#![no_main]

use std::sync::Arc;

use bytes::Bytes;
use dray_format::{Checksum, Field, Schema, Type, crc32c};
use dray_fuzz::LimitedAllocator;
use dray_page::{
    ColumnsBuilder, ErrorKind, Fields, HEADER_BYTES, ItemMut, Layout, PAGE_BYTES_MIN, PageBuilder,
    PageEditor, Value, VerifiedPage,
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
    reproduced(&layout, &page);
    change(&layout, page, u64::from(crc32c(0, &bytes)) | 1 << 32);
});

/// Checks that the writer makes the same objects of the page's values.
fn reproduced(layout: &Arc<Layout>, page: &VerifiedPage) {
    let bytes = page.bytes();
    let mut columns = ColumnsBuilder::new(layout.clone(), BATCH_BYTES_MAX);
    match columns.append(page.objects()) {
        Ok(()) => {}
        Err(error) => return assert_eq!(error.kind(), ErrorKind::Limit, "{error}"),
    }
    let page_bytes = if page.header().large { PAGE_BYTES_MIN } else { bytes.len() };
    let mut builder = PageBuilder::new(layout.clone(), page_bytes, Checksum::None).unwrap();
    builder.append(&columns.finish()).unwrap();
    let again = builder.finish();
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].len(), page.len());
    assert!(again[0].objects().zip(page.objects()).all(|(a, b)| a.bytes() == b.bytes()));
    if !page.header().moved {
        let end = page.header().objects_end as usize;
        assert_eq!(again[0].bytes()[HEADER_BYTES..end], bytes[HEADER_BYTES..end]);
    }
}

/// The changes of a page.
const CHANGES: usize = 16;

/// Changes a page at random.
fn change(layout: &Arc<Layout>, page: VerifiedPage, seed: u64) {
    let mut random = Random(seed);
    let page_bytes = if page.header().large { PAGE_BYTES_MIN } else { page.bytes().len() };
    let editor = PageEditor::new(page).unwrap();
    let mut editor = editor.with_page_bytes(page_bytes).unwrap();
    for _ in 0..CHANGES {
        let slot = random.below(editor.len());
        let object = editor.object_mut(slot).unwrap();
        change_field(object, layout, &mut Vec::new(), &layout.schema().fields, &mut random);
    }
    let page = editor.finish(Checksum::Crc32c);
    let page = VerifiedPage::verify(layout, page.bytes().clone()).unwrap();
    reproduced(layout, &page);
    let mut editor = PageEditor::new(page).unwrap();
    editor.compact().unwrap();
    let page = editor.finish(Checksum::None);
    reproduced(layout, &VerifiedPage::verify(layout, page.bytes().clone()).unwrap());
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % end.max(1)
    }
}

/// Changes one of the fields at random. Two fields of one name are not changed.
fn change_field(
    mut item: ItemMut<'_>,
    layout: &Layout,
    path: &mut Vec<String>,
    fields: &[Field],
    random: &mut Random,
) {
    let Some(field) = fields.get(random.below(fields.len())) else { return };
    path.push(field.name.clone());
    change_value(&mut item, layout, path, &field.data_type, random);
}

fn change_value(
    item: &mut ItemMut<'_>,
    layout: &Layout,
    path: &mut Vec<String>,
    data_type: &Type,
    random: &mut Random,
) {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    let mut data_type = data_type;
    while let Type::Dictionary { value, .. } = data_type {
        data_type = value;
    }
    let Ok(any) = layout.mutator::<()>(&names) else { return };
    let choice = random.below(4);
    let done = match data_type {
        _ if choice == 0 => item.clear(&any),
        Type::Struct(fields) if choice > 1 => {
            return change_field(item.reborrow(), layout, path, fields, random);
        }
        Type::List(_) | Type::FixedList { .. } | Type::Map { .. } if choice > 0 => {
            let Ok(list) = layout.list_mutator(&names) else { return };
            let count = item.count(&list);
            if choice == 1 {
                let from = random.below(count + 1);
                let to = from + random.below(count - from + 1).min(3);
                item.splice(&list, from..to, random.below(3))
            } else {
                let Some(mut inner) = item.item(&list, random.below(count)) else { return };
                return match data_type {
                    Type::Map { key, value, .. } => {
                        let pair = [(**key).clone(), (**value).clone()];
                        change_field(inner, layout, path, &pair, random)
                    }
                    Type::List(of) | Type::FixedList { item: of, .. } => {
                        path.push("[]".to_owned());
                        change_value(&mut inner, layout, path, &of.data_type, random)
                    }
                    _ => {}
                };
            }
        }
        Type::Utf8 | Type::Binary => {
            let text = "x".repeat([0, 5, 12, 13, 40][random.below(5)]);
            item.set(&layout.mutator::<[u8]>(&names).unwrap(), text.as_bytes())
        }
        Type::Boolean => item.set(&layout.mutator::<bool>(&names).unwrap(), choice == 1),
        other => {
            let bytes = random.0.to_le_bytes();
            match other.width() {
                Some(1) => item.set(&layout.mutator::<[u8; 1]>(&names).unwrap(), [bytes[0]]),
                Some(4) => {
                    let field = layout.mutator::<[u8; 4]>(&names).unwrap();
                    item.set(&field, *bytes.first_chunk().unwrap())
                }
                Some(8) => item.set(&layout.mutator::<[u8; 8]>(&names).unwrap(), bytes),
                _ => item.set(&any, ()),
            }
        }
    };
    if let Err(error) = done {
        let expected = [ErrorKind::Missing, ErrorKind::Limit, ErrorKind::Items];
        assert!(expected.contains(&error.kind()), "{error}");
    }
}

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
