//! The boards of games and tags in memory. They are built from rows, and updated when rows change
//! (docs/rules.md section 8).
//!
//! The cache is not stored. An entry is computed from the player's rows on the servers of the
//! scope and their rating in it. A snapshot has the rows at hand that it changes: the row of a player gives the entry at
//! once, if the player has no others; on a server without tags also with others, which are kept packed (`known_rows`,
//! `update`). Only boards whose scores have changed get it. Otherwise code that changes a row only marks the player dirty,
//! and a refresh computes the entries again, and keeps the rows (`refresh`). The boards of one window are built together, on
//! another thread if necessary ([`BuildPlan`](super::build::BuildPlan)); players who change during the build are
//! refreshed after it.
//!
//! The board of a single server is not cached: it is sorted for each query.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rustc_hash::FxHashMap;

use super::build::BuiltBoards;
use super::dirty::{DirtyPlayers, DirtyServer, Groups, add_groups};
use super::group::{BoardOrders, Group, WindowBoards};
use super::known_rows::KnownRows;
use super::ranking_set::RankingSet;
use crate::board::Board;
use crate::model::row::{PlayerRow, Ranking};
use crate::model::{PlayerKey, ServerKey, TagKey, WindowKey};

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
    /// How often entries were refreshed in all windows.
    refreshes: usize,
    /// Groups that were visited to update entries.
    pub(super) groups_visited: u64,
}

/// How long a measured memory of boards is reported, ms.
const MEMORY_AGE_MAX_MS: i64 = 60_000;

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
    /// The build of new boards.
    build: Option<BoardsInBuild>,
    pub(super) known: KnownRows,
    /// In a replica, the memory of what the engine knows, bytes.
    known_elsewhere_bytes: usize,
    /// Memory of the boards in bytes, if the window has ended.
    compacted_bytes: Option<usize>,
    /// Entries that have changed since the boards were built, opened or compacted.
    changes: usize,
    /// Boards that are still to be compacted.
    loose: Vec<(Group, Ranking)>,
}

/// Boards of an ended window are compacted if more than this share of their players have changed since they were
/// built: those that a build makes are as compact already, and corrections change few players.
const LOOSE_SHARE: usize = 4;

/// Entries that are compacted in a tick, and the rest of the last board: 10 ms.
const COMPACTED_PER_TICK: usize = 100_000;

/// What changes while boards are built.
#[derive(Debug)]
struct BoardsInBuild {
    dirty: DirtyPlayers,
    /// Players whose number of rows may not be the one that the build sees.
    unsure: Vec<PlayerKey>,
}

impl CachedWindow {
    fn mark_dirty(&mut self, player: PlayerKey, changed: RankingSet, left: &[Group]) {
        self.known.forget(player);
        if let Some(build) = &mut self.build {
            build.unsure.push(player);
        }
        self.mark_entries(player, changed, left);
    }

    fn mark_entries(&mut self, player: PlayerKey, changed: RankingSet, left: &[Group]) {
        if self.boards.is_some() {
            self.dirty.insert(player, changed, left);
            self.note_change();
        }
        if let Some(build) = &mut self.build {
            build.dirty.insert(player, changed, left);
        }
    }

    /// Marks a player dirty whom a server has listed. Their known rows are right.
    pub(super) fn mark_listed(&mut self, player: PlayerKey, changed: RankingSet) {
        self.mark_entries(player, changed, &[]);
        if self.boards.is_some() {
            self.dirty.note_listed(player);
        }
    }
}

impl CachedWindow {
    fn last_used(&self) -> u64 {
        self.boards.as_ref().map_or(0, |boards| boards.last_used.load(Ordering::Relaxed))
    }

    /// Removes the dirty mark of a player whom a server has listed. Returns the rankings whose entries are out of date.
    /// `None`: the mark stays, because boards are being built, or entries in groups of other servers may be out of date.
    pub(super) fn take_dirty(&mut self, player: PlayerKey, is_single: bool) -> Option<RankingSet> {
        match self.build {
            Some(_) => None,
            None => self.dirty.take_listed(player, is_single),
        }
    }

