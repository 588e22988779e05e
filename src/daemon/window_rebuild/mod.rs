//! Rebuilds windows from the scan log in parallel with the engine's work. A second engine
//! on its own thread, with its own state inside the state directory, replays the recorded
//! scans while scans continue and requests are answered.
//!
//! Scans recorded during a rebuild are also written to chunk files. The rebuild thread
//! replays one chunk after another until it has caught up. Then the engine thread continues
//! in small steps between its other work: it imports the rows, replays the scans recorded
//! in the meantime, and imports the rows they changed. Each round is shorter than the one
//! before; the last one is a single step. After a crash the rebuild starts again from the
//! beginning.

mod replay_job;

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::Context;
use tokio::sync::mpsc;

use crate::board::window::type_name;
use crate::config::rebuild_dir;
use crate::daemon::window_rebuild::replay_job::{Lines, LogChunk, ReplayJob, next_outcome};
use crate::engine::{Engine, Event, Outcome, RebuiltState, WindowImport};
use crate::model::ServerUrl;
use crate::scan_log::{self, LossyReader};
use crate::state::State;
use crate::store::StoreSettings;

/// Scans that the engine thread replays in one step, and at most in the last step: some
/// milliseconds.
const LINES_PER_STEP: u64 = 200;

/// Rows imported in one step of the engine thread and then committed: some 20 ms.
const ROWS_PER_STEP: usize = 2_000;

/// Files that a rebuild uses.
pub struct RebuildPaths {
    pub state_dir: PathBuf,
    /// `None`: scans are not recorded.
    pub log: Option<PathBuf>,
    pub cache_bytes: u64,
}

/// Starts the rebuild of window types that are new, have changed boundaries, or were being
/// rebuilt; without a scan log they start empty. Returns messages for the admin.
pub fn plan_window_types(engine: &mut Engine, log: Option<&Path>) -> Vec<String> {
    let types = engine.types_to_rebuild();
    if types.is_empty() {
        return Vec::new();
    }
    let names = types.into_iter().map(type_name).collect::<Vec<_>>().join(", ");
    let note = match (log, log.and_then(first_scan_ms)) {
        (_, Some(from_ms)) => {
            engine.start_rebuild(from_ms);
            let note = format!("windows of type {names} are being rebuilt from the scan log");
            tracing::info!("{note}");
            note
        }
        (Some(log), None) => {
            engine.start_types_empty();
            let log = log.display();
            let note = format!("windows of type {names} begin empty: the scan log {log} has no scans yet");
            tracing::info!("{note}");
            note
        }
        (None, None) => {
            engine.start_types_empty();
            let note = format!(
                "windows of type {names} begin now: there is no scan log (setting scan_log.path) to rebuild earlier time from"
            );
            tracing::warn!("{note}");
            note
        }
    };
    vec![note]
}

/// Time of the oldest readable line.
fn first_scan_ms(log: &Path) -> Option<i64> {
    let files = scan_log::compressed_files(log).into_iter().chain([scan_log::rotated_file(log), log.to_owned()]);
    files.filter_map(|file| scan_log::open(&file).ok()?.find_map(Result::ok)).map(|(_, outcome)| outcome.t_ms()).next()
}

/// Events of the rebuild thread.
pub enum JobEvent {
    /// Requests the next chunk of the scans recorded since the beginning.
    Part,
    /// The rebuilt state: all recorded scans except those of the current chunk.
    Made(Box<State>),
    Failed(anyhow::Error),
}

/// An event, and the number of the rebuild that sent it.
pub type NumberedEvent = (u64, JobEvent);

/// The rebuild in progress, if there is one.
pub struct Rebuilder {
    steps: (mpsc::Sender<NumberedEvent>, mpsc::Receiver<NumberedEvent>),
    number: u64,
    running: Option<ActiveRebuild>,
    /// Why the rebuild could not start.
    failed: Option<anyhow::Error>,
}

struct ActiveRebuild {
    dir: PathBuf,
    thread: JoinHandle<()>,
    from_ms: i64,
    /// Recorded scans that are not yet in `part`.
    buffer: Vec<u8>,
    part: File,
    part_number: u64,
    part_lines: u64,
    parts: std::sync::mpsc::Sender<LogChunk>,
    over: Arc<AtomicBool>,
    result: Option<anyhow::Result<Box<State>>>,
    stage: ImportStage,
    /// The chunk that the engine thread replays.
    lines: Option<Lines>,
}

/// Progress of the import by the engine thread.
enum ImportStage {
    /// Until the state is rebuilt and the old rows are swept.
    Replaying,
    Importing(WindowImport),
    /// All rebuilt rows are imported.
    CatchingUp(WindowImport),
}

