//! The port of the web interface, and the timeouts of its connections.
//!
//! A connection is closed if its client is slow to send a request, if it does not read its answer, and
//! at a maximum age.

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
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::client_address::network_of;
use super::connections::{Connections, Place};
use super::context::WebContext;
use super::limits::{CONNECTION_BUFFER_BYTES, REQUEST_HEAD_BYTES_MAX, REQUEST_HEADERS_MAX, SEND_BUFFER_BYTES};
use super::problem::{PROBLEM_JSON, Problem, ProblemKind};
use super::router::{Peer, router};
use super::{Backend, WebLimits, WebSettings};

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
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
    settings: WebSettings,
}

impl Listener {
    /// Opens the port. Needs a tokio runtime.
    pub async fn bind(settings: WebSettings) -> Result<Listener, WebError> {
        let address = settings.listen;
        let error = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => WebError::InUse(address),
            _ => WebError::Io { address, source },
        };
        let listener = TcpListener::bind(address).await.map_err(error)?;
        let address = listener.local_addr().map_err(error)?;
        Ok(Listener { listener, address, settings })
    }

    /// The address, with the port that the system has chosen for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts to serve. Until [`Server::set_backend`] only health and metrics are available.
    pub fn start(self, limits: WebLimits) -> Server {
        let settings = WebSettings { listen: self.address, ..self.settings };
        let context = Arc::new(WebContext::new(&settings, limits));
        let stop = CancellationToken::new();
        let serving = tokio::spawn(serve(self.listener, context.clone(), stop.clone()));
        Server { context, stop, serving }
    }
}

/// The web interface. Connections are cut when it is dropped.
pub struct Server {
    context: Arc<WebContext>,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl Server {
    /// Sets what answers requests. Must be called once.
    pub fn set_backend(&self, backend: Arc<dyn Backend>) {
        self.context.set_backend(backend);
    }

    /// Reports from now on that the daemon is stopping.
    pub fn set_stopping(&self) {
        self.context.set_stopping();
    }

    /// Closes the port, and gives answers in progress a moment to finish.
    pub async fn stop(mut self) {
        self.set_stopping();
        self.stop.cancel();
        _ = (&mut self.serving).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, context: Arc<WebContext>, stop: CancellationToken) {
    let router = router(context.clone());
    let connections = Arc::new(Connections::new(context.limits.connections_max));
    let mut tasks = JoinSet::new();
    loop {
        context.metrics.connections.set(connections.count() as i64);
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = tasks.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Most likely out of file descriptors, which is temporary.
                tracing::warn!(%error, "cannot accept a connection of the web interface");
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let client = (!context.proxies.contains(peer.ip())).then(|| network_of(peer.ip()));
        let Some(place) = connections.open(client, &context.metrics) else {
            context.metrics.connections_refused.inc();
            _ = stream.try_write(&REFUSAL);
            continue;
        };
        limit_unread(&stream, context.limits.unread_timeout);
        tasks.spawn(serve_connection(stream, peer, place, router.clone(), stop.clone(), context.limits));
    }
    drop(listener);
    let all_ended = async { while tasks.join_next().await.is_some() {} };
    if timeout(context.limits.shutdown_timeout, all_ended).await.is_err() {
        tracing::warn!("connections of the web interface were cut, because the daemon stops");
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

async fn serve_connection(
    stream: TcpStream,
    peer: SocketAddr,
    place: Place,
    router: Router,
    stop: CancellationToken,
    limits: WebLimits,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
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
        () = place.closed() => return,
        () = stop.cancelled() => {}
        () = sleep(limits.connection_age_max) => {}
    }
    connection.as_mut().graceful_shutdown();
    _ = timeout(limits.last_answer_timeout, connection).await;
}
