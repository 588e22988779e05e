//! The daemon with a wrong clock, and the correction of the time: a real process under
//! `faketime` (Debian's package faketime), and a daemon in this process with a clock that the
//! test sets. The clock itself is tested in `src/clock.rs`, closing and reopening weeks in
//! `tests/engine/week_close.rs`.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::sandbox::{self, Sandbox, WAIT_MAX, fleet, wait_until};
use crate::shim::Shim;
use clqd::api::requests;
use clqd::clock::{Reading, TimeSource};
use clqd::config::Config;
use clqd::daemon::Daemon;
use clqd::fleet::{FaultShares, Fleet};
use clqd::model::calendar::{Calendar, DAY_MS, MINUTE_MS, week_label};
use clqd::view::{ClockTrust, Correction};
use serde_json::Value;

fn phase(status: &Value, week: &str) -> String {
    let weeks = status["engine"]["weeks"].as_array().unwrap().iter();
    let found = weeks.into_iter().find(|state| state["week"] == week);
    found.map_or_else(String::new, |state| state["phase"].as_str().unwrap().to_owned())
}

/// The path of the library that `faketime` preloads.
pub fn faketime_library() -> String {
    let printed =
        Command::new("faketime").args(["-m", "-f", "+0s", "printenv", "LD_PRELOAD"]).env_remove("LD_PRELOAD").output();
    let printed =
        printed.unwrap_or_else(|e| panic!("faketime: {e}; install Debian's package faketime, as tests/run does"));
    String::from_utf8(printed.stdout).unwrap().trim().to_owned()
}

/// Time of all players on a server in a week, ms.
fn time_in(sandbox: &Sandbox, url: &str, week: &str) -> u64 {
    let top = sandbox.run(["--json", "top", url, "--ranking", "time", "--window", week, "-n", "1000"]);
    let rows: Vec<Value> = sandbox::rows(&top.out);
    let entries = rows.iter().filter(|row| row["kind"] == "entry");
    entries.map(|row| row["score"].as_f64().unwrap() as u64).sum()
}

/// The server with the most players.
fn busiest(fleet: &Fleet) -> String {
    let server = (0..fleet.servers()).max_by_key(|&server| fleet.snapshot(server).players.len());
    fleet.url(server.expect("there are servers"))
}

