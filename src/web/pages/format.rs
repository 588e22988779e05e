//! Numbers, scores and times as text.

use std::borrow::Cow;

use chrono::{DateTime, Datelike, Weekday};
use maud::{Markup, html};

use crate::model::Ranking;
use crate::model::calendar::{Calendar, DAY_MS, HOUR_MS, MINUTE_MS, parse_week_label};
use crate::rank::elo;
use crate::web::texts::{decimal, grouped, text};

/// `1,204`.
pub(in crate::web) fn count(number: impl Into<u64>) -> String {
    grouped(i64::try_from(number.into()).unwrap_or(i64::MAX))
}

/// A score as people read it: CLQ1 in points per minute, others in the unit of the ranking.
pub(super) fn score(ranking: Ranking, score: f64) -> String {
    match ranking {
        Ranking::Clq1 => decimal(format!("{:.2}", score * 60.0)),
        Ranking::Clq2 | Ranking::Points => grouped(score as i64),
        Ranking::Elo => elo::shown(score).to_string(),
        Ranking::Time => duration((score * 1_000.0) as i64),
    }
}

/// The name of a ranking, and its unit.
pub(in crate::web) fn ranking(ranking: Ranking) -> (Cow<'static, str>, Cow<'static, str>) {
    match ranking {
        Ranking::Clq1 => ("CLQ1".into(), text!("points-per-minute")),
        Ranking::Clq2 => ("CLQ2".into(), text!("points-for-winning")),
        Ranking::Elo => ("ELO".into(), text!("rating")),
        Ranking::Points => (text!("points"), text!("points-unit")),
        Ranking::Time => (text!("time-ranking"), text!("hours-and-minutes-unit")),
    }
}

/// What a ranking rewards, and what one must do to be listed.
pub(super) fn ranking_meaning(ranking: Ranking) -> (Cow<'static, str>, Cow<'static, str>) {
    match ranking {
        Ranking::Clq1 => (text!("clq1-rewards"), text!("clq1-listed")),
        Ranking::Clq2 => (text!("clq2-rewards"), text!("clq2-listed")),
        Ranking::Elo => (text!("elo-rewards"), text!("elo-listed")),
        Ranking::Points => (text!("points-rewards"), text!("seen-playing-listed")),
        Ranking::Time => (text!("time-rewards"), text!("seen-playing-listed")),
    }
}

/// Midnight in UTC of the day that begins then in the time zone of the site: 13 hours after a midnight in a zone from UTC-10
/// to UTC+13 the date is the same in UTC.
pub(super) fn day_ms(midnight_ms: i64) -> i64 {
    (midnight_ms + 13 * HOUR_MS).div_euclid(DAY_MS) * DAY_MS
}

/// `23 to 29 Nov 2026`: the first and the last day of a period between two midnights in the time zone of the site.
pub(super) fn days(start_ms: i64, end_ms: i64) -> String {
    let date = |at_ms: i64| DateTime::from_timestamp_millis(at_ms).unwrap_or_default().date_naive();
    let (first, last) = (date(day_ms(start_ms)), date(day_ms(end_ms) - DAY_MS));
    let (day, month, year) = (last.day(), month(last.month()), last.year().to_string());
    let days = match () {
        () if first == last => text!("date", day = day, month = month, year = year),
        () if (first.year(), first.month()) == (last.year(), last.month()) => {
            text!("days-of-month", first = first.day(), day = day, month = month, year = year)
        }
        () => {
            let (first_day, first_month) = (first.day(), self::month(first.month()));
            text!(
                "days-of-months",
                first_day = first_day,
                first_month = first_month,
                day = day,
                month = month,
                year = year
            )
        }
    };
    days.into_owned()
}

/// `23 to 29 Nov 2026`: a week by its label.
pub(super) fn days_of_week(label: &str) -> String {
    let calendar = Calendar::default();
    parse_week_label(label)
        .map_or_else(|_| label.to_owned(), |week| days(calendar.week_start_ms(week), calendar.week_end_ms(week)))
}

/// `9 Nov`: a day in UTC.
pub(super) fn short_day(at_ms: i64) -> String {
    let at = DateTime::from_timestamp_millis(at_ms).unwrap_or_default();
    text!("short-date", day = at.day(), month = month(at.month())).into_owned()
}

