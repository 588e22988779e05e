//! Elastic scans: every scan of a server with players is made when it tells most, as long as the mean
//! number of scans keeps to a budget. See "Elastic scans" in docs/architecture.md.
//!
//! Pure. For each server with players: what is known about its rounds ([`model`]), the scans that it has saved, and
//! the price of a scan. It is state of the scheduler only: it is not stored, is learned again after a restart, and no
//! ranking depends on it.

mod model;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;

pub use self::model::{Basis, ListSeen, Transition};
use self::model::{Forecast, RoundModel};
use super::next_due_ms;
use crate::model::ServerKey;
use crate::model::calendar::MINUTE_MS;

/// Default of `scan.budget`: scans of a server with players in an interval of class 1.
pub const BUDGET: f64 = 1.15;

/// Default of `scan.elastic_players_min`.
pub const ELASTIC_PLAYERS_MIN: u32 = 1;

/// The interval of class 1 that the times and prices below are for. With another one they scale.
const USUAL_INTERVAL_MS: i64 = 2 * MINUTE_MS;

/// The least and the most time between two scans, s.
const GAP_S_MIN: f64 = 8.0;
const GAP_S_MAX: f64 = 240.0;

/// The least and the most real time between two scans, ms: with another interval, too, a server is not pressed, and a
/// gap does not end presences (`INVISIBLE_GAP_MS`), unless the mean gap does.
const REAL_GAP_MS_MIN: i64 = 8_000;
const REAL_GAP_MS_MAX: i64 = 11 * MINUTE_MS;

/// The longest gap as a share of the mean length of a round: in a longer one a whole round may be lost, which the objective
/// does not count. A gap may always be [`GAP_MEANS_MAX`] times as long as the mean gap, so that the budget is kept.
/// With both, the winners of 1.4 % more of the rounds of 5 minutes are right, of 0.8 % more of those that end by points, and
/// of 0.1 % fewer where half of the players leave (docs/benchmarks.md, Truth).
const GAP_ROUNDS_MAX: f64 = 0.2;
const GAP_MEANS_MAX: f64 = 1.1;

/// What it costs that the last scan is t s ago: players who came, left or scored are seen t s late, and
/// this much of it counts; in seconds of a round whose end was not seen.
const DRIFT_PER_S: f64 = 0.0028;

/// What it is worth to know the ends by a time limit a second more exactly, s.
const LEARN: f64 = 0.4;

/// Scans that a server has saved at the start, and the most.
const SAVED_AT_START: f64 = 4.0;
const SAVED_MAX: f64 = 8.0;

/// With fewer saved scans than this, the next scan is an interval away at least.
const SAVED_MIN: f64 = -4.0;

/// The price of a scan at a budget of 1, in s: about the price at which scans without rounds are an interval apart.
const PRICE_S: f64 = 20.0;
const PRICE_S_MIN: f64 = 0.3;
const PRICE_S_MAX: f64 = 400.0;

/// How fast the price follows the saved scans: its mean over many scans, and at once.
const SLOW: f64 = 0.03 / SAVED_MAX;
const FAST: f64 = 0.15;

/// Time between two considered times of the next scan, s.
const STEP_S: f64 = 2.0;

/// The step of the integral over the times at which a round may end, s.
const INTEGRATION_STEP_S: f64 = 4.0;

/// Intervals after which a list is too old.
const LIST_INTERVALS_MAX: i64 = 6;

/// How many scans a server may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Mean number of scans in an interval; above 0.
    pub budget: f64,
    /// The interval of class 1.
    pub interval_ms: i64,
}

impl Pace {
    /// Real seconds for each second of the constants above.
    fn scale(self) -> f64 {
        self.interval_ms as f64 / USUAL_INTERVAL_MS as f64
    }

