//! The clients that watch changes (`/api/v1/live`), and how many streams each has.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};

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
}
