//! Answers from a state, for a process that ends after the answer. They are those of the daemon; what the daemon keeps in
//! indexes and sums is computed for one answer.

use super::State;
use super::history::{MapHistory, read_best};
use super::name_index;
use crate::api::{ApiError, ArchiveStatus, Host, PublicArchiveStatus, Read, StateView, Status, checked};
use crate::config::Config;
use crate::engine::StoreReader;
use crate::model::search_text::Match;
use crate::model::{MapKey, PlayerKey, ServerKey, ServerUrl, WindowKey};
use crate::store::Reader;
use crate::view::ServerDetail;
use crate::view::board::StorageUse;
use crate::view::history::{BestPlayers, MapTotals, MapWeekView};

impl State {
    /// It also shows uncommitted changes, but a search by name finds only committed players.
    pub fn view(&self) -> StateView<'_> {
        let State { engine, store } = self;
        let outbox_entries = store.outbox_len() as u64;
        StateView { model: engine.model(), reader: store, outbox_entries, outcomes_queued: 0, store: None }
    }

    /// Fields that only a running daemon knows are absent.
    pub fn answer<R: Read>(&mut self, config: &Config, request: &R) -> Result<R::Answer, ApiError> {
        checked(request)?;
        // An invalid query needs no boards: its answer is the error.
        if let Some(window) =
            request.boards().and_then(|boards| self.engine.model().boards_needed(&boards).ok().flatten())
        {
            self.ensure_boards(window).map_err(ApiError::internal)?;
        }
        request.prepare(&mut self.engine);
        request.answer(&self.host(config))
    }

    /// What answers are computed from.
    pub fn host<'a>(&'a self, config: &'a Config) -> impl Host + 'a {
        one_answer_host(self.view(), self.store.reader(), config)
    }
}

/// What one answer is computed from without indexes. `reader` reads the records of the view.
pub(crate) fn one_answer_host<'a>(view: StateView<'a>, reader: Reader, config: &'a Config) -> impl Host + 'a {
    OneAnswerHost { view, reader, config }
}

/// The archive that the configuration names; `None`: none.
fn archive_status(config: &Config, last_complete_ms: Option<i64>) -> Option<ArchiveStatus> {
    let target = config.archive_settings().target();
    let public = PublicArchiveStatus { last_complete_ms, ..PublicArchiveStatus::default() };
    config.archive.is_enabled().then(|| ArchiveStatus { public, target, ..ArchiveStatus::default() })
}

struct OneAnswerHost<'a> {
    view: StateView<'a>,
    reader: Reader,
    config: &'a Config,
}

impl OneAnswerHost<'_> {
    fn map_history(&self) -> Result<MapHistory, ApiError> {
        MapHistory::default().next(self.view.model.map_history_plan(), &self.reader).map_err(ApiError::internal)
    }
}

impl Host for OneAnswerHost<'_> {
    fn with_view(&self, read: &mut dyn FnMut(&StateView<'_>)) -> Result<(), ApiError> {
        read(&self.view);
        Ok(())
    }

    fn find_players(&self, text: &str, count: usize) -> Result<Vec<(Match, PlayerKey)>, ApiError> {
        name_index::find_players(&self.reader, text, count).map_err(ApiError::internal)
    }

    fn find_servers(&self, text: &str) -> Result<Vec<ServerKey>, ApiError> {
        Ok(name_index::find_servers(&self.view.model.server_names(0..u32::MAX), text))
    }

    fn weeks_of_map(&self, map: MapKey) -> Result<Vec<MapWeekView>, ApiError> {
        Ok(self.map_history()?.weeks_of(map))
    }

    fn most_played_maps(&self, text: Option<&str>, count: usize) -> Result<Vec<MapTotals>, ApiError> {
        Ok(self.map_history()?.most_played(text, count))
    }

    fn best_players(&self, server: &ServerUrl) -> Result<BestPlayers, ApiError> {
        let plan = self.view.model.best_players_plan(server)?;
        let best = read_best(&plan, &self.reader).map_err(ApiError::internal)?;
        let names = self.view.player_names(best.player_keys().into_iter().map(PlayerKey).collect())?;
        Ok(best.view(server.to_string(), names))
    }

    fn stored_sizes(&self, windows: &[WindowKey]) -> Result<Vec<StorageUse>, ApiError> {
        windows.iter().map(|window| self.reader.stored_size(*window).map_err(ApiError::internal)).collect()
    }

    fn complete_status(&self, status: &mut Status) -> Result<(), ApiError> {
        status.archive = archive_status(self.config, status.engine.archive_complete_ms);
        Ok(())
    }

    fn complete_server(&self, detail: &mut ServerDetail) {
        // This is learned from scans and not stored.
        detail.public.elastic = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Line, requests};
    use crate::engine::EngineSettings;
    use crate::store::StoreSettings;

    #[test]
    fn elastic_is_absent_without_daemon() {
        let dir = tempfile::tempdir().unwrap();
        let store = StoreSettings { cache_bytes: 16 << 20, create: true };
        let mut state = State::open(dir.path(), store, EngineSettings::default()).unwrap();
        let url = ServerUrl::parse("quake3://10.0.0.1:27960").unwrap();
        state.engine.add_server(url.clone(), Vec::new(), 1_763_942_400_000).unwrap();
        state.commit().unwrap();
        let of_the_daemon = state.engine.model().server_detail(&state.store, &url).unwrap();
        assert!(of_the_daemon.public.elastic.is_some());
        let detail = state.answer(&Config::default(), &requests::ServersShow { url }).unwrap();
        assert_eq!(detail.public.elastic, None);
        assert!(!String::from_utf8(detail.to_json()).unwrap().contains("elastic"));
    }
}
