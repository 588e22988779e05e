//! Doom 3, Quake 4, Prey: `getInfo` with a challenge of four bytes that the server repeats. The
//! reply has no points. Enemy Territory: Quake Wars answers `getInfoEx`, with kills.
//!
//! The games differ in the entries of the player list, and a reply does not show which form it
//! uses. So the forms are tried in turn: only the right one ends with the id that ends a list.

use bytes::Buf;

use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step};
use super::fields::{self, Pairs, c_str, take};
use super::nonce::Nonce;
use super::text::{player_name, points, short_text, without_caret_colours};
use crate::model::{Completeness, Player, Snapshot};

/// The id that ends the player list: the number of clients that the engine has. Ids ascend.
const END_ID: u8 = 32;

/// Most words between the challenge and the settings: protocol version, and in some games a task
/// and a size.
const HEADER_WORDS_MAX: usize = 3;

/// Which of the two queries a game answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Doom3,
    QuakeWars,
}

impl Form {
    fn request(self) -> &'static [u8] {
        match self {
            Form::Doom3 => b"\xff\xffgetInfo\0",
            Form::QuakeWars => b"\xff\xffgetInfoEx\0",
        }
    }

    fn reply(self) -> &'static [u8] {
        match self {
            Form::Doom3 => b"\xff\xffinfoResponse\0",
            Form::QuakeWars => b"\xff\xffinfoExResponse\0",
        }
    }

    fn layouts(self) -> &'static [Layout] {
        match self {
            Form::Doom3 => &[
                Layout { rate: true, clan: false, clan_position: false, bot: false },
                Layout { rate: true, clan: true, clan_position: false, bot: false },
            ],
            Form::QuakeWars => &[
                Layout { rate: false, clan: true, clan_position: true, bot: true },
                Layout { rate: false, clan: true, clan_position: false, bot: false },
                Layout { rate: false, clan: false, clan_position: false, bot: false },
            ],
        }
    }

    fn default_game(self) -> &'static str {
        match self {
            Form::Doom3 => "doom3",
            Form::QuakeWars => "etqw",
        }
    }
}

/// Which fields an entry of the player list has.
#[derive(Clone, Copy, Debug)]
struct Layout {
    rate: bool,
    clan: bool,
    clan_position: bool,
    bot: bool,
}

/// One request, one reply.
#[derive(Clone, Debug)]
pub struct InfoQuery {
    challenge: [u8; 4],
    form: Form,
}

impl InfoQuery {
    pub fn new(nonce: Nonce, form: Form) -> Self {
        InfoQuery { challenge: nonce.bytes4(), form }
    }
}

impl Exchange for InfoQuery {
    fn request(&self) -> Vec<u8> {
        [self.form.request(), &self.challenge].concat()
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        decode(t_ms, bytes, self.challenge, self.form).into()
    }

    fn authentication(&self) -> Authentication {
        Authentication::Nonce
    }

    fn details(&self, last_datagram: &[u8], level: DetailLevel) -> Details {
        let mut rest = last_datagram.get(self.form.reply().len() + 4..).unwrap_or_default();
        let pairs = settings(&mut rest).unwrap_or_default();
        let details = Details::from_pairs(pairs.iter().map(|(key, value)| (&key[..], *value)), level);
        let list = self.form.layouts().iter().find_map(|&layout| read_players(rest, layout));
        match list.filter(|_| self.form == Form::QuakeWars) {
            Some((players, after)) => details.with_player_teams(teams(&players, after)),
            None => details,
        }
    }
}

/// Decodes a reply. One that ends inside the player list gives a partial snapshot.
///
/// Errors: another kind of datagram; another challenge; it ends before the player list.
pub fn decode(t_ms: i64, datagram: &[u8], challenge: [u8; 4], form: Form) -> Result<Snapshot, IgnoreReason> {
    let Some(mut rest) = datagram.strip_prefix(form.reply()) else {
        return Err(match datagram.starts_with(b"\xff\xff") && datagram.len() > 2 {
            true => IgnoreReason::UnexpectedMessage,
            false => IgnoreReason::NotAReply,
        });
    };
    let rest = &mut rest;
    if take(rest, 4)? != challenge {
        return Err(IgnoreReason::WrongNonce);
    }
    let pairs = settings(rest)?;
    let value = |name: &str| pairs.iter().find(|(key, _)| key == name.as_bytes()).map(|(_, value)| *value);
    let game = value("fs_game").into_iter().chain(value("gamename")).map(short_text).find(|g| !g.trim().is_empty());
    let list = form.layouts().iter().find_map(|&layout| read_players(rest, layout));
    let (is_full, players) = match list {
        Some((mut players, after)) => {
            if form == Form::QuakeWars {
                // A server without this part shows no points.
                let results = read_results(after).unwrap_or_default();
                for (id, player) in &mut players {
                    player.points = results.iter().find(|result| result.id == *id).map(|result| result.points);
                }
            }
            (true, players.into_iter().map(|(_, player)| player).collect())
        }
        None => (false, Vec::new()),
    };
    Ok(Snapshot {
        t_ms,
        game: game.unwrap_or_else(|| form.default_game().to_owned()),
        map: map_name(value("si_map").unwrap_or_default()),
        hostname: short_text(&without_caret_colours(value("si_name").unwrap_or_default())),
        slots: value("si_maxplayers").and_then(fields::number).unwrap_or(0),
        players,
        completeness: Completeness::full_if(is_full),
        count: None,
        bots: None,
    })
}

