//! Names of players or servers, for searches as people type. The daemon keeps them in memory;
//! [`find_players`] and [`find_servers`] read them for one search.
//!
//! A name is found if it has all words of the text, in any order, without regard to case, accents and signs
//! ([`fold`](crate::model::search_text::fold)). A word may be anywhere in a word of the name, a short one only at its
//! beginning.
//!
//! The names of a chunk are one string. Its words are sorted, so those that begin with a word of the text are found by some
//! comparisons. Only if there are too few of them, names that have the text inside their words are searched for: from the start of
//! the string to its end, in the newest names. Each chunk has a filter of the three-byte sequences that occur in it, so that search
//! skips the chunks that cannot contain the words. An index of the positions of all three-character sequences would take several
//! times as much memory.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use memchr::memmem;

use crate::engine::{SERVER_NAMES_CHUNK, ServerName};
use crate::model::name::{ColourCodes, strip_colours};
use crate::model::search_text::{Match, fold};
use crate::model::{PlayerKey, ServerKey};
use crate::store::{Reader, StoreError};

/// Precedes each word of a name. No word contains it.
const WORD: u8 = 0;

/// Shortest word that is searched for inside words, bytes. Shorter ones occur in too many names.
pub const INSIDE_BYTES_MIN: usize = 3;

/// Bits of a chunk's filter: 64 KB beside some 400 KB of names. With 100,000 different three-byte
/// sequences in a chunk, the false positive rate is 17 %.
const FILTER_BITS: u32 = 1 << 19;

/// Bytes of names that are searched for words inside words, at most: those of some million players. Words that begin with the
/// text are found among all names.
const INSIDE_BYTES_MAX: usize = 24 << 20;

/// The same if there are better names already.
const INSIDE_BYTES_IF_FOUND: usize = 4 << 20;

/// Names that have a word of the text, but perhaps not all, are looked at until there are so many.
const LOOKED_AT_MAX: usize = 15_000;

/// The same once there are enough names, for better ones.
const LOOKED_AT_IF_ENOUGH: usize = 3_000;

/// Words of a text of which the rarest is looked for.
const COMPARED_MAX: usize = 4;

/// A word that begins so few words of a chunk is rare enough: its names are compared sooner than another word is looked up.
const FEW_WORDS: usize = 16;

/// Most names that a search for servers finds; the busiest of these servers are listed.
pub const SERVER_NAMES_MAX: usize = 1_000;

/// Keys of one chunk are in a range of this length.
pub const CHUNK_KEYS: u32 = SERVER_NAMES_CHUNK;

/// The names with keys in a range.
#[derive(Debug, Default)]
pub struct Chunk {
    /// The words of all names, folded, each behind a mark.
    text: Vec<u8>,
    /// Where each name begins, and its key, in order of key.
    names: Vec<(u32, u32)>,
    /// Where each word begins, in alphabetical order.
    words: Vec<u32>,
    /// How every [`HEADS_EACH`]th of these words begins: side by side in memory, unlike the words.
    heads: Vec<Head>,
    /// The filter: which three-byte sequences occur in `text`, by their hash.
    filter: Vec<u64>,
}

/// The first bytes of a word and what follows it; numbers compare as the bytes do.
type Head = u64;

/// A head stands for so many words. A search reads words at random, each a cache miss or two: with heads it reads five instead of
/// fifteen in each of 610 chunks.
const HEADS_EACH: usize = 16;

