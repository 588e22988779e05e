//! Unreal 2: UT2003, UT2004, Killing Floor, Red Orchestra. The query port is the game port plus
//! one. Two requests: details, then players. The player list takes several datagrams without
//! number or end mark. There is no nonce.
//!
//! The list is complete when it has as many entries, without those with a ping of 0, as the details announce. But UT2004 announces
//! also bots as soon as somebody plays, and lists none: so at the end of a scan a list is complete, too, when replies to repeated requests have
//! brought all of its entries again, and no other. One repetition alone may have lost the same datagram.

use std::collections::BTreeSet;

use bytes::Buf;

use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step, has_enough_entries};
use super::fields::take;
use super::text::{player_name, points, short_text};
use crate::games;
use crate::limits::PLAYERS_MAX;
use crate::model::{Completeness, Player, Snapshot};

const DETAILS: u8 = 0;
const PLAYERS: u8 = 2;
const REQUEST_HEADER: [u8; 4] = [0x79, 0, 0, 0];
const REPLY_HEADER: [u8; 4] = [0x80, 0, 0, 0];

/// Id of entries that are no players: scores of teams.
const TEAM_ID: i32 = 0;

/// A datagram of a list that is shorter had space for another entry, so it is the last. UT2004 sends 450 bytes at most.
const FULL_DATAGRAM_BYTES_MIN: usize = 400;

/// The most that is read of a list, bytes, with all its repetitions. 128 players with long names take 8 KB.
const LIST_BYTES_MAX: usize = 64 << 10;

/// Teams in UT2004: bits of the last number of an entry (qstat, `ut2003_player_packet`). Other
/// games set neither.
const RED_TEAM: i32 = 1 << 29;
const BLUE_TEAM: i32 = 1 << 30;

/// A details and a players request.
#[derive(Clone, Debug, Default)]
pub struct Unreal2Query {
    /// That is queried.
    port: u16,
    details: Option<ServerInfo>,
    entries: Vec<Entry>,
    /// The ids of the entries.
    ids: BTreeSet<i32>,
    /// Those of them that have come again since the last new one.
    repeated: BTreeSet<i32>,
    /// A datagram of the list was short.
    has_end: bool,
    /// Bytes of the list, repeated ones included.
    list_bytes: usize,
    /// The list has an entry that could not be decoded.
    is_cut: bool,
    last_received_ms: i64,
}

/// An entry of the player list.
#[derive(Clone, Debug)]
struct Entry {
    id: i32,
    player: Player,
    stats_id: i32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ServerInfo {
    hostname: String,
    map: String,
    game_type: String,
    players: u32,
    slots: u32,
}

impl Unreal2Query {
    pub fn new(port: u16) -> Self {
        Unreal2Query { port, ..Unreal2Query::default() }
    }

