//! Decimal floats: `spec/encodings.md` section 2.1.

use bytes::Bytes;

use super::fixed::Codes;
use super::{Destination, Reader};
use crate::decimals::{POWERS, quotient};
use crate::error::{Result, refuse};
use crate::output::Appender;
use crate::vector::widest;

impl Reader<'_, '_> {
    /// n floats of `width` bytes. The caller has charged them.
    pub(super) fn decimals(&mut self, n: usize, width: usize, to: Destination) -> Result<Bytes> {
        self.note("decimals");
        if !matches!(width, 4 | 8) {
            refuse!(Bits, "decimals for values of {width} bytes");
        }
        let exponent = self.descriptors.u8("exponent")?;
        let Some(power) = POWERS.get(usize::from(exponent)) else {
            refuse!(
                Exponent,
                "decimals with exponent {exponent}, over the limit of {}",
                POWERS.len() - 1
            )
        };
        let integers = self.fixed(n, width, Codes::PARTS, Destination::Scratch)?;
        let mut output = self.output(n * width, to)?;
        match width {
            8 => output.append(|out| divide_64(integers.as_chunks().0, *power, out)),
            _ => output.append(|out| divide_32(integers.as_chunks().0, *power, out)),
        }
        let count = self.descriptors.u32("count")? as usize;
        if count > 0 {
            self.exceptions(count, n, width, output.written())?;
        }
        output.finish()
    }
}

widest! {
    fn divide_64[][](integers: &[[u8; 8]], power: f64, out: &mut Appender<'_, [u8; 8]>) {
        out.extend(
            integers.iter().map(|raw| quotient::<8>(i64::from_le_bytes(*raw) as f64, power)),
        );
    }
}

widest! {
    fn divide_32[][](integers: &[[u8; 4]], power: f64, out: &mut Appender<'_, [u8; 4]>) {
        out.extend(
            integers.iter().map(|raw| quotient::<4>(i32::from_le_bytes(*raw).into(), power)),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::tests::written;
    use crate::vector::tests::at_each_level;

    #[test]
    fn the_quotients_are_the_same_at_every_level() {
        let mut seed = 88172645463325252u64;
        let integers: Vec<[u8; 8]> = (0..3000)
            .map(|i| {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                (seed >> (i % 64)).to_le_bytes()
            })
            .collect();
        for power in POWERS {
            let results = at_each_level(|| {
                let wide = written(8 * integers.len(), |out| divide_64(&integers, power, out));
                let halves = integers.as_flattened().as_chunks().0;
                (wide, written(4 * halves.len(), |out| divide_32(halves, power, out)))
            });
            assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{power}");
            let plain =
                integers.iter().map(|raw| (i64::from_le_bytes(*raw) as f64 / power).to_le_bytes());
            assert!(plain.eq(results[0].0.as_chunks().0.iter().copied()), "{power}");
        }
    }
}
