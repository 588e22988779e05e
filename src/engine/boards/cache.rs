//! The boards of games and tags in memory. They are built from rows, and updated when rows change
//! (docs/rules.md section 8).
//!
//! The cache is not stored. An entry is computed from the player's rows on the servers of the
//! scope and their rating in it. A snapshot has the rows at hand that it changes: on a server without tags,
//! the row of a player and the kept sum of the player's rows on other servers give the entry at once, on the boards
//! whose scores have changed ([`GlobalState::update_boards`]). Otherwise code that changes a row only marks the
//! player dirty, and a refresh computes the entries again, and the sum to keep (`refresh`). The boards of one window are built together, on
//! another thread if necessary ([`BuildPlan`]); players who change during the build are
//! refreshed after it.
//!
//! The board of a single server is not cached: it is sorted for each query.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rustc_hash::FxHashMap;

use super::build::BuildPlan;
use super::dirty::{DirtyPlayers, DirtyServer, Groups, RankingSet, add_groups};
use super::group::{BoardOrders, Group, WindowBoards};
use crate::engine::{Engine, GlobalState};
use crate::model::packed_row::PackedRow;
use crate::model::row::PlayerRow;
use crate::model::server::PlayerEntry;
use crate::model::{GameKey, PlayerKey, Scope, ServerKey, TagKey, WindowKey};

/// The cached boards, by window.
#[derive(Debug, Default)]
pub(in crate::engine) struct BoardCache {
    pub(super) windows: FxHashMap<WindowKey, CachedWindow>,
    orders: BoardOrders,
    query_count: Arc<AtomicU64>,
    /// Dirty servers by window: each player with a row on the server is dirty and may have left
    /// these groups.
    dirty_servers: FxHashMap<(WindowKey, ServerKey), Groups>,
    /// The dirty server whose players are being marked, and the last player marked.
    pub(super) expanding: Option<DirtyServer>,
    /// Groups that were visited to update entries.
    pub(super) groups_visited: u64,
}

/// How long a measured memory of boards is reported, ms.
const MEMORY_AGE_MAX_MS: i64 = 60_000;

/// Players whose rows on other servers are kept: some 150 bytes each. With fewer than there are, their rows are read
/// for each list: half of the time of the engine thread with 1.6 million players online.
const OTHERS_MAX: usize = 3_000_000;

/// The rows of a player on all counted servers of the game but one.
#[derive(Debug)]
struct OtherRows {
    server: ServerKey,
    sum: PackedRow,
}

/// The boards of a window, which replicas of the engine share: a reader sees each change at once.
#[derive(Debug)]
pub(super) struct SharedBoards {
    boards: RwLock<WindowBoards>,
    /// When the memory was measured, Unix ms, and the result.
    measured: Mutex<Option<(i64, usize)>>,
    /// The value of [`BoardCache::query_count`] at the last query.
    last_used: AtomicU64,
}

impl SharedBoards {
    fn new(boards: WindowBoards) -> Arc<SharedBoards> {
        Arc::new(SharedBoards {
            boards: RwLock::new(boards),
            measured: Mutex::default(),
            last_used: AtomicU64::default(),
        })
    }

