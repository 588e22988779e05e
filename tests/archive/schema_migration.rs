//! Databases of an older schema, with data, are migrated to the current version: they then have the structure and the
//! data of a new database. The older schema is made for this test.

use std::collections::BTreeMap;

use crate::database::Database;
use crate::database::world::{Outbox, assert_same, read};
use clqd::archive::{Archive, ArchiveError, MigrationStep, SCHEMA_SQL, Schema, statements};

/// The version of the older schema.
const OLDER: u32 = Schema::CURRENT.version - 1;

/// Makes the older schema of the current one: other names of a table, a column and an index; without a column and its
/// index, and without a table of sums.
const DOWNGRADE: [&str; 7] = [
    "RENAME TABLE online_player TO seen_player",
    "ALTER TABLE seen_player RENAME INDEX online_player_by_player TO seen_player_by_player",
    "ALTER TABLE server CHANGE COLUMN greylist_reason greylist VARCHAR(1000) NULL",
    "ALTER TABLE server DROP INDEX server_by_search, DROP COLUMN hostname_search",
    "DROP VIEW clq_player_week",
    "DROP TABLE player_total",
    "UPDATE clq_schema_version SET version = version - 1",
];

/// The step from it to the current schema.
const UPGRADE: &str = "
RENAME TABLE seen_player TO online_player;
ALTER TABLE online_player RENAME INDEX seen_player_by_player TO online_player_by_player;
ALTER TABLE server CHANGE COLUMN greylist greylist_reason VARCHAR(1000) NULL
  COMMENT 'Why it is excluded from rankings, truncated to 1000 characters; NULL: it is not';
ALTER TABLE server
  ADD COLUMN hostname_search VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci GENERATED ALWAYS AS (hostname) VIRTUAL COMMENT 'The name, compared regardless of case and accents',
  ADD KEY server_by_search (removed, hostname_search);
