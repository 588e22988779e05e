//! Corrections during the close of a server's week: the result equals that of the same
//! correction before the close. The correction is made after every possible number of ticks:
//! while rows are read, while they are sorted, and while best positions are written.

use std::collections::BTreeMap;
use std::path::Path;

use crate::scans;
use clqd::engine::{EngineSettings, Event, Outcome};
use clqd::model::commit::WeekPhase;
use clqd::model::{ArchiveJob, Completeness, OutboxKey, Player, PlayerKey, ServerKey, ServerUrl, Snapshot};
use clqd::state::State;
use clqd::store::StoreSettings;
use clqd::view::board::PlayerSelector;

const MONDAY_MS: i64 = 1_764_547_200_000; // 2025-12-01 00:00 UTC
const WEEK_END_MS: i64 = MONDAY_MS + 7 * 24 * 3_600_000 + 20_000;
const PLAYERS: i64 = 60;
const STEPS: usize = 7;

fn settings() -> EngineSettings {
    EngineSettings { archive_enabled: true, week_steps_per_tick: STEPS, ..EngineSettings::default() }
}

fn open(dir: &Path) -> State {
    State::open(dir, StoreSettings { cache_bytes: 16 << 20, create: true }, settings()).unwrap()
}

fn url() -> ServerUrl {
    ServerUrl::parse("quake3://10.0.0.1:27960").unwrap()
}

/// Ten rounds; the points of all players differ from round to round.
fn play(state: &mut State) {
    for minute in (0..200).step_by(2) {
        let player = |n: i64| Player {
            name: format!("p{n}").into(),
            points: Some(minute % 20 * (1 + n * 7 % 11) / 2 + n % 3),
            ping: Some(30),
            ..Player::default()
        };
        let snapshot = Snapshot {
            t_ms: MONDAY_MS + minute * 60_000,
            game: "baseq3".into(),
            map: format!("m{}", minute / 20),
            hostname: String::new(),
            slots: 64,
            players: (1..=PLAYERS).map(player).collect(),
            completeness: Completeness::Full,
            count: None,
            bots: None,
        };
        state.handle(Event::Replayed { url: url(), outcome: Outcome::Snapshot(snapshot) }).unwrap();
    }
    state.commit().unwrap();
}

fn tick(state: &mut State) {
    state.handle(Event::Tick { now_ms: WEEK_END_MS }).unwrap();
    state.commit().unwrap();
}

/// The archived weeks and servers, and the best positions of all players.
type Outcomes = (BTreeMap<OutboxKey, ArchiveJob>, Vec<Option<[Vec<(u32, clqd::model::WeekKey)>; 3]>>);

fn finished(state: &mut State) -> Outcomes {
    tick(state);
    while state.engine.has_week_to_close() {
        tick(state);
    }
    let best = (1..=PLAYERS).map(|n| state.best_positions(n as u32)).collect();
    (archived(state), best)
}

fn archived(state: &mut State) -> BTreeMap<OutboxKey, ArchiveJob> {
    let jobs = state.engine.archive_jobs(&state.store, None, None, usize::MAX, usize::MAX).unwrap();
    let jobs = jobs.into_iter().filter_map(|(entry, job)| Some((entry.key, scans::complete(job?))));
    jobs.filter(|(key, _)| matches!(key, OutboxKey::Week { .. } | OutboxKey::Server(_))).collect()
}

trait BestPositions {
    fn best_positions(&self, player: u32) -> Option<[Vec<(u32, clqd::model::WeekKey)>; 3]>;
}

impl BestPositions for State {
    fn best_positions(&self, player: u32) -> Option<[Vec<(u32, clqd::model::WeekKey)>; 3]> {
        use clqd::engine::StateReader;
        let best = self.store.best(ServerKey(1), PlayerKey(player)).unwrap();
        // A record without positions is equivalent to no record.
        best.map(|best| best.top_three()).filter(|three| three.iter().any(|list| !list.is_empty()))
    }
}

/// Compares a correction during the close with the same correction before it.
fn check_correction(correct: impl Fn(&mut State)) {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path());
    play(&mut state);
    correct(&mut state);
    state.commit().unwrap();
    let want = finished(&mut state);
    let mut ticks_of_close = 0;
    for ticks in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let mut state = open(dir.path());
        play(&mut state);
        (0..ticks).for_each(|_| tick(&mut state));
        let is_closed = |job: &ArchiveJob| matches!(job, ArchiveJob::Week(week) if week.closed);
        if archived(&mut state).values().any(is_closed) {
            break;
        }
        assert_eq!(state.engine.model().weeks()[0].phase, WeekPhase::Closing);
        ticks_of_close += 1;
        correct(&mut state);
        state.commit().unwrap();
        let got = finished(&mut state);
        assert_eq!(got.1, want.1, "best positions, after {ticks} ticks");
        assert!(got.0 == want.0, "archive jobs, after {ticks} ticks");
    }
    assert!(ticks_of_close > 15, "the close took {ticks_of_close} ticks");
}

fn name(n: i64) -> PlayerSelector {
    PlayerSelector::Name(format!("p{n}"))
}

#[test]
fn merge_during_week_close_equals_merge_before() {
    for (from, into) in [(1, 60), (33, 2)] {
        check_correction(|state| {
            state.engine.merge_players(&state.store, "baseq3", &name(from), &name(into)).unwrap();
        });
    }
}

#[test]
fn forget_during_week_close_equals_forget_before() {
    for player in [1, 30] {
        check_correction(|state| {
            state.engine.forget_player(&state.store, "baseq3", &name(player), WEEK_END_MS).unwrap();
        });
    }
}

#[test]
fn order_change_during_week_close_equals_change_before() {
    check_correction(|state| {
        let low_is_better = ["clq1", "elo"].map(|text| text.parse().unwrap()).to_vec();
        state.engine.reload(EngineSettings { low_is_better, ..settings() });
    });
}

#[test]
fn greylist_during_week_close_equals_greylist_before() {
    check_correction(|state| {
        state.engine.greylist(&state.store, &url(), Some("for a test".to_owned())).unwrap();
    });
}
