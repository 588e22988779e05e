//! Scanners on other machines: they scan, are killed, are cut off and come back, and no server is missed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clqd::api::requests::ScannersExchange;
use clqd::fleet::FaultShares;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::sandbox::{Daemon, Sandbox, fleet, wait_until};

const SERVERS: u32 = 12;

/// Keys of `[scan]` for tests in which no server that answers may be missed, however busy the machine is.
const PATIENT: &str = "timeout_ms = 5000\nretries = 4\n";

/// A daemon with scanners, which are on this machine.
struct Scanning {
    sandbox: Sandbox,
    daemon: Daemon,
    address: String,
}

/// A scanner; dropping it kills it.
struct Scanner(Child);

impl Drop for Scanner {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

impl Scanner {
    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id() as i32), signal).expect("the scanner runs");
    }
}

impl Scanning {
    fn start(scan: &str) -> Scanning {
        let sandbox = Sandbox::new("");
        let made = sandbox.ok(["token", "new", "scanners", "--may", "scan"]);
        let (token, section) = made.split_once("\n\n").expect("a token and a section");
        fs::write(sandbox.path("token"), token).expect("written");
        // No other test listens at this address, so a port that was free stays free.
        sandbox.configure_scan(scan, &format!("[web]\nlisten = \"127.0.0.9:0\"\n{section}"));
        let daemon = sandbox.start();
        let address = sandbox.status()["daemon"]["web"].as_str().expect("an address").to_owned();
        Scanning { sandbox, daemon, address }
    }

    fn command(&self, name: &str, region: &str) -> Command {
        self.command_to(&format!("http://{}", self.address), name, region)
    }

    fn command_to(&self, join: &str, name: &str, region: &str) -> Command {
        let token = self.sandbox.path("token");
        let mut command =
            self.sandbox.command(["scan", "--join", join, "--region", region, "--name", name, "--token-file"]);
        command.arg(token);
        command
    }

    fn scanner(&self, name: &str, region: &str) -> Scanner {
        let log = fs::File::create(self.sandbox.path(&format!("{name}.log"))).expect("a log");
        let child = self.command(name, region).stdout(Stdio::null()).stderr(log).spawn();
        Scanner(child.expect("a process"))
    }

    fn scanners(&self) -> Vec<Value> {
        self.sandbox.json(["scanners"])
    }

    fn answered(&self, name: &str) -> u64 {
        let scanners = self.scanners();
        let scanner = scanners.iter().find(|scanner| scanner["name"] == name);
        scanner.map_or(0, |scanner| scanner["answered"].as_u64().expect("a number"))
    }

    /// Waits until every server was seen again.
    fn wait_for_all(&self) {
        let now_ms = self.sandbox.status()["engine"]["now_ms"].as_i64().expect("a time");
        wait_until("every server is seen again", || {
            self.sandbox.list(&[]).iter().all(|server| server["last_seen_ms"].as_i64().is_some_and(|ms| ms > now_ms))
        });
    }

    fn missed(&self) -> u64 {
        self.sandbox.status()["engine"]["counts"]["misses"].as_u64().expect("a number")
    }
}

#[test]
fn scanners_share_the_scans_and_may_be_lost() {
    let scanning = Scanning::start(PATIENT);
    let fleet = fleet(SERVERS, 71, 60.0, FaultShares::NONE);
    scanning.sandbox.add_servers(&fleet);
    let (one, two) = (scanning.scanner("one", "eu"), scanning.scanner("two", "us"));
    wait_until("both have scanned", || scanning.answered("one") > 20 && scanning.answered("two") > 20);
    let shown = scanning.sandbox.ok(["scanners"]);
    assert!(shown.starts_with("scanner") && shown.contains("eu") && shown.contains("us"), "{shown}");

    // One is killed in the middle of scans; the other one is stopped, and comes back.
    one.signal(Signal::SIGKILL);
    scanning.daemon.wait_for_log("a scanner is lost");
    scanning.wait_for_all();
    two.signal(Signal::SIGSTOP);
    wait_until("nobody has joined", || scanning.scanners().is_empty());
    scanning.wait_for_all();
    two.signal(Signal::SIGCONT);
    wait_until("it scans again", || scanning.answered("two") > 20);
    let again = scanning.scanner("one", "eu");
    wait_until("so does the first", || scanning.answered("one") > 20);
    scanning.wait_for_all();
    assert_eq!(scanning.missed(), 0, "a scanner that is lost is no fault of a server");
    drop((again, two));
    scanning.daemon.stop();
    scanning.sandbox.assert_replay_equals_state();
}

