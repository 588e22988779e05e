//! Simulated play with known ground truth, scanned in virtual time: the reference for the
//! estimates of docs/rules.md section 15.
//!
//! Unlike the fleet (`clqd::fleet`), which resembles real servers, this is a controlled
//! model: a [`Scenario`] sets the length of rounds and intermissions, the scoring and the
//! length of stays. It is advanced in steps of a second. Players score at random at individual
//! rates; in an intermission scores do not change. Scans of a server have a fixed phase; some
//! are missed.

use std::collections::HashMap;

use clqd::engine::{EngineSettings, Event, Outcome};
use clqd::fleet::rng::{RngExt, SplitMix64};
use clqd::model::calendar::{Calendar, week_label};
use clqd::model::{Completeness, Player, ServerUrl, Snapshot};
use clqd::state::State;
use clqd::store::StoreSettings;

/// Monday 2025-11-24 00:00 UTC.
pub const START_MS: i64 = 1_763_942_400_000;

/// Players of each server.
const PLAYERS: usize = 60;

/// Durations are in seconds.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub scan_every: i64,
    /// Share of the scans that are missed.
    pub missed: f64,
    /// Each server has its own length in this range.
    pub round: (f64, f64),
    /// A round also ends when a player has this many scores.
    pub score_limit: Option<i64>,
    pub intermission: (f64, f64),
    /// After each intermission no player scores for this long.
    pub warm_up: f64,
    /// Share of the rounds after which the map changes.
    pub map_changes: f64,
    /// Mean number of players on a server.
    pub players: f64,
    /// Mean length of a stay; at least 60.
    pub stay: f64,
    /// Share of the players who leave in each intermission.
    pub leaving_at_end: f64,
    /// Rate of a player of mean skill.
    pub scores_per_minute: f64,
    /// Standard deviation of the logarithm of the skill.
    pub skill_spread: f64,
    /// Points of a score.
    pub step: i64,
    /// Share of the scores that cost a point instead.
    pub suicides: f64,
}

impl Scenario {
    /// Rounds of 5 to 20 minutes, intermissions of 20 to 30 s, eight players.
    pub const BASE: Scenario = Scenario {
        name: "base",
        scan_every: 120,
        missed: 0.02,
        round: (300.0, 1_200.0),
        score_limit: None,
        intermission: (20.0, 30.0),
        warm_up: 0.0,
        map_changes: 0.8,
        players: 8.0,
        stay: 2_400.0,
        leaving_at_end: 0.0,
        scores_per_minute: 1.5,
        skill_spread: 0.5,
        step: 1,
        suicides: 0.0,
    };
}

/// Ground truth of a player on a server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Truth {
    pub points: i64,
    pub present_s: i64,
}

/// Bias is the error of the sum, median the median of the absolute errors of rows; both in
/// percent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Error {
    pub bias: f64,
    pub median: f64,
}

/// The difference between rows and ground truth.
#[derive(Clone, Copy, Debug)]
pub struct Errors {
    pub rows: usize,
    pub points: Error,
    pub points_est: Error,
    pub time: Error,
    pub time_est: Error,
}

/// An exported row and its ground truth.
#[derive(Clone, Copy, Debug)]
pub struct Compared {
    pub true_points: f64,
    pub points: f64,
    pub points_est: f64,
    pub true_ms: f64,
    pub time_ms: f64,
    pub time_est_ms: f64,
}

pub fn errors(rows: &[Compared]) -> Errors {
    assert!(!rows.is_empty());
    let error = |value: fn(&Compared) -> f64, truth: fn(&Compared) -> f64| {
        let (sum, true_sum) = (rows.iter().map(value).sum::<f64>(), rows.iter().map(truth).sum::<f64>());
        let mut sizes: Vec<f64> = rows.iter().map(|row| (value(row) / truth(row) - 1.0).abs()).collect();
        sizes.sort_by(f64::total_cmp);
        Error { bias: (sum / true_sum - 1.0) * 100.0, median: sizes[sizes.len() / 2] * 100.0 }
    };
    Errors {
        rows: rows.len(),
        points: error(|row| row.points, |row| row.true_points),
        points_est: error(|row| row.points_est, |row| row.true_points),
        time: error(|row| row.time_ms, |row| row.true_ms),
        time_est: error(|row| row.time_est_ms, |row| row.true_ms),
    }
}

