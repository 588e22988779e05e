//! Which scanner scans which server: the pure part. It has no clock: times are ms of any monotonic clock.
//!
//! A *region* is a place that scanners are in; the daemon's own scanner is in one, too. While no other scanner has
//! joined, nothing is noted here, and every scan is the own scanner's.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

use crate::api::ScannerRow;
use crate::model::ServerKey;
use crate::scan::{ScanMode, ScanOutcome, ScanRequest};

/// A scanner that says nothing for so long is lost, ms: its scans are given to others.
pub(super) const LOST_AFTER_MS: i64 = 3_000;

/// A scan without an outcome for so long is given again, ms. It is long, because a scanner that is not lost still has the
/// scan in its queue: the server would be scanned twice.
pub(super) const HELD_MS_MAX: i64 = 600_000;

/// For so long after a start, answers to scans of the leader before are taken, ms.
pub(super) const EARLIER_MS_MAX: i64 = 60_000;

/// Of so many scans of a server, one is made from another region, to learn how fast that one is now.
const SCANS_PER_TRIAL: u64 = 32;

/// A miss that another region did not confirm counts as an answer after this time, ms: the other regions are asked first.
const REFUTED_MS: f32 = 10_000.0;

/// How much a new answer counts in the mean of a region's answer times.
const NEW_SHARE: f32 = 0.25;

/// Answer times of servers that are known, at most: 24 bytes each.
const SERVERS_MAX: usize = 2_000_000;

/// The number of a region, in the order in which they were first seen. 0 is the own one.
type Region = u8;

/// Regions, at most: [`Region`] counts them.
pub(super) const REGIONS_MAX: usize = 200;

/// Scanners, at most.
pub(super) const SCANNERS_MAX: usize = 1_000;

#[derive(Debug)]
pub(in crate::daemon) struct Pool {
    regions: Vec<String>,
    /// How many regions must miss a server before it is a miss.
    confirm_miss_by: usize,
    /// By name.
    scanners: BTreeMap<String, Joined>,
    /// Scans in progress, since a scanner has joined.
    held: FxHashMap<u64, Held>,
    /// Mean answer times by region, ms.
    answer_ms: FxHashMap<ServerKey, SmallVec<[(Region, f32); 2]>>,
    /// For the own scanner.
    own: VecDeque<ScanRequest>,
    /// Scans that were given to another scanner, because the first one was lost or took too long.
    given_again: u64,
    /// Misses that another region did not confirm.
    misses_refuted: u64,
    lost: u64,
    /// The number of the last answer with scans. No other pool and no scanner that was lost has the same ones: a scanner
    /// would seem to have an answer that was lost.
    last_batch: u64,
    /// Scans with smaller numbers were given by an earlier process, or by another engine that led. Their answers are
    /// taken until then.
    first_id: u64,
    earlier_until_ms: i64,
    /// Numbers of the scans whose answers were taken so.
    earlier: FxHashSet<u64>,
    /// How many such answers there were since the start.
    earlier_answers: u64,
}

/// A scanner on another machine.
#[derive(Debug)]
struct Joined {
    region: Region,
    /// Chosen by the scanner at its start.
    session: u64,
    /// Of the scanner that had this name until then.
    before: Option<u64>,
    heard_ms: i64,
    /// Exchanges that have begun and not ended; it is there meanwhile. Only the newest takes scans.
    open: u32,
    exchange: u64,
    /// The number of the last answer with scans, and these, until the scanner says that it has it.
    batch: u64,
    handed: Vec<ScanRequest>,
    queue: VecDeque<ScanRequest>,
    /// How many more scans it can take.
    space: usize,
    /// Its outcomes with smaller numbers have arrived.
    received: u64,
    /// Its outcomes with smaller numbers are in the log.
    logged: u64,
    counts: ScannerCounts,
}

/// What a scanner has done since it joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ScannerCounts {
    pub in_progress: u64,
    pub answered: u64,
    pub missed: u64,
}

/// A scan in progress.
#[derive(Clone, Debug)]
struct Held {
    request: ScanRequest,
    /// The scanner that has it; `None`: the own one.
    by: Option<String>,
    /// When another one gets it.
    until_ms: i64,
    asked: Asked,
}

