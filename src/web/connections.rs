//! The open connections of a port or a socket. If there are too many, the idle connection that has
//! been idle longest is closed first. So clients that only hold connections cannot lock out
//! others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio_util::sync::CancellationToken;

use prometheus_client::metrics::counter::Counter;

use super::limits::{CONNECTIONS_OF_OWNERS, CONNECTIONS_PER_CLIENT_MAX};

/// Whose connections are limited together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    Address(IpAddr),
    /// Many clients: limited only in total.
    Proxy,
    User(u32),
    /// Root and the user of the daemon: others cannot take all connections from them.
    Owner,
}

/// Counters of connections since the daemon started.
#[derive(Clone, Debug, Default)]
pub struct ConnectionCounters {
    pub idle_closed: Counter,
    pub refused: Counter,
}

/// [`OpenConnection::idle_since`] while a request is answered.
const BUSY: u64 = u64::MAX;

/// All open connections.
#[derive(Debug)]
pub(super) struct Connections {
    table: Mutex<Table>,
    max: usize,
    /// Counts changes from busy to idle, so that these have an order.
    turns: AtomicU64,
    counters: ConnectionCounters,
}

#[derive(Debug, Default)]
struct Table {
    by_id: HashMap<u64, Arc<OpenConnection>>,
    by_holder: HashMap<Holder, usize>,
    next_id: u64,
}

#[derive(Debug)]
struct OpenConnection {
    holder: Holder,
    /// The turn at which the last answer ended, or [`BUSY`].
    idle_since: AtomicU64,
    close: CancellationToken,
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    id: u64,
    connection: Arc<OpenConnection>,
    connections: Arc<Connections>,
}

/// A request of a connection that is being answered, until it is dropped.
#[derive(Debug)]
pub(super) struct Busy {
    connection: Arc<OpenConnection>,
    connections: Arc<Connections>,
}

/// The body of an answer: its connection is busy until it is sent.
pub(super) struct BusyBody {
    body: Body,
    _busy: Busy,
}

impl Connections {
    pub fn new(max: usize, counters: ConnectionCounters) -> Connections {
        Connections { table: Mutex::default(), max, turns: AtomicU64::new(0), counters }
    }

    /// A place for a connection. If there are too many connections, of this holder or in total, the one that is idle
    /// longest is closed. Returns no place if none is idle.
    pub fn open(self: &Arc<Self>, holder: Holder) -> Option<Place> {
        let mut table = self.table();
        let of_holder = table.by_holder.get(&holder).copied().unwrap_or(0);
        let (of_holder_max, max) = match holder {
            Holder::Address(_) | Holder::User(_) => (CONNECTIONS_PER_CLIENT_MAX, self.max),
            Holder::Proxy => (usize::MAX, self.max),
            Holder::Owner => (usize::MAX, self.max + CONNECTIONS_OF_OWNERS),
        };
        let has_place = match (of_holder >= of_holder_max, table.by_id.len() >= max) {
            (true, _) => table.close_idle(&self.counters, |connection| connection.holder == holder),
            (false, true) => table.close_idle(&self.counters, |_| true),
            (false, false) => Some(()),
        };
        if has_place.is_none() {
            self.counters.refused.inc();
            return None;
        }
        let connection = Arc::new(OpenConnection {
            holder,
            idle_since: AtomicU64::new(self.turns.fetch_add(1, Ordering::Relaxed)),
            close: CancellationToken::new(),
        });
        let id = table.next_id;
        table.next_id += 1;
        table.by_id.insert(id, connection.clone());
        *table.by_holder.entry(holder).or_default() += 1;
        Some(Place { id, connection, connections: self.clone() })
    }

    pub fn count(&self) -> usize {
        self.table().by_id.len()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("no code panics while holding the lock")
    }
}

impl Table {
    /// Closes the connection that is idle longest of those that match. It examines all connections,
    /// some hundred, but only while there are too many. `None`: none is idle.
    fn close_idle(&mut self, counters: &ConnectionCounters, matches: impl Fn(&OpenConnection) -> bool) -> Option<()> {
        let idle_since = |connection: &OpenConnection| connection.idle_since.load(Ordering::Relaxed);
        let matching = self.by_id.iter().filter(|(_, connection)| matches(connection));
        let idle = matching.map(|(id, connection)| (idle_since(connection), *id)).filter(|(since, _)| *since != BUSY);
        let (_, id) = idle.min()?;
        self.remove(id)?.close.cancel();
        counters.idle_closed.inc();
        Some(())
    }

