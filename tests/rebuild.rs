//! Windows whose type is new or has other boundaries, with the real daemon: they
//! are made whole from what it recorded, while it scans and answers. In the end
//! every board is, to the last bit, that of a fresh replay of the recorded log
//! with the new config.

mod common;

use std::path::Path;

use clqd::clock::system_ms;
use clqd::fleet::Shares;
use clqd::model::ServerUrl;
use common::{Daemon, Place, eventually, fleet, scan_logs, until};
use nix::sys::signal::Signal;
use serde_json::Value;

const HOUR_MS: i64 = 3_600_000;

fn config(record: &Path, windows: &[String]) -> String {
    format!("record = {record:?}\n[boards]\nwindows = {windows:?}\n[scan_log]\nrotate_bytes = 65536\n")
}

/// A type of an hour's windows that began some minutes before now.
fn custom(kind: u32, minutes_ago: i64, now_ms: i64) -> String {
    let base_ms = now_ms - now_ms.rem_euclid(60_000) - minutes_ago * 60_000 - 30 * HOUR_MS;
    let base = chrono::DateTime::from_timestamp_millis(base_ms).expect("a time").to_rfc3339();
    format!("{kind} base={base} duration=10h every=10h keep=0")
}

/// All boards of games and tags and of some servers in the running windows of
/// some types, with names, shown and raw scores and moments.
fn boards(place: &Place, kinds: &[&str], servers: &[String], t_ms: i64) -> Vec<Vec<Value>> {
    let scopes = [("--game", "baseq3"), ("--game", "cstrike"), ("--tag", "some")];
    let servers = servers.iter().map(|url| ("--server", url.as_str()));
    let time = t_ms.to_string();
    let mut all = Vec::new();
    for (option, scope) in scopes.into_iter().chain(servers) {
        for kind in kinds {
            for ranking in ["clq1", "clq2", "elo", "points", "time"] {
                let asked = ["board", "top", option, scope, "--window", kind, "--time", &time, "--ranking", ranking];
                let done = place.run([&["--json"], &asked[..], &["-n", "10000"]].concat());
                if !done.status.success() {
                    assert!(done.err.contains("no server of game"), "{asked:?}: {}", done.err);
                    continue;
                }
                let mut rows = common::rows(&done.out);
                // Keys are handed out in order of appearance, also of names that
                // only the live engine knows; names tell the same.
                rows.iter_mut().for_each(|row| _ = row.as_object_mut().expect("an object").remove("player"));
                all.push(rows);
            }
        }
    }
    all
}

