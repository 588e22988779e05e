//! Pseudo-random numbers from a seed, and the distributions that the fleet uses. Not for
//! secrets.
//!
//! The generator is SplitMix64: 8 bytes of state, so each of a million servers can have its
//! own. The distributions of `rand` are not used: a seed must always give the same world, and
//! they may change with a version.

use rand_xoshiro::rand_core::{Rng, SeedableRng};

pub use rand_xoshiro::SplitMix64;

/// The increment of SplitMix64.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Hashes several numbers to one; every bit of each counts. It is used for values that are fixed by
/// the seed ("the skill of player 7") and need no sequence.
pub fn hash_parts(parts: &[u64]) -> u64 {
    parts.iter().fold(GOLDEN, |hash, &part| {
        // The generator adds the increment before it mixes the bits.
        let state = (hash.rotate_left(23) ^ part.wrapping_add(GOLDEN)).wrapping_sub(GOLDEN);
        SplitMix64::seed_from_u64(state).next_u64()
    })
}

/// The top 53 bits as a number in `0.0..1.0`.
pub fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// Seeding by several numbers, and distributions.
pub trait RngExt: Rng + SeedableRng {
    /// The generator of an object that several numbers identify, such as seed and server.
    fn from_parts(parts: &[u64]) -> Self {
        Self::seed_from_u64(hash_parts(parts))
    }

    /// 64 random bits.
    fn bits(&mut self) -> u64 {
        self.next_u64()
    }

    /// `0.0..1.0`.
    fn unit(&mut self) -> f64 {
        unit(self.bits())
    }

    /// `0..n`; 0 if n is 0.
    fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// True with this probability.
    fn bool(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    /// Exponential with this mean, in the unit of the mean.
    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// Log-normal with mean 1; `spread` is the standard deviation of the logarithm.
    fn log_normal(&mut self, spread: f64) -> f64 {
        // A sum of twelve uniform numbers is close to a normal one.
        let normal = (0..12).map(|_| self.unit()).sum::<f64>() - 6.0;
        (spread * normal - spread * spread / 2.0).exp()
    }

    /// A random integer with mean `mean`: a uniform number up to twice the mean, rounded at random.
    fn around(&mut self, mean: f64) -> usize {
        let x = mean * 2.0 * self.unit();
        x as usize + usize::from(self.unit() < x.fract())
    }
}

impl RngExt for SplitMix64 {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change of these numbers changes the world of every seed.
    #[test]
    fn seeds_give_the_same_numbers_in_every_version() {
        // First outputs of the reference implementation for state 0.
        let mut rng = SplitMix64::seed_from_u64(0);
        assert_eq!(rng.bits(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(rng.bits(), 0x6E78_9E6A_A1B9_65F4);
        assert_eq!(rng.bits(), 0x06C4_5D18_8009_454F);

        assert_eq!(hash_parts(&[]), GOLDEN);
        assert_eq!(hash_parts(&[1]), 0xD197_EC0F_AC76_7422);
        assert_eq!(hash_parts(&[1, 2, 3]), 0x3196_DBB2_3BCE_64ED);
        let mut rng = SplitMix64::from_parts(&[1]);
        assert_eq!((rng.bits(), rng.bits()), (0x6784_2490_E7D6_C854, 0xBB3F_C800_24AD_B5CE));

        let mut rng = SplitMix64::from_parts(&[1, 2, 3]);
        assert_eq!([(); 6].map(|()| rng.below(1_000)), [415, 894, 21, 312, 872, 56]);
        assert_eq!([(); 4].map(|()| rng.bool(0.3)), [true, false, true, false]);
        assert_eq!([(); 3].map(|()| (rng.exponential(100.0) * 1e6) as u64), [6_739_678, 63_893_691, 7_745_618]);
        assert_eq!([(); 5].map(|()| rng.around(2.5)), [0, 1, 3, 1, 1]);
        assert_eq!((rng.unit() * 1e9) as u64, 819_334_188);
    }

    #[test]
    fn distributions_have_their_means() {
        let mut rng = SplitMix64::from_parts(&[1]);
        let n = 100_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || rng.unit()) - 0.5).abs() < 0.01);
        assert!((mean(&mut || rng.exponential(3.0)) - 3.0).abs() < 0.1);
        assert!((mean(&mut || rng.log_normal(0.5)) - 1.0).abs() < 0.02);
        assert!((mean(&mut || rng.around(2.3) as f64) - 2.3).abs() < 0.05);
        assert!((0..1_000).all(|_| rng.below(7) < 7));
        assert_eq!(rng.below(0), 0);
    }
}
