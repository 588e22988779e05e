//! Health, metrics, and the start and the stop of the web interface.

use std::io::Read;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};

use clqd::fleet::FaultShares;

use super::metrics::Metrics;
use super::{Site, http};
use crate::sandbox::{Sandbox, fleet, wait_for, wait_until};

#[test]
fn daemon_is_healthy_and_ready_until_it_stops() {
    let site = Site::start("");
    let health = site.get("/healthz");
    assert_eq!((health.status, health.text(), health.header("cache-control")), (200, "ok\n", Some("no-store")));
    let ready = site.get("/readyz");
    let want = serde_json::json!({"ready": true, "reasons": [], "warnings": []});
    assert_eq!((ready.status, ready.json()), (200, want));
    // An idle connection is closed at the stop and does not delay it.
    let mut idle = http::connect(&site.address);
    let (daemon, address) = (site.daemon, site.address);
    daemon.stop();
    assert_eq!(idle.read(&mut [0]).expect("closed"), 0);
    assert!(std::net::TcpStream::connect(address).is_err());
}

/// The archive's fault is a warning; a daemon that cannot write is not ready.
#[test]
fn readiness_names_faults() {
    let sandbox = Sandbox::new("");
    let archive = "[archive]\nurl = \"mysql://clqd@127.0.0.1:1/clqd\"\n[web]\nlisten = \"127.0.0.1:0\"\n";
    sandbox.configure(archive);
    let daemon = sandbox.start();
    let address = sandbox.status()["daemon"]["web"].as_str().expect("an address").to_owned();
    let ready = wait_for("the archive has a fault", || {
        let ready = http::get(&address, "/readyz");
        (!ready.json()["warnings"].as_array().expect("warnings").is_empty()).then_some(ready)
    });
    let answer = ready.json();
    assert_eq!((ready.status, &answer["ready"]), (200, &true.into()), "{answer}");
    assert_eq!(answer["warnings"][0]["code"], "archive_fault");
    assert!(!ready.text().contains("127.0.0.1"), "{answer}");
    let metrics = Metrics::parse(open_metrics(&address).text());
    assert_eq!(metrics.value("clqd_archive_connected"), 0.0);
    assert_eq!(metrics.value("clqd_archive_fault{kind=\"unreachable\"}"), 1.0);

    sandbox.configure_store("disk_free_bytes_min = 1000000000000000", archive);
    sandbox.ok(["reload"]);
    let paused = wait_for("the store is paused", || {
        let ready = http::get(&address, "/readyz");
        (ready.status == 503).then(|| ready.json())
    });
    assert_eq!((&paused["ready"], &paused["reasons"][0]["code"]), (&false.into(), &"store_paused".into()), "{paused}");
    assert_eq!(http::get(&address, "/healthz").status, 200);
    sandbox.configure(archive);
    sandbox.ok(["reload"]);
    wait_until("the daemon is ready again", || http::get(&address, "/readyz").status == 200);
    daemon.stop();
}

fn open_metrics(address: &str) -> http::Answer {
    http::request(address, "GET", "/metrics", "accept: application/openmetrics-text;version=1.0.0,*/*;q=0.2\r\n")
}

