//! Encodes events. The code of an event refers to events before it in the segment:
//!
//! - A string is stored once, where it is first used. Later uses are its number. There are three
//!   tables: URLs of servers, texts (games, maps, host names, reasons of misses), and names of
//!   players in a game. So a name can be replaced in its table when a player is forgotten, and
//!   a map that has the same name stays.
//! - Times are differences to the event before.
//! - A list refers to the last list of the same server: entries with the same names in the same
//!   order need no names, and points and pings are differences.
//!
//! A scan of a server with 8 players whose names are known takes some 30 bytes; the same line of
//! JSON takes 600.
//!
//! | part | code |
//! |---|---|
//! | event | kind (1: snapshot, 2: miss, 3: command, 4: settings, 5: merge, 6: tick, 7: known server, 8: begin or end of a rebuild, 10: rebuilt players, 11: change of the archive, 12: rebuilt server; 9 was an older form of 12), time difference, and what follows |
//! | miss | server, reason |
//! | command, settings, known server, begin or end of a rebuild, change of the archive | length and bytes of JSON: they are rare |
//! | merge | game, and two names: they are in the table of names, so that they can be replaced |
//! | rebuilt server | window, server, number of rows, and for each game, name, spelling, length and bytes of the row; number of players without a row, and for each game and name; number of maps, and for each map and its times |
//! | rebuilt players | window, number of players, and for each game, name, servers and ratings |
//! | snapshot | server, flags (below), then what the flags announce, then the list |
//! | list, same names | a player for each entry of the list before |
//! | other list | number of entries, and for each: 0: the next entry of the list before; 1 and an index into that list; or the number of the name + 2; then the player |
//! | player | flags (below), then differences of points, ping, and connected time |
//!
//! A number one above the last of a table announces a new string: its length and bytes follow.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::LogEvent;
use crate::engine::Outcome;
use crate::model::name::Name;
use crate::model::packed_row::PackedRow;
use crate::model::rebuild::{RebuildStep, RebuiltPlayers, RebuiltRow};
use crate::model::varint::{put_i64, put_u64};
use crate::model::{AdminCommand, Completeness, MapRow, Player, ServerUrl, Snapshot, WindowKey};

pub(super) const KIND_SNAPSHOT: u8 = 1;
pub(super) const KIND_MISS: u8 = 2;
pub(super) const KIND_COMMAND: u8 = 3;
pub(super) const KIND_SETTINGS: u8 = 4;
pub(super) const KIND_MERGE: u8 = 5;
pub(super) const KIND_TICK: u8 = 6;
pub(super) const KIND_KNOWN: u8 = 7;
pub(super) const KIND_REBUILD: u8 = 8;
pub(super) const KIND_REBUILT_SERVER: u8 = 12;
pub(super) const KIND_REBUILT_PLAYERS: u8 = 10;
pub(super) const KIND_ARCHIVE: u8 = 11;

/// Flags of a snapshot.
pub(super) mod snapshot_flag {
    pub const PARTIAL: u8 = 1;
    /// Game, map and host name follow; otherwise they are those of the server's last snapshot.
    pub const TEXTS: u8 = 2;
    /// The number of slots follows; otherwise it is that of the server's last snapshot.
    pub const SLOTS: u8 = 4;
    pub const COUNT: u8 = 8;
    pub const BOTS: u8 = 16;
    /// The names and their order are those of the server's last list.
    pub const SAME_NAMES: u8 = 32;
    pub const ALL: u8 = 63;
}

/// Flags of a player. A value that is present and not different is that of the player's entry in
/// the list before, or 0 without one.
pub(super) mod player_flag {
    pub const BOT: u8 = 1;
    pub const SPECTATOR: u8 = 2;
    pub const POINTS: u8 = 4;
    pub const PING: u8 = 8;
    pub const CONNECTED: u8 = 16;
    pub const POINTS_DIFFER: u8 = 32;
    pub const PING_DIFFERS: u8 = 64;
    /// The connected time grew by a different amount than the time between the lists.
    pub const CONNECTED_DIFFERS: u8 = 128;
}

/// References of the entries of a list.
pub(super) const NEXT_ENTRY: u64 = 0;
pub(super) const ENTRY_AT: u64 = 1;
pub(super) const FIRST_NAME: u64 = 2;

