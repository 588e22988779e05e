//! Corrections by an admin: exclude a greylisted server, merge two names of one player, forget
//! a player, reopen a week, reset the time.
//!
//! A correction does not change boards of games and tags: it marks players dirty in the board
//! cache, which refreshes their entries. Ratings of other players do not change, because a
//! correction does not rate rounds again. Before a correction everything must be committed, and
//! the next action after it is a commit, so one commit contains the whole correction.

pub(super) mod forget;
pub(super) mod reset_time;

use super::{Engine, GlobalState, ReadError, ReadModel, RemovedPlayer, StateReader, ViewError};
use crate::engine::boards::dirty::Groups;
use crate::engine::boards::group::Group;
use crate::model::commit::RowKey;
use crate::model::server::{Presence, ServerRecord};
use crate::model::{GameKey, NameHash, OutboxKey, PlayerKey, ServerKey, WindowKey};
use crate::view::board::PlayerSelector;

/// The effect of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeResult {
    /// The removed player.
    pub from: PlayerKey,
    pub into: PlayerKey,
    /// Rows on servers that were moved to `into`, in all windows.
    pub rows: usize,
    /// The names of both records, for a log.
    pub from_name: String,
    pub into_name: String,
}

#[derive(Debug, thiserror::Error)]
pub enum CorrectionError {
    #[error(transparent)]
    View(#[from] ViewError),
    #[error("no player of {game} is named {name:?}; names are case-sensitive")]
    UnknownInGame { name: String, game: String },
    #[error("player {player} belongs to {found}, not to {game}")]
    OtherGame { player: PlayerKey, found: String, game: String },
    #[error("both names belong to player {0} already")]
    SamePlayer(PlayerKey),
    #[error("no forgotten name has hash {0}; `clqd player forgotten` lists the hashes")]
    NotForgotten(NameHash),
}

impl ReadModel {
    pub(super) fn find_game(&self, game: &str) -> Result<GameKey, ViewError> {
        self.global.games.find(game).map(GameKey).ok_or_else(|| ViewError::UnknownGame {
            game: game.to_owned(),
            nearest: crate::nearest::nearest(game, self.global.games.names()).map(str::to_owned),
        })
    }

    fn find_player_in_game(
        &self,
        source: &dyn StateReader,
        game: GameKey,
        player: &PlayerSelector,
    ) -> Result<PlayerKey, CorrectionError> {
        let game_name = || self.global.games.name(game.0).to_owned();
        match player {
            PlayerSelector::Key(key) => {
                let player = PlayerKey(*key);
                let record = source.player_record(player).map_err(ViewError::Store)?;
                let record = record.ok_or(ViewError::UnknownPlayerKey(*key))?;
                if record.game != game {
                    let found = self.global.games.name(record.game.0).to_owned();
                    return Err(CorrectionError::OtherGame { player, found, game: game_name() });
                }
                Ok(player)
            }
            PlayerSelector::Name(name) => {
                let found = self.players_named(source, name).map_err(ViewError::Store)?;
                let found = found.into_iter().find(|(of, _)| *of == game);
                found.map(|(_, player)| player).ok_or_else(|| CorrectionError::UnknownInGame {
                    name: crate::model::name::normalise(name, crate::model::name::ColourCodes::None),
                    game: game_name(),
                })
            }
        }
    }

    /// The player whose normalised name a log has. It is the name as it is: without its colour codes it may be that of
    /// another player.
    pub(super) fn recorded_player(
        &self,
        source: &dyn StateReader,
        game: &str,
        name: &str,
    ) -> Result<PlayerSelector, CorrectionError> {
        let key = self.find_game(game)?;
        let found = source.players_named(name).map_err(ViewError::Store)?.into_iter().find(|(of, _)| *of == key);
        let unknown = || CorrectionError::UnknownInGame { name: name.to_owned(), game: game.to_owned() };
        found.map(|(_, player)| PlayerSelector::Key(player.0)).ok_or_else(unknown)
    }

    /// All names of a player; the name of their record is first.
    fn names_of(&self, source: &dyn StateReader, player: PlayerKey) -> Result<Vec<String>, ReadError> {
        let record = source.player_record(player)?;
        let mut names: Vec<String> = record.into_iter().map(|record| record.name.into()).collect();
        names.extend(source.aliases(player)?);
        Ok(names)
    }
}

impl Engine {
    /// Merges two names of a game that belong to one person: in every window, all data of `from`
    /// moves to `into`, and the names of `from` become names of `into`.
    pub fn merge_players(
        &mut self,
        source: &dyn StateReader,
        game: &str,
        from: &PlayerSelector,
        into: &PlayerSelector,
    ) -> Result<MergeResult, CorrectionError> {
        assert!(!self.model.has_changes(), "commit before correcting");
        let game = self.model.find_game(game)?;
        let from = self.model.find_player_in_game(source, game, from)?;
        let into = self.model.find_player_in_game(source, game, into)?;
        if from == into {
            return Err(CorrectionError::SamePlayer(into));
        }
        let names = self.model.names_of(source, from).map_err(ViewError::Store)?;
        let into_names = self.model.names_of(source, into).map_err(ViewError::Store)?;
        let [from_name, into_name] = [&names, &into_names].map(|names| names.first().cloned().unwrap_or_default());
        let rows = self.move_player(source, game, from, into).map_err(ViewError::Store)?;
        self.remove_player(from, &names, RemovedPlayer { into: Some(into) });
        self.model.global.pending.corrections.aliases.extend(names.into_iter().map(|name| (into, game, name)));
        Ok(MergeResult { from, into, rows, from_name, into_name })
    }

