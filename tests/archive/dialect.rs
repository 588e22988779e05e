//! All statements are those of MySQL 8: those of `schema.sql`, of the documents, and those that the program sends, which a
//! MariaDB writes down. A parser reads them; it finds words that MySQL reserves, and what only MariaDB has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use clqd::archive::{SCHEMA_SQL, statements};
use serde_json::Value;
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;

use crate::database::{Database, Server};
use crate::restore;

/// Reserved in MySQL 8.0, but not in MariaDB 10.11: a name must be quoted.
const RESERVED: [&str; 30] = [
    "cube",
    "cume_dist",
    "dense_rank",
    "empty",
    "first_value",
    "function",
    "generated",
    "get",
    "grouping",
    "groups",
    "io_after_gtids",
    "io_before_gtids",
    "json_table",
    "lag",
    "last_value",
    "lateral",
    "lead",
    "master_bind",
    "nth_value",
    "ntile",
    "of",
    "optimizer_costs",
    "over",
    "percent_rank",
    "rank",
    "row",
    "rows",
    "stored",
    "system",
    "virtual",
];

/// Functions of MariaDB that MySQL 8.0 does not have.
const ONLY_MARIADB: [&str; 22] = [
    "add_months",
    "chr",
    "column_add",
    "column_check",
    "column_create",
    "column_delete",
    "column_exists",
    "column_get",
    "column_json",
    "column_list",
    "decode_oracle",
    "json_compact",
    "json_detailed",
    "json_equals",
    "json_exists",
    "json_loose",
    "json_normalize",
    "json_query",
    "kdf",
    "lastval",
    "natural_sort_key",
    "sformat",
];

/// Statements of both databases that the parser does not know.
const NOT_PARSED: [&str; 9] = [
    // Routines, which MySQL and MariaDB parse themselves in other tests.
    "CREATE FUNCTION",
    "CREATE PROCEDURE",
    "DROP FUNCTION",
    "DROP PROCEDURE",
    "LOAD DATA LOCAL INFILE",
    "CREATE USER",
    "GRANT",
    "CALL",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT",
];

/// Words in a statement that only MariaDB accepts.
const ONLY_MARIADB_WORDS: [&str; 6] = [
    "RETURNING",
    "CREATE OR REPLACE TABLE",
    "CREATE OR REPLACE FUNCTION",
    "CREATE OR REPLACE PROCEDURE",
    "ADD COLUMN IF NOT EXISTS",
    "SYSTEM VERSIONING",
];

/// What is wrong with a statement.
fn problems(sql: &str) -> Vec<String> {
    let sql = sql.trim();
    // Without the texts in it.
    let mut words = String::new();
    for (n, piece) in sql.split('\'').enumerate() {
        if n % 2 == 0 {
            words.push_str(piece);
        }
    }
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ").to_ascii_uppercase();
    let mut problems: Vec<String> = ONLY_MARIADB_WORDS
        .iter()
        .filter(|word| words.contains(*word))
        .map(|word| format!("{word} is of MariaDB"))
        .collect();
    if NOT_PARSED.iter().any(|start| words.starts_with(start)) {
        return problems;
    }
    // It does not know this name of the operator.
    match Parser::parse_sql(&MySqlDialect {}, &sql.replace(" MOD ", " % ")) {
        Ok(parsed) => parsed.iter().for_each(|statement| {
            let tree = serde_json::to_value(statement).expect("a tree");
            look(&tree, &mut problems);
        }),
        Err(error) => problems.push(error.to_string()),
    }
    problems
}

/// Looks at the names in a statement.
fn look(tree: &Value, problems: &mut Vec<String>) {
    match tree {
        Value::Array(all) => all.iter().for_each(|one| look(one, problems)),
        Value::Object(fields) => {
            if let (Some(Value::String(name)), Some(Value::Null)) = (fields.get("value"), fields.get("quote_style")) {
                let name = name.to_ascii_lowercase();
                if ONLY_MARIADB.contains(&&*name) {
                    problems.push(format!("{name} is a function of MariaDB"));
                }
                if RESERVED.contains(&&*name) && !is_function(&name) {
                    problems.push(format!("{name} is reserved"));
                }
            }
            fields.values().for_each(|field| look(field, problems));
        }
        _ => (),
    }
}