/// The fields of a server's last snapshot in the segment to which the next one may refer.
#[derive(Clone, Debug, Default)]
pub(super) struct LastSnapshot {
    pub t_ms: i64,
    pub game: u32,
    pub map: u32,
    pub hostname: u32,
    pub slots: u32,
    pub list: Vec<ListEntry>,
}

/// An entry of the last list of a server. Values that are absent are 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ListEntry {
    /// Number of the name.
    pub name: u32,
    pub ping: i32,
    pub points: i64,
    pub connected_ms: u64,
}

impl ListEntry {
    pub fn of(name: u32, player: &Player) -> ListEntry {
        ListEntry {
            name,
            ping: player.ping.unwrap_or(0),
            points: player.points.unwrap_or(0),
            connected_ms: player.connected_ms.unwrap_or(0),
        }
    }
}

/// Encodes the events of one segment.
#[derive(Debug, Default)]
pub struct Encoder {
    t_ms: i64,
    /// A server's number is its index in `snapshots`.
    servers: FxHashMap<ServerUrl, u32>,
    snapshots: Vec<Option<LastSnapshot>>,
    texts: FxHashMap<String, u32>,
    /// Names with their games. The number of a name is its index.
    names: IndexSet<(u32, Name), FxBuildHasher>,
}

impl Encoder {
    /// Appends the code of an event.
    pub fn encode(&mut self, event: &LogEvent, out: &mut Vec<u8>) {
        match event {
            LogEvent::Scan { server, outcome } => self.encode_scan(server, outcome, out),
            LogEvent::Command { t_ms, command: AdminCommand::Merge { game, from, into } } => {
                self.put_head(KIND_MERGE, *t_ms, out);
                let game = put_text(&mut self.texts, game, out);
                self.put_name(game, from, out);
                self.put_name(game, into, out);
            }
            LogEvent::Command { t_ms, command } => {
                self.put_head(KIND_COMMAND, *t_ms, out);
                put_json(command, out);
            }
            LogEvent::Settings { t_ms, settings } => {
                self.put_head(KIND_SETTINGS, *t_ms, out);
                put_json(settings, out);
            }
            LogEvent::Known { t_ms, server } => {
                self.put_head(KIND_KNOWN, *t_ms, out);
                put_json(server, out);
            }
            LogEvent::Rebuild { t_ms, step } => self.encode_rebuild(*t_ms, step, out),
            LogEvent::Archive { t_ms, step } => {
                self.put_head(KIND_ARCHIVE, *t_ms, out);
                put_json(step, out);
            }
            LogEvent::Tick { t_ms, close_until_ms } => {
                self.put_head(KIND_TICK, *t_ms, out);
                put_i64(out, t_ms.wrapping_sub(*close_until_ms));
            }
        }
    }

    fn encode_rebuild(&mut self, t_ms: i64, step: &RebuildStep, out: &mut Vec<u8>) {
        match step {
            RebuildStep::Server(of_server) => {
                self.put_head(KIND_REBUILT_SERVER, t_ms, out);
                put_window(of_server.window, out);
                self.put_server(&of_server.server, out);
                put_u64(out, of_server.rows.len() as u64);
                for RebuiltRow { game, name, display, row } in &of_server.rows {
                    let game = put_text(&mut self.texts, game, out);
                    self.put_name(game, name, out);
                    self.put_name(game, display, out);
                    put_bytes(PackedRow::pack(row).bytes(), out);
                }
                put_u64(out, of_server.removed.len() as u64);
                for (game, name) in &of_server.removed {
                    let game = put_text(&mut self.texts, game, out);
                    self.put_name(game, name, out);
                }
                put_u64(out, of_server.maps.len() as u64);
                for (map, MapRow { played_ms, player_ms }) in &of_server.maps {
                    put_text(&mut self.texts, map, out);
                    put_u64(out, *played_ms);
                    put_u64(out, *player_ms);
                }
            }
            RebuildStep::Players(RebuiltPlayers { window, players }) => {
                self.put_head(KIND_REBUILT_PLAYERS, t_ms, out);
                put_window(*window, out);
                put_u64(out, players.len() as u64);
                for player in players {
                    let game = put_text(&mut self.texts, &player.game, out);
                    self.put_name(game, &player.name, out);
                    put_u64(out, player.servers.len() as u64);
                    for server in &player.servers {
                        self.put_server(server, out);
                    }
                    put_json(&(&player.game_rating, &player.tag_ratings), out);
                }
            }
            _ => {
                self.put_head(KIND_REBUILD, t_ms, out);
                put_json(step, out);
            }
        }
    }

