//! Minecraft: Java Edition: the status that the list of servers in the game shows. It has counts and some of the
//! names, and no points. Nearly every server sends it; the query of the module `gamespy3`, which has the whole
//! list, is off by default.

use std::net::SocketAddr;

use serde_json::Value;

use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step};
use super::stream::Stream;
use super::text::{player_name, short_text};
use crate::limits::{PLAYERS_MAX, REPLY_BYTES_MAX, TEXT_BYTES_MAX};
use crate::model::{Completeness, Player, Snapshot};

/// The version of the protocol that a client of 1.8 sends; servers of all versions reply to it.
const CLIENT_VERSION: u8 = 47;

/// The state that a connection is to have after the first message.
const STATUS: u8 = 1;

/// Message of the status, and of its request.
const STATUS_MESSAGE: usize = 0;

/// A first message, and the request for the status.
#[derive(Clone, Debug)]
pub struct StatusQuery {
    /// As the player would write it.
    host: String,
    port: u16,
    stream: Stream,
    version: Option<String>,
}

impl StatusQuery {
    pub fn new(address: SocketAddr) -> Self {
        StatusQuery { host: address.ip().to_string(), port: address.port(), stream: Stream::default(), version: None }
    }

    /// Decodes the reply, if it is complete.
    fn read(&mut self, t_ms: i64, bytes: &[u8]) -> Result<Option<Snapshot>, IgnoreReason> {
        self.stream.push(bytes)?;
        let Some(body) = message(self.stream.rest())? else { return Ok(None) };
        let status: Value = serde_json::from_slice(body).map_err(|_| IgnoreReason::Malformed)?;
        if !status.is_object() {
            return Err(IgnoreReason::Malformed);
        }
        self.version = status["version"]["name"].as_str().map(|text| short_text(text.as_bytes()));
        Ok(Some(snapshot(t_ms, &status)))
    }
}

impl Exchange for StatusQuery {
    fn request(&self) -> Vec<u8> {
        let mut first = vec![0, CLIENT_VERSION];
        add_number(&mut first, self.host.len());
        first.extend(self.host.as_bytes());
        first.extend(self.port.to_be_bytes());
        first.push(STATUS);
        let mut request = Vec::new();
        add_number(&mut request, first.len());
        request.extend(first);
        request.extend([1, 0]);
        request
    }

    fn set_host_name(&mut self, name: &str, port: u16) {
        (self.host, self.port) = (name.to_owned(), port);
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        match self.read(t_ms, bytes) {
            Ok(Some(snapshot)) => Step::Done(Box::new(snapshot)),
            Ok(None) => Step::Wait,
            Err(reason) => Step::Fail(reason),
        }
    }

    fn authentication(&self) -> Authentication {
        Authentication::Challenge
    }

    fn details(&self, _last_datagram: &[u8], _level: DetailLevel) -> Details {
        Details { version: self.version.clone(), ..Details::default() }
    }
}

/// The text of a status message. `None`: it is not complete.
fn message(bytes: &[u8]) -> Result<Option<&[u8]>, IgnoreReason> {
    let rest = &mut &*bytes;
    let Some(length) = number(rest)? else { return Ok(None) };
    if length > REPLY_BYTES_MAX {
        return Err(IgnoreReason::TooLarge);
    }
    let Some(mut content) = rest.get(..length) else { return Ok(None) };
    let content = &mut content;
    if number(content)? != Some(STATUS_MESSAGE) {
        return Err(IgnoreReason::UnexpectedMessage);
    }
    let length = number(content)?.ok_or(IgnoreReason::Malformed)?;
    content.get(..length).map(Some).ok_or(IgnoreReason::Malformed)
}

