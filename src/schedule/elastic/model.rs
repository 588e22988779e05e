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

/// How much the lengths of equal rounds differ, s: players skip the end of an intermission, maps load slowly. It starts
/// with this, grows if an end contradicts it, and falls with each end that does not.
const JITTER_S: f64 = 2.0;
const JITTER_S_MIN: f64 = 0.5;
const JITTER_S_MAX: f64 = 16.0;
const JITTER_FALL: f64 = 0.9;

/// The most exactly that a length can be known, s.
const LENGTH_WIDTH_S_MIN: f64 = 0.5;

/// Equal rounds in a row that confirm a time limit.
const CONFIRMED_BY: u32 = 2;

/// The longest round, s: longer ones are not learned.
const LENGTH_S_MAX: f64 = 65_000.0;

/// Final points within this ratio of the largest may be those of a limit: the last list of a
/// round rarely shows its last points.
const LIMIT_RATIO: f32 = 0.92;

/// The probability that a round does not end as earlier ones but at any moment: an admin or a vote ends it, or the forecast
/// is wrong. With these, most winners are right in `clqd truth`; without them, 1 % fewer.
const DOUBT_BY_TIME: f64 = 0.15;
const DOUBT_BY_POINTS: f64 = 0.5;

/// Time from the moment when the limit of points is reached to the start of the next round, s:
/// typical of an intermission, with its deviation.
const INTERMISSION_S: f64 = 15.0;
const INTERMISSION_DEVIATION_S: f64 = 8.0;

/// A moment or a length in this range, s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bracket {
    pub from_s: f64,
    pub to_s: f64,
}

impl Bracket {
    fn common(self, other: Bracket) -> Option<Bracket> {
        let both = Bracket { from_s: self.from_s.max(other.from_s), to_s: self.to_s.min(other.to_s) };
        (both.from_s <= both.to_s).then_some(both)
    }

    fn width_s(self) -> f64 {
        self.to_s - self.from_s
    }

    fn wider(self, by_s: f64) -> Bracket {
        Bracket { from_s: self.from_s - by_s, to_s: self.to_s + by_s }
    }

    fn plus(self, length: Bracket) -> Bracket {
        Bracket { from_s: self.from_s + length.from_s, to_s: self.to_s + length.to_s }
    }

    /// The length of each of some equal rounds from this moment to another.
    fn length_to(self, end: Bracket, rounds: f64) -> Bracket {
        Bracket { from_s: (end.from_s - self.to_s) / rounds, to_s: (end.to_s - self.from_s) / rounds }
    }

    fn middle_s(self) -> f64 {
        (self.from_s + self.to_s) / 2.0
    }
}

/// A round whose start and end were seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct EndedRound {
    /// Its length is in this range, s.
    shortest_s: f32,
    longest_s: f32,
    /// Best points in its last list.
    best: f32,
}

impl EndedRound {
    fn length(&self) -> Bracket {
        Bracket { from_s: self.shortest_s.into(), to_s: self.longest_s.into() }
    }
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
    /// When the current round began. `None`: unknown.
    start: Option<Bracket>,
    limit: Option<TimeLimit>,
}

/// The length of the rounds of a server with a time limit.
#[derive(Clone, Copy, Debug, PartialEq)]
struct TimeLimit {
    length: Bracket,
    jitter_s: f64,
    /// Equal rounds in a row: when the first began, and their number.
    chain_from: Bracket,
    chain_rounds: u32,
}

impl TimeLimit {
    fn new(length: Bracket, start: Bracket) -> TimeLimit {
        TimeLimit { length, jitter_s: JITTER_S, chain_from: start, chain_rounds: 0 }
    }

    /// The lengths that rounds may have.
    fn range(&self) -> Bracket {
        self.length.wider(self.jitter_s)
    }

    fn agrees(&self, round: &EndedRound) -> bool {
        self.range().common(round.length()).is_some()
    }

    /// When a round ends that began then.
    fn end_of(&self, start: Bracket) -> Bracket {
        start.plus(self.range())
    }

