//! GameSpy 2: one request with a nonce of four bytes, one reply: the settings as pairs, then the
//! players and the teams as tables, row by row.

use bytes::Buf;

use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step};
use super::fields::{self, Pairs, c_str};
use super::nonce::Nonce;
use super::player_table::{PlayerTable, is_full_list};
use super::text::short_text;
use crate::games;
use crate::model::{Completeness, Snapshot};

/// The kind of a reply and the nonce.
const HEADER_BYTES: usize = 5;

/// One request, one reply.
#[derive(Clone, Debug)]
pub struct StatusQuery {
    nonce: [u8; 4],
    /// That is queried.
    port: u16,
}

impl StatusQuery {
    pub fn new(nonce: Nonce, port: u16) -> Self {
        StatusQuery { nonce: nonce.bytes4(), port }
    }
}

impl Exchange for StatusQuery {
    fn request(&self) -> Vec<u8> {
        // Settings, players and teams.
        [&b"\xfe\xfd\x00"[..], &self.nonce, b"\xff\xff\xff"].concat()
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        decode(t_ms, bytes, self.nonce, self.port).into()
    }

    fn authentication(&self) -> Authentication {
        Authentication::Nonce
    }

    fn details(&self, last_datagram: &[u8], level: DetailLevel) -> Details {
        let mut rest = last_datagram.get(HEADER_BYTES..).unwrap_or_default();
        let pairs = settings(&mut rest).unwrap_or_default();
        let mut table = PlayerTable::with_teams();
        // The rows before the end of a reply that is cut are used, as in the snapshot.
        let _ = read_rows(&mut rest, &mut table);
        let details = Details::from_pairs(pairs.iter().map(|(key, value)| (&key[..], *value)), level);
        details.with_player_teams(table.player_teams())
    }
}

/// Decodes a reply from a port. One that ends early gives a partial snapshot.
///
/// Errors: another kind of datagram; another nonce; no settings.
pub fn decode(t_ms: i64, datagram: &[u8], nonce: [u8; 4], port: u16) -> Result<Snapshot, IgnoreReason> {
    let Some((0, rest)) = datagram.split_first().map(|(kind, rest)| (*kind, rest)) else {
        return Err(IgnoreReason::NotAReply);
    };
    let (echoed, mut rest) = rest.split_first_chunk::<4>().ok_or(IgnoreReason::NotAReply)?;
    if *echoed != nonce {
        return Err(IgnoreReason::WrongNonce);
    }
    let pairs = settings(&mut rest)?;
    let value = |keys: &[&str]| {
        keys.iter().find_map(|key| {
            let named = |(k, v): &&(Vec<u8>, &[u8])| k == key.as_bytes() && !v.is_empty();
            pairs.iter().find(named).map(|(_, value)| *value)
        })
    };
    let number = |keys: &[&str]| fields::number::<u32>(value(keys)?);
    let announced = number(&["numplayers"]);
    let mut table = PlayerTable::default();
    let table_is_whole = read_rows(&mut rest, &mut table).is_ok();
    let (players, unusable) = table.into_players();
    let is_full = table_is_whole && is_full_list(players.len(), unusable, announced);
    let named = value(&["gamename", "game_id"]).map(short_text).filter(|game| !game.trim().is_empty());
    let has_setting = |key: &str| pairs.iter().any(|(own, _)| own == key.as_bytes());
    let by_setting = || games::by_setting("gamespy2", has_setting).map(|game| game.id.clone());
    Ok(Snapshot {
        t_ms,
        game: named.or_else(by_setting).unwrap_or_else(|| games::id_by_port("gamespy2", port).to_owned()),
        map: short_text(value(&["mapname", "map"]).unwrap_or_default()),
        hostname: short_text(value(&["hostname"]).unwrap_or_default()),
        slots: number(&["maxplayers"]).unwrap_or(0),
        players,
        completeness: Completeness::full_if(is_full),
        count: announced.filter(|_| !is_full),
        bots: None,
    })
}

/// Keys in lower case, and values, up to an empty key.
fn settings<'a>(rest: &mut &'a [u8]) -> Result<Pairs<'a>, IgnoreReason> {
    let mut pairs = Vec::new();
    loop {
        let (key, value) = (c_str(rest)?, c_str(rest)?);
        if key.is_empty() {
            return Ok(pairs);
        }
        pairs.push((key.to_ascii_lowercase(), value));
    }
}

