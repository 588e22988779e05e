//! The current values of outbox entries, for the archive (docs/rules.md section 12). [`resync`] returns
//! all values, for an archive that is new or incomplete.

pub(super) mod changed_orders;
pub(super) mod changes;
mod enqueue;
mod large_week;
mod resend;
mod resync;
mod verify;
mod week_rows;
mod writer;

use std::collections::BTreeSet;
use std::sync::Arc;

use self::changes::ChangedRows;
use self::week_rows::WeekRows;

use super::rows::RowPage;
use super::{Engine, ReadError, ReadModel, RemovedPlayer, StateReader, StoreReader};
pub(super) use crate::engine::outbox::large_week::LargeWeek;
pub use crate::engine::outbox::resend::WeekRangeError;
pub use crate::engine::outbox::writer::{WriterPlan, WriterRefusal};
use crate::model::archive::{
    ArchiveJob, BestArchive, BestPositionsArchive, ListEntry, MapWeekArchive, PlayerKeyRange, ServerArchive,
    WeekArchive,
};
use crate::model::outbox::{OutboxEntry, OutboxKey};
use crate::model::packed_series::PackedSeries;
use crate::model::row::BestPositions;
use crate::model::{PlayerKey, ServerKey, WeekKey, calendar};
use crate::series;

/// Later keys are tasks for the archive's worker: they have no values.
const LAST_JOB: OutboxKey = OutboxKey::WeekTotals(WeekKey(u32::MAX));

/// Players in one job of best positions: some milliseconds.
const BEST_PLAYERS_MAX: usize = 1_000;

/// Tasks of one pass of the archive.
const TASKS_MAX: usize = 100;

/// An entry of the outbox whose value is to be read.
#[derive(Debug)]
pub struct BegunJob {
    entry: OutboxEntry,
    /// Of a server's week.
    changed: Option<ChangedRows>,
}

/// Where the best positions of a closed week are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BestPositionsIn {
    /// With the rows of the week.
    Week,
    /// Of all weeks at once, after the weeks: see [`BestPositionsArchive`].
    Objects,
}

impl ReadModel {
    /// The entries of the outbox that are tasks.
    pub fn archive_tasks(&self, source: &dyn StoreReader) -> Vec<OutboxEntry> {
        source.outbox(Some(LAST_JOB), TASKS_MAX)
    }

    /// The entries of the outbox after `after` and before `before` in archiving order, at most `most`, without tasks.
    pub fn archive_entries(
        &self,
        source: &dyn StoreReader,
        after: Option<OutboxKey>,
        before: Option<OutboxKey>,
        most: usize,
    ) -> Vec<OutboxEntry> {
        let mut entries = source.outbox(after, most);
        entries.retain(|entry| entry.key <= LAST_JOB && before.is_none_or(|before| entry.key < before));
        entries
    }

    /// The values of begun jobs, in their order; `None` for a deleted object. No job follows the one with which the rows
    /// reach `rows_max`. All changes must be committed: only durable data is archived. See [`Engine::begin_archive_jobs`].
    pub fn archive_jobs(
        &self,
        source: &dyn StateReader,
        begun: Vec<BegunJob>,
        rows_max: usize,
    ) -> Result<Vec<(OutboxEntry, Option<ArchiveJob>)>, ReadError> {
        assert!(!self.has_changes(), "commit before archiving");
        let mut jobs = Vec::new();
        let mut rows = 0;
        for BegunJob { entry, changed } in begun {
            if rows >= rows_max {
                break;
            }
            let job = match (entry.key, changed) {
                (OutboxKey::Week { week, server }, Some(changed)) => {
                    self.week_job(source, week, server, changed, BestPositionsIn::Week)?
                }
                (key, _) => self.archive_job(source, key)?,
            };
            if let Some(ArchiveJob::Week(week)) = &job {
                rows += week.rows.len() + week.maps.len();
            }
            jobs.push((entry, job));
        }
        Ok(jobs)
    }

