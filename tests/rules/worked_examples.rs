//! Tests the oracle itself: examples of another implementation, and the worked examples of
//! docs/rules.md. clqd is not used.

use std::collections::BTreeMap;

use crate::oracle;
use crate::oracle::generate::{scan_log, screening};
use crate::oracle::{
    FactKind, LineKind, MapTime, Oracle, Outcome, Quarter, Reason, Scope, Settings, Snapshot, WindowKind,
};
use clqd::board::window::{Shape, WindowSpec, WindowTypes};
use clqd::model::calendar::{Calendar, HOUR_MS};
use clqd::model::{WeekKey, WindowKey, WindowType};
use serde_json::Value;

const LOG: &str = include_str!("../fixtures/scan-log.jsonl");
const EXPORT: &str = include_str!("../fixtures/export.jsonl");
const SCREENING_LOG: &str = include_str!("../fixtures/screening-log.jsonl");
const SCREENING_EXPORT: &str = include_str!("../fixtures/screening-export.jsonl");

#[test]
fn oracle_reproduces_independent_example() {
    check_example(LOG, EXPORT, false);
}

#[test]
fn oracle_reproduces_independent_screening_example() {
    check_example(SCREENING_LOG, SCREENING_EXPORT, true);
}

#[test]
fn oracle_reproduces_independent_example_of_final_lists() {
    let (log, export) =
        (include_str!("../fixtures/final-list-log.jsonl"), include_str!("../fixtures/final-list-export.jsonl"));
    check_example(log, export, true);
    let oracle = Oracle::new(log, Settings { rules: 1, ..Settings::default() });
    let longer = Oracle::new(log, Settings::default());
    let entries = |oracle: &Oracle| oracle.rounds.iter().map(|round| round.list.len()).sum::<usize>();
    assert!(entries(&longer) > entries(&oracle), "some players left at the end of a round");
}

fn check_example(log: &str, export: &str, screened: bool) {
    let oracle = Oracle::new(log, Settings::default());
    let got: Vec<String> = oracle.weeks().into_iter().flat_map(|week| oracle.export(week)).collect();
    let want: Vec<&str> = export.lines().collect();
    let key = |line: &str| -> (String, String) {
        let value: Value = serde_json::from_str(line).unwrap();
        (value["server"].to_string(), value["player"].to_string())
    };
    assert_eq!(
        got.iter().map(|line| key(line)).collect::<Vec<_>>(),
        want.iter().map(|line| key(line)).collect::<Vec<_>>()
    );
    for (got_line, want_line) in got.iter().zip(want) {
        let got: Value = serde_json::from_str(got_line).unwrap();
        let want: Value = serde_json::from_str(want_line).unwrap();
        assert!(same(&got, &want), "\n got {got_line}\nwant {want_line}");
        // The older example has no estimates.
        assert_eq!(want["time_est_ms"].is_null(), !screened);
        assert!(!screened || got["time_est_ms"] == want["time_est_ms"], "\n got {got_line}\nwant {want_line}");
        let order = |line: &str| -> Vec<usize> {
            ["week", "server", "game", "player", "measured_ms", "starts", "time_ms", "points", "clq1", "clq1_segments"]
                .map(|field| line.find(&format!("\"{field}\": ")).unwrap())
                .to_vec()
        };
        assert!(order(got_line).is_sorted() && order(want_line).is_sorted());
    }
}

/// Equal except for the last digits of floats and one thousandth in a segment.
fn same(got: &Value, want: &Value) -> bool {
    let segments = |v: &Value| -> Vec<u64> {
        v["clq1_segments"].as_array().unwrap().iter().map(|s| s.as_u64().unwrap()).collect()
    };
    let (got_segments, want_segments) = (segments(got), segments(want));
    let exact =
        ["week", "server", "game", "player", "measured_ms", "starts", "time_ms", "points", "clq2", "clq2_games"]
            .into_iter()
            .chain(["elo_rounds", "pos"]);
    exact.into_iter().all(|field| got[field] == want[field] && !got[field].is_null())
        && got_segments.len() == want_segments.len()
        && got_segments.iter().zip(&want_segments).all(|(a, b)| a.abs_diff(*b) <= 1)
        && got["clq1"] == got_segments.iter().sum::<u64>()
        && (got["elo"].as_f64().unwrap() - want["elo"].as_f64().unwrap()).abs() < 1e-9
}

