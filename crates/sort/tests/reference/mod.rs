//! Compares sorts with a stable sort of the values themselves, which does not use sort keys. Cases
//! have random columns of every type and width, with realistic distributions, and random settings.
//! They are drawn from a seed or from a fuzzer's bytes.
//!
//! A column has the number of each row, so that one comparison checks order, stability and
//! completeness.

#![allow(dead_code, reason = "a fuzz target needs other parts than a test")]

mod draw;
mod values;

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{self, AtomicUsize};

use dray_format::{Batch, Field, Schema, Type, Unit};
use dray_sort::{
    Distinct, Error, FixedBudget, Options, Progress, Result, SortColumn, Sorted, Sorter,
    SpillCompression,
};

use draw::{Shape, Texts};
use values::{Rule, Value, column, from_bytes, value_at};

pub use draw::Draw;

/// The largest cases.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub rows: usize,
    pub threads: usize,
    pub memory_bytes: usize,
}

/// The outcome of a sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    InMemory,
    Spilled,
    /// The budget was too small, as very small ones may be.
    Refused,
}

/// Rows, and the settings of their sort.
pub struct Case {
    schema: Schema,
    rows: Vec<Vec<Value>>,
    /// Where batches end.
    ends: Vec<usize>,
    by: Vec<SortColumn>,
    distinct: Distinct,
    limit: Option<u64>,
    writers: usize,
    mergers: usize,
    memory_bytes: usize,
    page_bytes: Option<usize>,
    fan_in_max: usize,
    batch_rows: usize,
    compression: SpillCompression,
    batches: Vec<Batch>,
}

impl Case {
    pub fn draw(draw: &mut Draw<'_>, limits: Limits) -> Self {
        let distinct =
            draw.pick(&[Distinct::No, Distinct::No, Distinct::No, Distinct::Keys, Distinct::Rows]);
        let count = draw.pick(&[0, 1, 2, 3, 12, 60, 300, 300, 1500, 1500, 4000]).min(limits.rows);
        let mut columns: Vec<ColumnPlan> = Vec::new();
        let keys = draw.pick(&[1, 2, 2, 2, 3, 3, 4, 6]);
        // Types of fixed width are frequent: their keys have fixed width, and are sorted by varying
        // bytes.
        let kinds = draw.pick(&[FIXED, FIXED, ALL]);
        for number in 0..keys {
            columns.push(ColumnPlan::draw(draw, &format!("k{number}"), kinds, 2));
        }
        let others = draw.choose(3);
        (0..others)
            .for_each(|number| columns.push(ColumnPlan::draw(draw, &format!("v{number}"), ALL, 2)));
        let memory_bytes = draw
            .pick(&[64 << 10, 64 << 10, 100 << 10, 300 << 10, 1 << 20, 64 << 20])
            .min(limits.memory_bytes);
        if memory_bytes >= 1 << 20 && draw.choose(4) == 0 {
            columns.push(ColumnPlan::large());
        }
        if distinct != Distinct::Rows {
            columns.push(ColumnPlan::number());
        }
        let mut by: Vec<SortColumn> = Vec::new();
        for column in 0..keys {
            by.push(SortColumn {
                column,
                descending: draw.choose(3) == 0,
                nulls_first: draw.choose(2) == 0,
            });
        }
        let is_large = columns.iter().any(|column| matches!(column.values, Distribution::Large));
        let count = if is_large { count.min(300) } else { count };
        let rows = (0..count)
            .map(|row| columns.iter_mut().map(|column| column.value(draw, (row, count))).collect());
        let rows: Vec<Vec<Value>> = rows.collect();
        let schema = Schema { fields: columns.into_iter().map(|column| column.field).collect() };
        let largest = draw.pick(&[3, 40, 500, 5000]);
        let mut ends = Vec::new();
        while ends.last().copied().unwrap_or(0) < count {
            let end = ends.last().copied().unwrap_or(0) + draw.below(largest + 1);
            ends.push(end.min(count));
        }
        let mut case = Self {
            schema,
            rows,
            ends,
            by,
            distinct,
            limit: draw.pick(&[None, None, None, None, Some(0), Some(1), Some(17), Some(1000)]),
            writers: 1 + draw.choose(limits.threads.min(4)),
            mergers: 1 + draw.choose(limits.threads),
            memory_bytes,
            page_bytes: draw.pick(&[None, Some(4 << 10)]),
            fan_in_max: draw.pick(&[2, 3, 7, 256]),
            batch_rows: draw.pick(&[1, 7, 100, 1 << 14]),
            compression: draw.pick(&[
                SpillCompression::Auto,
                SpillCompression::Lz4,
                SpillCompression::None,
            ]),
            batches: Vec::new(),
        };
        case.batches = case.cut(draw);
        case
    }

