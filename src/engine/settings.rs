//! What of the config the engine needs.

use crate::board::order::{LowIsBetter, Orders, TieBreak};
use crate::board::window::WindowTypes;
use crate::model::Scope;
use crate::model::board_order::OrderOverrides;
use crate::model::calendar::Calendar;
use crate::rank::Rules;
use crate::schedule::{CLASS1_PLAYERS_MIN, Intervals};

#[derive(Clone, Debug)]
pub struct EngineSettings {
    pub rules: Rules,
    pub intervals: Intervals,
    /// Least players, by the last count or the median of the last three, that make a
    /// server class 1; from 1 on.
    pub class1_players_min: u32,
    /// The types of windows that boards are kept for, and the calendar of days
    /// and weeks.
    pub windows: WindowTypes,
    /// Boards on which the lowest score is best.
    pub low_is_better: Vec<LowIsBetter>,
    /// Boards on which equal scores are parted by another ranking.
    pub tie_breaks: Vec<TieBreak>,
    /// Most memory that the boards of windows that are over may take, bytes.
    pub ended_boards_bytes_max: u64,
    /// Closed weeks whose rows are kept in state.
    pub keep_weeks: usize,
    /// Whether there is an archive; if not, the outbox stays empty.
    pub archive_enabled: bool,
    /// Most entries in the outbox.
    pub outbox_entries_max: usize,
    /// Rows of one server that are read and archived at one go; a week of more goes
    /// in parts. 10 ms on the engine's thread, and with their best positions 50,000
    /// rows of MySQL.
    pub archive_part_rows: usize,
    /// Set by the engine: the outbox is at its limit.
    pub outbox_full: bool,
    /// Most records read and written by one tick to close a week, and written without a
    /// tag that was dropped. A row is two: read, and its
    /// best positions written. So 3,000 rows: on the engine's thread 7 ms, and 40 ms
    /// more in the commit.
    pub week_steps_per_tick: usize,
}

impl EngineSettings {
    /// How the boards of a scope are ordered; without one, those of scopes that
    /// the settings do not name.
    pub fn orders<'s>(&self, scope: impl Into<Option<&'s Scope>>) -> Orders {
        Orders::for_scope(&self.low_is_better, &self.tie_breaks, scope)
    }

    /// All that the settings say about the order of boards.
    pub fn order_overrides(&self) -> OrderOverrides {
        OrderOverrides { low_is_better: self.low_is_better.clone(), ties: self.tie_breaks.clone() }
    }
}

impl Default for EngineSettings {
    fn default() -> Self {
        EngineSettings {
            rules: Rules::default(),
            intervals: Intervals::default(),
            class1_players_min: CLASS1_PLAYERS_MIN,
            windows: WindowTypes::new(Calendar::default(), []).expect("weeks alone fit"),
            low_is_better: Vec::new(),
            tie_breaks: Vec::new(),
            ended_boards_bytes_max: 1 << 30,
            keep_weeks: 4,
            archive_enabled: false,
            outbox_entries_max: 5_000_000,
            archive_part_rows: 5_000,
            outbox_full: false,
            week_steps_per_tick: 6_000,
        }
    }
}
