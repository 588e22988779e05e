//! What was known before a replay begins (docs/rules.md section 14.4).
//!
//! A second engine that rebuilds windows begins with an empty state: all names are new to it. Those that the first engine
//! knew before the log begins spend no quota, as they spent none when the scans were made.

use std::fmt;

use super::key_table::KeyTable;
use super::{ReadError, StateReader};
use crate::model::GameKey;

pub struct KnownBefore {
    pub(super) games: KeyTable,
    pub(super) maps: KeyTable,
    pub(super) players: Box<dyn StateReader + Send + Sync>,
    /// Players who were first seen from then on are new to the replay, too, Unix ms.
    pub(super) until_ms: i64,
}

impl KnownBefore {
    pub(super) fn has_game(&self, name: &str) -> bool {
        self.games.find(name).is_some()
    }

    pub(super) fn has_map(&self, name: &str) -> bool {
        self.maps.find(name).is_some()
    }

    /// Without the time of the first session, a player counts as known before.
    pub(super) fn has_player(&self, game: &str, name: &str) -> Result<bool, ReadError> {
        let Some(game) = self.games.find(game) else { return Ok(false) };
        let Some((player, _)) = self.players.player(GameKey(game), name)? else { return Ok(false) };
        let first_ms = self.players.seen(player)?.and_then(|seen| seen.first_ms);
        Ok(first_ms.is_none_or(|first_ms| first_ms < self.until_ms))
    }
}

impl fmt::Debug for KnownBefore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownBefore").field("until_ms", &self.until_ms).finish_non_exhaustive()
    }
}