fn head(text: &[u8]) -> Head {
    let mut bytes = [0; size_of::<Head>()];
    let known = text.len().min(bytes.len());
    bytes[..known].copy_from_slice(&text[..known]);
    Head::from_be_bytes(bytes)
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
        self.push_folded(key, &fold(name));
    }

    /// Adds a name whose words are in their final form.
    fn push_folded(&mut self, key: u32, words: &str) {
        self.names.push((self.text.len() as u32, key));
        self.text.push(WORD);
        self.text.extend(words.bytes().map(|byte| if byte == b' ' { WORD } else { byte }));
    }

    pub fn bytes(&self) -> usize {
        let words = self.words.capacity() * size_of::<u32>() + self.heads.capacity() * size_of::<Head>();
        self.text.capacity() + self.names.capacity() * size_of::<(u32, u32)>() + words + self.filter.capacity() * 8
    }

    /// Call it after the last name.
    pub fn finish(&mut self) {
        self.text.shrink_to_fit();
        self.names.shrink_to_fit();
        self.words = memchr::memchr_iter(WORD, &self.text).map(|mark| mark as u32 + 1).collect();
        let text = &self.text;
        self.words.sort_unstable_by_key(|&start| &text[start as usize..]);
        self.words.shrink_to_fit();
        self.heads = self.words.iter().step_by(HEADS_EACH).map(|&start| head(&text[start as usize..])).collect();
        self.filter = vec![0; FILTER_BITS as usize / 64];
        for (word, bit) in filter_bits(&self.text) {
            self.filter[word] |= bit;
        }
    }

    /// Whether a name may contain all these words.
    fn may_contain_all(&self, needles: &[Vec<u8>]) -> bool {
        let mut bits = needles.iter().flat_map(|needle| filter_bits(needle));
        bits.all(|(index, bit)| self.filter.get(index).is_none_or(|bits| bits & bit != 0))
    }

    /// The key of the name at a position, and where its words are.
    fn name_at(&self, position: usize) -> (u32, Range<usize>) {
        let which = self.names.partition_point(|&(start, _)| start as usize <= position) - 1;
        let (start, key) = self.names[which];
        let end = self.names.get(which + 1).map_or(self.text.len(), |&(next, _)| next as usize);
        (key, start as usize..end)
    }

    /// Where the words begin that begin with one.
    fn words_with(&self, beginning: &[u8]) -> &[u32] {
        let wanted = head(beginning);
        // The first such word is in the block before the first head that is not less, or among those with an equal head.
        let block = self.heads.partition_point(|head| *head < wanted).saturating_sub(1);
        let end = self.heads.partition_point(|head| *head <= wanted) * HEADS_EACH;
        let words = &self.words[block * HEADS_EACH..];
        let near = &words[..words.len().min(end - block * HEADS_EACH)];
        let words = &words[near.partition_point(|&start| &self.text[start as usize..] < beginning)..];
        let has = |start: &u32| self.text[*start as usize..].starts_with(beginning);
        // Most words are rare: the end is near.
        let ends = |bound: &usize| words.get(*bound).is_none_or(|start| !has(start));
        let bound = std::iter::successors(Some(4), |bound| Some(bound * 2)).find(ends).expect("words end");
        &words[..words[..words.len().min(bound)].partition_point(has)]
    }

    /// Passes the names that contain a needle, in order: their keys and words.
    fn each_with(&self, needle: &[u8], mut found: impl FnMut(u32, &[u8])) {
        let finder = memmem::Finder::new(needle);
        let mut from = 0;
        while let Some(at) = finder.find(&self.text[from..]) {
            let (key, words) = self.name_at(from + at);
            from = words.end;
            found(key, &self.text[words]);
        }
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

    /// Keys of names that a text finds, the best matches first, then the newest; at most `count` names.
    pub fn find(&self, text: &str, count: usize) -> Vec<(Match, u32)> {
        let mut search = Search::new(text, count);
        for (_, chunk) in self.chunks.iter().rev() {
            search.look_at_beginnings(chunk);
            if search.is_complete() {
                break;
            }
        }
        search.looked_at = 0;
        let inside_bytes_max = if search.found_keys.is_empty() { INSIDE_BYTES_MAX } else { INSIDE_BYTES_IF_FOUND };
        for (_, chunk) in self.chunks.iter().rev() {
            if search.has_enough() || search.looked_at > LOOKED_AT_MAX || search.inside_bytes > inside_bytes_max {
                break;
            }
            search.look_inside(chunk);
        }
        search.found()
    }
}

/// Words of a text that are searched for: each is compared with each name. A name has a few.
const WORDS_MAX: usize = 16;

/// What a name must have.
struct Wanted {
    /// All words, each behind a mark.
    text: Vec<u8>,
    /// The words, the longest first, with their marks if they are too short to be searched for inside words.
    needles: Vec<Vec<u8>>,
}

impl Wanted {
    fn new(words: &str) -> Wanted {
        let marked = |word: &str| [&[WORD], word.as_bytes()].concat();
        let is_short = |word: &str| word.len() < INSIDE_BYTES_MIN;
        let needle = |word: &str| if is_short(word) { marked(word) } else { word.as_bytes().to_vec() };
        let mut words: Vec<&str> = words.split(' ').filter(|word| !word.is_empty()).collect();
        words.truncate(WORDS_MAX);
        let text = words.iter().flat_map(|word| marked(word)).collect();
        let mut needles: Vec<Vec<u8>> = words.into_iter().map(needle).collect();
        needles.sort_by(|a, b| (Reverse(a.len()), a).cmp(&(Reverse(b.len()), b)));
        needles.dedup();
        Wanted { text, needles }
    }

