//! Boards of a server with its own orders: all positions agree. The responses of `clqd board`,
//! `top`, `player` and `export`, the best positions of a closed week, and the rows in MySQL are
//! compared with rows that are sorted here.
//!
//! The order of boards of games and tags is tested in `boards_equal_oracle`.

use std::collections::BTreeMap;

use crate::database::Database;
use crate::scans;
use clqd::archive::Archive;
use clqd::engine::{EngineSettings, Event, Outcome, StateReader, StoreReader, ViewError};
use clqd::model::calendar::{Calendar, MINUTE_MS, WEEK_MS, week_label};
use clqd::model::row::{PlayerRow, Ranking};
use clqd::model::{Completeness, OutboxKey, Player, PlayerKey, Scope, ServerKey, ServerUrl, Snapshot, WeekKey};
use clqd::state::State;
use clqd::store::StoreSettings;
use clqd::view::board::{
    BoardQuery, BoardRow, BoardSelector, BoardsSelector, FusedQuery, OrderView, PlayerSelector, RankingWeight,
};

const MONDAY_MS: i64 = 1_763_942_400_000; // 2025-11-24 00:00 UTC

/// Most of the orders that are set for one server are for the first.
const SERVERS: [&str; 2] = ["quake3://a:27960", "quake3://b:27960"];

struct OrderSettings {
    low_is_better: &'static [&'static str],
    ties: &'static [&'static str],
}

const REVERSED: OrderSettings = OrderSettings {
    low_is_better: &["points server:quake3://a:27960", "clq1 server:quake3://a", "elo server:quake3://a:27960", "time"],
    ties: &["points time server:quake3://a:27960", "clq2 points", "elo clq1 server:quake3://b:27960"],
};
const PLAIN: OrderSettings = OrderSettings { low_is_better: &[], ties: &[] };

impl OrderSettings {
    fn engine(&self) -> EngineSettings {
        let low_is_better = self.low_is_better.iter().map(|text| text.parse().unwrap()).collect();
        let ties = self.ties.iter().map(|text| text.parse().unwrap()).collect();
        EngineSettings { archive_enabled: true, low_is_better, tie_breakers: ties, ..EngineSettings::default() }
    }

    fn is_low(&self, server: &str, ranking: Ranking) -> bool {
        let everywhere = self.low_is_better.contains(&ranking.name());
        let here = |text: &&str| server == SERVERS[0] && text.starts_with(&format!("{} server:", ranking.name()));
        everywhere || self.low_is_better.iter().any(here)
    }

    /// The ranking that breaks ties.
    fn tie(&self, server: &str, ranking: Ranking) -> Option<Ranking> {
        let applies = |text: &&&str| {
            text.split(' ').next() == Some(ranking.name())
                && text.split_once(" server:").is_none_or(|(_, only)| only == server)
        };
        self.ties.iter().find(applies).and_then(|text| Ranking::from_name(text.split(' ').nth(1)?))
    }
}

fn open(dir: &std::path::Path, setting: &OrderSettings) -> State {
    let store = StoreSettings { cache_bytes: 16 << 20, create: true };
    State::open(dir, store, setting.engine()).unwrap()
}

/// Applies scans every two minutes from `from_ms` on. A round lasts twenty minutes; the players
/// of each server change with the round, and many of them have equal points.
fn play(state: &mut State, from_ms: i64, minutes: i64) {
    for minute in (0..minutes).step_by(2) {
        let (t_ms, round) = (from_ms + minute * MINUTE_MS, minute / 20);
        for (server, number) in SERVERS.into_iter().zip(0..) {
            let player = |n: i64| Player {
                name: format!("p{n}").into(),
                points: Some((n % 4 + 1) * (minute % 20) / 2),
                ping: Some(40),
                ..Player::default()
            };
            let plays = |n: &i64| (n * 7 + round * 3 + number) % 5 < 3;
            let snapshot = Snapshot {
                t_ms,
                game: "baseq3".to_owned(),
                map: format!("map{}", round % 3),
                hostname: String::new(),
                slots: 16,
                players: (0..9).filter(plays).map(player).collect(),
                completeness: Completeness::Full,
                count: None,
                bots: None,
            };
            let url = ServerUrl::parse(server).unwrap();
            state.handle(Event::Replayed { url, outcome: Outcome::Snapshot(snapshot) }).unwrap();
        }
        state.handle(Event::Tick { now_ms: t_ms }).unwrap();
        state.commit().unwrap();
    }
}

