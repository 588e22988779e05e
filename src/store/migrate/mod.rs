//! Migrates a state directory that an earlier version wrote.
//!
//! The version byte of each stored record identifies its layout. When the directory is
//! opened and its meta record has an older version, every record is converted in place, one
//! by one, before any other record is read. [`Layouts`] has one function for each old layout,
//! which converts a value to the next layout; a record goes through all steps from its
//! version on. Keys never change, and a leaf stays one leaf: each sled record is read,
//! converted and written as a whole, so no record is ever half converted.
//!
//! Before the first record, a marker and the converted meta are written in one batch and
//! flushed. From then on an older clqd refuses the directory (its meta is newer), and this
//! one continues an interrupted migration when it opens the directory. The marker has the
//! key that was reached at the last flush. Records that are already converted have the
//! current version and are skipped, so repeating some of them changes nothing. The marker
//! is removed last. No reader sees a mixed state, because [`run`] returns only when all
//! records are converted.
//!
//! Checkpoint files of the old layout are not changed; their values are converted when they are read
//! ([`convert`]).
//!
//! To change the layout after version 1.0: copy the types that change into a file of the current version
//! (`v4`), convert them there to the new types, add the step, raise `layout::VERSION`,
//! and keep a state directory written by the last version. Earlier steps then convert to those copies.
//! Until then no layout is migrated, because none was released. The tests migrate one of their own.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::StoreError;
use super::keys;
use super::layout::{OLDEST, VERSION};
use super::tree::{SledRecord, Tree};
use crate::store::tree::leaf;

/// Converts a value of one layout to the next one; `None`: both layouts are the same.
/// Error: why the value cannot be read.
type Convert = fn(key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, postcard::Error>;

/// The layouts that can be migrated.
struct Layouts {
    /// The version that the first step converts.
    oldest: u8,
    /// Up to [`VERSION`], in order.
    steps: &'static [Convert],
}

const LAYOUTS: Layouts = Layouts { oldest: OLDEST, steps: &[] };

/// Sled records between two flushes: about 4 MB.
const RECORDS_PER_FLUSH: u64 = if cfg!(test) { 10 } else { 2_000 };

/// Sled records between two log lines: some seconds.
const RECORDS_PER_REPORT: u64 = 200_000;

/// A migration in progress.
#[derive(Serialize, Deserialize)]
struct Marker {
    /// The version of the directory before the migration.
    from: u8,
    /// All records up to this key are converted.
    reached: Vec<u8>,
}

/// Migrates the directory if it has an older layout, or continues an interrupted migration.
/// `dir` is named in log messages.
pub(super) fn run(tree: &Tree, dir: &Path) -> Result<(), StoreError> {
    LAYOUTS.run(tree, dir, &mut |_| ())
}

/// Converts a value of an older layout to the current one.
pub(super) fn convert(version: u8, key: &[u8], value: Vec<u8>) -> Result<Vec<u8>, StoreError> {
    LAYOUTS.convert(version, key, value)
}

impl Layouts {
    /// `each` is called after each sled record, with the number of records done.
    fn run(&self, tree: &Tree, dir: &Path, each: &mut dyn FnMut(u64)) -> Result<(), StoreError> {
        let Some(mut marker) = self.start_or_continue(tree)? else { return Ok(()) };
        let path = dir.display();
        tracing::info!("state directory {path}: migrating layout {} to {VERSION}", marker.from);
        let mut done = 0;
        let mut reached = marker.reached.clone();
        for stored in tree.sled_records_after(&reached) {
            let stored = stored?;
            reached.clear();
            reached.extend_from_slice(&stored.key);
            let version = stored.version()?;
            if version != VERSION {
                tree.put_sled_record(&stored.key, &self.convert_record(&stored, version)?)?;
            }
            done += 1;
            if done % RECORDS_PER_FLUSH == 0 {
                marker.reached.clone_from(&reached);
                write(tree, &marker)?;
                tree.flush()?;
            }
            if done % RECORDS_PER_REPORT == 0 {
                tracing::info!("state directory {path}: {done} records migrated, reached {}", keys::display(&reached));
            }
            each(done);
        }
        tree.flush()?;
        tree.remove_sled_record(&keys::migrating())?;
        tree.flush()?;
        tracing::info!("state directory {path}: migrated to layout {VERSION}, {done} records");
        Ok(())
    }

    fn convert(&self, version: u8, key: &[u8], value: Vec<u8>) -> Result<Vec<u8>, StoreError> {
        let Some(skipped) = version.checked_sub(self.oldest) else {
            return Err(StoreError::UnsupportedVersion { key: keys::display(key), found: version });
        };
        let mut value = value;
        for step in self.steps.iter().skip(skipped.into()) {
            if let Some(new) =
                step(key, &value).map_err(|e| StoreError::corrupt(key, format!("version {version}: {e}")))?
            {
                value = new;
            }
        }
        Ok(value)
    }

    /// The migration to run, if one is needed. Its marker and the converted meta are on disk.
    fn start_or_continue(&self, tree: &Tree) -> Result<Option<Marker>, StoreError> {
        // A store without a meta record is empty.
        let Some(meta) = tree.sled_record(&keys::meta())? else { return Ok(None) };
        let from = meta.version()?;
        let marker = match tree.sled_record(&keys::migrating())? {
            Some(stored) => {
                let marker: Marker =
                    postcard::from_bytes(stored.body()).map_err(|e| StoreError::corrupt(&stored.key, e))?;
                // An earlier clqd began the migration, so the key that it reached does not
                // count for the current version.
                let reached = if from == VERSION { marker.reached } else { Vec::new() };
                Marker { reached, ..marker }
            }
            None if from == VERSION => return Ok(None),
            None => Marker { from, reached: Vec::new() },
        };
        if from != VERSION {
            tree.put_sled_record_pair(
                (&keys::migrating(), &encode(&marker)),
                (&keys::meta(), &self.convert_record(&meta, from)?),
            )?;
            tree.flush()?;
        }
        Ok(Some(marker))
    }

    /// Converts a sled record to the current layout.
    fn convert_record(&self, stored: &SledRecord, version: u8) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::with_capacity(stored.body().len() + stored.body().len() / 4 + 1);
        bytes.push(VERSION);
        let Some(shared) = keys::group_prefix_len(&stored.key) else {
            bytes.extend(self.convert(version, &stored.key, stored.body().to_vec())?);
            return Ok(bytes);
        };
        let mut key = stored.key[..shared].to_vec();
        for record in leaf::records(stored.body()) {
            let (suffix, value) =
                record.map_err(|leaf::MalformedLeaf| StoreError::corrupt(&stored.key, "a malformed leaf"))?;
            key.truncate(shared);
            key.extend_from_slice(suffix);
            leaf::push(&mut bytes, (suffix, &self.convert(version, &key, value.to_vec())?));
        }
        Ok(bytes)
    }
}

