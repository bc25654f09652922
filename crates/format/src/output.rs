//! Buffers that a reader decodes into: on the heap, or slices of the caller's memory.
//!
//! An [`OutputBuffer`] is filled front to back by an [`Appender`], so that nothing is read before
//! it is written. It must be full when it is finished.

#![allow(unsafe_code, reason = "memory is not initialised before it is written")]

use std::mem::MaybeUninit;

use bytes::Bytes;

use crate::error::{Result, refuse};

/// The memory that a reader's caller provides for the buffers of columns. Scratch buffers are
/// always on the heap.
pub trait BufferSource {
    /// A buffer of exactly `bytes` bytes, aligned to 64; with none, the buffer is on the heap.
    fn buffer(&mut self, bytes: usize) -> Option<Box<dyn BufferSlice>>;

    /// Whether plain buffers are copied here too, so that no column keeps the chunk's body alive.
    fn copies_plain(&self) -> bool;
}

/// A slice of the caller's memory that nobody else refers to.
///
/// # Safety
/// The reader checks what it has written, and nothing is checked again after that. So an
/// implementation promises:
///
/// - [`bytes_mut`](Self::bytes_mut) gives the same initialised bytes each time, as many as at
///   first, with what was written to them last;
/// - [`into_bytes`](Self::into_bytes) gives these bytes, with the same length and contents;
/// - until the last clone of that [`Bytes`] is dropped, nobody changes the memory or frees it.
pub unsafe trait BufferSlice {
    /// All of the slice. Its contents at first are arbitrary.
    fn bytes_mut(&mut self) -> &mut [u8];

    /// What was written.
    fn into_bytes(self: Box<Self>) -> Bytes;
}

/// A buffer under construction.
pub(crate) struct OutputBuffer {
    memory: Memory,
    /// The size of the buffer when it is full.
    bytes: usize,
}

enum Memory {
    /// As long as what was written.
    Heap(Vec<u8>),
    Slice {
        slice: Box<dyn BufferSlice>,
        written: usize,
    },
}

impl OutputBuffer {
    /// An empty buffer for `bytes` bytes, in `slice` if that has this size.
    pub(crate) fn new(slice: Option<Box<dyn BufferSlice>>, bytes: usize) -> Result<Self> {
        let memory = match Self::fitting(slice, bytes) {
            Some(slice) => Memory::Slice { slice, written: 0 },
            None => {
                let mut heap = Vec::new();
                if heap.try_reserve_exact(bytes).is_err() {
                    refuse!(Limit, "no memory for a buffer of {bytes} bytes");
                }
                Memory::Heap(heap)
            }
        };
        Ok(Self { memory, bytes })
    }

    /// A buffer full of zeros.
    pub(crate) fn zeros(slice: Option<Box<dyn BufferSlice>>, bytes: usize) -> Self {
        let memory = match Self::fitting(slice, bytes) {
            Some(mut slice) => {
                slice.bytes_mut().fill(0);
                Memory::Slice { slice, written: bytes }
            }
            // calloc gives zeroed pages without touching them; the chunk's declared size bounds
            // them.
            None => Memory::Heap(vec![0; bytes]),
        };
        Self { memory, bytes }
    }

    fn fitting(slice: Option<Box<dyn BufferSlice>>, bytes: usize) -> Option<Box<dyn BufferSlice>> {
        slice.and_then(|mut slice| (slice.bytes_mut().len() == bytes).then_some(slice))
    }

