//! `clqd query` scans a fleet with every protocol, and prints what the servers say: the whole
//! path from the sockets to the JSON output. The fleet's time does not pass.

use std::collections::{BTreeMap, HashSet};
use std::process::Command;

use crate::sandbox::rows;
use clqd::fleet::{FaultShares, Fleet, Ports, Protocol, ProtocolShares, RateLimit, ServeSettings, World, world};
use clqd::model::Completeness;
use serde_json::Value;
use strum::VariantArray;

/// One server as the command prints it, and as it is.
#[derive(Debug, PartialEq, Eq)]
struct ServerView {
    game: String,
    map: String,
    hostname: String,
    slots: u64,
    /// In the order of the list.
    players: Vec<(String, Option<i64>)>,
}

#[test]
fn query_prints_the_truth_of_every_protocol() {
    let start_ms = 1_763_683_200_000;
    let settings = world::WorldSettings {
        servers: 500,
        seed: 3,
        start_ms,
        activity: 3.0,
        protocols: ProtocolShares::ALL,
        truth: false,
        ..Default::default()
    };
    let serve = ServeSettings {
        ports: Ports::ANY,
        live_from_ms: start_ms + 3_600_000,
        speed: 1e-9,
        faults: FaultShares::NONE,
        rate_limit: RateLimit::none,
    };
    let fleet = Fleet::start(World::new(settings), serve).expect("a fleet on free ports");
    let printed = query(&fleet);
    assert_eq!(printed.len(), 500, "every server replied");
    let (mut protocols, mut partial, mut points) = (HashSet::new(), 0, 0);
    for server in 0..fleet.servers() {
        let url = fleet.url(server);
        let (is_full, printed) = &printed[&url];
        let mut truth = fleet.snapshot(server);
        truth.drop_impossible_values();
        let protocol = fleet.protocol(server);
        let may_be_partial = match protocol {
            Protocol::Quake2 | Protocol::QuakeWorld => true,
            _ => truth.completeness == Completeness::Partial,
        };
        assert!(*is_full || may_be_partial, "{url}: {printed:?}");
        partial += usize::from(!is_full);
        let mut players: Vec<_> = truth.players.iter().map(|player| (player.name.to_string(), player.points)).collect();
        if !is_full {
            players.truncate(printed.players.len());
        }
        points += players.iter().filter(|(_, points)| points.is_some()).count();
        let (game, map, hostname, slots) = (truth.game, truth.map, truth.hostname, truth.slots.into());
        assert_eq!(*printed, ServerView { game, map, hostname, slots, players }, "{url}");
        protocols.insert(protocol);
    }
    assert_eq!(protocols.len(), Protocol::VARIANTS.len());
    assert!(partial < 50 && points > 300, "{partial} partial, {points} points");
}

/// What `clqd query` prints, by URL, and whether the list is complete.
fn query(fleet: &Fleet) -> BTreeMap<String, (bool, ServerView)> {
    let dir = tempfile::tempdir().expect("a directory");
    let list = dir.path().join("servers");
    std::fs::write(&list, fleet.urls().join("\n")).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_clqd"));
    let output = command.args(["--json", "query", "--file"]).arg(&list).output().expect("clqd starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let view = |row: &Value| {
        let players = row["players"].as_array().map(Vec::as_slice).unwrap_or_default().iter();
        let view = ServerView {
            game: text(&row["game"]),
            map: text(&row["map"]),
            hostname: text(&row["hostname"]),
            slots: row["slots"].as_u64().unwrap_or(0),
            players: players.map(|player| (text(&player["name"]), player["points"].as_i64())).collect(),
        };
        (text(&row["server"]), (row["partial"] != true, view))
    };
    rows(std::str::from_utf8(&output.stdout).expect("UTF-8")).iter().map(view).collect()
}
