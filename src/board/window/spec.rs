//! The specification of a window type, and its form in the configuration: `hour keep=48`,
//! `12 base=2026-01-05T00:00:00Z duration=3d every=1d repeat=100 keep=5`.

use std::str::FromStr;

use chrono::DateTime;

use super::TIME_MS_MAX;
use super::label::{UnknownType, parse_type};
use crate::limits::CONCURRENT_WINDOWS_MAX;
use crate::model::WindowType;
use crate::nearest::nearest;

/// Closed windows kept by default, for every type.
const KEEP_DEFAULT: u32 = 4;

/// Shortest window and distance of a custom type, ms. Servers are scanned every two
/// minutes; and with this minimum every window number fits 32 bits up to the year 9999.
const CUSTOM_MS_MIN: i64 = 60_000;

/// A type of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSpec {
    pub kind: WindowType,
    /// The shape; for a built-in type it is the type's own.
    pub shape: Shape,
    /// Number of closed windows kept in addition to the running ones. 0: all.
    pub keep: u32,
}

/// The time intervals of the windows of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Hour,
    Day,
    Week,
    Month,
    AllTime,
    Custom {
        /// Start of window 0, Unix ms.
        base_ms: i64,
        duration_ms: i64,
        /// Time between the starts of two successive windows.
        every_ms: i64,
        /// Number of windows. 0: no end.
        repeat: u32,
    },
}

/// Errors in a window type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    #[error(transparent)]
    Type(#[from] UnknownType),
    #[error("{0:?} is not of the form NAME=VALUE; {1}")]
    Syntax(String, String),
    #[error("unknown option {0:?} for this window type; {1}")]
    UnknownOption(String, String),
    #[error("duplicate option {0}=")]
    DuplicateOption(&'static str),
    #[error("{0}= is missing; a custom type needs base= and duration=, such as \"{EXAMPLE}\"")]
    MissingOption(&'static str),
    #[error("{name}={value:?} is not a whole number, 0 to {}", u32::MAX)]
    Number { name: &'static str, value: String },
    #[error("base={0:?} is not a time from 1970 to 9999, such as \"2026-01-05T00:00:00Z\"")]
    Base(String),
    #[error(
        "{name}={value:?} is not a duration, a whole number with s, m, h, d or w such as \"3d\", from one minute to 8000 years"
    )]
    Duration { name: &'static str, value: String },
    #[error(
        "{0} of its windows would run at once; expected at most {CONCURRENT_WINDOWS_MAX}: a longer every= or a shorter duration="
    )]
    TooManyConcurrent(i64),
}

const EXAMPLE: &str = "12 base=2026-01-05T00:00:00Z duration=3d";

/// An invalid window type in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("window {text:?}: {fault}")]
pub struct BadSpec {
    pub text: String,
    pub fault: SpecError,
}

impl WindowSpec {
    /// Checks the limits of a custom type. The caller must give a built-in type its own
    /// shape.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let built_in = built_in(self.kind);
        assert!(
            built_in.map_or(matches!(self.shape, Shape::Custom { .. }), |shape| shape == self.shape),
            "type {} has shape {:?}",
            self.kind.0,
            self.shape
        );
        let Shape::Custom { base_ms, duration_ms, every_ms, repeat } = self.shape else { return Ok(()) };
        if !(0..=TIME_MS_MAX).contains(&base_ms) {
            return Err(SpecError::Base(format!("{base_ms} ms")));
        }
        for (name, ms) in [("duration", duration_ms), ("every", every_ms)] {
            if !(CUSTOM_MS_MIN..=TIME_MS_MAX).contains(&ms) {
                return Err(SpecError::Duration { name, value: format!("{ms} ms") });
            }
        }
        let at_once = (duration_ms - 1) / every_ms + 1;
        let at_once = if repeat == 0 { at_once } else { at_once.min(i64::from(repeat)) };
        if at_once > CONCURRENT_WINDOWS_MAX { Err(SpecError::TooManyConcurrent(at_once)) } else { Ok(()) }
    }
}