    /// Lets `fill` append values.
    pub(crate) fn append<V: Flat>(&mut self, fill: impl FnOnce(&mut Appender<'_, V>)) {
        match &mut self.memory {
            Memory::Heap(heap) => {
                let before = heap.len();
                debug_assert!(before <= self.bytes && self.bytes <= heap.capacity());
                let rest = &mut heap.spare_capacity_mut()[..self.bytes - before];
                let written = before + Appender::filled(rest, fill);
                debug_assert!(written <= self.bytes);
                // SAFETY: `written` is at most `self.bytes`, which is within the capacity. The
                // bytes up to `before` were initialised before, and those after it are the slots
                // that the appender has handed out and its `Flat` values have initialised.
                unsafe { heap.set_len(written) };
            }
            Memory::Slice { slice, written } => {
                let rest = &mut slice.bytes_mut()[*written..];
                // SAFETY: it is the same memory under a type with the same layout, borrowed from
                // `rest` alone. The appender writes nothing but initialised bytes to it, so that
                // the slice stays initialised.
                let rest = unsafe { &mut *(std::ptr::from_mut(rest) as *mut [MaybeUninit<u8>]) };
                *written += Appender::filled(rest, fill);
                debug_assert!(*written <= self.bytes);
            }
        }
    }

    /// All bytes, to be overwritten.
    pub(crate) fn all(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Heap(heap) => heap.resize(self.bytes, 0),
            Memory::Slice { written, .. } => *written = self.bytes,
        }
        self.written()
    }

    /// The vector, if the buffer is on the heap. It has the capacity for the whole buffer.
    pub(crate) fn heap(&mut self) -> Option<&mut Vec<u8>> {
        match &mut self.memory {
            Memory::Heap(heap) => Some(heap),
            Memory::Slice { .. } => None,
        }
    }

    /// What was written.
    pub(crate) fn written(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Heap(heap) => heap,
            Memory::Slice { slice, written } => &mut slice.bytes_mut()[..*written],
        }
    }

    /// The buffer, which must be full.
    pub(crate) fn finish(mut self) -> Result<Bytes> {
        let written = self.written().len();
        if written != self.bytes {
            refuse!(Length, "{written} bytes were decoded, {} expected", self.bytes);
        }
        Ok(match self.memory {
            Memory::Heap(heap) => Bytes::from(heap),
            Memory::Slice { slice, .. } => slice.into_bytes(),
        })
    }
}

/// Appends values to the rest of a buffer. Appending more than fits panics.
pub(crate) struct Appender<'a, V: Flat> {
    rest: &'a mut [V::Slot],
}

impl<V: Flat> Appender<'_, V> {
    /// Lets `fill` write to the front of `memory`. Returns the bytes written, which are
    /// initialised.
    fn filled(memory: &mut [MaybeUninit<u8>], fill: impl FnOnce(&mut Appender<'_, V>)) -> usize {
        let mut appender = Appender { rest: V::slots(memory) };
        let before = size_of_val(appender.rest);
        fill(&mut appender);
        before - size_of_val(appender.rest)
    }

    #[inline(always)]
    fn next(&mut self, count: usize) -> &mut [V::Slot] {
        let (slots, rest) = std::mem::take(&mut self.rest).split_at_mut(count);
        self.rest = rest;
        slots
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, value: V) {
        self.next(1).iter_mut().for_each(|slot| value.put(slot));
    }

    /// Appends a value `count` times.
    #[inline(always)]
    pub(crate) fn repeat(&mut self, value: V, count: usize) {
        self.next(count).iter_mut().for_each(|slot| value.put(slot));
    }

    #[inline(always)]
    pub(crate) fn extend_from_slice(&mut self, values: &[V]) {
        V::put_all(values, self.next(values.len()));
    }

    /// Appends a value for each item.
    #[inline(always)]
    pub(crate) fn extend_by<T, const N: usize>(&mut self, items: &[T; N], make: impl Fn(&T) -> V) {
        self.next(N).iter_mut().zip(items).for_each(|(slot, item)| make(item).put(slot));
    }

    #[inline(always)]
    pub(crate) fn extend(&mut self, values: impl Iterator<Item = V>) {
        let mut count = 0;
        for (slot, value) in self.rest.iter_mut().zip(values) {
            value.put(slot);
            count += 1;
        }
        self.next(count);
    }
}