#[test]
fn clq2_of_worked_example() {
    let points = [120, 100, 90, 89, 70, 40, 30, 20, 12, 3, 1, 0];
    assert_eq!(oracle::clq2_scores(&points, Quarter::Whole), [8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0]);
    assert_eq!(oracle::clq2_scores(&points, Quarter::Exact), [7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0, 0]);
    assert_eq!(oracle::clq2_scores(&[9, 9, 5], Quarter::Whole), [3, 3, 1], "equal points share the best position");
    assert_eq!(oracle::clq2_scores(&[0, -3], Quarter::Whole), [0, 0]);
}

#[test]
fn elo_of_worked_example() {
    let points: Vec<i64> = (0..10).rev().collect();
    let after = oracle::elo_after(&points, &[1000.0; 10], &Settings::default());
    assert_eq!(after[9], 887.5);
    assert_eq!(after.iter().sum::<f64>(), 10_000.0);
    let after = oracle::elo_after(&[3, 3], &[1000.0; 2], &Settings::default());
    assert_eq!(after, [1000.0; 2]);
}

#[test]
fn log_code_error_is_below_bound() {
    for (bits, error_max) in [(8, 0.023), (13, 0.0007)] {
        let top = ((1_u32 << bits) - 1) as u16;
        assert_eq!(oracle::encode(bits, None), top);
        assert_eq!(oracle::encode(bits, Some(0.0)), 0);
        assert_eq!(oracle::encode(bits, Some(0.001)), 1);
        assert_eq!(oracle::encode(bits, Some(1e9)), top - 1);
        for players in [0.05, 0.1, 1.0, 3.3, 16.0, 64.0, 1_000.0, 4_096.0] {
            let read = oracle::decode(bits, oracle::encode(bits, Some(players))).unwrap();
            assert!((read / players - 1.0).abs() < error_max, "{players} is decoded as {read} with {bits} bits");
        }
    }
}

#[test]
fn oracle_series_averages_slots_and_skips_empty_ones() {
    assert_eq!(oracle::median(&[7]), 7);
    assert_eq!(oracle::median(&[7, 3]), 3);
    assert_eq!(oracle::median(&[9, 0, 4]), 4);

    // Two samples in one slot, an empty slot, then one more.
    let log = "{\"t\":0,\"server\":\"source://a:1\",\"game\":\"g\",\"map\":\"m\",\"players\":[]}\n\
        {\"t\":300000,\"server\":\"source://a:1\",\"game\":\"g\",\"map\":\"m\",\"players\":\
        [{\"name\":\"a\",\"points\":0},{\"name\":\"b\",\"points\":0}]}\n\
        {\"t\":600000,\"server\":\"source://a:1\",\"game\":\"g\",\"map\":\"m\",\"players\":\
        [{\"name\":\"a\",\"points\":0},{\"name\":\"b\",\"points\":0}]}\n\
        {\"t\":1320001,\"server\":\"source://a:1\",\"game\":\"g\",\"map\":\"m\",\"players\":\
        [{\"name\":\"a\",\"points\":0},{\"name\":\"b\",\"points\":0}]}\n";
    let oracle = Oracle::new(log, Settings::default());
    let counts: Vec<u32> = oracle.assumed_counts("source://a:1").into_iter().map(|(_, count)| count).collect();
    assert_eq!(counts, [0, 0, 2, 2]);
    let series = oracle.series("source://a:1");
    assert_eq!(series.slots.into_iter().collect::<Vec<_>>(), [(0, 0.0), (1, 2.0), (2, 2.0)]);
    assert_eq!(series.hours.into_iter().collect::<Vec<_>>(), [(0, 4.0 / 3.0)]);
    // The last gap is longer than 720 s, and in the others the assumed count was 0.
    let map = oracle.map_times().into_iter().next().unwrap();
    assert_eq!(map, ((0, "m".to_owned(), "source://a:1".to_owned()), MapTime { played_ms: 600_000, player_ms: 0 }));
    assert!(oracle.server_ranks(0).is_empty());
}

