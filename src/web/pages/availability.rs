//! When a server was there: the share of the time, and its gaps. Hours in which this site itself did not look do not count.

use maud::{Markup, html};

use super::chart::rounded;
use super::format::{day, short_day, utc};
use super::hours_of_week::{LEFT, PLOT_WIDTH, WIDTH};
use crate::model::calendar::{DAY_MS, HOUR_MS};
use crate::view::{OnlineSeriesView, SeriesView, SlotsView};
use crate::web::texts::text;

/// Days that are drawn.
const DAYS: usize = 30;

const CELL: i64 = PLOT_WIDTH / DAYS as i64;
const PLOT_HEIGHT: i64 = 48;
const HEIGHT: i64 = PLOT_HEIGHT + 22;

/// A site that sees none of so many servers any more does not look: its daemon or its network is down. Fewer may all be away.
const SERVERS_MIN: u32 = 20;

/// When this site looked at servers.
#[derive(Clone, Copy)]
struct Watch<'s> {
    /// All servers that were seen; `None`: not known yet.
    site: Option<&'s SlotsView>,
    slot_ms: i64,
}

impl Watch<'_> {
    /// Whether the site looked in the slot that begins then: it saw servers, or had seen few before. Slots that it does not know
    /// count. A day in which clocks are changed is an hour shorter or longer.
    fn is_on(self, start_ms: i64) -> bool {
        let Some(site) = self.site else { return true };
        let back = (site.newest_ms - start_ms + self.slot_ms / 2).div_euclid(self.slot_ms);
        let slot = usize::try_from(back).ok().and_then(|back| site.servers.len().checked_sub(back + 1));
        let had_few =
            |slot: usize| site.servers[..slot].iter().flatten().next_back().is_none_or(|&seen| seen < SERVERS_MIN);
        slot.is_none_or(|slot| site.servers[slot].is_some() || had_few(slot))
    }

    /// The share of the newest slots with a value, of those in which a server was known and the site looked. `None`: there
    /// are none.
    fn share(self, values: &[Option<f64>], newest_ms: i64, slots: usize, added_ms: i64) -> Option<f64> {
        let starts = (0..slots as i64).map(|back| newest_ms - back * self.slot_ms);
        let of_site = values.iter().rev().zip(starts).take_while(|(_, start_ms)| start_ms + self.slot_ms > added_ms);
        let counted: Vec<bool> =
            of_site.filter(|(_, start)| self.is_on(*start)).map(|(value, _)| value.is_some()).collect();
        (!counted.is_empty()).then(|| counted.iter().filter(|is_seen| **is_seen).count() as f64 / counted.len() as f64)
    }
}

/// Shares of the last 7, 30 and 365 days, and a drawing of the last 30. `site`: of all servers.
pub(super) fn section(series: &SeriesView, added_ms: i64, site: Option<&OnlineSeriesView>) -> Markup {
    let watch = Watch { site: site.map(|site| &site.hours), slot_ms: HOUR_MS };
    let percent = |share: f64| rounded(share * 100.0);
    let of_hours = |days: usize| {
        let share = watch.share(&series.hours, series.newest_hour_ms, days * 24, added_ms)?;
        Some((days, text!("availability-of-hours", percent = percent(share))))
    };
    let of_days = Watch { site: site.map(|site| &site.days), slot_ms: DAY_MS };
    let of_days = of_days.share(&series.days, series.newest_day_ms, 365, added_ms);
    let of_days = of_days.map(|share| (365, text!("availability-of-days", percent = percent(share))));
    html! {
        dl .figures {
            @for (days, share) in [of_hours(7), of_hours(30), of_days].into_iter().flatten() {
                div { dt { (text!("availability-last-days", count = days)) } dd { (share) } }
            }
            div { dt { (text!("availability-known-since")) } dd { (day(added_ms)) } }
        }
        (drawing(series, added_ms, watch))
    }
}

