//! Random objects that are built in place, and random changes of objects in place. The oracle is
//! the page that `PageBuilder::append` makes of the new values: it has the same bytes.
//!
//! `DRAY_SEED=n` runs one seed alone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

#[path = "../../format/tests/random/mod.rs"]
mod random;

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema, SchemaRef};
use dray_format::arrow::{batch_from_arrow, schema_from_arrow};
use dray_format::{Batch, Checksum, Type};
use dray_page::{
    Error, ErrorKind, ItemMut, Layout, Object, ObjectBuilder, PageBuilder, PageEditor, Value,
    VerifiedPage,
};
use random::{Random, for_seeds};

fn random_schema(random: &mut Random) -> SchemaRef {
    let fields = (0..1 + random.below(5)).map(|i| random.field(&format!("c{i}"), 3));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn random_columns(random: &mut Random, schema: &SchemaRef, rows: usize) -> Vec<ArrayRef> {
    let column = |field: &Arc<Field>| random.array(field.data_type(), rows, field.is_nullable());
    schema.fields().iter().map(column).collect()
}

fn batch(schema: &SchemaRef, columns: &[ArrayRef]) -> Batch {
    let batch = RecordBatch::try_new(schema.clone(), columns.to_vec()).unwrap();
    batch_from_arrow(&batch).unwrap()
}

fn pages_of(layout: &Arc<Layout>, batch: &Batch, page_bytes: usize) -> Vec<VerifiedPage> {
    let mut builder = PageBuilder::new(layout.clone(), page_bytes, Checksum::None).unwrap();
    builder.append(batch).unwrap();
    builder.finish()
}

fn verify(page: &VerifiedPage, context: &str) {
    let verified = VerifiedPage::verify(page.layout(), page.bytes().clone())
        .unwrap_or_else(|error| panic!("{error}, {context}"));
    assert_eq!(verified.header(), page.header(), "{context}");
}

/// What objects and items that are built or changed have in common.
trait Record {
    fn number<const N: usize>(&mut self, path: &[&str], value: [u8; N]);
    fn set_bool(&mut self, path: &[&str], value: bool);
    fn set_bytes(&mut self, path: &[&str], value: &[u8]);
    fn set_present(&mut self, path: &[&str]);
    fn clear(&mut self, path: &[&str], is_list: bool);
    fn items(&mut self, path: &[&str], values: &[Value<'_>], item: Items<'_>);
}

/// Writes one value of a list's items.
struct Items<'t> {
    item: Item<'t>,
    sized: bool,
}

#[derive(Clone, Copy)]
enum Item<'t> {
    One(&'t dray_format::Field),
    Pair(&'t dray_format::Field, &'t dray_format::Field),
}

/// Writes an item into its record.
fn write_item(record: &mut impl Record, path: &[&str], item: Item<'_>, value: Value<'_>) {
    match item {
        Item::One(field) => {
            let path = [path, &["[]"]].concat();
            write(record, &path, &field.data_type, field.nullable, value);
        }
        Item::Pair(key, of_key) => {
            let values = value.fields().unwrap();
            for (i, field) in [key, of_key].into_iter().enumerate() {
                let path = [path, &[field.name.as_str()]].concat();
                write(record, &path, &field.data_type, field.nullable, values.field(i).unwrap());
            }
        }
    }
}

/// Writes a value into its record.
fn write(record: &mut impl Record, path: &[&str], ty: &Type, nullable: bool, value: Value<'_>) {
    let mut ty = ty;
    while let Type::Dictionary { value, .. } = ty {
        ty = value;
    }
    if *ty == Type::Null {
        return;
    }
    if value.is_missing() {
        assert!(nullable, "{path:?}");
        let is_list = matches!(ty, Type::List(_) | Type::FixedList { .. } | Type::Map { .. });
        return record.clear(path, is_list);
    }
    let list = || value.list().unwrap().iter().collect::<Vec<_>>();
    match ty {
        Type::Boolean => record.set_bool(path, value.bool().unwrap()),
        Type::Utf8 | Type::Binary => record.set_bytes(path, value.bytes().unwrap()),
        Type::Struct(fields) => {
            record.set_present(path);
            for (i, field) in fields.iter().enumerate() {
                let path = [path, &[field.name.as_str()]].concat();
                let value = value.fields().unwrap().field(i).unwrap();
                write(record, &path, &field.data_type, field.nullable, value);
            }
        }
        Type::List(item) => {
            record.items(path, &list(), Items { item: Item::One(item), sized: false })
        }
        Type::FixedList { item, .. } => {
            record.items(path, &list(), Items { item: Item::One(item), sized: true })
        }
        Type::Map { key, value, .. } => {
            record.items(path, &list(), Items { item: Item::Pair(key, value), sized: false })
        }
        _ => {
            let bytes = value.fixed().unwrap();
            macro_rules! by_width {
                ($($width:literal)*) => {
                    match bytes.len() {
                        $($width => record.number::<$width>(path, bytes.try_into().unwrap()),)*
                        other => panic!("a value of {other} bytes"),
                    }
                };
            }
            by_width!(1 2 3 4 8 16 32 40);
        }
    }
}

/// An object that is built, by the paths of its layout.
struct Built<'a, 'r> {
    layout: &'a Layout,
    record: &'a mut ObjectBuilder<'r>,
}

impl Record for Built<'_, '_> {
    fn number<const N: usize>(&mut self, path: &[&str], value: [u8; N]) {
        self.record.set(&self.layout.mutator::<[u8; N]>(path).unwrap(), value).unwrap();
    }

    fn set_bool(&mut self, path: &[&str], value: bool) {
        self.record.set(&self.layout.mutator::<bool>(path).unwrap(), value).unwrap();
    }

    fn set_bytes(&mut self, path: &[&str], value: &[u8]) {
        self.record.set(&self.layout.mutator::<[u8]>(path).unwrap(), value).unwrap();
    }

    fn set_present(&mut self, path: &[&str]) {
        self.record.set(&self.layout.mutator::<()>(path).unwrap(), ()).unwrap();
    }

    fn clear(&mut self, _: &[&str], _: bool) {}

    fn items(&mut self, path: &[&str], values: &[Value<'_>], items: Items<'_>) {
        let (layout, list) = (self.layout, self.layout.list_mutator(path).unwrap());
        let write = |record: &mut ObjectBuilder<'_>, i: usize| {
            write_item(&mut Built { layout, record }, path, items.item, values[i]);
            Ok(())
        };
        self.record.list(&list, values.len(), write).unwrap();
    }
}

/// An object that is changed, by the paths of its layout.
struct Changed<'a, 'e> {
    layout: &'a Layout,
    record: &'a mut ItemMut<'e>,
    random: &'a mut Random,
    /// The first error.
    refused: Option<Error>,
}

impl Changed<'_, '_> {
    fn note(&mut self, result: Result<(), Error>) {
        if let Err(error) = result {
            assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
            self.refused.get_or_insert(error);
        }
    }
}

impl Record for Changed<'_, '_> {
    fn number<const N: usize>(&mut self, path: &[&str], value: [u8; N]) {
        let set = self.record.set(&self.layout.mutator::<[u8; N]>(path).unwrap(), value);
        self.note(set);
    }

    fn set_bool(&mut self, path: &[&str], value: bool) {
        let set = self.record.set(&self.layout.mutator::<bool>(path).unwrap(), value);
        self.note(set);
    }

    fn set_bytes(&mut self, path: &[&str], value: &[u8]) {
        let set = self.record.set(&self.layout.mutator::<[u8]>(path).unwrap(), value);
        self.note(set);
    }

    fn set_present(&mut self, path: &[&str]) {
        let set = self.record.set(&self.layout.mutator::<()>(path).unwrap(), ());
        self.note(set);
    }

    fn clear(&mut self, path: &[&str], is_list: bool) {
        let cleared = match is_list {
            true => self.record.clear_list(&self.layout.list_mutator(path).unwrap()),
            false => self.record.clear(&self.layout.mutator::<()>(path).unwrap()),
        };
        self.note(cleared);
    }

    fn items(&mut self, path: &[&str], values: &[Value<'_>], items: Items<'_>) {
        let list = self.layout.list_mutator(path).unwrap();
        if items.sized {
            self.set_present(path);
        } else {
            // Some items are kept, if there are any.
            let had = self.record.count(&list);
            let kept = self.random.below(had.min(values.len()) + 1);
            let first = self.random.below(kept + 1);
            let removed = first..had - (kept - first);
            let spliced = self.record.splice(&list, removed, values.len() - kept);
            self.note(spliced);
        }
        if self.refused.is_some() {
            return;
        }
        let mut order: Vec<usize> = (0..values.len()).collect();
        (1..order.len()).for_each(|i| order.swap(i, self.random.below(i + 1)));
        for i in order {
            let Some(mut item) = self.record.item(&list, i) else {
                panic!("no item {i} of {}, {path:?}", values.len())
            };
            let (layout, random) = (self.layout, &mut *self.random);
            let mut changed = Changed { layout, record: &mut item, random, refused: None };
            write_item(&mut changed, path, items.item, values[i]);
            if let Some(error) = changed.refused.take() {
                self.refused = Some(error);
                return;
            }
        }
    }
}

/// Changes field `i` of an object to that of another object.
fn change(
    editor: &mut PageEditor,
    slot: usize,
    i: usize,
    to: Object<'_>,
    random: &mut Random,
) -> Result<(), Error> {
    let layout = editor.layout().clone();
    let field = &layout.schema().fields[i];
    let mut record = editor.object_mut(slot).unwrap();
    let mut changed = Changed { layout: &layout, record: &mut record, random, refused: None };
    let value = to.field(i).unwrap();
    write(&mut changed, &[&field.name], &field.data_type, field.nullable, value);
    changed.refused.map_or(Ok(()), Err)
}

#[test]
fn built_objects_are_those_of_columns() {
    for_seeds(150, |seed| {
        let mut random = Random::new(seed);
        let schema = random_schema(&mut random);
        let context = format!("seed {seed}, schema {schema}");
        let layout = Layout::new(schema_from_arrow(&schema).unwrap()).unwrap();
        let rows = random.pick(&[1, 7, 60]);
        let batch = batch(&schema, &random_columns(&mut random, &schema, rows));
        let page_bytes = random.pick(&[4 << 10, 16 << 10]);
        let expected = pages_of(&layout, &batch, page_bytes);

        let mut builder = PageBuilder::new(layout.clone(), page_bytes, Checksum::None).unwrap();
        let fields = &layout.schema().fields;
        for object in expected.iter().flat_map(VerifiedPage::objects) {
            let write_fields = |record: &mut ObjectBuilder<'_>| {
                let mut built = Built { layout: &layout, record };
                for (i, field) in fields.iter().enumerate() {
                    let value = object.field(i).unwrap();
                    write(&mut built, &[&field.name], &field.data_type, field.nullable, value);
                }
            };
            // An object that is given up leaves nothing behind.
            if random.below(4) == 0 {
                let refused = builder.build(|record| {
                    write_fields(record);
                    Err(PageBuilder::new(layout.clone(), 1, Checksum::None).unwrap_err())
                });
                assert_eq!(refused.unwrap_err().kind(), ErrorKind::Size);
            }
            builder
                .build(|record| {
                    write_fields(record);
                    Ok(())
                })
                .unwrap_or_else(|error| panic!("{error}, {context}"));
        }
        let built = builder.finish();
        assert_eq!(built.len(), expected.len(), "{context}");
        for (built, expected) in built.iter().zip(&expected) {
            verify(built, &context);
            assert_eq!(built.bytes(), expected.bytes(), "{context}");
        }
    });
}

#[test]
fn changed_pages_are_those_of_new_values() {
    for_seeds(200, |seed| {
        let mut random = Random::new(seed);
        let schema = random_schema(&mut random);
        let context = format!("seed {seed}, schema {schema}");
        let layout = Layout::new(schema_from_arrow(&schema).unwrap()).unwrap();
        let rows = random.pick(&[1, 3, 12]);
        let (page_bytes, fields) = (1 << 20, schema.fields().len());
        let before = random_columns(&mut random, &schema, rows);
        let after = random_columns(&mut random, &schema, rows);
        let between = random_columns(&mut random, &schema, rows);
        let [old, new, others] = [&before, &after, &between]
            .map(|columns| pages_of(&layout, &batch(&schema, columns), page_bytes).remove(0));
        let changes: Vec<bool> = (0..fields).map(|_| random.below(3) > 0).collect();
        let chosen: Vec<ArrayRef> = (0..fields)
            .map(|i| if changes[i] { after[i].clone() } else { before[i].clone() })
            .collect();
        let expected = pages_of(&layout, &batch(&schema, &chosen), page_bytes).remove(0);

        let edits = (0..rows).flat_map(|row| (0..fields).map(move |field| (row, field)));
        let mut edits: Vec<_> = edits.filter(|(_, field)| changes[*field]).collect();
        (1..edits.len()).for_each(|i| edits.swap(i, random.below(i + 1)));
        let (mut page, mut edition) = (old, 0);
        while !edits.is_empty() {
            let mut editor = PageEditor::new(page).unwrap();
            for (row, field) in edits.split_off(random.below(edits.len())) {
                let object = others.object(random.below(rows)).unwrap();
                if random.below(2) == 0 {
                    change(&mut editor, row, field, object, &mut random).unwrap();
                }
                let object = new.object(row).unwrap();
                change(&mut editor, row, field, object, &mut random).unwrap();
            }
            if random.below(3) == 0 {
                editor.compact().unwrap();
            }
            page = editor.finish(random.pick(&[Checksum::None, Checksum::Crc32c]));
            verify(&page, &context);
            // A change may have nothing to do, as that of a value of type null.
            assert!(page.header().edition <= edition + 1, "{context}");
            edition = page.header().edition;
        }
        for (found, expected) in page.objects().zip(expected.objects()) {
            assert_eq!(found.bytes(), expected.bytes(), "{context}");
        }
        let mut editor = PageEditor::new(page).unwrap();
        editor.compact().unwrap();
        let page = editor.finish(Checksum::None);
        assert!(!page.header().moved, "{context}");
        assert_eq!(page.bytes()[..32], expected.bytes()[..32], "{context}");
        assert_eq!(page.bytes()[64..], expected.bytes()[64..], "{context}");
    });
}

/// On a page without room a change succeeds or leaves the page as it was.
#[test]
fn changes_that_do_not_fit_change_nothing() {
    let (mut done, mut refused) = (0, 0);
    let counts = std::cell::RefCell::new((&mut done, &mut refused));
    for_seeds(150, |seed| {
        let mut random = Random::new(seed);
        let schema = random_schema(&mut random);
        let context = format!("seed {seed}, schema {schema}");
        let layout = Layout::new(schema_from_arrow(&schema).unwrap()).unwrap();
        let rows = random.pick(&[20, 200]);
        let columns = random_columns(&mut random, &schema, rows);
        let pages = pages_of(&layout, &batch(&schema, &columns), 4 << 10);
        let (source, target) = (&pages[random.below(pages.len())], &pages[0]);
        let mut editor = PageEditor::new(target.clone()).unwrap();
        for _ in 0..30 {
            let slot = random.below(editor.len());
            let objects: Vec<Vec<u8>> =
                (0..editor.len()).map(|i| editor.object(i).unwrap().bytes().to_vec()).collect();
            let from = source.object(random.below(source.len())).unwrap();
            match editor.replace(slot, from) {
                Ok(()) => {
                    assert_eq!(editor.object(slot).unwrap().bytes(), from.bytes(), "{context}");
                    *counts.borrow_mut().0 += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Limit, "{context}");
                    assert_eq!(editor.object(slot).unwrap().bytes(), objects[slot], "{context}");
                    *counts.borrow_mut().1 += 1;
                }
            }
            for (i, bytes) in objects.iter().enumerate().filter(|(i, _)| *i != slot) {
                assert_eq!(editor.object(i).unwrap().bytes(), bytes, "{context}");
            }
        }
        let field = random.below(schema.fields().len());
        let (slot, from) = (random.below(editor.len()), source.object(0).unwrap());
        let others: Vec<Vec<u8>> =
            (0..editor.len()).map(|i| editor.object(i).unwrap().bytes().to_vec()).collect();
        let _ = change(&mut editor, slot, field, from, &mut random);
        for (i, bytes) in others.iter().enumerate().filter(|(i, _)| *i != slot) {
            assert_eq!(editor.object(i).unwrap().bytes(), bytes, "{context}");
        }
        verify(&editor.finish(Checksum::Crc32c), &context);
    });
    assert!(done > 0 && (refused > 0 || std::env::var_os("DRAY_SEED").is_some()));
}
