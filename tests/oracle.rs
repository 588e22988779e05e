//! Tests of the oracle itself: the example of another implementation, and the
//! worked examples of RULES. Not tests of clqd, which has no part in them.

#[path = "oracle/mod.rs"]
mod oracle;

use oracle::{Oracle, Quarter, Settings};
use serde_json::Value;

const LOG: &str = include_str!("fixtures/scan-log.jsonl");
const EXPORT: &str = include_str!("fixtures/export.jsonl");

#[test]
fn example_of_another_implementation() {
    let oracle = Oracle::new(LOG, Settings::default());
    let got: Vec<String> = oracle.weeks().into_iter().flat_map(|week| oracle.export(week)).collect();
    let want: Vec<&str> = EXPORT.lines().collect();
    assert_eq!(got.len(), want.len());
    for (got_line, want_line) in got.iter().zip(want) {
        let got: Value = serde_json::from_str(got_line).unwrap();
        let want: Value = serde_json::from_str(want_line).unwrap();
        assert!(same(&got, &want), "\n got {got_line}\nwant {want_line}");
        let order = |line: &str| -> Vec<usize> {
            ["week", "server", "game", "player", "measured_ms", "starts", "time_ms", "points", "clq1", "clq1_segments"]
                .map(|field| line.find(&format!("\"{field}\": ")).unwrap())
                .to_vec()
        };
        assert!(order(got_line).is_sorted() && order(want_line).is_sorted());
    }
}

/// Equal but for the last digits of floats, and one thousandth in a segment.
fn same(got: &Value, want: &Value) -> bool {
    let segments = |v: &Value| -> Vec<u64> {
        v["clq1_segments"].as_array().unwrap().iter().map(|s| s.as_u64().unwrap()).collect()
    };
    let (got_segments, want_segments) = (segments(got), segments(want));
    let exact =
        ["week", "server", "game", "player", "measured_ms", "starts", "time_ms", "points", "clq2", "clq2_games"]
            .into_iter()
            .chain(["elo_rounds", "pos"]);
    exact.into_iter().all(|field| got[field] == want[field] && !got[field].is_null())
        && got_segments.len() == want_segments.len()
        && got_segments.iter().zip(&want_segments).all(|(a, b)| a.abs_diff(*b) <= 1)
        && got["clq1"] == got_segments.iter().sum::<u64>()
        && (got["elo"].as_f64().unwrap() - want["elo"].as_f64().unwrap()).abs() < 1e-9
}

#[test]
fn clq2_example_of_the_rules() {
    let points = [120, 100, 90, 89, 70, 40, 30, 20, 12, 3, 1, 0];
    assert_eq!(oracle::clq2_scores(&points, Quarter::Whole), [8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0]);
    assert_eq!(oracle::clq2_scores(&points, Quarter::Exact), [7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0, 0]);
    assert_eq!(oracle::clq2_scores(&[9, 9, 5], Quarter::Whole), [3, 3, 1], "equal points share the best position");
    assert_eq!(oracle::clq2_scores(&[0, -3], Quarter::Whole), [0, 0]);
}

#[test]
fn elo_example_of_the_rules() {
    let points: Vec<i64> = (0..10).rev().collect();
    let after = oracle::elo_after(&points, &[1000.0; 10], &Settings::default());
    assert_eq!(after[9], 887.5);
    assert_eq!(after.iter().sum::<f64>(), 10_000.0);
    let after = oracle::elo_after(&[3, 3], &[1000.0; 2], &Settings::default());
    assert_eq!(after, [1000.0; 2]);
}

#[test]
fn log_code() {
    for (bits, error_max) in [(8, 0.023), (13, 0.0007)] {
        let top = ((1_u32 << bits) - 1) as u16;
        assert_eq!(oracle::encode(bits, None), top);
        assert_eq!(oracle::encode(bits, Some(0.0)), 0);
        assert_eq!(oracle::encode(bits, Some(0.001)), 1);
        assert_eq!(oracle::encode(bits, Some(1e9)), top - 1);
        for players in [0.05, 0.1, 1.0, 3.3, 16.0, 64.0, 1_000.0, 4_096.0] {
            let read = oracle::decode(bits, oracle::encode(bits, Some(players))).unwrap();
            assert!((read / players - 1.0).abs() < error_max, "{players} becomes {read} with {bits} bits");
        }
    }
}
