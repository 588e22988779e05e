//! Sets deltas aside of which one is damaged or missing, when the log has what they have.

use std::fs;
use std::path::{Path, PathBuf};

use super::file::Kind;
use super::{CheckpointFile, CheckpointFiles, DIR, listed, lost_file, parse_path, records};
use crate::store::Store;
use crate::store::dir::database;
use crate::store::dir::files::{self, io_error};
use crate::store::dir::lock;
use crate::store::error::StoreError;
use crate::store::keys;

/// Ends the name of a file that was set aside.
const DAMAGED: &str = ".damaged";

/// Opens a state directory. If a delta is damaged, missing or unreadable, it is opened without it and the later
/// ones, if `has_log_after` says that a log has everything after a position.
pub fn open_without_unusable_deltas(
    state_dir: &Path,
    has_log_after: &dyn Fn(u64) -> bool,
    open: &dyn Fn() -> Result<Store, StoreError>,
) -> Result<Store, StoreError> {
    // One read that fails says nothing about the file.
    let opened = open().or_else(|error| if lost_file(&error).is_some() { open() } else { Err(error) });
    opened.or_else(|error| match UnusableDeltas::of(state_dir, &error)? {
        Some(deltas) if has_log_after(deltas.position) => {
            tracing::warn!("{}", error.with_causes());
            deltas.set_aside()?;
            open()
        }
        _ => Err(error),
    })
}

/// A delta that cannot be used, and the deltas after it.
#[derive(Debug)]
struct UnusableDeltas {
    state_dir: PathBuf,
    first: u64,
    later: Vec<CheckpointFile>,
    /// The last batch of the log that the files before have.
    position: u64,
}

impl UnusableDeltas {
    /// The delta that an error of opening a state directory names. `None`: it names another file, or the
    /// files before it are not complete.
    fn of(state_dir: &Path, error: &StoreError) -> Result<Option<UnusableDeltas>, StoreError> {
        let file = lost_file(error).and_then(parse_path);
        let Some(CheckpointFile { kind: Kind::Delta, number: first, .. }) = file else {
            return Ok(None);
        };
        let dir = state_dir.join(DIR);
        let (before, later) = listed(&dir)?.into_iter().partition(|file| file.number < first);
        let before = match CheckpointFiles::of(dir.clone(), before) {
            Ok(before) if before.last_number() == Some(first - 1) => before,
            _ => return Ok(None),
        };
        let position = records(&dir, &before.files)?.find_map(|record| match record {
            Ok((key, value)) if key == keys::log_position() => {
                Some(postcard::from_bytes(&value).map_err(|error| StoreError::corrupt(&key, error)))
            }
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        });
        Ok(position.transpose()?.map(|position| UnusableDeltas {
            state_dir: state_dir.to_owned(),
            first,
            later,
            position,
        }))
    }

    /// Renames the deltas, and removes the database, which has their records. The state is that of the files
    /// before, and the log since `position` follows. Killed in between, the first of them is missing.
    fn set_aside(self) -> Result<(), StoreError> {
        let dir = self.state_dir.join(DIR);
        for file in self.later.iter().filter(|file| file.kind == Kind::Delta) {
            let path = dir.join(file.name());
            fs::rename(&path, files::with_suffix(&path, DAMAGED)).map_err(io_error("rename", &path))?;
        }
        files::sync_dir(&dir)?;
        tracing::warn!(
            first = self.first,
            files = self.later.len(),
            "deltas of the state are set aside, because one is damaged or missing; the log since then replaces them"
        );
        database::remove_databases(&self.state_dir, lock::LOCK_TIMEOUT)
    }
}
