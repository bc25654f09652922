//! Measures generated accessors: `cargo run --release -p dray-accessors --example customers
//! [scale]`.
//!
//! Customers with their orders, and these with their line items of 15 fields (TPC-H). Medians in
//! nanoseconds per line item, and for changes per change:
//!
//! - read: all numbers of verified objects are added up, and the lengths of all strings;
//! - verify: pages of unknown origin, without a checksum;
//! - change: one number of an object that is found by its slot and the positions in its lists;
//! - build: pages of columns, or of values one by one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement stops by them"
)]

#[rustfmt::skip]
#[path = "../tests/generated/tpch.rs"]
mod tpch;

use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dray_format::{Batch, Checksum};
use dray_page::{
    Accessor, ColumnsBuilder, Layout, ListAccessor, Object, PAGE_BYTES, PageBuilder, PageEditor,
    VerifiedPage,
};
use tpch::{Customer, CustomerBuilder, CustomerFields, CustomerMut, CustomerPage};
use tpchgen::generators::{LineItem, LineItemGenerator};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Orders per customer.
const ORDERS: usize = 10;
const RUNS: Duration = Duration::from_millis(1000);

/// Adds up numbers and lengths.
fn add(sum: u64, value: i64) -> u64 {
    sum.wrapping_mul(3).wrapping_add(value as u64)
}

/// Reads a customer by generated accessors.
fn sum(customer: Customer<'_>) -> u64 {
    let mut sum = add(0, customer.custkey());
    for order in customer.orders().iter() {
        sum = add(sum, order.orderkey());
        for item in order.items().iter() {
            let longs = [
                item.orderkey(),
                item.partkey(),
                item.suppkey(),
                item.extendedprice(),
                item.discount(),
                item.tax(),
            ];
            let ints = [item.linenumber(), item.shipdate(), item.commitdate(), item.receiptdate()];
            let texts = [
                item.returnflag_bytes(),
                item.linestatus_bytes(),
                item.shipinstruct_bytes(),
                item.shipmode_bytes(),
                item.comment_bytes(),
            ];
            sum = longs.into_iter().fold(sum, add);
            sum = ints.into_iter().fold(sum, |sum, int| add(sum, i64::from(int)));
            sum = texts.into_iter().fold(sum, |sum, text| add(sum, text.len() as i64));
        }
    }
    sum
}

/// As [`sum`], with strings that are checked for UTF-8 again.
fn sum_of_texts(customer: Customer<'_>) -> u64 {
    let mut sum = 0;
    for order in customer.orders().iter() {
        for item in order.items().iter() {
            let texts = [
                item.returnflag(),
                item.linestatus(),
                item.shipinstruct(),
                item.shipmode(),
                item.comment(),
            ];
            sum = texts.into_iter().fold(sum, |sum, text| add(sum, text.len() as i64));
        }
    }
    sum
}

/// The fields of customers, looked up.
struct Accessors {
    custkey: Accessor<i64>,
    orders: ListAccessor,
    orderkey: Accessor<i64>,
    items: ListAccessor,
    longs: [Accessor<i64>; 6],
    ints: [Accessor<i32>; 4],
    texts: [Accessor<[u8]>; 5],
}

impl Accessors {
    fn of(layout: &Layout) -> dray_page::Result<Self> {
        let item = |name: &'static str| ["orders", "[]", "items", "[]", name];
        let longs = ["orderkey", "partkey", "suppkey", "extendedprice", "discount", "tax"];
        let ints = ["linenumber", "shipdate", "commitdate", "receiptdate"];
        let texts = ["returnflag", "linestatus", "shipinstruct", "shipmode", "comment"];
        Ok(Self {
            custkey: layout.accessor(&["custkey"])?,
            orders: layout.list_accessor(&["orders"])?,
            orderkey: layout.accessor(&["orders", "[]", "orderkey"])?,
            items: layout.list_accessor(&["orders", "[]", "items"])?,
            longs: longs.map(|name| layout.accessor(&item(name)).unwrap()),
            ints: ints.map(|name| layout.accessor(&item(name)).unwrap()),
            texts: texts.map(|name| layout.accessor(&item(name)).unwrap()),
        })
    }

