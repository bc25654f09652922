//! Values of fixed width in the smallest of the encodings plain, constant, frame, patched and
//! Huffman: `spec/encodings.md` sections 2 and 4.

use bytes::Bytes;

use super::fixed_values::{FixedValues, Order};
use super::huffman::Huffman;
use super::range::{Frame, range};
use super::sample::SPREAD;
use crate::bitpack::{bits_for, pack, packed_bytes};
use crate::compress::Compression;
use crate::error::Result;
use crate::huffman::VALUES_MAX;
use crate::sink::Sink;
use crate::word::{Word, for_word};

/// The bytes that patching must save at least: its descriptors and padding take more than those of
/// a frame.
const PATCHED_SAVING_MIN: usize = 64;
/// Frames of fewer bits are not patched.
const PATCHED_BITS_MIN: u32 = 4;
/// Values that exceptions are collected from at a time.
const STEP: usize = 256;

/// Values with their encoding.
pub(super) struct EncodedValues {
    values: FixedValues,
    form: Form,
    /// The bytes that they take in the chunk, without the descriptors that every buffer has.
    pub(super) bytes: usize,
}

enum Form {
    Plain,
    Constant,
    Frame(Frame),
    /// With the frame of all values, if there is one.
    Patched(Box<Patched>, Option<Frame>),
    /// With the frame of the values.
    Huffman(Box<Huffman>, Frame),
}

/// A frame of most of the values, and the others as exceptions.
struct Patched {
    reference: u64,
    bits: u32,
    positions: EncodedValues,
    exceptions: EncodedValues,
}

impl EncodedValues {
    /// The smallest of plain, constant, frame and patched.
    pub(super) fn new(values: FixedValues) -> Self {
        let spread = values.spread();
        Self::with_spread(values, spread.as_ref())
    }

    /// The smallest of plain, constant, frame and patched. `spread` is a sample of the values.
    pub(super) fn with_spread(values: FixedValues, spread: Option<&[u64; SPREAD]>) -> Self {
        for_word!(
            values.width,
            [u8 u16 u32 u64],
            smallest,
            (values, spread),
            else Self::unordered(values)
        )
    }

    /// Constant or plain, which need no integers.
    pub(super) fn unordered(values: FixedValues) -> Self {
        if values.are_constant() {
            return Self { bytes: values.wire, values, form: Form::Constant };
        }
        Self { bytes: values.plain_bytes(), values, form: Form::Plain }
    }

    /// The smallest of plain, constant and frame.
    pub(super) fn inner<T: Word>(values: FixedValues) -> Self {
        let encoded = Self::unordered(values);
        if matches!(encoded.form, Form::Constant) || encoded.values.order == Order::None {
            return encoded;
        }
        let Some((reference, range)) = range::<T>(&encoded.values.bytes, encoded.values.order)
        else {
            return encoded;
        };
        match packed_bytes(encoded.values.count(), bits_for(range))
            .map(|packed| packed + encoded.values.wire)
        {
            Some(bytes) if bytes < encoded.bytes => Self {
                bytes,
                form: Form::Frame(Frame { reference: reference.low_64(), range }),
                ..encoded
            },
            _ => encoded,
        }
    }

    /// Unsigned integers below `count`, which are not all equal.
    pub(super) fn below(values: FixedValues, count: usize) -> Self {
        let range = count as u64 - 1;
        match packed_bytes(values.count(), bits_for(range)).map(|packed| packed + values.wire) {
            Some(bytes) if bytes < values.plain_bytes() => {
                Self { bytes, values, form: Form::Frame(Frame { reference: 0, range }) }
            }
            _ => Self { bytes: values.plain_bytes(), values, form: Form::Plain },
        }
    }

    /// The number of values.
    pub(super) fn count(&self) -> usize {
        self.values.count()
    }

    /// The frame of all values, if that is their encoding.
    pub(super) fn frame(&self) -> Option<Frame> {
        match self.form {
            Form::Frame(frame) => Some(frame),
            _ => None,
        }
    }

