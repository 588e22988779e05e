//! CLQ1: segments of 720 s of a presence (docs/rules.md section 5).

use arrayvec::ArrayVec;

use super::INVISIBLE_GAP_MS;

/// Length of a segment, ms.
pub const SEGMENT_MS: i64 = 720_000;

/// The score of one point per second in ten full segments.
pub const SCORE_PER_POINT_PER_SECOND: f64 = 10.0 * 720.0 * 1_000.0;

// A presence has no gap longer than a segment, so one gap completes at most two: the one in
// which it began, and one that ends exactly with it.
const _: () = assert!(INVISIBLE_GAP_MS <= SEGMENT_MS);

/// Spreads a gain evenly over the gap from `prev_ms` to `cur_ms`, and returns the segments that
/// are complete at `cur_ms`, each in thousandths of a point.
///
/// `start_ms` and `points` are the current segment; `prev_ms >= start_ms`.
pub fn spread_gain(start_ms: &mut i64, points: &mut f64, gain: i64, prev_ms: i64, cur_ms: i64) -> ArrayVec<u64, 2> {
    debug_assert!(*start_ms <= prev_ms && prev_ms < cur_ms && cur_ms - prev_ms <= SEGMENT_MS);
    let gap = (cur_ms - prev_ms) as f64;
    let mut complete = ArrayVec::new();
    let mut from = prev_ms;
    while cur_ms >= *start_ms + SEGMENT_MS {
        let end = *start_ms + SEGMENT_MS;
        *points += gain as f64 * ((end - from) as f64 / gap);
        complete.push(thousandths(*points));
        *points = 0.0;
        *start_ms = end;
        from = end;
    }
    *points += gain as f64 * ((cur_ms - from) as f64 / gap);
    complete
}

/// A whole number of thousandths, half up.
fn thousandths(points: f64) -> u64 {
    (points * 1_000.0 + 0.5).floor() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start: i64, steps: &[(i64, i64)]) -> (Vec<u64>, f64) {
        let (mut seg, mut points, mut prev) = (start, 0.0, start);
        let mut out = Vec::new();
        for &(t, gain) in steps {
            out.extend(spread_gain(&mut seg, &mut points, gain, prev, t));
            prev = t;
        }
        (out, points)
    }

    #[test]
    fn gain_is_spread_over_segments_of_720_s() {
        // Six gaps of 120 s, ten points each: exactly one segment.
        let steps: Vec<_> = (1..=6).map(|i| (i * 120_000, 10)).collect();
        assert_eq!(run(0, &steps), (vec![60_000], 0.0));
        // A gap over the edge is split: a third before, two thirds after.
        assert_eq!(run(0, &[(600_000, 0), (960_000, 9)]), (vec![3_000], 6.0));
        // A gap of a whole segment that ends with one.
        assert_eq!(run(0, &[(720_000, 7)]), (vec![7_000], 0.0));
        // Half a thousandth is rounded up.
        assert_eq!(run(0, &[(719_000, 0), (720_000, 0), (1_440_000, 1)]).0, [0, 1_000]);
        let (out, rest) = run(0, &[(1_000, 0), (721_000, 1)]);
        assert_eq!(out, [999]); // 719/720 = 0.99861
        assert!((rest - 1.0 / 720.0).abs() < 1e-12);
    }
}
