//! Scans simulated servers with the real engine and its schedule, in virtual time.

use std::collections::{HashMap, HashSet};

use super::measure::{Accuracy, Found, RatedList, compare};
use super::play::{PLAYERS, Play, Standing, player_name};
use super::scenario::Scenario;
use crate::engine::{AdminError, EngineSettings, Event, Outcome, ViewError};
use crate::fleet::rng::{RngExt, SplitMix64};
use crate::model::calendar::{Calendar, DAY_MS, MINUTE_MS, week_label};
use crate::model::{ServerKey, ServerUrl, Snapshot};
use crate::rank::LEFT_AT_END_MS;
use crate::state::{State, StateError};
use crate::store::{StoreError, StoreSettings, temp_root};

/// Monday 2025-11-24 00:00 UTC.
const START_MS: i64 = 1_763_942_400_000;

/// Virtual time between two ticks of the engine.
const TICK_MS: i64 = 10_000;

/// Outcomes between two commits.
const COMMIT_OUTCOMES: u64 = 5_000;

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub scenario: Scenario,
    pub servers: u32,
    /// 1 to 7: the days of one week.
    pub days: u32,
    pub seed: u64,
}

/// Simulates and compares. `progress` gets the share that is done, 0 to 1. Error: the temporary state cannot be written.
pub fn run(plan: Plan, settings: EngineSettings, mut progress: impl FnMut(f64)) -> Result<Accuracy, RunError> {
    let dir = tempfile::Builder::new().prefix("clqd-truth-").tempdir_in(temp_root()).map_err(RunError::Directory)?;
    let rules = settings.rules.clone();
    let store = StoreSettings { cache_bytes: 64 << 20, create: true };
    let mut state = State::open(&dir.path().join("state"), store, settings)?;
    let mut servers: HashMap<ServerKey, SimulatedServer> = HashMap::new();
    for number in 0..plan.servers {
        let [_, b, c, d] = number.to_be_bytes();
        let url = ServerUrl::parse(&format!("quake3://10.{b}.{c}.{d}:27960")).expect("a URL");
        let (key, _) = state.engine.add_server(url.clone(), Vec::new(), START_MS)?;
        servers.insert(key, SimulatedServer::new(plan, number, url));
    }
    let end_ms = START_MS + i64::from(plan.days) * DAY_MS;
    let mut scan_rng = SplitMix64::from_parts(&[plan.seed, 0x5CA2]);
    let (mut tick_ms, mut scans) = (START_MS, 0_u64);
    while let Some(due_ms) = state.engine.next_due_ms() {
        let now_ms = due_ms.max(state.engine.model().now_ms());
        if now_ms >= end_ms {
            break;
        }
        while tick_ms <= now_ms {
            state.handle(Event::Tick { now_ms: tick_ms })?;
            tick_ms += TICK_MS;
        }
        let Some(probe) = state.engine.poll_probe(now_ms) else { continue };
        let server = servers.get_mut(&probe.server).expect("only these servers were added");
        server.play.advance(now_ms);
        scans += 1;
        let is_missed = server.play.is_missed(&mut scan_rng);
        let snapshot = server.play.snapshot();
        let outcome = match is_missed {
            true => Outcome::Miss { t_ms: now_ms, reason: "lost".to_owned() },
            false => Outcome::Snapshot(snapshot.clone()),
        };
        let rounds = |state: &State| {
            let counts = state.engine.model().counts();
            [counts.rounds, counts.rounds_sure, counts.rounds_unseen_ms_max]
        };
        let before = rounds(&state);
        state.handle(Event::Scanned { server: probe.server, id: probe.id, sent_ms: Some(now_ms), outcome })?;
        if !is_missed {
            let after = rounds(&state);
            let [rounds, sure, unseen_ms_max] = [0, 1, 2].map(|at| after[at] - before[at]);
            server.scanned(&snapshot, (rounds > 0).then_some((sure > 0, unseen_ms_max)));
        }
        if scans % COMMIT_OUTCOMES == 0 {
            while state.engine.poll_notice().is_some() {}
            state.commit()?;
            progress((now_ms - START_MS) as f64 / (end_ms - START_MS) as f64);
        }
    }
    state.commit()?;
    let week = week_label(Calendar::default().week(START_MS));
    let mut by_url: HashMap<String, &mut SimulatedServer> =
        servers.values_mut().map(|server| (server.url.to_string(), server)).collect();
    state.engine.model().export(&state.store, &week, |url, _, player, row, _| {
        if let Some(server) = by_url.get_mut(url) {
            server.found.rows.insert(player.to_owned(), row.clone());
        }
        Ok::<(), RunError>(())
    })?;
    let mut servers: Vec<SimulatedServer> = servers.into_values().collect();
    servers.sort_by_key(|server| server.number);
    let found: Vec<(&Play, Found)> = servers
        .iter_mut()
        .map(|server| {
            server.play.advance(end_ms);
            (&server.play, std::mem::take(&mut server.found))
        })
        .collect();
    let intervals = (end_ms - START_MS) as f64 / (2 * MINUTE_MS) as f64;
    Ok(compare(&found, scans as f64 / f64::from(plan.servers) / intervals, &rules))
}

