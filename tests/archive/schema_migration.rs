//! Databases of earlier schema versions, with data, are migrated to the current version: they
//! then have the structure and the data of a new database. `tests/fixtures/schema-N.sql` is
//! the schema of version N.

use std::collections::BTreeMap;

use crate::database::Database;
use crate::database::world::{Outbox, assert_same, read};
use clqd::archive::{Archive, ArchiveError, MigrationStep, SCHEMA_SQL, Schema, statements};

const OLDER: [Schema; 4] = [
    Schema { version: 1, sql: include_str!("../fixtures/schema-1.sql"), steps: &[] },
    Schema { version: 2, sql: include_str!("../fixtures/schema-2.sql"), steps: &[] },
    Schema { version: 3, sql: include_str!("../fixtures/schema-3.sql"), steps: &[] },
    Schema { version: 4, sql: include_str!("../fixtures/schema-4.sql"), steps: &[] },
];

/// Tables that version 3 renamed: the new and the former name.
const TABLES: [(&str, &str); 2] = [("online_player", "server_player"), ("server_screening", "server_screened")];
/// Columns that version 3 renamed: the table, the new and the former name.
const COLUMNS: [(&str, &str, &str); 8] = [
    ("best_position", "ordinal", "place"),
    ("clq_state", "singleton", "one"),
    ("clq_state", "state_id", "id"),
    ("online_player", "list_index", "place"),
    ("server", "greylist_reason", "greylist"),
    ("server", "server_rank_week", "rank_week"),
    ("server_series", "newest_ten_minutes_ms", "newest_slot_ms"),
    ("server_series", "ten_minutes", "slots"),
];

async fn open(database: &Database) -> Archive {
    Archive::connect(&database.settings()).await.unwrap()
}

/// A database of the current version with rows in every table.
async fn filled(outbox: &Outbox) -> Database {
    let database = Database::new().await;
    let mut archive = open(&database).await;
    archive.migrate().await.unwrap();
    outbox.with(|world| (0..200).for_each(|_| world.step()));
    archive.write(&outbox.with(|world| world.jobs())).await.unwrap();
    archive.set_state_id(77).await.unwrap();
    archive.close().await;
    for (table, rows) in read(&database).await {
        assert!(!rows.is_empty(), "{table} has no rows");
    }
    database
}

/// Removes what version 3 cannot hold. The state writes everything again after a migration.
async fn keep_version_3_data(database: &Database) {
    for sql in [
        "DELETE FROM board_step",
        "DELETE FROM clq_state",
        "DELETE FROM player_word",
        "UPDATE server SET online = 0",
        "UPDATE map_week SET game = (SELECT game FROM server WHERE server.server = map_week.server AND greylist_reason IS NULL)",
        "DELETE FROM map_total",
        "INSERT INTO map_total SELECT week, game, map, SUM(played_ms), SUM(player_ms), COUNT(*) FROM map_week \
         WHERE game IS NOT NULL GROUP BY week, game, map",
        "INSERT INTO map_total SELECT week, 0, map, SUM(played_ms), SUM(player_ms), COUNT(*) FROM map_week \
         WHERE game IS NOT NULL GROUP BY week, map",
        "UPDATE player_week SET clq1_reached_after_ms = NULL, clq2_reached_after_ms = NULL, elo_reached_after_ms = NULL, \
         points_reached_after_ms = NULL, time_reached_after_ms = NULL",
        "UPDATE player_total SET last_seen_ms = NULL",
        "UPDATE server_week SET clq1_players = 0, clq2_players = 0, elo_players = 0, points_players = 0, time_players = 0",
    ] {
        database.run(sql).await;
    }
}

/// Removes what version 1 cannot hold.
async fn keep_version_1_data(database: &Database) {
    for sql in [
        "UPDATE player_week SET time_est_ms = 0, points_est = 0",
        "UPDATE player_total SET time_est_ms = 0, points_est = 0",
        "UPDATE server SET bots_unidentified = 0",
        "UPDATE online_player SET spectator = 0, points = COALESCE(points, 0)",
        "DELETE FROM server_screening",
    ] {
        database.run(sql).await;
    }
}

