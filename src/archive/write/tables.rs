//! The tables that are written, and which of their rows belong to which object.

use crate::archive::sql::Table;

pub(in crate::archive) const GAME: Table = Table { name: "game", columns: &["game", "name"], key_columns: 1 };
pub(in crate::archive) const MAP: Table = Table { name: "map", columns: &["map", "name"], key_columns: 1 };
pub(in crate::archive) const PLAYER: Table =
    Table { name: "player", columns: &["player", "game", "name", "display"], key_columns: 1 };
pub(in crate::archive) const PLAYER_WORD: Table =
    Table { name: "player_word", columns: &["player", "ordinal", "word", "game"], key_columns: 2 };
pub(in crate::archive) const WEEK: Table =
    Table { name: "week", columns: &["week", "label", "start_ms", "end_ms"], key_columns: 1 };
pub(in crate::archive) const SERVER: Table = Table {
    name: "server",
    columns: &[
        "server",
        "url",
        "hostname",
        "game",
        "map",
        "slots",
        "class",
        "missed",
        "online",
        "players",
        "assumed_players",
        "total_points",
        "bots_unidentified",
        "added_ms",
        "last_scan_ms",
        "last_seen_ms",
        "server_rank",
        "server_rank_week",
        "greylist_reason",
        "removed",
    ],
    key_columns: 1,
};
pub(in crate::archive) const SERVER_SERIES: Table = Table {
    name: "server_series",
    columns: &[
        "server",
        "newest_ten_minutes_ms",
        "newest_hour_ms",
        "newest_day_ms",
        "newest_week_ms",
        "ten_minutes",
        "hours",
        "days",
        "weeks",
        "ranks",
        "newest_rank_week",
    ],
    key_columns: 1,
};
pub(in crate::archive) const SERVER_TAG: Table =
    Table { name: "server_tag", columns: &["server", "tag", "players", "server_rank"], key_columns: 2 };
pub(in crate::archive) const SERVER_WORD: Table =
    Table { name: "server_word", columns: &["server", "ordinal", "word"], key_columns: 2 };
pub(in crate::archive) const SERVER_SCREENING: Table =
    Table { name: "server_screening", columns: &["server", "reason", "applied_ms"], key_columns: 2 };
pub(in crate::archive) const ONLINE_PLAYER: Table = Table {
    name: "online_player",
    columns: &["server", "list_index", "name", "display", "points", "player", "spectator", "game"],
    key_columns: 2,
};
pub(in crate::archive) const SERVER_WEEK: Table = Table {
    name: "server_week",
    columns: &[
        "week",
        "server",
        "game",
        "server_rank",
        "player_ms",
        "closed",
        "clq1_players",
        "clq2_players",
        "elo_players",
        "points_players",
        "time_players",
        "checksum",
    ],
    key_columns: 2,
};
pub(in crate::archive) const PLAYER_WEEK: Table = Table {
    name: "player_week",
    columns: &[
        "week",
        "server",
        "player",
        "measured_ms",
        "starts",
        "time_ms",
        "time_est_ms",
        "points",
        "points_est",
        "elo",
        "elo_rounds",
        "elo_rounds_sure",
        "time_est_variance",
        "time_connected_ms",
        "time_connected_variance",
        "points_est_variance",
        "clq1",
        "clq2",
        "clq1_order",
        "clq2_order",
        "elo_order",
        "points_order",
        "time_order",
        "clq1_reached_after_ms",
        "clq2_reached_after_ms",
        "elo_reached_after_ms",
        "points_reached_after_ms",
        "time_reached_after_ms",
        "clq1_segments",
        "clq2_games",
    ],
    key_columns: 3,
};
pub(in crate::archive) const BOARD_STEP: Table =
    Table { name: "board_step", columns: &["week", "server", "ranking", "position", "board_order"], key_columns: 4 };
