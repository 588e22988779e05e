//! Builds a state directory from the archive: reads the tables page by page, lets the engine turn
//! them into commits, and writes these to a new directory, which then replaces the old one.

use std::collections::VecDeque;
use std::path::Path;

use chrono::{DateTime, Utc};

use crate::archive::{Archive, ArchiveError, ArchiveSettings, Page, PageKey};
use crate::engine::{Engine, EngineSettings, RestoreError, StateRestore, ZoneChanged};
use crate::model::calendar::week_label;
use crate::model::commit::Meta;
use crate::model::restored::{
    ArchiveFacts, ArchivedBest, ArchivedResult, ArchivedWeek, LastKeys, OPEN_WEEKS_MAX, RejectedRow,
};
use crate::model::{PlayerKey, ServerKey, WeekKey};
use crate::store::{RestoreSummary, StateReplacement, Store, StoreError};
use crate::view::restore_report::RestoreReport;

/// How much is read and written at once.
#[derive(Clone, Copy, Debug)]
pub struct RestoreLimits {
    /// Rows in one page: 10,000 rows of players are 2 MB.
    pub page_rows: usize,
    /// Servers in one page; one has 2 kB.
    pub page_servers: usize,
    /// Records in one commit, some 150 bytes each. Two are in memory.
    pub commit_records: usize,
}

impl Default for RestoreLimits {
    fn default() -> RestoreLimits {
        RestoreLimits { page_rows: 10_000, page_servers: 2_000, commit_records: 50_000 }
    }
}

/// A restored state directory.
#[derive(Clone, Debug)]
pub struct Restored {
    pub directory: RestoreSummary,
    pub report: RestoreReport,
}

#[derive(Debug, thiserror::Error)]
pub enum RestoreArchiveError {
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error(transparent)]
    Restore(#[from] RestoreError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Zone(#[from] ZoneChanged),
}

impl From<RejectedRow> for RestoreArchiveError {
    fn from(row: RejectedRow) -> RestoreArchiveError {
        RestoreArchiveError::Restore(row.into())
    }
}

/// Replaces a state directory by one that is built from the archive, and renames the previous one to
/// `STATE.before-restore`. No process may have the state open. `progress` is called with a table's
/// name and the rows that were read from it. `prepare` gets the directory of the new state.
pub async fn restore_from_archive(
    archive: &ArchiveSettings,
    settings: &EngineSettings,
    state: &Path,
    cache_bytes: u64,
    limits: RestoreLimits,
    progress: &mut dyn FnMut(&str, u64),
    prepare: impl FnOnce(&Path),
) -> Result<Restored, RestoreArchiveError> {
    let mut archive = Archive::connect_to_read(archive).await?;
    let facts = archive.begin_restore().await?;
    let restore = StateRestore::new(settings.clone(), &facts)?;
    let replacement = StateReplacement::begin(state)?;
    let store = replacement.open(cache_bytes)?;
    let mut reader =
        TableReader { archive, restore, store, weeks: facts.weeks, carry_over: settings.rules.elo.carry_over, limits };
    reader.names(progress).await?;
    let weeks = reader.choose_weeks(progress).await?;
    for &(week, _) in &weeks {
        reader.week(week, progress).await?;
    }
    reader.best(&weeks, progress).await?;
    let TableReader { mut archive, restore, mut store, .. } = reader;
    archive.end_restore().await?;
    archive.close().await;
    let now_ms = restore.now_ms();
    let (commit, report) = restore.finish();
    store.apply(&commit)?;
    // A state that the daemon would refuse must not replace another one.
    Engine::new(settings.clone(), store.load()?)?;
    drop(store);
    prepare(replacement.dir());
    Ok(Restored { directory: replacement.finish(now_ms)?, report })
}

/// A backup is older than the archive, or belongs to another one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", differences.join("\n"))]
pub struct ArchiveIsNewer {
    /// The objects that the archive has and the backup lacks, one a line.
    pub differences: Vec<String>,
}

/// Compares a backup with the archive that the restored state would continue. Error: archiving would
/// stop with the fault `key_mismatch`, or would replace newer rows by older ones.
pub fn compare_with_archive(backup: &Meta, archive: &ArchiveFacts) -> Result<(), ArchiveIsNewer> {
    let LastKeys { game, map, player, server } = archive.last_keys;
    if (game, map, player, server) == (0, 0, 0, 0) {
        return Ok(());
    }
    let mut differences = Vec::new();
    if backup.resync_state.archive_id != archive.state_id {
        differences.push("another state directory than that of the backup filled the archive last".to_owned());
    }
    if let Some(scanned_ms) = archive.last_scan_ms.filter(|&scanned_ms| scanned_ms > backup.now_ms) {
        let time =
            |t_ms| DateTime::<Utc>::from_timestamp_millis(t_ms).unwrap_or_default().format("%Y-%m-%d %H:%M:%S UTC");
        let (has, until) = (time(scanned_ms), time(backup.now_ms));
        differences.push(format!("the archive has scans until {has}, the backup until {until}"));
    }
    for (what, last, next) in [
        ("games", game, backup.next_game),
        ("maps", map, backup.next_map),
        ("players", player, backup.next_player),
        ("servers", server, backup.next_server),
    ] {
        let of_backup = next.saturating_sub(1);
        if last > of_backup {
            differences.push(format!("the archive has {what} with keys up to {last}, the backup up to {of_backup}"));
        }
    }
    if differences.is_empty() { Ok(()) } else { Err(ArchiveIsNewer { differences }) }
}

