//! A port or a socket on which the HTTP server accepts connections.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncWrite};

use super::connections::Holder;

/// What accepts connections.
pub(super) trait Door: Send + Sync + 'static {
    type Stream: Send + 'static;
    type Connection: AsyncRead + AsyncWrite + Send + Unpin + 'static;
    /// For the log.
    const NAME: &'static str;

    fn accept(&self) -> impl Future<Output = io::Result<(Self::Stream, Peer)>> + Send;
    fn holder(&self, stream: &Self::Stream, peer: Peer) -> Holder;
    /// Negotiates TLS.
    fn connect(&self, stream: Self::Stream) -> impl Future<Output = io::Result<Self::Connection>> + Send + 'static;
    /// Sends a short answer and closes the connection, without waiting.
    fn refuse(&self, stream: Self::Stream, refusal: &[u8]);
}

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Peer {
    Address {
        address: SocketAddr,
        /// Nobody else can read the connection: it has TLS, or is on loopback.
        is_private: bool,
    },
    /// A process on this machine, over the control socket.
    Process,
}