    /// Learns from a round. Returns when it ended, more exactly than the lists show. `None`: it was not as long as usual.
    fn learn(&mut self, start: Bracket, end: Bracket) -> Option<Bracket> {
        let mut ended = self.end_of(start).common(end);
        if ended.is_none() {
            // Slightly longer or shorter.
            let jitter_s = (2.0 * self.jitter_s).min(JITTER_S_MAX);
            ended = start.plus(self.length).wider(jitter_s).common(end);
            if ended.is_some() {
                self.jitter_s = jitter_s;
            }
        } else {
            self.jitter_s = (self.jitter_s * JITTER_FALL).max(JITTER_S_MIN);
        }
        let Some(ended) = ended else {
            (self.chain_from, self.chain_rounds) = (end, 0);
            return None;
        };
        self.chain_rounds += 1;
        let rounds = f64::from(self.chain_rounds);
        let mean = self.chain_from.length_to(ended, rounds).wider(self.jitter_s / rounds.sqrt());
        match self.length.common(mean) {
            Some(length) => self.length = length,
            // These rounds cannot all have been that long.
            None => {
                self.length = self.length.wider(self.length.width_s().max(1.0));
                (self.chain_from, self.chain_rounds) = (ended, 0);
            }
        }
        let lacking_s = LENGTH_WIDTH_S_MIN - self.length.width_s();
        if lacking_s > 0.0 {
            self.length = self.length.wider(lacking_s / 2.0);
        }
        Some(ended)
    }
}

impl RoundModel {
    /// Learns from a list.
    pub fn observe(&mut self, seen: ListSeen) {
        match seen.transition {
            Transition::Unknown => self.start = None,
            Transition::SameRound => {}
            Transition::NewRound => {
                let end = Bracket { from_s: seconds(seen.previous_ms), to_s: seconds(seen.t_ms) };
                self.end_round(end, seen.best_before);
            }
        }
    }

    fn end_round(&mut self, end: Bracket, best: i64) {
        let start = self.start.replace(end);
        let shortest_s = self.rounds.iter().map(|round| f64::from(round.longest_s)).fold(f64::INFINITY, f64::min);
        // Another round may have ended between the two lists, too.
        let is_certain = end.width_s() < shortest_s;
        let Some(start) = start.filter(|start| is_certain && end.to_s > start.from_s) else { return };
        let length = start.length_to(end, 1.0);
        if length.to_s > LENGTH_S_MAX {
            return;
        }
        if self.rounds.is_full() {
            self.rounds.remove(0);
        }
        self.rounds.push(EndedRound {
            shortest_s: length.from_s.max(0.0) as f32,
            longest_s: length.to_s as f32,
            best: best as f32,
        });
        if let Some(limit) = &mut self.limit {
            let in_a_row = limit.chain_rounds;
            match limit.learn(start, end) {
                Some(ended) => return self.start = Some(ended),
                // Not confirmed by enough rounds: it may be wrong, and the starts that follow from it.
                None if in_a_row < CONFIRMED_BY => self.limit = None,
                None => {}
            }
        }
        let Some((usual, rounds)) = self.usual_length() else { return };
        // Another limit is believed when at least as many of the last rounds agree on it.
        let is_other = self.limit.is_none_or(|limit| {
            let as_before = self.rounds.iter().filter(|round| limit.agrees(round)).count();
            rounds >= as_before && limit.range().common(usual).is_none()
        });
        if is_other && rounds >= ROUNDS_MIN && length.common(usual).is_some() {
            let mut limit = TimeLimit::new(usual, start);
            self.start = limit.learn(start, end).or(self.start);
            self.limit = Some(limit);
        }
    }

    #[cfg(test)]
    pub(super) fn final_points_mut(&mut self) -> impl Iterator<Item = &mut f32> {
        self.rounds.iter_mut().map(|round| &mut round.best)
    }

