//! Replies of Source and GoldSrc servers.

use super::datagrams::Datagrams;
use super::fragments::split;
use super::text::put_c_str;
use super::variant::ProtocolVariant;
use super::{Answer, FF4, ServerView};
use crate::fleet::profile::ServerProfile;
use crate::fleet::rng::{RngExt, SplitMix64};
use crate::model::{Player, Snapshot};

const INFO_QUERY: &[u8] = b"\xFF\xFF\xFF\xFFTSource Engine Query\0";

/// Replies to A2S_INFO, A2S_PLAYER and A2S_RULES. The last two need the challenge, the first
/// on most servers.
pub(super) fn reply(server: &ServerView, query: &[u8], rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    let (&kind, rest) = query.strip_prefix(FF4)?.split_first()?;
    let given = if kind == b'T' { query.strip_prefix(INFO_QUERY)? } else { rest }.try_into().ok();
    let needs_challenge = match kind {
        b'T' => server.variant.info_challenge,
        b'U' | b'V' => true,
        _ => return None,
    };
    if kind != b'T' && given.is_none() {
        return None;
    }
    if needs_challenge && !server.accepts(given) {
        a2s_challenge(server.challenge, out);
        return Some(Answer::Other);
    }
    let players = &server.snapshot.players;
    match kind {
        b'T' => a2s_info(server.snapshot, server.profile, server.variant, players.len(), server.port, out),
        b'U' => {
            let id = rng.bits() as u32;
            a2s_players(players, players.len() + server.missing, server.variant, id, out);
            return Some(Answer::Players);
        }
        _ => a2s_rules(out),
    }
    Some(Answer::Other)
}

/// S2C_CHALLENGE.
fn a2s_challenge(challenge: [u8; 4], out: &mut Datagrams) {
    out.bytes.extend_from_slice(b"\xFF\xFF\xFF\xFFA");
    out.bytes.extend_from_slice(&challenge);
    out.end_datagram();
}

/// Encodes the reply to A2S_INFO. `players` is the announced number, which is larger than
/// the list for `Fault::Partial`; `port` is the queried one.
fn a2s_info(
    snapshot: &Snapshot,
    profile: &ServerProfile,
    variant: &ProtocolVariant,
    players: usize,
    port: u16,
    out: &mut Datagrams,
) {
    let count = players.min(255) as u8;
    let slots = snapshot.slots.min(255) as u8;
    let bots = snapshot.bots.unwrap_or(0).min(255) as u8;
    let bytes = &mut out.bytes;
    if variant.goldsrc_info {
        bytes.extend_from_slice(b"\xFF\xFF\xFF\xFFm");
        put_c_str(bytes, format_args!("127.0.0.1:{port}"));
        for text in [&*snapshot.hostname, &snapshot.map, &snapshot.game, profile.game.title] {
            put_c_str(bytes, text);
        }
        // Protocol, dedicated, Linux, open, no mod, no VAC.
        bytes.extend_from_slice(&[count, slots, 47, b'd', b'l', 0, 0, 0, bots]);
        return out.end_datagram();
    }
    bytes.extend_from_slice(b"\xFF\xFF\xFF\xFFI");
    bytes.push(variant.protocol());
    for text in [&*snapshot.hostname, &snapshot.map, &snapshot.game, profile.game.title] {
        put_c_str(bytes, text);
    }
    bytes.extend_from_slice(&profile.game.app_id.to_le_bytes());
    // Dedicated, Linux, open, with VAC.
    bytes.extend_from_slice(&[count, slots, bots, b'd', b'l', 0, 1]);
    put_c_str(bytes, "1.0.0.70");
    if variant.edf != 0 {
        bytes.push(variant.edf);
    }
    if variant.edf & 0x80 != 0 {
        bytes.extend_from_slice(&port.to_le_bytes());
    }
    if variant.edf & 0x10 != 0 {
        bytes.extend_from_slice(&90_071_992_547_409_920_u64.to_le_bytes());
    }
    if variant.edf & 0x40 != 0 {
        bytes.extend_from_slice(&27_020_u16.to_le_bytes());
        put_c_str(bytes, "SourceTV");
    }
    if variant.edf & 0x20 != 0 {
        put_c_str(bytes, "alltalk,increased_maxplayers");
    }
    if variant.edf & 0x01 != 0 {
        bytes.extend_from_slice(&u64::from(profile.game.app_id).to_le_bytes());
    }
    out.end_datagram();
}

/// Encodes the reply to A2S_PLAYER, in fragments if it is long. `announced` is the count
/// byte; `id` identifies the fragments of one reply.
fn a2s_players(players: &[Player], announced: usize, variant: &ProtocolVariant, id: u32, out: &mut Datagrams) {
    let mut reply = Vec::with_capacity(16 + players.len() * 24);
    reply.extend_from_slice(b"\xFF\xFF\xFF\xFFD");
    reply.push(announced.min(255) as u8);
    for player in players.iter().take(255) {
        reply.push(0); // the index, which real servers leave at 0
        put_c_str(&mut reply, &player.name);
        reply.extend_from_slice(&(player.points.unwrap_or(0) as i32).to_le_bytes());
        let seconds = player.connected_ms.unwrap_or(0) as f32 / 1_000.0;
        reply.extend_from_slice(&seconds.to_le_bytes());
    }
    split(&reply, variant.split, variant.fragment_bytes, id, out);
}

