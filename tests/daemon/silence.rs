//! No server answers for a while, because the network of the daemon is down.

use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::sandbox::{QUICK_TIMEOUTS, Sandbox, WEB_WITHOUT_RATE_LIMIT, wait_until};

/// Simulated servers in a process of their own, which is stopped and continued.
struct Servers(Child);

impl Servers {
    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id().cast_signed()), signal).expect("it runs");
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn silent_since_ms(sandbox: &Sandbox) -> Value {
    sandbox.status()["daemon"]["silent_since_ms"].clone()
}

#[test]
fn misses_do_not_count_while_no_server_answers() {
    let sandbox = Sandbox::new("");
    let list = sandbox.path("list");
    let mut fleet =
        sandbox.command(["fleet", "--servers", "24", "--seed", "99", "--faults", "none", "--behaviours", "none"]);
    fleet.args(["--quake3-port", "0", "--source-port", "0", "--status-interval", "0", "--server-list"]).arg(&list);
    let servers = Servers(fleet.stdout(Stdio::null()).spawn().expect("clqd"));
    wait_until("the servers run", || list.exists());
    sandbox.configure_scan(&format!("{QUICK_TIMEOUTS}retry_failed_s = 2\n"), WEB_WITHOUT_RATE_LIMIT);
    let daemon = sandbox.start();
    sandbox.ok(["servers".as_ref(), "import".as_ref(), list.as_os_str()]);
    // On a busy machine a server may miss a scan. More than eight hosts must have answered the last one.
    let all_answer = || {
        let rows = sandbox.list(&["--online"]);
        rows.len() == 24 && rows.iter().all(|row| row["missed"] == 0)
    };
    wait_until("all answer", all_answer);
    assert_eq!(silent_since_ms(&sandbox), Value::Null);

    servers.signal(Signal::SIGSTOP);
    daemon.wait_for_log("no server answers any more");
    // Each is scanned every second or two: without the rule, three misses are soon there.
    let missed = || sandbox.status()["counters"]["scan.misses.timeout"].as_u64().unwrap_or(0);
    let before = missed();
    wait_until("each is scanned four times more", || missed() >= before + 4 * 24);
    wait_until("the status says it", || silent_since_ms(&sandbox).is_i64());
    let text = sandbox.ok(["status"]);
    assert!(text.contains("network   DOWN? no server answers for"), "{text}");
    let address = sandbox.status()["daemon"]["web"].as_str().expect("an address").to_owned();
    let home = crate::web::http::get(&address, "/").text().to_owned();
    assert!(home.contains("No server answers since <time"), "{home}");
    assert!(crate::web::http::get(&address, "/metrics").text().contains("clqd_network_silent 1"));
    let rows = sandbox.list(&[]);
    assert_eq!(rows.len(), 24);
    for row in &rows {
        // At most the scans that were on their way when the silence was noticed.
        assert!(row["missed"].as_u64().is_some_and(|missed| missed <= 2), "{row}");
        assert_eq!(row["online"], true, "{row}");
    }
    servers.signal(Signal::SIGCONT);
    daemon.wait_for_log("servers answer again");
    wait_until("no miss is left", all_answer);
    assert_eq!(silent_since_ms(&sandbox), Value::Null);
    daemon.stop();
    sandbox.assert_replay_equals_state();
}
