//! Teeworlds 0.6 and DDNet: `gie3` with a token of one byte, in the extended form of three. A
//! vanilla server answers with `inf3` and at most 16 clients; DDNet answers with `iext` and, if
//! the list does not fit, further `iex+` datagrams. The list is complete when it has as many
//! clients as announced, unless the name of the server says that the server itself has shortened both.
//!
//! Servers of races have each player's best time as the score: its negative seconds, or -9999 for none. Such scores are
//! no points.

use std::collections::BTreeSet;

use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step};
use super::fields::{self, c_str};
use super::nonce::Nonce;
use super::text::{player_name, points, short_text};
use crate::limits::PLAYERS_MAX;
use crate::model::{Completeness, Player, Snapshot};

const PREFIX: [u8; 6] = [0xff; 6];
const PADDING: [u8; 4] = [0xff; 4];
const VANILLA: &[u8] = b"inf3";
const EXTENDED: &[u8] = b"iext";
const EXTENDED_MORE: &[u8] = b"iex+";

/// Players of a vanilla list; a server with more clients lists only some of them.
const VANILLA_CLIENTS_MAX: u32 = 16;

/// Types of games whose scores are times. DDNet's client knows the first two; `Gores` is a mod of DDNet.
const RACES: &[&str] = &["race", "fastcap", "gores"];

/// The score of a racer who has not finished.
const NOT_FINISHED: i64 = -9_999;

/// Numbers of `iex+` datagrams: 1 to 63.
const MORE_NUMBER_MAX: u32 = 63;

/// One request and its reply.
#[derive(Clone, Debug)]
pub struct InfoQuery {
    token: u32,
    info: Option<Info>,
    /// With the scores as points, also of spectators and in races.
    players: Vec<Player>,
    /// Numbers of the `iex+` datagrams received.
    more: BTreeSet<u32>,
    last_received_ms: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Info {
    hostname: String,
    map: String,
    game_type: String,
    clients: u32,
    slots: u32,
    is_extended: bool,
    version: String,
    password: bool,
}

impl InfoQuery {
    pub fn new(nonce: Nonce) -> Self {
        // Three bytes are echoed.
        let token = (nonce.0 & 0x00ff_ffff) as u32;
        InfoQuery { token, info: None, players: Vec::new(), more: BTreeSet::new(), last_received_ms: 0 }
    }

    fn snapshot(&self, info: &Info) -> Snapshot {
        let listed = u32::try_from(self.players.len()).unwrap_or(u32::MAX);
        let game_type = info.game_type.to_ascii_lowercase();
        let are_times = RACES.iter().any(|race| game_type.contains(race))
            || self.players.iter().any(|player| player.points == Some(NOT_FINISHED));
        let with_points =
            |player: Player| Player { points: player.points.filter(|_| !are_times && !player.spectator), ..player };
        let unlisted = if info.is_extended { None } else { clients_of_shortened(&info.hostname, listed) };
        let is_full =
            listed >= info.clients && unlisted.is_none() && (info.is_extended || info.clients <= VANILLA_CLIENTS_MAX);
        Snapshot {
            t_ms: self.last_received_ms,
            game: "teeworlds".to_owned(),
            map: info.map.clone(),
            hostname: info.hostname.clone(),
            slots: info.slots,
            players: self.players.iter().cloned().map(with_points).collect(),
            completeness: Completeness::full_if(is_full),
            count: unlisted.or(Some(info.clients)).filter(|_| !is_full),
            bots: None,
        }
    }