/// A value that consists of its bytes, whatever they are.
///
/// # Safety
/// [`OutputBuffer`] treats slots as initialised bytes once values were put into them. So an
/// implementation promises:
///
/// - `Slot` consists of `MaybeUninit<u8>` alone: it has no padding, no invalid values and no other
///   alignment;
/// - [`slots`](Self::slots) gives the memory from its start on, in order and without gaps;
/// - [`put`](Self::put) initialises every byte of the slot, and [`put_all`](Self::put_all) every
///   byte of all slots, or panics;
/// - neither puts an uninitialised byte into a slot.
pub(crate) unsafe trait Flat: Copy {
    /// The memory of one value.
    type Slot;

    fn slots(memory: &mut [MaybeUninit<u8>]) -> &mut [Self::Slot];
    fn put(self, slot: &mut Self::Slot);
    fn put_all(values: &[Self], slots: &mut [Self::Slot]);
}

// SAFETY: a slot is one byte of the memory, and `write` and `write_copy_of_slice` initialise all
// that they are given; the latter panics unless both have the same length.
unsafe impl Flat for u8 {
    type Slot = MaybeUninit<u8>;

    fn slots(memory: &mut [MaybeUninit<u8>]) -> &mut [Self::Slot] {
        memory
    }

    #[inline(always)]
    fn put(self, slot: &mut Self::Slot) {
        slot.write(self);
    }

    #[inline(always)]
    fn put_all(values: &[Self], slots: &mut [Self::Slot]) {
        slots.write_copy_of_slice(values);
    }
}

// SAFETY: a slot is N bytes of the memory, one after the other from its start on, and
// `write_copy_of_slice` initialises all of them, or panics.
unsafe impl<const N: usize> Flat for [u8; N] {
    type Slot = [MaybeUninit<u8>; N];

    fn slots(memory: &mut [MaybeUninit<u8>]) -> &mut [Self::Slot] {
        memory.as_chunks_mut().0
    }

    #[inline(always)]
    fn put(self, slot: &mut Self::Slot) {
        slot.write_copy_of_slice(&self);
    }

    #[inline(always)]
    fn put_all(values: &[Self], slots: &mut [Self::Slot]) {
        slots.as_flattened_mut().write_copy_of_slice(values.as_flattened());
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What `fill` writes, `bytes` bytes.
    pub(crate) fn written<V: Flat>(
        bytes: usize,
        fill: impl FnOnce(&mut Appender<'_, V>),
    ) -> Vec<u8> {
        let mut buffer = OutputBuffer::new(None, bytes).unwrap();
        buffer.append(fill);
        buffer.finish().unwrap().to_vec()
    }

    struct Slice(Vec<u8>);

    // SAFETY: both functions give the one vector, which nobody else has.
    unsafe impl BufferSlice for Slice {
        fn bytes_mut(&mut self) -> &mut [u8] {
            &mut self.0
        }

        fn into_bytes(self: Box<Self>) -> Bytes {
            Bytes::from(self.0)
        }
    }

    #[test]
    fn a_buffer_is_written_front_to_back_and_must_be_full() {
        for slice_bytes in [None, Some(14), Some(15)] {
            let slice =
                || slice_bytes.map(|bytes| Box::new(Slice(vec![9; bytes])) as Box<dyn BufferSlice>);
            let mut buffer = OutputBuffer::new(slice(), 14).unwrap();
            buffer.append(|out| {
                out.push([1u8, 2]);
                out.repeat([3, 4], 2);
                out.extend_from_slice(&[[5, 6]]);
            });
            buffer.written()[0] = 7;
            buffer.append(|out| out.extend([8u8; 5].into_iter()));
            assert_eq!(buffer.written(), [7, 2, 3, 4, 3, 4, 5, 6, 8, 8, 8, 8, 8]);
            buffer.append(|out| out.push(0u8));
            assert_eq!(buffer.finish().unwrap()[..], [7, 2, 3, 4, 3, 4, 5, 6, 8, 8, 8, 8, 8, 0]);

            let mut buffer = OutputBuffer::new(slice(), 14).unwrap();
            buffer.append(|out| out.repeat([0u8; 4], 3));
            assert!(buffer.finish().is_err());
            assert_eq!(OutputBuffer::zeros(slice(), 14).finish().unwrap()[..], [0; 14]);
        }
    }
}
