//! Reads the windows that a second engine rebuilt from the log, as steps that this engine applies
//! ([`apply`](super::apply); docs/rules.md section 8).
//!
//! The second engine has the same events as this one whenever a step is read. So the rows of a server in the
//! second engine are what its rows here are to be, and a step can replace them while scans continue: both
//! engines credit the next list to the same rows. Servers come first, one after the other, then the players.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::engine::{Engine, ReadError, ReadModel, StoreReader, WindowReader};
use crate::model::commit::WindowState;
use crate::model::name::Name;
use crate::model::rebuild::{RebuildStep, RebuiltPlayer, RebuiltPlayers, RebuiltRow, RebuiltServer};
use crate::model::row::{MapRow, PlayerWindow};
use crate::model::server::PlayerRecord;
use crate::model::{ForgottenPlaceholder, MapKey, PlayerKey, ServerKey, ServerUrl, WindowKey};

/// Players of one step.
const PLAYERS_PER_STEP: u32 = 1_000;

/// Rows of one event: as JSON some 500 kB, and the reader of scan logs has a limit.
const ROWS_PER_EVENT: usize = 500;

/// The second engine, with its store. It has no uncommitted changes of players and their windows.
pub struct RebuiltState<'m> {
    pub model: &'m ReadModel,
    pub reader: &'m dyn StoreReader,
    pub window_reader: &'m dyn WindowReader,
}

/// The next step of an import.
#[derive(Debug)]
pub struct WindowImport {
    windows: Vec<WindowKey>,
    at: ImportStage,
    people: PlayerKeyMap,
    /// Number of removed players when the import began.
    players_removed: u32,
}

#[derive(Clone, Copy, Debug)]
enum ImportStage {
    /// A server of this engine.
    Servers { window: usize, server: u32 },
    /// Players of the second engine.
    Players { window: usize, next: u32 },
}

/// Maps player keys of the second engine ("there") to keys of this one ("here"), by name.
#[derive(Debug, Default)]
struct PlayerKeyMap {
    /// By key there. 0: not looked up yet, or not known here.
    local_by_remote: Vec<u32>,
    /// The keys there of a player here: several if names were merged here. In order of lookup.
    remotes_by_local: FxHashMap<PlayerKey, Vec<PlayerKey>>,
}

impl ReadModel {
    /// The windows that can be imported from a second engine, with their boundaries. `None`: records of a
    /// deleted window with the same key are not swept yet.
    pub fn importable_windows(&self, source: &dyn StoreReader, rebuilt: &Engine) -> Option<Vec<WindowState>> {
        let is_wanted = |state: &&WindowState| {
            let is_wanted = self.global.is_rebuild_target(state.window) || self.global.is_importing(state.window);
            is_wanted && self.global.settings.windows.span(state.window) == Some(state.start_ms..state.end_ms)
        };
        let weeks = rebuilt
            .model
            .global
            .meta
            .weeks
            .iter()
            .filter_map(|state| rebuilt.model.global.window_state(state.week.into()));
        let mut windows: Vec<WindowState> =
            rebuilt.model.global.meta.windows.iter().filter(is_wanted).copied().collect();
        windows.extend(weeks.filter(|state| self.global.is_importing(state.window)));
        let is_swept = windows.iter().all(|state| !self.global.is_being_deleted(source, state.window));
        is_swept.then_some(windows)
    }

    /// Begins to read the steps after [`RebuildStep::Begin`], which was applied.
    pub fn begin_import(&self) -> WindowImport {
        WindowImport {
            windows: self.global.meta.importing.clone(),
            at: ImportStage::Servers { window: 0, server: 1 },
            people: PlayerKeyMap::default(),
            players_removed: self.global.meta.players_removed,
        }
    }