/// A database of an older version with the data of `new`.
async fn with_data_of(new: &Database, version: &Schema) -> Database {
    let old = Database::new().await;
    let mut archive = open(&old).await;
    archive.migrate_to(version).await.unwrap();
    archive.close().await;
    let columns = old
        .rows(
            "SELECT c.table_name, c.column_name FROM information_schema.columns c JOIN information_schema.tables t \
             ON t.table_schema = c.table_schema AND t.table_name = c.table_name AND t.table_type = 'BASE TABLE' \
             WHERE c.table_schema = DATABASE() AND COALESCE(c.generation_expression, '') = '' \
             AND c.table_name NOT IN ('clq_schema_version', 'clq_number') ORDER BY 1, c.ordinal_position",
        )
        .await;
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in columns {
        let [table, column] = <[String; 2]>::try_from(row).unwrap();
        tables.entry(table).or_default().push(column);
    }
    for (table, columns) in tables {
        // Version 3 has the new names; none of them is a former name.
        let new_table = TABLES.iter().find(|(_, old)| *old == table).map_or(&*table, |(new, _)| new);
        let new_column = |column: &String| {
            let renamed = COLUMNS.iter().find(|(of, _, old)| *of == new_table && old == column);
            renamed.map_or_else(|| column.clone(), |(_, new, _)| (*new).to_owned())
        };
        let new_columns: Vec<String> = columns.iter().map(new_column).collect();
        let (columns, new_columns) = (columns.join(", "), new_columns.join(", "));
        let select = format!("SELECT {new_columns} FROM {}.{new_table}", new.name);
        old.run(&format!("INSERT INTO {table} ({columns}) {select}")).await;
    }
    old
}

/// Tables, columns, indexes, views and routines, with their comments.
async fn structure(database: &Database) -> BTreeMap<&'static str, Vec<Vec<String>>> {
    let mut structure = BTreeMap::new();
    for (kind, query) in [
        (
            "tables",
            "SELECT table_name, table_type, engine, row_format, table_collation, IF(table_type = 'VIEW', '', \
             table_comment) FROM information_schema.tables WHERE table_schema = DATABASE()",
        ),
        (
            "columns",
            "SELECT table_name, ordinal_position, column_name, column_type, is_nullable, COALESCE(column_default, \
             'none'), COALESCE(collation_name, ''), column_key, extra, COALESCE(generation_expression, ''), \
             column_comment FROM information_schema.columns WHERE table_schema = DATABASE()",
        ),
        (
            "indexes",
            "SELECT table_name, index_name, seq_in_index, column_name, non_unique FROM information_schema.statistics \
             WHERE table_schema = DATABASE()",
        ),
        (
            "views",
            "SELECT table_name, REPLACE(view_definition, DATABASE(), 'db'), security_type FROM \
             information_schema.views WHERE table_schema = DATABASE()",
        ),
        (
            "routines",
            "SELECT routine_name, routine_type, routine_definition, security_type, routine_comment FROM \
             information_schema.routines WHERE routine_schema = DATABASE()",
        ),
        (
            "parameters",
            "SELECT specific_name, ordinal_position, COALESCE(parameter_name, ''), dtd_identifier FROM \
             information_schema.parameters WHERE specific_schema = DATABASE()",
        ),
    ] {
        let mut rows = database.rows(query).await;
        assert!(!rows.is_empty(), "{kind}");
        rows.sort();
        structure.insert(kind, rows);
    }
    structure
}

/// Panics with the first differing rows.
async fn assert_same_structure(found: &Database, wanted: &Database, when: &str) {
    let (found, wanted) = (structure(found).await, structure(wanted).await);
    for (kind, wanted) in wanted {
        let found = &found[kind];
        let surplus: Vec<_> = found.iter().filter(|row| !wanted.contains(row)).take(3).collect();
        let missing: Vec<_> = wanted.iter().filter(|row| !found.contains(row)).take(3).collect();
        assert!(surplus.is_empty() && missing.is_empty(), "{when}: {kind}: missing {missing:?}, surplus {surplus:?}");
    }
}

async fn versions(database: &Database) -> Vec<Vec<String>> {
    database.rows("SELECT version FROM clq_schema_version ORDER BY version").await
}

#[tokio::test]
async fn older_database_with_data_equals_new_one_after_migration() {
    for version in &OLDER {
        let outbox = Outbox::new(20);
        let new = filled(&outbox).await;
        if version.version <= 3 {
            keep_version_3_data(&new).await;
        }
        if version.version == 1 {
            keep_version_1_data(&new).await;
        }
        let old = with_data_of(&new, version).await;
        let mut archive = open(&old).await;
        let error = archive.check_schema().await.unwrap_err().to_string();
        assert!(error.contains(&format!("schema version {}", version.version)), "{error}");
        let report = archive.migrate().await.unwrap();
        assert_eq!((report.from, report.to), (Some(version.version), Schema::CURRENT.version));
        archive.check_schema().await.unwrap();

        let when = format!("from version {}", version.version);
        assert_same_structure(&old, &new, &when).await;
        assert_same(&read(&old).await, &read(&new).await, &when);
        let state = "SELECT singleton, state_id FROM clq_state";
        assert_eq!(old.rows(state).await, new.rows(state).await, "{when}");
        // Writing continues in the migrated tables.
        outbox.with(|world| (0..100).for_each(|_| world.step()));
        archive.write(&outbox.with(|world| world.jobs())).await.unwrap();
        assert_same(&read(&old).await, &outbox.with(|world| world.tables()), &when);
    }
}

