//! Changes in place and objects built in place, case by case.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use dray_format::{Checksum, Field, Schema, Type};
use dray_page::{ErrorKind, Layout, ListMutator, Mutator, PageBuilder, PageEditor, VerifiedPage};

fn field(name: &str, data_type: Type, nullable: bool) -> Field {
    Field { name: name.into(), data_type, nullable, metadata: vec![] }
}

/// `id int64, name utf8 nullable, items list of struct(price int64, note utf8 nullable)`
struct Orders {
    layout: Arc<Layout>,
    id: Mutator<i64>,
    name: Mutator<str>,
    items: ListMutator,
    price: Mutator<i64>,
    note: Mutator<str>,
}

impl Orders {
    fn new() -> Self {
        let item =
            Type::Struct(vec![field("price", Type::Int64, false), field("note", Type::Utf8, true)]);
        let fields = vec![
            field("id", Type::Int64, false),
            field("name", Type::Utf8, true),
            field("items", Type::List(Box::new(field("item", item, false))), false),
        ];
        let layout = Layout::new(Schema { fields }).unwrap();
        Self {
            id: layout.mutator(&["id"]).unwrap(),
            name: layout.mutator(&["name"]).unwrap(),
            items: layout.list_mutator(&["items"]).unwrap(),
            price: layout.mutator(&["items", "[]", "price"]).unwrap(),
            note: layout.mutator(&["items", "[]", "note"]).unwrap(),
            layout,
        }
    }

    fn builder(&self) -> PageBuilder {
        PageBuilder::new(self.layout.clone(), 4 << 10, Checksum::Crc32c).unwrap()
    }

    /// Orders with these names, and with an item each.
    fn page(&self, names: &[&str]) -> VerifiedPage {
        let mut builder = self.builder();
        for (i, name) in names.iter().enumerate() {
            let order = builder.build(|order| {
                order.set(&self.id, i as i64)?;
                order.set(&self.name, name)?;
                order.list(&self.items, 1, |item, _| item.set(&self.price, 100))
            });
            order.unwrap();
        }
        let mut pages = builder.finish();
        assert_eq!(pages.len(), 1);
        pages.remove(0)
    }

    fn verified(&self, page: &VerifiedPage) {
        VerifiedPage::verify(&self.layout, page.bytes().clone()).unwrap();
    }
}

fn name(page: &VerifiedPage, i: usize) -> Option<&str> {
    page.object(i).unwrap().field(1).unwrap().str()
}

#[test]
fn memory_that_nobody_else_has_is_taken() {
    let orders = Orders::new();
    let page = orders.page(&["a", "b"]);
    let (address, shared) = (page.bytes().as_ptr(), page.clone());
    let copy = PageEditor::new(page).unwrap().finish(Checksum::None);
    assert_ne!(copy.bytes().as_ptr(), address);
    let mut editor = PageEditor::new(shared).unwrap();
    editor.object_mut(0).unwrap().set(&orders.id, 7).unwrap();
    let page = editor.finish(Checksum::Crc32c);
    assert_eq!(page.bytes().as_ptr(), address);
    assert_eq!((page.header().edition, copy.header().edition), (1, 0));
    assert!(!page.header().moved);
    orders.verified(&page);
}

#[test]
fn dead_bytes_do_not_leave_the_editor() {
    let orders = Orders::new();
    let names = ["a secret of many bytes", "a second one, longer", "a third", "a fourth", "more"];
    let page = orders.page(&names);
    let has = |page: &VerifiedPage, text: &str| {
        page.bytes().windows(text.len()).any(|bytes| bytes == text.as_bytes())
    };
    assert!(has(&page, names[0]));
    let mut editor = PageEditor::new(page).unwrap();
    editor.object_mut(0).unwrap().clear(&orders.name).unwrap();
    let page = editor.finish(Checksum::Crc32c);
    assert!(page.header().moved && !has(&page, names[0]));
    assert_eq!((name(&page, 0), name(&page, 1)), (None, Some(names[1])));
    orders.verified(&page);
    // A quarter of the extents is dead.
    let mut editor = PageEditor::new(page).unwrap();
    editor.object_mut(1).unwrap().set(&orders.name, "short").unwrap();
    let page = editor.finish(Checksum::None);
    assert!(!page.header().moved && !has(&page, names[1]));
    assert_eq!((name(&page, 1), page.header().edition), (Some("short"), 2));
    orders.verified(&page);
}

