//! The order in which the hosts of `archive.url` are tried.
//!
//! A search begins with the host that worked last and visits every host once, without a pause.
//! A host that fails while it is written goes to the end of the order, so the next search
//! begins with the host after it. Only when all hosts have failed does the worker back off.

use std::collections::BTreeMap;

use crate::archive::error::{ArchiveError, FaultKind};

/// Facts about the hosts from earlier connections.
#[derive(Clone, Debug, Default)]
pub(in crate::archive) struct HostOrder {
    /// Index of the host that is tried first.
    first: usize,
    /// The database's ids of connections that were not closed, by host. The database may still
    /// keep them open, and with them the lock on the archive. An id is valid on its host only:
    /// elsewhere, the connection of another client may have it.
    open: BTreeMap<usize, Option<u32>>,
}

impl HostOrder {
    /// Begins a search through all hosts.
    pub(super) fn search(&self, count: usize) -> Search {
        Search { first: self.first, count, tried: 0, failures: Vec::new(), donors: Vec::new() }
    }

    /// A host was connected: the next search begins with it.
    pub(super) fn connected(&mut self, index: usize) {
        self.first = index;
    }

    pub(super) fn open_connection(&mut self, index: usize) -> &mut Option<u32> {
        self.open.entry(index).or_default()
    }

    /// The connection to the first host was closed.
    pub(in crate::archive) fn closed(&mut self) {
        self.open.remove(&self.first);
    }

    /// The first host failed: the next search begins with the one after it.
    pub(in crate::archive) fn first_failed(&mut self, count: usize) {
        self.first = (self.first + 1) % count.max(1);
    }
}

/// One attempt of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub index: usize,
    /// Also connect to a node that sends its data to a new node: all others have failed.
    pub accepts_donor: bool,
}

/// A search for a host that can be written.
#[derive(Debug)]
pub(super) struct Search {
    first: usize,
    count: usize,
    tried: usize,
    failures: Vec<ArchiveError>,
    /// Hosts that failed because they send their data to a new node.
    donors: Vec<usize>,
}

impl Search {
    /// The next attempt; `None`: all hosts have failed.
    pub fn next(&mut self) -> Option<Attempt> {
        if self.tried < self.count {
            let index = (self.first + self.tried) % self.count;
            self.tried += 1;
            return Some(Attempt { index, accepts_donor: false });
        }
        self.donors.pop().map(|index| Attempt { index, accepts_donor: true })
    }

    /// An attempt failed. Error: no other host would help.
    pub fn failed(&mut self, attempt: Attempt, error: ArchiveError) -> Result<(), ArchiveError> {
        if matches!(error, ArchiveError::Settings(_) | ArchiveError::InUse { .. }) {
            return Err(error);
        }
        if matches!(error, ArchiveError::Donor { .. }) {
            self.donors.push(attempt.index);
        }
        self.failures.push(error);
        Ok(())
    }

    /// The error after the last attempt.
    pub fn into_error(self, target: String) -> ArchiveError {
        ArchiveError::all_hosts(target, self.failures)
    }
}

impl ArchiveError {
    /// The error of an archive after all hosts have failed, for the reasons `failures`. A single
    /// failure is returned unchanged.
    pub(in crate::archive) fn all_hosts(target: String, mut failures: Vec<ArchiveError>) -> ArchiveError {
        if failures.len() == 1 {
            return failures.remove(0);
        }
        let kind = failures.first().map_or(FaultKind::Unreachable, ArchiveError::kind);
        let kind = if failures.iter().all(|it| it.kind() == kind) { kind } else { FaultKind::Unreachable };
        let reasons: Vec<String> = failures.iter().map(ArchiveError::to_string).collect();
        ArchiveError::AllHosts { target, kind, reasons: reasons.join("; ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreachable(target: &str) -> ArchiveError {
        ArchiveError::Unreachable { target: target.into(), doing: "connect", why: "refused".into() }
    }

    /// The hosts that a search visits if every host fails.
    fn visited(order: &HostOrder, count: usize) -> Vec<usize> {
        let mut search = order.search(count);
        let mut visited = Vec::new();
        while let Some(attempt) = search.next() {
            visited.push(attempt.index);
            search.failed(attempt, unreachable("h")).unwrap();
        }
        visited
    }

    #[test]
    fn search_begins_with_last_working_host_and_visits_all() {
        let mut order = HostOrder::default();
        assert_eq!(visited(&order, 3), [0, 1, 2]);
        order.connected(1);
        assert_eq!(visited(&order, 3), [1, 2, 0]);
        order.first_failed(3);
        assert_eq!(visited(&order, 3), [2, 0, 1]);
        order.first_failed(3);
        order.first_failed(1);
        assert_eq!(visited(&order, 1), [0]);
    }

    #[test]
    fn donor_is_the_last_choice() {
        let mut search = HostOrder::default().search(2);
        let first = search.next().unwrap();
        search.failed(first, ArchiveError::Donor { target: "a".into() }).unwrap();
        let second = search.next().unwrap();
        search.failed(second, unreachable("b")).unwrap();
        assert_eq!(search.next(), Some(Attempt { index: 0, accepts_donor: true }));
        assert_eq!(search.next(), None);
    }

    #[test]
    fn error_names_every_host_and_its_reason() {
        let failures = vec![unreachable("u@a/d"), ArchiveError::Donor { target: "u@b/d".into() }];
        let error = ArchiveError::all_hosts("u@a,b/d".into(), failures);
        assert_eq!(error.kind(), FaultKind::Unreachable);
        let message = error.to_string();
        for words in ["u@a,b/d", "u@a/d cannot be reached (connect): refused", "u@b/d is unavailable"] {
            assert!(message.contains(words), "{message}");
        }
        let one = ArchiveError::all_hosts("u@a/d".into(), vec![unreachable("u@a/d")]);
        assert!(matches!(one, ArchiveError::Unreachable { .. }), "{one}");
        let same = ArchiveError::all_hosts("t".into(), vec![ArchiveError::Donor { target: "a".into() }; 2]);
        assert_eq!(same.kind(), FaultKind::Unavailable);
    }

    #[test]
    fn id_of_a_connection_stays_with_its_host() {
        let mut order = HostOrder::default();
        *order.open_connection(0) = Some(7);
        assert_eq!(*order.open_connection(1), None);
        order.connected(1);
        order.closed();
        assert_eq!(*order.open_connection(0), Some(7));
        order.connected(0);
        order.closed();
        assert_eq!(*order.open_connection(0), None);
    }
}
