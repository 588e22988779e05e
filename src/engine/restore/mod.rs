//! Builds a state from the values of the archive (docs/backup-and-restore.md#restore-from-mysql).
//!
//! The caller passes the rows of the archive, table after table in the order of the methods below, and
//! writes the commits to an empty store. Memory grows with the number of players (8 bytes each), of
//! servers, and of the rows of one week (32 bytes each); everything else is in the next commit.
//!
//! The values of names and servers must be correct, because a player with another key would be
//! another player. An inconsistent row of any other table is rejected, and the caller reports it.
//!
//! The restored state continues the archive: it has the archive's ID and nothing to archive. The
//! content of the archive therefore does not change, in particular weeks that are closed or not
//! restored.

mod player_row;
mod player_windows;
mod server_record;
mod weeks;

use std::collections::BTreeMap;

use self::player_windows::WeekRatings;
use self::weeks::RestoredWeek;
use super::EngineSettings;
use super::key_table::KeyTable;
use crate::limits::SERVERS_MAX;
use crate::model::archive::{MapWeekArchive, PlayerWeekArchive};
use crate::model::calendar::{WEEK_MS, week_label};
use crate::model::commit::{MapRowKey, Meta, RowKey};
use crate::model::outbox::ResyncState;
use crate::model::packed_row::PackedRow;
use crate::model::packed_series::PackedSeries;
use crate::model::restored::{
    ArchiveFacts, ArchivedBest, ArchivedResult, ArchivedServer, ArchivedWeek, LastKeys, PublishedRating, RejectedRow,
};
use crate::model::row::{BestPositions, MapRow, Ranking};
use crate::model::server::PlayerRecord;
use crate::model::{Commit, GameKey, MapKey, PlayerKey, ServerKey, ServerUrl, TagKey, WeekKey};
use crate::view::restore_report::RestoreReport;

/// The largest keys that are accepted: the engine has an entry in memory for each game, map and
/// server below the largest key.
const NAME_KEY_MAX: u32 = 10_000_000;
const PLAYER_KEY_MAX: u32 = u32::MAX - 1_000_000;

/// Times from the year 6429 on are wrong.
const TIME_MS_MAX: i64 = 1 << 47;

