//! Slots aligned to wall-clock time: samples are averaged into slots of ten minutes, slots into
//! hours, hours into days, days into weeks (docs/rules.md section 10).

use crate::model::WeekKey;
use crate::model::calendar::{Calendar, HOUR_MS, WEEK_MS};
use crate::model::server::{SeriesRecord, SeriesSums};
use crate::series::log_code::{decode, encode, pack_13, unpack_13};

pub const SLOT_MS: i64 = 600_000;
const SLOTS_PER_HOUR: i64 = HOUR_MS / SLOT_MS;

const HOURS_LEN: usize = 768;
const DAYS_LEN: usize = 365;
const RANKS_LEN: usize = 55;
/// The worst rank that is stored.
const RANK_MAX: u32 = 50_000;

const NO_DATA_8: u8 = 0xFF;

/// The series of a server that was never seen.
pub fn new_series() -> SeriesRecord {
    SeriesRecord {
        newest_ten_minutes_ms: 0,
        newest_hour_ms: 0,
        newest_day_ms: 0,
        newest_week_ms: 0,
        ten_minutes: pack_13(&[0x1FFF; 150]).to_vec(),
        hours: vec![NO_DATA_8; HOURS_LEN],
        days: vec![NO_DATA_8; DAYS_LEN],
        weeks: Vec::new(),
        ranks: vec![0; 2 * RANKS_LEN],
        newest_rank_week: None,
    }
}

/// Whether [`advance`] changes anything.
pub fn is_slot_over(sums: &SeriesSums, t_ms: i64) -> bool {
    sums.slot == 0 || t_ms.div_euclid(SLOT_MS) > sums.slot
}

/// Closes every slot that ended before `t_ms`. Returns whether the series changed. Earlier
/// times change nothing.
pub fn advance(sums: &mut SeriesSums, series: &mut SeriesRecord, calendar: &Calendar, t_ms: i64) -> bool {
    let slot = t_ms.div_euclid(SLOT_MS);
    if sums.slot == 0 {
        sums.slot = slot;
        return false;
    }
    if slot <= sums.slot {
        return false;
    }
    let (old_hour, hour) = (sums.slot.div_euclid(SLOTS_PER_HOUR), slot.div_euclid(SLOTS_PER_HOUR));

    let mean = take_mean(&mut sums.slot_sum, &mut sums.slot_n);
    push_slots(&mut series.ten_minutes, encode(mean, 13), slot - sums.slot);
    series.newest_ten_minutes_ms = (slot - 1) * SLOT_MS;
    add(mean, &mut sums.hour_sum, &mut sums.hour_n);
    sums.slot = slot;

    if hour > old_hour {
        let mean = take_mean(&mut sums.hour_sum, &mut sums.hour_n);
        push_bytes(&mut series.hours, encode(mean, 8) as u8, hour - old_hour);
        series.newest_hour_ms = (hour - 1) * HOUR_MS;
        add(mean, &mut sums.day_sum, &mut sums.day_n);
        // An hour belongs to the local day in which it begins.
        let (old_day, day) = (calendar.day(old_hour * HOUR_MS), calendar.day(hour * HOUR_MS));
        if day > old_day {
            let mean = take_mean(&mut sums.day_sum, &mut sums.day_n);
            push_bytes(&mut series.days, encode(mean, 8) as u8, day - old_day);
            series.newest_day_ms = calendar.day_start_ms(day - 1);
            add(mean, &mut sums.week_sum, &mut sums.week_n);
            let (old_week, week) = (old_day.div_euclid(7), day.div_euclid(7));
            if week > old_week {
                let mean = take_mean(&mut sums.week_sum, &mut sums.week_n);
                series.weeks.push(encode(mean, 8) as u8);
                let empty = (week - old_week - 1).min(EMPTY_WEEKS_MAX) as usize;
                series.weeks.resize(series.weeks.len() + empty, NO_DATA_8);
                series.newest_week_ms = calendar.week_start_ms(WeekKey((week - 1).max(0) as u32));
            }
        }
    }
    true
}

/// The maximum number of empty weeks written at once, 20 years: a larger jump is a wrong clock.
const EMPTY_WEEKS_MAX: i64 = 1_040;

/// Adds a sample to the current slot; call `advance` for its time first.
pub fn add_sample(sums: &mut SeriesSums, count: u32) {
    add(Some(f64::from(count)), &mut sums.slot_sum, &mut sums.slot_n);
}

