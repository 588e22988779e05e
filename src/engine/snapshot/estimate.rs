//! Applies the estimates of what is unseen between two snapshots (docs/rules.md section 15).

use super::presence::Gap;
use crate::engine::GlobalState;
use crate::model::WindowKey;
use crate::model::row::PlayerRow;
use crate::model::server::PlayerEntry;
use crate::rank::estimate::{self, Rates, Unseen, UnseenPoints};
use crate::rank::points;

impl GlobalState {
    /// Estimates what a gap hides (docs/rules.md section 15), in the windows in which the players had a
    /// row before this snapshot: half of the gap as time of players who left, the points that
    /// they probably scored in it, and the points that all players probably scored between the
    /// last scan of a round and its end. The presences must hold all rows of their players
    /// ([`GlobalState::load_missing_rows`]).
    pub(super) fn estimate_unseen(
        &self,
        prev: &mut [PlayerEntry],
        cur: &[PlayerEntry],
        stays: &[(u16, u16)],
        gap: Gap,
    ) {
        let is_present = |entry: &&PlayerEntry| entry.presence.is_some();
        let staying = stays.iter().filter(|&&(p, _)| prev[usize::from(p)].presence.is_some()).count();
        if !gap.restarted && staying == prev.iter().filter(is_present).count() {
            return;
        }
        let mut points_now: Vec<Option<i64>> = vec![None; prev.len()];
        let mut stay = vec![false; prev.len()];
        for &(p, c) in stays {
            stay[usize::from(p)] = true;
            points_now[usize::from(p)] = cur[usize::from(c)].points;
        }
        for &window in &self.current_windows.keys {
            let rates = Rates::of(prev.iter().filter_map(|entry| row_with_points(entry, window)));
            let mut at_end = UnseenPoints::NONE;
            if gap.restarted {
                let (mut points, mut rate) = (0_i64, 0.0);
                for (entry, now) in prev.iter().zip(&points_now) {
                    if let (Some(row), Some(now)) = (row_with_points(entry, window), now) {
                        points = points.saturating_add(points::gain_from_zero(*now));
                        rate += rates.rate(row);
                    }
                }
                at_end = estimate::unseen_at_round_end(gap.ms(), points, rate);
            }
            let before_leaving = estimate::unseen_before_leaving(gap.ms(), gap.restarted);
            for (entry, &stays) in prev.iter_mut().zip(&stay) {
                let has_points = entry.points.is_some();
                let Some(row) = entry.presence.as_mut().and_then(|presence| presence.row_mut(window)) else { continue };
                if has_points {
                    let unseen = if stays { at_end } else { before_leaving };
                    unseen.add_to(row, rates.rate(row));
                }
                if !stays {
                    Unseen::half_of(gap.ms()).add_to(row, None);
                }
            }
        }
    }
}

/// The row of an entry that has points.
fn row_with_points(entry: &PlayerEntry, window: WindowKey) -> Option<&PlayerRow> {
    entry.presence.as_ref()?.row(window).filter(|_| entry.points.is_some())
}
