//! Accessors: what they refuse, and that they agree with values.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

#[path = "../../format/tests/random/mod.rs"]
mod random;

use std::fmt::Debug;
use std::sync::Arc;

use arrow_schema::Schema as ArrowSchema;
use bytes::Bytes;
use dray_format::arrow::{batch_from_arrow, schema_from_arrow};
use dray_format::{Batch, Bitmap, Checksum, Column, Field, Schema, Type, Values};
use dray_page::{Access, ErrorKind, Item, Layout, PageBuilder, Value, VerifiedPage};
use random::{Random, for_seeds};

fn field(name: &str, data_type: Type, nullable: bool) -> Field {
    Field { name: name.into(), data_type, nullable, metadata: vec![] }
}

fn layout(fields: Vec<Field>) -> Arc<Layout> {
    Layout::new(Schema { fields }).unwrap()
}

fn list_of(item: Type) -> Type {
    Type::List(Box::new(field("item", item, false)))
}

/// A page of one object: the address's number is 7, and the items of two numbers are present,
/// missing and present.
fn page(layout: &Arc<Layout>) -> VerifiedPage {
    let words = |values: &[u32]| {
        values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>().into()
    };
    let numbers = |values: &[u32]| {
        let values = Values::Fixed { width: 4, bytes: words(values) };
        Column { rows: 3, validity: None, values }
    };
    let validity = Some(Bitmap { bytes: Bytes::from_static(&[0b101]), offset: 0, len: 3 });
    let pairs = Column {
        rows: 3,
        validity,
        values: Values::Struct(vec![numbers(&[1, 2, 3]), numbers(&[4, 5, 6])]),
    };
    let lists = Values::List { offsets: words(&[0, 3]), child: Box::new(pairs) };
    let address = Values::Struct(vec![Column { rows: 1, ..numbers(&[7]) }]);
    let columns = [address, lists].map(|values| Column { rows: 1, validity: None, values });
    let mut builder = PageBuilder::new(layout.clone(), 4 << 10, Checksum::None).unwrap();
    builder.append(&Batch { rows: 1, columns: columns.into() }).unwrap();
    builder.finish().remove(0)
}

fn page_schema() -> Vec<Field> {
    let pair = Type::Struct(vec![field("a", Type::Int32, false), field("b", Type::UInt32, false)]);
    vec![
        field("address", Type::Struct(vec![field("number", Type::Int32, false)]), true),
        field("pairs", Type::List(Box::new(field("item", pair, true))), false),
    ]
}

