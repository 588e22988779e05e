-- The archive of clqd: what websites read (docs/rules.md section 12).
--
-- For MariaDB 10.6 or later and MySQL 8.0 or later. `clqd migrate` applies this file
-- and migrates an older database; for an EMPTY database `mysql clqd < schema.sql` does
-- the same. It may be applied again at any time: tables are kept, views, functions and
-- procedures are replaced.
--
-- Accounts, to be created once by the database administrator:
--   CREATE DATABASE clqd CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
--   CREATE USER 'clqd'@'localhost' IDENTIFIED BY '...';
--   GRANT ALL PRIVILEGES ON clqd.* TO 'clqd'@'localhost';
--   CREATE USER 'website'@'localhost' IDENTIFIED BY '...';
--   and for it the views and routines, but no tables: docs/database.md lists the statements
-- If the database keeps a binary log, clqd's account may not create the functions
-- below: let the administrator run `clqd migrate` once, or set
-- log_bin_trust_function_creators=1 temporarily.
--
-- clqd writes the tables; websites should read the views (their names begin with
-- `clq_`), which exclude removed and greylisted servers.
--
-- Conventions. Times are Unix milliseconds (`_ms`), durations too. A key is a number
-- that clqd assigns to a name; it never changes and is never reused. If an admin merges
-- or forgets a player, the player's key and rows are deleted, also in closed weeks. A
-- position is 1 for the best, NULL for not ranked. Text compares byte by byte. There
-- are no foreign keys: clqd writes names before the rows that refer to them, and a week
-- of one server in one transaction.
--
-- Nothing here may need the dialect of one database server: no RETURNING, CREATE OR
-- REPLACE only for views, IF NOT EXISTS only for tables. The file is split into
-- statements at `;` and by DELIMITER lines, as the `mysql` client does.

