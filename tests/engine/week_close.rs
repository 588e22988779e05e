//! A week that is closed in steps of a few records, with restarts between them, equals the
//! week that is closed in one step: positions, best positions, map rows, server ranks, series.
//! That these values are correct is tested with the oracle.

use std::collections::BTreeMap;
use std::path::Path;

use crate::scans;
use clqd::engine::{EngineSettings, Event, Outcome, StateReader};
use clqd::fleet::rng::{RngExt, SplitMix64};
use clqd::fleet::{SimulatedHistory, World, WorldSettings, address};
use clqd::model::calendar::HOUR_MS;
use clqd::model::rebuild::{RebuildStep, RebuiltServer};
use clqd::model::{ArchiveJob, OutboxKey, Ranking, Scope, ServerKey, ServerUrl};
use clqd::state::State;
use clqd::store::StoreSettings;
use clqd::view::board::{BoardQuery, BoardSelector};

const SERVERS: u32 = 30;
const MONDAY_MS: i64 = 1_764_547_200_000; // 2025-12-01 00:00 UTC

fn open(dir: &Path, week_steps_per_tick: usize) -> State {
    let store = StoreSettings { cache_bytes: 16 << 20, create: true };
    State::open(dir, store, EngineSettings { archive_enabled: true, week_steps_per_tick, ..EngineSettings::default() })
        .unwrap()
}

/// Applies the last hours of a week and the first minutes of the next, so that players are
/// present at its end. Then the busiest server is greylisted.
fn play(state: &mut State) {
    let start_ms = MONDAY_MS - 8 * HOUR_MS;
    let settings =
        WorldSettings { servers: SERVERS, start_ms, activity: 3.0, truth: false, ..WorldSettings::default() };
    let mut world = World::new(settings);
    let urls: Vec<ServerUrl> = (0..SERVERS)
        .map(|server| format!("{}://{}:27960", world.protocol(server).scheme(), address::address_of(server)))
        .map(|url| ServerUrl::parse(&url).expect("a URL"))
        .collect();
    let mut snapshots = vec![0; SERVERS as usize];
    for (_, server, snapshot) in SimulatedHistory::new(&mut world, start_ms, MONDAY_MS + 300_000) {
        snapshots[server as usize] += snapshot.players.len();
        let (url, outcome) = (urls[server as usize].clone(), Outcome::Snapshot(snapshot));
        state.handle(Event::Replayed { url, outcome }).unwrap();
    }
    let busiest = (0..urls.len()).max_by_key(|&server| snapshots[server]).expect("there are servers");
    state.engine.greylist(&state.store, &urls[busiest], Some("for a test".to_owned())).unwrap();
    state.commit().unwrap();
    assert!(state.engine.has_week_to_close());
}

/// Without sessions: a clock that is ahead completes the open ones.
fn archived(state: &mut State) -> BTreeMap<OutboxKey, ArchiveJob> {
    let mut jobs = state.engine.archive_jobs(&state.store, None, None, usize::MAX, usize::MAX).unwrap();
    jobs.retain(|(entry, _)| !matches!(entry.key, OutboxKey::Session(_)));
    jobs.into_iter().filter_map(|(entry, job)| Some((entry.key, scans::complete(job?)))).collect()
}

#[test]
fn close_in_steps_and_restarts_equals_close_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), usize::MAX);
    play(&mut state);
    let now_ms = state.engine.model().now_ms();
    state.handle(Event::Tick { now_ms }).unwrap();
    state.commit().unwrap();
    assert!(!state.engine.has_week_to_close());
    let want = archived(&mut state);
    let rows = |job: &ArchiveJob| match job {
        ArchiveJob::Week(week) if week.closed => week.best.len(),
        _ => 0,
    };
    assert!(want.values().map(rows).max() > Some(60), "a server has more rows than most ticks have steps");

    for (seed, steps) in [(1, 1), (2, 7), (3, 50), (4, 500)] {
        let mut rng = SplitMix64::from_parts(&[seed]);
        let dir = tempfile::tempdir().unwrap();
        let mut state = open(dir.path(), steps);
        play(&mut state);
        let (mut ticks, mut opened) = (0, 1);
        // Enough for the largest server, which is closed from its start after a restart.
        let ticks_mean = 2 + 400 / steps;
        while state.engine.has_week_to_close() {
            ticks += 1;
            assert!(ticks < 1_000_000, "the week is never closed");
            state.handle(Event::Tick { now_ms }).unwrap();
            if rng.bool(0.3) {
                state.commit().unwrap();
            }
            if rng.bool(1.0 / ticks_mean as f64) {
                drop(state);
                state = open(dir.path(), steps);
                opened += 1;
            }
        }
        state.commit().unwrap();
        eprintln!("{steps} steps a tick: {ticks} ticks, opened {opened} times");
        assert!(opened > 2 || steps == 500);
        let got = archived(&mut state);
        assert!(got.keys().eq(want.keys()));
        for (key, want) in &want {
            assert_eq!(&got[key], want, "{steps} steps a tick");
        }
    }
}

