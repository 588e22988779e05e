//! Finds players by parts of their names. The names are in memory, the newest players first, within
//! a limit; a task reads them from the store after the start, and new ones every few seconds.

pub mod index;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use self::index::{Chunk, NameIndex};
use super::engine_thread::Command;
use crate::model::PlayerKey;
use crate::store::{Reader, StoreError};

/// How often new names are read.
const UPDATE_INTERVAL: Duration = Duration::from_secs(5);

/// The index and its limit.
#[derive(Debug)]
pub(super) struct NameSearch {
    bytes_max: usize,
    index: Mutex<NameIndex>,
}

impl NameSearch {
    pub fn new(bytes_max: usize) -> NameSearch {
        NameSearch { bytes_max, index: Mutex::default() }
    }

    /// Players whose names begin with the text or contain it, at most `count`.
    pub async fn find(&self, text: String, count: usize) -> Vec<PlayerKey> {
        let index = self.index.lock().expect("index lock poisoned").clone();
        let searching = tokio::task::spawn_blocking(move || index.find(&text, count));
        searching.await.unwrap_or_default()
    }

    /// Reads the names of all players, and then those of new ones, until the daemon stops.
    pub async fn run(self: Arc<NameSearch>, commands: mpsc::Sender<Command>) {
        let mut indexed_until = None;
        loop {
            let (reply, reader) = oneshot::channel();
            if commands.send(Command::Reader { reply }).await.is_err() {
                return;
            }
            let Ok(reader) = reader.await else { return };
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
        let newest = NameIndex::number_of(PlayerKey(next.0.saturating_sub(1)));
        let oldest_missing = indexed_until.map_or(0, NameIndex::number_of);
        // The newest first: older ones are read only while there is memory.
        for number in (oldest_missing..=newest).rev() {
            let mut chunk = Chunk::default();
            reader.each_name(NameIndex::keys_of(number), &mut |player, name| chunk.push(player, name))?;
            chunk.finish();
            let mut index = self.index.lock().expect("index lock poisoned");
            index.put(number, chunk);
            if index.bytes() > self.bytes_max {
                index.shrink_to(self.bytes_max);
                if index.first() > Some(number) {
                    break;
                }
            }
        }
        Ok(next)
    }
}
