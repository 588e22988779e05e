//! Cached boards: unchanged and changed settings, removed groups, builds on another thread during
//! scans, readers in parallel with a writer.

use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

use clqd::board::window::{label, parse_label};
use clqd::model::WindowKey;
use clqd::model::row::Ranking;
use clqd::view::board::{BoardQuery, BoardRow};

use super::case::{A, B, C, Case, HOUR_MS, MINUTE_MS, ms, selector};

const DAY: &str = "2026-11-18";

fn day() -> WindowKey {
    parse_label(DAY).expect("a label")
}

/// Applies `count` scans of each server, two minutes apart; a round lasts ten minutes.
fn rounds(case: &mut Case, from_ms: i64, count: i64) {
    for n in 0..count {
        for (server, t_ms) in [A, B, C].into_iter().zip(from_ms + n * 2 * MINUTE_MS..) {
            // The players of the servers change; the points fall to 0 with every fifth scan.
            let points = (n % 5) * 7;
            let names: Vec<String> = (0..6).map(|i| format!("p{}", (n / 5 * 3 + i * 2 + t_ms % 3) % 17)).collect();
            let list: Vec<(&str, i64)> =
                names.iter().zip(0..).map(|(name, i)| (name.as_str(), points * (i + 1))).collect();
            case.scan(t_ms, server, &list);
        }
    }
}

#[test]
fn reload_of_equal_settings_changes_nothing() {
    let windows = ["hour keep=0", "day", "12 base=2026-11-18T08:00:00Z duration=3h every=1h keep=3"];
    let mut case = Case::new("Europe/Amsterdam", &windows);
    case.set_low(&["points game:baseq3", "time tag:pair"]);
    case.restart();
    let t = ms("2026-11-18T09:10:00Z");
    rounds(&mut case, t, 20);
    case.settle(t + HOUR_MS);
    for window in case.state().engine.model().running_windows() {
        case.state().commit_and_build_boards(window).unwrap();
    }
    let boards = |case: &mut Case| {
        let mut all = Vec::new();
        for scope in ["game:baseq3", "game:cstrike", "tag:pair", "tag:alone"] {
            for ranking in Ranking::ALL {
                let selector = selector(scope, "day", ranking, None);
                all.push(case.query(&selector, &BoardQuery::Page { position: 1, count: 100 }).unwrap());
            }
        }
        all
    };
    let before = (case.state().engine.model().windows(), boards(&mut case));
    assert!(!case.state().engine.model().has_changes());
    for _ in 0..3 {
        case.reload();
    }
    assert!(!case.state().engine.model().has_changes(), "nothing to commit");
    assert!(case.state().engine.model().windows_with_stale_order().is_empty());
    // The responses contain cursors, which contain generation and version of their boards.
    assert!((case.state().engine.model().windows(), boards(&mut case)) == before);
    case.check("reloaded");
}

#[test]
fn low_is_better_reverses_board() {
    let mut case = Case::new("UTC", &["day keep=0"]);
    rounds(&mut case, ms("2026-11-18T09:10:00Z"), 12);
    let board = selector("game:baseq3", DAY, Ranking::Points, None);
    let high = case.points("game:baseq3", DAY);
    let page = case.query(&board, &BoardQuery::Page { position: 1, count: 2 }).unwrap();
    let after = BoardQuery::After { cursor: page.head.page.unwrap().after, count: 2 };

    case.set_low(&["points game:baseq3"]);
    case.reload();
    assert!(case.state().engine.model().windows_with_stale_order().contains(&day()));
    let cached = case.cached_board("game:baseq3", DAY, Ranking::Points);
    assert!(cached.iter().map(|(name, score, _)| (name, score)).eq(high.iter().map(|(name, score)| (name, score))));
    assert!(case.query(&board, &after).is_ok(), "the cached board is used");
    let plan = case.state().engine.plan_boards(day());
    let built = clqd::state::build_boards(&plan, &case.state().store.reader()).unwrap();
    assert!(case.query(&board, &after).is_ok(), "until the new board is installed");
    case.state().engine.install_boards(built);
    assert!(case.state().engine.model().windows_with_stale_order().iter().all(|window| *window != day()));
    let stale = case.query(&board, &after).unwrap_err().to_string();
    assert!(stale.contains("first page"), "{stale}");
    let low = case.points("game:baseq3", DAY);
    assert!(low.is_sorted_by(|a, b| a.1 <= b.1) && low.len() == high.len() && low != high);
    let response = case.query(&board, &BoardQuery::Size {}).unwrap();
    assert!(response.head.order.low_is_better);
    case.check("low scores first");

    // Boards that were planned with earlier settings are not installed.
    let plan = case.state().engine.plan_boards(day());
    let built = clqd::state::build_boards(&plan, &case.state().store.reader()).unwrap();
    case.set_low(&[]);
    case.reload();
    case.state().engine.install_boards(built);
    assert!(case.state().engine.model().windows_with_stale_order().contains(&day()));
    assert_eq!(case.points("game:baseq3", DAY), low);
    // With the earlier settings the cached boards are current again.
    case.set_low(&["points game:baseq3"]);
    case.reload();
    assert!(!case.state().engine.model().windows_with_stale_order().contains(&day()));
}

