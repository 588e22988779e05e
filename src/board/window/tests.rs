//! Tests of when windows begin and end: bounds of each type, time zones with clock changes,
//! overlapping types, and properties checked by enumeration.

use proptest::prelude::*;

use super::*;

use crate::model::calendar::DAY_MS;

/// Among them zones whose clocks changed at midnight, by half an hour, or over the date
/// line.
const ZONES: [&str; 10] = [
    "UTC",
    "Europe/Amsterdam",
    "America/Sao_Paulo",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "America/St_Johns",
    "Pacific/Apia",
    "Pacific/Kiritimati",
    "Africa/Monrovia",
    "America/Los_Angeles",
];

const BUILT_IN: [(WindowType, Shape); 5] = [
    (WindowType::ALL_TIME, Shape::AllTime),
    (WindowType::HOUR, Shape::Hour),
    (WindowType::DAY, Shape::Day),
    (WindowType::WEEK, Shape::Week),
    (WindowType::MONTH, Shape::Month),
];

impl WindowTypes {
    /// The oldest window of the type that contains the time.
    fn oldest_containing(&self, kind: WindowType, t_ms: i64) -> Option<WindowKey> {
        let index = self.containing(self.spec(kind)?.shape, clamp_time(t_ms)).next()?;
        Some(WindowKey { kind, index })
    }
}

fn ms(text: &str) -> i64 {
    chrono::DateTime::parse_from_rfc3339(text).expect("a time").timestamp_millis()
}

fn spec((kind, shape): (WindowType, Shape)) -> WindowSpec {
    WindowSpec { kind, shape, keep: 2 }
}

fn custom(kind: u16, base_ms: i64, duration_ms: i64, every_ms: i64, repeat: u32) -> WindowSpec {
    spec((WindowType(kind), Shape::Custom { base_ms, duration_ms, every_ms, repeat }))
}

fn windows(zone: &str, customs: impl IntoIterator<Item = WindowSpec>) -> WindowTypes {
    let calendar = Calendar::new(zone).expect("a zone");
    WindowTypes::new(calendar, BUILT_IN.into_iter().map(spec).chain(customs)).expect("types")
}

/// Checks the first time of a window and its end.
#[track_caller]
fn spans(zone: &str, label: &str, first: &str, end: &str) {
    let windows = windows(zone, []);
    let key = parse_label(label).expect("a label");
    let span = windows.span(key).expect("a window");
    assert_eq!(span, ms(first)..ms(end), "{label} in {zone}");
    for (t_ms, inside) in [(span.start - 1, false), (span.start, true), (span.end - 1, true), (span.end, false)] {
        assert_eq!(windows.windows_at(t_ms).contains(&key), inside, "{label} in {zone} at {t_ms}");
    }
}

