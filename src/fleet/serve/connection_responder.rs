//! The thread of one protocol over TCP: accepts connections, receives requests, sends replies.

#![cfg_attr(not(test), expect(clippy::disallowed_methods, reason = "the time of the simulated world"))]
#![cfg_attr(not(test), expect(clippy::disallowed_types, reason = "the sockets of simulated servers"))]

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::POLL_TIMEOUT;
use super::responder::{MISSING_PLAYERS, add, increment};
use super::shared::Shared;
use crate::fleet::address;
use crate::fleet::faults::{Fault, apply_fault, loses_datagram};
use crate::fleet::protocol::Protocol;
use crate::fleet::reply::{self, Listing, Peers};
use crate::fleet::rng::{RngExt, SplitMix64, hash_parts};
use crate::fleet::wire::Datagrams;

/// Longest request, bytes.
const REQUEST_BYTES_MAX: usize = 4_096;

/// One protocol's listener and the state of its thread.
pub(super) struct ConnectionResponder {
    protocol: Protocol,
    port: u16,
    listener: TcpListener,
    shared: Arc<Shared>,
    rng: SplitMix64,
    connections: Vec<Connection>,
}

struct Connection {
    stream: TcpStream,
    server: u32,
    client: u64,
    request: Vec<u8>,
    /// Bytes to be sent, each from a time on.
    replies: VecDeque<(Instant, Vec<u8>)>,
}

impl ConnectionResponder {
    /// The listener must not block.
    pub(super) fn new(protocol: Protocol, listener: TcpListener, port: u16, shared: Arc<Shared>) -> Self {
        let rng = SplitMix64::from_parts(&[shared.seed, 0x1A4E, u64::from(port)]);
        ConnectionResponder { protocol, port, listener, shared, rng, connections: Vec::new() }
    }

    pub(super) fn run(mut self) {
        while !self.shared.stopping.load(Ordering::Relaxed) {
            self.wait();
            self.accept();
            let mut connections = std::mem::take(&mut self.connections);
            connections.retain_mut(|connection| self.serve(connection));
            self.connections = connections;
        }
    }

    fn wait(&self) {
        let mut fds = vec![PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
        fds.extend(self.connections.iter().map(|connection| PollFd::new(connection.stream.as_fd(), PollFlags::POLLIN)));
        let _ = poll(&mut fds, PollTimeout::try_from(POLL_TIMEOUT).unwrap_or(PollTimeout::ZERO));
    }

    fn accept(&mut self) {
        while let Ok((stream, client)) = self.listener.accept() {
            let server = match stream.local_addr().map(|address| address.ip()) {
                Ok(IpAddr::V4(ip)) => address::server_at(ip).filter(|&server| server < self.shared.servers),
                _ => None,
            };
            match server {
                Some(server) if stream.set_nonblocking(true).is_ok() => {
                    let client = hash_parts(&[u64::from(client.port())]);
                    let (request, replies) = (Vec::new(), VecDeque::new());
                    self.connections.push(Connection { stream, server, client, request, replies });
                }
                _ => increment(&self.shared.counters.rejected),
            }
        }
    }

    /// Reads and writes what is possible. Returns whether the connection remains.
    fn serve(&mut self, connection: &mut Connection) -> bool {
        let mut buffer = [0; REQUEST_BYTES_MAX];
        match connection.stream.read(&mut buffer) {
            Ok(0) => return false,
            Ok(count) => {
                connection.request.extend_from_slice(&buffer[..count]);
                if !self.answer(connection) {
                    return false;
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return false,
        }
        while let Some((due, bytes)) = connection.replies.front_mut() {
            if *due > Instant::now() {
                break;
            }
            match connection.stream.write(bytes) {
                Ok(count) if count == bytes.len() => {
                    connection.replies.pop_front();
                    increment(&self.shared.counters.datagrams_sent);
                }
                Ok(count) => drop(bytes.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return false,
            }
        }
        true
    }

    /// Answers a request that is complete. Returns whether the connection remains.
    fn answer(&mut self, connection: &mut Connection) -> bool {
        let shared = Arc::clone(&self.shared);
        let server = connection.server;
        let fault = shared.settings.faults.fault(shared.seed, server);
        if fault == Some(Fault::Silent) {
            return true;
        }
        let mut world = shared.lock();
        if world.protocol(server) != self.protocol {
            increment(&shared.counters.rejected);
            return false;
        }
        world.advance(server, shared.now_ms());
        let is_partial = fault == Some(Fault::Partial) && self.rng.bool(0.5);
        let listing = Listing::Missing(if is_partial { MISSING_PLAYERS } else { 0 });
        let peers = Peers { server, port: self.port, client: connection.client };
        let mut reply = Datagrams::default();
        if reply::reply(&mut world, peers, &connection.request, listing, &mut self.rng, &mut reply).is_none() {
            // It may arrive in pieces.
            let is_too_long = connection.request.len() > REQUEST_BYTES_MAX;
            add(&shared.counters.rejected, is_too_long.into());
            return !is_too_long;
        }
        drop(world);
        increment(&shared.counters.queries);
        connection.request.clear();
        if fault == Some(Fault::Lossy) && loses_datagram(&mut self.rng) {
            return false;
        }
        increment(&shared.counters.replies);
        let now = Instant::now();
        // Nothing of a connection is doubled, and no other machine can write to it.
        match fault.filter(|fault| matches!(fault, Fault::Slow | Fault::Malformed)) {
            None => connection.replies.extend(reply.iter().map(|bytes| (now, bytes.to_vec()))),
            Some(fault) => {
                let outgoing = apply_fault(fault, self.protocol, server, &reply, None, &mut self.rng);
                let delayed = |delay_ms| now + Duration::from_millis(delay_ms);
                connection.replies.extend(outgoing.into_iter().map(|part| (delayed(part.delay_ms), part.bytes)));
            }
        }
        true
    }
}