    /// Entries of a player change: the memory must be measured again.
    pub(super) fn note_change(&mut self) {
        self.compacted_bytes = None;
        self.changes += 1;
    }

    fn note_loose_boards(&mut self, boards: &WindowBoards) {
        if self.changes > boards.players() / LOOSE_SHARE {
            self.changes = 0;
            self.loose = boards.groups().flat_map(|group| Ranking::ALL.map(|ranking| (group, ranking))).collect();
        }
    }

    fn known_bytes(&self) -> usize {
        self.known.heap_bytes() + self.known_elsewhere_bytes
    }

    /// Nothing is known about rows any more.
    fn forget_rows(&mut self) {
        self.known = KnownRows::default();
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

    /// A server has listed a player, whose entries change otherwise than in their scores. The list is passed on, too.
    pub fn mark_listed(&mut self, window: WindowKey, player: PlayerKey) {
        let cached = self.windows.get_mut(&window);
        cached.into_iter().for_each(|cached| cached.mark_listed(player, RankingSet::ALL));
    }

    /// A player has left a server. The row is the last one there.
    pub fn mark_left(&mut self, window: WindowKey, server: ServerKey, player: PlayerKey, row: &PlayerRow) {
        let windows = self.windows.len();
        let Some(cached) = self.windows.get_mut(&window) else { return };
        // It may be a row that no list had: a round before the window began has ended in it.
        cached.known.put(player, server, row, windows);
        cached.mark_entries(player, RankingSet::ALL, &[]);
    }

    /// A player has a row on one more server, of now so many. The row follows with a list or [`BoardCache::mark_left`].
    pub fn note_new_row(&mut self, window: WindowKey, player: PlayerKey, servers: usize) {
        let Some(cached) = self.windows.get_mut(&window) else { return };
        cached.known.set_single(player, servers == 1);
        if let Some(build) = &mut cached.build {
            build.unsure.push(player);
        }
    }

    /// The rows of a server start or stop counting. `tags_before` are its tags before the
    /// change.
    pub fn mark_server_dirty(&mut self, server: ServerKey, tags_before: &[TagKey]) {
        let windows: Vec<WindowKey> = self.windows.keys().copied().collect();
        windows.into_iter().for_each(|window| self.mark_server_dirty_in(window, server, tags_before));
    }

    /// As [`BoardCache::mark_server_dirty`], in one window.
    pub fn mark_server_dirty_in(&mut self, window: WindowKey, server: ServerKey, tags_before: &[TagKey]) {
        let Some(cached) = self.windows.get_mut(&window) else { return };
        cached.forget_rows();
        let left: Groups = tags_before.iter().map(|tag| Group::Tag(*tag)).collect();
        add_groups(self.dirty_servers.entry((window, server)).or_default(), &left);
    }

    /// Groups that the players of a server may have left and are not marked for yet.
    pub fn groups_left(&self, window: WindowKey, server: ServerKey) -> Groups {
        let mut left = self.dirty_servers.get(&(window, server)).cloned().unwrap_or_default();
        let dirty = self.expanding.as_ref().filter(|dirty| (dirty.window, dirty.server) == (window, server));
        dirty.iter().for_each(|dirty| add_groups(&mut left, &dirty.groups_left));
        left
    }

    /// The next server whose players are to be marked dirty. `only`: in one window.
    pub(super) fn next_dirty_server(&mut self, only: Option<WindowKey>) -> Option<DirtyServer> {
        let is_wanted = |window: WindowKey| only.is_none_or(|only| only == window);
        if let Some(dirty) = self.expanding.take_if(|dirty| is_wanted(dirty.window)) {
            return Some(dirty);
        }
        let (window, server) = *self.dirty_servers.keys().find(|(window, _)| is_wanted(*window))?;
        let left = self.dirty_servers.remove(&(window, server))?;
        if let Some(other) = self.expanding.take() {
            // Its players are marked again from the first one on.
            add_groups(self.dirty_servers.entry((other.window, other.server)).or_default(), &other.groups_left);
        }
        Some(DirtyServer { window, server, after: None, groups_left: left })
    }

    /// The windows, with another one first each time: what is refreshed at a time is limited.
    pub(super) fn windows_in_turn(&mut self) -> Vec<WindowKey> {
        let mut windows: Vec<WindowKey> = self.windows.keys().copied().collect();
        self.refreshes = self.refreshes.wrapping_add(1);
        let first = self.refreshes % windows.len().max(1);
        windows.rotate_left(first);
        windows
    }

    /// Number of dirty players in the boards of a window; `None`: not all of them are marked yet.
    pub(super) fn dirty_players(&self, window: WindowKey) -> Option<usize> {
        let dirty = self.windows.get(&window).map_or(0, |cached| cached.dirty.len());
        (!self.has_dirty_servers(window)).then_some(dirty)
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

    pub(super) fn orders(&self) -> &BoardOrders {
        &self.orders
    }

    /// Boards of a group without entries get its order, as those of a new game; all others keep theirs until they are
    /// built again.
    pub(super) fn adopt_orders(&mut self, orders: BoardOrders) {
        for boards in self.windows.values().filter_map(|cached| cached.boards.as_ref()) {
            boards.write().adopt_orders(&orders);
        }
        self.orders = orders;
    }

    /// The build of a window's boards begins. `dirty`: players to be refreshed after it. `unsure`: those of them for whom
    /// the build may read an old number of servers.
    pub(super) fn begin_build(&mut self, window: WindowKey, dirty: DirtyPlayers, unsure: Vec<PlayerKey>) {
        self.windows.entry(window).or_default().build = Some(BoardsInBuild { dirty, unsure });
    }

    /// Installs boards whose build has begun, unless they have a previous order.
    pub(super) fn install(&mut self, built: BuiltBoards) {
        let BuiltBoards { mut boards, mut single, .. } = built;
        let Some(cached) = self.windows.get_mut(&boards.window) else { return };
        let Some(BoardsInBuild { dirty, unsure }) = cached.build.take() else { return };
        if !boards.adopt_orders(&self.orders) {
            return;
        }
        (cached.compacted_bytes, cached.changes) = (None, 0);
        cached.loose.clear();
        unsure.into_iter().for_each(|player| single.remove(player));
        cached.known = KnownRows::of_singles(single);
        (cached.boards, cached.dirty) = (Some(SharedBoards::new(boards)), dirty);
    }

    /// The boards of a window are queried.
    pub(super) fn touch(&self, window: WindowKey) {
        let count = self.query_count.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(boards) = self.windows.get(&window).and_then(|cached| cached.boards.as_ref()) {
            boards.last_used.store(count, Ordering::Relaxed);
        }
    }

    /// Windows whose boards have another order than they should.
    pub(super) fn windows_with_stale_order(&self) -> Vec<WindowKey> {
        let is_old =
            |cached: &CachedWindow| cached.boards.as_ref().is_some_and(|boards| boards.read().orders != self.orders);
        self.windows.iter().filter(|(_, cached)| is_old(cached)).map(|(window, _)| *window).collect()
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
                CachedWindow {
                    boards,
                    dirty,
                    known_elsewhere_bytes: cached.known_bytes(),
                    compacted_bytes: cached.compacted_bytes,
                    ..CachedWindow::default()
                },
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

    /// Memory of the boards of a window and of the rows kept for them, bytes. That of windows that have ended is known; for the
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
        Some((bytes + cached.known_bytes()) as u64)
    }

    /// Windows have ended: their boards are compacted, some in each tick, and measured.
    pub fn compact_windows(&mut self, ended: impl Iterator<Item = WindowKey>) {
        let mut left = COMPACTED_PER_TICK;
        for window in ended {
            let is_live = |s: &&mut CachedWindow| s.compacted_bytes.is_none() && s.dirty.is_empty();
            let Some(cached) = self.windows.get_mut(&window).filter(is_live) else { continue };
            let Some(shared) = cached.boards.clone() else { continue };
            cached.note_loose_boards(&shared.read());
            while left > 0
                && let Some((group, ranking)) = cached.loose.pop()
            {
                let board = shared.read().board(group, ranking).map(Board::compacted);
                let Some(board) = board else { continue };
                left = left.saturating_sub(board.len() as usize);
                // Readers wait for this only.
                shared.write().boards_mut(group).0[ranking as usize] = board;
            }
            if cached.loose.is_empty() {
                cached.compacted_bytes = Some(shared.read().heap_bytes());
                cached.forget_rows();
            }
        }
    }

    /// Deletes the boards of a group, in every window.
    pub fn remove_group(&mut self, group: Group) {
        for cached in self.windows.values_mut() {
            let Some(mut boards) = cached.boards.as_ref().map(|boards| boards.write()) else { continue };
            boards.boards.remove(&group);
            cached.compacted_bytes = cached.compacted_bytes.map(|_| boards.heap_bytes());
        }
    }

    /// Evicts boards of windows that have ended, least recently queried first and recent ones last, until they use
    /// at most `bytes_max`. Evicted boards are rebuilt for the next query.
    pub fn evict_to(
        &mut self,
        bytes_max: u64,
        is_needed: impl Fn(WindowKey) -> bool,
        is_recent: impl Fn(WindowKey) -> bool,
    ) {
        while self.windows.values().filter_map(|cached| cached.compacted_bytes).sum::<usize>() as u64 > bytes_max {
            let frozen = self
                .windows
                .iter()
                .filter(|(window, s)| s.compacted_bytes.is_some() && s.build.is_none() && !is_needed(**window));
            let oldest = frozen.min_by_key(|(window, s)| (is_recent(**window), s.last_used(), **window));
            let oldest = oldest.map(|(window, _)| *window);
            let Some(oldest) = oldest else { return };
            self.windows.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{BoardEntry, Score};
    use crate::model::GameKey;

    const WINDOW: WindowKey = WindowKey::ALL_TIME;

    fn cache_of(players: u32) -> BoardCache {
        let mut cache = BoardCache::default();
        cache.windows.insert(WINDOW, CachedWindow::default());
        install(&mut cache, players);
        cache
    }

    /// Boards of one game as a build makes them.
    fn install(cache: &mut BoardCache, players: u32) {
        cache.begin_build(WINDOW, DirtyPlayers::default(), Vec::new());
        let mut boards = WindowBoards::empty(WINDOW, BoardOrders::default());
        for board in &mut boards.boards_mut(Group::Game(GameKey(1))).0 {
            (1..=players)
                .for_each(|player| _ = board.put(BoardEntry::new(Score(i64::from(player)), 0, PlayerKey(player))));
        }
        cache.install(BuiltBoards {
            boards,
            single: Default::default(),
            online: Default::default(),
            cache_removals: None,
        });
    }

    fn change(cache: &mut BoardCache, players: std::ops::RangeInclusive<u32>) {
        let cached = cache.windows.get_mut(&WINDOW).unwrap();
        players.for_each(|player| cached.mark_listed(PlayerKey(player), RankingSet::ALL));
        cached.dirty = DirtyPlayers::default();
    }

    /// Ticks until the window is measured. Returns their number, and whether the boards take less memory now.
    fn ticks(cache: &mut BoardCache) -> (u32, bool) {
        let bytes = |cache: &BoardCache| cache.boards(WINDOW).unwrap().heap_bytes();
        let before = bytes(cache);
        let mut ticks = 0;
        while cache.windows[&WINDOW].compacted_bytes.is_none() {
            cache.compact_windows([WINDOW].into_iter());
            ticks += 1;
        }
        (ticks, bytes(cache) < before)
    }

    #[test]
    fn ended_boards_are_compacted_only_after_many_changes() {
        let mut cache = cache_of(100_000);
        assert_eq!(ticks(&mut cache), (1, false), "as they were built");
        change(&mut cache, 1..=25_000);
        assert_eq!(ticks(&mut cache), (1, false), "few changes");
        change(&mut cache, 1..=1);
        assert_eq!(ticks(&mut cache), (5, true), "a board in each tick");
        change(&mut cache, 1..=1);
        assert_eq!(ticks(&mut cache), (1, false));
        change(&mut cache, 1..=100_000);
        install(&mut cache, 100_000);
        assert_eq!(ticks(&mut cache), (1, false), "new boards");
    }
}
