//! Tests how the oracle applies commands and settings of a log (docs/rules.md 13), with examples
//! computed by hand and with random logs. clqd is not used.

use std::collections::BTreeMap;

use crate::oracle::generate::commands::{Options, as_recorded, settings_line, with_commands};
use crate::oracle::generate::{scan_log, screening};
use crate::oracle::{Oracle, Outcome, PlayerId, Row, Scope, Settings, elo_after};
use clqd::model::WeekKey;
use clqd::model::calendar::{Calendar, parse_week_label};
use serde_json::{Value, json};

const A: &str = "quake3://127.0.0.1:27960";
const B: &str = "quake3://127.0.0.1:27961";
const MINUTE_MS: i64 = 60_000;

/// The week of most examples.
pub fn week() -> u32 {
    parse_week_label("2026-W47").expect("a label").0
}

/// Unix ms of a minute of that week; negative minutes lie before it.
pub fn minute(minute: i64) -> i64 {
    Calendar::default().week_start_ms(WeekKey(week())) + minute * MINUTE_MS
}

/// A log; times are minutes of the week.
#[derive(Default)]
pub struct Log(pub String);

impl Log {
    pub fn scan(mut self, at: i64, server: &str, players: &[(&str, i64)]) -> Log {
        let players: Vec<Value> =
            players.iter().map(|(name, points)| json!({"name": name, "points": points, "ping": 30})).collect();
        let line = json!({"t": minute(at), "server": server, "game": "g", "map": "m", "slots": 16, "players": players});
        self.0 += &format!("{line}\n");
        self
    }

    /// A command, or settings.
    pub fn then(mut self, at: i64, mut line: Value) -> Log {
        line["t"] = minute(at).into();
        self.0 += &format!("{line}\n");
        self
    }

    fn on(self, at: i64, command: &str, server: &str) -> Log {
        self.then(at, json!({"command": command, "server": server}))
    }

    fn merge(self, at: i64, from: &str, into: &str) -> Log {
        self.then(at, json!({"command": "merge", "game": "g", "from": from, "into": into}))
    }

    /// A round on a server: four minutes with these final points, then a restart.
    fn round(self, at: i64, server: &str, points: &[(&str, i64)]) -> Log {
        let zero: Vec<(&str, i64)> = points.iter().map(|(name, _)| (*name, 0)).collect();
        self.scan(at, server, &zero).scan(at + 2, server, points).scan(at + 4, server, &zero)
    }

    pub fn oracle(&self) -> Oracle {
        Oracle::new(&self.0, Settings::default())
    }
}

fn server(server: &str) -> Scope {
    Scope::Server(server.to_owned())
}

fn game() -> Scope {
    Scope::Game("g".to_owned())
}

fn player(name: &str) -> PlayerId {
    PlayerId { game: "g".to_owned(), name: name.to_owned() }
}

fn names(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(|row| row.player.name.as_str()).collect()
}

fn row<'a>(rows: &'a [Row], name: &str) -> &'a Row {
    rows.iter().find(|row| row.player.name == name).unwrap_or_else(|| panic!("no row of {name}"))
}

#[test]
fn removed_server_is_ignored_until_it_is_added_again() {
    let log = Log::default()
        .on(0, "add", B)
        .then(0, json!({"command": "add", "server": A, "tags": ["ctf"]}))
        .scan(0, A, &[("ann", 0)])
        .scan(2, A, &[("ann", 5)])
        .on(3, "remove", A)
        .scan(4, A, &[("ann", 9), ("new", 0)])
        .on(5, "add", A)
        .scan(6, A, &[("ann", 20)])
        .scan(8, A, &[("ann", 22)]);
    let oracle = log.oracle();
    assert_eq!(oracle.servers, [B, A], "keys are in order of the commands");
    assert_eq!(oracle.outcomes[2], Outcome::Ignored);
    assert!(oracle.tags[A].contains("ctf") && oracle.tags[B].is_empty());
    assert_eq!(oracle.players, [player("ann")]);
    let rows = oracle.rows(week(), &server(A));
    let ann = row(&rows, "ann");
    assert_eq!((ann.starts, ann.measured_ms, ann.points), (2, 4 * MINUTE_MS, 7));
    assert_eq!(ann.time_est_ms, 2 * 60_000 + 4 * MINUTE_MS);
    assert_eq!(oracle.class_history(A).len(), 4);
    assert_eq!((oracle.skipped, oracle.removed.len()), (0, 0));
}

