//! Tests the archive on a real Galera cluster of three nodes, which the tests start on loopback:
//! nodes are killed, paused and shut down while they are written, and two writers write
//! through two nodes. They need MariaDB, Debian's package galera-4, and rsync. Each cluster
//! takes half a minute and 600 MB of memory, so they are ignored by default: `tests/run
//! --cluster` runs them, one at a time.

mod copies;
mod daemon;
mod demo;
mod engine_faults;
mod failover;
mod fencing;
mod large_week;

#[path = "../support/database/mod.rs"]
mod database;
#[path = "../support/engines.rs"]
mod engines;
#[path = "../support/relay.rs"]
mod relay;
#[path = "../support/sandbox.rs"]
mod sandbox;
#[path = "../support/scans.rs"]
mod scans;
#[path = "../archive/state_source.rs"]
mod state_source;
