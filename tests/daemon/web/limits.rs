//! Invalid requests, and clients that use more than their share.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Ipv4Addr;

use super::http::next_event;
use super::{Site, http};
use crate::sandbox::wait_until;

#[test]
fn invalid_requests_are_problems() {
    let site = Site::start("");
    for (path, status, name) in [
        ("/api/v1/nothing", 404, "not_found"),
        ("/api/v1/servers/quake3%3A%2F%2F192.0.2.1%3A27960", 404, "not_found"),
        ("/api/v1/servers/nonsense", 400, "bad_request"),
        ("/api/v1/servers?limit=501", 400, "bad_request"),
        ("/api/v1/servers?limit=0", 400, "bad_request"),
        ("/api/v1/servers?limit=x", 400, "bad_request"),
        ("/api/v1/servers?class=8", 400, "bad_request"),
        ("/api/v1/servers?colour=red", 400, "bad_request"),
        ("/api/v1/servers?after=quake3%3A%2F%2F192.0.2.1%3A27960", 400, "bad_request"),
        ("/api/v1/boards", 400, "bad_request"),
        ("/api/v1/boards?game=x&ranking=elos", 400, "bad_request"),
        ("/api/v1/players", 400, "bad_request"),
        ("/api/v1/status?x=1", 400, "bad_request"),
    ] {
        let answer = site.get(path);
        answer.assert_problem(status, name);
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        let problem = answer.json();
        let meaning = site.get(problem["type"].as_str().expect("a path"));
        let heading = format!("<h1>{}</h1>", problem["title"].as_str().expect("a title"));
        assert!(meaning.status == 200 && meaning.text().contains(&heading), "{}", meaning.text());
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "BREW"] {
        let answer = http::request(&site.address, method, "/api/v1/status", "content-length: 0\r\n");
        answer.assert_problem(405, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some("GET, HEAD"));
    }
    let long = format!("/api/v1/players?name={}", "x".repeat(20_000));
    site.get(&long).assert_problem(414, "uri_too_long");
    for path in ["/api/v1/players?name=", "/api/v1/maps/"] {
        site.get(&format!("{path}{}", "x".repeat(257))).assert_problem(400, "bad_request");
        // A valid name is not too long in any encoding.
        site.get(&format!("{path}{}", "%F0%9F%98%80".repeat(256))).assert_problem(404, "not_found");
    }
    let large = format!("x-large: {}\r\n", "x".repeat(40_000));
    assert_eq!(http::request(&site.address, "GET", "/healthz", &large).status, 431);
    let many: String = (0..80).map(|n| format!("x-{n}: 1\r\n")).collect();
    assert_eq!(http::request(&site.address, "GET", "/healthz", &many).status, 431);
    // A body is ignored.
    let mut stream = http::connect(&site.address);
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello")
        .expect("sent");
    assert_eq!(http::read_answer(&mut stream).status, 200);
    let mut stream = http::connect(&site.address);
    stream.write_all(b"\x16\x03\x01 not HTTP at all\r\n\r\n").expect("sent");
    let mut answer = Vec::new();
    _ = stream.read_to_end(&mut answer);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"), "{answer:?}");
    assert_eq!(site.get("/healthz").status, 200);
    site.daemon.stop();
}

/// Clients behind a local proxy are told apart by its header; each has its own limit.
#[test]
fn rate_of_each_client_is_limited() {
    let site = Site::start("client_requests_per_second_max = 1\nclient_burst_requests = 5\n");
    let send =
        |client: &str, path: &str| http::request(&site.address, "GET", path, &format!("x-forwarded-for: {client}\r\n"));
    let mut sent = 0;
    wait_until("a request is refused", || {
        sent += 1;
        let answer = send("198.51.100.1", "/api/v1/status");
        if answer.status == 200 {
            return false;
        }
        answer.assert_problem(429, "too_many_requests");
        let wait_s: u64 = answer.header("retry-after").expect("a time").parse().expect("a number");
        assert!(wait_s >= 1);
        true
    });
    assert!(sent > 5, "the burst is granted");
    assert_eq!(send("198.51.100.2", "/api/v1/status").status, 200, "another client has its own limit");
    assert_eq!(send("198.51.100.1", "/healthz").status, 200);
    wait_until("the client is served again", || send("198.51.100.1", "/api/v1/status").status == 200);
    site.daemon.stop();
}