/// Plays a week that is closed, and the current one.
fn two_weeks(state: &mut State) -> [WeekKey; 2] {
    play(state, MONDAY_MS, 300);
    state.close_due_weeks(MONDAY_MS + WEEK_MS + MINUTE_MS).unwrap();
    play(state, MONDAY_MS + WEEK_MS + 10 * MINUTE_MS, 200);
    state.commit().unwrap();
    [MONDAY_MS, MONDAY_MS + WEEK_MS].map(|t_ms| Calendar::default().week(t_ms))
}

fn score(row: &PlayerRow, ranking: Ranking) -> Option<f64> {
    match ranking {
        Ranking::Clq1 => Some(row.clq1() as f64).filter(|&score| score > 0.0),
        Ranking::Clq2 => Some(row.clq2() as f64).filter(|&score| score > 0.0),
        Ranking::Elo => Some(row.elo).filter(|_| row.elo_rounds > 0),
        Ranking::Points => Some(row.points as f64),
        Ranking::Time => Some(row.time_ms() as f64),
    }
}

fn reached_ms(row: &PlayerRow, ranking: Ranking) -> i64 {
    match ranking {
        Ranking::Clq1 => row.clq1_segments.at_ms().unwrap(),
        Ranking::Clq2 => row.clq2_games.at_ms().unwrap(),
        Ranking::Elo => row.elo_at_ms,
        Ranking::Points => row.points_at_ms,
        Ranking::Time => row.time_at_ms,
    }
}

type Rows = BTreeMap<String, (PlayerRow, [Option<u32>; 5])>;

fn exported(state: &State, week: WeekKey, server: &str) -> Rows {
    let mut rows = Rows::new();
    let each = |url: &str, _: &str, name: &str, row: &PlayerRow, positions| {
        if url == server {
            rows.insert(name.to_owned(), (row.clone(), positions));
        }
        Ok::<_, ViewError>(())
    };
    state.engine.model().export(&state.store, &week_label(week), each).unwrap();
    rows
}

fn key(state: &State, name: &str) -> PlayerKey {
    state.store.players_named(name).unwrap()[0].1
}

/// Names in the order that the rules require.
fn ordered(state: &State, rows: &Rows, setting: &OrderSettings, server: &str, ranking: Ranking) -> Vec<String> {
    let signed = |row: &PlayerRow, ranking| {
        let sign = if setting.is_low(server, ranking) { 1.0 } else { -1.0 };
        score(row, ranking).map(|score| sign * score)
    };
    let tie = |row: &PlayerRow| match setting.tie(server, ranking) {
        None => 0.0,
        Some(by) => signed(row, by).unwrap_or(f64::INFINITY),
    };
    let on_board = rows.iter().filter_map(|(name, (row, _))| Some((name, row, signed(row, ranking)?)));
    let mut list: Vec<_> = on_board.collect();
    list.sort_by(|(a_name, a, a_score), (b_name, b, b_score)| {
        let by_time = reached_ms(a, ranking).cmp(&reached_ms(b, ranking));
        let by_tie = tie(a).total_cmp(&tie(b));
        a_score.total_cmp(b_score).then(by_tie).then(by_time).then(key(state, a_name).cmp(&key(state, b_name)))
    });
    list.into_iter().map(|(name, ..)| name.clone()).collect()
}

/// Names by position.
fn by_position(positions: impl IntoIterator<Item = (u32, String)>) -> Vec<String> {
    let all: BTreeMap<u32, String> = positions.into_iter().collect();
    assert!(all.keys().copied().eq(1..=all.len() as u32), "{all:?}");
    all.into_values().collect()
}