/// Keys in lower case, and values, up to an empty pair.
fn settings<'a>(rest: &mut &'a [u8]) -> Result<Pairs<'a>, IgnoreReason> {
    skip_header_words(rest)?;
    let mut pairs = Vec::new();
    loop {
        let (key, value) = (c_str(rest)?, c_str(rest)?);
        if key.is_empty() && value.is_empty() {
            return Ok(pairs);
        }
        pairs.push((key.to_ascii_lowercase(), value));
    }
}

/// Removes the words before the settings. Their number differs. The first setting has a key of at
/// least three printable characters, and no such word has this form.
fn skip_header_words(rest: &mut &[u8]) -> Result<(), IgnoreReason> {
    take(rest, 4)?;
    for _ in 1..HEADER_WORDS_MAX {
        if rest.iter().take(3).all(u8::is_ascii_graphic) {
            break;
        }
        take(rest, 4)?;
    }
    Ok(())
}

/// A map without its directory and ending: `maps/game/mp/d3dm1.entities`.
fn map_name(path: &[u8]) -> String {
    let path = path.strip_prefix(b"maps/").unwrap_or(path);
    short_text(path.strip_suffix(b".entities").unwrap_or(path))
}

type IdentifiedPlayer = (u8, Player);

/// Entries up to the id that ends the list, and the bytes after it. `None`: the list ends early
/// or has another layout.
fn read_players(mut rest: &[u8], layout: Layout) -> Option<(Vec<IdentifiedPlayer>, &[u8])> {
    let mut players: Vec<IdentifiedPlayer> = Vec::new();
    loop {
        let id = rest.try_get_u8().ok()?;
        if id == END_ID {
            return Some((players, rest));
        }
        if id > END_ID || players.last().is_some_and(|(last, _)| id <= *last) {
            return None;
        }
        let ping = rest.try_get_u16_le().ok()?;
        if layout.rate {
            rest.try_get_u32_le().ok()?;
        }
        let name = player_name(&without_caret_colours(c_str(&mut rest).ok()?));
        if layout.clan_position {
            rest.try_get_u8().ok()?;
        }
        if layout.clan {
            c_str(&mut rest).ok()?;
        }
        let bot = layout.bot && rest.try_get_u8().ok()? != 0;
        let player = Player { name, points: None, ping: Some(ping.into()), connected_ms: None, bot, spectator: false };
        players.push((id, player));
    }
}

/// An entry of the second player list of Quake Wars.
struct PlayerResult<'a> {
    id: u8,
    team: &'a [u8],
    points: i64,
}

/// The second player list of Quake Wars: id, experience, team, kills, deaths. Before it are the
/// operating systems, the state of the round and the kind of server.
fn read_results(mut rest: &[u8]) -> Result<Vec<PlayerResult<'_>>, IgnoreReason> {
    take(&mut rest, 10)?;
    let is_tv = rest.try_get_u8()? != 0;
    take(&mut rest, if is_tv { 8 } else { 1 })?;
    let mut found = Vec::new();
    loop {
        let id = rest.try_get_u8()?;
        if id == END_ID {
            break;
        }
        let _experience = rest.try_get_f32_le()?;
        let team = c_str(&mut rest)?;
        let kills = rest.try_get_i32_le()?;
        let _deaths = rest.try_get_i32_le()?;
        found.push(PlayerResult { id, team, points: points(kills.into()) });
    }
    Ok(found)
}

