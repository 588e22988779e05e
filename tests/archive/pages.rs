//! The pages of a website: each query of docs/database.md runs with an account that may only read
//! the views, and reads few rows more than it returns.

use crate::database::world::new_server;
use crate::database::{Database, Server};
use clqd::archive::Archive;
use clqd::model::archive::{
    BoardOrder, BoardPlace, BoardStep, ListEntry, MapWeekArchive, OrderBytes, PlayerKeyRange, PlayerWeekArchive,
    ServerArchive, WeekArchive, step_spacing,
};
use clqd::model::calendar::{Calendar, DAY_MS, HOUR_MS, MINUTE_MS, week_label};
use clqd::model::row::Uncertainty;
use clqd::model::server::SeriesRecord;
use clqd::model::top_board::{OnlineTotal, SiteTotals, TopBoard, TopBoardKey, TopEntry, TopScope};
use clqd::model::{ArchiveJob, GameKey, MapKey, PlayerKey, Ranking, ServerKey, Session, SessionKey, WeekKey};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// 2026-W47.
const RUNNING: u32 = 2_968;
/// With these many servers, player 12 has 2,400 rows.
const WEEKS: u32 = 60;
const SERVERS: u32 = 40;
/// On each server; server 7 has more.
const PLAYERS: u32 = 20;
const PLAYERS_OF_7: u32 = 300;

/// An account that may read the views and nothing else, as docs/database.md describes.
pub async fn website_account(database: &Database) -> Conn {
    let user = format!("{}w", database.name);
    database.run(&format!("CREATE USER '{user}'@'%' IDENTIFIED BY 'w'")).await;
    database.run(&format!("GRANT EXECUTE ON {}.* TO '{user}'@'%'", database.name)).await;
    let views = "SELECT table_name FROM information_schema.views WHERE table_schema = DATABASE()";
    for view in database.rows(views).await.iter().flatten() {
        database.run(&format!("GRANT SELECT ON {}.{view} TO '{user}'@'%'", database.name)).await;
    }
    database.conn_as(Some((&user, "w"))).await
}

/// The queries of docs/database.md.
pub fn queries() -> Vec<String> {
    queries_below("## Queries for a website")
}

/// The queries of the first block below a heading of docs/database.md.
fn queries_below(heading: &str) -> Vec<String> {
    let page = std::fs::read_to_string("docs/database.md").unwrap();
    let section = page.split(heading).nth(1).unwrap();
    let script = section.split("```sql").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    clqd::archive::statements(script).into_iter().map(str::to_owned).collect()
}

fn sort_key(position: u32) -> OrderBytes {
    [[0; 14].as_slice(), &position.to_be_bytes()].concat().into_iter().collect()
}

fn week(week: u32, server: u32) -> WeekArchive {
    let (key, players) = (WeekKey(week), if server == 7 { PLAYERS_OF_7 } else { PLAYERS });
    let (calendar, closed) = (Calendar::default(), week < RUNNING);
    let start_ms = calendar.week_start_ms(key);
    // Each week has another player first.
    let position = |player: u32| (player + week) % players + 1;
    let row = |player: u32| {
        let order = match closed {
            true => BoardOrder::Position(position(player)),
            false => BoardOrder::SortKey(sort_key(position(player))),
        };
        PlayerWeekArchive {
            player: PlayerKey(player),
            measured_ms: 600_000,
            starts: 1,
            time_ms: 660_000,
            time_est_ms: 700_000,
            points: 100,
            points_est: 110.5,
            elo: 1_000.0,
            elo_rounds: 3,
            elo_rounds_sure: 1,
            uncertainty: Uncertainty::default(),
            clq1: 7_200_000 - u64::from(position(player)),
            clq2: 10,
            ten_best: None,
            places: [(); 5].map(|()| Some(BoardPlace { reached_ms: start_ms + 5_000, order: order.clone() })),
        }
    };
    let spacing = step_spacing(players) as usize;
    let steps = Ranking::ALL.into_iter().flat_map(|ranking| {
        let positions = (1..=players).step_by(spacing).filter(|_| !closed);
        positions.map(move |position| BoardStep { ranking, position, order: sort_key(position) })
    });
    let map = |map| MapWeekArchive { map: MapKey(map), played_ms: 1_000, player_ms: u64::from(1_000 + map) };
    let best = |player: u32| {
        let three: Vec<_> = (0..3).map(|n| (position(player) + n, WeekKey(week.saturating_sub(n)))).collect();
        (PlayerKey(player), std::array::from_fn(|_| three.clone())).into()
    };
    WeekArchive {
        week: key,
        server: ServerKey(server),
        label: week_label(key),
        week_start_ms: start_ms,
        week_end_ms: calendar.week_end_ms(key),
        closed,
        game: Some(GameKey(1)),
        server_rank: closed.then_some((server * 7 + week) % SERVERS + 1),
        player_ms: 1_000_000,
        board_sizes: [players; 5],
        checksum: None,
        span: PlayerKeyRange::ALL,
        is_complete: true,
        rows: (1..=players).map(row).collect(),
        maps: (1..=30).map(map).collect(),
        steps: steps.collect(),
        best: if week + 1 == RUNNING { (1..=players).map(best).collect() } else { Vec::new() },
    }
}