#[test]
fn three_codes_pack_into_five_bytes() {
    let packed = oracle::pack_slots(&BTreeMap::from([(149, 0.0), (147, 4096.0)]), 149);
    assert_eq!(packed.len(), 250);
    // 13 ones: no data; the code below: 4096 players; 0: 0 players; then the spare bit.
    assert_eq!(packed[..5], [0xff, 0xff, 0xff, 0xff, 0xfe]);
    assert_eq!(packed[245..], [0xff, 0xf7, 0xff, 0xc0, 0x00]);
}

#[test]
fn silent_server_moves_to_lower_classes() {
    let list = "[{\"name\":\"a\",\"points\":0},{\"name\":\"b\",\"points\":0},{\"name\":\"c\",\"points\":0}]";
    let mut log = "{\"t\":1,\"server\":\"source://a:1\",\"miss\":true}\n".to_owned();
    log += &format!("{{\"t\":2,\"server\":\"source://a:1\",\"game\":\"g\",\"map\":\"m\",\"players\":{list}}}\n");
    for t in 3..=44 {
        log += &format!("{{\"t\":{t},\"server\":\"source://a:1\",\"miss\":true}}\n");
    }
    log += "{\"t\":45,\"server\":\"source://a:1\",\"partial\":true,\"count\":2,\"game\":\"g\",\"map\":\"m\",\"players\":[]}\n";
    let history = Oracle::new(&log, Settings::default()).class_history("source://a:1");
    let class_at = |t: i64| history.iter().find(|step| step.t == t).map(|step| (step.missed, step.class)).unwrap();
    let after_misses = |missed: i64| class_at(2 + missed);
    assert_eq!(class_at(1), (1, 7), "a new address is scanned on request");
    assert_eq!(class_at(2), (0, 1));
    let classes = [1, 2, 3, 10, 11, 20, 21, 30, 31, 40, 41, 42].map(after_misses).map(|(_, class)| class);
    assert_eq!(classes, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7]);
    assert_eq!(class_at(45), (0, 2), "the counts are 3 and 2");
}

