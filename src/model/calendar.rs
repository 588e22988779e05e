//! Weeks and days in the configured time zone (docs/rules.md sections 1 and 10).
//!
//! A week runs from Monday 00:00:00 local time to the next Monday. Its key is
//! the number of whole weeks since Monday 1969-12-29; its label is ISO 8601,
//! `2026-W47`.

use chrono::{DateTime, Datelike, Days, LocalResult, NaiveDate, NaiveDateTime, Offset, TimeZone, Utc};
use chrono_tz::Tz;

use crate::model::keys::WeekKey;

pub const MINUTE_MS: i64 = 60_000;
pub const HOUR_MS: i64 = 60 * MINUTE_MS;
/// A day without a clock change. For local days see [`Calendar::day_start_ms`].
pub const DAY_MS: i64 = 24 * HOUR_MS;
/// A week without a clock change. For local weeks see [`Calendar::week_start_ms`].
pub const WEEK_MS: i64 = 7 * DAY_MS;

/// Computes weeks and days in one time zone. The default is UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calendar {
    zone: Tz,
}

impl Default for Calendar {
    fn default() -> Self {
        Calendar { zone: Tz::UTC }
    }
}

/// Day 0: the Monday before the Unix epoch (Thursday 1970-01-01).
pub fn epoch_monday() -> NaiveDate {
    NaiveDate::from_ymd_opt(1969, 12, 29).expect("a real date")
}

impl Calendar {
    /// Error: the name is not in the IANA time zone database.
    pub fn new(zone: &str) -> Result<Calendar, UnknownZone> {
        zone.parse().map(|zone| Calendar { zone }).map_err(|_| UnknownZone(zone.to_owned()))
    }

    pub fn zone_name(&self) -> &'static str {
        self.zone.name()
    }

    /// The number of the local day that contains `t_ms`. Day 0 is Monday 1969-12-29.
    pub fn day(&self, t_ms: i64) -> i64 {
        (t_ms + self.offset_ms(t_ms)).div_euclid(DAY_MS) + 3 // day 3 is 1970-01-01
    }

    /// The week that contains `t_ms`; week 0 for all earlier times.
    pub fn week(&self, t_ms: i64) -> WeekKey {
        WeekKey(self.day(t_ms).div_euclid(7).max(0) as u32)
    }

    /// Start of the week, Unix ms.
    pub fn week_start_ms(&self, week: WeekKey) -> i64 {
        self.day_start_ms(i64::from(week.0) * 7)
    }

    /// End of the week (exclusive), Unix ms.
    pub fn week_end_ms(&self, week: WeekKey) -> i64 {
        self.week_start_ms(WeekKey(week.0 + 1))
    }

    /// Start of a local day, Unix ms. `day` is numbered as by [`Calendar::day`]. If the clocks
    /// skip midnight, the day begins at the first time that exists.
    pub fn day_start_ms(&self, day: i64) -> i64 {
        let date = epoch_monday() + Days::new(day.max(0) as u64);
        self.first_time_ms(date.and_hms_opt(0, 0, 0).expect("midnight is a time"))
    }

    /// The first time at which local clocks show `local`, a midnight, Unix ms. If they skip it,
    /// `local` is advanced in steps of 15 minutes to a time that exists. That time is the end of
    /// the skipped hours: of all midnights that the zones of the database skip from 1970 to 2099,
    /// the first existing time is a multiple of 15 minutes after midnight, except on 1972-01-07
    /// in Africa/Monrovia (30 s less) and 1979-10-01 in Pacific/Kiritimati (5 minutes less).
    fn first_time_ms(&self, mut local: NaiveDateTime) -> i64 {
        loop {
            match self.zone.from_local_datetime(&local) {
                LocalResult::Single(t) => return t.timestamp_millis(),
                LocalResult::Ambiguous(early, _) => return early.timestamp_millis(),
                LocalResult::None => local += chrono::TimeDelta::minutes(15),
            }
        }
    }

    /// Local time minus UTC at `t_ms`, ms.
    fn offset_ms(&self, t_ms: i64) -> i64 {
        if self.zone == Tz::UTC {
            return 0;
        }
        let t = DateTime::<Utc>::from_timestamp_millis(t_ms).unwrap_or_default();
        i64::from(self.zone.offset_from_utc_datetime(&t.naive_utc()).fix().local_minus_utc()) * 1_000
    }
}

