//! What an engine knows of its cluster, for requests and messages.

use std::sync::Mutex;
use std::time::Instant;

use crate::api::{ApiError, ClusterStatus, EngineRole, EngineRow, ErrorCode};
use crate::archive::{ArchiveError, Leader, Member, SeenEngine};
use crate::config::Config;
use crate::log::RecordedSettings;

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
    /// When everything in the log was applied; before that, the time of the state.
    applied: Option<Instant>,
    has_applied_all: bool,
    /// The settings that apply.
    log_settings: RecordedSettings,
    /// Those of this engine's configuration file.
    file_settings: RecordedSettings,
    /// Forgotten names that the log in the database may still contain.
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

    /// Everything that was in the log at a time is applied.
    pub fn note_applied(&self, at: Instant) {
        let mut seen = self.seen();
        (seen.applied, seen.has_applied_all) = (Some(at), true);
    }

    /// The time of the state, which counts until everything in the log is applied for the first time.
    pub fn note_state(&self, at: Instant) {
        let mut seen = self.seen();
        if !seen.has_applied_all {
            seen.applied = Some(at);
        }
    }

    /// This engine shows everything until so long ago, ms. `None`: it leads, or has just started.
    pub fn behind_ms(&self) -> Option<u64> {
        let seen = self.seen();
        let applied = seen.applied.filter(|_| !seen.leads)?;
        Some(applied.elapsed().as_millis() as u64)
    }

    pub fn status(&self) -> ClusterStatus {
        let (engines, other_settings, behind_ms) = (self.rows(), self.other_settings(), self.behind_ms());
        let seen = self.seen();
        let leader = seen.leader.as_ref();
        ClusterStatus {
            engine: self.member.engine.clone(),
            leads: seen.leads,
            behind_ms,
            leader: leader.filter(|leader| !leader.is_released()).map(|leader| leader.member.engine.clone()),
            epoch: leader.map_or(0, |leader| leader.epoch),
            engines,
            fault_message: seen.fault.clone(),
            other_settings,
        }
    }

    pub fn note_engines(&self, engines: Vec<SeenEngine>, last_seq: u64) {
        let mut seen = self.seen();
        (seen.engines, seen.last_seq) = (engines, last_seq);
    }

    pub fn note_file_settings(&self, settings: RecordedSettings) {
        self.seen().file_settings = settings;
    }

    /// Logs which settings of the file the log does not have, when these have changed.
    pub fn note_log_settings(&self, settings: RecordedSettings) {
        let before = self.other_settings();
        self.seen().log_settings = settings;
        if let Some(other) = self.other_settings().filter(|other| Some(other) != before.as_ref()) {
            tracing::warn!("{other}");
        }
    }

    /// That this engine's file has other settings than the log.
    pub fn other_settings(&self) -> Option<String> {
        let seen = self.seen();
        let other = seen.file_settings.changed_since(&seen.log_settings);
        let keys: Vec<&str> = other.0.keys().map(String::as_str).collect();
        (!seen.log_settings.is_empty() && !keys.is_empty()).then(|| {
            format!(
                "the configuration file of this engine has other values of {}: those of the log apply, until `clqd reload` \
                 on the leader",
                keys.join(", ")
            )
        })
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

    /// Why the leader must not put the settings of its file into the log.
    pub fn reload_refusal(&self, config: &Config) -> Option<String> {
        let seen = self.seen();
        if let Some(fault) = &seen.fault {
            return Some(format!("the database of the log does not answer; reload again when it does: {fault}"));
        }
        let zone = seen.log_settings.0.get("time_zone").and_then(|zone| zone.as_str());
        if let Some(zone) = zone.filter(|zone| *zone != config.time_zone) {
            return Some(format!("time_zone: the log of the cluster has {zone:?}, which cannot be changed"));
        }
        let number = config.rules.number;
        let old = seen.engines.iter().find(|it| it.age_ms < GONE_AFTER_MS && u32::from(it.version) < number)?;
        let SeenEngine { member, version, .. } = old;
        Some(format!(
            "rules.number: engine {} knows the rules until number {version}: install the newer program there first",
            member.engine
        ))
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_engine_that_has_not_read_the_log_shows_its_old_state() {
        let cluster = Cluster::new(Member { engine: "a".into(), address: String::new(), instance: 7 });
        let now = Instant::now();
        cluster.note_state(now - Duration::from_secs(60));
        assert!(cluster.behind_ms() >= Some(60_000) && cluster.status().behind_ms.is_some());
        cluster.note_applied(now);
        cluster.note_state(now - Duration::from_secs(60));
        assert!(cluster.behind_ms() < Some(60_000));
        cluster.set_leads();
        assert_eq!(cluster.behind_ms(), None);
    }
}
