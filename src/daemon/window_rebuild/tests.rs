//! Tests of messages, files and imported rows of a rebuild.

use super::*;
use crate::board::window::{Shape, WindowSpec, WindowTypes};
use crate::engine::{EngineSettings, Event, Outcome, StateReader};
use crate::log::{self, ForgottenNames, HistoryWriter, SegmentRewriteError, SegmentRewriting, WriterSettings};
use crate::model::calendar::Calendar;
use crate::model::commit::RowKey;
use crate::model::{NameHash, PlayerKey, ServerKey, ServerUrl, WindowKey, WindowType};
use crate::scan_log;
use crate::state::{ReplayFeed, log_dir};

const START_MS: i64 = 1_764_064_800_000;

/// Writes lines as the log of a state directory. Returns the last batch.
fn write_log(state_dir: &Path, lines: &str) -> u64 {
    let mut settings = WriterSettings::new(log_dir(state_dir));
    settings.segment_bytes_max = 2_000;
    let mut log = HistoryWriter::open(&settings, 1, START_MS).unwrap();
    lines.lines().for_each(|line| log.append(&scan_log::parse(line).unwrap()).unwrap());
    log.finish().unwrap()
}

fn open_state(dir: &Path) -> State {
    State::open(dir, StoreSettings { cache_bytes: 16 << 20, create: true }, EngineSettings::default()).unwrap()
}

fn paths_of(state_dir: &Path) -> RebuildPaths {
    RebuildPaths {
        state_dir: state_dir.to_owned(),
        log: log_dir(state_dir),
        log_lock: LogFileLock::default(),
        cache_bytes: 16 << 20,
        disk_free_bytes_min: 0,
    }
}

/// A state with one server, to whose settings days are added.
fn state_with_new_days(dir: &Path) -> State {
    let mut state = open_state(dir);
    let url = ServerUrl::parse("quake3://10.0.0.1:27960").unwrap();
    let outcome = Outcome::Miss { t_ms: START_MS, reason: "silent".into() };
    ReplayFeed::background().observe_scan(&mut state, url, outcome).unwrap();
    let days = WindowSpec { kind: WindowType::DAY, shape: Shape::Day, keep: 3 };
    let windows = WindowTypes::new(Calendar::default(), [days]).unwrap();
    state.engine.reload(EngineSettings { windows, ..EngineSettings::default() });
    assert!(state.engine.model().has_changed_types());
    state
}

/// The messages when days are added to the settings.
fn noted(lines: &str) -> (String, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let mut state = state_with_new_days(dir.path());
    write_log(dir.path(), lines);
    let (step, note) = plan_window_types(&state.engine, &log_dir(dir.path())).unwrap().unwrap();
    state.apply_rebuild(&step).unwrap();
    (note, state.engine.model().status().rebuilding)
}

#[test]
fn new_window_type_reports_how_it_is_filled() {
    let expected = "windows of type day begin empty: the log has no scans yet".to_owned();
    assert_eq!(noted(""), (expected, vec![]));

    let (note, rebuilding) = noted("{\"t\":1764064700000,\"server\":\"quake3://10.0.0.1:27960\",\"miss\":true}\n");
    assert_eq!(
        (&*note, rebuilding),
        (
            "windows of type day are being rebuilt from the log, which begins at 2025-11-25 09:58:20 UTC",
            vec!["day".to_owned()]
        )
    );
}

#[test]
fn windows_do_not_begin_empty_because_the_log_cannot_be_read_now() {
    let dir = tempfile::tempdir().unwrap();
    let state = state_with_new_days(dir.path());
    write_log(dir.path(), &lines(0..4));
    let segment = crate::log::segments(&log_dir(dir.path())).unwrap().remove(0).path;
    let mut damaged = fs::read(&segment).unwrap();
    damaged[3] ^= 4;
    // Each read of a directory fails.
    fs::remove_file(&segment).unwrap();
    fs::create_dir(&segment).unwrap();
    let planned = plan_window_types(&state.engine, &log_dir(dir.path()));
    assert!(planned.is_err_and(|error| !error.is_damage()));
    fs::remove_dir(&segment).unwrap();
    fs::write(&segment, damaged).unwrap();
    let (step, _) = plan_window_types(&state.engine, &log_dir(dir.path())).unwrap().unwrap();
    assert!(matches!(step, RebuildStep::Types { from_ms: None }), "{step:?}");
}