/// Why an archive cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    #[error("the archive has no servers and no players: there is nothing to restore")]
    Empty,
    #[error(
        "week {} of the archive begins at {start_ms} ms and ends at {end_ms} ms, which is not a week of time zone {zone:?}: \
         set time_zone to the zone that the archive was filled with",
        week_label(*.week)
    )]
    Zone { week: WeekKey, start_ms: i64, end_ms: i64, zone: String },
    #[error("the archive uses {what} key {key}, and clqd restores keys up to {max}: delete the rows with that key")]
    KeyTooLarge { what: &'static str, key: u32, max: u32 },
    #[error("cannot restore {0}: correct or delete this row in the database, and restore again")]
    Row(#[from] RejectedRow),
}

/// A state that is being built.
#[derive(Debug)]
pub struct StateRestore {
    settings: EngineSettings,
    meta: Meta,
    games: BTreeMap<GameKey, String>,
    maps: Vec<MapKey>,
    tags: KeyTable,
    /// In order of key.
    players: Vec<(PlayerKey, GameKey)>,
    servers: BTreeMap<ServerKey, RestoredServer>,
    /// In order.
    weeks: Vec<RestoredWeek>,
    ratings: WeekRatings,
    pending: Commit,
    report: RestoreReport,
}

/// The fields of a server that are needed to restore other rows.
#[derive(Debug)]
struct RestoredServer {
    tags: Vec<TagKey>,
    rank: Option<u32>,
    rank_week: Option<WeekKey>,
}

impl StateRestore {
    pub fn new(settings: EngineSettings, facts: &ArchiveFacts) -> Result<StateRestore, RestoreError> {
        let calendar = *settings.windows.calendar();
        let LastKeys { game, map, player, server } = facts.last_keys;
        if (player, server) == (0, 0) {
            return Err(RestoreError::Empty);
        }
        let servers_max = SERVERS_MAX as u32;
        for (what, key, max) in [
            ("game", game, NAME_KEY_MAX),
            ("map", map, NAME_KEY_MAX),
            ("player", player, PLAYER_KEY_MAX),
            ("server", server, servers_max),
        ] {
            if key > max {
                return Err(RestoreError::KeyTooLarge { what, key, max });
            }
        }
        for &ArchivedWeek { week, start_ms, end_ms } in &facts.weeks {
            let is_possible = i64::from(week.0) < TIME_MS_MAX / WEEK_MS;
            if !is_possible || (start_ms, end_ms) != (calendar.week_start_ms(week), calendar.week_end_ms(week)) {
                let zone = calendar.zone_name().to_owned();
                return Err(RestoreError::Zone { week, start_ms, end_ms, zone });
            }
        }
        let is_time = |t_ms: &i64| (0..TIME_MS_MAX).contains(t_ms);
        let meta = Meta {
            next_game: game + 1,
            next_map: map + 1,
            next_player: player + 1,
            first_seen_from: PlayerKey(player + 1),
            next_server: server + 1,
            next_tag: 1,
            now_ms: facts.published_ms.filter(is_time).unwrap_or(0),
            time_zone: calendar.zone_name().to_owned(),
            archived_orders: Some(settings.order_overrides()),
            resync_state: ResyncState { archive_id: facts.state_id, ..ResyncState::default() },
            ..Meta::default()
        };
        let weeks = weeks::candidates(&facts.weeks, settings.keep_weeks);
        let report = RestoreReport { weeks_left: (facts.weeks.len() - weeks.len()) as u64, ..RestoreReport::default() };
        Ok(StateRestore {
            settings,
            meta,
            games: BTreeMap::new(),
            maps: Vec::new(),
            tags: KeyTable::default(),
            players: Vec::new(),
            servers: BTreeMap::new(),
            weeks,
            ratings: WeekRatings::default(),
            pending: Commit::default(),
            report,
        })
    }

    pub fn report(&mut self) -> &mut RestoreReport {
        &mut self.report
    }

    /// The latest time so far, Unix ms.
    pub fn now_ms(&self) -> i64 {
        self.meta.now_ms
    }

    /// Returns the changes so far once they have at least `records_min` records.
    pub fn take_commit(&mut self, records_min: usize) -> Option<Commit> {
        let is_large = self.pending.records() >= records_min;
        is_large.then(|| std::mem::take(&mut self.pending))
    }

    pub fn game(&mut self, key: GameKey, name: String) -> Result<(), RejectedRow> {
        if key.0 == 0 {
            return Err(rejected("game", format!("game={key}"), "0 is not a key"));
        }
        self.report.games += 1;
        self.pending.games.push((key, name.clone()));
        self.games.insert(key, name);
        Ok(())
    }

    pub fn map(&mut self, key: MapKey, name: String) -> Result<(), RejectedRow> {
        if key.0 == 0 {
            return Err(rejected("map", format!("map={key}"), "0 is not a key"));
        }
        self.report.maps += 1;
        self.maps.push(key);
        self.pending.maps.push((key, name));
        Ok(())
    }

    /// In order of key.
    pub fn player(&mut self, key: PlayerKey, record: PlayerRecord) -> Result<(), RejectedRow> {
        let row = || format!("player={key}");
        if key.0 == 0 {
            return Err(rejected("player", row(), "0 is not a key"));
        }
        if !self.games.contains_key(&record.game) {
            return Err(rejected("player", row(), format!("game {} is not in table game", record.game)));
        }
        if record.name.is_empty() || record.name.contains('\0') {
            return Err(rejected("player", row(), "the name is empty, or contains a zero byte"));
        }
        self.report.players += 1;
        self.players.push((key, record.game));
        match self.pending.players.first_mut() {
            Some(players) => players.push((key, record)),
            None => self.pending.players.push(vec![(key, record)]),
        }
        Ok(())
    }

    pub fn server(&mut self, archived: ArchivedServer) -> Result<(), RestoreError> {
        let ArchivedServer { mut server, players_listed, last_row_ms } = archived;
        let key = server.key;
        let row = || format!("server={key}");
        let fail = |why: String| RestoreError::Row(rejected("server", row(), why));
        let url = ServerUrl::parse(&server.url).map_err(|error| fail(error.to_string()))?;
        if key.0 == 0 || url.as_str() != server.url {
            return Err(fail(format!("the URL in its canonical form is {url}, and the key is at least 1")));
        }
        let mut tags = Vec::new();
        for name in &server.tags {
            let (tag, is_new) = self.tags.intern(name);
            if is_new {
                self.meta.next_tag = tag + 1;
                self.report.tags += 1;
                self.pending.tags.push((TagKey(tag), name.clone()));
            }
            tags.push(TagKey(tag));
        }
        let is_unknown_map = server.map.is_some_and(|map| self.maps.binary_search(&map).is_err());
        let is_unknown_game = server.game.is_some_and(|game| !self.games.contains_key(&game));
        for (is_unknown, column) in [(is_unknown_map, "map"), (is_unknown_game, "game")] {
            if is_unknown {
                self.report.reject(&rejected("server", row(), format!("the {column} is not in table {column}")));
            }
        }
        // A scan that is in the rows must not be applied again from the log.
        let last_row_ms = last_row_ms.filter(|t_ms| (0..TIME_MS_MAX).contains(t_ms));
        server.last_scan_ms = server.last_scan_ms.max(last_row_ms);
        server.last_seen_ms = server.last_seen_ms.max(last_row_ms);
        server.map = server.map.filter(|_| !is_unknown_map);
        server.game = server.game.filter(|_| !is_unknown_game);
        if server.series.as_ref().is_some_and(|series| !crate::series::slots::is_well_formed(series)) {
            self.report.reject(&rejected("server_series", row(), "a series has a wrong length or time"));
            server.series = None;
        }
        let series = server.series.take();
        let restored = RestoredServer { tags: tags.clone(), rank: server.rank, rank_week: server.rank_week };
        let record = server_record::restore(server, url, tags, series.as_ref(), self.settings.windows.calendar());
        let record = record.map_err(fail)?;
        let times = [Some(record.added_ms), record.last_scan_ms, record.last_seen_ms];
        let series_ms = series.as_ref().map(|series| series.newest_ten_minutes_ms);
        self.meta.now_ms = times.into_iter().chain([series_ms]).flatten().fold(self.meta.now_ms, i64::max);
        self.report.servers += 1;
        self.report.players_online += players_listed;
        self.report.servers_greylisted += u64::from(record.greylist_reason.is_some());
        self.report.series += u64::from(series.is_some());
        self.pending.series.extend(series.map(|series| (key, PackedSeries::pack(&series))));
        self.pending.servers.push((key, record.into()));
        self.servers.insert(key, restored);
        Ok(())
    }

    /// A player on a server in a restored week.
    pub fn player_week(
        &mut self,
        week: WeekKey,
        server: ServerKey,
        archived: &PlayerWeekArchive,
    ) -> Result<(), RejectedRow> {
        let player = archived.player;
        let reject = |why: &str| rejected("player_week", format!("week={week} server={server} player={player}"), why);
        if self.game_of(player).is_none() {
            return Err(reject("the player is not in table player"));
        }
        if !self.servers.contains_key(&server) {
            return Err(reject("the server is not in table server"));
        }
        let row = player_row::restore(archived).map_err(|why| reject(&why))?;
        self.report.player_rows += 1;
        self.meta.now_ms = self.meta.now_ms.max(row.time_at_ms).max(row.points_at_ms).max(row.elo_at_ms);
        self.ratings.push(player, server, &row);
        self.pending.rows.push((RowKey { window: week.into(), server, player }, PackedRow::pack(&row)));
        Ok(())
    }

    /// The published rating of a player in a week whose rows are being restored. `tag`: its name;
    /// `None`: of the player's game.
    pub fn published_rating(&mut self, tag: Option<&str>, rating: &PublishedRating) {
        let scope = match tag {
            None => None,
            Some(name) => match self.tags.find(name) {
                Some(tag) => Some(TagKey(tag)),
                None => return,
            },
        };
        self.ratings.publish(scope, rating);
    }

    /// Adds at most `most` records of players in a week, after all rows of the week. Returns whether
    /// there are more.
    pub fn player_windows(&mut self, week: WeekKey, most: usize) -> bool {
        for _ in 0..most {
            let Some(rated) = self.ratings.pop_player() else { return false };
            let game = self.game_of(rated.player).expect("rows of unknown players were rejected");
            let tags_of = |server| self.servers.get(&server).map_or(&[][..], |server| &server.tags);
            let (window, counts) = self.ratings.player_window(&rated, game, tags_of);
            self.report.ratings_estimated += counts.estimated;
            self.report.ratings_published += counts.published;
            self.pending.player_windows.push(((week.into(), rated.player), window));
        }
        true
    }

    pub fn map_week(&mut self, week: WeekKey, server: ServerKey, archived: MapWeekArchive) -> Result<(), RejectedRow> {
        let MapWeekArchive { map, played_ms, player_ms } = archived;
        let reject = |why: &str| rejected("map_week", format!("week={week} server={server} map={map}"), why);
        if self.maps.binary_search(&map).is_err() {
            return Err(reject("the map is not in table map"));
        }
        if !self.servers.contains_key(&server) {
            return Err(reject("the server is not in table server"));
        }
        // Sums of these must not overflow.
        if played_ms.max(player_ms) > TIME_MS_MAX as u64 {
            return Err(reject("a time is too long"));
        }
        self.report.map_rows += 1;
        self.pending.map_rows.push((MapRowKey { week, server, map }, MapRow { played_ms, player_ms }));
        Ok(())
    }

    /// The best positions of a player on a server: the archived ones, and the results of restored
    /// closed weeks and of older ones, in order of week.
    pub fn best(
        &mut self,
        (server, player): (ServerKey, PlayerKey),
        archived: &[ArchivedBest],
        results: &[(WeekKey, ArchivedResult)],
    ) -> Result<(), RejectedRow> {
        let reject = |why: &str| rejected("best_position", format!("server={server} player={player}"), why);
        if self.game_of(player).is_none() {
            return Err(reject("the player is not in table player"));
        }
        if !self.servers.contains_key(&server) {
            return Err(reject("the server is not in table server"));
        }
        let mut best = BestPositions::default();
        best.elo = results.last().map(|(_, result)| result.elo);
        results.iter().for_each(|(week, _)| best.note_week(*week));
        for (which, ranking) in Ranking::WITH_BEST_POSITIONS.into_iter().enumerate() {
            let mut three: Vec<(u32, WeekKey)> =
                archived.iter().filter(|best| best.ranking == ranking).map(|best| (best.position, best.week)).collect();
            three.sort_unstable();
            three.iter().for_each(|&(position, week)| best.set(which, Some(position), week));
            let Some(third) = three.get(2) else { continue };
            // Worse positions become one of the three best if a week is reopened.
            let kept = results.iter().filter(|(week, _)| self.weeks.iter().any(|kept| kept.week == *week));
            for (week, result) in kept.filter(|(week, _)| three.iter().all(|(_, of)| of != week)) {
                if result.positions[which].is_some_and(|position| (position, *week) > *third) {
                    best.set(which, result.positions[which], *week);
                }
            }
        }
        self.report.best_players += 1;
        self.pending.best.push(((server, player), best));
        self.pending.new_best.push((player, server));
        Ok(())
    }

    /// Returns the remaining changes, which complete the state, and a summary of the restore.
    pub fn finish(mut self) -> (Commit, RestoreReport) {
        self.finish_weeks();
        // Keys of players who were merged or forgotten are not used again.
        let known = u32::try_from(self.players.len()).unwrap_or(u32::MAX);
        self.meta.players_removed = (self.meta.next_player - 1).saturating_sub(known);
        self.pending.meta = Some(self.meta);
        (self.pending, self.report)
    }

    fn game_of(&self, player: PlayerKey) -> Option<GameKey> {
        let at = self.players.binary_search_by_key(&player, |(player, _)| *player).ok()?;
        Some(self.players[at].1)
    }
}

fn rejected(table: &'static str, key: String, why: impl Into<String>) -> RejectedRow {
    RejectedRow { table, key, why: why.into() }
}
