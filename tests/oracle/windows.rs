//! Windows (docs/rules.md 8): start and end of those of each type, and their rows. Boundaries are
//! enumerated, from the start of local days.

use std::collections::HashMap;
use std::ops::Range;

use clqd::model::calendar::Calendar;

use super::rows::{Ratings, Row, Scope};
use super::{Oracle, Who, elo_after};

const HOUR_MS: i64 = 3_600_000;

/// A type of windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowKind {
    AllTime,
    /// Of UTC.
    Hours,
    Days,
    Weeks,
    Months,
    Custom {
        base_ms: i64,
        duration_ms: i64,
        every_ms: i64,
        /// 0: for ever.
        repeat: u32,
    },
}

/// A window's number among those of its type, and [start, end).
pub type Window = (u32, Range<i64>);

impl WindowKind {
    /// All windows of the type that contain a moment of `from..=to`, not before 1970.
    pub fn between(&self, calendar: &Calendar, from: i64, to: i64) -> Vec<Window> {
        let starts: Vec<(u32, i64)> = match self {
            WindowKind::AllTime => return vec![(0, i64::MIN..i64::MAX)],
            WindowKind::Custom { base_ms, duration_ms, every_ms, repeat } => {
                let count = if *repeat == 0 { u32::MAX } else { *repeat };
                let windows = (0..count).map(|n| (n, base_ms + i64::from(n) * every_ms));
                let begun = windows.take_while(|(_, start)| *start <= to);
                return begun
                    .map(|(n, start)| (n, start..start + duration_ms))
                    .filter(|(_, span)| from < span.end)
                    .collect();
            }
            WindowKind::Hours => (from / HOUR_MS..=to / HOUR_MS + 1).map(|n| (n as u32, n * HOUR_MS)).collect(),
            WindowKind::Days => {
                // No zone is farther than a day from UTC. Day 3 is 1970-01-01.
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

/// Month number and day number of its first day, from January 1970 until after
/// that day; the December before has no more than its last three days, 0 to 2.
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
    /// Windows of a type in which anything was revealed about a player, oldest first.
    pub fn windows(&self, stretches: &WindowKind) -> Vec<Window> {
        let mut moments: Vec<i64> = self.facts.iter().map(|f| f.t).chain(self.rounds.iter().map(|r| r.t)).collect();
        moments.sort_unstable();
        let (Some(first), Some(last)) = (moments.first(), moments.last()) else { return Vec::new() };
        let mut windows = stretches.between(&self.settings.calendar, *first, *last);
        windows.retain(|(_, span)| moments.iter().any(|t| span.contains(t)));
        windows
    }

    /// All rows of a window in a scope, with their positions, in order of player
    /// key: all that the snapshots within it reveal. `week` of a row is the one
    /// in which the window begins.
    ///
    /// [open] `elo.carry_over` is about weeks: in every other window, and in a
    /// week taken as one, each player begins at 1000.
    pub fn window_rows(&self, span: &Range<i64>, scope: &Scope) -> Vec<Row> {
        let week = self.settings.calendar.week(span.start.max(0)).0;
        self.rows_revealed(week, |t, _| span.contains(&t), self.window_ratings(span, scope), scope)
    }

    /// docs/rules.md 7, with nothing from before the window.
    fn window_ratings(&self, span: &Range<i64>, scope: &Scope) -> Ratings {
        let mut ratings: HashMap<Who, f64> = HashMap::new();
        let mut revealed: HashMap<Who, Vec<(i64, f64)>> = HashMap::new();
        for round in self.rounds.iter().filter(|r| span.contains(&r.t) && scope.holds(&r.server, &r.game)) {
            let who: Vec<Option<Who>> = round
                .list
                .iter()
                .map(|e| e.usable.then(|| Who { game: round.game.clone(), name: e.name.clone() }))
                .collect();
            let rating = |who: &Option<Who>| who.as_ref().and_then(|who| ratings.get(who)).copied().unwrap_or(1000.0);
            let before: Vec<f64> = who.iter().map(rating).collect();
            let points: Vec<i64> = round.list.iter().map(|e| e.points).collect();
            for (who, after) in who.into_iter().zip(elo_after(&points, &before, &self.settings)) {
                let Some(who) = who else { continue };
                ratings.insert(who.clone(), after);
                revealed.entry(who).or_default().push((round.t, after));
            }
        }
        Ratings { revealed, carried: HashMap::new() }
    }
}