pub(in crate::archive) const BEST_POSITION: Table = Table {
    name: "best_position",
    columns: &["server", "player", "ranking", "ordinal", "position", "week"],
    key_columns: 4,
};
pub(in crate::archive) const PLAYER_TOTAL: Table = Table {
    name: "player_total",
    columns: &[
        "player",
        "week",
        "servers",
        "time_ms",
        "time_est_ms",
        "points",
        "points_est",
        "elo_rounds",
        "elo_rounds_sure",
        "time_est_variance",
        "points_est_variance",
        "last_seen_ms",
    ],
    key_columns: 2,
};
pub(in crate::archive) const TOP_BOARD: Table = Table {
    name: "top_board",
    columns: &[
        "board",
        "scope_type",
        "scope",
        "window_type",
        "window_label",
        "start_ms",
        "end_ms",
        "ranking",
        "players",
        "closed",
        "published_ms",
    ],
    key_columns: 1,
};
pub(in crate::archive) const TOP_BOARD_ROW: Table = Table {
    name: "top_board_row",
    columns: &["board", "position", "player", "score", "reached_ms", "previous_position"],
    key_columns: 2,
};
pub(in crate::archive) const SITE_TOTAL: Table = Table {
    name: "site_total",
    columns: &[
        "singleton",
        "at_ms",
        "players_known",
        "servers",
        "servers_online",
        "servers_greylisted",
        "servers_class1",
        "servers_class2",
        "servers_class3",
        "servers_class4",
        "servers_class5",
        "servers_class6",
        "servers_class7",
    ],
    key_columns: 1,
};
pub(in crate::archive) const PLAYER_SESSION: Table = Table {
    name: "player_session",
    columns: &["server", "end_ms", "player", "origin", "start_ms", "points", "map", "seen"],
    key_columns: 4,
};
pub(in crate::archive) const ONLINE_TOTAL: Table =
    Table { name: "online_total", columns: &["game", "at_ms", "players", "servers"], key_columns: 2 };
pub(in crate::archive) const MAP_WEEK: Table =
    Table { name: "map_week", columns: &["week", "server", "map", "game", "played_ms", "player_ms"], key_columns: 3 };

/// Tables that are written with LOAD DATA where the database allows it. They have many rows, and every column that is not
/// generated is written. REPLACE changes a row with the same primary key. `player` has another unique key, so a row with the
/// same name and another key is deleted. Only somebody else can have written it. Names are compared before
/// ([`names`](super::names)), except in a resync that fills an archive of this state.
pub(super) const LOADED: [&Table; 11] = [
    &PLAYER,
    &PLAYER_WORD,
    &PLAYER_WEEK,
    &PLAYER_TOTAL,
    &PLAYER_SESSION,
    &BOARD_STEP,
    &MAP_WEEK,
    &BEST_POSITION,
    &ONLINE_PLAYER,
    &SERVER_WORD,
    &TOP_BOARD_ROW,
];

/// Rows that belong to one object: `group` and `member` are the columns that identify the
/// object, `key` the rest of the primary key.
pub(super) struct ChildRows {
    pub table: &'static str,
    pub group: Option<&'static str>,
    pub member: &'static str,
    pub key: &'static [(&'static str, ColumnType)],
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnType {
    Number,
    Text,
}

pub(super) const TAGS: ChildRows =
    ChildRows { table: "server_tag", group: None, member: "server", key: &[("tag", ColumnType::Text)] };
pub(super) const WORDS: ChildRows =
    ChildRows { table: "server_word", group: None, member: "server", key: &[("ordinal", ColumnType::Number)] };
pub(super) const LISTED: ChildRows =
    ChildRows { table: "online_player", group: None, member: "server", key: &[("list_index", ColumnType::Number)] };
pub(super) const SCREENED: ChildRows =
    ChildRows { table: "server_screening", group: None, member: "server", key: &[("reason", ColumnType::Text)] };
pub(super) const SERIES: ChildRows = ChildRows { table: "server_series", group: None, member: "server", key: &[] };
pub(super) const PLAYERS: ChildRows =
    ChildRows { table: "player_week", group: Some("week"), member: "server", key: &[("player", ColumnType::Number)] };
pub(super) const MAPS: ChildRows =
    ChildRows { table: "map_week", group: Some("week"), member: "server", key: &[("map", ColumnType::Number)] };
pub(super) const BEST: ChildRows = ChildRows {
    table: "best_position",
    group: Some("server"),
    member: "player",
    key: &[("ranking", ColumnType::Text), ("ordinal", ColumnType::Number)],
};
