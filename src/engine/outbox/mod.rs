//! The current values of outbox entries, for the archive (docs/rules.md section 12). [`resync`] returns
//! all values, for an archive that is new or incomplete.

pub(super) mod changed_orders;
mod large_week;
mod resync;

use super::rows::RowPage;
use super::{Engine, RemovedPlayer, StateReader};
pub(super) use crate::engine::outbox::large_week::LargeWeek;
use crate::model::archive::{
    ArchiveJob, ListEntry, MapWeekArchive, PlayerKeyRange, PlayerWeekArchive, ServerArchive, WeekArchive,
};
use crate::model::outbox::{OutboxEntry, OutboxKey};
use crate::model::{PlayerKey, ServerKey, WeekKey, calendar};
use crate::series;

impl Engine {
    /// Removes archived entries from the outbox, unless they changed since.
    pub fn acknowledge_archived(&mut self, entries: &[OutboxEntry]) {
        self.global.pending.acknowledged.extend(entries.iter().map(|e| (e.key, e.seq)));
    }

    /// Sets the length of the outbox after a commit.
    pub fn set_outbox_len(&mut self, len: usize) {
        self.global.settings.outbox_full = len >= self.global.settings.outbox_entries_max;
    }

    /// Outbox entries after `after` and before `before` with their values, in archiving order;
    /// `None` for a deleted object. At most `entries_max`, and none after the entry with which
    /// the rows reach `rows_max`. All changes must be committed: only durable data is archived.
    pub fn archive_jobs<S: StateReader>(
        &self,
        source: &S,
        after: Option<OutboxKey>,
        before: Option<OutboxKey>,
        entries_max: usize,
        rows_max: usize,
    ) -> Result<Vec<(OutboxEntry, Option<ArchiveJob>)>, S::Error> {
        assert!(!self.has_changes(), "commit before archiving");
        let mut jobs = Vec::new();
        let mut rows = 0;
        for entry in source.outbox(after, entries_max) {
            if before.is_some_and(|before| entry.key >= before) || rows >= rows_max {
                break;
            }
            let job = self.archive_job(source, entry.key)?;
            if let Some(ArchiveJob::Week(week)) = &job {
                rows += week.rows.len() + week.maps.len();
            }
            jobs.push((entry, job));
        }
        Ok(jobs)
    }

    /// `None`: the object was deleted with its week and there is nothing to write.
    fn archive_job<S: StateReader>(&self, source: &S, key: OutboxKey) -> Result<Option<ArchiveJob>, S::Error> {
        Ok(match key {
            OutboxKey::Game(key) => Some(ArchiveJob::Game { key, name: self.global.games.name(key.0).to_owned() }),
            OutboxKey::Map(key) => Some(ArchiveJob::Map { key, name: self.global.maps.name(key.0).to_owned() }),
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
            OutboxKey::Week { week, server } => self.week_job(source, week, server)?,
        })
    }

    /// The player who has the rows of a removed player. That player may have been merged again.
    fn merge_target<S: StateReader>(
        &self,
        source: &S,
        mut removed: RemovedPlayer,
    ) -> Result<Option<PlayerKey>, S::Error> {
        while let Some(into) = removed.into {
            match source.removed_player(into)? {
                Some(next) => removed = next,
                None => return Ok(Some(into)),
            }
        }
        Ok(None)
    }

    fn server_archive(&self, key: ServerKey) -> Option<ServerArchive> {
        let server_state = self.server_state(key)?;
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
            players: if is_online { record.count } else { 0 },
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
            series: server_state.series.as_deref().cloned(),
            screened: self.screened(record),
            bots_unidentified: record.screening.as_ref().map_or(0, |screening| screening.bots_unidentified),
        })
    }

    fn week_job<S: StateReader>(
        &self,
        source: &S,
        week: WeekKey,
        server: ServerKey,
    ) -> Result<Option<ArchiveJob>, S::Error> {
        if !self.global.is_kept(week.into()) {
            return Ok(None);
        }
        let most = self.global.settings.archive_chunk_rows;
        let RowPage { rows, is_last } = match self.server_state(server) {
            Some(server_state) if self.is_counted(server_state, week.into(), server) => {
                self.rows_after(source, week.into(), server, None, most)?
            }
            _ => RowPage { rows: Vec::new(), is_last: true },
        };
        if !is_last {
            return Ok(Some(ArchiveJob::LargeWeek { week, server }));
        }
        let positions = self.server_orders(server).positions(&rows);
        let rows = rows.iter().zip(positions);
        let rows =
            rows.map(|((player, row), positions)| large_week::ArchiveRow::new(*player, row).into_archive(positions));
        let closed = self.is_server_closed(week, server);
        let week = self.week_archive(source, week, server, closed, PlayerKeyRange::ALL, rows.collect())?;
        Ok(Some(ArchiveJob::Week(Box::new(week))))
    }

    /// A server's week with the players of a key range.
    fn week_archive<S: StateReader>(
        &self,
        source: &S,
        week: WeekKey,
        server: ServerKey,
        closed: bool,
        span: PlayerKeyRange,
        rows: Vec<PlayerWeekArchive>,
    ) -> Result<WeekArchive, S::Error> {
        let maps = self.map_rows(source, week, server)?;
        let player_ms = maps.iter().map(|(_, row)| row.player_ms).sum();
        let maps = maps.into_iter().filter(|_| span.after.is_none());
        let maps = maps.map(|(map, row)| MapWeekArchive { map, played_ms: row.played_ms, player_ms: row.player_ms });
        let mut best = Vec::new();
        // The archive still has positions of a reopened week.
        if closed || self.global.meta.reopened_weeks.contains(&week) {
            for row in &rows {
                if let Some(kept) = source.best(server, row.player)? {
                    best.push((row.player, self.shown_best(server, &kept)));
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
            server_rank: if closed { source.rank(week, server)? } else { None },
            player_ms,
            span,
            rows,
            maps: maps.collect(),
            best,
        })
    }
}
