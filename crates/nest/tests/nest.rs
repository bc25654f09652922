//! Random tables, nested and compared with a plain join in memory; and what is refused.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, Int8Array, Int32Array, Int64Array, RecordBatch,
    RecordBatchIterator, StringArray, StructArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatchReader;
use dray_nest::{NestOptions, Source, Spec, nest};

/// Tables by their names, which are the statements.
#[derive(Default)]
struct Tables(HashMap<&'static str, Vec<RecordBatch>>);

/// Tables that end the nesting while the rows of a level are merged or sorted.
struct Interrupted {
    tables: Tables,
    at: &'static str,
    asked: Vec<(String, u64)>,
}

impl Source for Interrupted {
    fn run(
        &mut self,
        level: &str,
        sql: &str,
    ) -> Result<Box<dyn RecordBatchReader + Send + '_>, ArrowError> {
        self.tables.run(level, sql)
    }

    fn go_on(&mut self, level: &str, rows: u64) -> bool {
        self.asked.push((level.to_owned(), rows));
        level != self.at
    }
}

impl Source for Tables {
    fn run(
        &mut self,
        _: &str,
        sql: &str,
    ) -> Result<Box<dyn RecordBatchReader + Send + '_>, ArrowError> {
        let batches =
            self.0.get(sql).ok_or(ArrowError::InvalidArgumentError(format!("no table {sql}")))?;
        let schema = batches[0].schema();
        Ok(Box::new(RecordBatchIterator::new(batches.clone().into_iter().map(Ok), schema)))
    }
}

impl Tables {
    /// Adds a table, in batches of a few rows.
    fn add(&mut self, name: &'static str, columns: Vec<(&str, ArrayRef)>) {
        let all = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )
        .unwrap();
        let rows = all.num_rows();
        let from = (0..rows.max(1)).step_by(57);
        let batches = from.map(|from| all.slice(from, 57.min(rows - from))).collect();
        self.0.insert(name, batches);
    }
}

/// Numbers that look random, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

const SPEC: &str = r#"
    sql = "customers"
    order = ["id:desc"]

    [many.orders]
    sql = "orders"
    on = { customer = "id" }
    order = ["day", "order_id"]
    orphans = "drop"

    [many.orders.many.items]
    sql = "items"
    on = { "order" = "order_id" }
    order = ["line"]

    [many.orders.many.items.one.part]
    sql = "parts"
    on = { part_id = "part" }
"#;

type Item = (i32, Option<String>);
type Order = (i64, Option<i32>, Vec<Item>);

