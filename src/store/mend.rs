//! What a kill while sled was opening leaves behind, and sled itself does not pass
//! over: it then refuses the directory ("read corrupted data") for good, though all
//! that was stored is whole.
//!
//! - `conf` is written in two steps, settings and their sum. Cut short it is taken
//!   away: sled writes it again, always with the same settings.
//! - `snap.N.generating` is a snapshot before it gets its name. It is read as if it
//!   were one. Without it sled reads its log on from the snapshot before.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};

/// Takes away what is half written, in a directory that no other process has open.
/// An error of kind `WouldBlock`: one has.
pub(super) fn mend(dir: &Path) -> std::io::Result<()> {
    // Sled's own lock, held as long as something is taken away.
    let _lock = match OpenOptions::new().read(true).write(true).open(dir.join("db")) {
        Ok(db) => Some(Flock::lock(db, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| errno)?),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let conf = dir.join("conf");
    match fs::read(&conf) {
        Ok(bytes) if !is_whole(&bytes) => fs::remove_file(conf)?,
        Ok(_) => (),
        Err(error) if error.kind() == ErrorKind::NotFound => (),
        Err(error) => return Err(error),
    }
    let files = match fs::read_dir(dir) {
        Ok(files) => files,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for file in files {
        let file = file?;
        let name = file.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.starts_with("snap.") && name.ends_with(".generating") {
            fs::remove_file(file.path())?;
        }
    }
    Ok(())
}

/// Waits until the files that sled makes but does not wait for are on disk.
pub(super) fn settle(dir: &Path) -> std::io::Result<()> {
    File::open(dir.join("conf"))?.sync_all()?;
    File::open(dir)?.sync_all()
}

/// Whether it ends in the sum of what stands before.
fn is_whole(conf: &[u8]) -> bool {
    match conf.split_last_chunk() {
        Some((settings, sum)) => crc32fast::hash(settings) == u32::from_le_bytes(*sum),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::GameKey;
    use crate::model::commit::Commit;
    use crate::store::{Store, StoreError, StoreSettings};

    fn open(path: &Path) -> Result<Store, StoreError> {
        Store::open(path, StoreSettings { cache_bytes: 16 << 20, create: true })
    }

    fn games(path: &Path) -> Vec<GameKey> {
        open(path).unwrap().load().unwrap().games.into_iter().map(|(key, _)| key).collect()
    }

    /// A directory with something stored, and the name of its snapshot.
    fn stored() -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let commit = Commit { games: vec![(GameKey(7), "openarena".to_owned())], ..Commit::default() };
        open(dir.path()).unwrap().apply(&commit).unwrap();
        assert_eq!(games(dir.path()), [GameKey(7)]); // opening again makes a snapshot
        let snapshot = fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().path());
        let snapshot = snapshot.filter(|path| path.to_str().unwrap().contains("/snap.")).max().expect("a snapshot");
        (dir, snapshot)
    }

    #[test]
    fn settings_cut_anywhere_lose_nothing() {
        let (dir, _) = stored();
        let conf = dir.path().join("conf");
        let whole = fs::read(&conf).unwrap();
        assert!(is_whole(&whole), "sled's sum is the one we know");
        for len in 0..whole.len() {
            fs::write(&conf, &whole[..len]).unwrap();
            assert_eq!(games(dir.path()), [GameKey(7)], "{len} bytes of conf");
            assert_eq!(fs::read(&conf).unwrap(), whole);

            let new = tempfile::tempdir().unwrap();
            fs::create_dir(new.path().join("blobs")).unwrap();
            fs::write(new.path().join("conf"), &whole[..len]).unwrap();
            assert_eq!(games(new.path()), [], "{len} bytes of conf and no database yet");
        }
        fs::remove_file(&conf).unwrap();
        assert_eq!(games(dir.path()), [GameKey(7)]);
    }

    #[test]
    fn a_snapshot_cut_anywhere_loses_nothing() {
        let (dir, snapshot) = stored();
        let whole = fs::read(&snapshot).unwrap();
        for len in 0..=whole.len() {
            for with_the_one_before in [true, false] {
                let half = dir.path().join("snap.00000000FFFFFFFF.generating");
                fs::write(&half, &whole[..len]).unwrap();
                if !with_the_one_before {
                    for file in fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().path()) {
                        if file != half && file.to_str().unwrap().contains("/snap.") {
                            fs::remove_file(file).unwrap();
                        }
                    }
                }
                assert_eq!(games(dir.path()), [GameKey(7)], "{len} bytes of a snapshot");
                assert!(!half.exists());
            }
        }
    }

    #[test]
    fn nothing_is_taken_from_another_process() {
        let (dir, _) = stored();
        let held = open(dir.path()).unwrap();
        let half = dir.path().join("snap.00000000FFFFFFFF.generating");
        fs::write(&half, b"half").unwrap();
        assert!(matches!(open(dir.path()), Err(StoreError::Locked { .. })));
        assert!(half.exists());
        drop(held);
    }
}