#[test]
fn metrics_agree_with_the_status_and_never_decrease() {
    let (site, fleet) = Site::with_fleet(6, 71);
    let scrape = || {
        let answer = open_metrics(&site.address);
        let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(content_type)));
        Metrics::parse(answer.text())
    };
    // The first scan of a new server was requested, and has no due time.
    let lag_ms = || site.sandbox.status()["engine"]["lag_ms_p99"].as_f64();
    wait_until("scheduled scans", || lag_ms().is_some());
    let first = scrape();
    let before = site.sandbox.status();
    let scans = |status: &serde_json::Value| {
        let counts = &status["engine"]["counts"];
        ["snapshots_by_class", "partial_snapshots_by_class", "misses_by_class"]
            .iter()
            .flat_map(|name| counts[name].as_array().expect("counts").clone())
            .map(|count| count.as_f64().expect("a number"))
            .sum::<f64>()
    };
    // A scrape may show a status of up to a second ago.
    let second = wait_for("a scrape after the status", || {
        Some(scrape()).filter(|metrics| metrics.sum("clqd_scans_total") >= scans(&before))
    });
    let after = site.sandbox.status();
    assert!(scans(&before) > 0.0 && second.sum("clqd_scans_total") <= scans(&after));
    second.assert_continue(&first);
    assert_eq!(second.value("clqd_engine_responding"), 1.0);
    assert_eq!(second.sum("clqd_servers"), f64::from(fleet.servers()));
    for (metric, field) in [
        ("clqd_scan_packets_sent_total", &after["counters"]["scan.packets_sent"]),
        ("clqd_rounds_total", &after["engine"]["counts"]["rounds"]),
        ("clqd_commits_total", &after["store"]["commits"]),
        ("clqd_players_known", &after["engine"]["players_known"]),
    ] {
        assert!(second.value(metric) <= field.as_f64().expect(metric), "{metric}: {field}");
    }
    assert!(second.value("clqd_commits_total") > 0.0 && second.value("clqd_database_bytes") > 0.0);
    // At most the largest value of the histogram, in seconds.
    assert!((0.0..=10.0).contains(&second.value("clqd_scan_lag_seconds{quantile=\"0.99\"}")));
    // The scrape counts itself after it has been answered.
    let requests = "clqd_web_requests_total{route=\"/metrics\",status=\"200\"}";
    assert!(second.value(requests) >= 1.0 && scrape().value(requests) > second.value(requests));
    let durations = "clqd_web_request_duration_seconds_bucket{le=\"+Inf\",route=\"/metrics\"}";
    assert!(second.value(durations) >= 1.0);
    assert!(second.value("clqd_web_connections") >= 1.0);
    site.daemon.stop();
}

/// A port in use is an error that names the setting. It appears before the state is opened.
#[test]
fn port_in_use_is_a_start_error() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("bound").port();
    let sandbox = Sandbox::new(&format!("[web]\nlisten = \"127.0.0.1:{port}\"\n"));
    let done = sandbox.run(["run"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(done.err.contains(&format!("cannot listen on 127.0.0.1:{port} (setting web.listen)")), "{}", done.err);
    assert!(!sandbox.state().exists());
}

#[test]
fn web_interface_can_be_turned_off() {
    let sandbox = Sandbox::new("[web]\nlisten = \"\"\n");
    let daemon = sandbox.start();
    assert!(sandbox.status()["daemon"]["web"].is_null());
    // A changed address needs a restart.
    sandbox.configure("[web]\nlisten = \"127.0.0.1:0\"\n");
    assert!(sandbox.run(["reload"]).err.contains("kept until a restart: web.listen"));
    daemon.stop();
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// An answer neither waits for a commit nor causes one.
#[test]
fn visitors_cause_no_commits() {
    let fleet = fleet(20, 78, 60.0, FaultShares::NONE);
    let site = Site::configured(|sandbox, web| sandbox.configure_store("commit_interval_ms = 10000", web));
    site.sandbox.add_servers(&fleet);
    let commits = || site.sandbox.status()["store"]["commits"].as_u64().expect("a number");
    let before = commits();
    for _ in 0..10 {
        for url in fleet.urls() {
            assert_eq!(site.get(&format!("/api/v1/servers/{url}")).json()["url"], *url);
        }
    }
    // One in 10 s, and some of the start.
    assert!(commits() < before + 100, "{} commits for 200 requests", commits() - before);
    site.daemon.stop();
}

#[test]
fn scans_continue_under_load() {
    let fleet = fleet(4, 72, 60.0, FaultShares::NONE);
    let site = Site::start("client_burst_requests = 100000\nclient_requests_per_second_max = 100000\n");
    site.sandbox.add_servers(&fleet);
    let scanned = || site.sandbox.status()["engine"]["counts"]["snapshots"].as_u64().expect("a count");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A panic of this thread must end the others, too.
        let stopped = StopOnDrop(&stop);
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(site.get("/api/v1/status").status, 200);
                }
            });
        }
        let before = scanned();
        wait_until("each server is scanned again", || scanned() >= before + 8);
        drop(stopped);
    });
    site.daemon.stop();
}
