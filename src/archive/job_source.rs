//! The source of the worker's jobs, which the daemon implements.

use crate::engine::{WriterPlan, WriterRefusal};
use crate::model::archive::{ArchiveBounds, ArchiveJob, ResyncStep, WeekChunk, WeekChunkRequest};
use crate::model::outbox::{OutboxEntry, OutboxKey, ResyncCursor, WriterBeat, WriterRow};
use crate::model::restored::LastKeys;
use crate::model::top_board::{SiteTotals, TopBoardKey, TopBoards};
use crate::model::{ServerKey, WindowKey};

/// Most entries of one fetch: the database writes them in a few seconds.
const FETCH_ENTRIES_MAX: usize = 1_000;

/// Rows after which a source should stop a fetch: 20,000 rows of 16 numbers are 3 MB.
const FETCH_ROWS_MAX: usize = 20_000;

/// The boundary between names and states in key order. No entry has this key, because no
/// server has key 0.
const FIRST_STATE_KEY: OutboxKey = OutboxKey::Server(ServerKey(0));

/// A range of the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboxQuery {
    /// Only keys greater than this one; `None`: from the first.
    pub after: Option<OutboxKey>,
    /// Only keys smaller than this one; `None`: to the last.
    pub before: Option<OutboxKey>,
    /// Most entries to return.
    pub entries_max: usize,
    /// Stop after the entry with which the rows of `WeekArchive`s (players and
    /// maps) reach this number.
    pub rows_max: usize,
}

impl OutboxQuery {
    /// The names after a key; `None`: from the first.
    pub(super) fn names(after: Option<OutboxKey>) -> OutboxQuery {
        OutboxQuery::range(after, Some(FIRST_STATE_KEY))
    }

    /// The states after a key; `None`: from the first.
    pub(super) fn states(after: Option<OutboxKey>) -> OutboxQuery {
        OutboxQuery::range(Some(after.unwrap_or(FIRST_STATE_KEY)), None)
    }

    fn range(after: Option<OutboxKey>, before: Option<OutboxKey>) -> OutboxQuery {
        OutboxQuery { after, before, entries_max: FETCH_ENTRIES_MAX, rows_max: FETCH_ROWS_MAX }
    }

    /// Whether the key is in this range.
    pub fn contains(&self, key: OutboxKey) -> bool {
        self.after.is_none_or(|after| key > after) && self.before.is_none_or(|before| key < before)
    }
}

/// The source has closed: the daemon is stopping and no longer responds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the source of archive jobs has closed")]
pub struct SourceClosed;

/// The source of jobs: the outbox, and the engine that knows the current values.
pub trait JobSource: Send + Sync {
    /// Returns pending entries of a range in key order, with their current values. An empty
    /// list means that there are no more. Entries whose object no longer exists are not
    /// returned. All returned values must be durable.
    fn pending_jobs(
        &self,
        query: OutboxQuery,
    ) -> impl Future<Output = Result<Vec<(OutboxEntry, ArchiveJob)>, SourceClosed>> + Send;

    /// Returns the id of the archive that the source fills; `None`: none so far. It identifies
    /// the state directory to other daemons.
    fn archive_id(&self) -> impl Future<Output = Result<Option<u64>, SourceClosed>> + Send {
        async { Ok(None) }
    }

    /// Returns the largest keys that the source has ever assigned. A larger key in the archive
    /// belongs to another state. `None`: not known.
    fn last_keys(&self) -> impl Future<Output = Result<Option<LastKeys>, SourceClosed>> + Send {
        async { Ok(None) }
    }

    /// Returns the current values of these names and servers, of those that there are.
    fn objects(&self, _keys: Vec<OutboxKey>) -> impl Future<Output = Result<Vec<ArchiveJob>, SourceClosed>> + Send {
        async { Ok(Vec::new()) }
    }

    /// Returns whether a resync is in progress that replaces and deletes what differs in the archive.
    fn repairs(&self) -> impl Future<Output = Result<bool, SourceClosed>> + Send {
        async { Ok(false) }
    }