    /// Records that a player was removed; all names but the first are aliases. The outbox entry
    /// is added even if the outbox is full: there are few of these, and the player's name may
    /// be assigned to another player before the outbox has space.
    pub(super) fn remove_player(&mut self, player: PlayerKey, names: &[String], removal: RemovedPlayer) {
        // The copy may contain rows of the player.
        self.drop_large_weeks();
        self.restart_server_close();
        let global = &mut self.model.global;
        global.meta.players_removed += 1;
        let corrections = &mut global.pending.corrections;
        corrections.removed_players.push((player, removal.into));
        corrections.deleted_aliases.extend(names.iter().skip(1).map(|name| (player, name.clone())));
        global.name_cache.clear();
        global.enqueue(OutboxKey::Player(player));
        if global.settings.archive_enabled {
            global.pending.outbox.insert(OutboxKey::Player(player));
        }
    }

    fn move_player(
        &mut self,
        source: &dyn StateReader,
        game: GameKey,
        from: PlayerKey,
        into: PlayerKey,
    ) -> Result<usize, ReadError> {
        for server in self.model.servers.keys() {
            self.move_presence(source, server, from, into)?;
        }
        self.model.global.move_sessions(source, from, into)?;
        let mut rows = 0;
        for window in self.model.global.meta.kept_windows().collect::<Vec<_>>() {
            rows += self.model.global.move_window(source, game, window, from, into)?;
        }
        self.model.global.move_best_positions(source, from, into)?;
        Ok(rows)
    }

    /// Moves the live rows of both players to the pending rows. One presence on a server
    /// remains and belongs to `into`.
    fn move_presence(
        &mut self,
        source: &dyn StateReader,
        server: ServerKey,
        from: PlayerKey,
        into: PlayerKey,
    ) -> Result<(), ReadError> {
        let is_of_both = |presence: &Presence| presence.player == from || presence.player == into;
        // Views hold all records: one that is borrowed to be changed is copied.
        let concerns = |record: &ServerRecord| {
            record.presences().any(is_of_both) || record.recent.left.iter().any(|(player, _)| *player == from)
        };
        let server_state = self.model.servers.get_mut(server).filter(|it| concerns(&it.record));
        let Some(server_state) = server_state else { return Ok(()) };
        let global = &mut self.model.global;
        for (player, _) in server_state.record.recent.left.iter_mut().filter(|(player, _)| *player == from) {
            *player = into;
            global.server_changed(server);
        }
        let Some(last) = &mut server_state.record.last_snapshot else { return Ok(()) };
        let entries = last.entries.iter_mut();
        let mut presences: Vec<&mut Option<Presence>> = entries
            .map(|entry| &mut entry.presence)
            .filter(|presence| presence.as_ref().is_some_and(is_of_both))
            .collect();
        if presences.is_empty() {
            return Ok(());
        }
        for presence in presences.iter_mut().filter_map(|presence| presence.as_mut()) {
            for (window, row) in std::mem::take(&mut presence.rows) {
                global.put_row(RowKey { window, server, player: presence.player }, &row);
            }
        }
        let both = presences.len() > 1;
        for presence in presences {
            match presence {
                Some(one) if both && one.player == from => {
                    if let Some(session) = one.session {
                        global.complete_session(source, server, (into, from), session, (last.t_ms, last.map))?;
                    }
                    *presence = None;
                }
                Some(one) => one.player = into,
                None => (),
            }
        }
        global.server_changed(server);
        Ok(())
    }
}

impl GlobalState {
    fn move_best_positions(
        &mut self,
        source: &dyn StateReader,
        from: PlayerKey,
        into: PlayerKey,
    ) -> Result<(), ReadError> {
        let mut servers = source.servers_with_best(from)?;
        // Of a player who was dropped, only the archive has positions. They are of weeks that are not kept.
        let since = self.meta.weeks.first().map(|oldest| oldest.week).filter(|_| self.meta.players_dropped.is_some());
        if since.is_some() {
            servers.extend(source.servers_with_best(into)?);
            servers.sort_unstable();
            servers.dedup();
        }
        for server in servers {
            let mut best = self.best_or_new(source, server, into, None)?;
            best.since = best.since.max(since);
            if let Some(best_from) = source.best(server, from)? {
                best.merge(&best_from);
                self.pending.corrections.deleted_best.push((server, from));
            }
            self.pending.best.insert((server, into), best);
        }
        Ok(())
    }

