//! Reads committed state: implements [`StateReader`], [`StoreReader`] and [`WindowReader`].

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use serde::de::DeserializeOwned;

use super::error::StoreError;
use super::tree::Tree;
use super::{Reader, Store, keys};
use crate::engine::{ReadError, RemovedPlayer, StateReader, StoreReader, WindowReader};
use crate::model::commit::{MapRowKey, Meta, RowKey};
use crate::model::name::Name;
use crate::model::row::{BestPositions, MapRow, PlayerRow, PlayerWindow};
use crate::model::server::PlayerRecord;
use crate::model::{
    GameKey, MapKey, OutboxEntry, OutboxKey, PlayerKey, Seen, ServerKey, Session, SessionDay, SessionKey, WeekKey,
    WindowKey,
};
use crate::view::board::StorageUse;

/// What has a tree of records.
trait Records {
    fn tree(&self) -> &Tree;

    /// At most `most` records of a range, whose keys end with the key of a player.
    fn of_players<T: DeserializeOwned>(
        &self,
        range: Range<Vec<u8>>,
        most: usize,
    ) -> Result<Vec<(PlayerKey, T)>, ReadError> {
        let mut found = Vec::new();
        if most > 0 {
            self.tree().for_each(range, |key, record| {
                found.push((PlayerKey(keys::read_u32(key, key.len() - 4)), record));
                continue_until(found.len() >= most)
            })?;
        }
        Ok(found)
    }
}

/// Game, name, and display name unless it is the name.
type StoredPlayer = (GameKey, Name, Option<Name>);

fn player_record((game, name, display): StoredPlayer) -> PlayerRecord {
    PlayerRecord { game, display: display.unwrap_or_else(|| name.clone()), name }
}

impl Records for Store {
    fn tree(&self) -> &Tree {
        &self.tree
    }
}

impl Records for Reader {
    fn tree(&self) -> &Tree {
        &self.tree
    }
}

impl<T: Records> StateReader for T {
    fn player(&self, game: GameKey, name: &str) -> Result<Option<(PlayerKey, Name)>, ReadError> {
        let found: Option<(u32, Name)> = self.tree().get(&keys::name(name, game))?;
        Ok(found.map(|(key, display)| (PlayerKey(key), display)))
    }

    fn player_record(&self, player: PlayerKey) -> Result<Option<PlayerRecord>, ReadError> {
        Ok(self.tree().get::<StoredPlayer>(&keys::number_key(keys::PLAYER, player.0))?.map(player_record))
    }

    fn players_after(
        &self,
        after: Option<PlayerKey>,
        most: usize,
    ) -> Result<Vec<(PlayerKey, PlayerRecord)>, ReadError> {
        let from = keys::number_key(keys::PLAYER, after.map_or(0, |player| player.0.saturating_add(1)));
        let found: Vec<(PlayerKey, StoredPlayer)> = self.of_players(from..vec![keys::PLAYER + 1], most)?;
        Ok(found.into_iter().map(|(player, stored)| (player, player_record(stored))).collect())
    }

    fn players_named(&self, name: &str) -> Result<Vec<(GameKey, PlayerKey)>, ReadError> {
        Ok(self.tree().collect_prefix(&keys::name_prefix(name), |key, (player, _): (u32, Name)| {
            (GameKey(keys::read_u32(key, key.len() - 4)), PlayerKey(player))
        })?)
    }

    fn aliases(&self, player: PlayerKey) -> Result<Vec<String>, ReadError> {
        let prefix = keys::number_key(keys::ALIAS, player.0);
        let name = |key: &[u8], (): ()| match std::str::from_utf8(&key[prefix.len()..]) {
            Ok(name) => Ok(name.to_owned()),
            Err(error) => Err(StoreError::corrupt(key, error)),
        };
        Ok(self.tree().collect_prefix(&prefix, name)?.into_iter().collect::<Result<_, _>>()?)
    }

    fn removed_player(&self, player: PlayerKey) -> Result<Option<RemovedPlayer>, ReadError> {
        let into: Option<Option<PlayerKey>> = self.tree().get(&keys::number_key(keys::DELETED_PLAYER, player.0))?;
        Ok(into.map(|into| RemovedPlayer { into }))
    }

    fn removed_players_after(&self, after: Option<PlayerKey>, most: usize) -> Result<Vec<PlayerKey>, ReadError> {
        let from = keys::number_key(keys::DELETED_PLAYER, after.map_or(0, |player| player.0.saturating_add(1)));
        let found = self.of_players::<Option<PlayerKey>>(from..vec![keys::DELETED_PLAYER + 1], most)?;
        Ok(found.into_iter().map(|(player, _)| player).collect())
    }

    fn row(&self, key: RowKey) -> Result<Option<PlayerRow>, ReadError> {
        Ok(self.tree().get(&keys::row(key))?)
    }

