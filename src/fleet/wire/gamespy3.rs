//! Replies of GameSpy 3 servers, as of Battlefield 2.
//!
//! The reply is a number of datagrams. Each begins with a section: 0 keys and values, 1 the
//! columns of the players, 2 those of the teams. A section, and a column, may continue in
//! the next datagram, which repeats the section and the name of the column, with the index
//! of its first value.

use super::datagrams::Datagrams;
use super::text::{latin1, put_c_str};
use super::{Answer, ServerView};
use crate::fleet::rng::{RngExt, SplitMix64};

/// Bytes of a datagram after its header.
const DATAGRAM_BYTES_MAX: usize = 1_300;

/// Replies to the request for a challenge and to the query for everything.
pub(super) fn reply(server: &ServerView, query: &[u8], rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    let &[kind, a, b, c, d, ref rest @ ..] = query.strip_prefix(b"\xFE\xFD")? else { return None };
    let id = [a, b, c, d];
    let number = if server.variant.gamespy3_challenge { challenge_number(server) } else { 0 };
    if kind == 9 && rest.is_empty() {
        put_challenge(&id, number, out);
        return Some(Answer::Other);
    }
    let (given, wanted) = match *rest {
        [w, x, y, z] => (0, [w, x, y, z]),
        [e, f, g, h, w, x, y, z] => (i32::from_be_bytes([e, f, g, h]), [w, x, y, z]),
        _ => return None,
    };
    if kind != 0 || wanted != *b"\xFF\xFF\xFF\x01" || !accepts(server, given, number) {
        return None;
    }
    let datagrams = Reply::encode(server);
    let last = datagrams.len() - 1;
    let mut numbered: Vec<(u8, Vec<u8>)> = (0..).zip(datagrams).collect();
    numbered[last].0 |= 0x80;
    // Sometimes the network reorders them.
    if last > 0 && rng.bool(0.3) {
        numbered.swap(last - 1, last);
    }
    for (index, mut body) in numbered {
        let bytes = &mut out.bytes;
        bytes.push(0);
        bytes.extend_from_slice(&id);
        bytes.extend_from_slice(b"splitnum\0");
        bytes.push(index);
        bytes.append(&mut body);
        out.end_datagram();
    }
    Some(Answer::Players)
}

/// The server's challenge as a number: may be negative.
pub(super) fn challenge_number(server: &ServerView) -> i32 {
    let number = i32::from_le_bytes(server.challenge);
    if number % 2 == 0 { number } else { -number }
}

pub(super) fn accepts(server: &ServerView, given: i32, number: i32) -> bool {
    server.challenge_check == super::ChallengeCheck::Skipped || given == number
}

/// A challenge, as text.
pub(super) fn put_challenge(id: &[u8], number: i32, out: &mut Datagrams) {
    out.bytes.push(9);
    out.bytes.extend_from_slice(id);
    put_c_str(&mut out.bytes, number);
    out.end_datagram();
}

fn c_str(text: &str) -> Vec<u8> {
    let mut bytes = latin1(text).unwrap_or_else(|| text.as_bytes().to_vec());
    bytes.push(0);
    bytes
}

/// The bodies of the datagrams.
struct Reply {
    done: Vec<Vec<u8>>,
    body: Vec<u8>,
}

impl Reply {
    fn encode(server: &ServerView) -> Vec<Vec<u8>> {
        let snapshot = server.snapshot;
        let mut reply = Reply { done: Vec::new(), body: vec![0] };
        for (key, value) in [
            ("hostname", &*snapshot.hostname),
            ("gamename", &snapshot.game),
            ("gamever", "1.5.3153-802.0"),
            ("mapname", &snapshot.map),
            ("gametype", "gpm_cq"),
            ("gamevariant", "bf2"),
            ("numplayers", &server.announced().to_string()),
            ("maxplayers", &snapshot.slots.to_string()),
            ("gamemode", "openplaying"),
            ("password", "0"),
            ("timelimit", "0"),
            ("hostport", "16567"),
        ] {
            reply.put_pair(key, value);
        }
        reply.body.push(0);
        let players = &snapshot.players;
        reply.put_section(1);
        reply.put_column(1, "player_", players.iter().map(|player| c_str(&player.name)));
        reply.put_column(1, "score_", players.iter().map(|player| c_str(&player.points.unwrap_or(0).to_string())));
        reply.put_column(1, "ping_", players.iter().map(|player| c_str(&player.ping.unwrap_or(0).to_string())));
        reply.put_column(1, "team_", (0..players.len()).map(|number| c_str(if number % 2 == 0 { "1" } else { "2" })));
        reply.body.push(0);
        reply.put_section(2);
        reply.put_column(2, "team_t", ["MEC", "US"].into_iter().map(c_str));
        reply.put_column(2, "score_t", ["0", "0"].into_iter().map(c_str));
        reply.body.push(0);
        reply.done.push(reply.body);
        reply.done
    }