/// What has become of a scan so far.
#[derive(Clone, Debug, Default)]
struct Asked {
    /// Regions that have missed the server, and the last of these outcomes.
    missed: SmallVec<[Region; 4]>,
    miss: Option<Box<ScanOutcome>>,
    /// Regions whose scanner could not scan it.
    failed: SmallVec<[Region; 4]>,
}

impl Asked {
    fn contains(&self, region: Region) -> bool {
        self.missed.contains(&region) || self.failed.contains(&region)
    }
}

/// How a scanner begins an exchange.
#[derive(Clone, Copy, Debug)]
pub(in crate::daemon) struct Greeting<'a> {
    pub name: &'a str,
    pub region: &'a str,
    pub session: u64,
    pub space: usize,
    /// The number of the last answer with scans that it got; 0: none.
    pub batch_known: u64,
}

impl Pool {
    pub fn new(own_region: &str, confirm_miss_by: usize) -> Pool {
        Pool {
            regions: vec![own_region.to_owned()],
            confirm_miss_by,
            scanners: BTreeMap::new(),
            held: FxHashMap::default(),
            answer_ms: FxHashMap::default(),
            own: VecDeque::new(),
            given_again: 0,
            misses_refuted: 0,
            lost: 0,
            last_batch: 0,
            first_id: 0,
            earlier_until_ms: 0,
            earlier: FxHashSet::default(),
            earlier_answers: 0,
        }
    }

    pub fn set_confirm_miss_by(&mut self, regions: usize) {
        self.confirm_miss_by = regions;
    }

    /// Scans are numbered from here on, above those of earlier processes.
    pub fn number_scans_from(&mut self, now_ms: i64, id: u64) {
        (self.first_id, self.earlier_until_ms) = (id, now_ms + EARLIER_MS_MAX);
        self.last_batch = self.last_batch.max(id);
    }

    /// Whether every scan is the own scanner's.
    pub fn is_alone(&self) -> bool {
        self.scanners.is_empty() && self.held.is_empty() && self.own.is_empty()
    }

    /// Gives a scan to a scanner of the region that answers fastest. Returns it if that is the own one.
    pub fn assign(&mut self, now_ms: i64, request: ScanRequest) -> Option<ScanRequest> {
        if self.scanners.is_empty() {
            return Some(request);
        }
        self.give(now_ms, request, Asked::default(), true)
    }

    /// While the queue of the own scanner is full: gives the next scans to the others, as many as they can take.
    pub fn assign_to_others(&mut self, now_ms: i64, mut next: impl FnMut() -> Option<ScanRequest>) {
        while self.scanners.values().any(|joined| space(joined) > 0) {
            let Some(request) = next() else { return };
            let own = self.give(now_ms, request, Asked::default(), false);
            self.own.extend(own);
        }
    }

    /// The next scan for the own scanner that another one has given back.
    pub fn take_own(&mut self) -> Option<ScanRequest> {
        self.own.pop_front()
    }

    pub fn has_own(&self) -> bool {
        !self.own.is_empty()
    }

    /// A scanner begins an exchange: it says how many scans it can take, and which answer with scans it has got last.
    /// Returns the number of the exchange. Error: it cannot join.
    pub fn begin(&mut self, now_ms: i64, scanner: &Greeting<'_>) -> Result<u64, String> {
        let &Greeting { name, region, session, space, batch_known } = scanner;
        if self.scanners.len() >= SCANNERS_MAX && !self.scanners.contains_key(name) {
            return Err(format!("{SCANNERS_MAX} scanners have joined; no more can"));
        }
        let region = self.region(region)?;
        let mut before = None;
        if let Some(known) = self.scanners.get(name).filter(|known| known.session != session) {
            // It was started again, unless the one before goes on.
            if known.before == Some(session) {
                return Err(format!("another scanner with the name {name} has joined: choose another name"));
            }
            before = Some(known.session);
            self.remove(now_ms, name);
        }
        let joined = self.scanners.entry(name.to_owned()).or_insert_with(|| Joined {
            region,
            session,
            before,
            heard_ms: now_ms,
            open: 0,
            exchange: 0,
            batch: 0,
            handed: Vec::new(),
            queue: VecDeque::new(),
            space: 0,
            received: 0,
            logged: 0,
            counts: ScannerCounts::default(),
        });
        (joined.heard_ms, joined.region, joined.space) = (now_ms, region, space);
        joined.open += 1;
        joined.exchange += 1;
        let handed = std::mem::take(&mut joined.handed);
        if batch_known != joined.batch {
            // The answer was lost on the way.
            let held = &self.held;
            let is_its = |scan: &ScanRequest| held.get(&scan.id).is_some_and(|held| held.by.as_deref() == Some(name));
            handed.into_iter().rev().filter(is_its).for_each(|scan| joined.queue.push_front(scan));
        }
        Ok(joined.exchange)
    }

