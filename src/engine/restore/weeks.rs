//! Which weeks are restored, and their phases.
//!
//! The archive has no phases. A week is closed if it is closed on all servers with players and
//! these have their ranks. Otherwise it is open, and if it has ended, the engine closes it again:
//! the results are the same, because they follow from its rows.

use super::{StateRestore, rejected};
use crate::engine::windows::CLOSE_DELAY_MS;
use crate::model::ServerKey;
use crate::model::WeekKey;
use crate::model::calendar::week_label;
use crate::model::commit::{WeekPhase, WeekState};
use crate::model::restored::{ArchivedServerWeek, ArchivedWeek, OPEN_WEEKS_MAX, RejectedRow};

/// A week that is restored, or may be.
#[derive(Debug)]
pub(super) struct RestoredWeek {
    pub week: WeekKey,
    end_ms: i64,
    /// A server with players is not closed, or has no rank yet.
    is_open: bool,
    has_content: bool,
    ranks: Vec<(ServerKey, u32)>,
}

/// The newest weeks of the archive, in order.
pub(super) fn candidates(weeks: &[ArchivedWeek], keep_weeks: usize) -> Vec<RestoredWeek> {
    let first = weeks.len().saturating_sub(keep_weeks.saturating_add(OPEN_WEEKS_MAX));
    let candidate = |it: &ArchivedWeek| RestoredWeek {
        week: it.week,
        end_ms: it.end_ms,
        is_open: false,
        has_content: false,
        ranks: Vec::new(),
    };
    weeks[first..].iter().map(candidate).collect()
}

impl StateRestore {
    /// Weeks whose servers are to be passed to [`StateRestore::server_week`], after all servers.
    pub fn candidate_weeks(&self) -> Vec<WeekKey> {
        self.weeks.iter().map(|week| week.week).collect()
    }

    pub fn server_week(&mut self, week: WeekKey, archived: ArchivedServerWeek) -> Result<(), RejectedRow> {
        let at = self.weeks.binary_search_by_key(&week, |week| week.week).expect("a candidate");
        let Some(server) = self.servers.get(&archived.server) else {
            let key = format!("week={week} server={}", archived.server);
            return Err(rejected("server_week", key, "the server is not in table server"));
        };
        let restored = &mut self.weeks[at];
        if archived.has_content {
            restored.has_content = true;
            restored.is_open |= !archived.closed || server.rank_week < Some(week);
        }
        restored.ranks.extend(archived.rank.map(|rank| (archived.server, rank)));
        Ok(())
    }

    /// Decides which weeks are restored, and returns them, each with whether it is closed. Only
    /// after the servers of all candidates.
    pub fn choose_weeks(&mut self) -> Vec<(WeekKey, bool)> {
        for week in &mut self.weeks {
            // A week without players is closed when it has ended.
            week.is_open |= !week.has_content && self.meta.now_ms < week.end_ms + CLOSE_DELAY_MS;
        }
        let closed = self.weeks.iter().filter(|week| !week.is_open).count();
        let mut surplus = closed.saturating_sub(self.settings.keep_weeks);
        let before = self.weeks.len();
        self.weeks.retain(|week| {
            let is_surplus = !week.is_open && surplus > 0;
            surplus -= usize::from(is_surplus);
            !is_surplus
        });
        self.report.weeks_left += (before - self.weeks.len()) as u64;
        self.report.weeks = self.weeks.iter().map(|week| week_label(week.week)).collect();
        let open = self.weeks.iter().filter(|week| week.is_open);
        self.report.open_weeks = open.map(|week| week_label(week.week)).collect();
        self.weeks.iter().map(|week| (week.week, !week.is_open)).collect()
    }

    pub(super) fn finish_weeks(&mut self) {
        let newest_closed = self.weeks.iter().filter(|week| !week.is_open).map(|week| week.week).max();
        for week in std::mem::take(&mut self.weeks) {
            let phase = if week.is_open { WeekPhase::Running } else { WeekPhase::Closed };
            self.meta.weeks.push(WeekState { week: week.week, phase });
            if !week.is_open {
                // The archive has its boards, and those of this state would have estimated ratings.
                self.meta.ended.push(week.week.into());
            }
            if week.is_open && newest_closed > Some(week.week) {
                self.meta.reopened_weeks.push(week.week);
            }
            let mut ranks = week.ranks;
            if week.is_open {
                // These servers were ranked already, and are not ranked again.
                let ranked = self.servers.iter().filter(|(_, server)| server.rank_week == Some(week.week));
                ranks = ranked.filter_map(|(key, server)| Some((*key, server.rank?))).collect();
            }
            self.pending.ranks.extend(ranks.into_iter().map(|(server, rank)| (week.week, server, rank)));
        }
    }
}
