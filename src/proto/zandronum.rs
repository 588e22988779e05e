//! Zandronum and Skulltag: the launcher query. The client chooses the fields of the reply by flags, and
//! the server echoes its time, which is the nonce. Every datagram has the Huffman code of the game. A
//! server answers one query of an address in ten seconds (`sv_queryignoretime`).
//!
//! Zandronum 3.2 splits its reply on request. It is not requested: only the first part would contain the
//! nonce, and the fields that are read fit in one datagram.

use bytes::Buf;
use smallvec::SmallVec;

use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step};
use super::fields::{c_str, take};
use super::nonce::Nonce;
use super::text::{player_name, points, short_text};
use super::zandronum_huffman::{decode as decompress, encode as compress};
use crate::model::{Completeness, Player, Snapshot};

const QUERY: u32 = 199;
const REPLY: u32 = 5_660_023;
/// The last query of this address was less than ten seconds ago.
const WAIT: u32 = 5_660_024;
const BANNED: u32 = 5_660_025;
/// Parts of a reply; of the test versions of 3.2, and of 3.2.
const PARTS: [u32; 2] = [5_660_031, 5_660_032];

/// Message and time.
const HEADER_BYTES: usize = 8;

/// The largest reply that is decompressed, bytes: 64 players, the most that the game has, with names of 80
/// bytes. Decoding more would take too long.
const REPLY_BYTES_MAX: usize = 6_144;

// Fields of a reply, in its order.
const NAME: u32 = 1 << 0;
const MAP: u32 = 1 << 3;
const CLIENTS_MAX: u32 = 1 << 4;
const GAME_TYPE: u32 = 1 << 7;
const PASSWORD: u32 = 1 << 10;
const PLAYER_COUNT: u32 = 1 << 19;
const PLAYERS: u32 = 1 << 20;
/// A server sends it only if its players are in teams. Then each player has a team, too.
const TEAM_COUNT: u32 = 1 << 21;

const FIELDS: u32 = NAME | MAP | CLIENTS_MAX | GAME_TYPE | PASSWORD | PLAYER_COUNT | PLAYERS | TEAM_COUNT;

/// The shortest entry of the player list, bytes.
const ENTRY_BYTES_MIN: usize = 8;

/// A player without a team.
const NO_TEAM: u8 = 255;

/// The character before the code of a colour.
const COLOUR: u8 = 0x1c;

/// The types of the game by their numbers.
const GAME_TYPES: [&str; 16] = [
    "Cooperative",
    "Survival",
    "Invasion",
    "Deathmatch",
    "Teamplay",
    "Duel",
    "Terminator",
    "Last Man Standing",
    "Team Last Man Standing",
    "Possession",
    "Team Possession",
    "Team Game",
    "Capture the Flag",
    "One-Flag CTF",
    "Skulltag",
    "Domination",
];

/// One request, one reply.
#[derive(Clone, Debug)]
pub struct LauncherQuery {
    nonce: [u8; 4],
}

impl LauncherQuery {
    pub fn new(nonce: Nonce) -> Self {
        LauncherQuery { nonce: nonce.bytes4() }
    }
}

impl Exchange for LauncherQuery {
    fn request(&self) -> Vec<u8> {
        compress(&[QUERY.to_le_bytes(), FIELDS.to_le_bytes(), self.nonce].concat())
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        decode(t_ms, bytes, self.nonce).into()
    }

    fn authentication(&self) -> Authentication {
        Authentication::Nonce
    }

    fn details(&self, last_datagram: &[u8], _level: DetailLevel) -> Details {
        let Ok(reply) = read(last_datagram, self.nonce) else { return Details::default() };
        let details = Details {
            game_type: reply
                .game_type
                .and_then(|number| GAME_TYPES.get(usize::from(number)))
                .map(|&name| name.to_owned()),
            version: Some(reply.version),
            password: Some(reply.password),
            ..Details::default()
        };
        let team = |team: &Option<u8>| team.map(|number| number.to_string()).unwrap_or_default();
        details.with_player_teams(reply.teams.iter().map(team).collect())
    }
}

/// Decodes a reply. One that ends inside the player list gives a partial snapshot.
///
/// Errors: another kind of datagram; another nonce; it ends before the player list; it has fields that
/// were not requested.
pub fn decode(t_ms: i64, datagram: &[u8], nonce: [u8; 4]) -> Result<Snapshot, IgnoreReason> {
    let reply = read(datagram, nonce)?;
    let is_full = !reply.is_cut && reply.players.len() == usize::from(reply.announced);
    Ok(Snapshot {
        t_ms,
        game: "zandronum".to_owned(),
        map: reply.map,
        hostname: reply.hostname,
        slots: reply.slots,
        players: reply.players,
        completeness: Completeness::full_if(is_full),
        count: Some(reply.announced.into()).filter(|_| !is_full),
        bots: None,
    })
}