    fn snapshot(&self, details: &ServerInfo) -> Snapshot {
        // All entries count here, because a player with a ping of 0 need not be a bot.
        // Without any part of the list, nothing shows that few are missing.
        let has_list = self.list_bytes > 0 || details.players == 0;
        let has_enough = has_list && has_enough_entries(self.entries.len(), details.players);
        let is_full = !self.is_cut && (has_enough || self.is_repeated());
        let unlisted = details.players.saturating_sub(u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
        let by_type = games::by_type("unreal2", &details.game_type).map(|game| &game.id[..]);
        Snapshot {
            t_ms: self.last_received_ms,
            game: by_type.unwrap_or_else(|| games::id_by_port("unreal2", self.port)).to_owned(),
            map: details.map.clone(),
            hostname: details.hostname.clone(),
            slots: details.slots,
            players: self.entries.iter().map(|entry| entry.player.clone()).collect(),
            completeness: Completeness::full_if(is_full),
            count: Some(details.players).filter(|_| !is_full),
            bots: (!has_enough && is_full).then_some(unlisted),
        }
    }

    /// Whether replies to repeated requests have shown that nothing is missing: all entries have come again, and the end of
    /// the list. A repetition of its beginning shows nothing.
    fn is_repeated(&self) -> bool {
        !self.ids.is_empty() && self.repeated.len() == self.ids.len() && self.has_end
    }

    fn done_if_complete(&self) -> Step {
        let humans = self.entries.iter().filter(|entry| !entry.player.bot).count();
        match &self.details {
            Some(details) if !self.is_cut => {
                // Spectators are listed and not announced: there may be enough before the end.
                let has_all = humans >= details.players as usize && (self.has_end || details.players == 0);
                if has_all { Step::Done(Box::new(self.snapshot(details))) } else { Step::Wait }
            }
            _ => Step::Wait,
        }
    }
}

impl Exchange for Unreal2Query {
    fn request(&self) -> Vec<u8> {
        let kind = if self.details.is_none() { DETAILS } else { PLAYERS };
        [&REQUEST_HEADER[..], &[kind]].concat()
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        let Some((kind, body)) = bytes.strip_prefix(&REPLY_HEADER).and_then(|rest| rest.split_first()) else {
            return Step::Ignore(IgnoreReason::NotAReply);
        };
        match (*kind, &self.details) {
            (DETAILS, None) => match details(body) {
                Ok(details) => {
                    let is_empty = details.players == 0;
                    self.details = Some(details);
                    self.last_received_ms = t_ms;
                    if is_empty { self.done_if_complete() } else { Step::Send }
                }
                Err(reason) => Step::Ignore(reason),
            },
            (PLAYERS, Some(_)) if self.list_bytes + body.len() > LIST_BYTES_MAX => Step::Ignore(IgnoreReason::TooLarge),
            (PLAYERS, Some(_)) => {
                self.list_bytes += body.len();
                self.has_end |= bytes.len() < FULL_DATAGRAM_BYTES_MIN;
                self.last_received_ms = t_ms;
                self.add_players(body);
                self.done_if_complete()
            }
            (DETAILS | PLAYERS | 1, _) => Step::Ignore(IgnoreReason::UnexpectedMessage),
            _ => Step::Ignore(IgnoreReason::NotAReply),
        }
    }

    fn authentication(&self) -> Authentication {
        Authentication::Address
    }

    fn details(&self, _last_datagram: &[u8], _level: DetailLevel) -> Details {
        let game_type = self.details.as_ref().map(|details| details.game_type.clone());
        let teams = self.entries.iter().map(|entry| team(entry.stats_id).to_owned()).collect();
        Details { game_type, ..Details::default() }.with_player_teams(teams)
    }

