//! Tests of the client against the control socket of the web module, with a handler of the test.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream as StdStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use super::*;
use crate::api::requests::{self, ChangeOutcome, RescanSelector, ServerChange};
use crate::api::{ServerFilter, decode};
use crate::config::Config;
use crate::limits::REQUEST_BODY_BYTES_MAX;
use crate::view::PlayerNameView;
use crate::view::board::BoardsSelector;
use crate::web::{AdminSocket, AdminWork, Backend, ConnectionCounters, LineSender, ReadWork, Server, Site, WebLimits};

/// Answers by the kind of the request.
#[derive(Default)]
struct Fake {
    hanging: AtomicUsize,
    withdrawn: AtomicUsize,
    dropped_tags: AtomicUsize,
    may_end: Notify,
}

/// Counts a request that is withdrawn.
struct Withdrawn(Arc<Fake>);

impl Drop for Withdrawn {
    fn drop(&mut self) {
        self.0.withdrawn.fetch_add(1, Ordering::SeqCst);
    }
}

impl Backend for Fake {
    fn read(self: Arc<Self>, _: Option<BoardsSelector>, _: ReadWork) -> BoxFuture<'static, Result<(), ApiError>> {
        unreachable!("no visitor asks")
    }

    fn prepare(self: Arc<Self>, name: &'static str, body: &[u8]) -> Result<AdminWork, ApiError> {
        let search = if name == requests::PlayerSearch::NAME { Some(decode(body)?) } else { None };
        if name == requests::ServersAdd::NAME {
            decode::<requests::ServersAdd>(body)?;
        }
        Ok(Box::new(move |sender| self.run(name, search, sender).boxed()))
    }

    fn changes(&self) -> u64 {
        0
    }
}

impl Fake {
    async fn run(
        self: Arc<Self>,
        name: &'static str,
        search: Option<requests::PlayerSearch>,
        sender: LineSender,
    ) -> Result<Vec<String>, ApiError> {
        if let Some(requests::PlayerSearch { text, .. }) = search {
            let name = PlayerNameView {
                player_key: 1,
                game: "g".into(),
                name: text.clone(),
                display: text,
                last_seen_ms: None,
            };
            sender.of().send(name).await?;
            return Ok(vec!["a note".to_owned()]);
        }
        let lines = sender.of::<ServerChange>();
        match name {
            // More than all buffers hold.
            requests::Rescan::NAME => {
                let _withdrawn = Withdrawn(self.clone());
                loop {
                    let (url, outcome) = ("x".repeat(10_000), ChangeOutcome::Unchanged);
                    lines.send(ServerChange { url, outcome, reason: None }).await?;
                }
            }
            requests::ServersList::NAME => {
                self.hanging.fetch_add(1, Ordering::SeqCst);
                let _withdrawn = Withdrawn(self.clone());
                std::future::pending::<()>().await;
                Ok(Vec::new())
            }
            requests::Status::NAME => {
                lines.progress(Progress { servers: Some(3), expected_ms: None }).await?;
                self.may_end.notified().await;
                lines.progress(Progress::default()).await?;
                Ok(Vec::new())
            }
            requests::TagDrop::NAME => {
                self.hanging.fetch_add(1, Ordering::SeqCst);
                self.may_end.notified().await;
                self.dropped_tags.fetch_add(1, Ordering::SeqCst);
                Ok(Vec::new())
            }
            // Fails after a line, and without an end.
            requests::Overview::NAME => {
                lines.progress(Progress::default()).await?;
                Err(ApiError::new(ErrorCode::Busy, "later"))
            }
            requests::Reload::NAME => {
                lines.progress(Progress::default()).await?;
                panic!("a bug, as part of a test")
            }
            _ => Err(ApiError::new(ErrorCode::Refused, "not today")),
        }
    }
}

struct TestServer {
    _dir: tempfile::TempDir,
    path: PathBuf,
    fake: Arc<Fake>,
    counters: ConnectionCounters,
    site: Site,
    server: Server,
}

fn start() -> TestServer {
    start_within(|_| ())
}

