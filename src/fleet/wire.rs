//! The server side of the protocols (PROTOCOLS section 2): parses queries, encodes
//! snapshots as replies, splits replies into fragments. No sockets, no faults: this is
//! what a correct server sends. It shares no code with `proto`, so that tests can compare
//! the two.
//!
//! Servers differ, as real ones do: [`ProtocolVariant`] defines how, fixed by the seed.

use std::io::Write;

use super::games::{Family, ServerProfile};
use super::rng::{Rng, hash_parts};
use crate::model::name::decode_text;
use crate::model::{Player, Snapshot};

const SINGLE_HEADER: [u8; 4] = [0xFF; 4];
const INFO_QUERY: &[u8] = b"\xFF\xFF\xFF\xFFTSource Engine Query\0";

/// Longest message of a Quake 3 server, bytes; player lines beyond it are silently
/// omitted (ioq3 `MAX_MSGLEN`).
const QUAKE3_REPLY_BYTES_MAX: usize = 16_384;

/// Longest challenge that a Quake 3 server accepts (ioq3 `SVC_Status`).
const QUAKE3_CHALLENGE_BYTES_MAX: usize = 128;

/// A client's query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientQuery<'a> {
    /// Quake 3: all fields.
    Status {
        challenge: &'a [u8],
    },
    /// Quake 3: all fields except the players' names.
    Info {
        challenge: &'a [u8],
    },
    /// A2S_INFO, with the challenge if one was sent.
    A2sInfo {
        challenge: Option<[u8; 4]>,
    },
    A2sPlayer {
        challenge: [u8; 4],
    },
    A2sRules {
        challenge: [u8; 4],
    },
}

impl ClientQuery<'_> {
    /// Parses a query. `None` if a server of this family does not reply to it.
    pub fn parse(family: Family, bytes: &[u8]) -> Option<ClientQuery<'_>> {
        let body = bytes.strip_prefix(&SINGLE_HEADER)?;
        match family {
            Family::Quake3 => parse_quake3(body),
            Family::Source => parse_a2s(bytes, body),
        }
    }
}

fn parse_quake3(body: &[u8]) -> Option<ClientQuery<'_>> {
    let line = body.split(|&b| b == b'\n' || b == 0).next()?;
    let mut words = line.split(|&b| b == b' ').filter(|word| !word.is_empty());
    let command = words.next()?;
    let challenge = words.next().unwrap_or_default();
    if challenge.len() > QUAKE3_CHALLENGE_BYTES_MAX {
        return None;
    }
    match command {
        b"getstatus" => Some(ClientQuery::Status { challenge }),
        b"getinfo" => Some(ClientQuery::Info { challenge }),
        _ => None,
    }
}

fn parse_a2s<'a>(bytes: &'a [u8], body: &'a [u8]) -> Option<ClientQuery<'a>> {
    let (&kind, rest) = body.split_first()?;
    if kind == b'T' {
        let tail = bytes.strip_prefix(INFO_QUERY)?;
        return Some(ClientQuery::A2sInfo { challenge: tail.try_into().ok() });
    }
    let challenge = rest.try_into().ok()?;
    match kind {
        b'U' => Some(ClientQuery::A2sPlayer { challenge }),
        b'V' => Some(ClientQuery::A2sRules { challenge }),
        _ => None,
    }
}

/// The fragment format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitFormat {
    /// One datagram of any length: the Quake 3 family, and Rust's servers.
    Never,
    Source,
    /// Without the size field: CS:S at protocol 7.
    SourceWithoutSize,
    /// Source, compressed with bzip2.
    Bzip2,
    GoldSrc,
}

/// How a server differs from others of its family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolVariant {
    /// Replies to A2S_INFO with a challenge first, as since 2020.
    pub info_challenge: bool,
    /// Sends A2S_INFO in the format of the oldest GoldSrc servers, `m`.
    pub goldsrc_info: bool,
    pub split: SplitFormat,
    /// Maximum payload of one fragment, bytes.
    pub fragment_bytes: usize,
    /// Extra data flag of A2S_INFO: which optional fields follow.
    pub edf: u8,
}

