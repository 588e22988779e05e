//! Sauerbraten (Cube 2), Tesseract and AssaultCube: the basic information, then the statistics of all clients. The
//! query port is the game port plus one; that of Tesseract is the game port.
//!
//! The server repeats the request before its reply, so a nonce in it authenticates the reply. The statistics are one
//! datagram with the numbers of the clients, and then one for each client, in any order. The list is complete with
//! all announced clients.
//!
//! Tesseract answers only requests that begin with `FF FF`, and does not repeat these bytes. To Sauerbraten they are
//! part of the request, so one request serves both, and the reply shows which game it is.

use std::collections::BTreeMap;

use super::cube_fields::{self, CLIENTS_MAX, PING, REPLY_BYTES_MAX, count, int, slots, string, without_colours};
use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step, has_enough_entries};
use super::nonce::Nonce;
use super::text::{player_name, points, short_text};
use crate::model::name::decode_text;
use crate::model::{Completeness, Player, Snapshot};

/// The first bytes of a request to Tesseract.
const TESSERACT: [u8; 2] = [0xff; 2];

/// Requests the statistics of all clients (-1). The last byte requests no extensions of server mods.
const STATISTICS: [u8; 4] = [0, 1, 0xff, 0];

const ACKNOWLEDGED: i32 = -1;
/// The first version of the statistics with this list of fields, in AssaultCube.
const VERSION_MIN: i32 = 104;
const NO_ERROR: i32 = 0;
const ERROR: i32 = 1;
const CLIENT_NUMBERS: i32 = -10;
const CLIENT: i32 = -11;

/// The first client number of bots in Cube 2.
const FIRST_BOT: usize = 128;
/// The state of a spectator in Cube 2.
const SPECTATOR: i32 = 5;
/// The master mode of a server with a password in Cube 2.
const PASSWORD: i32 = 4;

/// Versions of AssaultCube's protocol are above it, mods have negative ones. It tells AssaultCube from other games,
/// whose replies have a number of clients here.
const ASSAULTCUBE_PROTOCOL_MIN: u32 = 1_000;

/// The modes of Sauerbraten, from 0.
const SAUERBRATEN_MODES: &[&str] = &[
    "ffa",
    "coop edit",
    "teamplay",
    "instagib",
    "insta team",
    "efficiency",
    "effic team",
    "tactics",
    "tac team",
    "capture",
    "regen capture",
    "ctf",
    "insta ctf",
    "protect",
    "insta protect",
    "hold",
    "insta hold",
    "effic ctf",
    "effic protect",
    "effic hold",
    "collect",
    "insta collect",
    "effic collect",
];
/// Modes of Sauerbraten without teams. Its servers send teams in every mode.
const SAUERBRATEN_SOLO_MODES: &[i32] = &[0, 1, 3, 5, 7];

/// The modes of AssaultCube, from 0.
const ASSAULTCUBE_MODES: &[&str] = &[
    "team deathmatch",
    "coopedit",
    "deathmatch",
    "survivor",
    "team survivor",
    "ctf",
    "pistol frenzy",
    "bot team deathmatch",
    "bot deathmatch",
    "last swiss standing",
    "one shot, one kill",
    "team one shot, one kill",
    "bot one shot, one kill",
    "hunt the flag",
    "team keep the flag",
    "keep the flag",
    "team pistol frenzy",
    "team last swiss standing",
    "bot pistol frenzy",
    "bot last swiss standing",
    "bot team survivor",
    "bot team one shot, one kill",
];
/// Modes of AssaultCube without teams. Its servers send teams in every mode.
const ASSAULTCUBE_SOLO_MODES: &[i32] = &[1, 2, 3, 6, 8, 9, 10, 12, 15, 18, 19];

