//! Closing a week: server by server, then the ranks of servers, then the rows of the running week
//! are let go (RULES sections 10 and 11).
//!
//! Each tick works up to a budget of records read and written, and what it did
//! takes part in the next commit, so closing can stop anywhere, in the middle of
//! a server too, and goes on where the last commit left it. What a server's rank
//! follows from is in the record of its being closed, so the ranks, given out
//! over many commits, are those of one moment.

mod final_positions;
pub(in crate::engine) mod reopen;

use super::rows::RowPage;
use super::{Engine, GlobalState, StateReader};
use crate::board;
use crate::engine::week_close::final_positions::FinalPositions;
use crate::model::commit::{RowKey, WeekPhase};
use crate::model::row::BestPositions;
use crate::model::{OutboxKey, PlayerKey, ServerKey, WeekKey, WindowKey};
use crate::series::slots;

/// A week is closed this long after its end, so that replies on their way
/// still find it open.
pub const CLOSE_DELAY_MS: i64 = 10_000;

/// Time between ticks, and while a week is being closed: small portions, each
/// in a commit of its own.
const TICK_INTERVAL_MS: i64 = 1_000;
const CLOSING_TICK_INTERVAL_MS: i64 = 200;

/// Steps of giving a rank: it goes into the record of the server and into its
/// series, of more than 1 kB each.
pub(super) const STEPS_PER_RANK: usize = 8;

/// Positions of players that are given in one step: they are in memory.
const POSITIONS_PER_STEP: usize = 8;

/// How far a week is closed.
#[derive(Debug)]
pub(super) struct WeekClose {
    week: WeekKey,
    /// In order of key, with the player-milliseconds that they are ranked by.
    closed: Vec<(ServerKey, u64)>,
    /// The server that is being closed.
    begun: Option<ServerClose>,
    /// By server key, 0: none. There once all servers are closed.
    ranks: Option<Vec<u32>>,
    /// Next server to be given its rank. Who has his is told by `ranked_week`, so
    /// a start in the middle begins at 1 again and changes nothing twice.
    rank_next: u32,
}

/// How far a server is closed.
#[derive(Debug)]
enum ServerClose {
    Ordering(Box<FinalPositions>),
    /// Its rows are let go; of this player, and those before him, they are gone.
    Emptying(PlayerKey),
}

impl WeekClose {
    pub(super) fn new(week: WeekKey, closed: Vec<(ServerKey, u64)>) -> WeekClose {
        WeekClose { week, closed, begun: None, ranks: None, rank_next: 1 }
    }

    pub(super) fn is_of(&self, week: WeekKey) -> bool {
        self.week == week
    }

    /// Starts the server that is being closed from its first row again: a correction
    /// has changed its rows or their order.
    fn restart(&mut self) {
        self.begun = match self.begun.take() {
            Some(ServerClose::Emptying(_)) => Some(ServerClose::Emptying(PlayerKey(0))),
            Some(ServerClose::Ordering(_)) | None => None,
        };
    }

    pub(super) fn is_closed(&self, week: WeekKey, server: ServerKey) -> bool {
        self.week == week && self.closed.last().is_some_and(|&(last, _)| last >= server)
    }

    fn rank(&mut self, server: ServerKey) -> Option<u32> {
        let ranks = self.ranks.get_or_insert_with(|| {
            let mut ranks = vec![0; self.closed.last().map_or(0, |(server, _)| server.0 as usize + 1)];
            for (server, rank) in board::server_ranks(self.closed.clone()) {
                ranks[server.0 as usize] = rank;
            }
            ranks
        });
        ranks.get(server.0 as usize).copied().filter(|&rank| rank > 0)
    }
}

/// The steps left to a tick: one for each record read or written.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepBudget(usize);

impl StepBudget {
    pub(super) fn is_left(self) -> bool {
        self.0 > 0
    }

    pub(super) fn spend(&mut self, steps: usize) {
        self.0 = self.0.saturating_sub(steps);
    }
}

impl GlobalState {
    /// Best positions that are committed; of who has none, that he will.
    pub(super) fn best_known<S: StateReader>(
        &mut self,
        source: &S,
        server: ServerKey,
        player: PlayerKey,
    ) -> Result<BestPositions, S::Error> {
        Ok(source.best(server, player)?.unwrap_or_else(|| {
            self.pending.new_best.push((player, server));
            BestPositions::default()
        }))
    }
}

