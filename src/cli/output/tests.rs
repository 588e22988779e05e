//! Tests of the complete text output.

use std::collections::BTreeMap;
use std::fmt::Debug;

use super::*;
use crate::api::requests::{ArchiveDifference, BoardLine, DifferenceKind, FusedLine, VerifyRow, WeekRange};
use crate::api::{
    ArchiveStatus, ClusterStatus, DaemonStatus, Fault, LogStatus, PublicArchiveStatus, PublicDaemonStatus,
    PublicLogStatus, PublicStoreStatus, ScannerRow, StoreStatus,
};
use crate::model::NameHash;
use crate::model::commit::WeekPhase;
use crate::model::name::is_control_or_format;
use crate::view::board::{
    BoardEntryView, BoardHead, EntryScore, FusedHead, FusedRanking, FusedView, MissingPlayer, OrderView, PageView,
    PositionForView, RangeView, StandingView, StandingsView, StorageUse, WindowPhase, WindowSummary, WindowView,
};
use crate::view::export::EstimatesView;
use crate::view::{
    BestView, CaptureDeletion, ClockStatus, ClockTrust, Correction, ElasticView, EngineCounts, EngineStatus,
    ForgottenName, ListedPlayer, MapShare, PlayerWeekView, PublicServer, PublicServerDetail, ResyncProgress,
    ResyncTarget, RoundEndBasis, SeriesView, ServerDetail, ServerSummary, TopRow, WeekStatus,
};

const NOW_MS: i64 = 1_763_931_636_000;

#[track_caller]
fn printed<L: Print + Clone + PartialEq + Debug>(lines: Vec<L>, want: &str) {
    let got = print(false, lines.clone());
    assert_eq!(got, want, "\n{got}");
    hostile_text_is_neutralised(&lines);
}

fn print<L: Print>(json: bool, lines: Vec<L>) -> String {
    let mut out = Vec::new();
    let mut printer = Printer { now_ms: NOW_MS, ..Printer::new(json, &mut out) };
    lines.into_iter().for_each(|line| printer.line(line).expect("written"));
    printer.finish().expect("written");
    String::from_utf8(out).expect("text")
}

/// Parses a line whose kind is not the first field.
fn parse<L: Line>(mut value: serde_json::Value) -> Option<L> {
    let kind = value.as_object_mut().expect("an object").remove("kind").expect("a kind");
    L::parse(format!("{{\"kind\":{kind},{}", &value.to_string()[1..]).as_bytes()).ok()
}

/// Appends characters that could control a terminal or reorder a line to every free text
/// of every line, and checks that none is printed.
#[track_caller]
fn hostile_text_is_neutralised<L: Print + Clone + PartialEq + Debug>(all: &[L]) {
    const HOSTILE: &str = "\u{1b}[2J\u{7f}\u{9b}\u{202e}\u{2066}\u{200f}\u{2028}\r\n!";
    let lines = print(false, all.to_vec()).lines().count();
    for (at, line) in all.iter().enumerate() {
        let value: serde_json::Value = serde_json::from_slice(&line.to_json()).expect("JSON");
        for leaf in texts(&value, String::new()) {
            let mut hostile = value.clone();
            let text = hostile.pointer_mut(&leaf).expect("a text");
            *text = (text.as_str().expect("a text").to_owned() + HOSTILE).into();
            let Some(hostile) = parse::<L>(hostile) else { continue };
            let mut all = all.to_vec();
            all[at] = hostile.clone();
            let text = print(false, all);
            let steers = |c: char| (c != '\n' && is_control_or_format(c)) || c == '\u{2028}';
            assert!(!text.contains(steers), "{leaf}: {text:?}");
            assert_eq!(text.lines().count(), lines, "{leaf}: {text}");
            let json = print(true, vec![hostile.clone()]);
            assert!(!json.contains(steers) && json.lines().count() == 1, "{leaf}: {json:?}");
            assert_eq!(L::parse(json.as_bytes()).expect("JSON"), hostile, "{leaf}");
        }
    }
}

/// Pointers to all strings in a value, except its kind.
fn texts(value: &serde_json::Value, at: String) -> Vec<String> {
    use serde_json::Value;
    match value {
        Value::String(_) => vec![at],
        Value::Array(all) => (0..).zip(all).flat_map(|(i, v)| texts(v, format!("{at}/{i}"))).collect(),
        Value::Object(all) => {
            let all = all.iter().filter(|(name, _)| !at.is_empty() || *name != "kind");
            all.flat_map(|(name, v)| texts(v, format!("{at}/{name}"))).collect()
        }
        _ => Vec::new(),
    }
}

fn server(url: &str) -> PublicServer {
    PublicServer {
        key: 1,
        url: url.into(),
        class: 1,
        missed: 0,
        hostname: "^1The ^7House\u{1b}[0m".into(),
        game: Some("baseq3".into()),
        map: Some("q3dm17".into()),
        online: true,
        players: 7,
        players_unverified: false,
        assumed_players: 6,
        slots: 16,
        rank: Some(1_204),
        added_ms: NOW_MS - 86_400_000,
        days_seen: 2,
        last_scan_ms: Some(NOW_MS - 45_000),
        last_seen_ms: Some(NOW_MS - 45_000),
        greylisted: false,
        tags: vec!["ctf".into()],
        screened: Vec::new(),
        recent: None,
    }
}

