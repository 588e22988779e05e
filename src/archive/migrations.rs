//! The steps that migrate older schemas, and the renames in them.
//!
//! A step that was interrupted runs again from its start, so each of its statements must
//! have no effect the second time. Statements that add or drop are refused then, which
//! [`crate::archive::schema`] accepts. A refused rename may be a real error as well, so a
//! [`Rename`] is looked up first and skipped if it is done.

/// Migrates a schema from the previous version to `to`. An interrupted step is run again
/// from its start: a column or index that already exists, was already dropped or has its
/// new name is skipped.
#[derive(Clone, Copy, Debug)]
pub struct MigrationStep {
    pub to: u32,
    pub sql: &'static str,
}

pub(super) const STEPS: &[MigrationStep] = &[
    MigrationStep { to: 2, sql: MIGRATION_2 },
    MigrationStep { to: 3, sql: MIGRATION_3 },
    MigrationStep { to: 4, sql: MIGRATION_4 },
    MigrationStep { to: 5, sql: MIGRATION_5 },
];

/// Adds estimates, screening, and points that a protocol does not have.
const MIGRATION_2: &str = "
ALTER TABLE player_week ADD COLUMN time_est_ms BIGINT UNSIGNED NOT NULL DEFAULT 0
  COMMENT 'Estimated time, ms: beside what was counted, never ranked' AFTER time_ms;
ALTER TABLE player_week ADD COLUMN points_est DOUBLE NOT NULL DEFAULT 0
  COMMENT 'Estimated points: beside what was counted, never ranked' AFTER points;
ALTER TABLE server ADD COLUMN bots_unidentified INT UNSIGNED NOT NULL DEFAULT 0
  COMMENT 'Bots in the last list that could not be told from players' AFTER total_points;
ALTER TABLE server_player MODIFY COLUMN points BIGINT NULL
  COMMENT 'Points that the server shows; NULL: its protocol has none';
ALTER TABLE server_player ADD COLUMN spectator BOOLEAN NOT NULL DEFAULT 0
  COMMENT '1: looks on and does not play' AFTER player;
";

/// Renames tables, columns and views after their content, and revises comments. A database of
/// version 1 has no `clq_state` and no `server_screened`: `schema.sql` creates them.
const MIGRATION_3: &str = "
RENAME TABLE server_player TO online_player;
RENAME TABLE server_screened TO server_screening;
ALTER TABLE online_player RENAME INDEX server_player_by_player TO online_player_by_player;
ALTER TABLE online_player CHANGE COLUMN place list_index INT UNSIGNED NOT NULL
  COMMENT 'Index in the player list of the server, from 1';
ALTER TABLE best_position CHANGE COLUMN place ordinal TINYINT UNSIGNED NOT NULL
  COMMENT '1, 2 or 3: the best, second and third best position';
ALTER TABLE clq_state CHANGE COLUMN one singleton TINYINT UNSIGNED NOT NULL
  COMMENT '1: there is at most one row';
ALTER TABLE clq_state CHANGE COLUMN id state_id BIGINT UNSIGNED NOT NULL
  COMMENT 'Random number that the state directory contains too. Delete the row, and clqd writes everything again';
ALTER TABLE server CHANGE COLUMN rank_week server_rank_week INT UNSIGNED NULL
  COMMENT 'Key of the week that the rank comes from';
ALTER TABLE server CHANGE COLUMN greylist greylist_reason VARCHAR(1000) NULL
  COMMENT 'Why it is excluded from rankings, truncated to 1000 characters; NULL: it is not';
ALTER TABLE server_series CHANGE COLUMN newest_slot_ms newest_ten_minutes_ms BIGINT NOT NULL
  COMMENT 'Start of the newest ten minutes, Unix ms; 0: none yet';
ALTER TABLE server_series CHANGE COLUMN slots ten_minutes VARBINARY(250) NOT NULL
  COMMENT 'Mean players per ten minutes, 150 values of 13 bits, oldest first';
DROP VIEW IF EXISTS clq_top;
DROP VIEW IF EXISTS clq_best;
DROP VIEW IF EXISTS clq_screened;
DROP VIEW IF EXISTS clq_series_slot;
ALTER TABLE game
  MODIFY COLUMN name VARCHAR(256) NOT NULL COMMENT 'Name as reported by servers, such as baseq3';
