//! Builds boards in parallel with the engine's work: one window at a time, on a separate
//! thread that reads the store while scans continue.

use std::collections::VecDeque;

use tokio::sync::mpsc;

use crate::engine::{BuildPlan, BuiltBoards};
use crate::model::WindowKey;
use crate::state::build_boards;
use crate::store::{Reader, StoreError};

pub(super) type BuildResult = Result<BuiltBoards, StoreError>;

/// The windows whose boards are to be built, and the thread that builds them.
pub(super) struct BoardBuilder {
    reader: Reader,
    queue: VecDeque<WindowKey>,
    /// Those that only reads wait for.
    of_reads: VecDeque<WindowKey>,
    building: Option<WindowKey>,
    results: (mpsc::Sender<BuildResult>, mpsc::Receiver<BuildResult>),
}

impl BoardBuilder {
    pub(super) fn new(reader: Reader) -> BoardBuilder {
        BoardBuilder {
            reader,
            queue: VecDeque::new(),
            of_reads: VecDeque::new(),
            building: None,
            results: mpsc::channel(1),
        }
    }

    pub(super) fn enqueue(&mut self, window: WindowKey) {
        if !self.queue.contains(&window) && self.building != Some(window) {
            self.queue.push_back(window);
        }
    }

    /// For reads that wait, instead of those before: nobody waits any more for a read that was withdrawn.
    pub(super) fn set_reads(&mut self, windows: impl IntoIterator<Item = WindowKey>) {
        self.of_reads.clear();
        for window in windows {
            if !self.of_reads.contains(&window) && !self.queue.contains(&window) && self.building != Some(window) {
                self.of_reads.push_back(window);
            }
        }
    }

    /// Starts the next window, unless one is being built. `plan` is called right before, so
    /// that the build plan is current.
    pub(super) fn start_next(&mut self, plan: impl FnOnce(WindowKey) -> BuildPlan) -> std::io::Result<()> {
        if self.building.is_some() {
            return Ok(());
        }
        let Some(window) = self.queue.pop_front().or_else(|| self.of_reads.pop_front()) else { return Ok(()) };
        let (plan, reader, built) = (plan(window), self.reader.clone(), self.results.0.clone());
        let build = move || {
            // While the daemon stops there is no receiver.
            _ = built.blocking_send(build_boards(&plan, &reader));
        };
        std::thread::Builder::new().name("boards".to_owned()).spawn(build)?;
        self.building = Some(window);
        Ok(())
    }

    /// Waits for the next boards that are built.
    pub(super) async fn next_result(&mut self) -> BuildResult {
        let built = self.results.1.recv().await.expect("one sender is held here");
        self.building = None;
        built
    }
}