fn write(tree: &Tree, marker: &Marker) -> Result<(), StoreError> {
    tree.put_sled_record(&keys::migrating(), &encode(marker))
}

fn encode(marker: &Marker) -> Vec<u8> {
    postcard::to_extend(marker, vec![VERSION]).expect("a version and a key")
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    use nix::sys::signal::{Signal, kill};

    use super::*;
    use crate::store::tree::tests::tree;

    /// Environment variable for a test process that kills itself: after how many records,
    /// and the directory.
    const VICTIM: &str = "CLQD_TEST_MIGRATION";

    /// The last two layouts have one more byte after each value.
    const TEST_LAYOUTS: Layouts =
        Layouts { oldest: VERSION - 2, steps: &[|key, value| shorten(key, value), |key, value| shorten(key, value)] };

    fn shorten(_: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, postcard::Error> {
        match value.split_last() {
            Some((b'!', rest)) => Ok(Some(rest.to_vec())),
            _ => Err(postcard::Error::DeserializeUnexpectedEnd),
        }
    }

    /// A directory of the oldest layout: single records and leaves.
    fn old_state() -> (tempfile::TempDir, PathBuf) {
        let tempdir = tempfile::tempdir().unwrap();
        let dir = tempdir.path().join("state");
        std::fs::create_dir(&dir).unwrap();
        let it = tree(&dir);
        let put = |key: &[u8], body: &[u8]| {
            it.put_sled_record(key, &[&[TEST_LAYOUTS.oldest], body].concat()).unwrap();
        };
        put(&keys::meta(), b"meta!!");
        for n in 0..150_u32 {
            put(&[&[keys::SERVER][..], &n.to_be_bytes()].concat(), format!("server {n}!!").as_bytes());
            let mut leaf = Vec::new();
            for player in 3 * n..3 * n + 3 {
                leaf::push(&mut leaf, (&player.to_be_bytes(), format!("player {player}!!").as_bytes()));
            }
            put(&[&[keys::PLAYER][..], &(3 * n).to_be_bytes()].concat(), &leaf);
        }
        it.flush().unwrap();
        drop(it);
        (tempdir, dir)
    }

    fn all(tree: &Tree) -> Vec<(Vec<u8>, u8, Vec<u8>)> {
        let each = |stored: Result<SledRecord, StoreError>| {
            let stored = stored.unwrap();
            (stored.key.to_vec(), stored.version().unwrap(), stored.body().to_vec())
        };
        tree.sled_records_after(&[]).map(each).collect()
    }

    #[test]
    fn killed_migration_continues_on_open() {
        if let Ok(victim) = std::env::var(VICTIM) {
            let (kill_at, dir) = victim.split_once(' ').unwrap();
            let (kill_at, it) = (kill_at.parse::<u64>().unwrap(), tree(Path::new(dir)));
            return TEST_LAYOUTS
                .run(&it, Path::new(dir), &mut |done| {
                    if done == kill_at {
                        kill(nix::unistd::getpid(), Signal::SIGKILL).unwrap();
                    }
                })
                .unwrap();
        }
        let (_place, dir) = old_state();
        let it = tree(&dir);
        let before = all(&it);
        assert!(before.iter().all(|(_, version, _)| *version == TEST_LAYOUTS.oldest) && before.len() == 301);
        let mut count = 0;
        TEST_LAYOUTS.run(&it, &dir, &mut |done| count = done).unwrap();
        // The marker is one more record.
        assert_eq!(count, before.len() as u64 + 1);
        let migrated = all(&it);
        assert!(migrated.iter().map(|(key, ..)| key).eq(before.iter().map(|(key, ..)| key)), "the same keys");
        assert!(migrated.iter().all(|(_, version, _)| *version == VERSION));
        let texts: Vec<u8> = migrated.iter().flat_map(|(_, _, body)| body.clone()).collect();
        let has = |text: &str| memchr::memmem::find(&texts, text.as_bytes()).is_some();
        assert!(["meta", "server 149", "player 449"].iter().all(|text| has(text) && !has(&format!("{text}!"))));
        TEST_LAYOUTS.run(&it, &dir, &mut |_| panic!("no record remains to be migrated")).unwrap();

        for kill_at in [1, 9, 10, 11, 100, count - 3, count] {
            let (_place, dir) = old_state();
            // Killed repeatedly on the way: each time a little further.
            for _ in 0..2 {
                let this = std::env::current_exe().unwrap();
                let name = std::thread::current().name().unwrap().to_owned();
                let victim = format!("{kill_at} {}", dir.display());
                let mut command = Command::new(this);
                command.args(["--exact", &name]).env(VICTIM, victim).stdout(Stdio::null()).stderr(Stdio::null());
                let status = command.status().unwrap();
                assert!(status.signal() == Some(9) || status.success(), "{status}");
                let it = tree(&dir);
                let marker = it.sled_record(&keys::migrating()).unwrap();
                let meta = it.sled_record(&keys::meta()).unwrap().unwrap();
                // An older clqd refuses the directory, this one continues the migration.
                assert_eq!(meta.version().unwrap(), VERSION);
                assert_eq!(marker.is_some(), !status.success());
            }
            let it = tree(&dir);
            TEST_LAYOUTS.run(&it, &dir, &mut |_| ()).unwrap();
            assert!(all(&it) == migrated, "killed after {kill_at} of {count} records");
        }
    }

    #[test]
    fn unsupported_version_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let it = tree(dir.path());
        it.put_sled_record(&keys::meta(), &[2, 0]).unwrap();
        let error = run(&it, dir.path()).unwrap_err();
        assert!(matches!(error, StoreError::UnsupportedVersion { found: 2, .. }), "{error}");
        it.put_sled_record(&keys::meta(), &[VERSION + 1, 0]).unwrap();
        let error = run(&it, dir.path()).unwrap_err();
        assert!(matches!(error, StoreError::NewerVersion { .. }), "{error}");
    }
}
