//! Simulated game servers that speak the real protocols: for `clqd fleet`, the
//! demo, the tests and the benches. The daemon does not depend on them.
//!
//! - [`world`]: which players are on which server, and their points. Pure: a seed and a
//!   time determine a state. It records the ground truth ([`truth`]), which clqd can only
//!   estimate.
//! - [`history`]: scans of a world over a range of virtual time.
//! - [`protocol`], [`games`], [`profile`], [`population`], [`rng`]: the content of a world.
//! - [`behaviours`]: server behaviours that must not be ranked. [`faults`]: faults of
//!   replies. [`shares`]: how many servers have which behaviour or fault.
//! - [`wire`]: the server side of the protocols. [`reply`]: what a server, or an attacker,
//!   sends for a query.
//! - [`address`]: the loopback address of each server. [`serve`]: the fleet on real sockets
//!   of the loopback interface.

pub mod address;
pub mod behaviours;
pub mod faults;
pub mod games;
pub mod history;
pub mod population;
pub mod profile;
pub mod protocol;
pub mod reply;
pub mod rng;
pub mod serve;
pub mod shares;
pub mod truth;
pub mod wire;
pub mod world;

pub use behaviours::{Behaviour, BehaviourShares};
pub use faults::{Fault, FaultShares};
pub use history::SimulatedHistory;
pub use protocol::{Ports, Protocol, ProtocolShares};
pub use serve::{Fleet, FleetStats, RateLimit, ServeSettings};
pub use world::{World, WorldSettings};
