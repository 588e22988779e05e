//! Boards and totals that the archive publishes: see [`crate::model::top_board`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::iter::Peekable;

use super::ReadModel;
use super::boards::group::{Group, WindowBoards};
use crate::board::order::OrderKey;
use crate::board::score_unit::display_score;
use crate::board::{BoardEntry, window};
use crate::model::GameKey;
use crate::model::archive::ArchiveBounds;
use crate::model::row::Ranking;
use crate::model::top_board::{
    OnlineTotal, SiteTotals, TOP_BOARD_PLAYERS_MAX, TopBoard, TopBoardKey, TopEntry, TopScope,
};
use crate::model::window::{WindowKey, WindowType};
use crate::view::board::WindowView;

impl ReadModel {
    /// At most `most` boards of games, tags and all games after a key, in a window, or in all
    /// [`Self::published_windows`]; of those windows whose boards are in memory. All changes must be committed.
    pub fn top_boards(&self, window: Option<WindowKey>, after: Option<TopBoardKey>, most: usize) -> Vec<TopBoard> {
        let mut keys: Vec<TopBoardKey> = Vec::new();
        let windows = window.map_or_else(|| self.published_windows(), |window| vec![window]);
        for boards in windows.into_iter().filter_map(|window| self.boards(window)) {
            let groups = boards.groups().map(|group| match group {
                Group::Game(game) => TopScope::Game(game),
                Group::Tag(tag) => TopScope::Tag(tag),
            });
            let scopes = groups.chain([TopScope::All]);
            keys.extend(
                scopes.flat_map(|scope| {
                    Ranking::ALL.map(|ranking| TopBoardKey { window: boards.window(), scope, ranking })
                }),
            );
        }
        keys.retain(|key| after.is_none_or(|after| *key > after));
        keys.sort_unstable();
        keys.dedup();
        keys.into_iter().take(most).filter_map(|key| self.top_board(key)).collect()
    }

    /// Whether the boards of a window are in memory and can be published. Those of a closed window are published once, so
    /// they must have all changes, and the order of the settings.
    pub fn has_final_boards(&self, window: WindowKey) -> bool {
        let is_final = || self.dirty_players(window) == Some(0) && !self.windows_with_stale_order().contains(&window);
        self.boards(window).is_some() && (!self.window_view(window).closed || is_final())
    }

    /// Whether a window has boards: not if it was deleted.
    pub fn has_boards(&self, window: WindowKey) -> bool {
        self.global.is_queryable(window)
    }

    fn top_board(&self, key: TopBoardKey) -> Option<TopBoard> {
        let boards = self.boards(key.window)?;
        let (scope_name, size, entries) = match key.scope {
            TopScope::All => {
                let (size, entries) = self.all_games(&boards, key.ranking);
                (String::new(), size, entries)
            }
            TopScope::Game(game) => {
                let (size, entries) = best(&boards, Group::Game(game), key.ranking)?;
                (self.global.games.name(game.0).to_owned(), size, entries)
            }
            TopScope::Tag(tag) => {
                let (size, entries) = best(&boards, Group::Tag(tag), key.ranking)?;
                (self.global.tags.name(tag.0).to_owned(), size, entries)
            }
        };
        let entry = |entry: BoardEntry| TopEntry {
            player: entry.player,
            score: display_score(key.ranking, entry.score()),
            reached_ms: entry.at_ms,
        };
        let WindowView { window, start_ms, end_ms, closed } = self.window_view(key.window);
        Some(TopBoard {
            key,
            scope_name,
            window_type: window::type_name(key.window.kind),
            previous_window: previous(key.window).map(window::label),
            window,
            start_ms,
            end_ms,
            closed,
            size,
            entries: entries.into_iter().map(entry).collect(),
        })
    }

