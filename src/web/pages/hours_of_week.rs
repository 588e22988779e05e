//! A value in each hour of the week, as a drawing with a row for each day. It is in UTC; the script moves the hours to the zone
//! of the visitor.

use maud::{Markup, html};

use super::format::weekday as short_weekday;
use crate::model::calendar::{DAY_MS, HOUR_MS};

// The drawings are as wide as a phone, so that their text is not made smaller.
pub(super) const LEFT: i64 = 88;
const CELL: i64 = 9;
pub(super) const ROW: i64 = 16;
pub(super) const PLOT_WIDTH: i64 = 24 * CELL;
pub(super) const WIDTH: i64 = LEFT + PLOT_WIDTH + 42;

/// 1970-01-05 was a Monday.
const MONDAY_MS: i64 = 4 * DAY_MS;

/// By weekday, from Monday, and hour; `None`: nothing is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HoursOfWeek([[Option<f64>; 24]; 7]);

impl HoursOfWeek {
    /// The value of the hour that begins at a time.
    pub fn at(&mut self, hour_ms: i64) -> &mut Option<f64> {
        // 1970-01-01 was a Thursday.
        let weekday = (hour_ms.div_euclid(DAY_MS) + 3).rem_euclid(7) as usize;
        &mut self.0[weekday][(hour_ms.rem_euclid(DAY_MS) / HOUR_MS) as usize]
    }

    /// The means of the values of hours, the last of which begins at `newest_ms`.
    pub fn of_means(newest_ms: i64, hours: &[Option<f64>]) -> HoursOfWeek {
        let (mut sums, mut counts) = (HoursOfWeek::default(), HoursOfWeek::default());
        for (back, value) in hours.iter().rev().enumerate() {
            let Some(value) = value else { continue };
            let hour_ms = newest_ms - back as i64 * HOUR_MS;
            *sums.at(hour_ms).get_or_insert(0.0) += value;
            *counts.at(hour_ms).get_or_insert(0.0) += 1.0;
        }
        for (sum, count) in sums.0.as_flattened_mut().iter_mut().zip(counts.0.as_flattened()) {
            *sum = sum.zip(*count).map(|(sum, count)| sum / count);
        }
        sums
    }

    pub fn largest(&self) -> f64 {
        self.0.as_flattened().iter().flatten().copied().fold(0.0, f64::max)
    }

    /// `text` says a value. The first letters of all `id`s of a page differ.
    pub fn draw(&self, id: &str, title: &str, caption: &str, text: impl Fn(f64) -> String) -> Markup {
        let largest = self.largest().max(f64::MIN_POSITIVE);
        let height = 7 * ROW + 18;
        let cell = &id[..1];
        html! {
            figure {
                svg viewBox={ "0 0 " (WIDTH) " " (height) } width=(WIDTH) height=(height) role="img" aria-labelledby=(id) data-left=(LEFT) data-hour=(CELL) {
                    title id=(id) { (title) }
                    // What is there 168 times is short: with all attributes and weekdays it was a fifth of the page of a server.
                    defs { rect id=(cell) y="1" width=(CELL - 1) height=(ROW - 2) {} }
                    @for (weekday, y) in (0..7).zip((0..).step_by(ROW as usize)) {
                        text x="0" y=(y + 12) { (short_weekday(MONDAY_MS + weekday as i64 * DAY_MS)) }
                        // A copied rectangle has the colour of its parent here; rules for it do not apply.
                        g .heat transform={ "translate(0 " (y) ")" } {
                            @for (hour, value) in self.0[weekday].iter().enumerate() {
                                @if let Some(value) = value.filter(|value| *value > 0.0) {
                                    use href={ "#" (cell) } x=(LEFT + hour as i64 * CELL) opacity=(opacity(value / largest)) {
                                        title { (hour) ":00, " (text(value)) }
                                    }
                                }
                            }
                        }
                        line .axis x1=(LEFT) x2=(LEFT + PLOT_WIDTH) y1=(y + ROW) y2=(y + ROW) {}
                    }
                    @for hour in [0, 6, 12, 18, 24] { (hour_mark(hour, height)) }
                }
                figcaption { (caption) }
            }
        }
    }
}

/// Of a share of the largest value: `.1` to `1`.
fn opacity(share: f64) -> String {
    let opacity = format!("{:.2}", 0.1 + 0.9 * share);
    opacity.strip_prefix('0').map_or_else(|| "1".to_owned(), |digits| digits.trim_end_matches('0').to_owned())
}

pub(super) fn hour_mark(hour: i64, height: i64) -> Markup {
    html! { text x=(LEFT + hour * CELL) y=(height - 4) text-anchor="middle" { (hour) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_have_the_mean_of_their_weeks() {
        // The newest hour is Thursday, 1970-01-15, 01:00; a week before it is the oldest.
        let newest_ms = 14 * DAY_MS + HOUR_MS;
        let mut hours = vec![None; 169];
        (hours[0], hours[167], hours[168]) = (Some(2.0), Some(7.0), Some(4.0));
        let mut means = HoursOfWeek::of_means(newest_ms, &hours);
        assert_eq!((*means.at(newest_ms), *means.at(newest_ms - HOUR_MS)), (Some(3.0), Some(7.0)));
        assert_eq!((*means.at(newest_ms + HOUR_MS), means.largest()), (None, 7.0));
        let drawn = means.draw("id", "title", "caption", |value| value.to_string()).into_string();
        assert!(drawn.contains(">1:00, 3<") && drawn.contains(">0:00, 7<"), "{drawn}");
        assert_eq!(drawn.matches("<use").count(), 2);
    }
}
