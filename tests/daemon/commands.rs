//! Tests the daemon and the commands as an admin uses them: a fleet of simulated servers on the
//! loopback interface, a daemon that scans it every second or two, and `clqd` commands. Tests
//! output, errors, signals and systemd notifications.
//!
//! Rankings are tested in `replay_equals_oracle`, the archive in `tests/archive`, crashes and the replay of a recorded
//! log in `crash`.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::sandbox::{
    self, Daemon, QUICK_TIMEOUTS, Sandbox, closed_port_url, fleet, silent_socket, wait_for, wait_until,
};
use clqd::api::{ApiError, ErrorCode, Request, requests};
use clqd::client::ClientError;
use clqd::fleet::{FaultShares, Fleet};
use clqd::model::ServerUrl;
use nix::sys::signal::Signal;
use serde_json::Value;

fn url(server: &Value) -> &str {
    server["url"].as_str().expect("a URL")
}

/// A daemon that has scanned all servers of a fleet.
fn start_and_scan_all(sandbox: &Sandbox, fleet: &Fleet) -> Daemon {
    let daemon = sandbox.start();
    sandbox.add_servers(fleet);
    wait_until("every server is seen", || {
        sandbox.list(&[]).iter().filter(|server| !server["last_seen_ms"].is_null()).count() == fleet.servers() as usize
    });
    daemon
}

#[test]
fn servers_show_the_proof_of_the_last_reply_until_a_restart() {
    let fleet = fleet(4, 31, 60.0, FaultShares::NONE);
    let sandbox = Sandbox::new("");
    sandbox.configure_scan("contact = \"scans@example.org\"", "");
    let daemon = start_and_scan_all(&sandbox, &fleet);
    let servers: Vec<String> = sandbox.list(&[]).iter().map(|server| url(server).to_owned()).collect();
    for server in &servers {
        let (want, printed) = match server.split_once("://").expect("a scheme").0 {
            "source" => ("challenge", "challenge: they carry one of this server, or come over TCP"),
            "quake3" | "darkplaces" => ("nonce", "nonce: they repeat a number that only this server received"),
            other => panic!("a fleet without {other}"),
        };
        assert_eq!(sandbox.json(["servers", "show", server])[0]["authentication"], want, "{server}");
        let text = sandbox.ok(["servers", "show", server]);
        assert!(text.contains(&format!("\n  replies   {printed}\n")), "{text}");
    }
    assert_eq!(sandbox.status()["daemon"]["contact"], "scans@example.org");
    assert!(sandbox.ok(["status"]).contains("\ncontact   scans@example.org\n"));
    daemon.stop();
    // The authentication is not stored.
    let offline = sandbox.ok(["servers", "show", &servers[0]]);
    assert!(!offline.contains("  replies "), "{offline}");
}

/// A server that has players on its boards.
fn busiest(sandbox: &Sandbox) -> String {
    wait_for("a server has players on all boards", || {
        let servers = sandbox.list(&[]);
        servers
            .iter()
            .map(url)
            .map(str::to_owned)
            .find(|url| ["points", "clq2", "elo", "time"].iter().all(|ranking| sandbox.top(url, ranking).len() >= 3))
    })
}

// Servers ----------------------------------------------------------------

#[test]
fn servers_are_added_listed_shown_and_removed() {
    let fleet = fleet(6, 11, 1.0, FaultShares::NONE);
    let urls = fleet.urls();
    let sandbox = Sandbox::new("");
    let daemon = sandbox.start();

    let out = sandbox.ok(["servers", "add", &urls[0], &urls[1], "--tag", "ctf"]);
    assert_eq!(out, format!("{}  added\n{}  added\n", urls[0], urls[1]));
    let misspelt = sandbox.run(["--json", "servers", "add", &urls[2], "ftp://127.0.0.1:1"]);
    assert_eq!(misspelt.status.code(), Some(2), "{}", misspelt.err);
    assert!(misspelt.out.contains("`clqd games` lists the known ones"), "{}", misspelt.out);
    let mixed = sandbox.json(["servers", "add", &urls[1], &urls[2]]);
    let outcomes: Vec<_> = mixed.iter().map(|row| row["outcome"].as_str().unwrap().to_owned()).collect();
    assert_eq!(outcomes, ["unchanged", "added"], "a request with an invalid URL added nothing");

    let list = sandbox.path("servers.txt");
    let text = format!("# mine\n{} duel\n\n{} duel ctf # both\nquake3://a:0\n{}\n", urls[3], urls[4], urls[0]);
    std::fs::write(&list, text).unwrap();
    let imported = sandbox.run(["servers".as_ref(), "import".as_ref(), list.as_os_str()]);
    assert_eq!(imported.status.code(), Some(1));
    assert!(imported.out.starts_with("2 added, 1 already known, 1 refused\n"), "{}", imported.out);
    assert!(imported.err.contains(&format!("{}:5: ", list.display())), "{}", imported.err);

    wait_until("all five are seen", || sandbox.list(&[]).iter().filter(|s| !s["last_seen_ms"].is_null()).count() == 5);
    let listed = sandbox.list(&[]);
    assert!(listed.is_sorted_by_key(|row| url(row).to_owned()));
    let human = sandbox.ok(["servers", "list"]);
    assert!(urls[..5].iter().all(|url| human.contains(url)) && !human.contains(&urls[5]), "{human}");
    let ctf = sandbox.list(&["--tag", "ctf"]);
    let mut want = [&urls[0], &urls[1], &urls[4]];
    want.sort();
    assert_eq!(ctf.iter().map(url).collect::<Vec<_>>(), want);
    assert!(sandbox.list(&["--tag", "nothing"]).is_empty());

    for (number, row) in [0, 1, 2, 3, 4].map(|n| (n, sandbox.json(["servers", "show", &urls[n as usize]])[0].clone())) {
        let truth = fleet.snapshot(number);
        assert_eq!(row["kind"], "server_detail");
        assert_eq!((row["hostname"].as_str(), row["game"].as_str()), (Some(&*truth.hostname), Some(&*truth.game)));
        assert_eq!(row["slots"].as_u64(), Some(truth.slots.into()));
        assert!(matches!(row["class"].as_u64(), Some(1 | 2)) && row["missed"] == 0, "{row}");
    }
    let printed = sandbox.ok(["servers", "show", &urls[0]]);
    assert!(printed.contains(&urls[0]) && printed.contains("ctf"), "{printed}");

    assert_eq!(sandbox.ok(["servers", "remove", &urls[0]]), format!("{}  removed\n", urls[0]));
    let again = sandbox.run(["servers", "remove", &urls[0], &urls[5]]);
    assert_eq!(again.status.code(), Some(1), "{}", again.out);
    assert_eq!(again.out, format!("{}  not found: it was removed earlier\n{}  not found\n", urls[0], urls[5]));
    let tagged = sandbox.ok(["servers", "add", &urls[1], &urls[2], "--tag", "ctf"]);
    let unchanged = format!("{}  unchanged: it is already known\n", urls[1]);
    assert_eq!(tagged, format!("{unchanged}{}  tags changed: it has the tag ctf\n", urls[2]));
    assert!(!sandbox.list(&[]).iter().any(|row| url(row) == urls[0]));
    let removed = sandbox.run(["servers", "show", &urls[0]]);
    assert_eq!(removed.status.code(), Some(1));
    assert!(removed.err.contains(&urls[0]), "{}", removed.err);
    let back = sandbox.ok(["servers", "add", &urls[0]]);
    assert_eq!(back, format!("{}  restored with its history\n", urls[0]));
    daemon.stop();
}

