//! Answers requests of clients. Requests that only read are answered as offline.

use serde_json::{Map, Value};

use super::EngineThread;
use crate::api::{ApiError, ErrorCode, Request, Row};
use crate::board::window;
use crate::capture::CaptureFiles;
use crate::daemon::window_rebuild;
use crate::engine::{AdminError, CorrectionError, ForgetResult, MergeResult, ReopenError, TimeReset};
use crate::log::{ForgottenNames, LogEvent, RecordedSettings};
use crate::model::calendar::{parse_week_label, utc, week_label};
use crate::model::commit::{WeekPhase, WeekState};
use crate::model::rebuild::RebuildStep;
use crate::model::view::{CaptureDeletion, Correction};
use crate::model::{AdminCommand, NameHash};
use crate::state::State;
use crate::state::answer::{respond, view_error};

pub(super) type RequestResult = Result<Vec<Row>, ApiError>;

impl EngineThread {
    pub(super) fn handle_request(&mut self, request: Request) -> anyhow::Result<RequestResult> {
        let now_ms = self.clock.now_ms();
        if !request.is_read_only() && !self.disk.check(now_ms) {
            return Ok(Err(self.disk.refusal()));
        }
        let rows = match &request {
            Request::ServersAdd { urls, tags, import } => Ok(self.add_servers(urls, tags, *import, now_ms)),
            Request::ServersRemove { urls } => Ok(self.remove_servers(urls, now_ms)),
            Request::Greylist { url, reason } => self.greylist(url, reason.as_deref(), now_ms),
            Request::Boost { url, for_s } => self.boost(url, *for_s, now_ms),
            Request::ServersTag { urls, add, remove } => Ok(self.tag_servers(urls, add, remove, now_ms)),
            Request::ServersTrust { url, except, revoke } => self.trust(url, except, revoke, now_ms),
            Request::TagDrop { tag } => self.drop_tag(tag, now_ms),
            Request::PlayerMerge { .. } | Request::PlayerForget { .. } | Request::PlayerAllow { .. } => {
                self.correct_player(&request, now_ms)?
            }
            Request::ClockAccept {} => {
                let clock = self.clock.accept();
                self.state.engine.set_close_limit(self.clock.close_until_ms());
                Ok(vec![Row::Clock(clock)])
            }
            Request::ClockReset { force } => self.reset_clock(*force)?,
            Request::WeekReopen { week } => self.reopen_week(week, now_ms)?,
            Request::WindowsDelete { before_ms } => Ok(self.delete_windows(*before_ms, now_ms)),
            Request::WindowsRecompute { settings, only_check } => {
                self.recompute_windows(settings, *only_check, now_ms)?
            }
            reads => {
                return Ok(respond(&self.state.view(), reads));
            }
        };
        match request {
            // The log still has the name, and does not have time set back within a segment. So both begin a
            // new one.
            Request::PlayerForget { .. } | Request::ClockReset { .. } => self.checkpoint()?,
            _ => self.commit()?,
        }
        if matches!(request, Request::PlayerForget { .. } | Request::PlayerAllow { .. }) {
            self.remove_names_from_log();
        }
        Ok(rows)
    }

    /// Corrects one player. The correction has its own commit.
    fn correct_player(&mut self, request: &Request, now_ms: i64) -> anyhow::Result<RequestResult> {
        self.commit()?;
        let t_ms = self.begin_command(now_ms);
        let State { engine, store } = &mut self.state;
        let result = match request {
            Request::PlayerMerge { from, into, game } => engine.merge_players(store, game, from, into).map(|result| {
                tracing::info!(from = result.from.0, into = result.into.0, "players merged");
                let MergeResult { from, into, rows, from_name, into_name } = result;
                self.record_command(t_ms, AdminCommand::Merge { game: game.clone(), from: from_name, into: into_name });
                Correction::Merged { player_key: from.0, into_key: into.0, rows: rows as u64 }
            }),
            // A replay forgets the player between the scans until this time and later ones.
            Request::PlayerForget { player, game } => engine.forget_player(store, game, player, t_ms).map(|result| {
                // The message does not contain the name, because the log is kept longer than the
                // name.
                tracing::info!(player = result.player.0, "player forgotten");
                let ForgetResult { player, rows, hashes } = result;
                self.record_forgotten(t_ms, game, &hashes);
                let captures = delete_captures(self.captures.as_mut());
                Correction::Forgotten { player_key: player.0, rows: rows as u64, hashes, captures }
            }),
            Request::PlayerAllow { hash } => engine.allow_name(*hash).map(|()| {
                tracing::info!(%hash, "a forgotten name is allowed again");
                self.record_command(t_ms, AdminCommand::Allow { hash: *hash });
                Correction::Allowed { hash: *hash }
            }),
            _ => unreachable!("the caller passes only corrections of players"),
        };
        Ok(result.map(|correction| vec![Row::Correction(correction)]).map_err(correction_error))
    }

