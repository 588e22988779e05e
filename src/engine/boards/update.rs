//! Updates the entries of listed players, and has boards built and installed.

use std::sync::RwLockReadGuard;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::build::{BuildPlan, BuiltBoards};
use super::dirty::DirtyPlayers;
use super::group::{BoardOrders, Group, WindowBoards};
use super::ranking_set::RankingSet;
use crate::engine::{Engine, GlobalState, ReadModel};
use crate::model::commit::WindowState;
use crate::model::server::PlayerEntry;
use crate::model::{GameKey, PlayerKey, Scope, ServerKey, TagKey, WindowKey};

impl GlobalState {
    /// Updates the boards after a list has changed the rows of its players. Players with a row on this server only get
    /// their entries from that row. On a server without tags, players whose other rows are kept get them from the sum.
    /// Others, and those whose ratings are needed and not in memory, are marked dirty.
    pub(in crate::engine) fn update_boards(
        &mut self,
        server: ServerKey,
        game: GameKey,
        tags: &[TagKey],
        entries: &[PlayerEntry],
        t_ms: i64,
    ) {
        if self.board_cache.windows.is_empty() {
            return;
        }
        let (tags, mut visited) = (self.existing_tags(tags), 0);
        let presences = entries.iter().filter_map(|entry| entry.presence.as_ref());
        let players: SmallVec<[PlayerKey; 64]> = presences.clone().map(|presence| presence.player).collect();
        let windows = self.current_windows.keys.len();
        for &window in &self.current_windows.keys {
            let Some(cached) = self.board_cache.windows.get_mut(&window) else { continue };
            let shared = cached.boards.clone();
            let mut boards = shared.as_ref().map(|boards| boards.write());
            boards.iter().for_each(|boards| boards.prefetch(Group::Game(game), &players));
            for presence in presences.clone() {
                let (player, Some(row)) = (presence.player, presence.row(window)) else { continue };
                // A player who has just joined may have had other rows.
                let mut changed = match presence.segment_start_ms == t_ms {
                    true => RankingSet::ALL,
                    false => RankingSet::changed_at(row, t_ms),
                };
                let is_single = cached.known.is_single(player);
                let sum = cached.known.put(player, server, row, windows).filter(|_| is_single || tags.is_empty());
                let (Some(sum), Some(boards)) = (sum, &mut boards) else {
                    cached.mark_listed(player, changed);
                    continue;
                };
                let Some(dirty) = cached.take_dirty(player, is_single) else {
                    cached.mark_listed(player, changed);
                    continue;
                };
                changed.add(dirty);
                let groups = || std::iter::once(Group::Game(game)).chain(tags.iter().map(|tag| Group::Tag(*tag)));
                let needs_rating = groups().any(|group| boards.needs_rating(group, changed));
                let player_window = needs_rating.then(|| self.player_windows.get(window, player));
                // The rating is needed, but not in memory.
                if let Some(None) = player_window {
                    cached.mark_listed(player, changed);
                    continue;
                }
                for group in groups() {
                    let rating = player_window.iter().flatten().find_map(|it| it.rating(group.tag()));
                    boards.put(group, player, &sum, rating, changed);
                    visited += 1;
                }
                cached.note_change();
            }
        }
        self.board_cache.groups_visited += visited;
    }

    /// Updates the orders of boards. Cached boards whose order changes remain available until
    /// they are rebuilt.
    pub(in crate::engine) fn update_board_orders(&mut self) {
        let mut orders = BoardOrders { default: self.settings.orders(None), by_group: FxHashMap::default() };
        for scope in self.settings.order_overrides().scopes() {
            let group = match scope {
                Scope::Server(_) => None, // sorted for each query
                Scope::Game(name) => self.games.find(name).map(|key| Group::Game(GameKey(key))),
                Scope::Tag(name) => self.tags.find(name).map(|key| Group::Tag(TagKey(key))),
            };
            orders.by_group.extend(group.map(|group| (group, self.settings.orders(scope))));
        }
        self.board_cache.adopt_orders(orders);
    }
}

impl ReadModel {
    /// Number of dirty players in the boards of a window; `None`: not all of them are marked
    /// yet.
    pub fn dirty_players(&self, window: WindowKey) -> Option<usize> {
        self.global.board_cache.dirty_players(window)
    }

    /// Number of players who are marked dirty, in the boards of all windows.
    pub fn dirty_players_of_all(&self) -> usize {
        self.global.board_cache.windows.values().map(|cached| cached.dirty.len()).sum()
    }

    /// Records that the boards of a window are queried: boards of ended windows are evicted
    /// least recently queried first.
    pub fn touch_boards(&self, window: WindowKey) {
        self.global.board_cache.touch(window);
    }

