//! The daemon's end of the control socket: connections, lines, responses. The
//! [`RequestHandler`] executes the commands.

use std::future::Future;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{fs, io};

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::unistd::geteuid;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::api::json;
use crate::api::{
    ApiError, ErrorCode, PROTOCOL_VERSION, Progress, Request, Response, ResponseBody, ResponseEnd, Row, decode_request,
};
use crate::control::connection_slots::{ConnectionSlot, ConnectionSlots, Holder};
use crate::limits::CONTROL_LINE_BYTES_MAX;

/// Most connections at once, besides one that is reserved for root and the user of the daemon. A
/// further one replaces the connection that has been idle longest; if all are busy it is refused.
const CONNECTIONS_MAX: usize = 64;

/// Longest idle time of a connection between two requests, and longest time for one line.
/// A connection holds one of `CONNECTIONS_MAX` slots.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// Interval of progress lines while a request is running. Well below
/// [`super::client::RESPONSE_TIMEOUT`], so that a busy machine does not look like a
/// stopped daemon.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// How long a client may read nothing while a response is pending. Then its connection is
/// closed, and the handler gets [`Disconnected`].
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long running requests may still take when the daemon stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Executes requests for the control socket.
pub trait RequestHandler: Send + Sync + 'static {
    /// Responds with any number of rows through `replies`, then the end or an error.
    /// Sending a row waits for a slow client. After [`Disconnected`] the returned value
    /// is ignored.
    fn handle(
        &self,
        request: Request,
        replies: &mut ResponseWriter,
    ) -> impl Future<Output = Result<ResponseEnd, ApiError>> + Send;
}

/// The client disconnected, or has read nothing for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client has disconnected")]
pub struct Disconnected;

impl From<Disconnected> for ApiError {
    fn from(error: Disconnected) -> ApiError {
        ApiError::new(ErrorCode::Internal, error.to_string())
    }
}

/// Counters of the control socket since the daemon started.
#[derive(Debug, Default)]
pub struct ControlCounters {
    /// Idle connections closed to free a slot for a new one.
    pub idle_connections_closed: AtomicU64,
    /// Connections refused because all slots were busy.
    pub connections_refused: AtomicU64,
}

/// Sends the rows of one response.
#[derive(Debug)]
pub struct ResponseWriter {
    id: Option<u64>,
    out: Arc<Mutex<SharedWriter>>,
}

/// The writing half of a connection, shared by rows and progress lines.
#[derive(Debug)]
struct SharedWriter {
    half: OwnedWriteHalf,
    disconnected: bool,
    write_max: Duration,
}

impl ResponseWriter {
    /// Sends a row to the client.
    pub async fn row(&mut self, row: Row) -> Result<(), Disconnected> {
        self.send(ResponseBody::Row(row)).await
    }

    /// Sends a progress line with details of the response.
    pub async fn progress(&mut self, progress: Progress) -> Result<(), Disconnected> {
        self.send(ResponseBody::Progress(progress)).await
    }

    async fn send(&mut self, body: ResponseBody) -> Result<(), Disconnected> {
        let line = encode_response(self.id, body);
        self.out.lock().await.write(&line).await
    }
}

impl SharedWriter {
    async fn write(&mut self, line: &[u8]) -> Result<(), Disconnected> {
        if self.disconnected {
            return Err(Disconnected);
        }
        let mut rest = line;
        // The timeout applies to each write, so a long row to a slow reader is no error.
        while !rest.is_empty() {
            match timeout(self.write_max, self.half.write(rest)).await {
                Ok(Ok(n)) if n > 0 => rest = &rest[n..],
                _ => {
                    self.disconnected = true;
                    return Err(Disconnected);
                }
            }
        }
        Ok(())
    }
}

fn encode_response(id: Option<u64>, body: ResponseBody) -> Vec<u8> {
    let mut line = json::to_vec(&Response { v: PROTOCOL_VERSION, id, body });
    line.push(b'\n');
    line
}

/// Why the control socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error("another daemon is running on {}{}; stop it, or choose another path", path.display(), of_process(*pid))]
    AlreadyInUse { path: PathBuf, pid: Option<i32> },
    #[error("{} exists and is not a socket; it is not replaced", .0.display())]
    NotASocket(PathBuf),
    #[error("cannot {what} {}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
}

fn of_process(pid: Option<i32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
}

/// The process that listens on the other end.
fn listener_pid(stream: &std::os::unix::net::UnixStream) -> Option<i32> {
    getsockopt(stream, PeerCredentials).ok().map(|peer| peer.pid()).filter(|&pid| pid > 0)
}

