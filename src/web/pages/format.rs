//! Numbers, scores and times as text.

use chrono::DateTime;
use maud::{Markup, html};

use crate::model::Ranking;
use crate::model::calendar::{HOUR_MS, MINUTE_MS};

/// `1,204`.
pub(in crate::web) fn count(number: impl Into<u64>) -> String {
    signed(i64::try_from(number.into()).unwrap_or(i64::MAX))
}

/// `-1,204`.
pub(in crate::web) fn signed(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A score in the unit of its ranking.
pub(super) fn score(ranking: Ranking, score: f64) -> String {
    match ranking {
        Ranking::Clq1 => format!("{score:.3}"),
        Ranking::Clq2 | Ranking::Points => signed(score as i64),
        Ranking::Elo => format!("{score:.0}"),
        Ranking::Time => duration((score * 1_000.0) as i64),
    }
}

/// The name of a ranking, and its unit.
pub(in crate::web) fn ranking(ranking: Ranking) -> (&'static str, &'static str) {
    match ranking {
        Ranking::Clq1 => ("CLQ1", "points per second"),
        Ranking::Clq2 => ("CLQ2", "points for winning"),
        Ranking::Elo => ("ELO", "rating"),
        Ranking::Points => ("Points", "points"),
        Ranking::Time => ("Time", "hours and minutes"),
    }
}

/// What a ranking rewards, and what one must do to be listed.
pub(super) fn ranking_meaning(ranking: Ranking) -> (&'static str, &'static str) {
    match ranking {
        Ranking::Clq1 => (
            "Rewards collecting points fast: the ten best stretches of 12 minutes count.",
            "To be listed, play 12 minutes in a row and score.",
        ),
        Ranking::Clq2 => (
            "Rewards being at the top when a round ends: the more players are below, the more points; the ten best rounds are added.",
            "To be listed, be among the best at the end of a round of two players or more.",
        ),
        Ranking::Elo => (
            "Rewards beating strong players: at the end of a round everyone takes rating from those below, or loses it.",
            "To be listed, play a round with others to its end.",
        ),
        Ranking::Points => ("Rewards collecting many points: all count.", "To be listed, be seen playing."),
        Ranking::Time => {
            ("Rewards staying: all time counts, measured between two scans.", "To be listed, be seen playing.")
        }
    }
}

/// `23 to 29 Nov 2026`: the first and the last day of a period between two midnights. Days begin in the time zone of the
/// site: 13 hours after a midnight in a zone from UTC-10 to UTC+13 the date is the same in UTC.
pub(super) fn days(start_ms: i64, end_ms: i64) -> String {
    let (first, last) = (utc(start_ms + 13 * HOUR_MS, "%-d %b"), utc(end_ms - 11 * HOUR_MS, "%-d %b %Y"));
    let month = |text: &str| text.split(' ').nth(1).map(str::to_owned);
    match first.split_once(' ') {
        _ if last.starts_with(&format!("{first} ")) => last,
        Some((day, _)) if month(&first) == month(&last) => format!("{day} to {last}"),
        _ => format!("{first} to {last}"),
    }
}

/// `3 h 05 min`.
pub(in crate::web) fn duration(ms: i64) -> String {
    let minutes = ms.max(0) / MINUTE_MS;
    match minutes {
        0..60 => format!("{minutes} min"),
        60..6_000 => format!("{} h {:02} min", minutes / 60, minutes % 60),
        _ => format!("{} h", count((minutes / 60) as u64)),
    }
}

/// `2026-11-23 14:05`.
pub(super) fn time(at_ms: i64) -> Markup {
    short_time(at_ms, "%Y-%m-%d %H:%M")
}

/// A part of a time; the whole time is shown by a pointer.
pub(super) fn short_time(at_ms: i64, format: &str) -> Markup {
    html! {
        time datetime=(utc(at_ms, "%Y-%m-%dT%H:%M:%SZ")) title=(utc(at_ms, "%Y-%m-%d %H:%M:%S UTC")) { (utc(at_ms, format)) }
    }
}

/// `2026-11-23`.
pub(super) fn day(at_ms: i64) -> Markup {
    html! { time datetime=(utc(at_ms, "%Y-%m-%d")) { (utc(at_ms, "%Y-%m-%d")) } }
}

/// A time in UTC; empty if it is beyond the calendar.
pub(in crate::web) fn utc(at_ms: i64, format: &str) -> String {
    DateTime::from_timestamp_millis(at_ms).map_or(String::new(), |time| time.format(format).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::calendar::HOUR_MS;

    #[test]
    fn days_are_those_of_the_zone() {
        let week = |offset_h: i64| {
            // Monday, 2026-11-23.
            let start_ms = 1_795_392_000_000 - offset_h * HOUR_MS;
            days(start_ms, start_ms + 7 * 24 * HOUR_MS)
        };
        for offset_h in -10..=13 {
            assert_eq!(week(offset_h), "23 to 29 Nov 2026", "UTC{offset_h:+}");
        }
        let day = 1_795_392_000_000;
        assert_eq!(days(day, day + 24 * HOUR_MS), "23 Nov 2026");
        assert_eq!(days(day, day + 10 * 24 * HOUR_MS), "23 Nov to 2 Dec 2026");
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, want) in [(0, "0"), (999, "999"), (1_000, "1,000"), (-1_234_567, "-1,234,567")] {
            assert_eq!(signed(number), want);
        }
        assert_eq!(count(u64::MAX), "9,223,372,036,854,775,807");
    }

    #[test]
    fn scores_have_the_unit_of_their_ranking() {
        assert_eq!(score(Ranking::Clq1, 0.0254), "0.025");
        assert_eq!(score(Ranking::Elo, 1_012.6), "1013");
        assert_eq!(score(Ranking::Time, 11_100.0), "3 h 05 min");
        assert_eq!(score(Ranking::Points, -12_000.0), "-12,000");
    }

    #[test]
    fn times_and_durations_are_text() {
        assert_eq!(duration(59_000), "0 min");
        assert_eq!(duration(500 * HOUR_MS), "500 h");
        let text = time(1_763_676_000_000).into_string();
        assert_eq!(
            text,
            r#"<time datetime="2025-11-20T22:00:00Z" title="2025-11-20 22:00:00 UTC">2025-11-20 22:00</time>"#
        );
        assert_eq!(utc(i64::MAX, "%Y"), "");
    }
}