#[test]
fn greylisted_server_counts_nowhere_until_lift() {
    let hidden = Log::default()
        .scan(0, A, &[("ann", 10), ("bob", 4)])
        .scan(0, B, &[("ann", 0)])
        .scan(2, A, &[("ann", 20), ("bob", 8)])
        .on(3, "greylist", A)
        .scan(4, A, &[("ann", 25), ("bob", 0), ("cat", 1)]);
    let oracle = hidden.oracle();
    assert!(oracle.rows(week(), &server(A)).is_empty());
    assert_eq!(names(&oracle.rows(week(), &game())), ["ann"]);
    assert_eq!(oracle.rows(week(), &game())[0].points, 0);
    assert_eq!(*oracle.outcomes.last().unwrap(), Outcome::Partial { count: Some(3) });

    // Points that fell to 0 meanwhile end no round.
    let log = hidden.on(5, "lift", A).scan(6, A, &[("ann", 0), ("bob", 0)]).scan(8, A, &[("ann", 3)]);
    let oracle = log.oracle();
    assert_eq!(oracle.players, [player("ann"), player("bob")], "cat has no key");
    assert!(oracle.rounds.is_empty());
    let rows = oracle.rows(week(), &server(A));
    let (ann, bob) = (row(&rows, "ann"), row(&rows, "bob"));
    assert_eq!((ann.starts, ann.measured_ms, ann.points), (2, 4 * MINUTE_MS, 13));
    assert_eq!((bob.starts, bob.measured_ms, bob.points), (2, 2 * MINUTE_MS, 4));
    assert_eq!(oracle.assumed_counts(A).len(), 4, "no sample of the greylisted server");
    assert_eq!(oracle.map_times().values().map(|time| time.played_ms).sum::<i64>(), 4 * MINUTE_MS);
}

#[test]
fn week_that_closes_without_greylisted_server_stays_without_it() {
    let play = |log: Log| {
        log.round(-10, A, &[("ann", 9), ("bob", 3)]).round(-10, B, &[("ann", 9), ("bob", 3)]).on(-5, "greylist", A)
    };
    let before = week() - 1;
    let ended = play(Log::default()).scan(1, B, &[]).on(2, "lift", A).scan(3, A, &[("ann", 0)]);
    let oracle = Oracle::new(&sorted(&ended), Settings::default());
    assert!(oracle.rows(before, &server(A)).is_empty());
    assert_eq!(names(&oracle.rows(before, &server(B))), ["ann", "bob"]);
    assert_eq!(names(&oracle.rows(week(), &server(A))), ["ann"]);
    let best = oracle.best_positions();
    assert_eq!(best.keys().map(|(_, server, _)| server.as_str()).collect::<Vec<_>>(), [B; 4]);

    // The week is closed before the first line after its end.
    let lifted = play(Log::default()).on(-1, "lift", A).scan(1, B, &[]);
    let oracle = Oracle::new(&sorted(&lifted), Settings::default());
    assert_eq!(names(&oracle.rows(before, &server(A))), ["ann", "bob"]);
    assert_eq!(oracle.best_positions()[&(player("ann"), A.to_owned(), "elo")], [(1, before)]);

    // Best positions stay if the server is greylisted later, and rows of a closed week do.
    let oracle = Oracle::new(&sorted(&lifted.on(2, "greylist", A)), Settings::default());
    assert_eq!(names(&oracle.rows(before, &server(A))), ["ann", "bob"]);
    assert_eq!(oracle.best_positions().len(), 8);
}

