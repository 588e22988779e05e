//! The port of the web interface, the control socket, and the timeouts of their connections.
//!
//! A connection is closed if its client is slow to send a request, if it does not read its answer, and
//! at a maximum age.

#![cfg_attr(not(test), expect(clippy::disallowed_types, reason = "the port"))]

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use futures_util::TryFutureExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use prometheus_client::metrics::gauge::Gauge;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;

use super::admin::AdminSocket;
use super::connections::{ConnectionCounters, Connections, Holder, Place};
use super::context::WebContext;
use super::door::{Door, Peer};
use super::limits::{CONNECTION_BUFFER_BYTES, REQUEST_HEAD_BYTES_MAX, REQUEST_HEADERS_MAX, SEND_BUFFER_BYTES};
use super::problem::{PROBLEM_JSON, Problem, ProblemKind};
use super::router::router;
use super::texts::language;
use super::tokens::Token;
use super::{Backend, WebLimits, WebSettings};
use crate::model::network::network_of;

/// Sent to a client that exceeds the number of connections. No request has been read, so it is the same for
/// the API and for pages.
static REFUSAL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let problem = Problem::new(ProblemKind::Busy, "too many connections are open; try again in 1 s");
    let (status, body) = (problem.kind.spec().status, problem.body());
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {PROBLEM_JSON}\r\ncache-control: no-store\r\nretry-after: 1\r\n\
         access-control-allow-origin: *\r\naccess-control-expose-headers: Retry-After\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        body.len(),
    );
    [head.into_bytes(), body].concat()
});

/// Why the port could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    #[error(
        "cannot listen on {0} (setting web.listen): another program uses this port; choose another one, or \"\" to turn \
         the web interface off"
    )]
    InUse(SocketAddr),
    #[error("cannot listen on {address} (setting web.listen)")]
    Io { address: SocketAddr, source: io::Error },
}

/// The open port.
#[derive(Debug)]
pub struct WebPort {
    listener: TcpListener,
    address: SocketAddr,
}

impl WebPort {
    /// Opens the port. Needs a tokio runtime.
    pub async fn bind(address: SocketAddr) -> Result<WebPort, WebError> {
        let error = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => WebError::InUse(address),
            _ => WebError::Io { address, source },
        };
        let listener = TcpListener::bind(address).await.map_err(error)?;
        let address = listener.local_addr().map_err(error)?;
        Ok(WebPort { listener, address })
    }

    /// The address, with the port that the system has chosen for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

struct Port {
    listener: TcpListener,
    context: Arc<WebContext>,
}

impl Door for Port {
    type Stream = TcpStream;
    type Connection = Either<TcpStream, TlsStream<TcpStream>>;
    const NAME: &'static str = "the web interface";

    async fn accept(&self) -> io::Result<(TcpStream, Peer)> {
        let (stream, address) = self.listener.accept().await?;
        limit_unread(&stream, self.context.limits.unread_timeout);
        let is_private = address.ip().to_canonical().is_loopback() || self.context.tls().is_some();
        Ok((stream, Peer::Address { address, is_private }))
    }

    fn holder(&self, _: &TcpStream, peer: Peer) -> Holder {
        match peer {
            Peer::Address { address, .. } if !self.context.proxies.contains(address.ip()) => {
                Holder::Address(network_of(address.ip()))
            }
            _ => Holder::Proxy,
        }
    }

    fn connect(&self, stream: TcpStream) -> impl Future<Output = io::Result<Self::Connection>> + Send + 'static {
        let tls = self.context.tls();
        async move {
            Ok(match tls {
                Some(tls) => Either::Right(TlsAcceptor::from(tls).accept(stream).await?),
                None => Either::Left(stream),
            })
        }
    }

    /// With TLS the client only sees that the connection ends.
    fn refuse(&self, stream: TcpStream, refusal: &[u8]) {
        if self.context.tls().is_none() {
            _ = stream.try_write(refusal);
        }
    }
}

/// The website and its API, for visitors and for admins.
pub struct Site {
    context: Arc<WebContext>,
}

