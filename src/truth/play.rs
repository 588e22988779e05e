//! The play on one server, event by event, and what truly happened. Pure: a seed determines it, and
//! it does not depend on when the server is scanned.
//!
//! Players arrive at random, more of them in the evening, stay for half an hour on average, and score at random at
//! individual rates. A round ends by time or points. The final list is shown until the next round begins; some players
//! do not wait for that.

use super::scenario::Scenario;
use crate::fleet::rng::{RngExt, SplitMix64};
use crate::model::calendar::{DAY_MS, HOUR_MS, MINUTE_MS};
use crate::model::{Completeness, Player, Snapshot};
use crate::rank::clq1::SEGMENT_MS;

/// Different players of a server.
pub const PLAYERS: usize = 60;

const STAY_MS_MIN: f64 = 60_000.0;
const STAY_MS_MEAN: f64 = 1_800_000.0;
const SCORES_PER_MINUTE: f64 = 1.5;
/// Standard deviation of the logarithm of the rates of players.
const SKILL_SPREAD: f64 = 0.5;
const MAP_CHANGES: f64 = 0.8;
const MAPS: u32 = 8;
const SLOTS: usize = 32;

/// A player by number, and their points.
pub type Standing = (usize, i64);

/// A round with at least two players at its end, of whom the best has points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    pub began_ms: i64,
    /// The end of play. The final list is shown until the next round begins.
    pub ended_ms: i64,
    pub next_ms: i64,
    /// Most points first.
    pub finals: Vec<Standing>,
}

/// What a player truly did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlayerTruth {
    pub present_ms: i64,
    pub points: i64,
    /// Points of all complete segments of 720 s of play.
    pub segments: Vec<i64>,
}

#[derive(Clone, Debug)]
struct Present {
    player: usize,
    points: i64,
    joined_ms: i64,
    leaves_ms: i64,
    scores_ms: i64,
    segment_from_ms: i64,
    segment_points: i64,
}

/// A server on which players play.
#[derive(Clone, Debug)]
pub struct Play {
    scenario: Scenario,
    rng: SplitMix64,
    now_ms: i64,
    /// Mean time between two scores of each player.
    score_ms: Vec<f64>,
    time_limit_ms: i64,
    point_limit: Option<i64>,
    intermission_ms: f64,
    arrivals_ms_mean: f64,
    busiest_hour: f64,
    present: Vec<Present>,
    next_arrival_ms: i64,
    round_from_ms: i64,
    round_to_ms: i64,
    /// Until then the final list is shown.
    intermission_to_ms: Option<i64>,
    map: u32,
    rounds: Vec<Round>,
    players: Vec<PlayerTruth>,
}

impl Play {
    /// The server of this number, from a time on, Unix ms.
    pub fn new(scenario: Scenario, seed: u64, number: u32, start_ms: i64) -> Play {
        let mut rng = SplitMix64::from_parts(&[seed, 0x7247, u64::from(number)]);
        let range = |rng: &mut SplitMix64, (from, to): (f64, f64)| from + (to - from) * rng.unit();
        let log_range = |rng: &mut SplitMix64, (from, to): (f64, f64)| range(rng, (f64::ln(from), to.ln())).exp();
        let time_limit_min = log_range(&mut rng, scenario.time_limit_min).round();
        let players = log_range(&mut rng, scenario.players);
        let score_ms: Vec<f64> =
            (0..PLAYERS).map(|_| MINUTE_MS as f64 / (SCORES_PER_MINUTE * rng.log_normal(SKILL_SPREAD))).collect();
        // The best of a few players reaches the limit within 3 to 15 minutes.
        let points = log_range(&mut rng, (8.0, 40.0));
        let point_limit = rng.bool(scenario.point_limits).then_some((points / 5.0).ceil() as i64 * 5);
        let intermission_ms = range(&mut rng, scenario.intermission_s) * 1_000.0;
        let busiest_hour = 24.0 * rng.unit();
        let time_limit_ms = time_limit_min as i64 * MINUTE_MS;
        let mut play = Play {
            scenario,
            now_ms: start_ms,
            score_ms,
            time_limit_ms,
            point_limit,
            intermission_ms,
            arrivals_ms_mean: STAY_MS_MEAN / players,
            busiest_hour,
            present: Vec::new(),
            next_arrival_ms: start_ms,
            round_from_ms: start_ms,
            round_to_ms: start_ms + rng.below(time_limit_ms as usize) as i64 + 1,
            intermission_to_ms: None,
            map: 0,
            rounds: Vec::new(),
            players: vec![PlayerTruth::default(); PLAYERS],
            rng,
        };
        play.draw_arrival();
        play
    }

