//! Builds the boards of a window from its rows, outside the engine.
//!
//! There are two passes over the store, each split into parts that the caller's [`Workers`] run
//! in parallel: over the players, for their ratings and to find players with rows on several
//! servers; then over the rows. Then the boards are sorted, again in parallel. At 10 million
//! rows this takes, in addition to the result, 32 bytes for each entry, 400 for each player
//! with rows on several servers of a group, 40 for each rated player of a group whose board
//! is ordered by both rating and row, and for some time 100 for each player online.

use crate::engine::ReadError;
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use crate::board::{Board, BoardEntry};
use crate::engine::boards::group::{BoardOrders, Group, GroupBoards, WindowBoards};
use crate::engine::chunked_vec::ChunkedVec;
use crate::engine::player_table::{PlayerSet, place};
use crate::engine::player_windows::{CachedPlayerWindow, KnownPlayerWindows};
use crate::model::row::{PlayerRow, PlayerWindow, Ranking, Rating};
use crate::model::server::ServerRecord;
use crate::model::{GameKey, PlayerKey, ServerKey, TagKey, WindowKey};

/// Parts of a pass: more than there are cores, so that no core waits long for the last part.
const PARTS: u32 = 64;

/// Runs the parts of a task in parallel, on threads of the caller.
pub trait Workers {
    /// Calls `work` once with each number below `parts`, in any order.
    fn run(&self, parts: u32, work: &(dyn Fn(u32) + Sync));
}

/// Reads a window while others write.
pub trait WindowReader: Sync {
    /// Players with keys in a range, in order of key.
    fn each_player(
        &self,
        window: WindowKey,
        players: std::ops::Range<u32>,
        each: &mut dyn FnMut(PlayerKey, PlayerWindow),
    ) -> Result<(), ReadError>;

    /// Rows of servers with keys in a range, in order of server, then player.
    fn each_row(
        &self,
        window: WindowKey,
        servers: std::ops::Range<u32>,
        each: &mut dyn FnMut(ServerKey, PlayerKey, PlayerRow),
    ) -> Result<(), ReadError>;
}

/// Input to build the boards of a window.
#[derive(Clone, Debug)]
pub struct BuildPlan {
    pub(super) window: WindowKey,
    pub(super) orders: BoardOrders,
    /// By server key: whether the server is in no group.
    pub(super) excluded_servers: Vec<bool>,
    pub(super) tags: FxHashMap<ServerKey, Vec<TagKey>>,
    /// Records of servers with players, in order of key: rows held by presences are not among the written rows.
    pub(super) live: Vec<(ServerKey, Arc<ServerRecord>)>,
    /// The next player's key.
    pub(super) players_end: u32,
    /// How many times entries were removed from the cache of records until now; `None`: the build need not return the
    /// records of players online, because the cache would not take them.
    pub(super) cache_removals: Option<u64>,
}

/// New boards of a window, and what the build has seen besides.
#[derive(Debug)]
pub struct BuiltBoards {
    pub(super) boards: WindowBoards,
    /// Players with rows on one server only.
    pub(super) single: PlayerSet,
    /// The records of players who are online. Without them, the engine would read each one when a list needs it.
    pub(super) online: KnownPlayerWindows,
    /// As in the plan. If more entries were removed since, `online` may have records that were deleted or are out of date.
    pub(super) cache_removals: Option<u64>,
}

type EntriesByGroup = FxHashMap<Group, [ChunkedVec<BoardEntry, ENTRIES_PER_CHUNK>; 5]>;

/// Entries in a chunk of a list. A single list of millions would be copied each time it doubles,
/// and the system would clear twice the memory.
const ENTRIES_PER_CHUNK: usize = 16_384;

/// The result of the first pass for a part of the players.
#[derive(Default)]
struct PlayerPass {
    /// By player, from the first of the part on: [`NO_ROWS`], or the game, combined with [`FLAGS`].
    games: Vec<u32>,
    rated: EntriesByGroup,
    /// In groups whose boards are ordered by both rating and row.
    ratings: Vec<((Group, PlayerKey), Rating)>,
    online: Vec<(PlayerKey, CachedPlayerWindow)>,
}

/// No row of the player counts.
const NO_ROWS: u32 = u32::MAX;
/// The player has rows on several servers of the game.
const MULTI_SERVER: u32 = 1 << 31;
/// All rows of the player are on one server, which counts.
const SINGLE_SERVER: u32 = 1 << 30;
const FLAGS: u32 = MULTI_SERVER | SINGLE_SERVER;

/// The result of the first pass, as input of the second.
#[derive(Default)]
struct PlayerIndex {
    /// See [`PlayerPass`].
    games: Vec<u32>,
    ratings: FxHashMap<(Group, PlayerKey), Rating>,
    /// Players with rows on one server whose row was read: the bits of a [`PlayerSet`]. A second row may be written during
    /// the build. Its player is dirty and will be refreshed, but must not get two entries.
    seen: Vec<AtomicU64>,
}

impl PlayerIndex {
    /// Returns false if it was noted before.
    fn note_row(&self, player: PlayerKey) -> bool {
        let (at, bit) = place(player);
        self.seen.get(at).is_some_and(|bits| bits.fetch_or(bit, Ordering::Relaxed) & bit == 0)
    }
}

