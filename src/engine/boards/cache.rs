//! The boards of games and tags, held in memory: built from rows, and updated when rows change
//! (docs/rules.md section 8).
//!
//! The cache is not stored. An entry is computed from the player's rows on the servers of the
//! scope and their rating in it. Code that changes a row, for a snapshot or a correction, only
//! marks the player dirty. So all boards agree. The boards of one window are built together, on
//! another thread if necessary ([`BuildPlan`]); players who change during the build are
//! refreshed after it.
//!
//! Refreshing a dirty player costs one update for each group of that player, independent of the
//! total number of groups: the game, and the tags of the servers that the player played on. A
//! player leaves a tag only by a change of a server or by a correction, which names the tags in
//! question.
//!
//! The board of a single server is not cached: it is sorted for each query.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::board::Board;
use crate::board::order::{Order, Orders};
use crate::engine::boards::build::BuildPlan;
use crate::engine::rows::RowPage;
use crate::engine::{Engine, GlobalState, ServerState, StateReader};
use crate::model::row::{PlayerRow, Ranking, Rating};
use crate::model::server::PlayerEntry;
use crate::model::{GameKey, PlayerKey, Scope, ServerKey, TagKey, WindowKey};

/// A scope of several servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    Game(GameKey),
    Tag(TagKey),
}

/// The five boards of one group.
#[derive(Clone, Debug)]
pub(in crate::engine) struct GroupBoards(pub(in crate::engine) [Board; 5]);

impl GroupBoards {
    fn put(&mut self, orders: &Orders, player: PlayerKey, row: &PlayerRow) {
        for ranking in Ranking::ALL {
            let board = &mut self.0[ranking as usize];
            match orders.entry(player, row, ranking) {
                Some(entry) => _ = board.put(entry),
                None => _ = board.remove(player),
            }
        }
    }

    fn remove(&mut self, player: PlayerKey) {
        self.0.iter_mut().for_each(|board| _ = board.remove(player));
    }
}

/// The boards of all games and tags in one window.
#[derive(Clone, Debug)]
pub struct WindowBoards {
    window: WindowKey,
    boards: FxHashMap<Group, GroupBoards>,
    rules: BoardOrders,
}

impl WindowBoards {
    pub(in crate::engine) fn empty(window: WindowKey, rules: BoardOrders) -> WindowBoards {
        WindowBoards { window, boards: FxHashMap::default(), rules }
    }

    pub fn window(&self) -> WindowKey {
        self.window
    }

    pub fn board(&self, group: Group, ranking: Ranking) -> Option<&Board> {
        self.boards.get(&group).map(|boards| &boards.0[ranking as usize])
    }

    /// How the boards of a group are ordered.
    pub fn orders(&self, group: Group) -> Orders {
        self.rules.orders(group)
    }

    /// An empty board.
    pub(in crate::engine) fn empty_board(&self, group: Group, ranking: Ranking) -> Board {
        self.rules.empty(self.window, group, ranking)
    }

    /// Players on the boards of games.
    pub fn players(&self) -> usize {
        let games = self.boards.iter().filter(|(group, _)| group.tag().is_none());
        games.map(|(_, boards)| boards.0[Ranking::Time as usize].len() as usize).sum()
    }

    pub fn heap_bytes(&self) -> usize {
        self.boards.values().flat_map(|boards| &boards.0).map(Board::heap_bytes).sum()
    }

    fn compact(&mut self) {
        self.boards.values_mut().flat_map(|boards| &mut boards.0).for_each(Board::compact);
    }

    /// Adopts new board orders if they do not change the order of any cached board. Returns
    /// whether it adopted them.
    fn adopt_orders(&mut self, rules: &BoardOrders) -> bool {
        if self.rules == *rules {
            return true; // as for most new games: no board is checked
        }
        let all = self.boards.keys().all(|group| self.rules.orders(*group) == rules.orders(*group));
        if all {
            self.rules = rules.clone();
        }
        all
    }