    /// The rarest of the longest needles: the one that begins the fewest words of a chunk, and where these words begin.
    fn rarest<'a>(&self, chunk: &'a Chunk) -> (&[u8], &'a [u32]) {
        let mut rarest: Option<(&[u8], &[u32])> = None;
        for needle in self.needles.iter().take(COMPARED_MAX) {
            let words = chunk.words_with(needle.strip_prefix(&[WORD]).unwrap_or(needle));
            if rarest.is_none_or(|(_, known)| words.len() < known.len()) {
                rarest = Some((needle, words));
            }
            if words.len() <= FEW_WORDS {
                break;
            }
        }
        rarest.expect("a word at least")
    }

    fn matches(&self, name: &[u8]) -> Option<Match> {
        if name.starts_with(&self.text) {
            return Some(if name.len() == self.text.len() { Match::Equal } else { Match::Begins });
        }
        if !self.needles.iter().all(|needle| memmem::find(name, needle).is_some()) {
            return None;
        }
        let begins_word = |needle: &Vec<u8>| {
            needle[0] == WORD || memmem::find_iter(name, needle).any(|at| at > 0 && name[at - 1] == WORD)
        };
        Some(if self.needles.iter().all(begins_word) { Match::Words } else { Match::Inside })
    }
}

/// A search, which examines the chunks, the newest first.
struct Search {
    /// Each name that has one of these.
    wanted: Vec<Wanted>,
    count: usize,
    /// Names that had a word, and bytes that were searched inside words.
    looked_at: usize,
    inside_bytes: usize,
    /// The keys that were found, by how well.
    found: [Vec<u32>; 4],
    found_keys: BTreeSet<u32>,
}

impl Search {
    fn new(text: &str, count: usize) -> Search {
        let plain = strip_colours(text, if text.contains('^') { ColourCodes::DarkPlaces } else { ColourCodes::None });
        let mut wanted = vec![Wanted::new(&fold(&plain))];
        // An address or a part of it.
        if text.contains(['.', ':']) {
            let address = text.split_once("://").map_or(text, |(_, address)| address);
            wanted.push(Wanted::new(&address.trim().to_lowercase().replace(['\0', ' '], "")));
        }
        wanted.retain(|wanted| !wanted.needles.is_empty());
        Search { wanted, count, looked_at: 0, inside_bytes: 0, found: Default::default(), found_keys: BTreeSet::new() }
    }

    /// Finds the names with words that begin with all those of the text.
    fn look_at_beginnings(&mut self, chunk: &Chunk) {
        let mut found: Vec<(u32, Match)> = Vec::new();
        for wanted in &self.wanted {
            if !chunk.may_contain_all(&wanted.needles) {
                continue;
            }
            let (_, rarest) = wanted.rarest(chunk);
            self.looked_at += rarest.len();
            for &word in rarest {
                let (key, name) = chunk.name_at(word as usize);
                let how = wanted.matches(&chunk.text[name]).filter(|how| *how < Match::Inside);
                found.extend(how.map(|how| (key, how)));
            }
        }
        self.keep(found);
    }

    /// Finds the names that have a word of the text inside their words only.
    fn look_inside(&mut self, chunk: &Chunk) {
        let mut found: Vec<(u32, Match)> = Vec::new();
        for wanted in &self.wanted {
            if !chunk.may_contain_all(&wanted.needles) {
                continue;
            }
            let (rarest, _) = wanted.rarest(chunk);
            chunk.each_with(rarest, |key, name| {
                self.looked_at += 1;
                found.extend(wanted.matches(name).map(|how| (key, how)));
            });
            self.inside_bytes += chunk.text.len();
        }
        // A player with several names may have been found by another one.
        found.retain(|&(key, how)| how == Match::Inside && !self.found_keys.contains(&key));
        self.keep(found);
    }

    fn keep(&mut self, mut found: Vec<(u32, Match)>) {
        // The best match of each key.
        found.sort_by_key(|(key, how)| (Reverse(*key), *how));
        found.dedup_by_key(|(key, _)| *key);
        for (key, how) in found {
            let keys = &mut self.found[how as usize];
            if keys.len() < self.count {
                keys.push(key);
                self.found_keys.insert(key);
            }
        }
    }

