//! What servers say besides players: their settings, and the order of their maps. It is only shown: it is kept in memory,
//! a restart begins anew, and a replay does not know it. Shared with replicas.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::model::name::{ColourCodes, strip_colours};
use crate::model::shown_text::shown;
use crate::model::{MapKey, ServerKey};

/// How often settings are read again, ms.
const SETTINGS_AGE_MAX_MS: i64 = 3_600_000;

/// Settings of a server, at most, and characters of a name and of a value.
const SETTINGS_MAX: usize = 80;
const NAME_CHARS_MAX: usize = 40;
const VALUE_CHARS_MAX: usize = 120;

/// Maps of a server, at most.
const MAPS_MAX: usize = 24;

/// Bytes of all servers. Beyond it, the half that was read longest ago is dropped. A server of the Quake 3 family has 1.5 kB.
const BYTES_MAX: usize = 64 << 20;

/// Settings that say nothing to a visitor, or that the page shows elsewhere.
const HIDDEN: [&str; 12] = [
    "challenge",
    "hostname",
    "sv_hostname",
    "map",
    "mapname",
    "clients",
    "maxclients",
    "sv_maxclients",
    "numplayers",
    "maxplayers",
    "hostport",
    "queryid",
];

#[derive(Debug, Default)]
pub(super) struct Published(RwLock<Servers>);

#[derive(Debug, Default)]
struct Servers {
    by_key: BTreeMap<ServerKey, Server>,
    bytes: usize,
    /// When settings were read last, by server key, Unix ms. Of dropped servers, too: else those of a million servers
    /// would be read with each scan.
    settings_ms: Vec<Option<i64>>,
}

#[derive(Clone, Debug, Default)]
struct Server {
    settings: Box<[(Box<str>, Box<str>)]>,
    /// The maps in the order in which they were seen, with their first sight, Unix ms; the last one is the present one.
    maps: VecDeque<(MapKey, i64)>,
}

impl Server {
    fn bytes(&self) -> usize {
        let text = |(name, value): &(Box<str>, Box<str>)| name.len() + value.len() + size_of::<(Box<str>, Box<str>)>();
        size_of::<Server>()
            + self.settings.iter().map(text).sum::<usize>()
            + self.maps.len() * size_of::<(MapKey, i64)>()
    }
}

/// What is shown of a server.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    pub settings: Vec<(String, String)>,
    pub maps: Vec<(MapKey, i64)>,
    /// The map that has always followed the present one.
    pub next_map: Option<MapKey>,
}

impl Published {
    pub fn needs_settings(&self, server: ServerKey, now_ms: i64) -> bool {
        let read_ms = self.read().settings_read_ms(server);
        read_ms.is_none_or(|read_ms| (now_ms - read_ms).abs() > SETTINGS_AGE_MAX_MS)
    }

