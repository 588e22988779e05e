//! Requests that need the boards of a window: they wait until these are in memory.

use tokio::sync::oneshot;

use super::requests::RequestResult;
use super::{BOARD_UPDATES_PER_COMMIT, EngineEnded, EngineHandle, EngineThread};
use crate::api::Request;
use crate::engine::WindowBoards;
use crate::state::answer::board_window_of;

/// A request for boards that are not in memory, or too far behind.
pub(super) struct WaitingRequest {
    request: Request,
    reply: oneshot::Sender<RequestResult>,
}

impl EngineHandle {
    /// The answer to a request: a change, or a read of boards that are not in memory. Such a read shows changes that
    /// are not on disk yet; a crash may undo them.
    pub(in crate::daemon) async fn request(&self, request: Request) -> Result<RequestResult, EngineEnded> {
        self.call_later(|thread, reply| thread.answer_or_wait_for_boards(request, reply)).await
    }
}

impl EngineThread {
    pub(super) fn cache_boards(&mut self, boards: WindowBoards) {
        self.state.engine.install_boards(boards);
        self.queue_outdated_boards();
    }

    /// Answers requests whose boards are in memory and nearly current, and applies some pending
    /// changes to the other boards.
    pub(super) fn answer_waiting_requests(&mut self) -> anyhow::Result<()> {
        if self.waiting_requests.is_empty() {
            return Ok(());
        }
        self.state.engine.refresh_boards(&self.state.store, BOARD_UPDATES_PER_COMMIT)?;
        for WaitingRequest { request, reply } in std::mem::take(&mut self.waiting_requests) {
            self.answer_or_wait_for_boards(request, reply)?;
        }
        Ok(())
    }

    /// Answers a request, at once or when its boards are in memory.
    pub(super) fn answer_or_wait_for_boards(
        &mut self,
        request: Request,
        reply: oneshot::Sender<RequestResult>,
    ) -> anyhow::Result<()> {
        match board_window_of(&self.state.engine, &request) {
            _ if reply.is_closed() => {} // the client has disconnected
            Some(window) if self.state.engine.boards(window).is_none() => {
                self.boards.enqueue(window);
                self.waiting_requests.push(WaitingRequest { request, reply });
            }
            Some(window) => {
                // The boards are new, or a large server has changed: the changes are
                // applied step by step, so that scans are not late.
                if self.state.engine.dirty_players(window).is_none_or(|behind| behind > BOARD_UPDATES_PER_COMMIT) {
                    self.waiting_requests.push(WaitingRequest { request, reply });
                    return Ok(());
                }
                self.state.engine.touch_boards(window);
                while self.state.engine.refresh_boards(&self.state.store, usize::MAX)? {}
                self.answer(request, reply)?;
            }
            None => self.answer(request, reply)?,
        }
        Ok(())
    }

    /// Answers a request: one that changes something when the change is on disk.
    fn answer(&mut self, request: Request, reply: oneshot::Sender<RequestResult>) -> anyhow::Result<()> {
        let is_read_only = request.is_read_only();
        let answer = self.handle_request(request)?;
        // On a full disk changes are refused, and nothing is written until there is space.
        let is_refused = answer.is_err() && self.disk.is_paused();
        match is_read_only || is_refused {
            true => _ = reply.send(answer),
            false => self.reply_when_synced(reply, answer),
        }
        Ok(())
    }

    pub(super) fn queue_outdated_boards(&mut self) {
        self.state.engine.windows_with_stale_order().into_iter().for_each(|window| self.boards.enqueue(window));
    }
}
