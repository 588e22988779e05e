//! Opens the database, which is a copy of the checkpoint files for reads, and compares it with them.
//!
//! A damaged database, one read error while sled opens it, or a power cut can make sled return an older or an
//! empty database without an error. So the database is used only if it has the records of the files,
//! every one of them. Otherwise it is deleted and loaded again.
//!
//! The comparison reads everything. A daemon compares before its first checkpoint, while it already works
//! ([`Comparison`]): until then nothing is written to the database, so a restart is as before. A file marks
//! the time: if the process ends in it, the next one compares first.

use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use super::checkpoint::{self, CheckpointFiles, Record};
use super::dir::database::Database;
use super::dir::{database, files, lock};
use super::error::StoreError;
use super::migrate;
use super::tree::Tree;
use super::{Meta, keys};
use crate::model::WindowKey;

/// Records between two messages about progress.
const RECORDS_PER_MESSAGE: u64 = 5_000_000;

/// Records of the files that are read at a time, and how many times as many are read ahead.
const CHUNK_RECORDS: usize = 4_096;
const CHUNKS_AHEAD: usize = 4;

/// Sled records that are removed with one write.
const REMOVED_AT_ONCE: usize = 1_000;

/// A state directory that was opened.
pub(super) struct WorkingCopy {
    pub tree: Tree,
    pub files: CheckpointFiles,
    /// `None`: done.
    pub comparison: Option<Comparison>,
}

/// When a database is compared with the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ComparisonTime {
    BeforeUse,
    /// Before the first checkpoint, unless the last process ended before its comparison.
    BeforeWrite,
}

/// A comparison that must be made before the first write to a database.
#[derive(Debug)]
pub(super) struct Comparison {
    /// Exists until it is made.
    mark: PathBuf,
    progress: Arc<ComparisonProgress>,
}

/// Shared with the thread that compares.
#[derive(Debug, Default)]
pub(super) struct ComparisonProgress {
    pub is_done: AtomicBool,
    pub is_cancelled: AtomicBool,
}

impl Comparison {
    fn new(dir: &Path) -> Result<Comparison, StoreError> {
        let mark = dir.join(files::UNCOMPARED);
        fs::File::create(&mark).map_err(files::io_error("create", &mark))?;
        Ok(Comparison { mark, progress: Arc::default() })
    }

    pub(super) fn progress(&self) -> Arc<ComparisonProgress> {
        self.progress.clone()
    }

    /// Nothing was written, and the process ends in order: the next one need not compare before use.
    pub(super) fn skip(self) -> Result<(), StoreError> {
        files::remove_if_exists(&self.mark)
    }

    /// Compares the database without the changes since the last checkpoint. Error: it differs, or the comparison was
    /// cancelled.
    pub(super) fn run(self, tree: &Tree, checkpoints: &CheckpointFiles) -> Result<(), StoreError> {
        let run = || compare(&tree.durable(), checkpoints, &self.progress.is_cancelled);
        // One read that fails says nothing about the files.
        match run().or_else(|_| run()) {
            Ok(None) => {}
            Ok(Some(why)) => return Err(StoreError::DatabaseDiffers { why }),
            Err(error) => {
                // A database that is in doubt keeps its mark.
                if matches!(error, StoreError::Cancelled { .. }) {
                    files::remove_if_exists(&self.mark)?;
                }
                return Err(error);
            }
        }
        files::remove_if_exists(&self.mark)?;
        self.progress.is_done.store(true, Ordering::Release);
        Ok(())
    }
}

/// Whether the database of a state directory was not compared since it was opened.
pub(super) fn is_uncompared(dir: &Path) -> Result<bool, StoreError> {
    Ok(files::metadata_if_exists(&dir.join(files::UNCOMPARED))?.is_some())
}

/// Opens the database in `dir` with the records of its checkpoint files. A database without such files
/// gets a base. Errors name `dir_in_errors` instead of `dir`.
pub(super) fn open(
    dir: &Path,
    dir_in_errors: &Path,
    cache_bytes: u64,
    wait: Duration,
    when: ComparisonTime,
) -> Result<WorkingCopy, StoreError> {
    for is_last_attempt in [false, true] {
        // Its lock keeps other processes from writing the files.
        let tree = open_database(dir, dir_in_errors, cache_bytes, wait);
        let mut files = CheckpointFiles::open(dir)?;
        let is_later = when == ComparisonTime::BeforeWrite && !is_uncompared(dir)?;
        let doubt = match tree.and_then(|tree| find_doubt(tree, &mut files, dir_in_errors, is_later)) {
            Ok(Checked::Equal(tree)) => {
                files::remove_if_exists(&dir.join(files::UNCOMPARED))?;
                return Ok(WorkingCopy { tree, files, comparison: None });
            }
            Ok(Checked::Later(tree)) => {
                return Ok(WorkingCopy { tree, files, comparison: Some(Comparison::new(dir)?) });
            }
            Ok(Checked::Doubtful(doubt)) => doubt,
            Err(error) if is_of_database(&error) && !files.is_empty() && !is_last_attempt => error.with_causes(),
            Err(error) => return Err(error),
        };
        tracing::warn!("the database of the state is loaded from the checkpoint files again: {doubt}");
        database::remove_databases(dir, wait)?;
    }
    unreachable!("an empty database is loaded, or an error is returned")
}

