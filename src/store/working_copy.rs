//! Opens the database, which is a copy of the checkpoint files for reads, and compares it with them.
//!
//! A damaged database, one read error while sled opens it, or a power cut can make sled return an older or an
//! empty database without an error. So the database is used only if it has the records of the files,
//! every one of them. Otherwise it is deleted and loaded again.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use super::checkpoint::{CheckpointFiles, Record};
use super::dir::database::Database;
use super::dir::{files, lock};
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

/// Opens the database in `dir` with the records of its checkpoint files. A database without such files
/// gets a base. Errors name `dir_in_errors` instead of `dir`.
pub(super) fn open(
    dir: &Path,
    dir_in_errors: &Path,
    cache_bytes: u64,
    wait: Duration,
) -> Result<(Tree, CheckpointFiles), StoreError> {
    for is_last_attempt in [false, true] {
        // Its lock keeps other processes from writing the files.
        let tree = open_database(dir, dir_in_errors, cache_bytes, wait);
        let mut checkpoints = CheckpointFiles::open(dir)?;
        let doubt = match tree.and_then(|tree| find_doubt(tree, &mut checkpoints, dir_in_errors)) {
            Ok(Checked::Equal(tree)) => return Ok((tree, checkpoints)),
            Ok(Checked::Doubtful(doubt)) => doubt,
            Err(error) if is_of_database(&error) && !checkpoints.is_empty() && !is_last_attempt => error.with_causes(),
            Err(error) => return Err(error),
        };
        tracing::warn!("the database of the state is loaded from the checkpoint files again: {doubt}");
        files::remove_databases(dir, wait)?;
    }
    unreachable!("an empty database is loaded, or an error is returned")
}

/// A database after the comparison with the files.
enum Checked {
    Equal(Tree),
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
    let kept = kept_windows(tree)?;
    checkpoints.write_first_base(number, |put| {
        tree.for_each_encoded(Vec::new()..vec![u8::MAX], |key, value| {
            if is_in_files(&kept, key) {
                put(key, value)?;
            }
            Ok(ControlFlow::Continue(()))
        })
    })?;
    tree.set_checkpoint(number)?;
    tree.write_out()
}

/// Windows that are not deleted.
fn kept_windows(tree: &Tree) -> Result<BTreeSet<WindowKey>, StoreError> {
    let meta: Option<Meta> = tree.get(&keys::meta())?;
    Ok(meta.iter().flat_map(Meta::kept_windows).collect())
}

/// Whether a record of the database is in the files, too. Records of deleted windows are removed from the
/// database later.
fn is_in_files(kept: &BTreeSet<WindowKey>, key: &[u8]) -> bool {
    key != keys::checkpoint()
        && key != keys::migrating()
        && keys::read_window(key).is_none_or(|window| kept.contains(&window))
}

/// Compares the database with the files. First gives it the records of the last files that it does not have,
/// because the process was killed. An empty database gets all records.
fn find_doubt(tree: Tree, checkpoints: &mut CheckpointFiles, dir: &Path) -> Result<Checked, StoreError> {
    checkpoints.remove_leftovers()?;
    let (Some(base), Some(last)) = (checkpoints.base_number(), checkpoints.last_number()) else {
        migrate::run(&tree, dir, &mut |_| ())?;
        write_base(&tree, checkpoints)?;
        return Ok(Checked::Equal(tree));
    };
    if tree.is_empty()? {
        load(&tree, checkpoints.records()?, last)?;
        return Ok(Checked::Equal(tree));
    }
    migrate::run(&tree, dir, &mut |_| ())?;
    match tree.checkpoint()? {
        Some(number) if number > last => {
            return Err(StoreError::MissingCheckpoint { path: checkpoints.path_of(last + 1) });
        }
        Some(number) if number >= base => catch_up(&tree, checkpoints)?,
        _ => return Ok(Checked::Doubtful("it is older than they are".to_owned())),
    }
    Ok(compare(&tree, checkpoints)?.map_or(Checked::Equal(tree), Checked::Doubtful))
}

/// The first difference between the database and the files. Another thread reads the files meanwhile.
fn compare(tree: &Tree, checkpoints: &CheckpointFiles) -> Result<Option<String>, StoreError> {
    let kept = kept_windows(tree)?;
    let records = checkpoints.records()?;
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
    tree.set_checkpoint(number)?;
    tree.write_out()
}

/// Gives a database the changes of the files after the last one that it has.
pub(super) fn catch_up(tree: &Tree, checkpoints: &CheckpointFiles) -> Result<(), StoreError> {
    let (Some(number), Some(last)) = (tree.checkpoint()?, checkpoints.last_number()) else { return Ok(()) };
    for delta in checkpoints.deltas_after(number) {
        let delta = delta?;
        let prefixes = delta.deleted_prefixes().to_vec();
        for prefix in &prefixes {
            while tree.remove_batch(prefix, REMOVED_AT_ONCE)? {}
        }
        let is_deleted = |key: &[u8]| prefixes.iter().any(|prefix| key.starts_with(prefix));
        tree.write_unlogged(delta.filter(|change| !matches!(change, Ok((key, _)) if is_deleted(key))))?;
    }
    tree.set_checkpoint(last)?;
    tree.write_out()
}
