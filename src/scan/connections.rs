//! TCP connections: one for a scan, none of which blocks the scan thread.

use std::collections::hash_map::Entry;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::poll::PollFlags;
use rustc_hash::FxHashMap;
use socket2::{Domain, Protocol, Socket, Type};

use super::core::ScanToken;

/// Most bytes read from a connection before the others get their turn.
const READ_BYTES_MAX: usize = 64 * 1_024;

/// All open connections.
#[derive(Debug)]
pub(super) struct Connections {
    of_scans: FxHashMap<ScanToken, Connection>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    is_open: bool,
    /// What is not written yet.
    unsent: Vec<u8>,
}

/// What has happened to a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ConnectionEvent<'a> {
    Nothing,
    Opened,
    Received(&'a [u8]),
    /// It is closed now.
    Ended {
        is_refused: bool,
    },
}

enum Progress {
    None,
    Opened,
    Received(usize),
    Ended,
}

impl Default for Connections {
    fn default() -> Self {
        Connections { of_scans: FxHashMap::default(), buffer: vec![0; READ_BYTES_MAX] }
    }
}

impl Connections {
    /// Writes to the connection of a scan. If there is none, it is opened. Error: the system did not open it; there
    /// is none.
    pub fn write(&mut self, token: ScanToken, to: SocketAddr, bytes: &[u8]) -> io::Result<()> {
        let connection = match self.of_scans.entry(token) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let stream = connect(to)?;
                entry.insert(Connection { stream, is_open: false, unsent: Vec::new() })
            }
        };
        connection.unsent.extend_from_slice(bytes);
        if connection.is_open {
            // An error is noticed again by the next read.
            let _ = connection.flush();
        }
        Ok(())
    }

    /// Closes the connection of a scan, if it has one.
    pub fn close(&mut self, token: ScanToken) {
        self.of_scans.remove(&token);
    }

    /// Each connection with what it waits for.
    pub fn waiting(&self) -> Vec<(ScanToken, BorrowedFd<'_>, PollFlags)> {
        let all = self.of_scans.iter().map(|(&token, connection)| {
            let has_unsent = !connection.is_open || !connection.unsent.is_empty();
            let events = if has_unsent { PollFlags::POLLIN | PollFlags::POLLOUT } else { PollFlags::POLLIN };
            (token, connection.stream.as_fd(), events)
        });
        all.collect()
    }

    /// Continues a connection that is ready. `None`: the scan has none any more.
    pub fn advance(&mut self, token: ScanToken) -> Option<ConnectionEvent<'_>> {
        let connection = self.of_scans.get_mut(&token)?;
        let result = match connection.is_open {
            true => connection.receive(&mut self.buffer),
            false => connection.finish_opening(),
        };
        Some(match result {
            Ok(Progress::None) => ConnectionEvent::Nothing,
            Ok(Progress::Opened) => ConnectionEvent::Opened,
            Ok(Progress::Received(count)) => ConnectionEvent::Received(&self.buffer[..count]),
            ended => {
                self.of_scans.remove(&token);
                let is_refused = ended.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
                ConnectionEvent::Ended { is_refused }
            }
        })
    }
}

impl Connection {
    /// Error: the connection could not be opened.
    fn finish_opening(&mut self) -> io::Result<Progress> {
        if let Some(error) = self.stream.take_error()? {
            return Err(error);
        }
        match self.stream.peer_addr() {
            Ok(_) => {
                self.is_open = true;
                let _ = self.flush();
                Ok(Progress::Opened)
            }
            Err(error) if error.kind() == ErrorKind::NotConnected => Ok(Progress::None),
            Err(error) => Err(error),
        }
    }

    /// Writes what is left, and reads once.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Progress> {
        // The server may have answered before it closed its side.
        let _ = self.flush();
        match self.stream.read(buffer) {
            Ok(0) => Ok(Progress::Ended),
            Ok(count) => Ok(Progress::Received(count)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(Progress::None),
            Err(error) => Err(error),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(count) => _ = self.unsent.drain(..count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => {
                    self.unsent.clear();
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

/// Begins to open a connection.
fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM.nonblocking().cloexec(), Some(Protocol::TCP))?;
    match socket.connect(&to.into()) {
        Err(error) if error.raw_os_error() != Some(Errno::EINPROGRESS as i32) => Err(error),
        _ => Ok(socket.into()),
    }
}