/// The page to read next: after a key, or the first.
const FIRST_PAGE: Option<Option<PageKey>> = Some(None);

struct TableReader {
    archive: Archive,
    restore: StateRestore,
    store: Store,
    /// All weeks of the archive, in order.
    weeks: Vec<ArchivedWeek>,
    carry_over: bool,
    limits: RestoreLimits,
}

/// Counts the rows of a table and reports them.
struct Counter<'p> {
    table: String,
    rows: u64,
    progress: &'p mut dyn FnMut(&str, u64),
}

impl Counter<'_> {
    fn new(table: impl Into<String>, progress: &mut dyn FnMut(&str, u64)) -> Counter<'_> {
        Counter { table: table.into(), rows: 0, progress }
    }

    fn add<T>(&mut self, page: &Page<T>) {
        self.rows += page.rows.len() as u64;
        (self.progress)(&self.table, self.rows);
    }
}

impl TableReader {
    /// Games, maps, players and servers: each row must be right.
    async fn names(&mut self, progress: &mut dyn FnMut(&str, u64)) -> Result<(), RestoreArchiveError> {
        let most = self.limits.page_rows;
        let (mut next, mut counter) = (FIRST_PAGE, Counter::new("game", progress));
        while let Some(after) = next {
            let page = all_good(self.archive.read_games(after, most).await?)?;
            counter.add(&page);
            page.rows.into_iter().try_for_each(|(key, name)| self.restore.game(key, name))?;
            self.write()?;
            next = page.next.map(Some);
        }
        let (mut next, mut counter) = (FIRST_PAGE, Counter::new("map", progress));
        while let Some(after) = next {
            let page = all_good(self.archive.read_maps(after, most).await?)?;
            counter.add(&page);
            page.rows.into_iter().try_for_each(|(key, name)| self.restore.map(key, name))?;
            self.write()?;
            next = page.next.map(Some);
        }
        let (mut next, mut counter) = (FIRST_PAGE, Counter::new("player", progress));
        while let Some(after) = next {
            let page = all_good(self.archive.read_players(after, most).await?)?;
            counter.add(&page);
            page.rows.into_iter().try_for_each(|(key, record)| self.restore.player(key, record))?;
            self.write()?;
            next = page.next.map(Some);
        }
        let open: Vec<ArchivedWeek> = self.weeks.iter().rev().take(OPEN_WEEKS_MAX).cloned().collect();
        let (mut next, mut counter) = (FIRST_PAGE, Counter::new("server", progress));
        while let Some(after) = next {
            let mut page = self.archive.read_servers(&open, after, self.limits.page_servers).await?;
            if let Some(at) = page.rejected.iter().position(|row| row.table == "server") {
                return Err(page.rejected.swap_remove(at).into());
            }
            counter.add(&page);
            self.reject(&page.rejected);
            page.rows.into_iter().try_for_each(|server| self.restore.server(server))?;
            self.write()?;
            next = page.next.map(Some);
        }
        Ok(())
    }

    /// Returns the weeks to restore, each with whether it is closed.
    async fn choose_weeks(
        &mut self,
        progress: &mut dyn FnMut(&str, u64),
    ) -> Result<Vec<(WeekKey, bool)>, RestoreArchiveError> {
        for week in self.restore.candidate_weeks() {
            let (mut next, mut counter) =
                (FIRST_PAGE, Counter::new(format!("server_week {}", week_label(week)), progress));
            while let Some(after) = next {
                let page = self.archive.read_server_weeks(week, after, self.limits.page_rows).await?;
                counter.add(&page);
                self.reject(&page.rejected);
                for row in page.rows {
                    let restored = self.restore.server_week(week, row);
                    self.reject(restored.err().as_slice());
                }
                next = page.next.map(Some);
            }
        }
        Ok(self.restore.choose_weeks())
    }