impl Engine {
    /// Works on weeks that are over, up to the steps of one tick.
    pub(super) fn advance_weeks<S: StateReader>(&mut self, source: &S) -> Result<(), S::Error> {
        let mut budget = StepBudget(self.global.settings.week_steps_per_tick);
        while let Some(state) = self.global.meta.weeks.iter().copied().find(|s| s.phase != WeekPhase::Closed) {
            if !budget.is_left() {
                return Ok(());
            }
            if state.phase == WeekPhase::Reopening {
                self.remove_ranks(source, state.week, &mut budget)?;
                continue;
            }
            // What reopening removes must be committed before it is written again.
            let is_removed =
                self.global.pending.corrections.reopened_servers.iter().any(|(week, _)| *week == state.week);
            if self.closable_from_ms(state.week) > self.close_limit_ms() || is_removed {
                break;
            }
            match state.phase {
                WeekPhase::Open => {
                    self.global.set_week_phase(state.week, WeekPhase::Closing);
                    self.week_close = Some(WeekClose::new(state.week, Vec::new()));
                }
                WeekPhase::Closing => self.close_servers(source, state.week, &mut budget)?,
                WeekPhase::Ranking => self.rank_servers(state.week, &mut budget),
                WeekPhase::Closed | WeekPhase::Reopening => unreachable!("not looked for, or done above"),
            }
        }
        self.delete_old_weeks(source)
    }

    /// From when on a week can be closed.
    fn closable_from_ms(&self, week: WeekKey) -> i64 {
        self.global.calendar.week_end_ms(week) + CLOSE_DELAY_MS
    }

    /// From when on a tick has a week to close; `i64::MAX` without any.
    pub fn next_close_ms(&self) -> i64 {
        let weeks = self.global.meta.weeks.iter().filter(|state| state.phase != WeekPhase::Closed);
        weeks.map(|state| self.closable_from_ms(state.week)).min().unwrap_or(i64::MAX)
    }

    /// Closes no week that ends later than `t_ms` (Unix ms) from now on, nor goes on
    /// closing one: time may have passed by a clock that is not trusted. Without a
    /// call there is no such limit; a replay needs none.
    pub fn set_close_limit(&mut self, t_ms: i64) {
        self.close_limit_ms = t_ms;
    }

    fn close_limit_ms(&self) -> i64 {
        self.global.meta.now_ms.min(self.close_limit_ms)
    }

    /// The first week that would be closed, or closed further, but for
    /// [`Engine::set_close_limit`].
    pub fn week_blocked(&self) -> Option<WeekKey> {
        let state = self.global.meta.weeks.iter().find(|state| state.phase != WeekPhase::Closed)?;
        let over_ms = self.closable_from_ms(state.week);
        let held = state.phase != WeekPhase::Reopening && over_ms <= self.global.meta.now_ms;
        (held && over_ms > self.close_limit_ms).then_some(state.week)
    }

    /// Whether the next tick has a week to close, or to reopen.
    pub fn has_week_to_close(&self) -> bool {
        let first = self.global.meta.weeks.iter().find(|state| state.phase != WeekPhase::Closed);
        first.is_some_and(|state| {
            state.phase == WeekPhase::Reopening || self.closable_from_ms(state.week) <= self.close_limit_ms()
        })
    }

    /// Time from one tick to the next, ms: one that has a week to close does a
    /// small portion of it.
    pub fn tick_interval_ms(&self) -> i64 {
        if self.has_week_to_close() { CLOSING_TICK_INTERVAL_MS } else { TICK_INTERVAL_MS }
    }

    /// A correction has changed rows, or their order: the server that is being closed
    /// is closed from its first row again. Positions that were written are replaced.
    pub(super) fn restart_server_close(&mut self) {
        self.week_close.iter_mut().for_each(WeekClose::restart);
    }

