//! The commands' end of the control socket: an HTTP client, blocking, one request at a time.

#![cfg_attr(not(test), expect(clippy::disallowed_methods, reason = "how long the daemon is silent"))]

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::HOST;
use hyper::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::stat::Mode;
use nix::unistd::Group;
use serde::Deserialize;
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::api::{AnswerLine, ApiError, ErrorCode, Line, LineOf, Progress, Request, encode};

/// Longest time without anything from the daemon, when connecting or during a request.
/// After it the daemon counts as stopped.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// After this part of the longest silence the daemon is asked whether it lives: a request may take minutes. The rest is
/// for its answer.
const PROBE_AFTER_PART: u32 = 6;

/// How long the cause of a broken connection may take to be known.
const CAUSE_WAIT: Duration = Duration::from_millis(200);

/// Longest line of an answer, bytes. The daemon is trusted more than its clients; the
/// limit only keeps a wrong socket from filling memory.
const LINE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// A connection to the daemon.
pub struct Client {
    path: PathBuf,
    runtime: Runtime,
    requests: SendRequest<String>,
    connection: JoinHandle<hyper::Result<()>>,
    silence_max: Duration,
    /// The daemon.
    pid: Option<i32>,
}

/// What precedes the end of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerItem<L> {
    Line(L),
    Progress(Progress),
}

impl<L> AnswerItem<L> {
    /// `None`: it is no part of the result.
    pub fn line(self) -> Option<L> {
        match self {
            AnswerItem::Line(line) => Some(line),
            AnswerItem::Progress(_) => None,
        }
    }
}

/// Why a request got no complete answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The socket does not exist, or no process listens on it.
    #[error("the daemon is not running (no process listens on {})", .0.display())]
    NotRunning(PathBuf),
    #[error(
        "no permission for {}; run it with sudo{}",
        path.display(),
        group.as_ref().map_or_else(String::new, |group| format!(", or join the group {group}: sudo adduser $USER {group}"))
    )]
    PermissionDenied {
        path: PathBuf,
        /// Whose members may connect; `None`: unknown.
        group: Option<String>,
    },
    /// A process listens but sends nothing.
    #[error(
        "the daemon does not respond: nothing received on {} for {} s{}. It is stopped, overloaded or out of file \
         descriptors. Check `systemctl status clqd` and its log, `journalctl -u clqd`; continue a stopped process with \
         `kill -CONT`, or restart it with `systemctl restart clqd`",
        path.display(), waited.as_secs(), pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
    )]
    TimedOut { path: PathBuf, waited: Duration, pid: Option<i32> },
    #[error("the connection to {} broke", path.display())]
    ConnectionLost { path: PathBuf, source: io::Error },
    #[error("the daemon closed the connection before the end of its answer; check whether it stopped")]
    Closed,
    #[error("the process on {} does not speak clqd's protocol: {what}", path.display())]
    ProtocolError { path: PathBuf, what: String },
    #[error(transparent)]
    Failure(#[from] ApiError),
    /// Writing the lines failed.
    #[error("cannot write the answer")]
    Output(#[source] io::Error),
}

impl Client {
    /// Connects with the default timeout, [`RESPONSE_TIMEOUT`].
    pub fn connect(path: &Path) -> Result<Client, ClientError> {
        Client::connect_with_timeout(path, RESPONSE_TIMEOUT)
    }

    /// Connects. Fails if the daemon sends nothing for `silence_max`, while connecting or
    /// during a request.
    pub fn connect_with_timeout(path: &Path, silence_max: Duration) -> Result<Client, ClientError> {
        let stream = connect(path, silence_max).map_err(|source| match source.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => ClientError::NotRunning(path.to_owned()),
            ErrorKind::PermissionDenied => {
                ClientError::PermissionDenied { path: path.to_owned(), group: group_of(path) }
            }
            ErrorKind::WouldBlock => ClientError::TimedOut { path: path.to_owned(), waited: silence_max, pid: None },
            _ => ClientError::ConnectionLost { path: path.to_owned(), source },
        })?;
        let lost = |source| ClientError::ConnectionLost { path: path.to_owned(), source };
        let pid = getsockopt(&stream.as_fd(), PeerCredentials).ok().map(|peer| peer.pid()).filter(|&pid| pid > 0);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(lost)?;
        let opened = runtime.block_on(async {
            let stream = UnixStream::from_std(stream).map_err(lost)?;
            let (requests, connection) = handshake(TokioIo::new(stream)).await.map_err(|_| ClientError::Closed)?;
            Ok::<_, ClientError>((requests, tokio::spawn(connection)))
        })?;
        let (requests, connection) = opened;
        Ok(Client { path: path.to_owned(), runtime, requests, connection, silence_max, pid })
    }

    /// Sends a request and passes each line of its answer to the callback. Returns the notes.
    pub fn send<R: Request>(
        &mut self,
        request: &R,
        mut each: impl FnMut(LineOf<R>) -> io::Result<()>,
    ) -> Result<Vec<String>, ClientError> {
        self.send_with_progress(request, |item| item.line().map_or(Ok(()), &mut each))
    }

    /// As [`Client::send`], but also passes lines of progress.
    pub fn send_with_progress<R: Request>(
        &mut self,
        request: &R,
        mut each: impl FnMut(AnswerItem<LineOf<R>>) -> io::Result<()>,
    ) -> Result<Vec<String>, ClientError> {
        self.post(encode(request), &mut |line| {
            let item = match line {
                Received::Progress(progress) => AnswerItem::Progress(progress),
                Received::Line(line) => AnswerItem::Line(LineOf::<R>::parse(line).map_err(LineError::Unknown)?),
            };
            each(item).map_err(LineError::Output)
        })
    }

    /// All lines of an answer.
    pub fn lines<R: Request>(&mut self, request: &R) -> Result<Vec<LineOf<R>>, ClientError> {
        let mut lines = Vec::new();
        self.send(request, |line| {
            lines.push(line);
            Ok(())
        })?;
        Ok(lines)
    }

    fn post(&mut self, (uri, body): (String, String), each: LineHandler<'_>) -> Result<Vec<String>, ClientError> {
        let request = hyper::Request::builder().method(Method::POST).uri(uri).header(HOST, "clqd");
        let request = request.body(body).expect("a path and a body");
        let Client { path, runtime, requests, connection, silence_max, pid } = self;
        let link = Link { path, silence_max: *silence_max, pid: *pid };
        runtime.block_on(async {
            match link.send(requests, request, each).await {
                // The connection knows more than its user.
                Err(ClientError::Closed) => match timeout(CAUSE_WAIT, connection).await {
                    Ok(Ok(Err(cause))) => Err(link.error(cause)),
                    _ => Err(ClientError::Closed),
                },
                sent => sent,
            }
        })
    }
}