/// Tables of random rows, and the objects that they are.
fn tables(seed: u64, rows: u64) -> (Tables, Vec<(i64, String, Vec<Order>)>) {
    let mut random = Random(seed);
    let customers: Vec<i64> = (0..rows).map(|n| n as i64 * 3 - 50).collect();
    // Some orders have no customer, some customers no order.
    let orders: Vec<(i64, Option<i64>, Option<i32>)> = (0..rows * 2)
        .map(|n| {
            let customer = (random.below(20) > 0).then(|| random.below(rows * 3) as i64 - 50);
            (n as i64, customer, (random.below(9) > 0).then(|| random.below(30) as i32))
        })
        .collect();
    let items: Vec<(i64, i32, Option<i64>)> = (0..rows * 5)
        .map(|n| {
            let order = random.below(rows * 2) as i64;
            (order, n as i32, (random.below(7) > 0).then(|| random.below(rows) as i64))
        })
        .collect();
    let parts: Vec<(i64, String)> =
        (0..rows).filter(|n| n % 3 > 0).map(|n| (n as i64, format!("part {n}"))).collect();

    let mut tables = Tables::default();
    let shuffled = |random: &mut Random, count: usize| {
        let mut order: Vec<usize> = (0..count).collect();
        (1..count).for_each(|i| order.swap(i, random.below(i as u64 + 1) as usize));
        order
    };
    let order = shuffled(&mut random, customers.len());
    let ids = Int64Array::from_iter_values(order.iter().map(|i| customers[*i]));
    let names = StringArray::from_iter_values(order.iter().map(|i| format!("c{}", customers[*i])));
    tables.add("customers", vec![("id", Arc::new(ids)), ("name", Arc::new(names))]);
    let order = shuffled(&mut random, orders.len());
    let column = |get: &dyn Fn(usize) -> Option<i64>| -> ArrayRef {
        Arc::new(Int64Array::from_iter(order.iter().map(|i| get(*i))))
    };
    let days = Int32Array::from_iter(order.iter().map(|i| orders[*i].2));
    tables.add(
        "orders",
        vec![
            ("order_id", column(&|i| Some(orders[i].0))),
            ("customer", column(&|i| orders[i].1)),
            ("day", Arc::new(days)),
        ],
    );
    let order = shuffled(&mut random, items.len());
    // Keys of another width than the parent's.
    let keys = Int32Array::from_iter_values(order.iter().map(|i| items[*i].0 as i32));
    let lines = Int32Array::from_iter_values(order.iter().map(|i| items[*i].1));
    let part = Int64Array::from_iter(order.iter().map(|i| items[*i].2));
    tables.add(
        "items",
        vec![("order", Arc::new(keys)), ("line", Arc::new(lines)), ("part", Arc::new(part))],
    );
    let ids = Int64Array::from_iter_values(parts.iter().map(|part| part.0));
    let names = StringArray::from_iter_values(parts.iter().map(|part| part.1.as_str()));
    tables.add("parts", vec![("part_id", Arc::new(ids)), ("part_name", Arc::new(names))]);

    let names: HashMap<i64, String> = parts.into_iter().collect();
    let objects = customers.iter().rev().map(|id| {
        let mut own: Vec<_> = orders.iter().filter(|order| order.1 == Some(*id)).collect();
        own.sort_by_key(|order| (order.2.is_none(), order.2, order.0));
        let own = own.into_iter().map(|order| {
            let mut lines: Vec<_> = items.iter().filter(|item| item.0 == order.0).collect();
            lines.sort_by_key(|item| item.1);
            let lines = lines
                .into_iter()
                .map(|item| (item.1, item.2.and_then(|part| names.get(&part).cloned())));
            (order.0, order.2, lines.collect())
        });
        (*id, format!("c{id}"), own.collect())
    });
    (tables, objects.collect())
}

fn strukt(array: &ArrayRef, row: usize) -> StructArray {
    array.as_list::<i32>().value(row).as_struct().clone()
}

/// What was nested, in the form of [`tables`].
fn objects(batches: &[RecordBatch]) -> Vec<(i64, String, Vec<Order>)> {
    let mut all = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let orders = strukt(batch.column_by_name("orders").unwrap(), row);
            assert_eq!(orders.column_names(), ["order_id", "day", "items"]);
            let own = (0..orders.len()).map(|order| {
                let items = strukt(orders.column(2), order);
                assert_eq!(items.column_names(), ["line", "part", "part_1"]);
                let lines = (0..items.len()).map(|item| {
                    let part = items.column(2).as_struct();
                    let name = part.column(0).as_string::<i32>();
                    let name = part.is_valid(item).then(|| name.value(item).to_owned());
                    (items.column(0).as_primitive::<Int32Type>().value(item), name)
                });
                let day = orders.column(1).as_primitive::<Int32Type>();
                let day = day.is_valid(order).then(|| day.value(order));
                (orders.column(0).as_primitive::<Int64Type>().value(order), day, lines.collect())
            });
            all.push((
                batch.column(0).as_primitive::<Int64Type>().value(row),
                batch.column(1).as_string::<i32>().value(row).to_owned(),
                own.collect(),
            ));
        }
    }
    all
}