/// Quake 3 servers and one that never answers: their protocols are found by trying all.
#[test]
fn server_of_unknown_protocol_is_added_under_the_url_that_answers() {
    let fleet = fleet(2, 23, 10.0, FaultShares::NONE);
    let sandbox = Sandbox::new("");
    sandbox.configure_scan(QUICK_TIMEOUTS, "");
    let daemon = sandbox.start();
    let urls = fleet.urls();
    let address = |url: &str| url.split_once("://").expect("a URL").1.to_owned();
    let (_socket, silent) = silent_socket();
    let auto = format!("auto://{}", address(&urls[1]));
    let done = sandbox.run(["servers", "add", &address(&urls[0]), &auto, &address(&silent)]);
    assert_eq!(done.status.code(), Some(1), "{}", done.err);
    for url in &urls {
        assert!(done.out.contains(&format!("{url}  added")), "{}", done.out);
    }
    let refused = format!("{}  refused: no answer; add it with a scheme", address(&silent));
    assert!(done.out.contains(&refused), "{}", done.out);
    let mut listed: Vec<_> = sandbox.list(&[]).iter().map(|server| url(server).to_owned()).collect();
    listed.sort();
    let mut want = urls.clone();
    want.sort();
    assert_eq!(listed, want);

    let found = sandbox.json(["query", &address(&urls[0])]);
    assert_eq!((found[0]["server"].as_str(), found[0]["map"].is_string()), (Some(&*urls[0]), true));
    daemon.stop();
}

/// A server that has changed its port is reported, and its players are not credited to the old URL.
#[test]
fn host_that_answers_under_another_url_is_reported() {
    let fleet = fleet(1, 24, 10.0, FaultShares::NONE);
    let sandbox = Sandbox::new("");
    sandbox.configure_scan(QUICK_TIMEOUTS, "");
    let daemon = sandbox.start();
    let url = fleet.urls()[0].clone();
    let (scheme, address) = url.split_once("://").expect("a URL");
    let moved = format!("{}://{address}", if scheme == "source" { "quake3" } else { "source" });
    sandbox.ok(["servers", "add", &moved]);
    let show = || sandbox.json(["servers", "show", &moved])[0].clone();
    wait_until("the first scan failed", || show()["class"] == 7);
    let scans = sandbox.json(["rescan", &moved]);
    assert_eq!((scans[0]["result"].as_str(), scans[0]["class"].as_u64()), (Some("miss"), Some(7)), "{scans:?}");
    assert_eq!(scans[0]["answers_at"].as_str(), Some(&*url));
    assert!(show()["last_seen_ms"].is_null());
    let log = daemon.stop();
    assert!(log.contains("does not answer under this URL, but under another one"), "{log}");
}

#[test]
fn boost_is_limited_to_scheduled_servers_and_shown_with_its_end() {
    let fleet = fleet(1, 25, 10.0, FaultShares::NONE);
    let sandbox = Sandbox::new("");
    let daemon = start_and_scan_all(&sandbox, &fleet);
    let url = &fleet.urls()[0];
    let boosted = sandbox.ok(["boost", url, "--for", "30m"]);
    assert!(boosted.starts_with(&format!("{url}  scanned once a minute: until 20")), "{boosted}");
    assert_eq!(sandbox.ok(["boost", url, "--for", "0s"]), format!("{url}  no longer scanned once a minute\n"));
    assert_eq!(sandbox.ok(["boost", url, "--for", "0s"]), format!("{url}  unchanged: it is not boosted\n"));
    let (_socket, silent) = silent_socket();
    sandbox.ok(["servers", "add", &silent]);
    for (url, code, want) in
        [(&silent, 1, "because it has not answered"), (&"quake3://h:1".to_owned(), 1, "is not known")]
    {
        let refused = sandbox.run(["boost", url, "--for", "1h"]);
        assert_eq!(refused.status.code(), Some(code), "{}", refused.out);
        assert!(refused.err.contains(want), "{}", refused.err);
    }
    daemon.stop();
}