#[test]
fn server_list_prints_as_table() {
    let new = PublicServer {
        class: 6,
        missed: 1,
        hostname: String::new(),
        game: None,
        map: None,
        players: 0,
        slots: 0,
        rank: None,
        last_seen_ms: None,
        greylisted: true,
        ..server("source://game.example.org:27015")
    };
    printed(
        [server("quake3://127.0.0.1:27960"), new].map(|public| ServerSummary { public, greylist_reason: None }).into(),
        "\
server                           class  players  game    map     name           rank  seen      notes
quake3://127.0.0.1:27960             1     7/16  baseq3  q3dm17  The House[0m  1,204  45 s ago  ctf
source://game.example.org:27015      6      0/0  -       -                         -  never     greylisted, missed 1, ctf
",
    );
}

#[test]
fn greylist_prints_reasons() {
    let public = PublicServer { greylisted: true, ..server("quake3://127.0.0.1:27960") };
    let summary = ServerSummary { public, greylist_reason: Some("fake\u{1b}[2J players".into()) };
    let mut printer = Printer::new(false, Vec::new()).of_greylist();
    printer.line(summary).and_then(|()| printer.finish()).expect("written");
    let text = String::from_utf8(printer.out).expect("text");
    let want = "server                    game    name          reason\n\
                quake3://127.0.0.1:27960  baseq3  The House[0m  fake[2J players\n";
    assert_eq!(text, want);
}

#[test]
fn found_players_print_as_table() {
    let found = |player_key, name: &str, last_seen_ms| PlayerNameView {
        player_key,
        game: "baseq3".into(),
        name: name.into(),
        display: name.into(),
        last_seen_ms,
    };
    printed(
        vec![found(15_922, "Duck7248", Some(NOW_MS - 120_000)), found(3, "日本", None)],
        "\
player    game      key  last seen
Duck7248  baseq3  15922  2 min ago
日本      baseq3      3  -
",
    );
}

#[test]
fn server_detail_prints_series_list_and_maps() {
    let series = SeriesView {
        newest_ten_minutes_ms: 0,
        ten_minutes: vec![],
        newest_hour_ms: 0,
        hours: vec![None, None, Some(2.0), None, Some(8.0)],
        newest_day_ms: 0,
        days: vec![None],
        newest_week_ms: 0,
        weeks: vec![],
        ranks: vec![],
        newest_rank_week_ms: None,
    };
    let listed = |name: &str, points, ping| ListedPlayer {
        name: name.into(),
        display: name.into(),
        points: Some(points),
        ping,
        player_key: None,
        since_ms: None,
        spectator: false,
    };
    let public = PublicServerDetail {
        server: server("quake3://127.0.0.1:27960"),
        next_scan_ms: Some(NOW_MS + 75_000),
        elastic: Some(ElasticView {
            off: None,
            budget: 1.15,
            has_own_budget: false,
            expected_end_ms: Some(NOW_MS + 85_000),
            earliest_end_ms: Some(NOW_MS + 75_000),
            latest_end_ms: Some(NOW_MS + 95_000),
            basis: Some(RoundEndBasis::RoundLength { shortest_s: 600, longest_s: 620, rounds: 4 }),
            saved_scans: 2.25,
        }),
        total_points: 20,
        bots_unidentified: 0,
        authentication: Some("nonce".into()),
        settings: Vec::new(),
        maps_seen: Vec::new(),
        next_map: None,
        players_listed: vec![listed("Grunt", -1, None), listed("Visor", 1_020, Some(48))],
        series: Some(series),
        maps: vec![MapShare { map: "q3dm17".into(), minutes: 61.5, average_players: 5.25 }],
        coverage: 0.5,
    };
    printed(
        vec![ServerDetail { public, greylist_reason: None, scan_in_progress: false, exempt_checks: Vec::new() }],
        "\
quake3://127.0.0.1:27960  The House[0m
  scanned   45 s ago, next in 1 min 15 s; seen 45 s ago; class 1 (several players); added 1 d ago
  playing   baseq3 on q3dm17, 7 of 16, usually 6
  rank      1,204 of the servers last week
  replies   nonce: they repeat a number that only this server received
  tags      ctf
  round     ends in about 1 min 25 s (+- 10 s); the last 4 took 10 min
  hours     ▃·█  most 8.0

points  ping  player
 1,020    48  Visor
    -1     -  Grunt

map this week  minutes  players
q3dm17              62      5.2
",
    );
}

