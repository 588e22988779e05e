//! Damages, kills and deleted windows.

use std::fs;
use std::sync::atomic::AtomicBool;

use super::backup::tests::{SETTINGS, commit, records};
use super::*;

impl Store {
    /// Writes a commit to a checkpoint file only, as a process that is killed right then.
    pub fn write_only_file(&mut self, commit: &Commit) {
        self.defer_commits();
        self.apply(commit).unwrap();
        self.freeze_changes();
        let changes = self.tree.frozen_changes().unwrap();
        self.writer.files().write(&[], changes.all()).unwrap();
    }
}

/// Pseudo-random numbers.
fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    }
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_dir(&entry.path(), &to),
            false => _ = fs::copy(entry.path(), to).unwrap(),
        }
    }
}

fn checkpoint_files(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(dir.join(checkpoint::DIR)).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

fn open(dir: &Path) -> Result<Store, StoreError> {
    Store::open(dir, StoreSettings { create: false, ..SETTINGS })
}

/// A closed state of four commits, with its records. `before`: a copy made after two of them.
fn state(dir: &Path, before: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut store = Store::open(dir, SETTINGS).unwrap();
    (0..2).for_each(|n| store.apply(&commit(n, 4_000)).unwrap());
    drop(store);
    lock::wait_until_unlocked(dir).unwrap();
    copy_dir(dir, before);
    let mut store = open(dir).unwrap();
    (2..4).for_each(|n| store.apply(&commit(n, 400)).unwrap());
    let records = records(&store);
    drop(store);
    lock::wait_until_unlocked(dir).unwrap();
    records
}

/// Damages the database of a state directory. `before`: an earlier copy.
fn damage_database(damaged: &Path, before: &Path, round: usize, random: &mut dyn FnMut(usize) -> usize) {
    let db = damaged.join("db");
    match round {
        0 => fs::remove_file(&db).unwrap(),
        1 => fs::write(damaged.join("conf"), b"").unwrap(),
        2 => fs::write(damaged.join("current"), b"db.7 10\n").unwrap(),
        3 => fs::write(damaged.join("current"), [b"?", &b"\xff"[..]][round % 2]).unwrap(),
        // The database of the earlier copy.
        4 => {
            for name in files::list_database(damaged).unwrap() {
                fs::remove_file(damaged.join(name)).unwrap();
            }
            for name in files::list_database(before).unwrap() {
                fs::copy(before.join(&name), damaged.join(&name)).unwrap();
            }
        }
        _ => {
            let mut names = files::list_database(damaged).unwrap();
            let path = damaged.join(names.swap_remove(random(names.len())));
            let mut bytes = fs::read(&path).unwrap();
            let at = random(bytes.len());
            match round % 3 {
                0 => bytes[at] ^= 1 << random(8),
                1 => bytes.truncate(at),
                _ => bytes[at..].iter_mut().take(4_096).for_each(|byte| *byte = 0),
            }
            fs::write(&path, bytes).unwrap();
        }
    }
}

/// A database that is compared before the first checkpoint is not written before, and the next process
/// loads it again if it differs.
#[test]
fn comparison_before_the_first_checkpoint_notices_what_differs() {
    let place = tempfile::tempdir().unwrap();
    let (dir, before, damaged) = (place.path().join("s"), place.path().join("before"), place.path().join("damaged"));
    let expected = state(&dir, &before);
    let without_position = |store: &Store| {
        let mut records = records(store);
        records.retain(|(key, _)| *key != keys::log_position());
        records
    };
    let (mut random, mut noticed) = (numbers(3), 0);
    for round in 0..40 {
        _ = fs::remove_dir_all(&damaged);
        copy_dir(&dir, &damaged);
        if round % 4 == 0 {
            // What sled lost without an error.
            let store = open(&damaged).unwrap();
            // Most records are in memory, because they are only in deltas.
            while records(&store) == expected {
                let (key, _) = &expected[random(expected.len())];
                store.tree.write_slice_unlogged(&[(key.clone(), None)]).unwrap();
            }
            drop(store);
            lock::wait_until_unlocked(&damaged).unwrap();
        } else {
            damage_database(&damaged, &before, round, &mut random);
        }
        if let Ok(mut store) = Store::open_comparing_later(&damaged, SETTINGS) {
            assert_eq!(store.is_compared(), !is_uncompared(&damaged).unwrap(), "round {round}");
            store.defer_commits();
            let written = store.write_checkpoint(7);
            assert_eq!(written.is_ok(), store.is_compared(), "round {round}: {written:?}");
            noticed += u32::from(written.is_err());
        }
        lock::wait_until_unlocked(&damaged).unwrap();
        let again = Store::open_comparing_later(&damaged, SETTINGS).unwrap();
        assert!(without_position(&again) == expected, "round {round}");
        drop(again);
        lock::wait_until_unlocked(&damaged).unwrap();
    }
    assert!(noticed >= 10, "{noticed} differences");
}

/// What the disk has lost, the database of the running process has.
#[test]
fn damaged_checkpoint_file_is_written_again_from_the_database() {
    for (damaged, in_background, is_removed) in
        [(0, false, false), (0, true, false), (1, true, false), (0, true, true), (1, false, true)]
    {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("s");
        state(&dir, &place.path().join("before"));
        let mut store = open(&dir).unwrap();
        let path = &checkpoint_files(&dir)[damaged];
        match is_removed {
            true => fs::remove_file(path).unwrap(),
            false => flip_bit(path, |len| len / 2),
        }
        match in_background {
            false => store.merge_files().unwrap(),
            true => {
                store.writer.files().request_merge();
                store.apply(&commit(7, 300)).unwrap();
                store.writer.files().finish_merge();
                assert!(store.writer.files().is_damaged());
                let settings = store.database_settings;
                // Without space for another base, the files stay.
                store.set_database_settings(DatabaseSettings { disk_free_bytes_min: u64::MAX, ..settings });
                store.apply(&commit(8, 300)).unwrap();
                assert!(store.writer.files().is_damaged() && checkpoint_files(&dir).len() > 1);
                store.set_database_settings(settings);
                store.apply(&commit(9, 300)).unwrap();
            }
        }
        assert_eq!(checkpoint_files(&dir).len(), 1, "a base");
        let expected = records(&store);
        drop(store);
        lock::wait_until_unlocked(&dir).unwrap();
        assert!(records(&open(&dir).unwrap()) == expected);
    }
}

fn flip_bit(path: &Path, at: impl FnOnce(usize) -> usize) {
    let mut bytes = fs::read(path).unwrap();
    let at = at(bytes.len());
    bytes[at] ^= 4;
    fs::write(path, bytes).unwrap();
}

#[test]
fn damage_that_a_backup_or_a_compaction_finds_is_mended_by_the_next_checkpoint() {
    for (tenths, compacts) in [(0, false), (9, false), (0, true), (9, true)] {
        let place = tempfile::tempdir().unwrap();
        let (dir, backup) = (place.path().join("s"), place.path().join("backup"));
        let mut store = Store::open(&dir, SETTINGS).unwrap();
        store.apply(&commit(0, 30_000)).unwrap();
        store.apply(&commit(1, 30)).unwrap();
        flip_bit(&checkpoint_files(&dir)[0], |len| len / 10 * tenths);
        let back_up = |store: &mut Store| store.backup_source()?.write(&backup, 0, &AtomicBool::new(false));
        if compacts {
            store.writer.compaction().request();
            for n in 2.. {
                store.apply(&commit(n, 30)).unwrap();
                if store.writer.files().is_damaged() {
                    break;
                }
                assert!(n < 1_000, "the compaction fails");
                std::thread::sleep(Duration::from_millis(20));
            }
        } else {
            let error = back_up(&mut store).expect_err("the damage is noticed").of_running_daemon();
            assert!(matches!(error, StoreError::DamagedWhileRunning { .. }), "{}", error.with_causes());
        }
        assert!(store.writer.files().is_damaged());
        store.apply(&commit(7, 30)).unwrap();
        assert!(!store.writer.files().is_damaged() && checkpoint_files(&dir).len() == 1, "a base");
        let expected = records(&store);
        back_up(&mut store).unwrap();
        drop(store);
        lock::wait_until_unlocked(&dir).unwrap();
        assert!(records(&open(&dir).unwrap()) == expected && records(&open(&backup).unwrap()) == expected);
    }
}

/// A disk that has no space for another base: the files stay.
#[test]
fn files_are_not_merged_without_space() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("s");
    let expected = state(&dir, &place.path().join("before"));
    let mut store = open(&dir).unwrap();
    let reserve = DatabaseSettings { disk_free_bytes_min: u64::MAX, ..store.database_settings };
    store.set_database_settings(reserve);
    let files = checkpoint_files(&dir);
    store.merge_files().unwrap();
    assert_eq!(checkpoint_files(&dir)[..files.len()], files[..]);
    store.set_database_settings(DatabaseSettings { disk_free_bytes_min: 0, ..reserve });
    store.merge_files().unwrap();
    assert!(checkpoint_files(&dir).len() == 1 && records(&store) == expected);
}

