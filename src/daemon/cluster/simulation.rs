//! A cluster in virtual time: engines with lease, log and state, the leader's schedule and pool, and scanners. Engines and
//! scanners are killed and paused, engines are cut off from the database, messages are lost, repeated and late, clocks
//! differ and jump. The tables accept a transaction as the database does. One seed repeats a run exactly.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use super::lease::Lease;
use crate::archive::{Leader, Member};
use crate::daemon::scanners::pool::simulation::Random;
use crate::daemon::scanners::pool::tests::{outcome, request};
use crate::daemon::scanners::pool::{Greeting, Pool};
use crate::model::ServerKey;
use crate::model::server::Class;
use crate::scan::{MissReason, ScanOutcome, ScanRequest};
use crate::schedule::{Intervals, Schedule};

const SEEDS: u64 = 100;
const ENGINES: usize = 3;
const SCANNERS: [&str; 3] = ["eu", "us", "asia"];
const SERVERS: u32 = 40;
const STEP_MS: i64 = 100;
/// With failures, and then without: everything is scanned again.
const STEPS: i64 = 1_500;
const QUIET_STEPS: i64 = 1_000;
const INTERVAL_MS: i64 = 60_000;
const START_MS: i64 = 1_763_942_400_000;
/// How far clocks are apart; in some runs, they jump.
const SKEW_MS: u64 = 300;
const JUMP_MS: u64 = 20_000;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Event {
    /// `scan`: what a scanner has done, however often it says so.
    Answer {
        server: ServerKey,
        t_ms: i64,
        scan: String,
    },
    Miss {
        server: ServerKey,
        t_ms: i64,
    },
    Command(u64),
}

#[derive(Debug, PartialEq, Eq)]
struct Batch {
    epoch: u64,
    events: Vec<Event>,
}

/// What follows from the log alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    last_ms: i64,
    scanned_ms: BTreeMap<ServerKey, i64>,
    digest: u64,
}

impl State {
    fn of(log: &[Rc<Batch>]) -> State {
        let mut state = State::default();
        log.iter().flat_map(|batch| &batch.events).for_each(|event| state.apply(event));
        state
    }

    fn apply(&mut self, event: &Event) {
        if let Event::Answer { server, t_ms, .. } | Event::Miss { server, t_ms } = event {
            assert!(*t_ms >= self.last_ms, "time never goes back");
            self.last_ms = *t_ms;
            self.scanned_ms.insert(*server, *t_ms);
        }
        let mut hasher = DefaultHasher::new();
        (self.digest, event).hash(&mut hasher);
        self.digest = hasher.finish();
    }
}

/// The tables.
#[derive(Default)]
struct Tables {
    leader: Option<Leader>,
    /// By number, from 1.
    log: Vec<Rc<Batch>>,
}

impl Tables {
    /// Whether the engine leads from now on.
    fn take_over(&mut self, seen: Option<&Leader>, instance: u64) -> bool {
        if self.leader.as_ref().map(|it| (it.epoch, it.beat)) != seen.map(|it| (it.epoch, it.beat)) {
            return false;
        }
        let member = Member { engine: instance.to_string(), address: String::new(), instance };
        self.leader = Some(Leader { epoch: seen.map_or(1, |seen| seen.epoch + 1), beat: 0, member });
        true
    }

    /// As `SharedLog::append`: `None` if another engine has taken over.
    fn append(&mut self, seq: usize, batch: &Rc<Batch>) -> Option<()> {
        if let Some(found) = self.log.get(seq - 1) {
            return (found == batch).then_some(());
        }
        let leader = self.leader.as_mut().filter(|leader| leader.epoch == batch.epoch)?;
        assert_eq!(self.log.len() + 1, seq, "a leader has the whole log");
        leader.beat += 1;
        self.log.push(batch.clone());
        Some(())
    }
}

struct Engine {
    instance: u64,
    lease: Lease,
    /// What it has applied, but for what it has applied alone.
    log: Vec<Rc<Batch>>,
    state: State,
    /// While it believes that it leads.
    leading: Option<Leading>,
    acknowledged: Vec<u64>,
    /// Until when it does nothing.
    away_until_ms: i64,
    /// Until when it cannot reach the database.
    cut_off_until_ms: i64,
    /// Its monotonic clock, and how much its wall clock is ahead.
    clock_ms: i64,
    skew_ms: i64,
}