impl Rebuilder {
    /// Removes files left by an earlier process.
    pub fn new(place: &RebuildPaths) -> Rebuilder {
        let dir = rebuild_dir(&place.state_dir);
        if let Err(error) = fs::remove_dir_all(&dir)
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!(%error, dir = %dir.display(), "cannot remove the files of an earlier window rebuild");
        }
        Rebuilder { steps: mpsc::channel(1), number: 0, running: None, failed: None }
    }

    /// Starts a new rebuild. All recorded scans must be in the log files.
    pub fn begin(&mut self, engine: &mut Engine, place: &RebuildPaths) {
        self.cleanup();
        self.number += 1;
        match self.start_job(engine, place) {
            Ok(running) => self.running = Some(running),
            Err(error) => self.failed = Some(error),
        }
    }

    fn start_job(&self, engine: &mut Engine, place: &RebuildPaths) -> anyhow::Result<ActiveRebuild> {
        let log = place.log.clone().context("scans are not recorded")?;
        let dir = create_job_dir(&place.state_dir)?;
        // A rotation truncates the current file.
        let running = dir.join("log.jsonl");
        fs::copy(&log, &running).with_context(|| format!("cannot copy {}", log.display()))?;
        // Opened before the others are listed: if it is compressed in the meantime it is
        // also among them, and duplicate scans are skipped.
        let closed = File::open(scan_log::rotated_file(&log)).ok();
        let packed = scan_log::compressed_files(&log).into_iter().map(|file| Ok(fs::metadata(file)?.ino()));
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let from_ms = engine.replay_from_ms();
        let mut job = ReplayJob {
            dir: dir.clone(),
            store: StoreSettings { cache_bytes: place.cache_bytes, create: true },
            settings: engine.rebuild_settings(),
            tags: engine.tags_of_servers(),
            from_ms,
            packed: packed.collect::<std::io::Result<_>>().context("cannot read the scan log")?,
            closed,
            log,
            over: is_cancelled.clone(),
        };
        let (chunks_tx, chunks_rx) = std::sync::mpsc::channel();
        let (steps, number) = (self.steps.0.clone(), self.number);
        let work = move || {
            let result = job.run(&mut || {
                steps.blocking_send((number, JobEvent::Part)).ok()?;
                chunks_rx.recv().ok()
            });
            // While the daemon stops there is no receiver.
            _ = match result {
                Ok(state) => steps.blocking_send((number, JobEvent::Made(Box::new(state)))),
                Err(error) => steps.blocking_send((number, JobEvent::Failed(error))),
            };
        };
        let thread = std::thread::Builder::new().name("rebuild".to_owned()).spawn(work)?;
        let part = File::create(part_path(&dir, 0))?;
        Ok(ActiveRebuild {
            dir,
            thread,
            from_ms,
            buffer: Vec::new(),
            part,
            part_number: 0,
            part_lines: 0,
            parts: chunks_tx,
            over: is_cancelled,
            result: None,
            stage: ImportStage::Replaying,
            lines: None,
        })
    }

    /// The next event; waits forever while nothing is rebuilt.
    pub async fn next_event(&mut self) -> NumberedEvent {
        self.steps.1.recv().await.expect("one sender is held here")
    }

    pub fn handle_event(&mut self, (number, step): NumberedEvent) {
        let Some(running) = self.running.as_mut().filter(|_| number == self.number) else { return };
        match step {
            JobEvent::Part => match running.next_part() {
                // The thread has ended only if it failed, and then sends the error.
                Ok(chunk) => _ = running.parts.send(chunk),
                Err(error) => running.result = Some(Err(error)),
            },
            JobEvent::Made(state) => running.result = Some(Ok(state)),
            JobEvent::Failed(error) => running.result = Some(Err(error)),
        }
    }

    /// Adds a recorded scan to the current chunk.
    pub fn record(&mut self, url: &ServerUrl, outcome: &Outcome) {
        let Some(running) = &mut self.running else { return };
        scan_log::write(&mut running.buffer, url, outcome);
        running.part_lines += 1;
        if running.buffer.len() > 1 << 16
            && let Err(error) = running.flush()
        {
            running.result = Some(Err(error));
        }
    }

    /// Whether a rebuilt state or an error waits to be processed.
    pub fn is_ready(&self) -> bool {
        self.failed.is_some() || self.running.as_ref().is_some_and(|running| running.result.is_some())
    }

    /// Whether the next import step is due at once.
    pub fn is_importing(&self) -> bool {
        let is_made =
            |running: &ActiveRebuild| running.result.is_some() && !matches!(running.stage, ImportStage::Replaying);
        self.running.as_ref().is_some_and(is_made)
    }

    /// One import step, as soon as the old rows are swept. All changes must be committed
    /// before it. Returns whether the rebuild is finished.
    pub fn import_step(&mut self, state: &mut State) -> anyhow::Result<bool> {
        let step = match self.failed.take() {
            Some(error) => Err(error),
            None => self.running.as_mut().map_or(Ok(None), |running| running.step(state)),
        };
        match step {
            Ok(None) => return Ok(false),
            Ok(Some(windows)) => tracing::info!(windows, "windows were rebuilt from the scan log"),
            Err(error) => {
                tracing::warn!("windows cannot be rebuilt from the scan log and begin empty now: {error:#}");
                state.engine.start_types_empty();
            }
        }
        self.cleanup();
        state.commit()?;
        Ok(true)
    }

    /// Frees all resources of the rebuild on another thread.
    fn cleanup(&mut self) {
        let Some(running) = self.running.take() else { return };
        running.over.store(true, Ordering::Relaxed);
        std::thread::spawn(move || {
            let ActiveRebuild { dir, thread, parts, result, .. } = running;
            // The thread waits for a chunk; dropping the sender ends the wait.
            drop((parts, result));
            // The thread has logged its errors.
            _ = thread.join();
            if let Err(error) = fs::remove_dir_all(&dir) {
                tracing::warn!(%error, dir = %dir.display(), "cannot remove the files of a window rebuild");
            }
            // Fails while another rebuild has its directory there.
            dir.parent().map(fs::remove_dir);
        });
    }
}

