//! Jobs to rows. Writes are absolute: after a job, the rows of its object are exactly
//! those of the job; all others are deleted. So every job may be written again. Player
//! removals ([`crate::archive::remove_player`]) are written before other player rows.
//!
//! Several jobs share a transaction, up to a number of rows; a job is never split. Weeks
//! with too many rows for one job are written by [`crate::archive::week_chunks`]. Inside
//! a transaction rows are written in order of table and primary key, so that two writers
//! wait for each other instead of deadlocking.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::connect::Archive;
use super::error::{ArchiveError, StatementError};
use super::sql::{Table, Upsert, comma_separated, literal, truncate_chars};
use crate::limits::{NAME_BYTES_MAX, TEXT_BYTES_MAX};
use crate::model::archive::{ArchiveJob, PlayerKeyRange, ServerArchive, WeekArchive};
use crate::model::{GameKey, MapKey, PlayerKey, Ranking, WeekKey};

/// Most attempts of a transaction that loses conflicts.
pub(super) const CONFLICT_TRIES_MAX: u32 = 5;

/// Keys in one IN list: about 50 KB of text.
const IN_LIST_MAX: usize = 5_000;

/// Names in one IN list: at most about 130 KB of text.
const NAME_LIST_MAX: usize = 500;

/// Widths of columns, in characters. Text that is only displayed is truncated to them.
const GREYLIST_CHARS: usize = 1_000;
const TAG_CHARS: usize = 190;

const GAME: Table = Table { name: "game", columns: &["game", "name"], key_columns: 1 };
const MAP: Table = Table { name: "map", columns: &["map", "name"], key_columns: 1 };
const PLAYER: Table = Table { name: "player", columns: &["player", "game", "name", "display"], key_columns: 1 };
const WEEK: Table = Table { name: "week", columns: &["week", "label", "start_ms", "end_ms"], key_columns: 1 };
const SERVER: Table = Table {
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
        "players",
        "assumed_players",
        "total_points",
        "bots_unidentified",
        "added_ms",
        "last_scan_ms",
        "last_seen_ms",
        "server_rank",
        "rank_week",
        "greylist",
        "removed",
    ],
    key_columns: 1,
};
const SERVER_SERIES: Table = Table {
    name: "server_series",
    columns: &[
        "server",
        "newest_slot_ms",
        "newest_hour_ms",
        "newest_day_ms",
        "newest_week_ms",
        "slots",
        "hours",
        "days",
        "weeks",
        "ranks",
        "newest_rank_week",
    ],
    key_columns: 1,
};
const SERVER_TAG: Table = Table { name: "server_tag", columns: &["server", "tag"], key_columns: 2 };
const SERVER_SCREENED: Table =
    Table { name: "server_screened", columns: &["server", "reason", "applied_ms"], key_columns: 2 };
const SERVER_PLAYER: Table = Table {
    name: "server_player",
    columns: &["server", "place", "name", "display", "points", "player", "spectator"],
    key_columns: 2,
};
const SERVER_WEEK: Table =
    Table { name: "server_week", columns: &["week", "server", "server_rank", "player_ms", "closed"], key_columns: 2 };
const PLAYER_WEEK: Table = Table {
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
        "clq1",
        "clq2",
        "clq1_position",
        "clq2_position",
        "elo_position",
        "points_position",
        "time_position",
    ],
    key_columns: 3,
};
pub(super) const BEST_POSITION: Table = Table {
    name: "best_position",
    columns: &["server", "player", "ranking", "place", "position", "week"],
    key_columns: 4,
};
const MAP_WEEK: Table =
    Table { name: "map_week", columns: &["week", "server", "map", "played_ms", "player_ms"], key_columns: 3 };

/// Rows that belong to one object: `group` and `member` are the columns that identify the
/// object, `key` the rest of the primary key.
struct ChildRows {
    table: &'static str,
    group: Option<&'static str>,
    member: &'static str,
    key: &'static [(&'static str, ColumnType)],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ColumnType {
    Number,
    Text,
}

const TAGS: ChildRows =
    ChildRows { table: "server_tag", group: None, member: "server", key: &[("tag", ColumnType::Text)] };
const LISTED: ChildRows =
    ChildRows { table: "server_player", group: None, member: "server", key: &[("place", ColumnType::Number)] };
