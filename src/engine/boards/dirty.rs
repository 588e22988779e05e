//! What must be refreshed in cached boards.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::group::Group;
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

/// Players whose entries must be refreshed.
#[derive(Debug, Default)]
pub(super) struct DirtyPlayers {
    pub(super) players: FxHashSet<PlayerKey>,
    /// Groups other than their games that players may have left. There are few, and they are rarely
    /// used.
    pub(super) left: FxHashMap<PlayerKey, Groups>,
}

impl DirtyPlayers {
    pub fn insert(&mut self, player: PlayerKey, left: &[Group]) {
        self.players.insert(player);
        if !left.is_empty() {
            add_groups(self.left.entry(player).or_default(), left);
        }
    }

    pub fn len(&self) -> usize {
        self.players.len()
    }

    pub fn is_empty(&self) -> bool {
        self.players.is_empty()
    }

    /// Takes up to `most` players.
    pub fn take(&mut self, most: usize) -> Vec<(PlayerKey, Groups)> {
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

/// Adds groups that are not in the list yet.
pub(super) fn add_groups(groups: &mut Groups, more: &[Group]) {
    for group in more {
        if !groups.contains(group) {
            groups.push(*group);
        }
    }
}
