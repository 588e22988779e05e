//! The server's end, tested with correct and misbehaving clients.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream as StdStream;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::api::{ChangeOutcome, RescanSelector, ServerChange, ServerFilter, encode_request};
use crate::control::{Client, ClientError, ResponseItem};
use crate::model::view::PlayerView;

/// `player` returns one row; `rescan` returns rows until the client has disconnected;
/// `reload` fails; `servers.list` never ends; `status` ends on a signal.
#[derive(Default)]
struct Fake {
    disconnected: AtomicUsize,
    hanging: AtomicUsize,
    may_end: tokio::sync::Notify,
}

impl RequestHandler for Fake {
    async fn handle(&self, request: Request, replies: &mut ResponseWriter) -> Result<ResponseEnd, ApiError> {
        match request {
            Request::Player { name } => {
                let row = PlayerView {
                    player_key: 1,
                    game: "g".into(),
                    name,
                    display: "d".into(),
                    aliases: vec![],
                    online_on: vec![],
                    weeks: vec![],
                    weeks_more: 0,
                    weeks_next: None,
                    best: vec![],
                    servers: vec![],
                };
                replies.row(Row::Player(row)).await?;
                Ok(ResponseEnd { notes: vec!["a note".into()] })
            }
            Request::Rescan { .. } => loop {
                let row = ServerChange { url: "x".repeat(10_000), outcome: ChangeOutcome::Unchanged, reason: None };
                if replies.row(Row::Change(row)).await.is_err() {
                    self.disconnected.fetch_add(1, Ordering::SeqCst);
                    return Err(Disconnected.into());
                }
            },
            Request::ServersList { .. } => {
                self.hanging.fetch_add(1, Ordering::SeqCst);
                std::future::pending::<()>().await;
                Ok(ResponseEnd::default())
            }
            Request::Status {} => {
                replies.progress(Progress { servers: Some(3), expected_ms: None }).await?;
                self.may_end.notified().await;
                Ok(ResponseEnd::default())
            }
            _ => Err(ApiError::new(ErrorCode::Refused, "not today")),
        }
    }
}

struct TestServer {
    _dir: tempfile::TempDir,
    path: PathBuf,
    fake: Arc<Fake>,
    counts: Arc<ControlCounters>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    serving: tokio::task::JoinHandle<()>,
}

fn test_server(idle_max: Duration, write_max: Duration) -> TestServer {
    test_server_with(|listener| (listener.idle_max, listener.write_max) = (idle_max, write_max))
}

fn test_server_with(set: impl FnOnce(&mut Listener)) -> TestServer {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("control.sock");
    let mut listener = Listener::bind(&path).expect("bound");
    set(&mut listener);
    let counts = Arc::clone(&listener.counts);
    let fake = Arc::new(Fake::default());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let stopped = async { drop(stopped.await) };
    let serving = tokio::spawn(listener.serve(Arc::clone(&fake), stopped));
    TestServer { _dir: dir, path, fake, counts, stop: Some(stop), serving }
}

fn default_test_server() -> TestServer {
    test_server(IDLE_TIMEOUT, WRITE_TIMEOUT)
}

/// Runs a blocking client concurrently with the server.
async fn run_blocking_client<T: Send + 'static>(client: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(client).await.expect("the client does not panic")
}

