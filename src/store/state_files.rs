//! All files of a state directory: which there are, whether they can be used, and their removal.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access, geteuid};

use super::checkpoint;
use super::dir::files::{
    BLOBS, COPIED_SETTINGS, CURRENT, FORGETTING, LOG, MANIFEST, UNCOMPARED, file_names, io_error, list_database,
    metadata_if_exists, readable_current, remove_if_exists,
};
use super::error::StoreError;

/// The existing state files, relative to the directory, in order of name.
pub(super) fn state_files(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut found: Vec<PathBuf> = [COPIED_SETTINGS, CURRENT, UNCOMPARED, MANIFEST].map(PathBuf::from).into();
    found.retain(|name| dir.join(name).is_file());
    match readable_current(dir)? {
        None => found.extend(list_database(dir)?),
        Some(current) => {
            let name = PathBuf::from(current.name());
            found.extend(list_database(&dir.join(&name))?.into_iter().map(|file| name.join(file)));
        }
    }
    found.extend(checkpoint::list(dir)?);
    let log = dir.join(LOG);
    let segments = metadata_if_exists(&log)?.map_or(Ok(Vec::new()), |_| file_names(&log))?;
    let segments = segments.into_iter().map(|name| Path::new(LOG).join(name));
    found.extend(segments.filter(|name| name.extension().is_some_and(|end| end == "log")));
    found.sort();
    Ok(found)
}

/// The existing directories with state files, relative to the state directory, parents
/// first. The first is the state directory itself.
pub(super) fn directories(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut found = vec![PathBuf::new()];
    let database = readable_current(dir)?.map_or_else(PathBuf::new, |current| current.name().into());
    let blobs = database.join(BLOBS);
    found.extend(
        [database, blobs, checkpoint::DIR.into(), LOG.into()]
            .into_iter()
            .filter(|name| !name.as_os_str().is_empty() && dir.join(name).is_dir()),
    );
    Ok(found)
}

/// Removes a state directory. Fails if it contains other files.
pub(super) fn remove_state_dir(dir: &Path) -> Result<(), StoreError> {
    remove_state_files(dir)?;
    fs::remove_dir(dir).map_err(io_error("remove", dir))
}

/// Removes the files and directories in a state directory. Fails if a directory contains other files.
pub(super) fn remove_state_files(dir: &Path) -> Result<(), StoreError> {
    let inner: Vec<PathBuf> = directories(dir)?.into_iter().skip(1).collect();
    for path in state_files(dir)?.into_iter().map(|name| dir.join(name)) {
        fs::remove_file(&path).map_err(io_error("remove", &path))?;
    }
    remove_if_exists(&dir.join(FORGETTING))?;
    for path in inner.into_iter().rev().map(|name| dir.join(name)) {
        fs::remove_dir(&path).map_err(io_error("remove", &path))?;
    }
    Ok(())
}

/// Waits until all files are on disk. Returns their total size.
pub(super) fn sync_files(dir: &Path) -> Result<u64, StoreError> {
    let mut bytes = 0;
    for path in state_files(dir)?.into_iter().chain(directories(dir)?.into_iter().rev()) {
        let path = dir.join(path);
        let file = File::open(&path).map_err(io_error("open", &path))?;
        file.sync_all().map_err(io_error("sync", &path))?;
        let metadata = file.metadata().map_err(io_error("read the metadata of", &path))?;
        bytes += if metadata.is_file() { metadata.len() } else { 0 };
    }
    Ok(bytes)
}

/// Fails if the directory cannot be a state directory written by clqd.
pub(super) fn check_is_state(dir: &Path) -> Result<(), StoreError> {
    match fs::metadata(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(StoreError::MissingStateDir { path: dir.to_owned() });
        }
        Err(error) => return Err(io_error("read the metadata of", dir)(error)),
        Ok(_) => {}
    }
    for name in ["db", "conf", CURRENT] {
        match fs::metadata(dir.join(name)) {
            Ok(_) => return Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => return Err(io_error("read the metadata of", &dir.join(name))(error)),
        }
    }
    match checkpoint::list(dir)?.is_empty() {
        true => Err(StoreError::NotAStateDir { path: dir.to_owned() }),
        false => Ok(()),
    }
}

/// Fails if this process lacks a permission that sled needs; an error of sled names no
/// file.
pub(super) fn check_access(dir: &Path) -> Result<(), StoreError> {
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

/// Makes the files readable for the group if the directory is: files created under a
/// stricter umask would not be readable for `clqd status`.
pub(super) fn grant_group_read(dir: &Path) -> Result<(), StoreError> {
    let dir_mode = fs::metadata(dir).map_err(io_error("read the metadata of", dir))?.permissions().mode();
    if dir_mode & 0o050 != 0o050 {
        return Ok(());
    }
    for path in directories(dir)?.into_iter().skip(1).chain(state_files(dir)?).map(|name| dir.join(name)) {
        let Some(metadata) = metadata_if_exists(&path)? else { continue };
        let required = if metadata.is_dir() { 0o050 } else { 0o040 };
        let mode = metadata.permissions().mode();
        if mode & required != required && metadata.uid() == geteuid().as_raw() {
            fs::set_permissions(&path, PermissionsExt::from_mode(mode | required))
                .map_err(io_error("change the mode of", &path))?;
        }
    }
    Ok(())
}