    /// Whether this scan fails.
    pub fn is_missed(&self, scan_rng: &mut SplitMix64) -> bool {
        scan_rng.bool(self.scenario.missed)
    }

    /// The rated rounds that have ended, oldest first.
    pub fn rounds(&self) -> &[Round] {
        &self.rounds
    }

    /// What each player did until now.
    pub fn truth(&self) -> Vec<PlayerTruth> {
        let mut play = self.clone();
        while !play.present.is_empty() {
            play.leave(0);
        }
        play.players
    }

    /// Plays until a time, Unix ms.
    pub fn advance(&mut self, to_ms: i64) {
        loop {
            let phase_ms = self.intermission_to_ms.unwrap_or(self.round_to_ms);
            let is_playing = self.intermission_to_ms.is_none();
            let of_player = |present: &Present| {
                if is_playing { present.leaves_ms.min(present.scores_ms) } else { present.leaves_ms }
            };
            let player = self.present.iter().map(of_player).enumerate().min_by_key(|(_, at_ms)| *at_ms);
            let player_ms = player.map_or(i64::MAX, |(_, at_ms)| at_ms);
            let next_ms = phase_ms.min(self.next_arrival_ms).min(player_ms);
            if next_ms > to_ms {
                break;
            }
            self.now_ms = next_ms;
            match player {
                _ if next_ms == phase_ms && is_playing => self.end_round(),
                _ if next_ms == phase_ms => self.begin_round(),
                _ if next_ms == self.next_arrival_ms => self.arrive(),
                Some((at, _)) if self.present[at].leaves_ms == next_ms => self.leave(at),
                Some((at, _)) => self.score(at),
                None => unreachable!("one of the events is next"),
            }
        }
        self.now_ms = to_ms;
    }

    fn draw_arrival(&mut self) {
        // Thinned: the rate changes with the hour.
        loop {
            self.next_arrival_ms += 1 + self.rng.exponential(self.arrivals_ms_mean) as i64;
            let hour = (self.next_arrival_ms % DAY_MS) as f64 / HOUR_MS as f64;
            let load = 0.65 + 0.35 * ((hour - self.busiest_hour) * std::f64::consts::TAU / 24.0).cos();
            if self.rng.bool(load) {
                return;
            }
        }
    }

    fn arrive(&mut self) {
        // Low numbers play more often.
        let unit = self.rng.unit();
        let player = (unit * unit * PLAYERS as f64) as usize;
        let stay_ms = STAY_MS_MIN + self.rng.exponential(STAY_MS_MEAN - STAY_MS_MIN);
        if self.present.len() < SLOTS && self.present.iter().all(|present| present.player != player) {
            let scores_ms = self.draw_score(player);
            self.present.push(Present {
                player,
                points: 0,
                joined_ms: self.now_ms,
                leaves_ms: self.now_ms + stay_ms as i64,
                scores_ms,
                segment_from_ms: self.now_ms,
                segment_points: 0,
            });
            if self.intermission_to_ms.is_none() {
                self.draw_early_leave(self.present.len() - 1);
            }
        }
        self.draw_arrival();
    }

    fn draw_score(&mut self, player: usize) -> i64 {
        self.now_ms + 1 + self.rng.exponential(self.score_ms[player]) as i64
    }

    /// Some do not wait for the end of the round.
    fn draw_early_leave(&mut self, at: usize) {
        if self.rng.bool(self.scenario.leave_before_end) {
            let leaves_ms = self.round_to_ms - self.rng.below(MINUTE_MS as usize) as i64;
            if leaves_ms > self.now_ms {
                self.present[at].leaves_ms = self.present[at].leaves_ms.min(leaves_ms);
            }
        }
    }

    fn score(&mut self, at: usize) {
        let scores_ms = self.draw_score(self.present[at].player);
        self.complete_segments(at);
        let present = &mut self.present[at];
        present.scores_ms = scores_ms;
        present.points += 1;
        present.segment_points += 1;
        self.players[present.player].points += 1;
        if self.point_limit.is_some_and(|limit| present.points >= limit) {
            self.end_round();
        }
    }

    fn complete_segments(&mut self, at: usize) {
        let present = &mut self.present[at];
        while present.segment_from_ms + SEGMENT_MS <= self.now_ms {
            self.players[present.player].segments.push(std::mem::take(&mut present.segment_points));
            present.segment_from_ms += SEGMENT_MS;
        }
    }

    fn leave(&mut self, at: usize) {
        self.complete_segments(at);
        let present = self.present.swap_remove(at);
        self.players[present.player].present_ms += self.now_ms - present.joined_ms;
    }