/// A process that ends without an order, be it due to the database, leaves the comparison to the start of the
/// next one.
#[test]
fn process_that_ended_before_the_comparison_is_followed_by_one_that_compares_first() {
    let dir = tempfile::tempdir().unwrap();
    Store::open(dir.path(), SETTINGS).unwrap().apply(&commit(0, 2_000)).unwrap();
    let reopen = || {
        lock::wait_until_unlocked(dir.path()).unwrap();
        Store::open_comparing_later(dir.path(), SETTINGS).unwrap()
    };
    assert!(!reopen().is_compared(), "killed before the comparison");
    assert!(reopen().is_compared());
    let mut store = reopen();
    assert!(!store.is_compared() && !store.end_comparison().unwrap(), "stopped before the comparison");
    drop(store);
    let mut store = reopen();
    assert!(!store.is_compared());
    store.defer_commits();
    store.write_checkpoint(1).unwrap();
    assert!(store.is_compared() && store.end_comparison().unwrap());
}

#[test]
fn damaged_missing_or_older_database_is_loaded_from_the_files() {
    let place = tempfile::tempdir().unwrap();
    let (dir, before, damaged) = (place.path().join("s"), place.path().join("before"), place.path().join("damaged"));
    let expected = state(&dir, &before);
    let mut random = numbers(7);
    for round in 0..40 {
        _ = fs::remove_dir_all(&damaged);
        copy_dir(&dir, &damaged);
        damage_database(&damaged, &before, round, &mut random);
        let store = open(&damaged).unwrap_or_else(|error| panic!("round {round}: {}", error.with_causes()));
        assert!(records(&store) == expected, "round {round}");
        drop(store);
        lock::wait_until_unlocked(&damaged).unwrap();
    }
}