impl Drop for Rebuilder {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.over.store(true, Ordering::Relaxed);
        }
    }
}

impl ActiveRebuild {
    /// Returns the number of imported windows when the import is complete.
    fn step(&mut self, state: &mut State) -> anyhow::Result<Option<usize>> {
        let Some(rebuilt) = self.result.take() else { return Ok(None) };
        let mut rebuilt = rebuilt?;
        let windows = self.step_with(&mut rebuilt, state)?;
        self.result = Some(Ok(rebuilt));
        Ok(windows)
    }

    fn step_with(&mut self, rebuilt: &mut State, state: &mut State) -> anyhow::Result<Option<usize>> {
        match std::mem::replace(&mut self.stage, ImportStage::Replaying) {
            ImportStage::Replaying => {
                rebuilt.commit()?;
                let begun = state.engine.begin_import(&state.store, &rebuilt.engine);
                self.stage = begun.map_or(ImportStage::Replaying, ImportStage::Importing);
            }
            ImportStage::Importing(import) | ImportStage::CatchingUp(import)
                if state.engine.is_import_outdated(&import) =>
            {
                state.engine.abort_import();
            }
            ImportStage::Importing(mut import) => {
                if import_rows(state, rebuilt, &mut import, ROWS_PER_STEP)? {
                    self.stage = ImportStage::Importing(import);
                    return Ok(None);
                }
                rebuilt.commit()?;
                if self.lines.is_none() {
                    let part = self.next_part()?;
                    self.lines = Some(LossyReader::new(scan_log::open(&part.path)?));
                    // The file stays readable while it is open.
                    _ = fs::remove_file(&part.path);
                    if part.lines <= LINES_PER_STEP {
                        while self.replay_some(rebuilt)? {}
                        state.engine.collect_changes(&mut import, &rebuilt.engine);
                        while import_rows(state, rebuilt, &mut import, usize::MAX)? {}
                        return Ok(Some(state.engine.finish_import(&rebuilt.engine)));
                    }
                }
                self.stage = ImportStage::CatchingUp(import);
            }
            ImportStage::CatchingUp(mut import) => {
                self.stage = if self.replay_some(rebuilt)? {
                    ImportStage::CatchingUp(import)
                } else {
                    state.engine.collect_changes(&mut import, &rebuilt.engine);
                    ImportStage::Importing(import)
                };
            }
        }
        Ok(None)
    }

    /// Replays some lines of the current chunk without a commit: the uncommitted changes
    /// are the rows to import. Returns whether there are more lines.
    fn replay_some(&mut self, rebuilt: &mut State) -> anyhow::Result<bool> {
        let Some(lines) = &mut self.lines else { return Ok(false) };
        for _ in 0..LINES_PER_STEP {
            let Some((url, outcome)) = next_outcome(lines, self.from_ms)? else {
                self.lines = None;
                return Ok(false);
            };
            rebuilt.handle(Event::Replayed { url, outcome })?;
        }
        Ok(true)
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        let written = self.part.write_all(&self.buffer);
        written.with_context(|| format!("cannot write to {}", self.dir.display()))?;
        self.buffer.clear();
        Ok(())
    }

