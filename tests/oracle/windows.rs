//! Windows (docs/rules.md 8): their boundaries, enumerated from the starts of local days, and their
//! rows.

use std::ops::Range;

use clqd::model::calendar::Calendar;

use super::Oracle;
use super::history::Target;
use super::rows::{Row, Scope};

const HOUR_MS: i64 = 3_600_000;

/// A window type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowKind {
    AllTime,
    /// Hours of UTC.
    Hours,
    Days,
    Weeks,
    Months,
    Custom {
        base_ms: i64,
        duration_ms: i64,
        every_ms: i64,
        /// 0: without end.
        repeat: u32,
    },
}

/// A window's number among those of its type, and [start, end).
pub type Window = (u32, Range<i64>);

impl WindowKind {
    /// All windows of the type that overlap `from..=to`, not before 1970.
    pub fn between(&self, calendar: &Calendar, from: i64, to: i64) -> Vec<Window> {
        let starts: Vec<(u32, i64)> = match self {
            WindowKind::AllTime => return vec![(0, i64::MIN..i64::MAX)],
            WindowKind::Custom { base_ms, duration_ms, every_ms, repeat } => {
                let count = if *repeat == 0 { u32::MAX } else { *repeat };
                let windows = (0..count).map(|n| (n, base_ms + i64::from(n) * every_ms));
                let started = windows.take_while(|(_, start)| *start <= to);
                return started
                    .map(|(n, start)| (n, start..start + duration_ms))
                    .filter(|(_, span)| from < span.end)
                    .collect();
            }
            WindowKind::Hours => (from / HOUR_MS..=to / HOUR_MS + 1).map(|n| (n as u32, n * HOUR_MS)).collect(),
            WindowKind::Days => {
                // No zone differs from UTC by more than a day. Day 3 is 1970-01-01.
                let day = |t: i64| t / (24 * HOUR_MS) + 3;
                let days = (day(from) - 2).max(0)..=day(to) + 2;
                days.map(|n| (n as u32, calendar.day_start_ms(n))).collect()
            }
            WindowKind::Weeks => {
                let week = |t: i64| t / (7 * 24 * HOUR_MS);
                let weeks = (week(from) - 1).max(0)..=week(to) + 3;
                weeks.map(|n| (n as u32, calendar.day_start_ms(7 * n))).collect()
            }
            WindowKind::Months => month_starts(to / (24 * HOUR_MS) + 40)
                .into_iter()
                .map(|(n, day)| (n, calendar.day_start_ms(day)))
                .collect(),
        };
        let spans = starts.windows(2).map(|pair| (pair[0].0, pair[0].1..pair[1].1));
        spans.filter(|(_, span)| span.start <= to && from < span.end).collect()
    }
}

/// Month number and day number of its first day, from January 1970 until after `until_day`.
/// December 1969 has only its last three days, 0 to 2.
fn month_starts(until_day: i64) -> Vec<(u32, i64)> {
    let mut starts = vec![(1969 * 12 + 11, 0)];
    let (mut year, mut month, mut day) = (1970_u32, 0, 3);
    while starts.last().is_none_or(|(_, start)| *start <= until_day) {
        starts.push((year * 12 + month, day));
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        day += [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month as usize];
        month += 1;
        if month == 12 {
            (year, month) = (year + 1, 0);
        }
    }
    starts
}

impl Oracle {
    /// Windows of a type with a fact or a round, oldest first.
    pub fn windows(&self, kind: &WindowKind) -> Vec<Window> {
        let mut times: Vec<i64> = self.facts.iter().map(|f| f.t).chain(self.rounds.iter().map(|r| r.t)).collect();
        times.sort_unstable();
        let (Some(first), Some(last)) = (times.first(), times.last()) else { return Vec::new() };
        let mut windows = kind.between(&self.settings.calendar, *first, *last);
        windows.retain(|(_, span)| times.iter().any(|t| span.contains(t)));
        windows
    }

    /// All rows of a window in a scope with their positions, in order of player key, from the
    /// snapshots within the window. The `week` of a row is the one in which the window starts.
    ///
    /// [open] `elo.carry_over` applies to weeks only: in every other window each player starts
    /// with 1000, also if the window is a week.
    pub fn window_rows(&self, span: &Range<i64>, scope: &Scope) -> Vec<Row> {
        let week = self.settings.calendar.week(span.start.max(0)).0;
        self.rows_of(&Target { week, span: span.clone(), is_week: false }, scope, usize::MAX)
    }
}
