//! What successive snapshots reveal (RULES 2 to 7): facts about players, and
//! rounds. Not the sums and positions that follow from them: see `rows`.

use std::collections::HashMap;

use clqd::model::name::{ColourCodes, normalise};

use super::log::{Line, LineKind, LoggedPlayer};
use super::{Quarter, SEGMENT_MS, Settings, Who};

/// A full snapshot, bots left out.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub t: i64,
    pub server: String,
    pub game: String,
    pub map: String,
    pub entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
pub struct Entry {
    /// Normalised.
    pub name: String,
    pub points: i64,
    /// The name stands once in its snapshot.
    pub once: bool,
    pub usable: bool,
}

/// One thing that a snapshot reveals about one player, credited to the week of the snapshot.
#[derive(Clone, Debug)]
pub struct Fact {
    /// `t` of the snapshot that revealed it.
    pub t: i64,
    pub week: u32,
    pub server: String,
    pub who: Who,
    pub kind: FactKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactKind {
    Start,
    Stayed {
        gap_ms: i64,
    },
    /// More than 0.
    Gain(i64),
    /// A complete segment: thousandths of a point, more than 0.
    Segment(u64),
    /// What a final list gave in CLQ2, more than 0.
    Game(u64),
}

/// A final list that counts (RULES 4).
#[derive(Clone, Debug)]
pub struct Round {
    /// `t` of the snapshot that showed the restart.
    pub t: i64,
    pub week: u32,
    pub server: String,
    pub game: String,
    pub list: Vec<Entry>,
}

impl Snapshot {
    pub fn who(&self, entry: &Entry) -> Who {
        Who { game: self.game.clone(), name: entry.name.clone() }
    }

