//! The commands' end of the control socket: blocking, one request at a time.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use super::protocol::{Answer, Body, End, Failure, Request, Row, request_line};

/// Longest line of an answer, bytes. The daemon is trusted more than its
/// clients; this only keeps a wrong socket from filling the memory.
const ANSWER_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// A connection to the daemon.
#[derive(Debug)]
pub struct Client {
    path: PathBuf,
    stream: BufReader<UnixStream>,
    next_id: u64,
}

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There is no socket, or nobody listens on it.
    #[error("the daemon is not running (no one answers on {})", .0.display())]
    NotRunning(PathBuf),
    #[error("no permission for {}; be root or in the group of the socket", .0.display())]
    NoPermission(PathBuf),
    #[error("the connection to {} broke", path.display())]
    Broke { path: PathBuf, source: std::io::Error },
    #[error("the daemon closed the connection before the end of its answer; did it stop?")]
    Closed,
    #[error("what answers on {} does not speak clqd's protocol: {what}", path.display())]
    NotClqd { path: PathBuf, what: String },
    #[error(transparent)]
    Failure(#[from] Failure),
    /// The reader of the rows gave up.
    #[error("cannot write the answer")]
    Reader(#[source] std::io::Error),
}

impl Client {
    pub fn connect(path: &Path) -> Result<Client, ClientError> {
        use std::io::ErrorKind;
        let stream = UnixStream::connect(path).map_err(|source| match source.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => ClientError::NotRunning(path.to_owned()),
            ErrorKind::PermissionDenied => ClientError::NoPermission(path.to_owned()),
            _ => ClientError::Broke { path: path.to_owned(), source },
        })?;
        Ok(Client { path: path.to_owned(), stream: BufReader::new(stream), next_id: 1 })
    }

    /// Sends a request and hands over each row of its answer as it comes.
    pub fn ask(
        &mut self,
        request: &Request,
        each: &mut dyn FnMut(Row) -> std::io::Result<()>,
    ) -> Result<End, ClientError> {
        let id = self.next_id;
        self.next_id += 1;
        // A daemon that refuses the connection answers and closes before it has
        // read; its answer says more than our failure to write.
        let sent = self.stream.get_mut().write_all(request_line(id, request).as_bytes());
        loop {
            let answer = match (self.answer(), &sent) {
                (Err(ClientError::Closed | ClientError::Broke { .. }), Err(source)) => {
                    return Err(self.broke(std::io::Error::new(source.kind(), source.to_string())));
                }
                (answer, _) => answer?,
            };
            if answer.id.is_some_and(|got| got != id) {
                let what = format!("an answer to request {:?} instead of {id}", answer.id);
                return Err(ClientError::NotClqd { path: self.path.clone(), what });
            }
            match answer.body {
                Body::Row(row) => each(row).map_err(ClientError::Reader)?,
                Body::End(end) => return Ok(end),
                Body::Error(failure) => return Err(failure.into()),
            }
        }
    }

    fn answer(&mut self) -> Result<Answer, ClientError> {
        let mut line = Vec::new();
        let read = (&mut self.stream).take(ANSWER_BYTES_MAX).read_until(b'\n', &mut line);
        read.map_err(|source| self.broke(source))?;
        if line.last() != Some(&b'\n') {
            return Err(ClientError::Closed);
        }
        serde_json::from_slice(&line)
            .map_err(|error| ClientError::NotClqd { path: self.path.clone(), what: error.to_string() })
    }

    fn broke(&self, source: std::io::Error) -> ClientError {
        ClientError::Broke { path: self.path.clone(), source }
    }
}