/// The table of players: a zero byte, the number of rows (which some games leave out), the names
/// of the columns up to an empty one, and the values row by row.
fn read_rows<'a>(rest: &mut &'a [u8], table: &mut PlayerTable<'a>) -> Result<(), IgnoreReason> {
    if rest.first() == Some(&0) {
        rest.advance(1);
    }
    // Names of columns begin with a letter, which a number of rows below 65 is not.
    let announced = match rest.first() {
        Some(&count) if !count.is_ascii_alphabetic() => Some(usize::from(rest.try_get_u8()?)),
        _ => None,
    };
    let mut columns = Vec::new();
    loop {
        match c_str(rest)? {
            b"" => break,
            name => columns.push(name),
        }
    }
    if columns.is_empty() {
        return match announced {
            None | Some(0) => Ok(()),
            Some(_) => Err(IgnoreReason::Malformed),
        };
    }
    let mut row = 0;
    while announced.map_or(!rest.is_empty() && rest[0] != 0, |announced| row < announced) {
        for column in &columns {
            table.set(column, row, c_str(rest)?);
        }
        row += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: [u8; 4] = *b"abcd";
    const PORT: u16 = 23_000;

    fn reply(list: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x00abcdhostname\0A host\0gamename\0bfvietnam\0mapname\0hue\0maxplayers\x0064\0\
            numplayers\x002\0\0\0"
            .to_vec();
        bytes.extend_from_slice(list);
        bytes
    }

    #[test]
    fn rows_are_read_with_and_without_their_number() {
        let rows = b"player_\0score_\0ping_\0team_\0\0One\x007\x0040\x001\0Two\0-2\x0080\x002\0";
        for head in [&b"\x00\x02"[..], b"\x00"] {
            let bytes = reply(&[head, rows, b"\x00\x02team_t\0score_t\0\0Red\x001\0Blue\x002\0"].concat());
            let snapshot = decode(5, &bytes, NONCE, PORT).unwrap();
            assert_eq!((snapshot.game.as_str(), snapshot.map.as_str()), ("bfvietnam", "hue"));
            assert_eq!((snapshot.hostname.as_str(), snapshot.slots), ("A host", 64));
            assert_eq!(snapshot.completeness, Completeness::Full, "{head:?}");
            let players: Vec<_> = snapshot.players.iter().map(|p| (p.name.as_str(), p.points, p.ping)).collect();
            assert_eq!(players, [("One", Some(7), Some(40)), ("Two", Some(-2), Some(80))]);
            let query = StatusQuery::new(Nonce(0x6162_6364), PORT);
            assert_eq!(query.details(&bytes, DetailLevel::Summary).player_teams, ["1", "2"]);
        }
    }

    #[test]
    fn variant_is_not_the_game() {
        let halo = b"\x00abcdhostname\0h\0game_classic\x000\0gametype\0CTF\0gamevariant\0My CTF\0numplayers\x000\0\0\0";
        assert_eq!(decode(0, halo, NONCE, 2_305).unwrap().game, "halo");
        let unnamed = b"\x00abcdhostname\0h\0gamevariant\0Hardcore\0numplayers\x000\0\0\0";
        for (port, game) in [(23_000, "bfvietnam"), (10_482, "swat4"), (9, "gamespy2")] {
            assert_eq!(decode(0, unnamed, NONCE, port).unwrap().game, game);
        }
    }

    #[test]
    fn number_of_rows_may_be_a_printable_byte() {
        for rows in [1_u8, 31, 32, 48, 64] {
            let list: Vec<u8> = (0..rows).flat_map(|row| format!("p{row}\0{row}\0").into_bytes()).collect();
            let bytes = reply(&[&[0, rows][..], b"player_\0score_\0\0", &list].concat());
            assert_eq!(decode(5, &bytes, NONCE, PORT).unwrap().players.len(), usize::from(rows));
        }
    }

    #[test]
    fn cut_reply_is_partial_or_malformed() {
        let whole = reply(b"\x00\x02player_\0score_\0\0One\x007\0Two\0-2\0");
        let settings_end = reply(b"").len();
        for cut in 0..whole.len() {
            match decode(0, &whole[..cut], NONCE, PORT) {
                Ok(snapshot) => assert_eq!(snapshot.completeness, Completeness::Partial, "{cut}"),
                Err(reason) => assert!(cut < settings_end, "{cut}: {reason:?}"),
            }
        }
        assert_eq!(decode(0, &whole, NONCE, PORT).unwrap().completeness, Completeness::Full);
    }

    #[test]
    fn wrong_nonce_and_other_messages_are_ignored() {
        assert_eq!(decode(0, &reply(b""), *b"abce", PORT), Err(IgnoreReason::WrongNonce));
        assert_eq!(decode(0, b"\x09abcd12345\0", NONCE, PORT), Err(IgnoreReason::NotAReply));
        assert_eq!(decode(0, b"", NONCE, PORT), Err(IgnoreReason::NotAReply));
    }
}
