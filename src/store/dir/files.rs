//! The files of a state directory: their names and permissions, and errors that name a
//! file.
//!
//! `db`, `conf`, `snap.N` and `blobs/N` belong to sled. They are in the state directory
//! itself until the database is compacted (`compaction`), then in its subdirectory `db.N`,
//! which the file `current` names. `uncompared` is there until the database was compared with
//! `checkpoints/N.base` and `N.delta`, the checkpoint files (see `checkpoint`). `log/N.log` belongs to the
//! daemon (see the module `log`). A backup also has `manifest.json`. Other files in the directory are ignored.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;
use nix::unistd::{Gid, Group, Uid, User, geteuid};

use crate::store::error::StoreError;

/// The directory in which sled stores values that are too large for its log.
pub(in crate::store) const BLOBS: &str = "blobs";

/// The directory of the log.
pub(in crate::store) const LOG: &str = "log";

/// The file that names the directory of the database.
pub(in crate::store) const CURRENT: &str = "current";

/// The file that exists while an open database was not compared with the checkpoint files.
pub(in crate::store) const UNCOMPARED: &str = "uncompared";

/// The file that exists while older files may have a forgotten name. It is not in backups.
pub(in crate::store) const FORGETTING: &str = "forgetting";

/// The file that asks the next start to correct the times of the log since a wrong clock.
pub const CLOCK_CORRECTION: &str = "clock-correction";

/// The settings of the log of a state that was copied from another engine, as JSON.
pub const COPIED_SETTINGS: &str = "settings.json";

/// The file that says what a backup contains.
pub const MANIFEST: &str = "manifest.json";

/// The directory of a compacted database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) struct CurrentDatabase {
    /// Counts the compactions.
    pub number: u64,
    /// Size of the database when it was compacted.
    pub bytes: u64,
}

impl CurrentDatabase {
    /// The directory's name, relative to the state directory.
    pub(in crate::store) fn name(&self) -> String {
        format!("db.{}", self.number)
    }
}

/// The content of the file `current`; `None`: the database is in the state directory
/// itself.
pub(in crate::store) fn read_current(dir: &Path) -> Result<Option<CurrentDatabase>, StoreError> {
    let path = dir.join(CURRENT);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(io_error("read", &path)(error)),
    };
    let parse = || {
        let (name, bytes) = std::str::from_utf8(&bytes).ok()?.strip_suffix('\n')?.split_once(' ')?;
        Some(CurrentDatabase { number: database_number(name)?, bytes: bytes.parse().ok()? })
    };
    parse().map(Some).ok_or(StoreError::Damaged { path, at: String::new() })
}

