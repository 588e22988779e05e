//! When a round ended, and its final list (RULES section 4).

use crate::model::MapKey;
use crate::model::server::Entry;

/// Settings of RULES section 4.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundRules {
    /// Least fall of the points in common.
    pub drop_min: i64,
    /// What is left must be below this share.
    pub drop_ratio: f64,
}

impl Default for RoundRules {
    fn default() -> Self {
        RoundRules { drop_min: 5, drop_ratio: 0.5 }
    }
}

/// Whether a new round began between two snapshots. `common`: pairs of indices
/// (prev, cur) of the names that stand once in both.
pub fn restarted(
    prev_map: MapKey,
    prev: &[Entry],
    cur_map: MapKey,
    cur: &[Entry],
    common: &[(u16, u16)],
    rules: RoundRules,
) -> bool {
    if prev_map != cur_map {
        return true;
    }
    if common.is_empty() {
        return prev.iter().any(|e| e.points > 0);
    }
    let p: i64 = common.iter().map(|&(i, _)| prev[usize::from(i)].points.max(0)).sum();
    let c: i64 = common.iter().map(|&(_, i)| cur[usize::from(i)].points.max(0)).sum();
    p - c >= rules.drop_min && (c as f64) < rules.drop_ratio * p as f64
}

/// The final list: indices of the entries, most points first, equal points in
/// the order of the list. `None` where it does not count.
pub fn final_list(prev: &[Entry]) -> Option<Vec<u16>> {
    let counts = prev.len() >= 2 && prev.iter().any(|e| e.points > 0);
    counts.then(|| {
        let mut order: Vec<u16> = (0..prev.len() as u16).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(prev[usize::from(i)].points));
        order
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::name::Name;

    fn list(points: &[i64]) -> Vec<Entry> {
        points
            .iter()
            .enumerate()
            .map(|(i, &points)| Entry {
                display: Name::default(),
                name: format!("p{i}").into(),
                points,
                ping: None,
                presence: None,
            })
            .collect()
    }

    #[test]
    fn restarts() {
        let map = MapKey(1);
        let check = |prev: &[i64], cur: &[i64], common: usize, want: bool| {
            let pairs: Vec<_> = (0..common as u16).map(|i| (i, i)).collect();
            let got = restarted(map, &list(prev), map, &list(cur), &pairs, RoundRules::default());
            assert_eq!(got, want, "{prev:?} -> {cur:?}, {common} in common");
        };
        check(&[10, 5], &[0, 1], 2, true);
        check(&[10, 0], &[5, 0], 2, false); // half is left: not below half
        check(&[10, 0], &[4, 0], 2, true);
        check(&[4, 0], &[0, 0], 2, false); // a fall of 4
        check(&[5, 0], &[0, 0], 2, true);
        check(&[9, -50], &[4, 0], 2, true);
        check(&[3], &[0], 0, true); // nobody in common, someone had points
        check(&[0, -1], &[9], 0, false);
        check(&[], &[9], 0, false);
        let prev = list(&[0]);
        assert!(restarted(MapKey(1), &prev, MapKey(2), &prev, &[(0, 0)], RoundRules::default()));
    }

    #[test]
    fn final_lists_that_count() {
        assert_eq!(final_list(&list(&[5])), None);
        assert_eq!(final_list(&list(&[0, 0, -2])), None);
        assert_eq!(final_list(&list(&[1, 7, 1, -2])), Some(vec![1, 0, 2, 3]));
    }
}
