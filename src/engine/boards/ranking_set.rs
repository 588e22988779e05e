//! Sets of rankings, such as those in which a row has changed.

use crate::model::row::{PlayerRow, Ranking};

/// A set of rankings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct RankingSet(u8);

impl RankingSet {
    pub const ALL: RankingSet = RankingSet(0b11111);

    /// The rankings in which a row of a player who was there before changed at a time: each score has
    /// the time at which it was reached. After a round all of them. After the clock was set back, values may have later
    /// times.
    pub fn changed_at(row: &PlayerRow, t_ms: i64) -> RankingSet {
        if row.elo_at_ms == t_ms {
            return RankingSet::ALL;
        }
        let changed = [
            (Ranking::Clq1, row.clq1_segments.at_ms() >= Some(t_ms)),
            (Ranking::Clq2, row.clq2_games.at_ms() >= Some(t_ms)),
            (Ranking::Points, row.points_at_ms == t_ms),
            (Ranking::Time, row.time_at_ms == t_ms),
        ];
        let set = |set, (ranking, is_changed)| if is_changed { set | 1 << ranking as u8 } else { set };
        RankingSet(changed.into_iter().fold(0, set))
    }

    pub fn contains(self, ranking: Ranking) -> bool {
        self.0 & 1 << ranking as u8 != 0
    }

    pub(super) fn add(&mut self, other: RankingSet) {
        self.0 |= other.0;
    }
}