async fn wait_until_one(count: &AtomicUsize) {
    becomes(count, 1).await;
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

fn ask_player(client: &mut Client, name: &str) -> Result<(Vec<Row>, ResponseEnd), ClientError> {
    let mut rows = Vec::new();
    let request = Request::Player { name: name.to_owned() };
    let end = client.send(&request, &mut |row| {
        rows.push(row);
        Ok(())
    })?;
    Ok((rows, end))
}

/// Writes bytes, closes the writing half, returns everything received.
fn raw(path: &Path, bytes: &[u8]) -> String {
    let mut stream = StdStream::connect(path).expect("connected");
    stream.write_all(bytes).expect("written");
    stream.shutdown(std::net::Shutdown::Write).expect("half closed");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("read");
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn response_is_rows_then_end_or_error() {
    let server = default_test_server();
    let path = server.path.clone();
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o660);
    run_blocking_client(move || {
        let mut client = Client::connect(&path).expect("connected");
        for name in ["a", "b"] {
            let (rows, end) = ask_player(&mut client, name).expect("a response");
            assert!(matches!(&rows[..], [Row::Player(row)] if row.name == name));
            assert_eq!(end.notes, ["a note"]);
        }
        let failure = client.send(&Request::Reload {}, &mut |_| Ok(())).expect_err("refused");
        assert!(matches!(failure, ClientError::Failure(f) if f.code == ErrorCode::Refused));
        assert!(ask_player(&mut client, "c").is_ok(), "an error does not close the connection");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_lines_get_errors_and_connection_stays_open() {
    let server = default_test_server();
    let path = server.path.clone();
    run_blocking_client(move || {
        let mut bytes = b"garbage\n\n\xff\xfe\0\n".to_vec();
        bytes.extend(std::iter::repeat_n(b'x', 3 * CONTROL_LINE_BYTES_MAX));
        bytes.push(b'\n');
        bytes.extend(encode_request(9, &Request::Player { name: "after".into() }).bytes());
        bytes.extend(b"{\"v\":1,\"id\":10,\"cmd\":\"status\""); // an incomplete line
        let answer = raw(&path, &bytes);
        let lines: Vec<&str> = answer.lines().collect();
        assert_eq!(lines.len(), 5, "{answer}");
        assert!(lines[0].contains(r#""id":null,"error":{"code":"malformed_line""#), "{answer}");
        assert!(lines[1].contains("malformed_line"), "{answer}");
        assert!(lines[2].contains(r#""code":"line_too_long""#), "{answer}");
        assert!(lines[3].contains(r#""id":9,"row""#), "{answer}");
        assert!(lines[4].contains(r#""id":9,"end""#), "{answer}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn line_of_maximum_length_is_accepted() {
    let server = default_test_server();
    let path = server.path.clone();
    run_blocking_client(move || {
        let empty = encode_request(1, &Request::Player { name: String::new() });
        let fill = CONTROL_LINE_BYTES_MAX - (empty.len() - 1);
        for (name_len, code) in [(fill, "\"row\""), (fill + 1, "line_too_long")] {
            let line = encode_request(1, &Request::Player { name: "n".repeat(name_len) });
            assert!(raw(&path, line.as_bytes()).contains(code), "{name_len}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connection_is_evicted_for_new_one() {
    let server = default_test_server();
    let path = server.path.clone();
    let counts = Arc::clone(&server.counts);
    run_blocking_client(move || {
        let mut clients: Vec<_> = (0..CONNECTIONS_MAX).map(|_| Client::connect(&path).expect("connected")).collect();
        for (i, client) in clients.iter_mut().enumerate() {
            ask_player(client, &i.to_string()).expect("a response");
        }
        let mut late = Client::connect(&path).expect("connected");
        ask_player(&mut late, "late").expect("a slot");
        assert_eq!(counts.idle_connections_closed.load(Ordering::Relaxed), 1);
        // The idle order depends on when the server's tasks run after their answers;
        // `connection_slots` tests the order.
        let closed: Vec<_> = clients.iter_mut().filter_map(|client| ask_player(client, "again").err()).collect();
        let [closed] = &closed[..] else { panic!("one slot was taken: {closed:?}") };
        assert!(matches!(closed, ClientError::Failure(f) if f.code == ErrorCode::Busy), "{closed}");
        assert!(closed.to_string().contains("idle longest"), "{closed}");
        ask_player(&mut late, "kept").expect("a response");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connection_is_refused_when_all_are_busy() {
    let server = default_test_server();
    let mut at_work = Vec::new();
    // This process has the user of the daemon, so it also gets the reserved slot.
    for i in 0..=CONNECTIONS_MAX {
        let mut busy = StdStream::connect(&server.path).expect("connected");
        busy.write_all(encode_request(1, &Request::ServersList { filter: ServerFilter::default() }).as_bytes())
            .expect("written");
        at_work.push(busy);
        becomes(&server.fake.hanging, i + 1).await;
    }
    let path = server.path.clone();
    run_blocking_client(move || {
        let mut late = Client::connect(&path).expect("connected");
        let refused = ask_player(&mut late, "late").expect_err("too many");
        assert!(matches!(&refused, ClientError::Failure(f) if f.code == ErrorCode::Busy), "{refused}");
    })
    .await;
    assert_eq!(server.counts.connections_refused.load(Ordering::Relaxed), 1);
    assert_eq!(server.counts.idle_connections_closed.load(Ordering::Relaxed), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_is_sent_until_response_ends() {
    let server = test_server_with(|listener| listener.progress_every = Duration::from_millis(10));
    let (path, fake) = (server.path.clone(), Arc::clone(&server.fake));
    run_blocking_client(move || {
        let mut client = Client::connect(&path).expect("connected");
        let mut heard = Vec::new();
        let end = client.send_with_progress(&Request::Status {}, &mut |reply| {
            heard.push(reply);
            if heard.len() == 5 {
                fake.may_end.notify_one();
            }
            Ok(())
        });
        assert_eq!(end.expect("a response"), ResponseEnd::default());
        assert_eq!(heard[0], ResponseItem::Progress(Progress { servers: Some(3), expected_ms: None }));
        assert!(heard[1..].iter().all(|reply| *reply == ResponseItem::Progress(Progress::default())), "{heard:?}");
        ask_player(&mut client, "next").expect("a response");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_daemon_times_out() {
    let server = test_server_with(|listener| listener.progress_every = Duration::from_secs(3_600));
    let path = server.path.clone();
    run_blocking_client(move || {
        let patience = Duration::from_millis(200);
        let mut client = Client::connect_with_timeout(&path, patience).expect("connected");
        let silent = client.send(&Request::ServersList { filter: ServerFilter::default() }, &mut |_| Ok(()));
        let silent = silent.expect_err("no response");
        assert!(matches!(silent, ClientError::TimedOut { .. }), "{silent}");
        let message = silent.to_string();
        assert!(message.contains(&path.display().to_string()) && message.contains("systemctl"), "{message}");
        assert!(message.contains(&format!("process {}", std::process::id())), "{message}");
        // More than the socket's buffers hold, sent to a server that reads nothing.
        let dir = tempfile::tempdir().expect("a directory");
        let deaf = std::os::unix::net::UnixListener::bind(dir.path().join("s")).expect("bound");
        let mut client = Client::connect_with_timeout(&dir.path().join("s"), patience).expect("queued");
        let large = Request::Player { name: "x".repeat(8 << 20) };
        let silent = client.send(&large, &mut |_| Ok(())).expect_err("no reader");
        assert!(matches!(silent, ClientError::TimedOut { .. }), "{silent}");
        drop(deaf);
    })
    .await;
}

#[test]
fn full_listen_backlog_times_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s");
    let listener = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).expect("a socket");
    listener.bind(&socket2::SockAddr::unix(&path).expect("a path")).expect("bound");
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
async fn client_that_stops_reading_is_disconnected() {
    let server = test_server(IDLE_TIMEOUT, Duration::from_millis(300));
    let path = server.path.clone();
    let mut lazy = StdStream::connect(&path).expect("connected");
    lazy.write_all(encode_request(1, &Request::Rescan { servers: RescanSelector::AllUnknown }).as_bytes())
        .expect("written");
    run_blocking_client(move || {
        for _ in 0..20 {
            ask_player(&mut Client::connect(&path).expect("connected"), "other").expect("a response");
        }
    })
    .await;
    wait_until_one(&server.fake.disconnected).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn incomplete_line_times_out() {
    let server = test_server(Duration::from_millis(100), WRITE_TIMEOUT);
    let path = server.path.clone();
    run_blocking_client(move || {
        let mut half = StdStream::connect(&path).expect("connected");
        half.write_all(b"{\"v\":1,").expect("written");
        let mut answer = String::new();
        half.read_to_string(&mut answer).expect("closed");
        assert_eq!(answer, "");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_closes_connections_and_removes_socket() {
    let mut server = default_test_server();
    let path = server.path.clone();
    let idle = StdStream::connect(&path).expect("connected");
    let mut busy = StdStream::connect(&path).expect("connected");
    busy.write_all(encode_request(1, &Request::ServersList { filter: ServerFilter::default() }).as_bytes())
        .expect("written");
    wait_until_one(&server.fake.hanging).await;
    drop(server.stop.take());
    timeout(SHUTDOWN_TIMEOUT * 5, server.serving).await.expect("ends in time").expect("does not panic");
    assert!(!path.exists());
    drop(idle);
    let mut answer = String::new();
    run_blocking_client(move || busy.read_to_string(&mut answer).map(|_| answer)).await.expect("closed");
    let error = Client::connect(&path).expect_err("no listener");
    assert_eq!(error.to_string(), format!("the daemon is not running (no process listens on {})", path.display()));
}

#[tokio::test]
async fn only_stale_socket_is_replaced() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s");
    let first = Listener::bind(&path).expect("bound");
    let error = Listener::bind(&path).expect_err("in use").to_string();
    assert!(
        error.contains(&format!("another daemon is running on {} (process {})", path.display(), std::process::id())),
        "{error}"
    );
    drop(first);
    drop(std::os::unix::net::UnixListener::bind(&path).expect("bound")); // leaves its file
    assert!(path.exists());
    let second = Listener::bind(&path).expect("the stale file is replaced");
    fs::remove_file(&path).expect("removed");
    fs::write(&path, "mine").expect("written");
    drop(second);
    assert!(path.exists(), "a foreign file is not replaced");
    assert!(matches!(Listener::bind(&path), Err(ControlError::NotASocket(_))));
    let nowhere = Listener::bind(&dir.path().join("no/s")).expect_err("no directory");
    assert_eq!(nowhere.to_string(), format!("cannot bind {}", dir.path().join("no/s").display()));
}