    /// A reply with the settings: `inf3`, or the first one of the extended form.
    fn on_info(&mut self, mut rest: &[u8], is_extended: bool) -> Result<(), IgnoreReason> {
        let rest = &mut rest;
        let token_sent = if is_extended { self.token } else { self.token & 0xff };
        if number(c_str(rest)?)? != i64::from(token_sent) {
            return Err(IgnoreReason::WrongNonce);
        }
        let version = short_text(c_str(rest)?);
        let hostname = short_text(c_str(rest)?);
        let map = short_text(c_str(rest)?);
        if is_extended {
            let (_crc, _size) = (c_str(rest)?, c_str(rest)?);
        }
        let game_type = short_text(c_str(rest)?);
        let password = number(c_str(rest)?)? & 1 != 0;
        let (_players, _player_slots) = (c_str(rest)?, c_str(rest)?);
        let clients = count(c_str(rest)?)?;
        let slots = count(c_str(rest)?)?;
        if is_extended {
            let _reserved = c_str(rest)?;
        }
        let players = read_players(rest, is_extended)?;
        self.info = Some(Info { hostname, map, game_type, clients, slots, is_extended, version, password });
        self.add(players);
        Ok(())
    }

    fn on_more(&mut self, mut rest: &[u8]) -> Result<(), IgnoreReason> {
        let rest = &mut rest;
        if number(c_str(rest)?)? != i64::from(self.token) {
            return Err(IgnoreReason::WrongNonce);
        }
        let number = count(c_str(rest)?)?;
        let _reserved = c_str(rest)?;
        if !(1..=MORE_NUMBER_MAX).contains(&number) {
            return Err(IgnoreReason::BadFragment);
        }
        if self.more.contains(&number) {
            return Err(IgnoreReason::UnexpectedMessage);
        }
        self.add(read_players(rest, true)?);
        self.more.insert(number);
        Ok(())
    }

    fn add(&mut self, players: Vec<Player>) {
        let space = PLAYERS_MAX - self.players.len();
        self.players.extend(players.into_iter().take(space));
    }
}

impl Exchange for InfoQuery {
    fn request(&self) -> Vec<u8> {
        let [_, high, middle, low] = self.token.to_be_bytes();
        // The extended form; a vanilla server skips the first six bytes.
        [b"xe", &[high, middle, 0, 0][..], &PADDING, b"gie3", &[low]].concat()
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        let Some(body) = bytes.strip_prefix(&PREFIX).and_then(|rest| rest.strip_prefix(&PADDING)) else {
            return Step::Ignore(IgnoreReason::NotAReply);
        };
        let result = if let Some(rest) = body.strip_prefix(EXTENDED_MORE) {
            self.on_more(rest)
        } else if let Some(rest) = body.strip_prefix(EXTENDED) {
            if self.info.is_some() { Err(IgnoreReason::UnexpectedMessage) } else { self.on_info(rest, true) }
        } else if let Some(rest) = body.strip_prefix(VANILLA) {
            if self.info.is_some() { Err(IgnoreReason::UnexpectedMessage) } else { self.on_info(rest, false) }
        } else {
            Err(IgnoreReason::NotAReply)
        };
        if let Err(reason) = result {
            return Step::Ignore(reason);
        }
        self.last_received_ms = t_ms;
        match &self.info {
            Some(info) if !info.is_extended || self.players.len() >= info.clients as usize => {
                Step::Done(Box::new(self.snapshot(info)))
            }
            _ => Step::Wait,
        }
    }

    fn authentication(&self) -> Authentication {
        // The original game repeats one byte of the token: who forges 256 replies has guessed it.
        match &self.info {
            Some(info) if !info.is_extended => Authentication::Address,
            _ => Authentication::Nonce,
        }
    }

    fn details(&self, _last_datagram: &[u8], _level: DetailLevel) -> Details {
        let Some(info) = &self.info else { return Details::default() };
        Details {
            game_type: Some(info.game_type.clone()),
            version: Some(info.version.clone()),
            password: Some(info.password),
            ..Details::default()
        }
    }