/// Edge cases of docs/rules.md that the generated logs must contain.
#[test]
fn generated_logs_cover_every_listed_case() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..40 {
        let calendar = Calendar::default();
        let log = scan_log(seed, &calendar);
        assert_eq!(log, scan_log(seed, &calendar), "a seed determines the log");
        let oracle = Oracle::new(&log, Settings::default());
        let mut see = |case: &'static str, happened: bool| *seen.entry(case).or_default() += usize::from(happened);

        for line in &oracle.lines {
            let week_start = calendar.week_start_ms(calendar.week(line.t + 1));
            see("a line at the start of a week", line.t == week_start);
            see("a line 1 ms before the start of a week", line.t + 1 == week_start);
            match &line.kind {
                LineKind::Miss => see("a miss", true),
                LineKind::Partial { count, .. } => {
                    see("a count that is not believed", oracle.outcome_of(line) == Outcome::Unverified);
                    see("a count that is a sample", matches!(oracle.outcome_of(line), Outcome::Counted { .. }));
                    see("a partial with a count", count.is_some());
                    see("a partial without a count", count.is_none());
                }
                LineKind::Full { players, .. } => {
                    see("an empty list", players.is_empty());
                    see("a list of 64 players", players.len() == 64);
                    see("a bot with a player's name", {
                        let bots = || players.iter().filter(|p| p.bot);
                        bots().any(|bot| players.iter().any(|p| !p.bot && p.ping != Some(0) && p.name == bot.name))
                    });
                    see("ping 0 on Source", line.url.scheme() == "source" && players.iter().any(|p| p.ping == Some(0)));
                }
            }
        }
        let mut pairs = 0;
        for server in &oracle.servers {
            let snapshots: Vec<&Snapshot> = oracle.snapshots.iter().filter(|s| s.server == *server).collect();
            for (prev, cur) in snapshots.iter().zip(snapshots.iter().skip(1)) {
                pairs += 1;
                let gap = cur.t - prev.t;
                see("a gap of 720,000 ms", gap == 720_000);
                see("a gap of 720,001 ms", gap == 720_001);
                see("a duplicate name", cur.entries.iter().any(|e| !e.once));
                see("an ignored name", cur.entries.iter().any(|e| e.name == "UnnamedPlayer" && e.once));
                see("an empty name", cur.entries.iter().any(|e| e.name.is_empty() && e.once));
                see("negative points", cur.entries.iter().any(|e| e.points.is_some_and(|points| points < 0)));
                see("a change of game", prev.game != cur.game);
                let both: Vec<(i64, i64)> = prev
                    .entries
                    .iter()
                    .filter(|e| e.once)
                    .filter_map(|e| Some((e.points?, cur.entries.iter().find(|c| c.once && c.name == e.name)?.points?)))
                    .collect();
                let p: i64 = both.iter().map(|both| both.0.max(0)).sum();
                let c: i64 = both.iter().map(|both| both.1.max(0)).sum();
                let same_map = prev.map == cur.map;
                see("points that drop by 5", same_map && p - c == 5 && 2 * c < p);
                see("points that drop by 4", same_map && p - c == 4 && 2 * c < p);
                see("points that drop to half", same_map && p - c >= 5 && 2 * c == p);
                see("points that drop to just below half", same_map && p - c >= 5 && 2 * c + 1 == p);
                see(
                    "no name in common",
                    same_map && both.is_empty() && prev.entries.iter().any(|e| e.points > Some(0)),
                );
                see("a player's points that drop to half", both.iter().any(|&(prev, cur)| cur > 0 && 2 * cur == prev));
                see(
                    "a player's points that drop below half",
                    both.iter().any(|&(prev, cur)| cur > 0 && 2 * cur + 1 == prev),
                );
                see("a restart after a long gap", gap > 720_000 && oracle.rounds.iter().any(|r| r.t == cur.t));
            }
            let classes = oracle.class_history(server);
            for class in 1..=7_u8 {
                let name = ["class 1", "class 2", "class 3", "class 4", "class 5", "class 6", "class 7"];
                see(name[usize::from(class) - 1], classes.iter().any(|step| step.class == class));
            }
        }
        see("two snapshots to compare", pairs > 0);
        let without = Oracle::new(&log, Settings { rules: 1, ..Settings::default() });
        for round in &oracle.rounds {
            let shorter = without.rounds.iter().find(|it| (it.t, &it.server) == (round.t, &round.server));
            see("a round with a player who left", shorter.is_some_and(|it| it.list.len() < round.list.len()));
            see("a round that counts only with a player who left", shorter.is_none());
            for (n, name) in [
                (2, "a round of 2"),
                (3, "a round of 3"),
                (4, "a round of 4"),
                (5, "a round of 5"),
                (64, "a round of 64"),
            ] {
                see(name, round.list.len() == n);
            }
            let best = round.list.iter().map(|e| e.points).max().unwrap();
            see("equal best points", round.list.iter().filter(|e| e.points == best).count() > 1);
            see("an unusable entry in a final list", round.list.iter().any(|e| !e.usable));
            see("a sure round", round.sure);
            see("a round that is not sure", !round.sure);
            see("a final list of the previous week", calendar.week_start_ms(WeekKey(round.week)) == round.t);
        }
        for week in oracle.weeks() {
            let rows = oracle.week_rows(week);
            for (server, row) in &rows {
                see("a connected time", row.time_connected_ms != row.time_est_ms);
                see("a player only in a final list", row.measured_ms == 0 && row.starts == 0);
                let facts = |is_kind: fn(FactKind) -> bool| {
                    let of_row = |f: &&oracle::Fact| f.week == week && f.server == *server && f.player == row.player;
                    oracle.facts.iter().filter(of_row).filter(|f| is_kind(f.kind)).count()
                };
                see("an eleventh segment", facts(|kind| matches!(kind, FactKind::Segment(_))) > 10);
                see("an eleventh game", facts(|kind| matches!(kind, FactKind::Game(_))) > 10);
                see("points 0", row.points == 0);
                let others = rows.iter().filter(|(s, other)| s == server && other.player != row.player);
                for ranking in ["clq1", "clq2", "elo", "points", "time"] {
                    let tied = |other: &oracle::Row| {
                        row.score(ranking).is_some()
                            && row.score(ranking) == other.score(ranking)
                            && row.reached[ranking] == other.reached[ranking]
                    };
                    see(ranking, others.clone().any(|(_, other)| tied(other)));
                }
            }
        }
        see("several weeks", oracle.weeks().len() > 2);
        see("three best positions", oracle.best_positions().values().any(|best| best.len() == 3));
    }
    let missing: Vec<&&str> = seen.iter().filter(|(_, times)| **times == 0).map(|(case, _)| case).collect();
    assert!(missing.is_empty(), "not in the logs of 40 seeds: {missing:?}; all: {seen:#?}");
}

