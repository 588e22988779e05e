//! Pages of the list of servers, in the order in which they were added or in another one.
//!
//! Sorting 20,000 servers takes some milliseconds, so a sorted list is used by all readers for some
//! seconds. It is kept for minutes after that. A reader of its first page gets all further pages
//! from the same list, so no server is listed twice even if servers move meanwhile.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, MutexGuard, PoisonError};

use smallvec::SmallVec;

use super::global::SERVER_NAMES_CHUNK;
use super::{ReadModel, ServerState};
use crate::model::server_page::{ServerCursor, ServerOrder};
use crate::model::{ServerKey, ServerUrl};
use crate::series::slots;
use crate::view::{RecentSeriesView, ServerFields, ServerSummary};

/// Most servers that are examined for a page of the list; this takes some 10 ms.
const SERVERS_PER_PAGE_SEEN_MAX: usize = 10_000;

/// How long a sorted list is used for first pages, ms.
const SORTED_AGE_MS_MAX: i64 = 10_000;

/// How long a list is kept for further pages, ms.
const KEPT_AGE_MS_MAX: i64 = 600_000;

/// Most servers in all kept lists: 16 MB. With 20,000 servers online this is enough for all lists;
/// with 300,000, for the lists of two minutes.
const KEPT_SERVERS_MAX: usize = 4_000_000;

/// The beginning of a cursor of a sorted list: when the list was sorted, and how many of its servers were
/// listed.
const CURSOR_HEAD_BYTES: usize = 8 + 4;

/// The lists that were sorted last.
#[derive(Debug, Default)]
pub(super) struct SortedServers {
    /// By [`ServerOrder`], the newest last.
    lists: [VecDeque<Arc<SortedList>>; ServerOrder::ALL.len()],
}

#[derive(Debug)]
struct SortedList {
    /// When it was sorted, Unix ms.
    at_ms: i64,
    servers: Vec<ServerKey>,
    /// The places of the servers; empty if a newer list replaces this one for cursors of lists that are
    /// not kept.
    places: Vec<Place>,
}

/// Bytes that sort like the order, and end with the key of the server.
type Place = SmallVec<[u8; 16]>;

impl SortedServers {
    /// The list that a cursor continues.
    fn kept(&self, order: ServerOrder, at_ms: i64) -> Option<Arc<SortedList>> {
        self.lists[order as usize].iter().find(|list| list.at_ms == at_ms).cloned()
    }

    /// The newest list, unless it is too old.
    fn recent(&self, order: ServerOrder, now_ms: i64) -> Option<Arc<SortedList>> {
        let newest = self.lists[order as usize].back()?;
        (0..SORTED_AGE_MS_MAX).contains(&(now_ms - newest.at_ms)).then(|| newest.clone())
    }

    fn push(&mut self, order: ServerOrder, list: Arc<SortedList>) {
        let now_ms = list.at_ms;
        let lists = &mut self.lists[order as usize];
        // After the clock was set back, two lists could have the same time.
        lists.retain(|kept| (1..KEPT_AGE_MS_MAX).contains(&(now_ms - kept.at_ms)));
        // Readers of their first pages may still have the places.
        for kept in lists.iter_mut().filter(|kept| !kept.places.is_empty()) {
            *kept = Arc::new(SortedList { at_ms: kept.at_ms, servers: kept.servers.clone(), places: Vec::new() });
        }
        lists.push_back(list);
        let oldest = |lists: &[VecDeque<Arc<SortedList>>]| {
            let replaced = lists.iter().enumerate().filter(|(_, lists)| lists.len() > 1);
            replaced.min_by_key(|(_, lists)| lists[0].at_ms).map(|(order, _)| order)
        };
        let servers =
            |lists: &[VecDeque<Arc<SortedList>>]| lists.iter().flatten().map(|list| list.servers.len()).sum::<usize>();
        while servers(&self.lists) > KEPT_SERVERS_MAX
            && let Some(order) = oldest(&self.lists)
        {
            self.lists[order].pop_front();
        }
    }
}

