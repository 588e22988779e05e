//! Armagetron Advanced: one request for the information about a server, one reply with the names of
//! the players. There are no points, and the reply has no nonce.
//!
//! Messages are 16-bit words, big-endian: a descriptor, an id, the number of data words, the data,
//! and the sender. A number has two words, the low one first.

use std::borrow::Cow;

use bytes::Buf;

use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step, has_enough_entries};
use super::fields::take;
use super::text::{player_name, short_name, short_text};
use crate::limits::{PLAYERS_MAX, TEXT_BYTES_MAX};
use crate::model::{Completeness, Player, Snapshot};

/// Descriptors of the messages that a server sends without a connection: where it is, and what it plays.
const SMALL_INFORMATION: u16 = 50;
const INFORMATION: u16 = 51;
const INFORMATION_REQUEST: u16 = 53;

/// The sender of a request: one after the largest number of a connection.
const NO_CONNECTION: u16 = 17;

/// Longest message that is read, bytes. The names of 128 players take 2 KB.
const MESSAGE_BYTES_MAX: usize = 8 << 10;

/// Most bytes that are decoded of a text other than the list. Colour codes take eight bytes each.
const CODED_BYTES_MAX: usize = 4 * TEXT_BYTES_MAX;

/// A colour code is `0x`, and six hexadecimal digits or these letters.
const COLOUR_START: &[u8] = b"0x";
const COLOUR_RESET: &[u8] = b"RESETT";

/// One request, one reply.
#[derive(Clone, Debug, Default)]
pub struct InformationQuery;

impl Exchange for InformationQuery {
    fn request(&self) -> Vec<u8> {
        // No id, because a message with one is acknowledged, and no data.
        [INFORMATION_REQUEST, 0, 0, NO_CONNECTION].map(u16::to_be_bytes).concat()
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        decode(t_ms, bytes).into()
    }

    fn authentication(&self) -> Authentication {
        Authentication::Address
    }

    fn details(&self, last_datagram: &[u8], level: DetailLevel) -> Details {
        let Ok(information) = information(last_datagram) else { return Details::default() };
        let named = |name: &str, text: &[u8]| (name.into(), short_name(text));
        let rules = match level {
            DetailLevel::Summary => Vec::new(),
            DetailLevel::Rules => vec![named("options", &information.options), named("url", &information.url)],
        };
        let version = Some(short_text(&information.version)).filter(|version| !version.is_empty());
        Details { version, rules, ..Details::default() }
    }
}

/// Decodes a reply.
///
/// Errors: another kind of datagram; a message that ends inside a field.
pub fn decode(t_ms: i64, datagram: &[u8]) -> Result<Snapshot, IgnoreReason> {
    let information = information(datagram)?;
    let players = information.players.as_deref().map(players);
    let is_full = players.as_ref().is_some_and(|players| has_enough_entries(players.len(), information.connections));
    Ok(Snapshot {
        t_ms,
        game: "armagetron".to_owned(),
        // The reply does not name it.
        map: String::new(),
        hostname: short_text(&information.hostname),
        slots: information.slots,
        players: players.unwrap_or_default(),
        completeness: Completeness::full_if(is_full),
        // Connections: up to four players share one, and one that only watches may have none.
        count: Some(information.connections).filter(|_| !is_full),
        bots: None,
    })
}

/// The fields of a reply. Texts have no colour codes, except for the list.
#[derive(Debug, Default)]
struct Information {
    hostname: Vec<u8>,
    connections: u32,
    version: Vec<u8>,
    slots: u32,
    /// Each name is followed by a line feed. `None`: the server is too old to send a list.
    players: Option<Vec<u8>>,
    options: Vec<u8>,
    url: Vec<u8>,
}

