//! Odamex: the launcher query, protocol version 7. The server echoes the client's time, which is the
//! nonce. The reply is one datagram with settings, files and players, without compression.

use bytes::Buf;

use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step};
use super::fields::{self, c_str, skip, take};
use super::nonce::Nonce;
use super::text::{player_name, points, short_text};
use crate::model::{Completeness, Player, Snapshot};

// Tags: twelve bits of the protocol, four of the sender (1 launcher, 3 server), four of the direction
// (1 query, 2 reply), twelve of the message.
const QUERY: u32 = 0xad01_1002;
const REPLY: u32 = 0xad03_2003;
/// The server's version, and that the client is too old.
const VERSION_REPLIES: [u32; 2] = [0xad03_2001, 0xad03_2002];

/// The version of the client: 255.0.0. A server refuses clients with a lower major version than its own,
/// but none with a higher one.
const CLIENT_VERSION: u32 = 255 << 8;

/// A newer server answers in this version, too.
const PROTOCOL_VERSION: u32 = 7;

// Types of settings.
const BYTE: u8 = 2;
const WORD: u8 = 3;
const INTEGER: u8 = 4;
const FLOAT: u8 = 5;
const STRING: u8 = 6;

// Values of `sv_gametype`; a setting that is 0 is not sent.
const COOPERATIVE: i64 = 0;
const TEAM_DEATHMATCH: i64 = 2;
const CAPTURE_THE_FLAG: i64 = 3;
const HORDE: i64 = 4;

/// The types of the game by their numbers.
const GAME_TYPES: [&str; 5] = ["Cooperative", "Deathmatch", "Team Deathmatch", "Capture The Flag", "Horde"];

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
        let [tag, version, protocol] = [QUERY, CLIENT_VERSION, PROTOCOL_VERSION].map(u32::to_le_bytes);
        [tag, version, protocol, self.nonce].concat()
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        decode(t_ms, bytes, self.nonce).into()
    }

    fn authentication(&self) -> Authentication {
        Authentication::Nonce
    }

    fn details(&self, last_datagram: &[u8], level: DetailLevel) -> Details {
        let Ok(reply) = read(last_datagram, self.nonce) else { return Details::default() };
        let settings: Vec<(&[u8], Vec<u8>)> =
            reply.settings.iter().map(|setting| (setting.name, setting.value.text())).collect();
        let pairs = settings.iter().map(|(name, value)| (*name, &value[..]));
        let game_type = usize::try_from(reply.game_type()).ok().and_then(|number| GAME_TYPES.get(number));
        let details = Details {
            game_type: game_type.map(|&name| name.to_owned()),
            version: Some(short_text(reply.version)),
            password: Some(reply.password),
            ..Details::from_pairs(pairs, level)
        };
        details.with_player_teams(reply.team_names())
    }
}

/// Decodes a reply. One that ends inside the player list gives a partial snapshot.
///
/// Errors: another kind of datagram; another nonce; an older version of the protocol; it ends before the
/// player list.
pub fn decode(t_ms: i64, datagram: &[u8], nonce: [u8; 4]) -> Result<Snapshot, IgnoreReason> {
    let reply = read(datagram, nonce)?;
    let is_full = !reply.is_cut && reply.players.len() == usize::from(reply.announced);
    Ok(Snapshot {
        t_ms,
        game: "odamex".to_owned(),
        map: short_text(reply.map),
        hostname: reply.setting(b"sv_hostname").map(|value| short_text(&value.text())).unwrap_or_default(),
        slots: u32::try_from(reply.number(b"sv_maxclients")).unwrap_or(0),
        players: reply.players,
        completeness: Completeness::full_if(is_full),
        count: Some(reply.announced.into()).filter(|_| !is_full),
        bots: None,
    })
}

/// A setting that is not 0 or empty.
#[derive(Clone, Copy, Debug)]
struct Setting<'a> {
    name: &'a [u8],
    value: Value<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    Number(i64),
    Text(&'a [u8]),
}

impl Value<'_> {
    fn text(self) -> Vec<u8> {
        match self {
            Value::Number(number) => number.to_string().into_bytes(),
            Value::Text(text) => text.to_vec(),
        }
    }

    /// Rounded, as the server does.
    fn number(self) -> i64 {
        match self {
            Value::Number(number) => number,
            Value::Text(text) => rounded(text).unwrap_or(0),
        }
    }
}

/// A decimal number such as `10` or `2.5`, rounded. Times and limits are never negative.
fn rounded(text: &[u8]) -> Option<i64> {
    let mut parts = text.split(|&b| b == b'.');
    let whole: i64 = fields::number(parts.next()?)?;
    let is_half = parts.next().and_then(|fraction| fraction.first()).is_some_and(|digit| (b'5'..=b'9').contains(digit));
    whole.checked_add(is_half.into())
}