    /// Finishes the current chunk file and starts the next.
    fn next_part(&mut self) -> anyhow::Result<LogChunk> {
        self.flush()?;
        let chunk = LogChunk { path: part_path(&self.dir, self.part_number), lines: self.part_lines };
        (self.part_number, self.part_lines) = (self.part_number + 1, 0);
        let path = part_path(&self.dir, self.part_number);
        self.part = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(chunk)
    }
}

/// Imports about `most` rows. Returns whether there are more.
fn import_rows(state: &mut State, rebuilt: &State, import: &mut WindowImport, most: usize) -> anyhow::Result<bool> {
    let reader = rebuilt.store.reader();
    let rebuilt = RebuiltState { engine: &rebuilt.engine, reader: &rebuilt.store, window_reader: &reader };
    Ok(state.engine.import_batch(import, &state.store, &rebuilt, most)?)
}

/// A separate directory for each rebuild: that of the previous one may still be in use or
/// may just be being removed.
fn create_job_dir(state_dir: &Path) -> anyhow::Result<PathBuf> {
    let dir = rebuild_dir(state_dir);
    let create = || fs::create_dir_all(&dir).and_then(|()| tempfile::Builder::new().prefix("").tempdir_in(&dir));
    // The cleanup of another rebuild may remove the outer directory once in between.
    let created = create().or_else(|_| create());
    Ok(created.with_context(|| format!("cannot create a directory in {}", dir.display()))?.keep())
}

