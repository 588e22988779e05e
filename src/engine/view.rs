//! Answers to queries, computed from committed and live state.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{ReadError, ReadModel, ServerState, StateReader, ViewError};
use crate::board::score_unit::display_score;
use crate::engine::boards::query::order_view;
use crate::model::calendar::DAY_MS;
use crate::model::commit::{WeekPhase, WeekState};
use crate::model::name::{ColourCodes, normalise};
use crate::model::packed_series::PackedSeries;
use crate::model::row::{PlayerRow, Ranking};
use crate::model::server::{Class, ServerRecord};
use crate::model::{GameKey, MapKey, PlayerKey, ServerKey, ServerUrl, WeekKey, calendar};
use crate::series::{self, slots};
use crate::view::export::EstimatesView;
use crate::view::{
    BestView, EngineCounts, EngineStatus, ListedPlayer, MapSeen, MapShare, PlayerNameView, PlayerView, PlayerWeekView,
    PublicServer, PublicServerDetail, ScreenedView, SeriesView, ServerDetail, ServerFields, ServerNameView,
    ServerSummary, Setting, Top, TopRow, WeekStatus,
};

/// Most rows of weeks of a player in one answer.
pub const PLAYER_WEEKS_MAX: usize = 100;

/// Most rows of servers that are read for the positions of a player, in one week and in one answer: for those of
/// one row of the player, all rows of its server. An answer ends with the first week in which some servers are left,
/// and has at least one row.
const PLAYER_WEEK_ROWS_READ_MAX: usize = 5_000;
const PLAYER_ROWS_READ_MAX: usize = 50_000;

/// Most servers of a player that are examined in a week to find those with most time: each is a read of the
/// database.
const PLAYER_SERVERS_SORTED_MAX: usize = 200;

/// Most servers of a player in a week that are searched for the player's presence: the newest, by when the player was
/// first seen there. They are in memory.
pub(super) const PLAYER_SERVERS_SEEN_MAX: usize = 500;

/// Days on which a server was seen: those in its series, and the running one.
fn days_seen(record: &ServerRecord, series: Option<&PackedSeries>) -> u32 {
    let Some(series) = series.map(PackedSeries::unpack) else { return u32::from(record.last_seen_ms.is_some()) };
    let ended = slots::known_bytes(&series.days);
    let is_seen_now = record.last_seen_ms.is_some_and(|seen_ms| seen_ms >= series.newest_day_ms + DAY_MS);
    ended + u32::from(is_seen_now)
}

impl ReadModel {
    /// Weeks that hold rows, oldest first.
    pub fn weeks(&self) -> &[WeekState] {
        &self.global.meta.weeks
    }

    pub fn status(&self) -> EngineStatus {
        let mut status = EngineStatus {
            now_ms: self.now_ms(),
            week: calendar::week_label(self.global.calendar.week(self.now_ms())),
            weeks: self
                .global
                .meta
                .weeks
                .iter()
                .map(|s| WeekStatus { week: calendar::week_label(s.week), phase: s.phase })
                .collect(),
            retry_failed_s: self.global.settings.intervals.retry_failed_ms.map(|ms| ms as u64 / 1_000),
            in_flight: self.scans_in_flight(),
            players_known: self.players_known(),
            counts: EngineCounts { points_saturated: self.global.points_saturated, ..self.counts.clone() },
            lag_ms_p50: self.lag_histogram.percentile_ms(0.5),
            lag_ms_p99: self.lag_histogram.percentile_ms(0.99),
            boards_memory_bytes: self.global.board_cache.memory_bytes(self.now_ms()),
            time_zone: self.global.calendar.zone_name().to_owned(),
            archive_complete_ms: self.global.archive_complete_ms,
            rebuilding: self.rebuilding(),
            ..EngineStatus::default()
        };
        for (key, server_state) in self.listed_servers() {
            status.servers += 1;
            status.servers_by_class[usize::from(server_state.record.class.number()) - 1] += 1;
            if server_state.record.class >= Class::UNKNOWN && !server_state.record.awaits_first_scan() {
                status.servers_failed += 1;
                let next_ms = [status.next_retry_ms, self.scan_plan(key, server_state).due_ms];
                status.next_retry_ms = next_ms.into_iter().flatten().min();
            }
            status.greylisted += u64::from(server_state.record.greylist_reason.is_some());
            if self.is_online(&server_state.record) {
                status.players_online += u64::from(server_state.record.believed_count());
            }
        }
        status
    }

