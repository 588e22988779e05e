//! Teeworlds 0.7: first the tokens of both sides are exchanged; then `gie3` and its reply, one
//! datagram. Numbers are variable-length integers.

use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step};
use super::fields::{c_str, take};
use super::nonce::Nonce;
use super::teeworlds::clients_of_shortened;
use super::teeworlds7_packet::{Packet, Tokens};
use super::text::{player_name, points, short_text};
use crate::limits::PLAYERS_MAX;
use crate::model::{Completeness, Player, Snapshot};

const REQUEST: &[u8] = b"\xff\xff\xff\xffgie3";
const REPLY: &[u8] = b"\xff\xff\xff\xffinf3";

/// Bits of the server's flags.
const PASSWORD: i32 = 1;
/// Scores are times.
const TIME_SCORE: i32 = 2;

/// Bits of a client's flags.
const SPECTATOR: i32 = 1;
const BOT: i32 = 2;

/// A token request and an information request.
#[derive(Clone, Debug)]
pub struct InfoQuery {
    tokens: Tokens,
}

impl InfoQuery {
    pub fn new(nonce: Nonce) -> Self {
        InfoQuery { tokens: Tokens::new(nonce) }
    }

    /// The token in the request for information; less than 64 fits into one byte.
    fn browser_token(&self) -> u8 {
        self.tokens.own()[3] & 0x3f
    }
}

impl Exchange for InfoQuery {
    fn request(&self) -> Vec<u8> {
        self.tokens.packet(&[REQUEST, &[self.browser_token()]].concat())
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        match self.tokens.handle(bytes) {
            Ok(Packet::Token) => Step::Send,
            Ok(Packet::Message(message)) => decode(t_ms, message, self.browser_token()).into(),
            Err(reason) => Step::Ignore(reason),
        }
    }

    fn authentication(&self) -> Authentication {
        Authentication::Nonce
    }

    fn details(&self, last_datagram: &[u8], _level: DetailLevel) -> Details {
        let message = self.tokens.message(last_datagram);
        match message.and_then(|mut message| Header::read(&mut message, self.browser_token())) {
            Ok(header) => Details {
                game_type: Some(short_text(header.game_type)),
                version: Some(short_text(header.version)),
                password: Some(header.flags & PASSWORD != 0),
                ..Details::default()
            },
            Err(_) => Details::default(),
        }
    }
}

/// Decodes the information. A list with fewer clients than announced gives a
/// partial snapshot.
fn decode(t_ms: i64, mut rest: &[u8], browser_token: u8) -> Result<Snapshot, IgnoreReason> {
    let rest = &mut rest;
    let Header { hostname, map, flags, clients, slots, .. } = Header::read(rest, browser_token)?;
    let mut players = Vec::new();
    while !rest.is_empty() && players.len() < PLAYERS_MAX {
        match client(rest) {
            Ok(player) if flags & TIME_SCORE != 0 => players.push(Player { points: None, ..player }),
            Ok(player) => players.push(player),
            Err(_) => break,
        }
    }
    let hostname = short_text(hostname);
    let unlisted = clients_of_shortened(&hostname, u32::try_from(players.len()).unwrap_or(u32::MAX));
    let is_full = players.len() >= clients as usize && unlisted.is_none();
    Ok(Snapshot {
        t_ms,
        game: "teeworlds".to_owned(),
        map: short_text(map),
        hostname,
        slots,
        players,
        completeness: Completeness::full_if(is_full),
        count: unlisted.or(Some(clients)).filter(|_| !is_full),
        bots: None,
    })
}

/// The information before the list of clients. Texts are undecoded.
struct Header<'a> {
    version: &'a [u8],
    hostname: &'a [u8],
    map: &'a [u8],
    game_type: &'a [u8],
    flags: i32,
    clients: u32,
    slots: u32,
}

