//! Random faults of the database, the network and the daemon, while weeks are played, closed and corrected. Afterwards
//! every table equals that of a database which was filled from the final state without any fault.
//!
//! `CLQD_FAULTS=100 cargo test --test archive faults` does more of them; `CLQD_SEED` repeats a run.

use std::sync::Arc;
use std::time::Duration;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::database::proxy::{Plan, Proxy};
use crate::database::{Database, ONE_FILE, Server};
use crate::restore::assert_archived;
use crate::scans;
use crate::silent::{NO_LIMIT, assert_content, content, copy_rows, reopen};
use crate::state_source::{StateSource, open};
use clqd::archive::ArchiveSettings;
use clqd::model::ServerUrl;
use clqd::model::calendar::{DAY_MS, MINUTE_MS};
use clqd::state::State;
use clqd::view::board::PlayerSelector;

const MONDAY_MS: i64 = 1_763_942_400_000; // 2025-11-24 00:00 UTC
const SERVERS: i64 = 4;
const FAULTS: usize = 16;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn url(server: i64) -> String {
    format!("quake3://10.7.0.{server}:27960")
}

/// Ten minutes of play.
fn play(state: &mut State, from_ms: i64, random: &mut Random) {
    for scan in 0..5 {
        for server in 1..=SERVERS {
            let t_ms = from_ms + scan * 2 * MINUTE_MS + server;
            let players: Vec<(String, i64)> = (0..10 + server)
                .filter(|_| random.below(4) > 0)
                .map(|n| (format!("player {} {n}", server % 2), scan * (1 + n % 5)))
                .collect();
            let mut snapshot = scans::snapshot(t_ms, players);
            snapshot.game = ["baseq3", "cstrike"][usize::from(server == 4)].to_owned();
            snapshot.map = format!("map{}", random.below(5));
            scans::apply_snapshot(state, &url(server), snapshot);
        }
    }
    state.commit().unwrap();
}

/// What an admin does.
fn correct(state: &mut State, now_ms: i64, random: &mut Random) {
    let name = |n: u64| PlayerSelector::Name(format!("player {} {n}", n % 2));
    let State { engine, store } = &mut *state;
    match random.below(6) {
        // There may be no such player any more.
        0 => _ = engine.forget_player(store, "baseq3", &name(random.below(8)), now_ms),
        1 => _ = engine.merge_players(store, "baseq3", &name(random.below(8)), &name(random.below(8))),
        2 => {
            let reason = (random.below(2) == 0).then(|| "fake".to_owned());
            engine.greylist(store, &ServerUrl::parse(&url(3)).unwrap(), reason).unwrap();
        }
        _ => {}
    }
    state.commit().unwrap();
}