/// Edge cases of screening that the generated logs must contain.
#[test]
fn screening_logs_cover_every_listed_case() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let seeds = 60;
    for seed in 0..seeds {
        let calendar = Calendar::default();
        let log = screening::log(seed, &calendar);
        assert_eq!(log, screening::log(seed, &calendar), "a seed determines the log");
        let screen = screening::screen(seed);
        let enabled = screen.enabled;
        let oracle = Oracle::new(&log, Settings { screen, ..Settings::default() });
        let mut see = |case: &'static str, happened: bool| *seen.entry(case).or_default() += usize::from(happened);

        see("screening disabled", !enabled);
        assert!(enabled || oracle.reports.is_empty());
        for report in &oracle.reports {
            see(report.reason.name(), true);
        }
        see("bots that cannot be identified", oracle.unnamed_bots.values().any(|&bots| bots > 0));
        see("two weeks", oracle.weeks().len() > 1);
        let mut bots_seen: BTreeMap<&str, std::collections::BTreeSet<&str>> = BTreeMap::new();
        for (line, outcome) in oracle.lines.iter().zip(&oracle.outcomes) {
            let LineKind::Full { bots, players, slots, count, .. } = &line.kind else { continue };
            let entries = players.len() as u32;
            see("the maximum of entries", *slots > 0 && entries == slots + (slots / 4).max(8));
            see("one entry too many", *slots > 0 && entries == slots + (slots / 4).max(8) + 1);
            see("bots 0", *bots == Some(0));
            see("more bots than entries", bots.is_some_and(|bots| bots > entries));
            see("bots without a count", bots.is_some() && count.is_none());
            let all_bots = bots.is_some_and(|bots| bots > 0 && bots >= entries && bots >= count.unwrap_or(0));
            if enabled && all_bots && *outcome == Outcome::Full {
                see("only bots", entries > 1);
                let names = bots_seen.entry(&line.server).or_default();
                names.extend(players.iter().map(|p| p.name.as_str()));
                see("more bot names than are remembered", names.len() > 65);
            }
        }
        for server in &oracle.servers {
            let snapshots = oracle.snapshots_of(server);
            for (prev, cur) in snapshots.iter().zip(snapshots.iter().skip(1)) {
                let visible = cur.t - prev.t <= 720_000;
                see("the end of a frozen list", {
                    let frozen = |t: i64| prev.t < t && t < cur.t;
                    oracle.reports.iter().any(|r| r.reason == Reason::FrozenList && r.server == *server && frozen(r.t))
                });
                see("a change of game", prev.game != cur.game);
                for e in cur.entries.iter().filter(|e| e.usable) {
                    let before = prev.entries.iter().find(|p| p.name == e.name && p.once);
                    let Some(before) = before.filter(|_| visible && prev.game == cur.game) else { continue };
                    let restarted = oracle.rounds.iter().any(|round| round.server == *server && round.t == cur.t);
                    let joins = before.spectator && !e.spectator;
                    see("a player becomes a spectator", !before.spectator && e.spectator);
                    see("a spectator joins with points", joins && e.points > Some(0) && !restarted);
                    see("a spectator joins with a new round", joins && e.points > Some(0) && restarted);
                    see("points after no points", before.points.is_none() && e.points > Some(0));
                    see("a spectator without a key", e.spectator && !oracle.players.contains(&cur.player_id(e)));
                }
                let twice = |s: &Snapshot, name: &str| s.entries.iter().filter(|e| e.name == name).count() > 1;
                let shared = |e: &oracle::Entry| {
                    cur.playing().any(|other| other.name == e.name) && (twice(prev, &e.name) || twice(cur, &e.name))
                };
                let in_common = |e: &oracle::Entry| e.once && cur.playing().any(|c| c.once && c.name == e.name);
                let none_in_common = prev.map == cur.map && !prev.playing().any(in_common);
                let had_points = prev.playing().any(|e| e.points > Some(0));
                see("only a generic name in common", none_in_common && had_points && prev.playing().any(shared));
                see("no name in common at all", none_in_common && had_points && !prev.playing().any(shared));
                let shares_name_with_spectator = |e: &oracle::Entry| {
                    !e.once && cur.entries.iter().filter(|c| c.name == e.name && !c.spectator).count() == 1
                };
                see("a spectator with a player's name", cur.playing().any(shares_name_with_spectator));
            }
        }
        for round in &oracle.rounds {
            let last = oracle.snapshots_of(&round.server).into_iter().rev().find(|s| s.t < round.t).expect("a list");
            see("a final list without its spectators", last.entries.iter().any(|e| e.spectator));
            see("a final list without entries that have no points", last.playing().any(|e| e.points.is_none()));
        }
        for week in oracle.weeks() {
            for (_, row) in oracle.week_rows(week) {
                see("a player on the time board only", !row.with_points);
                see("time 0", row.time_ms() == 0 && row.time_est_ms > 0);
            }
        }
        see("time on the map (other)", oracle.map_times().keys().any(|(_, map, _)| map == "(other)"));
        let unusable = |e: &oracle::Entry| e.once && !e.usable && !e.spectator && e.name.starts_with('p');
        see("a name beyond the quota", oracle.snapshots.iter().any(|s| s.entries.iter().any(unusable)));
    }
    let missing: Vec<&&str> = seen.iter().filter(|(_, times)| **times == 0).map(|(case, _)| case).collect();
    assert!(missing.is_empty(), "not in the logs of {seeds} seeds: {missing:?}; all: {seen:#?}");
}

