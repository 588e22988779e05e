//! The Unix socket of the admin commands.

#![cfg_attr(not(test), expect(clippy::disallowed_types, reason = "the control socket"))]

use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::unistd::geteuid;
use tokio::net::{UnixListener, UnixStream};

use super::unread::Unread;
use crate::web::WebLimits;
use crate::web::connections::Holder;
use crate::web::door::{Door, Peer};

/// Why the socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
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
pub struct AdminSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of this listener's file; a file that replaced it is not deleted.
    file: (u64, u64),
    unread_timeout: Duration,
}

impl AdminSocket {
    /// Binds the socket, mode 0660. If a socket file refuses connections, its daemon has stopped,
    /// and the file is deleted. Needs a tokio runtime.
    pub fn bind(path: &Path) -> Result<AdminSocket, SocketError> {
        let error = |what| move |source| SocketError::Io { what, path: path.to_owned(), source };
        match fs::symlink_metadata(path) {
            Err(source) if source.kind() == io::ErrorKind::NotFound => (),
            Err(source) => return Err(error("inspect")(source)),
            Ok(found) if !found.file_type().is_socket() => return Err(SocketError::NotASocket(path.to_owned())),
            Ok(_) => match std::os::unix::net::UnixStream::connect(path) {
                Ok(stream) => {
                    return Err(SocketError::AlreadyInUse { path: path.to_owned(), pid: listener_pid(&stream) });
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
        let (file, unread_timeout) = ((file.dev(), file.ino()), WebLimits::default().unread_timeout);
        Ok(AdminSocket { listener, path: path.to_owned(), file, unread_timeout })
    }

    pub(crate) fn with_unread_timeout(mut self, timeout: Duration) -> AdminSocket {
        self.unread_timeout = timeout;
        self
    }
}

impl Drop for AdminSocket {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.file);
        if ours {
            drop(fs::remove_file(&self.path));
        }
    }
}

impl Door for AdminSocket {
    type Stream = UnixStream;
    type Connection = Unread<UnixStream>;
    const NAME: &'static str = "the control socket";

    async fn accept(&self) -> io::Result<(UnixStream, Peer)> {
        self.listener.accept().await.map(|(stream, _)| (stream, Peer::Process))
    }

    fn holder(&self, stream: &UnixStream, _: Peer) -> Holder {
        match stream.peer_cred() {
            Ok(peer) if peer.uid() == 0 || peer.uid() == geteuid().as_raw() => Holder::Owner,
            Ok(peer) => Holder::User(peer.uid()),
            Err(_) => Holder::User(u32::MAX),
        }
    }

    fn connect(&self, stream: UnixStream) -> impl Future<Output = io::Result<Self::Connection>> + Send + 'static {
        std::future::ready(Ok(Unread::new(stream, self.unread_timeout)))
    }

    /// A full socket buffer holds it.
    fn refuse(&self, stream: UnixStream, refusal: &[u8]) {
        _ = stream.try_write(refusal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_stale_socket_is_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("s");
        let first = AdminSocket::bind(&path).expect("bound");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o660);
        let error = AdminSocket::bind(&path).expect_err("in use").to_string();
        let daemon = format!("another daemon is running on {} (process {})", path.display(), std::process::id());
        assert!(error.contains(&daemon), "{error}");
        drop(first);
        drop(std::os::unix::net::UnixListener::bind(&path).expect("bound")); // leaves its file
        assert!(path.exists());
        let second = AdminSocket::bind(&path).expect("the stale file is replaced");
        fs::remove_file(&path).expect("removed");
        fs::write(&path, "mine").expect("written");
        drop(second);
        assert!(path.exists(), "a foreign file is not replaced");
        assert!(matches!(AdminSocket::bind(&path), Err(SocketError::NotASocket(_))));
        let nowhere = AdminSocket::bind(&dir.path().join("no/s")).expect_err("no directory");
        assert_eq!(nowhere.to_string(), format!("cannot bind {}", dir.path().join("no/s").display()));
    }
}