/// A daemon that has recorded several files of scans of a lively fleet.
fn recorded(place: &Place, record: &Path) -> (Daemon, clqd::fleet::Fleet, Vec<String>) {
    let fleet = fleet(12, 7, 40.0, Shares::default());
    let daemon = place.start();
    let urls = fleet.urls();
    let (some, others) = urls.split_at(5);
    place.ok([&["servers", "add", "--tag", "some"], &some.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat());
    place.ok([&["servers", "add"], &others.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat());
    until("the log is in several files", || scan_logs(record).len() >= 3);
    (daemon, fleet, urls)
}

fn is_rebuilt(place: &Place, kind: &str) -> bool {
    let done = place.run(["board", "top", "--tag", "some", "--window", kind]);
    assert!(done.status.success() || done.err.contains("is being rebuilt"), "{}", done.err);
    done.status.success()
}

/// What a fresh replay of the log tells of the same windows.
fn replayed(place: &Place, record: &Path, windows: &[String], urls: &[String]) -> Place {
    let fresh = Place::new(&format!("[boards]\nwindows = {windows:?}\n"));
    // Tags are not in the log.
    let state = clqd::store::StoreSettings { cache_bytes: 16 << 20, create: true };
    let settings = clqd::config::Config::load(&fresh.config()).expect("the config").engine_settings().unwrap();
    let mut hot = clqd::hot::Hot::open(&fresh.state(), state, settings).expect("a state");
    for url in &urls[..5] {
        hot.engine.add_server(ServerUrl::parse(url).unwrap(), vec!["some".to_owned()], 0).expect("room");
    }
    hot.commit().expect("a store");
    drop(hot);
    let mut args: Vec<_> = ["replay".into(), "--state".into(), fresh.state().into_os_string()].into();
    args.extend(scan_logs(record).into_iter().map(|log| log.into_os_string()));
    eventually("the state is closed", || fresh.run(&args).status.success().then_some(()));
    assert!(place.state().exists());
    fresh
}

#[test]
fn windows_with_other_boundaries_are_made_from_the_log() {
    let now_ms = system_ms();
    let place = Place::new("");
    let record = place.path("scans.jsonl");
    place.configure(&config(&record, &[custom(12, 1, now_ms), custom(13, 2, now_ms)]));
    let (daemon, fleet, urls) = recorded(&place, &record);
    assert!(is_rebuilt(&place, "12") && is_rebuilt(&place, "13"), "nothing had a past");

    let windows = [custom(12, 7, now_ms), custom(13, 2, now_ms), "day keep=3".to_owned(), "all-time".to_owned()];
    place.configure(&config(&record, &windows));
    daemon.signal(Signal::SIGHUP);
    let log = daemon.wait_for_log("are being rebuilt from the scan log");
    assert!(log.contains("windows of type all-time, day, 12 are being rebuilt"), "{log}");
    // Others go on, and everything is answered meanwhile.
    assert!(is_rebuilt(&place, "13") && is_rebuilt(&place, "week"));
    assert!(place.json(["status"])[0]["engine"]["servers"].as_u64() >= Some(12));
    daemon.wait_for_log("windows were rebuilt from the scan log");
    assert!(["12", "day", "all-time"].iter().all(|kind| is_rebuilt(&place, kind)));
    let again = place.ok(["reload"]);
    assert!(!again.contains("rebuilt"), "the same settings change nothing: {again}");

    // They are credited from then on.
    let seen = scan_logs(&record).len();
    until("it goes on recording", || scan_logs(&record).len() > seen);
    let log = daemon.stop();
    assert_eq!(log.matches("windows were rebuilt").count(), 1, "{log}");
    drop(fleet);
    assert!(!place.path("state.rebuild").exists());
    equals_a_replay(&place, &record, &windows, &urls, &["12", "13", "day", "all-time", "week"]);
}

fn equals_a_replay(place: &Place, record: &Path, windows: &[String], urls: &[String], kinds: &[&str]) {
    let fresh = replayed(place, record, windows, urls);
    let t_ms = clqd::scanlog::check(record).expect("a log").last_ms;
    let (rebuilt, want) = (boards(place, kinds, &urls[..6], t_ms), boards(&fresh, kinds, &urls[..6], t_ms));
    assert!(want.iter().filter(|board| board.len() > 3).count() > 20, "boards with players");
    assert_eq!(rebuilt.len(), want.len());
    for (rebuilt, want) in rebuilt.iter().zip(&want) {
        assert_eq!(rebuilt, want);
    }
}

#[test]
fn a_restart_with_other_boundaries_and_a_crash_in_between() {
    let now_ms = system_ms();
    let place = Place::new("");
    let record = place.path("scans.jsonl");
    place.configure(&config(&record, &[custom(12, 1, now_ms)]));
    let (daemon, fleet, urls) = recorded(&place, &record);
    daemon.stop();
    let windows = [custom(12, 7, now_ms), "all-time".to_owned()];
    place.configure(&config(&record, &windows));
    // Killed as soon as it has said so: whatever it was at, the next one begins
    // anew or has nothing left to do.
    let daemon = place.spawn();
    daemon.wait_for_log("windows of type all-time, 12 are being rebuilt");
    daemon.kill();
    let daemon = place.start();
    until("they are rebuilt", || is_rebuilt(&place, "12") && is_rebuilt(&place, "all-time"));
    daemon.stop();
    drop(fleet);
    equals_a_replay(&place, &record, &windows, &urls, &["12", "all-time"]);
}

#[test]
fn without_a_log_they_begin_now_and_it_is_said() {
    let now_ms = system_ms();
    let place = Place::new(&format!("[boards]\nwindows = {:?}\n", [custom(12, 1, now_ms)]));
    let fleet = fleet(4, 7, 20.0, Shares::default());
    let daemon = place.start();
    let urls = fleet.urls();
    place.ok([&["servers", "add", "--tag", "some"], &urls.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat());
    let players =
        |kind: &str| place.json(["board", "top", "--tag", "some", "--ranking", "time", "--window", kind]).len();
    until("players are seen", || players("12") > 3);
    place.configure(&format!("[boards]\nwindows = {:?}\n", [custom(12, 7, now_ms), "all-time".to_owned()]));
    let told = place.run(["reload"]);
    assert!(told.err.contains("windows of type all-time, 12 begin now: there is no scan log"), "{}", told.err);
    assert!(daemon.log().contains("WARN") && daemon.log().contains("begin now"), "{}", daemon.log());
    until("they are credited", || players("12") > 3 && players("all-time") > 3);
    daemon.stop();
}