/// A request of the information and one of the statistics.
#[derive(Clone, Debug)]
pub struct CubeQuery {
    game: Game,
    nonce: [u8; 8],
    info: Option<Info>,
    /// The numbers of the clients in the order of the reply, each once.
    numbers: Option<Vec<usize>>,
    entries: BTreeMap<usize, Entry>,
    last_received_ms: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Game {
    /// Tesseract, too, until the first reply.
    Sauerbraten,
    Tesseract,
    AssaultCube,
}

/// The basic information.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Info {
    protocol: i32,
    mode: i32,
    /// Without bots.
    clients: u32,
    slots: u32,
    map: String,
    hostname: String,
    password: bool,
}

/// The statistics of a client.
#[derive(Clone, Debug)]
struct Entry {
    player: Player,
    team: String,
}

impl CubeQuery {
    /// Also for Tesseract.
    pub fn sauerbraten(nonce: Nonce) -> Self {
        CubeQuery::new(Game::Sauerbraten, nonce)
    }

    pub fn assaultcube(nonce: Nonce) -> Self {
        CubeQuery::new(Game::AssaultCube, nonce)
    }

    fn new(game: Game, nonce: Nonce) -> Self {
        let (nonce, entries) = (nonce.0.to_be_bytes(), BTreeMap::new());
        CubeQuery { game, nonce, info: None, numbers: None, entries, last_received_ms: 0 }
    }

    fn decode(&mut self, t_ms: i64, bytes: &[u8]) -> Result<Step, IgnoreReason> {
        if bytes.len() > REPLY_BYTES_MAX {
            return Err(IgnoreReason::TooLarge);
        }
        if let Some(rest) = bytes.strip_prefix(&STATISTICS) {
            let rest = rest.strip_prefix(&self.nonce).ok_or(IgnoreReason::WrongNonce)?;
            let step = self.on_statistics(t_ms, rest)?;
            self.last_received_ms = t_ms;
            return Ok(step);
        }
        let (game, rest) = match (self.game, bytes.strip_prefix(&TESSERACT)) {
            (Game::AssaultCube, _) => (Game::AssaultCube, bytes),
            (_, Some(rest)) => (Game::Sauerbraten, rest),
            (_, None) => (Game::Tesseract, bytes),
        };
        let rest = rest.strip_prefix(&PING).ok_or(IgnoreReason::NotAReply)?;
        let rest = rest.strip_prefix(&self.nonce).ok_or(IgnoreReason::WrongNonce)?;
        if self.info.is_some() {
            return Err(IgnoreReason::UnexpectedMessage);
        }
        let info = game.info(rest)?;
        let is_empty = info.clients == 0;
        (self.game, self.info, self.last_received_ms) = (game, Some(info), t_ms);
        Ok(if is_empty { self.done(t_ms) } else { Step::Send })
    }

    fn on_statistics(&mut self, t_ms: i64, mut rest: &[u8]) -> Result<Step, IgnoreReason> {
        let rest = &mut rest;
        if self.info.is_none() {
            return Err(IgnoreReason::UnexpectedMessage);
        }
        if int(rest)? != ACKNOWLEDGED || int(rest)? < VERSION_MIN {
            return Err(IgnoreReason::Malformed);
        }
        match int(rest)? {
            NO_ERROR => {}
            // The server does not send them.
            ERROR => return Ok(self.done(t_ms)),
            _ => return Err(IgnoreReason::Malformed),
        }
        match int(rest)? {
            CLIENT_NUMBERS => self.numbers = Some(client_numbers(rest)?),
            CLIENT => {
                let (number, entry) = self.game.entry(rest)?;
                self.entries.insert(number, entry);
            }
            _ => return Err(IgnoreReason::Malformed),
        }
        Ok(if self.has_all_clients() { self.done(t_ms) } else { Step::Wait })
    }

    fn has_all_clients(&self) -> bool {
        let Some(numbers) = &self.numbers else { return false };
        self.entries.len() >= numbers.len() && numbers.iter().all(|number| self.entries.contains_key(number))
    }

