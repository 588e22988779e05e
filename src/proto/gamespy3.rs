//! GameSpy 3, also the query of Minecraft: Java Edition: a challenge, then one request. The reply
//! has numbered datagrams; each repeats the name of a column that continues, with the number of
//! its first value.

use std::collections::BTreeMap;

use bytes::Buf;

use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step};
use super::fields::{self, Pairs, c_str};
use super::nonce::Nonce;
use super::player_table::{PlayerTable, column_name, is_full_list};
use super::text::short_text;
use crate::games;
use crate::limits::{PLAYERS_MAX, REPLY_BYTES_MAX};
use crate::model::{Completeness, Snapshot};

const CHALLENGE: u8 = 9;
const STATUS: u8 = 0;
/// The first bytes of the content of each datagram of a status.
const SPLIT_MARK: &[u8] = b"splitnum\0";
/// Bit of the number of the last datagram.
const LAST: u8 = 0x80;

/// Most challenges followed in one scan; resends cause a second and third.
const CHALLENGES_MAX: u32 = 4;

/// The sections of a reply.
const SECTION_SETTINGS: u8 = 0;
const SECTION_PLAYERS: u8 = 1;

/// A challenge and a status request.
#[derive(Clone, Debug)]
pub struct StatusQuery {
    nonce: [u8; 4],
    /// That is queried.
    port: u16,
    challenge: Option<[u8; 4]>,
    challenges: u32,
    /// The datagrams of the reply by number, without their headers.
    datagrams: BTreeMap<u8, Vec<u8>>,
    last: Option<u8>,
    last_received_ms: i64,
}

impl StatusQuery {
    pub fn new(nonce: Nonce, port: u16) -> Self {
        StatusQuery {
            // A Minecraft server repeats it as text: bytes that are not UTF-8 would become other ones.
            nonce: nonce.bytes4().map(|byte| byte & 0x7f),
            port,
            challenge: None,
            challenges: 0,
            datagrams: BTreeMap::new(),
            last: None,
            last_received_ms: 0,
        }
    }

    fn on_challenge(&mut self, t_ms: i64, body: &[u8]) -> Step {
        // A number as text. 0: the server wants no challenge.
        let digits = body.split(|&b| b == 0).next().unwrap_or_default();
        let Some(number) = fields::number::<i64>(digits) else {
            return Step::Ignore(IgnoreReason::Malformed);
        };
        if self.challenges >= CHALLENGES_MAX {
            return Step::Ignore(IgnoreReason::TooManyChallenges);
        }
        self.challenges += 1;
        self.last_received_ms = t_ms;
        // The value is a 32-bit number, signed in some games.
        self.challenge = Some(((number.cast_unsigned() & 0xffff_ffff) as u32).to_be_bytes());
        Step::Send
    }

    fn on_status(&mut self, t_ms: i64, body: &[u8]) -> Step {
        let (number, body) = match body.strip_prefix(SPLIT_MARK).and_then(|rest| rest.split_first()) {
            Some((number, rest)) => (*number, rest),
            None => return Step::Ignore(IgnoreReason::Malformed),
        };
        let held: usize = self.datagrams.values().map(Vec::len).sum();
        if held + body.len() > REPLY_BYTES_MAX {
            return Step::Ignore(IgnoreReason::TooLarge);
        }
        if number & LAST != 0 {
            self.last = Some(number & !LAST);
        }
        self.datagrams.insert(number & !LAST, body.to_vec());
        self.last_received_ms = t_ms;
        let is_complete = self.last.is_some_and(|last| (0..=last).all(|n| self.datagrams.contains_key(&n)));
        match is_complete.then(|| self.snapshot(true)).flatten() {
            Some(snapshot) => Step::Done(Box::new(snapshot)),
            None => Step::Wait,
        }
    }