fn part_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("part-{number}.jsonl"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::window::{Shape, WindowSpec, WindowTypes};
    use crate::engine::{EngineSettings, StateReader};
    use crate::model::calendar::Calendar;
    use crate::model::commit::RowKey;
    use crate::model::{PlayerKey, ServerKey, WindowKey, WindowType};
    use crate::state::ReplayFeed;

    /// The messages when days are added to the settings.
    fn noted(log: Option<&Path>) -> (Vec<String>, bool) {
        let dir = tempfile::tempdir().unwrap();
        let store = StoreSettings { cache_bytes: 16 << 20, create: true };
        let mut state = State::open(dir.path(), store, EngineSettings::default()).unwrap();
        let url = ServerUrl::parse("quake3://10.0.0.1:27960").unwrap();
        let outcome = Outcome::Miss { t_ms: 1_764_064_800_000, reason: "silent".into() };
        ReplayFeed::background().observe(&mut state, url, outcome).unwrap();
        let days = WindowSpec { kind: WindowType::DAY, shape: Shape::Day, keep: 3 };
        let windows = WindowTypes::new(Calendar::default(), [days]).unwrap();
        state.engine.reload(EngineSettings { windows, ..EngineSettings::default() });
        assert!(state.engine.has_changed_types());
        let notes = plan_window_types(&mut state.engine, log);
        (notes, !state.engine.types_to_rebuild().is_empty())
    }

    #[test]
    fn new_window_type_reports_how_it_is_filled() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("scans.jsonl");
        let (notes, rebuilding) = noted(None);
        assert!(!rebuilding && notes[0].contains("day begin now: there is no scan log"), "{notes:?}");

        fs::write(&log, "").unwrap();
        let (notes, rebuilding) = noted(Some(&log));
        let expected = format!("windows of type day begin empty: the scan log {} has no scans yet", log.display());
        assert_eq!((notes, rebuilding), (vec![expected], false));

        fs::write(&log, "{\"t\":1764064700000,\"server\":\"quake3://10.0.0.1:27960\",\"miss\":true}\n").unwrap();
        let (notes, rebuilding) = noted(Some(&log));
        assert_eq!((&*notes[0], rebuilding), ("windows of type day are being rebuilt from the scan log", true));
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

    /// The first rebuild is cancelled and cleaned up while the second is running.
    #[test]
    fn cleanup_of_a_rebuild_keeps_the_files_of_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("scans.jsonl");
        fs::write(&log, lines(0..100)).unwrap();
        let store = StoreSettings { cache_bytes: 16 << 20, create: true };
        let mut state = State::open(&dir.path().join("state"), store, EngineSettings::default()).unwrap();
        let place = RebuildPaths { state_dir: dir.path().join("state"), log: Some(log), cache_bytes: 16 << 20 };
        let leftover = rebuild_dir(&place.state_dir).join("of an earlier process");
        fs::create_dir_all(&leftover).unwrap();
        let mut rebuilder = Rebuilder::new(&place);
        assert!(!leftover.exists());
        let mut first: Option<PathBuf> = None;
        for _ in 0..5 {
            rebuilder.begin(&mut state.engine, &place);
            assert!(rebuilder.failed.is_none(), "{:?}", rebuilder.failed);
            let running = rebuilder.running.as_ref().unwrap().dir.clone();
            // Its cleanup is finished, at the latest, when its directory is gone.
            let began = std::time::Instant::now();
            while first.as_ref().is_some_and(|first| first.exists()) {
                assert!(began.elapsed().as_secs() < 90, "the first directory is removed");
                // As the daemon does; events of the first rebuild are ignored.
                _ = rebuilder.steps.1.try_recv();
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            assert!(part_path(&running, 0).exists() && running.join("log.jsonl").exists());
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
        observe(&mut state, &lines(0..100), |_, _| ());
        state.commit().unwrap();
        let siblings = names(dir.path());
        let place = RebuildPaths { state_dir: state_dir.clone(), log: Some(log), cache_bytes: 16 << 20 };
        let mut rebuilder = Rebuilder::new(&place);
        rebuilder.begin(&mut state.engine, &place);
        let running = rebuilder.running.as_ref().expect("the rebuild has started").dir.clone();
        // The whole log is replayed when the thread requests a chunk.
        let (_, step) = rebuilder.steps.1.blocking_recv().unwrap();
        assert!(matches!(step, JobEvent::Part) && running.join("state/db").exists());
        assert_eq!(names(dir.path()), siblings);

        // The files are as a daemon leaves them that is killed now.
        drop(state);
        let backup = dir.path().join("backup");
        crate::store::backup_closed(&state_dir, &backup, 16 << 20).unwrap();
        assert!(running.exists() && !rebuild_dir(&backup).exists());
        let opened = State::open(&backup, StoreSettings { create: false, ..store }, EngineSettings::default()).unwrap();
        assert_eq!(opened.engine.now_ms(), 1_764_064_800_000 + 98 * 60_000);
        let ActiveRebuild { thread, parts, .. } = rebuilder.running.take().unwrap();
        drop(parts);
        thread.join().unwrap();
        Rebuilder::new(&place);
        assert!(!rebuild_dir(&state_dir).exists());
    }

    fn observe(state: &mut State, lines: &str, mut each: impl FnMut(&ServerUrl, &Outcome)) {
        for line in lines.lines() {
            let (url, outcome) = scan_log::parse(line).unwrap();
            each(&url, &outcome);
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
        observe(&mut state, &lines(0..300), |_, _| ());
        state.commit().unwrap();
        let all_time = WindowSpec { kind: WindowType::ALL_TIME, shape: Shape::AllTime, keep: 0 };
        let windows = WindowTypes::new(Calendar::default(), [all_time]).unwrap();
        state.engine.reload(EngineSettings { windows, ..EngineSettings::default() });
        plan_window_types(&mut state.engine, Some(&log));
        state.commit().unwrap();

        let place = RebuildPaths { state_dir: dir.path().join("state"), log: Some(log.clone()), cache_bytes: 16 << 20 };
        let mut rebuilder = Rebuilder::new(&place);
        rebuilder.begin(&mut state.engine, &place);
        fs::write(named("1.zst"), zst(lines(100..200))).unwrap();
        fs::remove_file(named("1.packing")).unwrap();
        while !rebuilder.is_ready() {
            let step = rebuilder.steps.1.blocking_recv().unwrap();
            rebuilder.handle_event(step);
        }
        // The scans made in the meantime take several steps, too.
        observe(&mut state, &lines(300..1_500), |url, outcome| rebuilder.record(url, outcome));
        state.commit().unwrap();
        while !rebuilder.import_step(&mut state).unwrap() {
            state.commit().unwrap();
        }
        observe(&mut state, &lines(1_500..1_540), |_, _| ());
        let other_player = lines(1_540..1_541).replace("ann", "bob");
        observe(&mut state, &other_player, |_, _| ());
        state.commit().unwrap();
        let key = |window| RowKey { window, server: ServerKey(1), player: PlayerKey(1) };
        let week = Calendar::default().week(1_764_064_800_000);
        let of_week = state.store.row(key(week.into())).unwrap().unwrap();
        let of_all = state.store.row(key(WindowKey { kind: WindowType::ALL_TIME, index: 0 })).unwrap();
        assert_eq!(of_all, Some(of_week));
    }
}
