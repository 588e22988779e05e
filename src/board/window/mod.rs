//! Windows: when each begins and ends, and which contain a moment (RULES section 8).
//!
//! A window is a stretch of time, [start, end), with boards of its own. There is
//! one type for weeks always, and one for each other that the config asks for.
//! Hours are whole hours of UTC, as those of the series; days, weeks and months
//! are those of the [`Calendar`], so with daylight saving a day has 23 or 25
//! hours. A type that the config gives has windows of one length at one
//! distance, which may overlap.
//!
//! What is in a window's boards is not known here. How windows are written is in
//! [`label`], how the config writes them in [`spec`].

pub mod label;
pub mod spec;
#[cfg(test)]
mod tests;

use std::ops::Range;

use chrono::{Datelike, Days, NaiveDate};
pub use label::{BadLabel, UnknownType, label, parse, parse_type, type_name};
pub use spec::{BadSpec, Shape, SpecError, WindowSpec};

use crate::model::calendar::Calendar;
use crate::model::{WeekKey, WindowKey, WindowType};

/// The last moment that is told from the one before, Unix ms: one day less than
/// the year 9999 lasts, so that in no zone a date has five digits. Later times
/// count as this one, times before 1970 as 1970.
pub const TIME_MS_MAX: i64 = 253_402_214_400_000 - 1;

const HOUR_MS: i64 = 3_600_000;

/// All types of windows there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowTypes {
    calendar: Calendar,
    /// In order of type.
    specs: Vec<WindowSpec>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowsError {
    #[error("window type {} stands there twice", type_name(*.0))]
    DuplicateType(WindowType),
    #[error("window type {}: {fault}", type_name(*kind))]
    InvalidSpec { kind: WindowType, fault: SpecError },
}