/// An engine with a temporary store.
pub struct Ranked {
    state: State,
    _dir: tempfile::TempDir,
}

impl Ranked {
    pub fn new() -> Ranked {
        let dir = tempfile::tempdir().expect("a directory");
        let store = StoreSettings { cache_bytes: 64 << 20, create: true };
        let state = State::open(&dir.path().join("state"), store, EngineSettings::default()).expect("a state");
        Ranked { state, _dir: dir }
    }

    pub fn apply(&mut self, url: &ServerUrl, snapshot: Snapshot) {
        let event = Event::Replayed { url: url.clone(), outcome: Outcome::Snapshot(snapshot) };
        self.state.handle(event).expect("a store that works");
    }

    /// All rows of the week: server, normalised name, and the row with a ground truth of 0.
    pub fn rows(mut self) -> Vec<(String, String, Compared)> {
        self.state.commit().expect("a store that works");
        let week = week_label(Calendar::default().week(START_MS));
        let mut rows = Vec::new();
        self.state
            .engine
            .model()
            .export(&self.state.store, &week, |server, _, player, row, _| {
                let compared = Compared {
                    true_points: 0.0,
                    points: row.points as f64,
                    points_est: row.points_est(),
                    true_ms: 0.0,
                    time_ms: row.time_ms() as f64,
                    time_est_ms: row.time_est_ms as f64,
                };
                rows.push((server.to_owned(), player.to_owned(), compared));
                Ok::<(), clqd::cli::export::ExportError>(())
            })
            .expect("an export");
        rows
    }
}

/// Runs a scenario and returns the errors of the rows of players with at least an hour.
pub fn run(scenario: &Scenario, servers: u32, hours: i64, seed: u64) -> Errors {
    let mut ranked = Ranked::new();
    let mut simulated: Vec<Server> = (0..servers).map(|number| Server::new(scenario, number, seed)).collect();
    for second in 1..=hours * 3_600 {
        for server in &mut simulated {
            if let Some(snapshot) = server.step(scenario, second) {
                ranked.apply(&server.url, snapshot);
            }
        }
    }
    let truth: HashMap<(String, String), Truth> =
        simulated.iter().flat_map(|server| server.truth(hours * 3_600)).collect();
    let mut rows = Vec::new();
    for (server, player, row) in ranked.rows() {
        let Some(truth) = truth.get(&(server, player)) else { continue };
        if truth.present_s >= 3_600 && truth.points > 0 {
            rows.push(Compared { true_points: truth.points as f64, true_ms: truth.present_s as f64 * 1_000.0, ..row });
        }
    }
    errors(&rows)
}

struct Server {
    rng: SplitMix64,
    url: ServerUrl,
    /// Scores a second of each player.
    rates: Vec<f64>,
    truth: Vec<Truth>,
    present: Vec<Present>,
    map: u32,
    round_s: f64,
    round_from_s: f64,
    round_to_s: f64,
    /// End of the current intermission.
    pause_to_s: Option<f64>,
    next_arrival_s: f64,
    next_scan_s: i64,
}

struct Present {
    player: usize,
    points: i64,
    since_s: i64,
    until_s: f64,
}

impl Server {
    fn new(scenario: &Scenario, number: u32, seed: u64) -> Server {
        let mut rng = SplitMix64::from_parts(&[seed, 0x9A3E, u64::from(number)]);
        let spread = scenario.skill_spread;
        let rates = (0..PLAYERS).map(|_| rng.log_normal(spread) * scenario.scores_per_minute / 60.0);
        let rates = rates.collect();
        let round_s = uniform(&mut rng, scenario.round);
        Server {
            url: ServerUrl::parse(&format!("quake3://10.0.{}.{}:27960", number / 250, number % 250 + 1))
                .expect("a URL"),
            rates,
            truth: vec![Truth::default(); PLAYERS],
            present: Vec::new(),
            map: 0,
            round_s,
            round_from_s: f64::MIN,
            round_to_s: round_s * rng.unit(),
            pause_to_s: None,
            next_arrival_s: 0.0,
            next_scan_s: 1 + rng.below(scenario.scan_every as usize) as i64,
            rng,
        }
    }

