//! The real daemon scans a fleet and archives to a cluster whose nodes fail in turn. At the end
//! every node has the rows that the state has: those that a single database server gets from it.

use std::time::{Duration, Instant};

use crate::database::Database;
use crate::database::cluster::{Cluster, Fault, NODES};
use crate::database::world::{Tables, assert_same, read};
use crate::sandbox::{Sandbox, fleet, wait_for};
use crate::scans;
use clqd::archive::Archive;
use clqd::config::Config;
use clqd::engine::EngineSettings;
use clqd::fleet::FaultShares;
use clqd::state::State;
use clqd::store::StoreSettings;

/// The complete passes of the archive's worker, and the host that it uses.
fn worker(sandbox: &Sandbox) -> (u64, Option<String>) {
    let status = sandbox.status();
    let host = status["archive"]["host"].as_str().map(str::to_owned);
    (status["counters"]["archive.passes"].as_u64().unwrap_or_default(), host)
}

/// Waits until the worker has made this many passes.
fn wait_for_passes(sandbox: &Sandbox, passes: u64) {
    let began = Instant::now();
    while worker(sandbox).0 < passes {
        let status = sandbox.status();
        let archive = &status["archive"];
        assert!(began.elapsed() < Duration::from_secs(300), "no pass {passes}: {archive} {}", status["counters"]);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The tables, without weeks of servers on which nobody played: a resync writes them, and the
/// outbox contains no change of them.
pub async fn tables(database: &Database) -> Tables {
    let mut tables = read(database).await;
    tables.get_mut("server_week").expect("a table").retain(|row| row[4] != "0");
    tables
}

/// The tables that a single database server gets from the state of a stopped daemon.
pub async fn stored_by(sandbox: &Sandbox) -> Tables {
    let database = Database::new().await;
    database.migrate().await;
    let config = Config::parse(&std::fs::read_to_string(sandbox.config()).unwrap()).expect("a valid config");
    let engine = EngineSettings { archive_enabled: true, ..config.engine_settings().unwrap() };
    let store = StoreSettings { cache_bytes: 16 << 20, create: false };
    let mut state = State::open(&sandbox.state(), store, engine).expect("the state of the stopped daemon");
    // As if another archive was found: everything is written again.
    scans::claim_archive(&mut state, None, 1);
    let mut archive = Archive::connect(&database.settings()).await.unwrap();
    archive.write(&scans::resync(&mut state)).await.unwrap();
    tables(&database).await
}

#[test]
#[ignore = "starts a cluster; tests/run --cluster"]
fn daemon_survives_failures_of_every_node() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut cluster = runtime.block_on(Cluster::start());
    let fleet = fleet(30, 33, 60.0, FaultShares::default());
    let sandbox = Sandbox::new("");
    sandbox.configure(&format!(
        "[archive]\nurl = {:?}\ninterval_s = 2\ndrain_timeout_s = 300\nconnect_timeout_ms = 1000\n\
         query_timeout_ms = 15000\nbackoff_s_max = 1",
        cluster.url_from(0)
    ));
    sandbox.ok(["migrate"]);
    let daemon = sandbox.start();
    sandbox.add_servers(&fleet);

    for fault in [Fault::Kill, Fault::Pause, Fault::ShutDown] {
        for offset in 0..2 {
            // The node that is written, and another one.
            let (passes, host) = wait_for("a host", || {
                let (passes, host) = worker(&sandbox);
                Some((passes, host?))
            });
            let node = (cluster.index_of(&host) + offset) % NODES;
            runtime.block_on(async { cluster.inflict(node, fault) });
            wait_for_passes(&sandbox, passes + 5);
            let (_, now) = worker(&sandbox);
            println!("{fault:?} of node {node}, written through {host}, then {now:?}");
            runtime.block_on(async {
                cluster.restore(node, fault).await;
                cluster.wait_until_all_synced().await;
            });
        }
    }
    wait_for_passes(&sandbox, worker(&sandbox).0 + 2);
    let log = daemon.stop();
    drop(fleet);
    assert_eq!(sandbox.status()["outbox_entries"], 0, "nothing is pending: {log}");

    let want = runtime.block_on(stored_by(&sandbox));
    assert!(want["player_week"].len() > 100, "{} rows", want["player_week"].len());
    for node in 0..NODES {
        let found = runtime.block_on(async {
            cluster.wait_until_equal().await;
            tables(&cluster.database(node)).await
        });
        assert_same(&found, &want, &format!("node {node}"));
    }
}
