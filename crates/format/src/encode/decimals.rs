//! Floats that are decimals, as integers and one power of ten: `spec/encodings.md` section 2.1.

use bytes::Bytes;

use super::fixed_values::{FixedValues, Order};
use super::values::EncodedValues;
use crate::bitpack::bits_for;
use crate::decimals::{POWERS, quotient};
use crate::error::Result;
use crate::sink::Sink;

/// The size of the sample that the exponent is chosen from.
const SAMPLE: usize = 256;
/// Integers stay below this, so that the sum that rounds them is exact.
const INTEGER_MAX: f64 = (1u64 << 50) as f64;
/// 1.5 × 2^52. Adding it to a number rounds that to an integer, in the lowest bits of the sum.
const ROUNDING: f64 = 6_755_399_441_055_744.0;
/// An upper bound on the descriptors and the padding of positions and exceptions.
const OVERHEAD_BYTES: usize = 64;

/// Integers instead of floats, and the floats that have no integer.
pub(super) struct Decimals {
    exponent: usize,
    integers: EncodedValues,
    exceptions: Option<(EncodedValues, EncodedValues)>,
    count: usize,
    pub(super) bytes: usize,
}

/// A float of W bytes.
fn float<const W: usize>(raw: &[u8; W]) -> f64 {
    match (raw.first_chunk::<8>(), raw.first_chunk::<4>()) {
        (Some(raw), _) => f64::from_le_bytes(*raw),
        (None, Some(raw)) => f32::from_le_bytes(*raw).into(),
        _ => f64::NAN,
    }
}

/// The integer of a float times `power`, and whether it decodes to the same bits.
#[inline(always)]
fn integer<const W: usize>(raw: &[u8; W], power: f64) -> (i64, bool) {
    let scaled = float(raw) * power;
    let sum = scaled + ROUNDING;
    let integer = sum.to_bits().wrapping_sub(ROUNDING.to_bits()).cast_signed();
    let back = quotient::<W>(sum - ROUNDING, power) == *raw;
    (
        integer,
        back & (scaled.abs() < INTEGER_MAX)
            & (W == 8 || (-0x8000_0000..0x8000_0000).contains(&integer)),
    )
}

impl Decimals {
    /// Floats as decimals with an exponent, unless more than an eighth of them have no integer.
    pub(super) fn of(values: &FixedValues, exponent: usize) -> Option<Self> {
        match values.width {
            4 => Self::with_width::<4>(&values.bytes, exponent),
            8 => Self::with_width::<8>(&values.bytes, exponent),
            _ => None,
        }
    }

    fn with_width<const W: usize>(values: &[u8], exponent: usize) -> Option<Self> {
        let values = values.as_chunks::<W>().0;
        let power = POWERS[exponent];
        let mut integers = vec![[0; W]; values.len()];
        let mut exceptions = 0;
        for (slot, raw) in integers.iter_mut().zip(values) {
            let (integer, same) = integer(raw, power);
            slot.copy_from_slice(&integer.to_le_bytes()[..W]);
            exceptions += usize::from(!same);
        }
        if exceptions > values.len() / 8 {
            return None;
        }
        let (mut positions, mut others) = (Vec::new(), Vec::new());
        if exceptions > 0 {
            // An exception's place repeats the integer before it, which does not widen the frame.
            let is_exception = |raw: &[u8; W]| !integer(raw, power).1;
            let first = values.iter().position(|raw| !is_exception(raw))?;
            let mut before = integers[first];
            for (at, (raw, slot)) in values.iter().zip(&mut integers).enumerate() {
                if is_exception(raw) {
                    // A chunk has fewer than 2^31 values.
                    positions.push((at as u32).to_le_bytes());
                    others.push(*raw);
                    *slot = before;
                }
                before = *slot;
            }
        }
        let integers = EncodedValues::new(FixedValues::new(
            Bytes::from(integers.into_flattened()),
            W,
            Order::Signed,
        ));
        let count = others.len();
        let exceptions = (count > 0).then(|| {
            let positions = FixedValues::unsigned(positions.into_flattened(), 4);
            let others = FixedValues::new(Bytes::from(others.into_flattened()), W, Order::None);
            (EncodedValues::inner::<u32>(positions), EncodedValues::unordered(others))
        });
        let more = exceptions.as_ref().map_or(0, |(a, b)| a.bytes + b.bytes + OVERHEAD_BYTES);
        Some(Self { exponent, bytes: integers.bytes + more, integers, exceptions, count })
    }

    pub(super) fn write(self, sink: &mut Sink) -> Result<()> {
        // At most 22.
        sink.descriptors.extend_from_slice(&[7, self.exponent as u8]);
        self.integers.write(sink)?;
        sink.put_u32(self.count)?;
        match self.exceptions {
            Some((positions, others)) => {
                positions.write_inner(sink)?;
                others.write_inner(sink)
            }
            None => Ok(()),
        }
    }
}

/// The exponent that makes a sample of the floats smallest, and the bytes that all of them likely
/// take.
pub(super) fn likely_exponent(values: &FixedValues) -> Option<(usize, usize)> {
    match values.width {
        4 => likely_with_width::<4>(&values.bytes),
        8 => likely_with_width::<8>(&values.bytes),
        _ => None,
    }
}

fn likely_with_width<const W: usize>(values: &[u8]) -> Option<(usize, usize)> {
    let values = values.as_chunks::<W>().0;
    let stride = values.len().div_ceil(SAMPLE).max(1);
    let sampled = values.len().div_ceil(stride);
    let mut best = None;
    let mut bits_min = usize::MAX;
    for (exponent, power) in POWERS.iter().enumerate() {
        let (mut min, mut max, mut exceptions) = (i64::MAX, i64::MIN, 0);
        for raw in values.iter().step_by(stride) {
            match integer(raw, *power) {
                (integer, true) => (min, max) = (min.min(integer), max.max(integer)),
                _ => exceptions += 1,
            }
        }
        if min > max {
            continue;
        }
        let bits = bits_for(max.wrapping_sub(min).cast_unsigned()) as usize * sampled
            + exceptions * (W * 8 + 16);
        if bits < bits_min {
            bits_min = bits;
            best = Some((exponent, bits.div_ceil(8) * values.len() / sampled));
        }
        // A larger exponent only makes larger integers.
        if exceptions == 0 {
            break;
        }
    }
    best
}
