//! Deletes the best positions of players whose last row is older than `store.keep_players_weeks`, and their rows in
//! running windows other than weeks. Their names and keys are kept. After each close of a week all players are examined, in
//! order of key, some in each tick.

use super::{Engine, ReadModel, StepBudget};
use crate::engine::{ReadError, StoreReader};
use crate::model::commit::WeekPhase;
use crate::model::{PlayerKey, WeekKey, WindowKey};

/// Players examined in one tick, at most: each costs one to three reads.
const PLAYERS_PER_TICK: usize = 500;

impl ReadModel {
    /// The newest closed week, if every earlier one is closed, too.
    fn newest_closed_week(&self) -> Option<WeekKey> {
        let closed = self.global.meta.weeks.iter().take_while(|state| state.phase == WeekPhase::Closed);
        closed.last().map(|state| state.week)
    }
}

impl Engine {
    pub(super) fn drop_old_players(
        &mut self,
        source: &dyn StoreReader,
        budget: &mut StepBudget,
    ) -> Result<(), ReadError> {
        let keep = self.model.global.settings.keep_players_weeks;
        let Some(week) = self.model.newest_closed_week().filter(|_| keep > 0 && budget.has_steps()) else {
            return Ok(());
        };
        // Their positions must be in the archive.
        if self.model.global.settings.archive_enabled && self.model.has_unarchived(source, week) {
            return Ok(());
        }
        let after = match self.model.global.meta.players_dropped {
            Some((of, after)) if of == week => after,
            _ => PlayerKey(0),
        };
        if after.0 + 1 >= self.model.global.meta.next_player {
            return Ok(());
        }
        let oldest = WeekKey(week.0.saturating_sub(keep));
        let end = self.model.global.meta.next_player.min(after.0.saturating_add(1 + PLAYERS_PER_TICK as u32));
        for player in (after.0 + 1..end).map(PlayerKey) {
            self.drop_if_old(source, player, oldest, budget)?;
        }
        self.model.global.meta.players_dropped = Some((week, PlayerKey(end - 1)));
        self.model.global.pending.meta = true;
        Ok(())
    }

    /// Drops a player whose last row is of an earlier week than `oldest`.
    fn drop_if_old(
        &mut self,
        source: &dyn StoreReader,
        player: PlayerKey,
        oldest: WeekKey,
        budget: &mut StepBudget,
    ) -> Result<(), ReadError> {
        let servers = source.servers_with_best(player)?;
        budget.spend(1);
        // A player without best positions has no row in a closed week that was deleted.
        if servers.is_empty() {
            return Ok(());
        }
        for &server in &servers {
            if source.best(server, player)?.is_some_and(|best| best.last_week() >= oldest) {
                return Ok(());
            }
        }
        for state in &self.model.global.meta.weeks {
            let window = WindowKey::from(state.week);
            if self.model.global.player_windows.get(window, player).is_some_and(|it| !it.servers.is_empty())
                || source.player_window(window, player)?.is_some_and(|it| !it.servers.is_empty())
            {
                return Ok(());
            }
        }
        budget.spend(servers.len());
        self.model.global.pending.corrections.deleted_best.extend(servers.into_iter().map(|server| (server, player)));
        let Some(record) = self.model.global.player_record(source, player)? else { return Ok(()) };
        // An ended window does not change; it is deleted as a whole.
        let windows = self.model.global.meta.windows.iter().map(|state| state.window);
        let running = windows.filter(|window| !self.model.global.window_has_ended(*window));
        for window in running.collect::<Vec<_>>() {
            self.model.global.delete_rows_of(source, window, record.game, player)?;
        }
        Ok(())
    }
}
