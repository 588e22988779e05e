//! Data of servers (docs/rules.md 9 and 10): time on maps, ranks, series with their log code, and
//! the history of missed scans and classes.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use super::commands::MapGap;
use super::history::Target;
use super::{Oracle, Outcome, Snapshot, of_server};

/// Times of one map on one server in one week.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapTime {
    pub played_ms: i64,
    pub player_ms: i64,
}

/// Means by period number. A period without samples is absent.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// By Unix ms / 600,000.
    pub slots: BTreeMap<i64, f64>,
    /// By Unix ms / 3,600,000.
    pub hours: BTreeMap<i64, f64>,
    /// By day of the calendar.
    pub days: BTreeMap<i64, f64>,
    /// By week of the calendar.
    pub weeks: BTreeMap<i64, f64>,
}

/// A server after one line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassStep {
    pub t: i64,
    pub missed: u32,
    pub class: u8,
}

/// docs/rules.md 10: the median of one value is itself, of two the smaller.
pub fn median(last_three: &[u32]) -> u32 {
    let mut sorted = last_three.to_vec();
    sorted.sort_unstable();
    match sorted[..] {
        [one] => one,
        [smaller, _] => smaller,
        [_, middle, _] => middle,
        _ => panic!("{} counts", sorted.len()),
    }
}

impl Oracle {
    pub fn snapshots_of(&self, server: &str) -> Vec<&Snapshot> {
        of_server(&self.index.snapshots, &self.snapshots, server)
    }

    /// The assumed count after each list of a server with a count that is a sample.
    pub fn assumed_counts(&self, server: &str) -> Vec<(i64, u32)> {
        let counts = self.counts(server);
        counts.into_iter().filter(|it| it.is_sample()).map(|it| (it.t, it.assumed)).collect()
    }

    /// The assumed count after each line of a server.
    pub fn assumed_after_lines(&self, server: &str) -> Vec<u32> {
        self.counts(server).into_iter().map(|it| it.assumed).collect()
    }

    /// The counts after each line of a server. The last three are cleared while its list is frozen.
    fn counts(&self, server: &str) -> Vec<Counts> {
        let mut snapshots = self.snapshots_of(server).into_iter();
        let mut counts: Vec<u32> = Vec::new();
        let mut all = Vec::new();
        for &line in self.index.lines.get(server).into_iter().flatten() {
            let outcome = self.outcomes[line];
            match outcome {
                Outcome::Full => counts.push(snapshots.next().expect("a snapshot for each full line").count),
                Outcome::Counted { count } => counts.push(count),
                Outcome::Frozen => counts.clear(),
                Outcome::Partial { .. } | Outcome::Unverified | Outcome::Miss => (),
                Outcome::Ignored => continue,
            }
            let last_three = &counts[counts.len().saturating_sub(3)..];
            let assumed = if last_three.is_empty() { 0 } else { median(last_three) };
            all.push(Counts {
                index: line,
                t: self.lines[line].t,
                line: self.lines[line].number,
                outcome,
                last: counts.last().copied(),
                assumed,
            });
        }
        all
    }

    /// By (week, map, server). Gaps of at most 720 s, credited to the map and the assumed count of prev.
    pub fn map_times(&self) -> BTreeMap<(u32, String, String), MapTime> {
        let mut times: BTreeMap<_, MapTime> = BTreeMap::new();
        let counts: HashMap<&String, Vec<Counts>> = self.servers.iter().map(|it| (it, self.counts(it))).collect();
        for MapGap { server, t, line, gap_ms, map } in &self.map_gaps {
            let counts = &counts[server];
            let at = counts.binary_search_by_key(line, |counts| counts.index).expect("a line of the server");
            let week = self.settings.calendar.week(*t).0;
            let time = times.entry((week, map.clone(), server.clone())).or_default();
            time.played_ms += gap_ms;
            // A frozen list between the two has cleared the counts.
            time.player_ms += gap_ms * i64::from(counts[at - 1].assumed);
        }
        times
    }

