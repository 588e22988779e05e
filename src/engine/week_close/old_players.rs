//! Deletes the best positions of players whose last row is older than `store.keep_players_weeks`, and their rows in
//! running windows other than weeks. Their names and keys are kept. After each close of a week all players are examined, in
//! order of key, some in each tick.

use super::{Engine, ReadModel, StepBudget};
use crate::engine::{ReadError, StoreReader};
use crate::model::commit::WeekPhase;
use crate::model::server::Presence;
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
            self.drop_live_rows(source, window, player)?;
            self.model.global.delete_rows_of(source, window, record.game, player)?;
        }
        Ok(())
    }

    /// Drops the rows that presences hold. The last list of a server that does not answer any more may have an old player, whose
    /// rows would be stored again when the server returns.
    fn drop_live_rows(
        &mut self,
        source: &dyn StoreReader,
        window: WindowKey,
        player: PlayerKey,
    ) -> Result<(), ReadError> {
        let servers = source.player_window(window, player)?.map(|it| it.servers).unwrap_or_default();
        for server in servers {
            let is_live = |presence: &Presence| presence.player == player && presence.row(window).is_some();
            // Views hold all records: one that is borrowed to be changed is copied.
            if !self.model.servers.record(server).is_some_and(|record| record.presences().any(is_live)) {
                continue;
            }
            if let Some(presence) = self.presence_mut(server, player) {
                presence.rows.retain(|(held, _)| *held != window);
                self.model.global.server_record_changed(server);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::board::window::WindowTypes;
    use crate::engine::{EngineSettings, Event, Outcome, StateReader};
    use crate::model::calendar::{Calendar, WEEK_MS};
    use crate::model::{Completeness, Player, ServerKey, ServerUrl, Snapshot, WindowKey};
    use crate::state::State;
    use crate::store::StoreSettings;

    const MONDAY_MS: i64 = 1_763_337_600_000; // 2025-11-17 00:00 UTC

    fn open(dir: &Path) -> State {
        let store = StoreSettings { cache_bytes: 16 << 20, create: true };
        let windows = WindowTypes::new(Calendar::default(), ["all-time".parse().unwrap()]).unwrap();
        let settings = EngineSettings { windows, keep_weeks: 1, keep_players_weeks: 2, ..EngineSettings::default() };
        State::open(dir, store, settings).unwrap()
    }

    fn scan(state: &mut State, server: &str, t_ms: i64, players: &[(&str, i64)]) {
        let player = |&(name, points): &(&str, i64)| Player {
            name: name.into(),
            points: Some(points),
            ping: Some(40),
            ..Player::default()
        };
        let snapshot = Snapshot {
            t_ms,
            game: "baseq3".into(),
            map: "q3dm17".into(),
            hostname: String::new(),
            slots: 16,
            players: players.iter().map(player).collect(),
            completeness: Completeness::Full,
            count: None,
            bots: None,
        };
        let url = ServerUrl::parse(server).unwrap();
        state.handle(Event::Replayed { url, outcome: Outcome::Snapshot(snapshot) }).unwrap();
    }

    /// A server is silent from its first list on, until its player has been dropped.
    #[test]
    fn dropped_player_in_the_last_list_of_a_server_has_no_row_when_it_returns() {
        let dir = tempfile::tempdir().unwrap();
        let mut state = open(dir.path());
        let [away, other] = ["quake3://10.0.0.1:27960", "quake3://10.0.0.2:27960"];
        let play = |state: &mut State, server: &str, name: &str, from_ms: i64| {
            (0..5).for_each(|n| scan(state, server, from_ms + n * 120_000, &[(name, n)]));
        };
        play(&mut state, away, "old", MONDAY_MS);
        let rows = |state: &mut State| {
            state.commit().unwrap();
            let live = state.engine.model().rows(&state.store, WindowKey::ALL_TIME, ServerKey(1)).unwrap().len();
            let stored = state.store.rows(WindowKey::ALL_TIME, ServerKey(1)).unwrap().len();
            (live, stored)
        };
        for week in 0..5 {
            play(&mut state, other, "always", MONDAY_MS + week * WEEK_MS + 1);
            state.close_due_weeks(MONDAY_MS + (week + 1) * WEEK_MS + 60_000).unwrap();
            let now_ms = state.engine.model().now_ms();
            (0..3).for_each(|_| state.handle(Event::Tick { now_ms }).unwrap());
            state.commit().unwrap();
        }
        assert_eq!(rows(&mut state).0, 0, "the player was dropped");
        scan(&mut state, away, MONDAY_MS + 5 * WEEK_MS + 120_000, &[]);
        assert_eq!(rows(&mut state), (0, 0));
    }
}
