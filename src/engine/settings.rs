//! The part of the config that the engine uses.

use crate::board::order::{LowIsBetter, Orders, TieBreaker};
use crate::board::window::WindowTypes;
use crate::model::board_order::OrderOverrides;
use crate::model::calendar::Calendar;
use crate::model::{Scope, ServerKey};
use crate::rank::Rules;
use crate::schedule::elastic::{BUDGET, ELASTIC_PLAYERS_MIN};
use crate::schedule::{CLASS1_PLAYERS_MIN, Intervals};

#[derive(Clone, Debug)]
pub struct EngineSettings {
    pub rules: Rules,
    pub intervals: Intervals,
    /// The minimum number of players, by the last count or the median of the last three, for
    /// class 1; at least 1.
    pub class1_players_min: u32,
    /// Mean number of scans of a server with players in an interval of class 1; 0: a fixed grid.
    pub scan_budget: f64,
    /// Players from which a server of class 2 has this budget, too.
    pub elastic_players_min: u32,
    /// The types of windows that boards are kept for, and the calendar of days and weeks.
    pub windows: WindowTypes,
    /// Boards on which the lowest score is best.
    pub low_is_better: Vec<LowIsBetter>,
    /// Boards on which equal scores are ordered by another ranking.
    pub tie_breakers: Vec<TieBreaker>,
    /// The maximum memory of boards of ended windows, bytes.
    pub closed_cache_bytes_max: u64,
    /// Closed weeks whose rows are kept in the state.
    pub keep_weeks: usize,
    /// Weeks after which the best positions of a player who was not seen are dropped; 0: never.
    pub keep_players_weeks: u32,
    /// Days for which complete sessions are kept; 0: not at all.
    pub keep_sessions_days: i64,
    /// Whether there is an archive; without one the outbox stays empty.
    pub archive_enabled: bool,
    /// The maximum number of outbox entries.
    pub outbox_entries_max: usize,
    /// Rows of one server that are read and archived in one job; a larger week is archived in
    /// chunks. 10 ms on the engine's thread, and with their best positions 50,000 rows of MySQL.
    pub archive_chunk_rows: usize,
    /// Set by the engine: the outbox is full.
    pub outbox_full: bool,
    /// The maximum number of records that a tick reads and writes to close a week, or writes to
    /// remove a deleted tag. A row counts as two: it is read, and its best positions are
    /// written. So 3,000 rows: 7 ms on the engine's thread, and 40 ms more in the commit.
    pub week_steps_per_tick: usize,
}

impl EngineSettings {
    /// The orders of the boards of a scope; without a scope, the default orders.
    pub fn orders<'s>(&self, scope: impl Into<Option<&'s Scope>>) -> Orders {
        Orders::for_scope(&self.low_is_better, &self.tie_breakers, scope)
    }

    /// All settings about the order of boards.
    pub(super) fn order_overrides(&self) -> OrderOverrides {
        OrderOverrides { low_is_better: self.low_is_better.clone(), tie_breakers: self.tie_breakers.clone() }
    }
}

impl Default for EngineSettings {
    fn default() -> Self {
        EngineSettings {
            rules: Rules::default(),
            intervals: Intervals::default(),
            class1_players_min: CLASS1_PLAYERS_MIN,
            scan_budget: BUDGET,
            elastic_players_min: ELASTIC_PLAYERS_MIN,
            windows: WindowTypes::new(Calendar::default(), []).expect("weeks alone are valid"),
            low_is_better: Vec::new(),
            tie_breakers: Vec::new(),
            closed_cache_bytes_max: 1 << 30,
            keep_weeks: 4,
            keep_players_weeks: 0,
            keep_sessions_days: 7,
            archive_enabled: false,
            outbox_entries_max: 5_000_000,
            archive_chunk_rows: 5_000,
            outbox_full: false,
            week_steps_per_tick: 6_000,
        }
    }
}

/// How many records are cached across commits, so that they are not read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    /// Names, about 70 bytes each.
    pub names_max: usize,
    /// Records of players in windows, about 50 bytes each: this number, and `player_windows_per_server` for each server.
    pub player_windows_max: usize,
    pub player_windows_per_server: usize,
}

impl CacheLimits {
    /// All caches are cleared with each commit.
    pub const NONE: CacheLimits = CacheLimits { names_max: 0, player_windows_max: 0, player_windows_per_server: 0 };

    pub(super) fn most_player_windows(self, servers_end: ServerKey) -> usize {
        self.player_windows_max + self.player_windows_per_server * servers_end.0 as usize
    }
}

impl Default for CacheLimits {
    fn default() -> CacheLimits {
        // Few names are cached, because servers choose them and could make all of them collide in a
        // hash table.
        CacheLimits { names_max: 10_000, player_windows_max: 2_000_000, player_windows_per_server: 8 }
    }
}
