//! What the engine reads of committed state.

use std::ops::Range;

use serde::de::DeserializeOwned;

use super::{Reader, Store, StoreError, corrupt, decode, failed, keys};
use crate::engine::{Gone, Source, WindowSource};
use crate::model::board_view::Stored;
use crate::model::commit::{MapRowKey, RowKey};
use crate::model::row::{BestPositions, MapRow, PlayerWindow, WeekRow};
use crate::model::server::PlayerRecord;
use crate::model::{GameKey, MapKey, OutboxEntry, OutboxKey, PlayerKey, ServerKey, WeekKey, WindowKey};

impl Source for Store {
    type Error = StoreError;

    fn player(&self, game: GameKey, name: &str) -> Result<Option<(PlayerKey, String)>, StoreError> {
        let found: Option<(u32, String)> = self.get(&keys::name(name, game))?;
        Ok(found.map(|(key, display)| (PlayerKey(key), display)))
    }

    fn player_record(&self, player: PlayerKey) -> Result<Option<PlayerRecord>, StoreError> {
        let key = keys::of(keys::PLAYER, player.0);
        let Some((game, name)) = self.get::<(GameKey, String)>(&key)? else { return Ok(None) };
        let (_, display) = self.player(game, &name)?.ok_or_else(|| corrupt(&key, "its name is not known"))?;
        Ok(Some(PlayerRecord { game, name, display }))
    }

    fn players_named(&self, name: &str) -> Result<Vec<(GameKey, PlayerKey)>, StoreError> {
        self.scan(keys::name_prefix(name), |key, (player, _): (u32, String)| {
            (GameKey(keys::read_u32(key, key.len() - 4)), PlayerKey(player))
        })
    }

    fn aliases(&self, player: PlayerKey) -> Result<Vec<String>, StoreError> {
        let prefix = keys::of(keys::ALIAS, player.0);
        let mut names = Vec::new();
        for key in self.db.scan_prefix(&prefix).keys() {
            let key = key.map_err(|e| self.failed(e))?;
            let name = std::str::from_utf8(&key[prefix.len()..]).map_err(|e| corrupt(&key, &e.to_string()))?;
            names.push(name.to_owned());
        }
        Ok(names)
    }

    fn gone(&self, player: PlayerKey) -> Result<Option<Gone>, StoreError> {
        let into: Option<Option<PlayerKey>> = self.get(&keys::of(keys::GONE, player.0))?;
        Ok(into.map(|into| Gone { into }))
    }

    fn row(&self, key: RowKey) -> Result<Option<WeekRow>, StoreError> {
        self.get(&keys::row(key))
    }

    fn rows(&self, window: WindowKey, server: ServerKey) -> Result<Vec<(PlayerKey, WeekRow)>, StoreError> {
        let prefix = keys::rows_prefix(window, Some(server));
        self.scan(prefix, |key, row| (PlayerKey(keys::read_u32(key, key.len() - 4)), row))
    }

    fn rows_after(
        &self,
        window: WindowKey,
        server: ServerKey,
        after: Option<PlayerKey>,
        most: usize,
    ) -> Result<Vec<(PlayerKey, WeekRow)>, StoreError> {
        use std::ops::Bound::{Excluded, Included};
        let from = match after {
            Some(player) => Excluded(keys::row(RowKey { window, server, player })),
            None => Included(keys::rows_prefix(window, Some(server))),
        };
        let end = keys::rows_prefix(window, Some(ServerKey(server.0 + 1)));
        self.decoded(self.db.range((from, Excluded(end))).take(most), |key, row| {
            (PlayerKey(keys::read_u32(key, key.len() - 4)), row)
        })
    }

    fn player_window(&self, window: WindowKey, player: PlayerKey) -> Result<Option<PlayerWindow>, StoreError> {
        self.get(&keys::player_window(window, player))
    }

    fn is_swept(&self, window: WindowKey) -> bool {
        !self.sweep.contains(&window)
    }

    fn map_row(&self, key: MapRowKey) -> Result<Option<MapRow>, StoreError> {
        self.get(&keys::map_row(key))
    }

    fn map_rows(&self, week: WeekKey, server: ServerKey) -> Result<Vec<(MapKey, MapRow)>, StoreError> {
        let prefix = keys::map_rows_prefix(week, Some(server));
        self.scan(prefix, |key, row| (MapKey(keys::read_u32(key, key.len() - 4)), row))
    }

    fn best(&self, server: ServerKey, player: PlayerKey) -> Result<Option<BestPositions>, StoreError> {
        self.get(&keys::best(server, player))
    }