/// Each request has another invented address, so it is refused only if that address does not count.
#[test]
fn clients_cannot_choose_their_addresses() {
    let limits = "client_requests_per_second_max = 1\nclient_burst_requests = 5\n";
    let status = |site: &Site, headers: &str| http::request(&site.address, "GET", "/api/v1/status", headers).status;
    let mut invented = (0..u32::MAX).map(|n| Ipv4Addr::from_bits(0xcb00_7100 + n));
    let mut wait_for_refusal = |site: &Site, headers: &dyn Fn(Ipv4Addr) -> String| {
        wait_until("a request is refused", || {
            let status = status(site, &headers(invented.next().expect("many")));
            assert!([200, 429].contains(&status), "{status}");
            status == 429
        });
    };

    let site = Site::start(&format!("{limits}proxies = [\"127.0.0.1\", \"10.0.0.0/8\"]\n"));
    wait_for_refusal(&site, &|invented| format!("x-forwarded-for: {invented}, 198.51.100.1, 10.0.0.7\r\n"));
    let two_headers = |invented| format!("x-forwarded-for: {invented}\r\nx-forwarded-for: 198.51.100.1:4242\r\n");
    wait_for_refusal(&site, &two_headers);
    let other_client = "x-forwarded-for: 198.51.100.1, 198.51.100.2, 10.0.0.7\r\n";
    assert_eq!(status(&site, other_client), 200, "another client has its own limit");
    site.daemon.stop();

    let site = Site::start(&format!("{limits}proxies = [\"192.0.2.1\"]\n"));
    wait_for_refusal(&site, &|invented| format!("x-forwarded-for: {invented}\r\n"));
    // Connections of peers that are no proxies are limited, too: idle ones make place for others.
    let mut streams: Vec<_> = (0..80).map(|_| http::connect(&site.address)).collect();
    wait_until("idle connections are closed", || {
        site.get("/metrics").text().contains("\nclqd_web_idle_connections_closed_total 1")
    });
    _ = streams[0].read_to_end(&mut Vec::new());
    site.daemon.stop();
}

#[test]
fn one_client_has_few_streams() {
    let site = Site::start("");
    let watch = |client: &str| {
        let mut stream = http::connect(&site.address);
        let head = format!("GET /api/v1/live HTTP/1.1\r\nhost: clqd\r\nx-forwarded-for: {client}\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("sent");
        BufReader::new(stream)
    };
    let mut streams: Vec<_> = (0..4).map(|_| watch("198.51.100.1")).collect();
    streams.iter_mut().for_each(|stream| _ = next_event(stream));
    let refused = http::request(&site.address, "GET", "/api/v1/live", "x-forwarded-for: 198.51.100.1\r\n");
    refused.assert_problem(429, "too_many_requests");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    next_event(&mut watch("198.51.100.2"));
    // The server notices the end of a connection a moment later.
    drop(streams.pop());
    wait_until("the client has a place again", || {
        let mut status = String::new();
        watch("198.51.100.1").read_line(&mut status).expect("an answer");
        status == "HTTP/1.1 200 OK\r\n"
    });
    site.daemon.stop();
}

/// Clients that never finish their requests do not stop others. `src/web/tests.rs` tests that they are disconnected.
#[test]
fn slow_clients_do_not_stop_others() {
    let site = Site::start("");
    let slow: Vec<_> = (0..100)
        .map(|_| {
            let mut stream = http::connect(&site.address);
            stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-slow: ").expect("sent");
            stream
        })
        .collect();
    assert_eq!(site.get("/api/v1/status").status, 200);
    drop(slow);
    site.daemon.stop();
}