    /// `None`: it was removed before.
    fn remove(&mut self, id: u64) -> Option<Arc<OpenConnection>> {
        let connection = self.by_id.remove(&id)?;
        if let Some(of_holder) = self.by_holder.get_mut(&connection.holder) {
            *of_holder -= 1;
            if *of_holder == 0 {
                self.by_holder.remove(&connection.holder);
            }
        }
        Some(connection)
    }
}

impl Place {
    /// The connection is busy until the result is dropped.
    pub fn begin_request(&self) -> Busy {
        self.connection.idle_since.store(BUSY, Ordering::Relaxed);
        Busy { connection: self.connection.clone(), connections: self.connections.clone() }
    }

    /// Cancelled when the connection is to be closed.
    pub fn close(&self) -> &CancellationToken {
        &self.connection.close
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.table().remove(self.id);
    }
}

impl Busy {
    /// The body of the answer to the request.
    pub fn until_sent(self, body: Body) -> BusyBody {
        BusyBody { body, _busy: self }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let turn = self.connections.turns.fetch_add(1, Ordering::Relaxed);
        self.connection.idle_since.store(turn, Ordering::Relaxed);
    }
}

impl HttpBody for BusyBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(n: u8) -> Holder {
        Holder::Address(IpAddr::from([192, 0, 2, n]))
    }

    fn connections(max: usize) -> Arc<Connections> {
        Arc::new(Connections::new(max, ConnectionCounters::default()))
    }

    fn is_closed(place: &Place) -> bool {
        place.connection.close.is_cancelled()
    }

    #[test]
    fn longest_idle_connection_makes_place() {
        let connections = connections(3);
        let open = |n| connections.open(client(n));
        let (first, second, third) = (open(1).unwrap(), open(2).unwrap(), connections.open(Holder::Proxy).unwrap());
        let busy = first.begin_request();
        drop(second.begin_request());
        let fourth = open(4).expect("the third is idle longest");
        assert_eq!([&first, &second, &third, &fourth].map(is_closed), [false, false, true, false]);
        drop(third);
        assert_eq!(connections.count(), 3);
        let all_busy = (second.begin_request(), fourth.begin_request());
        assert!(open(5).is_none(), "all are busy");
        drop((all_busy, busy));
        let fifth = open(5).expect("a place");
        assert_eq!([&first, &second, &fourth, &fifth].map(is_closed), [false, true, false, false]);
        assert_eq!(connections.counters.idle_closed.get(), 2);
        drop((first, second, fourth, fifth));
        let table = connections.table();
        assert!(table.by_id.is_empty() && table.by_holder.is_empty(), "{table:?}");
    }

    #[test]
    fn client_with_too_many_connections_loses_its_own() {
        let connections = connections(1_000);
        let other = connections.open(client(1)).unwrap();
        let places: Vec<Place> =
            (0..=CONNECTIONS_PER_CLIENT_MAX).map(|_| connections.open(client(2)).unwrap()).collect();
        assert_eq!(places.iter().position(is_closed), Some(0));
        assert_eq!(connections.count(), 1 + CONNECTIONS_PER_CLIENT_MAX);
        let requests: Vec<Busy> = places.iter().map(Place::begin_request).collect();
        assert!(connections.open(client(2)).is_none());
        drop(requests);
        assert!(!is_closed(&other));
    }

    #[test]
    fn busy_connections_of_others_leave_some_for_owners() {
        let connections = connections(2);
        let places = [1, 2].map(|user| connections.open(Holder::User(user)).unwrap());
        let busy = places.each_ref().map(Place::begin_request);
        assert!(connections.open(Holder::User(3)).is_none());
        let owners: Vec<Place> = (0..CONNECTIONS_OF_OWNERS).map(|_| connections.open(Holder::Owner).unwrap()).collect();
        let of_owners: Vec<Busy> = owners.iter().map(Place::begin_request).collect();
        assert!(connections.open(Holder::Owner).is_none(), "all are busy");
        assert_eq!(connections.counters.refused.get(), 2);
        drop((busy, of_owners));
        connections.open(Holder::User(3)).expect("the place of an idle connection");
    }
}