    fn has_enough(&self) -> bool {
        self.found.iter().map(Vec::len).sum::<usize>() >= self.count
    }

    /// Whether there are enough names that begin with the text, or enough were looked at. Older names that are equal to it may be
    /// missing: they are found by their whole names.
    fn is_complete(&self) -> bool {
        let looked_at_max = if self.has_enough() { LOOKED_AT_IF_ENOUGH } else { LOOKED_AT_MAX };
        let begin = self.found[..=Match::Begins as usize].iter().map(Vec::len).sum::<usize>();
        begin >= self.count || self.looked_at > looked_at_max
    }

    fn found(self) -> Vec<(Match, u32)> {
        let of = |(how, keys): (Match, Vec<u32>)| keys.into_iter().map(move |key| (how, key));
        Match::ALL.into_iter().zip(self.found).flat_map(of).take(self.count).collect()
    }
}

/// The names of the players of a chunk.
pub fn players_of(reader: &Reader, number: u32) -> Result<Chunk, StoreError> {
    let mut chunk = Chunk::default();
    reader.each_name(NameIndex::keys_of(number), &mut |player, name| chunk.push(player.0, name))?;
    chunk.finish();
    Ok(chunk)
}

/// Host names of servers without colours, and their addresses.
pub fn servers_of(names: &[ServerName]) -> Chunk {
    let mut chunk = Chunk::default();
    for (server, hostname, url) in names {
        chunk.push(server.0, &strip_colours(hostname, ColourCodes::of_url(url)));
        chunk.push_folded(server.0, url.split_once("://").map_or(&url[..], |(_, address)| address));
    }
    chunk.finish();
    chunk
}

/// As [`NameIndex::find`], in the names of all players of a store.
pub fn find_players(reader: &Reader, text: &str, count: usize) -> Result<Vec<(Match, PlayerKey)>, StoreError> {
    let mut search = Search::new(text, count);
    let newest = NameIndex::number_of(reader.player_counts()?.0.0.saturating_sub(1));
    for number in (0..=newest).rev() {
        let chunk = players_of(reader, number)?;
        search.look_at_beginnings(&chunk);
        search.look_inside(&chunk);
        if search.is_complete() {
            break;
        }
    }
    Ok(search.found().into_iter().map(|(how, key)| (how, PlayerKey(key))).collect())
}

