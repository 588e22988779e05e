//! Compares successive snapshots (docs/rules.md 3 to 7): facts about players, rounds, and
//! estimates (docs/rules.md 15). Sums and positions are computed in `rows`.
//!
//! A fact names the player whom the name in the list stood for at that time. What a later merge
//! does with it is in `rows`.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::screen::{Reason, Report};
use super::sessions::{Sessions, Sighting};
use super::{PlayerId, Quarter, SEGMENT_MS, Settings};

/// docs/rules.md 4: how much older than the final list the list before it may be.
const LEFT_AT_END_MS: i64 = 35_000;

/// docs/rules.md 4: how much later than the final list the list after it may be, so that the round is sure.
const SURE_GAP_MS: i64 = 15_000;

/// docs/rules.md 4: how much older the list before may be, if its points show that a round was over.
const OVER_GAP_MS: std::ops::RangeInclusive<i64> = 8_000..=35_000;

/// docs/rules.md 15: how much longer than the gap a connected time may be.
const CONNECTED_BEFORE_GAP_MS: i64 = 5_000;

/// A full snapshot that is credible, without bots.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub t: i64,
    /// Index of its line in the log.
    pub line: usize,
    /// The time since the previous snapshot; `None`: it has none.
    pub gap_ms: Option<i64>,
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
    /// The server is exempt from the check of gains.
    pub gains_exempt: bool,
}

#[derive(Clone, Debug)]
pub struct Entry {
    /// Normalised.
    pub name: String,
    /// The name as the server sent it.
    pub display: String,
    /// `None`: the protocol has none.
    pub points: Option<i64>,
    /// How long the player has been connected. `None`: the protocol does not say so.
    pub connected_ms: Option<i64>,
    /// The name occurs once in its snapshot.
    pub once: bool,
    pub usable: bool,
    pub spectator: bool,
    /// The player for whom the entry counts, after merges. `None`: the name is unusable, the entry
    /// is a spectator, or another entry counts for the same player.
    pub player: Option<PlayerId>,
}

/// One fact about one player from a snapshot, credited to the week of the snapshot.
#[derive(Clone, Debug)]
pub struct Fact {
    /// `t` of the snapshot that revealed it.
    pub t: i64,
    /// Index of its line in the log.
    pub line: usize,
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

/// A part of the estimated times (docs/rules.md 15), credited to the week of the snapshot.
#[derive(Clone, Debug)]
pub struct Estimate {
    pub t: i64,
    pub line: usize,
    pub week: u32,
    pub server: String,
    pub player: PlayerId,
    pub time: EstimatedTime,
}

/// The estimated times with their variances, ms and s2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EstimatedTime {
    pub ms: i64,
    pub variance: i64,
    /// With connected times.
    pub connected_ms: i64,
    pub connected_variance: i64,
}

/// A final list that counts (docs/rules.md 4).
#[derive(Clone, Debug)]
pub struct Round {
    /// `t` of the snapshot that showed the restart.
    pub t: i64,
    /// Index of its line in the log.
    pub line: usize,
    pub week: u32,
    pub server: String,
    pub game: String,
    /// The tags that the server had.
    pub tags: BTreeSet<String>,
    pub list: Vec<FinalEntry>,
    /// Its winner can be trusted.
    pub sure: bool,
}

#[derive(Clone, Debug)]
pub struct FinalEntry {
    pub name: String,
    pub usable: bool,
    pub points: i64,
    /// The player to be rated, after the merges until the round.
    pub player: Option<PlayerId>,
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
        self.entries.iter().filter(|e| e.player.is_some())
    }

    /// The entry that counts for a player.
    fn ranked_entry(&self, player: &PlayerId) -> Option<&Entry> {
        self.entries.iter().find(|e| e.player.as_ref() == Some(player))
    }

    /// The entry with a name, or else the one that counted for its player.
    fn entry_to_compare<'a>(&'a self, name: &str, counted: &'a Entry) -> &'a Entry {
        self.playing().find(|e| e.usable && e.name == name).unwrap_or(counted)
    }

    /// How often a name occurs in the list, spectators included.
    fn times(&self, name: &str) -> usize {
        self.entries.iter().filter(|e| e.name == name).count()
    }
}

