//! A server's current rows: committed, pending and live rows, the newest of each.
//!
//! All three are sorted by player, so callers read rows page by page. A page costs only the
//! rows that it returns.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Bound;

use super::{GlobalState, ReadError, ReadModel, ServerState, StateReader};
use crate::model::commit::{RowKey, WeekPhase};
use crate::model::row::{MapRow, PlayerRow, PlayerWindow};
use crate::model::{GameKey, MapKey, OutboxKey, PlayerKey, ServerKey, WeekKey, WindowKey};

/// A page of a server's rows, in order of player key.
#[derive(Debug)]
pub(super) struct RowPage {
    pub rows: Vec<(PlayerKey, PlayerRow)>,
    /// There are no rows after this page.
    pub is_last: bool,
}

impl ReadModel {
    /// Returns at most `most` rows of a server after a player (from the first, without one).
    pub(super) fn rows_after(
        &self,
        source: &dyn StateReader,
        window: WindowKey,
        server: ServerKey,
        after: Option<PlayerKey>,
        most: usize,
    ) -> Result<RowPage, ReadError> {
        let stored = source.rows_after(window, server, after, most)?;
        // A full page: no later stored row can be among the next `most` rows, whatever is
        // pending.
        let is_all_stored = stored.len() < most;
        let mut now = merge_newer(stored.into_iter(), self.changed_after(window, server, after));
        let rows = now.by_ref().take(most).collect();
        let is_last = is_all_stored && now.next().is_none();
        Ok(RowPage { rows, is_last })
    }

    /// All rows of a server.
    pub(super) fn rows(
        &self,
        source: &dyn StateReader,
        window: WindowKey,
        server: ServerKey,
    ) -> Result<Vec<(PlayerKey, PlayerRow)>, ReadError> {
        let stored = source.rows(window, server)?.into_iter();
        Ok(merge_newer(stored, self.changed_after(window, server, None)).collect())
    }

    /// Pending and live rows of a server, in order of player. Each live row is checked: there
    /// are some dozens.
    fn changed_after(
        &self,
        window: WindowKey,
        server: ServerKey,
        after: Option<PlayerKey>,
    ) -> impl Iterator<Item = (PlayerKey, PlayerRow)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let pending = self.global.pending.rows.get(&(window, server));
        let pending = pending.into_iter().flat_map(move |rows| rows.range((from, Bound::Unbounded)));
        let presences = self.servers.get(server).into_iter().flat_map(|server_state| server_state.record.presences());
        let live = presences.filter(|presence| after < Some(presence.player));
        let mut live: Vec<_> = live.filter_map(|presence| Some((presence.player, presence.row(window)?))).collect();
        live.sort_unstable_by_key(|(player, _)| *player);
        let pending = pending.map(|(player, row)| (*player, row.unpack()));
        merge_newer(pending, live.into_iter().map(|(player, row)| (player, row.clone())))
    }

    /// A player's row: live, pending or committed.
    pub(super) fn current_row(
        &self,
        source: &dyn StateReader,
        server_state: &ServerState,
        window: WindowKey,
        server: ServerKey,
        player: PlayerKey,
    ) -> Result<Option<PlayerRow>, ReadError> {
        let live = server_state.record.presences().find(|presence| presence.player == player);
        if let Some(row) = live.and_then(|presence| presence.row(window)) {
            return Ok(Some(row.clone()));
        }
        self.global.row(source, RowKey { window, server, player })
    }

    /// Map rows of a server, in order of map key.
    pub(super) fn map_rows(
        &self,
        source: &dyn StateReader,
        week: WeekKey,
        server: ServerKey,
    ) -> Result<Vec<(MapKey, MapRow)>, ReadError> {
        let stored = source.map_rows(week, server)?.into_iter();
        let pending = self.global.pending.map_rows.get(&(week, server)).into_iter().flatten();
        let live = self
            .servers
            .get(server)
            .and_then(|server_state| server_state.record.map_time)
            .filter(|live| live.week == week);
        let changed =
            merge_newer(pending.map(|(map, row)| (*map, *row)), live.map(|live| (live.map, live.row)).into_iter());
        Ok(merge_newer(stored, changed).collect())
    }

    /// Whether the rows of a server count in a window. Rows of a greylisted server do not,
    /// except in weeks that were closed before: a closed week has no other rows.
    pub(super) fn is_counted(&self, server_state: &ServerState, window: WindowKey, server: ServerKey) -> bool {
        server_state.record.greylist_reason.is_none()
            || window.week().is_some_and(|week| self.is_server_closed(week, server))
    }

    /// The rows of a server; empty if they do not count.
    pub(super) fn counted_rows(
        &self,
        source: &dyn StateReader,
        window: WindowKey,
        server: ServerKey,
    ) -> Result<Vec<(PlayerKey, PlayerRow)>, ReadError> {
        match self.servers.get(server).is_some_and(|server_state| self.is_counted(server_state, window, server)) {
            true => self.rows(source, window, server),
            false => Ok(Vec::new()),
        }
    }

    /// Whether a week is closed on a server.
    pub(super) fn is_server_closed(&self, week: WeekKey, server: ServerKey) -> bool {
        match self.global.meta.weeks.iter().find(|state| state.week == week).map(|state| state.phase) {
            None | Some(WeekPhase::Running | WeekPhase::Reopening) => false,
            Some(WeekPhase::Closing) => self.week_close.as_ref().is_some_and(|closing| closing.is_closed(week, server)),
            Some(WeekPhase::Ranking | WeekPhase::Closed) => true,
        }
    }
}