struct Leading {
    epoch: u64,
    schedule: Schedule,
    pool: Pool,
    /// Scans of the own scanner.
    own: Vec<ScanRequest>,
    /// Applied, and not yet in a batch.
    pending: Vec<Event>,
    /// A batch that is appended again: its answer was lost.
    unanswered: Option<Rc<Batch>>,
    /// Outcomes of scanners that are noted when they are in the log: after a number of batches, by name and session.
    handed_in: Vec<(usize, &'static str, u64, u64)>,
}

impl Engine {
    fn start(instance: u64, log: Vec<Rc<Batch>>, skew_ms: i64) -> Engine {
        Engine {
            instance,
            lease: Lease::default(),
            state: State::of(&log),
            log,
            leading: None,
            acknowledged: Vec::new(),
            away_until_ms: 0,
            cut_off_until_ms: 0,
            clock_ms: instance as i64,
            skew_ms,
        }
    }

    fn follow(&mut self, tables: &mut Tables, now_ms: i64, random: &mut Random) {
        let leader = tables.leader.clone();
        self.read(tables);
        let has_expired = self.lease.look(leader.as_ref(), self.clock_ms as u64);
        let leads_already = leader.as_ref().filter(|leader| leader.member.instance == self.instance);
        let epoch = match leads_already {
            Some(leader) => leader.epoch,
            None if has_expired => {
                let has_taken = tables.take_over(leader.as_ref(), self.instance);
                // The answer may be lost.
                if !has_taken || random.is(25) {
                    return;
                }
                leader.map_or(1, |leader| leader.epoch + 1)
            }
            None => return,
        };
        self.read(tables);
        let first_id = (now_ms as u64) << 20;
        let mut classes_ms = Intervals::default().classes_ms;
        classes_ms[0] = INTERVAL_MS;
        let mut schedule = Schedule::new(Intervals { classes_ms, ..Intervals::default() });
        schedule.number_scans_from(first_id);
        (0..SERVERS).for_each(|server| schedule.schedule_next(ServerKey(server), class(), now_ms));
        let mut pool = Pool::new("own", 2);
        pool.number_scans_from(self.clock_ms, first_id);
        self.leading = Some(Leading {
            epoch,
            schedule,
            pool,
            own: Vec::new(),
            pending: Vec::new(),
            unanswered: None,
            handed_in: Vec::new(),
        });
    }

    /// Applies what is new in the log.
    fn read(&mut self, tables: &Tables) {
        for batch in &tables.log[self.log.len()..] {
            batch.events.iter().for_each(|event| self.state.apply(event));
            self.log.push(batch.clone());
        }
    }

    fn lead(&mut self, now_ms: i64, scans: &mut u64, random: &mut Random) {
        let Some(leading) = &mut self.leading else { return };
        while let Some((server, scan)) = leading.schedule.pop_due(now_ms, |_| class(), |_| false) {
            let scan = ScanRequest { server, ..request(scan.id) };
            leading.own.extend(leading.pool.assign(self.clock_ms, scan));
        }
        leading.pool.tick(self.clock_ms);
        leading.own.extend(std::iter::from_fn(|| leading.pool.take_own()));
        let own = std::mem::take(&mut leading.own);
        for scan in own {
            match random.is(60) {
                true => {
                    let outcome = made(&scan, scans, random);
                    let judged =
                        self.leading.as_mut().and_then(|leading| leading.pool.judge(self.clock_ms, None, outcome));
                    judged.into_iter().for_each(|outcome| self.apply(&outcome, now_ms, now_ms));
                }
                false => self.leading.iter_mut().for_each(|leading| leading.own.push(scan.clone())),
            }
        }
    }

    /// As `EngineThread::apply_judged`.
    fn apply(&mut self, outcome: &ScanOutcome, t_ms: i64, now_ms: i64) {
        let Some(leading) = &mut self.leading else { return };
        let server = outcome.server;
        let is_ours = leading.schedule.complete(server, outcome.id).is_some();
        let is_taken = is_ours || leading.schedule.is_earlier(outcome.id) && outcome.result.is_ok();
        if !is_taken {
            return;
        }
        let t_ms = self.state.last_ms.max(t_ms.min(now_ms));
        leading.schedule.schedule_next(server, class(), t_ms);
        let event = match &outcome.result {
            Ok(snapshot) => Event::Answer { server, t_ms, scan: snapshot.map.to_string() },
            Err(miss) if miss.reason.is_local_fault() => return,
            Err(_) => Event::Miss { server, t_ms },
        };
        self.state.apply(&event);
        leading.pending.push(event);
    }