impl EstimatedTime {
    /// A part to which connected times add nothing.
    fn of_both(ms: i64, variance: i64) -> EstimatedTime {
        EstimatedTime { ms, variance, connected_ms: ms, connected_variance: variance }
    }

    /// A presence that began or ended at an unknown time of a gap.
    fn half_of(gap_ms: i64) -> EstimatedTime {
        EstimatedTime::of_both(gap_ms / 2, variance_of(gap_ms))
    }

    /// A presence that began in a gap. `step_ms`: what the connected time was rounded down to.
    fn since_entering(gap_ms: i64, connected_ms: Option<i64>, step_ms: i64) -> EstimatedTime {
        let half = EstimatedTime::half_of(gap_ms);
        let credible = connected_ms.filter(|&connected_ms| connected_ms <= gap_ms + CONNECTED_BEFORE_GAP_MS);
        let Some(shortest_ms) = credible else { return half };
        let longest_ms = (shortest_ms + step_ms - 1).min(gap_ms);
        let shortest_ms = shortest_ms.min(gap_ms);
        EstimatedTime {
            connected_ms: (shortest_ms + longest_ms) / 2,
            connected_variance: variance_of(longest_ms - shortest_ms) + variance_of(gap_ms) / 5,
            ..half
        }
    }

    pub fn add(&mut self, other: EstimatedTime) {
        self.ms += other.ms;
        self.variance += other.variance;
        self.connected_ms += other.connected_ms;
        self.connected_variance += other.connected_variance;
    }
}

/// docs/rules.md 15: the variance of a moment that is equally likely at each time of a span, s2.
fn variance_of(span_ms: i64) -> i64 {
    span_ms * span_ms / 12_000_000
}

