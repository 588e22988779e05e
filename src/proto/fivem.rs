//! FiveM and RedM: two documents of the server's HTTP interface, `dynamic.json` with the counts and
//! `players.json` with the list. There are no points.

use std::net::SocketAddr;

use serde::Deserialize;
use serde_json::Value;

use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step, has_enough_entries};
use super::http::{self, Response};
use super::text::{player_name, short_text, without_caret_colours};
use crate::limits::PLAYERS_MAX;
use crate::model::{Completeness, Player, Snapshot};

const COUNTS: &str = "/dynamic.json";
const LIST: &str = "/players.json";

/// The counts, then the list, if there are players.
#[derive(Clone, Debug)]
pub struct FiveMQuery {
    /// As players write it, with the port.
    host: String,
    /// The documents do not tell which one it is.
    game: &'static str,
    response: Response,
    counts: Option<Counts>,
    counts_received_ms: i64,
    /// The list was requested on another connection.
    is_repeated: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Counts {
    hostname: String,
    map: String,
    game_type: String,
    players: u32,
    slots: u32,
}

/// The name of everybody in a list that is only for those with a token.
const HIDDEN_NAME: &str = "Player";

/// An entry of the list. Its identifiers are not read.
#[derive(Debug, Deserialize)]
struct Entry {
    name: String,
    ping: Option<f64>,
}

impl FiveMQuery {
    pub fn new(address: SocketAddr, game: &'static str) -> Self {
        FiveMQuery {
            host: address.to_string(),
            game,
            response: Response::default(),
            counts: None,
            counts_received_ms: 0,
            is_repeated: false,
        }
    }

    fn on_response(&mut self, t_ms: i64, response: Result<Option<Vec<u8>>, IgnoreReason>) -> Step {
        let next = response.and_then(|body| body.map(|body| self.on_document(t_ms, &body)).transpose());
        match next {
            Ok(Some(step)) => step,
            Ok(None) => Step::Wait,
            Err(reason) => Step::Fail(reason),
        }
    }

    fn on_document(&mut self, t_ms: i64, document: &[u8]) -> Result<Step, IgnoreReason> {
        let Some(counts) = &self.counts else {
            let counts = parse_counts(document)?;
            let is_empty = counts.players == 0;
            self.counts_received_ms = t_ms;
            let counts = self.counts.insert(counts);
            return Ok(match (is_empty, self.response.is_last()) {
                (true, _) => Step::Done(Box::new(counts.snapshot(self.game, t_ms, Vec::new(), true))),
                // The list is requested when the server has ended the connection.
                (false, true) => Step::Wait,
                (false, false) => Step::Send,
            });
        };
        let entries: Vec<Entry> = serde_json::from_slice(document).map_err(|_| IgnoreReason::Malformed)?;
        let players: Vec<Player> = entries.iter().take(PLAYERS_MAX).map(player).collect();
        // An empty list is one that the server hides, and so is one without names.
        let is_hidden = entries.iter().all(|entry| entry.name == HIDDEN_NAME);
        let is_whole = !is_hidden && entries.len() <= PLAYERS_MAX;
        let players = if is_hidden { Vec::new() } else { players };
        Ok(Step::Done(Box::new(counts.snapshot(self.game, t_ms, players, is_whole))))
    }
}

impl Counts {
    fn snapshot(&self, game: &str, t_ms: i64, players: Vec<Player>, is_whole: bool) -> Snapshot {
        let is_full = is_whole && has_enough_entries(players.len(), self.players);
        Snapshot {
            t_ms,
            game: game.to_owned(),
            map: self.map.clone(),
            hostname: self.hostname.clone(),
            slots: self.slots,
            players,
            completeness: Completeness::full_if(is_full),
            count: Some(self.players).filter(|_| !is_full),
            bots: None,
        }
    }
}

impl Exchange for FiveMQuery {
    fn request(&self) -> Vec<u8> {
        http::get(&self.host, if self.counts.is_none() { COUNTS } else { LIST })
    }

    fn set_host_name(&mut self, name: &str, port: u16) {
        self.host = format!("{name}:{port}");
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        let response = self.response.push(bytes);
        self.on_response(t_ms, response)
    }