fn built_in(kind: WindowType) -> Option<Shape> {
    match kind {
        WindowType::HOUR => Some(Shape::Hour),
        WindowType::DAY => Some(Shape::Day),
        WindowType::WEEK => Some(Shape::Week),
        WindowType::MONTH => Some(Shape::Month),
        WindowType::ALL_TIME => Some(Shape::AllTime),
        _ => None,
    }
}

impl FromStr for WindowSpec {
    type Err = BadSpec;

    fn from_str(text: &str) -> Result<WindowSpec, BadSpec> {
        parse_spec(text).map_err(|fault| BadSpec { text: text.chars().take(120).collect(), fault })
    }
}

fn parse_spec(text: &str) -> Result<WindowSpec, SpecError> {
    let mut words = text.split_whitespace();
    let kind = parse_type(words.next().unwrap_or_default())?;
    let names: &[&'static str] = match built_in(kind) {
        // The all-time window never ends, so no window is ever closed.
        Some(Shape::AllTime) => &[],
        Some(_) => &["keep"],
        None => &["base", "duration", "every", "repeat", "keep"],
    };
    let mut values: Vec<(&'static str, &str)> = Vec::new();
    for word in words {
        let (name, value) =
            word.split_once('=').ok_or_else(|| SpecError::Syntax(word.to_owned(), suggestion(word, names)))?;
        let known = names.iter().find(|known| **known == name);
        let known = *known.ok_or_else(|| SpecError::UnknownOption(name.to_owned(), suggestion(name, names)))?;
        if values.iter().any(|(existing, _)| *existing == known) {
            return Err(SpecError::DuplicateOption(known));
        }
        values.push((known, value));
    }
    let value_of = |name: &'static str| values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    let number = |name| value_of(name).map(|value| parse_u32(name, value)).transpose();
    let length = |name| value_of(name).map(|value| duration_ms(name, value)).transpose();
    let shape = match built_in(kind) {
        Some(shape) => shape,
        None => {
            let base_ms = base_ms(value_of("base").ok_or(SpecError::MissingOption("base"))?)?;
            let duration_ms = length("duration")?.ok_or(SpecError::MissingOption("duration"))?;
            let every_ms = length("every")?.unwrap_or(duration_ms);
            Shape::Custom { base_ms, duration_ms, every_ms, repeat: number("repeat")?.unwrap_or(0) }
        }
    };
    let keep = number("keep")?.unwrap_or(if shape == Shape::AllTime { 0 } else { KEEP_DEFAULT });
    let spec = WindowSpec { kind, shape, keep };
    spec.check()?;
    Ok(spec)
}

fn suggestion(word: &str, names: &[&'static str]) -> String {
    match nearest(word, names.iter().copied()) {
        Some(name) => format!("did you mean {name}=?"),
        None if names.is_empty() => "this type has no options".to_owned(),
        None => format!("expected {}", names.iter().map(|name| format!("{name}=")).collect::<Vec<_>>().join(", ")),
    }
}

fn parse_u32(name: &'static str, value: &str) -> Result<u32, SpecError> {
    let digits = value.bytes().all(|b| b.is_ascii_digit());
    value.parse().ok().filter(|_| digits).ok_or_else(|| SpecError::Number { name, value: value.to_owned() })
}

fn base_ms(value: &str) -> Result<i64, SpecError> {
    let time = DateTime::parse_from_rfc3339(value).ok().map(|time| time.timestamp_millis());
    time.filter(|ms| (0..=TIME_MS_MAX).contains(ms)).ok_or_else(|| SpecError::Base(value.to_owned()))
}

fn duration_ms(name: &'static str, value: &str) -> Result<i64, SpecError> {
    let parse = || -> Option<i64> {
        let unit = value.chars().next_back()?;
        let unit_s = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            'w' => 604_800,
            _ => return None,
        };
        let count = i64::from(parse_u32(name, &value[..value.len() - 1]).ok()?);
        count.checked_mul(unit_s * 1_000).filter(|ms| (CUSTOM_MS_MIN..=TIME_MS_MAX).contains(ms))
    };
    parse().ok_or_else(|| SpecError::Duration { name, value: value.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_specs_are_parsed() {
        let spec = |text: &str| text.parse::<WindowSpec>().unwrap();
        let built_in = |kind, shape, keep| WindowSpec { kind, shape, keep };
        assert_eq!(spec("hour keep=48"), built_in(WindowType::HOUR, Shape::Hour, 48));
        assert_eq!(spec(" day "), built_in(WindowType::DAY, Shape::Day, KEEP_DEFAULT));
        assert_eq!(spec("month keep=0"), built_in(WindowType::MONTH, Shape::Month, 0));
        assert_eq!(spec("week keep=9"), built_in(WindowType::WEEK, Shape::Week, 9));
        assert_eq!(spec("all-time"), built_in(WindowType::ALL_TIME, Shape::AllTime, 0));
        let base_ms = 1_767_571_200_000;
        let days = |days: i64| days * 86_400_000;
        assert_eq!(
            spec("12 base=2026-01-05T00:00:00Z duration=3d every=1d repeat=100 keep=5"),
            WindowSpec {
                kind: WindowType(12),
                shape: Shape::Custom { base_ms, duration_ms: days(3), every_ms: days(1), repeat: 100 },
                keep: 5
            }
        );
        let plain = Shape::Custom { base_ms, duration_ms: days(14), every_ms: days(14), repeat: 0 };
        assert_eq!(spec("12 duration=2w base=2026-01-05T01:00:00+01:00").shape, plain);
        let lengths = ["60s", "1m", "1h", "1d", "1w"].map(|text| duration_ms("every", text).unwrap());
        assert_eq!(lengths, [60_000, 60_000, 3_600_000, 86_400_000, 604_800_000]);
    }

    #[test]
    fn spec_errors_name_the_option_and_the_expected_value() {
        let base = "base=2026-01-05T00:00:00Z";
        for (text, want) in [
            ("", "\"\" is not a window type; expected hour, day, week,"),
            ("huor keep=3", "\"huor\" is not a window type; did you mean \"hour\"?"),
            ("hour kep=3", "unknown option \"kep\" for this window type; did you mean keep=?"),
            ("hour base=3", "unknown option \"base\" for this window type; expected keep="),
            ("all-time keep=3", "unknown option \"keep\" for this window type; this type has no options"),
            ("day keep", "\"keep\" is not of the form NAME=VALUE; did you mean keep=?"),
            ("day keep=3 keep=3", "duplicate option keep="),
            ("day keep=+3", "keep=\"+3\" is not a whole number, 0 to 4294967295"),
            ("day keep=-1", "keep=\"-1\" is not a whole number, 0 to 4294967295"),
            ("12 duration=3d", "base= is missing; a custom type needs base= and duration=, such as"),
            (&format!("12 {base}"), "duration= is missing;"),
            ("12 base=2026-01-05 duration=3d", "base=\"2026-01-05\" is not a time from 1970 to 9999, such as"),
            ("12 base=1969-12-31T23:59:59Z duration=3d", "is not a time from 1970 to 9999"),
            (&format!("12 {base} duration=3"), "duration=\"3\" is not a duration, a whole number with s, m, h, d or w"),
            (&format!("12 {base} duration=3\u{b5}"), "is not a duration"),
            (&format!("12 {base} duration="), "is not a duration"),
            (&format!("12 {base} duration=59s"), "duration=\"59s\" is not a duration"),
            (&format!("12 {base} duration=1h every=0s"), "every=\"0s\" is not a duration"),
            (&format!("12 {base} duration=4294967295w"), "is not a duration"),
            (&format!("12 {base} duration=33h every=1h"), "33 of its windows would run at once; expected at most 32"),
            (&format!("12 {base} duration=1921m every=1h"), "33 of its windows would run at once"),
        ] {
            let error = text.parse::<WindowSpec>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("window {text:?}: ")) && error.contains(want), "{error}");
        }
        let fits = |rest: &str| assert!(format!("12 {base} {rest}").parse::<WindowSpec>().is_ok(), "{rest}");
        fits("duration=32h every=1h");
        fits("duration=33h every=1h repeat=32");
    }
}