    fn sum(&self, object: Object<'_>) -> u64 {
        let mut sum = add(0, self.custkey.get(object).unwrap());
        for order in self.orders.get(object).unwrap() {
            sum = add(sum, self.orderkey.get(order).unwrap());
            for item in self.items.get(order).unwrap() {
                let longs = self.longs.iter().map(|long| long.get(item).unwrap());
                sum = longs.fold(sum, add);
                let ints = self.ints.iter().map(|int| i64::from(int.get(item).unwrap()));
                sum = ints.fold(sum, add);
                let texts = self.texts.iter().map(|text| text.get(item).unwrap().len() as i64);
                sum = texts.fold(sum, add);
            }
        }
        sum
    }
}

/// Orders, each with its line items, in the order of their keys.
fn orders(items: &[LineItem<'_>]) -> Vec<Range<usize>> {
    let (mut orders, mut start) = (Vec::new(), 0);
    for i in 1..=items.len() {
        if items.get(i).is_none_or(|item| item.l_orderkey != items[start].l_orderkey) {
            orders.push(start..i);
            start = i;
        }
    }
    orders
}

/// Writes a customer with these orders.
fn write(
    customer: &mut CustomerBuilder<'_, '_>,
    key: i64,
    orders: &[Range<usize>],
    items: &[LineItem<'_>],
) -> dray_page::Result<()> {
    customer.set_custkey(key)?;
    customer.orders(orders.len(), |order, i| {
        let items = &items[orders[i].clone()];
        order.set_orderkey(key * ORDERS as i64 + i as i64)?;
        order.items(items.len(), |to, i| {
            let item = &items[i];
            to.set_orderkey(item.l_orderkey)?;
            to.set_partkey(item.l_partkey)?;
            to.set_suppkey(item.l_suppkey)?;
            to.set_extendedprice(item.l_extendedprice.0)?;
            to.set_discount(item.l_discount.0)?;
            to.set_tax(item.l_tax.0)?;
            to.set_linenumber(item.l_linenumber)?;
            to.set_shipdate(item.l_shipdate.to_unix_epoch())?;
            to.set_commitdate(item.l_commitdate.to_unix_epoch())?;
            to.set_receiptdate(item.l_receiptdate.to_unix_epoch())?;
            to.set_returnflag(item.l_returnflag)?;
            to.set_linestatus(item.l_linestatus)?;
            to.set_shipinstruct(item.l_shipinstruct)?;
            to.set_shipmode(item.l_shipmode)?;
            to.set_comment(item.l_comment)
        })
    })
}

fn build(
    layout: &Arc<Layout>,
    orders: &[Range<usize>],
    items: &[LineItem<'_>],
) -> dray_page::Result<Vec<VerifiedPage>> {
    let mut pages = PageBuilder::new(layout.clone(), PAGE_BYTES, Checksum::None)?;
    for (key, orders) in orders.chunks(ORDERS).enumerate() {
        CustomerBuilder::build(&mut pages, |to| write(to, key as i64, orders, items))?;
    }
    Ok(pages.finish())
}

fn shuffled(count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut state = 1_u64;
    for i in (1..count).rev() {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        order.swap(i, (state >> 33) as usize % (i + 1));
    }
    order
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scale = std::env::args().nth(1).map_or(Ok(0.1), |scale| scale.parse::<f64>())?;
    let items: Vec<LineItem<'_>> = LineItemGenerator::new(scale, 1, 1).iter().collect();
    let orders = orders(&items);
    let layout = CustomerFields::get()?.layout().clone();
    let pages = build(&layout, &orders, &items)?;
    let bytes: usize = pages.iter().map(|page| page.header().objects_end as usize - 64).sum();
    let count = items.len() as f64;
    println!("{} line items, {:.0} bytes each", items.len(), bytes as f64 / count);
    let show = |what: &str, ns: f64| println!("{what:44}{:>8.2}", ns / count);

    let objects: Vec<Object<'_>> = pages.iter().flat_map(VerifiedPage::objects).collect();
    let customers: Vec<Customer<'_>> =
        pages.iter().flat_map(|page| CustomerPage::of(page).unwrap().iter()).collect();
    let random = shuffled(objects.len());
    let accessors = Accessors::of(&layout)?;
    let expected = objects.iter().fold(0, |all: u64, object| all ^ accessors.sum(*object));
    assert_eq!(expected, customers.iter().fold(0, |all, customer| all ^ sum(*customer)));
    let in_order: Vec<usize> = (0..objects.len()).collect();
    let over = |order: &[usize], sum: &dyn Fn(usize) -> u64| {
        order.iter().fold(0, |all: u64, i| all ^ sum(*i))
    };
    let generated = |i: usize| sum(customers[i]);
    let looked_up = |i: usize| accessors.sum(objects[i]);
    let texts = |i: usize| sum_of_texts(customers[i]);
    show("read, generated, in order", median(|| over(&in_order, &generated)));
    show("read, generated, random", median(|| over(&random, &generated)));
    show("read, looked up, in order", median(|| over(&in_order, &looked_up)));
    show("read, looked up, random", median(|| over(&random, &looked_up)));
    show("read only strings, as &str, in order", median(|| over(&in_order, &texts)));
    let verify = || {
        let verify = |page: &VerifiedPage| VerifiedPage::verify(&layout, page.bytes().clone());
        pages.iter().map(|page| verify(page).unwrap().len()).sum::<usize>()
    };
    let ns = median(verify);
    show("verify", ns);
    println!("{:44}{:>8.2}", "verify, GB/s", bytes as f64 / ns);

    let batch: Batch = {
        let mut columns = ColumnsBuilder::new(layout.clone(), u64::MAX);
        columns.append(objects.iter().copied())?;
        columns.finish()
    };
    let append = || {
        let mut builder = PageBuilder::new(layout.clone(), PAGE_BYTES, Checksum::None).unwrap();
        builder.append(&batch).unwrap();
        builder.finish()
    };
    assert!(append().iter().zip(&pages).all(|(a, b)| a.bytes() == b.bytes()));
    show("build of columns", median(append));
    show("build by generated builders", median(|| build(&layout, &orders, &items).unwrap()));
    changes(&layout, &pages);
    Ok(())
}

/// Changes one number of each object of a page, in a random order.
fn changes(layout: &Arc<Layout>, pages: &[VerifiedPage]) {
    let mut editor = PageEditor::new(pages[0].clone()).unwrap();
    let order = shuffled(editor.len());
    let list = layout.list_mutator(&["orders"]).unwrap();
    let items = layout.list_mutator(&["orders", "[]", "items"]).unwrap();
    let price = layout.mutator::<i64>(&["orders", "[]", "items", "[]", "extendedprice"]).unwrap();
    let rounds = 200;
    let show = |what: &str, ns: f64| {
        println!("{what:44}{:>8.2}", ns / (rounds * order.len()) as f64);
    };
    let changed = median(|| {
        for round in 0..rounds {
            for slot in &order {
                let mut object = editor.object_mut(*slot).unwrap();
                let mut order = object.item(&list, slot % 2).unwrap();
                order.item(&items, 0).unwrap().set(&price, round as i64).unwrap();
            }
        }
    });
    show("change of a number, by mutators", changed);
    let changed = median(|| {
        for round in 0..rounds {
            for slot in &order {
                let mut customer = CustomerMut::of(&mut editor, *slot).unwrap().unwrap();
                let mut order = customer.orders_item(slot % 2).unwrap();
                order.items_item(0).unwrap().set_extendedprice(round as i64).unwrap();
            }
        }
    });
    show("change of a number, generated", changed);
    let changed = median(|| {
        for slot in &order {
            let mut object = editor.object_mut(*slot).unwrap();
            let mut order = object.item(&list, 0).unwrap();
            let mut item = order.item(&items, 0).unwrap();
            for round in 0..rounds {
                item.set(&price, black_box(round as i64)).unwrap();
            }
        }
    });
    show("change of a number of an item at hand", changed);
    let custkey = layout.mutator::<i64>(&["custkey"]).unwrap();
    let changed = median(|| {
        for round in 0..rounds {
            for slot in &order {
                editor.object_mut(*slot).unwrap().set(&custkey, round as i64).unwrap();
            }
        }
    });
    show("change of a number of an object", changed);
    let comment = layout.mutator::<str>(&["orders", "[]", "items", "[]", "comment"]).unwrap();
    let text = "a comment of another length";
    let rewritten = median(|| {
        for round in 0..rounds {
            for slot in &order {
                let mut object = editor.object_mut(*slot).unwrap();
                let mut order = object.item(&list, 0).unwrap();
                let mut item = order.item(&items, 0).unwrap();
                item.set(&comment, &text[..16 + round % 2]).unwrap();
            }
        }
    });
    show("rewriting an object of 40 line items", rewritten);
}

/// The median time of a run in nanoseconds.
fn median<T>(mut run: impl FnMut() -> T) -> f64 {
    black_box(run());
    let (start, mut times) = (Instant::now(), Vec::new());
    while start.elapsed() < RUNS || times.len() < 5 {
        let before = Instant::now();
        let made = black_box(run());
        times.push(before.elapsed().as_nanos() as f64);
        drop(made);
    }
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}