#[test]
fn objects_are_those_of_a_join() {
    // A single item's own column may not have the name of what is nested in it.
    let spec: Spec = SPEC.replace("one.part]", "one.part_1]").parse().unwrap();
    for (seed, rows) in [(1, 1), (2, 7), (3, 300), (4, 1000)] {
        for memory_bytes in [2 << 20, 256 << 20] {
            let (mut tables, expected) = tables(seed, rows);
            let options = NestOptions { memory_bytes, ..NestOptions::default() };
            let nested = nest(&spec, &mut tables, &options).unwrap();
            let schema = nested.schema();
            let batches = nested.collect::<Result<Vec<_>, _>>().unwrap();
            assert!(batches.iter().all(|batch| batch.schema() == schema));
            assert_eq!(objects(&batches), expected, "seed {seed}, {rows} rows");
        }
    }
}

#[test]
fn sorting_is_watched_and_ends_early() {
    let spec: Spec = SPEC.replace("one.part]", "one.part_1]").parse().unwrap();
    // Each batch is spilled.
    let (tables, _) = tables(6, 30_000);
    let folder = tempfile::tempdir().unwrap();
    let spill_folder = Some(folder.path().to_owned());
    let options = NestOptions { memory_bytes: 8 << 20, spill_folder, ..NestOptions::default() };
    let mut source = Interrupted { tables, at: "items", asked: Vec::new() };
    let error = nest(&spec, &mut source, &options).map(drop).unwrap_err();
    assert!(matches!(error, dray_nest::Error::Sort(dray_sort::Error::Cancelled)), "{error}");
    let asked = source.asked;
    let mut levels = asked.iter().map(|(level, _)| level.as_str()).collect::<Vec<_>>();
    levels.dedup();
    assert_eq!(levels, ["the outermost level", "orders", "items"]);
    assert!(asked.iter().all(|(_, rows)| *rows > 0), "{asked:?}");
    // What was spilled is gone.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

fn refusal(spec: &str, change: impl FnOnce(&mut Tables)) -> String {
    let (mut tables, _) = tables(5, 60);
    change(&mut tables);
    let spec: Spec = match spec.parse() {
        Ok(spec) => spec,
        Err(error) => return dray_nest::Error::to_string(&error),
    };
    match nest(&spec, &mut tables, &NestOptions::default()) {
        Ok(nested) => nested.collect::<Result<Vec<_>, _>>().unwrap_err().to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn wrong_specifications_and_rows_are_refused() {
    let spec = SPEC.replace("one.part]", "one.part_1]");
    let refused = |from: &str, to: &str| refusal(&spec.replace(from, to), |_| ());
    assert!(
        refused("orphans = \"drop\"", "").contains("orders: a row with the key"),
        "{}",
        refused("orphans = \"drop\"", "")
    );
    assert!(refused("\"orders\"", "\"nothing\"").contains("the statement of orders failed"));
    assert!(refused("customer = \"id\"", "custom = \"id\"").contains("orders: there is no column"));
    assert!(refused("= \"id\" }", "= \"name\" }").contains("cast one of them in its statement"));
    assert!(refused("one.part_1", "one.line").contains("rename one of them"));
    assert!(refused("order = [\"line\"]", "orders = 1").contains("unknown field `orders`"));
    assert!(refused("on = { part_id = \"part\" }", "").contains("`on` must say"));
    let only_keys = |tables: &mut Tables| {
        let parts = tables.0.get_mut("parts").unwrap();
        parts.iter_mut().for_each(|rows| *rows = rows.project(&[0]).unwrap());
    };
    assert!(refusal(&spec, only_keys).contains("part_1: its statement has only the columns of"));
    let twice = |tables: &mut Tables| {
        let rows = tables.0["parts"].clone();
        tables.0.get_mut("parts").unwrap().extend(rows);
    };
    assert!(refusal(&spec, twice).contains("part_1: two rows have the key 1"));
    let twice = |tables: &mut Tables| {
        let rows = tables.0["customers"].clone();
        tables.0.get_mut("customers").unwrap().extend(rows);
    };
    assert!(refusal(&spec, twice).contains("orders: two parents have the key -50"));
}

#[test]
fn a_key_with_a_missing_column_hides_no_other_one() {
    let numbers = |values: &[Option<i64>]| -> ArrayRef { Arc::new(Int64Array::from_iter(values)) };
    let mut tables = Tables::default();
    let keys = |a: &[Option<i64>], b: &[Option<i64>]| vec![("a", numbers(a)), ("b", numbers(b))];
    let (one, two) = (Some(1), Some(2));
    tables.add("parents", keys(&[one, one, two, two, None], &[one, None, one, None, one]));
    let mut children = keys(&[one, one, two, None, two], &[one, None, one, one, None]);
    children.push(("value", numbers(&[Some(11), Some(10), Some(21), Some(1), Some(20)])));
    tables.add("children", children);
    let mut nested = |kind: &str, orphans: &str| {
        let on = "on = { a = \"a\", b = \"b\" }";
        let spec = format!(
            "sql = \"parents\"\norder = [\"a\", \"b\"]\n\
             [{kind}.x]\nsql = \"children\"\n{on}\n{orphans}"
        );
        let nested = nest(&spec.parse().unwrap(), &mut tables, &NestOptions::default());
        let nested = nested.map_err(|error| error.to_string())?;
        let batches = nested.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        let values = batches.iter().flat_map(|batch| {
            let found = batch.column(2);
            (0..batch.num_rows()).map(move |row| match found.data_type() {
                DataType::List(_) => strukt(found, row).column(0).clone(),
                _ => found.as_struct().column(0).slice(row, usize::from(found.is_valid(row))),
            })
        });
        let numbers = values.map(|values| values.as_primitive::<Int64Type>().values().to_vec());
        Ok::<_, String>(numbers.collect::<Vec<_>>())
    };
    let expected = Ok(vec![vec![11], vec![], vec![21], vec![], vec![]]);
    assert_eq!(nested("one", ""), expected);
    assert_eq!(nested("many", "orphans = \"drop\""), expected);
    let refused = nested("many", "").unwrap_err();
    assert!(refused.contains("x: a row with the key 1, NULL has no parent"), "{refused}");
}

#[test]
fn parents_without_a_single_child_take_children_without_nulls() {
    let numbers =
        |values: &[i64]| -> ArrayRef { Arc::new(Int64Array::from_iter_values(values.to_vec())) };
    // No column is nullable.
    let table = |columns: Vec<(&str, ArrayRef)>| {
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        assert!(rows.schema().fields().iter().all(|field| !field.is_nullable()));
        vec![rows]
    };
    let mut tables = Tables::default();
    // These are merged by buyer, then sorted by number.
    let orders = vec![("number", numbers(&[1, 2, 3, 4])), ("buyer", numbers(&[1, 2, 3, 2]))];
    tables.0.insert("orders", table(orders));
    let names: ArrayRef = Arc::new(StringArray::from(vec!["b", "d"]));
    tables.0.insert("persons", table(vec![("id", numbers(&[2, 4])), ("name", names)]));
    tables.0.insert("homes", table(vec![("of", numbers(&[4])), ("town", numbers(&[9]))]));
    tables.0.insert("cars", table(vec![("owner", numbers(&[2, 2])), ("wheels", numbers(&[3, 4]))]));
    let spec = |within: &str| {
        format!(
            "sql = \"orders\"\norder = [\"number\"]\n\
             [one.person]\nsql = \"persons\"\non = {{ id = \"buyer\" }}\n{within}"
        )
    };
    let mut nested = |within: &str| {
        let spec = spec(within).parse().unwrap();
        let nested = nest(&spec, &mut tables, &NestOptions::default()).unwrap();
        let batches = nested.collect::<Result<Vec<_>, _>>().unwrap();
        let [batch] = &batches[..] else { panic!("{} batches", batches.len()) };
        let persons = batch.column_by_name("person").unwrap().as_struct().clone();
        let found = (0..4).map(|row| persons.is_valid(row)).collect::<Vec<_>>();
        assert_eq!(found, [false, true, false, true]);
        persons
    };
    let persons = nested("");
    assert_eq!(persons.column(0).as_string::<i32>().value(3), "b");

    let cars = "[one.person.many.cars]\nsql = \"cars\"\non = { owner = \"id\" }";
    let wheels = strukt(nested(cars).column(1), 3).column(0).clone();
    assert_eq!(wheels.as_primitive::<Int64Type>().values(), &[3, 4]);

    // A home, though not of this person.
    let home = "[one.person.one.home]\nsql = \"homes\"\non = { of = \"id\" }";
    assert_eq!(nested(home).column(1).null_count(), 4);
}

#[test]
fn batches_of_long_children_are_small() {
    let mut tables = Tables::default();
    let numbers = |count: i64, of: i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..count).map(|n| n / of)))
    };
    let texts = |count: usize, bytes: usize| -> ArrayRef {
        Arc::new(StringArray::from_iter_values((0..count).map(|_| "x".repeat(bytes))))
    };
    tables.add("parents", vec![("p", numbers(50, 1)), ("shared", numbers(50, 50))]);
    tables.add("children", vec![("p", numbers(1000, 20)), ("text", texts(1000, 40_000))]);
    tables.add("shared", vec![("s", numbers(1, 1)), ("text", texts(1, 1_000_000))]);
    let options = NestOptions { memory_bytes: 64 << 20, ..NestOptions::default() };
    for (relation, child_bytes) in [
        ("many.x]\nsql = \"children\"\non = { p = \"p\" }", 20 * 40_000),
        ("one.x]\nsql = \"shared\"\non = { s = \"shared\" }", 1_000_000),
    ] {
        let spec = format!("sql = \"parents\"\norder = [\"p\"]\n[{relation}");
        let nested = nest(&spec.parse().unwrap(), &mut tables, &options).unwrap();
        let rows = nested.map(|batch| batch.unwrap().num_rows()).collect::<Vec<_>>();
        assert_eq!(rows.iter().sum::<usize>(), 50);
        assert!(rows.iter().all(|rows| rows * child_bytes < 18 << 20), "{rows:?}");
    }
}

