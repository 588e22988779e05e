//! Windows start, end, succeed each other and are deleted; their boards are separate.

use clqd::engine::StateReader;
use clqd::model::archive::ResyncStep;
use clqd::model::outbox::ArchiveStep;
use clqd::model::row::Ranking;
use clqd::model::{OutboxEntry, OutboxKey, PlayerKey, ServerKey, WeekKey};
use clqd::view::board::{BoardQuery, WindowPhase};

use super::case::{A, B, C, Case, DAY_MS, HOUR_MS, MINUTE_MS, ms, selector};

/// Two scans, two minutes apart, between which players gain points. The first must be more than
/// 720 s after the last scan of the server, so that nothing else is credited.
fn play(case: &mut Case, t_ms: i64, server: &str, gains: &[(&str, i64)]) {
    let zero: Vec<(&str, i64)> = gains.iter().map(|(name, _)| (*name, 0)).collect();
    case.scan(t_ms, server, &zero);
    case.scan(t_ms + 2 * MINUTE_MS, server, gains);
}

fn points(list: &[(&str, i64)]) -> Vec<(String, f64)> {
    list.iter().map(|(name, points)| ((*name).to_owned(), *points as f64)).collect()
}

#[test]
fn windows_have_separate_scores() {
    let mut case = Case::new("UTC", &["hour keep=0", "day keep=0", "all-time"]);
    let t = ms("2026-11-18T10:10:00Z");
    play(&mut case, t, A, &[("ann", 30), ("bob", 10)]);
    play(&mut case, t + HOUR_MS, A, &[("ann", 5), ("bob", 20)]);
    play(&mut case, t + HOUR_MS + 3 * MINUTE_MS, B, &[("bob", 1)]);
    play(&mut case, t + DAY_MS, A, &[("bob", 7), ("ann", 3)]);
    for (window, want) in [
        ("2026-11-18T10Z", points(&[("ann", 30), ("bob", 10)])),
        ("2026-11-18T11Z", points(&[("bob", 21), ("ann", 5)])),
        ("2026-11-18", points(&[("ann", 35), ("bob", 31)])),
        ("2026-11-19", points(&[("bob", 7), ("ann", 3)])),
        ("all-time", points(&[("ann", 38), ("bob", 38)])),
    ] {
        assert_eq!(case.points("game:baseq3", window), want, "{window}");
    }
    // Each hour has its own best games.
    assert_eq!(case.board("game:baseq3", "2026-11-18T11Z", Ranking::Clq2).len(), 2);
    case.check("presences in several windows");
}

#[test]
fn window_includes_start_and_excludes_end() {
    let mut case = Case::new("UTC", &["hour keep=0", "12 base=2026-11-18T10:30:00Z duration=30m every=1h keep=0"]);
    let end = ms("2026-11-18T11:00:00Z");
    case.scan(end - 10 * MINUTE_MS, A, &[("ann", 0)]);
    case.scan(end - 1, A, &[("ann", 4)]);
    case.scan(end, A, &[("ann", 5)]);
    case.scan(end + 1, A, &[("ann", 7)]);
    assert_eq!(case.points("game:baseq3", "2026-11-18T10Z"), points(&[("ann", 4)]));
    assert_eq!(case.points("game:baseq3", "2026-11-18T11Z"), points(&[("ann", 3)]));
    assert_eq!(case.points("game:baseq3", "12#0"), points(&[("ann", 4)]), "it ends at the end of the hour");
    assert_eq!(case.windows("12", WindowPhase::Upcoming), ["12#1"]);
    case.check("boundaries of an hour");
}

#[test]
fn oldest_window_that_contains_time_is_queried() {
    let mut case = Case::new("UTC", &["12 base=2026-11-18T08:00:00Z duration=3h every=1h keep=0"]);
    let t = ms("2026-11-18T10:10:00Z");
    for hours in 0..5 {
        play(&mut case, t + hours * HOUR_MS, A, &[("ann", 10 + hours)]);
    }
    let queried = |case: &mut Case, t_ms: i64| {
        let size = BoardQuery::Size {};
        let server = format!("server:{A}");
        case.query(&selector(&server, "12", Ranking::Points, Some(t_ms)), &size)
            .map(|response| response.head.window.window)
    };
    assert_eq!(queried(&mut case, t).unwrap(), "12#0");
    assert_eq!(queried(&mut case, ms("2026-11-18T10:59:59.999Z")).unwrap(), "12#0");
    assert_eq!(queried(&mut case, ms("2026-11-18T11:00:00Z")).unwrap(), "12#1");
    assert!(queried(&mut case, ms("2026-11-18T07:59:59.999Z")).is_err(), "before the first window");
    case.check("overlapping windows");
    // After it is deleted, the next oldest is queried.
    case.settle(t + 5 * HOUR_MS);
    let state = case.state();
    let deleted = state.engine.delete_windows_before(&state.store, ms("2026-11-18T11:00:00Z"));
    assert_eq!(deleted.len(), 1);
    assert_eq!(queried(&mut case, t).unwrap(), "12#1");
}

