//! The right to write the log of a cluster, on the thread that writes it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;

use crate::archive::{ArchiveError, Fenced, SharedLog};
use crate::log::SealedBatch;

/// Pause between two attempts.
const RETRY: Duration = Duration::from_millis(200);

/// Largest number of attempts after the engine was told to stop.
const RETRIES_AT_STOP: u32 = 10;

/// The end of an attempt to append a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    Yes,
    /// Another engine has taken over.
    Fenced,
    /// The engine stops, and the database does not answer.
    GaveUp,
}

/// One epoch of a leader.
pub struct Leadership {
    log: SharedLog,
    epoch: u64,
    runtime: Handle,
}

impl Leadership {
    pub fn new(log: SharedLog, epoch: u64, runtime: Handle) -> Leadership {
        Leadership { log, epoch, runtime }
    }

    /// Appends a batch, which is applied by the rules of a number. Waits until the database has accepted it, on whatever
    /// node.
    pub fn append(&mut self, batch: &SealedBatch, rules: u16, is_stopping: &AtomicBool) -> Appended {
        let (mut failures, mut at_stop) = (0_u32, 0);
        loop {
            let error = match self.runtime.block_on(self.log.append(self.epoch, rules, batch)) {
                Ok(Fenced::No) => {
                    if failures > 0 {
                        tracing::info!(failures, "the log of the cluster can be written again");
                    }
                    return Appended::Yes;
                }
                Ok(Fenced::Yes) => return Appended::Fenced,
                Err(error) => error,
            };
            if failures == 0 {
                report(&error);
            }
            failures += 1;
            if is_stopping.load(Ordering::Relaxed) {
                at_stop += 1;
                if at_stop > RETRIES_AT_STOP {
                    return Appended::GaveUp;
                }
            }
            std::thread::sleep(RETRY);
        }
    }

    /// Lets another engine lead at once.
    pub fn release(mut self) {
        if let Err(error) = self.runtime.block_on(self.log.release(self.epoch)) {
            tracing::warn!("{error}; the other engines wait for the end of the lease");
        }
    }
}

fn report(error: &ArchiveError) {
    tracing::warn!("{error}; scans are kept in memory until the log of the cluster can be written");
}