    /// Appends what it has applied.
    fn append(&mut self, tables: &mut Tables, random: &mut Random) {
        let Some(leading) = &mut self.leading else { return };
        let pending = &mut leading.pending;
        let batch = leading
            .unanswered
            .take()
            .unwrap_or_else(|| Rc::new(Batch { epoch: leading.epoch, events: std::mem::take(pending) }));
        let seq = self.log.len() + 1;
        // The request, or its answer, may be lost.
        let fate = random.below(20);
        match if fate == 0 { Some(()) } else { tables.append(seq, &batch) } {
            _ if fate <= 1 => leading.unanswered = Some(batch),
            Some(()) => {
                let commands = batch.events.iter().filter_map(|event| match event {
                    Event::Command(number) => Some(*number),
                    _ => None,
                });
                self.acknowledged.extend(commands);
                self.log.push(batch);
                for (_, name, session, number) in
                    leading.handed_in.extract_if(.., |(after, ..)| *after <= self.log.len())
                {
                    leading.pool.note_logged(name, session, number);
                }
            }
            // It starts again from its files, which have accepted batches only.
            None => (self.leading, self.lease, self.state) = (None, Lease::default(), State::of(&self.log)),
        }
    }

    /// As `Scanners::exchange`. `None`: it does not lead.
    fn exchange(&mut self, message: &Message, now_ms: i64) -> Option<Answer> {
        let &Message { name, session, space, batch_known, oldest, first, .. } = message;
        let clock_ms = self.clock_ms;
        let greeting = Greeting { name, region: name, session, space, batch_known };
        let leading = self.leading.as_mut()?;
        let exchange = leading.pool.begin(clock_ms, &greeting).ok()?;
        let number = leading.pool.receive(name, session, oldest, first..first + message.outcomes.len() as u64);
        // What is applied now is in the next batch that is made.
        let after = self.log.len() + 1 + usize::from(leading.unanswered.is_some());
        leading.handed_in.push((after, name, session, number.unwrap_or_default()));
        for (outcome, age_ms) in message.outcomes.iter().filter(|_| number.is_some()) {
            let leading = self.leading.as_mut()?;
            let Some(outcome) = leading.pool.judge(clock_ms, Some(name), outcome.clone()) else { continue };
            let (t_ms, since_ms) = (now_ms - age_ms, self.state.scanned_ms.get(&outcome.server));
            let since_ms = since_ms.copied().unwrap_or(i64::MIN);
            if !leading.schedule.is_late(outcome.id, t_ms, since_ms, self.state.last_ms) {
                self.apply(&outcome, t_ms, now_ms);
            }
        }
        let pool = &mut self.leading.as_mut()?.pool;
        let (batch, scans) = pool.take(name, session, exchange);
        pool.end(clock_ms, name, session);
        let (received, logged) = pool.progress(name, session);
        Some(Answer { batch, scans, received, logged })
    }
}

/// A request of a scanner.
#[derive(Clone)]
struct Message {
    name: &'static str,
    session: u64,
    space: usize,
    batch_known: u64,
    oldest: u64,
    first: u64,
    /// With their ages.
    outcomes: Vec<(ScanOutcome, i64)>,
}

struct Answer {
    batch: u64,
    scans: Vec<ScanRequest>,
    received: u64,
    logged: u64,
}

#[derive(Default)]
struct Scanner {
    session: u64,
    batch_known: u64,
    scans: Vec<ScanRequest>,
    /// What is not in the log yet, with the times at which they were made; the number of the first, and how many have
    /// arrived.
    waiting: Vec<(ScanOutcome, i64)>,
    oldest: u64,
    arrived: usize,
    /// The engine that it asks.
    engine: usize,
    away_until_ms: i64,
}

impl Scanner {
    fn scan(&mut self, now_ms: i64, scans: &mut u64, random: &mut Random) {
        for scan in std::mem::take(&mut self.scans) {
            match random.is(60) {
                true => self.waiting.push((made(&scan, scans, random), now_ms)),
                false => self.scans.push(scan),
            }
        }
    }

    fn message(&self, name: &'static str, now_ms: i64) -> Message {
        let left = self.waiting.iter().skip(self.arrived);
        let (oldest, first) = (self.oldest, self.oldest + self.arrived as u64);
        let outcomes = left.map(|(outcome, made_ms)| (outcome.clone(), now_ms - made_ms)).collect();
        Message { name, session: self.session, space: 8, batch_known: self.batch_known, oldest, first, outcomes }
    }

