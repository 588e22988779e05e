//! Groups of servers, games and tags, and their boards in one window.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHashMap;

use super::ranking_set::RankingSet;
use crate::board::Board;
use crate::board::order::{Order, Orders};
use crate::model::row::{PlayerRow, Ranking, Rating};
use crate::model::{GameKey, PlayerKey, TagKey, WindowKey};

/// A scope of several servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    Game(GameKey),
    Tag(TagKey),
}

impl Group {
    pub fn tag(self) -> Option<TagKey> {
        match self {
            Group::Game(_) => None,
            Group::Tag(tag) => Some(tag),
        }
    }
}

/// The five boards of one group.
#[derive(Clone, Debug)]
pub(super) struct GroupBoards(pub(super) [Board; 5]);

impl GroupBoards {
    /// Updates the boards whose rankings, or those that break their ties, have changed.
    pub fn put(&mut self, orders: &Orders, player: PlayerKey, row: &PlayerRow, changed: RankingSet) {
        let is_changed = |ranking: &Ranking| {
            changed.contains(*ranking) || orders.order(*ranking).tie.is_some_and(|(by, _)| changed.contains(by))
        };
        for ranking in Ranking::ALL.into_iter().filter(is_changed) {
            let board = &mut self.0[ranking as usize];
            match orders.entry(player, row, ranking) {
                Some(entry) => _ = board.put(entry),
                None => _ = board.remove(player),
            }
        }
    }

    pub fn remove(&mut self, player: PlayerKey) {
        self.0.iter_mut().for_each(|board| _ = board.remove(player));
    }
}

/// The boards of all games and tags in one window.
#[derive(Debug)]
pub struct WindowBoards {
    pub(super) window: WindowKey,
    pub(super) boards: FxHashMap<Group, GroupBoards>,
    pub(super) orders: BoardOrders,
}

impl WindowBoards {
    pub(super) fn empty(window: WindowKey, orders: BoardOrders) -> WindowBoards {
        WindowBoards { window, boards: FxHashMap::default(), orders }
    }

    pub fn window(&self) -> WindowKey {
        self.window
    }

    pub fn board(&self, group: Group, ranking: Ranking) -> Option<&Board> {
        self.boards.get(&group).map(|boards| &boards.0[ranking as usize])
    }

    /// Groups that have boards, in no order.
    pub fn groups(&self) -> impl Iterator<Item = Group> + '_ {
        self.boards.keys().copied()
    }

    /// How the boards of a group are ordered.
    pub fn orders(&self, group: Group) -> Orders {
        self.orders.for_group(group)
    }

    /// An empty board.
    pub(super) fn empty_board(&self, group: Group, ranking: Ranking) -> Board {
        self.orders.empty(self.window, group, ranking)
    }

    /// Players on the boards of games.
    pub fn players(&self) -> usize {
        let games = self.boards.iter().filter(|(group, _)| group.tag().is_none());
        games.map(|(_, boards)| boards.0[Ranking::Time as usize].len() as usize).sum()
    }

    pub fn heap_bytes(&self) -> usize {
        self.boards.values().flat_map(|boards| &boards.0).map(Board::heap_bytes).sum()
    }

    /// Adopts new board orders if they do not change the order of any cached board. Returns
    /// whether it adopted them.
    pub(super) fn adopt_orders(&mut self, orders: &BoardOrders) -> bool {
        if self.orders == *orders {
            return true; // as for most new games: no board is checked
        }
        let all = self.boards.keys().all(|group| self.orders.for_group(*group) == orders.for_group(*group));
        if all {
            self.orders = orders.clone();
        }
        all
    }

    /// Updates the boards of a group with a player's row in it, whose rating there is another one than that on a
    /// server.
    pub(super) fn put(
        &mut self,
        group: Group,
        player: PlayerKey,
        row: &PlayerRow,
        rating: Option<Rating>,
        changed: RankingSet,
    ) {
        let mut row = Cow::Borrowed(row);
        let orders = self.orders.for_group(group);
        if self.needs_rating(group, changed) {
            row.to_mut().set_rating(rating.unwrap_or(Rating::UNRATED));
        }
        self.boards_mut(group).put(&orders, player, &row, changed);
    }

    /// Prefetches what updating the entries of a list needs, so that its cache misses overlap.
    pub(super) fn prefetch(&self, group: Group, players: &[PlayerKey]) {
        let boards = [Ranking::Time, Ranking::Points].map(|ranking| self.board(group, ranking));
        boards.into_iter().flatten().for_each(|board| board.prefetch(players));
    }

    /// Whether [`WindowBoards::put`] needs the rating of the player.
    pub(super) fn needs_rating(&self, group: Group, changed: RankingSet) -> bool {
        changed.contains(Ranking::Elo) || self.orders.for_group(group).tie_break_uses_rating()
    }

    pub(super) fn boards_mut(&mut self, group: Group) -> &mut GroupBoards {
        let (orders, window) = (&self.orders, self.window);
        self.boards
            .entry(group)
            .or_insert_with(|| GroupBoards(Ranking::ALL.map(|ranking| orders.empty(window, group, ranking))))
    }
}

/// How boards are ordered, by group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BoardOrders {
    pub(super) default: Orders,
    /// Groups that may have another order.
    pub(super) by_group: FxHashMap<Group, Orders>,
}

impl BoardOrders {
    pub fn for_group(&self, group: Group) -> Orders {
        self.by_group.get(&group).copied().unwrap_or(self.default)
    }

    pub fn empty(&self, window: WindowKey, group: Group, ranking: Ranking) -> Board {
        let order = self.for_group(group).order(ranking);
        Board::new(order.direction, board_id(window, group, ranking, order))
    }
}

/// Identifies a board of a group or a server. It is the same after a restart, so a cursor stays
/// valid as long as the board exists.
pub(super) fn board_id(window: WindowKey, scope: impl Hash, ranking: Ranking, order: Order) -> u64 {
    let mut hasher = siphasher::sip::SipHasher24::new();
    (window, scope, ranking, order).hash(&mut hasher);
    hasher.finish()
}
