//! BZFlag 2.4, over TCP: a greeting of both sides, then messages of a length, a code and a body, all numbers
//! big-endian. The queries for the game and for the players are written with the greeting. Replies name neither
//! the server nor a map: the style of the game is used as the map.

use bytes::Buf;

use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step, has_enough_entries};
use super::fields::{c_str, skip, take};
use super::stream::Stream;
use super::text::{player_name, points};
use crate::limits::PLAYERS_MAX;
use crate::model::name::Name;
use crate::model::{Completeness, Player, Snapshot};

/// The greeting of a client, and the queries without a body.
const REQUEST: &[u8] = b"BZFLAG\r\n\r\n\0\0qg\0\0qp";

/// The greeting of a server with the version of the protocol. A byte follows: the number of the connection.
const GREETING: &[u8] = b"BZFS0221";
/// The number of a connection that is refused, because all are used.
const REFUSED: u8 = 0xff;

const GAME: [u8; 2] = *b"qg";
const PLAYERS: [u8; 2] = *b"qp";
const PLAYER: [u8; 2] = *b"ap";

/// Length and code of a message.
const HEADER_BYTES: usize = 4;

/// Longest message with its header, bytes, as in the server.
const MESSAGE_BYTES_MAX: usize = 1_024;

/// Most messages of other kinds in one scan. A server sends one for its teams, and at times one for its clock.
const OTHER_MESSAGES_MAX: u32 = 64;

const NAME_BYTES: usize = 32;
const MOTTO_BYTES: usize = 128;

/// The type of a player that a program controls.
const COMPUTER: u16 = 1;

/// The team that watches.
const OBSERVER: u16 = 5;

/// Teams whose sizes the server announces: rogue, red, green, blue, purple and observers.
const SIZED_TEAMS: usize = 6;

const TEAMS: [&str; 8] = ["Rogue", "Red", "Green", "Blue", "Purple", "Observer", "Rabbit", "Hunter"];

const STYLES: [&str; 4] = ["TeamFFA", "ClassicCTF", "OpenFFA", "RabbitChase"];

/// Names of the options of a game, by their bits.
const OPTIONS: [(u16, &str); 8] = [
    (0x0002, "flags"),
    (0x0008, "jumping"),
    (0x0010, "inertia"),
    (0x0020, "ricochet"),
    (0x0040, "shaking"),
    (0x0080, "antidote"),
    (0x0100, "handicap"),
    (0x0400, "no-team-kills"),
];

/// One connection with both queries.
#[derive(Clone, Debug, Default)]
pub struct BzflagQuery {
    stream: Stream,
    is_greeted: bool,
    game: Option<Game>,
    /// The length of the list that the server announced.
    listed: Option<usize>,
    players: Vec<Player>,
    /// The team of each player.
    teams: Vec<u16>,
    other_messages: u32,
    last_received_ms: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Game {
    style: u16,
    options: u16,
    slots: u16,
    shots: u16,
    /// Players in all teams. In the game of rabbits and hunters the server counts none.
    players: u32,
    player_score_max: u16,
    team_score_max: u16,
    time_max_s: u16,
    time_elapsed_s: u16,
}

impl BzflagQuery {
    pub fn new() -> Self {
        BzflagQuery::default()
    }

    /// Handles all messages that have arrived.
    fn handle_messages(&mut self) -> Result<(), IgnoreReason> {
        if !self.is_greeted {
            self.handle_greeting()?;
        }
        while self.is_greeted && !self.is_complete() {
            let Some(&[high, low, first, second]) = self.stream.rest().first_chunk::<HEADER_BYTES>() else { break };
            let bytes = usize::from(u16::from_be_bytes([high, low])) + HEADER_BYTES;
            if bytes > MESSAGE_BYTES_MAX {
                return Err(IgnoreReason::Malformed);
            }
            let Some(body) = self.stream.rest().get(HEADER_BYTES..bytes) else { break };
            match [first, second] {
                GAME if self.game.is_none() => self.game = Some(Game::read(body)?),
                PLAYERS if self.listed.is_none() => self.listed = Some(list_length(body)?),
                PLAYER if self.listed.is_some_and(|listed| self.players.len() < listed) => {
                    let (team, player) = read_player(body)?;
                    self.players.push(player);
                    self.teams.push(team);
                }
                _ => {
                    self.other_messages += 1;
                    if self.other_messages > OTHER_MESSAGES_MAX {
                        return Err(IgnoreReason::UnexpectedMessage);
                    }
                }
            }
            self.stream.consume(bytes);
        }
        Ok(())
    }

