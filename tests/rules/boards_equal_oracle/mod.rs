//! Compares the boards of all scopes, windows and rankings with the oracle. Random scan logs with
//! many edge cases are processed by engine and store, with commits, restarts and builds at random
//! times from the seed. So a cached board is compared with a rebuilt one, and both with the board
//! that the oracle computes from the complete log. Single cases are in `windows` and
//! `cached_boards`.
//!
//! The logs lie at boundaries: of weeks, of days with clock changes, of months and years.
//! `CLQD_SEEDS` is the number of seeds (16), `CLQD_FIRST_SEED` the first (0).

mod cached_boards;
mod case;
mod compare;
mod windows;

use crate::oracle::adapter::rules;
use crate::oracle::compare::{Segments, open};
use crate::oracle::generate::{Random, scan_log, screening};
use crate::oracle::{Oracle, Settings};
use clqd::board::order::{LowIsBetter, TieBreaker};
use clqd::board::window::{WindowSpec, WindowTypes};
use clqd::engine::{BuildPlan, BuiltBoards, EngineSettings, Event};
use clqd::model::calendar::{Calendar, HOUR_MS};
use clqd::model::{ServerUrl, WindowKey};
use clqd::scan_log;
use clqd::state::State;

/// Zones whose clocks change at night, at midnight, by half an hour, or never.
const ZONES: [&str; 7] = [
    "Europe/Amsterdam",
    "America/Havana",
    "UTC",
    "Africa/Cairo",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "America/New_York",
];

#[test]
fn boards_equal_oracle() {
    let mut segments = Segments::default();
    for seed in seeds() {
        let run = Run::new(seed);
        eprintln!("{}", run.context);
        segments.add(run.check());
    }
    segments.assert_rounded_half_up();
}

/// Includes players who are only on time boards, and spectators, who have no key.
#[test]
fn boards_of_screened_lists_equal_oracle() {
    for seed in seeds().step_by(2) {
        let run = Run::screened(seed);
        eprintln!("{}", run.context);
        run.check();
    }
}