fn server(key: u32) -> ServerArchive {
    let listed = ListEntry {
        name: "Visor".into(),
        display: "^1Visor".into(),
        points: Some(3),
        player: Some(PlayerKey(12)),
        spectator: false,
    };
    let url = if key == 7 { "quake3://game.example.org:27960".into() } else { format!("quake3://h{key}:1") };
    ServerArchive {
        hostname: if key.is_multiple_of(40) { format!("The Vision {key}") } else { format!("House {key}") },
        rank: Some(key),
        game: Some(GameKey(1)),
        map: Some(MapKey(key % 4)),
        players: key,
        online: true,
        added_ms: key.into(),
        tags: if key.is_multiple_of(2) { vec!["ctf".into()] } else { Vec::new() },
        list: if key == 7 { vec![listed] } else { Vec::new() },
        series: Some(SeriesRecord {
            newest_ten_minutes_ms: 1_763_000_400_000,
            newest_hour_ms: 1_762_999_200_000,
            newest_day_ms: 1_762_905_600_000,
            newest_week_ms: 1_762_700_000_000,
            ten_minutes: vec![1; 250],
            hours: vec![1; 768],
            days: vec![1; 365],
            weeks: vec![1; 60],
            ranks: vec![1; 110],
            newest_rank_week: Some(WeekKey(RUNNING - 1)),
        }),
        ..new_server(key, &url)
    }
}

