//! GameSpy 1: `\status\` and datagrams of `\key\value` pairs. Each ends with
//! `\queryid\N.M`: the number of the reply and of the datagram in it. The last one of a reply
//! contains `\final\`. There is no nonce.

use std::collections::BTreeMap;

use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step};
use super::infostring::{Infostring, without_final_zeros};
use super::player_table::{PlayerTable, is_full_list};
use crate::games;
use crate::limits::REPLY_BYTES_MAX;
use crate::model::{Completeness, Snapshot};

/// Most datagrams of one reply.
const DATAGRAMS_MAX: usize = 64;

/// A number that is smaller by so much is one of a new round.
const QUERY_IDS_UNTIL_WRAP: u64 = 50;

/// Its list goes on with players who have left, and have other numbers.
const BATTLEFIELD_1942: &str = "bfield1942";

/// One `\status\` request and its reply.
#[derive(Clone, Debug, Default)]
pub struct StatusQuery {
    /// That is queried.
    port: u16,
    /// The number of the reply that is being received; a repeated request gets another one.
    query_id: Option<u64>,
    /// The datagrams of this reply that were received, by number.
    datagrams: BTreeMap<u32, Vec<u8>>,
    /// The number of the datagram that contains `\final\`.
    last: Option<u32>,
    last_received_ms: i64,
}

impl StatusQuery {
    pub fn new(port: u16) -> Self {
        StatusQuery { port, ..StatusQuery::default() }
    }

    fn is_complete(&self) -> bool {
        self.last.is_some_and(|last| (1..=last).all(|number| self.datagrams.contains_key(&number)))
    }

    fn snapshot(&self, is_complete: bool) -> Option<Snapshot> {
        if self.datagrams.is_empty() {
            return None;
        }
        // A pair is never split over two datagrams: each datagram begins with a key.
        let whole: Vec<u8> = self.datagrams.values().flatten().copied().collect();
        let info = Infostring::read(&whole);
        let table = read_table(&info, PlayerTable::default());
        let announced = info.number(&["numplayers"]);
        let game = info.game(&["gamename", "gameid", "game_id"], games::id_by_port("gamespy1", self.port));
        let (mut players, unusable) = table.into_players();
        if game == BATTLEFIELD_1942 {
            players.truncate(announced.map_or(players.len(), |announced| announced as usize));
        }
        let is_full = is_complete && is_full_list(players.len(), unusable, announced);
        Some(Snapshot {
            t_ms: self.last_received_ms,
            game,
            map: info.text(&["mapname", "map", "mapid"]),
            hostname: info.text(&["hostname", "servername"]),
            slots: info.number(&["maxplayers"]).unwrap_or(0),
            players,
            completeness: Completeness::full_if(is_full),
            count: announced.filter(|_| !is_full),
            bots: None,
        })
    }
}

impl Exchange for StatusQuery {
    fn request(&self) -> Vec<u8> {
        b"\\status\\".to_vec()
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        let body = without_final_zeros(bytes);
        if !body.starts_with(b"\\") {
            return Step::Ignore(IgnoreReason::NotAReply);
        }
        let info = Infostring::read(body);
        let is_last = info.pairs().any(|(key, _)| key.eq_ignore_ascii_case(b"final"))
            || body.ends_with(b"\\final\\")
            || body.ends_with(b"\\final");
        // Some servers send everything in one datagram without a number.
        let (query_id, number) = match info.first_value(&["queryid"]).map(parse_query_id) {
            Some(Some(id)) => id,
            Some(None) => return Step::Ignore(IgnoreReason::Malformed),
            None if is_last => (0, 1),
            None => return Step::Ignore(IgnoreReason::Malformed),
        };
        if number == 0 || number as usize > DATAGRAMS_MAX {
            return Step::Ignore(IgnoreReason::BadFragment);
        }
        if self.query_id != Some(query_id) {
            // The reply to a repeated request; datagrams of two replies are not mixed. Unreal counts to 100, then from 1.
            if self.query_id.is_some_and(|current| query_id < current && current - query_id < QUERY_IDS_UNTIL_WRAP) {
                return Step::Ignore(IgnoreReason::UnexpectedMessage);
            }
            self.query_id = Some(query_id);
            self.datagrams.clear();
            self.last = None;
        }
        let held: usize = self.datagrams.values().map(Vec::len).sum();
        if held + body.len() > REPLY_BYTES_MAX {
            return Step::Ignore(IgnoreReason::TooLarge);
        }
        self.datagrams.insert(number, body.to_vec());
        if is_last {
            self.last = Some(number);
        }
        self.last_received_ms = t_ms;
        match self.is_complete().then(|| self.snapshot(true)).flatten() {
            Some(snapshot) => Step::Done(Box::new(snapshot)),
            None => Step::Wait,
        }
    }

    fn authentication(&self) -> Authentication {
        Authentication::Address
    }

    fn details(&self, _last_datagram: &[u8], level: DetailLevel) -> Details {
        let whole: Vec<u8> = self.datagrams.values().flatten().copied().collect();
        let is_setting = |key: &[u8]| !key.contains(&b'_') && key != b"queryid" && key != b"final";
        let info = Infostring::read(&whole);
        let teams = read_table(&info, PlayerTable::with_teams()).player_teams();
        Details::from_pairs(info.pairs().filter(|(key, _)| is_setting(key)), level).with_player_teams(teams)
    }

    fn partial_snapshot(&mut self) -> Option<Snapshot> {
        self.snapshot(false)
    }
}

fn read_table<'a>(info: &Infostring<'a>, mut table: PlayerTable<'a>) -> PlayerTable<'a> {
    for (key, value) in info.pairs() {
        table.set_numbered(key, value);
    }
    table
}

