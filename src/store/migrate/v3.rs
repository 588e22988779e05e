//! Layout 3: its records, and their conversion to layout 4.
//!
//! This file has copies of the types that have changed since: rows, servers and meta. Their
//! serialised form must never change again. The other types in those records (keys, names,
//! `TopTen`, `CurrentMapRow`, `SeriesSums`, the states of meta) are the current ones, which
//! have the same form; copy such a type here before changing it.

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};

use crate::model::board_order::OrderOverrides;
use crate::model::commit::{WeekState, WindowState, WindowTypeState};
use crate::model::name::Name;
use crate::model::row::TopTen;
use crate::model::server::{Class, CurrentMapRow, SeriesSums};
use crate::model::{GameKey, MapKey, PlayerKey, ServerUrl, TagKey, WeekKey, WindowKey, commit, row, server};

const META: u8 = b'A';
const SERVER: u8 = b'S';
const WINDOW: u8 = b'W';
/// Tag of a row, and its position after the window's tag, type and number.
const ROW_TAG: (usize, u8) = (7, b'r');

/// The value of a record in layout 4; `None`: its layout did not change.
pub(super) fn convert(key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, postcard::Error> {
    match key.first() {
        Some(&META) => convert_as::<Meta, commit::Meta>(value).map(Some),
        Some(&SERVER) => convert_as::<ServerRecord, server::ServerRecord>(value).map(Some),
        Some(&WINDOW) if key.get(ROW_TAG.0) == Some(&ROW_TAG.1) => {
            convert_as::<WeekRow, row::PlayerRow>(value).map(Some)
        }
        _ => Ok(None),
    }
}

fn convert_as<'v, Old: Deserialize<'v>, New: From<Old> + Serialize>(
    value: &'v [u8],
) -> Result<Vec<u8>, postcard::Error> {
    postcard::to_stdvec(&New::from(postcard::from_bytes::<Old>(value)?))
}

#[derive(Deserialize)]
struct Meta {
    next_player: u32,
    next_server: u32,
    next_map: u32,
    next_game: u32,
    next_tag: u32,
    now_ms: i64,
    zone: String,
    weeks: Vec<WeekState>,
    windows: Vec<WindowState>,
    types: Vec<WindowTypeState>,
    players_gone: u32,
    resync: bool,
    archived_by: Option<OrderOverrides>,
}

impl From<Meta> for commit::Meta {
    fn from(old: Meta) -> commit::Meta {
        commit::Meta {
            next_player: old.next_player,
            next_server: old.next_server,
            next_map: old.next_map,
            next_game: old.next_game,
            next_tag: old.next_tag,
            now_ms: old.now_ms,
            time_zone: old.zone,
            weeks: old.weeks,
            windows: old.windows,
            types: old.types,
            players_removed: old.players_gone,
            resync: old.resync,
            archived_orders: old.archived_by,
            resync_state: Default::default(),
            reopened_weeks: Vec::new(),
            importing: Vec::new(),
            players_dropped: None,
            archive_writer: None,
            ended: Vec::new(),
        }
    }
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(Serialize))]
struct WeekRow {
    measured_ms: u64,
    time_at: i64,
    points: i64,
    points_at: i64,
    starts: u32,
    elo_rounds: u32,
    elo: f64,
    elo_at: i64,
    clq1_segments: TopTen,
    clq2_games: TopTen,
}

impl From<WeekRow> for row::PlayerRow {
    fn from(old: WeekRow) -> row::PlayerRow {
        row::PlayerRow {
            measured_ms: old.measured_ms,
            time_at_ms: old.time_at,
            points: old.points,
            points_at_ms: old.points_at,
            starts: old.starts,
            elo_rounds: old.elo_rounds,
            elo: old.elo,
            elo_at_ms: old.elo_at,
            clq1_segments: old.clq1_segments,
            clq2_games: old.clq2_games,
            // Estimates start from the measured values.
            time_est_ms: old.measured_ms.saturating_add(60_000 * u64::from(old.starts)),
            points_unseen_thousandths: 0,
            // All protocols of layout 3 had points.
            has_points: true,
        }
    }
}

#[derive(Deserialize)]
struct ServerRecord {
    url: ServerUrl,
    tags: Vec<TagKey>,
    greylist: Option<String>,
    removed: bool,
    added_ms: i64,
    class: Class,
    missed: u32,
    last_scan_ms: Option<i64>,
    last_seen_ms: Option<i64>,
    game: Option<GameKey>,
    map: Option<MapKey>,
    hostname: String,
    slots: u32,
    rank: Option<u32>,
    ranked_week: Option<WeekKey>,
    counts: ArrayVec<u32, 3>,
    count: u32,
    total_points: i64,
    last: Option<LastSnapshot>,
    map_time: Option<CurrentMapRow>,
    sums: SeriesSums,
}

impl From<ServerRecord> for server::ServerRecord {
    fn from(old: ServerRecord) -> server::ServerRecord {
        server::ServerRecord {
            url: old.url,
            tags: old.tags,
            greylist_reason: old.greylist,
            removed: old.removed,
            added_ms: old.added_ms,
            class: old.class,
            missed: old.missed,
            last_scan_ms: old.last_scan_ms,
            last_seen_ms: old.last_seen_ms,
            game: old.game,
            map: old.map,
            hostname: old.hostname,
            slots: old.slots,
            rank: old.rank,
            rank_week: old.ranked_week,
            counts: old.counts,
            count: old.count,
            total_points: old.total_points,
            last_snapshot: old.last.map(Into::into),
            map_time: old.map_time,
            sums: old.sums,
            screening: None,
            recent: Default::default(),
            imported: false,
        }
    }
}

#[derive(Deserialize)]
struct LastSnapshot {
    t_ms: i64,
    map: MapKey,
    game: GameKey,
    entries: Vec<Entry>,
}

impl From<LastSnapshot> for server::LastSnapshot {
    fn from(old: LastSnapshot) -> server::LastSnapshot {
        server::LastSnapshot {
            t_ms: old.t_ms,
            map: old.map,
            map_without_key: None,
            game: old.game,
            entries: old.entries.into_iter().map(Into::into).collect(),
        }
    }
}

#[derive(Deserialize)]
struct Entry {
    display: Name,
    name: Name,
    points: i64,
    ping: Option<i32>,
    presence: Option<Presence>,
}

impl From<Entry> for server::PlayerEntry {
    fn from(old: Entry) -> server::PlayerEntry {
        server::PlayerEntry {
            display: old.display,
            name: old.name,
            points: Some(old.points),
            ping: old.ping,
            spectator: false,
            presence: old.presence.map(Into::into),
        }
    }
}

#[derive(Deserialize)]
struct Presence {
    player: PlayerKey,
    segment_start_ms: i64,
    segment_points: f64,
    rows: Vec<(WindowKey, WeekRow)>,
}

impl From<Presence> for server::Presence {
    fn from(old: Presence) -> server::Presence {
        server::Presence {
            player: old.player,
            segment_start_ms: old.segment_start_ms,
            segment_points: old.segment_points,
            rows: old.rows.into_iter().map(|(window, row)| (window, Box::new(row.into()))).collect(),
        }
    }
}