#[test]
fn expired_windows_and_their_records_are_deleted() {
    let mut case = Case::new("UTC", &["hour keep=2", "all-time"]);
    let t = ms("2026-11-16T10:10:00Z");
    let mut records = Vec::new();
    let hours_of_day: Vec<String> = (10..16).map(|hour| format!("2026-11-16T{hour}Z")).collect();
    for hours in 0..6 {
        play(&mut case, t + hours * HOUR_MS, A, &[("ann", 9), ("bob", 7)]);
        case.state().commit_and_build_boards(clqd::board::window::parse_label("all-time").unwrap()).unwrap();
        case.settle(t + hours * HOUR_MS + 5 * MINUTE_MS);
        records.push(case.records(hours_of_day.iter().map(String::as_str)));
    }
    assert_eq!(case.windows("hour", WindowPhase::Closed), ["2026-11-16T14Z", "2026-11-16T13Z"]);
    assert_eq!(case.windows("hour", WindowPhase::Running), ["2026-11-16T15Z"]);
    assert!(records[0] > 0 && records[0] < records[1], "{records:?}");
    assert_eq!(records[3..], [records[3]; 3], "the number of records is constant: {records:?}");
    assert_eq!(case.records(["2026-11-16T12Z"]), 0, "deleted and swept");
    assert!(case.records(["2026-11-16T13Z"]) > 0);
    assert_eq!(case.points("game:baseq3", "all-time"), points(&[("ann", 54), ("bob", 42)]));
    assert_eq!(case.points("game:baseq3", "2026-11-16T13Z"), points(&[("ann", 9), ("bob", 7)]));
}

#[test]
fn next_window_is_opened_in_advance() {
    let windows = ["hour", "day", "month", "12 base=2026-11-18T08:00:00Z duration=3h every=1h"];
    let mut case = Case::new("Europe/Amsterdam", &windows);
    let t = ms("2026-11-18T10:10:00Z");
    play(&mut case, t, A, &[("ann", 1)]);
    case.state().commit_and_build_boards(clqd::board::window::parse_label("2026-11-18T10Z").unwrap()).unwrap();
    case.tick(t + 3 * MINUTE_MS);
    for (kind, label) in [("hour", "2026-11-18T11Z"), ("day", "2026-11-19"), ("month", "2026-12"), ("12", "12#3")] {
        assert_eq!(case.windows(kind, WindowPhase::Upcoming), [label]);
        let window = clqd::board::window::parse_label(label).unwrap();
        assert!(case.state().engine.model().boards(window).is_some(), "boards of {label} are cached");
        assert!(case.cached_board("game:baseq3", label, Ranking::Time).is_empty());
    }
    // Scans are credited to it although no tick has come since.
    case.scan(t + HOUR_MS, A, &[("ann", 0)]);
    assert_eq!(case.points("game:baseq3", "2026-11-18T11Z"), points(&[("ann", 0)]));
}

#[test]
fn cursor_is_stale_after_window_end() {
    let mut case = Case::new("UTC", &["hour keep=0"]);
    let t = ms("2026-11-18T10:10:00Z");
    for (hours, stale) in [(0, false), (1, true)] {
        play(&mut case, t + hours * HOUR_MS, A, &[("ann", 9), ("bob", 7), ("eve", 5)]);
        for window in case.state().engine.model().running_windows() {
            case.state().commit_and_build_boards(window).unwrap();
        }
        for scope in ["game:baseq3", "tag:pair", "server:quake3://127.0.0.1:27960"] {
            let board = selector(scope, "hour", Ranking::Points, Some(t));
            let page = case.query(&board, &BoardQuery::Page { position: 1, count: 2 }).unwrap();
            let after = BoardQuery::After { cursor: page.head.page.unwrap().after, count: 2 };
            assert_eq!(case.query(&board, &after).unwrap().rows.len(), 1);
            // The same query of the current window.
            let now = case.query(&selector(scope, "hour", Ranking::Points, None), &after);
            assert_eq!(now.is_err(), stale, "{scope}: {now:?}");
            assert!(!stale || now.unwrap_err().to_string().contains("first page"));
        }
    }
}

