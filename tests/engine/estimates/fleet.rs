//! The simulated fleet, scanned every 120 s in virtual time, and the ground truth of the
//! rows.

use std::collections::HashMap;

use clqd::fleet::address;
use clqd::fleet::truth::TruthLine;
use clqd::fleet::world::{World, WorldSettings};
use clqd::model::ServerUrl;

use super::play::{Compared, Errors, Ranked, START_MS, errors};

const SCAN_MS: i64 = 120_000;

/// Returns the errors of the rows of players with at least an hour. Names that several players
/// have on a server are skipped, since their rows cannot be assigned to one player.
pub fn run(servers: u32, hours: i64, seed: u64) -> Errors {
    let settings = WorldSettings {
        servers,
        seed,
        start_ms: START_MS,
        activity: 3.0,
        round_results_max: 0,
        ..WorldSettings::default()
    };
    let mut world = World::new(settings);
    let urls: Vec<ServerUrl> = (0..servers)
        .map(|server| {
            let text = format!("{}://{}:27960", world.protocol(server).scheme(), address::address_of(server));
            ServerUrl::parse(&text).expect("a URL")
        })
        .collect();
    let mut ranked = Ranked::new();
    let step_ms = SCAN_MS / i64::from(servers);
    for scan in 0..hours * 3_600_000 / SCAN_MS {
        for (server, url) in urls.iter().enumerate() {
            // Each server has its own phase.
            let t_ms = START_MS + scan * SCAN_MS + 1 + server as i64 * step_ms;
            world.advance(server as u32, t_ms);
            ranked.apply(url, world.snapshot(server as u32));
        }
    }
    world.advance_all(START_MS + hours * 3_600_000);
    let mut truth: HashMap<(String, String), Option<(f64, f64)>> = HashMap::new();
    for line in world.truth(|server| urls[server as usize].to_string()) {
        let TruthLine::Player { server, normalised, totals, .. } = line else { continue };
        let found = Some(((totals.points_gained - totals.points_lost) as f64, totals.present_ms as f64));
        truth.entry((server, normalised)).and_modify(|known| *known = None).or_insert(found);
    }
    let mut rows = Vec::new();
    for (server, player, row) in ranked.rows() {
        let Some(&Some((true_points, true_ms))) = truth.get(&(server, player)) else { continue };
        if true_ms >= 3_600_000.0 && true_points > 0.0 {
            rows.push(Compared { true_points, true_ms, ..row });
        }
    }
    errors(&rows)
}
