//! Builds boards in parallel with the engine's work: one window at a time, on a separate
//! thread that reads the store while scans continue.

use std::collections::VecDeque;

use tokio::sync::mpsc;

use crate::engine::{BuildPlan, WindowBoards};
use crate::model::WindowKey;
use crate::state::build_boards;
use crate::store::{Reader, StoreError};

pub(super) type BuildResult = Result<WindowBoards, StoreError>;

/// The windows whose boards are to be built, and the thread that builds them.
pub(super) struct BoardBuilder {
    reader: Reader,
    wanted: VecDeque<WindowKey>,
    at_work: bool,
    made: (mpsc::Sender<BuildResult>, mpsc::Receiver<BuildResult>),
}

impl BoardBuilder {
    pub(super) fn new(reader: Reader) -> BoardBuilder {
        BoardBuilder { reader, wanted: VecDeque::new(), at_work: false, made: mpsc::channel(1) }
    }

    pub(super) fn enqueue(&mut self, window: WindowKey) {
        if !self.wanted.contains(&window) {
            self.wanted.push_back(window);
        }
    }

    /// Starts the next window, unless one is being built. `plan` is called right before, so
    /// that the build plan is current.
    pub(super) fn start_next(&mut self, plan: impl FnOnce(WindowKey) -> BuildPlan) -> std::io::Result<()> {
        if self.at_work {
            return Ok(());
        }
        let Some(window) = self.wanted.pop_front() else { return Ok(()) };
        let (plan, reader, built) = (plan(window), self.reader.clone(), self.made.0.clone());
        let build = move || {
            // While the daemon stops there is no receiver.
            _ = built.blocking_send(build_boards(&plan, &reader));
        };
        std::thread::Builder::new().name("boards".to_owned()).spawn(build)?;
        self.at_work = true;
        Ok(())
    }

    /// The next boards that are built.
    pub(super) async fn next_result(&mut self) -> BuildResult {
        let built = self.made.1.recv().await.expect("one sender is held here");
        self.at_work = false;
        built
    }
}
