//! Answers to reading requests straight from the state directory, for when no
//! daemon is running.

use std::io;

use crate::answer::{answer, boards_needed, measure};
use crate::config::Config;
use crate::control::{End, Request, Row};
use crate::hot::Hot;

/// What can answer a request that only reads. A request that would change
/// something is a bug of the caller.
pub trait Reader {
    /// Gives the same rows, in the same order, as the daemon would.
    fn ask(&mut self, request: &Request, each: &mut dyn FnMut(Row) -> io::Result<()>) -> anyhow::Result<End>;
}

/// Opens the state directory of the configuration, without changing anything.
pub fn offline(config: &Config) -> anyhow::Result<Box<dyn Reader>> {
    Ok(Box::new(Hot::of_config(config, &config.state_dir, false)?))
}

impl Reader for Hot {
    fn ask(&mut self, request: &Request, each: &mut dyn FnMut(Row) -> io::Result<()>) -> anyhow::Result<End> {
        if let Some(window) = boards_needed(self, request) {
            self.shelve_boards(window)?;
        }
        let mut rows = answer(self, request)?;
        if let Request::Windows { bytes: true } = request {
            measure(&self.store.reader(), &mut rows)?;
        }
        for row in rows {
            each(row)?;
        }
        Ok(End::default())
    }
}
