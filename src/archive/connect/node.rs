//! Whether a host reports that it can be written: the state of a node of a Galera cluster, and the
//! read-only mode of a replica.
//!
//! Other database servers do not have the variables of Galera; `SHOW` then returns no rows. A node
//! that is not ready answers `SHOW`, but fails nearly every other statement with error 1047.

use super::Archive;
use crate::archive::error::ArchiveError;

/// Most rows in one transaction on a cluster, except for the rows of one object. All nodes apply
/// transactions one after the other, so a large one delays the commits of other clients.
const BATCH_ROWS_MAX: usize = 1_000;

/// A transaction with more rows is replicated in fragments of this size while it is running
/// (streaming replication), so a week of any length can be one transaction. Otherwise all nodes
/// would apply it at its commit and delay every later commit: by 3.2 s for 100,000 rows, but by
/// 0.13 s with these fragments. A fragment is longer than a batch with its deletes and the row of
/// the writer, so batches are not fragmented.
const FRAGMENT_ROWS: u32 = 5_000;

/// Why a node cannot be written.
#[derive(Debug, PartialEq, Eq)]
enum NotReady {
    Donor,
    Other(String),
}

/// The variables of a node.
#[derive(Debug, Default)]
struct NodeState {
    is_cluster: bool,
    is_ready: bool,
    cluster_status: String,
    local_state: String,
    is_read_only: bool,
}

impl NodeState {
    fn from_variables(variables: &[(String, String)]) -> NodeState {
        let value = |name: &str| {
            let found = variables.iter().find(|(variable, _)| variable.eq_ignore_ascii_case(name));
            found.map_or("", |(_, value)| value.as_str())
        };
        let is_on = |name: &str| matches!(value(name), "ON" | "1");
        NodeState {
            is_cluster: is_on("wsrep_on"),
            is_ready: is_on("wsrep_ready"),
            cluster_status: value("wsrep_cluster_status").to_owned(),
            local_state: value("wsrep_local_state_comment").to_owned(),
            is_read_only: is_on("read_only"),
        }
    }

    /// `has_others`: the archive has other hosts. A single server in read-only mode is used
    /// nevertheless, because the account may be exempt.
    fn check(&self, has_others: bool, accepts_donor: bool) -> Result<(), NotReady> {
        if self.is_cluster && (!self.is_ready || self.cluster_status != "Primary") {
            let why = format!(
                "the node is not ready: wsrep_ready is {}, wsrep_cluster_status is {}, wsrep_local_state_comment is {}",
                if self.is_ready { "ON" } else { "OFF" },
                self.cluster_status,
                self.local_state
            );
            return Err(NotReady::Other(why));
        }
        if self.is_read_only && has_others {
            return Err(NotReady::Other("it is in read-only mode (read_only is ON)".into()));
        }
        if self.is_cluster && self.local_state.starts_with("Donor") && has_others && !accepts_donor {
            return Err(NotReady::Donor);
        }
        Ok(())
    }
}

impl Archive {
    /// Refuses a host that cannot be written. On a cluster it limits the size of transactions.
    pub(super) async fn check_node(&mut self, host_count: usize, accepts_donor: bool) -> Result<(), ArchiveError> {
        const STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN \
                              ('wsrep_ready', 'wsrep_cluster_status', 'wsrep_local_state_comment')";
        const VARIABLES: &str = "SHOW VARIABLES WHERE Variable_name IN \
                                 ('wsrep_on', 'wsrep_trx_fragment_size', 'read_only')";
        let mut variables: Vec<(String, String)> = self.all("node", VARIABLES).await?;
        variables.extend(self.all::<(String, String)>("node", STATUS).await?);
        let state = NodeState::from_variables(&variables);
        match state.check(host_count > 1, accepts_donor) {
            Ok(()) => {}
            Err(NotReady::Donor) => return Err(ArchiveError::Donor { target: self.target.clone() }),
            Err(NotReady::Other(why)) => {
                return Err(ArchiveError::Unavailable { target: self.target.clone(), doing: "connect", why });
            }
        }
        self.is_cluster = state.is_cluster;
        if self.is_cluster {
            self.batch_rows_max = self.batch_rows_max.min(BATCH_ROWS_MAX);
            if variables.iter().any(|(name, _)| name == "wsrep_trx_fragment_size") {
                let fragments =
                    format!("SET SESSION wsrep_trx_fragment_unit = 'rows', wsrep_trx_fragment_size = {FRAGMENT_ROWS}");
                self.run("session", &fragments).await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(variables: &[(&str, &str)]) -> NodeState {
        let variables: Vec<(String, String)> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        NodeState::from_variables(&variables)
    }

    #[test]
    fn single_server_is_always_ready() {
        // MariaDB without a cluster, MySQL, and a server in read-only mode.
        for variables in [
            [("wsrep_on", "OFF"), ("wsrep_ready", "OFF"), ("wsrep_cluster_status", "Disconnected")].as_slice(),
            &[("read_only", "OFF")],
            &[("read_only", "ON")],
        ] {
            let state = state(variables);
            assert_eq!(state.check(false, false), Ok(()), "{state:?}");
            assert!(!state.is_cluster);
        }
        assert!(state(&[("read_only", "ON")]).check(true, false).is_err());
    }

    #[test]
    fn node_must_be_ready_primary_and_preferably_no_donor() {
        let node = |ready, status, local| {
            state(&[
                ("wsrep_on", "ON"),
                ("wsrep_ready", ready),
                ("wsrep_cluster_status", status),
                ("wsrep_local_state_comment", local),
                ("read_only", "OFF"),
            ])
        };
        assert_eq!(node("ON", "Primary", "Synced").check(true, false), Ok(()));
        assert_eq!(node("ON", "Primary", "Donor/Desynced").check(true, false), Err(NotReady::Donor));
        assert_eq!(node("ON", "Primary", "Donor/Desynced").check(true, true), Ok(()));
        assert_eq!(node("ON", "Primary", "Donor/Desynced").check(false, false), Ok(()));
        for (ready, status) in [("OFF", "Primary"), ("ON", "non-Primary"), ("OFF", "Disconnected")] {
            let Err(NotReady::Other(why)) = node(ready, status, "Initialized").check(false, true) else {
                panic!("{ready} {status} is not ready")
            };
            assert!(why.contains(&format!("wsrep_ready is {ready}")) && why.contains(status), "{why}");
        }
    }
}
