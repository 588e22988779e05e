//! Changes of players, tags, weeks, windows and the time.

use super::change::{Change, ChangeError};
use super::{EngineThread, NameRemoval};
use crate::api::requests::{
    ClockAccept, ClockReset, PlayerAllow, PlayerForget, PlayerMerge, TagDrop, WeekReopen, WindowsDelete,
    WindowsRecompute,
};
use crate::api::{ApiError, ErrorCode};
use crate::board::window;
use crate::capture::CaptureFiles;
use crate::daemon::window_rebuild;
use crate::engine::{ForgetResult, MergeResult, ReopenError, TimeReset};
use crate::log::{ForgottenNames, LogEvent, RecordedSettings};
use crate::model::calendar::{parse_week_label, utc, week_label};
use crate::model::commit::{WeekPhase, WeekState};
use crate::model::rebuild::RebuildStep;
use crate::model::{AdminCommand, NameHash, PlayerKey};
use crate::state::State;
use crate::store::StoreError;
use crate::view::board::WindowView;
use crate::view::{CaptureDeletion, ClockStatus, Correction};

impl Change for PlayerMerge {
    fn apply(&self, thread: &mut EngineThread, now_ms: i64) -> Result<Correction, ChangeError> {
        // The correction has its own commit.
        thread.commit()?;
        let t_ms = thread.begin_command(now_ms);
        let State { engine, store } = &mut thread.state;
        let merged = engine.merge_players(store, &self.game, &self.from, &self.into)?;
        let MergeResult { from, into, rows, from_name, into_name } = merged;
        tracing::info!(from = from.0, into = into.0, "players merged");
        let game = self.game.clone();
        thread.record_command(t_ms, AdminCommand::Merge { game, from: from_name, into: into_name });
        Ok(Correction::Merged { player_key: from.0, into_key: into.0, rows: rows as u64 })
    }
}

impl Change for PlayerForget {
    fn apply(&self, thread: &mut EngineThread, now_ms: i64) -> Result<Correction, ChangeError> {
        thread.commit()?;
        let t_ms = thread.begin_command(now_ms);
        let State { engine, store } = &mut thread.state;
        // A replay forgets the player between the scans until this time and later ones.
        let ForgetResult { player, rows, hashes } = engine.forget_player(store, &self.game, &self.player, t_ms)?;
        // The message does not contain the name, because the log is kept longer than the name.
        tracing::info!(player = player.0, "player forgotten");
        thread.record_forgotten(t_ms, &self.game, player, &hashes);
        let captures = delete_captures(thread.captures.as_mut());
        Ok(Correction::Forgotten { player_key: player.0, rows: rows as u64, hashes, captures })
    }

    fn commit(thread: &mut EngineThread) -> anyhow::Result<()> {
        // A follower finds the player by the name. Nothing waits for the database here.
        match thread.log.is_shared() {
            true => thread.commit()?,
            false => thread.checkpoint()?,
        }
        if thread.disk.is_paused() {
            // The disk has just become full.
            thread.name_removal = NameRemoval::AfterPause;
            return Ok(());
        }
        // The log still has the name, so it begins a new segment.
        if thread.log.is_shared() {
            thread.log.begin_write_and_end_segment(thread.clock.now_ms())?;
        }
        thread.remove_names_from_log();
        Ok(())
    }
}

impl Change for PlayerAllow {
    fn apply(&self, thread: &mut EngineThread, now_ms: i64) -> Result<Correction, ChangeError> {
        thread.commit()?;
        let (t_ms, hash) = (thread.begin_command(now_ms), self.hash);
        thread.state.engine.allow_name(hash)?;
        tracing::info!(%hash, "a forgotten name is allowed again");
        thread.record_command(t_ms, AdminCommand::Allow { hash });
        Ok(Correction::Allowed { hash })
    }

    fn commit(thread: &mut EngineThread) -> anyhow::Result<()> {
        thread.commit()?;
        thread.remove_names_from_log();
        Ok(())
    }
}

impl Change for TagDrop {
    fn apply(&self, thread: &mut EngineThread, now_ms: i64) -> Result<Correction, ChangeError> {
        let (t_ms, tag) = (thread.begin_command(now_ms), self.tag.clone());
        let servers = thread.state.engine.delete_tag(&tag)?;
        tracing::info!(tag, servers, "tag dropped");
        thread.record_command(t_ms, AdminCommand::DropTag { tag: tag.clone() });
        Ok(Correction::TagDropped { tag, servers: servers as u64 })
    }
}

