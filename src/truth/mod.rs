//! How close rankings come to what happened. Scans see a server every two minutes or so; nobody knows what happened
//! between them. So players are simulated ([`play`], [`scenario`]), of whom everything is known; the real engine and its
//! real schedule scan them in virtual time ([`run`]), and the rankings are compared with the true ones ([`measure`]).
//! `clqd truth` prints the result.
//!
//! The play knows nothing of the engine, and the true rankings are computed from it alone. Shared are the formulas of ELO
//! and CLQ2 for one final list, which have their own tests.

pub mod measure;
pub mod play;
mod run;
pub mod scenario;

pub use measure::Accuracy;
pub use run::{Plan, RunError, run};
pub use scenario::Scenario;
