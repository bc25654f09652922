//! Moving present values to their rows (chunk.md section 3, nulls code 02).

use bytes::Bytes;

use crate::column::{Bitmap, u32s};
use crate::output::Appender;

/// The positions of the bits that are 1.
pub(crate) fn ones(validity: &Bitmap) -> impl Iterator<Item = usize> + '_ {
    validity.words().enumerate().flat_map(|(i, (mut word, _))| {
        std::iter::from_fn(move || {
            let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
            word &= word - 1;
            Some(i * 64 + bit)
        })
    })
}

/// Moves `values`, one per bit that is 1 in `validity`, to their rows in `out`, which holds zeros.
pub(crate) fn expand_fixed(values: &[u8], width: usize, validity: &Bitmap, out: &mut [u8]) {
    match width {
        1 => scatter::<1>(values, validity, out),
        2 => scatter::<2>(values, validity, out),
        4 => scatter::<4>(values, validity, out),
        8 => scatter::<8>(values, validity, out),
        16 => scatter::<16>(values, validity, out),
        _ => {
            for (value, at) in values.chunks_exact(width).zip(ones(validity)) {
                out[at * width..][..width].copy_from_slice(value);
            }
        }
    }
}

fn scatter<const W: usize>(values: &[u8], validity: &Bitmap, out: &mut [u8]) {
    let out = out.as_chunks_mut::<W>().0;
    for (value, at) in values.as_chunks::<W>().0.iter().zip(ones(validity)) {
        out[at] = *value;
    }
}

/// Moves bits, one per bit that is 1 in `validity`, to their rows.
pub(crate) fn expand_bits(bits: &Bitmap, validity: &Bitmap) -> Bitmap {
    let mut out = vec![0u8; validity.len.div_ceil(8)];
    for (i, at) in ones(validity).enumerate() {
        out[at / 8] |= u8::from(bits.bit(i)) << (at % 8);
    }
    Bitmap { bytes: Bytes::from(out), offset: 0, len: validity.len }
}

/// Moves offsets to their rows: a missing string is an empty one.
pub(crate) fn expand_offsets(offsets: &[u8], validity: &Bitmap, out: &mut Appender<'_, [u8; 4]>) {
    let mut ends = u32s(offsets);
    let mut end = ends.next().unwrap_or(0);
    out.push(end.to_le_bytes());
    for (mut word, bits) in validity.words() {
        for _ in 0..bits {
            if word & 1 == 1 {
                end = ends.next().unwrap_or(end);
            }
            word >>= 1;
            out.push(end.to_le_bytes());
        }
    }
}
