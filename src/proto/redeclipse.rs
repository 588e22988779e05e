//! Red Eclipse: one request, one reply with the information and the names of the players. The query port is the game
//! port plus one. The list has no scores, pings or bots; servers answer no other request.

use super::cube_fields::{self, PING, REPLY_BYTES_MAX, count, int, slots, string};
use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step, has_enough_entries};
use super::nonce::Nonce;
use super::text::{player_name, short_text};
use crate::model::{Completeness, Player, Snapshot};

/// Servers have 15 attributes. Sauerbraten, which answers the same request, has at most 7.
const ATTRIBUTES_MIN: usize = 8;
const ATTRIBUTES_MAX: usize = 64;

/// The first version of the game's protocol that names the branch.
const BRANCH_VERSION: i32 = 227;

/// The master mode of a server with a password.
const PASSWORD: i32 = 4;

/// The modes, from 0.
const MODES: [&str; 7] =
    ["demo", "editing", "deathmatch", "capture-the-flag", "defend-and-control", "bomber-ball", "race"];

/// One request and its reply.
#[derive(Clone, Debug)]
pub struct InfoQuery {
    nonce: [u8; 8],
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Info {
    map: String,
    hostname: String,
    mode: i32,
    players: u32,
    slots: u32,
    password: bool,
    version: Option<String>,
}

impl InfoQuery {
    pub fn new(nonce: Nonce) -> Self {
        InfoQuery { nonce: nonce.0.to_be_bytes() }
    }

    /// The information, and the rest of the reply: the list.
    fn info<'a>(&self, datagram: &'a [u8]) -> Result<(Info, &'a [u8]), IgnoreReason> {
        if datagram.len() > REPLY_BYTES_MAX {
            return Err(IgnoreReason::TooLarge);
        }
        let rest = datagram.strip_prefix(&PING).ok_or(IgnoreReason::NotAReply)?;
        let mut rest = rest.strip_prefix(&self.nonce).ok_or(IgnoreReason::WrongNonce)?;
        let info = info(&mut rest)?;
        Ok((info, rest))
    }

    fn decode(&self, t_ms: i64, datagram: &[u8]) -> Result<Snapshot, IgnoreReason> {
        let (info, rest) = self.info(datagram)?;
        let players = players(rest, info.players);
        let is_full = has_enough_entries(players.len(), info.players);
        Ok(Snapshot {
            t_ms,
            game: "redeclipse".to_owned(),
            map: info.map,
            hostname: info.hostname,
            slots: info.slots,
            players,
            completeness: Completeness::full_if(is_full),
            count: Some(info.players).filter(|_| !is_full),
            bots: None,
        })
    }
}

impl Exchange for InfoQuery {
    fn request(&self) -> Vec<u8> {
        [&PING[..], &self.nonce].concat()
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        self.decode(t_ms, bytes).into()
    }

    fn authentication(&self) -> Authentication {
        Authentication::Nonce
    }

    fn details(&self, last_datagram: &[u8], _level: DetailLevel) -> Details {
        let Ok((info, _)) = self.info(last_datagram) else { return Details::default() };
        let mode = usize::try_from(info.mode).ok().and_then(|mode| MODES.get(mode));
        Details {
            game_type: Some(mode.map_or_else(|| info.mode.to_string(), |&name| name.to_owned())),
            version: info.version,
            password: Some(info.password),
            ..Details::default()
        }
    }
}

/// The attributes in their order: version, mode, mutators, seconds, slots, master mode, number of variables, number of
/// modifications, and from version 1.5 on the version of the game in three numbers, and others.
fn info(rest: &mut &[u8]) -> Result<Info, IgnoreReason> {
    let players = count(rest)?;
    let attributes = usize::try_from(int(rest)?).map_err(|_| IgnoreReason::Malformed)?;
    if !(ATTRIBUTES_MIN..=ATTRIBUTES_MAX).contains(&attributes) {
        return Err(IgnoreReason::Malformed);
    }
    let (protocol, mode, _mutators, _seconds) = (int(rest)?, int(rest)?, int(rest)?, int(rest)?);
    let (slots, master_mode) = (slots(rest)?, int(rest)?);
    let (_variables, _modifications) = (int(rest)?, int(rest)?);
    let others = (ATTRIBUTES_MIN..attributes).map(|_| int(rest)).collect::<Result<Vec<i32>, IgnoreReason>>()?;
    let (map, hostname) = (text(rest)?, text(rest)?);
    if protocol >= BRANCH_VERSION {
        let _branch = string(rest)?;
    }
    let version = match others[..] {
        [major, minor, patch, ..] => Some(format!("{major}.{minor}.{patch}")),
        _ => None,
    };
    let (map, hostname) = (short_text(map.as_bytes()), short_text(hostname.as_bytes()));
    Ok(Info { map, hostname, mode, players, slots, password: master_mode == PASSWORD, version })
}

/// The names at the beginning of the list. It ends early in a reply that did not fit into the buffer of the server.
/// The accounts of the players follow.
fn players(mut rest: &[u8], announced: u32) -> Vec<Player> {
    let mut players = Vec::new();
    for _ in 0..announced {
        let Ok(name) = text(&mut rest) else { break };
        // An account: there are fewer names than announced.
        if name.is_empty() {
            break;
        }
        players.push(Player { name: player_name(name.as_bytes()), ..Player::default() });
    }
    players
}

fn text(rest: &mut &[u8]) -> Result<String, IgnoreReason> {
    string(rest).map(|text| cube_fields::decode(&without_codes(&text)))
}