#[test]
fn each_setting_changes_export() {
    let default = Settings::default;
    let zone = |name| Calendar::new(name).expect("a zone");
    for settings in [
        Settings { calendar: zone("Pacific/Auckland"), ..default() },
        Settings { count_bots: true, ..default() },
        Settings { ping_zero_is_bot: false, ..default() },
        Settings { ignore: Vec::new(), ..default() },
        Settings { round_drop_min: 20, ..default() },
        Settings { round_drop_ratio: 0.75, ..default() },
        Settings { clq2_quarter: Quarter::Exact, ..default() },
        Settings { elo_k: 40.0, ..default() },
        Settings { elo_k_times_opponents_max: 0.0, ..default() },
        Settings { elo_carry_over: true, ..default() },
    ] {
        let export = |seed: u64, settings: &Settings| -> Vec<String> {
            let oracle = Oracle::new(&scan_log(seed, &Calendar::default()), settings.clone());
            oracle.weeks().into_iter().flat_map(|week| oracle.export(week)).collect()
        };
        assert!((0..20).any(|seed| export(seed, &settings) != export(seed, &default())), "{settings:?}");
    }
}

#[test]
fn scope_of_one_server_equals_server() {
    for seed in 0..5 {
        let oracle = Oracle::new(&scan_log(seed, &Calendar::default()), Settings::default());
        for week in oracle.weeks() {
            for server in &oracle.servers {
                let lines = |scope| -> Vec<String> {
                    oracle.rows(week, &scope).iter().map(|row| row.export_line(server)).collect()
                };
                assert_eq!(lines(Scope::Server(server.clone())), lines(Scope::Tag(vec![server.clone()])));
            }
            // Sums over all games equal sums over all servers.
            let games: std::collections::BTreeSet<&str> = oracle.snapshots.iter().map(|s| s.game.as_str()).collect();
            let of_games = games.iter().flat_map(|game| oracle.rows(week, &Scope::Game((*game).to_owned())));
            let by_game =
                of_games.fold((0, 0, 0), |sum, r| (sum.0 + r.time_ms(), sum.1 + r.points, sum.2 + r.elo_rounds));
            let of_servers = oracle.week_rows(week).into_iter().map(|(_, row)| row);
            let by_server =
                of_servers.fold((0, 0, 0), |sum, r| (sum.0 + r.time_ms(), sum.1 + r.points, sum.2 + r.elo_rounds));
            assert_eq!(by_game, by_server, "seed {seed}");
        }
    }
}

