//! The published boards: the best players of a game, of a tag or of all games in one window; and
//! totals of the whole site. Both are computed from memory and written by the archive as a whole,
//! without the outbox.

use crate::model::keys::{GameKey, PlayerKey, TagKey};
use crate::model::row::Ranking;
use crate::model::window::WindowKey;

/// Most players of a published board.
pub const TOP_BOARD_PLAYERS_MAX: usize = 1_000;

/// The servers whose players are on the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum TopScope {
    /// All games, in the default order.
    All,
    Game(GameKey),
    Tag(TagKey),
}

impl TopScope {
    /// The name of its type.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Identifies a published board, in the order of publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopBoardKey {
    pub window: WindowKey,
    pub scope: TopScope,
    pub ranking: Ranking,
}

/// The best players of a board at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct TopBoard {
    pub key: TopBoardKey,
    /// Name of the game or tag; empty for all games.
    pub scope_name: String,
    /// Such as `week`.
    pub window_type: String,
    /// Label of the window before, if windows of this type follow each other.
    pub previous_window: Option<String>,
    /// Label of the window, such as `2026-W47`.
    pub window: String,
    /// Start and end (exclusive) of the window, Unix ms; `None`: it has none.
    pub start_ms: Option<i64>,
    pub end_ms: Option<i64>,
    pub closed: bool,
    /// Players on the whole board.
    pub size: u32,
    /// Best first.
    pub entries: Vec<TopEntry>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopEntry {
    pub player: PlayerKey,
    /// In the unit of the ranking in JSON: points per second, points, rating, points, seconds.
    pub score: f64,
    /// When the score was reached, Unix ms.
    pub reached_ms: i64,
}

/// Published boards of a window.
#[derive(Clone, Debug, PartialEq)]
pub enum TopBoards {
    /// The boards after a key. Empty: none is left.
    Next(Vec<TopBoard>),
    /// They are being read into memory.
    Building,
    /// The window no longer exists.
    Deleted,
}

/// Totals of all servers at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteTotals {
    pub now_ms: i64,
    /// Start of the local day, Unix ms.
    pub day_start_ms: i64,
    pub players_known: u64,
    pub servers: u64,
    pub servers_online: u64,
    pub servers_greylisted: u64,
    /// Servers by class 1 to 7.
    pub servers_by_class: [u64; 7],
    /// Online servers and their players by game, in order of game.
    pub online: Vec<OnlineTotal>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnlineTotal {
    pub game: GameKey,
    pub servers: u32,
    pub players: u32,
}