/// A scan every two minutes: one log line each.
fn lines(minutes: std::ops::Range<i64>) -> String {
    let line = |minute: i64| {
        let (t_ms, points) = (START_MS + minute * 60_000, minute % 40);
        format!(
            "{{\"t\":{t_ms},\"server\":\"quake3://10.0.0.1:27960\",\"game\":\"baseq3\",\"map\":\"m\",\"slots\":8,\
             \"players\":[{{\"name\":\"ann\",\"points\":{points},\"ping\":9}}]}}\n"
        )
    };
    minutes.step_by(2).map(line).collect()
}

#[test]
fn log_files_are_not_replaced_while_a_rebuild_reads_them() {
    let dir = tempfile::tempdir().unwrap();
    let position = write_log(dir.path(), &lines(0..200));
    let state = open_state(dir.path());
    let paths = paths_of(dir.path());
    let mut rebuilder = Rebuilder::new(&paths);
    rebuilder.begin(&state, &paths, position);
    assert!(rebuilder.failed.is_none(), "{:?}", rebuilder.failed);

    let forgotten = vec![(NameHash::of("baseq3", "ann"), i64::MAX)];
    let names = ForgottenNames::new(forgotten, Default::default());
    let mut rewriting = SegmentRewriting::new(&paths.log, paths.log_lock.clone(), 0);
    let files = || -> Vec<Vec<u8>> {
        log::segments(&paths.log).unwrap().iter().map(|file| fs::read(&file.path).unwrap()).collect()
    };
    let before = files();
    // It has read a segment, and waits until it may replace it.
    let mut steps = 0;
    let mut stop = || {
        steps += 1;
        steps < 1_000
    };
    let stopped = rewriting.run(&|event| names.replace_in(event), &mut stop, &mut |_| ());
    assert!(matches!(stopped, Err(SegmentRewriteError::Stopped)), "{stopped:?}");
    assert_eq!(files(), before);

    let ActiveRebuild { thread, positions, .. } = rebuilder.running.take().unwrap();
    // The thread asks for a position, and ends.
    _ = rebuilder.events.1.blocking_recv();
    drop(positions);
    _ = rebuilder.events.1.blocking_recv();
    thread.join().unwrap();
    let done = rewriting.run(&|event| names.replace_in(event), &mut || true, &mut |_| ()).unwrap();
    assert!(done > 0 && files() != before);
}

/// The first rebuild is cancelled and cleaned up while the second is running.
#[test]
fn cleanup_of_a_rebuild_keeps_the_files_of_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let position = write_log(dir.path(), &lines(0..100));
    let state = open_state(dir.path());
    let paths = paths_of(dir.path());
    let leftover = rebuild_dir(&paths.state_dir).join("of an earlier process");
    fs::create_dir_all(&leftover).unwrap();
    let mut rebuilder = Rebuilder::new(&paths);
    assert!(!leftover.exists());
    let mut first: Option<PathBuf> = None;
    for _ in 0..5 {
        rebuilder.begin(&state, &paths, position);
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
        assert!(running.exists());
        first = Some(running);
    }
}

#[test]
fn rebuild_ends_before_the_disk_is_full_and_removes_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let position = write_log(dir.path(), &lines(0..100));
    let mut state = open_state(dir.path());
    let paths = RebuildPaths { disk_free_bytes_min: 1 << 60, ..paths_of(dir.path()) };
    let mut rebuilder = Rebuilder::new(&paths);
    rebuilder.begin(&state, &paths, position);
    while !rebuilder.is_ready() {
        let event = rebuilder.events.1.blocking_recv().unwrap();
        rebuilder.handle_event(event, position).into_iter().for_each(|send| send());
    }
    let began = std::time::Instant::now();
    while rebuild_dir(&paths.state_dir).exists() {
        assert!(began.elapsed().as_secs() < 90, "its files are removed at once");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let error = rebuilder.failed.as_ref().unwrap().to_string();
    assert!(error.contains("store.disk_free_bytes_min"), "{error}");
    let mut steps = Vec::new();
    state.commit().unwrap();
    assert!(rebuilder.import_step(&mut state, &mut |step| steps.push(step.clone())).unwrap());
    assert_eq!(steps, [RebuildStep::Types { from_ms: None }, RebuildStep::End {}]);
}

