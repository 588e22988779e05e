//! Runs the daemon without its sockets, threads and clock, in virtual time: a world of
//! thousands of game servers, a network that loses, duplicates, reorders, corrupts and
//! spoofs, real packets of real exchanges, the engine, and the real store, for hours of
//! play over midnight on Monday. The clock stops and jumps, and the daemon is killed at
//! any time, many times while the week is closed.
//!
//! Everything that was durably committed is kept as a scan log. At the end the complete
//! state must equal what the oracle computes from that log, and a replay of the log must
//! produce the same bytes. Pacing, sockets and the archive are tested elsewhere.
//!
//! The seed determines the run: `CLQD_FLEET_SEED` (1). `CLQD_FLEET_SERVERS` (3000) and
//! `CLQD_FLEET_MINUTES` (120) set its size. A failing run prints how to repeat it.

mod network;
mod virtual_scanner;
mod watch;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use self::network::VirtualNetwork;
use self::virtual_scanner::{FinishedScan, VirtualScanner};
use self::watch::Watch;
use crate::oracle::compare::{Archived, Segments, check_state, check_week, open};
use crate::oracle::{ClassStep, LineKind, Oracle, Settings};
use clqd::board::window::WindowTypes;
use clqd::cli::export;
use clqd::cli::replay::Replay;
use clqd::engine::{EngineSettings, Event, Outcome, RescanTarget};
use clqd::fleet::faults::SPOOFED_NAME;
use clqd::fleet::rng::{RngExt, SplitMix64};
use clqd::fleet::world::{self, World};
use clqd::model::calendar::{Calendar, MINUTE_MS, week_label};
use clqd::model::commit::WeekPhase;
use clqd::model::{Completeness, ServerKey, ServerUrl, WeekKey};
use clqd::scan_log::{self, LossyReader};
use clqd::state::State;

const TICK_MS: i64 = 1_000;
const ZONES: [&str; 3] = ["UTC", "Europe/Amsterdam", "Asia/Kathmandu"];

#[test]
fn simulated_fleet_equals_oracle() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|e| panic!("{name}={text}: {e}")))
    };
    let size = Size {
        seed: number("CLQD_FLEET_SEED", 1),
        servers: number("CLQD_FLEET_SERVERS", 3_000) as u32,
        minutes: number("CLQD_FLEET_MINUTES", 120) as i64,
    };
    eprintln!("{size}");
    let _guard = PrintOnPanic(size);
    let mut run = Run::new(size);
    run.run_to_end();
    run.finish().check();
}

#[derive(Clone, Copy)]
struct Size {
    seed: u64,
    servers: u32,
    minutes: i64,
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Size { seed, servers, minutes } = self;
        write!(
            f,
            "CLQD_FLEET_SEED={seed} CLQD_FLEET_SERVERS={servers} CLQD_FLEET_MINUTES={minutes} \
             cargo test --test fleet whole_fleet"
        )
    }
}

struct PrintOnPanic(Size);

impl Drop for PrintOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to repeat it: {}", self.0);
        }
    }
}

/// The daemon's clock as a function of real time: it stops, it jumps, and never runs
/// backwards (`clqd::clock`).
struct VirtualClock {
    /// Start in real time, the clock's time then, and whether the clock runs.
    pieces: Vec<(i64, i64, bool)>,
}