    pub(in crate::engine) fn boards_mut(&mut self, group: Group) -> &mut GroupBoards {
        let (rules, window) = (&self.rules, self.window);
        self.boards
            .entry(group)
            .or_insert_with(|| GroupBoards(Ranking::ALL.map(|ranking| rules.empty(window, group, ranking))))
    }
}

/// How boards are ordered, by group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct BoardOrders {
    default: Orders,
    /// Groups that may have another order.
    by_group: FxHashMap<Group, Orders>,
}

impl BoardOrders {
    pub(in crate::engine) fn orders(&self, group: Group) -> Orders {
        self.by_group.get(&group).copied().unwrap_or(self.default)
    }

    pub(in crate::engine) fn empty(&self, window: WindowKey, group: Group, ranking: Ranking) -> Board {
        let order = self.orders(group).order(ranking);
        Board::new(order.direction, board_id(window, group, ranking, order))
    }
}

/// Identifies a board of a group or a server. It is the same after a restart, so a cursor stays
/// valid as long as the board exists.
pub(in crate::engine) fn board_id(window: WindowKey, scope: impl Hash, ranking: Ranking, order: Order) -> u64 {
    let mut hasher = siphasher::sip::SipHasher24::new();
    (window, scope, ranking, order).hash(&mut hasher);
    hasher.finish()
}

impl Group {
    pub fn tag(self) -> Option<TagKey> {
        match self {
            Group::Game(_) => None,
            Group::Tag(tag) => Some(tag),
        }
    }
}

/// The cached boards, by window.
#[derive(Debug, Default)]
pub(in crate::engine) struct BoardCache {
    windows: FxHashMap<WindowKey, CachedWindow>,
    rules: BoardOrders,
    query_count: u64,
    /// Dirty servers by window: each player with a row on the server is dirty and may have left
    /// these groups.
    dirty_servers: FxHashMap<(WindowKey, ServerKey), Groups>,
    /// The dirty server whose players are being marked, and the last player marked.
    expanding: Option<DirtyServer>,
    /// Groups that were visited to refresh entries.
    groups_visited: u64,
}

/// Groups that a player may have left, without duplicates.
pub(in crate::engine) type Groups = SmallVec<[Group; 2]>;

#[derive(Debug)]
struct DirtyServer {
    window: WindowKey,
    server: ServerKey,
    after: Option<PlayerKey>,
    groups_left: Groups,
}

/// Players whose entries must be refreshed.
#[derive(Debug, Default)]
struct DirtyPlayers {
    players: FxHashSet<PlayerKey>,
    /// Groups other than their games that players may have left: few, and rarely used.
    left: FxHashMap<PlayerKey, Groups>,
}

impl DirtyPlayers {
    fn insert(&mut self, player: PlayerKey, left: &[Group]) {
        self.players.insert(player);
        if !left.is_empty() {
            add_groups(self.left.entry(player).or_default(), left);
        }
    }

    fn len(&self) -> usize {
        self.players.len()
    }

    fn is_empty(&self) -> bool {
        self.players.is_empty()
    }

    /// Takes up to `most` players.
    fn take(&mut self, most: usize) -> Vec<(PlayerKey, Groups)> {
        let players: Vec<PlayerKey> = self.players.iter().copied().take(most).collect();
        players
            .into_iter()
            .map(|player| {
                self.players.remove(&player);
                (player, self.left.remove(&player).unwrap_or_default())
            })
            .collect()
    }
}

fn add_groups(groups: &mut Groups, more: &[Group]) {
    for group in more {
        if !groups.contains(group) {
            groups.push(*group);
        }
    }
}

#[derive(Debug, Default)]
struct CachedWindow {
    boards: Option<WindowBoards>,
    /// Dirty players of `boards`.
    dirty: DirtyPlayers,
    /// Dirty players of boards that are being built.
    dirty_since_plan: Option<DirtyPlayers>,
    /// Of a window that has ended: the memory of its boards, bytes.
    compacted_bytes: Option<usize>,
    /// The value of `questions` at the last query.
    last_used: u64,
}

