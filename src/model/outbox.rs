//! What must still be archived: outbox entries, and the progress of a resync (docs/rules.md
//! section 12).
//!
//! The outbox holds keys of changed objects, not values: the values are read when they are
//! archived, consistently for each server. So during an outage of MySQL each object needs one
//! small entry, however often it changes.

use serde::{Deserialize, Serialize};

use crate::model::keys::{GameKey, MapKey, PlayerKey, ServerKey, WeekKey};
use crate::model::session::{SessionDay, SessionKey};
use crate::model::window::WindowKey;

/// An object to be archived. The order is the order of archiving: names before objects that
/// refer to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum OutboxKey {
    Game(GameKey),
    Map(MapKey),
    /// A player, possibly removed.
    Player(PlayerKey),
    Server(ServerKey),
    Week {
        week: WeekKey,
        server: ServerKey,
    },
    /// Best positions on a server, of players after one; as many as one job may have.
    BestPositions {
        server: ServerKey,
        after: Option<PlayerKey>,
    },
    /// A complete session.
    Session(SessionKey),
    /// What the archive computes from the rows of a week: it is computed again.
    WeekTotals(WeekKey),
    /// The published boards of a window. Running windows are published without an entry.
    TopBoards(WindowKey),
    /// Rows in the archive that are later than the state: a wrong clock or another state wrote them.
    LaterRows,
}

/// An outbox key and the sequence number of its last change. The entry may only be removed
/// while it has this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxEntry {
    pub key: OutboxKey,
    pub seq: u64,
}

/// A position in a resync: what is written next. A resync writes the whole state in this order;
/// concurrent changes go through the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ResyncCursor {
    Game(GameKey),
    Map(MapKey),
    /// Merged and forgotten players with a greater key. Their names may belong to other players
    /// now.
    RemovedPlayers {
        after: Option<PlayerKey>,
    },
    /// Servers, each after the players of its list.
    Server(ServerKey),
    Player(PlayerKey),
    Week {
        week: WeekKey,
        server: ServerKey,
    },
    /// Best positions on a server, of players after one.
    BestPositions {
        server: ServerKey,
        after: Option<PlayerKey>,
    },
    /// The sessions that ended on a server on a day.
    Sessions {
        day: SessionDay,
        server: ServerKey,
    },
    End,
}

impl ResyncCursor {
    pub const START: ResyncCursor = ResyncCursor::Game(GameKey(1));
    pub const WEEKS: ResyncCursor = ResyncCursor::Week { week: WeekKey(0), server: ServerKey(1) };
    pub const BEST_POSITIONS: ResyncCursor = ResyncCursor::BestPositions { server: ServerKey(1), after: None };
    pub const SESSIONS: ResyncCursor = ResyncCursor::Sessions { day: SessionDay::FIRST, server: ServerKey(1) };

    /// Whether all names are written, so that servers and weeks may refer to any of them.
    pub fn is_past_names(self) -> bool {
        self >= ResyncCursor::WEEKS
    }
}

/// The state's part of a resync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResyncState {
    /// Identifies the archive: the same number is stored there when its first resync begins. An
    /// archive with another number, or without one, is filled from the start.
    pub archive_id: Option<u64>,
    /// Everything before this position is written.
    pub next: ResyncCursor,
    /// The outbox dropped an entry since the start: another resync follows this one.
    pub repeat: bool,
    /// The archive belongs to this state: other names, keys and rows in it are replaced and deleted.
    pub repairs: bool,
}

impl Default for ResyncState {
    fn default() -> ResyncState {
        ResyncState { archive_id: None, next: ResyncCursor::START, repeat: false, repairs: false }
    }
}

/// The right of this state to write its archive, by what the archive has acknowledged. The row in the
/// archive has one of these two epochs, or it was not written by this state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveWriter {
    /// The epoch before `epoch`. The row still has it if `epoch` was never taken.
    pub previous: WriterBeat,
    pub last: WriterBeat,
}

