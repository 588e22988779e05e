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
pub const RULES_NUMBER: u32 = 2;

/// The lowest number that this version computes by.
pub const RULES_NUMBER_MIN: u32 = 1;

/// A final list also has the players who were in the list before it, if that list is at most this much older
/// (rules 2, docs/rules.md section 4).
pub const LEFT_AT_END_MS: i64 = 35_000;

/// The winner of a round is sure if the list that revealed its end is at most this much later than the last list of
/// the round (docs/rules.md section 4).
pub const SURE_GAP_MS: i64 = 15_000;

/// And if the points of the last list are those of the list before it, which is older by this to [`LEFT_AT_END_MS`].
pub const UNCHANGED_MS_MIN: i64 = 8_000;

/// All rules that a setting can change.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// [`RULES_NUMBER_MIN`] to [`RULES_NUMBER`].
    pub number: u32,
    pub names: NameRules,
    pub round: RoundRules,
    pub clq2_quarter: Quarter,
    pub elo: EloRules,
    pub screen: ScreenRules,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            number: RULES_NUMBER,
            names: NameRules::default(),
            round: RoundRules::default(),
            clq2_quarter: Quarter::default(),
            elo: EloRules::default(),
            screen: ScreenRules::default(),
        }
    }
}

impl Rules {
    /// Rules 2: players who left in the last seconds of a round are in its final list (docs/rules.md section
    /// 4), and partial lists have counts, games and maps (sections 10 and 14).
    pub fn are_of_2(&self) -> bool {
        self.number >= 2
    }
}