    /// The servers of a week by player-seconds, best first; a server without any has no rank.
    ///
    /// [open] A server that was greylisted when the week was closed has no rank, and neither has one
    /// that is greylisted in an open week.
    pub fn server_ranks(&self, week: u32) -> Vec<String> {
        self.all_server_ranks().remove(&week).unwrap_or_default()
    }

    /// [`Self::server_ranks`] of every week with map rows.
    pub fn all_server_ranks(&self) -> BTreeMap<u32, Vec<String>> {
        let mut player_ms: BTreeMap<u32, BTreeMap<usize, i64>> = BTreeMap::new();
        for ((week, _, server), time) in self.map_times() {
            let target = Target::week(&self.settings.calendar, week);
            if self.history.counted_from(&server, &target, usize::MAX) != Some(0) {
                continue;
            }
            *player_ms.entry(week).or_default().entry(self.server_key(&server)).or_default() += time.player_ms;
        }
        let ranks = |player_ms: BTreeMap<usize, i64>| -> Vec<String> {
            let mut ranked: Vec<(usize, i64)> = player_ms.into_iter().filter(|(_, ms)| *ms > 0).collect();
            ranked.sort_by_key(|&(key, ms)| (-ms, key));
            ranked.into_iter().map(|(key, _)| self.servers[key - 1].clone()).collect()
        };
        player_ms.into_iter().map(|(week, player_ms)| (week, ranks(player_ms))).collect()
    }

    /// docs/rules.md 10. [open] Ten minutes belong to the hour, an hour to the day, in which they start.
    pub fn series(&self, server: &str) -> Series {
        let calendar = &self.settings.calendar;
        let samples = self.assumed_counts(server).into_iter().map(|(t, count)| (t, f64::from(count)));
        let slots = means(samples.map(|(t, count)| (t.div_euclid(600_000), count)));
        let hours = means(slots.iter().map(|(slot, mean)| (slot.div_euclid(6), *mean)));
        let days = means(hours.iter().map(|(hour, mean)| (calendar.day(hour * 3_600_000), *mean)));
        let weeks = means(days.iter().map(|(day, mean)| (day.div_euclid(7), *mean)));
        Series { slots, hours, days, weeks }
    }

    /// docs/rules.md 9, after each line of a server.
    ///
    /// [open] The count of a partial snapshot is the last count for the class, but not one of the
    /// last three; a partial without a count does not change the last count.
    pub fn class_history(&self, server: &str) -> Vec<ClassStep> {
        let (mut missed, mut class, mut last_count) = (0, 6, 0);
        let mut restored = self.history.restored.get(server).into_iter().flatten().copied().peekable();
        let mut history = Vec::new();
        for Counts { t, line, outcome, last, assumed, .. } in self.counts(server) {
            while restored.next_if(|restored| *restored < line).is_some() {
                (missed, class) = (0, 6);
            }
            let on_request = class >= 6;
            missed = if outcome == Outcome::Miss { missed + 1 } else { 0 };
            match outcome {
                Outcome::Partial { count } => last_count = count.unwrap_or(last_count),
                Outcome::Full | Outcome::Counted { .. } => last_count = last.expect("the count of this snapshot"),
                Outcome::Frozen => last_count = 0,
                // Used for nothing: the last of the last three stays the last count.
                Outcome::Unverified => last_count = last.unwrap_or(0),
                Outcome::Miss | Outcome::Ignored => (),
            }
            let players_min = self.history.settings_at(line).class1_players_min;
            class = match missed {
                1.. if on_request => 7,
                0..=2 if last_count.max(assumed) >= players_min => 1,
                0..=10 => 2,
                11..=20 => 3,
                21..=30 => 4,
                31..=40 => 5,
                _ => 6,
            };
            history.push(ClassStep { t, missed, class });
        }
        history
    }
}

/// The player counts of a server after one of its lines.
struct Counts {
    /// Index of the line among all scans.
    index: usize,
    t: i64,
    /// Index of the line in the log.
    line: usize,
    outcome: Outcome,
    /// Count of the last full snapshot, if it was not cleared since.
    last: Option<u32>,
    /// The median of the last three.
    assumed: u32,
}

