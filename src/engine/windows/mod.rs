//! The windows that snapshots are credited to, and the coming and going of windows
//! (RULES section 8).
//!
//! When a window begins and ends is told by [`crate::board::window`].

pub(in crate::engine) mod import;
pub(in crate::engine) mod rebuild;

use std::ops::Range;

use super::{Engine, GlobalState, Pending, StateReader};
use crate::engine::week_close::CLOSE_DELAY_MS;
use crate::model::commit::{RowKey, WeekPhase, WindowState};
use crate::model::row::PlayerRow;
use crate::model::{ServerKey, WeekKey, WindowKey, WindowType};

/// The windows of now, and the stretch of time in which they are that.
#[derive(Debug, Default)]
pub(super) struct CurrentWindows {
    during: Range<i64>,
    /// In order of key; never empty once a snapshot was seen.
    pub keys: Vec<WindowKey>,
}

impl Engine {
    /// Brings what exists in line with the settings: a window whose boundaries
    /// have changed is another one. Windows of a type that is gone stay: it may be
    /// back after the next reload.
    pub(super) fn apply_window_settings(&mut self) {
        self.delete_windows(&self.global.unfit_windows());
        self.global.fit_types();
        self.global.windows = CurrentWindows::default();
    }

    /// Lets windows go that others of the same name may follow.
    pub(super) fn delete_windows(&mut self, gone: &[WindowKey]) {
        gone.iter().for_each(|window| self.global.drop_window(*window));
        if gone.is_empty() {
            return;
        }
        // A window of the same name must not go on with what lives with a presence.
        for (index, slot) in self.servers.iter_mut().enumerate() {
            let last = slot.iter_mut().filter_map(|slot| slot.record.last_snapshot.as_mut());
            let mut changed = false;
            for presence in last.flat_map(|last| &mut last.entries).filter_map(|entry| entry.presence.as_mut()) {
                let before = presence.rows.len();
                presence.rows.retain(|(window, _)| !gone.contains(window));
                changed |= presence.rows.len() < before;
            }
            if changed {
                self.global.server_changed(ServerKey(index as u32));
            }
        }
    }

    /// Lets windows go that had ended by a moment; returns them. None goes that
    /// may still change. A week stays until it is closed and nothing of it waits
    /// to be archived, and as long as one before it does.
    pub fn delete_windows_before<S: StateReader>(&mut self, source: &S, t_ms: i64) -> Vec<WindowKey> {
        let ended = self.global.meta.windows.iter().filter(|state| state.end_ms <= t_ms).map(|state| state.window);
        let mut gone: Vec<WindowKey> = ended.collect();
        gone.retain(|window| self.global.window_is_over(*window));
        gone.extend(
            self.global
                .meta
                .weeks
                .iter()
                .take_while(|state| state.phase == WeekPhase::Closed)
                .take_while(|state| self.global.calendar.week_end_ms(state.week) <= t_ms)
                .take_while(|state| !self.global.settings.archive_enabled || !self.has_unarchived(source, state.week))
                .map(|state| WindowKey::from(state.week)),
        );
        gone.sort_unstable();
        gone.iter().for_each(|window| self.global.drop_window(*window));
        gone
    }
}

impl GlobalState {
    /// Looks which windows a snapshot of that moment is credited to.
    pub(super) fn see_windows<S: StateReader>(&mut self, source: &S, t_ms: i64) {
        if self.windows.during.contains(&t_ms) {
            return;
        }
        let windows = &self.settings.windows;
        self.windows = CurrentWindows { during: windows.unchanged(t_ms), keys: windows.at(t_ms) };
        // What is over does not change any more. A snapshot is late by seconds, and
        // sweeping takes seconds, so this is about a moment; in it, the stretch is
        // not remembered.
        let is_shut = |w: WindowKey| self.window_is_over(w) || self.is_going(source, w) || self.is_rebuilding(w);
        let shut = |w: &WindowKey| w.week().is_none() && is_shut(*w);
        let keys: Vec<WindowKey> = self.windows.keys.iter().copied().filter(|window| !shut(window)).collect();
        if keys.len() < self.windows.keys.len() {
            self.windows = CurrentWindows { during: t_ms..t_ms, keys };
        }
        for at in 0..self.windows.keys.len() {
            self.open_window(self.windows.keys[at]);
        }
    }

    /// Notes that a window other than a week exists. A new one has no rows, so its
    /// boards are at hand where those of others are.
    fn open_window(&mut self, window: WindowKey) {
        let Some(week) = window.week() else {
            let Err(at) = self.meta.windows.binary_search_by_key(&window, |state| state.window) else { return };
            let span = self.settings.windows.span(window).expect("it contains a moment");
            self.meta.windows.insert(at, WindowState { window, start_ms: span.start, end_ms: span.end });
            self.pending.meta = true;
            return self.shelf.begin(window);
        };
        if self.week_is_new(week) {
            self.shelf.begin(window);
        }
    }

    fn week_is_new(&self, week: WeekKey) -> bool {
        self.meta.weeks.last().is_none_or(|last| last.week < week)
    }