#[test]
fn damaged_or_missing_checkpoint_file_is_an_error() {
    let place = tempfile::tempdir().unwrap();
    let (dir, before, damaged) = (place.path().join("s"), place.path().join("before"), place.path().join("damaged"));
    state(&dir, &before);
    let mut random = numbers(11);
    for round in 0..60 {
        _ = fs::remove_dir_all(&damaged);
        copy_dir(&dir, &damaged);
        let files = checkpoint_files(&damaged);
        let path = &files[round % files.len()];
        let mut bytes = fs::read(path).unwrap();
        let at = random(bytes.len());
        match round / files.len() % 4 {
            0 => fs::remove_file(path).unwrap(),
            1 => bytes[at] ^= 1 << random(8),
            2 => bytes.truncate(at),
            _ => bytes[at..].iter_mut().take(512).for_each(|byte| *byte = !*byte),
        }
        if path.exists() {
            fs::write(path, bytes).unwrap();
        }
        let error = open(&damaged).expect_err("the damage is noticed");
        let is_named = matches!(
            &error,
            StoreError::Damaged { path: named, .. }
            | StoreError::MissingCheckpoint { path: named }
            | StoreError::NewerCheckpoint { path: named } if named.starts_with(&damaged)
        );
        assert!(is_named, "round {round}: {}", error.with_causes());
    }
}

#[test]
fn checkpoint_that_only_its_file_has_is_in_the_database_after_a_start() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path(), SETTINGS).unwrap();
    store.apply(&commit(0, 2_000)).unwrap();
    store.write_only_file(&commit(1, 2_000));
    let expected = records(&store);
    drop(store);
    let mut store = open(dir.path()).unwrap();
    assert!(records(&store) == expected);
    // A file that was not complete when the process was killed is no file.
    store.apply(&commit(2, 20)).unwrap();
    let expected = records(&store);
    drop(store);
    fs::write(dir.path().join(checkpoint::DIR).join("000000000004.delta.tmp"), b"half").unwrap();
    assert!(records(&open(dir.path()).unwrap()) == expected);
    assert!(checkpoint_files(dir.path()).iter().all(|path| path.extension().unwrap() != "tmp"));
}