    fn partial_snapshot(&mut self) -> Option<Snapshot> {
        self.details.as_ref().map(|details| self.snapshot(details))
    }
}

impl Unreal2Query {
    /// Adds the entries of a datagram. Entries of a repeated request are known by their ids.
    fn add_players(&mut self, mut rest: &[u8]) {
        while !rest.is_empty() {
            match entry(&mut rest) {
                Ok(Entry { id: TEAM_ID, .. }) => {}
                Ok(entry) if self.ids.contains(&entry.id) => _ = self.repeated.insert(entry.id),
                Ok(entry) if self.entries.len() < PLAYERS_MAX => {
                    self.repeated.clear();
                    self.ids.insert(entry.id);
                    self.entries.push(entry);
                }
                _ => {
                    self.is_cut = true;
                    return;
                }
            }
        }
    }
}

fn details(mut rest: &[u8]) -> Result<ServerInfo, IgnoreReason> {
    let _id = rest.try_get_i32_le()?;
    let _address = text(&mut rest)?;
    let _port = rest.try_get_i32_le()?;
    let _query_port = rest.try_get_i32_le()?;
    let hostname = short_text(text(&mut rest)?.as_bytes());
    let map = short_text(text(&mut rest)?.as_bytes());
    let game_type = short_text(text(&mut rest)?.as_bytes());
    let players = count(rest.try_get_i32_le()?)?;
    let slots = count(rest.try_get_i32_le()?)?;
    Ok(ServerInfo { hostname, map, game_type, players, slots })
}

/// A number of players. Larger values than a server can have are invalid.
fn count(value: i32) -> Result<u32, IgnoreReason> {
    match u32::try_from(value) {
        Ok(count) if count as usize <= PLAYERS_MAX => Ok(count),
        _ => Err(IgnoreReason::Malformed),
    }
}

/// The team of a player; empty for none.
fn team(stats_id: i32) -> &'static str {
    match stats_id {
        red if red & RED_TEAM != 0 => "red",
        blue if blue & BLUE_TEAM != 0 => "blue",
        _ => "",
    }
}

fn entry(rest: &mut &[u8]) -> Result<Entry, IgnoreReason> {
    let id = rest.try_get_i32_le()?;
    let name = player_name(text(rest)?.as_bytes());
    let ping = rest.try_get_i32_le()?;
    let score = rest.try_get_i32_le()?;
    let stats_id = rest.try_get_i32_le()?;
    let player = Player {
        name,
        points: Some(points(score.into())),
        ping: (ping >= 0).then_some(ping),
        connected_ms: None,
        bot: ping == 0,
        spectator: false,
    };
    Ok(Entry { id, player, stats_id })
}

/// A string: its length in characters, the text with its terminating zero, and colours as 1B and three
/// bytes.
///
/// The length is a compact index of the Unreal engine. The first byte has bit 7 for UTF-16 (the sign of the
/// index), bit 6 if another byte follows, and six bits. The next bytes have bit 7 if another byte follows,
/// and seven bits each, the lowest first.
fn text(rest: &mut &[u8]) -> Result<String, IgnoreReason> {
    let first = rest.try_get_u8()?;
    let is_utf16 = first & 0x80 != 0;
    let mut characters = usize::from(first & 0x3f);
    let mut has_next = first & 0x40 != 0;
    let mut shift = 6;
    while has_next {
        let byte = rest.try_get_u8()?;
        characters |= usize::from(byte & 0x7f) << shift;
        shift += 7;
        has_next = byte & 0x80 != 0 && shift < 27;
    }
    let content = take(rest, if is_utf16 { characters * 2 } else { characters })?;
    let decoded = if !is_utf16 {
        crate::model::name::decode_text(&without_colours(content.iter().copied()))
    } else {
        let units = content.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        String::from_utf16_lossy(&without_colours(units))
    };
    Ok(decoded)
}

/// Without zeros at the end, too.
fn without_colours<U: Copy + PartialEq + From<u8>>(mut units: impl ExactSizeIterator<Item = U>) -> Vec<U> {
    let mut out = Vec::with_capacity(units.len());
    while let Some(unit) = units.next() {
        match unit == U::from(0x1b) {
            true => _ = units.nth(2),
            false => out.push(unit),
        }
    }
    out.truncate(out.iter().rposition(|unit| *unit != U::from(0)).map_or(0, |last| last + 1));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &[u8]) -> Vec<u8> {
        [&[text.len() as u8 + 1], text, b"\0"].concat()
    }

    fn details_reply(players: i32) -> Vec<u8> {
        let mut bytes = [&REPLY_HEADER[..], &[DETAILS]].concat();
        bytes.extend_from_slice(&0_i32.to_le_bytes());
        bytes.extend_from_slice(&string(b""));
        bytes.extend_from_slice(&7_777_i32.to_le_bytes());
        bytes.extend_from_slice(&7_778_i32.to_le_bytes());
        bytes.extend_from_slice(&string(b"A \x1b\xff\x01\x01red host"));
        bytes.extend_from_slice(&string(b"DM-Rankin"));
        bytes.extend_from_slice(&string(b"xDeathMatch"));
        bytes.extend_from_slice(&players.to_le_bytes());
        bytes.extend_from_slice(&16_i32.to_le_bytes());
        bytes.extend_from_slice(&50_i32.to_le_bytes());
        bytes
    }

    fn entry(id: i32, name: &[u8], score: i32) -> Vec<u8> {
        let numbers = [40, score, 0].map(i32::to_le_bytes).concat();
        [&id.to_le_bytes()[..], &string(name), &numbers].concat()
    }

    fn list(entries: &[Vec<u8>]) -> Vec<u8> {
        [&REPLY_HEADER[..], &[PLAYERS], &entries.concat()].concat()
    }

