//! Formats and parses the labels of windows and the names of window types.
//!
//! | type | type name | example of a label |
//! |---|---|---|
//! | hour of UTC | `hour` | `2026-11-21T14Z` |
//! | local day | `day` | `2026-11-21` |
//! | local week | `week` | `2026-W47` |
//! | local month | `month` | `2026-11` |
//! | all time | `all-time` | `all-time` |
//! | custom type | its number, such as `12` | `12#3`: index 3, the fourth window of type 12 |

use chrono::{Datelike, NaiveDate};

use super::{date_of_day, day_of_date};
use crate::model::{WeekKey, WindowKey, WindowType, calendar};
use crate::nearest::nearest;

const NAMES: [(WindowType, &str); 5] = [
    (WindowType::HOUR, "hour"),
    (WindowType::DAY, "day"),
    (WindowType::WEEK, "week"),
    (WindowType::MONTH, "month"),
    (WindowType::ALL_TIME, "all-time"),
];

/// The name of a window type, such as `day` or `12`.
pub fn type_name(kind: WindowType) -> String {
    let name = NAMES.iter().find(|(known, _)| *known == kind);
    name.map_or_else(|| kind.0.to_string(), |(_, name)| (*name).to_owned())
}

/// The window type with a name. The type of a number need not be configured.
pub fn parse_type(text: &str) -> Result<WindowType, UnknownType> {
    if let Some((kind, _)) = NAMES.iter().find(|(_, name)| *name == text) {
        return Ok(*kind);
    }
    if let Some(number) = number(text) {
        let kind = u16::try_from(number).ok().map(WindowType).filter(|kind| kind.is_custom());
        return kind.ok_or_else(|| UnknownType { text: shown(text), suggestion: numbers() });
    }
    let suggestion = match nearest(text, NAMES.map(|(_, name)| name)) {
        Some(name) => format!("did you mean {name:?}?"),
        None => format!("expected {}, or a custom type, {}", NAMES.map(|(_, name)| name).join(", "), range()),
    };
    Err(UnknownType { text: shown(text), suggestion })
}

/// The numbers of custom types, for error messages.
fn range() -> String {
    format!("{} to {}", WindowType::CUSTOM_MIN, u16::MAX)
}

fn numbers() -> String {
    format!("custom types are {}", range())
}

/// The label of a window, such as `2026-11-21`. A key of a custom type, of an unknown type or
/// beyond the last calendar date is labelled `TYPE#INDEX`.
pub fn label(key: WindowKey) -> String {
    calendar_label(key).unwrap_or_else(|| format!("{}#{}", key.kind.0, key.index))
}

/// The label of a window of a built-in type.
fn calendar_label(key: WindowKey) -> Option<String> {
    let index = i64::from(key.index);
    let ymd = |date: NaiveDate| format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day());
    match key.kind {
        WindowType::ALL_TIME => (index == 0).then(|| "all-time".to_owned()),
        // Hours are numbered from 1970-01-01, days from 1969-12-29, three days earlier.
        WindowType::HOUR => Some(format!("{}T{:02}Z", ymd(date_of_day(index / 24 + 3)?), index % 24)),
        WindowType::DAY => date_of_day(index).map(ymd),
        WindowType::WEEK => date_of_day(index * 7).map(|_| calendar::week_label(WeekKey(key.index))),
        WindowType::MONTH => (index / 12 <= 9_999).then(|| format!("{:04}-{:02}", index / 12, index % 12 + 1)),
        _ => None,
    }
}

/// Whether a string has the form of a label or of a type name. The window or type need not exist.
pub fn has_form(text: &str) -> bool {
    let form: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let is_number = |text: &str, digits_max: usize| {
        (1..=digits_max).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
    };
    NAMES.iter().any(|(_, name)| *name == text)
        || form == "0000-W00"
        // A week without its W is no month.
        || matches!(&form[..], "0000-00-00T00Z" | "0000-00-00" | "0000-00") && ("01"..="12").contains(&&text[5..7])
        || is_number(text, 5)
        || text.split_once('#').is_some_and(|(kind, index)| is_number(kind, 5) && is_number(index, 10))
}

