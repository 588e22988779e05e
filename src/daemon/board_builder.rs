//! Boards made beside the engine's work: one window at a time, on a thread of its
//! own that reads the store while scans go on.

use std::collections::VecDeque;

use tokio::sync::mpsc;

use crate::engine::{BuildPlan, WindowBoards};
use crate::model::WindowKey;
use crate::state::build_boards;
use crate::store::{Reader, StoreError};

pub(super) type BuildResult = Result<WindowBoards, StoreError>;

/// The windows whose boards are to be made, and the thread that makes them.
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

    pub(super) fn want(&mut self, window: WindowKey) {
        if !self.wanted.contains(&window) {
            self.wanted.push_back(window);
        }
    }

    /// Begins with the next window, unless one is being made. What it says of the
    /// window is as of `plan`, which is taken right before.
    pub(super) fn begin(&mut self, plan: impl FnOnce(WindowKey) -> BuildPlan) -> std::io::Result<()> {
        if self.at_work {
            return Ok(());
        }
        let Some(window) = self.wanted.pop_front() else { return Ok(()) };
        let (plan, reader, made) = (plan(window), self.reader.clone(), self.made.0.clone());
        let make = move || {
            // Nobody waits for it while the daemon stops.
            _ = made.blocking_send(build_boards(&plan, &reader));
        };
        std::thread::Builder::new().name("boards".to_owned()).spawn(make)?;
        self.at_work = true;
        Ok(())
    }

    /// The next boards that are made.
    pub(super) async fn made(&mut self) -> BuildResult {
        let made = self.made.1.recv().await.expect("one sender is held here");
        self.at_work = false;
        made
    }
}
