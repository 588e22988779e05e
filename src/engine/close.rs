//! Closing a week: server by server, then the ranks of servers, then hot rows
//! are let go (RULES sections 10 and 11).
//!
//! Each step is small and takes part in the next commit, so closing can stop
//! anywhere and goes on where the last commit left it.

use super::{Engine, Source};
use crate::board;
use crate::model::commit::{RowKey, WeekPhase};
use crate::model::row::{MapRow, Ranking, WeekRow};
use crate::model::{MapKey, OutboxKey, PlayerKey, ServerKey, WeekKey, WindowKey};
use crate::series::slots;

/// A week is closed this long after its end, so that replies on their way
/// still find it open.
pub const CLOSE_DELAY_MS: i64 = 10_000;

/// Rows that are as much work as a server without any.
const ROWS_PER_STEP: usize = 50;

impl Engine {
    /// Works on weeks that are over, up to the steps of one tick.
    pub(super) fn work_on_weeks<S: Source>(&mut self, source: &S) -> Result<(), S::Error> {
        let mut budget = self.books.settings.week_steps_per_tick;
        while let Some(state) = self.books.meta.weeks.iter().copied().find(|s| s.phase != WeekPhase::Closed) {
            if budget == 0 {
                return Ok(());
            }
            match state.phase {
                WeekPhase::Open => {
                    let over_ms = self.books.calendar.week_end_ms(state.week) + CLOSE_DELAY_MS;
                    if self.books.meta.now_ms < over_ms {
                        break;
                    }
                    self.books.set_week_phase(state.week, WeekPhase::Closing);
                }
                WeekPhase::Closing => self.close_some(source, state.week, &mut budget)?,
                WeekPhase::Ranking => self.rank_some(source, state.week, &mut budget)?,
                WeekPhase::Closed => unreachable!("not looked for"),
            }
        }
        self.drop_old_weeks(source)
    }

    /// From when on a tick has a week to close; `i64::MAX` without any.
    pub fn week_over_ms(&self) -> i64 {
        let weeks = self.books.meta.weeks.iter().filter(|state| state.phase != WeekPhase::Closed);
        weeks.map(|state| self.books.calendar.week_end_ms(state.week) + CLOSE_DELAY_MS).min().unwrap_or(i64::MAX)
    }

    fn close_some<S: Source>(&mut self, source: &S, week: WeekKey, budget: &mut usize) -> Result<(), S::Error> {
        let mut next = match self.last_closed {
            Some((closed_week, server)) if closed_week == week => server.0 + 1,
            _ => 1,
        };
        while *budget > 0 && (next as usize) < self.servers.len() {
            if self.slot(ServerKey(next)).is_some() {
                let rows = self.close_server(source, week, ServerKey(next))?;
                *budget = budget.saturating_sub(1 + rows / ROWS_PER_STEP);
            }
            next += 1;
        }
        if next as usize >= self.servers.len() && *budget > 0 {
            // All map rows are final: the ranks are, too. One commit holds
            // them all, so they are of one moment.
            let mut player_ms = source.week_player_ms(week)?;
            self.overlay_player_ms(week, source, &mut player_ms)?;
            player_ms.retain(|&(server, _)| self.slot(server).is_some_and(|slot| slot.record.greylist.is_none()));
            let ranks = board::server_ranks(player_ms);
            self.books.pending.ranks.extend(ranks.into_iter().map(|(server, rank)| ((week, server), rank)));
            self.books.set_week_phase(week, WeekPhase::Ranking);
            self.rank_cursor = 1;
        }
        Ok(())
    }

    /// Returns the number of its rows.
    fn close_server<S: Source>(&mut self, source: &S, week: WeekKey, server: ServerKey) -> Result<usize, S::Error> {
        self.settle(server, week);
        let slot = self.slot(server).expect("closed servers exist");
        if !self.is_counted(slot, week.into(), server) {
            return self.close_without_rows(source, week, server);
        }
        let rows = self.rows(source, week.into(), server)?;
        if !rows.is_empty() {
            let positions = board::positions(&rows);
            for ((player, row), places) in rows.iter().zip(positions) {
                let key = (server, *player);
                let mut best = match self.books.pending.best.get(&key) {
                    Some(best) => best.clone(),
                    None => source.best(server, *player)?.unwrap_or_default(),
                };
                for (which, ranking) in Ranking::WITH_BEST.into_iter().enumerate() {
                    if let Some(position) = places[ranking as usize] {
                        best.offer(which, position, week);
                    }
                }
                best.elo = Some(row.elo);
                self.books.pending.best.insert(key, best);
            }
            self.books.archive(OutboxKey::Week { week, server });
        }
        self.books.pending.closed.push((week, server));
        self.last_closed = Some((week, server));
        Ok(rows.len())
    }

    /// A week is closed without the rows of a greylisted server, for good: they
    /// would come back otherwise when it is lifted, into a week that is final.
    fn close_without_rows<S: Source>(
        &mut self,
        source: &S,
        week: WeekKey,
        server: ServerKey,
    ) -> Result<usize, S::Error> {
        let window = WindowKey::from(week);
        let rows = self.rows(source, window, server)?;
        for &(player, _) in &rows {
            self.books.take_row(source, RowKey { window, server, player })?;
            let Some(game) = source.player_record(player)?.map(|record| record.game) else { continue };
            let of_player = self.books.player_window_mut(source, window, game, player)?;
            of_player.servers.retain(|it| *it != server);
            self.books.shelf.changed(window, player);
        }
        self.books.archive(OutboxKey::Week { week, server });
        self.books.pending.closed.push((week, server));
        self.last_closed = Some((week, server));
        Ok(rows.len())
    }

