//! Extra scans at the ends of rounds: one more scan shortly before the expected end of a round,
//! or during its intermission, catches the final list. See "Scans at the ends of rounds" in
//! docs/architecture.md.
//!
//! Pure. For each server with players: what is known about its rounds ([`model`]), a budget, and
//! whether the extra scans help. It is state of the scheduler only: it is not stored, is learned
//! again after a restart, and no ranking depends on it. The extra scans are ordinary scans, so
//! all limits of packets apply to them, and the scan log contains them.

mod model;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;

pub use self::model::{Basis, Forecast, ListSeen, RoundModel, Transition};
use crate::model::ServerKey;
use crate::model::calendar::HOUR_MS;

/// Default of `scan.round_end_share`.
pub const ROUND_END_SHARE: f64 = 0.15;

/// Extra scans that a server can save.
pub const SAVED_SCANS_MAX: u16 = 8;

/// Fewest players for extra scans: the rankings by rounds need two.
pub const PLAYERS_MIN: u32 = 2;

/// Saved scans are counted in thousandths.
const SCAN: u16 = 1_000;

/// Number of extra scans after which their benefit is evaluated, and the least share that must have
/// helped.
const TRIES_MIN: u8 = 12;
const HELPED_SHARE_MIN: f64 = 0.125;

/// The least worth of an extra scan, as a share of the regular interval: with the most saved scans,
/// and with one. `cargo bench --bench round_ends` is nearly the same with half or twice as much.
const WORTH_MIN: f64 = 0.02;
const WORTH_MAX: f64 = 0.35;

/// How long no extra scans are made on a server where they do not help.
const OFF_MS: i64 = 24 * HOUR_MS;

/// The least time between an extra scan and any other scan of the server: an eighth of the
/// regular interval, within these limits.
const DISTANCE_MS_MIN: i64 = 2_000;
const DISTANCE_MS_MAX: i64 = 15_000;

pub fn distance_ms(interval_ms: i64) -> i64 {
    (interval_ms / 8).clamp(DISTANCE_MS_MIN, DISTANCE_MS_MAX)
}

/// Why no extra scans are made on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Off {
    /// Fewer than two round ends are known, or not when the current round began.
    Learning,
    /// The rounds are not longer than the scan interval: their ends are missed anyway.
    RoundsTooShort,
    /// Until this time, Unix ms: too few extra scans were the last list of a round.
    NoBenefit { until_ms: i64 },
}

/// The rounds of one server, and the extra scans made on it. 72 bytes.
#[derive(Clone, Debug, Default)]
pub struct ServerRounds {
    model: RoundModel,
    /// No extra scans until then, Unix s.
    off_until_s: u32,
    /// Extra scans that may be made, in thousandths.
    saved: u16,
    /// Extra scans that were evaluated, and how many of them were the last list of a round and
    /// differed from the list before. Both numbers are halved when they are large.
    tries: u8,
    helped: u8,
    last_list: LastList,
}

const _: () = assert!(size_of::<ServerRounds>() <= 72);

/// The last list of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LastList {
    #[default]
    Regular,
    /// It was made by an extra scan and equals the list before.
    ExtraUnchanged,
    ExtraChanged,
}

impl ServerRounds {
    /// Learns from a full list. `changed`: its points differ from those of the list before.
    /// Returns whether the list before was made by an extra scan and was the last of its round.
    fn observe(&mut self, seen: ListSeen, is_extra: bool, changed: bool) -> bool {
        self.model.observe(seen);
        let last = std::mem::take(&mut self.last_list);
        let is_end = seen.transition == Transition::NewRound;
        let was_last = is_end && last != LastList::Regular;
        if is_end && last == LastList::ExtraChanged {
            self.helped += 1;
        }
        if is_extra {
            self.last_list = if changed { LastList::ExtraChanged } else { LastList::ExtraUnchanged };
            self.tries += 1;
            if self.tries == u8::MAX {
                (self.tries, self.helped) = (self.tries / 2, self.helped / 2);
            }
        } else if self.tries >= TRIES_MIN && f64::from(self.helped) < HELPED_SHARE_MIN * f64::from(self.tries) {
            self.off_until_s = ((seen.t_ms + OFF_MS) / 1_000) as u32;
            // After the pause, a few further extra scans decide.
            (self.tries, self.helped) = (TRIES_MIN / 2, 0);
        }
        was_last
    }

    fn earn(&mut self, share: f64) {
        let earned = (share * f64::from(SCAN)) as u16;
        self.saved = (self.saved + earned).min(SAVED_SCANS_MAX * SCAN);
    }

    fn spend(&mut self) {
        debug_assert!(self.saved >= SCAN, "extra scans are planned only if one is saved");
        self.saved = self.saved.saturating_sub(SCAN);
    }

