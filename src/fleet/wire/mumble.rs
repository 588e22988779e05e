//! Replies of Mumble servers to the ping outside a connection: the number of users, without a list.

use super::datagrams::Datagrams;
use super::{Answer, ServerView};
use crate::fleet::rng::SplitMix64;

/// 1.3.4
const VERSION: &[u8; 4] = &[0, 1, 3, 4];

/// Bits per second of a user.
const BANDWIDTH_MAX: u32 = 72_000;

/// Replies to four zeros and eight bytes, which the server repeats.
pub(super) fn reply(server: &ServerView, query: &[u8], _rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    let ident: &[u8; 8] = query.strip_prefix(&[0; 4])?.try_into().ok()?;
    let bytes = &mut out.bytes;
    bytes.extend_from_slice(VERSION);
    bytes.extend_from_slice(ident);
    for number in [server.announced() as u32, server.snapshot.slots, BANDWIDTH_MAX] {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    out.end_datagram();
    Some(Answer::Players)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::tests::{refuses, reply_to, snapshot};

    #[test]
    fn pong_equals_handwritten_bytes() {
        let mut server = snapshot(vec![]);
        server.count = Some(3);
        let ping = b"\0\0\0\0identity";
        let want = b"\0\x01\x03\x04identity\0\0\0\x03\0\0\0\x10\0\x01\x19\x40".to_vec();
        assert_eq!(reply_to(Protocol::Mumble, &server, ping), (Answer::Players, vec![want]));
        for query in [&ping[..11], &[&ping[..], b"\0"].concat(), b"\0\0\0\x01identity", b"\x01\0\0\0identity"] {
            assert!(refuses(Protocol::Mumble, &server, query), "{query:x?}");
        }
    }
}
