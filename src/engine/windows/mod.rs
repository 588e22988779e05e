//! The windows that snapshots are credited to; opens and deletes windows (docs/rules.md section 8).
//!
//! See [`crate::board::window`] for when a window begins and ends.

mod apply;
pub(super) mod current;
pub(super) mod import;
pub(super) mod rebuild;

use self::current::CurrentWindows;
use super::pending::Pending;
use super::{Engine, GlobalState, StoreReader};
use crate::model::calendar::WEEK_MS;
use crate::model::commit::{WeekPhase, WeekState, WindowState};
use crate::model::{OutboxKey, WindowKey, WindowType};

/// A week is closed this long after its end, so that replies in flight are still credited to
/// it.
pub(super) const CLOSE_DELAY_MS: i64 = 10_000;

/// How long the boards of a closed week are evicted last, and built after a start, ms.
const RECENT_MS: i64 = 2 * WEEK_MS;

/// Windows whose boards stay in memory until they are published.
const PUBLISHED_NEXT: usize = 2;

/// Most ended weeks whose boards are kept in memory to be published before the week is closed.
const CLOSING_WEEKS_MAX: usize = 2;

impl Engine {
    /// Deletes windows that do not match the settings: a window with changed boundaries is a
    /// different window. Windows of a removed type are kept, because a reload may add the type
    /// again.
    pub(super) fn apply_window_settings(&mut self) {
        self.delete_windows(&self.model.global.windows_with_changed_bounds());
        self.model.global.compare_types();
        self.model.global.current_windows = CurrentWindows::default();
    }

    /// Deletes windows; other windows with the same keys may open later.
    pub(super) fn delete_windows(&mut self, deleted: &[WindowKey]) {
        deleted.iter().for_each(|window| self.model.global.delete_window(*window));
        if !deleted.is_empty() {
            self.drop_rows_of_deleted_windows();
        }
    }

    /// A new window with the key of a deleted one must not continue the rows that presences hold.
    pub(super) fn drop_rows_of_deleted_windows(&mut self) {
        for (server, server_state) in self.model.servers.iter_mut() {
            // Views hold all records: one that is borrowed to be changed is copied.
            let is_deleted = |(window, _): &(WindowKey, _)| !self.model.global.is_kept(*window);
            if !server_state.record.presences().any(|presence| presence.rows.iter().any(is_deleted)) {
                continue;
            }
            let last = server_state.record.last_snapshot.iter_mut();
            for presence in last.flat_map(|last| &mut last.entries).filter_map(|entry| entry.presence.as_mut()) {
                presence.rows.retain(|held| !is_deleted(held));
            }
            self.model.global.server_changed(server);
        }
    }

    /// Deletes the windows that ended by `t_ms`, and returns them. Windows that may still
    /// change are kept: a week until it is closed and nothing of it is in the outbox, and as
    /// long as an earlier week is kept.
    pub fn delete_windows_before(&mut self, source: &dyn StoreReader, t_ms: i64) -> Vec<WindowKey> {
        let ended =
            self.model.global.meta.windows.iter().filter(|state| state.end_ms <= t_ms).map(|state| state.window);
        let mut deleted: Vec<WindowKey> = ended.collect();
        deleted.retain(|window| self.model.global.window_has_ended(*window));
        deleted.extend(
            self.model
                .global
                .meta
                .weeks
                .iter()
                .take_while(|state| state.phase == WeekPhase::Closed)
                .take_while(|state| self.model.global.calendar.week_end_ms(state.week) <= t_ms)
                .take_while(|state| {
                    !self.model.global.settings.archive_enabled || !self.model.has_unarchived(source, state.week)
                })
                .map(|state| WindowKey::from(state.week)),
        );
        deleted.sort_unstable();
        self.delete_windows(&deleted);
        deleted
    }
}

impl GlobalState {
    /// Updates the windows that a snapshot at `t_ms` is credited to.
    pub(super) fn update_current_windows(&mut self, source: &dyn StoreReader, t_ms: i64) {
        if self.current_windows.valid.contains(&t_ms) {
            return;
        }
        let windows = &self.settings.windows;
        self.current_windows = CurrentWindows { valid: windows.stable_range(t_ms), keys: windows.windows_at(t_ms) };
        // Windows that have ended do not change any more. A snapshot is late by seconds, and
        // deleting old records takes seconds, so this state is short; during it, the time range
        // is not cached.
        let is_closed =
            |w: WindowKey| self.window_has_ended(w) || self.is_being_deleted(source, w) || self.awaits_import(w);
        let closed_window = |w: &WindowKey| w.week().is_none() && is_closed(*w);
        let keys: Vec<WindowKey> =
            self.current_windows.keys.iter().copied().filter(|window| !closed_window(window)).collect();
        if keys.len() < self.current_windows.keys.len() {
            self.current_windows = CurrentWindows { valid: t_ms..t_ms, keys };
        }
        for at in 0..self.current_windows.keys.len() {
            self.open_window(self.current_windows.keys[at]);
        }
    }