    /// The rows as batches.
    fn cut(&self, draw: &mut Draw<'_>) -> Vec<Batch> {
        let mut from = 0;
        let mut batches = Vec::new();
        for end in &self.ends {
            let rows = &self.rows[from..*end];
            let of_field = |(i, field): (usize, &Field)| {
                let values: Vec<&Value> = rows.iter().map(|row| &row[i]).collect();
                column(draw, field, &values)
            };
            let columns = self.schema.fields.iter().enumerate().map(of_field).collect();
            let batch = Batch { rows: rows.len(), columns };
            // Some batches are slices of another one.
            let half = if rows.len() > 1 && draw.below(4) == 0 { rows.len() / 2 } else { 0 };
            batches.extend((half > 0).then(|| batch.slice(0, half)));
            batches.push(batch.slice(half, rows.len() - half));
            from = *end;
        }
        batches
    }

    /// The numbers of the rows of the result, in order.
    fn expected(&self) -> Vec<usize> {
        let mut by = self.by.clone();
        if self.distinct == Distinct::Rows {
            let others = (0..self.schema.fields.len())
                .filter(|column| by.iter().all(|by| by.column != *column));
            let others: Vec<usize> = others.collect();
            by.extend(others.into_iter().map(|column| SortColumn {
                column,
                descending: false,
                nulls_first: false,
            }));
        }
        let compare = |a: &usize, b: &usize| {
            let of_column = |by: &SortColumn| {
                let is_distinct = self.distinct != Distinct::No;
                let rule =
                    Rule { descending: by.descending, nulls_first: by.nulls_first, is_distinct };
                rule.compare(&self.rows[*a][by.column], &self.rows[*b][by.column])
            };
            by.iter().map(of_column).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by(compare);
        if self.distinct != Distinct::No {
            order.dedup_by(|b, a| compare(a, b).is_eq());
        }
        order.truncate(self.limit.map_or(usize::MAX, |limit| limit as usize));
        order
    }

    /// Sorts, and panics with `context` if the result is not the expected one.
    pub fn check(&self, folder: &Path, context: &str) -> Outcome {
        let budget = FixedBudget::new(self.memory_bytes);
        let options = Options {
            spill_folder: Some(folder.into()),
            page_bytes: self.page_bytes,
            fan_in_max: self.fan_in_max,
            batch_rows: self.batch_rows,
            spill_compression: self.compression,
            limit: self.limit,
            distinct: self.distinct,
            ..Options::new(self.by.clone(), budget.clone())
        };
        let outcome = match self.sort(options) {
            Ok((found, progress)) => {
                self.compare(&found, context);
                if progress.spilled_bytes() > 0 { Outcome::Spilled } else { Outcome::InMemory }
            }
            Err(Error::Memory { .. }) if self.memory_bytes < 1 << 20 => Outcome::Refused,
            Err(error) => panic!("{error}, {context}, {self}"),
        };
        assert_eq!(budget.reserved(), 0, "{context}, {self}");
        outcome
    }

    fn sort(&self, options: Options) -> Result<(Vec<Batch>, Progress)> {
        let sorter = Sorter::new(self.schema.clone(), options)?;
        let next = AtomicUsize::new(0);
        let write = || {
            let mut writer = sorter.writer();
            loop {
                let number = next.fetch_add(1, atomic::Ordering::Relaxed);
                let Some(batch) = self.batches.get(number) else { return writer.finish() };
                writer.append(number as u64, batch)?;
            }
        };
        std::thread::scope(|scope| {
            let writers: Vec<_> = (1..self.writers).map(|_| scope.spawn(write)).collect();
            let first = write();
            writers.into_iter().map(|writer| writer.join().unwrap()).fold(first, Result::and)
        })?;
        let progress = sorter.progress();
        let sorted: Sorted = sorter.finish(self.mergers)?;
        Ok((sorted.collect::<Result<_>>()?, progress))
    }

    fn compare(&self, found: &[Batch], context: &str) {
        let order = self.expected();
        let mut order = order.iter().enumerate();
        for batch in found {
            assert!((1..=self.batch_rows).contains(&batch.rows), "{context}, {self}");
            for row in 0..batch.rows {
                let Some((i, expected)) = order.next() else {
                    panic!("more rows than expected, {context}, {self}")
                };
                for (column, field) in self.schema.fields.iter().enumerate() {
                    let found = value_at(&field.data_type, &batch.columns[column], row);
                    let expected_value = &self.rows[*expected][column];
                    assert!(
                        found == *expected_value,
                        "row {i} should be row {expected} of the input, its column {} \
                         {expected_value:?}, found {found:?}, {context}, {self}",
                        field.name
                    );
                }
            }
        }
        assert_eq!(order.count(), 0, "rows are missing, {context}, {self}");
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut columns = String::new();
        for by in &self.by {
            let field = &self.schema.fields[by.column];
            let nullable = if field.nullable { " nullable" } else { "" };
            write!(
                columns,
                "{:?}{nullable} desc {} nulls first {}; ",
                field.data_type, by.descending, by.nulls_first
            )?;
        }
        write!(
            out,
            "{} rows in {} batches by {columns}{:?}, limit {:?}, {} writers, {} mergers, \
             {} bytes, pages of {:?}, fan-in {}, batches of {}, {:?}",
            self.rows.len(),
            self.batches.len(),
            self.distinct,
            self.limit,
            self.writers,
            self.mergers,
            self.memory_bytes,
            self.page_bytes,
            self.fan_in_max,
            self.batch_rows,
            self.compression
        )
    }
}

/// The number of kinds of types: of those with fixed width, which come first, and of all.
const FIXED: usize = 27;
const ALL: usize = 37;

/// A column that values are drawn for.
struct ColumnPlan {
    field: Field,
    null_fraction: f64,
    values: Distribution,
}

/// The distribution of values.
enum Distribution {
    Null,
    Boolean(f64),
    Fixed(Shape),
    Floats(Shape),
    Texts(Texts),
    Bytes(Texts),
    Lists(Box<ColumnPlan>, usize),
    FixedLists(Box<ColumnPlan>, usize),
    Structs(Vec<ColumnPlan>),
    Number,
    Large,
}

impl ColumnPlan {
    fn draw(draw: &mut Draw<'_>, name: &str, kinds: usize, depth: usize) -> Self {
        let data_type =
            data_type(draw, if depth == 0 { kinds.min(FIXED + 4) } else { kinds }, depth);
        let nullable = data_type == Type::Null || draw.choose(3) == 0;
        Self::of(draw, name, data_type, nullable, depth)
    }

