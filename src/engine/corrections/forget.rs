//! Forgets a player: deletes all their data, and never stores, lists, ranks or archives their
//! names again. Only a hash of each name is kept ([`NameHash`]) to recognise it.
//!
//! Ratings of other players do not change.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::{CorrectionError, Engine, ReadError, ReadModel, RemovedPlayer, StateReader, ViewError};
use crate::model::name::Name;
use crate::model::server::ServerRecord;
use crate::model::{ForgottenPlaceholder, GameKey, NameHash, PlayerKey, ServerKey, Snapshot};
use crate::rank::NameRules;
use crate::view::board::PlayerSelector;

/// The effect of forgetting a player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgetResult {
    pub player: PlayerKey,
    /// One hash for each name of the player.
    pub hashes: Vec<NameHash>,
    /// Deleted rows on servers, in all windows.
    pub rows: usize,
}

impl ReadModel {
    /// Whether a player of a game has a name of this hash.
    pub fn has_recorded_name(
        &self,
        source: &dyn StateReader,
        game: &str,
        player: PlayerKey,
        hash: NameHash,
    ) -> Result<bool, CorrectionError> {
        let Ok(game_key) = self.find_game(game) else { return Ok(false) };
        if source.player_record(player).map_err(ViewError::Store)?.is_none_or(|record| record.game != game_key) {
            return Ok(false);
        }
        let names = self.names_of(source, player).map_err(ViewError::Store)?;
        Ok(names.iter().any(|name| NameHash::of(game, name) == hash))
    }

    /// Whether a game has a player of a name.
    pub fn has_player_named(&self, source: &dyn StateReader, game: &str, name: &str) -> Result<bool, CorrectionError> {
        let players = self.players_named(source, name).map_err(ViewError::Store)?;
        Ok(players.iter().any(|(of, _)| self.game_name(*of) == Some(game)))
    }

    /// Hashes of forgotten names, each with the time of the request, Unix ms; oldest first.
    pub fn forgotten(&self) -> Vec<(NameHash, i64)> {
        let mut all: Vec<(NameHash, i64)> = self.global.forgotten.iter().map(|(hash, ms)| (*hash, *ms)).collect();
        all.sort_unstable_by_key(|&(hash, ms)| (ms, hash));
        all
    }

    /// The name of a game; `None`: the key is not known.
    pub fn game_name(&self, game: GameKey) -> Option<&str> {
        self.global.games.has_name(game.0).then(|| self.global.games.name(game.0))
    }

    /// How names are read from lists.
    pub fn name_rules(&self) -> &NameRules {
        &self.global.settings.rules.names
    }

    /// Forgotten names that were blanked in the last outcome, as the server wrote them. A
    /// recorder of the outcome must blank them too.
    pub fn blanked_names(&self) -> &[Name] {
        &self.global.blanked_names
    }

    /// Whether the list of a snapshot contains a forgotten name.
    pub fn lists_forgotten_name(&self, server: ServerKey, snapshot: &Snapshot) -> bool {
        let Some(server_state) = self.servers.get(server).filter(|_| !self.global.forgotten.is_empty()) else {
            return false;
        };
        let codes = self.global.name_family(server_state, &snapshot.game).codes;
        let is_forgotten = |name: &Name| {
            let hash = NameHash::of_listed(&snapshot.game, name, codes);
            hash.is_some_and(|hash| self.global.forgotten.contains_key(&hash))
        };
        snapshot.players.iter().any(|player| is_forgotten(&player.name))
    }
}

impl Engine {
    /// Forgets a player of a game, with all their names.
    pub fn forget_player(
        &mut self,
        source: &dyn StateReader,
        game: &str,
        player: &PlayerSelector,
        now_ms: i64,
    ) -> Result<ForgetResult, CorrectionError> {
        let (player, names, rows) = self.delete_player(source, game, player, now_ms)?;
        let hashes: Vec<NameHash> = names.iter().map(|name| NameHash::of(game, name)).collect();
        Arc::make_mut(&mut self.model.global.forgotten).extend(hashes.iter().map(|hash| (*hash, now_ms)));
        let corrections = &mut self.model.global.pending.corrections;
        corrections.forgotten.extend(hashes.iter().map(|hash| (*hash, now_ms)));
        Ok(ForgetResult { player, hashes, rows })
    }

    /// Notes that names were forgotten, with the times of the requests, Unix ms.
    pub fn note_forgotten(&mut self, names: &BTreeMap<NameHash, i64>) {
        Arc::make_mut(&mut self.model.global.forgotten).extend(names);
        self.model.global.pending.corrections.forgotten.extend(names.iter().map(|(hash, ms)| (*hash, *ms)));
    }