    /// The length on which most of the last rounds agree, and their number; of several the longest, because
    /// rounds may end before the time limit and not after it.
    fn usual_length(&self) -> Option<(Bracket, usize)> {
        let agreeing = |s: f64| {
            self.rounds.iter().map(EndedRound::length).filter(move |length| (length.from_s..=length.to_s).contains(&s))
        };
        // The best point is the end of an interval.
        let ends = self.rounds.iter().map(|round| f64::from(round.longest_s));
        let best = ends.max_by(|a, b| agreeing(*a).count().cmp(&agreeing(*b).count()).then(a.total_cmp(b)))?;
        let common = agreeing(best).reduce(|a, b| a.common(b).expect("all contain it"))?;
        // Intervals that only touch agree by chance.
        let narrowest_s = agreeing(best).map(Bracket::width_s).fold(f64::INFINITY, f64::min);
        let lacking_s = narrowest_s / 3.0 - common.width_s();
        Some((common.wider(lacking_s.max(0.0) / 2.0), agreeing(best).count()))
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
        let start = self.start.filter(|_| self.rounds.len() >= ROUNDS_MIN)?;
        let now_s = seconds(t_ms);
        let limit = self.point_limit();
        let is_timed = |round: &EndedRound| self.limit.filter(|limit| limit.agrees(round));
        let mut parts = ArrayVec::new();
        for round in &self.rounds {
            if limit.is_some_and(|(points, _)| round.best >= LIMIT_RATIO * points) {
                continue; // It ended by points.
            }
            parts.push(is_timed(round).map_or(start.plus(round.length()), |limit| limit.end_of(start)));
        }
        let by_points = limit.map(|(points, _)| {
            let began_s = start.middle_s();
            let limited = self.rounds.iter().filter(|round| round.best >= LIMIT_RATIO * points);
            let (mut length_s, mut rounds) = (0.0, 0.0);
            for round in limited {
                length_s += round.length().middle_s();
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
        let timed = self.rounds.iter().filter_map(is_timed).count();
        let time_limit = self.limit.filter(|_| timed > 0);
        let whole = |s: f64| s.round() as u32;
        let basis = match (limit, time_limit) {
            (Some((points, rounds)), _) => Basis::PointLimit { points: points as i64, rounds: rounds as u8 },
            (None, Some(limit)) => Basis::RoundLength {
                shortest_s: whole(limit.length.from_s),
                longest_s: whole(limit.length.to_s),
                rounds: timed as u8,
            },
            (None, None) => {
                let lengths = || self.rounds.iter().map(EndedRound::length);
                let shortest_s = lengths().map(|length| length.from_s).fold(f64::INFINITY, f64::min);
                let longest_s = lengths().map(|length| length.to_s).fold(0.0, f64::max);
                Basis::RoundLength {
                    shortest_s: whole(shortest_s),
                    longest_s: whole(longest_s),
                    rounds: self.rounds.len() as u8,
                }
            }
        };
        let is_limited_by_time = limit.is_none() && 2 * timed > self.rounds.len();
        let time_limit = time_limit.filter(|_| is_limited_by_time);
        let learnable_s = time_limit.map_or(0.0, |limit| limit.end_of(start).width_s());
        let doubt = if by_points.is_some() { DOUBT_BY_POINTS } else { DOUBT_BY_TIME };
        let mean_s = self.rounds.iter().map(|round| round.length().middle_s()).sum::<f64>() / self.rounds.len() as f64;
        Some(Forecast { parts, by_points, now_s, basis, learnable_s, doubt, mean_s: mean_s.max(1.0) })
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
    /// How exactly the end is known by a time limit, s; 0: rounds do not end by time.
    learnable_s: f64,
    /// The probability that the round ends at any moment instead, and the mean length of rounds.
    doubt: f64,
    pub mean_s: f64,
    pub basis: Basis,
}

impl Forecast {
    /// The probability that the round has not ended at a time, Unix s.
    pub fn survival(&self, at_s: f64) -> f64 {
        let at_any_moment = (-(at_s - self.now_s).max(0.0) / self.mean_s).exp();
        (1.0 - self.doubt) * self.as_expected(at_s) + self.doubt * at_any_moment
    }

    /// The same, if the round ends as earlier ones.
    fn as_expected(&self, at_s: f64) -> f64 {
        let by_points = self.by_points.map_or(1.0, |(mean_s, deviation_s)| {
            // The logistic curve is close to the normal one.
            1.0 / (1.0 + (1.702 * (at_s - mean_s) / deviation_s).exp())
        });
        if self.parts.is_empty() {
            return by_points;
        }
        let left = |part: &Bracket| {
            let Bracket { from_s, to_s } = *part;
            ((to_s - at_s) / (to_s - from_s).max(1.0)).clamp(0.0, 1.0)
        };
        by_points * self.parts.iter().map(left).sum::<f64>() / self.parts.len() as f64
    }

    /// The times before which the round ends with probability 0.1, 0.5 and 0.9, Unix s. `None`:
    /// it is overdue.
    pub fn quantiles_s(&self) -> Option<[f64; 3]> {
        let alive = self.as_expected(self.now_s);
        if alive < OVERDUE {
            return None;
        }
        let last_s = self.parts.iter().map(|part| part.to_s).fold(0.0, f64::max);
        let last_s = self.by_points.map_or(last_s, |(mean_s, deviation_s)| last_s.max(mean_s + 4.0 * deviation_s));
        Some([0.9, 0.5, 0.1].map(|share| {
            let (mut low, mut high) = (self.now_s, last_s.max(self.now_s));
            for _ in 0..16 {
                let middle = (low + high) / 2.0;
                match self.as_expected(middle) > share * alive {
                    true => low = middle,
                    false => high = middle,
                }
            }
            high
        }))
    }

    /// The ends of the round after its last list, integrated in steps.
    pub fn ends(&self, step_s: f64) -> Ends<'_> {
        let (list_s, alive) = (self.now_s, self.survival(self.now_s));
        Ends { forecast: self, step_s, list_s, alive, at_s: list_s, left: 1.0, unseen_s: 0.0 }
    }
}

/// What a scan does not see of the end of a round, integrated over the times at which it may end.
pub struct Ends<'f> {
    forecast: &'f Forecast,
    step_s: f64,
    list_s: f64,
    alive: f64,
    /// The integral until now: time, probability that the round goes on, expected seconds.
    at_s: f64,
    left: f64,
    unseen_s: f64,
}

impl Ends<'_> {
    /// The expected time between the last list and the end of the round, s, if the round ends before a scan at this
    /// time. An end whose final list is still shown then costs nothing. Times must be ascending.
    pub fn unseen_s(&mut self, at_s: f64) -> f64 {
        while self.at_s < at_s {
            let to_s = at_s.min(self.at_s + self.step_s);
            let left = self.forecast.survival(to_s) / self.alive;
            let play_end_s = (self.at_s + to_s) / 2.0 - INTERMISSION_S;
            self.unseen_s += (self.left - left).max(0.0) * (play_end_s - self.list_s).max(0.0);
            (self.at_s, self.left) = (to_s, left);
        }
        self.unseen_s
    }

    /// By how much a scan at the time of the last call is expected to narrow the end by a time limit, s: it shows whether
    /// the round has ended, and all later ends follow from this one.
    pub fn narrowing_s(&self) -> f64 {
        let narrower_s = (self.forecast.learnable_s.min(LEARNABLE_S_MAX) - EXACT_S).max(0.0);
        2.0 * self.left * (1.0 - self.left) * narrower_s
    }
}

/// An end that is known to so many seconds need not be known better; and the most that counts as unknown.
const EXACT_S: f64 = 10.0;
const LEARNABLE_S_MAX: f64 = 200.0;

/// A round that had less than this chance to last until now is overdue: the forecast failed.
const OVERDUE: f64 = 0.02;

/// Unix seconds. Times of any size are exact enough.
fn seconds(t_ms: i64) -> f64 {
    t_ms as f64 / 1_000.0
}