#[test]
fn categories_of_several_batches_have_room() {
    let batch = |from: i64| {
        let keys = Int8Array::from_iter_values(0..100);
        let words = (from..from + 100).map(|n| format!("word {n}"));
        let words = DictionaryArray::new(keys, Arc::new(StringArray::from_iter_values(words)));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + 100));
        RecordBatch::try_from_iter([("n", numbers), ("word", Arc::new(words) as _)]).unwrap()
    };
    let mut tables = Tables::default();
    tables.0.insert("rows", vec![batch(100), batch(0)]);
    let spec = r#"
        sql = "rows"
        order = ["n"]
        [many.same]
        sql = "rows"
        on = { n = "n" }
    "#;
    let nested = nest(&spec.parse().unwrap(), &mut tables, &NestOptions::default()).unwrap();
    let batches = nested.collect::<Result<Vec<_>, _>>().unwrap();
    let word = |array: &ArrayRef, row: usize| {
        let words = cast(array, &DataType::Utf8).unwrap();
        words.as_string::<i32>().value(row).to_owned()
    };
    let found = batches.iter().flat_map(|batch| {
        (0..batch.num_rows()).map(|row| {
            [word(batch.column(1), row), word(strukt(batch.column(2), row).column(0), 0)]
        })
    });
    assert!(found.eq((0..200).map(|n| [format!("word {n}"), format!("word {n}")])));
}