/// Of players with equal points, the one with more time is first, except in one game.
#[test]
fn tie_break_orders_equal_scores() {
    let mut case = Case::new("UTC", &["day keep=0"]);
    let t = ms("2026-11-18T09:10:00Z");
    for (minute, players) in [(0, "ann"), (2, "bob cal"), (4, "ann bob cal dee")] {
        let list: Vec<(&str, i64)> = players.split(' ').map(|name| (name, if minute == 4 { 3 } else { 0 })).collect();
        for (server, t_ms) in [A, C].into_iter().zip(t + minute * MINUTE_MS..) {
            case.scan(t_ms, server, &list);
        }
    }
    let names =
        |case: &mut Case, scope| -> Vec<String> { case.points(scope, DAY).into_iter().map(|(name, _)| name).collect() };
    // All have reached three points at the same time; keys are in order of appearance.
    for scope in ["game:baseq3", "game:cstrike"] {
        assert_eq!(names(&mut case, scope), ["ann", "bob", "cal", "dee"]);
    }
    let board = selector("game:baseq3", DAY, Ranking::Points, None);
    let first = case.query(&board, &BoardQuery::Page { position: 1, count: 1 }).unwrap();
    let after = BoardQuery::After { cursor: first.head.page.unwrap().after, count: 1 };

    case.set_ties(&["points time", "points elo game:cstrike"]);
    case.set_low(&["time game:cstrike", "time tag:alone"]);
    case.reload();
    assert!(case.state().engine.model().windows_with_stale_order().contains(&day()));
    assert!(case.query(&board, &after).is_ok(), "the cached board is used");
    let plan = case.state().engine.plan_boards(day());
    let built = clqd::state::build_boards(&plan, &case.state().store.reader()).unwrap();
    case.state().engine.install_boards(built);
    let stale = case.query(&board, &after).unwrap_err().to_string();
    assert!(stale.contains("first page"), "{stale}");
    let response = case.query(&board, &BoardQuery::Size {}).unwrap();
    assert_eq!(response.head.order.tie_breaker, Some(Ranking::Time));
    let times: Vec<f64> = case.board("game:baseq3", DAY, Ranking::Time).iter().map(|(_, time, _)| *time).collect();
    assert!(times.is_sorted_by(|a, b| a >= b) && times[0] > times[3], "{times:?}");
    let longest_first = ["bob", "cal", "ann", "dee"];
    assert_eq!(names(&mut case, "game:baseq3"), longest_first);
    assert_eq!(names(&mut case, "tag:pair"), longest_first);
    assert_eq!(names(&mut case, "tag:alone"), ["dee", "ann", "bob", "cal"], "the shortest time is first there");
    assert_eq!(names(&mut case, "game:cstrike"), ["ann", "bob", "cal", "dee"], "no player is rated");
    case.check("ties broken by another ranking");

    // Equal scores still share competition and dense positions; times continue to grow.
    let standing = BoardQuery::Standing { player: clqd::view::board::PlayerSelector::Name("dee".to_owned()) };
    let BoardRow::Standing(dee) = &case.query(&board, &standing).unwrap().rows[0] else { panic!("a standing") };
    let at = dee.entry.unwrap();
    assert_eq!((at.position, at.competition, at.dense), (4, 1, 1));
    case.scan(t + 6 * MINUTE_MS, A, &[("ann", 3), ("dee", 3)]);
    case.scan(t + 8 * MINUTE_MS, A, &[("ann", 3), ("dee", 3)]);
    assert_eq!(names(&mut case, "game:baseq3"), ["ann", "dee", "bob", "cal"], "the points are unchanged");
    case.check("a changed tie break");
}

