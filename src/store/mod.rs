//! Hot state in sled.
//!
//! One tree, one key space, one writer. A commit is one batch, flushed before
//! `apply` returns: the crash test showed that unflushed batches are lost whole
//! and flushed ones never torn. Keys are big-endian with a leading tag, so that
//! everything of a week, and in it of a server, lies together; values are a
//! version byte and a postcard record.

mod keys;
mod read;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::engine::Loaded;
use crate::model::commit::{Commit, Corrections, Meta};
use crate::model::server::{SeriesRecord, ServerRecord};
use crate::model::{OutboxKey, ServerKey, WeekKey, WindowKey};

/// Version of every record's layout. A store with another one is refused.
const VERSION: u8 = 2;

/// Hot state on disk, and the outbox mirrored in memory.
#[derive(Debug)]
pub struct Store {
    db: sled::Db,
    path: PathBuf,
    /// At most `archive.outbox_entries_max` entries of some 40 bytes.
    outbox: BTreeMap<OutboxKey, u64>,
    next_seq: u64,
    /// Windows whose rows are still to be swept out.
    sweep: BTreeSet<WindowKey>,
}

/// Reads the rows of whole windows while the store is written to: of what is
/// written meanwhile it sees some.
#[derive(Clone, Debug)]
pub struct Reader {
    db: sled::Db,
    path: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("state directory {path:?} is in use by another clqd")]
    Locked { path: PathBuf },
    #[error("state directory {path:?} does not exist")]
    Missing { path: PathBuf },
    #[error(
        "state record {key} has version {found}, this clqd knows up to {VERSION}: it was written by a newer clqd; \
         install that one or start with another state directory"
    )]
    Newer { key: String, found: u8 },
    #[error(
        "state record {key} has version {found}, this clqd reads version {VERSION}: it was written by an earlier \
         clqd; install that one, or replay the scan log into another state directory"
    )]
    Older { key: String, found: u8 },
    #[error("state record {key} cannot be read ({why}): restore the state directory from a backup")]
    Corrupt { key: String, why: String },
    #[error("state directory {path:?}")]
    Sled { path: PathBuf, source: sled::Error },
}

/// How to open a store.
#[derive(Clone, Copy, Debug)]
pub struct StoreSettings {
    /// Cache of pages, bytes. Resident memory grows to about twice that.
    pub cache_bytes: u64,
    /// Make a directory that is not there.
    pub create: bool,
}

impl Store {
    pub fn open(path: &Path, settings: StoreSettings) -> Result<Store, StoreError> {
        if !settings.create && !path.join("conf").exists() {
            return Err(StoreError::Missing { path: path.to_owned() });
        }
        let config = sled::Config::new()
            .path(path)
            .cache_capacity(settings.cache_bytes)
            .mode(sled::Mode::HighThroughput)
            .flush_every_ms(None); // `apply` flushes
        let db = config.open().map_err(|source| match source {
            sled::Error::Io(ref e) if e.to_string().contains("lock") => StoreError::Locked { path: path.to_owned() },
            source => StoreError::Sled { path: path.to_owned(), source },
        })?;
        let mut store =
            Store { db, path: path.to_owned(), outbox: BTreeMap::new(), next_seq: 1, sweep: BTreeSet::new() };
        for item in store.db.scan_prefix([keys::OUTBOX]) {
            let (key, value) = item.map_err(|e| store.failed(e))?;
            let entry = keys::read_outbox(&key).ok_or_else(|| corrupt(&key, "no such kind"))?;
            let seq: u64 = decode(&key, &value)?;
            store.next_seq = store.next_seq.max(seq + 1);
            store.outbox.insert(entry, seq);
        }
        Ok(store)
    }

