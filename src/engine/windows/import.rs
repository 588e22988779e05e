//! Imports windows that a second engine rebuilt from the same scans, in batches, while this
//! engine continues to work (docs/rules.md section 8).
//!
//! Rows are imported before their windows exist. Until [`Engine::finish_import`] nothing is
//! credited to these windows and no query can read them. After a restart in between, the store
//! deletes the imported rows. The second engine is paused while its windows are imported. Then
//! it may replay newer scans, and the changes are imported again; each round is smaller than
//! the previous one.

use rustc_hash::FxHashMap;

use crate::engine::{Engine, StateReader, WindowReader};
use crate::model::commit::{RowKey, WindowState};
use crate::model::row::{PlayerRow, PlayerWindow};
use crate::model::{GameKey, PlayerKey, ServerKey, TagKey, WindowKey};

/// The second engine, with its store.
#[derive(Debug)]
pub struct RebuiltState<'m, S, R> {
    pub engine: &'m Engine,
    pub reader: &'m S,
    pub window_reader: &'m R,
}

/// Progress of an import.
#[derive(Debug)]
pub struct WindowImport {
    windows: Vec<WindowKey>,
    at: ImportStage,
    people: PlayerKeyMap,
    /// Number of removed players when the import began.
    players_removed: u32,
}

#[derive(Debug)]
enum ImportStage {
    /// Looks up the second engine's players in this engine.
    Players {
        next: u32,
    },
    Rows {
        window: usize,
        server: u32,
        after: Option<PlayerKey>,
    },
    PlayerWindows {
        window: usize,
        next: u32,
    },
    /// Uncommitted changes of the second engine, by its keys.
    Changes {
        rows: Vec<RowKey>,
        of_players: Vec<(WindowKey, PlayerKey)>,
    },
}

/// Maps player keys of the second engine ("there") to keys of this one ("here"), by name.
#[derive(Debug, Default)]
struct PlayerKeyMap {
    /// By key there. 0: not looked up yet; [`UNKNOWN_PLAYER`]: not known here.
    local_by_remote: Vec<u32>,
    /// By key here: the first key there that maps to it, or 0.
    remote_by_local: Vec<u32>,
    /// Players with several keys there, in order of lookup: merged names.
    remotes_by_local: FxHashMap<PlayerKey, Vec<PlayerKey>>,
}

const UNKNOWN_PLAYER: u32 = u32::MAX;

impl Engine {
    /// Begins to import windows of another engine. Returns `None` until all old records of
    /// these windows are deleted.
    pub fn begin_import<S: StateReader>(&mut self, source: &S, rebuilt: &Engine) -> Option<WindowImport> {
        let windows: Vec<WindowKey> = self.windows_to_import(rebuilt).iter().map(|state| state.window).collect();
        let is_clear =
            |window: &WindowKey| !self.global.pending.deleted_windows.contains(window) && source.is_swept(*window);
        if !windows.iter().all(is_clear) {
            return None;
        }
        self.global.importing.clone_from(&windows);
        let players_gone = self.global.meta.players_removed;
        Some(WindowImport {
            windows,
            at: ImportStage::Players { next: 1 },
            people: PlayerKeyMap::default(),
            players_removed: players_gone,
        })
    }

    /// Whether a player was merged or forgotten since the import began. If so, it must be
    /// aborted and begun again.
    pub fn is_import_outdated(&self, import: &WindowImport) -> bool {
        import.players_removed != self.global.meta.players_removed
    }

    /// Deletes all imported rows.
    pub fn abort_import(&mut self) {
        for window in std::mem::take(&mut self.global.importing) {
            self.global.delete_window(window);
        }
    }

