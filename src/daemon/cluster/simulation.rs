//! Engines and their log in virtual time: the lease, taking over, fencing and lost answers against a model of the tables
//! that accepts a transaction as the database does. One seed repeats a run exactly.

use super::lease::Lease;
use crate::archive::{Leader, Member};

const SEEDS: u64 = 2_000;
const ENGINES: usize = 3;
const STEP_MS: u64 = 100;
const STEPS: u64 = 1_500;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A batch: the epoch of its writer, and what is in it.
type Batch = (u64, u64);

/// The tables.
#[derive(Default)]
struct Tables {
    leader: Option<Leader>,
    /// By number, from 1.
    log: Vec<Batch>,
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
    fn append(&mut self, epoch: u64, seq: u64, batch: Batch) -> Option<()> {
        if let Some(found) = self.log.get(seq as usize - 1) {
            return (*found == batch).then_some(());
        }
        let leader = self.leader.as_mut().filter(|leader| leader.epoch == epoch)?;
        assert_eq!(self.log.len() as u64 + 1, seq, "a leader has the whole log");
        leader.beat += 1;
        self.log.push(batch);
        Some(())
    }
}

struct Engine {
    instance: u64,
    lease: Lease,
    /// What it has applied, but for what it has applied alone.
    applied: Vec<Batch>,
    /// Its epoch, while it believes that it leads.
    epoch: Option<u64>,
    /// A batch whose answer was lost: it is appended again.
    unanswered: Option<Batch>,
    acknowledged: Vec<(u64, Batch)>,
    /// Until when it does nothing: it is paused, or cannot reach the database.
    away_until_ms: u64,
    /// Its monotonic clock.
    clock_ms: u64,
}

impl Engine {
    fn start(instance: u64, applied: Vec<Batch>) -> Engine {
        let (lease, acknowledged) = (Lease::default(), Vec::new());
        Engine {
            instance,
            lease,
            applied,
            epoch: None,
            unanswered: None,
            acknowledged,
            away_until_ms: 0,
            clock_ms: instance,
        }
    }

    fn step(&mut self, tables: &mut Tables, random: &mut Random) {
        let Some(epoch) = self.epoch else { return self.follow(tables, random) };
        let batch = self.unanswered.take().unwrap_or((epoch, random.below(u64::MAX >> 33)));
        let seq = self.applied.len() as u64 + 1;
        // The request, or its answer, may be lost.
        let fate = random.below(20);
        if fate == 0 {
            self.unanswered = Some(batch);
            return;
        }
        match tables.append(epoch, seq, batch) {
            _ if fate == 1 => self.unanswered = Some(batch),
            Some(()) => {
                self.applied.push(batch);
                self.acknowledged.push((seq, batch));
            }
            // It starts again from its files, which have accepted batches only.
            None => (self.epoch, self.lease, self.unanswered) = (None, Lease::default(), None),
        }
    }

    fn follow(&mut self, tables: &mut Tables, random: &mut Random) {
        let leader = tables.leader.clone();
        self.applied.extend_from_slice(&tables.log[self.applied.len()..]);
        let has_expired = self.lease.look(leader.as_ref(), self.clock_ms);
        let leads_already = leader.as_ref().filter(|leader| leader.member.instance == self.instance);
        let epoch = match leads_already {
            Some(leader) => Some(leader.epoch),
            None if has_expired => {
                let has_taken = tables.take_over(leader.as_ref(), self.instance);
                // The answer may be lost.
                (has_taken && random.below(4) > 0).then(|| leader.map_or(1, |leader| leader.epoch + 1))
            }
            None => None,
        };
        self.epoch = epoch;
        self.applied.extend_from_slice(&tables.log[self.applied.len()..]);
    }
}

/// Returns the number of epochs, and of batches.
fn run(seed: u64) -> (u64, u64) {
    let mut random = Random(seed);
    let mut tables = Tables::default();
    let mut engines: Vec<Engine> = (1..=ENGINES as u64).map(|instance| Engine::start(instance, Vec::new())).collect();
    let mut instances = ENGINES as u64;
    let mut acknowledged = Vec::new();
    for step in 1..=STEPS {
        let now_ms = step * STEP_MS;
        for engine in &mut engines {
            // Clocks of machines differ, and run on while a process is paused.
            engine.clock_ms += STEP_MS - 2 + random.below(5);
            if now_ms < engine.away_until_ms {
                continue;
            }
            match random.below(600) {
                0 => engine.away_until_ms = now_ms + random.below(20_000),
                1 => {
                    // Killed: its files are what it has applied.
                    instances += 1;
                    acknowledged.append(&mut engine.acknowledged);
                    let away_until_ms = now_ms + random.below(5_000);
                    *engine = Engine { away_until_ms, ..Engine::start(instances, engine.applied.clone()) };
                }
                _ => engine.step(&mut tables, &mut random),
            }
        }
    }
    // Everybody is there again.
    engines.iter_mut().for_each(|engine| engine.away_until_ms = 0);
    for engine in &mut engines {
        acknowledged.append(&mut engine.acknowledged);
        if engine.epoch.is_none() {
            engine.follow(&mut tables, &mut random);
        }
        let applied = &engine.applied;
        assert!(tables.log.starts_with(applied), "seed {seed}: an engine has what the log does not have");
    }
    for (seq, batch) in &acknowledged {
        assert_eq!(tables.log[*seq as usize - 1], *batch, "seed {seed}: an acknowledged batch is lost");
    }
    let epochs: Vec<u64> = tables.log.iter().map(|(epoch, _)| *epoch).collect();
    assert!(epochs.is_sorted(), "seed {seed}: an earlier leader has written after a later one");
    (tables.leader.map_or(0, |leader| leader.epoch), tables.log.len() as u64)
}

#[test]
fn nothing_that_was_acknowledged_is_lost_and_one_engine_leads() {
    let seeds = std::env::var("CLQD_SEEDS").map_or(SEEDS, |seeds| seeds.parse().expect("a number"));
    let (mut epochs, mut batches) = (0, 0);
    for seed in 0..seeds {
        let (of_run, written) = run(seed);
        assert!(written > STEPS / 3, "seed {seed}: {written} batches in {STEPS} steps");
        (epochs, batches) = (epochs + of_run, batches + written);
    }
    assert!(epochs > 2 * seeds, "engines took over: {epochs}");
    assert_eq!(run(7), run(7), "a seed repeats a run");
    println!("{seeds} seeds: {batches} batches of {epochs} epochs");
}