/// Like [`read_current`]; a damaged file, or the name of a database that does not exist, counts as none.
pub(in crate::store) fn readable_current(dir: &Path) -> Result<Option<CurrentDatabase>, StoreError> {
    match read_current(dir) {
        Ok(current) => Ok(current.filter(|current| dir.join(current.name()).is_dir())),
        Err(StoreError::Damaged { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes a database the current one of the state directory. It must be on disk.
pub(in crate::store) fn write_current(dir: &Path, current: &CurrentDatabase) -> Result<(), StoreError> {
    let (path, new) = (dir.join(CURRENT), dir.join("current.new"));
    let mut file = File::create(&new).map_err(io_error("create", &new))?;
    let written = file.write_all(format!("{} {}\n", current.name(), current.bytes).as_bytes());
    written.and_then(|()| file.sync_all()).map_err(io_error("write", &new))?;
    fs::rename(&new, &path).map_err(io_error("replace", &path))?;
    sync_dir(dir)
}

/// Waits until the names in a directory are on disk.
pub(in crate::store) fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(io_error("sync", dir))
}

/// Error: the log has wrong times, which the next start corrects.
pub fn check_times(dir: &Path) -> Result<(), StoreError> {
    let path = dir.join(CLOCK_CORRECTION);
    match metadata_if_exists(&path)? {
        Some(_) => Err(StoreError::TimesUncorrected { path }),
        None => Ok(()),
    }
}

/// The directory with the database of a state directory.
pub(in crate::store) fn database_dir(dir: &Path) -> Result<PathBuf, StoreError> {
    let Some(current) = read_current(dir)? else { return Ok(dir.to_owned()) };
    let database = dir.join(current.name());
    // Otherwise sled would create a new database.
    match metadata_if_exists(&database.join("db"))? {
        Some(_) => Ok(database),
        None => Err(StoreError::Damaged { path: database, at: " (it has no file \"db\")".to_owned() }),
    }
}

/// The number in the name of a database directory, `db.N`.
fn database_number(name: &str) -> Option<u64> {
    name.strip_prefix("db.")?.parse().ok()
}

/// The existing files of a database, relative to its directory.
pub(in crate::store) fn list_database(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut found = Vec::new();
    for name in file_names(dir)? {
        match name.to_str() {
            Some(BLOBS) => {
                let blobs = dir.join(BLOBS);
                found.extend(file_names(&blobs)?.into_iter().map(|blob| Path::new(BLOBS).join(blob)));
            }
            Some(name) if matches!(name, "conf" | "db") || is_snapshot(name) || name.ends_with(".generating") => {
                found.push(PathBuf::from(name));
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Removes the remains of an interrupted compaction: every database but the current one.
/// Only for the process that has the current one open.
pub(in crate::store) fn remove_other_databases(dir: &Path) -> Result<(), StoreError> {
    let current = read_current(dir)?;
    for name in file_names(dir)? {
        let Some(name) = name.to_str() else { continue };
        let number = database_number(name.strip_suffix(".partial").unwrap_or(name));
        if number.is_some() && current.as_ref().is_none_or(|current| current.name() != name) {
            remove_database(&dir.join(name))?;
        }
    }
    if current.is_some() {
        remove_database_files(dir)?;
    }
    Ok(())
}

/// The directories with databases of a state directory, itself first.
pub(in crate::store) fn database_dirs(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut dirs = vec![dir.to_owned()];
    dirs.extend(file_names(dir)?.into_iter().filter_map(|name| {
        let is_database = name.to_str().and_then(database_number).is_some();
        is_database.then(|| dir.join(name))
    }));
    Ok(dirs)
}

/// Removes the names of the files that sled has open, so that they are gone when the process is killed. It
/// opens large records again.
pub(in crate::store) fn unlink_databases(dir: &Path) -> Result<(), StoreError> {
    let database = database_dir(dir)?;
    let is_open = |name: &PathBuf| !name.starts_with(BLOBS);
    for path in list_database(&database)?.into_iter().filter(is_open).map(|name| database.join(name)) {
        fs::remove_file(&path).map_err(io_error("remove", &path))?;
    }
    Ok(())
}

/// Removes a database and its directory. Fails if the directory contains other files.
pub(in crate::store) fn remove_database(dir: &Path) -> Result<(), StoreError> {
    remove_database_files(dir)?;
    gone(fs::remove_dir(dir)).map_err(io_error("remove", dir))
}

/// Removes a file, unless it does not exist.
pub(in crate::store) fn remove_if_exists(path: &Path) -> Result<(), StoreError> {
    gone(fs::remove_file(path)).map_err(io_error("remove", path))
}

/// Creates an empty file, which is on disk then.
pub(in crate::store) fn create_synced(path: &Path) -> Result<(), StoreError> {
    fs::File::create(path).and_then(|file| file.sync_all()).map_err(io_error("create", path))?;
    sync_parent(path)
}

/// It is gone, also if a thread of a store that was just closed was faster.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// Removes the files of a database from its directory.
pub(in crate::store) fn remove_database_files(dir: &Path) -> Result<(), StoreError> {
    for path in list_database(dir)?.into_iter().map(|name| dir.join(name)) {
        remove_if_exists(&path)?;
    }
    let blobs = dir.join(BLOBS);
    gone(fs::remove_dir(&blobs)).map_err(io_error("remove", &blobs))
}

/// Waits until the name of a directory is on disk.
pub(in crate::store) fn sync_parent(dir: &Path) -> Result<(), StoreError> {
    sync_dir(parent(dir))
}

/// The directory above.
pub(in crate::store) fn parent(dir: &Path) -> &Path {
    // The parent of a single name is the empty path, which cannot be opened.
    dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The path with a suffix at its last name: `/var/lib/clqd` and `.partial` give
/// `/var/lib/clqd.partial`.
pub(in crate::store) fn with_suffix(dir: &Path, suffix: &str) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Whether this is the name of a complete sled snapshot.
pub(in crate::store) fn is_snapshot(name: &str) -> bool {
    name.starts_with("snap.") && !name.ends_with(".generating")
}

pub(in crate::store) fn file_names(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = fs::read_dir(dir).map_err(io_error("list", dir))?;
    entries.map(|entry| Ok(entry.map_err(io_error("list", dir))?.file_name().into())).collect()
}

/// Creates a directory that only the owner and the group can read, and those above it, unless they
/// exist.
pub(in crate::store) fn create_dir(dir: &Path) -> Result<(), StoreError> {
    fs::DirBuilder::new().recursive(true).mode(0o750).create(dir).map_err(io_error("create", dir))
}

/// Free space of the disk that a file is on, bytes.
pub(in crate::store) fn free_bytes(path: &Path) -> Result<u64, StoreError> {
    let disk = statvfs(path).map_err(|errno| io_error("read the free space of", path)(errno.into()))?;
    Ok(disk.blocks_available() * disk.fragment_size())
}

/// The metadata of a file; `None`: it does not exist.
pub(in crate::store) fn metadata_if_exists(path: &Path) -> Result<Option<Metadata>, StoreError> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error("read the metadata of", path)(error)),
    }
}

/// The error of an operation on a file.
pub fn io_error(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    move |source| {
        let hint = match source.kind() {
            ErrorKind::PermissionDenied => owner(path).map_or(String::new(), |owner| format!(" ({owner})")),
            _ => String::new(),
        };
        StoreError::File { operation, path: path.to_owned(), hint, source }
    }
}

/// The owner of a file, for a message: `it belongs to clqd:clqd with mode 0640, and this
/// process runs as user ann`. If the file is not visible, the owner of its nearest visible
/// directory.
fn owner(path: &Path) -> Option<String> {
    let (shown, metadata) = path.ancestors().find_map(|path| Some((path, fs::metadata(path).ok()?)))?;
    let subject = if shown == path { "it".to_owned() } else { shown.display().to_string() };
    let (uid, gid) = (Uid::from_raw(metadata.uid()), Gid::from_raw(metadata.gid()));
    let group = Group::from_gid(gid).ok().flatten().map_or_else(|| gid.to_string(), |group| group.name);
    let mode = metadata.permissions().mode() & 0o7777;
    Some(format!(
        "{subject} belongs to {}:{group} with mode {mode:04o}, and this process runs as user {}; \
         change that with chown or chmod, or run this as another user",
        user(uid),
        user(geteuid())
    ))
}

fn user(uid: Uid) -> String {
    User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name)
}