/// Sets a server's rank of a week. A week after the newest is appended; weeks in between are
/// not ranked. A week before the 55 kept ones changes nothing.
pub fn set_rank(series: &mut SeriesRecord, week: WeekKey, rank: Option<u32>) {
    let coded = rank.map_or(0, |rank| rank.min(RANK_MAX) as u16).to_be_bytes();
    let steps = match series.newest_rank_week {
        Some(newest) if newest >= week => {
            let back = (newest.0 - week.0) as usize;
            if let Some(at) = (RANKS_LEN - 1).checked_sub(back) {
                series.ranks[2 * at..2 * at + 2].copy_from_slice(&coded);
            }
            return;
        }
        Some(newest) => ((week.0 - newest.0) as usize).min(RANKS_LEN),
        None => 1,
    };
    series.ranks.drain(..2 * steps);
    series.ranks.resize(2 * (RANKS_LEN - 1), 0);
    series.ranks.extend_from_slice(&coded);
    series.newest_rank_week = Some(week);
}

/// Removes the rank of a week. If it is the newest, the previous week becomes the newest;
/// otherwise the week counts as not ranked.
pub fn remove_rank(series: &mut SeriesRecord, week: WeekKey) {
    match series.newest_rank_week {
        Some(newest) if newest == week => {
            series.ranks.truncate(2 * (RANKS_LEN - 1));
            series.ranks.splice(..0, [0, 0]);
            series.newest_rank_week = week.0.checked_sub(1).map(WeekKey);
        }
        Some(newest) if newest > week => set_rank(series, week, None),
        Some(_) | None => (),
    }
}

/// The newest rank that is not 0, with its week.
pub fn newest_rank(series: &SeriesRecord) -> Option<(WeekKey, u32)> {
    let newest = series.newest_rank_week?;
    let ranks = decode_ranks(&series.ranks);
    let back = ranks.iter().rev().position(|rank| *rank > 0)?;
    Some((WeekKey(newest.0.checked_sub(back as u32)?), u32::from(ranks[RANKS_LEN - 1 - back])))
}

/// Sets the time of the series back to `t_ms`: later slots are removed, and the sums of the
/// current hour, day and week are computed again from the remaining values. Values that the
/// later slots pushed out are lost.
pub fn rewind(sums: &mut SeriesSums, series: &mut SeriesRecord, calendar: &Calendar, t_ms: i64) {
    let slot = t_ms.div_euclid(SLOT_MS);
    if sums.slot == 0 || slot >= sums.slot {
        return;
    }
    let (old_hour, hour) = (sums.slot.div_euclid(SLOTS_PER_HOUR), slot.div_euclid(SLOTS_PER_HOUR));
    let (old_day, day) = (calendar.day(old_hour * HOUR_MS), calendar.day(hour * HOUR_MS));
    let (old_week, week) = (old_day.div_euclid(7), day.div_euclid(7));

    let mut codes = unpack_13(&series.ten_minutes);
    remove_newest(&mut codes, 0x1FFF, sums.slot - slot);
    series.ten_minutes = pack_13(&codes).to_vec();
    remove_newest(&mut series.hours, NO_DATA_8, old_hour - hour);
    remove_newest(&mut series.days, NO_DATA_8, old_day - day);
    // Weeks start at the first one, without padding.
    let weeks = series.weeks.len().saturating_sub((old_week - week).max(0) as usize);
    series.weeks.truncate(weeks);

    let newest = |is_known: bool, start_ms: i64| if is_known { start_ms } else { 0 };
    series.newest_ten_minutes_ms = newest(series.newest_ten_minutes_ms > 0, (slot - 1) * SLOT_MS);
    series.newest_hour_ms = newest(series.newest_hour_ms > 0, (hour - 1) * HOUR_MS);
    series.newest_day_ms = newest(series.newest_day_ms > 0, calendar.day_start_ms(day - 1));
    series.newest_week_ms = newest(weeks > 0, calendar.week_start_ms(WeekKey((week - 1).max(0) as u32)));

    *sums = sums_in_slot(series, calendar, slot);
}

/// The sums of a server whose series ends before the slot in progress, for a series without its
/// sums. The samples of that slot are lost; the means of earlier ones are those of the series.
pub fn resume(series: &SeriesRecord, calendar: &Calendar) -> SeriesSums {
    match series.newest_ten_minutes_ms {
        ..=0 => SeriesSums::default(),
        newest_ms => sums_in_slot(series, calendar, newest_ms.div_euclid(SLOT_MS) + 1),
    }
}