    /// The exchange has ended; its scanner is there until now.
    pub fn end(&mut self, now_ms: i64, name: &str, session: u64) {
        if let Some(joined) = self.scanners.get_mut(name).filter(|joined| joined.session == session) {
            joined.open = joined.open.saturating_sub(1);
            joined.heard_ms = now_ms;
        }
    }

    /// The scans that a scanner gets now, with the number of the answer; nothing if it has begun another exchange.
    pub fn take(&mut self, name: &str, session: u64, exchange: u64) -> (u64, Vec<ScanRequest>) {
        let is_newest = |joined: &&mut Joined| (joined.session, joined.exchange) == (session, exchange);
        let Some(joined) = self.scanners.get_mut(name).filter(is_newest) else { return (0, Vec::new()) };
        let count = joined.queue.len().min(joined.space);
        joined.space -= count;
        let scans: Vec<ScanRequest> = joined.queue.drain(..count).collect();
        if !scans.is_empty() {
            self.last_batch += 1;
            joined.batch = self.last_batch;
            joined.handed.clone_from(&scans);
        }
        (joined.batch, scans)
    }

    /// A scanner hands in outcomes with these numbers, and has those before `oldest` no more. Returns the number before which
    /// all have arrived; `None`: some before these have not, and these are not taken either.
    pub fn receive(&mut self, name: &str, session: u64, oldest: u64, numbers: Range<u64>) -> Option<u64> {
        let joined = self.scanners.get_mut(name).filter(|joined| joined.session == session)?;
        joined.received = joined.received.max(oldest);
        if numbers.start > joined.received {
            return None;
        }
        joined.received = joined.received.max(numbers.end);
        Some(joined.received)
    }

    /// The outcomes of a scanner before this number are in the log.
    pub fn note_logged(&mut self, name: &str, session: u64, number: u64) {
        if let Some(joined) = self.scanners.get_mut(name).filter(|joined| joined.session == session) {
            joined.logged = joined.logged.max(number);
        }
    }

    /// The numbers before which all outcomes of a scanner have arrived, and are in the log.
    pub fn progress(&self, name: &str, session: u64) -> (u64, u64) {
        let joined = self.scanners.get(name).filter(|joined| joined.session == session);
        joined.map_or((0, 0), |joined| (joined.received, joined.logged))
    }