    /// The content of the datagrams received, and whether it ends inside a value. `table`: an
    /// empty one.
    fn reply<'a>(&'a self, table: PlayerTable<'a>) -> (Reply<'a>, bool) {
        let mut reply = Reply { settings: Vec::new(), players: table };
        let mut section = SECTION_SETTINGS;
        let mut is_cut = false;
        for datagram in self.datagrams.values() {
            // If a datagram ends inside a value, the next one repeats that value. Nothing repeats
            // the last one.
            is_cut = reply.add(datagram, &mut section).is_err();
        }
        (reply, is_cut)
    }

    fn snapshot(&self, is_complete: bool) -> Option<Snapshot> {
        if self.datagrams.is_empty() {
            return None;
        }
        let (reply, is_cut) = self.reply(PlayerTable::default());
        let is_whole = is_complete && !is_cut;
        let announced = reply.number(&["numplayers"]);
        let is_ut3 = reply.value(&[UT3_MAP]).is_some();
        let game = reply.value(&["gamename", "game_id"]).map(short_text).or(is_ut3.then(|| "ut3".to_owned()));
        // In Unreal Tournament 3 the value of `mapname` is a list of settings.
        let (map, hostname) = (reply.text(&[UT3_MAP, "mapname", "map"]), reply.text(&["hostname"]));
        let slots = reply.number(&["maxplayers"]).unwrap_or(0);
        let (players, unusable) = reply.players.into_players();
        let is_full = is_whole && is_full_list(players.len(), unusable, announced);
        Some(Snapshot {
            t_ms: self.last_received_ms,
            game: game
                .filter(|game| !game.trim().is_empty())
                .unwrap_or_else(|| games::id_by_port("gamespy3", self.port).to_owned()),
            map,
            hostname,
            slots,
            players,
            completeness: Completeness::full_if(is_full),
            count: announced.filter(|_| !is_full),
            bots: None,
        })
    }
}

impl Exchange for StatusQuery {
    fn request(&self) -> Vec<u8> {
        match self.challenge {
            None => [&[0xfe, 0xfd, CHALLENGE], &self.nonce[..]].concat(),
            Some(challenge) => {
                let challenge = if challenge == [0; 4] { &[][..] } else { &challenge[..] };
                // Settings, players and teams, and all datagrams of them.
                [&[0xfe, 0xfd, STATUS], &self.nonce[..], challenge, b"\xff\xff\xff\x01"].concat()
            }
        }
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        let Some((&kind @ (CHALLENGE | STATUS), rest)) = bytes.split_first() else {
            return Step::Ignore(IgnoreReason::NotAReply);
        };
        let Some((echoed, body)) = rest.split_first_chunk::<4>() else {
            return Step::Ignore(IgnoreReason::NotAReply);
        };
        if *echoed != self.nonce {
            return Step::Ignore(IgnoreReason::WrongNonce);
        }
        match (kind, self.challenge) {
            (CHALLENGE, _) if self.datagrams.is_empty() => self.on_challenge(t_ms, body),
            (STATUS, Some(_)) => self.on_status(t_ms, body),
            _ => Step::Ignore(IgnoreReason::UnexpectedMessage),
        }
    }

    fn authentication(&self) -> Authentication {
        Authentication::Nonce
    }

    fn details(&self, _last_datagram: &[u8], level: DetailLevel) -> Details {
        let reply = self.reply(PlayerTable::with_teams()).0;
        let named = |key: &'_ [u8]| if key == UT3_GAME_TYPE.as_bytes() { b"gametype".to_vec() } else { key.to_vec() };
        let pairs: Pairs = reply.settings.iter().map(|(key, value)| (named(key), *value)).collect();
        let details = Details::from_pairs(pairs.iter().map(|(key, value)| (&key[..], *value)), level);
        details.with_player_teams(reply.players.player_teams())
    }

    fn partial_snapshot(&mut self) -> Option<Snapshot> {
        self.snapshot(false)
    }
}

/// The keys of the map and the game type in Unreal Tournament 3, which has numbers for them.
const UT3_MAP: &str = "p1073741825";
const UT3_GAME_TYPE: &str = "p1073741826";

/// The content of a reply.
struct Reply<'a> {
    settings: Pairs<'a>,
    players: PlayerTable<'a>,
}

impl<'a> Reply<'a> {
    /// Adds a datagram. `section`: the one in which the datagram before it ended, because a
    /// section continues without being named again.
    ///
    /// Error: it ends inside a value; the next datagram repeats that value.
    fn add(&mut self, mut rest: &'a [u8], section: &mut u8) -> Result<(), IgnoreReason> {
        while !rest.is_empty() {
            // A section begins with its number, which no key or column does. The numbers grow: a lower one is
            // padding.
            if rest[0] <= 2 {
                *section = rest.get_u8().max(*section);
                continue;
            }
            match *section {
                SECTION_SETTINGS => self.add_settings(&mut rest)?,
                _ => self.add_columns(&mut rest, *section == SECTION_PLAYERS)?,
            }
        }
        Ok(())
    }

    /// Pairs up to an empty key.
    fn add_settings(&mut self, rest: &mut &'a [u8]) -> Result<(), IgnoreReason> {
        while !rest.is_empty() {
            let key = c_str(rest)?;
            if key.is_empty() {
                break;
            }
            self.settings.push((key.to_ascii_lowercase(), c_str(rest)?));
        }
        Ok(())
    }

