//! Tests of messages, files and imported rows of a rebuild.

use std::fs::File;

use super::*;
use crate::board::window::{Shape, WindowSpec, WindowTypes};
use crate::engine::{EngineSettings, Event, Outcome, StateReader};
use crate::model::calendar::Calendar;
use crate::model::commit::RowKey;
use crate::model::{NameHash, PlayerKey, ServerKey, ServerUrl, WindowKey, WindowType};
use crate::scan_log;
use crate::state::{ReplayFeed, recovery};

/// The messages when days are added to the settings.
fn noted(log: Option<&Path>) -> (Vec<String>, bool) {
    let dir = tempfile::tempdir().unwrap();
    let store = StoreSettings { cache_bytes: 16 << 20, create: true };
    let mut state = State::open(dir.path(), store, EngineSettings::default()).unwrap();
    let url = ServerUrl::parse("quake3://10.0.0.1:27960").unwrap();
    let outcome = Outcome::Miss { t_ms: 1_764_064_800_000, reason: "silent".into() };
    ReplayFeed::background().observe_scan(&mut state, url, outcome).unwrap();
    let days = WindowSpec { kind: WindowType::DAY, shape: Shape::Day, keep: 3 };
    let windows = WindowTypes::new(Calendar::default(), [days]).unwrap();
    state.engine.reload(EngineSettings { windows, ..EngineSettings::default() });
    assert!(state.engine.has_changed_types());
    let notes = plan_window_types(&mut state.engine, &recovery::log_dir(dir.path()), log);
    (notes, !state.engine.types_to_rebuild().is_empty())
}

#[test]
fn new_window_type_reports_how_it_is_filled() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("scans.jsonl");
    fs::write(&log, "").unwrap();
    for log in [None, Some(&*log)] {
        let expected = "windows of type day begin empty: the log has no scans yet".to_owned();
        assert_eq!(noted(log), (vec![expected], false));
    }

    fs::write(&log, "{\"t\":1764064700000,\"server\":\"quake3://10.0.0.1:27960\",\"miss\":true}\n").unwrap();
    let (notes, rebuilding) = noted(Some(&log));
    assert_eq!(
        (&*notes[0], rebuilding),
        ("windows of type day are being rebuilt from the log, which begins at 2025-11-25 09:58:20 UTC", true)
    );
}

/// A scan every two minutes: one log line each.
fn lines(minutes: std::ops::Range<i64>) -> String {
    let line = |minute: i64| {
        let (t_ms, points) = (1_764_064_800_000 + minute * 60_000, minute % 40);
        format!(
            "{{\"t\":{t_ms},\"server\":\"quake3://10.0.0.1:27960\",\"game\":\"baseq3\",\"map\":\"m\",\"slots\":8,\
             \"players\":[{{\"name\":\"ann\",\"points\":{points},\"ping\":9}}]}}\n"
        )
    };
    minutes.step_by(2).map(line).collect()
}

/// A pipe takes the place of the newest closed file, so that the rebuild waits when it opens it.
#[test]
fn log_files_are_not_replaced_while_a_rebuild_reads_them() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("scans.jsonl");
    fs::write(&log, lines(100..200)).unwrap();
    let closed = |number: u32| dir.path().join(format!("scans.jsonl.{number}.zst"));
    let original = zstd::encode_all(lines(0..100).as_bytes(), 3).unwrap();
    fs::write(closed(2), &original).unwrap();
    nix::unistd::mkfifo(&closed(1), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let store = StoreSettings { cache_bytes: 16 << 20, create: true };
    let mut state = State::open(&dir.path().join("state"), store, EngineSettings::default()).unwrap();
    let log_lock = LogFileLock::default();
    let paths = RebuildPaths {
        state_dir: dir.path().join("state"),
        log: recovery::log_dir(&dir.path().join("state")),
        log_lock: Default::default(),
        scan_log: Some((log.clone(), log_lock.clone())),
        cache_bytes: 16 << 20,
    };
    let mut rebuilder = Rebuilder::new(&paths);
    rebuilder.begin(&mut state.engine, &paths, 0);
    assert!(rebuilder.failed.is_none(), "{:?}", rebuilder.failed);

    let forgotten = vec![(NameHash::of("baseq3", "ann"), i64::MAX)];
    let names = scan_log::ForgottenNames::new(forgotten, Default::default());
    let mut rewriting = scan_log::LogRewriting::new(&log, names, log_lock, 0);
    let stopped = rewriting.rewrite_closed_files(&mut |_| false, &mut |_| {});
    assert!(matches!(stopped, Err(scan_log::RewriteError::Stopped)), "{stopped:?}");
    assert_eq!(fs::read(closed(2)).unwrap(), original);

    // The rebuild reads an empty file and continues.
    let pipe = File::options().write(true).open(closed(1)).unwrap();
    fs::remove_file(closed(1)).unwrap();
    drop(pipe);
    let mut wait = |duration| {
        std::thread::sleep(duration);
        true
    };
    let done = rewriting.rewrite_closed_files(&mut wait, &mut |_| {}).unwrap();
    assert_eq!((done.files, done.lines), (1, 50));
}

