//! Detects the end of a round, and its final list (docs/rules.md section 4).

use crate::model::server::PlayerEntry;

/// Settings of docs/rules.md section 4: the section `rounds` of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundRules {
    /// The minimum fall of the points in common.
    #[serde(rename = "round_drop_min")]
    pub drop_min: i64,
    /// The remaining points must be below this share.
    #[serde(rename = "round_drop_ratio")]
    pub drop_ratio: f64,
}

impl Default for RoundRules {
    fn default() -> Self {
        RoundRules { drop_min: 5, drop_ratio: 0.5 }
    }
}

/// Whether a new round began on the same map between two snapshots. `common`: pairs of indices
/// (prev, cur) of the players whose names are unique in both. `repeats_in_both`: whether a name
/// that is a duplicate in one of the lists also occurs in the other; only called if there is no
/// pair.
pub fn restarted(
    prev: &[PlayerEntry],
    cur: &[PlayerEntry],
    common: &[(u16, u16)],
    repeats_in_both: impl FnOnce() -> bool,
    rules: RoundRules,
) -> bool {
    if common.is_empty() {
        return prev.iter().any(|entry| entry.playing_points() > Some(0)) && !repeats_in_both();
    }
    let counted = |entry: &PlayerEntry| entry.points.unwrap_or(0).max(0);
    let p: i64 = common.iter().map(|&(i, _)| counted(&prev[usize::from(i)])).sum();
    let c: i64 = common.iter().map(|&(_, i)| counted(&cur[usize::from(i)])).sum();
    p - c >= rules.drop_min && (c as f64) < rules.drop_ratio * p as f64
}

/// The final list: indices of the entries with their points, most points first, equal points in
/// the order of the list. Spectators and entries without points are excluded. `None` if the
/// list does not count.
pub fn final_list(prev: &[PlayerEntry]) -> Option<Vec<(u16, i64)>> {
    let playing = (0_u16..).zip(prev).filter_map(|(at, entry)| Some((at, entry.playing_points()?)));
    let mut order: Vec<(u16, i64)> = playing.collect();
    let counts = order.len() >= 2 && order.iter().any(|&(_, points)| points > 0);
    counts.then(|| {
        order.sort_by_key(|&(_, points)| std::cmp::Reverse(points));
        order
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::name::Name;

    fn list(points: &[i64]) -> Vec<PlayerEntry> {
        points
            .iter()
            .enumerate()
            .map(|(i, &points)| PlayerEntry {
                display: Name::default(),
                name: format!("p{i}").into(),
                points: Some(points),
                ping: None,
                spectator: false,
                presence: None,
            })
            .collect()
    }

    #[test]
    fn restart_follows_rules_section_4() {
        let check = |prev: &[i64], cur: &[i64], common: usize, want: bool| {
            let pairs: Vec<_> = (0..common as u16).map(|i| (i, i)).collect();
            let got = restarted(&list(prev), &list(cur), &pairs, || false, RoundRules::default());
            assert_eq!(got, want, "{prev:?} -> {cur:?}, {common} in common");
        };
        check(&[10, 5], &[0, 1], 2, true);
        check(&[10, 0], &[5, 0], 2, false); // half is left: not below half
        check(&[10, 0], &[4, 0], 2, true);
        check(&[4, 0], &[0, 0], 2, false); // a fall of 4
        check(&[5, 0], &[0, 0], 2, true);
        check(&[9, -50], &[4, 0], 2, true);
        check(&[3], &[0], 0, true); // no name in common, a player had points
        check(&[0, -1], &[9], 0, false);
        check(&[], &[9], 0, false);
        assert!(
            !restarted(&list(&[3]), &list(&[0]), &[], || true, RoundRules::default()),
            "a generic name is in both lists"
        );
    }

    #[test]
    fn final_list_needs_two_players_and_points_above_zero() {
        assert_eq!(final_list(&list(&[5])), None);
        assert_eq!(final_list(&list(&[0, 0, -2])), None);
        assert_eq!(final_list(&list(&[1, 7, 1, -2])), Some(vec![(1, 7), (0, 1), (2, 1), (3, -2)]));
        let mut entries = list(&[9, 7, 1, 3]);
        (entries[0].spectator, entries[2].points) = (true, None);
        assert_eq!(
            final_list(&entries),
            Some(vec![(1, 7), (3, 3)]),
            "a spectator and an entry without points are excluded"
        );
        entries[3].spectator = true;
        assert_eq!(final_list(&entries), None, "only one player");
    }
}
