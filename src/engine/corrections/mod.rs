//! Corrections: what of a greylisted server counts, and two names of a game that
//! turn out to be one person.
//!
//! Boards of games and tags are not touched here; who changed is named to the
//! shelf, which looks his places up. Ratings of others stay as they were: a
//! correction does not play rounds again. Nothing here holds when there are
//! changes that are not committed, and the next thing after it is a commit: so
//! all of a correction is in one.

pub(in crate::engine) mod forget;
pub(in crate::engine) mod reset_time;

use super::{Engine, GlobalState, ServerState, StateReader, ViewError};
use crate::engine::boards::cache::{Group, Groups};
use crate::model::commit::{RowKey, WeekPhase};
use crate::model::row::PlayerRow;
use crate::model::server::Presence;
use crate::model::view::board::PlayerSelector;
use crate::model::{GameKey, NameHash, OutboxKey, PlayerKey, ServerKey, WeekKey, WindowKey};

/// A player who is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovedPlayer {
    /// Who he was merged into; `None`: he was forgotten.
    pub into: Option<PlayerKey>,
}

/// What a merge did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeResult {
    /// Who is no more.
    pub from: PlayerKey,
    pub into: PlayerKey,
    /// Rows on servers that changed hands, in all windows.
    pub rows: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum CorrectionError<E: std::error::Error + 'static> {
    #[error(transparent)]
    View(#[from] ViewError<E>),
    #[error("nobody called {name:?} is known in {game}; case matters")]
    UnknownInGame { name: String, game: String },
    #[error("player {player} is of {found}, not of {game}")]
    OtherGame { player: PlayerKey, found: String, game: String },
    #[error("both are player {0} already")]
    Same(PlayerKey),
    #[error("no name of hash {0} is forgotten; `clqd player forgotten` lists those that are")]
    NotForgotten(NameHash),
}

impl Engine {
    /// Takes two names of a game for one person from now on: everything of `from`
    /// is `into`'s, in every window, and his names lead to `into`.
    pub fn merge_players<S: StateReader>(
        &mut self,
        source: &S,
        game: &str,
        from: &PlayerSelector,
        into: &PlayerSelector,
    ) -> Result<MergeResult, CorrectionError<S::Error>> {
        assert!(!self.has_changes(), "commit before correcting");
        let game = self.find_game(game)?;
        let from = self.find_player_in_game(source, game, from)?;
        let into = self.find_player_in_game(source, game, into)?;
        if from == into {
            return Err(CorrectionError::Same(into));
        }
        let names = self.names_of(source, from).map_err(ViewError::Store)?;
        let rows = self.move_player(source, game, from, into).map_err(ViewError::Store)?;
        self.remove_player(from, &names, RemovedPlayer { into: Some(into) });
        self.global.pending.corrections.aliases.extend(names.into_iter().map(|name| (into, game, name)));
        Ok(MergeResult { from, into, rows })
    }

    /// Notes that a player of these names is no more; all but the first are aliases.
    /// It goes into the outbox however full that is: there are few such, and his name
    /// may become another's before there is room.
    pub(super) fn remove_player(&mut self, player: PlayerKey, names: &[String], gone: RemovedPlayer) {
        // It may hold rows of his.
        self.large_week = None;
        self.restart_server_close();
        let books = &mut self.global;
        books.meta.players_removed += 1;
        let corrections = &mut books.pending.corrections;
        corrections.removed_players.push((player, gone.into));
        corrections.deleted_aliases.extend(names.iter().skip(1).map(|name| (player, name.clone())));
        books.names.forget_all();
        books.archive(OutboxKey::Player(player));
        if books.settings.archive_enabled {
            books.pending.outbox.insert(OutboxKey::Player(player));
        }
    }

    fn move_player<S: StateReader>(
        &mut self,
        source: &S,
        game: GameKey,
        from: PlayerKey,
        into: PlayerKey,
    ) -> Result<usize, S::Error> {
        for index in 1..self.servers.len() {
            self.move_presence(ServerKey(index as u32), from, into);
        }
        let mut rows = 0;
        for window in self.global.meta.kept_windows().collect::<Vec<_>>() {
            rows += self.global.hand_over_window(source, game, window, from, into)?;
        }
        for server in source.servers_with_best(from)? {
            let Some(best_from) = source.best(server, from)? else { continue };
            let mut best = self.global.best_known(source, server, into)?;
            best.merge(&best_from);
            self.global.pending.best.insert((server, into), best);
            self.global.pending.corrections.deleted_best.push((server, from));
        }
        Ok(rows)
    }

