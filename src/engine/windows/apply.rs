//! Applies the steps of a rebuild of windows: see [`import`](super::import).

use super::current::CurrentWindows;
use crate::engine::{Engine, GlobalState, ReadError, StoreReader};
use crate::model::commit::{RowKey, WeekPhase, WindowState};
use crate::model::name::Name;
use crate::model::rebuild::{RebuildStep, RebuiltPlayer, RebuiltPlayers, RebuiltRow, RebuiltServer};
use crate::model::row::{MapRow, PlayerWindow};
use crate::model::server::{PlayerEntry, Presence};
use crate::model::{GameKey, NameHash, OutboxKey, PlayerKey, ServerKey, TagKey, WeekKey, WindowKey};

impl Engine {
    /// Applies a step. A window that does not exist here any more is ignored, and one with other boundaries. All
    /// changes must be committed before and after it: it deletes rows.
    pub fn apply_rebuild(&mut self, source: &dyn StoreReader, step: &RebuildStep) -> Result<(), ReadError> {
        match step {
            RebuildStep::Types { from_ms: Some(from_ms) } => self.start_rebuild(*from_ms),
            RebuildStep::Types { from_ms: None } => self.start_types_empty(),
            RebuildStep::Begin { windows } => self.begin_rebuild(windows),
            RebuildStep::Server(of_server) => self.replace_rows(source, of_server)?,
            RebuildStep::Players(RebuiltPlayers { window, players }) if self.model.global.is_importing(*window) => {
                for player in players {
                    self.replace_player(source, *window, player)?;
                }
            }
            RebuildStep::Players(_) => {}
            RebuildStep::GiveUp { windows } => self.model.global.give_up_import(windows),
            RebuildStep::End {} => self.end_rebuild(),
        }
        Ok(())
    }

    fn begin_rebuild(&mut self, windows: &[WindowState]) {
        let global = &mut self.model.global;
        let is_valid = |state: &&WindowState| match state.window.week() {
            Some(week) => global.meta.weeks.iter().any(|it| it.week == week && it.phase == WeekPhase::Running),
            None => {
                let span = global.settings.windows.span(state.window);
                let mut retained = global.settings.windows.retained(state.window.kind, global.meta.now_ms);
                span == Some(state.start_ms..state.end_ms) && retained.any(|index| index == state.window.index)
            }
        };
        let valid: Vec<WindowState> = windows.iter().filter(is_valid).copied().collect();
        global.meta.importing = valid.iter().map(|state| state.window).collect();
        // A type without any has all of its windows, and its next one opens as usual.
        for state in &mut global.meta.types {
            state.rebuilding &= valid.iter().any(|of_type| of_type.window.kind == state.kind);
        }
        for state in valid.iter().filter(|state| state.window.week().is_none()) {
            let windows = &mut global.meta.windows;
            if let Err(at) = windows.binary_search_by_key(&state.window, |state| state.window) {
                windows.insert(at, *state);
            }
        }
        global.drop_imported_boards();
        global.current_windows = CurrentWindows::default();
        global.pending.meta = true;
    }

    fn end_rebuild(&mut self) {
        let global = &mut self.model.global;
        global.drop_imported_boards();
        // Those that have ended are published again: the archive may have got a part of their boards.
        let imported = std::mem::take(&mut global.meta.importing);
        global.enqueue_boards_of_ended(|window| imported.contains(&window));
        // A log that is applied after a start may end the rebuild of some types; others are new in the config.
        global.changed_types.retain(|kind| imported.iter().all(|window| window.kind != *kind));
        self.finish_rebuild();
    }

    fn replace_rows(&mut self, source: &dyn StoreReader, of_server: &RebuiltServer) -> Result<(), ReadError> {
        let RebuiltServer { window, server, rows, removed, maps } = of_server;
        let (window, key) = (*window, self.model.servers.find(server));
        let Some(server) = key.filter(|_| self.model.global.is_importing(window)) else { return Ok(()) };
        for RebuiltRow { game, name, display, row } in rows {
            let Some((game, player)) = self.model.global.rebuilt_player(source, game, name, display)? else { continue };
            self.model.global.board_cache.mark_dirty(window, player);
            self.model.global.change_player_window(source, window, game, player, |it| {
                if !it.servers.contains(&server) {
                    it.servers.push(server);
                }
            })?;
            match self.presence_mut(server, player).and_then(|presence| presence.row_mut(window)) {
                Some(live) => live.clone_from(row),
                None => self.model.global.put_row(RowKey { window, server, player }, row),
            }
        }
        for (game, name) in removed {
            if let Some(player) = self.model.find_player(source, game, name)? {
                self.remove_row(source, RowKey { window, server, player })?;
            }
        }
        if let Some(week) = window.week() {
            self.replace_maps(week, server, maps);
            self.model.global.enqueue(OutboxKey::Week { week, server });
            // The archive still has the positions that removed players had before it was reopened.
            if !removed.is_empty() && self.model.global.meta.reopened_weeks.contains(&week) {
                self.model.global.enqueue_best_positions(source, server)?;
            }
        }
        self.model.global.server_changed(server);
        Ok(())
    }

