//! Encodes the records that a commit changes, by kind in order of key.
//!
//! Records are encoded one at a time into one reused buffer: a large commit has tens of
//! millions of them.

use serde::Serialize;

use super::error::StoreError;
use super::keys;
use crate::model::commit::{Commit, Corrections};
use crate::model::server::PlayerRecord;
use crate::model::{OutboxKey, PlayerKey};

/// Receives one change: the key, and the new value; `None`: the record is deleted.
pub(super) type PutFn<'p> = dyn FnMut(&[u8], Option<&[u8]>) -> Result<(), StoreError> + 'p;

/// Passes every record that a commit changes, but for those of servers, to `put`. `outbox_seq`: the sequence number of
/// the new outbox entries. `is_archived`: whether an entry with that number is archived and
/// can be deleted.
pub(super) fn encode(
    commit: &Commit,
    outbox_seq: u64,
    is_archived: impl Fn(&OutboxKey, u64) -> bool,
    put: &mut PutFn<'_>,
) -> Result<(), StoreError> {
    let mut encoder = Encoder { put, value: Vec::new() };
    encoder.records(commit, outbox_seq, is_archived)?;
    encoder.corrections(&commit.corrections)
}

/// Encodes values into one reused buffer and passes them on.
struct Encoder<'p> {
    put: &'p mut PutFn<'p>,
    value: Vec<u8>,
}

