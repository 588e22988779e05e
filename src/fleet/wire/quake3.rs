//! Replies of the Quake 3 family.

use std::io::Write;

use super::datagrams::Datagrams;
use crate::model::Snapshot;
use crate::model::name::decode_text;

/// Longest message of a Quake 3 server, bytes; player lines beyond it are silently
/// omitted (ioq3 `MAX_MSGLEN`).
const QUAKE3_REPLY_BYTES_MAX: usize = 16_384;

/// Text as Quake 3 servers send it: Latin-1 if it decodes to the same text, else UTF-8.
fn put_quake_text(out: &mut Vec<u8>, text: &str) {
    if !text.is_ascii() {
        let latin1: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
        if let Some(bytes) = latin1.filter(|bytes| decode_text(bytes) == text) {
            return out.extend_from_slice(&bytes);
        }
    }
    out.extend_from_slice(text.as_bytes());
}

fn put_number(out: &mut Vec<u8>, number: impl std::fmt::Display) {
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{number}");
}

fn put_info_key(out: &mut Vec<u8>, key: &str, value: impl std::fmt::Display) {
    let _ = write!(out, "\\{key}\\{value}");
}

/// `statusResponse`: one datagram.
pub fn quake3_status(snapshot: &Snapshot, challenge: &[u8], out: &mut Datagrams) {
    let from = out.bytes.len();
    let bytes = &mut out.bytes;
    bytes.extend_from_slice(b"\xFF\xFF\xFF\xFFstatusResponse\n");
    put_info_key(bytes, "version", "ioq3 1.36 linux-x86_64");
    put_info_key(bytes, "protocol", 68);
    put_info_key(bytes, "g_gametype", 0);
    put_info_key(bytes, "sv_maxclients", snapshot.slots);
    put_info_key(bytes, "mapname", &snapshot.map);
    put_info_key(bytes, "gamename", &snapshot.game);
    bytes.extend_from_slice(b"\\sv_hostname\\");
    put_quake_text(bytes, &snapshot.hostname);
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
        put_quake_text(bytes, &player.name);
        bytes.extend_from_slice(b"\"\n");
        if bytes.len() - from > QUAKE3_REPLY_BYTES_MAX {
            bytes.truncate(line);
            break;
        }
    }
    out.end_datagram();
}

/// `infoResponse`: one datagram.
pub fn quake3_info(snapshot: &Snapshot, challenge: &[u8], out: &mut Datagrams) {
    let bytes = &mut out.bytes;
    bytes.extend_from_slice(b"\xFF\xFF\xFF\xFFinfoResponse\n");
    if !challenge.is_empty() {
        bytes.extend_from_slice(b"\\challenge\\");
        bytes.extend_from_slice(challenge);
    }
    put_info_key(bytes, "protocol", 68);
    bytes.extend_from_slice(b"\\hostname\\");
    put_quake_text(bytes, &snapshot.hostname);
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
    use crate::fleet::wire::tests::{only, player, snapshot};

    #[test]
    fn status_response_equals_handwritten_bytes() {
        let mut out = Datagrams::default();
        let players = vec![player("^1Visor", 12, 48, 0), player("Jürgen", -1, 0, 0), player("玩家", 0, 999, 0)];
        quake3_status(&snapshot(players), b"n0nce", &mut out);
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
        quake3_status(&snapshot(players), b"", &mut out);
        let reply = only(&out);
        assert!((QUAKE3_REPLY_BYTES_MAX - 40..=QUAKE3_REPLY_BYTES_MAX).contains(&reply.len()));
        assert!(reply.ends_with(b"x\"\n"));
    }
}
