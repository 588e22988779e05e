//! Scans of a simulated fleet, for benches that write and read logs.

use clqd::engine::Outcome;
use clqd::fleet::{SimulatedHistory, World, WorldSettings, address};
use clqd::model::ServerUrl;

const START_MS: i64 = 1_763_942_400_000; // Monday 2025-11-24 00:00 UTC

/// The snapshots of some hours, in order of time.
pub fn simulated_scans(servers: u32, hours: u32) -> anyhow::Result<Vec<(ServerUrl, Outcome)>> {
    let settings =
        WorldSettings { servers, start_ms: START_MS, activity: 6.0, truth: false, ..WorldSettings::default() };
    let mut world = World::new(settings);
    let url = |server| {
        let scheme = world.protocol(server).scheme();
        ServerUrl::parse(&format!("{scheme}://{}:27960", address::address_of(server)))
    };
    let urls = (0..servers).map(url).collect::<Result<Vec<_>, _>>()?;
    let to_ms = START_MS + i64::from(hours) * 3_600_000;
    let scans = SimulatedHistory::new(&mut world, START_MS, to_ms);
    Ok(scans.map(|(_, server, snapshot)| (urls[server as usize].clone(), Outcome::Snapshot(snapshot))).collect())
}
