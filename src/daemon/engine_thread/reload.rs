//! Settings that are reloaded.

use anyhow::Context;
use tokio::sync::oneshot;

use super::EngineThread;
use crate::api::{ApiError, ErrorCode};
use crate::config::Config;
use crate::daemon::window_rebuild;
use crate::engine::EngineSettings;
use crate::log::{LogEvent, RecordedSettings};

impl EngineThread {
    /// Applies reloaded settings. Returns messages for the admin about windows.
    pub(in crate::daemon) fn reload(&mut self, config: &Config, engine: EngineSettings) -> anyhow::Result<Vec<String>> {
        self.disk.set_min(config.store.disk_free_bytes_min);
        self.rebuild_paths.disk_free_bytes_min = config.store.disk_free_bytes_min;
        self.state.store.set_database_settings(config.store.database_settings());
        let mut notes = Vec::new();
        // Settings that change results come from the leader of a cluster.
        if self.is_following() {
            self.commit()?;
            self.followed.reload(&mut self.state, config)?;
        } else {
            self.commit()?;
            self.state.engine.reload(engine);
            let settings = config.log_settings();
            let has_other_settings = settings != *self.log.settings();
            self.log.set_settings(self.state.engine.model().now_ms(), settings);
            let planned = self.plan_window_types()?;
            if planned.is_none() && has_other_settings && self.rebuilder.is_running() {
                // The running one would bring back rows by the settings before.
                self.rebuild()?;
            }
            notes.extend(planned);
        }
        self.log.set_retention(config.log_retention());
        self.checkpoints.reconfigure(&config.store);
        self.queue_outdated_boards();
        self.commit_interval_ms = config.store.commit_interval_ms as i64;
        self.allow_private = config.scan.allow_private;
        self.forget_silent_days = config.scan.forget_silent_days;
        self.scanners.set_confirm_miss_by(config.scan.confirm_miss_by);
        self.captures.iter_mut().for_each(|captures| captures.set_keep_days(config.capture.keep_days));
        self.remove_names_from_log();
        Ok(notes)
    }

    /// Refuses a reload of windows that could not be rebuilt, because the log cannot be read now. A damaged log does not
    /// refuse it: the windows begin empty.
    pub(in crate::daemon) fn check_log(&self) -> Result<(), ApiError> {
        let _reading = self.rebuild_paths.log_lock.begin_reading();
        match window_rebuild::log_from_ms(&self.rebuild_paths.log, i64::MAX) {
            Err(error) if !error.is_damage() => {
                let error = anyhow::Error::new(error).context("cannot rebuild windows from the log");
                Err(ApiError::new(ErrorCode::Refused, format!("{error:#}")))
            }
            _ => Ok(()),
        }
    }

    /// Answers a reload. The settings of a cluster are those of its log: they hold when it has them. While the disk is nearly
    /// full, nothing is written to it.
    pub(in crate::daemon) fn reply_to_reload(&mut self, reply: oneshot::Sender<Vec<String>>, notes: Vec<String>) {
        match self.log.is_shared() && !self.is_following() && !self.disk.is_paused() {
            true => self.reply_when_synced(reply, notes),
            false => _ = reply.send(notes),
        }
    }

    /// Begins the rebuild of new and changed types of windows. Returns a message for the admin.
    pub(super) fn plan_window_types(&mut self) -> anyhow::Result<Option<String>> {
        if !self.state.engine.model().has_changed_types() {
            return Ok(None);
        }
        let reading = self.rebuild_paths.log_lock.begin_reading();
        let planned = window_rebuild::plan_window_types(&self.state.engine, &self.rebuild_paths.log);
        drop(reading);
        let Some((step, note)) = planned.context("cannot rebuild windows from the log")? else { return Ok(None) };
        self.state.apply_rebuild(&step)?;
        if self.log.is_shared() {
            // No scan that follows is earlier.
            self.log.append(&LogEvent::Rebuild { t_ms: self.last_outcome_ms, step });
            self.sweep_reopened_windows()?;
        }
        self.rebuild()?;
        Ok(Some(note))
    }

    /// The settings of the log.
    pub(in crate::daemon) fn log_settings(&self) -> RecordedSettings {
        match self.is_following() {
            true => self.followed.settings(),
            false => self.log.settings().clone(),
        }
    }
}
