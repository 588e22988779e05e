//! Servers to check at a time, each at most once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::model::ServerKey;

/// Earliest first. A server whose time has moved since is queued again when its deadline comes, so that a
/// scan does not move it.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    due: BinaryHeap<Reverse<(i64, ServerKey)>>,
    /// By server key: whether it is in `due`.
    is_queued: Vec<bool>,
}

impl Deadlines {
    pub fn is_queued(&self, server: ServerKey) -> bool {
        self.is_queued.get(server.0 as usize) == Some(&true)
    }

    /// Queues a server that is not queued.
    pub fn queue(&mut self, server: ServerKey, at_ms: i64) {
        let at = server.0 as usize;
        if self.is_queued.len() <= at {
            self.is_queued.resize(at + 1, false);
        }
        self.is_queued[at] = true;
        self.due.push(Reverse((at_ms, server)));
    }

    /// The next server whose deadline has come.
    pub fn pop_due(&mut self, now_ms: i64) -> Option<ServerKey> {
        let &Reverse((_, server)) = self.due.peek().filter(|Reverse((at_ms, _))| *at_ms <= now_ms)?;
        self.due.pop();
        self.is_queued[server.0 as usize] = false;
        Some(server)
    }
}
