//! Writes a resync, chunk by chunk.

use std::collections::BTreeMap;
use std::pin::pin;

use super::jobs::{NamesOutcome, Written, write_each};
use super::{PassError, Worker};
use crate::archive::connect::{Archive, NameCheck};
use crate::archive::job_source::JobSource;
use crate::model::archive::{ArchiveJob, ResyncChunk, ResyncStep};
use crate::model::outbox::{OutboxKey, ResyncCursor};

/// The state of a resync after a pass.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ResyncOutcome {
    /// No resync is in progress.
    Done,
    /// The outbox must become shorter first.
    DrainOutboxFirst,
    /// Continues in the next pass. `has_names`: every name is in the archive.
    Paused { has_names: bool },
}

impl<S: JobSource> Worker<S> {
    /// Continues a resync, if one is in progress, for half an interval. `new_id` is the id
    /// that the archive must get; `None`: it has the id already. The id is stored after the
    /// first write. If the archive belongs to another state, that write is rejected, and the
    /// archive keeps its own id. `repairs`: what differs in the archive is replaced and deleted.
    pub(super) async fn resync(
        &mut self,
        archive: &mut Archive,
        rejected: &mut BTreeMap<OutboxKey, String>,
        mut new_id: Option<u64>,
        repairs: bool,
    ) -> Result<ResyncOutcome, PassError> {
        let mut half_interval = pin!(tokio::time::sleep(self.half_interval()));
        let mut is_time_up = false;
        let mut step = self.source.next_resync_chunk(None).await?;
        loop {
            let ResyncChunk { from, next, range, names, records: states, mut postponed } = match step {
                ResyncStep::Chunk(chunk) => *chunk,
                ResyncStep::DrainFirst => return Ok(ResyncOutcome::DrainOutboxFirst),
                ResyncStep::Idle => {
                    if let Some(id) = new_id {
                        archive.set_state_id(id).await?;
                    }
                    self.fills_other_archive = false;
                    return Ok(ResyncOutcome::Done);
                }
            };
            if matches!(from, ResyncCursor::Game(_)) {
                archive.computed_totals.clear();
            }
            if is_time_up {
                return Ok(ResyncOutcome::Paused { has_names: from.is_past_names() });
            }
            self.report.update(|it| it.resync = Some(from.into()));
            let jobs = if states.is_empty() {
                names
            } else {
                let written = write_each(archive, &names).await?;
                postponed.extend(self.count_resynced(&names, written));
                if self.write_names(archive, rejected).await? == NamesOutcome::PlayersRemoved {
                    step = self.source.next_resync_chunk(Some(from)).await?;
                    continue;
                }
                states
            };
            // The next chunk is read while the database writes this one. Nothing of the
            // outbox may be written between reading that chunk and writing its names.
            archive.name_check = match repairs {
                true => NameCheck::Delete,
                false if new_id.is_some() || self.fills_other_archive => NameCheck::Refuse,
                false => NameCheck::Skip,
            };
            let (written, following) =
                tokio::join!(write_each(archive, &jobs), self.source.next_resync_chunk(Some(next)));
            let mut written = written?;
            archive.name_check = if repairs { NameCheck::Delete } else { NameCheck::Refuse };
            if let Some(id) = new_id.take() {
                archive.set_state_id(id).await?;
                // The id is stored only now, because the archive of another state rejects the first
                // write.
                tracing::info!(
                    archive = archive.target,
                    "the archive is new or was filled by another state: everything is written to it"
                );
            }
            // Somebody may have changed names or keys, so that other rows are in the way or remain.
            if let Some(range) = range.filter(|_| repairs) {
                let all: Vec<&ArchiveJob> = jobs.iter().collect();
                if !written.rejected.is_empty() || archive.delete_surplus_objects(&range, &all).await? {
                    written = write_each(archive, &jobs).await?;
                    archive.delete_surplus_objects(&range, &all).await?;
                }
            }
            postponed.extend(self.count_resynced(&jobs, written));
            step = match self.source.acknowledge_resync_chunk(from, next, postponed, archive.acknowledged()).await? {
                true if next != ResyncCursor::End => following?,
                _ => self.source.next_resync_chunk(None).await?,
            };
            tokio::select! {
                biased;
                () = &mut half_interval, if !is_time_up => is_time_up = true,
                () = std::future::ready(()) => {}
            }
        }
    }

    /// Counts a written resync chunk. Returns the keys that the database rejects.
    fn count_resynced(&self, jobs: &[ArchiveJob], written: Written) -> Vec<OutboxKey> {
        self.report.update(|it| {
            it.entries_written += (jobs.len() - written.rejected.len()) as u64;
            it.rows_written += written.rows;
        });
        written.rejected.into_iter().map(|(at, _)| jobs[at].key()).collect()
    }
}
