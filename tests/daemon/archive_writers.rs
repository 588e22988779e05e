//! Two daemons with copies of one state directory and one archive: the second one that writes is refused until an
//! admin decides. And an archive that is put back to an earlier time.

use crate::database::Database;
use crate::sandbox::{Sandbox, copy, fleet, wait_until};
use clqd::fleet::FaultShares;
use serde_json::Value;

fn fault(sandbox: &Sandbox) -> Value {
    sandbox.status()["archive"]["fault"]["kind"].clone()
}

#[test]
fn copied_state_writes_only_after_take_over() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let database = runtime.block_on(Database::new());
    let value = |sql: &str| runtime.block_on(database.value(sql));
    let config = format!("[archive]\nurl = {:?}\ninterval_s = 2\ndrain_timeout_s = 1", database.url());
    let (first, second) = (Sandbox::new(&config), Sandbox::new(&config));
    first.ok(["migrate"]);
    let fleet = fleet(4, 51, 60.0, FaultShares::NONE);
    let daemon = first.start();
    first.add_servers(&fleet);
    wait_until("players are in MySQL", || value("SELECT COUNT(*) > 5 FROM player_week") == "1");
    daemon.stop();
    copy(&first.state(), &second.state());

    // The copy goes on. The first one notices, and writes nothing.
    let epoch = || value("SELECT epoch FROM clq_writer");
    let before = epoch();
    let daemon = second.start();
    wait_until("the copy has written", || epoch() != before && fault(&second).is_null());
    let scanned = "SELECT MAX(last_scan_ms) FROM server";
    let after_start = value(scanned);
    wait_until("the copy writes on", || value(scanned) > after_start);
    daemon.stop();
    let (before, scanned_before) = (epoch(), value(scanned));
    let daemon = first.start();
    wait_until("another one has written", || fault(&first) == "in_use");
    let shown = first.ok(["status"]);
    assert!(shown.contains("FAULT") && shown.contains("clqd archive take-over"), "{shown}");
    assert_eq!((epoch(), value(scanned)), (before.clone(), scanned_before.clone()));
    daemon.kill();
    let daemon = first.start();
    wait_until("a kill changes nothing", || fault(&first) == "in_use");
    assert_eq!((epoch(), value(scanned)), (before, scanned_before));

    // The order of the admin survives a kill.
    let done = first.ok(["archive", "take-over"]);
    assert!(done.contains("everything is written again"), "{done}");
    daemon.kill();
    let daemon = first.start();
    wait_until("the archive is complete", || {
        let status = first.status();
        fault(&first).is_null()
            && status["archive"]["resync"].is_null()
            && !status["archive"]["last_complete_ms"].is_null()
    });
    daemon.stop();
    let daemon = second.start();
    wait_until("now the copy is refused", || fault(&second) == "in_use");
    daemon.stop();
}
