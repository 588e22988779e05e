//! The command line.

pub mod fleet;