struct Run {
    context: String,
    random: Random,
    log: String,
    oracle: Oracle,
    specs: Vec<WindowSpec>,
    low: Vec<LowIsBetter>,
    ties: Vec<TieBreaker>,
    tags: Vec<(String, Vec<String>)>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let zone = ZONES[(seed % ZONES.len() as u64) as usize];
        let calendar = Calendar::new(zone).expect("a zone");
        let mut random = Random::new(seed ^ 0xB0A2D);
        let log = shift_to_boundary(&scan_log(seed, &calendar), &calendar, &mut random);
        Run::with_settings(seed, log, Settings { calendar, ..Settings::default() }, random)
    }

    fn screened(seed: u64) -> Run {
        let calendar = Calendar::new(ZONES[(seed % ZONES.len() as u64) as usize]).expect("a zone");
        let log = screening::log(seed, &calendar);
        let screen = screening::screen(seed);
        Run::with_settings(seed, log, Settings { calendar, screen, ..Settings::default() }, Random::new(seed ^ 0xB0A2D))
    }

    fn with_settings(seed: u64, log: String, settings: Settings, mut random: Random) -> Run {
        let settings = Settings { elo_carry_over: random.below(3) == 0, ..settings };
        let zone = settings.calendar.zone_name().to_owned();
        let oracle = Oracle::new(&log, settings);
        let specs = specs(oracle.lines[0].t, &mut random);
        let mut tagged = |tag: &str, one_in: u64| {
            let servers = oracle.servers.iter().filter(|_| random.below(one_in) == 0).cloned().collect();
            (tag.to_owned(), servers)
        };
        let mut tags = vec![tagged("all of them", 1), tagged("pro", 2), tagged("race", 2), tagged("few", 4)];
        tags.retain(|(_, servers): &(String, Vec<String>)| !servers.is_empty());
        let low = low_is_better(&oracle, &mut random);
        // A separate generator, so that the logs of a seed do not depend on the tie breakers.
        let ties = ties(&oracle, &mut Random::new(seed ^ 0x71E5));
        let context = format!("CLQD_FIRST_SEED={seed} CLQD_SEEDS=1, {zone}");
        Run { context, random, log, oracle, specs, low, ties, tags }
    }

    fn settings(&self) -> EngineSettings {
        EngineSettings {
            rules: rules(&self.oracle.settings),
            windows: WindowTypes::new(self.oracle.settings.calendar, self.specs.iter().copied()).expect("types"),
            low_is_better: self.low.clone(),
            tie_breakers: self.ties.clone(),
            keep_weeks: usize::MAX,
            ..EngineSettings::default()
        }
    }

    fn check(mut self) -> Segments {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let settings = self.settings();
        let mut state = open(dir.path(), &settings);
        for server in self.oracle.servers.clone() {
            let of_server = self.tags.iter().filter(|(_, servers)| servers.contains(&server));
            let tags = of_server.map(|(tag, _)| tag.clone()).collect();
            let url = ServerUrl::parse(&server).expect("canonical");
            state.engine.add_server(url, tags, self.oracle.lines[0].t - 1).expect("a new server");
        }
        let count = self.log.lines().count();
        let check_after = [self.random.below(count as u64) as usize, count];
        let mut segments = Segments::default();
        let mut settle_at_ms = i64::MIN;
        let mut build: Option<BoardBuild> = None;
        let log = std::mem::take(&mut self.log);
        for (text, n) in log.lines().zip(1..) {
            let (url, outcome) = scan_log::parse_scan(text).expect("a line");
            let t_ms = outcome.t_ms();
            if t_ms >= settle_at_ms {
                state.close_due_weeks(t_ms).expect("a store");
                settle_at_ms = t_ms + self.random.below(7_200_000) as i64;
            }
            state.handle(Event::Replayed { url, outcome }).expect("a store");
            match self.random.below(400) {
                0..=14 => _ = state.commit().expect("a store"),
                15..=24 => {
                    state.commit().expect("a store");
                    let players_max = 1 + self.random.below(40) as usize;
                    state.engine.refresh_boards(&state.store, None, players_max).expect("a store");
                }
                25..=29 => {
                    let window = self.random_window(&state);
                    state.commit_and_build_boards(window).expect("a store");
                }
                30..=41 => build = self.advance_build(&mut state, build),
                42 => {
                    state.commit().expect("a store");
                    build = None;
                    drop(state);
                    state = open(dir.path(), &settings);
                }
                _ => {}
            }
            if check_after.contains(&n) {
                let applied: String = log.split_inclusive('\n').take(n).collect();
                let oracle = Oracle::new(&applied, self.oracle.settings.clone());
                segments.add(self.compare(&mut state, &oracle, &format!("{} after line {n}", self.context)));
            }
        }
        segments
    }

    /// Compares the cached boards, the rebuilt ones, and those of the oracle.
    fn compare(&self, state: &mut State, oracle: &Oracle, context: &str) -> Segments {
        state.commit().expect("a store");
        while state.engine.refresh_boards(&state.store, None, 7).expect("a store") {}
        let scopes = compare::scopes(oracle, &self.tags);
        let cached_windows = |state: &State| -> Vec<WindowKey> {
            compare::windows_of(state)
                .into_iter()
                .filter(|window| state.engine.model().boards(*window).is_some())
                .collect()
        };
        let windows = cached_windows(state);
        let cached = compare::read(state, &scopes, &windows);
        for &window in &windows {
            let plan = state.engine.plan_boards(window);
            let built = clqd::state::build_boards(&plan, &state.store.reader()).expect("a store");
            state.engine.install_boards(built);
        }
        assert_eq!(cached_windows(state), windows, "{context}");
        while state.engine.refresh_boards(&state.store, None, usize::MAX).expect("a store") {}
        let rebuilt = compare::read(state, &scopes, &windows);
        for (key, cached) in &cached {
            assert_eq!(cached, &rebuilt[key], "{context}: cached and rebuilt board: {key:?}");
        }
        compare::check(state, oracle, &self.settings(), &self.tags, context)
    }

    /// Takes the next step of a board build that runs in parallel with scans.
    fn advance_build(&mut self, state: &mut State, build: Option<BoardBuild>) -> Option<BoardBuild> {
        match build {
            None => Some(BoardBuild::Planned(state.engine.plan_boards(self.random_window(state)))),
            Some(BoardBuild::Planned(plan)) => {
                Some(BoardBuild::Built(clqd::state::build_boards(&plan, &state.store.reader()).expect("a store")))
            }
            Some(BoardBuild::Built(boards)) => {
                state.engine.install_boards(boards);
                None
            }
        }
    }

    fn random_window(&mut self, state: &State) -> WindowKey {
        let running = state.engine.model().running_windows();
        let all = if self.random.below(3) > 0 { running } else { compare::windows_of(state) };
        all[self.random.below(all.len() as u64) as usize]
    }
}

enum BoardBuild {
    Planned(BuildPlan),
    Built(BuiltBoards),
}