/// A daemon runs, is restarted with a clock eight days ahead, with which it closes its week, and
/// then with the correct clock. The admin resets the time.
#[test]
fn week_closed_by_wrong_clock_resumes_after_reset() {
    let library = faketime_library();
    // The wrong clock must not make the log too old to keep.
    let sandbox = Sandbox::new("[clock]\nsynchronised = \"never\"\n[log]\nkeep_days = 30\n");
    let fleet = fleet(8, 3, 60.0, FaultShares::NONE);
    let url = busiest(&fleet);
    let week = week_label(Calendar::default().week(clqd::clock::system_ms()));

    let daemon = sandbox.start();
    sandbox.ok(["servers", "add", &url]);
    wait_until("players are seen for some scans", || {
        time_in(&sandbox, &url, &week) > 0 && sandbox.status()["engine"]["counts"]["snapshots"].as_u64().unwrap() > 4
    });
    daemon.stop();

    let wrong = [("LD_PRELOAD", library.as_str()), ("FAKETIME", "+8d"), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")];
    let daemon = sandbox.start_with_env(&wrong);
    wait_until("the close of the ended week is pending", || {
        sandbox.status()["clock"]["week_pending_close"] == week.as_str()
    });
    wait_until("scans continue", || sandbox.status()["engine"]["counts"]["snapshots"].as_u64().unwrap() > 2);
    let text = sandbox.ok(["status"]);
    let printed = text.lines().find(|line| line.starts_with("clock")).unwrap();
    assert!(
        printed.contains("NOT SYNCHRONISED: no week is closed") && printed.contains("clqd clock accept"),
        "{printed}"
    );
    assert!(printed.contains(&format!("week {week} has ended and is not closed yet")), "{printed}");
    assert_eq!(phase(&sandbox.status(), &week), "running");
    let printed = sandbox.ok(["clock", "accept"]);
    assert!(printed.starts_with("accepted by an admin"), "{printed}");
    wait_until("the week is closed", || phase(&sandbox.status(), &week) == "closed");
    daemon.wait_for_log("the week is closed");
    assert_eq!(sandbox.json(["servers", "show", &url])[0]["rank"], 1);
    let log = daemon.stop();
    assert!(log.contains("the week is over but is not closed"), "{log}");

    let daemon = sandbox.start();
    daemon.wait_for_log("ahead of the system clock");
    let ahead_ms = sandbox.status()["clock"]["ahead_ms"].as_i64().unwrap();
    assert!((7 * DAY_MS..9 * DAY_MS).contains(&ahead_ms), "{ahead_ms}");
    let refused = sandbox.run(["clock", "reset"]);
    assert!(!refused.status.success() && refused.err.contains("--yes"), "{}", refused.err);
    let reset = sandbox.json(["clock", "reset", "--yes"]);
    crate::web::openapi::assert_described("clock.reset", &reset);
    assert!(reset[0]["reopened"].to_string().contains(&week), "{reset:?}");
    wait_until("the week is open", || phase(&sandbox.status(), &week) == "running");
    assert_eq!(sandbox.status()["clock"]["ahead_ms"], 0);
    let before = time_in(&sandbox, &url, &week);
    assert!(before > 0, "its rows exist");
    wait_until("scans are counted", || time_in(&sandbox, &url, &week) > before);
    let log_bytes = || {
        let files = clqd::log::segments(&sandbox.state().join("log")).expect("a log");
        files.iter().map(|file| std::fs::metadata(&file.path).map_or(0, |file| file.len())).sum::<u64>()
    };
    let written = log_bytes();
    wait_until("scans are on disk without a checkpoint", || log_bytes() > written);
    assert!(sandbox.ok(["week", "reopen", &week]).contains("is open already"));
    assert!(sandbox.run(["clock", "reset"]).err.contains("nothing to set back"));
    daemon.kill();

    // Scans that were recorded with the wrong clock are not applied again.
    let daemon = sandbox.start();
    let clock = sandbox.status()["clock"].clone();
    assert!(clock["ahead_ms"].as_i64().unwrap() < DAY_MS, "{clock}");
    assert_eq!(phase(&sandbox.status(), &week), "running");
    daemon.stop();
    // A replay takes time back where the admin did.
    sandbox.assert_replay_equals_state();
}

/// The monotonic clock and the system clock, set by a test.
#[derive(Clone)]
struct FakeClock(Arc<Mutex<(Instant, i64, i64)>>, Arc<AtomicBool>);

impl FakeClock {
    fn new() -> FakeClock {
        FakeClock::at(clqd::clock::system_ms())
    }

    fn at(system_ms: i64) -> FakeClock {
        FakeClock(Arc::new(Mutex::new((Instant::now(), 0, system_ms))), Arc::default())
    }

    /// Advances both clocks.
    fn advance(&self, ms: i64) {
        self.0.lock().unwrap().1 += ms;
    }

    /// Advances the system clock only.
    fn jump(&self, ms: i64) {
        self.0.lock().unwrap().2 += ms;
    }
}

impl TimeSource for FakeClock {
    fn read(&self) -> Reading {
        let (began, advanced_ms, system_ms) = *self.0.lock().unwrap();
        let monotonic_ms = began.elapsed().as_millis() as i64 + advanced_ms;
        Reading { monotonic_ms, system_ms: system_ms + monotonic_ms }
    }

    fn synchronised(&self) -> Option<bool> {
        Some(self.1.load(Ordering::Relaxed))
    }
}

/// While the daemon runs, the clock jumps a week ahead: first for 66 s, then permanently.
#[tokio::test(flavor = "multi_thread")]
async fn large_clock_jump_closes_no_week_until_trusted() {
    let fleet = fleet(8, 4, 60.0, FaultShares::NONE);
    let sandbox = Sandbox::new("");
    let config = Config::load(&sandbox.config()).unwrap();
    // A Thursday: no week ends by itself in the half hour that the clock is advanced.
    let now_ms = clqd::clock::system_ms();
    let fake_clock = FakeClock::at(now_ms - now_ms % (7 * DAY_MS));
    let daemon = Daemon::start_with_time_source(Box::new(fake_clock.clone()), config, None, None).await.unwrap();
    let url = busiest(&fleet);
    daemon.change(requests::ServersAdd { urls: vec![url], tags: Vec::new(), import: false }).await.unwrap();
    let read_status = async || daemon.read(requests::Status {}).await.unwrap();
    let wait = async |what: &str, condition: &dyn Fn(&clqd::api::Status) -> bool| {
        let began = Instant::now();
        loop {
            let status = read_status().await;
            if condition(&status) {
                return status;
            }
            assert!(began.elapsed() < WAIT_MAX, "not within {WAIT_MAX:?}: {what}: {status:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let trust = |trust| move |status: &clqd::api::Status| status.clock.as_ref().unwrap().trust == trust;
    let snapshots = |n| move |status: &clqd::api::Status| status.engine.counts.snapshots >= n;
    wait("scans", &snapshots(2)).await;
    assert_eq!(read_status().await.clock.unwrap().trust, ClockTrust::Untrusted);
    fake_clock.advance(10 * MINUTE_MS);
    let before = wait("the clock is stable", &trust(ClockTrust::Stable)).await;
    let weeks = before.engine.weeks.clone();

    fake_clock.jump(7 * DAY_MS + 30 * MINUTE_MS);
    let status = wait("the jump is detected", &trust(ClockTrust::Untrusted)).await;
    fake_clock.advance(66_000);
    let status_later = wait("scans continue", &snapshots(status.engine.counts.snapshots + 3)).await;
    let clock = status_later.clock.unwrap();
    assert!(clock.pending_jump_ms > 7 * DAY_MS && clock.now_ms < before.engine.now_ms + DAY_MS, "{clock:?}");
    assert_eq!(status_later.engine.weeks, weeks);
    fake_clock.jump(-7 * DAY_MS - 30 * MINUTE_MS);
    let clock =
        wait("the jump has ended", &|status| status.clock.as_ref().unwrap().pending_jump_ms == 0).await.clock.unwrap();
    assert_eq!(clock.ahead_ms, 0);
    fake_clock.advance(10 * MINUTE_MS);
    wait("the clock is stable", &trust(ClockTrust::Stable)).await;

    fake_clock.jump(7 * DAY_MS + 30 * MINUTE_MS);
    wait("the jump is detected", &trust(ClockTrust::Untrusted)).await;
    fake_clock.advance(11 * MINUTE_MS);
    let jumped =
        wait("the new time is used", &|status| status.clock.as_ref().unwrap().week_pending_close.is_some()).await;
    assert_eq!(jumped.clock.unwrap().week_pending_close.as_ref(), Some(&weeks[0].week));
    assert_eq!(jumped.engine.weeks[0], weeks[0]);
    fake_clock.advance(10 * MINUTE_MS);
    let closed = |status: &clqd::api::Status| status.engine.weeks[0].phase == clqd::model::commit::WeekPhase::Closed;
    wait("the week is closed after ten more minutes", &closed).await;

    // The new time was wrong.
    fake_clock.jump(-7 * DAY_MS - 30 * MINUTE_MS);
    wait("recorded time is ahead", &|status| status.clock.as_ref().unwrap().ahead_ms > DAY_MS).await;
    let reset = daemon.change(requests::ClockReset { force: true }).await.unwrap();
    let Correction::TimeReset { reopened, .. } = &reset else { panic!("{reset:?}") };
    assert_eq!(reopened[..], [weeks[0].week.clone()]);
    let open = |status: &clqd::api::Status| status.engine.weeks[0].phase == clqd::model::commit::WeekPhase::Running;
    let status = wait("the week is open", &open).await;
    wait("scans are counted", &snapshots(status.engine.counts.snapshots + 3)).await;
    daemon.stop().await.unwrap();
}

/// A daemon starts with a clock eight days ahead, scans, and gets a server. Then the clock is set right and is
/// synchronised: a new start has the scans and the server, at the right times.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_time_at_the_start_is_taken_back() {
    const WRONG_MS: i64 = 8 * DAY_MS;
    let sandbox = Sandbox::new("");
    let fleet = fleet(8, 6, 60.0, FaultShares::NONE);
    let scans = || sandbox.status()["engine"]["counts"]["snapshots"].as_u64().unwrap();
    let last_event_ms = || {
        let lines: Vec<Value> = sandbox::rows(&sandbox.log_lines());
        lines.iter().map(|line| line["t"].as_i64().expect("a time")).max().expect("events")
    };
    let daemon = sandbox.start();
    sandbox.add_servers(&fleet);
    wait_until("scans", || scans() > 16);
    let weeks = sandbox.weeks();
    daemon.stop();
    let right_ms = clqd::clock::system_ms();

    let fake_clock = FakeClock::new();
    fake_clock.jump(WRONG_MS);
    let start = async || {
        let config = Config::load(&sandbox.config()).unwrap();
        Daemon::start_with_time_source(Box::new(fake_clock.clone()), config, Some(sandbox.config()), None).await
    };
    let daemon = start().await.unwrap();
    wait_until("scans with the wrong clock", || scans() > 16);
    sandbox.ok(["servers", "add", "quake3://192.0.2.7:27960"]);
    wait_until("they are in the log", || last_event_ms() > right_ms + WRONG_MS);
    assert!(sandbox.status()["store"]["last_commit_ms"].is_null(), "no checkpoint has the wrong times");
    fake_clock.jump(-WRONG_MS);
    fake_clock.1.store(true, Ordering::Relaxed);
    wait_until("the daemon has ended", || !sandbox.run(["status"]).status.success());
    let error = format!("{:#}", daemon.stop().await.expect_err("the time is wrong"));
    assert!(error.contains("the clock was 691200 s ahead at the start"), "{error}");

    let daemon = start().await.unwrap();
    assert!(last_event_ms() <= clqd::clock::system_ms());
    let seen = scans();
    wait_until("scans continue", || scans() > seen + 16);
    assert!(sandbox.status()["clock"]["ahead_ms"].as_i64() < Some(MINUTE_MS));
    assert!(sandbox.list(&[]).iter().any(|server| server["url"] == "quake3://192.0.2.7:27960"), "it was acknowledged");
    wait_until("a checkpoint", || sandbox.status()["store"]["last_commit_ms"].is_i64());
    assert_eq!(sandbox.weeks(), weeks, "no week of the wrong time");
    daemon.stop().await.unwrap();
    assert!(!sandbox.state().join("log.corrected").exists());
    sandbox.assert_replay_equals_state();
}

/// The same with a real process, which replaces itself.
#[test]
fn daemon_starts_again_to_correct_the_time() {
    let sandbox = Sandbox::new("");
    let daemon = sandbox.start();
    sandbox.ok(["servers", "add", "quake3://192.0.2.7:27960"]);
    daemon.stop();

    let shim = Shim::new(&sandbox.state());
    let (offset, synced) = (sandbox.path("offset"), sandbox.path("synced"));
    std::fs::write(&offset, "+8d").unwrap();
    let preloaded = format!("{}:{}", shim.library(), faketime_library());
    let daemon = sandbox.start_with_env(&[
        ("LD_PRELOAD", preloaded.as_str()),
        ("SHIM_SYNCED", synced.to_str().unwrap()),
        ("FAKETIME_TIMESTAMP_FILE", offset.to_str().unwrap()),
        ("FAKETIME_NO_CACHE", "1"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ]);
    daemon.wait_for_log("until the clock is trusted");
    sandbox.ok(["servers", "add", "quake3://192.0.2.8:27960"]);
    std::fs::write(&offset, "+0").unwrap();
    daemon.wait_for_log("the system clock has jumped back");
    std::fs::write(&synced, "").unwrap();
    daemon.wait_for_log("the times of the events since the wrong clock are corrected");
    wait_until("it is ready again", || daemon.log().matches(" ready ").count() == 2);
    let status = sandbox.status();
    assert!(status["clock"]["ahead_ms"] == 0 && status["clock"]["trust"] == "synchronised", "{status}");
    assert_eq!(sandbox.list(&[]).len(), 2);
    daemon.stop();
}

/// The clock jumps while nothing can be written; then the machine crashes.
#[tokio::test(flavor = "multi_thread")]
async fn clock_jump_with_full_disk_keeps_log_and_state_equal() {
    let fleet = fleet(8, 5, 60.0, FaultShares::NONE);
    let sandbox = Sandbox::new("");
    let configure = |min_bytes: u64| {
        sandbox.configure_store(&format!("disk_free_bytes_min = {min_bytes}"), "");
    };
    configure(0);
    let config = Config::load(&sandbox.config()).unwrap();
    let fake_clock = FakeClock::new();
    let daemon = Daemon::start_with_time_source(Box::new(fake_clock.clone()), config, Some(sandbox.config()), None)
        .await
        .unwrap();
    sandbox.add_servers(&fleet);
    let scans = || sandbox.status()["engine"]["counts"]["snapshots"].as_u64().unwrap();
    let scan_more = |what: &str| {
        let seen = scans();
        wait_until(what, || scans() >= seen + 16);
    };
    scan_more("the servers are scanned");
    configure(1 << 50);
    sandbox.ok(["reload"]);
    wait_until("writing stops", || sandbox.status()["store"]["paused_since_ms"].is_i64());
    scan_more("scans are pending");
    fake_clock.jump(60 * MINUTE_MS);
    wait_until("the jump is detected", || sandbox.status()["clock"]["pending_jump_ms"].as_i64() > Some(0));
    fake_clock.advance(11 * MINUTE_MS);
    wait_until("the new time is used", || sandbox.status()["clock"]["pending_jump_ms"] == 0);
    scan_more("scans continue");

    // A copy of the files on disk, as after a crash.
    let crashed = Sandbox::new("");
    let done = Command::new("cp").arg("-a").arg(sandbox.state()).arg(crashed.state()).status().unwrap();
    assert!(done.success());
    crashed.configure_scan("opt_out = [\"127.0.0.0/8\"]", "");
    crashed.start().stop();
    crashed.assert_replay_equals_state();

    configure(0);
    sandbox.ok(["reload"]);
    wait_until("writing has resumed", || sandbox.status()["store"]["paused_since_ms"].is_null());
    daemon.stop().await.unwrap();
    sandbox.assert_replay_equals_state();
}

#[test]
fn systemd_unit_allows_adjtimex() {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd/clqd.service");
    let text = std::fs::read_to_string(unit).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(!lines.iter().any(|line| line.starts_with("ProtectClock=")), "ProtectClock forbids adjtimex");
    let mut filters = lines.iter().filter_map(|line| line.strip_prefix("SystemCallFilter="));
    assert!(filters.next_back().unwrap().contains("adjtimex"), "the last filter allows adjtimex");
    let ordered = |key: &str| lines.iter().any(|line| line.starts_with(key) && line.contains("time-sync.target"));
    assert!(ordered("After=") && ordered("Wants="));
}
