//! A server with 50,000 players in one week, archived in chunks of 1,000 to a real MariaDB
//! while the connection is cut, processes are killed and corrections are made. The tables
//! never contain rows of two versions of the week, and at the end they equal the state.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::database::Database;
use crate::database::proxy::{Plan, Proxy};
use crate::scans;
use clqd::archive::{ArchiveSettings, JobSource, OutboxQuery, SourceClosed, WorkerStatus};
use clqd::board;
use clqd::engine::{EngineSettings, StateReader, StoreReader};
use clqd::model::archive::{PlayerWeekArchive, WeekChunk, WeekChunkRequest};
use clqd::model::outbox::WriterBeat;
use clqd::model::{ArchiveJob, OutboxEntry, Ranking, ServerKey, Snapshot, WeekKey, WindowKey};
use clqd::state::State;
use clqd::store::StoreSettings;
use clqd::view::board::PlayerSelector;
use tokio::sync::watch;

const CHUNK_ROWS: usize = 1_000;
const LIST: u32 = 1_000;
const LISTS: u32 = 50;
const FROM_MS: i64 = 1_764_064_800_000; // Tuesday 2025-11-25 10:00 UTC
const WEEK_OVER_MS: i64 = 1_764_547_200_000 + 60_000;

fn open(dir: &Path) -> State {
    let mut engine =
        EngineSettings { archive_enabled: true, archive_chunk_rows: CHUNK_ROWS, ..EngineSettings::default() };
    // The server has more new players in an hour than screening permits in a day.
    engine.rules.screen.enabled = false;
    State::open(dir, StoreSettings { cache_bytes: 64 << 20, create: true }, engine).unwrap()
}

fn observe(state: &mut State, t_ms: i64, names: impl Iterator<Item = u32>, points: impl Fn(u32) -> i64) {
    let players = names.map(|n| (format!("player {n}"), points(n)));
    scans::apply_snapshot(state, "quake3://10.0.0.1:27960", Snapshot { slots: LIST, ..scans::snapshot(t_ms, players) });
}

/// Each list is scanned twice: its players enter, then score.
fn play(state: &mut State) {
    for list in 0..LISTS {
        let names = || list * LIST..(list + 1) * LIST;
        let t_ms = FROM_MS + i64::from(list) * 240_000;
        observe(state, t_ms, names(), |_| 0);
        observe(state, t_ms + 120_000, names(), |n| i64::from(n * 7_919 % 9_973) - 50);
    }
    state.commit().unwrap();
}

/// The job source of a worker; it counts the chunks that it has returned.
#[derive(Clone)]
struct Outbox {
    state: Arc<Mutex<State>>,
    chunks: Arc<AtomicUsize>,
    /// A player is forgotten after this number of chunks.
    forget_at: usize,
}

impl JobSource for Outbox {
    async fn pending_jobs(&self, query: OutboxQuery) -> Result<Vec<(OutboxEntry, ArchiveJob)>, SourceClosed> {
        Ok(scans::pending_jobs(&mut self.state.lock().unwrap(), &query))
    }

    async fn next_week_chunk(&self, request: WeekChunkRequest) -> Result<WeekChunk, SourceClosed> {
        let mut state = self.state.lock().unwrap();
        let State { engine, store } = &mut *state;
        let chunk = engine.week_chunk(store, request).unwrap();
        if let WeekChunk::Chunk { week, .. } = &chunk {
            assert!(week.rows.len() <= CHUNK_ROWS + LIST as usize);
            if self.chunks.fetch_add(1, Ordering::Relaxed) + 1 == self.forget_at {
                engine
                    .forget_player(store, "baseq3", &PlayerSelector::Name("player 40007".into()), WEEK_OVER_MS)
                    .unwrap();
                state.commit().unwrap();
            }
        }
        Ok(chunk)
    }

    async fn acknowledge(&self, entries: Vec<OutboxEntry>, _: WriterBeat) -> Result<(), SourceClosed> {
        scans::acknowledge(&mut self.state.lock().unwrap(), &entries);
        Ok(())
    }
}

