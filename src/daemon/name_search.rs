//! Finds players by words of their names, and servers by words of their host names and by their addresses. The
//! newest names are in memory, within a limit. A task reads the names of players from the store after
//! the start, and new ones every few seconds. Another task reads the names of servers from a view,
//! and again when one of them has changed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::views::Views;
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

fn find(index: &Mutex<NameIndex>, text: &str, count: usize) -> Vec<u32> {
    // The index is shared, not locked, while it is searched.
    let index = index.lock().expect("index lock poisoned").clone();
    index.find(text, count)
}

impl NameSearch {
    pub fn new(bytes_max: usize) -> NameSearch {
        NameSearch { bytes_max, players: Mutex::default(), servers: Mutex::default() }
    }

    /// Players whose names have all words of the text, at most `count`.
    pub fn find_players(&self, text: &str, count: usize) -> Vec<PlayerKey> {
        find(&self.players, text, count).into_iter().map(PlayerKey).collect()
    }

    /// Servers whose host name or address a text finds. Some may have another name by now, or be removed.
    pub fn find_servers(&self, text: &str) -> Vec<ServerKey> {
        let mut found: Vec<ServerKey> =
            find(&self.servers, text, SERVER_NAMES_MAX).into_iter().map(ServerKey).collect();
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
            let Ok(changes) = views.read(|view| view.engine().server_name_changes()).await else { return };
            indexed.resize(changes.len(), None);
            // The newest first: older ones are read only while there is memory.
            for (number, changes) in changes.into_iter().enumerate().rev() {
                if indexed[number].replace(changes) == Some(changes) {
                    continue;
                }
                let keys = NameIndex::keys_of(number as u32);
                let Ok(names) = views.read(|view| view.engine().server_names(keys)).await else { return };
                let chunk = servers_of(&names);
                self.servers.lock().expect("index lock poisoned").put_within(bytes_max, number as u32, chunk);
            }
            tokio::time::sleep(SERVERS_INTERVAL).await;
        }
    }

    /// Reads the names of all players, and then those of new ones, until the daemon stops.
    pub async fn run(self: Arc<NameSearch>, views: Arc<Views>) {
        let mut indexed_until = None;
        loop {
            let Ok(reader) = views.current().map(|view| view.reader().clone()) else { return };
            let search = self.clone();
            let updated = tokio::task::spawn_blocking(move || search.update(&reader, indexed_until)).await;
            match updated {
                Ok(Ok(until)) => indexed_until = Some(until),
                Ok(Err(error)) => tracing::warn!(%error, "names of players cannot be read for searches"),
                Err(_) => return,
            }
            tokio::time::sleep(UPDATE_INTERVAL).await;
        }
    }

    /// Reads names that are not in the index yet; `indexed_until` is the first player without one.
    /// Returns the first player that does not exist yet.
    fn update(&self, reader: &Reader, indexed_until: Option<PlayerKey>) -> Result<PlayerKey, StoreError> {
        let next = reader.next_player()?;
        if indexed_until == Some(next) {
            return Ok(next);
        }
        let newest = NameIndex::number_of(next.0.saturating_sub(1));
        let oldest_missing = indexed_until.map_or(0, |player| NameIndex::number_of(player.0));
        let bytes_max = self.bytes_max - self.bytes_max / SERVERS_SHARE;
        // The newest first: older ones are read only while there is memory.
        for number in (oldest_missing..=newest).rev() {
            let chunk = players_of(reader, number)?;
            let mut index = self.players.lock().expect("index lock poisoned");
            if !index.put_within(bytes_max, number, chunk) {
                break;
            }
        }
        Ok(next)
    }
}
