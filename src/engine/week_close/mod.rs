//! Closes a week: first each server, then the server ranks. Then it deletes the rows of old
//! weeks from the state (docs/rules.md sections 10 and 11).
//!
//! Each tick spends a budget of records read and written. Its result is in the next commit. So
//! closing can stop anywhere, even within a server, and resumes after the last commit. The
//! record of a closed server holds the value that its rank follows from. So the ranks are
//! consistent, although they are assigned over many commits.

mod final_positions;
mod old_players;
pub(super) mod reopen;

use super::boards::dirty::add_groups;
use super::boards::group::Group;
use super::rows::RowPage;
use super::windows::CLOSE_DELAY_MS;
use super::{Engine, ReadError, ReadModel, StoreReader};
use crate::engine::week_close::final_positions::FinalPositions;
use crate::model::commit::{RowKey, WeekPhase, WeekState};
use crate::model::packed_series::PackedSeries;
use crate::model::row::PlayerWindow;
use crate::model::server::ServerRecord;
use crate::model::{OutboxKey, PlayerKey, ServerKey, WeekKey, WindowKey};
use crate::rank::server_ranks::server_ranks;
use crate::series::slots;

/// Time between ticks, and while a week is being closed: small batches, each in a separate
/// commit.
const TICK_INTERVAL_MS: i64 = 1_000;
const CLOSING_TICK_INTERVAL_MS: i64 = 200;

/// Steps to assign a rank: it is written to the record of the server and to its series, each of
/// more than 1 kB.
const STEPS_PER_RANK: usize = 8;

/// Positions of players that are assigned in one step: they are in memory.
const POSITIONS_PER_STEP: usize = 8;

/// Progress of closing a week.
#[derive(Debug)]
pub(super) struct WeekClose {
    week: WeekKey,
    /// Closed servers in order of key, with the player-milliseconds that determine their rank.
    closed: Vec<(ServerKey, u64)>,
    /// The server that is being closed.
    current_server: Option<ServerClose>,
    /// By server key, 0: none. Computed when all servers are closed.
    ranks: Option<Vec<u32>>,
    /// The next server to rank. `rank_week` shows which servers are ranked already, so a
    /// restart can begin at server 1 again.
    next_to_rank: u32,
}

/// Progress of closing a server.
#[derive(Debug)]
enum ServerClose {
    AssigningPositions(Box<FinalPositions>),
    /// Its rows are being deleted; rows up to this player are deleted already.
    DeletingRows(PlayerKey),
}

impl WeekClose {
    pub fn new(week: WeekKey, closed: Vec<(ServerKey, u64)>) -> WeekClose {
        WeekClose { week, closed, current_server: None, ranks: None, next_to_rank: 1 }
    }

    /// What [`WeekClose::is_closed`] needs.
    pub fn replica(&self) -> WeekClose {
        WeekClose::new(self.week, self.closed.last().copied().into_iter().collect())
    }

    /// Restarts closing the current server from its first row: a correction has changed its
    /// rows or their order.
    fn restart(&mut self) {
        self.current_server = match self.current_server.take() {
            Some(ServerClose::DeletingRows(_)) => Some(ServerClose::DeletingRows(PlayerKey(0))),
            Some(ServerClose::AssigningPositions(_)) | None => None,
        };
    }

    pub fn is_closed(&self, week: WeekKey, server: ServerKey) -> bool {
        self.week == week && self.closed.last().is_some_and(|&(last, _)| last >= server)
    }

    fn rank(&mut self, server: ServerKey) -> Option<u32> {
        let ranks = self.ranks.get_or_insert_with(|| {
            let mut ranks = vec![0; self.closed.last().map_or(0, |(server, _)| server.0 as usize + 1)];
            for (server, rank) in server_ranks(self.closed.clone()) {
                ranks[server.0 as usize] = rank;
            }
            ranks
        });
        ranks.get(server.0 as usize).copied().filter(|&rank| rank > 0)
    }
}

/// The remaining steps of a tick: one for each record read or written.
#[derive(Clone, Copy, Debug)]
struct StepBudget(usize);

impl StepBudget {
    fn has_steps(self) -> bool {
        self.0 > 0
    }

    fn spend(&mut self, steps: usize) {
        self.0 = self.0.saturating_sub(steps);
    }
}

impl ReadModel {
    /// When a week can be closed, Unix ms; `i64::MAX` while its rows are being replaced.
    fn closable_from_ms(&self, week: WeekKey) -> i64 {
        match self.global.is_importing(week.into()) {
            true => i64::MAX,
            false => self.global.calendar.week_end_ms(week) + CLOSE_DELAY_MS,
        }
    }

