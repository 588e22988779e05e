//! Compares names, servers, best positions and sessions. They are read as for a resync.

use std::collections::BTreeMap;

use super::{Verifier, failed, incomplete};
use crate::api::{ApiError, Progress};
use crate::archive::RowDifference;
use crate::engine::StoreReader as _;
use crate::model::OutboxKey;
use crate::model::archive::{ArchiveJob, ExpectedObjects};
use crate::model::outbox::ResyncCursor;

/// Objects that differ, by the position at which they are read, with their values; `None`: there is no such object.
pub(super) type Candidates = BTreeMap<ResyncCursor, BTreeMap<OutboxKey, Option<ArchiveJob>>>;

/// An object that should be in the archive, and whether it waits in the outbox.
type Expected = BTreeMap<OutboxKey, (ArchiveJob, bool)>;

impl Verifier<'_> {
    /// Compares all objects for the first time.
    pub(super) async fn verify_all_objects(&mut self) -> Result<(), ApiError> {
        let mut from = ResyncCursor::START;
        while from != ResyncCursor::End {
            from = self.verify_objects(from, &BTreeMap::new()).await?;
            self.lines.progress(Progress::default()).await?;
            if matches!(from, ResyncCursor::Week { .. }) {
                // They are compared in another way.
                from = ResyncCursor::BEST_POSITIONS;
            }
        }
        Ok(())
    }

    /// Compares objects again that were different.
    pub(super) async fn verify_candidates(&mut self) -> Result<(), ApiError> {
        for (from, before) in std::mem::take(&mut self.candidates) {
            self.verify_objects(from, &before).await?;
        }
        Ok(())
    }

    /// Compares the objects at a position. `before`: those that were different a pass ago. A difference counts if the
    /// object had the same value then, while the rows were read, and after it, and did not wait in the outbox: what is
    /// archived first, such as a merge of players, changes rows of other objects, too. Returns the next position.
    async fn verify_objects(
        &mut self,
        from: ResyncCursor,
        before: &BTreeMap<OutboxKey, Option<ArchiveJob>>,
    ) -> Result<ResyncCursor, ApiError> {
        let ExpectedObjects { range, objects, next } = self.expected_objects(from).await?;
        let Some(range) = range else { return Ok(next) };
        let jobs: Vec<&ArchiveJob> = objects.iter().map(|(job, _)| job).collect();
        let found = self.connected().await?.verify_objects(&range, &jobs).await.map_err(failed)?;
        if before.is_empty() {
            self.summary.rows += found.row_count();
        }
        if found.differences.is_empty() {
            return Ok(next);
        }
        let again = self.expected_objects(from).await?;
        let (expected, after) = (by_key(objects), by_key(again.objects));
        let mut different: BTreeMap<OutboxKey, Vec<RowDifference>> = BTreeMap::new();
        for difference in found.differences {
            let Some(object) = difference.object else { continue };
            different.entry(object).or_default().push(difference);
        }
        let keys: Vec<OutboxKey> = different.keys().copied().collect();
        let pending = self.shared.engine.call(move |thread| {
            Ok(keys.into_iter().map(|key| thread.state().store.outbox_seq(key).is_some()).collect::<Vec<bool>>())
        });
        for ((object, differences), is_pending) in different.into_iter().zip(pending.await?) {
            let value = expected.get(&object);
            let is_at_rest = !is_pending
                && after.get(&object) == value
                && value.is_none_or(|(_, is_pending)| !is_pending)
                && before.get(&object).is_some_and(|before| before.as_ref() == value.map(|(job, _)| job));
            if !is_at_rest {
                let candidates = self.candidates.entry(from).or_default();
                candidates.insert(object, value.map(|(job, _)| job.clone()));
                continue;
            }
            for difference in differences {
                self.report(None, None, difference).await?;
            }
        }
        Ok(next)
    }

    async fn expected_objects(&self, from: ResyncCursor) -> Result<ExpectedObjects, ApiError> {
        let objects = self.shared.engine.call(move |thread| thread.expected_objects(from)).await??;
        objects.ok_or_else(incomplete)
    }
}

fn by_key(objects: Vec<(ArchiveJob, bool)>) -> Expected {
    objects.into_iter().map(|(job, is_pending)| (job.key(), (job, is_pending))).collect()
}
