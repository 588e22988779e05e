//! Pseudo-random numbers from a seed: splitmix64 (Steele, Lea, Flood 2014) and the
//! distributions that the fleet uses. Not for secrets.

/// A pseudo-random sequence, 8 bytes of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rng(u64);

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

fn splitmix64(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Hashes several numbers to one; every bit of each counts. For values that are fixed by
/// the seed ("the skill of player 7") and need no sequence.
pub fn hash_parts(parts: &[u64]) -> u64 {
    parts.iter().fold(GOLDEN, |acc, &part| splitmix64(acc.rotate_left(23) ^ part.wrapping_add(GOLDEN)))
}

/// The top 53 bits as a number in `0.0..1.0`.
pub fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

impl Rng {
    pub fn new(parts: &[u64]) -> Rng {
        Rng(hash_parts(parts))
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        splitmix64(self.0)
    }

    /// `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        unit(self.next_u64())
    }

    /// `0..n`; 0 if n is 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next_u64()) * n as u128) >> 64) as usize
    }

    pub fn bool(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    /// Exponential with this mean, in the unit of the mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// A random integer with mean `mean`: a uniform number up to twice the mean, rounded at random.
    pub fn around(&mut self, mean: f64) -> usize {
        let x = mean * 2.0 * self.unit();
        x as usize + usize::from(self.unit() < x.fract())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_equals_the_published_outputs() {
        // First outputs of the reference implementation for state 0.
        let mut rng = Rng(0);
        assert_eq!(rng.next_u64(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(rng.next_u64(), 0x6E78_9E6A_A1B9_65F4);
        assert_eq!(rng.next_u64(), 0x06C4_5D18_8009_454F);
    }

    #[test]
    fn distributions_have_their_means() {
        let mut rng = Rng::new(&[1]);
        let n = 100_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || rng.unit()) - 0.5).abs() < 0.01);
        assert!((mean(&mut || rng.exponential(3.0)) - 3.0).abs() < 0.1);
        assert!((mean(&mut || rng.around(2.3) as f64) - 2.3).abs() < 0.05);
        assert!((0..1_000).all(|_| rng.below(7) < 7));
        assert_eq!(rng.below(0), 0);
    }
}