    /// The outcome of a scan; `by`: the scanner, `None`: the own one. Returns what is to be applied: nothing if the scan
    /// was not that scanner's, or ended before, or if another region is asked first.
    pub fn judge(&mut self, now_ms: i64, by: Option<&str>, outcome: ScanOutcome) -> Option<ScanOutcome> {
        let is_its = |held: &Held| held.by.as_deref() == by && held.request.server == outcome.server;
        if !self.held.get(&outcome.id).is_some_and(is_its) {
            let is_earlier = outcome.id < self.first_id && now_ms < self.earlier_until_ms && outcome.result.is_ok();
            if by.is_some() && is_earlier && self.earlier.insert(outcome.id) {
                self.earlier_answers += 1;
                return Some(outcome);
            }
            // The own scanner had it before another one joined.
            return (by.is_none() && !self.held.contains_key(&outcome.id)).then_some(outcome);
        }
        let held = self.held.remove(&outcome.id).expect("just found");
        let region = self.region_of(by);
        if let Some(joined) = by.and_then(|name| self.scanners.get_mut(name)) {
            joined.counts.in_progress = joined.counts.in_progress.saturating_sub(1);
            match outcome.result {
                Ok(_) => joined.counts.answered += 1,
                Err(_) => joined.counts.missed += 1,
            }
        }
        let mut asked = held.asked;
        match &outcome.result {
            Ok(_) => {
                self.misses_refuted += u64::from(!asked.missed.is_empty());
                for &region in &asked.missed {
                    self.note_answer(outcome.server, region, REFUTED_MS);
                }
                if let Some(rtt_ms) = outcome.rtt_ms {
                    self.note_answer(outcome.server, region, rtt_ms as f32);
                }
                return Some(outcome);
            }
            // A fault of the scanner's machine says nothing about the server.
            Err(miss) if miss.reason.is_local_fault() => note(&mut asked.failed, region),
            Err(_) => {
                note(&mut asked.missed, region);
                asked.miss = Some(Box::new(outcome.clone()));
            }
        }
        let is_confirmed = asked.missed.len() >= self.confirm_miss_by;
        let is_last = self.live_regions().all(|region| asked.contains(region));
        if is_confirmed || is_last || held.request.mode == ScanMode::Exception {
            return Some(asked.miss.map_or(outcome, |miss| *miss));
        }
        if let Some(own) = self.give(now_ms, held.request, asked, true) {
            self.own.push_back(own);
        }
        None
    }

    /// Gives the scans of lost scanners, and those that take too long, to others. Returns the names of the lost ones.
    pub fn tick(&mut self, now_ms: i64) -> Vec<String> {
        let is_lost = |(name, joined): (&String, &Joined)| {
            (joined.open == 0 && now_ms - joined.heard_ms > LOST_AFTER_MS).then(|| name.clone())
        };
        let lost: Vec<String> = self.scanners.iter().filter_map(is_lost).collect();
        for name in &lost {
            self.remove(now_ms, name);
        }
        self.lost += lost.len() as u64;
        self.give_again(now_ms, |held| held.by.is_some() && held.until_ms < now_ms);
        if now_ms >= self.earlier_until_ms {
            self.earlier = FxHashSet::default();
        }
        if self.scanners.is_empty() && self.held.values().all(|held| held.by.is_none()) {
            // The outcomes of the own scanner need no note.
            self.held.clear();
        }
        lost
    }

    pub fn rows(&self, now_ms: i64) -> Vec<ScannerRow> {
        let row = |(name, joined): (&String, &Joined)| ScannerRow {
            name: name.clone(),
            region: self.regions[usize::from(joined.region)].clone(),
            heard_ago_ms: (now_ms - joined.heard_ms).max(0) as u64,
            in_progress: joined.counts.in_progress,
            answered: joined.counts.answered,
            missed: joined.counts.missed,
        };
        self.scanners.iter().map(row).collect()
    }

