//! Replies of Minecraft (Java) servers over TCP to the client's list of servers: the counts, and up to
//! twelve names.

use serde_json::json;

use super::datagrams::Datagrams;
use super::{Answer, ServerView};
use crate::fleet::rng::SplitMix64;

/// Names in a status.
const SAMPLE_MAX: usize = 12;

/// Replies to a first message with the next state 1 that is followed by a request without content.
pub(super) fn reply(server: &ServerView, query: &[u8], _rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    let (&length, rest) = query.split_first()?;
    let (first, request) = rest.split_at_checked(length.into())?;
    let host_length = usize::from(*first.get(2)?);
    let is_status = first[0] == 0 && first.len() == host_length + 6 && first.ends_with(b"\x01");
    if !is_status || request != b"\x01\x00" {
        return None;
    }
    let snapshot = server.snapshot;
    let id = |number: usize| format!("00000000-0000-4000-8000-{number:012x}");
    let sample = snapshot.players.iter().take(SAMPLE_MAX).enumerate();
    let sample: Vec<_> = sample.map(|(number, player)| json!({ "name": player.name, "id": id(number) })).collect();
    let status = json!({
        "version": { "name": "1.20.4", "protocol": 765 },
        "players": { "max": snapshot.slots, "online": server.announced(), "sample": sample },
        "description": { "text": "", "extra": [{ "text": snapshot.hostname }] },
    });
    let status = status.to_string();
    let mut body = vec![0];
    put_number(&mut body, status.len());
    body.extend_from_slice(status.as_bytes());
    put_number(&mut out.bytes, body.len());
    out.bytes.append(&mut body);
    out.end_datagram();
    Some(Answer::Players)
}

fn put_number(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 128 {
        bytes.push((number % 128) as u8 + 128);
        number /= 128;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::tests::{player, refuses, reply_to, snapshot};

    #[test]
    fn status_equals_handwritten_bytes() {
        let server = snapshot(vec![player("Steve", 0, 0, 0)]);
        let query = b"\x0e\x00\x2f\x0810.0.0.1\x63\xdd\x01\x01\x00";
        let text = "{\"description\":{\"extra\":[{\"text\":\"Büro\"}],\"text\":\"\"},\
            \"players\":{\"max\":16,\"online\":1,\"sample\":[\
            {\"id\":\"00000000-0000-4000-8000-000000000000\",\"name\":\"Steve\"}]},\
            \"version\":{\"name\":\"1.20.4\",\"protocol\":765}}";
        let want = [b"\xCC\x01\x00\xC9\x01", text.as_bytes()].concat();
        assert_eq!(reply_to(Protocol::MinecraftStatus, &server, query), (Answer::Players, vec![want]));
        // A client that wants to play.
        assert!(refuses(Protocol::MinecraftStatus, &server, b"\x0e\x00\x2f\x0810.0.0.1\x63\xdd\x02\x01\x00"));
        assert!(refuses(Protocol::MinecraftStatus, &server, &query[..15]));
    }
}