/// The window with a label. Does not check that its type is configured:
/// [`super::WindowTypes::span`] does.
pub fn parse_label(text: &str) -> Result<WindowKey, BadLabel> {
    let parsed = if let Some((kind, index)) = text.split_once('#') {
        custom(kind, index)
    } else if text == "all-time" {
        Some(WindowKey::ALL_TIME)
    } else if text.contains("-W") {
        calendar::parse_week_label(text).ok().map(WindowKey::from)
    } else if let Some((day, hour)) = text.strip_suffix('Z').and_then(|text| text.split_once('T')) {
        hour_of(day, hour)
    } else {
        match text.len() {
            10 => date(text).and_then(|date| key(WindowType::DAY, day_of_date(date))),
            // The first valid month is 1969-12: west of Greenwich, the Unix epoch is in that
            // month of local time.
            7 => date(&format!("{text}-01"))
                .map(|date| i64::from(date.year()) * 12 + i64::from(date.month0()))
                .filter(|&month| month >= 1969 * 12 + 11)
                .and_then(|month| key(WindowType::MONTH, month)),
            _ => None,
        }
    };
    // Only the canonical form is valid: "2026-1-05" and "12#03" are rejected.
    parsed.filter(|&key| label(key) == text).ok_or_else(|| BadLabel(shown(text)))
}

/// The week that a text without the form of a label means, such as `W48` or `2026-w48`. Without a year it is the last such
/// week that has begun.
pub fn similar_week(text: &str, current: WeekKey) -> Option<String> {
    let text = text.to_ascii_uppercase();
    let (year, week) = match text.split_once('-') {
        Some((year, week)) => (Some(number(year)?), week),
        None => (None, &*text),
    };
    let week = number(week.strip_prefix('W').unwrap_or(week))?;
    let this_year = number(calendar::week_label(current).get(..4)?)?;
    let labels = match year {
        Some(year) => vec![year],
        None => vec![this_year, this_year.checked_sub(1)?],
    };
    let keys = labels.into_iter().filter_map(|year| {
        let label = format!("{year:04}-W{week:02}");
        let key = calendar::parse_week_label(&label).ok()?;
        (year != this_year || key.0 <= current.0).then_some(label)
    });
    keys.into_iter().next()
}

fn custom(kind: &str, index: &str) -> Option<WindowKey> {
    let kind = u16::try_from(number(kind)?).ok().map(WindowType).filter(|kind| kind.is_custom())?;
    Some(WindowKey { kind, index: number(index)? })
}

fn hour_of(day: &str, hour: &str) -> Option<WindowKey> {
    let hour = i64::from(number(hour)?);
    let days = day_of_date(date(day)?) - 3;
    (hour < 24).then(|| key(WindowType::HOUR, days * 24 + hour))?
}

fn key(kind: WindowType, index: i64) -> Option<WindowKey> {
    Some(WindowKey { kind, index: u32::try_from(index).ok()? })
}

fn date(text: &str) -> Option<NaiveDate> {
    NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()
}

/// Parses a number of decimal digits. Unlike [`str::parse`], it rejects a sign.
fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
}

