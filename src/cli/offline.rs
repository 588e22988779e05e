//! Answers read-only requests from the state directory, if no daemon is running.

use std::fmt::Display;
use std::io;
use std::path::Path;

use crate::api::ArchiveStatus;
use crate::api::{Request, Row};
use crate::cli::stdio::note;
use crate::config::Config;
use crate::engine::ViewError;
use crate::model::view::export::ExportRow;
use crate::state::State;
use crate::state::answer::{respond_once, view_error};
use crate::state::recovery::{self, RecoveryError};

/// Answers read-only requests. Any other request is a bug in the caller.
pub trait Reader {
    /// Returns the same rows, in the same order, as the daemon would. Fields that only a running
    /// daemon knows are absent.
    fn ask(&mut self, request: &Request, each: &mut dyn FnMut(Row) -> io::Result<()>) -> anyhow::Result<Vec<String>>;
}

/// Prints a warning.
pub fn warn(what: &dyn Display) {
    note(format_args!("clqd: warning: {what}"));
}

/// Opens a state directory for reading, without changing anything. Waits while another process has the directory open, until `should_give_up`
/// returns true.
pub fn open(config: &Config, dir: &Path, should_give_up: &dyn Fn() -> bool) -> Result<State, RecoveryError> {
    recovery::open_copy(config, dir, should_give_up, &warn)
}

/// The archive that the configuration names; `None`: none.
pub fn archive_status(config: &Config, last_complete_ms: Option<i64>) -> Option<ArchiveStatus> {
    let target = config.archive_settings().target();
    config.archive.is_enabled().then(|| ArchiveStatus { target, last_complete_ms, ..ArchiveStatus::default() })
}

impl Reader for State {
    fn ask(&mut self, request: &Request, each: &mut dyn FnMut(Row) -> io::Result<()>) -> anyhow::Result<Vec<String>> {
        if let Request::Export { week } = request {
            return match each_row(self, week, |row| each(Row::Export(Box::new(row)))) {
                Ok(()) => Ok(Vec::new()),
                Err(ExportError::View(error)) => Err(view_error(error).into()),
                Err(error) => Err(error.into()),
            };
        }
        for mut row in respond_once(self, request)? {
            if let Row::ServerDetail(detail) = &mut row {
                // This is learned from scans and not stored.
                detail.round_end = None;
            }
            each(row)?;
        }
        Ok(Vec::new())
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    View(#[from] ViewError),
    #[error("cannot write the rows")]
    Io(#[from] io::Error),
}

/// Passes on all rows of a week, in order of server URL, player name, game.
pub fn each_row(
    state: &State,
    week: &str,
    mut each: impl FnMut(ExportRow) -> io::Result<()>,
) -> Result<(), ExportError> {
    state.engine.export(&state.store, week, |server, game, player, row, positions| {
        Ok(each(ExportRow::new(week, server, game, player, row, positions))?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EngineSettings;
    use crate::model::ServerUrl;
    use crate::state::answer::respond;
    use crate::store::StoreSettings;

    #[test]
    fn round_end_is_absent_without_daemon() {
        let dir = tempfile::tempdir().unwrap();
        let store = StoreSettings { cache_bytes: 16 << 20, create: true };
        let mut state = State::open(dir.path(), store, EngineSettings::default()).unwrap();
        let url = ServerUrl::parse("quake3://10.0.0.1:27960").unwrap();
        state.engine.add_server(url.clone(), Vec::new(), 1_763_942_400_000).unwrap();
        state.commit().unwrap();
        let request = Request::ServersShow { url };
        let round_end = |row: &Row| match row {
            Row::ServerDetail(detail) => detail.round_end.clone(),
            row => panic!("{row:?}"),
        };
        assert!(
            respond(&state.view(), &request).unwrap().iter().all(|row| round_end(row).is_some()),
            "the daemon's answer"
        );
        let mut rows = Vec::new();
        let mut keep = |row| {
            rows.push(row);
            Ok(())
        };
        state.ask(&request, &mut keep).unwrap();
        assert_eq!(rows.iter().map(round_end).collect::<Vec<_>>(), [None]);
        assert!(!serde_json::to_string(&rows).unwrap().contains("round_end"));
    }
}
