//! Servers of classes 6 and 7, in virtual time: when they are scanned again, and how
//! (docs/rules.md section 9).

use std::collections::BTreeMap;

use crate::scans;
use clqd::engine::{Added, EngineSettings, Event, KnownScan, Outcome, RescanTarget};
use clqd::model::ServerUrl;
use clqd::model::calendar::{DAY_MS, HOUR_MS, MINUTE_MS};
use clqd::schedule::Intervals;
use clqd::state::State;
use clqd::store::StoreSettings;

const START_MS: i64 = 1_763_942_400_000;

struct Run {
    dir: tempfile::TempDir,
    settings: EngineSettings,
    state: Option<State>,
    now_ms: i64,
}

/// A scan: when, of which server, and in exception mode.
type Scan = (i64, String, bool);

impl Run {
    fn new(retry_failed_ms: Option<i64>) -> Run {
        let intervals = Intervals { retry_failed_ms, ..Intervals::default() };
        let settings = EngineSettings { intervals, ..EngineSettings::default() };
        let dir = tempfile::tempdir().unwrap();
        let mut run = Run { dir, settings, state: None, now_ms: START_MS };
        run.restart(0);
        run
    }

    fn state(&mut self) -> &mut State {
        self.state.as_mut().unwrap()
    }

    /// Stops the daemon for a time.
    fn restart(&mut self, pause_ms: i64) {
        if let Some(mut state) = self.state.take() {
            state.commit().unwrap();
        }
        self.now_ms += pause_ms;
        let store = StoreSettings { cache_bytes: 16 << 20, create: true };
        let mut state = State::open(self.dir.path(), store, self.settings.clone()).unwrap();
        state.engine.reschedule_all(self.now_ms);
        self.state = Some(state);
    }

    fn set_retry(&mut self, retry_failed_ms: Option<i64>) {
        self.settings.intervals.retry_failed_ms = retry_failed_ms;
        let settings = self.settings.clone();
        self.state().engine.reload(settings);
    }

    fn add(&mut self, server: &str) -> Added {
        let now_ms = self.now_ms;
        self.state().engine.add_server(url(server), Vec::new(), now_ms).unwrap().1
    }

    /// Makes all scans until a time; only servers in `answering` answer.
    fn scan_until(&mut self, end_ms: i64, answering: &[&str]) -> Vec<Scan> {
        let mut scans = Vec::new();
        let state = self.state.as_mut().unwrap();
        while let Some(due_ms) = state.engine.next_due_ms().filter(|due_ms| *due_ms < end_ms) {
            let now_ms = due_ms.max(state.engine.model().now_ms() + 1);
            let Some(probe) = state.engine.poll_probe(now_ms) else { continue };
            let outcome = match answering.contains(&probe.url.as_str()) {
                true => Outcome::Snapshot(scans::snapshot(now_ms, Vec::<(&str, i64)>::new())),
                false => Outcome::Miss { t_ms: now_ms, reason: "timeout".to_owned() },
            };
            scans.push((now_ms, probe.url.to_string(), probe.exception_mode));
            state
                .handle(Event::Scanned { server: probe.server, id: probe.id, sent_ms: Some(now_ms), outcome })
                .unwrap();
        }
        state.handle(Event::Tick { now_ms: end_ms }).unwrap();
        self.now_ms = end_ms;
        scans
    }

    fn class(&mut self, server: &str) -> u8 {
        self.state().engine.model().servers().find(|it| it.public.url == server).unwrap().public.class
    }
}

fn url(text: &str) -> ServerUrl {
    ServerUrl::parse(text).unwrap()
}

const SERVER: &str = "quake3://10.0.0.1:27960";

