//! The clients that watch changes (`/api/v1/live`): what they watch, and how many streams each has.

use std::collections::HashMap;
use std::hash::Hasher;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use rustc_hash::FxHasher;
use tokio::sync::watch;

use super::limits::{LIVE_STREAMS_MAX, LIVE_STREAMS_PER_CLIENT_MAX};
use super::problem::{Problem, ProblemKind};

/// The number of streams of each client that has any.
#[derive(Debug, Default)]
pub(super) struct LiveStreams(Mutex<HashMap<IpAddr, usize>>);

/// The place of one stream, until it is dropped.
#[derive(Debug)]
pub(super) struct StreamPlace {
    client: IpAddr,
    streams: Arc<LiveStreams>,
}

impl LiveStreams {
    /// A place for a stream of a client. Error: there are too many streams, of this client or in total.
    pub fn open(self: &Arc<Self>, client: IpAddr) -> Result<StreamPlace, Problem> {
        let mut table = self.table();
        if table.get(&client).is_some_and(|streams| *streams >= LIVE_STREAMS_PER_CLIENT_MAX) {
            let detail = format!("this address has {LIVE_STREAMS_PER_CLIENT_MAX} streams already; close one of them");
            let problem = Problem::new(ProblemKind::TooManyRequests, detail);
            return Err(Problem { retry_after_s: Some(1), ..problem });
        }
        if table.values().sum::<usize>() >= LIVE_STREAMS_MAX {
            return Err(Problem::new(ProblemKind::Busy, "too many clients are watching; try again later"));
        }
        *table.entry(client).or_default() += 1;
        Ok(StreamPlace { client, streams: self.clone() })
    }

    fn table(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().expect("no code panics while holding the lock")
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut table = self.streams.table();
        if let Some(streams) = table.get_mut(&self.client) {
            *streams -= 1;
            if *streams == 0 {
                table.remove(&self.client);
            }
        }
    }
}

/// The present state of what is watched.
#[derive(Debug)]
pub(super) struct LiveEvent {
    pub name: &'static str,
    /// One line of JSON.
    pub data: String,
    /// As `data`, without the fields that change with time alone.
    pub content: String,
}

impl LiveEvent {
    /// Names the content, also after a restart: what a client that reconnects has seen last.
    pub fn id(&self) -> String {
        let mut hasher = FxHasher::default();
        hasher.write(self.content.as_bytes());
        format!("{:016x}", hasher.finish())
    }
}

/// What is watched at present. All streams of one subject share a feed, so that an event is made once.
#[derive(Debug, Default)]
pub(super) struct LiveFeeds(Mutex<HashMap<String, Feed>>);

type Feed = watch::Sender<Arc<LiveEvent>>;

impl LiveFeeds {
    /// Subscribes to a subject, whose present state is `now`. If nobody watches it yet, `begin` must see to its updates.
    pub fn subscribe(&self, subject: &str, now: LiveEvent, begin: impl FnOnce()) -> watch::Receiver<Arc<LiveEvent>> {
        let mut table = self.table();
        if let Some(feed) = table.get(subject) {
            replace(feed, now);
            return feed.subscribe();
        }
        let (feed, receiver) = watch::channel(Arc::new(now));
        table.insert(subject.to_owned(), feed);
        begin();
        receiver
    }

    /// Whether somebody watches a subject. If nobody does, its feed has ended.
    pub fn is_watched(&self, subject: &str) -> bool {
        let mut table = self.table();
        let is_watched = table.get(subject).is_some_and(|feed| feed.receiver_count() > 0);
        if !is_watched {
            table.remove(subject);
        }
        is_watched
    }

    /// The present state of a subject; streams get it if it has changed.
    pub fn update(&self, subject: &str, event: LiveEvent) {
        if let Some(feed) = self.table().get(subject) {
            replace(feed, event);
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<String, Feed>> {
        self.0.lock().expect("no code panics while holding the lock")
    }
}

/// Replaces an event by one with another content.
fn replace(feed: &Feed, event: LiveEvent) {
    let is_new = feed.borrow().content != event.content;
    if is_new {
        feed.send_replace(Arc::new(event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(opened: &Result<StreamPlace, Problem>) -> Option<ProblemKind> {
        opened.as_ref().err().map(|problem| problem.kind)
    }

    #[test]
    fn one_client_cannot_take_all_streams() {
        let streams = Arc::new(LiveStreams::default());
        let client = |n: u32| IpAddr::from(n.to_be_bytes());
        let clients = (LIVE_STREAMS_MAX / LIVE_STREAMS_PER_CLIENT_MAX) as u32;
        let mut places = Vec::new();
        for n in 0..clients {
            places.extend((0..LIVE_STREAMS_PER_CLIENT_MAX).map(|_| streams.open(client(n)).expect("a place")));
            assert_eq!(kind(&streams.open(client(n))), Some(ProblemKind::TooManyRequests));
        }
        assert_eq!(kind(&streams.open(client(clients))), Some(ProblemKind::Busy));
        places.pop();
        assert_eq!(kind(&streams.open(client(clients))), None);
        drop(places);
        assert!(streams.table().is_empty());
    }

    fn event(content: &str) -> LiveEvent {
        LiveEvent { name: "overview", data: format!("{content} at some time"), content: content.to_owned() }
    }

    #[test]
    fn streams_of_one_subject_share_a_feed_until_the_last_ends() {
        let feeds = LiveFeeds::default();
        let mut begun = 0;
        let mut first = feeds.subscribe("site", event("a"), || begun += 1);
        let second = feeds.subscribe("site", event("b"), || begun += 1);
        assert_eq!((begun, &second.borrow().content[..], &first.borrow().content[..]), (1, "b", "b"));
        first.mark_unchanged();
        feeds.update("site", event("b"));
        assert!(!first.has_changed().unwrap());
        feeds.update("site", event("c"));
        assert!(first.has_changed().unwrap());
        drop(first);
        assert!(feeds.is_watched("site"));
        drop(second);
        assert!(!feeds.is_watched("site") && feeds.table().is_empty());
        let _third = feeds.subscribe("site", event("d"), || begun += 1);
        assert_eq!(begun, 2);
    }
}
