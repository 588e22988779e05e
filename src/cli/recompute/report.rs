//! The rows that `clqd recompute` prints. docs/log.md describes them.

use serde::Serialize;

use super::history::ChangedSetting;
use crate::board::comparison::{Comparison, NamedPlayer, TopChange};
use crate::model::row::Ranking;
use crate::model::scope::Scope;

/// The settings that differ. Empty: none.
#[derive(Debug, Serialize)]
pub struct SettingsReport {
    pub settings: Vec<ChangedSetting>,
}

/// What the log contains.
#[derive(Debug, Serialize)]
pub struct LogReport {
    /// Time of the first and the last event, Unix ms.
    pub first_ms: i64,
    pub last_ms: i64,
    pub scans: u64,
    /// The weeks that are compared, oldest first.
    pub weeks: Vec<String>,
    /// The weeks of which the log has only a part.
    pub partial_weeks: Vec<String>,
}

/// Counts of the whole log.
#[derive(Debug, Serialize)]
pub struct TotalsReport {
    pub before: StateTotals,
    pub after: StateTotals,
}

#[derive(Debug, Serialize)]
pub struct StateTotals {
    /// Complete lists of players that were ranked.
    pub snapshots: u64,
    /// Complete lists of players that screening treated as partial.
    pub screened_snapshots: u64,
    pub rounds: u64,
}

/// The differences of one board.
#[derive(Debug, Serialize)]
pub struct BoardReport {
    /// Such as `2026-W47`.
    pub week: String,
    /// The log has only a part of the week.
    pub partial: bool,
    pub scope: Scope,
    pub ranking: Ranking,
    pub players_before: u32,
    pub players_after: u32,
    pub players_both: u32,
    /// Players who are only on the new board, and players who are only on the old one.
    pub gained: u32,
    pub lost: u32,
    /// Players on both boards whose position differs, and by how many positions.
    pub moved: u32,
    pub moved_by_median: Option<u32>,
    pub moved_by_p99: Option<u32>,
    /// -1 to 1.
    pub spearman: Option<f64>,
    pub top_ten_entered: Vec<TopChange<NamedPlayer>>,
    pub top_ten_left: Vec<TopChange<NamedPlayer>>,
}

impl BoardReport {
    pub fn new(
        week: String,
        partial: bool,
        scope: &Scope,
        ranking: Ranking,
        compared: Comparison<NamedPlayer>,
    ) -> BoardReport {
        BoardReport {
            week,
            partial,
            scope: scope.clone(),
            ranking,
            players_before: compared.players_before,
            players_after: compared.players_after,
            players_both: compared.players_both,
            gained: compared.gained(),
            lost: compared.lost(),
            moved: compared.moved,
            moved_by_median: compared.moved_by.map(|by| by.median),
            moved_by_p99: compared.moved_by.map(|by| by.p99),
            spearman: compared.spearman,
            top_ten_entered: compared.top_entered,
            top_ten_left: compared.top_left,
        }
    }

    pub fn is_different(&self) -> bool {
        self.moved + self.gained + self.lost > 0
    }
}