    /// Records that a window other than a week exists. A new window has no rows, so its boards
    /// are cached if those of other windows are.
    fn open_window(&mut self, window: WindowKey) {
        let Some(week) = window.week() else {
            let Err(at) = self.meta.windows.binary_search_by_key(&window, |state| state.window) else { return };
            let span = self.settings.windows.span(window).expect("a current window has boundaries");
            self.meta.windows.insert(at, WindowState { window, start_ms: span.start, end_ms: span.end });
            self.pending.meta = true;
            return self.board_cache.insert_empty(window);
        };
        let is_new = self.meta.weeks.last().is_none_or(|last| last.week < week);
        if is_new {
            self.board_cache.insert_empty(window);
        }
    }

    /// Whether a window is closed. Weeks have separate phases.
    pub(super) fn window_has_ended(&self, window: WindowKey) -> bool {
        match window.week() {
            Some(week) => {
                let known = self.meta.weeks.binary_search_by_key(&week, |state| state.week);
                known.is_ok_and(|at| self.meta.weeks[at].phase == WeekPhase::Closed)
            }
            None => {
                let known = self.window_besides_weeks(window).map(|state| state.end_ms);
                let end_ms = known.or_else(|| Some(self.settings.windows.span(window)?.end));
                end_ms.is_some_and(|end_ms| end_ms.saturating_add(CLOSE_DELAY_MS) <= self.meta.now_ms)
            }
        }
    }

    /// Opens windows before they are needed, and deletes windows when enough later ones of
    /// their type are kept. Weeks are deleted when they are closed, see `week_close`.
    pub(super) fn advance_windows(&mut self, source: &dyn StoreReader) {
        let now_ms = self.meta.now_ms;
        if now_ms == 0 {
            return; // no event yet
        }
        let kinds: Vec<WindowType> = self.settings.windows.specs().iter().map(|spec| spec.kind).collect();
        for kind in kinds.into_iter().filter(|kind| *kind != WindowType::WEEK) {
            let current = self.settings.windows.windows_at(now_ms).into_iter().filter(|window| window.kind == kind);
            for window in current.chain(self.settings.windows.next_after(kind, now_ms)).collect::<Vec<_>>() {
                if !self.is_being_deleted(source, window) && !self.awaits_import(window) {
                    self.open_window(window);
                }
            }
            let ended: Vec<WindowKey> = self.meta.windows.iter().map(|state| state.window).collect();
            let ended: Vec<_> = ended.into_iter().filter(|w| w.kind == kind && self.window_has_ended(*w)).collect();
            for window in self.settings.windows.expired(kind, &ended) {
                if !self.awaits_publication(source, window) {
                    self.delete_window(window);
                }
            }
        }
        let ended = self.meta.kept_windows().filter(|window| self.window_has_ended(*window)).collect::<Vec<_>>();
        self.board_cache.compact_windows(ended.into_iter());
        self.note_ended_windows();
        let pending = &self.pending;
        // The windows that are published next, in the order of the outbox.
        let unpublished = || self.meta.ended.iter().filter(|window| pending.has_unpublished_boards(source, **window));
        let is_published_next = |window| unpublished().take(PUBLISHED_NEXT).any(|next| *next == window);
        let recent = self.recent_weeks();
        let is_recent = |window: WindowKey| recent.contains(&window);
        self.board_cache.evict_to(self.settings.closed_cache_bytes_max, is_published_next, is_recent);
    }

    /// The weeks that were closed and have ended recently, the newest first: their boards are still asked for.
    pub(super) fn recent_weeks(&self) -> Vec<WindowKey> {
        let weeks = self.meta.weeks.iter().rev().filter(|state| state.phase == WeekPhase::Closed);
        let ended_ms = |week| self.meta.now_ms.saturating_sub(self.calendar.week_end_ms(week));
        weeks.take_while(|state| ended_ms(state.week) < RECENT_MS).map(|state| state.week.into()).collect()
    }

    /// The last weeks that have ended and will be closed, which takes a while if the clock is not trusted.
    pub(super) fn closing_weeks(&self) -> impl Iterator<Item = WindowKey> {
        let is_closing = |state: &&WeekState| {
            !matches!(state.phase, WeekPhase::Closed | WeekPhase::Reopening)
                && self.calendar.week_end_ms(state.week) <= self.meta.now_ms
        };
        let windows = self.meta.weeks.iter().rev().filter(is_closing).map(|state| WindowKey::from(state.week));
        windows.filter(|window| !self.is_rebuilding(*window)).take(CLOSING_WEEKS_MAX)
    }

    /// The boards of a window that has just ended are to be published once more, as closed.
    fn note_ended_windows(&mut self) {
        let is_noted = |window: &WindowKey| self.meta.ended.binary_search(window).is_ok();
        let ended = self.meta.kept_windows().filter(|window| !is_noted(window) && self.window_has_ended(*window));
        for window in ended.collect::<Vec<_>>() {
            let at = self.meta.ended.partition_point(|noted| *noted < window);
            self.meta.ended.insert(at, window);
            self.pending.meta = true;
            self.enqueue(OutboxKey::TopBoards(window));
            // A list that comes too late is not credited to it.
            if self.current_windows.keys.contains(&window) {
                self.current_windows = CurrentWindows::default();
            }
        }
    }

