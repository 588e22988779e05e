//! Only the rows that changed are written. After any sequence of lost acknowledgements and
//! restarts the tables equal those of a complete resync, and every position is found.

use std::collections::BTreeSet;

use crate::database::Database;
use crate::database::world::{assert_same, read};
use crate::scans;
use crate::write_method::without_load_data;
use clqd::archive::Archive;
use clqd::engine::{EngineSettings, Event};
use clqd::fleet::rng::{RngExt, SplitMix64};
use clqd::model::calendar::{MINUTE_MS, WEEK_MS};
use clqd::model::{ArchiveJob, Ranking};
use clqd::state::State;
use clqd::store::StoreSettings;

const MONDAY_MS: i64 = 1_763_942_400_000; // 2025-11-24 00:00 UTC
const SERVER: &str = "quake3://a:27960";
const PLAYERS: usize = 150;

fn open(dir: &std::path::Path) -> State {
    let store = StoreSettings { cache_bytes: 16 << 20, create: true };
    let engine = EngineSettings { archive_enabled: true, archive_chunk_rows: 100, ..EngineSettings::default() };
    State::open(dir, store, engine).unwrap()
}

/// Writes everything that is pending, large weeks in chunks. Returns the rows of players that
/// were written.
async fn archive_all(state: &mut State, archive: &mut Archive, acknowledges: bool) -> BTreeSet<String> {
    state.commit().unwrap();
    let jobs = state.engine.archive_jobs(&state.store, None, None, 100_000, 1_000_000).unwrap();
    let (entries, jobs): (Vec<_>, Vec<_>) = jobs.into_iter().unzip();
    let mut written = BTreeSet::new();
    let (large, small): (Vec<_>, Vec<_>) =
        jobs.into_iter().flatten().partition(|job| matches!(job, ArchiveJob::LargeWeek { .. }));
    let chunks = large.into_iter().flat_map(|job| match job {
        ArchiveJob::LargeWeek { week, server } => scans::week_chunks(state, week, server),
        _ => unreachable!("partitioned above"),
    });
    for jobs in [small].into_iter().chain(chunks.map(|chunk| vec![chunk]).collect::<Vec<_>>()) {
        for job in &jobs {
            if let ArchiveJob::Week(week) = job {
                written.extend(week.rows.iter().map(|row| state.player_name(row.player)));
            }
        }
        archive.write(&jobs).await.unwrap();
    }
    if acknowledges {
        scans::acknowledge(state, &entries);
    }
    written
}

trait PlayerNames {
    fn player_name(&self, player: clqd::model::PlayerKey) -> String;
}

impl PlayerNames for State {
    fn player_name(&self, player: clqd::model::PlayerKey) -> String {
        use clqd::engine::StateReader;
        self.store.player_record(player).unwrap().unwrap().name.to_string()
    }
}

/// Every board of every week, by positions, equals the board by orders; and the other way round.
async fn assert_positions(database: &Database, when: &str) {
    for ranking in Ranking::ALL.map(Ranking::name) {
        let sql = format!(
            "SELECT week, clq_position(week, server, '{ranking}', {ranking}_order), \
             clq_order_at(week, server, '{ranking}', ROW_NUMBER() OVER (PARTITION BY week ORDER BY {ranking}_order)) \
             = {ranking}_order, ROW_NUMBER() OVER (PARTITION BY week ORDER BY {ranking}_order) \
             FROM player_week WHERE {ranking}_order IS NOT NULL"
        );
        let rows = database.rows(&sql).await;
        assert!(!rows.is_empty(), "{when}: {ranking}");
        for row in rows {
            assert_eq!((&*row[1], &*row[2]), (&*row[3], "1"), "{when}: {ranking}: {row:?}");
        }
        let sizes = format!(
            "SELECT sw.week FROM server_week sw WHERE sw.{ranking}_players <> \
             (SELECT COUNT({ranking}_order) FROM player_week pw WHERE pw.week = sw.week AND pw.server = sw.server)"
        );
        assert_eq!(database.rows(&sizes).await, Vec::<Vec<String>>::new(), "{when}: {ranking}: board sizes");
    }
}