    /// The rows of a week.
    async fn week(&mut self, week: WeekKey, progress: &mut dyn FnMut(&str, u64)) -> Result<(), RestoreArchiveError> {
        let most = self.limits.page_rows;
        let archived = self.weeks.iter().find(|archived| archived.week == week).expect("a week of the archive").clone();
        let label = week_label(week);
        for (tag, board) in self.archive.read_published_boards(&label).await? {
            for rating in self.archive.read_published_ratings(board).await? {
                self.restore.published_rating(tag.as_deref(), &rating);
            }
        }
        let (mut next, mut counter) = (FIRST_PAGE, Counter::new(format!("player_week {label}"), progress));
        while let Some(after) = next {
            let page = self.archive.read_player_weeks(&archived, after, most).await?;
            counter.add(&page);
            self.reject(&page.rejected);
            for (server, row) in &page.rows {
                let restored = self.restore.player_week(week, *server, row);
                self.reject(restored.err().as_slice());
            }
            self.write()?;
            next = page.next.map(Some);
        }
        while self.restore.player_windows(week, most) {
            self.write()?;
        }
        let (mut next, mut counter) = (FIRST_PAGE, Counter::new(format!("map_week {label}"), progress));
        while let Some(after) = next {
            let page = self.archive.read_map_weeks(week, after, most).await?;
            counter.add(&page);
            self.reject(&page.rejected);
            for (server, row) in page.rows {
                let restored = self.restore.map_week(week, server, row);
                self.reject(restored.err().as_slice());
            }
            self.write()?;
            next = page.next.map(Some);
        }
        Ok(())
    }

    /// Best positions, and what follows from the results of closed weeks: all tables are in order of
    /// server and player, and are merged.
    async fn best(
        &mut self,
        restored: &[(WeekKey, bool)],
        progress: &mut dyn FnMut(&str, u64),
    ) -> Result<(), RestoreArchiveError> {
        let most = self.limits.page_rows;
        let oldest = restored.first().map(|(week, _)| *week);
        // Ratings of weeks that are not restored are carried over, too.
        let older = self.weeks.iter().map(|week| week.week).filter(|week| self.carry_over && Some(*week) < oldest);
        let closed = restored.iter().filter(|(_, closed)| *closed).map(|(week, _)| *week);
        let mut results: Vec<(WeekKey, Merged<ArchivedResult>)> =
            older.chain(closed).map(|week| (week, Merged::default())).collect();
        let (mut best, mut counter) = (Merged::<ArchivedBest>::default(), Counter::new("best_position", progress));
        loop {
            while best.needs_page() {
                let page = self.archive.read_best(best.next, most).await?;
                counter.add(&page);
                self.reject(&page.rejected);
                best.push(page);
            }
            for (week, rows) in &mut results {
                while rows.needs_page() {
                    // Rejected rows of restored weeks were reported already.
                    rows.push(self.archive.read_results(*week, rows.next, most).await?);
                }
            }
            let fronts = results.iter().filter_map(|(_, rows)| rows.front(|row| (row.server, row.player)));
            let Some(key) = fronts.chain(best.front(|row| (row.server, row.player))).min() else { return Ok(()) };
            let positions = best.take_while(|row| (row.server, row.player) == key);
            let mut of_weeks: Vec<(WeekKey, ArchivedResult)> = Vec::new();
            for (week, rows) in &mut results {
                let found = rows.take_while(|row| (row.server, row.player) == key);
                of_weeks.extend(found.into_iter().map(|row| (*week, row)));
            }
            let restored = self.restore.best(key, &positions, &of_weeks);
            self.reject(restored.err().filter(|_| !positions.is_empty()).as_slice());
            self.write()?;
        }
    }

    fn reject(&mut self, rows: &[RejectedRow]) {
        rows.iter().for_each(|row| self.restore.report().reject(row));
    }

    /// Begins to write the changes so far, if there are enough of them, while reading continues.
    fn write(&mut self) -> Result<(), StoreError> {
        match self.restore.take_commit(self.limits.commit_records) {
            Some(commit) => self.store.apply(&commit),
            None => Ok(()),
        }
    }
}

/// Error: a row was rejected, of a table in which every row must be valid.
fn all_good<T>(mut page: Page<T>) -> Result<Page<T>, RejectedRow> {
    match page.rejected.pop() {
        Some(row) => Err(row),
        None => Ok(page),
    }
}

/// Rows of a table that are merged with others in order of server and player.
struct Merged<T> {
    rows: VecDeque<T>,
    next: Option<PageKey>,
    is_read: bool,
}

impl<T> Default for Merged<T> {
    fn default() -> Merged<T> {
        Merged { rows: VecDeque::new(), next: None, is_read: false }
    }
}

impl<T> Merged<T> {
    fn needs_page(&self) -> bool {
        self.rows.is_empty() && !self.is_read
    }

    fn push(&mut self, page: Page<T>) {
        self.rows.extend(page.rows);
        self.next = page.next;
        self.is_read = page.next.is_none();
    }

    fn front(&self, key: impl Fn(&T) -> (ServerKey, PlayerKey)) -> Option<(ServerKey, PlayerKey)> {
        self.rows.front().map(key)
    }

    fn take_while(&mut self, is_wanted: impl Fn(&T) -> bool) -> Vec<T> {
        let mut taken = Vec::new();
        while self.rows.front().is_some_and(&is_wanted) {
            taken.extend(self.rows.pop_front());
        }
        taken
    }
}
