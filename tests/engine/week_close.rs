//! A week that is closed a few records at a time, by processes that end at any time,
//! equals the week that is closed in one step: positions, best positions, map rows, server
//! ranks, series. The correct values are tested with the oracle.

use std::collections::BTreeMap;
use std::path::Path;

use clqd::engine::{EngineSettings, Event, Outcome};
use clqd::fleet::rng::Rng;
use clqd::fleet::{SimulatedHistory, World, WorldSettings, address};
use clqd::model::{ArchiveJob, OutboxKey, ServerUrl};
use clqd::state::State;
use clqd::store::StoreSettings;

const SERVERS: u32 = 30;
const HOUR_MS: i64 = 3_600_000;
const MONDAY_MS: i64 = 1_764_547_200_000; // 2025-12-01 00:00 UTC

fn open(dir: &Path, week_steps_per_tick: usize) -> State {
    let store = StoreSettings { cache_bytes: 16 << 20, create: true };
    State::open(dir, store, EngineSettings { archive_enabled: true, week_steps_per_tick, ..EngineSettings::default() })
        .unwrap()
}

/// The last hours of a week, and the first minutes of the next, so that players
/// are present over its end. The busiest server is on the greylist by then.
fn play(state: &mut State) {
    let start_ms = MONDAY_MS - 8 * HOUR_MS;
    let settings =
        WorldSettings { servers: SERVERS, start_ms, activity: 3.0, truth: false, ..WorldSettings::default() };
    let mut world = World::new(settings);
    let urls: Vec<ServerUrl> = (0..SERVERS)
        .map(|server| format!("{}://{}:27960", world.family(server).scheme(), address::address_of(server)))
        .map(|url| ServerUrl::parse(&url).expect("a URL"))
        .collect();
    let mut snapshots = vec![0; SERVERS as usize];
    for (_, server, snapshot) in SimulatedHistory::new(&mut world, start_ms, MONDAY_MS + 300_000) {
        snapshots[server as usize] += snapshot.players.len();
        let (url, outcome) = (urls[server as usize].clone(), Outcome::Snapshot(snapshot));
        state.handle(Event::Replayed { url, outcome }).unwrap();
    }
    let busiest = (0..urls.len()).max_by_key(|&server| snapshots[server]).expect("there are servers");
    state.engine.greylist(&urls[busiest], Some("for a test".to_owned())).unwrap();
    state.commit().unwrap();
    assert!(state.engine.has_week_to_close());
}

fn archived(state: &State) -> BTreeMap<OutboxKey, ArchiveJob> {
    let jobs = state.engine.archive_jobs(&state.store, None, None, usize::MAX, usize::MAX).unwrap();
    jobs.into_iter().filter_map(|(entry, job)| Some((entry.key, job?))).collect()
}

#[test]
fn close_in_steps_and_restarts_equals_close_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), usize::MAX);
    play(&mut state);
    let now_ms = state.engine.now_ms();
    state.handle(Event::Tick { now_ms }).unwrap();
    state.commit().unwrap();
    assert!(!state.engine.has_week_to_close());
    let want = archived(&state);
    let rows = |job: &ArchiveJob| match job {
        ArchiveJob::Week(week) if week.closed => week.best.len(),
        _ => 0,
    };
    assert!(want.values().map(rows).max() > Some(60), "a server has more rows than most ticks have steps");

    for (seed, steps) in [(1, 1), (2, 7), (3, 50), (4, 500)] {
        let mut rng = Rng::new(&[seed]);
        let dir = tempfile::tempdir().unwrap();
        let mut state = open(dir.path(), steps);
        play(&mut state);
        let (mut ticks, mut lives) = (0, 1);
        // Enough for the largest server, which a new life begins anew.
        let life = 2 + 400 / steps;
        while state.engine.has_week_to_close() {
            ticks += 1;
            assert!(ticks < 1_000_000, "it is closed some time");
            state.handle(Event::Tick { now_ms }).unwrap();
            if rng.bool(0.3) {
                state.commit().unwrap();
            }
            if rng.bool(1.0 / life as f64) {
                drop(state);
                state = open(dir.path(), steps);
                lives += 1;
            }
        }
        state.commit().unwrap();
        eprintln!("{steps} steps a tick: {ticks} ticks, {lives} lives");
        assert!(lives > 2 || steps == 500);
        let got = archived(&state);
        assert!(got.keys().eq(want.keys()));
        for (key, want) in &want {
            assert_eq!(&got[key], want, "{steps} steps a tick");
        }
    }
}

