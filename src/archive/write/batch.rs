//! The transactions that jobs are written in.

use std::collections::BTreeMap;

use super::objects::ObjectKind;
use crate::model::archive::{ArchiveJob, WeekArchive};
use crate::model::top_board::{SiteTotals, TopBoard};
use crate::model::{OutboxKey, PlayerKey, WeekKey};

/// The content of one transaction.
pub(super) enum Batch<'a> {
    Objects(ObjectKind, Vec<&'a ArchiveJob>),
    /// A removed player, and the player that gets the rows; `None`: they are deleted.
    RemovedPlayer(PlayerKey, Option<PlayerKey>),
    Weeks(Vec<&'a WeekArchive>),
    WeekTotals(WeekKey),
    /// A board, and the time of its publication, Unix ms.
    TopBoard(&'a TopBoard, i64),
    SiteTotals(&'a SiteTotals),
}

/// Sorts jobs by table and key and groups them into transactions.
pub(super) fn batches(jobs: &[ArchiveJob], rows_max: usize) -> Vec<Batch<'_>> {
    let (mut removed, mut weeks, mut totals) = (Vec::new(), Vec::new(), Vec::new());
    let mut objects: BTreeMap<ObjectKind, Vec<&ArchiveJob>> = BTreeMap::new();
    for job in jobs {
        match job {
            ArchiveJob::PlayerRemoved { key, into } => removed.push((*key, *into)),
            ArchiveJob::Week(week) => weeks.push(&**week),
            ArchiveJob::WeekTotals { week } => totals.push(*week),
            ArchiveJob::LargeWeek { .. } => unreachable!("it is written in chunks"),
            job => objects.entry(ObjectKind::of(job).expect("an object")).or_default().push(job),
        }
    }
    removed.sort_unstable();
    weeks.sort_by_key(|week: &&WeekArchive| (week.week, week.server));
    let is_name = |kind: &ObjectKind| *kind < ObjectKind::Player;
    let (names, others): (Vec<_>, Vec<_>) = objects.into_iter().partition(|(kind, _)| is_name(kind));
    let week_rows = |week: &&WeekArchive| 2 + week.rows.len() + week.maps.len() + 9 * week.best.len();

    let mut all = Vec::new();
    all.extend(names.into_iter().flat_map(|(kind, jobs)| objects_of_kind(kind, jobs, rows_max)));
    // Before players: a removed player's name may belong to another player now.
    all.extend(removed.into_iter().map(|(player, into)| Batch::RemovedPlayer(player, into)));
    all.extend(others.into_iter().flat_map(|(kind, jobs)| objects_of_kind(kind, jobs, rows_max)));
    all.extend(split_by_rows(weeks, rows_max, week_rows).map(Batch::Weeks));
    all.extend(totals.into_iter().map(Batch::WeekTotals));
    all
}

fn objects_of_kind<'a>(
    kind: ObjectKind,
    mut jobs: Vec<&'a ArchiveJob>,
    rows_max: usize,
) -> impl Iterator<Item = Batch<'a>> {
    // In order of the primary key.
    jobs.sort_by_key(|job| match job.key() {
        OutboxKey::Session(key) => (Some(key.server), job.key()),
        key => (None, key),
    });
    split_by_rows(jobs, rows_max, |job| rows_of(job)).map(move |jobs| Batch::Objects(kind, jobs))
}

/// About the number of rows of an object.
fn rows_of(job: &ArchiveJob) -> usize {
    match job {
        ArchiveJob::Server(server) => 2 + server.tags.len() + server.screened.len() + server.list.len(),
        ArchiveJob::BestPositions(best) => 5 * best.best.len(),
        _ => 1,
    }
}

/// Groups objects into runs of at most `rows_max` rows. An object with more rows is a run
/// of its own.
fn split_by_rows<T>(items: Vec<T>, rows_max: usize, rows_of: impl Fn(&T) -> usize) -> impl Iterator<Item = Vec<T>> {
    let mut runs = Vec::new();
    let mut run = Vec::new();
    let mut rows = 0;
    for item in items {
        let more = rows_of(&item);
        if !run.is_empty() && rows + more > rows_max {
            runs.push(std::mem::take(&mut run));
            rows = 0;
        }
        rows += more;
        run.push(item);
    }
    if !run.is_empty() {
        runs.push(run);
    }
    runs.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::GameKey;

    #[test]
    fn batches_respect_row_limit_without_splitting_a_job() {
        let runs: Vec<Vec<usize>> = split_by_rows(vec![1, 2, 9, 1, 1, 1], 3, |&rows| rows).collect();
        assert_eq!(runs, [vec![1, 2], vec![9], vec![1, 1, 1]]);
        assert_eq!(split_by_rows(Vec::<usize>::new(), 3, |_| 1).count(), 0);
    }

    #[test]
    fn batches_put_names_first_in_key_order() {
        let name =
            |key| ArchiveJob::Player { key: PlayerKey(key), game: GameKey(1), name: "n".into(), display: "n".into() };
        let jobs = [name(3), name(1), ArchiveJob::Game { key: GameKey(1), name: "g".into() }];
        let all = batches(&jobs, 10);
        assert!(matches!(&all[0], Batch::Objects(ObjectKind::Game, games) if games.len() == 1));
        let players = [&jobs[1], &jobs[0]];
        assert!(matches!(&all[1], Batch::Objects(ObjectKind::Player, found) if found[..] == players));
    }
}