/// Synthetic scans of a few servers. The results of successive weeks differ, so that best
/// positions of newer weeks displace older ones.
mod synthetic {
    use clqd::model::{Completeness, Player, Snapshot, WeekKey};

    use super::*;

    pub const WEEK_MS: i64 = 7 * 24 * HOUR_MS;
    pub const GAME: &str = "baseq3";

    pub fn week() -> WeekKey {
        clqd::model::calendar::Calendar::default().week(MONDAY_MS)
    }

    pub fn url(server: u64) -> ServerUrl {
        ServerUrl::parse(&format!("quake3://10.0.0.{server}:27960")).unwrap()
    }

    /// Applies scans every two minutes of this range of minutes of a week (0 is its start).
    pub fn play(state: &mut State, servers: u64, players: u64, week: i64, minutes: std::ops::Range<i64>) {
        for minute in minutes.step_by(2) {
            for server in 1..=servers {
                let t_ms = MONDAY_MS + week * WEEK_MS + minute * 60_000 + server as i64;
                state
                    .handle(Event::Replayed { url: url(server), outcome: scan(server, players, week, minute, t_ms) })
                    .unwrap();
            }
        }
        state.commit().unwrap();
    }

    pub fn scan(server: u64, players: u64, week: i64, minute: i64, t_ms: i64) -> Outcome {
        let mut rng = SplitMix64::from_parts(&[server, week as u64]);
        let speeds: Vec<u64> = (0..players).map(|_| 1 + rng.below(9) as u64).collect();
        let list =
            speeds.iter().zip(1_i64..).filter(|(_, n)| !(n + minute / 60 + week).unsigned_abs().is_multiple_of(4));
        let list = list.map(|(speed, n)| Player {
            name: format!("player {n}").into(),
            points: Some((minute % 20 * *speed as i64) / 3),
            ping: Some(30),
            ..Player::default()
        });
        Outcome::Snapshot(Snapshot {
            t_ms,
            game: GAME.into(),
            map: format!("map{}", minute / 20 % 3),
            hostname: String::new(),
            slots: 64,
            players: list.collect(),
            completeness: Completeness::Full,
            count: None,
            bots: None,
        })
    }

    pub fn tick(state: &mut State, now_ms: i64) {
        state.handle(Event::Tick { now_ms }).unwrap();
        state.commit().unwrap();
    }

    pub fn close_all(state: &mut State, now_ms: i64) {
        tick(state, now_ms);
        while state.engine.has_week_to_close() {
            tick(state, now_ms);
        }
    }

    /// Shortly after the end of a week.
    pub fn end_ms(week: i64) -> i64 {
        MONDAY_MS + (week + 1) * WEEK_MS + 20_000
    }
}

use clqd::engine::ReopenError;
use clqd::model::WeekKey;
use clqd::model::commit::WeekPhase;

const WEEKS: i64 = 6;

fn key(week: i64) -> WeekKey {
    WeekKey(synthetic::week().0 + week as u32)
}

/// Closes every week at its end; `mid_week` is called before that.
fn play_weeks(steps: usize, mut mid_week: impl FnMut(&mut State, i64)) -> BTreeMap<OutboxKey, ArchiveJob> {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), steps);
    for week in 0..WEEKS {
        // The last hours of the week.
        let end = 7 * 24 * 60;
        synthetic::play(&mut state, 3, 12, week, end - 300..end - 100);
        mid_week(&mut state, week);
        synthetic::play(&mut state, 3, 12, week, end - 100..end);
        synthetic::close_all(&mut state, synthetic::end_ms(week));
    }
    let archived = archived(&mut state);
    assert!(state.engine.model().weeks().iter().all(|state| state.phase == WeekPhase::Closed));
    archived
}

fn assert_same(got: &BTreeMap<OutboxKey, ArchiveJob>, want: &BTreeMap<OutboxKey, ArchiveJob>, context: &str) {
    assert!(got.keys().eq(want.keys()), "{context}");
    for (key, want) in want {
        assert_eq!(&got[key], want, "{context}");
    }
}