    /// Which begun jobs that were read from a view must be read again: those of servers with a week whose rows have changed
    /// since, so that the job may mix older and newer ones. Best positions of several weeks are in the same rows of the
    /// archive, so all jobs of the server belong together.
    pub fn changed_since_begun(&self, keys: &[OutboxKey]) -> BTreeSet<OutboxKey> {
        let has_changed = |week: WeekKey, server| {
            self.global.archive_changes.has_changed_since_job(week, server) || !self.global.is_kept(week.into())
        };
        let changed = keys.iter().filter_map(|key| match *key {
            OutboxKey::Week { week, server } => has_changed(week, server).then_some(server),
            _ => None,
        });
        let servers: BTreeSet<ServerKey> = changed.collect();
        let is_of_changed = |key: &OutboxKey| match key {
            OutboxKey::Week { server, .. } | OutboxKey::BestPositions { server, .. } => servers.contains(server),
            _ => false,
        };
        keys.iter().copied().filter(is_of_changed).collect()
    }

    /// The current values of objects, of those that there are.
    pub fn archive_objects(&self, source: &dyn StateReader, keys: &[OutboxKey]) -> Result<Vec<ArchiveJob>, ReadError> {
        keys.iter().filter_map(|key| self.archive_job(source, *key).transpose()).collect()
    }

    /// `None`: the object was deleted with its week and there is nothing to write.
    fn archive_job(&self, source: &dyn StateReader, key: OutboxKey) -> Result<Option<ArchiveJob>, ReadError> {
        Ok(match key {
            OutboxKey::Game(key) => {
                let name = self.global.games.has_name(key.0).then(|| self.global.games.name(key.0).to_owned());
                name.map(|name| ArchiveJob::Game { key, name })
            }
            OutboxKey::Map(key) => {
                let name = self.global.maps.has_name(key.0).then(|| self.global.maps.name(key.0).to_owned());
                name.map(|name| ArchiveJob::Map { key, name })
            }
            OutboxKey::Player(key) => match source.player_record(key)? {
                Some(record) => Some(ArchiveJob::Player {
                    key,
                    game: record.game,
                    name: record.name.into(),
                    display: record.display.into(),
                }),
                None => match source.removed_player(key)? {
                    Some(removed) => Some(ArchiveJob::PlayerRemoved { key, into: self.merge_target(source, removed)? }),
                    None => None,
                },
            },
            OutboxKey::Server(key) => self.server_archive(key).map(|server| ArchiveJob::Server(Box::new(server))),
            OutboxKey::Week { week, server } => {
                self.week_job(source, week, server, ChangedRows::All, BestPositionsIn::Week)?
            }
            OutboxKey::BestPositions { server, after } => {
                Some(ArchiveJob::BestPositions(Box::new(self.best_positions(source, server, after)?)))
            }
            OutboxKey::Session(key) => source.session(&key)?.map(|session| ArchiveJob::Session(key, session)),
            OutboxKey::WeekTotals(week) => Some(ArchiveJob::WeekTotals { week }),
            OutboxKey::TopBoards(_) | OutboxKey::LaterRows => None,
        })
    }

    /// The player who has the rows of a removed player. That player may have been merged again.
    pub(super) fn merge_target(
        &self,
        source: &dyn StateReader,
        mut removed: RemovedPlayer,
    ) -> Result<Option<PlayerKey>, ReadError> {
        while let Some(into) = removed.into {
            match source.removed_player(into)? {
                Some(next) => removed = next,
                None => return Ok(Some(into)),
            }
        }
        Ok(None)
    }

    fn server_archive(&self, key: ServerKey) -> Option<ServerArchive> {
        let server_state = self.servers.get(key)?;
        let record = &server_state.record;
        let is_online = self.is_online(record);
        let entries = record.last_snapshot.iter().filter(|_| is_online).flat_map(|last| &last.entries);
        Some(ServerArchive {
            key,
            url: record.url.as_str().to_owned(),
            hostname: record.hostname.clone(),
            game: record.game,
            map: record.map,
            slots: record.slots,
            class: record.class.number(),
            missed: record.missed,
            online: is_online,
            players: if is_online { record.believed_count() } else { 0 },
            assumed_players: series::assumed_players(record),
            total_points: record.total_points,
            added_ms: record.added_ms,
            last_scan_ms: record.last_scan_ms,
            last_seen_ms: record.last_seen_ms,
            rank: record.rank,
            rank_week: record.rank_week,
            greylist_reason: record.greylist_reason.clone(),
            removed: record.removed,
            tags: self.global.tag_names(&record.tags),
            list: entries
                .map(|entry| ListEntry {
                    name: entry.name.to_string(),
                    display: entry.display().to_owned(),
                    points: entry.points,
                    player: entry.presence.as_ref().map(|presence| presence.player),
                    spectator: entry.spectator,
                })
                .collect(),
            series: server_state.series.as_ref().map(PackedSeries::unpack),
            screened: self.screened(record),
            bots_unidentified: record.screening.as_ref().map_or(0, |screening| screening.bots_unidentified),
        })
    }