/// The commands check values themselves, so these requests are sent as another program would.
#[test]
fn change_with_value_out_of_range_is_refused_before_anything_is_done() {
    let fleet = fleet(1, 25, 10.0, FaultShares::NONE);
    let sandbox = Sandbox::new("");
    let daemon = start_and_scan_all(&sandbox, &fleet);
    let url = ServerUrl::parse(&fleet.urls()[0]).unwrap();
    fn refused<R: Request>(daemon: &Daemon, request: &R, want: &str) {
        match daemon.client().unwrap().lines(request) {
            Err(ClientError::Failure(ApiError { code: ErrorCode::BadRequest, message })) => {
                assert!(message.contains(want), "{message}");
            }
            other => panic!("{}: {:?}", R::NAME, other.err()),
        }
    }
    let boost = requests::Boost { url, for_s: 4_000_000_000 };
    refused(&daemon, &boost, "for_s is 4000000000; expected 0 to 86400 seconds");
    refused(&daemon, &requests::WindowsDelete { before_ms: -1 }, "before_ms is -1; expected Unix milliseconds");
    assert!(!daemon.stop().contains("boost"), "nothing was done");
}

#[test]
fn private_address_is_refused_unless_allowed() {
    let sandbox = Sandbox::new("");
    let config = std::fs::read_to_string(sandbox.config()).unwrap();
    std::fs::write(sandbox.config(), config.replace("allow_private = true", "allow_private = false")).unwrap();
    let daemon = sandbox.start();
    let done = sandbox.run(["servers", "add", "quake3://127.0.0.1:27960", "quake3://192.168.1.1"]);
    assert_eq!(done.status.code(), Some(1));
    assert_eq!(done.out.matches("scan.allow_private").count(), 2, "{}", done.out);
    assert!(sandbox.list(&[]).is_empty());
    daemon.stop();
}

#[test]
fn added_server_is_scanned_after_crash() {
    let sandbox = Sandbox::new("");
    sandbox.configure_scan("timeout_ms = 30000\nretries = 1\n", "");
    let daemon = sandbox.start();
    let (socket, url) = silent_socket();
    sandbox.ok(["servers", "add", &url]);
    // Its scan is in flight and would take a minute.
    daemon.kill();
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    while socket.recv(&mut [0; 2_048]).is_ok() {}
    let daemon = sandbox.start();
    let _replies = Replies::start(socket);
    wait_until("the server is scanned", || !sandbox.json(["servers", "show", &url])[0]["last_seen_ms"].is_null());
    daemon.stop();
}

// Servers that do not answer ----------------------------------------------

/// A server that is silent while it is first scanned.
#[test]
fn server_that_missed_its_first_scan_is_retried_by_itself() {
    let sandbox = Sandbox::new("");
    sandbox.configure_scan(&format!("{QUICK_TIMEOUTS}retry_failed_s = 2\n"), "");
    let daemon = sandbox.start();
    let (socket, url) = silent_socket();
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    sandbox.ok(["servers", "add", &url]);
    let show = || sandbox.json(["servers", "show", &url])[0].clone();
    wait_until("a retry failed, too", || show()["missed"].as_u64() >= Some(2));
    assert_eq!(show()["class"], 7, "a failed retry leaves the class");
    let status = sandbox.ok(["status"]);
    let line = status.lines().find(|line| line.starts_with("failed ")).expect(&status);
    assert!(line.starts_with("failed    1 server does not answer, retried every 2 s"), "{line}");
    assert!(line.ends_with("; scan all of them now: clqd rescan --all-unknown"), "{line}");
    let text = sandbox.ok(["servers", "show", &url]);
    assert!(text.contains(&format!("retry     does not answer; scan it now with: clqd rescan {url}\n")), "{text}");
    let _replies = Replies::start(socket);
    wait_until("the server is seen", || show()["class"] == 2);
    let status = sandbox.status();
    assert_eq!((&status["engine"]["servers_failed"], &status["engine"]["next_retry_ms"]), (&0.into(), &Value::Null));
    daemon.stop();
}

/// Retries are off, so only requests scan the server.
#[test]
fn import_of_a_server_that_did_not_answer_scans_it_once_a_day() {
    let sandbox = Sandbox::new("");
    sandbox.configure_scan(&format!("{QUICK_TIMEOUTS}retry_failed_s = 0\n"), "");
    let mut daemon = sandbox.start();
    let sockets: Vec<_> = (0..2).map(|_| silent_socket()).collect();
    let urls = || sockets.iter().map(|(_, url)| url);
    let list = sandbox.path("list");
    std::fs::write(&list, urls().map(|url| format!("{url}\n")).collect::<String>()).unwrap();
    let import = || sandbox.ok(["servers".as_ref(), "import".as_ref(), list.as_os_str()]);
    let missed = |times: u64| {
        wait_until("the scans have ended", || {
            urls().all(|url| {
                let server = &sandbox.json(["servers", "show", url])[0];
                server["missed"] == times && server["class"] == 7 && server["scan_in_progress"] == false
            })
        });
    };
    let help =
        "servers that do not answer are scanned on request only; scan all of them now: clqd rescan --all-unknown\n";
    assert_eq!(import(), format!("2 added, 0 already known, 0 refused\n{help}"));
    missed(1);
    assert_eq!(
        import(),
        format!("0 added, 2 already known, 0 refused\n2 of the known did not answer and are scanned now\n{help}")
    );
    missed(2);
    let logged = format!("were added again and are scanned servers=\"{} and another\"", urls().next().unwrap());
    daemon.wait_for_log(&logged);
    // Also after a restart.
    for _ in 0..2 {
        let why =
            "2 of the known did not answer and are not scanned now, because an import requested it less than a day ago";
        assert_eq!(import(), format!("0 added, 2 already known, 0 refused\n{why}\n{help}"));
        daemon.stop();
        daemon = sandbox.start();
    }
    let first = urls().next().unwrap();
    let added = sandbox.run(["servers", "add", first]);
    let want = format!(
        "{first}  does not answer: it is already known, and adding it again requested a scan less than a day ago; scan it \
         now with: clqd rescan {first}\n"
    );
    assert_eq!((added.out, added.status.code()), (want, Some(0)));
    missed(2);
    assert!(sandbox.ok(["status"]).contains("\nfailed    2 servers do not answer, scanned on request only; scan"));
    let log = daemon.log();
    assert!(!log.contains("added again"), "no scan was requested since the restart: {log}");
    // The other way to scan them now, and then they answer.
    let _replies: Vec<_> = sockets.iter().map(|(socket, _)| Replies::start(socket.try_clone().unwrap())).collect();
    sandbox.configure_scan("retry_failed_s = 0\n", "");
    sandbox.ok(["reload"]);
    let scans = sandbox.json(["rescan", "--all-unknown"]);
    assert!(scans.len() == 2 && scans.iter().all(|scan| scan["result"] == "snapshot"), "{scans:?}");
    daemon.stop();
}

