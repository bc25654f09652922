//! Converts values of a PostgreSQL type. The input is a byte that selects the type, a byte that
//! selects options, and values as a server would send them, each with its length.
//!
//! Accepted values must give a valid Arrow array.

#![no_main]

use arrow_array::Array;
use dray_format::BatchBuilder;
use dray_format::Schema;
use dray_format::arrow::{Decoder, StringLayout};
use dray_fuzz::LimitedAllocator;
use dray_pgtypes::{Column, Kind, NonFinite, NumericAs, Options, PgType, builtin};
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator::new(64 << 20);

/// A type for each way to read a value.
const OIDS: &[u32] = &[
    16, 17, 18, 20, 21, 23, 25, 26, 700, 701, 790, 869, 1082, 1083, 1114, 1184, 1186, 1266, 1560,
    1700, 2950, 3802, 5069, 22, 1007, 1009, 1041, 1231, 3904, 3906, 3905, 4451, 4532, 6150,
];

fn pg_type(oid: u32, extension: &str, kind: Kind) -> PgType {
    PgType { oid, typmod: -1, name: "public.t".to_owned(), extension: extension.to_owned(), kind }
}

fuzz_target!(|input: &[u8]| {
    let Some((&[which, choice], values)) = input.split_first_chunk::<2>() else { return };
    let which = usize::from(which);
    let typmod = if choice & 4 == 0 { -1 } else { (10 << 16 | 3) + 4 };
    let pg_type = match OIDS.get(which) {
        Some(oid) => builtin(*oid, typmod).unwrap(),
        None => {
            let inner = |i: usize| builtin(OIDS[i % OIDS.len()], -1).unwrap();
            let pair =
                vec![("a".to_owned(), inner(which)), ("b".to_owned(), inner(usize::from(choice)))];
            match which % 3 {
                0 => pg_type(50_000, "", Kind::Composite(pair)),
                1 => {
                    let item = Box::new(pg_type(50_000, "", Kind::Composite(pair)));
                    pg_type(50_001, "", Kind::Array { item, delimiter: b',' })
                }
                _ => pg_type(50_002, "hstore", Kind::Base),
            }
        }
    };
    let options = Options {
        numeric: [
            NumericAs::Text,
            NumericAs::Float64,
            NumericAs::Decimal { precision: 40, scale: 5 },
        ][usize::from(choice) % 3],
        nonfinite: [NonFinite::Error, NonFinite::Null, NonFinite::Text]
            [usize::from(choice / 3) % 3],
        money_scale: Some(2),
    };
    let column = Column::new("c", &pg_type, &options);
    let schema = Schema { fields: vec![column.field().clone()] };
    let mut builder = BatchBuilder::new(schema.clone()).unwrap();
    builder.set_bytes_max(1 << 20, 1 << 20);
    let mut rest = values;
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let (value, after) =
            after.split_at(after.len().min(usize::from(u16::from_be_bytes(*length))));
        rest = after;
        let value = (!value.is_empty()).then_some(value);
        if column.push(&mut builder.columns()[0], value).is_err() {
            return;
        }
        builder.close_row().unwrap();
    }
    let decoder = Decoder::new(schema, StringLayout::Offsets);
    if let Ok(batch) = decoder.built(builder.finish().unwrap()) {
        batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
    }
});
