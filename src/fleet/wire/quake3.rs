//! Replies of the Quake 3 family.

use std::ops::Range;

use super::datagrams::Datagrams;
use super::text::{put_info_key, put_info_text, put_number, put_text};
use super::{Answer, FF4, ServerView};
use crate::fleet::rng::SplitMix64;
use crate::model::Snapshot;

/// Longest message of a Quake 3 server, bytes; player lines beyond it are silently
/// omitted (ioq3 `MAX_MSGLEN`).
const QUAKE3_REPLY_BYTES_MAX: usize = 16_384;

/// Longest challenge that a server accepts (ioq3 `SVC_Status`).
const CHALLENGE_BYTES_MAX: usize = 128;

/// Replies to `getstatus` and `getinfo`, each with a challenge of the client.
pub(super) fn reply(server: &ServerView, query: &[u8], _rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    let line = query.strip_prefix(FF4)?.split(|&b| b == b'\n' || b == 0).next()?;
    let mut words = line.split(|&b| b == b' ').filter(|word| !word.is_empty());
    let command = words.next()?;
    let challenge = words.next().unwrap_or_default();
    if challenge.len() > CHALLENGE_BYTES_MAX {
        return None;
    }
    match command {
        b"getstatus" => {
            status(server.snapshot, challenge, out);
            Some(Answer::Players)
        }
        b"getinfo" => {
            info(server.snapshot, challenge, out);
            Some(Answer::Other)
        }
        _ => None,
    }
}

/// The challenge: the second word.
pub(super) fn nonce(query: &[u8]) -> Option<Range<usize>> {
    let from = query.iter().position(|&b| b == b' ')? + 1;
    let length = query[from..].iter().position(|b| matches!(b, b' ' | b'\n' | 0)).unwrap_or(query.len() - from);
    (length > 0).then_some(from..from + length)
}

/// `statusResponse`: one datagram.
fn status(snapshot: &Snapshot, challenge: &[u8], out: &mut Datagrams) {
    let from = out.bytes.len();
    let bytes = &mut out.bytes;
    bytes.extend_from_slice(b"\xFF\xFF\xFF\xFFstatusResponse\n");
    put_info_key(bytes, "version", "ioq3 1.36 linux-x86_64");
    put_info_key(bytes, "protocol", 68);
    put_info_key(bytes, "g_gametype", 0);
    put_info_key(bytes, "sv_maxclients", snapshot.slots);
    put_info_key(bytes, "mapname", &snapshot.map);
    put_info_key(bytes, "gamename", &snapshot.game);
    put_info_text(bytes, "sv_hostname", &snapshot.hostname);
    if !challenge.is_empty() {
        bytes.extend_from_slice(b"\\challenge\\");
        bytes.extend_from_slice(challenge);
    }
    bytes.push(b'\n');
    for player in &snapshot.players {
        let line = bytes.len();
        put_number(bytes, player.points.unwrap_or(0));
        bytes.push(b' ');
        put_number(bytes, player.ping.unwrap_or(0));
        bytes.extend_from_slice(b" \"");
        put_text(bytes, &player.name);
        bytes.extend_from_slice(b"\"\n");
        if bytes.len() - from > QUAKE3_REPLY_BYTES_MAX {
            bytes.truncate(line);
            break;
        }
    }
    out.end_datagram();
}

/// `infoResponse`: one datagram.
fn info(snapshot: &Snapshot, challenge: &[u8], out: &mut Datagrams) {
    let bytes = &mut out.bytes;
    bytes.extend_from_slice(b"\xFF\xFF\xFF\xFFinfoResponse\n");
    if !challenge.is_empty() {
        bytes.extend_from_slice(b"\\challenge\\");
        bytes.extend_from_slice(challenge);
    }
    put_info_key(bytes, "protocol", 68);
    put_info_text(bytes, "hostname", &snapshot.hostname);
    put_info_key(bytes, "mapname", &snapshot.map);
    put_info_key(bytes, "clients", snapshot.players.len());
    put_info_key(bytes, "sv_maxclients", snapshot.slots);
    put_info_key(bytes, "gametype", 0);
    put_info_key(bytes, "gamename", &snapshot.game);
    out.end_datagram();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::tests::{only, player, refuses, reply_to, snapshot};

    #[test]
    fn queries_are_answered_with_their_challenge() {
        let server = snapshot(vec![player("a", 1, 2, 0)]);
        let get = |query: &[u8]| reply_to(Protocol::Quake3, &server, query);
        let has = |reply: &[u8], text: &str| reply.windows(text.len()).any(|part| part == text.as_bytes());
        let (answer, reply) = get(b"\xFF\xFF\xFF\xFFgetstatus abc\n");
        assert!(answer == Answer::Players && has(&reply[0], "\\challenge\\abc\n1 2 \"a\"\n"));
        let (answer, reply) = get(b"\xFF\xFF\xFF\xFFgetstatus");
        assert!(answer == Answer::Players && !has(&reply[0], "challenge"));
        let (answer, reply) = get(b"\xFF\xFF\xFF\xFFgetinfo x");
        assert!(
            answer == Answer::Other && has(&reply[0], "infoResponse\n\\challenge\\x\\") && has(&reply[0], "clients\\1")
        );
        for query in [&b"getstatus\n"[..], b"\xFF\xFF\xFF\xFF", b"\xFF\xFF\xFF\xFFrcon x", b""] {
            assert!(refuses(Protocol::Quake3, &server, query), "{query:?}");
        }
        let long = |n: usize| [&b"\xFF\xFF\xFF\xFFgetstatus "[..], &vec![b'a'; n]].concat();
        assert!(!refuses(Protocol::Quake3, &server, &long(128)) && refuses(Protocol::Quake3, &server, &long(129)));
    }

    #[test]
    fn status_response_equals_handwritten_bytes() {
        let mut out = Datagrams::default();
        let players = vec![player("^1Visor", 12, 48, 0), player("Jürgen", -1, 0, 0), player("玩家", 0, 999, 0)];
        status(&snapshot(players), b"n0nce", &mut out);
        let mut want = b"\xFF\xFF\xFF\xFFstatusResponse\n\\version\\ioq3 1.36 linux-x86_64\\protocol\\68\
            \\g_gametype\\0\\sv_maxclients\\16\\mapname\\q3dm17\\gamename\\baseq3\\sv_hostname\\B\xFCro\
            \\challenge\\n0nce\n12 48 \"^1Visor\"\n-1 0 \"J\xFCrgen\"\n0 999 \""
            .to_vec();
        want.extend_from_slice("玩家\"\n".as_bytes());
        assert_eq!(only(&out), want);
    }

    #[test]
    fn long_status_response_ends_at_a_line() {
        let mut out = Datagrams::default();
        let players = vec![player(&"x".repeat(30), 1, 1, 0); 1_000];
        status(&snapshot(players), b"", &mut out);
        let reply = only(&out);
        assert!((QUAKE3_REPLY_BYTES_MAX - 40..=QUAKE3_REPLY_BYTES_MAX).contains(&reply.len()));
        assert!(reply.ends_with(b"x\"\n"));
    }
}
