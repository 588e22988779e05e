//! The sums of the rows of one player in a week.

use crate::archive::sql::Values;
use crate::model::Ranking;
use crate::model::archive::PlayerWeekArchive;

/// The sums of a player's rows.
#[derive(Clone, Default)]
pub(super) struct Sums {
    pub servers: u32,
    pub time_ms: u64,
    pub time_est_ms: u64,
    pub points: i64,
    pub points_est: f64,
    pub elo_rounds: u32,
    pub elo_rounds_sure: u32,
    pub time_est_s2: u64,
    pub points_est_thousandths: u64,
    /// When the player was last seen playing, Unix ms; `None`: without time.
    pub last_seen_ms: Option<i64>,
}

impl Sums {
    pub fn of_row(row: &PlayerWeekArchive) -> Sums {
        Sums {
            servers: 1,
            time_ms: row.time_ms,
            time_est_ms: row.time_est_ms,
            points: row.points,
            points_est: row.points_est,
            elo_rounds: row.elo_rounds,
            elo_rounds_sure: row.elo_rounds_sure,
            time_est_s2: row.uncertainty.time_est_s2.into(),
            points_est_thousandths: row.uncertainty.points_est_thousandths,
            last_seen_ms: row.places[Ranking::Time as usize].as_ref().map(|place| place.reached_ms),
        }
    }

    pub fn add(&mut self, more: &Sums) {
        self.servers += more.servers;
        self.time_ms = self.time_ms.saturating_add(more.time_ms);
        self.time_est_ms = self.time_est_ms.saturating_add(more.time_est_ms);
        self.points = self.points.saturating_add(more.points);
        self.points_est += more.points_est;
        self.elo_rounds = self.elo_rounds.saturating_add(more.elo_rounds);
        self.elo_rounds_sure = self.elo_rounds_sure.saturating_add(more.elo_rounds_sure);
        self.time_est_s2 = self.time_est_s2.saturating_add(more.time_est_s2);
        self.points_est_thousandths = self.points_est_thousandths.saturating_add(more.points_est_thousandths);
        self.last_seen_ms = self.last_seen_ms.max(more.last_seen_ms);
    }

    /// The sums without those of rows that will be replaced by `written`; `None`: it is not known when the player was last
    /// seen on the other servers, or a sum was limited, or somebody has changed it.
    pub fn without(&self, replaced: &Sums, written: &Sums) -> Option<Sums> {
        let is_last_seen_known =
            self.last_seen_ms > replaced.last_seen_ms || written.last_seen_ms >= replaced.last_seen_ms;
        let is_limited = [i64::MIN, i64::MAX].contains(&self.points) || self.points_est_thousandths == u64::MAX;
        if !is_last_seen_known || is_limited {
            return None;
        }
        Some(Sums {
            servers: self.servers.checked_sub(replaced.servers)?,
            time_ms: self.time_ms.checked_sub(replaced.time_ms)?,
            time_est_ms: self.time_est_ms.checked_sub(replaced.time_est_ms)?,
            points: self.points.checked_sub(replaced.points)?,
            points_est: self.points_est - replaced.points_est,
            elo_rounds: self.elo_rounds.checked_sub(replaced.elo_rounds)?,
            elo_rounds_sure: self.elo_rounds_sure.checked_sub(replaced.elo_rounds_sure)?,
            time_est_s2: self.time_est_s2.checked_sub(replaced.time_est_s2)?,
            points_est_thousandths: self.points_est_thousandths.checked_sub(replaced.points_est_thousandths)?,
            last_seen_ms: self.last_seen_ms,
        })
    }

    pub fn values(&self, row: &mut Values<'_>, player: u32, week: u32) {
        row.uint(player).uint(week).uint(self.servers).uint(self.time_ms).uint(self.time_est_ms).int(self.points);
        row.double((self.points_est * 1_000.0).round() / 1_000.0).uint(self.elo_rounds).uint(self.elo_rounds_sure);
        row.uint(self.time_est_s2).uint(self.points_est_thousandths).opt_int(self.last_seen_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(servers: u32, time_ms: u64, points: i64, last_seen_ms: Option<i64>) -> Sums {
        Sums { servers, time_ms, points, last_seen_ms, ..Sums::default() }
    }

    #[test]
    fn total_without_replaced_rows() {
        let total = sums(9, 900, -5, Some(70));
        let kept = total.without(&sums(2, 300, -9, Some(60)), &sums(3, 1, 1, Some(61))).expect("known");
        assert_eq!((kept.servers, kept.time_ms, kept.points, kept.last_seen_ms), (7, 600, 4, Some(70)));
        // A player who was not on these servers before.
        assert_eq!(total.without(&Sums::default(), &sums(1, 1, 1, Some(1))).expect("known").servers, 9);
    }

    #[test]
    fn total_is_computed_from_all_rows_if_the_rest_is_not_known() {
        let total = sums(9, 900, 5, Some(70));
        // The row that was last seen becomes older: another one is the last.
        assert!(total.without(&sums(1, 1, 1, Some(70)), &sums(1, 1, 1, Some(69))).is_none());
        assert!(total.without(&sums(1, 1, 1, Some(70)), &sums(1, 1, 1, None)).is_none());
        assert!(total.without(&sums(1, 1, 1, Some(70)), &sums(1, 1, 1, Some(70))).is_some());
        // Somebody has changed the total.
        assert!(total.without(&sums(10, 1, 1, None), &Sums::default()).is_none());
        assert!(total.without(&sums(1, 901, 1, None), &Sums::default()).is_none());
        // Sums that were limited.
        assert!(sums(9, 900, i64::MAX, None).without(&Sums::default(), &Sums::default()).is_none());
        let limited = Sums { points_est_thousandths: u64::MAX, ..total };
        assert!(limited.without(&Sums::default(), &Sums::default()).is_none());
    }
}