#[test]
fn scans_at_week_end_are_credited_to_their_week_during_close() {
    for zone in ["UTC", "America/Havana"] {
        let mut case = Case::new(zone, &["hour keep=0", "day keep=0", "week keep=0", "month keep=0", "all-time"]);
        case.settings.week_steps_per_tick = 1;
        case.restart();
        let monday = case.settings.windows.calendar().week_start_ms(WeekKey(2_968));
        let both = [("ann", 3), ("bob", 4)];
        for server in [A, B, C] {
            case.scan(monday - 10 * MINUTE_MS, server, &[("ann", 0), ("bob", 0)]);
        }
        for window in case.state().engine.model().running_windows() {
            case.state().commit_and_build_boards(window).unwrap();
        }
        case.scan(monday - 1, A, &both);
        case.scan(monday, B, &both);
        case.scan(monday, C, &both);
        case.scan(monday + 1, A, &[("ann", 0), ("bob", 9)]);
        let mut steps = 0;
        while case.windows("week", WindowPhase::Closed).is_empty() {
            let now_ms = monday + 10_000 + steps * 5_000;
            case.tick(now_ms);
            case.scan(now_ms + 1, [A, B, C][steps as usize % 3], &[("ann", 1 + steps), ("bob", 10 - steps)]);
            if steps == 2 {
                case.restart();
            }
            steps += 1;
            assert!(steps < 30, "the week is closed in steps");
        }
        assert!(steps > 2, "the close takes several steps: {steps}");
        case.check(&format!("around Monday in {zone}"));
        let scope = format!("server:{A}");
        let names =
            |case: &mut Case, week| case.points(&scope, week).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(&mut case, "2026-W46"), ["bob", "ann"], "{zone}: players active in both weeks are in both");
        assert_eq!(names(&mut case, "2026-W47").len(), 2, "{zone}");
    }
}

#[test]
fn months_and_years_split_at_their_boundaries() {
    let mut case = Case::new("Pacific/Auckland", &["month keep=0", "day keep=0", "hour keep=0"]);
    let months = [("2026-02-01", "2026-02"), ("2026-03-01", "2026-03"), ("2027-01-01", "2027-01")];
    for (day, _) in months {
        let start = case.settings.windows.span(clqd::board::window::parse_label(day).unwrap()).unwrap().start;
        case.scan(start - 5 * MINUTE_MS, A, &[("ann", 0)]);
        case.scan(start - 1, A, &[("ann", 2)]);
        case.scan(start, A, &[("ann", 5)]);
    }
    for (window, want) in [("2026-01", 2), ("2026-02", 5), ("2026-03", 3), ("2026-12", 2), ("2027-01", 3)] {
        assert_eq!(case.points("game:baseq3", window), points(&[("ann", want)]), "{window}");
    }
    assert_eq!(case.points("game:baseq3", "2026-12-31"), points(&[("ann", 2)]));
    case.check("months and years");
}

#[test]
fn days_with_clock_change_have_23_or_25_hours() {
    let mut case = Case::new("Europe/Amsterdam", &["day keep=0", "hour keep=0", "month keep=0"]);
    for (day, hours) in [("2026-03-29", 23), ("2026-10-25", 25)] {
        let span = case.settings.windows.span(clqd::board::window::parse_label(day).unwrap()).unwrap();
        assert_eq!(span.end - span.start, hours * HOUR_MS, "{day}");
        case.scan(span.start, A, &[("ann", 0)]);
        case.scan(span.start + 2 * MINUTE_MS, A, &[("ann", 1)]);
        // The hour that is skipped or repeated.
        for minutes in [170, 175] {
            case.scan(span.start + minutes * MINUTE_MS, A, &[("ann", minutes)]);
        }
        case.scan(span.end - 5 * MINUTE_MS, A, &[("ann", 0)]);
        case.scan(span.end - 1, A, &[("ann", 2)]);
        case.scan(span.end, A, &[("ann", 4)]);
        assert_eq!(case.points("game:baseq3", day), points(&[("ann", 1 + 5 + 2)]));
    }
    case.check("clock changes");
}