#[test]
fn outcomes_wait_while_the_daemon_is_away() {
    let mut scanning = Scanning::start(PATIENT);
    let fleet = fleet(SERVERS, 72, 60.0, FaultShares::NONE);
    scanning.sandbox.add_servers(&fleet);
    let port = scanning.address.rsplit(':').next().expect("a port").to_owned();
    let scanner = scanning.scanner("one", "eu");
    wait_until("it has scanned", || scanning.answered("one") > 20);
    // The same port, so that the scanner finds it again.
    let config = fs::read_to_string(scanning.sandbox.config()).expect("a config");
    fs::write(scanning.sandbox.config(), config.replace("127.0.0.9:0", &format!("127.0.0.9:{port}"))).expect("written");
    scanning.daemon.kill();
    std::thread::sleep(Duration::from_secs(1));
    scanning.daemon = scanning.sandbox.start();
    wait_until("it scans for the new daemon", || scanning.answered("one") > 20);
    scanning.wait_for_all();
    assert_eq!(scanning.missed(), 0);
    let log = fs::read_to_string(scanning.sandbox.path("one.log")).expect("a log");
    assert!(log.contains("cannot reach the daemon") && log.matches("the daemon answers").count() >= 2, "{log}");
    drop(scanner);
    scanning.daemon.stop();
    scanning.sandbox.assert_replay_equals_state();
}

#[test]
fn a_scanner_learns_which_outcomes_are_in_the_log() {
    let mut scanning = Scanning::start("");
    let exchange = |daemon: &Daemon, oldest: u64, first: u64, count: u64| {
        let missed =
            |id: u64| json!({"id": id, "server": 1, "age_ms": 5, "attempts": [], "missed": "timeout", "settings": []});
        let outcomes: Vec<Value> = (0..count).map(missed).collect();
        let request = json!({"name": "one", "region": "eu", "session": 7, "space": 0, "oldest": oldest, "first": first,
            "outcomes": outcomes});
        let request: ScannersExchange = serde_json::from_value(request).expect("a request");
        let answer = daemon.client().expect("a connection").lines(&request).expect("an answer").remove(0);
        (answer.received, answer.logged)
    };
    assert_eq!(exchange(&scanning.daemon, 0, 0, 3).0, 3);
    wait_until("they are in the log", || exchange(&scanning.daemon, 0, 3, 0) == (3, 3));
    assert_eq!(exchange(&scanning.daemon, 3, 5, 2).0, 3, "two are missing");
    assert_eq!(exchange(&scanning.daemon, 3, 3, 4).0, 7);
    // Another daemon has nothing of these, and what the scanner has no more is in the log.
    scanning.daemon.kill();
    scanning.daemon = scanning.sandbox.start();
    assert_eq!(exchange(&scanning.daemon, 6, 7, 1).0, 6);
    assert_eq!(exchange(&scanning.daemon, 6, 6, 2).0, 8);
    wait_until("they are in the log", || exchange(&scanning.daemon, 6, 8, 0) == (8, 8));
    let request =
        json!({"name": "one", "region": "eu", "session": 7, "space": 0, "oldest": 2, "first": 1, "outcomes": []});
    let request: ScannersExchange = serde_json::from_value(request).expect("a request");
    let error = scanning.daemon.client().expect("a connection").lines(&request).expect_err("not valid").to_string();
    assert!(error.contains("the numbers of outcomes are not valid"), "{error}");
    scanning.daemon.stop();
}

#[test]
fn a_server_is_missed_when_both_regions_miss_it() {
    let scanning = Scanning::start(PATIENT);
    let fleet = fleet(SERVERS, 73, 60.0, FaultShares::NONE);
    scanning.sandbox.add_servers(&fleet);
    let _one = scanning.scanner("one", "eu");
    wait_until("it has scanned", || scanning.answered("one") > 50);
    let missed = |scanners: Vec<Value>| scanners.iter().filter_map(|scanner| scanner["missed"].as_u64()).sum::<u64>();
    let before = missed(scanning.scanners());
    let closed = crate::sandbox::closed_port_url();
    scanning.sandbox.ok(["servers", "add", &closed]);
    // Both regions miss the closed port.
    wait_until("the closed port is a miss", || {
        let list = scanning.sandbox.list(&[]);
        list.iter().any(|server| server["url"] == closed.as_str() && server["missed"].as_u64() > Some(0))
    });
    assert!(missed(scanning.scanners()) > before, "the other region was asked, too");
    assert_eq!(scanning.sandbox.status()["counters"]["scanners.misses_refuted"], 0);
    scanning.daemon.stop();
}

