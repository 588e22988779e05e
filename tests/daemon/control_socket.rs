//! The control socket while clients hold all of its connections.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;

use clqd::api::encode_request;
use clqd::control::{Client, Request};
use nix::unistd::geteuid;
use rustix::thread::Uid;

use crate::sandbox::{Sandbox, wait_until};
use crate::start::DaemonOfUser;

/// The user `nobody`.
const STRANGER: u32 = 65_534;

/// Requests that a client sends without reading the responses, which are more than the buffers of a
/// socket hold.
const REQUESTS_UNREAD: usize = 2_000;

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

/// A connection whose client has sent many requests and reads no response. `None`: it was refused,
/// because all connections are busy.
fn busy_connection(socket: &Path) -> Option<UnixStream> {
    let request = encode_request(1, &Request::Status {});
    let mut stream = UnixStream::connect(socket).expect("the daemon runs");
    // A refused connection may be closed already.
    _ = stream.write_all(request.as_bytes());
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).ok()?;
    if line.contains("connections are open and all are busy") {
        return None;
    }
    assert!(line.is_empty() || line.contains("\"kind\":\"status\""), "{line}");
    stream.set_nonblocking(true).expect("a socket");
    // The rest is refused when the buffers are full.
    _ = stream.write_all(request.repeat(REQUESTS_UNREAD).as_bytes());
    Some(stream)
}

fn answers(socket: &Path) -> Result<(), String> {
    let mut client = Client::connect(socket).map_err(|error| error.to_string())?;
    client.send(&Request::Status {}, &mut |_| Ok(())).map(drop).map_err(|error| error.to_string())
}

#[test]
fn busy_connections_of_others_leave_one_for_root_and_the_user_of_the_daemon() {
    if !geteuid().is_root() {
        eprintln!("not tested: only root can run commands as other users");
        return;
    }
    const DAEMON_USER: u32 = 64_013;
    let sandbox = Sandbox::new("");
    let config = fs::read_to_string(sandbox.config()).unwrap();
    let daemon = DaemonOfUser::start(DAEMON_USER, &sandbox, &config, &[]);
    let socket = daemon.socket();
    wait_until("the daemon serves its socket", || answers(&socket).is_ok());
    // In place of a group that all of them are in.
    fs::set_permissions(&socket, PermissionsExt::from_mode(0o666)).unwrap();
    let mut connections = Vec::new();
    for user in [0, DAEMON_USER] {
        wait_until("an answer while all connections of others are busy", || {
            let mut is_refused = || {
                let opened = as_user(STRANGER, || busy_connection(&socket));
                let is_refused = opened.is_none();
                connections.extend(opened);
                is_refused
            };
            // The daemon closes a connection that has read nothing for 30 s, so another one must be
            // refused after the answer, too.
            is_refused() && as_user(user, || answers(&socket)).is_ok() && is_refused()
        });
        assert!(connections.len() >= 64, "only {} connections were opened", connections.len());
    }
    drop(connections);
    wait_until("others are answered again", || as_user(STRANGER, || answers(&socket)).is_ok());
    daemon.stop();
}
