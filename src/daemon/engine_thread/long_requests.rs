//! Scans and backups that an admin requests: work that goes on for long beside the engine thread.

use tokio::sync::oneshot;

use super::EngineThread;
use super::change::admin_error;
use super::durability::BackupReply;
use crate::api::ApiError;
use crate::api::requests::RescanSelector;
use crate::daemon::rescan_results::ScanResults;
use crate::engine::RescanTarget;
use crate::model::server::Class;
use crate::scan::ScanMode;

/// A rescan in progress.
pub(in crate::daemon) struct StartedRescan {
    pub servers: u64,
    /// The mode that takes longest among the servers.
    pub mode: ScanMode,
    /// One row for each server: sent when it arrives.
    pub results: ScanResults,
}

impl EngineThread {
    /// For a backup: the records of a checkpoint that has all events so far. Also replies with the number of
    /// records that it lacks, because nothing is written while the disk is nearly full.
    pub(in crate::daemon) fn backup_source(&mut self, reply: oneshot::Sender<BackupReply>) {
        self.checkpoints.request_backup(reply);
    }

    /// Makes servers due now and registers the rescan for their results.
    pub(in crate::daemon) fn start_rescan(
        &mut self,
        servers: RescanSelector,
    ) -> anyhow::Result<Result<StartedRescan, ApiError>> {
        // Outcomes of earlier scans do not belong to the rescan.
        self.commit()?;
        let target = match servers {
            RescanSelector::Url(url) => RescanTarget::Url(url),
            RescanSelector::AllUnknown => RescanTarget::AllUnknown,
        };
        let servers = match self.state.engine.rescan(&target, self.clock.now_ms()) {
            Ok(servers) => servers,
            Err(error) => return Ok(Err(admin_error(error))),
        };
        let class_of = |server| self.state.engine.model().public_server_of(server).map(|summary| summary.class);
        let has_failed = match target {
            RescanTarget::Url(_) => servers.iter().any(|&server| class_of(server) == Some(Class::FAILED.number())),
            RescanTarget::Class(class) => class == Class::FAILED,
            RescanTarget::AllUnknown => true,
        };
        let mode = if has_failed { ScanMode::Exception } else { ScanMode::Normal };
        Ok(Ok(StartedRescan { servers: servers.len() as u64, mode, results: self.rescans.begin(servers) }))
    }
}
