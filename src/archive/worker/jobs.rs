//! Writes the entries of the outbox: names first, then states, and large weeks after other
//! weeks.

use std::collections::BTreeMap;

use super::{PassError, Worker};
use crate::archive::connect::Archive;
use crate::archive::error::ArchiveError;
use crate::archive::job_source::{JobSource, OutboxQuery};
use crate::model::archive::{ArchiveJob, WeekChunkRequest};
use crate::model::outbox::{OutboxEntry, OutboxKey};

/// The result of writing names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NamesOutcome {
    Written,
    /// A player was removed: states fetched earlier are out of date.
    PlayersRemoved,
}

fn removes_player(job: &ArchiveJob) -> bool {
    matches!(job, ArchiveJob::PlayerRemoved { .. })
}

impl<S: JobSource> Worker<S> {
    /// Writes the states of the outbox. Before each batch it writes the names that were added
    /// in the meantime.
    pub(super) async fn write_states(
        &mut self,
        archive: &mut Archive,
        rejected: &mut BTreeMap<OutboxKey, String>,
    ) -> Result<(), PassError> {
        let mut after = None;
        loop {
            let jobs = self.source.pending_jobs(OutboxQuery::states(after)).await?;
            let Some((last, _)) = jobs.last() else { return Ok(()) };
            let last = last.key;
            // Write names added since the fetch, because these jobs may refer to them. If
            // a player was removed since, the jobs may still contain that player: fetch
            // them again.
            if self.write_names(archive, rejected).await? == NamesOutcome::PlayersRemoved {
                continue;
            }
            after = Some(last);
            self.write(archive, jobs, rejected).await?;
        }
    }

    /// Writes the names of the outbox.
    pub(super) async fn write_names(
        &mut self,
        archive: &mut Archive,
        rejected: &mut BTreeMap<OutboxKey, String>,
    ) -> Result<NamesOutcome, PassError> {
        let mut after = None;
        let mut outcome = NamesOutcome::Written;
        loop {
            let jobs = self.source.pending_jobs(OutboxQuery::names(after)).await?;
            let Some((last, _)) = jobs.last() else { return Ok(outcome) };
            after = Some(last.key);
            if jobs.iter().any(|(entry, job)| removes_player(job) && !rejected.contains_key(&entry.key)) {
                outcome = NamesOutcome::PlayersRemoved;
            }
            self.write_jobs(archive, jobs, rejected).await?;
        }
    }

    /// Writes jobs, and large weeks after all others. If one is rejected, the others are still
    /// written.
    async fn write(
        &mut self,
        archive: &mut Archive,
        jobs: Vec<(OutboxEntry, ArchiveJob)>,
        rejected: &mut BTreeMap<OutboxKey, String>,
    ) -> Result<(), PassError> {
        let is_large = |(_, job): &(OutboxEntry, ArchiveJob)| matches!(job, ArchiveJob::LargeWeek { .. });
        let (large, jobs): (Vec<_>, Vec<_>) = jobs.into_iter().partition(is_large);
        self.write_jobs(archive, jobs, rejected).await?;
        for (entry, job) in large {
            let ArchiveJob::LargeWeek { week, server } = job else { unreachable!("filtered above") };
            self.write_large_week(archive, entry, WeekChunkRequest::First { week, server }, rejected).await?;
        }
        Ok(())
    }

    /// Writes jobs that are not large weeks, and acknowledges those that are not rejected.
    async fn write_jobs(
        &mut self,
        archive: &mut Archive,
        jobs: Vec<(OutboxEntry, ArchiveJob)>,
        rejected: &mut BTreeMap<OutboxKey, String>,
    ) -> Result<(), PassError> {
        let (entries, jobs): (Vec<OutboxEntry>, Vec<ArchiveJob>) = jobs.into_iter().unzip();
        let written = write_each(archive, &jobs).await?;
        let mut rejections = written.rejected.into_iter().peekable();
        let mut accepted = Vec::with_capacity(entries.len());
        for (at, entry) in entries.into_iter().enumerate() {
            match rejections.next_if(|(index, _)| *index == at) {
                Some((_, why)) => _ = rejected.insert(entry.key, why),
                None => accepted.push(entry),
            }
        }
        self.report.update(|it| {
            it.entries_written += accepted.len() as u64;
            it.rows_written += written.rows;
        });
        self.source.acknowledge(accepted, archive.acknowledged()).await?;
        Ok(())
    }
}

/// The result of writing jobs.
pub(super) struct Written {
    pub rows: u64,
    /// Jobs that the database rejects, by index, and why.
    pub rejected: Vec<(usize, String)>,
}

/// Writes jobs. If one is rejected, the others are still written.
pub(super) async fn write_each(archive: &mut Archive, jobs: &[ArchiveJob]) -> Result<Written, ArchiveError> {
    match archive.write(jobs).await {
        Ok(rows) => Ok(Written { rows, rejected: Vec::new() }),
        Err(error) if error.is_rejected() => {
            let mut written = Written { rows: 0, rejected: Vec::new() };
            for (at, job) in jobs.iter().enumerate() {
                match archive.write(std::slice::from_ref(job)).await {
                    Ok(rows) => written.rows += rows,
                    Err(error) if error.is_rejected() => written.rejected.push((at, error.to_string())),
                    Err(error) => return Err(error),
                }
            }
            Ok(written)
        }
        Err(error) => Err(error),
    }
}