    /// Columns up to an empty name: the name, the number of the first value, the values, and an empty
    /// one. A value may be empty, too: the name of a bot.
    fn add_columns(&mut self, rest: &mut &'a [u8], players: bool) -> Result<(), IgnoreReason> {
        while !rest.is_empty() {
            let name = c_str(rest)?;
            if name.is_empty() {
                break;
            }
            let mut number = usize::from(rest.try_get_u8()?);
            while !rest.is_empty() {
                let value = c_str(rest)?;
                if value.is_empty() {
                    let (values, ends) = self.empty_values(number, rest);
                    for _ in 0..values.min(PLAYERS_MAX) {
                        if players {
                            self.players.set(name, number, b"");
                        }
                        number += 1;
                    }
                    rest.advance(if ends { values } else { values - 1 });
                    if ends {
                        break;
                    }
                    continue;
                }
                if players {
                    self.players.set(name, number, value);
                }
                number += 1;
            }
        }
        Ok(())
    }

    /// How many of the zero bytes from the one before `rest` on are empty values, and whether the column
    /// ends after them, with one more zero. `number`: of the next value.
    fn empty_values(&self, number: usize, rest: &[u8]) -> (usize, bool) {
        let zeros = 1 + rest.iter().take_while(|&&byte| byte == 0).count();
        match &rest[zeros - 1..] {
            after if is_column(after) => (zeros - 1, true),
            // The end of the section: no more values than other columns have, the end of the column, and an
            // empty name.
            [] | [..=2, ..] => (zeros.saturating_sub(2).min(self.players.len().saturating_sub(number)), true),
            _ => (zeros, false),
        }
    }

    fn value(&self, keys: &[&str]) -> Option<&[u8]> {
        keys.iter().find_map(|key| {
            let named = |(k, v): &&(Vec<u8>, &[u8])| k == key.as_bytes() && !v.is_empty();
            self.settings.iter().find(named).map(|(_, value)| *value)
        })
    }

    fn number(&self, keys: &[&str]) -> Option<u32> {
        fields::number(self.value(keys)?)
    }

    fn text(&self, keys: &[&str]) -> String {
        short_text(self.value(keys).unwrap_or_default())
    }
}

/// Whether a column begins here: its name, and the number of its first value.
fn is_column(rest: &[u8]) -> bool {
    let Some(end) = memchr::memchr(0, &rest[..rest.len().min(COLUMN_NAME_BYTES_MAX)]) else { return false };
    column_name(&rest[..end]) && rest.len() > end + 1
}