/// The reply to A2S_RULES: two rules.
fn a2s_rules(out: &mut Datagrams) {
    out.bytes.extend_from_slice(b"\xFF\xFF\xFF\xFFE\x02\0mp_timelimit\x0030\0sv_gravity\x00800\0");
    out.end_datagram();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::profile::ProfileMix;
    use crate::fleet::protocol::{Protocol, ProtocolShares};
    use crate::fleet::wire::SplitFormat;
    use crate::fleet::wire::tests::{CHALLENGE, only, player, refuses, reply_to, snapshot};

    #[test]
    fn queries_need_the_challenge() {
        let server = snapshot(vec![player("a", 1, 2, 0)]);
        let get = |query: &[u8]| reply_to(Protocol::Source, &server, query);
        let challenge = [b"\xFF\xFF\xFF\xFFA", &CHALLENGE[..]].concat();
        for query in [
            &b"\xFF\xFF\xFF\xFFTSource Engine Query\0\x01\x02\x03\x03"[..],
            b"\xFF\xFF\xFF\xFFU\xFF\xFF\xFF\xFF",
            b"\xFF\xFF\xFF\xFFV\x01\0\0\0",
        ] {
            let (answer, reply) = get(query);
            let is_info = query[4] == b'T' && reply[0][4] == b'I';
            assert!(answer == Answer::Other && (is_info || reply == [&challenge[..]]), "{query:?}");
        }
        let (answer, reply) = get(&[b"\xFF\xFF\xFF\xFFU", &CHALLENGE[..]].concat());
        assert!(answer == Answer::Players && reply[0][4] == b'D');
        let (answer, reply) = get(&[INFO_QUERY, &CHALLENGE].concat());
        assert!(answer == Answer::Other && reply[0][4] == b'I');
        for query in [&b"\xFF\xFF\xFF\xFFTSource"[..], b"\xFF\xFF\xFF\xFFU\x01", b"\xFF\xFF\xFF\xFFgetstatus\n", b""] {
            assert!(refuses(Protocol::Source, &server, query), "{query:?}");
        }
    }

    /// The profile of a server of Counter-Strike: Source.
    fn profile() -> ServerProfile {
        let mix = ProfileMix { protocols: ProtocolShares::only(Protocol::Source), activity: 1.0 };
        let mut profiles = (0..).map(|server| ServerProfile::generate(1, server, mix));
        profiles.find(|profile| profile.game.app_id == 240).unwrap()
    }

    #[test]
    fn a2s_replies_equal_handwritten_bytes() {
        let profile = profile();
        let mut variant = ProtocolVariant {
            info_challenge: true,
            goldsrc_info: false,
            split: SplitFormat::Source,
            fragment_bytes: 1_248,
            edf: 0xF1,
            ..ProtocolVariant::of(1, 1, &profile)
        };
        let mut source = snapshot(vec![player("ab", 258, 0, 1_500), player("", -1, 0, 0)]);
        source.game = "cstrike".into();
        source.hostname = "h".into();
        source.map = "m".into();
        source.bots = Some(1);

        let mut out = Datagrams::default();
        a2s_challenge([1, 2, 3, 4], &mut out);
        assert_eq!(only(&out), b"\xFF\xFF\xFF\xFFA\x01\x02\x03\x04");

        out.clear();
        a2s_info(&source, &profile, &variant, 2, 27_015, &mut out);
        let head =
            b"\xFF\xFF\xFF\xFFI\x11h\0m\0cstrike\0Counter-Strike: Source\0\xF0\x00\x02\x10\x01dl\x00\x011.0.0.70\0";
        let tail = b"\xF1\x87\x69\x00\x00\x00\x00\x00\x00\x40\x01\x8C\x69SourceTV\0alltalk,increased_maxplayers\0\xF0\0\0\0\0\0\0\0";
        assert_eq!(only(&out), [&head[..], tail].concat());

        out.clear();
        variant.edf = 0;
        a2s_info(&source, &profile, &variant, 2, 27_015, &mut out);
        assert_eq!(only(&out), head);

        out.clear();
        variant.goldsrc_info = true;
        a2s_info(&source, &profile, &variant, 2, 27_015, &mut out);
        let old = b"\xFF\xFF\xFF\xFFm127.0.0.1:27015\0h\0m\0cstrike\0Counter-Strike: Source\0\x02\x10\x2Fdl\0\0\0\x01";
        assert_eq!(only(&out), old);

        out.clear();
        a2s_players(&source.players, 2, &variant, 7, &mut out);
        let want = b"\xFF\xFF\xFF\xFFD\x02\0ab\0\x02\x01\0\0\0\0\xC0\x3F\0\0\xFF\xFF\xFF\xFF\0\0\0\0";
        assert_eq!(only(&out), want);
    }
}