/// Compares every response about the boards of the servers in a week with the sorted rows.
fn assert_responses_agree(state: &State, week: WeekKey, setting: &OrderSettings) {
    for (server, ranking) in SERVERS.into_iter().flat_map(|server| Ranking::ALL.map(|ranking| (server, ranking))) {
        let context = format!("{} of {server} in {}", ranking.name(), week_label(week));
        let rows = exported(state, week, server);
        let want = ordered(state, &rows, setting, server, ranking);
        assert!(want.len() > 4, "{context}: {want:?}");
        let at = |name: &String| want.iter().position(|it| it == name).map(|index| index as u32 + 1);
        for (name, (_, positions)) in &rows {
            assert_eq!(positions[ranking as usize], at(name), "{context}: exported {name}");
        }

        let url = ServerUrl::parse(server).unwrap();
        let top = state.engine.model().top(&state.store, &url, ranking, Some(&week_label(week)), 100).unwrap();
        let OrderView { low_is_better, tie_breaker } = top.order;
        assert_eq!(
            (low_is_better, tie_breaker),
            (setting.is_low(server, ranking), setting.tie(server, ranking)),
            "{context}"
        );
        assert_eq!(
            by_position(top.rows.into_iter().map(|row| (row.position as u32, row.name))),
            want,
            "{context}: top"
        );

        let scope = Scope::Server(url);
        let board = BoardSelector { scope: scope.clone(), ranking, window: Some(week_label(week)), at_ms: None };
        let response = state.engine.model().query_board(&state.store, &board, &BoardQuery::Top { count: 100 }).unwrap();
        assert_eq!(response.head.order, top.order, "{context}");
        let entry = |row| match row {
            BoardRow::Entry(entry) => (entry.at.position as u32, entry.name),
            other => panic!("{other:?}"),
        };
        assert_eq!(by_position(response.rows.into_iter().map(entry)), want, "{context}: board");

        let boards = BoardsSelector { scope, window: Some(week_label(week)), at_ms: None };
        let weights = [RankingWeight { ranking, weight: 1.0 }];
        let fused = state
            .engine
            .model()
            .fused(&state.store, &boards, &weights, None, &FusedQuery::Top { count: 100 })
            .unwrap()
            .players;
        assert_eq!(fused.into_iter().map(|view| view.name).collect::<Vec<_>>(), want, "{context}: fused");

        for name in rows.keys() {
            let player = PlayerSelector::Name(name.clone());
            let standings = state.engine.model().standings(&state.store, &boards, &[ranking], &player).unwrap();
            let standing = standings.standings[0].entry.map(|entry| entry.position as u32);
            assert_eq!(standing, at(name), "{context}: standing of {name}");
            let views = state.engine.model().players(&state.store, name).unwrap();
            let weeks = views[0].weeks.iter().find(|it| it.week == week_label(week) && it.server == server);
            assert_eq!(weeks.unwrap().positions.get(&ranking).copied(), at(name), "{context}: player {name}");
        }
    }
}

/// Archives everything that is pending.
async fn archive(state: &mut State, archive: &mut Archive) {
    archive.write(&scans::resync(state)).await.unwrap();
    let jobs = state.engine.archive_jobs(&state.store, None, None, 100_000, 1_000_000).unwrap();
    let (entries, jobs): (Vec<_>, Vec<_>) = jobs.into_iter().unzip();
    archive.write(&jobs.into_iter().flatten().collect::<Vec<_>>()).await.unwrap();
    state.engine.acknowledge_archived(&entries);
    state.commit().unwrap();
}

/// Compares the positions of a week in MySQL with the sorted rows.
async fn assert_mysql_agrees(state: &State, database: &Database, week: WeekKey, setting: &OrderSettings) {
    for (server, ranking) in SERVERS.into_iter().flat_map(|server| Ranking::ALL.map(|ranking| (server, ranking))) {
        let context = format!("{} of {server} in {}", ranking.name(), week_label(week));
        let want = ordered(state, &exported(state, week, server), setting, server, ranking);
        let name = ranking.name();
        let sql = format!(
            "SELECT clq_position(w.week, w.server, '{name}', w.{name}_order), p.name FROM player_week w \
             JOIN player p ON p.player = w.player JOIN server s ON s.server = w.server \
             WHERE s.url = '{server}' AND w.week = {} AND w.{name}_order IS NOT NULL",
            week.0
        );
        let rows = database.rows(&sql).await;
        let found = by_position(rows.iter().map(|row| (row[0].parse().unwrap(), row[1].clone())));
        assert_eq!(found, want, "{context}: player_week");
    }
}