/// Serves a port or a socket. Its connections are cut when it is dropped.
pub struct Server {
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl Site {
    pub fn new(settings: &WebSettings, limits: WebLimits) -> Site {
        Site { context: Arc::new(WebContext::new(settings, limits)) }
    }

    /// Serves visitors. Until [`Site::set_backend`] only health and metrics are available.
    pub fn serve(&self, port: WebPort) -> Server {
        let context = self.context.clone();
        let connections = Connections::new(context.limits.connections_max, context.metrics.connection_counters.clone());
        let count = context.metrics.connections.clone();
        let port = Port { listener: port.listener, context: context.clone() };
        let router = router(context.clone());
        Server::start(port, connections, count, router, context.limits)
    }

    /// Serves admins.
    pub fn serve_admins(&self, socket: AdminSocket, counters: ConnectionCounters) -> Server {
        self.serve_admins_within(socket, counters, WebLimits::of_admins())
    }

    /// As [`Site::serve_admins`], with other limits.
    pub fn serve_admins_within(&self, socket: AdminSocket, counters: ConnectionCounters, limits: WebLimits) -> Server {
        let connections = Connections::new(limits.connections_max, counters);
        let socket = socket.with_unread_timeout(limits.unread_timeout);
        let router = router(self.context.clone());
        Server::start(socket, connections, Gauge::default(), router, limits)
    }

    /// Sets what answers requests. Must be called once.
    pub fn set_backend(&self, backend: Arc<dyn Backend>) {
        self.context.set_backend(backend);
    }

    /// Sets who may send requests of admins over the port.
    pub fn set_tokens(&self, tokens: &[Token]) {
        self.context.set_tokens(tokens);
    }

    /// Sets the certificate of new connections.
    pub fn set_certificate(&self, tls: Arc<ServerConfig>) {
        self.context.set_certificate(tls);
    }

    /// Reports from now on that the daemon is stopping.
    pub fn set_stopping(&self) {
        self.context.set_stopping();
    }
}

impl Server {
    fn start(door: impl Door, connections: Connections, count: Gauge, router: Router, limits: WebLimits) -> Server {
        let stop = CancellationToken::new();
        let serving = tokio::spawn(serve(door, Arc::new(connections), count, router, stop.clone(), limits));
        Server { stop, serving }
    }

    /// Closes the port or socket, and gives answers in progress a moment to finish.
    pub async fn stop(mut self) {
        self.stop.cancel();
        _ = (&mut self.serving).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve<D: Door>(
    door: D,
    connections: Arc<Connections>,
    count: Gauge,
    router: Router,
    stop: CancellationToken,
    limits: WebLimits,
) {
    let mut tasks = JoinSet::new();
    loop {
        count.set(connections.count() as i64);
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = tasks.join_next() => continue,
            accepted = door.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Most likely out of file descriptors, which is temporary.
                tracing::warn!(%error, "cannot accept a connection of {}", D::NAME);
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        match connections.open(door.holder(&stream, peer)) {
            Some(place) => {
                let connecting = door.connect(stream);
                tasks.spawn(serve_connection(connecting, peer, place, router.clone(), stop.clone(), limits));
            }
            None => door.refuse(stream, &REFUSAL),
        }
    }
    // Nobody can connect from here on: the daemon is stopping.
    drop(door);
    let all_ended = async { while tasks.join_next().await.is_some() {} };
    if timeout(limits.shutdown_timeout, all_ended).await.is_err() {
        tracing::warn!("connections of {} were cut, because the daemon stops", D::NAME);
    }
}

/// Limits the memory that a client can hold by not reading. The kernel enforces the limit, so it also
/// applies to an answer in the buffer of a closed connection.
fn limit_unread(stream: &TcpStream, timeout: Duration) {
    let socket = SockRef::from(stream);
    // An answer is written at once: small packets need not wait for each other.
    let set = socket.set_tcp_nodelay(true).and_then(|()| socket.set_send_buffer_size(SEND_BUFFER_BYTES));
    if let Err(error) = set.and_then(|()| socket.set_tcp_user_timeout(Some(timeout))) {
        tracing::debug!(%error, "cannot set the options of a connection of the web interface");
    }
}

async fn serve_connection<C: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    connecting: impl Future<Output = io::Result<C>>,
    peer: Peer,
    place: Place,
    router: Router,
    stop: CancellationToken,
    limits: WebLimits,
) {
    let connected = tokio::select! {
        connected = timeout(limits.head_timeout, connecting) => connected,
        () = place.close().cancelled() => return,
        () = stop.cancelled() => return,
    };
    // The client caused the error.
    let Ok(Ok(stream)) = connected else { return };
    let router = TowerToHyperService::new(router);
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        language::choose(&mut request);
        let busy = place.begin_request();
        router.call(request).map_ok(|answer| answer.map(|body| busy.until_sent(body)))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_headers(REQUEST_HEADERS_MAX)
        .max_header_size(REQUEST_HEAD_BYTES_MAX)
        .max_buf_size(CONNECTION_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // The client caused the error: a broken connection, or bytes that are not HTTP.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = place.close().cancelled() => return,
        () = stop.cancelled() => {}
        () = sleep(limits.connection_age_max) => {}
    }
    connection.as_mut().graceful_shutdown();
    _ = timeout(limits.last_answer_timeout, connection).await;
}
