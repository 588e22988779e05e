//! Three engines on a cluster of three database nodes: engines and nodes are killed, paused and stopped at random. In the
//! end all engines, a replay of the log, and the archive have the same rows.

use std::time::Duration;

use clqd::fleet::FaultShares;

use crate::daemon::{stored_by, tables};
use crate::database::cluster::{Cluster, Fault, NODES};
use crate::database::world::assert_same;
use crate::engines::{ENGINES, Engines};
use crate::sandbox::{Sandbox, fleet, number, seed, wait_until};

/// One of the things that happen.
#[derive(Clone, Copy, Debug)]
enum Event {
    KillEngine,
    PauseEngine(Duration),
    StopEngine,
    Node(Fault),
    KillAllNodes,
}

/// Random numbers: the same for one seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn event(&mut self) -> Event {
        match self.below(12) {
            0..=2 => Event::KillEngine,
            3..=5 => Event::PauseEngine(Duration::from_millis(500 + self.below(number("CLQD_PAUSE_MS", 8_000)))),
            6 => Event::StopEngine,
            7..=8 => Event::Node(Fault::Kill),
            9 => Event::Node(Fault::Pause),
            10 => Event::Node(Fault::ShutDown),
            _ => Event::KillAllNodes,
        }
    }
}

#[test]
#[ignore = "starts a cluster; tests/run --cluster"]
fn engines_survive_failures_of_engines_and_nodes() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut cluster = runtime.block_on(Cluster::start());
    let mut engines = Engines::start(&cluster.url_from(0), "");
    let fleet = fleet(number("CLQD_SERVERS", 30) as u32, 93, 60.0, FaultShares::NONE);
    engines.sandbox_of_leader().add_servers(&fleet);
    engines.wait_for_scans();
    let mut random = Random(seed());
    for n in 0..number("CLQD_FAULTS", 12) {
        let (event, leader) = (random.event(), engines.leader());
        // The leader most often.
        let engine = if random.below(3) > 0 { leader } else { random.below(ENGINES as u64) as usize };
        let node = random.below(NODES as u64) as usize;
        println!("{n}: {event:?}, engine {engine} of leader {leader}, node {node}");
        match event {
            Event::KillEngine => {
                engines.kill(engine);
                std::thread::sleep(Duration::from_millis(random.below(5_000)));
                engines.start_again(engine);
            }
            Event::PauseEngine(time) => engines.pause(engine, time),
            Event::StopEngine => {
                engines.stop(engine);
                std::thread::sleep(Duration::from_millis(random.below(2_000)));
                engines.start_again(engine);
            }
            Event::Node(fault) => {
                cluster.inflict(node, fault);
                std::thread::sleep(Duration::from_millis(random.below(8_000)));
                runtime.block_on(async {
                    cluster.restore(node, fault).await;
                    cluster.wait_until_all_synced().await;
                });
            }
            Event::KillAllNodes => runtime.block_on(cluster.kill_all_and_restart()),
        }
        engines.wait_for_scans();
    }
    drop(fleet);
    engines.wait_until_equal();
    let leader = engines.leader();
    // Everything is archived.
    wait_until("the archive has everything", || {
        engines.sandboxes[leader].status()["outbox_entries"].as_u64() == Some(0)
    });
    let followers = (0..ENGINES).filter(|&engine| engine != leader);
    followers.into_iter().for_each(|engine| drop(engines.stop(engine)));
    let log = engines.stop(leader);
    engines.sandboxes.iter().for_each(Sandbox::assert_replay_equals_state);
    assert_eq!(engines.sandboxes[leader].status()["outbox_entries"], 0, "{log}");
    let want = runtime.block_on(stored_by(&engines.sandboxes[leader]));
    assert!(want["player_week"].len() > 50, "{} rows", want["player_week"].len());
    for node in 0..NODES {
        let found = runtime.block_on(async {
            cluster.wait_until_equal().await;
            tables(&cluster.database(node)).await
        });
        assert_same(&found, &want, &format!("node {node}"));
    }
}
