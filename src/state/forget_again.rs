//! Requests to forget players that came after the time of a backup. A restore applies them again, so that a
//! name does not come back.

use std::collections::BTreeMap;
use std::path::Path;

use super::State;
use super::recovery::{self, OnWarning, RecoveryError};
use crate::config::Config;
use crate::engine::{CorrectionError, StateReader, ViewError};
use crate::model::{NameHash, PlayerKey};
use crate::store::StoreError;
use crate::view::board::PlayerSelector;

/// Players that are read at a time.
const PAGE: usize = 10_000;

/// The forgotten names of a state, with the times of the requests, Unix ms.
pub fn forgotten_names(
    config: &Config,
    dir: &Path,
    on_warning: &OnWarning<'_>,
) -> Result<Vec<(NameHash, i64)>, RecoveryError> {
    Ok(recovery::open_copy(config, dir, &|| false, on_warning)?.engine.model().forgotten())
}

/// Forgets the names of requests that a restored state does not know. Returns how many these are.
pub fn forget_again(
    config: &Config,
    restored: &Path,
    requests: Vec<(NameHash, i64)>,
    on_warning: &OnWarning<'_>,
) -> Result<usize, RecoveryError> {
    if requests.is_empty() {
        return Ok(0);
    }
    let mut state = recovery::open_without_log(config, restored, on_warning)?;
    let known: BTreeMap<NameHash, i64> = state.engine.model().forgotten().into_iter().collect();
    let later: BTreeMap<NameHash, i64> = requests.into_iter().filter(|(hash, _)| !known.contains_key(hash)).collect();
    for (game, player) in players_with(&state, &later)? {
        state.commit()?;
        let State { engine, store } = &mut state;
        let now_ms = engine.model().now_ms();
        match engine.forget_player(store, &game, &PlayerSelector::Key(player.0), now_ms) {
            Ok(_) => {}
            Err(CorrectionError::View(ViewError::Store(error))) => return Err(StoreError::from(error).into()),
            Err(error) => unreachable!("the state has the player: {error}"),
        }
    }
    // With the time of the request, and also names that the state does not have.
    state.engine.note_forgotten(&later);
    state.commit()?;
    state.store.merge_files()?;
    Ok(later.len())
}

/// The players with one of these names, with their games.
fn players_with(state: &State, names: &BTreeMap<NameHash, i64>) -> Result<Vec<(String, PlayerKey)>, RecoveryError> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = state.store.players_after(after, PAGE).map_err(StoreError::from)?;
        let Some((last, _)) = page.last() else { return Ok(found) };
        after = Some(*last);
        for (player, record) in page {
            let Some(game) = state.engine.model().game_name(record.game) else { continue };
            if names.contains_key(&NameHash::of(game, &record.name)) {
                found.push((game.to_owned(), player));
            }
        }
    }
}
