//! Servers that answer over TCP only, as an installation has them: few connections, a crash, and a restart.

use crate::sandbox::{QUICK_TIMEOUTS, Sandbox, fleet_of, wait_until};

#[test]
fn players_of_servers_over_tcp_are_ranked_and_replayed() {
    let protocols = "frostbite=0.4,minecraftstatus=0.3,fivem=0.3".parse().expect("protocols");
    let faults = "lossy=0.2,slow=0.1,silent=0.1".parse().expect("faults");
    let fleet = fleet_of(protocols, 30, 5, 60.0, faults);
    let sandbox = Sandbox::new("");
    // Most scans wait for a connection.
    let quick = format!("interval_class1_s = 1\n{QUICK_TIMEOUTS}retry_failed_s = 2\n");
    sandbox.configure_scan(&format!("{quick}tcp_connections_max = 2\n"), "");
    let daemon = sandbox.start();
    sandbox.add_servers(&fleet);
    let counter = |name: &str| sandbox.status()["counters"][name].as_u64().unwrap_or(0);
    let ranked = |least: usize| {
        let with_players = fleet.urls().iter().filter(|url| !sandbox.top(url, "time").is_empty()).count();
        with_players >= least
    };
    wait_until("servers have players", || ranked(5) && counter("scan.connection_waits") > 0);
    sandbox.configure_scan(&format!("{quick}tcp_connections_max = 50\n"), "");
    sandbox.ok(["reload"]);
    let before = counter("scan.connections");
    wait_until("the servers are scanned on", || counter("scan.connections") > before + 30);
    daemon.kill();
    let daemon = sandbox.start();
    wait_until("the servers are scanned after the crash", || counter("scan.connections") > 30 && ranked(5));
    daemon.stop();
    sandbox.assert_replay_equals_state();
}
