//! Compares names, servers, best positions and sessions.

use std::collections::BTreeSet;

use super::{ExpectedRows, RowDifference, Verification, compare};
use crate::archive::connect::Archive;
use crate::archive::error::ArchiveError;
use crate::archive::sql::literals;
use crate::archive::write::objects::{from_range, kind_of, object_rows};
use crate::archive::write::tables::BEST_POSITION;
use crate::model::archive::{ArchiveJob, ObjectRange};
use crate::model::{GameKey, MapKey, OutboxKey, PlayerKey, ServerKey, SessionKey};

impl Archive {
    /// Compares the objects of a range with the rows in the database. Each difference names its object.
    pub async fn verify_objects(
        &mut self,
        range: &ObjectRange,
        jobs: &[&ArchiveJob],
    ) -> Result<Verification, ArchiveError> {
        let mut all = Verification::default();
        self.begin_reading().await?;
        let merged = self.merge_earlier_best(jobs).await;
        let merged = merged.map_err(|fault| fault.classify(&self.target, BEST_POSITION.name))?;
        let merged: Vec<&ArchiveJob> = merged.iter().collect();
        let expects = if matches!(range, ObjectRange::BestPositions { .. }) { &merged[..] } else { jobs };
        for table in kind_of(range).tables() {
            let mut expected = ExpectedRows::new(table);
            object_rows(expects, &mut |of, fill| {
                if of.name == table.name {
                    expected.add(literals(|row| fill(row)));
                }
            });
            let mut found = self.read_rows_from(table, &from_range(table, range)).await?;
            // The archive may have more than the state.
            match range {
                ObjectRange::Sessions { is_whole: false, .. } => {
                    found.retain(|key, _| expected.rows.contains_key(key));
                }
                ObjectRange::BestPositions { is_whole: false, .. } => {
                    // Server and player.
                    let known: BTreeSet<&[String]> = expected.rows.keys().map(|key| &key[..2]).collect();
                    found.retain(|key, _| known.contains(&key[..2]));
                }
                _ => {}
            }
            compare(&expected, &found, &mut all);
        }
        self.end_reading().await?;
        for difference in &mut all.differences {
            difference.object = object_of(range, difference);
        }
        Ok(all)
    }
}

/// The object that a row belongs to.
fn object_of(range: &ObjectRange, row: &RowDifference) -> Option<OutboxKey> {
    let number = |column| row.number(column);
    Some(match range {
        ObjectRange::Games(_) => OutboxKey::Game(GameKey(number("game")?)),
        ObjectRange::Maps(_) => OutboxKey::Map(MapKey(number("map")?)),
        ObjectRange::Players(_) => OutboxKey::Player(PlayerKey(number("player")?)),
        ObjectRange::Servers(_) => OutboxKey::Server(ServerKey(number("server")?)),
        ObjectRange::BestPositions { players, .. } => {
            OutboxKey::BestPositions { server: ServerKey(number("server")?), after: players.after }
        }
        ObjectRange::Sessions { day, .. } => OutboxKey::Session(SessionKey {
            end_ms: row.key.iter().find(|(column, _)| *column == "end_ms")?.1.parse().ok()?,
            server: ServerKey(number("server")?),
            player: PlayerKey(number("player")?),
            origin: PlayerKey(number("origin")?),
            generation: day.generation,
        }),
    })
}
