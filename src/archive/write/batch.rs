//! The transactions that jobs are written in.

use crate::model::archive::{ArchiveJob, ServerArchive, WeekArchive};
use crate::model::top_board::{SiteTotals, TopBoard};
use crate::model::{GameKey, MapKey, PlayerKey, Session, SessionKey, WeekKey};

/// The content of one transaction.
pub(super) enum Batch<'a> {
    Games(Vec<(GameKey, &'a str)>),
    Maps(Vec<(MapKey, &'a str)>),
    /// A removed player, and the player that gets the rows; `None`: they are deleted.
    RemovedPlayer(PlayerKey, Option<PlayerKey>),
    Players(Vec<(PlayerKey, GameKey, &'a str, &'a str)>),
    Servers(Vec<&'a ServerArchive>),
    Weeks(Vec<&'a WeekArchive>),
    /// A board, and the time of its publication, Unix ms.
    TopBoard(&'a TopBoard, i64),
    SiteTotals(&'a SiteTotals),
    Sessions(Vec<(SessionKey, Session)>),
    MapTotals(WeekKey),
}

/// Sorts jobs by table and key and groups them into transactions.
pub(super) fn batches(jobs: &[ArchiveJob], rows_max: usize) -> Vec<Batch<'_>> {
    let (mut games, mut maps, mut removed, mut players) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut servers, mut weeks, mut sessions, mut map_totals) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for job in jobs {
        match job {
            ArchiveJob::Game { key, name } => games.push((*key, name.as_str())),
            ArchiveJob::Map { key, name } => maps.push((*key, name.as_str())),
            ArchiveJob::Player { key, game, name, display } => {
                players.push((*key, *game, name.as_str(), display.as_str()))
            }
            ArchiveJob::PlayerRemoved { key, into } => removed.push((*key, *into)),
            ArchiveJob::Server(server) => servers.push(&**server),
            ArchiveJob::Week(week) => weeks.push(&**week),
            ArchiveJob::Session(key, session) => sessions.push((*key, *session)),
            ArchiveJob::MapTotals { week } => map_totals.push(*week),
            ArchiveJob::LargeWeek { .. } => unreachable!("it is written in chunks"),
        }
    }
    games.sort_by_key(|&(key, _)| key);
    maps.sort_by_key(|&(key, _)| key);
    removed.sort_unstable();
    players.sort_by_key(|&(key, ..)| key);
    servers.sort_by_key(|server: &&ServerArchive| server.key);
    weeks.sort_by_key(|week: &&WeekArchive| (week.week, week.server));

    let mut all = Vec::new();
    all.extend(split_by_rows(games, rows_max, |_| 1).map(Batch::Games));
    all.extend(split_by_rows(maps, rows_max, |_| 1).map(Batch::Maps));
    // Before players: a removed player's name may belong to another player now.
    all.extend(removed.into_iter().map(|(player, into)| Batch::RemovedPlayer(player, into)));
    all.extend(split_by_rows(players, rows_max, |_| 1).map(Batch::Players));
    let server_rows = |server: &&ServerArchive| 2 + server.tags.len() + server.screened.len() + server.list.len();
    all.extend(split_by_rows(servers, rows_max, server_rows).map(Batch::Servers));
    let week_rows = |week: &&WeekArchive| 2 + week.rows.len() + week.maps.len() + 9 * week.best.len();
    all.extend(split_by_rows(weeks, rows_max, week_rows).map(Batch::Weeks));
    // In order of the primary key.
    sessions.sort_by_key(|(key, _)| (key.server, *key));
    all.extend(split_by_rows(sessions, rows_max, |_| 1).map(Batch::Sessions));
    all.extend(map_totals.into_iter().map(Batch::MapTotals));
    all
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
        assert!(matches!(&all[0], Batch::Games(games) if games.len() == 1));
        assert!(matches!(&all[1], Batch::Players(players) if players[0].0.0 == 1 && players[1].0.0 == 3));
    }
}