#[test]
fn player_without_score_is_absent_from_that_board_only() {
    let mut case = Case::new("UTC", &["hour keep=0"]);
    let t = ms("2026-11-18T10:10:00Z");
    case.scan(t, A, &[("ann", 0), ("idle", 0)]);
    for minutes in [6, 12] {
        case.scan(t + minutes * MINUTE_MS, A, &[("ann", minutes), ("idle", 0)]);
    }
    for scope in ["game:baseq3", "tag:pair", "server:quake3://127.0.0.1:27960"] {
        let names = |case: &mut Case, ranking| -> Vec<String> {
            case.board(scope, "2026-11-18T10Z", ranking).into_iter().map(|(name, ..)| name).collect()
        };
        assert_eq!(names(&mut case, Ranking::Clq1), ["ann"], "{scope}");
        assert!(names(&mut case, Ranking::Elo).is_empty(), "{scope}: no round was rated");
        assert_eq!(names(&mut case, Ranking::Points), ["ann", "idle"], "{scope}");
    }
    // The player leaves; their row is in the store.
    case.scan(t + 14 * MINUTE_MS, A, &[("ann", 12)]);
    case.state().commit().unwrap();
    let window = clqd::board::window::parse_label("2026-11-18T10Z").unwrap();
    let key = clqd::model::commit::RowKey { window, server: ServerKey(1), player: PlayerKey(2) };
    let row = case.state().store.row(key).unwrap().expect("a row");
    assert_eq!((row.points, row.clq1(), row.measured_ms), (0, 0, 720_000));
    case.check("only players with a score");
}

#[test]
fn window_with_new_boundaries_starts_empty() {
    let of_type = |base: &str| format!("12 base={base} duration=3h every=3h keep=0");
    let (before, after) = (of_type("2026-11-18T08:00:00Z"), of_type("2026-11-18T09:00:00Z"));
    let mut case = Case::new("UTC", &[&before, "all-time"]);
    let t = ms("2026-11-18T10:10:00Z");
    play(&mut case, t, A, &[("ann", 9), ("bob", 7)]);
    play(&mut case, t, B, &[("gone", 5)]);
    case.scan(t + 4 * MINUTE_MS, B, &[]);
    assert_eq!(case.points("game:baseq3", "12#0").len(), 3);
    case.state().commit().unwrap();
    for how in ["reloaded", "restarted", "not yet swept"] {
        let other = if how == "restarted" { &before } else { &after };
        case.set_windows(&[other, "all-time"]);
        let t = case.state().engine.model().now_ms() + 2 * MINUTE_MS;
        match how {
            "restarted" => case.restart(),
            _ => case.reload(),
        }
        case.state().engine.start_types_empty();
        assert!(case.windows("12", WindowPhase::Closed).is_empty());
        if how == "not yet swept" {
            // Records of the old window exist: the new one waits until they are swept.
            case.scan(t, A, &[("ann", 10), ("bob", 7)]);
            assert!(case.points("game:baseq3", "12#0").is_empty());
        }
        case.settle(t + 1);
        // The players continue: only gains from now on are credited.
        case.scan(t + MINUTE_MS, A, &[("ann", 20), ("bob", 8)]);
        case.scan(t + 2 * MINUTE_MS, A, &[("ann", 24), ("bob", 9)]);
        let board = case.points("game:baseq3", "12#0");
        assert_eq!(board.len(), 2, "{how}: {board:?}");
        assert!(board[0].1 >= 4.0 && board[0].1 < 16.0 && board[1].1 <= 2.0, "{how}: {board:?}");
        case.settle(t + 3 * MINUTE_MS);
        case.restart();
        assert_eq!(case.points("game:baseq3", "12#0"), board, "{how}: the new window is not swept");
        case.scan(t + 4 * MINUTE_MS, A, &[("ann", 9), ("bob", 7)]);
    }
    assert_eq!(case.points("game:baseq3", "all-time").len(), 3, "other windows are unchanged");
}

#[test]
fn window_that_expired_by_a_wrong_clock_begins_empty() {
    let mut case = Case::new("UTC", &["hour keep=1"]);
    let t = ms("2026-11-18T10:10:00Z");
    play(&mut case, t, A, &[("ann", 9), ("bob", 7)]);
    (1..4).for_each(|hours| case.settle(t + hours * HOUR_MS));
    assert_eq!(case.windows("hour", WindowPhase::Closed).last().unwrap(), "2026-11-18T12Z");
    let state = case.state();
    state.engine.reset_time(&state.store, t + 3 * MINUTE_MS).unwrap();
    case.settle(t + 3 * MINUTE_MS);
    // They have never left.
    case.scan(t + 4 * MINUTE_MS, A, &[("ann", 10), ("bob", 7)]);
    assert_eq!(case.points("game:baseq3", "2026-11-18T10Z"), points(&[("ann", 1), ("bob", 0)]));
    assert_eq!(case.points("game:baseq3", "2026-W47"), points(&[("ann", 10), ("bob", 7)]));
}

