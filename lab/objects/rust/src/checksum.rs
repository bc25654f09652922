//! The checksum that all harnesses share: ../README.md defines it.

/// The checksum of what was added so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Checksum(pub u64);

impl Checksum {
    #[inline(always)]
    pub fn word(&mut self, v: u64) {
        self.0 = (self.0.rotate_left(5) ^ v).wrapping_mul(0x517C_C1B7_2722_0A95);
    }

    #[inline(always)]
    pub fn i32(&mut self, v: i32) {
        self.word(i64::from(v) as u64);
    }

    #[inline(always)]
    pub fn f64(&mut self, v: f64) {
        self.word(v.to_bits());
    }

    #[inline(always)]
    pub fn str(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.word(u64::from_le_bytes(word));
        }
    }
}