/// The sums at the start of a slot, from the values of the current hour, day and week.
fn sums_in_slot(series: &SeriesRecord, calendar: &Calendar, slot: i64) -> SeriesSums {
    let hour = slot.div_euclid(SLOTS_PER_HOUR);
    let day = calendar.day(hour * HOUR_MS);
    let week = day.div_euclid(7);
    let running = |means: &[Option<f64>], n: i64| {
        let newest = means.iter().rev().take(n.max(0) as usize).flatten();
        newest.fold((0.0, 0), |(sum, n), mean| (sum + mean, n + 1))
    };
    let hours_of_day = (0..hour).rev().take_while(|hour| calendar.day(hour * HOUR_MS) == day).count() as i64;
    let (hour_sum, hour_n) = running(&decode_slots(&series.ten_minutes), slot - hour * SLOTS_PER_HOUR);
    let (day_sum, day_n) = running(&decode_bytes(&series.hours), hours_of_day);
    let (week_sum, week_n) = running(&decode_bytes(&series.days), day - week * 7);
    SeriesSums { slot, slot_sum: 0.0, slot_n: 0, hour_sum, hour_n, day_sum, day_n, week_sum, week_n }
}

/// Whether each series has its length and a possible time: what `advance` and the decoders expect.
pub fn is_well_formed(series: &SeriesRecord) -> bool {
    let empty = new_series();
    let newest = [series.newest_ten_minutes_ms, series.newest_hour_ms, series.newest_day_ms, series.newest_week_ms];
    series.ten_minutes.len() == empty.ten_minutes.len()
        && series.hours.len() == HOURS_LEN
        && series.days.len() == DAYS_LEN
        && series.ranks.len() == 2 * RANKS_LEN
        && newest.iter().all(|start_ms| (0..TIME_MS_MAX).contains(start_ms))
        && series.newest_rank_week.is_none_or(|week| i64::from(week.0) < TIME_MS_MAX / WEEK_MS)
}

/// Later times are wrong: the year 6429.
const TIME_MS_MAX: i64 = 1 << 47;

/// Removes the newest values, keeping the length.
fn remove_newest<T: Copy>(ring: &mut [T], empty: T, steps: i64) {
    let (len, steps) = (ring.len(), steps.max(0) as usize);
    if steps >= len {
        return ring.fill(empty);
    }
    ring.copy_within(..len - steps, steps);
    ring[..steps].fill(empty);
}

/// Means of the 10-minute slots, oldest first.
pub fn decode_slots(blob: &[u8]) -> Vec<Option<f64>> {
    unpack_13(blob).iter().map(|&code| decode(code, 13)).collect()
}

/// Means of an 8-bit series, oldest first.
pub fn decode_bytes(blob: &[u8]) -> Vec<Option<f64>> {
    blob.iter().map(|&code| decode(u16::from(code), 8)).collect()
}

/// The number of values of an 8-bit series.
pub fn known_bytes(blob: &[u8]) -> u32 {
    blob.iter().map(|&code| u32::from(decode(u16::from(code), 8).is_some())).sum()
}

/// Weekly ranks, oldest first, 0 = not ranked.
pub fn decode_ranks(blob: &[u8]) -> Vec<u16> {
    blob.chunks_exact(2).map(|two| u16::from_be_bytes([two[0], two[1]])).collect()
}

fn take_mean(sum: &mut f64, n: &mut u32) -> Option<f64> {
    let mean = (*n > 0).then(|| *sum / f64::from(*n));
    (*sum, *n) = (0.0, 0);
    mean
}

fn add(value: Option<f64>, sum: &mut f64, n: &mut u32) {
    if let Some(value) = value {
        *sum += value;
        *n += 1;
    }
}

/// Appends one byte and then `steps - 1` bytes of no data, keeping the length.
fn push_bytes(ring: &mut [u8], byte: u8, steps: i64) {
    let len = ring.len();
    let steps = steps.clamp(1, len as i64 + 1) as usize;
    if steps > len {
        return ring.fill(NO_DATA_8);
    }
    ring.copy_within(steps.., 0);
    ring[len - steps] = byte;
    ring[len - steps + 1..].fill(NO_DATA_8);
}

fn push_slots(blob: &mut Vec<u8>, code: u16, steps: i64) {
    let mut codes = unpack_13(blob);
    let len = codes.len();
    let steps = steps.clamp(1, len as i64 + 1) as usize;
    if steps > len {
        codes.fill(0x1FFF);
    } else {
        codes.copy_within(steps.., 0);
        codes[len - steps] = code;
        codes[len - steps + 1..].fill(0x1FFF);
    }
    blob.clear();
    blob.extend_from_slice(&pack_13(&codes));
}

#[cfg(test)]
mod tests {
    use super::*;

    const MONDAY: i64 = 1_763_942_400_000; // 2025-11-24 00:00 UTC

