//! Replies of Source and GoldSrc servers.

use super::datagrams::Datagrams;
use super::fragments::split;
use super::variant::ProtocolVariant;
use crate::fleet::profile::ServerProfile;
use crate::model::{Player, Snapshot};

/// S2C_CHALLENGE.
pub fn a2s_challenge(challenge: [u8; 4], out: &mut Datagrams) {
    out.bytes.extend_from_slice(b"\xFF\xFF\xFF\xFFA");
    out.bytes.extend_from_slice(&challenge);
    out.end_datagram();
}

fn put_c_str(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// Encodes the reply to A2S_INFO. `players` is the announced number, which is larger than
/// the list for `Fault::Partial`; `port` is the queried one.
pub fn a2s_info(
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
        put_c_str(bytes, &format!("127.0.0.1:{port}"));
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
pub fn a2s_players(players: &[Player], announced: usize, variant: &ProtocolVariant, id: u32, out: &mut Datagrams) {
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
pub fn a2s_rules(out: &mut Datagrams) {
    out.bytes.extend_from_slice(b"\xFF\xFF\xFF\xFFE\x02\0mp_timelimit\x0030\0sv_gravity\x00800\0");
    out.end_datagram();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::profile::ProfileMix;
    use crate::fleet::wire::SplitFormat;
    use crate::fleet::wire::tests::{only, player, snapshot};

    /// The profile of a server of Counter-Strike: Source.
    fn profile() -> ServerProfile {
        let mix = ProfileMix { source_share: 1.0, activity: 1.0 };
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
