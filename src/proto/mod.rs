//! Wire formats: bytes to values and back, one file per protocol family.
//!
//! A scan is an [`Exchange`]: a state machine that returns the next request, takes
//! each received datagram, and ends with a snapshot. It uses no socket, clock or
//! randomness: the time of a datagram and the nonce are arguments. Pacing, retries
//! and timeouts belong to `scan`.
//!
//! Bytes from the network never cause a panic here, and never an allocation of more
//! than [`crate::limits::REPLY_BYTES_MAX`].
//!
//! A new protocol is a new file in this directory and an entry in [`PROTOCOLS`].
//!
//! - [`protocol`]: the table of protocols. - [`exchange`]: their interface.
//! - [`quake3`], [`quakeworld`], [`quake2`], [`a2s`] (Source and GoldSrc), [`gamespy1`], [`gamespy2`],
//!   [`gamespy3`] (Minecraft, too), [`unreal2`], [`all_seeing_eye`], [`samp`], [`doom3`],
//!   [`teeworlds`], [`teeworlds7`], [`bedrock`], [`cube`] (Sauerbraten, AssaultCube), [`redeclipse`],
//!   [`zandronum`], [`odamex`], [`armagetron`], [`mumble`]: protocols over UDP.
//! - [`minecraft_status`], [`fivem`], [`frostbite`], [`bzflag`]: protocols over TCP.
//! - [`details`]: what replies contain beyond a snapshot.
//! - [`infostring`], [`player_lines`], [`player_table`], [`quake_text`], [`teeworlds7_packet`],
//!   [`cube_fields`], [`zandronum_huffman`], [`stream`], [`http`], [`fields`], [`text`], [`nonce`]: parts of them.
//! - [`server_url`]: URLs of servers, and names of games in them. - [`master`]: lists of servers
//!   from master servers.

// Bytes come from outside.
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

pub mod a2s;
mod all_seeing_eye;
mod armagetron;
mod bedrock;
mod bzflag;
mod cube;
mod cube_fields;
mod details;
mod doom3;
mod exchange;
mod fields;
mod fivem;
mod frostbite;
mod gamespy1;
mod gamespy2;
mod gamespy3;
mod http;
mod infostring;
pub mod master;
mod minecraft_status;
mod mumble;
mod nonce;
mod odamex;
mod player_lines;
mod player_table;
mod protocol;
mod quake2;
pub mod quake3;
mod quake_text;
mod quakeworld;
mod redeclipse;
mod samp;
mod server_url;
mod stream;
mod teeworlds;
mod teeworlds7;
mod teeworlds7_packet;
mod text;
mod unreal2;
mod zandronum;
mod zandronum_huffman;

pub use self::details::{DetailLevel, Details};
pub use self::exchange::{Authentication, Exchange, IgnoreReason, Step};
pub use self::nonce::{Nonce, NonceKey};
pub use self::protocol::{PROTOCOLS, Protocol, Transport, WireFormat, protocol_of, same_server};
pub use self::server_url::{AUTO_SCHEME, ServerUrlError, parse_server_url, parse_server_url_or_auto, usual_queries};

#[cfg(test)]
mod tests;