/// A server with its host name and URL.
pub type ServerName = (ServerKey, String, String);

impl ReadModel {
    /// The matching servers after a place, at most `count`, and the place at which the list
    /// continues, if it does. Examines at most [`SERVERS_PER_PAGE_SEEN_MAX`] servers.
    pub fn servers_page(
        &self,
        order: ServerOrder,
        after: Option<&ServerCursor>,
        count: usize,
        matches: &dyn Fn(&ServerFields<'_>) -> bool,
    ) -> (Vec<ServerSummary>, Option<ServerCursor>) {
        if order == ServerOrder::Added {
            let from = after.map_or(0, |after| server_of(&after.0).0.saturating_add(1));
            let keys = (from..self.servers.end().0).map(ServerKey);
            let (page, last) = self.page(keys, count, matches);
            return (page, last.map(|(_, key)| ServerCursor(place(&[], key))));
        }
        let (list, from) = match after.and_then(|after| self.continued(order, after)) {
            Some(continued) => continued,
            None => {
                let list = self.recent_list(order);
                let after = after.map(|ServerCursor(bytes)| bytes.get(CURSOR_HEAD_BYTES..).unwrap_or_default());
                let from = after.map_or(0, |after| list.places.partition_point(|place| &place[..] <= after));
                (list, from)
            }
        };
        let (page, last) = self.page(list.servers[from..].iter().copied(), count, matches);
        let next = last.map(|(seen, key)| self.cursor(order, list.at_ms, from + seen, key));
        (page, next)
    }

    /// The list of the cursor, if it is kept, and how many of its servers were listed.
    fn continued(&self, order: ServerOrder, ServerCursor(bytes): &ServerCursor) -> Option<(Arc<SortedList>, usize)> {
        let (at_ms, rest) = bytes.split_first_chunk()?;
        let list = self.sorted_lists().kept(order, i64::from_be_bytes(*at_ms))?;
        let listed = u32::from_be_bytes(*rest.first_chunk()?) as usize;
        let listed = listed.min(list.servers.len());
        Some((list, listed))
    }

    /// Continues a list after so many servers, the last of which is `server`. Its present place is used
    /// when the list is not kept any more.
    fn cursor(&self, order: ServerOrder, at_ms: i64, listed: usize, server: ServerKey) -> ServerCursor {
        let state = self.servers.get(server);
        // A server that has left the order since then sorts after all others.
        let place =
            state.and_then(|state| self.place_in(order, server, state)).unwrap_or_else(|| place(&[0xFF; 4], server));
        let mut bytes = SmallVec::from_slice(&at_ms.to_be_bytes());
        bytes.extend_from_slice(&(listed as u32).to_be_bytes());
        bytes.extend_from_slice(&place);
        ServerCursor(bytes)
    }

    /// The names of the servers with these keys.
    pub fn server_names(&self, keys: Range<u32>) -> Vec<ServerName> {
        let keys = (keys.start..keys.end.min(self.servers.end().0)).map(ServerKey);
        let listed = keys.filter_map(|key| Some((key, self.servers.record(key)?)));
        listed
            .filter(|(_, record)| !record.removed)
            .map(|(key, record)| (key, record.hostname.clone(), record.url.to_string()))
            .collect()
    }

    /// For each chunk of [`SERVER_NAMES_CHUNK`] keys: how often its names have changed since the start.
    pub fn server_name_changes(&self) -> Vec<u64> {
        let mut changes = self.global.server_name_changes.clone();
        changes.resize(self.servers.end().0.div_ceil(SERVER_NAMES_CHUNK) as usize, 0);
        changes
    }

    /// How many of these servers are known, removed ones included.
    pub fn count_known(&self, urls: &[ServerUrl]) -> usize {
        urls.iter().filter(|url| self.servers.find(url).is_some()).count()
    }

    /// The servers with most players among these.
    pub fn busiest_servers(&self, servers: &[ServerKey], count: usize) -> Vec<ServerSummary> {
        let listed = servers.iter().filter_map(|key| Some((*key, self.servers.get(*key)?)));
        let mut listed: Vec<_> = listed.filter(|(_, server)| !server.record.removed).collect();
        listed.sort_by_cached_key(|(key, ServerState { record, .. })| {
            let is_online = self.is_online(record);
            let players = if is_online { record.believed_count() } else { 0 };
            (Reverse((is_online, players, record.last_seen_ms)), *key)
        });
        listed.into_iter().take(count).map(|(key, server)| self.summary(key, server)).collect()
    }

    /// Players of a server in the last 25 hours. `None`: it was never seen.
    pub fn recent_series(&self, server: ServerKey) -> Option<RecentSeriesView> {
        let series = self.servers.get(server)?.series.as_ref()?.unpack();
        Some(RecentSeriesView {
            newest_ten_minutes_ms: series.newest_ten_minutes_ms,
            ten_minutes: slots::decode_slots(&series.ten_minutes),
        })
    }

    /// The servers of a page, and, if there are more, how many were seen and the last of them.
    fn page(
        &self,
        servers: impl Iterator<Item = ServerKey>,
        count: usize,
        matches: &dyn Fn(&ServerFields<'_>) -> bool,
    ) -> (Vec<ServerSummary>, Option<(usize, ServerKey)>) {
        let mut page = Vec::new();
        let mut last = None;
        for (seen, key) in servers.enumerate() {
            if page.len() == count || seen == SERVERS_PER_PAGE_SEEN_MAX {
                return (page, last);
            }
            last = Some((seen + 1, key));
            let Some(server_state) = self.servers.get(key) else { continue };
            if !server_state.record.removed && matches(&self.fields(server_state)) {
                page.push(self.summary(key, server_state));
            }
        }
        (page, None)
    }

    fn sorted_lists(&self) -> MutexGuard<'_, SortedServers> {
        self.sorted_servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last list, or a new one. Two readers may sort at the same time.
    fn recent_list(&self, order: ServerOrder) -> Arc<SortedList> {
        let recent = self.sorted_lists().recent(order, self.now_ms());
        recent.unwrap_or_else(|| {
            let list = Arc::new(self.sorted(order));
            self.sorted_lists().push(order, list.clone());
            list
        })
    }

    fn sorted(&self, order: ServerOrder) -> SortedList {
        let places = self.listed_servers().filter_map(|(key, server)| self.place_in(order, key, server));
        let mut places: Vec<Place> = places.collect();
        places.sort_unstable();
        SortedList { at_ms: self.now_ms(), servers: places.iter().map(|place| server_of(place)).collect(), places }
    }

    /// `None`: the server is not in this order.
    fn place_in(&self, order: ServerOrder, key: ServerKey, ServerState { record, .. }: &ServerState) -> Option<Place> {
        match order {
            ServerOrder::Added => Some(place(&[], key)),
            ServerOrder::Players => {
                self.is_online(record).then(|| place(&(!record.believed_count()).to_be_bytes(), key))
            }
            ServerOrder::Rank => record.rank.map(|rank| place(&rank.to_be_bytes(), key)),
            ServerOrder::Name => {
                let answers = record.class.number() <= 5 && !record.hostname.is_empty();
                answers.then(|| place(record.hostname.to_lowercase().as_bytes(), key))
            }
        }
    }
}

/// The value by which servers are sorted, and the key, which makes it unique. The byte between them
/// makes a name sort before those that it begins.
fn place<const N: usize>(value: &[u8], server: ServerKey) -> SmallVec<[u8; N]>
where
    [u8; N]: smallvec::Array<Item = u8>,
{
    let mut bytes = SmallVec::from_slice(value);
    bytes.push(0);
    bytes.extend_from_slice(&server.0.to_be_bytes());
    bytes
}

fn server_of(place: &[u8]) -> ServerKey {
    ServerKey(place.last_chunk().map_or(0, |key| u32::from_be_bytes(*key)))
}
