//! Tests the archive with a real database server: the one of `CLQD_TEST_MYSQL`, or a private
//! MariaDB that the tests start.

mod board_orders;
mod changed_rows;
mod contract;
mod dialect;
mod faults;
mod long_week;
mod mysql;
mod old_players;
mod pages;
mod restore;
mod resync;
mod retention;
mod schema_migration;
mod shared_log;
mod silent;
mod state_source;
mod tls;
mod top_boards;
mod write_method;

#[path = "../support/database/mod.rs"]
mod database;
#[path = "../support/scans.rs"]
mod scans;