    fn put_head(&mut self, kind: u8, t_ms: i64, out: &mut Vec<u8>) {
        out.push(kind);
        put_i64(out, t_ms.wrapping_sub(self.t_ms));
        self.t_ms = t_ms;
    }

    /// Appends the code of a scan.
    pub fn encode_scan(&mut self, server: &ServerUrl, outcome: &Outcome, out: &mut Vec<u8>) {
        let kind = match outcome {
            Outcome::Snapshot(_) => KIND_SNAPSHOT,
            Outcome::Miss { .. } => KIND_MISS,
        };
        self.put_head(kind, outcome.t_ms(), out);
        let server = self.put_server(server, out);
        match outcome {
            Outcome::Snapshot(snapshot) => self.put_snapshot(server, snapshot, out),
            Outcome::Miss { reason, .. } => _ = put_text(&mut self.texts, reason, out),
        }
    }

    fn put_server(&mut self, server: &ServerUrl, out: &mut Vec<u8>) -> usize {
        if let Some(&number) = self.servers.get(server) {
            put_u64(out, number.into());
            return number as usize;
        }
        let number = self.snapshots.len();
        put_u64(out, number as u64);
        put_bytes(server.as_str(), out);
        self.servers.insert(server.clone(), number_of(number));
        self.snapshots.push(None);
        number
    }

    fn put_snapshot(&mut self, server: usize, snapshot: &Snapshot, out: &mut Vec<u8>) {
        let last = self.snapshots[server].take();
        let mut next = LastSnapshot { t_ms: snapshot.t_ms, slots: snapshot.slots, ..LastSnapshot::default() };
        let flags_at = out.len();
        out.push(0);
        let mut flags = 0;
        let mut set = |flag: u8, is_set: bool| {
            flags |= if is_set { flag } else { 0 };
            is_set
        };
        set(snapshot_flag::PARTIAL, snapshot.completeness == Completeness::Partial);
        let text = |text: &str| self.texts.get(text).copied();
        let same_texts = last.as_ref().filter(|last| {
            text(&snapshot.game) == Some(last.game)
                && text(&snapshot.map) == Some(last.map)
                && text(&snapshot.hostname) == Some(last.hostname)
        });
        (next.game, next.map, next.hostname) = match same_texts {
            Some(last) => (last.game, last.map, last.hostname),
            None => {
                set(snapshot_flag::TEXTS, true);
                let mut put = |text| put_text(&mut self.texts, text, out);
                (put(&snapshot.game), put(&snapshot.map), put(&snapshot.hostname))
            }
        };
        if set(snapshot_flag::SLOTS, last.as_ref().is_none_or(|last| last.slots != snapshot.slots)) {
            put_u64(out, snapshot.slots.into());
        }
        if let Some(count) = snapshot.count.filter(|_| set(snapshot_flag::COUNT, true)) {
            put_u64(out, count.into());
        }
        if let Some(bots) = snapshot.bots.filter(|_| set(snapshot_flag::BOTS, true)) {
            put_u64(out, bots.into());
        }
        // Equal names of different games are different players.
        let last = last.filter(|last| last.game == next.game).unwrap_or_default();
        let same_names = last.list.len() == snapshot.players.len()
            && last.list.iter().zip(&snapshot.players).all(|(entry, player)| self.has_name(entry, player));
        let gap_ms = snapshot.t_ms.wrapping_sub(last.t_ms);
        if set(snapshot_flag::SAME_NAMES, same_names) {
            next.list = last.list;
            for (entry, player) in next.list.iter_mut().zip(&snapshot.players) {
                put_player(entry, gap_ms, player, out);
                *entry = ListEntry::of(entry.name, player);
            }
        } else {
            put_u64(out, snapshot.players.len() as u64);
            next.list.reserve_exact(snapshot.players.len());
            let mut next_entry = 0;
            for player in &snapshot.players {
                let before = self.put_reference(&last.list, &mut next_entry, next.game, player, out);
                put_player(&before, gap_ms, player, out);
                next.list.push(ListEntry::of(before.name, player));
            }
        }
        out[flags_at] = flags;
        self.snapshots[server] = Some(next);
    }

