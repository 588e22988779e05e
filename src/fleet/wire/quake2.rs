//! Replies of Quake 2 servers (`SVC_Status`).

use super::datagrams::Datagrams;
use super::text::{put, put_info_key, put_info_text, put_text};
use super::{Answer, FF4, ServerView};
use crate::fleet::rng::SplitMix64;

/// The server builds infostring and list in so many bytes, and ends the list before the first
/// line that does not fit (`SV_StatusString`: `MAX_MSGLEN` - 16).
const STATUS_BYTES_MAX: usize = 1_384;

/// Replies to `status`: one datagram.
pub(super) fn reply(server: &ServerView, query: &[u8], _rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    let command = query.strip_prefix(FF4)?.split(|b| matches!(b, b' ' | b'\n' | 0)).next()?;
    if command != b"status" {
        return None;
    }
    let snapshot = server.snapshot;
    let mut status = Vec::with_capacity(STATUS_BYTES_MAX);
    put_info_key(&mut status, "mapname", &snapshot.map);
    put_info_key(&mut status, "gamename", &snapshot.game);
    put_info_key(&mut status, "maxclients", snapshot.slots);
    put_info_key(&mut status, "protocol", 34);
    put_info_key(&mut status, "cheats", 0);
    put_info_key(&mut status, "version", "R1Q2 b8012 i386 Linux");
    put_info_text(&mut status, "hostname", &snapshot.hostname);
    status.push(b'\n');
    for player in &snapshot.players {
        let mut line = Vec::new();
        put(&mut line, format_args!("{} {} \"", player.points.unwrap_or(0), player.ping.unwrap_or(0)));
        put_text(&mut line, &player.name);
        line.extend_from_slice(b"\"\n");
        if status.len() + line.len() >= STATUS_BYTES_MAX {
            break;
        }
        status.append(&mut line);
    }
    out.bytes.extend_from_slice(b"\xFF\xFF\xFF\xFFprint\n");
    out.bytes.append(&mut status);
    out.end_datagram();
    Some(Answer::Players)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::tests::{player, refuses, reply_to, snapshot};

    #[test]
    fn status_equals_handwritten_bytes() {
        let server = snapshot(vec![player("Visor", 12, 48, 0), player("a b", -1, 0, 0)]);
        let (answer, reply) = reply_to(Protocol::Quake2, &server, b"\xFF\xFF\xFF\xFFstatus\n");
        assert_eq!(answer, Answer::Players);
        let want = b"\xFF\xFF\xFF\xFFprint\n\\mapname\\q3dm17\\gamename\\baseq3\\maxclients\\16\\protocol\\34\
            \\cheats\\0\\version\\R1Q2 b8012 i386 Linux\\hostname\\B\xFCro\n12 48 \"Visor\"\n-1 0 \"a b\"\n";
        assert_eq!(reply, [want]);
        assert!(refuses(Protocol::Quake2, &server, b"\xFF\xFF\xFF\xFFinfo 34"));
    }

    #[test]
    fn long_status_ends_at_a_line() {
        let server = snapshot(vec![player("0123456789abcde", 1, 1, 0); 200]);
        let (_, reply) = reply_to(Protocol::Quake2, &server, b"\xFF\xFF\xFF\xFFstatus");
        assert!((1_384 + 10 - 22..1_384 + 10).contains(&reply[0].len()), "{}", reply[0].len());
        assert!(reply[0].ends_with(b"e\"\n"));
    }
}