#[test]
fn rows_of_a_deleted_window_are_not_in_the_files() {
    use crate::model::commit::RowKey;
    use crate::model::packed_row::PackedRow;
    use crate::model::{PlayerKey, PlayerRow, WeekKey};

    let dir = tempfile::tempdir().unwrap();
    let window = WindowKey::from(WeekKey(1));
    let week = |week| WeekState { week: WeekKey(week), phase: WeekPhase::Running };
    let meta = |weeks: Vec<WeekState>| Meta { weeks, ..Meta::default() };
    let mut store = Store::open(dir.path(), SETTINGS).unwrap();
    let with_week = Commit { meta: Some(meta(vec![week(1)])), ..commit(0, 2_000) };
    store.apply(&with_week).unwrap();
    let deletion = Commit { meta: Some(meta(Vec::new())), deleted_windows: vec![window], ..Commit::default() };
    store.apply(&deletion).unwrap();
    drop(store);
    // The database has not removed them yet; the files do not have them.
    let mut store = open(dir.path()).unwrap();
    store.load().unwrap();
    assert!(!crate::engine::StoreReader::is_swept(&store, window));
    // They are deleted from the files first.
    assert!(store.sweeps_after_checkpoint() && !store.sweep(1_000).unwrap());
    store.apply(&Commit { meta: Some(meta(Vec::new())), ..Commit::default() }).unwrap();
    while store.sweep(1_000).unwrap() {}
    assert!(crate::engine::StoreReader::is_swept(&store, window));
    let key = RowKey { window, server: ServerKey(1), player: PlayerKey(1) };
    let row = PackedRow::pack(&PlayerRow::new(1, 1000.0));
    store.apply(&Commit { meta: Some(meta(vec![week(1)])), rows: vec![(key, row)], ..Commit::default() }).unwrap();
    let expected = records(&store);
    assert_eq!(expected.iter().filter(|(key, _)| key[0] == keys::WINDOW).count(), 1);
    drop(store);
    lock::wait_until_unlocked(dir.path()).unwrap();
    fs::remove_file(dir.path().join("db")).unwrap();
    assert!(records(&open(dir.path()).unwrap()) == expected);
}

#[test]
fn forgotten_name_leaves_all_files_also_if_the_process_ends_first() {
    use crate::model::commit::Corrections;
    use crate::model::name::Name;
    use crate::model::server::PlayerRecord;
    use crate::model::{GameKey, PlayerKey};

    const NAME: &str = "a name to forget";
    let (dir, game) = (tempfile::tempdir().unwrap(), GameKey(0));
    let player = |name: &str| {
        let record = PlayerRecord { game, name: name.into(), display: Name::default() };
        vec![vec![(PlayerKey(7), record)]]
    };
    let mut store = Store::open(dir.path(), SETTINGS).unwrap();
    store.apply(&Commit { players: player(NAME), ..commit(0, 200) }).unwrap();
    store.apply(&commit(1, 50)).unwrap();
    let corrections = Corrections { deleted_names: vec![(game, NAME.to_owned())], ..Corrections::default() };
    store.apply(&Commit { players: player("another"), corrections, ..commit(2, 20) }).unwrap();
    drop(store);
    lock::wait_until_unlocked(dir.path()).unwrap();
    let mark = dir.path().join(files::FORGETTING);
    let has_name = || {
        let mut dirs = vec![dir.path().to_owned()];
        while let Some(dir) = dirs.pop() {
            for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
                match path.is_dir() {
                    true => dirs.push(path),
                    false if memchr::memmem::find(&fs::read(path).unwrap(), NAME.as_bytes()).is_some() => return true,
                    false => {}
                }
            }
        }
        false
    };
    assert!(mark.exists() && has_name(), "the process has ended too early");
    let place = tempfile::tempdir().unwrap();
    let copy = place.path().join("copy");
    super::backup::restore(dir.path(), &copy, SETTINGS.cache_bytes, |_, _| Ok::<_, StoreError>(())).unwrap();
    assert!(copy.join(files::FORGETTING).exists(), "the copy has the name, too");
    let mut store = open(dir.path()).unwrap();
    for n in 3.. {
        store.apply(&commit(n, 5)).unwrap();
        if !mark.exists() {
            break;
        }
        assert!(n < 1_000, "nothing removes the name");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(store);
    lock::wait_until_unlocked(dir.path()).unwrap();
    // The replaced database is removed by the next process at the latest.
    drop(open(dir.path()).unwrap());
    lock::wait_until_unlocked(dir.path()).unwrap();
    assert!(!has_name());
}
