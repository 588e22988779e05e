//! The command line.
pub mod migrate;
