//! Games of the Frostbite engine: Battlefield 3, 4 and Hardline, Bad Company 2, Medal of Honor and Warfighter,
//! over TCP. Both sides send messages of words; a response has the sequence number of its request. The requests
//! for the version, the server and the players are written at once.

use bytes::Buf;

use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step, has_enough_entries};
use super::fields::{number, skip, take};
use super::stream::Stream;
use super::text::{player_name, points, short_name, short_text};
use crate::limits::PLAYERS_MAX;
use crate::model::name::Name;
use crate::model::{Completeness, Player, Snapshot};

/// The bit of the first number of a message that marks a response. Bit 31 tells which side sent the request. The
/// bits below are the sequence number, which a response repeats.
const RESPONSE: u32 = 1 << 30;
const SEQUENCE_MASK: u32 = RESPONSE - 1;

/// Sequence numbers of the requests.
const VERSION: u32 = 1;
const SERVER_INFO: u32 = 2;
const LIST_PLAYERS: u32 = 3;

/// The first word of a response to a request that succeeded.
const OK: &[u8] = b"OK";

/// Sequence number, length of the message, number of words.
const HEADER_BYTES: usize = 12;
/// The header up to the number of words.
const LENGTH_END: usize = 8;

/// Longest message that is accepted, bytes. A list of 64 players has 6,000.
const MESSAGE_BYTES_MAX: usize = 16 * 1_024;

/// Most requests of the server in one scan. Only modified servers send events to clients without a password.
const EVENTS_MAX: u32 = 64;

/// Most fields of a player. Games have seven to ten.
const FIELDS_MAX: usize = 32;

/// Most teams with a score. Games have up to four.
const TEAMS_MAX: usize = 16;

/// The type of a player who watches. Others are players (0) and commanders (2, 3).
const SPECTATOR: u8 = 1;

/// A ping that is not known yet.
const PING_UNKNOWN: i32 = 65_535;

/// One connection with three requests.
#[derive(Clone, Debug, Default)]
pub struct FrostbiteQuery {
    stream: Stream,
    version: Option<Version>,
    info: Option<ServerInfo>,
    list: Option<List>,
    events: u32,
    last_received_ms: i64,
}

/// The game and its build; empty: the server does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Version {
    game: String,
    build: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ServerInfo {
    hostname: String,
    /// Without spectators.
    players: u32,
    slots: u32,
    mode: String,
    map: String,
    password: Option<bool>,
    secure: Option<bool>,
    rules: Vec<(Name, Name)>,
}

/// Empty and not complete: the server refuses the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct List {
    players: Vec<Player>,
    /// The team of each player.
    teams: Vec<String>,
    is_complete: bool,
}

impl FrostbiteQuery {
    pub fn new() -> Self {
        FrostbiteQuery::default()
    }

