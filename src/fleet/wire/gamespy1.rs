//! Replies of GameSpy 1 servers, as of Unreal Tournament.

use super::datagrams::Datagrams;
use super::text::{put, put_info_key, put_info_text};
use super::{Answer, ServerView};
use crate::fleet::rng::{RngExt, SplitMix64};

/// Keys and values in one datagram, bytes.
const DATAGRAM_BYTES_MAX: usize = 1_300;

/// Replies to `\status\`: datagrams with keys and values. Each ends with its number, the last
/// one also with `\final\`. A player is never split. Sometimes the network reorders them.
pub(super) fn reply(server: &ServerView, query: &[u8], rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    if !query.starts_with(b"\\status\\") {
        return None;
    }
    let snapshot = server.snapshot;
    let mut first = Vec::new();
    put_info_key(&mut first, "gamename", &snapshot.game);
    put_info_key(&mut first, "gamever", 469);
    put_info_key(&mut first, "location", 0);
    put_info_text(&mut first, "hostname", &snapshot.hostname);
    put_info_key(&mut first, "hostport", server.port - 1);
    put_info_key(&mut first, "maptitle", "");
    put_info_key(&mut first, "mapname", &snapshot.map);
    put_info_key(&mut first, "gametype", "DeathMatchPlus");
    put_info_key(&mut first, "numplayers", server.announced());
    put_info_key(&mut first, "maxplayers", snapshot.slots);
    put_info_key(&mut first, "gamemode", "openplaying");
    put_info_key(&mut first, "password", "False");
    let mut datagrams = vec![first];
    for (index, player) in snapshot.players.iter().enumerate() {
        let mut keys = Vec::new();
        put_info_text(&mut keys, &format!("player_{index}"), &player.name);
        put_info_key(&mut keys, &format!("frags_{index}"), player.points.unwrap_or(0));
        put_info_key(&mut keys, &format!("ping_{index}"), player.ping.unwrap_or(0));
        put_info_key(&mut keys, &format!("team_{index}"), 255);
        put_info_key(&mut keys, &format!("mesh_{index}"), "Male Commando");
        put_info_key(&mut keys, &format!("ngsecret_{index}"), "");
        match datagrams.last_mut() {
            Some(last) if last.len() + keys.len() <= DATAGRAM_BYTES_MAX => last.append(&mut keys),
            _ => datagrams.push(keys),
        }
    }
    let (id, total) = (1 + rng.below(99), datagrams.len());
    for (number, datagram) in (1..).zip(&mut datagrams) {
        put(datagram, format_args!("\\queryid\\{id}.{number}"));
        if number == total {
            datagram.extend_from_slice(b"\\final\\");
        }
    }
    if total > 1 && rng.bool(0.3) {
        let at = rng.below(total - 1);
        datagrams.swap(at, at + 1);
    }
    for mut datagram in datagrams {
        out.bytes.append(&mut datagram);
        out.end_datagram();
    }
    Some(Answer::Players)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::tests::{player, refuses, reply_of, reply_to, snapshot};

    #[test]
    fn status_equals_handwritten_bytes() {
        let mut server = snapshot(vec![player("Loque", 12, 48, 0), player("", -1, 0, 0)]);
        (server.map, server.game) = ("DM-Deck16][".into(), "ut".into());
        let (answer, reply) = reply_of(Protocol::GameSpy1, &server, |_, missing| *missing = 1, b"\\status\\").unwrap();
        let want = b"\\gamename\\ut\\gamever\\469\\location\\0\\hostname\\B\xFCro\\hostport\\4999\\maptitle\\\
            \\mapname\\DM-Deck16][\\gametype\\DeathMatchPlus\\numplayers\\3\\maxplayers\\16\\gamemode\\openplaying\
            \\password\\False\\player_0\\Loque\\frags_0\\12\\ping_0\\48\\team_0\\255\\mesh_0\\Male Commando\\ngsecret_0\\\
            \\player_1\\\\frags_1\\-1\\ping_1\\0\\team_1\\255\\mesh_1\\Male Commando\\ngsecret_1\\";
        assert_eq!((answer, reply.len()), (Answer::Players, 1));
        let tail = reply[0].strip_prefix(&want[..]).expect("the keys");
        let number = std::str::from_utf8(tail).unwrap().strip_prefix("\\queryid\\").unwrap();
        assert!(number.strip_suffix(".1\\final\\").unwrap().parse::<u32>().unwrap() > 0);
        assert!(refuses(Protocol::GameSpy1, &server, b"\\info\\"));
    }

    #[test]
    fn long_status_is_several_numbered_datagrams() {
        let server = snapshot((0..40).map(|n| player(&format!("player with number {n}"), n, 20, 0)).collect());
        let (_, mut reply) = reply_to(Protocol::GameSpy1, &server, b"\\status\\");
        let ends: Vec<&[u8]> = vec![b".1", b".2", b".3", b".4\\final\\"];
        reply.sort_by_key(|datagram| ends.iter().position(|end| datagram.ends_with(end)).expect("a number"));
        assert_eq!(reply.len(), ends.len());
        assert!(reply[1].starts_with(b"\\player_"));
    }
}
