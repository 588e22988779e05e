//! Points gained between two snapshots (docs/rules.md section 3).

/// Gain of a player who stayed, without a restart.
pub fn gain_stayed(prev: i64, cur: i64) -> i64 {
    let d = cur - prev;
    if d >= 0 {
        d
    } else if cur > 0 && 2 * cur < prev {
        cur // began again from zero
    } else {
        0
    }
}

/// Gain of a player who stayed over a restart, or joined a visible server.
pub fn gain_from_zero(cur: i64) -> i64 {
    cur.max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gain_follows_rules_section_3() {
        for (prev, cur, want) in [
            (0, 0, 0),
            (3, 10, 7),
            (-5, 2, 7),
            (10, 9, 0),
            (10, 5, 0),
            (10, 4, 4),
            (10, 0, 0),
            (10, -3, 0),
            (-3, -5, 0),
        ] {
            assert_eq!(gain_stayed(prev, cur), want, "{prev} -> {cur}");
        }
        assert_eq!((gain_from_zero(-4), gain_from_zero(4)), (0, 4));
    }
}