    /// Reads what is held in memory.
    pub fn load(&mut self) -> Result<Loaded, StoreError> {
        let meta: Meta = self.get(&keys::meta())?.unwrap_or_default();
        let mut loaded = Loaded::default();
        for item in self.db.scan_prefix([keys::GAME]) {
            let (key, value) = item.map_err(|e| self.failed(e))?;
            loaded.games.push((crate::model::GameKey(keys::read_u32(&key, 1)), decode(&key, &value)?));
        }
        for item in self.db.scan_prefix([keys::MAP]) {
            let (key, value) = item.map_err(|e| self.failed(e))?;
            loaded.maps.push((crate::model::MapKey(keys::read_u32(&key, 1)), decode(&key, &value)?));
        }
        for item in self.db.scan_prefix([keys::TAG]) {
            let (key, value) = item.map_err(|e| self.failed(e))?;
            loaded.tags.push((crate::model::TagKey(keys::read_u32(&key, 1)), decode(&key, &value)?));
        }
        for item in self.db.scan_prefix([keys::FORGOTTEN]) {
            let (key, value) = item.map_err(|e| self.failed(e))?;
            let hash = keys::read_forgotten(&key).ok_or_else(|| corrupt(&key, "no hash"))?;
            loaded.forgotten.push((hash, decode(&key, &value)?));
        }
        let mut series = BTreeMap::new();
        for item in self.db.scan_prefix([keys::SERIES]) {
            let (key, value) = item.map_err(|e| self.failed(e))?;
            series.insert(ServerKey(keys::read_u32(&key, 1)), decode::<SeriesRecord>(&key, &value)?);
        }
        for item in self.db.scan_prefix([keys::SERVER]) {
            let (key, value) = item.map_err(|e| self.failed(e))?;
            let server = ServerKey(keys::read_u32(&key, 1));
            loaded.servers.push((server, decode::<ServerRecord>(&key, &value)?, series.remove(&server)));
        }
        loaded.last_closed = None;
        for state in &meta.weeks {
            if let Some(server) = self.last_closed(state.week)? {
                loaded.last_closed = Some((state.week, server));
            }
        }
        self.sweep = self.windows_let_go(&meta)?;
        loaded.meta = meta;
        Ok(loaded)
    }

    /// Applies a commit as one atomic batch and waits until it is on disk.
    pub fn apply(&mut self, commit: &Commit) -> Result<(), StoreError> {
        let mut batch = sled::Batch::default();
        let mut put = |key: Vec<u8>, value: Vec<u8>| batch.insert(key, value);
        if let Some(meta) = &commit.meta {
            put(keys::meta().to_vec(), encode(meta));
        }
        for (key, name) in &commit.games {
            put(keys::of(keys::GAME, key.0), encode(name));
        }
        for (key, name) in &commit.maps {
            put(keys::of(keys::MAP, key.0), encode(name));
        }
        for (key, player) in &commit.players {
            put(keys::name(&player.name, player.game), encode(&(key.0, &player.display)));
            put(keys::of(keys::PLAYER, key.0), encode(&(player.game, &player.name)));
        }
        for (key, server) in &commit.servers {
            put(keys::of(keys::SERVER, key.0), encode(server));
        }
        for (key, series) in &commit.series {
            put(keys::of(keys::SERIES, key.0), encode(series));
        }
        for (key, row) in &commit.rows {
            put(keys::row(*key), encode(row));
        }
        for (key, name) in &commit.tags {
            put(keys::of(keys::TAG, key.0), encode(name));
        }
        for ((window, player), of_player) in &commit.player_windows {
            put(keys::player_window(*window, *player), encode(of_player));
        }
        for (key, row) in &commit.map_rows {
            put(keys::map_row(*key), encode(row));
        }
        for ((server, player), best) in &commit.best {
            put(keys::best(*server, *player), encode(best));
        }
        let corrections = &commit.corrections;
        for (player, game, name) in &corrections.aliases {
            // Without a display name: the one that was last seen is his record's.
            put(keys::name(name, *game), encode(&(player.0, "")));
            put(keys::alias(*player, name), vec![VERSION]);
        }
        for (player, into) in &corrections.players_gone {
            put(keys::of(keys::GONE, player.0), encode(into));
        }
        for (hash, forgotten_ms) in &corrections.forgotten {
            put(keys::forgotten(*hash), encode(forgotten_ms));
        }
        for (week, server) in &commit.closed {
            put(keys::closed(*week, *server), vec![VERSION]);
        }
        for (week, server, rank) in &commit.ranks {
            put(keys::rank(*week, *server), encode(rank));
        }
        for entry in &commit.outbox {
            put(keys::outbox(*entry), encode(&self.next_seq));
            self.outbox.insert(*entry, self.next_seq);
        }
        let Corrections { rows_gone, player_windows_gone, best_gone, players_gone, .. } = corrections;
        rows_gone.iter().for_each(|key| batch.remove(keys::row(*key)));
        player_windows_gone.iter().for_each(|(window, player)| batch.remove(keys::player_window(*window, *player)));
        best_gone.iter().for_each(|(server, player)| batch.remove(keys::best(*server, *player)));
        players_gone.iter().for_each(|(player, _)| batch.remove(keys::of(keys::PLAYER, player.0)));
        corrections.names_gone.iter().for_each(|(game, name)| batch.remove(keys::name(name, *game)));
        corrections.aliases_gone.iter().for_each(|(player, name)| batch.remove(keys::alias(*player, name)));
        corrections.remembered.iter().for_each(|hash| batch.remove(keys::forgotten(*hash)));
        // One number for a whole commit: entries of one commit changed together.
        self.next_seq += 1;
        for (entry, seq) in &commit.archived {
            if self.outbox.get(entry) == Some(seq) {
                self.outbox.remove(entry);
                batch.remove(keys::outbox(*entry));
            }
        }
        self.sweep.extend(&commit.dropped);
        self.db.apply_batch(batch).map_err(|e| self.failed(e))?;
        self.db.flush().map_err(|e| self.failed(e))?;
        Ok(())
    }

