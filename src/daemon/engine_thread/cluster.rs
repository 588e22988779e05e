//! An engine of a cluster: it applies the batches of the leader, until it leads itself.

use anyhow::Context;

use super::corrections::delete_captures;
use super::durability::BEAT_MS;
use super::{EngineThread, NameRemoval, first_outcome_ms};
use crate::archive::SharedBatch;
use crate::daemon::cluster::Leadership;
use crate::log::{LogEvent, RecordedSettings};
use crate::model::AdminCommand;
use crate::model::outbox::ArchiveStep;
use crate::rank::RULES_NUMBER;

impl EngineThread {
    /// Whether another engine changes the state.
    pub(super) fn is_following(&self) -> bool {
        self.log.is_following()
    }

    /// The last batch that the cluster has accepted, and the times of the requests to forget players, Unix ms, in order.
    pub(in crate::daemon) fn synced_and_forgotten(&self) -> (u64, Vec<i64>) {
        let forgotten = self.state.engine.model().forgotten();
        (self.log.synced(), forgotten.into_iter().map(|(_, forgotten_ms)| forgotten_ms).collect())
    }

    /// Applies batches of the leader, but for those that the state has already. Returns the number of the last one.
    pub(in crate::daemon) fn follow(&mut self, batches: Vec<SharedBatch>) -> anyhow::Result<u64> {
        let now_ms = self.clock.now_ms();
        if self.disk.is_paused() || self.is_disk_behind() {
            return Ok(self.log.copied().0);
        }
        for SharedBatch { version, batch } in batches {
            // This engine may have been started in between.
            if !self.sweep_reopened_windows()? {
                break;
            }
            if u32::from(version) > RULES_NUMBER {
                anyhow::bail!(
                    "batch {} of the cluster has rules.number = {version}, and this program knows the rules until number \
                     {RULES_NUMBER}: install the newer program; until then the other engines go on",
                    batch.seq()
                );
            }
            let is_applied = batch.seq() <= self.log.last_seq();
            let begins_segment = batch.begins_segment();
            if !is_applied && let Some(settings) = self.settings_of_applied.take() {
                // A copied state had them.
                let event = LogEvent::Settings { t_ms: now_ms, settings };
                self.followed.apply(&mut self.state, event).context("cannot apply the log of the cluster")?;
            }
            let (mut events, mut has_forgotten) = (Vec::new(), false);
            self.log.copy(batch, now_ms, |event| events.push(event))?;
            for event in events {
                if is_applied {
                    // A copied state has everything. Its settings may be newer than those at the start of the segment.
                    if let LogEvent::Settings { settings, .. } = event {
                        self.settings_of_applied.get_or_insert_default().update(settings);
                    }
                    continue;
                }
                if let LogEvent::Archive { step: ArchiveStep::Archived { batch, .. }, .. } = event {
                    self.drop_archived(batch);
                }
                let forgets = matches!(&event, LogEvent::Command { command: AdminCommand::Forget { .. }, .. });
                let applied = self.followed.apply(&mut self.state, event);
                applied.context("cannot apply the log of the cluster")?;
                if forgets {
                    has_forgotten = true;
                    // The request ends the segment.
                    self.remove_names_from_log();
                    delete_captures(self.captures.as_mut());
                }
            }
            // A segment that begins with a request may have the name, too.
            if begins_segment && self.name_removal == NameRemoval::AtNextSegment && !has_forgotten {
                self.remove_names_after_checkpoint();
            }
        }
        // Before it leads, and the lease runs.
        self.sweep_reopened_windows()?;
        // The settings of the leader may have another order.
        self.queue_outdated_boards();
        self.changed_ms.get_or_insert(now_ms);
        Ok(self.log.copied().0)
    }

    /// Removes the records of deleted windows that may be opened again, because in a cluster all engines must credit the
    /// same scans to the new ones. Returns whether there are none any more; the disk may be full.
    pub(super) fn sweep_reopened_windows(&mut self) -> anyhow::Result<bool> {
        if !self.state.must_sweep() {
            return Ok(true);
        }
        self.checkpoint()?;
        while !self.disk.is_paused() && self.state.sweep()? {
            self.heartbeat.beat();
            let now_ms = self.clock.now_ms();
            if !self.is_following() && now_ms - self.written_ms >= BEAT_MS {
                // Changes nothing, and keeps the lease.
                let (t_ms, settings) = (self.last_outcome_ms, RecordedSettings::default());
                self.log.append(&LogEvent::Settings { t_ms, settings });
                self.written_ms = now_ms;
                self.log.begin_write(now_ms)?;
            }
        }
        Ok(!self.state.must_sweep())
    }

    /// This engine leads from now on. It has applied the whole log.
    pub(in crate::daemon) fn lead(&mut self, leadership: Leadership) -> anyhow::Result<()> {
        self.clock.continue_from(self.state.engine.model().now_ms());
        let now_ms = self.clock.now_ms();
        self.commit()?;
        self.log.lead(leadership, self.followed.settings(), now_ms)?;
        self.log.begin_if_new(now_ms.max(self.state.engine.model().now_ms()))?;
        self.last_outcome_ms = first_outcome_ms(&self.state.engine);
        self.state.engine.reschedule_all(now_ms);
        self.probes = self.idle_probes.take();
        self.number_scans();
        self.remove_servers_known_twice(now_ms);
        self.sweep_reopened_windows()?;
        self.tick(now_ms)?;
        self.commit()?;
        // The leader before may not have ended the segment with the request; this one has begun another.
        self.remove_names_from_log();
        // What the leader before may not have begun, or completed.
        self.plan_window_types()?;
        self.rebuild()
    }
}
