//! The steps of a rebuild of windows, as a log records them (docs/rules.md section 13). They have names instead
//! of keys, and absolute values: a step can be applied again.

use serde::{Deserialize, Serialize};

use super::ServerUrl;
use super::commit::WindowState;
use super::name::Name;
use super::row::{MapRow, PlayerRow, Rating};
use super::window::WindowKey;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rebuild", rename_all = "snake_case")]
pub enum RebuildStep {
    /// Types of windows are new or have changed: their windows are rebuilt from a log that begins at this time, Unix ms.
    /// `None`: they begin empty.
    Types {
        from_ms: Option<i64>,
    },
    /// The rows of these windows are replaced from now on, one server after the other. Until the end, or until it is given up,
    /// a week among them is not closed.
    Begin {
        windows: Vec<WindowState>,
    },
    Server(Box<RebuiltServer>),
    Players(RebuiltPlayers),
    /// These windows are not replaced any more, and keep the rows that they have.
    GiveUp {
        windows: Vec<WindowKey>,
    },
    End {},
}

/// Rows of one server in one window. A server with many rows has several of these.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RebuiltServer {
    pub window: WindowKey,
    pub server: ServerUrl,
    pub rows: Vec<RebuiltRow>,
    /// Players whose rows are deleted: game and normalised name.
    pub removed: Vec<(String, Name)>,
    /// Maps with their times; only of weeks.
    pub maps: Vec<(String, MapRow)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RebuiltRow {
    pub game: String,
    /// Normalised.
    pub name: Name,
    /// As last seen.
    pub display: Name,
    pub row: PlayerRow,
}

/// What does not follow from the rows, of some players in one window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RebuiltPlayers {
    pub window: WindowKey,
    pub players: Vec<RebuiltPlayer>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RebuiltPlayer {
    pub game: String,
    /// Normalised.
    pub name: Name,
    /// Servers on which the player has rows, in order of appearance.
    pub servers: Vec<ServerUrl>,
    pub game_rating: Option<Rating>,
    /// By tag.
    pub tag_ratings: Vec<(String, Rating)>,
}

impl RebuildStep {
    /// Number of rows and players that it changes.
    pub fn rows(&self) -> usize {
        match self {
            RebuildStep::Server(of_server) => of_server.rows.len() + of_server.removed.len() + of_server.maps.len(),
            RebuildStep::Players(RebuiltPlayers { players, .. }) => players.len(),
            _ => 0,
        }
    }

    /// The names of players, each with its game: they can be replaced.
    pub fn names_mut(&mut self) -> Vec<(&str, &mut Name, Option<&mut Name>)> {
        match self {
            RebuildStep::Server(of_server) => {
                let rows = of_server.rows.iter_mut().map(|it| (&*it.game, &mut it.name, Some(&mut it.display)));
                rows.chain(of_server.removed.iter_mut().map(|(game, name)| (&**game, name, None))).collect()
            }
            RebuildStep::Players(RebuiltPlayers { players, .. }) => {
                players.iter_mut().map(|it| (&*it.game, &mut it.name, None)).collect()
            }
            RebuildStep::Types { .. }
            | RebuildStep::Begin { .. }
            | RebuildStep::GiveUp { .. }
            | RebuildStep::End {} => Vec::new(),
        }
    }
}
