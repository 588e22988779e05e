//! Errors of the store. Each names the file or record, and what the admin can do.

use std::path::{Path, PathBuf};

use super::keys;
use super::layout::{OLDEST, VERSION};
use crate::engine::ReadError;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("state directory {path:?} is in use by {holder}{}", waited(*waited_s))]
    Locked { path: PathBuf, holder: String, waited_s: u64 },
    #[error("state directory {path:?} does not exist")]
    MissingStateDir { path: PathBuf },
    #[error("{path:?} is not a state directory of clqd: it has no checkpoint file and no file \"db\"")]
    NotAStateDir { path: PathBuf },
    #[error(
        "state record {key} has version {found}, this clqd knows up to {VERSION}: it was written by a newer clqd; \
         install that one or start with another state directory"
    )]
    NewerVersion { key: String, found: u8 },
    #[error(
        "state record {key} has version {found}, this clqd reads version {OLDEST} and later: replay a log into another \
         state directory"
    )]
    UnsupportedVersion { key: String, found: u8 },
    #[error("state record {key} cannot be read ({why}): restore the state directory from a backup")]
    Corrupt { key: String, why: String },
    #[error("cannot {operation} {path:?}{hint}")]
    File { operation: &'static str, path: PathBuf, hint: String, source: std::io::Error },
    #[error("{dir:?} has {free} bytes free, and the copy of the state needs {needed}: {advice}")]
    NoDiskSpace { dir: PathBuf, needed: u64, free: u64, advice: &'static str },
    #[error(
        "{dir:?} has {free} bytes free, of which the backup must leave {reserve}: name a directory on another disk, or \
         free some space"
    )]
    NoSpaceForBackup { dir: PathBuf, free: u64, reserve: u64 },
    #[error(
        "{path:?} is a mount point, which a restore cannot rename: set state_dir to a directory in it, and move the files of \
         the state there"
    )]
    MountPoint { path: PathBuf },
    #[error(
        "{kept:?} exists: the state that an earlier restore replaced. Delete it if you no longer need it, or rename it, \
         and restore again"
    )]
    EarlierStateKept { kept: PathBuf },
    #[error(
        "{path:?} is missing or empty, and {kept:?} and {new:?} exist: a restore was interrupted between its last two steps. \
         Remove {path:?} if it is there, and rename {new:?} to {path:?} to complete it, or {kept:?} to undo it"
    )]
    InterruptedRestore { path: PathBuf, kept: PathBuf, new: PathBuf },
    #[error("{path:?} is in use by {holder}: another restore is in progress; wait for it, or stop that process")]
    RestoreInProgress { path: PathBuf, holder: String },
    #[error(
        "state file {path:?} is damaged{at}: restore a backup (clqd restore), replay a log into another state \
         directory, or restore from MySQL (clqd restore --from-mysql)"
    )]
    Damaged { path: PathBuf, at: String },
    /// The database of the daemon has what the file had.
    #[error(
        "checkpoint file {path:?} is damaged or missing, and the daemon writes all records again: repeat the backup, and do not stop \
         the daemon before it succeeds"
    )]
    DamagedWhileRunning { path: PathBuf },
    #[error(
        "checkpoint file {path:?} is missing: put it back, restore a backup (clqd restore), replay a log into \
         another state directory, or restore from MySQL (clqd restore --from-mysql)"
    )]
    MissingCheckpoint { path: PathBuf },
    #[error(
        "checkpoint file {path:?} was written by a newer clqd: install that one or start with another state directory"
    )]
    NewerCheckpoint { path: PathBuf },
    #[error(
        "{path:?} exists: the times of the events since a wrong clock are not corrected yet; start the daemon with this \
         state once"
    )]
    TimesUncorrected { path: PathBuf },
    #[error("{path:?} exists already and is not empty: choose another directory, or rename or remove that one")]
    AlreadyExists { path: PathBuf },
    #[error(
        "cannot create {count} threads, which clqd needs: raise the limit of threads (TasksMax= of the systemd unit, or \
         `ulimit -u` of the user)"
    )]
    NoThreads { count: usize, source: std::io::Error },
    #[error(
        "the database of the state differs from its checkpoint files ({why}); nothing is lost, the next start loads it \
         from them"
    )]
    DatabaseDiffers { why: String },
    #[error("the copy of the state to {path:?} was cancelled")]
    Cancelled { path: PathBuf },
    #[error("cannot {operation} the database of the state, {path:?}")]
    Sled { operation: &'static str, path: PathBuf, source: sled::Error },
    /// A reader that is no store cannot read a record.
    #[error("{0}")]
    OtherReader(String),
}

fn waited(seconds: u64) -> String {
    if seconds == 0 { String::new() } else { format!("; gave up after {seconds} s") }
}

impl From<StoreError> for ReadError {
    fn from(error: StoreError) -> ReadError {
        ReadError::new(error)
    }
}

impl From<ReadError> for StoreError {
    fn from(error: ReadError) -> StoreError {
        match error.into_inner().downcast::<StoreError>() {
            Ok(error) => *error,
            Err(error) => StoreError::OtherReader(error.to_string()),
        }
    }
}

impl StoreError {
    /// A record that cannot be read.
    pub(super) fn corrupt(key: &[u8], why: impl ToString) -> StoreError {
        StoreError::Corrupt { key: keys::display(key), why: why.to_string() }
    }

    /// The message and those of its causes, for a log line.
    pub fn with_causes(&self) -> String {
        anyhow::Chain::new(self).map(ToString::to_string).collect::<Vec<_>>().join(": ")
    }

    /// The same error, naming `original` instead of its copy.
    pub(super) fn with_original_path(mut self, copy: &Path, original: &Path) -> StoreError {
        if let StoreError::File { path, .. }
        | StoreError::Damaged { path, .. }
        | StoreError::MissingCheckpoint { path }
        | StoreError::Sled { path, .. } = &mut self
            && let Ok(name) = path.strip_prefix(copy)
        {
            *path = original.join(name);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::dir::files;

    #[test]
    fn message_for_the_log_names_operation_file_and_cause() {
        let no_space = std::io::Error::from_raw_os_error(nix::errno::Errno::ENOSPC as i32);
        let error = files::io_error("write", Path::new("/state/file"))(no_space);
        assert_eq!(error.with_causes(), "cannot write \"/state/file\": No space left on device (os error 28)");
        let path = Path::new("/state/db").to_owned();
        let error = StoreError::Sled { operation: "flush", path, source: sled::Error::Unsupported("x".to_owned()) };
        assert!(error.with_causes().starts_with("cannot flush the database of the state, \"/state/db\": "), "{error}");
    }
}
