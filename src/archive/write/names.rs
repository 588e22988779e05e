//! Checks that names in the archive belong to this state: a sample of them before an archive is claimed that another
//! state has filled, and those that are written.

use std::collections::BTreeMap;

use super::objects::ObjectKind;
use super::{OperationContext, TransactionError};
use crate::archive::connect::{Archive, NameCheck};
use crate::archive::error::ArchiveError;
use crate::archive::sql::{comma_separated, in_group, literal};
use crate::model::archive::ArchiveJob;
use crate::model::restored::LastKeys;
use crate::model::{GameKey, MapKey, OutboxKey, PlayerKey, ServerKey};

/// Names in one IN list: at most about 130 KB of text.
const NAME_LIST_MAX: usize = 500;

/// Keys of each kind that are compared before the archive of another state is written.
const SAMPLE: u64 = 64;

type KeyOf = fn(u32) -> OutboxKey;

impl Archive {
    /// Compares objects of one kind with the stored names and keys.
    pub(super) async fn check_names(&mut self, kind: ObjectKind, jobs: &[&ArchiveJob]) -> Result<(), TransactionError> {
        if self.name_check == NameCheck::Skip {
            return Ok(());
        }
        let name = |job: &&'_ ArchiveJob| match job {
            ArchiveJob::Game { key, name } => Some((key.0, name.clone())),
            ArchiveJob::Map { key, name } => Some((key.0, name.clone())),
            ArchiveJob::Server(server) => Some((server.key.0, server.url.clone())),
            _ => None,
        };
        let names: Vec<(u32, String)> = jobs.iter().filter_map(name).collect();
        match kind {
            ObjectKind::Game => self.check_keys("game", "name", &names).await,
            ObjectKind::Map => self.check_keys("map", "name", &names).await,
            ObjectKind::Server => self.check_keys("server", "url", &names).await,
            ObjectKind::Player => self.check_player_keys(jobs).await,
            ObjectKind::BestPositions | ObjectKind::Session => Ok(()),
        }
    }

    /// The key column is named like the table.
    async fn check_keys(
        &mut self,
        table: &'static str,
        name_column: &'static str,
        expected: &[(u32, String)],
    ) -> Result<(), TransactionError> {
        self.doing = table;
        for expected in expected.chunks(NAME_LIST_MAX) {
            let select = format!(
                "SELECT {table}, {name_column} FROM {table} WHERE {table} IN ({}) \
                 UNION SELECT {table}, {name_column} FROM {table} WHERE {name_column} IN ({})",
                comma_separated(expected.iter().map(|(key, _)| key)),
                comma_separated(expected.iter().map(|(_, name)| literal(name)))
            );
            let stored: Vec<(u32, String)> = self.rows(&select).await.doing(table)?;
            self.find_key_mismatch(table, expected, &stored, |name| format!("{name:?}")).await?;
        }
        Ok(())
    }

    /// A player's name belongs to a game.
    async fn check_player_keys(&mut self, jobs: &[&ArchiveJob]) -> Result<(), TransactionError> {
        let player = |job: &&'_ ArchiveJob| match job {
            ArchiveJob::Player { key, game, name, .. } => Some((key.0, (game.0, name.clone()))),
            _ => None,
        };
        let expected: Vec<(u32, (u32, String))> = jobs.iter().filter_map(player).collect();
        self.doing = "player";
        for expected in expected.chunks(NAME_LIST_MAX) {
            let mut select = format!(
                "SELECT player, game, name FROM player FORCE INDEX (PRIMARY) WHERE player IN ({})",
                comma_separated(expected.iter().map(|(key, _)| key))
            );
            let mut by_game: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
            for (_, (game, name)) in expected {
                by_game.entry(*game).or_default().push(name);
            }
            for (game, names) in &by_game {
                select.push_str(" UNION SELECT player, game, name FROM player FORCE INDEX (player_game_name) WHERE ");
                select.push_str(&in_group(("game", game), "name", names.iter().map(|name| literal(name))));
            }
            let stored: Vec<(u32, u32, String)> = self.rows(&select).await.doing("player")?;
            let stored: Vec<(u32, (u32, String))> =
                stored.into_iter().map(|(key, game, name)| (key, (game, name))).collect();
            let show = |(game, name): &(u32, String)| format!("{name:?} of game {game}");
            self.find_key_mismatch("player", expected, &stored, show).await?;
        }
        Ok(())
    }

    /// Compares expected and stored pairs of key and name. Mismatch: a key or a name is in
    /// both, but not together. Compares bytes, since the database pads with spaces.
    async fn find_key_mismatch<N: Ord>(
        &mut self,
        table: &'static str,
        expected: &[(u32, N)],
        stored: &[(u32, N)],
        show: impl Fn(&N) -> String,
    ) -> Result<(), TransactionError> {
        let by_key: BTreeMap<u32, &N> = expected.iter().map(|(key, name)| (*key, name)).collect();
        let by_name: BTreeMap<&N, u32> = expected.iter().map(|(key, name)| (name, *key)).collect();
        for (key, name) in stored {
            let (key_expected, name_expected) = match (by_name.get(name), by_key.get(key)) {
                (Some(&other), _) if other != *key => (other, name),
                (_, Some(other)) if *other != name => (*key, *other),
                _ => continue,
            };
            if self.name_check == NameCheck::Delete {
                self.execute(format!("DELETE FROM {table} WHERE {table} = {key}")).await.doing(table)?;
                continue;
            }
            let (here, there) = (show(name_expected), show(name));
            let difference =
                format!("{table} {here} (key {key_expected}) in the state is {there} (key {key}) in the archive");
            return Err(TransactionError::Error(ArchiveError::KeyMismatch { target: self.target.clone(), difference }));
        }
        Ok(())
    }

    /// Keys of games, maps, players and servers in the archive: the first and the last one, and some at equal distances. Of
    /// each kind in order; empty: there are none.
    pub(in crate::archive) async fn sampled_keys(&mut self) -> Result<Vec<OutboxKey>, ArchiveError> {
        let kinds: [(&str, KeyOf); 4] = [
            ("game", |key| OutboxKey::Game(GameKey(key))),
            ("map", |key| OutboxKey::Map(MapKey(key))),
            ("player", |key| OutboxKey::Player(PlayerKey(key))),
            ("server", |key| OutboxKey::Server(ServerKey(key))),
        ];
        let mut sampled = Vec::new();
        for (table, key_of) in kinds {
            let select = format!("SELECT MIN({table}), MAX({table}) FROM {table}");
            let range: Option<(Option<u64>, Option<u64>)> = self.first(table, &select).await?;
            let Some((Some(first), Some(last))) = range else { continue };
            let from = (0..SAMPLE).map(|n| first + (last - first) * n / (SAMPLE - 1));
            let next = from
                .map(|key| format!("(SELECT {table} FROM {table} WHERE {table} >= {key} ORDER BY {table} LIMIT 1)"));
            let select = next.collect::<Vec<_>>().join(" UNION ");
            sampled.extend(self.all::<u32>(table, &select).await?.into_iter().map(key_of));
        }
        Ok(sampled)
    }

    /// Compares names and servers of the state with the stored names and keys. Error `KeyMismatch`: they are those of
    /// another state.
    pub(in crate::archive) async fn compare_names(&mut self, objects: &[ArchiveJob]) -> Result<(), ArchiveError> {
        for kind in [ObjectKind::Game, ObjectKind::Map, ObjectKind::Player, ObjectKind::Server] {
            let of_kind: Vec<&ArchiveJob> = objects.iter().filter(|it| ObjectKind::of(it) == Some(kind)).collect();
            if let Err(failure) = self.check_names(kind, &of_kind).await {
                return Err(self.roll_back(failure).await);
            }
        }
        Ok(())
    }

    /// Checks that the archive has no key that the state has not assigned. Such a key belongs to
    /// another state, or to this state before it was replaced by an older backup. This state would
    /// replace newer rows by older ones, and later assign the key to another name.
    pub(in crate::archive) async fn check_last_keys(&mut self, of_state: LastKeys) -> Result<(), ArchiveError> {
        let LastKeys { game, map, player, server } = of_state;
        for (table, last) in [("game", game), ("map", map), ("player", player), ("server", server)] {
            let found: Option<Option<u32>> = self.first(table, &format!("SELECT MAX({table}) FROM {table}")).await?;
            let found = found.flatten().unwrap_or(0);
            if found > last {
                let difference = format!("{table} keys go up to {last} in the state and up to {found} in the archive");
                return Err(ArchiveError::KeyMismatch { target: self.target.clone(), difference });
            }
        }
        Ok(())
    }
}
