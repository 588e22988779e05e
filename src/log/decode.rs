//! Decodes the events of a segment: see [`encode`](super::encode) for the format.

use super::LogEvent;
use super::batch::BODY_BYTES_MAX;
use super::encode::{
    ENTRY_AT, FIRST_NAME, KIND_ARCHIVE, KIND_COMMAND, KIND_KNOWN, KIND_MERGE, KIND_MISS, KIND_REBUILD,
    KIND_REBUILT_PLAYERS, KIND_REBUILT_SERVER, KIND_SETTINGS, KIND_SNAPSHOT, KIND_TICK, LastSnapshot, ListEntry,
    NEXT_ENTRY, expected_connected_ms, player_flag, snapshot_flag,
};
use crate::engine::Outcome;
use crate::limits::{NAME_BYTES_MAX, PLAYERS_MAX, SERVER_URL_BYTES_MAX, TEXT_BYTES_MAX};
use crate::model::name::Name;
use crate::model::packed_row::PackedRow;
use crate::model::rebuild::{RebuildStep, RebuiltPlayer, RebuiltPlayers, RebuiltRow, RebuiltServer};
use crate::model::varint::Cursor;
use crate::model::{AdminCommand, Completeness, MapRow, Player, ServerUrl, Snapshot, WindowKey, WindowType};

