//! Writes a checkpoint on another thread while the engine continues.
//!
//! Its changes are frozen in memory ([`Tree::freeze`]), and written to a file, which makes them durable. The
//! database, which only serves reads, gets them later: reads find them in memory until then
//! ([`Tree::durable_changes`]). A leaf of it is written with every change of one of its records, and most records
//! change in every checkpoint, so that it is written in a few of them only.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::checkpoint::CheckpointFiles;
use super::compaction::{Compaction, DatabaseSettings};
use super::dir::files::{self, io_error};
use super::error::StoreError;
use super::tree::Tree;
use super::tree::mem_table::{MemTable, bytes_of};
use super::working_copy::{self, Comparison, WorkingCopy};

/// What a checkpoint is written to.
#[derive(Debug)]
pub(super) struct CheckpointTarget {
    tree: Tree,
    files: CheckpointFiles,
    compaction: Compaction,
    /// Is made before anything is written.
    comparison: Option<Comparison>,
    forgetting: Option<Forgetting>,
}

/// The removal of forgotten names from older files. A file says that it is not complete, so that the next start goes on.
#[derive(Debug)]
struct Forgetting {
    /// The checkpoint with the request.
    number: u64,
    /// Whether the database was compacted since.
    is_compacted: bool,
}

impl CheckpointTarget {
    /// Requests what removes older files, until they are removed.
    fn advance_forgetting(&mut self) {
        let Some(Forgetting { number, is_compacted }) = self.forgetting else { return };
        let is_merged = self.files.base_number() >= Some(number);
        if !is_merged {
            self.files.request_merge();
        }
        if !is_compacted {
            self.compaction.request_if_idle();
        }
        if is_merged && is_compacted {
            self.forgetting = None;
            if let Err(error) = files::remove_if_exists(&self.compaction.dir().join(files::FORGETTING)) {
                tracing::warn!("forgotten names are removed again after the next start: {}", error.with_causes());
            }
        }
    }

    /// Writes changes to the next file, and when that is on disk, now and then to the database.
    fn write(&mut self, table: &MemTable, settings: DatabaseSettings) -> Result<(), StoreError> {
        if let Some(comparison) = self.comparison.take() {
            comparison.run(&self.tree, &self.files)?;
        }
        if table.has_forgotten_names() {
            files::create_synced(&self.compaction.dir().join(files::FORGETTING))?;
            self.compaction.request();
        }
        let mut bytes = 0;
        let changes = table.all().inspect(|(key, value)| bytes += bytes_of(key, value.as_ref().map_or(0, Vec::len)));
        let number = self.files.write(&table.deleted_prefixes(), changes)?;
        if table.has_forgotten_names() {
            self.forgetting = Some(Forgetting { number, is_compacted: false });
        }
        self.advance_forgetting();
        let (is_merge_due, is_damaged) = (self.files.is_merge_due(), self.files.is_damaged());
        // The database must have the base, and what is merged into the next one.
        let is_apply_due = is_merge_due || is_damaged || self.files.base_number() == Some(number);
        if self.compaction.switch_if_ready(&self.tree, &self.files) {
            self.tree.drop_durable();
            self.forgetting.iter_mut().for_each(|it| it.is_compacted = true);
        } else {
            let durable = self.tree.durable_changes();
            // Then it is not absorbed: its encoded servers would be in memory twice.
            let is_large = is_apply_due || bytes >= settings.waiting_bytes_max;
            if !is_large {
                durable.absorb(table);
            }
            let is_applied = is_large || durable.bytes() >= settings.waiting_bytes_max;
            if is_applied {
                self.tree.write_unlogged(durable.all_with(table).map(Ok))?;
            }
            self.tree.set_checkpoint(number, is_applied)?;
            if is_applied {
                self.tree.drop_durable();
            }
        }
        if is_damaged {
            // It reads the files, too.
            self.compaction.cancel();
            self.write_base(number, settings.disk_free_bytes_min);
            return Ok(());
        }
        self.compaction.begin_if_due(&self.tree, &self.files, settings);
        // A compaction needs the files that are written meanwhile.
        if is_merge_due && !self.compaction.is_running() {
            self.files.begin_merge(settings.disk_free_bytes_min);
        }
        Ok(())
    }

