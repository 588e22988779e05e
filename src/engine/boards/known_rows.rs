//! What is known of the rows of players in one window, so that a list gives their entries and no row is read: who has
//! rows on one server only, and the rows of others, packed.
//!
//! It is right as long as each change of a row is passed on, or the player is forgotten.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::kept_rows::KeptRows;
use crate::engine::player_table::PlayerSet;
use crate::model::row::PlayerRow;
use crate::model::{PlayerKey, ServerKey};

/// Kept rows in all windows. With fewer than there are, rows are read for each list: half of the time of the engine
/// thread with 1.6 million players online.
const KEPT_ROWS_MAX: usize = 4_000_000;

const KEPT_ROW_BYTES: usize = 150;

/// Of them those of players on few servers. The rest is for names on many servers, whose rows cost most to read.
const KEPT_ROWS_OF_FEW_MAX: usize = KEPT_ROWS_MAX / 4 * 3;

/// Few servers: at most so many.
const FEW_SERVERS: usize = 16;

#[derive(Debug, Default)]
pub(super) struct KnownRows {
    /// Players with rows on one server only.
    single: PlayerSet,
    /// The rows of players on several counted servers of the game.
    kept: FxHashMap<PlayerKey, KeptRows>,
    /// Rows in `kept`, and those of players on few servers.
    rows: usize,
    rows_of_few: usize,
}

impl KnownRows {
    pub fn of_singles(single: PlayerSet) -> KnownRows {
        KnownRows { single, ..KnownRows::default() }
    }

    pub fn is_single(&self, player: PlayerKey) -> bool {
        self.single.contains(player)
    }

    pub fn set_single(&mut self, player: PlayerKey, is_single: bool) {
        match is_single {
            true => self.single.insert(player),
            false => self.single.remove(player),
        }
    }

    /// A row on a counted server is now this one. Returns the sum of all rows of the player; `None`: they are not known.
    /// `windows`: the number of windows that share the limit of kept rows.
    pub fn put<'r>(
        &mut self,
        player: PlayerKey,
        server: ServerKey,
        row: &'r PlayerRow,
        windows: usize,
    ) -> Option<Cow<'r, PlayerRow>> {
        if self.single.contains(player) {
            return Some(Cow::Borrowed(row));
        }
        let kept = self.kept.get_mut(&player)?;
        if let Some(sum) = kept.replace(server, row) {
            return Some(Cow::Owned(sum));
        }
        let mut kept = self.take(player)?;
        if !self.has_room_for(kept.len() + 1, windows) {
            return None;
        }
        let sum = kept.add(server, row);
        self.keep(player, kept);
        Some(Cow::Owned(sum))
    }

    /// The rows of a player on several servers. They are forgotten unless they are kept again.
    pub fn take(&mut self, player: PlayerKey) -> Option<KeptRows> {
        let kept = self.kept.remove(&player)?;
        self.count(kept.len(), 0);
        Some(kept)
    }

    pub fn keep(&mut self, player: PlayerKey, rows: KeptRows) {
        self.count(0, rows.len());
        let before = self.kept.insert(player, rows);
        self.count(before.map_or(0, |rows| rows.len()), 0);
    }

    /// Whether the rows of a player on this number of servers fit the limit of kept rows, which this number of windows share.
    pub fn has_room_for(&self, servers: usize, windows: usize) -> bool {
        let has_room = |rows: usize, most: usize| rows + servers <= most / windows;
        has_room(self.rows, KEPT_ROWS_MAX)
            && (servers > FEW_SERVERS || has_room(self.rows_of_few, KEPT_ROWS_OF_FEW_MAX))
    }

    /// Memory in bytes, about.
    pub fn heap_bytes(&self) -> usize {
        self.single.heap_bytes() + KEPT_ROW_BYTES * self.rows
    }

    pub fn forget(&mut self, player: PlayerKey) {
        self.single.remove(player);
        self.take(player);
    }

    /// A player has so many rows no more, or now.
    fn count(&mut self, removed: usize, added: usize) {
        let of_few = |rows: usize| if rows <= FEW_SERVERS { rows } else { 0 };
        self.rows = self.rows + added - removed;
        self.rows_of_few = self.rows_of_few + of_few(added) - of_few(removed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_when_they_grow_and_go() {
        let mut known = KnownRows::default();
        let row = PlayerRow { points: 1, ..PlayerRow::new(0, 0.0) };
        let (player, other) = (PlayerKey(70), PlayerKey(3));
        assert_eq!(known.put(player, ServerKey(1), &row, 1), None);
        known.set_single(player, true);
        assert_eq!(known.put(player, ServerKey(1), &row, 1).map(|sum| sum.points), Some(1));
        assert!(!known.is_single(PlayerKey(6)) && !known.is_single(PlayerKey(700)));
        known.forget(player);
        known.keep(player, KeptRows::new(&[(ServerKey(1), row.clone()), (ServerKey(2), row.clone())]));
        known.keep(other, KeptRows::new(&[(ServerKey(1), row.clone())]));
        for server in 3..=FEW_SERVERS as u32 {
            assert_eq!(known.put(player, ServerKey(server), &row, 1).map(|sum| sum.points), Some(i64::from(server)));
        }
        assert_eq!((known.rows, known.rows_of_few), (FEW_SERVERS + 1, FEW_SERVERS + 1));
        known.put(player, ServerKey(99), &row, 1);
        assert_eq!((known.rows, known.rows_of_few), (FEW_SERVERS + 2, 1));
        let taken = known.take(player).expect("it was kept");
        assert_eq!((taken.len(), known.rows, known.rows_of_few), (FEW_SERVERS + 1, 1, 1));
        // Beyond the limit, all rows of the player are dropped.
        assert_eq!(known.put(other, ServerKey(2), &row, KEPT_ROWS_MAX), None);
        assert_eq!((known.rows, known.rows_of_few, known.kept.len()), (0, 0, 0));
    }
}