    /// The best positions on a server of the players after one, as many as one job may have.
    fn best_positions(
        &self,
        source: &dyn StateReader,
        server: ServerKey,
        after: Option<PlayerKey>,
    ) -> Result<BestPositionsArchive, ReadError> {
        let found = source.best_after(server, after, BEST_PLAYERS_MAX)?;
        let through = found.last().filter(|_| found.len() == BEST_PLAYERS_MAX).map(|(player, _)| *player);
        let best = found.into_iter().map(|(player, kept)| self.best_archive(server, player, &kept));
        Ok(BestPositionsArchive { server, players: PlayerKeyRange { after, through }, best: best.collect() })
    }

    fn best_archive(&self, server: ServerKey, player: PlayerKey, kept: &BestPositions) -> BestArchive {
        BestArchive { player, three: self.shown_best(server, kept), since: kept.since }
    }

    /// The rows of a server's week that changed, and those of present players.
    fn week_job(
        &self,
        source: &dyn StateReader,
        week: WeekKey,
        server: ServerKey,
        changed: ChangedRows,
        best: BestPositionsIn,
    ) -> Result<Option<ArchiveJob>, ReadError> {
        if !self.global.is_kept(week.into()) {
            return Ok(None);
        }
        let most = self.global.settings.archive_chunk_rows;
        let RowPage { rows, is_last } = match self.servers.get(server) {
            Some(server_state) if self.is_counted(server_state, week.into(), server) => {
                self.rows_after(source, week.into(), server, None, most)?
            }
            _ => RowPage { rows: Vec::new(), is_last: true },
        };
        if !is_last {
            return Ok(Some(ArchiveJob::LargeWeek { week, server }));
        }
        let mut week_rows =
            WeekRows::new((week, server), self.server_orders(server), self.is_server_closed(week, server), changed);
        week_rows.changed.add_players(self.live_players(week, server));
        week_rows.push_rows(&rows);
        while !week_rows.assign_positions(usize::MAX) {}
        let week = self.week_archive(source, (week, server), &week_rows, None, usize::MAX, best)?;
        Ok(Some(ArchiveJob::Week(Box::new(week))))
    }

    /// Present players with a row in a week.
    fn live_players(&self, week: WeekKey, server: ServerKey) -> impl Iterator<Item = PlayerKey> {
        let presences = self.servers.get(server).into_iter().flat_map(|server_state| server_state.record.presences());
        presences.filter(move |presence| presence.row(week.into()).is_some()).map(|presence| presence.player)
    }