/// An epoch of a writer, and the number of its transactions that the archive has acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WriterBeat {
    pub epoch: u64,
    /// 0: the epoch was not taken, as far as is known.
    pub beat: u64,
}

/// The row of the last writer in the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterRow {
    pub at: WriterBeat,
    /// The id of the state that wrote; `None`: none. Such a writer has changed the schema, but no rows.
    pub state_id: Option<u64>,
}

/// What the archive is for this state, by the row of its last writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveAge {
    /// It has everything that was acknowledged.
    Current,
    /// It lacks something that was acknowledged: it is a copy of an earlier time.
    Older,
    /// It was written from another state, or from another copy of this one.
    WrittenByOther,
}

impl ArchiveWriter {
    /// `row`: `None` if the archive has none.
    pub fn compare(&self, row: Option<WriterRow>) -> ArchiveAge {
        let ArchiveWriter { previous, last } = *self;
        let Some(WriterRow { at, state_id }) = row else { return ArchiveAge::Older };
        let is_at = |known: WriterBeat| at.epoch == known.epoch;
        if is_at(last) && at.beat >= last.beat || is_at(previous) && at.beat >= previous.beat && last.beat == 0 {
            return ArchiveAge::Current;
        }
        match at.epoch > previous.epoch && !is_at(last) {
            true if at.epoch > last.epoch && state_id.is_none() => ArchiveAge::Current,
            // Epochs of one writer are not consecutive: between two of them is the epoch of another one.
            true => ArchiveAge::WrittenByOther,
            false => ArchiveAge::Older,
        }
    }
}

/// An event that changes what is to be archived, and where. Acknowledgements of single objects are not events: if they
/// are lost, the same values are written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArchiveStep {
    /// The state fills the archive with this id, from the start.
    Claim { id: u64 },
    /// The next epoch of the writer. It is on disk before it is taken.
    Epoch { previous: u64, epoch: u64 },
    /// Everything is archived again. `adopts`: also if another state has written the archive.
    Resync { adopts: bool },
    /// The weeks of some servers are archived again.
    Resend { week: WeekKey, from: ServerKey, servers: u32 },
    /// Everything until a batch of the log is in the archive, which has acknowledged `at`. Only a leader of a cluster
    /// says it, to its followers.
    Archived { batch: u64, at: WriterBeat },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_is_current_older_or_written_by_another() {
        let at = |epoch, beat| WriterBeat { epoch, beat };
        // The first one had taken its epoch; the second was killed before it knew.
        let known = ArchiveWriter { previous: at(10, 7), last: at(20, 5) };
        let begun = ArchiveWriter { previous: at(10, 7), last: at(20, 0) };
        for (epoch, beat, state_id, of_known, of_begun) in [
            (20, 5, Some(1), ArchiveAge::Current, ArchiveAge::Current),
            (20, 9, Some(1), ArchiveAge::Current, ArchiveAge::Current),
            (20, 4, Some(1), ArchiveAge::Older, ArchiveAge::Current),
            (10, 7, Some(1), ArchiveAge::Older, ArchiveAge::Current),
            (10, 6, Some(1), ArchiveAge::Older, ArchiveAge::Older),
            (9, 99, Some(1), ArchiveAge::Older, ArchiveAge::Older),
            (15, 1, Some(1), ArchiveAge::WrittenByOther, ArchiveAge::WrittenByOther),
            (21, 1, Some(1), ArchiveAge::WrittenByOther, ArchiveAge::WrittenByOther),
            (21, 1, None, ArchiveAge::Current, ArchiveAge::Current),
        ] {
            let row = Some(WriterRow { at: at(epoch, beat), state_id });
            assert_eq!(known.compare(row), of_known, "{row:?}");
            assert_eq!(begun.compare(row), of_begun, "{row:?}");
        }
        assert_eq!(known.compare(None), ArchiveAge::Older);
    }
}
