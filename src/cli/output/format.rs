//! Formats numbers and text for people: relative times, durations, thousands, and network
//! names without control characters.

use chrono::{DateTime, Utc};
use unicode_width::UnicodeWidthStr;

use crate::model::calendar::DAY_MS;
use crate::model::name::{ColourCodes, is_control_or_format, strip_colours};
use crate::model::row::Ranking;
use crate::model::shown_text::shown_name;

/// `4 min ago`, `in 20 s`; `never` if there is no time.
pub fn relative_time(t_ms: Option<i64>, now_ms: i64) -> String {
    match t_ms {
        None => "never".to_owned(),
        Some(t_ms) if (t_ms - now_ms).abs() < 1_000 => "now".to_owned(),
        Some(t_ms) if t_ms > now_ms => format!("in {}", duration(t_ms.abs_diff(now_ms))),
        Some(t_ms) if now_ms - t_ms < 60 * DAY_MS => format!("{} ago", duration(now_ms.abs_diff(t_ms))),
        Some(t_ms) => date(t_ms),
    }
}

/// As [`relative_time`], with one unit.
pub fn rough_relative_time(t_ms: Option<i64>, now_ms: i64) -> String {
    let rounded = t_ms.map(|t_ms| {
        let ms = now_ms - t_ms;
        let unit_ms = [DAY_MS, 3_600_000, 60_000].into_iter().find(|unit_ms| ms.abs() >= *unit_ms).unwrap_or(1);
        now_ms - ms / unit_ms * unit_ms
    });
    relative_time(rounded, now_ms)
}

/// `2026-11-20` (UTC).
pub fn date(t_ms: i64) -> String {
    DateTime::<Utc>::from_timestamp_millis(t_ms).map_or_else(|| t_ms.to_string(), |t| t.format("%Y-%m-%d").to_string())
}

/// `2026-11-20 13:45` (UTC).
pub fn format_time(t_ms: i64) -> String {
    let time = DateTime::<Utc>::from_timestamp_millis(t_ms);
    time.map_or_else(|| t_ms.to_string(), |t| t.format("%Y-%m-%d %H:%M").to_string())
}

