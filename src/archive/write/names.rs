//! Writes the names of games, maps and players, and checks that they belong to this state.

use std::collections::{BTreeMap, BTreeSet};

use super::tables::{GAME, MAP, PLAYER, PLAYER_WORD};
use super::{OperationContext, TransactionError};
use crate::archive::connect::Archive;
use crate::archive::error::ArchiveError;
use crate::archive::sql::{comma_separated, in_group, literal, truncate_chars};
use crate::limits::NAME_BYTES_MAX;
use crate::model::restored::LastKeys;
use crate::model::{GameKey, MapKey, PlayerKey};

/// Names in one IN list: at most about 130 KB of text.
const NAME_LIST_MAX: usize = 500;

/// Width of the column.
const WORD_CHARS: usize = 64;

/// The rest of a name from its second and each later word on. A word begins with a letter or a
/// digit behind any other character.
fn later_words(name: &str) -> impl Iterator<Item = &str> {
    let mut before = None;
    name.char_indices().filter_map(move |(at, character)| {
        let begins = character.is_alphanumeric() && before.is_some_and(|before: char| !before.is_alphanumeric());
        before = Some(character);
        begins.then(|| &name[at..])
    })
}

impl Archive {
    pub(super) async fn upsert_games(&mut self, games: &[(GameKey, &str)]) -> Result<u64, TransactionError> {
        let names: Vec<(u32, &str)> = games.iter().map(|&(key, name)| (key.0, name)).collect();
        self.check_keys("game", "game", "name", &names).await?;
        let mut upsert = self.upsert(&GAME);
        for &(key, name) in games {
            upsert.row(|row| _ = row.uint(key.0).text(name));
        }
        self.execute_upsert(upsert).await
    }

    pub(super) async fn upsert_maps(&mut self, maps: &[(MapKey, &str)]) -> Result<u64, TransactionError> {
        let names: Vec<(u32, &str)> = maps.iter().map(|&(key, name)| (key.0, name)).collect();
        self.check_keys("map", "map", "name", &names).await?;
        let mut upsert = self.upsert(&MAP);
        for &(key, name) in maps {
            upsert.row(|row| _ = row.uint(key.0).text(name));
        }
        self.execute_upsert(upsert).await
    }

    pub(super) async fn upsert_players(
        &mut self,
        players: &[(PlayerKey, GameKey, &str, &str)],
    ) -> Result<u64, TransactionError> {
        self.check_player_keys(players).await?;
        let mut upsert = self.upsert(&PLAYER);
        for &(key, game, name, display) in players {
            upsert.row(|row| _ = row.uint(key.0).uint(game.0).text(name).text(truncate_chars(display, NAME_BYTES_MAX)));
        }
        // The name of a key never changes, so neither do its words.
        let mut words: BTreeSet<(&str, u32)> = BTreeSet::new();
        for &(key, _, name, _) in players {
            words.extend(later_words(name).map(|word| (truncate_chars(word, WORD_CHARS), key.0)));
        }
        let mut word_rows = self.upsert(&PLAYER_WORD);
        for (word, player) in words {
            word_rows.row(|row| _ = row.text(word).uint(player));
        }
        let rows = self.execute_upsert(upsert).await?;
        Ok(rows + self.execute_upsert(word_rows).await?)
    }

    /// Checks that names and keys match. An archive in which one of these names has
    /// another key, or one of these keys another name, was written from another state.
    pub(super) async fn check_keys(
        &mut self,
        table: &'static str,
        key_column: &'static str,
        name_column: &'static str,
        expected: &[(u32, &str)],
    ) -> Result<(), TransactionError> {
        if !self.checks_names {
            return Ok(());
        }
        self.doing = table;
        for expected in expected.chunks(NAME_LIST_MAX) {
            let select = format!(
                "SELECT {key_column}, {name_column} FROM {table} WHERE {key_column} IN ({}) \
                 UNION SELECT {key_column}, {name_column} FROM {table} WHERE {name_column} IN ({})",
                comma_separated(expected.iter().map(|(key, _)| key)),
                comma_separated(expected.iter().map(|(_, name)| literal(name)))
            );
            let stored: Vec<(u32, String)> = self.rows(&select).await.doing(table)?;
            let expected: Vec<(u32, String)> = expected.iter().map(|&(key, name)| (key, name.to_owned())).collect();
            let show = |name: &String| format!("{name:?}");
            self.find_key_mismatch(table, &expected, &stored, show)?;
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

    /// As `check_keys`; a player's name belongs to a game.
    async fn check_player_keys(
        &mut self,
        expected: &[(PlayerKey, GameKey, &str, &str)],
    ) -> Result<(), TransactionError> {
        if !self.checks_names {
            return Ok(());
        }
        self.doing = "player";
        for expected in expected.chunks(NAME_LIST_MAX) {
            let mut select = format!(
                "SELECT player, game, name FROM player WHERE player IN ({})",
                comma_separated(expected.iter().map(|(key, ..)| key))
            );
            let mut by_game: BTreeMap<GameKey, Vec<&str>> = BTreeMap::new();
            for &(_, game, name, _) in expected {
                by_game.entry(game).or_default().push(name);
            }
            for (game, names) in &by_game {
                select.push_str(" UNION SELECT player, game, name FROM player WHERE ");
                select.push_str(&in_group(("game", game), "name", names.iter().map(|name| literal(name))));
            }
            let stored: Vec<(u32, u32, String)> = self.rows(&select).await.doing("player")?;
            let stored: Vec<(u32, (u32, String))> =
                stored.into_iter().map(|(key, game, name)| (key, (game, name))).collect();
            let expected: Vec<(u32, (u32, String))> =
                expected.iter().map(|&(key, game, name, _)| (key.0, (game.0, name.to_owned()))).collect();
            let show = |(game, name): &(u32, String)| format!("{name:?} of game {game}");
            self.find_key_mismatch("player", &expected, &stored, show)?;
        }
        Ok(())
    }

    /// Compares expected and stored pairs of key and name. Error: a key or a name is in
    /// both, but not together. Compares bytes, since the database pads with spaces.
    fn find_key_mismatch<N: Ord>(
        &self,
        what: &'static str,
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
            let (here, there) = (show(name_expected), show(name));
            let difference =
                format!("{what} {here} (key {key_expected}) in the state is {there} (key {key}) in the archive");
            return Err(TransactionError::Error(ArchiveError::KeyMismatch { target: self.target.clone(), difference }));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_begin_behind_other_characters() {
        let words = |name| later_words(name).collect::<Vec<_>>();
        assert_eq!(words("[CLAN] Visor_the-2nd"), ["CLAN] Visor_the-2nd", "Visor_the-2nd", "the-2nd", "2nd"]);
        assert_eq!(words("Visor"), [""; 0]);
        assert_eq!(words("|été 名前"), ["été 名前", "名前"]);
        assert_eq!(words("😀 "), [""; 0]);
    }
}
