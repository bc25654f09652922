//! Arrays that are counted in the engine's pool of memory for as long as anybody holds a part of
//! them.

use std::sync::Arc;

use arrow::array::{ArrayData, ArrayRef, make_array};
use arrow::buffer::Buffer;
use bytes::Bytes;
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;

/// Smaller buffers are not counted.
const COUNTED_BYTES_MIN: usize = 4 << 10;

/// A buffer, and what is reserved for it and those beside it.
struct Owner {
    buffer: Buffer,
    _reservation: Arc<MemoryReservation>,
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

/// The array, which holds on to `reservation`; that becomes as large as the array is.
pub(crate) fn counted(array: ArrayRef, reservation: MemoryReservation) -> Result<ArrayRef> {
    reservation.resize(array.get_array_memory_size());
    let data = array.to_data();
    drop(array);
    Ok(make_array(held(data, &Arc::new(reservation))?))
}

fn held(data: ArrayData, reservation: &Arc<MemoryReservation>) -> Result<ArrayData> {
    let hold = |buffer: &Buffer| match buffer.len() {
        ..COUNTED_BYTES_MIN => buffer.clone(),
        _ => Buffer::from(Bytes::from_owner(Owner {
            buffer: buffer.clone(),
            _reservation: reservation.clone(),
        })),
    };
    let buffers = data.buffers().iter().map(hold).collect();
    let children = data
        .child_data()
        .iter()
        .map(|child| held(child.clone(), reservation))
        .collect::<Result<Vec<_>>>()?;
    Ok(data.into_builder().buffers(buffers).child_data(children).build()?)
}
