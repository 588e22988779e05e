//! In a cluster, what the archive has: the leader says it in the log, so that the outboxes of its followers do not grow.
//! Entries of an outbox are numbered by the commits of one engine, which differ from engine to engine. Each engine marks
//! which of its commits has the log until which batch.

use std::collections::VecDeque;

use super::EngineThread;
use crate::model::outbox::{ArchiveStep, OutboxEntry};

/// Interval of marks, and of events of the leader.
const MARK_MS: i64 = 1_000;
const STEP_MS: i64 = 5_000;

/// Marks that are kept: more than a day. An outage of the archive that is longer costs entries that are written again.
const MARKS_MAX: usize = 100_000;

/// A commit of this engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    /// It has the log until this batch.
    batch: u64,
    /// Its entries of the outbox, and those of earlier commits, have smaller numbers.
    next_seq: u64,
}

/// The commits of an engine of a cluster, oldest first.
#[derive(Debug, Default)]
pub(super) struct Marks {
    marks: VecDeque<Mark>,
    marked_ms: i64,
    stepped_ms: i64,
}

impl Marks {
    fn add(&mut self, mark: Mark, now_ms: i64) {
        if (0..MARK_MS).contains(&(now_ms - self.marked_ms)) || self.marks.back() == Some(&mark) {
            return;
        }
        self.marked_ms = now_ms;
        if self.marks.len() == MARKS_MAX {
            self.marks.pop_front();
        }
        self.marks.push_back(mark);
    }

    /// Takes the marks until one that `is_reached`, and returns the last of them.
    fn take_last(&mut self, is_reached: impl Fn(&Mark) -> bool) -> Option<Mark> {
        let reached = self.marks.partition_point(is_reached);
        self.marks.drain(..reached).next_back()
    }
}

impl EngineThread {
    /// Marks the commit that was just made.
    pub(super) fn mark_commit(&mut self, now_ms: i64) {
        if self.log.is_shared() {
            // More events may be added to the batch that is being filled.
            let mark = Mark { batch: self.log.last_ended_seq(), next_seq: self.state.store.next_outbox_seq() };
            self.marks.add(mark, now_ms);
        }
    }

    /// As `log_archived`, at an interval.
    pub(super) fn log_archived_if_due(&mut self, now_ms: i64) {
        if !(0..STEP_MS).contains(&(now_ms - self.marks.stepped_ms)) {
            self.log_archived(now_ms);
        }
    }

    /// Says until where the archive has everything.
    pub(super) fn log_archived(&mut self, now_ms: i64) {
        // During a resync, the outbox does not have everything that is missing.
        if !self.log.is_shared() || self.state.engine.model().resync_position().is_some() {
            return;
        }
        self.marks.stepped_ms = now_ms;
        let oldest = self.state.store.oldest_outbox_seq();
        let reached = self.marks.take_last(|mark| oldest.is_none_or(|oldest| mark.next_seq <= oldest));
        if let (Some(Mark { batch, .. }), Some(at)) = (reached, self.state.engine.model().archive_written_at()) {
            self.apply_archive_step(ArchiveStep::Archived { batch, at });
        }
    }

    /// The archive has everything until a batch: the leader says so.
    pub(super) fn drop_archived(&mut self, batch: u64) {
        let Some(Mark { next_seq, .. }) = self.marks.take_last(|mark| mark.batch <= batch) else { return };
        let entries: Vec<OutboxEntry> = self.state.store.outbox_before(next_seq);
        self.state.engine.acknowledge_archived(&entries);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mark_that_is_reached_is_taken() {
        let mut marks = Marks::default();
        let mark = |n: u64| Mark { batch: 10 * n, next_seq: 100 * n };
        for n in 1..=4_u64 {
            marks.add(mark(n), n as i64 * MARK_MS);
            marks.add(Mark { batch: 0, next_seq: 0 }, n as i64 * MARK_MS + 1);
        }
        assert_eq!(marks.take_last(|mark| mark.batch <= 5), None);
        assert_eq!(marks.take_last(|mark| mark.batch <= 25), Some(mark(2)));
        assert_eq!(marks.take_last(|mark| mark.next_seq <= 300), Some(mark(3)));
        assert_eq!(marks.marks, [mark(4)]);
    }
}