    /// Players that have a key.
    pub(super) fn players_known(&self) -> u64 {
        let meta = &self.global.meta;
        u64::from(meta.next_player.saturating_sub(1 + meta.players_removed))
    }

    /// Servers that are not removed, in order of key.
    pub fn servers(&self) -> impl Iterator<Item = ServerSummary> + '_ {
        self.servers_that(|server| !server.is_removed)
    }

    /// Servers with fields that match, removed ones included, in order of key.
    pub fn servers_that(&self, matches: impl Fn(&ServerFields<'_>) -> bool) -> impl Iterator<Item = ServerSummary> {
        let matching = self.servers.iter().filter(move |(_, server_state)| matches(&self.fields(server_state)));
        matching.map(|(key, server_state)| self.summary(key, server_state))
    }

    pub fn public_server_of(&self, key: ServerKey) -> Option<PublicServer> {
        self.servers.get(key).map(|server_state| self.public_server(key, server_state))
    }

    pub fn server_detail(&self, source: &dyn StateReader, url: &ServerUrl) -> Result<ServerDetail, ViewError> {
        let (key, server_state) = self.find_server(url)?;
        let record = &server_state.record;
        if record.removed {
            return Err(ViewError::RemovedServer(url.as_str().to_owned()));
        }
        let week = self.global.calendar.week(self.now_ms());
        let mut maps = self.map_rows(source, week, key)?;
        maps.sort_by_key(|(_, row)| Reverse(row.player_ms));
        let plan = self.scan_plan(key, server_state);
        let published = self.global.published.shown(key, record.map);
        let map_name = |map: MapKey| self.global.maps.name(map.0).to_owned();
        let public = PublicServerDetail {
            server: self.public_server(key, server_state),
            next_scan_ms: plan.due_ms,
            elastic: self.elastic_view(key, server_state),
            total_points: record.total_points,
            bots_unidentified: record.screening.as_ref().map_or(0, |screening| screening.bots_unidentified),
            authentication: server_state.authentication.map(|grade| grade.to_string()),
            settings: published.settings.into_iter().map(|(name, value)| Setting { name, value }).collect(),
            maps_seen: published
                .maps
                .iter()
                .map(|&(map, since_ms)| MapSeen { map: map_name(map), since_ms })
                .filter(|seen| !seen.map.is_empty())
                .collect(),
            next_map: published.next_map.map(map_name),
            players_listed: record
                .last_snapshot
                .iter()
                .filter(|_| self.is_online(record))
                .flat_map(|last| &last.entries)
                .map(|entry| ListedPlayer {
                    name: entry.name.to_string(),
                    display: entry.display().to_owned(),
                    points: entry.points,
                    ping: entry.ping,
                    player_key: entry.presence.as_ref().map(|presence| presence.player.0),
                    spectator: entry.spectator,
                    since_ms: entry.presence.as_ref().and_then(|presence| Some(presence.session?.start_ms)),
                })
                .collect(),
            series: server_state.series.as_ref().map(PackedSeries::unpack).map(|series| SeriesView {
                newest_ten_minutes_ms: series.newest_ten_minutes_ms,
                ten_minutes: slots::decode_slots(&series.ten_minutes),
                newest_hour_ms: series.newest_hour_ms,
                hours: slots::decode_bytes(&series.hours),
                newest_day_ms: series.newest_day_ms,
                days: slots::decode_bytes(&series.days),
                newest_week_ms: series.newest_week_ms,
                weeks: slots::decode_bytes(&series.weeks),
                ranks: slots::decode_ranks(&series.ranks),
                newest_rank_week_ms: series.newest_rank_week.map(|week| self.global.calendar.week_start_ms(week)),
            }),
            coverage: {
                let elapsed_ms = self.now_ms() - self.global.calendar.week_start_ms(week);
                let seen_ms: u64 = maps.iter().map(|(_, row)| row.played_ms).sum();
                if elapsed_ms > 0 { (seen_ms as f64 / elapsed_ms as f64).min(1.0) } else { 0.0 }
            },
            maps: maps
                .into_iter()
                .map(|(map, row)| MapShare {
                    map: self.global.maps.name(map.0).to_owned(),
                    minutes: row.played_ms as f64 / 60_000.0,
                    average_players: if row.played_ms == 0 { 0.0 } else { row.player_ms as f64 / row.played_ms as f64 },
                })
                .collect(),
        };
        Ok(ServerDetail {
            public,
            greylist_reason: record.greylist_reason.clone(),
            scan_in_progress: plan.in_progress,
            exempt_checks: record.screening.iter().flat_map(|screening| screening.exempt_reasons()).collect(),
        })
    }

    /// The first `n` entries of a server's board, in the current week unless `label` names
    /// another.
    pub fn top(
        &self,
        source: &dyn StateReader,
        url: &ServerUrl,
        ranking: Ranking,
        label: Option<&str>,
        n: usize,
    ) -> Result<Top, ViewError> {
        let (key, _) = self.find_server(url)?;
        let current = self.global.calendar.week(self.now_ms());
        let week = match label {
            // The current week may have no rows, also if it is given by its label.
            Some(label) if calendar::parse_week_label(label) != Ok(current) => self.find_week(label)?,
            _ => current,
        };
        let rows = self.counted_rows(source, week.into(), key)?;
        let orders = self.server_orders(key);
        let board = orders.board(&rows, ranking);
        let mut top = Top {
            server: url.as_str().to_owned(),
            week: calendar::week_label(week),
            ranking,
            order: order_view(orders.order(ranking)),
            closed: self.is_closed(week),
            size: board.len() as u64,
            rows: Vec::new(),
        };
        for (entry, position) in board.into_iter().zip(1..).take(n) {
            let (name, display) = self.player_names(source, entry.player)?;
            let at =
                rows.binary_search_by_key(&entry.player, |(player, _)| *player).expect("rows are in order of player");
            let row = &rows[at].1;
            top.rows.push(TopRow {
                position,
                player_key: entry.player.0,
                name,
                display,
                score: display_score(ranking, entry.score()),
                reached_ms: entry.at_ms,
                elo_rounds: row.elo_rounds,
                elo_rounds_sure: row.elo_rounds_sure,
            });
        }
        Ok(top)
    }

    /// All players with this name, at most one for each game. The name is searched for as given
    /// and, if no player has it, without colour codes.
    pub fn players(&self, source: &dyn StateReader, name: &str) -> Result<Vec<PlayerView>, ViewError> {
        let found = self.players_named(source, name)?;
        if found.is_empty() {
            return Err(ViewError::UnknownPlayer(normalise(name, ColourCodes::None)));
        }
        // Few games know the same name.
        let weeks_max = (PLAYER_WEEKS_MAX / found.len()).max(1);
        found.into_iter().map(|(game, player)| self.player_view(source, game, player, 0, weeks_max)).collect()
    }

    /// The player with this key, or the one that they were merged into; without the first `skip` rows
    /// of weeks.
    pub fn player(&self, source: &dyn StateReader, player: PlayerKey, skip: usize) -> Result<PlayerView, ViewError> {
        let current = self.current_player(source, player)?;
        let record = current.map(|current| self.global.player_record(source, current)).transpose()?.flatten();
        match current.zip(record) {
            Some((current, record)) => self.player_view(source, record.game, current, skip, PLAYER_WEEKS_MAX),
            None => Err(ViewError::UnknownPlayerKey(player.0)),
        }
    }

    /// The player that a key stands for now: this one, or the one that they were merged into. `None`:
    /// there was none, or they were forgotten.
    pub(super) fn current_player(
        &self,
        source: &dyn StateReader,
        player: PlayerKey,
    ) -> Result<Option<PlayerKey>, ReadError> {
        if self.global.player_record(source, player)?.is_some() {
            return Ok(Some(player));
        }
        match source.removed_player(player)? {
            Some(removed) => self.merge_target(source, removed),
            None => Ok(None),
        }
    }

    /// The names of all players with this name, as [`ReadModel::players`] finds them. None is no error.
    pub fn names_in_games(&self, source: &dyn StateReader, name: &str) -> Result<Vec<PlayerNameView>, ViewError> {
        let found = self.players_named(source, name)?.into_iter();
        Ok(found.filter_map(|(_, player)| self.player_name(source, player).transpose()).collect::<Result<_, _>>()?)
    }

    /// The name of a player. `None`: there is none with this key.
    pub fn player_name(
        &self,
        source: &dyn StateReader,
        player: PlayerKey,
    ) -> Result<Option<PlayerNameView>, ReadError> {
        let Some(record) = self.global.player_record(source, player)? else { return Ok(None) };
        let (_, last_seen_ms) = self.seen_times(source, player)?;
        Ok(Some(PlayerNameView {
            player_key: player.0,
            game: self.global.games.name(record.game.0).to_owned(),
            name: record.name.to_string(),
            display: record.display.to_string(),
            last_seen_ms,
        }))
    }

    fn player_view(
        &self,
        source: &dyn StateReader,
        game: GameKey,
        player: PlayerKey,
        mut skip: usize,
        weeks_max: usize,
    ) -> Result<PlayerView, ViewError> {
        let (name, display) = self.player_names(source, player)?;
        let (first_seen_ms, last_seen_ms) = self.seen_times(source, player)?;
        let mut view = PlayerView {
            player_key: player.0,
            game: self.global.games.name(game.0).to_owned(),
            name,
            display,
            aliases: source.aliases(player)?,
            first_seen_ms,
            last_seen_ms,
            online_on: Vec::new(),
            weeks: Vec::new(),
            weeks_partial: Vec::new(),
            weeks_more: 0,
            weeks_next: None,
            best: Vec::new(),
            servers: Vec::new(),
        };
        let mut next = skip as u64;
        let (mut servers_seen, mut servers_shown) = (BTreeSet::new(), BTreeSet::new());
        let (mut weeks_left, mut rows_left) = (weeks_max, PLAYER_ROWS_READ_MAX);
        // A server did not fit into the answer; later ones would leave a gap.
        let mut is_full = false;
        for (age, state) in self.global.meta.weeks.iter().rev().enumerate() {
            let player_window = self.global.latest_player_window(source, state.week.into(), player)?;
            let mut servers =
                player_window.map_or_else(Default::default, |player_window| player_window.into_owned().servers);
            // The newest first.
            servers.reverse();
            // The last list of a server is of the running week, or of the week before if that has just ended.
            if age < 2 {
                servers_seen.extend(servers.iter().copied().take(PLAYER_SERVERS_SEEN_MAX));
            }
            servers.retain(|&mut server| {
                self.servers.get(server).is_some_and(|state_of| self.is_counted(state_of, state.week.into(), server))
            });
            let skipped = skip.min(servers.len());
            skip -= skipped;
            if !is_full && skipped < servers.len() && servers.len() > 1 {
                let sorted = servers.len().min(PLAYER_SERVERS_SORTED_MAX);
                self.sort_by_time(source, state.week, player, &mut servers[..sorted])?;
            }
            let (mut week_views, mut taken, mut rows_of_week) = (Vec::new(), 0, 0);
            for &server in &servers[skipped..] {
                is_full |= weeks_left == 0 || rows_left == 0 || rows_of_week >= PLAYER_WEEK_ROWS_READ_MAX;
                if is_full {
                    break;
                }
                servers_shown.insert(server);
                let rows = self.counted_rows(source, state.week.into(), server)?;
                (taken, weeks_left, rows_of_week) = (taken + 1, weeks_left - 1, rows_of_week + rows.len());
                rows_left = rows_left.saturating_sub(rows.len());
                let Ok(at) = rows.binary_search_by_key(&player, |(p, _)| *p) else { continue };
                let positions = self.server_orders(server).positions_of(&rows, at);
                week_views.push(self.player_week(state.week, server, &rows[at].1, positions));
            }
            if (1..servers.len()).contains(&taken) {
                view.weeks_partial.push(calendar::week_label(state.week));
            }
            next += taken as u64;
            view.weeks_more += (servers.len() - skipped - taken) as u64;
            week_views.sort_by(|a, b| a.server.cmp(&b.server));
            view.weeks.extend(week_views);
        }
        view.weeks_next = (view.weeks_more > 0).then_some(next);
        let present: Vec<ServerKey> =
            servers_seen.into_iter().filter(|server| self.is_present(*server, player)).collect();
        view.online_on = present.iter().map(|server| self.server_url(*server)).collect();
        view.servers = servers_shown.union(&present.into_iter().collect()).map(|key| self.server_name(*key)).collect();
        view.servers.sort_by(|a, b| a.url.cmp(&b.url));
        for server in servers_shown {
            let best = source.best(server, player)?.unwrap_or_default();
            for (ranking, places) in Ranking::WITH_BEST_POSITIONS.into_iter().zip(self.shown_best(server, &best)) {
                view.best.extend(places.into_iter().map(|(position, week)| BestView {
                    server: self.server_url(server),
                    ranking,
                    position,
                    week: calendar::week_label(week),
                }));
            }
        }
        // Of equal positions, the newest first.
        view.best.sort_by(|a, b| a.position.cmp(&b.position).then_with(|| b.week.cmp(&a.week)));
        Ok(view)
    }

    /// Sorts servers by the time that a player was there in a week, most time first.
    fn sort_by_time(
        &self,
        source: &dyn StateReader,
        week: WeekKey,
        player: PlayerKey,
        servers: &mut [ServerKey],
    ) -> Result<(), ReadError> {
        let mut times = Vec::with_capacity(servers.len());
        for &server in servers.iter() {
            let row = match self.servers.get(server) {
                Some(server_state) => self.current_row(source, server_state, week.into(), server, player)?,
                None => None,
            };
            times.push((Reverse(row.map_or(0, |row| row.time_ms())), server));
        }
        times.sort_unstable();
        servers.iter_mut().zip(times).for_each(|(server, (_, sorted))| *server = sorted);
        Ok(())
    }

    pub(super) fn server_name(&self, server: ServerKey) -> ServerNameView {
        let hostname = self.servers.get(server).map_or_else(String::new, |state| state.record.hostname.clone());
        ServerNameView { url: self.server_url(server), hostname }
    }

    /// Whether a server is online and its last list has this player.
    fn is_present(&self, server: ServerKey, player: PlayerKey) -> bool {
        let Some(server_state) = self.servers.get(server) else { return false };
        let record = &server_state.record;
        let mut entries = record.last_snapshot.iter().flat_map(|last| &last.entries);
        let is_listed = entries.any(|entry| entry.presence.as_ref().is_some_and(|presence| presence.player == player));
        is_listed && self.is_online(record)
    }

    /// Players with this name, by game. The name is searched for as given and, if no player has
    /// it, without colour codes.
    pub(super) fn players_named(
        &self,
        source: &dyn StateReader,
        name: &str,
    ) -> Result<Vec<(GameKey, PlayerKey)>, ReadError> {
        let plain = normalise(name, ColourCodes::None);
        let found = source.players_named(&plain)?;
        let stripped = normalise(name, ColourCodes::DarkPlaces);
        if found.is_empty() && stripped != plain { source.players_named(&stripped) } else { Ok(found) }
    }

    /// Visits every row of a week, in order of server URL, player name and game: the rows that
    /// `clqd export` prints (docs/rules.md section 13). `each` gets the URL, game, name, row and
    /// positions.
    pub fn export<E: From<ViewError>>(
        &self,
        source: &dyn StateReader,
        label: &str,
        mut each: impl FnMut(&str, &str, &str, &PlayerRow, [Option<u32>; 5]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (week, servers) = self.exported_servers(label)?;
        servers.into_iter().try_for_each(|server| self.export_server(source, week, server, &mut each))
    }

    /// The week of a label, and the servers in the order of an export.
    pub fn exported_servers(&self, label: &str) -> Result<(WeekKey, Vec<ServerKey>), ViewError> {
        let week = self.find_week(label)?;
        Ok((week, self.servers_by_url()))
    }

    /// All servers in order of URL, removed ones too.
    pub fn servers_by_url(&self) -> Vec<ServerKey> {
        self.servers.sorted_by_url()
    }

    /// Visits the rows of one server, as [`ReadModel::export`] does.
    pub fn export_server<E: From<ViewError>>(
        &self,
        source: &dyn StateReader,
        week: WeekKey,
        server: ServerKey,
        each: &mut impl FnMut(&str, &str, &str, &PlayerRow, [Option<u32>; 5]) -> Result<(), E>,
    ) -> Result<(), E> {
        let rows = self.counted_rows(source, week.into(), server).map_err(ViewError::Store)?;
        if rows.is_empty() {
            return Ok(());
        }
        let positions = self.server_orders(server).positions(&rows);
        let mut lines = Vec::with_capacity(rows.len());
        for ((player, row), positions) in rows.iter().zip(positions) {
            let record = self.global.player_record(source, *player).map_err(ViewError::Store)?;
            let (name, game) = record.map_or_else(Default::default, |r| (r.name, r.game));
            lines.push((name, self.global.games.name(game.0), row, positions));
        }
        lines.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
        let url = self.server_url(server);
        lines.into_iter().try_for_each(|(name, game, row, positions)| each(&url, game, &name, row, positions))
    }

    fn find_week(&self, label: &str) -> Result<WeekKey, ViewError> {
        let weeks = &self.global.meta.weeks;
        let found = calendar::parse_week_label(label).ok().filter(|week| weeks.iter().any(|state| state.week == *week));
        found.ok_or_else(|| ViewError::UnknownWeek {
            week: label.to_owned(),
            available: match weeks.is_empty() {
                true => "none".to_owned(),
                false => weeks.iter().map(|s| calendar::week_label(s.week)).collect::<Vec<_>>().join(", "),
            },
        })
    }

    pub(super) fn is_closed(&self, week: WeekKey) -> bool {
        self.global.meta.weeks.iter().any(|s| s.week == week && s.phase == WeekPhase::Closed)
    }

    fn player_week(
        &self,
        week: WeekKey,
        server: ServerKey,
        row: &PlayerRow,
        positions: [Option<u32>; 5],
    ) -> PlayerWeekView {
        let ranked = Ranking::ALL.into_iter().filter_map(|ranking| Some((ranking, positions[ranking as usize]?)));
        PlayerWeekView {
            week: calendar::week_label(week),
            server: self.server_url(server),
            measured_ms: row.measured_ms,
            starts: row.starts,
            time_ms: row.time_ms(),
            estimates: EstimatesView::of(row),
            points: row.points,
            clq1: row.clq1(),
            clq2: row.clq2(),
            elo: row.elo,
            elo_rounds: row.elo_rounds,
            elo_rounds_sure: row.elo_rounds_sure,
            positions: ranked.collect::<BTreeMap<_, _>>(),
        }
    }

    pub(super) fn player_names(
        &self,
        source: &dyn StateReader,
        player: PlayerKey,
    ) -> Result<(String, String), ReadError> {
        let record = self.global.player_record(source, player)?;
        Ok(record.map_or_else(Default::default, |record| (record.name.into(), record.display.into())))
    }

    pub(super) fn find_server(&self, url: &ServerUrl) -> Result<(ServerKey, &ServerState), ViewError> {
        self.servers.named(url).ok_or_else(|| ViewError::UnknownServer(url.as_str().to_owned()))
    }

    fn server_url(&self, server: ServerKey) -> String {
        self.servers.get(server).map_or_else(String::new, |server_state| server_state.record.url.as_str().to_owned())
    }

    pub(super) fn listed_servers(&self) -> impl Iterator<Item = (ServerKey, &ServerState)> {
        self.servers.iter().filter(|(_, server_state)| !server_state.record.removed)
    }

    /// Only the fields by which lists are filtered; a summary takes ten times as long.
    pub(super) fn fields<'a>(&'a self, ServerState { record, .. }: &'a ServerState) -> ServerFields<'a> {
        ServerFields {
            url: record.url.as_str(),
            class: record.class.number(),
            hostname: &record.hostname,
            game: record.game.map(|key| self.global.games.name(key.0)),
            map: record.map.map(|key| self.global.maps.name(key.0)),
            online: self.is_online(record),
            tags: self.global.borrowed_tag_names(&record.tags).collect(),
            is_screened: !self.screened(record).is_empty(),
            is_greylisted: record.greylist_reason.is_some(),
            is_removed: record.removed,
        }
    }

    pub(super) fn summary(&self, key: ServerKey, server_state: &ServerState) -> ServerSummary {
        let greylist_reason = server_state.record.greylist_reason.clone();
        ServerSummary { public: self.public_server(key, server_state), greylist_reason }
    }

    fn public_server(&self, key: ServerKey, server_state: &ServerState) -> PublicServer {
        let record = &server_state.record;
        PublicServer {
            key: key.0,
            url: record.url.as_str().to_owned(),
            class: record.class.number(),
            missed: record.missed,
            hostname: record.hostname.clone(),
            game: record.game.map(|key| self.global.games.name(key.0).to_owned()),
            map: record.map.map(|key| self.global.maps.name(key.0).to_owned()),
            online: self.is_online(record),
            players: if self.is_online(record) { record.count } else { 0 },
            players_unverified: record.recent.count_unverified && self.is_online(record),
            assumed_players: series::assumed_players(record),
            slots: record.slots,
            rank: record.rank,
            added_ms: record.added_ms,
            days_seen: days_seen(record, server_state.series.as_ref()),
            last_scan_ms: record.last_scan_ms,
            last_seen_ms: record.last_seen_ms,
            greylisted: record.greylist_reason.is_some(),
            tags: self.global.tag_names(&record.tags),
            screened: self
                .screened(record)
                .into_iter()
                .map(|(reason, applied_ms)| ScreenedView { reason, applied_ms })
                .collect(),
            recent: None,
        }
    }
}
