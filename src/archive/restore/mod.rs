//! Reads the tables from which a state is restored: in order of key, a page in each query, in one
//! transaction. It only reads.
//!
//! A value that does not fit makes its row a rejected one, which a page contains beside the good ones.

mod fields;
mod weeks;

use std::collections::BTreeMap;

use mysql_async::Row;

use self::fields::{BadValue, Fields};
use super::connect::Archive;
use super::error::ArchiveError;
use super::sql::literal;
use crate::model::archive::ServerArchive;
use crate::model::restored::{ArchiveFacts, ArchivedServer, ArchivedWeek, LastKeys, PublishedRating, RejectedRow};
use crate::model::server::{PlayerRecord, ScreenReason, SeriesRecord};
use crate::model::{GameKey, MapKey, PlayerKey, ServerKey, WeekKey};

/// The last key of a page: one number, or two.
pub type PageKey = [u32; 2];

/// Some rows of a table.
#[derive(Debug)]
pub struct Page<T> {
    pub rows: Vec<T>,
    pub rejected: Vec<RejectedRow>,
    /// Where the next page begins; `None`: there is none.
    pub next: Option<PageKey>,
}

/// Rows of a table, in order of key.
struct Query {
    table: &'static str,
    /// The columns of the key that are read, one or two; before them there is only the week.
    keys: &'static [&'static str],
    columns: &'static str,
    week: Option<WeekKey>,
}

/// The columns with keys of each kind.
const GAME_KEYS: &[(&str, &str)] =
    &[("game", "game"), ("player", "game"), ("server", "game"), ("online_total", "game"), ("online_day", "game")];
const MAP_KEYS: &[(&str, &str)] = &[("map", "map"), ("server", "map"), ("map_week", "map"), ("map_total", "map")];
const PLAYER_KEYS: &[(&str, &str)] = &[
    ("player", "player"),
    ("player_word", "player"),
    ("player_week", "player"),
    ("best_position", "player"),
    ("online_player", "player"),
    ("top_board_row", "player"),
];
/// Each server in `player_week` and `map_week` is also in `server_week`.
const SERVER_KEYS: &[(&str, &str)] = &[
    ("server", "server"),
    ("server_series", "server"),
    ("server_tag", "server"),
    ("server_screening", "server"),
    ("online_player", "server"),
    ("server_week", "server"),
    ("best_position", "server"),
];

impl Archive {
    /// Begins a transaction: everything that is read until [`Archive::end_restore`] is of one
    /// moment.
    pub async fn begin_restore(&mut self) -> Result<ArchiveFacts, ArchiveError> {
        self.check_schema().await?;
        self.begin_reading().await?;
        let state_id = self.state_id().await?;
        let weeks: Vec<(u32, i64, i64)> =
            self.all("week", "SELECT week, start_ms, end_ms FROM week ORDER BY week").await?;
        let week = |(week, start_ms, end_ms)| ArchivedWeek { week: WeekKey(week), start_ms, end_ms };
        let last_keys = LastKeys {
            game: self.last_key(GAME_KEYS).await?,
            map: self.last_key(MAP_KEYS).await?,
            player: self.last_key(PLAYER_KEYS).await?,
            server: self.last_key(SERVER_KEYS).await?,
        };
        let published_ms = self.first("site_total", "SELECT at_ms FROM site_total WHERE singleton = 1").await?;
        let last_scan_ms: Option<Option<i64>> = self.first("server", "SELECT MAX(last_scan_ms) FROM server").await?;
        Ok(ArchiveFacts {
            state_id,
            weeks: weeks.into_iter().map(week).collect(),
            last_keys,
            published_ms,
            last_scan_ms: last_scan_ms.flatten(),
        })
    }

    /// Reads the properties of the archive as a whole. `None`: the database has no tables of clqd.
    pub async fn read_facts(&mut self) -> Result<Option<ArchiveFacts>, ArchiveError> {
        if self.schema_version().await?.is_none() {
            return Ok(None);
        }
        let facts = self.begin_restore().await?;
        self.end_restore().await?;
        Ok(Some(facts))
    }

    pub async fn end_restore(&mut self) -> Result<(), ArchiveError> {
        self.end_reading().await
    }

    pub async fn read_games(
        &mut self,
        after: Option<PageKey>,
        most: usize,
    ) -> Result<Page<(GameKey, String)>, ArchiveError> {
        let query = Query { table: "game", keys: &["game"], columns: "name", week: None };
        self.page(&query, after, most, |[game, _], it| Ok((GameKey(game), it.get()?))).await
    }

    pub async fn read_maps(
        &mut self,
        after: Option<PageKey>,
        most: usize,
    ) -> Result<Page<(MapKey, String)>, ArchiveError> {
        let query = Query { table: "map", keys: &["map"], columns: "name", week: None };
        self.page(&query, after, most, |[map, _], it| Ok((MapKey(map), it.get()?))).await
    }

