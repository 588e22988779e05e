//! The state of the engine that belongs to no single server.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::boards::cache::BoardCache;
use super::key_table::KeyTable;
use super::known_before::KnownBefore;
use super::names::cache::NameCache;
use super::outbox::changes::ArchiveChanges;
use super::pending::Pending;
use super::player_windows::PlayerWindowCache;
use super::published::Published;
use super::windows::current::CurrentWindows;
use super::{CacheLimits, EngineSettings, ReadError, StateReader};
use crate::model::calendar::Calendar;
use crate::model::commit::{Meta, WeekPhase, WeekState};
use crate::model::name::Name;
use crate::model::row::BestPositions;
use crate::model::{GameKey, MapKey, NameHash, OutboxKey, PlayerKey, ServerKey, WeekKey, WindowType};

/// Servers whose names are read, and counted as changed, together.
pub const SERVER_NAMES_CHUNK: u32 = 16_384;

/// All state of the engine except the servers: rules, key tables, and the changes for the next
/// commit.
#[derive(Debug)]
pub(super) struct GlobalState {
    pub(super) settings: Arc<EngineSettings>,
    /// Only shown. Shared with replicas.
    pub(super) published: Arc<Published>,
    pub(super) calendar: Calendar,
    pub(super) meta: Meta,
    pub(super) games: KeyTable,
    pub(super) maps: KeyTable,
    pub(super) tags: KeyTable,
    /// The windows that snapshots are credited to now.
    pub(super) current_windows: CurrentWindows,
    pub(super) name_cache: NameCache,
    /// `None`: nothing but what is in this state.
    pub(super) known_before: Option<Arc<KnownBefore>>,
    pub(super) player_windows: PlayerWindowCache,
    pub(super) cache_limits: CacheLimits,
    pub(super) board_cache: BoardCache,
    /// Window types that differ from those in the state.
    pub(super) changed_types: Vec<WindowType>,
    pub(super) pending: Pending,
    /// When everything pending was last in the archive, Unix ms. A restart keeps it.
    pub(super) archive_complete_ms: Option<i64>,
    /// Rows to archive, of the weeks in the outbox.
    pub(super) archive_changes: ArchiveChanges,
    /// The first player key without any record in the store: this player and later ones are new
    /// since the last commit.
    pub(super) first_uncommitted_player: PlayerKey,
    /// Hashes of forgotten names, each with the time of the request, Unix ms.
    pub(super) forgotten: Arc<FxHashMap<NameHash, i64>>,
    /// Forgotten names that were found in the last outcome.
    pub(super) blanked_names: Vec<Name>,
    /// Gains that overflowed a sum of points, since the start.
    pub(super) points_saturated: u64,
    /// Servers that replicas lack, some several times. `None`: there are no replicas.
    pub(super) changed_servers: Option<Vec<ServerKey>>,
    /// See [`ReadModel::server_name_changes`](super::ReadModel::server_name_changes).
    pub(super) server_name_changes: Vec<u64>,
}

impl GlobalState {
    pub(super) fn game_key(&mut self, name: &str) -> GameKey {
        let (key, new) = self.games.intern(name);
        if new {
            self.meta.next_game = key + 1;
            self.pending.meta = true;
            self.pending.games.push((GameKey(key), name.to_owned()));
            self.enqueue(OutboxKey::Game(GameKey(key)));
            self.update_board_orders();
        }
        GameKey(key)
    }

    pub(super) fn map_key(&mut self, name: &str) -> MapKey {
        let (key, new) = self.maps.intern(name);
        if new {
            self.meta.next_map = key + 1;
            self.pending.meta = true;
            self.pending.maps.push((MapKey(key), name.to_owned()));
            self.enqueue(OutboxKey::Map(MapKey(key)));
        }
        MapKey(key)
    }

    /// A server was added or removed, or has another host name.
    pub(super) fn server_name_changed(&mut self, server: ServerKey) {
        let chunk = (server.0 / SERVER_NAMES_CHUNK) as usize;
        if self.server_name_changes.len() <= chunk {
            self.server_name_changes.resize(chunk + 1, 0);
        }
        self.server_name_changes[chunk] += 1;
    }

    /// The phase of a week. A new week is opened; a week older than the oldest one that still
    /// has rows is closed.
    pub(super) fn week_phase(&mut self, week: WeekKey) -> WeekPhase {
        let weeks = &mut self.meta.weeks;
        match weeks.binary_search_by_key(&week, |state| state.week) {
            Ok(at) => weeks[at].phase,
            Err(0) if !weeks.is_empty() => WeekPhase::Closed,
            Err(at) => {
                weeks.insert(at, WeekState { week, phase: WeekPhase::Running });
                self.pending.meta = true;
                WeekPhase::Running
            }
        }
    }

    pub(super) fn set_week_phase(&mut self, week: WeekKey, phase: WeekPhase) {
        if let Some(state) = self.meta.weeks.iter_mut().find(|state| state.week == week) {
            state.phase = phase;
            self.pending.meta = true;
        }
    }

    /// Notes that replicas lack a change of a server.
    pub(super) fn note_for_replicas(&mut self, server: ServerKey) {
        self.changed_servers.iter_mut().for_each(|changed| changed.push(server));
    }

    /// The record of a server has changed.
    pub(super) fn server_changed(&mut self, server: ServerKey) {
        self.server_record_changed(server);
        self.enqueue(OutboxKey::Server(server));
    }

    /// The record of a server has changed, but nothing of it that the archive has.
    pub(super) fn server_record_changed(&mut self, server: ServerKey) {
        self.pending.servers.insert(server);
        self.note_for_replicas(server);
    }

    /// Best positions that are committed. Records that the player will have some, if there are
    /// none; `week` is their first week.
    pub(super) fn best_or_new(
        &mut self,
        source: &dyn StateReader,
        server: ServerKey,
        player: PlayerKey,
        week: Option<WeekKey>,
    ) -> Result<BestPositions, ReadError> {
        Ok(source.best(server, player)?.unwrap_or_else(|| {
            self.pending.new_best.push((player, server));
            let since = week.filter(|_| self.meta.players_dropped.is_some());
            BestPositions::known_since(since)
        }))
    }

    /// Removes the positions of a week from the best ones of a player.
    pub(super) fn remove_best(
        &mut self,
        source: &dyn StateReader,
        week: WeekKey,
        server: ServerKey,
        player: PlayerKey,
    ) -> Result<(), ReadError> {
        let best = match self.pending.best.get(&(server, player)) {
            Some(best) => Some(best.clone()),
            None => source.best(server, player)?,
        };
        if let Some(mut best) = best
            && best.remove_week(week)
        {
            self.pending.best.insert((server, player), best);
        }
        Ok(())
    }
}