/// A small world of its own: what each week brings is other than the week before, so
/// that best positions of weeks push each other out.
mod town {
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

    /// Scans every two minutes from one minute of a week (from 0: its beginning) to
    /// another.
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
        let mut rng = Rng::new(&[server, week as u64]);
        let speeds: Vec<u64> = (0..players).map(|_| 1 + rng.below(9) as u64).collect();
        let list =
            speeds.iter().zip(1_i64..).filter(|(_, n)| !(n + minute / 60 + week).unsigned_abs().is_multiple_of(4));
        let list = list.map(|(speed, n)| Player {
            name: format!("player {n}").into(),
            points: Some((minute % 20 * *speed as i64) / 3),
            ping: Some(30),
            connected_ms: None,
            bot: false,
            spectator: false,
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

    pub fn over_ms(week: i64) -> i64 {
        MONDAY_MS + (week + 1) * WEEK_MS + 20_000
    }
}

use clqd::engine::ReopenError;
use clqd::model::WeekKey;
use clqd::model::commit::WeekPhase;

const WEEKS: i64 = 6;

fn key(week: i64) -> WeekKey {
    WeekKey(town::week().0 + week as u32)
}

/// Every week is closed when it is over; `wrong` is called in the middle of it.
fn play_weeks(steps: usize, mut wrong: impl FnMut(&mut State, i64)) -> BTreeMap<OutboxKey, ArchiveJob> {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), steps);
    for week in 0..WEEKS {
        // The last hours of the week.
        let end = 7 * 24 * 60;
        town::play(&mut state, 3, 12, week, end - 300..end - 100);
        wrong(&mut state, week);
        town::play(&mut state, 3, 12, week, end - 100..end);
        town::close_all(&mut state, town::over_ms(week));
    }
    let archived = archived(&state);
    assert!(state.engine.weeks().iter().all(|state| state.phase == WeekPhase::Closed));
    archived
}

fn assert_same(got: &BTreeMap<OutboxKey, ArchiveJob>, want: &BTreeMap<OutboxKey, ArchiveJob>, what: &str) {
    assert!(got.keys().eq(want.keys()), "{what}");
    for (key, want) in want {
        assert_eq!(&got[key], want, "{what}");
    }
}

/// The clock is wrong by days, the week is closed, or in the middle of it; the time is
/// reset. In the end all is as if the clock had always been right.
#[test]
fn week_closed_too_early_and_reopened_equals_one_closed_once() {
    let want = play_weeks(usize::MAX, |_, _| ());
    let places = |job: &ArchiveJob| match job {
        ArchiveJob::Week(week) => week.best.iter().map(|(_, best)| best[0].len()).max().unwrap_or(0),
        _ => 0,
    };
    assert_eq!(want.values().map(places).max(), Some(3), "older positions are pushed out");
    // So many ticks of the wrong time.
    for (steps, ticks) in [(usize::MAX, 1), (usize::MAX, 9), (7, 1), (7, 9), (7, 20), (40, 8), (500, 1_000)] {
        let got = play_weeks(steps, |state, week| {
            if week < 2 {
                return;
            }
            let now_ms = state.engine.now_ms();
            (0..ticks).for_each(|_| town::tick(state, town::over_ms(week)));
            let done = state.engine.reset_time(now_ms);
            state.commit().unwrap();
            assert_eq!((done.reopened, done.servers, done.uncredited_week), (vec![key(week)], 0, None));
            // What closing gave is not shown any more, and is not in the archive.
            for (key, job) in archived(state) {
                let (OutboxKey::Week { week: of, .. }, ArchiveJob::Week(job)) = (key, job) else { continue };
                let best = job.best.iter().flat_map(|(_, best)| best.iter().flatten());
                assert!(best.into_iter().all(|(_, best)| *best != self::key(week)), "best position of {of}");
                assert_eq!((job.closed, job.server_rank.is_some()), (of != self::key(week), of != self::key(week)));
            }
            while state.engine.has_week_to_close() {
                town::tick(state, now_ms);
            }
            let week_state = state.engine.weeks().last().copied().unwrap();
            assert_eq!((week_state.week, week_state.phase), (self::key(week), WeekPhase::Open));
            for server in 1..=3 {
                let detail = state.engine.server_detail(&state.store, &town::url(server)).unwrap();
                assert_eq!(detail.summary.rank.is_some(), week > 0, "that of the week before");
            }
        });
        assert_same(&got, &want, &format!("{steps} steps a tick, {ticks} ticks"));
    }
}

