//! What answers are computed from.

use super::error::ApiError;
use super::status::{Status, StoreStatus};
use crate::engine::{ReadModel, StateReader};
use crate::model::search_text::Match;
use crate::model::{MapKey, PlayerKey, ServerKey, ServerUrl, WindowKey};
use crate::view::board::StorageUse;
use crate::view::history::{BestPlayers, MapTotals, MapWeekView};
use crate::view::{PlayerNameView, ServerDetail};

/// What an engine or a replica answers from, and a reader of its records.
pub struct StateView<'s> {
    pub model: &'s ReadModel,
    pub reader: &'s dyn StateReader,
    /// Pending entries of the outbox.
    pub outbox_entries: u64,
    /// Batches of scan results that wait for the engine.
    pub outcomes_queued: u64,
    /// `None`: there is no daemon.
    pub store: Option<&'s StoreStatus>,
}

impl StateView<'_> {
    /// The names of the given players that exist.
    pub fn player_names(&self, players: Vec<PlayerKey>) -> Result<Vec<PlayerNameView>, ApiError> {
        let names = players.into_iter().filter_map(|player| self.model.player_name(self.reader, player).transpose());
        names.collect::<Result<_, _>>().map_err(ApiError::internal)
    }
}

/// The daemon, or a command that reads a state directory. The daemon keeps indexes and sums; a command computes them for
/// one answer. A method may wait for the disk.
pub trait Host {
    /// Calls `read` once with the state of one moment. A view is not held for long, because that delays the next one.
    fn with_view(&self, read: &mut dyn FnMut(&StateView<'_>)) -> Result<(), ApiError>;

    /// Players whose names have all words of the text, the best matches first, then the newest.
    fn find_players(&self, text: &str, count: usize) -> Result<Vec<(Match, PlayerKey)>, ApiError>;

    /// Servers whose host name has all words of the text, or whose address contains it.
    fn find_servers(&self, text: &str) -> Result<Vec<ServerKey>, ApiError>;

    /// A map in all kept weeks.
    fn weeks_of_map(&self, map: MapKey) -> Result<Vec<MapWeekView>, ApiError>;

    /// The most played maps, or those whose name a text finds.
    fn most_played_maps(&self, text: Option<&str>, count: usize) -> Result<Vec<MapTotals>, ApiError>;

    /// The players with the best positions on a server in closed weeks.
    fn best_players(&self, server: &ServerUrl) -> Result<BestPlayers, ApiError>;

    /// The use of the state directory by each of these windows: about a second for a million records.
    fn stored_sizes(&self, windows: &[WindowKey]) -> Result<Vec<StorageUse>, ApiError>;

    /// Adds what the engine does not know.
    fn complete_status(&self, status: &mut Status) -> Result<(), ApiError>;

    /// Removes what only a running daemon knows.
    fn complete_server(&self, _: &mut ServerDetail) {}
}

impl dyn Host + '_ {
    /// Reads the state of one moment.
    pub fn read<T>(&self, read: impl FnOnce(&StateView<'_>) -> T) -> Result<T, ApiError> {
        let (mut read, mut result) = (Some(read), None);
        self.with_view(&mut |view| result = read.take().map(|read| read(view)))?;
        Ok(result.expect("it was called once"))
    }
}
