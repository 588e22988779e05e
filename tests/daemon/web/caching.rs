//! What caches and browsers rely on: encodings, ETags that change only with the content, and the
//! headers for pages of other sites.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::http::{encoded, next_event, next_event_with_id, watch, watch_with};
use super::pages::hostile_server;
use super::{Site, http};
use crate::sandbox::{Sandbox, wait_until};

/// A site with one server, which always gives the same answer.
struct QuietSite {
    site: Site,
    url: String,
    stopping: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl QuietSite {
    fn start() -> QuietSite {
        let site = Site::start_in(Sandbox::new(""));
        let stopping = Arc::new(AtomicBool::new(false));
        let (url, thread) = hostile_server(stopping.clone());
        site.sandbox.ok(["servers", "add", &url]);
        wait_until("the server is seen", || site.sandbox.list(&["--online"]).len() == 1);
        QuietSite { site, url, stopping, thread }
    }

    fn last_seen_s(&self) -> i64 {
        self.site.sandbox.list(&[])[0]["last_seen_ms"].as_i64().expect("it was seen") / 1_000
    }

    /// Waits until the server is seen in a later second.
    fn scan(&self) {
        let before = self.last_seen_s();
        self.site.sandbox.ok(["rescan", &self.url]);
        wait_until("the server is seen again", || {
            self.site.sandbox.ok(["rescan", &self.url]);
            self.last_seen_s() > before
        });
    }

    /// An answer that is not the plain one that may be in the cache.
    fn get_compressed(&self, path: &str, headers: &str) -> http::Answer {
        http::request(&self.site.address, "GET", path, &format!("accept-encoding: gzip\r\n{headers}"))
    }

    fn stop(self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic");
        self.site.daemon.stop();
    }
}

fn without(value: &Value, field: &str) -> Value {
    let mut value = value.clone();
    value.as_object_mut().expect("an object").remove(field).unwrap_or_else(|| panic!("it has {field}"));
    value
}

#[test]
fn plain_request_never_gets_a_compressed_answer() {
    let site = Site::start("");
    let values = ["GZIP", "gzip", "x-gzip", "*", "br, GZip;q=0.5", "gzip;q=0", "identity;q=0", "identity"];
    for (n, value) in values.into_iter().enumerate() {
        let path = format!("/search?q={n}");
        let first = http::request(&site.address, "GET", &path, &format!("accept-encoding: {value}\r\n"));
        let is_compressed = first.header("content-encoding").is_some();
        assert_eq!(is_compressed, n < 5, "{value}");
        let plain = site.get(&path);
        assert_eq!((first.status, plain.status), (200, 200), "{value}");
        assert_eq!(plain.header("content-encoding"), None, "{value}");
        assert_eq!(plain.text(), first.text(), "{value}");
        for answer in [first, plain] {
            let varies =
                |on: &str| answer.headers.iter().any(|(name, vary)| name == "vary" && vary.eq_ignore_ascii_case(on));
            assert!(varies("accept-encoding") && varies("accept-language"), "{value}: {:?}", answer.headers);
        }
    }
    assert_eq!(http::request(&site.address, "GET", "/metrics", "accept-encoding: identity;q=0\r\n").status, 200);
    site.daemon.stop();
}

/// A scan that finds nothing new changes no page.
#[test]
fn pages_are_unchanged_while_their_content_is() {
    let quiet = QuietSite::start();
    for path in ["/", "/servers", "/games"] {
        // Once, the first scans create boards; every ten minutes, a slot of the graphs ends.
        wait_until("a scan has not changed the page", || {
            let etag = quiet.site.get(path).header("etag").expect("an ETag").to_owned();
            quiet.scan();
            let again = quiet.get_compressed(path, &format!("if-none-match: {etag}\r\n"));
            assert!([200, 304].contains(&again.status), "{path}: {}", again.status);
            again.status == 304 && again.body.is_empty()
        });
    }
    quiet.stop();
}

#[test]
fn overview_has_an_etag_of_its_content() {
    let quiet = QuietSite::start();
    // ETag, time and other content of all answers so far. On a busy machine a scan may be missed, so
    // the server may be offline in some of them.
    let mut before: Vec<(String, Value, Value)> = Vec::new();
    wait_until("two overviews with the same content and different times", || {
        let answer = quiet.site.get("/api/v1/overview");
        let etag = answer.header("etag").expect("an ETag").to_owned();
        let (now_ms, content) = (answer.json()["now_ms"].clone(), without(&answer.json(), "now_ms"));
        let mut is_found = false;
        for (earlier_etag, earlier_ms, earlier_content) in &before {
            let is_same = content == *earlier_content;
            assert_eq!(etag == *earlier_etag, is_same, "{content} {earlier_content}");
            is_found |= is_same && now_ms != *earlier_ms;
        }
        before.push((etag, now_ms, content));
        is_found
    });
    let compressed = quiet.get_compressed("/api/v1/overview", "");
    let has_etag = before.iter().any(|(etag, ..)| compressed.header("etag") == Some(etag));
    let is_known = before.iter().any(|(_, _, content)| without(&compressed.json(), "now_ms") == *content);
    assert_eq!(has_etag, is_known, "the encoding does not change the ETag");
    quiet.stop();
}

#[test]
fn streams_have_only_changes() {
    let quiet = QuietSite::start();
    let now_ms = || quiet.site.sandbox.json(["overview"])[0]["now_ms"].as_i64().expect("a time");
    let server_path = format!("/api/v1/live?server={}", encoded(&quiet.url));
    let mut home = watch(&quiet.site.address, "/api/v1/live");
    let mut server = watch(&quiet.site.address, &server_path);
    let mut last = [next_event(&mut home).1, next_event(&mut server).1];
    // The streams look several times.
    let began_ms = now_ms();
    wait_until("time passes", || now_ms() > began_ms + 6_000);
    quiet.site.sandbox.ok(["servers", "tag", "--add", "ctf", &quiet.url]);
    let streams = [(&mut home, "now_ms"), (&mut server, "coverage")];
    for ((stream, time_field), last) in streams.into_iter().zip(&mut last) {
        loop {
            let (_, event) = next_event(stream);
            assert_ne!(without(&event, time_field), without(last, time_field));
            let tags = event["tags"].as_array().expect("tags").clone();
            *last = event;
            if !tags.is_empty() {
                break;
            }
        }
    }
    quiet.stop();
}

/// A client that reconnects with the id of its last event gets only what has changed since.
#[test]
fn reconnected_stream_goes_on_after_the_last_event() {
    let quiet = QuietSite::start();
    let address = &quiet.site.address;
    let seen = |id: &str| format!("last-event-id: {id}\r\n");
    let (id, _, before) = next_event_with_id(&mut watch(address, "/api/v1/live"));
    let mut again = watch_with(address, "/api/v1/live", &seen(&id));
    quiet.site.sandbox.ok(["servers", "tag", "--add", "ctf", &quiet.url]);
    let (changed_id, _, changed) = next_event_with_id(&mut again);
    assert_ne!((&changed_id, without(&changed, "now_ms")), (&id, without(&before, "now_ms")));
    assert_eq!(changed["tags"].as_array().expect("tags").len(), 1, "{changed}");
    // A missed change is sent at once, and so is the current state to a client with an unknown id or without one.
    for headers in [seen(&id), seen("?"), String::new()] {
        let (present_id, _, present) = next_event_with_id(&mut watch_with(address, "/api/v1/live", &headers));
        assert_eq!((&present_id, without(&present, "now_ms")), (&changed_id, without(&changed, "now_ms")), "{headers}");
    }
    quiet.stop();
}

/// A page of another site sends `If-None-Match` only after a preflight, and reads the ETag only if it is
/// exposed.
#[test]
fn pages_of_other_sites_may_use_etags() {
    let site = Site::start("");
    let asked = "origin: https://example.org\r\naccess-control-request-method: GET\r\n\
                 access-control-request-headers: if-none-match\r\n";
    for path in ["/api/v1/overview", "/api/v1/servers?limit=3", "/api/v1/live"] {
        let preflight = http::request(&site.address, "OPTIONS", path, asked);
        assert_eq!((preflight.status, preflight.body.len()), (204, 0), "{path}");
        let header = |name: &str| preflight.header(&format!("access-control-{name}"));
        assert_eq!(header("allow-origin"), Some("*"), "{path}");
        assert_eq!(header("allow-methods"), Some("GET, HEAD"), "{path}");
        assert_eq!(header("allow-headers"), Some("*"), "{path}");
        assert!(header("max-age").is_some(), "{path}");
    }
    for path in ["/api/v1/overview", "/api/v1/nothing"] {
        let answer = site.get(path);
        assert_eq!(answer.header("access-control-expose-headers"), Some("ETag, Retry-After, Clqd-Behind-Ms"), "{path}");
    }
    site.daemon.stop();
}
