//! Tests of the web interface with an engine that is slow or absent. Routes and answers are
//! tested with the real daemon, in `tests/daemon/web`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;

use super::limits::{COMPUTED_AT_ONCE_MAX, ENGINE_REQUESTS_MAX, SEND_BUFFER_BYTES};
use super::*;
use crate::config::Config;
use crate::engine::EngineSettings;
use crate::state::State;
use crate::store::StoreSettings;

/// Longest timeout, for limits that a test does not reach.
const NEVER: Duration = Duration::from_secs(3_600);

/// A port without a backend.
async fn start(limits: WebLimits) -> (Site, Server, SocketAddr) {
    let settings = WebSettings {
        listen: None,
        has_tls: false,
        client_requests_per_second_max: 100_000,
        client_burst_requests: 100_000,
        proxies: vec!["127.0.0.0/8".parse().expect("a network")],
        public_url: None,
        identity: crate::web::Identity::default(),
        front_page_days_min: 0,
    };
    let listener = WebPort::bind(([127, 0, 0, 1], 0).into()).await.expect("a free port");
    let (address, site) = (listener.address(), Site::new(&settings, limits));
    let server = site.serve(listener);
    (site, server, address)
}

fn long_limits() -> WebLimits {
    WebLimits {
        connections_max: 100,
        head_timeout: NEVER,
        connection_age_max: NEVER,
        last_answer_timeout: NEVER,
        unread_timeout: NEVER,
        compute_wait: Duration::ZERO,
        engine_timeout: NEVER,
        shutdown_timeout: NEVER,
    }
}

async fn send(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("connected");
    let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream
}

/// The answer, with its head.
async fn get(address: SocketAddr, path: &str) -> String {
    let mut answer = String::new();
    send(address, path).await.read_to_string(&mut answer).await.expect("an answer");
    answer
}

#[track_caller]
fn check(answer: &str, status: u16, text: &str) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(text), "{answer}");
}

/// Answers each request when there is a permit.
struct SlowEngine {
    permits: Semaphore,
    running: AtomicUsize,
    running_max: AtomicUsize,
    /// Dropping the future does not end the work.
    works_on: AtomicBool,
    /// Empty.
    state: Mutex<State>,
    _dir: tempfile::TempDir,
}

impl SlowEngine {
    fn new() -> Arc<SlowEngine> {
        let dir = tempfile::tempdir().expect("a directory");
        let settings = StoreSettings { cache_bytes: 16 << 20, create: true };
        let state = State::open(dir.path(), settings, EngineSettings::default()).expect("a state");
        Arc::new(SlowEngine {
            permits: Semaphore::new(0),
            running: 0.into(),
            running_max: 0.into(),
            works_on: false.into(),
            state: Mutex::new(state),
            _dir: dir,
        })
    }
}

/// Counts a request until it is answered or withdrawn.
struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Backend for SlowEngine {
    fn read(self: Arc<Self>, _: Option<BoardsSelector>, read: ReadWork) -> BoxFuture<'static, Result<(), ApiError>> {
        let works_on = self.works_on.load(Ordering::SeqCst);
        let work = async move {
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            let _running = Running(&self.running);
            self.running_max.fetch_max(running, Ordering::SeqCst);
            self.permits.acquire().await.expect("never closed").forget();
            read(&self.state.lock().expect("no panic").host(&Config::default()));
            Ok(())
        };
        match works_on {
            true => async { tokio::spawn(work).await.expect("no panic") }.boxed(),
            false => work.boxed(),
        }
    }

    fn prepare(self: Arc<Self>, _: &'static str, _: &[u8]) -> Result<AdminWork, ApiError> {
        unreachable!("visitors have no such requests")
    }

    fn changes(&self) -> u64 {
        0
    }
}

