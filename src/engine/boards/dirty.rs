//! What must be refreshed in cached boards.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::group::Group;
use super::ranking_set::RankingSet;
use crate::model::{PlayerKey, ServerKey, WindowKey};

/// Groups that a player may have left, without duplicates.
pub(in crate::engine) type Groups = SmallVec<[Group; 2]>;

/// A dirty server whose players up to `after` are marked dirty.
#[derive(Debug)]
pub(super) struct DirtyServer {
    pub(super) window: WindowKey,
    pub(super) server: ServerKey,
    pub(super) after: Option<PlayerKey>,
    pub(super) groups_left: Groups,
}

/// Why an entry must be refreshed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DirtyPlayer {
    /// The rankings that have changed.
    pub(super) changed: RankingSet,
    /// A server has listed the player: another list may follow soon.
    pub(super) is_listed: bool,
}

/// Players whose entries must be refreshed.
#[derive(Debug, Default)]
pub(super) struct DirtyPlayers {
    pub(super) players: FxHashMap<PlayerKey, DirtyPlayer>,
    /// Groups other than their games that players may have left. There are few, and they are rarely
    /// used.
    pub(super) left: FxHashMap<PlayerKey, Groups>,
}

impl DirtyPlayers {
    pub fn insert(&mut self, player: PlayerKey, changed: RankingSet, left: &[Group]) {
        self.players.entry(player).or_default().changed.add(changed);
        if !left.is_empty() {
            add_groups(self.left.entry(player).or_default(), left);
        }
    }

    /// Notes that a server has just listed a dirty player.
    pub fn note_listed(&mut self, player: PlayerKey) {
        self.players.entry(player).or_default().is_listed = true;
    }

    pub fn len(&self) -> usize {
        self.players.len()
    }

    pub fn is_empty(&self) -> bool {
        self.players.is_empty()
    }

    /// Takes a player whom a server has listed, if there is one. Returns what has changed; `None`: the player may have
    /// left groups, or has other groups than those of the server.
    pub fn take_listed(&mut self, player: PlayerKey, is_single: bool) -> Option<RankingSet> {
        match self.players.get(&player) {
            None => Some(RankingSet::default()),
            Some(_) if !is_single || self.left.contains_key(&player) => None,
            Some(_) => self.players.remove(&player).map(|dirty| dirty.changed),
        }
    }

    /// Puts players back that were taken.
    pub fn put_back(&mut self, players: impl Iterator<Item = (PlayerKey, DirtyPlayer, Groups)>) {
        for (player, dirty, left) in players {
            self.insert(player, dirty.changed, &left);
            if dirty.is_listed {
                self.note_listed(player);
            }
        }
    }

    /// Takes up to `most` players.
    pub fn take(&mut self, most: usize) -> Vec<(PlayerKey, DirtyPlayer, Groups)> {
        let players: Vec<(PlayerKey, DirtyPlayer)> = match self.len() <= most {
            true => self.players.drain().collect(),
            false => {
                let some: Vec<_> =
                    self.players.iter().map(|(player, changed)| (*player, *changed)).take(most).collect();
                some.iter().for_each(|(player, _)| _ = self.players.remove(player));
                some
            }
        };
        let with_left = |(player, changed)| (player, changed, self.left.remove(&player).unwrap_or_default());
        players.into_iter().map(with_left).collect()
    }
}

/// Adds groups that are not in the list yet.
pub(in crate::engine) fn add_groups(groups: &mut Groups, more: &[Group]) {
    for group in more {
        if !groups.contains(group) {
            groups.push(*group);
        }
    }
}