    /// The best players of all games, in the default order. A player belongs to one game.
    fn all_games(&self, boards: &WindowBoards, ranking: Ranking) -> (u32, Vec<BoardEntry>) {
        let orders = self.global.settings.orders(None);
        let (mut size, mut lists) = (0, Vec::new());
        for group in boards.groups().filter(|group| group.tag().is_none()) {
            let Some(board) = boards.board(group, ranking) else { continue };
            size += board.len();
            let best = board.iter().take(TOP_BOARD_PLAYERS_MAX);
            let is_ordered = boards.orders(group).order(ranking) == orders.order(ranking);
            let best: Box<dyn Iterator<Item = BoardEntry>> = match is_ordered {
                true => Box::new(best),
                false => {
                    let mut best: Vec<BoardEntry> = best.collect();
                    orders.sort(ranking, &mut best);
                    Box::new(best.into_iter())
                }
            };
            lists.push(best.peekable());
        }
        // Few of many games have the best players.
        let key = |entry: &BoardEntry| orders.sort_key(ranking, entry);
        let first = |(at, list): (usize, &mut Peekable<_>)| Some(Reverse((key(list.peek()?), at)));
        let mut firsts: BinaryHeap<Reverse<(OrderKey, usize)>> =
            lists.iter_mut().enumerate().filter_map(first).collect();
        let mut entries = Vec::new();
        while entries.len() < TOP_BOARD_PLAYERS_MAX
            && let Some(Reverse((_, at))) = firsts.pop()
        {
            entries.extend(lists[at].next());
            firsts.extend(first((at, &mut lists[at])));
        }
        (size, entries)
    }

    /// The time range of the state.
    pub fn archive_bounds(&self) -> ArchiveBounds {
        let weeks = &self.global.meta.weeks;
        let weeks = weeks.first().zip(weeks.last()).map(|(first, last)| (first.week, last.week));
        let now_ms = self.global.meta.now_ms;
        let mut oldest_windows = BTreeMap::new();
        for state in self.global.meta.kept_windows().filter_map(|window| self.global.window_state(window)) {
            let oldest_ms = oldest_windows.entry(window::type_name(state.window.kind)).or_insert(i64::MAX);
            *oldest_ms = state.end_ms.min(*oldest_ms);
        }
        ArchiveBounds {
            now_ms,
            now_week: self.global.calendar.week(now_ms),
            is_time_trusted: true,
            weeks,
            oldest_windows,
            oldest_sessions_ms: self.global.meta.session_days.iter().map(|day| day.start_ms()).min(),
        }
    }

    pub fn site_totals(&self) -> SiteTotals {
        let status = self.status();
        let mut totals = SiteTotals {
            now_ms: status.now_ms,
            day_start_ms: self.global.calendar.day_start_ms(self.global.calendar.day(status.now_ms)),
            players_known: status.players_known,
            servers: status.servers,
            servers_greylisted: status.greylisted,
            servers_by_class: status.servers_by_class,
            ..SiteTotals::default()
        };
        let mut by_game: BTreeMap<GameKey, OnlineTotal> = BTreeMap::new();
        for record in self.servers.records() {
            let Some(game) = record.game.filter(|_| self.is_online(record)) else { continue };
            totals.servers_online += 1;
            let total = by_game.entry(game).or_insert(OnlineTotal { game, servers: 0, players: 0 });
            total.servers += 1;
            total.players = total.players.saturating_add(record.believed_count());
        }
        totals.online = by_game.into_values().collect();
        totals
    }
}

/// The window before, if windows of this type follow each other.
fn previous(window: WindowKey) -> Option<WindowKey> {
    let follows = [WindowType::HOUR, WindowType::DAY, WindowType::WEEK, WindowType::MONTH].contains(&window.kind);
    let index = window.index.checked_sub(1).filter(|_| follows)?;
    Some(WindowKey { index, ..window })
}

/// The size of a board, and its best players.
fn best(boards: &WindowBoards, group: Group, ranking: Ranking) -> Option<(u32, Vec<BoardEntry>)> {
    let board = boards.board(group, ranking)?;
    Some((board.len(), board.iter().take(TOP_BOARD_PLAYERS_MAX).collect()))
}