/// `N.M`, or `N` for a reply of one datagram.
fn parse_query_id(value: &[u8]) -> Option<(u64, u32)> {
    let text = std::str::from_utf8(value).ok()?.trim();
    match text.split_once('.') {
        Some((id, number)) => Some((id.parse().ok()?, number.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &[u8] = b"\\gamename\\ut\\gamever\\451\\hostname\\A server\\mapname\\DM-Deck16][\\numplayers\\2\
        \\maxplayers\\16\\queryid\\9.1";
    const SECOND: &[u8] = b"\\player_0\\One\\frags_0\\7\\ping_0\\ 50\\team_0\\255\\player_1\\Two\\frags_1\\-1\
        \\ping_1\\60\\team_1\\0\\final\\\\queryid\\9.2";

    fn names(snapshot: &Snapshot) -> Vec<(&str, Option<i64>, Option<i32>)> {
        snapshot.players.iter().map(|p| (p.name.as_str(), p.points, p.ping)).collect()
    }

    #[test]
    fn datagrams_are_joined_in_any_order() {
        for order in [[FIRST, SECOND], [SECOND, FIRST]] {
            let mut query = StatusQuery::new(7_778);
            assert_eq!(query.handle_datagram(1, order[0]), Step::Wait);
            let Step::Done(snapshot) = query.handle_datagram(2, order[1]) else { panic!("not complete") };
            assert_eq!((snapshot.game.as_str(), snapshot.map.as_str()), ("ut", "DM-Deck16]["));
            assert_eq!((snapshot.hostname.as_str(), snapshot.slots), ("A server", 16));
            assert_eq!(snapshot.completeness, Completeness::Full);
            assert_eq!(names(&snapshot), [("One", Some(7), Some(50)), ("Two", Some(-1), Some(60))]);
            assert_eq!(query.details(b"", DetailLevel::Summary).player_teams, ["", "0"]);
        }
    }

    #[test]
    fn missing_datagram_or_entry_is_partial() {
        let mut query = StatusQuery::new(7_778);
        assert_eq!(query.handle_datagram(1, SECOND), Step::Wait);
        let partial = query.partial_snapshot().unwrap();
        assert_eq!((partial.completeness, partial.players.len()), (Completeness::Partial, 2));
        for (announced, want) in [(3, (Completeness::Full, None)), (4, (Completeness::Partial, Some(4)))] {
            let one =
                format!("\\gamename\\x\\numplayers\\{announced}\\player_0\\One\\frags_0\\7\\final\\\\queryid\\1.1");
            let Step::Done(snapshot) = StatusQuery::new(7_778).handle_datagram(1, one.as_bytes()) else {
                panic!("not complete")
            };
            assert_eq!((snapshot.completeness, snapshot.count), want, "1 of {announced}");
        }
    }

    #[test]
    fn battlefield_1942_lists_those_who_left_behind_those_who_play() {
        let reply = |game: &str| {
            let reply = format!(
                "\\gamename\\{game}\\numplayers\\1\\playername_0\\One\\score_0\\7\\playername_1\\Gone\\score_1\\9\\final\\\\queryid\\1.1"
            );
            let Step::Done(snapshot) = StatusQuery::new(23_000).handle_datagram(1, reply.as_bytes()) else { panic!() };
            snapshot
        };
        assert_eq!(names(&reply("bfield1942")), [("One", Some(7), None)]);
        assert_eq!((reply("bfield1942").completeness, reply("other").players.len()), (Completeness::Full, 2));
    }

    #[test]
    fn number_of_a_reply_begins_again_after_100() {
        let numbered = |bytes: &[u8], number: &str| String::from_utf8(bytes.to_vec()).unwrap().replace("9.", number);
        let mut query = StatusQuery::new(7_778);
        assert_eq!(query.handle_datagram(1, numbered(FIRST, "100.").as_bytes()), Step::Wait);
        assert_eq!(query.handle_datagram(2, numbered(FIRST, "2.").as_bytes()), Step::Wait);
        assert!(matches!(query.handle_datagram(2, numbered(SECOND, "2.").as_bytes()), Step::Done(_)));
    }

    #[test]
    fn two_replies_are_not_mixed() {
        let mut query = StatusQuery::new(7_778);
        assert_eq!(query.handle_datagram(1, FIRST), Step::Wait);
        let repeated = String::from_utf8(SECOND.to_vec()).unwrap().replace("9.2", "10.2");
        assert_eq!(query.handle_datagram(2, repeated.as_bytes()), Step::Wait);
        // A late datagram of the reply before.
        assert_eq!(query.handle_datagram(2, FIRST), Step::Ignore(IgnoreReason::UnexpectedMessage));
        let first = String::from_utf8(FIRST.to_vec()).unwrap().replace("9.1", "10.1");
        assert!(matches!(query.handle_datagram(3, first.as_bytes()), Step::Done(_)));
    }

    #[test]
    fn reply_without_query_id_must_be_final() {
        let mut query = StatusQuery::new(7_778);
        assert_eq!(query.handle_datagram(0, b"\\gamename\\x\\a\\b"), Step::Ignore(IgnoreReason::Malformed));
        assert!(matches!(query.handle_datagram(0, b"\\gamename\\x\\final\\"), Step::Done(_)));
        for (bytes, reason) in [
            (&b"status"[..], IgnoreReason::NotAReply),
            (b"", IgnoreReason::NotAReply),
            (b"\\a\\b\\queryid\\x", IgnoreReason::Malformed),
            (b"\\a\\b\\queryid\\1.0", IgnoreReason::BadFragment),
            (b"\\a\\b\\queryid\\1.999999", IgnoreReason::BadFragment),
        ] {
            assert_eq!(StatusQuery::new(7_778).handle_datagram(0, bytes), Step::Ignore(reason));
        }
    }
}