    /// Patched, if that saves a sixteenth.
    fn or_patched<T: Word>(self, spread: Option<&[u64; SPREAD]>) -> Self {
        let Self { values, form, .. } = &self;
        let bits = match form {
            Form::Frame(frame) => bits_for(frame.range),
            Form::Plain if values.order != Order::None => values.width as u32 * 8,
            _ => return self,
        };
        let (Some(spread), PATCHED_BITS_MIN.., 2..) = (spread, bits, values.width) else {
            return self;
        };
        let bias = values.order.bias::<T>();
        let bytes_max = (self.bytes / 16 * 15).min(self.bytes.saturating_sub(PATCHED_SAVING_MIN));
        let Some((low, bits)) = likely_frame(spread, bits, values.wire) else { return self };
        // The frame must not wrap around: a reader adds in a wider type.
        if low > T::MAX.low_64() - (u64::MAX >> (u64::BITS - bits.max(1))) {
            return self;
        }
        let low = T::truncated(low.into()).flipped(bias);
        let n = values.count();
        let Some(packed) = packed_bytes(n, bits).filter(|packed| *packed < bytes_max) else {
            return self;
        };
        let count_max = (bytes_max - packed) / (values.width + 1);
        let Some((positions, exceptions)) =
            exceptions::<T>(T::slice(&values.bytes), low, bits, count_max)
        else {
            return self;
        };
        if exceptions.is_empty() {
            return self;
        }
        let positions = Self::inner::<u32>(FixedValues::unsigned(positions.into_flattened(), 4));
        let exceptions = Self::inner::<T>(values.of(T::bytes(exceptions)));
        let bytes = packed + values.wire + positions.bytes + exceptions.bytes;
        if bytes >= bytes_max {
            return self;
        }
        let patched = Patched { reference: low.low_64(), bits, positions, exceptions };
        Self { form: Form::Patched(Box::new(patched), self.frame()), bytes, ..self }
    }

    /// In Huffman codes, if that saves a thirty-second.
    pub(super) fn or_huffman(self) -> Self {
        let (Form::Frame(frame) | Form::Patched(_, Some(frame))) = self.form else { return self };
        if frame.range >= VALUES_MAX as u64 {
            return self;
        }
        let distances = for_word!(
            self.values.width,
            [u8 u16 u32 u64],
            distances,
            (&self.values, frame),
            else return self
        );
        match Huffman::of(&distances, self.bytes) {
            Some(huffman) => {
                Self { bytes: huffman.bytes, form: Form::Huffman(Box::new(huffman), frame), ..self }
            }
            None => self,
        }
    }

    /// Writes the values. With zstd, Huffman codes are considered too: its own codes are for bytes.
    pub(super) fn write(self, sink: &mut Sink) -> Result<()> {
        match sink.compression {
            Compression::Zstd(_) => self.or_huffman().write_inner(sink),
            _ => self.write_inner(sink),
        }
    }

    /// Writes the values without Huffman codes, unless these were chosen already. They are not
    /// allowed within Huffman codes and in positions and exceptions.
    pub(super) fn write_inner(self, sink: &mut Sink) -> Result<()> {
        let Self { values, form, bytes } = self;
        if let Form::Frame(frame) | Form::Patched(_, Some(frame)) | Form::Huffman(_, frame) = form
            && sink.compression.compresses()
            && let Some((bits, raw, compressed)) = whole_bytes(&values, frame, bytes, sink)
        {
            head(sink, 2, bits, &values, frame.reference);
            return sink.compressed_buffer(compressed, raw);
        }
        match form {
            Form::Plain => {
                sink.descriptors.push(0);
                sink.buffer(vec![values.plain()])
            }
            Form::Constant => {
                sink.descriptors.push(1);
                let value = values.widened(&values.bytes[..values.width]);
                sink.descriptors.extend_from_slice(&value);
                Ok(())
            }
            Form::Frame(Frame { reference, range }) => {
                let bits = bits_for(range);
                head(sink, 2, bits, &values, reference);
                sink.plain_buffer(packed::<false>(&values, reference, bits, bytes))
            }
            Form::Patched(patched, _) => {
                let Patched { reference, bits, positions, exceptions } = *patched;
                head(sink, 6, bits, &values, reference);
                sink.buffer(vec![packed::<true>(&values, reference, bits, bytes)])?;
                sink.put_u32(exceptions.values.count())?;
                positions.write_inner(sink)?;
                exceptions.write_inner(sink)
            }
            Form::Huffman(huffman, Frame { reference, .. }) => {
                huffman.write(&reference_of(&values, reference), sink)
            }
        }
    }
}

/// A compressed frame of whole bytes, with its bits and its raw size, if that takes a tenth less
/// than `bytes`. A compressor finds no repetitions in values that straddle bytes.
fn whole_bytes(
    values: &FixedValues,
    frame: Frame,
    bytes: usize,
    sink: &mut Sink,
) -> Option<(u32, usize, Bytes)> {
    let bits = bits_for(frame.range).next_power_of_two().max(u8::BITS);
    let raw = packed::<false>(values, frame.reference, bits, values.count() * bits as usize / 8);
    let compressed = sink.compressed(&raw, bytes)?;
    Some((bits, raw.len(), compressed))
}