    /// When a tick has a week to close, Unix ms; `i64::MAX` without any.
    pub fn next_close_ms(&self) -> i64 {
        let weeks = self.global.meta.weeks.iter().filter(|state| state.phase != WeekPhase::Closed);
        weeks.map(|state| self.closable_from_ms(state.week)).min().unwrap_or(i64::MAX)
    }

    /// Whether a later closed week has a row of the player on the server. This is possible if
    /// an earlier week was reopened.
    fn has_later_row(
        &self,
        source: &dyn StoreReader,
        week: WeekKey,
        server: ServerKey,
        player: PlayerKey,
    ) -> Result<bool, ReadError> {
        for state in self.global.meta.weeks.iter().rev().take_while(|state| state.week > week) {
            let window = state.week.into();
            if state.phase == WeekPhase::Closed && self.global.row(source, RowKey { window, server, player })?.is_some()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn has_unarchived(&self, source: &dyn StoreReader, week: WeekKey) -> bool {
        let is_of_week = |key: &OutboxKey| matches!(key, OutboxKey::Week { week: w, .. } if *w == week);
        self.global.meta.resync
            || self.global.pending.outbox.iter().any(is_of_week)
            || source.outbox_holds_week(week)
            || self.global.pending.has_unpublished_boards(source, week.into())
    }
}

impl Engine {
    /// Works on weeks that have ended, up to the steps of one tick.
    pub(super) fn advance_weeks(&mut self, source: &dyn StoreReader) -> Result<(), ReadError> {
        let mut budget = StepBudget(self.model.global.settings.week_steps_per_tick);
        while let Some(state) = self.next_week() {
            if !budget.has_steps() {
                return Ok(());
            }
            if state.phase == WeekPhase::Reopening {
                self.remove_ranks(source, state.week, &mut budget)?;
                continue;
            }
            // The deletions of reopening must be committed before the same records are written
            // again.
            let is_removed =
                self.model.global.pending.corrections.reopened_servers.iter().any(|(week, _)| *week == state.week);
            if self.model.closable_from_ms(state.week) > self.close_limit_ms() || is_removed {
                break;
            }
            match state.phase {
                WeekPhase::Running => {
                    self.model.global.set_week_phase(state.week, WeekPhase::Closing);
                    self.model.week_close = Some(WeekClose::new(state.week, Vec::new()));
                }
                WeekPhase::Closing => self.close_servers(source, state.week, &mut budget)?,
                WeekPhase::Ranking => self.rank_servers(state.week, &mut budget),
                WeekPhase::Closed | WeekPhase::Reopening => unreachable!("excluded by the search, or handled above"),
            }
        }
        self.delete_old_weeks(source)?;
        self.drop_old_players(source, &mut budget)
    }

    /// The week to reopen or, without one, to close next: a week that is reopened may be later than
    /// one that has not ended.
    fn next_week(&self) -> Option<WeekState> {
        let weeks = &self.model.global.meta.weeks;
        let reopening = weeks.iter().find(|state| state.phase == WeekPhase::Reopening);
        reopening.or_else(|| weeks.iter().find(|state| state.phase != WeekPhase::Closed)).copied()
    }

    /// From this call on, neither starts nor continues closing a week that ends later than
    /// `t_ms` (Unix ms): recorded time may come from a clock that is not trusted. Without a
    /// call there is no limit; a replay needs none.
    pub fn set_close_limit(&mut self, t_ms: i64) {
        self.close_limit_ms = t_ms;
    }

    pub(super) fn close_limit_ms(&self) -> i64 {
        self.model.global.meta.now_ms.min(self.close_limit_ms)
    }

    /// The first week whose closing is blocked by [`Engine::set_close_limit`].
    pub fn week_blocked(&self) -> Option<WeekKey> {
        let state = self.next_week()?;
        let closable_ms = self.model.closable_from_ms(state.week);
        let is_due = state.phase != WeekPhase::Reopening && closable_ms <= self.model.global.meta.now_ms;
        (is_due && closable_ms > self.close_limit_ms).then_some(state.week)
    }

    /// Whether the next tick has a week to close, or to reopen.
    pub fn has_week_to_close(&self) -> bool {
        self.next_week().is_some_and(|state| {
            state.phase == WeekPhase::Reopening || self.model.closable_from_ms(state.week) <= self.close_limit_ms()
        })
    }

    /// Time from one tick to the next, ms: shorter while there is a week to close, which is
    /// done in small batches.
    pub fn tick_interval_ms(&self) -> i64 {
        if self.has_week_to_close() { CLOSING_TICK_INTERVAL_MS } else { TICK_INTERVAL_MS }
    }

    /// Restarts closing the current server from its first row: a correction has changed rows or
    /// their order. Positions that were written are replaced.
    pub(super) fn restart_server_close(&mut self) {
        self.model.week_close.iter_mut().for_each(WeekClose::restart);
    }

    fn close_servers(
        &mut self,
        source: &dyn StoreReader,
        week: WeekKey,
        budget: &mut StepBudget,
    ) -> Result<(), ReadError> {
        let mut closing = self.model.week_close.take().expect("set when the week began to close, or at the start");
        let mut next = closing.closed.last().map_or(1, |(server, _)| server.0 + 1);
        while budget.has_steps() && next < self.model.servers.end().0 {
            let server = ServerKey(next);
            if let Some(server_state) = self.model.servers.get(server) {
                let ignored = server_state.record.greylist_reason.is_some();
                if !self.close_server(source, week, server, &mut closing.current_server, budget)? {
                    break;
                }
                // Its map rows are final now.
                let maps = self.model.map_rows(source, week, server)?;
                budget.spend(1 + maps.len());
                let player_ms = if ignored { 0 } else { maps.iter().map(|(_, row)| row.player_ms).sum() };
                closing.closed.push((server, player_ms));
                self.model.global.pending.closed_servers.push((week, server, player_ms));
            }
            budget.spend(1);
            next += 1;
        }
        self.model.week_close = Some(closing);
        if next >= self.model.servers.end().0 && budget.has_steps() {
            self.model.global.set_week_phase(week, WeekPhase::Ranking);
        }
        Ok(())
    }

    /// Returns whether the server is closed; if not, the budget is spent.
    fn close_server(
        &mut self,
        source: &dyn StoreReader,
        week: WeekKey,
        server: ServerKey,
        begun: &mut Option<ServerClose>,
        budget: &mut StepBudget,
    ) -> Result<bool, ReadError> {
        let server_state = self.model.servers.get(server).expect("closed servers exist");
        let counted = self.model.is_counted(server_state, week.into(), server);
        let mut final_positions = match begun.take() {
            Some(ServerClose::AssigningPositions(final_positions)) if counted => final_positions,
            // Continue deleting even if an admin lifts the greylisting now: some of the rows
            // are deleted already.
            Some(ServerClose::DeletingRows(last)) => {
                return self.close_ignored_server(source, week, server, Some(last), begun, budget);
            }
            _ => {
                self.flush_live_rows(server, week);
                if !counted {
                    return self.close_ignored_server(source, week, server, None, begun, budget);
                }
                Box::new(FinalPositions::new(self.model.server_orders(server)))
            }
        };
        while !final_positions.all_rows_read() {
            if !budget.has_steps() {
                *begun = Some(ServerClose::AssigningPositions(final_positions));
                return Ok(false);
            }
            let page = self.model.rows_after(source, week.into(), server, final_positions.last_read(), budget.0)?;
            budget.spend(page.rows.len());
            final_positions.push_rows(&page.rows);
            if page.is_last {
                final_positions.finish_reading();
            }
        }
        while !final_positions.is_complete() {
            if !budget.has_steps() {
                *begun = Some(ServerClose::AssigningPositions(final_positions));
                return Ok(false);
            }
            let assigned = final_positions.assign(budget.0.saturating_mul(POSITIONS_PER_STEP));
            budget.spend(assigned.div_ceil(POSITIONS_PER_STEP));
        }
        while let Some(final_position) = final_positions.current() {
            if !budget.has_steps() {
                *begun = Some(ServerClose::AssigningPositions(final_positions));
                return Ok(false);
            }
            budget.spend(1);
            let key = (server, final_position.player);
            let mut best = match self.model.global.pending.best.get(&key) {
                Some(best) => best.clone(),
                None => self.model.global.best_or_new(source, server, final_position.player, Some(week))?,
            };
            for (which, position) in final_position.positions.into_iter().enumerate() {
                best.set(which, position, week);
            }
            best.note_week(week);
            if !self.model.has_later_row(source, week, server, final_position.player)? {
                best.elo = Some(final_position.elo);
            }
            self.model.global.pending.best.insert(key, best);
            final_positions.advance();
        }
        if !final_positions.is_empty() {
            self.model.global.enqueue(OutboxKey::Week { week, server });
        }
        Ok(true)
    }

    /// Deletes the rows of a greylisted server when a week is closed. Otherwise they would
    /// count again in a final week when the greylisting is lifted. Returns whether all of them
    /// are deleted; if not, the budget is spent.
    fn close_ignored_server(
        &mut self,
        source: &dyn StoreReader,
        week: WeekKey,
        server: ServerKey,
        after: Option<PlayerKey>,
        begun: &mut Option<ServerClose>,
        budget: &mut StepBudget,
    ) -> Result<bool, ReadError> {
        let window = WindowKey::from(week);
        let RowPage { rows, is_last } = self.model.rows_after(source, window, server, after, budget.0)?;
        budget.spend(rows.len());
        // The rows stopped counting in the server's groups when it was greylisted; some players
        // may not be marked dirty yet. A closed week had counted them until it was reopened.
        let mut left = self.model.global.board_cache.groups_left(window, server);
        let tags = self.model.servers.get(server).map_or(&[][..], |server_state| &server_state.record.tags);
        add_groups(&mut left, &self.model.global.existing_tags(tags).into_iter().map(Group::Tag).collect::<Vec<_>>());
        for &(player, _) in &rows {
            self.model.global.delete_row(source, RowKey { window, server, player })?;
            // The server may have been closed with them before it was greylisted.
            self.model.global.remove_best(source, week, server, player)?;
            let Some(game) = self.model.global.player_record(source, player)?.map(|record| record.game) else {
                continue;
            };
            let leave = |it: &mut PlayerWindow| it.servers.retain(|other| *other != server);
            self.model.global.change_player_window(source, window, game, player, leave)?;
            self.model.global.board_cache.mark_dirty_leaving(window, player, &left);
        }
        self.model.global.enqueue(OutboxKey::Week { week, server });
        // The archive still has the positions that these players had in a reopened week.
        if is_last && self.model.global.meta.reopened_weeks.contains(&week) {
            self.model.global.enqueue_best_positions(source, server)?;
        }
        *begun = rows.last().map(|(player, _)| ServerClose::DeletingRows(*player)).filter(|_| !is_last);
        Ok(is_last)
    }

    /// Moves the live rows of a week to the pending rows.
    fn flush_live_rows(&mut self, server: ServerKey, week: WeekKey) {
        let holds = |record: &ServerRecord| {
            let mut rows = record.presences().flat_map(|presence| &presence.rows);
            rows.any(|(window, _)| window.week() == Some(week)) || record.map_time.is_some_and(|map| map.week == week)
        };
        // Views hold all records: one that is borrowed to be changed is copied.
        let Some(server_state) = self.model.servers.get_mut(server).filter(|it| holds(&it.record)) else { return };
        let global = &mut self.model.global;
        for entry in server_state.record.last_snapshot.iter_mut().flat_map(|last| &mut last.entries) {
            let Some(presence) = &mut entry.presence else { continue };
            if let Some(at) = presence.rows.iter().position(|(window, _)| window.week() == Some(week)) {
                let (window, row) = presence.rows.remove(at);
                global.put_row(RowKey { window, server, player: presence.player }, &row);
            }
        }
        if server_state.record.map_time.is_some_and(|m| m.week == week) {
            global.flush_map_time(server, server_state.record.map_time.take());
        }
        global.server_changed(server);
    }

    fn rank_servers(&mut self, week: WeekKey, budget: &mut StepBudget) {
        let mut closing = self.model.week_close.take().expect("set when the week began to close, or at the start");
        while budget.has_steps() && closing.next_to_rank < self.model.servers.end().0 {
            budget.spend(1);
            let server = ServerKey(closing.next_to_rank);
            closing.next_to_rank += 1;
            let Some(server_state) = self.model.servers.get_mut(server) else { continue };
            if server_state.record.rank_week == Some(week) {
                continue; // has its rank already
            }
            let rank = closing.rank(server);
            if rank.is_none() && server_state.series.is_none() {
                continue; // never seen
            }
            budget.spend(STEPS_PER_RANK);
            // A reopened week may be closed after a later one.
            if server_state.record.rank_week < Some(week) {
                server_state.record.rank = rank;
                server_state.record.rank_week = Some(week);
            }
            let series = server_state.series.get_or_insert_with(|| PackedSeries::pack(&slots::new_series()));
            series.change(|series| {
                slots::set_rank(series, week, rank);
                true
            });
            let pending = &mut self.model.global.pending;
            pending.ranks.extend(rank.map(|rank| ((week, server), rank)));
            pending.series.insert(server);
            self.model.global.server_changed(server);
            self.model.global.enqueue_changed_rows(week, server);
        }
        if closing.next_to_rank < self.model.servers.end().0 || !budget.has_steps() {
            self.model.week_close = Some(closing);
        } else {
            self.model.global.set_week_phase(week, WeekPhase::Closed);
            self.model.global.meta.reopened_weeks.retain(|reopened| *reopened != week);
        }
    }

    /// Deletes the oldest closed weeks beyond `keep_weeks`, once nothing of them is waiting in
    /// the outbox.
    fn delete_old_weeks(&mut self, source: &dyn StoreReader) -> Result<(), ReadError> {
        loop {
            let closed = self.model.global.meta.weeks.iter().filter(|s| s.phase == WeekPhase::Closed).count();
            if closed <= self.model.global.settings.keep_weeks {
                return Ok(());
            }
            let oldest = self.model.global.meta.weeks[0];
            let archive = self.model.global.settings.archive_enabled;
            if oldest.phase != WeekPhase::Closed || (archive && self.model.has_unarchived(source, oldest.week)) {
                return Ok(());
            }
            self.model.global.delete_window(oldest.week.into());
        }
    }
}
