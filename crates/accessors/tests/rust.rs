//! The generated modules: what they read is what the values of `dray_page` give, and what they
//! build and change are the same bytes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

#[allow(dead_code, reason = "the other test uses more of it")]
mod schemas;

#[rustfmt::skip]
#[path = "generated/customer.rs"]
mod customer;
#[rustfmt::skip]
#[path = "generated/everything.rs"]
mod everything;
#[rustfmt::skip]
#[path = "generated/nothing.rs"]
mod nothing;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use dray_accessors::{FieldKind, Items, Model};
use dray_format::{Checksum, Field, Type};
use dray_page::{Layout, ObjectBuilder, PageBuilder, PageEditor, Value, VerifiedPage};
use dray_pagefile::{ErrorKind, PageFileOptions, PageFileWriter};

/// Numbers from a seed, of which many are small.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        self.0 ^ self.0 >> 29
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 33) as usize % end
    }

    fn text(&mut self) -> String {
        let length = [0, 3, 12, 13, 40][self.below(5)];
        (0..length).map(|_| ['a', 'é', 'z', '語'][self.below(4)]).collect()
    }
}

/// Writes a random value of a field, unless another has its path.
fn fill(
    record: &mut ObjectBuilder<'_>,
    layout: &Layout,
    path: &[&str],
    field: &Field,
    random: &mut Random,
) {
    if field.nullable && random.below(3) == 0 {
        return;
    }
    let mut ty = &field.data_type;
    while let Type::Dictionary { value, .. } = ty {
        ty = value;
    }
    let count = random.below(4);
    let mut items = |count, item: &Field| {
        let list = layout.list_mutator(path).unwrap();
        let path = [path, &["[]"]].concat();
        let write = |record: &mut ObjectBuilder<'_>, _| {
            fill(record, layout, &path, item, random);
            Ok(())
        };
        record.list(&list, count, write).unwrap();
    };
    match ty {
        Type::Null => {}
        Type::List(item) => items(count, item),
        Type::FixedList { size, item } => items(*size as usize, item),
        Type::Map { key, value, .. } => {
            let list = layout.list_mutator(path).unwrap();
            let write = |record: &mut ObjectBuilder<'_>, _| {
                for field in [key, value] {
                    let path = [path, &[field.name.as_str()]].concat();
                    fill(record, layout, &path, field, random);
                }
                Ok(())
            };
            record.list(&list, count, write).unwrap();
        }
        Type::Struct(fields) => {
            record.set(&layout.mutator::<()>(path).unwrap(), ()).unwrap();
            for field in fields {
                fill(record, layout, &[path, &[field.name.as_str()]].concat(), field, random);
            }
        }
        Type::Boolean => {
            let value = random.below(2) == 1;
            record.set(&layout.mutator::<bool>(path).unwrap(), value).unwrap();
        }
        Type::Utf8 | Type::Binary => {
            let value = random.text();
            record.set(&layout.mutator::<[u8]>(path).unwrap(), value.as_bytes()).unwrap();
        }
        other => {
            let bytes: Vec<u8> = (0..32).map(|_| random.next() as u8).collect();
            macro_rules! by_width {
                ($($width:literal)*) => {
                    match other.width().unwrap() {
                        $($width => {
                            let field = layout.mutator::<[u8; $width]>(path).unwrap();
                            record.set(&field, *bytes.first_chunk().unwrap()).unwrap();
                        })*
                        width => panic!("{width} bytes"),
                    }
                };
            }
            by_width!(1 2 3 4 5 8 16 32);
        }
    }
}

fn random_pages(layout: &Arc<Layout>, objects: usize) -> Vec<VerifiedPage> {
    let (mut random, fields) = (Random(7), &layout.schema().fields);
    let mut builder = PageBuilder::new(layout.clone(), 16 << 10, Checksum::None).unwrap();
    for _ in 0..objects {
        let build = |object: &mut ObjectBuilder<'_>| {
            for field in fields {
                let unique = fields.iter().filter(|other| other.name == field.name).count() == 1;
                if unique {
                    fill(object, layout, &[&field.name], field, &mut random);
                }
            }
            Ok(())
        };
        builder.build(build).unwrap();
    }
    builder.finish()
}

