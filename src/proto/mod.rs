//! Wire formats: bytes to values and back, one file per protocol family.
//!
//! A scan is an [`Exchange`]: a state machine that returns the next request, takes
//! each received datagram, and ends with a snapshot. It uses no socket, clock or
//! randomness: the time of a datagram and the nonce are arguments. Pacing, retries
//! and time-outs belong to `scan`.
//!
//! Bytes from the network never cause a panic here, and never an allocation of more
//! than [`crate::limits::REPLY_BYTES_MAX`].
//!
//! A new protocol is a new file in this directory and an entry in [`PROTOCOLS`].
//!
//! - [`protocol`]: the table of protocols. - [`exchange`]: their interface.
//! - [`quake3`], [`a2s`]: the protocols. - [`nonce`], [`text`]: parts of them.
//! - [`server_url`]: URLs of servers.

pub mod a2s;
mod exchange;
mod nonce;
mod protocol;
pub mod quake3;
mod server_url;
mod text;

pub use self::exchange::{Exchange, IgnoreReason, Step};
pub use self::nonce::{Nonce, NonceKey};
pub use self::protocol::{PROTOCOLS, Protocol, WireFormat, protocol_of};
pub use self::server_url::{ServerUrlError, parse_server_url};

#[cfg(test)]
mod tests;