    /// The least worth of an extra scan, as a share of the regular interval. It falls steeply with
    /// the first saved scans, so that few are left unused.
    fn worth_min(&self) -> f64 {
        let saved = f64::from(self.saved) / f64::from(SCAN);
        let full = f64::from(SAVED_SCANS_MAX);
        let missing = ((full - saved) / (full - 1.0)).clamp(0.0, 1.0);
        WORTH_MIN + (WORTH_MAX - WORTH_MIN) * missing * missing
    }

    /// Why no extra scan is made.
    fn off(&self, now_ms: i64, interval_ms: i64) -> Option<Off> {
        let until_ms = i64::from(self.off_until_s) * 1_000;
        match self.model.median_length_s() {
            _ if until_ms > now_ms => Some(Off::NoBenefit { until_ms }),
            None => Some(Off::Learning),
            Some(length_s) if i64::from(length_s) * 1_000 <= interval_ms => Some(Off::RoundsTooShort),
            Some(_) => None,
        }
    }
}

/// When scans of a server are made.
#[derive(Clone, Copy, Debug)]
pub struct ScanTimes {
    /// The last list, its best points, and now; Unix ms.
    pub list_ms: i64,
    pub best: i64,
    pub now_ms: i64,
    /// The next regular scan.
    pub due_ms: i64,
    pub interval_ms: i64,
}

/// What is known about the rounds of a server, for readers.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundsView {
    /// When the round is expected to end: with probability 0.1, 0.5 and 0.9 before these times,
    /// Unix ms.
    pub end_ms: Option<[i64; 3]>,
    pub basis: Option<Basis>,
    pub off: Option<Off>,
    /// Extra scans that may be made.
    pub saved: f64,
}

/// The rounds of all servers with players.
#[derive(Debug, Default)]
pub struct RoundEnds {
    servers: FxHashMap<ServerKey, ServerRounds>,
}

impl RoundEnds {
    /// Learns from a full list of a scan. A server is remembered from its first list with two
    /// players on. Returns whether the list before was made by an extra scan and was the last of
    /// its round.
    pub fn observe(&mut self, server: ServerKey, seen: ListSeen, players: u32, is_extra: bool, changed: bool) -> bool {
        if players >= PLAYERS_MIN {
            self.servers.entry(server).or_default();
        }
        self.servers.get_mut(&server).is_some_and(|rounds| rounds.observe(seen, is_extra, changed))
    }

    /// A regular scan of the server was made.
    pub fn earn(&mut self, server: ServerKey, share: f64) {
        if let Some(rounds) = self.servers.get_mut(&server) {
            rounds.earn(share);
        }
    }

    /// An extra scan of the server is being made.
    pub fn spend(&mut self, server: ServerKey) {
        if let Some(rounds) = self.servers.get_mut(&server) {
            rounds.spend();
        }
    }

    pub fn forget(&mut self, server: ServerKey) {
        self.servers.remove(&server);
    }

    pub fn clear(&mut self) {
        self.servers = FxHashMap::default();
    }

    /// The time of an extra scan before the next regular one, Unix ms. `None`: it is not worth
    /// one.
    pub fn extra_scan_ms(&self, server: ServerKey, times: ScanTimes) -> Option<i64> {
        let rounds = self.servers.get(&server)?;
        if rounds.saved < SCAN || rounds.off(times.now_ms, times.interval_ms).is_some() {
            return None;
        }
        let forecast = rounds.model.forecast(times.list_ms, times.best)?;
        let distance_ms = distance_ms(times.interval_ms);
        let (from_ms, until_ms) = (times.now_ms.max(times.list_ms) + distance_ms, times.due_ms - distance_ms);
        let s = |t_ms: i64| t_ms as f64 / 1_000.0;
        let (at_s, worth_s) = forecast.best_scan(s(times.list_ms), s(from_ms), s(until_ms), s(times.due_ms))?;
        let is_worth_it = worth_s * 1_000.0 >= rounds.worth_min() * times.interval_ms as f64;
        is_worth_it.then(|| ((at_s * 1_000.0) as i64).clamp(from_ms, until_ms))
    }

    pub fn view(&self, server: ServerKey, times: ScanTimes) -> RoundsView {
        let Some(rounds) = self.servers.get(&server) else {
            return RoundsView { end_ms: None, basis: None, off: Some(Off::Learning), saved: 0.0 };
        };
        let forecast = rounds.model.forecast(times.list_ms, times.best);
        RoundsView {
            end_ms: forecast.as_ref().and_then(Forecast::quantiles_s).map(|times| times.map(|s| (s * 1_000.0) as i64)),
            off: rounds.off(times.now_ms, times.interval_ms).or(forecast.is_none().then_some(Off::Learning)),
            basis: forecast.map(|forecast| forecast.basis),
            saved: f64::from(rounds.saved) / f64::from(SCAN),
        }
    }
}