#[tokio::test]
async fn changed_rows_make_the_same_tables_as_all_rows() {
    let (database, dir) = (Database::new().await, tempfile::tempdir().unwrap());
    database.migrate().await;
    let mut archive = Archive::connect(&database.settings()).await.unwrap();
    let mut state = open(dir.path());
    archive.write(&scans::resync(&mut state)).await.unwrap();
    let mut rng = SplitMix64::from_parts(&[11]);
    let mut points = vec![0_i64; PLAYERS];
    // Players who were seen since the last acknowledged job; `None`: the next job has all rows.
    let mut seen: Option<BTreeSet<String>> = Some(BTreeSet::new());
    let (mut first, mut number, mut sparse_jobs) = (0, 5, 0);
    for step in 0..400_i64 {
        // The week ends after 300 steps, and all its rows get positions.
        let closes = step == 300;
        let t_ms = MONDAY_MS + step * 2 * MINUTE_MS + if step >= 300 { WEEK_MS } else { 0 };
        if closes {
            state.close_due_weeks(t_ms).unwrap();
            seen = None;
        }
        // Players stay for some time, or they would have no score in clq1.
        if rng.below(8) == 0 {
            (first, number) = (rng.below(PLAYERS - 12), 3 + rng.below(9));
        }
        let players = (first..first + number).map(|n| {
            points[n] += rng.below(3) as i64;
            (format!("p{n}"), points[n])
        });
        let players: Vec<(String, i64)> = players.collect();
        if let Some(seen) = &mut seen {
            seen.extend(players.iter().map(|(name, _)| name.clone()));
        }
        let present: BTreeSet<String> = players.iter().map(|(name, _)| name.clone()).collect();
        let mut snapshot = scans::snapshot(t_ms, players);
        snapshot.map = format!("map{}", step / 7 % 5);
        scans::apply_snapshot(&mut state, SERVER, snapshot);
        state.handle(Event::Tick { now_ms: t_ms }).unwrap();
        match rng.below(24) {
            0 => {
                // The entries in the outbox are written completely after a restart.
                state.commit().unwrap();
                drop(state);
                state = open(dir.path());
                seen = None;
            }
            1 | 2 => {
                archive_all(&mut state, &mut archive, false).await;
            }
            3..=7 => {
                let written = archive_all(&mut state, &mut archive, true).await;
                if let Some(seen) = &seen {
                    let unseen: Vec<_> = written.difference(seen).collect();
                    assert!(unseen.is_empty(), "step {step}: {unseen:?} did not change");
                    sparse_jobs += 1;
                }
                // The row of a player who leaves changes once more.
                seen = Some(present.clone());
            }
            _ => {}
        }
        if step % 100 == 99 || closes {
            archive_all(&mut state, &mut archive, true).await;
            seen = Some(present);
            assert_positions(&database, &format!("step {step}")).await;
        }
    }
    assert!(sparse_jobs > 40, "{sparse_jobs}");
    archive_all(&mut state, &mut archive, true).await;

    let complete = without_load_data().await;
    let mut other = Archive::connect(&complete.settings()).await.unwrap();
    assert_eq!(scans::claim_archive(&mut state, None, 1), 1);
    other.write(&scans::resync(&mut state)).await.unwrap();
    archive_all(&mut state, &mut other, true).await;
    assert_positions(&complete, "complete").await;
    let (mut found, mut wanted) = (read(&database).await, read(&complete).await);
    // A server that has not changed is not written again.
    found.remove("clq_state");
    wanted.remove("clq_state");
    let lengths = (found["player_week"].len(), found["board_step"].len());
    assert!(lengths.0 > 160 && lengths.1 > 10, "{lengths:?}");
    assert_same(&found, &wanted, "after all");
}