    /// What lives with the presences of both goes to its place. One presence on a
    /// server stays, and is `into`'s.
    fn move_presence(&mut self, server: ServerKey, from: PlayerKey, into: PlayerKey) {
        let Some(slot) = self.servers[server.0 as usize].as_mut() else { return };
        let books = &mut self.global;
        let entries = slot.record.last_snapshot.iter_mut().flat_map(|last| &mut last.entries);
        let is_of_both = |presence: &Presence| presence.player == from || presence.player == into;
        let mut presences: Vec<&mut Option<Presence>> = entries
            .map(|entry| &mut entry.presence)
            .filter(|presence| presence.as_ref().is_some_and(is_of_both))
            .collect();
        if presences.is_empty() {
            return;
        }
        for presence in presences.iter_mut().filter_map(|presence| presence.as_mut()) {
            for (window, row) in std::mem::take(&mut presence.rows) {
                books.put_row(RowKey { window, server, player: presence.player }, &row);
            }
        }
        let both = presences.len() > 1;
        for presence in presences {
            match presence {
                Some(one) if both && one.player == from => *presence = None,
                Some(one) => one.player = into,
                None => (),
            }
        }
        books.server_changed(server);
    }

    pub(super) fn find_game<E: std::error::Error + 'static>(&self, game: &str) -> Result<GameKey, ViewError<E>> {
        self.global.games.find(game).map(GameKey).ok_or_else(|| ViewError::UnknownGame {
            game: game.to_owned(),
            nearest: crate::nearest::nearest(game, self.global.games.names()).map(str::to_owned),
        })
    }

    pub(super) fn find_player_in_game<S: StateReader>(
        &self,
        source: &S,
        game: GameKey,
        player: &PlayerSelector,
    ) -> Result<PlayerKey, CorrectionError<S::Error>> {
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

    /// Every name that leads to a player; first that of his record.
    pub(super) fn names_of<S: StateReader>(&self, source: &S, player: PlayerKey) -> Result<Vec<String>, S::Error> {
        let record = source.player_record(player)?;
        let mut names: Vec<String> = record.into_iter().map(|record| record.name.into()).collect();
        names.extend(source.aliases(player)?);
        Ok(names)
    }

    /// Whether the rows of a server count in a window. Those of a greylisted one
    /// do not, but for weeks that were closed before: a closed week has no others.
    pub(super) fn is_counted(&self, slot: &ServerState, window: WindowKey, server: ServerKey) -> bool {
        slot.record.greylist.is_none() || window.week().is_some_and(|week| self.is_server_closed(week, server))
    }

    /// The rows of a server, where they count.
    pub(super) fn counted_rows<S: StateReader>(
        &self,
        source: &S,
        window: WindowKey,
        server: ServerKey,
    ) -> Result<Vec<(PlayerKey, PlayerRow)>, S::Error> {
        match self.server_state(server).is_some_and(|slot| self.is_counted(slot, window, server)) {
            true => self.rows(source, window, server),
            false => Ok(Vec::new()),
        }
    }

    /// Whether a week is final on a server.
    pub(super) fn is_server_closed(&self, week: WeekKey, server: ServerKey) -> bool {
        match self.global.meta.weeks.iter().find(|state| state.week == week).map(|state| state.phase) {
            None | Some(WeekPhase::Open | WeekPhase::Reopening) => false,
            Some(WeekPhase::Closing) => self.week_close.as_ref().is_some_and(|closing| closing.is_closed(week, server)),
            Some(WeekPhase::Ranking | WeekPhase::Closed) => true,
        }
    }
}

impl GlobalState {
    /// Returns the number of rows.
    fn hand_over_window<S: StateReader>(
        &mut self,
        source: &S,
        game: GameKey,
        window: WindowKey,
        from: PlayerKey,
        into: PlayerKey,
    ) -> Result<usize, S::Error> {
        let Some(of_from) = source.player_window(window, from)? else { return Ok(0) };
        let mut rows = 0;
        for &server in &of_from.servers {
            let Some(theirs) = self.take_row(source, RowKey { window, server, player: from })? else { continue };
            let key = RowKey { window, server, player: into };
            let row = match self.row(source, key)? {
                Some(mut row) => {
                    row.merge_person(&theirs);
                    row
                }
                None => theirs,
            };
            self.put_row(key, &row);
            rows += 1;
        }
        self.player_window_mut(source, window, game, into)?.merge_person(&of_from);
        self.player_window_gone(window, game, from);
        self.shelf.changed(window, into);
        Ok(rows)
    }

    /// Takes a row away for good.
    pub(super) fn take_row<S: StateReader>(&mut self, source: &S, key: RowKey) -> Result<Option<PlayerRow>, S::Error> {
        let changed = self.pending.rows.get_mut(&(key.window, key.server)).and_then(|rows| rows.remove(&key.player));
        self.pending.rows_len -= usize::from(changed.is_some());
        self.pending.corrections.deleted_rows.push(key);
        if let Some(week) = key.window.week() {
            self.archive(OutboxKey::Week { week, server: key.server });
        }
        match changed {
            Some(row) => Ok(Some(row.unpack())),
            None => source.row(key),
        }
    }

    /// Takes away for good what a player of a game did in a window.
    pub(super) fn player_window_gone(&mut self, window: WindowKey, game: GameKey, player: PlayerKey) {
        self.player_windows.remove(window, player);
        self.pending.corrections.deleted_player_windows.push((window, player));
        // Also tags that a server had before: a change of tags may not be noted yet, and
        // what was noted by then is without the rows of this player.
        let left: Groups = std::iter::once(Group::Game(game)).chain(self.all_tags().map(Group::Tag)).collect();
        self.shelf.changed_and_left(window, player, &left);
    }
}