impl Change for WeekReopen {
    fn apply(&self, thread: &mut EngineThread, now_ms: i64) -> Result<Correction, ChangeError> {
        let bad_label = |error| ApiError::new(ErrorCode::BadRequest, format!("{error}"));
        let week = parse_week_label(&self.week).map_err(bad_label)?;
        thread.commit()?;
        let t_ms = thread.begin_command(now_ms);
        let reopening = WeekState { week, phase: WeekPhase::Reopening };
        let in_progress = thread.state.engine.model().weeks().contains(&reopening);
        let reopened = thread.state.engine.reopen_week(week).map_err(|error| {
            let is_gone = matches!(error, ReopenError::RowsDeleted { .. });
            ApiError::new(if is_gone { ErrorCode::NotFound } else { ErrorCode::Refused }, error.to_string())
        })?;
        let week = self.week.clone();
        if reopened {
            tracing::warn!(week, "an admin reopened a week");
            thread.record_command(t_ms, AdminCommand::Reopen { week: week.clone() });
        }
        thread.ticked_ms = 0;
        Ok(Correction::WeekReopened { week, already_open: !reopened && !in_progress, in_progress })
    }
}

impl Change for ClockAccept {
    fn apply(&self, thread: &mut EngineThread, _: i64) -> Result<ClockStatus, ChangeError> {
        let clock = thread.clock.accept();
        thread.state.engine.set_close_limit(thread.clock.close_until_ms());
        Ok(clock)
    }
}

/// Sets recorded time back to the system clock. Everything before that is on disk first.
impl Change for ClockReset {
    fn apply(&self, thread: &mut EngineThread, now_ms: i64) -> Result<Correction, ChangeError> {
        if thread.log.awaits_database(now_ms) {
            return Err(ChangeError::refused(
                "the database of the log does not answer, and everything before must be in it: try again when it does",
            ));
        }
        let clock = thread.clock.status();
        if clock.ahead_ms == 0 {
            return Err(ChangeError::refused(
                "recorded time is not ahead of the system clock: there is nothing to set back",
            ));
        }
        if clock.synchronised != Some(true) && !self.force {
            return Err(ChangeError::refused(format!(
                "recorded time would be set back by {} s, but the system clock is not known to be synchronised; if it \
                 is right, add --yes",
                clock.ahead_ms / 1_000
            )));
        }
        thread.commit()?;
        thread.sync()?;
        if thread.disk.is_paused() {
            // The disk has just become full. Scans that wait to be written would be later than the new
            // time.
            return Err(thread.disk.refusal().into());
        }
        let Some(reset) = thread.clock.reset() else {
            return Err(ChangeError::refused("the system clock has just caught up with recorded time"));
        };
        let result = thread.state.engine.reset_time(&thread.state.store, reset.now_ms).map_err(StoreError::from)?;
        thread.record_command(reset.now_ms, AdminCommand::Clock {});
        // The others are times of the wrong clock.
        thread.last_outcome_ms = reset.now_ms;
        (thread.ticked_ms, thread.swept_ms, thread.written_ms) = (0, 0, 0);
        thread.commit()?;
        thread.rebuild()?;
        let reopened: Vec<String> = result.reopened.iter().copied().map(week_label).collect();
        tracing::warn!(
            previous_ms = reset.previous_ms,
            now_ms = reset.now_ms,
            servers = result.servers,
            reopened = reopened.join(", "),
            "an admin set recorded time back"
        );
        let TimeReset { previous_ms, now_ms, servers, uncredited_week, .. } = result;
        let uncredited_week = uncredited_week.map(week_label);
        Ok(Correction::TimeReset { previous_ms, now_ms, servers, reopened, uncredited_week })
    }

    fn commit(thread: &mut EngineThread) -> anyhow::Result<()> {
        // A segment of the log does not have time set back.
        thread.checkpoint()
    }
}

