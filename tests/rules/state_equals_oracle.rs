//! Compares data that `clqd export` does not print with the oracle: classes, misses and counts
//! after each line of random scan logs with many edge cases, and at the end map rows, server
//! ranks, best positions, series and names, read through the archive's interface. Time zones
//! include daylight saving and offsets that are no whole hours. Engine and store are used as a
//! library, with commits, restarts and changes of the cache limits at random times from the seed.
//! The rows of players are compared too; the export of the program is tested in
//! `replay_equals_oracle`.
//!
//! `CLQD_SEEDS` is the number of seeds (28), `CLQD_FIRST_SEED` the first (0).

use std::collections::HashMap;

use crate::oracle::adapter::rules;
use crate::oracle::compare::{Archived, Segments, check_state, check_week, open};
use crate::oracle::generate::{Random, scan_log, screening};
use crate::oracle::{ClassStep, LineKind, Oracle, Settings};
use clqd::board::window::WindowTypes;
use clqd::cli::export;
use clqd::engine::{CacheLimits, EngineSettings, Event};
use clqd::model::calendar::{Calendar, week_label};
use clqd::model::{PlayerKey, ServerKey, ServerUrl, WeekKey};
use clqd::scan_log;
use clqd::state::State;
use serde_json::Value;

const ZONES: [&str; 7] = [
    "UTC",
    "Europe/Amsterdam",
    "America/New_York",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Auckland",
];

#[test]
fn state_equals_oracle() {
    let mut segments = Segments::default();
    for seed in seeds() {
        let zone = ZONES[(seed % ZONES.len() as u64) as usize];
        let context = format!("CLQD_FIRST_SEED={seed} CLQD_SEEDS=1, {zone}");
        eprintln!("{context}");
        let calendar = Calendar::new(zone).expect("a zone");
        let log = scan_log(seed, &calendar);
        let oracle = Oracle::new(&log, Settings { calendar, ..Settings::default() });
        segments.add(check(&log, &oracle, &context, &mut Random::new(seed ^ 0x57A7E)));
    }
    segments.assert_rounded_half_up();
}

#[test]
fn screened_state_equals_oracle() {
    for seed in seeds() {
        let zone = ZONES[(seed % ZONES.len() as u64) as usize];
        let context = format!("CLQD_FIRST_SEED={seed} CLQD_SEEDS=1, {zone}");
        eprintln!("{context}");
        let calendar = Calendar::new(zone).expect("a zone");
        let log = screening::log(seed, &calendar);
        let screen = screening::screen(seed);
        let oracle = Oracle::new(&log, Settings { calendar, screen, ..Settings::default() });
        check(&log, &oracle, &context, &mut Random::new(seed ^ 0x57A7E));
    }
}

/// A server that is scanned about once a day at varying hours in sixty weeks, across two changes
/// of clocks each way, so that every ring of the series wraps around.
#[test]
fn sixty_weeks_of_series_equal_oracle() {
    for zone in ZONES {
        let calendar = Calendar::new(zone).expect("a zone");
        let mut random = Random::new(7);
        let mut log = String::new();
        let mut t = 1_763_683_200_000_i64;
        let server = "source://127.0.0.1:27015";
        while t < 1_763_683_200_000 + 60 * 7 * 86_400_000 {
            for _ in 0..random.below(4) {
                let players: Vec<String> =
                    (0..random.below(30)).map(|n| format!("{{\"name\":\"p{n}\",\"points\":{n}}}")).collect();
                log += &format!(
                    "{{\"t\":{t},\"server\":\"{server}\",\"game\":\"g\",\"map\":\"m\",\"players\":[{}]}}\n",
                    players.join(",")
                );
                t += 1 + random.below(720_000) as i64;
            }
            t += random.below(30 * 3_600_000) as i64;
            if random.below(30) == 0 {
                t += random.below(60 * 86_400_000) as i64;
            }
        }
        let oracle = Oracle::new(&log, Settings { calendar, ..Settings::default() });
        check(&log, &oracle, &format!("a year in {zone}"), &mut random);
    }
}