    /// Keeps the settings of a server: those with a name and a value, sorted by name.
    pub fn set_settings<'a>(&self, server: ServerKey, t_ms: i64, settings: impl Iterator<Item = (&'a str, &'a str)>) {
        let mut kept = BTreeMap::new();
        for (name, value) in settings {
            let is_hidden = HIDDEN.iter().any(|hidden| name.eq_ignore_ascii_case(hidden));
            if !is_hidden && !name.is_empty() && !value.is_empty() && kept.len() < SETTINGS_MAX {
                kept.insert(truncated(name, NAME_CHARS_MAX), truncated(value, VALUE_CHARS_MAX));
            }
        }
        let mut servers = self.write();
        servers.note_settings(server, Some(t_ms));
        servers.change(server, |published| published.settings = kept.into_iter().collect());
    }

    /// Notes that a server plays another map than before.
    pub fn note_map(&self, server: ServerKey, t_ms: i64, before: Option<MapKey>, map: MapKey) {
        self.write().change(server, |published| {
            if published.maps.is_empty() {
                // Since when is not known.
                published.maps.extend(before.map(|before| (before, t_ms)));
            }
            if published.maps.len() == MAPS_MAX {
                published.maps.pop_front();
            }
            published.maps.push_back((map, t_ms));
        });
    }

    pub fn forget(&self, server: ServerKey) {
        let mut servers = self.write();
        servers.note_settings(server, None);
        servers.change(server, |published| *published = Server::default());
    }

    /// What a reader shows of a server that plays `map` by the reader's record. The engine may have noted later maps already,
    /// of which the reader does not even know the names.
    pub fn shown(&self, server: ServerKey, map: Option<MapKey>) -> Shown {
        let servers = self.read();
        let Some(published) = servers.by_key.get(&server) else { return Shown::default() };
        let mut maps: Vec<(MapKey, i64)> = published.maps.iter().copied().collect();
        if let Some(present) = maps.iter().rposition(|&(seen, _)| Some(seen) == map) {
            maps.truncate(present + 1);
        }
        let screened = |(name, value): &(Box<str>, Box<str>)| (screened(name), screened(value));
        let settings = published.settings.iter().map(screened);
        let settings = settings.filter(|(name, value)| !name.is_empty() && !value.is_empty()).collect();
        Shown { settings, next_map: next_map(&maps), maps }
    }

    fn read(&self) -> RwLockReadGuard<'_, Servers> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Servers> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Servers {
    fn change(&mut self, server: ServerKey, change: impl FnOnce(&mut Server)) {
        let before = self.by_key.get(&server).map_or(0, Server::bytes);
        let published = self.by_key.entry(server).or_default();
        change(published);
        let after = published.bytes();
        self.bytes = (self.bytes + after).saturating_sub(before);
        if self.bytes > BYTES_MAX {
            self.drop_older_half();
        }
    }

    fn settings_read_ms(&self, server: ServerKey) -> Option<i64> {
        self.settings_ms.get(server.0 as usize).copied().flatten()
    }

    fn note_settings(&mut self, server: ServerKey, read_ms: Option<i64>) {
        let at = server.0 as usize;
        if at >= self.settings_ms.len() {
            self.settings_ms.resize(at + 1, None);
        }
        self.settings_ms[at] = read_ms;
    }

    fn drop_older_half(&mut self) {
        let read_ms = |(key, server): (&ServerKey, &Server)| {
            let map_ms = server.maps.back().map(|&(_, since_ms)| since_ms);
            (*key, self.settings_read_ms(*key).max(map_ms).unwrap_or(i64::MIN))
        };
        let read_ms: Vec<(ServerKey, i64)> = self.by_key.iter().map(read_ms).collect();
        let mut times: Vec<i64> = read_ms.iter().map(|(_, read_ms)| *read_ms).collect();
        let middle = times.len() / 2;
        let (_, &mut median_ms, _) = times.select_nth_unstable(middle);
        read_ms.iter().filter(|(_, read_ms)| *read_ms <= median_ms).for_each(|(key, _)| _ = self.by_key.remove(key));
        self.bytes = self.by_key.values().map(Server::bytes).sum();
    }
}

fn truncated(text: &str, chars_max: usize) -> Box<str> {
    text.char_indices().nth(chars_max).map_or(text, |(end, _)| &text[..end]).into()
}

/// Text of a server as it can be shown, without colour codes.
fn screened(text: &str) -> String {
    shown(&strip_colours(text, ColourCodes::Quake3)).trim().to_owned()
}

