//! Reads of boards that are not in memory: they wait until these are.

use tokio::sync::oneshot;

use super::{BOARD_UPDATES_PER_COMMIT, EngineEnded, EngineHandle, EngineThread};
use crate::api::StateView;
use crate::engine::{BuiltBoards, ReadError};
use crate::view::board::BoardsSelector;

type BoardRead = Box<dyn FnOnce(&StateView<'_>) + Send>;

/// A read of boards that are not in memory, or too far behind.
pub(super) struct WaitingRead {
    boards: BoardsSelector,
    read: BoardRead,
    reply: oneshot::Sender<()>,
}

impl EngineHandle {
    /// Calls `read` when these boards are in memory. It sees changes that are not on disk yet; a crash may undo them.
    pub(in crate::daemon) async fn read_boards(
        &self,
        boards: BoardsSelector,
        read: BoardRead,
    ) -> Result<(), EngineEnded> {
        self.call_later(|thread, reply| thread.read_or_wait_for_boards(WaitingRead { boards, read, reply })).await
    }
}

impl EngineThread {
    pub(super) fn cache_boards(&mut self, built: BuiltBoards) {
        self.state.engine.install_boards(built);
        self.queue_outdated_boards();
    }

    /// Does the reads whose boards are in memory and nearly current, and applies some pending
    /// changes to the other boards.
    pub(super) fn do_waiting_reads(&mut self) -> anyhow::Result<()> {
        if !self.waiting_reads.is_empty() {
            self.refresh_boards()?;
            for waiting in std::mem::take(&mut self.waiting_reads) {
                self.read_or_wait_for_boards(waiting)?;
            }
        }
        let model = self.state.engine.model();
        let needed = |waiting: &WaitingRead| model.boards_needed(&waiting.boards).ok().flatten();
        let missing = self.waiting_reads.iter().filter_map(needed).filter(|window| model.boards(*window).is_none());
        self.boards.set_reads(missing);
        Ok(())
    }

    /// Updates some entries of boards. After a restart millions of players are dirty, and most become clean by their next
    /// lists: results of scans come first then.
    pub(super) fn refresh_boards(&mut self) -> Result<(), ReadError> {
        let is_far_behind = self.state.engine.model().dirty_players_of_all() > BOARD_UPDATES_PER_COMMIT;
        let divisor = if is_far_behind && self.outcomes_queued > 0 { 10 } else { 1 };
        self.state.engine.refresh_boards(&self.state.store, None, BOARD_UPDATES_PER_COMMIT / divisor)?;
        Ok(())
    }

    fn read_or_wait_for_boards(&mut self, waiting: WaitingRead) -> anyhow::Result<()> {
        if waiting.reply.is_closed() {
            // The client has disconnected.
            return Ok(());
        }
        // An invalid query needs no boards: its answer is the error.
        if let Some(window) = self.state.engine.model().boards_needed(&waiting.boards).ok().flatten() {
            if self.state.engine.model().boards(window).is_none() {
                self.waiting_reads.push(waiting);
                return Ok(());
            }
            // The boards are new, or a large server has changed: the changes are
            // applied step by step, so that scans are not late.
            if self.state.engine.model().dirty_players(window).is_none_or(|behind| behind > BOARD_UPDATES_PER_COMMIT) {
                self.waiting_reads.push(waiting);
                return Ok(());
            }
            self.state.engine.model().touch_boards(window);
            while self.state.engine.refresh_boards(&self.state.store, Some(window), usize::MAX)? {}
        }
        (waiting.read)(&self.state.view());
        _ = waiting.reply.send(());
        Ok(())
    }

    pub(super) fn queue_outdated_boards(&mut self) {
        self.state.engine.model().windows_with_stale_order().into_iter().for_each(|window| self.boards.enqueue(window));
    }
}