    /// As `scanners::process`. Returns the outcomes that it need not keep.
    fn take(&mut self, answer: Answer) -> Vec<ScanOutcome> {
        self.batch_known = answer.batch;
        self.scans.extend(answer.scans);
        self.arrived = self.waiting.len().min(answer.received.saturating_sub(self.oldest) as usize);
        let logged = self.arrived.min(answer.logged.saturating_sub(self.oldest) as usize);
        (self.oldest, self.arrived) = (self.oldest + logged as u64, self.arrived - logged);
        self.waiting.drain(..logged).map(|(outcome, _)| outcome).collect()
    }
}

fn class() -> Class {
    Class::new(1).expect("a class")
}

/// What comes of a scan.
fn made(scan: &ScanRequest, scans: &mut u64, random: &mut Random) -> ScanOutcome {
    *scans += 1;
    let result = match random.below(100) {
        0..=1 => Err(MissReason::SendFailed),
        2..=9 => Err(MissReason::Timeout),
        _ => Ok(10 + random.below(90) as u32),
    };
    let mut outcome = ScanOutcome { server: scan.server, ..outcome(scan.id, result) };
    if let Ok(snapshot) = &mut outcome.result {
        snapshot.map = scans.to_string();
    }
    outcome
}

fn is_of(outcome: &ScanOutcome, scan: &str) -> bool {
    outcome.result.as_ref().is_ok_and(|snapshot| snapshot.map.as_str() == scan)
}

/// What came of a run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    epochs: u64,
    /// Scans that were made, and answers that are in the log.
    scans: u64,
    answers: u64,
    /// Answers to scans of an earlier leader.
    earlier: u64,
    commands: u64,
}