    /// Handles all messages that have arrived.
    fn handle_messages(&mut self) -> Result<(), IgnoreReason> {
        while !self.is_complete() {
            let mut header = self.stream.rest();
            if header.len() < LENGTH_END {
                break;
            }
            let (sequence, bytes) = (header.try_get_u32_le()?, header.try_get_u32_le()?);
            let bytes = usize::try_from(bytes).map_err(|_| IgnoreReason::TooLarge)?;
            if bytes > MESSAGE_BYTES_MAX {
                return Err(IgnoreReason::TooLarge);
            }
            if bytes < HEADER_BYTES {
                return Err(IgnoreReason::Malformed);
            }
            let Some(message) = self.stream.rest().get(LENGTH_END..bytes) else { break };
            if sequence & RESPONSE != 0 {
                let words = Words::read(message)?;
                match sequence & SEQUENCE_MASK {
                    VERSION if self.version.is_none() => self.version = Some(Version::read(words)?),
                    SERVER_INFO if self.info.is_none() => self.info = Some(ServerInfo::read(words)?),
                    LIST_PLAYERS if self.list.is_none() => self.list = Some(List::read(words)?),
                    _ => return Err(IgnoreReason::UnexpectedMessage),
                }
            } else {
                self.events += 1;
                if self.events > EVENTS_MAX {
                    return Err(IgnoreReason::UnexpectedMessage);
                }
            }
            self.stream.consume(bytes);
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.version.is_some() && self.info.is_some() && self.list.is_some()
    }

    /// The name of the game, as the table of games has it.
    fn game(&self) -> String {
        match self.version.as_ref().map_or("", |version| version.game.as_str()) {
            "" => "frostbite".to_owned(),
            // The first servers of the beta of Battlefield 3.
            "BF" => "bf3".to_owned(),
            "BFHL" => "bfh".to_owned(),
            name => name.to_ascii_lowercase(),
        }
    }

    fn snapshot(&self, info: &ServerInfo) -> Snapshot {
        let players = self.list.as_ref().map_or_else(Vec::new, |list| list.players.clone());
        let playing = players.iter().filter(|player| !player.spectator).count();
        let is_full =
            self.list.as_ref().is_some_and(|list| list.is_complete) && has_enough_entries(playing, info.players);
        Snapshot {
            t_ms: self.last_received_ms,
            game: self.game(),
            map: info.map.clone(),
            hostname: info.hostname.clone(),
            slots: info.slots,
            players,
            completeness: Completeness::full_if(is_full),
            count: Some(info.players).filter(|_| !is_full),
            bots: None,
        }
    }
}

impl Exchange for FrostbiteQuery {
    fn request(&self) -> Vec<u8> {
        let requests = [
            request(VERSION, &[b"version"]),
            request(SERVER_INFO, &[b"serverInfo"]),
            request(LIST_PLAYERS, &[b"listPlayers", b"all"]),
        ];
        requests.concat()
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        self.last_received_ms = t_ms;
        if let Err(reason) = self.stream.push(bytes).and_then(|()| self.handle_messages()) {
            return Step::Fail(reason);
        }
        match &self.info {
            Some(info) if self.is_complete() => Step::Done(Box::new(self.snapshot(info))),
            _ => Step::Wait,
        }
    }

    fn authentication(&self) -> Authentication {
        Authentication::Challenge
    }

    fn details(&self, _last_datagram: &[u8], level: DetailLevel) -> Details {
        let Some(info) = &self.info else { return Details::default() };
        let details = Details {
            game_type: Some(info.mode.clone()),
            version: self.version.as_ref().map(|version| version.build.clone()).filter(|build| !build.is_empty()),
            password: info.password,
            secure: info.secure,
            rules: if level == DetailLevel::Rules { info.rules.clone() } else { Vec::new() },
            ..Details::default()
        };
        details.with_player_teams(self.list.as_ref().map_or_else(Vec::new, |list| list.teams.clone()))
    }

    fn partial_snapshot(&mut self) -> Option<Snapshot> {
        self.info.as_ref().map(|info| self.snapshot(info))
    }
}

/// A message of a client. The lengths are those of constants.
fn request(sequence: u32, words: &[&[u8]]) -> Vec<u8> {
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes();
    let body: Vec<u8> = words.iter().flat_map(|word| [&length(word.len())[..], word, b"\0"].concat()).collect();
    [&sequence.to_le_bytes()[..], &length(HEADER_BYTES + body.len()), &length(words.len()), &body].concat()
}

/// The words of a message, which are read one after the other: a length, the bytes, and a zero byte.
#[derive(Clone, Debug)]
struct Words<'a> {
    rest: &'a [u8],
    count: u32,
}

impl<'a> Words<'a> {
    /// `rest`: a message after its length.
    fn read(mut rest: &'a [u8]) -> Result<Words<'a>, IgnoreReason> {
        let count = rest.try_get_u32_le()?;
        Ok(Words { rest, count })
    }

    /// The next word; `None` after the last one.
    fn word(&mut self) -> Result<Option<&'a [u8]>, IgnoreReason> {
        let Some(count) = self.count.checked_sub(1) else { return Ok(None) };
        let length = usize::try_from(self.rest.try_get_u32_le()?).map_err(|_| IgnoreReason::Malformed)?;
        let word = take(&mut self.rest, length)?;
        skip(&mut self.rest, 1)?;
        self.count = count;
        Ok(Some(word))
    }

    fn required(&mut self) -> Result<&'a [u8], IgnoreReason> {
        self.word()?.ok_or(IgnoreReason::Malformed)
    }

    fn required_number<T: std::str::FromStr>(&mut self) -> Result<T, IgnoreReason> {
        number(self.required()?).ok_or(IgnoreReason::Malformed)
    }

    /// Whether the request succeeded.
    fn is_ok(&mut self) -> Result<bool, IgnoreReason> {
        Ok(self.required()? == OK)
    }
}