CREATE TABLE IF NOT EXISTS player_total (
  player       INT UNSIGNED    NOT NULL COMMENT 'Key of the player',
  week         INT UNSIGNED    NOT NULL COMMENT 'Key of the week',
  servers      INT             NOT NULL COMMENT 'Servers on which the player has a row',
  time_ms      BIGINT UNSIGNED NOT NULL COMMENT 'Time on all servers, ms',
  time_est_ms  BIGINT UNSIGNED NOT NULL COMMENT 'Estimated time, ms; never ranked',
  points       BIGINT          NOT NULL COMMENT 'Points collected on all servers',
  points_est   DOUBLE          NOT NULL COMMENT 'Estimated points, to thousandths; never ranked',
  elo_rounds   INT UNSIGNED    NOT NULL COMMENT 'Rated rounds',
  elo_rounds_sure INT UNSIGNED NOT NULL COMMENT 'Those of them whose winner is sure',
  time_est_variance BIGINT UNSIGNED NOT NULL COMMENT 'Variance of time_est_ms, s2: the view has the interval',
  points_est_variance BIGINT UNSIGNED NOT NULL COMMENT 'Variance of points_est, thousandths of a point squared',
  last_seen_ms BIGINT          NULL COMMENT 'When the player was last seen playing in the week, Unix ms; NULL: without time',
  PRIMARY KEY (player, week)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='One player on all servers in one week: sums of player_week, computed in the same transaction';
REPLACE INTO player_total (player, week, servers, time_ms, time_est_ms, points, points_est, elo_rounds,
  elo_rounds_sure, time_est_variance, points_est_variance, last_seen_ms)
SELECT pw.player, pw.week, COUNT(*), SUM(pw.time_ms), SUM(pw.time_est_ms), SUM(pw.points), ROUND(SUM(pw.points_est), 3),
  SUM(pw.elo_rounds), SUM(pw.elo_rounds_sure), SUM(pw.time_est_variance), SUM(pw.points_est_variance), MAX(w.start_ms + pw.time_reached_after_ms)
FROM player_week pw JOIN week w ON w.week = pw.week
GROUP BY pw.player, pw.week;
";

/// The current schema, with the step from the older one.
const NEWER: Schema =
    Schema { steps: &[MigrationStep { to: Schema::CURRENT.version, sql: UPGRADE }], ..Schema::CURRENT };

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

/// A database of the older version with the data of `new`.
async fn with_data_of(new: &Database) -> Database {
    let old = Database::new().await;
    let mut archive = open(&old).await;
    archive.migrate().await.unwrap();
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
        let columns = columns.join(", ");
        old.run(&format!("DELETE FROM {table}")).await;
        old.run(&format!("INSERT INTO {table} ({columns}) SELECT {columns} FROM {}.{table}", new.name)).await;
    }
    for statement in DOWNGRADE {
        old.run(statement).await;
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
    let outbox = Outbox::new(20);
    let new = filled(&outbox).await;
    let old = with_data_of(&new).await;
    let mut archive = open(&old).await;
    let error = archive.check_schema().await.unwrap_err().to_string();
    assert!(error.contains(&format!("schema version {OLDER}")), "{error}");
    let report = archive.migrate_to(&NEWER).await.unwrap();
    assert_eq!((report.from, report.to), (Some(OLDER), NEWER.version));
    archive.check_schema().await.unwrap();

    assert_same_structure(&old, &new, "migrated").await;
    assert_same(&read(&old).await, &read(&new).await, "migrated");
    let state = "SELECT singleton, state_id FROM clq_state";
    assert_eq!(old.rows(state).await, new.rows(state).await);
    // Writing continues in the migrated tables.
    outbox.with(|world| (0..100).for_each(|_| world.step()));
    archive.write(&outbox.with(|world| world.jobs())).await.unwrap();
    assert_same(&read(&old).await, &outbox.with(|world| world.tables()), "written");
}

#[tokio::test]
async fn schema_that_was_never_released_is_refused_and_unchanged() {
    let outbox = Outbox::new(22);
    let old = with_data_of(&filled(&outbox).await).await;
    let before = structure(&old).await;
    let error = open(&old).await.migrate().await.unwrap_err().to_string();
    assert!(error.contains(&format!("schema version {OLDER}, which was never released")), "{error}");
    assert_eq!((versions(&old).await, structure(&old).await), (vec![vec![OLDER.to_string()]], before));
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
    let (schema, step) = (statements(SCHEMA_SQL), statements(UPGRADE));
    let outbox = Outbox::new(21);
    let new = filled(&outbox).await;
    let old = with_data_of(&new).await;
    // Each run begins again at the first statement and is killed after one more.
    for killed_after in 0..=step.len() {
        migrate_until_killed(&old, NEWER.version, &step[..killed_after], &[]).await;
        let error = open(&old).await.check_schema().await.unwrap_err().to_string();
        assert!(error.contains(&format!("schema version {OLDER}")) && error.contains("clqd migrate"), "{error}");
    }
    for killed_after in (1..schema.len()).step_by(3) {
        migrate_until_killed(&old, NEWER.version, &step, &schema[..killed_after]).await;
    }
    assert_eq!(versions(&old).await, [[OLDER.to_string()]]);
    assert_eq!(open(&old).await.migrate_to(&NEWER).await.unwrap().from, Some(OLDER));
    assert_eq!(versions(&old).await, [[OLDER.to_string()], [NEWER.version.to_string()]]);
    assert_same_structure(&old, &new, "after kills").await;
    assert_same(&read(&old).await, &read(&new).await, "after kills");

    // A kill in a run that no other kill preceded.
    for killed_after in 1..=step.len() {
        let old = with_data_of(&new).await;
        migrate_until_killed(&old, NEWER.version, &step[..killed_after], &[]).await;
        open(&old).await.migrate_to(&NEWER).await.unwrap();
        let when = format!("after a kill behind statement {killed_after}");
        assert_same_structure(&old, &new, &when).await;
        assert_same(&read(&old).await, &read(&new).await, &when);
    }
}

#[tokio::test]
async fn rename_that_cannot_be_done_is_an_error() {
    let new = filled(&Outbox::new(23)).await;
    for (damage, reason) in [
        ("CREATE TABLE online_player (server INT)", "online_player"),
        ("ALTER TABLE server DROP COLUMN greylist", "greylist"),
        ("ALTER TABLE seen_player DROP INDEX seen_player_by_player", "seen_player_by_player"),
        ("ALTER TABLE server ADD COLUMN greylist_reason INT", "greylist_reason"),
    ] {
        let old = with_data_of(&new).await;
        old.run(damage).await;
        let error = open(&old).await.migrate_to(&NEWER).await.unwrap_err();
        assert!(matches!(error, ArchiveError::Schema { .. }), "{damage}: {error}");
        assert!(error.to_string().contains(reason), "{damage}: {error}");
        assert_eq!(versions(&old).await, [[OLDER.to_string()]], "{damage}");
    }
}