    #[test]
    fn list_is_complete_with_the_announced_number_of_players() {
        let mut query = Unreal2Query::new(7_778);
        assert_eq!(query.request(), [0x79, 0, 0, 0, 0]);
        assert_eq!(query.handle_datagram(1, &details_reply(2)), Step::Send);
        assert_eq!(query.request(), [0x79, 0, 0, 0, 2]);
        let first = list(&[entry(TEAM_ID, b"Red Team", 9), entry(4, b"One", 7)]);
        assert_eq!(query.handle_datagram(2, &first), Step::Wait);
        let Step::Done(snapshot) = query.handle_datagram(3, &list(&[entry(5, b"Two", -1)])) else { panic!() };
        assert_eq!((snapshot.game.as_str(), snapshot.map.as_str()), ("ut2004", "DM-Rankin"));
        assert_eq!((snapshot.hostname.as_str(), snapshot.slots), ("A red host", 16));
        let players: Vec<_> = snapshot.players.iter().map(|p| (p.name.as_str(), p.points, p.ping)).collect();
        assert_eq!(players, [("One", Some(7), Some(40)), ("Two", Some(-1), Some(40))]);
        assert_eq!((snapshot.completeness, snapshot.t_ms), (Completeness::Full, 3));
    }

    #[test]
    fn repeated_list_is_complete_though_bots_are_announced() {
        let mut query = Unreal2Query::new(7_778);
        assert_eq!(query.handle_datagram(1, &details_reply(8)), Step::Send);
        let [first, second] = [list(&[entry(4, b"One", 7), entry(5, b"Two", 9)]), list(&[entry(6, b"Three", 0)])];
        assert_eq!(query.handle_datagram(2, &first), Step::Wait);
        // Of the repeated list, the part that was lost comes first.
        assert_eq!(query.handle_datagram(3, &second), Step::Wait);
        assert_eq!(query.partial_snapshot().unwrap().completeness, Completeness::Partial);
        assert_eq!(query.handle_datagram(3, &first), Step::Wait);
        assert_eq!(query.handle_datagram(4, &second), Step::Wait);
        let snapshot = query.partial_snapshot().unwrap();
        assert_eq!((snapshot.players.len(), snapshot.completeness), (3, Completeness::Full));
        assert_eq!((snapshot.bots, snapshot.count), (Some(5), None));
    }

    #[test]
    fn repeated_beginning_of_a_list_is_not_the_whole() {
        let mut query = Unreal2Query::new(7_778);
        assert_eq!(query.handle_datagram(1, &details_reply(25)), Step::Send);
        let entries = |ids: std::ops::Range<i32>| ids.map(|id| entry(id, b"a name", 1)).collect::<Vec<_>>();
        let [first, second] = [list(&entries(1..18)), list(&entries(18..20))];
        // The second datagram was lost.
        assert_eq!(query.handle_datagram(2, &first), Step::Wait);
        assert_eq!(query.handle_datagram(3, &first), Step::Wait);
        assert_eq!(query.partial_snapshot().unwrap().completeness, Completeness::Partial);
        assert_eq!(query.handle_datagram(3, &second), Step::Wait);
        // And a third time.
        assert_eq!(query.handle_datagram(4, &first), Step::Wait);
        assert_eq!(query.handle_datagram(4, &second), Step::Wait);
        let snapshot = query.partial_snapshot().unwrap();
        assert_eq!((snapshot.players.len(), snapshot.bots), (19, Some(6)));
    }

    #[test]
    fn list_with_spectators_is_not_complete_before_its_end() {
        let mut query = Unreal2Query::new(7_778);
        assert_eq!(query.handle_datagram(1, &details_reply(16)), Step::Send);
        let entries = |ids: std::ops::Range<i32>| ids.map(|id| entry(id, b"a name", 1)).collect::<Vec<_>>();
        let full = list(&entries(1..18));
        assert!(full.len() >= FULL_DATAGRAM_BYTES_MIN);
        assert_eq!(query.handle_datagram(2, &full), Step::Wait);
        let Step::Done(snapshot) = query.handle_datagram(3, &list(&entries(18..20))) else { panic!() };
        assert_eq!((snapshot.players.len(), snapshot.completeness), (19, Completeness::Full));
    }

