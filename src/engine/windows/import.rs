//! Windows that a second engine has made of the same scans are brought over in
//! portions, while this one goes on with its work (RULES section 8).
//!
//! Their rows are here before the windows are: until [`Engine::finish_import`] nothing
//! is credited to them and nobody can ask for them, and where this life ends in
//! between, the store sweeps out what was brought. The other engine stands still
//! while it is brought over; then it may go on with what was scanned meanwhile,
//! and what that changes is brought again, which is less each time.

use rustc_hash::FxHashMap;

use crate::engine::{Engine, StateReader, WindowReader};
use crate::model::commit::{RowKey, WindowState};
use crate::model::row::{PlayerRow, PlayerWindow};
use crate::model::{GameKey, PlayerKey, ServerKey, TagKey, WindowKey};

/// The engine that has made windows, with all that it reads of.
#[derive(Debug)]
pub struct RebuiltState<'m, S, R> {
    pub engine: &'m Engine,
    pub source: &'m S,
    pub reader: &'m R,
}

/// How far windows are brought over.
#[derive(Debug)]
pub struct WindowImport {
    windows: Vec<WindowKey>,
    at: ImportStage,
    people: PlayerKeyMap,
    /// Who was merged or forgotten until it began.
    players_gone: u32,
}

#[derive(Debug)]
enum ImportStage {
    /// Whoever the other engine knows is looked up here.
    People {
        next: u32,
    },
    Rows {
        window: usize,
        server: u32,
        after: Option<PlayerKey>,
    },
    OfPlayers {
        window: usize,
        next: u32,
    },
    /// What changed there since its last commit, by keys of there.
    Changed {
        rows: Vec<RowKey>,
        of_players: Vec<(WindowKey, PlayerKey)>,
    },
}

/// Players there and here, by names.
#[derive(Debug, Default)]
struct PlayerKeyMap {
    /// By key there. 0: not looked up yet; [`UNKNOWN_PLAYER`]: not known here.
    here: Vec<u32>,
    /// By key here: the first key there that leads to it, or 0.
    there: Vec<u32>,
    /// Who has several keys there, in order of lookup: two names of one person.
    several: FxHashMap<PlayerKey, Vec<PlayerKey>>,
}

const UNKNOWN_PLAYER: u32 = u32::MAX;

impl Engine {
    /// Begins to take over windows of another engine, once everything that was in
    /// them is swept out.
    pub fn begin_import<S: StateReader>(&mut self, source: &S, made: &Engine) -> Option<WindowImport> {
        let windows: Vec<WindowKey> = self.windows_to_import(made).iter().map(|state| state.window).collect();
        let is_clear =
            |window: &WindowKey| !self.global.pending.deleted_windows.contains(window) && source.is_swept(*window);
        if !windows.iter().all(is_clear) {
            return None;
        }
        self.global.brought.clone_from(&windows);
        let players_gone = self.global.meta.players_removed;
        Some(WindowImport {
            windows,
            at: ImportStage::People { next: 1 },
            people: PlayerKeyMap::default(),
            players_gone,
        })
    }

    /// Whether somebody was merged or forgotten since it began: it is to be given up
    /// and begun anew.
    pub fn is_import_outdated(&self, taking: &WindowImport) -> bool {
        taking.players_gone != self.global.meta.players_removed
    }

    /// Lets go of what was brought over, if anything was.
    pub fn abort_import(&mut self) {
        for window in std::mem::take(&mut self.global.brought) {
            self.global.drop_window(window);
        }
    }

