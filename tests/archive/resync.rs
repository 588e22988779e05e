//! A resync fills an empty archive in a real MariaDB from a state, exactly once although the
//! daemon is killed meanwhile. An ignored test measures how long it takes.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::database::{Database, Server};
use crate::scans;
use clqd::api::requests;
use clqd::archive::{ArchiveSettings, JobSource, OutboxQuery, SourceClosed, WorkerStatus};
use clqd::config::Config;
use clqd::daemon::Daemon;
use clqd::engine::{EngineSettings, StoreReader as _, WriterPlan, WriterRefusal};
use clqd::model::archive::ResyncStep;
use clqd::model::commit::{Meta, RowKey, WeekPhase, WeekState};
use clqd::model::outbox::{ResyncCursor, WriterBeat, WriterRow};
use clqd::model::packed_row::PackedRow;
use clqd::model::row::PlayerRow;
use clqd::model::server::PlayerRecord;
use clqd::model::{ArchiveJob, Commit, GameKey, OutboxEntry, OutboxKey, PlayerKey, ServerKey, WeekKey};
use clqd::state::State;
use clqd::store::{Store, StoreSettings};
use tokio::sync::watch;

const FROM_MS: i64 = 1_764_064_800_000; // Tuesday 2025-11-25 10:00 UTC
const SERVERS: u32 = 30;
const PLAYERS: u32 = 12;

fn open(dir: &Path) -> State {
    let engine = EngineSettings { archive_enabled: true, ..EngineSettings::default() };
    State::open(dir, StoreSettings { cache_bytes: 64 << 20, create: true }, engine).unwrap()
}

fn url(server: u32) -> String {
    format!("quake3://10.0.{}.{}:27960", server / 250, server % 250)
}

/// Each server has 12 players, who are replaced twice.
fn play(opened: &mut State) {
    for round in 0..6 {
        for server in 0..SERVERS {
            let t_ms = FROM_MS + round * 120_000 + i64::from(server);
            let names = (0..PLAYERS).map(|n| (format!("player {server} {} {n}", round / 2), round % 2 * i64::from(n)));
            scans::apply_snapshot(opened, &url(server), scans::snapshot(t_ms, names));
        }
        opened.commit().unwrap();
    }
}

/// The job source of a worker; it records the chunks that were acknowledged.
#[derive(Clone)]
struct Source {
    opened: Arc<Mutex<State>>,
    /// The starts of the acknowledged chunks.
    chunks: Arc<Mutex<Vec<ResyncCursor>>>,
    /// The daemon is killed after this number of acknowledged chunks.
    kill_at: usize,
}

impl JobSource for Source {
    async fn pending_jobs(&self, query: OutboxQuery) -> Result<Vec<(OutboxEntry, ArchiveJob)>, SourceClosed> {
        Ok(scans::pending_jobs(&mut self.opened.lock().unwrap(), &query))
    }

    async fn plan_writer(
        &self,
        found: Option<u64>,
        row: Option<WriterRow>,
        resyncs_older: bool,
    ) -> Result<Result<WriterPlan, WriterRefusal>, SourceClosed> {
        let mut opened = self.opened.lock().unwrap();
        let plan = opened.engine.model().plan_archive_writer(found, row, 77, resyncs_older);
        let plan = plan.map(|(plan, steps)| {
            steps.into_iter().for_each(|step| opened.engine.apply_archive_step(step));
            plan
        });
        opened.commit().unwrap();
        Ok(plan)
    }

    async fn next_resync_chunk(&self, from: Option<ResyncCursor>) -> Result<ResyncStep, SourceClosed> {
        let mut opened = self.opened.lock().unwrap();
        opened.commit().unwrap();
        Ok(opened.engine.model().resync_chunk(&opened.store, from, 25, 100).unwrap())
    }