    /// Windows that have not ended after all, because the time was set back, are published when they do.
    pub(super) fn forget_early_ends(&mut self) {
        let mut ended = std::mem::take(&mut self.meta.ended);
        ended.retain(|window| self.window_has_ended(*window));
        self.meta.ended = ended;
    }

    /// Whether an expired window must be kept because its boards are not published yet: for a week at most, because
    /// such windows may be many. Weeks wait without limit.
    fn awaits_publication(&self, source: &dyn StoreReader, window: WindowKey) -> bool {
        let ended_ms = self.window_state(window).map_or(0, |state| state.end_ms);
        self.settings.archive_enabled
            && self.meta.now_ms.saturating_sub(ended_ms) < WEEK_MS
            && self.pending.has_unpublished_boards(source, window)
    }

    /// Deletes a window with its rows and boards.
    pub(super) fn delete_window(&mut self, window: WindowKey) {
        self.meta.windows.retain(|state| state.window != window);
        self.meta.weeks.retain(|state| window != state.week.into());
        self.meta.importing.retain(|importing| *importing != window);
        self.meta.ended.retain(|ended| *ended != window);
        self.pending.meta = true;
        self.pending.deleted_windows.push(window);
        let Pending { rows, rows_len, .. } = &mut self.pending;
        for (_, rows) in rows.extract_if(|(w, _), _| *w == window) {
            *rows_len -= rows.len();
        }
        self.player_windows.remove_window(window);
        self.board_cache.remove(window);
        if let Some(week) = window.week() {
            self.archive_changes.remove_week(week);
        }
    }

    /// Whether a window was deleted but some of its records are still in the store. No window
    /// of the same key may open until they are deleted: it would inherit the rows.
    pub(super) fn is_being_deleted(&self, source: &dyn StoreReader, window: WindowKey) -> bool {
        !self.is_kept(window) && (self.pending.deleted_windows.contains(&window) || !source.is_swept(window))
    }

    /// Whether a window can be queried: current windows may have no rows yet.
    pub(super) fn is_queryable(&self, window: WindowKey) -> bool {
        self.is_kept(window) || self.settings.windows.windows_at(self.meta.now_ms).contains(&window)
    }

    /// Windows whose boundaries differ from the settings.
    fn windows_with_changed_bounds(&self) -> Vec<WindowKey> {
        let unfit = |state: &&WindowState| {
            let span = self.settings.windows.span(state.window);
            span.is_some_and(|span| (span.start, span.end) != (state.start_ms, state.end_ms))
        };
        self.meta.windows.iter().filter(unfit).map(|state| state.window).collect()
    }

    /// The boundaries of a window with rows; `None`: it has none.
    pub(super) fn window_state(&self, window: WindowKey) -> Option<WindowState> {
        let Some(week) = window.week() else { return self.window_besides_weeks(window) };
        let (start_ms, end_ms) = (self.calendar.week_start_ms(week), self.calendar.week_end_ms(week));
        self.is_kept(window).then_some(WindowState { window, start_ms, end_ms })
    }

    /// A kept window that is no week. Ticks ask this for each kept window.
    pub(super) fn window_besides_weeks(&self, window: WindowKey) -> Option<WindowState> {
        let at = self.meta.windows.binary_search_by_key(&window, |state| state.window).ok()?;
        Some(self.meta.windows[at])
    }

    /// Whether the rows of a window are kept.
    pub(super) fn is_kept(&self, window: WindowKey) -> bool {
        match window.week() {
            Some(week) => self.meta.weeks.binary_search_by_key(&week, |state| state.week).is_ok(),
            None => self.window_besides_weeks(window).is_some(),
        }
    }

    /// Earlier weeks that are kept, newest first.
    pub(super) fn weeks_before(&self, window: WindowKey) -> Vec<WindowKey> {
        let weeks = self.meta.weeks.iter().rev().map(|state| WindowKey::from(state.week));
        weeks.filter(|week| *week < window).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::board::window::{WindowTypes, label};
    use crate::engine::{EngineSettings, Event};
    use crate::model::calendar::Calendar;
    use crate::state::State;
    use crate::store::StoreSettings;

    #[test]
    fn boards_of_windows_opened_in_advance_are_built_after_a_start() {
        let dir = tempfile::tempdir().unwrap();
        let windows = WindowTypes::new(Calendar::default(), ["hour".parse().unwrap()]).unwrap();
        let settings = EngineSettings { windows, ..EngineSettings::default() };
        let open = || State::open(dir.path(), StoreSettings { cache_bytes: 16 << 20, create: true }, settings.clone());
        let mut state = open().unwrap();
        state.handle(Event::Tick { now_ms: 1_763_942_400_000 }).unwrap();
        state.commit().unwrap();
        drop(state);
        let built = open().unwrap().engine.model().windows_to_build();
        let labels: Vec<String> = built.into_iter().map(label).collect();
        assert_eq!(labels, ["2025-11-24T00Z", "2025-W48", "2025-11-24T01Z"]);
    }
}
