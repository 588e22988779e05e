//! Which rows of the weeks of servers changed since they were archived, so that only those are
//! written again.
//!
//! It is not stored. After a restart, weeks in the outbox are archived completely; the others are
//! equal in the archive. Rows of present players are not recorded here: each of them changes with
//! every scan, so a job always contains them.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::model::{MapKey, PlayerKey, ServerKey, WeekKey};

/// Most recorded rows of all weeks together, some 100 MB. A week that exceeds it is archived
/// completely.
const ROWS_MAX: usize = 4_000_000;

/// Rows of one server's week.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) enum ChangedRows {
    All,
    Some { players: BTreeSet<PlayerKey>, maps: BTreeSet<MapKey> },
}

impl ChangedRows {
    const NONE: ChangedRows = ChangedRows::Some { players: BTreeSet::new(), maps: BTreeSet::new() };

    pub fn is_all(&self) -> bool {
        *self == ChangedRows::All
    }

    pub fn has_player(&self, player: PlayerKey) -> bool {
        match self {
            ChangedRows::All => true,
            ChangedRows::Some { players, .. } => players.contains(&player),
        }
    }

    pub fn has_map(&self, map: MapKey) -> bool {
        match self {
            ChangedRows::All => true,
            ChangedRows::Some { maps, .. } => maps.contains(&map),
        }
    }

    /// Adds players whose rows change with every scan.
    pub fn add_players(&mut self, more: impl Iterator<Item = PlayerKey>) {
        if let ChangedRows::Some { players, .. } = self {
            players.extend(more);
        }
    }

    pub fn len(&self) -> usize {
        match self {
            ChangedRows::All => 0,
            ChangedRows::Some { players, maps } => players.len() + maps.len(),
        }
    }

    fn merge(&mut self, other: ChangedRows) {
        match (&mut *self, other) {
            (ChangedRows::Some { players, maps }, ChangedRows::Some { players: more_players, maps: more_maps }) => {
                players.extend(more_players);
                maps.extend(more_maps);
            }
            _ => *self = ChangedRows::All,
        }
    }
}

/// The changes of one server's week.
#[derive(Debug, Default)]
struct WeekChanges {
    /// Since the last job was read.
    since_job: Option<ChangedRows>,
    /// In the job that is being written; written again if it is not acknowledged.
    in_job: Option<ChangedRows>,
}

/// The changes of all weeks that are in the outbox.
#[derive(Debug, Default)]
pub(in crate::engine) struct ArchiveChanges {
    weeks: FxHashMap<(WeekKey, ServerKey), WeekChanges>,
    /// Recorded rows in `since_job`, in total.
    rows: usize,
    /// Weeks that changed since a verification read values; `None`: none is in progress. At most
    /// one entry for each kept week of a server.
    changed_since_read: Option<FxHashSet<(WeekKey, ServerKey)>>,
}

impl ArchiveChanges {
    /// The change is in no row, or only in rows of present players.
    pub fn add_week(&mut self, week: WeekKey, server: ServerKey) {
        self.note_change(week, server);
        self.weeks.entry((week, server)).or_default().since_job.get_or_insert(ChangedRows::NONE);
    }

    /// All rows changed, or rows were deleted.
    pub fn add_all_rows(&mut self, week: WeekKey, server: ServerKey) {
        self.note_change(week, server);
        let since_job = &mut self.weeks.entry((week, server)).or_default().since_job;
        let before = since_job.replace(ChangedRows::All);
        self.rows -= before.map_or(0, |before| before.len());
    }

    pub fn add_player(&mut self, week: WeekKey, server: ServerKey, player: PlayerKey) {
        self.add_row(week, server, |players, _| players.insert(player));
    }

    pub fn add_map(&mut self, week: WeekKey, server: ServerKey, map: MapKey) {
        self.add_row(week, server, |_, maps| maps.insert(map));
    }

    fn add_row(
        &mut self,
        week: WeekKey,
        server: ServerKey,
        insert: impl FnOnce(&mut BTreeSet<PlayerKey>, &mut BTreeSet<MapKey>) -> bool,
    ) {
        if self.rows >= ROWS_MAX {
            return self.add_all_rows(week, server);
        }
        self.note_change(week, server);
        let since_job = &mut self.weeks.entry((week, server)).or_default().since_job;
        if let ChangedRows::Some { players, maps } = since_job.get_or_insert(ChangedRows::NONE) {
            self.rows += usize::from(insert(players, maps));
        }
    }

    fn note_change(&mut self, week: WeekKey, server: ServerKey) {
        if let Some(changed) = &mut self.changed_since_read {
            changed.insert((week, server));
        }
    }

    /// A verification reads values now.
    pub fn begin_watch(&mut self) {
        self.changed_since_read.get_or_insert_default().clear();
    }

    pub fn end_watch(&mut self) {
        self.changed_since_read = None;
    }

    /// Whether a week changed since the last [`begin_watch`](Self::begin_watch).
    pub fn has_changed(&self, week: WeekKey, server: ServerKey) -> bool {
        self.changed_since_read.as_ref().is_none_or(|changed| changed.contains(&(week, server)))
    }