    fn rows(&self, window: WindowKey, server: ServerKey) -> Result<Vec<(PlayerKey, PlayerRow)>, ReadError> {
        let prefix = keys::rows_prefix(window, Some(server));
        Ok(self.tree().collect_prefix(&prefix, |key, row| (PlayerKey(keys::read_u32(key, key.len() - 4)), row))?)
    }

    fn rows_after(
        &self,
        window: WindowKey,
        server: ServerKey,
        after: Option<PlayerKey>,
        most: usize,
    ) -> Result<Vec<(PlayerKey, PlayerRow)>, ReadError> {
        let from = match after {
            // The first key after that row's key.
            Some(player) => [keys::row(RowKey { window, server, player }), vec![0]].concat(),
            None => keys::rows_prefix(window, Some(server)),
        };
        self.of_players(from..keys::rows_prefix(window, Some(ServerKey(server.0 + 1))), most)
    }

    fn player_window(&self, window: WindowKey, player: PlayerKey) -> Result<Option<PlayerWindow>, ReadError> {
        Ok(self.tree().get(&keys::player_window(window, player))?)
    }

    fn map_row(&self, key: MapRowKey) -> Result<Option<MapRow>, ReadError> {
        Ok(self.tree().get(&keys::map_row(key))?)
    }

    fn map_rows(&self, week: WeekKey, server: ServerKey) -> Result<Vec<(MapKey, MapRow)>, ReadError> {
        let prefix = keys::map_rows_prefix(week, Some(server));
        Ok(self.tree().collect_prefix(&prefix, |key, row| (MapKey(keys::read_u32(key, key.len() - 4)), row))?)
    }

    fn best(&self, server: ServerKey, player: PlayerKey) -> Result<Option<BestPositions>, ReadError> {
        Ok(self.tree().get(&keys::best(server, player))?)
    }

    fn best_after(
        &self,
        server: ServerKey,
        after: Option<PlayerKey>,
        most: usize,
    ) -> Result<Vec<(PlayerKey, BestPositions)>, ReadError> {
        let from = match after {
            Some(player) => [keys::best(server, player), vec![0]].concat(),
            None => keys::number_key(keys::BEST, server.0),
        };
        self.of_players(from..keys::number_key(keys::BEST, server.0 + 1), most)
    }

    fn servers_with_best(&self, player: PlayerKey) -> Result<Vec<ServerKey>, ReadError> {
        Ok(self.tree().collect_prefix(&keys::number_key(keys::BEST_SERVERS, player.0), |key, (): ()| {
            ServerKey(keys::read_u32(key, 5))
        })?)
    }

    fn rank(&self, week: WeekKey, server: ServerKey) -> Result<Option<u32>, ReadError> {
        Ok(self.tree().get(&keys::rank(week, server))?)
    }

    fn seen(&self, player: PlayerKey) -> Result<Option<Seen>, ReadError> {
        Ok(self.tree().get(&keys::number_key(keys::SEEN, player.0))?)
    }

    fn session(&self, key: &SessionKey) -> Result<Option<Session>, ReadError> {
        Ok(self.tree().get(&keys::session(key))?)
    }

    fn sessions_on(
        &self,
        day: SessionDay,
        server: ServerKey,
        most: usize,
    ) -> Result<Vec<(SessionKey, Session)>, ReadError> {
        let mut found = Vec::new();
        self.tree().for_each_with_prefix(&keys::sessions_prefix(day, server), |key, session| {
            found.push((keys::read_session(day, key), session));
            continue_until(found.len() >= most)
        })?;
        Ok(found)
    }

    fn sessions_of(&self, day: SessionDay, player: PlayerKey, most: usize) -> Result<Vec<SessionKey>, ReadError> {
        let mut found = Vec::new();
        self.tree().for_each_with_prefix(&keys::player_sessions_prefix(day, player), |key, (): ()| {
            found.push(keys::read_player_session(day, key));
            continue_until(found.len() >= most)
        })?;
        Ok(found)
    }
}

fn continue_until(is_enough: bool) -> ControlFlow<()> {
    if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

impl StoreReader for Store {
    fn is_swept(&self, window: WindowKey) -> bool {
        !self.unswept.contains_key(&window)
    }

    fn outbox(&self, after: Option<OutboxKey>, limit: usize) -> Vec<OutboxEntry> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        self.outbox.range((from, Unbounded)).take(limit).map(|(&key, &seq)| OutboxEntry { key, seq }).collect()
    }

    fn outbox_len(&self) -> usize {
        self.outbox.len()
    }

    fn outbox_seq(&self, key: OutboxKey) -> Option<u64> {
        self.outbox.get(&key).copied()
    }

    fn outbox_oldest_session_ms(&self) -> Option<i64> {
        let (server, player, origin) = (ServerKey(0), PlayerKey(0), PlayerKey(0));
        let first = SessionKey { end_ms: i64::MIN, server, player, origin, generation: 0 };
        match self.outbox.range(OutboxKey::Session(first)..).next() {
            Some((OutboxKey::Session(key), _)) => Some(key.end_ms),
            _ => None,
        }
    }

    fn outbox_holds_week(&self, week: WeekKey) -> bool {
        let key = |server| OutboxKey::Week { week, server: ServerKey(server) };
        self.outbox.range(key(0)..=key(u32::MAX)).next().is_some()
    }
}

