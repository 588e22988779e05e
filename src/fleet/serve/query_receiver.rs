//! Receives the queries of one socket in batches, with the server that each was sent to.

use std::io::IoSliceMut;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrIn, recvmmsg};

use crate::fleet::address;

/// Most queries received with one system call, and answered under one lock of the world.
const BATCH_MAX: usize = 64;

/// Longest query, bytes: real ones have about 600 at most.
const QUERY_BYTES_MAX: usize = 2_048;

/// A query for a server of the plan.
pub(super) struct ReceivedQuery {
    pub(super) server: u32,
    pub(super) client: SocketAddrV4,
    /// Index of the buffer, and bytes in it.
    buffer: usize,
    length: usize,
}

/// The buffers of one socket, and the queries in them. Not `Send`: it remains in the thread
/// that created it.
pub(super) struct QueryReceiver {
    headers: MultiHeaders<SockaddrIn>,
    buffers: Vec<[u8; QUERY_BYTES_MAX]>,
    queries: Vec<ReceivedQuery>,
}

impl QueryReceiver {
    pub(super) fn new() -> QueryReceiver {
        QueryReceiver {
            headers: headers(),
            buffers: vec![[0; QUERY_BYTES_MAX]; BATCH_MAX],
            queries: Vec::with_capacity(BATCH_MAX),
        }
    }

    /// Replaces the queries: waits for the first until the socket's timeout, then takes those
    /// that have already arrived. Returns the number of datagrams that are for none of the
    /// first `servers` servers of the plan. Error: nothing was received.
    pub(super) fn receive(&mut self, socket: &UdpSocket, servers: u32) -> Result<u64, Errno> {
        self.queries.clear();
        let (mut rejected, mut without_destination) = (0, false);
        let mut slices: Vec<_> = self.buffers.iter_mut().map(|buffer| [IoSliceMut::new(buffer)]).collect();
        let flags = MsgFlags::MSG_WAITFORONE;
        let messages = recvmmsg(socket.as_raw_fd(), &mut self.headers, slices.iter_mut(), flags, None)?;
        for (buffer, message) in messages.enumerate() {
            let destination = message.cmsgs().ok().and_then(|mut cmsgs| {
                cmsgs.find_map(|cmsg| match cmsg {
                    ControlMessageOwned::Ipv4PacketInfo(info) => {
                        Some(Ipv4Addr::from_bits(u32::from_be(info.ipi_addr.s_addr)))
                    }
                    _ => None,
                })
            });
            without_destination |= destination.is_none();
            let server = destination.and_then(address::server_at).filter(|&server| server < servers);
            match server.zip(message.address) {
                Some((server, client)) => {
                    let client = SocketAddrV4::new(client.ip(), client.port());
                    self.queries.push(ReceivedQuery { server, client, buffer, length: message.bytes });
                }
                None => rejected += 1,
            }
        }
        if without_destination {
            // The headers keep the length of the control data that the kernel wrote; it must
            // not remain 0.
            self.headers = headers();
        }
        Ok(rejected)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }

    /// The queries of the last batch, with their bytes.
    pub(super) fn queries(&self) -> impl Iterator<Item = (&ReceivedQuery, &[u8])> {
        self.queries.iter().map(|query| (query, &self.buffers[query.buffer][..query.length]))
    }
}

fn headers() -> MultiHeaders<SockaddrIn> {
    MultiHeaders::preallocate(BATCH_MAX, Some(nix::cmsg_space!(libc::in_pktinfo)))
}
