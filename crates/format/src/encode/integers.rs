//! Values of fixed width as plain, constant, frame or patched, whichever takes the fewest bytes: `spec/encodings.md`
//! sections 2 and 4.

use bytes::Bytes;

use crate::bitpack::{bits_for, pack, packed_bytes};
use crate::error::Result;
use crate::write::Writer;

/// Exceptions are looked for among so many values first.
const SAMPLE: usize = 256;
/// What the descriptors and the padding of a patched frame may take more than those of a frame.
const PATCHED_SAVING_MIN: usize = 64;
/// Frames of fewer bits are not patched.
const PATCHED_BITS_MIN: u32 = 4;

/// How the bytes of a value compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Signed,
    Unsigned,
    /// They are not an integer.
    None,
}

impl Order {
    /// What makes values of W bytes compare as unsigned ones: the sign's bit flipped.
    fn bias<const W: usize>(self) -> u64 {
        if self == Self::Signed { 1 << (W * 8 - 1) } else { 0 }
    }
}

/// Values, and how they are written.
pub(super) struct Part {
    values: Bytes,
    width: usize,
    form: Form,
    /// What they take in the chunk, but for what every buffer does.
    pub(super) bytes: usize,
}

enum Form {
    Plain,
    Constant,
    Frame(Frame),
    Patched(Box<Patched>),
}

/// The frame that fits some values.
struct Frame {
    reference: u128,
    bits: u32,
}

/// A frame that fits most of them.
struct Patched {
    /// The bits of the reference.
    reference: u64,
    bits: u32,
    positions: Part,
    exceptions: Part,
}

impl Part {
    /// The smallest of plain, constant, frame and patched.
    pub(super) fn new(values: Bytes, width: usize, order: Order) -> Self {
        let part = Self::inner(values, width, order);
        let bits = match &part.form {
            Form::Frame(frame) => frame.bits,
            Form::Plain if order != Order::None => part.width as u32 * 8,
            _ => return part,
        };
        if bits < PATCHED_BITS_MIN {
            return part;
        }
        match part.width {
            2 => part.patched::<2>(bits, order),
            4 => part.patched::<4>(bits, order),
            8 => part.patched::<8>(bits, order),
            _ => part,
        }
    }

    /// The same, but not patched.
    pub(super) fn inner(values: Bytes, width: usize, order: Order) -> Self {
        if is_constant(&values, width) {
            return Self { values, width, form: Form::Constant, bytes: width };
        }
        let frame = match (order, width) {
            (Order::None, _) => None,
            (_, 1) => range_64::<1>(&values, order),
            (_, 2) => range_64::<2>(&values, order),
            (_, 4) => range_64::<4>(&values, order),
            (_, 8) => range_64::<8>(&values, order),
            (_, 16) => range_128(&values),
            _ => None,
        };
        let frame = frame.and_then(|(reference, range)| {
            let bits = bits_for(range);
            let bytes = packed_bytes(values.len() / width, bits)? + width;
            (bytes < values.len()).then_some((Frame { reference, bits }, bytes))
        });
        match frame {
            Some((frame, bytes)) => Self { values, width, form: Form::Frame(frame), bytes },
            None => Self { bytes: values.len(), values, width, form: Form::Plain },
        }
    }

    /// Patched, if that saves a sixteenth.
    fn patched<const W: usize>(self, bits: u32, order: Order) -> Self {
        let bias = order.bias::<W>();
        let values = self.values.as_chunks::<W>().0;
        let bytes_max = (self.bytes / 16 * 15).min(self.bytes.saturating_sub(PATCHED_SAVING_MIN));
        let Some((low, bits)) = likely_frame(values, bias, bits) else { return self };
        let (mut positions, mut exceptions) = (Vec::new(), Vec::new());
        let Some(packed) = packed_bytes(values.len(), bits).filter(|packed| *packed < bytes_max) else { return self };
        let exceptions_max = (bytes_max - packed) / (W + 1);
        for (i, raw) in values.iter().enumerate() {
            if distance(raw, bias, low) >> bits != 0 {
                if exceptions.len() == exceptions_max {
                    return self;
                }
                positions.extend_from_slice(&(i as u32).to_le_bytes());
                exceptions.push(*raw);
            }
        }
        if exceptions.is_empty() {
            return self;
        }
        let positions = Self::inner(Bytes::from(positions), 4, Order::Unsigned);
        let exceptions = Self::inner(Bytes::from(exceptions.into_flattened()), W, order);
        let bytes = packed + W + positions.bytes + exceptions.bytes;
        if bytes >= bytes_max {
            return self;
        }
        let patched = Patched { reference: low ^ bias, bits, positions, exceptions };
        Self { form: Form::Patched(Box::new(patched)), bytes, ..self }
    }

    pub(super) fn write(self, writer: &mut Writer) -> Result<()> {
        let Self { values, width, form, bytes } = self;
        match form {
            Form::Plain => {
                writer.descriptors.push(0);
                writer.buffer(vec![values])
            }
            Form::Constant => {
                writer.descriptors.push(1);
                writer.descriptors.extend_from_slice(&values[..width]);
                Ok(())
            }
            Form::Frame(Frame { reference, bits }) => {
                let mut packed = Vec::with_capacity(bytes);
                match width {
                    1 => pack_frame::<1>(&values, reference, bits, &mut packed),
                    2 => pack_frame::<2>(&values, reference, bits, &mut packed),
                    4 => pack_frame::<4>(&values, reference, bits, &mut packed),
                    8 => pack_frame::<8>(&values, reference, bits, &mut packed),
                    _ => pack_frame_128(&values, reference, bits, &mut packed),
                }
                head(writer, 2, bits, &reference.to_le_bytes()[..width]);
                writer.buffer(vec![Bytes::from(packed)])
            }
            Form::Patched(patched) => {
                let Patched { reference, bits, positions, exceptions } = *patched;
                let mut packed = Vec::with_capacity(bytes);
                match width {
                    2 => pack_most::<2>(&values, reference, bits, &mut packed),
                    4 => pack_most::<4>(&values, reference, bits, &mut packed),
                    _ => pack_most::<8>(&values, reference, bits, &mut packed),
                }
                head(writer, 6, bits, &reference.to_le_bytes()[..width]);
                writer.buffer(vec![Bytes::from(packed)])?;
                writer.put_u32(exceptions.values.len() / width)?;
                positions.write(writer)?;
                exceptions.write(writer)
            }
        }
    }
}

