//! Charts of a value over time as SVG: complete without scripts and styles of their own. Gaps
//! without data stay gaps.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use maud::{Markup, html};

use super::format::{day_ms, short_day, utc};
use crate::model::WeekKey;
use crate::model::calendar::{Calendar, DAY_MS, WEEK_MS, parse_week_label};
use crate::web::texts::{decimal, grouped, text};

/// A value in each slot of time, oldest first; `None` is no data.
pub(super) struct Series<'a> {
    /// Start of the newest slot, Unix ms.
    pub newest_ms: i64,
    pub slot_ms: i64,
    pub values: &'a [Option<f64>],
    /// The newest slot has not ended: its value will change.
    pub is_running: bool,
}

impl Series<'_> {
    /// Start of a slot, Unix ms; of a slot of days, midnight of its first day in UTC, so that its date is right.
    pub fn slot_start_ms(&self, slot: usize) -> i64 {
        let newest_ms = if self.is_of_days() { day_ms(self.newest_ms) } else { self.newest_ms };
        newest_ms - (self.values.len() - 1 - slot) as i64 * self.slot_ms
    }

    fn is_of_days(&self) -> bool {
        self.slot_ms >= DAY_MS
    }

    /// What follows a text about the times: days are those of the site, others are in UTC.
    pub fn zone(&self) -> &'static str {
        if self.is_of_days() { "" } else { ", UTC" }
    }

    /// Begins with the first value; at least [`SLOTS_MIN`] slots remain.
    fn without_empty_past(&self) -> Self {
        let empty = self.values.iter().position(Option::is_some).unwrap_or(0);
        let first = empty.min(self.values.len().saturating_sub(SLOTS_MIN));
        Series { values: &self.values[first..], ..*self }
    }

    pub fn has_data(&self) -> bool {
        self.values.iter().any(Option::is_some)
    }

    pub fn has_values(&self, min: usize) -> bool {
        self.values.iter().flatten().count() >= min
    }
}

/// Which values are at the top of the chart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum High {
    /// Many players; the axis begins at 0.
    Large,
    /// A high rating; the axis begins below the smallest.
    LargeFromSmallest,
    /// The first rank; the axis begins at 1.
    Small,
}

/// Text is 18 units high, on phones 26 (style.css). A chart is at least 480 pixels wide, on phones 320, so text has at least 11
/// pixels on the screen. The margins have room for the larger text.
const WIDTH: i64 = 720;
const HEIGHT: i64 = 220;
const LEFT: i64 = 84;
const RIGHT: i64 = 12;
const TOP: i64 = 14;
const BOTTOM: i64 = 34;
const PLOT_WIDTH: i64 = WIDTH - LEFT - RIGHT;
const PLOT_HEIGHT: i64 = HEIGHT - TOP - BOTTOM;

/// Marks of the time axis.
const TIME_MARKS: usize = 5;

/// Fewer slots are not drawn, though the past was empty.
const SLOTS_MIN: usize = 2;

/// Slots of a sparkline that are drawn as one point.
const SLOTS_PER_POINT: usize = 3;

/// Points of a sparkline of 25 hours.
pub(in crate::web) const SPARKLINE_POINTS: i64 = 50;