impl ProtocolVariant {
    pub fn of(seed: u64, server: u32, nature: &ServerProfile) -> ProtocolVariant {
        let rng = &mut Rng::new(&[seed, 0x3A21, u64::from(server)]);
        let (challenge, old, split, size) = (rng.unit(), rng.unit(), rng.unit(), rng.unit());
        let edf = *[0xB1, 0xB1, 0xA1, 0x21, 0xF1, 0x40, 0x01, 0x00].get(rng.below(8)).unwrap_or(&0);
        let goldsrc = nature.game.goldsrc;
        let old_info = goldsrc && old < 0.15;
        ProtocolVariant {
            info_challenge: !old_info && challenge < 0.85,
            goldsrc_info: old_info,
            split: match nature.game.family {
                Family::Quake3 => SplitFormat::Never,
                Family::Source if goldsrc => SplitFormat::GoldSrc,
                Family::Source if split < 0.05 => SplitFormat::Never,
                Family::Source if split < 0.15 => SplitFormat::Bzip2,
                Family::Source if split < 0.25 && nature.game.app_id == 240 => SplitFormat::SourceWithoutSize,
                Family::Source => SplitFormat::Source,
            },
            // Some operators configure small packets, which makes fragments common.
            fragment_bytes: if size < 0.15 { 256 } else { 1_248 },
            edf,
        }
    }

    fn protocol(&self) -> u8 {
        match self.split {
            SplitFormat::GoldSrc => 48,
            SplitFormat::SourceWithoutSize => 7,
            _ => 17,
        }
    }
}

/// The challenge that a server sends to a client; never `FF FF FF FF`.
pub fn challenge(seed: u64, server: u32, asker: u64) -> [u8; 4] {
    ((hash_parts(&[seed, 0xC4A1, u64::from(server), asker]) as u32) & 0x7FFF_FFFF).to_le_bytes()
}

/// Datagrams in one buffer, in the order of sending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Datagrams {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Datagrams {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let froms = std::iter::once(0).chain(self.ends.iter().copied());
        froms.zip(&self.ends).map(|(from, &to)| &self.bytes[from..to])
    }

    fn end_datagram(&mut self) {
        self.ends.push(self.bytes.len());
    }
}

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
    nature: &ServerProfile,
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
        for text in [&*snapshot.hostname, &snapshot.map, &snapshot.game, nature.game.title] {
            put_c_str(bytes, text);
        }
        // Protocol, dedicated, Linux, open, no mod, no VAC.
        bytes.extend_from_slice(&[count, slots, 47, b'd', b'l', 0, 0, 0, bots]);
        return out.end_datagram();
    }
    bytes.extend_from_slice(b"\xFF\xFF\xFF\xFFI");
    bytes.push(variant.protocol());
    for text in [&*snapshot.hostname, &snapshot.map, &snapshot.game, nature.game.title] {
        put_c_str(bytes, text);
    }
    bytes.extend_from_slice(&nature.game.app_id.to_le_bytes());
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
        bytes.extend_from_slice(&u64::from(nature.game.app_id).to_le_bytes());
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

/// Splits a reply into datagrams. The highest bit of `id` is set for compressed replies
/// and cleared for others.
pub fn split(reply: &[u8], how: SplitFormat, fragment_bytes: usize, id: u32, out: &mut Datagrams) {
    if reply.len() <= fragment_bytes || how == SplitFormat::Never {
        out.bytes.extend_from_slice(reply);
        return out.end_datagram();
    }
    let compressed;
    let (id, body) = match how {
        SplitFormat::Bzip2 => {
            compressed = compress(reply);
            (id | 1 << 31, &compressed[..])
        }
        _ => (id & !(1 << 31), reply),
    };
    // GoldSrc counts fragments in a nibble, the other formats in a byte.
    let fragments_max = if how == SplitFormat::GoldSrc { 15 } else { 255 };
    let fragment_bytes = fragment_bytes.max(body.len().div_ceil(fragments_max));
    let total = body.len().div_ceil(fragment_bytes) as u8;
    for (number, chunk) in body.chunks(fragment_bytes).enumerate() {
        let number = number as u8;
        let bytes = &mut out.bytes;
        bytes.extend_from_slice(b"\xFE\xFF\xFF\xFF");
        bytes.extend_from_slice(&id.to_le_bytes());
        match how {
            SplitFormat::GoldSrc => bytes.push(number << 4 | total),
            _ => bytes.extend_from_slice(&[total, number]),
        }
        if how == SplitFormat::Source {
            bytes.extend_from_slice(&(fragment_bytes as u16).to_le_bytes());
        }
        bytes.extend_from_slice(chunk);
        out.end_datagram();
    }
}