impl BoardCache {
    /// A player's rows, rating or servers have changed in a window.
    pub(in crate::engine) fn mark_dirty(&mut self, window: WindowKey, player: PlayerKey) {
        self.mark_dirty_leaving(window, player, &[]);
    }

    /// Marks a player dirty, who may also have left these groups.
    pub(in crate::engine) fn mark_dirty_leaving(&mut self, window: WindowKey, player: PlayerKey, left: &[Group]) {
        let Some(cached) = self.windows.get_mut(&window) else { return };
        if cached.boards.is_some() {
            cached.dirty.insert(player, left);
            cached.compacted_bytes = None;
        }
        if let Some(changed) = &mut cached.dirty_since_plan {
            changed.insert(player, left);
        }
    }

    /// The rows of a server start or stop counting. `tags_before` are its tags before the
    /// change.
    pub(in crate::engine) fn mark_server_dirty(&mut self, server: ServerKey, tags_before: &[TagKey]) {
        let left: Groups = tags_before.iter().map(|tag| Group::Tag(*tag)).collect();
        for window in self.windows.keys() {
            add_groups(self.dirty_servers.entry((*window, server)).or_default(), &left);
        }
    }

    /// Groups that the players of a server may have left and are not marked for yet.
    pub(in crate::engine) fn groups_left(&self, window: WindowKey, server: ServerKey) -> Groups {
        let mut left = self.dirty_servers.get(&(window, server)).cloned().unwrap_or_default();
        let dirty = self.expanding.as_ref().filter(|dirty| (dirty.window, dirty.server) == (window, server));
        dirty.iter().for_each(|dirty| add_groups(&mut left, &dirty.groups_left));
        left
    }

    /// The next server whose players are to be marked dirty.
    fn next_dirty_server(&mut self) -> Option<DirtyServer> {
        if let Some(dirty) = self.expanding.take() {
            return Some(dirty);
        }
        let (window, server) = *self.dirty_servers.keys().next()?;
        let left = self.dirty_servers.remove(&(window, server))?;
        Some(DirtyServer { window, server, after: None, groups_left: left })
    }

    /// Whether some players of a window are not marked dirty yet.
    fn has_dirty_servers(&self, window: WindowKey) -> bool {
        self.expanding.as_ref().is_some_and(|dirty| dirty.window == window)
            || self.dirty_servers.keys().any(|(of, _)| *of == window)
    }

    /// The players of a list have changed.
    pub(in crate::engine) fn mark_list_dirty(&mut self, windows: &[WindowKey], entries: &[PlayerEntry]) {
        if self.windows.is_empty() {
            return;
        }
        for presence in entries.iter().filter_map(|entry| entry.presence.as_ref()) {
            windows.iter().for_each(|window| self.mark_dirty(*window, presence.player));
        }
    }

    /// Opens a window that has no rows yet, if the boards of other windows are cached.
    pub(in crate::engine) fn insert_empty(&mut self, window: WindowKey) {
        if self.windows.is_empty() {
            return;
        }
        let boards = WindowBoards::empty(window, self.rules.clone());
        self.windows.entry(window).or_insert_with(|| CachedWindow { boards: Some(boards), ..CachedWindow::default() });
    }

    pub(in crate::engine) fn remove(&mut self, window: WindowKey) {
        self.windows.remove(&window);
    }

    pub(in crate::engine) fn boards(&self, window: WindowKey) -> Option<&WindowBoards> {
        self.windows.get(&window)?.boards.as_ref()
    }

    /// A window has ended: its boards are compacted.
    pub(in crate::engine) fn compact_window(&mut self, window: WindowKey) {
        let is_live = |s: &&mut CachedWindow| s.compacted_bytes.is_none() && s.dirty.is_empty();
        let Some(cached) = self.windows.get_mut(&window).filter(is_live) else { return };
        let Some(boards) = &mut cached.boards else { return };
        boards.compact();
        cached.compacted_bytes = Some(boards.heap_bytes());
    }