    async fn acknowledge_resync_chunk(
        &self,
        from: ResyncCursor,
        next: ResyncCursor,
        postponed: Vec<OutboxKey>,
        _: WriterBeat,
    ) -> Result<bool, SourceClosed> {
        let is_next = self.opened.lock().unwrap().engine.acknowledge_resync(from, next, &postponed);
        assert!(is_next, "no other resync has started");
        let mut chunks = self.chunks.lock().unwrap();
        chunks.push(from);
        if chunks.len() == self.kill_at { Err(SourceClosed) } else { Ok(is_next) }
    }

    async fn acknowledge(&self, entries: Vec<OutboxEntry>, _: WriterBeat) -> Result<(), SourceClosed> {
        scans::acknowledge(&mut self.opened.lock().unwrap(), &entries);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn empty_archive_is_filled_once_despite_kills() {
    let database = Database::new().await;
    database.migrate().await;
    let dir = tempfile::tempdir().unwrap();
    let mut opened = open(dir.path());
    play(&mut opened);
    // Everything was already archived to another database.
    let jobs = opened.engine.archive_jobs(&opened.store, None, None, usize::MAX, usize::MAX).unwrap();
    opened.engine.acknowledge_archived(&jobs.iter().map(|(entry, _)| *entry).collect::<Vec<_>>());
    opened.commit().unwrap();
    assert_eq!((opened.store.outbox_len(), opened.engine.model().resync_position()), (0, None));

    let settings = ArchiveSettings { interval_s: 2, ..database.settings() };
    let (mut all, mut written, mut runs) = (Vec::new(), 0, 0);
    loop {
        runs += 1;
        // The third run is not killed.
        let kill_at = if runs < 3 { 9 } else { usize::MAX };
        let source = Source { opened: Arc::new(Mutex::new(opened)), chunks: Arc::default(), kill_at };
        let (status, seen) = watch::channel(WorkerStatus::default());
        clqd::archive::run(settings.clone(), source.clone(), || 1, async {}, status).await;
        all.extend(source.chunks.lock().unwrap().drain(..));
        written += seen.borrow().entries_written;
        assert_eq!(seen.borrow().failures, 0);
        drop(Arc::into_inner(source.opened).expect("the worker has ended").into_inner().unwrap());
        opened = open(dir.path());
        if opened.engine.model().resync_position().is_none() {
            break;
        }
    }
    assert_eq!(runs, 3, "killed twice");
    assert!(all.is_sorted(), "only the chunk that was not committed is repeated: {all:?}");
    assert_eq!(all.iter().filter(|at| **at == ResyncCursor::START).count(), 1, "{all:?}");

    let known = u64::from(SERVERS * PLAYERS * 3);
    // Those of the last players are open.
    let sessions = u64::from(SERVERS * PLAYERS * 2);
    for (sql, want) in [
        ("SELECT COUNT(*) FROM server", u64::from(SERVERS)),
        ("SELECT COUNT(*) FROM player", known),
        ("SELECT COUNT(*) FROM player_week", known),
        ("SELECT COUNT(*) FROM online_player", u64::from(SERVERS * PLAYERS)),
        ("SELECT COUNT(*) FROM player_session", sessions),
        ("SELECT SUM(seen) FROM player_session", 2 * sessions),
        ("SELECT state_id FROM clq_state", 77),
    ] {
        assert_eq!(database.value(sql).await, want.to_string(), "{sql}");
    }
    // Every entry once, the players of lists twice, and entries that a kill repeats.
    let entries_min = 2 + known + u64::from(SERVERS * PLAYERS) + 2 * u64::from(SERVERS) + sessions;
    let entries_max = entries_min + 2 * 4 * u64::from(PLAYERS + 1) + sessions;
    assert!(
        (entries_min..=entries_max).contains(&written),
        "{written} entries; expected {entries_min} to {entries_max}"
    );
}

/// Writes a million rows of the current week, each of a different player, on a thousand servers.
fn write_million_rows(dir: &Path, settings: EngineSettings) {
    let from_ms = clqd::clock::system_ms() - 600_000;
    const ROWS_PER_SERVER: u32 = 1_000;
    const SERVERS: u32 = 1_000;
    let store = StoreSettings { cache_bytes: 256 << 20, create: true };
    let mut opened = State::open(dir, store, settings).unwrap();
    for server in 0..SERVERS {
        scans::apply_snapshot(&mut opened, &url(server), scans::snapshot(from_ms + i64::from(server), [("Visor", 1)]));
    }
    opened.commit().unwrap();
    drop(opened);
    let mut store = Store::open(dir, store).unwrap();
    let meta = store.load().unwrap().meta;
    let week = meta.weeks[0].week;
    assert_eq!(meta.weeks, [WeekState { week, phase: WeekPhase::Running }]);
    let first = meta.next_player;
    let meta = Meta { next_player: first + SERVERS * ROWS_PER_SERVER, ..meta };
    for server in 0..SERVERS {
        let mut commit = Commit { meta: Some(meta.clone()), ..Commit::default() };
        let players = (0..ROWS_PER_SERVER).map(|n| PlayerKey(first + server * ROWS_PER_SERVER + n));
        let record = |player: PlayerKey| {
            let name = format!("player {:08x}", player.0.wrapping_mul(2_654_435_761));
            (player, PlayerRecord { game: GameKey(1), name: name.as_str().into(), display: name.as_str().into() })
        };
        commit.players = vec![players.clone().map(record).collect()];
        commit.rows = players.map(|player| row(week, ServerKey(server + 1), player)).collect();
        store.apply(&commit).unwrap();
    }
}

fn row(week: WeekKey, server: ServerKey, player: PlayerKey) -> (RowKey, PackedRow) {
    let x = player.0.wrapping_mul(2_654_435_761) >> 8;
    let mut row = PlayerRow::new(FROM_MS, 900.0 + f64::from(x % 2_000) / 7.0);
    (row.measured_ms, row.starts, row.points) = (u64::from(x), 3, i64::from(x % 900));
    (0..10).for_each(|i| row.clq1_segments.insert(u64::from(x >> i) % 60_000, FROM_MS));
    (RowKey { window: week.into(), server, player }, PackedRow::pack(&row))
}

/// `cargo test --release --test archive resync -- --ignored --nocapture` prints the duration.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement of a minute"]
async fn resync_of_million_rows_is_measured() {
    // Default settings of MariaDB, except for its memory.
    let options = ["--innodb-buffer-pool-size=1G", "--max-allowed-packet=16M", "--innodb-flush-log-at-trx-commit=1"];
    let server = tokio::task::spawn_blocking(move || Server::start_with(&options)).await.unwrap();
    let database = Database::on_server(Arc::new(server)).await;
    database.migrate().await;
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config { state_dir: dir.path().join("state"), ..Config::default() };
    (config.control_socket, config.archive.url) = (dir.path().join("socket"), database.url());
    config.web.listen.clear();
    config.archive.interval_s = 10;
    let settings = EngineSettings { archive_enabled: false, ..config.engine_settings().unwrap() };
    let state = config.state_dir.clone();
    tokio::task::spawn_blocking(move || write_million_rows(&state, settings)).await.unwrap();

    let began = Instant::now();
    let daemon = Daemon::start(config, None, None).await.unwrap();
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let archive = daemon.read(requests::Status {}).await.unwrap().archive.unwrap();
        println!("{:.0} s: {:?}, {:?}", began.elapsed().as_secs_f64(), archive.public.resync, archive.public.fault);
        if archive.public.last_complete_ms.is_some() {
            break;
        }
    }
    println!("resync took {:.1} s", began.elapsed().as_secs_f64());
    assert_eq!(database.value("SELECT COUNT(*) FROM player_week").await, "1001000");
    assert_eq!(database.value("SELECT COUNT(*) FROM player").await, "1000001");
    daemon.stop().await.unwrap();
}
