//! The values that the archive should have, for a comparison with the rows of the database.
//!
//! The state and the database cannot be read at one moment, and rows of a running week are archived
//! up to one interval late. So a difference counts only under two conditions. Nothing of the
//! server's week was waiting in the outbox when its values were read from the state. Nothing
//! changed until the rows were read from the database; changes in between are noted.
//!
//! All other objects are read as for a resync. They are compared by reading them again after the rows.

use std::collections::BTreeSet;

use super::changes::ChangedRows;
use super::{BestPositionsIn, Engine, ReadError, ReadModel, StoreReader};
use crate::model::archive::{ArchiveJob, ExpectedObjects, ExpectedStep, ExpectedWeek, ResyncChunk};
use crate::model::outbox::ResyncCursor;
use crate::model::{OutboxKey, ServerKey, WeekKey, WindowKey};

impl ReadModel {
    /// Which of these weeks have changed since their values were read.
    pub fn changed_weeks(&self, week: WeekKey, servers: &[ServerKey]) -> Vec<ServerKey> {
        let has_changed = |server| self.global.archive_changes.has_changed(week, server);
        let resyncs = self.global.meta.resync || !self.global.is_kept(week.into());
        servers.iter().copied().filter(|server| resyncs || has_changed(*server)).collect()
    }

    /// The objects at a position as the archive should have them, or `None` while a resync is in progress.
    pub fn expected_objects(
        &self,
        source: &dyn StoreReader,
        from: ResyncCursor,
        steps_max: usize,
        rows_max: usize,
    ) -> Result<Option<ExpectedObjects>, ReadError> {
        assert!(!self.has_changes(), "commit before verifying");
        if self.global.meta.resync || !self.global.records_archive_changes() {
            return Ok(None);
        }
        let ResyncChunk { range, next, names, records, .. } = self.read_objects(source, from, steps_max, rows_max)?;
        // Servers come with the players in their lists, which are compared with the other players.
        let jobs = if records.is_empty() { names } else { records };
        let is_pending = |job: &ArchiveJob| {
            let closing = |server| {
                let writes_best = |week: &WeekKey| self.writes_best_positions(*week, server);
                let mut weeks = self.global.meta.weeks.iter().map(|state| state.week).filter(writes_best);
                weeks.any(|week| source.outbox_seq(OutboxKey::Week { week, server }).is_some())
            };
            let of_week = matches!(job, ArchiveJob::BestPositions(best) if closing(best.server));
            of_week || source.outbox_seq(job.key()).is_some()
        };
        let objects = jobs.into_iter().map(|job| (is_pending(&job), job)).map(|(is_pending, job)| (job, is_pending));
        Ok(Some(ExpectedObjects { range, objects: objects.collect(), next }))
    }

    /// Whether archiving this week writes best positions on the server.
    fn writes_best_positions(&self, week: WeekKey, server: ServerKey) -> bool {
        self.is_server_closed(week, server) || self.global.meta.reopened_weeks.contains(&week)
    }

    pub fn has_server(&self, server: ServerKey) -> bool {
        self.servers.get(server).is_some()
    }

    /// Whether the boards of a window are waiting to be published.
    pub fn has_unpublished_boards(&self, source: &dyn StoreReader, window: WindowKey) -> bool {
        self.global.pending.has_unpublished_boards(source, window)
    }

    /// The kept windows that have begun.
    pub fn begun_windows(&self) -> Vec<WindowKey> {
        let has_begun = |window: &WindowKey| {
            self.global.window_state(*window).is_some_and(|state| state.start_ms <= self.global.meta.now_ms)
        };
        self.global.meta.kept_windows().filter(has_begun).collect()
    }
}

impl Engine {
    /// The values of a week of at most `servers_max` servers from a key on, and none after the
    /// server with which the rows reach `rows_max`; if `only` is given, only of these servers.
    /// Begins to note changes. All changes must be committed.
    pub fn expected_weeks(
        &mut self,
        source: &dyn StoreReader,
        week: WeekKey,
        from: ServerKey,
        only: Option<&BTreeSet<ServerKey>>,
        servers_max: usize,
        rows_max: usize,
    ) -> Result<ExpectedStep, ReadError> {
        assert!(!self.model.has_changes(), "commit before verifying");
        if self.model.global.meta.resync || !self.model.global.records_archive_changes() {
            return Ok(ExpectedStep::Resync);
        }
        if !self.model.global.is_kept(week.into()) {
            return Ok(ExpectedStep::NotKept);
        }
        self.model.global.archive_changes.begin_watch();
        // Its rows were read earlier.
        self.verified_week = None;
        let end = self.model.global.meta.next_server;
        let (mut weeks, mut rows) = (Vec::new(), 0);
        let mut next = from.0;
        while next < end && weeks.len() < servers_max && rows < rows_max {
            let server = ServerKey(next);
            next += 1;
            if only.is_some_and(|only| !only.contains(&server)) {
                continue;
            }
            let Some(server_state) = self.model.servers.get(server) else { continue };
            let url = server_state.record.url.as_str().to_owned();
            let values = match self.model.week_job(source, week, server, ChangedRows::All, BestPositionsIn::Objects)? {
                Some(ArchiveJob::Week(values)) => Some(values),
                _ => None,
            };
            rows += values.as_ref().map_or(0, |values| values.rows.len() + values.maps.len());
            let is_pending = source.outbox_seq(OutboxKey::Week { week, server }).is_some();
            weeks.push(ExpectedWeek { server, url, is_pending, values });
        }
        Ok(ExpectedStep::Weeks { weeks, next: Some(ServerKey(next)).filter(|_| next < end) })
    }

    /// Ends a verification.
    pub fn end_verification(&mut self) {
        self.model.global.archive_changes.end_watch();
        self.verified_week = None;
    }
}
