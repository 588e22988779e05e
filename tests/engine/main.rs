//! Tests the engine with its store, in virtual time: no process, no network, no database.

mod commands;
mod correction_cost;
mod corrections;
mod corrections_in_week_close;
mod earlier_scans;
mod estimates;
mod failed_servers;
mod forgotten_replay;
mod listed_boards;
mod online_players;
mod outbox;
mod player_pages;
mod published_boards;
mod screening;
mod server_pages;
mod sessions;
mod site_series;
mod sure_rounds;
mod week_close;
mod window_import;

#[path = "../support/scans.rs"]
mod scans;