/// Size and CRC-32 of the reply, then the reply compressed with bzip2.
fn compress(reply: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::with_capacity(reply.len());
    compressed.extend_from_slice(&(reply.len() as u32).to_le_bytes());
    compressed.extend_from_slice(&crc32fast::hash(reply).to_le_bytes());
    let mut encoder = bzip2::write::BzEncoder::new(compressed, bzip2::Compression::fast());
    encoder.write_all(reply).expect("writing to memory");
    encoder.finish().expect("writing to memory")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::fleet::games::ProfileMix;
    use crate::model::Completeness;

    fn player(name: &str, points: i64, ping: i32, connected_ms: u64) -> Player {
        Player {
            name: name.into(),
            points: Some(points),
            ping: Some(ping),
            connected_ms: Some(connected_ms),
            bot: false,
            spectator: false,
        }
    }

    fn snapshot(players: Vec<Player>) -> Snapshot {
        Snapshot {
            t_ms: 0,
            game: "baseq3".into(),
            map: "q3dm17".into(),
            hostname: "Büro".into(),
            slots: 16,
            players,
            completeness: Completeness::Full,
            count: None,
            bots: None,
        }
    }

    fn nature(family: Family) -> ServerProfile {
        let mixture = ProfileMix { source_share: if family == Family::Source { 1.0 } else { 0.0 }, activity: 1.0 };
        (0..)
            .map(|server| ServerProfile::generate(1, server, mixture))
            .find(|n| n.game.app_id == 240 || family == Family::Quake3)
            .unwrap()
    }

    fn only(out: &Datagrams) -> &[u8] {
        assert_eq!(out.len(), 1);
        out.iter().next().unwrap()
    }

    #[test]
    fn queries_of_both_families_are_parsed() {
        use Family::*;
        for (family, bytes, want) in [
            (Quake3, &b"\xFF\xFF\xFF\xFFgetstatus abc\n"[..], Some(ClientQuery::Status { challenge: b"abc" })),
            (Quake3, b"\xFF\xFF\xFF\xFFgetstatus", Some(ClientQuery::Status { challenge: b"" })),
            (Quake3, b"\xFF\xFF\xFF\xFFgetinfo x", Some(ClientQuery::Info { challenge: b"x" })),
            (Quake3, b"getstatus\n", None),
            (Quake3, b"\xFF\xFF\xFF\xFF", None),
            (Quake3, b"\xFF\xFF\xFF\xFFrcon x", None),
            (Source, b"\xFF\xFF\xFF\xFFTSource Engine Query\0", Some(ClientQuery::A2sInfo { challenge: None })),
            (
                Source,
                b"\xFF\xFF\xFF\xFFTSource Engine Query\0\x01\x02\x03\x04",
                Some(ClientQuery::A2sInfo { challenge: Some([1, 2, 3, 4]) }),
            ),
            (Source, b"\xFF\xFF\xFF\xFFTSource", None),
            (Source, b"\xFF\xFF\xFF\xFFU\xFF\xFF\xFF\xFF", Some(ClientQuery::A2sPlayer { challenge: [255; 4] })),
            (Source, b"\xFF\xFF\xFF\xFFV\x01\0\0\0", Some(ClientQuery::A2sRules { challenge: [1, 0, 0, 0] })),
            (Source, b"\xFF\xFF\xFF\xFFU\x01", None),
            (Source, b"\xFF\xFF\xFF\xFFgetstatus\n", None),
            (Source, b"", None),
        ] {
            assert_eq!(ClientQuery::parse(family, bytes), want, "{bytes:?}");
        }
        let long = |n: usize| [&b"\xFF\xFF\xFF\xFFgetstatus "[..], &vec![b'a'; n]].concat();
        assert!(ClientQuery::parse(Quake3, &long(128)).is_some() && ClientQuery::parse(Quake3, &long(129)).is_none());
    }

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

    #[test]
    fn a2s_replies_equal_handwritten_bytes() {
        let nature = nature(Family::Source);
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
        a2s_info(&source, &nature, &variant, 2, 27_015, &mut out);
        let head =
            b"\xFF\xFF\xFF\xFFI\x11h\0m\0cstrike\0Counter-Strike: Source\0\xF0\x00\x02\x10\x01dl\x00\x011.0.0.70\0";
        let tail = b"\xF1\x87\x69\x00\x00\x00\x00\x00\x00\x40\x01\x8C\x69SourceTV\0alltalk,increased_maxplayers\0\xF0\0\0\0\0\0\0\0";
        assert_eq!(only(&out), [&head[..], tail].concat());

        out.clear();
        variant.edf = 0;
        a2s_info(&source, &nature, &variant, 2, 27_015, &mut out);
        assert_eq!(only(&out), head);

        out.clear();
        variant.goldsrc_info = true;
        a2s_info(&source, &nature, &variant, 2, 27_015, &mut out);
        let old = b"\xFF\xFF\xFF\xFFm127.0.0.1:27015\0h\0m\0cstrike\0Counter-Strike: Source\0\x02\x10\x2Fdl\0\0\0\x01";
        assert_eq!(only(&out), old);

        out.clear();
        a2s_players(&source.players, 2, &variant, 7, &mut out);
        let want = b"\xFF\xFF\xFF\xFFD\x02\0ab\0\x02\x01\0\0\0\0\xC0\x3F\0\0\xFF\xFF\xFF\xFF\0\0\0\0";
        assert_eq!(only(&out), want);
    }

    #[test]
    fn fragments_equal_handwritten_bytes() {
        let cut = |how| {
            let mut out = Datagrams::default();
            split(b"0123456789", how, 4, 0x8001_0203, &mut out);
            out.iter().map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        assert_eq!(cut(SplitFormat::Never), [b"0123456789"]);
        assert_eq!(
            cut(SplitFormat::Source),
            [
                b"\xFE\xFF\xFF\xFF\x03\x02\x01\x00\x03\x00\x04\x000123".to_vec(),
                b"\xFE\xFF\xFF\xFF\x03\x02\x01\x00\x03\x01\x04\x004567".to_vec(),
                b"\xFE\xFF\xFF\xFF\x03\x02\x01\x00\x03\x02\x04\x0089".to_vec(),
            ]
        );
        assert_eq!(cut(SplitFormat::SourceWithoutSize)[2], b"\xFE\xFF\xFF\xFF\x03\x02\x01\x00\x03\x0289");
        assert_eq!(cut(SplitFormat::GoldSrc)[1], b"\xFE\xFF\xFF\xFF\x03\x02\x01\x00\x134567");
    }

    #[test]
    fn compressed_fragments_decompress() {
        let reply: Vec<u8> = (0..2_000_u32).flat_map(|i| hash_parts(&[u64::from(i)]).to_le_bytes()).collect();
        let mut out = Datagrams::default();
        split(&reply, SplitFormat::Bzip2, 1_248, 5, &mut out);
        let mut body = Vec::new();
        for (number, datagram) in out.iter().enumerate() {
            assert_eq!(&datagram[..8], b"\xFE\xFF\xFF\xFF\x05\0\0\x80");
            assert_eq!(datagram[8..10], [out.len() as u8, number as u8]);
            body.extend_from_slice(&datagram[10..]);
        }
        assert_eq!(body[..4], 16_000_u32.to_le_bytes());
        assert_eq!(body[4..8], crc32fast::hash(&reply).to_le_bytes());
        assert_eq!(&body[8..11], b"BZh");
        let mut decompressed = Vec::new();
        bzip2::read::BzDecoder::new(&body[8..]).read_to_end(&mut decompressed).unwrap();
        assert_eq!(decompressed, reply);
    }

    #[test]
    fn goldsrc_never_needs_more_than_15_fragments() {
        let mut out = Datagrams::default();
        split(&[7; 10_000], SplitFormat::GoldSrc, 256, 5, &mut out);
        assert_eq!(out.len(), 15);
        assert_eq!(out.iter().last().unwrap()[8], 0xEF);
    }

    #[test]
    fn every_protocol_variant_occurs() {
        let mixture = ProfileMix { source_share: 0.9, activity: 1.0 };
        let all: Vec<ProtocolVariant> = (0..2_000)
            .map(|server| ProtocolVariant::of(1, server, &ServerProfile::generate(1, server, mixture)))
            .collect();
        for split in [
            SplitFormat::Never,
            SplitFormat::Source,
            SplitFormat::SourceWithoutSize,
            SplitFormat::Bzip2,
            SplitFormat::GoldSrc,
        ] {
            assert!(all.iter().filter(|v| v.split == split).count() > 20, "{split:?}");
        }
        assert!(all.iter().filter(|v| v.goldsrc_info).count() > 20);
        assert!(all.iter().filter(|v| v.info_challenge).count() > 1_000);
    }
}
