//! Compares what scans found with what happened. Pure.

use std::collections::HashMap;

use super::play::{Play, PlayerTruth, Round, Standing, player_name};
use crate::board::comparison::rank_correlation;
use crate::model::row::PlayerRow;
use crate::rank::{Rules, clq2, elo};

/// Rated rounds that a player must have for ranks to be compared.
const ROUNDS_MIN: u32 = 3;

/// Such players that a server must have.
const PLAYERS_MIN: usize = 5;

/// Scores of a ranking that are added up.
const BEST: usize = 10;

/// How close the rankings of a simulated week came to the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Accuracy {
    /// Scans for each server and two minutes.
    pub scans: f64,
    /// Error of the sum over all players, percent.
    pub time_error: f64,
    pub points_error: f64,
    pub time_est_error: f64,
    pub points_est_error: f64,
    /// True rated rounds.
    pub rounds: u64,
    /// Percent of them that were found, whose winner is right, and whose first three are.
    pub found: f64,
    pub winner: f64,
    pub first_three: f64,
    /// Percent of the found rounds that are *sure*, and of those the percent whose winner is right.
    pub sure: f64,
    pub sure_winner: f64,
    /// Mean time from the last list of a found round to its end at most, s; percent of the rounds that ended within theirs.
    pub unseen_s: f64,
    pub unseen_within: f64,
    /// Median error of the estimates of a player on a server, percent.
    pub time_est_median: f64,
    pub time_connected_median: f64,
    pub points_est_median: f64,
    /// Percent of the players on a server whose true value is within the interval of the estimate.
    pub time_est_within: f64,
    pub time_connected_within: f64,
    pub points_est_within: f64,
    /// Spearman's correlation of ranks on a server with the true ones, weighted by players.
    pub clq1: f64,
    pub clq2: f64,
    pub elo: f64,
    pub points: f64,
    pub time: f64,
}

/// A final list that was rated: the time of the last scan of the round, and the standings at its end, best first.
#[derive(Clone, Debug)]
pub struct RatedList {
    pub last_scan_ms: i64,
    /// The engine says that the list shows the end of the round.
    pub sure: bool,
    /// And that it was made at most this long before that end, ms.
    pub unseen_ms_max: u64,
    pub standings: Vec<Standing>,
}

/// What was found on one server: rated lists in order of time, and rows by name.
#[derive(Debug, Default)]
pub struct Found {
    pub lists: Vec<RatedList>,
    pub rows: HashMap<String, PlayerRow>,
}

/// Compares all servers; `scans` is the number for each server and two minutes.
pub fn compare(servers: &[(&Play, Found)], scans: f64, rules: &Rules) -> Accuracy {
    let mut accuracy = Accuracy { scans, ..Accuracy::default() };
    let [mut found, mut winner, mut three, mut sure, mut sure_winner] = [0_u64; 5];
    let [mut unseen_ms, mut unseen_within] = [0_u64; 2];
    let mut estimates = [Estimates::default(), Estimates::default(), Estimates::default()];
    let (mut truth_sums, mut row_sums) = ([0.0; 2], [0.0; 4]);
    let (mut weight, mut correlations) = (0.0, [0.0; 5]);
    for (play, of_server) in servers {
        accuracy.rounds += play.rounds().len() as u64;
        for round in play.rounds() {
            let Some(list) = list_of(round, &of_server.lists) else { continue };
            found += 1;
            // The order of players with equal points does not matter.
            let points_of = |player| round.finals.iter().find(|(other, _)| *other == player).map(|(_, points)| points);
            let is_right = |at: usize| match (list.standings.get(at), round.finals.get(at)) {
                (Some((player, _)), Some((_, points))) => points_of(*player) == Some(points),
                (_, expected) => expected.is_none(),
            };
            winner += u64::from(is_right(0));
            sure += u64::from(list.sure);
            unseen_ms += list.unseen_ms_max;
            unseen_within += u64::from(round.ended_ms - list.last_scan_ms <= list.unseen_ms_max.cast_signed());
            sure_winner += u64::from(list.sure && is_right(0));
            three += u64::from((0..3).all(is_right));
        }
        let players = play.truth();
        for (player, truth) in players.iter().enumerate() {
            truth_sums[0] += truth.present_ms as f64;
            truth_sums[1] += truth.points as f64;
            let Some(row) = of_server.rows.get(&player_name(player)) else { continue };
            let [time, connected, points] = &mut estimates;
            time.add(row.time_est_ms as f64, row.time_est_error_ms() as f64, truth.present_ms as f64);
            connected.add(
                row.time_connected_ms() as f64,
                row.time_connected_error_ms() as f64,
                truth.present_ms as f64,
            );
            points.add(row.points_est(), row.points_est_error(), truth.points as f64);
        }
        for row in of_server.rows.values() {
            row_sums[0] += row.time_ms() as f64;
            row_sums[1] += row.points as f64;
            row_sums[2] += row.time_est_ms as f64;
            row_sums[3] += row.points_est();
        }
        if let Some((players, of_server)) = correlate(play.rounds(), &players, &of_server.rows, rules) {
            weight += players;
            correlations.iter_mut().zip(of_server).for_each(|(sum, value)| *sum += players * value);
        }
    }
    let percent = |part: u64| 100.0 * part as f64 / accuracy.rounds.max(1) as f64;
    [accuracy.found, accuracy.winner, accuracy.first_three] = [found, winner, three].map(percent);
    let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    [accuracy.sure, accuracy.sure_winner] = [share(sure, found), share(sure_winner, sure)];
    accuracy.unseen_s = unseen_ms as f64 / 1_000.0 / found.max(1) as f64;
    accuracy.unseen_within = share(unseen_within, found);
    [accuracy.time_est_within, accuracy.time_connected_within, accuracy.points_est_within] =
        estimates.each_ref().map(|estimates| share(estimates.within, estimates.rows));
    [accuracy.time_est_median, accuracy.time_connected_median, accuracy.points_est_median] =
        estimates.map(Estimates::median_error);
    let error = |value: f64, truth: f64| 100.0 * (value / truth - 1.0);
    accuracy.time_error = error(row_sums[0], truth_sums[0]);
    accuracy.points_error = error(row_sums[1], truth_sums[1]);
    accuracy.time_est_error = error(row_sums[2], truth_sums[0]);
    accuracy.points_est_error = error(row_sums[3], truth_sums[1]);
    let [clq1, clq2, elo, points, time] = correlations.map(|sum| sum / weight);
    Accuracy { clq1, clq2, elo, points, time, ..accuracy }
}