    /// Deletes the boards of a group, in every window.
    pub(in crate::engine) fn remove_group(&mut self, group: Group) {
        for cached in self.windows.values_mut() {
            let Some(boards) = &mut cached.boards else { continue };
            boards.boards.remove(&group);
            cached.compacted_bytes = cached.compacted_bytes.map(|_| boards.heap_bytes());
        }
    }

    /// Evicts boards of windows that have ended, least recently queried first, until they use
    /// at most `bytes_max`. Evicted boards are rebuilt for the next query.
    pub(in crate::engine) fn evict_to(&mut self, bytes_max: u64) {
        while self.windows.values().filter_map(|cached| cached.compacted_bytes).sum::<usize>() as u64 > bytes_max {
            let frozen =
                self.windows.iter().filter(|(_, s)| s.compacted_bytes.is_some() && s.dirty_since_plan.is_none());
            let oldest = frozen.min_by_key(|(window, s)| (s.last_used, **window)).map(|(window, _)| *window);
            let Some(oldest) = oldest else { return };
            self.windows.remove(&oldest);
        }
    }
}

impl GlobalState {
    /// Updates the orders of boards. Cached boards whose order changes remain available until
    /// they are rebuilt.
    pub(in crate::engine) fn update_board_orders(&mut self) {
        let mut rules = BoardOrders { default: self.settings.orders(None), by_group: FxHashMap::default() };
        for scope in self.settings.order_overrides().scopes() {
            let group = match scope {
                Scope::Server(_) => None, // sorted for each query
                Scope::Game(name) => self.games.find(name).map(|key| Group::Game(GameKey(key))),
                Scope::Tag(name) => self.tags.find(name).map(|key| Group::Tag(TagKey(key))),
            };
            rules.by_group.extend(group.map(|group| (group, self.settings.orders(scope))));
        }
        // A new game has no boards yet: cached boards only adopt its orders.
        for boards in self.board_cache.windows.values_mut().filter_map(|cached| cached.boards.as_mut()) {
            boards.adopt_orders(&rules);
        }
        self.board_cache.rules = rules;
    }
}