    /// Replaces damaged files by all records of the database, which has all changes until the last file.
    fn write_base(&mut self, number: u64, reserve: u64) {
        let written = working_copy::write_base_of(&self.tree.durable(), number, reserve, &mut self.files);
        match written {
            Ok(()) => tracing::warn!("the damaged checkpoint files were written again from the database"),
            Err(error) => {
                tracing::error!("the damaged checkpoint files cannot be written again: {}", error.with_causes());
            }
        }
    }
}

/// The target, or the thread that has it.
#[derive(Debug)]
pub(super) struct CheckpointWriter {
    /// `None`: the thread has it, or has panicked with it.
    target: Option<Box<CheckpointTarget>>,
    thread: Option<JoinHandle<Written>>,
}

type Written = (Box<CheckpointTarget>, Result<(), StoreError>);

impl CheckpointWriter {
    pub(super) fn new(opened: WorkingCopy, compaction: Compaction) -> CheckpointWriter {
        let WorkingCopy { tree, files, comparison } = opened;
        let is_forgetting = compaction.dir().join(files::FORGETTING).exists();
        let number = files.last_number().unwrap_or(0);
        let forgetting = is_forgetting.then_some(Forgetting { number, is_compacted: false });
        CheckpointWriter {
            target: Some(Box::new(CheckpointTarget { tree, files, compaction, comparison, forgetting })),
            thread: None,
        }
    }

    /// Waits until changes are on disk. Nothing else is being written.
    pub(super) fn write(&mut self, changes: &MemTable, settings: DatabaseSettings) -> Result<(), StoreError> {
        self.target().write(changes, settings)
    }

    /// Begins to write frozen changes. Nothing else is being written. `ended` is dropped when that ends.
    pub(super) fn begin(
        &mut self,
        dir: &Path,
        changes: Arc<MemTable>,
        settings: DatabaseSettings,
        ended: impl Send + 'static,
    ) -> Result<(), StoreError> {
        let mut target = self.target.take().expect("one checkpoint at a time");
        let thread = std::thread::Builder::new().name("store-commit".to_owned()).spawn(move || {
            let result = target.write(&changes, settings);
            drop(changes);
            drop(ended);
            (target, result)
        });
        self.thread = Some(thread.map_err(io_error("start a thread for", dir))?);
        Ok(())
    }

    /// Whether changes are being written; `finish` ends that.
    pub(super) fn is_writing(&self) -> bool {
        self.thread.is_some()
    }

    /// Waits until the changes are on disk. Returns whether there was something to wait for. After an error it is
    /// unknown how much of it is on disk: the process must end.
    pub(super) fn finish(&mut self) -> Result<bool, StoreError> {
        let Some(thread) = self.thread.take() else { return Ok(false) };
        let (target, result) = thread.join().expect("the thread that writes checkpoints does not panic");
        self.target = Some(target);
        result.map(|()| true)
    }

    /// As `write`, and merges all files. Waits until that is done.
    pub(super) fn write_merged(&mut self, changes: &MemTable, settings: DatabaseSettings) -> Result<(), StoreError> {
        let target = self.target();
        target.files.finish_merge();
        target.files.request_merge();
        target.write(changes, settings)?;
        // It needs the files.
        target.compaction.cancel();
        target.files.merge_now(settings.disk_free_bytes_min);
        if let Some(number) = target.files.last_number().filter(|_| target.files.is_damaged()) {
            target.write_base(number, settings.disk_free_bytes_min);
        }
        Ok(())
    }

    /// The comparison is not made. Nothing is being written.
    pub(super) fn drop_comparison(&mut self) -> Result<(), StoreError> {
        self.target().comparison.take().map_or(Ok(()), Comparison::skip)
    }

    fn target(&mut self) -> &mut CheckpointTarget {
        self.target.as_mut().expect("nothing is being written")
    }

    /// Nothing is being written.
    pub(super) fn files(&mut self) -> &mut CheckpointFiles {
        &mut self.target().files
    }

    #[cfg(test)]
    pub(super) fn compaction(&mut self) -> &mut Compaction {
        &mut self.target().compaction
    }
}

impl Drop for CheckpointWriter {
    /// Waits for the checkpoint in progress: the thread holds the database open.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // The thread has already printed its panic message.
            let _ = thread.join();
        }
    }
}
