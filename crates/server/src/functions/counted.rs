//! Arrays with a reservation in the engine's memory pool, which lasts as long as any of their
//! buffers.

use std::sync::Arc;

use arrow::array::{ArrayData, ArrayRef, make_array};
use arrow::buffer::Buffer;
use bytes::Bytes;
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;

/// Smaller buffers don't carry the reservation.
const COUNTED_BYTES_MIN: usize = 4 << 10;

/// A buffer, and the reservation that it shares with the array's other buffers.
struct Owner {
    buffer: Buffer,
    _reservation: Arc<MemoryReservation>,
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

/// Attaches `reservation` to an array's buffers, resized to the array's size.
pub(crate) fn counted(array: ArrayRef, reservation: MemoryReservation) -> Result<ArrayRef> {
    reservation.resize(array.get_array_memory_size());
    let data = array.to_data();
    drop(array);
    Ok(make_array(attach(data, &Arc::new(reservation))?))
}

fn attach(data: ArrayData, reservation: &Arc<MemoryReservation>) -> Result<ArrayData> {
    let with_reservation = |buffer: &Buffer| match buffer.len() {
        ..COUNTED_BYTES_MIN => buffer.clone(),
        _ => Buffer::from(Bytes::from_owner(Owner {
            buffer: buffer.clone(),
            _reservation: reservation.clone(),
        })),
    };
    let buffers = data.buffers().iter().map(with_reservation).collect();
    let children = data
        .child_data()
        .iter()
        .map(|child| attach(child.clone(), reservation))
        .collect::<Result<Vec<_>>>()?;
    Ok(data.into_builder().buffers(buffers).child_data(children).build()?)
}
