//! Compares successive snapshots (docs/rules.md 3 to 7): facts about players, rounds, and
//! estimates (docs/rules.md 15). Sums and positions are computed in `rows`.

use std::collections::{HashMap, HashSet};

use super::screen::{Reason, Report};
use super::{PlayerId, Quarter, SEGMENT_MS, Settings};

/// A full snapshot that is credible, without bots.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub t: i64,
    pub server: String,
    pub game: String,
    /// As received.
    pub map: String,
    /// The map that time is counted for.
    pub counted_map: String,
    /// Number of players, spectators included.
    pub count: u32,
    /// Players, spectators included.
    pub entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
pub struct Entry {
    /// Normalised.
    pub name: String,
    /// The name as the server sent it.
    pub display: String,
    /// `None`: the protocol has none.
    pub points: Option<i64>,
    /// The name occurs once in its snapshot.
    pub once: bool,
    pub usable: bool,
    pub spectator: bool,
}

/// One fact about one player from a snapshot, credited to the week of the snapshot.
#[derive(Clone, Debug)]
pub struct Fact {
    /// `t` of the snapshot that revealed it.
    pub t: i64,
    pub week: u32,
    pub server: String,
    pub player: PlayerId,
    pub kind: FactKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactKind {
    /// Is in the list and not a spectator.
    Seen {
        with_points: bool,
    },
    Start,
    Stayed {
        gap_ms: i64,
    },
    /// More than 0.
    Gain(i64),
    /// A complete segment: thousandths of a point, more than 0.
    Segment(u64),
    /// CLQ2 points of a final list, more than 0.
    Game(u64),
}

/// A part of an estimated time (docs/rules.md 15), credited to the week of the snapshot.
#[derive(Clone, Debug)]
pub struct Estimate {
    pub t: i64,
    pub week: u32,
    pub server: String,
    pub player: PlayerId,
    pub ms: i64,
}

/// A final list that counts (docs/rules.md 4).
#[derive(Clone, Debug)]
pub struct Round {
    /// `t` of the snapshot that showed the restart.
    pub t: i64,
    pub week: u32,
    pub server: String,
    pub game: String,
    pub list: Vec<FinalEntry>,
}

#[derive(Clone, Debug)]
pub struct FinalEntry {
    pub name: String,
    pub usable: bool,
    pub points: i64,
}

impl Snapshot {
    pub fn player_id(&self, entry: &Entry) -> PlayerId {
        PlayerId { game: self.game.clone(), name: entry.name.clone() }
    }

    /// The list that docs/rules.md 3 to 8 use: without spectators.
    pub fn playing(&self) -> impl Iterator<Item = &Entry> + Clone {
        self.entries.iter().filter(|e| !e.spectator)
    }

    /// The players that are ranked.
    pub fn ranked(&self) -> impl Iterator<Item = &Entry> {
        self.playing().filter(|e| e.usable)
    }

    /// The entry of a ranked player.
    fn ranked_entry(&self, player: &PlayerId) -> Option<&Entry> {
        self.ranked().find(|e| e.name == player.name && self.game == player.game)
    }