    /// Imports about `most` rows; skips players, servers and tags that are not known here.
    /// Returns whether there is more. The other engine must be paused until this returns false.
    pub fn import_batch<S: StateReader, R: WindowReader<Error = S::Error>>(
        &mut self,
        import: &mut WindowImport,
        source: &S,
        rebuilt: &RebuiltState<S, R>,
        most: usize,
    ) -> Result<bool, S::Error> {
        let WindowImport { windows, at, people, .. } = import;
        let players_end = rebuilt.engine.global.meta.next_player;
        let mut done = 0;
        while done < most {
            match at {
                ImportStage::Players { next } if *next >= players_end => {
                    *at = ImportStage::Rows { window: 0, server: 0, after: None };
                }
                ImportStage::Players { next } => {
                    people.find(self, source, rebuilt, PlayerKey(*next))?;
                    (*next, done) = (*next + 1, done + 1);
                }
                ImportStage::Rows { window, .. } if *window >= windows.len() => {
                    *at = ImportStage::PlayerWindows { window: 0, next: 0 }
                }
                ImportStage::Rows { window, server, .. } if *server as usize >= rebuilt.engine.servers.len() => {
                    (*window, *server) = (*window + 1, 0);
                }
                ImportStage::Rows { window, server, after } => {
                    let (window, of) = (windows[*window], ServerKey(*server));
                    let page = rebuilt.engine.rows_after(rebuilt.reader, window, of, *after, most - done)?;
                    done += 1 + page.rows.len();
                    *after = page.rows.last().map(|(player, _)| *player);
                    if page.is_last {
                        (*server, *after) = (*server + 1, None);
                    }
                    for (player, row) in page.rows {
                        self.import_row(people, source, rebuilt, RowKey { window, server: of, player }, row)?;
                    }
                }
                ImportStage::PlayerWindows { window, .. } if *window >= windows.len() => return Ok(false),
                ImportStage::PlayerWindows { window, next } if *next >= players_end => {
                    (*window, *next) = (*window + 1, 0)
                }
                ImportStage::PlayerWindows { window, next } => {
                    let players = *next..next.saturating_add((most - done) as u32).min(players_end);
                    let (window, mut found) = (windows[*window], Vec::new());
                    (done, *next) = (done + players.len(), players.end);
                    rebuilt.window_reader.each_player(window, players, &mut |player, player_window| {
                        found.push((player, player_window))
                    })?;
                    for (player, player_window) in found {
                        self.import_player_window(people, source, rebuilt, window, player, player_window)?;
                    }
                }
                ImportStage::Changes { rows, of_players } => {
                    if let Some(key) = rows.pop() {
                        if let Some(row) = rebuilt.row(key)? {
                            self.import_row(people, source, rebuilt, key, row)?;
                        }
                    } else if let Some((window, player)) = of_players.pop() {
                        if let Some(player_window) = rebuilt.player_window(window, player)? {
                            self.import_player_window(people, source, rebuilt, window, player, player_window)?;
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

    /// Prepares to import the uncommitted changes of the other engine, which has continued.
    pub fn collect_changes(&mut self, import: &mut WindowImport, rebuilt: &Engine) {
        let windows: Vec<WindowKey> = self.windows_to_import(rebuilt).iter().map(|state| state.window).collect();
        // Some windows may have opened since.
        let new: Vec<WindowKey> = windows.iter().copied().filter(|it| !self.global.importing.contains(it)).collect();
        self.global.importing.extend(new);
        let pending = &rebuilt.global.pending;
        let is_imported = |window: &WindowKey| windows.binary_search(window).is_ok();
        let mut rows: Vec<RowKey> = Vec::new();
        for (&(window, server), server_rows) in pending.rows.iter().filter(|((window, _), _)| is_imported(window)) {
            rows.extend(server_rows.keys().map(|&player| RowKey { window, server, player }));
        }
        for &server in &pending.servers {
            for presence in
                rebuilt.server_state(server).into_iter().flat_map(|server_state| server_state.record.presences())
            {
                let player = presence.player;
                let presence_rows = presence.rows.iter().filter(|(window, _)| is_imported(window));
                rows.extend(presence_rows.map(|&(window, _)| RowKey { window, server, player }));
            }
        }
        let changed =
            |&window: &WindowKey| rebuilt.global.player_windows.changed_in(window).map(move |player| (window, player));
        let mut of_players: Vec<(WindowKey, PlayerKey)> = windows.iter().flat_map(changed).collect();
        rows.sort_unstable();
        rows.dedup();
        of_players.sort_unstable();
        import.at = ImportStage::Changes { rows, of_players };
    }

    /// Finishes the import: the windows exist from now on and are credited. Returns their
    /// number.
    pub fn finish_import(&mut self, rebuilt: &Engine) -> usize {
        let imported = self.windows_to_import(rebuilt);
        for state in &imported {
            let windows = &mut self.global.meta.windows;
            if let Err(at) = windows.binary_search_by_key(&state.window, |state| state.window) {
                windows.insert(at, *state);
            }
            self.global.board_cache.remove(state.window);
        }
        // Some windows may have expired since.
        self.global.importing.retain(|window| imported.iter().all(|state| state.window != *window));
        self.abort_import();
        self.finish_rebuild();
        imported.len()
    }

    fn windows_to_import(&self, rebuilt: &Engine) -> Vec<WindowState> {
        let is_importable = |state: &&WindowState| {
            let span = self.global.settings.windows.span(state.window);
            self.global.is_rebuild_target(state.window) && span == Some(state.start_ms..state.end_ms)
        };
        rebuilt.global.meta.windows.iter().filter(is_importable).copied().collect()
    }

    /// `key`: of the other engine.
    fn import_row<S: StateReader, R>(
        &mut self,
        people: &mut PlayerKeyMap,
        source: &S,
        rebuilt: &RebuiltState<S, R>,
        key: RowKey,
        row: PlayerRow,
    ) -> Result<(), S::Error> {
        let Some(server) = rebuilt.server(self, key.server) else { return Ok(()) };
        let Some(player) = people.find(self, source, rebuilt, key.player)? else { return Ok(()) };
        let row = match people.remotes_by_local.get(&player) {
            Some(all) => rebuilt.merged_row(key, all)?.unwrap_or(row),
            None => row,
        };
        self.global.pending.put_row(RowKey { window: key.window, server, player }, &row);
        Ok(())
    }

    fn import_player_window<S: StateReader, R>(
        &mut self,
        people: &mut PlayerKeyMap,
        source: &S,
        rebuilt: &RebuiltState<S, R>,
        window: WindowKey,
        there: PlayerKey,
        player_window: PlayerWindow,
    ) -> Result<(), S::Error> {
        let Some(player) = people.find(self, source, rebuilt, there)? else { return Ok(()) };
        let player_window = match people.remotes_by_local.get(&player) {
            Some(all) => rebuilt.merged_player_window(window, all)?.unwrap_or(player_window),
            None => player_window,
        };
        if let Some(player_window) = rebuilt.to_local(self, player_window) {
            self.global.player_windows.put(window, player, player_window);
        }
        Ok(())
    }
}

impl PlayerKeyMap {
    /// The key here of a player there.
    fn find<S: StateReader, R>(
        &mut self,
        engine: &Engine,
        source: &S,
        rebuilt: &RebuiltState<S, R>,
        there: PlayerKey,
    ) -> Result<Option<PlayerKey>, S::Error> {
        let at = there.0 as usize;
        if self.local_by_remote.len() <= at {
            self.local_by_remote.resize(at + 1, 0);
        }
        if self.local_by_remote[at] == 0 {
            let record = match rebuilt.engine.global.pending.players.get(there) {
                Some(record) => Some(record.clone()),
                None => rebuilt.reader.player_record(there)?,
            };
            let named = record.and_then(|record| Some((rebuilt.game(engine, record.game)?, record.name)));
            let found = named.map(|(game, name)| source.player(game, &name)).transpose()?.flatten();
            self.local_by_remote[at] = found.as_ref().map_or(UNKNOWN_PLAYER, |(player, _)| player.0);
            if let Some((player, _)) = found {
                self.insert(player, there);
            }
        }
        Ok(Some(self.local_by_remote[at]).filter(|&key| key != UNKNOWN_PLAYER).map(PlayerKey))
    }

    fn insert(&mut self, here: PlayerKey, there: PlayerKey) {
        let at = here.0 as usize;
        if self.remote_by_local.len() <= at {
            self.remote_by_local.resize(at + 1, 0);
        }
        match self.remote_by_local[at] {
            0 => self.remote_by_local[at] = there.0,
            first => self.remotes_by_local.entry(here).or_insert_with(|| vec![PlayerKey(first)]).push(there),
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

    /// The current row.
    fn row(&self, key: RowKey) -> Result<Option<PlayerRow>, S::Error> {
        match self.engine.server_state(key.server) {
            Some(server_state) => {
                self.engine.current_row(self.reader, server_state, key.window, key.server, key.player)
            }
            None => Ok(None),
        }
    }

    fn player_window(&self, window: WindowKey, player: PlayerKey) -> Result<Option<PlayerWindow>, S::Error> {
        match self.engine.global.player_windows.get(window, player) {
            Some(known) => Ok(Some(known.clone())),
            None => self.reader.player_window(window, player),
        }
    }

    /// Merges the rows of a player with several keys there.
    fn merged_row(&self, key: RowKey, all: &[PlayerKey]) -> Result<Option<PlayerRow>, S::Error> {
        let mut merged: Option<PlayerRow> = None;
        for &player in all {
            let Some(mut row) = self.row(RowKey { player, ..key })? else { continue };
            merged.iter().for_each(|before| row.merge_person(before));
            merged = Some(row);
        }
        Ok(merged)
    }

    fn merged_player_window(&self, window: WindowKey, all: &[PlayerKey]) -> Result<Option<PlayerWindow>, S::Error> {
        let mut merged: Option<PlayerWindow> = None;
        for &player in all {
            let Some(mut player_window) = self.player_window(window, player)? else { continue };
            merged.iter().for_each(|before| player_window.merge_person(before));
            merged = Some(player_window);
        }
        Ok(merged)
    }

    fn to_local(&self, here: &Engine, there: PlayerWindow) -> Option<PlayerWindow> {
        let mut player_window = PlayerWindow::new(self.game(here, there.game)?);
        player_window.servers = there.servers.iter().filter_map(|server| self.server(here, *server)).collect();
        player_window.game_rating = there.game_rating;
        for (tag, rating) in there.tag_ratings {
            if let Some(tag) = self.tag(here, tag) {
                player_window.set_rating(Some(tag), rating);
            }
        }
        Some(player_window)
    }
}