/// A chart with axes. `id` is unique on the page; `title` and `unit` say what is shown.
pub(super) fn chart(id: &str, title: &str, unit: &str, series: &Series<'_>, high: High, table: &str) -> Markup {
    let series = &series.without_empty_past();
    let known = || series.values.iter().flatten().copied();
    let newest = series.values.last().copied().flatten();
    let largest = known().fold(0.0, f64::max);
    let smallest = if high == High::LargeFromSmallest { known().fold(f64::INFINITY, f64::min) } else { 0.0 };
    let step = mark_step(largest - smallest);
    let first_mark = (smallest / step).floor();
    // There is no rank 0.
    let least = if high == High::Small { 1.0 } else { f64::NEG_INFINITY };
    let marks = (largest.max(least + 1.0) / step - first_mark).ceil().max(1.0);
    let min = (first_mark * step).max(least);
    let scale = Scale { slots: series.values.len(), min, max: (first_mark + marks) * step, high };
    let mark_text = |slot| {
        let start_ms = series.slot_start_ms(slot);
        match series.values.len() as i64 * series.slot_ms / DAY_MS {
            0..=2 => utc(start_ms, "%H:%M"),
            3..=370 => short_day(start_ms),
            _ => utc(start_ms, "%Y-%m"),
        }
    };
    html! {
        figure {
            h3 { (title) }
            p .soft { (figures(series, high)) }
            svg .chart viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } width=(WIDTH) height=(HEIGHT) role="img" aria-labelledby={ (id) "-title" }
                data-values=(values(series.values)) data-newest=(series.slot_start_ms(series.values.len().saturating_sub(1))) data-slot=(series.slot_ms) data-left=(LEFT) data-width=(PLOT_WIDTH) {
                title id={ (id) "-title" } {
                    @match newest {
                        Some(newest) => (text!("chart-title-newest", title = title, unit = unit, newest = rounded(newest), largest = rounded(largest))),
                        None if series.has_data() => (text!("chart-title-largest", title = title, unit = unit, largest = rounded(largest))),
                        None => (text!("chart-title", title = title, unit = unit)),
                    }
                }
                @for mark in 0..=marks as i64 {
                    @let value = ((first_mark + mark as f64) * step).max(least);
                    @let y = scale.y(value);
                    line .axis x1=(LEFT) x2=(WIDTH - RIGHT) y1=(y) y2=(y) {}
                    text x=(LEFT - 8) y=(y + 6) text-anchor="end" { (rounded(value)) }
                }
                @for (n, (slot, anchor)) in time_marks(series.values.len()).into_iter().enumerate() {
                    // Phones show every second mark.
                    text class=[(n % 2 == 1).then_some("wide")] data-slot=(slot) x=(scale.x(slot)) y=(HEIGHT - 6) text-anchor=(anchor) { (mark_text(slot)) }
                }
                @if high == High::Large { path .area d=(area(series.values, &scale)) {} }
                @let (ended, running) = split_running(series);
                path .line d=(line(ended, &scale)) {}
                @if let Some([before, now]) = running {
                    @let last = series.values.len() - 1;
                    line .running x1=(scale.x(last - 1)) y1=(scale.y(before)) x2=(scale.x(last)) y2=(scale.y(now)) {}
                }
                path .points d=(points(series.values, &scale)) {}
            }
            figcaption {
                (text!("chart-caption", unit = unit, zone = series.zone())) " "
                @if series.is_running { (text!("chart-running")) " " }
                a href=(table) { (text!("chart-table")) }
            }
        }
    }
}

/// `now 12 · peak 35 · mean 20`.
fn figures(series: &Series<'_>, high: High) -> String {
    let known: Vec<f64> = series.values.iter().flatten().copied().collect();
    // The last week of a player may be long ago; other series go on until now.
    let is_now = series.slot_ms < WEEK_MS || series.is_running;
    let now =
        series.values.last().copied().flatten().filter(|_| is_now).map(|now| text!("chart-now", value = rounded(now)));
    let peak = match high {
        High::Large | High::LargeFromSmallest => {
            known.iter().copied().reduce(f64::max).map(|peak| text!("chart-peak", value = rounded(peak)))
        }
        High::Small => known.iter().copied().reduce(f64::min).map(|best| text!("chart-best", value = rounded(best))),
    };
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    let mean = (!known.is_empty()).then(|| text!("chart-mean", value = rounded(mean)));
    [now, peak, mean].into_iter().flatten().collect::<Vec<_>>().join(" \u{b7} ")
}

/// The values for the script, which shows the one under the pointer.
fn values(values: &[Option<f64>]) -> String {
    values.iter().map(|value| value.map_or_else(String::new, rounded_plain)).collect::<Vec<_>>().join(",")
}

/// A value in each week.
pub(super) type WeekValues = BTreeMap<WeekKey, f64>;