    /// Ends the datagram if so many bytes do not fit, and begins the next one.
    fn make_room(&mut self, length: usize, next: impl FnOnce() -> Vec<u8>) {
        if self.body.len() + length > DATAGRAM_BYTES_MAX {
            self.done.push(std::mem::replace(&mut self.body, next()));
        }
    }

    fn put_pair(&mut self, key: &str, value: &str) {
        let pair = [c_str(key), c_str(value)].concat();
        self.make_room(pair.len(), || vec![0]);
        self.body.extend_from_slice(&pair);
    }

    fn put_section(&mut self, section: u8) {
        self.make_room(1, Vec::new);
        self.body.push(section);
    }

    fn put_column(&mut self, section: u8, name: &str, values: impl Iterator<Item = Vec<u8>>) {
        let head =
            |section: Option<u8>, index: u8| section.into_iter().chain(c_str(name)).chain([index]).collect::<Vec<u8>>();
        self.make_room(name.len() + 2, || vec![section]);
        self.body.extend(head(None, 0));
        for (index, value) in (0..).zip(values) {
            self.make_room(value.len() + 1, || head(Some(section), index));
            self.body.extend_from_slice(&value);
        }
        self.body.push(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::ProtocolVariant;
    use crate::fleet::wire::tests::{player, reply_of, snapshot};
    use crate::model::Snapshot;

    fn get(server: &Snapshot, challenge: bool, query: &[u8]) -> Option<(Answer, Vec<Vec<u8>>)> {
        let change = |variant: &mut ProtocolVariant, _: &mut usize| variant.gamespy3_challenge = challenge;
        reply_of(Protocol::GameSpy3, server, change, query)
    }

    #[test]
    fn reply_equals_handwritten_bytes() {
        let mut server = snapshot(vec![player("Jürgen", 12, 48, 0), player("b", -1, 0, 0)]);
        (server.map, server.game) = ("gulf_of_oman".into(), "battlefield2".into());
        // The challenge is 01 02 03 04: little endian, and negative because it is odd.
        let challenge = b"\x09abcd-67305985\0";
        assert_eq!(get(&server, true, b"\xFE\xFD\x09abcd"), Some((Answer::Other, vec![challenge.to_vec()])));
        let want = b"\0abcdsplitnum\0\x80\0hostname\0B\xFCro\0gamename\0battlefield2\0gamever\x001.5.3153-802.0\0\
            mapname\0gulf_of_oman\0gametype\0gpm_cq\0gamevariant\0bf2\0numplayers\x002\0maxplayers\x0016\0\
            gamemode\0openplaying\0password\x000\0timelimit\x000\0hostport\x0016567\0\0\
            \x01player_\0\0J\xFCrgen\0b\0\0score_\0\x0012\0-1\0\0ping_\0\x0048\x000\0\0team_\0\x001\x002\0\0\0\
            \x02team_t\0\0MEC\0US\0\0score_t\0\x000\x000\0\0\0";
        let query = b"\xFE\xFD\0abcd\xFB\xFC\xFD\xFF\xFF\xFF\xFF\x01";
        let (answer, reply) = get(&server, true, query).unwrap();
        assert_eq!((answer, &reply), (Answer::Players, &vec![want.to_vec()]));
        assert_eq!(get(&server, true, b"\xFE\xFD\0abcd\xFF\xFF\xFF\x01"), None, "no challenge");
        assert_eq!(get(&server, true, b"\xFE\xFD\0abcd\0\0\0\0\xFF\xFF\xFF\x01"), None, "a wrong one");

        assert_eq!(get(&server, false, b"\xFE\xFD\x09abcd").unwrap().1, [b"\x09abcd0\0"]);
        assert_eq!(get(&server, false, b"\xFE\xFD\0abcd\xFF\xFF\xFF\x01").unwrap().1, reply);
    }

    #[test]
    fn columns_continue_in_the_next_datagram() {
        let server = snapshot((0..60).map(|n| player(&format!("player with number {n:02}"), n, 20, 0)).collect());
        let (_, mut reply) = get(&server, false, b"\xFE\xFD\0abcd\xFF\xFF\xFF\x01").unwrap();
        reply.sort_by_key(|datagram| datagram[14] & 0x7F);
        assert_eq!(reply.iter().map(|datagram| datagram[14]).collect::<Vec<_>>(), [0, 0x81]);
        assert!(reply.iter().all(|datagram| datagram.len() <= DATAGRAM_BYTES_MAX + 15));
        let next = reply[1][15..].strip_prefix(b"\x01player_\0").expect("the column continues");
        let first = next[0] as usize;
        assert!(next[1..].starts_with(format!("player with number {first:02}\0").as_bytes()));
        assert!(reply[0].ends_with(format!("player with number {:02}\0", first - 1).as_bytes()));
    }
}