/// A number of seven bits a byte, the lowest first. `None`: it is not complete.
fn number(bytes: &mut &[u8]) -> Result<Option<usize>, IgnoreReason> {
    let mut value = 0;
    for shift in 0..3 {
        let Some((&byte, rest)) = bytes.split_first() else { return Ok(None) };
        *bytes = rest;
        value |= usize::from(byte & 0x7f) << (7 * shift);
        if byte & 0x80 == 0 {
            return Ok(Some(value));
        }
    }
    Err(IgnoreReason::TooLarge)
}

/// Of up to 14 bits: the name of a host has 253 bytes at most.
fn add_number(bytes: &mut Vec<u8>, number: usize) {
    let number = u16::try_from(number).unwrap_or(u16::MAX);
    let [[_, low], [_, high]] = [number & 0x7f, number >> 7 & 0x7f].map(u16::to_be_bytes);
    if high == 0 { bytes.push(low) } else { bytes.extend([low | 0x80, high]) }
}

fn snapshot(t_ms: i64, status: &Value) -> Snapshot {
    let players = &status["players"];
    let count = |key: &str| players[key].as_u64().and_then(|count| u32::try_from(count).ok());
    let online = count("online");
    let listed = sample(&players["sample"]);
    // A server lists at most twelve players, chosen at random. Players can choose not to be listed, and some servers
    // write advertisements instead of names.
    let is_full = online.is_some_and(|online| listed.as_ref().map_or(0, Vec::len) == online as usize);
    let mut hostname = String::new();
    add_text(&status["description"], &mut hostname);
    Snapshot {
        t_ms,
        // As the query calls it.
        game: "MINECRAFT".to_owned(),
        map: String::new(),
        hostname: short_text(hostname.trim().as_bytes()),
        slots: count("max").unwrap_or(0),
        players: listed.filter(|_| is_full).unwrap_or_default(),
        completeness: Completeness::full_if(is_full),
        count: online.filter(|_| !is_full),
        bots: None,
    }
}

/// The players of the list; `None`: it has none, or something else.
fn sample(list: &Value) -> Option<Vec<Player>> {
    let names = list.as_array()?.iter().take(PLAYERS_MAX).map(|entry| entry["name"].as_str());
    let player = |name: &str| Player { name: player_name(name.as_bytes()), ..Player::default() };
    names.map(|name| name.filter(|name| is_player_name(name)).map(player)).collect()
}