const SCREENED: ChildRows =
    ChildRows { table: "server_screened", group: None, member: "server", key: &[("reason", ColumnType::Text)] };
const SERIES: ChildRows = ChildRows { table: "server_series", group: None, member: "server", key: &[] };
const PLAYERS: ChildRows =
    ChildRows { table: "player_week", group: Some("week"), member: "server", key: &[("player", ColumnType::Number)] };
const MAPS: ChildRows =
    ChildRows { table: "map_week", group: Some("week"), member: "server", key: &[("map", ColumnType::Number)] };
const BEST: ChildRows = ChildRows {
    table: "best_position",
    group: Some("server"),
    member: "player",
    key: &[("ranking", ColumnType::Text), ("place", ColumnType::Number)],
};

/// The expected rows of one object: the literals of their `key` columns.
type Keys = BTreeSet<Vec<String>>;

/// Best positions in each ranking of [`Ranking::WITH_BEST_POSITIONS`].
type ThreeBest = [Vec<(u32, WeekKey)>; 3];

/// Why a transaction failed.
pub(super) enum TransactionError {
    Fault { fault: StatementError, doing: &'static str },
    Error(ArchiveError),
}

pub(super) trait OperationContext<T> {
    fn doing(self, what: &'static str) -> Result<T, TransactionError>;
}

impl<T> OperationContext<T> for Result<T, StatementError> {
    fn doing(self, doing: &'static str) -> Result<T, TransactionError> {
        self.map_err(|fault| TransactionError::Fault { fault, doing })
    }
}

/// The content of one transaction.
enum Batch<'a> {
    Games(Vec<(GameKey, &'a str)>),
    Maps(Vec<(MapKey, &'a str)>),
    Gone(PlayerKey, Option<PlayerKey>),
    Players(Vec<(PlayerKey, GameKey, &'a str, &'a str)>),
    Servers(Vec<&'a ServerArchive>),
    Weeks(Vec<&'a WeekArchive>),
}

impl Archive {
    /// Writes jobs, names first; returns the number of rows. On an error some jobs may
    /// have been written, each of them completely.
    pub async fn write(&mut self, jobs: &[ArchiveJob]) -> Result<u64, ArchiveError> {
        let mut rows = 0;
        for batch in batches(jobs, self.batch_rows_max) {
            rows += self.write_batch(&batch).await?;
        }
        Ok(rows)
    }

    async fn write_batch(&mut self, batch: &Batch<'_>) -> Result<u64, ArchiveError> {
        let mut tries = 1;
        loop {
            match self.transaction(batch).await {
                Ok(rows) => return Ok(rows),
                Err(TransactionError::Fault { fault, .. }) if fault.is_conflict() && tries < CONFLICT_TRIES_MAX => {
                    self.report_conflict(&fault);
                    self.run("rollback", "ROLLBACK").await?;
                    tokio::time::sleep(Duration::from_millis(10 << tries)).await;
                    tries += 1;
                }
                Err(TransactionError::Fault { fault, doing }) => {
                    if !fault.is_fatal() {
                        let _ = self.execute("ROLLBACK").await;
                    }
                    return Err(fault.classify(&self.target, doing));
                }
                Err(TransactionError::Error(error)) => {
                    self.run("rollback", "ROLLBACK").await?;
                    return Err(error);
                }
            }
        }
    }

    async fn transaction(&mut self, batch: &Batch<'_>) -> Result<u64, TransactionError> {
        self.doing = "begin";
        self.execute("START TRANSACTION").await.doing("begin")?;
        let rows = match batch {
            Batch::Games(games) => self.upsert_games(games).await?,
            Batch::Maps(maps) => self.upsert_maps(maps).await?,
            Batch::Gone(player, into) => self.apply_player_removal(*player, *into).await?,
            Batch::Players(players) => self.upsert_players(players).await?,
            Batch::Servers(servers) => self.upsert_servers(servers).await?,
            Batch::Weeks(weeks) => self.upsert_weeks(weeks).await?,
        };
        self.doing = "commit";
        self.execute("COMMIT").await.doing("commit")?;
        Ok(rows)
    }

    async fn upsert_games(&mut self, games: &[(GameKey, &str)]) -> Result<u64, TransactionError> {
        let names: Vec<(u32, &str)> = games.iter().map(|&(key, name)| (key.0, name)).collect();
        self.check_keys("game", "game", "name", &names).await?;
        let mut upsert = self.upsert(&GAME);
        for &(key, name) in games {
            upsert.row(|row| _ = row.uint(key.0).text(name));
        }
        self.execute_upsert(upsert).await
    }

    async fn upsert_maps(&mut self, maps: &[(MapKey, &str)]) -> Result<u64, TransactionError> {
        let names: Vec<(u32, &str)> = maps.iter().map(|&(key, name)| (key.0, name)).collect();
        self.check_keys("map", "map", "name", &names).await?;
        let mut upsert = self.upsert(&MAP);
        for &(key, name) in maps {
            upsert.row(|row| _ = row.uint(key.0).text(name));
        }
        self.execute_upsert(upsert).await
    }

    async fn upsert_players(&mut self, players: &[(PlayerKey, GameKey, &str, &str)]) -> Result<u64, TransactionError> {
        self.check_player_keys(players).await?;
        let mut upsert = self.upsert(&PLAYER);
        for &(key, game, name, display) in players {
            upsert.row(|row| _ = row.uint(key.0).uint(game.0).text(name).text(truncate_chars(display, NAME_BYTES_MAX)));
        }
        self.execute_upsert(upsert).await
    }

    async fn upsert_servers(&mut self, servers: &[&ServerArchive]) -> Result<u64, TransactionError> {
        let urls: Vec<(u32, &str)> = servers.iter().map(|server| (server.key.0, server.url.as_str())).collect();
        self.check_keys("server", "server", "url", &urls).await?;

        let mut state = self.upsert(&SERVER);
        let mut series = self.upsert(&SERVER_SERIES);
        let mut tags = self.upsert(&SERVER_TAG);
        let mut screened = self.upsert(&SERVER_SCREENED);
        let mut listed = self.upsert(&SERVER_PLAYER);
        for server in servers {
            let key = server.key.0;
            state.row(|row| {
                row.uint(key).text(&server.url).text(truncate_chars(&server.hostname, TEXT_BYTES_MAX));
                row.opt_uint(server.game.map(|game| game.0)).opt_uint(server.map.map(|map| map.0));
                row.uint(server.slots).uint(server.class).uint(server.missed);
                row.uint(server.players).uint(server.assumed_players).int(server.total_points);
                row.uint(server.bots_unidentified)
                    .int(server.added_ms)
                    .opt_int(server.last_scan_ms)
                    .opt_int(server.last_seen_ms);
                row.opt_uint(server.rank).opt_uint(server.rank_week.map(|week| week.0));
                row.opt_text(server.greylist_reason.as_deref().map(|why| truncate_chars(why, GREYLIST_CHARS)))
                    .bool(server.removed);
            });
            if let Some(values) = &server.series {
                series.row(|row| {
                    row.uint(key).int(values.newest_ten_minutes_ms).int(values.newest_hour_ms);
                    row.int(values.newest_day_ms).int(values.newest_week_ms);
                    row.bytes(&values.ten_minutes).bytes(&values.hours).bytes(&values.days);
                    row.bytes(&values.weeks).bytes(&values.ranks);
                    row.opt_uint(values.newest_rank_week.map(|week| week.0));
                });
            }
            for tag in server.tags.iter().map(|tag| truncate_chars(tag, TAG_CHARS)).collect::<BTreeSet<_>>() {
                tags.row(|row| _ = row.uint(key).text(tag));
            }
            for it in &server.screened {
                screened.row(|row| _ = row.uint(key).text(it.reason.name()).int(it.applied_ms));
            }
            for (place, entry) in (1_u32..).zip(&server.list) {
                listed.row(|row| {
                    row.uint(key).uint(place).text(truncate_chars(&entry.name, NAME_BYTES_MAX));
                    row.text(truncate_chars(&entry.display, NAME_BYTES_MAX)).opt_int(entry.points);
                    row.opt_uint(entry.player.map(|player| player.0)).bool(entry.spectator);
                });
            }
        }
        let mut rows = 0;
        for upsert in [state, series, tags, screened, listed] {
            rows += self.execute_upsert(upsert).await?;
        }

        let by_key: BTreeMap<u32, &ServerArchive> = servers.iter().map(|server| (server.key.0, *server)).collect();
        let series_of = |key: u32| Keys::from_iter(by_key[&key].series.iter().map(|_| Vec::new()));
        let tags_of = |key: u32| {
            Keys::from_iter(by_key[&key].tags.iter().map(|tag| vec![literal(truncate_chars(tag, TAG_CHARS))]))
        };
        let screened_of =
            |key: u32| Keys::from_iter(by_key[&key].screened.iter().map(|it| vec![literal(it.reason.name())]));
        let list_of = |key: u32| Keys::from_iter((1..=by_key[&key].list.len()).map(|place| vec![place.to_string()]));
        self.delete_surplus(&SERIES, None, by_key.keys().copied(), series_of).await?;
        self.delete_surplus(&TAGS, None, by_key.keys().copied(), tags_of).await?;
        self.delete_surplus(&SCREENED, None, by_key.keys().copied(), screened_of).await?;
        self.delete_surplus(&LISTED, None, by_key.keys().copied(), list_of).await?;
        Ok(rows)
    }

    pub(super) async fn upsert_weeks(&mut self, weeks: &[&WeekArchive]) -> Result<u64, TransactionError> {
        let mut week_rows = self.upsert(&WEEK);
        let mut server_weeks = self.upsert(&SERVER_WEEK);
        let mut players = self.upsert(&PLAYER_WEEK);
        let mut best = self.upsert(&BEST_POSITION);
        let mut maps = self.upsert(&MAP_WEEK);
        let mut by_week: BTreeMap<u32, BTreeMap<u32, &WeekArchive>> = BTreeMap::new();
        for job in weeks {
            by_week.entry(job.week.0).or_default().insert(job.server.0, job);
        }
        for (&week, servers) in &by_week {
            let Some(first) = servers.values().next() else { continue };
            week_rows.row(|row| _ = row.uint(week).text(&first.label).int(first.week_start_ms).int(first.week_end_ms));
            for (&server, job) in servers {
                server_weeks.row(|row| {
                    row.uint(week).uint(server).opt_uint(job.server_rank).uint(job.player_ms).bool(job.closed);
                });
                for it in &job.rows {
                    players.row(|row| {
                        row.uint(week).uint(server).uint(it.player.0);
                        row.uint(it.measured_ms).uint(it.starts).uint(it.time_ms).uint(it.time_est_ms);
                        row.int(it.points).double(it.points_est);
                        row.double(it.elo).uint(it.elo_rounds).uint(it.clq1).uint(it.clq2);
                        for position in it.positions {
                            row.opt_uint(position);
                        }
                    });
                }
                for it in &job.maps {
                    maps.row(|row| {
                        _ = row.uint(week).uint(server).uint(it.map.0).uint(it.played_ms).uint(it.player_ms)
                    });
                }
            }
        }
        // The primary key begins with the server: all weeks together.
        let mut by_server: BTreeMap<u32, BTreeMap<u32, &ThreeBest>> = BTreeMap::new();
        for job in by_week.values().flat_map(|servers| servers.values()) {
            for (player, three) in &job.best {
                by_server.entry(job.server.0).or_default().insert(player.0, three);
            }
        }
        for (&server, by_player) in &by_server {
            for (&player, three) in by_player {
                for (ranking, positions) in Ranking::WITH_BEST_POSITIONS.iter().zip(three.iter()) {
                    for (place, &(position, week)) in (1_u32..).zip(positions) {
                        best.row(|row| {
                            row.uint(server).uint(player).text(ranking.name()).uint(place).uint(position).uint(week.0);
                        });
                    }
                }
            }
        }
        let mut rows = 0;
        for upsert in [week_rows, server_weeks, players, best, maps] {
            rows += self.execute_upsert(upsert).await?;
        }

        for (&week, servers) in &by_week {
            let players_of =
                |server: u32| Keys::from_iter(servers[&server].rows.iter().map(|row| vec![row.player.to_string()]));
            let maps_of =
                |server: u32| Keys::from_iter(servers[&server].maps.iter().map(|row| vec![row.map.to_string()]));
            for (span, servers) in by_span(servers) {
                self.delete_surplus_where(
                    &PLAYERS,
                    Some(week),
                    servers.iter().copied(),
                    &player_range_condition(span),
                    players_of,
                )
                .await?;
                if span.after.is_none() {
                    self.delete_surplus(&MAPS, Some(week), servers.into_iter(), maps_of).await?;
                }
            }
        }
        for (&server, by_player) in &by_server {
            let best_of = |player: u32| {
                let mut keys = Keys::new();
                for (ranking, positions) in Ranking::WITH_BEST_POSITIONS.iter().zip(by_player[&player].iter()) {
                    keys.extend((1..=positions.len()).map(|place| vec![literal(ranking.name()), place.to_string()]));
                }
                keys
            };
            self.delete_surplus(&BEST, Some(server), by_player.keys().copied(), best_of).await?;
        }
        Ok(rows)
    }

    pub(super) fn upsert(&self, table: &'static Table) -> Upsert {
        Upsert::new(table, self.statement_bytes_max)
    }

    pub(super) async fn execute_upsert(&mut self, upsert: Upsert) -> Result<u64, TransactionError> {
        let (rows, table) = (upsert.rows() as u64, upsert.table_name());
        self.doing = table;
        for statement in upsert.into_statements() {
            self.execute(&statement).await.doing(table)?;
        }
        Ok(rows)
    }

    /// Deletes rows of `members` whose keys are not in `wanted`. All wanted rows have
    /// just been written, so an equal count means that there is no surplus.
    async fn delete_surplus(
        &mut self,
        owned: &ChildRows,
        group: Option<u32>,
        members: impl Iterator<Item = u32>,
        wanted: impl Fn(u32) -> Keys,
    ) -> Result<(), TransactionError> {
        self.delete_surplus_where(owned, group, members, "", wanted).await
    }

    /// As [`Archive::delete_surplus`], restricted to the rows that match the condition
    /// `among`.
    async fn delete_surplus_where(
        &mut self,
        owned: &ChildRows,
        group: Option<u32>,
        members: impl Iterator<Item = u32>,
        among: &str,
        wanted: impl Fn(u32) -> Keys,
    ) -> Result<(), TransactionError> {
        let in_group = match (owned.group, group) {
            (Some(column), Some(value)) => format!("{among}{column} = {value} AND "),
            _ => among.to_owned(),
        };
        let (table, member) = (owned.table, owned.member);
        self.doing = table;
        let members: Vec<u32> = members.collect();
        for members in members.chunks(IN_LIST_MAX) {
            let count = format!(
                "SELECT {member}, COUNT(*) FROM {table} WHERE {in_group}{member} IN ({}) GROUP BY {member}",
                comma_separated(members)
            );
            for (it, count) in self.rows::<(u32, usize)>(&count).await.doing(table)? {
                let wanted = wanted(it);
                if count == wanted.len() {
                    continue;
                }
                let member_rows = format!("FROM {table} WHERE {in_group}{member} = {it}");
                if owned.key.is_empty() || wanted.is_empty() {
                    self.execute(&format!("DELETE {member_rows}")).await.doing(table)?;
                    continue;
                }
                let columns = comma_separated(owned.key.iter().map(|(column, _)| column));
                let found: Vec<mysql_async::Row> =
                    self.rows(&format!("SELECT {columns} {member_rows}")).await.doing(table)?;
                let surplus: Vec<String> = found
                    .into_iter()
                    .map(|row| key_literals(row, owned.key))
                    .filter(|key| !wanted.contains(key))
                    .map(|key| format!("({})", comma_separated(key)))
                    .collect();
                for surplus in surplus.chunks(IN_LIST_MAX) {
                    let delete = format!("DELETE {member_rows} AND ({columns}) IN ({})", comma_separated(surplus));
                    self.execute(&delete).await.doing(table)?;
                }
            }
        }
        Ok(())
    }

    /// Checks that names and keys match. An archive in which one of these names has
    /// another key, or one of these keys another name, was written from another state.
    async fn check_keys(
        &mut self,
        table: &'static str,
        key_column: &'static str,
        name_column: &'static str,
        expected: &[(u32, &str)],
    ) -> Result<(), TransactionError> {
        if !self.checks_names {
            return Ok(());
        }
        self.doing = table;
        for expected in expected.chunks(NAME_LIST_MAX) {
            let select = format!(
                "SELECT {key_column}, {name_column} FROM {table} WHERE {key_column} IN ({}) \
                 UNION SELECT {key_column}, {name_column} FROM {table} WHERE {name_column} IN ({})",
                comma_separated(expected.iter().map(|(key, _)| key)),
                comma_separated(expected.iter().map(|(_, name)| literal(name)))
            );
            let stored: Vec<(u32, String)> = self.rows(&select).await.doing(table)?;
            let expected: Vec<(u32, String)> = expected.iter().map(|&(key, name)| (key, name.to_owned())).collect();
            let show = |name: &String| format!("{name:?}");
            self.find_key_mismatch(table, &expected, &stored, show)?;
        }
        Ok(())
    }

    /// As `check_keys`; a player's name belongs to a game.
    async fn check_player_keys(
        &mut self,
        expected: &[(PlayerKey, GameKey, &str, &str)],
    ) -> Result<(), TransactionError> {
        if !self.checks_names {
            return Ok(());
        }
        self.doing = "player";
        for expected in expected.chunks(NAME_LIST_MAX) {
            let mut select = format!(
                "SELECT player, game, name FROM player WHERE player IN ({})",
                comma_separated(expected.iter().map(|(key, ..)| key))
            );
            let mut by_game: BTreeMap<GameKey, Vec<&str>> = BTreeMap::new();
            for &(_, game, name, _) in expected {
                by_game.entry(game).or_default().push(name);
            }
            for (game, names) in &by_game {
                let names = comma_separated(names.iter().map(|name| literal(name)));
                select.push_str(" UNION SELECT player, game, name FROM player WHERE ");
                select.push_str(&format!("game = {game} AND name IN ({names})"));
            }
            let stored: Vec<(u32, u32, String)> = self.rows(&select).await.doing("player")?;
            let stored: Vec<(u32, (u32, String))> =
                stored.into_iter().map(|(key, game, name)| (key, (game, name))).collect();
            let expected: Vec<(u32, (u32, String))> =
                expected.iter().map(|&(key, game, name, _)| (key.0, (game.0, name.to_owned()))).collect();
            let show = |(game, name): &(u32, String)| format!("{name:?} of game {game}");
            self.find_key_mismatch("player", &expected, &stored, show)?;
        }
        Ok(())
    }

    /// Compares expected and stored pairs of key and name. Error: a key or a name is in
    /// both, but not together. Compares bytes, since the database pads with spaces.
    fn find_key_mismatch<N: Ord>(
        &self,
        what: &'static str,
        expected: &[(u32, N)],
        stored: &[(u32, N)],
        show: impl Fn(&N) -> String,
    ) -> Result<(), TransactionError> {
        let by_key: BTreeMap<u32, &N> = expected.iter().map(|(key, name)| (*key, name)).collect();
        let by_name: BTreeMap<&N, u32> = expected.iter().map(|(key, name)| (name, *key)).collect();
        for (key, name) in stored {
            let (key_expected, name_expected) = match (by_name.get(name), by_key.get(key)) {
                (Some(&other), _) if other != *key => (other, name),
                (_, Some(other)) if *other != name => (*key, *other),
                _ => continue,
            };
            return Err(TransactionError::Error(ArchiveError::KeyMismatch {
                target: self.target.clone(),
                what,
                here: format!("{} (key {key_expected})", show(name_expected)),
                there: format!("{} (key {key})", show(name)),
            }));
        }
        Ok(())
    }
}

/// Groups the servers of a week by the span of players in their jobs. Nearly always every
/// job contains all players.
fn by_span(servers: &BTreeMap<u32, &WeekArchive>) -> Vec<(PlayerKeyRange, Vec<u32>)> {
    let mut spans: Vec<(PlayerKeyRange, Vec<u32>)> = Vec::new();
    for (&server, job) in servers {
        match spans.iter_mut().find(|(span, _)| *span == job.span) {
            Some((_, servers)) => servers.push(server),
            None => spans.push((job.span, vec![server])),
        }
    }
    spans
}

/// The condition that selects rows of these players.
fn player_range_condition(span: PlayerKeyRange) -> String {
    let after = span.after.map(|player| format!("player > {player} AND "));
    let through = span.through.map(|player| format!("player <= {player} AND "));
    after.into_iter().chain(through).collect()
}

/// The literals of a row's key columns.
fn key_literals(row: mysql_async::Row, key: &[(&str, ColumnType)]) -> Vec<String> {
    row.unwrap()
        .into_iter()
        .zip(key)
        .map(|(value, (_, kind))| {
            let text: String = mysql_async::from_value_opt(value).unwrap_or_default();
            if *kind == ColumnType::Text { literal(&text) } else { text }
        })
        .collect()
}

/// Sorts jobs by table and key and groups them into transactions.
fn batches(jobs: &[ArchiveJob], rows_max: usize) -> Vec<Batch<'_>> {
    let (mut games, mut maps, mut removed, mut players) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut servers, mut weeks) = (Vec::new(), Vec::new());
    for job in jobs {
        match job {
            ArchiveJob::Game { key, name } => games.push((*key, name.as_str())),
            ArchiveJob::Map { key, name } => maps.push((*key, name.as_str())),
            ArchiveJob::Player { key, game, name, display } => {
                players.push((*key, *game, name.as_str(), display.as_str()))
            }
            ArchiveJob::PlayerRemoved { key, into } => removed.push((*key, *into)),
            ArchiveJob::Server(server) => servers.push(&**server),
            ArchiveJob::Week(week) => weeks.push(&**week),
            ArchiveJob::LargeWeek { .. } => unreachable!("it is written in chunks"),
        }
    }
    games.sort_by_key(|&(key, _)| key);
    maps.sort_by_key(|&(key, _)| key);
    removed.sort_unstable();
    players.sort_by_key(|&(key, ..)| key);
    servers.sort_by_key(|server: &&ServerArchive| server.key);
    weeks.sort_by_key(|week: &&WeekArchive| (week.week, week.server));

    let mut all = Vec::new();
    all.extend(split_by_rows(games, rows_max, |_| 1).map(Batch::Games));
    all.extend(split_by_rows(maps, rows_max, |_| 1).map(Batch::Maps));
    // Before players: a removed player's name may belong to another player now.
    all.extend(removed.into_iter().map(|(player, into)| Batch::Gone(player, into)));
    all.extend(split_by_rows(players, rows_max, |_| 1).map(Batch::Players));
    let server_rows = |server: &&ServerArchive| 2 + server.tags.len() + server.screened.len() + server.list.len();
    all.extend(split_by_rows(servers, rows_max, server_rows).map(Batch::Servers));
    let week_rows = |week: &&WeekArchive| 2 + week.rows.len() + week.maps.len() + 9 * week.best.len();
    all.extend(split_by_rows(weeks, rows_max, week_rows).map(Batch::Weeks));
    all
}

/// Groups objects into runs of at most `rows_max` rows. An object with more rows is a run
/// of its own.
fn split_by_rows<T>(items: Vec<T>, rows_max: usize, rows_of: impl Fn(&T) -> usize) -> impl Iterator<Item = Vec<T>> {
    let mut runs = Vec::new();
    let mut run = Vec::new();
    let mut rows = 0;
    for item in items {
        let more = rows_of(&item);
        if !run.is_empty() && rows + more > rows_max {
            runs.push(std::mem::take(&mut run));
            rows = 0;
        }
        rows += more;
        run.push(item);
    }
    if !run.is_empty() {
        runs.push(run);
    }
    runs.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_respect_row_limit_without_splitting_a_job() {
        let runs: Vec<Vec<usize>> = split_by_rows(vec![1, 2, 9, 1, 1, 1], 3, |&rows| rows).collect();
        assert_eq!(runs, [vec![1, 2], vec![9], vec![1, 1, 1]]);
        assert_eq!(split_by_rows(Vec::<usize>::new(), 3, |_| 1).count(), 0);
    }

    #[test]
    fn batches_put_names_first_in_key_order() {
        let name =
            |key| ArchiveJob::Player { key: PlayerKey(key), game: GameKey(1), name: "n".into(), display: "n".into() };
        let jobs = [name(3), name(1), ArchiveJob::Game { key: GameKey(1), name: "g".into() }];
        let all = batches(&jobs, 10);
        assert!(matches!(&all[0], Batch::Games(games) if games.len() == 1));
        assert!(matches!(&all[1], Batch::Players(players) if players[0].0.0 == 1 && players[1].0.0 == 3));
    }
}