    /// The rows that a job must contain if it is read now. A week without changes is in the outbox
    /// for an unknown reason: it is archived completely.
    pub fn begin_job(&mut self, week: WeekKey, server: ServerKey) -> ChangedRows {
        let changes = self.weeks.entry((week, server)).or_default();
        let since_job = changes.since_job.take();
        self.rows -= since_job.as_ref().map_or(0, ChangedRows::len);
        let job = match (changes.in_job.take(), since_job) {
            (Some(mut unwritten), Some(since)) => {
                unwritten.merge(since);
                unwritten
            }
            (one, other) => one.or(other).unwrap_or(ChangedRows::All),
        };
        changes.in_job.insert(job).clone()
    }

    /// Whether a week changed since its last job was begun.
    pub fn has_changed_since_job(&self, week: WeekKey, server: ServerKey) -> bool {
        self.weeks.get(&(week, server)).is_some_and(|changes| changes.since_job.is_some())
    }

    /// The last job of the week is in the archive.
    pub fn end_job(&mut self, week: WeekKey, server: ServerKey) {
        let Some(changes) = self.weeks.get_mut(&(week, server)) else { return };
        changes.in_job = None;
        if changes.since_job.is_none() {
            self.weeks.remove(&(week, server));
        }
    }

    /// A week was deleted. In a cluster, the followers record changes whose jobs only the leader begins.
    pub fn remove_week(&mut self, week: WeekKey) {
        for (_, changes) in self.weeks.extract_if(|(of, _), _| *of == week) {
            self.rows -= changes.since_job.map_or(0, |since_job| since_job.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEEK: WeekKey = WeekKey(2_900);
    const SERVER: ServerKey = ServerKey(7);

    fn some(players: &[u32]) -> ChangedRows {
        ChangedRows::Some { players: players.iter().map(|key| PlayerKey(*key)).collect(), maps: BTreeSet::new() }
    }

    #[test]
    fn unwritten_rows_are_in_the_next_job_again() {
        let mut changes = ArchiveChanges::default();
        changes.add_player(WEEK, SERVER, PlayerKey(1));
        assert_eq!(changes.begin_job(WEEK, SERVER), some(&[1]));
        assert!(!changes.has_changed_since_job(WEEK, SERVER));
        changes.add_player(WEEK, SERVER, PlayerKey(2));
        assert!(changes.has_changed_since_job(WEEK, SERVER));
        assert_eq!(changes.begin_job(WEEK, SERVER), some(&[1, 2]));
        changes.add_player(WEEK, SERVER, PlayerKey(3));
        changes.end_job(WEEK, SERVER);
        assert_eq!(changes.begin_job(WEEK, SERVER), some(&[3]));
        changes.end_job(WEEK, SERVER);
        assert!(changes.weeks.is_empty() && changes.rows == 0);
    }

    #[test]
    fn deleted_week_leaves_nothing() {
        let mut changes = ArchiveChanges::default();
        let next = WeekKey(WEEK.0 + 1);
        for week in [WEEK, next] {
            changes.add_player(week, SERVER, PlayerKey(1));
            changes.add_map(week, ServerKey(8), MapKey(1));
        }
        changes.begin_job(WEEK, SERVER);
        changes.add_player(WEEK, SERVER, PlayerKey(2));
        changes.remove_week(WEEK);
        assert_eq!((changes.weeks.len(), changes.rows), (2, 2));
        assert!(changes.weeks.keys().all(|(week, _)| *week == next));
    }

    #[test]
    fn change_during_watch_is_reported_until_next_watch() {
        let mut changes = ArchiveChanges::default();
        assert!(changes.has_changed(WEEK, SERVER), "nothing is known without a watch");
        for add in [ArchiveChanges::add_week, ArchiveChanges::add_all_rows] {
            changes.begin_watch();
            assert!(!changes.has_changed(WEEK, SERVER));
            add(&mut changes, WEEK, SERVER);
            changes.begin_job(WEEK, SERVER);
            changes.end_job(WEEK, SERVER);
            assert!(changes.has_changed(WEEK, SERVER) && !changes.has_changed(WEEK, ServerKey(8)));
        }
        changes.begin_watch();
        changes.add_map(WEEK, SERVER, MapKey(1));
        assert!(changes.has_changed(WEEK, SERVER));
    }

    #[test]
    fn deletion_and_unknown_changes_write_all_rows() {
        let mut changes = ArchiveChanges::default();
        assert_eq!(changes.begin_job(WEEK, SERVER), ChangedRows::All);
        changes.end_job(WEEK, SERVER);
        changes.add_week(WEEK, SERVER);
        assert_eq!(changes.begin_job(WEEK, SERVER), some(&[]));
        changes.add_player(WEEK, SERVER, PlayerKey(1));
        changes.add_all_rows(WEEK, SERVER);
        changes.add_player(WEEK, SERVER, PlayerKey(2));
        assert_eq!((changes.begin_job(WEEK, SERVER), changes.rows), (ChangedRows::All, 0));
    }
}
