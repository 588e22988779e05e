//! Credits players who stay, join and leave between two snapshots (docs/rules.md sections 3 to 5).

use std::hint::black_box;

use crate::engine::{GlobalState, ReadError, StoreReader};
use crate::model::commit::RowKey;
use crate::model::row::PlayerRow;
use crate::model::server::{PlayerEntry, Presence, PresenceRows, Screening};
use crate::model::{GameKey, MapKey, PlayerKey, ServerKey, WindowKey};
use crate::rank::estimate::Unseen;
use crate::rank::{clq1, elo, points};

/// The time between two snapshots that are compared.
#[derive(Clone, Copy)]
pub(super) struct Gap {
    pub(super) from_ms: i64,
    pub(super) to_ms: i64,
    pub(super) restarted: bool,
}

impl Gap {
    pub fn ms(self) -> i64 {
        self.to_ms - self.from_ms
    }
}

/// What the previous snapshot shows about a player who joins.
#[derive(Clone, Copy)]
pub(super) enum PreviousSighting {
    /// No snapshot, or one too long ago: the points only set the baseline.
    Invisible,
    /// A list without the player; and how long the player has been connected, if the protocol says so and the list does
    /// not contradict it.
    Visible(Gap, Option<Unseen>),
    /// A list with the player as a spectator.
    Spectating(Gap),
}

/// Where a list comes from.
#[derive(Clone, Copy)]
pub(super) struct ListOrigin<'s> {
    /// The committed records.
    pub source: &'s dyn StoreReader,
    pub server: ServerKey,
    pub game: GameKey,
    /// The map that time is counted for.
    pub map: MapKey,
    /// The protocol rounds connected times down to this.
    pub connected_step_ms: i64,
}

impl GlobalState {
    /// Credits a player who was in the list before, too.
    pub(super) fn credit_stay(
        &mut self,
        origin: ListOrigin<'_>,
        before: &mut PlayerEntry,
        now: &mut PlayerEntry,
        gap: Gap,
        screening: &mut Option<Box<Screening>>,
    ) -> Result<(), ReadError> {
        let Some(mut presence) = before.presence.take() else { return Ok(()) };
        let gain = match (before.points, now.points) {
            (_, Some(now)) if gap.restarted => points::gain_from_zero(now),
            (Some(before), Some(now)) => points::gain_stayed(before, now),
            _ => 0,
        };
        let gain = self.credible_gain(gain, screening, gap.to_ms);
        let (start, segment) = (&mut presence.segment_start_ms, &mut presence.segment_points);
        let complete = clq1::spread_gain(start, segment, gain, gap.from_ms, gap.to_ms);
        let has_points = now.points.is_some();
        GlobalState::add_to_session(&mut presence, gap.to_ms, origin.map, has_points.then_some(gain));
        let (player, mut saturated) = (presence.player, false);
        for (window, row) in self.current_rows(origin, &mut presence, gap.to_ms)? {
            if has_points && !row.has_points {
                // The player is on all boards from now on.
                self.board_cache.mark_listed(*window, player);
            }
            row.measured_ms += gap.ms() as u64;
            row.time_est_ms += gap.ms() as u64;
            row.time_at_ms = gap.to_ms;
            row.has_points |= has_points;
            if gain > 0 {
                saturated |= !row.add_points(gain, gap.to_ms);
            }
            complete.iter().for_each(|&value| row.clq1_segments.insert(value, gap.to_ms));
        }
        self.points_saturated += u64::from(saturated);
        if before.display() != now.display() {
            self.rename(origin.source, presence.player, now.display())?;
        }
        now.presence = Some(presence);
        Ok(())
    }

    /// Credits a player who joins.
    pub(super) fn credit_entry(
        &mut self,
        origin: ListOrigin<'_>,
        player: PlayerKey,
        entry: &mut PlayerEntry,
        before: PreviousSighting,
        t_ms: i64,
        screening: &mut Option<Box<Screening>>,
    ) -> Result<(), ReadError> {
        let (segment_start_ms, rows) = (t_ms, PresenceRows::new());
        let mut presence = Presence { player, segment_start_ms, segment_points: 0.0, rows, session: None };
        let from_zero = points::gain_from_zero(entry.points.unwrap_or(0));
        let (starts, gain, unseen, connected) = match before {
            PreviousSighting::Invisible => (1, 0, Unseen::BEFORE_VISIBLE, None),
            PreviousSighting::Visible(gap, connected) => (1, from_zero, Unseen::half_of(gap.ms()), connected),
            PreviousSighting::Spectating(gap) => {
                (0, if gap.restarted { from_zero } else { 0 }, Unseen::half_of(gap.ms()), None)
            }
        };
        let gain = self.credible_gain(gain, screening, t_ms);
        let has_points = entry.points.is_some();
        GlobalState::add_to_session(&mut presence, t_ms, origin.map, has_points.then_some(gain));
        let mut saturated = false;
        for (_, row) in self.current_rows(origin, &mut presence, t_ms)? {
            row.starts = row.starts.saturating_add(starts);
            unseen.add_to(row, connected);
            row.has_points |= has_points;
            if starts > 0 {
                row.time_at_ms = t_ms;
            }
            if gain > 0 {
                saturated |= !row.add_points(gain, t_ms);
            }
        }
        self.points_saturated += u64::from(saturated);
        entry.presence = Some(presence);
        Ok(())
    }

