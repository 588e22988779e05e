//! How close the rankings come to what happened: the last published figures of `clqd truth`.

use maud::html;
use serde::Deserialize;

use super::layout::{Page, PageResult};
use crate::web::texts::{decimal, rich_text, text};

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
    let scans = |row: &Accuracy| decimal(format!("{}{:.2}", if row.budget == 0.0 { "* " } else { "" }, row.scans));
    let percent = |number: String| text!("percent", number = decimal(number));
    let command = html! { code { "clqd truth --scenario all" } };
    let about = html! { a href="/about" { (text!("about-title")) } };
    let body = html! {
        h1 { (text!("accuracy-heading")) }
        p { (text!("accuracy-simulation")) }
        h2 { (text!("accuracy-rounds")) }
        div .scroll { table {
            thead { tr {
                @for head in [
                    text!("accuracy-scans"),
                    text!("accuracy-time"),
                    text!("accuracy-points"),
                    text!("accuracy-found"),
                    text!("accuracy-winner"),
                    text!("accuracy-top-3"),
                    text!("accuracy-sure"),
                    text!("accuracy-right"),
                ] { th .n { (head) } }
            } }
            tbody { @for row in &rows { tr {
                td .n { (scans(row)) }
                @for error in [row.time_error, row.points_error] { td .n { (percent(format!("{error:+.1}"))) } }
                @for share in [row.found, row.winner, row.first_three, row.sure, row.sure_winner] {
                    td .n { (percent(format!("{share:.1}"))) }
                }
            } } }
        } }
        h2 { (text!("accuracy-order")) }
        div .scroll { table {
            thead { tr {
                @for head in [
                    text!("accuracy-scans"),
                    "CLQ1".into(),
                    "CLQ2".into(),
                    "ELO".into(),
                    text!("accuracy-points"),
                    text!("accuracy-time"),
                ] { th .n { (head) } }
            } }
            tbody { @for row in &rows { tr {
                td .n { (scans(row)) }
                @for rank in [row.clq1, row.clq2, row.elo, row.points, row.time] {
                    td .n { (decimal(format!("{rank:.3}"))) }
                }
            } } }
        } }
        p .soft { (text!("accuracy-scans-meaning")) }
        dl {
            dt { (text!("accuracy-time-points")) }
            dd { (text!("accuracy-time-points-meaning")) }
            dt { (text!("accuracy-found-winner-top-3")) }
            dd { (text!("accuracy-found-winner-top-3-meaning")) }
            dt { (text!("accuracy-sure-right")) }
            dd { (text!("accuracy-sure-right-meaning")) }
            dt { (text!("accuracy-order-of-players")) }
            dd { (text!("accuracy-order-of-players-meaning")) }
        }
        h2 { (text!("accuracy-known")) }
        ul {
            li { (text!("accuracy-who-played")) }
            li { (text!("accuracy-unseen")) }
            li { (text!("accuracy-estimates")) }
            li { (text!("accuracy-closer")) }
            li { (text!("accuracy-honest")) }
        }
        p { (rich_text!("accuracy-measured", command = command, about = about)) }
    };
    Ok(Page::new(text!("accuracy-title"), body))
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