/// `2026-11-20 13:45:59 UTC`.
pub fn time_utc(t_ms: i64) -> String {
    let time = DateTime::<Utc>::from_timestamp_millis(t_ms);
    time.map_or_else(|| t_ms.to_string(), |t| t.format("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// `999 B`, `1.5 kB`, `20.0 MB`: units of a thousand.
pub fn bytes(n: u64) -> String {
    let mut scaled = n as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if scaled < 999.95 {
            return if unit == "B" { format!("{n} B") } else { format!("{scaled:.1} {unit}") };
        }
        scaled /= 1_000.0;
    }
    format!("{scaled:.1} TB")
}

/// The two largest units that are not zero: `45 s`, `12 min`, `3 h 5 min`, `4 d 2 h`.
pub fn duration(ms: u64) -> String {
    let s = ms / 1_000;
    let (large, small, names) = match s {
        0..60 => return format!("{s} s"),
        60..600 => (s / 60, s % 60, ("min", "s")),
        600..3_600 => return format!("{} min", s / 60),
        3_600..86_400 => (s / 3_600, s % 3_600 / 60, ("h", "min")),
        _ => (s / 86_400, s % 86_400 / 3_600, ("d", "h")),
    };
    if small == 0 { format!("{large} {}", names.0) } else { format!("{large} {} {small} {}", names.0, names.1) }
}

/// `1,234,567`.
pub fn group_digits(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Points, which may be below zero.
pub fn points(n: i64) -> String {
    let sign = if n < 0 { "-" } else { "" };
    format!("{sign}{}", group_digits(n.unsigned_abs()))
}

/// Points per minute of a CLQ1 score in thousandths (docs/rules.md section 5).
pub fn clq1_per_min(thousandths: u64) -> f64 {
    thousandths as f64 / (10.0 * 12.0 * 1_000.0)
}

/// A score as people read it: CLQ1 in points per minute, others in the unit of the ranking.
pub fn score(ranking: Ranking, score: f64) -> String {
    match ranking {
        Ranking::Clq1 => format!("{:.2}", score * 60.0),
        Ranking::Clq2 | Ranking::Points => points(score as i64),
        Ranking::Elo => elo(score),
        Ranking::Time => duration((score * 1_000.0) as u64),
    }
}

/// A rating, rounded half up (docs/rules.md section 7).
pub fn elo(rating: f64) -> String {
    format!("{}", (rating + 0.5).floor() as i64)
}

/// The column heading of such scores.
pub fn score_heading(ranking: Ranking) -> &'static str {
    match ranking {
        Ranking::Clq1 => "points/min",
        Ranking::Clq2 => "clq2",
        Ranking::Elo => "elo",
        Ranking::Points => "points",
        Ranking::Time => "time",
    }
}

/// As [`sanitize`], for a string from a server. Colour codes are removed if the protocol of this
/// URL has them.
pub fn sanitize_name(text: &str, url: &str) -> String {
    sanitize(&strip_colours(text, ColourCodes::of_url(url)))
}

/// A string that is safe for a terminal. The result is empty only if the string is empty.
pub fn sanitize(text: &str) -> String {
    if text.is_empty() { String::new() } else { shown_name(text) }
}

/// As [`sanitize`], for text of several lines such as an error; keeps line feeds.
pub fn sanitize_multiline(text: &str) -> String {
    text.chars().filter(|&c| c == '\n' || !is_control_or_format(c)).collect()
}

/// An argument as a shell takes it.
pub fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/' | '@' | '+' | '%');
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// Bars of values, scaled to the largest; `·` is no data.
pub fn sparkline(values: &[Option<f64>]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let max = values.iter().flatten().copied().fold(0.0, f64::max);
    let bar = |value: f64| if max > 0.0 { BARS[((value / max * 7.0).round() as usize).min(7)] } else { BARS[0] };
    values.iter().map(|value| value.map_or('·', bar)).collect()
}

/// The lines of a text: as many clauses, which end with a semicolon, or words as fit.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut line = 0;
    for clause in text.split_inclusive("; ") {
        let fits = |line: &str, part: &str| line.is_empty() || line.width() + part.trim_end().width() <= width;
        let is_short = clause.trim_end().width() <= width;
        for (i, word) in clause.split_inclusive(' ').enumerate() {
            let part = if i == 0 && is_short { clause } else { word };
            if !fits(&lines[line], part) {
                lines.push(String::new());
                line += 1;
            }
            lines[line].push_str(word);
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// As [`wrapped`], with the spaces at the beginning of the line before all of them, and two more after the first.
pub fn wrapped_below(line: &str, width: usize) -> Vec<String> {
    let text = line.trim_start_matches(' ');
    let margin = line.len() - text.len();
    if line.width() <= width || margin + 2 >= width {
        return vec![line.to_owned()];
    }
    let parts = wrapped(text, width - margin - 2);
    let indented = |(i, part): (usize, &String)| format!("{:1$}{part}", "", margin + if i == 0 { 0 } else { 2 });
    parts.iter().enumerate().map(indented).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_times_are_formatted() {
        let now = 1_763_931_636_059;
        for (t_ms, want) in [
            (None, "never"),
            (Some(now), "now"),
            (Some(now - 45_999), "45 s ago"),
            (Some(now - 90_000), "1 min 30 s ago"),
            (Some(now - 1_200_000), "20 min ago"),
            (Some(now - 7_200_000), "2 h ago"),
            (Some(now - 90_000_000), "1 d 1 h ago"),
            (Some(now + 20_000), "in 20 s"),
            (Some(0), "1970-01-01"),
        ] {
            assert_eq!(relative_time(t_ms, now), want);
        }
        for (t_ms, want) in [
            (None, "never"),
            (Some(now - 45_999), "45 s ago"),
            (Some(now - 90_000), "1 min ago"),
            (Some(now - 7_900_000), "2 h ago"),
            (Some(now - 90_000_000), "1 d ago"),
            (Some(now + 100_000), "in 1 min"),
            (Some(0), "1970-01-01"),
        ] {
            assert_eq!(rough_relative_time(t_ms, now), want);
        }
    }

    #[test]
    fn numbers_are_formatted() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(group_digits), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(points(-1_000), "-1,000");
        assert_eq!([0, 999, 1_000, 20_000_000].map(bytes), ["0 B", "999 B", "1.0 kB", "20.0 MB"]);
        assert_eq!([999_949, 999_950].map(bytes), ["999.9 kB", "1.0 MB"]);
        assert_eq!(format_time(1_763_683_200_000), "2025-11-21 00:00");
        assert_eq!(time_utc(1_763_683_259_999), "2025-11-21 00:00:59 UTC");
        assert_eq!(elo(887.5), "888");
        assert_eq!(score(Ranking::Time, 3_660.0), "1 h 1 min");
        assert_eq!(clq1_per_min(7_200_000), 60.0);
    }

    #[test]
    fn control_characters_are_removed_from_network_text() {
        assert_eq!(sanitize_name("^1Red\u{1b}[2J\u{9b}x \u{202e}end", "quake3://a:1"), "Red[2Jx end");
        assert_eq!(sanitize_name("^1Red", "source://a:1"), "^1Red");
        assert_eq!(sanitize_name("^xF00Red", "darkplaces://a:1"), "Red");
        assert_eq!(sanitize_name("^1\u{3164}\u{200B}", "quake3://a:1"), "␣");
        assert_eq!([sanitize(""), sanitize("\u{200B}")], ["", "(no name)"]);
        assert_eq!(sanitize_multiline("a\u{1b}[2J:\n  b\u{202e}c\u{9b}\t"), "a[2J:\n  bc");
    }

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        for (text, want) in
            [("Visor", "Visor"), ("a b", "'a b'"), ("", "''"), ("it's", r"'it'\''s'"), ("$(x)", "'$(x)'")]
        {
            assert_eq!(quoted(text), want);
        }
    }

    #[test]
    fn text_is_wrapped_at_clauses_then_at_words() {
        assert_eq!(wrapped("one; two three; four", 100), ["one; two three; four"]);
        assert_eq!(wrapped("one; two three; four", 12), ["one;", "two three;", "four"]);
        assert_eq!(wrapped("one two three four", 9), ["one two", "three", "four"]);
        assert_eq!(wrapped("one a-long-word", 6), ["one", "a-long-word"]);
        assert_eq!(wrapped("", 6), [""]);
        assert_eq!(wrapped_below("  one two three", 9), ["  one", "    two", "    three"]);
        assert_eq!(wrapped_below("  one two", 9), ["  one two"]);
    }

    #[test]
    fn sparkline_scales_and_marks_missing_values() {
        assert_eq!(sparkline(&[Some(0.0), None, Some(8.0), Some(4.0)]), "▁·█▅");
        assert_eq!(sparkline(&[Some(0.0)]), "▁");
    }
}