    /// Records that names were forgotten: one command for each, with the placeholder that replaces the
    /// name in the log.
    fn record_forgotten(&mut self, t_ms: i64, game: &str, hashes: &[NameHash]) {
        let engine = &self.state.engine;
        let names = ForgottenNames::new(engine.forgotten(), engine.name_rules().clone());
        let placeholders: Vec<_> = hashes.iter().filter_map(|hash| names.placeholder(hash)).collect();
        for placeholder in placeholders {
            self.record_command(t_ms, AdminCommand::Forget { game: game.to_owned(), player: placeholder.to_string() });
        }
        // No scan has the time of the request.
        self.last_outcome_ms += 1;
    }

    fn drop_tag(&mut self, tag: &str, now_ms: i64) -> RequestResult {
        let t_ms = self.begin_command(now_ms);
        let servers = self.state.engine.delete_tag(tag).map_err(admin_error)?;
        tracing::info!(tag, servers, "tag dropped");
        self.record_command(t_ms, AdminCommand::DropTag { tag: tag.to_owned() });
        let dropped = Correction::TagDropped { tag: tag.to_owned(), servers: servers as u64 };
        Ok(vec![Row::Correction(dropped)])
    }

    fn reopen_week(&mut self, text: &str, now_ms: i64) -> anyhow::Result<RequestResult> {
        let week = match parse_week_label(text) {
            Ok(week) => week,
            Err(error) => return Ok(Err(ApiError::new(ErrorCode::BadRequest, error.to_string()))),
        };
        self.commit()?;
        let t_ms = self.begin_command(now_ms);
        let reopening = WeekState { week, phase: WeekPhase::Reopening };
        let in_progress = self.state.engine.weeks().contains(&reopening);
        Ok(match self.state.engine.reopen_week(week) {
            Ok(reopened) => {
                if reopened {
                    self.record_command(t_ms, AdminCommand::Reopen { week: text.to_owned() });
                    tracing::warn!(week = text, "an admin reopened a week");
                }
                self.ticked_ms = 0;
                let already_open = !reopened && !in_progress;
                let correction = Correction::WeekReopened { week: text.to_owned(), already_open, in_progress };
                Ok(vec![Row::Correction(correction)])
            }
            Err(error @ ReopenError::RowsDeleted { .. }) => Err(ApiError::new(ErrorCode::NotFound, error.to_string())),
            Err(error) => Err(ApiError::new(ErrorCode::Refused, error.to_string())),
        })
    }

    /// Sets recorded time back to the system clock. Everything before that is on disk first.
    fn reset_clock(&mut self, force: bool) -> anyhow::Result<RequestResult> {
        let refuse = |message: String| Ok(Err(ApiError::new(ErrorCode::Refused, message)));
        let clock = self.clock.status();
        if clock.ahead_ms == 0 {
            return refuse("recorded time is not ahead of the system clock: there is nothing to set back".to_owned());
        }
        if clock.synchronised != Some(true) && !force {
            return refuse(format!(
                "recorded time would be set back by {} s, but the system clock is not known to be synchronised; if it \
                 is right, add --yes",
                clock.ahead_ms / 1_000
            ));
        }
        self.commit()?;
        self.sync()?;
        if self.disk.is_paused() {
            // The disk has just become full. Scans that wait to be written would be later than the new
            // time.
            return Ok(Err(self.disk.refusal()));
        }
        let Some(reset) = self.clock.reset() else {
            return refuse("the system clock has just caught up with recorded time".to_owned());
        };
        let result = self.state.engine.reset_time(reset.now_ms);
        self.record_command(reset.now_ms, AdminCommand::Clock {});
        (self.last_outcome_ms, self.ticked_ms, self.swept_ms) = (reset.now_ms, 0, 0);
        self.commit()?;
        self.rebuild()?;
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
        let reset = Correction::TimeReset { previous_ms, now_ms, servers, reopened, uncredited_week };
        Ok(Ok(vec![Row::Correction(reset)]))
    }

