//! The control socket while clients hold all of its connections.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

use clqd::api::requests;
use clqd::client::Client;
use nix::unistd::geteuid;
use rustix::thread::Uid;

use crate::sandbox::{Sandbox, wait_until};
use crate::start::DaemonOfUser;

/// The user `nobody`.
const STRANGER: u32 = 65_534;

/// Runs `work` on a thread of another user.
fn as_user<T: Send>(user: u32, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // Only of this thread.
            rustix::thread::set_thread_uid(Uid::from_raw(user)).expect("root may be any user");
            work()
        });
        thread.join().expect("no panic")
    })
}

/// How long a connection is observed: a refusal comes at once.
const OBSERVED: Duration = Duration::from_millis(100);

/// A connection with a request whose body does not arrive.
fn unobserved_connection(socket: &Path) -> UnixStream {
    let mut stream = UnixStream::connect(socket).expect("the daemon runs");
    // A refused connection may be closed already.
    _ = stream.write_all(b"POST /api/v1/status HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n");
    stream
}

/// Such a connection. `None`: it was refused, because all connections are busy.
fn busy_connection(socket: &Path) -> Option<UnixStream> {
    let stream = unobserved_connection(socket);
    stream.set_read_timeout(Some(OBSERVED)).expect("a socket");
    let mut line = String::new();
    match BufReader::new(&stream).read_line(&mut line) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Some(stream),
        // The end of a connection that was refused.
        Ok(_) if line.is_empty() || line.starts_with("HTTP/1.1 503 ") => None,
        Err(_) => None,
        Ok(_) => panic!("{line}"),
    }
}

fn answers(socket: &Path) -> Result<(), String> {
    let mut client = Client::connect(socket).map_err(|error| error.to_string())?;
    client.send(&requests::Status {}, |_| Ok(())).map(drop).map_err(|error| error.to_string())
}

#[test]
fn busy_connections_of_others_leave_some_for_root_and_the_user_of_the_daemon() {
    assert!(geteuid().is_root(), "only root can run commands as other users");
    const DAEMON_USER: u32 = 64_013;
    let sandbox = Sandbox::new("");
    let config = fs::read_to_string(sandbox.config()).unwrap();
    let daemon = DaemonOfUser::start(DAEMON_USER, &sandbox, &config, &[]);
    let socket = daemon.socket();
    wait_until("the daemon serves its socket", || answers(&socket).is_ok());
    // In place of a group that all of them are in.
    fs::set_permissions(&socket, PermissionsExt::from_mode(0o666)).unwrap();
    // The first ones are not refused.
    let mut connections: Vec<UnixStream> =
        as_user(STRANGER, || (0..60).map(|_| unobserved_connection(&socket)).collect());
    for user in [0, DAEMON_USER] {
        wait_until("an answer while all connections of others are busy", || {
            let mut is_refused = || {
                let opened = as_user(STRANGER, || busy_connection(&socket));
                let is_refused = opened.is_none();
                connections.extend(opened);
                is_refused
            };
            // The daemon waits 30 s for a body, so another one must be refused after the answer, too.
            is_refused() && as_user(user, || answers(&socket)).is_ok() && is_refused()
        });
        assert!(connections.len() >= 64, "only {} connections were opened", connections.len());
    }
    drop(connections);
    wait_until("others are answered again", || as_user(STRANGER, || answers(&socket)).is_ok());
    daemon.stop();
}
