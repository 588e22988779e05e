//! The control socket: how an admin's commands reach the running daemon.
//!
//! A Unix socket, mode 0660; a line is one JSON object. [`protocol`] has the
//! words, [`server`] the daemon's end, [`client`] the commands' end, [`json`] makes
//! the lines. Nothing here knows the engine: the daemon gives a [`Handler`] that does.

pub mod asked;
pub mod client;
pub mod json;
mod places;
pub mod protocol;
pub mod server;

pub use client::{Client, ClientError, Reply};
pub use protocol::{End, ErrorCode, Failure, Progress, Request, Row};
pub use server::{ControlCounts, ControlError, Gone, Handler, Listener, Replies};