ALTER TABLE map
  MODIFY COLUMN name VARCHAR(256) NOT NULL COMMENT 'Name as reported by servers, such as q3dm17';
ALTER TABLE player
  MODIFY COLUMN name VARCHAR(256) NOT NULL COMMENT 'Normalised name: without colour codes, with single spaces, NFC',
  MODIFY COLUMN display VARCHAR(256) NOT NULL COMMENT 'Name as last seen, with colour codes; truncated to 256 characters';
ALTER TABLE server
  MODIFY COLUMN hostname VARCHAR(256) NOT NULL COMMENT 'Name that the server reports; truncated to 256 characters',
  MODIFY COLUMN slots INT UNSIGNED NOT NULL COMMENT 'Player slots; 0: the protocol does not report them',
  MODIFY COLUMN players INT UNSIGNED NOT NULL COMMENT 'Players now, without bots; 0 if the server no longer responds',
  MODIFY COLUMN bots_unidentified INT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'Bots in the last list that could not be distinguished from players',
  MODIFY COLUMN last_scan_ms BIGINT NULL COMMENT 'When it was last scanned, Unix ms; NULL: never',
  MODIFY COLUMN last_seen_ms BIGINT NULL COMMENT 'When it last responded, Unix ms; NULL: never',
  MODIFY COLUMN server_rank INT UNSIGNED NULL
    COMMENT 'Rank by player-seconds of server_rank_week, 1 is best; NULL: not ranked',
  MODIFY COLUMN removed BOOLEAN NOT NULL COMMENT '1: removed and no longer scanned; its history is kept';
ALTER TABLE server_series
  MODIFY COLUMN weeks BLOB NOT NULL COMMENT 'Mean players per week since the first, 8 bits each, oldest first',
  MODIFY COLUMN ranks VARBINARY(110) NOT NULL
    COMMENT 'Ranks of 55 weeks, 16 bits big-endian, oldest first; 0: not ranked, 50000: 50000 or worse',
  COMMENT = 'Series of each server, encoded on a log scale; read them through the views clq_series_*';
ALTER TABLE player_week
  MODIFY COLUMN time_est_ms BIGINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'Estimated further time, ms; never ranked',
  MODIFY COLUMN points_est DOUBLE NOT NULL DEFAULT 0 COMMENT 'Estimated further points; never ranked';
ALTER TABLE server_tag
  MODIFY COLUMN tag VARCHAR(190) NOT NULL COMMENT 'Tag that an admin gave, truncated to 190 characters';
ALTER TABLE online_player
  MODIFY COLUMN display VARCHAR(256) NOT NULL COMMENT 'Name as seen, with colour codes; truncated to 256 characters',
  MODIFY COLUMN spectator BOOLEAN NOT NULL DEFAULT 0 COMMENT '1: watches and does not play',
  COMMENT = 'The last complete player list of each server that responds, without bots';
ALTER TABLE server_week
  MODIFY COLUMN closed BOOLEAN NOT NULL
    COMMENT '1: final, only corrections by an admin change it; 0: the week is running or being closed';
";

