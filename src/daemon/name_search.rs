//! Finds players by words of their names, and servers by words of their host names and by their addresses. The
//! newest names are in memory, within a limit. A task reads the names of players from the store after
//! the start, and new ones every few seconds. Another task reads the names of servers from a view,
//! and again when one of them has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustc_hash::FxBuildHasher;

use super::views::Views;
use crate::model::search_text::Match;
use crate::model::{PlayerKey, ServerKey};
use crate::state::name_index::{NameIndex, SERVER_NAMES_MAX, players_of, servers_of};
use crate::store::{Reader, StoreError};

/// How often new names are read.
const UPDATE_INTERVAL: Duration = Duration::from_secs(5);

/// How often it is checked which names of servers have changed.
const SERVERS_INTERVAL: Duration = Duration::from_secs(2);

/// The part of the memory that is for servers. With 64 MiB: some 200,000 servers.
const SERVERS_SHARE: usize = 4;

/// The indexes and the limit of their memory.
#[derive(Debug)]
pub(super) struct NameSearch {
    bytes_max: usize,
    players: Mutex<NameIndex>,
    servers: Mutex<NameIndex>,
}

fn find(index: &Mutex<NameIndex>, text: &str, count: usize) -> Vec<(Match, u32)> {
    // The index is shared, not locked, while it is searched.
    let index = index.lock().expect("index lock poisoned").clone();
    index.find(text, count)
}

impl NameSearch {
    pub fn new(bytes_max: usize) -> NameSearch {
        NameSearch { bytes_max, players: Mutex::default(), servers: Mutex::default() }
    }

    /// Players whose names have all words of the text, at most `count`.
    pub fn find_players(&self, text: &str, count: usize) -> Vec<(Match, PlayerKey)> {
        find(&self.players, text, count).into_iter().map(|(how, key)| (how, PlayerKey(key))).collect()
    }

    /// Servers whose host name or address a text finds. Some may have another name by now, or be removed.
    pub fn find_servers(&self, text: &str) -> Vec<ServerKey> {
        let mut found: Vec<ServerKey> =
            find(&self.servers, text, SERVER_NAMES_MAX).into_iter().map(|(_, key)| ServerKey(key)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Reads the names of servers, and again those of chunks in which one has changed, until the daemon stops.
    pub async fn run_servers(self: Arc<NameSearch>, views: Arc<Views>) {
        let bytes_max = self.bytes_max / SERVERS_SHARE;
        // The changes that the index has, by chunk.
        let mut indexed: Vec<Option<u64>> = Vec::new();
        loop {
            let Ok(changes) = views.read(|view| view.model().server_name_changes()).await else { return };
            indexed.resize(changes.len(), None);
            // The newest first: older ones are read only while there is memory.
            for (number, changes) in changes.into_iter().enumerate().rev() {
                if indexed[number].replace(changes) == Some(changes) {
                    continue;
                }
                let keys = NameIndex::keys_of(number as u32);
                let Ok(names) = views.read(|view| view.model().server_names(keys)).await else { return };
                let chunk = servers_of(&names);
                self.servers.lock().expect("index lock poisoned").put_within(bytes_max, number as u32, chunk);
            }
            tokio::time::sleep(SERVERS_INTERVAL).await;
        }
    }

    /// Reads the names of all players, and then those of new ones, until the daemon stops.
    pub async fn run(self: Arc<NameSearch>, views: Arc<Views>) {
        let mut indexed = Indexed::default();
        loop {
            let Ok(reader) = views.current().map(|view| view.reader().clone()) else { return };
            let (search, before) = (self.clone(), indexed.clone());
            let updated = tokio::task::spawn_blocking(move || search.update(&reader, before)).await;
            match updated {
                Ok(Ok(now)) => indexed = now,
                Ok(Err(error)) => tracing::warn!(%error, "names of players cannot be read for searches"),
                Err(_) => return,
            }
            tokio::time::sleep(UPDATE_INTERVAL).await;
        }
    }

    /// Reads names that are not in the index yet, and again those of players with whom others were merged since.
    fn update(&self, reader: &Reader, before: Indexed) -> Result<Indexed, StoreError> {
        let (until, removed) = reader.player_counts()?;
        if (before.until, before.removed) == (until, removed) {
            return Ok(before);
        }
        let aliases = if before.removed == removed { before.aliases.clone() } else { alias_digests(reader)? };
        let missing = NameIndex::number_of(before.until.0)..=NameIndex::number_of(until.0.saturating_sub(1));
        let all = aliases.keys().chain(before.aliases.keys());
        let changed = all.filter(|number| aliases.get(number) != before.aliases.get(number)).copied();
        let numbers: BTreeSet<u32> = missing.chain(changed).collect();
        let bytes_max = self.bytes_max - self.bytes_max / SERVERS_SHARE;
        // The newest first: older ones are read only while there is memory.
        for number in numbers.into_iter().rev() {
            let chunk = players_of(reader, number)?;
            let mut index = self.players.lock().expect("index lock poisoned");
            if !index.put_within(bytes_max, number, chunk) {
                break;
            }
        }
        Ok(Indexed { until, removed, aliases })
    }
}

/// What the index of players has.
#[derive(Clone, Debug, Default)]
struct Indexed {
    /// The first player without names in it.
    until: PlayerKey,
    /// Players that were merged or forgotten before.
    removed: u32,
    /// A digest of the names of merged players in each chunk that has some.
    aliases: BTreeMap<u32, u64>,
}

fn alias_digests(reader: &Reader) -> Result<BTreeMap<u32, u64>, StoreError> {
    let mut digests: BTreeMap<u32, u64> = BTreeMap::new();
    reader.each_alias(0..u32::MAX, &mut |player, alias| {
        let digest = digests.entry(NameIndex::number_of(player.0)).or_default();
        *digest = FxBuildHasher.hash_one((*digest, player, alias));
    })?;
    Ok(digests)
}
