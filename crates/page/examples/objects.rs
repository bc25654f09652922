//! Measures how fast whole nested objects are read in place: `cargo run --release -p dray-page
//! --example objects [scale]`.
//!
//! Customers with their orders, and these with their line items (TPC-H), as objects in pages, as a
//! FlatBuffer each, and as one Arrow IPC stream. Each is read as a whole: all numbers are added up,
//! and the lengths of all strings. Medians in nanoseconds per object and per line item:
//!
//! - `checked, in order`: bytes of unknown origin are verified once, and then all is read. Arrow's
//!   are decoded and fully validated.
//! - `in order`, `random`: the same for bytes that were verified before.
//!
//! Fields of pages and Arrow's columns are looked up once, not for each object. `pages, as values`
//! consults the layout for each value.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement stops by them"
)]

use dray_format::Checksum;
use std::error::Error;
use std::hint::black_box;
use std::io::Cursor;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Date32Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
    StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Fields, Schema};
use dray_format::arrow::{batch_from_arrow, schema_from_arrow};
use dray_page::{
    Access, Accessor, Layout, ListAccessor, Object, PAGE_BYTES, PageBuilder, Value, VerifiedPage,
};
use tpchgen::generators::{LineItem, LineItemGenerator};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Orders per customer.
const ORDERS: usize = 10;
const RUNS: Duration = Duration::from_millis(1500);
/// The strings of a line item, behind its six numbers of eight bytes, one of four and three dates.
const STRINGS: usize = 5;
const NAMES: [&str; 15] = [
    "orderkey",
    "partkey",
    "suppkey",
    "extendedprice",
    "discount",
    "tax",
    "linenumber",
    "shipdate",
    "commitdate",
    "receiptdate",
    "returnflag",
    "linestatus",
    "shipinstruct",
    "shipmode",
    "comment",
];

/// The checksum of an object's values.
type Sum = u64;

/// Adds up numbers and lengths.
fn add(sum: Sum, value: i64) -> Sum {
    sum.wrapping_mul(3).wrapping_add(value as u64)
}

fn longs(item: &LineItem<'_>) -> [i64; 6] {
    [
        item.l_orderkey,
        item.l_partkey,
        item.l_suppkey,
        item.l_extendedprice.0,
        item.l_discount.0,
        item.l_tax.0,
    ]
}

fn dates(item: &LineItem<'_>) -> [i32; 3] {
    [item.l_shipdate, item.l_commitdate, item.l_receiptdate].map(|date| date.to_unix_epoch())
}

fn strings<'a>(item: &'a LineItem<'a>) -> [&'a str; STRINGS] {
    [item.l_returnflag, item.l_linestatus, item.l_shipinstruct, item.l_shipmode, item.l_comment]
}

/// Orders, each with its line items, in the order of their keys.
fn orders(items: &[LineItem<'_>]) -> Vec<std::ops::Range<usize>> {
    let mut orders = Vec::new();
    let mut start = 0;
    for i in 1..=items.len() {
        if items.get(i).is_none_or(|item| item.l_orderkey != items[start].l_orderkey) {
            orders.push(start..i);
            start = i;
        }
    }
    orders
}

fn list(name: &str, items: StructArray, ends: impl Iterator<Item = usize>) -> ListArray {
    let offsets: Vec<i32> = [0].into_iter().chain(ends.map(|end| end as i32)).collect();
    let field = Arc::new(Field::new(name, items.data_type().clone(), false));
    ListArray::new(field, OffsetBuffer::new(offsets.into()), Arc::new(items), None)
}

/// Customers as Arrow has them.
fn as_arrow(items: &[LineItem<'_>], orders: &[std::ops::Range<usize>]) -> RecordBatch {
    let mut columns: Vec<ArrayRef> = Vec::new();
    for i in 0..6 {
        columns
            .push(Arc::new(Int64Array::from_iter_values(items.iter().map(|item| longs(item)[i]))));
    }
    columns
        .push(Arc::new(Int32Array::from_iter_values(items.iter().map(|item| item.l_linenumber))));
    for i in 0..3 {
        columns
            .push(Arc::new(Date32Array::from_iter_values(items.iter().map(|item| dates(item)[i]))));
    }
    for i in 0..STRINGS {
        columns.push(Arc::new(StringArray::from_iter_values(
            items.iter().map(|item| strings(item)[i].to_owned()),
        )));
    }
    let field =
        |(name, column): (&&str, &ArrayRef)| Field::new(*name, column.data_type().clone(), false);
    let fields: Fields = NAMES.iter().zip(&columns).map(field).collect();
    let items = list(
        "items",
        StructArray::new(fields, columns, None),
        orders.iter().map(|order| order.end),
    );
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..orders.len() as i64));
    let fields = [
        Field::new("orderkey", DataType::Int64, false),
        Field::new("items", items.data_type().clone(), false),
    ];
    let orders_array =
        StructArray::new(fields.into_iter().collect(), vec![keys, Arc::new(items)], None);
    let customers = orders.len().div_ceil(ORDERS);
    let ends = (1..=customers).map(|customer| (customer * ORDERS).min(orders.len()));
    let lists = list("orders", orders_array, ends);
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..customers as i64));
    let fields = [
        Field::new("custkey", DataType::Int64, false),
        Field::new("orders", lists.data_type().clone(), false),
    ];
    RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), vec![keys, Arc::new(lists)])
        .unwrap()
}