    /// A server's week with at most `most` of its changed players, after a player.
    fn week_archive(
        &self,
        source: &dyn StateReader,
        (week, server): (WeekKey, ServerKey),
        week_rows: &WeekRows,
        after: Option<PlayerKey>,
        most: usize,
        best_in: BestPositionsIn,
    ) -> Result<WeekArchive, ReadError> {
        let (span, rows) = week_rows.rows_after(after, most);
        let closed = week_rows.closed;
        let maps = self.map_rows(source, week, server)?;
        let player_ms = maps.iter().map(|(_, row)| row.player_ms).sum();
        let record = self.servers.record(server);
        let server_rank = if closed { source.rank(week, server)? } else { None };
        // A closed week does not change when its server is greylisted, or no longer: a server that was greylisted when the
        // week was closed got no rank for its players.
        let counted = record.filter(|record| match self.is_closed(week) {
            true => server_rank.is_some() || player_ms == 0,
            false => record.greylist_reason.is_none(),
        });
        let map_time = record.and_then(|record| record.map_time);
        let is_changed = |map| week_rows.changed.has_map(map) || map_time.is_some_and(|live| live.map == map);
        let maps = maps.into_iter().filter(|(map, _)| after.is_none() && is_changed(*map));
        let maps = maps.map(|(map, row)| MapWeekArchive { map, played_ms: row.played_ms, player_ms: row.player_ms });
        let mut best = Vec::new();
        // The archive still has positions of a reopened week.
        let writes_best = closed || self.global.meta.reopened_weeks.contains(&week);
        if writes_best && best_in == BestPositionsIn::Week {
            for row in &rows {
                if let Some(kept) = source.best(server, row.player)? {
                    best.push(self.best_archive(server, row.player, &kept));
                }
            }
        }
        Ok(WeekArchive {
            week,
            server,
            label: calendar::week_label(week),
            week_start_ms: self.global.calendar.week_start_ms(week),
            week_end_ms: self.global.calendar.week_end_ms(week),
            closed,
            game: counted.and_then(|record| record.game),
            server_rank,
            player_ms,
            board_sizes: week_rows.board_sizes(),
            checksum: week_rows.checksum(),
            span,
            is_complete: week_rows.changed.is_all(),
            rows,
            maps: maps.collect(),
            steps: if after.is_none() { week_rows.steps() } else { Vec::new() },
            best,
        })
    }
}

impl Engine {
    /// Removes archived entries from the outbox, unless they changed since.
    pub fn acknowledge_archived(&mut self, entries: &[OutboxEntry]) {
        self.model.global.pending.acknowledged.extend(entries.iter().map(|e| (e.key, e.seq)));
        for entry in entries {
            if let OutboxKey::Week { week, server } = entry.key {
                self.model.global.archive_changes.end_job(week, server);
            }
        }
    }

    /// Records what the outbox contains at the start: its weeks are archived completely.
    pub fn load_outbox(&mut self, source: &dyn StoreReader) {
        self.set_outbox_len(source.outbox_len());
        for entry in source.outbox(None, usize::MAX) {
            if let OutboxKey::Week { week, server } = entry.key {
                self.model.global.archive_changes.add_all_rows(week, server);
            }
        }
    }

    /// Sets the length of the outbox after a commit.
    pub fn set_outbox_len(&mut self, len: usize) {
        let outbox_full = len >= self.model.global.settings.outbox_entries_max;
        if outbox_full != self.model.global.settings.outbox_full {
            Arc::make_mut(&mut self.model.global.settings).outbox_full = outbox_full;
        }
    }

    /// Begins and reads the jobs of the next entries: see [`ReadModel::archive_entries`] and [`ReadModel::archive_jobs`].
    pub fn archive_jobs(
        &mut self,
        source: &dyn StoreReader,
        after: Option<OutboxKey>,
        before: Option<OutboxKey>,
        entries_max: usize,
        rows_max: usize,
    ) -> Result<Vec<(OutboxEntry, Option<ArchiveJob>)>, ReadError> {
        let begun = self.begin_archive_jobs(self.model.archive_entries(source, after, before, entries_max), rows_max);
        self.model.archive_jobs(source, begun, rows_max)
    }

    /// Begins the jobs of these entries: what changes from now on is in the next job of the same object. No job is begun
    /// after the one with which the recorded rows reach `rows_max`.
    pub fn begin_archive_jobs(&mut self, entries: Vec<OutboxEntry>, rows_max: usize) -> Vec<BegunJob> {
        let mut rows = 0;
        let begin = |entry: OutboxEntry| {
            let OutboxKey::Week { week, server } = entry.key else { return Some(BegunJob { entry, changed: None }) };
            if rows >= rows_max {
                return None;
            }
            // A copy that was begun for an earlier job lacks changes since.
            self.large_week.take_if(|large| (large.week, large.server) == (week, server));
            let changed = self.model.global.archive_changes.begin_job(week, server);
            rows += changed.len();
            Some(BegunJob { entry, changed: Some(changed) })
        };
        entries.into_iter().map_while(begin).collect()
    }
}
