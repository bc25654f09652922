//! Columns that are differences from another column: `spec/encodings.md` section 2.2.

use super::fixed::Codes;
use super::{Destination, Reader};
use crate::column::{Column, Values};
use crate::error::{Result, refuse};
use crate::output::{Appender, OutputBuffer};
use crate::vector::widest;
use crate::word::Word;

/// The encoding's code.
pub(super) const CODE: u8 = 8;

impl Reader<'_, '_> {
    /// A column of n values of `width` bytes, none of which is missing. The codes of nulls and
    /// encoding are not read yet.
    pub(super) fn relative(
        &mut self,
        n: usize,
        width: usize,
        earlier: &[Column],
    ) -> Result<Column> {
        self.note("relative");
        self.descriptors.take(2, "nulls and encoding")?;
        self.charge(n, width)?;
        if !matches!(width, 2 | 4 | 8) {
            refuse!(Bits, "values of {width} bytes relative to others");
        }
        let number = self.descriptors.u32("field")?;
        let base = match earlier.get(number as usize) {
            Some(Column {
                validity: None, values: Values::Fixed { width: same, bytes }, ..
            }) if *same == width => bytes,
            _ => refuse!(Base, "field {number} can't be the base of values of {width} bytes"),
        };
        let differences = self.fixed(n, width, Codes::DIFFERENCES, Destination::Scratch)?;
        let mut output = self.output(n * width, Destination::Column)?;
        match width {
            2 => sum::<u16>(base, &differences, &mut output),
            4 => sum::<u32>(base, &differences, &mut output),
            _ => sum::<u64>(base, &differences, &mut output),
        }
        Ok(Column {
            rows: n,
            validity: None,
            values: Values::Fixed { width, bytes: output.finish()? },
        })
    }
}

fn sum<T: Word>(base: &[u8], differences: &[u8], output: &mut OutputBuffer) {
    output.append(|out| sums::<T>(T::slice(base), T::slice(differences), out));
}

widest! {
    /// Appends the sum of each pair.
    fn sums[T: Word][T](a: &[T::Raw], b: &[T::Raw], out: &mut Appender<'_, T::Raw>) {
        const STEP: usize = 64;
        let ((steps_a, rest_a), (steps_b, rest_b)) = (a.as_chunks::<STEP>(), b.as_chunks::<STEP>());
        for (a, b) in steps_a.iter().zip(steps_b) {
            let mut sums = [T::ZERO.raw(); STEP];
            for ((slot, a), b) in sums.iter_mut().zip(a).zip(b) {
                *slot = T::of(a).plus(T::of(b)).raw();
            }
            out.extend_from_slice(&sums);
        }
        out.extend(rest_a.iter().zip(rest_b).map(|(a, b)| T::of(a).plus(T::of(b)).raw()));
    }
}