impl Counts {
    fn is_sample(&self) -> bool {
        matches!(self.outcome, Outcome::Full | Outcome::Counted { .. })
    }
}

/// The mean of the values of each slot.
fn means(values: impl Iterator<Item = (i64, f64)>) -> BTreeMap<i64, f64> {
    let mut by_slot: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for (slot, value) in values {
        by_slot.entry(slot).or_default().push(value);
    }
    by_slot.into_iter().map(|(slot, values)| (slot, values.iter().sum::<f64>() / values.len() as f64)).collect()
}

pub const SLOT_CODE_BITS: u32 = 13;

/// The number of players that a code of n bits represents; `None`: no data.
pub fn decode(bits: u32, code: u16) -> Option<f64> {
    let top = (1_u32 << bits) - 1;
    match u32::from(code) {
        0 => Some(0.0),
        code if code == top => None,
        code if code < top => Some(0.05 * (4096.0 / 0.05_f64).powf(f64::from(code - 1) / f64::from(top - 2))),
        _ => panic!("{code} has more than {bits} bits"),
    }
}

/// The code whose value is nearest on the log scale, found by trying each.
pub fn encode(bits: u32, players: Option<f64>) -> u16 {
    let top = ((1_u32 << bits) - 1) as u16;
    let Some(players) = players else { return top };
    if players == 0.0 {
        return 0;
    }
    thread_local! {
        /// Logarithms of the values of codes from 1, by bits.
        static SCALES: RefCell<BTreeMap<u32, Vec<f64>>> = RefCell::default();
    }
    let target = players.ln();
    SCALES.with_borrow_mut(|scales| {
        let value = |code: u16| decode(bits, code).expect("below top").ln();
        let scale = scales.entry(bits).or_insert_with(|| (1..top).map(value).collect());
        let distance = |at: &usize| (scale[*at] - target).abs();
        let nearest = (0..scale.len()).min_by(|a, b| distance(a).total_cmp(&distance(b)));
        nearest.expect("codes") as u16 + 1
    })
}

/// 250 bytes: 150 slots up to `newest`, oldest first, three 13-bit codes to five bytes.
pub fn pack_slots(slots: &BTreeMap<i64, f64>, newest: i64) -> Vec<u8> {
    let codes: Vec<u64> =
        (newest - 149..=newest).map(|slot| u64::from(encode(SLOT_CODE_BITS, slots.get(&slot).copied()))).collect();
    codes
        .chunks(3)
        .flat_map(|three| {
            // 39 bits, the first value highest, and one spare bit below them.
            let bits = (three[0] << 26 | three[1] << 13 | three[2]) << 1;
            bits.to_be_bytes()[3..].to_vec()
        })
        .collect()
}

impl Series {
    /// 768 bytes of hours.
    pub fn hours_blob(&self, newest: i64) -> Vec<u8> {
        bytes(&self.hours, newest - 767, newest)
    }

    /// 365 bytes of days.
    pub fn days_blob(&self, newest: i64) -> Vec<u8> {
        bytes(&self.days, newest - 364, newest)
    }

    /// One byte a week, from the first with data.
    pub fn weeks_blob(&self, newest: i64) -> Vec<u8> {
        self.weeks.keys().next().map_or(Vec::new(), |&first| bytes(&self.weeks, first, newest))
    }
}

fn bytes(means: &BTreeMap<i64, f64>, oldest: i64, newest: i64) -> Vec<u8> {
    (oldest..=newest).map(|slot| encode(8, means.get(&slot).copied()) as u8).collect()
}

/// 110 bytes: a server's ranks in 55 weeks up to `newest`, u16 big-endian, 0 = not ranked.
pub fn ranks_blob(rank: impl Fn(u32) -> Option<usize>, newest: u32) -> Vec<u8> {
    let coded = |week: u32| rank(week).map_or(0, |rank| rank.min(50_000) as u16);
    (newest - 54..=newest).flat_map(|week| coded(week).to_be_bytes()).collect()
}