    /// Handles the greeting if it has arrived.
    fn handle_greeting(&mut self) -> Result<(), IgnoreReason> {
        let received = self.stream.rest();
        if received.iter().zip(GREETING).any(|(received, expected)| received != expected) {
            return Err(IgnoreReason::NotAReply);
        }
        match received.get(GREETING.len()) {
            None => {}
            Some(&REFUSED) => return Err(IgnoreReason::UnexpectedMessage),
            Some(_) => {
                self.stream.consume(GREETING.len() + 1);
                self.is_greeted = true;
            }
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.game.is_some() && self.is_list_complete()
    }

    fn is_list_complete(&self) -> bool {
        self.listed.is_some_and(|listed| self.players.len() >= listed)
    }

    fn snapshot(&self, game: &Game) -> Snapshot {
        let in_list = u32::try_from(self.listed.unwrap_or(0)).unwrap_or(u32::MAX);
        let announced = game.players.max(in_list);
        let is_full = self.is_list_complete() && has_enough_entries(self.players.len(), announced);
        Snapshot {
            t_ms: self.last_received_ms,
            game: "bzflag".to_owned(),
            map: style(game.style),
            hostname: String::new(),
            slots: game.slots.into(),
            players: self.players.clone(),
            completeness: Completeness::full_if(is_full),
            count: Some(announced).filter(|_| !is_full),
            bots: None,
        }
    }
}

impl Exchange for BzflagQuery {
    fn request(&self) -> Vec<u8> {
        REQUEST.to_vec()
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        self.last_received_ms = t_ms;
        if let Err(reason) = self.stream.push(bytes).and_then(|()| self.handle_messages()) {
            return Step::Fail(reason);
        }
        match &self.game {
            Some(game) if self.is_list_complete() => Step::Done(Box::new(self.snapshot(game))),
            _ => Step::Wait,
        }
    }

    fn authentication(&self) -> Authentication {
        Authentication::Challenge
    }

    fn details(&self, _last_datagram: &[u8], level: DetailLevel) -> Details {
        let Some(game) = &self.game else { return Details::default() };
        let rules = match level {
            DetailLevel::Summary => Vec::new(),
            DetailLevel::Rules => game.rules(),
        };
        let details = Details {
            game_type: Some(style(game.style)),
            version: Some("0221".to_owned()),
            rules,
            ..Details::default()
        };
        details.with_player_teams(self.teams.iter().map(|&team| team_name(team)).collect())
    }

    fn partial_snapshot(&mut self) -> Option<Snapshot> {
        self.game.as_ref().map(|game| self.snapshot(game))
    }
}

impl Game {
    fn read(mut rest: &[u8]) -> Result<Game, IgnoreReason> {
        let (style, options) = (rest.try_get_u16()?, rest.try_get_u16()?);
        let (slots, shots) = (rest.try_get_u16()?, rest.try_get_u16()?);
        let mut players = 0;
        for _ in 0..SIZED_TEAMS {
            players += u32::from(rest.try_get_u16()?);
        }
        // The most players of each team; wins and time until a bad flag is dropped.
        skip(&mut rest, (SIZED_TEAMS + 2) * 2)?;
        Ok(Game {
            style,
            options,
            slots,
            shots,
            players,
            player_score_max: rest.try_get_u16()?,
            team_score_max: rest.try_get_u16()?,
            time_max_s: rest.try_get_u16()?,
            time_elapsed_s: rest.try_get_u16()?,
        })
    }