#[tokio::test]
async fn readiness_follows_start_and_stop() {
    let (site, server, address) = start(long_limits()).await;
    check(&get(address, "/readyz").await, 503, r#""code":"starting""#);
    check(&get(address, "/api/v1/servers").await, 503, r#""type":"/problems/starting""#);
    check(&get(address, "/healthz").await, 200, "ok\n");
    check(&get(address, "/metrics").await, 200, "\nclqd_engine_responding 0.0\n");
    let engine = SlowEngine::new();
    engine.permits.add_permits(100);
    site.set_backend(engine);
    check(&get(address, "/readyz").await, 200, r#""ready":true"#);
    check(&get(address, "/api/v1/servers").await, 200, r#"{"servers":[],"next":null}"#);
    site.set_stopping();
    check(&get(address, "/readyz").await, 503, r#""code":"stopping""#);
    check(&get(address, "/api/v1/servers?limit=7").await, 503, r#""type":"/problems/stopping""#);
    check(&get(address, "/healthz").await, 200, "ok\n");
    server.stop().await;
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn engine_that_does_not_answer_gives_503_and_requests_are_withdrawn() {
    let limits = WebLimits { engine_timeout: Duration::from_millis(20), ..long_limits() };
    let (site, server, address) = start(limits).await;
    let engine = SlowEngine::new();
    site.set_backend(engine.clone());
    let answer = get(address, "/api/v1/servers").await;
    check(&answer, 503, r#""type":"/problems/busy""#);
    assert!(answer.contains("retry-after: 1\r\n"), "{answer}");
    check(&get(address, "/readyz").await, 503, r#""code":"engine_not_responding""#);
    check(&get(address, "/metrics").await, 200, "\nclqd_engine_responding 0.0\n");
    assert_eq!(engine.running.load(Ordering::SeqCst), 0);
    server.stop().await;
}

/// A thread that works on a request cannot be stopped: others wait until it is done.
#[tokio::test]
async fn work_that_took_too_long_keeps_its_place() {
    let limits = WebLimits { engine_timeout: Duration::from_millis(20), ..long_limits() };
    let (site, server, address) = start(limits).await;
    let engine = SlowEngine::new();
    engine.works_on.store(true, Ordering::SeqCst);
    site.set_backend(engine.clone());
    for number in 0..ENGINE_REQUESTS_MAX + 3 {
        check(&get(address, &format!("/api/v1/servers?text={number}")).await, 503, r#""type":"/problems/busy""#);
    }
    assert_eq!(engine.running_max.load(Ordering::SeqCst), ENGINE_REQUESTS_MAX);
    engine.permits.add_permits(1_000);
    while !get(address, "/api/v1/servers?text=later").await.contains(" 200 ") {}
    server.stop().await;
}

#[tokio::test]
async fn few_requests_are_at_the_engine_at_once() {
    let (site, server, address) = start(long_limits()).await;
    let engine = SlowEngine::new();
    site.set_backend(engine.clone());
    let mut waiting = Vec::new();
    for number in 0..20 {
        waiting.push(send(address, &format!("/api/v1/servers?text={number}")).await);
    }
    while engine.running.load(Ordering::SeqCst) < ENGINE_REQUESTS_MAX {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    engine.permits.add_permits(20);
    for mut stream in waiting {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        check(&answer, 200, "servers");
    }
    assert_eq!(engine.running_max.load(Ordering::SeqCst), ENGINE_REQUESTS_MAX);
    server.stop().await;
}

/// Many readers of the status cause one request.
#[tokio::test]
async fn status_is_requested_once_for_all_who_wait() {
    let (site, server, address) = start(long_limits()).await;
    let engine = SlowEngine::new();
    site.set_backend(engine.clone());
    let mut waiting = Vec::new();
    for _ in 0..10 {
        waiting.push(send(address, "/readyz").await);
    }
    while engine.running.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    engine.permits.add_permits(10);
    for mut stream in waiting {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        check(&answer, 200, "true");
    }
    assert_eq!(engine.running_max.load(Ordering::SeqCst), 1);
    server.stop().await;
}

/// Clients that request many different answers get 503, and all others their answer.
#[tokio::test]
async fn few_answers_are_computed_at_once() {
    let (site, server, address) = start(long_limits()).await;
    let engine = SlowEngine::new();
    site.set_backend(engine.clone());
    let mut waiting = Vec::new();
    for number in 0..COMPUTED_AT_ONCE_MAX {
        waiting.push(send(address, &format!("/api/v1/servers?text={number}")).await);
    }
    // This request is refused as soon as all others wait.
    let refused = loop {
        let mut stream = send(address, "/api/v1/servers?text=refused").await;
        let mut answer = String::new();
        match tokio::time::timeout(Duration::from_millis(50), stream.read_to_string(&mut answer)).await {
            Ok(_) => break answer,
            Err(_) => drop(stream),
        }
    };
    check(&refused, 503, r#""type":"/problems/busy""#);
    assert!(refused.contains("retry-after: 1\r\n"), "{refused}");
    engine.permits.add_permits(COMPUTED_AT_ONCE_MAX + 1);
    for mut stream in waiting {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        check(&answer, 200, "servers");
    }
    server.stop().await;
}

/// While there is a place in the queue, a request waits for a moment instead of being refused.
#[tokio::test]
async fn requests_beyond_those_that_are_computed_wait() {
    let (site, server, address) = start(WebLimits { compute_wait: NEVER, ..long_limits() }).await;
    let engine = SlowEngine::new();
    site.set_backend(engine.clone());
    let mut waiting = Vec::new();
    let requests = COMPUTED_AT_ONCE_MAX + 20;
    for number in 0..requests {
        waiting.push(send(address, &format!("/api/v1/servers?text={number}")).await);
    }
    while engine.running.load(Ordering::SeqCst) < ENGINE_REQUESTS_MAX {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // All requests are read before this one.
    check(&get(address, "/healthz").await, 200, "ok\n");
    engine.permits.add_permits(requests);
    for mut stream in waiting {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        check(&answer, 200, "servers");
    }
    server.stop().await;
}

/// Bytes in the send queue of the server's side of a connection; `None`: it is closed.
fn send_queue_bytes(server: SocketAddr, client: SocketAddr) -> Option<usize> {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the table of connections");
    let ends_with = |address: &str, port: u16| address.ends_with(&format!(":{port:04X}"));
    let queue = table.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, remote) = (fields.next()?, fields.next()?);
        let is_connection = ends_with(local, server.port()) && ends_with(remote, client.port());
        is_connection.then(|| fields.nth(1).expect("the queues").to_owned())
    })?;
    Some(usize::from_str_radix(queue.split(':').next().expect("the send queue"), 16).expect("a number"))
}

/// A client that does not read holds little memory of the kernel, and not for long.
#[tokio::test]
async fn unread_answers_are_small_and_dropped() {
    let limits = WebLimits { unread_timeout: Duration::from_secs(1), ..long_limits() };
    let (_site, server, address) = start(limits).await;
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4_096).expect("a small buffer");
    let mut stream = socket.connect(address).await.expect("connected");
    let client = stream.local_addr().expect("bound");
    // Several MB of answers.
    let requests = b"GET /api/v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(100);
    stream.write_all(&requests).await.expect("sent");
    let until_closed = async {
        while let Some(bytes) = send_queue_bytes(address, client) {
            assert!(bytes <= 2 * SEND_BUFFER_BYTES, "{bytes} bytes");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), until_closed).await.expect("the connection is closed");
    server.stop().await;
}

/// Many readers of one answer cause one request.
#[tokio::test]
async fn same_answer_is_computed_once_for_all_who_wait() {
    let (site, server, address) = start(long_limits()).await;
    let engine = SlowEngine::new();
    site.set_backend(engine.clone());
    let mut waiting = Vec::new();
    for _ in 0..20 {
        waiting.push(send(address, "/api/v1/servers").await);
    }
    while engine.running.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    engine.permits.add_permits(20);
    for mut stream in waiting {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        check(&answer, 200, "servers");
    }
    assert_eq!(engine.running_max.load(Ordering::SeqCst), 1);
    server.stop().await;
}

#[tokio::test]
async fn connections_beyond_the_maximum_close_idle_ones_or_are_refused() {
    let (site, server, address) = start(WebLimits { connections_max: 3, ..long_limits() }).await;
    let engine = SlowEngine::new();
    site.set_backend(engine.clone());
    let mut idle = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(address).await.expect("connected");
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("sent");
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.expect("an answer");
        assert_eq!(&head, b"HTTP/1.1 200");
        idle.push(stream);
    }
    let mut busy = Vec::new();
    for (n, mut idle) in idle.into_iter().enumerate() {
        busy.push(send(address, &format!("/api/v1/servers?limit={}", n + 1)).await);
        // Returns when the server has closed the connection.
        _ = idle.read_to_end(&mut Vec::new()).await;
        while engine.running.load(Ordering::SeqCst) <= n {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let mut answer = Vec::new();
    // The request that was not read may reset the connection after the refusal.
    _ = TcpStream::connect(address).await.expect("connected").read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).expect("UTF-8");
    check(&answer, 503, r#""type":"/problems/busy""#);
    assert!(answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
    engine.permits.add_permits(3);
    for mut stream in busy {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        check(&answer, 200, "servers");
    }
    // The server notices the end of a connection a moment later.
    while !get_if_accepted(address).await.starts_with("HTTP/1.1 200") {}
    server.stop().await;
}

/// Empty if the connection was refused before the request was sent.
async fn get_if_accepted(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.expect("connected");
    _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    let mut answer = Vec::new();
    _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).expect("ASCII")
}

/// A request that is never finished, no request at all, and an answer that is never read.
#[tokio::test]
async fn slow_clients_are_disconnected() {
    let limits = WebLimits {
        head_timeout: Duration::from_millis(20),
        connection_age_max: Duration::from_millis(20),
        last_answer_timeout: Duration::from_millis(20),
        ..long_limits()
    };
    for (text, limits) in [
        (&b"GET /healthz HTTP/1.1\r\nx-slow: "[..], WebLimits { connection_age_max: NEVER, ..limits }),
        (b"", WebLimits { connection_age_max: NEVER, ..limits }),
        (b"GET /api/v1/servers HTTP/1.1\r\nhost: x\r\n\r\n", WebLimits { head_timeout: NEVER, ..limits }),
    ] {
        let (site, server, address) = start(limits).await;
        site.set_backend(SlowEngine::new());
        let mut stream = TcpStream::connect(address).await.expect("connected");
        stream.write_all(text).await.expect("sent");
        let mut answer = Vec::new();
        // Returns when the server has closed the connection.
        _ = stream.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
        server.stop().await;
    }
}

#[tokio::test]
async fn answer_in_progress_is_finished_at_a_stop() {
    let (site, server, address) = start(long_limits()).await;
    let engine = SlowEngine::new();
    site.set_backend(engine.clone());
    let mut stream = send(address, "/api/v1/servers").await;
    while engine.running.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let stopping = tokio::spawn(server.stop());
    engine.permits.add_permits(1);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    check(&answer, 200, "servers");
    stopping.await.expect("stopped");
}
