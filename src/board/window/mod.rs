//! Windows: when each begins and ends, and which contain a time (docs/rules.md section 8).
//!
//! A window is a time interval [start, end) with its own boards. There is always a type for
//! weeks, and one for each other type in the configuration. Hours are whole hours of UTC,
//! like those of the series; days, weeks and months are those of the [`Calendar`], so with
//! daylight saving time a day has 23 or 25 hours. The windows of a custom type are
//! equally long and start at regular intervals; they may overlap.
//!
//! This module does not know the contents of boards. [`mod@label`] has the text form of
//! windows, [`spec`] their form in the configuration.

pub mod label;
mod recurrence;
pub mod spec;

use std::ops::Range;

use chrono::{Datelike, Days, NaiveDate};
pub use label::{BadLabel, UnknownType, has_form, label, parse_label, parse_type, similar_week, type_name};
pub use spec::{BadSpec, Shape, SpecError, WindowSpec};

use self::recurrence::Recurrence;
use crate::model::calendar::{Calendar, HOUR_MS, epoch_monday};
use crate::model::{WeekKey, WindowKey, WindowType};

/// The latest distinct time, Unix ms: one day before the end of the year 9999, so that no
/// time zone has a date with five digits. Later times count as this one, times before 1970
/// as 1970.
pub const TIME_MS_MAX: i64 = 253_402_214_400_000 - 1;

/// All configured types of windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowTypes {
    calendar: Calendar,
    /// In order of type.
    specs: Vec<WindowSpec>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowsError {
    #[error("duplicate window type {}", type_name(*.0))]
    DuplicateType(WindowType),
    #[error("window type {}: {fault}", type_name(*kind))]
    InvalidSpec { kind: WindowType, fault: SpecError },
}

impl WindowTypes {
    /// Weeks need not be in `specs`; then all of them are kept.
    pub fn new(calendar: Calendar, specs: impl IntoIterator<Item = WindowSpec>) -> Result<WindowTypes, WindowsError> {
        let mut specs: Vec<WindowSpec> = specs.into_iter().collect();
        if specs.iter().all(|spec| spec.kind != WindowType::WEEK) {
            specs.push(WindowSpec { kind: WindowType::WEEK, shape: Shape::Week, keep: 0 });
        }
        specs.sort_by_key(|spec| spec.kind);
        if let Some(duplicate) = specs.windows(2).find(|pair| pair[0].kind == pair[1].kind) {
            return Err(WindowsError::DuplicateType(duplicate[0].kind));
        }
        for spec in &specs {
            spec.check().map_err(|fault| WindowsError::InvalidSpec { kind: spec.kind, fault })?;
        }
        Ok(WindowTypes { calendar, specs })
    }

    /// In order of type.
    pub fn specs(&self) -> &[WindowSpec] {
        &self.specs
    }

    pub fn calendar(&self) -> &Calendar {
        &self.calendar
    }

    /// All windows that contain the time, in order of key.
    pub fn windows_at(&self, t_ms: i64) -> Vec<WindowKey> {
        let t_ms = clamp_time(t_ms);
        let keys = |spec: &WindowSpec| {
            let kind = spec.kind;
            self.containing(spec.shape, t_ms).map(move |index| WindowKey { kind, index })
        };
        self.specs.iter().flat_map(keys).collect()
    }

    /// The largest interval around the time in which [`WindowTypes::windows_at`] is the same.
    pub fn stable_range(&self, t_ms: i64) -> Range<i64> {
        let t_ms = clamp_time(t_ms);
        let ranges = self.specs.iter().map(|spec| match Recurrence::of(spec.shape) {
            Some(recurrence) => recurrence.stable_range(t_ms),
            None => self.unit_span(spec.shape, self.containing(spec.shape, t_ms).start),
        });
        let all = ranges.fold(i64::MIN..i64::MAX, |all, one| all.start.max(one.start)..all.end.min(one.end));
        // Times outside of the distinct ones are equal to the nearest distinct one.
        let start = if all.start <= 0 { i64::MIN } else { all.start };
        let end = if all.end > TIME_MS_MAX { i64::MAX } else { all.end };
        start..end
    }

    /// The interval of a window, Unix ms; all-time is `i64::MIN..i64::MAX`. `None`: there
    /// is no such type or window.
    pub fn span(&self, key: WindowKey) -> Option<Range<i64>> {
        let shape = self.spec(key.kind)?.shape;
        if let Some(recurrence) = Recurrence::of(shape) {
            let index = i64::from(key.index);
            let exists = index < recurrence.count && recurrence.start(index) <= TIME_MS_MAX;
            return exists.then(|| recurrence.start(index)..recurrence.end(index));
        }
        let (first, last) = (self.containing(shape, 0).start, self.containing(shape, TIME_MS_MAX).start);
        let span = (first..=last).contains(&key.index).then(|| self.unit_span(shape, key.index))?;
        // Time zones that crossed the date line have skipped a day.
        (!span.is_empty()).then_some(span)
    }

