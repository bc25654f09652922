//! Random types, arrays and batches, which a seed determines on every machine, and rounds of tests
//! with them. The tests of other crates use this module too.
//!
//! Values sometimes repeat, form runs or cluster, so that every encoding occurs. Values under
//! missing ones are arbitrary.

#![allow(dead_code, reason = "hardly any test needs all of it")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, IntervalUnit, Schema, SchemaRef, TimeUnit};

/// Calls `round` with one seed after the other for some seconds, but at least `rounds_min` times.
/// `DRAY_SEED=n` runs that round alone, and `DRAY_ROUNDS=n` runs n rounds.
pub fn for_seeds(rounds_min: u64, round: impl Fn(u64)) {
    if let Some(seed) = std::env::var("DRAY_SEED").ok().and_then(|seed| seed.parse().ok()) {
        return round(seed);
    }
    let rounds_min = std::env::var("DRAY_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(rounds_min);
    let start = Instant::now();
    let mut seed = 0;
    while seed < rounds_min || start.elapsed() < Duration::from_secs(4) {
        round(seed);
        seed += 1;
    }
}

/// A stream of random numbers (xorshift64*).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self((seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    fn chance(&mut self, probability: f64) -> bool {
        (self.next() >> 11) as f64 / ((1u64 << 53) as f64) < probability
    }

    /// A field whose type is nested at most `depth` levels deep.
    pub fn field(&mut self, name: &str, depth: usize) -> Field {
        let data_type = self.data_type(depth);
        // Arrow's concat, the oracle, does not take a field of type null that is not nullable.
        let nullable = data_type == DataType::Null || self.chance(0.6);
        Field::new(name, data_type, nullable)
    }

    fn data_type(&mut self, depth: usize) -> DataType {
        use DataType::*;
        use TimeUnit::*;
        const UNITS: [TimeUnit; 4] = [Second, Millisecond, Microsecond, Nanosecond];
        let item = |random: &mut Self| Arc::new(random.field("item", depth - 1));
        match self.below(if depth > 1 { 42 } else { 33 }) {
            0 => Null,
            1 | 2 => Boolean,
            3 => Int8,
            4 => Int16,
            5 => Int32,
            6 => Int64,
            7 => UInt8,
            8 => UInt16,
            9 => UInt32,
            10 => UInt64,
            11 => Float16,
            12 => Float32,
            13 => Float64,
            14 => Decimal32(1 + self.below(9) as u8, 2),
            15 => Decimal64(1 + self.below(18) as u8, -3),
            16 => Decimal128(1 + self.below(38) as u8, 0),
            17 => Decimal256(1 + self.below(76) as u8, 1),
            18 => Date32,
            19 => Date64,
            20 => Time32(self.pick(&[Second, Millisecond])),
            21 => Time64(self.pick(&[Microsecond, Nanosecond])),
            22 => Timestamp(self.pick(&UNITS), self.pick(&[None, Some("Europe/Vienna".into())])),
            23 => Duration(self.pick(&UNITS)),
            24 => Interval(self.pick(&[
                IntervalUnit::YearMonth,
                IntervalUnit::DayTime,
                IntervalUnit::MonthDayNano,
            ])),
            25..=28 => Utf8,
            29..=30 => Binary,
            31 => FixedSizeBinary(self.pick(&[1, 2, 3, 16, 40])),
            32 => {
                let index = self.pick(&[Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64]);
                let value = loop {
                    match self.data_type(depth.max(2) - 1) {
                        Dictionary(..) | Null => {}
                        value => break value,
                    }
                };
                Dictionary(Box::new(index), Box::new(value))
            }
            33..=35 => List(item(self)),
            36 | 37 => FixedSizeList(item(self), self.pick(&[0, 1, 2, 7])),
            38..=40 => {
                let fields = (0..self.below(4)).map(|i| self.field(&format!("f{i}"), depth - 1));
                Struct(fields.collect::<Vec<_>>().into())
            }
            _ => {
                let key = loop {
                    match self.data_type(depth - 1) {
                        Null => {}
                        key => break Field::new("keys", key, false),
                    }
                };
                let entries = vec![key, self.field("values", depth - 1)];
                Map(Arc::new(Field::new("entries", Struct(entries.into()), false)), false)
            }
        }
    }

    /// Slices of a few larger batches, cut at random rows.
    pub fn pieces(&mut self, schema: &SchemaRef) -> Vec<RecordBatch> {
        let largest = self.pick(&[3, 20, 200, 1500]);
        let bases: Vec<RecordBatch> =
            (0..1 + self.below(3)).map(|_| self.batch(schema, largest)).collect();
        let count = 1 + self.below(4);
        (0..count)
            .map(|_| {
                let base = self.pick(&bases);
                if self.chance(0.2) {
                    return base;
                }
                let from = self.below(base.num_rows() + 1);
                let rows = self.below(base.num_rows() - from + 1);
                base.slice(from, rows)
            })
            .collect()
    }

    fn batch(&mut self, schema: &Arc<Schema>, rows_max: usize) -> RecordBatch {
        let rows = 1 + self.below(rows_max);
        let columns = schema
            .fields()
            .iter()
            .map(|field| self.array(field.data_type(), rows, field.is_nullable()));
        let columns = columns.collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(schema.clone(), columns, &options).unwrap()
    }

    /// An array that may begin and end within its buffers.
    pub fn array(&mut self, data_type: &DataType, rows: usize, nullable: bool) -> ArrayRef {
        let (before, after) = (self.below(20), self.below(20));
        self.whole_array(data_type, before + rows + after, nullable).slice(before, rows)
    }

    fn whole_array(&mut self, data_type: &DataType, rows: usize, nullable: bool) -> ArrayRef {
        use DataType::*;
        let nulls = if nullable && *data_type != Null { self.nulls(rows) } else { None };
        let builder = ArrayData::builder(data_type.clone()).len(rows).nulls(nulls);
        let child = |random: &mut Self, field: &Field, rows: usize| {
            random.array(field.data_type(), rows, field.is_nullable()).to_data()
        };
        let builder = match data_type {
            Null => builder,
            Boolean => {
                let density = self.pick(&[0.0, 0.5, 1.0]);
                builder.add_buffer(
                    BooleanBuffer::from_iter((0..rows).map(|_| self.chance(density))).into_inner(),
                )
            }
            Utf8 | Binary => {
                let (offsets, data) = self.strings(rows, *data_type == Utf8);
                builder.add_buffer(offsets).add_buffer(data)
            }
            List(item) | Map(item, _) => {
                let lengths: Vec<usize> = (0..rows).map(|_| self.below(4)).collect();
                let (offsets, total) = offsets(lengths.into_iter(), self.below(3));
                let total = total + self.below(3);
                builder.add_buffer(offsets).add_child_data(child(self, item, total))
            }
            FixedSizeList(item, size) => {
                builder.add_child_data(child(self, item, rows * *size as usize))
            }
            Struct(fields) => {
                builder.child_data(fields.iter().map(|field| child(self, field, rows)).collect())
            }
            Dictionary(index, value) => {
                let count = 1 + self.below(12);
                // A missing entry makes a value missing, which must not happen in a field that is
                // not nullable.
                let entries = self.array(value, count, nullable).to_data();
                let width = index.primitive_width().unwrap();
                let mut indexes = Vec::new();
                (0..rows).for_each(|_| {
                    indexes.extend_from_slice(&(self.below(count) as u64).to_le_bytes()[..width])
                });
                builder.add_buffer(Buffer::from_vec(indexes)).add_child_data(entries)
            }
            FixedSizeBinary(width) => builder.add_buffer(self.fixed(rows, *width as usize)),
            fixed => builder.add_buffer(self.fixed(rows, fixed.primitive_width().unwrap())),
        };
        make_array(builder.align_buffers(true).build().unwrap())
    }

    fn nulls(&mut self, rows: usize) -> Option<NullBuffer> {
        let density = self.pick(&[0.0, 0.01, 0.5, 0.99, 1.0]);
        let offset = self.below(13);
        let bits = BooleanBuffer::from_iter((0..rows + offset).map(|_| !self.chance(density)));
        Some(NullBuffer::new(bits.slice(offset, rows)))
    }

    /// Values of fixed width: arbitrary, constant, in a narrow range, or a few, near each other or
    /// far apart.
    fn fixed(&mut self, rows: usize, width: usize) -> Buffer {
        let mode = self.below(5);
        let wide =
            |value: u64, low: u64| [low, value, value, low, value].map(u64::to_le_bytes).concat();
        let (base, bits, high) = (self.next(), self.below(64), self.next());
        let few: Vec<u64> = (0..1 + self.below(20)).map(|_| self.next()).collect();
        let mut out = Vec::with_capacity(rows * width);
        for _ in 0..rows {
            let value = match mode {
                0 => wide(self.next(), self.next()),
                1 => wide(high, base),
                2 => wide(0, base.wrapping_add(self.next() >> bits)),
                3 => wide(high, self.pick(&few)),
                _ => wide(self.pick(&few), base),
            };
            out.extend_from_slice(&value[..width]);
        }
        Buffer::from_vec(out)
    }

    fn strings(&mut self, rows: usize, utf8: bool) -> (Buffer, Buffer) {
        let fixed = self.chance(0.2);
        let few: Vec<Vec<u8>> = (0..1 + self.below(9)).map(|_| self.string(utf8, fixed)).collect();
        let repeats = self.pick(&[0.0, 0.5, 1.0]);
        let first = self.below(5);
        let mut data = b"dirty"[..first].to_vec();
        let mut lengths = Vec::new();
        for _ in 0..rows {
            let string =
                if self.chance(repeats) { self.pick(&few) } else { self.string(utf8, fixed) };
            lengths.push(string.len());
            data.extend(string);
        }
        data.extend_from_slice(b"end");
        (offsets(lengths.into_iter(), first).0, Buffer::from_vec(data))
    }

    fn string(&mut self, utf8: bool, fixed: bool) -> Vec<u8> {
        let length = if fixed { 3 } else { self.pick(&[0, 1, 2, 5, 13, 40]) };
        match utf8 && fixed {
            true => (0..length).flat_map(|_| self.pick(&["a", "b", "z"]).bytes()).collect(),
            false if utf8 => (0..length)
                .flat_map(|_| self.pick(&["a", "b", " ", "é", "語", "🐎"]).bytes())
                .collect(),
            false => (0..length).map(|_| self.next() as u8).collect(),
        }
    }
}

/// Offsets that begin with `first`, and the last.
fn offsets(lengths: impl Iterator<Item = usize>, first: usize) -> (Buffer, usize) {
    let mut last = first;
    let mut out = vec![first as i32];
    for length in lengths {
        last += length;
        out.push(last as i32);
    }
    (Buffer::from_vec(out), last)
}
