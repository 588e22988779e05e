//! What is kept of a player on a server in one week, and of a map on a server
//! in one week (RULES sections 3 to 8 and 10).

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};

use crate::limits::BEST_MAX;

/// The five rankings, in the order in which they are always listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ranking {
    Clq1,
    Clq2,
    Elo,
    Points,
    Time,
}

impl Ranking {
    pub const ALL: [Ranking; 5] = [Ranking::Clq1, Ranking::Clq2, Ranking::Elo, Ranking::Points, Ranking::Time];
    /// The rankings whose three best positions are kept for ever (RULES section 11).
    pub const WITH_BEST: [Ranking; 3] = [Ranking::Clq1, Ranking::Clq2, Ranking::Elo];

    pub fn name(self) -> &'static str {
        ["clq1", "clq2", "elo", "points", "time"][self as usize]
    }

    pub fn from_name(name: &str) -> Option<Ranking> {
        Ranking::ALL.into_iter().find(|r| r.name() == name)
    }
}

/// The ten highest values, highest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TopTen(ArrayVec<u64, BEST_MAX>);

impl TopTen {
    /// Lets a value compete. Returns whether the sum changed.
    pub fn offer(&mut self, value: u64) -> bool {
        if value == 0 {
            return false;
        }
        let at = self.0.partition_point(|&kept| kept >= value);
        if at == BEST_MAX {
            return false;
        }
        if self.0.is_full() {
            self.0.pop();
        }
        self.0.insert(at, value);
        true
    }

    pub fn sum(&self) -> u64 {
        self.0.iter().sum()
    }

    pub fn values(&self) -> &[u64] {
        &self.0
    }
}

/// One player on one server in one week. All `_at` fields are Unix ms: the `t`
/// of the snapshot that last changed the value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeekRow {
    pub measured_ms: u64,
    pub starts: u32,
    pub points: i64,
    /// Before the first point: the first sighting in the week.
    pub points_at: i64,
    pub time_at: i64,
    /// CLQ1: best complete segments, thousandths of a point.
    pub clq1_segments: TopTen,
    pub clq1_at: i64,
    /// CLQ2: best games, their points.
    pub clq2_games: TopTen,
    pub clq2_at: i64,
    pub elo: f64,
    pub elo_rounds: u32,
    pub elo_at: i64,
}

impl WeekRow {
    /// A player first revealed in the week at `t_ms`, rated `elo`.
    pub fn new(t_ms: i64, elo: f64) -> WeekRow {
        WeekRow {
            measured_ms: 0,
            starts: 0,
            points: 0,
            points_at: t_ms,
            time_at: t_ms,
            clq1_segments: TopTen::default(),
            clq1_at: t_ms,
            clq2_games: TopTen::default(),
            clq2_at: t_ms,
            elo,
            elo_rounds: 0,
            elo_at: t_ms,
        }
    }

    /// Measured time and 60 s for each start, ms (RULES section 3).
    pub fn time_ms(&self) -> u64 {
        self.measured_ms + 60_000 * u64::from(self.starts)
    }

    /// Sum of the ten best segments, thousandths of a point (RULES section 5).
    pub fn clq1(&self) -> u64 {
        self.clq1_segments.sum()
    }

    /// Sum of the ten best games (RULES section 6).
    pub fn clq2(&self) -> u64 {
        self.clq2_games.sum()
    }
}

/// One map on one server in one week (RULES section 10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapRow {
    /// Sum of gaps of at most 720 s, ms.
    pub played_ms: u64,
    /// Sum of gap x assumed count, player-milliseconds.
    pub player_ms: u64,
}

/// What closed weeks leave of a (player, server) for ever.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BestPositions {
    /// The three best positions in clq1, clq2 and elo: smaller position
    /// first, then the earlier week.
    pub places: [ArrayVec<(u32, super::WeekKey), 3>; 3],
    /// The rating at the end of the last closed week, for `elo.carry_over`.
    pub elo: Option<f64>,
}

impl BestPositions {
    /// Brings in a position of a closed week. Repeating it changes nothing.
    /// `which` is an index into [`Ranking::WITH_BEST`].
    pub fn offer(&mut self, which: usize, position: u32, week: super::WeekKey) {
        let list = &mut self.places[which];
        if list.iter().any(|&(_, w)| w == week) {
            return;
        }
        let at = list.partition_point(|&kept| kept < (position, week));
        if at == 3 {
            return;
        }
        if list.is_full() {
            list.pop();
        }
        list.insert(at, (position, week));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::WeekKey;

    #[test]
    fn top_ten_keeps_the_ten_best() {
        let mut top = TopTen::default();
        assert!(!top.offer(0));
        for v in 1..=12 {
            assert!(top.offer(v));
        }
        assert!(!top.offer(2), "smaller than all ten");
        assert!(!top.offer(3), "equal to the least changes nothing");
        assert_eq!(top.values(), [12, 11, 10, 9, 8, 7, 6, 5, 4, 3]);
        assert_eq!(top.sum(), 75);
    }

    #[test]
    fn best_positions_smaller_then_earlier_and_repeatable() {
        let mut best = BestPositions::default();
        for (position, week) in [(3, 10), (1, 12), (3, 9), (2, 11), (1, 12)] {
            best.offer(0, position, WeekKey(week));
        }
        let got: Vec<_> = best.places[0].iter().map(|&(p, w)| (p, w.0)).collect();
        assert_eq!(got, [(1, 12), (2, 11), (3, 9)]);
    }
}
