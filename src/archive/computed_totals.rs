//! Which totals were computed from all rows on a connection.

use std::collections::BTreeSet;

/// How many totals are remembered, in some 16 MB.
const TOTALS_MAX: usize = 1_000_000;

/// The players on many servers whose totals were computed from all rows on this connection, by week. It says only how the
/// next total is computed, so it may name one whose transaction was rolled back.
#[derive(Default)]
pub(super) struct ComputedTotals(BTreeSet<(u32, u32)>);

impl ComputedTotals {
    pub fn contains(&self, week: u32, player: u32) -> bool {
        self.0.contains(&(week, player))
    }

    pub fn add(&mut self, week: u32, players: &BTreeSet<u32>) {
        if self.0.len() > TOTALS_MAX {
            self.0.clear();
        }
        self.0.extend(players.iter().map(|&player| (week, player)));
    }

    /// Each total is computed from all rows once more: somebody may have changed some.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