/// The clock is days ahead, the week is closed or being closed, and the time is reset. The
/// result is the same as with a correct clock.
#[test]
fn week_closed_too_early_and_reopened_equals_week_closed_once() {
    let want = play_weeks(usize::MAX, |_, _| ());
    let best_positions = |job: &ArchiveJob| match job {
        ArchiveJob::Week(week) => week.best.iter().map(|best| best.three[0].len()).max().unwrap_or(0),
        _ => 0,
    };
    assert_eq!(want.values().map(best_positions).max(), Some(3), "newer positions displace older ones");
    // Ticks with the wrong time.
    for (steps, ticks) in [(usize::MAX, 1), (usize::MAX, 9), (7, 1), (7, 9), (7, 20), (40, 8), (500, 1_000)] {
        let got = play_weeks(steps, |state, week| {
            if week < 2 {
                return;
            }
            let now_ms = state.engine.model().now_ms();
            (0..ticks).for_each(|_| synthetic::tick(state, synthetic::end_ms(week)));
            let done = state.engine.reset_time(&state.store, now_ms).unwrap();
            state.commit().unwrap();
            assert_eq!((done.reopened, done.servers, done.uncredited_week), (vec![key(week)], 0, None));
            // Results of the close are no longer returned, and are not archived.
            for (key, job) in archived(state) {
                let (OutboxKey::Week { week: of, .. }, ArchiveJob::Week(job)) = (key, job) else { continue };
                let best = job.best.iter().flat_map(|best| best.three.iter().flatten());
                assert!(best.into_iter().all(|(_, best)| *best != self::key(week)), "best position of {of}");
                assert_eq!((job.closed, job.server_rank.is_some()), (of != self::key(week), of != self::key(week)));
            }
            while state.engine.has_week_to_close() {
                synthetic::tick(state, now_ms);
            }
            let week_state = state.engine.model().weeks().last().copied().unwrap();
            assert_eq!((week_state.week, week_state.phase), (self::key(week), WeekPhase::Running));
            for server in 1..=3 {
                let detail = state.engine.model().server_detail(&state.store, &synthetic::url(server)).unwrap();
                assert_eq!(detail.public.server.rank.is_some(), week > 0, "the rank of the previous week");
            }
        });
        assert_same(&got, &want, &format!("{steps} steps a tick, {ticks} ticks"));
    }
}

/// Two older weeks are reopened and closed again after later ones were closed.
#[test]
fn reopened_older_week_closes_to_same_result() {
    let want = play_weeks(usize::MAX, |_, _| ());
    for (steps, weeks_back) in [(usize::MAX, [1, 2]), (30, [1, 3]), (7, [2, 3])] {
        let got = play_weeks(steps, |state, week| {
            if week < 4 {
                return;
            }
            for back in weeks_back {
                assert_eq!(state.engine.reopen_week(key(week - back)), Ok(true));
                state.commit().unwrap();
            }
            let now_ms = state.engine.model().now_ms();
            synthetic::close_all(state, now_ms);
            assert_eq!(state.engine.reopen_week(key(week)), Ok(false), "the week is open");
        });
        assert_same(&got, &want, &format!("{steps} steps a tick, weeks {weeks_back:?} before"));
    }
}

#[test]
fn reopen_of_deleted_or_old_week_is_refused_with_reason() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), 7);
    for week in 0..WEEKS {
        synthetic::play(&mut state, 3, 12, week, 0..40);
        if week < WEEKS - 1 {
            synthetic::close_all(&mut state, synthetic::end_ms(week));
        }
    }
    assert!(matches!(state.engine.reopen_week(WeekKey(5)), Err(ReopenError::RowsDeleted { .. })));
    let printed = state.engine.reopen_week(WeekKey(5)).unwrap_err().to_string();
    assert!(printed.contains("clqd replay") && printed.contains("store.keep_weeks"), "{printed}");
    assert_eq!(state.engine.reopen_week(key(0)), Ok(true), "four weeks before the newest");
    synthetic::close_all(&mut state, synthetic::end_ms(WEEKS - 2));
    // The last week is being closed.
    synthetic::tick(&mut state, synthetic::end_ms(WEEKS - 1));
    assert_eq!(state.engine.reopen_week(key(3)), Err(ReopenError::OtherInProgress(key(WEEKS - 1))));
    synthetic::close_all(&mut state, synthetic::end_ms(WEEKS - 1));
    assert_eq!(state.engine.reopen_week(key(0)), Err(ReopenError::TooOld { week: key(0), newest: key(WEEKS - 1) }));
    assert_eq!(state.engine.reopen_week(key(1)), Ok(true));
}