    /// The announced clients that have arrived. A client that is still connecting has no name.
    fn listed(&self) -> impl Iterator<Item = &Entry> {
        let numbers = self.numbers.iter().flatten();
        numbers.filter_map(|number| self.entries.get(number)).filter(|entry| !entry.player.name.is_empty())
    }

    fn done(&self, t_ms: i64) -> Step {
        match self.snapshot(t_ms) {
            Some(snapshot) => Step::Done(Box::new(snapshot)),
            None => Step::Wait,
        }
    }

    fn snapshot(&self, t_ms: i64) -> Option<Snapshot> {
        let info = self.info.as_ref()?;
        let players: Vec<Player> = self.listed().map(|entry| entry.player.clone()).collect();
        let humans = players.iter().filter(|player| !player.bot).count();
        // The numbers of the clients show which datagrams are missing.
        let has_list = info.clients == 0 || self.has_all_clients();
        let is_full = has_list && has_enough_entries(humans, info.clients);
        Some(Snapshot {
            t_ms,
            game: self.game.id().to_owned(),
            map: info.map.clone(),
            hostname: info.hostname.clone(),
            slots: info.slots,
            players,
            completeness: Completeness::full_if(is_full),
            count: Some(info.clients).filter(|_| !is_full),
            bots: None,
        })
    }
}

impl Exchange for CubeQuery {
    fn request(&self) -> Vec<u8> {
        match (&self.info, self.game) {
            (None, Game::AssaultCube) => [&PING[..], &self.nonce].concat(),
            (None, _) => [&TESSERACT[..], &PING, &self.nonce].concat(),
            (Some(_), Game::Tesseract) => [&TESSERACT[..], &STATISTICS, &self.nonce].concat(),
            (Some(_), _) => [&STATISTICS[..], &self.nonce].concat(),
        }
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        self.decode(t_ms, bytes).unwrap_or_else(Step::Ignore)
    }

    fn authentication(&self) -> Authentication {
        Authentication::Nonce
    }

    fn details(&self, _last_datagram: &[u8], _level: DetailLevel) -> Details {
        let Some(info) = &self.info else { return Details::default() };
        let details = Details {
            game_type: Some(self.game.mode(info.mode)),
            version: Some(info.protocol.to_string()),
            password: Some(info.password),
            ..Details::default()
        };
        match self.game.has_teams(info.mode) {
            true => details.with_player_teams(self.listed().map(|entry| entry.team.clone()).collect()),
            false => details,
        }
    }

    fn partial_snapshot(&mut self) -> Option<Snapshot> {
        self.snapshot(self.last_received_ms)
    }
}