/// The result of the second pass for a part of the rows.
#[derive(Default)]
struct RowPass {
    entries: EntriesByGroup,
    /// Merged rows of players on several servers of this part.
    multi_server_rows: FxHashMap<(Group, PlayerKey), PlayerRow>,
}

impl BuildPlan {
    pub fn window(&self) -> WindowKey {
        self.window
    }

    pub fn build(&self, source: &dyn WindowReader, workers: &dyn Workers) -> Result<BuiltBoards, ReadError> {
        let mut all: FxHashMap<Group, [Vec<Vec<BoardEntry>>; 5]> = FxHashMap::default();
        let mut add = |entries: EntriesByGroup| {
            for (group, entries) in entries {
                let group_entries = all.entry(group).or_default();
                group_entries.iter_mut().zip(entries).for_each(|(all, some)| all.extend(some.into_chunks()));
            }
        };

        let mut players =
            PlayerIndex { games: Vec::with_capacity(self.players_end as usize), ..PlayerIndex::default() };
        let is_online = self.cache_removals.map_or_else(PlayerSet::default, |_| self.online_players());
        let mut online = KnownPlayerWindows::default();
        let read = |part| self.read_players(source, &is_online, key_range(part, self.players_end));
        for known in run_parts(workers, read)? {
            players.games.extend(known.games);
            players.ratings.extend(known.ratings);
            known.online.into_iter().for_each(|(player, record)| _ = online.insert(player, record));
            add(known.rated);
        }

        players.seen.resize_with(players.games.len().div_ceil(64), AtomicU64::default);
        let servers_end = self.excluded_servers.len() as u32;
        let mut gathered: FxHashMap<(Group, PlayerKey), PlayerRow> = FxHashMap::default();
        for read in run_parts(workers, |part| self.read_rows(source, key_range(part, servers_end), &players))? {
            add(read.entries);
            for (key, row) in read.multi_server_rows {
                gathered.entry(key).and_modify(|sum| sum.merge(&row)).or_insert(row);
            }
        }
        let mut entries = EntriesByGroup::default();
        gathered.drain().for_each(|((group, player), row)| self.add_row(&mut entries, &players, group, player, &row));
        add(entries);
        let mut single = PlayerSet::default();
        for (player, of_player) in (0..).zip(&players.games) {
            if *of_player != NO_ROWS && of_player & SINGLE_SERVER != 0 {
                single.insert(PlayerKey(player));
            }
        }
        drop((gathered, players));

        let mut jobs = Vec::new();
        for (group, entries) in all {
            jobs.extend(Ranking::ALL.into_iter().zip(entries).map(|(ranking, entries)| (group, ranking, entries)));
        }
        Ok(BuiltBoards { boards: self.order(jobs, workers), single, online, cache_removals: self.cache_removals })
    }

    fn online_players(&self) -> PlayerSet {
        let mut online = PlayerSet::default();
        let presences = self.live.iter().flat_map(|(_, record)| record.presences());
        presences.for_each(|presence| online.insert(presence.player));
        online
    }

    fn read_players(
        &self,
        source: &dyn WindowReader,
        is_online: &PlayerSet,
        players: std::ops::Range<u32>,
    ) -> Result<PlayerPass, ReadError> {
        let first = players.start;
        let mut known = PlayerPass { games: vec![NO_ROWS; players.len()], ..PlayerPass::default() };
        let mut counts: Vec<(Group, u32)> = Vec::new();
        source.each_player(self.window, players, &mut |player, of_player| {
            counts.clear();
            for &server in of_player.servers.iter().filter(|server| self.counts(**server)) {
                for group in self.groups(of_player.game, server) {
                    match counts.iter_mut().find(|(g, _)| *g == group) {
                        Some((_, n)) => *n += 1,
                        None => counts.push((group, 1)),
                    }
                }
            }
            for &(group, servers) in &counts {
                if let Some(rating) = of_player.rating(group.tag()) {
                    self.add_rating(&mut known, group, player, rating);
                }
                if group.tag().is_none() {
                    let flag = match of_player.servers.len() {
                        1 => SINGLE_SERVER,
                        _ if servers > 1 => MULTI_SERVER,
                        _ => 0,
                    };
                    known.games[(player.0 - first) as usize] = of_player.game.0 | flag;
                }
            }
            if is_online.contains(player) {
                known.online.push((player, CachedPlayerWindow::stored(of_player)));
            }
        })?;
        Ok(known)
    }