    fn handle_end(&mut self, t_ms: i64) -> Step {
        if let Some(body) = self.response.end() {
            return self.on_response(t_ms, Ok(Some(body)));
        }
        // Some servers end the connection after each response, and do not say so before.
        let is_between = self.response.is_between() && self.counts.is_some();
        match is_between && !std::mem::replace(&mut self.is_repeated, true) {
            true => Step::Send,
            false => Step::Fail(IgnoreReason::Malformed),
        }
    }

    fn authentication(&self) -> Authentication {
        Authentication::Challenge
    }

    fn details(&self, _last_datagram: &[u8], _level: DetailLevel) -> Details {
        let game_type = self.counts.as_ref().map(|counts| counts.game_type.clone()).filter(|text| !text.is_empty());
        Details { game_type, ..Details::default() }
    }

    fn partial_snapshot(&mut self) -> Option<Snapshot> {
        let counts = self.counts.as_ref()?;
        Some(counts.snapshot(self.game, self.counts_received_ms, Vec::new(), false))
    }
}

fn parse_counts(document: &[u8]) -> Result<Counts, IgnoreReason> {
    let document: Value = serde_json::from_slice(document).map_err(|_| IgnoreReason::Malformed)?;
    let text = |key: &str| without_caret_colours(document[key].as_str().unwrap_or_default().as_bytes());
    Ok(Counts {
        hostname: short_text(&text("hostname")),
        map: short_text(&text("mapname")),
        game_type: short_text(&text("gametype")),
        players: count(&document["clients"]).ok_or(IgnoreReason::Malformed)?,
        slots: count(&document["sv_maxclients"]).unwrap_or(0),
    })
}

/// A number, which some versions send as text.
fn count(value: &Value) -> Option<u32> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        _ => value.as_u64().and_then(|count| count.try_into().ok()),
    }
}

fn player(entry: &Entry) -> Player {
    Player {
        name: player_name(&without_caret_colours(entry.name.as_bytes())),
        // -1: the player is connecting.
        ping: entry.ping.filter(|ping| (0.0..=65_535.0).contains(ping)).map(milliseconds),
        ..Player::default()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "within 0 to 65,535")]