    /// The boards of a window, if they are cached.
    pub fn boards(&self, window: WindowKey) -> Option<RwLockReadGuard<'_, WindowBoards>> {
        self.global.board_cache.boards(window)
    }

    /// The current windows, whose boards are to be cached.
    pub fn running_windows(&self) -> Vec<WindowKey> {
        let mut windows = self.global.settings.windows.windows_at(self.now_ms());
        windows.retain(|window| !self.global.is_rebuilding(*window));
        windows
    }

    /// The windows whose boards are published in each interval: those that run, and the last weeks that
    /// have ended and are not closed yet. A closed window is published once, by a task of the outbox.
    pub fn published_windows(&self) -> Vec<WindowKey> {
        let mut windows = self.running_windows();
        windows.extend(self.global.closing_weeks());
        windows
    }

    /// Closed weeks that have ended recently, the newest first, whose boards are built after a start.
    pub fn recent_weeks(&self) -> Vec<WindowKey> {
        self.global.recent_weeks()
    }

    /// The windows whose boards are built after a start: those that run, those that were opened in advance, because
    /// they get no empty boards any more, and recent weeks.
    pub fn windows_to_build(&self) -> Vec<WindowKey> {
        let mut windows = self.running_windows();
        let is_upcoming = |state: &&WindowState| state.start_ms > self.now_ms();
        windows.extend(self.global.meta.windows.iter().filter(is_upcoming).map(|state| state.window));
        windows.extend(self.recent_weeks());
        windows
    }

    /// Windows whose cached boards have another order than the settings demand. They remain
    /// available until they are planned and installed again.
    pub fn windows_with_stale_order(&self) -> Vec<WindowKey> {
        self.global.board_cache.windows_with_stale_order()
    }
}

impl Engine {
    /// Returns a plan to build the boards of a window. Until [`Engine::install_boards`] the
    /// engine records which players change. Cached boards remain available.
    pub fn plan_boards(&mut self, window: WindowKey) -> BuildPlan {
        let mut excluded_servers = vec![true; self.model.servers.end().0 as usize];
        let mut tags: FxHashMap<ServerKey, Vec<TagKey>> = FxHashMap::default();
        let (mut live, mut online) = (Vec::new(), 0);
        for (server, server_state) in self.model.servers.iter() {
            excluded_servers[server.0 as usize] = !self.model.is_counted(server_state, window, server);
            let server_tags = self.model.global.existing_tags(&server_state.record.tags);
            if !server_tags.is_empty() {
                tags.insert(server, server_tags);
            }
            let players = server_state.record.presences().filter(|presence| presence.row(window).is_some()).count();
            if players > 0 {
                live.push((server, server_state.record.share()));
                online += players;
            }
        }
        // Rows that are pending for the next commit are not written either.
        let pending = self.model.global.pending.rows.iter().filter(|((w, _), _)| *w == window);
        let pending = pending.flat_map(|(_, rows)| rows.keys().copied());
        let unsure: Vec<PlayerKey> = self.model.global.player_windows.changed_in(window).collect();
        let mut unwritten = DirtyPlayers::default();
        pending.chain(unsure.iter().copied()).for_each(|player| unwritten.insert(player, RankingSet::ALL, &[]));
        let (orders, players_end) =
            (self.model.global.board_cache.orders().clone(), self.model.global.meta.next_player);
        let cache_removals = self.cache_removals_for(online);
        let plan = BuildPlan { window, orders, excluded_servers, tags, live, players_end, cache_removals };
        self.model.global.board_cache.begin_build(window, unwritten, unsure);
        plan
    }

    /// How many times entries were removed from the cache of records; `None`: it would not take those of `online` more
    /// players. While a deletion is not written yet, the deleted record could be read and come back.
    fn cache_removals_for(&self, online: usize) -> Option<u64> {
        let GlobalState { player_windows, cache_limits, pending, .. } = &self.model.global;
        let has_room = player_windows.has_room_for(online, cache_limits.most_player_windows(self.model.servers.end()));
        (has_room && pending.corrections.deleted_player_windows.is_empty()).then(|| player_windows.removals())
    }

    /// Installs boards that were built from a plan. The next [`Engine::refresh_boards`] applies
    /// the changes since the plan. Boards are dropped if their window was deleted, or if they
    /// have a previous order.
    pub fn install_boards(&mut self, mut built: BuiltBoards) {
        let window = built.boards.window;
        if !self.model.global.is_queryable(window) {
            return self.model.global.board_cache.remove(window);
        }
        if let Some(removals) = built.cache_removals {
            let most = self.model.global.cache_limits.most_player_windows(self.model.servers.end());
            self.model.global.player_windows.adopt(window, std::mem::take(&mut built.online), removals, most);
        }
        // A tag may have been deleted since the plan.
        built.boards.boards.retain(|group, _| group.tag().is_none_or(|tag| self.model.global.tag_exists(tag)));
        self.model.global.board_cache.install(built);
    }
}
