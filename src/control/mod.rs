//! The control socket, on which commands reach the running daemon.
//!
//! It is a Unix socket, mode 0660; each line is one JSON object. [`server`] is the
//! daemon's end, [`client`] the commands' end. [`crate::api`] defines requests and
//! responses. Nothing here depends on the engine: the daemon provides a
//! [`RequestHandler`].

pub mod client;
mod connection_slots;
pub mod server;

pub use client::{Client, ClientError, ResponseItem};

pub use crate::api::{ApiError, ErrorCode, Progress, Request, ResponseEnd, Row};
pub use crate::control::server::{
    ControlCounters, ControlError, Disconnected, Listener, RequestHandler, ResponseWriter,
};
