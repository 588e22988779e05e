//! The control socket: how an admin's commands reach the running daemon.
//!
//! A Unix socket, mode 0660; a line is one JSON object. [`protocol`] has the
//! words, [`server`] the daemon's end, [`client`] the commands' end, [`json`] makes
//! the lines. Nothing here knows the engine: the daemon gives a [`RequestHandler`] that does.

pub mod client;
mod connection_slots;
pub mod server;

pub use client::{Client, ClientError, ResponseItem};

pub use crate::api::protocol::{ApiError, ErrorCode, Progress, Request, ResponseEnd, Row};
pub use crate::control::server::{
    ControlCounters, ControlError, Disconnected, Listener, RequestHandler, ResponseWriter,
};