    /// Simulates one second. Returns the snapshot if the server is scanned at its end.
    fn step(&mut self, scenario: &Scenario, second: i64) -> Option<Snapshot> {
        let now_s = second as f64;
        if self.pause_to_s.is_some_and(|to_s| now_s >= to_s) {
            self.begin_round(scenario, now_s);
        }
        if self.pause_to_s.is_none() {
            let limit_reached = now_s - self.round_from_s >= scenario.warm_up && self.score(scenario);
            if limit_reached || now_s >= self.round_to_s {
                let pause_s = uniform(&mut self.rng, scenario.intermission);
                for present in &mut self.present {
                    if self.rng.bool(scenario.leaving_at_end) {
                        present.until_s = now_s + pause_s * self.rng.unit();
                    }
                }
                match pause_s > 0.0 {
                    true => self.pause_to_s = Some(now_s + pause_s),
                    false => self.begin_round(scenario, now_s),
                }
            }
        }
        self.update_present(scenario, second);
        if second != self.next_scan_s {
            return None;
        }
        self.next_scan_s += scenario.scan_every;
        (!self.rng.bool(scenario.missed)).then(|| self.snapshot(second))
    }

    fn begin_round(&mut self, scenario: &Scenario, now_s: f64) {
        self.pause_to_s = None;
        self.present.iter_mut().for_each(|present| present.points = 0);
        (self.round_from_s, self.round_to_s) = (now_s, now_s + self.round_s);
        self.map += u32::from(self.rng.bool(scenario.map_changes));
    }

    /// Lets players score for a second. Returns whether one has reached the score limit.
    fn score(&mut self, scenario: &Scenario) -> bool {
        let mut limit_reached = false;
        for present in &mut self.present {
            if !self.rng.bool(self.rates[present.player]) {
                continue;
            }
            let points = if self.rng.bool(scenario.suicides) { -1 } else { scenario.step };
            present.points += points;
            self.truth[present.player].points += points;
            limit_reached |= scenario.score_limit.is_some_and(|limit| present.points >= limit * scenario.step);
        }
        limit_reached
    }

    fn update_present(&mut self, scenario: &Scenario, second: i64) {
        let truth = &mut self.truth;
        self.present.retain(|present| {
            let stays = present.until_s > second as f64;
            if !stays {
                truth[present.player].present_s += second - present.since_s;
            }
            stays
        });
        while self.next_arrival_s <= second as f64 {
            self.next_arrival_s += self.rng.exponential(scenario.stay / scenario.players);
            // Low numbers arrive more often.
            let unit = self.rng.unit();
            let player = (unit * unit * PLAYERS as f64) as usize;
            let until_s = second as f64 + 60.0 + self.rng.exponential(scenario.stay - 60.0);
            if self.present.iter().all(|present| present.player != player) {
                self.present.push(Present { player, points: 0, since_s: second, until_s });
            }
        }
    }

    fn snapshot(&self, second: i64) -> Snapshot {
        let player = |present: &Present| Player {
            name: format!("p{}", present.player).into(),
            points: Some(present.points),
            ping: Some(40),
            ..Player::default()
        };
        Snapshot {
            t_ms: START_MS + second * 1_000,
            game: "baseq3".to_owned(),
            map: format!("m{}", self.map % 8),
            hostname: String::new(),
            slots: 64,
            players: self.present.iter().map(player).collect(),
            completeness: Completeness::Full,
            count: None,
            bots: None,
        }
    }

    fn truth(&self, now_s: i64) -> impl Iterator<Item = ((String, String), Truth)> {
        let mut truth = self.truth.clone();
        for present in &self.present {
            truth[present.player].present_s += now_s - present.since_s;
        }
        let server = self.url.to_string();
        truth.into_iter().enumerate().map(move |(player, truth)| ((server.clone(), format!("p{player}")), truth))
    }
}

fn uniform(rng: &mut SplitMix64, (from, to): (f64, f64)) -> f64 {
    from + (to - from) * rng.unit()
}
