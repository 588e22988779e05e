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

/// All rules that a setting can change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    pub names: NameRules,
    pub round: RoundRules,
    pub clq2_quarter: Quarter,
    pub elo: EloRules,
    pub screen: ScreenRules,
}