    pub async fn read_players(
        &mut self,
        after: Option<PageKey>,
        most: usize,
    ) -> Result<Page<(PlayerKey, PlayerRecord)>, ArchiveError> {
        let query = Query { table: "player", keys: &["player"], columns: "game, name, display", week: None };
        let player = |[player, _]: PageKey, it: &mut Fields| {
            let (game, name, display) = (GameKey(it.get()?), it.get::<String>()?.into(), it.get::<String>()?.into());
            Ok((PlayerKey(player), PlayerRecord { game, name, display }))
        };
        self.page(&query, after, most, player).await
    }

    /// Servers, and when their rows in some weeks last changed. The rejected rows of table `server`
    /// come first. A rejected row of another table is omitted from its server.
    pub async fn read_servers(
        &mut self,
        weeks: &[ArchivedWeek],
        after: Option<PageKey>,
        most: usize,
    ) -> Result<Page<ArchivedServer>, ArchiveError> {
        const COLUMNS: &str = "url, hostname, game, map, slots, class, missed, online, players, assumed_players, \
            total_points, bots_unidentified, added_ms, last_scan_ms, last_seen_ms, server_rank, server_rank_week, \
            greylist_reason, removed";
        let query = Query { table: "server", keys: &["server"], columns: COLUMNS, week: None };
        let mut page = self.page(&query, after, most, |[server, _], it| server_of(server, it)).await?;
        let first = after.map_or(0, |[after, _]| after.saturating_add(1));
        let last = page.next.map_or(u32::MAX, |[last, _]| last);
        let range = format!("server BETWEEN {first} AND {last}");
        let mut at: BTreeMap<u32, &mut ArchivedServer> = page.rows.iter_mut().map(|it| (it.server.key.0, it)).collect();

        let select = format!("SELECT server, tag FROM server_tag WHERE {range} ORDER BY server, tag");
        for (server, tag) in self.all::<(u32, String)>("server_tag", &select).await? {
            if let Some(it) = at.get_mut(&server) {
                it.server.tags.push(tag);
            }
        }
        let select = format!("SELECT server, reason, applied_ms FROM server_screening WHERE {range}");
        for (server, reason, applied_ms) in self.all::<(u32, String, i64)>("server_screening", &select).await? {
            let Some(it) = at.get_mut(&server) else { continue };
            match ScreenReason::from_name(&reason) {
                Some(reason) => it.server.screened.push((reason, applied_ms)),
                None => page.rejected.push(RejectedRow {
                    table: "server_screening",
                    key: format!("server={server} reason={reason}"),
                    why: "the reason is not known".to_owned(),
                }),
            }
        }
        let select =
            format!("SELECT server, COUNT(*) FROM online_player WHERE {range} AND player IS NOT NULL GROUP BY server");
        for (server, count) in self.all::<(u32, u64)>("online_player", &select).await? {
            if let Some(it) = at.get_mut(&server) {
                it.players_listed = count;
            }
        }
        for &ArchivedWeek { week, start_ms, .. } in weeks {
            let select = format!(
                "SELECT server, MAX(time_reached_after_ms) FROM player_week FORCE INDEX (PRIMARY) \
                 WHERE week = {week} AND {range} GROUP BY server"
            );
            for (server, after_ms) in self.all::<(u32, Option<u32>)>("player_week", &select).await? {
                let Some(it) = at.get_mut(&server) else { continue };
                let row_ms = after_ms.map(|after_ms| start_ms.saturating_add(after_ms.into()));
                it.last_row_ms = it.last_row_ms.max(row_ms);
            }
        }
        let select = format!(
            "SELECT server, newest_ten_minutes_ms, newest_hour_ms, newest_day_ms, newest_week_ms, ten_minutes, hours, \
             days, weeks, ranks, newest_rank_week FROM server_series WHERE {range}"
        );
        for row in self.all::<Row>("server_series", &select).await? {
            let mut it = Fields::new(row);
            let key = it.get::<u32>().map_err(|bad| self.unreadable_key("server_series", bad))?;
            let Some(archived) = at.get_mut(&key) else { continue };
            match series_of(&mut it) {
                Ok(series) => archived.server.series = Some(series),
                Err(bad) => page.rejected.push(bad.in_row("server_series", format!("server={key}"))),
            }
        }
        Ok(page)
    }

    /// The published ratings of a week, by the label of its window: the names of games and tags
    /// (`None`: a game), and the best players of each.
    pub async fn read_published_boards(&mut self, label: &str) -> Result<Vec<(Option<String>, u64)>, ArchiveError> {
        let select = format!(
            "SELECT scope_type, scope, board FROM top_board WHERE scope_type IN ('game', 'tag') AND window_type = 'week' \
             AND window_label = {} AND ranking = 'elo' ORDER BY board",
            literal(label)
        );
        let boards: Vec<(String, String, u64)> = self.all("top_board", &select).await?;
        Ok(boards.into_iter().map(|(kind, scope, board)| (Some(scope).filter(|_| kind == "tag"), board)).collect())
    }