/// A chart of values by week; nothing if there are fewer than two. The page also has the values as a
/// table with the id `weeks`.
/// `running`: the label of the running week.
pub(super) fn week_chart(id: &str, title: &str, unit: &str, values: &WeekValues, high: High, running: &str) -> Markup {
    let (Some((&first, _)), Some((&last, _)), 2..) = (values.first_key_value(), values.last_key_value(), values.len())
    else {
        return html! {};
    };
    let slots: Vec<Option<f64>> = (first.0..=last.0).map(|week| values.get(&WeekKey(week)).copied()).collect();
    // The chart shows the dates of Mondays, which are the same in all time zones.
    let is_running = parse_week_label(running).is_ok_and(|running| running == last);
    let newest_ms = Calendar::default().week_start_ms(last);
    let series = Series { newest_ms, slot_ms: WEEK_MS, values: &slots, is_running };
    chart(id, title, unit, &series, high, "#weeks")
}

/// A small chart without axes for a row of a table.
pub(super) fn sparkline(title: &str, values: &[Option<f64>]) -> Markup {
    html! {
        svg .spark viewBox="0 0 100 20" width="100" height="20" role="img" aria-label=(title) {
            path .line d=(path_data(&sparkline_runs(values, 2, 20))) {}
        }
    }
}

/// Points of a line without a gap: x, and y from the upper edge.
pub(in crate::web) type Run = Vec<(i64, i64)>;

/// The line of a sparkline of this height, with a point every `step` pixels; it has gaps where
/// nothing is known.
pub(in crate::web) fn sparkline_runs(values: &[Option<f64>], step: i64, height: i64) -> Vec<Run> {
    let points: Vec<Option<f64>> = values.chunks(SLOTS_PER_POINT).take(SPARKLINE_POINTS as usize).map(mean).collect();
    let max = points.iter().flatten().copied().fold(1.0, f64::max);
    let y = |value: f64| height - 1 - ((value / max).clamp(0.0, 1.0) * (height - 2) as f64).round() as i64;
    let at: Vec<Option<(i64, i64)>> =
        (0..).zip(&points).map(|(x, value)| value.map(|value| (step * x, y(value)))).collect();
    at.split(Option::is_none)
        .map(|run| run.iter().flatten().copied().collect())
        .filter(|run: &Run| !run.is_empty())
        .collect()
}

/// The attribute `d` of a path in an SVG.
pub(in crate::web) fn path_data(runs: &[Run]) -> String {
    let mut d = String::new();
    for run in runs {
        for (n, (x, y)) in run.iter().enumerate() {
            let _ = write!(d, "{}{x} {y}", if n == 0 { "M" } else { "L" });
        }
    }
    d
}

fn mean(slots: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = slots.iter().flatten().copied().collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// Where values are on the chart.
struct Scale {
    slots: usize,
    min: f64,
    max: f64,
    high: High,
}

impl Scale {
    fn x(&self, slot: usize) -> i64 {
        LEFT + slot as i64 * PLOT_WIDTH / (self.slots.max(2) as i64 - 1)
    }

    fn y(&self, value: f64) -> i64 {
        let share = ((value - self.min) / (self.max - self.min)).clamp(0.0, 1.0) * PLOT_HEIGHT as f64;
        match self.high {
            High::Large | High::LargeFromSmallest => TOP + PLOT_HEIGHT - share.round() as i64,
            High::Small => TOP + share.round() as i64,
        }
    }
}

/// Runs of values without a gap: the first slot, and the values.
fn runs(values: &[Option<f64>]) -> Vec<(usize, Vec<f64>)> {
    let mut runs: Vec<(usize, Vec<f64>)> = Vec::new();
    let mut is_open = false;
    for (slot, value) in values.iter().enumerate() {
        match (value, runs.last_mut().filter(|_| is_open)) {
            (Some(value), Some((_, run))) => run.push(*value),
            (Some(value), None) => runs.push((slot, vec![*value])),
            (None, _) => (),
        }
        is_open = value.is_some();
    }
    runs
}

fn line(values: &[Option<f64>], scale: &Scale) -> String {
    let mut d = String::new();
    for (first, run) in runs(values).iter().filter(|(_, run)| run.len() > 1) {
        write_run(&mut d, *first, run, scale);
    }
    d
}

/// The points of a run. They are relative, which takes half of the bytes.
fn write_run(d: &mut String, first: usize, run: &[f64], scale: &Scale) {
    let mut at = (0, 0);
    for (slot, value) in (first..).zip(run) {
        let point = (scale.x(slot), scale.y(*value));
        let before = if slot == first {
            "M"
        } else if slot == first + 1 {
            "l"
        } else {
            " "
        };
        let _ = write!(d, "{before}{} {}", point.0 - at.0, point.1 - at.1);
        at = point;
    }
}

/// The values without that of a running slot; the last two, if there are both.
fn split_running<'v>(series: &Series<'v>) -> (&'v [Option<f64>], Option<[f64; 2]>) {
    match series.values {
        [.., Some(before), Some(now)] if series.is_running => {
            (&series.values[..series.values.len() - 1], Some([*before, *now]))
        }
        values => (values, None),
    }
}