    fn of(draw: &mut Draw<'_>, name: &str, data_type: Type, nullable: bool, depth: usize) -> Self {
        let null_fraction = if nullable { draw.pick(&[0.0, 0.01, 0.3, 0.9, 1.0]) } else { 0.0 };
        let child = |draw: &mut Draw<'_>, field: &Field| {
            Self::of(
                draw,
                &field.name,
                field.data_type.clone(),
                field.nullable,
                depth.saturating_sub(1),
            )
        };
        let values = match &data_type {
            Type::Null => Distribution::Null,
            Type::Boolean => Distribution::Boolean(draw.pick(&[0.0, 0.5, 1.0])),
            Type::Utf8 => Distribution::Texts(Texts::draw(draw)),
            Type::Binary => Distribution::Bytes(Texts::draw(draw)),
            Type::List(item) => Distribution::Lists(Box::new(child(draw, item)), draw.choose(4)),
            Type::FixedList { size, item } => {
                Distribution::FixedLists(Box::new(child(draw, item)), *size as usize)
            }
            Type::Struct(fields) => {
                Distribution::Structs(fields.iter().map(|field| child(draw, field)).collect())
            }
            Type::Map { key, value, .. } => {
                let pair = Type::Struct(vec![(**key).clone(), (**value).clone()]);
                let pair = Self::of(draw, "entries", pair, false, depth);
                Distribution::Lists(Box::new(pair), draw.choose(3))
            }
            Type::Dictionary { value, .. } => {
                let few = Shape::draw(draw, value.width().unwrap());
                match few {
                    few @ Shape::Few(_) => Distribution::Fixed(few),
                    _ => Distribution::Fixed(Shape::Sawtooth(5)),
                }
            }
            Type::Float32 | Type::Float64 if draw.choose(2) == 0 => {
                Distribution::Floats(Shape::draw(draw, 8))
            }
            fixed => Distribution::Fixed(Shape::draw(draw, fixed.width().unwrap())),
        };
        Self { field: field(name, data_type, nullable), null_fraction, values }
    }

    /// A column of the numbers of rows.
    fn number() -> Self {
        Self {
            field: field("row", Type::Int64, false),
            null_fraction: 0.0,
            values: Distribution::Number,
        }
    }

    /// A column with values that fit in no page.
    fn large() -> Self {
        Self {
            field: field("large", Type::Binary, false),
            null_fraction: 0.0,
            values: Distribution::Large,
        }
    }

