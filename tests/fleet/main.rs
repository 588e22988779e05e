//! Tests the simulated fleet itself, and clqd with it: what the servers answer, what the
//! checks of docs/rules.md section 14 find, and a whole fleet in virtual time.

mod answers;
mod every_protocol;
mod qstat;
mod screening;
mod whole_fleet;

#[path = "../oracle/mod.rs"]
mod oracle;
#[path = "../support/sandbox.rs"]
mod sandbox;