impl Encoder<'_> {
    fn set(&mut self, key: impl AsRef<[u8]>, value: &impl Serialize) -> Result<(), StoreError> {
        self.value.clear();
        self.value = postcard::to_extend(value, std::mem::take(&mut self.value))
            .expect("no record has a sequence of unknown length");
        (self.put)(key.as_ref(), Some(&self.value))
    }

    fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<(), StoreError> {
        (self.put)(key.as_ref(), None)
    }

    fn records(
        &mut self,
        commit: &Commit,
        outbox_seq: u64,
        is_archived: impl Fn(&OutboxKey, u64) -> bool,
    ) -> Result<(), StoreError> {
        commit.meta.iter().try_for_each(|meta| self.set(keys::meta(), meta))?;
        commit.games.iter().try_for_each(|(key, name)| self.set(keys::number_key(keys::GAME, key.0), name))?;
        commit.maps.iter().try_for_each(|(key, name)| self.set(keys::number_key(keys::MAP, key.0), name))?;
        commit.tags.iter().try_for_each(|(key, name)| self.set(keys::number_key(keys::TAG, key.0), name))?;
        self.names(commit)?;
        for (key, player) in commit.players.iter().flatten() {
            // Those who read a player by its key need no second record, which would be elsewhere in the file.
            let display = Some(&player.display).filter(|&display| *display != player.name);
            self.set(keys::number_key(keys::PLAYER, key.0), &(player.game, &player.name, display))?;
        }
        commit.series.iter().try_for_each(|(key, series)| self.set(keys::number_key(keys::SERIES, key.0), series))?;
        commit.rows.iter().try_for_each(|(key, row)| (self.put)(&keys::row(*key), Some(row.bytes())))?;
        for ((window, player), row) in &commit.player_windows {
            self.set(keys::player_window(*window, *player), row)?;
        }
        commit.map_rows.iter().try_for_each(|(key, row)| self.set(keys::map_row(*key), row))?;
        for ((server, player), best) in &commit.best {
            self.set(keys::best(*server, *player), best)?;
        }
        commit.sessions.iter().try_for_each(|(key, session)| self.set(keys::session(key), session))?;
        commit.sessions.iter().try_for_each(|(key, _)| self.set(keys::player_session(key), &()))?;
        commit.seen.iter().try_for_each(|(player, seen)| self.set(keys::number_key(keys::SEEN, player.0), seen))?;
        commit.new_best.iter().try_for_each(|(player, server)| self.set(keys::best_server(*player, *server), &()))?;
        for (week, server, player_ms) in &commit.closed_servers {
            self.set(keys::closed(*week, *server), player_ms)?;
        }
        commit.ranks.iter().try_for_each(|(week, server, rank)| self.set(keys::rank(*week, *server), rank))?;
        commit.outbox.iter().try_for_each(|entry| self.set(keys::outbox(*entry), &outbox_seq))?;
        for (entry, seq) in &commit.acknowledged {
            if is_archived(entry, *seq) && commit.outbox.binary_search(entry).is_err() {
                self.remove(keys::outbox(*entry))?;
            }
        }
        commit.archive_complete_ms.iter().try_for_each(|at_ms| self.set(keys::archive_complete(), at_ms))
    }

    /// In order of name: records of the same leaf are written together.
    fn names(&mut self, commit: &Commit) -> Result<(), StoreError> {
        let mut players: Vec<&(PlayerKey, PlayerRecord)> = commit.players.iter().flatten().collect();
        players.sort_unstable_by_key(|(_, player)| (&player.name, player.game));
        for (key, player) in players {
            self.set(keys::name(&player.name, player.game), &(key.0, &player.display))?;
        }
        Ok(())
    }

    /// Deleted records, and names that now belong to another player or to none.
    fn corrections(&mut self, corrections: &Corrections) -> Result<(), StoreError> {
        for (player, game, name) in &corrections.aliases {
            // Without a display name: the last seen one is in the player's record.
            self.set(keys::name(name, *game), &(player.0, ""))?;
            self.set(keys::alias(*player, name), &())?;
        }
        for (player, into) in &corrections.removed_players {
            self.set(keys::number_key(keys::DELETED_PLAYER, player.0), into)?;
            self.remove(keys::number_key(keys::PLAYER, player.0))?;
            self.remove(keys::number_key(keys::SEEN, player.0))?;
        }
        for (hash, forgotten_ms) in &corrections.forgotten {
            self.set(keys::forgotten(*hash), forgotten_ms)?;
        }
        let rows = corrections.deleted_rows.iter().map(|key| keys::row(*key));
        let player_windows =
            corrections.deleted_player_windows.iter().map(|(window, player)| keys::player_window(*window, *player));
        let best = corrections.deleted_best.iter().map(|(server, player)| keys::best(*server, *player));
        let best_servers = corrections.deleted_best.iter().map(|(server, player)| keys::best_server(*player, *server));
        let sessions = corrections.deleted_sessions.iter().map(keys::session);
        let player_sessions = corrections.deleted_sessions.iter().map(keys::player_session);
        let names = corrections.deleted_names.iter().map(|(game, name)| keys::name(name, *game));
        let aliases = corrections.deleted_aliases.iter().map(|(player, name)| keys::alias(*player, name));
        let allowed_names = corrections.allowed_names.iter().map(|hash| keys::forgotten(*hash));
        let tags = corrections.deleted_tags.iter().map(|tag| keys::number_key(keys::TAG, tag.0));
        let closed = corrections.reopened_servers.iter().map(|(week, server)| keys::closed(*week, *server));
        let ranks = corrections.reopened_servers.iter().map(|(week, server)| keys::rank(*week, *server));
        let deleted = rows
            .chain(player_windows)
            .chain(best)
            .chain(best_servers)
            .chain(sessions)
            .chain(player_sessions)
            .chain(names)
            .chain(aliases)
            .chain(allowed_names)
            .chain(tags)
            .chain(closed)
            .chain(ranks);
        for key in deleted {
            self.remove(key)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::GameKey;

    proptest::proptest! {
        #[test]
        fn names_are_written_in_order_of_key(names in proptest::collection::vec(("[ab]{0,20}|.{0,9}", 0_u32..3), 0..80)) {
            let players: Vec<(PlayerKey, PlayerRecord)> = names
                .iter()
                .filter(|(name, _)| !name.contains('\0'))
                .zip(0..)
                .map(|((name, game), n)| {
                    let record = PlayerRecord { game: GameKey(*game), name: name.as_str().into(), display: "".into() };
                    (PlayerKey(n), record)
                })
                .collect();
            let mut expected: Vec<Vec<u8>> = players.iter().map(|(_, it)| keys::name(&it.name, it.game)).collect();
            expected.sort_unstable();
            let mut written: Vec<Vec<u8>> = Vec::new();
            let commit = Commit { players: players.chunks(7).map(<[_]>::to_vec).collect(), ..Commit::default() };
            let put = &mut |key: &[u8], _: Option<&[u8]>| {
                written.extend(key.starts_with(&[keys::NAME]).then(|| key.to_vec()));
                Ok(())
            };
            encode(&commit, 1, |_, _| false, put).unwrap();
            proptest::prop_assert_eq!(written, expected);
        }
    }
}