    /// Ends a presence. `last`: time and map of the last list with the player.
    pub(in crate::engine) fn end_presence(
        &mut self,
        source: &dyn StoreReader,
        server: ServerKey,
        presence: Option<Presence>,
        last: (i64, MapKey),
    ) -> Result<(), ReadError> {
        let Some(Presence { player, rows, session, .. }) = presence else { return Ok(()) };
        for (window, row) in rows {
            self.board_cache.mark_left(window, server, player, &row);
            self.put_row(RowKey { window, server, player }, &row);
        }
        match session {
            Some(session) => self.complete_session(source, server, (player, player), session, last),
            None => Ok(()),
        }
    }

    /// Returns the rows of the presence in the windows of `t_ms`. Missing rows are read or
    /// created; rows of windows that have ended are moved to the pending rows.
    pub(super) fn current_rows<'a>(
        &mut self,
        ListOrigin { source, server, game, .. }: ListOrigin<'_>,
        presence: &'a mut Presence,
        t_ms: i64,
    ) -> Result<&'a mut [(WindowKey, Box<PlayerRow>)], ReadError> {
        let held = presence.rows.iter().map(|(window, _)| *window);
        if !held.eq(self.current_windows.keys.iter().copied()) {
            let player = presence.player;
            let rows = std::mem::take(&mut presence.rows).into_iter();
            let (mut now, old): (Vec<_>, Vec<_>) =
                rows.partition(|(window, _)| self.current_windows.keys.contains(window));
            // Before any row is read: a new row may carry over the rating of an older one.
            for (window, row) in old {
                self.put_row(RowKey { window, server, player }, &row);
            }
            for at in 0..self.current_windows.keys.len() {
                let window = self.current_windows.keys[at];
                let row = match now.iter().position(|(w, _)| *w == window) {
                    Some(at) => now.swap_remove(at).1,
                    None => self.load_or_create_row(source, RowKey { window, server, player }, game, t_ms)?,
                };
                presence.rows.push((window, row));
            }
        }
        Ok(&mut presence.rows)
    }

    /// Adds to the presence the player's rows in the current windows that it does not hold:
    /// rows of windows that were imported, and all rows after a merge.
    pub(super) fn load_missing_rows(
        &mut self,
        ListOrigin { source, server, game, .. }: ListOrigin<'_>,
        presence: &mut Presence,
    ) -> Result<(), ReadError> {
        let player = presence.player;
        for at in 0..self.current_windows.keys.len() {
            let window = self.current_windows.keys[at];
            if presence.row(window).is_some()
                || !self.player_window(source, window, game, player)?.servers.contains(&server)
            {
                continue;
            }
            if let Some(row) = self.row(source, RowKey { window, server, player })? {
                let at = presence.rows.partition_point(|(before, _)| *before < window);
                presence.rows.insert(at, (window, Box::new(row)));
            }
        }
        Ok(())
    }

    fn load_or_create_row(
        &mut self,
        source: &dyn StoreReader,
        key: RowKey,
        game: GameKey,
        t_ms: i64,
    ) -> Result<Box<PlayerRow>, ReadError> {
        // The servers in the player's window record show whether there is a stored row.
        if self.player_window(source, key.window, game, key.player)?.servers.contains(&key.server) {
            if let Some(row) = self.row(source, key)? {
                return Ok(Box::new(row));
            }
        } else {
            let servers = self.change_player_window(source, key.window, game, key.player, |it| {
                it.servers.push(key.server);
                it.servers.len()
            })?;
            self.board_cache.note_new_row(key.window, key.player, servers);
        }
        Ok(Box::new(PlayerRow::new(t_ms, self.initial_elo(source, key)?)))
    }

    /// 1000, or with `elo.carry_over` the last rating on that server.
    fn initial_elo(&self, source: &dyn StoreReader, key: RowKey) -> Result<f64, ReadError> {
        if !self.settings.rules.elo.carry_over || key.window.week().is_none() {
            return Ok(elo::ELO_START);
        }
        for window in self.weeks_before(key.window) {
            if let Some(row) = self.row(source, RowKey { window, ..key })? {
                return Ok(row.elo);
            }
        }
        let best = source.best(key.server, key.player)?;
        Ok(best.and_then(|best| best.elo).unwrap_or(elo::ELO_START))
    }
}

/// Prefetches the rows of a list, so that their cache misses overlap. Without it the misses
/// take a quarter of the time of a snapshot (20,000 servers).
pub(super) fn prefetch_rows(entries: &[PlayerEntry]) {
    let bytes = entries.iter().fold(0, |all, entry| all ^ entry.display().as_bytes().first().copied().unwrap_or(0));
    black_box(rows_of(entries).fold(i64::from(bytes), |all, row| all ^ row.time_at_ms));
}

/// The rows held by the presences of a list.
pub(super) fn rows_of(entries: &[PlayerEntry]) -> impl Iterator<Item = &PlayerRow> {
    let presences = entries.iter().filter_map(|entry| entry.presence.as_ref());
    presences.flat_map(|presence| &presence.rows).map(|(_, row)| &**row)
}
