//! Compares clqd with an independent implementation of docs/rules.md (`tests/oracle/`):
//! exports, the state in memory and boards, over random scan logs.

mod boards_equal_oracle;
mod commands;
mod golden_log;
mod replay_equals_oracle;
mod state_equals_oracle;
mod worked_examples;

#[path = "../oracle/mod.rs"]
mod oracle;