#[test]
fn imported_list_of_silent_servers_is_retried_evenly_through_each_day() {
    const SERVERS: usize = 480;
    let mut run = Run::new(Some(DAY_MS));
    for n in 0..SERVERS {
        run.add(&format!("quake3://10.0.0.1:{}", 1_000 + n));
    }
    let first = run.scan_until(START_MS + MINUTE_MS, &[]);
    assert!(first.len() >= SERVERS && first[..SERVERS].iter().all(|(.., exception)| !exception));
    let mut times: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for day in 0..3 {
        let mut scans = Vec::new();
        for hour in 1..=24 {
            // Restarts, and a pause in which some retries are skipped, make no burst.
            let pause_ms = if (day, hour) == (1, 12) { 3 * HOUR_MS / 2 } else { 0 };
            if hour % 5 == 0 || pause_ms > 0 {
                run.restart(pause_ms);
            }
            let made = run.scan_until(START_MS + MINUTE_MS + (day * 24 + hour) * HOUR_MS, &[]);
            assert!(made.len() <= SERVERS / 24 + 3, "day {day}, hour {hour}: {}", made.len());
            scans.extend(made);
        }
        assert!(scans.iter().all(|(.., exception)| *exception));
        if day != 1 {
            assert_eq!(scans.len(), SERVERS, "each server once on day {day}");
        }
        scans.into_iter().for_each(|(t_ms, server, _)| times.entry(server).or_default().push(t_ms));
    }
    assert_eq!(times.len(), SERVERS);
    let phase_moved_ms = |times: &Vec<i64>| times.iter().map(|t_ms| (t_ms - times[0]) % DAY_MS).max().unwrap();
    assert!(times.values().map(phase_moved_ms).max().unwrap() <= 1_000, "a server keeps its time of day");
    let status = run.state().engine.model().status();
    assert_eq!((status.servers_by_class[6], status.servers_failed, status.retry_failed_s), (480, 480, Some(86_400)));
    assert!(status.next_retry_ms.is_some_and(|t_ms| t_ms < run.now_ms + HOUR_MS));
}

#[test]
fn retry_that_succeeds_gives_the_class_by_its_players() {
    let mut run = Run::new(Some(DAY_MS));
    run.add(SERVER);
    run.scan_until(START_MS + 3 * DAY_MS, &[]);
    assert_eq!(run.class(SERVER), 7);
    let end_ms = START_MS + 4 * DAY_MS + HOUR_MS;
    let scans = run.scan_until(end_ms, &[SERVER]);
    assert_eq!((scans[0].2, run.class(SERVER)), (true, 2));
    assert!(scans.len() > 1 && scans[1..].iter().all(|(.., exception)| !exception), "scanned as class 2 from now on");
    let status = run.state().engine.model().status();
    assert_eq!((status.servers_failed, status.next_retry_ms), (0, None));
}

#[test]
fn server_that_stops_answering_is_retried_in_exception_mode_from_class_6_on() {
    let mut run = Run::new(Some(DAY_MS));
    run.add(SERVER);
    run.scan_until(START_MS + HOUR_MS, &[SERVER]);
    let mut classes = Vec::new();
    let mut end_ms = START_MS + HOUR_MS;
    while classes.len() < 3 {
        let before = run.class(SERVER);
        end_ms += HOUR_MS;
        let exceptions: Vec<bool> = run.scan_until(end_ms, &[]).into_iter().map(|(.., exception)| exception).collect();
        if let (6 | 7, Some(&exception)) = (before, exceptions.first()) {
            assert!(exception && exceptions.len() == 1, "class {before}: {exceptions:?}");
            classes.push(before);
        } else {
            assert!(exceptions.iter().all(|exception| !exception), "class {before}");
        }
    }
    assert_eq!(classes, [6, 7, 7]);
}

#[test]
fn without_retries_only_requests_scan_failed_servers() {
    let mut run = Run::new(None);
    run.add(SERVER);
    assert_eq!(run.scan_until(START_MS + 60 * DAY_MS, &[]).len(), 1, "the first scan");
    run.restart(DAY_MS);
    assert_eq!(run.state().engine.next_due_ms(), None);
    let now_ms = run.now_ms;
    run.state().engine.rescan(&RescanTarget::AllUnknown, now_ms).unwrap();
    assert_eq!(run.scan_until(now_ms + 60 * DAY_MS, &[]).len(), 1, "the requested scan");
    // A reload turns retries on, and off again.
    run.set_retry(Some(DAY_MS));
    let now_ms = run.now_ms;
    assert_eq!(run.scan_until(now_ms + 3 * DAY_MS, &[]).len(), 3);
    run.set_retry(None);
    assert_eq!(run.state().engine.next_due_ms(), None);
    let status = run.state().engine.model().status();
    assert_eq!((status.servers_failed, status.next_retry_ms, status.retry_failed_s), (1, None, None));
}