    fn close_servers<S: StateReader>(
        &mut self,
        source: &S,
        week: WeekKey,
        budget: &mut StepBudget,
    ) -> Result<(), S::Error> {
        let mut closing = self.week_close.take().expect("set when the week began to close, or at the start");
        let mut next = closing.closed.last().map_or(1, |(server, _)| server.0 + 1);
        while budget.is_left() && (next as usize) < self.servers.len() {
            let server = ServerKey(next);
            if let Some(slot) = self.server_state(server) {
                let ignored = slot.record.greylist.is_some();
                if !self.close_server(source, week, server, &mut closing.begun, budget)? {
                    break;
                }
                // Its map rows are final, too.
                let maps = self.map_rows(source, week, server)?;
                budget.spend(1 + maps.len());
                let player_ms = if ignored { 0 } else { maps.iter().map(|(_, row)| row.player_ms).sum() };
                closing.closed.push((server, player_ms));
                self.global.pending.closed_servers.push((week, server, player_ms));
            }
            budget.spend(1);
            next += 1;
        }
        self.week_close = Some(closing);
        if next as usize >= self.servers.len() && budget.is_left() {
            self.global.set_week_phase(week, WeekPhase::Ranking);
        }
        Ok(())
    }

    /// Returns whether the server is closed; if not, the budget is spent.
    fn close_server<S: StateReader>(
        &mut self,
        source: &S,
        week: WeekKey,
        server: ServerKey,
        begun: &mut Option<ServerClose>,
        budget: &mut StepBudget,
    ) -> Result<bool, S::Error> {
        let slot = self.server_state(server).expect("closed servers exist");
        let counted = self.is_counted(slot, week.into(), server);
        let mut standings = match begun.take() {
            Some(ServerClose::Ordering(standings)) if counted => standings,
            // Half emptied it is of no use to anybody, whoever lifts it meanwhile.
            Some(ServerClose::Emptying(last)) => {
                return self.close_ignored_server(source, week, server, Some(last), begun, budget);
            }
            _ => {
                self.flush_live_rows(server, week);
                if !counted {
                    return self.close_ignored_server(source, week, server, None, begun, budget);
                }
                Box::new(FinalPositions::new(self.server_orders(server)))
            }
        };
        while !standings.is_read() {
            if !budget.is_left() {
                *begun = Some(ServerClose::Ordering(standings));
                return Ok(false);
            }
            let portion = self.rows_after(source, week.into(), server, standings.last_read(), budget.0)?;
            budget.spend(portion.rows.len());
            standings.read(&portion.rows);
            if portion.is_last {
                standings.end();
            }
        }
        while !standings.are_given() {
            if !budget.is_left() {
                *begun = Some(ServerClose::Ordering(standings));
                return Ok(false);
            }
            let given = standings.give(budget.0.saturating_mul(POSITIONS_PER_STEP));
            budget.spend(given.div_ceil(POSITIONS_PER_STEP));
        }
        while let Some(standing) = standings.next() {
            if !budget.is_left() {
                *begun = Some(ServerClose::Ordering(standings));
                return Ok(false);
            }
            budget.spend(1);
            let key = (server, standing.player);
            let mut best = match self.global.pending.best.get(&key) {
                Some(best) => best.clone(),
                None => self.global.best_known(source, server, standing.player)?,
            };
            for (which, position) in standing.positions.into_iter().enumerate() {
                best.set(which, position, week);
            }
            if !self.has_later_row(source, week, server, standing.player)? {
                best.elo = Some(standing.elo);
            }
            self.global.pending.best.insert(key, best);
            standings.pass();
        }
        if !standings.is_empty() {
            self.global.archive(OutboxKey::Week { week, server });
        }
        Ok(true)
    }