#[test]
fn a_full_page_makes_room_or_refuses() {
    let orders = Orders::new();
    let text = "x".repeat(1800);
    let page = orders.page(&[&text, &text]);
    let mut editor = PageEditor::new(page).unwrap();
    let longer = format!("{text}{text}");
    let refused = editor.object_mut(1).unwrap().set(&orders.name, &longer).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Limit);
    assert_eq!(editor.object(1).unwrap().field(1).unwrap().str(), Some(text.as_str()));
    // Only the room of its old version makes the new one fit.
    editor.object_mut(1).unwrap().set(&orders.name, &longer[..1900]).unwrap();
    let page = editor.finish(Checksum::Crc32c);
    assert_eq!(name(&page, 1), Some(&longer[..1900]));
    orders.verified(&page);
}

#[test]
fn large_pages_are_replaced() {
    let orders = Orders::new();
    let page = orders.page(&[&"x".repeat(5000)]);
    assert!(page.header().large);
    for (length, page_bytes, large) in
        [(5001, 8 << 10, true), (9000, 12 << 10, true), (100, 4 << 10, false)]
    {
        let editor = PageEditor::new(page.clone()).unwrap();
        let mut editor = editor.with_page_bytes(4 << 10).unwrap();
        let text = "y".repeat(length);
        editor.object_mut(0).unwrap().set(&orders.name, &text).unwrap();
        let page = editor.finish(Checksum::Crc32c);
        let header = page.header();
        assert_eq!((header.page_bytes, header.large), (page_bytes, large));
        assert_eq!((header.edition, header.moved), (1, false));
        assert_eq!(name(&page, 0), Some(text.as_str()));
        orders.verified(&page);
    }
    let refused = PageEditor::new(orders.page(&["a"])).unwrap().with_page_bytes(8 << 10);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Size);
}

#[test]
fn an_object_that_is_alone_gets_a_large_page() {
    let orders = Orders::new();
    let mut editor = PageEditor::new(orders.page(&["a"])).unwrap();
    let long = "y".repeat(5000);
    for length in [20, 3000, 5000, 12] {
        editor.object_mut(0).unwrap().set(&orders.name, &long[..length]).unwrap();
        let page = editor.finish(Checksum::Crc32c);
        let header = page.header();
        assert_eq!((header.large, header.moved), (length == 5000, length == 3000), "{length}");
        assert_eq!(name(&page, 0), Some(&long[..length]));
        orders.verified(&page);
        editor = PageEditor::new(page).unwrap().with_page_bytes(4 << 10).unwrap();
    }
}

/// Java and C++ have tests that make the same pages.
#[test]
fn the_page_of_an_object_that_is_alone_is_the_same_in_all_languages() {
    let list = |name: &str, item| field(name, Type::List(Box::new(item)), false);
    let item = vec![field("part", Type::Int32, false), field("quantity", Type::Int16, true)];
    let items = list("items", field("item", Type::Struct(item), false));
    let order = Type::Struct(vec![field("date", Type::Date32, true), items]);
    let orders = list("orders", field("order", order, false));
    let fields = vec![field("key", Type::Int32, false), field("name", Type::Utf8, false), orders];
    let layout = Layout::new(Schema { fields }).unwrap();
    let key = layout.mutator::<i32>(&["key"]).unwrap();
    let name = layout.mutator::<str>(&["name"]).unwrap();
    let mut builder = PageBuilder::new(layout, 4 << 10, Checksum::Crc32c).unwrap();
    let customer = builder.build(|customer| {
        customer.set(&key, 1)?;
        customer.set(&name, &"x".repeat(5000))
    });
    customer.unwrap();
    let page = builder.finish().remove(0);
    let mut editor = PageEditor::new(page).unwrap().with_page_bytes(4 << 10).unwrap();
    editor.object_mut(0).unwrap().set(&name, "Miller").unwrap();
    let page = editor.finish(Checksum::Crc32c);
    assert_eq!((page.header().page_bytes, page.header().checksum), (4096, Some(0x6173_1ebd)));
    let mut editor = PageEditor::new(page).unwrap();
    for length in [3000, 5000, 100, 9000] {
        editor.object_mut(0).unwrap().set(&name, &"y".repeat(length)).unwrap();
    }
    let page = editor.finish(Checksum::Crc32c);
    assert_eq!((page.header().page_bytes, page.header().checksum), (12_288, Some(0xd47d_3b9e)));
}

