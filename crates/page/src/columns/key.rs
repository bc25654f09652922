//! Keys of dictionary entries.

use crate::layout::{Kind, Place, Record};
use crate::object::Spot;

/// Appends bytes that are equal if and only if the values are.
pub(super) fn put_key(record: &Record, place: &Place, spot: Spot<'_>, key: &mut Vec<u8>) {
    match &place.kind {
        Kind::Null => {}
        Kind::Boolean => key.extend(spot.load::<1>(place.at)),
        Kind::Fixed(width) => {
            let from = spot.at + place.at;
            key.extend_from_slice(spot.extent.get(from..from + width).unwrap_or_default());
        }
        Kind::Bytes { .. } => {
            let bytes = spot.bytes(place.at);
            key.extend_from_slice(&bytes.len().to_le_bytes());
            key.extend_from_slice(bytes);
        }
        Kind::List(items) | Kind::FixedList { items, .. } => {
            let (from, count) = spot.list(place.at);
            key.extend_from_slice(&count.to_le_bytes());
            let Some(place) = items.record.fields.first() else { return };
            if items.record.is_weightless() && !items.nullable {
                return;
            }
            for i in 0..count {
                let (spot, present) = spot.item(items, from, count, i);
                key.push(u8::from(present));
                if present {
                    put_key(&items.record, place, spot, key);
                }
            }
        }
        Kind::Struct(places) => {
            for place in places {
                let present = spot.has(record, place);
                key.push(u8::from(present));
                if present {
                    put_key(record, place, spot, key);
                }
            }
        }
    }
}
