//! Keys of players, and which names lead to which player (docs/rules.md 2 and docs/corrections.md).

use std::collections::{BTreeMap, HashMap, HashSet};

use super::PlayerId;

#[derive(Default)]
pub struct Names {
    /// All names that ever got a key: the key is the index + 1.
    pub players: Vec<PlayerId>,
    /// The latest key of each name, also of forgotten ones.
    pub keys: HashMap<PlayerId, usize>,
    /// Names with a key, without forgotten ones.
    known: HashSet<PlayerId>,
    /// Where merged names lead.
    leads_to: HashMap<PlayerId, PlayerId>,
}

impl Names {
    /// Gives a key to a name.
    pub fn add(&mut self, name: PlayerId) {
        self.players.push(name.clone());
        self.keys.insert(name.clone(), self.players.len());
        self.known.insert(name);
    }

    /// The player with a name; `None`: the name has no key.
    pub fn player(&self, name: &PlayerId) -> Option<PlayerId> {
        let mut name = self.known.get(name)?;
        while let Some(next) = self.leads_to.get(name) {
            name = next;
        }
        Some(name.clone())
    }

    /// The players that are neither merged into others nor forgotten, by key.
    pub fn current(&self) -> BTreeMap<usize, PlayerId> {
        let current = self.known.iter().filter(|name| !self.leads_to.contains_key(*name));
        current.map(|name| (self.keys[name], name.clone())).collect()
    }

    pub fn merge(&mut self, from: &PlayerId, into: &PlayerId) {
        self.leads_to.insert(from.clone(), into.clone());
    }

    /// Deletes a player. Returns all of the player's names.
    ///
    /// [open] If one of them is seen again, which a log of the daemon does not contain, it gets a new
    /// key.
    pub fn forget(&mut self, player: &PlayerId) -> HashSet<PlayerId> {
        let of_player = |name: &&PlayerId| self.player(name).as_ref() == Some(player);
        let names: HashSet<PlayerId> = self.known.iter().filter(of_player).cloned().collect();
        self.known.retain(|name| !names.contains(name));
        self.leads_to.retain(|name, _| !names.contains(name));
        names
    }
}
