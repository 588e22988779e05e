//! Repairs damage for which sled refuses a state directory ("read corrupted data") although
//! all stored data is intact.
//!
//! - `conf` is written in two steps, settings and their checksum. A truncated or damaged one
//!   is removed: sled writes it again, always with the same settings.
//! - `snap.N.generating` is a snapshot before it gets its final name. Sled would read it like
//!   a finished one, so it is removed: sled then reads its log from the previous snapshot on.
//! - `snap.N` saves sled reading its log from the beginning. A damaged one is renamed:
//!   without it sled reads the whole log, with the same result.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use super::files;
use crate::store::error::StoreError;

/// Prefix of the name of a damaged snapshot, so that sled ignores it.
const DAMAGED_PREFIX: &str = "damaged.";

/// Removes partial files and renames damaged ones. Returns messages for the admin; `None`:
/// another process has the database open.
pub(in crate::store) fn repair(dir: &Path) -> Result<Option<Vec<String>>, StoreError> {
    // Sled's own lock, held during the repair.
    let db = dir.join("db");
    let _lock = match OpenOptions::new().read(true).write(true).open(&db) {
        Ok(file) => match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Some(lock),
            Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
            Err((_, errno)) => return Err(files::io_error("lock", &db)(errno.into())),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(files::io_error("open", &db)(error)),
    };
    let conf = dir.join("conf");
    if read(&conf)?.is_some_and(|bytes| !is_whole_conf(&bytes)) {
        fs::remove_file(&conf).map_err(files::io_error("remove", &conf))?;
    }
    let mut notes = Vec::new();
    for name in files::list_database(dir)? {
        let path = dir.join(&name);
        let Some(name) = name.to_str().filter(|name| name.starts_with("snap.")) else { continue };
        if name.ends_with(".generating") {
            fs::remove_file(&path).map_err(files::io_error("remove", &path))?;
        } else if files::is_snapshot(name) && read(&path)?.is_some_and(|bytes| !is_whole_snapshot(&bytes)) {
            let renamed = dir.join(format!("{DAMAGED_PREFIX}{name}"));
            fs::rename(&path, &renamed).map_err(files::io_error("rename", &path))?;
            notes.push(format!(
                "{} is damaged; it is renamed to {}, and the state is read from {} alone, which takes longer \
                 with the same result. Check the disk; the renamed file may be deleted",
                path.display(),
                renamed.display(),
                db.display()
            ));
        }
    }
    Ok(Some(notes))
}

/// Waits until the files that sled creates without a sync are on disk.
pub(in crate::store) fn sync_untracked_files(dir: &Path) -> Result<(), StoreError> {
    for path in [dir.join("conf"), dir.to_owned()] {
        File::open(&path).and_then(|file| file.sync_all()).map_err(files::io_error("sync", &path))?;
    }
    Ok(())
}

/// `None`: there is no such file.
fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(files::io_error("read", path)(error)),
    }
}

/// Whether it ends with the checksum of the bytes before.
fn is_whole_conf(conf: &[u8]) -> bool {
    match conf.split_last_chunk() {
        Some((settings, checksum)) => crc32fast::hash(settings) == u32::from_le_bytes(*checksum),
        None => false,
    }
}

