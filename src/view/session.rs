//! Sessions as answers and exports show them (docs/rules.md section 16).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A presence of a player on a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionView {
    /// The number of the player.
    pub player_key: u32,
    /// The game.
    pub game: String,
    /// The player's name, normalised.
    pub name: String,
    /// The player's name as last seen.
    pub display: String,
    /// The URL of the server.
    pub server: String,
    /// Its host name; empty if there was none.
    pub hostname: String,
    /// Time of the first list with the player, Unix ms.
    pub start_ms: i64,
    /// Time of the last list with the player, Unix ms.
    pub end_ms: i64,
    /// Points collected; absent where the protocol has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<i64>,
    /// The map of the last list.
    pub map: String,
    /// Lists with the player.
    pub seen: u32,
    /// The player is there, as far as is known.
    pub open: bool,
}

/// A player who was on the same servers at the same time as another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Companion {
    /// The number of the player.
    pub player_key: u32,
    /// The name, normalised.
    pub name: String,
    /// The name as last seen.
    pub display: String,
    /// Time together in the newest sessions of the other player, ms.
    pub together_ms: i64,
}

/// The players who were on a server within some time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Visitors {
    /// Number of players.
    pub count: u32,
    /// Those who were there longest, the longest first.
    pub longest: Vec<Visitor>,
}

/// What a player did on a server within some time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Visitor {
    /// The number of the player.
    pub player_key: u32,
    /// The name, normalised.
    pub name: String,
    /// The name as last seen.
    pub display: String,
    /// Length of all sessions, ms.
    pub time_ms: i64,
    /// Points collected; absent where the protocol has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<i64>,
    /// Number of sessions.
    pub sessions: u32,
    /// Time of the last list with the player, Unix ms.
    pub last_ms: i64,
    /// The player is there, as far as is known.
    pub open: bool,
}

impl Visitor {
    /// A player without a session.
    pub fn of(player_key: u32) -> Visitor {
        let (name, display) = (String::new(), String::new());
        Visitor { player_key, name, display, time_ms: 0, points: None, sessions: 0, last_ms: i64::MIN, open: false }
    }
}

/// A complete session as `clqd export --sessions` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExportedSession {
    /// The URL of the server.
    pub server: String,
    /// The game.
    pub game: String,
    /// The name, normalised.
    pub player: String,
    /// Time of the first list with the player, Unix ms.
    pub start: i64,
    /// Time of the last list with the player, Unix ms.
    pub end: i64,
    /// Points collected; absent where the protocol has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<i64>,
    /// The map of the last list.
    pub map: String,
    /// Lists with the player.
    pub seen: u32,
}

impl From<SessionView> for ExportedSession {
    fn from(session: SessionView) -> ExportedSession {
        let SessionView { server, game, name: player, start_ms: start, end_ms: end, points, map, seen, .. } = session;
        ExportedSession { server, game, player, start, end, points, map, seen }
    }
}