    /// How often a name occurs in the list, spectators included.
    fn times(&self, name: &str) -> usize {
        self.entries.iter().filter(|e| e.name == name).count()
    }
}

/// What all pairs of snapshots reveal.
#[derive(Default)]
pub struct Revealed {
    pub facts: Vec<Fact>,
    pub rounds: Vec<Round>,
    pub estimates: Vec<Estimate>,
    /// Gains that are impossible.
    pub reports: Vec<Report>,
}

/// Compares each snapshot with the previous one of the same server.
///
/// [open] docs/rules.md 14.5: the name was in the previous list as a spectator if any
/// spectator in it has the name, however often it occurs, and even if the game differs.
///
/// [open] A player who had no points and now has some gains nothing, except on a restart.
pub fn compare_all(snapshots: &[Snapshot], settings: &Settings) -> Revealed {
    let mut revealed = Revealed::default();
    let Revealed { facts, rounds, estimates, reports } = &mut revealed;
    let mut last: HashMap<&str, usize> = HashMap::new();
    let mut presences: HashMap<(&str, PlayerId), Presence> = HashMap::new();
    // Rows (server, week, player) that existed before the snapshot.
    let mut rows: HashSet<(&str, u32, PlayerId)> = HashSet::new();
    for (i, cur) in snapshots.iter().enumerate() {
        let prev = last.insert(&cur.server, i).map(|i| &snapshots[i]);
        let week = settings.calendar.week(cur.t).0;
        let restarted = prev.is_some_and(|prev| restarted(prev, cur, settings));
        let visible = prev.filter(|prev| cur.t - prev.t <= SEGMENT_MS);
        let facts_before = facts.len();
        let mut estimate = |player: &PlayerId, ms: i64| {
            estimates.push(Estimate { t: cur.t, week, server: cur.server.clone(), player: player.clone(), ms });
        };

        for entry in cur.ranked() {
            let player = cur.player_id(entry);
            let mut reveal = |kind| {
                facts.push(Fact { t: cur.t, week, server: cur.server.clone(), player: player.clone(), kind });
            };
            let stayed = visible.and_then(|prev| Some((prev, prev.ranked_entry(&player)?)));
            let watched = visible.is_some_and(|prev| prev.entries.iter().any(|e| e.spectator && e.name == entry.name));
            let gain = match (stayed, entry.points) {
                (_, None) => 0,
                (Some(_), Some(points)) if restarted => points.max(0),
                (Some((_, before)), Some(points)) => before.points.map_or(0, |before| gain_since(before, points)),
                (None, Some(points)) if visible.is_some() && (restarted || !watched) => points.max(0),
                (None, Some(_)) => 0,
            };
            reveal(FactKind::Seen { with_points: entry.points.is_some() });
            match stayed {
                Some((prev, _)) => reveal(FactKind::Stayed { gap_ms: cur.t - prev.t }),
                None if watched => (),
                None => reveal(FactKind::Start),
            }
            match (stayed, visible) {
                (Some((prev, _)), _) => estimate(&player, cur.t - prev.t),
                (None, Some(prev)) => estimate(&player, (cur.t - prev.t) / 2),
                (None, None) => estimate(&player, 60_000),
            }
            let possible = !settings.screen.enabled || gain <= settings.screen.gain_max;
            if !possible {
                reports.push(Report { t: cur.t, server: cur.server.clone(), reason: Reason::ImpossibleGain });
            }
            let gain = if possible { gain } else { 0 };
            if gain > 0 {
                reveal(FactKind::Gain(gain));
            }
            match stayed {
                Some((prev, _)) => {
                    let presence = presences.get_mut(&(cur.server.as_str(), player.clone())).expect("a presence");
                    presence.intervals.push(Interval { from: prev.t, to: cur.t, gain });
                    for thousandths in presence.segments_completed_in(prev.t, cur.t).into_iter().filter(|&s| s > 0) {
                        reveal(FactKind::Segment(thousandths));
                    }
                }
                None => {
                    let presence = Presence { first_sighting: cur.t, intervals: Vec::new() };
                    presences.insert((cur.server.as_str(), player.clone()), presence);
                }
            }
        }

        for left in visible.iter().flat_map(|prev| prev.ranked().map(|e| prev.player_id(e))) {
            if cur.ranked_entry(&left).is_none() && rows.contains(&(cur.server.as_str(), week, left.clone())) {
                estimate(&left, (cur.t - visible.expect("a previous snapshot").t) / 2);
            }
        }

        if let Some(prev) = prev.filter(|_| restarted) {
            let list: Vec<FinalEntry> = prev
                .playing()
                .filter_map(|e| Some(FinalEntry { name: e.name.clone(), usable: e.usable, points: e.points? }))
                .collect();
            if counts(&list) {
                let points: Vec<i64> = list.iter().map(|e| e.points).collect();
                for (entry, score) in list.iter().zip(clq2_scores(&points, settings.clq2_quarter)) {
                    let player = PlayerId { game: prev.game.clone(), name: entry.name.clone() };
                    if entry.usable && score > 0 {
                        let kind = FactKind::Game(score);
                        facts.push(Fact { t: cur.t, week, server: cur.server.clone(), player: player.clone(), kind });
                    }
                    if entry.usable {
                        rows.insert((&cur.server, week, player));
                    }
                }
                rounds.push(Round { t: cur.t, week, server: prev.server.clone(), game: prev.game.clone(), list });
            }
        }
        rows.extend(facts[facts_before..].iter().map(|fact| (cur.server.as_str(), week, fact.player.clone())));
    }
    revealed
}

/// The gain of a player that stayed, without a restart (docs/rules.md 3).
fn gain_since(prev: i64, cur: i64) -> i64 {
    let d = cur - prev;
    if d >= 0 {
        d
    } else if cur > 0 && 2 * cur < prev {
        cur // restarted from zero
    } else {
        0
    }
}

/// docs/rules.md 4. [open] Names are also compared after a change of game.
///
/// [open] A name without points in a list is a name in common, and adds nothing to the sum of
/// that list. In point 2 spectators count for "more than once", as they do for "once", and for
/// whether the other list contains the name.
fn restarted(prev: &Snapshot, cur: &Snapshot, settings: &Settings) -> bool {
    if prev.map != cur.map {
        return true;
    }
    let points_of = |s: &Snapshot, name: &str| s.playing().find(|e| e.once && e.name == name).map(|e| e.points);
    let in_both: Vec<(Option<i64>, Option<i64>)> = prev
        .playing()
        .filter(|e| e.once)
        .filter_map(|before| Some((before.points, points_of(cur, &before.name)?)))
        .collect();
    if in_both.is_empty() {
        let may_be_same = |e: &Entry| prev.times(&e.name).max(cur.times(&e.name)) > 1 && cur.times(&e.name) > 0;
        return !prev.entries.iter().any(may_be_same)
            && prev.playing().any(|e| e.points.is_some_and(|points| points > 0));
    }
    let p: i64 = in_both.iter().filter_map(|(prev, _)| *prev).map(|points| points.max(0)).sum();
    let c: i64 = in_both.iter().filter_map(|(_, cur)| *cur).map(|points| points.max(0)).sum();
    p - c >= settings.round_drop_min && (c as f64) < settings.round_drop_ratio * (p as f64)
}

/// docs/rules.md 4: whether a final list counts.
fn counts(list: &[FinalEntry]) -> bool {
    list.len() >= 2 && list.iter().any(|e| e.points > 0)
}

/// A presence from entering to leaving, with its gains (docs/rules.md 5).
struct Presence {
    first_sighting: i64,
    intervals: Vec<Interval>,
}

struct Interval {
    from: i64,
    to: i64,
    gain: i64,
}

impl Presence {
    /// Points of each segment whose end lies in `(after, until]`, in thousandths.
    fn segments_completed_in(&self, after: i64, until: i64) -> Vec<u64> {
        (1..)
            .map(|n| self.first_sighting + n * SEGMENT_MS)
            .skip_while(|&end| end <= after)
            .take_while(|&end| end <= until)
            .map(|end| self.thousandths(end - SEGMENT_MS, end))
            .collect()
    }