    /// Brings about `most` rows. Who or what is not known here is left out. Returns
    /// whether there is more; the other engine must stand still until there is not.
    pub fn import_batch<S: StateReader, R: WindowReader<Error = S::Error>>(
        &mut self,
        taking: &mut WindowImport,
        source: &S,
        made: &RebuiltState<S, R>,
        most: usize,
    ) -> Result<bool, S::Error> {
        let WindowImport { windows, at, people, .. } = taking;
        let players_end = made.engine.global.meta.next_player;
        let mut done = 0;
        while done < most {
            match at {
                ImportStage::People { next } if *next >= players_end => {
                    *at = ImportStage::Rows { window: 0, server: 0, after: None };
                }
                ImportStage::People { next } => {
                    people.find(self, source, made, PlayerKey(*next))?;
                    (*next, done) = (*next + 1, done + 1);
                }
                ImportStage::Rows { window, .. } if *window >= windows.len() => {
                    *at = ImportStage::OfPlayers { window: 0, next: 0 }
                }
                ImportStage::Rows { window, server, .. } if *server as usize >= made.engine.servers.len() => {
                    (*window, *server) = (*window + 1, 0);
                }
                ImportStage::Rows { window, server, after } => {
                    let (window, of) = (windows[*window], ServerKey(*server));
                    let portion = made.engine.rows_after(made.source, window, of, *after, most - done)?;
                    done += 1 + portion.rows.len();
                    *after = portion.rows.last().map(|(player, _)| *player);
                    if portion.is_last {
                        (*server, *after) = (*server + 1, None);
                    }
                    for (player, row) in portion.rows {
                        self.import_row(people, source, made, RowKey { window, server: of, player }, row)?;
                    }
                }
                ImportStage::OfPlayers { window, .. } if *window >= windows.len() => return Ok(false),
                ImportStage::OfPlayers { window, next } if *next >= players_end => (*window, *next) = (*window + 1, 0),
                ImportStage::OfPlayers { window, next } => {
                    let players = *next..next.saturating_add((most - done) as u32).min(players_end);
                    let (window, mut found) = (windows[*window], Vec::new());
                    (done, *next) = (done + players.len(), players.end);
                    made.reader
                        .each_player(window, players, &mut |player, of_player| found.push((player, of_player)))?;
                    for (player, of_player) in found {
                        self.import_player_window(people, source, made, window, player, of_player)?;
                    }
                }
                ImportStage::Changed { rows, of_players } => {
                    if let Some(key) = rows.pop() {
                        if let Some(row) = made.row(key)? {
                            self.import_row(people, source, made, key, row)?;
                        }
                    } else if let Some((window, player)) = of_players.pop() {
                        if let Some(of_player) = made.player_window(window, player)? {
                            self.import_player_window(people, source, made, window, player, of_player)?;
                        }
                    } else {
                        return Ok(false);
                    }
                    done += 1;
                }
            }
        }
        Ok(true)
    }

    /// The other engine has gone on: next is brought what it has not committed.
    pub fn collect_changes(&mut self, taking: &mut WindowImport, made: &Engine) {
        let windows: Vec<WindowKey> = self.windows_to_import(made).iter().map(|state| state.window).collect();
        // Some may have begun since.
        let new: Vec<WindowKey> = windows.iter().copied().filter(|it| !self.global.brought.contains(it)).collect();
        self.global.brought.extend(new);
        let pending = &made.global.pending;
        let is_taken = |window: &WindowKey| windows.binary_search(window).is_ok();
        let mut rows: Vec<RowKey> = Vec::new();
        for (&(window, server), of_server) in pending.rows.iter().filter(|((window, _), _)| is_taken(window)) {
            rows.extend(of_server.keys().map(|&player| RowKey { window, server, player }));
        }
        for &server in &pending.servers {
            for presence in made.server_state(server).into_iter().flat_map(|slot| slot.record.presences()) {
                let player = presence.player;
                let of_presence = presence.rows.iter().filter(|(window, _)| is_taken(window));
                rows.extend(of_presence.map(|&(window, _)| RowKey { window, server, player }));
            }
        }
        let changed =
            |&window: &WindowKey| made.global.player_windows.changed_in(window).map(move |player| (window, player));
        let mut of_players: Vec<(WindowKey, PlayerKey)> = windows.iter().flat_map(changed).collect();
        rows.sort_unstable();
        rows.dedup();
        of_players.sort_unstable();
        taking.at = ImportStage::Changed { rows, of_players };
    }

    /// All is brought: from now on the windows are here, and are credited. Returns
    /// how many it was.
    pub fn finish_import(&mut self, made: &Engine) -> usize {
        let taken = self.windows_to_import(made);
        for state in &taken {
            let windows = &mut self.global.meta.windows;
            if let Err(at) = windows.binary_search_by_key(&state.window, |state| state.window) {
                windows.insert(at, *state);
            }
            self.global.shelf.forget(state.window);
        }
        // Some may have been over for long enough meanwhile.
        self.global.brought.retain(|window| taken.iter().all(|state| state.window != *window));
        self.abort_import();
        self.finish_rebuild();
        taken.len()
    }

    fn windows_to_import(&self, made: &Engine) -> Vec<WindowState> {
        let fits = |state: &&WindowState| {
            let span = self.global.settings.windows.span(state.window);
            self.global.is_rebuilt(state.window) && span == Some(state.start_ms..state.end_ms)
        };
        made.global.meta.windows.iter().filter(fits).copied().collect()
    }

    /// `key`: there.
    fn import_row<S: StateReader, R>(
        &mut self,
        people: &mut PlayerKeyMap,
        source: &S,
        made: &RebuiltState<S, R>,
        key: RowKey,
        row: PlayerRow,
    ) -> Result<(), S::Error> {
        let Some(server) = made.server(self, key.server) else { return Ok(()) };
        let Some(player) = people.find(self, source, made, key.player)? else { return Ok(()) };
        let row = match people.several.get(&player) {
            Some(all) => made.row_of_all(key, all)?.unwrap_or(row),
            None => row,
        };
        self.global.pending.put_row(RowKey { window: key.window, server, player }, &row);
        Ok(())
    }