    /// Forgets a player as a log has recorded it: the player with a key and a name of this hash, if the state has that.
    /// So does one that follows the log. Otherwise the placeholder that has replaced the name in the log.
    pub fn forget_recorded(
        &mut self,
        source: &dyn StateReader,
        game: &str,
        placeholder: ForgottenPlaceholder,
        recorded: Option<(PlayerKey, NameHash)>,
    ) -> Result<(), CorrectionError> {
        let Some((player, hash)) = recorded else { return self.forget_placeholder(source, game, placeholder) };
        let forgotten_ms = placeholder.forgotten_ms;
        if self.model.has_recorded_name(source, game, player, hash)? {
            return self.forget_player(source, game, &PlayerSelector::Key(player.0), forgotten_ms).map(drop);
        }
        let forgotten = self.forget_placeholder(source, game, placeholder);
        // The state has forgotten the name, whether or not it had the player.
        self.note_forgotten(&BTreeMap::from([(hash, forgotten_ms)]));
        forgotten
    }

    /// Forgets the placeholder of a forgotten player in a log, as [`Engine::forget_player`]
    /// forgot the player. The placeholder is not the name of a person, so no hash is kept.
    pub fn forget_placeholder(
        &mut self,
        source: &dyn StateReader,
        game: &str,
        placeholder: ForgottenPlaceholder,
    ) -> Result<(), CorrectionError> {
        let player = PlayerSelector::Name(placeholder.to_string());
        self.delete_player(source, game, &player, placeholder.forgotten_ms).map(drop)
    }

    /// Deletes a player of a game. Returns the key, all names and the number of rows.
    fn delete_player(
        &mut self,
        source: &dyn StateReader,
        game: &str,
        player: &PlayerSelector,
        now_ms: i64,
    ) -> Result<(PlayerKey, Vec<String>, usize), CorrectionError> {
        assert!(!self.model.has_changes(), "commit before correcting");
        self.advance_time(now_ms);
        let game_key = self.model.find_game(game)?;
        let player = self.model.find_player_in_game(source, game_key, player)?;
        let names = self.model.names_of(source, player).map_err(ViewError::Store)?;
        let rows = self.delete_player_data(source, game_key, player, &names).map_err(ViewError::Store)?;
        self.remove_player(player, &names, RemovedPlayer { into: None });
        let deleted = &mut self.model.global.pending.corrections.deleted_names;
        deleted.extend(names.iter().map(|name| (game_key, name.clone())));
        Ok((player, names, rows))
    }

    /// Allows a forgotten name again. Its history is not restored.
    pub fn allow_name(&mut self, hash: NameHash) -> Result<(), CorrectionError> {
        if Arc::make_mut(&mut self.model.global.forgotten).remove(&hash).is_none() {
            return Err(CorrectionError::NotForgotten(hash));
        }
        self.model.global.pending.corrections.allowed_names.push(hash);
        Ok(())
    }

    fn delete_player_data(
        &mut self,
        source: &dyn StateReader,
        game: GameKey,
        player: PlayerKey,
        names: &[String],
    ) -> Result<usize, ReadError> {
        for (server, server_state) in self.model.servers.iter_mut() {
            // Views hold all records: one that is borrowed to be changed is copied.
            if !concerns(&server_state.record, game, player, names) {
                continue;
            }
            for entry in server_state
                .record
                .last_snapshot
                .iter_mut()
                .filter(|last| last.game == game)
                .flat_map(|last| &mut last.entries)
            {
                // This also applies if the name was unusable or the server is greylisted.
                if names.iter().any(|name| entry.name == *name) {
                    (entry.name, entry.display) = Default::default();
                    entry.presence = None;
                }
            }
            server_state.record.recent.left.retain(|(left, _)| *left != player);
            if let Some(screening) = &mut server_state.record.screening {
                screening.bot_names.retain(|bot| !names.iter().any(|name| bot == name));
            }
            server_state.name_index = None;
            self.model.global.server_changed(server);
        }
        self.model.global.delete_sessions(source, player)?;
        let servers = source.servers_with_best(player)?;
        self.model.global.pending.corrections.deleted_best.extend(servers.into_iter().map(|server| (server, player)));
        let mut rows = 0;
        for window in self.model.global.meta.kept_windows().collect::<Vec<_>>() {
            rows += self.model.global.delete_rows_of(source, window, game, player)?;
        }
        Ok(rows)
    }
}

/// Whether a record has one of the names, or the player.
fn concerns(record: &ServerRecord, game: GameKey, player: PlayerKey, names: &[String]) -> bool {
    let entries = record.last_snapshot.iter().filter(|last| last.game == game).flat_map(|last| &last.entries);
    let bot_names = record.screening.iter().flat_map(|screening| &screening.bot_names);
    entries.map(|entry| &entry.name).chain(bot_names).any(|known| names.iter().any(|name| known == name))
        || record.recent.left.iter().any(|(left, _)| *left == player)
}
