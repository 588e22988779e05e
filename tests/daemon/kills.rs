//! Kills the real daemon again and again, at random moments under load, also during its start. After each
//! restart, everything that it has acknowledged must be there ([`load`](crate::load)). At the end, a replay
//! of the whole log must give the same state.
//!
//! Checkpoints follow each other without a pause, and the database is compacted continuously.
//!
//! `CLQD_KILLS` is the number of kills (10), `CLQD_SEED` the seed. The daemon runs in real time, so a seed
//! does not repeat a run.

use std::cell::Cell;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;

use crate::load::{CLOSED_WEEKS, Load, Position, prepare};
use crate::sandbox::{QUICK_TIMEOUTS, Sandbox, copy, fleet, number, seed};
use clqd::client::ClientError;
use clqd::fleet::FaultShares;
use clqd::fleet::rng::{RngExt, SplitMix64};
use nix::sys::signal::{Signal, kill};

#[test]
fn kills_lose_no_acknowledged_change_and_log_replays_to_state() {
    let (kills, seed) = (number("CLQD_KILLS", 10), seed());
    eprintln!("seed {seed}, {kills} kills");
    let mut rng = SplitMix64::from_parts(&[seed, 3]);
    let faults: FaultShares = "slow=0.1,lossy=0.1,duplicating=0.05,partial=0.1".parse().expect("shares");
    let fleet = fleet(40, seed, 60.0, faults);
    let sandbox = Sandbox::new("");
    let prepared = sandbox.path("prepared");
    prepare(&prepared);
    copy(&prepared, &sandbox.state());
    // A week stays reopened, because the clock is not trusted to close it.
    let clock = "[clock]\nsynchronised = \"never\"\ntrust_after_s = 86400";
    // Partial answers are recorded before the next kill.
    let quick = format!("{QUICK_TIMEOUTS}retry_failed_s = 2\n");
    sandbox.configure_all(&quick, "compact_bytes_min = 1\ncheckpoint_interval_s = 1", clock);

    let moments = Cell::new(0);
    let now = Box::new(|| {
        moments.set(moments.get() + 1);
        Position(moments.get())
    });
    let mut daemon = sandbox.start();
    let load_rng = SplitMix64::from_parts(&[seed, 4]);
    let mut load = Load::new(&sandbox, now, daemon.client().expect("a connection"), &fleet, load_rng);
    let mut kills_during_start = 0;
    for n in 1..=kills {
        let pid = daemon.pid();
        let after = Duration::from_millis(rng.below(2_500) as u64);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(after);
            kill(pid, Signal::SIGKILL).expect("a child process");
        });
        let error = loop {
            if let Err(error) = load.step() {
                break error;
            }
        };
        assert!(matches!(error, ClientError::Closed | ClientError::ConnectionLost { .. }), "kill {n}: {error}");
        killer.join().expect("the daemon is killed");
        let status = daemon.wait();
        assert_eq!(status.signal(), Some(9), "kill {n}: the daemon ended before it: {}", daemon.log());
        while rng.bool(0.3) {
            let daemon = sandbox.spawn();
            std::thread::sleep(Duration::from_millis(rng.below(400) as u64));
            daemon.kill();
            kills_during_start += 1;
        }
        daemon = sandbox.start();
        let losses = load.reconnect(daemon.client().expect("a connection"));
        assert!(losses.is_empty(), "seed {seed}, kill {n} has lost:\n{}", losses.join("\n"));
    }
    daemon.stop();

    let exported = sandbox.path("log.jsonl");
    let log = sandbox.ok(["log", "export"]);
    let lines = log.lines().count();
    std::fs::write(&exported, log).expect("a file");
    let replayed = sandbox.path("replayed");
    copy(&prepared, &replayed);
    sandbox.replay(&exported, &replayed);
    let mut players = 0;
    // A replay closes the reopened weeks at once, the daemon does not.
    for week in sandbox.weeks().into_iter().filter(|week| !CLOSED_WEEKS.contains(&week.as_str())) {
        let export = |state: &Path| {
            sandbox.run(["export".as_ref(), "--state".as_ref(), state.as_os_str(), "--week".as_ref(), week.as_ref()])
        };
        let (live, again) = (export(&sandbox.state()), export(&replayed));
        let different = live.out.lines().zip(again.out.lines()).find(|(a, b)| a != b);
        assert!(
            live.out == again.out && live.status.code() == again.status.code(),
            "seed {seed}, {week}: live and replayed rows differ: {different:?}, {} {}, {} {}",
            live.status,
            live.err,
            again.status,
            again.err
        );
        players += live.out.lines().count();
    }
    assert!(players > 20, "only {players} rows were compared");
    let [live, again] = [&sandbox.state(), &replayed].map(|state| sandbox.export_sessions(state));
    let different = live.lines().zip(again.lines()).find(|(a, b)| a != b);
    assert!(live == again, "seed {seed}: live and replayed sessions differ: {different:?}");
    eprintln!(
        "{kills} kills under load and {kills_during_start} during a start lose nothing; {} acknowledged changes; \
         {lines} lines of the log replay to the same {players} rows",
        load.changes()
    );
}