impl VirtualClock {
    fn new(start_ms: i64, real_ms: i64, rng: &mut SplitMix64) -> VirtualClock {
        let mut pieces = vec![(start_ms, start_ms, true)];
        let jumps_ms = [rng.below(30 * 60_000), rng.below(100 * 60_000), rng.below(700_000), 120_000];
        let mut events: Vec<(i64, Option<i64>)> = jumps_ms.into_iter().map(|jump| (0, Some(jump as i64))).collect();
        events.extend([(0, None); 4]);
        for event in &mut events {
            event.0 = start_ms + rng.below(real_ms as usize) as i64;
        }
        events.sort_unstable();
        for (at_ms, jump_ms) in events {
            let (from_ms, shown_ms, is_running) = pieces[pieces.len() - 1];
            let at_ms = at_ms.max(from_ms + 1);
            let now_ms = if is_running { shown_ms + at_ms - from_ms } else { shown_ms };
            match jump_ms {
                Some(jump_ms) => pieces.push((at_ms, now_ms + jump_ms, true)),
                None => {
                    pieces.push((at_ms, now_ms, false));
                    pieces.push((at_ms + 1_000 + rng.below(90_000) as i64, now_ms, true));
                }
            }
        }
        VirtualClock { pieces }
    }

    fn at(&self, real_ms: i64) -> i64 {
        let after = self.pieces.partition_point(|&(from_ms, ..)| from_ms <= real_ms);
        let (from_ms, shown_ms, is_running) = self.pieces[after - 1];
        if is_running { shown_ms + real_ms - from_ms } else { shown_ms }
    }

    /// The first real time at which the clock shows `t_ms` or more.
    fn real_of(&self, t_ms: i64) -> i64 {
        let after = self.pieces.partition_point(|&(_, shown_ms, _)| shown_ms < t_ms);
        let Some(&(from_ms, shown_ms, is_running)) = after.checked_sub(1).map(|at| &self.pieces[at]) else {
            return self.pieces[0].0;
        };
        let next_ms = self.pieces.get(after).map_or(i64::MAX, |&(from_ms, ..)| from_ms);
        if is_running { next_ms.min(from_ms + t_ms - shown_ms) } else { next_ms }
    }
}

/// Events of a run, to check that the run covered them.
#[derive(Debug, Default)]
struct Seen {
    crashes: u64,
    crashes_while_closing: u64,
    crashes_before_first_scan: u64,
    lost_outcomes: u64,
    late_outcomes: u64,
    resends: u64,
    ignored: u64,
}

/// One run: the world, the network, and several processes of the daemon.
struct Run {
    size: Size,
    rng: SplitMix64,
    calendar: Calendar,
    settings: EngineSettings,
    dir: tempfile::TempDir,
    network: VirtualNetwork,
    clock: VirtualClock,
    now_ms: i64,
    /// `None`: no process is running.
    state: Option<State>,
    scanner: VirtualScanner,
    watch: Watch,
    /// Number of processes so far.
    instance: u32,
    /// Time of the last outcome applied.
    applied_ms: i64,
    next_tick_ms: i64,
    next_commit_ms: i64,
    next_add_ms: i64,
    events_to_crash: usize,
    closing: bool,
    /// URLs of added servers, in order of key.
    known: Vec<String>,
    committed: Logged,
    pending: Logged,
    /// Exports of closed weeks at the time when they were first closed.
    closed: BTreeMap<WeekKey, Vec<u8>>,
    seen: Seen,
}

/// Outcomes as a scan log, and the resulting class of each.
#[derive(Default)]
struct Logged {
    log: Vec<u8>,
    steps: Vec<(ServerKey, ClassStep)>,
}