/// Functions over rows that are called by a reserved word.
fn is_function(name: &str) -> bool {
    [
        "cume_dist",
        "dense_rank",
        "first_value",
        "grouping",
        "lag",
        "last_value",
        "lead",
        "nth_value",
        "ntile",
        "percent_rank",
        "rank",
    ]
    .contains(&name)
}

#[test]
fn statements_that_only_mariadb_has_are_found() {
    for (sql, want) in [
        ("SELECT COUNT(*) AS rows FROM player", "rows is reserved"),
        ("SELECT groups.name FROM game groups", "groups is reserved"),
        ("CREATE TABLE t (system INT)", "system is reserved"),
        ("SELECT JSON_QUERY(a, '$.b') FROM player", "json_query is a function of MariaDB"),
        ("INSERT INTO player (player) VALUES (1) RETURNING player", "RETURNING is of MariaDB"),
        ("SELECT FROM WHERE", "sql parser error"),
    ] {
        let found = problems(sql);
        assert!(found.iter().any(|found| found.contains(want)), "{sql}: {found:?}");
    }
    for sql in ["SELECT COUNT(*) AS `rows` FROM player", "SELECT 'RETURNING', `system` FROM t WHERE a = 'rows'"] {
        assert_eq!(problems(sql), Vec::<String>::new(), "{sql}");
    }
}

#[test]
fn schema_and_documents_are_of_mysql() {
    let mut all: Vec<(String, String)> =
        statements(SCHEMA_SQL).into_iter().map(|sql| ("schema.sql".to_owned(), sql.to_owned())).collect();
    let of_cluster = statements(include_str!("../../src/archive/shared_log/tables.sql"));
    all.extend(of_cluster.into_iter().map(|sql| ("tables.sql".to_owned(), sql.to_owned())));
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")).expect("docs") {
        let path = entry.expect("an entry").path();
        let Ok(page) = fs::read_to_string(&path) else { continue };
        for block in page.split("```sql").skip(1).filter_map(|rest| rest.split("```").next()) {
            all.extend(statements(block).into_iter().map(|sql| (path.display().to_string(), sql.to_owned())));
        }
    }
    assert!(all.len() > 150, "{} statements", all.len());
    let wrong: Vec<String> = all
        .iter()
        .flat_map(|(file, sql)| problems(sql).into_iter().map(move |problem| format!("{file}: {problem}\n{sql}\n")))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a statement does, without its values.
fn shape(sql: &str) -> String {
    sql.chars().filter(|c| !c.is_ascii_digit()).take(60).collect()
}

#[tokio::test]
async fn the_program_sends_statements_of_mysql() {
    let server = Arc::new(Server::start_with(&["--general-log=1", "--log-output=TABLE"]));
    let database = Database::on_server(server).await;
    database.migrate().await;
    restore::write_and_read_all(&database).await;
    let sent = "SELECT DISTINCT CONVERT(argument USING utf8mb4) FROM mysql.general_log \
                WHERE command_type IN ('Query', 'Prepare') AND argument NOT LIKE '%general_log%'";
    let sent: BTreeSet<String> = database.rows(sent).await.into_iter().flatten().collect();
    let mut wrong: BTreeMap<String, String> = BTreeMap::new();
    for sql in &sent {
        for problem in problems(sql) {
            wrong.entry(shape(sql)).or_insert_with(|| format!("{problem}\n{sql:.2000}\n"));
        }
    }
    let shapes: BTreeSet<String> = sent.iter().map(|sql| shape(sql)).collect();
    assert!(shapes.len() > 60, "{} kinds of statements", shapes.len());
    assert!(wrong.is_empty(), "{}", wrong.into_values().collect::<Vec<_>>().join("\n"));
}