/// Begins to recompute the running windows.
impl Change for WindowsRecompute {
    fn apply(&self, thread: &mut EngineThread, now_ms: i64) -> Result<Option<Correction>, ChangeError> {
        let different = RecordedSettings(self.settings.clone()).changed_since(thread.log.settings());
        if !different.is_empty() {
            let keys: Vec<&str> = different.0.keys().map(String::as_str).collect();
            return Err(ChangeError::refused(format!(
                "the daemon has other values of {}: install this configuration file and run `clqd reload` first",
                keys.join(", ")
            )));
        }
        if thread.state.engine.model().carries_ratings() {
            let why = "with elo.carry_over, ratings follow from earlier weeks, which the log does not have";
            return Err(ChangeError::refused(why));
        }
        if thread.rebuilder.is_running() || thread.state.engine.model().has_rebuild() {
            let why = "windows are being rebuilt from the log now; try again when that is done";
            return Err(ChangeError::refused(why));
        }
        let running: Vec<String> =
            thread.state.engine.model().running_windows().into_iter().map(window::label).collect();
        let from_ms =
            window_rebuild::log_from_ms(&thread.rebuild_paths.log, thread.state.engine.model().first_added_ms())
                .map_err(|error| ChangeError::refused(format!("the log cannot be read: {error}")))?;
        let windows = thread.state.engine.model().recomputable_windows(from_ms.unwrap_or(i64::MAX));
        if windows.is_empty() {
            let began =
                from_ms.map_or_else(|| "has no scans".to_owned(), |from_ms| format!("begins at {}", utc(from_ms)));
            return Err(ChangeError::refused(format!("the log {began}: it has no running window completely")));
        }
        if self.only_check {
            return Ok(None);
        }
        let labels: Vec<String> = windows.iter().map(|state| window::label(state.window)).collect();
        tracing::info!(windows = labels.join(", "), "an admin asked to recompute the running windows");
        // Its rows follow later. From here on a restart begins the work again.
        let (t_ms, step) = (thread.begin_command(now_ms), RebuildStep::Begin { windows });
        thread.record(&LogEvent::Rebuild { t_ms, step: step.clone() });
        thread.state.apply_rebuild(&step)?;
        thread.rebuild()?;
        let kept = running.into_iter().filter(|window| !labels.contains(window)).collect();
        Ok(Some(Correction::Recomputing { windows: labels, kept }))
    }
}

impl Change for WindowsDelete {
    fn apply(&self, thread: &mut EngineThread, now_ms: i64) -> Result<Vec<WindowView>, ChangeError> {
        let t_ms = thread.begin_command(now_ms);
        // Followers delete what they know to be archived.
        thread.log_archived(now_ms);
        // Deleted windows cannot be listed afterwards.
        let mut windows = thread.state.engine.model().windows();
        let deleted = thread.state.engine.delete_windows_before(&thread.state.store, self.before_ms);
        let labels: Vec<String> = deleted.into_iter().map(window::label).collect();
        windows.retain(|listed| labels.contains(&listed.window.window));
        if !labels.is_empty() {
            tracing::info!(windows = labels.len(), before_ms = self.before_ms, "windows deleted");
            thread.record_command(t_ms, AdminCommand::DeleteWindows { before: self.before_ms });
        }
        Ok(windows.into_iter().map(|listed| listed.window).collect())
    }

    /// Which weeks are archived, and so may be deleted, is not in the log of a single engine.
    fn commit(thread: &mut EngineThread) -> anyhow::Result<()> {
        match thread.state.engine.model().deletes_weeks() && !thread.log.is_shared() {
            true => thread.checkpoint(),
            false => thread.commit(),
        }
    }
}

impl EngineThread {
    /// Records that names were forgotten: one command for each, with the placeholder that replaces the
    /// name in the log.
    fn record_forgotten(&mut self, t_ms: i64, game: &str, player: PlayerKey, hashes: &[NameHash]) {
        let engine = &self.state.engine;
        let names = ForgottenNames::new(engine.model().forgotten(), engine.model().name_rules().clone());
        let command = |hash: &NameHash| {
            let (game, placeholder) = (game.to_owned(), names.placeholder(hash)?.to_string());
            Some(AdminCommand::Forget { game, player: placeholder, key: Some(player), hash: Some(*hash) })
        };
        let commands: Vec<_> = hashes.iter().filter_map(command).collect();
        commands.into_iter().for_each(|command| self.record_command(t_ms, command));
        // No scan has the time of the request.
        self.last_outcome_ms += 1;
    }
}

/// Deletes all capture files, because a name may be in any of them. `None`: captures are off.
pub(super) fn delete_captures(captures: Option<&mut CaptureFiles>) -> Option<CaptureDeletion> {
    let deletion = match captures?.delete_all() {
        Ok(files) => {
            tracing::info!(files, "capture files deleted, because they may contain the name");
            CaptureDeletion::Deleted { files }
        }
        Err(error) => {
            tracing::error!(%error, "capture files may contain the name and cannot be deleted; delete them by hand");
            CaptureDeletion::Failed { error: error.to_string() }
        }
    };
    Some(deletion)
}
