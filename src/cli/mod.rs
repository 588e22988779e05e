//! The command line.

pub mod export;
pub mod replay;