/// The bound socket. Its file is deleted on drop.
#[derive(Debug)]
pub struct Listener {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of this listener's file; a file that replaced it is not deleted.
    file: (u64, u64),
    counts: Arc<ControlCounters>,
    idle_max: Duration,
    write_max: Duration,
    progress_every: Duration,
}

impl Listener {
    /// Binds the socket, mode 0660. If a socket file refuses connections, its daemon has stopped,
    /// and the file is deleted. Needs a tokio runtime.
    pub fn bind(path: &Path) -> Result<Listener, ControlError> {
        let error = |what| move |source| ControlError::Io { what, path: path.to_owned(), source };
        match fs::symlink_metadata(path) {
            Err(source) if source.kind() == io::ErrorKind::NotFound => (),
            Err(source) => return Err(error("inspect")(source)),
            Ok(found) if !found.file_type().is_socket() => return Err(ControlError::NotASocket(path.to_owned())),
            Ok(_) => match std::os::unix::net::UnixStream::connect(path) {
                Ok(stream) => {
                    return Err(ControlError::AlreadyInUse { path: path.to_owned(), pid: listener_pid(&stream) });
                }
                Err(source) if source.kind() == io::ErrorKind::ConnectionRefused => {
                    fs::remove_file(path).map_err(error("remove the stale socket"))?;
                }
                Err(source) => return Err(error("connect to")(source)),
            },
        }
        let listener = UnixListener::bind(path).map_err(error("bind"))?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o660)).map_err(error("set the mode of"))?;
        let file = fs::symlink_metadata(path).map_err(error("inspect"))?;
        let file = (file.dev(), file.ino());
        Ok(Listener {
            listener,
            path: path.to_owned(),
            file,
            counts: Arc::default(),
            idle_max: IDLE_TIMEOUT,
            write_max: WRITE_TIMEOUT,
            progress_every: PROGRESS_INTERVAL,
        })
    }

    /// Sets the counters to use from now on.
    pub fn set_counters(&mut self, counts: Arc<ControlCounters>) {
        self.counts = counts;
    }

    /// Serves connections until `stop` resolves, then gives running requests a moment to
    /// finish.
    pub async fn serve(self, handler: Arc<impl RequestHandler>, stop: impl Future<Output = ()> + Send) {
        let slots = ConnectionSlots::new(CONNECTIONS_MAX);
        let mut connections = JoinSet::new();
        let (stop_sender, stopping) = tokio::sync::watch::channel(false);
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                Some(_) = connections.join_next() => continue,
                accepted = self.listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Most likely out of file descriptors, which is temporary.
                    tracing::warn!(%error, "cannot accept a control connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let Some((slot, evicted)) = slots.acquire(peer(&stream)) else {
                self.counts.connections_refused.fetch_add(1, Ordering::Relaxed);
                let message = format!("{CONNECTIONS_MAX} connections are open and all are busy; try again");
                refuse(stream, ApiError::new(ErrorCode::Busy, message));
                continue;
            };
            if let Some(holder) = evicted {
                let closed = self.counts.idle_connections_closed.fetch_add(1, Ordering::Relaxed) + 1;
                // A client that connects in a loop must not fill the log.
                if closed.is_power_of_two() {
                    tracing::warn!(
                        holder = holder.name,
                        closed,
                        "all {CONNECTIONS_MAX} connection slots of the control socket are in use; closing the connection \
                         that has been idle longest"
                    );
                }
            }
            let connection = Connection::new(stream, slot, &self, stopping.clone());
            let handler = Arc::clone(&handler);
            connections.spawn(async move { connection.run(&*handler).await });
        }
        stop_sender.send_replace(true);
        // Closes the socket at once, because a connectable socket means that the daemon is not
        // stopping.
        drop(self);
        let all_ended = async { while connections.join_next().await.is_some() {} };
        if timeout(SHUTDOWN_TIMEOUT, all_ended).await.is_err() {
            tracing::warn!("control connections were closed before their requests finished, because the daemon stops");
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.file);
        if ours {
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Sends one short line that fits any socket buffer; does not wait for the write.
fn refuse(stream: UnixStream, failure: ApiError) {
    drop(stream.try_write(&encode_response(None, ResponseBody::Error(failure))));
}

/// The connected process, as far as the system reports it.
fn peer(stream: &UnixStream) -> Holder {
    match stream.peer_cred() {
        Ok(peer) => {
            let (user, pid) = (peer.uid(), peer.pid().map_or("?".to_owned(), |pid| pid.to_string()));
            let is_owner = user == 0 || user == geteuid().as_raw();
            Holder { name: format!("user {user}, process {pid}"), is_owner }
        }
        Err(_) => Holder { name: "unknown".to_owned(), is_owner: false },
    }
}

struct Connection {
    lines: BufReader<tokio::net::unix::OwnedReadHalf>,
    replies: ResponseWriter,
    slot: ConnectionSlot,
    stopping: tokio::sync::watch::Receiver<bool>,
    idle_max: Duration,
    progress_every: Duration,
}

impl Connection {
    fn new(
        stream: UnixStream,
        slot: ConnectionSlot,
        of: &Listener,
        stopping: tokio::sync::watch::Receiver<bool>,
    ) -> Connection {
        let (lines, half) = stream.into_split();
        let out = Arc::new(Mutex::new(SharedWriter { half, disconnected: false, write_max: of.write_max }));
        let (idle_max, progress_every) = (of.idle_max, of.progress_every);
        let replies = ResponseWriter { id: None, out };
        Connection { lines: BufReader::new(lines), replies, slot, stopping, idle_max, progress_every }
    }

    async fn run(mut self, handler: &impl RequestHandler) {
        let mut line = Vec::new();
        loop {
            let Some(read) = self.next_line(&mut line).await else { return };
            let request = match read {
                Line::Complete => decode_request(&line),
                Line::TooLong => {
                    let message = format!("the line has more than {CONTROL_LINE_BYTES_MAX} bytes");
                    Err((None, ApiError::new(ErrorCode::LineTooLong, message)))
                }
                Line::Eof => return,
            };
            let body = match request {
                Ok((id, request)) => {
                    self.replies.id = Some(id);
                    match self.answer(handler, request).await {
                        Ok(end) => ResponseBody::End(end),
                        Err(failure) => ResponseBody::Error(failure),
                    }
                }
                Err((id, failure)) => {
                    self.replies.id = id;
                    ResponseBody::Error(failure)
                }
            };
            if self.replies.send(body).await.is_err() {
                return;
            }
        }
    }

    /// Reads the next line that is not empty. `None`: close the connection.
    async fn next_line(&mut self, line: &mut Vec<u8>) -> Option<Line> {
        let mut lost = self.slot.set_idle();
        let read = loop {
            let read = tokio::select! {
                read = timeout(self.idle_max, read_line(&mut self.lines, line, CONTROL_LINE_BYTES_MAX)) => read,
                _ = self.stopping.wait_for(|&stop| stop) => return None,
                _ = &mut lost => break None,
            };
            match read {
                Ok(Ok(Line::Complete)) if line.trim_ascii().is_empty() => {}
                Ok(Ok(read)) => break Some(read),
                Ok(Err(_)) | Err(_) => return None,
            }
        };
        // The slot may have been lost while the line was read.
        if self.slot.set_busy() {
            return read;
        }
        let message = format!(
            "closed this connection, which was idle longest: all {CONNECTIONS_MAX} connection slots of the control socket \
             are in use; connect again"
        );
        self.replies.id = None;
        _ = self.replies.send(ResponseBody::Error(ApiError::new(ErrorCode::Busy, message))).await;
        None
    }

    /// Executes the request and sends progress meanwhile.
    async fn answer(&mut self, handler: &impl RequestHandler, request: Request) -> Result<ResponseEnd, ApiError> {
        let (out, id) = (Arc::clone(&self.replies.out), self.replies.id);
        let handling = handler.handle(request, &mut self.replies);
        tokio::pin!(handling);
        loop {
            tokio::select! {
                answer = &mut handling => return answer,
                () = tokio::time::sleep(self.progress_every) => {
                    // The lock is held while a row is being written. Do not wait for it
                    // here: that write continues only when `handling` is polled again.
                    if let Ok(mut out) = out.try_lock() {
                        // The handler detects a disconnected client itself.
                        _ = out.write(&encode_response(id, ResponseBody::Progress(Progress::default()))).await;
                    }
                }
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// A whole line, without its line end.
    Complete,
    /// A line above the limit. All of it was read and discarded.
    TooLong,
    /// End of the stream. An incomplete line is no request.
    Eof,
}

/// Reads one line of at most `bytes_max`. The lines codec of `tokio-util` would return an
/// incomplete last line as a request, and end the connection at bytes that are not UTF-8.
async fn read_line(from: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>, bytes_max: usize) -> io::Result<Line> {
    line.clear();
    let mut too_long = false;
    loop {
        let bytes = from.fill_buf().await?;
        if bytes.is_empty() {
            return Ok(Line::Eof);
        }
        let end = bytes.iter().position(|&b| b == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        too_long |= line.len() + part.len() > bytes_max;
        if !too_long {
            line.extend_from_slice(part);
        }
        let used = part.len() + usize::from(end.is_some());
        from.consume(used);
        if end.is_some() {
            return Ok(if too_long { Line::TooLong } else { Line::Complete });
        }
    }
}

#[cfg(test)]
mod tests;