/// The map that followed the last one each time that it was played before, twice at least.
fn next_map(maps: &[(MapKey, i64)]) -> Option<MapKey> {
    let &(last, _) = maps.last()?;
    let mut followers = maps.windows(2).filter(|pair| pair[0].0 == last).map(|pair| pair[1].0);
    let (next, again) = (followers.next()?, followers.next()?);
    (next == again && followers.all(|map| map == next)).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: ServerKey = ServerKey(7);

    fn kept(published: &Published) -> Vec<(String, String)> {
        published.shown(SERVER, None).settings
    }

    #[test]
    fn settings_are_screened_and_bounded() {
        let published = Published::default();
        assert!(published.needs_settings(SERVER, 5));
        let long = "x".repeat(1_000);
        let many: Vec<String> = (0..200).map(|n| format!("z{n}")).collect();
        let pairs =
            [("Challenge", "1"), ("g_speed", "^1320\n"), ("b\u{202E}", "\u{7}"), ("timelimit", ""), ("a", &long)];
        let pairs = pairs.into_iter().chain(many.iter().map(|name| (&name[..], "1")));
        published.set_settings(SERVER, 5, pairs);
        let shown = kept(&published);
        assert_eq!(shown[0], ("a".to_owned(), "x".repeat(VALUE_CHARS_MAX)));
        assert!(shown.contains(&("g_speed".to_owned(), "320".to_owned())), "{shown:?}");
        assert!(shown.iter().all(|(name, value)| !name.contains('\u{202E}') && !value.contains(char::is_control)));
        assert_eq!(shown.len(), SETTINGS_MAX - 1, "one cannot be shown");
        assert!(!published.needs_settings(SERVER, 5 + SETTINGS_AGE_MAX_MS));
        assert!(published.needs_settings(SERVER, 6 + SETTINGS_AGE_MAX_MS));
        published.forget(SERVER);
        assert!(kept(&published).is_empty() && published.needs_settings(SERVER, 5));
    }

    #[test]
    fn next_map_is_the_one_that_always_followed() {
        let published = Published::default();
        let next = |published: &Published| published.shown(SERVER, None).next_map.map(|map| map.0);
        published.note_map(SERVER, 10, Some(MapKey(1)), MapKey(2));
        assert_eq!(
            (published.shown(SERVER, None).maps, next(&published)),
            (vec![(MapKey(1), 10), (MapKey(2), 10)], None)
        );
        published.note_map(SERVER, 20, Some(MapKey(2)), MapKey(1));
        assert_eq!(next(&published), None, "once is no rule");
        published.note_map(SERVER, 30, Some(MapKey(1)), MapKey(2));
        published.note_map(SERVER, 40, Some(MapKey(2)), MapKey(1));
        assert_eq!(next(&published), Some(2));
        published.note_map(SERVER, 50, Some(MapKey(1)), MapKey(3));
        published.note_map(SERVER, 60, Some(MapKey(3)), MapKey(1));
        assert_eq!(next(&published), None, "2 or 3");
        (0..100).for_each(|n| published.note_map(SERVER, 50 + n, None, MapKey(n as u32 % 3)));
        assert_eq!((published.shown(SERVER, None).maps.len(), next(&published)), (MAPS_MAX, Some(1)));
    }

    #[test]
    fn maps_later_than_the_record_of_a_reader_are_not_shown() {
        let published = Published::default();
        for (t_ms, before, map) in [(10, 1, 2), (20, 2, 1), (30, 1, 2), (40, 2, 3)] {
            published.note_map(SERVER, t_ms, Some(MapKey(before)), MapKey(map));
        }
        let seen =
            |map: u32| published.shown(SERVER, Some(MapKey(map))).maps.iter().map(|seen| seen.0.0).collect::<Vec<_>>();
        assert_eq!((seen(2), seen(3)), (vec![1, 2, 1, 2], vec![1, 2, 1, 2, 3]));
        assert_eq!(seen(9), [1, 2, 1, 2, 3], "a map that was not noted");
    }

    #[test]
    fn memory_is_bounded() {
        let published = Published::default();
        let value = "x".repeat(VALUE_CHARS_MAX);
        let names: Vec<String> = (0..SETTINGS_MAX).map(|n| format!("{n:0NAME_CHARS_MAX$}")).collect();
        for key in 0..10_000 {
            published.set_settings(ServerKey(key), key.into(), names.iter().map(|name| (&name[..], &value[..])));
        }
        let servers = published.read();
        assert!(servers.bytes <= BYTES_MAX && servers.by_key.len() > 1_000, "{} servers", servers.by_key.len());
        assert!(servers.by_key.contains_key(&ServerKey(9_999)) && !servers.by_key.contains_key(&ServerKey(0)));
        drop(servers);
        assert!(!published.needs_settings(ServerKey(0), 10_000), "dropped, and not read again before its time");
    }
}