    fn end_round(&mut self) {
        let varies_ms = self.scenario.intermission_varies_s * 1_000.0 * self.rng.unit();
        let intermission_ms = (self.intermission_ms + varies_ms) as i64;
        let next_ms = self.now_ms + intermission_ms;
        let mut finals: Vec<Standing> = self.present.iter().map(|present| (present.player, present.points)).collect();
        finals.sort_by_key(|&(player, points)| (-points, player));
        if finals.len() >= 2 && finals[0].1 > 0 {
            self.rounds.push(Round { began_ms: self.round_from_ms, ended_ms: self.now_ms, next_ms, finals });
        }
        for present in &mut self.present {
            if intermission_ms > 0 && self.rng.bool(self.scenario.leave_in_intermission) {
                let leaves_ms = self.now_ms + self.rng.below(intermission_ms as usize) as i64;
                present.leaves_ms = present.leaves_ms.min(leaves_ms);
            }
        }
        self.intermission_to_ms = Some(next_ms);
    }

    fn begin_round(&mut self) {
        self.intermission_to_ms = None;
        (self.round_from_ms, self.round_to_ms) = (self.now_ms, self.now_ms + self.time_limit_ms);
        if self.rng.bool(MAP_CHANGES) {
            self.map = (self.map + 1) % MAPS;
        }
        for at in 0..self.present.len() {
            self.present[at].points = 0;
            self.present[at].scores_ms = self.draw_score(self.present[at].player);
            self.draw_early_leave(at);
        }
    }

    /// What a scan at the time that the play has reached shows.
    pub fn snapshot(&self) -> Snapshot {
        let player = |present: &Present| Player {
            name: player_name(present.player).into(),
            points: Some(present.points),
            ping: Some(40),
            connected_ms: Some((self.now_ms - present.joined_ms).unsigned_abs() / 1_000 * 1_000),
            bot: false,
            spectator: false,
        };
        Snapshot {
            t_ms: self.now_ms,
            game: "baseq3".to_owned(),
            map: format!("map{}", self.map),
            hostname: String::new(),
            slots: SLOTS as u32,
            players: self.present.iter().map(player).collect(),
            completeness: Completeness::Full,
            count: None,
            bots: None,
        }
    }
}

pub fn player_name(player: usize) -> String {
    format!("p{player}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::Scenario;

    const DAYS_MS: i64 = 2 * DAY_MS;

    #[test]
    fn play_does_not_depend_on_when_it_is_looked_at() {
        for scenario in Scenario::ALL {
            let (mut once, mut often) = (Play::new(scenario, 7, 3, 1_000), Play::new(scenario, 7, 3, 1_000));
            once.advance(1_000 + DAYS_MS);
            let mut rng = SplitMix64::from_parts(&[1]);
            while often.now_ms < 1_000 + DAYS_MS {
                often.advance((often.now_ms + rng.below(300_000) as i64).min(1_000 + DAYS_MS));
            }
            assert_eq!(once.rounds(), often.rounds());
            assert_eq!(once.truth(), often.truth());
            assert!(once.rounds().len() > 20, "{}: {} rounds", scenario.name, once.rounds().len());
        }
    }

    /// Points of players are those of the lists, and nobody is there twice.
    #[test]
    fn truth_follows_from_lists_that_are_close_enough() {
        let mut play = Play::new(Scenario::STANDARD, 2, 1, 0);
        let mut present_ms = 0;
        let mut before = play.snapshot();
        for second in 1..=86_400 {
            play.advance(second * 1_000);
            let list = play.snapshot();
            for player in &list.players {
                assert_eq!(list.players.iter().filter(|other| other.name == player.name).count(), 1);
                present_ms += if before.players.iter().any(|other| other.name == player.name) { 1_000 } else { 0 };
            }
            before = list;
        }
        let truth = play.truth();
        let true_ms: i64 = truth.iter().map(|player| player.present_ms).sum();
        assert!((present_ms as f64 / true_ms as f64 - 1.0).abs() < 0.01, "{present_ms} {true_ms}");
        let points: i64 = truth.iter().map(|player| player.points).sum();
        let of_rounds: i64 = play.rounds().iter().flat_map(|round| &round.finals).map(|(_, points)| points).sum();
        assert!(of_rounds <= points && of_rounds * 10 > points * 6, "{of_rounds} of {points}");
        for round in play.rounds() {
            assert!(round.began_ms < round.ended_ms && round.ended_ms <= round.next_ms);
            assert!(round.finals.is_sorted_by_key(|(_, points)| -points) && round.finals[0].1 > 0);
        }
    }
}
