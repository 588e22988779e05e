//! Encodes corrections as changes of records: deleted records, and names that lead to
//! another player or to none.

use super::changes::Changes;
use super::{StoreError, keys};
use crate::model::commit::Corrections;

pub(super) fn encode(corrections: &Corrections, changes: &mut Changes<'_>) -> Result<(), StoreError> {
    for (player, game, name) in &corrections.aliases {
        // Without a display name: the last seen one is in the player's record.
        changes.set(keys::name(name, *game), &(player.0, ""))?;
        changes.set(keys::alias(*player, name), &())?;
    }
    for (player, into) in &corrections.removed_players {
        changes.set(keys::number_key(keys::DELETED_PLAYER, player.0), into)?;
        changes.remove(keys::number_key(keys::PLAYER, player.0))?;
    }
    for (hash, forgotten_ms) in &corrections.forgotten {
        changes.set(keys::forgotten(*hash), forgotten_ms)?;
    }
    let rows = corrections.deleted_rows.iter().map(|key| keys::row(*key));
    let player_windows =
        corrections.deleted_player_windows.iter().map(|(window, player)| keys::player_window(*window, *player));
    let best = corrections.deleted_best.iter().map(|(server, player)| keys::best(*server, *player));
    let best_servers = corrections.deleted_best.iter().map(|(server, player)| keys::best_server(*player, *server));
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
        .chain(names)
        .chain(aliases)
        .chain(allowed_names)
        .chain(tags)
        .chain(closed)
        .chain(ranks);
    for key in deleted {
        changes.remove(key)?;
    }
    Ok(())
}
