//! Which archive this state fills, and whether it may write it: by the id of the state in the archive, and by the
//! row of the last writer (`model/outbox.rs`, [`ArchiveWriter`]).

use super::{Engine, ReadModel};
use crate::model::outbox::{ArchiveAge, ArchiveStep, ArchiveWriter, ResyncState, WriterBeat, WriterRow};

/// How the archive's worker may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterPlan {
    /// The id that the archive must have from now on. If it has another one, a resync begins.
    pub id: u64,
    /// The epoch that the archive's row must have, 0 if there is no row.
    pub previous: u64,
    /// The epoch to take.
    pub epoch: u64,
    /// The archive lacks what it had acknowledged, so a resync begins.
    pub is_older: bool,
}

/// Why the archive must not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriterRefusal {
    /// It lacks what it had acknowledged, and the settings say to stop.
    Older,
    /// It was written from another copy of this state.
    WrittenByOther,
}

/// Epochs of one writer are up to this far apart, at random: two copies of a state that plan an epoch at the same
/// time plan different ones.
const EPOCH_STEP_MAX: u64 = 1 << 20;

impl ReadModel {
    /// The right to write an archive, and the events that this needs, in order. `found`: the id in the archive.
    /// `row`: the row of its last writer. `random` must not have been used by any state.
    pub fn plan_archive_writer(
        &self,
        found: Option<u64>,
        row: Option<WriterRow>,
        random: u64,
        resyncs_older: bool,
    ) -> Result<(WriterPlan, Vec<ArchiveStep>), WriterRefusal> {
        let mut steps = Vec::new();
        let (mut known, mut is_older) = (self.global.meta.archive_writer, false);
        let id = match self.archive_id() {
            Some(id) if found == Some(id) => id,
            _ => {
                known = None;
                steps.push(ArchiveStep::Claim { id: random });
                random
            }
        };
        match known.map_or(ArchiveAge::Current, |known| known.compare(row)) {
            ArchiveAge::Current => {}
            ArchiveAge::Older if resyncs_older => {
                is_older = true;
                steps.push(ArchiveStep::Resync { adopts: true });
            }
            ArchiveAge::Older => return Err(WriterRefusal::Older),
            ArchiveAge::WrittenByOther => return Err(WriterRefusal::WrittenByOther),
        }
        let previous = row.map_or(0, |row| row.at.epoch);
        // An epoch that was planned and not taken may still be taken by an earlier connection.
        let planned = known.filter(|it| !is_older && it.previous.epoch == previous && it.last.beat == 0);
        let epoch = planned.map_or_else(
            || {
                // An archive without a row may have lost it: then the time is above every epoch that it had.
                let now_ms = u64::try_from(self.global.meta.now_ms).unwrap_or(0);
                let last = known.map_or(0, |known| known.last.epoch);
                let epoch = previous.max(last).max(now_ms) + 2 + random % EPOCH_STEP_MAX;
                steps.push(ArchiveStep::Epoch { previous, epoch });
                epoch
            },
            |planned| planned.last.epoch,
        );
        Ok((WriterPlan { id, previous, epoch, is_older }, steps))
    }

    /// The last transaction of this state that the archive has acknowledged; `None`: it has none.
    pub fn archive_written_at(&self) -> Option<WriterBeat> {
        self.global.meta.archive_writer.map(|writer| writer.last)
    }
}

impl Engine {
    /// Applies an event that changes what is archived and where.
    pub fn apply_archive_step(&mut self, step: ArchiveStep) {
        let meta = &mut self.model.global.meta;
        self.model.global.pending.meta = true;
        match step {
            ArchiveStep::Claim { id } => {
                meta.resync = true;
                meta.resync_state = ResyncState { archive_id: Some(id), ..ResyncState::default() };
                meta.archive_writer = None;
                self.model.global.archive_complete_ms = None;
                self.model.global.pending.archive_complete = true;
            }
            ArchiveStep::Epoch { previous, epoch } => {
                let known = meta.archive_writer.unwrap_or_default();
                let of_previous = [known.last, known.previous].into_iter().find(|it| it.epoch == previous);
                meta.archive_writer = Some(ArchiveWriter {
                    previous: of_previous.unwrap_or(WriterBeat { epoch: previous, beat: 0 }),
                    last: WriterBeat { epoch, beat: 0 },
                });
            }
            ArchiveStep::Resync { adopts } => {
                if adopts {
                    meta.archive_writer = None;
                }
                // A take-over deletes nothing: this state may come from a backup that is older than the archive.
                self.resend_all(!adopts);
            }
            ArchiveStep::Resend { week, from, servers } => self.resend_week(week, from, servers),
            ArchiveStep::Archived { at, .. } => {
                self.end_resync();
                self.archive_acknowledged(at);
            }
        }
    }

    /// The archive has acknowledged transactions of this writer.
    pub fn archive_acknowledged(&mut self, at: WriterBeat) {
        if let Some(writer) = &mut self.model.global.meta.archive_writer
            && writer.last.epoch == at.epoch
        {
            writer.last.beat = writer.last.beat.max(at.beat);
            self.model.global.pending.meta = true;
        }
    }
}
