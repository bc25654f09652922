//! Memory that buffers are decoded into: the heap's, or what the reader's caller lends.
//!
//! A [`Room`] is filled front to back through a [`Writer`] and so never read before it is written;
//! what it becomes has exactly the size that was asked for.

#![allow(unsafe_code, reason = "memory is not initialised before it is written")]

use std::mem::MaybeUninit;

use bytes::Bytes;

use crate::error::{Result, refuse};

/// Where a caller wants the buffers of columns to be. What a reader needs only meanwhile is always
/// on the heap.
pub trait Memory {
    /// A piece of exactly `bytes` bytes, aligned to 64; none for one on the heap.
    fn piece(&mut self, bytes: usize) -> Option<Box<dyn Piece>>;

    /// Whether plain buffers are to be copied here as well, so that nothing is left that points
    /// into the chunk's body.
    fn takes_plain(&self) -> bool;
}

/// Memory that nobody else refers to.
///
/// # Safety
/// `room` always gives the same bytes, and `into_bytes` these bytes as they were last: columns are
/// not checked again after that.
pub unsafe trait Piece {
    /// All of it, of any contents.
    fn room(&mut self) -> &mut [u8];

    /// What was written.
    fn into_bytes(self: Box<Self>) -> Bytes;
}

/// A buffer under construction.
pub(crate) struct Room {
    source: Source,
    bytes: usize,
}

enum Source {
    /// As long as what was written.
    Heap(Vec<u8>),
    Lent {
        piece: Box<dyn Piece>,
        written: usize,
    },
}

impl Room {
    /// For `bytes` bytes.
    pub(crate) fn new(piece: Option<Box<dyn Piece>>, bytes: usize) -> Result<Self> {
        let source = match Self::lent(piece, bytes) {
            Some(piece) => Source::Lent { piece, written: 0 },
            None => {
                let mut heap = Vec::new();
                if heap.try_reserve_exact(bytes).is_err() {
                    refuse!(Limit, "no memory for a buffer of {bytes} bytes");
                }
                Source::Heap(heap)
            }
        };
        Ok(Self { source, bytes })
    }

    /// Full of zeros.
    pub(crate) fn zeros(piece: Option<Box<dyn Piece>>, bytes: usize) -> Self {
        let source = match Self::lent(piece, bytes) {
            Some(mut piece) => {
                piece.room().fill(0);
                Source::Lent { piece, written: bytes }
            }
            // calloc gives zeroed pages without touching them; the chunk's declared size bounds
            // them.
            None => Source::Heap(vec![0; bytes]),
        };
        Self { source, bytes }
    }

    fn lent(piece: Option<Box<dyn Piece>>, bytes: usize) -> Option<Box<dyn Piece>> {
        piece.and_then(|mut piece| (piece.room().len() == bytes).then_some(piece))
    }

    /// Has `fill` append values.
    pub(crate) fn write<R: Flat>(&mut self, fill: impl FnOnce(&mut Writer<'_, R>)) {
        match &mut self.source {
            Source::Heap(heap) => {
                let before = heap.len();
                let rest = &mut heap.spare_capacity_mut()[..self.bytes - before];
                let written = before + Writer::filled(rest, fill);
                // SAFETY: the writer has counted what it has written behind `before`, within the
                // capacity.
                unsafe { heap.set_len(written) };
            }
            Source::Lent { piece, written } => {
                let rest = &mut piece.room()[*written..];
                // SAFETY: the same bytes. The writer puts nothing among them that is not
                // initialised.
                let rest = unsafe { &mut *(std::ptr::from_mut(rest) as *mut [MaybeUninit<u8>]) };
                *written += Writer::filled(rest, fill);
            }
        }
    }

    /// All bytes, to be overwritten.
    pub(crate) fn all(&mut self) -> &mut [u8] {
        match &mut self.source {
            Source::Heap(heap) => heap.resize(self.bytes, 0),
            Source::Lent { written, .. } => *written = self.bytes,
        }
        self.written()
    }

    /// The vector that it is on the heap, with room for the whole buffer.
    pub(crate) fn heap(&mut self) -> Option<&mut Vec<u8>> {
        match &mut self.source {
            Source::Heap(heap) => Some(heap),
            Source::Lent { .. } => None,
        }
    }

    /// What was written.
    pub(crate) fn written(&mut self) -> &mut [u8] {
        match &mut self.source {
            Source::Heap(heap) => heap,
            Source::Lent { piece, written } => &mut piece.room()[..*written],
        }
    }

    /// The buffer, which must be full.
    pub(crate) fn finish(mut self) -> Result<Bytes> {
        let written = self.written().len();
        if written != self.bytes {
            refuse!(Length, "{written} bytes were decoded, {} expected", self.bytes);
        }
        Ok(match self.source {
            Source::Heap(heap) => Bytes::from(heap),
            Source::Lent { piece, .. } => piece.into_bytes(),
        })
    }
}

/// Appends values to memory that has room for them; it panics where it has not.
pub(crate) struct Writer<'a, R: Flat> {
    rest: &'a mut [R::Slot],
}

