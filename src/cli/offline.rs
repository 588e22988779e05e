//! Answers to reading requests straight from the state directory, for when no
//! daemon is running.

use std::io;

use crate::answer::answer;
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
        for row in answer(self, request)? {
            each(row)?;
        }
        Ok(End::default())
    }
}