async fn fill(archive: &mut Archive) {
    let mut jobs = vec![ArchiveJob::Game { key: GameKey(1), name: "baseq3".into() }];
    jobs.extend((0..=30).map(|key| ArchiveJob::Map { key: MapKey(key), name: format!("m{key}") }));
    jobs.extend((1..=2_000).map(|key| {
        let name = match key {
            12 => "Visor".into(),
            _ if key % 40 == 0 => format!("clan Vision {key}"),
            _ if key % 9 == 0 => format!("Vision {}", key / 2),
            _ => format!("p{key}"),
        };
        ArchiveJob::Player { key: PlayerKey(key), game: GameKey(1), display: name.clone(), name }
    }));
    jobs.extend((1..=2_000).map(|key| ArchiveJob::Server(Box::new(server(key)))));
    archive.write(&jobs).await.unwrap();
    for number in 0..WEEKS {
        let weeks = (1..=SERVERS).map(|key| ArchiveJob::Week(Box::new(week(RUNNING - WEEKS + 1 + number, key))));
        archive.write(&weeks.collect::<Vec<_>>()).await.unwrap();
    }
    // Half of them ended before the time that a documented query names.
    let session = |number: u32| {
        let (server, player) = (ServerKey(1 + number % SERVERS), PlayerKey(1 + number / SERVERS % 300));
        let end_ms = 1_764_064_800_000 + (i64::from(number) - 30_000) * 1_000;
        let key = SessionKey { end_ms, server, player, origin: player, generation: 0 };
        ArchiveJob::Session(key, Session { start_ms: end_ms - 600_000, points: Some(5), map: MapKey(3), seen: 6 })
    };
    archive.write(&(0..60_000).map(session).collect::<Vec<_>>()).await.unwrap();
    for (number, scope, name) in [(0, TopScope::All, ""), (0, TopScope::Game(GameKey(1)), "baseq3")]
        .into_iter()
        .flat_map(|(_, scope, name)| [(1, scope, name), (0, scope, name)])
    {
        let entry =
            |n: u32| TopEntry { player: PlayerKey((n * 7 + number * 3) % 1_999 + 1), score: 1.5, reached_ms: 3 };
        let key = TopBoardKey { window: WeekKey(RUNNING - number).into(), scope, ranking: Ranking::Clq1 };
        let board = TopBoard {
            key,
            scope_name: name.into(),
            window_type: "week".into(),
            previous_window: Some(week_label(WeekKey(RUNNING - number - 1))),
            window: week_label(WeekKey(RUNNING - number)),
            start_ms: None,
            end_ms: None,
            closed: number > 0,
            size: 5_000,
            entries: (0..1_000).map(entry).collect(),
        };
        archive.write_top_board(&board, 4).await.unwrap();
    }
    for number in 0..300 {
        let online = vec![OnlineTotal { game: GameKey(1), servers: 4, players: 9 }];
        let now_ms = 1_794_600_000_000 + number * 600_000;
        // Players are merged and forgotten, so there are fewer each day.
        let players_known = 10_000 - i64::unsigned_abs(number);
        let day_start_ms = now_ms - now_ms % DAY_MS;
        let totals = SiteTotals { now_ms, day_start_ms, players_known, online, ..SiteTotals::default() };
        archive.write_site_totals(&totals).await.unwrap();
    }
}

/// Rows that this connection has read.
async fn rows_read(conn: &mut Conn) -> u64 {
    let status: Vec<(String, u64)> = conn.query("SHOW SESSION STATUS LIKE 'Handler_read%'").await.unwrap();
    status.into_iter().map(|(_, count)| count).sum()
}

/// Adds rows of players on other servers, in the running week and the eleven before, in total
/// `rows`. Every player of these is on a few servers in each week.
async fn add_rows(database: &Database, rows: u32) {
    const FIRST_PLAYER: u32 = 2_001;
    const PLAYERS: u32 = 2_000_000;
    const PLAYERS_PER_SERVER: u32 = 500;
    let last_player = FIRST_PLAYER + PLAYERS - 1;
    let name = "CONCAT(ELT(seq MOD 5 + 1, 'Anarki ', 'Crash', 'Vis', '|clan| ', 'x'), seq)";
    database
        .run(&format!(
            "INSERT INTO player (player, game, name, display) SELECT seq, 1, {name}, {name} \
             FROM seq_{FIRST_PLAYER}_to_{last_player}"
        ))
        .await;
    let names = format!("FROM player WHERE player >= {FIRST_PLAYER} AND name LIKE '% %'");
    database
        .run(&format!("INSERT INTO player_word SELECT player, 1, SUBSTRING(name, LOCATE(' ', name) + 1), game {names}"))
        .await;
    let rows_per_week = rows / 12;
    let (_, columns) = Archive::loaded_tables().find(|(table, _)| *table == "player_week").unwrap();
    let columns = columns.join(", ");
    for week in RUNNING - 11..=RUNNING {
        let start_ms = Calendar::default().week_start_ms(WeekKey(week));
        let position = format!("LPAD(HEX((seq + {week} * 7) MOD {PLAYERS_PER_SERVER} + 1), 8, '0')");
        let order = match week < RUNNING {
            true => format!("UNHEX({position})"),
            false => format!("UNHEX(CONCAT(REPEAT('0', 28), {position}))"),
        };
        let server = format!("{SERVERS} + 1 + seq DIV {PLAYERS_PER_SERVER}");
        database
            .run(&format!(
                "INSERT INTO player_week ({columns}) SELECT {week}, {server}, {FIRST_PLAYER} + (seq * 7 + {week}) MOD {PLAYERS}, \
                 600000, 1, 660000, 700000, 100, 110.5, 1000, 3, 7200000, 10, \
                 {order}, {order}, {order}, {order}, {order}, 5000, 5000, 5000, 5000, 5000, NULL, NULL FROM seq_0_to_{}",
                rows_per_week - 1
            ))
            .await;
        database
            .run(&format!(
                "INSERT INTO server_week (week, server, game, server_rank, player_ms, closed, clq1_players, clq2_players, \
                 elo_players, points_players, time_players) SELECT {week}, server, 1, IF({week} < {RUNNING}, server, NULL), \
                 COUNT(*) * 1000, {week} < {RUNNING}, COUNT(*), COUNT(*), COUNT(*), COUNT(*), COUNT(*) FROM player_week \
                 WHERE week = {week} AND server > {SERVERS} GROUP BY server"
            ))
            .await;
        database
            .run(&format!(
                "INSERT INTO player_total SELECT player, week, COUNT(*), SUM(time_ms), SUM(time_est_ms), SUM(points), \
                 SUM(points_est), SUM(elo_rounds), SUM(elo_rounds_sure), SUM(time_est_variance), \
                 SUM(points_est_variance), {start_ms} + 5000 FROM player_week WHERE week = {week} AND server > {SERVERS} \
                 GROUP BY player"
            ))
            .await;
    }
}