/// Servers whose host name or address a text finds, each once.
pub fn find_servers(servers: &[ServerName], text: &str) -> Vec<ServerKey> {
    let mut search = Search::new(text, SERVER_NAMES_MAX);
    let chunk = servers_of(servers);
    search.look_at_beginnings(&chunk);
    search.look_inside(&chunk);
    let mut found: Vec<ServerKey> = search.found().into_iter().map(|(_, key)| ServerKey(key)).collect();
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
        let found: Vec<u32> = index.find(text, 3).into_iter().map(|(_, key)| key).collect();
        assert_eq!(found, want, "{text:?}");
    }

    #[test]
    fn better_matches_come_first_then_newer_players() {
        let newer = CHUNK_KEYS + 1;
        let index =
            index(&[(1, "Visor"), (2, "the Visor"), (3, "VISORS"), (4, "a"), (newer, "viSoñ"), (newer + 1, "xvisox")]);
        check(&index, "visor", &[1, 3, 2]);
        check(&index, "SOÑ", &[newer]);
        check(&index, "son", &[newer]);
        check(&index, "visox", &[newer + 1]);
        check(&index, "v", &[newer, 3, 1]);
        check(&index, "vi", &[newer, 3, 1]);
        check(&index, "vi th", &[2]);
        check(&index, "is", &[]);
        check(&index, "", &[]);
        check(&index, "rvis", &[]);
        check(&index, "r\0v", &[]);
    }

    #[test]
    fn a_player_with_several_names_is_found_once_by_the_best_one() {
        let index = index(&[(1, "the Visor"), (1, "Visor"), (2, "Visors"), (3, "a visor"), (3, "klesk")]);
        check(&index, "visor", &[1, 2, 3]);
        check(&index, "klesk", &[3]);
        let index = self::index(&[(1, "visory"), (1, "xvisor"), (2, "xxvisor")]);
        check(&index, "visor", &[1, 2]);
    }

    #[test]
    fn words_are_found_in_any_order_without_case_accents_and_signs() {
        let index = index(&[(1, "[DE] =Iron_Bunny="), (2, "Café de l'Arène"), (3, "IronBunny42"), (4, "~*~")]);
        check(&index, "iron bunny", &[1, 3]);
        check(&index, "Bunny iron", &[1, 3]);
        check(&index, "bunn de", &[1]);
        check(&index, " {cafe} ", &[2]);
        check(&index, "^1arene ^7cafe", &[2]);
        check(&index, "~*", &[4]);
    }

    #[test]
    fn servers_are_found_by_their_names_and_addresses_but_not_by_the_scheme() {
        let server = |key: u32, name: &str, url: &str| (ServerKey(key), name.to_owned(), url.to_owned());
        let servers = [
            server(1, "^1The ^7Pit", "quake3://192.0.2.7:27960"),
            server(2, "Quake Café", "quake3://games.example:27961"),
            server(3, "", "source://192.0.2.77:27015"),
        ];
        let find = |text: &str| find_servers(&servers, text).into_iter().map(|key| key.0).collect::<Vec<_>>();
        assert_eq!(find("the pit"), [1]);
        assert_eq!(find("quake"), [2]);
        assert_eq!(find("quake3"), [0; 0]);
        assert_eq!(find("192.0.2.7"), [1, 3]);
        assert_eq!(find("192.0.2.7:27960"), [1]);
        assert_eq!(find("quake3://games.EXAMPLE"), [2]);
        assert_eq!(find("27961"), [2]);
    }

    #[test]
    fn words_inside_words_of_old_names_are_found_if_nothing_better_is() {
        let other = format!("vis iso sor {}", "a".repeat(2_000));
        let mut names = vec![(1, "xvisorx")];
        names.extend((CHUNK_KEYS..).take(INSIDE_BYTES_IF_FOUND / 2_000).map(|key| (key, &other[..])));
        check(&index(&names), "visor", &[1]);
        names.push((2 * CHUNK_KEYS, "visor"));
        check(&index(&names), "visor", &[2 * CHUNK_KEYS]);
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
        fn words_with_a_beginning_are_those_that_a_scan_finds(
            names in proptest::collection::vec("[ab]{6,14}", 0..200), beginning in "[ab]{1,12}",
        ) {
            let mut chunk = Chunk::default();
            (1..).zip(&names).for_each(|(key, name)| chunk.push(key, name));
            chunk.finish();
            let begins = |start: &&u32| chunk.text[**start as usize..].starts_with(beginning.as_bytes());
            let want: Vec<u32> = chunk.words.iter().filter(begins).copied().collect();
            proptest::prop_assert_eq!(chunk.words_with(beginning.as_bytes()), want);
        }

        #[test]
        fn search_equals_a_scan_of_all_names(
            names in proptest::collection::vec("[abA ]{0,9}", 0..60), text in "[abA ]{0,6}",
        ) {
            let words = |text: &str| fold(text).split(' ').filter(|w| !w.is_empty()).map(str::to_owned).collect::<Vec<_>>();
            let wanted = words(&text);
            let how = |name: &str| {
                let has = words(name);
                let begins = |word: &String| has.iter().any(|own| own.starts_with(&word[..]));
                let inside = |word: &String| {
                    begins(word) || word.len() >= INSIDE_BYTES_MIN && has.iter().any(|own| own.contains(&word[..]))
                };
                match () {
                    _ if wanted.is_empty() => None,
                    _ if has == wanted => Some(Match::Equal),
                    _ if has.join(" ").starts_with(&wanted.join(" ")) => Some(Match::Begins),
                    _ if wanted.iter().all(begins) => Some(Match::Words),
                    _ => wanted.iter().all(inside).then_some(Match::Inside),
                }
            };
            let named: Vec<(u32, &str)> = names.iter().zip(1..).map(|(name, key)| (key, name.as_str())).collect();
            let mut want: Vec<_> = named.iter().filter_map(|(key, name)| Some((how(name)?, Reverse(*key)))).collect();
            want.sort();
            let want: Vec<u32> = want.into_iter().map(|(_, key)| key.0).collect();
            let found: Vec<u32> = index(&named).find(&text, 1_000).into_iter().map(|(_, key)| key).collect();
            proptest::prop_assert_eq!(found, want);
        }
    }
}
