//! Names of players or servers, for searches regardless of case. The daemon keeps them in memory;
//! [`find_players`] and [`find_servers`] read them for one search.
//!
//! The names of a chunk are one string, which is searched from its start to its end. Each chunk has a
//! filter of the three-byte sequences that occur in it. So a search skips the chunks that cannot
//! contain the string; for a string of some characters these are nearly all. An index of the positions
//! of all three-character sequences would take several times as much memory.

use std::ops::Range;
use std::sync::Arc;

use memchr::memmem;

use crate::engine::{SERVER_NAMES_CHUNK, ServerName};
use crate::model::{PlayerKey, ServerKey};
use crate::store::{Reader, StoreError};

/// Separates the names of a chunk. No name contains it.
const SEPARATOR: u8 = 0;

/// Shortest string that is searched for inside names, characters. Shorter strings occur in too many
/// names.
pub const INSIDE_CHARS_MIN: usize = 3;

/// Bits of a chunk's filter: 64 KB beside some 400 KB of names. With 100,000 different three-byte
/// sequences in a chunk, the false positive rate is 17 %.
const FILTER_BITS: u32 = 1 << 19;

/// Most names that a search for servers finds; the busiest of these servers are listed.
pub const SERVER_NAMES_MAX: usize = 1_000;

/// Keys of one chunk are in a range of this length.
pub const CHUNK_KEYS: u32 = SERVER_NAMES_CHUNK;

/// The names with keys in a range.
#[derive(Debug, Default)]
pub struct Chunk {
    /// Names in lower case, each behind a separator.
    text: Vec<u8>,
    /// Where each name begins, and its key, in order of key.
    names: Vec<(u32, u32)>,
    /// The filter: which three-byte sequences occur in `text`, by their hash.
    filter: Vec<u64>,
}

/// The bits of all three-byte sequences.
fn filter_bits(text: &[u8]) -> impl Iterator<Item = (usize, u64)> + '_ {
    text.windows(3).map(|part| {
        let number = u32::from_be_bytes([0, part[0], part[1], part[2]]);
        // Fibonacci hashing: the upper bits depend on all of them.
        let bit = number.wrapping_mul(2_654_435_769) >> (32 - FILTER_BITS.trailing_zeros());
        (bit as usize / 64, 1 << (bit % 64))
    })
}

impl Chunk {
    /// Adds a name. Keys ascend; one may have several names.
    pub fn push(&mut self, key: u32, name: &str) {
        self.text.push(SEPARATOR);
        self.names.push((self.text.len() as u32, key));
        self.text.extend_from_slice(name.to_lowercase().as_bytes());
    }

    pub fn bytes(&self) -> usize {
        self.text.capacity() + self.names.capacity() * size_of::<(u32, u32)>() + self.filter.capacity() * 8
    }

    /// Call it after the last name.
    pub fn finish(&mut self) {
        self.text.shrink_to_fit();
        self.names.shrink_to_fit();
        self.filter = vec![0; FILTER_BITS as usize / 64];
        for (word, bit) in filter_bits(&self.text) {
            self.filter[word] |= bit;
        }
    }

    /// Whether the names may contain the string.
    fn may_contain(&self, text: &[u8]) -> bool {
        filter_bits(text).all(|(word, bit)| self.filter.get(word).is_none_or(|bits| bits & bit != 0))
    }

    /// The names that contain the string, the newest last, and whether they begin with it. A string
    /// that begins with a separator is found only at the beginning of names.
    fn find(&self, finder: &memmem::Finder<'_>) -> Vec<(u32, bool)> {
        if !self.may_contain(finder.needle()) {
            return Vec::new();
        }
        let separators = usize::from(finder.needle()[0] == SEPARATOR);
        let (mut found, mut from) = (Vec::new(), 0);
        while let Some(at) = finder.find(&self.text[from..]) {
            let hit = from + at + separators;
            let which = self.names.partition_point(|&(start, _)| start as usize <= hit) - 1;
            let (start, key) = self.names[which];
            found.push((key, hit == start as usize));
            match self.names.get(which + 1) {
                Some(&(next, _)) => from = next as usize - separators,
                None => break,
            }
        }
        found
    }
}

