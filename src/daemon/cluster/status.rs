//! What an engine knows of its cluster, for requests and messages.

use std::sync::Mutex;

use crate::api::requests::{EngineRole, EngineRow};
use crate::api::{ApiError, ErrorCode};
use crate::archive::{ArchiveError, Leader, Member, SeenEngine};

/// An engine that has not been seen for so long is gone, ms.
const GONE_AFTER_MS: i64 = 5_000;

/// The cluster of an engine.
pub struct Cluster {
    member: Member,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    leads: bool,
    leader: Option<Leader>,
    engines: Vec<SeenEngine>,
    /// The last batch of the log.
    last_seq: u64,
    /// Forgotten names that the log may still contain.
    names_pending: u64,
    /// Why the database cannot be reached.
    fault: Option<String>,
}

impl Cluster {
    pub fn new(member: Member) -> Cluster {
        Cluster { member, seen: Mutex::default() }
    }

    pub fn member(&self) -> &Member {
        &self.member
    }

    /// Whether this engine leads.
    pub fn leads(&self) -> bool {
        self.seen().leads
    }

    pub fn set_leads(&self) {
        self.seen().leads = true;
    }

    pub fn note_leader(&self, leader: Option<Leader>) {
        let mut seen = self.seen();
        (seen.leader, seen.fault) = (leader, None);
    }

    pub fn note_engines(&self, engines: Vec<SeenEngine>, last_seq: u64) {
        let mut seen = self.seen();
        (seen.engines, seen.last_seq) = (engines, last_seq);
    }

    pub fn note_names_pending(&self, names: u64) {
        self.seen().names_pending = names;
    }

    /// Forgotten names that the log in the database may still contain, as the leader knows.
    pub fn names_pending(&self) -> u64 {
        self.seen().names_pending
    }

    /// Returns whether it is the first one since the database answered.
    pub fn note_fault(&self, error: &ArchiveError) -> bool {
        self.seen().fault.replace(error.to_string()).is_none()
    }

    /// The engines by name.
    pub fn rows(&self) -> Vec<EngineRow> {
        let seen = self.seen();
        let leader = seen.leader.as_ref().map_or(0, |leader| leader.member.instance);
        let row = |SeenEngine { member, version, seq, age_ms }: &SeenEngine| EngineRow {
            engine: member.engine.clone(),
            role: match () {
                () if *age_ms >= GONE_AFTER_MS => EngineRole::Gone,
                () if member.instance == leader => EngineRole::Leader,
                () => EngineRole::Follower,
            },
            address: member.address.clone(),
            version: *version,
            seq: *seq,
            behind: seen.last_seq.saturating_sub(*seq),
            heard_ago_ms: *age_ms,
        };
        seen.engines.iter().map(row).collect()
    }

    /// Why the status is not of this moment.
    pub fn fault(&self) -> Option<String> {
        self.seen().fault.clone()
    }

    /// The URL of the leader; empty: it is unknown.
    pub fn leader_address(&self) -> String {
        let seen = self.seen();
        let leader = seen.leader.as_ref().filter(|leader| !leader.is_released());
        leader.map_or_else(String::new, |leader| leader.member.address.clone())
    }

    /// The error of a request that only the leader executes.
    pub fn refusal(&self) -> ApiError {
        let seen = self.seen();
        let leader = seen.leader.as_ref().filter(|leader| !leader.is_released()).map(|leader| &leader.member);
        let message = match leader {
            Some(Member { engine, address, .. }) if address.is_empty() => {
                format!("this engine follows engine {engine}, which leads the cluster: send the request there")
            }
            Some(Member { engine, address, .. }) => {
                format!(
                    "this engine follows engine {engine} at {address}, which leads the cluster: send the request there"
                )
            }
            None => "the cluster has no leader at the moment: send the request again in some seconds".to_owned(),
        };
        ApiError::new(ErrorCode::NotLeader, message)
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().expect("cluster lock poisoned")
    }
}