    /// Begins to recompute the running windows.
    fn recompute_windows(
        &mut self,
        settings: &Map<String, Value>,
        only_check: bool,
        now_ms: i64,
    ) -> anyhow::Result<RequestResult> {
        let refuse = |message: String| Ok(Err(ApiError::new(ErrorCode::Refused, message)));
        let different = self.log.settings().changed_since(&RecordedSettings(settings.clone()));
        if !different.is_empty() {
            let keys: Vec<&str> = different.0.keys().map(String::as_str).collect();
            return refuse(format!(
                "the daemon has other values of {}: install this configuration file and run `clqd reload` first",
                keys.join(", ")
            ));
        }
        if self.state.engine.carries_ratings() {
            return refuse(
                "with elo.carry_over, ratings follow from earlier weeks, which the log does not have".to_owned(),
            );
        }
        if self.rebuilder.is_running() || self.state.engine.has_rebuild() {
            return refuse("windows are being rebuilt from the log now; try again when that is done".to_owned());
        }
        let running: Vec<String> = self.state.engine.running_windows().into_iter().map(window::label).collect();
        let from_ms = match window_rebuild::log_from_ms(&self.rebuild_paths.log, self.state.engine.first_added_ms()) {
            Ok(from_ms) => from_ms,
            Err(error) => return refuse(format!("the log cannot be read: {error}")),
        };
        let windows = self.state.engine.recomputable_windows(from_ms.unwrap_or(i64::MAX));
        if windows.is_empty() {
            let began =
                from_ms.map_or_else(|| "has no scans".to_owned(), |from_ms| format!("begins at {}", utc(from_ms)));
            return refuse(format!("the log {began}: it has no running window completely"));
        }
        if only_check {
            return Ok(Ok(Vec::new()));
        }
        let labels: Vec<String> = windows.iter().map(|state| window::label(state.window)).collect();
        tracing::info!(windows = labels.join(", "), "an admin asked to recompute the running windows");
        // Its rows follow later. From here on a restart begins the work again.
        let (t_ms, step) = (self.begin_command(now_ms), RebuildStep::Begin { windows });
        self.record(&LogEvent::Rebuild { t_ms, step: step.clone() });
        self.state.apply_rebuild(&step)?;
        self.rebuild()?;
        let kept = running.into_iter().filter(|window| !labels.contains(window)).collect();
        Ok(Ok(vec![Row::Correction(Correction::Recomputing { windows: labels, kept })]))
    }

    fn delete_windows(&mut self, before_ms: i64, now_ms: i64) -> Vec<Row> {
        let t_ms = self.begin_command(now_ms);
        // Deleted windows cannot be listed afterwards.
        let mut windows = self.state.engine.windows();
        let deleted = self.state.engine.delete_windows_before(&self.state.store, before_ms);
        let labels: Vec<String> = deleted.into_iter().map(window::label).collect();
        windows.retain(|listed| labels.contains(&listed.window.window));
        if !labels.is_empty() {
            tracing::info!(windows = labels.len(), before_ms, "windows deleted");
            self.record_command(t_ms, AdminCommand::DeleteWindows { before: before_ms });
        }
        windows.into_iter().map(|listed| Row::WindowDeleted(listed.window)).collect()
    }
}

/// Deletes all capture files, because a name may be in any of them. `None`: captures are off.
fn delete_captures(captures: Option<&mut CaptureFiles>) -> Option<CaptureDeletion> {
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

fn correction_error(error: CorrectionError) -> ApiError {
    let code = match error {
        CorrectionError::View(error) => return view_error(error),
        CorrectionError::SamePlayer(_) => ErrorCode::Refused,
        _ => ErrorCode::NotFound,
    };
    ApiError::new(code, error.to_string())
}

pub(super) fn admin_error(error: AdminError) -> ApiError {
    let code = match error {
        AdminError::UnknownServer(_) | AdminError::RemovedServer(_) | AdminError::UnknownTag { .. } => {
            ErrorCode::NotFound
        }
        AdminError::TooManyServers(_)
        | AdminError::TooManyTags { .. }
        | AdminError::NotScheduled(..)
        | AdminError::TooManyBoosts => ErrorCode::Refused,
    };
    ApiError::new(code, error.to_string())
}