/// Runs the migration from a version to the next one to a kill after statements of its step and of
/// `schema.sql`: the version is not written yet.
async fn migrate_until_killed(database: &Database, to: u32, step: &[&str], schema: &[&str]) {
    let script = |statements: &[&str]| -> &'static str {
        // As in schema.sql, so that bodies of routines keep their semicolons.
        let statements = statements.iter().map(|statement| format!("{statement} //\n"));
        format!("DELIMITER //\n{}", statements.collect::<String>()).leak()
    };
    let steps = vec![MigrationStep { to, sql: script(step) }].leak();
    let part = Schema { version: to, sql: script(schema), steps };
    let mut archive = open(database).await;
    archive.migrate_to(&part).await.unwrap();
    archive.close().await;
    database.run(&format!("DELETE FROM clq_schema_version WHERE version = {to}")).await;
}

#[tokio::test]
async fn migration_killed_after_any_statement_is_completed() {
    let schema = statements(SCHEMA_SQL);
    for older in &OLDER[1..] {
        let outbox = Outbox::new(21);
        let new = filled(&outbox).await;
        if older.version <= 3 {
            keep_version_3_data(&new).await;
        }
        let old = with_data_of(&new, older).await;
        let step = Schema::CURRENT.steps.iter().find(|step| step.to == older.version + 1).unwrap();
        let (to, step) = (step.to, statements(step.sql));
        // Each run begins again at the first statement and is killed after one more.
        for killed_after in 0..=step.len() {
            migrate_until_killed(&old, to, &step[..killed_after], &[]).await;
            let error = open(&old).await.check_schema().await.unwrap_err().to_string();
            let version = format!("schema version {}", older.version);
            assert!(error.contains(&version) && error.contains("clqd migrate"), "{error}");
        }
        if to == Schema::CURRENT.version {
            for killed_after in (1..schema.len()).step_by(3) {
                migrate_until_killed(&old, to, &step, &schema[..killed_after]).await;
            }
        }
        assert_eq!(versions(&old).await, [[older.version.to_string()]]);
        let mut archive = open(&old).await;
        assert_eq!(archive.migrate().await.unwrap().from, Some(older.version));
        let all = (older.version..=Schema::CURRENT.version).map(|version| vec![version.to_string()]);
        assert_eq!(versions(&old).await, all.collect::<Vec<_>>());
        assert_same_structure(&old, &new, "after kills").await;
        assert_same(&read(&old).await, &read(&new).await, "after kills");

        // A kill in a run that no other kill preceded.
        for killed_after in [1, 4, 12, step.len()].map(|killed_after| killed_after.min(step.len())) {
            let old = with_data_of(&new, older).await;
            migrate_until_killed(&old, to, &step[..killed_after], &[]).await;
            open(&old).await.migrate().await.unwrap();
            let when = format!("after a kill behind statement {killed_after}");
            assert_same_structure(&old, &new, &when).await;
            assert_same(&read(&old).await, &read(&new).await, &when);
        }
    }
}

#[tokio::test]
async fn rename_that_cannot_be_done_is_an_error() {
    for (damage, reason) in [
        ("CREATE TABLE online_player (server INT)", "online_player"),
        ("ALTER TABLE server DROP COLUMN greylist", "greylist"),
        ("ALTER TABLE server_player DROP INDEX server_player_by_player", "server_player_by_player"),
        ("ALTER TABLE best_position ADD COLUMN ordinal INT", "ordinal"),
    ] {
        let old = Database::new().await;
        let mut archive = open(&old).await;
        archive.migrate_to(&OLDER[1]).await.unwrap();
        old.run(damage).await;
        let error = archive.migrate().await.unwrap_err();
        assert!(matches!(error, ArchiveError::Schema { .. }), "{damage}: {error}");
        assert!(error.to_string().contains(reason), "{damage}: {error}");
        assert_eq!(versions(&old).await, [["2"]], "{damage}");
    }
}
