//! What is learned about the rounds of one server, and the forecast of the end of the current
//! one. Times are whole Unix seconds. A *round end* is the moment when the next round begins,
//! after the intermission: until then the server shows the final list.
//!
//! Scans only show that a round ended between two of them, so every time is an interval that is
//! certain to contain it. If the intervals of several lengths overlap, the server has a time limit,
//! and their common part is the length. Successive rounds of equal length form a chain. The time
//! from its first to its last end, divided by their number, gives the length more exactly than one
//! round does. With the length, the start of a round is known more exactly than from its scans. If
//! final points repeat, the server has a point limit.

use arrayvec::ArrayVec;

/// Round ends that are remembered.
pub const ROUNDS_MAX: usize = 5;

/// Round ends that must have been seen before an end is predicted.
const ROUNDS_MIN: usize = 2;

/// Lengths of rounds vary by this much around a time limit, s: players skip the end of an
/// intermission, maps load slowly.
const JITTER_S: u32 = 3;

/// Scans are late by less than this, s.
const MARGIN_S: u32 = 1;

/// Final points within this ratio of the largest may be those of a limit: the last list of a
/// round rarely shows its last points.
const LIMIT_RATIO: f32 = 0.92;

/// Time from the moment when the limit of points is reached to the start of the next round, s:
/// typical of an intermission, with its deviation.
const INTERMISSION_S: f64 = 10.0;
const INTERMISSION_DEVIATION_S: f64 = 8.0;

/// Seconds that contain a moment: not before the first, not after the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bracket {
    pub from_s: u32,
    pub to_s: u32,
}

impl Bracket {
    fn common(self, other: Bracket) -> Option<Bracket> {
        let both = Bracket { from_s: self.from_s.max(other.from_s), to_s: self.to_s.min(other.to_s) };
        (both.from_s <= both.to_s).then_some(both)
    }
}

/// A round whose start and end were seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct EndedRound {
    /// Its length is in this range, s.
    shortest_s: u16,
    longest_s: u16,
    /// Best points in its last list.
    best: f32,
}

/// How two successive full lists of a server differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// The lists cannot be compared: the server was invisible, or no player is in both.
    Unknown,
    SameRound,
    NewRound,
}

/// A full list of a server, compared with the one before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ListSeen {
    pub t_ms: i64,
    /// Time of the list before; any value if the transition is unknown.
    pub previous_ms: i64,
    pub transition: Transition,
    /// Best points of a player in the list before, and in this one.
    pub best_before: i64,
    pub best: i64,
}

/// The basis of the prediction of a round end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Basis {
    /// The last `rounds` rounds had lengths in this range.
    RoundLength { shortest_s: u32, longest_s: u32, rounds: u8 },
    /// `rounds` of the last rounds ended when a player had about this many points.
    PointLimit { points: i64, rounds: u8 },
}

/// Rounds of one server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundModel {
    /// Oldest first.
    rounds: ArrayVec<EndedRound, ROUNDS_MAX>,
    /// When the current round began; 0 to 0: unknown.
    start: Bracket,
    /// When the first round of the current chain began, and the number of its ended rounds.
    chain_from_s: u32,
    chain_width_s: u16,
    chain_rounds: u8,
}

impl RoundModel {
    /// Learns from a list.
    pub fn observe(&mut self, seen: ListSeen) {
        match seen.transition {
            Transition::Unknown => (self.start, self.chain_rounds) = (Bracket::default(), 0),
            Transition::SameRound => {}
            Transition::NewRound => {
                let end = Bracket { from_s: seconds(seen.previous_ms), to_s: seconds(seen.t_ms.saturating_add(999)) };
                self.end_round(end, seen.best_before);
            }
        }
    }

    fn end_round(&mut self, end: Bracket, best: i64) {
        let start = std::mem::replace(&mut self.start, end);
        let shortest = self.rounds.iter().map(|round| u32::from(round.longest_s)).min();
        // Another round may have ended between the two scans, too.
        let is_certain = shortest.is_none_or(|length_s| end.to_s - end.from_s < length_s);
        if start == Bracket::default() || end.to_s <= start.from_s || !is_certain {
            self.chain_rounds = 0;
            return;
        }
        let mut length = mean_length(start, end, 1);
        if length.to_s > u32::from(u16::MAX) {
            return;
        }
        if self.chain_rounds == 0 || self.chain_rounds == u8::MAX {
            self.start_chain(start);
        }
        self.chain_rounds += 1;
        let to_s = self.chain_from_s + u32::from(self.chain_width_s);
        let chain = Bracket { from_s: self.chain_from_s, to_s };
        match mean_length(chain, end, self.chain_rounds.into()).common(length) {
            Some(mean) => length = mean,
            None => {
                self.start_chain(start);
                self.chain_rounds = 1;
            }
        }
        if self.rounds.is_full() {
            self.rounds.remove(0);
        }
        self.rounds.push(EndedRound {
            shortest_s: length.from_s as u16,
            longest_s: length.to_s as u16,
            best: best as f32,
        });
        let Some((usual, rounds)) = self.usual_length() else { return };
        if rounds >= ROUNDS_MIN && length.common(usual).is_some() {
            let expected = Bracket {
                from_s: (start.from_s + usual.from_s).saturating_sub(JITTER_S),
                to_s: start.to_s + usual.to_s + JITTER_S,
            };
            match end.common(expected) {
                Some(start) => self.start = start,
                None => self.chain_rounds = 0,
            }
        } else {
            self.chain_rounds = 0;
        }
    }

