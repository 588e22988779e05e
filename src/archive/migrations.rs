//! The steps that migrate older schemas, and the renames in them.
//!
//! A step that was interrupted runs again from its start, so each of its statements must
//! have no effect the second time. Statements that add or drop are refused then, which
//! [`crate::archive::schema`] accepts. A refused rename may be a real error as well, so a
//! [`Rename`] is looked up first and skipped if it is done.

/// Migrates a schema from the previous version to `to`. An interrupted step is run again
/// from its start: a column or index that already exists, was already dropped or has its
/// new name is skipped.
#[derive(Clone, Copy, Debug)]
pub struct MigrationStep {
    pub to: u32,
    pub sql: &'static str,
}

/// A statement that renames one table, column or index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rename<'s> {
    Table { from: &'s str, to: &'s str },
    Column { table: &'s str, from: &'s str, to: &'s str },
    Index { table: &'s str, from: &'s str, to: &'s str },
}

impl<'s> Rename<'s> {
    /// `None`: the statement renames nothing.
    pub fn parse(statement: &'s str) -> Option<Rename<'s>> {
        let words: Vec<&str> = statement.split_whitespace().collect();
        match words[..] {
            ["RENAME", "TABLE", from, "TO", to] => Some(Rename::Table { from, to }),
            ["ALTER", "TABLE", table, "CHANGE", "COLUMN", from, to, ..] => Some(Rename::Column { table, from, to }),
            ["ALTER", "TABLE", table, "RENAME", "INDEX", from, "TO", to] => Some(Rename::Index { table, from, to }),
            _ => None,
        }
    }

    /// A query of one number: 1 if there is nothing to rename, because it is done or because
    /// the database never had the table. Otherwise 0, also if neither name exists in the
    /// table: then the statement fails with the reason.
    pub fn done_query(&self) -> String {
        let names = |view: &str, table: &str, column: &str, name: &str| {
            format!(
                "EXISTS (SELECT 1 FROM information_schema.{view} WHERE table_schema = DATABASE() \
                 AND table_name = '{table}' AND {column} = '{name}')"
            )
        };
        let has_table = |table: &str| names("tables", table, "table_name", table);
        match *self {
            Rename::Table { from, .. } => format!("SELECT NOT {}", has_table(from)),
            Rename::Column { table, from, to } => {
                let column = |name| names("columns", table, "column_name", name);
                format!("SELECT NOT {} OR ({} AND NOT {})", has_table(table), column(to), column(from))
            }
            Rename::Index { table, from, to } => {
                let index = |name| names("statistics", table, "index_name", name);
                format!("SELECT NOT {} OR ({} AND NOT {})", has_table(table), index(to), index(from))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rename_is_recognised() {
        let index = Rename::Index { table: "a", from: "b", to: "c" };
        for (statement, want) in [
            ("RENAME TABLE a TO b", Some(Rename::Table { from: "a", to: "b" })),
            ("ALTER TABLE a RENAME INDEX b TO c", Some(index)),
            (
                "ALTER TABLE a CHANGE COLUMN b c INT NOT NULL\n  COMMENT 'x'",
                Some(Rename::Column { table: "a", from: "b", to: "c" }),
            ),
            ("ALTER TABLE a ADD COLUMN b INT", None),
            ("DROP VIEW IF EXISTS a", None),
        ] {
            assert_eq!(Rename::parse(statement), want, "{statement}");
        }
    }
}