#[test]
fn bounds_of_each_window_type() {
    spans("UTC", "2026-11-21T14Z", "2026-11-21T14:00:00Z", "2026-11-21T15:00:00Z");
    spans("UTC", "2026-12-31", "2026-12-31T00:00:00Z", "2027-01-01T00:00:00Z");
    spans("UTC", "2026-W47", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z");
    spans("UTC", "2026-W53", "2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z");
    spans("UTC", "2026-12", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z");
    spans("UTC", "2028-02", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z");
    spans("UTC", "9998-12", "9998-12-01T00:00:00Z", "9999-01-01T00:00:00Z");
}

#[test]
fn bounds_across_dst_and_the_date_line() {
    // 23 and 25 hours.
    spans("Europe/Amsterdam", "2026-03-29", "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00");
    spans("Europe/Amsterdam", "2026-10-25", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00");
    spans("Europe/Amsterdam", "2026-10", "2026-10-01T00:00:00+02:00", "2026-11-01T00:00:00+01:00");
    // Hours are UTC hours in every zone.
    spans("Asia/Kolkata", "2026-11-21T14Z", "2026-11-21T14:00:00Z", "2026-11-21T15:00:00Z");
    spans("Asia/Kolkata", "2026-11-21", "2026-11-21T00:00:00+05:30", "2026-11-22T00:00:00+05:30");
    // Half an hour.
    spans("Australia/Lord_Howe", "2026-04-05", "2026-04-05T00:00:00+11:00", "2026-04-06T00:00:00+10:30");
    // Midnight did not exist; the day began at one.
    spans("America/Sao_Paulo", "2018-11-04", "2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00");
    spans("America/Sao_Paulo", "2018-11-03", "2018-11-03T00:00:00-03:00", "2018-11-04T01:00:00-02:00");
    // At midnight it was 23:00 of the same day again.
    spans("America/Sao_Paulo", "2019-02-16", "2019-02-16T00:00:00-02:00", "2019-02-17T00:00:00-03:00");
    // At a minute past midnight it was 23:01 of the day before; the day has begun with its first minute.
    spans("America/St_Johns", "2010-11-07", "2010-11-07T00:00:00-02:30", "2010-11-08T00:00:00-03:30");
    spans("America/St_Johns", "2010-11-06", "2010-11-06T00:00:00-02:30", "2010-11-07T00:00:00-02:30");
    // A day was skipped.
    spans("Pacific/Apia", "2011-12-29", "2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00");
    let apia = windows("Pacific/Apia", []);
    assert_eq!(apia.span(parse_label("2011-12-30").unwrap()), None);
    let next = apia.next_after(WindowType::DAY, ms("2011-12-29T12:00:00-10:00"));
    assert_eq!(next.map(label).as_deref(), Some("2011-12-31"));
}

#[test]
fn week_windows_equal_calendar_weeks() {
    for zone in ZONES {
        let windows = windows(zone, []);
        for t_ms in (0..ms("2045-01-01T00:00:00Z")).step_by(11 * HOUR_MS as usize) {
            assert_eq!(
                windows.oldest_containing(WindowType::WEEK, t_ms).and_then(WindowKey::week),
                Some(windows.calendar.week(t_ms))
            );
        }
    }
}

#[test]
fn overlapping_windows_all_contain_the_time() {
    let base = ms("2026-01-05T00:00:00Z");
    let twelve = WindowType(12);
    let windows = windows("UTC", [custom(12, base, 3 * DAY_MS, DAY_MS, 5)]);
    let at = |t_ms: i64| -> Vec<u32> {
        windows.windows_at(t_ms).into_iter().filter(|key| key.kind == twelve).map(|key| key.index).collect()
    };
    let key = |index| WindowKey { kind: twelve, index };
    assert!(at(base - 1).is_empty());
    assert_eq!(windows.oldest_containing(twelve, base - 1), None);
    assert_eq!(windows.next_after(twelve, base - 1), Some(key(0)));
    assert_eq!(at(base), [0]);
    assert_eq!(windows.next_after(twelve, base), Some(key(1)), "it begins after the time, not at it");
    assert_eq!(at(base + 2 * DAY_MS), [0, 1, 2]);
    assert_eq!(windows.oldest_containing(twelve, base + 3 * DAY_MS - 1), Some(key(0)));
    assert_eq!(windows.oldest_containing(twelve, base + 3 * DAY_MS), Some(key(1)));
    assert_eq!(at(base + 4 * DAY_MS), [2, 3, 4]);
    assert_eq!(windows.next_after(twelve, base + 4 * DAY_MS), None, "there are only five");
    assert_eq!(at(base + 7 * DAY_MS - 1), [4]);
    assert!(at(base + 7 * DAY_MS).is_empty());
    assert_eq!(windows.span(key(4)), Some(base + 4 * DAY_MS..base + 7 * DAY_MS));
    assert_eq!(windows.span(key(5)), None);
    assert_eq!(windows.span(WindowKey { kind: WindowType(13), index: 0 }), None);
    assert_eq!(
        (windows.oldest_containing(WindowType(13), base), windows.next_after(WindowType(13), base)),
        (None, None)
    );
}

#[test]
fn no_window_contains_a_time_in_a_gap() {
    let base = ms("2026-01-05T00:00:00Z");
    let windows = windows("UTC", [custom(12, base, DAY_MS, 7 * DAY_MS, 0)]);
    let twelve = WindowType(12);
    assert_eq!(windows.oldest_containing(twelve, base + 8 * DAY_MS), None);
    assert_eq!(windows.next_after(twelve, base + 8 * DAY_MS), Some(WindowKey { kind: twelve, index: 2 }));
    assert_eq!(windows.oldest_containing(twelve, base + 7 * DAY_MS), Some(WindowKey { kind: twelve, index: 1 }));
}

#[test]
fn all_time_is_one_window() {
    let windows = windows("UTC", []);
    assert_eq!(windows.span(WindowKey::ALL_TIME), Some(i64::MIN..i64::MAX));
    assert_eq!(windows.span(WindowKey { index: 1, ..WindowKey::ALL_TIME }), None);
    assert_eq!(windows.next_after(WindowType::ALL_TIME, 0), None);
    assert_eq!(windows.oldest_containing(WindowType::ALL_TIME, 5), Some(WindowKey::ALL_TIME));
    let only_weeks = WindowTypes::new(Calendar::default(), []).expect("weeks");
    assert_eq!(only_weeks.windows_at(ms("2026-11-21T00:00:00Z")), [parse_label("2026-W47").unwrap()]);
    assert_eq!(only_weeks.span(WindowKey::ALL_TIME), None, "only configured types exist");
    assert_eq!(
        only_weeks.stable_range(ms("2026-11-21T00:00:00Z")),
        ms("2026-11-16T00:00:00Z")..ms("2026-11-23T00:00:00Z")
    );
}

#[test]
fn invalid_window_types_are_rejected() {
    let new = |specs: Vec<WindowSpec>| WindowTypes::new(Calendar::default(), specs).unwrap_err().to_string();
    let day = spec((WindowType::DAY, Shape::Day));
    assert_eq!(new(vec![day, day]), "duplicate window type day");
    assert_eq!(
        new(vec![custom(12, 0, 33 * DAY_MS, DAY_MS, 0)]),
        "window type 12: 33 of its windows would run at once; expected at most 32: a longer every= or a shorter duration="
    );
    assert!(new(vec![custom(12, 0, DAY_MS, 0, 0)]).contains("every="));
    assert!(new(vec![custom(12, -1, DAY_MS, DAY_MS, 0)]).contains("base="));
}

#[test]
fn running_and_retained_windows_are_listed() {
    let windows = windows("UTC", [custom(12, DAY_MS, 3 * HOUR_MS, HOUR_MS, 5)]);
    let kept = |kind, hours: i64| windows.retained(kind, DAY_MS + hours * HOUR_MS);
    let kind = WindowType(12);
    assert_eq!([kept(kind, -1), kept(kind, 0), kept(kind, 2)], [0..0, 0..1, 0..3]);
    assert_eq!([kept(kind, 3), kept(kind, 5), kept(kind, 7), kept(kind, 9)], [0..4, 1..5, 3..5, 3..5]);
    assert_eq!(kept(WindowType::HOUR, 0), 22..25);
    assert_eq!(kept(WindowType::DAY, -24), 3..4, "none before 1970");
    assert_eq!(kept(WindowType::ALL_TIME, 0), 0..1);
    assert_eq!(kept(WindowType(13), 0), 0..0, "there is no such type");
}

#[test]
fn oldest_closed_windows_expire_first() {
    let windows = windows("UTC", [WindowSpec { keep: 0, ..custom(12, 0, DAY_MS, DAY_MS, 0) }]);
    let day = |index| WindowKey { kind: WindowType::DAY, index };
    let hour = |index| WindowKey { kind: WindowType::HOUR, index };
    let closed = [day(7), hour(1), day(3), day(9), day(3), day(5)];
    assert_eq!(windows.expired(WindowType::DAY, &closed), [day(3), day(5)]);
    assert_eq!(windows.expired(WindowType::HOUR, &closed), []);
    let of = |kind| (0..9).map(|index| WindowKey { kind, index }).collect::<Vec<_>>();
    assert_eq!(windows.expired(WindowType(12), &of(WindowType(12))), [], "all are kept");
    assert_eq!(windows.expired(WindowType(13), &of(WindowType(13))), [], "the type is not configured");
}

#[test]
fn windows_at_extreme_times() {
    for zone in ZONES {
        let windows =
            windows(zone, [custom(12, 0, 60_000, 60_000, 0), custom(13, TIME_MS_MAX, DAY_MS, 60 * DAY_MS, 9)]);
        for t_ms in [i64::MIN, -1, 0, TIME_MS_MAX - 1, TIME_MS_MAX, TIME_MS_MAX + 1, i64::MAX] {
            let keys = windows.windows_at(t_ms);
            let unchanged = windows.stable_range(t_ms);
            assert!(unchanged.contains(&t_ms) || t_ms == i64::MAX && unchanged.end == t_ms, "{zone} {t_ms}");
            for key in keys {
                assert_eq!(parse_label(&label(key)), Ok(key));
                let span = windows.span(key).expect("a window that contains the time");
                assert!(span.contains(&clamp_time(t_ms)), "{zone} {t_ms} {}", label(key));
                if let Some(next) = windows.next_after(key.kind, t_ms) {
                    assert!(windows.span(next).expect("a window").start > clamp_time(t_ms));
                }
            }
        }
        for (kind, _) in BUILT_IN {
            assert_eq!(windows.span(WindowKey { kind, index: u32::MAX }), None, "{kind:?}");
        }
        assert_eq!(windows.span(WindowKey { kind: WindowType(12), index: u32::MAX }), None);
        assert_eq!(windows.span(WindowKey { kind: WindowType(13), index: 1 }), None, "begins in the year 10000");
    }
}

fn moments() -> impl Strategy<Value = i64> {
    // Mostly near clock changes of time zones and near the bounds of hours.
    prop_oneof![
        0..ms("2040-01-01T00:00:00Z"),
        (0..600_000_i64, -2..=2_i64).prop_map(|(hour, off)| (hour * HOUR_MS + off).max(0)),
        (0..1_200_000_i64, -2..=2_i64).prop_map(|(half, off)| (half * HOUR_MS / 2 + 60_000 + off).max(0)),
        0..=TIME_MS_MAX,
    ]
}

fn customs() -> impl Strategy<Value = Vec<WindowSpec>> {
    let length = || prop_oneof![Just(DAY_MS), Just(7 * HOUR_MS), 3_600_000..90 * DAY_MS];
    let one = (moments(), length(), length(), 0..2_000_u32)
        .prop_filter("at most 32 at once", |(_, duration, every, _)| duration / every < 31);
    prop::collection::vec(one, 0..3).prop_map(|all| {
        (10..)
            .zip(all)
            .map(|(kind, (base, duration, every, repeat))| custom(kind, base, duration, every, repeat))
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn returned_windows_contain_the_time(zone in 0..ZONES.len(), customs in customs(), t_ms in moments()) {
        let windows = windows(ZONES[zone], customs);
        let keys = windows.windows_at(t_ms);
        prop_assert!(keys.is_sorted() && keys.windows(2).all(|pair| pair[0] != pair[1]));
        for spec in windows.specs() {
            let kind = spec.kind;
            let indices: Vec<u32> = keys.iter().filter(|key| key.kind == kind).map(|key| key.index).collect();
            let span = |index| windows.span(WindowKey { kind, index });
            prop_assert_eq!(windows.oldest_containing(kind, t_ms).map(|key| key.index), indices.first().copied());
            for &index in &indices {
                prop_assert!(span(index).expect("a window").contains(&t_ms));
            }
            // The neighbours of the windows that contain the time do not contain it.
            let around = indices.first().map(|&first| (first.checked_sub(1), indices.last().unwrap().checked_add(1)));
            if let Some((before, after)) = around {
                for index in [before, after].into_iter().flatten() {
                    prop_assert!(!span(index).is_some_and(|span| span.contains(&t_ms)));
                }
            }
            let next = windows.next_after(kind, t_ms).map(|key| span(key.index).expect("a window"));
            match (spec.shape, next) {
                (Shape::AllTime, next) => prop_assert_eq!(next, None),
                (Shape::Custom { .. }, Some(next)) => {
                    prop_assert!(next.start > t_ms);
                    let before = windows.next_after(kind, t_ms).and_then(|key| span(key.index.checked_sub(1)?));
                    prop_assert!(before.is_none_or(|before| before.start <= t_ms));
                }
                // Calendar windows have no gaps.
                (_, Some(next)) => prop_assert_eq!(next.start, span(indices[0]).unwrap().end),
                (_, None) => (),
            }
        }
    }

    #[test]
    fn stable_range_is_maximal(
        zone in 0..ZONES.len(),
        customs in customs(),
        t_ms in moments(),
        inside in prop::collection::vec(0.0..1.0_f64, 20),
    ) {
        let windows = windows(ZONES[zone], customs);
        let keys = windows.windows_at(t_ms);
        let range = windows.stable_range(t_ms);
        prop_assert!(range.contains(&t_ms));
        let (start, end) = (range.start.max(0), range.end.min(TIME_MS_MAX + 1));
        for fraction in inside {
            let other_ms = start + ((end - 1 - start) as f64 * fraction) as i64;
            prop_assert_eq!(windows.windows_at(other_ms), keys.clone());
        }
        prop_assert_eq!(windows.windows_at(start), keys.clone());
        prop_assert_eq!(windows.windows_at(end - 1), keys.clone());
        // The range is maximal.
        prop_assert!(range.start == i64::MIN || windows.windows_at(range.start - 1) != keys);
        prop_assert!(range.end == i64::MAX || windows.windows_at(range.end) != keys);
    }
}