/// The beginning of a rejected string, for an error message.
fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a window type; {suggestion}")]
pub struct UnknownType {
    text: String,
    suggestion: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a window, such as the hour \"2026-11-21T14Z\" (UTC), the day \"2026-11-21\", the week \"2026-W47\", \
     the month \"2026-11\", \"all-time\", or the fourth of type 12, \"12#3\""
)]
pub struct BadLabel(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_labels_round_trip() {
        for (kind, index, text) in [
            (WindowType::ALL_TIME, 0, "all-time"),
            (WindowType::HOUR, 0, "1970-01-01T00Z"),
            (WindowType::HOUR, 498_974, "2026-12-03T14Z"),
            (WindowType::DAY, 0, "1969-12-29"),
            (WindowType::DAY, 20_781, "2026-11-21"),
            (WindowType::WEEK, 0, "1970-W01"),
            (WindowType::WEEK, 2_968, "2026-W47"),
            (WindowType::MONTH, 1969 * 12 + 11, "1969-12"),
            (WindowType::MONTH, 2026 * 12 + 10, "2026-11"),
            (WindowType::MONTH, 9_999 * 12 + 11, "9999-12"),
            (WindowType(12), 3, "12#3"),
            (WindowType(u16::MAX), u32::MAX, "65535#4294967295"),
        ] {
            let key = WindowKey { kind, index };
            assert_eq!(label(key), text);
            assert_eq!(parse_label(text), Ok(key));
        }
        for kind in [WindowType::HOUR, WindowType::DAY, WindowType::WEEK] {
            for index in (0..400_000).step_by(7) {
                let key = WindowKey { kind, index };
                assert_eq!(parse_label(&label(key)), Ok(key));
            }
        }
    }

    #[test]
    fn invalid_window_label_is_rejected() {
        for bad in [
            "",
            "2026",
            "2026-13",
            "2026-00",
            "1969-11",
            "0000-01",
            "2026-02-29",
            "2026-1-05",
            "+026-01-05",
            "1969-12-28",
            "2026-11-21T24Z",
            "2026-11-21T1Z",
            "2026-11-21T14",
            "1969-12-31T23Z",
            "2026-W54",
            "12#",
            "12#03",
            "12#-1",
            "12#4294967296",
            "9#0",
            "2#20781",
            "65536#0",
            "#1",
            "day",
            "all_time",
            "2026\u{2013}11",
        ] {
            assert_eq!(parse_label(bad), Err(BadLabel(bad.to_owned())));
        }
        let error = parse_label(&"x".repeat(1_000)).unwrap_err().to_string();
        assert!(error.len() < 300 && error.contains("the day \"2026-11-21\""), "{error}");
    }

    #[test]
    fn a_week_in_another_form_is_recognised() {
        let current = calendar::parse_week_label("2026-W47").expect("a week");
        for (text, want) in [
            ("W46", Some("2026-W46")),
            ("w47", Some("2026-W47")),
            ("W48", Some("2025-W48")),
            ("2026-w46", Some("2026-W46")),
            ("2026-47", Some("2026-W47")),
            ("2024W47", None),
            ("W54", None),
            ("", None),
            ("W", None),
        ] {
            assert_eq!(similar_week(text, current).as_deref(), want, "{text}");
        }
    }

    #[test]
    fn every_window_key_has_a_label() {
        for kind in (0..20).map(WindowType) {
            for index in [0, 1, 3_000_000, 70_389_504, u32::MAX - 1, u32::MAX] {
                let key = WindowKey { kind, index };
                let text = label(key);
                assert!(
                    parse_label(&text).is_ok_and(|key_read| key_read == key) || !kind.is_custom(),
                    "{key:?} is {text}"
                );
            }
        }
    }

    #[test]
    fn window_type_names_round_trip_or_suggest() {
        for name in ["hour", "day", "week", "month", "all-time", "10", "12", "65535"] {
            assert_eq!(type_name(parse_type(name).unwrap()), name);
        }
        for (text, want) in [
            ("days", "\"days\" is not a window type; did you mean \"day\"?"),
            ("alltime", "\"alltime\" is not a window type; did you mean \"all-time\"?"),
            (
                "fortnight",
                "\"fortnight\" is not a window type; expected hour, day, week, month, all-time, or a custom type, 10 to 65535",
            ),
            ("4", "\"4\" is not a window type; custom types are 10 to 65535"),
            ("65536", "\"65536\" is not a window type; custom types are 10 to 65535"),
        ] {
            assert_eq!(parse_type(text).unwrap_err().to_string(), want);
        }
        assert!(parse_type("+12").is_err());
    }
}