/// A line of any answer.
enum Received<'a> {
    Line(&'a [u8]),
    Progress(Progress),
}

/// Why a line could not be handled.
enum LineError {
    Unknown(serde_json::Error),
    Output(io::Error),
}

type LineHandler<'a> = &'a mut dyn FnMut(Received<'_>) -> Result<(), LineError>;

/// Connects, which waits while the queue of the listener is full.
fn connect(path: &Path, silence_max: Duration) -> io::Result<std::os::unix::net::UnixStream> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_write_timeout(Some(silence_max))?;
    socket.connect(&SockAddr::unix(path)?)?;
    socket.set_nonblocking(true)?;
    Ok(OwnedFd::from(socket).into())
}

/// The group, other than root, whose members may use the socket. If only they see it, its directory has the same group.
fn group_of(path: &Path) -> Option<String> {
    let of_dir = || Some((path.parent()?.metadata().ok()?, Mode::S_IXGRP));
    let (metadata, needed) = path.metadata().ok().map(|metadata| (metadata, Mode::S_IWGRP)).or_else(of_dir)?;
    if metadata.gid() == 0 || metadata.mode() & needed.bits() == 0 {
        return None;
    }
    Some(Group::from_gid(metadata.gid().into()).ok()??.name)
}

/// `None`: the end of the answer.
async fn next_chunk(mut body: Pin<&mut Incoming>) -> Option<hyper::Result<Bytes>> {
    loop {
        match poll_fn(|context| body.as_mut().poll_frame(context)).await?.map(|frame| frame.into_data()) {
            Ok(Ok(bytes)) => return Some(Ok(bytes)),
            // Trailers.
            Ok(Err(_)) => {}
            Err(error) => return Some(Err(error)),
        }
    }
}

/// For waits and errors.
struct Link<'a> {
    path: &'a Path,
    silence_max: Duration,
    pid: Option<i32>,
}