    #[cfg(test)]
    pub(super) fn final_points_mut(&mut self) -> impl Iterator<Item = &mut f32> {
        self.rounds.iter_mut().map(|round| &mut round.best)
    }

    fn start_chain(&mut self, start: Bracket) {
        self.chain_from_s = start.from_s;
        // A start is in a gap between two scans, which is shorter.
        self.chain_width_s = u16::try_from(start.to_s - start.from_s).unwrap_or(u16::MAX);
        self.chain_rounds = 0;
    }

    /// The middle of the median length, s. `None` before two ends are known.
    pub fn median_length_s(&self) -> Option<u32> {
        let mut lengths: ArrayVec<u32, ROUNDS_MAX> =
            self.rounds.iter().map(|round| (u32::from(round.shortest_s) + u32::from(round.longest_s)) / 2).collect();
        lengths.sort_unstable();
        (lengths.len() >= ROUNDS_MIN).then(|| lengths[lengths.len() / 2])
    }

    /// The length on which most rounds agree, and their number; of several the longest, because
    /// rounds may end before the time limit and not after it.
    fn usual_length(&self) -> Option<(Bracket, usize)> {
        let contains = |round: &&EndedRound, s: u16| (round.shortest_s..=round.longest_s).contains(&s);
        let agreeing = |s: u16| self.rounds.iter().filter(move |round| contains(round, s));
        // The best point is the end of an interval.
        let best = self.rounds.iter().map(|round| round.longest_s).max_by_key(|&s| (agreeing(s).count(), s))?;
        let from_s = agreeing(best).map(|round| round.shortest_s).max()?;
        let to_s = agreeing(best).map(|round| round.longest_s).min()?;
        Some((Bracket { from_s: from_s.into(), to_s: to_s.into() }, agreeing(best).count()))
    }

    /// The points at which rounds seem to end, and the number of such rounds.
    fn point_limit(&self) -> Option<(f32, usize)> {
        let limit = self.rounds.iter().map(|round| round.best).fold(0.0, f32::max);
        let near = self.rounds.iter().filter(|round| round.best >= LIMIT_RATIO * limit).count();
        let is_usual = near >= 2 && 5 * near >= 3 * self.rounds.len();
        (limit >= 5.0 && is_usual).then_some((limit, near))
    }

    /// The forecast for the current round from its list at `t_ms`. `None`: its start, or the
    /// rounds of the server, are not known.
    pub fn forecast(&self, t_ms: i64, best: i64) -> Option<Forecast> {
        if self.start == Bracket::default() || self.rounds.len() < ROUNDS_MIN {
            return None;
        }
        let now_s = t_ms as f64 / 1_000.0;
        let (usual, agreeing) = self.usual_length()?;
        let is_timed = agreeing >= ROUNDS_MIN;
        let limit = self.point_limit();
        let start = self.start;
        let mut parts = ArrayVec::new();
        for round in &self.rounds {
            if limit.is_some_and(|(points, _)| round.best >= LIMIT_RATIO * points) {
                continue; // It ended by points.
            }
            let own = Bracket { from_s: round.shortest_s.into(), to_s: round.longest_s.into() };
            let length = if is_timed && own.common(usual).is_some() { usual } else { own };
            parts.push(Bracket {
                from_s: (start.from_s + length.from_s).saturating_sub(MARGIN_S),
                to_s: start.to_s + length.to_s + MARGIN_S,
            });
        }
        let by_points = limit.map(|(points, _)| {
            let began_s = f64::from(start.from_s / 2 + start.to_s / 2);
            let limited = self.rounds.iter().filter(|round| round.best >= LIMIT_RATIO * points);
            let (mut length_s, mut rounds) = (0.0, 0.0);
            for round in limited {
                length_s += f64::from(round.shortest_s) / 2.0 + f64::from(round.longest_s) / 2.0;
                rounds += 1.0;
            }
            // The rate is a mix of the rates of this round and of a usual one, because early in a
            // round its own rate is inexact.
            let (points, best) = (f64::from(points), best.max(0) as f64);
            let age_s = (now_s - began_s).max(0.0);
            let rate = (best + points) / (age_s + length_s / rounds).max(1.0);
            let left = (points - best).max(0.0);
            let deviation_s = (left.sqrt() / rate).hypot(INTERMISSION_DEVIATION_S);
            (now_s + left / rate + INTERMISSION_S, deviation_s)
        });
        let basis = match limit {
            Some((points, rounds)) => Basis::PointLimit { points: points as i64, rounds: rounds as u8 },
            None if is_timed => {
                Basis::RoundLength { shortest_s: usual.from_s, longest_s: usual.to_s, rounds: agreeing as u8 }
            }
            None => {
                let shortest_s = self.rounds.iter().map(|round| round.shortest_s).min()?.into();
                let longest_s = self.rounds.iter().map(|round| round.longest_s).max()?.into();
                Basis::RoundLength { shortest_s, longest_s, rounds: self.rounds.len() as u8 }
            }
        };
        Some(Forecast { parts, by_points, now_s, basis })
    }
}