/// What a generated class shows of a value.
fn shown(model: &Model, kind: &FieldKind, value: Value<'_>) -> String {
    macro_rules! number {
        ($($number:ident)*) => { [$(value.$number().map(|n| format!("{n:?}"))),*] };
    }
    match kind {
        FieldKind::Struct(number) => {
            let class = &model.classes[*number];
            let fields: Vec<String> = class
                .fields
                .iter()
                .zip(value.fields().unwrap().iter())
                .filter(|(field, _)| !matches!(field.kind, FieldKind::Value(Type::Null)))
                .map(|(field, value)| {
                    let name = &field.name;
                    match (&field.own_bit, value.is_missing()) {
                        (None, _) => format!("{name}: {}", shown(model, &field.kind, value)),
                        (Some(_), false) => {
                            format!("{name}: Some({})", shown(model, &field.kind, value))
                        }
                        (Some(_), true) => format!("{name}: None"),
                    }
                })
                .collect();
            match fields.is_empty() {
                true => class.name.clone(),
                false => format!("{} {{ {} }}", class.name, fields.join(", ")),
            }
        }
        FieldKind::List(items) | FieldKind::FixedList(_, items) | FieldKind::Map(items) => {
            let Items { nullable, stride, element } = items;
            let list = value.list().unwrap();
            let items = list.iter().map(|value| match (*stride == 0, *nullable) {
                (true, true) => format!("{}", !value.is_missing()),
                (false, true) if value.is_missing() => "None".to_owned(),
                (false, true) => format!("Some({})", shown(model, element, value)),
                (_, false) => shown(model, element, value),
            });
            match (*stride == 0, *nullable) {
                (true, false) => list.len().to_string(),
                _ => format!("[{}]", items.collect::<Vec<_>>().join(", ")),
            }
        }
        FieldKind::Value(data_type) => match data_type {
            Type::Boolean => format!("{:?}", value.bool().unwrap()),
            Type::Utf8 => format!("{:?}", value.str().unwrap()),
            Type::Binary => format!("{:?}", value.bytes().unwrap()),
            Type::UInt8 | Type::UInt16 | Type::UInt32 | Type::UInt64 => {
                number!(u8 u16 u32 u64).into_iter().flatten().next().unwrap()
            }
            Type::Float32 => format!("{:?}", value.f32().unwrap()),
            Type::Float64 => format!("{:?}", value.f64().unwrap()),
            Type::Float16
            | Type::IntervalDayTime
            | Type::IntervalMonthDayNano
            | Type::Decimal256 { .. }
            | Type::FixedBinary(_) => format!("{:?}", value.fixed().unwrap()),
            _ => number!(i8 i16 i32 i64 i128).into_iter().flatten().next().unwrap(),
        },
    }
}

/// What the generated class of an object shows of it.
fn object_shown(model: &Model, object: dray_page::Object<'_>) -> String {
    let class = &model.classes[0];
    let fields = class.fields.iter().zip(object.fields().iter());
    let fields: Vec<String> = fields
        .filter(|(field, _)| !matches!(field.kind, FieldKind::Value(Type::Null)))
        .map(|(field, value)| match (&field.own_bit, value.is_missing()) {
            (None, _) => format!("{}: {}", field.name, shown(model, &field.kind, value)),
            (Some(_), true) => format!("{}: None", field.name),
            (Some(_), false) => {
                format!("{}: Some({})", field.name, shown(model, &field.kind, value))
            }
        })
        .collect();
    format!("{} {{ {} }}", class.name, fields.join(", "))
}

fn named(module: &str) -> (Model, Arc<Layout>) {
    let all = schemas::all();
    let (_, name, schema, key) = all.into_iter().find(|(found, ..)| *found == module).unwrap();
    let layout = Layout::new(schema.clone()).unwrap();
    (schemas::model(name, schema, key), layout)
}

#[test]
fn generated_classes_read_what_values_give() {
    let (model, layout) = named("everything");
    let pages = random_pages(&layout, 200);
    for page in &pages {
        let page = VerifiedPage::verify(&layout, page.bytes().clone()).unwrap();
        let objects = everything::EverythingPage::of(&page).unwrap();
        assert_eq!((objects.len(), objects.iter().len()), (page.len(), page.len()));
        for (i, object) in page.objects().enumerate() {
            let expected = object_shown(&model, object);
            assert_eq!(format!("{:?}", objects.get(i).unwrap()), expected);
            let class = everything::Everything::of(object).unwrap();
            assert_eq!(class.text().map(str::as_bytes), class.text_bytes_2());
            assert_eq!(Some(class.text_bytes()), object.field(23).unwrap().bytes());
        }
    }
    let (model, layout) = named("customer");
    for page in &random_pages(&layout, 200) {
        for (object, class) in page.objects().zip(customer::CustomerPage::of(page).unwrap().iter())
        {
            assert_eq!(format!("{class:?}"), object_shown(&model, object));
        }
    }
    assert!(everything::EverythingPage::of(&random_pages(&layout, 1)[0]).is_err());
    assert!(customer::Customer::of(pages[0].object(0).unwrap()).is_err());
}

/// The page of page.md section 8.
fn nested_example() -> Vec<u8> {
    let vector = fs::read("../../spec/vectors/accept/nested-example.page").unwrap();
    let (schema_bytes, rest) = vector.split_first_chunk::<4>().unwrap();
    rest[u32::from_le_bytes(*schema_bytes) as usize..].to_vec()
}

