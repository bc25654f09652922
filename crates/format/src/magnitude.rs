//! The whole numbers behind decimals of 256 bits.

/// A number of up to 256 bits without a sign, to which the digits of a decimal are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Magnitude {
    /// The least significant one comes first.
    limbs: [u64; 4],
}

impl Magnitude {
    /// The number times `factor`, plus `add`. None if that has more than 256 bits.
    #[inline]
    pub fn times_plus(mut self, factor: u64, add: u64) -> Option<Self> {
        let mut carry = u128::from(add);
        for limb in &mut self.limbs {
            let product = u128::from(*limb) * u128::from(factor) + carry;
            // The lower half stays, the upper one goes on.
            *limb = product as u64;
            carry = product >> 64;
        }
        (carry == 0).then_some(self)
    }

    /// Whether the number has at most this many decimal digits.
    pub fn has_at_most(&self, digits: u8) -> bool {
        let one = Self { limbs: [1, 0, 0, 0] };
        let bound = (0..digits).try_fold(one, |power, _| power.times_plus(10, 0));
        bound.is_none_or(|bound| self.limbs.iter().rev().lt(bound.limbs.iter().rev()))
    }

    /// The number with a sign, in two's complement and little-endian order. It must have at most 76
    /// digits.
    pub fn to_bytes(mut self, is_negative: bool) -> [u8; 32] {
        if is_negative {
            let mut carry = true;
            for limb in &mut self.limbs {
                (*limb, carry) = (!*limb).overflowing_add(u64::from(carry));
            }
        }
        let mut bytes = [0; 32];
        for (eight, limb) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.limbs) {
            *eight = limb.to_le_bytes();
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nines(count: u8) -> Magnitude {
        (0..count).fold(Magnitude::default(), |sum, _| sum.times_plus(10, 9).unwrap())
    }

    #[test]
    fn signs_and_digits() {
        for (digits, value) in [
            (0, 0),
            (1, 9),
            (19, 9_999_999_999_999_999_999),
            (38, { 99_999_999_999_999_999_999_999_999_999_999_999_999i128 }),
        ] {
            for (is_negative, value) in [(false, value), (true, -value)] {
                let mut expected = [if value < 0 { 0xFF } else { 0 }; 32];
                expected[..16].copy_from_slice(&value.to_le_bytes());
                assert_eq!(nines(digits).to_bytes(is_negative), expected);
            }
        }
        for digits in 1..=77 {
            assert!(nines(digits).has_at_most(digits));
            assert!(!nines(digits).has_at_most(digits - 1));
        }
        // 2^256 has 78 digits.
        assert!(nines(77).has_at_most(78) && nines(77).times_plus(10, 9).is_none());
    }
}