#[test]
fn top_prints_order_and_units() {
    let row = |position, name: &str, score| TopRow {
        position,
        player_key: 1,
        name: name.into(),
        display: name.into(),
        score,
        reached_ms: NOW_MS - 120_000,
        elo_rounds: 20,
        elo_rounds_sure: 3,
    };
    let top = Top {
        server: "quake3://127.0.0.1:27960".into(),
        week: "2025-W47".into(),
        ranking: Ranking::Clq1,
        order: OrderView::default(),
        closed: false,
        size: 1_212,
        rows: vec![row(1, "Visor", 0.12345), row(2, "日本", 0.1)],
    };
    printed(
        vec![top.clone()],
        "\
clq1 on quake3://127.0.0.1:27960 in 2025-W47 (running), 1,212 players
#  player  points/min  reached
1  Visor         7.41  2 min ago
2  日本          6.00  2 min ago
",
    );
    let order = OrderView { low_is_better: true, tie_breaker: Some(Ranking::Points) };
    let elo = Top { ranking: Ranking::Elo, order, closed: true, size: 1, rows: vec![row(1, "Visor", 887.5)], ..top };
    printed(
        vec![elo],
        "\
elo on quake3://127.0.0.1:27960 in 2025-W47 (final), 1 player, lowest first, ties by points
#  player  elo  reached    sure rounds
1  Visor   888  2 min ago      3 of 20
",
    );
}

fn window() -> WindowView {
    WindowView { window: "2025-W47".into(), start_ms: Some(0), end_ms: None, closed: false }
}

fn entry_score(position: u64, competition: u64, dense: u64, score: f64) -> EntryScore {
    EntryScore { position, competition, dense, score, raw_score: 0, reached_ms: NOW_MS - 120_000 }
}

fn entry(player_key: u32, name: &str, at: EntryScore) -> BoardLine {
    BoardLine::Entry(BoardEntryView { player_key, name: name.into(), display: name.into(), at })
}

fn board(ranking: Ranking) -> BoardHead {
    let scope = "server:quake3://127.0.0.1:27960".parse().expect("a scope");
    BoardHead {
        scope,
        window: window(),
        ranking,
        order: OrderView::default(),
        size: 1_212,
        range: None,
        first_score_ms: None,
        page: None,
    }
}