/// All types of windows, and two custom ones that overlap.
fn specs(first_ms: i64, random: &mut Random) -> Vec<WindowSpec> {
    let base_ms = first_ms - random.below(9 * HOUR_MS as u64) as i64;
    let base = chrono::DateTime::from_timestamp_millis(base_ms).expect("a time").to_rfc3339();
    let minutes = |random: &mut Random, low: u64, high: u64| low + random.below(high - low);
    let [duration, every] = [minutes(random, 100, 240), minutes(random, 60, 100)];
    let [long, long_every] = [minutes(random, 1_500, 3_000), minutes(random, 1_300, 1_500)];
    let repeat = random.below(5);
    let mut texts = vec![
        "all-time".to_owned(),
        "hour keep=0".to_owned(),
        "day keep=0".to_owned(),
        "week keep=0".to_owned(),
        "month keep=0".to_owned(),
        format!("12 base={base} duration={duration}m every={every}m keep=0"),
    ];
    let repeat = if repeat == 0 { String::new() } else { format!(" repeat={repeat}") };
    texts.push(format!("300 base={base} duration={long}m every={long_every}m{repeat} keep=0"));
    texts.iter().map(|text| text.parse().unwrap_or_else(|e| panic!("{e}"))).collect()
}

/// Tie breakers of some boards.
fn ties(oracle: &Oracle, random: &mut Random) -> Vec<TieBreaker> {
    let rankings = ["clq1", "clq2", "elo", "points", "time"];
    let mut texts = Vec::new();
    for scope in ["", "tag:pro", "tag:all of them", "game:baseq3", &format!("server:{}", oracle.servers[0])] {
        for (ranking, index) in rankings.into_iter().zip(0..) {
            if random.below(3) == 0 {
                let by = rankings[(index + 1 + random.below(4) as usize) % 5];
                texts.push(format!("{ranking} {by} {scope}"));
            }
        }
    }
    texts.iter().map(|text| text.parse().unwrap_or_else(|e| panic!("{e}"))).collect()
}

/// Low is better on some boards of single scopes, and sometimes for a ranking in all scopes.
fn low_is_better(oracle: &Oracle, random: &mut Random) -> Vec<LowIsBetter> {
    let rankings = ["clq1", "clq2", "elo", "points", "time"];
    let games: std::collections::BTreeSet<&str> = oracle.snapshots.iter().map(|s| s.game.as_str()).collect();
    let mut scopes: Vec<String> = games.iter().map(|game| format!("game:{game}")).collect();
    scopes.extend(["tag:pro".to_owned(), "tag:race".to_owned(), format!("server:{}", oracle.servers[0])]);
    let mut texts = Vec::new();
    for scope in &scopes {
        for ranking in rankings {
            if random.below(6) == 0 {
                texts.push(format!("{ranking} {scope}"));
            }
        }
    }
    if random.below(3) == 0 {
        texts.push(rankings[random.below(5) as usize].to_owned());
    }
    texts.iter().map(|text| text.parse().unwrap_or_else(|e| panic!("{e}"))).collect()
}

/// Shifts a log, which lies at the boundary of a week, to another boundary, or leaves it there.
fn shift_to_boundary(log: &str, calendar: &Calendar, random: &mut Random) -> String {
    let time = |line: &str| -> i64 {
        let digits = line.trim_start_matches("{\"t\":").split(',').next().expect("t is the first field");
        digits.parse().unwrap_or_else(|e| panic!("{e}: {line}"))
    };
    let first = log.lines().next().map_or(0, time);
    let day = calendar.day(first);
    let length = |day: i64| calendar.day_start_ms(day + 1) - calendar.day_start_ms(day);
    let boundary = match random.below(4) {
        // The start or end of a day with 23 or 25 hours.
        0 => (day..day + 400).find(|&day| length(day) != 24 * HOUR_MS).map(|day| day + random.below(2) as i64),
        // Local days since Monday 1969-12-29: 2026-01-01 and 2027-01-01.
        1 => Some(20_457 + 365 * random.below(2) as i64),
        // 2026-03-01.
        2 => Some(20_457 + 59),
        _ => None,
    };
    let Some(boundary) = boundary else { return log.to_owned() };
    let shift_ms = calendar.day_start_ms(boundary) - first - random.below(2 * HOUR_MS as u64) as i64;
    let line = |line: &str| {
        let t = time(line);
        line.replacen(&format!("{{\"t\":{t},"), &format!("{{\"t\":{},", t + shift_ms), 1) + "\n"
    };
    log.lines().map(line).collect()
}

fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|e| panic!("{name}={text}: {e}")))
    };
    let first = number("CLQD_FIRST_SEED", 0);
    first..first + number("CLQD_SEEDS", 16)
}