#[test]
fn cached_boards_use_orders_of_new_game() {
    let mut case = Case::new("UTC", &["day keep=0"]);
    case.set_low(&["points game:cstrike"]);
    case.restart();
    let t = ms("2026-11-18T09:10:00Z");
    case.scan(t, A, &[("ann", 0)]);
    case.state().commit_and_build_boards(day()).unwrap();
    let plan = case.state().engine.plan_boards(day());
    let built = clqd::state::build_boards(&plan, &case.state().store.reader()).unwrap();
    let week = parse_label("2026-W47").expect("a label");
    let plan = case.state().engine.plan_boards(week);
    let built_week = clqd::state::build_boards(&plan, &case.state().store.reader()).unwrap();
    case.scan(t + MINUTE_MS, C, &[("ann", 0), ("bob", 0)]);
    case.scan(t + 2 * MINUTE_MS, C, &[("ann", 3), ("bob", 1)]);
    let first = |case: &mut Case| case.points("game:cstrike", DAY)[0].0.clone();
    assert_eq!(first(&mut case), "bob", "in cached boards");
    case.state().engine.install_boards(built);
    assert_eq!(first(&mut case), "bob", "in boards whose build had started");
    case.state().engine.install_boards(built_week);
    assert!(case.state().engine.model().boards(week).is_some(), "its order is current");
    assert_eq!(case.points("game:cstrike", "2026-W47")[0].0, "bob");
    case.check("a new game");
}

/// The only server of a tag is greylisted.
#[test]
fn removed_group_leaves_other_groups_unchanged() {
    let mut case = Case::new("UTC", &["day keep=0"]);
    rounds(&mut case, ms("2026-11-18T09:10:00Z"), 12);
    let all = |case: &mut Case, scope| Ranking::ALL.map(|ranking| case.board(scope, DAY, ranking));
    let (pair, game) = (all(&mut case, "tag:pair"), all(&mut case, "game:baseq3"));
    assert!(!all(&mut case, "tag:alone")[4].is_empty());
    let url = clqd::model::ServerUrl::parse(C).unwrap();
    let state = case.state();
    state.engine.greylist(&state.store, &url, Some("test".to_owned())).unwrap();
    case.state().commit().unwrap();
    let plan = case.state().engine.plan_boards(day());
    let built = clqd::state::build_boards(&plan, &case.state().store.reader()).unwrap();
    case.state().engine.install_boards(built);
    assert!(all(&mut case, "tag:alone").iter().all(Vec::is_empty));
    assert!(all(&mut case, "game:cstrike").iter().all(Vec::is_empty));
    assert_eq!((all(&mut case, "tag:pair"), all(&mut case, "game:baseq3")), (pair, game));
}

#[test]
fn boards_built_on_another_thread_include_concurrent_scans() {
    let mut case = Case::new("UTC", &["day keep=0", "hour keep=0"]);
    let t = ms("2026-11-18T01:00:00Z");
    rounds(&mut case, t, 100);
    case.state().commit().unwrap();
    let mut from_ms = t + 200 * MINUTE_MS;
    for round in 0..8 {
        let plan = case.state().engine.plan_boards(day());
        let reader = case.state().store.reader();
        let done = AtomicBool::new(false);
        let built = std::thread::scope(|scope| {
            let builder = scope.spawn(|| {
                // Built repeatedly until the scans are applied; the last result is used.
                let mut built = clqd::state::build_boards(&plan, &reader).unwrap();
                while !done.load(Ordering::Acquire) {
                    built = clqd::state::build_boards(&plan, &reader).unwrap();
                }
                built
            });
            for _ in 0..6 {
                rounds(&mut case, from_ms, 1);
                from_ms += 2 * MINUTE_MS;
                case.state().commit().unwrap();
                let state = case.state();
                state.engine.refresh_boards(&state.store, None, 3).unwrap();
            }
            done.store(true, Ordering::Release);
            builder.join().expect("a build")
        });
        // Scans after the last build.
        rounds(&mut case, from_ms, 2);
        from_ms += 4 * MINUTE_MS;
        case.state().engine.install_boards(built);
        let updated = Ranking::ALL.map(|ranking| case.board("game:baseq3", DAY, ranking));
        let plan = case.state().engine.plan_boards(day());
        let rebuilt = clqd::state::build_boards(&plan, &case.state().store.reader()).unwrap();
        case.state().engine.install_boards(rebuilt);
        let rebuilt = Ranking::ALL.map(|ranking| case.board("game:baseq3", DAY, ranking));
        assert_eq!(updated, rebuilt, "round {round}");
    }
    case.check("built during scans");
}