struct SimulatedServer {
    number: u32,
    url: ServerUrl,
    play: Play,
    found: Found,
    /// The last list.
    last: Option<List>,
}

struct List {
    t_ms: i64,
    standings: Vec<Standing>,
    /// Players of the list before it, shortly before, who are not in it.
    left: Vec<Standing>,
}

impl SimulatedServer {
    fn new(plan: Plan, number: u32, url: ServerUrl) -> SimulatedServer {
        let play = Play::new(plan.scenario, plan.seed, number, START_MS);
        SimulatedServer { number, url, play, found: Found::default(), last: None }
    }

    /// Notes a list, and the final list of the round if the engine rated one (docs/rules.md section 4).
    /// `rated`: whether it is sure, and how long it was before the end at most, ms.
    fn scanned(&mut self, snapshot: &Snapshot, rated: Option<(bool, u64)>) {
        let standings: Vec<Standing> = (0..PLAYERS)
            .filter_map(|player| {
                let listed = snapshot.players.iter().find(|listed| *listed.name == *player_name(player))?;
                Some((player, listed.points?))
            })
            .collect();
        let mut left = Vec::new();
        if let Some(List { t_ms, standings: before, left: before_left }) = self.last.take() {
            if let Some((sure, unseen_ms_max)) = rated {
                let mut finals: Vec<Standing> = before.iter().chain(&before_left).copied().collect();
                finals.sort_by_key(|&(player, points)| (-points, player));
                self.found.lists.push(RatedList { last_scan_ms: t_ms, sure, unseen_ms_max, standings: finals });
            } else if snapshot.t_ms - t_ms <= LEFT_AT_END_MS {
                let listed: HashSet<usize> = standings.iter().map(|(player, _)| *player).collect();
                left = before.into_iter().filter(|(player, _)| !listed.contains(player)).collect();
            }
        }
        self.last = Some(List { t_ms: snapshot.t_ms, standings, left });
    }
}

/// The simulation cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("cannot make a temporary directory: {0}")]
    Directory(std::io::Error),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Server(#[from] AdminError),
    #[error(transparent)]
    Export(#[from] ViewError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_scans_come_closer_to_the_truth() {
        let plan = Plan { scenario: Scenario::STANDARD, servers: 6, days: 1, seed: 1 };
        let [grid, most] = [0.0, 4.0].map(|scan_budget| {
            let mut done = 0.0;
            let settings = EngineSettings { scan_budget, ..EngineSettings::default() };
            let accuracy = run(plan, settings, |share| done = share).unwrap();
            assert!((0.0..=1.0).contains(&done));
            accuracy
        });
        assert_eq!(grid.rounds, most.rounds, "the same play");
        assert!(grid.rounds > 300 && grid.scans <= 1.0 && (3.0..4.2).contains(&most.scans), "{grid:?} {most:?}");
        assert!(grid.found > 60.0 && most.found > grid.found && most.winner > grid.winner + 5.0, "{grid:?} {most:?}");
        assert!(
            most.first_three > grid.first_three + 10.0 && most.elo > grid.elo && most.clq1 > 0.9,
            "{grid:?} {most:?}"
        );
        // Few players may have equal points in two lists of a round that goes on.
        assert!(grid.unseen_within > 99.0 && most.unseen_within > 95.0, "{grid:?} {most:?}");
        assert!((100.0..200.0).contains(&grid.unseen_s) && most.unseen_s < grid.unseen_s / 2.0, "{grid:?} {most:?}");
        assert!(most.points_error < 0.0 && most.points_error > grid.points_error, "{grid:?} {most:?}");
    }
}