    /// The presence of a player in the last list of a server.
    pub(in crate::engine) fn presence_mut(&mut self, server: ServerKey, player: PlayerKey) -> Option<&mut Presence> {
        let last = self.model.servers.get_mut(server)?.record.last_snapshot.as_mut()?;
        last.entries.iter_mut().filter_map(|entry| entry.presence.as_mut()).find(|presence| presence.player == player)
    }

    /// Removes a row of a player who has none in the rebuilt window.
    fn remove_row(&mut self, source: &dyn StoreReader, key: RowKey) -> Result<(), ReadError> {
        let RowKey { window, server, player } = key;
        if let Some(presence) = self.presence_mut(server, player) {
            presence.rows.retain(|(held, _)| *held != window);
        }
        self.model.global.delete_row(source, key)?;
        if let Some(week) = window.week() {
            self.model.global.remove_best(source, week, server, player)?;
        }
        let Some(record) = self.model.global.player_record(source, player)? else { return Ok(()) };
        self.model.global.board_cache.mark_dirty(window, player);
        let has_no_rows = self.model.global.change_player_window(source, window, record.game, player, |it| {
            it.servers.retain(|other| *other != server);
            it.servers.is_empty()
        })?;
        if has_no_rows {
            self.model.global.delete_player_window(window, record.game, player);
        }
        Ok(())
    }

    fn replace_maps(&mut self, week: WeekKey, server: ServerKey, maps: &[(String, MapRow)]) {
        for (map, row) in maps {
            let map = self.model.global.map_key(map);
            let server_state = self.model.servers.get_mut(server);
            let live = server_state.and_then(|server_state| server_state.record.map_time.as_mut());
            match live.filter(|live| (live.week, live.map) == (week, map)) {
                Some(live) => live.row = *row,
                None => _ = self.model.global.pending.map_rows.entry((week, server)).or_default().insert(map, *row),
            }
        }
    }

    fn replace_player(
        &mut self,
        source: &dyn StoreReader,
        window: WindowKey,
        rebuilt: &RebuiltPlayer,
    ) -> Result<(), ReadError> {
        let Some(player) = self.model.find_player(source, &rebuilt.game, &rebuilt.name)? else { return Ok(()) };
        let game = self.model.global.game_key(&rebuilt.game);
        let mut replaced = PlayerWindow::new(game);
        replaced.servers = rebuilt.servers.iter().filter_map(|url| self.model.servers.find(url)).collect();
        if replaced.servers.is_empty() {
            return Ok(());
        }
        replaced.game_rating = rebuilt.game_rating;
        for (tag, rating) in &rebuilt.tag_ratings {
            if let Some(tag) = self.model.global.tags.find(tag) {
                replaced.set_rating(Some(TagKey(tag)), *rating);
            }
        }
        self.model.global.player_windows.put(window, player, replaced);
        self.model.global.board_cache.mark_dirty(window, player);
        Ok(())
    }
}

impl GlobalState {
    /// Whether the rows of a window are being replaced.
    pub(in crate::engine) fn is_importing(&self, window: WindowKey) -> bool {
        self.meta.importing.contains(&window)
    }

    pub(super) fn drop_imported_boards(&mut self) {
        self.meta.importing.iter().for_each(|window| self.board_cache.remove(*window));
    }

    /// The player of a rebuilt row. Other rules for names give names that have no key yet. `None`: the name
    /// was forgotten.
    fn rebuilt_player(
        &mut self,
        source: &dyn StoreReader,
        game: &str,
        name: &Name,
        display: &Name,
    ) -> Result<Option<(GameKey, PlayerKey)>, ReadError> {
        if self.is_forgotten(game, name) {
            return Ok(None);
        }
        let game = self.game_key(game);
        if let Some(player) = self.find_player(source, game, name)? {
            return Ok(Some((game, player)));
        }
        let display = if display == name { Name::default() } else { display.clone() };
        let entry =
            PlayerEntry { display, name: name.clone(), points: None, ping: None, spectator: false, presence: None };
        Ok(Some((game, self.new_player(game, &entry))))
    }

    pub(in crate::engine) fn is_forgotten(&self, game: &str, name: &str) -> bool {
        !self.forgotten.is_empty() && self.forgotten.contains_key(&NameHash::of(game, name))
    }
}