/// The fields of a reply.
#[derive(Clone, Debug)]
struct Reply<'a> {
    version: &'a [u8],
    settings: Vec<Setting<'a>>,
    password: bool,
    map: &'a [u8],
    teams: Vec<&'a [u8]>,
    announced: u8,
    players: Vec<Player>,
    /// The number of each player's team.
    player_teams: Vec<Option<u8>>,
    /// The list ends inside an entry.
    is_cut: bool,
}

fn read(datagram: &[u8], nonce: [u8; 4]) -> Result<Reply<'_>, IgnoreReason> {
    let mut rest = datagram;
    match rest.try_get_u32_le() {
        Ok(REPLY) => {}
        Ok(tag) if VERSION_REPLIES.contains(&tag) => return Err(IgnoreReason::UnexpectedMessage),
        _ => return Err(IgnoreReason::NotAReply),
    }
    let rest = &mut rest;
    let _server_version = rest.try_get_u32_le()?;
    let protocol = rest.try_get_u32_le()?;
    if take(rest, 4)? != nonce {
        return Err(IgnoreReason::WrongNonce);
    }
    if protocol != PROTOCOL_VERSION {
        return Err(IgnoreReason::UnexpectedMessage);
    }
    let _server_protocol = rest.try_get_u32_le()?;
    let mut reply = Reply {
        version: c_str(rest)?,
        settings: read_settings(rest)?,
        // The hash of the password.
        password: !hash(rest)?.is_empty(),
        map: c_str(rest)?,
        teams: Vec::new(),
        announced: 0,
        players: Vec::new(),
        player_teams: Vec::new(),
        is_cut: false,
    };
    if reply.number(b"sv_timelimit") != 0 {
        let _minutes_left = rest.try_get_u16_le()?;
    }
    if reply.has_teams() {
        reply.teams = read_teams(rest)?;
    }
    skip_files(rest)?;
    reply.announced = rest.try_get_u8()?;
    reply.read_players(rest);
    Ok(reply)
}

impl Reply<'_> {
    fn setting(&self, name: &[u8]) -> Option<Value<'_>> {
        self.settings.iter().find(|setting| setting.name == name).map(|setting| setting.value)
    }

    /// A setting that is 0 is not sent.
    fn number(&self, name: &[u8]) -> i64 {
        self.setting(name).map_or(0, Value::number)
    }

    fn game_type(&self) -> i64 {
        self.number(b"sv_gametype")
    }

    fn has_teams(&self) -> bool {
        matches!(self.game_type(), TEAM_DEATHMATCH | CAPTURE_THE_FLAG)
    }

    /// The name of each player's team; empty for none.
    fn team_names(&self) -> Vec<String> {
        let name = |team: &Option<u8>| team.and_then(|number| self.teams.get(usize::from(number)));
        self.player_teams.iter().map(|team| name(team).map(|name| short_text(name)).unwrap_or_default()).collect()
    }

    /// Players play against monsters, which give no frags.
    fn counts_kills(&self) -> bool {
        matches!(self.game_type(), COOPERATIVE | HORDE)
    }

    /// As many entries as announced, at most 255, or fewer if the reply ends.
    fn read_players(&mut self, mut rest: &[u8]) {
        let (has_teams, counts_kills) = (self.has_teams(), self.counts_kills());
        while self.players.len() < usize::from(self.announced) && !rest.is_empty() {
            let Ok((player, team)) = read_player(&mut rest, has_teams, counts_kills) else {
                self.is_cut = true;
                return;
            };
            self.player_teams.push(team);
            self.players.push(player);
        }
    }
}

fn read_settings<'a>(rest: &mut &'a [u8]) -> Result<Vec<Setting<'a>>, IgnoreReason> {
    let count = rest.try_get_u8()?;
    let mut settings = Vec::new();
    for _ in 0..count {
        let name = c_str(rest)?;
        let value = match rest.try_get_u8()? {
            BYTE => Value::Number(rest.try_get_u8()?.into()),
            WORD => Value::Number(rest.try_get_u16_le()?.into()),
            INTEGER => Value::Number(rest.try_get_i32_le()?.into()),
            FLOAT | STRING => Value::Text(c_str(rest)?),
            // A switch that is on.
            _ => Value::Number(1),
        };
        settings.push(Setting { name, value });
    }
    Ok(settings)
}

/// The names of the teams.
fn read_teams<'a>(rest: &mut &'a [u8]) -> Result<Vec<&'a [u8]>, IgnoreReason> {
    let count = rest.try_get_u8()?;
    let mut teams = Vec::new();
    for _ in 0..count {
        teams.push(c_str(rest)?);
        let (_colour, _score) = (rest.try_get_u32_le()?, rest.try_get_i16_le()?);
    }
    Ok(teams)
}