impl Version {
    fn read(mut words: Words) -> Result<Version, IgnoreReason> {
        if !words.is_ok()? {
            return Ok(Version::default());
        }
        let mut text = || Ok::<_, IgnoreReason>(short_text(words.word()?.unwrap_or_default()));
        Ok(Version { game: text()?, build: text()? })
    }
}

impl ServerInfo {
    /// Name, players, slots, mode, map, rounds played, rounds, the scores of the teams, state, ranked, PunkBuster,
    /// password, time since the start, time of the round; further ones depend on the game and its build.
    fn read(mut words: Words) -> Result<ServerInfo, IgnoreReason> {
        let words = &mut words;
        if !words.is_ok()? {
            return Err(IgnoreReason::UnexpectedMessage);
        }
        let mut info = ServerInfo {
            hostname: short_text(words.required()?),
            players: words.required_number()?,
            slots: words.required_number()?,
            mode: short_text(words.required()?),
            map: short_text(words.required()?),
            ..ServerInfo::default()
        };
        for key in ["rounds_played", "rounds_total"] {
            info.add_rule(key, words.word()?);
        }
        info.read_scores(words)?;
        info.read_flags(words)?;
        Ok(info)
    }

    /// A number of teams, their scores, and the score that wins. While the map changes, some servers leave them out.
    fn read_scores(&mut self, words: &mut Words) -> Result<(), IgnoreReason> {
        let without_scores = words.clone();
        match words.word()?.and_then(number::<usize>) {
            Some(teams) if teams <= TEAMS_MAX => {
                let mut scores = Vec::new();
                for _ in 0..teams {
                    scores.push(short_text(words.word()?.unwrap_or_default()));
                }
                self.add_rule("team_scores", Some(scores.join(" ").as_bytes()));
                self.add_rule("target_score", words.word()?);
            }
            _ => *words = without_scores,
        }
        Ok(())
    }

    /// The first three words in succession that are true or false, and the two times after them.
    fn read_flags(&mut self, words: &mut Words) -> Result<(), IgnoreReason> {
        let mut flags = [None; 3];
        while flags.contains(&None) {
            let Some(word) = words.word()? else { return Ok(()) };
            flags = match (word, flags) {
                (b"true", [_, second, third]) => [second, third, Some(true)],
                (b"false", [_, second, third]) => [second, third, Some(false)],
                _ => [None; 3],
            };
        }
        let [ranked, secure, password] = flags;
        (self.secure, self.password) = (secure, password);
        self.add_rule("ranked", ranked.map(|ranked| if ranked { &b"true"[..] } else { b"false" }));
        for key in ["uptime_s", "round_time_s"] {
            self.add_rule(key, words.word()?);
        }
        Ok(())
    }

    fn add_rule(&mut self, key: &str, value: Option<&[u8]>) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            self.rules.push((key.into(), short_name(value)));
        }
    }
}

impl List {
    /// A number of fields and their names; a number of players and the values of each.
    fn read(mut words: Words) -> Result<List, IgnoreReason> {
        if !words.is_ok()? {
            return Ok(List::default());
        }
        let field_count = words.required_number::<usize>()?;
        if !(1..=FIELDS_MAX).contains(&field_count) {
            return Err(IgnoreReason::Malformed);
        }
        let mut fields = Vec::with_capacity(field_count);
        for _ in 0..field_count {
            fields.push(Field::of(words.required()?));
        }
        let announced = words.required_number::<usize>()?;
        let mut list = List { is_complete: announced <= PLAYERS_MAX, ..List::default() };
        for _ in 0..announced.min(PLAYERS_MAX) {
            let mut entry = Entry::default();
            for field in &fields {
                entry.set(*field, words.required()?);
            }
            list.players.push(entry.player());
            list.teams.push(if entry.team == b"0" { String::new() } else { short_text(entry.team) });
        }
        Ok(list)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Name,
    Team,
    Score,
    Ping,
    Type,
    Other,
}

impl Field {
    fn of(name: &[u8]) -> Field {
        match name {
            b"name" => Field::Name,
            b"teamId" => Field::Team,
            b"score" => Field::Score,
            b"ping" => Field::Ping,
            b"type" => Field::Type,
            _ => Field::Other,
        }
    }
}

/// The values of a player.
#[derive(Clone, Copy, Debug, Default)]
struct Entry<'a> {
    name: &'a [u8],
    team: &'a [u8],
    score: Option<i64>,
    ping: Option<i32>,
    kind: Option<u8>,
}