    fn value(&mut self, draw: &mut Draw<'_>, (row, rows): (usize, usize)) -> Value {
        if draw.fraction() < self.null_fraction {
            return Value::Null;
        }
        let mut data_type = &self.field.data_type;
        if let Type::Dictionary { value, .. } = data_type {
            data_type = value;
        }
        match &mut self.values {
            Distribution::Null => Value::Null,
            Distribution::Boolean(density) => Value::Bool(draw.fraction() < *density),
            Distribution::Fixed(shape) => {
                let width = data_type.width().unwrap();
                from_bytes(data_type, &shape.bytes(draw, width, (row, rows)))
            }
            Distribution::Floats(shape) => {
                let few = [
                    0.0,
                    -0.0,
                    f64::NAN,
                    -f64::NAN,
                    f64::INFINITY,
                    f64::NEG_INFINITY,
                    f64::MIN_POSITIVE,
                    1e-320,
                ];
                let whole =
                    i64::from_be_bytes(shape.bytes(draw, 8, (row, rows)).try_into().unwrap());
                let float = if draw.below(8) == 0 {
                    few[draw.below(few.len())]
                } else {
                    whole as f64 / 8.0
                };
                match data_type {
                    Type::Float32 => Value::Single((float as f32).to_bits()),
                    _ => Value::Double(float.to_bits()),
                }
            }
            Distribution::Texts(texts) => Value::Bytes(texts.text(draw, row).into_bytes()),
            // The last byte of each character, which is no valid text.
            Distribution::Bytes(texts) => Value::Bytes(
                texts.text(draw, row).chars().map(|letter| letter as u32 as u8).collect(),
            ),
            Distribution::Lists(item, count_max) => {
                let count = draw.below(*count_max + 1);
                Value::List((0..count).map(|_| item.value(draw, (row, rows))).collect())
            }
            Distribution::FixedLists(item, size) => {
                Value::List((0..*size).map(|_| item.value(draw, (row, rows))).collect())
            }
            Distribution::Structs(fields) => Value::Struct(
                fields.iter_mut().map(|field| field.value(draw, (row, rows))).collect(),
            ),
            Distribution::Number => Value::Int(row as i128),
            Distribution::Large => {
                let bytes = [0, 10, 3000, 5000, 9000][draw.below(5)];
                Value::Bytes(vec![row as u8; bytes])
            }
        }
    }
}

fn field(name: &str, data_type: Type, nullable: bool) -> Field {
    Field { name: name.to_owned(), data_type, nullable, metadata: Vec::new() }
}

fn data_type(draw: &mut Draw<'_>, kinds: usize, depth: usize) -> Type {
    let units = [Unit::Second, Unit::Millisecond, Unit::Microsecond, Unit::Nanosecond];
    let item = |draw: &mut Draw<'_>, name: &str, may_be_null: bool| {
        let data_type =
            data_type(draw, if depth > 1 { ALL } else { FIXED + 4 }, depth.saturating_sub(1));
        Box::new(field(name, data_type, may_be_null && draw.choose(2) == 0))
    };
    match draw.choose(kinds) {
        0 => Type::Boolean,
        1 => Type::Int8,
        2 => Type::Int16,
        3 => Type::Int32,
        4 | 5 => Type::Int64,
        6 => Type::UInt8,
        7 => Type::UInt16,
        8 => Type::UInt32,
        9 => Type::UInt64,
        10 => Type::Float16,
        11 => Type::Float32,
        12 => Type::Float64,
        13 => Type::Decimal32 { precision: 9, scale: 2 },
        14 => Type::Decimal64 { precision: 18, scale: -2 },
        15 => Type::Decimal128 { precision: 38, scale: 0 },
        16 => Type::Decimal256 { precision: 76, scale: 5 },
        17 => Type::Date32,
        18 => Type::Date64,
        19 => Type::Time32(draw.pick(&units[..2])),
        20 => Type::Time64(draw.pick(&units[2..])),
        21 => Type::Timestamp { unit: draw.pick(&units), zone: None },
        22 => Type::Duration(draw.pick(&units)),
        23 => draw.pick(&[Type::IntervalMonths, Type::IntervalDayTime, Type::IntervalMonthDayNano]),
        24..=26 => Type::FixedBinary(1 + draw.choose(draw::WIDE) as u32),
        27 | 28 => Type::Utf8,
        29 => Type::Binary,
        30 => Type::Null,
        31 | 32 => Type::List(item(draw, "item", true)),
        33 => Type::FixedList { size: draw.choose(4) as u32, item: item(draw, "item", true) },
        34 => Type::Struct(
            (0..1 + draw.choose(3)).map(|i| *item(draw, &format!("f{i}"), true)).collect(),
        ),
        35 => {
            let key = loop {
                let key = item(draw, "key", false);
                if key.data_type != Type::Null {
                    break key;
                }
            };
            Type::Map { sorted: false, key, value: item(draw, "value", true) }
        }
        _ => {
            let index = draw.pick(&[Type::Int8, Type::UInt8, Type::Int32, Type::Int64]);
            let value =
                draw.pick(&[Type::Int64, Type::Float64, Type::FixedBinary(11), Type::Date32]);
            Type::Dictionary { index: Box::new(index), ordered: false, value: Box::new(value) }
        }
    }
}