/// Values between two gaps.
fn points(values: &[Option<f64>], scale: &Scale) -> String {
    let mut d = String::new();
    for (slot, run) in runs(values).iter().filter(|(_, run)| run.len() == 1) {
        let _ = write!(d, "M{} {}h0", scale.x(*slot), scale.y(run[0]));
    }
    d
}

fn area(values: &[Option<f64>], scale: &Scale) -> String {
    let mut d = String::new();
    for (first, run) in runs(values) {
        write_run(&mut d, first, &run, scale);
        let _ = write!(d, "V{}H{}Z", scale.y(0.0), scale.x(first));
    }
    d
}

/// Slots with a mark on the time axis, and how its text is aligned.
fn time_marks(slots: usize) -> Vec<(usize, &'static str)> {
    let last = slots.saturating_sub(1);
    let marks = TIME_MARKS.min(slots.max(1));
    let anchor = |mark: usize| match mark {
        0 => "start",
        _ if mark + 1 == marks => "end",
        _ => "middle",
    };
    (0..marks).map(|mark| (mark * last / marks.saturating_sub(1).max(1), anchor(mark))).collect()
}

/// Distance of the marks of the value axis: 1, 2 or 5 times a power of ten, so that there are at
/// most five.
fn mark_step(max: f64) -> f64 {
    let least = (max / 5.0).max(f64::MIN_POSITIVE);
    let power = 10_f64.powf(least.log10().floor()).max(1.0);
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= least).unwrap_or(10.0 * power)
}

/// As [`rounded`], for programs: the same in all languages.
fn rounded_plain(value: f64) -> String {
    match whole_and_tenth(value) {
        (whole, 0) => whole.to_string(),
        (whole, tenth) => format!("{whole}.{tenth}"),
    }
}

/// A value with one decimal, if it is not a whole number.
pub(super) fn rounded(value: f64) -> String {
    match whole_and_tenth(value) {
        (whole, 0) => grouped(whole),
        (whole, tenth) => grouped(whole) + &decimal(format!(".{tenth}")),
    }
}

/// A value with one decimal, for columns.
pub(super) fn tenths(value: f64) -> String {
    let (whole, tenth) = whole_and_tenth(value);
    grouped(whole) + &decimal(format!(".{tenth}"))
}

/// A share as a percentage: `66.7 %`.
pub(super) fn percent(share: f64) -> Cow<'static, str> {
    text!("percent", number = tenths(share * 100.0))
}

