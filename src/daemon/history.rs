//! Maps over time, and the players with the best positions on a server: read from the store beside
//! the engine, and kept for [`AGE_MAX`].

use std::sync::{Arc, Mutex};
use std::time::Duration;

use moka::sync::Cache;

use super::Shared;
use super::views::Views;
use crate::api::ApiError;
use crate::model::{PlayerKey, ServerKey, ServerUrl, WeekKey};
use crate::state::history::{BestOfServer, MapHistory, read_best};
use crate::view::history::BestPlayers;

/// How long answers are used. Map rows of the running week are read once in this time.
const AGE_MAX: Duration = Duration::from_secs(600);

/// Servers whose best players are kept: some 1 MB.
const SERVERS_KEPT: u64 = 1_000;

#[derive(Debug)]
pub(super) struct History {
    maps: Mutex<Arc<MapHistory>>,
    /// By server, number of corrections, and weeks that are not closed.
    best: Cache<(ServerKey, u64, Vec<WeekKey>), Arc<BestOfServer>>,
}

impl Default for History {
    fn default() -> History {
        let best = Cache::builder().max_capacity(SERVERS_KEPT).time_to_live(AGE_MAX).build();
        History { maps: Mutex::default(), best }
    }
}

impl History {
    /// Sums up maps until the daemon stops.
    pub async fn run(self: Arc<History>, views: Arc<Views>) {
        loop {
            let planned = views.read(|view| (view.model().map_history_plan(), view.reader().clone())).await;
            let (Ok((plan, reader)), last) = (planned, self.maps()) else { return };
            match tokio::task::spawn_blocking(move || last.next(plan, &reader)).await {
                Ok(Ok(maps)) => *self.maps.lock().expect("maps lock poisoned") = Arc::new(maps),
                Ok(Err(error)) => tracing::warn!(%error, "the weeks of maps cannot be read"),
                Err(_) => return,
            }
            tokio::time::sleep(AGE_MAX).await;
        }
    }

    /// Maps in all weeks, as of at most [`AGE_MAX`] ago.
    pub(super) fn maps(&self) -> Arc<MapHistory> {
        self.maps.lock().expect("maps lock poisoned").clone()
    }
}

impl Shared {
    /// The players with the best positions on a server, as of at most [`AGE_MAX`] ago. Requests for the same server wait
    /// for the first one, each on its thread.
    pub(super) fn best_players(&self, server: &ServerUrl) -> Result<BestPlayers, ApiError> {
        let view = self.views.current()?;
        let (plan, reader) = (view.model().best_players_plan(server)?, view.reader().clone());
        drop(view);
        let key = (plan.server, self.changes(), plan.open_weeks.clone());
        let read = || read_best(&plan, &reader).map(Arc::new);
        let best = self.history.best.try_get_with(key, read).map_err(ApiError::internal)?;
        let players = best.player_keys().into_iter().map(PlayerKey).collect();
        let names = self.views.current()?.state().player_names(players)?;
        Ok(best.view(server.to_string(), names))
    }
}