    /// The entry with this name that stands for a player.
    fn player(&self, who: &Who) -> Option<&Entry> {
        self.entries.iter().find(|e| e.usable && self.who(e) == *who)
    }
}

/// RULES 1 and 2: the full snapshots, bots left out, names normalised.
pub fn snapshots(lines: &[Line], settings: &Settings) -> Vec<Snapshot> {
    let full = lines.iter().filter_map(|line| match &line.kind {
        LineKind::Full { game, map, players } => Some((line, game, map, players)),
        LineKind::Partial { .. } | LineKind::Miss => None,
    });
    full.map(|(line, game, map, players)| Snapshot {
        t: line.t,
        server: line.server.clone(),
        game: game.clone(),
        map: map.clone(),
        entries: entries(line, players, settings),
    })
    .collect()
}

fn entries(line: &Line, players: &[LoggedPlayer], settings: &Settings) -> Vec<Entry> {
    let codes = match line.url.scheme() {
        "quake3" => ColourCodes::Quake3,
        "darkplaces" => ColourCodes::DarkPlaces,
        _ => ColourCodes::None,
    };
    let is_bot = |p: &LoggedPlayer| {
        let by_ping = settings.ping_zero_is_bot && line.url.is_quake3_family() && p.ping == Some(0);
        !settings.count_bots && (p.bot || by_ping)
    };
    // [open] A bot is left out before names are counted: it makes no one's name stand twice.
    let shown: Vec<(String, i64)> =
        players.iter().filter(|p| !is_bot(p)).map(|p| (normalise(&p.name, codes), p.points)).collect();
    let times = |name: &str| shown.iter().filter(|(other, _)| other == name).count();
    let entry = |(name, points): &(String, i64)| {
        let once = times(name) == 1;
        let usable = once && !name.is_empty() && !settings.ignore.contains(name);
        Entry { name: name.clone(), points: *points, once, usable }
    };
    shown.iter().map(entry).collect()
}

/// Compares each snapshot with the one before it of the same server.
pub fn compare_all(snapshots: &[Snapshot], settings: &Settings) -> (Vec<Fact>, Vec<Round>) {
    let mut facts = Vec::new();
    let mut rounds = Vec::new();
    let mut last: HashMap<&str, usize> = HashMap::new();
    let mut presences: HashMap<(&str, Who), Presence> = HashMap::new();
    for (i, cur) in snapshots.iter().enumerate() {
        let prev = last.insert(&cur.server, i).map(|i| &snapshots[i]);
        let week = settings.calendar.week(cur.t).0;
        let restarted = prev.is_some_and(|prev| restarted(prev, cur, settings));

        for entry in cur.entries.iter().filter(|e| e.usable) {
            let who = cur.who(entry);
            let mut reveal = |kind| {
                facts.push(Fact { t: cur.t, week, server: cur.server.clone(), who: who.clone(), kind });
            };
            let visible = prev.filter(|prev| cur.t - prev.t <= SEGMENT_MS);
            let stayed = visible.and_then(|prev| Some((prev, prev.player(&who)?)));
            let gain = match (stayed, visible) {
                (Some((_, before)), _) => gain_of_who_stayed(before.points, entry.points, restarted),
                (None, Some(_)) => entry.points.max(0),
                (None, None) => 0,
            };
            match stayed {
                Some((prev, _)) => reveal(FactKind::Stayed { gap_ms: cur.t - prev.t }),
                None => reveal(FactKind::Start),
            }
            if gain > 0 {
                reveal(FactKind::Gain(gain));
            }
            match stayed {
                Some((prev, _)) => {
                    let presence = presences.get_mut(&(cur.server.as_str(), who.clone())).expect("has entered");
                    presence.intervals.push(Interval { from: prev.t, to: cur.t, gain });
                    for thousandths in presence.segments_completed_in(prev.t, cur.t).into_iter().filter(|&s| s > 0) {
                        reveal(FactKind::Segment(thousandths));
                    }
                }
                None => {
                    let presence = Presence { first_sighting: cur.t, intervals: Vec::new() };
                    presences.insert((cur.server.as_str(), who.clone()), presence);
                }
            }
        }

        let Some(prev) = prev.filter(|prev| restarted && counts(&prev.entries)) else { continue };
        let points: Vec<i64> = prev.entries.iter().map(|e| e.points).collect();
        for (entry, score) in prev.entries.iter().zip(clq2_scores(&points, settings.clq2_quarter)) {
            if entry.usable && score > 0 {
                let kind = FactKind::Game(score);
                facts.push(Fact { t: cur.t, week, server: cur.server.clone(), who: prev.who(entry), kind });
            }
        }
        let (server, game) = (prev.server.clone(), prev.game.clone());
        rounds.push(Round { t: cur.t, week, server, game, list: prev.entries.clone() });
    }
    (facts, rounds)
}

/// RULES 3.
fn gain_of_who_stayed(prev: i64, cur: i64, restarted: bool) -> i64 {
    let d = cur - prev;
    if restarted {
        cur.max(0)
    } else if d >= 0 {
        d
    } else if cur > 0 && 2 * cur < prev {
        cur // began again from zero
    } else {
        0
    }
}

/// RULES 4. [open] After a change of game names are compared all the same.
fn restarted(prev: &Snapshot, cur: &Snapshot, settings: &Settings) -> bool {
    if prev.map != cur.map {
        return true;
    }
    let once = |s: &Snapshot, name: &str| s.entries.iter().find(|e| e.once && e.name == name).map(|e| e.points);
    let in_both: Vec<(i64, i64)> = prev
        .entries
        .iter()
        .filter(|e| e.once)
        .filter_map(|before| Some((before.points, once(cur, &before.name)?)))
        .collect();
    if in_both.is_empty() {
        return prev.entries.iter().any(|e| e.points > 0);
    }
    let p: i64 = in_both.iter().map(|(prev, _)| prev.max(&0)).sum();
    let c: i64 = in_both.iter().map(|(_, cur)| cur.max(&0)).sum();
    p - c >= settings.round_drop_min && (c as f64) < settings.round_drop_ratio * (p as f64)
}

/// RULES 4: whether a final list counts.
fn counts(list: &[Entry]) -> bool {
    list.len() >= 2 && list.iter().any(|e| e.points > 0)
}

/// A presence from entering to leaving, with all that was gained while it lasted (RULES 5).
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

    /// Exact: an interval that lies within the segment gives its gain whole, and
    /// since no interval is longer than a segment at most two do not.
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

/// RULES 6: the score of each entry of a final list, in the order of the list.
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
    let position = |mine: i64| 1 + points.iter().filter(|&&other| other > mine).count();
    points.iter().map(|&p| if serious(p) { (serious_entries - position(p) + 1) as u64 } else { 0 }).collect()
}

/// RULES 7: the rating of each entry of a final list after it, given those before it.
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