/// The first rebuild is cancelled and cleaned up while the second is running.
#[test]
fn cleanup_of_a_rebuild_keeps_the_files_of_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("scans.jsonl");
    fs::write(&log, lines(0..100)).unwrap();
    let store = StoreSettings { cache_bytes: 16 << 20, create: true };
    let mut state = State::open(&dir.path().join("state"), store, EngineSettings::default()).unwrap();
    let paths = RebuildPaths {
        state_dir: dir.path().join("state"),
        log: recovery::log_dir(&dir.path().join("state")),
        log_lock: Default::default(),
        scan_log: Some((log, Default::default())),
        cache_bytes: 16 << 20,
    };
    let leftover = rebuild_dir(&paths.state_dir).join("of an earlier process");
    fs::create_dir_all(&leftover).unwrap();
    let mut rebuilder = Rebuilder::new(&paths);
    assert!(!leftover.exists());
    let mut first: Option<PathBuf> = None;
    for _ in 0..5 {
        rebuilder.begin(&mut state.engine, &paths, 0);
        assert!(rebuilder.failed.is_none(), "{:?}", rebuilder.failed);
        let running = rebuilder.running.as_ref().unwrap().dir.clone();
        // Its cleanup has finished when its directory no longer exists.
        let began = std::time::Instant::now();
        while first.as_ref().is_some_and(|first| first.exists()) {
            assert!(began.elapsed().as_secs() < 90, "the first directory is removed");
            // As the daemon does; events of the first rebuild are ignored.
            _ = rebuilder.events.1.try_recv();
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(running.join("log.jsonl").exists());
        first = Some(running);
    }
}