impl GlobalState {
    /// Writes a row to the pending rows, unless its window was deleted.
    pub(super) fn put_row(&mut self, key: RowKey, row: &PlayerRow) {
        if !self.is_kept(key.window) {
            return;
        }
        if let Some(week) = key.window.week()
            && self.records_archive_changes()
        {
            self.archive_changes.add_player(week, key.server, key.player);
        }
        self.pending.put_row(key, row);
    }

    /// A row as the next commit leaves it, without changes that a presence holds.
    pub(super) fn row(&self, source: &dyn StateReader, key: RowKey) -> Result<Option<PlayerRow>, ReadError> {
        match self.pending.row(key) {
            Some(row) => Ok(Some(row)),
            None if key.player >= self.first_uncommitted_player => Ok(None),
            None => source.row(key),
        }
    }

    /// Deletes a row and returns it.
    pub(super) fn delete_row(&mut self, source: &dyn StateReader, key: RowKey) -> Result<Option<PlayerRow>, ReadError> {
        let changed = self.pending.rows.get_mut(&(key.window, key.server)).and_then(|rows| rows.remove(&key.player));
        self.pending.rows_len -= usize::from(changed.is_some());
        self.pending.corrections.deleted_rows.push(key);
        match key.window.week() {
            Some(week) => self.enqueue(OutboxKey::Week { week, server: key.server }),
            None if self.meta.ended.binary_search(&key.window).is_err() => {}
            None => self.enqueue_boards_of_ended(|window| window == key.window),
        }
        match changed {
            Some(row) => Ok(Some(row.unpack())),
            None => source.row(key),
        }
    }

    /// Reads a player window into the cache, if there is one.
    pub(super) fn cache_player_window(
        &mut self,
        source: &dyn StateReader,
        window: WindowKey,
        player: PlayerKey,
    ) -> Result<(), ReadError> {
        if player >= self.first_uncommitted_player || self.player_windows.get(window, player).is_some() {
            return Ok(());
        }
        if let Some(player_window) = source.player_window(window, player)? {
            self.player_windows.keep(window, player, player_window);
        }
        Ok(())
    }

    /// A player window as the next commit leaves it.
    pub(super) fn latest_player_window(
        &self,
        source: &dyn StateReader,
        window: WindowKey,
        player: PlayerKey,
    ) -> Result<Option<Cow<'_, PlayerWindow>>, ReadError> {
        match self.player_windows.get(window, player) {
            Some(known) => Ok(Some(known)),
            None => Ok(source.player_window(window, player)?.map(Cow::Owned)),
        }
    }

    pub(super) fn player_window(
        &mut self,
        source: &dyn StateReader,
        window: WindowKey,
        game: GameKey,
        player: PlayerKey,
    ) -> Result<Cow<'_, PlayerWindow>, ReadError> {
        let source = (player < self.first_uncommitted_player).then_some(source);
        self.player_windows.get_or_read(source, window, game, player)
    }

    /// Changes what [`GlobalState::player_window`] returns.
    pub(super) fn change_player_window<T>(
        &mut self,
        source: &dyn StateReader,
        window: WindowKey,
        game: GameKey,
        player: PlayerKey,
        change: impl FnOnce(&mut PlayerWindow) -> T,
    ) -> Result<T, ReadError> {
        let source = (player < self.first_uncommitted_player).then_some(source);
        self.player_windows.change(source, window, game, player, change)
    }
}

/// Merges two sorted lists; for a key in both, the newer value is used.
fn merge_newer<K: Ord, R>(
    older: impl Iterator<Item = (K, R)>,
    newer: impl Iterator<Item = (K, R)>,
) -> impl Iterator<Item = (K, R)> {
    let (mut older, mut newer) = (older.peekable(), newer.peekable());
    std::iter::from_fn(move || {
        let (Some((old, _)), Some((new, _))) = (older.peek(), newer.peek()) else {
            return older.next().or_else(|| newer.next());
        };
        match old.cmp(new) {
            Ordering::Less => older.next(),
            Ordering::Equal => {
                older.next();
                newer.next()
            }
            Ordering::Greater => newer.next(),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn merge_keeps_the_newer_of_equal_keys() {
        let lists: [&[u32]; 5] = [&[], &[3], &[1, 2, 3, 9], &[2, 3, 4], &[5, 6, 10]];
        for (older, newer) in lists.into_iter().flat_map(|older| lists.map(|newer| (older, newer))) {
            let (old, new) = (older.iter().map(|key| (*key, "old")), newer.iter().map(|key| (*key, "new")));
            let want: BTreeMap<u32, &str> = old.clone().chain(new.clone()).collect();
            assert!(merge_newer(old, new).eq(want), "{older:?} and {newer:?}");
        }
    }
}