fn milliseconds(ping: f64) -> i32 {
    ping as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::nonce::Nonce;

    fn response(body: &str) -> Vec<u8> {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    fn query() -> FiveMQuery {
        FiveMQuery::new("10.0.0.1:30120".parse().unwrap(), "fivem")
    }

    const DYNAMIC: &str = r#"{"hostname":"^1A host","gametype":"Freeroam","mapname":"San Andreas","clients":2,"sv_maxclients":"48","iv":"1"}"#;

    #[test]
    fn counts_and_list_are_two_requests_of_one_connection() {
        let mut query = query();
        let want = "GET /dynamic.json HTTP/1.1\r\nHost: 10.0.0.1:30120\r\nAccept: application/json\r\nUser-Agent: clqd\r\n\r\n";
        assert_eq!(String::from_utf8(query.request()).unwrap(), want);
        assert_eq!(query.handle_datagram(1, &response(DYNAMIC)), Step::Send);
        query.set_host_name("roleplay.example.org", 30_120);
        assert!(query.request().starts_with(b"GET /players.json HTTP/1.1\r\nHost: roleplay.example.org:30120\r\n"));
        let list = r#"[{"endpoint":"127.0.0.1","id":1,"identifiers":["steam:1"],"name":"^2Jürgen","ping":48},{"name":"Two","ping":-1}]"#;
        let Step::Done(snapshot) = query.handle_datagram(2, &response(list)) else { panic!() };
        assert_eq!((snapshot.game.as_str(), snapshot.map.as_str()), ("fivem", "San Andreas"));
        assert_eq!((snapshot.hostname.as_str(), snapshot.slots, snapshot.t_ms), ("A host", 48, 2));
        let players: Vec<_> = snapshot.players.iter().map(|p| (p.name.as_str(), p.points, p.ping)).collect();
        assert_eq!(players, [("Jürgen", None, Some(48)), ("Two", None, None)]);
        assert_eq!((snapshot.completeness, snapshot.count), (Completeness::Full, None));
        assert_eq!(query.details(b"", DetailLevel::Summary).game_type.as_deref(), Some("Freeroam"));
    }

    #[test]
    fn game_is_the_scheme_of_the_url() {
        for scheme in ["fivem", "redm"] {
            let protocol = crate::proto::protocol_of(scheme).unwrap();
            let mut query = protocol.start(Nonce(7), "10.0.0.1:30120".parse().unwrap());
            let Step::Done(snapshot) = query.handle_datagram(1, &response(r#"{"clients":0}"#)) else { panic!() };
            assert_eq!(snapshot.game, scheme);
        }
    }

    #[test]
    fn empty_server_needs_no_list() {
        let mut query = query();
        let Step::Done(snapshot) = query.handle_datagram(1, &response(r#"{"clients":0,"sv_maxclients":32}"#)) else {
            panic!()
        };
        assert_eq!((snapshot.players.len(), snapshot.slots, snapshot.completeness), (0, 32, Completeness::Full));
    }

    #[test]
    fn withheld_list_is_partial() {
        let mut query = query();
        query.handle_datagram(1, &response(DYNAMIC));
        let refused = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 5\r\n\r\nNope.";
        assert_eq!(query.handle_datagram(2, refused), Step::Fail(IgnoreReason::UnexpectedMessage));
        let partial = query.partial_snapshot().unwrap();
        assert_eq!((partial.completeness, partial.count, partial.t_ms), (Completeness::Partial, Some(2), 1));
        // A hidden list, too few of the announced players, and more than are read.
        let long = format!("[{}{{\"name\":\"n\"}}]", "{\"name\":\"n\"},".repeat(PLAYERS_MAX));
        let nameless =
            r#"[{"endpoint":"127.0.0.1","id":0,"identifiers":[],"name":"Player","ping":0},{"name":"Player"}]"#;
        for (players, list) in [(2, "[]"), (2, nameless), (20, r#"[{"name":"n"}]"#), (1_025, &long)] {
            let mut query = self::query();
            query.handle_datagram(1, &response(&DYNAMIC.replace(":2,", &format!(":{players},"))));
            let Step::Done(snapshot) = query.handle_datagram(2, &response(list)) else { panic!() };
            assert_eq!((snapshot.completeness, snapshot.count), (Completeness::Partial, Some(players)));
        }
    }

    #[test]
    fn connection_may_end_after_each_response() {
        let list = r#"[{"name":"n"},{"name":"m"}]"#;
        let until_end = |body: &str| format!("HTTP/1.0 200 OK\r\n\r\n{body}").into_bytes();
        let mut query = query();
        assert_eq!(query.handle_datagram(1, &until_end(DYNAMIC)), Step::Wait);
        assert_eq!(query.handle_end(2), Step::Send);
        assert_eq!(query.handle_datagram(3, &until_end(list)), Step::Wait);
        assert!(matches!(query.handle_end(4), Step::Done(snapshot) if snapshot.t_ms == 4));
        // A server that says so, and one that does not.
        let closing = |body: &str| {
            let text = String::from_utf8(response(body)).unwrap();
            text.replace("OK\r\n", "OK\r\nConnection: close\r\n").into_bytes()
        };
        for (reply, first) in [(closing(DYNAMIC), Step::Wait), (response(DYNAMIC), Step::Send)] {
            let mut query = self::query();
            assert_eq!(query.handle_datagram(1, &reply), first);
            assert_eq!(query.handle_end(2), Step::Send);
            assert!(query.request().starts_with(b"GET /players.json "));
            assert!(matches!(query.handle_datagram(3, &closing(list)), Step::Done(_)));
        }
        let mut query = self::query();
        query.handle_datagram(1, &response(DYNAMIC));
        assert_eq!((query.handle_end(2), query.handle_end(3)), (Step::Send, Step::Fail(IgnoreReason::Malformed)));
    }

    #[test]
    fn documents_of_other_shapes_are_malformed() {
        for document in ["", "{}", "[1]", "nothing", r#"{"clients":-1}"#, r#"{"clients":"many"}"#] {
            assert_eq!(
                query().handle_datagram(0, &response(document)),
                Step::Fail(IgnoreReason::Malformed),
                "{document}"
            );
        }
        assert_eq!(query().handle_end(0), Step::Fail(IgnoreReason::Malformed));
        let mut query = query();
        query.handle_datagram(1, &response(DYNAMIC));
        assert_eq!(query.handle_datagram(2, &response(r#"[{"name":7}]"#)), Step::Fail(IgnoreReason::Malformed));
    }
}
