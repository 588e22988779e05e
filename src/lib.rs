//! clqd watches game servers and ranks their players, week by week.
//!
//! A map of the house. Floors import only downwards; rooms on floors 1 and 3
//! do not know their neighbours; nobody imports `daemon`.
//!
//! - Floor 0, words: [`limits`], [`model`], [`nearest`].
//! - Floor 1, pure and unaware of each other: [`proto`], [`schedule`],
//!   [`rank`], [`board`], [`series`].
//! - Floor 2: [`engine`] composes floor 1. Events in; probes and commits out.
//!   Floors 0 to 2 know no runtime, store, database, socket, clock or chance:
//!   time is an argument.
//! - Floor 3, edges that do not know each other: [`scan`], [`store`],
//!   [`archive`], [`control`], [`scanlog`].
//! - Roof: [`hot`] (an engine with its store), [`daemon`], [`config`],
//!   [`clock`], [`cli`], [`fleet`].

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

pub mod archive;
pub mod control;
pub mod scan;
pub mod scanlog;
pub mod store;

pub mod answer;
pub mod cli;
pub mod clock;
pub mod config;
pub mod daemon;
pub mod fleet;
pub mod hot;