    /// Writes what the live state holds of a week to its place.
    fn settle(&mut self, server: ServerKey, week: WeekKey) {
        let Some(slot) = self.servers[server.0 as usize].as_mut() else { return };
        let books = &mut self.books;
        let mut changed = false;
        for entry in slot.record.last.iter_mut().flat_map(|last| &mut last.entries) {
            let Some(presence) = &mut entry.presence else { continue };
            if let Some(at) = presence.rows.iter().position(|(window, _)| window.week() == Some(week)) {
                let (window, row) = presence.rows.remove(at);
                books.put_row(RowKey { window, server, player: presence.player }, row);
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

    fn rank_some<S: Source>(&mut self, source: &S, week: WeekKey, budget: &mut usize) -> Result<(), S::Error> {
        // Which ranks were given is told by each server's `ranked_week`, so a
        // start in the middle begins at 1 again and changes nothing twice.
        let mut next = self.rank_cursor.max(1);
        while *budget > 0 && (next as usize) < self.servers.len() {
            let server = ServerKey(next);
            next += 1;
            let known =
                self.slot(server).is_some_and(|slot| slot.record.ranked_week.is_none_or(|ranked| ranked < week));
            if !known {
                continue; // has its rank already, or there is no such server
            }
            let rank = match self.books.pending.ranks.get(&(week, server)) {
                Some(&rank) => Some(rank),
                None => source.rank(week, server)?,
            };
            let slot = self.servers[server.0 as usize].as_mut().expect("looked at above");
            if rank.is_none() && slot.series.is_none() {
                continue; // never seen
            }
            *budget -= 1;
            slot.record.rank = rank;
            slot.record.ranked_week = Some(week);
            slots::push_rank(slot.series.get_or_insert_with(|| Box::new(slots::empty())), week, rank);
            self.books.pending.series.insert(server);
            self.books.server_changed(server);
            self.books.archive(OutboxKey::Week { week, server });
        }
        self.rank_cursor = next;
        if next as usize >= self.servers.len() && *budget > 0 {
            self.books.set_week_phase(week, WeekPhase::Closed);
            self.rank_cursor = 1;
        }
        Ok(())
    }

    /// Lets go of the oldest closed weeks beyond those to keep, once nothing
    /// of them waits to be archived.
    fn drop_old_weeks<S: Source>(&mut self, source: &S) -> Result<(), S::Error> {
        loop {
            let closed = self.books.meta.weeks.iter().filter(|s| s.phase == WeekPhase::Closed).count();
            if closed <= self.books.settings.keep_weeks {
                return Ok(());
            }
            let oldest = self.books.meta.weeks[0];
            let archive = self.books.settings.archive;
            if oldest.phase != WeekPhase::Closed || (archive && self.week_waits(source, oldest.week)) {
                return Ok(());
            }
            self.books.drop_window(oldest.week.into());
        }
    }

    pub(super) fn week_waits<S: Source>(&self, source: &S, week: WeekKey) -> bool {
        let of_week = |key: &OutboxKey| matches!(key, OutboxKey::Week { week: w, .. } if *w == week);
        self.books.meta.resync || self.books.pending.outbox.iter().any(of_week) || source.outbox_holds_week(week)
    }

    fn overlay_player_ms<S: Source>(
        &self,
        week: WeekKey,
        source: &S,
        player_ms: &mut Vec<(ServerKey, u64)>,
    ) -> Result<(), S::Error> {
        let pending = self.books.pending.map_rows.keys().filter(|(w, _)| *w == week);
        for &(_, server) in pending {
            let ms = self.map_rows(source, week, server)?.iter().map(|(_, row)| row.player_ms).sum();
            match player_ms.binary_search_by_key(&server, |&(s, _)| s) {
                Ok(at) => player_ms[at].1 = ms,
                Err(at) => player_ms.insert(at, (server, ms)),
            }
        }
        Ok(())
    }

    /// Rows of a server as of now: committed, changed since, and live; in
    /// order of player key.
    pub(super) fn rows<S: Source>(
        &self,
        source: &S,
        window: WindowKey,
        server: ServerKey,
    ) -> Result<Vec<(PlayerKey, WeekRow)>, S::Error> {
        let mut rows = source.rows(window, server)?;
        let mut put = |player: PlayerKey, row: &WeekRow| match rows.binary_search_by_key(&player, |(p, _)| *p) {
            Ok(at) => rows[at].1.clone_from(row),
            Err(at) => rows.insert(at, (player, row.clone())),
        };
        for (player, row) in self.books.pending.rows.get(&(window, server)).into_iter().flatten() {
            put(*player, row);
        }
        let live = self.slot(server).and_then(|slot| slot.record.last.as_ref());
        for presence in live.iter().flat_map(|last| &last.entries).filter_map(|entry| entry.presence.as_ref()) {
            if let Some(row) = presence.row(window) {
                put(presence.player, row);
            }
        }
        Ok(rows)
    }

    /// Map rows of a server as of now, in order of map key.
    pub(super) fn map_rows<S: Source>(
        &self,
        source: &S,
        week: WeekKey,
        server: ServerKey,
    ) -> Result<Vec<(MapKey, MapRow)>, S::Error> {
        let mut rows = source.map_rows(week, server)?;
        let mut put = |map: MapKey, row: MapRow| match rows.binary_search_by_key(&map, |(m, _)| *m) {
            Ok(at) => rows[at].1 = row,
            Err(at) => rows.insert(at, (map, row)),
        };
        for (map, row) in self.books.pending.map_rows.get(&(week, server)).into_iter().flatten() {
            put(*map, *row);
        }
        if let Some(live) = self.slot(server).and_then(|slot| slot.record.map_time).filter(|live| live.week == week) {
            put(live.map, live.row);
        }
        Ok(rows)
    }
}