-- Names ------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS clq_schema_version (
  version    INT UNSIGNED NOT NULL COMMENT 'Version of this schema; the largest one counts',
  applied_ms BIGINT       NOT NULL COMMENT 'When it was applied, Unix ms',
  PRIMARY KEY (version)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='Versions of the schema that were applied to this database';

CREATE TABLE IF NOT EXISTS clq_state (
  singleton TINYINT UNSIGNED NOT NULL COMMENT '1: there is at most one row',
  state_id  BIGINT UNSIGNED  NOT NULL COMMENT 'Random number that the state directory contains too. Delete the row, and clqd writes everything again',
  PRIMARY KEY (singleton)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='Which state directory of clqd fills this archive';

CREATE TABLE IF NOT EXISTS clq_writer (
  singleton TINYINT UNSIGNED NOT NULL COMMENT '1: there is at most one row',
  epoch     BIGINT UNSIGNED  NOT NULL COMMENT 'Number of the writer; each connection that writes takes the next one',
  beat      BIGINT UNSIGNED  NOT NULL COMMENT 'Transactions of this epoch; each one adds 1 and requires its epoch, so an earlier writer cannot commit',
  beat_ms   BIGINT           NULL     COMMENT 'When the last one began, Unix ms on the clock of its node; NULL: the writer has closed its connection',
  state_id  BIGINT UNSIGNED  NULL     COMMENT 'clq_state.state_id of the writer; NULL: it has none yet',
  PRIMARY KEY (singleton)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='Which connection of clqd may write';

CREATE TABLE IF NOT EXISTS clq_number (
  n INT NOT NULL COMMENT 'A whole number, 0 to 9999',
  PRIMARY KEY (n)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='The numbers 0 to 9999, with which views turn a series into rows';

CREATE TABLE IF NOT EXISTS game (
  game INT UNSIGNED NOT NULL COMMENT 'Key of the game',
  name VARCHAR(256) NOT NULL COMMENT 'Name as reported by servers, such as baseq3',
  PRIMARY KEY (game),
  KEY game_name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC
  COMMENT='Games';

CREATE TABLE IF NOT EXISTS map (
  map  INT UNSIGNED NOT NULL COMMENT 'Key of the map',
  name VARCHAR(256) NOT NULL COMMENT 'Name as reported by servers, such as q3dm17',
  PRIMARY KEY (map),
  KEY map_name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC
  COMMENT='Maps';

CREATE TABLE IF NOT EXISTS player (
  player  INT UNSIGNED NOT NULL COMMENT 'Key of the player',
  game    INT UNSIGNED NOT NULL COMMENT 'Key of the game: a player is known by name within one game',
  name    VARCHAR(256) NOT NULL COMMENT 'Normalised name: without colour codes, with single spaces, NFC',
  display VARCHAR(256) NOT NULL COMMENT 'Name as last seen, with colour codes; truncated to 256 characters',
  name_search VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci GENERATED ALWAYS AS (name) VIRTUAL COMMENT 'The name, compared regardless of case and accents',
  PRIMARY KEY (player),
  UNIQUE KEY player_game_name (game, name),
  KEY player_by_search (name_search),
  KEY player_by_game (game, name_search)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC
  COMMENT='Players';

CREATE TABLE IF NOT EXISTS player_word (
  player  INT UNSIGNED NOT NULL COMMENT 'Key of the player',
  ordinal TINYINT UNSIGNED NOT NULL COMMENT 'Number of the word among the later ones, from 1',
  word    VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci NOT NULL COMMENT 'A name from its second or a later word on, truncated to 64 characters; compared regardless of case and accents',
  game    INT UNSIGNED NOT NULL COMMENT 'Key of the game of the player',
  PRIMARY KEY (player, ordinal),
  KEY player_word_by_word (word),
  KEY player_word_by_game (game, word)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC
  COMMENT='Beginnings of words in names of players, for searches; the first word is in player.name_search';

CREATE TABLE IF NOT EXISTS week (
  week     INT UNSIGNED NOT NULL COMMENT 'Key of the week: whole weeks since Monday 1969-12-29',
  label    VARCHAR(16)  NOT NULL COMMENT 'ISO label, such as 2026-W47',
  start_ms BIGINT       NOT NULL COMMENT 'First moment of the week, Unix ms',
  end_ms   BIGINT       NOT NULL COMMENT 'First moment after the week, Unix ms',
  checksum INT UNSIGNED NULL COMMENT 'Checksum of all rows of player_week in a closed week: the XOR of server_week.checksum; NULL: not closed everywhere, or the rows were deleted',
  PRIMARY KEY (week),
  UNIQUE KEY week_label (label)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='Weeks, Monday 00:00 to Monday 00:00 in the time zone of the daemon';

-- Servers ----------------------------------------------------------------

CREATE TABLE IF NOT EXISTS server (
  server          INT UNSIGNED     NOT NULL COMMENT 'Key of the server',
  url             VARCHAR(280)     NOT NULL COMMENT 'scheme://host:port',
  hostname        VARCHAR(256)     NOT NULL COMMENT 'Name that the server reports; truncated to 256 characters',
  game            INT UNSIGNED     NULL COMMENT 'Key of the game; NULL: never seen',
  map             INT UNSIGNED     NULL COMMENT 'Key of the map now; NULL: never seen',
  slots           INT UNSIGNED     NOT NULL COMMENT 'Player slots; 0: the protocol does not report them',
  class           TINYINT UNSIGNED NOT NULL COMMENT 'Scan class, 1 (every 2 minutes) to 7',
  missed          INT UNSIGNED     NOT NULL COMMENT 'Scans missed since the last snapshot',
  online          BOOLEAN          NOT NULL DEFAULT 0 COMMENT '1: it responds; 0: three scans in a row were missed, or it has not responded for 20 minutes',
  players         INT UNSIGNED     NOT NULL COMMENT 'Players now, without bots; 0 if the server no longer responds',
  assumed_players INT UNSIGNED     NOT NULL COMMENT 'Median of the last three counts of players',
  total_points    BIGINT           NOT NULL COMMENT 'Sum of the points in the last complete list',
  bots_unidentified INT UNSIGNED   NOT NULL DEFAULT 0 COMMENT 'Bots in the last list that could not be distinguished from players',
  added_ms        BIGINT           NOT NULL COMMENT 'When the server became known, Unix ms',
  last_scan_ms    BIGINT           NULL COMMENT 'When it was last scanned, Unix ms; NULL: never',
  last_seen_ms    BIGINT           NULL COMMENT 'When it last responded, Unix ms; NULL: never',
  server_rank     INT              NULL COMMENT 'Rank by player-seconds of server_rank_week, 1 is best; NULL: not ranked',
  server_rank_week INT UNSIGNED    NULL COMMENT 'Key of the week that the rank comes from',
  greylist_reason VARCHAR(1000)    NULL COMMENT 'Why it is excluded from rankings, truncated to 1000 characters; NULL: it is not',
  removed         BOOLEAN          NOT NULL COMMENT '1: removed and no longer scanned; its history is kept',
  hostname_search VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci GENERATED ALWAYS AS (hostname) VIRTUAL COMMENT 'The name, compared regardless of case and accents',
  PRIMARY KEY (server),
  UNIQUE KEY server_url (url),
  KEY server_by_rank (server_rank),
  KEY server_by_players (removed, players),
  KEY server_by_game (game, removed, players),
  KEY server_by_game_rank (game, removed, server_rank),
  KEY server_by_map (map, removed, players),
  KEY server_by_added (removed, added_ms),
  KEY server_by_search (removed, hostname_search)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC
  COMMENT='Servers: what is known of each now';

CREATE TABLE IF NOT EXISTS server_series (
  server           INT UNSIGNED   NOT NULL COMMENT 'Key of the server',
  newest_ten_minutes_ms BIGINT    NOT NULL COMMENT 'Start of the newest ten minutes, Unix ms; 0: none yet',
  newest_hour_ms   BIGINT         NOT NULL COMMENT 'Start of the newest hour, Unix ms; 0: none yet',
  newest_day_ms    BIGINT         NOT NULL COMMENT 'Start of the newest local day, Unix ms; 0: none yet',
  newest_week_ms   BIGINT         NOT NULL COMMENT 'Start of the newest local week, Unix ms; 0: none yet',
  ten_minutes      VARBINARY(250) NOT NULL COMMENT 'Mean players per ten minutes, 150 values of 13 bits, oldest first',
  hours            VARBINARY(768) NOT NULL COMMENT 'Mean players per hour, 768 values of 8 bits, oldest first',
  days             VARBINARY(366) NOT NULL COMMENT 'Mean players per day, 365 values of 8 bits, oldest first',
  weeks            BLOB           NOT NULL COMMENT 'Mean players per week since the first, 8 bits each, oldest first',
  ranks            VARBINARY(110) NOT NULL COMMENT 'Ranks of 55 weeks, 16 bits big-endian, oldest first; 0: not ranked, 50000: 50000 or worse',
  newest_rank_week INT UNSIGNED   NULL COMMENT 'Key of the week of the newest rank; NULL: none yet',
  PRIMARY KEY (server)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC
  COMMENT='Series of each server, encoded on a log scale; read them through the views clq_series_*';

CREATE TABLE IF NOT EXISTS server_tag (
  server      INT UNSIGNED NOT NULL COMMENT 'Key of the server',
  tag         VARCHAR(190) NOT NULL COMMENT 'Tag that an admin gave, truncated to 190 characters',
  players     INT UNSIGNED NOT NULL COMMENT 'server.players, to order the servers of a tag',
  server_rank INT          NULL COMMENT 'server.server_rank, likewise; NULL: not ranked, or removed',
  PRIMARY KEY (server, tag),
  KEY server_tag_by_players (tag, players),
  KEY server_tag_by_rank (tag, server_rank)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC
  COMMENT='Tags of servers';

CREATE TABLE IF NOT EXISTS server_word (
  server  INT UNSIGNED NOT NULL COMMENT 'Key of the server',
  ordinal TINYINT UNSIGNED NOT NULL COMMENT 'Number of the word among the later ones, from 1',
  word    VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci NOT NULL COMMENT 'A host name from its second or a later word on, truncated to 64 characters; compared regardless of case and accents',
  PRIMARY KEY (server, ordinal),
  KEY server_word_by_word (word)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC
  COMMENT='Beginnings of words in host names of servers that are not removed, for searches; the first word is in server.hostname_search';

CREATE TABLE IF NOT EXISTS server_screening (
  server     INT UNSIGNED NOT NULL COMMENT 'Key of the server',
  reason     VARCHAR(40)  NOT NULL COMMENT 'Check that applied, such as frozen_list',
  applied_ms BIGINT       NOT NULL COMMENT 'When it last applied, Unix ms',
  PRIMARY KEY (server, reason)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC
  COMMENT='Why lists of a server, or parts of them, were not used within the last 7 days';

CREATE TABLE IF NOT EXISTS online_player (
  server     INT UNSIGNED NOT NULL COMMENT 'Key of the server',
  list_index INT UNSIGNED NOT NULL COMMENT 'Index in the player list of the server, from 1',
  name       VARCHAR(256) NOT NULL COMMENT 'Normalised name',
  display    VARCHAR(256) NOT NULL COMMENT 'Name as seen, with colour codes; truncated to 256 characters',
  points     BIGINT       NULL COMMENT 'Points that the server shows; NULL: its protocol has none',
  player     INT UNSIGNED NULL COMMENT 'Key of the player; NULL: a name that is not ranked',
  spectator  BOOLEAN      NOT NULL DEFAULT 0 COMMENT '1: watches and does not play',
  game       INT UNSIGNED NULL COMMENT 'server.game',
  name_search VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci GENERATED ALWAYS AS (name) VIRTUAL COMMENT 'The name, compared regardless of case and accents',
  PRIMARY KEY (server, list_index),
  KEY online_player_by_player (player),
  KEY online_player_by_search (name_search),
  KEY online_player_by_points (game, points)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC
  COMMENT='The last complete player list of each server that responds, without bots';

-- Weeks ------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS server_week (
  week        INT UNSIGNED    NOT NULL COMMENT 'Key of the week',
  server      INT UNSIGNED    NOT NULL COMMENT 'Key of the server',
  game        INT UNSIGNED    NULL COMMENT 'Key of its game when the row was written; NULL: unknown, or its maps are in no totals, such as those of a greylisted server',
  server_rank INT             NULL COMMENT 'Rank by player_ms among all servers, 1 is best; NULL: not ranked, or not yet',
  player_ms   BIGINT UNSIGNED NOT NULL COMMENT 'Players x time, player-milliseconds',
  closed      BOOLEAN         NOT NULL COMMENT '1: final, only corrections by an admin change it; 0: the week is running or being closed',
  clq1_players INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'Players on the board by clq1',
  clq2_players INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'Players on the board by clq2',
  elo_players INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'Players on the board by elo',
  points_players INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'Players on the board by points',
  time_players INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'Players on the board by time',
  checksum    INT UNSIGNED    NULL COMMENT 'Checksum of the rows of player_week, computed from the state: the statement is in docs/database.md; NULL: not closed, or there are none',
  previous_rank INT           NULL COMMENT 'server_rank of the week before; NULL: none, or not ranked in this week',
  moved       INT GENERATED ALWAYS AS (previous_rank - server_rank) VIRTUAL COMMENT 'Ranks gained since the week before; NULL: not ranked in both',
  PRIMARY KEY (week, server),
  KEY server_week_by_rank (week, server_rank),
  KEY server_week_by_game (week, game, server_rank),
  KEY server_week_by_moved (week, moved),
  KEY server_week_by_server (server, week)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='One server in one week';

CREATE TABLE IF NOT EXISTS player_week (
  week            INT UNSIGNED    NOT NULL COMMENT 'Key of the week',
  server          INT UNSIGNED    NOT NULL COMMENT 'Key of the server',
  player          INT UNSIGNED    NOT NULL COMMENT 'Key of the player',
  measured_ms     BIGINT UNSIGNED NOT NULL COMMENT 'Measured time, ms',
  starts          INT UNSIGNED    NOT NULL COMMENT 'Times that the player entered',
  time_ms         BIGINT UNSIGNED NOT NULL COMMENT 'Time: measured time and 60 s for each start, ms',
  time_est_ms     BIGINT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'Estimated time, ms; never ranked',
  points          BIGINT          NOT NULL COMMENT 'Points collected',
  points_est      DOUBLE          NOT NULL DEFAULT 0 COMMENT 'Estimated points; never ranked',
  elo             DOUBLE          NOT NULL COMMENT 'ELO rating; shown rounded half up',
  elo_rounds      INT UNSIGNED    NOT NULL COMMENT 'Rounds that the rating comes from',
  elo_rounds_sure INT UNSIGNED    NOT NULL DEFAULT 0 COMMENT 'Those of them whose winner is sure: the last list shows the end of the round',
  time_est_variance INT UNSIGNED  NOT NULL DEFAULT 0 COMMENT 'Variance of time_est_ms, s2: the view has the interval',
  time_connected_ms BIGINT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'As time_est_ms, with connected times where the protocol has them, ms; never ranked',
  time_connected_variance INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'Variance of time_connected_ms, s2',
  points_est_variance BIGINT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'Variance of points_est, thousandths of a point squared',
  clq1            BIGINT UNSIGNED NOT NULL COMMENT 'CLQ1: sum of the ten best segments of 720 s, thousandths of a point',
  clq2            BIGINT UNSIGNED NOT NULL COMMENT 'CLQ2: sum of the ten best games',
  clq1_order      VARBINARY(26)   NULL COMMENT 'Orders the board by clq1, best first: the position in 4 bytes, or a sort key while the week runs; NULL: not ranked',
  clq2_order      VARBINARY(26)   NULL COMMENT 'Orders the board by clq2, best first: the position in 4 bytes, or a sort key while the week runs; NULL: not ranked',
  elo_order       VARBINARY(26)   NULL COMMENT 'Orders the board by elo, best first: the position in 4 bytes, or a sort key while the week runs; NULL: not ranked',
  points_order    VARBINARY(26)   NULL COMMENT 'Orders the board by points, best first: the position in 4 bytes, or a sort key while the week runs; NULL: not ranked',
  time_order      VARBINARY(26)   NULL COMMENT 'Orders the board by time, best first: the position in 4 bytes, or a sort key while the week runs; NULL: not ranked',
  clq1_reached_after_ms INT UNSIGNED NULL COMMENT 'When the score in clq1 was reached, ms after the start of the week; NULL: not ranked',
  clq2_reached_after_ms INT UNSIGNED NULL COMMENT 'When the score in clq2 was reached, ms after the start of the week; NULL: not ranked',
  elo_reached_after_ms INT UNSIGNED NULL COMMENT 'When the score in elo was reached, ms after the start of the week; NULL: not ranked',
  points_reached_after_ms INT UNSIGNED NULL COMMENT 'When the score in points was reached, ms after the start of the week; NULL: not ranked',
  time_reached_after_ms INT UNSIGNED NULL COMMENT 'When the score in time was reached, ms after the start of the week; NULL: not ranked',
  clq1_segments   VARBINARY(200)  NULL COMMENT 'The ten best segments, for clqd restore: of each its value and ms after the start of the week, as LEB128; NULL: none',
  clq2_games      VARBINARY(200)  NULL COMMENT 'The ten best games, likewise; NULL: none',
  clq1_position INT GENERATED ALWAYS AS (CASE WHEN LENGTH(clq1_order) = 4 THEN CAST(CONV(HEX(clq1_order), 16, 10) AS SIGNED) END) VIRTUAL COMMENT 'Position by clq1 in a closed week, 1 is best; NULL: not ranked, or the week runs: see clq_position()',
  clq2_position INT GENERATED ALWAYS AS (CASE WHEN LENGTH(clq2_order) = 4 THEN CAST(CONV(HEX(clq2_order), 16, 10) AS SIGNED) END) VIRTUAL COMMENT 'Position by clq2 in a closed week, 1 is best; NULL: not ranked, or the week runs: see clq_position()',
  elo_position INT GENERATED ALWAYS AS (CASE WHEN LENGTH(elo_order) = 4 THEN CAST(CONV(HEX(elo_order), 16, 10) AS SIGNED) END) VIRTUAL COMMENT 'Position by elo in a closed week, 1 is best; NULL: not ranked, or the week runs: see clq_position()',
  points_position INT GENERATED ALWAYS AS (CASE WHEN LENGTH(points_order) = 4 THEN CAST(CONV(HEX(points_order), 16, 10) AS SIGNED) END) VIRTUAL COMMENT 'Position by points in a closed week, 1 is best; NULL: not ranked, or the week runs: see clq_position()',
  time_position INT GENERATED ALWAYS AS (CASE WHEN LENGTH(time_order) = 4 THEN CAST(CONV(HEX(time_order), 16, 10) AS SIGNED) END) VIRTUAL COMMENT 'Position by time in a closed week, 1 is best; NULL: not ranked, or the week runs: see clq_position()',
  PRIMARY KEY (week, server, player),
  KEY player_week_by_clq1 (week, server, clq1_order),
  KEY player_week_by_clq2 (week, server, clq2_order),
  KEY player_week_by_elo (week, server, elo_order),
  KEY player_week_by_points (week, server, points_order),
  KEY player_week_by_time (week, server, time_order),
  KEY player_week_by_player (player, week, server)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='One player on one server in one week; scores and positions of one server are of one moment';

-- Positions while a week runs. When a player moves up or down, the positions of all players in
-- between change. So rows have sort keys instead of positions, and only the sort key at every 32nd position is stored here. clq_position() and
-- clq_order_at() count from the step before. A board of more than 32,768 players has at most
-- 2,048 steps, further apart. A closed week has no steps: its rows have positions.
CREATE TABLE IF NOT EXISTS board_step (
  week        INT UNSIGNED  NOT NULL COMMENT 'Key of the week',
  server      INT UNSIGNED  NOT NULL COMMENT 'Key of the server',
  ranking     ENUM('clq1', 'clq2', 'elo', 'points', 'time') NOT NULL COMMENT 'Ranking of the board',
  position    INT           NOT NULL COMMENT 'A position, 1 is best',
  board_order VARBINARY(26) NOT NULL COMMENT 'Sort key of the row at this position, such as player_week.clq1_order',
  PRIMARY KEY (week, server, ranking, position),
  KEY board_step_by_order (week, server, ranking, board_order)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='Sort keys at some positions of the boards of running weeks';

CREATE TABLE IF NOT EXISTS best_position (
  server   INT UNSIGNED                NOT NULL COMMENT 'Key of the server',
  player   INT UNSIGNED                NOT NULL COMMENT 'Key of the player',
  ranking  ENUM('clq1', 'clq2', 'elo') NOT NULL COMMENT 'The ranking that the position is in',
  ordinal  TINYINT UNSIGNED            NOT NULL COMMENT '1, 2 or 3: the best, second and third best position',
  position INT                         NOT NULL COMMENT 'Position in the week, 1 is best',
  week     INT UNSIGNED                NOT NULL COMMENT 'Key of the closed week in which it was reached',
  PRIMARY KEY (server, player, ranking, ordinal),
  KEY best_position_by_position (server, ranking, position, week),
  KEY best_position_by_player (player, ranking, position)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='The three best positions so far of each player on each server; closed weeks only';

CREATE TABLE IF NOT EXISTS map_week (
  week            INT UNSIGNED    NOT NULL COMMENT 'Key of the week',
  server          INT UNSIGNED    NOT NULL COMMENT 'Key of the server',
  map             INT UNSIGNED    NOT NULL COMMENT 'Key of the map',
  game            INT UNSIGNED    NULL COMMENT 'Key of the game in whose totals the row is counted; NULL: in none, such as that of a server that is greylisted, or was when the week was closed',
  played_ms       BIGINT UNSIGNED NOT NULL COMMENT 'Time that the map was played, ms',
  player_ms       BIGINT UNSIGNED NOT NULL COMMENT 'Players x time on the map, player-milliseconds',
  minutes         DOUBLE GENERATED ALWAYS AS (played_ms / 60000e0) VIRTUAL COMMENT 'Time that the map was played, minutes',
  average_players DOUBLE GENERATED ALWAYS AS (player_ms / NULLIF(played_ms, 0e0)) VIRTUAL COMMENT 'Mean players while it was played; NULL: never played',
  PRIMARY KEY (week, server, map),
  KEY map_week_by_map (map, week, server)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='One map on one server in one week';

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

CREATE TABLE IF NOT EXISTS player_total (
  player       INT UNSIGNED    NOT NULL COMMENT 'Key of the player',
  week         INT UNSIGNED    NOT NULL COMMENT 'Key of the week',
  servers      INT             NOT NULL COMMENT 'Servers on which the player has a row',
  time_ms      BIGINT UNSIGNED NOT NULL COMMENT 'Time on all servers, ms',
  time_est_ms  BIGINT UNSIGNED NOT NULL COMMENT 'Estimated time, ms; never ranked',
  points       BIGINT          NOT NULL COMMENT 'Points collected on all servers',
  points_est   DOUBLE          NOT NULL COMMENT 'Estimated points, to thousandths; never ranked',
  elo_rounds   INT UNSIGNED    NOT NULL COMMENT 'Rated rounds',
  elo_rounds_sure INT UNSIGNED NOT NULL COMMENT 'Those of them whose winner is sure',
  time_est_variance BIGINT UNSIGNED NOT NULL COMMENT 'Variance of time_est_ms, s2: the view has the interval',
  points_est_variance BIGINT UNSIGNED NOT NULL COMMENT 'Variance of points_est, thousandths of a point squared',
  last_seen_ms BIGINT          NULL COMMENT 'When the player was last seen playing in the week, Unix ms; NULL: without time',
  PRIMARY KEY (player, week)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='One player on all servers in one week: sums of player_week, computed in the same transaction';

CREATE TABLE IF NOT EXISTS player_session (
  server   INT UNSIGNED NOT NULL COMMENT 'Key of the server',
  end_ms   BIGINT       NOT NULL COMMENT 'When the player was last seen on the server, Unix ms',
  player   INT UNSIGNED NOT NULL COMMENT 'Key of the player',
  origin   INT UNSIGNED NOT NULL COMMENT 'Key of the player before merges; two merged players may have ended in the same moment',
  start_ms BIGINT       NOT NULL COMMENT 'When the player was first seen on the server, Unix ms',
  points   BIGINT       NULL COMMENT 'Points collected; NULL: the protocol has none',
  map      INT UNSIGNED NOT NULL COMMENT 'Key of the map on which the player was last seen',
  seen     INT UNSIGNED NOT NULL COMMENT 'Scans that saw the player',
  PRIMARY KEY (server, end_ms, player, origin),
  KEY player_session_by_player (player, end_ms),
  KEY player_session_by_end (end_ms)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='One complete presence of a player on a server';

-- Published boards ------------------------------------------------------

CREATE TABLE IF NOT EXISTS top_board (
  board        BIGINT UNSIGNED NOT NULL COMMENT 'Key of the board, derived from scope, window and ranking',
  scope_type   ENUM('all', 'game', 'tag') NOT NULL COMMENT 'Whose board it is: of all games, of a game, of the servers with a tag',
  scope        VARCHAR(256)    NOT NULL COMMENT 'Name of the game or tag; empty for all games',
  window_type  VARCHAR(64)     NOT NULL COMMENT 'Type of the window, such as week, day or all-time',
  window_label VARCHAR(64)     NOT NULL COMMENT 'Label of the window, such as 2026-W47',
  start_ms     BIGINT          NULL COMMENT 'First moment of the window, Unix ms; NULL: it has none',
  end_ms       BIGINT          NULL COMMENT 'First moment after the window, Unix ms; NULL: it has none',
  ranking      ENUM('clq1', 'clq2', 'elo', 'points', 'time') NOT NULL COMMENT 'Ranking of the board',
  players      INT UNSIGNED    NOT NULL COMMENT 'Players on the whole board',
  closed       BOOLEAN         NOT NULL COMMENT '1: the window has ended',
  published_ms BIGINT          NOT NULL COMMENT 'When the board last changed here, Unix ms',
  PRIMARY KEY (board),
  UNIQUE KEY top_board_by_scope (scope_type, scope, window_type, window_label, ranking)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC
  COMMENT='Published boards of games, tags and all games';

CREATE TABLE IF NOT EXISTS top_board_row (
  board      BIGINT UNSIGNED NOT NULL COMMENT 'Key of the board',
  position   INT             NOT NULL COMMENT 'Position, 1 is best, up to 1000',
  player     INT UNSIGNED    NOT NULL COMMENT 'Key of the player',
  score      DOUBLE          NOT NULL COMMENT 'Score: points per second (clq1), points (clq2, points), rating (elo), seconds (time)',
  reached_ms BIGINT          NOT NULL COMMENT 'When the score was reached, Unix ms',
  previous_position INT      NULL COMMENT 'Position on the published board of the window before; NULL: not among its best 1000',
  moved      INT GENERATED ALWAYS AS (previous_position - position) VIRTUAL COMMENT 'Positions gained since the window before; NULL: not among its best 1000',
  PRIMARY KEY (board, position),
  KEY top_board_row_by_moved (board, moved),
  KEY top_board_row_by_player (player, board)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='The 1000 best players of each published board, of one moment';

CREATE TABLE IF NOT EXISTS online_total (
  game    INT UNSIGNED NOT NULL COMMENT 'Key of the game; 0: all games',
  at_ms   BIGINT       NOT NULL COMMENT 'Start of ten minutes, Unix ms',
  players INT UNSIGNED NOT NULL COMMENT 'Players on online servers at the last publication within these ten minutes',
  servers INT UNSIGNED NOT NULL COMMENT 'Online servers at that time',
  PRIMARY KEY (game, at_ms),
  KEY online_total_by_time (at_ms)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='Players and servers online over time, of each game and of all';

CREATE TABLE IF NOT EXISTS online_hour (
  game        INT UNSIGNED NOT NULL COMMENT 'Key of the game; 0: all games',
  at_ms       BIGINT       NOT NULL COMMENT 'Start of the hour, Unix ms',
  players     DOUBLE       NOT NULL COMMENT 'Mean players: sum of online_total.players, divided by the number of values of all games',
  players_max INT UNSIGNED NOT NULL COMMENT 'Most players in online_total',
  servers     DOUBLE       NOT NULL COMMENT 'Mean servers',
  PRIMARY KEY (game, at_ms),
  KEY online_hour_by_time (at_ms)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='Players and servers online by hour, of each game and of all: from online_total';

CREATE TABLE IF NOT EXISTS online_day (
  game          INT UNSIGNED NOT NULL COMMENT 'Key of the game; 0: all games',
  at_ms         BIGINT       NOT NULL COMMENT 'Start of the local day, Unix ms',
  players       DOUBLE       NOT NULL COMMENT 'Mean players: sum of online_hour.players, divided by the number of hours of all games',
  players_max   INT UNSIGNED NOT NULL COMMENT 'Most players in online_hour',
  servers       DOUBLE       NOT NULL COMMENT 'Mean servers',
  players_known BIGINT       NULL COMMENT 'Known players at the last publication of the day, without merged and forgotten ones; NULL: only known of all games',
  PRIMARY KEY (game, at_ms)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='Players and servers online by day, of each game and of all: from online_hour';

CREATE TABLE IF NOT EXISTS tag_total (
  tag            VARCHAR(190) NOT NULL COMMENT 'Tag',
  servers        INT UNSIGNED NOT NULL COMMENT 'Servers with the tag that are not removed',
  servers_online INT UNSIGNED NOT NULL COMMENT 'Those that respond',
  players        INT UNSIGNED NOT NULL COMMENT 'Players on them now',
  PRIMARY KEY (tag)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC
  COMMENT='Totals of each tag now';

CREATE TABLE IF NOT EXISTS site_total (
  singleton          TINYINT UNSIGNED NOT NULL COMMENT '1: there is at most one row',
  at_ms              BIGINT           NOT NULL COMMENT 'When the totals were counted, Unix ms',
  players_known      BIGINT UNSIGNED  NOT NULL COMMENT 'Known players',
  servers            BIGINT UNSIGNED  NOT NULL COMMENT 'Known servers that are not removed',
  servers_online     BIGINT UNSIGNED  NOT NULL COMMENT 'Servers that respond',
  servers_greylisted BIGINT UNSIGNED  NOT NULL COMMENT 'Servers that are excluded from rankings',
  servers_class1     BIGINT UNSIGNED  NOT NULL COMMENT 'Servers of scan class 1',
  servers_class2     BIGINT UNSIGNED  NOT NULL COMMENT 'Servers of scan class 2',
  servers_class3     BIGINT UNSIGNED  NOT NULL COMMENT 'Servers of scan class 3',
  servers_class4     BIGINT UNSIGNED  NOT NULL COMMENT 'Servers of scan class 4',
  servers_class5     BIGINT UNSIGNED  NOT NULL COMMENT 'Servers of scan class 5',
  servers_class6     BIGINT UNSIGNED  NOT NULL COMMENT 'Servers of scan class 6',
  servers_class7     BIGINT UNSIGNED  NOT NULL COMMENT 'Servers of scan class 7',
  PRIMARY KEY (singleton)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='Totals of all servers now';

INSERT IGNORE INTO clq_number (n)
WITH digit (d) AS (
  SELECT 0 UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
  UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9
)
SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d
FROM digit a CROSS JOIN digit b CROSS JOIN digit c CROSS JOIN digit e;

-- Lists for websites -----------------------------------------------------

-- A server's board of a week. By ranking:
--   WHERE week = ? AND server = ? AND clq1_order IS NOT NULL ORDER BY clq1_order LIMIT 20
-- The next page: AND clq1_order > (the clq1_order of the last row)
-- A page by number: AND clq1_order >= (the result of SELECT clq_order_at(week, server, 'clq1', 101))
-- The first position of a page: SELECT clq_position(week, server, 'clq1', (its first clq1_order))
CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_player_week AS
SELECT pw.week, w.label AS week_label, sw.closed, pw.server, s.url, s.hostname, pw.player, p.game, p.name, p.display,
  pw.clq1_position, pw.clq2_position, pw.elo_position, pw.points_position, pw.time_position,
  pw.clq1_order, pw.clq2_order, pw.elo_order, pw.points_order, pw.time_order,
  w.start_ms + pw.clq1_reached_after_ms AS clq1_reached_ms, w.start_ms + pw.clq2_reached_after_ms AS clq2_reached_ms,
  w.start_ms + pw.elo_reached_after_ms AS elo_reached_ms, w.start_ms + pw.points_reached_after_ms AS points_reached_ms,
  w.start_ms + pw.time_reached_after_ms AS time_reached_ms,
  pw.clq1, pw.clq1 / 7200000e0 AS clq1_points_per_second, pw.clq2,
  pw.elo, FLOOR(pw.elo + 0.5e0) AS elo_rounded, pw.elo_rounds, pw.elo_rounds_sure,
  pw.points, pw.points_est,
  -- In four cases of five the true value is closer to the estimate than its error.
  1.281552e0 * SQRT(pw.points_est_variance / 1e3) AS points_est_error,
  pw.time_ms, pw.time_est_ms, ROUND(1281.552e0 * SQRT(pw.time_est_variance)) AS time_est_error_ms,
  pw.time_connected_ms, ROUND(1281.552e0 * SQRT(pw.time_connected_variance)) AS time_connected_error_ms,
  pw.measured_ms, pw.starts
FROM player_week pw
JOIN server s ON s.server = pw.server
-- Every row has these. A left join is left out of the plan if a query uses none of its columns.
LEFT JOIN player p ON p.player = pw.player
LEFT JOIN week w ON w.week = pw.week
LEFT JOIN server_week sw ON sw.week = pw.week AND sw.server = pw.server
WHERE s.removed = 0 AND s.greylist_reason IS NULL;

-- When players were on servers. Of a player, the newest first:
--   WHERE player = ? ORDER BY end_ms DESC LIMIT 20
-- On a server since a time:
--   WHERE server = ? AND end_ms >= ? ORDER BY end_ms DESC
CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_player_session AS
SELECT ps.server, s.url, s.hostname, ps.player, p.game, p.name, p.display,
  ps.start_ms, ps.end_ms, ps.end_ms - ps.start_ms AS length_ms, ps.points, ps.map, m.name AS map_name, ps.seen
FROM player_session ps
JOIN server s ON s.server = ps.server
LEFT JOIN player p ON p.player = ps.player
LEFT JOIN map m ON m.map = ps.map
WHERE s.removed = 0 AND s.greylist_reason IS NULL;

-- All-time best on a server, or of a player. By ranking:
--   WHERE server = ? AND ranking = 'clq1' ORDER BY position, week LIMIT 20
CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_best_position AS
SELECT b.server, s.url, s.hostname, b.player, p.game, p.name, p.display,
  b.ranking, b.ordinal, b.position, b.week, w.label AS week_label
FROM best_position b
JOIN server s ON s.server = b.server
JOIN player p ON p.player = b.player
JOIN week w ON w.week = b.week
WHERE s.removed = 0 AND s.greylist_reason IS NULL;

-- The first of each closed week on a server, with the score: its records are the highest of them.
--   WHERE server = ? ORDER BY week
-- Without the hint, MariaDB may read all players of the week.
CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_clq1_winners AS
SELECT pw.week, w.label AS week_label, pw.server, s.hostname, pw.player, p.display, pw.clq1 / 7200000e0 AS score,
  w.start_ms + pw.clq1_reached_after_ms AS reached_ms
FROM week w
JOIN player_week pw FORCE INDEX (player_week_by_clq1) ON pw.week = w.week AND pw.clq1_order = X'00000001'
JOIN server s ON s.server = pw.server
LEFT JOIN player p ON p.player = pw.player
WHERE s.removed = 0 AND s.greylist_reason IS NULL;

CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_clq2_winners AS
SELECT pw.week, w.label AS week_label, pw.server, s.hostname, pw.player, p.display, pw.clq2 AS score,
  w.start_ms + pw.clq2_reached_after_ms AS reached_ms
FROM week w
JOIN player_week pw FORCE INDEX (player_week_by_clq2) ON pw.week = w.week AND pw.clq2_order = X'00000001'
JOIN server s ON s.server = pw.server
LEFT JOIN player p ON p.player = pw.player
WHERE s.removed = 0 AND s.greylist_reason IS NULL;

CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_elo_winners AS
SELECT pw.week, w.label AS week_label, pw.server, s.hostname, pw.player, p.display, pw.elo AS score,
  w.start_ms + pw.elo_reached_after_ms AS reached_ms
FROM week w
JOIN player_week pw FORCE INDEX (player_week_by_elo) ON pw.week = w.week AND pw.elo_order = X'00000001'
JOIN server s ON s.server = pw.server
LEFT JOIN player p ON p.player = pw.player
WHERE s.removed = 0 AND s.greylist_reason IS NULL;

-- Servers in order of player time in a week:
--   WHERE week = ? AND server_rank IS NOT NULL ORDER BY server_rank LIMIT 100
-- Of a game: AND game = ?. Which moved up most:
--   WHERE week = ? AND moved IS NOT NULL ORDER BY moved DESC LIMIT 20
CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_server_ranking AS
SELECT sw.week, w.label AS week_label, sw.closed, sw.server_rank, sw.previous_rank, sw.moved, sw.server, s.url, s.hostname,
  sw.game,
  sw.player_ms, sw.player_ms / 3600000e0 AS player_hours,
  sw.clq1_players, sw.clq2_players, sw.elo_players, sw.points_players, sw.time_players
FROM server_week sw
JOIN server s ON s.server = sw.server
JOIN week w ON w.week = sw.week
WHERE s.removed = 0 AND s.greylist_reason IS NULL;

-- Maps of a server, or servers of a map, in a week.
CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_maps AS
SELECT mw.week, w.label AS week_label, sw.closed, mw.server, s.url, s.hostname, mw.map, m.name AS map_name,
  mw.minutes, mw.average_players, mw.played_ms, mw.player_ms
FROM map_week mw
JOIN server s ON s.server = mw.server
JOIN map m ON m.map = mw.map
JOIN week w ON w.week = mw.week
JOIN server_week sw ON sw.week = mw.week AND sw.server = mw.server
WHERE s.removed = 0 AND s.greylist_reason IS NULL;

-- Maps by the time that players spent on them in a week; game 0 is all games:
--   WHERE week = ? AND game = 0 ORDER BY player_ms DESC LIMIT 20
CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_map_ranking AS
SELECT mt.week, mt.game, mt.map, m.name AS map_name, mt.played_ms, mt.player_ms, mt.servers,
  mt.player_ms / NULLIF(mt.played_ms, 0) AS average_players
FROM map_total mt
JOIN map m ON m.map = mt.map
WHERE mt.servers > 0;

-- Players by name, regardless of case and accents, by the beginning of the name or of a later
-- word in it:
--   SELECT player FROM clq_players WHERE name_search LIKE 'vis%' LIMIT 200
--   SELECT player FROM clq_player_words WHERE word LIKE 'vis%' LIMIT 200
-- Within a game:
--   SELECT player FROM clq_game_players WHERE game = ? AND name_search LIKE 'vis%' LIMIT 200
--   SELECT player FROM clq_player_words WHERE game = ? AND word LIKE 'vis%' LIMIT 200
CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_players AS
SELECT p.player, p.game, g.name AS game_name, p.name, p.display, p.name_search
FROM player p
LEFT JOIN game g ON g.game = p.game;

-- Without the hint, MariaDB reads all players of the game.
CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_game_players AS
SELECT game, player, name, display, name_search
FROM player FORCE INDEX (player_by_game);

-- A player by week, on all servers, also those that other views exclude. The first row is the first week:
--   WHERE player = ? ORDER BY week
CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_player_total AS
SELECT pt.player, pt.week, w.label AS week_label, w.start_ms, pt.servers, pt.time_ms, pt.time_est_ms,
  ROUND(1281.552e0 * SQRT(pt.time_est_variance)) AS time_est_error_ms, pt.points, pt.points_est,
  1.281552e0 * SQRT(pt.points_est_variance / 1e3) AS points_est_error, pt.elo_rounds, pt.elo_rounds_sure,
  pt.last_seen_ms
FROM player_total pt
JOIN week w ON w.week = pt.week;

CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_player_words AS
SELECT pw.word, pw.player, pw.game, p.name, p.display
FROM player_word pw
JOIN player p ON p.player = pw.player;

CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_games AS
SELECT game, name FROM game;

CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_map_names AS
SELECT map, name FROM map;

CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_weeks AS
SELECT week, label, start_ms, end_ms FROM week;

-- Published boards of games, tags and all games. The top of one:
--   WHERE scope_type = 'all' AND scope = '' AND window_type = 'week' AND window_label = '2026-W47' AND ranking = 'clq1'
--   ORDER BY position LIMIT 20
CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_top_board AS
SELECT b.scope_type, b.scope, b.window_type, b.window_label, b.start_ms, b.end_ms, b.ranking, b.players, b.closed,
  b.published_ms, b.board, r.position, r.player, p.game, p.name, p.display, r.score, r.reached_ms,
  r.previous_position, r.moved
FROM top_board b
JOIN top_board_row r ON r.board = b.board
JOIN player p ON p.player = r.player;

-- Players and servers online over time; game 0 is all games:
--   WHERE game = 0 AND at_ms >= ? ORDER BY at_ms
CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_online_total AS
SELECT game, at_ms, players, servers FROM online_total;

-- The same by hour and by local day, with the most players. New players by day, less those that were merged or forgotten:
--   SELECT at_ms, players_known - LAG(players_known) OVER (ORDER BY at_ms) FROM clq_online_day WHERE game = 0
CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_online_hour AS
SELECT game, at_ms, players, players_max, servers FROM online_hour;

CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_online_day AS
SELECT game, at_ms, players, players_max, servers, players_known FROM online_day;

CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_site_total AS
SELECT at_ms, players_known, servers, servers_online, servers_greylisted, servers_class1, servers_class2, servers_class3,
  servers_class4, servers_class5, servers_class6, servers_class7
FROM site_total;

-- Tags of servers. The busiest servers of a tag, or the best:
--   WHERE tag = ? ORDER BY players DESC LIMIT 20
--   WHERE tag = ? AND server_rank IS NOT NULL ORDER BY server_rank LIMIT 20
CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_server_tags AS
SELECT st.tag, st.server, s.url, s.hostname, st.players, st.server_rank
FROM server_tag st
JOIN server s ON s.server = st.server
WHERE s.removed = 0;

CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_tags AS
SELECT tag, servers, servers_online, players FROM tag_total;

-- Servers by the beginning of a later word of the host name; by its beginning: clq_servers.
CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_server_words AS
SELECT sw.word, sw.server, s.url, s.hostname, s.game, s.players, s.slots
FROM server_word sw
JOIN server s ON s.server = sw.server
WHERE s.removed = 0;

-- Current servers. Greylisted ones are included.
CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_servers AS
SELECT s.server, s.url, s.hostname, s.game, g.name AS game_name, s.map, m.name AS map_name, s.players,
  s.assumed_players, s.slots, s.class, s.missed, s.total_points, s.bots_unidentified, s.server_rank, s.server_rank_week,
  s.added_ms, s.last_scan_ms, s.last_seen_ms, s.online, s.hostname_search, s.greylist_reason IS NOT NULL AS greylisted
FROM server s
LEFT JOIN game g ON g.game = s.game
LEFT JOIN map m ON m.map = s.map
WHERE s.removed = 0;

-- Current players of each server. A server that no longer responds (three scans missed
-- in a row, or no response for 20 minutes) has no rows here, and 0 players in
-- clq_servers.
CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_online AS
SELECT o.server, s.url, s.hostname, s.last_seen_ms, s.missed, o.list_index, o.name, o.display, o.points, o.player, o.spectator,
  o.game, o.name_search
FROM online_player o
JOIN server s ON s.server = o.server
WHERE s.removed = 0;

-- Why lists of servers were ignored. A reason is reported for 7 days.
CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_screening AS
SELECT sc.server, s.url, s.hostname, sc.reason, sc.applied_ms
FROM server_screening sc
JOIN server s ON s.server = sc.server
WHERE s.removed = 0;

-- Positions --------------------------------------------------------------

DELIMITER //

DROP FUNCTION IF EXISTS clq_position //
CREATE FUNCTION clq_position(week_key INT UNSIGNED, server_key INT UNSIGNED, ranking_name VARCHAR(8), row_order VARBINARY(26))
  RETURNS INT
  DETERMINISTIC READS SQL DATA SQL SECURITY DEFINER
  COMMENT 'Position of a row, 1 is best, from its column for the order of a ranking, such as clq1_order. It reads up to 33 rows'
BEGIN
  DECLARE step_position, rows_between INT;
  DECLARE step_order VARBINARY(26);
  IF LENGTH(row_order) <= 4 THEN
    RETURN CAST(CONV(HEX(row_order), 16, 10) AS SIGNED);
  END IF;
  SELECT position, board_order INTO step_position, step_order FROM board_step
  WHERE week = week_key AND server = server_key AND ranking = ranking_name AND board_order <= row_order
  ORDER BY board_order DESC LIMIT 1;
  CASE ranking_name
    WHEN 'clq1' THEN
      SELECT COUNT(*) INTO rows_between FROM player_week
      WHERE week = week_key AND server = server_key AND clq1_order BETWEEN step_order AND row_order;
    WHEN 'clq2' THEN
      SELECT COUNT(*) INTO rows_between FROM player_week
      WHERE week = week_key AND server = server_key AND clq2_order BETWEEN step_order AND row_order;
    WHEN 'elo' THEN
      SELECT COUNT(*) INTO rows_between FROM player_week
      WHERE week = week_key AND server = server_key AND elo_order BETWEEN step_order AND row_order;
    WHEN 'points' THEN
      SELECT COUNT(*) INTO rows_between FROM player_week
      WHERE week = week_key AND server = server_key AND points_order BETWEEN step_order AND row_order;
    WHEN 'time' THEN
      SELECT COUNT(*) INTO rows_between FROM player_week
      WHERE week = week_key AND server = server_key AND time_order BETWEEN step_order AND row_order;
  END CASE;
  RETURN step_position + rows_between - 1;
END //

DROP FUNCTION IF EXISTS clq_order_at //
CREATE FUNCTION clq_order_at(week_key INT UNSIGNED, server_key INT UNSIGNED, ranking_name VARCHAR(8), wanted INT)
  RETURNS VARBINARY(26)
  DETERMINISTIC READS SQL DATA SQL SECURITY DEFINER
  COMMENT 'Order of the row at a position of a board, such as its clq1_order; NULL: the board is shorter. It reads up to 33 rows'
BEGIN
  DECLARE step_position, rows_wanted INT;
  DECLARE step_order, found_order VARBINARY(26);
  SELECT position, board_order INTO step_position, step_order FROM board_step
  WHERE week = week_key AND server = server_key AND ranking = ranking_name AND position <= wanted
  ORDER BY position DESC LIMIT 1;
  IF step_position IS NULL THEN
    RETURN UNHEX(LPAD(HEX(wanted), 8, '0'));
  END IF;
  SET rows_wanted = wanted - step_position + 1;
  CASE ranking_name
    WHEN 'clq1' THEN
      SELECT MAX(o) INTO found_order FROM (SELECT clq1_order AS o FROM player_week
      WHERE week = week_key AND server = server_key AND clq1_order >= step_order ORDER BY clq1_order LIMIT rows_wanted) AS few;
    WHEN 'clq2' THEN
      SELECT MAX(o) INTO found_order FROM (SELECT clq2_order AS o FROM player_week
      WHERE week = week_key AND server = server_key AND clq2_order >= step_order ORDER BY clq2_order LIMIT rows_wanted) AS few;
    WHEN 'elo' THEN
      SELECT MAX(o) INTO found_order FROM (SELECT elo_order AS o FROM player_week
      WHERE week = week_key AND server = server_key AND elo_order >= step_order ORDER BY elo_order LIMIT rows_wanted) AS few;
    WHEN 'points' THEN
      SELECT MAX(o) INTO found_order FROM (SELECT points_order AS o FROM player_week
      WHERE week = week_key AND server = server_key AND points_order >= step_order ORDER BY points_order LIMIT rows_wanted) AS few;
    WHEN 'time' THEN
      SELECT MAX(o) INTO found_order FROM (SELECT time_order AS o FROM player_week
      WHERE week = week_key AND server = server_key AND time_order >= step_order ORDER BY time_order LIMIT rows_wanted) AS few;
  END CASE;
  RETURN found_order;
END //

DELIMITER ;

-- Series -----------------------------------------------------------------

DROP FUNCTION IF EXISTS clq_players8;
CREATE FUNCTION clq_players8(code INT) RETURNS DOUBLE
  DETERMINISTIC NO SQL SQL SECURITY INVOKER
  COMMENT 'Mean players of an 8-bit code; NULL: no data. Error below 2.3 %'
RETURN CASE
  WHEN code = 0 THEN 0e0
  WHEN code BETWEEN 1 AND 254 THEN 0.05e0 * POW(81920e0, (code - 1) / 253e0)
END;

DROP FUNCTION IF EXISTS clq_players13;
CREATE FUNCTION clq_players13(code INT) RETURNS DOUBLE
  DETERMINISTIC NO SQL SQL SECURITY INVOKER
  COMMENT 'Mean players of a 13-bit code; NULL: no data. Error below 0.07 %'
RETURN CASE
  WHEN code = 0 THEN 0e0
  WHEN code BETWEEN 1 AND 8190 THEN 0.05e0 * POW(81920e0, (code - 1) / 8189e0)
END;

DROP FUNCTION IF EXISTS clq_code8;
CREATE FUNCTION clq_code8(series BLOB, i INT) RETURNS INT
  DETERMINISTIC NO SQL SQL SECURITY INVOKER
  COMMENT 'Code number i, from 0, of a series of 8-bit codes; NULL: there is none'
RETURN CASE
  WHEN i >= 0 AND i < LENGTH(series) THEN CAST(CONV(HEX(SUBSTRING(series, i + 1, 1)), 16, 10) AS UNSIGNED)
END;

-- Five bytes contain three codes: 39 bits and a spare one, big-endian, the first code
-- highest.
DROP FUNCTION IF EXISTS clq_code13;
CREATE FUNCTION clq_code13(series BLOB, i INT) RETURNS INT
  DETERMINISTIC NO SQL SQL SECURITY INVOKER
  COMMENT 'Code number i, from 0, of a series of 13-bit codes; NULL: there is none'
RETURN CASE
  WHEN i >= 0 AND (i DIV 3) * 5 + 5 <= LENGTH(series) THEN
    (CAST(CONV(HEX(SUBSTRING(series, (i DIV 3) * 5 + 1, 5)), 16, 10) AS UNSIGNED) >> (27 - 13 * (i MOD 3))) & 8191
END;

DROP FUNCTION IF EXISTS clq_rank16;
CREATE FUNCTION clq_rank16(series BLOB, i INT) RETURNS INT
  DETERMINISTIC NO SQL SQL SECURITY INVOKER
  COMMENT 'Rank number i, from 0, of a series of ranks; NULL: not ranked. 50000: 50000 or worse'
RETURN CASE
  WHEN i >= 0 AND i * 2 + 2 <= LENGTH(series) THEN
    NULLIF(CAST(CONV(HEX(SUBSTRING(series, i * 2 + 1, 2)), 16, 10) AS UNSIGNED), 0)
END;

-- A row for each value: WHERE server = ? ORDER BY time_ms. time_ms is the start of the
-- interval; players is NULL if there is no data, which is not zero.
CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_series_ten_minutes AS
SELECT s.server, s.newest_ten_minutes_ms - (LENGTH(s.ten_minutes) DIV 5 * 3 - 1 - n.n) * 600000 AS time_ms,
  CASE WHEN ((CAST(CONV(HEX(SUBSTRING(s.ten_minutes, n.n DIV 3 * 5 + 1, 5)), 16, 10) AS UNSIGNED) >> (27 - 13 * (n.n MOD 3))) & 8191) = 0 THEN 0e0
    WHEN ((CAST(CONV(HEX(SUBSTRING(s.ten_minutes, n.n DIV 3 * 5 + 1, 5)), 16, 10) AS UNSIGNED) >> (27 - 13 * (n.n MOD 3))) & 8191) < 8191 THEN
      0.05e0 * POW(81920e0, (CAST((CAST(CONV(HEX(SUBSTRING(s.ten_minutes, n.n DIV 3 * 5 + 1, 5)), 16, 10) AS UNSIGNED) >> (27 - 13 * (n.n MOD 3))) & 8191 AS SIGNED) - 1) / 8189e0)
  END AS players
FROM server_series s
JOIN clq_number n ON n.n < LENGTH(s.ten_minutes) DIV 5 * 3
WHERE s.newest_ten_minutes_ms > 0;

CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_series_hour AS
SELECT s.server, s.newest_hour_ms - (LENGTH(s.hours) - 1 - n.n) * 3600000 AS time_ms,
  CASE WHEN ORD(SUBSTRING(s.hours, n.n + 1, 1)) = 0 THEN 0e0 WHEN ORD(SUBSTRING(s.hours, n.n + 1, 1)) < 255 THEN 0.05e0 * POW(81920e0, (ORD(SUBSTRING(s.hours, n.n + 1, 1)) - 1) / 253e0) END AS players
FROM server_series s
JOIN clq_number n ON n.n < LENGTH(s.hours)
WHERE s.newest_hour_ms > 0;

-- Days and weeks are local. If clocks were put forward or back between a value and the
-- newest one, time_ms is off by that hour: use the date of time_ms + 43200000 (noon),
-- which is always in the right day.
CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_series_day AS
SELECT s.server, s.newest_day_ms - (LENGTH(s.days) - 1 - n.n) * 86400000 AS time_ms,
  CASE WHEN ORD(SUBSTRING(s.days, n.n + 1, 1)) = 0 THEN 0e0 WHEN ORD(SUBSTRING(s.days, n.n + 1, 1)) < 255 THEN 0.05e0 * POW(81920e0, (ORD(SUBSTRING(s.days, n.n + 1, 1)) - 1) / 253e0) END AS players
FROM server_series s
JOIN clq_number n ON n.n < LENGTH(s.days)
WHERE s.newest_day_ms > 0;

CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_series_week AS
SELECT s.server, s.newest_week_ms - (LENGTH(s.weeks) - 1 - n.n) * 604800000 AS time_ms,
  CASE WHEN ORD(SUBSTRING(s.weeks, n.n + 1, 1)) = 0 THEN 0e0 WHEN ORD(SUBSTRING(s.weeks, n.n + 1, 1)) < 255 THEN 0.05e0 * POW(81920e0, (ORD(SUBSTRING(s.weeks, n.n + 1, 1)) - 1) / 253e0) END AS players
FROM server_series s
JOIN clq_number n ON n.n < LENGTH(s.weeks)
WHERE s.newest_week_ms > 0;

-- Ranks by week: WHERE server = ? ORDER BY week.
CREATE OR REPLACE SQL SECURITY DEFINER VIEW clq_series_rank AS
SELECT s.server, CAST(s.newest_rank_week AS SIGNED) - (LENGTH(s.ranks) DIV 2 - 1 - n.n) AS week,
  NULLIF(CAST(CONV(HEX(SUBSTRING(s.ranks, n.n * 2 + 1, 2)), 16, 10) AS SIGNED), 0) AS server_rank
FROM server_series s
JOIN clq_number n ON n.n < LENGTH(s.ranks) DIV 2
WHERE s.newest_rank_week IS NOT NULL;

DELIMITER //

DROP PROCEDURE IF EXISTS clq_series //
CREATE PROCEDURE clq_series(IN server_key INT UNSIGNED, IN kind VARCHAR(16))
  READS SQL DATA SQL SECURITY DEFINER
  COMMENT 'A series of a server, oldest first; kind: ten_minutes, hour, day, week, rank'
BEGIN
  IF kind = 'ten_minutes' THEN
    SELECT time_ms, players FROM clq_series_ten_minutes WHERE server = server_key ORDER BY time_ms;
  ELSEIF kind = 'hour' THEN
    SELECT time_ms, players FROM clq_series_hour WHERE server = server_key ORDER BY time_ms;
  ELSEIF kind = 'day' THEN
    SELECT time_ms, players FROM clq_series_day WHERE server = server_key ORDER BY time_ms;
  ELSEIF kind = 'week' THEN
    SELECT time_ms, players FROM clq_series_week WHERE server = server_key ORDER BY time_ms;
  ELSEIF kind = 'rank' THEN
    SELECT week, server_rank FROM clq_series_rank WHERE server = server_key ORDER BY week;
  ELSE
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'clq_series: kind is one of ten_minutes, hour, day, week, rank';
  END IF;
END //

DELIMITER ;

-- Last: insert the version if there is none. `clqd migrate` updates it.
INSERT INTO clq_schema_version (version, applied_ms)
SELECT 10, FLOOR(UNIX_TIMESTAMP(NOW(3)) * 1000) FROM DUAL
WHERE NOT EXISTS (SELECT 1 FROM clq_schema_version);
