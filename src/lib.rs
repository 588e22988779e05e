//! clqd watches game servers and ranks their players, week by week.
//!
//! Modules are arranged in layers. A module imports only from lower layers, and `daemon`
//! is imported only by `cli`. `tests/architecture.rs` checks this.
//!
//! - Layer 0, data types and limits: [`limits`], [`model`], [`nearest`].
//! - Layer 1, pure logic; these modules do not import each other: [`proto`], [`schedule`],
//!   [`rank`], [`board`], [`series`].
//! - Layer 2: [`engine`] combines layer 1. It takes events and produces probes and commits.
//!   Layers 0 to 2 use no runtime, store, database, socket, clock or randomness: time is an
//!   argument.
//! - Layer 3: [`api`], requests and answers of the control socket and the commands.
//! - Layer 4, input and output; these modules do not import each other: [`scan`], [`store`],
//!   [`archive`], [`control`], [`scan_log`].
//! - Layer 5: [`state`] (an engine with its store), [`daemon`], [`config`], [`cli`],
//!   [`fleet`], [`logging`].
//! - [`clock`] is used by layers 3 to 5.

#![forbid(unsafe_code)]

/// The store copies many small pages; the system's allocator takes a quarter of a
/// replay's time for it, and twice the memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub mod limits;
pub mod model;
pub mod nearest;

pub mod board;
pub mod proto;
pub mod rank;
pub mod schedule;
pub mod series;

pub mod engine;

pub mod api;

pub mod archive;
pub mod control;
pub mod scan;
pub mod scan_log;
pub mod store;

pub mod cli;
pub mod clock;
pub mod config;
pub mod daemon;
pub mod fleet;
pub mod logging;
pub mod state;