/// Longest name of a column.
const COLUMN_NAME_BYTES_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn query() -> StatusQuery {
        StatusQuery::new(Nonce(0x6162_6364_0000_0000 | 0x6162_6364), 29_900)
    }

    fn header(number: u8) -> Vec<u8> {
        [&b"\x00abcd"[..], SPLIT_MARK, &[number]].concat()
    }

    fn challenged() -> StatusQuery {
        let mut query = query();
        assert_eq!(query.request(), b"\xfe\xfd\x09abcd");
        assert_eq!(query.handle_datagram(1, b"\x09abcd-2093222\0"), Step::Send);
        assert_eq!(
            query.request(),
            [&b"\xfe\xfd\x00abcd"[..], &(-2_093_222_i32).to_be_bytes(), b"\xff\xff\xff\x01"].concat()
        );
        query
    }

    fn check(snapshot: &Snapshot) {
        assert_eq!((snapshot.game.as_str(), snapshot.map.as_str()), ("bf2", "strike_at_karkand"));
        assert_eq!((snapshot.hostname.as_str(), snapshot.slots, snapshot.count), ("A host", 64, None));
        let players: Vec<_> = snapshot.players.iter().map(|p| (p.name.as_str(), p.points, p.ping)).collect();
        assert_eq!(players, [("One", Some(7), Some(40)), ("Two", Some(-2), Some(80)), ("Three", Some(0), Some(5))]);
        assert_eq!(snapshot.completeness, Completeness::Full);
    }

    const SETTINGS: &[u8] =
        b"\x00hostname\0A host\0gamename\0bf2\0mapname\0strike_at_karkand\0maxplayers\x0064\0numplayers\x003\0\0";

    #[test]
    fn one_datagram_is_the_whole_reply() {
        let list = b"\x01player_\0\x00One\0Two\0Three\0\0team_\0\x001\x002\x001\0\0\
            score_\0\x007\0-2\x000\0\0ping_\0\x0040\x0080\x005\0\0\0\
            \x02team_t\0\x00red\0blue\0\0\0";
        let bytes = [&header(LAST)[..], SETTINGS, list].concat();
        let mut query = challenged();
        let Step::Done(snapshot) = query.handle_datagram(2, &bytes) else { panic!("not complete") };
        check(&snapshot);
        assert_eq!(query.details(b"", DetailLevel::Summary).player_teams, ["1", "2", "1"]);
    }

    #[test]
    fn cut_value_is_taken_from_the_next_datagram() {
        let first = [&header(0)[..], SETTINGS, b"\x01player_\0\x00One\0Tw"].concat();
        let second = [
            &header(1 | LAST)[..],
            b"\x01player_\0\x01Two\0Three\0\0score_\0\x007\0-2\x000\0\0ping_\0\x0040\x0080\x005\0\0\0",
        ]
        .concat();
        for order in [[&first, &second], [&second, &first]] {
            let mut query = challenged();
            assert_eq!(query.handle_datagram(2, order[0]), Step::Wait);
            assert_eq!(query.partial_snapshot().unwrap().completeness, Completeness::Partial);
            let Step::Done(snapshot) = query.handle_datagram(3, order[1]) else { panic!("not complete") };
            check(&snapshot);
        }
    }

    #[test]
    fn empty_values_do_not_end_a_column() {
        let settings = &SETTINGS[..SETTINGS.len() - 3];
        let list = b"\x01player_\0\x00One\0\0\0Four\0\0\0score_\0\x007\0-2\x000\0\x009\0\0\
            ping_\0\x0040\x000\x000\x0030\0\0\0\0\0\x02team_t\0\x00red\0\0";
        let bytes = [&header(LAST)[..], settings, b"5\0\0", list].concat();
        let Step::Done(snapshot) = challenged().handle_datagram(2, &bytes) else { panic!("not complete") };
        let players: Vec<_> = snapshot.players.iter().map(|p| (p.name.as_str(), p.points, p.ping)).collect();
        assert_eq!(
            players,
            [
                ("One", Some(7), Some(40)),
                ("", Some(-2), Some(0)),
                ("", Some(0), Some(0)),
                ("Four", None, Some(30)),
                ("", Some(9), None)
            ]
        );
    }

    #[test]
    fn sections_never_go_back() {
        let first = [&header(0)[..], SETTINGS, b"\x01player_\0\x00One\0Two\0Three\0\0"].concat();
        let second = [&header(1 | LAST)[..], b"\0score_\0\x007\0-2\x000\0\0\0\x02team_t\0\x00red\0\0\0"].concat();
        let mut query = challenged();
        assert_eq!(query.handle_datagram(2, &first), Step::Wait);
        let Step::Done(snapshot) = query.handle_datagram(2, &second) else { panic!("not complete") };
        let points: Vec<_> = snapshot.players.iter().map(|p| p.points).collect();
        assert_eq!(points, [Some(7), Some(-2), Some(0)]);
    }

    #[test]
    fn unreal_tournament_3_has_numbers_for_map_and_game_type() {
        let settings =
            b"\x00hostname\0A host\0mapname\0OwningPlayerId=1,p1073741825=VCTF-Kargo\0p1073741825\0VCTF-Kargo\0\
            p1073741826\0UTGame.UTDeathmatch\0maxplayers\x008\0numplayers\x000\0\0";
        let mut query = challenged();
        let Step::Done(snapshot) = query.handle_datagram(2, &[&header(LAST)[..], settings].concat()) else { panic!() };
        assert_eq!((snapshot.game.as_str(), snapshot.map.as_str()), ("ut3", "VCTF-Kargo"));
        let game_type = query.details(b"", DetailLevel::Summary).game_type;
        assert_eq!(game_type.as_deref(), Some("UTGame.UTDeathmatch"));
    }

    #[test]
    fn wrong_nonce_and_unexpected_messages_are_ignored() {
        let mut query = query();
        for (bytes, reason) in [
            (&b"\x09abce1\0"[..], IgnoreReason::WrongNonce),
            (b"\x09abcdx\0", IgnoreReason::Malformed),
            (b"\x00abcdsplitnum\0\x80", IgnoreReason::UnexpectedMessage),
            (b"\x07abcd", IgnoreReason::NotAReply),
            (b"", IgnoreReason::NotAReply),
        ] {
            assert_eq!(query.handle_datagram(0, bytes), Step::Ignore(reason), "{bytes:?}");
        }
        for _ in 0..CHALLENGES_MAX {
            assert_eq!(query.handle_datagram(0, b"\x09abcd0\0"), Step::Send);
        }
        assert_eq!(query.handle_datagram(0, b"\x09abcd0\0"), Step::Ignore(IgnoreReason::TooManyChallenges));
        // No challenge is wanted.
        assert_eq!(query.request(), b"\xfe\xfd\x00abcd\xff\xff\xff\x01");
    }
}