    /// The rows of a server; none if it has no rows in either engine.
    fn import_server(
        &self,
        people: &mut PlayerKeyMap,
        source: &dyn StoreReader,
        rebuilt: &RebuiltState<'_>,
        window: WindowKey,
        here: ServerKey,
    ) -> Result<Vec<RebuildStep>, ReadError> {
        let Some(url) = self.url_of(here) else { return Ok(Vec::new()) };
        let there = rebuilt.model.servers.find(url);
        let mut rows: Vec<RebuiltRow> = Vec::new();
        // The index of each player's row.
        let mut row_of: FxHashMap<PlayerKey, usize> = FxHashMap::default();
        for (player, row) in there.map_or(Ok(Vec::new()), |it| rebuilt.model.rows(rebuilt.reader, window, it))? {
            let Some((local, record)) = people.find(self, source, rebuilt, player)? else { continue };
            if let Some(earlier) = local.and_then(|local| row_of.get(&local)) {
                // Names that were merged here are several players there.
                let mut merged = row;
                merged.merge_person(&rows[*earlier].row);
                rows[*earlier].row = merged;
                continue;
            }
            row_of.extend(local.map(|local| (local, rows.len())));
            let game = rebuilt.model.global.games.name(record.game.0).to_owned();
            rows.push(RebuiltRow { game, name: record.name, display: record.display, row });
        }
        let mut removed = Vec::new();
        for (player, _) in self.rows(source, window, here)? {
            if !row_of.contains_key(&player)
                && let Some(record) = self.global.player_record(source, player)?
            {
                removed.push((self.global.games.name(record.game.0).to_owned(), record.name));
            }
        }
        let mut maps = self.import_maps(source, rebuilt, window, here, there)?;
        if rows.is_empty() && removed.is_empty() && maps.is_empty() {
            return Ok(Vec::new());
        }
        let (mut steps, mut rows) = (Vec::new(), rows.into_iter());
        loop {
            let of_server = RebuiltServer {
                window,
                server: url.clone(),
                rows: rows.by_ref().take(ROWS_PER_EVENT).collect(),
                removed: removed.split_off(removed.len().saturating_sub(ROWS_PER_EVENT)),
                maps: std::mem::take(&mut maps),
            };
            steps.push(RebuildStep::Server(Box::new(of_server)));
            if rows.len() == 0 && removed.is_empty() {
                return Ok(steps);
            }
        }
    }

    /// The times of the maps of a server; 0 for maps that were not played by the rebuilt window.
    fn import_maps(
        &self,
        source: &dyn StoreReader,
        rebuilt: &RebuiltState<'_>,
        window: WindowKey,
        here: ServerKey,
        there: Option<ServerKey>,
    ) -> Result<Vec<(String, MapRow)>, ReadError> {
        let Some(week) = window.week() else { return Ok(Vec::new()) };
        let of_server = there.map_or(Ok(Vec::new()), |it| rebuilt.model.map_rows(rebuilt.reader, week, it))?;
        let name = |(map, row): (MapKey, MapRow)| (rebuilt.model.global.maps.name(map.0).to_owned(), row);
        let mut maps: Vec<(String, MapRow)> = of_server.into_iter().map(name).collect();
        for (map, row) in self.map_rows(source, week, here)? {
            let name = self.global.maps.name(map.0);
            if row != MapRow::default() && maps.iter().all(|(other, _)| other != name) {
                maps.push((name.to_owned(), MapRow::default()));
            }
        }
        Ok(maps)
    }

    /// The key of a player by a normalised name.
    pub(in crate::engine) fn find_player(
        &self,
        source: &dyn StoreReader,
        game: &str,
        name: &Name,
    ) -> Result<Option<PlayerKey>, ReadError> {
        match self.global.games.find(game) {
            Some(game) => self.global.find_player(source, crate::model::GameKey(game), name),
            None => Ok(None),
        }
    }
}

impl Engine {
    /// Reads the steps of the next server, or of the next players, which are to be applied before any other
    /// event: often none. After `None`, everything is imported. Steps are read again from the first one if a player
    /// was merged or forgotten: they hold absolute values.
    pub fn next_import_steps(
        &self,
        import: &mut WindowImport,
        source: &dyn StoreReader,
        rebuilt: &RebuiltState<'_>,
    ) -> Result<Option<Vec<RebuildStep>>, ReadError> {
        if import.players_removed != self.model.global.meta.players_removed {
            *import = self.model.begin_import();
        }
        let WindowImport { windows, at, people, .. } = import;
        loop {
            match *at {
                ImportStage::Servers { window, .. } if window >= windows.len() => {
                    *at = ImportStage::Players { window: 0, next: 1 };
                }
                ImportStage::Servers { window, server } if server >= self.model.servers.end().0 => {
                    *at = ImportStage::Servers { window: window + 1, server: 1 };
                }
                ImportStage::Servers { window, server } => {
                    *at = ImportStage::Servers { window, server: server + 1 };
                    return self
                        .model
                        .import_server(people, source, rebuilt, windows[window], ServerKey(server))
                        .map(Some);
                }
                ImportStage::Players { window, .. } if window >= windows.len() => return Ok(None),
                ImportStage::Players { window, next } if next >= rebuilt.model.global.meta.next_player => {
                    *at = ImportStage::Players { window: window + 1, next: 1 };
                }
                ImportStage::Players { window, next } => {
                    let end = next.saturating_add(PLAYERS_PER_STEP).min(rebuilt.model.global.meta.next_player);
                    *at = ImportStage::Players { window, next: end };
                    let players = self.import_players(people, source, rebuilt, windows[window], next..end)?;
                    return Ok(Some(player_steps(windows[window], players)));
                }
            }
        }
    }

