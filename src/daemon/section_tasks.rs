//! A task for each section of a list of the configuration, such as `[[import]]`.

use tokio::task::JoinHandle;

/// The running tasks. Dropping them stops them.
#[derive(Debug)]
pub(super) struct SectionTasks<S> {
    tasks: Vec<SectionTask<S>>,
}

#[derive(Debug)]
struct SectionTask<S> {
    section: S,
    task: JoinHandle<()>,
}

impl<S> Drop for SectionTask<S> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<S> Default for SectionTasks<S> {
    fn default() -> SectionTasks<S> {
        SectionTasks { tasks: Vec::new() }
    }
}

impl<S: PartialEq> SectionTasks<S> {
    /// Starts and stops tasks so that exactly those of these sections run. Those of unchanged sections continue.
    pub fn apply(&mut self, sections: impl Iterator<Item = S>, mut start: impl FnMut(&S) -> JoinHandle<()>) {
        let mut old = std::mem::take(&mut self.tasks);
        for section in sections {
            self.tasks.push(match old.iter().position(|task| task.section == section) {
                Some(at) => old.swap_remove(at),
                None => SectionTask { task: start(&section), section },
            });
        }
    }

    pub fn stop(&mut self) {
        self.tasks.clear();
    }
}