    #[test]
    fn few_missing_players_are_tolerated() {
        for (announced, want) in [(3, Completeness::Full), (4, Completeness::Partial)] {
            let mut query = Unreal2Query::new(7_778);
            assert_eq!(query.handle_datagram(1, &details_reply(announced)), Step::Send);
            assert_eq!(query.handle_datagram(2, &list(&[entry(4, b"One", 7)])), Step::Wait);
            let snapshot = query.partial_snapshot().unwrap();
            assert_eq!(snapshot.completeness, want, "1 of {announced}");
        }
        for announced in [0, 1] {
            let mut query = Unreal2Query::new(7_778);
            query.handle_datagram(1, &details_reply(announced));
            let is_full = query.partial_snapshot().unwrap().completeness == Completeness::Full;
            assert_eq!(is_full, announced == 0, "no list of {announced}");
        }
    }

    #[test]
    fn teams_of_ut2004_are_shown_in_details() {
        let in_team = |id, stats_id: i32| {
            let mut bytes = entry(id, b"n", 0);
            bytes.truncate(bytes.len() - 4);
            [bytes, stats_id.to_le_bytes().to_vec()].concat()
        };
        let teams_of = |entries: &[Vec<u8>]| {
            let mut query = Unreal2Query::new(7_778);
            assert_eq!(query.handle_datagram(1, &details_reply(entries.len() as i32)), Step::Send);
            assert!(matches!(query.handle_datagram(2, &list(entries)), Step::Done(_)));
            query.details(b"", DetailLevel::Summary).player_teams
        };
        let entries = [in_team(1, RED_TEAM | 77), in_team(2, 77), in_team(3, BLUE_TEAM)];
        assert_eq!(teams_of(&entries), ["red", "", "blue"]);
        assert!(teams_of(&[in_team(1, 77)]).is_empty());
    }

    #[test]
    fn empty_server_needs_no_second_request() {
        let mut query = Unreal2Query::new(7_778);
        let Step::Done(snapshot) = query.handle_datagram(1, &details_reply(0)) else { panic!() };
        assert_eq!((snapshot.players.len(), snapshot.completeness), (0, Completeness::Full));
    }

    #[test]
    fn utf16_text_is_decoded() {
        let name: Vec<u8> = "Zoë\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let bytes = [&[0x80 | 4], &name[..]].concat();
        assert_eq!(text(&mut &bytes[..]), Ok("Zoë".to_owned()));
        assert_eq!(text(&mut &b"\x05abc"[..]), Err(IgnoreReason::Malformed));
    }

    #[test]
    fn strings_of_64_and_more_characters_have_longer_lengths() {
        for (length, characters) in
            [(&b"\x3f"[..], 63), (b"\x40\x01", 64), (b"\x41\x03", 193), (b"\x40\x80\x01", 8_192)]
        {
            let bytes = [length, &vec![b'a'; characters], b"rest"].concat();
            let mut rest = &bytes[..];
            assert_eq!(text(&mut rest).unwrap().len(), characters);
            assert_eq!(rest, b"rest");
        }
        let wide: Vec<u8> = "é".repeat(70).encode_utf16().flat_map(u16::to_le_bytes).collect();
        let bytes = [&b"\xc6\x01"[..], &wide].concat();
        assert_eq!(text(&mut &bytes[..]), Ok("é".repeat(70)));
        assert_eq!(text(&mut &b"\x7f\xff\xff\xff\xff\xff"[..]), Err(IgnoreReason::Malformed));
    }

    #[test]
    fn impossible_numbers_and_cut_messages_are_ignored() {
        for players in [-1, 1 << 20] {
            let step = Unreal2Query::new(7_778).handle_datagram(0, &details_reply(players));
            assert_eq!(step, Step::Ignore(IgnoreReason::Malformed));
        }
        let whole = details_reply(1);
        for cut in 0..whole.len() - 4 {
            assert!(matches!(Unreal2Query::new(7_778).handle_datagram(0, &whole[..cut]), Step::Ignore(_)), "{cut}");
        }
        let mut query = Unreal2Query::new(7_778);
        assert_eq!(query.handle_datagram(0, &list(&[])), Step::Ignore(IgnoreReason::UnexpectedMessage));
        assert_eq!(query.handle_datagram(0, &whole), Step::Send);
        let cut = list(&[entry(4, b"One", 7)[..9].to_vec()]);
        assert_eq!(query.handle_datagram(0, &cut), Step::Wait);
        assert_eq!(query.partial_snapshot().unwrap().completeness, Completeness::Partial);
    }
}