    /// Returns the number of rows.
    fn move_window(
        &mut self,
        source: &dyn StateReader,
        game: GameKey,
        window: WindowKey,
        from: PlayerKey,
        into: PlayerKey,
    ) -> Result<usize, ReadError> {
        let Some(from_window) = source.player_window(window, from)? else { return Ok(0) };
        let mut rows = 0;
        for &server in &from_window.servers {
            let Some(from_row) = self.delete_row(source, RowKey { window, server, player: from })? else { continue };
            let key = RowKey { window, server, player: into };
            let row = match self.row(source, key)? {
                Some(mut row) => {
                    row.merge_person(&from_row);
                    row
                }
                None => from_row,
            };
            self.put_row(key, &row);
            rows += 1;
        }
        self.change_player_window(source, window, game, into, |it| it.merge_person(&from_window))?;
        self.delete_player_window(window, game, from);
        self.board_cache.mark_dirty(window, into);
        Ok(rows)
    }

    /// Deletes the rows of a player in a window, and the window record. Returns the number of rows. Nothing of them
    /// is pending.
    pub(in crate::engine) fn delete_rows_of(
        &mut self,
        source: &dyn StateReader,
        window: WindowKey,
        game: GameKey,
        player: PlayerKey,
    ) -> Result<usize, ReadError> {
        let Some(player_window) = source.player_window(window, player)? else { return Ok(0) };
        for &server in &player_window.servers {
            self.delete_row(source, RowKey { window, server, player })?;
        }
        self.delete_player_window(window, game, player);
        Ok(player_window.servers.len())
    }

    /// Deletes the window record of a player of a game.
    pub(in crate::engine) fn delete_player_window(&mut self, window: WindowKey, game: GameKey, player: PlayerKey) {
        self.player_windows.remove(window, player);
        self.pending.corrections.deleted_player_windows.push((window, player));
        // Also tags that a server had before: players may not be marked dirty for a change of tags
        // yet, and marking them later does not find the rows of this player.
        let left: Groups = std::iter::once(Group::Game(game)).chain(self.all_tags().map(Group::Tag)).collect();
        self.board_cache.mark_dirty_leaving(window, player, &left);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::board::window::WindowTypes;
    use crate::engine::{EngineSettings, Event, Outcome};
    use crate::model::calendar::Calendar;
    use crate::model::{Completeness, Player, ServerKey, ServerUrl, Snapshot, WindowKey, WindowType};
    use crate::state::State;
    use crate::store::StoreSettings;
    use crate::view::board::PlayerSelector;

    const T_MS: i64 = 1_763_942_400_000;

    /// Two servers with a player each, and a third one with two.
    fn state(dir: &std::path::Path) -> State {
        let store = StoreSettings { cache_bytes: 16 << 20, create: true };
        let windows = WindowTypes::new(Calendar::default(), ["all-time".parse().unwrap()]).unwrap();
        let mut state = State::open(dir, store, EngineSettings { windows, ..EngineSettings::default() }).unwrap();
        for (server, players) in [("one", &["a"][..]), ("two", &["b"]), ("three", &["c", "d"])] {
            let player = |name: &&str| Player { name: (*name).into(), points: Some(1), ..Player::default() };
            let snapshot = Snapshot {
                t_ms: T_MS,
                game: "baseq3".into(),
                map: "q3dm17".into(),
                hostname: String::new(),
                slots: 16,
                players: players.iter().map(player).collect(),
                completeness: Completeness::Full,
                count: None,
                bots: None,
            };
            let url = ServerUrl::parse(&format!("quake3://{server}:1")).unwrap();
            state.handle(Event::Replayed { url, outcome: Outcome::Snapshot(snapshot) }).unwrap();
        }
        state.commit().unwrap();
        state
    }

    /// Which records were copied by a change, while a view holds all of them.
    fn copied(state: &mut State, change: impl FnOnce(&mut State)) -> [bool; 3] {
        let replica = state.engine.replica();
        change(state);
        [1, 2, 3].map(|server| {
            let [now, before] = [state.engine.model(), &replica].map(|it| it.shared_record(ServerKey(server)).unwrap());
            !Arc::ptr_eq(&now, &before)
        })
    }

    #[test]
    fn only_records_that_change_are_copied() {
        let dir = tempfile::tempdir().unwrap();
        let mut state = state(dir.path());
        let named = |name: &str| PlayerSelector::Name(name.to_owned());
        let merge = |state: &mut State| {
            let State { engine, store } = state;
            engine.merge_players(store, "baseq3", &named("d"), &named("c")).unwrap();
            state.commit().unwrap();
        };
        assert_eq!(copied(&mut state, merge), [false, false, true]);
        let forget = |state: &mut State| {
            let State { engine, store } = state;
            engine.forget_player(store, "baseq3", &named("b"), T_MS).unwrap();
            state.commit().unwrap();
        };
        assert_eq!(copied(&mut state, forget), [false, true, false]);
        let delete = |state: &mut State, window| state.engine.delete_windows(&[window]);
        let hour = WindowKey { kind: WindowType::HOUR, index: 1 };
        assert_eq!(copied(&mut state, |state| delete(state, hour)), [false; 3]);
        assert_eq!(copied(&mut state, |state| delete(state, WindowKey::ALL_TIME)), [true, false, false]);
    }
}