fn head(writer: &mut Writer, code: u8, bits: u32, reference: &[u8]) {
    // At most 64.
    writer.descriptors.extend_from_slice(&[code, bits.to_le_bytes()[0]]);
    writer.descriptors.extend_from_slice(reference);
}

/// Whether there are values, and all are the same.
pub(super) fn is_constant(values: &[u8], width: usize) -> bool {
    values.len() >= width && values[width..] == values[..values.len() - width]
}

fn zero_extended<const W: usize>(raw: &[u8; W]) -> u64 {
    let mut wide = [0; 8];
    wide[..W].copy_from_slice(raw);
    u64::from_le_bytes(wide)
}

/// How far a value is above `low`; below it lies what is farthest.
fn distance<const W: usize>(raw: &[u8; W], bias: u64, low: u64) -> u64 {
    (zero_extended(raw) ^ bias).wrapping_sub(low)
}

/// The smallest value and the distance to the largest, of values of up to 8 bytes.
fn range_64<const W: usize>(values: &[u8], order: Order) -> Option<(u128, u64)> {
    let bias = order.bias::<W>();
    let (mut min, mut max) = (u64::MAX, 0);
    for raw in values.as_chunks::<W>().0 {
        let key = zero_extended(raw) ^ bias;
        min = min.min(key);
        max = max.max(key);
    }
    (min <= max).then(|| (u128::from(min ^ bias), max - min))
}

fn range_128(values: &[u8]) -> Option<(u128, u64)> {
    let (mut min, mut max) = (i128::MAX, i128::MIN);
    for raw in values.as_chunks::<16>().0 {
        let value = i128::from_le_bytes(*raw);
        min = min.min(value);
        max = max.max(value);
    }
    // The bits of the smallest value: the reader adds modulo 2^128.
    Some((min as u128, u64::try_from(max.checked_sub(min)?).ok()?))
}

/// The frame of fewer bits, and with which exceptions, that would take the fewest bytes for a sample of values: where it begins,
/// and its bits.
fn likely_frame<const W: usize>(values: &[[u8; W]], bias: u64, bits: u32) -> Option<(u64, u32)> {
    let mut keys = [0; SAMPLE];
    let stride = values.len() / SAMPLE;
    if stride == 0 {
        return None;
    }
    for (key, raw) in keys.iter_mut().zip(values.iter().step_by(stride)) {
        *key = zero_extended(raw) ^ bias;
    }
    keys.sort_unstable();
    // A value in fifty may lie below.
    let lows = [keys[0], keys[SAMPLE / 50]];
    let mut best = None;
    // An exception takes its bits, and about as many for its position as make the distance to the last one.
    let exception_bits = W as u64 * 8 + 12;
    let mut bits_min = u64::from(bits) * SAMPLE as u64 / 16 * 15;
    for low in lows {
        let mut counts = [0u64; 65];
        for key in keys {
            counts[bits_for(key.wrapping_sub(low)) as usize] += 1;
        }
        let mut exceptions = SAMPLE as u64;
        for (width, count) in (0..bits).zip(counts) {
            exceptions -= count;
            let total = u64::from(width) * SAMPLE as u64 + exceptions * exception_bits;
            if total < bits_min {
                bits_min = total;
                best = Some((low, width));
            }
        }
    }
    best
}

fn pack_frame<const W: usize>(values: &[u8], reference: u128, bits: u32, out: &mut Vec<u8>) {
    let mask = u64::MAX >> (64 - W * 8);
    // The reference of values of W bytes fits into 64 bits.
    let reference = reference as u64;
    let mut deltas = Vec::with_capacity(1024);
    for block in values.as_chunks::<W>().0.chunks(1024) {
        deltas.clear();
        deltas.extend(block.iter().map(|raw| zero_extended(raw).wrapping_sub(reference) & mask));
        pack(&deltas, bits, out);
    }
}

fn pack_frame_128(values: &[u8], reference: u128, bits: u32, out: &mut Vec<u8>) {
    let mut deltas = Vec::with_capacity(1024);
    for block in values.as_chunks::<16>().0.chunks(1024) {
        deltas.clear();
        // The distance to the smallest value fits into 64 bits: `range_128` has checked it.
        deltas.extend(block.iter().map(|raw| u128::from_le_bytes(*raw).wrapping_sub(reference) as u64));
        pack(&deltas, bits, out);
    }
}

/// Packs what fits, and zero for what does not.
fn pack_most<const W: usize>(values: &[u8], reference: u64, bits: u32, out: &mut Vec<u8>) {
    let mask = u64::MAX >> (64 - W * 8);
    let mut deltas = Vec::with_capacity(1024);
    for block in values.as_chunks::<W>().0.chunks(1024) {
        deltas.clear();
        deltas.extend(block.iter().map(|raw| {
            let delta = zero_extended(raw).wrapping_sub(reference) & mask;
            if delta >> bits == 0 { delta } else { 0 }
        }));
        pack(&deltas, bits, out);
    }
}