/// The systemd unit lets the daemon write to the state directory and nowhere next to
/// it.
#[test]
fn rebuild_writes_only_inside_the_state_directory_and_is_not_backed_up() {
    let dir = tempfile::tempdir().unwrap();
    let (log, state_dir) = (dir.path().join("scans.jsonl"), dir.path().join("state"));
    fs::write(&log, lines(0..100)).unwrap();
    let names = |dir: &Path| {
        let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|file| file.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let store = StoreSettings { cache_bytes: 16 << 20, create: true };
    let mut state = State::open(&state_dir, store, EngineSettings::default()).unwrap();
    observe(&mut state, &lines(0..100), |_| ());
    state.commit().unwrap();
    let siblings = names(dir.path());
    let paths = RebuildPaths {
        state_dir: state_dir.clone(),
        log: recovery::log_dir(&state_dir),
        log_lock: Default::default(),
        scan_log: Some((log, Default::default())),
        cache_bytes: 16 << 20,
    };
    let mut rebuilder = Rebuilder::new(&paths);
    rebuilder.begin(&mut state.engine, &paths, 0);
    let running = rebuilder.running.as_ref().expect("the rebuild has started").dir.clone();
    // The whole log is replayed when the thread asks for a position.
    let (_, event) = rebuilder.events.1.blocking_recv().unwrap();
    assert!(matches!(event, JobEvent::PositionRequest) && running.join("state/db").exists());
    assert_eq!(names(dir.path()), siblings);

    // The files are as a daemon leaves them that is killed now.
    drop(state);
    let backup = dir.path().join("backup");
    crate::state::recovery::backup_closed(&crate::config::Config::default(), &state_dir, &backup).unwrap();
    assert!(running.exists() && !rebuild_dir(&backup).exists());
    let opened = State::open(&backup, StoreSettings { create: false, ..store }, EngineSettings::default()).unwrap();
    assert_eq!(opened.engine.now_ms(), 1_764_064_800_000 + 98 * 60_000);
    let ActiveRebuild { thread, positions, .. } = rebuilder.running.take().unwrap();
    drop(positions);
    thread.join().unwrap();
    Rebuilder::new(&paths);
    assert!(!rebuild_dir(&state_dir).exists());
}

fn observe(state: &mut State, lines: &str, mut each: impl FnMut(&LogEvent)) {
    for line in lines.lines() {
        let (url, outcome) = scan_log::parse_scan(line).unwrap();
        each(&LogEvent::Scan { server: url.clone(), outcome: outcome.clone() });
        state.handle(Event::Replayed { url, outcome }).unwrap();
    }
}

/// A rebuild begins while the previous log file is being compressed; the compression
/// ends before the file is read.
#[test]
fn log_file_compressed_during_a_rebuild_is_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("scans.jsonl");
    let named = |end: &str| PathBuf::from(format!("{}.{end}", log.display()));
    let zst = |text: String| zstd::encode_all(text.as_bytes(), 3).unwrap();
    fs::write(named("2.zst"), zst(lines(0..100))).unwrap();
    fs::write(named("1.packing"), lines(100..200)).unwrap();
    fs::write(&log, lines(200..300)).unwrap();
    let store = StoreSettings { cache_bytes: 16 << 20, create: true };
    let mut state = State::open(&dir.path().join("state"), store, EngineSettings::default()).unwrap();
    observe(&mut state, &lines(0..300), |_| ());
    state.commit().unwrap();
    let all_time = WindowSpec { kind: WindowType::ALL_TIME, shape: Shape::AllTime, keep: 0 };
    let windows = WindowTypes::new(Calendar::default(), [all_time]).unwrap();
    state.engine.reload(EngineSettings { windows, ..EngineSettings::default() });
    plan_window_types(&mut state.engine, &recovery::log_dir(&dir.path().join("state")), Some(&log));
    state.commit().unwrap();

    let paths = RebuildPaths {
        state_dir: dir.path().join("state"),
        log: recovery::log_dir(&dir.path().join("state")),
        log_lock: Default::default(),
        scan_log: Some((log.clone(), Default::default())),
        cache_bytes: 16 << 20,
    };
    let mut rebuilder = Rebuilder::new(&paths);
    rebuilder.begin(&mut state.engine, &paths, 0);
    fs::write(named("1.zst"), zst(lines(100..200))).unwrap();
    fs::remove_file(named("1.packing")).unwrap();
    while !rebuilder.is_ready() {
        let event = rebuilder.events.1.blocking_recv().unwrap();
        if let Some(send) = rebuilder.handle_event(event, 0) {
            send();
        }
    }
    // The scans made in the meantime take several steps, too.
    observe(&mut state, &lines(300..1_500), |event| rebuilder.record(1, event));
    state.commit().unwrap();
    while !rebuilder.import_step(&mut state).unwrap() {
        state.commit().unwrap();
    }
    observe(&mut state, &lines(1_500..1_540), |_| ());
    let other_player = lines(1_540..1_541).replace("ann", "bob");
    observe(&mut state, &other_player, |_| ());
    state.commit().unwrap();
    let key = |window| RowKey { window, server: ServerKey(1), player: PlayerKey(1) };
    let week = Calendar::default().week(1_764_064_800_000);
    let of_week = state.store.row(key(week.into())).unwrap().unwrap();
    let of_all = state.store.row(key(WindowKey { kind: WindowType::ALL_TIME, index: 0 })).unwrap();
    assert_eq!(of_all, Some(of_week));
}