/// Each server, each game, and a tag of every second server.
fn scopes(oracle: &Oracle) -> Vec<Scope> {
    let games: std::collections::BTreeSet<&str> = oracle.snapshots.iter().map(|s| s.game.as_str()).collect();
    let servers = oracle.servers.iter().cloned().map(Scope::Server);
    let games = games.into_iter().map(|game| Scope::Game(game.to_owned()));
    servers.chain(games).chain([Scope::Tag(oracle.servers.iter().step_by(2).cloned().collect())]).collect()
}

/// Also if ratings are carried over between weeks: a window starts without them.
#[test]
fn week_window_equals_week() {
    let mut rows = 0;
    for (seed, zone) in (0..6).zip(["UTC", "America/Sao_Paulo"].into_iter().cycle()) {
        let settings = Settings { calendar: Calendar::new(zone).expect("a zone"), ..Settings::default() };
        let log = scan_log(seed, &settings.calendar);
        let carrying = Oracle::new(&log, Settings { elo_carry_over: true, ..settings.clone() });
        let oracle = Oracle::new(&log, settings);
        let windows = oracle.windows(&WindowKind::Weeks);
        assert_eq!(windows.iter().map(|(index, _)| *index).collect::<Vec<_>>(), oracle.weeks(), "seed {seed}");
        for (week, span) in windows {
            for scope in scopes(&oracle) {
                let printed = |rows: Vec<oracle::Row>| -> Vec<(String, BTreeMap<&str, i64>)> {
                    rows.into_iter().map(|row| (row.export_line(""), row.reached)).collect()
                };
                let want = printed(oracle.rows(week, &scope));
                rows += want.len();
                assert_eq!(printed(oracle.window_rows(&span, &scope)), want, "seed {seed}, {scope:?}");
                assert_eq!(printed(carrying.window_rows(&span, &scope)), want, "seed {seed}, {scope:?}");
            }
        }
    }
    assert!(rows > 1_000, "{rows} rows");
}

