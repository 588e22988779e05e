//! How close the rankings come to what happened: the last published figures of `clqd truth`.

use std::collections::BTreeMap;

use maud::html;
use serde_json::Value;

use super::layout::{Page, PageResult};
use crate::web::texts::{decimal, rich_text, text};

/// Printed by `clqd truth --json --budget 0,1,1.15,2,3 --seed 1 --seed 2 --seed 3`.
const PUBLISHED: &str = include_str!("accuracy.jsonl");

/// The numbers of a line of it, or their means over the simulated worlds.
type Accuracy = BTreeMap<String, f64>;

fn mean(rows: &[Accuracy]) -> Accuracy {
    let mean = |key: &String| rows.iter().map(|row| row[key]).sum::<f64>() / rows.len() as f64;
    rows[0].keys().map(|key| (key.clone(), mean(key))).collect()
}

/// The published rows, least scans first.
fn published() -> Vec<Accuracy> {
    let read = |line| -> Accuracy {
        let fields: BTreeMap<String, Value> = serde_json::from_str(line).expect("a test reads the published lines");
        fields.into_iter().filter_map(|(key, value)| Some((key, value.as_f64()?))).collect()
    };
    let mut rows: Vec<Accuracy> = PUBLISHED.lines().map(read).collect();
    rows.sort_by(|a, b| a["budget"].total_cmp(&b["budget"]));
    rows.chunk_by(|a, b| a["budget"] == b["budget"]).map(mean).collect()
}

pub(super) async fn page() -> PageResult {
    let rows = published();
    let scans = |row: &Accuracy| {
        let note = if row["budget"] == 0.0 { "* " } else { "" };
        decimal(format!("{note}{:.2}", row["scans"]))
    };
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
                @for error in ["time_error", "points_error"] { td .n { (percent(format!("{:+.1}", row[error]))) } }
                @for share in ["found", "winner", "first_three", "sure", "sure_winner"] {
                    td .n { (percent(format!("{:.1}", row[share]))) }
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
                @for rank in ["clq1", "clq2", "elo", "points", "time"] {
                    td .n { (decimal(format!("{:.3}", row[rank]))) }
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
        assert_eq!(rows.iter().map(|row| row["budget"]).collect::<Vec<_>>(), [0.0, 1.0, 1.15, 2.0, 3.0]);
        let rises = |key: &str| rows.is_sorted_by(|a, b| a[key] < b[key]);
        assert!(rises("scans") && rises("winner") && rises("elo"), "{rows:?}");
    }
}
