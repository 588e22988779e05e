//! Simulated game servers that speak the real protocols: for `clqd fleet`, the
//! demo, the tests and the benches. Nothing of the daemon depends on them.
//!
//! - [`world`]: who plays where and scores what. Pure: a seed and a moment give
//!   a state. It knows the truth that clqd can only estimate ([`truth`]).
//! - [`history`]: a world's scans over a stretch of virtual time.
//! - [`games`], [`names`], [`rng`]: what a world is made of.
//! - [`behaviours`]: what some servers play that must not be ranked.
//! - [`address`]: which 127.a.b.c is which server.
//! - [`wire`]: the servers' side of the protocols. [`faults`]: what goes wrong.
//! - [`serve`]: all of it behind real sockets on the loopback.

pub mod address;
pub mod behaviours;
pub mod faults;
pub mod games;
pub mod history;
pub mod population;
pub mod rng;
pub mod serve;
pub mod truth;
pub mod wire;
pub mod world;

pub use behaviours::{Behaviour, BehaviourShares};
pub use faults::{Fault, FaultShares};
pub use history::SimulatedHistory;
pub use serve::{Fleet, FleetStats, RateLimit, ServeSettings};
pub use world::{World, WorldSettings};