// Rescan -----------------------------------------------------------------

#[test]
fn rescan_reports_server_and_class() {
    let fleet = fleet(2, 12, 1.0, FaultShares::NONE);
    let sandbox = Sandbox::new("");
    let daemon = start_and_scan_all(&sandbox, &fleet);
    let closed_url = closed_port_url();
    sandbox.ok(["servers", "add", &closed_url]);
    wait_until("the silent server has class 7", || {
        sandbox.list(&["--class", "7"]).iter().any(|row| url(row) == closed_url)
    });

    let one = sandbox.json(["rescan", &fleet.url(0)]);
    assert_eq!((one.len(), url(&one[0]), &one[0]["result"]), (1, fleet.url(0).as_str(), &Value::from("snapshot")));
    assert_eq!(one[0]["slots"].as_u64(), Some(fleet.snapshot(0).slots.into()));
    let human = sandbox.ok(["rescan", &fleet.url(1)]);
    assert!(human.starts_with(&fleet.url(1)) && human.contains(&fleet.snapshot(1).game), "{human}");

    let printed = sandbox.json(["rescan", "--all-unknown"]);
    assert_eq!((printed.len(), url(&printed[0])), (1, closed_url.as_str()));
    assert_eq!((&printed[0]["result"], &printed[0]["class"]), (&Value::from("miss"), &Value::from(7)));
    assert!(printed[0]["reason"].is_string());
    sandbox.ok(["servers", "remove", &closed_url]);
    assert_eq!(sandbox.list(&["--removed"]).iter().map(url).collect::<Vec<_>>(), [closed_url.as_str()]);
    let none = sandbox.run(["rescan", "--all-unknown"]);
    assert_eq!((none.status.code(), none.out.as_str()), (Some(0), ""));
    assert!(none.err.contains("no server is of class 6 or 7\n"), "{}", none.err);
    let unknown = sandbox.run(["rescan", "quake3://127.9.9.9:1"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(unknown.err.contains("quake3://127.9.9.9:1"), "{}", unknown.err);
    daemon.stop();
}

/// The second server replies only after the first result line was read: a command that
/// buffers its output until the end would report it as silent.
#[test]
fn rescan_prints_each_result_immediately() {
    let sandbox = Sandbox::new("");
    sandbox.configure_scan("timeout_ms = 5000\nretries = 1\n", "");
    let daemon = sandbox.start();
    let (late, late_url) = silent_socket();
    let closed_url = closed_port_url();
    sandbox.ok(["servers", "add", &late_url, &closed_url]);
    wait_until("both have class 7", || sandbox.list(&["--class", "7"]).len() == 2);

    let mut command = sandbox.command(["rescan", "--all-unknown"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.starts_with(&closed_url) && first.contains("no response"), "{first}");
    let _replies = Replies::start(late);
    let second = lines.next().unwrap().unwrap();
    assert!(second.starts_with(&late_url) && second.contains("late_map"), "{second}");
    assert!(lines.next().is_none() && child.wait().unwrap().success());
    daemon.stop();
}

#[test]
fn rescan_ends_when_server_is_removed() {
    let sandbox = Sandbox::new("");
    sandbox.configure_scan(QUICK_TIMEOUTS, "");
    let daemon = sandbox.start();
    let (_socket, url) = silent_socket();
    sandbox.ok(["servers", "add", &url]);
    wait_until("the server has class 7", || sandbox.list(&["--class", "7"]).len() == 1);
    // The scan takes longer than this test waits.
    sandbox.configure_scan("timeout_ms = 30000\nretries = 4\n", "");
    sandbox.ok(["reload"]);
    let mut child = sandbox.command(["rescan", &url]).stdout(Stdio::piped()).spawn().unwrap();
    wait_until("a scan is in flight", || sandbox.status()["engine"]["in_flight"] == 1);
    sandbox.ok(["servers", "remove", &url]);
    wait_until("the rescan ends", || child.try_wait().unwrap().is_some());
    daemon.stop();
}

/// Replies to every `getstatus` until it is dropped.
struct Replies {
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Replies {
    fn start(socket: UdpSocket) -> Replies {
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let stopping = Arc::<AtomicBool>::default();
        let stop = stopping.clone();
        let thread = std::thread::spawn(move || reply_to_queries(&socket, &stop));
        Replies { stopping, thread: Some(thread) }
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

fn reply_to_queries(socket: &UdpSocket, stopping: &AtomicBool) {
    let mut buffer = [0; 2_048];
    while !stopping.load(Ordering::Relaxed) {
        let Ok((len, client)) = socket.recv_from(&mut buffer) else { continue };
        let Some(nonce) = buffer[..len].strip_prefix(b"\xff\xff\xff\xffgetstatus ") else { continue };
        let nonce = String::from_utf8_lossy(nonce.trim_ascii()).into_owned();
        let info =
            format!("\\challenge\\{nonce}\\mapname\\late_map\\gamename\\baseq3\\sv_hostname\\L\\sv_maxclients\\8");
        let reply = [b"\xff\xff\xff\xffstatusResponse\n".as_slice(), info.as_bytes(), b"\n5 50 \"A\"\n"].concat();
        socket.send_to(&reply, client).unwrap();
    }
}

// Boards -----------------------------------------------------------------

#[test]
fn top_player_and_greylist_commands_agree() {
    let fleet = fleet(8, 13, 60.0, FaultShares::NONE);
    let sandbox = Sandbox::new("");
    let daemon = start_and_scan_all(&sandbox, &fleet);
    let server = busiest(&sandbox);

    let mut best = sandbox.json(["top", &server, "--ranking", "points", "-n", "3"]);
    let points = best.remove(0);
    assert_eq!(
        (&points["scope"], &points["ranking"], &points["closed"]),
        (&format!("server:{server}").into(), &"points".into(), &false.into())
    );
    assert_eq!(best.iter().map(|row| row["position"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(best.is_sorted_by(|a, b| a["score"].as_f64() >= b["score"].as_f64()), "{points}");
    assert!(points["size"].as_u64() >= Some(3));
    let human = sandbox.ok(["top", &server, "--ranking", "time", "-n", "2"]);
    assert!(human.starts_with(&format!("time on {server} in ")) && human.lines().count() == 4, "{human}");

    let young = sandbox.ok(["top", &server]);
    assert!(young.contains(", 0 players\nnobody has played for 12 minutes yet, "), "{young}");
    assert!(young.contains("; the first will have in "), "{young}");

    let (name, key) = (best[0]["name"].as_str().unwrap(), &best[0]["player_key"]);
    let player = sandbox.json(["player", name]);
    let player = player.iter().find(|row| row["player_key"] == *key).expect("the first player is known");
    let week = &player["weeks"].as_array().unwrap().iter().find(|week| week["server"] == server.as_str()).unwrap();
    assert!(week["points"].as_f64() >= best[0]["score"].as_f64(), "points only grow: {week} {best:?}");
    assert_eq!(
        week["time_ms"].as_u64(),
        Some(week["measured_ms"].as_u64().unwrap() + 60_000 * week["starts"].as_u64().unwrap())
    );
    assert!(sandbox.ok(["player", name]).contains(&server));

    for (args, code, printed) in [
        (vec!["top", &server, "--ranking", "pionts"], 2, "did you mean points?"),
        (vec!["top", &server, "--window", "2026-47"], 2, "2026-47"),
        (vec!["top", &server, "--window", "2001-W01"], 1, "2001-W01"),
        (vec!["top", "quake3://127.9.9.9:1"], 1, "127.9.9.9:1"),
        (vec!["player", "nobody is called this"], 1, "nobody is called this"),
        (vec!["greylist", "quake3://127.9.9.9:1", "--reason", "x"], 1, "127.9.9.9:1"),
    ] {
        let done = sandbox.run(&args);
        assert_eq!(done.status.code(), Some(code), "{args:?}: {}{}", done.out, done.err);
        assert!(done.err.contains(printed), "{args:?}: {}", done.err);
    }

    let board = || sandbox.top(&server, "time");
    let no_rows = Vec::<Value>::new();
    let out = sandbox.ok(["greylist", &server, "--reason", "two servers, one list"]);
    assert_eq!(out, format!("{server}  greylisted: two servers, one list\n"));
    let show = || sandbox.json(["servers", "show", &server])[0].clone();
    assert_eq!(show()["greylist_reason"], "two servers, one list");
    assert_eq!(sandbox.status()["engine"]["greylisted"], 1);
    assert_eq!(sandbox.list(&["--greylisted"]).iter().map(url).collect::<Vec<_>>(), [server.as_str()]);
    let seen = show()["last_seen_ms"].as_i64().unwrap();
    wait_until("the greylisted server is scanned", || show()["last_seen_ms"].as_i64().unwrap() >= seen + 3_000);
    assert_eq!(board(), no_rows, "a greylisted server is not ranked");

    let lifted = sandbox.json(["greylist", &server, "--lift"]);
    assert_eq!(lifted[0]["outcome"], "lifted");
    assert!(show()["greylist_reason"].is_null());
    let before = board();
    assert_ne!(before, no_rows, "its rows are ranked again");
    wait_until("statistics continue", || board() != before);
    daemon.stop();
}

/// Requests that change nothing say so, and why; the log has a line for each that changes something.
#[test]
fn change_of_server_is_answered_and_logged_as_it_happened() {
    let sandbox = Sandbox::new("");
    let daemon = sandbox.start();
    let urls: Vec<String> = (1..4).map(|n| format!("quake3://127.0.0.1:{n}")).collect();
    let [a, b, c] = [&*urls[0], &urls[1], &urls[2]];
    sandbox.ok(["servers", "add", a, b, c, "--tag", "ctf"]);
    sandbox.ok(["servers", "remove", c]);
    for (args, want) in [
        (&["servers", "add", c][..], "restored with its history"),
        (&["servers", "remove", c], "removed"),
        (&["servers", "tag", a, "--remove", "nosuch"], "unchanged: it does not have the tag nosuch"),
        (&["servers", "tag", a, "--add", "ctf"], "unchanged: it has the tag ctf already"),
        (
            &["servers", "tag", a, "--add", "ctf", "--remove", "x", "--remove", "y"],
            "unchanged: it has the tag ctf already, and it does not have the tags x, y",
        ),
        (&["servers", "tag", a, "--add", "duel"], "tags changed: it has the tags ctf, duel"),
        (&["servers", "tag", b, "--remove", "ctf"], "tags changed: it has no tags"),
        (&["greylist", a, "--lift"], "unchanged: it is not greylisted"),
        (&["greylist", a, "--reason", "fake"], "greylisted: fake"),
        (&["greylist", a, "--reason", "fake"], "unchanged: it is greylisted already, for the same reason"),
        (&["greylist", a, "--reason", "bots"], "greylisted: bots"),
        (&["greylist", a, "--lift"], "removed from the greylist"),
        (&["servers", "trust", a, "--revoke", "frozen_list"], "unchanged: all checks apply to it"),
        (&["servers", "trust", a, "--except", "frozen_list"], "checks changed: exempt from frozen_list"),
        (&["servers", "trust", a, "--except", "frozen_list"], "unchanged: exempt from frozen_list"),
        (&["boost", a, "--for", "0s"], "unchanged: it is not boosted"),
        (&["servers", "budget", a, "--default"], "unchanged: as scan.budget says"),
        (&["servers", "budget", a, "--scans", "3"], "budget set: 3"),
        (&["servers", "budget", a, "--scans", "3.0"], "unchanged: 3"),
        (&["servers", "budget", a, "--default"], "budget set: as scan.budget says"),
        (&["servers", "budget", "--tag", "duel", "--scans", "0"], "budget set: 0"),
    ] {
        assert_eq!(
            sandbox.ok(args),
            format!("{}  {want}\n", args.iter().find(|arg| arg.contains("://")).unwrap_or(&a))
        );
    }
    let refused = sandbox.run(["servers", "budget", a, "--scans", "7"]);
    assert!(refused.err.contains("7 is no budget; expected 0 for a fixed grid, or 0.75 to 6"), "{}", refused.err);
    let refused = sandbox.run(["servers", "budget", "--tag", "none", "--scans", "1"]);
    assert!(refused.err.contains("no server has the tag none; `clqd servers tags` lists all tags"), "{}", refused.err);
    let tags = "tag   servers  online  players\nctf         1       0        0\nduel        1       0        0\n";
    assert_eq!(sandbox.ok(["servers", "tags"]), tags);
    for args in [&["servers", "tag", c, "--add", "x"][..], &["greylist", c, "--lift"], &["servers", "remove", c]] {
        let removed = sandbox.run(args);
        assert_eq!(removed.status.code(), Some(1), "{}", removed.out);
        assert!((removed.out + &removed.err).contains("removed"), "{args:?}");
    }
    let log = daemon.stop();
    let count = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    for (line, times) in [
        (&*format!("servers added servers=\"{a} and 2 others\" added=3 restored=0 tagged=0 tags=\"ctf\""), 1),
        (&*format!("servers added servers=\"{c}\" added=0 restored=1 tagged=0"), 1),
        (&*format!("tags of servers changed servers=\"{a}\" add=\"duel\" remove=\"\""), 1),
        (&*format!("tags of servers changed servers=\"{b}\" add=\"\" remove=\"ctf\""), 1),
        ("tags of servers changed", 2),
        (&*format!("server greylisted url={a} reason=\"fake\""), 1),
        ("server greylisted", 2),
        (&*format!("server removed from the greylist url={a}"), 1),
        (&*format!("screening of a server changed url={a} except=\"frozen_list\" revoke=\"\""), 1),
        ("screening of a server changed", 1),
        (&*format!("budget of scans changed servers=\"{a}\" budget=\"3\""), 1),
        ("budget of scans changed", 3),
        ("boost", 0),
        ("Some(", 0),
    ] {
        assert_eq!(count(line), times, "{line}: {log}");
    }
    let daemon = sandbox.start();
    let budget = |url: &str| sandbox.json(["servers", "show", url])[0]["elastic"]["budget"].as_f64();
    assert_eq!([budget(a), budget(b)], [None, Some(1.15)], "a restart keeps budgets");
    daemon.stop();
}

/// The simulation needs no daemon. Its figures are tested in `src/truth/`.
#[test]
fn truth_prints_a_line_for_each_budget() {
    let sandbox = Sandbox::new("");
    // With an interval of one second, it simulates 60 times as many scans.
    sandbox.configure_scan("interval_class1_s = 60\n", "");
    let table = sandbox.ok(["truth", "--servers", "2", "--days", "1", "--budget", "0,2"]);
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    let tables: Vec<&[Vec<&str>]> = lines.split(Vec::is_empty).collect();
    assert_eq!(tables.len(), 2, "{table}");
    for (lines, fourth) in tables.into_iter().zip(["scans", "sure"]) {
        assert_eq!(lines.len(), 3, "{table}");
        assert_eq!(lines[0][..4], ["scenario", "budget", "seed", fourth]);
        assert_eq!((&lines[1][..3], &lines[2][..3]), (&["standard", "0", "1"][..], &["standard", "2", "1"][..]));
    }
    let rows = sandbox.json(["truth", "--servers", "1", "--days", "1", "--budget", "0"]);
    assert_eq!(rows.iter().map(|row| row["budget"].as_f64()).collect::<Vec<_>>(), [Some(0.0)]);
    assert!(rows[0]["scans"].as_f64() > Some(0.0), "{rows:?}");
    for (args, message) in [
        (["truth", "--budget", "0.5"], "0.5 is no budget; expected 0 for a fixed grid, or 0.75 to 6"),
        (["truth", "--scenario", "tea"], "no scenario is called \"tea\": there are standard, short-rounds"),
    ] {
        let refused = sandbox.run(args);
        assert_eq!(refused.status.code(), Some(2), "{}", refused.err);
        assert!(refused.err.contains(message), "{}", refused.err);
    }
}

#[test]
fn status_reports_daemon_engine_and_scanner() {
    let fleet = fleet(5, 14, 10.0, FaultShares::NONE);
    let sandbox = Sandbox::new("");
    let daemon = start_and_scan_all(&sandbox, &fleet);
    let status = sandbox.status();
    assert_eq!(status["kind"], "status");
    assert_eq!(status["daemon"]["pid"].as_i64(), Some(daemon.pid().as_raw().into()));
    assert_eq!(status["daemon"]["config_file"].as_str(), sandbox.config().to_str());
    assert_eq!(status["engine"]["servers"], 5);
    let by_class: u64 =
        status["engine"]["servers_by_class"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(by_class, 5);
    assert!(status["engine"]["counts"]["snapshots"].as_u64() >= Some(5));
    assert!(status["archive"].is_null());
    let counters = status["counters"].as_object().unwrap();
    assert!(counters.iter().any(|(name, n)| name.starts_with("scan.") && n.as_u64() >= Some(5)), "{counters:?}");
    let human = sandbox.ok(["status"]);
    assert!(human.contains(&format!("pid {}", daemon.pid())) && human.contains("\nservers   5: "), "{human}");
    assert!(human.lines().count() <= 20 && !human.contains("counters"), "{human}");
    assert!(sandbox.ok(["status", "--counters"]).contains("counters  "));
    daemon.stop();
}

// Without a daemon -------------------------------------------------------

/// The state has servers and players of recorded scans.
#[test]
fn lists_fit_a_terminal_of_80_columns() {
    let sandbox = Sandbox::new("");
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/scan-log.jsonl");
    sandbox.ok(["replay".as_ref(), log.as_ref(), "--state".as_ref(), sandbox.state().as_os_str()]);
    let server = "source://127.0.1.0:27960";
    let name = sandbox.json(["board", "page", "--server", server, "--window", "2025-W47"])[1]["name"].clone();
    let narrow = sandbox.with_env("COLUMNS", "80");
    for (args, column) in [
        (vec!["servers", "list"], "seen"),
        (vec!["servers", "best", server], "positions"),
        (vec!["top", server, "--window", "2025-W47"], "reached"),
        (vec!["board", "page", "--server", server, "--window", "2025-W47"], "reached"),
        (vec!["board", "windows"], "phase"),
        (vec!["maps"], "share"),
        (vec!["map", "q3dm6"], "share"),
        (vec!["player", name.as_str().unwrap()], "elo"),
        (vec!["player", "search", name.as_str().unwrap()], ""),
    ] {
        let out = narrow.ok(&args);
        assert!(out.lines().count() > 1 || args[1] == "search", "{out}");
        assert!(out.contains(column), "{args:?}: {out}");
        let is_wide = |line: &&str| line.chars().count() > 80 && !line.starts_with("next page: ");
        let wide = out.lines().find(is_wide);
        assert_eq!(wide, None, "{args:?}: {out}");
    }
    // All columns without a limit.
    assert!(narrow.with_env("COLUMNS", "400").ok(["servers", "list"]).contains("  rank  seen"));
}

#[test]
fn without_daemon_reads_use_state_and_writes_fail() {
    let sandbox = Sandbox::new("");
    let done = sandbox.run(["status"]);
    assert_eq!(done.status.code(), Some(1));
    let state = sandbox.state().display().to_string();
    assert!(done.err.contains("not running") && done.err.contains(&state), "{}", done.err);
    assert!(!sandbox.state().exists(), "a read command creates no state directory");

    let fleet = fleet(6, 15, 60.0, FaultShares::NONE);
    let daemon = start_and_scan_all(&sandbox, &fleet);
    let server = busiest(&sandbox);
    let name = sandbox.top(&server, "points")[0]["name"].clone();
    // A map is one of the maps when there is time on it, after a second scan.
    sandbox.ok(["rescan", &server]);
    let map = sandbox.json(["servers", "show", &server])[0]["maps"][0]["map"].as_str().unwrap().to_owned();
    daemon.stop();

    for args in [
        vec!["status"],
        vec!["servers", "list"],
        vec!["servers", "show", &server],
        vec!["top", &server, "--ranking", "points"],
        vec!["player", name.as_str().unwrap()],
        vec!["player", "search", name.as_str().unwrap()],
        vec!["servers", "best", &server],
        vec!["map", &map],
        vec!["maps", &map],
        vec!["overview"],
        vec!["board", "windows"],
    ] {
        for json in [&["--json"][..], &[]] {
            let done = sandbox.run([json, &args].concat());
            assert_eq!(done.status.code(), Some(0), "{args:?}: {}", done.err);
            assert!(done.err.contains("not running") && done.err.contains("; this is the state of "), "{}", done.err);
            assert!(!done.out.is_empty(), "{args:?}");
        }
    }
    assert!(sandbox.status()["daemon"].is_null());
    let list = sandbox.path("list");
    std::fs::write(&list, "quake3://127.0.0.1:1\n").unwrap();
    for args in [
        vec!["servers", "add", "quake3://127.0.0.1:1"],
        vec!["servers", "remove", &server],
        vec!["servers", "import", list.to_str().unwrap()],
        vec!["rescan", &server],
        vec!["rescan", "--all-unknown"],
        vec!["greylist", &server, "--reason", "x"],
        vec!["greylist", &server, "--lift"],
        vec!["reload"],
    ] {
        let done = sandbox.run(&args);
        assert_eq!((done.status.code(), done.out.as_str()), (Some(1), ""), "{args:?}");
        assert!(done.err.contains("The daemon is not running") && done.err.contains("clqd run"), "{}", done.err);
    }
    assert_eq!(sandbox.list(&[]).len(), 6, "nothing has changed");
}

// Signals ----------------------------------------------------------------

#[test]
fn reload_applies_changes_and_keeps_old_config_on_error() {
    let sandbox = Sandbox::new("");
    let mut daemon = sandbox.start();
    let config = sandbox.config();

    sandbox.configure("log_filter = \"info,clqd::scan=debug\"");
    daemon.signal(Signal::SIGHUP);
    daemon.wait_for_log("changed: log_filter");

    let good = std::fs::read_to_string(&config).unwrap();
    let broken = good.replace("timeout_ms = 2000", "timeout_mz = 2000");
    let line = 1 + broken.lines().position(|line| line.contains("timeout_mz")).unwrap();
    std::fs::write(&config, &broken).unwrap();
    daemon.signal(Signal::SIGHUP);
    let log = daemon.wait_for_log("the old configuration stays");
    assert!(log.contains(&format!("{}:{line}: scan.timeout_mz", config.display())), "{log}");
    assert!(log.contains("ERROR") && log.contains("did you mean") && log.contains("timeout_ms"), "{log}");
    let refused = sandbox.run(["--socket".as_ref(), sandbox.socket().as_os_str(), "reload".as_ref()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.err.contains(&format!(":{line}: scan.timeout_mz")), "{}", refused.err);
    assert!(daemon.exit_status().is_none());

    // The valid config again: nothing of the invalid one was applied.
    std::fs::write(&config, &good).unwrap();
    let printed = sandbox.run(["reload"]);
    assert_eq!(printed.status.code(), Some(0), "{}", printed.err);
    assert!(printed.err.contains("nothing has changed"), "{}", printed.err);

    let elsewhere = sandbox.path("elsewhere");
    let moved = good.replace(&format!("{:?}", sandbox.state()), &format!("{elsewhere:?}"));
    assert_ne!(moved, good);
    std::fs::write(&config, moved.replace("timeout_ms = 2000", "timeout_ms = 2500")).unwrap();
    daemon.signal(Signal::SIGHUP);
    let log = daemon.wait_for_log("kept until a restart: state_dir");
    assert!(log.contains("changed: scan.timeout_ms"), "{log}");
    assert!(!elsewhere.exists());
    assert_eq!(sandbox.status()["daemon"]["state_dir"].as_str(), sandbox.state().to_str());
    daemon.stop();
}

#[test]
fn reload_applies_new_scan_intervals() {
    let fleet = fleet(3, 16, 1.0, FaultShares::NONE);
    let sandbox = Sandbox::new("");
    let slow = |text: &str| text.replace("interval_class1_s = 1\ninterval_class2_s = 2", "interval_class1_s = 600");
    let fast = std::fs::read_to_string(sandbox.config()).unwrap();
    std::fs::write(sandbox.config(), slow(&fast)).unwrap();
    let daemon = start_and_scan_all(&sandbox, &fleet);
    let seen = || sandbox.json(["servers", "show", &fleet.url(0)])[0]["last_seen_ms"].as_i64().unwrap();
    let before = seen();
    std::fs::write(sandbox.config(), &fast).unwrap();
    sandbox.ok(["reload"]);
    wait_until("the new interval is used", || seen() >= before + 4_000);
    daemon.stop();
}

/// All other tests stop with SIGTERM.
#[test]
fn clean_stop_keeps_reported_scores() {
    let fleet = fleet(6, 17, 60.0, FaultShares::NONE);
    let sandbox = Sandbox::new("");
    let mut daemon = start_and_scan_all(&sandbox, &fleet);
    let server = busiest(&sandbox);
    let top = || sandbox.top(&server, "time");
    let reported = top();
    daemon.signal(Signal::SIGINT);
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    assert!(daemon.log().contains("all state is on disk"), "{}", daemon.log());
    assert!(!sandbox.socket().exists(), "the socket's file is removed");
    let score = |top: &[Value], key: &Value| {
        let row = top.iter().find(|row| row["player_key"] == *key).cloned();
        row.expect("a row of each player")["score"].as_f64().unwrap()
    };
    let stored = top();
    for row in &reported {
        assert!(score(&stored, &row["player_key"]) >= row["score"].as_f64().unwrap(), "{row}");
    }
    // The next daemon continues from there.
    let daemon = sandbox.start();
    let next = top();
    for row in &stored {
        assert!(score(&next, &row["player_key"]) >= row["score"].as_f64().unwrap(), "{row}");
    }
    daemon.stop();
}

#[test]
fn control_socket_has_mode_0660_and_stale_one_is_replaced() {
    let sandbox = Sandbox::new("");
    let daemon = sandbox.start();
    let mode = std::fs::metadata(sandbox.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o660, "{mode:o}");
    // A killed daemon leaves its socket; the next one replaces it.
    daemon.kill();
    assert!(sandbox.socket().exists());
    assert_eq!(sandbox.run(["rescan", "--all-unknown"]).status.code(), Some(1), "no daemon listens on it");
    sandbox.start().stop();
}

#[test]
fn systemd_receives_ready_reloading_stopping_and_watchdog() {
    let sandbox = Sandbox::new("");
    let notify_socket = UnixDatagram::bind(sandbox.path("notify.sock")).unwrap();
    notify_socket.set_read_timeout(Some(sandbox::WAIT_MAX)).unwrap();
    let sandbox = {
        let socket = sandbox.path("notify.sock").display().to_string();
        sandbox.with_env("NOTIFY_SOCKET", socket).with_env("WATCHDOG_USEC", "600000")
    };
    let receive = || {
        let mut buffer = [0; 1_024];
        let n = notify_socket.recv(&mut buffer).expect("systemd is notified in time");
        String::from_utf8_lossy(&buffer[..n]).into_owned()
    };
    // The next message other than WATCHDOG, and the number of WATCHDOG messages before it.
    let next = || {
        let mut watchdog_messages = 0;
        loop {
            match receive() {
                text if text.contains("WATCHDOG=1") => watchdog_messages += 1,
                text => return (text, watchdog_messages),
            }
        }
    };
    let daemon = sandbox.start();
    let (first, watchdog_messages) = next();
    assert!(first.contains("READY=1") && watchdog_messages == 0, "{first}");
    for _ in 0..3 {
        assert!(receive().contains("WATCHDOG=1"));
    }
    daemon.signal(Signal::SIGHUP);
    let (reloading, _) = next();
    assert!(reloading.contains("RELOADING=1") && reloading.contains("MONOTONIC_USEC="), "{reloading}");
    assert!(next().0.contains("READY=1"));
    daemon.signal(Signal::SIGTERM);
    assert!(next().0.contains("STOPPING=1"));
    // archive.drain_timeout_s, and a minute for the last commit.
    assert!(next().0.contains("EXTEND_TIMEOUT_USEC=80000000"));
    daemon.stop();
}