    fn partial_snapshot(&mut self) -> Option<Snapshot> {
        let info = self.info.clone()?;
        Some(Snapshot { completeness: Completeness::Partial, ..self.snapshot(&info) })
    }
}

/// The number of clients of a server that shortened its list for a client of the original game, which has 16 slots. DDNet
/// then appends it to its name, `A host [45/64]`, and announces at most 16. Also for 0.7.
pub(super) fn clients_of_shortened(hostname: &str, listed: u32) -> Option<u32> {
    let (clients, slots) = hostname.strip_suffix(']')?.rsplit_once(" [")?.1.split_once('/')?;
    let clients = slots.parse::<u32>().and(clients.parse::<u32>()).ok()?;
    // With fewer, nothing is shortened, and such an end is a part of the name.
    (clients >= VANILLA_CLIENTS_MAX && clients as usize <= PLAYERS_MAX && clients > listed).then_some(clients)
}

/// Clients: name, clan, country, score, whether they play; in the extended form a reserved
/// string, too.
fn read_players(rest: &mut &[u8], is_extended: bool) -> Result<Vec<Player>, IgnoreReason> {
    let mut players = Vec::new();
    while !rest.is_empty() && players.len() < PLAYERS_MAX {
        let name = player_name(c_str(rest)?);
        let (_clan, _country) = (c_str(rest)?, c_str(rest)?);
        let score = number(c_str(rest)?)?;
        let plays = number(c_str(rest)?)? != 0;
        if is_extended {
            let _reserved = c_str(rest)?;
        }
        players.push(Player { name, points: Some(points(score)), spectator: !plays, ..Player::default() });
    }
    Ok(players)
}

fn number(text: &[u8]) -> Result<i64, IgnoreReason> {
    fields::number(text).ok_or(IgnoreReason::Malformed)
}

/// A number of clients or datagrams.
fn count(text: &[u8]) -> Result<u32, IgnoreReason> {
    match u32::try_from(number(text)?) {
        Ok(count) if count as usize <= PLAYERS_MAX => Ok(count),
        _ => Err(IgnoreReason::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: u32 = 0x0012_3456;

    fn query() -> InfoQuery {
        InfoQuery::new(Nonce(u64::from(TOKEN)))
    }

    fn reply(kind: &[u8], texts: &[&str]) -> Vec<u8> {
        let strings: Vec<u8> = texts.iter().flat_map(|text| [text.as_bytes(), b"\0"].concat()).collect();
        [&PREFIX[..], &PADDING, kind, &strings].concat()
    }

    fn extended(clients: &str, list: &[&str]) -> Vec<u8> {
        let head =
            ["1193046", "0.6.4, 18.1", "A host", "Kobra", "123", "456", "DDNet", "0", clients, "64", clients, "64", ""];
        reply(EXTENDED, &[&head[..], list].concat())
    }

    #[test]
    fn vanilla_reply_of_at_most_16_clients_is_full() {
        let mut query = query();
        assert_eq!(query.request(), b"xe\x12\x34\x00\x00\xff\xff\xff\xffgie3\x56");
        let head = ["86", "0.6.5", "A host", "ctf5", "CTF", "0", "1", "8", "2", "12"];
        let list = ["One", "clan", "276", "7", "1", "Two", "", "-1", "0", "0"];
        let Step::Done(snapshot) = query.handle_datagram(5, &reply(VANILLA, &[&head[..], &list].concat())) else {
            panic!()
        };
        assert_eq!((snapshot.game.as_str(), snapshot.map.as_str()), ("teeworlds", "ctf5"));
        assert_eq!((snapshot.hostname.as_str(), snapshot.slots), ("A host", 12));
        let players: Vec<_> = snapshot.players.iter().map(|p| (p.name.as_str(), p.points, p.spectator)).collect();
        assert_eq!(players, [("One", Some(7), false), ("Two", None, true)]);
        assert_eq!((snapshot.completeness, query.authentication()), (Completeness::Full, Authentication::Address));
    }

    #[test]
    fn extended_list_is_complete_with_the_announced_clients() {
        let first = extended("2", &["One", "", "0", "-9999", "1", ""]);
        let more = reply(EXTENDED_MORE, &["1193046", "1", "", "Two", "", "0", "5", "1", ""]);
        for order in [[&first, &more], [&more, &first]] {
            let mut query = query();
            assert_eq!(query.handle_datagram(1, order[0]), Step::Wait);
            assert_eq!(query.handle_datagram(1, order[0]), Step::Ignore(IgnoreReason::UnexpectedMessage));
            let Step::Done(snapshot) = query.handle_datagram(2, order[1]) else { panic!() };
            assert_eq!((snapshot.players.len(), snapshot.completeness), (2, Completeness::Full));
            assert_eq!(query.authentication(), Authentication::Nonce);
        }
        let mut query = query();
        assert_eq!(query.handle_datagram(1, &first), Step::Wait);
        let partial = query.partial_snapshot().unwrap();
        assert_eq!((partial.completeness, partial.count), (Completeness::Partial, Some(2)));
    }

    #[test]
    fn times_of_races_are_no_points() {
        let points = |game_type, scores: [&str; 2]| {
            let head = ["86", "0.6.5", "A host", "Kobra", game_type, "0", "2", "8", "2", "12"];
            let list = ["One", "", "0", scores[0], "1", "Two", "", "0", scores[1], "0"];
            match query().handle_datagram(5, &reply(VANILLA, &[&head[..], &list].concat())) {
                Step::Done(snapshot) => snapshot.players.iter().map(|player| player.points).collect::<Vec<_>>(),
                step => panic!("{step:?}"),
            }
        };
        for game_type in ["DDraceNetwork", "Race", "FastCap", "GORES"] {
            assert_eq!(points(game_type, ["-83", "-70"]), [None, None], "{game_type}");
        }
        assert_eq!(points("TestDDNet", ["-83", "-9999"]), [None, None]);
        assert_eq!(points("CTF", ["-83", "-70"]), [Some(-83), None]);
    }

    #[test]
    fn list_shortened_by_the_server_is_partial() {
        let scan = |hostname: &str, clients: usize| {
            let number = clients.to_string();
            let head = ["86", "0.6.5", hostname, "dm1", "DM", "0", &number, "16", &number, "16"];
            let list = ["n", "", "0", "1", "1"].repeat(clients);
            match query().handle_datagram(5, &reply(VANILLA, &[&head[..], &list].concat())) {
                Step::Done(snapshot) => (snapshot.completeness, snapshot.count),
                step => panic!("{step:?}"),
            }
        };
        assert_eq!(scan("A host [45/64]", 15), (Completeness::Partial, Some(45)));
        for (hostname, clients) in [
            ("A host [3/64]", 3),
            ("A host [16/16]", 16),
            ("Server [1/2]", 0),
            ("A host [45]", 15),
            ("[45/64] A host", 15),
        ] {
            assert_eq!(scan(hostname, clients), (Completeness::Full, None), "{hostname}");
        }
    }

    #[test]
    fn list_withheld_by_a_rate_limit_is_partial() {
        // Above its limit a DDNet server sends the settings only.
        let mut query = query();
        assert_eq!(query.handle_datagram(1, &extended("9", &[])), Step::Wait);
        assert_eq!(query.partial_snapshot().map(|s| (s.completeness, s.count)), Some((Completeness::Partial, Some(9))));
    }

    #[test]
    fn wrong_tokens_and_malformed_replies_are_ignored() {
        for (bytes, reason) in [
            (reply(VANILLA, &["87", "v"]), IgnoreReason::WrongNonce),
            (reply(EXTENDED, &["86", "v"]), IgnoreReason::WrongNonce),
            (reply(EXTENDED_MORE, &["1193046", "64", ""]), IgnoreReason::BadFragment),
            (reply(VANILLA, &["x"]), IgnoreReason::Malformed),
            (reply(VANILLA, &["86", "v"]), IgnoreReason::Malformed),
            (reply(b"fstd", &[]), IgnoreReason::NotAReply),
            (b"inf3".to_vec(), IgnoreReason::NotAReply),
        ] {
            assert_eq!(query().handle_datagram(0, &bytes), Step::Ignore(reason));
        }
    }
}