    /// `players`: keys there.
    fn import_players(
        &self,
        people: &mut PlayerKeyMap,
        source: &dyn StoreReader,
        rebuilt: &RebuiltState<'_>,
        window: WindowKey,
        players: std::ops::Range<u32>,
    ) -> Result<Vec<RebuiltPlayer>, ReadError> {
        let mut found: Vec<(PlayerKey, PlayerWindow)> = Vec::new();
        rebuilt.window_reader.each_player(window, players, &mut |player, of_player| found.push((player, of_player)))?;
        let mut imported = Vec::with_capacity(found.len());
        for (player, mut of_player) in found {
            let Some((local, record)) = people.find(&self.model, source, rebuilt, player)? else { continue };
            let all = local.and_then(|local| people.remotes_by_local.get(&local)).filter(|all| all.len() > 1);
            if let Some(all) = all {
                of_player = rebuilt.merged_player_window(window, all)?.unwrap_or(of_player);
            }
            let url = |server: &ServerKey| rebuilt.model.url_of(*server).cloned();
            let known = |url: &ServerUrl| self.model.servers.find(url).is_some();
            // Both engines have applied the same changes of tags since the rebuild began.
            let tag_name = |tag: u32| rebuilt.model.global.tags.name(tag);
            let has_tag = |tag: u32| self.model.global.tags.find(tag_name(tag)).is_some();
            let tag_ratings = of_player.tag_ratings.iter().filter(|(tag, _)| has_tag(tag.0));
            imported.push(RebuiltPlayer {
                game: rebuilt.model.global.games.name(of_player.game.0).to_owned(),
                name: record.name,
                servers: of_player.servers.iter().filter_map(url).filter(known).collect(),
                game_rating: of_player.game_rating,
                tag_ratings: tag_ratings.map(|(tag, rating)| (tag_name(tag.0).to_owned(), *rating)).collect(),
            });
        }
        Ok(imported)
    }
}

/// Divides players among events, as [`ROWS_PER_EVENT`].
fn player_steps(window: WindowKey, players: Vec<RebuiltPlayer>) -> Vec<RebuildStep> {
    let mut steps: Vec<Vec<RebuiltPlayer>> = Vec::new();
    let mut size = usize::MAX;
    for player in players {
        let of_player = 3 + player.servers.len() + 2 * player.tag_ratings.len();
        if size.saturating_add(of_player) > 8 * ROWS_PER_EVENT {
            steps.push(Vec::new());
            size = 0;
        }
        size += of_player;
        steps.last_mut().expect("one was just added").push(player);
    }
    steps.into_iter().map(|players| RebuildStep::Players(RebuiltPlayers { window, players })).collect()
}

impl PlayerKeyMap {
    /// The key here of a player there, if there is one, and the record there. `None`: the player was forgotten.
    fn find(
        &mut self,
        model: &ReadModel,
        source: &dyn StoreReader,
        rebuilt: &RebuiltState<'_>,
        there: PlayerKey,
    ) -> Result<Option<(Option<PlayerKey>, PlayerRecord)>, ReadError> {
        let record = rebuilt.model.global.player_record(rebuilt.reader, there)?;
        let Some(record) = record.filter(|record| ForgottenPlaceholder::parse(&record.name).is_none()) else {
            return Ok(None);
        };
        let game = rebuilt.model.global.games.name(record.game.0);
        if model.global.is_forgotten(game, &record.name) {
            return Ok(None);
        }
        let at = there.0 as usize;
        if self.local_by_remote.len() <= at {
            self.local_by_remote.resize(at + 1, 0);
        }
        if self.local_by_remote[at] == 0
            && let Some(player) = model.find_player(source, game, &record.name)?
        {
            self.local_by_remote[at] = player.0;
            self.remotes_by_local.entry(player).or_default().push(there);
        }
        let local = Some(self.local_by_remote[at]).filter(|&key| key != 0).map(PlayerKey);
        Ok(Some((local, record)))
    }
}

impl RebuiltState<'_> {
    fn merged_player_window(&self, window: WindowKey, all: &[PlayerKey]) -> Result<Option<PlayerWindow>, ReadError> {
        let mut merged: Option<PlayerWindow> = None;
        for &player in all {
            let found = self.model.global.latest_player_window(self.reader, window, player)?;
            let Some(mut player_window) = found.map(Cow::into_owned) else { continue };
            merged.iter().for_each(|before| player_window.merge_person(before));
            merged = Some(player_window);
        }
        Ok(merged)
    }
}