    fn import_player_window<S: StateReader, R>(
        &mut self,
        people: &mut PlayerKeyMap,
        source: &S,
        made: &RebuiltState<S, R>,
        window: WindowKey,
        there: PlayerKey,
        of_player: PlayerWindow,
    ) -> Result<(), S::Error> {
        let Some(player) = people.find(self, source, made, there)? else { return Ok(()) };
        let of_player = match people.several.get(&player) {
            Some(all) => made.player_window_of_all(window, all)?.unwrap_or(of_player),
            None => of_player,
        };
        if let Some(of_player) = made.player_window_here(self, of_player) {
            self.global.player_windows.put(window, player, of_player);
        }
        Ok(())
    }
}

impl PlayerKeyMap {
    /// The key here of somebody there.
    fn find<S: StateReader, R>(
        &mut self,
        engine: &Engine,
        source: &S,
        made: &RebuiltState<S, R>,
        there: PlayerKey,
    ) -> Result<Option<PlayerKey>, S::Error> {
        let at = there.0 as usize;
        if self.here.len() <= at {
            self.here.resize(at + 1, 0);
        }
        if self.here[at] == 0 {
            let record = match made.engine.global.pending.players.get(there) {
                Some(record) => Some(record.clone()),
                None => made.source.player_record(there)?,
            };
            let named = record.and_then(|record| Some((made.game(engine, record.game)?, record.name)));
            let found = named.map(|(game, name)| source.player(game, &name)).transpose()?.flatten();
            self.here[at] = found.as_ref().map_or(UNKNOWN_PLAYER, |(player, _)| player.0);
            if let Some((player, _)) = found {
                self.see(player, there);
            }
        }
        Ok(Some(self.here[at]).filter(|&key| key != UNKNOWN_PLAYER).map(PlayerKey))
    }

    fn see(&mut self, here: PlayerKey, there: PlayerKey) {
        let at = here.0 as usize;
        if self.there.len() <= at {
            self.there.resize(at + 1, 0);
        }
        match self.there[at] {
            0 => self.there[at] = there.0,
            first => self.several.entry(here).or_insert_with(|| vec![PlayerKey(first)]).push(there),
        }
    }
}

impl<S: StateReader, R> RebuiltState<'_, S, R> {
    fn server(&self, here: &Engine, server: ServerKey) -> Option<ServerKey> {
        here.by_url.get(self.engine.url_of(server)?).copied()
    }

    fn game(&self, here: &Engine, game: GameKey) -> Option<GameKey> {
        here.global.games.find(self.engine.global.games.name(game.0)).map(GameKey)
    }

    fn tag(&self, here: &Engine, tag: TagKey) -> Option<TagKey> {
        let named = here.global.tags.find(self.engine.global.tags.name(tag.0)).map(TagKey);
        named.filter(|tag| *tag < here.rebuild_tag_limit)
    }

    /// A row as of now.
    fn row(&self, key: RowKey) -> Result<Option<PlayerRow>, S::Error> {
        match self.engine.server_state(key.server) {
            Some(slot) => self.engine.current_row(self.source, slot, key.window, key.server, key.player),
            None => Ok(None),
        }
    }

    fn player_window(&self, window: WindowKey, player: PlayerKey) -> Result<Option<PlayerWindow>, S::Error> {
        match self.engine.global.player_windows.get(window, player) {
            Some(known) => Ok(Some(known.clone())),
            None => self.source.player_window(window, player),
        }
    }

    /// A row of somebody who has several keys there.
    fn row_of_all(&self, key: RowKey, all: &[PlayerKey]) -> Result<Option<PlayerRow>, S::Error> {
        let mut merged: Option<PlayerRow> = None;
        for &player in all {
            let Some(mut row) = self.row(RowKey { player, ..key })? else { continue };
            merged.iter().for_each(|before| row.merge_person(before));
            merged = Some(row);
        }
        Ok(merged)
    }

    fn player_window_of_all(&self, window: WindowKey, all: &[PlayerKey]) -> Result<Option<PlayerWindow>, S::Error> {
        let mut merged: Option<PlayerWindow> = None;
        for &player in all {
            let Some(mut of_player) = self.player_window(window, player)? else { continue };
            merged.iter().for_each(|before| of_player.merge_person(before));
            merged = Some(of_player);
        }
        Ok(merged)
    }

    fn player_window_here(&self, here: &Engine, there: PlayerWindow) -> Option<PlayerWindow> {
        let mut of_player = PlayerWindow::new(self.game(here, there.game)?);
        of_player.servers = there.servers.iter().filter_map(|server| self.server(here, *server)).collect();
        of_player.game_rating = there.game_rating;
        for (tag, rating) in there.tag_ratings {
            if let Some(tag) = self.tag(here, tag) {
                of_player.set_rating(Some(tag), rating);
            }
        }
        Some(of_player)
    }
}