    #[test]
    fn series_sizes_match_the_rules() {
        let series = new_series();
        let sizes = [series.ten_minutes.len(), series.hours.len(), series.days.len(), series.ranks.len()];
        assert_eq!(sizes, [250, 768, 365, 110]);
        let (mut sums, mut series) = (SeriesSums::default(), series);
        advance(&mut sums, &mut series, &Calendar::default(), MONDAY);
        add_sample(&mut sums, 5);
        advance(&mut sums, &mut series, &Calendar::default(), MONDAY + 7 * 86_400_000);
        assert_eq!(series.weeks.len(), 1, "one byte a week");
    }

    #[test]
    fn means_skip_empty_slots() {
        let calendar = Calendar::default();
        let (mut sums, mut series) = (SeriesSums::default(), new_series());
        let mut at = |t: i64, count: u32| {
            advance(&mut sums, &mut series, &calendar, MONDAY + t);
            add_sample(&mut sums, count);
        };
        at(0, 2);
        at(300_000, 4); // slot 0: 3
        at(1_200_000, 9); // slot 1 empty, slot 2: 9
        at(2 * HOUR_MS, 12); // hour 0: 6, hour 1 empty
        at(3 * HOUR_MS, 0); // hour 2: 12
        at(86_400_000, 1); // hour 3: 0; day: (6 + 12 + 0) / 3
        assert_eq!(series.newest_day_ms, MONDAY);
        assert_eq!(series.days[364], encode(Some(6.0), 8) as u8);
        assert_eq!(series.newest_hour_ms, MONDAY + 23 * HOUR_MS);
        let hours = decode_bytes(&series.hours);
        let tail = &hours[HOURS_LEN - 24..];
        assert!((tail[0].unwrap() - 6.0).abs() < 0.14);
        assert_eq!((tail[1], tail[3], tail[4]), (None, Some(0.0), None));
        let slots = decode_slots(&series.ten_minutes);
        let first = slots.len() - 144;
        assert!((slots[first].unwrap() - 3.0).abs() < 0.003);
        assert_eq!(slots[first + 1], None);
        assert_eq!(slots[first - 1], None);
    }

    /// A series whose sums are lost continues as if they were not lost, except for the last ten
    /// minutes and rounding.
    #[test]
    fn resumed_sums_continue_the_series() {
        let calendar = Calendar::new("Europe/Berlin").unwrap();
        for minutes in [1_i64, 9, 25, 130, 1_500, 9_000, 12_345, 40_000] {
            let (mut sums, mut series) = (SeriesSums::default(), new_series());
            for minute in (0..minutes).step_by(2) {
                advance(&mut sums, &mut series, &calendar, MONDAY + minute * 60_000);
                add_sample(&mut sums, (minute / 60 % 24) as u32);
            }
            let mut resumed = resume(&series, &calendar);
            let counts = |sums: &SeriesSums| (sums.hour_n, sums.day_n, sums.week_n);
            assert_eq!(counts(&resumed), counts(&sums), "{minutes}");
            let sums_of = |sums: &SeriesSums| [sums.hour_sum, sums.day_sum, sums.week_sum];
            let close = |(a, b): (f64, f64)| (a - b).abs() <= 0.03 * b;
            assert!(sums_of(&resumed).into_iter().zip(sums_of(&sums)).all(close), "{resumed:?} {sums:?}");
            if series.newest_ten_minutes_ms > 0 {
                assert_eq!(resumed.slot, sums.slot, "{minutes}");
            }
            // A week later every series has the same length and times.
            let (mut other, later_ms) = (series.clone(), MONDAY + minutes * 60_000 + 7 * 86_400_000);
            advance(&mut sums, &mut series, &calendar, later_ms);
            advance(&mut resumed, &mut other, &calendar, later_ms);
            if minutes > 10 {
                assert_eq!((other.newest_hour_ms, other.weeks.len()), (series.newest_hour_ms, series.weeks.len()));
                assert!(is_well_formed(&other) && is_well_formed(&series));
            }
        }
    }

    #[test]
    fn malformed_series_are_recognised() {
        type Change = fn(&mut SeriesRecord);
        let changes: [Change; 6] = [
            |it| it.ten_minutes.truncate(249),
            |it| it.hours.clear(),
            |it| it.days.push(0),
            |it| it.ranks.truncate(108),
            |it| it.newest_day_ms = -1,
            |it| it.newest_rank_week = Some(WeekKey(u32::MAX)),
        ];
        assert!(is_well_formed(&new_series()));
        for change in changes {
            let mut series = new_series();
            change(&mut series);
            assert!(!is_well_formed(&series), "{series:?}");
        }
    }