/// Orders boards of running weeks by sort keys: when a player moves up or down, only the row of
/// this player changes.
/// The positions of all weeks become orders. The daemon then writes everything again, which
/// gives the running week its sort keys. `schema.sql` creates `clq_writer`.
const MIGRATION_4: &str = "
DROP TABLE IF EXISTS clq_state;
ALTER TABLE player_week
  ADD COLUMN clq1_order VARBINARY(26) NULL COMMENT 'Orders the board by clq1, best first: the position in 4 bytes, or a sort key while the week runs; NULL: not ranked' AFTER clq2,
  ADD COLUMN clq2_order VARBINARY(26) NULL COMMENT 'Orders the board by clq2, best first: the position in 4 bytes, or a sort key while the week runs; NULL: not ranked' AFTER clq1_order,
  ADD COLUMN elo_order VARBINARY(26) NULL COMMENT 'Orders the board by elo, best first: the position in 4 bytes, or a sort key while the week runs; NULL: not ranked' AFTER clq2_order,
  ADD COLUMN points_order VARBINARY(26) NULL COMMENT 'Orders the board by points, best first: the position in 4 bytes, or a sort key while the week runs; NULL: not ranked' AFTER elo_order,
  ADD COLUMN time_order VARBINARY(26) NULL COMMENT 'Orders the board by time, best first: the position in 4 bytes, or a sort key while the week runs; NULL: not ranked' AFTER points_order,
  ADD COLUMN clq1_reached_after_ms INT UNSIGNED NULL COMMENT 'When the score in clq1 was reached, ms after the start of the week; NULL: not ranked' AFTER time_order,
  ADD COLUMN clq2_reached_after_ms INT UNSIGNED NULL COMMENT 'When the score in clq2 was reached, ms after the start of the week; NULL: not ranked' AFTER clq1_reached_after_ms,
  ADD COLUMN elo_reached_after_ms INT UNSIGNED NULL COMMENT 'When the score in elo was reached, ms after the start of the week; NULL: not ranked' AFTER clq2_reached_after_ms,
  ADD COLUMN points_reached_after_ms INT UNSIGNED NULL COMMENT 'When the score in points was reached, ms after the start of the week; NULL: not ranked' AFTER elo_reached_after_ms,
  ADD COLUMN time_reached_after_ms INT UNSIGNED NULL COMMENT 'When the score in time was reached, ms after the start of the week; NULL: not ranked' AFTER points_reached_after_ms;
UPDATE player_week SET
  clq1_order = COALESCE(clq1_order, UNHEX(LPAD(HEX(clq1_position), 8, '0'))),
  clq2_order = COALESCE(clq2_order, UNHEX(LPAD(HEX(clq2_position), 8, '0'))),
  elo_order = COALESCE(elo_order, UNHEX(LPAD(HEX(elo_position), 8, '0'))),
  points_order = COALESCE(points_order, UNHEX(LPAD(HEX(points_position), 8, '0'))),
  time_order = COALESCE(time_order, UNHEX(LPAD(HEX(time_position), 8, '0')));
ALTER TABLE player_week
  DROP INDEX player_week_by_clq1, DROP COLUMN clq1_position,
  DROP INDEX player_week_by_clq2, DROP COLUMN clq2_position,
  DROP INDEX player_week_by_elo, DROP COLUMN elo_position,
  DROP INDEX player_week_by_points, DROP COLUMN points_position,
  DROP INDEX player_week_by_time, DROP COLUMN time_position,
  ADD COLUMN clq1_position INT GENERATED ALWAYS AS (CASE WHEN LENGTH(clq1_order) = 4 THEN CAST(CONV(HEX(clq1_order), 16, 10) AS SIGNED) END) VIRTUAL COMMENT 'Position by clq1 in a closed week, 1 is best; NULL: not ranked, or the week runs: see clq_position()',
  ADD COLUMN clq2_position INT GENERATED ALWAYS AS (CASE WHEN LENGTH(clq2_order) = 4 THEN CAST(CONV(HEX(clq2_order), 16, 10) AS SIGNED) END) VIRTUAL COMMENT 'Position by clq2 in a closed week, 1 is best; NULL: not ranked, or the week runs: see clq_position()',
  ADD COLUMN elo_position INT GENERATED ALWAYS AS (CASE WHEN LENGTH(elo_order) = 4 THEN CAST(CONV(HEX(elo_order), 16, 10) AS SIGNED) END) VIRTUAL COMMENT 'Position by elo in a closed week, 1 is best; NULL: not ranked, or the week runs: see clq_position()',
  ADD COLUMN points_position INT GENERATED ALWAYS AS (CASE WHEN LENGTH(points_order) = 4 THEN CAST(CONV(HEX(points_order), 16, 10) AS SIGNED) END) VIRTUAL COMMENT 'Position by points in a closed week, 1 is best; NULL: not ranked, or the week runs: see clq_position()',
  ADD COLUMN time_position INT GENERATED ALWAYS AS (CASE WHEN LENGTH(time_order) = 4 THEN CAST(CONV(HEX(time_order), 16, 10) AS SIGNED) END) VIRTUAL COMMENT 'Position by time in a closed week, 1 is best; NULL: not ranked, or the week runs: see clq_position()',
  ADD KEY player_week_by_clq1 (week, server, clq1_order),
  ADD KEY player_week_by_clq2 (week, server, clq2_order),
  ADD KEY player_week_by_elo (week, server, elo_order),
  ADD KEY player_week_by_points (week, server, points_order),
  ADD KEY player_week_by_time (week, server, time_order);
