//! Writes a checkpoint on another thread while the engine continues.
//!
//! Its changes are frozen in memory, where reads find them until they are in the database
//! ([`Tree::freeze`]). They are in order of key, so a page of the database is written once for several
//! servers.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use super::checkpoint::CheckpointFiles;
use super::error::StoreError;
use super::tree::Tree;
use super::tree::mem_table::MemTable;

/// The checkpoint files, shared with the thread that writes them.
pub(super) type SharedFiles = Arc<Mutex<CheckpointFiles>>;

pub(super) fn lock(files: &SharedFiles) -> MutexGuard<'_, CheckpointFiles> {
    files.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread, once there was a commit for it.
#[derive(Debug, Default)]
pub(super) struct CommitWriter {
    thread: Option<WriterThread>,
    is_writing: bool,
}

#[derive(Debug)]
struct WriterThread {
    /// `None`: the thread is to end.
    commits: Option<mpsc::Sender<Arc<MemTable>>>,
    /// Only the owner locks it. The lock makes the store shareable among readers.
    results: Mutex<mpsc::Receiver<Result<(), StoreError>>>,
    handle: Option<JoinHandle<()>>,
}

impl CommitWriter {
    /// Begins to write frozen changes. Nothing else is being written.
    pub(super) fn begin(
        &mut self,
        tree: &Tree,
        files: &SharedFiles,
        dir: &Path,
        changes: Arc<MemTable>,
    ) -> Result<(), StoreError> {
        assert!(!self.is_writing, "one checkpoint at a time");
        let thread = match &mut self.thread {
            Some(thread) => thread,
            None => self.thread.insert(WriterThread::start(tree.clone(), files.clone(), dir)?),
        };
        let commits = thread.commits.as_ref().expect("the thread runs until it is dropped");
        commits.send(changes).expect("the thread runs until its sender is dropped");
        self.is_writing = true;
        Ok(())
    }

    /// Whether changes are being written; `poll` and `finish` end that.
    pub(super) fn is_writing(&self) -> bool {
        self.is_writing
    }

    /// Returns whether the writing has just ended. After an error it is unknown how
    /// much of it is on disk: the process must end.
    pub(super) fn poll(&mut self, tree: &Tree) -> Result<bool, StoreError> {
        let Some(thread) = self.thread.as_mut().filter(|_| self.is_writing) else { return Ok(false) };
        match thread.results().try_recv() {
            Ok(result) => self.end(tree, result).map(|()| true),
            Err(mpsc::TryRecvError::Empty) => Ok(false),
            Err(mpsc::TryRecvError::Disconnected) => panic!("the thread that writes commits panicked"),
        }
    }

    /// Waits until the changes are on disk. Returns whether there was one.
    pub(super) fn finish(&mut self, tree: &Tree) -> Result<bool, StoreError> {
        let Some(thread) = self.thread.as_mut().filter(|_| self.is_writing) else { return Ok(false) };
        let result = thread.results().recv().expect("the thread that writes commits does not panic");
        self.end(tree, result).map(|()| true)
    }

    fn end(&mut self, tree: &Tree, result: Result<(), StoreError>) -> Result<(), StoreError> {
        self.is_writing = false;
        result?;
        tree.drop_frozen();
        Ok(())
    }
}

impl WriterThread {
    fn start(tree: Tree, files: SharedFiles, dir: &Path) -> Result<WriterThread, StoreError> {
        let (commits, received) = mpsc::channel::<Arc<MemTable>>();
        let (results_tx, results) = mpsc::channel();
        let thread = std::thread::Builder::new().name("store-commit".to_owned()).spawn(move || {
            for changes in received {
                let result = write(&tree, &files, &changes);
                // The store may have been dropped.
                let _ = results_tx.send(result);
            }
        });
        let handle = thread.map_err(super::dir::files::io_error("start a thread for", dir))?;
        Ok(WriterThread { commits: Some(commits), results: Mutex::new(results), handle: Some(handle) })
    }

    fn results(&mut self) -> &mut mpsc::Receiver<Result<(), StoreError>> {
        self.results.get_mut().expect("nobody panics with the lock")
    }
}

impl Drop for WriterThread {
    /// Waits for the commit in progress: the thread holds the database open.
    fn drop(&mut self) {
        self.commits = None;
        if let Some(handle) = self.handle.take() {
            // The thread has already printed its panic message.
            let _ = handle.join();
        }
    }
}

/// Writes a checkpoint: to its file, and when that is on disk, to the database.
pub(super) fn write(tree: &Tree, files: &SharedFiles, table: &MemTable) -> Result<(), StoreError> {
    let changes = table.to_vec();
    let mut files = lock(files);
    if table.has_forgotten_names() {
        files.request_merge();
    }
    let number =
        files.write(&table.deleted_prefixes(), changes.iter().map(|(key, value)| (&key[..], value.as_deref())))?;
    drop(files);
    tree.write_slice_unlogged(&changes)?;
    tree.set_checkpoint(number)?;
    tree.write_out()
}