    /// The ratings of a published board.
    pub async fn read_published_ratings(&mut self, board: u64) -> Result<Vec<PublishedRating>, ArchiveError> {
        let select =
            format!("SELECT player, score, reached_ms FROM top_board_row WHERE board = {board} ORDER BY position");
        let rows: Vec<Row> = self.all("top_board_row", &select).await?;
        let rating = |row| -> Result<PublishedRating, BadValue> {
            let mut it = Fields::new(row);
            Ok(PublishedRating { player: PlayerKey(it.get()?), elo: it.double()?, at_ms: it.get()? })
        };
        // A rating that cannot be read is estimated.
        Ok(rows.into_iter().filter_map(|row| rating(row).ok()).collect())
    }

    async fn last_key(&mut self, columns: &[(&'static str, &str)]) -> Result<u32, ArchiveError> {
        let mut last = 0;
        for (table, column) in columns {
            let found: Option<Option<u32>> = self.first(table, &format!("SELECT MAX({column}) FROM {table}")).await?;
            last = last.max(found.flatten().unwrap_or(0));
        }
        Ok(last)
    }

    /// The next rows of a table after a key.
    async fn page<T>(
        &mut self,
        query: &Query,
        after: Option<PageKey>,
        most: usize,
        decode: impl Fn(PageKey, &mut Fields) -> Result<T, BadValue>,
    ) -> Result<Page<T>, ArchiveError> {
        let Query { table, keys, columns, week } = *query;
        let mut conditions: Vec<String> = week.iter().map(|week| format!("week = {week}")).collect();
        if let Some([first, second]) = after {
            // The condition is not (a, b) > (x, y), because for that the database reads the whole
            // index.
            conditions.push(match keys {
                [key] => format!("{key} > {first}"),
                [a, b] => format!("({a} > {first} OR ({a} = {first} AND {b} > {second}))"),
                _ => unreachable!("one or two key columns"),
            });
        }
        let condition = if conditions.is_empty() { "TRUE".to_owned() } else { conditions.join(" AND ") };
        let keys_list = keys.join(", ");
        let select = format!(
            "SELECT {keys_list}, {columns} FROM {table} FORCE INDEX (PRIMARY) WHERE {condition} \
             ORDER BY {keys_list} LIMIT {most}"
        );
        let rows: Vec<Row> = self.all(table, &select).await?;
        let is_full = rows.len() == most;
        let mut page = Page { rows: Vec::with_capacity(rows.len()), rejected: Vec::new(), next: None };
        for row in rows {
            let mut it = Fields::new(row);
            let mut key = PageKey::default();
            for number in &mut key[..keys.len()] {
                *number = it.get().map_err(|bad| self.unreadable_key(table, bad))?;
            }
            match decode(key, &mut it) {
                Ok(row) => page.rows.push(row),
                Err(bad) => {
                    let week = week.iter().map(|week| format!("week={week}"));
                    let named = keys.iter().zip(key).map(|(name, number)| format!("{name}={number}"));
                    page.rejected.push(bad.in_row(table, week.chain(named).collect::<Vec<_>>().join(" ")));
                }
            }
            page.next = Some(key).filter(|_| is_full);
        }
        Ok(page)
    }

    fn unreadable_key(&self, table: &'static str, bad: BadValue) -> ArchiveError {
        let why = format!("table {table} has another key than in schema.sql: column {} {}", bad.column, bad.why);
        ArchiveError::Schema { target: self.target.clone(), why }
    }
}

fn server_of(server: u32, it: &mut Fields) -> Result<ArchivedServer, BadValue> {
    let server = ServerArchive {
        key: ServerKey(server),
        url: it.get()?,
        hostname: it.get()?,
        game: it.opt()?.map(GameKey),
        map: it.opt()?.map(MapKey),
        slots: it.get()?,
        class: it.get()?,
        missed: it.get()?,
        online: it.bool()?,
        players: it.get()?,
        assumed_players: it.get()?,
        total_points: it.get()?,
        bots_unidentified: it.get()?,
        added_ms: it.get()?,
        last_scan_ms: it.opt()?,
        last_seen_ms: it.opt()?,
        rank: it.opt()?,
        rank_week: it.opt()?.map(WeekKey),
        greylist_reason: it.opt()?,
        removed: it.bool()?,
        tags: Vec::new(),
        list: Vec::new(),
        series: None,
        screened: Vec::new(),
    };
    Ok(ArchivedServer { server, players_listed: 0, last_row_ms: None })
}

fn series_of(it: &mut Fields) -> Result<SeriesRecord, BadValue> {
    Ok(SeriesRecord {
        newest_ten_minutes_ms: it.get()?,
        newest_hour_ms: it.get()?,
        newest_day_ms: it.get()?,
        newest_week_ms: it.get()?,
        ten_minutes: it.get()?,
        hours: it.get()?,
        days: it.get()?,
        weeks: it.get()?,
        ranks: it.get()?,
        newest_rank_week: it.opt()?.map(WeekKey),
    })
}