/// The fields of a reply.
#[derive(Clone, Debug)]
struct Reply {
    version: String,
    hostname: String,
    map: String,
    slots: u32,
    game_type: Option<u8>,
    password: bool,
    /// With bots and spectators.
    announced: u8,
    players: Vec<Player>,
    /// The number of each player's team.
    teams: Vec<Option<u8>>,
    /// The list ends inside an entry.
    is_cut: bool,
}

fn read(datagram: &[u8], nonce: [u8; 4]) -> Result<Reply, IgnoreReason> {
    // The rest is decompressed only if the nonce is right.
    let header = decompress(datagram, HEADER_BYTES);
    let mut rest = &header[..];
    match rest.try_get_u32_le() {
        Ok(REPLY) => {}
        Ok(message) if message == WAIT || message == BANNED || PARTS.contains(&message) => {
            return Err(IgnoreReason::UnexpectedMessage);
        }
        _ => return Err(IgnoreReason::NotAReply),
    }
    if rest != nonce {
        return Err(IgnoreReason::WrongNonce);
    }
    let bytes = decompress(datagram, REPLY_BYTES_MAX + 1);
    if bytes.len() > REPLY_BYTES_MAX {
        return Err(IgnoreReason::TooLarge);
    }
    read_fields(bytes.get(HEADER_BYTES..).unwrap_or_default())
}

fn read_fields(mut rest: &[u8]) -> Result<Reply, IgnoreReason> {
    let rest = &mut rest;
    let version = short_text(c_str(rest)?);
    let fields = rest.try_get_u32_le()?;
    // Servers leave out fields, but never add one. An unknown field cannot be skipped.
    if fields & !FIELDS != 0 || fields & PLAYERS == 0 || fields & PLAYER_COUNT == 0 {
        return Err(IgnoreReason::Malformed);
    }
    let has = |field: u32| fields & field != 0;
    let hostname = if has(NAME) { c_str(rest)? } else { b"" };
    let map = if has(MAP) { c_str(rest)? } else { b"" };
    let slots = if has(CLIENTS_MAX) { rest.try_get_u8()? } else { 0 };
    // Two bytes with modifiers follow the number.
    let game_type = if has(GAME_TYPE) { take(rest, 3)?.first().copied() } else { None };
    let password = has(PASSWORD) && rest.try_get_u8()? != 0;
    let announced = rest.try_get_u8()?;
    let mut reply = Reply {
        version,
        hostname: short_text(&without_colours(hostname)),
        map: short_text(map),
        slots: slots.into(),
        game_type,
        password,
        announced,
        players: Vec::with_capacity(usize::from(announced).min(rest.len() / ENTRY_BYTES_MIN)),
        teams: Vec::new(),
        is_cut: false,
    };
    reply.read_players(rest, has(TEAM_COUNT));
    Ok(reply)
}

impl Reply {
    /// As many entries as announced, at most 255, or fewer if the reply ends.
    fn read_players(&mut self, mut rest: &[u8], has_teams: bool) {
        // The number of teams comes after the list.
        let bytes_after = usize::from(has_teams);
        while self.players.len() < usize::from(self.announced) && rest.len() > bytes_after {
            let Ok((player, team)) = read_player(&mut rest, has_teams) else {
                self.is_cut = true;
                return;
            };
            self.players.push(player);
            self.teams.push(team);
        }
    }
}

/// An entry of the player list, and the number of the team.
fn read_player(rest: &mut &[u8], has_team: bool) -> Result<(Player, Option<u8>), IgnoreReason> {
    let name = player_name(&without_colours(c_str(rest)?));
    // Points, wins, frags or kills: what the type of the game counts.
    let score = rest.try_get_i16_le()?;
    let ping = rest.try_get_u16_le()?;
    let spectator = rest.try_get_u8()? != 0;
    let bot = rest.try_get_u8()? != 0;
    let team = if has_team { rest.try_get_u8()? } else { NO_TEAM };
    // Those since the player joined or the map began, modulo 256.
    let _minutes = rest.try_get_u8()?;
    let player = Player {
        name,
        points: (!spectator).then(|| points(score.into())),
        ping: Some(ping.into()),
        connected_ms: None,
        bot,
        spectator,
    };
    Ok((player, Some(team).filter(|&team| team != NO_TEAM)))
}