/// Fills the file of all tables.
async fn fill_disk(admin: &mut Conn) {
    admin.query_drop("CREATE DATABASE ballast").await.unwrap();
    admin.query_drop("CREATE TABLE ballast.row (filler LONGBLOB)").await.unwrap();
    for bytes in [200_000, 5_000] {
        let error = loop {
            let filled = admin.query_drop(format!("INSERT INTO ballast.row VALUES (REPEAT('x', {bytes}))")).await;
            if let Err(error) = filled {
                break error;
            }
        };
        match error {
            // The database has given up.
            mysql_async::Error::Io(_) => return,
            error => assert!(error.to_string().contains("1114"), "the table is full: {error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_table_is_right_after_random_faults() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let faults = number("CLQD_FAULTS").map_or(FAULTS, |faults| faults as usize);
    let seed = number("CLQD_SEED").unwrap_or_else(|| std::process::id().into());
    println!("CLQD_SEED={seed} CLQD_FAULTS={faults}");
    let mut random = Random(seed);
    let server = Arc::new(Server::start_with(&ONE_FILE));
    let database = Database::on_server(server.clone()).await;
    database.migrate().await;
    // The writer's account obeys the read-only mode, which another one sets.
    database.run("CREATE USER 'admin'@'%' IDENTIFIED BY 'admin'").await;
    database.run("GRANT ALL ON *.* TO 'admin'@'%'").await;
    database.run("REVOKE READ ONLY ADMIN ON *.* FROM 'test'@'%'").await;
    let (older, unharmed) = (database.beside("older").await, database.beside("unharmed").await);
    let proxy = Proxy::to(database.address()).await;
    let settings = ArchiveSettings {
        backoff_ms_min: 10,
        backoff_ms_max: 50,
        query_timeout_ms: 1_000,
        ..database.settings_through(proxy.address)
    };
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path());
    let mut has_older = false;
    for number in 0..faults {
        // Three weeks in all, so that two are closed on the way.
        let now_ms = MONDAY_MS + 20 * DAY_MS * number as i64 / faults as i64;
        state.close_due_weeks(now_ms).unwrap();
        play(&mut state, now_ms, &mut random);
        correct(&mut state, now_ms + 10 * MINUTE_MS, &mut random);
        let bytes = random.below(200_000) as usize;
        let mut requests = NO_LIMIT;
        let mut meanwhile = None;
        let fault = random.below(12);
        match fault {
            0 => proxy.plan([Plan::CutUp(bytes)]),
            1 => proxy.plan([Plan::CutDown(bytes / 20), Plan::Refuse]),
            2 => proxy.plan([Plan::StallUp(bytes, Duration::from_millis(1_500))]),
            3 => proxy.plan([Plan::LoseCommitReply(1 + random.below(12) as usize)]),
            4 => requests = 3 + random.below(25) as usize,
            5 | 6 => {
                let (server, after_ms) = (server.clone(), random.below(120));
                meanwhile = Some(tokio::task::spawn_blocking(move || {
                    std::thread::sleep(Duration::from_millis(after_ms));
                    server.kill_and_restart();
                }));
            }
            7 => {
                // Nobody can write meanwhile.
                let mut conn = database.conn().await;
                conn.query_drop("FLUSH TABLES WITH READ LOCK").await.unwrap();
                meanwhile = Some(tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(700)).await;
                    conn.query_drop("UNLOCK TABLES").await.unwrap();
                }));
            }
            8 => {
                let mut admin = database.conn_as(Some(("admin", "admin"))).await;
                admin.query_drop("SET GLOBAL read_only = 1").await.unwrap();
                meanwhile = Some(tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(700)).await;
                    admin.query_drop("SET GLOBAL read_only = 0").await.unwrap();
                }));
            }
            9 => {
                let restarted = server.clone();
                tokio::task::spawn_blocking(move || restarted.kill_and_restart_with_disk(false)).await.unwrap();
                fill_disk(&mut database.conn().await).await;
                let server = server.clone();
                meanwhile = Some(tokio::task::spawn_blocking(move || {
                    std::thread::sleep(Duration::from_millis(700));
                    server.kill_and_restart_with_disk(true);
                }));
            }
            // Nothing arrives for a while, over any connection.
            10 => proxy.plan([bytes, 0, 0, 0].map(|after| Plan::StallUp(after, Duration::from_millis(1_500)))),
            _ if has_older => copy_rows(&older, &database).await,
            _ => {
                older.migrate().await;
                copy_rows(&database, &older).await;
                has_older = true;
            }
        }
        let source = StateSource::new(state, seed as usize + number, requests);
        source.archive(&settings).await;
        if let Some(meanwhile) = meanwhile {
            meanwhile.await.unwrap();
        }
        database.run("DROP DATABASE IF EXISTS ballast").await;
        proxy.plan([]);
        state = source.into_state();
        if requests != NO_LIMIT {
            // What was not in a checkpoint is in the log, which this test does not have.
            state.write_checkpoint(0).unwrap();
            state = reopen(state, dir.path());
        }
    }
    let archive = async |state: State, database: &Database, seed: usize| {
        let source = StateSource::new(state, seed, NO_LIMIT);
        let status = source.archive(&database.settings()).await;
        assert_eq!(status.fault, None, "CLQD_SEED={seed}");
        source.into_state()
    };
    state = archive(state, &database, 1_000_001).await;
    assert_archived(&mut state, &database).await;
    let found = content(&database).await;
    unharmed.migrate().await;
    // Another archive, so everything is written to it.
    state = archive(state, &unharmed, 1_000_002).await;
    let mut wanted = content(&unharmed).await;
    let mut found = found;
    // The state does not keep older sessions.
    let end_ms = |row: &Vec<String>| i64::from_str_radix(&row[1], 16).unwrap();
    let sessions = |tables: &[(String, Vec<Vec<String>>)]| {
        tables.iter().position(|(table, _)| table == "player_session").expect("a table")
    };
    let oldest_ms = wanted[sessions(&wanted)].1.iter().map(end_ms).min().expect("sessions");
    let at = sessions(&found);
    found[at].1.retain(|row| end_ms(row) >= oldest_ms);
    for tables in [&mut found, &mut wanted] {
        for (table, rows) in tables.iter_mut() {
            match table.as_str() {
                // It names the state.
                "clq_state" => rows.clear(),
                // Maps that are not played any more, and servers without players.
                "map_total" => rows.retain(|row| row[5] != "0"),
                "server_week" => {
                    rows.retain(|row| row[4..].iter().any(|value| !["0", "1", "NULL"].contains(&&**value)))
                }
                _ => {}
            }
        }
    }
    assert!(wanted.iter().map(|(_, rows)| rows.len()).sum::<usize>() > 1_000);
    assert_content(&found, &wanted, &format!("CLQD_SEED={seed} CLQD_FAULTS={faults}"));
    drop(state);
}
