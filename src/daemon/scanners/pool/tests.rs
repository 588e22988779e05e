//! Scanners that come, answer, miss and are lost.

use super::*;
use crate::model::{Completeness, ServerUrl, Snapshot};
use crate::scan::{Miss, MissReason};

pub(in crate::daemon) fn request(id: u64) -> ScanRequest {
    let url = ServerUrl::parse("quake3://192.0.2.1:27960").expect("a URL");
    ScanRequest { id, server: ServerKey(id as u32 % 100), url, mode: ScanMode::Normal, wants_settings: false }
}

pub(in crate::daemon) fn outcome(id: u64, result: Result<u32, MissReason>) -> ScanOutcome {
    let snapshot = Snapshot {
        t_ms: 5,
        game: "g".into(),
        map: "m".into(),
        hostname: "h".into(),
        slots: 8,
        players: Vec::new(),
        completeness: Completeness::Full,
        count: None,
        bots: None,
    };
    ScanOutcome {
        id,
        server: ServerKey(id as u32 % 100),
        sent_ms: Some(1),
        rtt_ms: result.ok(),
        result: result.map(|_| snapshot).map_err(|reason| Miss { t_ms: 5, reason }),
        authentication: None,
        details: None,
        capture: None,
        attempts: Vec::new(),
    }
}

/// Begins an exchange of a scanner that has got every answer.
pub(super) fn hear(
    pool: &mut Pool,
    now_ms: i64,
    name: &str,
    region: &str,
    session: u64,
    space: usize,
) -> Result<(), String> {
    let batch_known = pool.scanners.get(name).map_or(0, |joined| joined.batch);
    pool.begin(now_ms, &Greeting { name, region, session, space, batch_known })?;
    pool.end(now_ms, name, session);
    Ok(())
}

/// The scans that a scanner gets.
pub(super) fn take(pool: &mut Pool, name: &str) -> Vec<ScanRequest> {
    let Some(joined) = pool.scanners.get(name) else { return Vec::new() };
    let (session, exchange) = (joined.session, joined.exchange);
    pool.take(name, session, exchange).1
}

/// A pool with scanners, each in a region of its own name.
fn pool(scanners: &[&str]) -> Pool {
    let mut pool = Pool::new("own", 2);
    for name in scanners {
        hear(&mut pool, 0, name, name, 1, 100).expect("joined");
    }
    pool
}

fn ids(requests: &[ScanRequest]) -> Vec<u64> {
    requests.iter().map(|request| request.id).collect()
}

#[test]
fn answers_to_scans_of_an_earlier_leader_are_taken() {
    let mut pool = pool(&["a"]);
    pool.number_scans_from(1_000, 500);
    assert!(pool.judge(2_000, Some("a"), outcome(499, Ok(20))).is_some());
    assert!(pool.judge(2_000, Some("a"), outcome(499, Ok(20))).is_none(), "repeated");
    assert!(pool.judge(2_000, Some("a"), outcome(498, Err(MissReason::Timeout))).is_none());
    assert!(pool.judge(2_000, Some("a"), outcome(500, Ok(20))).is_none(), "it was not given to this scanner");
    assert!(pool.judge(1_000 + EARLIER_MS_MAX, Some("a"), outcome(497, Ok(20))).is_none(), "too late");
    assert_eq!(pool.counters()[3], ("earlier_answers", 1));
}

#[test]
fn alone_nothing_is_noted() {
    let mut pool = pool(&[]);
    assert_eq!(pool.assign(0, request(7)).map(|request| request.id), Some(7));
    assert!(pool.judge(0, None, outcome(7, Ok(5))).is_some() && pool.is_alone());
    assert!(pool.judge(0, Some("eu"), outcome(7, Ok(5))).is_none(), "it had no such scan");
}