    pub fn read(&self) -> RwLockReadGuard<'_, WindowBoards> {
        self.boards.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, WindowBoards> {
        self.boards.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
pub(super) struct CachedWindow {
    pub(super) boards: Option<Arc<SharedBoards>>,
    /// Dirty players of `boards`.
    pub(super) dirty: DirtyPlayers,
    /// Dirty players of boards that are being built.
    dirty_since_plan: Option<DirtyPlayers>,
    /// Of players who play on several servers: the sum of their rows on the other ones. So the row of the server that
    /// lists them gives their entries at once.
    others: FxHashMap<PlayerKey, OtherRows>,
    /// Memory of the boards in bytes, if the window has ended.
    compacted_bytes: Option<usize>,
}

impl CachedWindow {
    fn mark_dirty(&mut self, player: PlayerKey, changed: RankingSet, left: &[Group]) {
        self.others.remove(&player);
        if self.boards.is_some() {
            self.dirty.insert(player, changed, left);
            self.compacted_bytes = None;
        }
        if let Some(dirty) = &mut self.dirty_since_plan {
            dirty.insert(player, changed, left);
        }
    }

    /// Marks a player dirty whom a server has listed.
    fn mark_listed(&mut self, player: PlayerKey, changed: RankingSet, server: ServerKey) {
        self.mark_dirty(player, changed, &[]);
        if self.boards.is_some() {
            self.dirty.note_server(player, server);
        }
    }
}

impl CachedWindow {
    fn last_used(&self) -> u64 {
        self.boards.as_ref().map_or(0, |boards| boards.last_used.load(Ordering::Relaxed))
    }

    /// Keeps the sum of a player's rows on all servers but one, until another of these rows changes.
    pub(super) fn keep_others(&mut self, player: PlayerKey, server: ServerKey, sum: &PlayerRow) {
        if self.others.len() < OTHERS_MAX {
            self.others.insert(player, OtherRows { server, sum: PackedRow::pack(sum) });
        }
    }

    /// The sum of the rows on the other servers, if it is kept.
    fn others(&self, player: PlayerKey, server: ServerKey) -> Option<PlayerRow> {
        self.others.get(&player).filter(|others| others.server == server).map(|others| others.sum.unpack())
    }
}

impl BoardCache {
    /// A player's rows, rating or servers have changed in a window.
    pub fn mark_dirty(&mut self, window: WindowKey, player: PlayerKey) {
        self.mark_dirty_leaving(window, player, &[]);
    }

    /// Marks a player dirty, who may also have left these groups.
    pub fn mark_dirty_leaving(&mut self, window: WindowKey, player: PlayerKey, left: &[Group]) {
        let Some(cached) = self.windows.get_mut(&window) else { return };
        cached.mark_dirty(player, RankingSet::ALL, left);
    }

    /// The rows of a server start or stop counting. `tags_before` are its tags before the
    /// change.
    pub fn mark_server_dirty(&mut self, server: ServerKey, tags_before: &[TagKey]) {
        let left: Groups = tags_before.iter().map(|tag| Group::Tag(*tag)).collect();
        for (window, cached) in &mut self.windows {
            cached.others.clear();
            add_groups(self.dirty_servers.entry((*window, server)).or_default(), &left);
        }
    }

    /// Groups that the players of a server may have left and are not marked for yet.
    pub fn groups_left(&self, window: WindowKey, server: ServerKey) -> Groups {
        let mut left = self.dirty_servers.get(&(window, server)).cloned().unwrap_or_default();
        let dirty = self.expanding.as_ref().filter(|dirty| (dirty.window, dirty.server) == (window, server));
        dirty.iter().for_each(|dirty| add_groups(&mut left, &dirty.groups_left));
        left
    }

    /// The next server whose players are to be marked dirty.
    pub(super) fn next_dirty_server(&mut self) -> Option<DirtyServer> {
        if let Some(dirty) = self.expanding.take() {
            return Some(dirty);
        }
        let (window, server) = *self.dirty_servers.keys().next()?;
        let left = self.dirty_servers.remove(&(window, server))?;
        Some(DirtyServer { window, server, after: None, groups_left: left })
    }

    /// Whether some players of a window are not marked dirty yet.
    pub fn has_dirty_servers(&self, window: WindowKey) -> bool {
        self.expanding.as_ref().is_some_and(|dirty| dirty.window == window)
            || self.dirty_servers.keys().any(|(of, _)| *of == window)
    }

    /// Opens a window that has no rows yet, if the boards of other windows are cached.
    pub fn insert_empty(&mut self, window: WindowKey) {
        if self.windows.is_empty() {
            return;
        }
        let boards = SharedBoards::new(WindowBoards::empty(window, self.orders.clone()));
        self.windows.entry(window).or_insert_with(|| CachedWindow { boards: Some(boards), ..CachedWindow::default() });
    }

    pub fn remove(&mut self, window: WindowKey) {
        self.windows.remove(&window);
    }

    pub fn boards(&self, window: WindowKey) -> Option<RwLockReadGuard<'_, WindowBoards>> {
        self.windows.get(&window)?.boards.as_ref().map(|boards| boards.read())
    }

    /// A cache for readers with the same boards. It does not change.
    pub fn replica(&self) -> BoardCache {
        let copy = |(window, cached): (&WindowKey, &CachedWindow)| {
            let (boards, dirty) = (cached.boards.clone(), DirtyPlayers::default());
            let has_dirty = !cached.dirty.is_empty() || self.has_dirty_servers(*window);
            // Boards that are behind have to be refreshed first.
            let boards = boards.filter(|_| !has_dirty);
            (
                *window,
                CachedWindow { boards, dirty, compacted_bytes: cached.compacted_bytes, ..CachedWindow::default() },
            )
        };
        BoardCache {
            windows: self.windows.iter().map(copy).collect(),
            orders: self.orders.clone(),
            query_count: self.query_count.clone(),
            ..BoardCache::default()
        }
    }

    /// Memory of all boards, bytes, as of at most [`MEMORY_AGE_MAX_MS`] ago.
    pub fn memory_bytes(&self, now_ms: i64) -> u64 {
        self.windows.keys().filter_map(|window| self.memory_bytes_of(*window, now_ms)).sum()
    }

    /// Memory of the boards of a window, bytes. That of windows that have ended is known; for the
    /// others it takes a pass over their blocks, a few ms for each board of 10 million entries.
    pub fn memory_bytes_of(&self, window: WindowKey, now_ms: i64) -> Option<u64> {
        let cached = self.windows.get(&window)?;
        let boards = cached.boards.as_ref()?;
        let mut measured = boards.measured.lock().expect("lock poisoned");
        let recent = measured.filter(|(at_ms, _)| (0..MEMORY_AGE_MAX_MS).contains(&(now_ms - at_ms)));
        let bytes = cached.compacted_bytes.or(recent.map(|(_, bytes)| bytes)).unwrap_or_else(|| {
            let bytes = boards.read().heap_bytes();
            *measured = Some((now_ms, bytes));
            bytes
        });
        Some(bytes as u64)
    }

    /// A window has ended: its boards are compacted.
    pub fn compact_window(&mut self, window: WindowKey) {
        let is_live = |s: &&mut CachedWindow| s.compacted_bytes.is_none() && s.dirty.is_empty();
        let Some(cached) = self.windows.get_mut(&window).filter(is_live) else { return };
        let Some(mut boards) = cached.boards.as_ref().map(|boards| boards.write()) else { return };
        boards.compact();
        cached.others = FxHashMap::default();
        cached.compacted_bytes = Some(boards.heap_bytes());
    }

    /// Deletes the boards of a group, in every window.
    pub fn remove_group(&mut self, group: Group) {
        for cached in self.windows.values_mut() {
            let Some(mut boards) = cached.boards.as_ref().map(|boards| boards.write()) else { continue };
            boards.boards.remove(&group);
            cached.compacted_bytes = cached.compacted_bytes.map(|_| boards.heap_bytes());
        }
    }

    /// Evicts boards of windows that have ended, least recently queried first, until they use
    /// at most `bytes_max`. Evicted boards are rebuilt for the next query.
    pub fn evict_to(&mut self, bytes_max: u64, is_needed: impl Fn(WindowKey) -> bool) {
        while self.windows.values().filter_map(|cached| cached.compacted_bytes).sum::<usize>() as u64 > bytes_max {
            let frozen = self.windows.iter().filter(|(window, s)| {
                s.compacted_bytes.is_some() && s.dirty_since_plan.is_none() && !is_needed(**window)
            });
            let oldest = frozen.min_by_key(|(window, s)| (s.last_used(), **window)).map(|(window, _)| *window);
            let Some(oldest) = oldest else { return };
            self.windows.remove(&oldest);
        }
    }
}

impl GlobalState {
    /// The players of a list have new rows. If the server has no tags, the boards of players who have rows on this
    /// server only, or whose other rows are kept, are updated here, where the row is at hand. Others are marked
    /// dirty.
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
        let (has_tags, mut visited) = (!self.existing_tags(tags).is_empty(), 0);
        for &window in &self.current_windows.keys {
            let Some(cached) = self.board_cache.windows.get_mut(&window) else { continue };
            let shared = cached.boards.clone();
            let mut boards = shared.as_ref().map(|boards| boards.write());
            for presence in entries.iter().filter_map(|entry| entry.presence.as_ref()) {
                let (player, Some(row)) = (presence.player, presence.row(window)) else { continue };
                // A player who has just joined may have had other rows.
                let changed = match presence.segment_start_ms == t_ms {
                    true => RankingSet::ALL,
                    false => RankingSet::changed_at(row, t_ms),
                };
                let is_clean = !has_tags && cached.dirty_since_plan.is_none() && !cached.dirty.contains(player);
                let player_window = self.player_windows.get(window, player).filter(|_| is_clean);
                let sum = player_window.and_then(|it| match it.servers[..] == [server] {
                    true => Some(Cow::Borrowed(row)),
                    false => cached.others(player, server).map(|mut sum| {
                        sum.merge(row);
                        Cow::Owned(sum)
                    }),
                });
                match (player_window, sum, &mut boards) {
                    (Some(player_window), Some(sum), Some(boards)) => {
                        boards.put(Group::Game(game), player, &sum, player_window.game_rating, changed);
                        cached.compacted_bytes = None;
                        visited += 1;
                    }
                    _ => cached.mark_listed(player, changed, server),
                }
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
        // A new game has no boards yet: cached boards only adopt its orders.
        for boards in self.board_cache.windows.values().filter_map(|cached| cached.boards.as_ref()) {
            boards.write().adopt_orders(&orders);
        }
        self.board_cache.orders = orders;
    }
}

impl Engine {
    /// Returns a plan to build the boards of a window. Until [`Engine::install_boards`] the
    /// engine records which players change. Cached boards remain available.
    pub fn plan_boards(&mut self, window: WindowKey) -> BuildPlan {
        let mut excluded_servers = vec![true; self.servers.len()];
        let mut tags: FxHashMap<ServerKey, Vec<TagKey>> = FxHashMap::default();
        let mut present = DirtyPlayers::default();
        for (index, server_state) in self.servers.iter().enumerate() {
            let Some(server_state) = server_state else { continue };
            excluded_servers[index] = !self.is_counted(server_state, window, ServerKey(index as u32));
            let server_tags = self.global.existing_tags(&server_state.record.tags);
            if !server_tags.is_empty() {
                tags.insert(ServerKey(index as u32), server_tags);
            }
            // Rows held by a presence are not among the written rows.
            let live = server_state.record.presences().filter(|presence| presence.row(window).is_some());
            live.for_each(|presence| present.insert(presence.player, RankingSet::ALL, &[]));
        }
        // Nor are rows that are pending for the next commit.
        let pending = self.global.pending.rows.iter().filter(|((w, _), _)| *w == window);
        let pending = pending.flat_map(|(_, rows)| rows.keys().copied());
        let unwritten = pending.chain(self.global.player_windows.changed_in(window));
        unwritten.for_each(|player| present.insert(player, RankingSet::ALL, &[]));
        let plan = BuildPlan {
            window,
            orders: self.global.board_cache.orders.clone(),
            excluded_servers,
            tags,
            players_end: self.global.meta.next_player,
        };
        self.global.board_cache.windows.entry(window).or_default().dirty_since_plan = Some(present);
        plan
    }

