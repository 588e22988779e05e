//! Compares qstat (`quakestat`, Debian package qstat) with `clqd query` on the same fleet:
//! the same host names, maps, slots, names and points, for the Quake 3 family and for A2S.
//! The fleet's time does not pass, and its only faults are those of real servers: every
//! format of challenges and split packets.
//!
//! qstat is a second implementation, not the reference. Cases that qstat decodes wrongly
//! are skipped and counted:
//!
//! - it does not decompress A2S replies that are split and compressed with bzip2, and
//!   shows an empty list;
//! - it expects a size field in a split A2S reply of the newer engine; that of app 240 at
//!   protocol 7 has none;
//! - it recognises the engine by the lowest byte of the app id: below 128 it reads splits
//!   in GoldSrc's format, as with apps 300 and 320, which is wrong.
//!
//! In these cases clqd's result is compared with the fleet itself. Broken and hostile
//! servers are tested elsewhere.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use crate::sandbox::rows;
use clqd::fleet::wire::{ProtocolVariant, SplitFormat};
use clqd::fleet::{FaultShares, Fleet, Ports, RateLimit, ServeSettings, World, world};
use serde_json::Value;

const SEED: u64 = 5;
const SERVERS: u32 = 800;

/// One server as one of the programs shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ServerView {
    hostname: String,
    map: String,
    slots: u64,
    /// Sorted by name.
    players: Vec<(String, i64)>,
}

#[test]
fn clqd_query_agrees_with_qstat() {
    let start_ms = 1_763_683_200_000;
    let settings = world::WorldSettings {
        servers: SERVERS,
        seed: SEED,
        start_ms,
        activity: 6.0,
        truth: false,
        ..Default::default()
    };
    let profiles = World::new(settings.clone());
    let serve = ServeSettings {
        ports: Ports::ANY,
        live_from_ms: start_ms + 86_400_000,
        speed: 1e-9, // the time does not pass
        faults: FaultShares::NONE,
        rate_limit: RateLimit::none,
    };
    let fleet = Fleet::start(World::new(settings), serve).expect("a fleet on free ports");

    let dir = tempfile::tempdir().unwrap();
    let by_qstat = qstat(&fleet, dir.path().join("qstat.lst"));
    let by_clqd = clqd_query(&fleet, dir.path().join("clqd.lst"));
    assert_eq!(
        (by_qstat.len(), by_clqd.len()),
        (SERVERS as usize, SERVERS as usize),
        "both programs list every server"
    );

    let (mut same, mut players, mut fragmented, mut only_clqd) = (BTreeMap::new(), 0, 0, BTreeMap::new());
    for number in 0..fleet.servers() {
        let address = fleet.url(number).split_once("://").unwrap().1.to_owned();
        let (qstat, clqd) = (&by_qstat[&address], &by_clqd[&address]);
        let profile = profiles.profile(number);
        let ProtocolVariant { split, fragment_bytes, .. } = ProtocolVariant::of(SEED, number, profile);
        let protocol = profile.game.protocol;
        if qstat == clqd {
            *same.entry(protocol.scheme()).or_insert(0) += 1;
            players += clqd.players.len();
            // Header and count; index, name, zero byte, points and time of each player.
            let bytes = 6 + clqd.players.iter().map(|(name, _)| name.len() + 10).sum::<usize>();
            fragmented += usize::from(split != SplitFormat::Never && bytes > fragment_bytes);
            continue;
        }
        // Only where qstat is known to decode wrongly, and there clqd must be correct.
        let is_known_fault = match split {
            SplitFormat::Bzip2 | SplitFormat::SourceWithoutSize => true,
            SplitFormat::Source => profile.game.app_id & 0xFF < 128,
            SplitFormat::GoldSrc | SplitFormat::Never => false,
        };
        let app = profile.game.app_id;
        assert!(is_known_fault, "{address} (app {app}, {split:?}):\nqstat {qstat:?}\nclqd  {clqd:?}");
        assert!(qstat.players.is_empty() && !clqd.players.is_empty(), "{address}: {qstat:?}");
        let truth = fleet.snapshot(number);
        let mut listed: Vec<_> =
            truth.players.into_iter().map(|player| (player.name.into_string(), player.points.unwrap_or(0))).collect();
        listed.sort();
        assert_eq!((&clqd.players, &clqd.hostname), (&listed, &truth.hostname), "{address}");
        *only_clqd.entry(format!("{split:?}")).or_insert(0) += 1;
    }
    println!("equal: {same:?}, with {players} players, {fragmented} in fragments; only clqd is correct: {only_clqd:?}");
    assert!(same.values().all(|&n| n >= 50) && same.len() == 2 && players > 500, "enough servers are compared");
}

/// What qstat shows, by address and port.
fn qstat(fleet: &Fleet, list: PathBuf) -> BTreeMap<String, ServerView> {
    let line = |url: String| {
        let (scheme, address) = url.split_once("://").expect("a URL");
        format!("{} {address}\n", if scheme == "quake3" { "Q3S" } else { "A2S" })
    };
    std::fs::write(&list, fleet.urls().into_iter().map(line).collect::<String>()).unwrap();
    // -nnx: names with their colour codes. Not -json, which omits every byte that is not
    // ASCII.
    let output = Command::new("quakestat").args(["-raw", "\x01", "-P", "-nnx", "-f"]).arg(&list).output();
    let output = output.expect("this test needs quakestat: run apt-get install qstat, or tests/run, which installs it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut seen = BTreeMap::new();
    let mut lines =
        output.stdout.split(|&b| b == b'\n').map(|line| line.split(|&b| b == 1).map(text).collect::<Vec<_>>());
    while let Some(server) = lines.next() {
        let [_, address, hostname, map, slots, ..] = server.as_slice() else { continue };
        let player = |fields: Vec<String>| (fields[0].clone(), fields[1].parse().expect("points"));
        let mut players: Vec<_> = lines.by_ref().take_while(|fields| fields.len() > 1).map(player).collect();
        players.sort();
        let slots = slots.parse().expect("slots; qstat received no reply");
        let server = ServerView { hostname: hostname.clone(), map: map.clone(), slots, players };
        seen.insert(address.clone(), server);
    }
    seen
}

/// Bytes that are not UTF-8 are Latin-1 in this fleet.
fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    }
}

/// What `clqd query` shows, by address and port.
fn clqd_query(fleet: &Fleet, list: PathBuf) -> BTreeMap<String, ServerView> {
    std::fs::write(&list, fleet.urls().join("\n")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_clqd"));
    let output = command.args(["--json", "query", "--file"]).arg(&list).output().expect("clqd starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let servers = rows(std::str::from_utf8(&output.stdout).expect("UTF-8"));
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let seen = servers.iter().map(|server| {
        let players = server["players"].as_array().expect("players").iter();
        let mut players: Vec<_> =
            players.map(|player| (text(&player["name"]), player["points"].as_i64().unwrap_or(0))).collect();
        players.sort();
        let slots = server["slots"].as_u64().expect("slots");
        let seen = ServerView { hostname: text(&server["hostname"]), map: text(&server["map"]), slots, players };
        (server["server"].as_str().expect("a URL").split_once("://").unwrap().1.to_owned(), seen)
    });
    seen.collect()
}
