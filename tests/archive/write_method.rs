//! Rows are written with LOAD DATA where the database allows it, otherwise with INSERT. Both
//! store the same rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::database::world::{Outbox, assert_same, read};
use crate::database::{Database, Server};
use clqd::archive::{Archive, ArchiveSettings, WorkerStatus, WriteMethod};
use tokio::sync::watch;

/// A database whose server does not allow LOAD DATA LOCAL INFILE.
pub async fn without_load_data() -> Database {
    let database = Database::on_server(Arc::new(Server::start_with(&["--local-infile=0"]))).await;
    database.migrate().await;
    database
}

/// A database that may be configured by a test.
async fn on_own_server() -> Database {
    let database = Database::on_server(Arc::new(Server::start_with(&["--local-infile=1"]))).await;
    database.migrate().await;
    database
}

/// A number that each kind of statement has been executed.
async fn executed(database: &Database) -> BTreeMap<String, u64> {
    let rows = database.rows("SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_load', 'Com_insert')").await;
    rows.into_iter().map(|row| (row[0].clone(), row[1].parse().unwrap())).collect()
}

async fn drain(settings: ArchiveSettings, outbox: &Outbox) -> WorkerStatus {
    let (status, seen) = watch::channel(WorkerStatus::default());
    clqd::archive::run(settings, outbox.clone(), || 1_763_000_000_000, async {}, status).await;
    seen.borrow().clone()
}

fn world(seed: u64) -> Outbox {
    let outbox = Outbox::new(seed);
    outbox.with(|world| (0..300).for_each(|_| world.step()));
    outbox
}

#[tokio::test]
async fn both_methods_store_the_same_rows() {
    let (loading, inserting) = (on_own_server().await, without_load_data().await);
    for (database, method) in [(&loading, WriteMethod::LoadData), (&inserting, WriteMethod::Insert)] {
        let outbox = world(21);
        let status = drain(database.settings(), &outbox).await;
        assert_eq!((status.write_method, status.rejected, status.fault), (Some(method), 0, None));
        outbox.with(|world| (0..300).for_each(|_| world.step()));
        drain(database.settings(), &outbox).await;
        assert_same(&read(database).await, &outbox.with(|world| world.tables()), &method.to_string());
    }
    assert!(executed(&loading).await["Com_load"] > 4, "{:?}", executed(&loading).await);
    assert_eq!(executed(&inserting).await["Com_load"], 0);
    assert_same(&read(&loading).await, &read(&inserting).await, "both");
}

#[tokio::test]
async fn refused_load_data_is_replaced_by_insert() {
    let database = on_own_server().await;
    let mut archive = Archive::connect(&database.settings()).await.unwrap();
    // The variable was read at the connection.
    database.run("SET GLOBAL local_infile = 0").await;
    let outbox = world(22);
    let (jobs, wanted) = outbox.with(|world| (world.jobs(), world.tables()));
    archive.write(&jobs).await.unwrap();
    assert_same(&read(&database).await, &wanted, "after a refusal");
    archive.close().await;
}

#[tokio::test]
async fn value_that_does_not_fit_is_rejected_as_with_insert() {
    let database = on_own_server().await;
    database.run("ALTER TABLE player_week MODIFY measured_ms TINYINT UNSIGNED NOT NULL").await;
    let outbox = world(23);
    let status = drain(database.settings(), &outbox).await;
    assert!(status.rejected > 0, "{status:?}");
    assert_eq!(status.write_method, Some(WriteMethod::Insert), "LOAD DATA only warns");
    assert!(status.last_error.unwrap().contains("measured_ms"));
    assert_eq!(database.value("SELECT COUNT(*) FROM player_week WHERE measured_ms = 255").await, "0");

    database.run("ALTER TABLE player_week MODIFY measured_ms BIGINT UNSIGNED NOT NULL").await;
    let status = drain(database.settings(), &outbox).await;
    assert_eq!((status.rejected, status.write_method), (0, Some(WriteMethod::LoadData)), "tried after a restart");
    assert_same(&read(&database).await, &outbox.with(|world| world.tables()), "all");
}

/// REPLACE deletes and inserts a row, and sets columns that are not named to their default value,
/// unless these conditions hold.
#[tokio::test]
async fn loaded_tables_have_one_unique_key_and_are_written_completely() {
    let database = on_own_server().await;
    drain(database.settings(), &world(24)).await;
    let mut checked = 0;
    for (table, columns) in Archive::loaded_tables() {
        let of = format!("WHERE table_schema = DATABASE() AND table_name = '{table}'");
        let keys =
            format!("SELECT COUNT(DISTINCT index_name) FROM information_schema.statistics {of} AND non_unique = 0");
        // A player's name belongs to one key, which is checked before.
        let unique = if table == "player" { "2" } else { "1" };
        assert_eq!(database.value(&keys).await, unique, "{table}");
        let all = format!(
            "SELECT column_name FROM information_schema.columns {of} AND generation_expression IS NULL ORDER BY column_name"
        );
        let all: Vec<String> = database.rows(&all).await.into_iter().map(|row| row[0].clone()).collect();
        let mut written = columns.to_vec();
        written.sort_unstable();
        assert_eq!(all, written, "{table}");
        checked += 1;
    }
    assert_eq!(checked, 11);
}