impl Run {
    fn new(size: Size) -> Run {
        let mut rng = SplitMix64::from_parts(&[size.seed, 0xF1EE7]);
        let calendar = Calendar::new(ZONES[(size.seed % 3) as usize]).expect("a zone");
        let real_ms = size.minutes * MINUTE_MS;
        let monday_ms = calendar.week_start_ms(WeekKey(2_960 + (size.seed % 50) as u32));
        let start_ms = monday_ms - real_ms / 2 - rng.below(20 * 60_000) as i64;
        let world = World::new(world::WorldSettings {
            servers: size.servers,
            seed: size.seed,
            start_ms,
            activity: 1.5,
            truth: false,
            ..world::WorldSettings::default()
        });
        Run {
            calendar,
            settings: EngineSettings {
                windows: WindowTypes::new(calendar, []).expect("weeks alone fit"),
                archive_enabled: true,
                keep_weeks: usize::MAX,
                outbox_entries_max: usize::MAX,
                week_steps_per_tick: (size.servers as usize).max(40),
                ..EngineSettings::default()
            },
            dir: tempfile::tempdir().expect("a temporary directory"),
            network: VirtualNetwork::new(world),
            clock: VirtualClock::new(start_ms, real_ms, &mut rng),
            now_ms: start_ms,
            state: None,
            scanner: VirtualScanner::new(0),
            watch: Watch::default(),
            instance: 0,
            applied_ms: 0,
            next_tick_ms: start_ms,
            next_commit_ms: start_ms,
            next_add_ms: start_ms,
            events_to_crash: 0,
            closing: false,
            known: Vec::new(),
            committed: Logged::default(),
            pending: Logged::default(),
            closed: BTreeMap::new(),
            seen: Seen::default(),
            rng,
            size,
        }
    }

    fn state(&mut self) -> &mut State {
        self.state.as_mut().expect("a process is running")
    }

    fn run_to_end(&mut self) {
        let end_ms = self.now_ms + self.size.minutes * MINUTE_MS;
        while self.now_ms < end_ms || self.closing {
            assert!(self.now_ms < end_ms + 60 * MINUTE_MS, "the week is not closed");
            if self.state.is_none() {
                self.start_instance();
            }
            self.step();
        }
        if self.state.is_none() {
            self.start_instance();
        }
        self.commit();
    }

    fn start_instance(&mut self) {
        self.instance += 1;
        let state = open(self.dir.path(), &self.settings);
        assert!(state.engine.model().now_ms() <= self.clock.at(self.now_ms), "time ran backwards");
        self.watch.restart(&state.engine);
        self.scanner = VirtualScanner::new(self.instance);
        self.state = Some(state);
        self.applied_ms = 0;
        self.events_to_crash = 1 + self.rng.exponential(4_000.0 * f64::from(self.size.servers) / 3_000.0) as usize;
    }

    /// Advances to the next time at which something is due, and handles it.
    fn step(&mut self) {
        let due = self.state().engine.next_due_ms().map(|t_ms| self.clock.real_of(t_ms));
        let next_times = [due, self.network.next_ms(), self.scanner.next_ms(), Some(self.next_tick_ms)];
        let next_ms = next_times.into_iter().flatten().min().expect("a tick is always due");
        self.now_ms = self.now_ms.max(next_ms);
        let t_ms = self.clock.at(self.now_ms);
        while let Some(probe) = self.state().engine.poll_probe(t_ms) {
            self.watch.probed(&probe, self.now_ms, t_ms);
            self.scanner.begin(&mut self.network, self.now_ms, t_ms, &probe);
        }
        while let Some(delivery) = self.network.receive(self.now_ms) {
            if let Some(ended) = self.scanner.on_datagram(&mut self.network, self.now_ms, t_ms, &delivery) {
                self.apply(ended);
                if self.crashes() {
                    return;
                }
            }
        }
        while let Some(ended) = self.scanner.on_time(&mut self.network, self.now_ms, t_ms) {
            self.apply(ended);
            if self.crashes() {
                return;
            }
        }
        if self.now_ms >= self.next_commit_ms {
            self.commit();
            // Longer than the daemon's interval, because each commit is written to a real disk.
            self.next_commit_ms = self.now_ms + 500 + self.rng.exponential(30_000.0) as i64;
        }
        if self.now_ms >= self.next_tick_ms {
            self.tick(t_ms);
        }
    }

