//! Replies of Minecraft (Bedrock) servers to RakNet's ping outside a connection: the number
//! of players, without a list.

use super::datagrams::Datagrams;
use super::{Answer, ServerView};
use crate::fleet::rng::SplitMix64;

/// Identifies messages outside a connection.
const MAGIC: &[u8; 16] = b"\x00\xFF\xFF\x00\xFE\xFE\xFE\xFE\xFD\xFD\xFD\xFD\x12\x34\x56\x78";

/// Replies to a ping: the time of the client, the magic bytes, and the client's id.
pub(super) fn reply(server: &ServerView, query: &[u8], _rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    let (time, rest) = query.strip_prefix(b"\x01")?.split_at_checked(8)?;
    if rest.len() != 24 || !rest.starts_with(MAGIC) {
        return None;
    }
    let snapshot = server.snapshot;
    let server_id = u64::from(u32::from_le_bytes(server.challenge)) << 8 | 7;
    let status = format!(
        "MCPE;{};662;1.20.71;{};{};{server_id};{};Survival;1;{};{};",
        snapshot.hostname,
        server.announced(),
        snapshot.slots,
        snapshot.map,
        server.port,
        server.port + 1
    );
    let bytes = &mut out.bytes;
    bytes.push(0x1C);
    bytes.extend_from_slice(time);
    bytes.extend_from_slice(&server_id.to_be_bytes());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&(status.len() as u16).to_be_bytes());
    bytes.extend_from_slice(status.as_bytes());
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
        (server.map, server.count) = ("level".into(), Some(7));
        let magic = b"\x00\xFF\xFF\x00\xFE\xFE\xFE\xFE\xFD\xFD\xFD\xFD\x124Vx";
        let ping = [&b"\x01timetime"[..], magic, b"clientid"].concat();
        let head = b"\x1Ctimetime\0\0\0\x04\x03\x02\x01\x07";
        let status = "MCPE;Büro;662;1.20.71;7;16;17230332167;level;Survival;1;5000;5001;";
        let want = [&head[..], magic, b"\0\x43", status.as_bytes()].concat();
        assert_eq!(reply_to(Protocol::Bedrock, &server, &ping), (Answer::Players, vec![want]));
        assert!(refuses(Protocol::Bedrock, &server, &ping[..32]));
        assert!(refuses(Protocol::Bedrock, &server, &[b"\x02", &ping[1..]].concat()));
    }
}