/// docs/rules.md 15: what the protocol of a server rounds connected times down to.
fn connected_step_ms(server: &str) -> i64 {
    match server.split_once("://") {
        Some(("quakeworld" | "odamex", _)) => 60_000,
        _ => 1_000,
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
/// spectator in it has the name, however often it occurs, and even if the game differs. Names that
/// were merged are different names there.
///
/// [open] A player who had no points and now has some gains nothing, except on a restart.
///
/// [open] A player stays if any of their merged names is in both lists: a changed name is no entry.
/// The points are compared with those of the same name, or else of the entry that counted before.
#[derive(Default)]
pub struct Comparer {
    pub revealed: Revealed,
    pub sessions: Sessions,
    last: HashMap<String, Snapshot>,
    /// Players who left by the last list, if the list before it was at most 35 s older, with their points.
    left: HashMap<String, Vec<FinalEntry>>,
    /// Servers whose last list shows the points of a round that was over.
    over: HashSet<String>,
    presences: HashMap<(String, PlayerId), Presence>,
    /// Rows (server, week, player) that existed before the snapshot.
    rows: HashSet<(String, u32, PlayerId)>,
}

impl Comparer {
    /// Returns the snapshot as it was compared.
    pub fn compare(&mut self, mut cur: Snapshot, settings: &Settings, tags: &BTreeSet<String>) -> Snapshot {
        let last = self.last.remove(&cur.server);
        let left = self.left.remove(&cur.server).unwrap_or_default();
        let was_over = self.over.remove(&cur.server);
        let prev = last.as_ref();
        cur.gap_ms = prev.map(|prev| cur.t - prev.t);
        let visible = prev.filter(|prev| cur.t - prev.t <= SEGMENT_MS);
        one_entry_for_each_player(visible, &mut cur);

        let week = settings.calendar.week(cur.t).0;
        let restarted = prev.is_some_and(|prev| restarted(prev, &cur, settings));
        let Revealed { facts, rounds, estimates, reports } = &mut self.revealed;
        let facts_before = facts.len();
        let (t, line) = (cur.t, cur.line);
        let mut estimate = |player: &PlayerId, time: EstimatedTime| {
            estimates.push(Estimate { t, line, week, server: cur.server.clone(), player: player.clone(), time });
        };
        let step_ms = connected_step_ms(&cur.server);

        let mut sightings = Vec::new();
        for entry in cur.ranked() {
            let player = entry.player.clone().expect("ranked");
            let mut reveal = |kind| {
                facts.push(Fact { t, line, week, server: cur.server.clone(), player: player.clone(), kind });
            };
            let stayed = visible.and_then(|prev| Some((prev, prev.ranked_entry(&player)?)));
            let watched = visible.is_some_and(|prev| prev.entries.iter().any(|e| e.spectator && e.name == entry.name));
            let gain = match (stayed, entry.points) {
                (_, None) => 0,
                (Some(_), Some(points)) if restarted => points.max(0),
                (Some((prev, before)), Some(points)) => {
                    prev.entry_to_compare(&entry.name, before).points.map_or(0, |before| gain_since(before, points))
                }
                (None, Some(points)) if visible.is_some() && (restarted || !watched) => points.max(0),
                (None, Some(_)) => 0,
            };
            reveal(FactKind::Seen { with_points: entry.points.is_some() });
            match stayed {
                Some((prev, _)) => reveal(FactKind::Stayed { gap_ms: t - prev.t }),
                None if watched => (),
                None => reveal(FactKind::Start),
            }
            match (stayed, visible) {
                (Some((prev, _)), _) => estimate(&player, EstimatedTime::of_both(t - prev.t, 0)),
                (None, Some(prev)) => {
                    let connected_ms = entry.connected_ms.filter(|_| !watched);
                    estimate(&player, EstimatedTime::since_entering(t - prev.t, connected_ms, step_ms));
                }
                (None, None) => estimate(&player, EstimatedTime::of_both(60_000, 3_600)),
            }
            let possible = !settings.screen.enabled || cur.gains_exempt || gain <= settings.screen.gain_max;
            if !possible {
                reports.push(Report { t, server: cur.server.clone(), reason: Reason::ImpossibleGain });
            }
            let gain = if possible { gain } else { 0 };
            let (stays, with_points) = (stayed.is_some(), entry.points.is_some());
            let shown = with_points.then_some(gain);
            sightings.push(Sighting { player: player.clone(), stayed: stays, gain: shown });
            if gain > 0 {
                reveal(FactKind::Gain(gain));
            }
            let key = (cur.server.clone(), player.clone());
            match stayed {
                Some((prev, _)) => {
                    let presence = self.presences.get_mut(&key).expect("a presence");
                    presence.intervals.push(Interval { from: prev.t, to: t, gain });
                    for thousandths in presence.segments_completed_in(prev.t, t).into_iter().filter(|&s| s > 0) {
                        reveal(FactKind::Segment(thousandths));
                    }
                }
                None => _ = self.presences.insert(key, Presence { first_sighting: t, intervals: Vec::new() }),
            }
        }

        self.sessions.add_list(&cur.server, t, &cur.counted_map, sightings);

        for left in visible.iter().flat_map(|prev| prev.ranked().filter_map(|e| e.player.as_ref())) {
            if cur.ranked_entry(left).is_none() && self.rows.contains(&(cur.server.clone(), week, left.clone())) {
                estimate(left, EstimatedTime::half_of(t - visible.expect("a previous snapshot").t));
            }
        }

        if let Some(prev) = prev.filter(|_| restarted) {
            let final_entry = |e: &Entry| {
                let points = e.points?;
                Some(FinalEntry { name: e.name.clone(), usable: e.player.is_some(), points, player: e.player.clone() })
            };
            let mut list: Vec<FinalEntry> = prev.playing().filter_map(final_entry).collect();
            for entry in left {
                let is_same = |other: &FinalEntry| other.player == entry.player;
                if prev.ranked_entry(entry.player.as_ref().expect("usable")).is_none() && !list.iter().any(is_same) {
                    list.push(entry);
                }
            }
            if counts(&list) {
                let points: Vec<i64> = list.iter().map(|e| e.points).collect();
                for (entry, score) in list.iter().zip(clq2_scores(&points, settings.clq2_quarter)) {
                    let Some(player) = entry.player.clone() else { continue };
                    if score > 0 {
                        let (server, kind) = (cur.server.clone(), FactKind::Game(score));
                        facts.push(Fact { t, line, week, server, player: player.clone(), kind });
                    }
                    self.rows.insert((cur.server.clone(), week, player));
                }
                let (server, game, tags) = (prev.server.clone(), prev.game.clone(), tags.clone());
                let sure = t - prev.t <= 720_000 && (was_over || t - prev.t <= SURE_GAP_MS);
                rounds.push(Round { t, line, week, server, game, tags, list, sure });
            }
        }
        if let Some(prev) = prev.filter(|prev| settings.rules >= 2 && !restarted && prev.game == cur.game)
            && cur.t - prev.t <= LEFT_AT_END_MS
        {
            let is_listed = |name: &str| cur.playing().any(|e| e.name == name);
            let left = prev.ranked().filter(|e| !is_listed(&e.name)).filter_map(|e| {
                Some(FinalEntry { name: e.name.clone(), usable: true, points: e.points?, player: e.player.clone() })
            });
            self.left.insert(cur.server.clone(), left.collect());
        }
        if prev.is_some_and(|prev| !restarted && shows_round_over(prev, &cur)) {
            self.over.insert(cur.server.clone());
        }
        self.rows.extend(facts[facts_before..].iter().map(|fact| (cur.server.clone(), week, fact.player.clone())));
        self.last.insert(cur.server.clone(), cur.clone());
        cur
    }

    /// The list with which the next one of the server will be compared.
    pub fn last_list(&self, server: &str) -> Option<&Snapshot> {
        self.last.get(server)
    }

    /// docs/rules.md 13: all presences end, no round ends, and the next snapshot has no previous one.
    pub fn end_presences(&mut self, server: &str) {
        self.sessions.end_all(server);
        self.last.remove(server);
        self.left.remove(server);
        self.over.remove(server);
    }

    /// The recorded time is set back. Returns the servers whose presences end.
    ///
    /// [open] A list of a later time is not compared with the next one, as after a lift.
    pub fn set_clock_back(&mut self, to: i64) -> HashSet<String> {
        let later: HashSet<String> = self.last.extract_if(|_, last| last.t > to).map(|(server, _)| server).collect();
        later.iter().for_each(|server| self.sessions.end_all_at(server, to));
        later
    }

    /// From now on a player is another one. A presence continues as that player's, unless that player
    /// is present on the server: then it ends (docs/rules.md 16, sessions).
    pub fn merge(&mut self, from: &PlayerId, into: &PlayerId) {
        self.sessions.merge(from, into);
        for (server, last) in &mut self.last {
            let is_present = last.ranked_entry(into).is_some();
            let Some(entry) = last.entries.iter_mut().find(|e| e.player.as_ref() == Some(from)) else { continue };
            let presence = self.presences.remove(&(server.clone(), from.clone())).expect("a presence");
            entry.player = Some(into.clone()).filter(|_| !is_present);
            if !is_present {
                self.presences.insert((server.clone(), into.clone()), presence);
            }
        }
        for entry in self.left.values_mut().flatten().filter(|entry| entry.player.as_ref() == Some(from)) {
            entry.player = Some(into.clone());
        }
        let of_from: Vec<_> = self.rows.extract_if(|(_, _, player)| player == from).collect();
        self.rows.extend(of_from.into_iter().map(|(server, week, _)| (server, week, into.clone())));
    }

    /// Deletes a player with all names.
    ///
    /// [open] The entry stays in the last list with an empty name, as in the lists that are recorded
    /// later. So it is unusable in the final list of its round.
    pub fn forget(&mut self, player: &PlayerId, names: &HashSet<PlayerId>) {
        self.sessions.forget(player);
        for snapshot in self.last.values_mut() {
            let id = |name: &str| PlayerId { game: snapshot.game.clone(), name: name.to_owned() };
            let forgotten: Vec<bool> = snapshot.entries.iter().map(|e| names.contains(&id(&e.name))).collect();
            if !forgotten.contains(&true) {
                continue;
            }
            for (entry, _) in snapshot.entries.iter_mut().zip(&forgotten).filter(|(_, forgotten)| **forgotten) {
                let (points, spectator) = (entry.points, entry.spectator);
                *entry = Entry {
                    name: String::new(),
                    display: String::new(),
                    points,
                    connected_ms: None,
                    once: true,
                    usable: false,
                    spectator,
                    player: None,
                };
            }
            let names: Vec<String> = snapshot.entries.iter().map(|e| e.name.clone()).collect();
            for entry in &mut snapshot.entries {
                entry.once = names.iter().filter(|name| **name == entry.name).count() == 1;
            }
        }
        self.left.values_mut().for_each(|left| left.retain(|entry| entry.player.as_ref() != Some(player)));
        self.presences.retain(|(_, present), _| present != player);
        self.rows.retain(|(_, _, of)| of != player);
    }
}

/// Of several entries of a player with merged names, the name that counted in the previous list
/// counts, or else the first in the list. The others are treated like unusable names.
fn one_entry_for_each_player(prev: Option<&Snapshot>, cur: &mut Snapshot) {
    for i in 0..cur.entries.len() {
        let Some(player) = cur.entries[i].player.clone() else { continue };
        let same: Vec<usize> =
            (i..cur.entries.len()).filter(|&n| cur.entries[n].player.as_ref() == Some(&player)).collect();
        let counted = prev.and_then(|prev| prev.ranked_entry(&player));
        let counts = same.iter().copied().find(|&n| counted.is_some_and(|before| before.name == cur.entries[n].name));
        let counts = counts.unwrap_or(i);
        for n in same.into_iter().filter(|&n| n != counts) {
            cur.entries[n].player = None;
        }
    }
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
    let in_both = points_in_both(prev, cur);
    if in_both.is_empty() {
        let may_be_same = |e: &Entry| prev.times(&e.name).max(cur.times(&e.name)) > 1 && cur.times(&e.name) > 0;
        return !prev.entries.iter().any(may_be_same)
            && prev.playing().any(|e| e.points.is_some_and(|points| points > 0));
    }
    let p: i64 = in_both.iter().filter_map(|(prev, _)| *prev).map(|points| points.max(0)).sum();
    let c: i64 = in_both.iter().filter_map(|(_, cur)| *cur).map(|points| points.max(0)).sum();
    p - c >= settings.round_drop_min && (c as f64) < settings.round_drop_ratio * (p as f64)
}

/// The points of each name that is common to both lists, in the sense of docs/rules.md 4.
fn points_in_both(prev: &Snapshot, cur: &Snapshot) -> Vec<(Option<i64>, Option<i64>)> {
    let points_of = |s: &Snapshot, name: &str| s.playing().find(|e| e.once && e.name == name).map(|e| e.points);
    prev.playing()
        .filter(|e| e.once)
        .filter_map(|before| Some((before.points, points_of(cur, &before.name)?)))
        .collect()
}

/// docs/rules.md 4: whether a list shows the points of a round that was over, from the list before it. No
/// restart lies between the two.
///
/// [open] A name without points in both lists has the same points in both. "The best points in it" are
/// those of all players in the list before, whether or not they are in the other list too. The number of
/// the rules changes nothing. Settings and names are those of the time of the later list.
fn shows_round_over(before: &Snapshot, list: &Snapshot) -> bool {
    let in_both = points_in_both(before, list);
    OVER_GAP_MS.contains(&(list.t - before.t))
        && before.game == list.game
        && !in_both.is_empty()
        && in_both.iter().all(|(before, now)| before == now)
        && before.playing().any(|e| e.points.is_some_and(|points| points > 0))
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