    #[test]
    fn series_are_empty_after_20_weeks_without_samples() {
        let calendar = Calendar::default();
        let (mut sums, mut series) = (SeriesSums::default(), new_series());
        advance(&mut sums, &mut series, &calendar, MONDAY);
        add_sample(&mut sums, 7);
        assert!(advance(&mut sums, &mut series, &calendar, MONDAY + 20 * 7 * 86_400_000));
        assert!(series.hours.iter().all(|&b| b == 0xFF));
        assert_eq!(series.weeks.len(), 20);
        assert_eq!(series.weeks[0], encode(Some(7.0), 8) as u8);
        assert_eq!(series.newest_week_ms, MONDAY + 19 * 7 * 86_400_000);
        assert!(!advance(&mut sums, &mut series, &calendar, MONDAY), "backwards changes nothing");
    }

    #[test]
    fn skipped_weeks_have_rank_0_and_ranks_cap_at_50000() {
        let mut series = new_series();
        set_rank(&mut series, WeekKey(100), Some(3));
        set_rank(&mut series, WeekKey(102), Some(70_000));
        let ranks = decode_ranks(&series.ranks);
        assert_eq!(ranks.len(), 55);
        assert_eq!(ranks[52..], [3, 0, 50_000]);
        set_rank(&mut series, WeekKey(500), None);
        assert_eq!(decode_ranks(&series.ranks), [0; 55]);
    }

    #[test]
    fn removed_and_restored_rank_leaves_series_unchanged() {
        let mut series = new_series();
        for (week, rank) in [(100, 3), (102, 4), (103, 5)] {
            set_rank(&mut series, WeekKey(week), Some(rank));
        }
        let before = series.clone();
        assert_eq!(newest_rank(&series), Some((WeekKey(103), 5)));
        remove_rank(&mut series, WeekKey(103));
        assert_eq!((newest_rank(&series), series.newest_rank_week), (Some((WeekKey(102), 4)), Some(WeekKey(102))));
        remove_rank(&mut series, WeekKey(102));
        assert_eq!(newest_rank(&series), Some((WeekKey(100), 3)));
        set_rank(&mut series, WeekKey(102), Some(4));
        set_rank(&mut series, WeekKey(103), Some(5));
        assert_eq!(series, before);
        remove_rank(&mut series, WeekKey(102));
        assert_eq!(decode_ranks(&series.ranks)[51..], [3, 0, 0, 5], "in the middle");
        set_rank(&mut series, WeekKey(102), Some(4));
        assert_eq!(series, before);
        set_rank(&mut series, WeekKey(40), Some(4));
        assert_eq!(series, before, "too old");
    }

    /// A series that ran ahead and was set back continues like one that never did.
    #[test]
    fn rewound_series_equals_one_that_never_ran_ahead() {
        for zone in ["UTC", "Europe/Amsterdam"] {
            let calendar = Calendar::new(zone).unwrap();
            let play = |from: i64, to: i64, sums: &mut SeriesSums, series: &mut SeriesRecord| {
                for minute in (from..to).step_by(5) {
                    advance(sums, series, &calendar, MONDAY + minute * 60_000);
                    add_sample(sums, 7);
                }
            };
            let (mut sums, mut series) = (SeriesSums::default(), new_series());
            let begun = 10 * 1_440;
            play(0, begun, &mut sums, &mut series);
            for ahead in [10, 300, 2_000, 20_000] {
                let (mut sums, mut series) = (sums, series.clone());
                let (mut want_sums, mut want) = (sums, series.clone());
                play(begun, begun + 20, &mut sums, &mut series);
                play(begun + ahead, begun + ahead + 60, &mut sums, &mut series);
                rewind(&mut sums, &mut series, &calendar, MONDAY + (begun + 20) * 60_000);
                play(begun + 20, begun + 5_000, &mut sums, &mut series);
                play(begun, begun + 5_000, &mut want_sums, &mut want);
                assert_eq!((sums.slot, series.newest_ten_minutes_ms), (want_sums.slot, want.newest_ten_minutes_ms));
                let times = |s: &SeriesRecord| [s.newest_hour_ms, s.newest_day_ms, s.newest_week_ms];
                assert_eq!(times(&series), times(&want), "{zone} {ahead}");
                assert_eq!(
                    (&series.weeks, series.ten_minutes == want.ten_minutes),
                    (&want.weeks, true),
                    "{zone} {ahead}"
                );
                assert_eq!(series.days[360..], want.days[360..], "{zone} {ahead}");
                assert_eq!(series.hours[HOURS_LEN - 200..], want.hours[HOURS_LEN - 200..], "{zone} {ahead}");
            }
        }
    }
}
