//! A histogram of the lag of scans, in whole milliseconds.
//!
//! Exact to the millisecond with 80 KB; `hdrhistogram` would round lags above 2 s, and its
//! configuration would be as long as this file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Lags from this value on share one bucket, ms.
const LAG_MS_MAX: usize = 10_000;

/// Clones share the counts.
#[derive(Clone, Debug)]
pub(super) struct LagHistogram {
    /// Scans by lag; the last bucket counts all longer lags.
    counts: Arc<[AtomicU64]>,
}

impl Default for LagHistogram {
    fn default() -> Self {
        LagHistogram { counts: (0..=LAG_MS_MAX).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl LagHistogram {
    pub fn add(&self, lag_ms: i64) {
        self.counts[(lag_ms.max(0) as usize).min(LAG_MS_MAX)].fetch_add(1, Ordering::Relaxed);
    }

    /// The lag that this share of the scans does not exceed; `None` without scans.
    pub fn percentile_ms(&self, share: f64) -> Option<u64> {
        let counts: Vec<u64> = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let rank = (counts.iter().sum::<u64>() as f64 * share).ceil() as u64;
        let mut seen = 0;
        let at = counts.iter().position(|&n| {
            seen += n;
            n > 0 && seen >= rank
        });
        at.map(|ms| ms as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_count_all_lags_and_cap_at_10_s() {
        let lags = LagHistogram::default();
        assert_eq!(lags.percentile_ms(0.99), None);
        (1..=100).for_each(|ms| lags.add(ms));
        assert_eq!((lags.percentile_ms(0.5), lags.percentile_ms(0.99)), (Some(50), Some(99)));
        lags.add(-5);
        lags.add(1_000_000);
        assert_eq!((lags.percentile_ms(0.0), lags.percentile_ms(1.0)), (Some(0), Some(10_000)));
    }
}