#[test]
fn a_server_is_scanned_from_the_region_that_answers_fastest() {
    let mut pool = pool(&["eu", "us"]);
    let scan = |pool: &mut Pool, id: u64| {
        let own = pool.assign(0, request(id));
        let by = [None, Some("eu"), Some("us")].into_iter().find(|by| match by {
            None => own.is_some(),
            Some(name) => !take(pool, name).is_empty(),
        });
        let by = by.expect("one has it");
        let ms = match by {
            None => 90,
            Some("eu") => 20,
            _ => 140,
        };
        assert!(pool.judge(0, by, outcome(id, Ok(ms))).is_some());
        hear(pool, 0, by.unwrap_or("eu"), by.unwrap_or("eu"), 1, 100).expect("it is there");
        by
    };
    let first: BTreeSet<_> = (1..4).map(|n| scan(&mut pool, n * 100 + 1)).collect();
    assert_eq!(first, BTreeSet::from([None, Some("eu"), Some("us")]), "each is tried");
    let later: Vec<_> = (4..200).map(|n| scan(&mut pool, n * 100 + 1)).collect();
    let share = later.iter().filter(|by| **by == Some("eu")).count() as f64 / later.len() as f64;
    assert!(share > 0.9, "{share}");
}

#[test]
fn scans_of_a_lost_scanner_are_given_to_others() {
    let mut pool = pool(&["eu"]);
    for id in [1, 2, 3] {
        // Known from both, and faster from there.
        pool.note_answer(ServerKey(id), 0, 50.0);
        pool.note_answer(ServerKey(id), 1, 5.0);
        assert!(pool.assign(0, request(id.into())).is_none());
    }
    assert_eq!(ids(&take(&mut pool, "eu")), [1, 2, 3]);
    assert!(pool.judge(10, Some("eu"), outcome(2, Ok(5))).is_some());
    assert!(pool.judge(10, Some("eu"), outcome(2, Ok(5))).is_none(), "repeated");
    assert_eq!(pool.tick(LOST_AFTER_MS), Vec::<String>::new());
    assert_eq!(pool.tick(LOST_AFTER_MS + 1), ["eu"]);
    let own: Vec<_> = std::iter::from_fn(|| pool.take_own()).collect();
    assert_eq!((ids(&own), pool.given_again), (vec![1, 3], 2));
    assert!(pool.judge(5_000, Some("eu"), outcome(1, Ok(5))).is_none(), "it comes too late");
    assert!(pool.judge(5_000, None, outcome(1, Ok(5))).is_some());
}

#[test]
fn a_scanner_that_was_lost_and_misses_an_answer_gets_its_scans_again() {
    let mut pool = pool(&[]);
    let exchange = |pool: &mut Pool, now_ms: i64, batch_known: u64| {
        let greeting = Greeting { name: "eu", region: "eu", session: 1, space: 9, batch_known };
        let exchange = pool.begin(now_ms, &greeting).expect("joined");
        let (batch, scans) = pool.take("eu", 1, exchange);
        pool.end(now_ms, "eu", 1);
        (batch, ids(&scans))
    };
    assert_eq!(exchange(&mut pool, 0, 0), (0, vec![]));
    assert!(pool.assign(0, request(1)).is_none());
    assert_eq!(exchange(&mut pool, 1, 0), (1, vec![1]));
    assert_eq!(pool.tick(LOST_AFTER_MS + 2), ["eu"]);
    // It waits until there is a scan.
    let greeting = Greeting { name: "eu", region: "eu", session: 1, space: 9, batch_known: 1 };
    let waiting = pool.begin(4_000, &greeting).expect("joined");
    assert!(pool.assign(4_001, request(3)).is_none());
    assert_eq!(pool.take("eu", 1, waiting).0, 2);
    // The answer was lost.
    assert_eq!(exchange(&mut pool, 4_002, 1), (3, vec![3]));
    assert_eq!(exchange(&mut pool, 4_003, 3), (3, vec![]));
}

#[test]
fn a_scanner_that_was_started_again_has_lost_its_scans() {
    let mut pool = pool(&["eu", "us"]);
    pool.note_answer(ServerKey(1), 1, 5.0);
    (0..3).for_each(|region| pool.note_answer(ServerKey(1), region, 50.0));
    assert!(pool.assign(0, request(1)).is_none());
    assert_eq!(ids(&take(&mut pool, "eu")), [1]);
    hear(&mut pool, 10, "eu", "eu", 2, 100).expect("joined again");
    assert_eq!(pool.given_again, 1);
    assert_eq!(pool.take_own().map(|request| request.id), Some(1));
    assert!(hear(&mut pool, 11, "eu", "eu", 1, 100).is_err(), "the one before goes on: they are two");
}