/// Compares the best positions of a week with the sorted rows.
async fn assert_best_positions_agree(state: &State, database: &Database, week: WeekKey, setting: &OrderSettings) {
    for (server, ranking) in
        SERVERS.into_iter().flat_map(|server| Ranking::WITH_BEST_POSITIONS.map(|ranking| (server, ranking)))
    {
        let context = format!("{} of {server} in {}", ranking.name(), week_label(week));
        let want = ordered(state, &exported(state, week, server), setting, server, ranking);
        let sql = format!(
            "SELECT b.position, p.name FROM best_position b JOIN player p ON p.player = b.player JOIN server s \
             ON s.server = b.server WHERE s.url = '{server}' AND b.ranking = '{}' AND b.week = {}",
            ranking.name(),
            week.0
        );
        let rows = database.rows(&sql).await;
        let found = by_position(rows.iter().map(|row| (row[0].parse().unwrap(), row[1].clone())));
        assert_eq!(found, want, "{context}: best positions in MySQL");
        let mut displayed = Vec::new();
        for name in &want {
            let views = state.engine.model().players(&state.store, name).unwrap();
            let best = views[0].best.iter().find(|it| it.server == server && it.ranking == ranking).unwrap();
            assert_eq!(best.week, week_label(week));
            displayed.push((best.position, name.clone()));
        }
        assert_eq!(by_position(displayed), want, "{context}: best positions of players");
    }
}

#[tokio::test]
async fn server_order_is_equal_in_responses_and_mysql() {
    let database = Database::new().await;
    let mut mysql = Archive::connect(&database.settings()).await.unwrap();
    mysql.migrate().await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), &REVERSED);
    let weeks = two_weeks(&mut state);
    archive(&mut state, &mut mysql).await;
    for week in weeks {
        assert_responses_agree(&state, week, &REVERSED);
        assert_mysql_agrees(&state, &database, week, &REVERSED).await;
    }
    assert_best_positions_agree(&state, &database, weeks[0], &REVERSED).await;

    // A reload changes the order of kept weeks, also in MySQL; best positions of a closed week do
    // not change.
    state.engine.reload(PLAIN.engine());
    state.close_due_weeks(MONDAY_MS + WEEK_MS + 300 * MINUTE_MS).unwrap();
    archive(&mut state, &mut mysql).await;
    for week in weeks {
        assert_responses_agree(&state, week, &PLAIN);
        assert_mysql_agrees(&state, &database, week, &PLAIN).await;
    }
    assert_best_positions_agree(&state, &database, weeks[0], &REVERSED).await;
}

/// Opens the state again as after a kill: uncommitted changes are lost.
fn reopen(state: State, dir: &std::path::Path, setting: &OrderSettings) -> State {
    drop(state);
    open(dir, setting)
}