impl Reader {
    /// The records and bytes of a window, counted by reading all of them: about a second
    /// for a million records.
    pub fn stored_size(&self, window: WindowKey) -> Result<StorageUse, StoreError> {
        let (records, bytes) = self.tree.prefix_size(&keys::window_prefix(window))?;
        Ok(StorageUse { records, bytes })
    }
}

impl Reader {
    /// The key of the next new player, and the number of removed players.
    pub fn player_counts(&self) -> Result<(PlayerKey, u32), StoreError> {
        let meta: Option<Meta> = self.tree.get(&keys::meta())?;
        Ok(meta.map_or((PlayerKey(1), 0), |meta| (PlayerKey(meta.next_player.max(1)), meta.players_removed)))
    }

    /// The names of players whose keys are in a range, those of merged players too, in order of key.
    pub fn each_name(&self, players: Range<u32>, each: &mut dyn FnMut(PlayerKey, &str)) -> Result<(), StoreError> {
        let mut aliases: BTreeMap<PlayerKey, Vec<String>> = BTreeMap::new();
        self.each_alias(players.clone(), &mut |player, alias| {
            aliases.entry(player).or_default().push(alias.to_owned());
        })?;
        let key = |player| keys::number_key(keys::PLAYER, player);
        self.tree.for_each(key(players.start)..key(players.end), |key, (_, name, _): StoredPlayer| {
            let player = PlayerKey(keys::read_u32(key, key.len() - 4));
            each(player, &name);
            aliases.get(&player).into_iter().flatten().for_each(|alias| each(player, alias));
            ControlFlow::Continue(())
        })
    }

    /// The names of players that were merged into players whose keys are in a range, in order of key.
    pub fn each_alias(&self, players: Range<u32>, each: &mut dyn FnMut(PlayerKey, &str)) -> Result<(), StoreError> {
        let key = |player| keys::number_key(keys::ALIAS, player);
        self.tree.for_each(key(players.start)..key(players.end), |key, (): ()| {
            each(PlayerKey(keys::read_u32(key, 1)), &String::from_utf8_lossy(&key[5..]));
            ControlFlow::Continue(())
        })
    }
}

impl Reader {
    /// Map rows of all servers in a week, in order of server.
    pub fn each_map_row(
        &self,
        week: WeekKey,
        each: &mut dyn FnMut(ServerKey, MapKey, MapRow),
    ) -> Result<(), StoreError> {
        let key = |server| keys::map_rows_prefix(week, Some(ServerKey(server)));
        self.tree.for_each(key(0)..key(u32::MAX), |key, row| {
            let (server, map) = (keys::read_u32(key, key.len() - 8), keys::read_u32(key, key.len() - 4));
            each(ServerKey(server), MapKey(map), row);
            ControlFlow::Continue(())
        })
    }

    /// The players of a server with best positions, in order of key.
    pub fn each_best(
        &self,
        server: ServerKey,
        each: &mut dyn FnMut(PlayerKey, BestPositions),
    ) -> Result<(), StoreError> {
        let key = |server| keys::number_key(keys::BEST, server);
        self.tree.for_each(key(server.0)..key(server.0 + 1), |key, best| {
            each(PlayerKey(keys::read_u32(key, key.len() - 4)), best);
            ControlFlow::Continue(())
        })
    }
}

impl WindowReader for Reader {
    fn each_player(
        &self,
        window: WindowKey,
        players: Range<u32>,
        each: &mut dyn FnMut(PlayerKey, PlayerWindow),
    ) -> Result<(), ReadError> {
        let key = |player| keys::player_window(window, PlayerKey(player));
        Ok(self.tree.for_each(key(players.start)..key(players.end), |key, row| {
            each(PlayerKey(keys::read_u32(key, key.len() - 4)), row);
            ControlFlow::Continue(())
        })?)
    }

    fn each_row(
        &self,
        window: WindowKey,
        servers: Range<u32>,
        each: &mut dyn FnMut(ServerKey, PlayerKey, PlayerRow),
    ) -> Result<(), ReadError> {
        let key = |server| keys::rows_prefix(window, Some(ServerKey(server)));
        Ok(self.tree.for_each(key(servers.start)..key(servers.end), |key, row| {
            let (server, player) = (keys::read_u32(key, key.len() - 8), keys::read_u32(key, key.len() - 4));
            each(ServerKey(server), PlayerKey(player), row);
            ControlFlow::Continue(())
        })?)
    }
}

impl Store {
    /// Servers closed for a week, in order of key, with their player-milliseconds.
    pub(super) fn closed_servers(&self, week: WeekKey) -> Result<Vec<(ServerKey, u64)>, StoreError> {
        let prefix = keys::closed_prefix(week);
        self.tree.collect_prefix(&prefix, |key, player_ms| (ServerKey(keys::read_u32(key, key.len() - 4)), player_ms))
    }
}