/// Makes an authority, and a certificate of `localhost` that it signs, with its key.
fn certificates(dir: &Path, name: &str) -> (PathBuf, PathBuf, PathBuf) {
    let path = |end: &str| dir.join(format!("{name}{end}"));
    let openssl = |script: &str| {
        let made = Command::new("sh").args(["-ec", script]).current_dir(dir).env("N", name).output().expect("openssl");
        assert!(made.status.success(), "{made:?}");
    };
    openssl(
        "K='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
         openssl req -x509 $K -days 2 -subj /CN=authority -keyout $N-ca.key -out $N-ca.pem
         openssl req $K -subj /CN=localhost -keyout $N.key -out $N.csr
         printf 'subjectAltName=DNS:localhost' > $N.ext
         openssl x509 -req -in $N.csr -CA $N-ca.pem -CAkey $N-ca.key -CAcreateserial -days 2 -extfile $N.ext -out $N.pem",
    );
    (path("-ca.pem"), path(".pem"), path(".key"))
}

#[test]
fn scanners_speak_tls() {
    let scanning = Scanning::start("");
    let fleet = fleet(3, 74, 60.0, FaultShares::NONE);
    let dir = scanning.sandbox.path("");
    let (ca, cert, key) = certificates(&dir, "right");
    let (other, ..) = certificates(&dir, "wrong");
    let config = fs::read_to_string(scanning.sandbox.config()).expect("a config");
    let tls = format!("listen = \"127.0.0.1:0\"\ntls_cert = {cert:?}\ntls_key = {key:?}\n");
    fs::write(scanning.sandbox.config(), config.replace("listen = \"127.0.0.9:0\"\n", &tls)).expect("written");
    scanning.daemon.stop();
    let daemon = scanning.sandbox.start();
    let address = scanning.sandbox.status()["daemon"]["web"].as_str().expect("an address").to_owned();
    let scanning = Scanning { daemon, address, sandbox: scanning.sandbox };
    scanning.sandbox.add_servers(&fleet);
    let port = scanning.address.rsplit(':').next().expect("a port");
    let scanner = |name: &str, ca: &Path| {
        let log = fs::File::create(scanning.sandbox.path(&format!("{name}.log"))).expect("a log");
        let mut command = scanning.command_to(&format!("https://localhost:{port}"), name, "eu");
        command.arg("--ca").arg(ca);
        Scanner(command.stdout(Stdio::null()).stderr(log).spawn().expect("a process"))
    };
    let _right = scanner("right", &ca);
    wait_until("it has scanned", || scanning.answered("right") > 5);
    let _wrong = scanner("wrong", &other);
    let log = || fs::read_to_string(scanning.sandbox.path("wrong.log")).expect("a log");
    wait_until("another certificate is not accepted", || log().contains("cannot reach the daemon"));
    assert_eq!(scanning.answered("wrong"), 0);
    scanning.daemon.stop();
}

#[test]
fn scanners_need_their_permission_and_valid_names() {
    let scanning = Scanning::start("");
    let run = |command: &mut Command| {
        let output = command.output().expect("a process");
        (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    let mut command = scanning.command("one", "eu");
    command.arg("--ca").arg(scanning.sandbox.config());
    let (code, error) = run(&mut command);
    assert_eq!(code, Some(1));
    assert!(error.contains("is no certificate in PEM"), "{error}");
    let (code, error) = run(&mut scanning.command("a b", "eu"));
    assert_eq!(code, Some(1));
    assert!(error.contains("name \"a b\""), "{error}");
    let made = scanning.sandbox.ok(["token", "new", "reader", "--may", "read"]);
    let (token, section) = made.split_once("\n\n").expect("a token and a section");
    let config = fs::read_to_string(scanning.sandbox.config()).expect("a config");
    fs::write(scanning.sandbox.config(), format!("{config}\n{section}")).expect("written");
    scanning.sandbox.ok(["reload"]);
    fs::write(scanning.sandbox.path("token"), token).expect("written");
    let refused = scanning.scanner("reader", "eu");
    let log = || fs::read_to_string(scanning.sandbox.path("reader.log")).expect("a log");
    wait_until("it is refused", || log().contains("this needs scan"));
    drop(refused);
    scanning.daemon.stop();
}