/// A database and the files.
enum Checked {
    Equal(Tree),
    /// They are not compared yet.
    Later(Tree),
    /// Why it is not used.
    Doubtful(String),
}

fn open_database(dir: &Path, dir_in_errors: &Path, cache_bytes: u64, wait: Duration) -> Result<Tree, StoreError> {
    let (db, database_dir) = lock::retry_until_unlocked(dir, wait, || {
        let database_dir = files::database_dir(dir)?;
        let Some(db) = Database::try_open(&database_dir, cache_bytes)? else { return Ok(None) };
        // Before the lock, another process may have compacted the database and ended.
        let is_current = files::database_dir(dir).is_ok_and(|current| current == database_dir);
        Ok(is_current.then_some((db, database_dir)))
    })?;
    files::remove_other_databases(dir)?;
    let name = database_dir.strip_prefix(dir).expect("the database is in the state directory");
    Ok(Tree::new(db.with_dir_in_errors(&dir_in_errors.join(name))))
}

/// Whether an error may be due to the database, which can be loaded again. An error of the disk is not.
fn is_of_database(error: &StoreError) -> bool {
    match error {
        StoreError::Damaged { path, .. } => !path.parent().is_some_and(|dir| dir.ends_with(super::checkpoint::DIR)),
        StoreError::Sled { source, .. } => !matches!(source, sled::Error::Io(error) if error.raw_os_error().is_some()),
        StoreError::Corrupt { .. } | StoreError::UnsupportedVersion { .. } => true,
        _ => false,
    }
}

/// Writes the first base of a state that has records and no files: a new backup, or a state of an earlier
/// version. If they were lost, the database is all that is left.
fn write_base(tree: &Tree, checkpoints: &mut CheckpointFiles) -> Result<(), StoreError> {
    if tree.is_empty()? {
        return Ok(());
    }
    let before = tree.checkpoint()?;
    if let Some(number) = before {
        tracing::warn!(
            "the checkpoint files of the state, the last of which had the number {number}, are missing; they are written again from its database, which was \
             not compared with anything"
        );
    }
    let number = before.unwrap_or(1);
    write_base_of(tree, number, 0, checkpoints)?;
    tree.set_checkpoint(number, true)
}

/// Writes all records of a database, which has all changes until the file with a number, as a base.
/// Leaves `reserve` bytes on the disk.
pub(super) fn write_base_of(
    tree: &Tree,
    number: u64,
    reserve: u64,
    checkpoints: &mut CheckpointFiles,
) -> Result<(), StoreError> {
    let kept = stored_windows(tree)?;
    checkpoints.write_base(number, reserve, |put| {
        tree.for_each_encoded(Vec::new()..vec![u8::MAX], |key, value| {
            if is_in_files(&kept, key) {
                put(key, value)?;
            }
            Ok(ControlFlow::Continue(()))
        })
    })
}

/// Windows that are not deleted.
fn stored_windows(tree: &Tree) -> Result<BTreeSet<WindowKey>, StoreError> {
    let meta: Option<Meta> = tree.get(&keys::meta())?;
    Ok(meta.iter().flat_map(Meta::stored_windows).collect())
}

/// Whether a record of the database is in the files, too. Records of deleted windows are removed from the
/// database later.
fn is_in_files(kept: &BTreeSet<WindowKey>, key: &[u8]) -> bool {
    key != keys::checkpoint()
        && key != keys::applied()
        && key != keys::migrating()
        && keys::read_window(key).is_none_or(|window| kept.contains(&window))
}

/// Compares the database with the files, unless `is_later`. The changes of the last files that it does not have
/// are read into memory. An empty database gets all records.
fn find_doubt(
    tree: Tree,
    checkpoints: &mut CheckpointFiles,
    dir: &Path,
    is_later: bool,
) -> Result<Checked, StoreError> {
    checkpoints.remove_leftovers()?;
    let (Some(base), Some(last)) = (checkpoints.base_number(), checkpoints.last_number()) else {
        migrate::run(&tree, dir)?;
        write_base(&tree, checkpoints)?;
        return Ok(Checked::Equal(tree));
    };
    if tree.is_empty()? {
        load(&tree, checkpoints.records()?, last)?;
        return Ok(Checked::Equal(tree));
    }
    migrate::run(&tree, dir)?;
    if tree.checkpoint()?.is_some_and(|number| number > last) {
        return Err(StoreError::MissingCheckpoint { path: checkpoints.path_of(last + 1) });
    }
    match tree.applied()? {
        Some(number) if number >= base => read_durable(&tree, checkpoints, number)?,
        _ => return Ok(Checked::Doubtful("it is older than they are".to_owned())),
    }
    if is_later {
        // Damage of a file is found at the start.
        checkpoints.check()?;
        return Ok(Checked::Later(tree));
    }
    Ok(compare(&tree, checkpoints, &AtomicBool::new(false))?.map_or(Checked::Equal(tree), Checked::Doubtful))
}

