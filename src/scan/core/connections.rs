//! Which scans have a TCP connection, and which wait for one: their number is limited.

use std::collections::VecDeque;
use std::net::SocketAddr;

use rustc_hash::FxHashSet;

use super::packets::ScanToken;

/// What the driver is to do.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::scan) enum ConnectionCommand {
    /// Write a request to the connection of a scan. It is opened if there is none.
    Write {
        token: ScanToken,
        to: SocketAddr,
        request: Vec<u8>,
    },
    Close(ScanToken),
}

/// Scans that wait, for each connection that may be open. A silent server takes a connection for several seconds; scans
/// without end would keep those over UDP out.
const WAITING_FOR_EACH: u32 = 8;

/// Whether a scan gets a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opened {
    Now,
    Later,
    /// Too many wait.
    Never,
}

#[derive(Default)]
pub(super) struct Connections {
    open: FxHashSet<ScanToken>,
    /// Scans that wait for a connection, in the order of their turn. Some may have ended since.
    waiting: VecDeque<ScanToken>,
    commands: Vec<ConnectionCommand>,
}

impl Connections {
    /// Gives the scan a connection if it has none and there are fewer than `most`. Otherwise it waits:
    /// [`Connections::next_waiting`].
    pub(super) fn open(&mut self, token: ScanToken, most: u32) -> Opened {
        if self.open.contains(&token) || self.open.len() < most as usize {
            self.open.insert(token);
            return Opened::Now;
        }
        if self.waiting.len() >= (WAITING_FOR_EACH * most) as usize {
            return Opened::Never;
        }
        self.waiting.push_back(token);
        Opened::Later
    }

    pub(super) fn has(&self, token: ScanToken) -> bool {
        self.open.contains(&token)
    }

    pub(super) fn write(&mut self, token: ScanToken, to: SocketAddr, request: Vec<u8>) {
        self.commands.push(ConnectionCommand::Write { token, to, request });
    }

    /// Closes the connection of a scan. Returns whether it had one.
    pub(super) fn close(&mut self, token: ScanToken) -> bool {
        let is_open = self.record_end(token);
        if is_open {
            self.commands.push(ConnectionCommand::Close(token));
        }
        is_open
    }

    /// The connection of a scan has ended. Returns whether it had one.
    pub(super) fn record_end(&mut self, token: ScanToken) -> bool {
        self.open.remove(&token)
    }

    /// The scan whose turn it is to get a connection, if there are fewer than `most`.
    pub(super) fn next_waiting(&mut self, most: u32) -> Option<ScanToken> {
        if self.open.len() < most as usize { self.waiting.pop_front() } else { None }
    }

    pub(super) fn has_commands(&self) -> bool {
        !self.commands.is_empty()
    }

    pub(super) fn take_commands(&mut self) -> Vec<ConnectionCommand> {
        std::mem::take(&mut self.commands)
    }
}