fn smallest<T: Word>(values: FixedValues, spread: Option<&[u64; SPREAD]>) -> EncodedValues {
    EncodedValues::inner::<T>(values).or_patched::<T>(spread)
}

/// Writes the code, the bits and the reference of a frame.
fn head(sink: &mut Sink, code: u8, bits: u32, values: &FixedValues, reference: u64) {
    // At most 64.
    sink.descriptors.extend_from_slice(&[code, bits.to_le_bytes()[0]]);
    sink.descriptors.extend_from_slice(&reference_of(values, reference));
}

/// A reference as it is sent.
fn reference_of(values: &FixedValues, reference: u64) -> Vec<u8> {
    values.widened(&reference.to_le_bytes()[..values.width])
}

/// The distance of each value from the reference. All are below 2^16.
fn distances<T: Word>(values: &FixedValues, frame: Frame) -> Vec<[u8; 2]> {
    let reference = T::truncated(frame.reference.into());
    let distance = |raw| (T::of(raw).minus(reference).low_32() as u16).to_le_bytes();
    T::slice(&values.bytes).iter().map(distance).collect()
}

/// The values packed as distances from `reference`; with `PATCHED`, 0 for exceptions.
fn packed<const PATCHED: bool>(
    values: &FixedValues,
    reference: u64,
    bits: u32,
    bytes_max: usize,
) -> Bytes {
    let mut out = Vec::with_capacity(bytes_max);
    for_word!(
        values.width,
        [u8 u16 u32 u64],
        pack_word,
        (values, reference, bits, PATCHED, &mut out),
        else {}
    );
    Bytes::from(out)
}

fn pack_word<T: Word>(
    values: &FixedValues,
    reference: u64,
    bits: u32,
    most: bool,
    out: &mut Vec<u8>,
) {
    let (words, reference) = (T::slice(&values.bytes), T::truncated(reference.into()));
    match most {
        true => pack::<T, true>(words, reference, bits, out),
        false => pack::<T, false>(words, reference, bits, out),
    }
}

/// The reference and the bits of the frame that makes a sorted sample smallest, if values outside
/// of it are exceptions and it has fewer than `bits`.
fn likely_frame(sorted: &[u64; SPREAD], bits: u32, wire: usize) -> Option<(u64, u32)> {
    // One value in fifty may be below the frame.
    let lows = [sorted[0], sorted[SPREAD / 50]];
    let mut best = None;
    // An exception takes its own bits, and about 12 for its position.
    let exception_bits = wire.min(8) as u64 * 8 + 12;
    let mut bits_min = u64::from(bits) * SPREAD as u64 / 16 * 15;
    for low in lows {
        let mut counts = [0u64; 65];
        for key in sorted {
            counts[bits_for(key.wrapping_sub(low)) as usize] += 1;
        }
        let mut exceptions = SPREAD as u64;
        for (width, count) in (0..bits).zip(counts) {
            exceptions -= count;
            let total = u64::from(width) * SPREAD as u64 + exceptions * exception_bits;
            if total < bits_min {
                bits_min = total;
                best = Some((low, width));
            }
        }
    }
    best
}

/// The positions of exceptions, and the exceptions.
type Exceptions<T> = (Vec<[u8; 4]>, Vec<<T as Word>::Raw>);

/// The values whose distance from `low` needs more than `bits`; none if there are more than
/// `count_max`.
fn exceptions<T: Word>(
    values: &[T::Raw],
    low: T,
    bits: u32,
    count_max: usize,
) -> Option<Exceptions<T>> {
    let (mut positions, mut found) = (Vec::new(), Vec::new());
    for (step, values) in values.chunks(STEP).enumerate() {
        // Every position is written, and overwritten unless it is that of an exception: a branch
        // would be unpredictable.
        let mut places = [0; STEP];
        let mut count = 0;
        for (i, raw) in values.iter().enumerate() {
            places[count % STEP] = i;
            count += usize::from(!T::of(raw).minus(low).fits(bits));
        }
        if found.len() + count > count_max {
            return None;
        }
        found.extend(places[..count].iter().map(|place| values[*place]));
        // A chunk has fewer than 2^31 values.
        positions.extend(
            places[..count].iter().map(|place| ((step * STEP + place) as u32).to_le_bytes()),
        );
    }
    debug_assert_eq!(positions.len(), found.len());
    Some((positions, found))
}