    fn servers_with_best(&self, player: PlayerKey) -> Result<Vec<ServerKey>, StoreError> {
        let keys = self.db.scan_prefix(keys::of(keys::BEST_OF, player.0)).keys();
        keys.map(|key| Ok(ServerKey(keys::read_u32(&key.map_err(|e| self.failed(e))?, 5)))).collect()
    }

    fn rank(&self, week: WeekKey, server: ServerKey) -> Result<Option<u32>, StoreError> {
        self.get(&keys::rank(week, server))
    }

    fn outbox(&self, after: Option<OutboxKey>, limit: usize) -> Vec<OutboxEntry> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        self.outbox.range((from, Unbounded)).take(limit).map(|(&key, &seq)| OutboxEntry { key, seq }).collect()
    }

    fn outbox_len(&self) -> usize {
        self.outbox.len()
    }

    fn outbox_holds_week(&self, week: WeekKey) -> bool {
        let key = |server| OutboxKey::Week { week, server: ServerKey(server) };
        self.outbox.range(key(0)..=key(u32::MAX)).next().is_some()
    }
}

impl Reader {
    /// What a window holds, found by reading all of it: about a second for a
    /// million records.
    pub fn stored(&self, window: WindowKey) -> Result<Stored, StoreError> {
        let mut stored = Stored::default();
        for item in self.db.scan_prefix(keys::window_prefix(window)) {
            let (key, value) = item.map_err(|e| failed(&self.path, e))?;
            stored.records += 1;
            stored.bytes += (key.len() + value.len()) as u64;
        }
        Ok(stored)
    }
}

impl WindowSource for Reader {
    type Error = StoreError;

    fn each_player(
        &self,
        window: WindowKey,
        players: Range<u32>,
        each: &mut dyn FnMut(PlayerKey, PlayerWindow),
    ) -> Result<(), StoreError> {
        let key = |player| keys::player_window(window, PlayerKey(player));
        self.range(key(players.start)..key(players.end), |key, of_player| {
            each(PlayerKey(keys::read_u32(key, key.len() - 4)), of_player);
        })
    }

    fn each_row(
        &self,
        window: WindowKey,
        servers: Range<u32>,
        each: &mut dyn FnMut(ServerKey, PlayerKey, WeekRow),
    ) -> Result<(), StoreError> {
        let key = |server| keys::rows_prefix(window, Some(ServerKey(server)));
        self.range(key(servers.start)..key(servers.end), |key, row| {
            let (server, player) = (keys::read_u32(key, key.len() - 8), keys::read_u32(key, key.len() - 4));
            each(ServerKey(server), PlayerKey(player), row);
        })
    }
}

impl Reader {
    fn range<T: DeserializeOwned>(
        &self,
        keys: Range<Vec<u8>>,
        mut each: impl FnMut(&[u8], T),
    ) -> Result<(), StoreError> {
        for item in self.db.range(keys) {
            let (key, value) = item.map_err(|e| failed(&self.path, e))?;
            each(&key, decode(&key, &value)?);
        }
        Ok(())
    }
}

impl Store {
    /// Whether these bytes stand anywhere in what is stored, in a key or a record.
    /// Reads everything.
    pub fn holds_bytes(&self, bytes: &[u8]) -> Result<bool, StoreError> {
        let found = |stored: &[u8]| stored.windows(bytes.len().max(1)).any(|window| window == bytes);
        for item in self.db.iter() {
            let (key, record) = item.map_err(|e| self.failed(e))?;
            if found(&key) || found(&record) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Servers closed for a week, in order of key, with their player-milliseconds.
    pub(super) fn closed(&self, week: WeekKey) -> Result<Vec<(ServerKey, u64)>, StoreError> {
        let prefix = keys::closed_prefix(week);
        self.scan(prefix, |key, player_ms| (ServerKey(keys::read_u32(key, key.len() - 4)), player_ms))
    }

    fn scan<T: DeserializeOwned, R>(
        &self,
        prefix: Vec<u8>,
        each: impl Fn(&[u8], T) -> R,
    ) -> Result<Vec<R>, StoreError> {
        self.decoded(self.db.scan_prefix(prefix), each)
    }

    fn decoded<T: DeserializeOwned, R>(
        &self,
        items: impl Iterator<Item = sled::Result<(sled::IVec, sled::IVec)>>,
        each: impl Fn(&[u8], T) -> R,
    ) -> Result<Vec<R>, StoreError> {
        let mut found = Vec::new();
        for item in items {
            let (key, value) = item.map_err(|e| self.failed(e))?;
            let record = decode(&key, &value)?;
            found.push(each(&key, record));
        }
        Ok(found)
    }
}
