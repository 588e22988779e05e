//! The commands' end of the control socket: blocking, one request at a time.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::api::{ApiError, Progress, Request, Response, ResponseBody, ResponseEnd, Row, encode_request};

/// Longest time without any line from the daemon, when connecting or during a request.
/// After it the daemon counts as stopped. A working daemon sends progress every five
/// seconds.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest line of a response, bytes. The daemon is trusted more than its clients; the
/// limit only keeps a wrong socket from filling memory.
const RESPONSE_LINE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// A connection to the daemon.
#[derive(Debug)]
pub struct Client {
    path: PathBuf,
    stream: BufReader<UnixStream>,
    silence_max: Duration,
    next_id: u64,
}

/// What precedes the end of a response.
#[derive(Clone, Debug, PartialEq)]
pub enum ResponseItem {
    Row(Row),
    Progress(Progress),
}

/// Why a request got no complete response.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The socket does not exist, or no process listens on it.
    #[error("the daemon is not running (no process listens on {})", .0.display())]
    NotRunning(PathBuf),
    #[error("no permission for {}; be root or in the group of the socket", .0.display())]
    PermissionDenied(PathBuf),
    /// A process listens but sends nothing.
    #[error(
        "the daemon does not respond: nothing received on {} for {} s{}. It is stopped, overloaded or out of file \
         descriptors. Check `systemctl status clqd` and its log, `journalctl -u clqd`; continue a stopped process with \
         `kill -CONT`, or restart it with `systemctl restart clqd`",
        path.display(), waited.as_secs(), pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
    )]
    TimedOut { path: PathBuf, waited: Duration, pid: Option<i32> },
    #[error("the connection to {} broke", path.display())]
    ConnectionLost { path: PathBuf, source: std::io::Error },
    #[error("the daemon closed the connection before the end of its response; check whether it stopped")]
    Closed,
    #[error("the process on {} does not speak clqd's protocol: {what}", path.display())]
    ProtocolError { path: PathBuf, what: String },
    #[error(transparent)]
    Failure(#[from] ApiError),
    /// Writing the rows failed.
    #[error("cannot write the response")]
    Output(#[source] std::io::Error),
}

impl Client {
    /// Connects with the default timeout, [`RESPONSE_TIMEOUT`].
    pub fn connect(path: &Path) -> Result<Client, ClientError> {
        Client::connect_with_timeout(path, RESPONSE_TIMEOUT)
    }

    /// Connects. Fails if the daemon sends nothing for `silence_max`, while connecting or
    /// during a request.
    pub fn connect_with_timeout(path: &Path, silence_max: Duration) -> Result<Client, ClientError> {
        let connect = || {
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
            // For a Unix socket this also limits connecting, which waits while the
            // listener's queue is full.
            socket.set_write_timeout(Some(silence_max))?;
            socket.set_read_timeout(Some(silence_max))?;
            socket.connect(&SockAddr::unix(path)?)?;
            Ok(UnixStream::from(OwnedFd::from(socket)))
        };
        let stream = connect().map_err(|source: std::io::Error| match source.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => ClientError::NotRunning(path.to_owned()),
            ErrorKind::PermissionDenied => ClientError::PermissionDenied(path.to_owned()),
            ErrorKind::WouldBlock => ClientError::TimedOut { path: path.to_owned(), waited: silence_max, pid: None },
            _ => ClientError::ConnectionLost { path: path.to_owned(), source },
        })?;
        Ok(Client { path: path.to_owned(), stream: BufReader::new(stream), silence_max, next_id: 1 })
    }

    /// Sends a request and passes each row of its response to the callback.
    pub fn send(
        &mut self,
        request: &Request,
        each: &mut dyn FnMut(Row) -> std::io::Result<()>,
    ) -> Result<ResponseEnd, ClientError> {
        self.send_with_progress(request, &mut |reply| match reply {
            ResponseItem::Row(row) => each(row),
            ResponseItem::Progress(_) => Ok(()),
        })
    }

    /// As [`Client::send`], but also passes lines of progress.
    pub fn send_with_progress(
        &mut self,
        request: &Request,
        each: &mut dyn FnMut(ResponseItem) -> std::io::Result<()>,
    ) -> Result<ResponseEnd, ClientError> {
        let id = self.next_id;
        self.next_id += 1;
        // A daemon that refuses the connection responds and closes it before reading. Its
        // response is more specific than the write error.
        let sent = self.stream.get_mut().write_all(encode_request(id, request).as_bytes());
        if let Err(source) = &sent
            && source.kind() == ErrorKind::WouldBlock
        {
            return Err(self.timed_out());
        }
        loop {
            let answer = match (self.answer(), &sent) {
                (Err(ClientError::Closed | ClientError::ConnectionLost { .. }), Err(source)) => {
                    return Err(self.connection_lost(std::io::Error::new(source.kind(), source.to_string())));
                }
                (answer, _) => answer?,
            };
            if let Some(other) = answer.id.filter(|&got| got != id) {
                let what = format!("a response to request {other} instead of {id}");
                return Err(ClientError::ProtocolError { path: self.path.clone(), what });
            }
            match answer.body {
                ResponseBody::Progress(progress) => {
                    each(ResponseItem::Progress(progress)).map_err(ClientError::Output)?
                }
                ResponseBody::Row(row) => each(ResponseItem::Row(row)).map_err(ClientError::Output)?,
                ResponseBody::End(end) => return Ok(end),
                ResponseBody::Error(failure) => return Err(failure.into()),
            }
        }
    }

    fn answer(&mut self) -> Result<Response, ClientError> {
        let mut line = Vec::new();
        let read = (&mut self.stream).take(RESPONSE_LINE_BYTES_MAX).read_until(b'\n', &mut line);
        read.map_err(|source| match source.kind() {
            ErrorKind::WouldBlock => self.timed_out(),
            _ => self.connection_lost(source),
        })?;
        if line.last() != Some(&b'\n') {
            return Err(ClientError::Closed);
        }
        serde_json::from_slice(&line)
            .map_err(|error| ClientError::ProtocolError { path: self.path.clone(), what: error.to_string() })
    }

    fn timed_out(&self) -> ClientError {
        let peer = getsockopt(self.stream.get_ref(), PeerCredentials).ok();
        let pid = peer.map(|peer| peer.pid()).filter(|&pid| pid > 0);
        ClientError::TimedOut { path: self.path.clone(), waited: self.silence_max, pid }
    }

    fn connection_lost(&self, source: std::io::Error) -> ClientError {
        ClientError::ConnectionLost { path: self.path.clone(), source }
    }
}