    fn tick(&mut self, t_ms: i64) {
        self.next_tick_ms = self.now_ms + TICK_MS;
        self.state().handle(Event::Tick { now_ms: t_ms }).expect("a store");
        self.state().sweep().expect("a store");
        let status = self.state().engine.model().status();
        self.closing = status.weeks.iter().any(|week| matches!(week.phase, WeekPhase::Closing | WeekPhase::Ranking))
            || status.weeks.iter().filter(|week| week.phase == WeekPhase::Running).count() > 1;
        if self.closing && self.rng.bool(0.15) {
            if self.rng.bool(0.7) {
                self.commit();
            }
            self.seen.crashes_while_closing += 1;
            return self.crash();
        }
        if self.rng.bool(0.02) {
            self.watch.check_none_overdue(self.now_ms, t_ms);
        }
        if self.now_ms >= self.next_add_ms {
            self.add_servers(t_ms);
        } else if self.rng.bool(0.3) {
            self.rescan(t_ms);
        }
    }

    fn apply(&mut self, ended: FinishedScan) {
        let url = self.state().engine.model().url_of(ended.server).expect("a known server").clone();
        self.check_credible(&ended, &url);
        self.seen.late_outcomes += u64::from(ended.outcome.t_ms() < self.applied_ms);
        let outcome = ended.outcome.clamped_to(self.applied_ms, i64::MAX);
        self.applied_ms = outcome.t_ms();
        let used_before = self.state().engine.model().outcomes_applied();
        let (server, id, sent_ms) = (ended.server, ended.id, Some(ended.sent_ms));
        self.state().handle(Event::Scanned { server, id, sent_ms, outcome: outcome.clone() }).expect("a store");
        let notice = self.state().engine.poll_notice().expect("each scan gives a notice");
        assert!(notice.server == server && self.state().engine.poll_notice().is_none());
        let summary = self.state().engine.model().public_server_of(server).expect("a known server");
        if self.state().engine.model().outcomes_applied() > used_before {
            scan_log::write(&mut self.pending.log, &url, &outcome);
            let step = ClassStep { t: outcome.t_ms(), missed: summary.missed, class: summary.class };
            self.pending.steps.push((server, step));
        }
        let now_ms = self.state().engine.model().now_ms();
        self.watch.finished(server, id, summary.class, now_ms);
        self.events_to_crash -= 1;
    }

    /// A full list must be one that this server sent recently, whatever the network and
    /// the attackers did.
    fn check_credible(&self, ended: &FinishedScan, url: &ServerUrl) {
        let Outcome::Snapshot(snapshot) = &ended.outcome else { return };
        assert!(snapshot.players.iter().all(|p| !p.name.contains(SPOOFED_NAME)), "{url}: spoofed {snapshot:?}");
        if snapshot.completeness == Completeness::Full {
            let list: network::List =
                snapshot.players.iter().map(|p| (p.name.to_string(), p.points.unwrap_or(0))).collect();
            assert!(
                self.network.sent_lists(ended.address).any(|sent| *sent == list),
                "{url} did not send {snapshot:?}"
            );
        }
    }

    fn add_servers(&mut self, t_ms: i64) {
        self.next_add_ms = self.now_ms + self.rng.below(60_000) as i64;
        let from = self.known.len() as u32;
        // All are known after a quarter of the time.
        let batch = 1 + self.rng.below((self.size.servers * 4 / self.size.minutes as u32).max(1) as usize) as u32;
        let urls: Vec<String> =
            (from..self.size.servers.min(from + batch)).map(|server| self.network.url(server)).collect();
        if urls.is_empty() {
            self.next_add_ms = i64::MAX;
            return;
        }
        let mut keys = Vec::new();
        for url in &urls {
            let url = ServerUrl::parse(url).expect("a URL");
            keys.push(self.state().engine.add_server(url, Vec::new(), t_ms).expect("capacity").0);
        }
        if self.rng.bool(0.1) {
            return self.crash(); // no client has an answer: they are added again
        }
        self.commit();
        self.known.extend(urls);
        for key in keys {
            self.watch.requested(key, t_ms);
        }
        if self.rng.bool(0.1) {
            self.seen.crashes_before_first_scan += 1;
            self.crash();
        }
    }