/// Why the body of a batch with a correct checksum cannot be decoded: another version wrote it, or
/// batches before it are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("an event ends too early, or one of its numbers is too large")]
    Truncated,
    #[error("an event has the unknown kind {0}")]
    Kind(u8),
    #[error("an event has the unknown flags {0:#x}")]
    Flags(u8),
    #[error("an event refers to {what} {number}, which the segment does not have")]
    Reference { what: &'static str, number: u64 },
    #[error("{what} is too long, is not UTF-8 or is not valid")]
    Text { what: &'static str },
    #[error("a list has {0} players")]
    Players(u64),
}

/// Decodes the events of one segment, from its first batch on.
#[derive(Debug, Default)]
pub struct Decoder {
    t_ms: i64,
    servers: Vec<(ServerUrl, Option<LastSnapshot>)>,
    texts: Vec<String>,
    names: Vec<Name>,
}

impl Decoder {
    /// Decodes the body of the next batch, and passes each event on.
    pub fn decode(&mut self, body: &[u8], mut each: impl FnMut(LogEvent)) -> Result<(), DecodeError> {
        let mut cursor = Cursor::new(body);
        while !cursor.is_empty() {
            each(self.event(&mut cursor)?);
        }
        Ok(())
    }

    fn event(&mut self, cursor: &mut Cursor<'_>) -> Result<LogEvent, DecodeError> {
        let kind = cursor.byte().ok_or(DecodeError::Truncated)?;
        self.t_ms = self.t_ms.wrapping_add(cursor.i64().ok_or(DecodeError::Truncated)?);
        let t_ms = self.t_ms;
        Ok(match kind {
            KIND_COMMAND => LogEvent::Command { t_ms, command: json("a command", cursor)? },
            KIND_SETTINGS => LogEvent::Settings { t_ms, settings: json("a list of settings", cursor)? },
            KIND_KNOWN => LogEvent::Known { t_ms, server: json("a server", cursor)? },
            KIND_ARCHIVE => LogEvent::Archive { t_ms, step: json("a change of the archive", cursor)? },
            KIND_REBUILD => LogEvent::Rebuild { t_ms, step: json("a rebuild", cursor)? },
            KIND_REBUILT_SERVER => {
                let step = RebuildStep::Server(Box::new(self.rebuilt_server(cursor)?));
                LogEvent::Rebuild { t_ms, step }
            }
            KIND_REBUILT_PLAYERS => {
                let step = RebuildStep::Players(self.rebuilt_players(cursor)?);
                LogEvent::Rebuild { t_ms, step }
            }
            KIND_TICK => {
                let until_ms = cursor.i64().ok_or(DecodeError::Truncated)?;
                LogEvent::Tick { t_ms, close_until_ms: t_ms.wrapping_sub(until_ms) }
            }
            KIND_MERGE => {
                let game = self.text(cursor)?;
                let [from, into] = [self.next_name(cursor)?.into(), self.next_name(cursor)?.into()];
                LogEvent::Command { t_ms, command: AdminCommand::Merge { game, from, into } }
            }
            KIND_SNAPSHOT => {
                let server = self.server(cursor)?;
                let outcome = Outcome::Snapshot(self.snapshot(server, cursor)?);
                LogEvent::Scan { server: self.servers[server].0.clone(), outcome }
            }
            KIND_MISS => {
                let server = self.server(cursor)?;
                let reason = text(&mut self.texts, cursor)?;
                let outcome = Outcome::Miss { t_ms, reason: self.texts[reason as usize].clone() };
                LogEvent::Scan { server: self.servers[server].0.clone(), outcome }
            }
            _ => return Err(DecodeError::Kind(kind)),
        })
    }

    fn text(&mut self, cursor: &mut Cursor<'_>) -> Result<String, DecodeError> {
        let text = text(&mut self.texts, cursor)?;
        Ok(self.texts[text as usize].clone())
    }

    fn rebuilt_server(&mut self, cursor: &mut Cursor<'_>) -> Result<RebuiltServer, DecodeError> {
        let window = window(cursor)?;
        let server = self.server(cursor)?;
        let server = self.servers[server].0.clone();
        let mut of_server = RebuiltServer { window, server, rows: Vec::new(), removed: Vec::new(), maps: Vec::new() };
        for _ in 0..number(cursor)? {
            let (game, name, display) = (self.text(cursor)?, self.next_name(cursor)?, self.next_name(cursor)?);
            let len = number(cursor)?;
            let row = usize::try_from(len).ok().and_then(|len| cursor.bytes(len)).ok_or(DecodeError::Truncated)?;
            let row = PackedRow::read(row).ok_or(DecodeError::Text { what: "a row" })?;
            of_server.rows.push(RebuiltRow { game, name, display, row });
        }
        for _ in 0..number(cursor)? {
            of_server.removed.push((self.text(cursor)?, self.next_name(cursor)?));
        }
        for _ in 0..number(cursor)? {
            let map = self.text(cursor)?;
            of_server.maps.push((map, MapRow { played_ms: number(cursor)?, player_ms: number(cursor)? }));
        }
        Ok(of_server)
    }

    fn rebuilt_players(&mut self, cursor: &mut Cursor<'_>) -> Result<RebuiltPlayers, DecodeError> {
        let mut rebuilt = RebuiltPlayers { window: window(cursor)?, players: Vec::new() };
        for _ in 0..number(cursor)? {
            let (game, name) = (self.text(cursor)?, self.next_name(cursor)?);
            let mut servers = Vec::new();
            for _ in 0..number(cursor)? {
                let server = self.server(cursor)?;
                servers.push(self.servers[server].0.clone());
            }
            let (game_rating, tag_ratings) = json("the ratings of a player", cursor)?;
            rebuilt.players.push(RebuiltPlayer { game, name, servers, game_rating, tag_ratings });
        }
        Ok(rebuilt)
    }

    fn next_name(&mut self, cursor: &mut Cursor<'_>) -> Result<Name, DecodeError> {
        let code = cursor.u64().ok_or(DecodeError::Truncated)?;
        let number = code.checked_sub(FIRST_NAME).ok_or(DecodeError::Reference { what: "entry", number: code })?;
        let name = self.name(number, cursor)?;
        Ok(self.names[name as usize].clone())
    }

    /// The number of a name. A new one is added to the table.
    fn name(&mut self, number: u64, cursor: &mut Cursor<'_>) -> Result<u32, DecodeError> {
        let name = new_or_known("name", number, self.names.len(), NAME_BYTES_MAX, cursor)?;
        if let Some(new) = name.new {
            self.names.push(new.into());
        }
        index(name.index)
    }

    fn server(&mut self, cursor: &mut Cursor<'_>) -> Result<usize, DecodeError> {
        let Reference { index, new } = reference("server", self.servers.len(), SERVER_URL_BYTES_MAX, cursor)?;
        if let Some(url) = new {
            let url = ServerUrl::parse(url).map_err(|_| DecodeError::Text { what: "the URL of a server" })?;
            self.servers.push((url, None));
        }
        Ok(index)
    }

    fn snapshot(&mut self, server: usize, cursor: &mut Cursor<'_>) -> Result<Snapshot, DecodeError> {
        let flags = cursor.byte().ok_or(DecodeError::Truncated)?;
        if flags & !snapshot_flag::ALL != 0 {
            return Err(DecodeError::Flags(flags));
        }
        let has = |flag: u8| flags & flag != 0;
        let last = self.servers[server].1.take();
        let no_snapshot = || DecodeError::Reference { what: "the last snapshot of server", number: server as u64 };
        let mut next = LastSnapshot { t_ms: self.t_ms, ..LastSnapshot::default() };
        if has(snapshot_flag::TEXTS) {
            next.game = text(&mut self.texts, cursor)?;
            next.map = text(&mut self.texts, cursor)?;
            next.hostname = text(&mut self.texts, cursor)?;
        } else {
            let last = last.as_ref().ok_or_else(no_snapshot)?;
            (next.game, next.map, next.hostname) = (last.game, last.map, last.hostname);
        }
        let mut number = |flag: u8| match has(flag) {
            true => cursor.u32().map(Some).ok_or(DecodeError::Truncated),
            false => Ok(None),
        };
        next.slots = match number(snapshot_flag::SLOTS)? {
            Some(slots) => slots,
            None => last.as_ref().ok_or_else(no_snapshot)?.slots,
        };
        let (count, bots) = (number(snapshot_flag::COUNT)?, number(snapshot_flag::BOTS)?);
        let last = last.filter(|last| last.game == next.game).unwrap_or_default();
        let gap_ms = self.t_ms.wrapping_sub(last.t_ms);
        let players = match has(snapshot_flag::SAME_NAMES) {
            true => {
                next.list = last.list;
                let player = |entry: &mut ListEntry| self.player(entry, gap_ms, cursor);
                next.list.iter_mut().map(player).collect::<Result<Vec<Player>, _>>()?
            }
            false => {
                let len = cursor.u64().ok_or(DecodeError::Truncated)?;
                let known = usize::try_from(len).ok().filter(|&len| len <= PLAYERS_MAX);
                let len = known.ok_or(DecodeError::Players(len))?;
                let mut players = Vec::with_capacity(len);
                next.list.reserve_exact(len);
                let mut next_entry = 0;
                for _ in 0..len {
                    let mut entry = self.referenced_entry(&last.list, &mut next_entry, cursor)?;
                    players.push(self.player(&mut entry, gap_ms, cursor)?);
                    next.list.push(entry);
                }
                players
            }
        };
        let text = |number: u32| self.texts[number as usize].clone();
        let snapshot = Snapshot {
            t_ms: self.t_ms,
            game: text(next.game),
            map: text(next.map),
            hostname: text(next.hostname),
            slots: next.slots,
            players,
            completeness: Completeness::full_if(!has(snapshot_flag::PARTIAL)),
            count,
            bots,
        };
        self.servers[server].1 = Some(next);
        Ok(snapshot)
    }

    fn referenced_entry(
        &mut self,
        last: &[ListEntry],
        next_entry: &mut usize,
        cursor: &mut Cursor<'_>,
    ) -> Result<ListEntry, DecodeError> {
        let code = cursor.u64().ok_or(DecodeError::Truncated)?;
        let at = match code {
            NEXT_ENTRY => *next_entry as u64,
            ENTRY_AT => cursor.u64().ok_or(DecodeError::Truncated)?,
            name => {
                let name = self.name(name - FIRST_NAME, cursor)?;
                return Ok(ListEntry { name, ..ListEntry::default() });
            }
        };
        let unknown = DecodeError::Reference { what: "entry", number: at };
        let Some((index, entry)) = usize::try_from(at).ok().and_then(|at| Some((at, last.get(at)?))) else {
            return Err(unknown);
        };
        *next_entry = index + 1;
        Ok(*entry)
    }

    /// Decodes a player, and stores their values in the entry.
    fn player(&self, entry: &mut ListEntry, gap_ms: i64, cursor: &mut Cursor<'_>) -> Result<Player, DecodeError> {
        let flags = cursor.byte().ok_or(DecodeError::Truncated)?;
        let mut difference = |flag: u8| match flags & flag != 0 {
            true => cursor.i64().ok_or(DecodeError::Truncated),
            false => Ok(0),
        };
        let points = entry.points.wrapping_add(difference(player_flag::POINTS_DIFFER)?);
        let ping = i64::from(entry.ping).wrapping_add(difference(player_flag::PING_DIFFERS)?);
        let ping = i32::try_from(ping).map_err(|_| DecodeError::Truncated)?;
        let connected_ms =
            expected_connected_ms(entry, gap_ms).wrapping_add_signed(difference(player_flag::CONNECTED_DIFFERS)?);
        let player = Player {
            name: self.names[entry.name as usize].clone(),
            points: (flags & player_flag::POINTS != 0).then_some(points),
            ping: (flags & player_flag::PING != 0).then_some(ping),
            connected_ms: (flags & player_flag::CONNECTED != 0).then_some(connected_ms),
            bot: flags & player_flag::BOT != 0,
            spectator: flags & player_flag::SPECTATOR != 0,
        };
        *entry = ListEntry::of(entry.name, &player);
        Ok(player)
    }
}

fn number(cursor: &mut Cursor<'_>) -> Result<u64, DecodeError> {
    cursor.u64().ok_or(DecodeError::Truncated)
}

fn window(cursor: &mut Cursor<'_>) -> Result<WindowKey, DecodeError> {
    let kind = u16::try_from(number(cursor)?).map_err(|_| DecodeError::Truncated)?;
    Ok(WindowKey { kind: WindowType(kind), index: cursor.u32().ok_or(DecodeError::Truncated)? })
}

/// A reference to a table: the index of the string, and the string if it is a new one.
struct Reference<'a> {
    index: usize,
    new: Option<&'a str>,
}