    /// The first window of the type that begins after the time.
    pub fn next_after(&self, kind: WindowType, t_ms: i64) -> Option<WindowKey> {
        let (shape, t_ms) = (self.spec(kind)?.shape, clamp_time(t_ms));
        let index = if let Some(recurrence) = Recurrence::of(shape) {
            let index = recurrence.started_count(t_ms);
            (index < recurrence.count && recurrence.start(index) <= TIME_MS_MAX).then_some(index as u32)?
        } else {
            let end_ms = self.unit_span(shape, self.containing(shape, t_ms).start).end;
            (end_ms <= TIME_MS_MAX).then(|| self.containing(shape, end_ms).start)?
        };
        Some(WindowKey { kind, index })
    }

    /// The numbers of the existing windows of a type at a time: those that contain it, and
    /// before them as many as are kept.
    pub fn retained(&self, kind: WindowType, t_ms: i64) -> Range<u32> {
        let Some(spec) = self.spec(kind) else { return 0..0 };
        let running = self.containing(spec.shape, clamp_time(t_ms));
        let first = match Recurrence::of(spec.shape) {
            Some(_) => 0,
            None => self.containing(spec.shape, 0).start,
        };
        let kept = if spec.keep == 0 { u32::MAX } else { spec.keep };
        running.start.saturating_sub(kept).max(first)..running.end
    }

    /// The closed windows to delete so that the configured number of the type remains: those that
    /// ended first, in that order. All windows of a type that is no longer configured remain,
    /// because the next reload may add the type again.
    pub fn expired(&self, kind: WindowType, closed: &[WindowKey]) -> Vec<WindowKey> {
        let Some(keep) = self.spec(kind).map(|spec| spec.keep as usize).filter(|&keep| keep > 0) else {
            return Vec::new();
        };
        let mut closed: Vec<WindowKey> = closed.iter().copied().filter(|key| key.kind == kind).collect();
        // All windows of a type are equally long, so they end in order of their numbers.
        closed.sort_unstable();
        closed.dedup();
        closed.truncate(closed.len().saturating_sub(keep));
        closed
    }

    fn spec(&self, kind: WindowType) -> Option<&WindowSpec> {
        self.specs.binary_search_by_key(&kind, |spec| spec.kind).ok().map(|at| &self.specs[at])
    }

    /// The numbers of the windows that contain the time.
    fn containing(&self, shape: Shape, t_ms: i64) -> Range<u32> {
        if let Some(recurrence) = Recurrence::of(shape) {
            return recurrence.ended_count(t_ms) as u32..recurrence.started_count(t_ms) as u32;
        }
        let index = self.unit(shape, t_ms);
        index..index + 1
    }

    /// The hour, day, week or month that contains the time.
    fn unit(&self, shape: Shape, t_ms: i64) -> u32 {
        let mut index = match shape {
            Shape::Hour => t_ms.div_euclid(HOUR_MS) as u32,
            Shape::Day => self.calendar.day(t_ms).max(0) as u32,
            Shape::Week => self.calendar.week(t_ms).0,
            Shape::Month => month_of_day(self.calendar.day(t_ms)),
            Shape::AllTime | Shape::Custom { .. } => return 0,
        };
        // Where clocks are set back over midnight, a date begins, then the previous one
        // again, then the date once more. It begins when it occurs first.
        while self.unit_start_ms(shape, index + 1) <= t_ms {
            index += 1;
        }
        while index > 0 && self.unit_start_ms(shape, index) > t_ms {
            index -= 1;
        }
        index
    }

    fn unit_span(&self, shape: Shape, index: u32) -> Range<i64> {
        if shape == Shape::AllTime {
            return i64::MIN..i64::MAX;
        }
        self.unit_start_ms(shape, index)..self.unit_start_ms(shape, index + 1)
    }

    fn unit_start_ms(&self, shape: Shape, index: u32) -> i64 {
        match shape {
            Shape::Hour => i64::from(index) * HOUR_MS,
            Shape::Day => self.calendar.day_start_ms(i64::from(index)),
            Shape::Week => self.calendar.week_start_ms(WeekKey(index)),
            Shape::Month => self.calendar.day_start_ms(first_day_of_month(index)),
            Shape::AllTime | Shape::Custom { .. } => unreachable!("{shape:?} is not a calendar unit"),
        }
    }
}

fn clamp_time(t_ms: i64) -> i64 {
    t_ms.clamp(0, TIME_MS_MAX)
}

/// The date of a local day as numbered by [`Calendar::day`]; `None`: the date is out of
/// range.
fn date_of_day(day: i64) -> Option<NaiveDate> {
    epoch_monday().checked_add_days(Days::new(u64::try_from(day).ok()?)).filter(|date| date.year() <= 9_999)
}

fn day_of_date(date: NaiveDate) -> i64 {
    (date - epoch_monday()).num_days()
}

fn month_of_day(day: i64) -> u32 {
    let date = date_of_day(day).expect("years of times have at most four digits");
    date.year() as u32 * 12 + date.month0()
}

fn first_day_of_month(month: u32) -> i64 {
    let date = NaiveDate::from_ymd_opt((month / 12) as i32, month % 12 + 1, 1);
    day_of_date(date.expect("years of months have at most five digits"))
}

#[cfg(test)]
mod tests;
