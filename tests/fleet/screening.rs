//! The real scanner scans a simulated fleet with spectators, generic names, unmarked bots,
//! oversized and frozen lists, and the engine ranks the result: none of these may appear
//! in a row (docs/rules.md section 14). Replies travel over real sockets; hours pass by skipping
//! the fleet's time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use clqd::cli::export::ExportError;
use clqd::engine::{EngineSettings, Event, Outcome};
use clqd::fleet::behaviours::{GENERIC_NAME, PHANTOM_NAME, STATUE_NAME};
use clqd::fleet::truth::{PlayerTruth, TruthLine};
use clqd::fleet::{Behaviour, FaultShares, Fleet, Ports, ProtocolShares, ServeSettings, World, WorldSettings};
use clqd::model::calendar::{Calendar, week_label};
use clqd::model::row::PlayerRow;
use clqd::model::{Completeness, ServerKey, ServerUrl, Snapshot};
use clqd::scan::{ScanMode, ScanRequest, ScanSettings, Scanner};
use clqd::state::State;
use clqd::store::StoreSettings;

const SERVERS: u32 = 80;
const SCANS: u32 = 100;
const SCAN_MS: u32 = 120_000;
const FROZEN_AFTER_MS: i64 = 3_600_000;
/// Wednesday 2025-11-26 00:00 UTC: all scans are in one week and one day.
const START_MS: i64 = 1_764_115_200_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn screened_entries_never_reach_rankings() {
    let behaviours = "spectators=0.3,generic_names=0.1,unmarked_bots=0.2,oversized=0.1,frozen=0.1".parse().unwrap();
    let settings = WorldSettings {
        servers: SERVERS,
        seed: 9,
        start_ms: START_MS,
        protocols: ProtocolShares::source(0.5),
        activity: 2.0,
        behaviours,
        ..WorldSettings::default()
    };
    let fleet = Fleet::start(
        World::new(settings),
        ServeSettings {
            ports: Ports::ANY,
            live_from_ms: START_MS,
            speed: 1e-6,
            faults: FaultShares::NONE,
            ..ServeSettings::default()
        },
    )
    .expect("free ports");
    let fleet = Arc::new(fleet);
    let mut simulation = Simulation::new(&fleet);
    simulation.scan_for_hours().await;
    simulation.check();
}

struct Simulation {
    fleet: Arc<Fleet>,
    urls: Vec<ServerUrl>,
    state: State,
    _dir: tempfile::TempDir,
    /// Servers whose first non-empty list contained bots only.
    bots_first: HashSet<u32>,
    seen: HashSet<u32>,
}

impl Simulation {
    fn new(fleet: &Arc<Fleet>) -> Simulation {
        let dir = tempfile::tempdir().expect("a directory");
        let mut settings = EngineSettings::default();
        settings.rules.screen.frozen_after_ms = FROZEN_AFTER_MS;
        let store = StoreSettings { cache_bytes: 16 << 20, create: true };
        Simulation {
            urls: fleet.urls().iter().map(|url| ServerUrl::parse(url).expect("a URL")).collect(),
            fleet: Arc::clone(fleet),
            state: State::open(&dir.path().join("state"), store, settings).expect("a state"),
            _dir: dir,
            bots_first: HashSet::new(),
            seen: HashSet::new(),
        }
    }

    async fn scan_for_hours(&mut self) {
        let clock = Arc::clone(&self.fleet);
        let settings = ScanSettings {
            allow_private: true,
            limit_loopback: false,
            packets_per_second_max: 100_000.0,
            address_packets_per_second_max: 100_000.0,
            address_burst_packets: 1_000,
            subnet_packets_per_second_max: 100_000.0,
            subnet_burst_packets: 10_000,
            ..ScanSettings::default()
        };
        let (scanner, requests, mut outcomes) =
            Scanner::start(settings, Arc::new(move || clock.now_ms())).expect("sockets");
        for _ in 0..SCANS {
            for (server, url) in self.urls.iter().enumerate() {
                let (id, url) = (server as u64, url.clone());
                let request = ScanRequest {
                    id,
                    server: ServerKey(1 + server as u32),
                    url,
                    mode: ScanMode::Normal,
                    wants_settings: false,
                };
                assert!(requests.send(request).await, "the scanner runs");
            }
            let mut lists = Vec::new();
            let mut ended = 0;
            while ended < SERVERS as usize {
                let batch = outcomes.recv().await.expect("the scanner runs");
                ended += batch.len();
                // A busy machine may miss a reply; the next scan sees the same server.
                let listed = batch.into_iter().filter_map(|outcome| Some((outcome.id as u32, outcome.result.ok()?)));
                lists.extend(listed);
            }
            lists.sort_by_key(|(server, _)| *server);
            for (server, snapshot) in lists {
                self.apply(server, snapshot);
            }
            self.fleet.skip_time(SCAN_MS);
        }
        drop(requests);
        assert!(outcomes.recv().await.is_none(), "the scanner ends after its last outcome");
        drop(scanner);
        self.state.commit().expect("the store works");
    }

    fn apply(&mut self, server: u32, snapshot: Snapshot) {
        if snapshot.completeness == Completeness::Full && !snapshot.players.is_empty() && self.seen.insert(server) {
            let only_bots = snapshot.bots.is_some_and(|bots| bots as usize >= snapshot.players.len());
            if only_bots {
                self.bots_first.insert(server);
            }
        }
        let event = Event::Replayed { url: self.urls[server as usize].clone(), outcome: Outcome::Snapshot(snapshot) };
        self.state.handle(event).expect("the store works");
    }

