//! The files of a state directory: which they are, who may read them, and errors
//! that name one.
//!
//! `db`, `conf`, `snap.N` and `blobs/N` are sled's. They are in the state directory
//! itself until the database is compacted (`compact`), then in `db.N` in it; the file
//! `current` names that one. `redo` and `first` are ours (see `redo`, `first`). Other
//! files in the directory are left alone.

use std::fs::{
    File, Metadata, {self},
};
use std::io::{
    ErrorKind, Write, {self},
};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, Gid, Group, Uid, User, access, geteuid};

use crate::store::StoreError;

/// The directory that sled keeps values in that are too large for its log.
pub(in crate::store) const BLOBS: &str = "blobs";

/// The file that names the directory of the database.
const CURRENT: &str = "current";

/// The directory of a database that was compacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) struct Current {
    /// Counts the compactions.
    pub number: u64,
    /// Size of the database when it was compacted.
    pub bytes: u64,
}

impl Current {
    /// Relative to the state directory.
    pub(in crate::store) fn name(&self) -> String {
        format!("db.{}", self.number)
    }
}

/// What the file `current` says; `None`: the database is in the state directory itself.
pub(in crate::store) fn current(dir: &Path) -> Result<Option<Current>, StoreError> {
    let path = dir.join(CURRENT);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(io_error("read", &path)(error)),
    };
    let read = || {
        let (name, bytes) = text.strip_suffix('\n')?.split_once(' ')?;
        Some(Current { number: database_number(name)?, bytes: bytes.parse().ok()? })
    };
    read().map(Some).ok_or(StoreError::Damaged { path, at: String::new() })
}

/// Makes a database the one that the state directory opens with. It must be on disk.
pub(in crate::store) fn set_current(dir: &Path, current: &Current) -> Result<(), StoreError> {
    let (path, new) = (dir.join(CURRENT), dir.join("current.new"));
    let mut file = File::create(&new).map_err(io_error("make", &new))?;
    let written = file.write_all(format!("{} {}\n", current.name(), current.bytes).as_bytes());
    written.and_then(|()| file.sync_all()).map_err(io_error("write", &new))?;
    fs::rename(&new, &path).map_err(io_error("replace", &path))?;
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(io_error("sync", dir))
}

/// The directory that holds the database of a state directory.
pub(in crate::store) fn database_dir(dir: &Path) -> Result<PathBuf, StoreError> {
    let Some(current) = current(dir)? else { return Ok(dir.to_owned()) };
    let database = dir.join(current.name());
    // Sled would make a new one.
    match metadata_if_exists(&database.join("db"))? {
        Some(_) => Ok(database),
        None => Err(StoreError::Damaged { path: database, at: " (it has no file \"db\")".to_owned() }),
    }
}

/// The number in the name of a database's directory, `db.N`.
fn database_number(name: &str) -> Option<u64> {
    name.strip_prefix("db.")?.parse().ok()
}

/// The names, relative to the directory, of its state files that exist, in order.
pub(in crate::store) fn state_files(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut found: Vec<PathBuf> = ["redo", "first", CURRENT].map(PathBuf::from).into();
    found.retain(|name| dir.join(name).is_file());
    match current(dir)? {
        None => found.extend(list_database(dir)?),
        Some(current) => {
            let name = PathBuf::from(current.name());
            found.extend(list_database(&dir.join(&name))?.into_iter().map(|file| name.join(file)));
        }
    }
    found.sort();
    Ok(found)
}

/// The same for the directory of a database.
pub(in crate::store) fn list_database(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut found = Vec::new();
    for name in names(dir)? {
        match name.to_str() {
            Some(BLOBS) => {
                let blobs = dir.join(BLOBS);
                found.extend(names(&blobs)?.into_iter().map(|blob| Path::new(BLOBS).join(blob)));
            }
            Some(name) if matches!(name, "conf" | "db") || is_snapshot(name) || name.ends_with(".generating") => {
                found.push(PathBuf::from(name));
            }
            _ => {}
        }
    }
    Ok(found)
}

/// The directories that state files are in and that exist, relative to the state
/// directory, each before those in it. The first is the state directory itself.
pub(in crate::store) fn directories(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut found = vec![PathBuf::new()];
    let database = current(dir)?.map_or_else(PathBuf::new, |current| current.name().into());
    let blobs = database.join(BLOBS);
    found.extend([database, blobs].into_iter().filter(|name| !name.as_os_str().is_empty() && dir.join(name).is_dir()));
    Ok(found)
}

/// Removes what a compaction that was cut short has left: every database but the
/// current one. Only for the process that has that one open.
pub(in crate::store) fn remove_other_databases(dir: &Path) -> Result<(), StoreError> {
    let current = current(dir)?;
    for name in names(dir)? {
        let Some(name) = name.to_str() else { continue };
        let of = database_number(name.strip_suffix(".partial").unwrap_or(name));
        if of.is_some() && current.as_ref().is_none_or(|current| current.name() != name) {
            remove_database(&dir.join(name))?;
        }
    }
    if current.is_some() {
        remove_database_files(dir)?;
    }
    Ok(())
}