/// Crashes while the week is reopened, and while it is closed again.
#[test]
fn reopen_resumes_after_crash() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), 9);
    for week in 0..2 {
        synthetic::play(&mut state, 3, 12, week, 0..300);
        synthetic::close_all(&mut state, synthetic::end_ms(week));
    }
    let want = archived(&mut state);
    assert_eq!(state.engine.reopen_week(key(1)), Ok(true));
    state.commit().unwrap();
    let now_ms = state.engine.model().now_ms();
    let mut phases = Vec::new();
    while state.engine.has_week_to_close() {
        phases.push(state.engine.model().weeks()[1].phase);
        synthetic::tick(&mut state, now_ms);
        drop(state);
        state = open(dir.path(), if phases.len() % 5 == 0 { 400 } else { 9 });
        assert!(phases.len() < 10_000);
    }
    assert!(phases.contains(&WeekPhase::Reopening) && phases.contains(&WeekPhase::Closing), "{phases:?}");
    assert_same(&archived(&mut state), &want, "after crashes");
}

#[test]
fn week_after_close_limit_stays_open() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), 20);
    synthetic::play(&mut state, 3, 12, 0, 0..40);
    let phase = |state: &State| state.engine.model().weeks()[0].phase;
    state.engine.set_close_limit(i64::MIN);
    assert_eq!(state.engine.week_blocked(), None);
    synthetic::close_all(&mut state, synthetic::end_ms(0));
    assert_eq!((phase(&state), state.engine.week_blocked()), (WeekPhase::Running, Some(key(0))));
    // A partly closed week is not closed further.
    state.engine.set_close_limit(synthetic::end_ms(0));
    (0..3).for_each(|_| synthetic::tick(&mut state, synthetic::end_ms(0)));
    assert_eq!(phase(&state), WeekPhase::Closing);
    state.engine.set_close_limit(MONDAY_MS);
    assert!(!state.engine.has_week_to_close());
    (0..1_000).for_each(|_| synthetic::tick(&mut state, synthetic::end_ms(0)));
    assert_eq!((phase(&state), state.engine.week_blocked()), (WeekPhase::Closing, Some(key(0))));
    state.engine.set_close_limit(i64::MAX);
    synthetic::close_all(&mut state, synthetic::end_ms(0));
    assert_eq!((phase(&state), state.engine.week_blocked()), (WeekPhase::Closed, None));
}

/// Scans were recorded with the wrong time. After the reset scans are counted immediately, no
/// player gains time that did not pass, and series continue.
#[test]
fn scans_count_immediately_after_time_reset() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), usize::MAX);
    synthetic::play(&mut state, 2, 8, 0, 0..120);
    let now_ms = state.engine.model().now_ms();
    // For an hour the clock is eight days ahead: in the next week, which is open.
    synthetic::play(&mut state, 2, 8, 1, 1_440 + 120..1_440 + 180);
    let wrong_ms = state.engine.model().now_ms();
    synthetic::close_all(&mut state, wrong_ms);
    let phases = |state: &State| state.engine.model().weeks().iter().map(|state| state.phase).collect::<Vec<_>>();
    assert_eq!(phases(&state), [WeekPhase::Closed, WeekPhase::Running]);
    let done = state.engine.reset_time(&state.store, now_ms).unwrap();
    state.commit().unwrap();
    assert_eq!((done.servers, done.reopened, done.now_ms), (2, vec![key(0)], now_ms));
    // Also while the results of closing are still removed.
    assert_eq!(phases(&state), [WeekPhase::Reopening, WeekPhase::Running]);
    let counts = state.engine.model().counts().clone();
    synthetic::play(&mut state, 2, 8, 0, 122..142);
    synthetic::close_all(&mut state, now_ms);
    assert_eq!(phases(&state), [WeekPhase::Running, WeekPhase::Running]);
    synthetic::play(&mut state, 2, 8, 0, 142..242);
    let after = state.engine.model().counts();
    assert_eq!(after.out_of_order, counts.out_of_order);
    assert_eq!(after.snapshots, counts.snapshots + 2 * 60);
    assert_eq!(state.engine.next_due_ms().map(|due_ms| due_ms < state.engine.model().now_ms() + 600_001), Some(true));
    synthetic::close_all(&mut state, synthetic::end_ms(0));
    let archived = archived(&mut state);
    let ArchiveJob::Week(job) = &archived[&OutboxKey::Week { week: key(0), server: ServerKey(1) }] else {
        panic!("a week");
    };
    let measured_ms_max = job.rows.iter().map(|row| row.measured_ms).max().unwrap();
    // Two visits of at most two hours each.
    assert!((2 * HOUR_MS as u64..=4 * HOUR_MS as u64).contains(&measured_ms_max), "{measured_ms_max}");
    let ArchiveJob::Server(server) = &archived[&OutboxKey::Server(ServerKey(1))] else { panic!("a server") };
    let series = server.series.as_ref().unwrap();
    let last_ms = MONDAY_MS + 240 * 60_000;
    assert_eq!(series.newest_ten_minutes_ms, (last_ms / 600_000 - 1) * 600_000);
}