/// Time, points and rounds of a long window are the sums of those of the short windows within it,
/// and its ten best segments and games are the ten best of all theirs.
#[test]
fn long_window_equals_sum_of_short_windows() {
    let mut several = 0;
    for seed in 0..3 {
        let oracle = Oracle::new(&scan_log(seed, &Calendar::default()), Settings::default());
        let (_, all_time) = &oracle.windows(&WindowKind::AllTime)[0];
        for scope in scopes(&oracle) {
            let whole = oracle.window_rows(all_time, &scope);
            for kind in [WindowKind::Hours, WindowKind::Days, WindowKind::Weeks, WindowKind::Months] {
                let mut parts: BTreeMap<oracle::PlayerId, Vec<oracle::Row>> = BTreeMap::new();
                for (_, span) in oracle.windows(&kind) {
                    for row in oracle.window_rows(&span, &scope) {
                        parts.entry(row.player.clone()).or_default().push(row);
                    }
                }
                assert_eq!(parts.len(), whole.len(), "seed {seed}, {kind:?}");
                for row in &whole {
                    let parts = &parts[&row.player];
                    several += usize::from(parts.len() > 1);
                    let best = |values: fn(&oracle::Row) -> &Vec<u64>| {
                        let mut best: Vec<u64> = parts.iter().flat_map(values).copied().collect();
                        best.sort_unstable_by(|a, b| b.cmp(a));
                        best.truncate(10);
                        best
                    };
                    assert_eq!(best(|row| &row.clq1_segments), row.clq1_segments, "seed {seed}, {kind:?}");
                    assert_eq!(best(|row| &row.clq2_games), row.clq2_games, "seed {seed}, {kind:?}");
                    let sums = parts.iter().fold((0, 0, 0), |sum, part| {
                        (sum.0 + part.time_ms(), sum.1 + part.points, sum.2 + part.elo_rounds)
                    });
                    assert_eq!(sums, (row.time_ms(), row.points, row.elo_rounds), "seed {seed}, {kind:?}");
                }
            }
        }
    }
    assert!(several > 100, "{several} rows consist of several");
}

/// Compares the boundaries of windows with those of clqd.
#[test]
fn oracle_windows_equal_board_windows() {
    let (base_ms, duration_ms, every_ms, repeat) = (1_700_000_000_000, 250_000_000, 100_000_000, 1_500);
    let types = [
        (WindowType::ALL_TIME, Shape::AllTime, WindowKind::AllTime),
        (WindowType::HOUR, Shape::Hour, WindowKind::Hours),
        (WindowType::DAY, Shape::Day, WindowKind::Days),
        (WindowType::WEEK, Shape::Week, WindowKind::Weeks),
        (WindowType::MONTH, Shape::Month, WindowKind::Months),
        (
            WindowType(12),
            Shape::Custom { base_ms, duration_ms, every_ms, repeat },
            WindowKind::Custom { base_ms, duration_ms, every_ms, repeat },
        ),
    ];
    for zone in
        ["UTC", "Europe/Amsterdam", "America/Sao_Paulo", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia"]
    {
        let calendar = Calendar::new(zone).expect("a zone");
        let specs = types.iter().map(|(kind, shape, _)| WindowSpec { kind: *kind, shape: *shape, keep: 0 });
        let windows = WindowTypes::new(calendar, specs).expect("types");
        // Steps that hit every hour of the day, over years in which zones changed their clocks.
        for t in (0..2_000_000_000_000).step_by(500_400_000) {
            for t in [t, t / HOUR_MS * HOUR_MS, t / HOUR_MS * HOUR_MS + 60_000] {
                let of_type = |(kind, _, oracle_kind): &(WindowType, Shape, WindowKind)| {
                    let kind = *kind;
                    let with_key = move |(index, span)| (WindowKey { kind, index }, span);
                    oracle_kind.between(&calendar, t, t).into_iter().map(with_key).collect::<Vec<_>>()
                };
                let want: Vec<_> = types.iter().flat_map(of_type).collect();
                let got: Vec<_> =
                    windows.windows_at(t).into_iter().map(|key| (key, windows.span(key).expect("a window"))).collect();
                assert_eq!(got, want, "{zone} at {t}");
            }
        }
    }
}
