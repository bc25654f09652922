//! Decimal floats (`spec/encodings.md` section 2.1): the arithmetic that writer and reader share.

/// The powers of ten that are exact in a float64.
pub(crate) const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// An integer divided by a power of ten, as a float of W bytes. W is 4 or 8.
#[inline(always)]
pub(crate) fn quotient<const W: usize>(integer: f64, power: f64) -> [u8; W] {
    let mut out = [0; W];
    let quotient = integer / power;
    match W {
        8 => out.copy_from_slice(&quotient.to_le_bytes()),
        // Rounded to the nearest, ties to even.
        4 => out.copy_from_slice(&(quotient as f32).to_le_bytes()),
        _ => {}
    }
    out
}