    /// Removes up to `most` records of windows that were let go. Returns whether
    /// there may be more. Sled reuses the space; the file does not shrink.
    pub fn sweep(&mut self, most: usize) -> Result<bool, StoreError> {
        let Some(&window) = self.sweep.first() else { return Ok(false) };
        let mut batch = sled::Batch::default();
        let mut n = 0;
        for item in self.db.scan_prefix(keys::window_prefix(window)).keys().take(most) {
            batch.remove(item.map_err(|e| self.failed(e))?);
            n += 1;
        }
        if n < most {
            self.sweep.pop_first();
        }
        self.db.apply_batch(batch).map_err(|e| self.failed(e))?;
        Ok(!self.sweep.is_empty())
    }

    /// Windows that hold records though nobody keeps them: they were let go and
    /// not yet swept out.
    fn windows_let_go(&self, meta: &Meta) -> Result<BTreeSet<WindowKey>, StoreError> {
        let weeks = meta.weeks.iter().map(|state| WindowKey::from(state.week));
        let kept: BTreeSet<WindowKey> = weeks.chain(meta.windows.iter().map(|state| state.window)).collect();
        let mut found = BTreeSet::new();
        let mut from = vec![keys::WINDOW];
        while let Some(item) = self.db.range(from..vec![keys::WINDOW + 1]).keys().next() {
            let key = item.map_err(|e| self.failed(e))?;
            let Some(window) = keys::read_window(&key) else { return Err(corrupt(&key, "no such window")) };
            if !kept.contains(&window) {
                found.insert(window);
            }
            // Behind everything of this window: no tag is above 0xfe.
            from = keys::window_prefix(window);
            from.push(0xff);
        }
        Ok(found)
    }

    /// A reader for another thread.
    pub fn reader(&self) -> Reader {
        Reader { db: self.db.clone(), path: self.path.clone() }
    }

    fn last_closed(&self, week: WeekKey) -> Result<Option<ServerKey>, StoreError> {
        let last = self.db.scan_prefix(keys::closed_prefix(week)).keys().next_back();
        let last = last.transpose().map_err(|e| self.failed(e))?;
        Ok(last.map(|key| ServerKey(keys::read_u32(&key, key.len() - 4))))
    }

    fn get<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        match self.db.get(key).map_err(|e| self.failed(e))? {
            Some(value) => decode(key, &value).map(Some),
            None => Ok(None),
        }
    }

    fn failed(&self, source: sled::Error) -> StoreError {
        failed(&self.path, source)
    }
}

fn failed(path: &Path, source: sled::Error) -> StoreError {
    StoreError::Sled { path: path.to_owned(), source }
}

fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_extend(value, vec![VERSION]).expect("no record has a sequence of unknown length")
}

fn decode<T: DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<T, StoreError> {
    match value.split_first() {
        Some((&VERSION, record)) => postcard::from_bytes(record).map_err(|e| corrupt(key, &e.to_string())),
        Some((&found, _)) if found > VERSION => Err(StoreError::Newer { key: keys::show(key), found }),
        Some((&found, _)) => Err(StoreError::Older { key: keys::show(key), found }),
        None => Err(corrupt(key, "empty")),
    }
}

fn corrupt(key: &[u8], why: &str) -> StoreError {
    StoreError::Corrupt { key: keys::show(key), why: why.to_owned() }
}
