//! Presence, rounds, CLQ1, CLQ2, ELO: the results of successive snapshots (docs/rules.md sections 2 to
//! 8).
//!
//! Pure functions of lists and numbers. The engine decides to which records the results are
//! credited.

pub mod clq1;
pub mod clq2;
pub mod elo;
pub mod estimate;
pub mod player_list;
pub mod points;
pub mod round;
pub mod screen;
pub mod server_ranks;

pub use clq2::Quarter;
pub use elo::EloRules;
pub use round::RoundRules;
pub use screen::ScreenRules;

pub use crate::rank::player_list::NameRules;

/// A server unseen for longer than this was invisible: all players have left and joined again
/// (docs/rules.md section 3). Also the length of a CLQ1 segment (section 5).
pub const INVISIBLE_GAP_MS: i64 = 720_000;

/// The number of the rules that this version computes by. It grows with every change of a result that is
/// computed from the same events; the log records it, so a replay knows by which rules each event was applied.
/// A version computes by the rules of this number and of the one before it (`rules.number` in the config).
/// `tests/rules/golden_log.rs` fails if results change and the number does not.
pub const RULES_NUMBER: u32 = 1;

/// The lowest number that this version computes by. A log without a number is of 1.
pub const RULES_NUMBER_MIN: u32 = 1;

/// All rules that a setting can change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    pub names: NameRules,
    pub round: RoundRules,
    pub clq2_quarter: Quarter,
    pub elo: EloRules,
    pub screen: ScreenRules,
}
