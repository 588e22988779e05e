//! Reopens a week that was closed too early: a correction by an admin (docs/rules.md section 11).
//!
//! Closing does not change rows, so a reopened week continues with them and is closed again
//! when it has ended. The results of closing are reverted: best positions of a week that is
//! kept but not closed are never shown, and the next closing replaces them; ranks of servers
//! are removed here, some in each tick. The phase is in the state, so this may be interrupted
//! anywhere; it then restarts with the first server.

use crate::engine::week_close::{STEPS_PER_RANK, StepBudget};
use crate::engine::{Engine, ReadError, ReadModel, ServerState, StoreReader};
use crate::limits::REOPENABLE_WEEKS_MAX;
use crate::model::calendar::week_label;
use crate::model::commit::WeekPhase;
use crate::model::row::BestPositions;
use crate::model::{OutboxKey, ServerKey, WeekKey};
use crate::series::slots;

/// Progress of removing the ranks of a week.
#[derive(Debug)]
pub(in crate::engine) struct Reopening {
    week: WeekKey,
    next: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReopenError {
    #[error(
        "the state has no rows of week {} (store.keep_weeks deleted them, or there were none); weeks with rows: {weeks_kept}. \
         To compute an older week again use `clqd replay` with a log of that week and a new state directory",
        week_label(*.week)
    )]
    RowsDeleted { week: WeekKey, weeks_kept: String },
    #[error(
        "week {} is too old: only the newest closed week, {}, and the {REOPENABLE_WEEKS_MAX} weeks before it can be \
         reopened, because older best positions are not kept. To compute it again use `clqd replay` with a log of \
         that week and a new state directory",
        week_label(*.week),
        week_label(*.newest)
    )]
    TooOld { week: WeekKey, newest: WeekKey },
    #[error("week {} is being closed; reopen that one first, or wait until it is closed", week_label(*.0))]
    OtherInProgress(WeekKey),
}

impl ReadModel {
    /// The last kept and closed week before a week.
    fn previous_closed_week(&self, week: WeekKey) -> Option<WeekKey> {
        let mut before = self.global.meta.weeks.iter().rev().filter(|state| state.week < week);
        before.find(|state| state.phase == WeekPhase::Closed).map(|state| state.week)
    }

    /// The three best positions, without those of weeks that are not closed on the server
    /// because they were reopened.
    pub(in crate::engine) fn shown_best(&self, server: ServerKey, best: &BestPositions) -> [Vec<(u32, WeekKey)>; 3] {
        best.top_three_where(|week| !self.global.is_kept(week.into()) || self.is_server_closed(week, server))
    }
}

impl Engine {
    /// Reopens a closed week. Returns false if it is open or being reopened already.
    pub fn reopen_week(&mut self, week: WeekKey) -> Result<bool, ReopenError> {
        let weeks = &self.model.global.meta.weeks;
        let Some(state) = weeks.iter().find(|state| state.week == week) else {
            let weeks_kept: Vec<String> = weeks.iter().map(|state| week_label(state.week)).collect();
            let weeks_kept = if weeks_kept.is_empty() { "none".to_owned() } else { weeks_kept.join(", ") };
            return Err(ReopenError::RowsDeleted { week, weeks_kept });
        };
        if state.phase.is_open() {
            return Ok(false);
        }
        let newest = weeks.iter().rev().find(|state| state.phase == WeekPhase::Closed).map(|state| state.week);
        if let Some(newest) = newest.filter(|newest| week.0 + REOPENABLE_WEEKS_MAX < newest.0) {
            return Err(ReopenError::TooOld { week, newest });
        }
        let is_closing = |phase| matches!(phase, WeekPhase::Closing | WeekPhase::Ranking);
        if let Some(other) = weeks.iter().find(|state| state.week != week && is_closing(state.phase)) {
            return Err(ReopenError::OtherInProgress(other.week));
        }
        self.begin_reopening(week);
        Ok(true)
    }

    pub(in crate::engine) fn begin_reopening(&mut self, week: WeekKey) {
        self.model.week_close.take_if(|closing| closing.week == week);
        // It holds the positions of a closed week.
        self.drop_large_weeks();
        self.model.global.set_week_phase(week, WeekPhase::Reopening);
        let reopened = &mut self.model.global.meta.reopened_weeks;
        if let Err(at) = reopened.binary_search(&week) {
            reopened.insert(at, week);
        }
        self.model.global.meta.ended.retain(|ended| *ended != week.into());
        // Rows of greylisted servers count in closed weeks only.
        for (server, ServerState { record, .. }) in self.model.servers.iter() {
            if record.greylist_reason.is_some() {
                let tags = self.model.global.existing_tags(&record.tags);
                self.model.global.board_cache.mark_server_dirty_in(week.into(), server, &tags);
            }
        }
    }

    pub(super) fn remove_ranks(
        &mut self,
        source: &dyn StoreReader,
        week: WeekKey,
        budget: &mut StepBudget,
    ) -> Result<(), ReadError> {
        let mut next = self.reopening.take().filter(|it| it.week == week).map_or(1, |it| it.next);
        while next < self.model.servers.end().0 {
            if !budget.has_steps() {
                self.reopening = Some(Reopening { week, next });
                return Ok(());
            }
            budget.spend(1 + STEPS_PER_RANK);
            self.remove_rank(source, week, ServerKey(next))?;
            next += 1;
        }
        self.model.global.set_week_phase(week, WeekPhase::Running);
        Ok(())
    }

    /// Removes the rank of a server in the week, which is not closed any more.
    fn remove_rank(&mut self, source: &dyn StoreReader, week: WeekKey, server: ServerKey) -> Result<(), ReadError> {
        let before = self.model.previous_closed_week(week);
        let Some(server_state) = self.model.servers.get_mut(server) else { return Ok(()) };
        let global = &mut self.model.global;
        if let Some(series) = &mut server_state.series {
            series.change(|series| {
                slots::remove_rank(series, week);
                true
            });
            global.pending.series.insert(server);
        }
        if server_state.record.rank_week == Some(week) {
            let newest = server_state.series.as_ref().and_then(|series| slots::newest_rank(&series.unpack()));
            (server_state.record.rank_week, server_state.record.rank) = match before {
                // In the series a rank is not exact beyond 50,000.
                Some(before) => (Some(before), source.rank(before, server)?),
                None => newest.map_or((None, None), |(week, rank)| (Some(week), Some(rank))),
            };
        }
        global.pending.corrections.reopened_servers.push((week, server));
        global.server_changed(server);
        global.enqueue(OutboxKey::Week { week, server });
        Ok(())
    }
}