/// Players of Bedrock on a server for both have a mark before their name, usually a dot.
fn is_player_name(name: &str) -> bool {
    let name = name.strip_prefix(['.', '*', '-', '+']).unwrap_or(name);
    (1..=16).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Adds the text of a description: a string, or parts that contain parts.
fn add_text(part: &Value, out: &mut String) {
    if out.len() > TEXT_BYTES_MAX {
        return;
    }
    match part {
        Value::String(text) => out.push_str(text),
        Value::Array(parts) => parts.iter().for_each(|part| add_text(part, out)),
        Value::Object(_) => {
            add_text(&part["text"], out);
            add_text(&part["extra"], out);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query() -> StatusQuery {
        StatusQuery::new("10.0.0.1:25565".parse().unwrap())
    }

    /// A message with lengths of two bytes each.
    fn status(text: &str) -> Vec<u8> {
        let number = |value: usize| [(value & 0x7f) as u8 | 0x80, (value >> 7) as u8];
        [&number(text.len() + 3)[..], &[0], &number(text.len()), text.as_bytes()].concat()
    }

    const SMALL: &str = r#"{"version":{"name":"Paper 1.20.1","protocol":763},"players":{"max":20,"online":2,"sample":[{"name":".Steve","id":"0"},{"name":"alex_7","id":"1"}]},"description":{"text":"A ","extra":[{"text":"small "},"host"]}}"#;

    #[test]
    fn sample_of_all_players_is_a_full_list() {
        for piece in [1, 9, 1_000] {
            let mut query = query();
            assert_eq!(query.request(), b"\x0e\x00\x2f\x0810.0.0.1\x63\xdd\x01\x01\x00");
            let reply = status(SMALL);
            let mut steps: Vec<Step> = reply.chunks(piece).map(|piece| query.handle_datagram(5, piece)).collect();
            let Some(Step::Done(snapshot)) = steps.pop() else { panic!() };
            assert!(steps.iter().all(|step| *step == Step::Wait));
            assert_eq!((snapshot.game.as_str(), snapshot.hostname.as_str()), ("MINECRAFT", "A small host"));
            assert_eq!((snapshot.slots, snapshot.completeness, snapshot.count), (20, Completeness::Full, None));
            let names: Vec<_> = snapshot.players.iter().map(|player| player.name.as_str()).collect();
            assert_eq!(names, [".Steve", "alex_7"]);
            assert_eq!(query.details(b"", DetailLevel::Summary).version.as_deref(), Some("Paper 1.20.1"));
        }
    }

    #[test]
    fn request_has_the_name_of_the_host() {
        let mut query = query();
        query.set_host_name("play.example.org", 25_565);
        assert_eq!(query.request(), b"\x16\x00\x2f\x10play.example.org\x63\xdd\x01\x01\x00");
        let long = "x".repeat(253);
        query.set_host_name(&long, 25_565);
        let request = query.request();
        let mut rest = &request[..];
        assert_eq!((number(&mut rest), rest.len()), (Ok(Some(260)), 262), "with the request for the status");
        assert_eq!((rest[..4].to_vec(), &rest[4..257]), (vec![0, 0x2f, 0xfd, 0x01], long.as_bytes()));
    }

    #[test]
    fn list_that_is_not_of_all_players_is_partial() {
        for (from, to, count) in [
            ("\"online\":2", "\"online\":30", Some(30)),
            ("alex_7", "§6Join now!", Some(2)),
            ("\"sample\":[", "\"no\":[", Some(2)),
            ("\"online\":2", "\"no\":2", None),
        ] {
            let Step::Done(snapshot) = query().handle_datagram(0, &status(&SMALL.replace(from, to))) else { panic!() };
            assert_eq!((snapshot.completeness, snapshot.count), (Completeness::Partial, count), "{to}");
            assert!(snapshot.players.is_empty());
        }
        let empty = r#"{"players":{"max":20,"online":0},"description":"Empty"}"#;
        let Step::Done(snapshot) = query().handle_datagram(0, &status(empty)) else { panic!() };
        assert_eq!((snapshot.completeness, snapshot.hostname.as_str()), (Completeness::Full, "Empty"));
    }

    #[test]
    fn other_messages_fail() {
        for (bytes, reason) in [
            (&b"\xff\xff\xff\x7f"[..], IgnoreReason::TooLarge),
            (b"\xff\xff\x7f", IgnoreReason::TooLarge),
            (b"\x03\x01\x01x", IgnoreReason::UnexpectedMessage),
            (b"\x03\x00\x09x", IgnoreReason::Malformed),
            (b"\x03\x00\x01x", IgnoreReason::Malformed),
            (b"\x04\x00\x027x", IgnoreReason::Malformed),
            (b"\x03\x00\x017", IgnoreReason::Malformed),
            (b"\x00", IgnoreReason::UnexpectedMessage),
        ] {
            assert_eq!(query().handle_datagram(0, bytes), Step::Fail(reason), "{bytes:?}");
        }
        assert_eq!(query().handle_datagram(0, b"\x03\x00"), Step::Wait);
    }

    #[test]
    fn deep_descriptions_are_refused_or_cut() {
        let deep = format!(r#"{{"description":{}{}}}"#, "[".repeat(5_000), "]".repeat(5_000));
        let number =
            |value: usize| [(value & 0x7f) as u8 | 0x80, (value >> 7 & 0x7f) as u8 | 0x80, (value >> 14) as u8];
        let reply = [&number(deep.len() + 4)[..], &[0], &number(deep.len()), deep.as_bytes()].concat();
        assert_eq!(query().handle_datagram(0, &reply), Step::Fail(IgnoreReason::Malformed));
    }
}