    fn read_rows(
        &self,
        source: &dyn WindowReader,
        servers: std::ops::Range<u32>,
        players: &PlayerIndex,
    ) -> Result<RowPass, ReadError> {
        let mut read = RowPass::default();
        let mut add = |server: ServerKey, player: PlayerKey, row: &PlayerRow| {
            let of_player = players.games.get(player.0 as usize).copied().unwrap_or(NO_ROWS);
            let gathers = of_player & MULTI_SERVER != 0;
            if of_player == NO_ROWS || !self.counts(server) || !gathers && !players.note_row(player) {
                return;
            }
            for group in self.groups(GameKey(of_player & !FLAGS), server) {
                if gathers {
                    let sum = read.multi_server_rows.entry((group, player));
                    sum.and_modify(|sum| sum.merge(row)).or_insert_with(|| row.clone());
                } else {
                    self.add_row(&mut read.entries, players, group, player, row);
                }
            }
        };
        let from = self.live.partition_point(|(server, _)| server.0 < servers.start);
        let live = &self.live[from..self.live.partition_point(|(server, _)| server.0 < servers.end)];
        source.each_row(self.window, servers, &mut |server, player, row| {
            let record = live.binary_search_by_key(&server, |(server, _)| *server).map(|at| &live[at].1);
            let mut presences = record.iter().flat_map(|record| record.presences());
            if !presences.any(|presence| presence.player == player && presence.row(self.window).is_some()) {
                add(server, player, &row);
            }
        })?;
        for (server, record) in live {
            let rows = record.presences().filter_map(|presence| Some((presence.player, presence.row(self.window)?)));
            rows.for_each(|(player, row)| add(*server, player, row));
        }
        Ok(read)
    }

    fn order(&self, jobs: Vec<(Group, Ranking, Vec<Vec<BoardEntry>>)>, workers: &dyn Workers) -> WindowBoards {
        let mut boards = WindowBoards::empty(self.window, self.orders.clone());
        let ordered = Mutex::new(Vec::with_capacity(jobs.len()));
        let count = jobs.len() as u32;
        let jobs = Mutex::new(jobs);
        workers.run(count, &|_| {
            let job = jobs.lock().expect("no thread panics while it holds the lock").pop();
            let (group, ranking, entries) = job.expect("one for each call");
            let empty = self.orders.empty(self.window, group, ranking);
            let board = Board::build_unique(empty.direction(), empty.generation(), entries);
            ordered.lock().expect("no thread panics while it holds the lock").push((group, ranking, board));
        });
        for (group, ranking, board) in ordered.into_inner().expect("no thread panics while it holds the lock") {
            let GroupBoards(group_boards) = boards.boards_mut(group);
            group_boards[ranking as usize] = board;
        }
        boards
    }

    /// Adds an entry by rating. If the order needs the row too, only stores the rating.
    fn add_rating(&self, known: &mut PlayerPass, group: Group, player: PlayerKey, rating: Rating) {
        let orders = self.orders.for_group(group);
        if orders.tie_break_uses_rating() {
            known.ratings.push(((group, player), rating));
            return;
        }
        let mut row = PlayerRow::new(0, 0.0);
        row.set_rating(rating);
        if let Some(entry) = orders.entry(player, &row, Ranking::Elo) {
            known.rated.entry(group).or_default()[Ranking::Elo as usize].push(entry);
        }
    }

    /// Adds entries in all rankings except the rating, which is not in the rows. If the order
    /// needs rating and row, adds that entry too.
    fn add_row(
        &self,
        entries: &mut EntriesByGroup,
        players: &PlayerIndex,
        group: Group,
        player: PlayerKey,
        row: &PlayerRow,
    ) {
        let orders = self.orders.for_group(group);
        let uses_both = orders.tie_break_uses_rating();
        let mut row = Cow::Borrowed(row);
        if uses_both {
            // A row has the rating of its server, not that of the group.
            let rating = players.ratings.get(&(group, player)).copied();
            row.to_mut().set_rating(rating.unwrap_or(Rating::UNRATED));
        }
        let group_entries = entries.entry(group).or_default();
        for ranking in Ranking::ALL.into_iter().filter(|ranking| *ranking != Ranking::Elo || uses_both) {
            if let Some(entry) = orders.entry(player, &row, ranking) {
                group_entries[ranking as usize].push(entry);
            }
        }
    }

    fn counts(&self, server: ServerKey) -> bool {
        !self.excluded_servers.get(server.0 as usize).copied().unwrap_or(true)
    }

    fn groups(&self, game: GameKey, server: ServerKey) -> impl Iterator<Item = Group> {
        let tags = self.tags.get(&server).into_iter().flatten();
        std::iter::once(Group::Game(game)).chain(tags.map(|tag| Group::Tag(*tag)))
    }
}

/// The range of keys below `end` in one part.
fn key_range(part: u32, end: u32) -> std::ops::Range<u32> {
    let at = |part: u32| (u64::from(end) * u64::from(part) / u64::from(PARTS)) as u32;
    at(part)..at(part + 1)
}

/// Runs all parts in parallel. The results are in order of part.
fn run_parts<T: Send, E: Send>(workers: &dyn Workers, work: impl Fn(u32) -> Result<T, E> + Sync) -> Result<Vec<T>, E> {
    let done = Mutex::new(Vec::with_capacity(PARTS as usize));
    workers.run(PARTS, &|part| {
        let result = work(part);
        done.lock().expect("no thread panics while it holds the lock").push((part, result));
    });
    let mut done = done.into_inner().expect("no thread panics while it holds the lock");
    done.sort_unstable_by_key(|(part, _)| *part);
    done.into_iter().map(|(_, result)| result).collect()
}