#[test]
fn board_page_prints_cursors_and_change_note() {
    let page = PageView { board_changed: true, before: "AQx".into(), after: "AQy".into() };
    let head = BoardHead { page: Some(page), ..board(Ranking::Clq1) };
    let entries = [(1_001, 2, 2, "Visor"), (1_002, 2, 2, "日本"), (1_003, 1_003, 3, "Grunt\u{1b}[2J")];
    let entries = entries.map(|(p, c, d, name)| entry(7, name, entry_score(p, c, d, 0.25)));
    printed(
        [vec![BoardLine::BoardHead(Box::new(head.clone()))], entries.to_vec()].concat(),
        "\
clq1 on quake3://127.0.0.1:27960 in 2025-W47 (running), 1,212 players
the board has changed since the cursor was created: entries may be repeated or missing
    #  shared  dense  player    key  points/min  reached
1,001       2      2  Visor       7       15.00  2 min ago
1,002       2      2  日本        7       15.00  2 min ago
1,003   1,003      3  Grunt[2J    7       15.00  2 min ago
previous page: --before AQx
next page: --after AQy
",
    );
    // A complete board needs no cursors.
    let order = OrderView { low_is_better: true, tie_breaker: Some(Ranking::Time) };
    let whole = BoardHead { size: 1, order, ..head };
    printed(
        vec![BoardLine::BoardHead(Box::new(whole)), entry(7, "Visor", entry_score(1, 1, 1, 0.25))],
        "\
clq1 on quake3://127.0.0.1:27960 in 2025-W47 (running), 1 player, lowest first, ties by time
the board has changed since the cursor was created: entries may be repeated or missing
#  player  key  points/min  reached
1  Visor     7       15.00  2 min ago
",
    );
}

#[test]
fn brief_board_leaves_out_keys_and_an_empty_one_says_why() {
    let print = |rows: Vec<BoardLine>| {
        let mut printer = Printer { now_ms: NOW_MS, ..Printer::new(false, Vec::new()).brief() };
        rows.into_iter().try_for_each(|row| printer.line(row)).expect("written");
        printer.finish().expect("written");
        String::from_utf8(printer.out).expect("text")
    };
    let head = |head| BoardLine::BoardHead(Box::new(head));
    assert_eq!(
        print(vec![head(board(Ranking::Clq1)), entry(7, "Visor", entry_score(1, 1, 1, 0.25))]),
        "\
clq1 on quake3://127.0.0.1:27960 in 2025-W47 (running), 1,212 players
#  player  points/min  reached
1  Visor        15.00  2 min ago
"
    );
    let empty = |ranking, first_score_ms| {
        let printed = print(vec![head(BoardHead { size: 0, first_score_ms, ..board(ranking) })]);
        printed.lines().nth(1).expect("a reason").to_owned()
    };
    assert_eq!(
        empty(Ranking::Clq1, Some(NOW_MS + 420_000)),
        "nobody has played for 12 minutes yet, which a score in clq1 needs; the first will have in 7 min"
    );
    assert!(empty(Ranking::Clq1, None).starts_with("a score in clq1 needs 12 minutes"));
    assert!(empty(Ranking::Elo, None).contains("a round that has ended"));
}

#[test]
fn range_position_and_missing_players_print() {
    let range = Some(RangeView { first: 3, count: 12 });
    let head = BoardHead { scope: "tag:pro".parse().expect("a scope"), range, ..board(Ranking::Time) };
    let would_be = PositionForView { score: 3_660.0, position: 5, competition: 3, dense: 2 };
    let absent = |player_key, name: &str| BoardLine::Absent(MissingPlayer { player_key, name: name.into() });
    printed(
        vec![
            BoardLine::BoardHead(Box::new(head)),
            BoardLine::PositionFor(would_be),
            entry(7, "Visor", entry_score(2, 2, 2, 60.0)),
            absent(Some(8), "Grunt"),
            absent(None, "Xaero"),
        ],
        "\
time on tag pro in 2025-W47 (running), 1,212 players
12 players, from position 3
1 h 1 min reached now: position 5, shared 3, dense 2
#  player  key   time  reached
2  Visor     7  1 min  2 min ago
-  Grunt     8      -  not ranked
-  Xaero     -      -  unknown player
",
    );
}

#[test]
fn range_names_its_bounds_in_the_unit_of_the_board() {
    let printed = |ranking, scores, count| {
        let head = BoardHead { range: Some(RangeView { first: 1, count }), ..board(ranking) };
        let mut printer = Printer::new(false, Vec::new()).in_range(scores);
        printer.line(BoardLine::BoardHead(Box::new(head))).expect("written");
        String::from_utf8(printer.out).expect("text").lines().nth(1).expect("a line").to_owned()
    };
    let scores = |at_least, below| ScoreBounds { at_least, below, ..ScoreBounds::default() };
    for (ranking, scores, count, want) in [
        (Ranking::Clq1, scores(Some(0.02), None), 6, "6 players with at least 1.20 points/min, from position 1"),
        (
            Ranking::Clq1,
            scores(Some(0.02), Some(0.04)),
            0,
            "0 players with at least 1.20 and less than 2.40 points/min",
        ),
        (Ranking::Time, scores(Some(3_600.0), None), 1, "1 player with at least 1 h, from position 1"),
        (Ranking::Elo, scores(None, Some(900.0)), 2, "2 players with less than 900 in elo, from position 1"),
        (Ranking::Points, scores(None, None), 2, "2 players, from position 1"),
    ] {
        assert_eq!(printed(ranking, scores, count), want);
    }
}

#[test]
fn standings_and_fused_list_print() {
    let standing = |ranking, entry: Option<EntryScore>| StandingView {
        ranking,
        size: 20,
        percentile: entry.map(|_| 89.47),
        entry,
    };
    let standings = StandingsView {
        scope: "game:baseq3".parse().expect("a scope"),
        window: window(),
        player_key: 12,
        name: "Visor".into(),
        display: "^1Visor".into(),
        standings: vec![standing(Ranking::Clq1, None), standing(Ranking::Elo, Some(entry_score(3, 2, 2, 1_012.5)))],
    };
    printed(
        vec![standings],
        "\
Visor (player 12) on game baseq3 in 2025-W47 (running)
ranking  #  shared  dense  of  ahead of  score  reached
clq1     -       -      -  20         -      -  -
elo      3       2      2  20    89.5 %   1013  2 min ago
",
    );
    let fused = |ranking, weight, size| FusedRanking { ranking, weight, size };
    let head = FusedHead {
        scope: "game:baseq3".parse().expect("a scope"),
        window: window(),
        k: 60.0,
        rankings: vec![fused(Ranking::Elo, 2.0, 1), fused(Ranking::Time, 1.0, 20)],
    };
    let view = |position, name: &str, positions: &[(Ranking, u32)]| {
        let positions = positions.iter().copied().collect();
        let (name, display) = (name.to_owned(), name.to_owned());
        FusedLine::Fused(FusedView { position, player_key: 12, name, display, score: 1.0 / 61.0, positions })
    };
    printed(
        vec![
            FusedLine::FusedHead(Box::new(head)),
            view(Some(1), "Visor", &[(Ranking::Elo, 1), (Ranking::Time, 17)]),
            view(None, "Grunt", &[(Ranking::Time, 1)]),
        ],
        "\
game baseq3 in 2025-W47 (running) together, k 60: elo x 2 (1 player), time (20 players)
#  player  key     score  elo  time
1  Visor    12  0.016393    1    17
-  Grunt    12  0.016393    -     1
",
    );
}

#[test]
fn player_prints_servers_with_weeks_and_best_positions() {
    let week = PlayerWeekView {
        week: "2025-W47".into(),
        server: "quake3://127.0.0.1:27960".into(),
        measured_ms: 0,
        starts: 1,
        time_ms: 3_660_000,
        estimates: EstimatesView { time_est_ms: 3_600_000, points_est: 1_240.5, ..EstimatesView::default() },
        points: 1_234,
        clq1: 7_200,
        clq2: 0,
        elo: 1_000.0,
        elo_rounds: 20,
        elo_rounds_sure: 3,
        positions: BTreeMap::from([(Ranking::Points, 3), (Ranking::Clq1, 2)]),
    };
    let elsewhere =
        |label: &str| PlayerWeekView { week: label.into(), server: "source://127.0.0.1:27015".into(), ..week.clone() };
    let best = |ranking, position, week: &str| BestView {
        server: "quake3://127.0.0.1:27960".into(),
        ranking,
        position,
        week: week.into(),
    };
    let player = PlayerView {
        first_seen_ms: Some(1_763_000_000_000),
        last_seen_ms: Some(1_763_600_000_000),
        player_key: 12,
        game: "baseq3".into(),
        name: "Visor".into(),
        display: "^1Visor".into(),
        aliases: vec!["Visor2".into()],
        online_on: vec!["quake3://127.0.0.1:27960".into()],
        weeks: vec![week.clone(), elsewhere("2025-W46")],
        weeks_partial: vec![],
        weeks_more: 1_900,
        weeks_next: Some(100),
        best: vec![
            best(Ranking::Clq1, 1, "2025-W40"),
            best(Ranking::Elo, 2, "2025-W41"),
            best(Ranking::Clq1, 2, "2025-W41"),
        ],
        servers: vec![],
    };
    printed(
        vec![player.clone()],
        "\
Visor in baseq3 (player 12)
merged with: Visor2
first seen 2025-11-13 02:13 UTC, last seen 3 d 20 h ago, now on quake3://127.0.0.1:27960
week           time  points  #  clq1  #  clq2  #  elo  #     sure
quake3://127.0.0.1:27960
2025-W47  1 h 1 min   1,234  3  0.06  2     -       -     3 of 20
source://127.0.0.1:27015
2025-W46  1 h 1 min   1,234  3  0.06  2     -       -     3 of 20
1,900 further rows are not shown: older weeks, and servers where the player was for a shorter time
best final positions: 1 in clq1 (2025-W40, quake3://127.0.0.1:27960); 2 in elo (2025-W41, quake3://127.0.0.1:27960)
",
    );
    let mut out = Vec::new();
    player::print_games(&mut out, "Visor B", false, &[player], NOW_MS).expect("written");
    let text = String::from_utf8(out).expect("text");
    assert_eq!(
        text,
        "\
Visor B is a player of 1 games
game    key  last seen  servers            time  best final position
baseq3   12  now         over 2  over 2 h 2 min  see --game
weeks of one game: clqd player --game baseq3 'Visor B'
"
    );
}

#[test]
fn status_prints_every_line() {
    let engine = EngineStatus {
        now_ms: NOW_MS,
        week: "2025-W47".into(),
        weeks: vec![
            WeekStatus { week: "2025-W46".into(), phase: WeekPhase::Closed },
            WeekStatus { week: "2025-W47".into(), phase: WeekPhase::Running },
        ],
        servers: 20_000,
        servers_by_class: [1_000, 2_000, 0, 0, 0, 17_000, 0],
        servers_failed: 16_999,
        next_retry_ms: Some(NOW_MS + 5_000),
        retry_failed_s: Some(86_400),
        greylisted: 3,
        in_flight: 12,
        outcomes_queued: 0,
        players_known: 774_000,
        players_online: 5_000,
        counts: EngineCounts {
            snapshots: 1_234_567,
            misses: 89,
            rounds: 1_200,
            rounds_sure: 12,
            rounds_unseen_ms_max: 1_200 * 54_000,
            elastic_scans: 5_000,
            ..EngineCounts::default()
        },
        lag_ms_p50: Some(1),
        lag_ms_p99: Some(12),
        boards_memory_bytes: 1 << 20,
        time_zone: "UTC".into(),
        archive_complete_ms: None,
        rebuilding: vec!["day".into(), "2025-W47".into()],
    };
    let status = Status {
        daemon: Some(DaemonStatus {
            public: PublicDaemonStatus {
                version: "0.1.0".into(),
                started_ms: NOW_MS - 11_520_000,
                contact: Some("scans@example.org".into()),
                silent_since_ms: Some(NOW_MS - 780_000),
            },
            pid: 812,
            state_dir: "/var/lib/clqd".into(),
            config_file: None,
            web: Some("127.0.0.1:8480".into()),
            commands_queued: 2,
        }),
        engine,
        clock: Some(ClockStatus {
            trust: ClockTrust::Untrusted,
            synchronised: Some(false),
            trusted_in_ms: Some(420_000),
            now_ms: NOW_MS,
            system_ms: NOW_MS - 7_200_000,
            ahead_ms: 7_200_000,
            pending_jump_ms: 0,
            last_jump_ms: Some(-7_200_000),
            last_jump_at_ms: Some(NOW_MS - 180_000),
            week_pending_close: Some("2025-W46".into()),
        }),
        outbox_entries: 4_096,
        archive: Some(ArchiveStatus {
            public: PublicArchiveStatus {
                connected: false,
                last_complete_ms: Some(NOW_MS - 60_000),
                fault: Some(Fault { kind: "unreachable".into(), since_ms: NOW_MS - 75_000 }),
                resync: Some(ResyncProgress { step: ResyncTarget::Players, key: Some(7), week: None }),
            },
            fault_message: Some("refused".into()),
            target: "mysql://clqd@db/clqd".into(),
            host: None,
            last_error: Some("refused".into()),
            last_error_ms: Some(NOW_MS - 2_000),
            write_method: Some("load_data".to_owned()),
        }),
        store: Some(StoreStatus {
            public: PublicStoreStatus {
                paused_since_ms: Some(NOW_MS - 60_000),
                pending_records: 1_234,
                scans_discarded: 5,
                ..PublicStoreStatus::default()
            },
            disk_free_bytes: 400_000_000,
            disk_free_bytes_min: 536_870_912,
        }),
        log: Some(LogStatus {
            public: PublicLogStatus { fault: Some(Fault { kind: "disk_full".into(), since_ms: NOW_MS - 120_000 }) },
            fault_message: Some("no space".into()),
            names_pending: 2,
            files_pending: 1_200,
        }),
        cluster: Some(ClusterStatus {
            engine: "b".into(),
            leads: false,
            behind_ms: Some(12_345),
            leader: Some("a".into()),
            epoch: 7,
            engines: Vec::new(),
            fault_message: Some("db: refused".into()),
            other_settings: Some("the file has other values of elo.k".into()),
        }),
        scanners: vec![ScannerRow {
            name: "one".into(),
            region: "eu".into(),
            heard_ago_ms: 5,
            in_progress: 1,
            answered: 2,
            missed: 3,
        }],
        counters: BTreeMap::from([("scan.packets_sent".into(), 1_000), ("scan.spoofed".into(), 2)]),
    };
    printed(
        vec![status],
        "\
health    6 PROBLEMS: clock, network, disk, log, archive, cluster
daemon    clqd 0.1.0, up 3 h 12 min, pid 812
files     state /var/lib/clqd, config built-in defaults
web       127.0.0.1:8480
network   DOWN? no server answers for 13 min; misses do not count
contact   scans@example.org
weeks     2025-W47 running; final: 2025-W46
clock     NOT SYNCHRONISED: no week is closed for another 7 min; to trust it now: `clqd clock accept`; recorded time \
is 2 h AHEAD of the system clock and runs a tenth slower; if the system clock is right: `clqd clock reset`; it last \
jumped back by 2 h, 3 min ago; week 2025-W46 has ended and is not closed yet
players   5,000 online, 774,000 known
servers   20,000: 1,000 with several players, 2,000 quiet, 0 silent for some time, 17,000 that do not answer; \
3 greylisted
by class  1: 1,000  2: 2,000  3: 0  4: 0  5: 0  6: 17,000  7: 0
failed    16,999 servers do not answer, retried once a day, the next in 5 s; scan all of them now: clqd rescan \
--all-unknown
scans     1,234,567 answered, 0 in part, 89 not answered, since the start; 99 % began within 12 ms of their due time
by class  1: 0  2: 0  3: 0  4: 0  5: 0  6: 0  7: 0
          12 in progress, 0 late, 0 out of order; half began within 1 ms of their due time
rounds    1,200 ended; 1 % with a sure winner
          their last list was at most 54 s before their end on average
elastic   5,000 scans within the budget of their server
windows   day, 2025-W47 being rebuilt from the log
disk      NEARLY FULL: 400,000,000 bytes free; writing resumes at 570,425,344
          (store.disk_free_bytes_min and a sixteenth)
          writing stopped 1 min ago; 1,234 changes wait in memory; free some space
          5 scans were discarded while the disk was nearly full
log       2 forgotten names being removed, FAULT for 2 min
          no space
archive   mysql://clqd@db/clqd, FAULT for 1 min 15 s, last complete 1 min ago, 4,096 waiting
          2 s ago: refused
          everything is being written again, now at: players, key 7
cluster   engine b follows a, 12 s behind; 0 engines: clqd cluster status
          db: refused
          the file has other values of elo.k
scanners  1 on other machines: clqd scanners
counters  scan.packets_sent  1,000
          scan.spoofed       2
",
    );
}

#[test]
fn status_without_counters_or_a_daemon_is_short() {
    let printed_status = |status: &Status| {
        let mut out = Vec::new();
        status::print(&mut out, status).expect("written");
        String::from_utf8(out).expect("text")
    };
    let weeks = ["2025-W45", "2025-W46", "2025-W47"].map(|week| WeekStatus {
        week: week.into(),
        phase: if week == "2025-W47" { WeekPhase::Running } else { WeekPhase::Closed },
    });
    let counts = EngineCounts { rounds: 3, rounds_sure: 2, elastic_scans: 9, ..EngineCounts::default() };
    let engine = EngineStatus { weeks: weeks.into(), counts, lag_ms_p50: Some(1), ..EngineStatus::default() };
    let running = Status { daemon: Some(DaemonStatus::default()), engine, ..Status::default() };
    let text = printed_status(&running);
    assert!(text.starts_with("health    everything works\n"), "{text}");
    assert!(text.contains("\nweeks     2025-W47 running; 2 final: 2025-W45 to 2025-W46\n"), "{text}");
    assert!(text.contains("\nrounds    3 ended; 67 % with a sure winner\narchive   none (archive.url is not set)\n"));
    assert!(["by class", "late", "elastic"].iter().all(|word| !text.contains(word)), "{text}");
    let text = printed_status(&Status { daemon: None, ..running });
    assert!(["health", "scans", "rounds"].iter().all(|name| !text.contains(name)), "{text}");
}

#[test]
fn fault_of_an_archive_that_is_in_use_again_is_no_problem() {
    let printed_status = |connected, kind: &str| {
        let fault = Some(Fault { kind: kind.to_owned(), since_ms: -75_000 });
        let public = PublicArchiveStatus { connected, fault, ..PublicArchiveStatus::default() };
        let archive = Some(ArchiveStatus { public, target: "t".to_owned(), ..ArchiveStatus::default() });
        let mut out = Vec::new();
        let status = Status { daemon: Some(DaemonStatus::default()), archive, ..Status::default() };
        status::print(&mut out, &status).expect("written");
        String::from_utf8(out).expect("text")
    };
    for (connected, kind) in [(false, "schema"), (true, "rejected"), (true, "blocked")] {
        let text = printed_status(connected, kind);
        assert!(text.contains("1 PROBLEM: archive") && text.contains("t, FAULT for 1 min 15 s, "), "{text}");
    }
    let text = printed_status(true, "schema");
    assert!(text.contains("everything works") && text.contains("archive   t, connected, last complete"), "{text}");
}

#[test]
fn status_prints_the_log_only_while_names_are_being_removed() {
    let printed_status = |names_pending| {
        let log = Some(LogStatus { names_pending, files_pending: 1_200, ..LogStatus::default() });
        let mut out = Vec::new();
        status::print(&mut out, &Status { log, ..Status::default() }).expect("written");
        String::from_utf8(out).expect("text")
    };
    assert!(printed_status(1).contains("\nlog       1 forgotten name being removed, 1,200 files left\n"));
    assert!(!printed_status(0).contains("forgotten"));
}

#[test]
fn scan_and_change_print_one_line_each() {
    let scan = ScanRow {
        url: "quake3://127.0.0.1:27960".into(),
        t_ms: NOW_MS,
        result: ScanResult::Snapshot,
        class: 1,
        hostname: Some("^1House".into()),
        game: Some("baseq3".into()),
        map: Some("q3dm17".into()),
        players: Some(7),
        slots: Some(16),
        answers_at: None,
        reason: None,
    };
    let miss = ScanRow {
        result: ScanResult::Miss,
        class: 7,
        hostname: None,
        reason: Some("port unreachable".into()),
        ..scan.clone()
    };
    let elsewhere = ScanRow { answers_at: Some("source://127.0.0.1:27015".into()), ..miss.clone() };
    let change = ServerChange { url: "x".into(), outcome: ChangeOutcome::Refused, reason: Some("no scheme".into()) };
    printed(
        vec![scan, miss, elsewhere],
        "\
quake3://127.0.0.1:27960             class 1       7/16  baseq3       q3dm17           House
quake3://127.0.0.1:27960             class 7  no response  port unreachable
quake3://127.0.0.1:27960             class 7  no response  port unreachable; source://127.0.0.1:27015 answers
",
    );
    printed(vec![change], "x  refused: no scheme\n");
}

#[test]
fn json_prints_one_object_per_line() {
    let mut out = Vec::new();
    let mut printer = Printer::new(true, &mut out);
    printer.line(ServerSummary { public: server("quake3://127.0.0.1:27960"), greylist_reason: None }).expect("written");
    printer.finish().expect("written");
    let text = String::from_utf8(out).expect("text");
    assert!(text.starts_with(r#"{"kind":"server","key":1,"url":"quake3://127.0.0.1:27960","class":1,"#), "{text}");
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn archive_differences_print_with_summary_and_repair() {
    let difference = |kind, key: &str, column: Option<&str>| {
        VerifyLine::ArchiveDifference(Box::new(ArchiveDifference {
            difference: kind,
            week: Some("2026-W47".into()),
            server: Some("quake3://a:1".into()),
            table: "player_week".into(),
            key: key.into(),
            column: column.map(str::to_owned),
            expected: column.map(|_| "12".to_owned()),
            found: column.map(|_| "NULL".to_owned()),
        }))
    };
    let name = ArchiveDifference {
        difference: DifferenceKind::Missing,
        week: None,
        server: None,
        table: "player".into(),
        key: "player=7".into(),
        column: None,
        expected: None,
        found: None,
    };
    let verified = VerifyRow {
        weeks: vec!["2026-W46".into(), "2026-W47".into()],
        server_weeks: 1,
        rows: 1_234,
        differences: 5_001,
        listed: 5_000,
        server_weeks_skipped: 2,
        objects_skipped: 1,
        boards_skipped: 0,
        resend_weeks: Some(WeekRange { first: "2026-W47".into(), last: "2026-W47".into() }),
        resend_everything: false,
    };
    let everything = ResendRow { weeks: Vec::new(), server_weeks: 1, everything: true };
    printed(
        vec![
            difference(DifferenceKind::Value, "player=3", Some("clq1")),
            difference(DifferenceKind::Surplus, "player=4", None),
            VerifyLine::ArchiveDifference(Box::new(name)),
            VerifyLine::ArchiveVerified(verified.clone()),
            VerifyLine::ArchiveVerified(VerifyRow { weeks: vec!["2026-W47".into()], ..VerifyRow::default() }),
            VerifyLine::ArchiveVerified(VerifyRow { resend_everything: true, differences: 1, listed: 1, ..verified }),
        ],
        "2026-W47 quake3://a:1 player_week player=3: clq1 is NULL, expected 12\n\
         2026-W47 quake3://a:1 player_week player=4: surplus\n\
         player player=7: missing\n\
         1,234 rows compared (2026-W46 to 2026-W47): 5,001 differences\n\
         only the first 5,000 are listed\n\
         2 weeks of servers not compared: changing, or waiting in the outbox\n\
         1 name, server or session not compared: changing, or waiting in the outbox\n\
         repair: clqd archive resend --weeks 2026-W47\n\
         0 rows compared (2026-W47): 0 differences\n\
         1,234 rows compared (2026-W46 to 2026-W47): 1 difference\n\
         2 weeks of servers not compared: changing, or waiting in the outbox\n\
         1 name, server or session not compared: changing, or waiting in the outbox\n\
         repair: clqd archive resend\n",
    );
    printed(
        vec![everything],
        "everything is written again, also names; 1 week of a server is queued for the archive (no week)\n",
    );
}

#[test]
fn corrections_print_one_line_each() {
    let hash = NameHash::of("baseq3", "Visor");
    let reopened =
        |already_open, in_progress| Correction::WeekReopened { week: "2026-W47".into(), already_open, in_progress };
    let ended = Correction::WeekReopened { week: "2025-W46".into(), already_open: false, in_progress: false };
    printed(
        vec![
            Correction::Merged { player_key: 7, into_key: 3, rows: 1 },
            Correction::Forgotten { player_key: 7, rows: 1_200, hashes: vec![hash], captures: None },
            Correction::Forgotten {
                player_key: 8,
                rows: 0,
                hashes: Vec::new(),
                captures: Some(CaptureDeletion::Deleted { files: 3 }),
            },
            Correction::Allowed { hash },
            Correction::TagDropped { tag: "ctf".into(), servers: 1_200 },
            reopened(false, false),
            reopened(true, false),
            reopened(false, true),
            ended,
            Correction::TimeReset {
                previous_ms: NOW_MS + 3_600_000,
                now_ms: NOW_MS,
                servers: 1_200,
                reopened: vec!["2026-W47".into()],
                uncredited_week: None,
            },
        ],
        &format!(
            "player 7 is player 3 from now on; 1 row of servers in all windows merged\n\
             player 7 is forgotten; 1,200 rows of servers in all windows deleted\n{hash}\n\
             player 8 is forgotten; 0 rows of servers in all windows deleted\ncapture files deleted: 3\n\
             {hash}  may be known again\n\
             tag ctf is removed from 1,200 servers, with its boards and ratings\n\
             week 2026-W47 is reopened; it is closed again when it is over\n\
             week 2026-W47 is open already\nweek 2026-W47 is being reopened\n\
             week 2025-W46 is reopened; it has ended, so it is closed again soon\n\
             recorded time is set back by 1 h; 1,200 servers had been scanned later\n\
             week 2026-W47 is reopened; it was closed and is not over\n"
        ),
    );
    printed(vec![ForgottenName { hash, forgotten_ms: NOW_MS }], &format!("2025-11-23  {hash}\n"));
}

#[test]
fn windows_print_as_table() {
    let listed = |kind: &str, window: &str, start_ms, end_ms, phase, players: Option<u64>| {
        let window = WindowView { window: window.into(), start_ms, end_ms, closed: phase == WindowPhase::Closed };
        let memory_bytes = players.map(|n| n * 20);
        WindowSummary { kind: kind.into(), window, phase, players, memory_bytes, stored: None }
    };
    let t_ms = 1_763_683_200_000;
    let day_ms = 86_400_000;
    let rows = vec![
        listed("all-time", "all-time", None, None, WindowPhase::Running, Some(1_200_000)),
        listed("day", "2025-11-22", Some(t_ms + day_ms), Some(t_ms + 2 * day_ms), WindowPhase::Upcoming, None),
        listed("day", "2025-11-21", Some(t_ms), Some(t_ms + day_ms), WindowPhase::Closed, Some(3)),
    ];
    printed(
        rows.clone(),
        "type      window      from              to                phase       players   memory\n\
         all-time  all-time    -                 -                 running   1,200,000  24.0 MB\n\
         day       2025-11-22  2025-11-22 00:00  2025-11-23 00:00  upcoming          -        -\n\
         day       2025-11-21  2025-11-21 00:00  2025-11-22 00:00  final             3     60 B\n",
    );
    let mut last = rows.into_iter().next_back().expect("a window");
    last.stored = Some(StorageUse { records: 7, bytes: 1_500 });
    let deleted = last.window.clone();
    printed(
        vec![last],
        "type  window      from              to                phase  players  memory  records  stored\n\
         day   2025-11-21  2025-11-21 00:00  2025-11-22 00:00  final        3    60 B        7  1.5 kB\n",
    );
    printed(vec![deleted], "2025-11-21  deleted (2025-11-21 00:00 to 2025-11-22 00:00)\n");
}