fn run(seed: u64) -> Counts {
    let mut random = Random(seed);
    let has_jumps = seed % 5 == 4;
    let mut tables = Tables::default();
    let skew = |random: &mut Random| {
        let jump_ms = if has_jumps && random.is(30) { random.below(JUMP_MS) } else { 0 };
        (random.below(2 * SKEW_MS) + jump_ms) as i64 - SKEW_MS as i64
    };
    let mut engines: Vec<Engine> = Vec::new();
    for instance in 1..=ENGINES as u64 {
        engines.push(Engine::start(instance, Vec::new(), skew(&mut random)));
    }
    let mut scanners: Vec<Scanner> =
        (1..=SCANNERS.len() as u64).map(|session| Scanner { session, ..Scanner::default() }).collect();
    let (mut instances, mut sessions, mut scans, mut commands) = (ENGINES as u64, SCANNERS.len() as u64, 0, 0);
    let mut acknowledged = Vec::new();
    // By time and engine: messages that arrive late.
    let mut late: Vec<(i64, usize, Message)> = Vec::new();
    let mut counts = Counts::default();
    for step in 1..=STEPS + QUIET_STEPS {
        let now_ms = START_MS + step * STEP_MS;
        let is_quiet = step > STEPS;
        for engine in &mut engines {
            // Clocks run on while a process is paused.
            engine.clock_ms += STEP_MS - 2 + random.below(5) as i64;
            match random.below(700) {
                _ if is_quiet => (engine.away_until_ms, engine.cut_off_until_ms) = (0, 0),
                0 => engine.away_until_ms = now_ms + random.below(20_000) as i64,
                1 => engine.cut_off_until_ms = now_ms + random.below(20_000) as i64,
                2 => {
                    // Killed: its files are what it has applied.
                    instances += 1;
                    acknowledged.append(&mut engine.acknowledged);
                    let away_until_ms = now_ms + random.below(5_000) as i64;
                    let log = std::mem::take(&mut engine.log);
                    *engine = Engine { away_until_ms, ..Engine::start(instances, log, engine.skew_ms) };
                }
                3 => engine.skew_ms = skew(&mut random),
                _ => {}
            }
            if now_ms < engine.away_until_ms {
                continue;
            }
            if engine.leading.is_some() && random.is(3) {
                commands += 1;
                engine.leading.iter_mut().for_each(|leading| leading.pending.push(Event::Command(commands)));
                engine.state.apply(&Event::Command(commands));
            }
            let wall_ms = now_ms + engine.skew_ms;
            engine.lead(wall_ms, &mut scans, &mut random);
            if now_ms < engine.cut_off_until_ms {
                engine.lease = Lease::default();
                continue;
            }
            match engine.leading.is_some() {
                true => engine.append(&mut tables, &mut random),
                false => engine.follow(&mut tables, wall_ms, &mut random),
            }
        }
        for (scanner, name) in scanners.iter_mut().zip(SCANNERS) {
            match random.below(800) {
                _ if is_quiet => scanner.away_until_ms = 0,
                0 => scanner.away_until_ms = now_ms + random.below(20_000) as i64,
                1 => {
                    sessions += 1;
                    let away_until_ms = now_ms + random.below(5_000) as i64;
                    *scanner = Scanner { session: sessions, away_until_ms, ..Scanner::default() };
                }
                _ => {}
            }
            if now_ms < scanner.away_until_ms {
                continue;
            }
            scanner.scan(now_ms, &mut scans, &mut random);
            let message = scanner.message(name, now_ms);
            let at = scanner.engine;
            let engine = &mut engines[at];
            let fate = random.below(100);
            if fate < 8 {
                late.push((now_ms + random.below(1_000) as i64, at, message.clone()));
            }
            // Lost on the way there, or it only arrives late.
            if fate < 4 || now_ms < engine.away_until_ms {
                scanner.engine = (at + usize::from(random.is(50))) % ENGINES;
                continue;
            }
            match engine.exchange(&message, now_ms + engine.skew_ms) {
                // The answer is lost.
                _ if fate > 95 => scanner.engine = (at + usize::from(random.is(50))) % ENGINES,
                None => scanner.engine = (at + 1) % ENGINES,
                Some(answer) => {
                    let logged = scanner.take(answer);
                    let kept = |event: &Event| match event {
                        Event::Answer { scan, .. } => logged.iter().any(|it| is_of(it, scan)),
                        _ => false,
                    };
                    let leading = engine.leading.as_ref().expect("it has answered");
                    let unanswered = leading.unanswered.iter().filter(|batch| tables.log.last() != Some(batch));
                    let not_logged = unanswered.flat_map(|batch| &batch.events).chain(&leading.pending);
                    assert!(
                        !not_logged.into_iter().any(kept),
                        "seed {seed}: an outcome is dropped that is not in the log"
                    );
                }
            }
        }
        let arrived: Vec<_> = late.extract_if(.., |(at_ms, ..)| *at_ms <= now_ms).collect();
        for (_, at, message) in arrived {
            let engine = &mut engines[at];
            if now_ms >= engine.away_until_ms {
                engine.exchange(&message, now_ms + engine.skew_ms);
            }
        }
    }
    counts.scans = scans;
    let replayed = State::of(&tables.log);
    for engine in &mut engines {
        acknowledged.append(&mut engine.acknowledged);
        counts.earlier += engine.leading.as_ref().map_or(0, |leading| leading.pool.counters()[3].1);
        assert!(tables.log.starts_with(&engine.log), "seed {seed}: an engine has what the log does not have");
        if engine.leading.is_none() {
            engine.read(&tables);
            assert_eq!(engine.state, replayed, "seed {seed}: a follower's state is not that of the log");
        }
    }
    assert!(
        tables.log.is_sorted_by_key(|batch| batch.epoch),
        "seed {seed}: an earlier leader has written after a later one"
    );
    let (mut written, mut scans) = (BTreeSet::new(), BTreeSet::new());
    for event in tables.log.iter().flat_map(|batch| &batch.events) {
        match event {
            Event::Command(number) => assert!(written.insert(*number), "seed {seed}: command {number} is there twice"),
            Event::Answer { scan, .. } => {
                counts.answers += 1;
                // Without a common clock, an answer that is handed in again looks like another one.
                assert!(scans.insert(scan) || has_jumps, "seed {seed}: scan {scan} is there twice");
            }
            Event::Miss { .. } => {}
        }
    }
    let lost: Vec<&u64> = acknowledged.iter().filter(|number| !written.contains(*number)).collect();
    assert!(lost.is_empty(), "seed {seed}: acknowledged commands are lost: {lost:?}");
    let quiet_ms = START_MS + (STEPS * STEP_MS);
    for server in (0..SERVERS).map(ServerKey) {
        let scanned_ms = replayed.scanned_ms.get(&server).copied().unwrap_or_default();
        assert!(scanned_ms > quiet_ms, "seed {seed}: {server:?} was not scanned after the failures");
    }
    counts.epochs = tables.leader.map_or(0, |leader| leader.epoch);
    counts.commands = acknowledged.len() as u64;
    counts
}

#[test]
fn nothing_that_was_acknowledged_is_lost_and_one_engine_leads() {
    let seeds = std::env::var("CLQD_SEEDS").map_or(SEEDS, |seeds| seeds.parse().expect("a number"));
    let mut all = Counts::default();
    for seed in 0..seeds {
        let Counts { epochs, scans, answers, earlier, commands } = run(seed);
        assert!(answers > u64::from(SERVERS), "seed {seed}: {answers} answers");
        all.epochs += epochs;
        all.scans += scans;
        all.answers += answers;
        all.earlier += earlier;
        all.commands += commands;
    }
    assert!(all.epochs > 2 * seeds && all.earlier > 0 && all.commands > seeds, "failures happen: {all:?}");
    assert_eq!(run(7), run(7), "a seed repeats a run");
    println!("{seeds} seeds: {all:?}");
}
