//! The boards of games and tags, held in memory: who stands on them, made anew
//! from rows and kept as the rows change (RULES section 8).
//!
//! Nothing here is stored. A player's place follows from his rows on the servers
//! of the scope and from his rating in it; so whatever changes a row, a snapshot
//! or an admin's correction, only says whose places are to be looked up again,
//! and all boards agree. The boards of one window are made together, away from
//! the engine if need be ([`BuildPlan`]); who changes meanwhile is looked up afterwards.
//!
//! A player who changed costs the groups that they belong to, however many others there
//! are: the game of the player, and the tags of the servers that they played on. Leaving a
//! tag takes a change of a server or a correction, which tells which tags that may be.
//!
//! A server's board is not here: it is ordered when it is asked for.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::board::order::{Order, Orders};
use crate::board::tree::Set;
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
pub(in crate::engine) struct GroupBoards(pub(in crate::engine) [Set; 5]);

impl GroupBoards {
    fn put(&mut self, orders: &Orders, player: PlayerKey, row: &PlayerRow) {
        for ranking in Ranking::ALL {
            let set = &mut self.0[ranking as usize];
            match orders.place(player, row, ranking) {
                Some(place) => _ = set.put(place),
                None => _ = set.remove(player),
            }
        }
    }

    fn remove(&mut self, player: PlayerKey) {
        self.0.iter_mut().for_each(|set| _ = set.remove(player));
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

    pub fn board(&self, group: Group, ranking: Ranking) -> Option<&Set> {
        self.boards.get(&group).map(|boards| &boards.0[ranking as usize])
    }

    /// How the boards of a group are ordered.
    pub fn orders(&self, group: Group) -> Orders {
        self.rules.orders(group)
    }

    /// A board that nobody is on.
    pub(in crate::engine) fn empty_board(&self, group: Group, ranking: Ranking) -> Set {
        self.rules.empty(self.window, group, ranking)
    }

    /// Players on the boards of games.
    pub fn players(&self) -> usize {
        let games = self.boards.iter().filter(|(group, _)| group.tag().is_none());
        games.map(|(_, boards)| boards.0[Ranking::Time as usize].len() as usize).sum()
    }

    pub fn heap_bytes(&self) -> usize {
        self.boards.values().flat_map(|boards| &boards.0).map(Set::heap_bytes).sum()
    }

    fn compact(&mut self) {
        self.boards.values_mut().flat_map(|boards| &mut boards.0).for_each(Set::compact);
    }

    /// Takes over rules by which no board that is here is ordered otherwise.
    /// Returns whether they are such.
    fn adopt_orders(&mut self, rules: &BoardOrders) -> bool {
        if self.rules == *rules {
            return true; // as for most games that are new: no board is looked at
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
    everywhere: Orders,
    /// Where it may be otherwise.
    of_group: FxHashMap<Group, Orders>,
}

impl BoardOrders {
    pub(in crate::engine) fn orders(&self, group: Group) -> Orders {
        self.of_group.get(&group).copied().unwrap_or(self.everywhere)
    }

    pub(in crate::engine) fn empty(&self, window: WindowKey, group: Group, ranking: Ranking) -> Set {
        let order = self.orders(group).order(ranking);
        Set::new(order.direction, board_id(window, group, ranking, order))
    }
}

/// Tells a board, of a group or a server, from every other; the same after a
/// restart: a cursor stays good as long as the board is there.
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

/// The boards at hand, by window.
#[derive(Debug, Default)]
pub(in crate::engine) struct BoardCache {
    windows: FxHashMap<WindowKey, CachedWindow>,
    rules: BoardOrders,
    questions: u64,
    /// Everyone with a row on one of these in that window has changed, and may have left
    /// these groups.
    servers_changed: FxHashMap<(WindowKey, ServerKey), Groups>,
    /// The one of them whose players are being noted, and the last who is.
    noting: Option<DirtyServer>,
    /// Groups that were visited to look places up.
    groups_visited: u64,
}

/// Groups that a player may have left, each once.
pub(in crate::engine) type Groups = SmallVec<[Group; 2]>;

#[derive(Debug)]
struct DirtyServer {
    window: WindowKey,
    server: ServerKey,
    after: Option<PlayerKey>,
    left: Groups,
}

/// Whose places are to be looked up again.
#[derive(Debug, Default)]
struct DirtyPlayers {
    players: FxHashSet<PlayerKey>,
    /// Groups besides their games that some of them may have left: few, and seldom.
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

    /// Up to `most` of them.
    fn take(&mut self, most: usize) -> Vec<(PlayerKey, Groups)> {
        let taken: Vec<PlayerKey> = self.players.iter().copied().take(most).collect();
        taken
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
    /// Of the players on `boards`.
    changed: DirtyPlayers,
    /// Of those on boards that are being made.
    changed_since_plan: Option<DirtyPlayers>,
    /// Of a window that is over: the memory of its boards, bytes.
    frozen: Option<usize>,
    /// When it was last asked, in questions.
    asked: u64,
}

impl BoardCache {
    /// A player's rows, rating or servers have changed in a window.
    pub(in crate::engine) fn changed(&mut self, window: WindowKey, player: PlayerKey) {
        self.changed_and_left(window, player, &[]);
    }

    /// The same, and the player may have left these groups.
    pub(in crate::engine) fn changed_and_left(&mut self, window: WindowKey, player: PlayerKey, left: &[Group]) {
        let Some(shelved) = self.windows.get_mut(&window) else { return };
        if shelved.boards.is_some() {
            shelved.changed.insert(player, left);
            shelved.frozen = None;
        }
        if let Some(changed) = &mut shelved.changed_since_plan {
            changed.insert(player, left);
        }
    }

    /// A server counts where it did not, or no longer does; before, it had these tags.
    pub(in crate::engine) fn server_changed(&mut self, server: ServerKey, tags_before: &[TagKey]) {
        let left: Groups = tags_before.iter().map(|tag| Group::Tag(*tag)).collect();
        for window in self.windows.keys() {
            add_groups(self.servers_changed.entry((*window, server)).or_default(), &left);
        }
    }

    /// Groups that the players of a server may have left without being noted yet.
    pub(in crate::engine) fn left_by(&self, window: WindowKey, server: ServerKey) -> Groups {
        let mut left = self.servers_changed.get(&(window, server)).cloned().unwrap_or_default();
        let noting = self.noting.as_ref().filter(|noting| (noting.window, noting.server) == (window, server));
        noting.iter().for_each(|noting| add_groups(&mut left, &noting.left));
        left
    }

    /// Whose players are to be noted next.
    fn next_to_note(&mut self) -> Option<DirtyServer> {
        if let Some(noting) = self.noting.take() {
            return Some(noting);
        }
        let (window, server) = *self.servers_changed.keys().next()?;
        let left = self.servers_changed.remove(&(window, server))?;
        Some(DirtyServer { window, server, after: None, left })
    }

    /// Whether players of a window are still to be noted.
    fn is_noting(&self, window: WindowKey) -> bool {
        self.noting.as_ref().is_some_and(|noting| noting.window == window)
            || self.servers_changed.keys().any(|(of, _)| *of == window)
    }

    /// The players of a list have.
    pub(in crate::engine) fn changed_all(&mut self, windows: &[WindowKey], entries: &[PlayerEntry]) {
        if self.windows.is_empty() {
            return;
        }
        for presence in entries.iter().filter_map(|entry| entry.presence.as_ref()) {
            windows.iter().for_each(|window| self.changed(*window, presence.player));
        }
    }

    /// A window that nobody has a row in yet, where the boards of others are held.
    pub(in crate::engine) fn begin(&mut self, window: WindowKey) {
        if self.windows.is_empty() {
            return;
        }
        let boards = WindowBoards::empty(window, self.rules.clone());
        self.windows.entry(window).or_insert_with(|| CachedWindow { boards: Some(boards), ..CachedWindow::default() });
    }

    pub(in crate::engine) fn forget(&mut self, window: WindowKey) {
        self.windows.remove(&window);
    }

    pub(in crate::engine) fn boards(&self, window: WindowKey) -> Option<&WindowBoards> {
        self.windows.get(&window)?.boards.as_ref()
    }

    /// A window is over: its boards take as little room as they can.
    pub(in crate::engine) fn freeze(&mut self, window: WindowKey) {
        let is_hot = |s: &&mut CachedWindow| s.frozen.is_none() && s.changed.is_empty();
        let Some(shelved) = self.windows.get_mut(&window).filter(is_hot) else { return };
        let Some(boards) = &mut shelved.boards else { return };
        boards.compact();
        shelved.frozen = Some(boards.heap_bytes());
    }

    /// Lets go of the boards of a group, in every window.
    pub(in crate::engine) fn drop_group(&mut self, group: Group) {
        for shelved in self.windows.values_mut() {
            let Some(boards) = &mut shelved.boards else { continue };
            boards.boards.remove(&group);
            shelved.frozen = shelved.frozen.map(|_| boards.heap_bytes());
        }
    }

    /// Lets go of boards of windows that are over until they take at most so much
    /// memory; who was not asked for longest goes first. Who is asked again is
    /// made again.
    pub(in crate::engine) fn make_room(&mut self, bytes_max: u64) {
        while self.windows.values().filter_map(|shelved| shelved.frozen).sum::<usize>() as u64 > bytes_max {
            let frozen = self.windows.iter().filter(|(_, s)| s.frozen.is_some() && s.changed_since_plan.is_none());
            let oldest = frozen.min_by_key(|(window, s)| (s.asked, **window)).map(|(window, _)| *window);
            let Some(oldest) = oldest else { return };
            self.windows.remove(&oldest);
        }
    }
}

impl GlobalState {
    /// Looks how boards are ordered. Boards at hand that are ordered otherwise go
    /// on answering until they are made anew.
    pub(in crate::engine) fn see_order(&mut self) {
        let mut rules = BoardOrders { everywhere: self.settings.orders(None), of_group: FxHashMap::default() };
        for scope in self.settings.order_overrides().scopes() {
            let group = match scope {
                Scope::Server(_) => None, // ordered when it is asked for
                Scope::Game(name) => self.games.find(name).map(|key| Group::Game(GameKey(key))),
                Scope::Tag(name) => self.tags.find(name).map(|key| Group::Tag(TagKey(key))),
            };
            rules.of_group.extend(group.map(|group| (group, self.settings.orders(scope))));
        }
        // A game that is new has no boards yet: those at hand only learn its rules.
        for boards in self.shelf.windows.values_mut().filter_map(|shelved| shelved.boards.as_mut()) {
            boards.adopt_orders(&rules);
        }
        self.shelf.rules = rules;
    }
}

impl Engine {
    /// What makes the boards of a window. From now on until [`Engine::shelve`]
    /// the engine remembers who changes; boards that are at hand go on answering.
    pub fn plan_boards(&mut self, window: WindowKey) -> BuildPlan {
        let mut left_out = vec![true; self.servers.len()];
        let mut tags: FxHashMap<ServerKey, Vec<TagKey>> = FxHashMap::default();
        let mut present = DirtyPlayers::default();
        for (index, slot) in self.servers.iter().enumerate() {
            let Some(slot) = slot else { continue };
            left_out[index] = !self.is_counted(slot, window, ServerKey(index as u32));
            let of_server = self.global.tags_there(&slot.record.tags);
            if !of_server.is_empty() {
                tags.insert(ServerKey(index as u32), of_server);
            }
            // What lives with a presence is not among the written rows.
            present.players.extend(slot.record.presences().filter(|p| p.row(window).is_some()).map(|p| p.player));
        }
        // Nor is what waits for the next commit.
        let waiting = self.global.pending.rows.iter().filter(|((w, _), _)| *w == window);
        present.players.extend(waiting.flat_map(|(_, rows)| rows.keys()));
        present.players.extend(self.global.player_windows.changed_in(window));
        let plan = BuildPlan {
            window,
            rules: self.global.shelf.rules.clone(),
            left_out,
            tags,
            players_end: self.global.meta.next_player,
        };
        self.global.shelf.windows.entry(window).or_default().changed_since_plan = Some(present);
        plan
    }

    /// Takes boards that were made by a plan. What they do not know yet is looked
    /// up by the next [`Engine::refresh_boards`]. Boards whose window has gone, or
    /// that are ordered by rules of before, are let go.
    pub fn install_boards(&mut self, mut boards: WindowBoards) {
        if !self.global.window_exists(boards.window) {
            return self.global.shelf.forget(boards.window);
        }
        // A tag may have gone since they were planned.
        boards.boards.retain(|group, _| group.tag().is_none_or(|tag| self.global.is_tag(tag)));
        let Some(shelved) = self.global.shelf.windows.get_mut(&boards.window) else { return };
        let Some(changed) = shelved.changed_since_plan.take() else { return };
        if !boards.adopt_orders(&self.global.shelf.rules) {
            return;
        }
        shelved.frozen = None;
        (shelved.boards, shelved.changed) = (Some(boards), changed);
    }

    /// Players whose places in the boards of a window are to be looked up again;
    /// `None`: it is not known yet who all of them are.
    pub fn dirty_players(&self, window: WindowKey) -> Option<usize> {
        let shelf = &self.global.shelf;
        let changed = shelf.windows.get(&window).map_or(0, |shelved| shelved.changed.len());
        (!shelf.is_noting(window)).then_some(changed)
    }

    /// Notes that the boards of a window are asked: of those that are over, they
    /// stay longest.
    pub fn touch_boards(&mut self, window: WindowKey) {
        let shelf = &mut self.global.shelf;
        shelf.questions += 1;
        if let Some(shelved) = shelf.windows.get_mut(&window) {
            shelved.asked = shelf.questions;
        }
    }

    /// The boards of a window, where they are at hand.
    pub fn boards(&self, window: WindowKey) -> Option<&WindowBoards> {
        self.global.shelf.boards(window)
    }

    /// Windows whose boards are to be at hand: those that run now.
    pub fn running_windows(&self) -> Vec<WindowKey> {
        let mut windows = self.global.settings.windows.at(self.now_ms());
        windows.retain(|window| !self.global.is_rebuilding(*window));
        windows
    }

    /// Windows whose boards order scores as the settings no longer say. They
    /// answer until they are planned and shelved anew.
    pub fn windows_with_stale_order(&self) -> Vec<WindowKey> {
        let shelf = &self.global.shelf;
        let is_old = |shelved: &CachedWindow| shelved.boards.as_ref().is_some_and(|boards| boards.rules != shelf.rules);
        shelf.windows.iter().filter(|(_, shelved)| is_old(shelved)).map(|(window, _)| *window).collect()
    }

    /// Looks up the places of up to `most` players who changed, or notes who did.
    /// There must be no change that is not committed: what is shown is durable.
    /// Returns whether there are more.
    pub fn refresh_boards<S: StateReader>(&mut self, source: &S, most: usize) -> Result<bool, S::Error> {
        let mut left = most;
        while left > 0 {
            let Some(noting) = self.global.shelf.next_to_note() else { break };
            let (window, server) = (noting.window, noting.server);
            let RowPage { rows, is_last } = self.rows_after(source, window, server, noting.after, left)?;
            left = left.saturating_sub(rows.len().max(1));
            let shelf = &mut self.global.shelf;
            rows.iter().for_each(|(player, _)| shelf.changed_and_left(window, *player, &noting.left));
            let last = rows.last().filter(|_| !is_last);
            shelf.noting = last.map(|(last, _)| DirtyServer { after: Some(*last), ..noting });
        }
        let windows: Vec<WindowKey> = self.global.shelf.windows.keys().copied().collect();
        for window in windows {
            let Some(shelved) = self.global.shelf.windows.get_mut(&window) else { continue };
            let Some(mut boards) = shelved.boards.take() else { continue };
            let mut changed = std::mem::take(&mut shelved.changed);
            let now = changed.take(left);
            left -= now.len();
            let mut visited = 0;
            for (player, left) in now {
                visited += self.refresh_player(source, &mut boards, player, left)?;
            }
            self.global.shelf.groups_visited += visited;
            let more = !changed.is_empty() || self.global.shelf.is_noting(window);
            let shelved = self.global.shelf.windows.get_mut(&window).expect("looked at above");
            (shelved.boards, shelved.changed) = (Some(boards), changed);
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
        let of_player = match self.global.player_windows.get(window, player) {
            Some(known) => Some(known.clone()),
            None => source.player_window(window, player)?,
        };
        let mut merged: Vec<(Group, PlayerRow)> = Vec::with_capacity(1);
        if let Some(of_player) = &of_player {
            add_groups(&mut left, &[Group::Game(of_player.game)]);
            for &server in &of_player.servers {
                let is_counted = |slot: &&ServerState| self.is_counted(slot, window, server);
                let Some(slot) = self.server_state(server).filter(is_counted) else { continue };
                let Some(row) = self.current_row(source, slot, window, server, player)? else { continue };
                let tags = self.global.tags_there(&slot.record.tags);
                for group in std::iter::once(Group::Game(of_player.game)).chain(tags.into_iter().map(Group::Tag)) {
                    match merged.iter_mut().find(|(g, _)| *g == group) {
                        Some((_, sum)) => sum.merge(&row),
                        None => merged.push((group, row.clone())),
                    }
                }
            }
        }
        for (group, row) in &mut merged {
            let rating = of_player.as_ref().and_then(|of_player| of_player.rating(group.tag()));
            row.set_rating(rating.unwrap_or(Rating::UNRATED));
            let orders = boards.rules.orders(*group);
            boards.boards_mut(*group).put(&orders, player, row);
        }
        left.retain(|group| !merged.iter().any(|(merged, _)| merged == group));
        for group in &left {
            let stood = boards.boards.get_mut(group);
            stood.into_iter().for_each(|boards| boards.remove(player));
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

    /// Each server has a game of its own, with two players.
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
        let before = state.engine.global.shelf.groups_visited;
        while state.engine.refresh_boards(&state.store, 1).unwrap() {}
        state.engine.global.shelf.groups_visited - before
    }

    #[test]
    fn dirty_player_refreshes_only_their_groups() {
        let dir = tempfile::tempdir().unwrap();
        let store = StoreSettings { cache_bytes: 16 << 20, create: true };
        let mut state = State::open(dir.path(), store, EngineSettings::default()).unwrap();
        for n in 0..GAMES {
            // Two of them have a tag, one of those another besides.
            let tags = [("both", n < 2), ("one", n < 1), ("other", n == 7)];
            let tags = tags.into_iter().filter(|(_, has)| *has).map(|(tag, _)| tag.to_owned()).collect();
            state.engine.add_server(url(n), tags, FROM_MS).unwrap();
            observe(&mut state, n, FROM_MS);
        }
        let window = state.engine.running_windows()[0];
        state.commit_and_shelve(window).unwrap();
        let boards = |state: &State| state.engine.boards(window).unwrap().boards.len();
        assert_eq!(boards(&state), GAMES as usize + 3);
        visited(&mut state);

        for (n, groups) in [(0, 3), (1, 2), (2, 1), (7, 2)] {
            observe(&mut state, n, FROM_MS + 60_000);
            assert_eq!(visited(&mut state), 2 * groups, "server {n}");
        }
        // A tag less: its group is visited once more, to leave it.
        state.engine.tag_server(&url(1), &[], &["both".to_owned()]).unwrap();
        assert_eq!(visited(&mut state), 2 * 2);
        observe(&mut state, 1, FROM_MS + 120_000);
        assert_eq!(visited(&mut state), 2);
        // Greylisted: out of its game and its tags, and in again.
        for reason in [Some("fake".to_owned()), None] {
            state.engine.greylist(&url(0), reason).unwrap();
            assert_eq!(visited(&mut state), 2 * 3);
        }
        // A new game makes boards of its own.
        observe(&mut state, GAMES, FROM_MS + 120_000);
        assert_eq!((visited(&mut state), boards(&state)), (2, GAMES as usize + 4));
        // Who is no more may have been in any tag of the three, and in one game.
        let State { engine, store } = &mut state;
        engine.forget_player(store, "game 9", &PlayerSelector::Name("player 1".into()), FROM_MS + 120_000).unwrap();
        assert_eq!(visited(&mut state), 4);
        assert!(state.engine.boards(window).unwrap().boards.values().all(|boards| !boards.0[4].is_empty()));
    }
}