/// Old servers send only the first of these fields. Newer ones send more: the accounts of the players, and
/// settings.
fn information(datagram: &[u8]) -> Result<Information, IgnoreReason> {
    if datagram.len() > MESSAGE_BYTES_MAX {
        return Err(IgnoreReason::TooLarge);
    }
    let mut rest = datagram;
    match rest.try_get_u16() {
        Ok(INFORMATION) => {}
        Ok(SMALL_INFORMATION) => return Err(IgnoreReason::UnexpectedMessage),
        _ => return Err(IgnoreReason::NotAReply),
    }
    let _id = rest.try_get_u16()?;
    let words = rest.try_get_u16()?;
    let rest = &mut take(&mut rest, 2 * usize::from(words))?;
    let (_port, _address) = (number(rest)?, text(rest, CODED_BYTES_MAX)?);
    let hostname = plain_text(rest)?;
    let mut information = Information { hostname, connections: number(rest)?, ..Information::default() };
    if !rest.is_empty() {
        let (_version_min, _version_max) = (number(rest)?, number(rest)?);
        information.version = plain_text(rest)?;
    }
    if !rest.is_empty() {
        information.slots = number(rest)?;
    }
    if !rest.is_empty() {
        information.players = Some(text(rest, MESSAGE_BYTES_MAX)?);
        information.options = plain_text(rest)?;
        information.url = plain_text(rest)?;
    }
    Ok(information)
}

/// The entries of a list. Bots are not listed, and spectators are not marked as such.
fn players(list: &[u8]) -> Vec<Player> {
    let lines = list.split_inclusive(|&byte| byte == b'\n');
    let names = lines.filter_map(|line| line.strip_suffix(b"\n")).take(PLAYERS_MAX);
    let player = |name: &[u8]| Player { name: player_name(&without_colours(name)), ..Player::default() };
    names.map(player).collect()
}

fn number(rest: &mut &[u8]) -> Result<u32, IgnoreReason> {
    let (low, high) = (rest.try_get_u16()?, rest.try_get_u16()?);
    Ok(u32::from(high) << 16 | u32::from(low))
}

/// A text without colour codes.
fn plain_text(rest: &mut &[u8]) -> Result<Vec<u8>, IgnoreReason> {
    text(rest, CODED_BYTES_MAX).map(|text| without_colours(&text).into_owned())
}

/// A text: its length with the final zero, and words of two characters each, the first one in the low byte.
/// At most `bytes_max` bytes of it are decoded.
///
/// A server adds the characters as signed numbers. A low byte from 0x80 is negative, and makes the high byte
/// one less than its character.
fn text(rest: &mut &[u8], bytes_max: usize) -> Result<Vec<u8>, IgnoreReason> {
    let length = usize::from(rest.try_get_u16()?);
    let words = take(rest, length.next_multiple_of(2))?;
    let length = length.min(bytes_max);
    let mut text = Vec::with_capacity(length.next_multiple_of(2));
    let (pairs, _) = words.as_chunks::<2>();
    for &[high, low] in pairs.iter().take(length.div_ceil(2)) {
        text.extend_from_slice(&[low, high.wrapping_add(low >> 7)]);
    }
    text.truncate(length);
    text.truncate(memchr::memchr(0, &text).unwrap_or(length));
    Ok(text)
}

