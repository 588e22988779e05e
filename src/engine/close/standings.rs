//! The final positions on one server in the rankings of which the best are kept
//! for ever, put together of its rows a portion at a time.
//!
//! A server has some hundreds of rows a week; one that invents its players has
//! millions. So what is kept of a row is small, and nothing here takes more than
//! the ordering of one ranking at once.

use crate::board::Place;
use crate::board::order::Orders;
use crate::model::PlayerKey;
use crate::model::row::{Ranking, WeekRow};

const RANKINGS: usize = Ranking::WITH_BEST.len();

#[derive(Debug)]
pub(super) struct Standings {
    orders: Orders,
    /// In order of player key.
    players: Vec<Player>,
    places: [Vec<Place>; RANKINGS],
    /// All rows are read and positions given.
    complete: bool,
    passed: usize,
}

#[derive(Debug)]
struct Player {
    key: PlayerKey,
    elo: f64,
    /// 0: absent.
    positions: [u32; RANKINGS],
}

/// What a closed week leaves of a player on the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Standing {
    pub player: PlayerKey,
    /// In the order of [`Ranking::WITH_BEST`]; `None`: absent.
    pub positions: [Option<u32>; RANKINGS],
    pub elo: f64,
}

impl Standings {
    /// Of a server whose boards are ordered so.
    pub(super) fn new(orders: Orders) -> Standings {
        Standings { orders, players: Vec::new(), places: Default::default(), complete: false, passed: 0 }
    }

    /// Brings in the next rows, in order of player key.
    pub(super) fn read(&mut self, rows: &[(PlayerKey, WeekRow)]) {
        for (key, row) in rows {
            debug_assert!(!self.complete && self.last_read() < Some(*key));
            for (places, ranking) in self.places.iter_mut().zip(Ranking::WITH_BEST) {
                places.extend(self.orders.place(*key, row, ranking));
            }
            self.players.push(Player { key: *key, elo: row.elo, positions: [0; RANKINGS] });
        }
    }

    pub(super) fn last_read(&self) -> Option<PlayerKey> {
        self.players.last().map(|player| player.key)
    }

    /// All rows are read.
    pub(super) fn end(&mut self) {
        for (which, places) in std::mem::take(&mut self.places).iter_mut().enumerate() {
            self.orders.sort(Ranking::WITH_BEST[which], places);
            for (place, position) in places.iter().zip(1..) {
                let at = self.players.binary_search_by_key(&place.player, |player| player.key);
                self.players[at.expect("places are of these players")].positions[which] = position;
            }
        }
        self.complete = true;
    }

    pub(super) fn is_read(&self) -> bool {
        self.complete
    }

    pub(super) fn is_empty(&self) -> bool {
        self.players.is_empty()
    }

    /// The first that was not passed.
    pub(super) fn next(&self) -> Option<Standing> {
        let Player { key, elo, positions } = self.players.get(self.passed)?;
        Some(Standing {
            player: *key,
            positions: positions.map(|position| (position > 0).then_some(position)),
            elo: *elo,
        })
    }

    pub(super) fn pass(&mut self) {
        self.passed += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_portions_as_at_once() {
        let mut seed = 5_u64;
        let mut below = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % most
        };
        let rows: Vec<(PlayerKey, WeekRow)> = (1..200)
            .map(|n| {
                let mut row = WeekRow::new(0, 1000.0 + below(5) as f64);
                row.elo_rounds = below(2) as u32;
                row.elo_at = below(3) as i64;
                row.clq1_segments.offer(below(20), below(3) as i64);
                row.clq2_games.offer(below(4), below(3) as i64);
                (PlayerKey(n * 3), row)
            })
            .collect();
        let low = ["clq1", "elo"].map(|text| text.parse().unwrap());
        let orders = Orders::of_scope(&low, &["clq2 elo".parse().unwrap()], None);
        let want: Vec<Standing> = rows
            .iter()
            .zip(orders.positions(&rows))
            .map(|((player, row), positions)| {
                let positions = Ranking::WITH_BEST.map(|ranking| positions[ranking as usize]);
                Standing { player: *player, positions, elo: row.elo }
            })
            .collect();
        for portion in [1, 7, 199] {
            let mut standings = Standings::new(orders);
            rows.chunks(portion).for_each(|rows| standings.read(rows));
            standings.end();
            let mut got = Vec::new();
            while let Some(standing) = standings.next() {
                got.push(standing);
                standings.pass();
            }
            assert_eq!(got, want);
        }
    }
}