    /// Whether a later week is closed already and holds a row of the player on the
    /// server: so after an earlier one was reopened.
    fn has_later_row<S: StateReader>(
        &self,
        source: &S,
        week: WeekKey,
        server: ServerKey,
        player: PlayerKey,
    ) -> Result<bool, S::Error> {
        for state in self.global.meta.weeks.iter().rev().take_while(|state| state.week > week) {
            let window = state.week.into();
            if state.phase == WeekPhase::Closed && self.global.row(source, RowKey { window, server, player })?.is_some()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A week is closed without the rows of a greylisted server, for good: they
    /// would come back otherwise when it is lifted, into a week that is final.
    /// Returns whether all of them are gone; if not, the budget is spent.
    fn close_ignored_server<S: StateReader>(
        &mut self,
        source: &S,
        week: WeekKey,
        server: ServerKey,
        after: Option<PlayerKey>,
        begun: &mut Option<ServerClose>,
        budget: &mut StepBudget,
    ) -> Result<bool, S::Error> {
        let window = WindowKey::from(week);
        let RowPage { rows, is_last } = self.rows_after(source, window, server, after, budget.0)?;
        budget.spend(rows.len());
        // They left its groups when it was greylisted; some may not be noted yet.
        let left = self.global.shelf.left_by(window, server);
        for &(player, _) in &rows {
            self.global.take_row(source, RowKey { window, server, player })?;
            // It may have been closed with them before it was greylisted.
            let best = match self.global.pending.best.get(&(server, player)) {
                Some(best) => Some(best.clone()),
                None => source.best(server, player)?,
            };
            if let Some(mut best) = best
                && best.remove_week(week)
            {
                self.global.pending.best.insert((server, player), best);
            }
            let Some(game) = source.player_record(player)?.map(|record| record.game) else { continue };
            let of_player = self.global.player_window_mut(source, window, game, player)?;
            of_player.servers.retain(|it| *it != server);
            self.global.shelf.changed_and_left(window, player, &left);
        }
        self.global.archive(OutboxKey::Week { week, server });
        *begun = rows.last().map(|(player, _)| ServerClose::Emptying(*player)).filter(|_| !is_last);
        Ok(is_last)
    }

    /// Writes what the live state holds of a week to its place.
    fn flush_live_rows(&mut self, server: ServerKey, week: WeekKey) {
        let Some(slot) = self.servers[server.0 as usize].as_mut() else { return };
        let books = &mut self.global;
        let mut changed = false;
        for entry in slot.record.last_snapshot.iter_mut().flat_map(|last| &mut last.entries) {
            let Some(presence) = &mut entry.presence else { continue };
            if let Some(at) = presence.rows.iter().position(|(window, _)| window.week() == Some(week)) {
                let (window, row) = presence.rows.remove(at);
                books.put_row(RowKey { window, server, player: presence.player }, &row);
                changed = true;
            }
        }
        if slot.record.map_time.is_some_and(|m| m.week == week) {
            books.flush_map_time(server, slot.record.map_time.take());
            changed = true;
        }
        if changed {
            books.server_changed(server);
        }
    }

    fn rank_servers(&mut self, week: WeekKey, budget: &mut StepBudget) {
        let mut closing = self.week_close.take().expect("set when the week began to close, or at the start");
        while budget.is_left() && (closing.rank_next as usize) < self.servers.len() {
            budget.spend(1);
            let server = ServerKey(closing.rank_next);
            closing.rank_next += 1;
            let Some(slot) = self.servers[server.0 as usize].as_mut() else { continue };
            if slot.record.rank_week == Some(week) {
                continue; // has its rank already
            }
            let rank = closing.rank(server);
            if rank.is_none() && slot.series.is_none() {
                continue; // never seen
            }
            budget.spend(STEPS_PER_RANK);
            // A reopened week may be closed after a later one.
            if slot.record.rank_week < Some(week) {
                slot.record.rank = rank;
                slot.record.rank_week = Some(week);
            }
            slots::set_rank(slot.series.get_or_insert_with(|| Box::new(slots::new_series())), week, rank);
            let pending = &mut self.global.pending;
            pending.ranks.extend(rank.map(|rank| ((week, server), rank)));
            pending.series.insert(server);
            self.global.server_changed(server);
            self.global.archive(OutboxKey::Week { week, server });
        }
        if (closing.rank_next as usize) < self.servers.len() || !budget.is_left() {
            self.week_close = Some(closing);
        } else {
            self.global.set_week_phase(week, WeekPhase::Closed);
            self.global.meta.reopened_weeks.retain(|reopened| *reopened != week);
        }
    }

    /// Lets go of the oldest closed weeks beyond those to keep, once nothing
    /// of them waits to be archived.
    fn delete_old_weeks<S: StateReader>(&mut self, source: &S) -> Result<(), S::Error> {
        loop {
            let closed = self.global.meta.weeks.iter().filter(|s| s.phase == WeekPhase::Closed).count();
            if closed <= self.global.settings.keep_weeks {
                return Ok(());
            }
            let oldest = self.global.meta.weeks[0];
            let archive = self.global.settings.archive_enabled;
            if oldest.phase != WeekPhase::Closed || (archive && self.has_unarchived(source, oldest.week)) {
                return Ok(());
            }
            self.global.drop_window(oldest.week.into());
        }
    }

    pub(super) fn has_unarchived<S: StateReader>(&self, source: &S, week: WeekKey) -> bool {
        let of_week = |key: &OutboxKey| matches!(key, OutboxKey::Week { week: w, .. } if *w == week);
        self.global.meta.resync || self.global.pending.outbox.iter().any(of_week) || source.outbox_holds_week(week)
    }
}
