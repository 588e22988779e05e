//! The values that the archive should have, for a comparison with the rows of the database.
//!
//! The state and the database cannot be read at one moment, and rows of a running week are archived
//! up to one interval late. So a difference counts only under two conditions. Nothing of the
//! server's week was waiting in the outbox when its values were read from the state. Nothing
//! changed until the rows were read from the database; changes in between are noted. Best positions
//! belong to a server, not to a week, so both conditions must be true for all closed weeks of the
//! server.

use std::collections::BTreeSet;

use super::changes::ChangedRows;
use super::{Engine, ReadError, StoreReader};
use crate::model::archive::{ArchiveJob, ExpectedName, ExpectedStep, ExpectedWeek};
use crate::model::{OutboxKey, PlayerKey, ServerKey, WeekKey};

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
        assert!(!self.has_changes(), "commit before verifying");
        if self.global.meta.resync || !self.global.records_archive_changes() {
            return Ok(ExpectedStep::Resync);
        }
        if !self.global.is_kept(week.into()) {
            return Ok(ExpectedStep::NotKept);
        }
        self.global.archive_changes.begin_watch();
        // Its rows were read earlier.
        self.verified_week = None;
        let end = self.global.meta.next_server;
        let (mut weeks, mut rows) = (Vec::new(), 0);
        let mut next = from.0;
        while next < end && weeks.len() < servers_max && rows < rows_max {
            let server = ServerKey(next);
            next += 1;
            if only.is_some_and(|only| !only.contains(&server)) {
                continue;
            }
            let Some(server_state) = self.server_state(server) else { continue };
            let url = server_state.record.url.as_str().to_owned();
            let values = match self.week_job(source, week, server, ChangedRows::All)? {
                Some(ArchiveJob::Week(values)) => Some(values),
                _ => None,
            };
            rows += values.as_ref().map_or(0, |values| values.rows.len() + values.maps.len());
            let is_pending =
                self.related_weeks(week, server).any(|week| source.outbox_contains(OutboxKey::Week { week, server }));
            weeks.push(ExpectedWeek { server, url, is_pending, values });
        }
        Ok(ExpectedStep::Weeks { weeks, next: Some(ServerKey(next)).filter(|_| next < end) })
    }

    /// Which of these weeks have changed since their values were read.
    pub fn changed_weeks(&self, week: WeekKey, servers: &[ServerKey]) -> Vec<ServerKey> {
        let changes = &self.global.archive_changes;
        let has_changed = |server| self.related_weeks(week, server).any(|week| changes.has_changed(week, server));
        let resyncs = self.global.meta.resync || !self.global.is_kept(week.into());
        servers.iter().copied().filter(|server| resyncs || has_changed(*server)).collect()
    }

    /// Names of players as the archive should have them.
    pub fn expected_names(
        &self,
        source: &dyn StoreReader,
        players: &[PlayerKey],
    ) -> Result<Vec<ExpectedName>, ReadError> {
        let mut names = Vec::with_capacity(players.len());
        for &player in players {
            let key = OutboxKey::Player(player);
            let is_pending = source.outbox_contains(key);
            let job = self.archive_job(source, key)?.filter(|job| matches!(job, ArchiveJob::Player { .. }));
            names.push(ExpectedName { player, is_pending, job });
        }
        Ok(names)
    }

    /// Ends a verification.
    pub fn end_verification(&mut self) {
        self.global.archive_changes.end_watch();
        self.verified_week = None;
    }

    /// The week, and if it has best positions, the other weeks whose archiving writes best
    /// positions of the server.
    fn related_weeks(&self, week: WeekKey, server: ServerKey) -> impl Iterator<Item = WeekKey> {
        let writes_best =
            move |week| self.is_server_closed(week, server) || self.global.meta.reopened_weeks.contains(&week);
        let has_best = writes_best(week);
        let weeks = self.global.meta.weeks.iter().map(|state| state.week);
        weeks.filter(move |other| *other == week || has_best && writes_best(*other))
    }
}