/// The lines in order of time. The examples write them by server.
fn sorted(log: &Log) -> String {
    let time = |line: &&str| serde_json::from_str::<Value>(line).unwrap()["t"].as_i64();
    let mut lines: Vec<&str> = log.0.lines().collect();
    lines.sort_by_key(time);
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn merged_rows_are_added_and_name_that_was_there_first_counts() {
    let log = Log::default().round(0, A, &[("ann", 10), ("bob", 6), ("cat", 2)]).merge(5, "bob", "ann").scan(
        6,
        A,
        &[("bob", 5), ("ann", 7)],
    );
    // The pivot is 10; cat's 2 points go into it five times.
    let before =
        Oracle::new(&log.0.lines().take(3).map(|line| format!("{line}\n")).collect::<String>(), Settings::default());
    let rows = before.rows(week(), &server(A));
    assert_eq!((row(&rows, "ann").elo, row(&rows, "bob").elo, row(&rows, "cat").elo), (1025.0, 1000.0, 975.0));
    assert_eq!((row(&rows, "ann").clq2(), row(&rows, "bob").clq2(), row(&rows, "cat").clq2()), (2, 1, 0));

    let rows = log.oracle().rows(week(), &server(A));
    assert_eq!(names(&rows), ["ann", "cat"]);
    let ann = row(&rows, "ann");
    // Both had 10 + 6 points in 4 minutes; then ann's entry counts and bob's does not.
    assert_eq!((ann.points, ann.measured_ms, ann.starts), (16 + 7, (4 + 4 + 2) * MINUTE_MS, 2));
    assert_eq!((ann.clq2_games.as_slice(), ann.elo, ann.elo_rounds), (&[2, 1][..], 1025.0, 1));
    assert_eq!(ann.time_est_ms, 2 * (60_000 + 4 * MINUTE_MS) + 2 * MINUTE_MS);
    assert_eq!(row(&rows, "cat").time_est_ms, 60_000 + 5 * MINUTE_MS);
    assert_eq!((ann.reached["points"], ann.reached["time"]), (minute(6), minute(6)));

    // The player continues with the other name, which had 5 points, and then with the first name again,
    // which was not in the list before.
    let renamed = log.scan(8, A, &[("bob", 9)]);
    let ann = &renamed.oracle().rows(week(), &server(A))[0];
    assert_eq!((ann.points, ann.measured_ms, ann.starts), (23 + 4, 12 * MINUTE_MS, 2));
    let ann = &renamed.scan(10, A, &[("ann", 10)]).oracle().rows(week(), &server(A))[0];
    assert_eq!((ann.points, ann.measured_ms, ann.starts), (27 + 10, 14 * MINUTE_MS, 2));

    // In the final list bob's entry of minute 6 is unusable: it is not rated.
    let both = Log::default()
        .scan(0, A, &[("ann", 0), ("bob", 0)])
        .merge(1, "bob", "ann")
        .scan(2, A, &[("bob", 9), ("ann", 6), ("cat", 3)])
        .scan(4, A, &[("bob", 0), ("ann", 0), ("cat", 0)]);
    let oracle = both.oracle();
    let rated = elo_after(&[9, 6, 3], &[1000.0; 3], &Settings::default());
    let rows = oracle.rows(week(), &server(A));
    assert_eq!((row(&rows, "ann").elo, row(&rows, "cat").elo), (rated[1], rated[2]));
    assert_eq!(row(&rows, "ann").clq2_games, [2], "second of three serious entries");
}

#[test]
fn presence_of_target_continues_after_merge() {
    // Both are present at the merge: ann's presence continues. Before, each had its own points.
    for (first, second, points) in [("ann", "bob", 1 + 4), ("bob", "ann", 1 + 100)] {
        let oracle = Log::default()
            .scan(0, A, &[(first, 0)])
            .scan(2, A, &[(second, 0), (first, 1)])
            .merge(3, "bob", "ann")
            .scan(4, A, &[(second, 100), (first, 5)])
            .oracle();
        let rows = oracle.rows(week(), &server(A));
        assert_eq!((names(&rows), rows[0].points), (vec!["ann"], points), "{first} was there first");
        assert_eq!((rows[0].starts, rows[0].measured_ms), (2, 4 * MINUTE_MS));
    }
    // A segment goes on: 12 points in 12 minutes, half of them with each name.
    let mut log = Log::default().scan(-1, B, &[("ann", 0)]).scan(0, A, &[("bob", 0)]);
    for at in 1..=6 {
        log = log.scan(2 * at, A, &[("bob", 2 * at)]);
        if at == 3 {
            log = log.merge(7, "bob", "ann");
        }
    }
    let oracle = log.oracle();
    let rows = oracle.rows(week(), &server(A));
    assert_eq!(names(&rows), ["ann"]);
    assert_eq!((rows[0].clq1_segments.as_slice(), rows[0].starts), (&[12_000][..], 1));
    assert_eq!(oracle.player_key(&rows[0].player), 1, "the key of the target");
}

/// The eleventh segment of ann's row is later than all of the ten best.
#[test]
fn merged_ten_best_were_reached_with_last_of_them() {
    let segments = |log: Log, at: i64, name: &str, points: &[i64]| {
        let mut log = log.scan(at, A, &[(name, 0)]);
        let mut sum = 0;
        for (n, gain) in points.iter().enumerate() {
            sum += gain;
            log = log.scan(at + 12 * (n as i64 + 1), A, &[(name, sum)]);
        }
        log
    };
    let log = segments(Log::default(), 0, "ann", &[9, 8, 7, 6, 5, 4]);
    let log = segments(log, 200, "bob", &[9, 8, 7, 6, 5, 1]).merge(300, "bob", "ann");
    let ann = &log.oracle().rows(week(), &server(A))[0];
    assert_eq!(ann.clq1_segments, [9, 9, 8, 8, 7, 7, 6, 6, 5, 5].map(|points| 1_000 * points));
    assert_eq!(ann.reached["clq1"], minute(200 + 60), "bob's fifth");
    assert_eq!(ann.reached["points"], minute(200 + 72));
}

#[test]
fn merge_keeps_rating_with_more_rounds_in_each_scope() {
    let log = Log::default().round(0, A, &[("ann", 9), ("cat", 3)]).round(10, B, &[("bob", 9), ("cat", 3)]).round(
        20,
        B,
        &[("bob", 9), ("cat", 3)],
    );
    let rating = |oracle: &Oracle, scope: &Scope, name: &str| {
        let rows = oracle.rows(week(), scope);
        (row(&rows, name).elo, row(&rows, name).elo_rounds)
    };
    let before = log.oracle();
    let (ann, bob) = (rating(&before, &game(), "ann"), rating(&before, &game(), "bob"));
    assert_eq!((ann.1, bob.1), (1, 2));
    for (from, into) in [("ann", "bob"), ("bob", "ann")] {
        let log = Log(log.0.clone()).merge(30, from, into);
        let oracle = log.oracle();
        assert_eq!(rating(&oracle, &game(), into), bob);
        assert_eq!(rating(&oracle, &server(A), into), rating(&before, &server(A), "ann"));
        assert_eq!(rating(&oracle, &game(), "cat"), rating(&before, &game(), "cat"));
        assert!(oracle.rows(week(), &game()).iter().all(|row| row.player.name != from));
        // The next round begins with that rating, whichever of the names is seen.
        let log = log.round(40, A, &[(from, 9), ("cat", 3)]);
        let cat = rating(&before, &game(), "cat").0;
        let want = elo_after(&[9, 3], &[bob.0, cat], &Settings::default())[0];
        assert_eq!(rating(&log.oracle(), &game(), into), (want, 3));
    }
    // Equal rounds: the rating of the target.
    let log = Log::default()
        .round(0, A, &[("ann", 9), ("cat", 3)])
        .round(10, B, &[("bob", 3), ("cat", 9)])
        .merge(20, "bob", "ann");
    assert_eq!(rating(&log.oracle(), &game(), "ann"), (1012.5, 1));
}

#[test]
fn merged_player_keeps_better_position_of_each_week() {
    let log = Log::default().round(-20, A, &[("ann", 9), ("bob", 3)]).scan(1, A, &[]).merge(2, "ann", "bob").round(
        10,
        A,
        &[("cat", 9), ("ann", 3)],
    );
    let oracle = log.oracle();
    assert_eq!(oracle.best_positions()[&(player("bob"), A.to_owned(), "elo")], [(1, week() - 1)]);
    assert_eq!(oracle.best_positions().len(), 2, "elo and clq2 of the merged player");
    let rows = oracle.rows(week() - 1, &server(A));
    assert_eq!((names(&rows), rows[0].points), (vec!["bob"], 12), "closed weeks have the merged rows");
    assert_eq!(names(&oracle.rows(week(), &server(A))), ["bob", "cat"]);
}

#[test]
fn forgotten_player_is_deleted_and_ratings_of_others_stay() {
    let name = format!("forgotten-{}-1", minute(5));
    let log = Log::default()
        .round(-20, A, &[("ann", 10), (&name, 20), ("cat", 5)])
        .round(0, A, &[("ann", 10), (&name, 20), ("cat", 5)])
        .then(5, json!({"command": "forget", "game": "g", "player": name}))
        .scan(6, A, &[("ann", 4), ("", 6), ("cat", 2)])
        .scan(8, A, &[("ann", 0), ("", 0), ("cat", 0)]);
    let oracle = log.oracle();
    let rows = oracle.rows(week(), &server(A));
    assert_eq!(names(&rows), ["ann", "cat"]);
    let ann = row(&rows, "ann");
    assert_eq!((ann.points, ann.pos["points"], ann.pos["elo"]), (14, 1, 1));
    // The first round was rated with the player; the second with an unusable entry.
    let first = elo_after(&[10, 20, 5], &[1000.0; 3], &Settings::default());
    let second = elo_after(&[4, 6, 2], &[first[0], 1000.0, first[2]], &Settings::default());
    assert_eq!((ann.elo, row(&rows, "cat").elo), (second[0], second[2]));
    assert_eq!(oracle.rounds.last().unwrap().list.len(), 3);
    let before = oracle.rows(week() - 1, &server(A));
    assert_eq!(row(&before, "ann").pos["points"], 1, "players move up in closed weeks");
    let best = oracle.best_positions();
    assert_eq!(best[&(player("ann"), A.to_owned(), "elo")], [(2, week() - 1)], "best positions do not change");
    assert!(best.keys().all(|(player, ..)| player.name != name));
    assert!(oracle.last_list(A).unwrap().entries.iter().all(|e| e.name != name));
}

/// The entry of the last list before the request loses its name: the round that it is in has an
/// unusable entry.
#[test]
fn round_of_forgotten_player_ends_with_unusable_entry() {
    let name = format!("forgotten-{}-1", minute(3));
    let oracle = Log::default()
        .scan(0, A, &[("ann", 0), (&name, 0)])
        .scan(2, A, &[("ann", 10), (&name, 20)])
        .then(3, json!({"command": "forget", "game": "g", "player": name}))
        .scan(4, A, &[("ann", 0), ("", 0)])
        .oracle();
    let list = &oracle.rounds[0].list;
    assert_eq!((list[0].usable, list[1].usable, list[1].name.as_str()), (true, false, ""));
    let rows = oracle.rows(week(), &server(A));
    assert_eq!((names(&rows), rows[0].elo, rows[0].clq2_games.as_slice()), (vec!["ann"], 987.5, &[1][..]));
}

#[test]
fn settings_of_log_hold_from_their_line_on() {
    let log = Log::default()
        .then(0, json!({"settings": {"elo.k": 10, "time_zone": "UTC", "no.such.key": 1}}))
        .round(0, A, &[("ann", 9), ("bob", 3)])
        .then(5, json!({"settings": {"elo.k": 20.0, "names.ignore": ["cat"], "time_zone": "Asia/Kolkata"}}))
        .scan(6, A, &[("ann", 9), ("bob", 3), ("cat", 1)])
        .scan(8, A, &[("ann", 0), ("bob", 0), ("cat", 0)]);
    let oracle = log.oracle();
    let rows = oracle.rows(week(), &server(A));
    assert_eq!(names(&rows), ["ann", "bob"]);
    let with_k = |k| Settings { elo_k: k, ..Settings::default() };
    let first = elo_after(&[9, 3], &[1000.0; 2], &with_k(10.0));
    let second = elo_after(&[9, 3, 1], &[first[0], first[1], 1000.0], &with_k(20.0));
    assert_eq!((rows[0].elo, rows[1].elo), (second[0], second[1]));
    assert_eq!((oracle.skipped, oracle.settings.calendar.zone_name()), (2, "UTC"));

    let own = Oracle::recompute(&log.0, Settings::default()).rows(week(), &server(A));
    assert_eq!(names(&own), ["ann", "bob", "cat"]);
    let first = elo_after(&[9, 3], &[1000.0; 2], &Settings::default());
    let second = elo_after(&[9, 3, 1], &[first[0], first[1], 1000.0], &Settings::default());
    assert_eq!(own[0].elo, second[0]);
}

#[test]
fn settings_line_has_all_settings_of_config() {
    let mut settings =
        Settings { elo_k: 7.0, class1_players_min: 9, low_is_better: vec!["time".to_owned()], ..Settings::default() };
    settings.screen.gain_max = 5;
    let oracle = Oracle::new(&settings_line(0, &settings), Settings::default());
    assert_eq!((format!("{:?}", oracle.settings), oracle.skipped), (format!("{settings:?}"), 0));
}

#[test]
fn orders_of_boards_apply_to_kept_weeks_but_not_to_best_positions() {
    let log = Log::default().round(-20, A, &[("ann", 9), ("bob", 3), ("cat", 3)]).scan(0, A, &[]).then(
        1,
        json!({"settings": {
            "boards.low_is_better": ["elo", "points server:quake3://127.0.0.1:27961"],
            "boards.tie_breakers": ["points clq2"],
        }}),
    );
    let oracle = log.oracle();
    let pos = |rows: &[Row], ranking| ["ann", "bob", "cat"].map(|name| row(rows, name).pos[ranking]);
    let rows = oracle.rows(week() - 1, &server(A));
    assert_eq!(pos(&rows, "elo"), [3, 1, 2], "the lowest rating is best");
    assert_eq!(pos(&rows, "points"), [1, 2, 3], "for another server only");
    assert_eq!(oracle.best_positions()[&(player("ann"), A.to_owned(), "elo")], [(1, week() - 1)]);
}

#[test]
fn clock_set_back_reopens_weeks_and_players_enter_again() {
    let log = Log::default()
        .round(-30, A, &[("ann", 9), ("bob", 3)])
        .scan(-20, B, &[("bob", 0)])
        .scan(2, A, &[("ann", 40), ("bob", 0)])
        .scan(4, A, &[("ann", 41), ("bob", 0)]);
    let oracle = log.oracle();
    assert!(oracle.is_closed(week() - 1) && !oracle.best_positions().is_empty());

    let log = log
        .then(-15, json!({"command": "clock"}))
        .scan(-13, B, &[("bob", 2)])
        .scan(-12, A, &[("ann", 50), ("bob", 5)])
        .scan(-10, A, &[("ann", 53), ("bob", 5)]);
    let oracle = log.oracle();
    assert!(!oracle.is_closed(week() - 1) && oracle.best_positions().is_empty());
    let rows = oracle.rows(week() - 1, &server(A));
    let ann = row(&rows, "ann");
    // 9 and 4 minutes before; then an entry without points, and 3 points in 2 minutes.
    assert_eq!((ann.points, ann.starts, ann.measured_ms), (9 + 3, 2, 6 * MINUTE_MS));
    // B was not scanned at a later time: seven minutes are a gap like any other.
    assert_eq!(oracle.rows(week() - 1, &server(B))[0].measured_ms, 7 * MINUTE_MS);
    assert_eq!(row(&oracle.rows(week(), &server(A)), "ann").points, 1, "data of the future stay");

    let log = log.scan(1, A, &[("ann", 54), ("bob", 5)]);
    assert!(log.oracle().is_closed(week() - 1));
}

#[test]
fn reopened_week_that_is_over_is_closed_again_without_greylisted_server() {
    let log = Log::default()
        .round(-20, A, &[("ann", 9), ("bob", 3)])
        .scan(0, A, &[])
        .on(1, "greylist", A)
        .then(2, json!({"command": "reopen", "week": "2026-W46"}));
    let oracle = log.oracle();
    assert!(oracle.is_closed(week() - 1) && oracle.best_positions().is_empty());
    assert!(oracle.rows(week() - 1, &server(A)).is_empty());
    // A week that is not closed cannot be reopened.
    let log = Log::default().scan(0, A, &[]).then(1, json!({"command": "reopen", "week": "2026-W47"}));
    assert_eq!(log.oracle().skipped, 1);
}

#[test]
fn deleted_week_has_no_rows_and_keeps_best_positions() {
    let log = |before: i64| {
        Log::default()
            .round(-20, A, &[("ann", 9), ("bob", 3)])
            .round(1, A, &[("ann", 9), ("bob", 3)])
            .then(10, json!({"command": "delete_windows", "before": minute(before)}))
    };
    let oracle = log(0).oracle();
    assert!(oracle.rows(week() - 1, &server(A)).is_empty());
    assert_eq!(names(&oracle.rows(week(), &server(A))), ["ann", "bob"]);
    assert_eq!(oracle.best_positions()[&(player("ann"), A.to_owned(), "elo")], [(1, week() - 1)]);
    assert_eq!(names(&log(-1).oracle().rows(week() - 1, &server(A))), ["ann", "bob"]);
    assert_eq!(names(&log(1_000_000).oracle().rows(week(), &server(A))), ["ann", "bob"], "the week is open");
}

#[test]
fn tag_has_servers_of_now_and_ratings_of_its_time() {
    let tag = |at: i64, server: &str, add: &[&str], remove: &[&str]| {
        (at, server.to_owned(), json!({"command": "tag", "server": server, "add": add, "remove": remove}))
    };
    let (_, _, on_a) = tag(0, A, &["pro"], &[]);
    let (_, _, off_a) = tag(0, A, &[], &["pro"]);
    let (_, _, on_b) = tag(0, B, &["pro"], &[]);
    let log = Log::default()
        .round(0, A, &[("ann", 9), ("bob", 3)])
        .then(5, on_a.clone())
        .round(10, A, &[("bob", 9), ("ann", 3)])
        .round(10, B, &[("cat", 9), ("bob", 3)]);
    let log = Log(sorted(&log));
    let pro = Scope::Tagged("pro".to_owned());
    let rows = log.oracle().rows(week(), &pro);
    assert_eq!(names(&rows), ["ann", "bob"]);
    assert_eq!((row(&rows, "bob").points, row(&rows, "bob").elo, row(&rows, "bob").elo_rounds), (12, 1012.5, 1));

    // B joins, A leaves: points are those of B, ratings stay.
    let log = log.then(20, on_b).then(20, off_a);
    let rows = log.oracle().rows(week(), &pro);
    assert_eq!(names(&rows), ["bob", "cat"]);
    assert_eq!((row(&rows, "bob").points, row(&rows, "bob").elo), (3, 1012.5));
    assert_eq!((row(&rows, "cat").points, row(&rows, "cat").elo_rounds), (9, 0));
    assert!(!row(&rows, "cat").pos.contains_key("elo"));

    // A dropped tag loses its ratings; a new one of the same name starts without any.
    let log = log.then(30, json!({"command": "drop_tag", "tag": "pro"}));
    assert!(log.oracle().rows(week(), &pro).is_empty());
    let rows = log.then(31, on_a).oracle().rows(week(), &pro);
    assert_eq!((row(&rows, "bob").points, row(&rows, "bob").elo_rounds), (12, 0));
}

#[test]
fn exempt_server_is_not_checked() {
    let play = |log: Log| log.scan(1, A, &[("ann", 0)]).scan(3, A, &[("ann", 2_000_000)]);
    let trust = json!({"command": "trust", "server": A, "except": ["impossible_gain"], "revoke": []});
    let revoke = json!({"command": "trust", "server": A, "except": [], "revoke": ["impossible_gain"]});
    let points = |log: Log| log.oracle().rows(week(), &server(A))[0].points;
    assert_eq!(points(play(Log::default())), 0);
    assert_eq!(points(play(Log::default().on(0, "add", A).then(0, trust.clone()))), 2_000_000);
    assert_eq!(points(play(Log::default().on(0, "add", A).then(0, trust).then(0, revoke))), 0);
}

#[test]
fn command_that_names_something_unknown_is_skipped_and_counted() {
    let log = Log::default()
        .on(0, "remove", A)
        .on(0, "greylist", A)
        .on(0, "lift", A)
        .then(0, json!({"command": "tag", "server": A, "add": ["x"], "remove": []}))
        .then(0, json!({"command": "trust", "server": A, "except": [], "revoke": []}))
        .then(0, json!({"command": "drop_tag", "tag": "x"}))
        .merge(0, "ann", "bob")
        .then(0, json!({"command": "forget", "game": "g", "player": "forgotten-1-1"}))
        .then(0, json!({"command": "reopen", "week": "2026-W47"}));
    assert_eq!(log.oracle().skipped, 9);
    let log = log.scan(1, A, &[("ann", 0)]).merge(2, "ann", "bob").on(2, "remove", A).on(2, "remove", A);
    assert_eq!(log.oracle().skipped, 11);
    let log = log
        .then(2, json!({"command": "allow", "hash": "0"}))
        .then(2, json!({"command": "delete_windows", "before": 0}));
    assert_eq!((log.oracle().skipped, log.oracle().servers.as_slice()), (11, &[A.to_owned()][..]));
}

fn generated(seed: u64) -> (String, Settings) {
    let calendar = Calendar::new(["UTC", "Europe/Amsterdam", "Asia/Kolkata"][(seed % 3) as usize]).expect("a zone");
    if seed.is_multiple_of(2) {
        return (scan_log(seed, &calendar), Settings { calendar, ..Settings::default() });
    }
    let settings = Settings { calendar, screen: screening::screen(seed), ..Settings::default() };
    (screening::log(seed, &calendar), settings)
}

/// All rows and best positions, as text.
fn all_of(oracle: &Oracle) -> String {
    let mut all = String::new();
    for week in oracle.weeks() {
        for line in oracle.export(week) {
            all += &format!("{line}\n");
        }
        for row in oracle.rows(week, &Scope::Game("baseq3".to_owned())) {
            all += &format!("{}\n", row.export_line("game"));
        }
    }
    for server in &oracle.servers {
        all += &format!("{server} {:?} {:?}\n", oracle.class_history(server), oracle.assumed_after_lines(server));
    }
    all + &format!("{:?} {:?} {:?}", oracle.best_positions(), oracle.all_server_ranks(), oracle.players)
}

#[test]
fn lists_of_greylisted_servers_make_no_difference() {
    let mut greylisted = 0;
    for seed in 0..12 {
        let (log, settings) = generated(seed);
        let log = with_commands(&log, seed, &Options::of_seed(seed), &settings);
        let recorded = as_recorded(&log, &settings);
        greylisted += usize::from(log != recorded);
        let (of_log, of_recorded) = (Oracle::new(&log, settings.clone()), Oracle::new(&recorded, settings));
        assert!(all_of(&of_log) == all_of(&of_recorded), "seed {seed}");
    }
    assert!(greylisted > 5, "{greylisted} logs with lists of greylisted servers");
}

#[test]
fn generated_commands_cover_every_listed_case() {
    use crate::oracle::{Command, What, read_log};
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let seeds = 24;
    for seed in 0..seeds {
        let (log, settings) = generated(seed);
        let options = Options::of_seed(seed);
        let log = with_commands(&log, seed, &options, &settings);
        assert_eq!(log, with_commands(&generated(seed).0, seed, &options, &settings), "a seed determines the log");
        let oracle = Oracle::new(&log, settings.clone());
        let mut see = |case: &str, happened: bool| *seen.entry(case.to_owned()).or_default() += usize::from(happened);
        for logged in read_log(&log) {
            match logged.what {
                What::Command(command) => {
                    let name = format!("{command:?}");
                    see(name.split(' ').next().expect("a word"), true);
                    if let Command::Forget { player, .. } = command {
                        see("a placeholder that is not in a list", !log.contains(&format!("\"name\":\"{player}\"")));
                    }
                }
                What::Settings(_) => see("settings", true),
                What::Scan(_) => (),
            }
        }
        see("something unknown", oracle.skipped > 0);
        let gone = |player: &&PlayerId| !oracle.current_players.values().any(|current| current == *player);
        let gone: Vec<&PlayerId> = oracle.players.iter().filter(gone).collect();
        see("a forgotten player", gone.iter().any(|player| player.name.starts_with("forgotten-")));
        see("a merged player", gone.iter().any(|player| !player.name.starts_with("forgotten-")));
        see("a server that is removed at the end", !oracle.removed.is_empty());
        see("a server that is greylisted at the end", !oracle.greylisted.is_empty());
        see("an ignored scan", oracle.outcomes.contains(&Outcome::Ignored));
        for snapshot in &oracle.snapshots {
            let ignored = snapshot.entries.iter().filter(|e| e.usable && !e.spectator && e.player.is_none());
            see("two names of a player in a list", ignored.count() > 0);
            let renamed = |e: &crate::oracle::Entry| e.player.as_ref().is_some_and(|player| player.name != e.name);
            see("an entry with a merged name", snapshot.entries.iter().any(renamed));
        }
        for round in &oracle.rounds {
            see("a final list with an empty name", round.list.iter().any(|e| e.name.is_empty() && !e.usable));
            see("a round of a tag", !round.tags.is_empty());
        }
        for week in oracle.weeks() {
            see("a week without rows", oracle.week_rows(week).is_empty());
            see("rows of a tag", !oracle.rows(week, &Scope::Tagged("ctf".to_owned())).is_empty());
        }
        let positions = oracle.best_positions();
        see("best positions", !positions.is_empty());
        see("best positions of two weeks", positions.values().any(|best| best.len() > 1));
    }
    let missing: Vec<_> = seen.iter().filter(|(_, times)| **times == 0).collect();
    assert!(missing.is_empty(), "not in the logs of {seeds} seeds: {missing:?}; all: {seen:#?}");
}