/// A column for each day, as high as the share of its hours in which the server was seen; above it, those in which the site
/// did not look.
fn drawing(series: &SeriesView, added_ms: i64, watch: Watch<'_>) -> Markup {
    let newest_day = series.newest_hour_ms.div_euclid(DAY_MS);
    let days = (newest_day - DAYS as i64 + 1)..=newest_day;
    let starts = |day: i64| (0..24).map(move |hour| day * DAY_MS + hour * HOUR_MS);
    let is_unwatched = |start_ms: &i64| start_ms + HOUR_MS > added_ms && !watch.is_on(*start_ms);
    let unwatched = |day: i64| starts(day).filter(is_unwatched).count() as i64;
    let seen: Vec<(i64, i64, i64)> = days.map(|day| (day, hours_of_day(series, day), unwatched(day))).collect();
    html! {
        figure {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } width=(WIDTH) height=(HEIGHT) role="img" aria-labelledby="availability-title" {
                title id="availability-title" { (text!("availability-title")) }
                text x=(LEFT - 6) y="12" text-anchor="end" { (text!("hours-only", hours = 24_u32)) }
                @for (&(day, hours, unwatched), x) in seen.iter().zip((LEFT..).step_by(CELL as usize)) {
                    @let height = hours * PLOT_HEIGHT / 24;
                    @let date = utc(day * DAY_MS, "%Y-%m-%d");
                    rect .heat x=(x) y=(PLOT_HEIGHT - height) width=(CELL - 1) height=(height) {
                        title { (text!("availability-day", date = &*date, count = hours)) }
                    }
                    @if unwatched > 0 {
                        @let above = unwatched * PLOT_HEIGHT / 24;
                        rect .area x=(x) y=(PLOT_HEIGHT - height - above) width=(CELL - 1) height=(above) {
                            title { (text!("availability-unwatched", date = &*date, hours = unwatched)) }
                        }
                    }
                }
                line .axis x1=(LEFT) x2=(LEFT + PLOT_WIDTH) y1=(PLOT_HEIGHT) y2=(PLOT_HEIGHT) {}
                text x=(LEFT) y=(HEIGHT - 4) { (short_day(seen[0].0 * DAY_MS)) }
                text x=(LEFT + PLOT_WIDTH) y=(HEIGHT - 4) text-anchor="end" { (short_day(newest_day * DAY_MS)) }
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
        let of = |slots, added_ms| Watch { site: None, slot_ms: HOUR_MS }.share(&hours, newest_ms, slots, added_ms);
        assert_eq!(of(6, 0), Some(0.5));
        assert_eq!(of(4, 0), Some(0.75));
        assert_eq!(of(6, newest_ms - 2 * HOUR_MS + 5), Some(2.0 / 3.0), "it was added in the newest hour but two");
        assert_eq!(of(6, newest_ms - HOUR_MS), Some(1.0), "in the newest but one");
        assert_eq!(of(6, newest_ms + HOUR_MS), None, "after the newest one");
        assert_eq!(Watch { site: None, slot_ms: HOUR_MS }.share(&[], newest_ms, 6, 0), None);
    }

    #[test]
    fn time_in_which_the_site_did_not_look_does_not_count() {
        let hours = [Some(2.0), None, None, Some(2.0), None, Some(1.0)];
        let newest_ms = 100 * HOUR_MS;
        let site = |servers: Vec<Option<u32>>| SlotsView {
            // The site knows the newest hour later.
            newest_ms: newest_ms - HOUR_MS,
            players: Vec::new(),
            servers,
        };
        let of = |site: &SlotsView| Watch { site: Some(site), slot_ms: HOUR_MS }.share(&hours, newest_ms, 6, 0);
        let many = site(vec![Some(29), None, None, Some(29), Some(28)]);
        assert_eq!(of(&many), Some(0.75), "of four hours, one was missed");
        let few = site(vec![Some(14), None, None, Some(24), Some(23)]);
        assert_eq!(of(&few), Some(0.5), "they may all have been away");
        assert_eq!(of(&site(vec![Some(29)])), Some(0.5), "it does not know more");
        let drawn =
            drawing(&series(hours.to_vec(), newest_ms), 0, Watch { site: Some(&many), slot_ms: HOUR_MS }).into_string();
        assert!(drawn.contains("<title>1970-01-05: hours in which this site saw no server: 2<"), "{drawn}");
    }

    #[test]
    fn days_show_their_hours() {
        // Until 01:00 of the day 20; 20 hours of the day before.
        let hours = [vec![None; 4], vec![Some(0.0); 22]].concat();
        let series = series(hours, 20 * DAY_MS + HOUR_MS);
        assert_eq!((hours_of_day(&series, 20), hours_of_day(&series, 19), hours_of_day(&series, 18)), (2, 20, 0));
        let drawn = section(&series, 0, None).into_string();
        assert!(drawn.contains("1970-01-20: 20 of 24 hours") && drawn.contains("66.7 % of the days"), "{drawn}");
        assert!(drawn.contains("<title>1969-12-23: 0 of 24 hours"), "{drawn}");
    }
}
