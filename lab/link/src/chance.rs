//! Seeded random numbers: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
//! generators", 2014, figure 17).

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A generator that gives the same numbers for the same seed.
#[derive(Clone, Debug)]
pub struct Chance {
    state: u64,
}

impl Chance {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// True with this probability.
    pub fn happens(&mut self, probability: f64) -> bool {
        // The upper 53 bits are a fraction that a double represents exactly.
        let fraction = (self.draw() >> 11) as f64 / (1u64 << 53) as f64;
        fraction < probability
    }

    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN_GAMMA);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_those_of_the_reference() {
        // The first outputs of the authors' program for the seed 1234567.
        let mut chance = Chance::new(1_234_567);
        assert_eq!(
            [chance.draw(), chance.draw()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]
        );
    }

    #[test]
    fn happens_as_often_as_it_is_likely() {
        let mut chance = Chance::new(7);
        let happened = (0..100_000).filter(|_| chance.happens(0.01)).count();
        // 1,000 are expected, with a standard deviation of 31.
        assert!((900..1100).contains(&happened), "{happened}");
    }

    #[test]
    fn probabilities_of_0_and_1_are_exact() {
        let mut chance = Chance::new(3);
        assert!((0..1000).all(|_| !chance.happens(0.0)));
        assert!((0..1000).all(|_| chance.happens(1.0)));
    }
}