impl WindowTypes {
    /// Weeks are there without being named; then all of them are kept.
    pub fn new(calendar: Calendar, specs: impl IntoIterator<Item = WindowSpec>) -> Result<WindowTypes, WindowsError> {
        let mut specs: Vec<WindowSpec> = specs.into_iter().collect();
        if specs.iter().all(|spec| spec.kind != WindowType::WEEK) {
            specs.push(WindowSpec { kind: WindowType::WEEK, shape: Shape::Week, keep: 0 });
        }
        specs.sort_by_key(|spec| spec.kind);
        if let Some(twice) = specs.windows(2).find(|pair| pair[0].kind == pair[1].kind) {
            return Err(WindowsError::DuplicateType(twice[0].kind));
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

    /// All windows that contain the moment, in order of key.
    pub fn at(&self, t_ms: i64) -> Vec<WindowKey> {
        let t_ms = clamp_time(t_ms);
        let keys = |spec: &WindowSpec| {
            let kind = spec.kind;
            self.containing(spec.shape, t_ms).map(move |index| WindowKey { kind, index })
        };
        self.specs.iter().flat_map(keys).collect()
    }

    /// The widest stretch around the moment in which [`WindowTypes::at`] stays the same.
    pub fn unchanged(&self, t_ms: i64) -> Range<i64> {
        let t_ms = clamp_time(t_ms);
        let stretches = self.specs.iter().map(|spec| match Recurrence::of(spec.shape) {
            Some(repeats) => repeats.unchanged(t_ms),
            None => self.unit_span(spec.shape, self.containing(spec.shape, t_ms).start),
        });
        let all = stretches.fold(i64::MIN..i64::MAX, |all, one| all.start.max(one.start)..all.end.min(one.end));
        // What lies outside of the times that are told apart is like their edge.
        let start = if all.start <= 0 { i64::MIN } else { all.start };
        let end = if all.end > TIME_MS_MAX { i64::MAX } else { all.end };
        start..end
    }

    /// From the window's first moment to the first after it, Unix ms; all-time
    /// from `i64::MIN` to `i64::MAX`. `None`: there is no such type or window.
    pub fn span(&self, key: WindowKey) -> Option<Range<i64>> {
        let shape = self.spec(key.kind)?.shape;
        if let Some(repeats) = Recurrence::of(shape) {
            let index = i64::from(key.index);
            let exists = index < repeats.count && repeats.start(index) <= TIME_MS_MAX;
            return exists.then(|| repeats.start(index)..repeats.end(index));
        }
        let (first, last) = (self.containing(shape, 0).start, self.containing(shape, TIME_MS_MAX).start);
        let span = (first..=last).contains(&key.index).then(|| self.unit_span(shape, key.index))?;
        // Zones that crossed the date line have left out a day.
        (!span.is_empty()).then_some(span)
    }

    /// The window of the type that contains the moment and began first.
    pub fn oldest(&self, kind: WindowType, t_ms: i64) -> Option<WindowKey> {
        let index = self.containing(self.spec(kind)?.shape, clamp_time(t_ms)).next()?;
        Some(WindowKey { kind, index })
    }

    /// The first window of the type that begins after the moment.
    pub fn next(&self, kind: WindowType, t_ms: i64) -> Option<WindowKey> {
        let (shape, t_ms) = (self.spec(kind)?.shape, clamp_time(t_ms));
        let index = if let Some(repeats) = Recurrence::of(shape) {
            let index = repeats.begun(t_ms);
            (index < repeats.count && repeats.start(index) <= TIME_MS_MAX).then_some(index as u32)?
        } else {
            let end_ms = self.unit_span(shape, self.containing(shape, t_ms).start).end;
            (end_ms <= TIME_MS_MAX).then(|| self.containing(shape, end_ms).start)?
        };
        Some(WindowKey { kind, index })
    }

    /// The numbers of the windows of a type that are there at a moment: those that
    /// contain it, and before them as many as are kept.
    pub fn kept(&self, kind: WindowType, t_ms: i64) -> Range<u32> {
        let Some(spec) = self.spec(kind) else { return 0..0 };
        let of_now = self.containing(spec.shape, clamp_time(t_ms));
        let first = match Recurrence::of(spec.shape) {
            Some(_) => 0,
            None => self.containing(spec.shape, 0).start,
        };
        let kept = if spec.keep == 0 { u32::MAX } else { spec.keep };
        of_now.start.saturating_sub(kept).max(first)..of_now.end
    }

    /// Which of the closed windows are to go so that as many of the type stay as
    /// are kept: those that ended first, in that order. Windows of a type that is
    /// not there any more all stay: it may be back after the next reload.
    pub fn expired(&self, kind: WindowType, closed: &[WindowKey]) -> Vec<WindowKey> {
        let Some(keep) = self.spec(kind).map(|spec| spec.keep as usize).filter(|&keep| keep > 0) else {
            return Vec::new();
        };
        let mut closed: Vec<WindowKey> = closed.iter().copied().filter(|key| key.kind == kind).collect();
        // All of a type are equally long, so they end in order of their numbers.
        closed.sort_unstable();
        closed.dedup();
        closed.truncate(closed.len().saturating_sub(keep));
        closed
    }

    fn spec(&self, kind: WindowType) -> Option<&WindowSpec> {
        self.specs.binary_search_by_key(&kind, |spec| spec.kind).ok().map(|at| &self.specs[at])
    }

    /// The numbers of the windows that contain the moment.
    fn containing(&self, shape: Shape, t_ms: i64) -> Range<u32> {
        if let Some(repeats) = Recurrence::of(shape) {
            return repeats.ended(t_ms) as u32..repeats.begun(t_ms) as u32;
        }
        let index = self.unit(shape, t_ms);
        index..index + 1
    }

    /// The hour, day, week or month that contains the moment.
    fn unit(&self, shape: Shape, t_ms: i64) -> u32 {
        let mut index = match shape {
            Shape::Hour => t_ms.div_euclid(HOUR_MS) as u32,
            Shape::Day => self.calendar.day(t_ms).max(0) as u32,
            Shape::Week => self.calendar.week(t_ms).0,
            Shape::Month => month_of_day(self.calendar.day(t_ms)),
            Shape::AllTime | Shape::Custom { .. } => return 0,
        };
        // Where clocks go back over midnight a date is shown, then the one before
        // again, then it once more. It has begun when it is first shown.
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
            Shape::AllTime | Shape::Custom { .. } => unreachable!("{shape:?} is no unit of the calendar"),
        }
    }
}

fn clamp_time(t_ms: i64) -> i64 {
    t_ms.clamp(0, TIME_MS_MAX)
}

/// The date of a local day as [`Calendar::day`] numbers them; `None`: no date that is told.
fn date_of_day(day: i64) -> Option<NaiveDate> {
    day_zero().checked_add_days(Days::new(u64::try_from(day).ok()?)).filter(|date| date.year() <= 9_999)
}

fn day_of_date(date: NaiveDate) -> i64 {
    (date - day_zero()).num_days()
}

fn day_zero() -> NaiveDate {
    NaiveDate::from_ymd_opt(1969, 12, 29).expect("a real date")
}

fn month_of_day(day: i64) -> u32 {
    let date = date_of_day(day).expect("times are kept within four digits of a year");
    date.year() as u32 * 12 + date.month0()
}

fn first_day_of_month(month: u32) -> i64 {
    let date = NaiveDate::from_ymd_opt((month / 12) as i32, month % 12 + 1, 1);
    day_of_date(date.expect("numbers of months are kept within five digits of a year"))
}

/// The windows of a type that the config gives: of one length, at one distance.
#[derive(Clone, Copy)]
struct Recurrence {
    base_ms: i64,
    duration_ms: i64,
    every_ms: i64,
    count: i64,
}

impl Recurrence {
    fn of(shape: Shape) -> Option<Recurrence> {
        let Shape::Custom { base_ms, duration_ms, every_ms, repeat } = shape else { return None };
        // For ever is as far as numbers go, which is beyond the year 9999.
        let count = i64::from(if repeat == 0 { u32::MAX } else { repeat });
        Some(Recurrence { base_ms, duration_ms, every_ms, count })
    }

    fn start(&self, index: i64) -> i64 {
        self.base_ms.saturating_add(self.every_ms.saturating_mul(index))
    }

    fn end(&self, index: i64) -> i64 {
        self.start(index).saturating_add(self.duration_ms)
    }

    /// How many have begun by the moment: the number of the next.
    fn begun(&self, t_ms: i64) -> i64 {
        if t_ms < self.base_ms { 0 } else { ((t_ms - self.base_ms) / self.every_ms + 1).min(self.count) }
    }

    /// How many are over: the number of the oldest that is not.
    fn ended(&self, t_ms: i64) -> i64 {
        self.begun(t_ms - self.duration_ms)
    }

    fn unchanged(&self, t_ms: i64) -> Range<i64> {
        let (begun, ended) = (self.begun(t_ms), self.ended(t_ms));
        let before =
            |count: i64, of: fn(&Recurrence, i64) -> i64| if count > 0 { of(self, count - 1) } else { i64::MIN };
        let after =
            |count: i64, of: fn(&Recurrence, i64) -> i64| if count < self.count { of(self, count) } else { i64::MAX };
        let start = before(begun, Recurrence::start).max(before(ended, Recurrence::end));
        let end = after(begun, Recurrence::start).min(after(ended, Recurrence::end));
        start..end
    }
}
