//! All-Seeing Eye: Multi Theft Auto (query port: game port plus 123), Soldat, Far Cry. One
//! request of one byte, one reply of strings whose length byte counts itself. No nonce.

use bytes::Buf;

use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step, has_enough_entries};
use super::fields;
use super::text::{player_name, points, short_text};
use crate::limits::{PLAYERS_MAX, SLOTS_MAX};
use crate::model::{Completeness, Player, Snapshot};

const HEADER: &[u8] = b"EYE1";

/// The values of a player that a flag byte announces, in the order in which they follow.
const NAME: u8 = 1;
const TEAM: u8 = 2;
const SKIN: u8 = 4;
const SCORE: u8 = 8;
const PING: u8 = 16;
const SECONDS: u8 = 32;

/// One request, one reply.
#[derive(Clone, Debug)]
pub struct AllSeeingEyeQuery;

impl Exchange for AllSeeingEyeQuery {
    fn request(&self) -> Vec<u8> {
        b"s".to_vec()
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        decode(t_ms, bytes).into()
    }

    fn authentication(&self) -> Authentication {
        Authentication::Address
    }

    fn details(&self, last_datagram: &[u8], level: DetailLevel) -> Details {
        details(last_datagram, level).unwrap_or_default()
    }
}

/// Decodes a reply. One that ends inside the player list gives a partial snapshot.
///
/// Errors: another kind of datagram; it ends before the player list.
pub fn decode(t_ms: i64, datagram: &[u8]) -> Result<Snapshot, IgnoreReason> {
    let mut rest = datagram;
    let rest = &mut rest;
    let header = Header::read(rest)?;
    while pair(rest)?.is_some() {}
    let mut players = Vec::new();
    let mut is_cut = false;
    while !rest.is_empty() {
        match player(rest) {
            Ok((player, _)) if players.len() < PLAYERS_MAX => players.push(player),
            _ => {
                is_cut = true;
                break;
            }
        }
    }
    let announced = number(header.players, SLOTS_MAX);
    let game = short_text(header.game);
    let is_full = !is_cut && announced.is_none_or(|announced| has_enough_entries(players.len(), announced));
    Ok(Snapshot {
        t_ms,
        game: if game.trim().is_empty() { "ase".to_owned() } else { game },
        map: short_text(header.map),
        hostname: short_text(header.hostname),
        slots: number(header.slots, SLOTS_MAX).unwrap_or(0),
        players,
        completeness: Completeness::full_if(is_full),
        count: announced.filter(|_| !is_full),
        bots: None,
    })
}

fn details(datagram: &[u8], level: DetailLevel) -> Result<Details, IgnoreReason> {
    let mut rest = datagram;
    let rest = &mut rest;
    let header = Header::read(rest)?;
    let mut pairs =
        vec![(&b"gametype"[..], header.game_type), (b"version", header.version), (b"password", header.password)];
    while let Some(pair) = pair(rest)? {
        pairs.push(pair);
    }
    let teams = std::iter::from_fn(|| player(rest).ok()).take(PLAYERS_MAX).map(|(_, team)| short_text(team)).collect();
    Ok(Details::from_pairs(pairs.into_iter(), level).with_player_teams(teams))
}

/// The values at fixed positions, undecoded.
struct Header<'a> {
    game: &'a [u8],
    hostname: &'a [u8],
    game_type: &'a [u8],
    map: &'a [u8],
    version: &'a [u8],
    password: &'a [u8],
    players: &'a [u8],
    slots: &'a [u8],
}

impl<'a> Header<'a> {
    fn read(rest: &mut &'a [u8]) -> Result<Header<'a>, IgnoreReason> {
        *rest = rest.strip_prefix(HEADER).ok_or(IgnoreReason::NotAReply)?;
        let (game, _port) = (string(rest)?, string(rest)?);
        Ok(Header {
            game,
            hostname: string(rest)?,
            game_type: string(rest)?,
            map: string(rest)?,
            version: string(rest)?,
            password: string(rest)?,
            players: string(rest)?,
            slots: string(rest)?,
        })
    }
}

type Pair<'a> = (&'a [u8], &'a [u8]);

/// The next key and value; `None`: the empty key after the last pair.
fn pair<'a>(rest: &mut &'a [u8]) -> Result<Option<Pair<'a>>, IgnoreReason> {
    let key = string(rest)?;
    if key.is_empty() { Ok(None) } else { Ok(Some((key, string(rest)?))) }
}

