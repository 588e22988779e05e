//! The files of a state directory: which they are, who may read them, and errors
//! that name one.
//!
//! `db`, `conf`, `snap.N` and `blobs/N` are sled's; `redo` and `first` are ours (see
//! `redo`, `first`). Other files in the directory are left alone.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, Gid, Group, Uid, User, access, geteuid};

use super::StoreError;

/// The directory that sled keeps values in that are too large for its log.
pub(super) const BLOBS: &str = "blobs";

/// The names, relative to the directory, of its state files that exist, in order.
pub(super) fn list(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut found = Vec::new();
    for name in names(dir)? {
        match name.to_str() {
            Some(BLOBS) => {
                let blobs = dir.join(BLOBS);
                found.extend(names(&blobs)?.into_iter().map(|blob| Path::new(BLOBS).join(blob)));
            }
            Some(name) if is_state_file(name) => found.push(PathBuf::from(name)),
            _ => {}
        }
    }
    found.sort();
    Ok(found)
}

fn is_state_file(name: &str) -> bool {
    matches!(name, "conf" | "db" | "redo" | "first") || is_snapshot(name) || name.ends_with(".generating")
}

/// Whether it is a snapshot of sled's that is complete, going by its name.
pub(super) fn is_snapshot(name: &str) -> bool {
    name.starts_with("snap.") && !name.ends_with(".generating")
}

fn names(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = fs::read_dir(dir).map_err(at("list", dir))?;
    entries.map(|entry| Ok(entry.map_err(at("list", dir))?.file_name().into())).collect()
}

/// Fails where the directory cannot be one that clqd has written.
pub(super) fn check_is_state(dir: &Path) -> Result<(), StoreError> {
    match fs::metadata(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(StoreError::Missing { path: dir.to_owned() });
        }
        Err(error) => return Err(at("read", dir)(error)),
        Ok(_) => {}
    }
    for name in ["db", "conf"] {
        match fs::metadata(dir.join(name)) {
            Ok(_) => return Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => return Err(at("read", &dir.join(name))(error)),
        }
    }
    Err(StoreError::NotAState { path: dir.to_owned() })
}

/// Fails where this process cannot do all that sled will do, which names no file
/// itself.
pub(super) fn check_access(dir: &Path) -> Result<(), StoreError> {
    let check = |operation, path: &Path, flags| match access(path, flags) {
        Ok(()) | Err(nix::errno::Errno::ENOENT) => Ok(()),
        Err(errno) => Err(at(operation, path)(errno.into())),
    };
    check("write to", dir, AccessFlags::R_OK | AccessFlags::W_OK | AccessFlags::X_OK)?;
    check("write to", &dir.join(BLOBS), AccessFlags::R_OK | AccessFlags::W_OK | AccessFlags::X_OK)?;
    for name in list(dir)? {
        check("write to", &dir.join(name), AccessFlags::R_OK | AccessFlags::W_OK)?;
    }
    Ok(())
}

/// Lets the group read the files where it may read the directory: a file that was
/// made under a stricter umask is not readable for `clqd status` otherwise.
pub(super) fn fit_modes(dir: &Path) -> Result<(), StoreError> {
    let of_dir = fs::metadata(dir).map_err(at("read", dir))?.permissions().mode();
    if of_dir & 0o050 != 0o050 {
        return Ok(());
    }
    for path in [PathBuf::from(BLOBS)].into_iter().chain(list(dir)?).map(|name| dir.join(name)) {
        let Some(metadata) = there(&path)? else { continue };
        let wanted = if metadata.is_dir() { 0o050 } else { 0o040 };
        let mode = metadata.permissions().mode();
        if mode & wanted != wanted && metadata.uid() == geteuid().as_raw() {
            fs::set_permissions(&path, PermissionsExt::from_mode(mode | wanted)).map_err(at("change", &path))?;
        }
    }
    Ok(())
}

/// What is known of a file; `None`: it does not exist.
pub(super) fn there(path: &Path) -> Result<Option<Metadata>, StoreError> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at("read", path)(error)),
    }
}

/// The error of an operation on a file.
pub(super) fn at(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
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