fn whole_and_tenth(value: f64) -> (i64, u64) {
    let tenths = (value * 10.0).round() as i64;
    (tenths / 10, tenths.unsigned_abs() % 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::texts::Language;

    #[test]
    fn gaps_interrupt_the_line() {
        let values = [Some(1.0), Some(2.0), None, Some(2.0), None];
        let scale = Scale { slots: 5, min: 0.0, max: 2.0, high: High::Large };
        assert_eq!(line(&values, &scale), "M84 100l156 -86");
        assert_eq!(points(&values, &scale), "M552 14h0");
        assert_eq!(area(&values, &scale), "M84 100l156 -86V186H84ZM552 14V186H552Z");
        assert_eq!(line(&[None; 3], &scale), "");
    }

    #[test]
    fn empty_past_is_not_drawn() {
        let mut values = vec![None; 100];
        values.extend([Some(1.0); 30]);
        let series = |values| Series { newest_ms: 0, slot_ms: 1, values, is_running: false };
        let shown = |values| series(values).without_empty_past().values.len();
        assert_eq!((shown(&values[..]), shown(&values[..102]), shown(&values[..5])), (30, SLOTS_MIN, 5));
        assert_eq!(series(&values).without_empty_past().slot_start_ms(29), 0);
    }

    #[test]
    fn graphs_have_figures_and_few_values_no_graph() {
        let of = |values, slot_ms, is_running| Series { newest_ms: 0, slot_ms, values, is_running };
        let values = [Some(1.0), None, Some(4.5)];
        for (slot_ms, is_running) in [(DAY_MS, false), (WEEK_MS, true)] {
            let shown = figures(&of(&values, slot_ms, is_running), High::Large);
            assert_eq!(shown, "now 4.5 \u{b7} peak 4.5 \u{b7} mean 2.8");
        }
        assert_eq!(figures(&of(&values, WEEK_MS, false), High::Large), "peak 4.5 \u{b7} mean 2.8");
        assert_eq!(figures(&of(&[Some(1.0), None], DAY_MS, false), High::Small), "best 1 \u{b7} mean 1");
        assert_eq!(figures(&of(&[None], DAY_MS, false), High::Large), "");
        let series = Series { newest_ms: 0, slot_ms: 1, values: &[Some(1.0), None, Some(2.0)], is_running: false };
        assert!(series.has_values(2) && !series.has_values(3));
    }

    #[test]
    fn first_rank_is_high() {
        let scale = Scale { slots: 2, min: 0.0, max: 100.0, high: High::Small };
        assert!(scale.y(1.0) < scale.y(50.0));
    }

    #[test]
    fn a_running_week_is_dashed() {
        let weeks: WeekValues = [(WeekKey(1), 5.0), (WeekKey(2), 7.0), (WeekKey(3), 1.0)].into();
        let running = crate::model::calendar::week_label(WeekKey(3));
        let drawn = |running: &str| week_chart("h", "Hours", "h", &weeks, High::Large, running).into_string();
        assert!(drawn(&running).contains("class=\"running\" x1=") && drawn(&running).contains("still running"));
        assert!(!drawn("2001-W01").contains("running"));
    }

    #[test]
    fn there_is_no_rank_0() {
        let series = |values| Series { newest_ms: 0, slot_ms: DAY_MS, values, is_running: false };
        let svg = |values| chart("r", "Rank", "", &series(values), High::Small, "#").into_string();
        for values in [&[Some(1.0)][..], &[Some(1.0), Some(1.0)], &[Some(1.0), Some(250.0)]] {
            let svg = svg(values);
            assert!(svg.contains(">1<") && !svg.contains(">0<") && !svg.contains("NaN"), "{svg}");
        }
    }

    #[test]
    fn axis_of_ratings_begins_below_the_smallest() {
        let values = [Some(980.0), None, Some(1_013.0)];
        let series = Series { newest_ms: 0, slot_ms: DAY_MS, values: &values, is_running: false };
        let svg = chart("elo", "ELO", "rating", &series, High::LargeFromSmallest, "#").into_string();
        assert!(svg.contains(">980<") && svg.contains(">1,020<") && !svg.contains(">0<"), "{svg}");
        assert!(svg.contains("d=\"M84 186h0M708 44h0\""), "{svg}");
    }

    #[test]
    fn axes_have_round_marks() {
        for (max, want) in [(0.0, 1.0), (4.0, 1.0), (7.0, 2.0), (16.0, 5.0), (64.0, 20.0), (20_000.0, 5_000.0)] {
            assert_eq!(mark_step(max), want, "{max}");
        }
        assert_eq!(time_marks(150), [(0, "start"), (37, "middle"), (74, "middle"), (111, "middle"), (149, "end")]);
        assert_eq!(time_marks(1), [(0, "start")]);
        assert_eq!(time_marks(0), [(0, "start")]);
        assert_eq!((rounded(7.0), rounded(2.04), rounded(1_234.56)), ("7".into(), "2".into(), "1,234.6".into()));
        assert_eq!((tenths(7.0), tenths(1_234.56)), ("7.0".into(), "1,234.6".into()));
    }

    #[test]
    fn values_for_the_script_are_the_same_in_all_languages() {
        let shown = Language::German.within(|| (rounded(1_234.56), rounded_plain(1_234.56), rounded_plain(-2_000.0)));
        assert_eq!(shown, ("1.234,6".into(), "1234.6".into(), "-2000".into()));
    }
}
