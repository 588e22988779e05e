//! Publishes boards and totals: those of windows that are not closed once in an interval, after everything else
//! is written; those of a window that was closed, or was corrected, as a task of the outbox.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::jobs::NamesOutcome;
use super::{PassError, Worker};
use crate::archive::connect::Archive;
use crate::archive::job_source::JobSource;
use crate::archive::write::top_boards::{board_key, content_hash};
use crate::model::WindowKey;
use crate::model::outbox::OutboxKey;
use crate::model::top_board::{TopBoard, TopBoardKey, TopBoards};

/// Pause while the source reads boards into memory, and most pauses in one pass: the task stays in the outbox.
const BUILD_PAUSE: Duration = Duration::from_millis(100);
const BUILD_PAUSES_MAX: u32 = 200;

/// What became of a task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskOutcome {
    Done,
    /// It stays in the outbox.
    Later,
}

impl<S: JobSource> Worker<S> {
    /// Publishes what has changed in windows that are not closed, if an interval has passed.
    pub(super) async fn publish(
        &mut self,
        archive: &mut Archive,
        rejected: &mut BTreeMap<OutboxKey, String>,
    ) -> Result<(), PassError> {
        let (now_ms, interval_ms) = (self.report.now_ms(), i64::from(self.settings.interval_s) * 1_000);
        // Also after the clock was set back.
        if self.published_ms.is_some_and(|at_ms| (0..interval_ms).contains(&(now_ms - at_ms))) {
            return Ok(());
        }
        if let Some(totals) = self.source.site_totals().await? {
            let rows = archive.write_site_totals(&totals).await?;
            self.report.update(|it| it.rows_written += rows);
        }
        let before = self.report.published_boards();
        let (mut after, mut found) = (None, FxHashMap::default());
        // Type and label of each window, and the keys of its boards.
        let mut windows: BTreeMap<WindowKey, (String, String, BTreeSet<u64>)> = BTreeMap::new();
        loop {
            let TopBoards::Next(boards) = self.source.top_boards(None, after).await? else { break };
            let Some(last) = boards.last() else { break };
            // The boards may contain players whose names are not in the archive yet.
            if self.write_names(archive, rejected).await? == NamesOutcome::PlayersRemoved {
                continue;
            }
            after = Some(last.key);
            for board in &boards {
                let hash = content_hash(board.size, board.closed, &board.entries);
                if before.get(&board.key) != Some(&hash) {
                    self.write_board(archive, board).await?;
                }
                found.insert(board.key, hash);
                let (window_type, label) = (&board.window_type, &board.window);
                let window = windows.entry(board.key.window);
                let (.., keys) = window.or_insert_with(|| (window_type.clone(), label.clone(), BTreeSet::new()));
                keys.insert(board_key(board, label));
            }
        }
        for (window, (window_type, label, keys)) in windows {
            // The boards of a tag that no server has any more are gone. The window had the same boards last time, so none is
            // missing because it was just not in memory.
            let of_window = |boards: &FxHashMap<TopBoardKey, u64>| -> BTreeSet<TopBoardKey> {
                boards.keys().filter(|key| key.window == window).copied().collect()
            };
            if of_window(&found) == of_window(&before)
                && !archive.delete_other_top_boards(&window_type, &label, &keys).await?
            {
                found.retain(|key, _| key.window != window);
            }
        }
        self.published_ms = Some(now_ms);
        self.report.update(|it| it.published_boards = Arc::new(found));
        Ok(())
    }

    /// Publishes the boards of a window, and the checksum of a week.
    pub(super) async fn finish_window(
        &mut self,
        archive: &mut Archive,
        window: WindowKey,
        rejected: &mut BTreeMap<OutboxKey, String>,
    ) -> Result<TaskOutcome, PassError> {
        if let Some(week) = window.week() {
            archive.write_week_checksum(week).await?;
        }
        self.publish_window(archive, window, rejected).await
    }

    /// Writes all boards of a window, and deletes its other boards.
    async fn publish_window(
        &mut self,
        archive: &mut Archive,
        window: WindowKey,
        rejected: &mut BTreeMap<OutboxKey, String>,
    ) -> Result<TaskOutcome, PassError> {
        let (mut after, mut pauses) = (None, 0);
        let (mut written, mut view) = (BTreeSet::new(), None);
        let mut published = (*self.report.published_boards()).clone();
        loop {
            let boards = match self.source.top_boards(Some(window), after).await? {
                TopBoards::Next(boards) => boards,
                TopBoards::Deleted => return Ok(TaskOutcome::Done),
                TopBoards::Building if pauses == BUILD_PAUSES_MAX => return Ok(TaskOutcome::Later),
                TopBoards::Building => {
                    pauses += 1;
                    tokio::time::sleep(BUILD_PAUSE).await;
                    continue;
                }
            };
            let Some(last) = boards.last() else { break };
            if self.write_names(archive, rejected).await? == NamesOutcome::PlayersRemoved {
                continue;
            }
            after = Some(last.key);
            view.get_or_insert_with(|| (last.window_type.clone(), last.window.clone()));
            for board in &boards {
                written.insert(self.write_board(archive, board).await?);
                // Those of a closed window are compared with the state.
                if !board.closed && published.contains_key(&board.key) {
                    published.insert(board.key, content_hash(board.size, board.closed, &board.entries));
                }
            }
        }
        // The boards of the next window have positions of this one.
        let next = WindowKey { index: window.index + 1, ..window };
        published.retain(|key, _| key.window != next);
        self.report.update(|it| it.published_boards = Arc::new(published));
        let Some((window_type, label)) = view else { return Ok(TaskOutcome::Done) };
        match archive.delete_other_top_boards(&window_type, &label, &written).await? {
            true => Ok(TaskOutcome::Done),
            false => Ok(TaskOutcome::Later),
        }
    }

    /// Returns the key of the board.
    async fn write_board(&mut self, archive: &mut Archive, board: &TopBoard) -> Result<u64, PassError> {
        let (key, rows) = archive.write_top_board(board, self.report.now_ms()).await?;
        self.report.update(|it| it.rows_written += rows);
        Ok(key)
    }
}