/// Estimates of one kind, compared with the truth.
#[derive(Default)]
struct Estimates {
    rows: u64,
    /// Rows whose true value is within the interval.
    within: u64,
    /// Errors as shares of the true value, where it is not 0.
    errors: Vec<f64>,
}

impl Estimates {
    fn add(&mut self, estimate: f64, error: f64, truth: f64) {
        self.rows += 1;
        self.within += u64::from((estimate - truth).abs() <= error);
        if truth > 0.0 {
            self.errors.push((estimate / truth - 1.0).abs());
        }
    }

    /// Percent.
    fn median_error(mut self) -> f64 {
        self.errors.sort_unstable_by(f64::total_cmp);
        self.errors.get(self.errors.len() / 2).map_or(0.0, |error| 100.0 * error)
    }
}

/// The rated list whose last scan was in the round.
fn list_of<'l>(round: &Round, lists: &'l [RatedList]) -> Option<&'l RatedList> {
    let at = lists.partition_point(|list| list.last_scan_ms < round.next_ms);
    lists[..at].last().filter(|list| list.last_scan_ms >= round.began_ms)
}

#[derive(Clone, Default)]
struct Rated {
    elo: f64,
    rounds: u32,
    games: Vec<u64>,
}

/// Correlations of CLQ1, CLQ2, ELO, points and time on one server, and the number of players. `None`: too few.
fn correlate(
    rounds: &[Round],
    players: &[PlayerTruth],
    rows: &HashMap<String, PlayerRow>,
    rules: &Rules,
) -> Option<(f64, [f64; 5])> {
    let mut rated = vec![Rated { elo: elo::ELO_START, ..Rated::default() }; players.len()];
    for Round { finals, .. } in rounds {
        let points: Vec<i64> = finals.iter().map(|(_, points)| *points).collect();
        let before: Vec<f64> = finals.iter().map(|(player, _)| rated[*player].elo).collect();
        let after = elo::new_ratings(&points, &before, rules.elo);
        let games = clq2::game_points(&points, rules.clq2_quarter);
        for (((player, _), elo), game) in finals.iter().zip(after).zip(games) {
            let rated = &mut rated[*player];
            (rated.elo, rated.rounds) = (elo, rated.rounds + 1);
            rated.games.push(game);
        }
    }
    let compared: Vec<usize> = (0..players.len()).filter(|&player| rated[player].rounds >= ROUNDS_MIN).collect();
    if compared.len() < PLAYERS_MIN {
        return None;
    }
    let best = |mut scores: Vec<u64>| {
        scores.sort_unstable_by(|a, b| b.cmp(a));
        scores.iter().take(BEST).sum::<u64>() as f64
    };
    let truth = |player: usize| {
        let (truth, rated) = (&players[player], &rated[player]);
        let segments = truth.segments.iter().map(|&points| points as u64).collect();
        [best(segments), best(rated.games.clone()), rated.elo, truth.points as f64, truth.present_ms as f64]
    };
    let row = |player: usize| match rows.get(&player_name(player)) {
        Some(row) => [row.clq1() as f64, row.clq2() as f64, row.elo, row.points as f64, row.time_ms() as f64],
        None => [0.0, 0.0, elo::ELO_START, 0.0, 0.0],
    };
    let of = |score: &dyn Fn(usize) -> [f64; 5]| compared.iter().map(|&player| score(player)).collect::<Vec<_>>();
    let (truths, rows) = (of(&truth), of(&row));
    let column = |scores: &[[f64; 5]], at: usize| scores.iter().map(|scores| scores[at]).collect::<Vec<f64>>();
    Some((compared.len() as f64, [0, 1, 2, 3, 4].map(|at| spearman(&column(&truths, at), &column(&rows, at)))))
}

