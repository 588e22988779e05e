//! Past scans of a world in virtual time: snapshots of all servers in time order. It
//! fills an engine with history before the live scans begin. It has no faults: every
//! scan succeeds.
//!
//! A server with at least three players (without bots) is scanned every two minutes, any
//! other every ten, at its own phase, so the load is even.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::rng::hash_parts;
use super::world::World;
use crate::model::Snapshot;

const BUSY_MS: i64 = 120_000;
const QUIET_MS: i64 = 600_000;
const BUSY_PLAYERS_MIN: u32 = 3;

/// Yields (time in Unix ms, server, snapshot) in time order; servers of the same time in
/// numeric order.
pub struct SimulatedHistory<'w> {
    world: &'w mut World,
    to_ms: i64,
    due: BinaryHeap<Reverse<(i64, u32)>>,
}

impl<'w> SimulatedHistory<'w> {
    /// Scans with `from_ms <= time < to_ms`, Unix ms. Times before the world's start are
    /// skipped.
    pub fn new(world: &'w mut World, from_ms: i64, to_ms: i64) -> SimulatedHistory<'w> {
        let from_ms = from_ms.max(world.settings().start_ms);
        let due = (0..world.servers())
            .map(|server| Reverse((next_ms(world, server, from_ms - 1, QUIET_MS), server)))
            .collect();
        SimulatedHistory { world, to_ms, due }
    }
}

impl Iterator for SimulatedHistory<'_> {
    type Item = (i64, u32, Snapshot);

    fn next(&mut self) -> Option<Self::Item> {
        let mut top = self.due.peek_mut()?;
        let Reverse((t_ms, server)) = *top;
        if t_ms >= self.to_ms {
            return None;
        }
        self.world.advance(server, t_ms);
        let interval_ms = if self.world.players(server) >= BUSY_PLAYERS_MIN { BUSY_MS } else { QUIET_MS };
        *top = Reverse((next_ms(self.world, server, t_ms, interval_ms), server));
        drop(top);
        let mut snapshot = self.world.snapshot(server);
        snapshot.t_ms = t_ms;
        Some((t_ms, server, snapshot))
    }
}

/// The first time after `t_ms` at the server's phase of the interval.
fn next_ms(world: &World, server: u32, t_ms: i64, interval_ms: i64) -> i64 {
    let phase_ms = (hash_parts(&[world.settings().seed, 0xFA5E, u64::from(server)]) % interval_ms as u64) as i64;
    (t_ms - phase_ms).div_euclid(interval_ms) * interval_ms + interval_ms + phase_ms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::world::WorldSettings;

    #[test]
    fn scans_are_in_order_and_spaced_by_player_count() {
        let start_ms = 1_763_683_200_000;
        let to_ms = start_ms + 6 * 3_600_000;
        let mut world = World::new(WorldSettings { servers: 200, start_ms, ..WorldSettings::default() });
        let mut last = (0, 0);
        let mut last_of = vec![None; 200];
        let mut gaps = std::collections::BTreeMap::<i64, u32>::new();
        for (t_ms, server, snapshot) in SimulatedHistory::new(&mut world, start_ms, to_ms) {
            assert!((t_ms, server) > last && (start_ms..to_ms).contains(&t_ms));
            assert_eq!(snapshot.t_ms, t_ms);
            if let Some((before_ms, humans)) = last_of[server as usize] {
                let gap_ms = t_ms - before_ms;
                assert!(if humans >= 3 { gap_ms <= BUSY_MS } else { gap_ms <= QUIET_MS });
                *gaps.entry(gap_ms).or_default() += 1;
            }
            let humans = snapshot.players.iter().filter(|p| p.ping != Some(0)).count();
            last_of[server as usize] = Some((t_ms, humans));
            last = (t_ms, server);
        }
        assert!(last_of.iter().all(Option::is_some));
        assert!(gaps[&BUSY_MS] > 1_000 && gaps[&QUIET_MS] > 2_000, "{gaps:?}");
    }

    /// The points that scans observe, by a simplified form of docs/rules.md section 3, must be close
    /// to the ground truth; otherwise the simulation is not realistic.
    #[test]
    fn observed_points_come_near_the_ground_truth() {
        let start_ms = 1_763_683_200_000;
        let to_ms = start_ms + 86_400_000;
        let mut world = World::new(WorldSettings { servers: 300, start_ms, ..WorldSettings::default() });
        let mut last: Vec<Option<(i64, Snapshot)>> = vec![None; 300];
        let mut observed = 0_i64;
        for (t_ms, server, cur) in SimulatedHistory::new(&mut world, start_ms, to_ms) {
            if let Some((before_ms, prev)) = &last[server as usize] {
                let points = |name: &str| prev.players.iter().find(|p| p.name == name).and_then(|p| p.points);
                let both = |p: &&crate::model::Player| points(&p.name).is_some();
                let points_now: i64 = cur.players.iter().filter(both).filter_map(|p| Some(p.points?.max(0))).sum();
                let points_before: i64 = cur.players.iter().filter_map(|p| points(&p.name)).map(|p| p.max(0)).sum();
                let restart =
                    cur.map != prev.map || (points_before - points_now >= 5 && 2 * points_now < points_before);
                assert!(t_ms - before_ms <= 720_000);
                for player in &cur.players {
                    let base = points(&player.name).filter(|_| !restart).unwrap_or(0);
                    observed += (player.points.unwrap_or(0) - base).max(0);
                }
            }
            last[server as usize] = Some((t_ms, cur));
        }
        world.advance_all(to_ms);
        let gained: i64 = (0..300)
            .flat_map(|server| world.server_truth(server).players.into_values())
            .map(|totals| totals.points_gained)
            .sum();
        let share = observed as f64 / gained as f64;
        assert!(gained > 100_000 && (0.7..1.0).contains(&share), "{observed} of {gained}: {share}");
    }
}