/// FlatBuffers: the code that its compiler would generate for these three tables, as far as it is
/// needed here.
mod flat {
    use flatbuffers::{
        FlatBufferBuilder, Follow, ForwardsUOffset, InvalidFlatbuffer, Table, Vector, Verifiable,
        Verifier, WIPOffset,
    };
    use tpchgen::generators::LineItem;

    use super::{STRINGS, Sum, add, dates, longs, strings};

    /// Where field `i` is in a vtable.
    const fn slot(i: usize) -> u16 {
        4 + 2 * i as u16
    }

    macro_rules! table {
        ($name:ident, |$table:ident, $verifier:ident| $verify:expr) => {
            #[derive(Clone, Copy)]
            pub struct $name<'a>(Table<'a>);

            impl<'a> Follow<'a> for $name<'a> {
                type Inner = Self;

                unsafe fn follow(bytes: &'a [u8], at: usize) -> Self {
                    // SAFETY: the caller promises what `Follow::follow` asks: at `at` of `bytes`
                    // there is a valid table of this type. `Table::new` asks the same.
                    Self(unsafe { Table::new(bytes, at) })
                }
            }

            impl Verifiable for $name<'_> {
                fn run_verifier(
                    $verifier: &mut Verifier<'_, '_>,
                    at: usize,
                ) -> Result<(), InvalidFlatbuffer> {
                    let $table = $verifier.visit_table(at)?;
                    $verify.finish();
                    Ok(())
                }
            }
        };
    }
    type List<'a, T> = ForwardsUOffset<Vector<'a, ForwardsUOffset<T>>>;

    table!(Item, |table, verifier| {
        let mut table = table;
        for i in 0..6 {
            table = table.visit_field::<i64>("long", slot(i), false)?;
        }
        for i in 6..10 {
            table = table.visit_field::<i32>("int", slot(i), false)?;
        }
        for i in 10..10 + STRINGS {
            table = table.visit_field::<ForwardsUOffset<&str>>("string", slot(i), true)?;
        }
        table
    });
    table!(Order, |table, verifier| table
        .visit_field::<i64>("orderkey", slot(0), false)?
        .visit_field::<ForwardsUOffset<Vector<'_, ForwardsUOffset<Item<'_>>>>>(
        "items",
        slot(1),
        true
    )?);
    table!(Customer, |table, verifier| table
        .visit_field::<i64>("custkey", slot(0), false)?
        .visit_field::<ForwardsUOffset<Vector<'_, ForwardsUOffset<Order<'_>>>>>(
        "orders",
        slot(1),
        true
    )?);

    impl<'a> Customer<'a> {
        pub fn sum(self) -> Sum {
            // SAFETY: the table is of a buffer that was verified or built by this program, with
            // fields of these types in these slots.
            let (key, orders) = unsafe {
                (
                    self.0.get::<i64>(slot(0), Some(0)),
                    self.0.get::<List<'a, Order<'a>>>(slot(1), None),
                )
            };
            let mut sum = add(0, key.unwrap());
            for order in orders.unwrap() {
                // SAFETY: as for the customer above.
                let (key, items) = unsafe {
                    (
                        order.0.get::<i64>(slot(0), Some(0)),
                        order.0.get::<List<'a, Item<'a>>>(slot(1), None),
                    )
                };
                sum = add(sum, key.unwrap());
                for item in items.unwrap() {
                    for i in 0..6 {
                        // SAFETY: as for the customer above.
                        sum = add(sum, unsafe { item.0.get::<i64>(slot(i), Some(0)) }.unwrap());
                    }
                    for i in 6..10 {
                        // SAFETY: as for the customer above.
                        sum = add(
                            sum,
                            i64::from(unsafe { item.0.get::<i32>(slot(i), Some(0)) }.unwrap()),
                        );
                    }
                    for i in 10..10 + STRINGS {
                        // SAFETY: as for the customer above.
                        let string = unsafe { item.0.get::<ForwardsUOffset<&str>>(slot(i), None) };
                        sum = add(sum, string.unwrap().len() as i64);
                    }
                }
            }
            sum
        }
    }

    /// A customer with these orders.
    pub fn customer(key: i64, first_order: i64, orders: &[&[LineItem<'_>]]) -> Vec<u8> {
        let mut builder = FlatBufferBuilder::new();
        let mut of_customer = Vec::new();
        for (number, items) in orders.iter().enumerate() {
            let mut of_order = Vec::new();
            for item in *items {
                let texts = strings(item).map(|text| builder.create_string(text));
                let start = builder.start_table();
                longs(item)
                    .iter()
                    .enumerate()
                    .for_each(|(i, value)| builder.push_slot_always(slot(i), *value));
                builder.push_slot_always(slot(6), item.l_linenumber);
                dates(item)
                    .iter()
                    .enumerate()
                    .for_each(|(i, date)| builder.push_slot_always(slot(7 + i), *date));
                texts
                    .iter()
                    .enumerate()
                    .for_each(|(i, text)| builder.push_slot_always(slot(10 + i), *text));
                let end = builder.end_table(start);
                of_order.push(WIPOffset::<Item<'_>>::new(end.value()));
            }
            let items = builder.create_vector(&of_order);
            let start = builder.start_table();
            builder.push_slot_always(slot(0), first_order + number as i64);
            builder.push_slot_always(slot(1), items);
            let end = builder.end_table(start);
            of_customer.push(WIPOffset::<Order<'_>>::new(end.value()));
        }
        let orders = builder.create_vector(&of_customer);
        let start = builder.start_table();
        builder.push_slot_always(slot(0), key);
        builder.push_slot_always(slot(1), orders);
        let end = builder.end_table(start);
        builder.finish_minimal(WIPOffset::<Customer<'_>>::new(end.value()));
        builder.finished_data().to_vec()
    }
}

/// The items of a present list.
fn items<'a>(value: Option<Value<'a>>) -> impl Iterator<Item = Value<'a>> {
    value.and_then(|value| value.list()).unwrap().iter()
}

/// Reads an object of a page by values, which consult the layout.
fn sum_of_values(object: Object<'_>) -> Sum {
    let customer = object.fields();
    let number = |value: Option<Value<'_>>| value.and_then(|value| value.i64()).unwrap();
    let mut sum = add(0, number(customer.field(0)));
    for order in items(customer.field(1)) {
        let order = order.fields().unwrap();
        sum = add(sum, number(order.field(0)));
        for item in items(order.field(1)) {
            for (i, value) in item.fields().unwrap().iter().enumerate() {
                sum = add(
                    sum,
                    match i {
                        0..6 => value.i64().unwrap(),
                        6..10 => i64::from(value.i32().unwrap()),
                        _ => value.bytes().unwrap().len() as i64,
                    },
                );
            }
        }
    }
    sum
}

/// The fields of customers in pages.
struct Accessors {
    custkey: Accessor<i64>,
    orders: ListAccessor,
    orderkey: Accessor<i64>,
    items: ListAccessor,
    longs: [Accessor<i64>; 6],
    ints: [Accessor<i32>; 4],
    strings: [Accessor<[u8]>; STRINGS],
}

impl Accessors {
    fn of(layout: &Layout) -> Result<Self, dray_page::Error> {
        fn of_items<T: Access + ?Sized, const N: usize>(
            layout: &Layout,
            from: usize,
        ) -> Result<[Accessor<T>; N], dray_page::Error> {
            let accessor = |name: &&str| layout.accessor(&["orders", "[]", "items", "[]", name]);
            let accessors =
                NAMES[from..from + N].iter().map(accessor).collect::<Result<Vec<_>, _>>()?;
            Ok(std::array::from_fn(|i| accessors[i]))
        }
        Ok(Self {
            custkey: layout.accessor(&["custkey"])?,
            orders: layout.list_accessor(&["orders"])?,
            orderkey: layout.accessor(&["orders", "[]", "orderkey"])?,
            items: layout.list_accessor(&["orders", "[]", "items"])?,
            longs: of_items(layout, 0)?,
            ints: of_items(layout, 6)?,
            strings: of_items(layout, 10)?,
        })
    }

    fn sum(&self, object: Object<'_>) -> Sum {
        let mut sum = add(0, self.custkey.get(object).unwrap());
        for order in self.orders.get(object).unwrap() {
            sum = add(sum, self.orderkey.get(order).unwrap());
            for item in self.items.get(order).unwrap() {
                sum = self.longs.iter().fold(sum, |sum, long| add(sum, long.get(item).unwrap()));
                sum = self
                    .ints
                    .iter()
                    .fold(sum, |sum, int| add(sum, i64::from(int.get(item).unwrap())));
                sum = self
                    .strings
                    .iter()
                    .fold(sum, |sum, text| add(sum, text.get(item).unwrap().len() as i64));
            }
        }
        sum
    }
}

/// The columns of Arrow's customers.
struct Columns<'a> {
    custkeys: &'a Int64Array,
    orders: &'a ListArray,
    orderkeys: &'a Int64Array,
    items: &'a ListArray,
    longs: [&'a Int64Array; 6],
    line_numbers: &'a Int32Array,
    dates: [&'a Date32Array; 3],
    strings: [&'a StringArray; STRINGS],
}

impl<'a> Columns<'a> {
    fn of(batch: &'a RecordBatch) -> Self {
        let orders = batch.column(1).as_list::<i32>();
        let order = orders.values().as_struct();
        let items = order.column(1).as_list::<i32>();
        let item = items.values().as_struct();
        Self {
            custkeys: batch.column(0).as_primitive::<Int64Type>(),
            orders,
            orderkeys: order.column(0).as_primitive::<Int64Type>(),
            items,
            longs: std::array::from_fn(|i| item.column(i).as_primitive::<Int64Type>()),
            line_numbers: item.column(6).as_primitive::<Int32Type>(),
            dates: std::array::from_fn(|i| item.column(7 + i).as_primitive::<Date32Type>()),
            strings: std::array::from_fn(|i| item.column(10 + i).as_string::<i32>()),
        }
    }

    fn sum(&self, customer: usize) -> Sum {
        let range = |list: &ListArray, i: usize| {
            let offsets = list.value_offsets();
            offsets[i] as usize..offsets[i + 1] as usize
        };
        let mut sum = add(0, self.custkeys.value(customer));
        for order in range(self.orders, customer) {
            sum = add(sum, self.orderkeys.value(order));
            for item in range(self.items, order) {
                sum = self.longs.iter().fold(sum, |sum, column| add(sum, column.value(item)));
                sum = add(sum, i64::from(self.line_numbers.value(item)));
                sum = self
                    .dates
                    .iter()
                    .fold(sum, |sum, column| add(sum, i64::from(column.value(item))));
                sum = self
                    .strings
                    .iter()
                    .fold(sum, |sum, column| add(sum, column.value(item).len() as i64));
            }
        }
        sum
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let scale = std::env::args().nth(1).map_or(Ok(0.1), |scale| scale.parse::<f64>())?;
    let items: Vec<LineItem<'_>> = LineItemGenerator::new(scale, 1, 1).iter().collect();
    let orders = orders(&items);
    let batch = as_arrow(&items, &orders);
    let layout = Layout::new(schema_from_arrow(&batch.schema())?)?;
    let mut builder = PageBuilder::new(layout.clone(), PAGE_BYTES, Checksum::Crc32c)?;
    builder.append(&batch_from_arrow(&batch)?)?;
    let pages = builder.finish();
    let buffers: Vec<Vec<u8>> = orders
        .chunks(ORDERS)
        .enumerate()
        .map(|(customer, orders)| {
            let of_orders: Vec<&[LineItem<'_>]> =
                orders.iter().map(|order| &items[order.clone()]).collect();
            flat::customer(customer as i64, (customer * ORDERS) as i64, &of_orders)
        })
        .collect();
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(&batch)?;
    let stream = writer.into_inner()?;

    let customers = batch.num_rows();
    println!("{customers} customers, {} orders, {} line items", orders.len(), items.len());
    let mut random: Vec<usize> = (0..customers).collect();
    let mut state = 1_u64;
    for i in (1..customers).rev() {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        random.swap(i, (state >> 33) as usize % (i + 1));
    }
    let in_order: Vec<usize> = (0..customers).collect();
    let objects: Vec<Object<'_>> = pages.iter().flat_map(VerifiedPage::objects).collect();
    let columns = Columns::of(&batch);
    // SAFETY: this program built each buffer with a customer as its root.
    let of_buffer = |customer: usize| unsafe {
        flatbuffers::root_unchecked::<flat::Customer<'_>>(&buffers[customer])
    };
    let total = |sum: &dyn Fn(usize) -> Sum, order: &[usize]| {
        order.iter().fold(0, |all: Sum, i| all ^ sum(*i))
    };

    let accessors = Accessors::of(&layout)?;
    let verified =
        |page: &VerifiedPage| VerifiedPage::verify(&layout, page.bytes().clone()).unwrap();
    let checked_pages = || -> Sum {
        let accessors = Accessors::of(&layout).unwrap();
        let sum =
            |page: VerifiedPage| page.objects().fold(0, |all, object| all ^ accessors.sum(object));
        pages.iter().map(|page| sum(verified(page))).fold(0, |all, sum| all ^ sum)
    };
    let checked_values = || -> Sum {
        let sum =
            |page: VerifiedPage| page.objects().fold(0, |all, object| all ^ sum_of_values(object));
        pages.iter().map(|page| sum(verified(page))).fold(0, |all, sum| all ^ sum)
    };
    let checked_buffers = || -> Sum {
        let checked =
            buffers.iter().map(|buffer| flatbuffers::root::<flat::Customer<'_>>(buffer).unwrap());
        checked.fold(0, |all, customer| all ^ customer.sum())
    };
    let checked_arrow = || -> Sum {
        let batch =
            StreamReader::try_new(Cursor::new(&stream), None).unwrap().next().unwrap().unwrap();
        batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
        let columns = Columns::of(&batch);
        (0..batch.num_rows()).fold(0, |all, customer| all ^ columns.sum(customer))
    };
    let object = |i: usize| accessors.sum(objects[i]);
    let values = |i: usize| sum_of_values(objects[i]);
    let buffer = |i: usize| of_buffer(i).sum();
    let arrow = |i: usize| columns.sum(i);
    let expected = checked_pages();
    let checked = [checked_values(), checked_buffers(), checked_arrow()];
    let others = [
        total(&object, &random),
        total(&values, &random),
        total(&buffer, &random),
        total(&arrow, &random),
    ];
    assert!(checked.iter().chain(&others).all(|sum| *sum == expected));

    let bytes = [
        pages.iter().map(|page| page.bytes().len()).sum::<usize>(),
        buffers.iter().map(Vec::len).sum(),
        stream.len(),
    ];
    println!(
        "{:22}{:>14}{:>24}{:>24}{:>24}",
        "", "bytes", "checked, in order", "in order", "random"
    );
    let row = |name: &str, bytes: usize, checked: &dyn Fn() -> Sum, sum: &dyn Fn(usize) -> Sum| {
        print!("{name:22}{bytes:>14}");
        for ns in
            [median(checked), median(&|| total(sum, &in_order)), median(&|| total(sum, &random))]
        {
            print!("{:>15.0}{:>9.2}", ns / customers as f64, ns / items.len() as f64);
        }
        println!();
    };
    row("pages", bytes[0], &checked_pages, &object);
    row("pages, as values", bytes[0], &checked_values, &values);
    row("FlatBuffers", bytes[1], &checked_buffers, &buffer);
    row("Arrow, IPC", bytes[2], &checked_arrow, &arrow);
    Ok(())
}

/// The median time of a run in nanoseconds.
fn median(run: &dyn Fn() -> Sum) -> f64 {
    black_box(run());
    let start = Instant::now();
    let mut times = Vec::new();
    while start.elapsed() < RUNS || times.len() < 5 {
        let before = Instant::now();
        black_box(run());
        times.push(before.elapsed().as_nanos() as f64);
    }
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}
