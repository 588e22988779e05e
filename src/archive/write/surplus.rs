//! Deletes the rows of an object that its job does not contain.

use std::collections::BTreeSet;

use super::tables::{ChildRows, ColumnType};
use super::{OperationContext, TransactionError};
use crate::archive::connect::Archive;
use crate::archive::sql::{comma_separated, in_group, literal};

/// Keys in one IN list: about 50 KB of text.
const IN_LIST_MAX: usize = 5_000;

/// The expected rows of one object: the literals of their `key` columns.
pub(super) type Keys = BTreeSet<Vec<String>>;

impl Archive {
    /// Deletes rows of `members` whose keys are not in `wanted`, and returns their keys. All wanted
    /// rows have just been written, so an equal count means that there is no surplus. Rows of a
    /// table without further key columns are not returned.
    pub(super) async fn delete_surplus(
        &mut self,
        owned: &ChildRows,
        group: Option<u32>,
        members: impl Iterator<Item = u32>,
        wanted: impl Fn(u32) -> Keys,
    ) -> Result<Keys, TransactionError> {
        self.delete_surplus_where(owned, group, members, "", wanted).await
    }

    /// As [`Archive::delete_surplus`], restricted to the rows that match the condition
    /// `among`.
    pub(super) async fn delete_surplus_where(
        &mut self,
        owned: &ChildRows,
        group: Option<u32>,
        members: impl Iterator<Item = u32>,
        among: &str,
        wanted: impl Fn(u32) -> Keys,
    ) -> Result<Keys, TransactionError> {
        let mut deleted = Keys::new();
        let (table, member) = (owned.table, owned.member);
        let group = owned.group.zip(group);
        let rows_of = |members: &[u32]| match group {
            Some(group) => format!("{among}{}", in_group(group, member, members)),
            None => format!("{among}{member} IN ({})", comma_separated(members)),
        };
        self.doing = table;
        let members: Vec<u32> = members.collect();
        for members in members.chunks(IN_LIST_MAX) {
            let count = format!(
                "SELECT {member}, COUNT(*) FROM {table} FORCE INDEX (PRIMARY) WHERE {} GROUP BY {member}",
                rows_of(members)
            );
            for (it, count) in self.rows::<(u32, usize)>(&count).await.doing(table)? {
                let wanted = wanted(it);
                if count == wanted.len() {
                    continue;
                }
                let member_rows = format!("FROM {table} WHERE {}", rows_of(&[it]));
                if owned.key.is_empty() {
                    self.execute(&format!("DELETE {member_rows}")).await.doing(table)?;
                    continue;
                }
                let columns = comma_separated(owned.key.iter().map(|(column, _)| column));
                let found: Vec<mysql_async::Row> =
                    self.rows(&format!("SELECT {columns} {member_rows}")).await.doing(table)?;
                let surplus: Vec<Vec<String>> = found
                    .into_iter()
                    .map(|row| key_literals(row, owned.key))
                    .filter(|key| !wanted.contains(key))
                    .collect();
                for surplus in surplus.chunks(IN_LIST_MAX) {
                    let keys = comma_separated(surplus.iter().map(|key| format!("({})", comma_separated(key))));
                    self.execute(format!("DELETE {member_rows} AND ({columns}) IN ({keys})")).await.doing(table)?;
                }
                deleted.extend(surplus);
            }
        }
        Ok(deleted)
    }
}

/// The literals of a row's key columns.
fn key_literals(row: mysql_async::Row, key: &[(&str, ColumnType)]) -> Vec<String> {
    row.unwrap()
        .into_iter()
        .zip(key)
        .map(|(value, (_, kind))| {
            let text: String = mysql_async::from_value_opt(value).unwrap_or_default();
            if *kind == ColumnType::Text { literal(&text) } else { text }
        })
        .collect()
}
