//! Many scanners in virtual time: they come, go, stop, answer twice, late or never. From one seed a run is always the same.

use std::collections::{BTreeMap, BTreeSet};

use super::tests::{outcome, request};
use super::*;
use crate::scan::MissReason;

pub(in crate::daemon) struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    pub fn is(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A scanner as it is; the pool only sees what it says.
struct Simulated {
    name: &'static str,
    region: &'static str,
    session: u64,
    /// It says nothing until then, ms.
    stopped_until_ms: i64,
    batch_known: u64,
    scans: Vec<ScanRequest>,
}

const NAMES: [(&str, &str); 4] = [("a", "eu"), ("b", "eu"), ("c", "us"), ("d", "own")];

/// A day in seconds: every scan is applied exactly once, however scanners fail.
fn run(seed: u64) {
    let mut random = Random(seed);
    let confirm = 1 + random.below(3) as usize;
    let mut pool = Pool::new("own", confirm);
    let mut scanners: Vec<Simulated> = Vec::new();
    let mut own: Vec<ScanRequest> = Vec::new();
    let (mut next_id, mut session) = (1, 0);
    let mut open: BTreeSet<u64> = BTreeSet::new();
    // The regions that have missed a server, and all that were asked.
    let mut missed: BTreeMap<u64, BTreeSet<Region>> = BTreeMap::new();
    let mut asked: BTreeMap<u64, BTreeSet<Region>> = BTreeMap::new();
    let mut sent: Vec<(&'static str, ScanOutcome)> = Vec::new();
    // Servers that one region does not reach.
    let blocked = random.below(3) as usize;
    let result = |region: &str, id: u64, random: &mut Random| match region {
        _ if random.is(3) => Err(MissReason::SendFailed),
        region if region == ["own", "eu", "us"][blocked] && id.is_multiple_of(3) => Err(MissReason::Timeout),
        _ if id.is_multiple_of(7) => Err(MissReason::Timeout),
        _ => Ok(10 + random.below(90) as u32),
    };
    let end_ms = 60_000;
    for now_ms in (0..end_ms + 200_000).step_by(100) {
        let is_ending = now_ms >= end_ms;
        if !is_ending {
            for _ in 0..random.below(4) {
                open.insert(next_id);
                own.extend(pool.assign(now_ms, request(next_id)));
                next_id += 1;
            }
            if random.is(3) {
                let (name, region) = NAMES[random.below(4) as usize];
                // One that runs is started again.
                scanners.retain(|scanner| scanner.name != name);
                session += 1;
                scanners.push(Simulated {
                    name,
                    region,
                    session,
                    stopped_until_ms: 0,
                    batch_known: 0,
                    scans: Vec::new(),
                });
            }
            if random.is(2) && !scanners.is_empty() {
                let at = random.below(scanners.len() as u64) as usize;
                match random.is(50) {
                    true => _ = scanners.remove(at),
                    false => scanners[at].stopped_until_ms = now_ms + random.below(20_000) as i64,
                }
            }
        }
        own.extend(std::iter::from_fn(|| pool.take_own()));
        let mut judged: Vec<(Option<&'static str>, ScanOutcome)> = Vec::new();
        while !own.is_empty() && random.is(70) {
            let scan = own.swap_remove(random.below(own.len() as u64) as usize);
            judged.push((None, outcome(scan.id, result("own", scan.id, &mut random))));
        }
        for scanner in scanners.iter_mut().filter(|scanner| scanner.stopped_until_ms <= now_ms) {
            let greeting = Greeting {
                name: scanner.name,
                region: scanner.region,
                session: scanner.session,
                space: random.below(8) as usize,
                batch_known: scanner.batch_known,
            };
            let exchange = pool.begin(now_ms, &greeting).expect("it may join");
            let (batch, scans) = pool.take(scanner.name, scanner.session, exchange);
            pool.end(now_ms, scanner.name, scanner.session);
            // Some answers are lost on the way.
            if !random.is(5) {
                scanner.batch_known = batch;
                scanner.scans.extend(scans);
            }
            while !scanner.scans.is_empty() && random.is(60) {
                let scan = scanner.scans.swap_remove(random.below(scanner.scans.len() as u64) as usize);
                let outcome = outcome(scan.id, result(scanner.region, scan.id, &mut random));
                if random.is(10) {
                    sent.push((scanner.name, outcome.clone()));
                }
                judged.push((Some(scanner.name), outcome));
            }
        }
        // Repeated, and out of order.
        if !sent.is_empty() && random.is(30) {
            let (name, outcome) = sent.swap_remove(random.below(sent.len() as u64) as usize);
            judged.push((Some(name), outcome));
        }
        for (by, outcome) in judged {
            let id = outcome.id;
            let is_its = pool.held.get(&id).is_some_and(|held| held.by.as_deref() == by);
            if is_its {
                let region = pool.region_of(by);
                asked.entry(id).or_default().insert(region);
                if outcome.result.as_ref().is_err_and(|miss| !miss.reason.is_local_fault()) {
                    missed.entry(id).or_default().insert(region);
                }
            }
            let live: BTreeSet<Region> = pool.live_regions().collect();
            if let Some(outcome) = pool.judge(now_ms, by, outcome) {
                assert!(open.remove(&id), "seed {seed}: {id} was applied twice");
                if outcome.result.is_err() && is_its {
                    let by_regions = missed.get(&id).map_or(0, BTreeSet::len);
                    let all_asked = live.is_subset(&asked[&id]);
                    assert!(by_regions >= confirm || all_asked, "seed {seed}: {id} was missed by {by_regions} regions");
                }
            }
        }
        if now_ms % 500 == 0 {
            pool.tick(now_ms);
        }
        if is_ending && open.is_empty() {
            break;
        }
    }
    assert!(open.is_empty(), "seed {seed}: {} of {} scans were lost: {open:?}", open.len(), next_id - 1);
}

#[test]
fn every_scan_is_applied_once_however_scanners_fail() {
    let seeds = std::env::var("CLQD_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(200);
    (0..seeds).for_each(run);
}
