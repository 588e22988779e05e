//! Applies `schema.sql`, and refuses an archive whose schema version is unknown.
//!
//! `schema.sql` is always the complete newest schema. An older archive is first migrated
//! by the [`MigrationStep`]s that it lacks. Then the file is applied again: it keeps
//! tables and replaces views and routines. Data definitions commit implicitly, so every
//! step can be repeated, and the version is written last: until then the archive counts as
//! not migrated, and the next `clqd migrate` completes it.

use std::time::Duration;

use super::connect::Archive;
use super::error::{ArchiveError, StatementError};
use super::migrations::{MigrationStep, Rename};
use crate::archive::sql_script::statements;

/// The whole schema, as shipped.
pub const SCHEMA_SQL: &str = include_str!("../../schema.sql");

/// A schema: its version, its text, and the migration from older versions.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    pub version: u32,
    /// The complete schema, for an empty database; may be applied again.
    pub sql: &'static str,
    /// In order of version.
    pub steps: &'static [MigrationStep],
}

impl Schema {
    /// The schema that this version writes. To change a table after version 1.0: change `schema.sql`, raise
    /// the version here and in its last statement, and add a step, such as `MigrationStep
    /// { to: 6, sql: "ALTER TABLE player ADD COLUMN ..." }`. A new table needs no
    /// statement in its step, because `schema.sql` creates it. Until then there are no steps, because no older
    /// schema was released. The tests have some of their own.
    pub const CURRENT: Schema = Schema { version: 10, sql: SCHEMA_SQL, steps: &[] };

    /// The oldest version that can be migrated.
    fn oldest(&self) -> u32 {
        self.steps.first().map_or(self.version, |step| step.to - 1)
    }
}

/// The result of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationReport {
    /// Version found; `None`: there was no schema.
    pub from: Option<u32>,
    pub to: u32,
    pub routines: Routines,
}

/// The functions and the procedure with which websites read series. clqd itself does not
/// use them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Routines {
    Ready,
    /// The account may not create them; those of an earlier migration are kept.
    Kept {
        why: String,
    },
    /// The account may not create them, and none exist.
    Missing {
        why: String,
    },
}

/// Errors of a missing privilege to create routines: 1044 and 1370 by the account's
/// grants; 1227, 1418 and 1419 because the database keeps a binary log; 1064 because it has no
/// functions, such as TiDB.
const NO_RIGHT_TO_ROUTINES: [u16; 6] = [1044, 1064, 1227, 1370, 1418, 1419];

/// Longest time of one statement of a migration: it may change every row of a large table.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);

/// The table, column or index already exists, or was already dropped.
const ALREADY_DONE: [u16; 4] = [1050, 1060, 1061, 1091];

const NO_SUCH_TABLE: u16 = 1146;

impl Archive {
    /// Migrates the database to the current schema. Running it again changes nothing.
    pub async fn migrate(&mut self) -> Result<MigrationReport, ArchiveError> {
        self.migrate_to(&Schema::CURRENT).await
    }

    /// As `migrate`, for any schema.
    pub async fn migrate_to(&mut self, schema: &Schema) -> Result<MigrationReport, ArchiveError> {
        let usual = self.set_query_timeout(STATEMENT_TIMEOUT);
        let report = self.apply_schema(schema).await;
        self.set_query_timeout(usual);
        report
    }

    async fn apply_schema(&mut self, schema: &Schema) -> Result<MigrationReport, ArchiveError> {
        let from = self.schema_version().await?;
        if let Some(found) = from {
            self.refuse_newer(found, schema)?;
            if found < schema.oldest() {
                let why = format!(
                    "has schema version {found}, which was never released and cannot be migrated: drop the tables of clqd, \
                     and run `clqd migrate` again; then the daemon writes everything that its state keeps"
                );
                return Err(ArchiveError::Schema { target: self.target.clone(), why });
            }
            if self.is_cluster {
                // On one server, the named lock excludes a daemon that writes.
                self.become_writer(None).await?;
            }
            for step in schema.steps.iter().filter(|step| step.to > found) {
                self.apply_step(step).await?;
                if step.to < schema.version {
                    self.store_version(step.to).await?;
                }
            }
        }
        let refusal = self.routine_privilege_error().await?;
        for statement in statements(schema.sql) {
            if refusal.is_some() && is_routine(statement) {
                continue;
            }
            self.execute(statement).await.map_err(|fault| self.schema_fault(fault))?;
        }
        if from.is_some_and(|found| found < schema.version) {
            self.store_version(schema.version).await?;
        }
        let routines = match refusal {
            None => Routines::Ready,
            Some(why) => {
                let count: Option<u64> = self
                    .first(
                        "schema",
                        "SELECT COUNT(*) FROM information_schema.routines \
                         WHERE routine_schema = DATABASE() AND routine_name = 'clq_series'",
                    )
                    .await?;
                if count == Some(1) { Routines::Kept { why } } else { Routines::Missing { why } }
            }
        };
        Ok(MigrationReport { from, to: schema.version, routines })
    }