    /// An admin requests a scan: mostly of a server that is down, so that it passes through
    /// all classes.
    fn rescan(&mut self, t_ms: i64) {
        if self.known.is_empty() {
            return;
        }
        let off = (0..self.known.len() as u32).filter(|&server| self.network.is_down(server, self.now_ms));
        let server = match off.take(2).collect::<Vec<_>>() {
            off if off.is_empty() || self.rng.bool(0.2) => self.rng.below(self.known.len()) as u32,
            off => off[self.rng.below(off.len())],
        };
        let url = ServerUrl::parse(&self.known[server as usize]).expect("a URL");
        let keys = self.state().engine.rescan(&RescanTarget::Url(url), t_ms).expect("a known server");
        for key in keys {
            self.watch.requested(key, t_ms);
        }
    }

    fn crashes(&mut self) -> bool {
        if self.events_to_crash > 0 {
            return false;
        }
        if self.rng.bool(0.3) {
            self.commit();
        }
        self.crash();
        true
    }

    fn commit(&mut self) {
        let committed = self.state().commit().expect("a store");
        assert!(committed || self.pending.steps.is_empty());
        self.committed.log.append(&mut self.pending.log);
        self.committed.steps.append(&mut self.pending.steps);
        let status = self.state().engine.model().status();
        for week in status.weeks.iter().filter(|week| week.phase == WeekPhase::Closed) {
            let key = clqd::model::calendar::parse_week_label(&week.week).expect("a label");
            if !self.closed.contains_key(&key) {
                let out = export_of(self.state(), key);
                self.closed.insert(key, out);
            }
        }
    }

    /// Ends the process: what was not committed is lost. The world continues.
    fn crash(&mut self) {
        drop(self.state.take());
        self.seen.crashes += 1;
        self.seen.lost_outcomes += self.pending.steps.len() as u64;
        self.seen.resends += self.scanner.resends;
        self.seen.ignored += self.scanner.ignored;
        self.pending = Logged::default();
        let down_ms = if self.rng.bool(0.05) { 15 * 60_000 } else { 5_000 };
        self.now_ms += self.rng.below(down_ms) as i64;
        self.next_tick_ms = self.now_ms;
    }

    fn finish(mut self) -> Finished {
        self.seen.resends += self.scanner.resends;
        self.seen.ignored += self.scanner.ignored;
        let log = String::from_utf8(std::mem::take(&mut self.committed.log)).expect("JSON");
        let mut oracle = Oracle::new(&log, Settings { calendar: self.calendar, ..Settings::default() });
        oracle.order_servers(self.known.clone());
        Finished { run: self, log, oracle }
    }
}

fn export_of(state: &State, week: WeekKey) -> Vec<u8> {
    let mut out = Vec::new();
    export::write(state, &week_label(week), &mut out).expect("an export");
    out
}

/// The end of a run, and what the oracle computes from its log.
struct Finished {
    run: Run,
    log: String,
    oracle: Oracle,
}

impl Finished {
    fn check(mut self) {
        self.check_coverage();
        self.check_classes();
        let of = self.run.size.to_string();
        let mut segments = Segments::default();
        let mut exports = Vec::new();
        for week in self.oracle.weeks() {
            let out = export_of(self.run.state(), WeekKey(week));
            let text = std::str::from_utf8(&out).expect("UTF-8");
            segments.add(check_week(&self.oracle, week, text, &format!("{of}, week {}", week_label(WeekKey(week)))));
            exports.push((WeekKey(week), out));
        }
        segments.assert_rounded_half_up();
        check_state(&self.oracle, &Archived::read(self.run.state()), &of);
        for (week, closed) in std::mem::take(&mut self.run.closed) {
            let now = export_of(self.run.state(), week);
            assert!(now == closed, "{of}: closed week {} has changed", week_label(week));
        }
        self.check_replay(&exports);
        eprintln!("{} outcomes, {} segments, {:?}", self.oracle.lines.len(), segments.all, self.run.seen);
    }

