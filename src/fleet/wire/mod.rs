//! The server side of the protocols (docs/protocols.md): parses queries, encodes
//! snapshots as replies, splits replies into fragments. No sockets, no faults: this is
//! what a correct server sends. It shares no code with `proto`, so that tests can compare
//! the two.
//!
//! Servers differ, as real ones do: [`ProtocolVariant`] defines how, fixed by the seed.

mod a2s;
mod datagrams;
mod fragments;
mod quake3;
mod query;
mod variant;

pub use self::a2s::{a2s_challenge, a2s_info, a2s_players, a2s_rules};
pub use self::datagrams::Datagrams;
pub use self::fragments::{SplitFormat, split};
pub use self::quake3::{quake3_info, quake3_status};
pub use self::query::ClientQuery;
pub use self::variant::{ProtocolVariant, challenge};

#[cfg(test)]
mod tests;