/// A player and their team, which is empty for none.
fn player<'a>(rest: &mut &'a [u8]) -> Result<(Player, &'a [u8]), IgnoreReason> {
    let flags = rest.try_get_u8()?;
    let mut value = |flag: u8| if flags & flag != 0 { string(rest).map(Some) } else { Ok(None) };
    let name = value(NAME)?.ok_or(IgnoreReason::Malformed)?;
    let team = value(TEAM)?.unwrap_or_default();
    value(SKIN)?;
    let score = value(SCORE)?;
    let ping = value(PING)?;
    let seconds = value(SECONDS)?;
    let integer = fields::number::<i64>;
    let player = Player {
        name: player_name(name),
        // Some games send blank scores: they have no points.
        points: score.and_then(integer).map(points),
        ping: ping.and_then(integer).and_then(|ping| i32::try_from(ping).ok()).filter(|ping| *ping >= 0),
        connected_ms: seconds.and_then(integer).and_then(|s| u64::try_from(s).ok()?.checked_mul(1_000)),
        bot: false,
        spectator: false,
    };
    Ok((player, team))
}

/// The next string; its length byte counts itself.
fn string<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], IgnoreReason> {
    let length = rest.try_get_u8()?.checked_sub(1).ok_or(IgnoreReason::Malformed)?;
    fields::take(rest, length.into())
}

fn number(text: &[u8], max: u32) -> Option<u32> {
    fields::number(text).filter(|&number: &u32| number <= max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(texts: &[&str]) -> Vec<u8> {
        texts.iter().flat_map(|text| [&[text.len() as u8 + 1], text.as_bytes()].concat()).collect()
    }

    fn reply(players: &[u8]) -> Vec<u8> {
        let head = strings(&["mta", "22003", "A host", "race", "San Andreas", "1.5", "0", "2", "32", "key", "v", ""]);
        [HEADER, &head, players].concat()
    }

    #[test]
    fn players_have_the_values_that_their_flags_announce() {
        let players = [
            &[NAME | TEAM | SKIN | SCORE | PING | SECONDS][..],
            &strings(&["One", "red", "", "7", "40", "61"]),
            &[NAME | SCORE],
            &strings(&["Two", ""]),
        ]
        .concat();
        let snapshot = decode(5, &reply(&players)).unwrap();
        let details = details(&reply(&players), DetailLevel::Rules).unwrap();
        assert_eq!(details.rules.len(), 4);
        assert_eq!((details.game_type.as_deref(), details.password), (Some("race"), Some(false)));
        assert_eq!((snapshot.game.as_str(), snapshot.map.as_str()), ("mta", "San Andreas"));
        assert_eq!((snapshot.hostname.as_str(), snapshot.slots), ("A host", 32));
        let rows: Vec<_> =
            snapshot.players.iter().map(|p| (p.name.as_str(), p.points, p.ping, p.connected_ms)).collect();
        assert_eq!(rows, [("One", Some(7), Some(40), Some(61_000)), ("Two", None, None, None)]);
        assert_eq!(details.player_teams, ["red", ""]);
        assert_eq!(snapshot.completeness, Completeness::Full);
    }

    #[test]
    fn cut_reply_is_partial_or_ignored() {
        let players = [&[NAME | SCORE][..], &strings(&["One", "1"]), &[NAME | SCORE], &strings(&["Two", "2"])].concat();
        let whole = reply(&players);
        let list_start = reply(&[]).len();
        // One player may be missing; an empty list is hidden.
        let is_between = |cut: usize| cut == list_start + players.len() / 2;
        for cut in 0..whole.len() {
            match decode(0, &whole[..cut]) {
                Ok(snapshot) => assert_eq!(snapshot.completeness, Completeness::full_if(is_between(cut)), "{cut}"),
                Err(_) => assert!(cut < list_start, "{cut}"),
            }
        }
        assert_eq!(decode(0, b"EYE2"), Err(IgnoreReason::NotAReply));
        assert_eq!(decode(0, b"EYE1\0"), Err(IgnoreReason::Malformed));
    }
}