    /// Checks that this version can write here. Error: `Schema`, with advice.
    pub async fn check_schema(&mut self) -> Result<(), ArchiveError> {
        let schema = Schema::CURRENT;
        let why = match self.schema_version().await? {
            Some(found) if found == schema.version => return Ok(()),
            Some(found) if found > schema.version => return self.refuse_newer(found, &schema),
            Some(found) => {
                format!(
                    "has schema version {found}, and this version of clqd needs {}; run `clqd migrate`",
                    schema.version
                )
            }
            None => "has no clqd tables yet; run `clqd migrate`".into(),
        };
        Err(ArchiveError::Schema { target: self.target.clone(), why })
    }

    /// The id of the state that fills this archive; `None`: no state does yet.
    pub async fn state_id(&mut self) -> Result<Option<u64>, ArchiveError> {
        self.first("clq_state", "SELECT state_id FROM clq_state WHERE singleton = 1").await
    }

    /// Stores the id of the state that fills this archive from now on.
    pub async fn set_state_id(&mut self, id: u64) -> Result<(), ArchiveError> {
        let upsert = format!(
            "INSERT INTO clq_state (singleton, state_id) VALUES (1, {id}) ON DUPLICATE KEY UPDATE state_id = VALUES(state_id)"
        );
        self.run_fenced("clq_state", &upsert).await.map(|_| ())
    }

    pub(super) async fn schema_version(&mut self) -> Result<Option<u32>, ArchiveError> {
        match self.rows::<Option<u32>>("SELECT MAX(version) FROM clq_schema_version").await {
            Ok(rows) => Ok(rows.into_iter().next().flatten()),
            Err(fault) if fault.code() == NO_SUCH_TABLE => Ok(None),
            Err(fault) => Err(fault.classify(&self.target, "schema")),
        }
    }

    fn refuse_newer(&self, found: u32, schema: &Schema) -> Result<(), ArchiveError> {
        if found <= schema.version {
            return Ok(());
        }
        Err(ArchiveError::Schema {
            target: self.target.clone(),
            why: format!(
                "has schema version {found}, and this version of clqd knows versions up to {}; use the newer clqd that created it",
                schema.version
            ),
        })
    }

    async fn apply_step(&mut self, step: &MigrationStep) -> Result<(), ArchiveError> {
        for statement in statements(step.sql) {
            if let Some(rename) = Rename::parse(statement) {
                if self.first::<u8>("schema", &rename.done_query()).await? != Some(1) {
                    self.execute(statement).await.map_err(|fault| self.schema_fault(fault))?;
                }
                continue;
            }
            match self.execute(statement).await {
                Err(fault) if ALREADY_DONE.contains(&fault.code()) => {}
                result => result.map_err(|fault| self.schema_fault(fault))?,
            }
        }
        Ok(())
    }

    async fn store_version(&mut self, version: u32) -> Result<(), ArchiveError> {
        let insert = format!(
            "INSERT IGNORE INTO clq_schema_version (version, applied_ms) \
             VALUES ({version}, FLOOR(UNIX_TIMESTAMP(NOW(3)) * 1000))"
        );
        self.run("schema", &insert).await
    }

    /// Checks whether this account may create functions, by creating one. Without the
    /// check the existing functions would be dropped and could not be replaced.
    async fn routine_privilege_error(&mut self) -> Result<Option<String>, ArchiveError> {
        const PROBE: &str = "CREATE FUNCTION clq_probe() RETURNS INT DETERMINISTIC NO SQL RETURN 1";
        for statement in ["DROP FUNCTION IF EXISTS clq_probe", PROBE, "DROP FUNCTION IF EXISTS clq_probe"] {
            match self.execute(statement).await {
                Ok(()) => {}
                Err(StatementError::Mysql(error)) if lacks_routine_privilege(&error) => {
                    return Ok(Some(error.to_string()));
                }
                Err(fault) => return Err(self.schema_fault(fault)),
            }
        }
        Ok(None)
    }

    fn schema_fault(&self, fault: StatementError) -> ArchiveError {
        match fault.classify(&self.target, "schema") {
            ArchiveError::Rejected { target, why, .. } => ArchiveError::Schema { target, why },
            error => error,
        }
    }
}

fn lacks_routine_privilege(error: &mysql_async::Error) -> bool {
    matches!(error, mysql_async::Error::Server(error) if NO_RIGHT_TO_ROUTINES.contains(&error.code))
}

fn is_routine(statement: &str) -> bool {
    let mut words = statement.split_whitespace();
    matches!(words.next(), Some("CREATE" | "DROP")) && matches!(words.next(), Some("FUNCTION" | "PROCEDURE"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_file_and_code_have_same_version() {
        let stamp = format!("SELECT {}, FLOOR(UNIX_TIMESTAMP", Schema::CURRENT.version);
        assert!(statements(SCHEMA_SQL).last().is_some_and(|last| last.contains(&stamp)));
        let steps = Schema::CURRENT.steps;
        assert!(steps.windows(2).all(|pair| pair[0].to <= pair[1].to));
        assert!(steps.last().is_none_or(|last| last.to == Schema::CURRENT.version));
    }
}