    /// Whether a window is over for good. Weeks have phases of their own.
    pub(super) fn window_is_over(&self, window: WindowKey) -> bool {
        match window.week() {
            Some(week) => self.meta.weeks.iter().any(|s| s.week == week && s.phase == WeekPhase::Closed),
            None => {
                let known = self.meta.windows.iter().find(|state| state.window == window).map(|state| state.end_ms);
                let end_ms = known.or_else(|| Some(self.settings.windows.span(window)?.end));
                end_ms.is_some_and(|end_ms| end_ms.saturating_add(CLOSE_DELAY_MS) <= self.meta.now_ms)
            }
        }
    }

    /// Lets windows come before they are needed and go when enough others of
    /// their type are kept. Weeks go when they are closed, see `close`.
    pub(super) fn work_on_windows<S: StateReader>(&mut self, source: &S) {
        let now_ms = self.meta.now_ms;
        if now_ms == 0 {
            return; // nothing was ever seen
        }
        let kinds: Vec<WindowType> = self.settings.windows.specs().iter().map(|spec| spec.kind).collect();
        for kind in kinds.into_iter().filter(|kind| *kind != WindowType::WEEK) {
            let of_now = self.settings.windows.at(now_ms).into_iter().filter(|window| window.kind == kind);
            for window in of_now.chain(self.settings.windows.next(kind, now_ms)).collect::<Vec<_>>() {
                if !self.is_going(source, window) && !self.is_rebuilding(window) {
                    self.open_window(window);
                }
            }
            let over: Vec<WindowKey> = self.meta.windows.iter().map(|state| state.window).collect();
            let over: Vec<_> = over.into_iter().filter(|w| w.kind == kind && self.window_is_over(*w)).collect();
            over.iter().for_each(|window| self.shelf.freeze(*window));
            for window in self.settings.windows.expired(kind, &over) {
                self.drop_window(window);
            }
        }
        let closed = self.meta.weeks.iter().filter(|state| state.phase == WeekPhase::Closed);
        closed.for_each(|state| self.shelf.freeze(state.week.into()));
        self.shelf.make_room(self.settings.ended_boards_bytes_max);
    }

    /// Lets a window go: its rows, its boards.
    pub(super) fn drop_window(&mut self, window: WindowKey) {
        self.meta.windows.retain(|state| state.window != window);
        self.meta.weeks.retain(|state| window != state.week.into());
        self.pending.meta = true;
        self.pending.deleted_windows.push(window);
        let Pending { rows, rows_len, .. } = &mut self.pending;
        for (_, rows) in rows.extract_if(|(w, _), _| *w == window) {
            *rows_len -= rows.len();
        }
        self.player_windows.forget(window);
        self.shelf.forget(window);
    }

    /// Whether a window was let go and something of it is still there. Until it is
    /// swept out, no other of that name can begin: it would take over rows.
    fn is_going<S: StateReader>(&self, source: &S, window: WindowKey) -> bool {
        !self.is_kept(window) && (self.pending.deleted_windows.contains(&window) || !source.is_swept(window))
    }

    /// Whether a window can be asked for: the running ones may hold nothing yet.
    pub(super) fn window_exists(&self, window: WindowKey) -> bool {
        self.is_kept(window) || self.settings.windows.at(self.meta.now_ms).contains(&window)
    }

    /// Windows whose boundaries the settings say otherwise.
    fn unfit_windows(&self) -> Vec<WindowKey> {
        let unfit = |state: &&WindowState| {
            let span = self.settings.windows.span(state.window);
            span.is_some_and(|span| (span.start, span.end) != (state.start_ms, state.end_ms))
        };
        self.meta.windows.iter().filter(unfit).map(|state| state.window).collect()
    }

    /// Whether the rows of a window are kept.
    pub(super) fn is_kept(&self, window: WindowKey) -> bool {
        match window.week() {
            Some(week) => self.meta.weeks.binary_search_by_key(&week, |state| state.week).is_ok(),
            None => self.meta.windows.binary_search_by_key(&window, |state| state.window).is_ok(),
        }
    }

    /// A row goes to its place, unless its window is gone.
    pub(super) fn put_row(&mut self, key: RowKey, row: &PlayerRow) {
        if self.is_kept(key.window) {
            self.pending.put_row(key, row);
        }
    }

    /// A row as the next commit leaves it; what lives with a presence is not in it.
    pub(super) fn row<S: StateReader>(&self, source: &S, key: RowKey) -> Result<Option<PlayerRow>, S::Error> {
        match self.pending.row(key) {
            Some(row) => Ok(Some(row)),
            None if key.player >= self.unstored => Ok(None),
            None => source.row(key),
        }
    }

    /// Earlier weeks that are kept, newest first.
    pub(super) fn weeks_before(&self, window: WindowKey) -> Vec<WindowKey> {
        let weeks = self.meta.weeks.iter().rev().map(|state| WindowKey::from(state.week));
        weeks.filter(|week| *week < window).collect()
    }
}