impl Game {
    /// The id of the game.
    fn id(self) -> &'static str {
        match self {
            Game::Sauerbraten => "sauerbraten",
            Game::Tesseract => "tesseract",
            Game::AssaultCube => "assaultcube",
        }
    }

    /// The name of a mode, or its number.
    fn mode(self, mode: i32) -> String {
        let names: &[&str] = match self {
            Game::Sauerbraten => SAUERBRATEN_MODES,
            Game::Tesseract => &[],
            Game::AssaultCube => ASSAULTCUBE_MODES,
        };
        let name = usize::try_from(mode).ok().and_then(|mode| names.get(mode));
        name.map_or_else(|| mode.to_string(), |&name| name.to_owned())
    }

    fn has_teams(self, mode: i32) -> bool {
        match self {
            Game::Sauerbraten => !SAUERBRATEN_SOLO_MODES.contains(&mode),
            // In other modes the team is empty.
            Game::Tesseract => true,
            Game::AssaultCube => !ASSAULTCUBE_SOLO_MODES.contains(&mode),
        }
    }

    /// A string without colours. AssaultCube has ASCII.
    fn string(self, rest: &mut &[u8]) -> Result<String, IgnoreReason> {
        let text = without_colours(&string(rest)?);
        Ok(match self {
            Game::Sauerbraten | Game::Tesseract => cube_fields::decode(&text),
            Game::AssaultCube => decode_text(&text),
        })
    }

    fn short_text(self, rest: &mut &[u8]) -> Result<String, IgnoreReason> {
        self.string(rest).map(|text| short_text(text.as_bytes()))
    }

    fn info(self, mut rest: &[u8]) -> Result<Info, IgnoreReason> {
        let rest = &mut rest;
        match self {
            Game::Sauerbraten => {
                let clients = count(rest)?;
                let is_paused = has_more_attributes(rest, 5)?;
                let (protocol, mode, _seconds) = (int(rest)?, int(rest)?, int(rest)?);
                let slots = slots(rest)?;
                let password = int(rest)? == PASSWORD;
                self.info_end(rest, is_paused, Info { protocol, mode, clients, slots, password, ..Info::default() })
            }
            Game::Tesseract => {
                let protocol = int(rest)?;
                let (clients, slots) = (count(rest)?, slots(rest)?);
                let is_paused = has_more_attributes(rest, 3)?;
                let (mode, _seconds) = (int(rest)?, int(rest)?);
                let password = int(rest)? == PASSWORD;
                self.info_end(rest, is_paused, Info { protocol, mode, clients, slots, password, ..Info::default() })
            }
            Game::AssaultCube => {
                let protocol = int(rest)?;
                if protocol.unsigned_abs() < ASSAULTCUBE_PROTOCOL_MIN {
                    return Err(IgnoreReason::Malformed);
                }
                let mode = int(rest)?;
                let clients = count(rest)?;
                let _minutes = int(rest)?;
                let (map, hostname) = (self.short_text(rest)?, self.short_text(rest)?);
                let slots = slots(rest)?;
                // Old servers have no flags.
                let password = int(rest).is_ok_and(|flags| flags & 1 != 0);
                Ok(Info { protocol, mode, clients, slots, map, hostname, password })
            }
        }
    }

    /// The end of the information in Cube 2: whether the game is paused, its speed, the map and the host name.
    fn info_end(self, rest: &mut &[u8], is_paused: bool, info: Info) -> Result<Info, IgnoreReason> {
        if is_paused {
            let (_paused, _speed) = (int(rest)?, int(rest)?);
        }
        Ok(Info { map: self.short_text(rest)?, hostname: self.short_text(rest)?, ..info })
    }

    /// The number of a client and its statistics. What follows the state is not used: it may be an address.
    fn entry(self, rest: &mut &[u8]) -> Result<(usize, Entry), IgnoreReason> {
        let number = client_number(rest)?;
        let ping = int(rest)?;
        let name = player_name(self.string(rest)?.as_bytes());
        let team = self.short_text(rest)?;
        let frags = int(rest)?;
        let (_flags, _deaths, _team_kills, _accuracy) = (int(rest)?, int(rest)?, int(rest)?, int(rest)?);
        let (_health, _armour, _weapon, _privilege) = (int(rest)?, int(rest)?, int(rest)?, int(rest)?);
        let state = int(rest)?;
        let (bot, spectator) = match self {
            Game::Sauerbraten | Game::Tesseract => (number >= FIRST_BOT, state == SPECTATOR),
            Game::AssaultCube => (false, team == "SPECTATOR" || team.ends_with("-SPECT")),
        };
        let player = Player {
            name,
            points: (!spectator).then(|| points(frags.into())),
            ping: (ping >= 0).then_some(ping),
            connected_ms: None,
            bot,
            spectator,
        };
        Ok((number, Entry { player, team }))
    }
}

/// The number of attributes: the usual one, or two more for a game that is paused or has another speed.
fn has_more_attributes(rest: &mut &[u8], usual: i32) -> Result<bool, IgnoreReason> {
    match int(rest)? {
        number if number == usual => Ok(false),
        number if number == usual + 2 => Ok(true),
        _ => Err(IgnoreReason::Malformed),
    }
}

fn client_number(rest: &mut &[u8]) -> Result<usize, IgnoreReason> {
    match usize::try_from(int(rest)?) {
        Ok(number) if number < CLIENTS_MAX => Ok(number),
        _ => Err(IgnoreReason::Malformed),
    }
}