/// The orders in the config change while the daemon is stopped: the next start has the effect of
/// a reload, also if it is killed before or during the change.
#[tokio::test]
async fn start_with_changed_orders_equals_reload() {
    let database = Database::new().await;
    let mut mysql = Archive::connect(&database.settings()).await.unwrap();
    mysql.migrate().await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), &PLAIN);
    assert!(!state.engine.model().has_changes(), "a new state has nothing to archive");
    let weeks = two_weeks(&mut state);
    archive(&mut state, &mut mysql).await;
    state = reopen(state, dir.path(), &PLAIN);
    assert!(!state.engine.model().has_changes(), "no order has changed");
    assert_eq!(state.store.outbox_len(), state.engine.model().archive_tasks(&state.store).len());

    state = reopen(state, dir.path(), &REVERSED);
    state = reopen(state, dir.path(), &REVERSED);
    assert!(state.commit().unwrap());
    state = reopen(state, dir.path(), &REVERSED);
    state.close_due_weeks(MONDAY_MS + WEEK_MS + 300 * MINUTE_MS).unwrap();
    archive(&mut state, &mut mysql).await;
    for week in weeks {
        assert_responses_agree(&state, week, &REVERSED);
        assert_mysql_agrees(&state, &database, week, &REVERSED).await;
    }
    assert_best_positions_agree(&state, &database, weeks[0], &PLAIN).await;

    // The orders of one of two servers change; the next start changes nothing.
    let one = OrderSettings {
        low_is_better: REVERSED.low_is_better,
        ties: &["points time server:quake3://a:27960", "clq2 points"],
    };
    state = reopen(state, dir.path(), &one);
    state.commit().unwrap();
    state = reopen(state, dir.path(), &one);
    assert!(!state.engine.model().has_changes());
    let tasks = state.engine.model().archive_tasks(&state.store).len();
    assert_eq!(state.store.outbox_len() - tasks, weeks.len());
    state.close_due_weeks(MONDAY_MS + WEEK_MS + 301 * MINUTE_MS).unwrap();
    archive(&mut state, &mut mysql).await;
    for week in weeks {
        assert_mysql_agrees(&state, &database, week, &one).await;
    }
    state = reopen(state, dir.path(), &one);
    state.close_due_weeks(MONDAY_MS + WEEK_MS + 302 * MINUTE_MS).unwrap();
    assert_eq!(
        state.store.outbox_len(),
        state.engine.model().archive_tasks(&state.store).len(),
        "the archived order is the current one"
    );
}

/// Without an archive no orders are stored; the next start with one compares them.
#[test]
fn start_without_archive_defers_reordering() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), &PLAIN);
    let weeks = two_weeks(&mut state);
    acknowledge_all(&mut state);
    let low = OrderSettings { low_is_better: &["points server:quake3://b:27960"], ties: &[] };
    drop(state);
    let store = StoreSettings { cache_bytes: 16 << 20, create: true };
    let mut state = State::open(dir.path(), store, EngineSettings { archive_enabled: false, ..low.engine() }).unwrap();
    assert!(!state.engine.model().has_changes());
    state.engine.reload(EngineSettings { archive_enabled: false, ..PLAIN.engine() });
    assert!(!state.engine.model().has_changes());
    let mut state = reopen(state, dir.path(), &low);
    state.commit().unwrap();
    assert_eq!(acknowledge_all(&mut state), weeks.map(|week| OutboxKey::Week { week, server: ServerKey(2) }));
}

/// Acknowledges all pending jobs and returns their keys.
fn acknowledge_all(state: &mut State) -> Vec<OutboxKey> {
    let jobs = state.engine.archive_jobs(&state.store, None, None, 100_000, 1_000_000).unwrap();
    let keys = jobs.iter().map(|(entry, _)| entry.key).collect();
    state.engine.acknowledge_archived(&jobs.into_iter().map(|(entry, _)| entry).collect::<Vec<_>>());
    state.commit().unwrap();
    keys
}

/// The order of one of two servers changes: only its rows are archived again.
#[test]
fn reload_archives_only_servers_with_changed_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), &PLAIN);
    let weeks = two_weeks(&mut state);
    assert!(!acknowledge_all(&mut state).is_empty());
    let low = OrderSettings {
        low_is_better: &["points server:quake3://b:27960", "elo game:baseq3", "elo server:quake3://c"],
        ties: &[],
    };
    let tie = OrderSettings { low_is_better: &[], ties: &["clq2 time server:quake3://b:27960", "elo time tag:x"] };
    let of_b = weeks.map(|week| OutboxKey::Week { week, server: ServerKey(2) });
    for (setting, want) in [(&low, &of_b[..]), (&low, &[]), (&tie, &of_b), (&PLAIN, &of_b)] {
        state.engine.reload(setting.engine());
        state.commit().unwrap();
        assert_eq!(acknowledge_all(&mut state), want);
    }
}