/// Removes a directory that holds a database. Fails where anything else is in it.
pub(in crate::store) fn remove_database(dir: &Path) -> Result<(), StoreError> {
    remove_database_files(dir)?;
    fs::remove_dir(dir).map_err(io_error("remove", dir))
}

/// Removes a database from the directory that holds it.
pub(in crate::store) fn remove_database_files(dir: &Path) -> Result<(), StoreError> {
    for path in list_database(dir)?.into_iter().map(|name| dir.join(name)) {
        fs::remove_file(&path).map_err(io_error("remove", &path))?;
    }
    let blobs = dir.join(BLOBS);
    match fs::remove_dir(&blobs) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io_error("remove", &blobs)(error)),
        _ => Ok(()),
    }
}

/// Whether it is a snapshot of sled's that is complete, going by its name.
pub(in crate::store) fn is_snapshot(name: &str) -> bool {
    name.starts_with("snap.") && !name.ends_with(".generating")
}

fn names(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = fs::read_dir(dir).map_err(io_error("list", dir))?;
    entries.map(|entry| Ok(entry.map_err(io_error("list", dir))?.file_name().into())).collect()
}

/// Fails where the directory cannot be one that clqd has written.
pub(in crate::store) fn check_is_state(dir: &Path) -> Result<(), StoreError> {
    match fs::metadata(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(StoreError::MissingStateDir { path: dir.to_owned() });
        }
        Err(error) => return Err(io_error("read", dir)(error)),
        Ok(_) => {}
    }
    for name in ["db", "conf", CURRENT] {
        match fs::metadata(dir.join(name)) {
            Ok(_) => return Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => return Err(io_error("read", &dir.join(name))(error)),
        }
    }
    Err(StoreError::NotAStateDir { path: dir.to_owned() })
}

/// Fails where this process cannot do all that sled will do, which names no file
/// itself.
pub(in crate::store) fn check_access(dir: &Path) -> Result<(), StoreError> {
    let check = |operation, path: &Path, flags| match access(path, flags) {
        Ok(()) | Err(nix::errno::Errno::ENOENT) => Ok(()),
        Err(errno) => Err(io_error(operation, path)(errno.into())),
    };
    for name in directories(dir)? {
        check("write to", &dir.join(name), AccessFlags::R_OK | AccessFlags::W_OK | AccessFlags::X_OK)?;
    }
    for name in state_files(dir)? {
        check("write to", &dir.join(name), AccessFlags::R_OK | AccessFlags::W_OK)?;
    }
    Ok(())
}

/// Lets the group read the files where it may read the directory: a file that was
/// made under a stricter umask is not readable for `clqd status` otherwise.
pub(in crate::store) fn grant_group_read(dir: &Path) -> Result<(), StoreError> {
    let of_dir = fs::metadata(dir).map_err(io_error("read", dir))?.permissions().mode();
    if of_dir & 0o050 != 0o050 {
        return Ok(());
    }
    for path in directories(dir)?.into_iter().skip(1).chain(state_files(dir)?).map(|name| dir.join(name)) {
        let Some(metadata) = metadata_if_exists(&path)? else { continue };
        let wanted = if metadata.is_dir() { 0o050 } else { 0o040 };
        let mode = metadata.permissions().mode();
        if mode & wanted != wanted && metadata.uid() == geteuid().as_raw() {
            fs::set_permissions(&path, PermissionsExt::from_mode(mode | wanted)).map_err(io_error("change", &path))?;
        }
    }
    Ok(())
}

/// What is known of a file; `None`: it does not exist.
pub(in crate::store) fn metadata_if_exists(path: &Path) -> Result<Option<Metadata>, StoreError> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error("read", path)(error)),
    }
}

/// The error of an operation on a file.
pub(in crate::store) fn io_error(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    move |source| {
        let hint = match source.kind() {
            ErrorKind::PermissionDenied => owner(path).map_or(String::new(), |owner| format!(" ({owner})")),
            _ => String::new(),
        };
        StoreError::File { operation, path: path.to_owned(), hint, source }
    }
}

/// Whose a file is, for a message: `it belongs to clqd:clqd with mode 0640, and this
/// process runs as user ann`. Of the nearest directory where the file cannot be seen.
fn owner(path: &Path) -> Option<String> {
    let (shown, metadata) = path.ancestors().find_map(|path| Some((path, fs::metadata(path).ok()?)))?;
    let what = if shown == path { "it".to_owned() } else { shown.display().to_string() };
    let (uid, gid) = (Uid::from_raw(metadata.uid()), Gid::from_raw(metadata.gid()));
    let group = Group::from_gid(gid).ok().flatten().map_or_else(|| gid.to_string(), |group| group.name);
    let mode = metadata.permissions().mode() & 0o7777;
    Some(format!(
        "{what} belongs to {}:{group} with mode {mode:04o}, and this process runs as user {}; \
         change that with chown or chmod, or run this as another user",
        user(uid),
        user(geteuid())
    ))
}

fn user(uid: Uid) -> String {
    User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name)
}
