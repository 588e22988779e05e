//! What websites rely on: the views with their columns, and the functions. A change is deliberate: it changes
//! tests/archive/contract.txt, too.

use crate::database::Database;

const STORED: &str = "tests/archive/contract.txt";

#[tokio::test]
async fn views_and_functions_are_those_that_are_promised() {
    let database = Database::new().await;
    database.migrate().await;
    // Without the widths that only some databases print.
    let columns = "SELECT c.table_name, c.column_name, REGEXP_REPLACE(c.column_type, 'int.[0-9]+.', 'int'), IF(c.is_nullable = 'YES', 'NULL', 'NOT NULL') \
                   FROM information_schema.columns c JOIN information_schema.views v USING (table_schema, table_name) \
                   WHERE c.table_schema = DATABASE() ORDER BY c.table_name, c.ordinal_position";
    let parameters = "SELECT specific_name, COALESCE(parameter_name, 'returns'), REGEXP_REPLACE(dtd_identifier, 'int.[0-9]+.', 'int'), routine_type \
                      FROM information_schema.parameters WHERE specific_schema = DATABASE() \
                      ORDER BY specific_name, ordinal_position = 0, ordinal_position";
    let mut found = String::new();
    for select in [columns, parameters] {
        for row in database.rows(select).await {
            found.push_str(&row.join(" "));
            found.push('\n');
        }
    }
    if std::env::var_os("CLQD_WRITE_CONTRACT").is_some() {
        std::fs::write(STORED, &found).unwrap();
    }
    let stored = std::fs::read_to_string(STORED).unwrap();
    let gone: Vec<&str> = stored.lines().filter(|line| !found.lines().any(|other| other == *line)).collect();
    let new: Vec<&str> = found.lines().filter(|line| !stored.lines().any(|other| other == *line)).collect();
    assert!(
        gone.is_empty() && new.is_empty() && stored == found,
        "websites may use what is gone: {gone:#?}\nnew: {new:#?}\nIf the change is meant, see docs/database.md, What stays, and \
         run this test with CLQD_WRITE_CONTRACT=1"
    );
}