/// In some time zones a day begins within an hour, and a clock that was ahead leaves later values.
#[tokio::test]
async fn means_of_a_day_are_those_of_its_hours() {
    let database = Database::new().await;
    database.migrate().await;
    let mut archive = Archive::connect(&database.settings()).await.unwrap();
    let hour_ms = 1_794_600_000_000 - 1_794_600_000_000 % HOUR_MS;
    database.run(&format!("INSERT INTO online_total VALUES (0, {}, 9999, 1)", hour_ms + DAY_MS)).await;
    database.run(&format!("INSERT INTO online_hour VALUES (0, {}, 9999, 9999, 1)", hour_ms + DAY_MS)).await;
    let day_start_ms = hour_ms + HOUR_MS / 2;
    for (minute, players) in [(30, 4), (40, 8), (60, 2)] {
        let online = vec![OnlineTotal { game: GameKey(1), servers: 1, players }];
        let now_ms = hour_ms + minute * MINUTE_MS;
        let totals = SiteTotals { now_ms, day_start_ms, players_known: 7, online, ..SiteTotals::default() };
        archive.write_site_totals(&totals).await.unwrap();
    }
    let hours =
        format!("SELECT players, players_max FROM online_hour WHERE game = 0 AND at_ms <= {}", hour_ms + HOUR_MS);
    assert_eq!(database.rows(&hours).await, [["6", "8"], ["2", "2"]]);
    let day =
        format!("SELECT players, players_max, players_known FROM online_day WHERE game = 0 AND at_ms = {day_start_ms}");
    assert_eq!(database.rows(&day).await, [["4", "8", "7"]]);
}

#[tokio::test]
async fn pages_read_few_rows_more_than_they_return() {
    let database = Database::new().await;
    database.migrate().await;
    let mut archive = Archive::connect(&database.settings()).await.unwrap();
    fill(&mut archive).await;
    assert_eq!(database.value("SELECT COUNT(*) FROM player_week WHERE player = 12").await, "2400");
    let mut conn = website_account(&database).await;
    assert_pages_read_few_rows(&database, &mut conn).await;
    // The function within a condition is evaluated a few times, not for each row.
    let page = "SELECT display FROM clq_player_week WHERE week = 2968 AND server = 7 AND \
                clq1_order >= clq_order_at(2968, 7, 'clq1', 101) ORDER BY clq1_order LIMIT 50";
    let before = rows_read(&mut conn).await;
    assert_eq!(conn.query::<String, _>(page).await.unwrap().len(), 50);
    let read = rows_read(&mut conn).await - before;
    assert!(read < 500, "{read} rows read");
    // It reads the player's rows in the weeks that it names.
    let [favourites] = &queries_below("### What is not there")[..] else { panic!("one query") };
    let before = rows_read(&mut conn).await;
    let found: Vec<mysql_async::Row> = conn.query(favourites).await.unwrap();
    let read = rows_read(&mut conn).await - before;
    assert_eq!(found.len(), 10);
    let rows = u64::from(12 * SERVERS);
    assert!((rows..4 * rows).contains(&read), "{read} rows read, and the player has {rows}");
}