/// The first difference between the database and the files. Another thread reads the files meanwhile.
fn compare(
    tree: &Tree,
    checkpoints: &CheckpointFiles,
    is_cancelled: &AtomicBool,
) -> Result<Option<String>, StoreError> {
    let kept = stored_windows(tree)?;
    let records = checkpoint::paced(checkpoints.records()?, || match is_cancelled.load(Ordering::Relaxed) {
        true => Err(StoreError::Cancelled { path: checkpoints.dir().to_owned() }),
        false => Ok(()),
    });
    std::thread::scope(|scope| {
        let (chunks, received) = sync_channel(CHUNKS_AHEAD);
        scope.spawn(move || send_in_chunks(records, &chunks));
        compare_with(tree, &kept, &mut received.into_iter().flatten())
    })
}

/// Ends early if nobody receives the chunks any more.
fn send_in_chunks(
    records: impl Iterator<Item = Result<Record, StoreError>>,
    chunks: &SyncSender<Vec<Result<Record, StoreError>>>,
) {
    let mut records = records.peekable();
    while records.peek().is_some() {
        if chunks.send(records.by_ref().take(CHUNK_RECORDS).collect()).is_err() {
            return;
        }
    }
}

fn compare_with(
    tree: &Tree,
    kept: &BTreeSet<WindowKey>,
    records: &mut dyn Iterator<Item = Result<Record, StoreError>>,
) -> Result<Option<String>, StoreError> {
    let is_compared =
        |record: &Result<Record, StoreError>| record.as_ref().map_or(true, |(key, _)| is_in_files(kept, key));
    let mut records = records.filter(is_compared);
    let (mut difference, mut compared) = (None, 0_u64);
    tree.for_each_encoded(Vec::new()..vec![u8::MAX], |key, value| {
        if !is_in_files(kept, key) {
            return Ok(ControlFlow::Continue(()));
        }
        compared += 1;
        if compared.is_multiple_of(RECORDS_PER_MESSAGE) {
            tracing::info!(records = compared, "comparing the database of the state with the checkpoint files");
        }
        match records.next().transpose()? {
            Some((expected, expected_value)) if expected == key && expected_value == value => {
                return Ok(ControlFlow::Continue(()));
            }
            Some((expected, _)) => difference = Some(keys::display(expected.as_slice().min(key))),
            None => difference = Some(keys::display(key)),
        }
        Ok(ControlFlow::Break(()))
    })?;
    if difference.is_none()
        && let Some((key, _)) = records.next().transpose()?
    {
        difference = Some(keys::display(&key));
    }
    Ok(difference.map(|key| format!("its record {key} differs")))
}

/// Fills an empty database. `number`: of the last file that the records are from.
pub(super) fn load(
    tree: &Tree,
    records: impl Iterator<Item = Result<Record, StoreError>>,
    number: u64,
) -> Result<(), StoreError> {
    let mut loaded = 0_u64;
    let records = records.map(|record| {
        loaded += 1;
        if loaded.is_multiple_of(RECORDS_PER_MESSAGE) {
            tracing::info!(records = loaded, "loading a database of the state from the checkpoint files");
        }
        record.map(|(key, value)| (key, Some(value)))
    });
    tree.write_unlogged(records)?;
    tree.set_checkpoint(number, true)
}

/// Reads the changes of the files after the last one that a database has.
fn read_durable(tree: &Tree, checkpoints: &CheckpointFiles, number: u64) -> Result<(), StoreError> {
    let durable = tree.durable_changes();
    let mut durable = durable.write();
    for delta in checkpoints.deltas_after(number) {
        let (prefixes, changes) = delta?.into_changes();
        durable.drop_prefixes(&prefixes);
        for change in changes {
            let (key, value) = change?;
            durable.put(&key, value.as_deref());
        }
    }
    Ok(())
}

/// Gives a database the changes of the files after the last one that it has.
pub(super) fn catch_up(tree: &Tree, checkpoints: &CheckpointFiles) -> Result<(), StoreError> {
    let (Some(number), Some(last)) = (tree.applied()?, checkpoints.last_number()) else { return Ok(()) };
    for delta in checkpoints.deltas_after(number) {
        let (prefixes, changes) = delta?.into_changes();
        for prefix in &prefixes {
            while tree.remove_batch(prefix, REMOVED_AT_ONCE)? {}
        }
        tree.write_unlogged(changes)?;
    }
    tree.set_checkpoint(last, true)
}