/// The numbers up to the end of the datagram, each once.
fn client_numbers(rest: &mut &[u8]) -> Result<Vec<usize>, IgnoreReason> {
    let mut is_listed = [false; CLIENTS_MAX];
    let mut numbers = Vec::new();
    while !rest.is_empty() {
        let number = client_number(rest)?;
        if !std::mem::replace(&mut is_listed[number], true) {
            numbers.push(number);
        }
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: Nonce = Nonce(0x0123_4567_89ab_cdef);
    const NONCE_BYTES: &[u8] = b"\x01\x23\x45\x67\x89\xab\xcd\xef";

    fn datagram(parts: &[&[u8]]) -> Vec<u8> {
        parts.concat()
    }

    fn statistics(body: &[u8]) -> Vec<u8> {
        datagram(&[b"\0\x01\xff\0", NONCE_BYTES, b"\xff\x69\0", body])
    }

    fn information_of(body: &[u8]) -> Vec<u8> {
        datagram(&[b"\xff\xff\x01\0", NONCE_BYTES, body])
    }

    /// As a server of Sauerbraten 2020 replies on the map `complex`, in a mode and with a number of clients. The
    /// statistics are its replies, too; only the points were 0.
    fn information(clients: u8, mode: u8) -> Vec<u8> {
        information_of(&[&[clients][..], b"\x05\x80\x04\x01", &[mode], b"\x80\x56\x02\x08\0complex\0test\0"].concat())
    }

    const CLIENTS: &[u8] = b"\xf6\0\x01\x02\x80\x80\0";
    const ONE: &[u8] = b"\xf5\0\x25One\0good\0\0\0\0\0\0\x64\x32\x06\x01\x01\0\0\0";
    const TWO: &[u8] = b"\xf5\x01\x80\xfa\0Zo\x80\x80\xff\x80\x81\xff\x82l\0evil\0\xfb\0\0\0\0\x64\x32\x06\0\x01\0\0\0";
    const SPECTATOR: &[u8] = b"\xf5\x02\0w00p\0evil\0\0\0\0\0\0\x64\0\x06\0\x05\0\0\0";
    const BOT: &[u8] = b"\xf5\x80\x80\0\x25bot\0\0\x07\0\0\0\0\x64\0\x06\0\x01\0\0\0";

    fn sauerbraten(clients: u8) -> CubeQuery {
        let mut query = CubeQuery::sauerbraten(NONCE);
        assert_eq!(query.request(), datagram(&[b"\xff\xff\x01\0", NONCE_BYTES]));
        assert_eq!(query.handle_datagram(1, &information(clients, 11)), Step::Send);
        assert_eq!(query.request(), datagram(&[b"\0\x01\xff\0", NONCE_BYTES]));
        query
    }

    /// Name, points, ping, bot, spectator.
    type Row<'a> = (&'a str, Option<i64>, Option<i32>, bool, bool);

    fn players(snapshot: &Snapshot) -> Vec<Row<'_>> {
        let players = snapshot.players.iter();
        players.map(|p| (p.name.as_str(), p.points, p.ping, p.bot, p.spectator)).collect()
    }

    fn all_players() -> [Row<'static>; 4] {
        [
            ("One", Some(0), Some(37), false, false),
            ("ZoÝßàl", Some(-5), Some(250), false, false),
            ("w00p", None, Some(0), false, true),
            ("bot", Some(7), Some(37), true, false),
        ]
    }

    #[test]
    fn list_is_complete_with_all_announced_clients_in_any_order() {
        for order in [[CLIENTS, ONE, TWO, SPECTATOR, BOT], [BOT, SPECTATOR, CLIENTS, ONE, TWO]] {
            let mut query = sauerbraten(3);
            for (t_ms, body) in (2..).zip(&order[..4]) {
                assert_eq!(query.handle_datagram(t_ms, &statistics(body)), Step::Wait);
                assert_eq!(query.handle_datagram(t_ms, &statistics(body)), Step::Wait, "repeated");
            }
            let Step::Done(snapshot) = query.handle_datagram(6, &statistics(order[4])) else { panic!() };
            assert_eq!((snapshot.game.as_str(), snapshot.map.as_str()), ("sauerbraten", "complex"));
            assert_eq!((snapshot.hostname.as_str(), snapshot.slots, snapshot.t_ms), ("test", 8, 6));
            assert_eq!(players(&snapshot), all_players());
            assert_eq!((snapshot.completeness, snapshot.count), (Completeness::Full, None));
            let details = query.details(b"", DetailLevel::Summary);
            assert_eq!((details.game_type.as_deref(), details.version.as_deref()), (Some("ctf"), Some("260")));
            assert_eq!(
                (details.password, details.player_teams),
                (Some(false), vec!["good".into(), "evil".into(), "evil".into(), String::new()])
            );
        }
    }

    #[test]
    fn tesseract_is_known_by_its_reply() {
        let mut query = CubeQuery::sauerbraten(NONCE);
        let information =
            datagram(&[b"\x01\0", NONCE_BYTES, b"\x02\x01\x10\x05\x03\x80\x56\x02\x04\x01\x64wake5\0A \x0c3host\0"]);
        assert_eq!(query.handle_datagram(1, &information), Step::Send);
        assert_eq!(query.request(), datagram(&[b"\xff\xff\0\x01\xff\0", NONCE_BYTES]));
        assert_eq!(query.handle_datagram(2, &statistics(b"\xf6\0")), Step::Wait);
        let Step::Done(snapshot) = query.handle_datagram(3, &statistics(ONE)) else { panic!() };
        assert_eq!((snapshot.game.as_str(), snapshot.map.as_str()), ("tesseract", "wake5"));
        assert_eq!((snapshot.hostname.as_str(), snapshot.slots), ("A host", 16));
        assert_eq!((players(&snapshot), snapshot.completeness), (all_players()[..1].to_vec(), Completeness::Full));
        let details = query.details(b"", DetailLevel::Summary);
        assert_eq!((details.game_type.as_deref(), details.password), (Some("3"), Some(true)));
    }

    /// Written from the source of AssaultCube 1.3.
    fn assaultcube_information(clients: u8) -> Vec<u8> {
        let head = [&b"\x80\xb3\x04\0"[..], &[clients], b"\x07ac_desert\0\x0c2A host\0\x10\x01\0"].concat();
        datagram(&[b"\x01\0", NONCE_BYTES, &head])
    }

    #[test]
    fn assaultcube_marks_spectators_by_their_team() {
        let mut query = CubeQuery::assaultcube(NONCE);
        assert_eq!(query.request(), datagram(&[b"\x01\0", NONCE_BYTES]));
        assert_eq!(query.handle_datagram(1, &assaultcube_information(4)), Step::Send);
        assert_eq!(query.request(), datagram(&[b"\0\x01\xff\0", NONCE_BYTES]));
        let fields =
            |name: &str, frags: u8| [name.as_bytes(), &[frags], b"\0\x01\0\x14\x64\0\x06\0\x01\x7f\0\0"].concat();
        let client = |head: &[u8], name, frags| statistics(&[head, &fields(name, frags)].concat());
        assert_eq!(query.handle_datagram(2, &statistics(b"\xf6\0\x01\x02\x80\xc8\0")), Step::Wait);
        assert_eq!(query.handle_datagram(2, &client(b"\xf5\0\x25", "One\0CLA\0", 9)), Step::Wait);
        assert_eq!(query.handle_datagram(2, &client(b"\xf5\x01\x25", "Two\0RVSF-SPECT\0", 3)), Step::Wait);
        assert_eq!(query.handle_datagram(2, &client(b"\xf5\x02\x25", "\0SPECTATOR\0", 0)), Step::Wait);
        let Step::Done(snapshot) = query.handle_datagram(3, &client(b"\xf5\x80\xc8\0\x25", "Three\0RVSF\0", 0x82))
        else {
            panic!()
        };
        assert_eq!((snapshot.game.as_str(), snapshot.map.as_str()), ("assaultcube", "ac_desert"));
        assert_eq!((snapshot.hostname.as_str(), snapshot.slots), ("A host", 16));
        let want = [
            ("One", Some(9), Some(37), false, false),
            ("Two", None, Some(37), false, true),
            ("Three", Some(-126), Some(37), false, false),
        ];
        assert_eq!((players(&snapshot), snapshot.completeness), (want.to_vec(), Completeness::Full));
        let details = query.details(b"", DetailLevel::Summary);
        assert_eq!((details.game_type.as_deref(), details.version.as_deref()), (Some("team deathmatch"), Some("1203")));
        assert_eq!((details.password, details.player_teams.len()), (Some(true), 3));
    }

    #[test]
    fn teams_are_not_shown_in_modes_without_teams() {
        let mut query = CubeQuery::sauerbraten(NONCE);
        assert_eq!(query.handle_datagram(1, &information(1, 0)), Step::Send);
        query.handle_datagram(2, &statistics(b"\xf6\0"));
        assert!(matches!(query.handle_datagram(2, &statistics(ONE)), Step::Done(_)));
        let details = query.details(b"", DetailLevel::Summary);
        assert_eq!((details.game_type.as_deref(), details.player_teams.len()), (Some("ffa"), 0));
    }

    #[test]
    fn empty_server_needs_no_second_request() {
        let mut query = CubeQuery::sauerbraten(NONCE);
        let Step::Done(snapshot) = query.handle_datagram(1, &information(0, 11)) else { panic!() };
        assert_eq!((snapshot.players.len(), snapshot.completeness, snapshot.t_ms), (0, Completeness::Full, 1));
    }

    #[test]
    fn incomplete_lists_are_partial_with_a_count() {
        let mut query = sauerbraten(6);
        assert_eq!(query.partial_snapshot().map(|s| (s.completeness, s.count)), Some((Completeness::Partial, Some(6))));
        assert_eq!(query.handle_datagram(2, &statistics(b"\xf6\0\x01\x02\x03\x04\x05")), Step::Wait);
        for (t_ms, body) in (3..).zip([ONE, TWO, SPECTATOR]) {
            assert_eq!(query.handle_datagram(t_ms, &statistics(body)), Step::Wait);
        }
        let snapshot = query.partial_snapshot().unwrap();
        assert_eq!((snapshot.completeness, snapshot.players.len()), (Completeness::Partial, 3));
        // One datagram is missing, so it is known that a player is.
        for number in [3, 4] {
            let next = [&[0xf5, number], &BOT[4..]].concat();
            assert_eq!(query.handle_datagram(7, &statistics(&next)), Step::Wait);
        }
        let snapshot = query.partial_snapshot().unwrap();
        assert_eq!((snapshot.completeness, snapshot.players.len(), snapshot.t_ms), (Completeness::Partial, 5, 7));
    }

    #[test]
    fn hidden_clients_make_the_list_partial() {
        // A server that shows no statistics to strangers, one that refuses them, and one that hides the names.
        let refused = datagram(&[b"\0\x01\xff\0", NONCE_BYTES, b"\xff\x69\x01"]);
        for reply in [statistics(b"\xf6"), refused] {
            let Step::Done(snapshot) = sauerbraten(3).handle_datagram(2, &reply) else { panic!() };
            assert_eq!((snapshot.completeness, snapshot.count), (Completeness::Partial, Some(3)));
        }
        let mut query = sauerbraten(3);
        query.handle_datagram(2, &statistics(b"\xf6\0\x01\x02"));
        for number in 0..3 {
            let nameless = statistics(&[&[0xf5, number, 9][..], b"\0good\0\0\0\0\0\0\0\0\0\0\x01"].concat());
            if let Step::Done(snapshot) = query.handle_datagram(2, &nameless) {
                assert_eq!((snapshot.completeness, snapshot.players.len()), (Completeness::Partial, 0));
                return;
            }
        }
        panic!("not done");
    }

    #[test]
    fn wrong_nonces_and_other_messages_are_ignored() {
        let mut query = CubeQuery::sauerbraten(NONCE);
        let mut wrong = information(3, 11);
        wrong[11] ^= 1;
        for (bytes, reason) in [
            (wrong.clone(), IgnoreReason::WrongNonce),
            (wrong[2..].to_vec(), IgnoreReason::WrongNonce),
            (b"\0\x01\xff\0".to_vec(), IgnoreReason::WrongNonce),
            (statistics(CLIENTS), IgnoreReason::UnexpectedMessage),
            (b"\xff\xff\x02".to_vec(), IgnoreReason::NotAReply),
            (vec![], IgnoreReason::NotAReply),
            (vec![0; REPLY_BYTES_MAX + 1], IgnoreReason::TooLarge),
        ] {
            assert_eq!(query.handle_datagram(0, &bytes), Step::Ignore(reason));
        }
        let mut query = sauerbraten(3);
        assert_eq!(query.handle_datagram(0, &information(3, 11)), Step::Ignore(IgnoreReason::UnexpectedMessage));
    }

    #[test]
    fn replies_of_other_games_are_malformed() {
        // AssaultCube and Red Eclipse answer Sauerbraten's request, and the reverse.
        let assaultcube = b"\x80\xb3\x04\x05\x03\x07ac_desert\0host\0\x10\0\0";
        let redeclipse = b"\0\x0f\x80\xe6\0\x05\0\x80\x58\x02\x20\0\x80\x86\x13\0\x01\x06\0\x02\x40\0\0nova\0\0\0";
        for body in [&assaultcube[..], redeclipse] {
            let step = CubeQuery::sauerbraten(NONCE).handle_datagram(0, &information_of(body));
            assert_eq!(step, Step::Ignore(IgnoreReason::Malformed));
        }
        for body in [&information(3, 11)[12..], redeclipse] {
            let reply = datagram(&[b"\x01\0", NONCE_BYTES, body]);
            let step = CubeQuery::assaultcube(NONCE).handle_datagram(0, &reply);
            assert_eq!(step, Step::Ignore(IgnoreReason::Malformed));
        }
    }

    #[test]
    fn cut_and_impossible_messages_are_malformed() {
        let malformed = Step::Ignore(IgnoreReason::Malformed);
        let whole = information(3, 11);
        for cut in 12..whole.len() {
            assert_eq!(CubeQuery::sauerbraten(NONCE).handle_datagram(0, &whole[..cut]), malformed, "{cut}");
        }
        let mut query = sauerbraten(3);
        // The address at the end is not read.
        for cut in 0..TWO.len() - 3 {
            assert_eq!(query.handle_datagram(0, &statistics(&TWO[..cut])), malformed, "{cut}");
        }
        for body in [
            &b"\xf6\x80\0\x02"[..], // client 512
            b"\xf6\xff",
            b"\xf5\xff",
            b"\xf4",
            b"\xf6\0\x80",
        ] {
            assert_eq!(query.handle_datagram(0, &statistics(body)), malformed);
        }
        for head in [&b"\0\x69\0"[..], b"\xff\x67\0", b"\xff\x69\x02", b"\xff"] {
            let reply = datagram(&[b"\0\x01\xff\0", NONCE_BYTES, head, CLIENTS]);
            assert_eq!(query.handle_datagram(0, &reply), malformed);
        }
        for body in [&b"\x03\x06\x80\x04\x01"[..], b"\xff\x05", b"\x80\x01\x02\x05", b"\x03\x81\0\0\0\x80"] {
            assert_eq!(CubeQuery::sauerbraten(NONCE).handle_datagram(0, &information_of(body)), malformed);
        }
    }
}