#[test]
fn bytes_are_written_to_any_type_of_their_width() {
    let orders = Orders::new();
    let id = orders.layout.mutator::<[u8]>(&["id"]).unwrap();
    let mut builder = orders.builder();
    builder.build(|order| order.set(&id, &7i64.to_le_bytes())).unwrap();
    assert_eq!(builder.build(|order| order.set(&id, &[7])).unwrap_err().kind(), ErrorKind::Size);
    let mut editor = PageEditor::new(builder.finish().remove(0)).unwrap();
    assert_eq!(editor.object(0).unwrap().field(0).unwrap().i64(), Some(7));
    editor.object_mut(0).unwrap().set(&id, &(-1i64).to_le_bytes()).unwrap();
    let refused = editor.object_mut(0).unwrap().set(&id, &[0; 9]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Size);
    assert_eq!(editor.object(0).unwrap().field(0).unwrap().i64(), Some(-1));
    let refused = orders.layout.mutator::<[u8]>(&["items"]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
}

#[test]
fn fields_of_other_records_are_refused() {
    let orders = Orders::new();
    let other = Layout::new(Schema { fields: vec![field("id", Type::Int64, false)] }).unwrap();
    let mut editor = PageEditor::new(orders.page(&["a"])).unwrap();
    let mut order = editor.object_mut(0).unwrap();
    let refused = [
        order.set(&other.mutator::<i64>(&["id"]).unwrap(), 1),
        order.set(&orders.price, 1),
        order.set(&orders.note, "a"),
        order.clear(&orders.note),
        order.item(&orders.items, 0).unwrap().set(&orders.id, 1),
    ];
    for refused in refused {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unsupported);
    }
    assert_eq!(order.clear(&orders.id).unwrap_err().kind(), ErrorKind::Missing);
    assert_eq!(order.splice(&orders.items, 0..2, 0).unwrap_err().kind(), ErrorKind::Items);
    let too_many = order.splice(&orders.items, 0..1, 1 << 30).unwrap_err();
    assert_eq!(too_many.kind(), ErrorKind::Limit);
    assert!(order.item(&orders.items, 1).is_none());
    let page = editor.finish(Checksum::None);
    assert_eq!((page.header().edition, page.bytes()[64..].to_vec()), {
        (0, orders.page(&["a"]).bytes()[64..].to_vec())
    });
}

#[test]
fn an_item_stays_itself_while_its_object_is_rewritten() {
    let orders = Orders::new();
    let mut editor = PageEditor::new(orders.page(&["a", "b"])).unwrap();
    let mut order = editor.object_mut(0).unwrap();
    order.splice(&orders.items, 1..1, 2).unwrap();
    let mut item = order.item(&orders.items, 1).unwrap();
    item.set(&orders.note, "a note of many bytes").unwrap();
    item.set(&orders.price, 5).unwrap();
    item.clear(&orders.note).unwrap();
    item.set(&orders.note, "another one of many bytes").unwrap();
    order.set(&orders.name, "a name of many bytes").unwrap();
    order.item(&orders.items, 1).unwrap().set(&orders.price, 6).unwrap();
    editor
        .rebuild(1, |old, order| order.set(&orders.id, 10 + old.field(0).unwrap().i64().unwrap()))
        .unwrap();
    let page = editor.finish(Checksum::None);
    orders.verified(&page);
    let items = page.object(0).unwrap().field(2).unwrap().list().unwrap();
    let items = items.iter().map(|item| {
        let item = item.fields().unwrap();
        (item.field(0).unwrap().i64().unwrap(), item.field(1).unwrap().str())
    });
    let expected = [(100, None), (6, Some("another one of many bytes")), (0, None)];
    assert_eq!(items.collect::<Vec<_>>(), expected);
    assert_eq!(page.object(1).unwrap().field(0).unwrap().i64(), Some(11));
    assert_eq!(name(&page, 1), None);
}