#[test]
fn delete_before_deletes_windows_that_ended_before() {
    let mut case = Case::new("UTC", &["hour keep=0", "day keep=0", "all-time"]);
    let t = ms("2026-11-15T22:10:00Z"); // Sunday
    for hours in [0, 1, 2, 3] {
        play(&mut case, t + hours * HOUR_MS, A, &[("ann", 9), ("bob", 7)]);
    }
    let now_ms = t + 3 * HOUR_MS + 5 * MINUTE_MS;
    let delete = |case: &mut Case, t_ms: i64| -> Vec<String> {
        let state = case.state();
        let deleted = state.engine.delete_windows_before(&state.store, t_ms);
        deleted.into_iter().map(clqd::board::window::label).collect()
    };
    let monday = ms("2026-11-16T00:00:00Z");
    assert_eq!(delete(&mut case, monday), ["2026-11-15T22Z", "2026-11-15T23Z", "2026-11-15"], "the week is open");
    case.settle(now_ms);
    assert_eq!(delete(&mut case, monday - 1), Vec::<String>::new());
    assert_eq!(delete(&mut case, monday), ["2026-W46"]);
    assert_eq!(delete(&mut case, i64::MAX), ["2026-11-16T00Z"], "running windows and all-time are not deleted");
    case.settle(now_ms + 1);
    for window in ["2026-11-15T22Z", "2026-11-15", "2026-W46", "2026-11-16T00Z"] {
        assert_eq!(case.records([window]), 0, "{window}");
    }
    assert!(case.state().engine.model().windows().iter().all(|listed| listed.window.window != "2026-W46"));
    assert_eq!(case.points("game:baseq3", "all-time"), points(&[("ann", 36), ("bob", 28)]));
    assert_eq!(case.points("game:baseq3", "2026-11-16"), points(&[("ann", 18), ("bob", 14)]));
}

#[test]
fn unarchived_week_is_not_deleted() {
    let mut case = Case::new("UTC", &["hour keep=0"]);
    case.settings.archive_enabled = true;
    case.restart();
    // An archive that contains all of the state, which is empty.
    let state = case.state();
    state.engine.apply_archive_step(ArchiveStep::Claim { id: 1 });
    loop {
        state.commit().unwrap();
        match state.engine.model().resync_chunk(&state.store, None, 50, 1_000).unwrap() {
            ResyncStep::Chunk(chunk) => {
                assert!(state.engine.acknowledge_resync(chunk.from, chunk.next, &chunk.postponed))
            }
            ResyncStep::DrainFirst | ResyncStep::Idle => break,
        }
    }
    let t = ms("2026-11-15T22:10:00Z"); // Sunday
    for weeks in 0..2 {
        play(&mut case, t + weeks * 7 * DAY_MS, A, &[("ann", 9), ("bob", 7)]);
    }
    case.settle(t + 8 * DAY_MS);
    let weeks = |case: &mut Case| -> Vec<String> {
        let state = case.state();
        let deleted = state.engine.delete_windows_before(&state.store, i64::MAX);
        let weeks = deleted.into_iter().filter(|window| window.week().is_some());
        weeks.map(clqd::board::window::label).collect()
    };
    assert!(weeks(&mut case).is_empty(), "all of their rows are pending");
    // First everything except the last week is archived, then the rest.
    for all_but_last in [true, false] {
        case.state().commit().unwrap();
        let state = case.state();
        let jobs = state.engine.archive_jobs(&state.store, None, None, usize::MAX, usize::MAX).unwrap();
        let is_week = |(entry, _): &(OutboxEntry, _)| matches!(entry.key, OutboxKey::Week { .. });
        let last = jobs.iter().rposition(is_week).filter(|_| all_but_last);
        let done = jobs.iter().enumerate().filter(|(at, _)| Some(*at) != last).map(|(_, (entry, _))| *entry);
        let done: Vec<_> = done.chain(state.engine.model().archive_tasks(&state.store)).collect();
        state.engine.acknowledge_archived(&done);
        state.commit().unwrap();
        assert_eq!(weeks(&mut case), [if all_but_last { "2026-W46" } else { "2026-W47" }]);
    }
}