    /// Installs boards that were built from a plan. The next [`Engine::refresh_boards`] applies
    /// the changes since the plan. Boards are dropped if their window was deleted, or if they
    /// have a previous order.
    pub fn install_boards(&mut self, mut boards: WindowBoards) {
        if !self.global.is_queryable(boards.window) {
            return self.global.board_cache.remove(boards.window);
        }
        // A tag may have been deleted since the plan.
        boards.boards.retain(|group, _| group.tag().is_none_or(|tag| self.global.tag_exists(tag)));
        let Some(cached) = self.global.board_cache.windows.get_mut(&boards.window) else { return };
        let Some(changed) = cached.dirty_since_plan.take() else { return };
        if !boards.adopt_orders(&self.global.board_cache.orders) {
            return;
        }
        cached.compacted_bytes = None;
        cached.others = FxHashMap::default();
        (cached.boards, cached.dirty) = (Some(SharedBoards::new(boards)), changed);
    }

    /// Number of dirty players in the boards of a window; `None`: not all of them are marked
    /// yet.
    pub fn dirty_players(&self, window: WindowKey) -> Option<usize> {
        let cache = &self.global.board_cache;
        let changed = cache.windows.get(&window).map_or(0, |cached| cached.dirty.len());
        (!cache.has_dirty_servers(window)).then_some(changed)
    }

    /// Records that the boards of a window are queried: boards of ended windows are evicted
    /// least recently queried first.
    pub fn touch_boards(&self, window: WindowKey) {
        let cache = &self.global.board_cache;
        let count = cache.query_count.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(boards) = cache.windows.get(&window).and_then(|cached| cached.boards.as_ref()) {
            boards.last_used.store(count, Ordering::Relaxed);
        }
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

    /// Windows whose cached boards have another order than the settings demand. They remain
    /// available until they are planned and installed again.
    pub fn windows_with_stale_order(&self) -> Vec<WindowKey> {
        let cache = &self.global.board_cache;
        let is_old =
            |cached: &CachedWindow| cached.boards.as_ref().is_some_and(|boards| boards.read().orders != cache.orders);
        cache.windows.iter().filter(|(_, cached)| is_old(cached)).map(|(window, _)| *window).collect()
    }
}
