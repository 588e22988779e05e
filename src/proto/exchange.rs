//! The interface of a protocol: the state machine of one scan.

use bytes::TryGetError;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use super::details::{DetailLevel, Details};
use crate::model::Snapshot;

/// One scan of one server, from the first request to the snapshot.
pub trait Exchange: Send {
    /// The packet to send now. Send it at the start, after each [`Step::Send`], and
    /// again when the reply is lost.
    fn request(&self) -> Vec<u8>;

    /// Handles a datagram from the queried address; over TCP: the next bytes of the connection, in pieces of any
    /// size. `t_ms`: its arrival, Unix ms.
    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step;

    /// The server has closed the connection. [`Step::Send`]: the next request, on a new connection.
    fn handle_end(&mut self, _t_ms: i64) -> Step {
        Step::Fail(IgnoreReason::Malformed)
    }

    /// No list of this server was ever longer than the number of players that it announced. So an
    /// announced 0 needs no list.
    fn trust_count(&mut self) {}

    /// Whether the server announced at least as many players as it listed. `None`: there was no list.
    fn announced_enough(&self) -> Option<bool> {
        None
    }

    /// The URL of the server has the name of its host, not an address: some servers answer by the name, and the port beside it.
    fn set_host_name(&mut self, _name: &str, _port: u16) {}

    /// How the reply is authenticated as coming from the server.
    fn authentication(&self) -> Authentication;

    /// What the reply contains beyond the snapshot. It is decoded only here, so scans without
    /// details do not pay for it. `last_datagram`: the one that gave [`Step::Done`]; empty for a
    /// partial snapshot.
    fn details(&self, _last_datagram: &[u8], _level: DetailLevel) -> Details {
        Details::default()
    }

    /// Returns a partial snapshot if the server has sent any valid reply, with the
    /// time of the last one. Call it when the scan times out.
    /// A protocol whose reply is one datagram has none.
    fn partial_snapshot(&mut self) -> Option<Snapshot> {
        None
    }
}

/// How a reply is authenticated as that of the queried server, from weak to strong.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
    Serialize,
    Deserialize,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Authentication {
    /// Its source address and port, which anybody can forge.
    Address,
    /// The server sent a challenge to our address before, or it requires one that we received.
    Challenge,
    /// It repeats our nonce.
    Nonce,
}

/// The result of a datagram.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The datagram is not a usable reply. The exchange has not changed.
    Ignore(IgnoreReason),
    /// The next request is due: send [`Exchange::request`] now.
    Send,
    /// Part of the reply; more has to arrive.
    Wait,
    /// The exchange is complete.
    Done(Box<Snapshot>),
    /// The server sends what costs time and is never usable: end the scan with what it has.
    Fail(IgnoreReason),
}

impl From<Result<Snapshot, IgnoreReason>> for Step {
    /// The result of decoding a reply that is complete with this datagram.
    fn from(decoded: Result<Snapshot, IgnoreReason>) -> Step {
        match decoded {
            Ok(snapshot) => Step::Done(Box::new(snapshot)),
            Err(reason) => Step::Ignore(reason),
        }
    }
}

/// Why a datagram from a queried address was not used. Its text is the name of its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum IgnoreReason {
    /// The datagram does not begin like any reply of the protocol.
    NotAReply,
    /// A message of the protocol, but not one that is expected now.
    UnexpectedMessage,
    /// The nonce is wrong or missing.
    WrongNonce,
    /// Begins correctly, then violates the format.
    Malformed,
    /// A fragment that cannot belong to any reply.
    BadFragment,
    /// Compressed fragments that do not decompress to the announced data.
    BadCompression,
    /// The complete reply would be larger than `limits::REPLY_BYTES_MAX`.
    TooLarge,
    /// The server sent too many challenges.
    TooManyChallenges,
}

impl From<TryGetError> for IgnoreReason {
    /// The reply ends inside a field.
    fn from(_: TryGetError) -> IgnoreReason {
        IgnoreReason::Malformed
    }
}

/// Whether a list without missing fragments has enough entries for the announced number of players (docs/rules.md
/// section 14). An empty one is hidden.
pub(super) fn has_enough_entries(listed: usize, announced: u32) -> bool {
    (listed > 0 || announced == 0) && lacks_few_entries(listed, announced)
}

/// Whether at most those entries are missing whose players may be still connecting.
pub(super) fn lacks_few_entries(listed: usize, announced: u32) -> bool {
    listed as u64 >= u64::from(announced.saturating_sub(2.max(announced / 10)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_list_is_enough_for_no_players_only() {
        for (listed, announced, want) in [(0, 0, true), (0, 1, false), (0, 2, false), (1, 3, true), (1, 4, false)] {
            assert_eq!(has_enough_entries(listed, announced), want, "{listed} of {announced}");
        }
    }
}