/// A measurement: `cargo test --release --test archive ten_million -- --ignored --nocapture`. It
/// takes about ten minutes and 8 GB of memory. It prints the time of each page.
#[tokio::test]
#[ignore = "a measurement"]
async fn pages_of_ten_million_rows() {
    let rows: u32 = std::env::var("CLQD_ROWS").map_or(10_000_000, |rows| rows.parse().unwrap());
    let options = ["--innodb-buffer-pool-size=6G", "--innodb-log-file-size=1G"];
    let database = Database::on_server(Arc::new(Server::start_with(&options))).await;
    database.migrate().await;
    let mut archive = Archive::connect(&database.settings()).await.unwrap();
    fill(&mut archive).await;
    archive.close().await;
    let began = Instant::now();
    add_rows(&database, rows).await;
    println!("{rows} rows were added in {:.0?}", began.elapsed());
    let mut conn = website_account(&database).await;
    assert_pages_read_few_rows(&database, &mut conn).await;
    let (mut slowest, queries) = (Duration::ZERO, queries());
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); queries.len()];
    // The first round warms the caches.
    for round in 0..301 {
        for (query, times) in queries.iter().zip(&mut times) {
            let began = Instant::now();
            let rows: Vec<mysql_async::Row> = conn.query(query).await.unwrap();
            std::hint::black_box(rows);
            if round > 0 {
                times.push(began.elapsed());
            }
        }
    }
    for (query, times) in queries.iter().zip(&mut times) {
        times.sort_unstable();
        let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        slowest = slowest.max(p99);
        println!("p50 {p50:>9.2?}  p99 {p99:>9.2?}  {}", query.lines().collect::<Vec<_>>().join(" "));
    }
    println!("the slowest p99 is {slowest:.2?}");
    let sizes = "SELECT table_name, table_rows, ROUND((data_length + index_length) / GREATEST(table_rows, 1)), \
                 ROUND(data_length / GREATEST(table_rows, 1)) FROM information_schema.tables \
                 WHERE table_schema = DATABASE() AND table_rows > 100000";
    for row in database.rows(sizes).await {
        println!("{}: {} rows, {} bytes a row, {} of them without indexes", row[0], row[1], row[2], row[3]);
    }
}

/// Runs each query with the account of a website.
async fn assert_pages_read_few_rows(database: &Database, conn: &mut Conn) {
    let tables = "player, player_word, player_total, map, server, server_tag, server_word, tag_total, \
                  online_hour, online_day, online_player, server_week, player_week, best_position, \
                  map_week, map_total, board_step, top_board, top_board_row, online_total, server_series";
    database.run(&format!("ANALYZE TABLE {tables}")).await;
    let before = rows_read(conn).await;
    let of_status = rows_read(conn).await - before;
    let mut excess = Vec::new();
    for query in queries() {
        let before = rows_read(conn).await;
        let rows: Vec<mysql_async::Row> = conn.query(&query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
        let read = rows_read(conn).await - before - of_status;
        assert!(!rows.is_empty() || query.starts_with("SET"), "{query} returns no rows");
        if read > 3 * rows.len() as u64 + 50 {
            let plan = database.rows(&format!("EXPLAIN {}", query.replace("@", "@x"))).await;
            excess.push(format!("{read} read for {} rows: {query}: {plan:?}", rows.len()));
        }
    }
    assert!(excess.is_empty(), "{}", excess.join("\n"));
}