    fn has_name(&self, entry: &ListEntry, player: &Player) -> bool {
        self.names[entry.name as usize].1 == player.name
    }

    /// Writes which entry of the last list has this player, or else the name. Returns that entry, or
    /// an empty one with the name.
    fn put_reference(
        &mut self,
        last: &[ListEntry],
        next_entry: &mut usize,
        game: u32,
        player: &Player,
        out: &mut Vec<u8>,
    ) -> ListEntry {
        if let Some(&entry) = last.get(*next_entry).filter(|entry| self.has_name(entry, player)) {
            put_u64(out, NEXT_ENTRY);
            *next_entry += 1;
            return entry;
        }
        let known = self.names.get_index_of(&(game, player.name.clone()));
        if let Some(at) = known.and_then(|name| last.iter().position(|entry| entry.name as usize == name)) {
            put_u64(out, ENTRY_AT);
            put_u64(out, at as u64);
            *next_entry = at + 1;
            return last[at];
        }
        ListEntry { name: self.put_name(game, &player.name, out), ..ListEntry::default() }
    }

    /// Writes the number of a name, and the name if it is new.
    fn put_name(&mut self, game: u32, name: &str, out: &mut Vec<u8>) -> u32 {
        let (index, is_new) = self.names.insert_full((game, Name::from(name)));
        let number = number_of(index);
        put_u64(out, FIRST_NAME + u64::from(number));
        if is_new {
            put_bytes(name, out);
        }
        number
    }
}

/// The number of a new string in a table of a segment, which has far less than 4 billion.
fn number_of(len: usize) -> u32 {
    u32::try_from(len).expect("a segment is below 4 GB")
}

fn put_window(window: WindowKey, out: &mut Vec<u8>) {
    put_u64(out, window.kind.0.into());
    put_u64(out, window.index.into());
}

fn put_player(before: &ListEntry, gap_ms: i64, player: &Player, out: &mut Vec<u8>) {
    let now = ListEntry::of(before.name, player);
    let points = now.points.wrapping_sub(before.points);
    let ping = i64::from(now.ping) - i64::from(before.ping);
    let connected_ms = now.connected_ms.wrapping_sub(expected_connected_ms(before, gap_ms)).cast_signed();
    let present = [
        (player_flag::BOT, player.bot),
        (player_flag::SPECTATOR, player.spectator),
        (player_flag::POINTS, player.points.is_some()),
        (player_flag::PING, player.ping.is_some()),
        (player_flag::CONNECTED, player.connected_ms.is_some()),
    ];
    let differences = [
        (player_flag::POINTS_DIFFER, points, player.points.is_some()),
        (player_flag::PING_DIFFERS, ping, player.ping.is_some()),
        (player_flag::CONNECTED_DIFFERS, connected_ms, player.connected_ms.is_some()),
    ];
    let flags_at = out.len();
    out.push(present.iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag).sum());
    for (flag, difference, is_present) in differences {
        if is_present && difference != 0 {
            out[flags_at] |= flag;
            put_i64(out, difference);
        }
    }
}

/// The connected time of an entry after a gap, if the player has stayed.
pub(super) fn expected_connected_ms(before: &ListEntry, gap_ms: i64) -> u64 {
    match before.connected_ms {
        0 => 0,
        connected_ms => connected_ms.wrapping_add_signed(gap_ms),
    }
}

fn put_text(texts: &mut FxHashMap<String, u32>, text: &str, out: &mut Vec<u8>) -> u32 {
    if let Some(&number) = texts.get(text) {
        put_u64(out, number.into());
        return number;
    }
    let number = number_of(texts.len());
    put_u64(out, number.into());
    put_bytes(text, out);
    texts.insert(text.to_owned(), number);
    number
}

fn put_bytes(bytes: impl AsRef<[u8]>, out: &mut Vec<u8>) {
    let bytes = bytes.as_ref();
    put_u64(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_json(value: &impl serde::Serialize, out: &mut Vec<u8>) {
    let text = serde_json::to_string(value).expect("commands and settings are serialisable");
    put_bytes(&text, out);
}