fn check(log: &str, oracle: &Oracle, context: &str, random: &mut Random) -> Segments {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut state = open(dir.path(), &settings(oracle));
    let mut expected = Expected::new(oracle);
    let mut settle_at_ms = i64::MIN;
    for text in log.lines() {
        let (url, outcome) = scan_log::parse_scan(text).expect("a line");
        let t_ms = outcome.t_ms();
        if t_ms >= settle_at_ms {
            state.close_due_weeks(t_ms).expect("a store");
            settle_at_ms = t_ms + random.below(7_200_000) as i64;
        }
        state.handle(Event::Replayed { url: url.clone(), outcome }).expect("a store");
        expected.check_next(&state, &url, context);
        if random.below(30) == 0 {
            state.engine.set_cache_limits(CacheLimits {
                names_max: random.below(3) as usize * 8,
                player_windows_max: random.below(3) as usize * 8,
                ..CacheLimits::NONE
            });
            state.commit().expect("a store");
        }
        if random.below(400) == 0 {
            state.commit().expect("a store");
            drop(state);
            state = open(dir.path(), &settings(oracle));
        }
    }
    let Some(last) = oracle.lines.last() else { return Segments::default() };
    state.close_due_weeks(last.t + 10_000).expect("a store");

    let mut segments = Segments::default();
    for week in oracle.weeks() {
        let mut out = Vec::new();
        export::write(&state, &week_label(WeekKey(week)), &mut out).expect("an export");
        let out = String::from_utf8(out).expect("UTF-8");
        segments.add(check_week(oracle, week, &out, &format!("{context}, week {}", week_label(WeekKey(week)))));
    }
    check_sessions(oracle, &state, context);
    check_state(oracle, &Archived::read(&mut state), context);
    segments
}

/// Sessions that are kept, and when each player was first and last seen.
fn check_sessions(oracle: &Oracle, state: &State, context: &str) {
    let servers = state.engine.model().servers_by_url().into_iter();
    let sessions =
        servers.flat_map(|server| state.engine.model().export_sessions(&state.store, server).expect("a store"));
    let got: Vec<Value> = sessions.map(|session| serde_json::to_value(session).expect("JSON")).collect();
    let want = oracle.export_sessions_at(state.engine.model().now_ms());
    let difference = got.iter().zip(&want).find(|(got, want)| got != want);
    assert_eq!((difference, got.len()), (None, want.len()), "{context}: sessions");
    let seen = oracle.sessions.seen();
    for (&key, player) in &oracle.current_players {
        let got = state.engine.model().player(&state.store, PlayerKey(key as u32), 0).expect("a player");
        let (first, last) = seen[player];
        assert_eq!((got.first_seen_ms, got.last_seen_ms), (Some(first), Some(last)), "{context}: {player:?}");
    }
}

fn settings(oracle: &Oracle) -> EngineSettings {
    EngineSettings {
        rules: rules(&oracle.settings),
        windows: WindowTypes::new(oracle.settings.calendar, []).expect("window types"),
        archive_enabled: true,
        keep_weeks: usize::MAX,
        outbox_entries_max: usize::MAX,
        ..EngineSettings::default()
    }
}

/// Class and assumed count of one server after each of its lines.
type Steps = (Vec<ClassStep>, Vec<u32>);

/// The expected state of each server after each of its lines.
struct Expected<'a> {
    oracle: &'a Oracle,
    steps: HashMap<&'a str, Steps>,
    /// Number of applied lines of each server.
    applied: HashMap<&'a str, usize>,
    next_line: usize,
}

impl<'a> Expected<'a> {
    fn new(oracle: &'a Oracle) -> Expected<'a> {
        let server_steps =
            |server: &'a String| (server.as_str(), (oracle.class_history(server), oracle.assumed_after_lines(server)));
        Expected {
            oracle,
            steps: oracle.servers.iter().map(server_steps).collect(),
            applied: HashMap::new(),
            next_line: 0,
        }
    }

    fn check_next(&mut self, state: &State, url: &ServerUrl, context: &str) {
        let line = &self.oracle.lines[self.next_line];
        self.next_line += 1;
        let applied = self.applied.entry(&line.server).or_default();
        let (classes, assumed) = &self.steps[line.server.as_str()];
        let step = classes[*applied];
        let assumed = assumed[*applied];
        *applied += 1;
        let key = ServerKey(self.oracle.server_key(url.as_str()) as u32);
        let got = state.engine.model().public_server_of(key).expect("a known server");
        assert_eq!(
            (got.missed, got.class, got.assumed_players),
            (step.missed, step.class, assumed),
            "{context}: missed, class and assumed count after {line:?}"
        );
        if let LineKind::Full { .. } | LineKind::Partial { .. } = line.kind {
            assert_eq!(got.last_seen_ms, Some(line.t), "{context}: after {line:?}");
        }
    }
}

fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|e| panic!("{name}={text}: {e}")))
    };
    let first = number("CLQD_FIRST_SEED", 0);
    first..first + number("CLQD_SEEDS", 28)
}