#[test]
fn adding_a_failed_server_again_requests_a_scan_once_a_day() {
    for retry_ms in [None, Some(DAY_MS)] {
        let mut run = Run::new(retry_ms);
        let scan = |run: &mut Run| match run.add(SERVER) {
            Added::AlreadyKnown { scan, .. } => scan,
            other => panic!("{other:?}"),
        };
        assert_eq!(run.add(SERVER), Added::New);
        assert_eq!(scan(&mut run), KnownScan::AsPlanned, "its first scan has not ended");
        let mut end_ms = START_MS + MINUTE_MS;
        run.scan_until(end_ms, &[]);
        for day in 0..4 {
            assert_eq!(scan(&mut run), KnownScan::Requested, "day {day}");
            let now_ms = run.now_ms;
            assert_eq!(run.scan_until(now_ms + 10, &[]).len(), 1, "day {day}");
            for hour in 1..24 {
                end_ms = now_ms + hour * HOUR_MS;
                run.scan_until(end_ms, &[]);
                let next_scan_ms = run.state().engine.next_due_ms();
                assert_eq!(next_scan_ms.is_some(), retry_ms.is_some());
                assert_eq!(scan(&mut run), KnownScan::RequestedEarlier { next_scan_ms }, "day {day}, hour {hour}");
            }
            run.scan_until(now_ms + DAY_MS, &[]);
        }
        // After a restart the last scan counts as requested.
        run.restart(0);
        assert!(matches!(scan(&mut run), KnownScan::RequestedEarlier { .. }), "{retry_ms:?}");
        let now_ms = run.now_ms;
        run.scan_until(now_ms + DAY_MS, &[]);
        assert_eq!(scan(&mut run), KnownScan::Requested);
        let now_ms = run.now_ms;
        run.scan_until(now_ms + HOUR_MS, &[SERVER]);
        assert_eq!(scan(&mut run), KnownScan::AsPlanned, "it answers");
    }
}

/// A scanner with 20,000 places, like the default of `scan.scans_in_flight_max`. A silent server takes two minutes in
/// exception mode.
#[test]
fn rescan_of_many_failed_servers_leaves_places_for_live_ones() {
    const FAILED: u32 = 30_000;
    const SILENT_MS: i64 = 2 * MINUTE_MS;
    const PLACES: usize = 20_000;
    let mut run = Run::new(None);
    (0..FAILED).for_each(|n| _ = run.add(&format!("quake3://10.1.{}.{}:27960", n / 250, n % 250 + 1)));
    run.scan_until(START_MS + MINUTE_MS, &[]);
    run.add(SERVER);
    let now_ms = run.now_ms + MINUTE_MS;
    run.scan_until(now_ms, &[SERVER]);
    run.state().engine.rescan(&RescanTarget::AllUnknown, now_ms).unwrap();
    let (mut silent, mut live, mut retried) = (std::collections::VecDeque::new(), Vec::new(), 0);
    for t_ms in (now_ms..now_ms + 15 * MINUTE_MS).step_by(100) {
        let state = run.state();
        let outcome = |probe: &clqd::engine::Probe, outcome| Event::Scanned {
            server: probe.server,
            id: probe.id,
            sent_ms: Some(t_ms),
            outcome,
        };
        while silent.front().is_some_and(|(end_ms, _)| *end_ms <= t_ms) {
            let (_, probe) = silent.pop_front().unwrap();
            state.handle(outcome(&probe, Outcome::Miss { t_ms, reason: "timeout".to_owned() })).unwrap();
        }
        while silent.len() < PLACES
            && let Some(probe) = state.engine.poll_probe(t_ms)
        {
            if probe.url.as_str() == SERVER {
                let players = ["a", "b", "c"].map(|name| (name, 1));
                state.handle(outcome(&probe, Outcome::Snapshot(scans::snapshot(t_ms, players)))).unwrap();
                live.push(t_ms);
            } else {
                retried += 1;
                silent.push_back((t_ms + SILENT_MS, probe));
            }
        }
        assert!(silent.len() <= PLACES / 4, "{} silent scans at once", silent.len());
    }
    assert_eq!(retried, FAILED, "each is scanned once");
    let longest = live.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    assert!(live[0] - now_ms <= 10 * MINUTE_MS + 100, "class 2 until its first list with players");
    assert!(longest <= 4 * MINUTE_MS, "{longest} ms between two scans of {live:?}");
}