#[test]
fn a_miss_needs_a_second_region() {
    let mut pool = pool(&["eu"]);
    let timeout = || Err(MissReason::Timeout);
    assert!(pool.assign(0, request(2)).is_some());
    assert!(pool.judge(0, None, outcome(2, timeout())).is_none());
    assert_eq!(ids(&take(&mut pool, "eu")), [2]);
    assert!(pool.judge(0, Some("eu"), outcome(2, Ok(9))).is_some_and(|outcome| outcome.result.is_ok()));
    assert_eq!((pool.given_again, pool.misses_refuted), (0, 1));
    // Both miss it.
    hear(&mut pool, 0, "eu", "eu", 1, 100).expect("it is there");
    assert!(pool.assign(0, request(101)).is_none());
    assert_eq!(ids(&take(&mut pool, "eu")), [101]);
    assert!(pool.judge(0, Some("eu"), outcome(101, timeout())).is_none());
    assert_eq!(pool.take_own().map(|request| request.id), Some(101));
    assert!(pool.judge(0, None, outcome(101, timeout())).is_some_and(|outcome| outcome.result.is_err()));
    // A fault of the scanner's own machine.
    pool.note_answer(ServerKey(1), 0, 500.0);
    pool.set_confirm_miss_by(1);
    assert!(pool.assign(0, request(201)).is_none());
    take(&mut pool, "eu");
    assert!(pool.judge(0, Some("eu"), outcome(201, Err(MissReason::SendFailed))).is_none());
    assert_eq!(pool.take_own().map(|request| request.id), Some(201));
}

#[test]
fn what_a_scanner_has_too_long_is_given_again_and_others_take_no_more_than_they_can() {
    let mut pool = pool(&[]);
    hear(&mut pool, 0, "eu", "eu", 1, 1).expect("joined");
    for id in [1, 2] {
        pool.note_answer(ServerKey(id), 0, 50.0);
        pool.note_answer(ServerKey(id), 1, 5.0);
    }
    assert!(pool.assign(0, request(1)).is_none());
    assert!(pool.assign(0, request(2)).is_some(), "it has space for one");
    assert_eq!(ids(&take(&mut pool, "eu")), [1]);
    for now_ms in (0..=HELD_MS_MAX).step_by(1_000) {
        hear(&mut pool, now_ms, "eu", "eu", 1, 0).expect("it is there");
        pool.tick(now_ms);
    }
    assert_eq!(pool.take_own().map(|request| request.id), None);
    hear(&mut pool, HELD_MS_MAX + 1, "eu", "eu", 1, 0).expect("it is there");
    pool.tick(HELD_MS_MAX + 1);
    assert_eq!(pool.take_own().map(|request| request.id), Some(1));
}

#[test]
fn others_scan_while_the_queue_of_the_own_scanner_is_full() {
    let mut pool = pool(&[]);
    hear(&mut pool, 0, "eu", "eu", 1, 2).expect("joined");
    let mut due = [1, 2, 3].into_iter();
    due.clone().for_each(|id| {
        // Faster from here.
        pool.note_answer(ServerKey(id), 0, 5.0);
        pool.note_answer(ServerKey(id), 1, 50.0);
    });
    pool.assign_to_others(0, || due.next().map(|id| request(id.into())));
    assert_eq!(ids(&take(&mut pool, "eu")), [1, 2]);
    assert_eq!((due.next(), pool.take_own().map(|request| request.id)), (Some(3), None));
}

#[test]
fn a_scanner_keeps_its_outcomes_until_they_are_in_the_log() {
    let (mut first, mut other) = (pool(&["a"]), pool(&["a"]));
    assert_eq!(first.receive("a", 1, 0, 0..5), Some(5));
    assert_eq!(first.progress("a", 1), (5, 0));
    first.note_logged("a", 1, 5);
    assert_eq!(first.receive("a", 1, 5, 5..8), Some(8));
    assert_eq!(first.progress("a", 1), (8, 5));
    // Repeated, late, and of an earlier start.
    assert_eq!(first.receive("a", 1, 0, 0..5), Some(8));
    first.note_logged("a", 1, 3);
    first.note_logged("a", 9, 8);
    assert_eq!((first.progress("a", 1), first.progress("a", 9)), ((8, 5), (0, 0)));

    // Another daemon takes over: what was handed in and is not in the log is handed in again.
    assert_eq!(other.receive("a", 1, 5, 8..9), None);
    assert_eq!(other.progress("a", 1), (5, 0));
    assert_eq!(other.receive("a", 1, 5, 5..9), Some(9));
}
