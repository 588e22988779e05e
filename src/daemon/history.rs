//! Maps over time, and the players with the best positions on a server: read from the store beside
//! the engine, and kept for [`AGE_MAX`].

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Shared;
use super::views::Views;
use crate::api::{ApiError, ErrorCode, Row};
use crate::model::view::PlayerNameView;
use crate::model::view::history::MapView;
use crate::model::{MapKey, PlayerKey, ServerKey, ServerUrl, WeekKey};
use crate::state::answer::view_error;
use crate::state::history::{BestOfServer, MapHistory, read_best};
use moka::future::Cache;

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
            let planned = views.read(|view| (view.engine().map_history_plan(), view.reader().clone())).await;
            let (Ok((plan, reader)), last) = (planned, self.maps()) else { return };
            match tokio::task::spawn_blocking(move || last.next(plan, &reader)).await {
                Ok(Ok(maps)) => *self.maps.lock().expect("maps lock poisoned") = Arc::new(maps),
                Ok(Err(error)) => tracing::warn!(%error, "the weeks of maps cannot be read"),
                Err(_) => return,
            }
            tokio::time::sleep(AGE_MAX).await;
        }
    }

    fn maps(&self) -> Arc<MapHistory> {
        self.maps.lock().expect("maps lock poisoned").clone()
    }
}

impl Shared {
    /// A map now and in all weeks, as of at most [`AGE_MAX`] ago.
    pub(super) async fn map(&self, map: String) -> Result<Vec<Row>, ApiError> {
        let mut view: MapView = self.views.read(move |view| view.engine().map(&map).map_err(view_error)).await??;
        view.weeks = self.history.maps().weeks_of(MapKey(view.map_key));
        Ok(vec![Row::Map(view)])
    }

    /// The answer to [`Request::Maps`], as of at most [`AGE_MAX`] ago.
    pub(super) fn maps(&self, text: Option<&str>, count: u32) -> Vec<Row> {
        let maps = self.history.maps().most_played(text, count as usize);
        maps.into_iter().map(Row::MapTotals).collect()
    }

    /// The players with the best positions on a server.
    pub(super) async fn best_players(&self, url: ServerUrl) -> Result<Vec<Row>, ApiError> {
        let server = url.to_string();
        let plan = self.views.current()?.engine().best_players_plan(&url).map_err(view_error)?;
        let key = (plan.server, self.changes(), plan.open_weeks.clone());
        let read = async {
            let reader = self.views.current()?.reader().clone();
            let best = tokio::task::spawn_blocking(move || read_best(&plan, &reader)).await;
            let best = best.map_err(|_| ApiError::new(ErrorCode::Stopping, "the daemon is stopping"))?;
            best.map(Arc::new).map_err(|error| ApiError::new(ErrorCode::Internal, error.to_string()))
        };
        let best = self.history.best.try_get_with(key, read).await.map_err(|error| (*error).clone())?;
        let names = self.names(best.player_keys()).await?;
        Ok(vec![Row::BestPlayers(best.view(server, names))])
    }

    /// Names of players that exist.
    async fn names(&self, player_keys: Vec<u32>) -> Result<Vec<PlayerNameView>, ApiError> {
        if player_keys.is_empty() {
            return Ok(Vec::new());
        }
        let players = player_keys.into_iter().map(PlayerKey).collect();
        self.views.read(|view| view.state().player_names(players)).await?
    }
}