    fn rows(&self) -> Vec<(u32, String, PlayerRow)> {
        let numbers: HashMap<String, u32> =
            (0..).zip(&self.urls).map(|(number, url)| (url.to_string(), number)).collect();
        let mut rows = Vec::new();
        let week = week_label(Calendar::default().week(START_MS));
        let take = |server: &str, _: &str, player: &str, row: &PlayerRow, _: [Option<u32>; 5]| {
            rows.push((numbers[server], player.to_owned(), row.clone()));
            Ok::<(), ExportError>(())
        };
        self.state.engine.model().export(&self.state.store, &week, take).expect("an export");
        rows
    }

    /// By server and normalised name: whether it is a bot's, and the ground truth; several
    /// persons with the same name are summed.
    fn truth(&self) -> HashMap<(u32, String), Vec<(bool, PlayerTruth)>> {
        let numbers: HashMap<String, u32> = (0..).zip(self.fleet.urls()).map(|(number, url)| (url, number)).collect();
        let mut truth: HashMap<_, Vec<_>> = HashMap::new();
        for line in self.fleet.truth() {
            if let TruthLine::Player { server, normalised, bot, totals, .. } = line {
                truth.entry((numbers[&server], normalised)).or_default().push((bot, totals));
            }
        }
        truth
    }

    fn check(&self) {
        let (rows, truth) = (self.rows(), self.truth());
        let behaviour = |server: u32| self.fleet.behaviour(server);
        let has = |wanted: Option<Behaviour>| move |row: &&(u32, String, PlayerRow)| behaviour(row.0) == wanted;
        let names = |server| rows.iter().filter(move |(of, _, _)| *of == server).map(|(_, name, _)| name.as_str());

        let ordinary: Vec<_> = rows.iter().filter(has(None)).collect();
        assert!(ordinary.len() > 100 && ordinary.iter().any(|(_, _, row)| row.elo_rounds > 0), "players are ranked");

        let oversized: Vec<_> = rows.iter().filter(has(Some(Behaviour::Oversized))).collect();
        assert!(oversized.is_empty(), "{oversized:?}");
        assert!(rows.iter().all(|(_, name, _)| !name.starts_with(PHANTOM_NAME)));

        let frozen: Vec<_> = rows.iter().filter(has(Some(Behaviour::Frozen))).collect();
        assert!(frozen.len() > 10, "a list counts until it has not changed for long enough");
        for (server, name, row) in frozen {
            assert!(name.starts_with(STATUE_NAME));
            let (points, clq1, clq2, elo_rounds) = (row.points, row.clq1(), row.clq2(), row.elo_rounds);
            assert_eq!((points, clq1, clq2, elo_rounds), (0, 0, 0, 0), "{server} {name}");
            // The scan that detects it may be late, by one more on a busy machine.
            let max_ms = FROZEN_AFTER_MS as u64 + 3 * u64::from(SCAN_MS);
            assert!(row.measured_ms <= max_ms, "{server} {name}: {row:?}");
        }

        let mut bots_excluded = 0;
        for &server in self.bots_first.iter().filter(|&&server| behaviour(server) == Some(Behaviour::UnmarkedBots)) {
            for ((_, name), people) in truth.iter().filter(|((of, _), _)| *of == server) {
                if people.iter().all(|(bot, _)| *bot) {
                    assert!(names(server).all(|ranked| ranked != name), "{server}: bot {name} is ranked");
                    bots_excluded += 1;
                }
            }
        }
        assert!(bots_excluded >= 10, "{bots_excluded} bots on {:?}", self.bots_first);

        let (mut spectators_excluded, mut played_ms, mut measured_ms) = (0, 0, 0);
        for (server, name, row) in rows.iter().filter(has(Some(Behaviour::Spectators))) {
            let people = &truth[&(*server, name.clone())];
            assert!(
                row.points <= people.iter().map(|(_, totals)| totals.points_gained).sum::<i64>(),
                "{server} {name}: {row:?}"
            );
            played_ms += people.iter().map(|(_, totals)| totals.present_ms - totals.spectated_ms).sum::<i64>();
            measured_ms += row.measured_ms as i64;
        }
        assert!(measured_ms > 3_600_000 && measured_ms <= played_ms * 21 / 20, "{measured_ms} of {played_ms}");
        for ((server, name), people) in &truth {
            let only_spectated = people.iter().all(|(bot, totals)| !bot && totals.spectated_ms == totals.present_ms);
            if behaviour(*server) == Some(Behaviour::Spectators) && only_spectated {
                assert!(names(*server).all(|ranked| ranked != name), "{server}: spectator {name} is ranked");
                spectators_excluded += 1;
            }
        }
        assert!(spectators_excluded >= 3, "{spectators_excluded}");

        // A generic name is ranked while one player has it, and unusable while two do.
        let generic_ms = |(server, name, row): &(u32, String, PlayerRow)| {
            (behaviour(*server) == Some(Behaviour::GenericNames) && name == GENERIC_NAME).then_some(row.measured_ms)
        };
        assert!(rows.iter().filter_map(generic_ms).all(|ms| ms <= u64::from(SCANS * SCAN_MS)));
    }
}