ALTER TABLE server_week
  ADD COLUMN clq1_players INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'Players on the board by clq1',
  ADD COLUMN clq2_players INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'Players on the board by clq2',
  ADD COLUMN elo_players INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'Players on the board by elo',
  ADD COLUMN points_players INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'Players on the board by points',
  ADD COLUMN time_players INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'Players on the board by time';
ALTER TABLE server_week MODIFY COLUMN server_rank INT NULL
  COMMENT 'Rank by player_ms among all servers, 1 is best; NULL: not ranked, or not yet';
ALTER TABLE server MODIFY COLUMN server_rank INT NULL
  COMMENT 'Rank by player-seconds of server_rank_week, 1 is best; NULL: not ranked';
ALTER TABLE best_position MODIFY COLUMN position INT NOT NULL COMMENT 'Position in the week, 1 is best';
ALTER TABLE player
  ADD COLUMN name_search VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci GENERATED ALWAYS AS (name) VIRTUAL COMMENT 'The name, compared regardless of case and accents',
  ADD KEY player_by_search (name_search);
ALTER TABLE server
  ADD COLUMN online BOOLEAN NOT NULL DEFAULT 0 COMMENT '1: it responds; 0: three scans in a row were missed, or it has not responded for 20 minutes' AFTER missed,
  ADD COLUMN hostname_search VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci GENERATED ALWAYS AS (hostname) VIRTUAL COMMENT 'The name, compared regardless of case and accents',
  ADD KEY server_by_players (removed, players),
  ADD KEY server_by_game (game, removed, players),
  ADD KEY server_by_map (map, removed, players),
  ADD KEY server_by_added (removed, added_ms),
  ADD KEY server_by_search (removed, hostname_search);
ALTER TABLE map_week
  ADD COLUMN game INT UNSIGNED NULL COMMENT 'Key of the game in whose totals the row is counted; NULL: in none, such as that of a greylisted server' AFTER map;
