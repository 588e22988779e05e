//! Notes what is to be archived.

use super::BEST_PLAYERS_MAX;
use crate::engine::{GlobalState, ReadError, StoreReader};
use crate::model::commit::WeekPhase;
use crate::model::outbox::{ResyncCursor, ResyncState};
use crate::model::{OutboxKey, ServerKey, WeekKey, WindowKey};

impl GlobalState {
    /// Adds an entry to the outbox, and a server's week with all its rows. Without an archive, records that everything must be
    /// archived later.
    pub(in crate::engine) fn enqueue(&mut self, key: OutboxKey) {
        if !self.records_archive_changes() {
            self.require_resync();
            return;
        }
        self.enqueue_now(key);
    }

    /// As [`GlobalState::enqueue`], also if the outbox is full.
    pub(in crate::engine) fn enqueue_now(&mut self, key: OutboxKey) {
        if let OutboxKey::Week { week, server } = key {
            self.archive_changes.add_all_rows(week, server);
            self.enqueue_boards_of_closed(week);
        }
        self.pending.outbox.insert(key);
    }

    /// Adds the best positions of all players of a server, also of those without rows in a kept week.
    pub(in crate::engine) fn enqueue_best_positions(
        &mut self,
        source: &dyn StoreReader,
        server: ServerKey,
    ) -> Result<(), ReadError> {
        let mut after = None;
        loop {
            self.enqueue(OutboxKey::BestPositions { server, after });
            let found = source.best_after(server, after, BEST_PLAYERS_MAX)?;
            if found.len() < BEST_PLAYERS_MAX {
                return Ok(());
            }
            after = found.last().map(|(player, _)| *player);
        }
    }

    /// After a change of a week: if it is closed, its boards are published again.
    fn enqueue_boards_of_closed(&mut self, week: WeekKey) {
        // The running week is the last one. The boards of the week after have positions of this one.
        for state in self.meta.weeks.iter().rev().take_while(|state| state.week >= week) {
            if state.phase == WeekPhase::Closed && state.week.0 <= week.0 + 1 {
                self.pending.outbox.insert(OutboxKey::TopBoards(state.week.into()));
            }
        }
    }

    /// After a change of ended windows other than by rows of a week, such as of tags: their boards are published again.
    pub(in crate::engine) fn enqueue_boards_of_ended(&mut self, is_changed: impl Fn(WindowKey) -> bool) {
        // The boards of the window after have positions of this one.
        let previous = |window: WindowKey| WindowKey { index: window.index.saturating_sub(1), ..window };
        let changed = self.meta.ended.iter().filter(|window| is_changed(**window) || is_changed(previous(**window)));
        for window in changed.copied().collect::<Vec<_>>() {
            self.enqueue(OutboxKey::TopBoards(window));
        }
    }

    /// Adds a server's week to the outbox. Its changed rows are recorded separately: see
    /// [`ArchiveChanges`](super::changes::ArchiveChanges).
    pub(in crate::engine) fn enqueue_changed_rows(&mut self, week: WeekKey, server: ServerKey) {
        if !self.records_archive_changes() {
            self.require_resync();
            return;
        }
        self.archive_changes.add_week(week, server);
        self.enqueue_boards_of_closed(week);
        self.pending.outbox.insert(OutboxKey::Week { week, server });
    }

    /// Whether changes are added to the outbox. Otherwise there is no archive, or the outbox drops
    /// entries, or the first archive gets everything by a resync: then everything is archived later.
    pub(in crate::engine) fn records_archive_changes(&self) -> bool {
        let ResyncState { archive_id, next, .. } = self.meta.resync_state;
        let awaits_first = self.meta.resync && archive_id.is_none() && next == ResyncCursor::START;
        self.settings.archive_enabled && !self.settings.outbox_full && !awaits_first
    }
}