    /// Counters since the start, by name.
    pub fn counters(&self) -> [(&'static str, u64); 4] {
        [
            ("given_again", self.given_again),
            ("misses_refuted", self.misses_refuted),
            ("lost", self.lost),
            ("earlier_answers", self.earlier_answers),
        ]
    }

    fn remove(&mut self, now_ms: i64, name: &str) {
        self.scanners.remove(name);
        self.give_again(now_ms, |held| held.by.as_deref() == Some(name));
    }

    /// Gives scans to others, in the order in which they were due: numbers of scans increase.
    fn give_again(&mut self, now_ms: i64, is_given: impl Fn(&Held) -> bool) {
        let ids: BTreeSet<u64> = self.held.iter().filter(|(_, held)| is_given(held)).map(|(id, _)| *id).collect();
        for id in ids {
            let Some(held) = self.held.remove(&id) else { continue };
            let before = held.by.as_ref().and_then(|name| self.scanners.get_mut(name));
            if let Some(joined) = before {
                joined.counts.in_progress = joined.counts.in_progress.saturating_sub(1);
                joined.queue.retain(|request| request.id != id);
            }
            self.given_again += 1;
            if let Some(own) = self.give(now_ms, held.request, held.asked, true) {
                self.own.push_back(own);
            }
        }
    }

    /// Gives a scan to the scanner with most space of the best region that has some. Returns it if that is the own one.
    fn give(&mut self, now_ms: i64, request: ScanRequest, asked: Asked, own_has_space: bool) -> Option<ScanRequest> {
        let regions = self.regions_for(&request, &asked);
        // The own scanner has a queue of its own, and others wait in theirs if nobody has space.
        let best = regions.iter().find_map(|&region| {
            let of_region = self.scanners.iter().filter(|(_, joined)| joined.region == region && space(joined) > 0);
            let most = of_region.max_by_key(|(_, joined)| space(joined)).map(|(name, _)| Some(name.clone()));
            most.or((region == 0 && own_has_space).then_some(None))
        });
        let any =
            || self.scanners.iter().find(|(_, joined)| regions.contains(&joined.region)).map(|(name, _)| name.clone());
        let by = best.unwrap_or_else(any);
        let until_ms = now_ms + HELD_MS_MAX;
        let joined = by.as_ref().and_then(|name| self.scanners.get_mut(name));
        let own = match joined {
            Some(joined) => {
                joined.queue.push_back(request.clone());
                joined.counts.in_progress += 1;
                None
            }
            None => Some(request.clone()),
        };
        self.held.insert(request.id, Held { request, by, until_ms, asked });
        own
    }

    /// The regions that were not asked, those whose answers are fastest first; from time to time another one is the first.
    fn regions_for(&self, request: &ScanRequest, asked: &Asked) -> SmallVec<[Region; 8]> {
        let known = self.answer_ms.get(&request.server).map_or(&[][..], SmallVec::as_slice);
        let mut regions: SmallVec<[Region; 8]> =
            self.live_regions().filter(|&region| !asked.contains(region)).collect();
        if known.is_empty() {
            // A server that has not answered anywhere goes round.
            let first = request.id as usize % regions.len().max(1);
            regions.rotate_left(first);
            return regions;
        }
        // Each server is scanned from each region once.
        let time = |region: &Region| known.iter().find(|(of, _)| of == region).map_or(f32::MIN, |(_, ms)| *ms);
        regions.sort_by(|a, b| time(a).total_cmp(&time(b)));
        let turn = request.id.wrapping_add(u64::from(request.server.0).wrapping_mul(0x9E37_79B9));
        if turn.is_multiple_of(SCANS_PER_TRIAL) && !regions.is_empty() {
            let other = (turn / SCANS_PER_TRIAL % regions.len() as u64) as usize;
            regions[..=other].rotate_right(1);
        }
        regions
    }

    /// The own region, and those with a scanner.
    fn live_regions(&self) -> impl Iterator<Item = Region> {
        let joined: BTreeSet<Region> = self.scanners.values().map(|joined| joined.region).chain([0]).collect();
        joined.into_iter()
    }

    fn region(&mut self, name: &str) -> Result<Region, String> {
        let at = match self.regions.iter().position(|known| known == name) {
            Some(at) => at,
            None if self.regions.len() < REGIONS_MAX => {
                self.regions.push(name.to_owned());
                self.regions.len() - 1
            }
            None => return Err(format!("{REGIONS_MAX} regions are known; no more can be")),
        };
        Ok(at as Region)
    }

    fn region_of(&self, by: Option<&str>) -> Region {
        by.and_then(|name| self.scanners.get(name)).map_or(0, |joined| joined.region)
    }

    fn note_answer(&mut self, server: ServerKey, region: Region, ms: f32) {
        if self.answer_ms.len() >= SERVERS_MAX && !self.answer_ms.contains_key(&server) {
            return;
        }
        let times = self.answer_ms.entry(server).or_insert_with(|| smallvec![]);
        match times.iter_mut().find(|(of, _)| *of == region) {
            Some((_, mean)) => *mean += (ms - *mean) * NEW_SHARE,
            None => times.push((region, ms)),
        }
    }
}

/// How many more scans can be given to a scanner.
fn space(joined: &Joined) -> usize {
    joined.space.saturating_sub(joined.queue.len())
}

/// A region may be asked again if it is the only one that is left.
fn note(regions: &mut SmallVec<[Region; 4]>, region: Region) {
    if !regions.contains(&region) {
        regions.push(region);
    }
}

#[cfg(test)]
pub(in crate::daemon) mod simulation;
#[cfg(test)]
pub(in crate::daemon) mod tests;
