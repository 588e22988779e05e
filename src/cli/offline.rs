//! Answers read-only requests from the state directory, if no daemon is running.

use std::io;
use std::path::Path;

use crate::config::Config;
use crate::control::{Request, ResponseEnd, Row};
use crate::state::answer::{add_stored_sizes, board_window_of, respond};
use crate::state::{State, StateError};
use crate::store::StoreError;

/// Answers read-only requests. Any other request is a bug in the caller.
pub trait Reader {
    /// Returns the same rows, in the same order, as the daemon would.
    fn ask(&mut self, request: &Request, each: &mut dyn FnMut(Row) -> io::Result<()>) -> anyhow::Result<ResponseEnd>;
}

/// Opens a state directory for reading, without changing anything. Prints the store's
/// notes. Waits while another process has the directory open, until `should_give_up`
/// returns true.
pub fn open(config: &Config, dir: &Path, should_give_up: &dyn Fn() -> bool) -> Result<State, StateError> {
    let state = State::open_copy(config, dir, should_give_up)?;
    state.store.warnings().iter().for_each(|note| eprintln!("clqd: {note}"));
    Ok(state)
}

/// Whether another process had the state directory open all the time.
pub fn is_locked(error: &StateError) -> bool {
    matches!(error, StateError::Store(StoreError::Locked { .. }))
}

impl Reader for State {
    fn ask(&mut self, request: &Request, each: &mut dyn FnMut(Row) -> io::Result<()>) -> anyhow::Result<ResponseEnd> {
        if let Some(window) = board_window_of(self, request) {
            self.ensure_boards(window)?;
        }
        let mut rows = respond(self, request)?;
        if let Request::Windows { bytes: true } = request {
            add_stored_sizes(&self.store.reader(), &mut rows)?;
        }
        for row in rows {
            each(row)?;
        }
        Ok(ResponseEnd::default())
    }
}
