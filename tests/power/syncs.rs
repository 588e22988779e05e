//! Slow and failing disks: a library for `LD_PRELOAD` ([`Shim`]) delays syncs of the daemon, or fails
//! one of its calls with EIO.
//!
//! The tests compare the order of events, never times: the library notes where each sync begins and
//! ends, and an answer came during a sync if the same sync was in progress before and after it.

use std::path::Path;

use clqd::api::requests;
use clqd::client::ClientError;
use clqd::fleet::{FaultShares, Fleet};

use crate::http;
use crate::sandbox::{Daemon, Sandbox, WEB_WITHOUT_RATE_LIMIT, closed_port_url, copy, fleet, wait_for, wait_until};
use crate::shim::{Shim, as_strs};

/// The delay of a sync, ms: longer than it takes to answer a few requests.
const SYNC_MS: &str = "1000";

/// A daemon with slow syncs of the files below a directory, which scans a fleet.
struct SlowDisk<'s> {
    sandbox: &'s Sandbox,
    shim: Shim,
    daemon: Daemon,
    address: String,
    _fleet: Fleet,
}

impl<'s> SlowDisk<'s> {
    fn start(sandbox: &'s Sandbox, dir: &Path) -> SlowDisk<'s> {
        let fleet = fleet(12, 7, 60.0, FaultShares::NONE);
        let shim = Shim::new(dir);
        let daemon = sandbox.start_with_env(&as_strs(&shim.env(&[("SHIM_SYNC", SYNC_MS)])));
        // The response to a change comes after a sync that began after the request.
        for urls in fleet.urls().chunks(4) {
            let begun = shim.last("begin");
            sandbox.ok([vec!["servers".into(), "add".into()], urls.to_vec()].concat());
            assert!(shim.last("end") > begun, "the response did not wait for a sync: {:?}", shim.log());
        }
        let address = sandbox.status()["daemon"]["web"].as_str().expect("an address").to_owned();
        SlowDisk { sandbox, shim, daemon, address, _fleet: fleet }
    }

    /// Scans since the start, as a page shows them.
    fn scans(&self) -> f64 {
        let metrics = http::get(&self.address, "/metrics");
        assert_eq!(metrics.status, 200, "{}", metrics.text());
        let count = |line: &str| line.strip_prefix("clqd_scans_total{")?.split(' ').nth(1)?.parse::<f64>().ok();
        metrics.text().lines().filter_map(count).sum()
    }

    /// Whether the number of scans has grown before the end of the next sync.
    fn scans_grow_during_sync(&self) -> bool {
        let grow = || {
            let (before, ended) = (self.scans(), self.shim.last("end"));
            loop {
                let has_grown = self.scans() > before;
                if has_grown || self.shim.last("end") != ended {
                    return has_grown;
                }
            }
        };
        self.shim.during_sync(grow) == Some(true)
    }

    /// Commands are answered and show new scans.
    fn stop(self) {
        let SlowDisk { sandbox, ref shim, .. } = self;
        let (before, ended) = (self.scans(), shim.last("end"));
        wait_until("every server was seen", || sandbox.list(&["--online"]).len() == 12);
        wait_until("scans go on", || self.scans() > before);
        wait_until("syncs go on", || shim.last("end") > ended);
        assert_eq!(sandbox.status()["kind"], "status");
        self.daemon.stop();
    }
}

#[test]
#[ignore = "it takes half a minute: bash tests/run --power"]
fn website_is_answered_during_slow_syncs_and_changes_wait_for_them() {
    let sandbox = Sandbox::new(WEB_WITHOUT_RATE_LIMIT);
    let disk = SlowDisk::start(&sandbox, &sandbox.state());
    for path in ["/", "/servers", "/api/v1/servers", "/readyz", "/metrics"] {
        wait_until(&format!("{path} is answered during a sync"), || {
            disk.shim.during_sync(|| http::get(&disk.address, path).status) == Some(200)
        });
    }
    wait_until("scans are done during one sync", || disk.scans_grow_during_sync());
    disk.stop();
}

#[test]
fn failed_write_or_sync_ends_the_process_and_loses_no_acknowledged_change() {
    for call in ["write", "sync"] {
        let sandbox = Sandbox::new("");
        let shim = Shim::new(&sandbox.state());
        let mut daemon = sandbox.start_with_env(&as_strs(&shim.env(&[("SHIM_FAIL", call)])));
        let mut client = daemon.client().expect("a connection");
        let mut acknowledged = Vec::new();
        let mut add = || {
            let url = closed_port_url();
            client.lines(&requests::ServersAdd { urls: vec![url.clone()], tags: Vec::new(), import: false })?;
            acknowledged.push(url);
            Ok::<(), ClientError>(())
        };
        for _ in 0..5 {
            add().expect("a response");
        }
        shim.fail();
        wait_for("a change is not acknowledged", || add().err());
        assert!(shim.has_failed(), "{call}");
        let status = daemon.wait();
        let log = daemon.log();
        assert!(!status.success() && log.contains("Input/output error"), "{call}: {status}: {log}");

        let daemon = sandbox.start();
        let listed = sandbox.list(&[]);
        for url in &acknowledged {
            let is_listed = listed.iter().any(|row| row["url"] == url.as_str());
            assert!(is_listed, "{call}: {url} is lost: {listed:?}");
        }
        daemon.stop();
        sandbox.replay(&sandbox.state(), &sandbox.path("replayed"));
    }
}

/// Fails the first, the second, ... read of a start, until no read is left.
///
/// sled takes a read that fails during its recovery for the end of its log. It then opens an older
/// or an empty database, which is loaded from the checkpoint files again.
#[test]
#[ignore = "it takes half a minute: bash tests/run --power"]
fn failed_read_at_start_loses_nothing() {
    let sandbox = Sandbox::new("");
    let shim = Shim::new(&sandbox.state());
    let urls: Vec<String> = (0..20).map(|_| closed_port_url()).collect();
    let daemon = sandbox.start();
    sandbox.ok([vec!["servers".to_owned(), "add".to_owned()], urls.clone()].concat());
    daemon.stop();
    let original = sandbox.path("original");
    copy(&sandbox.state(), &original);
    let mut results = Vec::new();
    for reads in 0.. {
        std::fs::remove_dir_all(sandbox.state()).expect("the state directory");
        copy(&original, &sandbox.state());
        shim.fail();
        let after = reads.to_string();
        let env = shim.env(&[("SHIM_FAIL", "read"), ("SHIM_FAIL_AFTER", &after)]);
        let mut daemon = sandbox.spawn_with_env(&as_strs(&env));
        let has_started = daemon.becomes_ready();
        match has_started {
            true => _ = daemon.stop(),
            false => assert!(!daemon.wait().success(), "read {reads}: {}", daemon.log()),
        }
        if !shim.has_failed() {
            break;
        }
        // What is left for the next start.
        let next = sandbox.run(["--json", "servers", "list"]);
        let left = urls.iter().filter(|url| next.out.contains(url.as_str())).count();
        results.push((has_started, left));
    }
    assert!(results.len() > 10, "only {} reads failed", results.len());
    let refused = results.iter().filter(|(has_started, _)| !has_started).count();
    let lost = results.iter().filter(|(_, left)| *left < urls.len()).count();
    eprintln!("one of {} reads fails: {refused} starts refused, {lost} states have lost servers", results.len());
    assert!(
        lost == 0,
        "servers are lost after a failed read; whether the daemon has started, and how many of {} \
                        are left: {results:?}",
        urls.len()
    );
}