/// The ISO 8601 label of a week, such as `2026-W47`.
pub fn week_label(week: WeekKey) -> String {
    let monday = epoch_monday() + Days::new(u64::from(week.0) * 7);
    let iso = monday.iso_week();
    format!("{:04}-W{:02}", iso.year(), iso.week())
}

/// Parses a label as printed by [`week_label`]. Error: the label has another form, or the week
/// does not exist or is before week 0.
pub fn parse_week_label(text: &str) -> Result<WeekKey, WeekLabelError> {
    let invalid = || WeekLabelError(text.chars().take(40).collect());
    let (year, week) = text.split_once("-W").ok_or_else(invalid)?;
    if year.len() != 4 || week.len() != 2 || !text.bytes().all(|b| b.is_ascii_digit() || b == b'-' || b == b'W') {
        return Err(invalid());
    }
    let year: i32 = year.parse().map_err(|_| invalid())?;
    let week: u32 = week.parse().map_err(|_| invalid())?;
    let monday = NaiveDate::from_isoywd_opt(year, week, chrono::Weekday::Mon).ok_or_else(invalid)?;
    let days = (monday - epoch_monday()).num_days();
    u32::try_from(days / 7).ok().filter(|_| days >= 0).map(WeekKey).ok_or_else(invalid)
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time zone of the IANA database, such as \"UTC\" or \"Europe/Amsterdam\"")]
pub struct UnknownZone(pub String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an ISO week label, such as \"2026-W47\"")]
pub struct WeekLabelError(pub String);

/// `2026-11-23 20:15:00 UTC`
pub fn utc(t_ms: i64) -> String {
    let time = DateTime::<Utc>::from_timestamp_millis(t_ms);
    time.map_or_else(|| t_ms.to_string(), |time| time.format("%Y-%m-%d %H:%M:%S UTC").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utc_week_key_matches_the_rules_formula() {
        let utc = Calendar::default();
        for t_s in [0_i64, 345_599, 345_600, 1_763_931_636, 1_795_000_000, 4_102_444_800] {
            assert_eq!(i64::from(utc.week(t_s * 1_000).0), (t_s + 259_200).div_euclid(604_800));
        }
        let week = utc.week(1_763_931_636_059);
        assert_eq!(week_label(week), "2025-W47");
        assert_eq!(utc.week(utc.week_end_ms(week) - 1), week);
        assert_eq!(utc.week(utc.week_end_ms(week)).0, week.0 + 1);
    }

    #[test]
    fn week_labels_round_trip() {
        for key in 0..6_000 {
            assert_eq!(parse_week_label(&week_label(WeekKey(key))), Ok(WeekKey(key)));
        }
        for invalid in ["", "2026W47", "2026-W54", "2026-W00", "26-W1", "2026-W+1", "1969-W01", "2025-W53"] {
            assert!(parse_week_label(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn week_with_clock_change_is_an_hour_shorter_or_longer() {
        let ams = Calendar::new("Europe/Amsterdam").unwrap();
        let key = parse_week_label("2026-W13").unwrap(); // clocks go forward on the Sunday of this week
        assert_eq!(ams.week_end_ms(key) - ams.week_start_ms(key), WEEK_MS - HOUR_MS);
        let key = parse_week_label("2026-W43").unwrap(); // clocks go back on the Sunday of this week
        assert_eq!(ams.week_end_ms(key) - ams.week_start_ms(key), WEEK_MS + HOUR_MS);
        for key in 2_000..3_500 {
            let week = WeekKey(key);
            assert_eq!(ams.week(ams.week_start_ms(week)), week);
            assert_eq!(ams.week(ams.week_start_ms(week) - 1).0, key - 1);
        }
    }
}
