//! Tests the program as a user runs it: the daemon in a temporary directory, its commands, files
//! and signals.

mod archive_verify;
mod archive_writers;
mod backup;
mod boards;
mod captures;
mod clock;
mod closed_pipes;
mod cluster;
mod commands;
mod config;
mod connections;
mod control_socket;
mod corrections;
mod crash;
mod damages;
mod documented_commands;
mod exit_codes;
mod forgotten_log;
mod import;
mod kills;
mod log;
mod published_boards;
mod recompute;
mod restore;
mod scan_log;
mod scanners;
mod silence;
mod start;
mod state_dir;
mod systemd;
mod web;
mod webhooks;
mod window_rebuild;

#[path = "../support/database/mod.rs"]
mod database;
#[path = "../support/engines.rs"]
mod engines;
#[path = "../support/load.rs"]
mod load;
mod same_server;
#[path = "../support/sandbox.rs"]
mod sandbox;
#[path = "../support/scans.rs"]
mod scans;
#[path = "../support/shim.rs"]
mod shim;