/// The text without colour codes: `1C` and one character, or `1C` and a name in square brackets. Host names
/// may have `\c` instead of `1C`.
fn without_colours(text: &[u8]) -> SmallVec<[u8; 64]> {
    if memchr::memchr2(COLOUR, b'\\', text).is_none() {
        return text.into();
    }
    let mut out = SmallVec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        rest = match (*first, after) {
            (COLOUR, after) | (b'\\', [b'c', after @ ..]) => after_colour(after),
            _ => {
                out.push(*first);
                after
            }
        };
    }
    out
}

fn after_colour(code: &[u8]) -> &[u8] {
    let len = match code.first() {
        Some(b'[') => memchr::memchr(b']', code).map_or(code.len(), |end| end + 1),
        _ => 1,
    };
    code.get(len..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: u32 = 0x7778_797a;

    /// The reply of the test `compressed_reply_is_decoded`, as the game compresses it.
    const COMPRESSED: &[u8] =
        b"\x07\x53\x13\xf1\xd2\xd4\x23\x9b\xd3\x56\x5b\x26\x5b\xba\x9a\x1b\x27\xff\x7a\xba\x7a\xba\x9a\x7b\
        \x7a\x7a\x7a\x7c\x14\x52\xbe\xf2\x8b\xd4\x98\x23\x1e\xd7\xd2\xd5\xd2\xd3\xdc\xc5\xba\xb9\xe9\x86\
        \x8d\x71\x7f\xc2\x3b\x9b\xa1\xe0\x23\x36\x7a\xe2\x3c\x66\x47\x8d\x1a\x21\x6e\x93\xdc\xb0\xc7\xaf\
        \x74\xa9\x23\x95\x44\x82\x23\x15\x49\x0d\xd5\x23\x89\x44\x30\xf7\x32\x75\x94\x06\x0f\x96\xb4\x93\
        \x17\xb3\x8d\x91\x22\x49\xca\xa3\x5d\xff\x01";

    fn query() -> LauncherQuery {
        LauncherQuery::new(Nonce(NONCE.into()))
    }

    /// A reply that is not compressed, with these fields and bytes from the number of players.
    fn reply(fields: u32, list: &[u8]) -> Vec<u8> {
        let head = b"\xff\x77\x5d\x56\x00wxyz3.1 on Linux 6.1\0";
        let settings = b"\x1cgA \\c[Red]host\\c-\0MAP01\0\x20\x0c\0\0\x01";
        [&head[..], &fields.to_le_bytes(), settings, list].concat()
    }

    const TEAM_LIST: &[u8] = b"\x03One\0\x07\0\x30\0\0\0\x01\x05\
        \x1cdT\x1c[Blue]wo\0\xfe\xff\0\0\0\x01\x00\x0aC\0\x01\0\0\x01\x01\0\xff\x00\x02";

    fn snapshot(datagram: &[u8]) -> Snapshot {
        match query().handle_datagram(5, datagram) {
            Step::Done(snapshot) => *snapshot,
            step => panic!("{step:?}"),
        }
    }

    #[test]
    fn request_is_compressed_and_ends_with_the_nonce() {
        assert_eq!(query().request(), b"\x04\xb8\x49\xc2\x3b\x9b\xb5\xa6\x1e\xd9\x9c\x06");
        assert_eq!(decompress(&query().request(), 99), b"\xc7\0\0\0\x99\x04\x38\0wxyz");
    }

    #[test]
    fn reply_of_a_team_game_is_decoded() {
        let datagram = reply(FIELDS, TEAM_LIST);
        let got = snapshot(&datagram);
        assert_eq!((got.game.as_str(), got.map.as_str(), got.hostname.as_str()), ("zandronum", "MAP01", "A host"));
        assert_eq!((got.slots, got.t_ms, got.completeness, got.count), (32, 5, Completeness::Full, None));
        let player = |name: &str, points, ping, bot, spectator| Player {
            name: name.into(),
            points,
            ping: Some(ping),
            connected_ms: None,
            bot,
            spectator,
        };
        assert_eq!(
            got.players,
            [
                player("One", Some(7), 48, false, false),
                player("Two", Some(-2), 0, true, false),
                player("C", None, 256, false, true),
            ]
        );
        let details = query().details(&datagram, DetailLevel::Rules);
        assert_eq!(details.version.as_deref(), Some("3.1 on Linux 6.1"));
        assert_eq!((details.game_type.as_deref(), details.password), (Some("Capture the Flag"), Some(true)));
        assert_eq!(details.player_teams, ["1", "0", ""]);
    }

    #[test]
    fn compressed_reply_is_decoded() {
        let got = snapshot(COMPRESSED);
        assert_eq!((got.hostname.as_str(), got.map.as_str(), got.slots), ("Old School", "D2DUEL1", 16));
        let players: Vec<_> = got.players.iter().map(|p| (p.name.as_str(), p.points, p.spectator)).collect();
        assert_eq!(players, [("One", Some(12), false), ("Two", Some(-1), false), ("Three", None, true)]);
        assert_eq!(got.completeness, Completeness::Full);
        let details = query().details(COMPRESSED, DetailLevel::Summary);
        assert_eq!((details.game_type.as_deref(), details.password), (Some("Duel"), Some(false)));
        assert_eq!(details.player_teams, [""; 0]);
    }

    #[test]
    fn server_without_players_has_an_empty_list() {
        let got = snapshot(&reply(FIELDS & !TEAM_COUNT, b"\0"));
        assert_eq!((got.players.len(), got.completeness), (0, Completeness::Full));
    }

    #[test]
    fn cut_list_is_partial_with_a_count() {
        let whole = reply(FIELDS, TEAM_LIST);
        // Without the last byte of the list, and the number of teams.
        let got = snapshot(&whole[..whole.len() - 2]);
        assert_eq!((got.players.len(), got.completeness, got.count), (2, Completeness::Partial, Some(3)));
        let announced = whole.len() - TEAM_LIST.len();
        for end in announced + 1..whole.len() {
            assert!(snapshot(&whole[..end]).players.len() <= 3, "{end}");
        }
        for end in 0..=announced {
            let step = query().handle_datagram(0, &whole[..end]);
            assert!(matches!(step, Step::Ignore(_)), "{end}: {step:?}");
        }
    }

    #[test]
    fn list_that_ends_before_the_announced_number_is_partial() {
        for announced in [4, 255] {
            let list = [&[announced], &TEAM_LIST[1..]].concat();
            let got = snapshot(&reply(FIELDS, &list));
            let want = (3, Completeness::Partial, Some(announced.into()));
            assert_eq!((got.players.len(), got.completeness, got.count), want);
        }
    }

    #[test]
    fn refusals_wrong_nonces_and_malformed_replies_are_ignored() {
        let unknown = reply(FIELDS | 1 << 31, TEAM_LIST);
        let without_list = reply(FIELDS & !PLAYERS, b"\0");
        let large = [&reply(FIELDS, TEAM_LIST)[..], &[0; REPLY_BYTES_MAX]].concat();
        // All bits 0 are codes of four bits.
        let noise = [0; 60_000];
        for (bytes, reason) in [
            (&b"\xff\x78\x5d\x56\x00wxyz"[..], IgnoreReason::UnexpectedMessage),
            (b"\xff\x79\x5d\x56\x00wxyz", IgnoreReason::UnexpectedMessage),
            (b"\xff\x80\x5d\x56\x00\0\x02\0\0wxyz", IgnoreReason::UnexpectedMessage),
            (b"\xff\x77\x5d\x56\x00wxyZ3.1\0", IgnoreReason::WrongNonce),
            (b"\xff\x77\x5d\x56\x00wxy", IgnoreReason::WrongNonce),
            (b"\xff\x77\x5d\x56\x00wxyz3.1", IgnoreReason::Malformed),
            (b"\xff\x77\x5d\x56\x01wxyz3.1\0", IgnoreReason::NotAReply),
            (b"\xff\x77\x5d", IgnoreReason::NotAReply),
            (b"", IgnoreReason::NotAReply),
            (&unknown, IgnoreReason::Malformed),
            (&without_list, IgnoreReason::Malformed),
            (&large, IgnoreReason::TooLarge),
            (&noise, IgnoreReason::NotAReply),
        ] {
            let start = &bytes[..bytes.len().min(20)];
            assert_eq!(query().handle_datagram(0, bytes), Step::Ignore(reason), "{start:?}");
        }
    }

    #[test]
    fn colours_are_removed_once() {
        for (text, want) in [
            ("plain", "plain"),
            ("\x1cared", "red"),
            ("\x1c[Dark Red]red\x1c-", "red"),
            ("\x1c[open", ""),
            ("a\x1c", "a"),
            ("\x1c\x1cab", "ab"),
            ("\\cared", "red"),
            ("a\\b\\", "a\\b\\"),
        ] {
            assert_eq!(&*without_colours(text.as_bytes()), want.as_bytes(), "{text:?}");
        }
    }
}