impl Link<'_> {
    async fn send(
        &self,
        requests: &mut SendRequest<String>,
        request: hyper::Request<String>,
        each: LineHandler<'_>,
    ) -> Result<Vec<String>, ClientError> {
        // The daemon closes connections that are idle for long.
        requests.ready().await.map_err(|error| self.error(error))?;
        let answer = self.heard(requests.send_request(request)).await?.map_err(|error| self.error(error))?;
        let status = answer.status();
        let (mut body, mut lines) = (pin!(answer.into_body()), Vec::new());
        while let Some(chunk) = self.heard(next_chunk(body.as_mut())).await? {
            let chunk = chunk.map_err(|error| self.error(error))?;
            // Only what is new is searched.
            let (mut begin, mut searched) = (0, lines.len());
            lines.extend_from_slice(&chunk);
            while status == StatusCode::OK
                && let Some(end) = memchr::memchr(b'\n', &lines[searched..])
            {
                if let Some(notes) = self.line(&lines[begin..searched + end], each)? {
                    return Ok(notes);
                }
                (begin, searched) = (searched + end + 1, searched + end + 1);
            }
            lines.drain(..begin);
            if lines.len() > LINE_BYTES_MAX {
                return Err(self.protocol_error("a line is too long"));
            }
        }
        match status {
            StatusCode::OK if lines.is_empty() => Ok(Vec::new()),
            StatusCode::OK => Err(ClientError::Closed),
            status => Err(self.failure(status, &lines)),
        }
    }

    /// Waits for the daemon, as long as it lives.
    async fn heard<T>(&self, future: impl Future<Output = T>) -> Result<T, ClientError> {
        let mut future = pin!(future);
        let mut silent_since = Instant::now();
        loop {
            let rest = self.silence_max.saturating_sub(silent_since.elapsed());
            if let Ok(heard) = timeout(rest.min(self.silence_max / PROBE_AFTER_PART), &mut future).await {
                return Ok(heard);
            }
            let rest = self.silence_max.saturating_sub(silent_since.elapsed());
            if matches!(timeout(rest.max(Duration::from_millis(1)), self.probe()).await, Ok(Ok(()))) {
                silent_since = Instant::now();
            } else if silent_since.elapsed() >= self.silence_max {
                let (path, waited) = (self.path.to_owned(), self.silence_max);
                return Err(ClientError::TimedOut { path, waited, pid: self.pid });
            }
        }
    }

    /// Whether the daemon answers at all.
    async fn probe(&self) -> io::Result<()> {
        let mut stream = UnixStream::connect(self.path).await?;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: clqd\r\nconnection: close\r\n\r\n").await?;
        stream.read_u8().await.map(drop)
    }

    /// A line of an answer. Returns the notes if it is the last one.
    fn line(&self, line: &[u8], each: LineHandler<'_>) -> Result<Option<Vec<String>>, ClientError> {
        let unknown = |error: serde_json::Error| self.protocol_error(error.to_string());
        let item = match AnswerLine::find(line) {
            None => Received::Line(line),
            Some(parsed) => match parsed.map_err(unknown)? {
                AnswerLine::Progress(progress) => Received::Progress(progress),
                AnswerLine::Notes(notes) => return Ok(Some(notes.notes)),
                AnswerLine::Error(error) => return Err(error.into()),
            },
        };
        each(item).map(|()| None).map_err(|error| match error {
            LineError::Unknown(error) => unknown(error),
            LineError::Output(error) => ClientError::Output(error),
        })
    }

    /// The error of an answer with a status.
    fn failure(&self, status: StatusCode, body: &[u8]) -> ClientError {
        #[derive(Deserialize)]
        struct Problem {
            r#type: String,
            detail: String,
        }
        match serde_json::from_slice(body) {
            Ok(Problem { r#type, detail }) => {
                let name = r#type.strip_prefix("/problems/").unwrap_or_default();
                let code = serde_json::from_value(name.into()).unwrap_or(ErrorCode::Other);
                ClientError::Failure(ApiError::new(code, detail))
            }
            Err(_) => self.protocol_error(format!("it answers with status {status}")),
        }
    }

    fn protocol_error(&self, what: impl Into<String>) -> ClientError {
        ClientError::ProtocolError { path: self.path.to_owned(), what: what.into() }
    }

    /// Why there is no answer, or not all of it.
    fn error(&self, error: hyper::Error) -> ClientError {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(error) = cause {
            match error.downcast_ref::<io::Error>() {
                // The answer has begun, and has no end.
                Some(source) if source.kind() == ErrorKind::UnexpectedEof => return ClientError::Closed,
                Some(source) => {
                    let source = io::Error::new(source.kind(), source.to_string());
                    return ClientError::ConnectionLost { path: self.path.to_owned(), source };
                }
                None => cause = error.source(),
            }
        }
        if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
            return ClientError::Closed;
        }
        // Bytes that are no answer, or come without a request.
        self.protocol_error(error.to_string())
    }
}

#[cfg(test)]
mod tests;