fn without_colours(text: &[u8]) -> Cow<'_, [u8]> {
    // The names of a list nearly never have one.
    if !text.windows(COLOUR_START.len()).any(|pair| pair == COLOUR_START) {
        return text.into();
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        rest = match rest.strip_prefix(COLOUR_START).and_then(|code| code.split_at_checked(COLOUR_RESET.len())) {
            Some((code, after)) if code == COLOUR_RESET || code.iter().all(u8::is_ascii_hexdigit) => after,
            _ => {
                out.push(*first);
                after
            }
        };
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The start of a reply of version 0.2.9.1: port, no address, a coloured name.
    const HEAD: &[u8] = b"\x11\xb6\0\0\0\0\0\x1fx0ff0000eR dx000ff00\xc3Bq\xbc oeTts\0\0";
    const ONE_CONNECTION: &[u8] = b"\0\x01\0\0";
    const VERSION: &[u8] = b"\0\0\0\0\0\x11\0\0\0\x25.0.2.9_1lahp2a200322 2nuxid decitade\0\0";
    const SLOTS: &[u8] = b"\0\x0c\0\0";
    const TWO_PLAYERS: &[u8] = b"\0\x14eSocdn\" nO\"eA\n b\xa8\xc3\0\n";
    const OPTIONS: &[u8] = b"\0\x1dx01188ffpOitno sx0ffffffeher\0\0";
    const URL: &[u8] = b"\0\x18thpt/:e/axpmeli.vnladi\0/";
    /// No accounts, and settings.
    const TAIL: &[u8] =
        b"\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\x33\x33\0\x33\xfdD\x09\x3f\xaa\xab\0\xaa\xb4\xe8\0\x01\xe0N\x02\x04";

    fn message(descriptor: u16, data: &[&[u8]]) -> Vec<u8> {
        let data = data.concat();
        let head = [descriptor, 0, (data.len() / 2) as u16].map(u16::to_be_bytes).concat();
        // The last word is the sender.
        [&head, &data[..], b"\0\0"].concat()
    }

    fn reply() -> Vec<u8> {
        message(INFORMATION, &[HEAD, ONE_CONNECTION, VERSION, SLOTS, TWO_PLAYERS, OPTIONS, URL, TAIL])
    }

    fn names(snapshot: &Snapshot) -> Vec<&str> {
        snapshot.players.iter().map(|player| player.name.as_str()).collect()
    }

    /// A reply whose list has these bytes.
    fn reply_with_list(connections: u8, list: &[u8]) -> Vec<u8> {
        let mut words = (list.len() as u16 + 1).to_be_bytes().to_vec();
        for pair in [list, b"\0\0"].concat()[..list.len() + 1 + (list.len() + 1) % 2].chunks(2) {
            words.extend_from_slice(&[pair[1], pair[0]]);
        }
        let texts = b"\0\0\0\0";
        message(INFORMATION, &[HEAD, &[0, connections, 0, 0], VERSION, SLOTS, &words, texts])
    }

    #[test]
    fn reply_of_a_real_server_is_full() {
        let mut query = InformationQuery;
        assert_eq!(query.request(), b"\0\x35\0\0\0\0\0\x11");
        // Two players share one connection, and three computer players are not listed.
        let Step::Done(snapshot) = query.handle_datagram(5, &reply()) else { panic!() };
        assert_eq!((snapshot.game.as_str(), snapshot.hostname.as_str()), ("armagetron", "Red Büro Test"));
        assert_eq!((snapshot.map.as_str(), snapshot.slots, snapshot.t_ms), ("", 12, 5));
        assert_eq!(names(&snapshot), ["Second \"One\"", "Ab é"]);
        assert!(snapshot.players.iter().all(|player| player.points.is_none() && player.ping.is_none()));
        assert_eq!((snapshot.completeness, snapshot.count), (Completeness::Full, None));
    }

    #[test]
    fn details_have_version_options_and_url() {
        let details = InformationQuery.details(&reply(), DetailLevel::Rules);
        assert_eq!(details.version.as_deref(), Some("0.2.9.1_alpha20230222 unix dedicated"));
        let rules: Vec<_> = details.rules.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(rules, [("options", "Options here"), ("url", "http://example.invalid/")]);
        assert!(InformationQuery.details(&reply(), DetailLevel::Summary).rules.is_empty());
        assert_eq!(InformationQuery.details(b"", DetailLevel::Rules), Details::default());
    }

    #[test]
    fn empty_server_is_full() {
        let snapshot = decode(0, &reply_with_list(0, b"")).unwrap();
        assert_eq!((snapshot.players.len(), snapshot.completeness), (0, Completeness::Full));
        let no_list = message(INFORMATION, &[HEAD, &[0; 4], VERSION, SLOTS, b"\0\0\0\0\0\0"]);
        assert_eq!(decode(0, &no_list).map(|snapshot| snapshot.completeness), Ok(Completeness::Full));
    }

    #[test]
    fn list_with_too_few_names_is_partial_with_a_count() {
        for (connections, want) in [(3, Completeness::Full), (4, Completeness::Partial)] {
            let snapshot = decode(0, &reply_with_list(connections, b"One\n")).unwrap();
            assert_eq!((names(&snapshot), snapshot.completeness), (vec!["One"], want), "{connections}");
            assert_eq!(snapshot.count, (want == Completeness::Partial).then_some(u32::from(connections)));
        }
    }

    #[test]
    fn old_reply_without_a_list_is_partial() {
        for data in
            [&[HEAD, ONE_CONNECTION][..], &[HEAD, ONE_CONNECTION, VERSION], &[HEAD, ONE_CONNECTION, VERSION, SLOTS]]
        {
            let snapshot = decode(0, &message(INFORMATION, data)).unwrap();
            assert_eq!((snapshot.completeness, snapshot.count), (Completeness::Partial, Some(1)));
        }
    }

    #[test]
    fn every_name_ends_with_a_line_feed() {
        let snapshot = decode(0, &reply_with_list(1, b"One\n\n0xff0000T0xRESETTwo\nrest")).unwrap();
        assert_eq!(names(&snapshot), ["One", "", "Two"]);
    }

    #[test]
    fn colour_codes_are_removed_once() {
        for (text, want) in [
            ("0xff0000Red", "Red"),
            ("a0xRESETTb", "ab"),
            ("0x0xff0000ff0000", "0xff0000"),
            ("0xff000", "0xff000"),
            ("0xgg0000", "0xgg0000"),
            ("0x", "0x"),
        ] {
            assert_eq!(*without_colours(text.as_bytes()), *want.as_bytes(), "{text}");
        }
    }

    #[test]
    fn bytes_above_7f_borrow_from_the_next_one() {
        for (words, want) in [
            (&b"\0\x03\xc3B\0\xbc"[..], &b"B\xc3\xbc"[..]),
            (b"\0\x03\xff\xe9\0\0", b"\xe9"),
            (b"\0\x02\xff\xe9", b"\xe9"),
            (b"\0\x03\xfd\xe9\0\0", b"\xe9\xfe"),
            (b"\0\x03\xfe\xe9\0\0", b"\xe9\xff"),
            (b"\0\x01\0\0", b""),
            (b"\0\0", b""),
        ] {
            let mut rest = words;
            let text = text(&mut rest, 9).unwrap();
            assert_eq!((&text[..], rest), (want, &b""[..]), "{words:x?}");
        }
    }

    #[test]
    fn other_messages_and_cut_ones_are_ignored() {
        for (bytes, reason) in [
            (message(SMALL_INFORMATION, &[b"\x11\xb6\0\0\0\0\0\0\0\0"]), IgnoreReason::UnexpectedMessage),
            (message(54, &[HEAD, ONE_CONNECTION]), IgnoreReason::NotAReply),
            (vec![], IgnoreReason::NotAReply),
            (vec![0], IgnoreReason::NotAReply),
            (message(INFORMATION, &[]), IgnoreReason::Malformed),
            (message(INFORMATION, &[b"\x11\xb6\0\0\xff\xff"]), IgnoreReason::Malformed),
            (b"\0\x33\0\0\xff\xff\x11\xb6".to_vec(), IgnoreReason::Malformed),
        ] {
            assert_eq!(InformationQuery.handle_datagram(0, &bytes), Step::Ignore(reason), "{bytes:x?}");
        }
        let whole = reply();
        for cut in 2..whole.len() - 2 {
            assert_eq!(decode(0, &whole[..cut]), Err(IgnoreReason::Malformed), "{cut}");
        }
    }

    #[test]
    fn huge_message_is_not_read_and_a_long_list_ends_at_the_limit() {
        let list = b"\n".repeat(PLAYERS_MAX + 1);
        let snapshot = decode(0, &reply_with_list(9, &list)).unwrap();
        assert_eq!(snapshot.players.len(), PLAYERS_MAX);
        let huge = reply_with_list(9, &b"\n".repeat(MESSAGE_BYTES_MAX));
        assert_eq!(decode(0, &huge), Err(IgnoreReason::TooLarge));
    }
}
