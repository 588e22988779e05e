//! Blanks forgotten names in a snapshot before anything else is done with it.

use rustc_hash::FxHashSet;

use crate::engine::GlobalState;
use crate::model::name::normalise;
use crate::model::server::LastSnapshot;
use crate::model::{NameHash, Player};
use crate::rank::player_list::NameFamily;

impl GlobalState {
    /// Blanks the forgotten names of a list. The name of a present player has a key, so it is
    /// not forgotten: only the other names are checked.
    pub(super) fn blank_forgotten_names(
        &mut self,
        players: &mut [Player],
        family: NameFamily,
        game: &str,
        last: Option<&LastSnapshot>,
    ) {
        if self.forgotten.is_empty() {
            return;
        }
        let entries = last.filter(|last| self.games.name(last.game.0) == game).into_iter().flat_map(|l| &l.entries);
        let present: FxHashSet<&str> = entries.filter(|e| e.presence.is_some()).map(|e| e.name.as_str()).collect();
        for player in players {
            let name = normalise(&player.name, family.codes);
            if name.is_empty() || present.contains(name.as_str()) {
                continue;
            }
            if self.forgotten.contains_key(&NameHash::of(game, &name)) {
                self.blanked_names.push(std::mem::take(&mut player.name));
            }
        }
    }
}
