//! The windows that snapshots are credited to, what a player did in one of them
//! beside his rows, and the coming and going of windows (RULES section 8).
//!
//! When a window begins and ends is told by [`crate::board::window`].

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Books, Source};
use crate::model::commit::{RowKey, WindowState};
use crate::model::row::{PlayerWindow, WeekRow};
use crate::model::{GameKey, PlayerKey, WeekKey, WindowKey};

/// Players whose windows are remembered across commits, about 100 bytes each. A
/// full memory is let go whole: it only saves reading.
const REMEMBERED_MAX: usize = 2_000_000;

/// The windows of now, and the stretch of time in which they are that.
#[derive(Debug, Default)]
pub(super) struct Now {
    during: Range<i64>,
    /// In order of key; never empty once a snapshot was seen.
    pub keys: Vec<WindowKey>,
}

/// What players did in windows, as far as it was read or changed.
#[derive(Debug, Default)]
pub(super) struct PlayerWindows {
    known: FxHashMap<(WindowKey, PlayerKey), PlayerWindow>,
    changed: FxHashSet<(WindowKey, PlayerKey)>,
}

impl PlayerWindows {
    /// What changed since it was last taken.
    pub(super) fn take_changed(&mut self) -> Vec<((WindowKey, PlayerKey), PlayerWindow)> {
        let changed = std::mem::take(&mut self.changed);
        let taken = changed.into_iter().map(|key| (key, self.known[&key].clone())).collect();
        if self.known.len() > REMEMBERED_MAX {
            self.known = FxHashMap::default();
        }
        taken
    }

    pub(super) fn is_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    pub(super) fn get(&self, window: WindowKey, player: PlayerKey) -> Option<&PlayerWindow> {
        self.known.get(&(window, player))
    }
}

impl Books {
    /// Looks which windows a snapshot of that moment is credited to.
    pub(super) fn see_windows(&mut self, t_ms: i64) {
        if self.windows.during.contains(&t_ms) {
            return;
        }
        let week = self.calendar.week(t_ms);
        self.windows.during = self.calendar.week_start_ms(week)..self.calendar.week_end_ms(week);
        self.windows.keys = vec![WindowKey::from(week)];
        for at in 0..self.windows.keys.len() {
            self.open_window(self.windows.keys[at]);
        }
    }

    /// Notes that a window other than a week exists.
    fn open_window(&mut self, window: WindowKey) {
        _ = window;
    }

    /// Whether the rows of a window are kept.
    fn is_kept(&self, window: WindowKey) -> bool {
        match window.week() {
            Some(week) => self.meta.weeks.binary_search_by_key(&week, |state| state.week).is_ok(),
            None => self.meta.windows.binary_search_by_key(&window, |state| state.window).is_ok(),
        }
    }

    /// A row goes to its place, unless its window is gone.
    pub(super) fn put_row(&mut self, key: RowKey, row: WeekRow) {
        if self.is_kept(key.window) {
            self.pending.rows.entry((key.window, key.server)).or_default().insert(key.player, row);
        }
    }

    /// Earlier windows of the same type that are kept, newest first.
    pub(super) fn windows_before(&self, window: WindowKey) -> Vec<WindowKey> {
        let is_before = |other: &WindowKey| other.kind == window.kind && other.index < window.index;
        let weeks = self.meta.weeks.iter().map(|state| WindowKey::from(state.week));
        let others = self.meta.windows.iter().map(|state| state.window);
        let mut before: Vec<_> = weeks.chain(others).filter(is_before).collect();
        before.sort_unstable_by(|a, b| b.cmp(a));
        before
    }

    pub(super) fn player_window<S: Source>(
        &mut self,
        source: &S,
        window: WindowKey,
        game: GameKey,
        player: PlayerKey,
    ) -> Result<&PlayerWindow, S::Error> {
        let known = match self.player_windows.known.entry((window, player)) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(place) => {
                let stored = source.player_window(window, player)?;
                place.insert(stored.unwrap_or_else(|| PlayerWindow::new(game)))
            }
        };
        Ok(known)
    }

    /// The same, to be changed.
    pub(super) fn player_window_mut<S: Source>(
        &mut self,
        source: &S,
        window: WindowKey,
        game: GameKey,
        player: PlayerKey,
    ) -> Result<&mut PlayerWindow, S::Error> {
        self.player_window(source, window, game, player)?;
        self.player_windows.changed.insert((window, player));
        Ok(self.player_windows.known.get_mut(&(window, player)).expect("just read"))
    }
}