fn text(texts: &mut Vec<String>, cursor: &mut Cursor<'_>) -> Result<u32, DecodeError> {
    let Reference { index, new } = reference("text", texts.len(), TEXT_BYTES_MAX, cursor)?;
    texts.extend(new.map(str::to_owned));
    self::index(index)
}

/// An index as tables have it.
fn index(index: usize) -> Result<u32, DecodeError> {
    u32::try_from(index).map_err(|_| DecodeError::Reference { what: "index", number: index as u64 })
}

fn reference<'a>(
    what: &'static str,
    known: usize,
    bytes_max: usize,
    cursor: &mut Cursor<'a>,
) -> Result<Reference<'a>, DecodeError> {
    let number = cursor.u64().ok_or(DecodeError::Truncated)?;
    new_or_known(what, number, known, bytes_max, cursor)
}

/// The string with a number. If the number is the first unknown one, the string follows.
fn new_or_known<'a>(
    what: &'static str,
    number: u64,
    known: usize,
    bytes_max: usize,
    cursor: &mut Cursor<'a>,
) -> Result<Reference<'a>, DecodeError> {
    let index = usize::try_from(number).ok().filter(|&index| index <= known);
    let index = index.ok_or(DecodeError::Reference { what, number })?;
    if index < known {
        return Ok(Reference { index, new: None });
    }
    let len = cursor.u64().ok_or(DecodeError::Truncated)?;
    let len = usize::try_from(len).ok().filter(|&len| len <= bytes_max).ok_or(DecodeError::Text { what })?;
    let bytes = cursor.bytes(len).ok_or(DecodeError::Truncated)?;
    let new = std::str::from_utf8(bytes).map_err(|_| DecodeError::Text { what })?;
    Ok(Reference { index, new: Some(new) })
}

/// Commands and settings are short. The longest text lists the windows of a rebuild, 84 bytes each: hours of a year are 736
/// kB. A batch, which has a checksum, is the limit of what is read.
const JSON_BYTES_MAX: usize = BODY_BYTES_MAX;

fn json<T: serde::de::DeserializeOwned>(what: &'static str, cursor: &mut Cursor<'_>) -> Result<T, DecodeError> {
    let len = cursor.u64().and_then(|len| usize::try_from(len).ok()).filter(|&len| len <= JSON_BYTES_MAX);
    let bytes = cursor.bytes(len.ok_or(DecodeError::Text { what })?).ok_or(DecodeError::Truncated)?;
    serde_json::from_slice(bytes).map_err(|_| DecodeError::Text { what })
}