/// An older week is reopened and closed again, or even two, after later ones were closed.
#[test]
fn older_reopened_week_closes_to_the_same_result() {
    let want = play_weeks(usize::MAX, |_, _| ());
    for (steps, carry) in [(usize::MAX, [1, 2]), (30, [1, 3]), (7, [2, 3])] {
        let got = play_weeks(steps, |state, week| {
            if week < 4 {
                return;
            }
            for back in carry {
                assert_eq!(state.engine.reopen_week(key(week - back)), Ok(true));
                state.commit().unwrap();
            }
            let now_ms = state.engine.now_ms();
            town::close_all(state, now_ms);
            assert_eq!(state.engine.reopen_week(key(week)), Ok(false), "it is open");
        });
        assert_same(&got, &want, &format!("{steps} steps a tick, weeks {carry:?} before"));
    }
}

#[test]
fn reopen_of_deleted_or_old_week_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), 7);
    for week in 0..WEEKS {
        town::play(&mut state, 3, 12, week, 0..40);
        if week < WEEKS - 1 {
            town::close_all(&mut state, town::over_ms(week));
        }
    }
    assert!(matches!(state.engine.reopen_week(WeekKey(5)), Err(ReopenError::RowsDeleted { .. })));
    let printed = state.engine.reopen_week(WeekKey(5)).unwrap_err().to_string();
    assert!(printed.contains("clqd replay") && printed.contains("store.keep_weeks"), "{printed}");
    assert_eq!(state.engine.reopen_week(key(0)), Ok(true), "four weeks before the newest");
    town::close_all(&mut state, town::over_ms(WEEKS - 2));
    // The last one is being closed.
    town::tick(&mut state, town::over_ms(WEEKS - 1));
    assert_eq!(state.engine.reopen_week(key(3)), Err(ReopenError::OtherInProgress(key(WEEKS - 1))));
    town::close_all(&mut state, town::over_ms(WEEKS - 1));
    assert_eq!(state.engine.reopen_week(key(0)), Err(ReopenError::TooOld { week: key(0), newest: key(WEEKS - 1) }));
    assert_eq!(state.engine.reopen_week(key(1)), Ok(true));
}

/// Kills in the middle of reopening, and in the middle of closing again.
#[test]
fn reopen_resumes_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), 9);
    for week in 0..2 {
        town::play(&mut state, 3, 12, week, 0..300);
        town::close_all(&mut state, town::over_ms(week));
    }
    let want = archived(&state);
    assert_eq!(state.engine.reopen_week(key(1)), Ok(true));
    state.commit().unwrap();
    let now_ms = state.engine.now_ms();
    let mut phases = Vec::new();
    while state.engine.has_week_to_close() {
        phases.push(state.engine.weeks()[1].phase);
        town::tick(&mut state, now_ms);
        drop(state);
        state = open(dir.path(), if phases.len() % 5 == 0 { 400 } else { 9 });
        assert!(phases.len() < 10_000);
    }
    assert!(phases.contains(&WeekPhase::Reopening) && phases.contains(&WeekPhase::Closing), "{phases:?}");
    assert_same(&archived(&state), &want, "after crashes");
}

