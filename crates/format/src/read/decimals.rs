//! Floats that were decimals: `spec/encodings.md` section 2.1.

use bytes::Bytes;

use super::fixed::Codes;
use super::{Reader, reserved};
use crate::column::{u32_at, u32s};
use crate::decimals::{POWERS, quotient};
use crate::error::{Result, refuse};

impl Reader<'_> {
    pub(super) fn decimals(&mut self, n: usize, width: usize) -> Result<Bytes> {
        self.note("decimals");
        if !matches!(width, 4 | 8) {
            refuse!(Bits, "decimals for values of {width} bytes");
        }
        let exponent = self.descriptors.u8("exponent")?;
        let Some(power) = POWERS.get(usize::from(exponent)) else {
            refuse!(Exponent, "decimals with exponent {exponent}, over the limit of {}", POWERS.len() - 1)
        };
        let integers = self.fixed(n, width, Codes::PARTS)?;
        let mut out = reserved(n * width)?;
        if width == 8 {
            let values = integers.as_chunks().0.iter().map(|raw| i64::from_le_bytes(*raw) as f64);
            divide::<8>(values, *power, &mut out);
        } else {
            let values = integers.as_chunks().0.iter().map(|raw| i32::from_le_bytes(*raw).into());
            divide::<4>(values, *power, &mut out);
        }
        let count = self.descriptors.u32("count")? as usize;
        if count == 0 {
            return Ok(Bytes::from(out));
        }
        if count > n {
            refuse!(Positions, "{count} exceptions among {n} values");
        }
        let positions = self.fixed(count, 4, Codes::INNER)?;
        let rise = u32s(&positions).zip(u32s(&positions[4..])).fold(true, |rise, (a, b)| rise & (a < b));
        if !rise || u32_at(&positions, count - 1) as usize >= n {
            refuse!(Positions, "the positions of exceptions do not rise, or reach {n}");
        }
        let exceptions = self.fixed(count, width, Codes::INNER)?;
        for (exception, position) in exceptions.chunks_exact(width).zip(u32s(&positions)) {
            out[position as usize * width..][..width].copy_from_slice(exception);
        }
        Ok(Bytes::from(out))
    }
}

fn divide<const W: usize>(values: impl ExactSizeIterator<Item = f64>, power: f64, out: &mut Vec<u8>) {
    out.resize(values.len() * W, 0);
    for (slot, value) in out.as_chunks_mut::<W>().0.iter_mut().zip(values) {
        *slot = quotient(value, power);
    }
}
