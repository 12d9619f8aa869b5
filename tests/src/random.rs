//! Numbers for generated cases.

/// Numbers that look random and are the same for the same seed (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Begins with a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// Returns a seed that differs from run to run.
    pub fn seed() -> u64 {
        use std::hash::{BuildHasher as _, RandomState};
        RandomState::new().hash_one(0) >> 16
    }

    /// Returns a number from 0 up to a bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// Says yes once in so many times.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Returns a number from 0 up to 1.
    pub fn unit(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