    /// Computes exactly: an interval within the segment contributes its complete gain, and at
    /// most two intervals are only partly within it, since none is longer than a segment.
    fn thousandths(&self, start: i64, end: i64) -> u64 {
        let (mut numerator, mut denominator) = (0_i128, 1_i128);
        for interval in &self.intervals {
            let part = i128::from((interval.to.min(end) - interval.from.max(start)).max(0));
            let whole = i128::from(interval.to - interval.from);
            let gain = i128::from(interval.gain);
            if part == whole {
                numerator += gain * denominator;
            } else if part > 0 {
                numerator = numerator * whole + gain * part * denominator;
                denominator *= whole;
            }
        }
        let half_up = (2 * 1_000 * numerator + denominator) / (2 * denominator);
        u64::try_from(half_up).expect("gains are not negative")
    }
}

/// docs/rules.md 6: the score of each entry of a final list, in the order of the list.
pub fn clq2_scores(points: &[i64], quarter: Quarter) -> Vec<u64> {
    let mut descending = points.to_vec();
    descending.sort_unstable_by(|a, b| b.cmp(a));
    let k = (points.len() / 4).max(1);
    let pivot = descending[k - 1];
    let serious = |points: i64| match quarter {
        _ if pivot <= 0 || points <= 0 => false,
        Quarter::Whole => pivot / points <= 4,
        Quarter::Exact => 4 * points >= pivot,
    };
    let serious_entries = points.iter().filter(|&&p| serious(p)).count();
    let position = |own: i64| 1 + points.iter().filter(|&&other| other > own).count();
    points.iter().map(|&p| if serious(p) { (serious_entries - position(p) + 1) as u64 } else { 0 }).collect()
}

/// docs/rules.md 7: the rating of each entry of a final list after the round, from those before.
pub fn elo_after(points: &[i64], before: &[f64], settings: &Settings) -> Vec<f64> {
    let n = points.len();
    let opponents = (n - 1) as f64;
    let cap = settings.elo_k_times_opponents_max;
    let k = if cap == 0.0 { settings.elo_k } else { settings.elo_k.min(cap / opponents) };
    let mut after = Vec::new();
    for i in 0..n {
        let others = (0..n).filter(|&j| j != i);
        let beaten = others.clone().filter(|&j| points[j] < points[i]).count() as f64;
        let tied = others.clone().filter(|&j| points[j] == points[i]).count() as f64;
        let w = beaten + tied / 2.0;
        let avg = others.map(|j| before[j]).sum::<f64>() / opponents;
        let e = opponents / (1.0 + 10_f64.powf((avg - before[i]) / 400.0));
        after.push(before[i] + k * (w - e));
    }
    after
}