/// The teams of the players, in the order of the list. `after`: the bytes after the list.
fn teams(players: &[IdentifiedPlayer], after: &[u8]) -> Vec<String> {
    let results = read_results(after).unwrap_or_default();
    let team = |id: u8| results.iter().find(|result| result.id == id).map_or(&[][..], |result| result.team);
    players.iter().map(|(id, _)| short_text(team(*id))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHALLENGE: [u8; 4] = *b"wxyz";

    fn reply(game: &str, list: &[u8]) -> Vec<u8> {
        let settings = format!("si_name\0A host\0si_map\0game/mp/d3dm1\0si_maxPlayers\x008\0gamename\0{game}\0\0\0");
        [Form::Doom3.reply(), &CHALLENGE, &65_u32.to_le_bytes(), settings.as_bytes(), list].concat()
    }

    fn entry(id: u8, ping: u16, name: &[u8]) -> Vec<u8> {
        [&[id][..], &ping.to_le_bytes(), &25_000_u32.to_le_bytes(), name, b"\0"].concat()
    }

    #[test]
    fn players_have_no_points() {
        let list = [entry(0, 40, b"One"), entry(3, 80, b"Two"), vec![END_ID]].concat();
        let snapshot = decode(5, &reply("baseDOOM-1", &list), CHALLENGE, Form::Doom3).unwrap();
        assert_eq!((snapshot.game.as_str(), snapshot.map.as_str()), ("baseDOOM-1", "game/mp/d3dm1"));
        assert_eq!((snapshot.hostname.as_str(), snapshot.slots), ("A host", 8));
        let players: Vec<_> = snapshot.players.iter().map(|p| (p.name.as_str(), p.points, p.ping)).collect();
        assert_eq!(players, [("One", None, Some(40)), ("Two", None, Some(80))]);
        assert_eq!(snapshot.completeness, Completeness::Full);
    }

    #[test]
    fn quake4_entries_have_a_clan() {
        let list = [entry(0, 40, b"One\0clan"), entry(1, 50, b"Two\0"), vec![END_ID]].concat();
        let snapshot = decode(5, &reply("Quake4-1", &list), CHALLENGE, Form::Doom3).unwrap();
        assert_eq!((snapshot.players.len(), snapshot.completeness), (2, Completeness::Full));
        assert_eq!(snapshot.players[1].name, "Two");
    }

    #[test]
    fn cut_reply_is_partial_or_ignored() {
        let whole = reply("baseDOOM-1", &[entry(0, 40, b"One"), vec![END_ID]].concat());
        let list_start = reply("baseDOOM-1", b"").len();
        for cut in 0..whole.len() {
            match decode(0, &whole[..cut], CHALLENGE, Form::Doom3) {
                Ok(snapshot) => assert_eq!(snapshot.completeness, Completeness::Partial, "{cut}"),
                Err(_) => assert!(cut < list_start, "{cut}"),
            }
        }
        assert_eq!(decode(0, &whole, *b"wxyZ", Form::Doom3), Err(IgnoreReason::WrongNonce));
        assert_eq!(decode(0, b"\xff\xffprint\0", CHALLENGE, Form::Doom3), Err(IgnoreReason::UnexpectedMessage));
        assert_eq!(decode(0, b"infoResponse\0", CHALLENGE, Form::Doom3), Err(IgnoreReason::NotAReply));
    }

    #[test]
    fn quake_wars_lists_kills_after_the_players() {
        let player =
            |id: u8, name: &[u8], bot: u8| [&[id][..], &40_u16.to_le_bytes(), name, b"\0\x00clan\0", &[bot]].concat();
        let kills = |id: u8, kills: i32| {
            [&[id][..], &55.5_f32.to_le_bytes(), b"gdf\0", &kills.to_le_bytes(), &3_i32.to_le_bytes()].concat()
        };
        let reply = [
            Form::QuakeWars.reply(),
            &CHALLENGE,
            &[0x14, 0, 0x0a, 0, 0, 4, 0, 0],
            b"si_name\0A host\0si_map\0maps/valley.entities\0si_maxPlayers\x0024\0\0\0",
            &[player(0, b"One", 0), player(7, b"Two", 1), vec![END_ID]].concat(),
            &[0; 12],
            &[kills(7, -1), kills(0, 12), vec![END_ID]].concat(),
        ]
        .concat();
        let snapshot = decode(5, &reply, CHALLENGE, Form::QuakeWars).unwrap();
        assert_eq!((snapshot.map.as_str(), snapshot.slots, snapshot.completeness), ("valley", 24, Completeness::Full));
        let players: Vec<_> = snapshot.players.iter().map(|p| (p.name.as_str(), p.points, p.bot)).collect();
        assert_eq!(players, [("One", Some(12), false), ("Two", Some(-1), true)]);
        let query = InfoQuery::new(Nonce(u32::from_be_bytes(CHALLENGE).into()), Form::QuakeWars);
        assert_eq!(query.details(&reply, DetailLevel::Summary).player_teams, ["gdf", "gdf"]);
    }
}
