//! Arrays, and types for them.

use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::*;
use dray_pgtypes::{Kind, PgType, builtin};

const OIDS: &[u32] = &[
    16, 17, 18, 19, 20, 21, 23, 25, 26, 114, 142, 700, 701, 790, 869, 1042, 1043, 1082, 1083, 1114,
    1184, 1186, 1266, 1560, 1562, 1700, 2950, 3802, 5069, 22, 1000, 1005, 1007, 1009, 1016, 1041,
    1115, 1182, 1187, 1231, 2951, 3807, 3904, 3906, 3908, 4451, 4532,
];

/// Choices; zeros once the input is at its end.
pub struct Draw<'a>(pub &'a [u8]);

impl Draw<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// A number that is mostly small, and sometimes anything.
    fn number(&mut self) -> i128 {
        match self.byte() {
            byte @ 0..=199 => i128::from(byte) - 100,
            200..=229 => i128::from(i64::from_le_bytes(std::array::from_fn(|_| self.byte()))),
            230..=239 => i128::from_le_bytes(std::array::from_fn(|_| self.byte())),
            240..=247 => i128::from(i64::MIN),
            _ => i128::from(i64::MAX),
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        let count = self.below(20);
        (0..count).map(|_| self.byte()).collect()
    }

    fn text(&mut self) -> String {
        match self.below(6) {
            0 => "12:30:45.5+02".to_owned(),
            1 => format!("{:.4}", self.number() as f64 / 16.0),
            2 => format!("{:032x}", self.number()),
            3 => "101".to_owned(),
            _ => String::from_utf8_lossy(&self.bytes()).into_owned(),
        }
    }

    fn nulls(&mut self, rows: usize) -> Option<NullBuffer> {
        let mask = self.byte();
        (mask & 1 == 1).then(|| (0..rows).map(|row| mask >> (1 + row % 7) & 1 == 0).collect())
    }

    fn primitive<T: ArrowPrimitiveType>(
        &mut self,
        rows: usize,
        of: impl Fn(i128) -> T::Native,
    ) -> PrimitiveArray<T> {
        let values: Vec<T::Native> = (0..rows).map(|_| of(self.number())).collect();
        PrimitiveArray::new(values.into(), self.nulls(rows))
    }

    fn offsets(&mut self, rows: usize) -> Vec<i32> {
        let mut offsets = vec![self.below(3) as i32];
        for _ in 0..rows {
            let last = offsets[offsets.len() - 1];
            offsets.push(last + self.below(4) as i32);
        }
        offsets
    }

    pub fn array(&mut self, rows: usize, depth: usize) -> ArrayRef {
        macro_rules! number {
            ($type:ident) => {
                Arc::new(self.primitive::<$type>(rows, |number| number as _))
            };
        }
        let strings = |draw: &mut Self| -> Vec<Option<String>> {
            (0..rows).map(|_| (draw.byte() > 40).then(|| draw.text())).collect()
        };
        let zones: [Option<Arc<str>>; 3] = [None, Some("UTC".into()), Some("Europe/Berlin".into())];
        let variants = if depth == 0 { 33 } else { 41 };
        match self.below(variants) {
            0 => Arc::new(NullArray::new(rows)),
            1 => {
                let values = (0..rows).map(|_| self.byte() & 1 == 1).collect();
                Arc::new(BooleanArray::new(values, self.nulls(rows)))
            }
            2 => number!(Int8Type),
            3 => number!(Int16Type),
            4 => number!(Int32Type),
            5 => number!(Int64Type),
            6 => number!(UInt8Type),
            7 => number!(UInt16Type),
            8 => number!(UInt32Type),
            9 => number!(UInt64Type),
            10 => number!(Float32Type),
            11 => number!(Float64Type),
            12 => Arc::new(self.primitive::<Float64Type>(rows, |n| f64::from_bits(n as u64))),
            13 => {
                let scale = self.below(20) as i8 - 5;
                let array = self.primitive::<Decimal128Type>(rows, |number| number);
                Arc::new(array.with_precision_and_scale(38, scale).unwrap())
            }
            14 => {
                let scale = self.below(8) as i8 - 2;
                let array = self.primitive::<Decimal32Type>(rows, |number| number as i32);
                Arc::new(array.with_precision_and_scale(9, scale).unwrap())
            }
            15 => {
                let scale = self.below(100) as i8 - 20;
                let array = self.primitive::<Decimal256Type>(rows, |n| {
                    i256::from_i128(n).wrapping_mul(i256::from_i128(n))
                });
                Arc::new(array.with_precision_and_scale(76, scale.min(76)).unwrap())
            }
            16 => Arc::new(StringArray::from(strings(self))),
            17 => Arc::new(LargeStringArray::from(strings(self))),
            18 => Arc::new(strings(self).into_iter().collect::<StringViewArray>()),
            19 => {
                let values: Vec<_> = (0..rows).map(|_| self.bytes()).collect();
                Arc::new(values.iter().map(|value| Some(value.as_slice())).collect::<BinaryArray>())
            }
            20 => {
                let values: Vec<u8> = (0..rows * 16).map(|_| self.byte()).collect();
                Arc::new(FixedSizeBinaryArray::new(16, values.into(), self.nulls(rows)))
            }
            21 => number!(Date32Type),
            22 => Arc::new(
                self.primitive::<Date64Type>(rows, |n| (n as i64).wrapping_mul(86_400_000)),
            ),
            23 => number!(Time32MillisecondType),
            24 => number!(Time64MicrosecondType),
            25 => number!(Time64NanosecondType),
            26 => {
                let array = self.primitive::<TimestampSecondType>(rows, |n| n as i64);
                Arc::new(array.with_timezone_opt(zones[self.below(3)].clone()))
            }
            27 => {
                let array = self.primitive::<TimestampMicrosecondType>(rows, |n| n as i64);
                Arc::new(array.with_timezone_opt(zones[self.below(3)].clone()))
            }
            28 => {
                let array = self.primitive::<TimestampNanosecondType>(rows, |n| n as i64);
                Arc::new(array.with_timezone_opt(zones[self.below(3)].clone()))
            }
            29 => number!(DurationNanosecondType),
            30 => number!(IntervalYearMonthType),
            31 => Arc::new(self.primitive::<IntervalDayTimeType>(rows, |n| {
                IntervalDayTime::new(n as i32, (n >> 32) as i32)
            })),
            32 => Arc::new(self.primitive::<IntervalMonthDayNanoType>(rows, |n| {
                IntervalMonthDayNano::new(n as i32, (n >> 32) as i32, (n as i64).wrapping_mul(1000))
            })),
            33 => {
                let offsets = self.offsets(rows);
                let items = self.array(offsets[rows] as usize, depth - 1);
                let field = Arc::new(Field::new("item", items.data_type().clone(), true));
                let nulls = self.nulls(rows);
                Arc::new(ListArray::new(field, OffsetBuffer::new(offsets.into()), items, nulls))
            }
            34 => {
                let items = self.array(rows + 4, depth - 1);
                let field = Arc::new(Field::new("item", items.data_type().clone(), true));
                let offsets: Vec<i32> = (0..rows).map(|_| self.below(rows + 1) as i32).collect();
                let sizes: Vec<i32> = (0..rows).map(|_| self.below(5) as i32).collect();
                let (offsets, sizes) = (ScalarBuffer::from(offsets), ScalarBuffer::from(sizes));
                Arc::new(ListViewArray::new(field, offsets, sizes, items, self.nulls(rows)))
            }
            35 => {
                // Arrow's `take` loses the number of lists without items.
                let size = 1 + self.below(3);
                let items = self.array(rows * size, depth - 1);
                let field = Arc::new(Field::new("item", items.data_type().clone(), true));
                let nulls = self.nulls(rows);
                let list =
                    FixedSizeListArray::try_new_with_length(field, size as i32, items, nulls, rows);
                Arc::new(list.unwrap())
            }
            36 => self.structs(rows, depth, &["a", "b"]),
            37 => {
                let offsets = self.offsets(rows);
                let count = offsets[rows] as usize;
                let keys: StringArray = (0..count).map(|_| Some(self.text())).collect();
                let values = self.array(count, depth - 1);
                let fields = Fields::from(vec![
                    Field::new("key", DataType::Utf8, false),
                    Field::new("value", values.data_type().clone(), true),
                ]);
                let entries = StructArray::new(fields.clone(), vec![Arc::new(keys), values], None);
                let field = Arc::new(Field::new("entries", DataType::Struct(fields), false));
                let nulls = self.nulls(rows);
                Arc::new(MapArray::new(
                    field,
                    OffsetBuffer::new(offsets.into()),
                    entries,
                    nulls,
                    false,
                ))
            }
            38 => {
                let values = self.array(4, depth - 1);
                let keys: Vec<i8> = (0..rows).map(|_| self.below(4) as i8).collect();
                let keys = Int8Array::new(keys.into(), self.nulls(rows));
                Arc::new(DictionaryArray::<Int8Type>::new(keys, values))
            }
            39 => {
                let values = self.array(rows, depth - 1);
                let mut end = 0;
                let ends: Vec<i32> = (0..rows)
                    .map(|_| {
                        end += 1 + self.below(3) as i32;
                        end
                    })
                    .collect();
                let runs = RunArray::<Int32Type>::try_new(&Int32Array::from(ends), &values);
                Arc::new(runs.unwrap().slice(0, rows))
            }
            _ => {
                const RANGE: [&str; 5] =
                    ["lower", "upper", "lower_inclusive", "upper_inclusive", "empty"];
                let bound = self.array(rows, 0);
                let flags = |draw: &mut Self| -> ArrayRef {
                    let values = (0..rows).map(|_| draw.byte() & 1 == 1).collect();
                    Arc::new(BooleanArray::new(values, None))
                };
                let columns = vec![bound.clone(), bound, flags(self), flags(self), flags(self)];
                self.named(rows, &RANGE, columns)
            }
        }
    }

    fn structs(&mut self, rows: usize, depth: usize, names: &[&str]) -> ArrayRef {
        let columns = names.iter().map(|_| self.array(rows, depth - 1)).collect();
        self.named(rows, names, columns)
    }

    fn named(&mut self, rows: usize, names: &[&str], columns: Vec<ArrayRef>) -> ArrayRef {
        let fields = names.iter().zip(&columns);
        let fields = fields.map(|(name, of)| Field::new(*name, of.data_type().clone(), true));
        Arc::new(StructArray::new(fields.collect(), columns, self.nulls(rows)))
    }

    fn oid(&mut self) -> PgType {
        let typmod = if self.byte() & 3 == 0 { (10 << 16 | 3) + 4 } else { -1 };
        builtin(OIDS[self.below(OIDS.len())], typmod).unwrap()
    }

    /// A type for a column: mostly one that takes the data.
    pub fn pg_type(&mut self, data_type: &DataType) -> PgType {
        let choice = self.byte();
        let own = |extension: &str, kind| PgType {
            oid: 50_000,
            typmod: -1,
            name: "public.t".to_owned(),
            extension: extension.to_owned(),
            kind,
        };
        match choice {
            0..=19 => return self.oid(),
            20..=29 => return builtin(3802, -1).unwrap(),
            30..=34 => return own("", Kind::Domain(Box::new(self.pg_type(data_type)))),
            _ => {}
        }
        use DataType::*;
        let oid = match data_type {
            Boolean => 16,
            Int8 | Int16 | UInt8 => 21,
            Int32 | UInt16 => 23,
            Int64 | UInt32 => 20,
            UInt64 | Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) => 1700,
            Float16 | Float32 => 700,
            Float64 => 701,
            Binary | LargeBinary | BinaryView => 17,
            FixedSizeBinary(_) => 2950,
            Date32 | Date64 => 1082,
            Time32(_) | Time64(_) => 1083,
            Timestamp(_, None) => 1114,
            Timestamp(_, _) => 1184,
            Duration(_) | Interval(_) => 1186,
            Dictionary(_, values) => return self.pg_type(values),
            RunEndEncoded(_, values) => return self.pg_type(values.data_type()),
            List(item) | ListView(item) | FixedSizeList(item, _) => {
                let item = Box::new(self.pg_type(item.data_type()));
                if matches!(item.kind, Kind::Range(_)) {
                    return own("", Kind::Multirange(item));
                }
                return own("", Kind::Array { item, delimiter: b',' });
            }
            Struct(fields) if fields.len() == 5 => {
                return own("", Kind::Range(Box::new(self.pg_type(fields[0].data_type()))));
            }
            Struct(fields) => {
                let types = fields.iter();
                let types =
                    types.map(|field| (field.name().clone(), self.pg_type(field.data_type())));
                return own("", Kind::Composite(types.collect()));
            }
            Map(_, _) => return own("hstore", Kind::Base),
            _ => [25, 25, 869, 1266, 1700, 2950, 1560][self.below(7)],
        };
        builtin(oid, -1).unwrap()
    }
}