impl<R: Flat> Writer<'_, R> {
    /// Has `fill` write to the front of `room`, and returns how many bytes.
    fn filled(room: &mut [MaybeUninit<u8>], fill: impl FnOnce(&mut Writer<'_, R>)) -> usize {
        let mut writer = Writer { rest: R::slots(room) };
        let before = size_of_val(writer.rest);
        fill(&mut writer);
        before - size_of_val(writer.rest)
    }

    #[inline(always)]
    fn next(&mut self, count: usize) -> &mut [R::Slot] {
        let (slots, rest) = std::mem::take(&mut self.rest).split_at_mut(count);
        self.rest = rest;
        slots
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, value: R) {
        self.next(1).iter_mut().for_each(|slot| value.put(slot));
    }

    /// A value `count` times.
    #[inline(always)]
    pub(crate) fn repeat(&mut self, value: R, count: usize) {
        self.next(count).iter_mut().for_each(|slot| value.put(slot));
    }

    #[inline(always)]
    pub(crate) fn extend_from_slice(&mut self, values: &[R]) {
        R::put_all(values, self.next(values.len()));
    }

    /// What `make` makes of each item.
    #[inline(always)]
    pub(crate) fn extend_by<T, const N: usize>(&mut self, items: &[T; N], make: impl Fn(&T) -> R) {
        self.next(N).iter_mut().zip(items).for_each(|(slot, item)| make(item).put(slot));
    }

    #[inline(always)]
    pub(crate) fn extend(&mut self, values: impl Iterator<Item = R>) {
        let mut count = 0;
        for (slot, value) in self.rest.iter_mut().zip(values) {
            value.put(slot);
            count += 1;
        }
        self.next(count);
    }
}

/// A value that is nothing but its bytes.
pub(crate) trait Flat: Copy {
    /// Room for one.
    type Slot;

    fn slots(room: &mut [MaybeUninit<u8>]) -> &mut [Self::Slot];
    fn put(self, slot: &mut Self::Slot);
    fn put_all(values: &[Self], slots: &mut [Self::Slot]);
}

impl Flat for u8 {
    type Slot = MaybeUninit<u8>;

    fn slots(room: &mut [MaybeUninit<u8>]) -> &mut [Self::Slot] {
        room
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

impl<const N: usize> Flat for [u8; N] {
    type Slot = [MaybeUninit<u8>; N];

    fn slots(room: &mut [MaybeUninit<u8>]) -> &mut [Self::Slot] {
        room.as_chunks_mut().0
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
    pub(crate) fn written<R: Flat>(bytes: usize, fill: impl FnOnce(&mut Writer<'_, R>)) -> Vec<u8> {
        let mut room = Room::new(None, bytes).unwrap();
        room.write(fill);
        room.finish().unwrap().to_vec()
    }

    struct Lent(Vec<u8>);

    // SAFETY: both functions speak of the one vector.
    unsafe impl Piece for Lent {
        fn room(&mut self) -> &mut [u8] {
            &mut self.0
        }

        fn into_bytes(self: Box<Self>) -> Bytes {
            Bytes::from(self.0)
        }
    }

    #[test]
    fn a_room_is_written_front_to_back_and_must_be_full() {
        for lent in [None, Some(14), Some(15)] {
            let piece = || lent.map(|bytes| Box::new(Lent(vec![9; bytes])) as Box<dyn Piece>);
            let mut room = Room::new(piece(), 14).unwrap();
            room.write(|out| {
                out.push([1u8, 2]);
                out.repeat([3, 4], 2);
                out.extend_from_slice(&[[5, 6]]);
            });
            room.written()[0] = 7;
            room.write(|out| out.extend([8u8; 5].into_iter()));
            assert_eq!(room.written(), [7, 2, 3, 4, 3, 4, 5, 6, 8, 8, 8, 8, 8]);
            room.write(|out| out.push(0u8));
            assert_eq!(room.finish().unwrap()[..], [7, 2, 3, 4, 3, 4, 5, 6, 8, 8, 8, 8, 8, 0]);

            let mut room = Room::new(piece(), 14).unwrap();
            room.write(|out| out.repeat([0u8; 4], 3));
            assert!(room.finish().is_err());
            assert_eq!(Room::zeros(piece(), 14).finish().unwrap()[..], [0; 14]);
        }
    }
}