/// Whether it ends with a length, which sled ignores, and the checksum of the bytes before
/// that.
fn is_whole_snapshot(snapshot: &[u8]) -> bool {
    match snapshot.split_last_chunk::<12>() {
        Some((pages, [_, _, _, _, _, _, _, _, checksum @ ..])) if !pages.is_empty() => {
            crc32fast::hash(pages) == u32::from_le_bytes(*checksum)
        }
        _ => false,
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

    /// A directory with some stored data, and the path of its snapshot.
    fn stored() -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let commit = Commit { games: vec![(GameKey(7), "openarena".to_owned())], ..Commit::default() };
        open(dir.path()).unwrap().apply(&commit).unwrap();
        assert_eq!(games(dir.path()), [GameKey(7)]); // opening again writes a snapshot
        let snapshot = fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().path());
        let snapshot = snapshot.filter(|path| path.to_str().unwrap().contains("/snap.")).max().expect("a snapshot");
        (dir, snapshot)
    }

    #[test]
    fn truncated_conf_loses_no_data() {
        let (dir, _) = stored();
        let conf = dir.path().join("conf");
        let whole = fs::read(&conf).unwrap();
        assert!(is_whole_conf(&whole), "sled's checksum has the known form");
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
    fn truncated_snapshot_loses_no_data() {
        let (dir, snapshot) = stored();
        let whole = fs::read(&snapshot).unwrap();
        for len in 0..=whole.len() {
            for with_previous_snapshot in [true, false] {
                let partial = dir.path().join("snap.00000000FFFFFFFF.generating");
                fs::write(&partial, &whole[..len]).unwrap();
                if !with_previous_snapshot {
                    for file in fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().path()) {
                        if file != partial && file.to_str().unwrap().contains("/snap.") {
                            fs::remove_file(file).unwrap();
                        }
                    }
                }
                assert_eq!(games(dir.path()), [GameKey(7)], "{len} bytes of a snapshot");
                assert!(!partial.exists());
            }
        }
    }

    /// Records as sled has them.
    type Records = Vec<(Vec<u8>, Vec<u8>)>;

    /// Every record of a store.
    fn records(store: &Store) -> Records {
        crate::store::tree::tests::all(&store.tree, vec![0]..vec![255])
    }

    /// A directory whose log was rewritten many times, so that its segments were reused and
    /// its pages moved.
    fn rewritten() -> (tempfile::TempDir, Records) {
        use crate::model::commit::RowKey;
        use crate::model::packed_row::PackedRow;
        use crate::model::{PlayerKey, PlayerRow, ServerKey, WeekKey};
        let dir = tempfile::tempdir().unwrap();
        for opened in 0..3 {
            let mut store = open(dir.path()).unwrap();
            for n in 0..60_u32 {
                let of = |i: u32| i.wrapping_mul(2_654_435_761).wrapping_add(n * 7_919) % 20_000;
                let mut rows: Vec<_> = (0..1_500)
                    .map(|i| {
                        let (server, player) = (ServerKey(of(i) % 300), PlayerKey(of(i) / 300));
                        let row = PlayerRow { points: i64::from(n * i), ..PlayerRow::new(i64::from(opened), 1000.0) };
                        (RowKey { window: WeekKey(1).into(), server, player }, PackedRow::pack(&row))
                    })
                    .collect();
                rows.sort_unstable_by_key(|(key, _)| *key);
                rows.dedup_by_key(|(key, _)| *key);
                store
                    .apply(&Commit { rows, games: vec![(GameKey(n), format!("game {n}"))], ..Commit::default() })
                    .unwrap();
            }
        }
        let store = open(dir.path()).unwrap();
        let stored = records(&store);
        assert!(stored.len() > 5_000, "{}", stored.len());
        (dir, stored)
    }

    #[test]
    fn corrupt_snapshot_is_renamed_and_loses_no_data() {
        let (dir, expected) = rewritten();
        let snapshots = || {
            let of_sled = |path: &std::path::PathBuf| path.to_str().unwrap().contains("/snap.");
            let mut paths: Vec<_> =
                fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().path()).filter(of_sled).collect();
            paths.sort();
            paths
        };
        let renamed =
            |path: &Path| dir.path().join(format!("{DAMAGED_PREFIX}{}", path.file_name().unwrap().to_str().unwrap()));
        for n in 0..40 {
            let path = snapshots().pop().expect("a snapshot");
            let mut bytes = fs::read(&path).unwrap();
            // The length before the checksum is not read.
            let offsets = [&(0..bytes.len() - 12).collect::<Vec<_>>()[..], &[bytes.len() - 3]].concat();
            let at = offsets[(offsets.len() - 1) * n / 39];
            bytes[at] ^= 1 << (n % 8);
            fs::write(&path, &bytes).unwrap();
            let store = open(dir.path()).unwrap_or_else(|error| panic!("bit {} of byte {at}: {error:?}", n % 8));
            assert!(records(&store) == expected, "bit {} of byte {at}", n % 8);
            assert_eq!(store.warnings().len(), 1, "{:?}", store.warnings());
            assert!(store.warnings()[0].contains(path.to_str().unwrap()), "{:?}", store.warnings());
            assert_eq!(fs::read(renamed(&path)).unwrap(), bytes);
        }
    }

    #[test]
    fn corrupt_database_error_names_the_file_and_the_remedy() {
        let (dir, expected) = rewritten();
        let db = dir.path().join("db");
        let whole = fs::read(&db).unwrap();
        let files: Vec<_> = files::state_files(dir.path()).unwrap();
        let (mut same, mut refused, mut other) = (0, 0, 0);
        for n in 0..40 {
            let copy = tempfile::tempdir().unwrap();
            for name in &files {
                fs::create_dir_all(copy.path().join(name).parent().unwrap()).unwrap();
                fs::copy(dir.path().join(name), copy.path().join(name)).unwrap();
            }
            let mut bytes = whole.clone();
            bytes[whole.len() / 41 * (n + 1)] ^= 1 << (n % 8);
            fs::write(copy.path().join("db"), bytes).unwrap();
            let read = open(copy.path()).and_then(|store| {
                let mut found = Vec::new();
                store.tree.for_each_encoded(vec![0]..vec![255], |key, value| {
                    found.push((key.to_owned(), value.to_owned()));
                    Ok(std::ops::ControlFlow::Continue(()))
                })?;
                Ok(found)
            });
            match read {
                Ok(found) if found == expected => same += 1,
                // In the last write, which sled takes for one cut off by a crash.
                Ok(_) => other += 1,
                Err(error) => {
                    refused += 1;
                    let message = error.to_string();
                    let names_file = message.contains(copy.path().to_str().unwrap()) && message.contains("/db");
                    assert!(message.contains("restore") && names_file, "{message}");
                }
            }
        }
        eprintln!(
            "of 40 flipped bits of {}: {same} had no effect, {refused} were refused, {other} lost the last write",
            db.display()
        );
        assert!(refused > 0 && other <= 4, "{same} {refused} {other}");
    }

    #[test]
    fn repair_changes_nothing_while_another_process_holds_the_lock() {
        let (dir, _) = stored();
        let holder = open(dir.path()).unwrap();
        let partial = dir.path().join("snap.00000000FFFFFFFF.generating");
        fs::write(&partial, b"half").unwrap();
        let settings = StoreSettings { cache_bytes: 16 << 20, create: true };
        let opened = Store::open_with_timeout(dir.path(), settings, std::time::Duration::ZERO);
        assert!(matches!(opened, Err(StoreError::Locked { .. })), "{opened:?}");
        assert!(partial.exists());
        drop(holder);
    }
}