    /// The least and the most time between two scans, ms.
    fn gap_bounds_ms(self) -> (i64, i64) {
        let mean_ms = (self.interval_ms as f64 / self.budget) as i64;
        let longest_ms = (GAP_S_MAX * self.scale() * 1_000.0) as i64;
        (REAL_GAP_MS_MIN.min(mean_ms), longest_ms.min(REAL_GAP_MS_MAX).max((GAP_MEANS_MAX * mean_ms as f64) as i64))
    }
}

/// A scan has ended, or a scan is to be planned.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Now, and the last full list; Unix ms.
    pub now_ms: i64,
    pub list_ms: i64,
    /// Best points in the list.
    pub best: i64,
}

/// The rounds and scans of one server.
#[derive(Clone, Debug)]
struct ElasticServer {
    model: RoundModel,
    /// Scans that may be made at once; negative: too many were made.
    saved: f32,
    /// The price relative to its start. It follows `saved` slowly.
    price_factor: f32,
    /// Until when the budget was counted, Unix ms; `None`: the server had no players, or was boosted.
    counted_ms: Option<i64>,
}

const _: () = assert!(size_of::<ElasticServer>() <= 192);

impl Default for ElasticServer {
    fn default() -> Self {
        let model = RoundModel::default();
        ElasticServer { model, saved: SAVED_AT_START as f32, price_factor: 1.0, counted_ms: None }
    }
}

impl ElasticServer {
    /// Earns what the budget allows since the last scan, and spends a scan. Returns whether there was a last scan.
    fn count(&mut self, pace: Pace, now_ms: i64, is_requested: bool) -> bool {
        let Some(counted_ms) = self.counted_ms.replace(now_ms) else { return false };
        // A pause of the daemon earns nothing.
        let passed_ms = (now_ms - counted_ms).clamp(0, 2 * pace.interval_ms);
        let earned = pace.budget * passed_ms as f64 / pace.interval_ms as f64;
        let spent = if is_requested { 0.0 } else { 1.0 };
        let saved = (f64::from(self.saved) + earned - spent).min(SAVED_MAX);
        self.saved = saved as f32;
        let factor = f64::from(self.price_factor) * (SLOW * (SAVED_AT_START - saved)).exp();
        let at_start = PRICE_S / pace.budget;
        self.price_factor = factor.clamp(PRICE_S_MIN / at_start, PRICE_S_MAX / at_start) as f32;
        true
    }

    /// What a scan must be worth, s.
    fn price_s(&self, pace: Pace) -> f64 {
        let fast = (FAST * (SAVED_AT_START - f64::from(self.saved))).exp();
        (PRICE_S / pace.budget * f64::from(self.price_factor) * fast).clamp(PRICE_S_MIN, PRICE_S_MAX)
    }

    /// The next scan is made before the server has saved more than it may, or a part of the budget would be lost: without
    /// this limit a server with rounds of 149 s and a budget of 4.6 used 70 % of it.
    /// `round_s`: mean length of its rounds, if it is known.
    fn gap_s_max(&self, pace: Pace, round_s: Option<f64>) -> f64 {
        let unsaved = SAVED_MAX + 1.0 - f64::from(self.saved);
        let mean_gap_s = USUAL_INTERVAL_MS as f64 / 1_000.0 / pace.budget;
        let of_round_s = round_s
            .map_or(GAP_S_MAX, |round_s| (GAP_ROUNDS_MAX * round_s / pace.scale()).max(GAP_MEANS_MAX * mean_gap_s));
        (unsaved * mean_gap_s).min(of_round_s).clamp(GAP_S_MIN, GAP_S_MAX)
    }

    fn next_scan_ms(&self, pace: Pace, moment: Moment) -> i64 {
        let scale = pace.scale();
        // From an older list nothing can be foretold.
        let is_recent = moment.now_ms - moment.list_ms <= LIST_INTERVALS_MAX * pace.interval_ms;
        let forecast = self.model.forecast(moment.list_ms, moment.best).filter(|_| is_recent);
        let gap_s_max = self.gap_s_max(pace, forecast.as_ref().map(|forecast| forecast.mean_s));
        let gap_s = best_gap_s(forecast.as_ref(), self.price_s(pace), moment, scale, gap_s_max);
        let (shortest_ms, longest_ms) = pace.gap_bounds_ms();
        let gap_ms = ((gap_s * scale * 1_000.0) as i64).clamp(shortest_ms, longest_ms);
        let least_ms = if f64::from(self.saved) < SAVED_MIN { pace.interval_ms } else { 0 };
        moment.now_ms + gap_ms.max(least_ms).max(1)
    }
}