fn miller(customer: &mut customer::CustomerBuilder<'_, '_>) -> dray_page::Result<()> {
    customer.set_key(5)?;
    customer.set_name("Miller")?;
    customer.orders(2, |order, i| {
        if i == 0 {
            order.set_date(100)?;
            order.items(2, |item, i| {
                item.set_part(i as i32 + 1)?;
                if i == 0 { item.set_quantity(10) } else { Ok(()) }
            })?;
        }
        Ok(())
    })
}

#[test]
fn customers_are_built_and_changed() {
    let layout = customer::CustomerFields::get().unwrap().layout().clone();
    let mut pages = PageBuilder::new(layout, 4 << 10, Checksum::None).unwrap();
    customer::CustomerBuilder::build(&mut pages, miller).unwrap();
    customer::CustomerBuilder::build(&mut pages, |empty| empty.set_key(5)).unwrap();
    let page = pages.finish().remove(0);
    let expected = nested_example();
    let objects_end = 64 + 112;
    assert_eq!(page.bytes()[64..objects_end], expected[64..objects_end]);

    // The second becomes the first.
    let mut editor = PageEditor::new(page).unwrap();
    assert!(customer::CustomerMut::of(&mut editor, 2).unwrap().is_none());
    let mut second = customer::CustomerMut::of(&mut editor, 1).unwrap().unwrap();
    second.set_name("a name that is too long").unwrap();
    second.splice_orders(0..0, 3).unwrap();
    let mut order = second.orders_item(1).unwrap();
    order.set_date(100).unwrap();
    order.splice_items(0..0, 2).unwrap();
    order.items_item(1).unwrap().set_part(2).unwrap();
    let mut item = order.items_item(0).unwrap();
    item.set_part(1).unwrap();
    item.set_quantity(10).unwrap();
    assert_eq!((item.as_ref().part(), item.as_ref().quantity()), (1, Some(10)));
    order.items_item(1).unwrap().set_quantity(7).unwrap();
    order.items_item(1).unwrap().clear_quantity().unwrap();
    second.splice_orders(0..1, 0).unwrap();
    second.set_name("Miller").unwrap();
    assert_eq!(second.as_ref().orders().get(0).unwrap().date(), Some(100));
    let page = editor.finish(Checksum::Crc32c);
    VerifiedPage::verify(page.layout(), page.bytes().clone()).unwrap();
    assert_eq!(page.object(1).unwrap().bytes(), &expected[64..objects_end]);
}

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("dray-accessors-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

#[test]
fn files_are_opened_by_their_schema() {
    let layout = customer::CustomerFields::get().unwrap().layout().clone();
    let path = scratch("customers.pages");
    let options = PageFileOptions { page_bytes: 4 << 10, key: vec![vec!["key".into()]] };
    let mut file = Vec::new();
    let mut writer = PageFileWriter::new(&mut file, layout.schema().clone(), &options).unwrap();
    for key in 0..500 {
        let build = |customer: &mut customer::CustomerBuilder<'_, '_>| {
            customer.set_key(key / 2)?;
            customer.set_name(&format!("customer {key}"))
        };
        customer::CustomerBuilder::write(&mut writer, build).unwrap();
    }
    writer.finish().unwrap();
    fs::write(&path, &file).unwrap();

    let customers = customer::CustomerFile::open(&path).unwrap();
    assert_eq!((customers.len(), customers.iter().count()), (500, 500));
    let names = |found: Vec<customer::Customer<'_>>| {
        found.iter().map(|customer| customer.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(customers.find(120).unwrap()), ["customer 240", "customer 241"]);
    assert!(customers.find(-1).unwrap().is_empty());
    assert_eq!(customers.get(499).unwrap().name(), "customer 499");
    assert!(customers.get(500).is_err());
    assert!(customers.pages().all(|page| page.unwrap().len() > 10));

    let refused = everything::EverythingFile::open(&path).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Usage);
    assert!(refused.to_string().contains("another schema"), "{refused}");
    assert!(nothing::SelfFile::open(&path).is_err());

    // The same schema, with an index of another key.
    let options = PageFileOptions { key: vec![vec!["name".into()]], ..options };
    let mut file = Vec::new();
    let mut writer = PageFileWriter::new(&mut file, layout.schema().clone(), &options).unwrap();
    customer::CustomerBuilder::write(&mut writer, |customer| customer.set_key(5)).unwrap();
    writer.finish().unwrap();
    fs::write(&path, &file).unwrap();
    let customers = customer::CustomerFile::open(&path).unwrap();
    let refused = customers.find(5).unwrap_err();
    assert!(refused.to_string().contains("index of the key"), "{refused}");

    // A damaged page is an error in place of its objects.
    let at = file.len() - 128 - 16 * 3;
    file[4096 + 80] ^= 1;
    fs::write(&path, &file[..]).unwrap();
    let customers = customer::CustomerFile::open(&path).unwrap();
    assert!(at > 4096 && customers.iter().all(|customer| customer.is_err()));
    assert_eq!(customers.iter().count(), 1);
}