#[test]
fn week_beyond_the_close_limit_stays_open() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), 20);
    town::play(&mut state, 3, 12, 0, 0..40);
    let phase = |state: &State| state.engine.weeks()[0].phase;
    state.engine.set_close_limit(i64::MIN);
    assert_eq!(state.engine.week_blocked(), None);
    town::close_all(&mut state, town::over_ms(0));
    assert_eq!((phase(&state), state.engine.week_blocked()), (WeekPhase::Open, Some(key(0))));
    // Half closed, it is not closed further.
    state.engine.set_close_limit(town::over_ms(0));
    (0..3).for_each(|_| town::tick(&mut state, town::over_ms(0)));
    assert_eq!(phase(&state), WeekPhase::Closing);
    state.engine.set_close_limit(MONDAY_MS);
    assert!(!state.engine.has_week_to_close());
    (0..1_000).for_each(|_| town::tick(&mut state, town::over_ms(0)));
    assert_eq!((phase(&state), state.engine.week_blocked()), (WeekPhase::Closing, Some(key(0))));
    state.engine.set_close_limit(i64::MAX);
    town::close_all(&mut state, town::over_ms(0));
    assert_eq!((phase(&state), state.engine.week_blocked()), (WeekPhase::Closed, None));
}

/// The wrong time was recorded with scans. After the reset scans count at once, nobody
/// gains time that did not pass, and series go on.
#[test]
fn scans_count_immediately_after_time_reset() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), usize::MAX);
    town::play(&mut state, 2, 8, 0, 0..120);
    let now_ms = state.engine.now_ms();
    // Eight days ahead for an hour: of another week, which is open.
    town::play(&mut state, 2, 8, 1, 1_440 + 120..1_440 + 180);
    let wrong_ms = state.engine.now_ms();
    town::close_all(&mut state, wrong_ms);
    let phases = |state: &State| state.engine.weeks().iter().map(|state| state.phase).collect::<Vec<_>>();
    assert_eq!(phases(&state), [WeekPhase::Closed, WeekPhase::Open]);
    let done = state.engine.reset_time(now_ms);
    state.commit().unwrap();
    assert_eq!((done.servers, done.reopened, done.now_ms), (2, vec![key(0)], now_ms));
    town::close_all(&mut state, now_ms);
    assert_eq!(phases(&state), [WeekPhase::Open, WeekPhase::Open]);
    let counts = state.engine.counts().clone();
    town::play(&mut state, 2, 8, 0, 122..242);
    let after = state.engine.counts();
    assert_eq!(after.out_of_order, counts.out_of_order);
    assert_eq!(after.snapshots, counts.snapshots + 2 * 60);
    assert_eq!(state.engine.next_due_ms().map(|due_ms| due_ms < state.engine.now_ms() + 600_001), Some(true));
    town::close_all(&mut state, town::over_ms(0));
    let archived = archived(&state);
    let ArchiveJob::Week(job) = &archived[&OutboxKey::Week { week: key(0), server: clqd::model::ServerKey(1) }] else {
        panic!("a week");
    };
    let most = job.rows.iter().map(|row| row.measured_ms).max().unwrap();
    // Two visits of at most two hours each.
    assert!((2 * HOUR_MS as u64..=4 * HOUR_MS as u64).contains(&most), "{most}");
    let ArchiveJob::Server(server) = &archived[&OutboxKey::Server(clqd::model::ServerKey(1))] else {
        panic!("a server")
    };
    let series = server.series.as_ref().unwrap();
    let last_ms = MONDAY_MS + 240 * 60_000;
    assert_eq!(series.newest_slot_ms, (last_ms / 600_000 - 1) * 600_000);
}