/// Runs a worker until everything is archived, or aborts it after `kill_at` chunks.
async fn run_process(
    state: State,
    settings: &ArchiveSettings,
    forget_at: usize,
    kill_at: usize,
) -> (State, Option<WorkerStatus>, usize) {
    let outbox = Outbox { state: Arc::new(Mutex::new(state)), chunks: Arc::default(), forget_at };
    let (status, seen) = watch::channel(WorkerStatus::default());
    let worker = tokio::spawn(clqd::archive::run(settings.clone(), outbox.clone(), || 1, async {}, status));
    while !worker.is_finished() && outbox.chunks.load(Ordering::Relaxed) < kill_at {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    worker.abort();
    let ended = worker.await.is_ok();
    let chunks = outbox.chunks.load(Ordering::Relaxed);
    let state = Arc::into_inner(outbox.state).expect("the worker has ended").into_inner().unwrap();
    let status = ended.then(|| seen.borrow().clone());
    (state, status, chunks)
}

/// Reads the tables repeatedly: they contain all of a week or nothing.
async fn watch_tables(database: &Database) {
    let mut conn = database.conn().await;
    loop {
        let seen: Vec<(u64, u64, u64, u64)> = mysql_async::prelude::Queryable::query(
            &mut conn,
            "SELECT COUNT(*), COUNT(points_order), COUNT(DISTINCT points_order), \
             COALESCE(MAX(points_position), COUNT(*)) FROM player_week",
        )
        .await
        .unwrap();
        let (rows, ranked, positions, last) = seen[0];
        // A forgotten player is deleted immediately; their position is unused until the week is
        // written again.
        let is_complete = (ranked, positions) == (rows, rows) && last.saturating_sub(rows) <= 1;
        assert!(is_complete, "{rows} rows, {ranked} of them ranked, {positions} positions up to {last}");
        assert!([0, 49_999, 50_000, 50_002].contains(&rows), "{rows}");
    }
}

async fn assert_tables_equal_state(database: &Database, state: &State) {
    let window = WindowKey::from(WeekKey(2_917));
    let rows = state.store.rows(window, ServerKey(1)).unwrap();
    assert_eq!(rows.len(), 50_002);
    let show = |position: Option<u32>| position.map_or("NULL".to_owned(), |position| position.to_string());
    let positions = board::order::Orders::default().positions(&rows);
    let want = rows.iter().zip(&positions).map(|((player, row), positions)| {
        let mut cells = vec![player.to_string(), row.points.to_string(), row.time_ms().to_string()];
        cells.push(row.elo_rounds.to_string());
        cells.extend(positions.map(show));
        cells
    });
    let columns = Ranking::ALL.map(|ranking| format!("{}_position", ranking.name())).join(", ");
    let select = format!("SELECT player, points, time_ms, elo_rounds, {columns} FROM player_week ORDER BY player");
    assert!(database.rows(&select).await.into_iter().eq(want), "rows of the week");
    let select = "SELECT player, ranking, position FROM best_position ORDER BY player, ranking";
    // Best positions are those at the close of the week.
    let best = rows.iter().flat_map(|(player, _)| {
        let best = state.store.best(ServerKey(1), *player).unwrap().expect("the week is closed");
        let of_ranking = |(ranking, positions): (Ranking, Vec<(u32, WeekKey)>)| {
            let (position, _) = *positions.first()?;
            Some(vec![player.to_string(), ranking.name().to_owned(), position.to_string()])
        };
        let positions = best.top_three();
        Ranking::WITH_BEST_POSITIONS.into_iter().zip(positions).filter_map(of_ranking).collect::<Vec<_>>()
    });
    assert!(database.rows(select).await.into_iter().eq(best), "best positions");
}

/// Rows of all kinds are mixed: committed, changed since the commit, not yet committed, and rows
/// of players that are present. Each step reads a limited number of them.
#[test]
fn chunks_contain_committed_pending_and_live_rows() {
    const CHUNK_ROWS: usize = 7;
    let dir = tempfile::tempdir().unwrap();
    let store = StoreSettings { cache_bytes: 16 << 20, create: true };
    let engine = EngineSettings { archive_enabled: true, archive_chunk_rows: CHUNK_ROWS, ..EngineSettings::default() };
    let mut state = State::open(dir.path(), store, engine).unwrap();
    let lists: [&dyn Fn(&u32) -> bool; 4] = [&|n| n % 2 == 0, &|n| n % 3 == 0, &|n| *n > 90, &|n| n % 11 == 0];
    for (list, n) in lists.iter().zip(0..) {
        // All players leave.
        observe(&mut state, FROM_MS + n * 240_000 - 1, (0..if n == 0 { 80 } else { 0 }).rev(), |_| 0);
        let names = || (0..if n == 0 { 80 } else { 100 }).filter(list);
        observe(&mut state, FROM_MS + n * 240_000, names(), |_| 0);
        observe(&mut state, FROM_MS + n * 240_000 + 120_000, names(), |n| i64::from(n) + 1);
        if n == 0 {
            state.commit().unwrap();
        }
    }
    let (week, server) = (WeekKey(2_917), ServerKey(1));
    let (mut steps, mut archived) = (0, Vec::new());
    let mut request = WeekChunkRequest::First { week, server };
    loop {
        match state.engine.week_chunk(&state.store, request).unwrap() {
            WeekChunk::Preparing => steps += 1,
            WeekChunk::Chunk { copy_id, week } => {
                assert!(week.rows.len() <= CHUNK_ROWS);
                let through = week.span.through;
                archived.extend(week.rows);
                request = WeekChunkRequest::Next { copy_id, after: through };
                if through.is_none() {
                    break;
                }
            }
            WeekChunk::NotAvailable => panic!("the week is available"),
        }
    }
    assert!(steps >= archived.len() / CHUNK_ROWS, "{steps} steps");
    // Positions are those of the order.
    let position = |row: &PlayerWeekArchive, ranking: usize| {
        let order = |row: &PlayerWeekArchive| row.places[ranking].as_ref().map(|place| place.order.to_bytes());
        let own = order(row)?;
        Some(1 + archived.iter().filter_map(order).filter(|other| *other < own).count() as u32)
    };
    let mut rows = Vec::new();
    state.commit().unwrap();
    let label = clqd::model::calendar::week_label(week);
    let each = |_: &str, _: &str, name: &str, row: &clqd::model::PlayerRow, positions: [Option<u32>; 5]| {
        rows.push((name.to_owned(), row.time_ms(), row.points, positions));
        Ok::<_, clqd::engine::ViewError>(())
    };
    state.engine.model().export(&state.store, &label, each).unwrap();
    let name = |player| state.store.player_record(player).unwrap().unwrap().name.to_string();
    let mut printed: Vec<_> = archived
        .iter()
        .map(|row| (name(row.player), row.time_ms, row.points, std::array::from_fn(|at| position(row, at))))
        .collect();
    assert!(archived.is_sorted_by_key(|row| row.player) && archived.len() > 90, "{} rows", archived.len());
    printed.sort();
    rows.sort();
    assert_eq!(printed, rows);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_week_is_archived_atomically() {
    let database = Database::new().await;
    database.migrate().await;
    let proxy = Proxy::to(database.address()).await;
    let settings =
        ArchiveSettings { backoff_ms_min: 10, backoff_ms_max: 20, ..database.settings_through(proxy.address) };

    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path());
    play(&mut state);

    let checks = async {
        // The current week: the connection is cut, and the worker is killed twice.
        let (mut failures, mut chunks_returned) = (0, 0);
        for (kill_at, plans) in [
            (10, vec![]),
            (45, vec![Plan::CutUp(600_000)]),
            (usize::MAX, vec![Plan::CutUp(1_200_000), Plan::CutUp(2_500_000), Plan::LoseCommitReply(1)]),
        ] {
            proxy.plan(plans);
            let (stopped, status, chunks) = run_process(state, &settings, usize::MAX, kill_at).await;
            failures += status.map_or(0, |status| status.failures);
            chunks_returned += chunks;
            drop(stopped);
            state = open(dir.path());
        }
        assert!(failures == 3 && chunks_returned >= 105, "{failures} failures, {chunks_returned} chunks");
        assert_eq!(state.store.outbox_len(), 0);
        assert_eq!(database.value("SELECT COUNT(*) FROM player_week").await, "50000");

        // More scans, then the close of the week; a player is forgotten between two chunks.
        observe(&mut state, FROM_MS + 13_000_000, 49_900..50_003, i64::from);
        observe(&mut state, FROM_MS + 13_100_000, 49_900..50_003, |n| i64::from(n) + 3);
        state.close_due_weeks(WEEK_OVER_MS).unwrap();
        proxy.plan([Plan::CutUp(3_000_000)]);
        let (state, _, chunks) = run_process(state, &settings, 7, usize::MAX).await;
        assert!(chunks > 7, "{chunks} chunks");
        let (state, status, _) = run_process(state, &settings, usize::MAX, usize::MAX).await;
        assert!(status.is_some_and(|status| status.failures == 0), "the connection is no longer cut");
        assert_eq!(state.store.outbox_len(), 0);
        assert_tables_equal_state(&database, &state).await;
    };
    tokio::select! {
        () = watch_tables(&database) => {}
        () = checks => {}
    }
}
