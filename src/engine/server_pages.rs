//! Pages of the list of servers, in the order in which they were added or in another one.
//!
//! Sorting 20,000 servers takes some milliseconds, so an order is kept for some seconds and used
//! by all readers.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::ops::Range;

use super::{Engine, ServerState};
use crate::model::ServerKey;
use crate::model::server_page::{ServerCursor, ServerOrder};
use crate::model::view::{RecentSeriesView, ServerFields, ServerSummary};
use crate::series::slots;

/// Most servers that a page of the list looks at: some 10 ms.
const SERVERS_PER_PAGE_SEEN_MAX: usize = 10_000;

/// How long a sorted list is used, ms.
const SORTED_AGE_MS_MAX: i64 = 10_000;

/// The lists that were sorted last.
#[derive(Debug, Default)]
pub(super) struct SortedServers {
    /// By [`ServerOrder`]: when it was sorted, Unix ms, and the list.
    lists: [Option<(i64, Vec<ServerCursor>)>; ServerOrder::ALL.len()],
}

/// Names of some servers, for searches.
#[derive(Clone, Debug, Default)]
pub struct ServerNames {
    /// Key, host name and URL, in order of key.
    pub names: Vec<(ServerKey, String, String)>,
    /// The number of all keys.
    pub keys: u32,
}

impl Engine {
    /// Sorts the servers, unless the last list is recent. Without that, each page sorts them.
    pub fn sort_servers(&mut self, order: ServerOrder) {
        let is_outdated = self.recent_list(order).is_none();
        if order != ServerOrder::Added && is_outdated {
            self.sorted_servers.lists[order as usize] = Some((self.now_ms(), self.sorted(order)));
        }
    }

    /// The servers after a place that match, at most `count`, and the place at which the list
    /// continues, if it does. Looks at no more than [`SERVERS_PER_PAGE_SEEN_MAX`] servers.
    pub fn servers_page(
        &self,
        order: ServerOrder,
        after: Option<&ServerCursor>,
        count: usize,
        matches: &dyn Fn(&ServerFields<'_>) -> bool,
    ) -> (Vec<ServerSummary>, Option<ServerCursor>) {
        if order == ServerOrder::Added {
            let from = after.map_or(0, |after| server_of(after).0.saturating_add(1));
            let keys = (from..self.servers.len() as u32).map(ServerKey);
            return self.page(keys.map(|key| (Cow::Owned(place(&[], key)), key)), count, matches);
        }
        let list = match self.recent_list(order) {
            Some(list) => Cow::Borrowed(list),
            None => Cow::Owned(self.sorted(order)),
        };
        let from = after.map_or(0, |after| list.partition_point(|place| place <= after));
        self.page(list[from..].iter().map(|place| (Cow::Borrowed(place), server_of(place))), count, matches)
    }

    /// The names of the servers with these keys.
    pub fn server_names(&self, keys: Range<u32>) -> ServerNames {
        let all = self.servers.len() as u32;
        let listed = (keys.start..keys.end.min(all)).filter_map(|key| Some((key, self.server_state(ServerKey(key))?)));
        let names = listed
            .filter(|(_, server)| !server.record.removed)
            .map(|(key, server)| (ServerKey(key), server.record.hostname.clone(), server.record.url.to_string()));
        ServerNames { names: names.collect(), keys: all }
    }

    /// Of these servers, those with most players.
    pub fn busiest_servers(&self, servers: &[ServerKey], count: usize) -> Vec<ServerSummary> {
        let listed = servers.iter().filter_map(|key| Some((*key, self.server_state(*key)?)));
        let mut listed: Vec<_> = listed.filter(|(_, server)| !server.record.removed).collect();
        listed.sort_by_cached_key(|(key, ServerState { record, .. })| {
            let is_online = self.is_online(record);
            let players = if is_online { record.count } else { 0 };
            (Reverse((is_online, players, record.last_seen_ms)), *key)
        });
        listed.into_iter().take(count).map(|(key, server)| self.summary(key, server)).collect()
    }

    /// Players of a server in the last 25 hours. `None`: it was never seen.
    pub fn recent_series(&self, server: ServerKey) -> Option<RecentSeriesView> {
        let series = self.server_state(server)?.series.as_deref()?;
        Some(RecentSeriesView {
            newest_ten_minutes_ms: series.newest_ten_minutes_ms,
            ten_minutes: slots::decode_slots(&series.ten_minutes),
        })
    }

    fn page<'l>(
        &self,
        places: impl Iterator<Item = (Cow<'l, ServerCursor>, ServerKey)>,
        count: usize,
        matches: &dyn Fn(&ServerFields<'_>) -> bool,
    ) -> (Vec<ServerSummary>, Option<ServerCursor>) {
        let mut page = Vec::new();
        let mut last = None;
        let states = places.filter_map(|(place, key)| Some((place, key, self.server_state(key)?)));
        for (seen, (place, key, server_state)) in states.enumerate() {
            if page.len() == count || seen == SERVERS_PER_PAGE_SEEN_MAX {
                return (page, last.map(Cow::into_owned));
            }
            last = Some(place);
            if !server_state.record.removed && matches(&self.fields(server_state)) {
                page.push(self.summary(key, server_state));
            }
        }
        (page, None)
    }

    fn recent_list(&self, order: ServerOrder) -> Option<&[ServerCursor]> {
        let (at_ms, list) = self.sorted_servers.lists[order as usize].as_ref()?;
        (0..SORTED_AGE_MS_MAX).contains(&(self.now_ms() - at_ms)).then_some(list)
    }

    fn sorted(&self, order: ServerOrder) -> Vec<ServerCursor> {
        let places = self.listed_servers().filter_map(|(key, server)| self.place_in(order, key, server));
        let mut places: Vec<ServerCursor> = places.collect();
        places.sort_unstable();
        places
    }

    /// `None`: the server is not in this order.
    fn place_in(
        &self,
        order: ServerOrder,
        key: ServerKey,
        ServerState { record, .. }: &ServerState,
    ) -> Option<ServerCursor> {
        match order {
            ServerOrder::Added => Some(place(&[], key)),
            ServerOrder::Players => self.is_online(record).then(|| place(&(!record.count).to_be_bytes(), key)),
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
fn place(value: &[u8], server: ServerKey) -> ServerCursor {
    let mut bytes = smallvec::SmallVec::from_slice(value);
    bytes.push(0);
    bytes.extend_from_slice(&server.0.to_be_bytes());
    ServerCursor(bytes)
}

fn server_of(place: &ServerCursor) -> ServerKey {
    ServerKey(place.0.last_chunk().map_or(0, |key| u32::from_be_bytes(*key)))
}