    /// Live and replayed results are the same bit for bit.
    fn check_replay(&self, exports: &[(WeekKey, Vec<u8>)]) {
        let path: PathBuf = self.run.dir.path().join("replayed");
        let log = self.run.dir.path().join("log.jsonl");
        std::fs::write(&log, &self.log).expect("a log");
        let mut state = open(&path, &self.run.settings);
        let mut replay = Replay::new(&mut state, 1 << 30);
        let mut events = LossyReader::new(scan_log::open(&log).expect("a log"));
        events.try_for_each(|event| replay.apply(event?)).expect("a valid log");
        let done = replay.summary();
        replay.finish().expect("a store");
        assert_eq!((done.scans, done.skipped), (self.oracle.lines.len() as u64, 0));
        for (week, live) in exports {
            let replayed = export_of(&state, *week);
            assert!(replayed == *live, "week {}: the replay differs from the run", week_label(*week));
        }
    }

    fn check_classes(&self) {
        let mut histories: HashMap<&str, std::vec::IntoIter<ClassStep>> = HashMap::new();
        for (server, got) in &self.run.committed.steps {
            let url = self.run.known[server.0 as usize - 1].as_str();
            let history = histories.entry(url).or_insert_with(|| self.oracle.class_history(url).into_iter());
            assert_eq!(history.next(), Some(*got), "{url}: missed and class");
        }
        assert!(histories.values_mut().all(|rest| rest.next().is_none()));
    }

    fn check_coverage(&self) {
        let Finished { run, oracle, .. } = self;
        let mut count: BTreeMap<&str, u64> = BTreeMap::new();
        for line in &oracle.lines {
            let kind = match line.kind {
                LineKind::Miss => "misses",
                LineKind::Partial { .. } => "partials",
                LineKind::Full { .. } => "snapshots",
            };
            *count.entry(kind).or_default() += 1;
        }
        for (_, step) in &run.committed.steps {
            let class = ["", "class 1", "class 2", "class 3", "class 4", "class 5", "class 6", "class 7"];
            *count.entry(class[usize::from(step.class)]).or_default() += 1;
        }
        let VirtualNetwork { lost, duplicated, spoofed, corrupted, .. } = run.network;
        let Seen { crashes, crashes_while_closing, crashes_before_first_scan, lost_outcomes, .. } = run.seen;
        count.extend([
            ("probes", run.watch.probes),
            ("datagrams lost", lost),
            ("datagrams duplicated", duplicated),
            ("spoofed replies", spoofed),
            ("corrupted replies", corrupted),
            ("datagrams ignored", run.seen.ignored),
            ("resends", run.seen.resends),
            ("outcomes out of order", run.seen.late_outcomes),
            ("crashes", crashes),
            ("crashes while closing", crashes_while_closing),
            ("crashes before the first scan", crashes_before_first_scan),
            ("outcomes lost in crashes", lost_outcomes),
            ("rounds", oracle.rounds.len() as u64),
            ("players", oracle.players.len() as u64),
            ("weeks", oracle.weeks().len() as u64),
            ("closed weeks", run.closed.len() as u64),
        ]);
        eprintln!("{count:#?}");
        assert_eq!(run.known.len(), run.size.servers as usize, "all servers were added");
        let scanned = self.oracle.lines.iter().map(|line| &line.server).collect::<std::collections::HashSet<_>>();
        assert_eq!(scanned.len(), run.known.len(), "every server that was added was scanned");
        if run.size.servers >= 1_000 && run.size.minutes >= 120 {
            assert!(
                count.values().all(|&n| n > 0) && count.len() >= 24,
                "the run does not cover everything: {count:#?}"
            );
        }
    }
}