/// Spearman's rank correlation; 1 if all values of a list are equal.
fn spearman(a: &[f64], b: &[f64]) -> f64 {
    rank_correlation(&ranks(a), &ranks(b)).unwrap_or(1.0)
}

/// Equal values share their mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        equal.iter().for_each(|&at| ranks[at] = first as f64 + (equal.len() as f64 - 1.0) / 2.0);
        first += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::Scenario;

    #[test]
    fn equal_values_share_their_mean_rank() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 0.0]), [2.5, 1.0, 2.5, 0.0]);
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0]), 1.0);
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), -1.0);
        assert!((spearman(&[1.0, 2.0, 3.0, 4.0], &[1.0, 3.0, 2.0, 4.0]) - 0.8).abs() < 1e-12);
    }

    /// What a scanner that misses nothing would find.
    #[test]
    fn truth_compared_with_itself_is_exact() {
        let mut play = Play::new(Scenario::STANDARD, 1, 0, 0);
        play.advance(2 * 86_400_000);
        let rules = Rules::default();
        let mut rows: HashMap<String, PlayerRow> = HashMap::new();
        for (player, truth) in play.truth().iter().enumerate().filter(|(_, truth)| truth.present_ms > 0) {
            let mut row =
                PlayerRow { measured_ms: truth.present_ms as u64, points: truth.points, ..PlayerRow::new(0, 0.0) };
            row.time_est_ms = row.measured_ms;
            truth.segments.iter().for_each(|&points| row.clq1_segments.insert(points as u64 * 1_000, 0));
            row.elo = elo::ELO_START;
            rows.insert(player_name(player), row);
        }
        for round in play.rounds() {
            let points: Vec<i64> = round.finals.iter().map(|(_, points)| *points).collect();
            let name = |at: usize| player_name(round.finals[at].0);
            let before: Vec<f64> = (0..points.len()).map(|at| rows[&name(at)].elo).collect();
            let after = elo::new_ratings(&points, &before, rules.elo);
            for (at, game) in clq2::game_points(&points, rules.clq2_quarter).into_iter().enumerate() {
                let row = rows.get_mut(&name(at)).unwrap();
                row.elo = after[at];
                row.clq2_games.insert(game, 0);
            }
        }
        let list = |round: &Round| RatedList {
            last_scan_ms: round.ended_ms,
            sure: true,
            unseen_ms_max: 0,
            standings: round.finals.clone(),
        };
        let lists = play.rounds().iter().map(list).collect();
        let exact = compare(&[(&play, Found { lists, rows })], 1.0, &rules);
        assert!(exact.rounds > 50, "{exact:?}");
        assert_eq!([exact.found, exact.winner, exact.first_three], [100.0; 3]);
        assert_eq!([exact.time_error, exact.points_error, exact.time_est_error, exact.points_est_error], [0.0; 4]);
        for correlation in [exact.clq1, exact.clq2, exact.elo, exact.points, exact.time] {
            assert!(correlation > 0.999_999, "{exact:?}");
        }
        // Without the last list of a round, and with another winner in one.
        let mut lists: Vec<RatedList> = play.rounds().iter().map(list).collect();
        lists.pop();
        lists[0].standings.rotate_left(1);
        let less = compare(&[(&play, Found { lists, rows: HashMap::new() })], 1.0, &rules);
        let one = 100.0 / exact.rounds as f64;
        assert!(
            (less.found - (100.0 - one)).abs() < 1e-9 && (less.winner - (100.0 - 2.0 * one)).abs() < 1e-9,
            "{less:?}"
        );
        assert_eq!(less.points_error, -100.0);
    }
}