#[test]
fn board_answer_is_consistent() {
    let mut case = Case::new("UTC", &["day keep=0"]);
    let t = ms("2026-11-18T01:00:00Z");
    rounds(&mut case, t, 30);
    case.state().commit_and_build_boards(day()).unwrap();
    let state = RwLock::new(case.take());
    let (done, responses) = (AtomicBool::new(false), std::sync::atomic::AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for ranking in [Ranking::Points, Ranking::Time] {
            let (state, done, responses) = (&state, &done, &responses);
            scope.spawn(move || {
                while !done.load(Ordering::Acquire) {
                    for scope in ["game:baseq3", "tag:pair", "server:quake3://127.0.0.1:27960"] {
                        let state = state.read().unwrap();
                        let query = |query| {
                            let selector = selector(scope, DAY, ranking, None);
                            state.engine.model().query_board(&state.store, &selector, &query).unwrap()
                        };
                        let top = query(BoardQuery::Top { count: 100 });
                        assert_eq!(top.rows.len() as u64, top.head.size);
                        let mut last = f64::INFINITY;
                        for (row, position) in top.rows.iter().zip(1..) {
                            let BoardRow::Entry(entry) = row else { panic!("{row:?}") };
                            assert!(entry.at.position == position && entry.at.score <= last, "{scope}: {:?}", top.rows);
                            last = entry.at.score;
                            // Score and position are consistent with the list.
                            let player = clqd::view::board::PlayerSelector::Key(entry.player_key);
                            let standing = query(BoardQuery::Standing { player });
                            let [BoardRow::Standing(standing)] = &standing.rows[..] else { panic!("{standing:?}") };
                            assert_eq!((standing.entry, standing.size), (Some(entry.at), top.head.size));
                        }
                        responses.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        let mut n = 0;
        while n < 30 || responses.load(Ordering::Relaxed) < 200 {
            {
                let mut state = state.write().unwrap();
                let t_ms = t + (60 + 2 * n) * MINUTE_MS;
                for (server, more) in [A, B].into_iter().zip(0..) {
                    let points = (n % 5) * 7;
                    let list = [("p1", points * (1 + n % 3)), ("p2", points), ("p3", points * 2)];
                    let line = super::case::line(t_ms + more, server, &list);
                    let (url, outcome) = clqd::scan_log::parse_scan(&line).unwrap();
                    state.handle(clqd::engine::Event::Replayed { url, outcome }).unwrap();
                }
                state.commit().unwrap();
            }
            // One player at a time, so that readers run in between.
            loop {
                let mut state = state.write().unwrap();
                let state = &mut *state;
                if !state.engine.refresh_boards(&state.store, None, 1).unwrap() {
                    break;
                }
            }
            n += 1;
        }
        done.store(true, Ordering::Release);
    });
    case.put_back(state.into_inner().unwrap());
}

#[test]
fn boards_of_deleted_window_are_evicted() {
    let mut case = Case::new("UTC", &["hour keep=1"]);
    case.settings.keep_weeks = 1;
    case.restart();
    let t = ms("2026-11-18T10:10:00Z");
    rounds(&mut case, t, 5);
    let deleted = [parse_label("2026-11-18T10Z").expect("a label"), parse_label("2026-W47").expect("a label")];
    deleted.iter().for_each(|window| case.state().commit_and_build_boards(*window).unwrap());
    assert!(deleted.iter().all(|window| case.state().engine.model().boards(*window).is_some()));
    let plan = case.state().engine.plan_boards(deleted[0]);
    let built = clqd::state::build_boards(&plan, &case.state().store.reader()).unwrap();
    for weeks in 1..3 {
        rounds(&mut case, t + weeks * 7 * 24 * HOUR_MS, 5);
        case.settle(t + weeks * 7 * 24 * HOUR_MS + HOUR_MS);
    }
    case.settle(t + 22 * 24 * HOUR_MS);
    assert!(deleted.iter().all(|window| case.state().engine.model().boards(*window).is_none()));
    // Boards of deleted windows are not installed, whenever they were built.
    case.state().engine.install_boards(built);
    let plan = case.state().engine.plan_boards(deleted[0]);
    let built = clqd::state::build_boards(&plan, &case.state().store.reader()).unwrap();
    case.state().engine.install_boards(built);
    assert!(deleted.iter().all(|window| case.state().engine.model().boards(*window).is_none()));
    let newest = parse_label("2026-W49").expect("a label");
    case.state().commit_and_build_boards(newest).unwrap();
    assert!(
        case.state().engine.model().boards(newest).is_some_and(|boards| boards.players() > 0),
        "other boards can be built"
    );
}

#[test]
fn boards_of_ended_windows_are_evicted_at_memory_limit() {
    let mut case = Case::new("UTC", &["hour keep=0"]);
    let t = ms("2026-11-18T09:10:00Z");
    let hours = ["2026-11-18T09Z", "2026-11-18T10Z", "2026-11-18T11Z"].map(|hour| parse_label(hour).expect("a label"));
    for hour in 0..3 {
        case.state()
            .engine
            .model()
            .running_windows()
            .into_iter()
            .for_each(|window| case.state().commit_and_build_boards(window).unwrap());
        rounds(&mut case, t + hour * 60 * MINUTE_MS, 4);
    }
    for hour in hours {
        case.state().commit_and_build_boards(hour).unwrap();
    }
    let before = hours.map(|hour| case.points("game:baseq3", &label(hour)));
    case.state().engine.model().touch_boards(hours[0]);
    case.tick(t + 5 * 60 * MINUTE_MS);
    assert!(hours.iter().all(|hour| case.state().engine.model().boards(*hour).is_some()), "within the limit");
    let all: usize = hours.iter().map(|hour| case.state().engine.model().boards(*hour).unwrap().heap_bytes()).sum();
    case.settings.closed_cache_bytes_max = all as u64 - 1;
    case.reload();
    case.tick(t + 5 * 60 * MINUTE_MS + 1_000);
    let cached = hours.map(|hour| case.state().engine.model().boards(hour).is_some());
    assert_eq!(cached, [true, false, true], "the most recently used board stays");
    case.settings.closed_cache_bytes_max = 0;
    case.reload();
    case.tick(t + 5 * 60 * MINUTE_MS + 2_000);
    assert!(hours.iter().all(|hour| case.state().engine.model().boards(*hour).is_none()));
    assert_eq!(hours.map(|hour| case.points("game:baseq3", &label(hour))), before, "rebuilt for a query");
}

#[test]
fn boards_of_recent_weeks_are_evicted_last() {
    let mut case = Case::new("UTC", &["hour keep=0"]);
    let t = ms("2026-11-18T09:10:00Z");
    let [week, hour] = ["2026-W47", "2026-11-18T09Z"].map(|window| parse_label(window).expect("a label"));
    rounds(&mut case, t, 4);
    let next_week = ms("2026-11-23T00:01:00Z");
    case.tick(next_week);
    while case.state().engine.model().recent_weeks().is_empty() {
        case.tick(next_week + 60_000);
    }
    assert_eq!(case.state().engine.model().recent_weeks(), [week]);
    for window in [week, hour] {
        case.state().commit_and_build_boards(window).unwrap();
    }
    case.tick(next_week + 120_000);
    case.state().engine.model().touch_boards(hour);
    let bytes = case.state().engine.model().boards(week).expect("boards").heap_bytes();
    case.settings.closed_cache_bytes_max = bytes as u64;
    case.reload();
    case.tick(next_week + 180_000);
    let cached = [week, hour].map(|window| case.state().engine.model().boards(window).is_some());
    assert_eq!(cached, [true, false], "the boards of the week stay, although others were used later");
    // Two weeks later they are like all others.
    case.tick(ms("2026-12-07T00:01:00Z"));
    assert_eq!(case.state().engine.model().recent_weeks(), []);
}