/// Names, by chunks of their keys.
#[derive(Clone, Debug, Default)]
pub struct NameIndex {
    /// The number of each chunk, ascending.
    chunks: Vec<(u32, Arc<Chunk>)>,
}

impl NameIndex {
    /// The keys of a chunk.
    pub fn keys_of(number: u32) -> Range<u32> {
        number * CHUNK_KEYS..number.saturating_add(1).saturating_mul(CHUNK_KEYS)
    }

    pub fn number_of(key: u32) -> u32 {
        key / CHUNK_KEYS
    }

    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(|(_, chunk)| chunk.bytes()).sum()
    }

    /// The number of the first chunk.
    pub fn first(&self) -> Option<u32> {
        self.chunks.first().map(|(number, _)| *number)
    }

    /// Adds or replaces a chunk.
    pub fn put(&mut self, number: u32, chunk: Chunk) {
        let at = self.chunks.partition_point(|(known, _)| *known < number);
        let chunk = (number, Arc::new(chunk));
        match self.chunks.get_mut(at).filter(|(known, _)| *known == number) {
            Some(known) => *known = chunk,
            None => self.chunks.insert(at, chunk),
        }
    }

    /// As [`NameIndex::put`], and removes the oldest names beyond the limit. Returns whether this
    /// chunk is kept.
    pub fn put_within(&mut self, bytes_max: usize, number: u32, chunk: Chunk) -> bool {
        self.put(number, chunk);
        if self.bytes() > bytes_max {
            self.shrink_to(bytes_max);
        }
        self.first() <= Some(number)
    }

    /// Removes the oldest names until at most `bytes_max` are used; at least the newest chunk stays.
    pub fn shrink_to(&mut self, bytes_max: usize) {
        let mut bytes = self.bytes();
        while bytes > bytes_max && self.chunks.len() > 1 {
            bytes -= self.chunks.remove(0).1.bytes();
        }
    }

    /// Keys whose names begin with the string, then others whose names contain it; the newest first,
    /// at most `count` names. A string of less than [`INSIDE_CHARS_MIN`] characters is searched for
    /// only at the beginning.
    pub fn find(&self, text: &str, count: usize) -> Vec<u32> {
        let Some(mut search) = Search::new(text, count) else { return Vec::new() };
        for (_, chunk) in self.chunks.iter().rev() {
            search.look_at(chunk);
            if search.is_complete() {
                break;
            }
        }
        search.found()
    }
}

/// A search, which examines the chunks, the newest first.
struct Search {
    /// In lower case; begins with a separator if it is too short to be searched for inside names.
    needle: Vec<u8>,
    count: usize,
    /// Keys whose names begin with the string.
    first: Vec<u32>,
    /// Keys whose names contain it.
    inside: Vec<u32>,
}

impl Search {
    /// `None`: no name can contain the string.
    fn new(text: &str, count: usize) -> Option<Search> {
        let text = text.to_lowercase();
        if text.is_empty() || text.as_bytes().contains(&SEPARATOR) {
            return None;
        }
        let separator: &[u8] = if text.chars().count() < INSIDE_CHARS_MIN { &[SEPARATOR] } else { &[] };
        let needle = [separator, text.as_bytes()].concat();
        Some(Search { needle, count, first: Vec::new(), inside: Vec::new() })
    }

    fn look_at(&mut self, chunk: &Chunk) {
        let finder = memmem::Finder::new(&self.needle);
        for (key, is_first) in chunk.find(&finder).into_iter().rev() {
            let list = if is_first { &mut self.first } else { &mut self.inside };
            if list.len() < self.count {
                list.push(key);
            }
        }
    }

    /// Whether older chunks cannot change the result.
    fn is_complete(&self) -> bool {
        self.first.len() == self.count
    }

    fn found(mut self) -> Vec<u32> {
        self.first.extend(self.inside);
        self.first.truncate(self.count);
        self.first
    }
}

/// The names of the players of a chunk.
pub fn players_of(reader: &Reader, number: u32) -> Result<Chunk, StoreError> {
    let mut chunk = Chunk::default();
    reader.each_name(NameIndex::keys_of(number), &mut |player, name| chunk.push(player.0, name))?;
    chunk.finish();
    Ok(chunk)
}