/// When the current round is expected to end.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// By the lengths of earlier rounds; each interval is equally likely.
    parts: ArrayVec<Bracket, ROUNDS_MAX>,
    /// By the limit of points: mean and deviation.
    by_points: Option<(f64, f64)>,
    now_s: f64,
    pub basis: Basis,
}

impl Forecast {
    /// The probability that the round has not ended at a time, Unix s.
    pub fn survival(&self, at_s: f64) -> f64 {
        let by_points = self.by_points.map_or(1.0, |(mean_s, deviation_s)| {
            // The logistic curve is close to the normal one.
            1.0 / (1.0 + (1.702 * (at_s - mean_s) / deviation_s).exp())
        });
        if self.parts.is_empty() {
            return by_points;
        }
        let left = |part: &Bracket| {
            let (from_s, to_s) = (f64::from(part.from_s), f64::from(part.to_s));
            ((to_s - at_s) / (to_s - from_s).max(1.0)).clamp(0.0, 1.0)
        };
        by_points * self.parts.iter().map(left).sum::<f64>() / self.parts.len() as f64
    }

    /// The times before which the round ends with probability 0.1, 0.5 and 0.9, Unix s. `None`:
    /// it is overdue.
    pub fn quantiles_s(&self) -> Option<[f64; 3]> {
        let alive = self.survival(self.now_s);
        if alive < OVERDUE {
            return None;
        }
        let last_s = self.parts.iter().map(|part| f64::from(part.to_s)).fold(0.0, f64::max);
        let last_s = self.by_points.map_or(last_s, |(mean_s, deviation_s)| last_s.max(mean_s + 4.0 * deviation_s));
        Some([0.9, 0.5, 0.1].map(|share| {
            let (mut low, mut high) = (self.now_s, last_s.max(self.now_s));
            for _ in 0..16 {
                let middle = (low + high) / 2.0;
                match self.survival(middle) > share * alive {
                    true => low = middle,
                    false => high = middle,
                }
            }
            high
        }))
    }

    /// The best time for one more scan in `from_s..=until_s`, before the next regular one at
    /// `due_s`, and what it is worth: the expected shortening of the time between the last list
    /// and the end of the round, s.
    pub fn best_scan(&self, last_scan_s: f64, from_s: f64, until_s: f64, due_s: f64) -> Option<(f64, f64)> {
        const STEPS: u32 = 48;
        let alive = self.survival(last_scan_s);
        if from_s > until_s || alive < OVERDUE {
            return None;
        }
        let after = self.survival(due_s);
        let worth = |at_s: f64| (at_s - last_scan_s) * (self.survival(at_s) - after).max(0.0) / alive;
        let times = (0..=STEPS).map(|step| from_s + (until_s - from_s) * f64::from(step) / f64::from(STEPS));
        times.map(|at_s| (at_s, worth(at_s))).max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// A round that had less than this chance to last until now is overdue: the forecast failed.
const OVERDUE: f64 = 0.02;

/// The mean length of rounds from a start to an end, s, rounded so that it contains the true one.
fn mean_length(start: Bracket, end: Bracket, rounds: u32) -> Bracket {
    Bracket {
        from_s: end.from_s.saturating_sub(start.to_s) / rounds,
        to_s: end.to_s.saturating_sub(start.from_s).div_ceil(rounds),
    }
}

/// Unix seconds, with space for lengths to be added: later times, from 2106 on, are equal.
fn seconds(t_ms: i64) -> u32 {
    const MAX: u32 = u32::MAX - 4 * u16::MAX as u32;
    t_ms.div_euclid(1_000).clamp(0, i64::from(MAX)) as u32
}
