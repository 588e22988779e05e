//! Writes the steps of boards. A job contains all steps of a board, but few steps change from one
//! interval to the next. Steps that are equal in the archive are not written.

use std::collections::{BTreeMap, BTreeSet};

use super::tables::BOARD_STEP;
use super::{OperationContext, TransactionError};
use crate::archive::connect::Archive;
use crate::archive::sql::{comma_separated, in_group, literal};
use crate::model::archive::WeekArchive;

/// Servers or steps in one DELETE. For few, the database looks up how many rows they have, and does not read the whole
/// week. For lists of pairs its time grows with the square of their number.
const SURPLUS_MAX: usize = 50;

/// Servers in one SELECT: their steps are some thousand rows.
const SERVERS_MAX: usize = 500;

/// Server, ranking and position.
type StepKey = (u32, String, u32);

impl Archive {
    /// Makes the steps of boards equal to those of the jobs. Returns the number of written rows.
    pub(super) async fn write_board_steps(
        &mut self,
        week: u32,
        jobs: &BTreeMap<u32, &WeekArchive>,
    ) -> Result<u64, TransactionError> {
        let table = BOARD_STEP.name;
        // Only the first chunk of a large week has steps.
        let jobs: Vec<(u32, &WeekArchive)> =
            jobs.iter().filter(|(_, job)| job.span.after.is_none()).map(|(&server, job)| (server, *job)).collect();
        let mut rows = 0;
        for jobs in jobs.chunks(SERVERS_MAX) {
            self.doing = table;
            let select = format!(
                "SELECT server, ranking, position, board_order FROM {table} FORCE INDEX (PRIMARY) WHERE {}",
                in_group(("week", week), "server", jobs.iter().map(|(server, _)| server))
            );
            let found: Vec<(u32, String, u32, Vec<u8>)> = self.rows(&select).await.doing(table)?;
            // The steps that remain here are surplus.
            let mut found: BTreeMap<StepKey, Vec<u8>> = found
                .into_iter()
                .map(|(server, ranking, position, order)| ((server, ranking, position), order))
                .collect();
            let mut changed = self.upsert(&BOARD_STEP);
            for (server, job) in jobs {
                for step in &job.steps {
                    let key = (*server, step.ranking.name().to_owned(), step.position);
                    if found.remove(&key).is_none_or(|kept| kept[..] != step.order[..]) {
                        changed.row(|row| {
                            row.uint(week).uint(key.0).text(&key.1).uint(key.2).bytes(&step.order);
                        });
                    }
                }
            }
            rows += self.execute_upsert(changed).await?;
            // A closed week has no steps.
            let with_surplus: BTreeSet<u32> = found.keys().map(|(server, ..)| *server).collect();
            let without = jobs.iter().filter(|(_, job)| job.steps.is_empty()).map(|(server, _)| *server);
            let without: BTreeSet<u32> = without.filter(|server| with_surplus.contains(server)).collect();
            for few in without.iter().collect::<Vec<_>>().chunks(SURPLUS_MAX) {
                let delete = format!("DELETE FROM {table} WHERE {}", in_group(("week", week), "server", few));
                self.execute(&delete).await.doing(table)?;
            }
            let surplus: Vec<String> = found
                .keys()
                .filter(|(server, ..)| !without.contains(server))
                .map(|(server, ranking, position)| format!("({week},{server},{},{position})", literal(ranking)))
                .collect();
            for surplus in surplus.chunks(SURPLUS_MAX) {
                let keys = comma_separated(surplus);
                let delete = format!("DELETE FROM {table} WHERE (week,server,ranking,position) IN ({keys})");
                self.execute(&delete).await.doing(table)?;
            }
        }
        Ok(rows)
    }
}
