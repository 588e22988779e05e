//! What the engine reads: committed state through a trait, and the part that is in memory.

use crate::model::commit::{MapRowKey, Meta, RowKey};
use crate::model::name::Name;
use crate::model::packed_series::PackedSeries;
use crate::model::row::{BestPositions, MapRow, PlayerRow, PlayerWindow};
use crate::model::server::{PlayerRecord, ServerRecord};
use crate::model::{
    GameKey, MapKey, NameHash, OutboxEntry, OutboxKey, PlayerKey, Seen, ServerKey, Session, SessionDay, SessionKey,
    TagKey, WeekKey, WindowKey,
};

/// A player who was merged or forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovedPlayer {
    /// The player that they were merged into; `None`: they were forgotten.
    pub into: Option<PlayerKey>,
}

/// A record cannot be read: what the store says.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ReadError(Box<dyn std::error::Error + Send + Sync>);

impl ReadError {
    pub fn new(error: impl std::error::Error + Send + Sync + 'static) -> ReadError {
        ReadError(Box::new(error))
    }

    /// The error as the reader made it.
    pub fn into_inner(self) -> Box<dyn std::error::Error + Send + Sync> {
        self.0
    }
}

/// The committed records. Reads see every applied commit.
pub trait StateReader {
    /// Key and display name of a player.
    fn player(&self, game: GameKey, name: &str) -> Result<Option<(PlayerKey, Name)>, ReadError>;
    fn player_record(&self, player: PlayerKey) -> Result<Option<PlayerRecord>, ReadError>;
    /// Returns at most `most` players with a key above `after` (from the first, without one).
    fn players_after(&self, after: Option<PlayerKey>, most: usize)
    -> Result<Vec<(PlayerKey, PlayerRecord)>, ReadError>;
    /// All players with this normalised name, in order of game.
    fn players_named(&self, name: &str) -> Result<Vec<(GameKey, PlayerKey)>, ReadError>;
    /// Aliases of a player: names other than the one in their record, in order.
    fn aliases(&self, player: PlayerKey) -> Result<Vec<String>, ReadError>;
    /// What happened to a removed player. `None`: the player exists or never existed.
    fn removed_player(&self, player: PlayerKey) -> Result<Option<RemovedPlayer>, ReadError>;
    /// Returns at most `most` removed players with a key above `after` (from the first, without
    /// one).
    fn removed_players_after(&self, after: Option<PlayerKey>, most: usize) -> Result<Vec<PlayerKey>, ReadError>;

    fn row(&self, key: RowKey) -> Result<Option<PlayerRow>, ReadError>;
    /// Rows of a server, in order of player key.
    fn rows(&self, window: WindowKey, server: ServerKey) -> Result<Vec<(PlayerKey, PlayerRow)>, ReadError>;
    /// Returns at most `most` rows of a server with a player key above `after` (from the first,
    /// without one).
    fn rows_after(
        &self,
        window: WindowKey,
        server: ServerKey,
        after: Option<PlayerKey>,
        most: usize,
    ) -> Result<Vec<(PlayerKey, PlayerRow)>, ReadError>;
    fn player_window(&self, window: WindowKey, player: PlayerKey) -> Result<Option<PlayerWindow>, ReadError>;

    fn map_row(&self, key: MapRowKey) -> Result<Option<MapRow>, ReadError>;
    /// In order of map key.
    fn map_rows(&self, week: WeekKey, server: ServerKey) -> Result<Vec<(MapKey, MapRow)>, ReadError>;

    fn best(&self, server: ServerKey, player: PlayerKey) -> Result<Option<BestPositions>, ReadError>;
    /// Returns the best positions on a server of at most `most` players with a key above `after` (from the first,
    /// without one).
    fn best_after(
        &self,
        server: ServerKey,
        after: Option<PlayerKey>,
        most: usize,
    ) -> Result<Vec<(PlayerKey, BestPositions)>, ReadError>;
    /// Servers on which a player has best positions, in order.
    fn servers_with_best(&self, player: PlayerKey) -> Result<Vec<ServerKey>, ReadError>;
    fn rank(&self, week: WeekKey, server: ServerKey) -> Result<Option<u32>, ReadError>;

    fn seen(&self, player: PlayerKey) -> Result<Option<Seen>, ReadError>;
    fn session(&self, key: &SessionKey) -> Result<Option<Session>, ReadError>;
    /// Returns at most `most` sessions that ended on a server on a day, the latest first.
    fn sessions_on(
        &self,
        day: SessionDay,
        server: ServerKey,
        most: usize,
    ) -> Result<Vec<(SessionKey, Session)>, ReadError>;
    /// Returns at most `most` sessions of a player that ended on a day, the latest first.
    fn sessions_of(&self, day: SessionDay, player: PlayerKey, most: usize) -> Result<Vec<SessionKey>, ReadError>;
}

/// What the engine reads from a store besides records: what waits to be archived or removed.
pub trait StoreReader: StateReader {
    /// Whether all records of a deleted window are deleted.
    fn is_swept(&self, window: WindowKey) -> bool;

    /// Entries after `after` (from the first, without one) in archiving order.
    fn outbox(&self, after: Option<OutboxKey>, limit: usize) -> Vec<OutboxEntry>;
    fn outbox_len(&self) -> usize;
    /// The number of the last change of an entry; `None`: it is not in the outbox.
    fn outbox_seq(&self, key: OutboxKey) -> Option<u64>;
    /// When the oldest session in the outbox ended, Unix ms.
    fn outbox_oldest_session_ms(&self) -> Option<i64>;
    /// Whether the outbox contains a server's week of this week.
    fn outbox_holds_week(&self, week: WeekKey) -> bool;
}

/// The part of the state that is held in memory, as the store returns it at start.
#[derive(Debug, Default)]
pub struct LoadedState {
    pub meta: Meta,
    pub games: Vec<(GameKey, String)>,
    pub maps: Vec<(MapKey, String)>,
    pub tags: Vec<(TagKey, String)>,
    pub servers: Vec<(ServerKey, ServerRecord, Option<PackedSeries>)>,
    /// Hashes of forgotten names, each with the time of the request, Unix ms.
    pub forgotten: Vec<(NameHash, i64)>,
    /// For the week that is being closed: its closed servers in order of key, each with its
    /// player-milliseconds.
    pub closed_servers: Option<(WeekKey, Vec<(ServerKey, u64)>)>,
    /// When everything pending was last in the archive, Unix ms.
    pub archive_complete_ms: Option<i64>,
}