impl<'a> Header<'a> {
    fn read(rest: &mut &'a [u8], browser_token: u8) -> Result<Header<'a>, IgnoreReason> {
        *rest = rest.strip_prefix(REPLY).ok_or(IgnoreReason::UnexpectedMessage)?;
        if integer(rest)? != i32::from(browser_token) {
            return Err(IgnoreReason::WrongNonce);
        }
        let (version, hostname) = (c_str(rest)?, c_str(rest)?);
        let _address = c_str(rest)?;
        let (map, game_type) = (c_str(rest)?, c_str(rest)?);
        let (flags, _skill) = (integer(rest)?, integer(rest)?);
        let (_players, _player_slots) = (integer(rest)?, integer(rest)?);
        let (clients, slots) = (count(rest)?, count(rest)?);
        Ok(Header { version, hostname, map, game_type, flags, clients, slots })
    }
}

/// Name, clan, country, score, flags.
fn client(rest: &mut &[u8]) -> Result<Player, IgnoreReason> {
    let name = player_name(c_str(rest)?);
    let _clan = c_str(rest)?;
    let _country = integer(rest)?;
    let score = integer(rest)?;
    let flags = integer(rest)?;
    let spectator = flags & SPECTATOR != 0;
    Ok(Player {
        name,
        points: Some(points(score.into())).filter(|_| !spectator),
        ping: None,
        connected_ms: None,
        bot: flags & BOT != 0,
        spectator,
    })
}

/// A number of clients.
fn count(rest: &mut &[u8]) -> Result<u32, IgnoreReason> {
    match u32::try_from(integer(rest)?) {
        Ok(count) if count as usize <= PLAYERS_MAX => Ok(count),
        _ => Err(IgnoreReason::Malformed),
    }
}

/// A variable-length integer: the first byte has a mark that more follow, the sign and six bits;
/// each of at most four others has the mark and seven bits. Low bits come first.
fn integer(rest: &mut &[u8]) -> Result<i32, IgnoreReason> {
    let first = take(rest, 1)?[0];
    let mut value = i32::from(first & 0x3f);
    let mut more = first & 0x80 != 0;
    let mut shift = 6;
    while more {
        if shift > 27 {
            return Err(IgnoreReason::Malformed);
        }
        let byte = take(rest, 1)?[0];
        value |= i32::from(byte & 0x7f) << shift;
        more = byte & 0x80 != 0;
        shift += 7;
    }
    Ok(if first & 0x40 == 0 { value } else { !value })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: [u8; 4] = *b"wxyz";
    const SERVER_TOKEN: [u8; 4] = *b"SRVT";

    fn query() -> InfoQuery {
        InfoQuery::new(Nonce(u64::from(u32::from_be_bytes(TOKEN))))
    }

    fn token_reply() -> Vec<u8> {
        [b"\x04\0\0", &TOKEN[..], b"\x05", &SERVER_TOKEN].concat()
    }

    fn info_reply(clients: u8, list: &[u8]) -> Vec<u8> {
        let texts = b"0.7.5\0A host\0\0dm1\0DM\0";
        let numbers = [0, 1, 2, 8, clients, 16];
        let token = [TOKEN[3] & 0x3f];
        [b"\x21", &TOKEN[..], &SERVER_TOKEN, REPLY, &token, texts, &numbers, list].concat()
    }

    #[test]
    fn tokens_are_exchanged_before_the_information() {
        let mut query = query();
        assert_eq!(query.request()[..12], *b"\x04\0\0\xff\xff\xff\xff\x05wxyz");
        let list = b"One\0clan\0\x00\x07\x00Two\0\0\x00\x41\x01Bot\0\0\x00\xac\x01\x02";
        assert_eq!(query.handle_datagram(1, &info_reply(3, list)), Step::Ignore(IgnoreReason::UnexpectedMessage));
        assert_eq!(query.handle_datagram(1, &token_reply()), Step::Send);
        assert_eq!(query.handle_datagram(1, &token_reply()), Step::Ignore(IgnoreReason::UnexpectedMessage));
        assert_eq!(query.request(), b"\x21SRVTwxyz\xff\xff\xff\xffgie3\x3a");
        let Step::Done(snapshot) = query.handle_datagram(2, &info_reply(3, list)) else { panic!() };
        let details = query.details(&info_reply(3, list), DetailLevel::Summary);
        assert_eq!((details.game_type.as_deref(), details.version.as_deref()), (Some("DM"), Some("0.7.5")));
        assert_eq!((details.password, details.player_teams.len()), (Some(false), 0));
        assert_eq!((snapshot.game.as_str(), snapshot.map.as_str()), ("teeworlds", "dm1"));
        assert_eq!((snapshot.hostname.as_str(), snapshot.slots), ("A host", 16));
        let players: Vec<_> =
            snapshot.players.iter().map(|p| (p.name.as_str(), p.points, p.spectator, p.bot)).collect();
        assert_eq!(
            players,
            [("One", Some(7), false, false), ("Two", None, true, false), ("Bot", Some(108), false, true)]
        );
        assert_eq!(snapshot.completeness, Completeness::Full);
    }

    #[test]
    fn list_shortened_by_the_server_is_partial() {
        let texts = b"0.7.5\0A host [45/64]\0\0dm1\0DM\0";
        let numbers = [0, 1, 1, 16, 1, 16];
        let token = [TOKEN[3] & 0x3f];
        let list = b"One\0\0\x00\x07\x00";
        let reply = [b"\x21", &TOKEN[..], &SERVER_TOKEN, REPLY, &token, texts, &numbers, list].concat();
        let mut query = query();
        assert_eq!(query.handle_datagram(0, &token_reply()), Step::Send);
        let Step::Done(snapshot) = query.handle_datagram(0, &reply) else { panic!() };
        assert_eq!((snapshot.completeness, snapshot.count), (Completeness::Partial, Some(45)));
    }

    #[test]
    fn times_are_no_points() {
        let mut reply = info_reply(1, b"One\0\0\x00\x07\x00");
        // After the header, the token and the texts.
        let flags = 9 + REPLY.len() + 1 + 21;
        for (value, points) in [(0, Some(7)), (1, Some(7)), (2, None), (3, None)] {
            let mut query = query();
            assert_eq!(query.handle_datagram(0, &token_reply()), Step::Send);
            reply[flags] = value;
            let Step::Done(snapshot) = query.handle_datagram(0, &reply) else { panic!() };
            assert_eq!(snapshot.players[0].points, points, "{value}");
            assert_eq!(query.details(&reply, DetailLevel::Summary).password, Some(value & 1 != 0));
        }
    }

    #[test]
    fn cut_reply_is_partial_or_ignored() {
        let list = b"One\0clan\0\x00\x07\x00Two\0\0\x00\x01\x00";
        let whole = info_reply(2, list);
        let list_start = whole.len() - list.len();
        for cut in 0..whole.len() {
            let mut query = query();
            assert_eq!(query.handle_datagram(0, &token_reply()), Step::Send);
            match query.handle_datagram(0, &whole[..cut]) {
                Step::Done(snapshot) => {
                    assert_eq!((snapshot.completeness, snapshot.count), (Completeness::Partial, Some(2)), "{cut}")
                }
                Step::Ignore(_) => assert!(cut < list_start, "{cut}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn wrong_tokens_are_ignored() {
        let mut query = query();
        let wrong = [b"\x04\0\0wxyZ\x05", &SERVER_TOKEN[..]].concat();
        assert_eq!(query.handle_datagram(0, &wrong), Step::Ignore(IgnoreReason::WrongNonce));
        assert_eq!(query.handle_datagram(0, &token_reply()), Step::Send);
        let mut wrong = info_reply(0, b"");
        wrong[1] = b'W';
        assert_eq!(query.handle_datagram(0, &wrong), Step::Ignore(IgnoreReason::WrongNonce));
        assert_eq!(query.handle_datagram(0, b"x"), Step::Ignore(IgnoreReason::NotAReply));
        assert_eq!(query.handle_datagram(0, b""), Step::Ignore(IgnoreReason::NotAReply));
    }

    #[test]
    fn integers_of_one_to_five_bytes_are_decoded() {
        for (bytes, value) in [
            (&b"\x00"[..], 0),
            (b"\x3f", 63),
            (b"\x40", -1),
            (b"\x7f", -64),
            (b"\x80\x01", 64),
            (b"\xc0\x01", -65),
            (b"\xbf\xff\xff\xff\x0f", i32::MAX),
            (b"\xff\xff\xff\xff\x0f", i32::MIN),
        ] {
            assert_eq!(integer(&mut &bytes[..]), Ok(value), "{bytes:?}");
        }
        assert_eq!(integer(&mut &b"\xff\xff\xff\xff\xff\x01"[..]), Err(IgnoreReason::Malformed));
        assert_eq!(integer(&mut &b"\x80"[..]), Err(IgnoreReason::Malformed));
    }
}
