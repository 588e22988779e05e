//! clqd watches game servers and ranks their players, week by week.
//!
//! The daemon queries game servers over UDP, every two minutes where people play. It
//! compares successive answers to see which players came, left and scored, and when a
//! round ended. From that it keeps five rankings of every server, game and tag. State is
//! kept in an embedded database, and results are archived to MySQL for a website. The
//! same crate is the command line, and simulates game servers for tests and the demo.
//!
//! # From a packet to the website
//!
//! 1. [`schedule`] holds class and due time of each server. When one is due, the engine
//!    returns a probe.
//! 2. [`scan`] sends the query, within rate limits, and receives the reply.
//! 3. [`proto`] decodes it: bytes in, a [`model::Snapshot`] out. No reply is a miss.
//!    [`log`] records either, and a replay reads them again.
//! 4. [`engine`] screens the list and compares it with the previous snapshot, using
//!    [`rank`] (presence, rounds, scores), [`board`] (order and positions) and [`series`]
//!    (players over time). The changes are collected in a [`model::commit::Commit`].
//! 5. [`store`] writes the commit atomically. Only then do its effects become visible.
//! 6. [`archive`] writes what the outbox lists to MySQL, as absolute values. Websites read
//!    the views of `schema.sql`.
//! 7. [`web`] answers visitors and admins from the engine's view; [`client`] is the end of the commands.
//!
//! [`daemon`] connects these parts: one thread owns engine and store ([`state`]), and the
//! others are tasks with bounded queues. A crash anywhere repeats work; it neither loses
//! nor duplicates any.
//!
//! # Layers
//!
//! Modules are arranged in layers. A module imports only from lower layers, and `daemon`
//! is imported only by `cli`. `tests/architecture.rs` checks this.
//!
//! - Layer 0, data types, limits and the table of games: [`games`], [`limits`], [`model`], [`nearest`].
//! - Layer 1, pure logic; these modules do not import each other: [`proto`], [`schedule`],
//!   [`rank`], [`board`], [`series`]; and [`view`], the answers for readers.
//! - Layer 2: [`engine`] combines layer 1. It takes events and produces probes and commits.
//!   Layers 0 to 2 use no runtime, store, database, socket, clock or randomness: time is an
//!   argument.
//! - Layer 3: [`api`], requests and answers of the control socket and the commands; [`log`], what a log
//!   records, and the binary log.
//! - Layer 4, input and output; these modules do not import each other: [`scan`], [`store`],
//!   [`archive`], [`client`], [`scan_log`], [`lines`], [`web`].
//! - Layer 5: [`state`] (an engine with its store), [`capture`], [`daemon`], [`config`],
//!   [`cli`], [`fleet`], [`logging`], [`master`] (lists of servers), [`shutdown`].
//! - [`clock`] is used by layers 3 to 5.
//!
//! # Glossary
//!
//! - **scan**: one attempt to read a server. It ends as a snapshot or a miss.
//! - **snapshot**: a complete answer: map, players, points. A *partial* one has an
//!   incomplete list and is never compared.
//! - **presence**: a player's uninterrupted stay on a server; cut into **segments** of 12
//!   minutes for CLQ1.
//! - **round**: from one restart of the points to the next. Its final list feeds CLQ2 and
//!   ELO.
//! - **row**: what one player did on one server in one window.
//! - **window**: a period with boards of its own; a week, or what the config adds.
//! - **board**: the players of a scope (server, game, tag) in a window, ordered by one
//!   ranking.
//! - **class**: how often a server is scanned, 1 to 7.
//! - **key**: the number that stands for a player, server, map or game.
//! - **commit**: all changes since the previous one, written atomically.
//! - **outbox**: the objects that must still be archived.
//!
//! # More
//!
//! `docs/rules.md` is the specification; comments cite it as "docs/rules.md section n".
//! `docs/architecture.md` lists invariants, threads and where to change what;
//! `docs/README.md` is the index of all pages.

// They panic if the reader of a pipe has exited. The command line writes with `cli::stdio`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

/// The store copies many small pages; the system's allocator takes a quarter of a
/// replay's time for it, and twice the memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub mod games;
pub mod geo;
pub mod limits;
pub mod model;
pub mod nearest;

pub mod board;
pub mod proto;
pub mod rank;
pub mod schedule;
pub mod series;
pub mod view;

pub mod engine;

pub mod api;
pub mod log;

pub mod archive;
pub mod lines;
pub mod scan;
pub mod scan_log;
pub mod store;
pub mod web;

pub mod capture;
pub mod cli;
pub mod client;
pub mod clock;
pub mod config;
pub mod daemon;
pub mod fleet;
pub mod logging;
pub mod master;
pub mod shutdown;
pub mod state;
pub mod truth;