/// `23–29 Nov`: a week by its label. Its dates are the same in all time zones.
pub(super) fn short_days(label: &str) -> String {
    let Ok(week) = parse_week_label(label) else { return label.to_owned() };
    let start_ms = Calendar::default().week_start_ms(week);
    let [first, last] =
        [start_ms, start_ms + 6 * DAY_MS].map(|at_ms| DateTime::from_timestamp_millis(at_ms).unwrap_or_default());
    let (day, month) = (last.day(), month(last.month()));
    let days = match first.month() == last.month() {
        true => text!("short-days-of-month", first = first.day(), day = day, month = month),
        false => {
            let (first_day, first_month) = (first.day(), self::month(first.month()));
            text!("short-days-of-months", first_day = first_day, first_month = first_month, day = day, month = month)
        }
    };
    days.into_owned()
}

/// The short name of a month, 1 to 12.
fn month(number: u32) -> Cow<'static, str> {
    match number {
        1 => text!("month-1"),
        2 => text!("month-2"),
        3 => text!("month-3"),
        4 => text!("month-4"),
        5 => text!("month-5"),
        6 => text!("month-6"),
        7 => text!("month-7"),
        8 => text!("month-8"),
        9 => text!("month-9"),
        10 => text!("month-10"),
        11 => text!("month-11"),
        _ => text!("month-12"),
    }
}

/// The short name of the weekday of a time in UTC.
pub(super) fn weekday(at_ms: i64) -> Cow<'static, str> {
    match DateTime::from_timestamp_millis(at_ms).unwrap_or_default().weekday() {
        Weekday::Mon => text!("weekday-1"),
        Weekday::Tue => text!("weekday-2"),
        Weekday::Wed => text!("weekday-3"),
        Weekday::Thu => text!("weekday-4"),
        Weekday::Fri => text!("weekday-5"),
        Weekday::Sat => text!("weekday-6"),
        Weekday::Sun => text!("weekday-7"),
    }
}

/// `3 h 05 min`.
pub(in crate::web) fn duration(ms: i64) -> String {
    let minutes = ms.max(0) / MINUTE_MS;
    let duration = match minutes {
        0..60 => text!("minutes-only", minutes = minutes),
        60..6_000 => text!("hours-and-minutes", hours = minutes / 60, minutes = format!("{:02}", minutes % 60)),
        _ => text!("hours-only", hours = minutes / 60),
    };
    duration.into_owned()
}

/// `2026-11-23 14:05`.
pub(super) fn time(at_ms: i64) -> Markup {
    short_time(at_ms, "%Y-%m-%d %H:%M")
}

/// `9 Nov 14:05`.
pub(super) fn day_and_time(at_ms: i64) -> Markup {
    html! {
        time datetime=(utc(at_ms, "%Y-%m-%dT%H:%MZ")) { (short_day(at_ms)) " " (utc(at_ms, "%H:%M")) }
    }
}

/// A time that scripts show as an age.
pub(super) fn ago(at_ms: i64) -> Markup {
    html! {
        time .ago datetime=(utc(at_ms, "%Y-%m-%dT%H:%MZ")) { (utc(at_ms, "%Y-%m-%d %H:%M")) }
    }
}

/// A part of a time.
pub(super) fn short_time(at_ms: i64, format: &str) -> Markup {
    html! {
        time datetime=(utc(at_ms, "%Y-%m-%dT%H:%MZ")) { (utc(at_ms, format)) }
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
        assert_eq!((short_day(day), days_of_week("2026-W48")), ("23 Nov".to_owned(), "23 to 29 Nov 2026".to_owned()));
        let short = ["2026-W48", "2026-W49", "day"].map(short_days);
        assert_eq!(short, ["23–29 Nov", "30 Nov – 6 Dec", "day"]);
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(grouped(-1_234_567), "-1,234,567");
        assert_eq!(count(u64::MAX), "9,223,372,036,854,775,807");
    }

    #[test]
    fn scores_have_the_unit_of_their_ranking() {
        assert_eq!(score(Ranking::Clq1, 0.0254), "1.52");
        assert_eq!(score(Ranking::Elo, 1_012.5), "1013");
        assert_eq!(score(Ranking::Time, 11_100.0), "3 h 05 min");
        assert_eq!(score(Ranking::Points, -12_000.0), "-12,000");
    }

    #[test]
    fn times_and_durations_are_text() {
        assert_eq!(duration(59_000), "0 min");
        assert_eq!(duration(500 * HOUR_MS), "500 h");
        let text = time(1_763_676_000_000).into_string();
        assert_eq!(text, r#"<time datetime="2025-11-20T22:00Z">2025-11-20 22:00</time>"#);
        assert_eq!(utc(i64::MAX, "%Y"), "");
    }
}
