//! Keys of dictionary entries.

use crate::layout::{Kind, Place, Record};
use crate::object::RecordRef;

/// Appends bytes that are equal if and only if the values are.
pub(super) fn put_key(
    record: &Record,
    place: &Place,
    record_ref: RecordRef<'_>,
    key: &mut Vec<u8>,
) {
    match &place.kind {
        Kind::Null => {}
        Kind::Boolean => key.extend(record_ref.load::<1>(place.at)),
        Kind::Fixed(width) => {
            let from = record_ref.at + place.at;
            key.extend_from_slice(record_ref.extent.get(from..from + width).unwrap_or_default());
        }
        Kind::Bytes { .. } => {
            let bytes = record_ref.bytes(place.at);
            key.extend_from_slice(&bytes.len().to_le_bytes());
            key.extend_from_slice(bytes);
        }
        Kind::List(items) | Kind::FixedList { items, .. } => {
            let (from, count) = record_ref.list(place.at);
            key.extend_from_slice(&count.to_le_bytes());
            let Some(place) = items.record.fields.first() else { return };
            if items.record.is_weightless() && !items.nullable {
                return;
            }
            for i in 0..count {
                let (record_ref, present) = record_ref.item(items, from, count, i);
                key.push(u8::from(present));
                if present {
                    put_key(&items.record, place, record_ref, key);
                }
            }
        }
        Kind::Struct(places) => {
            for place in places {
                let present = record_ref.has(record, place);
                key.push(u8::from(present));
                if present {
                    put_key(record, place, record_ref, key);
                }
            }
        }
    }
}
