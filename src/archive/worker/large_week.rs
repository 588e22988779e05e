//! Writes a large week in chunks, all in one transaction.

use std::collections::BTreeMap;
use std::time::Duration;

use super::jobs::NamesOutcome;
use super::{PassError, Worker};
use crate::archive::connect::Archive;
use crate::archive::job_source::JobSource;
use crate::archive::write::WriteOutcome;
use crate::archive::writer_epoch::CONFLICT_TRIES_MAX;
use crate::model::archive::{WeekArchive, WeekChunk, WeekChunkRequest};
use crate::model::outbox::{OutboxEntry, OutboxKey};

/// Pause between two requests for a chunk of a large week that the source is still
/// preparing. It leaves the source time for its other work.
const STEP_PAUSE: Duration = Duration::from_millis(20);

/// Requests for a chunk that is still being prepared, between two keep-alive statements.
const STEPS_PER_KEEP_ALIVE: u32 = 500;

impl<S: JobSource> Worker<S> {
    /// Writes a large week chunk by chunk, in one transaction. If a player was removed or the
    /// transaction conflicts too often, the week remains pending.
    pub(super) async fn write_large_week(
        &mut self,
        archive: &mut Archive,
        entry: OutboxEntry,
        request: WeekChunkRequest,
        rejected: &mut BTreeMap<OutboxKey, String>,
    ) -> Result<(), PassError> {
        let Some((copy_id, first)) = self.first_week_chunk(archive, request).await? else { return Ok(()) };
        // Write names added since: the chunks refer to them.
        let written = match self.write_names(archive, rejected).await {
            Ok(NamesOutcome::Written) => self.write_week_chunks(archive, copy_id, first).await,
            Ok(NamesOutcome::PlayersRemoved) => Ok(None),
            Err(ended) => Err(ended),
        };
        self.source.next_week_chunk(WeekChunkRequest::Release { copy_id }).await?;
        match written {
            Ok(Some(rows)) => {
                self.report.update(|it| {
                    it.entries_written += 1;
                    it.rows_written += rows;
                });
                self.source.acknowledge(vec![entry], archive.acknowledged()).await?;
            }
            Ok(None) => (),
            Err(PassError::Archive(error)) if error.is_rejected() => _ = rejected.insert(entry.key, error.to_string()),
            Err(ended) => return Err(ended),
        }
        Ok(())
    }

    /// Returns the first chunk of a large week, and the number of the source's copy of the
    /// rows. Waits while the source prepares it. `None`: the week has no chunks any more.
    async fn first_week_chunk(
        &mut self,
        archive: &mut Archive,
        request: WeekChunkRequest,
    ) -> Result<Option<(u64, Box<WeekArchive>)>, PassError> {
        for step in 1_u32.. {
            match self.source.next_week_chunk(request).await? {
                WeekChunk::Chunk { copy_id, week } => return Ok(Some((copy_id, week))),
                WeekChunk::NotAvailable => break,
                WeekChunk::Preparing => tokio::time::sleep(STEP_PAUSE).await,
            }
            if step % STEPS_PER_KEEP_ALIVE == 0 {
                archive.keep_alive().await?;
            }
        }
        Ok(None)
    }

    /// Writes all chunks of the copy with the number `copy_id` and returns the number of rows.
    /// `None`: the chunks no longer exist, or there were too many conflicts.
    async fn write_week_chunks(
        &mut self,
        archive: &mut Archive,
        copy_id: u64,
        first: Box<WeekArchive>,
    ) -> Result<Option<u64>, PassError> {
        let mut first = Some(first);
        for _ in 0..CONFLICT_TRIES_MAX {
            if archive.begin_week_chunks().await? == WriteOutcome::Repeat {
                continue;
            }
            let (mut rows, mut after) = (0, None);
            let must_repeat = loop {
                let chunk = match first.take() {
                    Some(first) => first,
                    None => match self.source.next_week_chunk(WeekChunkRequest::Next { copy_id, after }).await? {
                        WeekChunk::Chunk { week, .. } => week,
                        WeekChunk::Preparing | WeekChunk::NotAvailable => {
                            archive.rollback().await?;
                            return Ok(None);
                        }
                    },
                };
                let wrote = archive.write_week_chunk(&chunk).await?;
                let WriteOutcome::Done { rows: more } = wrote else { break true };
                rows += more;
                after = chunk.span.through;
                if after.is_none() {
                    break archive.commit_week_chunks().await? == WriteOutcome::Repeat;
                }
            };
            if !must_repeat {
                return Ok(Some(rows));
            }
        }
        tracing::warn!("a week with many rows conflicted with other writers of the archive; it is written later");
        Ok(None)
    }
}