impl<'a> Entry<'a> {
    fn set(&mut self, field: Field, value: &'a [u8]) {
        match field {
            Field::Name => self.name = value,
            Field::Team => self.team = value,
            Field::Score => self.score = number(value),
            Field::Ping => self.ping = number(value),
            Field::Type => self.kind = number(value),
            Field::Other => {}
        }
    }

    fn player(&self) -> Player {
        let spectator = self.kind == Some(SPECTATOR);
        Player {
            name: player_name(self.name),
            points: self.score.map(points).filter(|_| !spectator),
            ping: self.ping.filter(|ping| (0..PING_UNKNOWN).contains(ping)),
            connected_ms: None,
            bot: false,
            spectator,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(sequence: u32, words: &[&str]) -> Vec<u8> {
        let mut body = Vec::new();
        for word in words {
            body.extend_from_slice(&(word.len() as u32).to_le_bytes());
            body.extend_from_slice(word.as_bytes());
            body.push(0);
        }
        let numbers = [sequence, body.len() as u32 + 12, words.len() as u32];
        [numbers.map(u32::to_le_bytes).concat(), body].concat()
    }

    fn response(sequence: u32, words: &[&str]) -> Vec<u8> {
        message(0x4000_0000 | sequence, &[&["OK"], words].concat())
    }

    fn words(text: &str) -> Vec<&str> {
        text.split('|').collect()
    }

    /// A server of Battlefield 4.
    fn info(players: &str) -> Vec<u8> {
        let rest = "64|ConquestLarge0|MP_Abandoned|0|2|2|300.5|212|0||true|true|false|428710|60|10.0.0.1:25200|v1.902\
            |true|EU|ams|NL|0|IN_GAME";
        response(2, &[&["A host", players][..], &words(rest)].concat())
    }

    fn list() -> Vec<u8> {
        let fields = "10|name|guid|teamId|squadId|kills|deaths|score|rank|ping|type";
        let players = "3|One||1|1|5|2|450|68|169|0|Two||0|0|0|0|-20|-1|65535|2|Eye||0|0|0|-1|0|-1|20|1";
        response(3, &words(&format!("{fields}|{players}")))
    }

    fn reply() -> Vec<u8> {
        [response(1, &["BF4", "157186"]), info("2"), list()].concat()
    }

    fn done(step: Step) -> Snapshot {
        match step {
            Step::Done(snapshot) => *snapshot,
            step => panic!("{step:?}"),
        }
    }

    fn snapshot_of(reply: &[u8]) -> Snapshot {
        done(FrostbiteQuery::new().handle_datagram(7, reply))
    }

    #[test]
    fn three_requests_are_written_at_once() {
        let want = [
            &b"\x01\0\0\0\x18\0\0\0\x01\0\0\0\x07\0\0\0version\0"[..],
            b"\x02\0\0\0\x1b\0\0\0\x01\0\0\0\x0a\0\0\0serverInfo\0",
            b"\x03\0\0\0\x24\0\0\0\x02\0\0\0\x0b\0\0\0listPlayers\0\x03\0\0\0all\0",
        ];
        let query = FrostbiteQuery::new();
        assert_eq!(query.request(), want.concat());
        assert_eq!(query.authentication(), Authentication::Challenge);
    }

    #[test]
    fn responses_give_a_full_snapshot_in_pieces_of_any_size() {
        let reply = reply();
        assert!(
            reply.starts_with(b"\x01\0\0\x40\x26\0\0\0\x03\0\0\0\x02\0\0\0OK\0\x03\0\0\0BF4\0\x06\0\0\x00157186\0")
        );
        let whole = snapshot_of(&reply);
        assert_eq!(
            (whole.game.as_str(), whole.map.as_str(), whole.hostname.as_str()),
            ("bf4", "MP_Abandoned", "A host")
        );
        assert_eq!((whole.slots, whole.count, whole.completeness), (64, None, Completeness::Full));
        let players: Vec<_> = whole.players.iter().map(|p| (p.name.as_str(), p.points, p.ping, p.spectator)).collect();
        assert_eq!(
            players,
            [("One", Some(450), Some(169), false), ("Two", Some(-20), None, false), ("Eye", None, Some(20), true)]
        );
        for size in [1, 3, 4, 11, 12, 13, 100] {
            let mut query = FrostbiteQuery::new();
            let mut steps: Vec<_> = reply.chunks(size).map(|piece| query.handle_datagram(7, piece)).collect();
            assert_eq!(done(steps.pop().unwrap()), whole, "{size}");
            assert!(steps.iter().all(|step| *step == Step::Wait));
        }
    }

    #[test]
    fn responses_may_come_in_any_order_with_events_between() {
        let event = message(0x8000_0005, &["player.onSpawn", "One"]);
        let parts = [list(), event.clone(), info("2"), message(9, &["event"]), response(1, &["BFHL", "1"])].concat();
        assert_eq!(snapshot_of(&parts).game, "bfh");
        assert_eq!(
            FrostbiteQuery::new().handle_datagram(0, &event.repeat(65)),
            Step::Fail(IgnoreReason::UnexpectedMessage)
        );
    }

    #[test]
    fn game_is_that_of_the_version() {
        for (words, game) in [
            (&["BF3", "1149977"][..], "bf3"),
            (&["BFBC2", "851434"], "bfbc2"),
            (&["MOH", "615937"], "moh"),
            (&["MOHW", "1005223"], "mohw"),
            (&["BF", "0"], "bf3"),
            (&[], "frostbite"),
        ] {
            assert_eq!(snapshot_of(&[response(1, words), info("2"), list()].concat()).game, game);
        }
        let unknown = message(0x4000_0001, &["UnknownCommand"]);
        assert_eq!(snapshot_of(&[unknown, info("2"), list()].concat()).game, "frostbite");
    }

    #[test]
    fn details_have_mode_flags_scores_and_teams() {
        let mut query = FrostbiteQuery::new();
        assert_eq!(query.details(b"", DetailLevel::Rules), Details::default());
        query.handle_datagram(0, &reply());
        let details = query.details(b"", DetailLevel::Rules);
        assert_eq!(
            (details.game_type.as_deref(), details.version.as_deref()),
            (Some("ConquestLarge0"), Some("157186"))
        );
        assert_eq!((details.password, details.secure), (Some(false), Some(true)));
        assert_eq!(details.player_teams, ["1", "", ""]);
        let rules: Vec<_> = details.rules.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(
            rules,
            [
                ("rounds_played", "0"),
                ("rounds_total", "2"),
                ("team_scores", "300.5 212"),
                ("target_score", "0"),
                ("ranked", "true"),
                ("uptime_s", "428710"),
                ("round_time_s", "60")
            ]
        );
        assert!(query.details(b"", DetailLevel::Summary).rules.is_empty());
    }

    #[test]
    fn server_info_of_each_form_is_read() {
        for (rest, password) in [
            // Bad Company 2, with the name of the game and a map pack.
            ("|2|11.9|28.9|0||true|true|true|1|2|BC2|4|0.0.0.0:19567", Some(true)),
            // Four teams; the first builds end here.
            ("|4|0|0|0|0|50|", None),
            // No teams; and scores that are left out while the map changes.
            ("|0|0||true|true|false|428710|6019", Some(false)),
            ("||true|false|true|428710|6019", Some(true)),
            ("|true|false|false", Some(false)),
            // Too many teams, cut scores, nothing at all.
            ("|17|0||true|true|true", Some(true)),
            ("|4|0", None),
            ("", None),
        ] {
            let mut query = FrostbiteQuery::new();
            let server_info = response(2, &words(&format!("h|2|16|SQDM|Levels/MP_007|0|1{rest}")));
            let step = query.handle_datagram(0, &[response(1, &["BFBC2", "1"]), server_info, list()].concat());
            let snapshot = done(step);
            assert_eq!((snapshot.map.as_str(), snapshot.slots), ("Levels/MP_007", 16), "{rest:?}");
            assert_eq!(query.details(b"", DetailLevel::Summary).password, password, "{rest:?}");
        }
    }

    #[test]
    fn fields_of_older_games_are_found_by_their_names() {
        let list = "9|clanTag|name|guid|teamId|squadId|kills|deaths|score|ping|1|TAG|One||2|1|12|20|1530|130";
        let list = response(3, &words(list));
        let snapshot = snapshot_of(&[response(1, &["BFBC2", "1"]), info("1"), list].concat());
        let one = &snapshot.players[0];
        assert_eq!((one.name.as_str(), one.points, one.ping, one.spectator), ("One", Some(1_530), Some(130), false));
        let list = response(3, &["1", "name", "1", "One"]);
        let snapshot = snapshot_of(&[response(1, &[]), info("1"), list].concat());
        assert_eq!((snapshot.players[0].points, snapshot.players[0].ping), (None, None));
    }

    #[test]
    fn short_or_refused_list_is_partial_with_a_count() {
        let short = snapshot_of(&[response(1, &[]), info("5"), list()].concat());
        assert_eq!((short.completeness, short.count, short.players.len()), (Completeness::Partial, Some(5), 3));
        // Spectators are not counted.
        assert_eq!(snapshot_of(&[response(1, &[]), info("4"), list()].concat()).completeness, Completeness::Full);
        for players in ["0", "9"] {
            let refused = message(0x4000_0003, &["LogInRequired"]);
            let snapshot = snapshot_of(&[response(1, &[]), info(players), refused].concat());
            assert_eq!((snapshot.completeness, snapshot.count), (Completeness::Partial, players.parse().ok()));
        }
        let mut query = FrostbiteQuery::new();
        assert_eq!(query.handle_datagram(1, &response(1, &["BF3", "1"])), Step::Wait);
        assert_eq!(query.partial_snapshot(), None);
        assert_eq!(query.handle_datagram(2, &info("9")), Step::Wait);
        let partial = query.partial_snapshot().unwrap();
        assert_eq!((partial.completeness, partial.count, partial.t_ms), (Completeness::Partial, Some(9), 2));
        assert_eq!(partial.game, "bf3");
    }

    #[test]
    fn malformed_and_hostile_messages_end_the_scan() {
        let header = |sequence: u32, bytes: u32, words: u32| [sequence, bytes, words].map(u32::to_le_bytes).concat();
        let list_of = |words: &[&str]| response(3, words);
        for (bytes, reason) in [
            (b"SSH-2.0-OpenSSH\r\n".to_vec(), IgnoreReason::TooLarge),
            (header(0x4000_0001, 16_385, 1), IgnoreReason::TooLarge),
            (header(0x4000_0001, u32::MAX, 1), IgnoreReason::TooLarge),
            (header(0x4000_0001, 11, 0), IgnoreReason::Malformed),
            (header(0x4000_0001, 12, 0), IgnoreReason::Malformed),
            (header(0x4000_0001, 12, u32::MAX), IgnoreReason::Malformed),
            ([header(0x4000_0001, 16, 1), vec![0xff; 4]].concat(), IgnoreReason::Malformed),
            ([header(0x4000_0001, 18, 1), b"\x02\0\0\0OK".to_vec()].concat(), IgnoreReason::Malformed),
            (response(4, &[]), IgnoreReason::UnexpectedMessage),
            ([response(1, &[]), response(1, &[])].concat(), IgnoreReason::UnexpectedMessage),
            (message(0x4000_0002, &["LogInRequired"]), IgnoreReason::UnexpectedMessage),
            (response(2, &["h", "2", "64", "mode"]), IgnoreReason::Malformed),
            (response(2, &["h", "many", "64", "mode", "map"]), IgnoreReason::Malformed),
            (list_of(&[]), IgnoreReason::Malformed),
            (list_of(&["0", "9"]), IgnoreReason::Malformed),
            (list_of(&["33"]), IgnoreReason::Malformed),
            (list_of(&["-1"]), IgnoreReason::Malformed),
            (list_of(&["1", "name"]), IgnoreReason::Malformed),
            (list_of(&["1", "name", "2", "One"]), IgnoreReason::Malformed),
            (list_of(&["1", "name", "99999999999999999999"]), IgnoreReason::Malformed),
            (list_of(&["1", "name", "4294967295"]), IgnoreReason::Malformed),
        ] {
            assert_eq!(FrostbiteQuery::new().handle_datagram(0, &bytes), Step::Fail(reason), "{bytes:?}");
        }
        // Announced is not yet sent.
        assert_eq!(FrostbiteQuery::new().handle_datagram(0, &header(0x4000_0001, 16_384, 1)), Step::Wait);
    }

    #[test]
    fn list_beyond_the_limit_is_partial() {
        let names = vec!["n"; PLAYERS_MAX + 1];
        let list = response(3, &[&["1", "name", "1025"][..], &names].concat());
        let snapshot = snapshot_of(&[response(1, &[]), info("64"), list].concat());
        assert_eq!((snapshot.players.len(), snapshot.completeness), (PLAYERS_MAX, Completeness::Partial));
    }
}