    fn rules(&self) -> Vec<(Name, Name)> {
        let names = OPTIONS.iter().filter(|(bit, _)| self.options & bit != 0).map(|&(_, name)| name);
        let options = names.collect::<Vec<_>>().join(" ");
        let numbers = [
            ("max_shots", self.shots),
            ("max_player_score", self.player_score_max),
            ("max_team_score", self.team_score_max),
            ("max_time_s", self.time_max_s),
            ("time_elapsed_s", self.time_elapsed_s),
        ];
        let numbers = numbers.into_iter().map(|(key, value)| (key.into(), value.to_string().into()));
        std::iter::once(("options".into(), options.into())).chain(numbers).collect()
    }
}

/// The number of teams and that of players.
fn list_length(mut rest: &[u8]) -> Result<usize, IgnoreReason> {
    let (_teams, players) = (rest.try_get_u16()?, rest.try_get_u16()?);
    Some(usize::from(players)).filter(|&players| players <= PLAYERS_MAX).ok_or(IgnoreReason::Malformed)
}

/// Id, type, team, wins, losses, killed team mates, name, motto.
fn read_player(mut rest: &[u8]) -> Result<(u16, Player), IgnoreReason> {
    let _id = rest.try_get_u8()?;
    let (kind, team) = (rest.try_get_u16()?, rest.try_get_u16()?);
    let (wins, losses, _team_kills) = (rest.try_get_u16()?, rest.try_get_u16()?, rest.try_get_u16()?);
    let name = take(&mut rest, NAME_BYTES)?;
    skip(&mut rest, MOTTO_BYTES)?;
    let spectator = team == OBSERVER;
    let player = Player {
        name: player_name(c_str(&mut &*name).unwrap_or(name)),
        points: Some(points(i64::from(wins) - i64::from(losses))).filter(|_| !spectator),
        ping: None,
        connected_ms: None,
        bot: kind == COMPUTER,
        spectator,
    };
    Ok((team, player))
}

fn style(number: u16) -> String {
    STYLES.get(usize::from(number)).map_or_else(|| number.to_string(), |&name| name.to_owned())
}

/// Empty for observers: they have no team.
fn team_name(number: u16) -> String {
    match TEAMS.get(usize::from(number)) {
        _ if number == OBSERVER => String::new(),
        Some(&name) => name.to_owned(),
        None => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of a server of version 2.4.26 to the request, `-c -j -ms 3 -mp 2,10,10,2,2,5 -time 1800`.
    const REAL_GAME: &[u8] = b"\0\x2cqg\0\x01\0\x18\0\x1a\0\x03\0\0\0\x02\0\x01\0\x01\0\0\0\x01\
        \0\x02\0\x0a\0\x0a\0\x02\0\x02\0\x05\0\0\0\0\0\0\0\0\x07\x08\0\x96";
    const REAL_LIST: &[u8] = b"\0\x04qp\0\x08\0\x05";
    const REAL_TEAMS: &[u8] = b"\0\x29tu\x05\0\0\0\0\0\0\0\0\0\x01\0\x02\0\0\0\0\0\x02\0\x01\0\0\0\0\
        \0\x03\0\x01\0\0\0\0\0\x04\0\0\0\0\0\0";

    fn player(id: u8, kind: u8, team: u8, wins: u8, losses: u8, name: &str, motto: &str) -> Vec<u8> {
        let mut bytes = vec![0, 171, b'a', b'p', id, 0, kind, 0, team, 0, wins, 0, losses, 0, 1];
        bytes.extend_from_slice(name.as_bytes());
        bytes.resize(15 + 32, 0);
        bytes.extend_from_slice(motto.as_bytes());
        bytes.resize(15 + 32 + 128, 0);
        bytes
    }

    /// With the players of that server.
    fn real_reply() -> Vec<u8> {
        let players = [
            player(0, 0, 1, 2, 1, "Alice", "hello motto"),
            player(1, 0, 2, 1, 1, "Bob x", ""),
            player(2, 1, 3, 0, 1, "Robot1", ""),
            player(3, 0, 5, 0, 0, "Watcher", ""),
            player(4, 0, 1, 0, 0, "Auto", ""),
        ];
        [b"BZFS0221\x05", REAL_GAME, REAL_LIST, REAL_TEAMS, &players.concat()].concat()
    }

    fn done(step: Step) -> Snapshot {
        match step {
            Step::Done(snapshot) => *snapshot,
            step => panic!("{step:?}"),
        }
    }

    #[test]
    fn real_reply_is_full_in_pieces_of_any_size() {
        let reply = real_reply();
        let whole = done(BzflagQuery::new().handle_datagram(7, &reply));
        assert_eq!((whole.game.as_str(), whole.map.as_str(), whole.hostname.as_str()), ("bzflag", "ClassicCTF", ""));
        assert_eq!((whole.slots, whole.count, whole.completeness), (26, None, Completeness::Full));
        let players: Vec<_> = whole.players.iter().map(|p| (p.name.as_str(), p.points, p.bot, p.spectator)).collect();
        assert_eq!(
            players,
            [
                ("Alice", Some(1), false, false),
                ("Bob x", Some(0), false, false),
                ("Robot1", Some(-1), true, false),
                ("Watcher", None, false, true),
                ("Auto", Some(0), false, false)
            ]
        );
        for size in [1, 2, 3, 9, 10, 48, 175, 400] {
            let mut query = BzflagQuery::new();
            let mut steps: Vec<_> = reply.chunks(size).map(|piece| query.handle_datagram(7, piece)).collect();
            assert_eq!(done(steps.pop().unwrap()), whole, "{size}");
            assert!(steps.iter().all(|step| *step == Step::Wait));
        }
    }

    #[test]
    fn request_is_the_greeting_and_both_queries() {
        let query = BzflagQuery::new();
        assert_eq!(query.request(), b"BZFLAG\r\n\r\n\x00\x00\x71\x67\x00\x00\x71\x70");
        assert_eq!(query.authentication(), Authentication::Challenge);
    }

    #[test]
    fn details_name_style_teams_and_options() {
        let mut query = BzflagQuery::new();
        assert_eq!(query.details(b"", DetailLevel::Rules), Details::default());
        query.handle_datagram(1, &real_reply());
        let details = query.details(b"", DetailLevel::Rules);
        assert_eq!((details.game_type.as_deref(), details.version.as_deref()), (Some("ClassicCTF"), Some("0221")));
        assert_eq!(details.player_teams, ["Red", "Green", "Blue", "", "Red"]);
        let rules: Vec<_> = details.rules.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(rules[..2], [("options", "jumping inertia"), ("max_shots", "3")]);
        assert_eq!(rules[4..], [("max_time_s", "1800"), ("time_elapsed_s", "150")]);
        assert!(query.details(b"", DetailLevel::Summary).rules.is_empty());
    }

    #[test]
    fn other_messages_are_skipped_up_to_a_limit() {
        let clock = b"\0\x08gt\0\x06aD\xec\xa3\xc8\xea";
        let early = player(9, 0, 1, 9, 0, "Joins now", "");
        let reply = [b"BZFS0221\x00", &clock[..], &early, REAL_GAME, clock, b"\0\x04qp\0\x08\0\x01", clock].concat();
        let mut query = BzflagQuery::new();
        assert_eq!(query.handle_datagram(1, &reply), Step::Wait);
        let snapshot = done(query.handle_datagram(2, &player(0, 0, 6, 3, 0, "Rabbit", "")));
        assert_eq!((snapshot.players.len(), snapshot.t_ms), (1, 2));
        let mut query = BzflagQuery::new();
        let flood = [b"BZFS0221\x00", &b"\0\0xx".repeat(65)[..]].concat();
        assert_eq!(query.handle_datagram(1, &flood), Step::Fail(IgnoreReason::UnexpectedMessage));
        // Players beyond the announced ones, while the game is missing.
        let more = [b"BZFS0221\x00\0\x04qp\0\x08\0\x01", &early.repeat(66)[..]].concat();
        let mut query = BzflagQuery::new();
        assert_eq!(query.handle_datagram(1, &more), Step::Fail(IgnoreReason::UnexpectedMessage));
        assert_eq!(query.players.len(), 1);
    }

    #[test]
    fn list_that_breaks_off_is_partial_with_a_count() {
        let mut query = BzflagQuery::new();
        assert_eq!(query.partial_snapshot(), None);
        let reply = real_reply();
        let (first, second) = reply.split_at(9 + REAL_GAME.len());
        assert_eq!(query.handle_datagram(1, &first[..9]), Step::Wait);
        assert_eq!(query.partial_snapshot(), None);
        assert_eq!(query.handle_datagram(2, &first[9..]), Step::Wait);
        let partial = query.partial_snapshot().unwrap();
        assert_eq!((partial.completeness, partial.count, partial.players.len()), (Completeness::Partial, Some(5), 0));
        // One player is missing, which would be few enough in a complete list.
        assert_eq!(query.handle_datagram(3, &second[..second.len() - 1]), Step::Wait);
        let partial = query.partial_snapshot().unwrap();
        assert_eq!((partial.completeness, partial.count, partial.players.len()), (Completeness::Partial, Some(5), 4));
    }

    #[test]
    fn list_shorter_than_the_teams_is_partial() {
        let alice = player(0, 0, 1, 2, 1, "Alice", "");
        for (sizes, players, is_full) in [(3, &[&alice[..]][..], true), (4, &[&alice[..]], false), (1, &[], false)] {
            let mut game = REAL_GAME.to_vec();
            game[12..24].fill(0);
            game[13] = sizes;
            let list = [b"\0\x04qp\0\x08\0", &[players.len() as u8][..], &players.concat()].concat();
            let reply = [b"BZFS0221\x00", &game[..], &list].concat();
            let snapshot = done(BzflagQuery::new().handle_datagram(1, &reply));
            assert_eq!(snapshot.completeness, Completeness::full_if(is_full));
            assert_eq!(snapshot.count, (!is_full).then_some(sizes.into()));
        }
        // No team is counted in this style.
        let mut reply = real_reply();
        reply[14] = 3;
        reply[9 + 12..9 + 24].fill(0);
        let snapshot = done(BzflagQuery::new().handle_datagram(1, &reply));
        assert_eq!((snapshot.map.as_str(), snapshot.completeness), ("RabbitChase", Completeness::Full));
    }

    #[test]
    fn other_servers_and_malformed_messages_end_the_scan() {
        let greeted = |rest: &[u8]| [b"BZFS0221\x00", rest].concat();
        for (bytes, reason) in [
            (b"HTTP/1.1 400\r\n".to_vec(), IgnoreReason::NotAReply),
            (b"BZFS0026".to_vec(), IgnoreReason::NotAReply),
            (b"BX".to_vec(), IgnoreReason::NotAReply),
            (b"BZFS0221\xff".to_vec(), IgnoreReason::UnexpectedMessage),
            (greeted(b"\x03\xfdqg"), IgnoreReason::Malformed),
            (greeted(b"\xff\xffap"), IgnoreReason::Malformed),
            (greeted(&[b"\0\x2bqg", &REAL_GAME[4..47]].concat()), IgnoreReason::Malformed),
            (greeted(b"\0\0qg"), IgnoreReason::Malformed),
            (greeted(b"\0\x03qp\0\x08\0"), IgnoreReason::Malformed),
            (greeted(b"\0\x04qp\0\x08\x04\x01"), IgnoreReason::Malformed),
            (greeted(b"\0\x04qp\0\x08\x04\0\0\x0bap\0\0\0\0\0\0\0\0\0\0\0"), IgnoreReason::Malformed),
        ] {
            assert_eq!(BzflagQuery::new().handle_datagram(0, &bytes), Step::Fail(reason), "{bytes:?}");
        }
        // Announced is not yet sent.
        assert_eq!(BzflagQuery::new().handle_datagram(0, &greeted(b"\x03\xfcqg")), Step::Wait);
    }

    #[test]
    fn name_fills_its_field_or_ends_early() {
        let long = "x".repeat(32);
        let players = [player(0, 0, 0, 0, 0, &long, "m"), player(1, 7, 9, 0, 0, "a\0b", "m")].concat();
        let reply = [b"BZFS0221\x00", REAL_GAME, b"\0\x04qp\0\x08\0\x02", &players].concat();
        let mut query = BzflagQuery::new();
        let snapshot = done(query.handle_datagram(0, &reply));
        let names: Vec<_> = snapshot.players.iter().map(|p| (p.name.as_str(), p.bot)).collect();
        assert_eq!(names, [(long.as_str(), false), ("a", false)]);
        assert_eq!(query.details(b"", DetailLevel::Summary).player_teams, ["Rogue", "9"]);
    }
}
