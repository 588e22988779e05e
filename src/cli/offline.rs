//! Answers to reading requests straight from the state directory, for when no
//! daemon is running.

use std::io;
use std::path::Path;

use crate::config::Config;
use crate::control::{Request, ResponseEnd, Row};
use crate::state::answer::{add_stored_sizes, board_window_of, respond};
use crate::state::{State, StateError};
use crate::store::StoreError;

/// What can answer a request that only reads. A request that would change
/// something is a bug of the caller.
pub trait Reader {
    /// Gives the same rows, in the same order, as the daemon would.
    fn ask(&mut self, request: &Request, each: &mut dyn FnMut(Row) -> io::Result<()>) -> anyhow::Result<ResponseEnd>;
}

/// Opens a state directory to read from it, without changing anything. Prints what
/// the admin should know of its files. Waits while another process has it open, or
/// until that `is_in_vain`.
pub fn open(config: &Config, dir: &Path, is_in_vain: &dyn Fn() -> bool) -> Result<State, StateError> {
    let state = State::read(config, dir, is_in_vain)?;
    state.store.warnings().iter().for_each(|note| eprintln!("clqd: {note}"));
    Ok(state)
}

/// Whether the state directory was in use all the time.
pub fn is_locked(error: &StateError) -> bool {
    matches!(error, StateError::Store(StoreError::Locked { .. }))
}

impl Reader for State {
    fn ask(&mut self, request: &Request, each: &mut dyn FnMut(Row) -> io::Result<()>) -> anyhow::Result<ResponseEnd> {
        if let Some(window) = board_window_of(self, request) {
            self.shelve_boards(window)?;
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