impl Engine {
    /// Returns a plan to build the boards of a window. Until [`Engine::install_boards`] the
    /// engine records which players change. Cached boards remain available.
    pub fn plan_boards(&mut self, window: WindowKey) -> BuildPlan {
        let mut left_out = vec![true; self.servers.len()];
        let mut tags: FxHashMap<ServerKey, Vec<TagKey>> = FxHashMap::default();
        let mut present = DirtyPlayers::default();
        for (index, slot) in self.servers.iter().enumerate() {
            let Some(slot) = slot else { continue };
            left_out[index] = !self.is_counted(slot, window, ServerKey(index as u32));
            let server_tags = self.global.existing_tags(&slot.record.tags);
            if !server_tags.is_empty() {
                tags.insert(ServerKey(index as u32), server_tags);
            }
            // Rows held by a presence are not among the written rows.
            present.players.extend(slot.record.presences().filter(|p| p.row(window).is_some()).map(|p| p.player));
        }
        // Nor are rows that are pending for the next commit.
        let pending = self.global.pending.rows.iter().filter(|((w, _), _)| *w == window);
        present.players.extend(pending.flat_map(|(_, rows)| rows.keys()));
        present.players.extend(self.global.player_windows.changed_in(window));
        let plan = BuildPlan {
            window,
            rules: self.global.board_cache.rules.clone(),
            excluded_servers: left_out,
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
        if !boards.adopt_orders(&self.global.board_cache.rules) {
            return;
        }
        cached.compacted_bytes = None;
        (cached.boards, cached.dirty) = (Some(boards), changed);
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
    pub fn touch_boards(&mut self, window: WindowKey) {
        let cache = &mut self.global.board_cache;
        cache.query_count += 1;
        if let Some(cached) = cache.windows.get_mut(&window) {
            cached.last_used = cache.query_count;
        }
    }

    /// The boards of a window, if they are cached.
    pub fn boards(&self, window: WindowKey) -> Option<&WindowBoards> {
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
        let is_old = |cached: &CachedWindow| cached.boards.as_ref().is_some_and(|boards| boards.rules != cache.rules);
        cache.windows.iter().filter(|(_, cached)| is_old(cached)).map(|(window, _)| *window).collect()
    }

    /// Refreshes the entries of up to `most` dirty players, or marks players dirty. All changes
    /// must be committed: boards only show durable data. Returns whether there are more.
    pub fn refresh_boards<S: StateReader>(&mut self, source: &S, most: usize) -> Result<bool, S::Error> {
        let mut left = most;
        while left > 0 {
            let Some(dirty) = self.global.board_cache.next_dirty_server() else { break };
            let (window, server) = (dirty.window, dirty.server);
            let RowPage { rows, is_last } = self.rows_after(source, window, server, dirty.after, left)?;
            left = left.saturating_sub(rows.len().max(1));
            let cache = &mut self.global.board_cache;
            rows.iter().for_each(|(player, _)| cache.mark_dirty_leaving(window, *player, &dirty.groups_left));
            let last = rows.last().filter(|_| !is_last);
            cache.expanding = last.map(|(last, _)| DirtyServer { after: Some(*last), ..dirty });
        }
        let windows: Vec<WindowKey> = self.global.board_cache.windows.keys().copied().collect();
        for window in windows {
            let Some(cached) = self.global.board_cache.windows.get_mut(&window) else { continue };
            let Some(mut boards) = cached.boards.take() else { continue };
            let mut changed = std::mem::take(&mut cached.dirty);
            let batch = changed.take(left);
            left -= batch.len();
            let mut visited = 0;
            for (player, left) in batch {
                visited += self.refresh_player(source, &mut boards, player, left)?;
            }
            self.global.board_cache.groups_visited += visited;
            let more = !changed.is_empty() || self.global.board_cache.has_dirty_servers(window);
            let cached = self.global.board_cache.windows.get_mut(&window).expect("checked above");
            (cached.boards, cached.dirty) = (Some(boards), changed);
            if more {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the number of groups visited.
    fn refresh_player<S: StateReader>(
        &self,
        source: &S,
        boards: &mut WindowBoards,
        player: PlayerKey,
        mut left: Groups,
    ) -> Result<u64, S::Error> {
        let window = boards.window;
        let player_window = match self.global.player_windows.get(window, player) {
            Some(known) => Some(known.clone()),
            None => source.player_window(window, player)?,
        };
        let mut merged: Vec<(Group, PlayerRow)> = Vec::with_capacity(1);
        if let Some(player_window) = &player_window {
            add_groups(&mut left, &[Group::Game(player_window.game)]);
            for &server in &player_window.servers {
                let is_counted = |slot: &&ServerState| self.is_counted(slot, window, server);
                let Some(slot) = self.server_state(server).filter(is_counted) else { continue };
                let Some(row) = self.current_row(source, slot, window, server, player)? else { continue };
                let tags = self.global.existing_tags(&slot.record.tags);
                for group in std::iter::once(Group::Game(player_window.game)).chain(tags.into_iter().map(Group::Tag)) {
                    match merged.iter_mut().find(|(g, _)| *g == group) {
                        Some((_, sum)) => sum.merge(&row),
                        None => merged.push((group, row.clone())),
                    }
                }
            }
        }
        for (group, row) in &mut merged {
            let rating = player_window.as_ref().and_then(|player_window| player_window.rating(group.tag()));
            row.set_rating(rating.unwrap_or(Rating::UNRATED));
            let orders = boards.rules.orders(*group);
            boards.boards_mut(*group).put(&orders, player, row);
        }
        left.retain(|group| !merged.iter().any(|(merged, _)| merged == group));
        for group in &left {
            let boards = boards.boards.get_mut(group);
            boards.into_iter().for_each(|boards| boards.remove(player));
        }
        Ok((merged.len() + left.len()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::{EngineSettings, Event, Outcome};
    use crate::model::view::board::PlayerSelector;
    use crate::model::{Completeness, Player, ServerUrl, Snapshot};
    use crate::state::State;
    use crate::store::StoreSettings;

    const FROM_MS: i64 = 1_764_064_800_000;
    const GAMES: u32 = 30;

    fn url(n: u32) -> ServerUrl {
        ServerUrl::parse(&format!("quake3://10.0.0.{n}:27960")).unwrap()
    }

    /// Each server has a separate game with two players.
    fn observe(state: &mut State, n: u32, t_ms: i64) {
        let player = |who: i64| Player {
            name: format!("player {who}").into(),
            points: Some(who + t_ms % 1_000),
            ping: Some(40),
            connected_ms: None,
            bot: false,
            spectator: false,
        };
        let snapshot = Snapshot {
            t_ms,
            game: format!("game {n}"),
            map: "map".to_owned(),
            hostname: String::new(),
            slots: 8,
            players: (0..2).map(player).collect(),
            completeness: Completeness::Full,
            count: None,
            bots: None,
        };
        state.handle(Event::Replayed { url: url(n), outcome: Outcome::Snapshot(snapshot) }).unwrap();
    }

    /// Groups visited by refreshing the boards of the week.
    fn visited(state: &mut State) -> u64 {
        state.commit().unwrap();
        let before = state.engine.global.board_cache.groups_visited;
        while state.engine.refresh_boards(&state.store, 1).unwrap() {}
        state.engine.global.board_cache.groups_visited - before
    }

    #[test]
    fn dirty_player_refreshes_only_their_groups() {
        let dir = tempfile::tempdir().unwrap();
        let store = StoreSettings { cache_bytes: 16 << 20, create: true };
        let mut state = State::open(dir.path(), store, EngineSettings::default()).unwrap();
        for n in 0..GAMES {
            // Two servers have a tag; one of them and one other have another tag.
            let tags = [("both", n < 2), ("one", n < 1), ("other", n == 7)];
            let tags = tags.into_iter().filter(|(_, has)| *has).map(|(tag, _)| tag.to_owned()).collect();
            state.engine.add_server(url(n), tags, FROM_MS).unwrap();
            observe(&mut state, n, FROM_MS);
        }
        let window = state.engine.running_windows()[0];
        state.commit_and_build_boards(window).unwrap();
        let boards = |state: &State| state.engine.boards(window).unwrap().boards.len();
        assert_eq!(boards(&state), GAMES as usize + 3);
        visited(&mut state);

        for (n, groups) in [(0, 3), (1, 2), (2, 1), (7, 2)] {
            observe(&mut state, n, FROM_MS + 60_000);
            assert_eq!(visited(&mut state), 2 * groups, "server {n}");
        }
        // One tag less: the player is removed from its group, which is one more visit.
        state.engine.tag_server(&url(1), &[], &["both".to_owned()]).unwrap();
        assert_eq!(visited(&mut state), 2 * 2);
        observe(&mut state, 1, FROM_MS + 120_000);
        assert_eq!(visited(&mut state), 2);
        // Greylisted: removed from its game and its tags, and added again.
        for reason in [Some("fake".to_owned()), None] {
            state.engine.greylist(&url(0), reason).unwrap();
            assert_eq!(visited(&mut state), 2 * 3);
        }
        // A new game has separate boards.
        observe(&mut state, GAMES, FROM_MS + 120_000);
        assert_eq!((visited(&mut state), boards(&state)), (2, GAMES as usize + 4));
        // A removed player may have been in any of the three tags, and in one game.
        let State { engine, store } = &mut state;
        engine.forget_player(store, "game 9", &PlayerSelector::Name("player 1".into()), FROM_MS + 120_000).unwrap();
        assert_eq!(visited(&mut state), 4);
        assert!(state.engine.boards(window).unwrap().boards.values().all(|boards| !boards.0[4].is_empty()));
    }
}