#[test]
fn fields_are_found_by_their_paths() {
    let layout = layout(page_schema());
    let page = page(&layout);
    let object = page.object(0).unwrap();
    let number = layout.accessor::<i32>(&["address", "number"]).unwrap();
    assert_eq!(number.get(object), Some(7));
    let pairs = layout.list_accessor(&["pairs"]).unwrap();
    let a = layout.accessor::<i32>(&["pairs", "[]", "a"]).unwrap();
    let b = layout.accessor::<[u8; 4]>(&["pairs", "[]", "b"]).unwrap();
    let there = layout.accessor::<()>(&["pairs", "[]"]).unwrap();
    let items = pairs.get(object).unwrap();
    assert_eq!(items.len(), 3);
    let read: Vec<_> =
        items.clone().map(|item| (a.get(item), b.get(item), there.get(item))).collect();
    assert_eq!(
        read,
        [
            (Some(1), Some([4, 0, 0, 0]), Some(())),
            (None, None, None),
            (Some(3), Some([6, 0, 0, 0]), Some(()))
        ]
    );
    assert_eq!(items.map(|item| item.is_missing()).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(a.get(pairs.get(object).unwrap().nth(2).unwrap()), Some(3));
}

#[test]
fn other_objects_and_items_give_nothing() {
    let layout = layout(page_schema());
    let page = page(&layout);
    let object = page.object(0).unwrap();
    let item = layout.list_accessor(&["pairs"]).unwrap().get(object).unwrap().next().unwrap();
    let number = |layout: &Layout| layout.accessor::<i32>(&["address", "number"]).unwrap();
    assert_eq!(number(&layout).get(item), None);
    assert_eq!(layout.accessor::<i32>(&["pairs", "[]", "a"]).unwrap().get(object), None);
    assert!(layout.list_accessor(&["pairs"]).unwrap().get(item).is_none());

    let again = Layout::new(layout.schema().clone()).unwrap();
    assert_eq!(number(&again).get(object), Some(7));
    let mut fields = page_schema();
    fields.swap(0, 1);
    let other = Layout::new(Schema { fields }).unwrap();
    assert_eq!(number(&other).get(object), None);
    assert!(other.list_accessor(&["pairs"]).unwrap().get(object).is_none());
}

#[test]
fn what_is_not_there_is_refused() {
    let mut fields = page_schema();
    let map = Type::Map {
        sorted: false,
        key: Box::new(field("key", Type::Utf8, false)),
        value: Box::new(field("value", list_of(Type::Float64), true)),
    };
    let index = Box::new(Type::UInt8);
    fields.extend([
        field("twice", Type::Int32, false),
        field("twice", Type::Int64, false),
        field("map", map, true),
        field("none", Type::Null, true),
        field(
            "color",
            Type::Dictionary { index, ordered: false, value: Box::new(Type::Utf8) },
            true,
        ),
    ]);
    let layout = layout(fields);
    fn refusal<T: Access + ?Sized>(layout: &Layout, path: &[&str]) -> String {
        let error = layout.accessor::<T>(path).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        error.to_string()
    }
    for (expected, found) in [
        (r#"there are 0 fields "", expected one"#, refusal::<i32>(&layout, &[])),
        (
            r#"there are 0 fields "adress", expected one"#,
            refusal::<i32>(&layout, &["adress", "number"]),
        ),
        (
            r#"there are 0 fields "address.[]", expected one"#,
            refusal::<i32>(&layout, &["address", "[]"]),
        ),
        (r#"there are 0 fields "pairs.a", expected one"#, refusal::<i32>(&layout, &["pairs", "a"])),
        (r#"there are 2 fields "twice", expected one"#, refusal::<i32>(&layout, &["twice"])),
        (
            r#"field "pairs.[].a" is of type Int32, which is not read as i64"#,
            refusal::<i64>(&layout, &["pairs", "[]", "a"]),
        ),
        (
            r#"field "pairs.[].b" is of type UInt32, which is not read as i32"#,
            refusal::<i32>(&layout, &["pairs", "[]", "b"]),
        ),
        (
            r#"field "pairs" is of type list, which is not read as [u8]"#,
            refusal::<[u8]>(&layout, &["pairs"]),
        ),
        (
            r#"field "map.key" is of type Utf8, which is not read as [u8; 16]"#,
            refusal::<[u8; 16]>(&layout, &["map", "key"]),
        ),
        (
            r#"field "none" is of type Null, which is not read as ()"#,
            refusal::<()>(&layout, &["none"]),
        ),
        (
            r#"field "color" is of type Utf8, which is not read as bool"#,
            refusal::<bool>(&layout, &["color"]),
        ),
        (
            r#"field "address" is of type struct, which has no items"#,
            layout.list_accessor(&["address"]).unwrap_err().to_string(),
        ),
    ] {
        assert_eq!(found, expected);
    }
    layout.accessor::<f64>(&["map", "value", "[]"]).unwrap();
    layout.accessor::<str>(&["color"]).unwrap();
}

/// Compares what accessors of a path read from `item` with `value`, which is none inside of a
/// missing struct or item.
struct Compared<'l> {
    layout: &'l Layout,
    path: Vec<String>,
    seed: u64,
}

impl Compared<'_> {
    fn accessed<'a, T: Access + ?Sized>(&self, item: Item<'a>) -> Option<T::Value<'a>> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        self.layout.accessor::<T>(&path).unwrap().get(item)
    }

    fn equal<'a, T>(&self, item: Item<'a>, expected: Option<T::Value<'a>>)
    where
        T: Access + ?Sized,
        T::Value<'a>: PartialEq + Debug,
    {
        assert_eq!(self.accessed::<T>(item), expected, "seed {}, {:?}", self.seed, self.path);
    }

    fn within(&mut self, name: &str, data_type: &Type, item: Item<'_>, value: Option<Value<'_>>) {
        self.path.push(name.into());
        self.value(data_type, item, value);
        self.path.pop();
    }

    fn value(&mut self, data_type: &Type, item: Item<'_>, value: Option<Value<'_>>) {
        use Type::*;
        if let Dictionary { value: data_type, .. } = data_type {
            return self.value(data_type, item, value);
        }
        if *data_type == Null {
            return;
        }
        self.equal::<()>(item, value.filter(|value| !value.is_missing()).map(|_| ()));
        let bytes = value.and_then(|value| value.fixed());
        match data_type.width() {
            Some(1) => self.equal::<[u8; 1]>(item, bytes.map(|bytes| bytes.try_into().unwrap())),
            Some(3) => self.equal::<[u8; 3]>(item, bytes.map(|bytes| bytes.try_into().unwrap())),
            Some(16) => self.equal::<[u8; 16]>(item, bytes.map(|bytes| bytes.try_into().unwrap())),
            Some(32) => self.equal::<[u8; 32]>(item, bytes.map(|bytes| bytes.try_into().unwrap())),
            _ => {}
        }
        match data_type {
            Boolean => self.equal::<bool>(item, value.and_then(|value| value.bool())),
            Int8 => self.equal::<i8>(item, value.and_then(|value| value.i8())),
            UInt8 => self.equal::<u8>(item, value.and_then(|value| value.u8())),
            Int16 => self.equal::<i16>(item, value.and_then(|value| value.i16())),
            UInt16 => self.equal::<u16>(item, value.and_then(|value| value.u16())),
            Int32 | Date32 | Time32(_) | IntervalMonths | Decimal32 { .. } => {
                self.equal::<i32>(item, value.and_then(|value| value.i32()));
            }
            UInt32 => self.equal::<u32>(item, value.and_then(|value| value.u32())),
            Int64 | Date64 | Time64(_) | Timestamp { .. } | Duration(_) | Decimal64 { .. } => {
                self.equal::<i64>(item, value.and_then(|value| value.i64()));
            }
            UInt64 => self.equal::<u64>(item, value.and_then(|value| value.u64())),
            Decimal128 { .. } => self.equal::<i128>(item, value.and_then(|value| value.i128())),
            Float32 => {
                let found = self.accessed::<f32>(item).map(f32::to_bits);
                assert_eq!(
                    found,
                    value.and_then(|value| value.f32()).map(f32::to_bits),
                    "seed {}, {:?}",
                    self.seed,
                    self.path
                );
            }
            Float64 => {
                let found = self.accessed::<f64>(item).map(f64::to_bits);
                assert_eq!(
                    found,
                    value.and_then(|value| value.f64()).map(f64::to_bits),
                    "seed {}, {:?}",
                    self.seed,
                    self.path
                );
            }
            Utf8 => {
                self.equal::<str>(item, value.and_then(|value| value.str()));
                self.equal::<[u8]>(item, value.and_then(|value| value.bytes()));
            }
            Binary => self.equal::<[u8]>(item, value.and_then(|value| value.bytes())),
            Struct(fields) => {
                let values = value.and_then(|value| value.fields());
                for (i, field) in fields.iter().enumerate() {
                    self.within(
                        &field.name,
                        &field.data_type,
                        item,
                        values.and_then(|values| values.field(i)),
                    );
                }
            }
            List(_) | FixedList { .. } | Map { .. } => self.items(data_type, item, value),
            _ => {}
        }
    }

    fn items(&mut self, data_type: &Type, item: Item<'_>, value: Option<Value<'_>>) {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let found = self.layout.list_accessor(&path).unwrap().get(item);
        let expected = value.and_then(|value| value.list());
        assert_eq!(
            found.as_ref().map(ExactSizeIterator::len),
            expected.map(|list| list.len()),
            "seed {}, {path:?}",
            self.seed
        );
        let (Some(found), Some(expected)) = (found, expected) else { return };
        for (i, (item, value)) in found.clone().zip(expected.iter()).take(20).enumerate() {
            assert_eq!(
                found.clone().nth(i).map(|item| item.is_missing()),
                Some(item.is_missing()),
                "seed {}",
                self.seed
            );
            match data_type {
                Type::Map { key, value: of_key, .. } => {
                    let pair = value.fields().unwrap();
                    self.within(&key.name, &key.data_type, item, pair.field(0));
                    self.within(&of_key.name, &of_key.data_type, item, pair.field(1));
                }
                Type::List(field) | Type::FixedList { item: field, .. } => {
                    self.within("[]", &field.data_type, item, Some(value));
                }
                _ => {}
            }
        }
    }
}

#[test]
fn accessors_read_what_values_say() {
    for_seeds(200, |seed| {
        let mut random = Random::new(seed);
        let fields: Vec<_> =
            (0..1 + random.below(5)).map(|i| random.field(&format!("c{i}"), 4)).collect();
        let arrow_schema = Arc::new(ArrowSchema::new(fields));
        let layout = Layout::new(schema_from_arrow(&arrow_schema).unwrap()).unwrap();
        let mut builder = PageBuilder::new(layout.clone(), 16 << 10, Checksum::None).unwrap();
        random
            .pieces(&arrow_schema)
            .iter()
            .for_each(|piece| builder.append(&batch_from_arrow(piece).unwrap()).unwrap());
        for object in builder.finish().iter().flat_map(VerifiedPage::objects).take(20) {
            let mut compared = Compared { layout: &layout, path: Vec::new(), seed };
            for (i, field) in layout.schema().fields.iter().enumerate() {
                compared.within(&field.name, &field.data_type, object.into(), object.field(i));
            }
        }
    });
}
