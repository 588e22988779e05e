//! Tests what is written to MySQL with a real server. `CLQD_TEST_MYSQL` names it; without,
//! a private MariaDB is started.

mod board_orders;
mod long_week;
mod mysql;
mod resync;

#[path = "../support/database/mod.rs"]
mod database;
#[path = "../support/scans.rs"]
mod scans;
