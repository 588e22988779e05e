//! Webhooks: messages about servers, to a receiver that refuses the first.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;

use clqd::fleet::FaultShares;
use serde_json::Value;

use crate::clock::faketime_library;
use crate::sandbox::{Sandbox, WAIT_MAX, fleet, wait_until};

/// Receives messages: answers the first with 503, and others with 204. Returns its port, and paths and bodies.
fn receiver() -> (u16, mpsc::Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (send, received) = mpsc::channel();
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let mut stream = stream.expect("a connection");
            let mut reader = BufReader::new(stream.try_clone().expect("the same socket"));
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                assert!(reader.read_line(&mut head).expect("a request") > 0, "{head}");
            }
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().expect("a number"))
            });
            let mut body = vec![0; length.expect("a length")];
            reader.read_exact(&mut body).expect("a body");
            let status = if n == 0 { "503 Service Unavailable" } else { "204 No Content" };
            let answer =
                format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nRetry-After: 0.5\r\nConnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).expect("an answer");
            let path = head.split(' ').nth(1).expect("a path").to_owned();
            if send.send((path, serde_json::from_slice(&body).expect("JSON"))).is_err() {
                return;
            }
        }
    });
    (port, received)
}

#[test]
fn a_server_that_is_down_is_told_until_the_receiver_has_accepted_it() {
    let sandbox = Sandbox::new("");
    let (port, received) = receiver();
    let hook = |name: &str, kind: &str| {
        format!(
            "[[webhook]]\nname = \"{name}\"\nurl = \"http://127.0.0.1:{port}/SECRET-{name}\"\nkind = \"{kind}\"\n\
             events = [\"server_down\", \"week_closed\", \"new_leader\"]\ntag = \"ours\"\n"
        )
    };
    let hooks = format!("{}{}[site]\ntitle = \"Clan\"\n", hook("program", "json"), hook("chat", "discord"));
    sandbox.configure(&format!("log_filter = \"info,clqd::daemon::webhooks=debug\"\n{hooks}"));
    let daemon = sandbox.start();
    let fleet = fleet(2, 97, 1.0, FaultShares::NONE);
    sandbox.add_servers(&fleet);
    let urls = fleet.urls().to_vec();
    sandbox.ok(["servers", "tag", "--add", "ours", &urls[0]]);
    for name in ["program", "chat"] {
        wait_until("the webhooks have seen the server", || {
            let log = daemon.log();
            log.lines()
                .any(|line| line.contains("looked at") && line.contains(name) && line.contains("servers=1 down=0"))
        });
    }
    drop(fleet);
    let mut messages: Vec<(String, Value)> = Vec::new();
    // The first message is refused, and sent again.
    while messages.len() < 3 {
        messages.push(received.recv_timeout(WAIT_MAX).expect("a message"));
    }
    let of =
        |name: &str| messages.iter().filter(|(path, _)| path.ends_with(name)).map(|(_, body)| body).collect::<Vec<_>>();
    let (program, chat) = (of("SECRET-program"), of("SECRET-chat"));
    assert!(!program.is_empty() && !chat.is_empty(), "{messages:?}");
    let refused = &messages[0];
    assert_eq!(
        messages.iter().filter(|(path, _)| *path == refused.0).count(),
        2,
        "the first is sent again: {messages:?}"
    );
    let event = &program[0]["events"][0];
    assert_eq!((&event["event"], &event["server"]), (&Value::from("server_down"), &Value::from(&*urls[0])), "{event}");
    assert_eq!((program[0]["site"].as_str(), program[0]["events"].as_array().map(Vec::len)), (Some("Clan"), Some(1)));
    assert!(chat[0]["content"].as_str().is_some_and(|text| text.contains("does not answer any more")), "{chat:?}");
    let status = sandbox.status().to_string();
    let log = daemon.stop();
    assert!(
        log.contains("a message could not be sent") && !log.contains("SECRET") && !status.contains("SECRET"),
        "{log}"
    );
}

#[test]
fn a_restart_after_hours_is_no_news() {
    let library = faketime_library();
    let sandbox = Sandbox::new("");
    let (port, received) = receiver();
    sandbox.configure(&format!(
        "log_filter = \"info,clqd::daemon::webhooks=debug\"\n[[webhook]]\nname = \"program\"\n\
         url = \"http://127.0.0.1:{port}/hook\"\nevents = [\"server_down\", \"server_up\"]\ntag = \"ours\"\n"
    ));
    let fleet = fleet(3, 98, 1.0, FaultShares::NONE);
    let daemon = sandbox.start();
    sandbox.add_servers(&fleet);
    fleet.urls().iter().for_each(|url| drop(sandbox.ok(["servers", "tag", "--add", "ours", url])));
    wait_until("all are seen", || sandbox.list(&["--online"]).len() == 3);
    daemon.stop();
    let later = [("LD_PRELOAD", library.as_str()), ("FAKETIME", "+3h"), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")];
    let daemon = sandbox.start_with_env(&later);
    let looks = || daemon.log().lines().filter(|line| line.contains("looked at")).count();
    wait_until("all are seen again", || sandbox.list(&["--online"]).len() == 3);
    let before = looks();
    wait_until("the webhook has looked at them", || looks() > before + 1);
    let log = daemon.stop();
    assert!(log.contains("servers=3 down=0"), "{log}");
    assert!(received.try_recv().is_err(), "none was down");
}