/// The time from now to the next scan, s, at which a scan costs least for each second: its price, the seconds at the end of a
/// round that it does not see, and what happens between two scans.
fn best_gap_s(forecast: Option<&Forecast>, price_s: f64, moment: Moment, scale: f64, gap_s_max: f64) -> f64 {
    let without_end_s = (2.0 * price_s / DRIFT_PER_S).sqrt().clamp(GAP_S_MIN, gap_s_max);
    let now_s = moment.now_ms as f64 / 1_000.0;
    let Some(forecast) = forecast else { return without_end_s };
    let mut ends = forecast.ends(INTEGRATION_STEP_S * scale);
    let (mut best_s, mut least_cost) = (without_end_s, f64::INFINITY);
    let mut gap_s = GAP_S_MIN;
    while gap_s <= gap_s_max {
        let unseen_s = ends.unseen_s(now_s + gap_s * scale) - LEARN * ends.narrowing_s();
        let cost = (price_s + unseen_s / scale + DRIFT_PER_S * gap_s * gap_s / 2.0) / gap_s;
        if cost < least_cost {
            (best_s, least_cost) = (gap_s, cost);
        }
        gap_s += STEP_S;
    }
    best_s
}

/// What is known about the rounds of a server, for readers.
#[derive(Clone, Debug, PartialEq)]
pub struct ElasticView {
    /// When the round is expected to end: with probability 0.1, 0.5 and 0.9 before these times, Unix ms.
    pub end_ms: Option<[i64; 3]>,
    pub basis: Option<Basis>,
    /// Scans that may be made at once.
    pub saved: f64,
}

/// The rounds and scans of all servers with players.
#[derive(Debug, Default)]
pub struct ElasticScans {
    servers: FxHashMap<ServerKey, ElasticServer>,
}

impl ElasticScans {
    /// Learns from a full list.
    pub fn observe(&mut self, server: ServerKey, seen: ListSeen) {
        if let Some(server) = self.servers.get_mut(&server) {
            server.model.observe(seen);
        }
    }

    /// A scan has ended: the time of the next one, Unix ms. After the first scan it is on the grid of class 1, so servers
    /// that are added at once are spread over the interval.
    pub fn next_scan_ms(&mut self, key: ServerKey, pace: Pace, moment: Moment, is_requested: bool) -> i64 {
        let server = self.servers.entry(key).or_default();
        if server.count(pace, moment.now_ms, is_requested) {
            return server.next_scan_ms(pace, moment);
        }
        let earliest_ms = moment.now_ms + (GAP_S_MIN * pace.scale() * 1_000.0) as i64;
        next_due_ms(key, pace.interval_ms, moment.now_ms).max(earliest_ms)
    }

    /// The server is scanned on the fixed grid until further notice.
    pub fn pause(&mut self, server: ServerKey) {
        if let Some(server) = self.servers.get_mut(&server) {
            server.counted_ms = None;
        }
    }

    pub fn forget(&mut self, server: ServerKey) {
        self.servers.remove(&server);
    }

    pub fn clear(&mut self) {
        self.servers = FxHashMap::default();
    }

    pub fn view(&self, server: ServerKey, moment: Moment) -> Option<ElasticView> {
        let server = self.servers.get(&server)?;
        let forecast = server.model.forecast(moment.list_ms, moment.best);
        Some(ElasticView {
            end_ms: forecast.as_ref().and_then(Forecast::quantiles_s).map(|times| times.map(|s| (s * 1_000.0) as i64)),
            basis: forecast.map(|forecast| forecast.basis),
            saved: server.saved.into(),
        })
    }
}
