//! Checks the schedule independently of the engine (docs/rules.md 9): a server has at most one
//! scan in flight, is scanned within its class's interval and at a fixed phase, and is
//! never left out.

use clqd::engine::{Engine, Probe};
use clqd::model::ServerKey;

/// The most time between two scans of a server with players.
const ELASTIC_GAP_MS_MAX: i64 = 240_000;

const INTERVALS_MS: [i64; 7] = [120_000, 600_000, 3_600_000, 86_400_000, 604_800_000, 86_400_000, 86_400_000];

/// Longest scan, in exception mode; ms of real time: seven attempts of 6 s, then at most 100
/// probes of 1.1 s, with three requests an exchange.
const SCAN_MS_MAX: i64 = 3 * (7 * 6_000 + 100 * 1_100);

#[derive(Default)]
pub struct Watch {
    /// Index is the server key.
    servers: Vec<Watched>,
    pub probes: u64,
}

#[derive(Clone, Copy, Default)]
struct Watched {
    class: u8,
    /// Id and start of the scan in flight; real time, ms.
    in_flight: Option<(u64, i64)>,
    /// When the server must be due: after the first time, not after the second.
    window: Option<(i64, i64)>,
    /// Due time within the interval, by class: it never changes.
    phases: [Option<i64>; 7],
}

impl Watch {
    /// A daemon has started with the state of the previous one.
    pub fn restart(&mut self, engine: &Engine) {
        let now_ms = engine.model().now_ms();
        for server in engine.model().servers() {
            let at = server.public.key as usize;
            self.servers.resize(self.servers.len().max(at + 1), Watched::default());
            let watched = &mut self.servers[at];
            watched.class = server.public.class;
            watched.in_flight = None;
            watched.plan(now_ms);
            if server.public.class == 6 && server.public.missed == 0 {
                watched.window = Some((now_ms - 1, now_ms)); // still due
            }
        }
    }

    /// A scan is requested, or the server is added.
    pub fn requested(&mut self, server: ServerKey, t_ms: i64) {
        let at = server.0 as usize;
        if at >= self.servers.len() {
            self.servers.resize(at + 1, Watched { class: 6, ..Watched::default() });
        }
        let watched = &mut self.servers[at];
        if watched.in_flight.is_none() {
            watched.window = Some((t_ms - 1, t_ms));
        }
    }

    pub fn probed(&mut self, probe: &Probe, real_ms: i64, t_ms: i64) {
        self.probes += 1;
        let watched = &mut self.servers[probe.server.0 as usize];
        assert_eq!(watched.in_flight, None, "{probe:?}: its last scan is still in flight");
        let Some((after_ms, until_ms)) = watched.window.take() else {
            panic!("{probe:?}: the server is not due and was not requested")
        };
        assert!(probe.due_ms <= t_ms, "{probe:?} at {t_ms}: too early");
        assert!(
            after_ms < probe.due_ms && probe.due_ms <= until_ms,
            "{probe:?}: in class {} it is due after {after_ms}, until {until_ms}",
            watched.class
        );
        let is_requested = until_ms - after_ms == 1;
        let is_exception = watched.class == 7 || (watched.class == 6 && !is_requested);
        assert_eq!(probe.exception_mode, is_exception, "{probe:?}: exception mode in class {}", watched.class);
        // The scans of servers with players have no phase.
        let interval_ms = INTERVALS_MS.get(usize::from(watched.class) - 1);
        if let Some(&interval_ms) = interval_ms.filter(|_| !is_requested && !probe.elastic) {
            let phase = probe.due_ms.rem_euclid(interval_ms);
            let fixed = *watched.phases[usize::from(watched.class) - 1].get_or_insert(phase);
            assert_eq!(phase, fixed, "{probe:?}: phase in class {}", watched.class);
        }
        watched.in_flight = Some((probe.id, real_ms));
    }

    /// Its scan has ended, at the engine's `now_ms`.
    pub fn finished(&mut self, server: ServerKey, id: u64, class: u8, now_ms: i64) {
        let watched = &mut self.servers[server.0 as usize];
        assert_eq!(watched.in_flight.map(|(id, _)| id), Some(id), "server {server}: another scan was in flight");
        watched.in_flight = None;
        watched.class = class;
        watched.plan(now_ms);
    }

    /// Everything that was due has been probed: no server may be left out.
    pub fn check_none_overdue(&self, real_ms: i64, t_ms: i64) {
        for (key, watched) in self.servers.iter().enumerate() {
            match (watched.in_flight, watched.window) {
                (Some((id, since_ms)), _) => {
                    assert!(real_ms - since_ms <= SCAN_MS_MAX, "scan {id} of server {key} did not end");
                }
                (None, Some((_, until_ms))) => {
                    assert!(t_ms < until_ms, "server {key} of class {} was due at {until_ms}", watched.class);
                }
                (None, None) => assert!(key == 0, "server {key} is never due"),
            }
        }
    }
}

impl Watched {
    fn plan(&mut self, now_ms: i64) {
        let interval_ms = INTERVALS_MS.get(usize::from(self.class) - 1);
        let window_ms = interval_ms.map(|&interval_ms| interval_ms.max(ELASTIC_GAP_MS_MAX));
        self.window = window_ms.map(|window_ms| (now_ms, now_ms + window_ms));
    }
}