fn start_within(set: impl FnOnce(&mut WebLimits)) -> TestServer {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("control.sock");
    let socket = AdminSocket::bind(&path).expect("bound");
    let site = Site::new(&Config::default().web_settings(), WebLimits::default());
    let (fake, counters) = (Arc::new(Fake::default()), ConnectionCounters::default());
    site.set_backend(fake.clone());
    let mut limits = WebLimits::of_admins();
    set(&mut limits);
    let server = site.serve_admins_within(socket, counters.clone(), limits);
    TestServer { _dir: dir, path, fake, counters, site, server }
}

/// Runs a blocking client concurrently with the server.
async fn blocking<T: Send + 'static>(client: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(client).await.expect("the client does not panic")
}

async fn becomes(count: &AtomicUsize, want: usize) {
    for _ in 0..1_000 {
        if count.load(Ordering::SeqCst) == want {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the count was not reached");
}

fn search(client: &mut Client, text: &str) -> Result<(Vec<PlayerNameView>, Vec<String>), ClientError> {
    let mut players = Vec::new();
    let request = requests::PlayerSearch { text: text.to_owned(), count: 1 };
    let notes = client.send(&request, |player| {
        players.push(player);
        Ok(())
    })?;
    Ok((players, notes))
}

fn failure(result: Result<Vec<String>, ClientError>) -> ApiError {
    match result {
        Err(ClientError::Failure(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

/// Sends bytes and returns the answer, until the connection is closed.
fn raw(path: &Path, bytes: &[u8]) -> String {
    let mut stream = StdStream::connect(path).expect("connected");
    stream.write_all(bytes).expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("read");
    answer
}

fn post(path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

fn list() -> requests::ServersList {
    requests::ServersList { filter: ServerFilter::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answer_is_rows_and_notes_or_an_error() {
    let server = start();
    let path = server.path.clone();
    blocking(move || {
        let mut client = Client::connect(&path).expect("connected");
        for text in ["a", "b"] {
            let (rows, notes) = search(&mut client, text).expect("an answer");
            assert!(matches!(&rows[..], [player] if player.name == text));
            assert_eq!(notes, ["a note"]);
        }
        let refused = failure(client.send(&requests::ClockAccept {}, |_| Ok(())));
        assert_eq!((refused.code, refused.message.as_str()), (ErrorCode::Refused, "not today"));
        let later = failure(client.send(&requests::Overview {}, |_| Ok(())));
        assert_eq!((later.code, later.message.as_str()), (ErrorCode::Busy, "later"), "after the answer has begun");
        assert!(search(&mut client, "c").is_ok(), "an error does not close the connection");
        let panicked = client.send(&requests::Reload {}, |_| Ok(()));
        assert!(matches!(panicked, Err(ClientError::Closed)), "{panicked:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_requests_get_problems() {
    let server = start();
    let path = server.path.clone();
    blocking(move || {
        let answer = raw(&path, &post("/api/v1/servers/add", "{\"urls\":1}"));
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("/problems/bad_request"), "{answer}");
        assert!(answer.contains("servers.add: invalid type"), "{answer}");
        let answer = raw(&path, &post("/api/v1/servers/ad", "{}"));
        assert!(
            answer.starts_with("HTTP/1.1 404 ") && answer.contains("did you mean /api/v1/servers/add?"),
            "{answer}"
        );
        let answer = raw(&path, &post("/api/v1/zz", "{}"));
        assert!(
            answer.starts_with("HTTP/1.1 404 ") && answer.contains("there is no request POST /api/v1/zz"),
            "{answer}"
        );
        let too_long = "x".repeat(REQUEST_BODY_BYTES_MAX + 1);
        let answer = raw(&path, &post("/api/v1/servers/add", &too_long));
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("more than 1048576 bytes"), "{answer}");
        let whole = format!("{{\"text\":\"{}\",\"count\":1}}", "n".repeat(REQUEST_BODY_BYTES_MAX - 21));
        assert_eq!(whole.len(), REQUEST_BODY_BYTES_MAX);
        let answer = raw(&path, &post("/api/v1/player/search", &whole));
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("application/jsonl"), "{}", &answer[..200]);
        let answer = raw(&path, b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("ok\n"), "{answer}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_arrives_before_the_end() {
    let server = start();
    let (path, fake) = (server.path.clone(), Arc::clone(&server.fake));
    blocking(move || {
        let mut client = Client::connect(&path).expect("connected");
        let mut heard = Vec::new();
        let notes = client.send_with_progress(&requests::Status {}, |item| {
            heard.push(item);
            fake.may_end.notify_one();
            Ok(())
        });
        assert_eq!(notes.expect("an answer"), Vec::<String>::new());
        let begins = AnswerItem::Progress(Progress { servers: Some(3), expected_ms: None });
        assert_eq!(heard, [begins, AnswerItem::Progress(Progress::default())]);
        search(&mut client, "next").expect("an answer");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connection_is_closed_for_a_new_one() {
    let server = start_within(|limits| limits.connections_max = 3);
    let (path, counters) = (server.path.clone(), server.counters.clone());
    blocking(move || {
        // This process has the user of the daemon, so it has some more connections.
        let mut clients: Vec<_> = (0..11).map(|_| Client::connect(&path).expect("connected")).collect();
        clients.iter_mut().for_each(|client| _ = search(client, "x").expect("an answer"));
        let mut late = Client::connect(&path).expect("connected");
        search(&mut late, "late").expect("a place");
        assert_eq!((counters.idle_closed.get(), counters.refused.get()), (1, 0));
        let closed = clients.iter_mut().filter_map(|client| search(client, "again").err()).count();
        assert_eq!(closed, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connection_is_refused_when_all_are_busy() {
    let server = start_within(|limits| limits.connections_max = 1);
    let mut at_work = Vec::new();
    for n in 1..=9 {
        let mut busy = StdStream::connect(&server.path).expect("connected");
        busy.write_all(&post("/api/v1/servers/list", "")).expect("written");
        at_work.push(busy);
        becomes(&server.fake.hanging, n).await;
    }
    let path = server.path.clone();
    let refused = blocking(move || search(&mut Client::connect(&path).expect("connected"), "late")).await;
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!((server.counters.idle_closed.get(), server.counters.refused.get()), (0, 1));
    // A client that disconnects withdraws its request.
    drop(at_work);
    becomes(&server.fake.withdrawn, 9).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_may_take_longer_than_the_silence_of_a_daemon_that_lives() {
    let server = start();
    let (path, fake) = (server.path.clone(), Arc::clone(&server.fake));
    let asking = tokio::task::spawn_blocking(move || {
        let mut client = Client::connect_with_timeout(&path, Duration::from_secs(5)).expect("connected");
        client.send(&requests::Status {}, |_| Ok(()))
    });
    tokio::time::sleep(Duration::from_secs(6)).await;
    fake.may_end.notify_one();
    asking.await.expect("no panic").expect("an answer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_daemon_times_out() {
    blocking(move || {
        let patience = Duration::from_millis(200);
        // It accepts connections, but answers nothing.
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("s");
        let deaf = std::os::unix::net::UnixListener::bind(&path).expect("bound");
        for name in ["x".to_owned(), "x".repeat(8 << 20)] {
            let mut client = Client::connect_with_timeout(&path, patience).expect("queued");
            let silent = client.send(&requests::Player { name }, |_| Ok(())).expect_err("no answer");
            assert!(matches!(silent, ClientError::TimedOut { .. }), "{silent}");
            let message = silent.to_string();
            assert!(message.contains(&path.display().to_string()) && message.contains("systemctl"), "{message}");
            assert!(message.contains(&format!("process {}", std::process::id())), "{message}");
        }
        drop(deaf);
        let gone = Client::connect(&path).err().expect("nobody listens");
        assert_eq!(gone.to_string(), format!("the daemon is not running (no process listens on {})", path.display()));
    })
    .await;
}

#[test]
fn full_listen_backlog_times_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s");
    let listener = Socket::new(Domain::UNIX, Type::STREAM, None).expect("a socket");
    listener.bind(&SockAddr::unix(&path).expect("a path")).expect("bound");
    listener.listen(0).expect("listening");
    let mut queued = Vec::new();
    let silent = loop {
        match Client::connect_with_timeout(&path, Duration::from_millis(200)) {
            Ok(client) => queued.push(client),
            Err(error) => break error,
        }
        assert!(queued.len() < 100, "no connection is accepted");
    };
    assert!(matches!(silent, ClientError::TimedOut { pid: None, .. }), "{silent}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_that_does_not_speak_http_is_named() {
    blocking(move || {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("s");
        let other = std::os::unix::net::UnixListener::bind(&path).expect("bound");
        let mut client = Client::connect(&path).expect("queued");
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = other.accept().expect("a connection");
            // Bytes before the request may only close the connection.
            stream.read_exact(&mut [0; 16]).expect("a request");
            stream.write_all(b"500 what is that?\r\n").expect("written");
            stream.read_to_end(&mut Vec::new()).expect("read");
        });
        let error = client.send(&list(), |_| Ok(())).expect_err("no answer");
        assert!(matches!(error, ClientError::ProtocolError { .. }), "{error:?}");
        drop(client);
        answering.join().expect("no panic");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_stops_reading_is_disconnected() {
    let server = start_within(|limits| limits.unread_timeout = Duration::from_millis(300));
    let path = server.path.clone();
    let mut lazy = StdStream::connect(&path).expect("connected");
    lazy.write_all(&post("/api/v1/rescan", "{\"servers\":\"all_unknown\"}")).expect("written");
    blocking(move || {
        for _ in 0..20 {
            search(&mut Client::connect(&path).expect("connected"), "other").expect("an answer");
        }
    })
    .await;
    becomes(&server.fake.withdrawn, 1).await;
    let read = blocking(move || lazy.read_to_end(&mut Vec::new())).await;
    assert!(read.is_ok(), "the connection is closed: {read:?}");
    let request = requests::Rescan { servers: RescanSelector::AllUnknown };
    assert_eq!(encode(&request).0, "/api/v1/rescan");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn incomplete_request_times_out() {
    let server = start_within(|limits| limits.head_timeout = Duration::from_millis(100));
    let path = server.path.clone();
    blocking(move || {
        let mut half = StdStream::connect(&path).expect("connected");
        half.write_all(b"POST /api/v1/st").expect("written");
        half.read_to_end(&mut Vec::new()).expect("closed");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_closes_connections_and_removes_the_socket() {
    let server = start_within(|limits| {
        (limits.shutdown_timeout, limits.last_answer_timeout) =
            (Duration::from_millis(200), Duration::from_secs(3_600));
    });
    let path = server.path.clone();
    let idle = StdStream::connect(&path).expect("connected");
    let mut busy = StdStream::connect(&path).expect("connected");
    busy.write_all(&post("/api/v1/servers/list", "")).expect("written");
    becomes(&server.fake.hanging, 1).await;
    server.site.set_stopping();
    timeout(Duration::from_secs(60), server.server.stop()).await.expect("ends in time");
    assert!(!path.exists());
    drop(idle);
    blocking(move || busy.read_to_end(&mut Vec::new())).await.expect("closed");
}

/// A reload that is interrupted would leave half of the settings.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn change_is_completed_although_the_client_disconnects() {
    let server = start();
    let mut impatient = StdStream::connect(&server.path).expect("connected");
    impatient.write_all(&post("/api/v1/tag/drop", "{\"tag\":\"a\"}")).expect("written");
    becomes(&server.fake.hanging, 1).await;
    drop(impatient);
    // The server notices that the client is gone before the change ends.
    let mut reading = StdStream::connect(&server.path).expect("connected");
    reading.write_all(&post("/api/v1/servers/list", "")).expect("written");
    becomes(&server.fake.hanging, 2).await;
    drop(reading);
    becomes(&server.fake.withdrawn, 1).await;
    server.fake.may_end.notify_one();
    becomes(&server.fake.dropped_tags, 1).await;
}
