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

#[derive(Default)]
pub(super) struct Connections {
    open: FxHashSet<ScanToken>,
    /// Scans that wait for a connection, in the order of their turn. Some may have ended since.
    waiting: VecDeque<ScanToken>,
    commands: Vec<ConnectionCommand>,
}

impl Connections {
    /// Whether the scan has a connection now. Without one it waits: [`Connections::next_waiting`].
    pub(super) fn open(&mut self, token: ScanToken, most: u32) -> bool {
        if !self.open.contains(&token) {
            if self.open.len() >= most as usize {
                self.waiting.push_back(token);
                return false;
            }
            self.open.insert(token);
        }
        true
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

    /// The scan whose turn it is to get a connection.
    pub(super) fn next_waiting(&mut self) -> Option<ScanToken> {
        self.waiting.pop_front()
    }

    pub(super) fn has_commands(&self) -> bool {
        !self.commands.is_empty()
    }

    pub(super) fn take_commands(&mut self) -> Vec<ConnectionCommand> {
        std::mem::take(&mut self.commands)
    }
}
