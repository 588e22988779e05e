//! How close the rankings come to what happened: the last published figures of `clqd truth`.

use maud::html;
use serde::Deserialize;

use super::layout::{Page, PageResult};

/// Printed by `clqd truth --json --budget 0,1,1.15,2,3 --seed 1 --seed 2 --seed 3`.
const PUBLISHED: &str = include_str!("accuracy.jsonl");

/// A line of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
struct Accuracy {
    budget: f64,
    scans: f64,
    time_error: f64,
    points_error: f64,
    found: f64,
    winner: f64,
    first_three: f64,
    sure: f64,
    sure_winner: f64,
    clq1: f64,
    clq2: f64,
    elo: f64,
    points: f64,
    time: f64,
}

impl Accuracy {
    /// The means over the simulated worlds.
    fn mean(rows: &[Accuracy]) -> Accuracy {
        let mean = |value: fn(&Accuracy) -> f64| rows.iter().map(value).sum::<f64>() / rows.len() as f64;
        Accuracy {
            budget: mean(|row| row.budget),
            scans: mean(|row| row.scans),
            time_error: mean(|row| row.time_error),
            points_error: mean(|row| row.points_error),
            found: mean(|row| row.found),
            winner: mean(|row| row.winner),
            first_three: mean(|row| row.first_three),
            sure: mean(|row| row.sure),
            sure_winner: mean(|row| row.sure_winner),
            clq1: mean(|row| row.clq1),
            clq2: mean(|row| row.clq2),
            elo: mean(|row| row.elo),
            points: mean(|row| row.points),
            time: mean(|row| row.time),
        }
    }
}

/// The published rows, least scans first.
fn published() -> Vec<Accuracy> {
    let read = |line| serde_json::from_str(line).expect("a test reads the published lines");
    let mut rows: Vec<Accuracy> = PUBLISHED.lines().map(read).collect();
    rows.sort_by(|a, b| a.budget.total_cmp(&b.budget));
    rows.chunk_by(|a, b| a.budget == b.budget).map(Accuracy::mean).collect()
}

pub(super) async fn page() -> PageResult {
    let rows = published();
    let scans = |row: &Accuracy| format!("{}{:.2}", if row.budget == 0.0 { "* " } else { "" }, row.scans);
    let body = html! {
        h1 { "How close the rankings come to what happened" }
        p {
            "Nobody tells this site what happened on a server. It only sees lists of players, one every two minutes or so. How much that "
            "misses can be measured where everything is known: in a simulation. It has a week of 48 servers and some 45,000 rounds of 5 to 40 "
            "minutes, with players who come and leave as they like. The program that runs this site scans them, and its rankings are "
            "compared with the true ones."
        }
        h2 { "Rounds and sums" }
        div .scroll { table {
            thead { tr {
                @for head in ["scans", "time", "points", "found", "winner", "top 3", "sure", "right"] { th .n { (head) } }
            } }
            tbody { @for row in &rows { tr {
                td .n { (scans(row)) }
                @for error in [row.time_error, row.points_error] { td .n { (format!("{error:+.1} %")) } }
                @for share in [row.found, row.winner, row.first_three, row.sure, row.sure_winner] { td .n { (format!("{share:.1} %")) } }
            } } }
        } }
        h2 { "Order of players" }
        div .scroll { table {
            thead { tr { @for head in ["scans", "CLQ1", "CLQ2", "ELO", "points", "time"] { th .n { (head) } } } }
            tbody { @for row in &rows { tr {
                td .n { (scans(row)) }
                @for rank in [row.clq1, row.clq2, row.elo, row.points, row.time] { td .n { (format!("{rank:.3}")) } }
            } } }
        } }
        p .soft { "Scans: of each server in two minutes. * At fixed times; all others are made when they tell most, such as shortly before the end of a round. 1.13 is what the program makes unless its operator says otherwise." }
        dl {
            dt { "time, points" }
            dd { "The sum over all players, compared with what they truly played and scored." }
            dt { "found, winner, top 3" }
            dd { "How many of the rounds were found, with the right winner, with the right first three. A round is not found if it was too short, or nobody stayed." }
            dt { "sure, right" }
            dd { "How many of the found rounds are marked as sure, because a scan saw their end, and how many of these have the right winner." }
            dt { "order of players" }
            dd { "How well the order of the players on a server agrees with the true order: 1 is the same order, 0 is chance." }
        }
        h2 { "What a ranking can know, and what not" }
        ul {
            li { "Who played, and for how long, is known as exactly as the time between two scans." }
            li { "Points between the last scan of a round and its end are not seen. So sums of points are too low." }
            li { "Estimates of time and points include what no scan saw. Each has an error: in four cases of five the true value is not further away." }
            li { "The order of players is closer to the truth than the sums." }
            li { "The simulated players are honest, and each has a name of their own. Real ones share names and change them." }
        }
        p { "How it is measured, and other kinds of rounds: " code { "clqd truth --scenario all" } ". " a href="/about" { "How it works" } "." }
    };
    Ok(Page::new("Accuracy", body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_figures_are_read_and_rise_with_the_scans() {
        let rows = published();
        assert_eq!(rows.iter().map(|row| row.budget).collect::<Vec<_>>(), [0.0, 1.0, 1.15, 2.0, 3.0]);
        assert!(rows.is_sorted_by(|a, b| a.scans < b.scans && a.winner < b.winner && a.elo < b.elo), "{rows:?}");
    }
}
