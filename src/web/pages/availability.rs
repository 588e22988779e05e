//! When a server was there: the share of the time, and its gaps.

use maud::{Markup, html};

use super::chart::rounded;
use super::format::{day, utc};
use super::hours_of_week::{LEFT, PLOT_WIDTH, WIDTH};
use crate::model::calendar::{DAY_MS, HOUR_MS};
use crate::model::view::SeriesView;
use crate::web::texts::text;

/// Days that are drawn.
const DAYS: usize = 30;

const CELL: i64 = PLOT_WIDTH / DAYS as i64;
const PLOT_HEIGHT: i64 = 48;
const HEIGHT: i64 = PLOT_HEIGHT + 22;

/// The share of the newest slots with a value, of those since a server is known. `None`: there are none.
fn share(values: &[Option<f64>], newest_ms: i64, slot_ms: i64, slots: usize, added_ms: i64) -> Option<f64> {
    let known = (newest_ms - added_ms).div_euclid(slot_ms).clamp(0, slots as i64 - 1) as usize + 1;
    let last = &values[values.len().saturating_sub(known)..];
    (!last.is_empty()).then(|| last.iter().flatten().count() as f64 / last.len() as f64)
}

/// Shares of the last 7, 30 and 365 days, and a drawing of the last 30.
pub(super) fn section(series: &SeriesView, added_ms: i64) -> Markup {
    let percent = |share: f64| rounded(share * 100.0);
    let of_hours = |days: usize| {
        let share = share(&series.hours, series.newest_hour_ms, HOUR_MS, days * 24, added_ms)?;
        Some((days, text!("availability-of-hours", percent = percent(share))))
    };
    let of_days = share(&series.days, series.newest_day_ms, DAY_MS, 365, added_ms);
    let of_days = of_days.map(|share| (365, text!("availability-of-days", percent = percent(share))));
    html! {
        dl .figures {
            @for (days, share) in [of_hours(7), of_hours(30), of_days].into_iter().flatten() {
                div { dt { (text!("availability-last-days", count = days)) } dd { (share) } }
            }
            div { dt { (text!("availability-known-since")) } dd { (day(added_ms)) } }
        }
        (drawing(series))
    }
}

/// A column for each day, as high as the share of its hours in which the server was seen.
fn drawing(series: &SeriesView) -> Markup {
    let newest_day = series.newest_hour_ms.div_euclid(DAY_MS);
    let days = (newest_day - DAYS as i64 + 1)..=newest_day;
    let seen: Vec<(i64, i64)> = days.map(|day| (day, hours_of_day(series, day))).collect();
    html! {
        figure {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } width=(WIDTH) height=(HEIGHT) role="img" aria-labelledby="availability-title" {
                title id="availability-title" { (text!("availability-title")) }
                text x=(LEFT - 6) y="12" text-anchor="end" { (text!("hours-only", hours = 24_u32)) }
                @for ((day, hours), x) in seen.iter().zip((LEFT..).step_by(CELL as usize)) {
                    @let height = hours * PLOT_HEIGHT / 24;
                    rect .heat x=(x) y=(PLOT_HEIGHT - height) width=(CELL - 1) height=(height) {
                        title { (text!("availability-day", date = utc(day * DAY_MS, "%Y-%m-%d"), count = *hours)) }
                    }
                }
                line .axis x1=(LEFT) x2=(LEFT + PLOT_WIDTH) y1=(PLOT_HEIGHT) y2=(PLOT_HEIGHT) {}
                text x=(LEFT) y=(HEIGHT - 4) { (utc(seen[0].0 * DAY_MS, "%m-%d")) }
                text x=(LEFT + PLOT_WIDTH) y=(HEIGHT - 4) text-anchor="end" { (utc(newest_day * DAY_MS, "%m-%d")) }
            }
            figcaption { (text!("availability-caption")) }
        }
    }
}

/// Hours of a day, in UTC, with a value.
fn hours_of_day(series: &SeriesView, day: i64) -> i64 {
    let is_seen = |hour: i64| {
        let back = (series.newest_hour_ms - (day * DAY_MS + hour * HOUR_MS)).div_euclid(HOUR_MS);
        let slot = usize::try_from(back).ok().and_then(|back| series.hours.len().checked_sub(back + 1));
        slot.is_some_and(|slot| series.hours[slot].is_some())
    };
    (0..24).filter(|hour| is_seen(*hour)).count() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(hours: Vec<Option<f64>>, newest_hour_ms: i64) -> SeriesView {
        SeriesView {
            newest_ten_minutes_ms: 0,
            ten_minutes: Vec::new(),
            newest_hour_ms,
            hours,
            newest_day_ms: newest_hour_ms.div_euclid(DAY_MS) * DAY_MS,
            days: vec![None, Some(1.0), Some(0.0)],
            newest_week_ms: 0,
            weeks: Vec::new(),
            ranks: Vec::new(),
            newest_rank_week_ms: None,
        }
    }

    #[test]
    fn time_before_a_server_was_known_does_not_count() {
        let hours = [None, None, Some(0.0), None, Some(3.0), Some(1.0)];
        let newest_ms = 100 * HOUR_MS;
        let of = |slots, added_ms| share(&hours, newest_ms, HOUR_MS, slots, added_ms);
        assert_eq!(of(6, 0), Some(0.5));
        assert_eq!(of(4, 0), Some(0.75));
        assert_eq!(of(6, newest_ms - HOUR_MS + 5), Some(1.0), "it was added in the newest hour but one");
        assert_eq!(of(6, newest_ms + 5), Some(1.0), "in the newest one");
        assert_eq!(share(&[], newest_ms, HOUR_MS, 6, 0), None);
    }

    #[test]
    fn days_show_their_hours() {
        // Until 01:00 of the day 20; 20 hours of the day before.
        let hours = [vec![None; 4], vec![Some(0.0); 22]].concat();
        let series = series(hours, 20 * DAY_MS + HOUR_MS);
        assert_eq!((hours_of_day(&series, 20), hours_of_day(&series, 19), hours_of_day(&series, 18)), (2, 20, 0));
        let drawn = section(&series, 0).into_string();
        assert!(drawn.contains("1970-01-20: 20 of 24 hours") && drawn.contains("66.7 % of the days"), "{drawn}");
        assert!(drawn.contains("<title>1969-12-23: 0 of 24 hours"), "{drawn}");
    }
}
