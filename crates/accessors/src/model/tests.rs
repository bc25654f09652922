use dray_format::{Field as SchemaField, Schema};

use super::*;

fn field(name: &str, data_type: Type, nullable: bool) -> SchemaField {
    SchemaField { name: name.into(), data_type, nullable, metadata: vec![] }
}

fn list(item: Type) -> Type {
    Type::List(Box::new(field("item", item, false)))
}

fn model(fields: Vec<SchemaField>) -> Model {
    let layout = Layout::new(Schema { fields }).unwrap();
    Model::new(&layout, &[], [0; 32], "customer")
}

fn names(model: &Model) -> Vec<&str> {
    model.classes.iter().map(|class| class.name.as_str()).collect()
}

/// page.md section 8.
#[test]
fn the_nested_object_of_the_specification() {
    let item = vec![field("part", Type::Int32, false), field("quantity", Type::Int16, true)];
    let order =
        vec![field("date", Type::Date32, true), field("items", list(Type::Struct(item)), false)];
    let model = model(vec![
        field("key", Type::Int32, false),
        field("name", Type::Utf8, false),
        field("orders", list(Type::Struct(order)), false),
    ]);
    assert_eq!(names(&model), ["Customer", "OrdersItem", "ItemsItem"]);
    assert_eq!(model.record_bytes, 36);
    let at =
        |class: usize| model.classes[class].fields.iter().map(|field| field.at).collect::<Vec<_>>();
    assert_eq!((at(0), at(1), at(2)), (vec![32, 8, 24], vec![16, 8], vec![4, 8]));
    let kinds: Vec<_> = model.classes.iter().map(|class| class.kind).collect();
    assert_eq!(kinds, [ClassKind::Object, ClassKind::Item(24), ClassKind::Item(12)]);
    assert_eq!(model.classes[2].path, "orders.[].items.[]");
    let bit = model.classes[2].fields[1].own_bit;
    assert_eq!(bit, Some(ValidityBit { at: 0, mask: 1 }));
}

#[test]
fn a_field_of_a_missing_struct_is_missing() {
    let inner = Type::Struct(vec![field("x", Type::Int32, false), field("y", Type::Int32, true)]);
    let model = model(vec![field("inner", inner, true)]);
    let [x, y] = &model.classes[1].fields[..] else { panic!() };
    assert_eq!(x.own_bit, None);
    assert_eq!(x.present_bit, Some(ValidityBit { at: 4, mask: 1 }));
    assert_eq!(y.own_bit, Some(ValidityBit { at: 4, mask: 2 }));
    assert_eq!(y.present_bit, y.own_bit);
}

#[test]
fn names_are_made_identifiers_and_unique() {
    let one = || Type::Struct(vec![field("x", Type::Null, true)]);
    let model = model(vec![
        field("größe", one(), false),
        field("gr__e", one(), false),
        field("2 b", one(), false),
        field("", one(), false),
        field("customer", one(), false),
    ]);
    let expected = ["Customer", "GrE", "GrE_2", "N2B", "Unnamed", "Customer_2"];
    assert_eq!(names(&model), expected);
    let identifiers = model.classes[0].fields.iter().map(|field| field.identifier.as_str());
    let expected = ["gr__e", "gr__e_2", "_2_b", "unnamed", "customer"];
    assert_eq!(identifiers.collect::<Vec<_>>(), expected);
}

#[test]
fn lists_of_lists_and_maps_have_items() {
    let pairs = Type::Map {
        sorted: false,
        key: Box::new(field("key", Type::Utf8, false)),
        value: Box::new(field("value", Type::Int64, true)),
    };
    let model = model(vec![
        field("grid", list(list(Type::Struct(vec![field("x", Type::Int8, false)]))), false),
        field("pairs", pairs, true),
    ]);
    assert_eq!(names(&model), ["Customer", "GridItemItem", "PairsItem"]);
    let FieldKind::List(outer) = &model.classes[0].fields[0].kind else { panic!() };
    let FieldKind::List(inner) = &*outer.element else { panic!() };
    assert_eq!((outer.stride, inner.stride), (8, 1));
    let FieldKind::Map(pairs) = &model.classes[0].fields[1].kind else { panic!() };
    assert!(matches!(*pairs.element, FieldKind::Struct(2)));
    let value = &model.classes[2].fields[1];
    assert_eq!((value.name.as_str(), value.own_bit.map(|bit| bit.at)), ("value", Some(0)));
}
