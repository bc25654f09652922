//! Converts rows of MySQL. The input is a byte that selects options, a byte with the number of
//! columns, 8 bytes for the definition of each, and rows as a server would send them, each with its
//! length.
//!
//! Accepted rows must give a valid Arrow array.

#![no_main]

use arrow_array::Array;
use dray_format::arrow::{Decoder, StringLayout};
use dray_format::{BatchBuilder, Schema};
use dray_fuzz::LimitedAllocator;
use dray_mysqltypes::{
    Column, ColumnDefinition, Options, ZeroDates, push_binary_row, push_text_row,
};
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator::new(64 << 20);

fn definition(bytes: [u8; 8]) -> ColumnDefinition {
    let [type_code, flags, more_flags, collation, length, decimals, extended, _] = bytes;
    let extended = ["", "uuid", "json", "inet6", "point"][usize::from(extended) % 5];
    ColumnDefinition {
        name: "c".to_owned(),
        type_code,
        flags: u16::from_le_bytes([flags, more_flags]),
        character_set: collation.into(),
        length: length.into(),
        decimals,
        extended_type: (!extended.is_empty()).then(|| extended.to_owned()),
    }
}

fuzz_target!(|input: &[u8]| {
    let _ = ColumnDefinition::parse(input, input.len() % 2 == 0);
    let Some((&[choice, count], mut rest)) = input.split_first_chunk::<2>() else { return };
    let zero_dates = [ZeroDates::Error, ZeroDates::Null, ZeroDates::Text][usize::from(choice) % 3];
    let mut columns = Vec::new();
    for _ in 0..count % 20 {
        let Some((bytes, after)) = rest.split_first_chunk::<8>() else { return };
        rest = after;
        let Ok(column) = Column::new(&definition(*bytes), &Options { zero_dates }) else { return };
        columns.push(column);
    }
    let schema = Schema { fields: columns.iter().map(|column| column.field().clone()).collect() };
    let mut builder = BatchBuilder::new(schema.clone()).unwrap();
    builder.set_bytes_max(1 << 20, 1 << 20);
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let (row, after) =
            after.split_at(after.len().min(usize::from(u16::from_be_bytes(*length))));
        rest = after;
        let pushed = match choice & 0x80 {
            0 => push_text_row(&columns, &mut builder, row),
            _ => push_binary_row(&columns, &mut builder, row),
        };
        if pushed.is_err() {
            return;
        }
    }
    let decoder = Decoder::new(schema, StringLayout::Offsets);
    if let Ok(batch) = decoder.built(builder.finish().unwrap()) {
        batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
    }
});
