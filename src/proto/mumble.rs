//! Mumble: the ping that clients send to the servers of their list. The reply has counts and no users.

use bytes::Buf;

use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step};
use super::nonce::Nonce;
use crate::model::{Completeness, Snapshot};

/// Asks for the counts, too. A server replies with its version in this place.
const PING: [u8; 4] = [0; 4];
const PONG_BYTES: usize = 24;

/// One ping, one reply.
#[derive(Clone, Debug)]
pub struct PingQuery {
    nonce: Nonce,
}

impl PingQuery {
    pub fn new(nonce: Nonce) -> Self {
        PingQuery { nonce }
    }
}

impl Exchange for PingQuery {
    fn request(&self) -> Vec<u8> {
        [&PING[..], &self.nonce.0.to_be_bytes()].concat()
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        decode(t_ms, bytes, self.nonce).into()
    }

    fn authentication(&self) -> Authentication {
        Authentication::Nonce
    }

    fn details(&self, last_datagram: &[u8], level: DetailLevel) -> Details {
        let Ok(pong) = pong(last_datagram) else { return Details::default() };
        let (major, minor, patch) = pong.version;
        let rules = match level {
            DetailLevel::Summary => Vec::new(),
            DetailLevel::Rules => vec![("bandwidth".into(), pong.bandwidth.to_string().as_str().into())],
        };
        Details { version: Some(format!("{major}.{minor}.{patch}")), rules, ..Details::default() }
    }
}

/// Decodes a pong.
///
/// Errors: another kind of datagram; another nonce.
pub fn decode(t_ms: i64, datagram: &[u8], nonce: Nonce) -> Result<Snapshot, IgnoreReason> {
    let pong = pong(datagram)?;
    if pong.nonce != nonce.0 {
        return Err(IgnoreReason::WrongNonce);
    }
    Ok(Snapshot {
        t_ms,
        game: "mumble".to_owned(),
        map: String::new(),
        hostname: String::new(),
        slots: pong.slots,
        players: Vec::new(),
        // The list is not sent; only the count is known.
        completeness: Completeness::Partial,
        count: Some(pong.users),
        bots: None,
    })
}

#[derive(Debug)]
struct Pong {
    version: (u16, u8, u8),
    nonce: u64,
    users: u32,
    slots: u32,
    /// Most bits per second of a user.
    bandwidth: u32,
}

fn pong(datagram: &[u8]) -> Result<Pong, IgnoreReason> {
    if datagram.len() != PONG_BYTES {
        return Err(IgnoreReason::NotAReply);
    }
    let mut rest = datagram;
    Ok(Pong {
        version: (rest.try_get_u16()?, rest.try_get_u8()?, rest.try_get_u8()?),
        nonce: rest.try_get_u64()?,
        users: rest.try_get_u32()?,
        slots: rest.try_get_u32()?,
        bandwidth: rest.try_get_u32()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: Nonce = Nonce(0xa1b2_c3d4_e5f6_0718);
    /// The reply of version 1.3.4 with three users.
    const REPLY: &[u8] = b"\0\x01\x03\x04\xa1\xb2\xc3\xd4\xe5\xf6\x07\x18\0\0\0\x03\0\0\0\x25\0\x01\x19\x40";

    #[test]
    fn reply_of_a_real_server_is_partial_with_a_count() {
        let mut query = PingQuery::new(NONCE);
        assert_eq!(query.request(), b"\0\0\0\0\xa1\xb2\xc3\xd4\xe5\xf6\x07\x18");
        let Step::Done(snapshot) = query.handle_datagram(5, REPLY) else { panic!() };
        assert_eq!((snapshot.game.as_str(), snapshot.slots, snapshot.t_ms), ("mumble", 37, 5));
        assert_eq!((snapshot.players.len(), snapshot.count), (0, Some(3)));
        assert_eq!(snapshot.completeness, Completeness::Partial);
    }

    #[test]
    fn details_have_version_and_bandwidth() {
        let details = PingQuery::new(NONCE).details(REPLY, DetailLevel::Rules);
        assert_eq!(details.version.as_deref(), Some("1.3.4"));
        assert_eq!(details.rules[0].1.as_str(), "72000");
        assert!(PingQuery::new(NONCE).details(REPLY, DetailLevel::Summary).rules.is_empty());
        assert_eq!(PingQuery::new(NONCE).details(b"", DetailLevel::Rules), Details::default());
    }

    #[test]
    fn wrong_nonces_and_other_lengths_are_ignored() {
        let ignored = |bytes: &[u8], nonce| PingQuery::new(Nonce(nonce)).handle_datagram(0, bytes);
        assert_eq!(ignored(REPLY, NONCE.0 ^ 1), Step::Ignore(IgnoreReason::WrongNonce));
        for length in 0..REPLY.len() {
            assert_eq!(ignored(&REPLY[..length], NONCE.0), Step::Ignore(IgnoreReason::NotAReply), "{length}");
        }
        assert_eq!(ignored(&[REPLY, b"\0"].concat(), NONCE.0), Step::Ignore(IgnoreReason::NotAReply));
    }

    #[test]
    fn impossible_counts_are_left_to_the_snapshot() {
        let bytes = [&REPLY[..12], &[0xff; 12]].concat();
        let snapshot = decode(0, &bytes, NONCE).unwrap();
        assert_eq!((snapshot.count, snapshot.slots), (Some(u32::MAX), u32::MAX));
    }
}