/// Host names and URLs of servers.
pub fn servers_of(names: &[ServerName]) -> Chunk {
    let mut chunk = Chunk::default();
    for (server, hostname, url) in names {
        chunk.push(server.0, hostname);
        chunk.push(server.0, url);
    }
    chunk.finish();
    chunk
}

/// As [`NameIndex::find`], in the names of all players of a store.
pub fn find_players(reader: &Reader, text: &str, count: usize) -> Result<Vec<PlayerKey>, StoreError> {
    let Some(mut search) = Search::new(text, count) else { return Ok(Vec::new()) };
    let newest = NameIndex::number_of(reader.next_player()?.0.saturating_sub(1));
    for number in (0..=newest).rev() {
        search.look_at(&players_of(reader, number)?);
        if search.is_complete() {
            break;
        }
    }
    Ok(search.found().into_iter().map(PlayerKey).collect())
}

/// Servers whose host name or URL begins with the string or contains it, each once.
pub fn find_servers(servers: &[ServerName], text: &str) -> Vec<ServerKey> {
    let Some(mut search) = Search::new(text, SERVER_NAMES_MAX) else { return Vec::new() };
    search.look_at(&servers_of(servers));
    let mut found: Vec<ServerKey> = search.found().into_iter().map(ServerKey).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(names: &[(u32, &str)]) -> NameIndex {
        let mut index = NameIndex::default();
        for number in 0..=names.iter().map(|(key, _)| key / CHUNK_KEYS).max().unwrap_or(0) {
            let mut chunk = Chunk::default();
            for (key, name) in names.iter().filter(|(key, _)| key / CHUNK_KEYS == number) {
                chunk.push(*key, name);
            }
            chunk.finish();
            index.put(number, chunk);
        }
        index
    }

    #[track_caller]
    fn check(index: &NameIndex, text: &str, want: &[u32]) {
        let found: Vec<u32> = index.find(text, 3);
        assert_eq!(found, want, "{text:?}");
    }

    #[test]
    fn beginnings_come_first_then_newer_players() {
        let newer = CHUNK_KEYS + 1;
        let index =
            index(&[(1, "Visor"), (2, "the Visor"), (3, "VISORS"), (4, "a"), (newer, "viSoñ"), (newer + 1, "xvisox")]);
        check(&index, "visor", &[3, 1, 2]);
        check(&index, "SOÑ", &[newer]);
        check(&index, "visox", &[newer + 1]);
        check(&index, "v", &[newer, 3, 1]);
        check(&index, "vi", &[newer, 3, 1]);
        check(&index, "is", &[]);
        check(&index, "", &[]);
        check(&index, "rvis", &[]);
        check(&index, "r\0v", &[]);
    }

    #[test]
    fn oldest_names_are_removed_at_the_limit() {
        let mut index = index(&[(1, "Visor"), (CHUNK_KEYS, "visora"), (2 * CHUNK_KEYS, "visorb")]);
        index.shrink_to(index.bytes() - 1);
        check(&index, "visor", &[2 * CHUNK_KEYS, CHUNK_KEYS]);
        assert_eq!((index.first(), index.chunks.len()), (Some(1), 2));
        index.shrink_to(0);
        check(&index, "visor", &[2 * CHUNK_KEYS]);
    }

    proptest::proptest! {
        #[test]
        fn search_equals_a_scan_of_all_names(names in proptest::collection::vec("[abAB]{0,6}", 0..60), text in "[abAB]{0,4}") {
            let named: Vec<(u32, &str)> = names.iter().zip(1..).map(|(name, key)| (key, name.as_str())).collect();
            let lower = text.to_lowercase();
            let is_first = |name: &str| name.to_lowercase().starts_with(&lower);
            let is_inside = |name: &str| lower.len() >= INSIDE_CHARS_MIN && !is_first(name) && name.to_lowercase().contains(&lower);
            let mut want: Vec<u32> = Vec::new();
            if !lower.is_empty() {
                want.extend(named.iter().rev().filter(|(_, name)| is_first(name)).map(|(key, _)| *key));
                want.extend(named.iter().rev().filter(|(_, name)| is_inside(name)).map(|(key, _)| *key));
            }
            let found: Vec<u32> = index(&named).find(&text, 1_000);
            proptest::prop_assert_eq!(found, want);
        }
    }
}