UPDATE map_week SET game = (SELECT server.game FROM server WHERE server.server = map_week.server AND server.greylist_reason IS NULL);
CREATE TABLE IF NOT EXISTS map_total (
  week      INT UNSIGNED NOT NULL COMMENT 'Key of the week',
  game      INT UNSIGNED NOT NULL COMMENT 'Key of the game; 0: all games',
  map       INT UNSIGNED NOT NULL COMMENT 'Key of the map',
  played_ms BIGINT       NOT NULL COMMENT 'Time that the map was played on all servers, ms',
  player_ms BIGINT       NOT NULL COMMENT 'Players x time on the map on all servers, player-milliseconds',
  servers   INT          NOT NULL COMMENT 'Servers on which it was played; 0: on none any more',
  PRIMARY KEY (week, game, map),
  KEY map_total_by_players (week, game, player_ms),
  KEY map_total_by_map (map, game, week)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='One map on all servers of a game in one week: sums of map_week, changed in the same transaction';
DELETE FROM map_total;
INSERT INTO map_total (week, game, map, played_ms, player_ms, servers)
SELECT week, game, map, SUM(played_ms), SUM(player_ms), COUNT(*) FROM map_week WHERE game IS NOT NULL GROUP BY week, game, map
UNION ALL
SELECT week, 0, map, SUM(played_ms), SUM(player_ms), COUNT(*) FROM map_week WHERE game IS NOT NULL GROUP BY week, map;
";

/// Adds the totals of players by week.
const MIGRATION_5: &str = "
CREATE TABLE IF NOT EXISTS player_total (
  player       INT UNSIGNED    NOT NULL COMMENT 'Key of the player',
  week         INT UNSIGNED    NOT NULL COMMENT 'Key of the week',
  servers      INT             NOT NULL COMMENT 'Servers on which the player has a row',
  time_ms      BIGINT UNSIGNED NOT NULL COMMENT 'Time on all servers, ms',
  time_est_ms  BIGINT UNSIGNED NOT NULL COMMENT 'Estimated further time, ms; never ranked',
  points       BIGINT          NOT NULL COMMENT 'Points collected on all servers',
  points_est   DOUBLE          NOT NULL COMMENT 'Estimated further points, to thousandths; never ranked',
  last_seen_ms BIGINT          NULL COMMENT 'When the player was last seen playing in the week, Unix ms; NULL: without time',
  PRIMARY KEY (player, week)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='One player on all servers in one week: sums of player_week, computed in the same transaction';
REPLACE INTO player_total (player, week, servers, time_ms, time_est_ms, points, points_est, last_seen_ms)
SELECT pw.player, pw.week, COUNT(*), SUM(pw.time_ms), SUM(pw.time_est_ms), SUM(pw.points), ROUND(SUM(pw.points_est), 3),
  MAX(w.start_ms + pw.time_reached_after_ms)
FROM player_week pw JOIN week w ON w.week = pw.week
GROUP BY pw.player, pw.week;
";

/// A statement that renames one table, column or index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rename<'s> {
    Table { from: &'s str, to: &'s str },
    Column { table: &'s str, from: &'s str, to: &'s str },
    Index { table: &'s str, from: &'s str, to: &'s str },
}

impl<'s> Rename<'s> {
    /// `None`: the statement renames nothing.
    pub fn parse(statement: &'s str) -> Option<Rename<'s>> {
        let words: Vec<&str> = statement.split_whitespace().collect();
        match words[..] {
            ["RENAME", "TABLE", from, "TO", to] => Some(Rename::Table { from, to }),
            ["ALTER", "TABLE", table, "CHANGE", "COLUMN", from, to, ..] => Some(Rename::Column { table, from, to }),
            ["ALTER", "TABLE", table, "RENAME", "INDEX", from, "TO", to] => Some(Rename::Index { table, from, to }),
            _ => None,
        }
    }

    /// A query of one number: 1 if there is nothing to rename, because it is done or because
    /// the database never had the table. Otherwise 0, also if neither name exists in the
    /// table: then the statement fails with the reason.
    pub fn done_query(&self) -> String {
        let names = |view: &str, table: &str, column: &str, name: &str| {
            format!(
                "EXISTS (SELECT 1 FROM information_schema.{view} WHERE table_schema = DATABASE() \
                 AND table_name = '{table}' AND {column} = '{name}')"
            )
        };
        let has_table = |table: &str| names("tables", table, "table_name", table);
        match *self {
            Rename::Table { from, .. } => format!("SELECT NOT {}", has_table(from)),
            Rename::Column { table, from, to } => {
                let column = |name| names("columns", table, "column_name", name);
                format!("SELECT NOT {} OR ({} AND NOT {})", has_table(table), column(to), column(from))
            }
            Rename::Index { table, from, to } => {
                let index = |name| names("statistics", table, "index_name", name);
                format!("SELECT NOT {} OR ({} AND NOT {})", has_table(table), index(to), index(from))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::sql_script::statements;

    #[test]
    fn every_rename_is_recognised() {
        let renames: Vec<Rename> = statements(MIGRATION_3).into_iter().filter_map(Rename::parse).collect();
        assert_eq!(renames.len(), 11);
        assert_eq!(renames[0], Rename::Table { from: "server_player", to: "online_player" });
        let index = ["server_player_by_player", "online_player_by_player"];
        assert_eq!(renames[2], Rename::Index { table: "online_player", from: index[0], to: index[1] });
        assert_eq!(renames[3], Rename::Column { table: "online_player", from: "place", to: "list_index" });
        for statement in STEPS.iter().flat_map(|step| statements(step.sql)) {
            let renames = statement.contains("RENAME") || statement.contains("CHANGE");
            assert_eq!(Rename::parse(statement).is_some(), renames, "{statement}");
        }
    }
}