#[test]
fn greylisted_server_leaves_the_boards_of_a_reopened_week() {
    use synthetic::{close_all, end_ms, play, url, week};

    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), 1_000);
    state.engine.add_server(url(1), vec!["ctf".to_owned()], MONDAY_MS).unwrap();
    play(&mut state, 1, 6, 0, 0..120);
    close_all(&mut state, end_ms(0));
    let tagged = |state: &mut State| {
        state.commit_and_build_boards(week().into()).unwrap();
        let (scope, window) = (Scope::Tag("ctf".to_owned()), Some(clqd::model::calendar::week_label(week())));
        let board = BoardSelector { scope, ranking: Ranking::Time, window, at_ms: None };
        state.engine.model().query_board(&state.store, &board, &BoardQuery::Top { count: 10 }).unwrap().rows.len()
    };
    assert_eq!(tagged(&mut state), 6);
    // A closed week keeps the rows of the server.
    state.engine.greylist(&state.store, &url(1), Some("fake".to_owned())).unwrap();
    assert_eq!(tagged(&mut state), 6);
    state.engine.reopen_week(week()).unwrap();
    assert_eq!(tagged(&mut state), 0, "reopened");
    close_all(&mut state, end_ms(0));
    assert_eq!(tagged(&mut state), 0, "closed again");
    state.commit().unwrap();
    let jobs = archived(&mut state);
    let best = jobs.values().find_map(|job| match job {
        ArchiveJob::BestPositions(best) => Some(best),
        _ => None,
    });
    let best = best.expect("the archive has the positions of before");
    assert!(best.best.len() == 6 && best.best.iter().all(|best| best.three.iter().all(Vec::is_empty)), "{best:?}");
}

/// The week was closed too early by the clock. It is recomputed, and a player has no row any more.
#[test]
fn row_removed_from_a_reopened_week_leaves_no_best_positions() {
    use synthetic::{GAME, close_all, end_ms, play, url, week};

    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), 1_000);
    play(&mut state, 1, 6, 0, 0..120);
    let now_ms = state.engine.model().now_ms();
    close_all(&mut state, end_ms(0));
    state.engine.reset_time(&state.store, now_ms).unwrap();
    close_all(&mut state, now_ms);
    let of_server = RebuiltServer {
        window: week().into(),
        server: url(1),
        rows: Vec::new(),
        removed: vec![(GAME.to_owned(), "player 1".into())],
        maps: Vec::new(),
    };
    let windows = state.engine.model().recomputable_windows(i64::MIN);
    for step in [RebuildStep::Begin { windows }, RebuildStep::Server(Box::new(of_server)), RebuildStep::End {}] {
        state.apply_rebuild(&step).unwrap();
    }
    close_all(&mut state, end_ms(0));
    let best = state.store.best_after(ServerKey(1), None, usize::MAX).unwrap();
    let without = best.iter().filter(|(_, best)| best.top_three().iter().all(|three| three.is_empty())).count();
    assert_eq!((best.len(), without), (6, 1));
}

/// A replay commits rarely: a reopened week must close in it with the same events.
#[test]
fn reopened_week_closes_without_commits_of_the_caller() {
    use synthetic::{close_all, end_ms, play, week};

    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), 1_000);
    play(&mut state, 3, 6, 0, 0..120);
    close_all(&mut state, end_ms(0));
    state.engine.reopen_week(week()).unwrap();
    state.commit().unwrap();
    for _ in 0..20 {
        state.handle(Event::Tick { now_ms: end_ms(0) }).unwrap();
    }
    assert!(!state.engine.has_week_to_close());
}