/// Patches by name, and game files by name and hash.
fn skip_files(rest: &mut &[u8]) -> Result<(), IgnoreReason> {
    for _ in 0..rest.try_get_u8()? {
        let _patch = c_str(rest)?;
    }
    for _ in 0..rest.try_get_u8()? {
        let (_file, _hash) = (c_str(rest)?, hash(rest)?);
    }
    Ok(())
}

/// Bytes after their number.
fn hash<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], IgnoreReason> {
    let length = rest.try_get_u8()?;
    take(rest, length.into())
}

/// An entry of the player list, and the number of the team.
fn read_player(rest: &mut &[u8], has_team: bool, counts_kills: bool) -> Result<(Player, Option<u8>), IgnoreReason> {
    let name = player_name(c_str(rest)?);
    // The colour.
    skip(rest, 4)?;
    let team = if has_team { Some(rest.try_get_u8()?) } else { None };
    let ping = rest.try_get_u16_le()?;
    let minutes = rest.try_get_u16_le()?;
    let spectator = rest.try_get_u8()? != 0;
    let (frags, kills, _deaths) = (rest.try_get_i16_le()?, rest.try_get_i16_le()?, rest.try_get_i16_le()?);
    let score = if counts_kills { kills } else { frags };
    let player = Player {
        name,
        points: (!spectator).then(|| points(score.into())),
        ping: Some(ping.into()),
        connected_ms: Some(u64::from(minutes) * 60_000),
        bot: false,
        spectator,
    };
    Ok((player, team.filter(|_| !spectator)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: u32 = 0x7778_797a;

    const HEAD: &[u8] = b"\x03\x20\x03\xad\x00\x0b\0\0\x07\0\0\0wxyz\x07\0\0\0";
    const VERSION: &[u8] = b"11.0.0 (abc)\0";
    const HOSTNAME: &[u8] = b"sv_hostname\0\x06A host\0";
    const CLIENTS: &[u8] = b"sv_maxclients\0\x02\x20";
    const FILES: &[u8] = b"\x01a.deh\0\x02odamex.wad\0\x02\xab\xcddoom2.wad\0\0";

    fn query() -> LauncherQuery {
        LauncherQuery::new(Nonce(NONCE.into()))
    }

    /// A reply without password.
    fn reply(settings: &[&[u8]], after_map: &[u8], list: &[u8]) -> Vec<u8> {
        let count = [settings.len() as u8];
        [HEAD, VERSION, &count, &settings.concat(), b"\0MAP07\0", after_map, FILES, list].concat()
    }

    fn team_reply() -> Vec<u8> {
        let settings: &[&[u8]] =
            &[HOSTNAME, b"sv_gametype\0\x02\x03", CLIENTS, b"sv_timelimit\0\x0515\0", b"sv_freelook\0\x01"];
        let teams = b"\x09\0\x02Blue\0\0\0\xff\0\x03\0Red\0\xff\0\0\0\xff\xff";
        let list = b"\x03One\0\0abc\x01\x30\0\x05\0\0\x07\0\x63\0\x02\0\
            Two\0\0abc\0\x00\x01\x00\x01\0\xfe\xff\0\0\0\0\
            C\0\0abc\x01\x0a\0\0\0\x01\x01\0\0\0\0\0";
        reply(settings, teams, list)
    }

    fn snapshot(datagram: &[u8]) -> Snapshot {
        match query().handle_datagram(5, datagram) {
            Step::Done(snapshot) => *snapshot,
            step => panic!("{step:?}"),
        }
    }

    #[test]
    fn request_equals_handwritten_bytes() {
        assert_eq!(query().request(), b"\x02\x10\x01\xad\x00\xff\0\0\x07\0\0\0wxyz");
    }

    #[test]
    fn reply_of_a_team_game_is_decoded() {
        let datagram = team_reply();
        let got = snapshot(&datagram);
        assert_eq!((got.game.as_str(), got.map.as_str(), got.hostname.as_str()), ("odamex", "MAP07", "A host"));
        assert_eq!((got.slots, got.t_ms, got.completeness, got.count), (32, 5, Completeness::Full, None));
        let player = |name: &str, points, ping, minutes: u64, spectator| Player {
            name: name.into(),
            points,
            ping: Some(ping),
            connected_ms: Some(minutes * 60_000),
            bot: false,
            spectator,
        };
        assert_eq!(
            got.players,
            [
                player("One", Some(7), 48, 5, false),
                player("Two", Some(-2), 256, 256, false),
                player("C", None, 10, 0, true)
            ]
        );
        let details = query().details(&datagram, DetailLevel::Rules);
        assert_eq!(details.version.as_deref(), Some("11.0.0 (abc)"));
        assert_eq!((details.game_type.as_deref(), details.password), (Some("Capture The Flag"), Some(false)));
        assert_eq!(details.player_teams, ["Red", "Blue", ""]);
        let rules: Vec<_> = details.rules.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(
            rules[1..],
            [("sv_gametype", "3"), ("sv_maxclients", "32"), ("sv_timelimit", "15"), ("sv_freelook", "1")]
        );
    }

    #[test]
    fn points_are_frags_or_in_cooperative_games_kills() {
        let list = b"\x01One\0\0abc\x30\0\x05\0\0\x07\0\x63\0\x02\0";
        let points = |settings: &[&[u8]]| snapshot(&reply(settings, b"", list)).players[0].points;
        assert_eq!(points(&[HOSTNAME]), Some(99));
        assert_eq!(points(&[b"sv_gametype\0\x02\x01"]), Some(7));
        assert_eq!(points(&[b"sv_gametype\0\x02\x04"]), Some(99));
        assert_eq!(query().details(&reply(&[], b"", list), DetailLevel::Summary).player_teams, [""; 0]);
    }

    #[test]
    fn time_left_follows_a_time_limit() {
        let list = b"\x01One\0\0abc\x30\0\x05\0\0\x07\0\x63\0\x02\0";
        for (limit, time_left) in [
            (&b"sv_timelimit\0\x0510\0"[..], &b"\x0a\0"[..]),
            (b"sv_timelimit\0\x050.5\0", b"\0\0"),
            (b"sv_timelimit\0\x050.25\0", b""),
            (b"sv_timelimit\0\x03\x0a\0", b"\x0a\0"),
            (b"sv_timelimit\0\x04\x0a\0\0\0", b"\x0a\0"),
        ] {
            assert_eq!(snapshot(&reply(&[limit], time_left, list)).players.len(), 1, "{limit:?}");
        }
    }

    #[test]
    fn password_is_announced_by_its_hash() {
        let datagram = [HEAD, VERSION, b"\0", b"\x02\x12\x34MAP01\0", b"\0\0\0"].concat();
        assert_eq!(query().details(&datagram, DetailLevel::Summary).password, Some(true));
        assert_eq!((snapshot(&datagram).players.len(), snapshot(&datagram).completeness), (0, Completeness::Full));
    }

    #[test]
    fn cut_list_is_partial_with_a_count() {
        let whole = team_reply();
        let got = snapshot(&whole[..whole.len() - 1]);
        assert_eq!((got.players.len(), got.completeness, got.count), (2, Completeness::Partial, Some(3)));
        let announced = memchr::memmem::find(&whole, b"\x03One").unwrap();
        for end in 0..=announced {
            let step = query().handle_datagram(0, &whole[..end]);
            assert!(matches!(step, Step::Ignore(_)), "{end}: {step:?}");
        }
        for end in announced + 1..whole.len() {
            let got = snapshot(&whole[..end]);
            assert_eq!(got.count.is_none(), got.completeness == Completeness::Full, "{end}");
        }
    }

    #[test]
    fn other_messages_wrong_nonces_and_malformed_replies_are_ignored() {
        let with_tag = |tag: u8| [&[tag], &team_reply()[1..]].concat();
        let mut older = team_reply();
        older[8] = 6;
        let many_settings = [HEAD, VERSION, b"\xff", &b"a\0\x01".repeat(254)].concat();
        for (bytes, reason) in [
            (&with_tag(2)[..], IgnoreReason::UnexpectedMessage),
            (&with_tag(1), IgnoreReason::UnexpectedMessage),
            (&with_tag(4), IgnoreReason::NotAReply),
            (&older, IgnoreReason::UnexpectedMessage),
            (b"\x03\x20\x03\xad\x00\x0b\0\0\x07\0\0\0wxyZ", IgnoreReason::WrongNonce),
            (b"\x03\x20\x03\xad\x00\x0b\0\0\x07\0\0\0wx", IgnoreReason::Malformed),
            (b"", IgnoreReason::NotAReply),
            (&many_settings, IgnoreReason::Malformed),
            (&[HEAD, VERSION, b"\0\xffhash"].concat(), IgnoreReason::Malformed),
        ] {
            assert_eq!(query().handle_datagram(0, bytes), Step::Ignore(reason), "{bytes:?}");
        }
    }

    #[test]
    fn numbers_are_rounded() {
        for (text, want) in
            [("10", Some(10)), ("0.5", Some(1)), ("0.49", Some(0)), ("1.", Some(1)), ("", None), ("x", None)]
        {
            assert_eq!(rounded(text.as_bytes()), want, "{text}");
        }
        assert_eq!(rounded(b"9223372036854775807.9"), None);
    }
}