/// The systemd unit lets the daemon write to the state directory and nowhere next to
/// it.
#[test]
fn rebuild_writes_only_inside_the_state_directory_and_is_not_backed_up() {
    let dir = tempfile::tempdir().unwrap();
    let state_dir = dir.path().join("state");
    let position = write_log(&state_dir, &lines(0..100));
    let names = |dir: &Path| {
        let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|file| file.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let store = StoreSettings { cache_bytes: 16 << 20, create: true };
    let mut state = open_state(&state_dir);
    observe(&mut state, &lines(0..100), |_| ());
    state.commit().unwrap();
    state.write_checkpoint(position).unwrap();
    let siblings = names(dir.path());
    let paths = paths_of(&state_dir);
    let mut rebuilder = Rebuilder::new(&paths);
    rebuilder.begin(&state, &paths, position);
    let running = rebuilder.running.as_ref().expect("the rebuild has started").dir.clone();
    // The whole log is replayed when the thread asks for a position.
    let (_, event) = rebuilder.events.1.blocking_recv().unwrap();
    assert!(matches!(event, JobEvent::PositionRequest) && running.join("state/db").exists());
    assert_eq!(names(dir.path()), siblings);

    // The files are as a daemon leaves them that is killed now. The thread reads the state until it ends.
    let ActiveRebuild { thread, positions, .. } = rebuilder.running.take().unwrap();
    drop(positions);
    thread.join().unwrap();
    drop(state);
    let backup = dir.path().join("backup");
    crate::state::recovery::backup_closed(&crate::config::Config::default(), &state_dir, &backup, &|_| ()).unwrap();
    assert!(running.exists() && !rebuild_dir(&backup).exists());
    let opened = State::open(&backup, StoreSettings { create: false, ..store }, EngineSettings::default()).unwrap();
    assert_eq!(opened.engine.model().now_ms(), START_MS + 98 * 60_000);
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

/// Scans that are made during a rebuild are in it.
#[test]
fn rebuilt_rows_equal_those_of_the_week() {
    let dir = tempfile::tempdir().unwrap();
    let position = write_log(dir.path(), &lines(0..300));
    let mut state = open_state(dir.path());
    observe(&mut state, &lines(0..300), |_| ());
    state.commit().unwrap();
    let all_time = WindowSpec { kind: WindowType::ALL_TIME, shape: Shape::AllTime, keep: 0 };
    let windows = WindowTypes::new(Calendar::default(), [all_time]).unwrap();
    state.engine.reload(EngineSettings { windows, ..EngineSettings::default() });
    let paths = paths_of(dir.path());
    let (step, _) = plan_window_types(&state.engine, &paths.log).unwrap().unwrap();
    state.apply_rebuild(&step).unwrap();

    let mut rebuilder = Rebuilder::new(&paths);
    rebuilder.begin(&state, &paths, position);
    while !rebuilder.is_ready() {
        let event = rebuilder.events.1.blocking_recv().unwrap();
        if let Some(send) = rebuilder.handle_event(event, position) {
            send();
        }
    }
    // The scans made in the meantime take several steps, too.
    observe(&mut state, &lines(300..1_500), |event| rebuilder.record(position + 1, event));
    state.commit().unwrap();
    while !rebuilder.import_step(&mut state, &mut |_| ()).unwrap() {
        state.commit().unwrap();
    }
    observe(&mut state, &lines(1_500..1_540), |_| ());
    let other_player = lines(1_540..1_541).replace("ann", "bob");
    observe(&mut state, &other_player, |_| ());
    state.commit().unwrap();
    let key = |window| RowKey { window, server: ServerKey(1), player: PlayerKey(1) };
    let week = Calendar::default().week(START_MS);
    let of_week = state.store.row(key(week.into())).unwrap().unwrap();
    let of_all = state.store.row(key(WindowKey { kind: WindowType::ALL_TIME, index: 0 })).unwrap();
    assert_eq!(of_all, Some(of_week));
}
