//! The packets that clqd sends to addresses that are not loopback, counted by the servers that receive them, in a
//! network namespace of their own. The servers answer each query with another challenge, for ever.
//!
//! It needs root, `unshare` and `ip`, so it is ignored by default: run `bash tests/run --namespace`.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Set in the namespace.
const INSIDE: &str = "CLQD_IN_NAMESPACE";

/// The limits of the shipped configuration: packets a second, and packets at once after a pause.
const ADDRESS: (f64, f64) = (5.0, 10.0);
const SUBNET: (f64, f64) = (50.0, 100.0);

/// How long the servers are scanned, and the windows in which packets are counted.
const RUN: Duration = Duration::from_secs(25);
const WINDOWS_S: [u64; 3] = [1, 5, 10];

#[test]
#[ignore = "needs root and a network namespace: bash tests/run --namespace"]
fn packets_to_servers_that_challenge_for_ever_stay_within_the_limits() {
    if std::env::var_os(INSIDE).is_some() {
        let one_address: Vec<(Ipv4Addr, u16)> = (0..20).map(|n| (Ipv4Addr::new(10, 77, 0, 1), 27_015 + n)).collect();
        let one_subnet: Vec<(Ipv4Addr, u16)> = (1..=20).map(|n| (Ipv4Addr::new(10, 77, 1, n), 27_015)).collect();
        assert_within("one address", &one_address, ADDRESS);
        assert_within("one /24", &one_subnet, SUBNET);
        return;
    }
    let addresses = "ip link set lo up && ip addr add 10.77.0.1/24 dev lo && \
        for n in $(seq 20); do ip addr add 10.77.1.$n/24 dev lo; done && exec \"$@\"";
    let own = std::env::current_exe().expect("the program of the test");
    let done = Command::new("unshare")
        .args(["--net", "sh", "-ec", addresses, "sh"])
        .arg(own)
        .args([
            "--ignored",
            "--nocapture",
            "--exact",
            "packets_to_servers_that_challenge_for_ever_stay_within_the_limits",
        ])
        .env(INSIDE, "1")
        .output()
        .expect("unshare");
    let text = String::from_utf8_lossy(&done.stdout);
    print!("{text}{}", String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && text.contains("1 passed"), "{text}");
}

/// Lets a daemon scan the servers as often as it can, and counts what they receive.
fn assert_within(what: &str, servers: &[(Ipv4Addr, u16)], (per_second, burst): (f64, f64)) {
    let stopping = Arc::new(AtomicBool::new(false));
    let arrivals = Arc::new(Mutex::new(Vec::new()));
    let threads: Vec<_> = servers
        .iter()
        .map(|&server| {
            let (stopping, arrivals) = (stopping.clone(), arrivals.clone());
            let socket = UdpSocket::bind(server).expect("a free port of the namespace");
            socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
            std::thread::spawn(move || challenge_for_ever(&socket, &stopping, &arrivals))
        })
        .collect();
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name).display().to_string();
    let (list, config) = (at("servers"), at("clqd.toml"));
    let urls = servers.iter().map(|(ip, port)| format!("source://{ip}:{port}\n"));
    fs::write(&list, urls.collect::<String>()).expect("a file");
    // As shipped, except that each server is due again at once.
    let every_second: String = (1..=5).map(|class| format!("interval_class{class}_s = 1\n")).collect();
    let settings = format!(
        "state_dir = {:?}\ncontrol_socket = {:?}\n[scan]\nallow_private = true\n{every_second}[web]\nlisten = \"\"\n",
        at("state"),
        at("control.sock")
    );
    fs::write(&config, settings).expect("a file");
    let clqd = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clqd"));
        command.args(["--config", &config]).args(args).stdout(Stdio::null());
        command
    };
    let mut daemon = clqd(&["run"]).stderr(Stdio::null()).spawn().expect("the daemon starts");
    while !clqd(&["servers", "import", &list]).stderr(Stdio::null()).status().expect("clqd starts").success() {
        assert!(daemon.try_wait().expect("a process").is_none(), "the daemon has ended");
        std::thread::sleep(Duration::from_millis(100));
    }
    let began = Instant::now();
    while began.elapsed() < RUN {
        // It ends when all are scanned, so the last one is left to itself.
        let mut rescan = clqd(&["rescan", "--all-unknown"]).stderr(Stdio::null()).spawn().expect("clqd starts");
        while began.elapsed() < RUN && rescan.try_wait().expect("a process").is_none() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = rescan.kill();
        let _ = rescan.wait();
    }
    assert!(daemon.try_wait().expect("a process").is_none(), "the daemon has ended");
    daemon.kill().expect("the daemon is stopped");
    let _ = daemon.wait();
    stopping.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("a server"));
    let mut arrivals = arrivals.lock().expect("the times").clone();
    arrivals.sort_unstable();
    let mut is_reached = false;
    for window_s in WINDOWS_S {
        let window = Duration::from_secs(window_s);
        let in_window = |from: &Instant| arrivals.iter().filter(|at| (*from..*from + window).contains(at)).count();
        let most = arrivals.iter().map(in_window).max().unwrap_or(0);
        let limit = burst + per_second * window_s as f64;
        println!("{what}: at most {most} packets in {window_s} s; the limit is {limit}");
        is_reached |= most as f64 > 0.9 * limit;
        // One more may be on its way when the window begins.
        assert!(most as f64 <= limit + 1.0, "{what}: {most} packets in {window_s} s, more than {limit}");
    }
    // The servers were really asked as fast as the limit permits.
    assert!(is_reached, "{what}: {} packets in {RUN:?}", arrivals.len());
}

fn challenge_for_ever(socket: &UdpSocket, stopping: &AtomicBool, arrivals: &Mutex<Vec<Instant>>) {
    let mut buffer = [0; 2_048];
    let mut number = 0_u32;
    while !stopping.load(Ordering::Relaxed) {
        let Ok((_, client)) = socket.recv_from(&mut buffer) else { continue };
        arrivals.lock().expect("the times").push(Instant::now());
        number += 1;
        let challenge = [b"\xff\xff\xff\xffA", &number.to_le_bytes()[..]].concat();
        let _ = socket.send_to(&challenge, client);
    }
}
