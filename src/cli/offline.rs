//! Reads the state directory, if no daemon is running.

use std::fmt::Display;
use std::io;
use std::path::Path;

use crate::cli::stdio::note;
use crate::config::Config;
use crate::engine::ViewError;
use crate::state::State;
use crate::state::recovery::{self, RecoveryError};
use crate::view::export::ExportRow;
use crate::view::session::ExportedSession;

/// Prints a warning.
pub fn warn(what: &dyn Display) {
    note(format_args!("clqd: warning: {what}"));
}

/// Opens a state directory for reading, without changing anything. Waits while another process has the directory open, until `should_give_up`
/// returns true.
pub fn open(config: &Config, dir: &Path, should_give_up: &dyn Fn() -> bool) -> Result<State, RecoveryError> {
    recovery::open_copy(config, dir, should_give_up, &warn)
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
    each: &mut dyn FnMut(ExportRow) -> io::Result<()>,
) -> Result<(), ExportError> {
    state.engine.model().export(&state.store, week, |server, game, player, row, positions| {
        Ok(each(ExportRow::new(week, server, game, player, row, positions))?)
    })
}

/// Passes on all complete sessions that are kept, in order of server URL, end, start, name.
pub fn each_session(state: &State, each: &mut dyn FnMut(ExportedSession) -> io::Result<()>) -> Result<(), ExportError> {
    for server in state.engine.model().servers_by_url() {
        let sessions = state.engine.model().export_sessions(&state.store, server)?;
        sessions.into_iter().try_for_each(&mut *each)?;
    }
    Ok(())
}