/// A few bytes can say that a list has 2³¹ - 1 of them.
#[test]
fn items_without_bytes_take_no_time() {
    let nulls = |name| field(name, Type::List(Box::new(field("item", Type::Null, true))), false);
    let fields = vec![nulls("nulls"), field("name", Type::Utf8, false)];
    let layout = Layout::new(Schema { fields }).unwrap();
    let (list, name) = (layout.list_mutator(&["nulls"]).unwrap(), layout.mutator::<str>(&["name"]));
    let mut pages = PageBuilder::new(layout.clone(), 4 << 10, Checksum::None).unwrap();
    pages.build(|_| Ok(())).unwrap();
    let mut editor = PageEditor::new(pages.finish().remove(0)).unwrap();
    let count = (1 << 31) - 2;
    editor.object_mut(0).unwrap().splice(&list, 0..0, count).unwrap();
    editor.object_mut(0).unwrap().set(&name.unwrap(), "it has a tail behind them").unwrap();
    let page = editor.finish(Checksum::Crc32c);
    let page = VerifiedPage::verify(&layout, page.bytes().clone()).unwrap();
    assert_eq!(page.object(0).unwrap().field(0).unwrap().list().unwrap().len(), count);
}

#[test]
fn misused_builders_append_nothing() {
    let orders = Orders::new();
    let mut builder = orders.builder();
    builder.build(|order| order.set(&orders.id, 1)).unwrap();
    let one = |builder: &mut PageBuilder| builder.build(|order| order.set(&orders.id, 2)).unwrap();
    let kind = |refused: dray_page::Result<()>| refused.unwrap_err().kind();

    let late = builder.build(|order| {
        order.list(&orders.items, 0, |_, _| Ok(()))?;
        order.set(&orders.name, "comes too late")
    });
    assert_eq!(kind(late), ErrorKind::Unsupported);
    let twice = builder.build(|order| {
        order.set(&orders.name, "once")?;
        order.set(&orders.name, "again")
    });
    assert_eq!(kind(twice), ErrorKind::Unsupported);
    let elsewhere = builder.build(|order| order.set(&orders.price, 1));
    assert_eq!(kind(elsewhere), ErrorKind::Unsupported);
    let mut ignored = 0;
    let unfinished = builder.build(|order| {
        ignored +=
            usize::from(order.list(&orders.items, 2, |item, _| item.set(&orders.id, 1)).is_err());
        Ok(())
    });
    assert_eq!((kind(unfinished), ignored), (ErrorKind::Unsupported, 1));
    let too_many = builder.build(|order| order.list(&orders.items, 1 << 28, |_, _| Ok(())));
    assert_eq!(kind(too_many), ErrorKind::Limit);
    let panics = || {
        builder.build(|order| {
            order.set(&orders.name, &"x".repeat(5000))?;
            panic!("a defect of the program")
        })
    };
    catch_unwind(AssertUnwindSafe(panics)).unwrap_err();
    let swallowed = builder.build(|order| {
        let panics = || order.list(&orders.items, 1, |_, _| panic!("a defect of the program"));
        catch_unwind(AssertUnwindSafe(panics)).unwrap_err();
        Ok(())
    });
    assert_eq!(kind(swallowed), ErrorKind::Unsupported);
    one(&mut builder);
    let pages = builder.finish();
    assert_eq!((pages.len(), pages[0].len()), (1, 2));
    orders.verified(&pages[0]);
    assert!(builder.build(|order| order.set(&orders.price, 1)).is_err());
    assert!(builder.finish().is_empty());
}

#[test]
fn an_object_that_outgrows_its_page_moves_on() {
    let orders = Orders::new();
    let mut builder = orders.builder();
    for length in [3000, 500, 2000, 3900, 20_000, 10, 4100] {
        let (name, note) = ("n".repeat(length / 2), "i".repeat(length / 2));
        let built = builder.build(|order| {
            order.set(&orders.name, &name)?;
            order.list(&orders.items, 2, |item, i| match i {
                0 => item.set(&orders.note, &note),
                _ => item.set(&orders.price, 5),
            })
        });
        built.unwrap();
    }
    let pages = builder.finish();
    let shapes =
        pages.iter().map(|page| (page.len(), page.bytes().len() >> 10, page.header().large));
    let expected = [(2, 4, false), (1, 4, false), (1, 4, false), (1, 20, true)];
    let rest = [(1, 4, false), (1, 8, true)];
    assert_eq!(shapes.collect::<Vec<_>>(), [&expected[..], &rest].concat());
    pages.iter().for_each(|page| orders.verified(page));
    assert!(pages.iter().enumerate().all(|(i, page)| page.header().sequence == i as u64));
}