/// A text without codes for colours and icons. A code is a form feed and one character, and if that is `[`, `(` or
/// `{`, all up to the closing bracket. `z` is followed by two colours.
fn without_codes(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'\x0c' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'[') => _ = bytes.find(|&&byte| byte == b']'),
            Some(b'(') => _ = bytes.find(|&&byte| byte == b')'),
            Some(b'{') => _ = bytes.find(|&&byte| byte == b'}'),
            Some(b'z') => _ = bytes.nth(1),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE_BYTES: &[u8] = b"\x01\x23\x45\x67\x89\xab\xcd\xef";

    fn query() -> InfoQuery {
        InfoQuery::new(Nonce(0x0123_4567_89ab_cdef))
    }

    fn reply(body: &[&[u8]]) -> Vec<u8> {
        let head: &[&[u8]] = &[b"\x01\0", NONCE_BYTES];
        [head, body].concat().concat()
    }

    /// From a reply of redeclipse-server 1.6.0.
    const ATTRIBUTES: &[u8] =
        b"\x0f\x80\xe6\0\x05\0\x80\x58\x02\x20\0\x80\x86\x13\0\x01\x06\0\x02\x40\0\x11nova\0A \x0cghost\0stable\0";
    const ONE: &[u8] = b"\x0cs\x0c[16711680]\x0c($privnonetex)\x0c[9478288]One\x0cS\0";
    const TWO: &[u8] = b"\x0cs\x0c[16711680]\x0c($privnonetex)\x0c[9478288]Zo\x80\x80\xff\x80\x81\xff\x82l\x0cS\0";

    #[test]
    fn reply_has_the_names_without_codes() {
        let mut query = query();
        assert_eq!(query.request(), reply(&[]));
        let bytes = reply(&[b"\x02", ATTRIBUTES, ONE, TWO, b"account\0\0"]);
        let Step::Done(snapshot) = query.handle_datagram(5, &bytes) else { panic!() };
        assert_eq!((snapshot.game.as_str(), snapshot.map.as_str()), ("redeclipse", "nova"));
        assert_eq!((snapshot.hostname.as_str(), snapshot.slots, snapshot.t_ms), ("A host", 32, 5));
        let players: Vec<_> = snapshot.players.iter().map(|p| (p.name.as_str(), p.points, p.ping)).collect();
        assert_eq!(players, [("One", None, None), ("ZoÝßàl", None, None)]);
        assert_eq!((snapshot.completeness, snapshot.count), (Completeness::Full, None));
        let details = query.details(&bytes, DetailLevel::Summary);
        assert_eq!((details.game_type.as_deref(), details.version.as_deref()), (Some("bomber-ball"), Some("1.6.0")));
        assert_eq!(details.password, Some(false));
    }

    #[test]
    fn old_reply_has_no_branch() {
        let attributes = b"\x08\x80\xdc\0\x02\0\x0a\x10\x04\0\0echo\0host\0";
        let bytes = reply(&[b"\x01", attributes, ONE]);
        let Step::Done(snapshot) = query().handle_datagram(5, &bytes) else { panic!() };
        assert_eq!((snapshot.players.len(), snapshot.completeness), (1, Completeness::Full));
        let details = query().details(&bytes, DetailLevel::Summary);
        assert_eq!((details.game_type.as_deref(), details.version), (Some("deathmatch"), None));
        assert_eq!(details.password, Some(true));
    }

    #[test]
    fn cut_list_is_partial_with_a_count() {
        for (names, completeness) in [(6, Completeness::Full), (5, Completeness::Partial)] {
            let list = vec![ONE; names].concat();
            let bytes = reply(&[b"\x08", ATTRIBUTES, &list, &ONE[..9]]);
            let Step::Done(snapshot) = query().handle_datagram(5, &bytes) else { panic!() };
            let count = Some(8).filter(|_| completeness == Completeness::Partial);
            assert_eq!((snapshot.players.len(), snapshot.completeness, snapshot.count), (names, completeness, count));
        }
    }

    #[test]
    fn codes_are_removed_with_their_brackets() {
        for (text, want) in [
            (&b"\x0cza\x0cbred"[..], &b"bred"[..]),
            (b"\x0czabred", b"red"),
            (b"\x0c{key}a\x0c(icon)b\x0c[0xFF]c\x0cyd", b"abcd"),
            (b"a\x0c[open", b"a"),
            (b"a\x0c", b"a"),
            (b"a[1] (b)", b"a[1] (b)"),
        ] {
            assert_eq!(without_codes(text), want);
        }
    }

    #[test]
    fn wrong_nonces_and_malformed_replies_are_ignored() {
        let whole = reply(&[b"\0", ATTRIBUTES]);
        let mut wrong = whole.clone();
        wrong[9] ^= 1;
        for (bytes, reason) in [
            (wrong, IgnoreReason::WrongNonce),
            (b"\x01".to_vec(), IgnoreReason::NotAReply),
            (vec![], IgnoreReason::NotAReply),
            (vec![1; REPLY_BYTES_MAX + 1], IgnoreReason::TooLarge),
            // Sauerbraten.
            (reply(&[b"\x03\x05\x80\x04\x01\x0b\x80\x56\x02\x08\0complex\0test\0"]), IgnoreReason::Malformed),
            // Impossible numbers.
            (reply(&[b"\xff", ATTRIBUTES]), IgnoreReason::Malformed),
            (reply(&[b"\x80\x01\x02", ATTRIBUTES]), IgnoreReason::Malformed),
            (reply(&[b"\0\x81\xff\xff\xff\x7f"]), IgnoreReason::Malformed),
        ] {
            assert_eq!(query().handle_datagram(0, &bytes), Step::Ignore(reason));
        }
        for cut in 10..whole.len() {
            assert_eq!(query().handle_datagram(0, &whole[..cut]), Step::Ignore(IgnoreReason::Malformed), "{cut}");
        }
        assert_eq!(query().details(b"", DetailLevel::Summary), Details::default());
    }
}