    /// Resolves when an admin wants the next pass at once.
    fn wanted(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Everything pending was in the archive at `at_ms`, Unix ms.
    fn completed(&self, _at_ms: i64) -> impl Future<Output = Result<(), SourceClosed>> + Send {
        async { Ok(()) }
    }

    /// Plans the right to write: `found` is the id in the archive, which identifies the state directory that last
    /// filled it, `row` its last writer. The plan is durable. If its id differs from `found`, a resync begins.
    /// `resyncs_older`: whether an archive that lacks what it had acknowledged is filled again.
    fn plan_writer(
        &self,
        found: Option<u64>,
        row: Option<WriterRow>,
        _resyncs_older: bool,
    ) -> impl Future<Output = Result<Result<WriterPlan, WriterRefusal>, SourceClosed>> + Send {
        async move {
            let previous = row.map_or(0, |row| row.at.epoch);
            let id = found.unwrap_or_default();
            Ok(Ok(WriterPlan { id, previous, epoch: previous + 1, is_older: false }))
        }
    }

    /// Returns the resync chunk at a position; `None`: the first chunk that is not
    /// acknowledged. All returned values must be durable.
    fn next_resync_chunk(
        &self,
        _from: Option<ResyncCursor>,
    ) -> impl Future<Output = Result<ResyncStep, SourceClosed>> + Send {
        async { Ok(ResyncStep::Idle) }
    }

    /// Acknowledges that the chunk from one position to another is in the archive, except
    /// for `postponed`. Returns `false` if the resync has restarted at another position.
    fn acknowledge_resync_chunk(
        &self,
        _from: ResyncCursor,
        _next: ResyncCursor,
        _postponed: Vec<OutboxKey>,
        _at: WriterBeat,
    ) -> impl Future<Output = Result<bool, SourceClosed>> + Send {
        async { Ok(false) }
    }

    /// Returns a chunk of a week that was returned as [`ArchiveJob::LargeWeek`], or
    /// reports that the chunk is still being prepared. All returned values must be durable.
    fn next_week_chunk(
        &self,
        _request: WeekChunkRequest,
    ) -> impl Future<Output = Result<WeekChunk, SourceClosed>> + Send {
        async { Ok(WeekChunk::NotAvailable) }
    }

    /// Returns the next published boards after a key, of a window or of all that are not closed.
    fn top_boards(
        &self,
        _window: Option<WindowKey>,
        _after: Option<TopBoardKey>,
    ) -> impl Future<Output = Result<TopBoards, SourceClosed>> + Send {
        async { Ok(TopBoards::Next(Vec::new())) }
    }

    /// Returns the entries of the outbox that are tasks: published boards of a window, and the deletion of later rows.
    fn tasks(&self) -> impl Future<Output = Result<Vec<OutboxEntry>, SourceClosed>> + Send {
        async { Ok(Vec::new()) }
    }

    /// Returns the weeks and the time of the source; `None`: not known, so no old row is deleted.
    fn bounds(&self) -> impl Future<Output = Result<Option<ArchiveBounds>, SourceClosed>> + Send {
        async { Ok(None) }
    }

    /// Returns the totals of all servers; `None`: there are none to publish.
    fn site_totals(&self) -> impl Future<Output = Result<Option<SiteTotals>, SourceClosed>> + Send {
        async { Ok(None) }
    }

    /// Acknowledges entries that are in the archive since transaction `at` or before. They are removed from the
    /// outbox if their sequence number is unchanged.
    fn acknowledge(
        &self,
        entries: Vec<OutboxEntry>,
        at: WriterBeat,
    ) -> impl Future<Output = Result<(), SourceClosed>> + Send;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::MapKey;

    #[test]
    fn name_and_state_queries_do_not_overlap() {
        let (names, states) = (OutboxQuery::names(None), OutboxQuery::states(None));
        for key in [OutboxKey::Map(MapKey(1)), OutboxKey::Server(ServerKey(1))] {
            assert_ne!(names.contains(key), states.contains(key));
        }
        assert!(names.contains(OutboxKey::Map(MapKey(1))));
    }
}
